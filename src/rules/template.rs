//! Templates of labels and annotations: minijinja over the same words that conditions know.
//!
//! A template is tried twice at load, with a record that has every field and with one that has none. A name that nothing has is an
//! error there; at run time a missing field is none and reads "unknown". Work, recursion and output are bounded. Text of the source
//! stays plain text here: it is escaped where it is delivered.

use std::{collections::BTreeMap, io, ops::Range, sync::Arc};

use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value,
    value::{Serde, ValueKind},
};

use crate::{
    aggregate::{Flow, Last, Member, Sum, Totals, Window},
    alert::Labels,
    change::{Change, ChangeKind, Fact},
    diagnostic::closest,
    format,
    supply::{Record, RecordKey, Resource, Timestamp, Token, TokenId, Tracked},
    wire,
};

use super::{
    Lead, On, Scope, SourceFacts,
    builtin::{days_in_words, is_shown, when},
    condition::{span_of, unknown_name},
    fields::{self, Field, Part, PartKind, Read, ReadPart},
    words::{FUNCTIONS, Words},
};

/// Longest template, bytes.
pub(super) const MAX_TEMPLATE: usize = 16 << 10;

/// Longest `{{ … }}` or `{% … %}`, bytes: the engine's parser and compiler recurse over chains such as `1+1+1`.
const MAX_TAG: usize = 800;

/// Tags of one template: chains of `elif` recurse too.
const MAX_TAGS: usize = 200;

/// Longest text that one annotation may become, bytes.
const MAX_OUTPUT: usize = 16 << 10;

/// Longest value of a label, characters.
const MAX_LABEL: usize = 512;

/// Steps that one rendering may take.
const FUEL: u64 = 100_000;

/// Items of a list that a template sees.
const MAX_ITEMS: usize = 1_000;

/// Names beside those of conditions.
const EXTRA: [&str; 5] = ["when", "record", "labels", "change.fields", "change.before"];

/// The engine, set up once for a set of rules, and its templates by number.
pub(super) struct Engine {
    environment: Environment<'static>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

/// A template that has been checked, by its name in the engine.
#[derive(Clone, Debug)]
pub(super) struct Template {
    engine: Arc<Engine>,
    source: Arc<str>,
    /// Windows that it asks for: known at load, so that they are worked out before it is rendered.
    pub windows: Vec<Window>,
}

/// A problem in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub is_error: bool,
    pub span: Option<Range<usize>>,
    pub message: String,
    pub help: Option<String>,
}

impl Engine {
    pub fn new() -> Arc<Self> {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(50);
        environment.set_debug(true);
        environment.remove_global("debug");
        environment.set_formatter(|out, _, value| {
            if value.is_undefined() {
                return Err(Error::from(ErrorKind::UndefinedError));
            }
            out.write_str(&plain(value)).map_err(Error::from)
        });
        environment.add_filter("usd", |value: Value| number_filter(&value, format::usd));
        environment.add_filter("amount", |value: Value| number_filter(&value, format::amount));
        environment.add_filter("percent", |value: Value| number_filter(&value, format::percent));
        environment.add_filter("number", |value: Value| number_filter(&value, grouped));
        environment.add_filter("days", |value: Value| number_filter(&value, days_in_words));
        environment.add_filter("date", |value: Value| time_filter(&value, format::day));
        environment
            .add_filter("datetime", |value: Value| time_filter(&value, |at| at.format("%-d %b %Y, %H:%M UTC").to_string()));
        environment.add_filter("json", |value: Value| {
            serde_json::to_string(&value)
                .map_err(|error| Error::new(ErrorKind::InvalidOperation, format!("cannot be written as JSON: {error}")))
        });
        environment.add_filter("default", default_filter);
        environment.add_filter("d", default_filter);
        Arc::new(Self { environment })
    }

    fn render(&self, source: &str, context: Value) -> Result<String, Error> {
        let template = self.environment.template_from_named_str("template", source)?;
        let mut output = Capped { bytes: Vec::new() };
        template.render_captured_to(context, &mut output)?;
        let text = String::from_utf8_lossy(&output.bytes);
        Ok(text.chars().filter(|c| *c == '\n' || *c == '\t' || is_shown(*c)).collect())
    }

    fn knows_filter(&self, name: &str) -> bool {
        let expression = format!("1|{name}");
        let Ok(compiled) = self.environment.compile_expression(&expression) else {
            return false;
        };
        !matches!(compiled.eval(()), Err(error) if error.kind() == ErrorKind::UnknownFilter)
    }
}

impl Template {
    /// Checks `source` for a rule that listens to `on`. An annotation may use the rule's labels, whose names are given; a label may
    /// not. A template with errors is still returned; the caller drops the rule.
    pub fn check(engine: &Arc<Engine>, source: &str, on: On, labels: Option<&[String]>) -> (Self, Vec<Fault>) {
        let mut template = Self { engine: Arc::clone(engine), source: source.into(), windows: Vec::new() };
        if source.len() > MAX_TEMPLATE {
            let message = format!("this template is {} bytes long; at most {MAX_TEMPLATE} are allowed", source.len());
            return (template, vec![Fault { is_error: true, span: None, message, help: Some("shorten it".into()) }]);
        }
        if !source.contains("{{") && !source.contains("{%") && !source.contains("{#") {
            return (template, Vec::new());
        }
        // Before any parser sees it.
        let tags = tags_of(source);
        if let Some(tag) = tags.iter().find(|tag| tag.len() > MAX_TAG) {
            let message = format!("this tag is {} bytes long; at most {MAX_TAG} are allowed", tag.len());
            return (
                template,
                vec![Fault {
                    is_error: true,
                    span: Some(tag.clone()),
                    message,
                    help: Some("split it with `{% set … %}`".into()),
                }],
            );
        }
        // Inside a raw block the engine reads other bounds than this look does.
        let is_raw = |tag: &&Range<usize>| {
            source.get((*tag).clone()).is_some_and(|tag| tag.trim_start_matches(['-', '+']).trim_start().starts_with("raw"))
        };
        if let Some(tag) = tags.iter().find(is_raw) {
            let help = Some("write braces as `{{ '{{' }}`".into());
            return (
                template,
                vec![Fault { is_error: true, span: Some(tag.clone()), message: "raw blocks are not supported".into(), help }],
            );
        }
        if tags.len() > MAX_TAGS {
            let message = format!("this template has {} tags; at most {MAX_TAGS} are allowed", tags.len());
            return (template, vec![Fault { is_error: true, span: None, message, help: Some("shorten it".into()) }]);
        }
        let mut faults = Vec::new();
        if matches!(on, On::Token | On::Portfolio) {
            for tag in &tags {
                template.find_windows(tag, &mut faults);
            }
        }
        faults.extend(template.unknown_names(on, labels.is_none()));
        faults.extend(template.unknown_filters());
        if faults.is_empty() {
            faults.extend(template.trial(on, labels));
        }
        (template, faults)
    }

    /// The windows that a tag asks for. One that is worked out only as the template is rendered would not be there.
    fn find_windows(&mut self, tag: &Range<usize>, faults: &mut Vec<Fault>) {
        let source = Arc::clone(&self.source);
        let Some(text) = source.get(tag.clone()) else { return };
        for flow in Flow::ALL {
            for (at, word) in text.match_indices(flow.as_str()) {
                let before = text.get(..at).and_then(|text| text.chars().next_back());
                let Some(rest) = text.get(at + word.len()..) else { continue };
                let is_part = |c: char| c.is_alphanumeric() || c == '_';
                let Some(argument) = rest.trim_start().strip_prefix('(') else { continue };
                if before.is_some_and(is_part) {
                    continue;
                }
                let argument = argument.trim_start();
                let quoted = argument.chars().next().filter(|c| matches!(c, '"' | '\'')).and_then(|quote| {
                    let (text, rest) = argument.get(1..)?.split_once(quote)?;
                    rest.trim_start().starts_with(')').then_some(text)
                });
                match quoted.map(|text| window_of(flow, text)) {
                    Some(Ok(window)) if self.windows.contains(&window) => {}
                    Some(Ok(window)) => self.windows.push(window),
                    Some(Err(message)) => faults.push(Fault {
                        is_error: true,
                        span: Some(tag.start + at..tag.start + at + word.len()),
                        message,
                        help: Some(format!("write it like `{word}(\"30d\")`")),
                    }),
                    None => faults.push(Fault {
                        is_error: true,
                        span: Some(tag.start + at..tag.start + at + word.len()),
                        message: format!("`{word}` takes one window, written out in quotes"),
                        help: Some(format!("write it like `{word}(\"30d\")`")),
                    }),
                }
            }
        }
    }

    fn unknown_names(&self, on: On, is_label: bool) -> Vec<Fault> {
        let compiled = match self.engine.environment.template_from_named_str("template", &self.source) {
            Ok(compiled) => compiled,
            Err(error) => return vec![fault_of(&error, "this template cannot be read")],
        };
        let words = Words::of(on);
        let mut names = words.all();
        names.extend(EXTRA.into_iter().filter(|name| {
            (*name != "labels" || !is_label)
                && (!name.starts_with("change.") || matches!(on, On::Change(..)))
                && (!matches!(*name, "when" | "record") || !matches!(on, On::Source | On::Token | On::Portfolio))
        }));
        if words.has_windows() {
            names.extend(FUNCTIONS.into_iter().filter(|name| *name != "share" || on == On::Token));
        }
        if matches!(on, On::Change(..)) {
            names.push("change.after");
        }
        let mut unknown: Vec<String> = compiled
            .undeclared_variables(true)
            .into_iter()
            .filter(|path| {
                let is_known = names.contains(&path.as_str())
                    || names.iter().any(|name| {
                        // An object by itself, or something inside a list, whose shape the trial looks at.
                        name.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('.'))
                            || (path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')) && holds_more(name))
                    });
                !is_known && !matches!(path.split('.').next(), Some("range" | "dict" | "namespace" | "loop"))
            })
            .collect();
        unknown.sort();
        unknown
            .into_iter()
            .map(|path| {
                let (message, help) = match words.misplaced(&path) {
                    Some(help) => (format!("`{path}` is not known here"), help),
                    None => unknown_name(&path, &names),
                };
                Fault { is_error: true, span: find_word(&self.source, &path), message, help: Some(help) }
            })
            .collect()
    }

    fn unknown_filters(&self) -> Vec<Fault> {
        filters_in(&self.source)
            .into_iter()
            .filter_map(|range| {
                let name = self.source.get(range.clone())?;
                if self.engine.knows_filter(name) {
                    return None;
                }
                let known = [
                    "usd", "amount", "percent", "number", "date", "datetime", "days", "json", "default", "upper", "lower",
                    "join", "length", "round", "replace", "first", "last", "sort", "title", "trim",
                ];
                let help = closest(name, known)
                    .map_or_else(|| format!("filters are {}", known.join(", ")), |near| format!("did you mean `{near}`?"));
                Some(Fault {
                    is_error: true,
                    span: Some(range),
                    message: format!("there is no filter `{name}`"),
                    help: Some(help),
                })
            })
            .collect()
    }

    /// Renders with everything there, then with everything missing.
    fn trial(&self, on: On, labels: Option<&[String]>) -> Option<Fault> {
        for is_full in [true, false] {
            let sample = Sample::of(on, is_full, &self.windows);
            let labels = labels.map(|names| {
                (names, if is_full { names.iter().map(|name| (name.clone(), "sample".into())).collect() } else { Labels::new() })
            });
            let labels = labels.as_ref().map(|(names, labels)| (*names, labels));
            if let Err(error) = self.engine.render(&self.source, context(&sample.scope(), labels)) {
                let mut fault = fault_of(
                    &error,
                    if is_full { "this template fails" } else { "this template fails where fields are missing" },
                );
                fault.is_error = is_full;
                if !is_full {
                    fault.help = Some(
                        "give a default, `{{ cliffValue | default(0) }}`, or ask first, `{% if cliffValue is not none %}`".into(),
                    );
                }
                return Some(fault);
            }
        }
        None
    }

    /// Renders an annotation.
    pub fn annotation(&self, context: &Value) -> Result<String, String> {
        self.engine.render(&self.source, context.clone()).map_err(|error| describe(&error))
    }

    /// Renders a label: one line.
    pub fn label(&self, context: &Value) -> Result<String, String> {
        let text = self.annotation(context)?;
        Ok(text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_LABEL).collect())
    }
}

/// Output up to [`MAX_OUTPUT`].
struct Capped {
    bytes: Vec<u8>,
}

impl io::Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_OUTPUT {
            return Err(io::Error::other(format!("the text is longer than {MAX_OUTPUT} bytes")));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An error of the engine in one line.
fn describe(error: &Error) -> String {
    let mut text = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect();
    text
}

fn fault_of(error: &Error, what: &str) -> Fault {
    let help = match error.kind() {
        ErrorKind::SyntaxError => Some("values stand in `{{ … }}`, statements in `{% … %}`".into()),
        ErrorKind::OutOfFuel => Some("it takes too many steps: shorten its loops".into()),
        _ => None,
    };
    Fault { is_error: true, span: error.range(), message: format!("{what}: {}", describe(error)), help }
}

/// Names whose insides are not in the tables.
fn holds_more(name: &str) -> bool {
    matches!(name, "record" | "labels" | "change.fields" | "change.before" | "change.after" | "change.from" | "change.to")
        || name.ends_with("llocations")
        || name.ends_with("allocationBreakdown")
        || name.ends_with("groups")
        || name == "tokens"
        || name.starts_with("lastB")
        || FUNCTIONS.contains(&name)
        || name.ends_with("burners")
        || name.ends_with("burnReasons")
}

/// Where a dotted name stands in a template, inside a tag.
fn find_word(source: &str, path: &str) -> Option<Range<usize>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let inside = |at: usize| {
        let before = source.get(..at).unwrap_or_default();
        before.rfind("{{").max(before.rfind("{%")) > before.rfind("}}").max(before.rfind("%}"))
    };
    source.match_indices(path).map(|(at, word)| at..at + word.len()).find(|range| {
        let before = source.get(..range.start).and_then(|text| text.chars().next_back());
        let after = source.get(range.end..).and_then(|text| text.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(|c| is_part(c) && c != '.') && inside(range.start)
    })
}

/// The insides of `{{ … }}` and `{% … %}`, comments left out, quotes and their escapes respected as the engine does.
fn tags_of(source: &str) -> Vec<Range<usize>> {
    let find = |from: usize, what: &str| source.get(from..).and_then(|text| text.find(what)).map(|offset| from + offset);
    let mut tags = Vec::new();
    let mut at = 0;
    while let Some((start, open)) =
        ["{{", "{%", "{#"].into_iter().filter_map(|open| find(at, open).map(|start| (start, open))).min()
    {
        if open == "{#" {
            at = find(start + 2, "#}").map_or(source.len(), |end| end + 2);
            continue;
        }
        let close = if open == "{{" { "}}" } else { "%}" };
        let begin = start + 2;
        let mut end = source.len();
        let mut quote = None;
        let mut is_escaped = false;
        for (offset, c) in source.get(begin..).unwrap_or_default().char_indices() {
            match quote {
                Some(_) if is_escaped => is_escaped = false,
                Some(_) if c == '\\' => is_escaped = true,
                Some(open) if c == open => quote = None,
                Some(_) => {}
                None if matches!(c, '"' | '\'') => quote = Some(c),
                None if source.get(begin + offset..).is_some_and(|rest| rest.starts_with(close)) => {
                    end = begin + offset;
                    break;
                }
                None => {}
            }
        }
        tags.push(begin..end);
        at = end.max(begin);
        if end < source.len() {
            at = end + 2;
        }
    }
    tags
}

/// Where filters are named: words after `|` inside tags, texts in quotes left out.
fn filters_in(source: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for tag in tags_of(source) {
        let mut quote = None;
        let mut is_escaped = false;
        let mut after_pipe = false;
        let mut word: Option<usize> = None;
        for (offset, c) in source.get(tag.clone()).unwrap_or_default().char_indices().chain([(tag.len(), ' ')]) {
            let at = tag.start + offset;
            if let Some(open) = quote {
                match c {
                    _ if is_escaped => is_escaped = false,
                    '\\' => is_escaped = true,
                    _ if c == open => quote = None,
                    _ => {}
                }
                continue;
            }
            if let Some(begin) = word {
                if c.is_alphanumeric() || c == '_' {
                    continue;
                }
                found.push(begin..at);
                word = None;
            }
            match c {
                '"' | '\'' => quote = Some(c),
                '|' => after_pipe = true,
                _ if c.is_whitespace() => {}
                _ => {
                    if after_pipe && (c.is_alphabetic() || c == '_') {
                        word = Some(at);
                    }
                    after_pipe = false;
                }
            }
        }
    }
    found
}

/// A value as it reads in a sentence.
fn plain(value: &Value) -> String {
    match value.kind() {
        ValueKind::None => "unknown".into(),
        ValueKind::Number => match f64::try_from(value.clone()) {
            Ok(number) if number.is_finite() => format!("{number}"),
            Ok(_) => "unknown".into(),
            Err(_) => value.to_string(),
        },
        ValueKind::Seq | ValueKind::Iterable => match value.try_iter() {
            Ok(items) => items.map(|item| plain(&item)).collect::<Vec<_>>().join(", "),
            Err(_) => value.to_string(),
        },
        _ => value.to_string(),
    }
}

fn refuse_undefined(value: &Value) -> Result<(), Error> {
    if value.is_undefined() { Err(Error::from(ErrorKind::UndefinedError)) } else { Ok(()) }
}

fn number_filter(value: &Value, show: fn(f64) -> String) -> Result<String, Error> {
    refuse_undefined(value)?;
    if value.is_none() {
        return Ok("unknown".into());
    }
    match f64::try_from(value.clone()) {
        Ok(number) if number.is_finite() => Ok(show(number)),
        Ok(_) => Ok("unknown".into()),
        Err(_) => Err(Error::new(ErrorKind::InvalidOperation, format!("a number is needed, this is {}", value.kind()))),
    }
}

fn time_filter(value: &Value, show: fn(Timestamp) -> String) -> Result<String, Error> {
    refuse_undefined(value)?;
    if value.is_none() {
        return Ok("unknown".into());
    }
    value
        .as_str()
        .and_then(wire::parse_timestamp)
        .map(show)
        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, format!("a time is needed, this is {}", value.kind())))
}

fn default_filter(value: Value, other: Option<Value>) -> Value {
    if value.is_undefined() || value.is_none() { other.unwrap_or_else(|| Value::from("")) } else { value }
}

/// A number with its digits in groups of three: `5,250,000`.
fn grouped(value: f64) -> String {
    let text = format!("{}", (value * 100.0).round() / 100.0);
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut out = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(rest) = rest {
        out.push('.');
        out.push_str(rest);
    }
    out
}

/// Everything that a template sees of a scope: missing fields are there as none, and so are labels of `names` that are not set.
pub(super) fn context(scope: &Scope<'_>, labels: Option<(&[String], &Labels)>) -> Value {
    let mut root = BTreeMap::<String, Node>::new();
    let record = super::node::Env::of(scope, None).record();
    if let Some(totals) = scope.totals {
        put_totals(&mut root, totals, scope.now);
    }
    let resource = record.map(Record::resource).or_else(|| scope.change.and_then(|change| change.resource));
    if let Some(resource) = resource {
        put_record(&mut root, fields::of_record(resource), record);
        let interval = record.and_then(Record::interval);
        put(&mut root, "when", Value::from(when(interval.as_ref())));
        put(&mut root, "daysUntil", option(interval.map(|interval| interval.days_until(scope.now))));
        put(&mut root, "daysSince", option(interval.map(|interval| 0.0 - interval.days_until(scope.now))));
        put(&mut root, "record", record.map_or_else(|| Value::from(()), |record| Value::from(Serde(record))));
    }
    put(&mut root, "lead", option(scope.lead.map(|lead| lead.text.as_str())));
    put(&mut root, "now", Value::from(time(scope.now)));
    for field in fields::TOKEN {
        put(&mut root, field.name, scope.token.map_or_else(|| Value::from(()), |token| read(&field.read, token)));
    }
    if let Some(change) = scope.change {
        for field in fields::CHANGE {
            put(&mut root, field.name, read(&field.read, change));
        }
        put(&mut root, "change.fields", Value::from(Serde(&change.fields)));
        put(
            &mut root,
            "change.before",
            change.before.as_ref().map_or_else(|| Value::from(()), |brief| Value::from(Serde(brief))),
        );
        put(&mut root, "change.after", change.after.as_ref().map_or_else(|| Value::from(()), |brief| Value::from(Serde(brief))));
        for (word, side) in [("old", &change.old), ("new", &change.new)] {
            let mut inner = BTreeMap::new();
            if let Some(resource) = resource {
                put_record(&mut inner, fields::of_record(resource), side.as_ref());
            }
            root.insert(word.into(), Node::Inner(inner));
        }
    }
    if let Some(source) = scope.source {
        for field in fields::SOURCE {
            put(&mut root, field.name, read(&field.read, source));
        }
    }
    if let Some((names, labels)) = labels {
        let values = names.iter().map(|name| (name.as_str(), option(labels.get(name).map(String::as_str))));
        put(&mut root, "labels", Value::from_pairs(values));
    }
    Node::Inner(root).into_value()
}

/// What is known of a token or of a group as a whole.
fn put_totals(root: &mut BTreeMap<String, Node>, totals: &Totals, now: Timestamp) {
    for field in fields::TOTALS.iter().chain(fields::TOTALS_OF_TOKEN) {
        put(root, field.name, read(&field.read, totals));
    }
    put_windows(root, totals, now);
    let shares = totals.shares.clone();
    put(root, "share", Value::from_function(move |group: String| option(shares.get(&group).copied())));
    put(root, "group", option(totals.group.as_deref()));
    put(root, "tokenCount", Value::from(totals.members.len()));
    let members: Vec<Value> = totals.members.iter().take(MAX_ITEMS).map(|item| member(item, now)).collect();
    put(root, "tokens", Value::from(members));
}

/// The functions over windows, and the latest burn and buyback.
fn put_windows(root: &mut BTreeMap<String, Node>, totals: &Totals, now: Timestamp) {
    let sums: Arc<[(Window, Sum)]> = totals.sums().collect();
    for flow in Flow::ALL {
        let sums = Arc::clone(&sums);
        let ask = move |span: String| -> Result<Value, Error> {
            let refuse = |problem: String| Error::new(ErrorKind::InvalidOperation, problem);
            let window = window_of(flow, &span).map_err(refuse)?;
            match sums.iter().find(|(known, _)| *known == window) {
                Some((_, sum)) => Ok(Value::from_pairs([
                    ("amount", option(sum.amount)),
                    ("value", option(sum.value)),
                    ("count", option(sum.count)),
                ])),
                None => Err(refuse(format!("the window {}({span:?}) was not worked out", flow.as_str()))),
            }
        };
        put(root, flow.as_str(), Value::from_function(ask));
    }
    for (word, last) in [("lastBurn", totals.last_burn), ("lastBuyback", totals.last_buyback)] {
        let part = |name: &str, value: Value| (format!("{word}.{name}"), value);
        for (path, value) in [
            part("daysSince", option(last.map(|last: Last| last.days_since(now)))),
            part("date", option(last.map(|last| time(last.at)))),
            part("amount", option(last.and_then(|last| last.amount))),
            part("value", option(last.and_then(|last| last.value))),
        ] {
            put(root, &path, value);
        }
    }
}

fn member(item: &Member, now: Timestamp) -> Value {
    let mut inner = BTreeMap::new();
    for field in fields::of_part(PartKind::Member) {
        let part = Part::Member(item);
        let value = match field.read {
            ReadPart::Number(read) => option(read(part)),
            ReadPart::Time(read) => option(read(part).map(time)),
            ReadPart::Text(read) => option(read(part)),
            ReadPart::Fact(read) => option(read(part).map(fact)),
        };
        put(&mut inner, field.name, value);
    }
    put_windows(&mut inner, &item.totals, now);
    Node::Inner(inner).into_value()
}

/// The window of a text in quotes.
fn window_of(flow: Flow, text: &str) -> Result<Window, String> {
    match span_of(text) {
        Ok(span) if span > chrono::TimeDelta::zero() => Ok(Window { flow, span }),
        Ok(_) => Err("a window is longer than nothing".into()),
        Err(problem) => Err(format!("\"{text}\" is no length of time: {problem}")),
    }
}

/// A value, or an object under construction: `token.symbol` is put where `token` is one.
enum Node {
    Leaf(Value),
    Inner(BTreeMap<String, Node>),
}

impl Node {
    fn into_value(self) -> Value {
        match self {
            Node::Leaf(value) => value,
            Node::Inner(inner) => Value::from_pairs(inner.into_iter().map(|(name, node)| (name, node.into_value()))),
        }
    }
}

fn put(root: &mut BTreeMap<String, Node>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            root.insert(path.into(), Node::Leaf(value));
        }
        Some((first, rest)) => {
            if let Node::Inner(inner) = root.entry(first.into()).or_insert_with(|| Node::Inner(BTreeMap::new())) {
                put(inner, rest, value);
            }
        }
    }
}

fn put_record(root: &mut BTreeMap<String, Node>, table: &[Field<Record>], record: Option<&Record>) {
    for field in table {
        put(root, field.name, record.map_or_else(|| Value::from(()), |record| read(&field.read, record)));
    }
}

fn option<T: Into<Value>>(value: Option<T>) -> Value {
    value.map_or_else(|| Value::from(()), Into::into)
}

fn time(at: Timestamp) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

fn fact(fact: &Fact) -> Value {
    match fact {
        Fact::Amount(amount) => Value::from(*amount),
        Fact::Time(at) => Value::from(time(*at)),
        Fact::Text(text) => Value::from(text.as_str()),
    }
}

fn read<O>(how: &Read<O>, from: &O) -> Value {
    match how {
        Read::Number(read) => option(read(from)),
        Read::Bool(read) => option(read(from)),
        Read::Time(read) => option(read(from).map(time)),
        Read::Text(read) => option(read(from)),
        Read::Texts(read) => {
            option(read(from).map(|texts| texts.iter().take(MAX_ITEMS).map(|text| Value::from(text.clone())).collect::<Vec<_>>()))
        }
        Read::Fact(read) => option(read(from).map(fact)),
        Read::Parts(kind, read) => {
            let mut items = Vec::new();
            let there = read(from, &mut |part| {
                items.push(part_value(*kind, part));
                items.len() < MAX_ITEMS
            });
            option(there.map(|()| items))
        }
    }
}

fn part_value(kind: PartKind, part: Part<'_>) -> Value {
    Value::from_pairs(fields::of_part(kind).iter().map(|field| {
        let value = match field.read {
            ReadPart::Number(read) => option(read(part)),
            ReadPart::Time(read) => option(read(part).map(time)),
            ReadPart::Text(read) => option(read(part)),
            ReadPart::Fact(read) => option(read(part).map(fact)),
        };
        (field.name, value)
    }))
}

/// A made-up scope to try templates with.
struct Sample {
    token: Token,
    record: Option<Tracked>,
    change: Option<Change>,
    source: Option<SourceFacts>,
    totals: Option<Totals>,
    lead: Option<Lead>,
    now: Timestamp,
}

/// A record of each resource with every field that a table names.
const FULL: [(Resource, &str); 6] = [
    (
        Resource::Unlock,
        r#"{"unlockDate":"2026-03-16T01:00:00Z","tokenName":"Example","tokenSymbol":"EXA","listedMethod":"INTERNAL","dataSource":"docs",
        "referencePrice":0.5,"referencePriceUpdatedTime":"2026-03-01T00:00:00Z","latestUpdateDate":"2026-03-01T00:00:00Z",
        "cliffUnlocks":{"cliffAmount":1000000,"cliffValue":500000,"valueToMarketCap":2.5,"referencePrice":0.5,
        "referencePriceUpdatedTime":"2026-03-01T00:00:00Z","allocationBreakdown":[{"unlockDate":"2026-03-16T01:00:00Z",
        "allocationName":"Team","standardAllocationName":"Founder / Team","cliffAmount":1000000,"cliffValue":500000,"referencePrice":0.5,
        "referencePriceUpdatedTime":"2026-03-01T00:00:00Z","unlockPrecision":"second","committedClaim":{"amount":900000,"value":450000,"timestamp":1773622800}}]},
        "linearUnlocks":{"linearAmount":1000,"linearValue":500,"dailyAmount":10,"dailyValue":5,"referencePrice":0.5,
        "referencePriceUpdatedTime":"2026-03-01T00:00:00Z","allocationBreakdown":[{"allocationName":"Reserve","standardAllocationName":"Reserve",
        "linearAmount":1000,"linearValue":500,"referencePrice":0.5,"dailyAmount":10,"dailyValue":5,"durationOfRate":100,
        "beginDate":"2026-03-16T01:00:00Z","endDate":"2026-06-24T01:00:00Z","unlockPrecision":"second"}]}}"#,
    ),
    (
        Resource::Burn,
        r#"{"burnEventLabel":"Quarterly burn","burnType":"Buyback burn","burnDate":"2026-03-01T00:00:00Z","amount":1000,"pricePerToken":0.5,
        "value":500,"metadata":{"burners":["Foundation"],"burnReasons":["Fees"]}}"#,
    ),
    (
        Resource::Buyback,
        r#"{"buybackEventLabel":"Weekly buyback","buybackType":"Open market","buybackDate":"2026-03-01T00:00:00Z","tokenAmount":1000,"value":500,
        "spentAmount":500,"spentUnit":"USDC","targetAddress":"0x01","buyerAddress":"0x02","resolution":"day","basis":"reported"}"#,
    ),
    (
        Resource::Emission,
        r#"{"startDate":"2026-03-01T00:00:00Z","endDate":"2026-03-02T00:00:00Z","tokenName":"Example","tokenSymbol":"EXA","listedMethod":"INTERNAL",
        "unlockAmount":1000,"unlockValue":500,"referencePrice":0.5,"allocations":[{"allocationName":"Team","standardAllocationName":"Founder / Team",
        "unlockAmount":1000,"unlockValue":500}],"standardAllocations":["Founder / Team"],"totalCumulativeUnlockedAmount":5000,
        "committedClaim":{"amount":900,"value":450,"timestamp":1773622800}}"#,
    ),
    (
        Resource::Allocation,
        r#"{"allocationName":"Team","allocationType":"Scheduled","standardAllocationName":"Founder / Team","allocationUnlockedAmount":10,
        "allocationLockedAmount":90,"allocationAmount":100,"trackedAllocationPercentage":10}"#,
    ),
    (
        Resource::Funding,
        r#"{"tokenId":"example","roundName":"Series A","isLeadInvestor":true,"fundingDate":"2026-03-01T00:00:00Z",
        "totalAmountRaisedinThatRound":10000000,"valuation":100000000,"pricePerToken":0.1,"investorId":"one","investorName":"One Capital"}"#,
    ),
];

const FULL_TOKEN: &str = r#"{"id":"example","name":"Example","symbol":"EXA","listedMethod":"INTERNAL","circulatingSupply":100,"marketCap":20000000,
    "maxSupply":1000,"totalLockedAmount":900,"tbdLockedAmount":1,"unlockedAmount":100,"untrackedAmount":0,"hasStandardAllocation":true,
    "hasFundraising":true,"latestFundraisingRound":"Series A","hasBurn":true,"hasBuyback":true,"hasCommittedClaim":true,
    "websiteUrl":"https://example.com","lastUpdatedDate":"2026-03-01T00:00:00Z"}"#;

impl Sample {
    fn of(on: On, is_full: bool, windows: &[Window]) -> Self {
        let now = wire::parse_timestamp("2026-03-09").unwrap_or_default();
        let record = |resource: Resource| {
            let json = FULL.iter().find(|(of, _)| is_full && *of == resource).map_or("{}", |(_, json)| json);
            Record::from_json(resource, json).ok()
        };
        let mut token = Token::unknown(TokenId::from("example"));
        if is_full && let Ok(item) = serde_json::from_str(FULL_TOKEN) {
            token.item = item;
            token.groups = Arc::from(["portfolio".to_owned()]);
        }
        let mut sample = Self { token, record: None, change: None, source: None, totals: None, lead: None, now };
        match on {
            On::Token => sample.totals = Some(Totals::sample(windows, is_full, now)),
            On::Portfolio => {
                let of_token = Arc::new(Totals::sample(windows, is_full, now));
                let member = Member {
                    id: sample.token.id.clone(),
                    symbol: sample.token.symbol().to_owned(),
                    name: sample.token.name().to_owned(),
                    totals: of_token,
                    share: is_full.then_some(100.0),
                };
                let mut totals = Totals::sample(windows, is_full, now);
                (totals.max_supply, totals.circulating_supply) = (None, None);
                totals.shares.clear();
                totals.group = is_full.then(|| "portfolio".to_owned());
                totals.members = vec![member];
                sample.totals = Some(totals);
            }
            On::Record(resource) => {
                sample.record = record(resource).map(|record| Tracked { key: RecordKey::from("sample"), record });
                sample.lead = is_full.then(|| Lead { text: "7d".into(), span: chrono::TimeDelta::days(7) });
            }
            On::Change(resource, kind) => {
                let mut change = Change::of(kind.unwrap_or(ChangeKind::Revised), resource, &sample.token.id);
                if is_full {
                    let (from, to) = match Words::of(on).fact_type() {
                        super::words::FactType::Time => (Fact::Time(now), Fact::Time(now)),
                        super::words::FactType::Text => (Fact::Text("Team".into()), Fact::Text("Core team".into())),
                        _ => (Fact::Amount(1.0), Fact::Amount(2.0)),
                    };
                    (change.from, change.to) = (Some(from), Some(to));
                    (change.shift_days, change.ratio) = (Some(1.0), Some(2.0));
                    change.allocations = vec![crate::change::AllocationChange { name: "Team".into(), ..Default::default() }];
                    change.before = Some(crate::change::ScheduleBrief::default());
                    change.after = Some(crate::change::ScheduleBrief::default());
                    change.summary = "moved by a day".into();
                    change.old = record(resource);
                    change.new = record(resource);
                }
                sample.change = Some(change);
                sample.record =
                    record(resource).filter(|_| is_full).map(|record| Tracked { key: RecordKey::from("sample"), record });
            }
            On::Source => {
                sample.source = Some(SourceFacts {
                    kind: "unreachable".into(),
                    endpoint: is_full.then(|| "burn".into()),
                    receiver: is_full.then(|| "ops".into()),
                    message: "cannot be reached".into(),
                    count: 1,
                    since: now,
                });
            }
        }
        sample
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            token: (self.totals.as_ref().is_none_or(|totals| totals.members.is_empty())).then_some(&self.token),
            record: self.record.as_ref(),
            change: self.change.as_ref(),
            source: self.source.as_ref(),
            totals: self.totals.as_ref(),
            lead: self.lead.as_ref(),
            now: self.now,
        }
    }
}

//! Rule files: text to spanned tree to [`RuleSet`], with every problem of every file reported together.
//!
//! [`read_files`] is the only place that touches the disk; [`load`] takes texts and the names around them. Whatever an operator can
//! get wrong is answered with its place, what is wrong, and what was probably meant; nothing is guessed.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use chrono::TimeDelta;
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use toml::{
    Spanned,
    de::{DeArray, DeTable, DeValue},
};

use crate::{
    change::ChangeKind,
    diagnostic::{Diagnostic, Lines, Severity, SourceText, closest},
    supply::{ReceiverName, Resource, RuleId, Timestamp},
    wire,
};

use super::{
    Filters, Lead, Level, On, Place, Pool, Rule, RuleBody, RuleSet,
    advice::{self, Subject},
    condition::{self, Condition, Edge, Reads, can_be_heard, span_of},
    imply::Logic,
    places::Places,
    template::{Engine, Template},
};

/// Largest rule file, bytes.
const MAX_FILE: u64 = 1 << 20;

/// All rule files together, bytes.
const MAX_TOTAL: usize = 32 << 20;

/// Rule files of one configuration.
const MAX_FILES: usize = 1_000;

/// Entries of directories looked at while patterns are matched.
const MAX_ENTRIES: usize = 100_000;

/// How deep `**` goes.
const MAX_DEPTH: usize = 8;

/// Rules of all files.
const MAX_RULES: usize = 5_000;

/// Levels of one rule; lead times of one rule; labels or annotations of one table.
const MAX_ITEMS: usize = 64;

/// Entries of one filter, and characters of one pattern.
const MAX_PATTERNS: usize = 1_000;
const MAX_PATTERN: usize = 256;

/// Characters of a name.
const MAX_NAME: usize = 200;

/// How old a newly seen burn, buyback or round may be, unless `since` says otherwise.
const DEFAULT_SINCE: TimeDelta = TimeDelta::days(7);

/// Longest length of time that means anything here.
const MAX_SPAN: TimeDelta = TimeDelta::days(36_500);

pub(super) const RULE_KEYS: [&str; 21] = [
    "alert",
    "id",
    "on",
    "when",
    "clear_when",
    "within",
    "since",
    "for",
    "keep_firing_for",
    "missing",
    "tokens",
    "listed_methods",
    "allocations",
    "limit",
    "labels",
    "annotations",
    "receivers",
    "enabled",
    "owner",
    "expires",
    "level",
];

pub(super) const LEVEL_KEYS: [&str; 3] = ["when", "labels", "annotations"];

/// What rules may refer to.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Names of the receivers.
    pub receivers: &'a [String],
    /// `[watch.groups]`: slugs or globs by name.
    pub groups: &'a BTreeMap<String, Vec<String>>,
    /// Against which `expires` is measured.
    pub now: Timestamp,
}

/// What came of a load.
#[derive(Debug)]
pub struct Loaded {
    /// The rules; usable only where no diagnostic is an error.
    pub set: RuleSet,
    /// All problems of all files, in their order.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts, for showing lines of them.
    pub sources: Vec<SourceText>,
}

impl Loaded {
    /// Whether the rules can be used.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error)
    }
}

/// Checks rule files and makes their rules.
#[must_use]
pub fn load(files: &[SourceText], around: &Surroundings<'_>) -> Loaded {
    let engine = Engine::new();
    let mut diagnostics = Vec::new();
    let mut rules: Vec<Rule> = Vec::new();
    let mut subjects: Vec<Subject> = Vec::new();
    let mut seen: HashMap<RuleId, String> = HashMap::new();
    for file in files {
        let mut reader = Reader { file, around, engine: &engine, diagnostics: &mut diagnostics };
        let (root, errors) = DeTable::parse_recoverable(&file.text);
        if !errors.is_empty() {
            for error in errors {
                reader.problem(error.span(), error.message().trim().to_owned());
            }
            continue;
        }
        let first = reader.diagnostics.len();
        reader.file(root.get_ref(), &mut rules, &mut subjects, &mut seen);
        if let Some(own) = diagnostics.get_mut(first..) {
            // In the order of the file, as a person goes through it.
            own.sort_by_key(|diagnostic| diagnostic.span.as_ref().map_or(0, |span| span.start));
        }
    }
    diagnostics.extend(advice::twins(&rules, &subjects));
    Loaded { set: RuleSet::of(rules), diagnostics, sources: files.to_vec() }
}

/// A text of the file with its places.
#[derive(Clone, Debug)]
struct Text {
    value: String,
    /// The value as a whole, quotes included.
    span: Range<usize>,
    /// Where its characters stand.
    places: Places,
}

impl Text {
    fn place(&self, inner: Range<usize>) -> Range<usize> {
        self.places.of(inner).unwrap_or_else(|| self.span.clone())
    }
}

struct Reader<'r> {
    file: &'r SourceText,
    around: &'r Surroundings<'r>,
    engine: &'r Arc<Engine>,
    diagnostics: &'r mut Vec<Diagnostic>,
}

type Table<'t> = DeTable<'t>;

impl Reader<'_> {
    fn problem(&mut self, span: Option<Range<usize>>, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(&self.file.file, span, message));
    }

    fn refuse(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(&self.file.file, Some(span), message).help(help));
    }

    fn warn(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics.push(Diagnostic::warning(&self.file.file, Some(span), message).help(help));
    }

    fn file(&mut self, root: &Table<'_>, rules: &mut Vec<Rule>, subjects: &mut Vec<Subject>, seen: &mut HashMap<RuleId, String>) {
        for (key, value) in root {
            let name = key.get_ref().as_ref();
            if name == "rule" {
                continue;
            }
            let help = if RULE_KEYS.contains(&name) {
                "keys of a rule stand below a line `[[rule]]`".to_owned()
            } else if closest(name, ["rule"]).is_some() && (value.get_ref().is_array() || value.get_ref().is_table()) {
                "did you mean `[[rule]]`?".to_owned()
            } else {
                "a rule file holds `[[rule]]` tables and nothing else".to_owned()
            };
            self.refuse(key.span(), format!("unknown key `{name}`"), help);
        }
        let Some(value) = root.get("rule") else { return };
        let Some(list) = value.get_ref().as_array() else {
            return self.refuse(value.span(), "`rule` is a list of tables", "write `[[rule]]` with two brackets");
        };
        let lines = Lines::of(&self.file.text);
        for (index, item) in list.iter().enumerate() {
            let Some(table) = item.get_ref().as_table() else {
                self.refuse(item.span(), "a rule is a table", "write `[[rule]]`, and below it `alert = …`, `on = …`");
                continue;
            };
            // Those that are wrong count too: what is said of each costs as much as the rule.
            if rules.len().max(index) >= MAX_RULES {
                self.refuse(
                    item.span(),
                    format!("there are more than {MAX_RULES} rules"),
                    "join rules that differ only in tokens: `tokens` takes globs and groups",
                );
                return;
            }
            let before = self.errors();
            let Some((rule, named, is_enabled)) = self.rule(table, item.span()) else {
                continue;
            };
            let here = format!("{}:{}", self.file.file.display(), lines.line(named.start));
            if let Some(first) = seen.get(&rule.id) {
                let message = format!("there is a rule `{}` already, at {first}", rule.id);
                self.refuse(named, message, "give one of them another `alert` name, or an `id` of its own");
                continue;
            }
            seen.insert(rule.id.clone(), here);
            if is_enabled && self.errors() == before {
                rules.push(rule);
                subjects.push(Subject::of(table));
            }
        }
    }

    fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count()
    }

    fn unknown_keys(&mut self, table: &Table<'_>, known: &[&'static str], of: &str) {
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if known.contains(&name) {
                continue;
            }
            let help = match name {
                "expr" | "condition" | "if" => "did you mean `when`?".to_owned(),
                "name" => "did you mean `alert`?".to_owned(),
                "severity" | "team" => format!("labels stand in a table: `labels = {{ {name} = \"…\" }}`"),
                "summary" | "description" | "runbook_url" => "texts stand below `[rule.annotations]`".to_owned(),
                _ => closest(name, known.iter().copied())
                    .map_or_else(|| format!("known keys are {}", known.join(", ")), |near| format!("did you mean `{near}`?")),
            };
            self.refuse(key.span(), format!("unknown key `{name}` in {of}"), help);
        }
    }

    /// One rule, with where its name stands and whether it is enabled. None where not even its name can be told; other problems
    /// are in the diagnostics.
    fn rule(&mut self, table: &Table<'_>, header: Range<usize>) -> Option<(Rule, Range<usize>, bool)> {
        self.unknown_keys(table, &RULE_KEYS, "this rule");
        let alert = self.text(table, "alert");
        let id = self.text(table, "id");
        let on_text = self.text(table, "on");
        if alert.is_none() && !table.contains_key("alert") {
            self.refuse(header.clone(), "this rule has no `alert`", "name it: `alert = \"BigCliffAhead\"`");
        }
        if on_text.is_none() && !table.contains_key("on") {
            self.refuse(header, "this rule has no `on`", "say what it listens to: `on = \"unlock\"`");
        }
        for name in [&alert, &id].into_iter().flatten() {
            let is_bad =
                name.value.trim().is_empty() || name.value.chars().count() > MAX_NAME || name.value.chars().any(char::is_control);
            if is_bad {
                self.refuse(
                    name.span.clone(),
                    format!("a name has 1 to {MAX_NAME} characters on one line"),
                    "write something like \"BigCliffAhead\"",
                );
            }
        }
        let on = on_text.and_then(|text| self.on(&text));
        let (Some(alert), Some(on)) = (alert, on) else { return None };
        self.misplaced_keys(table, on);

        let within = self.within(table);
        let since = self.length(table, "since").unwrap_or(DEFAULT_SINCE);
        let hold = self.length(table, "for").unwrap_or_default();
        let keep_firing_for = self.length(table, "keep_firing_for").unwrap_or_default();
        let label_names = label_names(table, on);
        let mut body = RuleBody {
            when: self.condition(table, "when", on),
            clear_when: self.condition(table, "clear_when", on),
            fires_on_missing: self.missing(table),
            filters: self.filters(table),
            levels: self.levels(table, on, &label_names),
            labels: self.templates(table, "labels", on, None),
            annotations: self.templates(table, "annotations", on, Some(&label_names)),
            reads: Reads::default(),
            label_names,
        };
        self.level_reach(table, &body);
        let conditions = body.when.iter().chain(&body.clear_when).chain(body.levels.iter().map(|level| &level.when));
        let mut reads = Reads::default();
        for condition in conditions {
            reads.join(&condition.reads);
        }
        let texts = body.levels.iter().flat_map(|level| level.labels.iter().chain(&level.annotations));
        for (_, template) in texts.chain(&body.labels).chain(&body.annotations) {
            for window in &template.windows {
                reads.ask(*window);
            }
        }
        self.known_groups(table, &reads);
        let is_clock_dependent = reads.clock;
        let edges = reads.edges.iter().filter_map(|edge| match edge {
            Edge::Until(days) => Some(*days),
            Edge::Since(..) => None,
        });
        let edges = edges.collect();
        body.reads = reads;
        let pools = if on == On::Portfolio { self.pools(table, &body.filters) } else { Vec::new() };
        let name_place = id.as_ref().map_or(&alert, |id| id).span.clone();
        let rule = Rule {
            id: RuleId::from(id.map_or_else(|| alert.value.clone(), |id| id.value)),
            name: alert.value,
            on,
            within,
            since,
            hold,
            keep_firing_for,
            limit: self.limit(table),
            receivers: self.receivers(table),
            owner: self.text(table, "owner").map(|owner| owner.value),
            expires: self.expires(table),
            is_clock_dependent,
            edges,
            pools,
            place: Place { file: self.file.file.as_path().into(), span: name_place.clone() },
            body,
        };
        let is_enabled = self.boolean(table, "enabled").unwrap_or(true);
        Some((rule, name_place, is_enabled))
    }

    fn on(&mut self, text: &Text) -> Option<On> {
        let word = text.value.as_str();
        let places = || Resource::ALL.into_iter().map(Resource::as_str).chain(["token", "portfolio", "source"]);
        match word {
            "source" => return Some(On::Source),
            "token" => return Some(On::Token),
            "portfolio" => return Some(On::Portfolio),
            _ => {}
        }
        let (first, second) = word.split_once('.').map_or((word, None), |(first, second)| (first, Some(second)));
        let Some(resource) = Resource::parse(first) else {
            let help = closest(first, places()).map_or_else(
                || {
                    format!(
                        "known are {}; a change is written `unlock.rescheduled` or `unlock.*`",
                        places().collect::<Vec<_>>().join(", ")
                    )
                },
                |near| format!("did you mean `{near}{}`?", second.map(|second| format!(".{second}")).unwrap_or_default()),
            );
            let span = text.place(0..first.len());
            self.refuse(span, format!("nothing is called `{first}`"), help);
            return None;
        };
        let Some(second) = second else {
            return Some(On::Record(resource));
        };
        if second == "*" {
            return Some(On::Change(resource, None));
        }
        let span = text.place(first.len() + 1..word.len());
        let possible: Vec<&str> =
            ChangeKind::ALL.into_iter().filter(|kind| can_be_heard(*kind, resource)).map(ChangeKind::as_str).collect();
        match ChangeKind::parse(second) {
            Some(kind) if can_be_heard(kind, resource) => Some(On::Change(resource, Some(kind))),
            Some(_) => {
                self.refuse(
                    span,
                    format!("`{second}` cannot happen to `{first}` records"),
                    format!("what can happen to them: {}, or `{first}.*` for any", possible.join(", ")),
                );
                None
            }
            None => {
                let help = closest(second, possible.iter().copied()).map_or_else(
                    || format!("known are {}, or `{first}.*` for any", possible.join(", ")),
                    |near| format!("did you mean `{first}.{near}`?"),
                );
                self.refuse(span, format!("no change is called `{second}`"), help);
                None
            }
        }
    }

    /// Keys that mean nothing for what the rule listens to.
    fn misplaced_keys(&mut self, table: &Table<'_>, on: On) {
        let is_event = matches!(on, On::Change(..) | On::Record(Resource::Burn | Resource::Buyback | Resource::Funding));
        for (key, _) in table {
            let name = key.get_ref().as_ref();
            let wrong = match (name, on) {
                ("within", On::Change(..)) => {
                    Some(("a change has no lead time", "ask in the condition: `when = \"daysUntil <= 7\"`"))
                }
                ("within", On::Record(Resource::Unlock | Resource::Emission)) => None,
                ("within", _) => Some(("only coming records have lead times", "leave it out, or listen to `unlock`")),
                ("since", On::Record(Resource::Burn | Resource::Buyback | Resource::Funding)) => None,
                ("since", _) => Some(("only burns, buybacks and funding rounds have an age limit", "leave it out")),
                ("for" | "keep_firing_for" | "clear_when", _) if is_event => {
                    Some(("what happens once neither lasts nor clears", "leave it out"))
                }
                ("allocations", On::Token | On::Portfolio) => {
                    Some(("a window is over all allocations", "leave it out, or listen to `unlock`"))
                }
                ("listed_methods", On::Portfolio) => Some(("a group has no listing of its own", "leave it out")),
                ("listed_methods" | "allocations", On::Source) => Some(("trouble with the source has no record", "leave it out")),
                ("allocations", On::Record(Resource::Burn | Resource::Buyback | Resource::Funding))
                | ("allocations", On::Change(Resource::Burn | Resource::Buyback | Resource::Funding, _)) => {
                    Some(("these records have no allocations", "leave it out"))
                }
                _ => None,
            };
            if let Some((why, help)) = wrong {
                self.refuse(key.span(), format!("`{name}` has no meaning here: {why}"), help);
            }
        }
    }

    fn value<'t>(table: &'t Table<'_>, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        // The tree borrows from the file's text, which outlives it; only the shorter of both lives is needed.
        table.get(key)
    }

    fn wrong_type(&mut self, key: &str, value: &Spanned<DeValue<'_>>, expected: &str) {
        let found = match value.get_ref().type_str() {
            "integer" | "float" => "a number",
            "string" => "a text",
            "boolean" => "true or false",
            "datetime" => "a date",
            "array" => "a list",
            _ => "a table",
        };
        self.refuse(value.span(), format!("`{key}` is {found}"), format!("write {expected}"));
    }

    fn as_text(&self, value: &Spanned<DeValue<'_>>) -> Option<Text> {
        let DeValue::String(text) = value.get_ref() else { return None };
        let span = value.span();
        let places = match text {
            Cow::Borrowed(slice) => Places::of_slice(&self.file.text, slice),
            Cow::Owned(text) => Places::of_escaped(&self.file.text, &span, text),
        };
        Some(Text { value: text.clone().into_owned(), span, places })
    }

    fn text(&mut self, table: &Table<'_>, key: &str) -> Option<Text> {
        let value = Self::value(table, key)?;
        let text = self.as_text(value);
        if text.is_none() {
            self.wrong_type(key, value, "a text in quotes");
        }
        text
    }

    fn boolean(&mut self, table: &Table<'_>, key: &str) -> Option<bool> {
        let value = Self::value(table, key)?;
        let found = value.get_ref().as_bool();
        if found.is_none() {
            self.wrong_type(key, value, "`true` or `false`");
        }
        found
    }

    fn texts(&mut self, table: &Table<'_>, key: &str, may_be_single: bool) -> Option<Vec<Text>> {
        let value = Self::value(table, key)?;
        if may_be_single && let Some(text) = self.as_text(value) {
            return Some(vec![text]);
        }
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_type(key, value, "a list of texts: `[\"…\", \"…\"]`");
            return None;
        };
        Some(self.texts_of(key, list))
    }

    fn texts_of(&mut self, key: &str, list: &DeArray<'_>) -> Vec<Text> {
        let mut texts = Vec::new();
        for item in list {
            match self.as_text(item) {
                Some(_) if texts.len() >= MAX_PATTERNS => {
                    self.refuse(
                        item.span(),
                        format!("`{key}` has more than {MAX_PATTERNS} items"),
                        "use globs or a group of `[watch.groups]`",
                    );
                    break;
                }
                Some(text) => texts.push(text),
                None => self.wrong_type(&format!("an item of {key}"), item, "a text in quotes"),
            }
        }
        texts
    }

    fn span(&mut self, key: &str, text: &Text) -> Option<TimeDelta> {
        match span_of(&text.value) {
            Ok(span) if span < TimeDelta::zero() => {
                self.refuse(text.span.clone(), format!("`{key}` cannot be negative"), "write it like \"7d\"");
                None
            }
            Ok(span) if span > MAX_SPAN => {
                self.refuse(text.span.clone(), format!("`{key}` is longer than a hundred years"), "write it like \"7d\"");
                None
            }
            Ok(span) => Some(span),
            Err(problem) => {
                self.refuse(text.span.clone(), format!("`{key}` is no length of time"), problem);
                None
            }
        }
    }

    fn length(&mut self, table: &Table<'_>, key: &str) -> Option<TimeDelta> {
        let text = self.text(table, key)?;
        self.span(key, &text)
    }

    fn within(&mut self, table: &Table<'_>) -> Vec<Lead> {
        let texts = self.texts(table, "within", true).unwrap_or_default();
        let mut leads: Vec<Lead> = Vec::new();
        for text in texts {
            let Some(span) = self.span("within", &text) else { continue };
            if span.is_zero() {
                self.refuse(text.span, "a lead time is longer than nothing", "write it like \"1h\" or \"7d\"");
            } else if leads.iter().any(|lead| lead.span == span) {
                self.refuse(text.span, format!("the lead time \"{}\" is there twice", text.value), "remove one");
            } else if leads.len() >= MAX_ITEMS {
                self.refuse(text.span, format!("there are more than {MAX_ITEMS} lead times"), "remove some");
            } else {
                leads.push(Lead { text: text.value.trim().to_owned(), span });
            }
        }
        leads.sort_by_key(|lead| std::cmp::Reverse(lead.span));
        leads
    }

    fn condition(&mut self, table: &Table<'_>, key: &str, on: On) -> Option<Condition> {
        let text = self.text(table, key)?;
        let (condition, findings) = condition::compile(&text.value, on);
        for finding in findings {
            let severity = if finding.is_error { Severity::Error } else { Severity::Warning };
            self.diagnostics.push(Diagnostic {
                severity,
                file: self.file.file.clone(),
                span: Some(text.place(finding.span)),
                message: finding.message,
                label: finding.label,
                help: finding.help,
            });
        }
        condition
    }

    fn missing(&mut self, table: &Table<'_>) -> bool {
        let Some(text) = self.text(table, "missing") else {
            return false;
        };
        match text.value.as_str() {
            "fire" => true,
            "ignore" => false,
            other => {
                self.refuse(text.span, format!("`missing = \"{other}\"` is not known"), "\"ignore\" (the default) or \"fire\"");
                false
            }
        }
    }

    fn limit(&mut self, table: &Table<'_>) -> Option<u32> {
        let value = Self::value(table, "limit")?;
        let Some(number) = value.get_ref().as_integer() else {
            self.wrong_type("limit", value, "a whole number: `limit = 20`");
            return None;
        };
        let limit = u32::from_str_radix(number.as_str(), number.radix()).ok().filter(|limit| (1..=100_000).contains(limit));
        if limit.is_none() {
            self.refuse(
                value.span(),
                "`limit` is a whole number from 1 to 100000",
                "leave it out for no limit; `enabled = false` rests a rule",
            );
        }
        limit
    }

    fn receivers(&mut self, table: &Table<'_>) -> Vec<ReceiverName> {
        let texts = self.texts(table, "receivers", false).unwrap_or_default();
        let mut names: Vec<ReceiverName> = Vec::new();
        for text in texts {
            if !self.around.receivers.contains(&text.value) {
                let known = self.around.receivers.iter().map(String::as_str);
                let help = closest(&text.value, known.clone()).map_or_else(
                    || match known.collect::<Vec<_>>() {
                        names if names.is_empty() => "the configuration has no `[[receiver]]`".to_owned(),
                        names => format!("known are {}", names.join(", ")),
                    },
                    |near| format!("did you mean \"{near}\"?"),
                );
                self.refuse(text.span, format!("there is no receiver \"{}\"", text.value), help);
            } else if !names.iter().any(|name| name.as_str() == text.value) {
                names.push(ReceiverName::from(text.value));
            }
        }
        names
    }

    fn expires(&mut self, table: &Table<'_>) -> Option<Timestamp> {
        let value = Self::value(table, "expires")?;
        let text = match value.get_ref() {
            DeValue::Datetime(at) if at.date.is_some() => {
                let zone = if at.time.is_some() && at.offset.is_none() { "Z" } else { "" };
                format!("{at}{zone}")
            }
            DeValue::String(text) => text.clone().into_owned(),
            _ => {
                self.wrong_type("expires", value, "a date: `expires = 2026-12-31`");
                return None;
            }
        };
        match wire::parse_timestamp(&text) {
            Some(at) => {
                if at <= self.around.now {
                    self.warn(value.span(), "this rule has expired and rests", "remove it, or move `expires`");
                }
                Some(at)
            }
            None => {
                self.refuse(
                    value.span(),
                    "`expires` is no date",
                    "write `expires = 2026-12-31` or `expires = 2026-12-31T09:00:00Z`",
                );
                None
            }
        }
    }

    fn filters(&mut self, table: &Table<'_>) -> Filters {
        let mut groups = Vec::new();
        let mut patterns = Vec::new();
        let tokens = self.texts(table, "tokens", false);
        let names_nothing = tokens.as_ref().is_some_and(Vec::is_empty);
        for text in tokens.into_iter().flatten() {
            let Some(group) = text.value.strip_prefix('@') else {
                patterns.push(text);
                continue;
            };
            if self.around.groups.contains_key(group) {
                groups.push(group.to_owned());
                continue;
            }
            let known: Vec<&str> = self.around.groups.keys().map(String::as_str).collect();
            let help = match closest(group, known.iter().copied()) {
                Some(near) => format!("did you mean \"@{near}\"?"),
                None if known.is_empty() => "the configuration has no `[watch]` `groups`".into(),
                None => format!("known are {}", known.iter().map(|name| format!("@{name}")).collect::<Vec<_>>().join(", ")),
            };
            self.refuse(text.span, format!("there is no group `{group}`"), help);
        }
        if names_nothing && let Some(value) = table.get("tokens") {
            self.refuse(value.span(), "`tokens` lets nothing in", "leave it out for every watched token");
        }
        Filters {
            tokens: self.globs("tokens", patterns),
            groups,
            listed_methods: self.glob_key(table, "listed_methods"),
            allocations: self.glob_key(table, "allocations"),
        }
    }

    /// What a rule on `portfolio` looks at as one: the groups that it names, else each group there is, else all watched tokens.
    fn pools(&mut self, table: &Table<'_>, filters: &Filters) -> Vec<Pool> {
        if filters.tokens.is_some()
            && !filters.groups.is_empty()
            && let Some(value) = table.get("tokens")
        {
            self.refuse(
                value.span(),
                "a rule on `portfolio` names groups or patterns, not both",
                "each group makes an alert of its own; patterns make one over all tokens that they match: write two rules",
            );
        }
        if filters.tokens.is_some() {
            return vec![Pool::Watched];
        }
        let named: Vec<&String> =
            if filters.groups.is_empty() { self.around.groups.keys().collect() } else { filters.groups.iter().collect() };
        let mut pools: Vec<Pool> = named.into_iter().cloned().map(Pool::Group).collect();
        pools.sort();
        pools.dedup();
        if pools.is_empty() { vec![Pool::Watched] } else { pools }
    }

    /// Groups that `share` names and the configuration does not.
    fn known_groups(&mut self, table: &Table<'_>, reads: &Reads) {
        for group in reads.groups.iter().filter(|group| !self.around.groups.contains_key(*group)) {
            let known: Vec<&str> = self.around.groups.keys().map(String::as_str).collect();
            let help = match closest(group, known.iter().copied()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None if known.is_empty() => "the configuration has no `[watch]` `groups`".into(),
                None => format!("known are {}", known.join(", ")),
            };
            let quoted = format!("\"{}\"", group.escape_default());
            let place = ["when", "clear_when"].iter().find_map(|key| {
                let text = self.as_text(table.get(*key)?)?;
                let at = text.value.find(quoted.as_str())?;
                Some(text.place(at..at + quoted.len()))
            });
            let span = place.or_else(|| table.get("when").map(Spanned::span)).unwrap_or_default();
            self.refuse(span, format!("there is no group `{group}`"), help);
        }
    }

    /// Levels that nothing reaches: a later one always holds with them, or they contradict `when`.
    fn level_reach(&mut self, table: &Table<'_>, body: &RuleBody) {
        let Some(list) = table.get("level").and_then(|value| value.get_ref().as_array()) else { return };
        if list.len() != body.levels.len() {
            return;
        }
        let base = body.when.as_ref().map_or_else(Logic::always, |when| when.logic.clone());
        for (index, (level, item)) in body.levels.iter().zip(list).enumerate() {
            let here = base.and(&level.when.logic);
            let place = item.get_ref().as_table().and_then(|table| table.get("when")).map_or_else(|| item.span(), Spanned::span);
            if here.is_impossible() && !base.is_impossible() && !level.when.logic.is_impossible() {
                self.warn(
                    place,
                    "this level is never reached: it contradicts the rule's own `when`",
                    "a level is looked at only where the rule holds",
                );
                continue;
            }
            let later = body.levels.iter().skip(index + 1).any(|later| here.implies(&later.when.logic));
            if later && !here.is_impossible() {
                self.warn(
                    place,
                    "this level is never reached: a later one always holds with it",
                    "the last level that holds wins: put the stricter ones last",
                );
            }
        }
    }

    fn glob_key(&mut self, table: &Table<'_>, key: &str) -> Option<GlobSet> {
        let patterns = self.texts(table, key, false)?;
        if patterns.is_empty() {
            let value = table.get(key)?;
            self.refuse(value.span(), format!("`{key}` lets nothing in"), "leave it out to let everything in");
        }
        self.globs(key, patterns)
    }

    fn globs(&mut self, key: &str, patterns: Vec<Text>) -> Option<GlobSet> {
        if patterns.is_empty() {
            return None;
        }
        let mut set = GlobSetBuilder::new();
        for text in patterns {
            if text.value.is_empty() || text.value.chars().count() > MAX_PATTERN {
                self.refuse(
                    text.span,
                    format!("a pattern of `{key}` has 1 to {MAX_PATTERN} characters"),
                    "write it like \"apt*\"",
                );
                continue;
            }
            match glob(&text.value) {
                Ok(glob) => _ = set.add(glob),
                Err(error) => self.refuse(
                    text.span,
                    format!("this pattern cannot be used: {}", error.kind()),
                    "`*` stands for anything, `?` for one character, `[ab]` for one of them",
                ),
            }
        }
        match set.build() {
            Ok(set) => Some(set),
            Err(error) => {
                self.problem(None, format!("the patterns of `{key}` cannot be used together: {}", error.kind()));
                None
            }
        }
    }

    fn levels(&mut self, table: &Table<'_>, on: On, label_names: &[String]) -> Vec<Level> {
        let Some(value) = Self::value(table, "level") else {
            return Vec::new();
        };
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_type("level", value, "`[[rule.level]]` with two brackets");
            return Vec::new();
        };
        let mut levels = Vec::new();
        for item in list {
            let Some(table) = item.get_ref().as_table() else {
                self.wrong_type("level", item, "`[[rule.level]]`");
                continue;
            };
            if levels.len() >= MAX_ITEMS {
                self.refuse(item.span(), format!("there are more than {MAX_ITEMS} levels"), "write several rules");
                break;
            }
            self.unknown_keys(table, &LEVEL_KEYS, "this level");
            if !table.contains_key("when") {
                self.refuse(item.span(), "this level has no `when`", "say when it holds: `when = \"valueToMarketCap >= 10\"`");
            }
            let when = self.condition(table, "when", on);
            let labels = self.templates(table, "labels", on, None);
            let annotations = self.templates(table, "annotations", on, Some(label_names));
            if let Some(when) = when {
                levels.push(Level { when, labels, annotations });
            }
        }
        levels
    }

    /// Labels, where no names of labels are given; else annotations.
    fn templates(&mut self, table: &Table<'_>, key: &str, on: On, label_names: Option<&[String]>) -> Vec<(String, Template)> {
        let is_label = label_names.is_none();
        let Some(value) = Self::value(table, key) else {
            return Vec::new();
        };
        let Some(inner) = value.get_ref().as_table() else {
            let example = if is_label { "`labels = { severity = \"warning\" }`" } else { "`[rule.annotations]`" };
            self.wrong_type(key, value, &format!("a table: {example}"));
            return Vec::new();
        };
        let mut templates = Vec::new();
        for (name, value) in inner {
            let word = name.get_ref().as_ref();
            let is_name = word.len() <= MAX_NAME
                && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_name {
                self.refuse(
                    name.span(),
                    format!("`{word}` cannot be a name in `{key}`"),
                    "names are letters, digits and `_`, and begin with a letter",
                );
                continue;
            }
            if is_label && (matches!(word, "alertname" | "token") || (word == "group" && on == On::Portfolio)) {
                self.refuse(name.span(), format!("the label `{word}` is set for every alert"), "choose another name");
                continue;
            }
            if templates.len() >= MAX_ITEMS {
                self.refuse(name.span(), format!("`{key}` has more than {MAX_ITEMS} entries"), "remove some");
                break;
            }
            let Some(text) = self.as_text(value) else {
                self.wrong_type(&format!("{key}.{word}"), value, "a text in quotes");
                continue;
            };
            let (template, faults) = Template::check(self.engine, &text.value, on, label_names);
            for fault in faults {
                let severity = if fault.is_error { Severity::Error } else { Severity::Warning };
                let span = fault.span.map_or_else(|| text.span.clone(), |inner| text.place(inner));
                let file = self.file.file.clone();
                self.diagnostics.push(Diagnostic {
                    severity,
                    file,
                    span: Some(span),
                    message: fault.message,
                    label: None,
                    help: fault.help,
                });
            }
            templates.push((word.to_owned(), template));
        }
        templates
    }
}

/// Names of the labels that a rule or a level of it sets, and of those that are always there.
fn label_names(table: &Table<'_>, on: On) -> Vec<String> {
    let levels = table.get("level").and_then(|value| value.get_ref().as_array()).into_iter().flatten();
    let tables = levels.filter_map(|level| level.get_ref().as_table()).chain([table]);
    let mut names: Vec<String> = tables
        .filter_map(|table| table.get("labels")?.get_ref().as_table())
        .flat_map(|labels| labels.keys().map(|name| name.get_ref().as_ref().to_owned()))
        .chain(["alertname".to_owned(), "token".to_owned()])
        .chain((on == On::Portfolio).then(|| "group".to_owned()))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// A pattern over names, whatever their case; `*` crosses every character.
fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).case_insensitive(true).literal_separator(false).backslash_escape(true).build()
}

/// Rule files as read, with what went wrong meanwhile.
#[derive(Debug, Default)]
pub struct RuleFiles {
    /// Their texts, sorted by path.
    pub files: Vec<SourceText>,
    /// A pattern that matches nothing (a warning), a file that cannot be read (an error).
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the files that the patterns of `[rules] paths` match, each once, in the order of their paths. A relative pattern starts at
/// `relative_to`, the folder of the configuration.
#[must_use]
pub fn read_files(globs: &[String], relative_to: &Path) -> RuleFiles {
    let mut read = RuleFiles::default();
    let mut paths = Vec::new();
    for pattern in globs {
        match matching(pattern, relative_to) {
            Ok(found) if found.is_empty() => {
                let message = format!("no rule file matches {pattern:?}");
                read.diagnostics.push(
                    Diagnostic::warning(relative_to.join(pattern), None, message)
                        .help("correct `paths` in `[rules]`, or write a rule file there"),
                );
            }
            Ok(found) => paths.extend(found),
            Err(problem) => {
                let message = format!("the pattern {pattern:?} of `[rules] paths` cannot be used: {problem}");
                read.diagnostics
                    .push(Diagnostic::error(relative_to.join(pattern), None, message).help("write it like \"rules/*.toml\""));
            }
        }
    }
    paths.sort();
    paths.dedup();
    if paths.len() > MAX_FILES {
        let message = format!("there are {} rule files; at most {MAX_FILES} are read", paths.len());
        read.diagnostics.push(Diagnostic::error(relative_to, None, message).help("narrow `[rules] paths`"));
        return read;
    }
    let mut total = 0;
    for path in paths {
        match read_text(&path) {
            Ok(text) if total + text.len() > MAX_TOTAL => {
                let message = format!("the rule files up to this one are larger than {MAX_TOTAL} bytes together");
                read.diagnostics.push(Diagnostic::error(path, None, message).help("narrow `[rules] paths`"));
                return read;
            }
            Ok(text) => {
                total += text.len();
                read.files.push(SourceText { file: path, text });
            }
            Err(problem) => {
                read.diagnostics.push(Diagnostic::error(path, None, format!("this rule file cannot be read: {problem}")))
            }
        }
    }
    read
}

fn read_text(path: &Path) -> Result<String, String> {
    use std::io::Read;
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("it is larger than {MAX_FILE} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| format!("it is not UTF-8 text (byte {})", error.utf8_error().valid_up_to()))
}

/// Files that a pattern matches. The part before the first wildcard is a folder; below it names are compared.
fn matching(pattern: &str, relative_to: &Path) -> Result<Vec<PathBuf>, String> {
    let is_wild = |part: &str| part.contains(['*', '?', '[', '{']);
    let full = relative_to.join(pattern);
    // The folder of the configuration is a folder whatever its name; an absolute pattern does not begin with it.
    let plain = if Path::new(pattern).is_absolute() { 0 } else { relative_to.components().count() };
    let mut folder = PathBuf::new();
    let mut rest: Vec<String> = Vec::new();
    for part in full.components() {
        let text = part.as_os_str().to_str().ok_or("it is not UTF-8")?;
        if rest.is_empty() && (!is_wild(text) || plain > folder.components().count()) {
            folder.push(part);
        } else {
            rest.push(text.to_owned());
        }
    }
    if rest.is_empty() {
        return Ok(if folder.is_file() { vec![folder] } else { Vec::new() });
    }
    let glob = GlobBuilder::new(&rest.join("/"))
        .literal_separator(true)
        .build()
        .map_err(|error| error.kind().to_string())?
        .compile_matcher();
    let depth = if rest.iter().any(|part| part == "**") { MAX_DEPTH } else { rest.len() };
    let mut found = Vec::new();
    let mut queue = vec![(folder.clone(), 1)];
    let mut looked_at = 0;
    while let Some((current, level)) = queue.pop() {
        let entries = match std::fs::read_dir(&current) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(format!("the folder {} cannot be read: {error}", current.display())),
        };
        for entry in entries {
            let entry = entry.map_err(|error| format!("the folder {} cannot be read: {error}", current.display()))?;
            looked_at += 1;
            if looked_at > MAX_ENTRIES {
                return Err(format!("more than {MAX_ENTRIES} entries stand below {}", folder.display()));
            }
            let path = entry.path();
            // `is_file` follows links, as configuration management lays them; folders are entered only where they are real.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if level < depth {
                    queue.push((path, level + 1));
                }
            } else if path.strip_prefix(&folder).is_ok_and(|below| glob.is_match(below)) && path.is_file() {
                found.push(path);
            }
        }
    }
    Ok(found)
}

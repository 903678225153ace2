//! A condition: text in CEL's grammar, checked against the words of its rule, and lowered to a tree of typed nodes.
//!
//! The grammar is the `cel` crate's, without its macros and without its interpreter, which checks nothing before run time. Its
//! parser recurses, so it runs on a thread with a large stack, on text that [`lint`](super::lint) has bounded; its messages are
//! written for grammar authors, so only their places are used.

use std::{cell::RefCell, ops::Range};

use cel::{
    IdedExpr,
    common::ast::{CallExpr, Expr, LiteralValue, SourceInfo, operators},
};
use chrono::TimeDelta;
use regex::RegexBuilder;

use crate::{
    aggregate::{Flow, Window},
    change::ChangeKind,
    config,
    diagnostic::closest,
    supply::Resource,
    wire,
};

pub mod clauses;

use super::{
    On, Scope, Truth,
    fields::{self, PartKind, ReadPart},
    imply::Logic,
    lint::{MAX_DEPTH, lint},
    node::{
        Arithmetic, Compare, Cond, Env, GetFact, GetNumber, GetText, GetTexts, GetTime, Items, List, MAX_MACRO_NESTING, Num,
        Presence, Reach, Span, TextTest, Time, TimePart, Txt, What,
    },
    words::{FUNCTIONS, FactType, Word, Words},
};

/// Stack of the thread that parses: far above what the longest condition needs in a build without optimization.
const PARSER_STACK: usize = 64 << 20;

/// Compiled size of one pattern of `matches`, bytes.
const MAX_PATTERN_SIZE: usize = 1 << 20;

/// Longest window that means anything.
const MAX_WINDOW: TimeDelta = TimeDelta::days(36_500);

/// Items of a list written in a condition.
const MAX_LIST: usize = 200;

/// Below this a bare threshold of `valueToMarketCap` was probably meant as a fraction.
const SUSPICIOUS_PERCENT: f64 = 0.5;

/// Above this a threshold in percent was probably meant as an amount.
const MOST_PERCENT: f64 = 10_000.0;

/// Below this a threshold in USD was probably meant in millions.
const SUSPICIOUS_USD: f64 = 1_000.0;

/// Above this a threshold in days was probably meant in hours or seconds: about ten years.
const MOST_DAYS: f64 = 3_660.0;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Percent,
    Usd,
    Days,
}

/// The unit of a field by its name, where a threshold in another one can be told.
fn unit_of(name: &str) -> Option<Unit> {
    match name.rsplit('.').next()? {
        "valueToMarketCap" | "trackedAllocationPercentage" | "share" => Some(Unit::Percent),
        "cliffValue"
        | "linearValue"
        | "committedValue"
        | "unlockValue"
        | "value"
        | "marketCap"
        | "valuation"
        | "totalAmountRaisedinThatRound" => Some(Unit::Usd),
        "shiftDays" | "shiftDaysMin" | "shiftDaysMax" | "durationOfRate" => Some(Unit::Days),
        _ => None,
    }
}

/// The edge of a comparison between a distance in time and a constant.
fn edge_of(left: &Typed, right: &Typed) -> Option<Edge> {
    let (Typed::Number(left), Typed::Number(right)) = (left, right) else { return None };
    let constant = |number: &Num| match number {
        Num::Const(value) => Some(*value),
        Num::Negate(inner) => match inner.as_ref() {
            Num::Const(value) => Some(-value),
            _ => None,
        },
        _ => None,
    };
    let (distance, days) = match (constant(left), constant(right)) {
        (None, Some(days)) => (left, days),
        (Some(days), None) => (right, days),
        _ => return None,
    };
    match distance {
        Num::DaysUntil => Some(Edge::Until(days)),
        Num::DaysSince => Some(Edge::Until(-days)),
        Num::SinceLast(_, flow) => Some(Edge::Since(*flow, days)),
        _ => None,
    }
}

/// What can be written, for messages.
const SUPPORTED: &str = "supported are has, size, min, max, abs, timestamp, duration; on texts startsWith, endsWith, contains, matches, size; \
                         on times getDayOfWeek, getDate, getMonth, getFullYear, getHours and their like; \
                         on lists exists, exists_one, all, filter, map(…).sum(), size, and `in`";

/// What a condition reads beside its record: what else may change its truth, and when.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reads {
    /// It reads the time in such a way that its truth may turn at any instant.
    pub clock: bool,
    /// It compares a distance in time with a constant: its truth turns as that distance is reached, and not between.
    pub edges: Vec<Edge>,
    /// Windows that it asks for.
    pub windows: Vec<Window>,
    /// Fields of the token list, as the rule names them.
    pub token_fields: Vec<&'static str>,
    /// Groups of which it asks for a token's share.
    pub groups: Vec<String>,
}

/// A distance in time at which truth turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Edge {
    /// So many days before the record's time; negative: after it.
    Until(f64),
    /// So many days after the latest burn or buyback.
    Since(Flow, f64),
}

impl Reads {
    /// Adds what another condition of the same rule reads.
    pub fn join(&mut self, other: &Reads) {
        self.clock |= other.clock;
        self.edges.extend(other.edges.iter().filter(|edge| !self.edges.contains(edge)).copied().collect::<Vec<_>>());
        for window in &other.windows {
            self.ask(*window);
        }
        for name in &other.token_fields {
            if !self.token_fields.contains(name) {
                self.token_fields.push(name);
            }
        }
        for group in &other.groups {
            if !self.groups.contains(group) {
                self.groups.push(group.clone());
            }
        }
    }

    /// Adds a window.
    pub fn ask(&mut self, window: Window) {
        if !self.windows.contains(&window) {
            self.windows.push(window);
        }
    }
}

/// A checked condition.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) root: Cond,
    /// As the rule writes it, and what the rule listens to: for telling it clause by clause.
    text: Box<str>,
    on: On,
    /// What may change its truth.
    pub reads: Reads,
    /// Its logic, for comparing it with others.
    pub logic: Logic,
}

impl Condition {
    /// Whether it holds.
    pub fn test(&self, scope: &Scope<'_>) -> Truth {
        match self.root.eval(&Env::of(scope, None)) {
            Some(true) => Truth::True,
            Some(false) => Truth::False,
            None => {
                // The common case names nothing, so names are gathered in a second pass only where something is missing.
                let missed = RefCell::new(Vec::new());
                let _ = self.root.eval(&Env::of(scope, Some(&missed)));
                Truth::Missing(missed.into_inner())
            }
        }
    }
}

/// A problem at a place of the condition's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub is_error: bool,
    pub span: Range<usize>,
    pub message: String,
    pub label: Option<String>,
    pub help: Option<String>,
}

impl Finding {
    pub fn error(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { is_error: true, span, message: message.into(), label: None, help: None }
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }
}

/// Checks and lowers `text` for a rule that listens to `on`. The findings may be warnings beside a condition; without a condition
/// there is at least one error.
pub(super) fn compile(text: &str, on: On) -> (Option<Condition>, Vec<Finding>) {
    let findings = lint(text);
    if !findings.is_empty() {
        return (None, findings);
    }
    let (tree, info) = match parse(text) {
        Ok(parsed) => parsed,
        Err(finding) => return (None, vec![finding]),
    };
    let (words, reads) = (Words::of(on), Reads::default());
    let mut checker = Checker { text, info: &info, words, on, findings: Vec::new(), variables: Vec::new(), reads };
    let root = checker.truth(&tree);
    let Checker { mut findings, reads, .. } = checker;
    let root = root.filter(|_| findings.iter().all(|finding| !finding.is_error));
    let logic = Logic::of(&tree);
    if root.is_some() && logic.is_impossible() {
        let mut finding = Finding::error(0..text.len(), "this condition can never hold")
            .help("its comparisons contradict each other: did you mean `||`?");
        finding.is_error = false;
        findings.push(finding);
    }
    (root.map(|root| Condition { root, text: text.into(), on, reads, logic }), findings)
}

fn parse(text: &str) -> Result<(IdedExpr, SourceInfo), Finding> {
    let whole = 0..text.len();
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(PARSER_STACK).spawn_scoped(scope, || {
            // Without macros `exists` and `has` stay the calls that were written.
            match cel::Env::default().parser().parse_with_source_info(text) {
                Ok((tree, info)) if depth(&tree) <= MAX_DEPTH => Ok((tree, info)),
                Ok(_) => Err(Finding::error(whole.clone(), format!("this condition is nested more than {MAX_DEPTH} deep"))
                    .help("split it into several rules, or write a list: `x in [1, 2, 3]`")),
                Err(errors) => Err(syntax_error(text, &errors)),
            }
        });
        match worker.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(Finding::error(whole.clone(), "this condition cannot be parsed").help("write it in a simpler way")),
            Err(error) => Err(Finding::error(
                whole.clone(),
                format!("this condition could not be checked: no thread could be started ({error})"),
            )),
        }
    })
}

fn syntax_error(text: &str, errors: &cel::ParseErrors) -> Finding {
    // Positions are a line and a column in characters; `Display` of these errors can panic and is not used.
    let at = errors.errors.iter().map(|error| error.pos).min().and_then(|(line, column)| {
        let line = usize::try_from(line).ok()?.checked_sub(1)?;
        let column = usize::try_from(column).ok()?.checked_sub(1)?;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let rest = text.get(start..)?;
        Some(start + rest.char_indices().nth(column).map_or(rest.len(), |(offset, _)| offset))
    });
    let start = at.unwrap_or(0);
    let token: String = text.get(start..).unwrap_or_default().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let length = match token.len() {
        0 => text.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8),
        length => length,
    };
    if length == 0 {
        let end = text.trim_end().len();
        let last = text.get(..end).and_then(|kept| kept.char_indices().next_back()).map_or(0, |(offset, _)| offset);
        return Finding::error(last..end, "this condition ends too early")
            .help("something must follow: a name, a number, a text in quotes, or `)`");
    }
    let unexpected = text.get(start..start + length).unwrap_or_default();
    let invalid_number = errors.errors.iter().any(|error| error.msg.contains("invalid") && error.msg.contains("literal"));
    if invalid_number {
        return Finding::error(start..start + length, format!("`{unexpected}` is no number that can be held"))
            .help("write it as a decimal: 1e30");
    }
    Finding::error(start..start + length, format!("`{unexpected}` was not expected here"))
        .help("a condition is comparisons joined by `&&` and `||`, such as `cliffValue >= 5000000 || valueToMarketCap >= 2`")
}

fn depth(expr: &IdedExpr) -> usize {
    let below = match &expr.expr {
        Expr::Call(call) => call.target.iter().map(AsRef::as_ref).chain(&call.args).map(depth).max(),
        Expr::Select(select) => Some(depth(&select.operand)),
        Expr::List(list) => list.elements.iter().map(depth).max(),
        // What holds these is refused by the checker without looking inside, but must be dropped: count each as deep as it is long.
        Expr::Comprehension(_) => Some(MAX_DEPTH),
        Expr::Map(map) => map.entries.iter().map(|entry| entry_depth(&entry.expr)).max(),
        Expr::Struct(made) => made.entries.iter().map(|entry| entry_depth(&entry.expr)).max(),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => None,
    };
    1 + below.unwrap_or(0)
}

fn entry_depth(entry: &cel::common::ast::EntryExpr) -> usize {
    match entry {
        cel::common::ast::EntryExpr::StructField(field) => depth(&field.value),
        cel::common::ast::EntryExpr::MapEntry(entry) => depth(&entry.key).max(depth(&entry.value)),
    }
}

/// A checked expression.
#[derive(Debug)]
enum Typed {
    Bool(Cond),
    Number(Num),
    Text(Txt),
    Time(Time),
    Span(Span),
    Fact(GetFact),
    Texts(GetTexts),
    Items(Items, Item),
    /// `list.map(x, number)`, which only `sum()` can take.
    Mapped(Items, u8, Num),
    NumberList(Vec<Num>),
    TextList(Vec<Txt>),
    Null,
}

/// What the items of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Part(PartKind),
    Text,
}

impl Typed {
    fn name(&self) -> &'static str {
        match self {
            Typed::Bool(_) => "true or false",
            Typed::Number(_) => "a number",
            Typed::Text(_) => "a text",
            Typed::Time(_) => "a time",
            Typed::Span(_) => "a duration",
            Typed::Fact(_) => "a number, a time or a text",
            Typed::Texts(_) | Typed::TextList(_) => "a list of texts",
            Typed::NumberList(_) | Typed::Mapped(..) => "a list of numbers",
            Typed::Items(_, Item::Part(PartKind::Member)) => "a list of tokens",
            Typed::Items(_, Item::Part(_)) => "a list of allocations",
            Typed::Items(_, Item::Text) => "a list of texts",
            Typed::Null => "null",
        }
    }
}

struct Checker<'t> {
    text: &'t str,
    info: &'t SourceInfo,
    words: Words,
    on: On,
    findings: Vec<Finding>,
    variables: Vec<(String, Item)>,
    reads: Reads,
}

impl Checker<'_> {
    fn refuse<T>(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Option<T> {
        self.findings.push(Finding::error(span, message).help(help));
        None
    }

    /// The bytes that an expression covers, as far as its parts tell.
    fn span(&self, expr: &IdedExpr) -> Range<usize> {
        let mut range = Range { start: usize::MAX, end: 0 };
        self.cover(expr, &mut range);
        if range.is_empty() { 0..self.text.len() } else { range }
    }

    fn cover(&self, expr: &IdedExpr, range: &mut Range<usize>) {
        if let Some((start, stop)) = self.info.offset_for(expr.id) {
            let (start, stop) = (start as usize, stop as usize + 1);
            if stop <= self.text.len() && start < stop {
                range.start = range.start.min(start);
                range.end = range.end.max(stop);
            }
        }
        match &expr.expr {
            Expr::Call(call) => {
                for part in call.target.iter().map(AsRef::as_ref).chain(&call.args) {
                    self.cover(part, range);
                }
                if call.func_name == operators::INDEX || call.func_name.starts_with(char::is_alphabetic) {
                    self.extend_over_bracket(range);
                    // A call is placed at its opening bracket: its name stands before.
                    let before = self.text.get(..range.start).unwrap_or_default().trim_end();
                    if call.target.is_none() && before.ends_with(&call.func_name) {
                        range.start = before.len() - call.func_name.len();
                    }
                }
            }
            Expr::Select(select) => {
                self.cover(&select.operand, range);
                self.extend_over_name(range, &select.field);
            }
            Expr::List(list) => {
                for part in &list.elements {
                    self.cover(part, range);
                }
                self.extend_over_bracket(range);
            }
            _ => {}
        }
    }

    /// A selection is placed at its dot: the name follows.
    fn extend_over_name(&self, range: &mut Range<usize>, name: &str) {
        let tail = self.text.get(range.end..).unwrap_or_default();
        if let Some(offset) = tail.find(name)
            && tail.get(..offset).is_some_and(|between| between.chars().all(|c| c == '.' || c.is_whitespace()))
        {
            range.end += offset + name.len();
        }
    }

    /// A call is placed at its opening bracket: the closing one follows its arguments.
    fn extend_over_bracket(&self, range: &mut Range<usize>) {
        let tail = self.text.get(range.end..).unwrap_or_default();
        let trimmed = tail.trim_start();
        if trimmed.starts_with([')', ']']) {
            range.end += tail.len() - trimmed.len() + 1;
        }
    }

    fn quote(&self, expr: &IdedExpr) -> String {
        let text = self.text.get(self.span(expr)).unwrap_or_default();
        if text.chars().count() > 40 { format!("{}…", text.chars().take(39).collect::<String>()) } else { text.to_owned() }
    }

    /// An expression that must be true or false.
    fn truth(&mut self, expr: &IdedExpr) -> Option<Cond> {
        let typed = self.check(expr)?;
        match typed {
            Typed::Bool(cond) => Some(cond),
            other => {
                let help = match &other {
                    Typed::Number(_) => format!("compare it: `{} > 0`", self.quote(expr)),
                    Typed::Text(_) => format!("compare it: `{} == \"…\"`", self.quote(expr)),
                    _ => "write a comparison".into(),
                };
                let message = format!("`{}` is {}, not true or false", self.quote(expr), other.name());
                self.refuse(self.span(expr), message, help)
            }
        }
    }

    fn number(&mut self, expr: &IdedExpr) -> Option<Num> {
        match self.check(expr)? {
            Typed::Number(number) => Some(number),
            Typed::Fact(get) => Some(Num::Fact(get)),
            other => {
                let message = format!("`{}` is {}, but a number is needed here", self.quote(expr), other.name());
                self.refuse(self.span(expr), message, "numbers are written plainly: 5000000, 2.5, 1e6")
            }
        }
    }

    fn text_of(&mut self, expr: &IdedExpr) -> Option<Txt> {
        match self.check(expr)? {
            Typed::Text(text) => Some(text),
            Typed::Fact(get) => Some(Txt::Fact(get)),
            other => {
                let message = format!("`{}` is {}, but a text is needed here", self.quote(expr), other.name());
                self.refuse(self.span(expr), message, "texts are written in quotes: \"Founder / Team\"")
            }
        }
    }

    fn check(&mut self, expr: &IdedExpr) -> Option<Typed> {
        match &expr.expr {
            Expr::Literal(value) => self.literal(expr, value),
            Expr::Ident(_) | Expr::Select(_) => self.name(expr),
            Expr::List(list) => self.list(expr, &list.elements),
            Expr::Call(call) => self.call(expr, call),
            Expr::Map(_) | Expr::Struct(_) => self.refuse(self.span(expr), "maps and objects cannot be written here", SUPPORTED),
            Expr::Comprehension(_) | Expr::Unspecified => self.refuse(self.span(expr), "this is not supported", SUPPORTED),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "all numbers are doubles here, as the documentation says")]
    fn literal(&mut self, expr: &IdedExpr, value: &LiteralValue) -> Option<Typed> {
        match value {
            LiteralValue::Boolean(value) => Some(Typed::Bool(Cond::Const(*value.inner()))),
            LiteralValue::Int(value) => Some(Typed::Number(Num::Const(*value.inner() as f64))),
            LiteralValue::UInt(value) => Some(Typed::Number(Num::Const(*value.inner() as f64))),
            LiteralValue::Double(value) => Some(Typed::Number(Num::Const(*value.inner()))),
            LiteralValue::String(value) => Some(Typed::Text(Txt::Const(value.inner().to_owned()))),
            LiteralValue::Null => Some(Typed::Null),
            LiteralValue::Bytes(_) => self.refuse(self.span(expr), "bytes are not supported", "write a text: \"…\""),
        }
    }

    fn list(&mut self, expr: &IdedExpr, elements: &[IdedExpr]) -> Option<Typed> {
        if elements.len() > MAX_LIST {
            return self.refuse(self.span(expr), format!("a list may have at most {MAX_LIST} items"), "split the rule");
        }
        let mut numbers = Vec::new();
        let mut texts = Vec::new();
        for element in elements {
            match self.check(element)? {
                Typed::Number(number) if texts.is_empty() => numbers.push(number),
                Typed::Text(text) if numbers.is_empty() => texts.push(text),
                Typed::Number(_) | Typed::Text(_) => {
                    return self.refuse(
                        self.span(element),
                        "the items of a list must all be numbers or all be texts",
                        "use two lists",
                    );
                }
                other => {
                    let message = format!("`{}` is {}; a list holds numbers or texts", self.quote(element), other.name());
                    return self.refuse(self.span(element), message, "compare it outside the list");
                }
            }
        }
        match (numbers.is_empty(), texts.is_empty()) {
            (false, _) => Some(Typed::NumberList(numbers)),
            (_, false) => Some(Typed::TextList(texts)),
            _ => self.refuse(self.span(expr), "this list is empty", "write at least one item"),
        }
    }

    /// The dotted name that an expression spells.
    fn path(expr: &IdedExpr) -> Option<Vec<&str>> {
        let mut segments = Vec::new();
        let mut expr = expr;
        loop {
            match &expr.expr {
                Expr::Ident(name) => {
                    segments.push(name.as_str());
                    segments.reverse();
                    return Some(segments);
                }
                Expr::Select(select) if !select.test => {
                    segments.push(select.field.as_str());
                    expr = &select.operand;
                }
                _ => return None,
            }
        }
    }

    fn name(&mut self, expr: &IdedExpr) -> Option<Typed> {
        if let Expr::Select(select) = &expr.expr
            && let Expr::Call(call) = &select.operand.expr
            && let Some(flow) = Flow::parse(&call.func_name)
        {
            return self.window(expr, flow, call, &select.field);
        }
        let Some(segments) = Self::path(expr) else {
            // What stands before the dot may be wrong itself, and says so better.
            if let Expr::Select(select) = &expr.expr {
                self.check(&select.operand)?;
            }
            return self.refuse(self.span(expr), "only names can be looked into with a dot", SUPPORTED);
        };
        let span = self.span(expr);
        if let Some((&variable, fields)) = segments.split_first()
            && let Some(slot) = self.variables.iter().rposition(|(name, _)| name == variable)
        {
            return self.variable(slot, variable, fields, span);
        }
        let path = segments.join(".");
        match self.words.find(&path) {
            Some(word) => Some(self.word(word)),
            None => self.unknown(&path, span),
        }
    }

    /// `burned("30d").value`, of the scope or of the token that a variable stands for.
    fn window(&mut self, expr: &IdedExpr, flow: Flow, call: &CallExpr, field: &str) -> Option<Typed> {
        let word = flow.as_str();
        let variable = match &call.target {
            None if self.words.has_windows() => None,
            None => {
                let help = "listen to a token or to a group of them: `on = \"token\"`, `on = \"portfolio\"`";
                return self.refuse(self.span(expr), format!("`{word}` is not known here"), help);
            }
            Some(target) => {
                let slot = match &target.expr {
                    Expr::Ident(name) => self.variables.iter().rposition(|(known, _)| known == name),
                    _ => None,
                };
                match slot.and_then(|slot| Some((u8::try_from(slot).ok()?, self.variables.get(slot)?.1))) {
                    Some((slot, Item::Part(PartKind::Member))) => Some(slot),
                    _ => {
                        let help = "write `tokens.exists(t, t.ahead(\"7d\").value > 5000000)`";
                        return self.refuse(self.span(target), format!("`{}` has no windows", self.quote(target)), help);
                    }
                }
            }
        };
        let window = self.span_argument(expr, flow, &call.args)?;
        let Some(what) = What::ALL.into_iter().find(|what| what.as_str() == field) else {
            let help = match closest(field, What::ALL.map(What::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "ask for `amount` (tokens), `value` (USD) or `count`".into(),
            };
            return self.refuse(self.span(expr), format!("a window has no field `{field}`"), help);
        };
        self.reads.ask(window);
        Some(Typed::Number(Num::Window(Reach { variable, window, what })))
    }

    fn span_argument(&mut self, expr: &IdedExpr, flow: Flow, arguments: &[IdedExpr]) -> Option<Window> {
        let word = flow.as_str();
        let usage = format!("write the window in quotes: `{word}(\"30d\")`");
        let [argument] = arguments else {
            return self.refuse(self.span(expr), format!("`{word}` has the wrong number of arguments"), usage);
        };
        let Some(text) = self.constant(argument) else {
            return self.refuse(self.span(argument), format!("`{word}` takes a length of time"), usage);
        };
        match span_of(&text) {
            Ok(span) if span > TimeDelta::zero() && span <= MAX_WINDOW => Some(Window { flow, span }),
            Ok(_) => self.refuse(self.span(argument), "a window is longer than nothing and shorter than a hundred years", usage),
            Err(problem) => self.refuse(self.span(argument), format!("\"{text}\" is no length of time"), problem),
        }
    }

    fn word(&mut self, word: Word) -> Typed {
        if let Word::Number(get @ (GetNumber::Token(name, _) | GetNumber::Totals(name, _))) = word {
            self.note_field(name);
            return Typed::Number(Num::Field(get));
        }
        match word {
            Word::Number(get) => Typed::Number(Num::Field(get)),
            Word::Bool(get) => {
                self.note_field(get.name());
                Typed::Bool(Cond::Field(get))
            }
            Word::Time(get) => {
                self.note_field(get.name());
                Typed::Time(Time::Field(get))
            }
            Word::Text(get) => {
                self.note_field(get.name());
                Typed::Text(Txt::Field(get))
            }
            Word::SinceLast(flow) => {
                self.reads.clock = true;
                Typed::Number(Num::SinceLast(None, flow))
            }
            Word::Texts(get) => Typed::Texts(get),
            Word::Fact(get, kind) => fact(get, kind),
            Word::Parts(list, kind) => Typed::Items(Items { list, filters: Vec::new() }, Item::Part(kind)),
            Word::Now => {
                self.reads.clock = true;
                Typed::Time(Time::Now)
            }
            Word::DaysUntil => {
                self.reads.clock = true;
                Typed::Number(Num::DaysUntil)
            }
            Word::DaysSince => {
                self.reads.clock = true;
                Typed::Number(Num::DaysSince)
            }
            Word::Lead => Typed::Text(Txt::Lead),
        }
    }

    /// Notes a field of the token list, under its name there.
    fn note_field(&mut self, name: &'static str) {
        if (name.starts_with("token.") || self.words.has_windows()) && !self.reads.token_fields.contains(&name) {
            self.reads.token_fields.push(name);
        }
    }

    fn variable(&mut self, slot: usize, variable: &str, path: &[&str], span: Range<usize>) -> Option<Typed> {
        let kind = match self.variables.get(slot) {
            Some((_, Item::Part(kind))) => *kind,
            _ if path.is_empty() => return Some(Typed::Text(Txt::Item(u8::try_from(slot).ok()?))),
            _ => {
                return self.refuse(
                    span,
                    format!("`{variable}` is a text and has no fields"),
                    format!("compare it: `{variable} == \"…\"`"),
                );
            }
        };
        let mut names: Vec<&str> = fields::of_part(kind).iter().map(|field| field.name).collect();
        let is_member = kind == PartKind::Member;
        if is_member {
            names.extend(["lastBurn.daysSince", "lastBuyback.daysSince"]);
        }
        if path.is_empty() {
            return self.refuse(
                span,
                format!("`{variable}` is {}", if is_member { "a token" } else { "an allocation" }),
                format!("ask for one of its fields: {}", names.join(", ")),
            );
        }
        let path = path.join(".");
        let flow = match path.as_str() {
            "lastBurn" | "lastBurn.daysSince" => Some(Flow::Burned),
            "lastBuyback" | "lastBuyback.daysSince" => Some(Flow::BoughtBack),
            _ => None,
        };
        if let Some(flow) = flow.filter(|_| is_member && path.ends_with("daysSince")) {
            self.reads.clock = true;
            return Some(Typed::Number(Num::SinceLast(Some(u8::try_from(slot).ok()?), flow)));
        }
        if is_member {
            self.reads.token_fields.push("marketCap");
        }
        let Some(field) = fields::of_part(kind).iter().find(|field| field.name == path) else {
            let help = match closest(&path, names.iter().copied()) {
                Some(near) => format!("did you mean `{variable}.{near}`?"),
                None => format!("known are {}", names.join(", ")),
            };
            return self.refuse(span, format!("`{variable}` has no field `{path}`"), help);
        };
        let slot = u8::try_from(slot).ok()?;
        Some(match field.read {
            ReadPart::Number(read) => Typed::Number(Num::Field(GetNumber::Part(slot, field.name, read))),
            ReadPart::Time(read) => Typed::Time(Time::Field(GetTime::Part(slot, field.name, read))),
            ReadPart::Text(read) => Typed::Text(Txt::Field(GetText::Part(slot, field.name, read))),
            ReadPart::Fact(read) => fact(GetFact::Part(slot, field.name, read), self.words.fact_type()),
        })
    }

    fn unknown<T>(&mut self, path: &str, span: Range<usize>) -> Option<T> {
        let below = self.words.below(path);
        if !below.is_empty() {
            let shown: Vec<&str> = below.iter().copied().take(8).collect();
            return self.refuse(
                span,
                format!("`{path}` is an object"),
                format!("ask for one of its fields: {}", shown.join(", ")),
            );
        }
        if let Some(help) = self.words.misplaced(path) {
            return self.refuse(span, format!("`{path}` is not known here"), help);
        }
        let (message, help) = unknown_name(path, &self.words.all());
        self.refuse(span, message, help)
    }

    fn call(&mut self, expr: &IdedExpr, call: &CallExpr) -> Option<Typed> {
        let name = call.func_name.as_str();
        match (&call.target, call.args.as_slice()) {
            (None, [left, right]) => match name {
                operators::LOGICAL_AND | operators::LOGICAL_OR => {
                    let (left, right) = (self.truth(left), self.truth(right));
                    let sides = Box::new((left?, right?));
                    Some(Typed::Bool(if name == operators::LOGICAL_AND { Cond::And(sides) } else { Cond::Or(sides) }))
                }
                operators::EQUALS => self.compare(expr, Compare::Equal, left, right),
                operators::NOT_EQUALS => self.compare(expr, Compare::NotEqual, left, right),
                operators::LESS => self.compare(expr, Compare::Less, left, right),
                operators::LESS_EQUALS => self.compare(expr, Compare::LessOrEqual, left, right),
                operators::GREATER => self.compare(expr, Compare::Greater, left, right),
                operators::GREATER_EQUALS => self.compare(expr, Compare::GreaterOrEqual, left, right),
                operators::ADD => self.arithmetic(expr, Arithmetic::Add, left, right),
                operators::SUBSTRACT => self.arithmetic(expr, Arithmetic::Subtract, left, right),
                operators::MULTIPLY => self.arithmetic(expr, Arithmetic::Multiply, left, right),
                operators::DIVIDE => self.arithmetic(expr, Arithmetic::Divide, left, right),
                operators::MODULO => self.arithmetic(expr, Arithmetic::Remainder, left, right),
                operators::IN => self.contained(left, right),
                operators::INDEX | operators::OPT_INDEX => self.refuse(
                    self.span(expr),
                    "items of a list cannot be picked by number",
                    "use `exists`: `allocations.exists(a, a.cliffAmount > 1000000)`",
                ),
                _ => self.function(expr, name, &call.args),
            },
            (None, [inner]) if name == operators::LOGICAL_NOT => Some(Typed::Bool(Cond::Not(Box::new(self.truth(inner)?)))),
            (None, [inner]) if name == operators::NEGATE => match self.check(inner)? {
                Typed::Span(span) => Some(Typed::Span(Span::Negate(Box::new(span)))),
                Typed::Number(number) => Some(Typed::Number(Num::Negate(Box::new(number)))),
                Typed::Fact(get) => Some(Typed::Number(Num::Negate(Box::new(Num::Fact(get))))),
                other => {
                    let message = format!("`{}` is {} and has no negative", self.quote(inner), other.name());
                    self.refuse(self.span(expr), message, "write `!` to negate a condition")
                }
            },
            (None, [test, yes, no]) if name == operators::CONDITIONAL => self.choose(expr, test, yes, no),
            (None, arguments) => self.function(expr, name, arguments),
            (Some(target), arguments) => self.method(expr, name, target, arguments),
        }
    }

    fn choose(&mut self, expr: &IdedExpr, test: &IdedExpr, yes: &IdedExpr, no: &IdedExpr) -> Option<Typed> {
        let (test, left, right) = (self.truth(test), self.check(yes), self.check(no));
        let (test, left, right) = (test?, left?, right?);
        match (left, right) {
            (Typed::Bool(left), Typed::Bool(right)) => Some(Typed::Bool(Cond::If(Box::new((test, left, right))))),
            (Typed::Number(left), Typed::Number(right)) => Some(Typed::Number(Num::If(Box::new((test, left, right))))),
            (Typed::Text(left), Typed::Text(right)) => Some(Typed::Text(Txt::If(Box::new((test, left, right))))),
            (Typed::Time(left), Typed::Time(right)) => Some(Typed::Time(Time::If(Box::new((test, left, right))))),
            (Typed::Span(left), Typed::Span(right)) => Some(Typed::Span(Span::If(Box::new((test, left, right))))),
            (left, right) => {
                let message = format!("the two results of `? :` differ in type: {} and {}", left.name(), right.name());
                self.refuse(self.span(expr), message, "make both numbers, texts, times, durations, or true or false")
            }
        }
    }

    fn compare(&mut self, expr: &IdedExpr, op: Compare, left_expr: &IdedExpr, right_expr: &IdedExpr) -> Option<Typed> {
        let clock_before = self.reads.clock;
        let (left, right) = (self.check(left_expr), self.check(right_expr));
        let (left, right) = (left?, right?);
        if let Some(edge) = edge_of(&left, &right) {
            // Its truth turns at instants that can be known beforehand, so nobody needs to look at every tick.
            self.reads.clock = clock_before;
            if !self.reads.edges.contains(&edge) {
                self.reads.edges.push(edge);
            }
        }
        self.warn_of_unit(expr, &left, &right);
        self.warn_of_kind(right_expr, &left, &right);
        let equality = match op {
            Compare::Equal => Some(true),
            Compare::NotEqual => Some(false),
            _ => None,
        };
        Some(Typed::Bool(match (left, right) {
            (Typed::Number(left), Typed::Number(right)) => Cond::Numbers(op, left, right),
            (Typed::Number(left), Typed::Fact(right)) => Cond::Numbers(op, left, Num::Fact(right)),
            (Typed::Fact(left), Typed::Number(right)) => Cond::Numbers(op, Num::Fact(left), right),
            (Typed::Text(left), Typed::Text(right)) => Cond::Texts(op, left, right),
            (Typed::Text(left), Typed::Fact(right)) => Cond::Texts(op, left, Txt::Fact(right)),
            (Typed::Fact(left), Typed::Text(right)) => Cond::Texts(op, Txt::Fact(left), right),
            (Typed::Time(left), Typed::Time(right)) => Cond::Times(op, left, right),
            (Typed::Time(left), Typed::Fact(right)) => Cond::Times(op, left, Time::Fact(right)),
            (Typed::Fact(left), Typed::Time(right)) => Cond::Times(op, Time::Fact(left), right),
            (Typed::Span(left), Typed::Span(right)) => Cond::Spans(op, left, right),
            (Typed::Bool(left), Typed::Bool(right)) if equality.is_some() => {
                Cond::Bools(equality == Some(true), Box::new((left, right)))
            }
            (Typed::Fact(left), Typed::Fact(right)) if equality.is_some() => Cond::Facts(equality == Some(true), left, right),
            (Typed::Fact(_), Typed::Fact(_)) => {
                return self.refuse(
                    self.span(expr),
                    "these may be numbers, times or texts, so which is greater cannot be told",
                    "listen to one kind of change, such as `unlock.rescheduled`, or compare `change.shiftDays` or `change.ratio`",
                );
            }
            (Typed::Null, other) | (other, Typed::Null) => {
                let field = if matches!(other, Typed::Null) {
                    "x".into()
                } else {
                    self.quote(if self.quote(left_expr) == "null" { right_expr } else { left_expr })
                };
                let help = format!("write `{}has({field})`", if op == Compare::NotEqual { "" } else { "!" });
                return self.refuse(
                    self.span(expr),
                    "nothing is equal to null here: a missing field is neither true nor false",
                    help,
                );
            }
            (left, right) => return self.clash(expr, left_expr, &left, right_expr, &right),
        }))
    }

    fn clash<T>(
        &mut self,
        expr: &IdedExpr,
        left_expr: &IdedExpr,
        left: &Typed,
        right_expr: &IdedExpr,
        right: &Typed,
    ) -> Option<T> {
        let quoted = |expr: &IdedExpr| match &expr.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(text.inner().trim().to_owned()),
            _ => None,
        };
        let other = |typed: &Typed, expr: &IdedExpr, other_expr: &IdedExpr| match typed {
            Typed::Time(_) => Some(format!("write the time as `timestamp({})`", self.quote(expr))),
            Typed::Number(number) => Some(match (quoted(other_expr), number) {
                (Some(text), _) if text.parse::<f64>().is_ok() => format!("write the number without quotes: `{text}`"),
                (Some(_), _) => format!("compare `{}` with a number", self.quote(expr)),
                (None, Num::Const(_)) => {
                    format!("`{}` is a text: write the other in quotes, \"{}\"", self.quote(other_expr), self.quote(expr))
                }
                (None, _) => format!(
                    "compare `{}` with a number, and `{}` with a text in quotes",
                    self.quote(expr),
                    self.quote(other_expr)
                ),
            }),
            Typed::Span(_) => {
                Some("write the duration as `duration(\"7d\")`, or compare `daysUntil` with a number of days".into())
            }
            Typed::Texts(_) => Some(format!("write `{} in {}`", self.quote(expr), self.quote(other_expr))),
            Typed::Items(..) => Some("use `exists`: `allocations.exists(a, a.cliffAmount > 1000000)`".into()),
            _ => None,
        };
        let help = match (left, right) {
            (Typed::Time(_), Typed::Text(_)) => other(left, right_expr, right_expr),
            (Typed::Text(_), Typed::Time(_)) => other(right, left_expr, left_expr),
            (Typed::Texts(_), _) => other(left, right_expr, left_expr),
            (_, Typed::Texts(_)) => other(right, left_expr, right_expr),
            (Typed::Span(_), _) | (_, Typed::Span(_)) => {
                other(if matches!(left, Typed::Span(_)) { left } else { right }, left_expr, right_expr)
            }
            (Typed::Number(_), _) => other(left, left_expr, right_expr),
            (_, Typed::Number(_)) => other(right, right_expr, left_expr),
            (_, Typed::Items(..)) => other(right, left_expr, right_expr),
            _ => other(left, left_expr, right_expr),
        };
        let label = format!("`{}` is {}, `{}` is {}", self.quote(left_expr), left.name(), self.quote(right_expr), right.name());
        let span = self.span(expr);
        let mut finding = Finding::error(span, format!("{} cannot be compared with {}", left.name(), right.name())).label(label);
        finding.help = help;
        self.findings.push(finding);
        None
    }

    /// A threshold that was probably meant in another unit.
    fn warn_of_unit(&mut self, expr: &IdedExpr, left: &Typed, right: &Typed) {
        let (Typed::Number(left), Typed::Number(right)) = (left, right) else {
            return;
        };
        let (number, threshold) = match (left, right) {
            (Num::Const(threshold), number) | (number, Num::Const(threshold)) => (number, *threshold),
            _ => return,
        };
        let (name, unit) = match number {
            Num::Field(get) => (get.name(), unit_of(get.name())),
            Num::Window(Reach { what: What::Value, .. }) => ("value", Some(Unit::Usd)),
            Num::Share(_) => ("share", Some(Unit::Percent)),
            Num::DaysUntil => ("daysUntil", Some(Unit::Days)),
            Num::DaysSince | Num::SinceLast(..) => ("daysSince", Some(Unit::Days)),
            _ => return,
        };
        let name = name.rsplit('.').next().unwrap_or(name);
        let size = threshold.abs();
        let warning = match unit {
            Some(Unit::Percent) if threshold > 0.0 && threshold < SUSPICIOUS_PERCENT => Some((
                format!("`{name}` is in percent: {threshold} means {threshold} %"),
                format!("for {} % write {}", round(threshold * 100.0), round(threshold * 100.0)),
            )),
            Some(Unit::Percent) if threshold > MOST_PERCENT => Some((
                format!("`{name}` is in percent: {threshold} means {threshold} %"),
                "values in USD are `cliffValue`, `value`, `marketCap`".to_owned(),
            )),
            // One and less ask whether there is anything at all.
            Some(Unit::Usd) if threshold > 1.0 && threshold < SUSPICIOUS_USD => Some((
                format!("`{name}` is in USD: {threshold} means ${threshold}"),
                format!("for ${threshold}M write {}", round(threshold * 1e6)),
            )),
            Some(Unit::Days) if size > MOST_DAYS => Some((
                format!("`{name}` is in days: {threshold} means {} years", round((threshold / 365.25).round())),
                format!(
                    "{threshold} hours are {} days, {threshold} seconds {}",
                    round(threshold / 24.0),
                    round(threshold / 86_400.0)
                ),
            )),
            _ => None,
        };
        if let Some((message, help)) = warning {
            let mut finding = Finding::error(self.span(expr), message).help(help);
            finding.is_error = false;
            self.findings.push(finding);
        }
    }

    /// A kind of change that does not exist, or that this rule never hears.
    fn warn_of_kind(&mut self, expr: &IdedExpr, left: &Typed, right: &Typed) {
        let (Typed::Text(Txt::Field(get)), Typed::Text(Txt::Const(word))) = (left, right) else {
            return;
        };
        if get.name() != "change.kind" {
            return;
        }
        let kinds: Vec<&str> = match self.on {
            On::Change(resource, _) => {
                ChangeKind::ALL.into_iter().filter(|kind| can_be_heard(*kind, resource)).map(ChangeKind::as_str).collect()
            }
            _ => return,
        };
        if kinds.contains(&word.as_str()) {
            return;
        }
        let help = closest(word, kinds.iter().copied())
            .map_or_else(|| format!("kinds are {}", kinds.join(", ")), |near| format!("did you mean \"{near}\"?"));
        self.refuse::<()>(self.span(expr), format!("no change has the kind \"{word}\" here"), help);
    }

    fn arithmetic(&mut self, expr: &IdedExpr, op: Arithmetic, left_expr: &IdedExpr, right_expr: &IdedExpr) -> Option<Typed> {
        let (left, right) = (self.check(left_expr), self.check(right_expr));
        let as_number = |typed| match typed {
            Typed::Fact(get) => Typed::Number(Num::Fact(get)),
            other => other,
        };
        match (op, as_number(left?), as_number(right?)) {
            (op, Typed::Number(left), Typed::Number(right)) => Some(Typed::Number(Num::Binary(op, Box::new((left, right))))),
            (Arithmetic::Subtract, Typed::Time(left), Typed::Time(right)) => {
                Some(Typed::Span(Span::Between(Box::new((left, right)))))
            }
            (Arithmetic::Subtract, Typed::Time(left), Typed::Span(right)) => {
                Some(Typed::Time(Time::Subtract(Box::new((left, right)))))
            }
            (Arithmetic::Add, Typed::Time(at), Typed::Span(span)) | (Arithmetic::Add, Typed::Span(span), Typed::Time(at)) => {
                Some(Typed::Time(Time::Add(Box::new((at, span)))))
            }
            (Arithmetic::Subtract, Typed::Span(left), Typed::Span(right)) => {
                Some(Typed::Span(Span::Subtract(Box::new((left, right)))))
            }
            (Arithmetic::Add, Typed::Span(left), Typed::Span(right)) => Some(Typed::Span(Span::Add(Box::new((left, right))))),
            (_, left, right) => {
                let message = format!("there is no arithmetic between {} and {}", left.name(), right.name());
                let help = match (&left, &right) {
                    (Typed::Text(_), Typed::Text(_)) => "texts cannot be joined in a condition",
                    (Typed::Time(_), Typed::Number(_)) => "add a duration: `unlockDate + duration(\"7d\")`",
                    _ => "arithmetic works on numbers; times differ by durations",
                };
                self.refuse(self.span(expr), message, help)
            }
        }
    }

    fn contained(&mut self, left_expr: &IdedExpr, right_expr: &IdedExpr) -> Option<Typed> {
        let (left, right) = (self.check(left_expr), self.check(right_expr));
        Some(Typed::Bool(match (left?, right?) {
            (Typed::Number(value), Typed::NumberList(items)) => Cond::NumberIn(value, items),
            (Typed::Text(value), Typed::TextList(items)) => {
                for item in &items {
                    if let (Txt::Field(_), Txt::Const(word)) = (&value, item) {
                        let pair = (
                            Typed::Text(Txt::Field(match &value {
                                Txt::Field(get) => *get,
                                _ => continue,
                            })),
                            Typed::Text(Txt::Const(word.clone())),
                        );
                        self.warn_of_kind(right_expr, &pair.0, &pair.1);
                    }
                }
                Cond::TextIn(value, items)
            }
            (Typed::Text(value), Typed::Texts(list)) => Cond::TextInField(value, list),
            (Typed::Fact(value), Typed::NumberList(items)) => Cond::NumberIn(Num::Fact(value), items),
            (Typed::Fact(value), Typed::TextList(items)) => Cond::TextIn(Txt::Fact(value), items),
            (left, right) => {
                let span = self.span(left_expr).start..self.span(right_expr).end;
                let message = format!("`in` needs a list of the same type: here stand {} and {}", left.name(), right.name());
                let help = match right {
                    Typed::Text(_) => format!("write `{}.contains({})`", self.quote(right_expr), self.quote(left_expr)),
                    _ => "write `tokenSymbol in [\"ARB\", \"APT\"]`, or use `exists` on allocations".into(),
                };
                return self.refuse(span, message, help);
            }
        }))
    }

    fn function(&mut self, expr: &IdedExpr, name: &str, arguments: &[IdedExpr]) -> Option<Typed> {
        match (name, arguments) {
            ("has", [argument]) => self.has(argument),
            ("size", [argument]) => self.size(expr, argument),
            ("share", [argument]) if self.words.has_windows() => self.share(expr, argument),
            ("abs", [argument]) => Some(Typed::Number(Num::Abs(Box::new(self.number(argument)?)))),
            ("matches", [text, pattern]) => self.method(expr, name, text, std::slice::from_ref(pattern)),
            ("double", [argument]) => Some(Typed::Number(self.number(argument)?)),
            ("min" | "max", [_, _, ..]) => {
                let items: Vec<Option<Num>> = arguments.iter().map(|argument| self.number(argument)).collect();
                let items: Vec<Num> = items.into_iter().collect::<Option<_>>()?;
                Some(Typed::Number(if name == "min" { Num::Least(items) } else { Num::Greatest(items) }))
            }
            ("timestamp", [argument]) => match self.constant(argument) {
                Some(text) => match wire::parse_timestamp(&text) {
                    Some(at) => Some(Typed::Time(Time::Const(at))),
                    None => self.refuse(
                        self.span(argument),
                        format!("\"{text}\" is no time"),
                        "write it like \"2026-01-31\" or \"2026-01-31T09:00:00Z\"",
                    ),
                },
                None => self.refuse(
                    self.span(argument),
                    "`timestamp` takes a text in quotes",
                    "fields such as `unlockDate` are times already; constants are written `timestamp(\"2026-01-31\")`",
                ),
            },
            ("duration", [argument]) => match self.constant(argument) {
                Some(text) => match span_of(&text) {
                    Ok(span) => Some(Typed::Span(Span::Const(span))),
                    Err(problem) => self.refuse(self.span(argument), format!("\"{text}\" is no length of time"), problem),
                },
                None => self.refuse(
                    self.span(argument),
                    "`duration` takes a text in quotes",
                    "write it like `duration(\"7d\")` or `duration(\"36h\")`",
                ),
            },
            ("has" | "size" | "abs" | "min" | "max" | "timestamp" | "duration", _) => {
                let usage = match name {
                    "has" => "has(cliffValue)",
                    "size" => "size(allocations)",
                    "abs" => "abs(change.shiftDays)",
                    "min" | "max" => "max(cliffValue, linearValue)",
                    "timestamp" => "timestamp(\"2026-01-31\")",
                    _ => "duration(\"7d\")",
                };
                self.refuse(
                    self.span(expr),
                    format!("`{name}` has the wrong number of arguments"),
                    format!("write it like `{usage}`"),
                )
            }
            _ => self.unsupported(expr, name),
        }
    }

    fn share(&mut self, expr: &IdedExpr, argument: &IdedExpr) -> Option<Typed> {
        if self.on != On::Token {
            return self.refuse(
                self.span(expr),
                "`share` is of one token in a group",
                "ask each of them: `tokens.exists(t, t.share > 25)`",
            );
        }
        let Some(group) = self.constant(argument) else {
            return self.refuse(self.span(argument), "`share` takes the name of a group", "write `share(\"portfolio\")`");
        };
        if !self.reads.groups.contains(&group) {
            self.reads.groups.push(group.clone());
        }
        Some(Typed::Number(Num::Share(group)))
    }

    fn unsupported<T>(&mut self, expr: &IdedExpr, name: &str) -> Option<T> {
        if Flow::parse(name).is_some() || name == "share" {
            let help = match self.words.has_windows() {
                true => format!("ask for its `amount`, `value` or `count`: `{name}(\"30d\").value`"),
                false => "listen to a token or to a group of them: `on = \"token\"`, `on = \"portfolio\"`".to_owned(),
            };
            let message = if self.words.has_windows() { "is a window, not a number" } else { "is not known here" };
            return self.refuse(self.span(expr), format!("`{name}` {message}"), help);
        }
        let windows = if self.words.has_windows() { &FUNCTIONS[..] } else { &[] };
        let help = match name {
            "int" | "uint" | "dyn" => "there is nothing to convert: all numbers are doubles".to_owned(),
            "string" | "bool" | "bytes" => "there is nothing to convert: compare a field with what it is".to_owned(),
            "type" => "types are checked when the rule is loaded; whether a field is there, `has(cliffValue)` asks".to_owned(),
            "getMilliseconds" => "seconds are the finest part of a time: `getSeconds`".to_owned(),
            "lowerAscii" | "upperAscii" | "trim" | "replace" | "split" | "join" | "substring" | "charAt" | "indexOf"
            | "lastIndexOf" | "format" => {
                "texts are tested as they are: `matches(\"(?i)^arb\")` with both cases written out, `contains`, `startsWith`"
                    .to_owned()
            }
            "startsWith" | "endsWith" | "contains" | "exists" | "existsOne" | "exists_one" | "all" | "filter" | "map" | "sum" => {
                format!(
                    "it stands behind what it is asked of: `tokenSymbol.startsWith(\"A\")`, `allocations.exists(a, …)`; {SUPPORTED}"
                )
            }
            _ => match closest(
                name,
                [
                    "has",
                    "size",
                    "min",
                    "max",
                    "abs",
                    "timestamp",
                    "duration",
                    "startsWith",
                    "endsWith",
                    "contains",
                    "matches",
                    "exists",
                    "exists_one",
                    "all",
                    "filter",
                    "map",
                    "sum",
                    "getDayOfWeek",
                    "getDate",
                    "getHours",
                    "getMonth",
                    "getFullYear",
                ]
                .into_iter()
                .chain(windows.iter().copied()),
            ) {
                Some(near) => format!("did you mean `{near}`? {SUPPORTED}"),
                None => SUPPORTED.to_owned(),
            },
        };
        self.refuse(self.span(expr), format!("`{name}` is not supported"), help)
    }

    fn constant(&self, expr: &IdedExpr) -> Option<String> {
        match &expr.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(text.inner().to_owned()),
            _ => None,
        }
    }

    fn has(&mut self, argument: &IdedExpr) -> Option<Typed> {
        let clock = self.reads.clock;
        if let Some(presence) = self.has_last(argument) {
            return Some(Typed::Bool(Cond::Has(presence)));
        }
        let typed = self.check(argument)?;
        self.reads.clock = clock;
        let presence = match typed {
            Typed::Number(Num::Field(get)) => Presence::Number(get),
            Typed::Number(Num::DaysUntil | Num::DaysSince) => Presence::Dated,
            Typed::Number(Num::Window(reach)) => Presence::Window(reach),
            Typed::Number(Num::SinceLast(variable, flow)) => Presence::Last(variable, flow),
            Typed::Number(Num::Share(group)) => Presence::Share(group),
            Typed::Number(Num::Fact(get)) | Typed::Text(Txt::Fact(get)) | Typed::Time(Time::Fact(get)) | Typed::Fact(get) => {
                Presence::Fact(get)
            }
            Typed::Text(Txt::Field(get)) => Presence::Text(get),
            Typed::Text(Txt::Lead) => Presence::Lead,
            Typed::Time(Time::Field(get)) => Presence::Time(get),
            Typed::Time(Time::Now) | Typed::Text(Txt::Item(_)) => Presence::Always,
            Typed::Bool(Cond::Field(get)) => Presence::Bool(get),
            Typed::Texts(get) => Presence::Texts(get),
            Typed::Items(items, _) if items.filters.is_empty() => Presence::List(items.list),
            _ => {
                return self.refuse(self.span(argument), "`has` asks whether one field is there", "write `has(cliffValue)`");
            }
        };
        Some(Typed::Bool(Cond::Has(presence)))
    }

    /// `has(lastBurn)`, `has(t.lastBuyback)`: whether there is any.
    fn has_last(&self, argument: &IdedExpr) -> Option<Presence> {
        let path = Self::path(argument)?;
        let (variable, word) = match path.as_slice() {
            [word] if self.words.has_windows() => (None, *word),
            [variable, word] => {
                let slot = self.variables.iter().rposition(|(name, _)| name == variable)?;
                (Some(u8::try_from(slot).ok()?), *word)
            }
            _ => return None,
        };
        match word {
            "lastBurn" => Some(Presence::Last(variable, Flow::Burned)),
            "lastBuyback" => Some(Presence::Last(variable, Flow::BoughtBack)),
            _ => None,
        }
    }

    fn size(&mut self, expr: &IdedExpr, argument: &IdedExpr) -> Option<Typed> {
        Some(Typed::Number(match self.check(argument)? {
            Typed::Text(text) => Num::Length(Box::new(text)),
            Typed::Texts(get) => Num::Count(Items { list: List::Texts(get), filters: Vec::new() }),
            Typed::Items(items, _) => Num::Count(items),
            other => {
                let message = format!("`{}` is {} and has no size", self.quote(argument), other.name());
                return self.refuse(self.span(expr), message, "texts and lists have a size");
            }
        }))
    }

    /// `unlockDate.getDayOfWeek()`, `(unlockDate - now).getHours()`.
    fn part_of_time(&mut self, expr: &IdedExpr, name: &str, target: &IdedExpr) -> Option<Typed> {
        let part = TimePart::parse(name)?;
        match self.check(target)? {
            Typed::Time(at) => Some(Typed::Number(Num::OfTime(part, Box::new(at)))),
            Typed::Fact(get) => Some(Typed::Number(Num::OfTime(part, Box::new(Time::Fact(get))))),
            Typed::Span(span) if part.is_of_span() => Some(Typed::Number(Num::OfSpan(part, Box::new(span)))),
            other => {
                let message = format!("`{}` is {}, which has no `{name}`", self.quote(target), other.name());
                self.refuse(self.span(expr), message, "times have it: `unlockDate.getDayOfWeek() == 0` is true on Sundays (UTC)")
            }
        }
    }

    fn method(&mut self, expr: &IdedExpr, name: &str, target: &IdedExpr, arguments: &[IdedExpr]) -> Option<Typed> {
        match (name, arguments) {
            ("startsWith" | "endsWith" | "contains", [argument]) => {
                let (text, part) = (self.text_of(target), self.text_of(argument));
                let test = match name {
                    "startsWith" => TextTest::StartsWith,
                    "endsWith" => TextTest::EndsWith,
                    _ => TextTest::Contains,
                };
                Some(Typed::Bool(Cond::TextTest(test, text?, part?)))
            }
            ("matches", [argument]) => {
                let text = self.text_of(target);
                let Some(pattern) = self.constant(argument) else {
                    return self.refuse(
                        self.span(argument),
                        "`matches` takes a pattern in quotes",
                        "write `tokenSymbol.matches(\"^W.*\")`",
                    );
                };
                match RegexBuilder::new(&pattern)
                    .size_limit(MAX_PATTERN_SIZE)
                    .dfa_size_limit(MAX_PATTERN_SIZE)
                    .nest_limit(32)
                    .build()
                {
                    Ok(pattern) => Some(Typed::Bool(Cond::Matches(text?, pattern))),
                    Err(error) => {
                        let reason = error.to_string();
                        let reason = reason.lines().last().unwrap_or("not understood").trim_start_matches("error: ");
                        self.refuse(
                            self.span(argument),
                            format!("this pattern cannot be used: {reason}"),
                            if reason.contains("case insensitiv") {
                                "write both letters instead: [aA]"
                            } else {
                                "patterns are regular expressions such as \"^(ARB|APT)$\""
                            },
                        )
                    }
                }
            }
            ("size", []) => self.size(expr, target),
            (name, []) if TimePart::parse(name).is_some() => self.part_of_time(expr, name, target),
            (name, [_]) if TimePart::parse(name).is_some() => {
                self.refuse(self.span(expr), "times are read in UTC here", format!("leave the zone out: `{name}()`"))
            }
            ("exists" | "exists_one" | "existsOne" | "all" | "filter" | "map", [variable, body]) => {
                self.over_items(expr, name, target, variable, body)
            }
            ("map", [variable, test, body]) => {
                let filtered = self.over_items(expr, "filter", target, variable, test)?;
                self.over_these(expr, name, filtered, variable, body)
            }
            ("sum", []) => match self.check(target)? {
                Typed::Mapped(items, variable, value) => Some(Typed::Number(Num::Sum(items, variable, Box::new(value)))),
                other => {
                    let message = format!("`{}` is {}; `sum` adds up mapped numbers", self.quote(target), other.name());
                    self.refuse(self.span(expr), message, "write `allocations.map(a, a.cliffAmount).sum()`")
                }
            },
            ("exists" | "exists_one" | "existsOne" | "all" | "filter" | "map", _) => self.refuse(
                self.span(expr),
                format!("`{name}` takes a name and a condition"),
                "write it like `allocations.exists(a, a.cliffAmount > 1000000)`",
            ),
            ("startsWith" | "endsWith" | "contains" | "matches" | "size" | "sum", _) => {
                self.refuse(self.span(expr), format!("`{name}` has the wrong number of arguments"), SUPPORTED)
            }
            _ => self.unsupported(expr, name),
        }
    }

    fn over_items(
        &mut self,
        expr: &IdedExpr,
        name: &str,
        target: &IdedExpr,
        variable: &IdedExpr,
        body: &IdedExpr,
    ) -> Option<Typed> {
        let list = self.check(target)?;
        if !matches!(list, Typed::Items(..) | Typed::Texts(_)) {
            let message = format!("`{}` is {}; `{name}` goes through a list", self.quote(target), list.name());
            return self.refuse(self.span(target), message, "lists are `allocations`, `token.groups` and the like");
        }
        self.over_these(expr, name, list, variable, body)
    }

    fn over_these(&mut self, expr: &IdedExpr, name: &str, list: Typed, variable: &IdedExpr, body: &IdedExpr) -> Option<Typed> {
        let (mut items, item) = match list {
            Typed::Items(items, item) => (items, item),
            Typed::Texts(get) => (Items { list: List::Texts(get), filters: Vec::new() }, Item::Text),
            _ => return None,
        };
        let Expr::Ident(name_of_item) = &variable.expr else {
            return self.refuse(
                self.span(variable),
                "a plain name for the item is needed here",
                "write it like `allocations.exists(a, a.cliffAmount > 1000000)`",
            );
        };
        if self.variables.len() >= MAX_MACRO_NESTING {
            return self.refuse(
                self.span(expr),
                format!("lists may be nested {MAX_MACRO_NESTING} deep at most"),
                "split the rule",
            );
        }
        let slot = u8::try_from(self.variables.len()).ok()?;
        self.variables.push((name_of_item.clone(), item));
        let result = if name == "map" {
            self.number(body).map(|value| (None, Some(value)))
        } else {
            self.truth(body).map(|test| (Some(test), None))
        };
        self.variables.pop();
        match (name, result?) {
            ("exists", (Some(test), _)) => Some(Typed::Bool(Cond::Exists(items, slot, Box::new(test)))),
            ("exists_one" | "existsOne", (Some(test), _)) => {
                items.filters.push((slot, test));
                Some(Typed::Bool(Cond::Numbers(Compare::Equal, Num::Count(items), Num::Const(1.0))))
            }
            ("all", (Some(test), _)) => Some(Typed::Bool(Cond::All(items, slot, Box::new(test)))),
            ("filter", (Some(test), _)) => {
                items.filters.push((slot, test));
                Some(Typed::Items(items, item))
            }
            (_, (_, Some(value))) => Some(Typed::Mapped(items, slot, value)),
            _ => None,
        }
    }
}

fn fact(get: GetFact, kind: FactType) -> Typed {
    match kind {
        FactType::Amount => Typed::Number(Num::Fact(get)),
        FactType::Time => Typed::Time(Time::Fact(get)),
        FactType::Text => Typed::Text(Txt::Fact(get)),
        FactType::Any => Typed::Fact(get),
    }
}

/// Whether a rule on `resource` can hear such a change: the unlock rules hear every change of the schedule.
pub(super) fn can_be_heard(kind: ChangeKind, resource: Resource) -> bool {
    kind.can_happen_to(resource)
}

/// What to say of a name that nothing has.
pub(super) fn unknown_name(path: &str, names: &[&'static str]) -> (String, String) {
    let message = format!("nothing is called `{path}`");
    // A nested name that is known under its last word alone, or the other way round.
    let last = path.rsplit('.').next().unwrap_or(path);
    let near = closest(path, names.iter().copied())
        .or_else(|| names.iter().copied().find(|name| name.rsplit('.').next() == Some(last)))
        .or_else(|| closest(last, names.iter().copied().filter(|name| !name.contains('.'))));
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let shown: Vec<&str> = names.iter().copied().filter(|name| !name.contains('.')).take(12).collect();
            format!("known are {}, …", shown.join(", "))
        }
    };
    (message, help)
}

/// A length of time as people write it, for arithmetic on instants.
pub(super) fn span_of(text: &str) -> Result<TimeDelta, String> {
    let (negative, plain) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    plain.parse::<config::Span>().map(|span| if negative { -span.delta() } else { span.delta() })
}

fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

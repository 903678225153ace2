//! A test file: TOML text to a [`TestFile`], with the place of every mistake.

use std::{collections::BTreeMap, ops::Range, path::Path};

use chrono::TimeDelta;
use serde::Deserialize;
use toml::Spanned;

use model::{BatchKind, Diagnostic, NotificationKind, Silence, SourceText, Timestamp, closest, config, read_matchers, wire};

/// Tests of one file.
const MAX_TESTS: usize = 1_000;
/// Inputs, expectations and expected alerts of one test, each.
const MAX_ITEMS: usize = 2_000;
/// The longest that a clock may run.
const MAX_RUN: TimeDelta = TimeDelta::days(3_660);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestFile {
    /// Rule files, relative to this file. None: those of the config.
    pub rules: Option<Vec<String>>,
    /// `[watch.groups]`. None: those of the config.
    pub groups: Option<BTreeMap<String, Vec<String>>>,
    /// `[route]`; every receiver that it names exists. None: routes and receivers of the config.
    pub route: Option<config::Route>,
    /// `[[inhibit_rules]]` beside the routes of this file.
    #[serde(default)]
    pub inhibit_rules: Vec<config::InhibitRule>,
    /// `[[time_intervals]]` beside the routes of this file.
    #[serde(default)]
    pub time_intervals: Vec<config::TimeIntervals>,
    /// Facts of the token list, for all tests.
    #[serde(default)]
    pub token: Vec<Spanned<toml::Table>>,
    #[serde(default)]
    pub test: Vec<Spanned<TestCase>>,
}

/// One `[[test]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestCase {
    pub name: String,
    /// Where the clock begins.
    pub start: Spanned<toml::Value>,
    /// Facts of the token list, beside those of the file.
    #[serde(default)]
    pub token: Vec<Spanned<toml::Table>>,
    /// What somebody does not want to hear.
    #[serde(default)]
    pub silence: Vec<Spanned<TestSilence>>,
    #[serde(default)]
    pub input: Vec<Spanned<TestInput>>,
    #[serde(default)]
    pub expect: Vec<Spanned<Expectation>>,
}

/// One `[[test.silence]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestSilence {
    pub matchers: Vec<String>,
    /// None: from the start on.
    pub from: Option<toml::Value>,
    pub until: toml::Value,
}

impl TestSilence {
    /// The silence that it stands for.
    pub fn silence(&self, start: Timestamp, number: usize) -> Result<Silence, String> {
        let matchers = read_matchers(self.matchers.iter().map(String::as_str)).map_err(|error| error.to_string())?;
        if matchers.iter().all(model::matcher::Matcher::takes_empty) {
            return Err("this would silence everything: name a label, such as `token=arbitrum`".to_owned());
        }
        let starts_at = self.from.as_ref().map_or(Ok(start), |from| instant(from, Some(start)))?;
        let ends_at = instant(&self.until, Some(start))?;
        if ends_at <= starts_at {
            return Err("the silence would end before it begins".to_owned());
        }
        let (author, comment) = ("test".to_owned(), String::new());
        Ok(Silence { id: format!("si_{number}"), matchers, author, comment, starts_at, ends_at, created_at: starts_at })
    }
}

/// One `[[test.input]]`: what the source says from then on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestInput {
    /// None: with the input before.
    pub at: Option<Spanned<toml::Value>>,
    pub token: String,
    pub unlock: Option<toml::Value>,
    pub burn: Option<toml::Value>,
    pub buyback: Option<toml::Value>,
    pub emission: Option<toml::Value>,
    pub allocation: Option<toml::Value>,
    pub funding: Option<toml::Value>,
    /// Facts of the token list that are other from then on.
    pub facts: Option<toml::Table>,
    #[serde(default)]
    pub add: Vec<toml::Table>,
    #[serde(default)]
    pub change: Vec<toml::Table>,
    #[serde(default)]
    pub remove: Vec<toml::Table>,
}

/// One `[[test.expect]]`: all that was told since the expectation before.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expectation {
    pub at: Spanned<toml::Value>,
    /// Only alerts of this rule are looked at.
    pub rule: Option<String>,
    /// Nothing was told.
    #[serde(default)]
    pub silence: bool,
    #[serde(default)]
    pub alert: Vec<Spanned<ExpectedAlert>>,
    /// All messages that were sent; none where they are not looked at.
    pub message: Option<Vec<Spanned<ExpectedMessage>>>,
}

/// An expected message: what one receiver gets. What is left out may be anything.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedMessage {
    pub receiver: String,
    pub at: Option<toml::Value>,
    /// `single`, `group`, `fold`, `summary` or `digest`.
    pub shape: Option<String>,
    /// The rules of the alerts that it tells, in order.
    pub alerts: Option<Vec<String>>,
    /// Alerts that it tells and counts.
    pub count: Option<usize>,
}

/// An expected alert. What is left out may be anything.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedAlert {
    pub rule: String,
    pub token: Option<String>,
    /// `firing`, `reminder`, `resolved` or `event`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub reason: Option<String>,
    pub at: Option<toml::Value>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    pub summary: Option<String>,
    pub description: Option<String>,
    pub receivers: Option<Vec<String>>,
}

impl ExpectedAlert {
    /// The kind of message, where one is named.
    pub fn notification_kind(&self) -> Option<NotificationKind> {
        self.kind.as_deref().and_then(kind_of)
    }

    /// All texts that are named.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = [("summary", self.summary.as_deref()), ("description", self.description.as_deref())];
        let others = self.annotations.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        own.into_iter().filter_map(|(name, text)| Some((name, text?))).chain(others)
    }
}

/// Kinds of messages that a test may expect.
pub(super) const KINDS: [NotificationKind; 4] =
    [NotificationKind::Firing, NotificationKind::Reminder, NotificationKind::Resolved, NotificationKind::Event];

/// The word of a kind in a test: `firing`.
pub(super) fn short(kind: NotificationKind) -> &'static str {
    kind.as_str().trim_start_matches("alert.")
}

fn kind_of(word: &str) -> Option<NotificationKind> {
    NotificationKind::parse(word).or_else(|| NotificationKind::parse(&format!("alert.{word}")))
}

/// Reads a test file; otherwise what is wrong with it and where.
pub(super) fn parse(source: &SourceText) -> Result<TestFile, Vec<Diagnostic>> {
    let file: TestFile = match toml::from_str(&source.text) {
        Ok(file) => file,
        Err(error) => {
            let (message, help) = plain(error.message());
            let mut diagnostic = Diagnostic::error(&source.file, error.span(), message);
            diagnostic.help = help;
            return Err(vec![diagnostic]);
        }
    };
    let mut problems = Vec::new();
    let mut refuse = |span: Range<usize>, message: String, help: &str| {
        problems.push(Diagnostic::error(&source.file, Some(span), message).help(help));
    };
    if file.test.len() > MAX_TESTS {
        refuse(0..0, format!("there are {} tests; one file takes {MAX_TESTS}", file.test.len()), "split the file");
    }
    let mut names: BTreeMap<&str, ()> = BTreeMap::new();
    for test in &file.test {
        let (span, test) = (test.span(), test.get_ref());
        if names.insert(&test.name, ()).is_some() {
            refuse(span.clone(), format!("there is a test {:?} already", test.name), "give it another name");
        }
        check_test(span, test, &mut refuse);
    }
    if problems.is_empty() { Ok(file) } else { Err(problems) }
}

/// Says what is wrong, where, and what helps.
type Refuse<'a> = dyn FnMut(Range<usize>, String, &str) + 'a;

fn check_test(span: Range<usize>, test: &TestCase, refuse: &mut Refuse<'_>) {
    if test.expect.is_empty() {
        refuse(
            span.clone(),
            format!("the test {:?} expects nothing", test.name),
            "add `[[test.expect]]`; `silence = true` expects that nothing is told",
        );
    }
    let alerts: usize = test.expect.iter().map(|expect| expect.get_ref().alert.len()).sum();
    let messages: usize = test.expect.iter().filter_map(|expect| Some(expect.get_ref().message.as_ref()?.len())).sum();
    if test.input.len() > MAX_ITEMS
        || test.silence.len() > MAX_ITEMS
        || messages > MAX_ITEMS
        || test.expect.len() > MAX_ITEMS
        || alerts > MAX_ITEMS
    {
        refuse(
            span,
            format!("the test {:?} is too long: at most {MAX_ITEMS} inputs and {MAX_ITEMS} alerts", test.name),
            "split it",
        );
        return;
    }
    let start = match instant(test.start.get_ref(), None) {
        Ok(start) => start,
        Err(problem) => {
            refuse(test.start.span(), problem, "write it like `start = 2026-03-01T00:00:00Z`");
            return;
        }
    };
    for (number, quiet) in (1..).zip(&test.silence) {
        if let Err(problem) = quiet.get_ref().silence(start, number) {
            refuse(quiet.span(), problem, "write it like `{ matchers = [\"token=arbitrum\"], until = \"2h\" }`");
        }
    }
    let mut before = start;
    for at in test.input.iter().filter_map(|input| input.get_ref().at.as_ref()) {
        check_order(at, start, &mut before, "inputs", refuse);
    }
    let mut before = start;
    for expect in &test.expect {
        let (span, expect) = (expect.span(), expect.get_ref());
        check_order(&expect.at, start, &mut before, "expectations", refuse);
        check_expectation(span, expect, start, refuse);
    }
}

fn check_expectation(span: Range<usize>, expect: &Expectation, start: Timestamp, refuse: &mut Refuse<'_>) {
    match (expect.silence, expect.alert.is_empty()) {
        (true, false) => refuse(span, "silence and alerts cannot both be expected".into(), "leave one of them out"),
        (false, true) if expect.message.is_none() => refuse(
            span,
            "this expects nothing".into(),
            "write `silence = true`, or the alerts that are told: `[[test.expect.alert]]`",
        ),
        _ => {}
    }
    for message in expect.message.iter().flatten() {
        let (span, message) = (message.span(), message.get_ref());
        if let Some(word) = message.shape.as_ref().filter(|word| BatchKind::parse(word).is_none()) {
            let known = BatchKind::ALL.map(BatchKind::as_str).join(", ");
            refuse(span.clone(), format!("no message has the shape {word:?}"), &format!("known are {known}"));
        }
        if let Some(Err(problem)) = message.at.as_ref().map(|at| instant(at, Some(start))) {
            refuse(span, problem, "write it like `at = \"7d\"` or `at = 2026-03-08T00:00:00Z`");
        }
    }
    for alert in &expect.alert {
        let (span, alert) = (alert.span(), alert.get_ref());
        if let (Some(word), None) = (&alert.kind, alert.notification_kind()) {
            refuse(
                span.clone(),
                format!("no message is of the type {word:?}"),
                &format!("known are {}", KINDS.map(short).join(", ")),
            );
        }
        if let Some(Err(problem)) = alert.at.as_ref().map(|at| instant(at, Some(start))) {
            refuse(span, problem, "write it like `at = \"7d\"` or `at = 2026-03-08T00:00:00Z`");
        }
    }
}

fn check_order(at: &Spanned<toml::Value>, start: Timestamp, before: &mut Timestamp, what: &str, refuse: &mut Refuse<'_>) {
    match instant(at.get_ref(), Some(start)) {
        Ok(when) if when < *before => {
            refuse(at.span(), format!("the clock cannot be set back: {what} stand in the order of time"), "move it up");
        }
        Ok(when) if when.signed_duration_since(start) > MAX_RUN => {
            refuse(at.span(), "this is more than ten years after the start".into(), "start later");
        }
        Ok(when) => *before = when,
        Err(problem) => {
            refuse(at.span(), problem, "write it like `at = \"7d\"` (after the start) or `at = 2026-03-08T00:00:00Z`")
        }
    }
}

/// An instant: a date, or a length of time after `start`.
pub(super) fn instant(value: &toml::Value, start: Option<Timestamp>) -> Result<Timestamp, String> {
    let text = match value {
        toml::Value::String(text) => text.trim().to_owned(),
        toml::Value::Datetime(at) => at.to_string(),
        other => return Err(format!("`{other}` is no time")),
    };
    if let Some(at) = wire::parse_timestamp(&text) {
        return Ok(at);
    }
    let Some(start) = start else { return Err(format!("\"{text}\" is no time")) };
    let mut at = start;
    // `7d 12h` and `1d12h` both read as promtool reads them.
    for part in text.trim_start_matches('+').split_whitespace() {
        let span: config::Span = part.parse().map_err(|_| format!("\"{text}\" is neither a time nor a length of time"))?;
        at = at.checked_add_signed(span.delta()).ok_or_else(|| format!("\"{text}\" is too long"))?;
    }
    if text.is_empty() { Err("a time is missing here".into()) } else { Ok(at) }
}

/// What the parser says, in our words.
fn plain(message: &str) -> (String, Option<String>) {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if message.starts_with("unknown field")
        && let Some((unknown, known)) = quoted.split_first()
    {
        let help = match *unknown {
            "alertname" => "did you mean `rule`?".to_owned(),
            "exp_alerts" | "alerts" => "did you mean `alert`?".to_owned(),
            "eval_time" => "did you mean `at`?".to_owned(),
            "exp_labels" => "did you mean `labels`?".to_owned(),
            "exp_annotations" => "did you mean `annotations`?".to_owned(),
            unknown => closest(unknown, known.iter().copied())
                .map_or_else(|| format!("known are {}", known.join(", ")), |near| format!("did you mean `{near}`?")),
        };
        return (format!("unknown key `{unknown}`"), Some(help));
    }
    if let (Some(field), true) = (quoted.first(), message.starts_with("missing field")) {
        return (format!("`{field}` is missing"), None);
    }
    (message.trim().to_owned(), None)
}

/// Names of all receivers in a route tree.
pub(super) fn receivers_of(route: &config::Route) -> Vec<String> {
    let mut names: Vec<String> = route.receivers.iter().chain(&route.fallback).cloned().collect();
    names.extend(route.routes.iter().flat_map(receivers_of));
    names.sort();
    names.dedup();
    names
}

/// The line of a place in a file, from 1.
pub(super) fn line_of(text: &str, span: &Range<usize>) -> usize {
    model::diagnostic::position(text, span).line
}

/// The folder that relative paths of a test file begin in.
pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or_else(|| Path::new("."))
}

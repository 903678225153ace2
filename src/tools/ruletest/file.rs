//! Parses a test file into a [`TestFile`], with the location of each problem.

use std::{collections::BTreeMap, ops::Range, path::Path};

use chrono::TimeDelta;
use serde::Deserialize;
use toml::Spanned;

use model::{BatchKind, Diagnostic, NotificationKind, Silence, SourceText, Timestamp, closest, config, read_matchers, wire};

/// The maximum number of tests in a file.
const MAX_TESTS: usize = 1_000;
/// The maximum number of inputs, of silences, of expectations, of expected alerts, and of expected messages in a test.
const MAX_ITEMS: usize = 2_000;
/// The maximum simulated time of a test.
const MAX_RUN: TimeDelta = TimeDelta::days(3_660);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestFile {
    /// The rule files, relative to this file. `None`: the rule files of the config.
    pub rules: Option<Vec<String>>,
    /// `[watch.groups]`. `None`: the groups of the config.
    pub groups: Option<BTreeMap<String, Vec<String>>>,
    /// `[route]`. All receivers that it names exist. `None`: the routes and receivers of the config.
    pub route: Option<config::Route>,
    /// `[[inhibit_rules]]`. Only used with `route`.
    #[serde(default)]
    pub inhibit_rules: Vec<config::InhibitRule>,
    /// `[[time_intervals]]`. Only used with `route`.
    #[serde(default)]
    pub time_intervals: Vec<config::TimeIntervals>,
    /// Rows of the token list for all tests.
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
    /// The start of the clock.
    pub start: Spanned<toml::Value>,
    /// Rows of the token list, in addition to the rows of the whole file.
    #[serde(default)]
    pub token: Vec<Spanned<toml::Table>>,
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
    /// `None`: from the start.
    pub from: Option<toml::Value>,
    pub until: toml::Value,
}

impl TestSilence {
    pub fn silence(&self, start: Timestamp, number: usize) -> Result<Silence, String> {
        let matchers = read_matchers(self.matchers.iter().map(String::as_str)).map_err(|error| error.to_string())?;
        if matchers.iter().all(model::matcher::Matcher::matches_missing_label) {
            return Err("the matchers match everything: add a label, such as `token=arbitrum`".to_owned());
        }
        let starts_at = self.from.as_ref().map_or(Ok(start), |from| instant(from, Some(start)))?;
        let ends_at = instant(&self.until, Some(start))?;
        if ends_at <= starts_at {
            return Err("the silence ends before it starts".to_owned());
        }
        let (author, comment) = ("test".to_owned(), String::new());
        Ok(Silence { id: format!("si_{number}"), matchers, author, comment, starts_at, ends_at, created_at: starts_at })
    }
}

/// One `[[test.input]]`: the data of the source from then on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestInput {
    /// `None`: together with the previous input.
    pub at: Option<Spanned<toml::Value>>,
    pub token: String,
    pub unlock: Option<toml::Value>,
    pub burn: Option<toml::Value>,
    pub buyback: Option<toml::Value>,
    pub emission: Option<toml::Value>,
    pub allocation: Option<toml::Value>,
    pub funding: Option<toml::Value>,
    /// New values in the token list.
    pub facts: Option<toml::Table>,
    #[serde(default)]
    pub add: Vec<toml::Table>,
    #[serde(default)]
    pub change: Vec<toml::Table>,
    #[serde(default)]
    pub remove: Vec<toml::Table>,
}

/// One `[[test.expect]]`: all notifications since the previous expectation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expectation {
    pub at: Spanned<toml::Value>,
    /// Restricts the comparison to alerts of this rule.
    pub rule: Option<String>,
    /// Whether no notification is expected.
    #[serde(default)]
    pub silence: bool,
    #[serde(default)]
    pub alert: Vec<Spanned<ExpectedAlert>>,
    /// All messages. `None` if messages are not compared.
    pub message: Option<Vec<Spanned<ExpectedMessage>>>,
}

/// An expected message to one receiver. Omitted fields match anything.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedMessage {
    pub receiver: String,
    pub at: Option<toml::Value>,
    /// The shape of the message, see [`BatchKind`].
    pub shape: Option<String>,
    /// The rules of the listed alerts, in order.
    pub alerts: Option<Vec<String>>,
    /// The number of listed and counted alerts.
    pub count: Option<usize>,
}

/// An expected alert. Omitted fields match anything.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedAlert {
    pub rule: String,
    pub token: Option<String>,
    /// `firing`, `reminder`, `resolved`, or `event`.
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
    /// Returns the expected kind. `None` if it is omitted or unknown.
    pub fn notification_kind(&self) -> Option<NotificationKind> {
        self.kind.as_deref().and_then(kind_of)
    }

    /// Returns the expected annotations.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = [("summary", self.summary.as_deref()), ("description", self.description.as_deref())];
        let others = self.annotations.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        own.into_iter().filter_map(|(name, text)| Some((name, text?))).chain(others)
    }
}

/// The kinds of notifications that a test can expect.
pub(super) const KINDS: [NotificationKind; 4] =
    [NotificationKind::Firing, NotificationKind::Reminder, NotificationKind::Resolved, NotificationKind::Event];

/// Returns the name of a kind in a test, such as `firing`.
pub(super) fn short(kind: NotificationKind) -> &'static str {
    kind.as_str().trim_start_matches("alert.")
}

fn kind_of(word: &str) -> Option<NotificationKind> {
    NotificationKind::parse(word).or_else(|| NotificationKind::parse(&format!("alert.{word}")))
}

/// Parses a test file, or returns its problems.
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
    let mut report = |span: Range<usize>, message: String, help: &str| {
        problems.push(Diagnostic::error(&source.file, Some(span), message).help(help));
    };
    if file.test.len() > MAX_TESTS {
        report(
            0..0,
            format!("too many tests: {} found, at most {MAX_TESTS} allowed in a file", file.test.len()),
            "split the file",
        );
    }
    let mut names: BTreeMap<&str, ()> = BTreeMap::new();
    for test in &file.test {
        let (span, test) = (test.span(), test.get_ref());
        if names.insert(&test.name, ()).is_some() {
            report(span.clone(), format!("duplicate test {:?}", test.name), "give it another name");
        }
        check_test(span, test, &mut report);
    }
    if problems.is_empty() { Ok(file) } else { Err(problems) }
}

/// Reports a problem with its span, message, and suggestion.
type ReportProblem<'a> = dyn FnMut(Range<usize>, String, &str) + 'a;

fn check_test(span: Range<usize>, test: &TestCase, report: &mut ReportProblem<'_>) {
    if test.expect.is_empty() {
        report(
            span.clone(),
            format!("the test {:?} has no expectation", test.name),
            "add `[[test.expect]]`; use `silence = true` to expect no notification",
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
        report(
            span,
            format!("the test {:?} is too long: at most {MAX_ITEMS} inputs and {MAX_ITEMS} alerts", test.name),
            "split it",
        );
        return;
    }
    let start = match instant(test.start.get_ref(), None) {
        Ok(start) => start,
        Err(problem) => {
            report(test.start.span(), problem, "example: `start = 2026-03-01T00:00:00Z`");
            return;
        }
    };
    for (number, quiet) in (1..).zip(&test.silence) {
        if let Err(problem) = quiet.get_ref().silence(start, number) {
            report(quiet.span(), problem, "example: `{ matchers = [\"token=arbitrum\"], until = \"2h\" }`");
        }
    }
    let mut before = start;
    for at in test.input.iter().filter_map(|input| input.get_ref().at.as_ref()) {
        check_order(at, start, &mut before, "inputs", report);
    }
    let mut before = start;
    for expect in &test.expect {
        let (span, expect) = (expect.span(), expect.get_ref());
        check_order(&expect.at, start, &mut before, "expectations", report);
        check_expectation(span, expect, start, report);
    }
}

fn check_expectation(span: Range<usize>, expect: &Expectation, start: Timestamp, report: &mut ReportProblem<'_>) {
    match (expect.silence, expect.alert.is_empty()) {
        (true, false) => report(span, "`silence` and `alert` cannot be combined".into(), "remove one of them"),
        (false, true) if expect.message.is_none() => report(
            span,
            "this expectation is empty".into(),
            "add `silence = true`, or the expected alerts: `[[test.expect.alert]]`",
        ),
        _ => {}
    }
    for message in expect.message.iter().flatten() {
        let (span, message) = (message.span(), message.get_ref());
        if let Some(word) = message.shape.as_ref().filter(|word| BatchKind::parse(word).is_none()) {
            let known = BatchKind::ALL.map(BatchKind::as_str).join(", ");
            report(span.clone(), format!("unknown shape {word:?}"), &format!("expected one of {known}"));
        }
        if let Some(Err(problem)) = message.at.as_ref().map(|at| instant(at, Some(start))) {
            report(span, problem, "examples: `at = \"7d\"`, `at = 2026-03-08T00:00:00Z`");
        }
    }
    for alert in &expect.alert {
        let (span, alert) = (alert.span(), alert.get_ref());
        if let (Some(word), None) = (&alert.kind, alert.notification_kind()) {
            report(span.clone(), format!("unknown type {word:?}"), &format!("expected one of {}", KINDS.map(short).join(", ")));
        }
        if let Some(Err(problem)) = alert.at.as_ref().map(|at| instant(at, Some(start))) {
            report(span, problem, "examples: `at = \"7d\"`, `at = 2026-03-08T00:00:00Z`");
        }
    }
}

fn check_order(at: &Spanned<toml::Value>, start: Timestamp, before: &mut Timestamp, what: &str, report: &mut ReportProblem<'_>) {
    match instant(at.get_ref(), Some(start)) {
        Ok(when) if when < *before => {
            report(at.span(), format!("this time is before the previous one: {what} must be sorted by time"), "move it up");
        }
        Ok(when) if when.signed_duration_since(start) > MAX_RUN => {
            report(at.span(), "this is more than ten years after the start".into(), "start later");
        }
        Ok(when) => *before = when,
        Err(problem) => report(at.span(), problem, "examples: `at = \"7d\"` (after the start), `at = 2026-03-08T00:00:00Z`"),
    }
}

/// Parses an instant, a date, or durations after `start`, such as `7d 12h`.
///
/// # Errors
///
/// Fails if the text is neither, if it is empty, or if it is a duration and there is no `start`.
pub(super) fn instant(value: &toml::Value, start: Option<Timestamp>) -> Result<Timestamp, String> {
    let text = match value {
        toml::Value::String(text) => text.trim().to_owned(),
        toml::Value::Datetime(at) => at.to_string(),
        other => return Err(format!("`{other}` is not a valid time")),
    };
    if let Some(at) = wire::parse_timestamp(&text) {
        return Ok(at);
    }
    let Some(start) = start else { return Err(format!("\"{text}\" is not a valid time")) };
    let mut at = start;
    // Like promtool, accept both `7d 12h` and `1d12h`.
    for part in text.trim_start_matches('+').split_whitespace() {
        let span: config::Span = part.parse().map_err(|_| format!("\"{text}\" is neither a time nor a duration"))?;
        at = at.checked_add_signed(span.delta()).ok_or_else(|| format!("\"{text}\" is too long"))?;
    }
    if text.is_empty() { Err("the time is empty".into()) } else { Ok(at) }
}

/// Rewrites a message of the TOML parser as a message and a suggestion.
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
                .map_or_else(|| format!("expected one of {}", known.join(", ")), |near| format!("did you mean `{near}`?")),
        };
        return (format!("unknown key `{unknown}`"), Some(help));
    }
    if let (Some(field), true) = (quoted.first(), message.starts_with("missing field")) {
        return (format!("`{field}` is missing"), None);
    }
    (message.trim().to_owned(), None)
}

/// Returns the names of all receivers in a route tree.
pub(super) fn receivers_of(route: &config::Route) -> Vec<String> {
    let mut names: Vec<String> = route.receivers.iter().chain(&route.fallback).cloned().collect();
    names.extend(route.routes.iter().flat_map(receivers_of));
    names.sort();
    names.dedup();
    names
}

/// Returns the line number of a span, from 1.
pub(super) fn line_of(text: &str, span: &Range<usize>) -> usize {
    model::diagnostic::position(text, span).line
}

/// Returns the folder of a test file's relative paths.
pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or_else(|| Path::new("."))
}

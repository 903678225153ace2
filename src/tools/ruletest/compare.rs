//! Compares expected with actual alerts and messages, pairs the most similar ones, and formats the differences.

use std::fmt::Write as _;

use crate::simulate::{Sent, Simulation};
use engine::explain::ExplainStep;
use model::{Notification, Timestamp, phrase, text::harmless};

use super::file::{ExpectedAlert, ExpectedMessage, instant, short};

/// The maximum number of differences with which an expected alert is reported as different. With more, it is reported as missing.
const MAX_DIFFERENCES: usize = 4;

/// The differences between expected and actual alerts.
#[derive(Debug, Default)]
pub(super) struct AlertDifferences {
    /// Ready to print. Empty if all expectations are met.
    pub lines: Vec<String>,
    /// The rules and tokens of missing and unexpected alerts, to explain.
    pub about: Vec<(String, Option<String>)>,
}

pub(super) fn differences(expected: &[&ExpectedAlert], actual: &[Notification], start: Timestamp) -> AlertDifferences {
    let mut open: Vec<&Notification> = actual.iter().collect();
    let mut unmet: Vec<&ExpectedAlert> = Vec::new();
    // Remove exact matches first, so that only the rest is paired by similarity.
    for wanted in expected {
        match open.iter().position(|notification| differing_fields(wanted, notification, start).is_empty()) {
            Some(at) => _ = open.remove(at),
            None => unmet.push(wanted),
        }
    }
    let mut lines = Vec::new();
    let mut about: Vec<(String, Option<String>)> = Vec::new();
    let mut explain = |rule: &str, token: Option<&str>| {
        let one = (rule.to_owned(), token.map(str::to_owned));
        if !about.contains(&one) {
            about.push(one);
        }
    };
    for wanted in unmet {
        let nearest = open
            .iter()
            .enumerate()
            .filter(|(_, notification)| notification.body.rule == wanted.rule && has_token(wanted, notification))
            .map(|(at, notification)| (differing_fields(wanted, notification, start), at))
            .min_by_key(|(differences, _)| differences.len())
            .filter(|(differences, _)| differences.len() <= MAX_DIFFERENCES);
        match nearest {
            Some((differences, at)) => {
                let notification = open.remove(at);
                lines.push(format!("  different: {}", head(notification)));
                lines.extend(differences.into_iter().flat_map(|difference| difference.lines()));
            }
            None => {
                lines.push(format!("- missing: {}", expected_text(wanted)));
                explain(&wanted.rule, wanted.token.as_deref());
            }
        }
    }
    for notification in open {
        explain(&notification.body.rule, notification.body.token.as_ref().map(|token| token.id.as_str()));
        lines.push("+ unexpected:".to_owned());
        lines.extend(as_toml(notification).lines().map(|line| format!("+     {line}")));
    }
    AlertDifferences { lines, about }
}

/// The maximum number of explained differences.
const MAX_EXPLAINED: usize = 3;

/// Explains step by step why rules notified or did not.
pub(super) fn explanations(about: &[(String, Option<String>)], simulation: &Simulation<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let explanations = about.iter().take(MAX_EXPLAINED).flat_map(|(rule, token)| simulation.explain(rule, token.as_deref()));
    for explanation in explanations {
        lines.push(format!("  explanation: {}", harmless(&explanation.about)));
        explanation.steps.iter().for_each(|step| step_lines(&mut lines, step, 4));
        lines.push(format!("    result: {}", harmless(&explanation.so)));
    }
    lines
}

fn step_lines(lines: &mut Vec<String>, step: &ExplainStep, indent: usize) {
    lines.push(format!("{}{} {}", " ".repeat(indent), step.mark.sign(), harmless(&step.text)));
    step.parts.iter().for_each(|part| step_lines(lines, part, indent + 2));
}

/// Compares messages, like [`differences`].
pub(super) fn message_differences(expected: &[&ExpectedMessage], sent: &[&Sent], start: Timestamp) -> Vec<String> {
    let mut open: Vec<&Sent> = sent.to_vec();
    let mut unmet: Vec<&ExpectedMessage> = Vec::new();
    for wanted in expected {
        match open.iter().position(|sent| differing_message_fields(wanted, sent, start).is_empty()) {
            Some(at) => _ = open.remove(at),
            None => unmet.push(wanted),
        }
    }
    let mut lines = Vec::new();
    for wanted in unmet {
        match open.iter().position(|sent| sent.receiver.as_str() == wanted.receiver) {
            Some(at) => {
                let sent = open.remove(at);
                lines.push(format!("  different message: {}", message_head(sent)));
                lines.extend(differing_message_fields(wanted, sent, start).into_iter().flat_map(Difference::lines));
            }
            None => lines.push(format!("- missing message to {}", harmless(&wanted.receiver))),
        }
    }
    for sent in open {
        lines.push("+ unexpected message:".to_owned());
        lines.extend(message_as_toml(sent).lines().map(|line| format!("+     {line}")));
    }
    lines
}

fn differing_message_fields(wanted: &ExpectedMessage, sent: &Sent, start: Timestamp) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut differ = |what: &str, expected: String, actual: String| {
        if expected != actual {
            differences.push(Difference { what: what.to_owned(), expected, actual });
        }
    };
    differ("receiver", wanted.receiver.clone(), sent.receiver.to_string());
    if let Some(Ok(at)) = wanted.at.as_ref().map(|at| instant(at, Some(start))) {
        differ("at", at.to_rfc3339(), sent.at.to_rfc3339());
    }
    if let Some(shape) = &wanted.shape {
        differ("shape", shape.clone(), sent.batch.shape.as_str().to_owned());
    }
    if let Some(alerts) = &wanted.alerts {
        differ("alerts", alerts.join(", "), rules_of(sent).join(", "));
    }
    if let Some(count) = wanted.count {
        differ("count", count.to_string(), (sent.notified.len() + sent.counted.len()).to_string());
    }
    differences
}

fn rules_of(sent: &Sent) -> Vec<&str> {
    sent.notified.iter().map(|notification| notification.body.rule.as_str()).collect()
}

fn message_head(sent: &Sent) -> String {
    let alerts = sent.notified.len() + sent.counted.len();
    let at = phrase::instant_iso_seconds(sent.at);
    format!("{} to {} ({}), at {at}", model::phrase::count(alerts, "alert"), sent.receiver, sent.batch.shape.as_str())
}

/// Formats a message as TOML for a test file.
fn message_as_toml(sent: &Sent) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let rules: Vec<String> = rules_of(sent).into_iter().map(quoted).collect();
    let mut text = format!(
        "[[test.expect.message]]\nreceiver = {}\nat = {}\nshape = {}\nalerts = [{}]\n",
        quoted(sent.receiver.as_str()),
        sent.at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true),
        quoted(sent.batch.shape.as_str()),
        rules.join(", ")
    );
    if !sent.counted.is_empty() {
        let _ = writeln!(text, "count = {}", sent.notified.len() + sent.counted.len());
    }
    text
}

/// A difference between an expected and an actual value.
struct Difference {
    what: String,
    expected: String,
    actual: String,
}

impl Difference {
    fn lines(self) -> Vec<String> {
        let Difference { what, expected, actual } = self;
        let mut lines = vec![format!("      {what}")];
        // For texts with several lines, show only the lines from the first difference.
        let (wanted, got): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
        let same = wanted.iter().zip(&got).take_while(|(a, b)| a == b).count();
        if same > 0 {
            lines.push(format!("          … {same} equal line{}", if same == 1 { "" } else { "s" }));
        }
        lines.extend(wanted.iter().skip(same).map(|line| format!("        - {}", harmless(line))));
        lines.extend(got.iter().skip(same).map(|line| format!("        + {}", harmless(line))));
        if let (Some(wanted), Some(got), true) = (wanted.get(same), got.get(same), wanted.len() == 1 && got.len() == 1) {
            let column = wanted.chars().zip(got.chars()).take_while(|(a, b)| a == b).count();
            if column >= 8 {
                lines.push(format!("          {}^ first difference", " ".repeat(column)));
            }
        }
        lines
    }
}

fn has_token(wanted: &ExpectedAlert, notification: &Notification) -> bool {
    let token = notification.body.token.as_ref();
    wanted.token.as_deref().is_none_or(|wanted| token.is_some_and(|token| token.id == wanted || token.symbol == wanted))
}

fn differing_fields(wanted: &ExpectedAlert, notification: &Notification, start: Timestamp) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut differ = |what: &str, expected: String, actual: String| {
        if expected != actual {
            differences.push(Difference { what: what.to_owned(), expected, actual });
        }
    };
    differ("rule", wanted.rule.clone(), notification.body.rule.clone());
    if !has_token(wanted, notification) {
        let actual = notification.body.token.as_ref().map_or_else(|| "(none)".to_owned(), |token| token.id.clone());
        differ("token", wanted.token.clone().unwrap_or_default(), actual);
    }
    if let Some(kind) = wanted.notification_kind() {
        differ("type", short(kind).to_owned(), short(notification.kind).to_owned());
    }
    if let Some(reason) = &wanted.reason {
        differ("reason", reason.clone(), notification.body.reason.clone());
    }
    if let Some(Ok(at)) = wanted.at.as_ref().map(|at| instant(at, Some(start))) {
        differ("at", at.to_rfc3339(), notification.at.to_rfc3339());
    }
    for (name, value) in &wanted.labels {
        let actual =
            notification.body.labels.get(name).map_or_else(|| "(no such label)".to_owned(), |actual| format!("{actual:?}"));
        differ(&format!("label {name}"), format!("{value:?}"), actual);
    }
    for (name, text) in wanted.texts() {
        let actual = notification.body.annotations.get(name).map_or("(no such annotation)", String::as_str);
        differ(name, text.trim().to_owned(), actual.trim().to_owned());
    }
    if let Some(receivers) = &wanted.receivers {
        let list = |mut names: Vec<String>| {
            names.sort();
            if names.is_empty() { "(none)".to_owned() } else { names.join(", ") }
        };
        let actual = notification.receivers.iter().map(ToString::to_string).collect();
        differ("receivers", list(receivers.clone()), list(actual));
    }
    differences
}

fn head(notification: &Notification) -> String {
    let token = notification.body.token.as_ref().map(|token| format!(" of {}", harmless(&token.id))).unwrap_or_default();
    let at = phrase::instant_iso(notification.at);
    format!("{}{token}, {} ({}), at {at}", notification.body.rule, short(notification.kind), notification.body.reason)
}

fn expected_text(wanted: &ExpectedAlert) -> String {
    let mut text = wanted.rule.clone();
    if let Some(token) = &wanted.token {
        let _ = write!(text, " of {token}");
    }
    for part in [&wanted.kind, &wanted.reason].into_iter().flatten() {
        let _ = write!(text, ", {part}");
    }
    if let Some(summary) = &wanted.summary {
        let _ = write!(text, ": {summary:?}");
    }
    harmless(&text)
}

/// Formats a notification as an entry of `[[test.expect.alert]]` that can be copied into a test file. Omits the labels `alertname` and
/// `token`, which repeat the rule and the token.
pub(super) fn as_toml(notification: &Notification) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let mut text = "[[test.expect.alert]]\n".to_owned();
    let mut line = |key: &str, value: String| _ = writeln!(text, "{key} = {value}");
    line("rule", quoted(&notification.body.rule));
    if let Some(token) = &notification.body.token {
        line("token", quoted(&token.id));
    }
    line("type", quoted(short(notification.kind)));
    line("reason", quoted(&notification.body.reason));
    line("at", notification.at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true));
    let key = |name: &str| {
        let is_bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if is_bare { name.to_owned() } else { quoted(name) }
    };
    let own = |name: &str| !matches!(name, "alertname" | "token");
    let labels: Vec<String> = notification
        .body
        .labels
        .iter()
        .filter(|(name, _)| own(name))
        .map(|(name, value)| format!("{} = {}", key(name), quoted(value)))
        .collect();
    if !labels.is_empty() {
        line("labels", format!("{{ {} }}", labels.join(", ")));
    }
    let receivers: Vec<String> = notification.receivers.iter().map(|name| quoted(name.as_str())).collect();
    line("receivers", format!("[{}]", receivers.join(", ")));
    for (name, value) in &notification.body.annotations {
        match name.as_str() {
            "summary" | "description" => line(name, quoted(value)),
            other => line(&format!("annotations.{}", key(other)), quoted(value)),
        }
    }
    text
}

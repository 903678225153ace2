//! What was expected against what was told: paired by likeness, told as a difference that a person reads at a glance.

use std::fmt::Write as _;

use crate::simulate::{Sent, Simulation};
use engine::explain::ExplainStep;
use model::{Notification, Timestamp, text::harmless};

use super::file::{ExpectedAlert, ExpectedMessage, instant, short};

/// An expectation that differs in so many ways from every alert is told as missing rather than as different.
const TOO_DIFFERENT: usize = 4;

/// What differs.
#[derive(Debug, Default)]
pub(super) struct AlertDifferences {
    /// Each ready to be printed; empty where all is as expected.
    pub lines: Vec<String>,
    /// Rule and token of what was told and should not have been, or the other way round: what to explain.
    pub about: Vec<(String, Option<String>)>,
}

/// What differs between alerts.
pub(super) fn differences(expected: &[&ExpectedAlert], told: &[Notification], start: Timestamp) -> AlertDifferences {
    let mut open: Vec<&Notification> = told.iter().collect();
    let mut unmet: Vec<&ExpectedAlert> = Vec::new();
    // What matches in full is taken out first, so that the rest is paired with what is left.
    for wanted in expected {
        match open.iter().position(|notification| ways(wanted, notification, start).is_empty()) {
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
            .filter(|(_, notification)| notification.body.rule == wanted.rule && is_of(wanted, notification))
            .map(|(at, notification)| (ways(wanted, notification, start), at))
            .min_by_key(|(ways, _)| ways.len())
            .filter(|(ways, _)| ways.len() <= TOO_DIFFERENT);
        match nearest {
            Some((ways, at)) => {
                let notification = open.remove(at);
                lines.push(format!("  told otherwise: {}", head(notification)));
                lines.extend(ways.into_iter().flat_map(|way| way.lines()));
            }
            None => {
                lines.push(format!("- expected, but not told: {}", sketch(wanted)));
                explain(&wanted.rule, wanted.token.as_deref());
            }
        }
    }
    for notification in open {
        explain(&notification.body.rule, notification.body.token.as_ref().map(|token| token.id.as_str()));
        lines.push("+ told, but not expected:".to_owned());
        lines.extend(as_toml(notification).lines().map(|line| format!("+     {line}")));
    }
    AlertDifferences { lines, about }
}

/// Differences that are explained; of more, the first.
const MAX_EXPLAINED: usize = 3;

/// Why rules told what they told, or did not, step by step.
pub(super) fn explanations(about: &[(String, Option<String>)], simulation: &Simulation<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let told = about.iter().take(MAX_EXPLAINED).flat_map(|(rule, token)| simulation.explain(rule, token.as_deref()));
    for explanation in told {
        lines.push(format!("  why: {}", harmless(&explanation.about)));
        explanation.steps.iter().for_each(|step| branch(&mut lines, step, 4));
        lines.push(format!("    so: {}", harmless(&explanation.so)));
    }
    lines
}

fn branch(lines: &mut Vec<String>, step: &ExplainStep, indent: usize) {
    lines.push(format!("{}{} {}", " ".repeat(indent), step.mark.sign(), harmless(&step.text)));
    step.parts.iter().for_each(|part| branch(lines, part, indent + 2));
}

/// As [`differences`], of messages.
pub(super) fn message_differences(expected: &[&ExpectedMessage], sent: &[&Sent], start: Timestamp) -> Vec<String> {
    let mut open: Vec<&Sent> = sent.to_vec();
    let mut unmet: Vec<&ExpectedMessage> = Vec::new();
    for wanted in expected {
        match open.iter().position(|sent| message_ways(wanted, sent, start).is_empty()) {
            Some(at) => _ = open.remove(at),
            None => unmet.push(wanted),
        }
    }
    let mut lines = Vec::new();
    for wanted in unmet {
        match open.iter().position(|sent| sent.receiver.as_str() == wanted.receiver) {
            Some(at) => {
                let sent = open.remove(at);
                lines.push(format!("  sent otherwise: {}", message_head(sent)));
                lines.extend(message_ways(wanted, sent, start).into_iter().flat_map(Difference::lines));
            }
            None => lines.push(format!("- expected, but not sent: a message to {}", harmless(&wanted.receiver))),
        }
    }
    for sent in open {
        lines.push("+ sent, but not expected:".to_owned());
        lines.extend(message_as_toml(sent).lines().map(|line| format!("+     {line}")));
    }
    lines
}

fn message_ways(wanted: &ExpectedMessage, sent: &Sent, start: Timestamp) -> Vec<Difference> {
    let mut ways = Vec::new();
    let mut differ = |what: &str, expected: String, told: String| {
        if expected != told {
            ways.push(Difference { what: what.to_owned(), expected, told });
        }
    };
    differ("receiver", wanted.receiver.clone(), sent.receiver.to_string());
    if let Some(Ok(at)) = wanted.at.as_ref().map(|at| instant(at, Some(start))) {
        differ("at", at.to_rfc3339(), sent.at.to_rfc3339());
    }
    if let Some(shape) = &wanted.shape {
        differ("shape", shape.clone(), sent.bundle.shape.as_str().to_owned());
    }
    if let Some(alerts) = &wanted.alerts {
        differ("alerts", alerts.join(", "), rules_of(sent).join(", "));
    }
    if let Some(count) = wanted.count {
        differ("count", count.to_string(), (sent.told.len() + sent.counted.len()).to_string());
    }
    ways
}

fn rules_of(sent: &Sent) -> Vec<&str> {
    sent.told.iter().map(|notification| notification.body.rule.as_str()).collect()
}

fn message_head(sent: &Sent) -> String {
    let alerts = sent.told.len() + sent.counted.len();
    let at = sent.at.format("%Y-%m-%d %H:%M:%S");
    format!("{} to {} ({}), at {at}", model::format::count(alerts, "alert"), sent.receiver, sent.bundle.shape.as_str())
}

/// A message as a test file writes it.
fn message_as_toml(sent: &Sent) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let rules: Vec<String> = rules_of(sent).into_iter().map(quoted).collect();
    let mut text = format!(
        "[[test.expect.message]]\nreceiver = {}\nat = {}\nshape = {}\nalerts = [{}]\n",
        quoted(sent.receiver.as_str()),
        sent.at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true),
        quoted(sent.bundle.shape.as_str()),
        rules.join(", ")
    );
    if !sent.counted.is_empty() {
        let _ = writeln!(text, "count = {}", sent.told.len() + sent.counted.len());
    }
    text
}

/// One way in which an alert is not what was expected.
struct Difference {
    what: String,
    expected: String,
    told: String,
}

impl Difference {
    fn lines(self) -> Vec<String> {
        let Difference { what, expected, told } = self;
        let mut lines = vec![format!("      {what}")];
        // Texts of several lines are shown line by line, and only from where they part.
        let (wanted, got): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), told.lines().collect());
        let same = wanted.iter().zip(&got).take_while(|(a, b)| a == b).count();
        if same > 0 {
            lines.push(format!("          … {same} line{} alike", if same == 1 { "" } else { "s" }));
        }
        lines.extend(wanted.iter().skip(same).map(|line| format!("        - {}", harmless(line))));
        lines.extend(got.iter().skip(same).map(|line| format!("        + {}", harmless(line))));
        if let (Some(wanted), Some(got), true) = (wanted.get(same), got.get(same), wanted.len() == 1 && got.len() == 1) {
            let column = wanted.chars().zip(got.chars()).take_while(|(a, b)| a == b).count();
            if column >= 8 {
                lines.push(format!("          {}^ from here", " ".repeat(column)));
            }
        }
        lines
    }
}

fn is_of(wanted: &ExpectedAlert, notification: &Notification) -> bool {
    let token = notification.body.token.as_ref();
    wanted.token.as_deref().is_none_or(|wanted| token.is_some_and(|token| token.id == wanted || token.symbol == wanted))
}

fn ways(wanted: &ExpectedAlert, notification: &Notification, start: Timestamp) -> Vec<Difference> {
    let mut ways = Vec::new();
    let mut differ = |what: &str, expected: String, told: String| {
        if expected != told {
            ways.push(Difference { what: what.to_owned(), expected, told });
        }
    };
    differ("rule", wanted.rule.clone(), notification.body.rule.clone());
    if !is_of(wanted, notification) {
        let told = notification.body.token.as_ref().map_or_else(|| "(none)".to_owned(), |token| token.id.clone());
        differ("token", wanted.token.clone().unwrap_or_default(), told);
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
        let told = notification.body.labels.get(name).map_or_else(|| "(no such label)".to_owned(), |told| format!("{told:?}"));
        differ(&format!("label {name}"), format!("{value:?}"), told);
    }
    for (name, text) in wanted.texts() {
        let told = notification.body.annotations.get(name).map_or("(no such annotation)", String::as_str);
        differ(name, text.trim().to_owned(), told.trim().to_owned());
    }
    if let Some(receivers) = &wanted.receivers {
        let list = |mut names: Vec<String>| {
            names.sort();
            if names.is_empty() { "nobody".to_owned() } else { names.join(", ") }
        };
        let told = notification.receivers.iter().map(ToString::to_string).collect();
        differ("receivers", list(receivers.clone()), list(told));
    }
    ways
}

fn head(notification: &Notification) -> String {
    let token = notification.body.token.as_ref().map(|token| format!(" of {}", harmless(&token.id))).unwrap_or_default();
    let at = notification.at.format("%Y-%m-%d %H:%M");
    format!("{}{token}, {} ({}), at {at}", notification.body.rule, short(notification.kind), notification.body.reason)
}

fn sketch(wanted: &ExpectedAlert) -> String {
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

/// An alert as a test file writes it, ready to be copied into one.
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

//! The list of messages of a report: what was sent, and what was not told.

use serde::Serialize;

use super::super::{BacktestMessage, BacktestNotification, BacktestRun, UndeliveredNotification, joint_messages};
use super::MAX_ALERTS;
use model::{BatchKind, Timestamp, format};

/// Messages that are listed; all are in the counts, and in the JSON and CSV of the command.
const MAX_LISTED: usize = 2_000;
/// Classes of severity, the gravest first.
pub(super) const CLASSES: [&str; 4] = ["critical", "warning", "info", "other"];

/// One thing that the list shows.
pub(super) enum ReportEntry<'a> {
    /// A message, with all who would have got it.
    Sent(&'a BacktestMessage, Vec<&'a str>),
    Undelivered(&'a UndeliveredNotification),
}

impl<'a> ReportEntry<'a> {
    /// All of a run, in the order of time.
    pub fn all(run: &'a BacktestRun) -> Vec<Self> {
        let sent = joint_messages(&run.messages).map(|(message, receivers)| ReportEntry::Sent(message, receivers));
        let mut entries: Vec<Self> = sent.chain(run.undelivered.iter().map(ReportEntry::Undelivered)).collect();
        entries.sort_by_key(ReportEntry::at);
        entries
    }

    pub fn at(&self) -> Timestamp {
        match self {
            ReportEntry::Sent(message, _) => message.at,
            ReportEntry::Undelivered(undelivered) => undelivered.notification.at,
        }
    }

    /// What it tells, or would have told.
    pub fn notifications(&self) -> Vec<&'a BacktestNotification> {
        match self {
            ReportEntry::Sent(message, _) => message.told.iter().chain(&message.counted).map(|one| &**one).collect(),
            ReportEntry::Undelivered(undelivered) => vec![&undelivered.notification],
        }
    }
}

/// The class of a notification by its severity.
pub(super) fn severity(notification: &BacktestNotification) -> &'static str {
    match notification.labels.get("severity").map(String::as_str) {
        Some("critical" | "page" | "error") => "critical",
        Some("warning") => "warning",
        Some("info" | "notice") => "info",
        _ => "other",
    }
}

#[derive(Serialize)]
pub(super) struct EntryRow {
    index: usize,
    /// One on each line.
    rules: String,
    day: String,
    time: String,
    class: String,
    title: String,
    /// Where it tells several.
    alerts: Vec<AlertRow>,
    more_alerts: usize,
    is_digest: bool,
    description: Option<String>,
    /// To whom it went, or why it did not.
    status: String,
}

/// An alert among several of one message.
#[derive(Serialize)]
struct AlertRow {
    class: String,
    summary: String,
    rule: String,
    reason: String,
}

impl EntryRow {
    pub fn all(entries: &[ReportEntry<'_>]) -> Vec<Self> {
        entries.iter().enumerate().take(MAX_LISTED).filter_map(|(index, entry)| Self::of(index, entry)).collect()
    }

    fn of(index: usize, entry: &ReportEntry<'_>) -> Option<Self> {
        let notifications = entry.notifications();
        let first = notifications.first()?;
        let mut rules: Vec<&str> = notifications.iter().map(|notification| notification.rule.as_str()).collect();
        rules.sort_unstable();
        rules.dedup();
        let (not, status) = match entry {
            ReportEntry::Sent(_, receivers) => ("", format!("to {}", receivers.join(", "))),
            ReportEntry::Undelivered(undelivered) => (" not", why_undelivered(undelivered)),
        };
        let end = if notifications.iter().all(|notification| notification.is_end()) { " end" } else { "" };
        let row = Self {
            index,
            rules: rules.join("\n"),
            day: entry.at().format("%Y-%m-%d").to_string(),
            time: entry.at().format("%H:%M").to_string(),
            class: format!("{}{end}{not}", severity(first)),
            title: first.summary.clone(),
            alerts: Vec::new(),
            more_alerts: 0,
            is_digest: matches!(entry, ReportEntry::Sent(message, _) if message.shape == BatchKind::Digest),
            description: first.description.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned),
            status,
        };
        Some(match entry {
            ReportEntry::Sent(message, _) if notifications.len() > 1 => row.of_several(message),
            _ if row.is_digest => row,
            _ => Self { status: format!("{} · {} · {}", first.rule, first.reason, row.status), ..row },
        })
    }

    /// A message about several alerts.
    fn of_several(self, message: &BacktestMessage) -> Self {
        let all = message.told.len() + message.counted.len();
        let why = match (&message.note, &message.group_key) {
            (Some(note), _) => format!("{note} · "),
            (None, Some(key)) => format!("group {key} · "),
            (None, None) => String::new(),
        };
        let before = match message.told_before {
            0 => String::new(),
            before => format!("{} told before, still firing · ", format::count(before as usize, "alert")),
        };
        Self {
            title: format::count(all, "alert"),
            alerts: message.told.iter().take(MAX_ALERTS).map(|notification| AlertRow::of(notification)).collect(),
            more_alerts: all.saturating_sub(message.told.len().min(MAX_ALERTS)),
            status: format!("{why}{before}{}", self.status),
            ..self
        }
    }
}

impl AlertRow {
    fn of(notification: &BacktestNotification) -> Self {
        Self {
            class: format!("{}{}", severity(notification), if notification.is_end() { " end" } else { "" }),
            summary: notification.summary.clone(),
            rule: notification.rule.clone(),
            reason: notification.reason.clone(),
        }
    }
}

/// What became of what was not told, in words.
fn why_undelivered(undelivered: &UndeliveredNotification) -> String {
    let to = undelivered.receiver.as_deref().map(|name| format!(", for {name}")).unwrap_or_default();
    match (undelivered.state, &undelivered.holder) {
        ("nobody", _) => "not told: no route takes it".to_owned(),
        ("limited", _) => "not told: left out by the rule's `limit`, counted in its summary".to_owned(),
        ("waiting", _) => format!("not told yet: it still waited at the end{to}"),
        ("silenced", Some(id)) => format!("not told: silenced by {id}{to}"),
        ("inhibited", Some(id)) => format!("not told: inhibited by {id}{to}"),
        (state, _) => format!("not told: {state}{to}"),
    }
}

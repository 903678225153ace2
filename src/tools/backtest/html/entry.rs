//! The list of sent messages and undelivered notifications in a report.

use serde::Serialize;

use super::super::{BacktestMessage, BacktestNotification, BacktestRun, UndeliveredNotification, joint_messages};
use super::MAX_LISTED_ALERTS;
use model::{BatchKind, Timestamp, phrase};

/// The maximum number of entries in the list. Counts, JSON, and CSV include all of them.
const MAX_LISTED: usize = 2_000;
/// The CSS classes of severities, the most severe first.
pub(super) const CLASSES: [&str; 4] = ["critical", "warning", "info", "other"];

/// An entry of the list.
pub(super) enum ReportEntry<'a> {
    /// A message with all its receivers.
    Sent(&'a BacktestMessage, Vec<&'a str>),
    Undelivered(&'a UndeliveredNotification),
}

impl<'a> ReportEntry<'a> {
    /// Returns all entries of a run, sorted by time.
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

    /// Returns the notifications that the entry shows.
    pub fn notifications(&self) -> Vec<&'a BacktestNotification> {
        match self {
            ReportEntry::Sent(message, _) => message.notified.iter().chain(&message.counted).map(|one| &**one).collect(),
            ReportEntry::Undelivered(undelivered) => vec![&undelivered.notification],
        }
    }
}

/// Returns the CSS class of a notification's severity.
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
    /// Separated by line breaks.
    rules: String,
    day: String,
    time: String,
    class: String,
    title: String,
    /// Empty if the message is about one alert.
    alerts: Vec<AlertRow>,
    more_alerts: usize,
    is_digest: bool,
    description: Option<String>,
    /// The receivers, or the reason why it was not sent.
    status: String,
}

/// An alert in a message about several alerts.
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
            ReportEntry::Sent(message, _) if notifications.len() > 1 => row.with_alerts(message),
            _ if row.is_digest => row,
            _ => Self { status: format!("{} · {} · {}", first.rule, first.reason, row.status), ..row },
        })
    }

    /// Returns the row of a message about several alerts.
    fn with_alerts(self, message: &BacktestMessage) -> Self {
        let all = message.notified.len() + message.counted.len();
        let why = match (&message.note, &message.group_key) {
            (Some(note), _) => format!("{note} · "),
            (None, Some(key)) => format!("group {key} · "),
            (None, None) => String::new(),
        };
        let before = match message.notified_before {
            0 => String::new(),
            before => format!("{} already sent, still firing · ", phrase::count(before as usize, "alert")),
        };
        Self {
            title: phrase::count(all, "alert"),
            alerts: message.notified.iter().take(MAX_LISTED_ALERTS).map(|notification| AlertRow::of(notification)).collect(),
            more_alerts: all.saturating_sub(message.notified.len().min(MAX_LISTED_ALERTS)),
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

/// Describes why a notification was not delivered.
fn why_undelivered(undelivered: &UndeliveredNotification) -> String {
    let to = undelivered.receiver.as_deref().map(|name| format!(" to {name}")).unwrap_or_default();
    match (undelivered.state, &undelivered.suppressor) {
        ("nobody", _) => "not sent: no route matches".to_owned(),
        ("limited", _) => "not sent: above the rule's `limit`, counted in its summary".to_owned(),
        ("waiting", _) => format!("not sent{to}: pending at the end"),
        ("silenced", Some(id)) => format!("not sent{to}: silenced by {id}"),
        ("inhibited", Some(id)) => format!("not sent{to}: inhibited by {id}"),
        (state, _) => format!("not sent{to}: {state}"),
    }
}

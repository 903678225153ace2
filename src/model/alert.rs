//! Alerts: their identity, states, and notifications.
//!
//! An alert is a rule that matches a subject, once for each episode. A [`Notification`] reports one transition of it: firing, a
//! reminder, resolved, or an event that happened once. Ids are derived from these facts, so that storing the same evaluation twice
//! leaves one row. `engine::evaluate` decides the transitions.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::text::fingerprint;
use crate::{
    AlertId, Change, Interval, NotificationId, Precision, RateStep, ReceiverName, RecordKey, Resource, RuleId, Timestamp,
    TokenId, span_of_days,
};

/// The annotation of a resolved alert that contains its outcome.
pub const OUTCOME: &str = "outcome";

/// The label with the slug of the token.
pub const TOKEN_LABEL: &str = "token";

/// The prefix of the subject of an alert about a group as a whole. The name of the group follows.
pub const GROUP_SUBJECT: &str = "portfolio/";

pub type Labels = BTreeMap<String, String>;

/// The rule of all alerts about the source, receivers, and the daemon. Also their alert name, unless a rule with `on = "source"`
/// gives another.
pub const SOURCE_TROUBLE: &str = "SourceTrouble";

/// The alert name of digests.
pub const DIGEST: &str = "Digest";

words! {
    AlertState {
        /// The condition is true, but not yet for as long as `for` requires.
        Pending = "pending",
        /// A notification was sent, and the alert has not ended.
        Firing = "firing",
        Resolved = "resolved",
        /// An event without an end: a change, a burn, a buyback, or a funding round.
        Event = "event",
    }
}

words! {
    /// The reason why an alert ended.
    Resolution {
        /// The date of the unlock has passed.
        Passed = "passed",
        /// The condition is no longer true.
        Cleared = "cleared",
        /// The unlock moved beyond the lead time.
        RescheduledOut = "rescheduled out",
        /// The record was removed.
        Removed = "removed",
        /// The rule was deleted, disabled, or no longer covers the token.
        RuleGone = "rule gone",
        /// The config no longer selects the token.
        Unwatched = "unwatched",
        /// The source lists the token under a new slug. Its alerts continue there.
        Renamed = "renamed",
    }
}

/// An alert as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// Derived from rule, subject, and episode by [`alert_id`].
    pub id: AlertId,
    /// The rule's `id`, or its `alert` name without one. An `id` survives a change of the name.
    pub rule: RuleId,
    /// The rule's `alert` name, which messages show.
    pub name: String,
    /// The subject of the alert, such as `unlock/arbitrum/2024-03-16T01:00:00Z`. Unique within the rule.
    pub subject: String,
    /// 1 for the first time that this rule matched this subject.
    pub episode: u32,
    pub state: AlertState,
    pub resolution: Option<Resolution>,
    pub token: Option<TokenId>,
    /// `None` if the alert is not about a record.
    pub resource: Option<Resource>,
    pub key: Option<RecordKey>,
    /// The index of the rule's level that set the labels.
    pub level: Option<u32>,
    /// The labels as last rendered, including `alertname` and `token`.
    pub labels: Labels,
    /// Labels that the alert had while it fired, without the current ones. Receivers may know the alert by them.
    pub former_labels: Vec<Labels>,
    /// The annotations as last rendered. They follow the facts while the alert is open. A resolved alert has the annotation `outcome`.
    pub annotations: BTreeMap<String, String>,
    /// Receivers that were notified that the alert fires. They are also notified when it is resolved.
    pub notified: Vec<ReceiverName>,
    /// Lead times that notifications were sent for, as the rule writes them.
    pub leads: Vec<String>,
    /// For an incident of the source: the failing feeds as `endpoint/token`, sorted. The incident ends when each of them responded.
    pub members: Vec<String>,
    /// The first instant at which the condition was true.
    pub active_at: Timestamp,
    /// The instant at which the alert fired or the event happened.
    pub starts_at: Option<Timestamp>,
    pub ends_at: Option<Timestamp>,
    /// The instant from which the condition is no longer true, while `keep_firing_for` is running.
    pub false_since: Option<Timestamp>,
    /// The record's date at the last evaluation. A reschedule is detected by comparison with it.
    pub due: Option<Interval>,
    /// The next instant at which the alert can change without new data.
    pub recheck_at: Option<Timestamp>,
    /// The time of the last change of the annotations, if that is after `updated_at`; else `None`.
    pub text_at: Option<Timestamp>,
    /// The time of the last transition, or of the last change of date or level. Text that follows drifting values does not count.
    pub updated_at: Timestamp,
}

/// The maximum number of former label sets of one alert; the oldest are dropped.
pub const MAX_FORMER_LABELS: usize = 8;

impl Alert {
    /// Sets the labels, and keeps the previous ones as former labels if the alert fires.
    pub fn relabel(&mut self, labels: Labels) {
        let before = std::mem::replace(&mut self.labels, labels);
        if self.state == AlertState::Firing && !before.is_empty() && before != self.labels {
            self.former_labels.push(before);
        }
        let labels = &self.labels;
        self.former_labels.retain(|former| former != labels);
        self.former_labels.drain(..self.former_labels.len().saturating_sub(MAX_FORMER_LABELS));
    }
}

words! {
    /// The kind of a notification: `type` of the webhook body.
    NotificationKind {
        /// The alert started to fire.
        Firing = "alert.firing",
        /// The alert still fires, and reached the next lead time or a higher level.
        Reminder = "alert.reminder",
        Resolved = "alert.resolved",
        /// An event that happened once.
        Event = "alert.event",
        /// A digest of upcoming unlocks and changes, sent at a scheduled time.
        Digest = "digest",
        /// An incident of the source, a receiver, or the daemon.
        Source = "source",
        /// A test that a user requested.
        Test = "test",
    }
}

impl NotificationKind {
    /// The types that a receiver can choose. A test is always sent, because a user requested it.
    pub const SELECTABLE: [&'static str; 6] = [
        Self::Firing.as_str(),
        Self::Reminder.as_str(),
        Self::Resolved.as_str(),
        Self::Event.as_str(),
        Self::Digest.as_str(),
        Self::Source.as_str(),
    ];
}

words! {
    /// Whether an alert in a message still fires.
    AlertStatus {
        /// The alert fires, or is an event that happened once.
        Firing = "firing",
        Resolved = "resolved",
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenBody {
    pub id: String,
    pub name: String,
    pub symbol: String,
}

/// The source of the facts in a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceBody {
    /// The time of the poll that last confirmed the record.
    pub polled_at: Option<Timestamp>,
    /// `INTERNAL`, `AI`, `EXTERNAL`, or an unknown value as the source sent it.
    pub listed_method: Option<String>,
    /// The origin of the schedule, as the source names it.
    pub data_source: Option<String>,
    /// The source's own date of its last update.
    pub latest_update_date: Option<Timestamp>,
}

/// One alert in a message: an item of `alerts` in the webhook body. Mail and commands show it too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AlertBody {
    pub id: AlertId,
    pub rule: String,
    /// Whether the alert fires. An unknown word counts as `firing`, so that a message stored by another version is still sent.
    #[serde(deserialize_with = "status_or_firing")]
    pub status: AlertStatus,
    /// Why the notification is sent: `lead 7d`, `level 2`, `passed`, `rescheduled`, and so on.
    pub reason: String,
    pub labels: Labels,
    /// Labels that the alert had before while it fired, such as the labels of a lower level. Left out of JSON if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_labels: Vec<Labels>,
    pub annotations: BTreeMap<String, String>,
    pub starts_at: Timestamp,
    pub ends_at: Option<Timestamp>,
    /// `None` if the alert is about the source.
    pub token: Option<TokenBody>,
    /// `None` if the alert is not about a record.
    pub resource: Option<Resource>,
    /// The record as the API's JSON.
    pub record: Option<serde_json::Value>,
    pub change: Option<Change>,
    /// Days until the record's date, negative after it.
    pub days_until: Option<f64>,
    /// The record's date as text: `in March 2026`, `on 12 Mar 2026, 09:00 UTC`.
    #[serde(default)]
    pub when: Option<String>,
    /// The lead time that triggered the notification, as the rule writes it.
    pub lead: Option<String>,
    /// The identity of the event: `unlock/arbitrum/…`. The same for all rules, and when the record is rescheduled or resized.
    /// `None` if the alert is not about a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// For an unlock: nearby unlocks of the schedule and itself, by date, at most [`MAX_SERIES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<SeriesPoint>,
    /// For the end of linear unlocks: the change of the daily release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_change: Option<RateChangeBody>,
    /// For a group of tokens: its tokens, largest value first, at most [`MAX_MEMBERS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberBody>,
    /// For a token or a group: the value in USD of the first window in the rule's condition. Left out of JSON if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The time of the prices behind the values, if it is older than `[source] stale_price`. For a group, the oldest of them. Left out of
    /// JSON otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_price_as_of: Option<Timestamp>,
    pub source: SourceBody,
    /// The rule's `limit` if it left the alert out. The alert is stored then, but never sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_by: Option<u32>,
}

impl AlertBody {
    /// Returns the body of an alert that fires since `at`, without other facts.
    #[must_use]
    pub fn firing(id: AlertId, rule: &str, reason: &str, at: Timestamp) -> Self {
        Self {
            id,
            rule: rule.to_owned(),
            status: AlertStatus::Firing,
            reason: reason.to_owned(),
            labels: Labels::default(),
            former_labels: Vec::new(),
            annotations: BTreeMap::new(),
            starts_at: at,
            ends_at: None,
            token: None,
            resource: None,
            record: None,
            change: None,
            days_until: None,
            when: None,
            lead: None,
            event: None,
            series: Vec::new(),
            rate_change: None,
            members: Vec::new(),
            value: None,
            stale_price_as_of: None,
            source: SourceBody::default(),
            left_out_by: None,
        }
    }
}

/// The maximum number of tokens in [`AlertBody::members`].
pub const MAX_MEMBERS: usize = 50;

/// The change of a token's daily linear release in a message, in tokens per day.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RateChangeBody {
    /// The release before. `None` if it is not known.
    pub before: Option<f64>,
    /// The release from then on. `None` if it is not known.
    pub after: Option<f64>,
    /// The token's latest price in USD.
    pub price: Option<f64>,
}

impl RateChangeBody {
    #[must_use]
    pub fn of(step: Option<RateStep>, price: Option<f64>) -> Self {
        Self { before: step.map(|step| step.before), after: step.map(|step| step.after), price }
    }

    /// Returns the change. `None` if it is not known.
    #[must_use]
    pub fn step(&self) -> Option<RateStep> {
        Some(RateStep { before: self.before?, after: self.after? })
    }
}

/// A token of a group in a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberBody {
    pub token: TokenBody,
    /// Percent of the group's market cap; `None` if unknown.
    pub share: Option<f64>,
    /// Tokens in the rule's first window.
    pub amount: Option<f64>,
    /// USD in the rule's first window.
    pub value: Option<f64>,
}

fn status_or_firing<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<AlertStatus, D::Error> {
    Ok(AlertStatus::parse(&String::deserialize(deserializer)?).unwrap_or(AlertStatus::Firing))
}

words! {
    /// The severity of an alert, for colors, priorities, and precedence. Ordered from least to most severe.
    #[derive(Default, PartialOrd, Ord)]
    Severity {
        /// The alert is resolved.
        Good = "good",
        /// For information only.
        #[default]
        Info = "info",
        /// May need attention by an operator.
        Warning = "warning",
        /// Needs action by an operator.
        Critical = "critical",
    }
}

impl Severity {
    /// Reads the label `severity` of a firing alert.
    pub fn from_label(severity: Option<&str>) -> Self {
        match severity.map(str::to_ascii_lowercase).as_deref() {
            Some("critical" | "page" | "error") => Severity::Critical,
            Some("warning") => Severity::Warning,
            _ => Severity::Info,
        }
    }
}

/// The precedence of a notification: most severe first, then most valuable, then nearest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Precedence {
    pub severity: Severity,
    /// The value of the record or of the sum in USD.
    pub value: Option<f64>,
    /// The date of the record.
    pub due: Option<Timestamp>,
}

impl Precedence {
    /// Compares precedence: the one to send first is less.
    pub fn order(&self, other: &Self) -> Ordering {
        let value = |of: &Self| of.value.unwrap_or(f64::NEG_INFINITY);
        let due = |of: &Self| of.due.unwrap_or(Timestamp::MAX_UTC);
        let by_severity = other.severity.cmp(&self.severity);
        by_severity.then_with(|| value(other).total_cmp(&value(self))).then_with(|| due(self).cmp(&due(other)))
    }
}

impl AlertBody {
    pub fn severity(&self) -> Severity {
        if self.status == AlertStatus::Resolved {
            return Severity::Good;
        }
        Severity::from_label(self.labels.get("severity").map(String::as_str))
    }

    /// Returns the precedence at `at`, the time of the decision.
    pub fn precedence(&self, at: Timestamp) -> Precedence {
        const VALUES: [&str; 4] = ["/cliffUnlocks/cliffValue", "/unlockValue", "/value", "/linearUnlocks/linearValue"];
        let record = self.record.as_ref();
        let value = VALUES.iter().find_map(|place| record?.pointer(place)?.as_f64()).or(self.value);
        let due = self.days_until.and_then(|days| at.checked_add_signed(span_of_days(days)?));
        Precedence { severity: self.severity(), value, due }
    }
}

/// The maximum number of points in [`AlertBody::series`].
pub const MAX_SERIES: usize = 36;

/// One unlock of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    pub at: Timestamp,
    /// Tokens of the cliff unlock.
    pub amount: f64,
    /// The precision of the date. Left out of JSON if it is an instant.
    #[serde(default = "exact", skip_serializing_if = "is_exact")]
    pub precision: Precision,
}

fn exact() -> Precision {
    Precision::Second
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_exact(precision: &Precision) -> bool {
    *precision == Precision::Second
}

/// One message-worthy fact about an alert, with its receivers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notification {
    /// Derived from the alert and the transition by [`notification_id`].
    pub id: NotificationId,
    pub alert: AlertId,
    pub kind: NotificationKind,
    /// The time of the decision.
    pub at: Timestamp,
    /// Each gets one delivery. If empty, the notification is stored but not sent.
    pub receivers: Vec<ReceiverName>,
    pub body: AlertBody,
}

/// An event of a rule with a `limit`. It is stored until its cycle ends, because only then the largest events of the cycle are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldEvent {
    /// The rule's `limit` when the event happened.
    pub limit: u32,
    pub alert: Alert,
    pub notification: Notification,
}

impl Notification {
    /// Returns whether this is a digest or a test of one.
    pub fn is_digest(&self) -> bool {
        self.kind == NotificationKind::Digest || (self.kind == NotificationKind::Test && self.body.rule == DIGEST)
    }
}

/// The number of bytes in a derived id.
const ID_BYTES: usize = 10;

/// Returns the id of the alert that `rule` raises for `subject` in an episode, counted from 1.
pub fn alert_id(rule: &RuleId, subject: &str, episode: u32) -> AlertId {
    AlertId::from(format!("al_{}", fingerprint([rule.as_str(), subject, &episode.to_string()], ID_BYTES)))
}

/// Returns the id of a notification. `transition` is unique within the alert: `firing`, `lead 7d`, `resolved`.
pub fn notification_id(alert: &AlertId, transition: &str) -> NotificationId {
    NotificationId::from(format!("no_{}", fingerprint([alert.as_str(), transition], ID_BYTES)))
}

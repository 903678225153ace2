//! What an alert is: its key, states and reasons, and its notifications.
//!
//! An alert is a rule that holds for a subject, once for each episode. A [`Notification`] is news of it: that it fires, a
//! reminder, its end, or an event that happened once. The ids are derived from what they stand for, so that writing the same
//! evaluation twice leaves one row. The transitions are in `engine::evaluate`.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::text::fingerprint;
use crate::{
    AlertId, Change, Interval, NotificationId, Precision, ReceiverName, RecordKey, Resource, RuleId, Timestamp, TokenId,
    span_of_days,
};

/// Labels of an alert, by name.
pub type Labels = BTreeMap<String, String>;

/// The rule of all alerts about the source, receivers and this program itself, and their name unless a rule `on = "source"` gives them its own.
pub const SOURCE_TROUBLE: &str = "SourceTrouble";

/// The name under which digests are told.
pub const DIGEST: &str = "Digest";

words! {
    AlertState {
        /// Its condition holds, but not yet for as long as `for` asks.
        Pending = "pending",
        /// It was notified and has not ended.
        Firing = "firing",
        Resolved = "resolved",
        /// It happened once and has no end: a change, a burn, a buyback, a round.
        Event = "event",
    }
}

words! {
    /// Why an alert ended.
    Resolution {
        /// The unlock is over.
        Passed = "passed",
        /// The condition no longer holds.
        Cleared = "cleared",
        /// The unlock moved out of the window.
        RescheduledOut = "rescheduled out",
        /// The record is gone.
        Removed = "removed",
        /// The rule was deleted, disabled, or no longer covers the token.
        RuleGone = "rule gone",
        /// The config no longer watches the token.
        Unwatched = "not watched any more",
        /// The source lists its token under another slug, under which it goes on.
        Renamed = "renamed",
    }
}

/// An alert as the database keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// Derived from rule, subject and episode: [`alert_id`].
    pub id: AlertId,
    /// The rule's identity; survives a renamed `alert` where the rule has an `id`.
    pub rule: RuleId,
    /// The rule's `alert` name, as messages show it (`SourceTrouble` for alerts about the source).
    pub name: String,
    /// What it is about, such as `unlock/arbitrum/2024-03-16T01:00:00Z`, unique within its rule.
    pub subject: String,
    /// 1 for the first time this rule held for this subject.
    pub episode: u32,
    pub state: AlertState,
    /// Why it ended.
    pub resolution: Option<Resolution>,
    pub token: Option<TokenId>,
    /// The kind of record, where it is about one.
    pub resource: Option<Resource>,
    pub key: Option<RecordKey>,
    /// Index of the rule's level that set the labels.
    pub level: Option<u32>,
    /// Labels as last rendered, `alertname` and `token` included.
    pub labels: Labels,
    /// Labels that it had before while it fired, the present ones not among them: others know an alert by its labels.
    pub former_labels: Vec<Labels>,
    /// Annotations as last rendered.
    pub annotations: BTreeMap<String, String>,
    /// Receivers that were notified that it fires: the same are notified of its end.
    pub told: Vec<ReceiverName>,
    /// Lead times already notified, as the rule writes them.
    pub leads: Vec<String>,
    /// For trouble with the source: the feeds that fail, as `endpoint/token`, sorted. It ends when each has answered since.
    pub members: Vec<String>,
    /// When the condition first held.
    pub active_at: Timestamp,
    /// When it began to fire, or happened.
    pub starts_at: Option<Timestamp>,
    pub ends_at: Option<Timestamp>,
    /// Since when the condition no longer holds while `keep_firing_for` still counts.
    pub false_since: Option<Timestamp>,
    /// The record's time when it was last evaluated: a move shows against it.
    pub due: Option<Interval>,
    /// Next instant at which time alone may change it.
    pub recheck_at: Option<Timestamp>,
    /// Last transition or rendering.
    pub updated_at: Timestamp,
}

/// Most label sets that are remembered of one alert; the oldest go first.
pub const MAX_FORMER_LABELS: usize = 8;

impl Alert {
    /// Gives it the labels as they are rendered now, and remembers those that it had while it fired.
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
    /// What kind of message a notification makes: `type` of the webhook body.
    NotificationKind {
        /// It began to fire.
        Firing = "alert.firing",
        /// It still fires: the next lead time, a higher level.
        Reminder = "alert.reminder",
        Resolved = "alert.resolved",
        /// It happened, once.
        Event = "alert.event",
        /// What is ahead and what changed, at a wall-clock time.
        Digest = "digest",
        /// About the source, a receiver or this program rather than a token.
        Source = "source",
        /// A test by hand.
        Test = "test",
    }
}

words! {
    /// What a message says of an alert: that it goes on, or that it is over.
    AlertStatus {
        /// It fires, or happened once.
        Firing = "firing",
        Resolved = "resolved",
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenBody {
    /// Slug.
    pub id: String,
    pub name: String,
    pub symbol: String,
}

/// Where the facts of a message come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceBody {
    /// When the source last said so.
    pub polled_at: Option<Timestamp>,
    /// `INTERNAL`, `AI`, `EXTERNAL`, or what came.
    pub listed_method: Option<String>,
    /// Origin of the schedule.
    pub data_source: Option<String>,
    /// The source's own mark of change.
    pub latest_update_date: Option<Timestamp>,
}

/// One alert in a message: an item of `alerts` in the webhook body, and what mail and the look commands are made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AlertBody {
    pub id: AlertId,
    pub rule: String,
    /// Whether it goes on. An unknown word counts as `firing`, so that a message of another version still goes out.
    #[serde(deserialize_with = "status_or_firing")]
    pub status: AlertStatus,
    /// Why it is sent now: `lead 7d`, `level 2`, `passed`, `rescheduled`, …
    pub reason: String,
    pub labels: Labels,
    /// Labels that it had before while it fired, such as those of a lower level; left out of JSON where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_labels: Vec<Labels>,
    /// Annotations, rendered.
    pub annotations: BTreeMap<String, String>,
    pub starts_at: Timestamp,
    pub ends_at: Option<Timestamp>,
    /// The token; null where it is about the source.
    pub token: Option<TokenBody>,
    /// `unlock`, `burn`, …; null where it is about the source.
    pub resource: Option<Resource>,
    /// The record in the API's shape.
    pub record: Option<serde_json::Value>,
    pub change: Option<Change>,
    /// Days until the record's time, negative after it.
    pub days_until: Option<f64>,
    /// The record's time in words: `in March 2026`, `on 12 Mar 2026, 09:00 UTC`.
    #[serde(default)]
    pub when: Option<String>,
    /// The lead time that it is about.
    pub lead: Option<String>,
    /// What it is about, the same for every rule and while the record moves or grows: `unlock/arbitrum/…`. None where it is about
    /// no record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// For an unlock: the schedule around it, by date; at most [`MAX_SERIES`] points, its own among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<SeriesPoint>,
    /// For a group of tokens as a whole: its tokens, what moves most first; at most [`MAX_MEMBERS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberBody>,
    /// Where the facts come from.
    pub source: SourceBody,
    /// The rule's `limit`, where that left it out: then it is kept, and never sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_by: Option<u32>,
}

impl AlertBody {
    /// One that fires since `at`, of which nothing more is known.
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
            members: Vec::new(),
            source: SourceBody::default(),
            left_out_by: None,
        }
    }
}

/// Most tokens of [`AlertBody::members`].
pub const MAX_MEMBERS: usize = 50;

/// A token of a group in a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberBody {
    pub token: TokenBody,
    /// Percent of the group's market cap; null where that is not known.
    pub share: Option<f64>,
    /// What the first window that the rule asks for holds of it, tokens.
    pub amount: Option<f64>,
    /// The same, USD.
    pub value: Option<f64>,
}

fn status_or_firing<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<AlertStatus, D::Error> {
    Ok(AlertStatus::parse(&String::deserialize(deserializer)?).unwrap_or(AlertStatus::Firing))
}

words! {
    /// How grave it is, for colours, priorities and the order of what is told; the gravest is the greatest.
    #[derive(Default, PartialOrd, Ord)]
    Tone {
        /// It is over.
        Good = "good",
        /// To know.
        #[default]
        Info = "info",
        /// To look at.
        Warning = "warning",
        /// To act on.
        Critical = "critical",
    }
}

impl Tone {
    /// That of the label `severity`, of what goes on.
    pub fn of_severity(severity: Option<&str>) -> Self {
        match severity.map(str::to_ascii_lowercase).as_deref() {
            Some("critical" | "page" | "error") => Tone::Critical,
            Some("warning") => Tone::Warning,
            _ => Tone::Info,
        }
    }
}

/// How soon it is to be told: the gravest first, of those the most valuable, of those the nearest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Precedence {
    pub tone: Tone,
    /// What its record is worth, USD.
    pub value: Option<f64>,
    /// The record's time.
    pub due: Option<Timestamp>,
}

impl Precedence {
    /// The order in which things are told: what comes first is less.
    pub fn order(&self, other: &Self) -> Ordering {
        let value = |of: &Self| of.value.unwrap_or(f64::NEG_INFINITY);
        let due = |of: &Self| of.due.unwrap_or(Timestamp::MAX_UTC);
        let graver = other.tone.cmp(&self.tone);
        graver.then_with(|| value(other).total_cmp(&value(self))).then_with(|| due(self).cmp(&due(other)))
    }
}

impl AlertBody {
    pub fn tone(&self) -> Tone {
        if self.status == AlertStatus::Resolved {
            return Tone::Good;
        }
        Tone::of_severity(self.labels.get("severity").map(String::as_str))
    }

    /// How soon it is to be told, as of `at`, when it was decided.
    pub fn precedence(&self, at: Timestamp) -> Precedence {
        const VALUES: [&str; 4] = ["/cliffUnlocks/cliffValue", "/unlockValue", "/value", "/linearUnlocks/linearValue"];
        let record = self.record.as_ref();
        let value = VALUES.iter().find_map(|place| record?.pointer(place)?.as_f64());
        let due = self.days_until.and_then(|days| at.checked_add_signed(span_of_days(days)?));
        Precedence { tone: self.tone(), value, due }
    }
}

/// Most points of [`AlertBody::series`].
pub const MAX_SERIES: usize = 36;

/// One unlock of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    pub at: Timestamp,
    /// Tokens that unlock at once.
    pub amount: f64,
    /// How exact its date is; left out of JSON where it is an instant.
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

/// News of an alert, with its receivers.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// Derived from the alert and the transition: [`notification_id`].
    pub id: NotificationId,
    pub alert: AlertId,
    pub kind: NotificationKind,
    /// When it was decided.
    pub at: Timestamp,
    /// Each gets one delivery. Empty: recorded, sent to nobody.
    pub receivers: Vec<ReceiverName>,
    pub body: AlertBody,
}

impl Notification {
    /// Whether it tells a digest: one whose time came, or a test of one.
    pub fn is_digest(&self) -> bool {
        self.kind == NotificationKind::Digest || (self.kind == NotificationKind::Test && self.body.rule == DIGEST)
    }
}

/// Bytes of a derived id.
const ID_BYTES: usize = 10;

/// Id of the alert that `rule` raises for `subject` for the `episode`-th time.
pub fn alert_id(rule: &RuleId, subject: &str, episode: u32) -> AlertId {
    AlertId::from(format!("al_{}", fingerprint([rule.as_str(), subject, &episode.to_string()], ID_BYTES)))
}

/// Id of the notification of `alert` at `transition`, a word that no other transition of the alert has: `firing`, `lead 7d`, `resolved`.
pub fn notification_id(alert: &AlertId, transition: &str) -> NotificationId {
    NotificationId::from(format!("no_{}", fingerprint([alert.as_str(), transition], ID_BYTES)))
}

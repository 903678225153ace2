//! What an alert is: its key, states and reasons, and what is told of it.
//!
//! An alert is a rule that holds for a subject, once for each episode. A [`Notice`] is something to tell of it: that it fires, a
//! reminder, its end, or an event that happened once. The ids are derived from what they stand for, so that writing the same
//! verdict twice leaves one row. The transitions are in [`crate::evaluate`].

use std::collections::BTreeMap;

use ring::digest;
use serde::{Deserialize, Serialize};

use crate::{
    change::Change,
    supply::{AlertId, Interval, NoticeId, Precision, ReceiverName, RecordKey, Resource, RuleId, Timestamp, TokenId},
};

/// Labels of an alert, by name.
pub type Labels = BTreeMap<String, String>;

/// The rule of all alerts about the source, receivers and this program itself, and their name unless a rule `on = "source"` gives them its own.
pub const SOURCE_TROUBLE: &str = "SourceTrouble";

/// Where an alert stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AlertState {
    /// Its condition holds, but not yet for as long as `for` asks.
    Pending,
    /// It was told and has not ended.
    Firing,
    /// It ended.
    Resolved,
    /// It happened once and has no end: a change, a burn, a buyback, a round.
    Event,
}

impl AlertState {
    /// All of them.
    pub const ALL: [AlertState; 4] = [AlertState::Pending, AlertState::Firing, AlertState::Resolved, AlertState::Event];

    /// The word in JSON, tables, metrics and the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            AlertState::Pending => "pending",
            AlertState::Firing => "firing",
            AlertState::Resolved => "resolved",
            AlertState::Event => "event",
        }
    }

    /// The state of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// Why an alert ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Resolution {
    /// The unlock is over.
    #[serde(rename = "passed")]
    Passed,
    /// The condition no longer holds.
    #[serde(rename = "cleared")]
    Cleared,
    /// The unlock moved out of the window.
    #[serde(rename = "rescheduled out")]
    RescheduledOut,
    /// The record is gone.
    #[serde(rename = "removed")]
    Removed,
    /// The rule was deleted, disabled, or no longer covers the token.
    #[serde(rename = "rule gone")]
    RuleGone,
}

impl Resolution {
    /// All of them.
    pub const ALL: [Resolution; 5] =
        [Resolution::Passed, Resolution::Cleared, Resolution::RescheduledOut, Resolution::Removed, Resolution::RuleGone];

    /// The words in messages, tables and the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Resolution::Passed => "passed",
            Resolution::Cleared => "cleared",
            Resolution::RescheduledOut => "rescheduled out",
            Resolution::Removed => "removed",
            Resolution::RuleGone => "rule gone",
        }
    }

    /// The reason of these words.
    #[must_use]
    pub fn parse(words: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == words)
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
    /// Where it stands.
    pub state: AlertState,
    /// Why it ended.
    pub resolution: Option<Resolution>,
    /// The token, where it is about one.
    pub token: Option<TokenId>,
    /// The kind of record, where it is about one.
    pub resource: Option<Resource>,
    /// The record, where it is about one.
    pub key: Option<RecordKey>,
    /// Index of the rule's level that set the labels.
    pub level: Option<u32>,
    /// Labels as last rendered, `alertname` and `token` included.
    pub labels: Labels,
    /// Labels that it had before while it fired, the present ones not among them: others know an alert by its labels.
    pub former_labels: Vec<Labels>,
    /// Annotations as last rendered.
    pub annotations: BTreeMap<String, String>,
    /// Receivers that were told it fires: its end is told to the same.
    pub told: Vec<ReceiverName>,
    /// Lead times already told, as the rule writes them.
    pub leads: Vec<String>,
    /// For trouble with the source: the feeds that fail, as `endpoint/token`, sorted. It ends when each has answered since.
    pub members: Vec<String>,
    /// When the condition first held.
    pub active_at: Timestamp,
    /// When it began to fire, or happened.
    pub starts_at: Option<Timestamp>,
    /// When it ended.
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

/// What kind of message a notice makes: `type` of the webhook body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NoticeKind {
    /// It began to fire.
    #[serde(rename = "alert.firing")]
    Firing,
    /// It still fires: the next lead time, a higher level.
    #[serde(rename = "alert.reminder")]
    Reminder,
    /// It ended.
    #[serde(rename = "alert.resolved")]
    Resolved,
    /// It happened, once.
    #[serde(rename = "alert.event")]
    Event,
    /// What is ahead and what changed, at a wall-clock time.
    #[serde(rename = "digest")]
    Digest,
    /// About the source, a receiver or this program rather than a token.
    #[serde(rename = "source")]
    Source,
    /// A test by hand.
    #[serde(rename = "test")]
    Test,
}

impl NoticeKind {
    /// All of them.
    pub const ALL: [NoticeKind; 7] = [
        NoticeKind::Firing,
        NoticeKind::Reminder,
        NoticeKind::Resolved,
        NoticeKind::Event,
        NoticeKind::Digest,
        NoticeKind::Source,
        NoticeKind::Test,
    ];

    /// `type` of the webhook body.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            NoticeKind::Firing => "alert.firing",
            NoticeKind::Reminder => "alert.reminder",
            NoticeKind::Resolved => "alert.resolved",
            NoticeKind::Event => "alert.event",
            NoticeKind::Digest => "digest",
            NoticeKind::Source => "source",
            NoticeKind::Test => "test",
        }
    }

    /// The kind of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The token in a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenBody {
    /// Slug.
    pub id: String,
    /// Name.
    pub name: String,
    /// Ticker.
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
    /// Id of the alert.
    pub id: AlertId,
    /// Name of the rule.
    pub rule: String,
    /// `firing` or `resolved`.
    pub status: String,
    /// Why it is told now: `lead 7d`, `level 2`, `passed`, `rescheduled`, …
    pub reason: String,
    /// Labels.
    pub labels: Labels,
    /// Labels that it had before while it fired, such as those of a lower level; left out of JSON where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_labels: Vec<Labels>,
    /// Annotations, rendered.
    pub annotations: BTreeMap<String, String>,
    /// When it began.
    pub starts_at: Timestamp,
    /// When it ended.
    pub ends_at: Option<Timestamp>,
    /// The token; null where it is about the source.
    pub token: Option<TokenBody>,
    /// `unlock`, `burn`, …; null where it is about the source.
    pub resource: Option<Resource>,
    /// The record in the API's shape.
    pub record: Option<serde_json::Value>,
    /// The change, where one is told.
    pub change: Option<Change>,
    /// Days until the record's time, negative after it.
    pub days_until: Option<f64>,
    /// The record's time in words: `in March 2026`, `on 12 Mar 2026, 09:00 UTC`.
    #[serde(default)]
    pub when: Option<String>,
    /// The lead time told.
    pub lead: Option<String>,
    /// What it is about, the same for every rule and while the record moves or grows: `unlock/arbitrum/…`. None where it is about
    /// no record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// For an unlock: the schedule around it, by date; at most [`MAX_SERIES`] points, its own among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<SeriesPoint>,
    /// Where the facts come from.
    pub source: SourceBody,
}

/// Most points of [`AlertBody::series`].
pub const MAX_SERIES: usize = 36;

/// One unlock of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Its date.
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

/// Something to tell of an alert, with those who are to hear it.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// Derived from the alert and the transition: [`notice_id`].
    pub id: NoticeId,
    /// Of which alert.
    pub alert: AlertId,
    /// What kind of message.
    pub kind: NoticeKind,
    /// When it was decided.
    pub at: Timestamp,
    /// Each gets one delivery. Empty: recorded, told to nobody.
    pub receivers: Vec<ReceiverName>,
    /// What is told.
    pub body: AlertBody,
}

/// Id of the alert that `rule` raises for `subject` for the `episode`-th time.
#[must_use]
pub fn alert_id(rule: &RuleId, subject: &str, episode: u32) -> AlertId {
    AlertId::from(format!("al_{}", digest_hex(&[rule.as_str(), subject, &episode.to_string()])))
}

/// Id of what is told of `alert` at `transition`, a word that no other transition of the alert has: `firing`, `lead 7d`, `resolved`.
#[must_use]
pub fn notice_id(alert: &AlertId, transition: &str) -> NoticeId {
    NoticeId::from(format!("no_{}", digest_hex(&[alert.as_str(), transition])))
}

/// 80 bits of SHA-256 over the length-prefixed parts, in hexadecimal.
fn digest_hex(parts: &[&str]) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    context.finish().as_ref().iter().take(10).map(|byte| format!("{byte:02x}")).collect()
}

//! Digests: scheduled messages about upcoming cliff and linear unlocks, changes, firing alerts, silences, and incidents. The most valuable items
//! come first, and the same change of many tokens is one line.
//!
//! `engine::digest_schedule` decides when a digest is due. [`Digest`] has the content, and [`Digest::notification`] returns its
//! notification. The store guarantees one digest for each slot, across restarts too: it writes the slot and the notification in one
//! transaction.

mod ahead;
mod changes;
mod gaps;
mod groups;
mod linear;
mod positions;
mod selection;

pub use ahead::{AheadPart, DigestAhead, FirstOf, LargestFirst, TokenAhead, ValuedAlert};
pub use gaps::SupplyGaps;
pub use groups::GroupLine;
pub use linear::{LinearLine, LinearPart, PriceAges, StalePrices, TokenVesting};
pub use positions::PositionLine;
pub use selection::{DigestOrder, DigestSelection};

use std::collections::{BTreeMap, HashMap};

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::{
    Alert, AlertBody, ChangeRow, CliffPiece, DIGEST, Inclusion, Labels, Notification, NotificationKind, NotificationState,
    NotificationStatus, Precedence, ReceiverName, RecordKey, Resource, RuleId, Severity, Silence, SilenceState, SumWindow,
    Timestamp, TokenId, UpcomingRow, alert_id, notification_id, phrase,
};

/// The window in which pages count suppressed notifications.
pub const SUPPRESSED_WINDOW: TimeDelta = TimeDelta::days(1);

/// The maximum number of lines in a section; the others are counted.
pub const MAX_LINES: usize = 50;

/// The prefix of the job names that store the slots of digests.
pub const JOB_PREFIX: &str = "digest/";

/// Returns the job name that stores the slots of a receiver's digest.
pub fn job_name(receiver: &ReceiverName) -> String {
    format!("{JOB_PREFIX}{receiver}")
}

/// The prefix of the job names that store when digests were last created. A slot without recipients creates none, and neither does the one
/// that is stored when a digest is set up.
pub const CREATED_PREFIX: &str = "digest-created/";

/// Returns the job name that stores when the digest of a receiver was last created.
pub fn created_name(receiver: &ReceiverName) -> String {
    format!("{CREATED_PREFIX}{receiver}")
}

/// The content of a digest. Its JSON is the `record` of the notification's body.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Digest {
    /// The previous slot; for the first digest, the start of the look-back.
    pub since: Timestamp,
    /// The slot of this digest.
    pub at: Timestamp,
    /// The end of the look-ahead.
    pub until: Timestamp,
    /// The patterns of the tokens that the digest is about, as in the config. Empty for all watched tokens.
    #[serde(default)]
    pub tokens: Vec<String>,
    /// The unlocks that are listed.
    #[serde(default)]
    pub selection: DigestSelection,
    /// Upcoming cliff unlocks, in the order that the digest sets.
    pub ahead: Vec<AheadLine>,
    /// The number of upcoming cliff unlocks that are not listed.
    pub ahead_left_out: u32,
    /// The value of all upcoming cliff unlocks in USD; `None` if no value is known.
    #[serde(default)]
    pub ahead_value: Option<f64>,
    /// The number of upcoming cliff unlocks without a value.
    #[serde(default)]
    pub ahead_unvalued: u32,
    /// Tokens that unlock linearly in the period, largest value first.
    #[serde(default)]
    pub linear: Vec<LinearLine>,
    /// The number of tokens that unlock linearly and are not listed.
    #[serde(default)]
    pub linear_left_out: u32,
    /// The value of all linear unlocks in USD; `None` if no value is known.
    #[serde(default)]
    pub linear_value: Option<f64>,
    /// The number of tokens whose linear unlocks have no value.
    #[serde(default)]
    pub linear_unvalued: u32,
    /// The value of cliff and linear unlocks in USD; `None` if no value is known.
    #[serde(default)]
    pub total_value: Option<f64>,
    /// The gaps in the known supply of the watched tokens.
    #[serde(default)]
    pub gaps: SupplyGaps,
    /// `None` if no price is stale.
    #[serde(default)]
    pub stale_prices: Option<StalePrices>,
    /// Unlocks that can happen in the period because their month or week has not ended, although their nominal date is outside. No
    /// sum includes them.
    #[serde(default)]
    pub possible: Vec<AheadLine>,
    #[serde(default)]
    pub possible_left_out: u32,
    /// The value of all possible unlocks in USD.
    #[serde(default)]
    pub possible_value: Option<f64>,
    /// Upcoming unlocks of the groups in `[watch.groups]`, largest value first.
    #[serde(default)]
    pub groups: Vec<GroupLine>,
    /// Positions, largest value first. Only in a digest that is sent to a receiver whose config asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub positions: Vec<PositionLine>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub positions_left_out: u32,
    /// Changes since the previous digest, largest value first.
    pub changes: Vec<ChangedLine>,
    /// The number of changes that are not listed.
    pub changes_left_out: u32,
    /// The number of all changes, each counted by itself even if one line lists several.
    #[serde(default)]
    pub changes_count: u32,
    /// Notifications that silences, inhibitions, and acknowledgements suppressed since the previous digest.
    pub held_back: Vec<SuppressedLine>,
    /// The number of suppressed notifications that are not listed.
    pub held_back_left_out: u32,
    #[serde(default)]
    pub silences: Vec<SilencedLine>,
    /// The number of active silences that are not listed.
    #[serde(default)]
    pub silences_left_out: u32,
    /// The number of firing alerts.
    pub firing: u32,
    /// The firing alerts with the highest precedence, without incidents.
    #[serde(default)]
    pub fires: Vec<FiringLine>,
    /// The number of firing alerts that are not listed, without incidents.
    #[serde(default)]
    pub fires_left_out: u32,
    /// Incidents of the source, receivers, and the database, one sentence each.
    #[serde(rename = "trouble")]
    pub incident_summaries: Vec<String>,
}

/// The facts for a digest.
#[derive(Clone, Copy, Debug)]
pub struct DigestMaterial<'a> {
    /// The previous slot.
    pub since: Timestamp,
    pub at: Timestamp,
    /// The length of the look-ahead.
    pub ahead: TimeDelta,
    /// Unlocks from `at` on.
    pub unlocks: &'a DigestAhead,
    /// The patterns of the tokens that the digest is about. Empty for all watched tokens.
    pub tokens: &'a [String],
    /// The unlocks that are listed, and their order.
    pub selection: DigestSelection,
    /// Changes since the previous digest, latest first.
    pub changes: &'a [ChangeRow],
    /// Notifications that were suppressed for the receiver since the previous digest.
    pub statuses: &'a [NotificationStatus],
    /// Silences that have not ended.
    pub silences: &'a [Silence],
    pub firing: u32,
    /// All firing alerts of the highest-ranked events, without incidents.
    pub fires: &'a [&'a ValuedAlert],
    /// The number of firing alerts that are incidents.
    pub incidents: u32,
    /// Incidents, one sentence each.
    pub incident_summaries: &'a [String],
}

impl Digest {
    pub fn of(material: &DigestMaterial<'_>) -> Self {
        let DigestMaterial {
            since,
            at,
            ahead: span,
            unlocks,
            tokens,
            selection,
            changes,
            statuses,
            silences,
            firing,
            fires,
            incidents,
            incident_summaries,
        } = *material;
        let window = SumWindow::of(at, span);
        let (ahead, ahead_more) = unlocks.counted.lines(window, selection);
        let (possible, possible_more) = unlocks.possible.lines(window, selection);
        let groups = groups::groups(unlocks, &ahead);
        let ahead_value = total_value(&ahead, unlocks.counted.more_value);
        let unvalued = ahead.iter().filter(|line| line.value.is_none()).count();
        let linear = &unlocks.linear;
        let linear_value = Some(linear.sum).filter(|sum| sum.count > 0).and_then(|sum| sum.known_value());
        let (changed, changes_count) = (changes::changed_lines(changes), count(changes.len()));
        let held_back: Vec<SuppressedLine> = statuses
            .iter()
            .filter(|status| status.state.is_suppressed())
            .map(|status| SuppressedLine { state: status.state, rule: status.rule.clone(), summary: status.summary.clone() })
            .collect();
        let silences: Vec<SilencedLine> =
            silences.iter().filter(|silence| silence.state(at) == SilenceState::Active).map(SilencedLine::of).collect();
        let fires = first(firing_lines(fires));
        let named: usize = fires.iter().map(|line| 1 + line.also.len()).sum();
        let left_out = |length: usize| count(length.saturating_sub(MAX_LINES));
        Self {
            since,
            at,
            until: window.until,
            tokens: tokens.to_vec(),
            selection,
            total_value: ahead_value.map_or(linear_value, |cliffs| Some(cliffs + linear_value.unwrap_or_default())),
            ahead_value,
            ahead_unvalued: count(unvalued).saturating_add(small(unlocks.counted.more_unvalued)),
            ahead_left_out: ahead_more,
            ahead,
            linear: LinearLine::all(linear, window, selection),
            linear_left_out: small(linear.more),
            linear_value,
            linear_unvalued: small(linear.sum.unvalued_count),
            gaps: unlocks.gaps,
            stale_prices: StalePrices::of(&unlocks.prices),
            possible_value: total_value(&possible, unlocks.possible.more_value),
            possible_left_out: possible_more,
            possible,
            groups,
            positions: Vec::new(),
            positions_left_out: 0,
            changes_left_out: left_out(changed.len()),
            changes: first(changed),
            changes_count,
            held_back_left_out: left_out(held_back.len()),
            held_back: first(held_back),
            silences_left_out: left_out(silences.len()),
            silences: first(silences),
            firing,
            fires_left_out: firing.saturating_sub(incidents).saturating_sub(count(named)),
            fires,
            incident_summaries: incident_summaries.to_vec(),
        }
    }

    /// Returns the notification for `receiver`. The same slot always gives the same id.
    pub fn notification(&self, receiver: &ReceiverName, now: Timestamp) -> Notification {
        let subject = format!("{}/{}", job_name(receiver), self.at.timestamp());
        let alert = alert_id(&RuleId::from(DIGEST), &subject, 1);
        Notification {
            id: notification_id(&alert, "digest"),
            alert: alert.clone(),
            kind: NotificationKind::Digest,
            at: now,
            receivers: vec![receiver.clone()],
            body: AlertBody {
                labels: Labels::from([("alertname".to_owned(), DIGEST.to_owned()), ("severity".to_owned(), "info".to_owned())]),
                annotations: BTreeMap::from([
                    ("summary".to_owned(), phrase::digest::summary(self)),
                    ("description".to_owned(), phrase::digest::text(self)),
                ]),
                record: serde_json::to_value(self).ok(),
                ..AlertBody::firing(alert, DIGEST, "digest", self.at)
            },
        }
    }
}

impl Digest {
    /// Returns a test of the digest for `receiver`. Each test has an id of its own and uses no slot.
    pub fn test_notification(&self, receiver: &ReceiverName, now: Timestamp) -> Notification {
        let mut notification = self.notification(receiver, now);
        let subject = format!("test/{}/{}", job_name(receiver), now.timestamp_millis());
        notification.alert = alert_id(&RuleId::from(DIGEST), &subject, 1);
        notification.id = notification_id(&notification.alert, "test");
        notification.kind = NotificationKind::Test;
        notification.body.id = notification.alert.clone();
        notification.body.reason = "test".to_owned();
        notification.body.annotations.insert("description".to_owned(), phrase::digest::test_text(self));
        notification
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the total value of listed and other unlocks, in USD; `None` if no value is known.
fn total_value(lines: &[AheadLine], more: Option<f64>) -> Option<f64> {
    let known: Vec<f64> = lines.iter().filter_map(|line| line.value).filter(|value| value.is_finite()).chain(more).collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

impl AheadPart {
    /// Returns the lines in the order of the digest, and the number of unlocks that have no line.
    fn lines(&self, window: SumWindow, selection: DigestSelection) -> (Vec<AheadLine>, u32) {
        let mut lines: Vec<AheadLine> =
            self.rows.iter().filter_map(|row| AheadLine::of(row, window)).map(|(line, _)| line).collect();
        lines.sort_by(|a, b| selection.order(a, b));
        let more = small(self.more).saturating_add(count(lines.len().saturating_sub(MAX_LINES)));
        (first(lines), more)
    }
}

/// Returns the lines of firing alerts by precedence, then by rule. Alerts of several rules about one event share a line.
fn firing_lines(fires: &[&ValuedAlert]) -> Vec<FiringLine> {
    let severity = |alert: &Alert| Severity::from_label(alert.labels.get("severity").map(String::as_str));
    let precedence = |ValuedAlert { alert, value }: &ValuedAlert| Precedence {
        severity: severity(alert),
        value: *value,
        due: alert.due.map(|due| due.start),
    };
    let mut all: Vec<(Precedence, &Alert)> = fires.iter().map(|of| (precedence(of), &of.alert)).collect();
    all.sort_by(|a, b| a.0.order(&b.0).then_with(|| (&a.1.name, &a.1.id).cmp(&(&b.1.name, &b.1.id))));
    let mut lines: Vec<FiringLine> = Vec::new();
    let mut known: HashMap<(&TokenId, Resource, &RecordKey), usize> = HashMap::new();
    for (Precedence { severity, value, .. }, alert) in all {
        let event = alert.token.as_ref().zip(alert.resource).zip(alert.key.as_ref()).map(|((token, of), key)| (token, of, key));
        if let Some(line) = event.and_then(|event| known.get(&event)).and_then(|at| lines.get_mut(*at)) {
            line.also.push(alert.name.clone());
            continue;
        }
        if let Some(event) = event {
            known.insert(event, lines.len());
        }
        lines.push(FiringLine {
            alert: alert.id.as_str().to_owned(),
            rule: alert.name.clone(),
            also: Vec::new(),
            severity,
            value,
            summary: alert.annotations.get("summary").cloned().unwrap_or_else(|| alert.subject.clone()),
        });
    }
    lines
}

impl AheadLine {
    /// Returns the line of an unlock in the window, and whether sums include it.
    fn of(row: &UpcomingRow, window: SumWindow) -> Option<(Self, bool)> {
        let event = row.tracked.record.unlock()?;
        let interval = row.tracked.record.interval()?;
        let piece = CliffPiece::of(event)?;
        let is_counted = piece.inclusion(window)? == Inclusion::Counted;
        let line = Self {
            token: row.token.id.as_str().to_owned(),
            symbol: row.token.symbol().to_owned(),
            at: interval.start,
            when: phrase::when(&interval),
            value: piece.value,
            amount: piece.amount,
            share: event.value_to_market_cap(),
        };
        Some((line, is_counted))
    }
}

impl SilencedLine {
    fn of(silence: &Silence) -> Self {
        Self {
            matchers: silence.matchers_line(),
            until: silence.ends_at,
            author: silence.author.clone(),
            comment: silence.comment.clone(),
        }
    }
}

fn first<T>(mut lines: Vec<T>) -> Vec<T> {
    lines.truncate(MAX_LINES);
    lines
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AheadLine {
    /// The slug of the token.
    pub token: String,
    pub symbol: String,
    /// The date, or the start of the interval that it stands for.
    pub at: Timestamp,
    /// The date as text: `on 12 Mar 2026, 09:00 UTC`, `in March 2026`.
    pub when: String,
    /// The value in USD.
    pub value: Option<f64>,
    /// The amount in tokens.
    pub amount: Option<f64>,
    /// Percent of market cap.
    pub share: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FiringLine {
    pub alert: String,
    pub rule: String,
    /// Other rules that fire for the same event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    #[serde(rename = "tone")]
    pub severity: Severity,
    /// The current value of the unlock in USD. `None` if unknown, and for other records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    pub summary: String,
}

/// A change since the previous digest, or the same change of several tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedLine {
    /// The time at which we saw the change; the latest for several.
    pub at: Timestamp,
    /// The token's slug; empty for several tokens.
    pub token: String,
    /// The token's symbol; for several tokens their number, `32 tokens`.
    pub symbol: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SilencedLine {
    /// The matchers as written.
    pub matchers: String,
    pub until: Timestamp,
    pub author: String,
    pub comment: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SuppressedLine {
    /// `silenced`, `inhibited`, or `acknowledged`.
    pub state: NotificationState,
    pub rule: String,
    /// The first line of the message.
    pub summary: String,
}

#[cfg(test)]
mod tests;

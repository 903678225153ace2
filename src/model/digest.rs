//! Digests: at a wall-clock time of a zone, what is ahead, what changed since the last one, what fires, what is
//! silenced, and how the source is. The most valuable comes first, and what happened to many tokens alike is one line.
//!
//! `engine::digest_schedule` says when the next is due; [`Digest`] is what it holds, and [`Digest::notice`] makes the message of it. Pure:
//! what is known and the time come in. That each slot has one digest, also across restarts, is the store's doing: the slot is written
//! with the message in one transaction.

mod changes;
mod words;

pub use words::POSSIBLE;

use std::collections::{BTreeMap, HashMap};

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::{
    Alert, AlertBody, ChangeRow, Labels, Notification, NotificationKind, NotificationState, NotificationStatus, Precedence,
    ReceiverName, Record, RecordKey, Resource, RuleId, Silence, SilenceState, Timestamp, TokenId, Tone, UpcomingRow, alert_id,
    format, notification_id,
};

/// A day, over which what was held back is counted for a look.
pub const DAY: TimeDelta = TimeDelta::days(1);

/// Lines of each part; what is left out is counted.
pub const MAX_LINES: usize = 50;

/// Tokens that the line of a group names.
const MAX_GROUP_TOKENS: usize = 8;

/// How the names begin under which the slots of digests are kept.
pub const JOB_PREFIX: &str = "digest/";

/// The name under which the slots of a receiver's digest are kept.
pub fn job_name(receiver: &ReceiverName) -> String {
    format!("{JOB_PREFIX}{receiver}")
}

/// What a digest holds: `record` of its notification's body, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Digest {
    /// The slot of the digest before, or the look-back of the first one.
    pub since: Timestamp,
    /// The slot of this one.
    pub at: Timestamp,
    /// Where the look-ahead ends.
    pub until: Timestamp,
    /// Unlocks ahead, the most valuable first.
    pub ahead: Vec<AheadLine>,
    /// Unlocks ahead that are not listed, for want of room.
    pub ahead_left_out: u32,
    /// What all unlocks ahead are worth, as far as that is known, USD.
    #[serde(default)]
    pub ahead_value: Option<f64>,
    /// Unlocks that may come until then because their month or week is not over, though the date that the source names lies outside: in no
    /// sum of those ahead.
    #[serde(default)]
    pub possible: Vec<AheadLine>,
    #[serde(default)]
    pub possible_left_out: u32,
    /// What all of these are worth, USD.
    #[serde(default)]
    pub possible_value: Option<f64>,
    /// What the groups of `[watch.groups]` have ahead, the most valuable first.
    #[serde(default)]
    pub groups: Vec<GroupLine>,
    /// What changed since the last digest, the most valuable first.
    pub changes: Vec<ChangedLine>,
    /// Changes that are not listed.
    pub changes_left_out: u32,
    /// Changes in all, those that are told together each by itself.
    #[serde(default)]
    pub changes_count: u32,
    /// Messages that silences, inhibitions and acknowledgements held back since the last digest.
    pub held_back: Vec<SuppressedLine>,
    /// Of these, not listed.
    pub held_back_left_out: u32,
    /// Silences that hold now.
    #[serde(default)]
    pub silences: Vec<SilencedLine>,
    /// Of these, not listed.
    #[serde(default)]
    pub silences_left_out: u32,
    /// Alerts that fire now.
    pub firing: u32,
    /// The gravest of them.
    #[serde(default)]
    pub fires: Vec<FiringLine>,
    /// Of these, not listed.
    #[serde(default)]
    pub fires_left_out: u32,
    /// What is the matter with source, receivers and database, in sentences; empty where all is well.
    pub trouble: Vec<String>,
}

/// What a digest is made of.
#[derive(Clone, Copy, Debug)]
pub struct DigestMaterial<'a> {
    /// The slot before this one.
    pub since: Timestamp,
    pub at: Timestamp,
    /// How far it looks ahead.
    pub ahead: TimeDelta,
    /// Unlocks from `at` on, the next first.
    pub upcoming: &'a [UpcomingRow],
    /// Changes since, the latest first.
    pub changes: &'a [ChangeRow],
    /// What was suppressed for the receiver since.
    pub statuses: &'a [NotificationStatus],
    /// Silences that are not over.
    pub silences: &'a [Silence],
    pub firing: u32,
    /// Alerts that fire, incidents left aside.
    pub fires: &'a [&'a Alert],
    /// What is the matter, in sentences.
    pub trouble: &'a [String],
}

impl Digest {
    /// Puts a digest together.
    pub fn of(material: &DigestMaterial<'_>) -> Self {
        let DigestMaterial { since, at, ahead: span, upcoming, changes, statuses, silences, firing, fires, trouble } = *material;
        let until = at.checked_add_signed(span).unwrap_or(at);
        let (mut ahead, mut possible) = (Vec::new(), Vec::new());
        let mut groups: BTreeMap<&str, Vec<&AheadLine>> = BTreeMap::new();
        let lines: Vec<(&UpcomingRow, AheadLine, bool)> = upcoming
            .iter()
            .filter_map(|row| ahead_line(row, at, until).map(|(line, is_counted)| (row, line, is_counted)))
            .collect();
        for (row, line, is_counted) in &lines {
            if *is_counted {
                row.token.groups.iter().for_each(|group| groups.entry(group).or_default().push(line));
                ahead.push(line.clone());
            } else {
                possible.push(line.clone());
            }
        }
        let mut groups: Vec<GroupLine> = groups.into_iter().map(|(name, lines)| GroupLine::of(name, &lines)).collect();
        groups.sort_by(|a, b| b.value.total_cmp(&a.value));
        groups.truncate(MAX_LINES);
        let (changed, changes_count) = (changes::changed_lines(changes), count(changes.len()));
        let held_back: Vec<SuppressedLine> = statuses
            .iter()
            .filter(|status| status.state.is_suppressed())
            .map(|status| SuppressedLine { state: status.state, rule: status.rule.clone(), summary: status.summary.clone() })
            .collect();
        let silences: Vec<SilencedLine> =
            silences.iter().filter(|silence| silence.state(at) == SilenceState::Active).map(SilencedLine::of).collect();
        let fires = firing_lines(fires, upcoming);
        ahead.sort_by(AheadLine::order);
        possible.sort_by(AheadLine::order);
        let left_out = |length: usize| count(length.saturating_sub(MAX_LINES));
        Self {
            since,
            at,
            until,
            ahead_value: worth(&ahead),
            ahead_left_out: left_out(ahead.len()),
            ahead: first(ahead),
            possible_value: worth(&possible),
            possible_left_out: left_out(possible.len()),
            possible: first(possible),
            groups,
            changes_left_out: left_out(changed.len()),
            changes: first(changed),
            changes_count,
            held_back_left_out: left_out(held_back.len()),
            held_back: first(held_back),
            silences_left_out: left_out(silences.len()),
            silences: first(silences),
            firing,
            fires_left_out: left_out(fires.len()),
            fires: first(fires),
            trouble: trouble.to_vec(),
        }
    }

    /// The message for `receiver`. The same slot makes the same message.
    pub fn notice(&self, receiver: &ReceiverName, now: Timestamp) -> Notification {
        let subject = format!("{}/{}", job_name(receiver), self.at.timestamp());
        let alert = alert_id(&RuleId::from("Digest"), &subject, 1);
        Notification {
            id: notification_id(&alert, "digest"),
            alert: alert.clone(),
            kind: NotificationKind::Digest,
            at: now,
            receivers: vec![receiver.clone()],
            body: AlertBody {
                labels: Labels::from([("alertname".to_owned(), "Digest".to_owned()), ("severity".to_owned(), "info".to_owned())]),
                annotations: BTreeMap::from([("summary".to_owned(), self.summary()), ("description".to_owned(), self.text())]),
                record: serde_json::to_value(self).ok(),
                ..AlertBody::firing(alert, "Digest", "digest", self.at)
            },
        }
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// What unlocks are worth together, as far as that is known.
fn worth(lines: &[AheadLine]) -> Option<f64> {
    let known: Vec<f64> = lines.iter().filter_map(|line| line.value).filter(|value| value.is_finite()).collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

/// An unlock between `at` and `until`, and whether it counts there: of a month or a week, where the day that the source names lies there.
fn ahead_line(row: &UpcomingRow, at: Timestamp, until: Timestamp) -> Option<(AheadLine, bool)> {
    let Record::Unlock(event) = &row.tracked.record else { return None };
    let interval = row.tracked.record.interval().filter(|interval| interval.start <= until)?;
    let counted = interval.nominal(event.unlock_date.copied());
    let line = AheadLine {
        token: row.token.id.as_str().to_owned(),
        symbol: row.token.symbol().to_owned(),
        at: interval.start,
        when: format::when(&interval),
        value: event.cliff_value(),
        amount: event.cliff_amount(),
        share: event.value_to_market_cap(),
    };
    // A date without an extent lies ahead up to itself.
    let is_over = if counted.start == counted.end { counted.end < at } else { counted.end <= at };
    Some((line, !is_over && counted.start <= until))
}

/// What fires, the gravest first, then the most valuable, then the nearest; what several rules say of one event is one line.
fn firing_lines(fires: &[&Alert], upcoming: &[UpcomingRow]) -> Vec<FiringLine> {
    let values: HashMap<(&TokenId, &RecordKey), f64> = upcoming
        .iter()
        .filter_map(|row| Some(((&row.token.id, &row.tracked.key), row.tracked.record.unlock()?.cliff_value()?)))
        .collect();
    let tone = |alert: &Alert| Tone::of_severity(alert.labels.get("severity").map(String::as_str));
    let precedence = |alert: &Alert| Precedence {
        tone: tone(alert),
        value: alert.token.as_ref().zip(alert.key.as_ref()).and_then(|event| values.get(&event).copied()),
        due: alert.due.map(|due| due.start),
    };
    let mut all: Vec<(Precedence, &Alert)> = fires.iter().map(|alert| (precedence(alert), *alert)).collect();
    all.sort_by(|a, b| a.0.order(&b.0).then_with(|| a.1.id.cmp(&b.1.id)));
    let mut lines: Vec<FiringLine> = Vec::new();
    let mut known: HashMap<(&TokenId, Resource, &RecordKey), usize> = HashMap::new();
    for (Precedence { tone, .. }, alert) in all {
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
            tone,
            summary: alert.annotations.get("summary").cloned().unwrap_or_else(|| alert.subject.clone()),
        });
    }
    lines
}

impl AheadLine {
    /// The most valuable first, of those the nearest.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let value = |of: &Self| of.value.unwrap_or(f64::NEG_INFINITY);
        value(other).total_cmp(&value(self)).then_with(|| (self.at, &self.token).cmp(&(other.at, &other.token)))
    }

    /// `$96.1M (2.30% of market cap)`, or the amount where no value is known.
    pub fn size(&self) -> String {
        let share = self.share.map(|share| format!(" ({} of market cap)", format::percent(share))).unwrap_or_default();
        match (self.value, self.amount) {
            (Some(value), _) => format!("{}{share}", format::usd(value)),
            (None, Some(amount)) => format!("{}{share}", format::tokens(amount)),
            (None, None) => "an unknown amount".to_owned(),
        }
    }
}

impl FiringLine {
    /// The rules that say it: `BigCliffAhead, also InsiderUnlockAhead`.
    pub fn rules(&self) -> String {
        if self.also.is_empty() { self.rule.clone() } else { format!("{}, also {}", self.rule, self.also.join(", ")) }
    }
}

impl GroupLine {
    /// That of the unlocks ahead of its tokens.
    fn of(name: &str, lines: &[&AheadLine]) -> Self {
        let mut by_token: BTreeMap<&str, (&str, f64)> = BTreeMap::new();
        for line in lines {
            let token = by_token.entry(&line.token).or_insert((&line.symbol, 0.0));
            token.1 += line.value.filter(|value| value.is_finite()).unwrap_or_default();
        }
        let mut tokens: Vec<(&str, f64)> = by_token.into_values().collect();
        tokens.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        Self {
            name: name.to_owned(),
            value: tokens.iter().map(|(_, value)| value).sum(),
            events: count(lines.len()),
            left_out: count(tokens.len().saturating_sub(MAX_GROUP_TOKENS)),
            tokens: tokens.iter().take(MAX_GROUP_TOKENS).map(|(symbol, value)| ((*symbol).to_owned(), *value)).collect(),
        }
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

    /// `until 9 Mar 2026, 18:00 UTC, by ann: known to the exchange`.
    pub fn words(&self) -> String {
        let Self { until, author, comment, .. } = self;
        format!("until {}, by {author}: {comment}", format::instant(*until))
    }
}

fn first<T>(mut lines: Vec<T>) -> Vec<T> {
    lines.truncate(MAX_LINES);
    lines
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AheadLine {
    /// Slug.
    pub token: String,
    pub symbol: String,
    /// Its time, or the begin of the interval that it stands for.
    pub at: Timestamp,
    /// Its time in words: `on 12 Mar 2026, 09:00 UTC`, `in March 2026`.
    pub when: String,
    /// USD.
    pub value: Option<f64>,
    /// Token units.
    pub amount: Option<f64>,
    /// Percent of the market cap.
    pub share: Option<f64>,
}

/// What the tokens of a group have ahead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupLine {
    pub name: String,
    /// USD, as far as it is known.
    pub value: f64,
    pub events: u32,
    /// Its tokens that have something ahead, by symbol, with USD; the most valuable first.
    pub tokens: Vec<(String, f64)>,
    pub left_out: u32,
}

/// An alert that fires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FiringLine {
    /// Its id.
    pub alert: String,
    pub rule: String,
    /// Other rules that say the same of the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    pub tone: Tone,
    pub summary: String,
}

/// A change since the last digest, or what happened to several tokens alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedLine {
    /// When it was seen; of several the last.
    pub at: Timestamp,
    /// Slug; of several tokens none.
    pub token: String,
    /// Of several tokens how many: `32 tokens`.
    pub symbol: String,
    /// What happened, in words.
    pub text: String,
}

/// A silence that holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SilencedLine {
    /// What it takes, as it is written.
    pub matchers: String,
    pub until: Timestamp,
    pub author: String,
    pub comment: String,
}

/// A message that was held back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SuppressedLine {
    /// `silenced`, `inhibited` or `acknowledged`.
    pub state: NotificationState,
    pub rule: String,
    /// First line of the message.
    pub summary: String,
}

#[cfg(test)]
mod tests;

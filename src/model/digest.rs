//! Digests: at a wall-clock time of a zone, what is ahead, what changed since the last one, what fires, what is
//! silenced, and how the source is. The most valuable comes first, and what happened to many tokens alike is one line.
//!
//! `engine::digest_schedule` says when the next is due; [`Digest`] is what it holds, and [`Digest::notice`] makes the message of it.
//! Pure: what is known and the time come in. That each slot has one digest, also across restarts, is the store's doing: the slot is
//! written with the message in one transaction.

mod ahead;
mod changes;
mod words;

pub use ahead::{AheadPart, DigestAhead, FirstOf, LargestFirst, TokenAhead, ValuedAlert};
pub use words::POSSIBLE;

use std::collections::{BTreeMap, HashMap};

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::{
    Alert, AlertBody, ChangeRow, DIGEST, Labels, Notification, NotificationKind, NotificationState, NotificationStatus,
    Precedence, ReceiverName, RecordKey, Resource, RuleId, Silence, SilenceState, SumWindow, Timestamp, Token, TokenId, Tone,
    UpcomingRow, alert_id, format, notification_id,
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
    /// Unlocks that may come until then because their month or week is not over, though the date that the source names lies outside:
    /// in no sum of those ahead.
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
    /// Alerts that fire and that none of these names, incidents left aside.
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
    /// Unlocks of the days from `at` on.
    pub unlocks: &'a DigestAhead,
    /// Changes since, the latest first.
    pub changes: &'a [ChangeRow],
    /// What was suppressed for the receiver since.
    pub statuses: &'a [NotificationStatus],
    /// Silences that are not over.
    pub silences: &'a [Silence],
    pub firing: u32,
    /// All alerts of the events that come first among those that fire, incidents left aside.
    pub fires: &'a [&'a ValuedAlert],
    /// Incidents among the alerts that fire.
    pub incidents: u32,
    /// What is the matter, in sentences.
    pub trouble: &'a [String],
}

impl Digest {
    /// Puts a digest together.
    pub fn of(material: &DigestMaterial<'_>) -> Self {
        let DigestMaterial { since, at, ahead: span, unlocks, changes, statuses, silences, firing, fires, incidents, trouble } =
            *material;
        let window = SumWindow::of(at, span);
        let (ahead, ahead_more) = unlocks.counted.lines(window);
        let (possible, possible_more) = unlocks.possible.lines(window);
        let groups = groups(unlocks, &ahead);
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
            ahead_value: worth(&ahead, unlocks.counted.more_value),
            ahead_left_out: ahead_more,
            ahead,
            possible_value: worth(&possible, unlocks.possible.more_value),
            possible_left_out: possible_more,
            possible,
            groups,
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
            trouble: trouble.to_vec(),
        }
    }

    /// The message for `receiver`. The same slot makes the same message.
    pub fn notice(&self, receiver: &ReceiverName, now: Timestamp) -> Notification {
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
                annotations: BTreeMap::from([("summary".to_owned(), self.summary()), ("description".to_owned(), self.text())]),
                record: serde_json::to_value(self).ok(),
                ..AlertBody::firing(alert, DIGEST, "digest", self.at)
            },
        }
    }
}

impl Digest {
    /// A test of it for `receiver`: what would be sent now, marked as a test. It belongs to no slot, and each has an id of its own.
    pub fn test_notice(&self, receiver: &ReceiverName, now: Timestamp) -> Notification {
        let mut notice = self.notice(receiver, now);
        let subject = format!("test/{}/{}", job_name(receiver), now.timestamp_millis());
        notice.alert = alert_id(&RuleId::from(DIGEST), &subject, 1);
        notice.id = notification_id(&notice.alert, "test");
        notice.kind = NotificationKind::Test;
        notice.body.id = notice.alert.clone();
        notice.body.reason = "test".to_owned();
        let text =
            format!("This is a test: the digest as it would be sent now. The real one comes at its time.\n\n{}", self.text());
        notice.body.annotations.insert("description".to_owned(), text);
        notice
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// What unlocks are worth together, those that are listed and all others, as far as that is known.
fn worth(lines: &[AheadLine], more: Option<f64>) -> Option<f64> {
    let known: Vec<f64> = lines.iter().filter_map(|line| line.value).filter(|value| value.is_finite()).chain(more).collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

/// The lines of the groups: the most valuable first.
fn groups(unlocks: &DigestAhead, lines: &[AheadLine]) -> Vec<GroupLine> {
    let mut groups: BTreeMap<&str, GroupSum<'_>> = BTreeMap::new();
    let by_token: HashMap<&str, &Token> = unlocks.counted.rows.iter().map(|row| (row.token.id.as_str(), &row.token)).collect();
    for line in lines {
        let Some(token) = by_token.get(line.token.as_str()) else { continue };
        let value = line.value.filter(|value| value.is_finite()).unwrap_or_default();
        token.groups.iter().for_each(|group| groups.entry(group).or_default().add(token, 1, value));
    }
    for TokenAhead { token, events, value } in &unlocks.by_token {
        token.groups.iter().for_each(|group| groups.entry(group).or_default().add(token, *events, *value));
    }
    let mut groups: Vec<GroupLine> = groups.into_iter().map(|(name, sum)| sum.line(name)).collect();
    groups.sort_by(|a, b| b.value.total_cmp(&a.value));
    groups.truncate(MAX_LINES);
    groups
}

/// What the tokens of a group have ahead: by slug the ticker and USD.
#[derive(Default)]
struct GroupSum<'t> {
    events: u32,
    by_token: BTreeMap<&'t str, (&'t str, f64)>,
}

impl<'t> GroupSum<'t> {
    fn add(&mut self, token: &'t Token, events: u32, value: f64) {
        self.events = self.events.saturating_add(events);
        self.by_token.entry(token.id.as_str()).or_insert((token.symbol(), 0.0)).1 += value;
    }

    fn line(self, name: &str) -> GroupLine {
        let mut tokens: Vec<(&str, f64)> = self.by_token.into_values().collect();
        tokens.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        GroupLine {
            name: name.to_owned(),
            value: tokens.iter().map(|(_, value)| value).sum(),
            events: self.events,
            left_out: count(tokens.len().saturating_sub(MAX_GROUP_TOKENS)),
            tokens: tokens.iter().take(MAX_GROUP_TOKENS).map(|(symbol, value)| ((*symbol).to_owned(), *value)).collect(),
        }
    }
}

impl AheadPart {
    /// Its lines, the most valuable first, and how many unlocks have none.
    fn lines(&self, window: SumWindow) -> (Vec<AheadLine>, u32) {
        let mut lines: Vec<AheadLine> =
            self.rows.iter().filter_map(|row| AheadLine::of(row, window)).map(|(line, _)| line).collect();
        lines.sort_by(AheadLine::order);
        let more = u32::try_from(self.more).unwrap_or(u32::MAX).saturating_add(count(lines.len().saturating_sub(MAX_LINES)));
        (first(lines), more)
    }
}

/// What fires, the gravest first, then the most valuable, then the nearest; what several rules say of one event is one line.
fn firing_lines(fires: &[&ValuedAlert]) -> Vec<FiringLine> {
    let tone = |alert: &Alert| Tone::of_severity(alert.labels.get("severity").map(String::as_str));
    let precedence = |ValuedAlert { alert, value }: &ValuedAlert| Precedence {
        tone: tone(alert),
        value: *value,
        due: alert.due.map(|due| due.start),
    };
    let mut all: Vec<(Precedence, &Alert)> = fires.iter().map(|of| (precedence(of), &of.alert)).collect();
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
    /// The line of an unlock within these days, and whether it counts there.
    fn of(row: &UpcomingRow, window: SumWindow) -> Option<(Self, bool)> {
        let event = row.tracked.record.unlock()?;
        let interval = row.tracked.record.interval()?;
        let is_counted = window.place(&interval, event.unlock_date.copied())?;
        let line = Self {
            token: row.token.id.as_str().to_owned(),
            symbol: row.token.symbol().to_owned(),
            at: interval.start,
            when: format::when(&interval),
            value: event.cliff_value(),
            amount: event.cliff_amount(),
            share: event.value_to_market_cap(),
        };
        Some((line, is_counted))
    }

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

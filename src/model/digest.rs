//! Digests: at a wall-clock time of a zone, what is ahead, what changed since the last one, what is silenced, and how the source is.
//!
//! `engine::digest_schedule` says when the next is due; [`Digest`] is what it holds, and [`Digest::notice`] makes the message of it. Pure:
//! what is known and the time come in. That each slot has one digest, also across restarts, is the store's doing: the slot is written
//! with the message in one transaction.

use std::{collections::BTreeMap, fmt::Write as _};

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::{
    AlertBody, AlertStatus, ChangeRow, Labels, Notification, NotificationKind, NotificationState, NotificationStatus,
    ReceiverName, Record, RuleId, Silence, SilenceState, SourceBody, Timestamp, UpcomingRow, alert_id, format, notification_id,
};

/// A day, over which what was held back is counted for a look.
pub const DAY: TimeDelta = TimeDelta::days(1);

/// Lines of each part; what is left out is counted.
pub const MAX_LINES: usize = 50;

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
    /// Unlocks ahead, the next first.
    pub ahead: Vec<AheadLine>,
    /// Unlocks ahead that are not listed, for want of room.
    pub ahead_left_out: u32,
    /// What changed since the last digest, the latest first.
    pub changes: Vec<ChangedLine>,
    /// Changes that are not listed.
    pub changes_left_out: u32,
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
    /// What is the matter, in sentences.
    pub trouble: &'a [String],
}

impl Digest {
    /// Puts a digest together.
    pub fn of(material: &DigestMaterial<'_>) -> Self {
        let DigestMaterial { since, at, ahead: span, upcoming, changes, statuses, silences, firing, trouble } = *material;
        let until = at.checked_add_signed(span).unwrap_or(at);
        let ahead: Vec<AheadLine> = upcoming
            .iter()
            .filter_map(|row| {
                let Record::Unlock(event) = &row.tracked.record else { return None };
                let interval = row.tracked.record.interval().filter(|interval| interval.start <= until)?;
                Some(AheadLine {
                    token: row.token.id.as_str().to_owned(),
                    symbol: row.token.symbol().to_owned(),
                    at: interval.start,
                    when: format::when(&interval),
                    value: event.cliff_value(),
                    amount: event.cliff_amount(),
                    share: event.value_to_market_cap(),
                })
            })
            .collect();
        let changes: Vec<ChangedLine> = changes
            .iter()
            .map(|row| ChangedLine {
                at: row.at,
                token: row.token.as_str().to_owned(),
                symbol: row.symbol.clone().unwrap_or_else(|| row.token.as_str().to_owned()),
                text: row.change.summary.clone(),
            })
            .collect();
        let held_back: Vec<SuppressedLine> = statuses
            .iter()
            .filter(|status| status.state.is_suppressed())
            .map(|status| SuppressedLine { state: status.state, rule: status.rule.clone(), summary: status.summary.clone() })
            .collect();
        let silences: Vec<SilencedLine> = silences
            .iter()
            .filter(|silence| silence.state(at) == SilenceState::Active)
            .map(|silence| SilencedLine {
                matchers: silence.matchers_line(),
                until: silence.ends_at,
                author: silence.author.clone(),
                comment: silence.comment.clone(),
            })
            .collect();
        let left_out = |count: usize| u32::try_from(count.saturating_sub(MAX_LINES)).unwrap_or(u32::MAX);
        Self {
            since,
            at,
            until,
            ahead_left_out: left_out(ahead.len()),
            ahead: first(ahead),
            changes_left_out: left_out(changes.len()),
            changes: first(changes),
            held_back_left_out: left_out(held_back.len()),
            held_back: first(held_back),
            silences_left_out: left_out(silences.len()),
            silences: first(silences),
            firing,
            trouble: trouble.to_vec(),
        }
    }

    /// The line that stands for all of it.
    pub fn summary(&self) -> String {
        let count = |listed: usize, more: u32| listed + usize::try_from(more).unwrap_or_default();
        let unlocks = count(self.ahead.len(), self.ahead_left_out);
        let days = (self.until - self.at).num_days();
        let changes = count(self.changes.len(), self.changes_left_out);
        let worth: f64 = self.ahead.iter().filter_map(|unlock| unlock.value).sum();
        let worth = if worth > 0.0 && self.ahead_left_out == 0 { format!(" ({})", format::usd(worth)) } else { String::new() };
        let trouble = if self.trouble.is_empty() { String::new() } else { ", trouble".to_owned() };
        format!(
            "Digest: {}{worth} in the next {}, {}{trouble}",
            format::count(unlocks, "unlock"),
            format::count(usize::try_from(days).unwrap_or_default(), "day"),
            format::count(changes, "change"),
        )
    }

    /// All of it as plain text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let more = |text: &mut String, count: u32, how: &str| {
            if count > 0 {
                let _ = writeln!(text, "  and {count} more: `{how}`");
            }
        };
        // Mail and chat show it as it is, so that names from outside must not break its lines.
        if self.ahead.is_empty() {
            let _ = writeln!(text, "No unlock is known until {}.", format::instant(self.until));
        } else {
            let _ = writeln!(text, "Unlocks until {}:", format::instant(self.until));
            for unlock in &self.ahead {
                let _ = writeln!(text, "- {}: {} {}", format::name(&unlock.symbol), unlock.size(), unlock.when);
            }
        }
        more(&mut text, self.ahead_left_out, "cliffwatch upcoming");
        let since = format::instant(self.since);
        if self.changes.is_empty() {
            let _ = writeln!(text, "\nNothing changed since {since}.");
        } else {
            let _ = writeln!(text, "\nChanged since {since}:");
            for change in &self.changes {
                let _ = writeln!(text, "- {}", format::sentence(&change.text));
            }
        }
        more(&mut text, self.changes_left_out, "cliffwatch changes");
        if !self.held_back.is_empty() {
            let _ = writeln!(text, "\nNot told to you since:");
            for held in &self.held_back {
                let _ = writeln!(text, "- {}: {}", held.state, format::sentence(&held.summary));
            }
        }
        more(&mut text, self.held_back_left_out, "cliffwatch outbox why");
        if !self.silences.is_empty() {
            let _ = writeln!(text, "\nSilenced now:");
            for silence in &self.silences {
                let _ = writeln!(text, "- {}: {}", format::sentence(&silence.matchers), format::sentence(&silence.words()));
            }
        }
        more(&mut text, self.silences_left_out, "cliffwatch silence list");
        let firing = format::count(usize::try_from(self.firing).unwrap_or_default(), "alert");
        let verb = if self.firing == 1 { "fires" } else { "fire" };
        let _ = writeln!(text, "\n{firing} {verb} now.");
        if self.trouble.is_empty() {
            text.push_str("The source answers, and every receiver takes its messages.\n");
        } else {
            text.push_str("\nTrouble:\n");
            for trouble in &self.trouble {
                let _ = writeln!(text, "- {}", format::sentence(trouble));
            }
        }
        text
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
                id: alert,
                rule: "Digest".to_owned(),
                status: AlertStatus::Firing,
                reason: "digest".to_owned(),
                labels: Labels::from([("alertname".to_owned(), "Digest".to_owned()), ("severity".to_owned(), "info".to_owned())]),
                annotations: BTreeMap::from([("summary".to_owned(), self.summary()), ("description".to_owned(), self.text())]),
                starts_at: self.at,
                ends_at: None,
                token: None,
                resource: None,
                record: serde_json::to_value(self).ok(),
                change: None,
                days_until: None,
                when: None,
                lead: None,
                event: None,
                former_labels: Vec::new(),
                series: Vec::new(),
                source: SourceBody::default(),
            },
        }
    }
}

impl AheadLine {
    /// `$96.1M (2.30% of market cap)`, or the amount where no value is known.
    fn size(&self) -> String {
        let share = self.share.map(|share| format!(" ({} of market cap)", format::percent(share))).unwrap_or_default();
        match (self.value, self.amount) {
            (Some(value), _) => format!("{}{share}", format::usd(value)),
            (None, Some(amount)) => format!("{}{share}", format::tokens(amount)),
            (None, None) => "an unknown amount".to_owned(),
        }
    }
}

impl SilencedLine {
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

/// A change since the last digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedLine {
    /// When it was seen.
    pub at: Timestamp,
    /// Slug.
    pub token: String,
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

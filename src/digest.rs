//! Digests: at a wall-clock time of a zone, what is ahead, what changed since the last one, what is silenced, and how the source is.
//!
//! [`Schedule`] says when the next is due; [`Digest`] is what it holds, and [`Digest::notice`] makes the message of it. Pure: what is
//! known and the time come in. That each slot is told once, also across restarts, is the store's doing: the slot is written with
//! the message in one transaction.

use std::{collections::BTreeMap, fmt::Write as _};

use chrono::TimeDelta;
use jiff::{ToSpan, civil::Weekday, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::{
    alert::{AlertBody, Labels, Notice, NoticeKind, SourceBody, alert_id, notice_id},
    config, format,
    route::interval::{days_of_week, time_of_day},
    silence::{Silence, SilenceState},
    slot,
    store::model::{ChangeRow, Fate, UpcomingRow},
    supply::{ReceiverName, Record, RuleId, Timestamp},
};

/// How far a digest looks ahead unless its receiver says otherwise.
pub const AHEAD: TimeDelta = TimeDelta::days(7);

/// A day, over which what was held back is counted for a look.
pub const DAY: TimeDelta = TimeDelta::days(1);

/// Lines of each part; what is left out is counted.
pub const MAX_LINES: usize = 50;

/// The longest from one slot of a digest to the next.
pub const LOOK_BACK: TimeDelta = TimeDelta::days(LOOK_BACK_DAYS);

/// Days that are looked back for the last slot: a week and a day hold one of each.
const LOOK_BACK_DAYS: i64 = 8;

/// When a receiver gets its digest, and how far it looks ahead.
#[derive(Clone, Debug)]
pub struct Schedule {
    minute: u16,
    days: Vec<Weekday>,
    zone: TimeZone,
    /// How far it looks ahead.
    pub ahead: TimeDelta,
}

/// What is wrong with a `digest`: its key, the message, the advice.
pub type Wrong = (&'static str, String, String);

impl Schedule {
    /// Reads `digest` of a receiver.
    ///
    /// # Errors
    /// The first thing that is wrong in it.
    pub fn of(config: &config::Digest) -> Result<Self, Wrong> {
        let minute = time_of_day(&config.at).filter(|minute| *minute < 24 * 60).ok_or_else(|| {
            let message = if config.at.is_empty() {
                "a digest needs the time of day `at` which it is sent".to_owned()
            } else {
                format!("{:?} is no time of day", config.at)
            };
            ("at", message, "write it like at = \"08:00\"".to_owned())
        })?;
        let days = days_of_week(&config.days).map_err(|index| {
            let text = config.days.get(index).map_or("", String::as_str);
            (
                "days",
                format!("{text:?} names no days of the week"),
                "write it like days = [\"mon:fri\"] or [\"mon\", \"thu\"]".to_owned(),
            )
        })?;
        let name = config.timezone.as_deref().unwrap_or("UTC");
        let zone = slot::zone(name).map_err(|_| {
            let advice = "write an IANA name such as \"UTC\" or \"Europe/Paris\"".to_owned();
            ("timezone", format!("{name:?} is no time zone"), advice)
        })?;
        Ok(Self { minute, days, zone, ahead: config.ahead.map_or(AHEAD, config::Span::delta) })
    }

    /// The last slot at or before `now`: one on each of its days, whatever daylight saving does to that day. A time that the clock
    /// skips is the time after the gap; one that it shows twice is the first.
    #[must_use]
    pub fn last(&self, now: Timestamp) -> Option<Timestamp> {
        (0..=LOOK_BACK_DAYS).find_map(|back| self.slot(now, -back).filter(|slot| *slot <= now))
    }

    /// The first slot after `now`.
    #[must_use]
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        (-1..=LOOK_BACK_DAYS).find_map(|ahead| self.slot(now, ahead).filter(|slot| *slot > now))
    }

    /// The slot on the day so many days from that of `now`; none where that is none of its days.
    fn slot(&self, now: Timestamp, days: i64) -> Option<Timestamp> {
        let there = jiff::Timestamp::from_millisecond(now.timestamp_millis()).ok()?.to_zoned(self.zone.clone());
        let date = there.date().checked_add(days.days()).ok()?;
        if !self.days.contains(&date.weekday()) {
            return None;
        }
        let (hour, minute) = (i8::try_from(self.minute / 60).ok()?, i8::try_from(self.minute % 60).ok()?);
        let slot = date.at(hour, minute, 0, 0).to_zoned(self.zone.clone()).ok()?;
        Timestamp::from_timestamp_millis(slot.timestamp().as_millisecond())
    }
}

/// The digest of one receiver.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whose.
    pub receiver: ReceiverName,
    /// When.
    pub schedule: Schedule,
    /// When, in words: `08:00 Europe/Paris, mon:fri`.
    pub words: String,
}

/// The digests of a config, in the order of its receivers.
///
/// # Errors
/// What is wrong with the first that is wrong; the check of the config finds it with its place.
pub fn plans(receivers: &[config::Receiver]) -> Result<Vec<Plan>, String> {
    let with_digest = receivers.iter().filter_map(|receiver| Some((receiver, receiver.digest.as_ref()?)));
    with_digest
        .map(|(receiver, digest)| {
            let schedule = Schedule::of(digest)
                .map_err(|(key, message, _)| format!("the digest of receiver {:?}: {key}: {message}", receiver.name))?;
            let days = if digest.days.is_empty() { String::new() } else { format!(", {}", digest.days.join(" ")) };
            let words = format!("{} {}{days}", digest.at, digest.timezone.as_deref().unwrap_or("UTC"));
            Ok(Plan { receiver: ReceiverName::from(receiver.name.as_str()), schedule, words })
        })
        .collect()
}

/// How the names begin under which the slots of digests are kept.
pub const JOB_PREFIX: &str = "digest/";

/// The name under which the slots of a receiver's digest are kept.
#[must_use]
pub fn job_name(receiver: &ReceiverName) -> String {
    format!("{JOB_PREFIX}{receiver}")
}

/// What a digest tells: `record` of its notice's body, as JSON.
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
    pub ahead: Vec<Ahead>,
    /// Unlocks ahead that are not listed, for want of room.
    pub ahead_left_out: u32,
    /// What changed since the last digest, the latest first.
    pub changes: Vec<Changed>,
    /// Changes that are not listed.
    pub changes_left_out: u32,
    /// Messages that silences, inhibitions and acknowledgements held back since the last digest.
    pub held_back: Vec<HeldBack>,
    /// Of these, not listed.
    pub held_back_left_out: u32,
    /// Silences that hold now.
    #[serde(default)]
    pub silences: Vec<Silenced>,
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
pub struct Material<'a> {
    /// The slot before this one.
    pub since: Timestamp,
    /// The slot.
    pub at: Timestamp,
    /// How far it looks ahead.
    pub ahead: TimeDelta,
    /// Unlocks from `at` on, the next first.
    pub upcoming: &'a [UpcomingRow],
    /// Changes since, the latest first.
    pub changes: &'a [ChangeRow],
    /// What was not told to the receiver since.
    pub fates: &'a [Fate],
    /// Silences that are not over.
    pub silences: &'a [Silence],
    /// Alerts that fire.
    pub firing: u32,
    /// What is the matter, in sentences.
    pub trouble: &'a [String],
}

impl Digest {
    /// Puts a digest together.
    #[must_use]
    pub fn of(material: &Material<'_>) -> Self {
        let Material { since, at, ahead: span, upcoming, changes, fates, silences, firing, trouble } = *material;
        let until = at.checked_add_signed(span).unwrap_or(at);
        let ahead: Vec<Ahead> = upcoming
            .iter()
            .filter_map(|row| {
                let Record::Unlock(event) = &row.tracked.record else { return None };
                let interval = row.tracked.record.interval().filter(|interval| interval.start <= until)?;
                Some(Ahead {
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
        let changes: Vec<Changed> = changes
            .iter()
            .map(|row| Changed {
                at: row.at,
                token: row.token.as_str().to_owned(),
                symbol: row.symbol.clone().unwrap_or_else(|| row.token.as_str().to_owned()),
                text: row.change.summary.clone(),
            })
            .collect();
        let held_back: Vec<HeldBack> = fates
            .iter()
            .filter(|fate| matches!(fate.state.as_str(), "silenced" | "inhibited" | "acknowledged"))
            .map(|fate| HeldBack { state: fate.state.clone(), rule: fate.rule.clone(), summary: fate.summary.clone() })
            .collect();
        let silences: Vec<Silenced> = silences
            .iter()
            .filter(|silence| silence.state(at) == SilenceState::Active)
            .map(|silence| Silenced {
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
    #[must_use]
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
    #[must_use]
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
    #[must_use]
    pub fn notice(&self, receiver: &ReceiverName, now: Timestamp) -> Notice {
        let subject = format!("{}/{}", job_name(receiver), self.at.timestamp());
        let alert = alert_id(&RuleId::from("Digest"), &subject, 1);
        Notice {
            id: notice_id(&alert, "digest"),
            alert: alert.clone(),
            kind: NoticeKind::Digest,
            at: now,
            receivers: vec![receiver.clone()],
            body: AlertBody {
                id: alert,
                rule: "Digest".to_owned(),
                status: "firing".to_owned(),
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

impl Ahead {
    /// `$96.1M (2.30% of market cap)`, or the amount where no value is known.
    fn size(&self) -> String {
        let share = self.share.map(|share| format!(" ({} of market cap)", format::percent(share))).unwrap_or_default();
        match (self.value, self.amount) {
            (Some(value), _) => format!("{}{share}", format::usd(value)),
            (None, Some(amount)) => format!("{} tokens{share}", format::amount(amount)),
            (None, None) => "an unknown amount".to_owned(),
        }
    }
}

impl Silenced {
    /// `until 9 Mar 2026, 18:00 UTC, by ann: known to the exchange`.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { until, author, comment, .. } = self;
        format!("until {}, by {author}: {comment}", format::instant(*until))
    }
}

fn first<T>(mut lines: Vec<T>) -> Vec<T> {
    lines.truncate(MAX_LINES);
    lines
}

/// An unlock ahead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ahead {
    /// Slug.
    pub token: String,
    /// Ticker.
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
pub struct Changed {
    /// When it was seen.
    pub at: Timestamp,
    /// Slug.
    pub token: String,
    /// Ticker.
    pub symbol: String,
    /// What happened, in words.
    pub text: String,
}

/// A silence that holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Silenced {
    /// What it takes, as it is written.
    pub matchers: String,
    /// When it ends.
    pub until: Timestamp,
    /// Who made it.
    pub author: String,
    /// Why.
    pub comment: String,
}

/// A message that was held back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldBack {
    /// `silenced`, `inhibited` or `acknowledged`.
    pub state: String,
    /// Name of the rule.
    pub rule: String,
    /// First line of the message.
    pub summary: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        crate::wire::parse_timestamp(text).expect("a time")
    }

    fn schedule(at: &str, days: &[&str], timezone: &str) -> Schedule {
        let days = days.iter().map(|day| (*day).to_owned()).collect();
        let config = config::Digest { at: at.into(), days, timezone: Some(timezone.into()), ahead: None };
        Schedule::of(&config).expect("a schedule")
    }

    /// The slots that a look every five minutes finds.
    fn slots(schedule: &Schedule, from: &str, to: &str) -> Vec<String> {
        let mut slots: Vec<Timestamp> = Vec::new();
        let mut now = time(from);
        let mut last = schedule.last(now);
        while now < time(to) {
            now += TimeDelta::minutes(5);
            let slot = schedule.last(now);
            if slot > last {
                slots.extend(slot);
                last = slot;
            }
        }
        slots.iter().map(|slot| slot.format("%d %H:%M").to_string()).collect()
    }

    #[test]
    fn a_digest_comes_once_a_day_at_its_wall_clock_time_also_when_clocks_change() {
        let morning = schedule("08:00", &[], "Europe/Paris");
        assert_eq!(slots(&morning, "2026-03-27T12:00:00Z", "2026-03-30T12:00:00Z"), ["28 07:00", "29 06:00", "30 06:00"]);
        let skipped = schedule("02:30", &[], "Europe/Paris");
        assert_eq!(slots(&skipped, "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z"), ["29 01:30", "30 00:30"]);
        let twice = schedule("02:30", &[], "Europe/Paris");
        assert_eq!(slots(&twice, "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z"), ["25 00:30", "26 01:30"]);
    }

    #[test]
    fn the_next_digest_is_the_one_that_comes() {
        for (of, from) in [
            (schedule("08:00", &[], "Europe/Paris"), "2026-03-27T12:00:00Z"),
            (schedule("02:30", &[], "Europe/Paris"), "2026-10-24T12:00:00Z"),
            (schedule("23:45", &["sun"], "America/New_York"), "2026-03-06T00:00:00Z"),
            (schedule("00:10", &["mon"], "Pacific/Auckland"), "2026-09-25T00:00:00Z"),
        ] {
            let mut now = time(from);
            for _ in 0..6 {
                let next = of.next(now).expect("a slot");
                assert!(next > now && next - now <= TimeDelta::days(8));
                assert_eq!(of.last(next - TimeDelta::seconds(1)), of.last(now), "nothing lies between");
                assert_eq!(of.last(next), Some(next));
                now = next;
            }
        }
    }

    #[test]
    fn a_digest_keeps_to_its_days() {
        let weekly = schedule("18:00", &["mon", "thu:fri"], "UTC");
        assert_eq!(
            slots(&weekly, "2026-03-08T00:00:00Z", "2026-03-16T23:00:00Z"),
            ["09 18:00", "12 18:00", "13 18:00", "16 18:00"]
        );
    }

    #[test]
    fn what_is_wrong_with_a_digest_is_told_by_key() {
        let key = |config: config::Digest| Schedule::of(&config).expect_err("wrong").0;
        let good = config::Digest { at: "08:00".into(), ..config::Digest::default() };
        assert_eq!(key(config::Digest::default()), "at");
        assert_eq!(key(config::Digest { at: "24:00".into(), ..good.clone() }), "at");
        assert_eq!(key(config::Digest { days: vec!["someday".into()], ..good.clone() }), "days");
        assert_eq!(key(config::Digest { timezone: Some("Paris".into()), ..good }), "timezone");
    }

    #[test]
    fn a_digest_reads_as_plain_text_and_hostile_names_stay_on_their_lines() {
        let unlock = |symbol: &str, value| Ahead {
            token: "x".into(),
            symbol: symbol.into(),
            at: time("2026-03-16T13:00:00Z"),
            when: "on 16 Mar 2026, 13:00 UTC".into(),
            value,
            amount: Some(92_650_000.0),
            share: value.map(|_| 2.3),
        };
        let digest = Digest {
            since: time("2026-03-08T07:00:00Z"),
            at: time("2026-03-09T07:00:00Z"),
            until: time("2026-03-16T07:00:00Z"),
            ahead: vec![unlock("ARB", Some(96_100_000.0)), unlock("EV\nIL", None)],
            ahead_left_out: 0,
            changes: vec![Changed {
                at: time("2026-03-08T12:00:00Z"),
                token: "aptos".into(),
                symbol: "APT".into(),
                text: "APT: the unlock of 12 Mar 2026 moved by +4 days".into(),
            }],
            changes_left_out: 2,
            held_back: vec![HeldBack { state: "silenced".into(), rule: "Big".into(), summary: "SUI: $5.0M unlocks".into() }],
            held_back_left_out: 0,
            silences: vec![Silenced {
                matchers: "token=\"sui\"".into(),
                until: time("2026-03-10T18:00:00Z"),
                author: "ann".into(),
                comment: "known\r\nto the exchange".into(),
            }],
            silences_left_out: 0,
            firing: 1,
            trouble: vec!["The source does not answer in time".into()],
        };
        insta::assert_snapshot!(format!("{}\n\n{}", digest.summary(), digest.text()));
        let notice = digest.notice(&"desk".into(), digest.at);
        assert_eq!(notice.id, digest.notice(&"desk".into(), digest.until).id, "the same slot is the same message");
        assert_eq!(serde_json::from_value::<Digest>(notice.body.record.expect("a record")).expect("reads"), digest);
    }
}

//! When a digest is due: a wall-clock time of a zone, on all days or some. Pure.

use chrono::TimeDelta;
use jiff::{ToSpan, civil::Weekday, tz::TimeZone};

use crate::route::interval::{days_of_week, time_of_day};
use crate::slot;
use model::{ReceiverName, Timestamp, config};

/// How far a digest looks ahead unless its receiver says otherwise.
pub const AHEAD: TimeDelta = TimeDelta::days(7);

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
    /// Reads `digest` of a receiver. Fails with the first thing that is wrong in it.
    pub fn of(config: &config::DigestSettings) -> Result<Self, Wrong> {
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
    pub fn last(&self, now: Timestamp) -> Option<Timestamp> {
        (0..=LOOK_BACK_DAYS).find_map(|back| self.slot(now, -back).filter(|slot| *slot <= now))
    }

    /// The first slot after `now`.
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

#[derive(Clone, Debug)]
pub struct DigestPlan {
    pub receiver: ReceiverName,
    /// When.
    pub schedule: Schedule,
    /// When, in words: `08:00 Europe/Paris, mon:fri`.
    pub words: String,
}

/// The digests of a config, in the order of its receivers.
/// Fails with what is wrong with the first that is wrong; the check of the config finds it with its place.
pub fn plans(receivers: &[config::ReceiverSettings]) -> Result<Vec<DigestPlan>, String> {
    let with_digest = receivers.iter().filter_map(|receiver| Some((receiver, receiver.digest.as_ref()?)));
    with_digest
        .map(|(receiver, digest)| {
            let schedule = Schedule::of(digest)
                .map_err(|(key, message, _)| format!("the digest of receiver {:?}: {key}: {message}", receiver.name))?;
            let days = if digest.days.is_empty() { String::new() } else { format!(", {}", digest.days.join(" ")) };
            let words = format!("{} {}{days}", digest.at, digest.timezone.as_deref().unwrap_or("UTC"));
            Ok(DigestPlan { receiver: ReceiverName::from(receiver.name.as_str()), schedule, words })
        })
        .collect()
}

#[cfg(test)]
mod tests;

//! When a digest is due: at a local time of day, on every day or some weekdays. Pure.

use chrono::TimeDelta;
use jiff::{ToSpan, civil::Weekday, tz::TimeZone};

use crate::route::interval::{days_of_week, time_of_day};
use crate::slot;
use model::{DigestSelection, ReceiverName, Timestamp, Watch, config};

/// The default look-ahead period.
pub const AHEAD: TimeDelta = TimeDelta::days(7);

/// The maximum time between two slots of a digest.
pub const MAX_SLOT_INTERVAL: TimeDelta = TimeDelta::days(SEARCH_DAYS);

/// The number of days to search for a slot: more than a week, so that it covers every weekday.
const SEARCH_DAYS: i64 = 8;

/// When a receiver gets its digest, and the period that the digest covers.
#[derive(Clone, Debug)]
pub struct Schedule {
    minute: u16,
    days: Vec<Weekday>,
    zone: TimeZone,
    /// The look-ahead period, counted from the slot.
    pub ahead: TimeDelta,
}

/// A problem in `digest`: the key, the message, and the help text.
pub type DigestProblem = (&'static str, String, String);

impl Schedule {
    /// Parses `digest` of a receiver.
    ///
    /// # Errors
    ///
    /// Fails with the first problem.
    pub fn of(config: &config::DigestSettings) -> Result<Self, DigestProblem> {
        let minute = time_of_day(&config.at).filter(|minute| *minute < 24 * 60).ok_or_else(|| {
            let message = if config.at.is_empty() {
                "the digest has no time of day `at`".to_owned()
            } else {
                format!("{:?} is not a time of day", config.at)
            };
            ("at", message, "example: at = \"08:00\"".to_owned())
        })?;
        let days = days_of_week(&config.days).map_err(|index| {
            let text = config.days.get(index).map_or("", String::as_str);
            (
                "days",
                format!("{text:?} is not a weekday or a range of weekdays"),
                "examples: days = [\"mon:fri\"], days = [\"mon\", \"thu\"]".to_owned(),
            )
        })?;
        let name = config.timezone.as_deref().unwrap_or("UTC");
        let zone = slot::zone(name).map_err(|_| {
            let advice = "expected an IANA name, like \"UTC\" or \"Europe/Paris\"".to_owned();
            ("timezone", format!("{name:?} is not a time zone"), advice)
        })?;
        Ok(Self { minute, days, zone, ahead: config.ahead.map_or(AHEAD, config::Span::delta) })
    }

    /// Returns the last slot at or before `now`. Each scheduled day has exactly one slot: a local time that daylight saving skips moves to
    /// after the gap, and of a time that occurs twice the first one counts.
    pub fn last(&self, now: Timestamp) -> Option<Timestamp> {
        (0..=SEARCH_DAYS).find_map(|back| self.slot(now, -back).filter(|slot| *slot <= now))
    }

    /// Returns the first slot after `now`.
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        (-1..=SEARCH_DAYS).find_map(|ahead| self.slot(now, ahead).filter(|slot| *slot > now))
    }

    /// Returns the action if a slot has come since `last`, the one that was last sent or recorded.
    pub fn action(&self, last: Option<Timestamp>, now: Timestamp) -> Option<DigestAction> {
        let slot = self.last(now)?;
        match last {
            Some(since) if since >= slot => None,
            Some(since) => Some(DigestAction::Due { since, slot }),
            None => Some(DigestAction::Begin(slot)),
        }
    }

    /// Returns the slot on the day `days` after the day of `now`; `None` if no digest is scheduled on that day.
    fn slot(&self, now: Timestamp, days: i64) -> Option<Timestamp> {
        let local = jiff::Timestamp::from_millisecond(now.timestamp_millis()).ok()?.to_zoned(self.zone.clone());
        let date = local.date().checked_add(days.days()).ok()?;
        if !self.days.contains(&date.weekday()) {
            return None;
        }
        let (hour, minute) = (i8::try_from(self.minute / 60).ok()?, i8::try_from(self.minute % 60).ok()?);
        let slot = date.at(hour, minute, 0, 0).to_zoned(self.zone.clone()).ok()?;
        Timestamp::from_timestamp_millis(slot.timestamp().as_millisecond())
    }
}

/// The action for a digest whose slot has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestAction {
    /// A new digest starts with its next slot. This slot is only recorded.
    Begin(Timestamp),
    /// A slot has come. If several were missed, one digest covers the changes since the last one.
    Due {
        /// The slot that was last sent or recorded.
        since: Timestamp,
        slot: Timestamp,
    },
}

impl DigestAction {
    pub fn slot(self) -> Timestamp {
        match self {
            DigestAction::Begin(slot) | DigestAction::Due { slot, .. } => slot,
        }
    }
}

/// The digest of a receiver.
#[derive(Clone, Debug)]
pub struct DigestPlan {
    pub receiver: ReceiverName,
    pub schedule: Schedule,
    /// The schedule as text, like `08:00 Europe/Paris, mon:fri`.
    pub words: String,
    /// The age from which prices are stale.
    pub stale_price: TimeDelta,
    /// The unlocks that are listed.
    pub selection: DigestSelection,
    /// Patterns of the tokens that the digest is about. Empty for all watched tokens.
    pub tokens: Vec<String>,
    /// Whether the digest has positions.
    pub has_positions: bool,
}

impl DigestPlan {
    /// Returns the watch of the tokens that the digest is about. `None` for all watched tokens.
    pub fn narrowed(&self, watch: &Watch) -> Option<Watch> {
        // The check of the config rejects invalid patterns. Without it, show all rather than too few.
        (!self.tokens.is_empty()).then(|| watch.narrowed(&self.tokens).unwrap_or_else(|_| watch.clone()))
    }
}

/// Returns the digests of a config, in the order of its receivers. `stale_price` is the age from which prices are stale.
///
/// # Errors
///
/// Fails with the first problem, without its location. The check of the config reports all problems with their locations.
pub fn plans(receivers: &[config::ReceiverSettings], stale_price: config::Span) -> Result<Vec<DigestPlan>, String> {
    let with_digest = receivers.iter().filter_map(|receiver| Some((receiver, receiver.digest.as_ref()?)));
    with_digest
        .map(|(receiver, digest)| {
            let schedule = Schedule::of(digest)
                .map_err(|(key, message, _)| format!("the digest of receiver {:?}: {key}: {message}", receiver.name))?;
            let days = if digest.days.is_empty() { String::new() } else { format!(", {}", digest.days.join(" ")) };
            let words = format!("{} {}{days}", digest.at, digest.timezone.as_deref().unwrap_or("UTC"));
            let receiver = ReceiverName::from(receiver.name.as_str());
            let (selection, tokens) = (DigestSelection::of(digest), digest.tokens.clone());
            Ok(DigestPlan {
                receiver,
                schedule,
                words,
                stale_price: stale_price.delta(),
                selection,
                tokens,
                has_positions: digest.positions,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;

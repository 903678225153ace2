//! The slots of a job: cron patterns in the local time of a zone, as instants in UTC. Pure.
//!
//! The time zone database is part of the program, because the one of the system may be older. Daylight saving time applies to each slot,
//! so that "18:00 in Paris" stays 18:00 there all year.

use croner::Cron;
use croner::parser::{CronParser, Seconds};
use jiff::{Zoned, tz::TimeZone};

use model::Timestamp;

/// A cron pattern in a time zone.
#[derive(Clone, Debug)]
pub struct Slots {
    cron: Cron,
    zone: TimeZone,
}

/// An invalid cron pattern or time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotError {
    #[error("{0:?} is not a time zone: expected an IANA name like \"Europe/Paris\"")]
    Zone(String),
    #[error("{pattern:?} is not a cron pattern: {why}")]
    Pattern { pattern: String, why: String },
}

/// Returns the time zone of an IANA name, from the bundled database.
///
/// # Errors
///
/// Fails if no zone has that name.
pub fn zone(name: &str) -> Result<TimeZone, SlotError> {
    jiff::tz::TimeZoneDatabase::bundled().get(name).map_err(|_| SlotError::Zone(name.to_owned()))
}

impl Slots {
    /// Parses a pattern with six fields, seconds first. Returns `None` for `off`.
    ///
    /// # Errors
    ///
    /// Fails if the pattern or the zone is invalid.
    pub fn parse(pattern: &str, zone_name: &str) -> Result<Option<Self>, SlotError> {
        let zone = zone(zone_name)?;
        if pattern.trim() == "off" {
            return Ok(None);
        }
        let cron = CronParser::builder()
            .seconds(Seconds::Required)
            .build()
            .parse(pattern)
            .map_err(|error| SlotError::Pattern { pattern: pattern.to_owned(), why: error.to_string() })?;
        Ok(Some(Self { cron, zone }))
    }

    /// Returns the first slot after `after`, or `None` if the pattern never matches, like 31 February.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.cron.find_next_occurrence(&self.zoned(after)?, false).ok().and_then(|slot| from_zoned(&slot))
    }

    /// Returns the last slot at or before `at`.
    pub fn last(&self, at: Timestamp) -> Option<Timestamp> {
        self.cron.find_previous_occurrence(&self.zoned(at)?, true).ok().and_then(|slot| from_zoned(&slot))
    }

    /// Counts the slots after `after` up to and including `until`, at most `max`.
    pub fn count(&self, after: Timestamp, until: Timestamp, max: u32) -> u32 {
        let mut count = 0;
        let mut at = after;
        while count < max {
            match self.next(at) {
                Some(slot) if slot <= until => {
                    count += 1;
                    at = slot;
                }
                _ => break,
            }
        }
        count
    }

    fn zoned(&self, at: Timestamp) -> Option<Zoned> {
        // A pattern has whole seconds. A fraction would become part of the slot.
        jiff::Timestamp::from_second(at.timestamp()).ok().map(|at| at.to_zoned(self.zone.clone()))
    }
}

fn from_zoned(at: &Zoned) -> Option<Timestamp> {
    chrono::DateTime::from_timestamp(at.timestamp().as_second(), 0)
}

#[cfg(test)]
mod tests;

//! When a job is due: cron patterns read by the clock of a zone, as instants in UTC. Pure.
//!
//! Zone rules come with the program, since those of a system may be older; daylight saving is followed at each slot, so that
//! "18:00 in Paris" stays 18:00 there all year.

use croner::Cron;
use croner::parser::{CronParser, Seconds};
use jiff::{Zoned, tz::TimeZone};

use model::Timestamp;

/// A pattern in a zone.
#[derive(Clone, Debug)]
pub struct Slots {
    cron: Cron,
    zone: TimeZone,
}

/// Why a pattern or a zone cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotError {
    #[error("there is no time zone {0:?}")]
    Zone(String),
    #[error("{pattern:?} is no cron pattern: {why}")]
    Pattern {
        /// As written.
        pattern: String,
        /// What the parser said.
        why: String,
    },
}

/// The zone of an IANA name, by the rules that come with this program. Fails where there is none of that name.
pub fn zone(name: &str) -> Result<TimeZone, SlotError> {
    jiff::tz::TimeZoneDatabase::bundled().get(name).map_err(|_| SlotError::Zone(name.to_owned()))
}

impl Slots {
    /// Reads a six-field pattern (seconds first). `off` gives none. Fails where the pattern or the zone cannot be read.
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

    /// The first slot after `after`; none where the pattern never comes (31 February).
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.cron.find_next_occurrence(&self.zoned(after)?, false).ok().and_then(|slot| from_zoned(&slot))
    }

    /// The last slot at or before `at`.
    pub fn last(&self, at: Timestamp) -> Option<Timestamp> {
        self.cron.find_previous_occurrence(&self.zoned(at)?, true).ok().and_then(|slot| from_zoned(&slot))
    }

    /// Slots after `after` up to `until`, at most `most`.
    pub fn count(&self, after: Timestamp, until: Timestamp, most: u32) -> u32 {
        let mut count = 0;
        let mut at = after;
        while count < most {
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
        // Whole seconds: a pattern knows nothing finer, and a fraction would be carried into the slot.
        jiff::Timestamp::from_second(at.timestamp()).ok().map(|at| at.to_zoned(self.zone.clone()))
    }
}

fn from_zoned(at: &Zoned) -> Option<Timestamp> {
    chrono::DateTime::from_timestamp(at.timestamp().as_second(), 0)
}

#[cfg(test)]
mod tests;

//! The reminder before the nominal day of a month or week.
//!
//! Lead times count from the first possible instant, so all of them are sent before the month begins. The source's own date is what a
//! trader expects, so the shortest lead time is sent once more before it.

use chrono::TimeDelta;

use model::{Interval, Timestamp};
use rules::Lead;

/// The time that an evaluation may be late. A notification for the shortest lead time that is sent later counts for both instants.
const ON_TIME: TimeDelta = TimeDelta::days(1);

/// Separates the lead time and the nominal day in [`NominalReminder::text`].
const BEFORE: &str = " before ";

/// The second notification for the shortest lead time of a rule.
#[derive(Clone, Copy, Debug)]
pub struct NominalReminder<'a> {
    pub lead: &'a Lead,
    /// The lead time before the nominal day.
    pub at: Timestamp,
    day: Interval,
    /// From this time on, a notification for the lead time counts for both instants.
    covered_from: Timestamp,
}

impl<'a> NominalReminder<'a> {
    /// Returns the reminder for a date. `None` without lead times, for an exact date, and if the nominal day is the first possible one.
    pub fn of(within: &'a [Lead], due: Interval) -> Option<Self> {
        let lead = within.iter().min_by_key(|lead| lead.span)?;
        let day = due.nominal_day().filter(|day| day.start > due.start)?;
        let at = day.start.checked_sub_signed(lead.span)?;
        let covered_from = due.start.checked_sub_signed(lead.span)?.checked_add_signed(ON_TIME)?.min(at);
        Some(Self { lead, at, day, covered_from })
    }

    /// Returns whether the reminder must be sent now. `sent` are the lead times that were sent.
    pub(super) fn is_due(&self, sent: &[String], now: Timestamp) -> bool {
        self.at <= now && self.is_ahead(sent, now)
    }

    /// Returns whether the reminder was not sent and its nominal day is not over.
    pub(super) fn is_ahead(&self, sent: &[String], now: Timestamp) -> bool {
        // After a move to an earlier day of the same month, the reminder is not sent again.
        let covers = |text: &String| text.split_once(BEFORE).is_some_and(|(_, day)| day >= self.day_text().as_str());
        !self.day.has_passed(now) && !sent.iter().any(covers)
    }

    /// Returns whether a notification for the lead time at `now` makes the reminder unnecessary.
    pub(super) fn is_covered_at(&self, now: Timestamp) -> bool {
        self.covered_from < now && !self.day.has_passed(now)
    }

    /// Returns the text that stands for the reminder among the lead times that were sent: `1d before 2026-11-16`.
    pub(super) fn text(&self) -> String {
        format!("{}{BEFORE}{}", self.lead.text, self.day_text())
    }

    fn day_text(&self) -> String {
        self.day.start.format("%Y-%m-%d").to_string()
    }
}

//! Phrases about dates before and after a change.

use chrono::TimeDelta;

use super::tranches::{TrancheFacts, are_months};
use crate::phrase::{day, instant, month};
use crate::{Interval, Precision, Timestamp};

/// A date before and after a change. `None` if there is no date.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DateChange {
    pub from: (Option<Timestamp>, Precision),
    pub to: (Option<Timestamp>, Precision),
}

impl DateChange {
    /// The loss of the date of a tranche: `date withdrawn (was January 2028)`. `None` if it has one.
    pub(super) fn lost_date(&self) -> Option<String> {
        let was = self.to.0.is_none().then_some(self.from.0).flatten().map(|at| date_text(at, self.from.1))?;
        let what = if self.to.1 == Precision::ToBeDetermined { "to be determined" } else { "withdrawn" };
        Some(format!("date {what} (was {was})"))
    }

    /// Returns the new date of a tranche that had no date. `None` if it had one.
    pub(super) fn first_date(&self) -> Option<String> {
        self.from.0.is_none().then_some(self.to.0).flatten().map(|at| date_text(at, self.to.1))
    }

    /// Returns both dates, each as exact as it is: `17 Apr 2026 (before: April 2026)`. If they read alike, states how exact they are.
    pub(super) fn precision_text(&self) -> String {
        let one = |(at, precision): (Option<Timestamp>, Precision)| {
            at.map_or_else(|| "no date".to_owned(), |at| date_text(at, precision))
        };
        let (from, to) = (one(self.from), one(self.to));
        if from == to {
            return format!("{to}, exact to the {} (before: to the {})", unit_of(self.to.1), unit_of(self.from.1));
        }
        format!("{to} (before: {from})")
    }

    /// Returns both dates, no more exact than the change needs: `from 12 to 16 Mar 2026`, `from March 2026 to May 2026`; with the time of day if
    /// both are on one day.
    pub(super) fn text(&self) -> String {
        const UNDECIDED: Precision = Precision::ToBeDetermined;
        let Self { from, to } = *self;
        let one = |(at, precision): (Option<Timestamp>, Precision), is_month_enough: bool| match (at, precision) {
            (_, UNDECIDED) => "a date to be determined".to_owned(),
            (Some(at), Precision::Month) if is_month_enough => month(at),
            (at, _) => day_or_none(at),
        };
        if let (Some(a), Some(b)) = (from.0, to.0) {
            let is_one_month = month(a) == month(b);
            // If one of them is only a month, its day is not known.
            let is_month_enough = !is_one_month || (from.1 == Precision::Month) != (to.1 == Precision::Month);
            let are_days = !is_month_enough && from.1 != UNDECIDED && to.1 != UNDECIDED;
            let has_no_day = |precision| matches!(precision, Precision::Month | Precision::Week);
            if are_days && a.date_naive() == b.date_naive() && has_no_day(from.1) && has_no_day(to.1) {
                return format!("within {}", month(a));
            }
            let is_exact = |precision| !has_no_day(precision) && precision != UNDECIDED;
            let are_near = is_exact(from.1) && is_exact(to.1) && (b - a).abs() < TimeDelta::days(1);
            if are_near || are_days && a.date_naive() == b.date_naive() {
                return format!("from {} to {}", instant(a), instant(b));
            }
            if are_days && a < b {
                return format!("from {} to {}", a.format("%-d"), day(b));
            }
            return format!("from {} to {}", one(from, is_month_enough), one(to, is_month_enough));
        }
        format!("from {} to {}", one(from, true), one(to, true))
    }
}

/// A date, as exact as it is: `17 Apr 2026, 12:00 UTC`, `17 Apr 2026`, `week of 12 Apr 2026`, `April 2026`.
fn date_text(at: Timestamp, precision: Precision) -> String {
    match precision {
        Precision::Second | Precision::Hour if at.time() != chrono::NaiveTime::MIN => instant(at),
        Precision::Week => format!("week of {}", Interval::of(at, precision).map_or_else(|| day(at), |week| day(week.start))),
        Precision::Month => month(at),
        _ => day(at),
    }
}

fn unit_of(precision: Precision) -> &'static str {
    match precision {
        Precision::Second => "second",
        Precision::Hour => "hour",
        Precision::Day | Precision::ToBeDetermined => "day",
        Precision::Week => "week",
        Precision::Month => "month",
    }
}

fn day_or_none(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "no date".to_owned(), day)
}

/// The first and the last instant of tranches, ends of linear unlocks included.
pub(super) struct DateSpan {
    pub begin: Option<Timestamp>,
    pub end: Option<Timestamp>,
    /// Whether only the months are known.
    are_months: bool,
}

impl DateSpan {
    /// `None` without tranches.
    pub fn of(tranches: &[TrancheFacts]) -> Option<Self> {
        let begin = tranches.iter().map(|tranche| tranche.at).min()?;
        let end = tranches.iter().map(|tranche| tranche.end.or(tranche.at)).max()?;
        Some(Self { begin, end, are_months: are_months(tranches) })
    }

    /// `from 10 May 2026 until 10 Feb 2029 as before`.
    pub fn as_before(&self) -> String {
        format!("from {} until {} as before", self.text(self.begin), self.text(self.end))
    }

    /// One of the dates, no more exact than the source.
    pub fn text(&self, at: Option<Timestamp>) -> String {
        at.filter(|_| self.are_months).map_or_else(|| day_or_none(at), month)
    }

    /// Returns a phrase for the start and one for the end, if it moved by at least `least` and to another day: `starts on 1 Apr 2026
    /// instead of 1 Mar 2026`, or `on 1 Apr 2026 instead of 1 Mar 2026` if both have one date. Names months if the source gives no days. A
    /// date that was added or removed counts as moved.
    pub fn changes(&self, new: &Self, least: TimeDelta) -> Vec<String> {
        let moved = |from: Option<Timestamp>, to: Option<Timestamp>| match (from, to) {
            (Some(from), Some(to)) => (to - from).abs() >= least && day(from) != day(to),
            (from, to) => from != to,
        };
        let change = |verb: &str, from: Option<Timestamp>, to: Option<Timestamp>| {
            let is_in_one_month = from.map(month) == to.map(month);
            let is_month = |of: &Self, other: &Self| of.are_months && !(is_in_one_month && other.are_months);
            let text = |of: &Self, other: &Self, at: Option<Timestamp>| match at {
                Some(at) if is_month(of, other) => month(at),
                at => day_or_none(at),
            };
            moved(from, to).then(|| match to {
                Some(_) => {
                    let preposition = if is_month(new, self) { "in" } else { "on" };
                    format!("{verb} {preposition} {} instead of {}", text(new, self, to), text(self, new, from))
                }
                None => format!("{verb} without a date instead of {}", text(self, new, from)),
            })
        };
        if self.begin == self.end && new.begin == new.end {
            return change("", self.begin, new.begin).map(|dates| dates.trim_start().to_owned()).into_iter().collect();
        }
        [change("starts", self.begin, new.begin), change("ends", self.end, new.end)].into_iter().flatten().collect()
    }
}

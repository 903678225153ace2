//! Learns the visibility window: the range of dates that the server shows to this plan. Pure.
//!
//! A plan may show a year to either side of today without saying so. Then a tranche slides out of the window each day and another slides
//! in, and neither was removed or added. A single response cannot distinguish the edge of a window from the end of a schedule, but
//! several can: an edge moves with today, a schedule does not. So each [`WindowEdge`] stores two distances from today: the greatest at which
//! the server listed anything, and the least at which it left something out. The edge always lies between them.
//!
//! An edge is confirmed only with evidence, because nothing beyond it is compared any more. One event that left or entered at a whole
//! number of years may be a coincidence, because teams correct the outermost event of a schedule, too. The evidence is:
//!
//! - Two events that left or entered at the same distance, at different times. The other may be one of another token, because the window
//!   is the same for all. The events of one response count as one, as does an event that waits for proof in several responses.
//! - Schedules of other tokens that end just before a whole number of years, where an event left or entered.
//! - An event that entered at a whole number of years, if an edge behind is known or presumed: a plan cuts both sides.
//! - Events of both sides that a server cuts at whole years at once: the plan changed.
//!
//! A single event that left behind, at a whole number of years or long past, is presumed to be outside the window for a year, and stays
//! known. Otherwise each token of a small plan would report one false removal. If no second event confirms that, it is removed. If the same
//! response corrects other dates, the event left because of that correction, and nothing is presumed.
//!
//! An edge is dropped as soon as the server lists anything beyond it, of this token or of another one. What it hid is then compared.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::listed_schedules::OtherSchedules;
use crate::diff::DateWindow;
use model::{is_placeholder, supply::Timestamp};

const DAY: i64 = 86_400;

/// The difference, in seconds, below which two distances are equal. Servers cut at whole days, in their time zone or ours.
const SLACK: i64 = DAY;

/// The maximum difference, in seconds, between the distances that enclose an edge. After a longer pause they prove nothing.
const MAX_RANGE: i64 = 10 * DAY;

/// The same maximum if both sides are cut at once.
const MAX_RANGE_OF_BOTH: i64 = 100 * DAY;

/// The minimum age, in seconds, of events that leave behind at an odd distance and stay known.
const MIN_AGE_OF_LEFT: i64 = 180 * DAY;

/// The maximum time for which a single event that left behind is presumed to be outside the window: longer than a year, the longest usual
/// time between two events.
const MAX_PRESUMED: TimeDelta = TimeDelta::days(400);

/// The maximum reach of a plan.
const MAX_YEARS: i64 = 10;

/// One edge of the visibility window. Distances are in seconds from now, outward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WindowEdge {
    /// The greatest distance at which the server listed an event.
    farthest_seen: Option<i64>,
    /// The least distance at which an event was left out that is known, or that entered later.
    nearest_unseen: Option<i64>,
    /// Whether there is an edge between the two.
    is_confirmed: bool,
    /// The last event that left or entered.
    #[serde(skip_serializing_if = "Option::is_none")]
    crossing: Option<Crossing>,
    /// Whether that event is presumed to be outside the window.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_presumed: bool,
}

/// An event that left or entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Crossing {
    /// The date of the event. Of several, the one nearest to now.
    event: Timestamp,
    /// The time of the response that showed it.
    at: Timestamp,
}

/// The side of today on which an edge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EdgeSide {
    Back,
    Ahead,
}

/// The range of distances, in seconds, in which one response shows an edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct EdgeRange {
    least: i64,
    most: i64,
}

impl EdgeRange {
    pub(super) fn least(self) -> i64 {
        self.least
    }

    /// Returns whether one edge that moves with today explains the range.
    fn is_one_edge(self, max_range: i64) -> bool {
        self.least <= self.most + SLACK && self.most - self.least <= max_range
    }

    fn contains_whole_years(self) -> bool {
        (1..=MAX_YEARS).any(|years| self.least <= years * 366 * DAY + SLACK && years * 365 * DAY - SLACK <= self.most)
    }

    fn agrees_with(self, edge: WindowEdge) -> bool {
        let (Some(seen), Some(unseen)) = (edge.farthest_seen, edge.nearest_unseen) else { return false };
        self.least.max(seen) <= self.most.min(unseen) + SLACK
    }
}

/// The dates that a response lists of one form of unlock, or of all, and the known ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation<'a> {
    /// Known dates of the form that the response could list.
    pub known: &'a [Timestamp],
    /// All dates that the response lists.
    pub listed: &'a [Timestamp],
    /// The listed dates of the form. Others may have entered at another time.
    pub listed_of_form: &'a [Timestamp],
    /// The time of the previous response with this form.
    pub previous_at: Timestamp,
    /// Whether the form is polled so rarely that an edge can be confirmed after a long pause.
    pub is_rare: bool,
    /// Whether the response corrects other dates as well. Then an event that is left out may have been removed.
    pub is_corrected: bool,
    /// The schedules of other tokens that were read since.
    pub others: OtherSchedules<'a>,
}

/// The visibility window of a feed, as far as its responses have shown it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Visibility {
    back: WindowEdge,
    ahead: WindowEdge,
}

impl Visibility {
    /// Returns the window after the first response. On each side, it contains the outermost listed date as the farthest date seen;
    /// neither edge is confirmed. With an empty list, no date was seen.
    pub(super) fn from_first_response(listed: &[Timestamp], now: Timestamp) -> Self {
        let edge = |at: Option<&Timestamp>, outward: i64| WindowEdge {
            farthest_seen: at.map(|at| (*at - now).num_seconds() * outward),
            ..WindowEdge::default()
        };
        Self { back: edge(listed.iter().min(), -1), ahead: edge(listed.iter().max(), 1) }
    }

    /// Returns the window of segments, updated with the dates that cliffs have shown since segments were last polled. Both forms have
    /// the same edges.
    pub(super) fn informed_by(self, cliffs: Self) -> Self {
        let edge = |own: WindowEdge, other: WindowEdge| match other.farthest_seen {
            Some(seen) if !other.is_confirmed && !other.is_presumed => own.with_seen(seen),
            Some(_) => other,
            None => own,
        };
        Self { back: edge(self.back, cliffs.back), ahead: edge(self.ahead, cliffs.ahead) }
    }

    /// Returns the window after one more response.
    pub(super) fn learn(self, observation: &Observation<'_>, now: Timestamp) -> Self {
        let Observation { known, listed, listed_of_form, previous_at, is_rare, is_corrected, others } = *observation;
        let is_dated = |at: &&Timestamp| !is_placeholder(**at);
        let known: Vec<Timestamp> = known.iter().filter(is_dated).copied().collect();
        let seconds = |delta: TimeDelta| delta.num_seconds();
        let previous_at = previous_at.min(now);
        // During a pause, events of a rare form may have crossed an edge at any time. The oldest known events confirm an edge after a
        // pause of any length. New events far ahead confirm one only after a season at most, because they may have been added instead.
        let (max_range_back, max_range_ahead) = match is_rare {
            true => (i64::MAX, (seconds(now - previous_at) + MAX_RANGE).min(MAX_RANGE_OF_BOTH)),
            false => (MAX_RANGE, MAX_RANGE),
        };
        let (first, last) = (listed.iter().filter(is_dated).min(), listed.iter().filter(is_dated).max());
        let (Some(first), Some(last)) = (first, last) else {
            // An empty list can mean that the last event of the schedule left the window.
            let left = known.iter().filter(|at| self.back.can_leave(**at));
            let (Some(oldest), Some(youngest)) = (left.clone().min(), left.max()) else { return self };
            let least = seconds(previous_at - *oldest).max(self.back.farthest_seen.unwrap_or(i64::MIN));
            let left =
                CrossedEdge::new(EdgeSide::Back, EdgeRange { least, most: seconds(now - *youngest) }, *youngest, now, others);
            let back = match self.back.is_confirmed {
                true => self.back,
                false => self.back.after_leaving(Some(left), least, (max_range_back, false)),
            };
            return Self { back, ..self };
        };
        let (back, ahead) = (seconds(now - *first), seconds(*last - now));

        // As time passes, events can only leave at the back and enter ahead. If the first listed event is new, or the last known event
        // is not listed, that event was rescheduled.
        let moved_back = listed_of_form.contains(first) && !known.contains(first);
        let moved_ahead = known.iter().max().is_some_and(|latest| !listed.contains(latest));
        let left = known.iter().filter(|at| *at < first && !moved_back && self.back.can_leave(**at));
        let left = left.clone().min().zip(left.max()).map(|(oldest, youngest)| {
            // Before there was an edge, all of these were listed in the previous response.
            let was_seen = if self.back.is_confirmed { i64::MIN } else { seconds(previous_at - *oldest) };
            let least = back.max(was_seen).max(self.back.farthest_seen.unwrap_or(i64::MIN));
            CrossedEdge::new(EdgeSide::Back, EdgeRange { least, most: seconds(now - *youngest) }, *youngest, now, others)
        });
        let cut: Option<EdgeRange> =
            known.iter().filter(|at| *at > last).min().map(|next| EdgeRange { least: ahead, most: seconds(*next - now) });
        let latest = known.iter().max();
        let new = listed_of_form.iter().filter(is_dated).filter(|at| !moved_ahead && latest.is_none_or(|latest| *at > latest));
        let entered =
            new.clone().max().zip(new.min()).filter(|(_, nearest)| self.ahead.can_enter(**nearest)).map(|(farthest, nearest)| {
                let range = EdgeRange { least: seconds(*farthest - now), most: seconds(*nearest - previous_at) };
                CrossedEdge::new(EdgeSide::Ahead, range, *nearest, now, others)
            });

        if let Some(smaller) = self.smaller_plan(left.map(|left| EdgeRange { least: back, ..left.range }), cut) {
            return smaller;
        }
        // The distance of the oldest event grows with time. Only a larger increase means that the window became wider.
        let aged = seconds(now - previous_at);
        let back_edge = self.back.widened(back - aged, back, left.map(|left| left.range));
        let back_edge = back_edge.unwrap_or_else(|| match self.back.is_refuted(EdgeSide::Back, others) {
            true => WindowEdge::default().with_seen(back),
            false => self.back.after_leaving(left, back, (max_range_back, is_corrected)),
        });
        // A plan that has an edge at the back also has one ahead.
        let has_back = back_edge.is_confirmed || back_edge.is_presumed;
        let max_range_ahead = if is_rare && has_back { i64::MAX } else { max_range_ahead };
        let ahead_edge = self.ahead.widened(ahead, ahead, cut);
        let ahead_edge = ahead_edge.unwrap_or_else(|| match self.ahead.is_refuted(EdgeSide::Ahead, others) {
            true => WindowEdge::default().with_seen(ahead),
            false => self.ahead.after_entering(entered, ahead, max_range_ahead, has_back),
        });
        Self { back: back_edge, ahead: ahead_edge }
    }

    /// Returns whether an event crossed an edge in this range before `now`.
    pub(super) fn crossed_in(self, side: EdgeSide, range: EdgeRange, now: Timestamp) -> bool {
        let edge = match side {
            EdgeSide::Back => self.back,
            EdgeSide::Ahead => self.ahead,
        };
        range.agrees_with(edge) && (edge.is_confirmed || edge.crossing.is_some_and(|crossing| crossing.at < now))
    }

    /// Returns whether the next response, which led to `next`, showed that there is no edge ahead, although this schedule lists nothing
    /// farther. If it does, the plan shows more than before.
    pub(super) fn is_refuted_ahead_by(self, next: Self) -> bool {
        let was_beyond =
            self.ahead.nearest_unseen.zip(next.ahead.farthest_seen).is_some_and(|(unseen, seen)| seen > unseen + SLACK);
        self.ahead.is_confirmed && !next.ahead.is_confirmed && !was_beyond
    }

    /// Returns the window of a plan that shows less than before: both sides were cut at whole years. One side alone would prove nothing.
    fn smaller_plan(self, left: Option<EdgeRange>, cut: Option<EdgeRange>) -> Option<Self> {
        let edge = |range: EdgeRange, was: WindowEdge| {
            let was_seen = was.farthest_seen.is_some_and(|seen| range.most + SLACK < seen);
            let is_cut = was_seen && range.is_one_edge(MAX_RANGE_OF_BOTH) && range.contains_whole_years();
            is_cut.then_some(WindowEdge {
                farthest_seen: Some(range.least),
                nearest_unseen: Some(range.most),
                is_confirmed: true,
                ..WindowEdge::default()
            })
        };
        Some(Self { back: edge(left?, self.back)?, ahead: edge(cut?, self.ahead)? })
    }

    /// Returns the days that a response at `at` is certain to cover. Unbounded on a side without a confirmed edge.
    pub(super) fn window(self, at: Timestamp) -> DateWindow {
        let day = |seconds: i64| Some(at.checked_add_signed(TimeDelta::try_seconds(seconds)?)?.date_naive());
        DateWindow { first: self.back.reach(at).and_then(|reach| day(-reach)), last: self.ahead.reach(at).and_then(day) }
    }
}

impl WindowEdge {
    /// Returns the distance, in seconds, up to which the server is certain to list all events at `at`. `None` if the edge is neither
    /// confirmed nor presumed.
    fn reach(self, at: Timestamp) -> Option<i64> {
        let is_presumed = self.is_presumed && self.crossing.is_some_and(|crossing| at - crossing.at <= MAX_PRESUMED);
        // One slack for the edge, and one because windows have whole days.
        Some(self.farthest_seen.filter(|_| self.is_confirmed || is_presumed)? - 2 * SLACK)
    }

    /// Returns whether the source lists events of other tokens beyond the edge.
    fn is_refuted(self, side: EdgeSide, others: OtherSchedules<'_>) -> bool {
        self.nearest_unseen.is_some_and(|unseen| others.list_beyond(side, unseen + SLACK))
    }

    /// Returns whether a known event that is not listed may show the edge behind. Older ones than the last that left did not leave now.
    fn can_leave(self, event: Timestamp) -> bool {
        self.is_confirmed || self.crossing.is_none_or(|crossing| event > crossing.event)
    }

    /// Returns whether a new event may show the edge ahead. The last one that entered counts once.
    fn can_enter(self, event: Timestamp) -> bool {
        self.crossing.is_none_or(|crossing| event > crossing.event)
    }

    /// Returns the edge after the server listed an event at the distance `seen`. An event beyond the edge resets the edge to unknown.
    fn with_seen(self, seen: i64) -> Self {
        let is_beyond = self.nearest_unseen.is_some_and(|unseen| seen > unseen + SLACK);
        let farthest_seen = Some(self.farthest_seen.map_or(seen, |before| before.max(seen)));
        if is_beyond { Self { farthest_seen, ..Self::default() } } else { Self { farthest_seen, ..self } }
    }

    /// Returns the new edge if the plan shows more than before, which is certain once the server lists an event from beyond a confirmed
    /// edge. `None` otherwise. If the server still leaves out known events, the new edge is confirmed farther out.
    fn widened(self, from: i64, seen: i64, left_out: Option<EdgeRange>) -> Option<Self> {
        let is_wider = self.is_confirmed && self.nearest_unseen.is_some_and(|unseen| from > unseen + SLACK);
        let next = left_out.filter(|out| out.most > seen && out.most - seen <= MAX_RANGE_OF_BOTH);
        is_wider.then(|| Self {
            farthest_seen: Some(seen),
            nearest_unseen: next.map(|out| out.most),
            is_confirmed: next.is_some(),
            ..Self::default()
        })
    }

    /// Returns the back edge after a response that leaves out the events of `left`, and that may correct other dates.
    fn after_leaving(self, left: Option<CrossedEdge<'_>>, seen: i64, (max_range, is_corrected): (i64, bool)) -> Self {
        let after = self.with_seen(seen);
        let Some(left) = left else { return after };
        let range = left.range;
        if self.is_confirmed {
            // Events that are left out although they are within the window do not show where its edge is.
            let nearer = |unseen: i64| if range.most + SLACK >= range.least { unseen.min(range.most) } else { unseen };
            let nearest_unseen = after.nearest_unseen.map(nearer);
            return if after.is_confirmed { Self { nearest_unseen, ..after } } else { after };
        }
        if !range.is_one_edge(max_range) || left.is_refuted() {
            return after;
        }
        let is_confirmed = left.is_confirmed_by(self);
        if is_corrected && !is_confirmed {
            return after;
        }
        let is_presumed = !is_confirmed && (range.contains_whole_years() || range.most >= MIN_AGE_OF_LEFT);
        left.edge(is_confirmed, is_presumed)
    }

    /// Returns the edge ahead after a response with new events in `entered`. `has_back` states whether there is an edge behind.
    fn after_entering(self, entered: Option<CrossedEdge<'_>>, seen: i64, max_range: i64, has_back: bool) -> Self {
        let after = self.with_seen(seen);
        let Some(entered) = entered.filter(|_| !self.is_confirmed) else { return after };
        let least = self.farthest_seen.map_or(entered.range.least, |seen| seen.max(entered.range.least));
        let entered = CrossedEdge { range: EdgeRange { least, ..entered.range }, ..entered };
        if !entered.range.is_one_edge(max_range) || entered.is_refuted() {
            return Self { nearest_unseen: None, ..after };
        }
        let is_confirmed = entered.is_confirmed_by(self) || (has_back && entered.range.contains_whole_years());
        entered.edge(is_confirmed, false)
    }
}

/// The events that crossed an edge in one response.
#[derive(Clone, Copy, Debug)]
struct CrossedEdge<'a> {
    side: EdgeSide,
    range: EdgeRange,
    crossing: Crossing,
    others: OtherSchedules<'a>,
}

impl<'a> CrossedEdge<'a> {
    fn new(side: EdgeSide, range: EdgeRange, event: Timestamp, at: Timestamp, others: OtherSchedules<'a>) -> Self {
        Self { side, range, crossing: Crossing { event, at }, others }
    }

    /// Returns whether the source lists events of other tokens beyond the range.
    fn is_refuted(self) -> bool {
        self.others.list_beyond(self.side, self.range.most + SLACK)
    }

    /// Returns whether another event crossed the same edge at another time: of the same token, as `edge` knows it, or of another one.
    fn is_confirmed_by(self, edge: WindowEdge) -> bool {
        let is_another = |other: Crossing| other.event != self.crossing.event && other.at != self.crossing.at;
        let is_own = self.range.agrees_with(edge) && edge.crossing.is_some_and(is_another);
        is_own
            || self.others.crossed(self.side, self.range, self.crossing.at)
            || (self.range.contains_whole_years() && self.others.end_near(self.side, self.range))
    }

    fn edge(self, is_confirmed: bool, is_presumed: bool) -> WindowEdge {
        let EdgeRange { least, most } = self.range;
        WindowEdge {
            farthest_seen: Some(least),
            nearest_unseen: Some(most),
            is_confirmed,
            crossing: Some(self.crossing),
            is_presumed,
        }
    }
}

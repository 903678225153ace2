//! The last responses about the schedules of all tokens. The visibility window is a property of the plan, so each token is evidence for
//! the others. Pure.

use std::collections::BTreeMap;

use super::{
    schedule::ScheduleNotes,
    visibility::{EdgeRange, EdgeSide, Visibility},
};
use model::{
    rows::FeedUpdate,
    supply::{Endpoint, Timestamp, TokenId},
};

/// The minimum number of other schedules that all reach the same whole number of years, and none beyond, to prove an edge.
const MIN_REACHING: usize = 3;

/// The maximum number of seconds by which such a schedule ends before the edge: more than a month, the usual time between events.
const MAX_BEFORE_EDGE: i64 = 45 * 86_400;

/// The outermost dates of the last response about each schedule, and the edges that its responses showed.
#[derive(Clone, Debug, Default)]
pub struct ListedSchedules(BTreeMap<TokenId, ListedSchedule>);

#[derive(Clone, Copy, Debug)]
struct ListedSchedule {
    read_at: Timestamp,
    /// The first and the last date. `None` if the response listed none.
    dates: Option<(Timestamp, Timestamp)>,
    visibility: Visibility,
}

impl ListedSchedules {
    /// No schedule at all.
    #[cfg(test)]
    pub(crate) const NONE: &'static Self = &Self(BTreeMap::new());

    /// Records what a response listed. Responses that are held, failed, or about something else have no effect.
    pub fn apply(&mut self, update: &FeedUpdate) {
        let FeedUpdate { id, state, header, .. } = update;
        let (Endpoint::UnlockEvents, Some(token), Some(read_at), None) = (id.endpoint, &id.token, state.read_at, state.hold)
        else {
            return;
        };
        match (header, self.0.get_mut(token)) {
            (Some(header), _) => {
                let notes = ScheduleNotes::read(header);
                let listed = ListedSchedule { read_at, dates: notes.listed, visibility: notes.visibility };
                self.0.insert(token.clone(), listed);
            }
            // The response was the same as before.
            (None, Some(listed)) => listed.read_at = read_at,
            (None, None) => {}
        }
    }

    /// Returns the schedules of tokens other than `token` that were read at `since` or later.
    pub(super) fn others<'a>(&'a self, token: &'a TokenId, since: Timestamp) -> OtherSchedules<'a> {
        OtherSchedules { all: self, token, since }
    }
}

/// The schedules of the other tokens, as evidence about the window of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct OtherSchedules<'a> {
    all: &'a ListedSchedules,
    token: &'a TokenId,
    since: Timestamp,
}

impl OtherSchedules<'_> {
    fn iter(&self) -> impl Iterator<Item = &ListedSchedule> {
        let others = self.all.0.iter().filter(|(token, _)| *token != self.token);
        others.map(|(_, listed)| listed).filter(|listed| listed.read_at >= self.since)
    }

    /// Returns the distance, in seconds, of the outermost event of each response.
    fn distances(&self, side: EdgeSide) -> impl Iterator<Item = i64> {
        self.iter().filter_map(move |listed| {
            let ListedSchedule { read_at, dates, .. } = *listed;
            dates.map(|(first, last)| match side {
                EdgeSide::Back => (read_at - first).num_seconds(),
                EdgeSide::Ahead => (last - read_at).num_seconds(),
            })
        })
    }

    /// Returns whether the source listed an event farther than `distance`, in seconds.
    pub(super) fn list_beyond(&self, side: EdgeSide, distance: i64) -> bool {
        self.distances(side).any(|listed| listed > distance)
    }

    /// Returns whether several schedules reach an edge in this range, or end just before it.
    pub(super) fn end_near(&self, side: EdgeSide, range: EdgeRange) -> bool {
        let is_near = |distance: &i64| *distance >= range.least() - MAX_BEFORE_EDGE;
        self.distances(side).filter(is_near).count() >= MIN_REACHING
    }

    /// Returns whether an event of another token crossed an edge in this range before `now`.
    pub(super) fn crossed(&self, side: EdgeSide, range: EdgeRange, now: Timestamp) -> bool {
        self.iter().any(|listed| listed.visibility.crossed_in(side, range, now))
    }
}

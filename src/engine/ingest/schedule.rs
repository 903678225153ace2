//! A response about a schedule, and the days and forms of unlock that it covers.
//!
//! A response covers the requested days within the [visibility window](super::visibility), and the forms of unlock that its endpoint
//! version shows. Records outside of that were not removed, and records that were outside of the previous response were not added. Both
//! are written without a change.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use chrono::{NaiveDate, TimeDelta};
use serde::{Deserialize, Serialize};

use super::{
    facts::within_first_and_last_day,
    listed_schedules::ListedSchedules,
    rate_changes::linear_version,
    visibility::{Observation, Visibility},
};
use crate::{
    diff::{self, DateWindow, Diff, UnlockPoll},
    plan::PlannedPoll,
    removal::RemovalProof,
};
use model::{
    change::{AllocationChange, Change, ChangeKind},
    is_placeholder,
    poll::{FetchedResponse, LAST_WITH_SEGMENTS, SegmentsFetch, WITH_RATE_CHANGES},
    rows::TokenSnapshot,
    supply::{Endpoint, FeedState, LinearNotes, Record, RecordKey, SegmentsRead, ShownDays, Timestamp, Tracked},
    wire::UnlockEvent,
};

/// The maximum number of stored dates of events that came into view: eight years of monthly unlocks.
const MAX_ENTERED: usize = 100;

/// The facts about earlier responses that are stored with the feed of a schedule.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ScheduleNotes {
    /// The requested days before today.
    #[serde(skip_serializing_if = "Option::is_none")]
    history_days: Option<i64>,
    /// The requested days after today.
    #[serde(skip_serializing_if = "Option::is_none")]
    horizon_days: Option<i64>,
    /// Whether the source returned days outside the requested ones. Then the covered days cannot be derived from the request.
    returns_beyond: bool,
    /// The endpoint version of the last response.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u8>,
    pub(super) visibility: Visibility,
    /// The first and the last date of the last response, as [`outermost`] defines them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) listed: Option<(Timestamp, Timestamp)>,
    /// The visibility window as segments show it, which are read less often than the cliffs.
    segments_visibility: Visibility,
    #[serde(flatten)]
    shown: ShownDays,
    /// The dates of events that came into view, the latest [`MAX_ENTERED`] of them. They are reported if the window is refuted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) entered: Vec<Timestamp>,
    #[serde(flatten)]
    pub(super) linear: LinearNotes,
}

/// A response about a schedule, with the days and forms that it covers.
pub(super) struct ScheduleResponse<'a> {
    events: &'a [UnlockEvent],
    shows_linear: Option<bool>,
    knew_linear: Option<bool>,
    /// The days that this response covers.
    window: DateWindow,
    /// The days that the previous response covered, according to all responses so far.
    window_before: DateWindow,
    /// The days that the last response with segments covered. Equal to `window_before` if every response has segments.
    segments_before: DateWindow,
    /// Whether the previous response came from an endpoint version that shows other parts of the schedule.
    pub(super) is_other_view: bool,
    /// The dates of known events that came into view of a window which the source refuted since. So they may have been added.
    unreported: HashSet<Timestamp>,
    notes: ScheduleNotes,
    now: Timestamp,
}

impl<'a> ScheduleResponse<'a> {
    pub(super) fn of(
        before: &TokenSnapshot,
        known: &FeedState,
        (poll, fetched): (&PlannedPoll, &FetchedResponse),
        events: &'a [UnlockEvent],
        (requested, listed): (DateWindow, &ListedSchedules),
        now: Timestamp,
    ) -> Self {
        let was = ScheduleNotes::of(before);
        let learned = LearnedVisibility::of(&was, before, known, fetched, events, (&requested, listed), now);
        let requested_before = known.read_at.map_or(DateWindow::ALL, |read_at| was.requested(read_at));
        let visible = |edges: [Visibility; 2], at: Timestamp| edges[0].window(at).within(&edges[1].window(at));
        // An edge that this response disproves still applies to the days of the previous response.
        let read_before = known.read_at.unwrap_or(now);
        let window_before = requested_before.within(&visible([learned.all, was.visibility], read_before));
        let segments_before = match was.linear.segments_read.filter(|_| learned.is_joined) {
            Some(read) => requested_before
                .within(&visible([learned.all, was.visibility], read.at))
                .within(&visible([learned.segments, was.segments_visibility], read.at)),
            None => window_before,
        };
        let second = if learned.is_joined { learned.segments } else { learned.all };
        let is_refuted = was.visibility.is_refuted_ahead_by(learned.all);
        let notes = was.next((poll, fetched), events, &requested, &learned, now);
        let mut response = Self {
            events,
            shows_linear: fetched.shows_linear(),
            knew_linear: was.linear.shown_linear,
            window: requested.within(&visible([learned.all, second], now)),
            window_before,
            segments_before,
            is_other_view: was
                .version
                .zip(fetched.version)
                .is_some_and(|(before, after)| shows_starts(before) != shows_starts(after)),
            unreported: if is_refuted { was.entered.into_iter().collect() } else { HashSet::new() },
            notes,
            now,
        };
        response.note_shown_days(&before.records, known.baseline_at.is_some());
        response
    }

    /// Notes the visibility window after this response, and what it hides.
    fn note_shown_days(&mut self, records: &[Tracked], has_baseline: bool) {
        let DateWindow { first, last } = self.notes.visibility.window(self.now);
        if (first, last) == (None, None) {
            (self.notes.shown, self.notes.entered) = (ShownDays::default(), Vec::new());
            return;
        }
        let is_newly_visible = self.newly_visible(records);
        let entered: Vec<&UnlockEvent> = self.events.iter().filter(|event| has_baseline && is_newly_visible(event)).collect();
        let is_older = |tracked: &&Tracked| {
            let date = listable_date(tracked, &|_| true, &DateWindow::ALL);
            date.zip(first).is_some_and(|(date, first)| date.date_naive() < first)
        };
        self.notes.shown = ShownDays {
            shown_from: first,
            shown_until: last,
            older_kept: diff::count_of(records.iter().filter(is_older).count()),
            came_into_view: self.notes.shown.came_into_view.saturating_add(diff::count_of(entered.len())),
        };
        let dates = &mut self.notes.entered;
        match last {
            None => dates.clear(),
            Some(_) => {
                dates.extend(entered.iter().filter_map(|event| event.unlock_date.copied()));
                dates.drain(..dates.len().saturating_sub(MAX_ENTERED));
            }
        }
    }

    /// Returns a function that states whether an event of the response was outside the previous one, so that it was not added.
    fn newly_visible(&self, records: &[Tracked]) -> impl Fn(&UnlockEvent) -> bool + use<> {
        let dates: HashSet<Timestamp> =
            records.iter().filter_map(|tracked| listable_date(tracked, &|_| true, &DateWindow::ALL)).collect();
        let (window_before, segments_before) = (self.window_before, self.segments_before);
        move |event: &UnlockEvent| {
            let date = event.unlock_date.copied();
            let has_cliff = event.cliff_unlocks.get().is_some();
            let window = if has_cliff { &window_before } else { &segments_before };
            !window.contains(date) && date.is_none_or(|date| !dates.contains(&date) && !is_placeholder(date))
        }
    }

    /// Returns whether the response covers any of these records. If not, it may be empty.
    pub(super) fn expects_any_of(&self, records: &[Tracked]) -> bool {
        let is_shown = |event: &UnlockEvent| self.shows_linear != Some(false) || event.cliff_unlocks.get().is_some();
        let inner = within_first_and_last_day(&self.window);
        records.iter().any(|tracked| match &tracked.record {
            Record::Unlock(event) => is_shown(event) && inner.contains(event.unlock_date.copied()),
            _ => false,
        })
    }

    /// Returns the diff if nothing changed but prices.
    pub(super) fn repriced(&self, records: &[Tracked]) -> Option<Diff> {
        if !self.unreported.is_empty() {
            return None;
        }
        diff::repriced(records, self.events, &self.window, self.shows_linear)
    }

    /// Returns the diff. The first response of another view changes only parts that both views show: a part that only one of them shows
    /// was neither removed nor added. Later responses are compared with this one.
    pub(super) fn diff(&self, before: &TokenSnapshot, proof: &RemovalProof<'_>, tolerance: f64) -> Diff {
        let mut diff = self.compare(before, proof, tolerance);
        if self.is_other_view {
            diff.changes.retain(is_of_both_views);
            diff.missing.clear();
        } else if !diff.held && !self.unreported.is_empty() {
            diff.changes.extend(self.late_additions(before, &diff, proof, tolerance));
        }
        diff
    }

    /// Returns the additions that were taken for events which came into view, until the source refuted that window.
    fn late_additions(&self, before: &TokenSnapshot, diff: &Diff, proof: &RemovalProof<'_>, tolerance: f64) -> Vec<Change> {
        let is_unreported = |tracked: &Tracked| {
            tracked.record.unlock().and_then(|event| event.unlock_date.copied()).is_some_and(|at| self.unreported.contains(&at))
        };
        let known: HashSet<&RecordKey> =
            before.records.iter().filter(|tracked| is_unreported(tracked)).map(|tracked| &tracked.key).collect();
        let mut others = diff::apply(&before.records, diff);
        let all: Vec<UnlockEvent> = others.iter().filter_map(|tracked| tracked.record.unlock()).cloned().collect();
        others.retain(|tracked| !(is_unreported(tracked) && known.contains(&tracked.key)));
        let poll = UnlockPoll { window: &DateWindow::ALL, window_before: &DateWindow::ALL, ..self.poll(before, tolerance) };
        diff::diff_unlocks(&poll, &others, proof, &all).changes
    }

    fn compare(&self, before: &TokenSnapshot, proof: &RemovalProof<'_>, tolerance: f64) -> Diff {
        let records = &before.records;
        let poll = self.poll(before, tolerance);
        let is_newly_visible = self.newly_visible(records);
        if !self.events.iter().any(&is_newly_visible) {
            return diff::diff_unlocks(&poll, records, proof, self.events);
        }
        let (new, old): (Vec<_>, Vec<_>) = self.events.iter().cloned().partition(is_newly_visible);
        let mut diff = diff::diff_unlocks(&poll, records, proof, &old);
        if !diff.held {
            let written: Vec<Tracked> = diff::apply(records, &diff);
            diff.put.extend(diff::newly_visible(&written, &new));
        }
        diff
    }

    fn poll<'b>(&'b self, before: &'b TokenSnapshot, tolerance: f64) -> UnlockPoll<'b> {
        UnlockPoll {
            token: &before.token.id,
            window: &self.window,
            window_before: &self.window_before,
            shows_linear: self.shows_linear,
            knew_linear: self.knew_linear,
            supply: before.token.item.max_supply.copied(),
            tolerance,
            now: self.now,
        }
    }

    /// Returns known events with the segments that became visible since segments were last read.
    pub(super) fn revealed(&self, records: &[Tracked]) -> Vec<Tracked> {
        let shown: HashMap<Timestamp, &UnlockEvent> = self
            .events
            .iter()
            .filter(|event| event.linear_unlocks.get().is_some() && !self.segments_before.contains(event.unlock_date.copied()))
            .filter_map(|event| Some((event.unlock_date.copied()?, event)))
            .collect();
        let with_segments = |tracked: &Tracked| {
            let Record::Unlock(event) = &tracked.record else { return None };
            let segments = &shown.get(&event.unlock_date.copied()?)?.linear_unlocks;
            let event = UnlockEvent { linear_unlocks: segments.clone(), ..(**event).clone() };
            Some(Tracked { key: tracked.key.clone(), record: Record::Unlock(Arc::new(event)) })
        };
        let has_no_segments =
            |tracked: &&Tracked| matches!(&tracked.record, Record::Unlock(event) if event.linear_unlocks.get().is_none());
        records.iter().filter(has_no_segments).filter_map(with_segments).collect()
    }

    pub(super) fn header(&self) -> Option<serde_json::Value> {
        serde_json::to_value(&self.notes).ok()
    }
}

/// The visibility windows after a response.
struct LearnedVisibility {
    all: Visibility,
    segments: Visibility,
    /// Whether segments were read in addition to the cliffs.
    is_joined: bool,
}

impl LearnedVisibility {
    fn of(
        was: &ScheduleNotes,
        before: &TokenSnapshot,
        known: &FeedState,
        fetched: &FetchedResponse,
        events: &[UnlockEvent],
        (requested, listed_schedules): (&DateWindow, &ListedSchedules),
        now: Timestamp,
    ) -> Self {
        let is_joined = fetched.segments.is_some_and(|segments| segments.is_read);
        let has_segments = |event: &UnlockEvent| event.linear_unlocks.get().is_some();
        let shows_linear = || fetched.shows_linear().unwrap_or_else(|| events.iter().any(has_segments));
        // Cliffs and segments show the edges separately: segments that entered between two readings say nothing about the last poll.
        let is_cliffs_only = is_joined || !shows_linear();
        let is_of_form = |event: &UnlockEvent| !is_cliffs_only || event.cliff_unlocks.get().is_some();
        let dates = |is_of_form: &dyn Fn(&UnlockEvent) -> bool| -> Vec<Timestamp> {
            events.iter().filter(|event| is_of_form(event)).filter_map(|event| event.unlock_date.copied()).collect()
        };
        let listed = dates(&|_| true);
        let missing: HashSet<_> = known.missing.iter().map(|(key, _)| key).collect();
        let listable: Vec<&Tracked> = before.records.iter().filter(|tracked| !missing.contains(&tracked.key)).collect();
        let known_dates = |is_of_form: &dyn Fn(&UnlockEvent) -> bool| -> Vec<Timestamp> {
            listable.iter().filter_map(|tracked| listable_date(tracked, is_of_form, requested)).collect()
        };
        let is_shown = |event: &UnlockEvent| is_joined || is_of_form(event);
        let is_corrected = corrects_inner_dates(&known_dates(&|_| true), &known_dates(&is_shown), &listed);
        let learn =
            |was: Visibility, previous_at: Option<Timestamp>, is_rare: bool, is_of_form: &dyn Fn(&UnlockEvent) -> bool| {
                let listed_of_form = dates(is_of_form);
                let Some(previous_at) = previous_at else { return Visibility::from_first_response(&listed_of_form, now) };
                let observation = Observation {
                    known: &known_dates(is_of_form),
                    listed: &listed,
                    listed_of_form: &listed_of_form,
                    previous_at,
                    is_rare,
                    is_corrected,
                    others: listed_schedules.others(&before.token.id, previous_at),
                };
                was.learn(&observation, now)
            };
        let all = learn(was.visibility, known.read_at.filter(|_| known.baseline_at.is_some()), false, &is_of_form);
        let segments = match is_joined {
            true => {
                let previous_at = was.linear.segments_read.map(|read| read.at);
                learn(was.segments_visibility.informed_by(all), previous_at, true, &has_segments)
            }
            false => was.segments_visibility,
        };
        Self { all, segments, is_joined }
    }
}

impl ScheduleNotes {
    /// Returns the notes of a token's schedule. Unreadable notes count as none, so that less is compared.
    pub(super) fn of(before: &TokenSnapshot) -> Self {
        let header = before.headers.iter().find(|(endpoint, _)| *endpoint == Endpoint::UnlockEvents).map(|(_, header)| header);
        header.map(Self::read).unwrap_or_default()
    }

    /// Returns the notes in a header.
    pub(super) fn read(header: &serde_json::Value) -> Self {
        Self::deserialize(header).unwrap_or_default()
    }

    /// Returns the days that a response at `now` is certain to cover, like the last one.
    pub(super) fn covered(&self, now: Timestamp) -> DateWindow {
        self.requested(now).within(&self.visibility.window(now))
    }

    /// Returns the notes after one more response.
    fn next(
        &self,
        (poll, fetched): (&PlannedPoll, &FetchedResponse),
        events: &[UnlockEvent],
        requested: &DateWindow,
        learned: &LearnedVisibility,
        now: Timestamp,
    ) -> Self {
        let days = |day: Option<NaiveDate>| day.map(|day| (day - now.date_naive()).num_days());
        let is_beyond = |event: &UnlockEvent| event.unlock_date.copied().is_some_and(|at| !requested.contains(Some(at)));
        Self {
            history_days: days(requested.first).map(|days| -days),
            horizon_days: days(requested.last),
            returns_beyond: events.iter().any(is_beyond),
            version: fetched.version.or(self.version),
            visibility: learned.all,
            listed: outermost(events, fetched),
            shown: self.shown,
            entered: self.entered.clone(),
            segments_visibility: learned.segments,
            linear: self.next_linear(poll, fetched, now),
        }
    }

    /// Returns the notes about linear segments after one more response. What completes them is noted once the response is applied.
    fn next_linear(&self, poll: &PlannedPoll, fetched: &FetchedResponse, now: Timestamp) -> LinearNotes {
        let (was, shows_linear) = (&self.linear, fetched.shows_linear());
        let joined = fetched.segments.filter(|segments| segments.is_read);
        let read = |segments: SegmentsFetch| SegmentsRead { at: now, mark: poll.mark, version: Some(segments.version) };
        LinearNotes {
            shown_linear: shows_linear.map(|shows| shows || was.shown_linear == Some(true)).or(was.shown_linear),
            // A version that shows segments itself needs no additional reading. After a return to `auto`, they are read again.
            segments_read: match (joined, shows_linear) {
                (Some(segments), _) => Some(read(segments)),
                (None, Some(true)) => None,
                _ => was.segments_read,
            },
            segments_absent: match fetched.segments {
                Some(segments) => segments.is_absent.then(|| read(segments)),
                None => was.segments_absent,
            },
            has_rate_changes: was.has_rate_changes || linear_version(fetched) == Some(WITH_RATE_CHANGES),
            ..was.clone()
        }
    }

    /// Returns the days that the poll at `at` requested.
    fn requested(&self, at: Timestamp) -> DateWindow {
        let day = |days: i64| Some(at.checked_add_signed(TimeDelta::try_days(days)?)?.date_naive());
        if self.returns_beyond {
            return DateWindow::ALL;
        }
        DateWindow { first: self.history_days.and_then(|days| day(-days)), last: self.horizon_days.and_then(day) }
    }
}

/// Returns the first and the last date that every response like this one lists, without placeholders. Segments that were read in
/// addition, or that are known, are not among them: while the cliffs stay unchanged, they may leave the window unseen.
fn outermost(events: &[UnlockEvent], fetched: &FetchedResponse) -> Option<(Timestamp, Timestamp)> {
    let has_segments = fetched.segments.is_none() && fetched.shows_linear() == Some(true);
    let listed = events.iter().filter(|event| has_segments || event.cliff_unlocks.get().is_some());
    let dates = listed.filter_map(|event| event.unlock_date.copied());
    let dates = dates.filter(|at| !is_placeholder(*at) && !fetched.without_cliffs.contains(at));
    dates.clone().min().zip(dates.max())
}

/// Returns whether a response lists a new date among the known ones, or leaves out a date after its first one. Time alone does neither: it
/// moves dates out of view at the back and into view ahead. `shown` are the known dates of the forms that the response shows.
fn corrects_inner_dates(known: &[Timestamp], shown: &[Timestamp], listed: &[Timestamp]) -> bool {
    let dated =
        |dates: &[Timestamp]| -> BTreeSet<Timestamp> { dates.iter().copied().filter(|at| !is_placeholder(*at)).collect() };
    let (known, shown, listed) = (dated(known), dated(shown), dated(listed));
    let Some((first, oldest, latest)) = listed.first().zip(known.first()).zip(known.last()).map(|((a, b), c)| (a, b, c)) else {
        return false;
    };
    let is_new = |at: &Timestamp| !known.contains(at) && (oldest..latest).contains(&at);
    let is_left_out = |at: &Timestamp| !listed.contains(at) && at > first;
    listed.iter().any(is_new) || shown.iter().any(is_left_out)
}

/// Returns the date of an event that a response could list: on a requested day, and of a form that it shows.
fn listable_date(tracked: &Tracked, is_of_form: &dyn Fn(&UnlockEvent) -> bool, requested: &DateWindow) -> Option<Timestamp> {
    let Record::Unlock(event) = &tracked.record else { return None };
    event.unlock_date.copied().filter(|at| is_of_form(event) && requested.contains(Some(*at)))
}

/// Returns whether a change concerns only parts that are known before and after it.
fn is_of_both_views(change: &Change) -> bool {
    let is_known = |allocation: &AllocationChange| allocation.from.is_some() && allocation.to.is_some();
    !matches!(change.kind, ChangeKind::Added | ChangeKind::Removed | ChangeKind::Rewritten)
        && change.allocations.iter().all(is_known)
}

/// Returns whether an endpoint version shows linear unlocks and the start of mining rewards. Only the first of these versions
/// shows changes of a rate, but the comparison leaves out what one of two responses can hide.
fn shows_starts(version: u8) -> bool {
    version <= LAST_WITH_SEGMENTS
}

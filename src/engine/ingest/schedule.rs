//! A token's schedule beside what was known of it: within what both answers speak of, and no farther.
//!
//! An answer speaks of the days that were asked for, as far as the [server's sight](super::sight) reaches, and of the forms of unlock
//! that its version shows. What lies outside of that now was not taken out; what lay outside of it at the answer before has not come.
//! Both are kept, or taken in, without a word.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{NaiveDate, TimeDelta};
use serde::{Deserialize, Serialize};

use super::sight::{Look, Sight};
use crate::{
    diff::{self, DateWindow, Diff, Hold, Settings, UnlockPoll},
    plan::PlannedPoll,
};
use model::{
    poll::FetchedAnswer,
    rows::{SegmentsRead, TokenSnapshot},
    supply::{Endpoint, FeedState, Record, Timestamp, Tracked},
    wire::UnlockEvent,
};

/// What is kept with the feed of a schedule from one answer to the next.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct ScheduleNotes {
    /// How many days back were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    history_days: Option<i64>,
    /// How many days ahead were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    horizon_days: Option<i64>,
    /// The source answered days that it was not asked for: what was asked is no border.
    answers_beyond: bool,
    /// Whether any answer so far showed linear segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    shown_linear: Option<bool>,
    /// The version of the endpoint that answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u8>,
    /// When linear segments were last read beside the cliffs.
    #[serde(skip_serializing_if = "Option::is_none")]
    segments_read: Option<SegmentsRead>,
    /// When the source last had no version that shows them: nothing was read, and asking each time would be of no use.
    #[serde(skip_serializing_if = "Option::is_none")]
    segments_absent: Option<SegmentsRead>,
    /// How far the server lets this plan see.
    sight: Sight,
    /// The same, as the segments that were read beside the cliffs show it, which is more seldom.
    segments_sight: Sight,
}

/// An answer about a schedule, with what it speaks of.
pub(super) struct ScheduleAnswer<'a> {
    events: &'a [UnlockEvent],
    shows_linear: Option<bool>,
    knew_linear: Option<bool>,
    /// The days of which this answer speaks.
    window: DateWindow,
    /// The days of which the answer before spoke, as far as is known by now.
    window_before: DateWindow,
    /// The days of which the last answer with segments beside the cliffs spoke; that of the answer before, where each shows all.
    segments_before: DateWindow,
    /// Whether another kind of version answered before, which shows other parts of the same schedule.
    is_another_view: bool,
    notes: ScheduleNotes,
    now: Timestamp,
}

impl<'a> ScheduleAnswer<'a> {
    /// Reads off an answer of what it speaks.
    pub(super) fn of(
        before: &TokenSnapshot,
        known: &FeedState,
        (ask, fetched): (&PlannedPoll, &FetchedAnswer),
        events: &'a [UnlockEvent],
        asked: DateWindow,
        now: Timestamp,
    ) -> Self {
        let was = ScheduleNotes::of(before);
        let sights = Sights::learned(&was, before, known, fetched, events, &asked, now);
        let asked_before = known.read_at.map_or(DateWindow::ALL, |read_at| was.asked(read_at));
        let reach =
            |sights: [Sight; 2], at: Timestamp| sights.iter().fold(DateWindow::ALL, |all, sight| all.within(&sight.window(at)));
        // A border that was given up just now was one until then.
        let window_before = asked_before.within(&reach([sights.all, was.sight], known.read_at.unwrap_or(now)));
        let segments_before = match was.segments_read.filter(|_| sights.is_joined) {
            Some(read) => asked_before
                .within(&reach([sights.all, was.sight], read.at))
                .within(&reach([sights.segments, was.segments_sight], read.at)),
            None => window_before,
        };
        let second = if sights.is_joined { sights.segments } else { sights.all };
        Self {
            events,
            shows_linear: fetched.shows_linear(),
            knew_linear: was.shown_linear,
            window: asked.within(&reach([sights.all, second], now)),
            window_before,
            segments_before,
            is_another_view: was.version.zip(fetched.version).is_some_and(|(before, after)| view(before) != view(after)),
            notes: was.next((ask, fetched), events, &asked, &sights, now),
            now,
        }
    }

    /// Whether it speaks of any of these records: if not, it may well be empty.
    pub(super) fn expects_any_of(&self, records: &[Tracked]) -> bool {
        let is_shown = |event: &UnlockEvent| self.shows_linear != Some(false) || event.cliff_unlocks.get().is_some();
        records.iter().any(|tracked| match &tracked.record {
            Record::Unlock(event) => is_shown(event) && super::inner(&self.window).contains(event.unlock_date.copied()),
            _ => false,
        })
    }

    /// What it changes, where that is nothing but prices.
    pub(super) fn repriced(&self, records: &[Tracked]) -> Option<Diff> {
        diff::repriced(records, self.events, &self.window, self.shows_linear)
    }

    /// What it changes. The first answer of another kind of version tells nothing: what only the one before showed, or only this one
    /// does, has neither gone nor come. From here on this one is what answers are compared with.
    pub(super) fn diff(&self, before: &TokenSnapshot, known: &FeedState, settings: &Settings) -> Diff {
        if !self.is_another_view {
            return self.compare(before, known, settings);
        }
        let proven = before.records.iter().map(|tracked| (tracked.key.clone(), u32::MAX - 1)).collect();
        let known = FeedState { missing: proven, ..known.clone() };
        let settings = Settings { removal_confirmations: 1, hold: Hold::Accepted, ..*settings };
        let mut diff = self.compare(before, &known, &settings);
        diff.changes.clear();
        diff.missing.clear();
        diff
    }

    fn compare(&self, before: &TokenSnapshot, known: &FeedState, settings: &Settings) -> Diff {
        let records = &before.records;
        let poll = UnlockPoll {
            token: &before.token.id,
            window: &self.window,
            window_before: &self.window_before,
            shows_linear: self.shows_linear,
            knew_linear: self.knew_linear,
            supply: before.token.item.max_supply.copied(),
            settings,
            now: self.now,
        };
        let dates: HashSet<Timestamp> =
            records.iter().filter_map(|tracked| dated(tracked, &|_| true, &DateWindow::ALL)).collect();
        let came_into_sight = |event: &UnlockEvent| {
            let date = event.unlock_date.copied();
            let has_cliff = event.cliff_unlocks.get().is_some();
            !if has_cliff { &self.window_before } else { &self.segments_before }.contains(date)
                && date.is_none_or(|date| !dates.contains(&date))
        };
        if !self.events.iter().any(came_into_sight) {
            return diff::diff_unlocks(&poll, records, &known.missing, self.events);
        }
        let (new, old): (Vec<_>, Vec<_>) = self.events.iter().cloned().partition(came_into_sight);
        let mut diff = diff::diff_unlocks(&poll, records, &known.missing, &old);
        if !diff.held {
            let written: Vec<Tracked> = diff::apply(records, &diff);
            diff.put.extend(diff::newly_visible(&written, &new));
        }
        diff
    }

    /// Known events with the segments that came into sight since segments were last read.
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
        let is_unseen =
            |tracked: &&Tracked| matches!(&tracked.record, Record::Unlock(event) if event.linear_unlocks.get().is_none());
        records.iter().filter(is_unseen).filter_map(with_segments).collect()
    }

    /// What is kept with the feed.
    pub(super) fn header(&self) -> Option<serde_json::Value> {
        serde_json::to_value(&self.notes).ok()
    }
}

/// How far the server lets this plan see, by all answers so far.
struct Sights {
    all: Sight,
    segments: Sight,
    /// Segments were read beside the cliffs.
    is_joined: bool,
}

impl Sights {
    /// What one more answer shows.
    fn learned(
        was: &ScheduleNotes,
        before: &TokenSnapshot,
        known: &FeedState,
        fetched: &FetchedAnswer,
        events: &[UnlockEvent],
        asked: &DateWindow,
        now: Timestamp,
    ) -> Self {
        let is_joined = fetched.segments.is_some_and(|segments| segments.is_read);
        let shows_linear =
            || fetched.shows_linear().unwrap_or_else(|| events.iter().any(|event| event.linear_unlocks.get().is_some()));
        // Each part shows the border by itself: segments that came into view between two readings of them say nothing of the last poll.
        let is_cliffs_alone = is_joined || !shows_linear();
        let speaks_of = |event: &UnlockEvent| !is_cliffs_alone || event.cliff_unlocks.get().is_some();
        let dates = |speaks_of: &dyn Fn(&UnlockEvent) -> bool| -> Vec<Timestamp> {
            events.iter().filter(|event| speaks_of(event)).filter_map(|event| event.unlock_date.copied()).collect()
        };
        let answered = dates(&|_| true);
        let learn = |was: Sight, read_before: Option<Timestamp>, is_seldom: bool, speaks_of: &dyn Fn(&UnlockEvent) -> bool| {
            let arrived = dates(speaks_of);
            let Some(before_it) = read_before else { return Sight::first(&arrived, now) };
            let in_doubt: HashSet<_> = known.missing.iter().map(|(key, _)| key).collect();
            let could_be_named = before.records.iter().filter(|tracked| !in_doubt.contains(&tracked.key));
            let known: Vec<Timestamp> = could_be_named.filter_map(|tracked| dated(tracked, speaks_of, asked)).collect();
            let look = Look { known: &known, answered: &answered, arrived: &arrived, before: before_it, is_seldom };
            was.learn(&look, now)
        };
        let all = learn(was.sight, known.read_at.filter(|_| known.baseline_at.is_some()), false, &speaks_of);
        let segments = match is_joined {
            true => {
                let has_segments = |event: &UnlockEvent| event.linear_unlocks.get().is_some();
                learn(was.segments_sight.informed_by(all), was.segments_read.map(|read| read.at), true, &has_segments)
            }
            false => was.segments_sight,
        };
        Self { all, segments, is_joined }
    }
}

impl ScheduleNotes {
    /// What is kept with the feed of a token's schedule. Notes that cannot be read are as good as none: then less is known of what may be
    /// compared.
    fn of(before: &TokenSnapshot) -> Self {
        let header = before.headers.iter().find(|(endpoint, _)| *endpoint == Endpoint::UnlockEvents).map(|(_, header)| header);
        header.and_then(|header| Self::deserialize(header).ok()).unwrap_or_default()
    }

    /// What is kept after one more answer.
    fn next(
        &self,
        (ask, fetched): (&PlannedPoll, &FetchedAnswer),
        events: &[UnlockEvent],
        asked: &DateWindow,
        sights: &Sights,
        now: Timestamp,
    ) -> Self {
        let shows_linear = fetched.shows_linear();
        let days = |day: Option<NaiveDate>| day.map(|day| (day - now.date_naive()).num_days());
        let is_beyond = |event: &UnlockEvent| event.unlock_date.copied().is_some_and(|at| !asked.contains(Some(at)));
        Self {
            history_days: days(asked.first).map(|days| -days),
            horizon_days: days(asked.last),
            answers_beyond: events.iter().any(is_beyond),
            version: fetched.version.or(self.version),
            shown_linear: shows_linear.map(|shows| shows || self.shown_linear == Some(true)).or(self.shown_linear),
            // A version that shows all by itself is no reading beside another: whoever goes back to `auto` reads them anew.
            segments_read: match shows_linear {
                _ if sights.is_joined => Some(SegmentsRead { at: now, mark: ask.mark }),
                Some(true) => None,
                _ => self.segments_read,
            },
            segments_absent: match fetched.segments {
                Some(segments) => segments.is_absent.then_some(SegmentsRead { at: now, mark: ask.mark }),
                None => self.segments_absent,
            },
            sight: sights.all,
            segments_sight: sights.segments,
        }
    }

    /// The days that an answer at `at` was asked for.
    fn asked(&self, at: Timestamp) -> DateWindow {
        let day = |days: i64| Some(at.checked_add_signed(TimeDelta::try_days(days)?)?.date_naive());
        if self.answers_beyond {
            return DateWindow::ALL;
        }
        DateWindow { first: self.history_days.and_then(|days| day(-days)), last: self.horizon_days.and_then(day) }
    }
}

/// The date of an event, where an answer could name it: in the days that were asked for, with a part that it shows.
fn dated(tracked: &Tracked, speaks_of: &dyn Fn(&UnlockEvent) -> bool, asked: &DateWindow) -> Option<Timestamp> {
    let Record::Unlock(event) = &tracked.record else { return None };
    event.unlock_date.copied().filter(|at| speaks_of(event) && asked.contains(Some(*at)))
}

/// Versions that show the same parts of a schedule: the first shows where the rate of a linear unlock changes, the next two no longer do,
/// and later ones show neither linear unlocks nor the start of mining rewards (the interface's notes on versions).
fn view(version: u8) -> u8 {
    match version {
        1 => 1,
        2 | 3 => 2,
        _ => 3,
    }
}

//! The diff of unlock events: which event is which, what is proven, and what to write.
//!
//! Tranches are linked by `link`, and `matching` turns the links into events that keep their keys. An event is missing if no tranche
//! leads away from it, and its removal needs proof. Each change of `changes` lists the events that it touches. Changes that touch an
//! unproven removal wait for its proof, and so do changes that share an event with those, because an event is written as a whole.

mod matching;
mod repriced;
mod same;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use chrono::TimeDelta;

use self::{
    matching::{EventMatches, WaitingEvents, match_events, waiting_events},
    same::{covers_linear, event_put, has_linear, moved_by, remaining_segments},
};
use super::{
    DateWindow, Diff, KeyAllocator, RowAnomalies, Settings,
    changes::{ChangeSubject, Comparison, explain},
    date_key,
    index::{List, New, NewRow, Old, OldRow, RowOf, Side},
    link::{Links, VisibleDays, link},
    timeline::Timeline,
    tranche::{Events, TrancheForm, Tranches, take_apart},
};
use crate::removal::RemovalProof;
use model::{
    change::{Change, ChangeKind},
    phrase::changes::{ChangeClause, ScheduleUnit, summary},
    rows::Put,
    supply::{Record, RecordKey, Resource, Timestamp, TokenId, Tracked},
    wire::UnlockEvent,
};

pub use repriced::repriced;
#[cfg(test)]
pub(super) use same::same_schedule;

/// The share of the coming tokens that a response may lack although it lacks most events. The schedule then has fewer and larger
/// events.
const MAX_LOST_WITHOUT_HOLD: f64 = 0.1;

/// The poll of a schedule.
#[derive(Clone, Copy, Debug)]
pub struct UnlockPoll<'a> {
    pub token: &'a TokenId,
    /// The days that the response covers.
    pub window: &'a DateWindow,
    /// The days that the previous response covered. An event from outside of them was not added.
    pub window_before: &'a DateWindow,
    /// Whether the endpoint version shows linear segments. `None` if unknown.
    pub shows_linear: Option<bool>,
    /// Whether an earlier response showed linear segments. If not, the first segments are not changes. `None` if unknown.
    pub knew_linear: Option<bool>,
    /// The max supply, for texts that give a share of it. `None` if unknown.
    pub supply: Option<f64>,
    /// The relative difference below which two amounts are equal.
    pub tolerance: f64,
    /// The time of the poll.
    pub now: Timestamp,
}

impl<'a> UnlockPoll<'a> {
    /// Returns a poll of the whole schedule, from an unknown endpoint version.
    #[must_use]
    pub fn of(token: &'a TokenId, now: Timestamp) -> Self {
        Self {
            token,
            window: &DateWindow::ALL,
            window_before: &DateWindow::ALL,
            shows_linear: None,
            knew_linear: None,
            supply: None,
            tolerance: Settings::default().tolerance,
            now,
        }
    }
}

/// An event of the snapshot, under its key.
#[derive(Clone, Copy)]
struct KnownEvent<'a> {
    key: &'a RecordKey,
    event: &'a UnlockEvent,
}

type KnownEvents<'a> = List<RowOf<Old>, KnownEvent<'a>>;

/// Compares a complete response with the known unlock events of a token.
///
/// `before` is the snapshot; records of other resources in it are ignored. `after` is the whole response. An empty response never
/// empties a snapshot: it is held.
#[must_use]
pub fn diff_unlocks(poll: &UnlockPoll<'_>, before: &[Tracked], proof: &RemovalProof<'_>, after: &[UnlockEvent]) -> Diff {
    let UnlockPoll { token, window, tolerance, now, .. } = *poll;
    let (new_events, anomalies) = tidy(after);
    let known = known_events(before, after, window);
    let old_events: Events<'_, Old> = known.iter().map(|known| known.event).collect();
    if new_events.is_empty() {
        // An endpoint version without linear segments returns an empty response for a token that has nothing else.
        let is_shown = |event: &UnlockEvent| poll.shows_linear != Some(false) || event.cliff_unlocks.get().is_some();
        let missing = known.iter().filter(|known| is_shown(known.event));
        let missing: Vec<(RecordKey, u32)> = missing.map(|known| proof.counted(known.key)).collect();
        return Diff { held: !missing.is_empty(), missing, anomalies, ..Diff::default() };
    }

    let coverage = SegmentCoverage::of(poll, &old_events, &new_events);
    let timeline = Timeline::new(old_events, new_events, coverage.compares_linear, tolerance);
    let links = link(&timeline, &VisibleDays { old: poll.window, new: poll.window_before }, tolerance);
    let matches = match_events(&timeline, &links);
    let missing = MissingEvents::of(&timeline, &links, &matches, coverage);
    if missing.must_be_held(&known, &timeline, proof, now) {
        // Deserted events count too. Otherwise they would be unproven when the hold ends, and only a part of the correction would be
        // applied.
        let missing = missing.all_doubtful().map(|row| proof.counted(known[row].key)).collect();
        return Diff { held: true, missing, anomalies, ..Diff::default() };
    }

    let unproven = missing.unproven(&known, proof, (&timeline, &matches));
    let comparison = Comparison {
        token,
        timeline: &timeline,
        links: &links,
        new_of_old: &matches.new_of_old,
        old_of_new: &matches.old_of_new,
        missing: &missing.all,
        unproven: &unproven,
        tolerance,
        supply: poll.supply,
        last_visible_day: window.last.and_then(|last| last.and_hms_opt(0, 0, 0)).map(|last| last.and_utc()),
        now,
    };
    let explanations = explain(&comparison);
    let waiting = waiting_events(&explanations, &unproven, &matches, (&timeline, &links));

    let snapshot = LinkedSnapshot { before, known: &known, timeline: &timeline, links: &links };
    let (mut put, new_keys) = snapshot.visible_puts(&matches, &waiting, coverage, tolerance);
    put.extend(snapshot.hidden_puts(&missing, window, &put));
    let mut diff = Diff { put, anomalies, ..Diff::default() };
    missing.settle(&mut diff, &known, proof, &unproven, &waiting, coverage);
    let covered: HashSet<&RecordKey> =
        known.indexed().filter(|(row, _)| !missing.uncovered.contains(row)).map(|(_, known)| known.key).collect();
    diff.missing.extend(proof.uncovered(before, &covered));

    diff.changes.extend(explanations.into_iter().filter(|explanation| !waiting.touches(explanation)).map(|explanation| {
        let mut change = explanation.change;
        change.summary = summary(&explanation.clauses, &comparison.unit());
        change.key = explanation.subject.and_then(|subject| match subject {
            ChangeSubject::New(row) => new_keys.get(&row).cloned(),
            ChangeSubject::Old(row) => Some(known[row].key.clone()),
        });
        change
    }));
    // An event without tranches belongs to no series. Its removal is a change of its own.
    let without_tranches = missing.doubtful.iter().filter(|row| missing.tranches[**row] == 0 && !unproven.contains(row));
    diff.changes.extend(without_tranches.map(|row| removed_event(token, known[*row])));
    diff
}

/// The role of linear segments in a comparison.
#[derive(Clone, Copy)]
struct SegmentCoverage {
    /// Whether segments are compared.
    compares_linear: bool,
    /// Whether the response shows segments. If it is the first one that does, they are not compared.
    shows_linear: bool,
}

impl SegmentCoverage {
    fn of(poll: &UnlockPoll<'_>, old: &Events<'_, Old>, new: &Events<'_, New>) -> Self {
        let shows_linear = poll.shows_linear.unwrap_or_else(|| covers_linear(old, new, poll.tolerance));
        let knew_linear = poll.knew_linear.unwrap_or_else(|| old.iter().any(|event| !event.linear_unlocks.is_absent()));
        let is_first = !knew_linear && (poll.knew_linear.is_some() || !old.is_empty());
        Self { compares_linear: shows_linear && !is_first, shows_linear }
    }
}

/// A token's snapshot, linked with a response.
struct LinkedSnapshot<'a> {
    before: &'a [Tracked],
    known: &'a KnownEvents<'a>,
    timeline: &'a Timeline<'a>,
    links: &'a Links,
}

impl LinkedSnapshot<'_> {
    /// Returns the events to write, and the key of each event of the response. Events that wait for a removal proof are left out.
    fn visible_puts(
        &self,
        matches: &EventMatches,
        waiting: &WaitingEvents,
        coverage: SegmentCoverage,
        tolerance: f64,
    ) -> (Vec<Put>, BTreeMap<NewRow, RecordKey>) {
        let (mut puts, mut new_keys) = (Vec::new(), BTreeMap::new());
        let unlocks = self.before.iter().filter(|tracked| tracked.record.resource() == Resource::Unlock);
        let mut keys = KeyAllocator::taken(unlocks.map(|tracked| &tracked.key));
        for (row, event) in self.timeline.new_events.indexed().filter(|(row, _)| !waiting.new.contains(row)) {
            let (key, put) = match matches.old_of_new[row] {
                Some(old_row) => {
                    let KnownEvent { key, event: before } = self.known[old_row];
                    (key.clone(), event_put(key, before, event, coverage.shows_linear, tolerance))
                }
                None => {
                    let key = self.hidden_key(row, event).cloned().unwrap_or_else(|| keys.fresh(&key_text(event)));
                    (key.clone(), Some(new_put(key, event)))
                }
            };
            new_keys.insert(row, key);
            puts.extend(put);
        }
        (puts, new_keys)
    }

    /// Returns the events outside the visibility window that moved, or stayed, with their series.
    fn hidden_puts(&self, missing: &MissingEvents, window: &DateWindow, visible: &[Put]) -> Vec<Put> {
        let left = missing.left.iter().map(|(row, shift)| {
            let KnownEvent { key, event } = self.known[*row];
            Put { key: key.clone(), record: Record::Unlock(Arc::new(moved_by(event, *shift))), is_new_version: true }
        });
        let mut puts: Vec<Put> = left.collect();
        let known = self.known.iter().map(|known| known.key);
        let done: HashSet<RecordKey> = known.chain(visible.iter().chain(&puts).map(|put| &put.key)).cloned().collect();
        puts.extend(self.moved_hidden(window).filter(|put| !done.contains(&put.key)));
        puts
    }

    /// Returns the key of an event that entered the visibility window with its series.
    fn hidden_key(&self, row: NewRow, event: &UnlockEvent) -> Option<&RecordKey> {
        let (_, shift) = self.links.crossings.entered.iter().find(|(j, _)| self.timeline.new[*j].row == row)?;
        let was = event.unlock_date.copied()?.checked_sub_signed(TimeDelta::milliseconds(*shift))?;
        let is_same =
            |tracked: &&Tracked| matches!(&tracked.record, Record::Unlock(event) if event.unlock_date.copied() == Some(was));
        let key = &self.before.iter().find(is_same)?.key;
        self.known.iter().all(|known| known.key != key).then_some(key)
    }

    /// Returns upcoming events after the visibility window whose series moved, with their new dates, so that they are recognized when
    /// they enter the window. Past events before the window are not changed.
    fn moved_hidden(&self, window: &DateWindow) -> impl Iterator<Item = Put> {
        let moves = window.last.map(|last| (last, self.links.moves(self.timeline)));
        self.before.iter().filter_map(move |tracked| {
            let (last, moves) = moves.as_ref()?;
            let Record::Unlock(event) = &tracked.record else { return None };
            event.unlock_date.copied().filter(|at| at.date_naive() > *last)?;
            let mut tranches = take_apart(&Events::<Old>::from(vec![&**event]), true);
            for tranche in tranches.iter_mut() {
                tranche.series = self.timeline.series_of(tranche.name);
            }
            let record = Record::Unlock(Arc::new(moved_by(event, moves.of_hidden(&tranches)?)));
            Some(Put { key: tracked.key.clone(), record, is_new_version: true })
        })
    }
}

/// Returns the known events that the response covers.
fn known_events<'a>(before: &'a [Tracked], after: &[UnlockEvent], window: &DateWindow) -> KnownEvents<'a> {
    // A source may return events outside the requested window. These are compared, but others are not missing from there.
    let beyond: HashSet<Timestamp> =
        after.iter().filter_map(|event| event.unlock_date.copied()).filter(|at| !window.contains(Some(*at))).collect();
    let is_covered = |at: Option<Timestamp>| window.contains(at) || at.is_some_and(|at| beyond.contains(&at));
    before
        .iter()
        .filter_map(|tracked| match &tracked.record {
            Record::Unlock(event) if is_covered(event.unlock_date.copied()) => Some(KnownEvent { key: &tracked.key, event }),
            _ => None,
        })
        .collect()
}

/// Known events that the response lacks.
struct MissingEvents {
    all: Vec<OldRow>,
    /// The events whose removal needs proof. The tranches of all others appear elsewhere in the same response.
    doubtful: Vec<OldRow>,
    /// Doubtful events without any tranche that appears elsewhere in the response.
    vanished: BTreeSet<OldRow>,
    /// Events in the response that lost a tranche whose removal needs proof too: its allocation is not in the response at all, or the
    /// event has no cliffs left.
    deserted: Vec<OldRow>,
    /// The number of tranches of every known event.
    tranches: List<RowOf<Old>, usize>,
    /// Events with nothing but linear segments, which the response does not cover.
    uncovered: BTreeSet<OldRow>,
    /// Events that moved out of the visibility window with their series, each with its shift in milliseconds.
    left: BTreeMap<OldRow, i64>,
}

impl MissingEvents {
    fn of(timeline: &Timeline<'_>, links: &Links, matches: &EventMatches, coverage: SegmentCoverage) -> Self {
        let Timeline { old_events, new_events, old, new, .. } = timeline;
        let mut tranches = List::filled(0_usize, old_events.len());
        old.iter().for_each(|tranche| tranches[tranche.row] += 1);
        let is_uncovered =
            |(row, event): &(OldRow, &&UnlockEvent)| !coverage.compares_linear && tranches[*row] == 0 && has_linear(event);
        let uncovered: BTreeSet<OldRow> = old_events.indexed().filter(is_uncovered).map(|(row, _)| row).collect();

        let mut left: BTreeMap<OldRow, (usize, i64)> = BTreeMap::new();
        for (i, shift) in &links.crossings.left {
            left.entry(old[*i].row).or_insert((0, *shift)).0 += 1;
        }
        let has_left = |row: OldRow, count: usize| count == tranches[row] && matches.new_of_old[row].is_none();
        let left: BTreeMap<OldRow, i64> =
            left.into_iter().filter(|(row, (count, _))| has_left(*row, *count)).map(|(row, (_, shift))| (row, shift)).collect();

        let is_missing = |row: &OldRow| matches.new_of_old[*row].is_none() && !uncovered.contains(row) && !left.contains_key(row);
        let all: Vec<OldRow> = old_events.indices().filter(is_missing).collect();
        let mut lost_tranches = List::filled(0_usize, old_events.len());
        links.removed.iter().for_each(|i| lost_tranches[old[*i].row] += 1);
        let doubtful: Vec<OldRow> = all.iter().copied().filter(|row| tranches[*row] == 0 || lost_tranches[*row] > 0).collect();
        let vanished = doubtful.iter().copied().filter(|row| lost_tranches[*row] == tranches[*row]).collect();

        let present: HashSet<&str> = new.iter().map(|tranche| tranche.series).collect();
        // The cliffs of an event without any cliffs may be a gap of the response.
        let has_no_cliffs =
            |row: OldRow| matches.new_of_old[row].is_some_and(|new| new_events[new].cliff_unlocks.get().is_none());
        let is_lost = |i: &OldRow| matches.new_of_old[*i].is_some();
        let lost = links.removed.iter().map(|i| &old[*i]).filter(|tranche| {
            !present.contains(tranche.series) || tranche.form == TrancheForm::Cliff && has_no_cliffs(tranche.row)
        });
        let deserted: BTreeSet<OldRow> = lost.map(|tranche| tranche.row).filter(is_lost).collect();
        Self { all, doubtful, vanished, deserted: deserted.into_iter().collect(), tranches, uncovered, left }
    }

    /// Returns the doubtful and the deserted events, all of which need proof.
    fn all_doubtful(&self) -> impl Iterator<Item = OldRow> {
        self.doubtful.iter().chain(&self.deserted).copied()
    }

    /// Returns the doubtful and the deserted events without proof. If the removal of a form is proven, so are the tranches of that form.
    fn unproven(
        &self,
        known: &KnownEvents<'_>,
        proof: &RemovalProof<'_>,
        (timeline, matches): (&Timeline<'_>, &EventMatches),
    ) -> BTreeSet<OldRow> {
        let lost_form = |row: OldRow| {
            let (old, new) = (&timeline.old_events[row], &timeline.new_events[matches.new_of_old[row]?]);
            let lost_cliffs = old.cliff_unlocks.get().is_some() && new.cliff_unlocks.get().is_none();
            Some(lost_cliffs || has_linear(old) && !has_linear(new))
        };
        let is_form_proven = |row: &OldRow| {
            self.deserted.contains(row) && lost_form(*row) == Some(true) && proof.is_form_proven(known[*row].key, false)
        };
        self.all_doubtful().filter(|row| !proof.is_proven(known[*row].key) && !is_form_proven(row)).collect()
    }

    /// Returns whether most upcoming events are missing without proof of removal, and their tokens are not in other events.
    fn must_be_held(&self, known: &KnownEvents<'_>, timeline: &Timeline<'_>, proof: &RemovalProof<'_>, now: Timestamp) -> bool {
        let is_coming = |row: &OldRow| known[*row].event.interval().is_none_or(|interval| !interval.has_passed(now));
        let coming = known.indices().filter(|row| is_coming(row) && !self.uncovered.contains(row)).count();
        let missing: Vec<&RecordKey> = self.vanished.iter().filter(|row| is_coming(row)).map(|row| known[*row].key).collect();
        proof.must_hold(&missing, coming) && loses_tokens(timeline, now)
    }

    /// Removes the events whose removal is proven, and counts the confirmations of the others.
    fn settle(
        &self,
        diff: &mut Diff,
        known: &KnownEvents<'_>,
        proof: &RemovalProof<'_>,
        unproven: &BTreeSet<OldRow>,
        waiting: &WaitingEvents,
        coverage: SegmentCoverage,
    ) {
        diff.missing.extend(self.deserted.iter().filter(|row| unproven.contains(row)).map(|row| proof.counted(known[*row].key)));
        for row in &self.all {
            let KnownEvent { key, event } = known[*row];
            if unproven.contains(row) {
                diff.missing.push(proof.counted(key));
            } else if !waiting.old.contains(row) {
                match remaining_segments(event, coverage.compares_linear) {
                    Some(record) => diff.put.push(Put { key: key.clone(), record, is_new_version: true }),
                    None => diff.removed.push(key.clone()),
                }
            } else if self.doubtful.binary_search(row).is_ok() {
                diff.missing.push(proof.counted(key));
            }
        }
    }
}

/// Returns whether a response lists notably fewer coming tokens than are known, or leaves out an amount.
fn loses_tokens(timeline: &Timeline<'_>, now: Timestamp) -> bool {
    fn coming<S: Side>(all: &Tranches<'_, S>, now: Timestamp) -> Option<f64> {
        all.iter().filter(|tranche| tranche.interval().is_none_or(|at| !at.has_passed(now))).map(|tranche| tranche.amount).sum()
    }
    let (known, listed) = (coming(&timeline.old, now), coming(&timeline.new, now));
    known.zip(listed).is_none_or(|(known, listed)| listed < known * (1.0 - MAX_LOST_WITHOUT_HOLD))
}

fn removed_event(token: &TokenId, KnownEvent { key, event }: KnownEvent<'_>) -> Change {
    let mut change = Change::of(ChangeKind::Removed, Resource::Unlock, token);
    change.key = Some(key.clone());
    change.old = Some(Record::Unlock(Arc::new(event.clone())));
    let clause = ChangeClause::EventRemoved { date: event.unlock_date.copied() };
    change.summary = summary(&[clause], &ScheduleUnit::default());
    change
}

/// Returns the events of a token's first complete response, under new keys. They make no changes.
///
/// `before` contains the next event of the token, which until now was known from another endpoint. This event keeps its key, so that
/// its alerts continue. In the response, it is the event at the same instant, else the first one that has not passed at `now`.
#[must_use]
pub fn baseline_unlocks(before: &[Tracked], after: &[UnlockEvent], now: Timestamp) -> Vec<Put> {
    let (events, _) = tidy(after);
    let mut stand_ins: Vec<(&RecordKey, Option<Timestamp>, bool)> = before
        .iter()
        .filter_map(|tracked| match &tracked.record {
            Record::Unlock(event) => {
                let has_passed = event.interval().is_some_and(|interval| interval.has_passed(now));
                Some((&tracked.key, event.unlock_date.copied(), has_passed))
            }
            _ => None,
        })
        .collect();
    let mut known_keys: List<RowOf<New>, Option<&RecordKey>> = events
        .iter()
        .map(|event| {
            let same = stand_ins.iter().position(|(_, date, _)| date.is_some() && *date == event.unlock_date.copied())?;
            Some(stand_ins.remove(same).0)
        })
        .collect();
    let is_coming = |event: &UnlockEvent| event.interval().is_some_and(|interval| !interval.has_passed(now));
    if let Some((key, ..)) = stand_ins.into_iter().find(|(_, _, has_passed)| !has_passed)
        && let Some((next, _)) = events.indexed().find(|(_, event)| is_coming(event))
    {
        known_keys[next].get_or_insert(key);
    }
    let mut keys = KeyAllocator::taken(before.iter().map(|tracked| &tracked.key));
    events
        .indexed()
        .map(|(row, event)| new_put(known_keys[row].cloned().unwrap_or_else(|| keys.fresh(&key_text(event))), event))
        .collect()
}

/// Returns events that became visible because the visibility window grew, under new keys. They make no changes.
#[must_use]
pub fn newly_visible(before: &[Tracked], seen: &[UnlockEvent]) -> Vec<Put> {
    let (events, _) = tidy(seen);
    let mut keys = KeyAllocator::taken(before.iter().map(|tracked| &tracked.key));
    events.iter().map(|event| new_put(keys.fresh(&key_text(event)), event)).collect()
}

fn new_put(key: RecordKey, event: &UnlockEvent) -> Put {
    Put { key, record: Record::Unlock(Arc::new(event.clone())), is_new_version: true }
}

/// Returns the events without duplicates, sorted by date. Events of one instant have an order that does not depend on the response.
fn tidy(after: &[UnlockEvent]) -> (Events<'_, New>, RowAnomalies) {
    let mut anomalies = RowAnomalies::default();
    for two in after.windows(2) {
        if let (Some(a), Some(b)) = (two[0].unlock_date.copied(), two[1].unlock_date.copied())
            && a > b
        {
            anomalies.reordered += 1;
        }
    }
    let mut sorted: Vec<&UnlockEvent> = after.iter().collect();
    sorted.sort_by_key(|event| (event.unlock_date.is_absent(), event.unlock_date.copied()));
    let mut tidy: Vec<&UnlockEvent> = Vec::with_capacity(sorted.len());
    for same_instant in sorted.chunk_by(|a, b| a.unlock_date.copied() == b.unlock_date.copied()) {
        if let [event] = same_instant {
            tidy.push(event);
            continue;
        }
        let mut texts: Vec<(String, &UnlockEvent)> =
            same_instant.iter().map(|event| (serde_json::to_string(event).unwrap_or_default(), *event)).collect();
        texts.sort_by(|a, b| a.0.cmp(&b.0));
        for (k, (text, event)) in texts.iter().enumerate() {
            if k > 0 && texts[k - 1].0 == *text {
                anomalies.duplicates += 1;
            } else {
                tidy.push(event);
            }
        }
    }
    (tidy.into(), anomalies)
}

/// Returns the key of a new event that is alone on its date.
#[must_use]
pub fn event_key(event: &UnlockEvent) -> RecordKey {
    key_text(event).into()
}

fn key_text(event: &UnlockEvent) -> String {
    date_key(event.unlock_date.copied())
}

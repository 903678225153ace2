//! Unlock events: which event is which, what is proven, what is written.
//!
//! Tranches are linked by `link`; `matching` turns the links into events that keep their keys. A record that no tranche leads away
//! from has vanished and needs proof. Each change of `changes` knows the events that it touches: what touches an unproven removal
//! waits with it, and so does what shares an event with that, since an event is written whole or not at all.

mod matching;
mod repriced;
mod same;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::TimeDelta;

use self::{
    matching::{EventMatches, WaitingEvents, match_events, wait_with},
    same::{event_put, has_linear, linear_is_covered, moved_by, segments_left},
};
use super::{
    Absence, DateWindow, Diff, KeyAllocator, RowAnomalies, Settings,
    changes::{ChangeSubject, ExplainedChange, ScheduleComparison, explain_changes},
    date_key,
    link::{Borders, TrancheLinks, link},
    tranche::{Tranche, TrancheForm, take_apart},
};
use model::{
    change::{Change, ChangeKind},
    format,
    rows::Put,
    supply::{Record, RecordKey, Resource, Timestamp, TokenId, Tracked},
    wire::UnlockEvent,
};

pub use repriced::repriced;
#[cfg(test)]
pub(super) use same::same_schedule;

/// Coming records that must vanish at once, and be more than half of all coming ones, before the answer is doubted.
const HOLD_AT_LEAST: usize = 2;

/// What a schedule was asked of: the token, what was asked for, and when.
#[derive(Clone, Copy, Debug)]
pub struct UnlockPoll<'a> {
    /// Whose schedule.
    pub token: &'a TokenId,
    /// The days that the answer speaks of.
    pub window: &'a DateWindow,
    /// The days that the answer before spoke of: what comes from outside of them has not been added.
    pub window_before: &'a DateWindow,
    /// Whether the version of the endpoint that answered shows linear segments; None where that is unknown.
    pub shows_linear: Option<bool>,
    /// Whether an earlier answer showed linear segments: else those of the first one that does are no news. None where unknown.
    pub knew_linear: Option<bool>,
    /// Tokens that there will ever be; None where unknown. Sentences tell shares of it.
    pub supply: Option<f64>,
    /// How exact, and how much proof.
    pub settings: &'a Settings,
    /// The time of the poll.
    pub now: Timestamp,
}

impl<'a> UnlockPoll<'a> {
    /// A poll of the whole schedule, by an unknown version of the endpoint.
    #[must_use]
    pub fn of(token: &'a TokenId, settings: &'a Settings, now: Timestamp) -> Self {
        Self {
            token,
            window: &DateWindow::ALL,
            window_before: &DateWindow::ALL,
            shows_linear: None,
            knew_linear: None,
            supply: None,
            settings,
            now,
        }
    }
}

/// What a complete answer changes in the unlock events of a token.
///
/// `before` is the snapshot (records of other resources in it are ignored), `missing` what earlier answers left out, `after` the
/// whole answer. An empty answer never empties a snapshot: it is held.
#[must_use]
pub fn diff_unlocks(poll: &UnlockPoll<'_>, before: &[Tracked], missing: &[(RecordKey, u32)], after: &[UnlockEvent]) -> Diff {
    let UnlockPoll { token, window, settings, now, .. } = *poll;
    let (new_rows, odd) = tidy(after);
    let known = known_events(before, after, window);
    let old_rows: Vec<&UnlockEvent> = known.iter().map(|(_, event)| *event).collect();
    let absence = Absence::new(missing, settings);
    if new_rows.is_empty() {
        // A token that has nothing but segments is empty in a version that does not show them.
        let is_shown = |event: &UnlockEvent| poll.shows_linear != Some(false) || event.cliff_unlocks.get().is_some();
        let left_out = known.iter().filter(|(_, event)| is_shown(event));
        let missing: Vec<(RecordKey, u32)> = left_out.map(|(key, _)| absence.counted(key)).collect();
        return Diff { held: !missing.is_empty(), missing, odd, ..Diff::default() };
    }

    let covered = poll.shows_linear.unwrap_or_else(|| linear_is_covered(&old_rows, &new_rows, settings.tolerance));
    let knew_linear = poll.knew_linear.unwrap_or_else(|| old_rows.iter().any(|event| !event.linear_unlocks.is_absent()));
    let newly_covered = covered && !knew_linear && (poll.knew_linear.is_some() || !old_rows.is_empty());
    let with_linear = covered && !newly_covered;
    let mut old = take_apart(&old_rows, with_linear);
    let new = take_apart(&new_rows, with_linear);
    let links = link(&mut old, &new, &Borders { old: poll.window, new: poll.window_before }, settings.tolerance);
    let matches = match_events(&old_rows, &new_rows, &old, &new, &links);
    let vanished = VanishedEvents::of(&old_rows, &new_rows, &old, &new, &links, &matches, with_linear);
    if vanished.must_be_held(&known, &absence, now) {
        let missing = vanished.doubtful.iter().map(|row| absence.counted(known[*row].0)).collect();
        return Diff { held: true, missing, odd, ..Diff::default() };
    }

    let doubtful = vanished.doubtful.iter().chain(&vanished.deserted).copied();
    let unproven: HashSet<usize> = doubtful.filter(|row| !absence.is_proven(known[*row].0)).collect();
    let explained = explain_changes(&ScheduleComparison {
        token,
        old_rows: &old_rows,
        new_rows: &new_rows,
        old: &old,
        new: &new,
        links: &links,
        new_of_old: &matches.new_of_old,
        old_of_new: &matches.old_of_new,
        vanished: &vanished.all,
        unproven: &unproven,
        tolerance: settings.tolerance,
        supply: poll.supply,
        now,
    });
    let waiting = wait_with(&explained, &unproven, &matches);

    let written = Written { before, known: &known, new_rows: &new_rows, old: &old, new: &new, links: &links, settings };
    let (put, new_keys) = written.events(&matches, &waiting, with_linear || newly_covered);
    let mut diff = Diff { put, odd, ..Diff::default() };
    written.add_unseen(&mut diff, &vanished, window);
    vanished.remove_or_count(&mut diff, &known, &absence, &unproven, &waiting, with_linear);
    // What this answer does not speak of keeps the count that it had.
    let spoken_of: HashSet<&RecordKey> =
        known.iter().zip(&vanished.uncovered).filter(|(_, uncovered)| !**uncovered).map(|((key, _), _)| *key).collect();
    let exists: HashSet<&RecordKey> = before.iter().map(|tracked| &tracked.key).collect();
    diff.missing.extend(missing.iter().filter(|(key, _)| exists.contains(key) && !spoken_of.contains(key)).cloned());

    diff.changes.extend(explained.into_iter().filter(|found| !waiting.touches(found)).map(|found| {
        let ExplainedChange { mut change, subject, .. } = found;
        change.key = subject.and_then(|subject| match subject {
            ChangeSubject::New(row) => new_keys.get(&row).cloned(),
            ChangeSubject::Old(row) => Some(known[row].0.clone()),
        });
        change
    }));
    // What went beyond the last day that is seen looks as if it were gone.
    if let Some(last) = window.last.and_then(|last| last.and_hms_opt(0, 0, 0)) {
        for change in diff.changes.iter_mut().filter(|change| change.kind == ChangeKind::Removed) {
            change.summary.push_str(&format!(", or moved beyond {}, where nothing is seen", format::day(last.and_utc())));
        }
    }
    // A record without tranches that is proven gone belongs to no series; it is a change by itself.
    let without_tranches = vanished.doubtful.iter().filter(|row| vanished.parts[**row] == 0 && !unproven.contains(row));
    diff.changes.extend(without_tranches.map(|row| removed_event(token, known[*row])));
    diff
}

/// What is written of an answer: events under the keys that they have from now on.
struct Written<'a> {
    before: &'a [Tracked],
    known: &'a [(&'a RecordKey, &'a UnlockEvent)],
    new_rows: &'a [&'a UnlockEvent],
    old: &'a [Tranche<'a>],
    new: &'a [Tranche<'a>],
    links: &'a TrancheLinks,
    settings: &'a Settings,
}

impl Written<'_> {
    /// The events of the answer that do not wait, and the key of each.
    fn events(
        &self,
        matches: &EventMatches,
        waiting: &WaitingEvents,
        linear_covered: bool,
    ) -> (Vec<Put>, HashMap<usize, RecordKey>) {
        let (mut puts, mut new_keys) = (Vec::new(), HashMap::new());
        let unlocks = self.before.iter().filter(|tracked| tracked.record.resource() == Resource::Unlock);
        let mut keys = KeyAllocator::taken(unlocks.map(|tracked| &tracked.key));
        for (row, event) in self.new_rows.iter().enumerate().filter(|(row, _)| !waiting.new.contains(row)) {
            let (key, put) = match matches.old_of_new[row] {
                Some(old_row) => {
                    let (key, before) = self.known[old_row];
                    (key.clone(), event_put(key, before, event, linear_covered, self.settings.tolerance))
                }
                None => {
                    let key = out_of_sight(self.before, self.known, row, event, self.new, self.links).cloned();
                    let key = key.unwrap_or_else(|| keys.fresh(&key_text(event)));
                    (key.clone(), Some(new_put(key, event)))
                }
            };
            new_keys.insert(row, key);
            puts.extend(put);
        }
        (puts, new_keys)
    }

    /// Events that moved out of sight, or are there, with their series.
    fn add_unseen(&self, diff: &mut Diff, vanished: &VanishedEvents, window: &DateWindow) {
        diff.put.extend(vanished.crossed.iter().map(|(row, by)| {
            let (key, event) = self.known[*row];
            Put { key: key.clone(), record: Record::Unlock(Arc::new(moved_by(event, *by))), is_new_version: true }
        }));
        let seen: HashSet<RecordKey> =
            self.known.iter().map(|(key, _)| (*key).clone()).chain(diff.put.iter().map(|put| put.key.clone())).collect();
        let unseen = moved_unseen(self.before, window, self.links, self.old, self.new);
        diff.put.extend(unseen.filter(|put| !seen.contains(&put.key)));
    }
}

/// The events before that the answer speaks of.
fn known_events<'a>(before: &'a [Tracked], after: &[UnlockEvent], window: &DateWindow) -> Vec<(&'a RecordKey, &'a UnlockEvent)> {
    // A source may answer more than it was asked for: what it says of other days is compared, what it leaves out of them is not.
    let beyond: HashSet<Timestamp> =
        after.iter().filter_map(|event| event.unlock_date.copied()).filter(|at| !window.contains(Some(*at))).collect();
    let is_asked = |at: Option<Timestamp>| window.contains(at) || at.is_some_and(|at| beyond.contains(&at));
    before
        .iter()
        .filter_map(|tracked| match &tracked.record {
            Record::Unlock(event) if is_asked(event.unlock_date.copied()) => Some((&tracked.key, &**event)),
            _ => None,
        })
        .collect()
}

/// The key of an event that was out of sight until it moved into it with its series.
fn out_of_sight<'a>(
    before: &'a [Tracked],
    known: &[(&RecordKey, &UnlockEvent)],
    row: usize,
    event: &UnlockEvent,
    new: &[Tranche<'_>],
    links: &TrancheLinks,
) -> Option<&'a RecordKey> {
    let (_, by) = links.entered.iter().find(|(j, _)| new[*j].row == row)?;
    let was = event.unlock_date.copied()?.checked_sub_signed(TimeDelta::milliseconds(*by))?;
    let is_it = |tracked: &&Tracked| matches!(&tracked.record, Record::Unlock(event) if event.unlock_date.copied() == Some(was));
    let key = &before.iter().find(is_it)?.key;
    known.iter().all(|(of, _)| *of != key).then_some(key)
}

/// Events ahead that are out of sight, where their series moved: they are kept where they must be now, to be known again once they come
/// into sight. What lies behind is history and stays.
fn moved_unseen<'a>(
    before: &'a [Tracked],
    window: &'a DateWindow,
    links: &'a TrancheLinks,
    old: &[Tranche<'a>],
    new: &[Tranche<'a>],
) -> impl Iterator<Item = Put> + 'a {
    let moves = window.last.map(|last| (last, links.moves(old, new)));
    before.iter().filter_map(move |tracked| {
        let (last, moves) = moves.as_ref()?;
        let Record::Unlock(event) = &tracked.record else { return None };
        event.unlock_date.copied().filter(|at| at.date_naive() > *last)?;
        let mut parts = take_apart(&[&**event], true);
        for part in &mut parts {
            part.series = links.renames.iter().find(|(from, _)| from == part.name).map_or(part.name, |(_, to)| to);
        }
        let record = Record::Unlock(Arc::new(moved_by(event, moves.of_hidden(&parts)?)));
        Some(Put { key: tracked.key.clone(), record, is_new_version: true })
    })
}

/// Events that the answer leaves out, by index.
struct VanishedEvents {
    /// All of them.
    all: Vec<usize>,
    /// Those that need proof. The others are accounted for by tranches that live on elsewhere in this very answer.
    doubtful: Vec<usize>,
    /// Events that live on, and lost a part of an allocation that is gone altogether: that needs proof too.
    deserted: Vec<usize>,
    /// Of each event before, how many tranches it had.
    parts: Vec<usize>,
    /// Of each event before, whether the answer does not speak of it: it has only linear segments, and the answer has none.
    uncovered: Vec<bool>,
    /// Events that moved out of sight with their series, and by how much, milliseconds: they are kept where they must be now.
    crossed: Vec<(usize, i64)>,
}

impl VanishedEvents {
    fn of(
        old_rows: &[&UnlockEvent],
        new_rows: &[&UnlockEvent],
        old: &[Tranche<'_>],
        new: &[Tranche<'_>],
        links: &TrancheLinks,
        matches: &EventMatches,
        with_linear: bool,
    ) -> Self {
        let mut parts = vec![0_usize; old_rows.len()];
        for tranche in old {
            parts[tranche.row] += 1;
        }
        let mut has_gone_part = vec![false; old_rows.len()];
        for i in &links.gone {
            has_gone_part[old[*i].row] = true;
        }
        let uncovered: Vec<bool> =
            old_rows.iter().zip(&parts).map(|(event, parts)| !with_linear && *parts == 0 && has_linear(event)).collect();
        let mut crossed: HashMap<usize, (usize, i64)> = HashMap::new();
        for (i, by) in &links.crossed {
            crossed.entry(old[*i].row).or_insert((0, *by)).0 += 1;
        }
        crossed.retain(|row, (count, _)| *count == parts[*row] && matches.new_of_old[*row].is_none());
        let is_left_out = |row: &usize| matches.new_of_old[*row].is_none() && !uncovered[*row] && !crossed.contains_key(row);
        let all: Vec<usize> = (0..old_rows.len()).filter(is_left_out).collect();
        let mut crossed: Vec<(usize, i64)> = crossed.into_iter().map(|(row, (_, by))| (row, by)).collect();
        crossed.sort_unstable();
        let doubtful = all.iter().copied().filter(|row| parts[*row] == 0 || has_gone_part[*row]).collect();
        let present: HashSet<&str> = new.iter().map(|tranche| tranche.series).collect();
        // Of an event that has no cliffs any more nothing says that it never had.
        let has_no_cliffs = |row: usize| matches.new_of_old[row].is_some_and(|new| new_rows[new].cliff_unlocks.get().is_none());
        let is_lost = |tranche: &&Tranche<'_>| {
            !present.contains(tranche.series) || tranche.form == TrancheForm::Cliff && has_no_cliffs(tranche.row)
        };
        let lost = links.gone.iter().map(|i| &old[*i]).filter(is_lost);
        let mut deserted: Vec<usize> = lost.map(|tranche| tranche.row).filter(|row| matches.new_of_old[*row].is_some()).collect();
        deserted.sort_unstable();
        deserted.dedup();
        Self { all, doubtful, deserted, parts, uncovered, crossed }
    }

    /// Whether most of what is to come vanished, and is not believed yet.
    fn must_be_held(&self, known: &[(&RecordKey, &UnlockEvent)], absence: &Absence<'_>, now: Timestamp) -> bool {
        let is_coming = |row: usize| known[row].1.interval().is_none_or(|interval| !interval.has_passed(now));
        let coming = (0..known.len()).filter(|row| is_coming(*row) && !self.uncovered[*row]).count();
        let gone: Vec<usize> = self.doubtful.iter().copied().filter(|row| is_coming(*row)).collect();
        gone.len() >= HOLD_AT_LEAST && gone.len() * 2 > coming && gone.iter().any(|row| absence.is_doubted(known[*row].0))
    }

    /// Removes what is proven gone, and counts the absence of what is not or has to wait.
    fn remove_or_count(
        &self,
        diff: &mut Diff,
        known: &[(&RecordKey, &UnlockEvent)],
        absence: &Absence<'_>,
        unproven: &HashSet<usize>,
        waiting: &WaitingEvents,
        with_linear: bool,
    ) {
        diff.missing.extend(self.deserted.iter().filter(|row| unproven.contains(row)).map(|row| absence.counted(known[*row].0)));
        for row in &self.all {
            let (key, event) = known[*row];
            if unproven.contains(row) {
                diff.missing.push(absence.counted(key));
            } else if !waiting.old.contains(row) {
                match segments_left(event, with_linear) {
                    Some(record) => diff.put.push(Put { key: key.clone(), record, is_new_version: true }),
                    None => diff.removed.push(key.clone()),
                }
            } else if self.doubtful.binary_search(row).is_ok() {
                diff.missing.push(absence.counted(key));
            }
        }
    }
}

/// The change that says that an event without tranches is gone.
fn removed_event(token: &TokenId, (key, event): (&RecordKey, &UnlockEvent)) -> Change {
    let mut change = Change::of(ChangeKind::Removed, Resource::Unlock, token);
    change.key = Some(key.clone());
    change.old = Some(Record::Unlock(Arc::new(event.clone())));
    change.summary = match event.unlock_date.copied() {
        Some(at) => format!("removed: the event of {}", format::day(at)),
        None => "removed: an event without a date".to_owned(),
    };
    change
}

/// Keys for the events of a token whose schedule is read for the first time. This is no change.
///
/// `before` holds what stood in for the schedule until now: the token's next event, as another endpoint had it. That event keeps its
/// key, so that an alert about it goes on: it is the event at the same instant, else the first one that has not passed at `now`.
#[must_use]
pub fn baseline_unlocks(before: &[Tracked], after: &[UnlockEvent], now: Timestamp) -> Vec<Put> {
    let (rows, _) = tidy(after);
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
    let mut kept: Vec<Option<&RecordKey>> = rows
        .iter()
        .map(|event| {
            let same = stand_ins.iter().position(|(_, date, _)| date.is_some() && *date == event.unlock_date.copied())?;
            Some(stand_ins.remove(same).0)
        })
        .collect();
    if let Some((key, ..)) = stand_ins.into_iter().find(|(_, _, has_passed)| !has_passed)
        && let Some(next) = rows.iter().position(|event| event.interval().is_some_and(|interval| !interval.has_passed(now)))
        && let Some(place @ None) = kept.get_mut(next)
    {
        *place = Some(key);
    }
    let mut keys = KeyAllocator::taken(before.iter().map(|tracked| &tracked.key));
    rows.into_iter()
        .zip(kept)
        .map(|(event, kept)| new_put(kept.cloned().unwrap_or_else(|| keys.fresh(&key_text(event))), event))
        .collect()
}

/// Keys for events that came into sight because more days were asked for than before. Nothing was added, so there is no change.
#[must_use]
pub fn newly_visible(before: &[Tracked], seen: &[UnlockEvent]) -> Vec<Put> {
    let (rows, _) = tidy(seen);
    let mut keys = KeyAllocator::taken(before.iter().map(|tracked| &tracked.key));
    rows.into_iter().map(|event| new_put(keys.fresh(&key_text(event)), event)).collect()
}

fn new_put(key: RecordKey, event: &UnlockEvent) -> Put {
    Put { key, record: Record::Unlock(Arc::new(event.clone())), is_new_version: true }
}

/// The rows without repeats, in the order of time; rows of one instant in an order that does not depend on that of the answer.
fn tidy(after: &[UnlockEvent]) -> (Vec<&UnlockEvent>, RowAnomalies) {
    let mut odd = RowAnomalies::default();
    for two in after.windows(2) {
        if let (Some(a), Some(b)) = (two[0].unlock_date.copied(), two[1].unlock_date.copied())
            && a > b
        {
            odd.reordered += 1;
        }
    }
    let mut rows: Vec<&UnlockEvent> = after.iter().collect();
    rows.sort_by_key(|event| (event.unlock_date.is_absent(), event.unlock_date.copied()));
    let mut tidy: Vec<&UnlockEvent> = Vec::with_capacity(rows.len());
    for group in rows.chunk_by(|a, b| a.unlock_date.copied() == b.unlock_date.copied()) {
        if let [event] = group {
            tidy.push(event);
            continue;
        }
        let mut texts: Vec<(String, &UnlockEvent)> =
            group.iter().map(|event| (serde_json::to_string(event).unwrap_or_default(), *event)).collect();
        texts.sort_by(|a, b| a.0.cmp(&b.0));
        for (k, (text, event)) in texts.iter().enumerate() {
            if k > 0 && texts[k - 1].0 == *text {
                odd.duplicates += 1;
            } else {
                tidy.push(event);
            }
        }
    }
    (tidy, odd)
}

/// The key of an event that is new and has its date for itself.
#[must_use]
pub fn event_key(event: &UnlockEvent) -> RecordKey {
    key_text(event).into()
}

fn key_text(event: &UnlockEvent) -> String {
    date_key(event.unlock_date.copied())
}

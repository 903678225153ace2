//! Unlock events: which event is which, what is proven, what is written.
//!
//! Tranches are linked by `tranche`; here the links become events that keep their keys. A record that no tranche leads away from
//! has vanished and needs proof. Each thing that `tell` says knows the events it touches: what touches an unproven removal waits
//! with it, and so does what shares an event with that, since an event is written whole or not at all.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{
    Absence, Diff, Keys, Odd, Settings, Window, close, tell,
    tranche::{Links, link, take_apart},
};
use crate::{
    change::{Change, ChangeKind},
    format,
    store::model::Put,
    supply::{Record, RecordKey, Resource, Timestamp, TokenId, Tracked},
    wire::{CliffAllocation, LinearAllocation, Maybe, UnlockEvent},
};

/// Coming records that must vanish at once, and be more than half of all coming ones, before the answer is doubted.
const HOLD_AT_LEAST: usize = 3;

/// Keys for the events of a token whose schedule is read for the first time. Tells nothing.
///
/// `before` holds what stood in for the schedule until now: the token's next event, as another endpoint told it. That event keeps its
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
    let mut keys = Keys::taken(before.iter().map(|tracked| &tracked.key));
    rows.into_iter()
        .zip(kept)
        .map(|(event, kept)| Put {
            key: kept.cloned().unwrap_or_else(|| keys.fresh(&key_text(event))),
            record: Record::Unlock(Box::new(event.clone())),
            is_new_version: true,
        })
        .collect()
}

/// Keys for events that came into sight because more days were asked for than before. Nothing was added, so this tells nothing.
#[must_use]
pub fn newly_visible(before: &[Tracked], seen: &[UnlockEvent]) -> Vec<Put> {
    let (rows, _) = tidy(seen);
    let mut keys = Keys::taken(before.iter().map(|tracked| &tracked.key));
    rows.into_iter()
        .map(|event| Put {
            key: keys.fresh(&key_text(event)),
            record: Record::Unlock(Box::new(event.clone())),
            is_new_version: true,
        })
        .collect()
}

/// What a complete answer changes in the unlock events of a token.
///
/// `before` is the snapshot (records of other resources in it are ignored), `missing` what earlier answers left out, `after` the
/// whole answer for `window`, `now` the time of the poll. An empty answer never empties a snapshot: it is held.
#[must_use]
pub fn diff_unlocks(
    token: &TokenId,
    before: &[Tracked],
    missing: &[(RecordKey, u32)],
    after: &[UnlockEvent],
    settings: &Settings,
    window: &Window,
    now: Timestamp,
) -> Diff {
    let (new_rows, odd) = tidy(after);
    let mut keys = Keys::taken(before.iter().filter(|t| t.record.resource() == Resource::Unlock).map(|t| &t.key));
    // A source may answer more than it was asked for: what it says of other days is compared, what it leaves out of them is not.
    let beyond: HashSet<Timestamp> =
        after.iter().filter_map(|event| event.unlock_date.copied()).filter(|at| !window.contains(Some(*at))).collect();
    let is_asked = |at: Option<Timestamp>| window.contains(at) || at.is_some_and(|at| beyond.contains(&at));
    let known: Vec<(&RecordKey, &UnlockEvent)> = before
        .iter()
        .filter_map(|tracked| match &tracked.record {
            Record::Unlock(event) if is_asked(event.unlock_date.copied()) => Some((&tracked.key, &**event)),
            _ => None,
        })
        .collect();
    let old_rows: Vec<&UnlockEvent> = known.iter().map(|(_, event)| *event).collect();
    let absence = Absence::new(missing, settings);
    if new_rows.is_empty() {
        let missing: Vec<(RecordKey, u32)> = known.iter().map(|(key, _)| ((*key).clone(), absence.count(key))).collect();
        return Diff { held: !missing.is_empty(), missing, odd, ..Diff::default() };
    }

    let covered = linear_is_covered(&old_rows, &new_rows, settings.tolerance);
    let newly_covered = covered && !old_rows.is_empty() && old_rows.iter().all(|event| event.linear_unlocks.is_absent());
    let with_linear = covered && !newly_covered;
    let mut old = take_apart(&old_rows, with_linear);
    let new = take_apart(&new_rows, with_linear);
    let links = link(&mut old, &new, settings.tolerance);
    let rows = match_rows(&old_rows, &new_rows, &old, &new, &links);

    // Who vanished, and of those, who is accounted for by tranches that live on elsewhere in this very answer.
    let mut unlinked = vec![false; old_rows.len()];
    let mut parts = vec![0_usize; old_rows.len()];
    for tranche in &old {
        parts[tranche.row] += 1;
    }
    for i in &links.gone {
        unlinked[old[*i].row] = true;
    }
    let is_uncovered = |row: usize| !with_linear && parts[row] == 0 && has_linear(old_rows[row]);
    let vanished: Vec<usize> = (0..old_rows.len()).filter(|row| rows.new_of_old[*row].is_none() && !is_uncovered(*row)).collect();
    let moved_away = |row: usize| parts[row] > 0 && !unlinked[row];
    let doubtful: Vec<usize> = vanished.iter().copied().filter(|row| !moved_away(*row)).collect();

    // Held: most of what is to come vanished, and has not been confirmed once more than a removal needs.
    let is_coming = |row: usize| old_rows[row].interval().is_none_or(|interval| !interval.has_passed(now));
    let coming = (0..old_rows.len()).filter(|row| is_coming(*row) && !is_uncovered(*row)).count();
    let coming_gone: Vec<usize> = doubtful.iter().copied().filter(|row| is_coming(*row)).collect();
    if coming_gone.len() >= HOLD_AT_LEAST
        && coming_gone.len() * 2 > coming
        && coming_gone.iter().any(|row| absence.count(known[*row].0) <= absence.needed)
    {
        let missing = doubtful.iter().map(|row| (known[*row].0.clone(), absence.count(known[*row].0))).collect();
        return Diff { held: true, missing, odd, ..Diff::default() };
    }

    let unproven: HashSet<usize> = doubtful.iter().copied().filter(|row| !absence.is_proven(known[*row].0)).collect();
    let units = tell::tell(&tell::Seen {
        token,
        old_rows: &old_rows,
        new_rows: &new_rows,
        old: &old,
        new: &new,
        links: &links,
        new_of_old: &rows.new_of_old,
        old_of_new: &rows.old_of_new,
        vanished: &vanished,
        unproven: &unproven,
        tolerance: settings.tolerance,
        now,
    });
    let (waiting_old, waiting_new) = wait_with(&units, &unproven, &rows);

    let mut diff = Diff { odd, ..Diff::default() };
    let mut new_keys: HashMap<usize, RecordKey> = HashMap::new();
    for (row, event) in new_rows.iter().enumerate() {
        if waiting_new.contains(&row) {
            continue;
        }
        let (key, put) = match rows.old_of_new[row] {
            Some(old_row) => {
                let (key, before) = known[old_row];
                (key.clone(), write(key, before, event, with_linear || newly_covered, settings.tolerance))
            }
            None => {
                let key = keys.fresh(&key_text(event));
                (key.clone(), Some(Put { key, record: Record::Unlock(Box::new((*event).clone())), is_new_version: true }))
            }
        };
        new_keys.insert(row, key);
        diff.put.extend(put);
    }
    for row in &vanished {
        let key = known[*row].0;
        if unproven.contains(row) {
            diff.missing.push((key.clone(), absence.count(key)));
        } else if !waiting_old.contains(row) {
            diff.removed.push(key.clone());
        } else if !moved_away(*row) {
            diff.missing.push((key.clone(), absence.count(key)));
        }
    }
    // What this answer does not speak of keeps the count that it had.
    let spoken_of: HashSet<&RecordKey> = (0..known.len()).filter(|row| !is_uncovered(*row)).map(|row| known[row].0).collect();
    let exists: HashSet<&RecordKey> = before.iter().map(|tracked| &tracked.key).collect();
    diff.missing.extend(missing.iter().filter(|(key, _)| exists.contains(key) && !spoken_of.contains(key)).cloned());
    for unit in units {
        if unit.old.iter().any(|row| waiting_old.contains(row)) || unit.new.iter().any(|row| waiting_new.contains(row)) {
            continue;
        }
        let mut change = unit.change;
        change.key = unit.subject.and_then(|subject| match subject {
            tell::Subject::New(row) => new_keys.get(&row).cloned(),
            tell::Subject::Old(row) => Some(known[row].0.clone()),
        });
        diff.changes.push(change);
    }
    // A record without tranches that is proven gone belongs to no series; it is told by itself.
    let untold: Vec<usize> = doubtful.iter().copied().filter(|row| parts[*row] == 0 && !unproven.contains(row)).collect();
    diff.changes.extend(untold.into_iter().map(|row| {
        let mut change = Change::of(ChangeKind::Removed, Resource::Unlock, token);
        change.key = Some(known[row].0.clone());
        change.old = Some(Record::Unlock(Box::new(old_rows[row].clone())));
        change.summary = match old_rows[row].unlock_date.copied() {
            Some(at) => format!("removed: the event of {}", format::day(at)),
            None => "removed: an event without a date".to_owned(),
        };
        change
    }));
    diff
}

/// The rows without repeats, in the order of time; rows of one instant in an order that does not depend on that of the answer.
fn tidy(after: &[UnlockEvent]) -> (Vec<&UnlockEvent>, Odd) {
    let mut odd = Odd::default();
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
    match event.unlock_date.copied() {
        None => "undated".to_owned(),
        Some(at) if at.time() == chrono::NaiveTime::MIN => at.format("%Y-%m-%d").to_string(),
        Some(at) => at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true),
    }
}

fn has_linear(event: &UnlockEvent) -> bool {
    event
        .linear_unlocks
        .get()
        .is_some_and(|linear| !linear.allocation_breakdown.items().is_empty() || linear.linear_amount.get().is_some())
}

/// Whether the answer speaks of linear segments at all. Later versions of the endpoint do not: an answer that has none, and whose
/// cliffs are mostly those that were known, comes from such a version.
fn linear_is_covered(old_rows: &[&UnlockEvent], new_rows: &[&UnlockEvent], tolerance: f64) -> bool {
    if !old_rows.iter().any(|event| has_linear(event)) || new_rows.iter().any(|event| event.linear_unlocks.get().is_some()) {
        return true;
    }
    let cliffs = |rows: &[&UnlockEvent]| {
        let mut found: Vec<(Timestamp, f64)> =
            rows.iter().filter_map(|event| Some((event.unlock_date.copied()?, event.cliff_amount()?))).collect();
        found.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        found
    };
    let (before, after) = (cliffs(old_rows), cliffs(new_rows));
    let same = before.iter().filter(|(at, amount)| {
        let from = after.partition_point(|(other, _)| other < at);
        after[from..].iter().take_while(|(other, _)| other == at).any(|(_, other)| close(*amount, *other, tolerance))
    });
    same.count() * 2 < before.len().max(1)
}

/// Which event is which.
struct Rows {
    new_of_old: Vec<Option<usize>>,
    old_of_new: Vec<Option<usize>>,
}

/// An event is the one that most of its tranches went to; of equals, the one at the same instant, then the nearer.
fn match_rows(
    old_rows: &[&UnlockEvent],
    new_rows: &[&UnlockEvent],
    old: &[super::tranche::Tranche<'_>],
    new: &[super::tranche::Tranche<'_>],
    links: &Links,
) -> Rows {
    let mut weights: HashMap<(usize, usize), u32> = HashMap::new();
    for (i, j) in &links.pairs {
        *weights.entry((old[*i].row, new[*j].row)).or_default() += 2;
    }
    for (from, to) in &links.groups {
        // The first part stands for the whole.
        if let (Some(i), Some(j)) = (from.first(), to.first()) {
            *weights.entry((old[*i].row, new[*j].row)).or_default() += 1;
        }
    }
    let millis = |event: &UnlockEvent| event.unlock_date.copied().map_or(0, |at| at.timestamp_millis());
    let mut candidates: Vec<(std::cmp::Reverse<u32>, i64, usize, usize)> = weights
        .into_iter()
        .map(|((o, n), weight)| (std::cmp::Reverse(weight), (millis(new_rows[n]) - millis(old_rows[o])).abs(), o, n))
        .collect();
    candidates.sort_unstable();
    let mut rows = Rows { new_of_old: vec![None; old_rows.len()], old_of_new: vec![None; new_rows.len()] };
    let mut marry = |o: usize, n: usize| {
        if rows.new_of_old[o].is_none() && rows.old_of_new[n].is_none() {
            rows.new_of_old[o] = Some(n);
            rows.old_of_new[n] = Some(o);
        }
    };
    for (_, _, o, n) in candidates {
        marry(o, n);
    }
    // What is left on both sides at one instant is one event of which nothing but the date stayed.
    let mut at_instant: HashMap<Option<Timestamp>, Vec<usize>> = HashMap::new();
    for n in (0..new_rows.len()).rev() {
        if rows.old_of_new[n].is_none() {
            at_instant.entry(new_rows[n].unlock_date.copied()).or_default().push(n);
        }
    }
    for (o, event) in old_rows.iter().enumerate() {
        if rows.new_of_old[o].is_none()
            && let Some(n) = at_instant.get_mut(&event.unlock_date.copied()).and_then(Vec::pop)
        {
            rows.new_of_old[o] = Some(n);
            rows.old_of_new[n] = Some(o);
        }
    }
    rows
}

/// The events that wait: those of changes that touch an unproven removal, and of changes that share an event with those.
fn wait_with(units: &[tell::Unit], unproven: &HashSet<usize>, rows: &Rows) -> (HashSet<usize>, HashSet<usize>) {
    let mut old: HashSet<usize> = unproven.clone();
    let mut new: HashSet<usize> = HashSet::new();
    let mut waits = vec![false; units.len()];
    loop {
        let mut grown = false;
        for (unit, waits) in units.iter().zip(&mut waits) {
            if !*waits && (unit.old.iter().any(|row| old.contains(row)) || unit.new.iter().any(|row| new.contains(row))) {
                *waits = true;
                grown = true;
                for row in &unit.old {
                    old.insert(*row);
                    new.extend(rows.new_of_old[*row]);
                }
                for row in &unit.new {
                    new.insert(*row);
                    old.extend(rows.old_of_new[*row]);
                }
            }
        }
        if !grown {
            return (old, new);
        }
    }
}

/// What to write for an event that was known; None where it is the same in every field.
fn write(key: &RecordKey, before: &UnlockEvent, after: &UnlockEvent, linear_covered: bool, tolerance: f64) -> Option<Put> {
    let mut record = after.clone();
    if !linear_covered && after.linear_unlocks.get().is_none() {
        record.linear_unlocks = before.linear_unlocks.clone();
    }
    if record == *before {
        return None;
    }
    let is_new_version = !same_schedule(before, &record, tolerance);
    Some(Put { key: key.clone(), record: Record::Unlock(Box::new(record)), is_new_version })
}

/// Whether two events agree in every schedule fact, whatever their values and prices.
pub(super) fn same_schedule(a: &UnlockEvent, b: &UnlockEvent, tolerance: f64) -> bool {
    let text = |a: &Maybe<String>, b: &Maybe<String>| a.as_str() == b.as_str();
    let amount = |a: &Maybe<f64>, b: &Maybe<f64>| match (a.copied(), b.copied()) {
        (Some(a), Some(b)) => close(a, b, tolerance),
        (None, None) => true,
        _ => false,
    };
    let whole = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => close(a, b, tolerance),
        (None, None) => true,
        _ => false,
    };
    if a.unlock_date.copied() != b.unlock_date.copied()
        || !text(&a.token_name, &b.token_name)
        || !text(&a.token_symbol, &b.token_symbol)
        || !text(&a.listed_method, &b.listed_method)
        || !text(&a.data_source, &b.data_source)
    {
        return false;
    }
    let cliffs = |event: &'_ UnlockEvent| -> Vec<CliffAllocation> {
        let mut parts = event.cliff_unlocks.get().map_or_else(Vec::new, |cliffs| cliffs.allocation_breakdown.items().to_vec());
        let amount = |part: &CliffAllocation| part.cliff_amount.copied().unwrap_or(-1.0);
        parts.sort_by(|a, b| a.allocation_name.as_str().cmp(&b.allocation_name.as_str()).then(amount(a).total_cmp(&amount(b))));
        parts
    };
    let linears = |event: &'_ UnlockEvent| -> Vec<LinearAllocation> {
        let mut parts = event.linear_unlocks.get().map_or_else(Vec::new, |linears| linears.allocation_breakdown.items().to_vec());
        let amount = |part: &LinearAllocation| part.linear_amount.copied().unwrap_or(-1.0);
        parts.sort_by(|a, b| {
            (a.allocation_name.as_str(), a.begin_date.copied(), a.end_date.copied())
                .cmp(&(b.allocation_name.as_str(), b.begin_date.copied(), b.end_date.copied()))
                .then(amount(a).total_cmp(&amount(b)))
        });
        parts
    };
    let same_cliff = |a: &CliffAllocation, b: &CliffAllocation| {
        text(&a.allocation_name, &b.allocation_name)
            && text(&a.standard_allocation_name, &b.standard_allocation_name)
            && text(&a.unlock_precision, &b.unlock_precision)
            && amount(&a.cliff_amount, &b.cliff_amount)
            && match (a.committed_claim.get(), b.committed_claim.get()) {
                (Some(a), Some(b)) => amount(&a.amount, &b.amount) && a.timestamp.copied() == b.timestamp.copied(),
                (None, None) => true,
                _ => false,
            }
    };
    let same_linear = |a: &LinearAllocation, b: &LinearAllocation| {
        text(&a.allocation_name, &b.allocation_name)
            && text(&a.standard_allocation_name, &b.standard_allocation_name)
            && text(&a.unlock_precision, &b.unlock_precision)
            && a.begin_date.copied() == b.begin_date.copied()
            && a.end_date.copied() == b.end_date.copied()
            && amount(&a.linear_amount, &b.linear_amount)
    };
    let (ca, cb, la, lb) = (cliffs(a), cliffs(b), linears(a), linears(b));
    ca.len() == cb.len()
        && la.len() == lb.len()
        && ca.iter().zip(&cb).all(|(a, b)| same_cliff(a, b))
        && la.iter().zip(&lb).all(|(a, b)| same_linear(a, b))
        && (!ca.is_empty() || whole(a.cliff_amount(), b.cliff_amount()))
        && (!la.is_empty()
            || whole(
                a.linear_unlocks.get().and_then(|l| l.linear_amount.copied()),
                b.linear_unlocks.get().and_then(|l| l.linear_amount.copied()),
            ))
}

/// Rows that a change touches.
pub(super) type RowSet = BTreeSet<usize>;

//! Rate changes: linear unlocks that begin when another one of the same allocation ends. Only one endpoint version shows them.
//!
//! If the known facts and a response show linear unlocks of different versions, rate changes that only one of them can show are neither
//! added nor removed. [`separate`] takes them out of both, the rest is compared as usual, and [`RateChanges::restore`] puts them
//! back without a change. So a correction in such a response is still reported.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{IngestResult, schedule::ScheduleNotes};
use crate::diff;
use model::{
    poll::{FetchedResponse, Payload, PollOutcome, WITH_RATE_CHANGES},
    rows::{Put, TokenSnapshot},
    supply::{Endpoint, Record, RecordKey, Resource, Timestamp, Tracked},
    wire::{LinearAllocation, LinearUnlocks, Maybe, UnlockEvent},
};

/// The rate changes of one instant.
struct SeparatedEvent {
    /// The key of the known event; `None` for an event of the response.
    key: Option<RecordKey>,
    /// The event without its cliffs and other linear unlocks.
    event: UnlockEvent,
}

/// Rate changes that only the known unlocks or only the response shows.
pub(super) struct RateChanges(Vec<SeparatedEvent>);

/// The known facts and a response without the rate changes that only one of them can show.
pub(super) struct Separated {
    pub(super) before: TokenSnapshot,
    pub(super) fetched: FetchedResponse,
    pub(super) rate_changes: RateChanges,
}

/// Separates rate changes. Returns `None` if the known unlocks and the response show the same parts of a schedule.
pub(super) fn separate(before: &TokenSnapshot, fetched: &FetchedResponse) -> Option<Separated> {
    let segments = fetched.segments.filter(|segments| segments.is_read)?;
    let PollOutcome::Fresh(response) = &fetched.outcome else { return None };
    let Payload::UnlockEvents(events) = &response.payload else { return None };
    let notes = ScheduleNotes::of(before);
    let is_read = before.feed(Endpoint::UnlockEvents).is_some_and(|feed| feed.baseline_at.is_some());
    if !is_read || notes.linear.shown_linear != Some(true) {
        return None;
    }
    let known: Vec<&UnlockEvent> = before.records.iter().filter_map(|tracked| tracked.record.unlock()).collect();
    match (notes.linear.has_rate_changes, segments.version == WITH_RATE_CHANGES) {
        (false, true) => {
            let of_response: Vec<&UnlockEvent> = events.iter().collect();
            let hidden = hidden_items(&of_response, &known);
            let (rest, taken): (Vec<_>, Vec<_>) = events.iter().map(|event| without(event, &hidden)).unzip();
            let mut fetched = fetched.clone();
            if let PollOutcome::Fresh(response) = &mut fetched.outcome {
                response.payload = Payload::UnlockEvents(rest.into_iter().flatten().collect());
            }
            let taken = taken.into_iter().flatten().map(|event| SeparatedEvent { key: None, event }).collect();
            Some(Separated { before: before.clone(), fetched, rate_changes: RateChanges(taken) })
        }
        (true, false) => {
            let of_response: Vec<&UnlockEvent> = events.iter().collect();
            let hidden = hidden_items(&known, &of_response);
            let (mut records, mut taken) = (Vec::with_capacity(before.records.len()), Vec::new());
            for tracked in &before.records {
                let Some(event) = tracked.record.unlock() else {
                    records.push(tracked.clone());
                    continue;
                };
                let (rest, out) = without(event, &hidden);
                if out.is_none() {
                    records.push(tracked.clone());
                } else if let Some(rest) = rest {
                    records.push(Tracked { key: tracked.key.clone(), record: Record::Unlock(Arc::new(rest)) });
                }
                taken.extend(out.map(|event| SeparatedEvent { key: Some(tracked.key.clone()), event }));
            }
            let before = TokenSnapshot { records, ..before.clone() };
            Some(Separated { before, fetched: fetched.clone(), rate_changes: RateChanges(taken) })
        }
        _ => None,
    }
}

/// The allocation and the begin of a linear unlock.
type ItemKey = (Option<String>, Timestamp);

fn name_of(item: &LinearAllocation) -> Option<String> {
    item.allocation_name.as_str().map(str::to_owned)
}

fn item_key(item: &LinearAllocation) -> Option<ItemKey> {
    Some((name_of(item), item.begin_date.copied()?))
}

/// Returns the rate changes of `events` that `others` do not show. The source does not define how exactly the end of one linear unlock and
/// the begin of the next one match, so they may be a day apart.
fn hidden_items(events: &[&UnlockEvent], others: &[&UnlockEvent]) -> HashSet<ItemKey> {
    fn items<'e>(events: &'e [&'e UnlockEvent]) -> impl Iterator<Item = &'e LinearAllocation> {
        events.iter().flat_map(|event| linears(event))
    }
    let day = |at: Timestamp| at.timestamp().div_euclid(86_400);
    // The earliest begin of the linear unlocks that end on a day.
    let mut ends: HashMap<(Option<String>, i64), Timestamp> = HashMap::new();
    for item in items(events) {
        if let (Some(begin), Some(end)) = (item.begin_date.copied(), item.end_date.copied()) {
            let earliest = ends.entry((name_of(item), day(end))).or_insert(begin);
            *earliest = begin.min(*earliest);
        }
    }
    let shown: HashSet<ItemKey> = items(others).filter_map(item_key).collect();
    let follows = |(name, begin): &ItemKey| {
        (-1..=1).any(|shift| ends.get(&(name.clone(), day(*begin) + shift)).is_some_and(|earliest| earliest < begin))
    };
    items(events).filter_map(item_key).filter(|key| follows(key) && !shown.contains(key)).collect()
}

/// Splits an event into the part without these rate changes, and the rate changes alone. Either is `None` if nothing remains.
fn without(event: &UnlockEvent, hidden: &HashSet<ItemKey>) -> (Option<UnlockEvent>, Option<UnlockEvent>) {
    let is_hidden = |item: &LinearAllocation| item_key(item).is_some_and(|key| hidden.contains(&key));
    let (out, rest): (Vec<_>, Vec<_>) = linears(event).iter().cloned().partition(is_hidden);
    if out.is_empty() {
        return (Some(event.clone()), None);
    }
    let with = |items: Vec<LinearAllocation>| {
        let mut event = event.clone();
        if let Some(linears) = event.linear_unlocks.get_mut() {
            set_items(linears, items);
        }
        event
    };
    let taken = UnlockEvent { cliff_unlocks: Maybe::Null, ..with(out) };
    let rest = match rest.is_empty() {
        true if event.cliff_unlocks.get().is_none() => None,
        true => Some(UnlockEvent { linear_unlocks: Maybe::Null, ..event.clone() }),
        false => Some(with(rest)),
    };
    (rest, Some(taken))
}

impl RateChanges {
    /// Adds the rate changes to the result of the comparison, without a change. `before` has the known facts with their rate changes.
    pub(super) fn restore(self, result: &mut IngestResult, before: &TokenSnapshot) {
        // A response that was not applied changes nothing, and neither does a held one, which writes no header.
        if result.update.header.is_none() {
            result.after = before.records_of(Resource::Unlock).cloned().collect();
            return;
        }
        for SeparatedEvent { key, event } in self.0 {
            let date = event.unlock_date.copied();
            let is_at = |tracked: &&mut Tracked| {
                tracked.record.unlock().is_some_and(|event| event.unlock_date.copied() == date && date.is_some())
            };
            let restored = match result.after.iter_mut().find(is_at) {
                Some(tracked) => {
                    let Some(rest) = tracked.record.unlock() else { continue };
                    tracked.record = Record::Unlock(Arc::new(joined(rest, &event)));
                    tracked.clone()
                }
                None => {
                    let key = free_key(key, &event, before, &result.after);
                    let tracked = Tracked { key, record: Record::Unlock(Arc::new(event)) };
                    result.after.push(tracked.clone());
                    tracked
                }
            };
            write(restored, result, before);
        }
    }
}

/// Writes a restored event, unless it is stored already.
fn write(restored: Tracked, result: &mut IngestResult, before: &TokenSnapshot) {
    let Tracked { key, record } = restored;
    result.update.removed.retain(|removed| *removed != key);
    if let Some(put) = result.update.put.iter_mut().find(|put| put.key == key) {
        put.record = record;
        return;
    }
    let is_stored = |tracked: &&Tracked| tracked.key == key && tracked.record == record;
    if before.records_of(Resource::Unlock).any(|tracked| is_stored(&tracked)) {
        return;
    }
    result.update.put.push(Put { key, record, is_new_version: true });
}

/// Returns the known key of an event, or a new one if another event has it.
fn free_key(known: Option<RecordKey>, event: &UnlockEvent, before: &TokenSnapshot, after: &[Tracked]) -> RecordKey {
    if let Some(key) = known.filter(|key| after.iter().all(|tracked| tracked.key != *key)) {
        return key;
    }
    let wanted = diff::event_key(event);
    let taken: HashSet<&str> = before.records_of(Resource::Unlock).chain(after).map(|tracked| tracked.key.as_str()).collect();
    if !taken.contains(wanted.as_str()) {
        return wanted;
    }
    let numbered = (2_u32..).map(|ordinal| format!("{wanted}#{ordinal}"));
    numbered.into_iter().find(|key| !taken.contains(key.as_str())).map_or(wanted, |key| key.as_str().into())
}

/// Returns an event with the linear unlocks of another one at the same instant.
fn joined(event: &UnlockEvent, rate_changes: &UnlockEvent) -> UnlockEvent {
    let mut joined = event.clone();
    let items = [linears(event), linears(rate_changes)].concat();
    match joined.linear_unlocks.get_mut() {
        Some(linears) => set_items(linears, items),
        None => joined.linear_unlocks = rate_changes.linear_unlocks.clone(),
    }
    joined
}

/// Replaces the items of linear unlocks, and the totals that are known.
fn set_items(linears: &mut LinearUnlocks, items: Vec<LinearAllocation>) {
    let sum = |pick: fn(&LinearAllocation) -> Option<f64>| items.iter().filter_map(pick).reduce(|a, b| a + b);
    let totals = [
        (&mut linears.linear_amount, sum(|item| item.linear_amount.copied())),
        (&mut linears.linear_value, sum(|item| item.linear_value.copied())),
        (&mut linears.daily_amount, sum(|item| item.daily_amount.copied())),
        (&mut linears.daily_value, sum(|item| item.daily_value.copied())),
    ];
    for (total, sum) in totals {
        if total.get().is_some() {
            *total = Maybe::or_null(sum);
        }
    }
    linears.allocation_breakdown = items.into();
}

fn linears(event: &UnlockEvent) -> &[LinearAllocation] {
    event.linear_unlocks.get().map_or(&[], |linears| linears.allocation_breakdown.items())
}

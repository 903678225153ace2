//! Rate changes: linear unlocks that begin when another one of the same allocation ends. Only one endpoint version shows all of them.
//!
//! A known rate change that another version omits was not removed, and one that the first response of the full version shows was not
//! added. [`separate`] takes both out of the comparison, and [`RateChanges::restore`] puts them back without a change. They are compared
//! with the next response that shows them, so that a correction of the other unlocks is reported at once, and theirs when it is shown.
//!
//! A linear unlock becomes a rate change when the one before it is prolonged up to its begin, and it stops being one when that ends
//! earlier. So a version can begin to omit a linear unlock that it showed before, and it can show one that it omitted.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::{IngestResult, schedule::ScheduleNotes};
use crate::diff::{self, same_total};
use model::{
    change::Change,
    phrase::changes::RATE_MAY_CONTINUE,
    poll::{FetchedResponse, LAST_WITH_SEGMENTS, Payload, PollOutcome, PollResponse, WITH_RATE_CHANGES},
    rows::{Put, TokenSnapshot},
    supply::{Endpoint, OmittedRate, Record, RecordKey, Resource, ShortenedUnlock, Timestamp, Tracked},
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

/// The result of a search for rate changes that only the known unlocks or only the response shows.
pub(super) enum Separation {
    Found(Box<Separated>),
    /// The known unlocks and the response show the same parts of a schedule.
    Same,
    /// The response shows no linear unlocks, or has a gap that may be any of the known ones.
    Unclear,
}

/// Separates rate changes.
pub(super) fn separate(before: &TokenSnapshot, fetched: &FetchedResponse) -> Separation {
    let Some(version) = linear_version(fetched) else { return Separation::Unclear };
    let shows_all = version == WITH_RATE_CHANGES;
    let PollOutcome::Fresh(response) = &fetched.outcome else { return Separation::Unclear };
    let Payload::UnlockEvents(events) = &response.payload else { return Separation::Unclear };
    let notes = ScheduleNotes::of(before);
    let is_read = before.feed(Endpoint::UnlockEvents).is_some_and(|feed| feed.baseline_at.is_some());
    if !is_read || notes.linear.shown_linear != Some(true) {
        return Separation::Same;
    }
    let known_events: Vec<&UnlockEvent> = before.records.iter().filter_map(|tracked| tracked.record.unlock()).collect();
    let given_events: Vec<&UnlockEvent> = events.iter().collect();
    let (known, given) = (ShownSchedule::of(&known_events), ShownSchedule::of(&given_events));
    // A row that lost its name or its begin may be any of the known ones, which fill its gaps.
    if given.has_more_gaps_than(&known) {
        return Separation::Unclear;
    }
    let names = renamed(&known, &given);
    let knows_all = notes.linear.has_rate_changes;
    let omitted = match shows_all {
        true => HashSet::new(),
        false => omitted((&known, knows_all), &given, &names, &notes.linear.omitted_rates),
    };
    let found = match knows_all {
        true => HashSet::new(),
        false => found(&known, (&given, shows_all), &notes.linear.shortened),
    };
    if omitted.is_empty() && found.is_empty() {
        return Separation::Same;
    }
    let mut taken = Vec::new();
    let mut rest = TokenSnapshot { records: Vec::with_capacity(before.records.len()), ..before.clone() };
    for tracked in &before.records {
        let Some(event) = tracked.record.unlock() else {
            rest.records.push(tracked.clone());
            continue;
        };
        let (remaining, out) = without(event, &omitted);
        if out.is_none() {
            rest.records.push(tracked.clone());
        } else if let Some(remaining) = remaining {
            rest.records.push(Tracked { key: tracked.key.clone(), record: Record::Unlock(Arc::new(remaining)) });
        }
        taken.extend(out.map(|event| SeparatedEvent { key: Some(tracked.key.clone()), event: with_names(event, &names) }));
    }
    let mut fetched = fetched.clone();
    if !found.is_empty()
        && let PollOutcome::Fresh(response) = &mut fetched.outcome
    {
        let (remaining, out): (Vec<_>, Vec<_>) = events.iter().map(|event| without(event, &found)).unzip();
        response.payload = Payload::UnlockEvents(remaining.into_iter().flatten().collect());
        taken.extend(out.into_iter().flatten().map(|event| SeparatedEvent { key: None, event }));
    }
    Separation::Found(Box::new(Separated { before: rest, fetched, rate_changes: RateChanges(taken) }))
}

/// Returns the version of the linear unlocks in a response. `None` if it shows none, or if the version is unknown.
pub(super) fn linear_version(fetched: &FetchedResponse) -> Option<u8> {
    let of_segments = fetched.segments.filter(|segments| segments.is_read).map(|segments| segments.version);
    of_segments.or(fetched.version.filter(|version| *version <= LAST_WITH_SEGMENTS))
}

/// The allocation and the begin of a linear unlock.
type ItemKey = (Option<String>, Timestamp);

/// The instant of an event, and what is known of its linear unlock without a name or a begin. Both are `None` if the event has only a
/// total.
type LinearGap = (Option<Timestamp>, Option<String>, Option<Timestamp>);

fn name_of(item: &LinearAllocation) -> Option<String> {
    item.allocation_name.as_str().map(str::to_owned)
}

fn item_key(item: &LinearAllocation) -> Option<ItemKey> {
    Some((name_of(item), item.begin_date.copied()?))
}

/// The linear unlocks of a schedule, and the total of each allocation.
struct ShownSchedule {
    /// The begin and the end of each linear unlock.
    spans: HashMap<Option<String>, Vec<(Timestamp, Timestamp)>>,
    keys: HashSet<ItemKey>,
    /// The number of linear unlocks with each gap.
    gaps: HashMap<LinearGap, usize>,
    /// The instants of events, and those of events with cliffs.
    instants: HashSet<Timestamp>,
    cliff_instants: HashSet<Timestamp>,
    /// Tokens, cliffs included. `None` if an amount is unknown.
    totals: HashMap<Option<String>, Option<f64>>,
}

impl ShownSchedule {
    fn of(events: &[&UnlockEvent]) -> Self {
        let mut schedule = Self {
            spans: HashMap::new(),
            keys: HashSet::new(),
            gaps: HashMap::new(),
            instants: events.iter().filter_map(|event| event.unlock_date.copied()).collect(),
            cliff_instants: HashSet::new(),
            totals: HashMap::new(),
        };
        for event in events {
            let date = event.unlock_date.copied();
            if event.linear_unlocks.get().is_some_and(|linears| linears.allocation_breakdown.items().is_empty()) {
                *schedule.gaps.entry((date, None, None)).or_default() += 1;
            }
            for item in linears(event) {
                schedule.add_amount(name_of(item), item.linear_amount.copied());
                schedule.keys.extend(item_key(item));
                if item_key(item).is_none_or(|(name, _)| name.is_none()) {
                    *schedule.gaps.entry((date, name_of(item), item.begin_date.copied())).or_default() += 1;
                }
                if let (Some(begin), Some(end)) = (item.begin_date.copied(), item.end_date.copied()) {
                    schedule.spans.entry(name_of(item)).or_default().push((begin, end));
                }
            }
            for item in event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items()) {
                schedule.add_amount(item.allocation_name.as_str().map(str::to_owned), item.cliff_amount.copied());
                schedule.cliff_instants.extend(date);
            }
        }
        schedule
    }

    fn add_amount(&mut self, name: Option<String>, amount: Option<f64>) {
        let total = self.totals.entry(name).or_insert(Some(0.0));
        *total = total.zip(amount).map(|(total, amount)| total + amount);
    }

    fn has_more_gaps_than(&self, known: &Self) -> bool {
        self.gaps.iter().any(|(gap, count)| known.gaps.get(gap).is_none_or(|known| known < count))
    }

    fn spans(&self, name: &Option<String>) -> &[(Timestamp, Timestamp)] {
        self.spans.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a linear unlock of the allocation ends where this one begins. The source does not define how exactly the two
    /// dates match, so they may be a day apart.
    fn has_end_at(&self, key: &ItemKey) -> bool {
        self.ends_before(key).next().is_some()
    }

    /// Returns the begins of the linear unlocks that end where a rate change begins.
    fn ends_before(&self, (name, begin): &ItemKey) -> impl Iterator<Item = Timestamp> {
        let spans = self.spans(name).iter();
        spans.filter(|(earlier, end)| earlier < begin && day(*end).abs_diff(day(*begin)) <= 1).map(|(earlier, _)| *earlier)
    }

    /// Returns whether the event of a rate change has something else, so that versions which omit events with nothing but a rate change
    /// show it.
    fn has_more_at(&self, (name, begin): &ItemKey) -> bool {
        let is_other = |key: &&ItemKey| key.1 == *begin && key.0 != *name && !self.has_end_at(key);
        self.cliff_instants.contains(begin) || self.keys.iter().any(|key| is_other(&key))
    }

    fn begins_before(&self, (name, begin): &ItemKey) -> bool {
        self.spans(name).iter().any(|(earlier, _)| earlier < begin)
    }

    /// Returns whether a linear unlock that ends at `end` lies within one of these.
    fn contains(&self, (name, begin): &ItemKey, end: Option<Timestamp>) -> bool {
        let is_within =
            |(first, last): &(Timestamp, Timestamp)| first < begin && end.is_some_and(|end| day(end) <= day(*last) + 1);
        self.spans(name).iter().any(is_within)
    }

    fn end_of(&self, (name, begin): &ItemKey) -> Option<Timestamp> {
        self.spans(name).iter().find(|(other, _)| other == begin).map(|(_, end)| *end)
    }
}

fn day(at: Timestamp) -> i64 {
    at.timestamp().div_euclid(86_400)
}

/// Returns whether the allocation has the same total in both, so that its tokens moved and none are hidden.
fn is_conserved(known: &ShownSchedule, given: &ShownSchedule, name: &Option<String>) -> bool {
    let total = |schedule: &ShownSchedule| schedule.totals.get(name).copied().flatten();
    total(known).is_some() && same_total(total(known), total(given))
}

/// The linear unlocks of an allocation that end earlier.
pub(super) struct Shortened {
    pub(super) unlock: ShortenedUnlock,
    begins: Vec<Timestamp>,
}

/// Returns the linear unlocks that end earlier in a response without changes of a rate. They may continue at another rate.
pub(super) fn shortened(before: &TokenSnapshot, fetched: &FetchedResponse) -> Vec<Shortened> {
    let PollOutcome::Fresh(PollResponse { payload: Payload::UnlockEvents(events), .. }) = &fetched.outcome else {
        return Vec::new();
    };
    if linear_version(fetched).is_none_or(|version| version == WITH_RATE_CHANGES) {
        return Vec::new();
    }
    let known_events: Vec<&UnlockEvent> = before.records.iter().filter_map(|tracked| tracked.record.unlock()).collect();
    let (known, given) = (ShownSchedule::of(&known_events), ShownSchedule::of(&events.iter().collect::<Vec<_>>()));
    let mut shortened = Vec::new();
    for (name, spans) in &known.spans {
        let Some(allocation) = name.clone().filter(|_| !is_conserved(&known, &given, name)) else { continue };
        let is_shorter = |(begin, end): &&(Timestamp, Timestamp)| {
            given.end_of(&(name.clone(), *begin)).is_some_and(|now| day(now) + 1 < day(*end))
        };
        let spans: Vec<_> = spans.iter().filter(is_shorter).collect();
        let Some(end) = spans.iter().map(|(_, end)| *end).max() else { continue };
        let begins = spans.iter().map(|(begin, _)| *begin).collect();
        shortened.push(Shortened { unlock: ShortenedUnlock { allocation, end }, begins });
    }
    shortened.sort_by(|one, other| one.unlock.allocation.cmp(&other.unlock.allocation));
    shortened
}

/// States in the summaries of changes that a linear unlock which ends earlier may continue. The change of the event is about it, or else
/// the changes of the allocation that are about several events.
pub(super) fn note_shortened(changes: &mut [Change], before: &TokenSnapshot, shortened: &[Shortened]) {
    let mut noted: BTreeSet<usize> = BTreeSet::new();
    for Shortened { unlock, begins } in shortened {
        let is_it = |item: &LinearAllocation| {
            item.allocation_name.as_str() == Some(&unlock.allocation)
                && item.begin_date.get().is_some_and(|begin| begins.contains(begin))
        };
        let has_it = |tracked: &&Tracked| tracked.record.unlock().is_some_and(|event| linears(event).iter().any(is_it));
        let keys: HashSet<&RecordKey> = before.records.iter().filter(has_it).map(|tracked| &tracked.key).collect();
        let of = |is_about: &dyn Fn(Option<&RecordKey>) -> bool| -> Vec<usize> {
            let is_of = |change: &Change| change.allocations.iter().any(|part| part.name == unlock.allocation);
            let those = changes.iter().enumerate().filter(|(_, change)| is_of(change) && is_about(change.key.as_ref()));
            those.map(|(index, _)| index).collect()
        };
        let own = of(&|key| key.is_some_and(|key| keys.contains(key)));
        noted.extend(if own.is_empty() { of(&|key| key.is_none()) } else { own });
    }
    for (index, change) in changes.iter_mut().enumerate() {
        if noted.contains(&index) {
            change.summary.push_str(RATE_MAY_CONTINUE);
        }
    }
}

/// Returns the new name of each allocation that the response shows under another one: a new allocation with one of its linear unlocks.
fn renamed(known: &ShownSchedule, given: &ShownSchedule) -> HashMap<Option<String>, Option<String>> {
    let new_name = |(name, spans): (&Option<String>, &Vec<(Timestamp, Timestamp)>)| {
        let is_it =
            |(_, others): &(&Option<String>, &Vec<(Timestamp, Timestamp)>)| others.iter().any(|span| spans.contains(span));
        let new = given.spans.iter().filter(|(other, _)| !known.totals.contains_key(*other));
        let (other, _) = new.filter(is_it).min_by_key(|(other, _)| *other)?;
        Some((name.clone(), other.clone()))
    };
    known.spans.iter().filter(|(name, _)| !given.totals.contains_key(*name)).filter_map(new_name).collect()
}

/// Returns the known rate changes that the response may omit. A rate change needs a linear unlock before it, so none is omitted from a
/// response that shows no earlier one of the allocation. A version without all rate changes hides no linear unlock that it showed before,
/// unless the unlock now begins where another one ends, its event had something else that is not listed any more, or the unlock before it
/// ends at another time.
fn omitted(
    (known, knows_all): (&ShownSchedule, bool),
    given: &ShownSchedule,
    names: &HashMap<Option<String>, Option<String>>,
    labels: &[OmittedRate],
) -> HashSet<ItemKey> {
    let is_labeled =
        |(name, begin): &ItemKey| labels.iter().any(|label| Some(&label.allocation) == name.as_ref() && label.begin == *begin);
    let may_omit = |key: &ItemKey, given_key: &ItemKey| match knows_all {
        true => given.has_end_at(given_key) || known.has_end_at(key),
        false if given.has_end_at(given_key) => {
            let is_alone_now = known.has_more_at(key) && !given.instants.contains(&key.1);
            !known.has_end_at(key) || is_alone_now
        }
        // It may have moved with the end of the unlock before it.
        false => known.ends_before(key).any(|first| given.end_of(&(given_key.0.clone(), first)).is_some()),
    };
    let is_omitted = |key: &&ItemKey| {
        let given_key = (names.get(&key.0).unwrap_or(&key.0).clone(), key.1);
        !given.keys.contains(&given_key)
            && given.begins_before(&given_key)
            && (is_labeled(key) || may_omit(key, &given_key))
            && !is_conserved(known, given, &key.0)
    };
    known.keys.iter().filter(is_omitted).cloned().collect()
}

/// Returns the rate changes of the response that the earlier ones may have omitted. Excluded are parts of a known linear unlock, and the
/// rest of an unlock that was reported to end earlier. A version without all rate changes begins to show an omitted one when the unlock
/// before it ends earlier, or with the first other unlock of its event. Everything else that it shows is new.
fn found(known: &ShownSchedule, (given, shows_all): (&ShownSchedule, bool), shortened: &[ShortenedUnlock]) -> HashSet<ItemKey> {
    let is_rest =
        |(name, begin): &ItemKey| shortened.iter().any(|unlock| Some(&unlock.allocation) == name.as_ref() && *begin < unlock.end);
    let was_omitted = |key: &ItemKey| match shows_all {
        true => given.has_end_at(key) || known.has_end_at(key),
        false => {
            let was_alone = !known.instants.contains(&key.1) && given.has_more_at(key);
            known.has_end_at(key) && (!given.has_end_at(key) || was_alone)
        }
    };
    let is_found = |key: &&ItemKey| {
        !known.keys.contains(*key)
            && !is_rest(key)
            && was_omitted(key)
            && !known.contains(key, given.end_of(key))
            && !is_conserved(known, given, &key.0)
    };
    given.keys.iter().filter(is_found).cloned().collect()
}

/// Returns an event with the new names of its allocations.
fn with_names(mut event: UnlockEvent, names: &HashMap<Option<String>, Option<String>>) -> UnlockEvent {
    let items = event.linear_unlocks.get_mut().and_then(|linears| linears.allocation_breakdown.get_mut());
    for item in items.into_iter().flatten() {
        if let Some(Some(name)) = names.get(&name_of(item)) {
            item.allocation_name = name.clone().into();
        }
    }
    event
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
    /// Returns the labels of the known rate changes that the response omits.
    pub(super) fn omitted(&self) -> Vec<OmittedRate> {
        let known = self.0.iter().filter(|separated| separated.key.is_some());
        let keys = known.flat_map(|separated| linears(&separated.event)).filter_map(item_key);
        keys.filter_map(|(name, begin)| Some(OmittedRate { allocation: name?, begin })).collect()
    }

    /// Adds the rate changes to the result of the comparison, without a change. `before` has the known facts with their rate changes.
    pub(super) fn restore(self, result: &mut IngestResult, before: &TokenSnapshot) {
        // A response that was not applied changes nothing, and neither does a held one, which writes no header.
        if result.update.header.is_none() {
            result.after = before.records_of(Resource::Unlock).cloned().collect();
            return;
        }
        for SeparatedEvent { key, event } in self.0 {
            let date = event.unlock_date.copied();
            let is_at = |tracked: &Tracked| {
                tracked.record.unlock().is_some_and(|event| event.unlock_date.copied() == date && date.is_some())
            };
            let is_own = |tracked: &Tracked| key.as_ref() == Some(&tracked.key) && is_at(tracked);
            let position = result.after.iter().position(is_own).or_else(|| result.after.iter().position(is_at));
            let restored = match position.and_then(|position| result.after.get_mut(position)) {
                Some(tracked) => {
                    let Some(rest) = tracked.record.unlock() else { continue };
                    tracked.record = Record::Unlock(Arc::new(joined(rest, &event)));
                    let joined = tracked.clone();
                    // The former event of the rate change would be another copy of it.
                    let is_left = |key: &RecordKey| {
                        result.after.iter().all(|tracked| tracked.key != *key) && !result.update.removed.contains(key)
                    };
                    result.update.removed.extend(key.filter(is_left));
                    joined
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

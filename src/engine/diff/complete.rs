//! Completes a response with the last known facts, so that the diff compares facts with facts.
//!
//! Absent, null, unreadable, and zero are four different things. If a response leaves a part of an event out, or the part cannot be
//! read, the last known part stays, a parse warning is counted, and no change is reported. A later value is compared with the last known
//! one. [`complete`] runs before the diff; its result has no gap where a fact is known.
//!
//! An event is the known one at the same instant. An event that lost its date is the known one with the same parts that the response
//! does not list otherwise. An event that cannot be identified stays as it was known.
//!
//! A version that shows cliffs and linear unlocks writes null for the form that an event does not have. So an event that has one form, and
//! had the other one before, may have a gap, or it may have lost that form. The known form stays until enough responses in a row omit it.
//!
//! Not every missing part is a gap. A version without linear segments leaves all of them out, and the diff keeps those. A cliff or a
//! segment whose amount appears elsewhere in the response, at another date, in the other form, or for another recipient, has changed.

mod gaps;
mod learned;
mod listed_elsewhere;
mod parts;

use std::sync::Arc;
use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
};

use self::{
    gaps::{Arrivals, EventGaps},
    learned::{has_content, learned},
    listed_elsewhere::{ConservedAmounts, abandoned_allocations},
    parts::{Part, without_linear},
};
use super::{
    index::{List, New, NewRow, Old, OldRow, RowOf},
    tolerances::same_total,
    tranche::{Events, TrancheForm},
};
use crate::removal::{RemovalProof, is_mass_omission};
use model::{
    phrase as format,
    supply::{Precision, Record, RecordKey, Timestamp, Tracked},
    wire::{CliffAllocation, CliffUnlocks, LinearAllocation, Maybe, ParseWarning, UnlockEvent},
};

/// A response with its gaps filled.
#[derive(Clone, Debug)]
pub struct CompletedResponse<'a> {
    /// The events, each with the last known facts in its gaps.
    pub events: Cow<'a, [UnlockEvent]>,
    /// A warning for each gap, with the fact that fills it.
    pub parse_warnings: Vec<ParseWarning>,
    /// Whether the response contains an event that may be any of the missing ones, so that it proves no removal.
    pub proves_no_absence: bool,
    /// The known events of which the response omits a form that may have been removed.
    pub omissions: Vec<FormOmission>,
    /// Events of which only the total or the date was known, with the parts that the response shows. They must be written, but make no
    /// change.
    pub learned: Vec<Tracked>,
}

/// A known event of which a response omits a form, cliffs or linear unlocks.
#[derive(Clone, Debug, PartialEq)]
pub struct FormOmission {
    pub key: RecordKey,
    /// Whether the form counts as removed. If not, the response is completed with it.
    pub is_accepted: bool,
}

/// The parts of a schedule that a response shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseView<'a> {
    /// Whether the endpoint version shows linear segments. `None` if unknown.
    pub shows_linear: Option<bool>,
    /// Whether some rows could not be read. A missing event may be one of them.
    pub has_lost_rows: bool,
    /// Instants that are certain to have no cliffs. A row at such an instant that omits its cliffs has no gap.
    pub without_cliffs: &'a [Timestamp],
    /// Whether one endpoint version shows cliffs and linear unlocks. Only such a version writes null for the cliffs of an event without
    /// any.
    pub is_one_version: bool,
    /// The proof that a form which an event omits was removed. `None` if no number of responses proves it.
    pub proof: Option<&'a RemovalProof<'a>>,
}

/// Completes a response about a token's schedule with the known facts.
///
/// `before` is the snapshot; records of other resources in it are ignored.
#[must_use]
pub fn complete<'a>(before: &[Tracked], after: &'a [UnlockEvent], view: &ResponseView<'_>) -> CompletedResponse<'a> {
    let (keys, known): (Vec<&RecordKey>, Vec<&UnlockEvent>) = before
        .iter()
        .filter_map(|tracked| match &tracked.record {
            Record::Unlock(event) => Some((&tracked.key, &**event)),
            _ => None,
        })
        .unzip();
    if !view.has_lost_rows && is_whole(&known, after, view.shows_linear != Some(false)) {
        let events = Cow::Borrowed(after);
        let (parse_warnings, omissions, learned) = (Vec::new(), Vec::new(), Vec::new());
        return CompletedResponse { events, parse_warnings, proves_no_absence: false, omissions, learned };
    }
    let covers_linear = view.shows_linear != Some(false) && after.iter().any(|event| event.linear_unlocks.get().is_some());
    let completion = Completion {
        covers_linear,
        conserved: ConservedAmounts::of(&known, after, covers_linear),
        listed: after.iter().flat_map(parts).map(|part| part.name.to_owned()).collect(),
        known: known.into(),
        keys: keys.into(),
        view: *view,
    };
    let CompletionOutcome { events, warnings, proves_no_absence, omissions, learned } = completion.complete_events(after);
    let keys = &completion.keys;
    let omission = |(row, is_accepted): (OldRow, bool)| FormOmission { key: keys[row].clone(), is_accepted };
    let omissions = omissions.into_iter().map(omission).collect();
    let learned = learned
        .into_iter()
        .map(|(row, event)| Tracked { key: keys[row].clone(), record: Record::Unlock(Arc::new(event)) })
        .collect();
    let events = if events == after { Cow::Borrowed(after) } else { Cow::Owned(events) };
    CompletedResponse { events, parse_warnings: warnings, proves_no_absence, omissions, learned }
}

/// Returns whether a response has no gap at all, which is the usual case and needs no copy: each event has every fact known of its
/// instant, and an event at another date has all its amounts.
fn is_whole(known: &[&UnlockEvent], after: &[UnlockEvent], may_cover_linear: bool) -> bool {
    let at: HashMap<Timestamp, &UnlockEvent> =
        known.iter().filter_map(|event| Some((event.unlock_date.copied()?, *event))).collect();
    let has_dates = at.len() == known.len();
    has_dates
        && after.iter().all(|event| {
            let Some(date) = event.unlock_date.copied() else { return false };
            match at.get(&date).map(|known| if may_cover_linear { Cow::Borrowed(*known) } else { without_linear(known) }) {
                Some(known) => {
                    event.has_all_of(&known) && has_all_parts_of(event, &known) && has_parts(&known) == has_parts(event)
                }
                None => has_content(event) && parts(event).all(|part| !part.name.is_empty() && part.amount.is_some()),
            }
        })
}

/// Returns whether an event has cliffs, and whether it has linear segments.
fn has_parts(event: &UnlockEvent) -> (bool, bool) {
    (!cliffs(event).is_empty(), !linears(event).is_empty())
}

fn has_all_parts_of(event: &UnlockEvent, known: &UnlockEvent) -> bool {
    fn rows_match<P: Part>(rows: &[P], known: &[P], has_all_of: fn(&P, &P) -> bool) -> bool {
        rows.len() >= known.len()
            && rows.iter().all(|row| row.name().is_some() && row.amount().is_some())
            && rows.iter().zip(known).all(|(row, known)| row.name() == known.name() && has_all_of(row, known))
    }
    let has_cliffs = match (event.cliff_unlocks.get(), known.cliff_unlocks.get()) {
        (Some(is), Some(was)) => is.has_all_of(was) && rows_match(cliffs(event), cliffs(known), CliffAllocation::has_all_of),
        _ => true,
    };
    let has_linears = match (event.linear_unlocks.get(), known.linear_unlocks.get()) {
        (Some(is), Some(was)) => is.has_all_of(was) && rows_match(linears(event), linears(known), LinearAllocation::has_all_of),
        _ => true,
    };
    has_cliffs && has_linears
}

/// A cliff or a linear segment of an event.
#[derive(Clone, Copy)]
struct EventPart<'a> {
    form: TrancheForm,
    /// The allocation; empty if the source does not name it.
    name: &'a str,
    amount: Option<f64>,
}

/// The facts by which a response is completed.
struct Completion<'k> {
    known: Events<'k, Old>,
    keys: List<RowOf<Old>, &'k RecordKey>,
    view: ResponseView<'k>,
    covers_linear: bool,
    conserved: ConservedAmounts,
    /// The allocations that the response names.
    listed: HashSet<String>,
}

/// The result of completing a response.
struct CompletionOutcome {
    events: Vec<UnlockEvent>,
    warnings: Vec<ParseWarning>,
    proves_no_absence: bool,
    /// The events that omit a form, each with whether the form counts as removed.
    omissions: Vec<(OldRow, bool)>,
    /// Known events with parts that were unknown before.
    learned: Vec<(OldRow, UnlockEvent)>,
}

/// The known event for each event of the response.
struct Matches {
    known_of: List<RowOf<New>, Option<OldRow>>,
    /// Known events without an event in the response.
    missing: BTreeSet<OldRow>,
}

impl Matches {
    fn add(&mut self, row: NewRow, known: OldRow) {
        self.known_of[row] = Some(known);
        self.missing.remove(&known);
    }
}

/// The outcome of placing undated events.
struct Placement {
    matches: Matches,
    warnings: Vec<ParseWarning>,
    /// Whether one of the events may be another one that is missing.
    is_ambiguous: bool,
}

type NewEvents = List<RowOf<New>, UnlockEvent>;

impl Completion<'_> {
    /// Matches the events of a response, `after`, to the known events, and adds from those the dates, parts, and amounts that the
    /// response omits. Leaves out events that cannot be identified. Each addition and omission is a parse warning.
    fn complete_events(&self, after: &[UnlockEvent]) -> CompletionOutcome {
        let mut events: NewEvents = after.to_vec().into();
        let mut warnings: Vec<ParseWarning> = events.iter_mut().filter_map(date_by_parts).collect();
        let by_instant = self.match_by_instant(&events);
        let placement = self.place_undated(&mut events, by_instant);
        warnings.extend(placement.warnings);
        let matches = placement.matches;

        let abandoned = abandoned_allocations(&self.known, &events, &matches.missing, &self.listed);
        let mut arrivals = Arrivals::of(&self.known, after);
        // If a whole event is missing, a part at another date is more likely its part than one of another event.
        for part in matches.missing.iter().flat_map(|row| parts(self.known[*row])) {
            arrivals.take(part.form, part.name, part.amount);
        }
        let (mut learned_events, mut omissions) = (Vec::new(), Vec::new());
        let is_mass_omission = self.omits_form_of_most(&events, &matches);
        for row in events.indices() {
            let event = &mut events[row];
            match matches.known_of[row] {
                Some(k) => {
                    let known = self.known[k];
                    let omits_form = self.omits_form(event, known);
                    let is_proven = |proof: &RemovalProof<'_>| proof.is_form_proven(self.keys[k], is_mass_omission);
                    let accepts_omission = omits_form && self.view.proof.is_some_and(is_proven);
                    let gaps = EventGaps { completion: self, abandoned: &abandoned, arrivals: &mut arrivals, accepts_omission };
                    let gaps = gaps.fill(event, known);
                    if omits_form && self.view.proof.is_some() && (accepts_omission || !gaps.is_empty()) {
                        omissions.push((k, accepts_omission));
                    }
                    warnings.extend(gaps);
                    learned_events.extend(learned(known, event).map(|known| (k, known)));
                }
                None => warnings.extend(self.complete_moved(event, &matches.missing)),
            }
        }
        let is_unlisted_missing = self.restore_unlisted(&mut events, &matches);
        let (events, left_out) = identified(events, &matches);
        let is_one_missing = !left_out.is_empty() && !matches.missing.is_empty();
        warnings.extend(left_out);
        CompletionOutcome {
            events,
            warnings,
            proves_no_absence: placement.is_ambiguous || is_unlisted_missing || is_one_missing,
            omissions,
            learned: learned_events,
        }
    }

    /// Returns whether an event has one form, cliffs or linear unlocks, and omits the other one that was known.
    fn omits_form(&self, event: &UnlockEvent, known: &UnlockEvent) -> bool {
        let (was, is) = (has_parts(known), has_parts(event));
        let omits_cliffs = self.view.is_one_version && was.0 && event.cliff_unlocks.get().is_none() && is.1;
        let omits_linear = was.1 && event.linear_unlocks.get().is_none() && is.0 && self.covers_linear;
        omits_cliffs || omits_linear
    }

    /// Returns whether a response omits a form of most events that had both.
    fn omits_form_of_most(&self, events: &NewEvents, matches: &Matches) -> bool {
        let known = matches.known_of.indexed().filter_map(|(row, k)| Some((&events[row], self.known[(*k)?])));
        let had_both: Vec<_> = known.filter(|(_, known)| has_parts(known) == (true, true)).collect();
        let omitting = had_both.iter().filter(|(event, known)| self.omits_form(event, known)).count();
        is_mass_omission(omitting, had_both.len())
    }

    /// Matches events of one instant. If there are several, those with the most common allocations match.
    fn match_by_instant(&self, events: &NewEvents) -> Matches {
        let mut at: HashMap<Timestamp, Vec<OldRow>> = HashMap::new();
        for (k, event) in self.known.indexed() {
            if let Some(date) = event.unlock_date.copied() {
                at.entry(date).or_default().push(k);
            }
        }
        let mut pairs: Vec<(std::cmp::Reverse<usize>, NewRow, OldRow)> = Vec::new();
        for (row, event) in events.indexed() {
            let Some(same) = event.unlock_date.copied().and_then(|date| at.get(&date)) else { continue };
            pairs.extend(same.iter().map(|k| (std::cmp::Reverse(common_parts(event, self.known[*k])), row, *k)));
        }
        pairs.sort_unstable();
        let mut matches = Matches { known_of: List::filled(None, events.len()), missing: self.known.indices().collect() };
        for (_, row, k) in pairs {
            if matches.known_of[row].is_none() && matches.missing.contains(&k) {
                matches.add(row, k);
            }
        }
        matches
    }

    /// Places events that lost their date: each is the missing event with the same parts. Otherwise the event stays as the missing one
    /// with the most common allocations was known. An event whose date is to be determined lost no date.
    fn place_undated(&self, events: &mut NewEvents, mut matches: Matches) -> Placement {
        let mut order: Vec<OldRow> = self.known.indices().collect();
        order.sort_by_key(|k| self.known[*k].unlock_date.copied());
        let dates: List<RowOf<New>, Option<Timestamp>> = events.iter().map(|event| event.unlock_date.copied()).collect();
        let (mut warnings, mut placed) = (Vec::new(), Vec::new());
        // Certain matches come first, so that no guess takes their place.
        for is_certain in [true, false] {
            for row in events.indices() {
                let event = &mut events[row];
                if event.unlock_date.get().is_some() || matches.known_of[row].is_some() || is_to_be_determined(event) {
                    continue;
                }
                let candidates = order.iter().copied().filter(|k| matches.missing.contains(k));
                let found = if is_certain {
                    self.same_parts(event, candidates, neighbor_dates(&dates, row))
                } else {
                    let common = |k: OldRow| common_parts(event, self.known[k]);
                    candidates.filter(|k| common(*k) > 0).max_by_key(|k| (common(*k), std::cmp::Reverse(*k)))
                };
                let Some(k) = found else { continue };
                matches.add(row, k);
                let known = self.known[k];
                if known.unlock_date.get().is_none() {
                    continue;
                }
                if is_certain {
                    placed.push(k);
                    event.unlock_date = known.unlock_date;
                    warnings.push(warning(known, "unlockDate", "missing; the last known date stays"));
                } else {
                    *event = known.clone();
                    warnings.push(warning(known, "unlockDate", "missing, and its parts differ; the event stays as it was known"));
                }
            }
        }
        // If another missing event has the same parts, the match may be wrong, so no removal is proven.
        let is_alike = |k: &OldRow| placed.iter().any(|placed| agrees(self.known[*placed], self.known[*k]));
        let is_ambiguous = matches.missing.iter().any(is_alike);
        Placement { matches, warnings, is_ambiguous }
    }

    /// Returns the candidate with the same parts as an undated event. Responses are sorted by date, so that one between the dates of the
    /// neighbors is preferred.
    fn same_parts(
        &self,
        event: &UnlockEvent,
        candidates: impl Iterator<Item = OldRow>,
        (before, after): (Option<Timestamp>, Option<Timestamp>),
    ) -> Option<OldRow> {
        let alike: Vec<OldRow> = candidates.filter(|k| agrees(event, self.known[*k])).collect();
        let is_between = |k: &OldRow| {
            let date = self.known[*k].unlock_date.copied();
            before.is_none_or(|before| date > Some(before)) && after.is_none_or(|after| date < Some(after))
        };
        alike.iter().copied().find(is_between).or(alike.first().copied())
    }

    /// Completes an event at a new date, which may be a moved one: parts without amounts get the amounts of the nearest missing event with
    /// the same allocation.
    fn complete_moved(&self, event: &mut UnlockEvent, missing: &BTreeSet<OldRow>) -> Vec<ParseWarning> {
        let Some(date) = event.unlock_date.copied() else { return Vec::new() };
        let mut missing: Vec<&UnlockEvent> = missing.iter().map(|row| self.known[*row]).collect();
        missing.sort_by_key(|known| known.unlock_date.copied().map_or(i64::MAX, |at| (at - date).num_seconds().abs()));
        let mut paths = Vec::new();
        if let Maybe::Value(cliffs) = &mut event.cliff_unlocks {
            let total = cliff_total(cliffs);
            let lists = || missing.iter().filter_map(|known| known.cliff_unlocks.get());
            if cliffs.allocation_breakdown.get().is_none()
                && let Some(was) = lists().find(|was| total.is_some() && same_total(total, cliff_total(was)))
            {
                cliffs.allocation_breakdown = was.allocation_breakdown.clone();
                paths.push("cliffUnlocks.allocationBreakdown".to_owned());
            }
            let known: Vec<_> = lists().flat_map(|was| was.allocation_breakdown.items()).collect();
            let filled = fill_amounts(&mut cliffs.allocation_breakdown, &known);
            paths.extend(filled.into_iter().map(|place| format!("cliffUnlocks.allocationBreakdown{place}.cliffAmount")));
        }
        if let Maybe::Value(linears) = &mut event.linear_unlocks {
            let lists = missing.iter().filter_map(|known| known.linear_unlocks.get());
            let known: Vec<_> = lists.flat_map(|was| was.allocation_breakdown.items()).collect();
            let filled = fill_amounts(&mut linears.allocation_breakdown, &known);
            paths.extend(filled.into_iter().map(|place| format!("linearUnlocks.allocationBreakdown{place}.linearAmount")));
        }
        paths.into_iter().map(|path| warning(event, &path, "missing; the last known one stays")).collect()
    }

    /// If a known part that filled a gap belongs to an allocation that the response never names, restores all known parts of this
    /// allocation: until a later response closes the gap, the allocation counts as present. Returns whether an event with a part of such
    /// an allocation is missing.
    fn restore_unlisted(&self, events: &mut NewEvents, matches: &Matches) -> bool {
        let own = |event: &UnlockEvent| -> HashSet<String> { parts(event).map(|part| part.name.to_owned()).collect() };
        let unlisted: HashSet<String> = events.iter().flat_map(own).filter(|name| !self.listed.contains(name)).collect();
        if unlisted.is_empty() {
            return false;
        }
        for row in events.indices() {
            let Some(known) = matches.known_of[row].map(|k| self.known[k]) else { continue };
            let event = &mut events[row];
            if let (Some(cliffs), Some(was)) = (event.cliff_unlocks.get_mut(), known.cliff_unlocks.get())
                && let Some(total) = restore_parts(&mut cliffs.allocation_breakdown, was.allocation_breakdown.items(), &unlisted)
            {
                cliffs.cliff_amount = Maybe::or_absent(total);
            }
            if let (Some(linears), Some(was)) = (event.linear_unlocks.get_mut(), known.linear_unlocks.get())
                && let Some(total) = restore_parts(&mut linears.allocation_breakdown, was.allocation_breakdown.items(), &unlisted)
            {
                linears.linear_amount = Maybe::or_absent(total);
            }
        }
        matches.missing.iter().any(|row| own(self.known[*row]).iter().any(|name| unlisted.contains(name)))
    }
}

/// Returns the events that match a known one or have enough facts to be new, and a warning for each of the others.
///
/// An event with nothing but a new date, or with a total and no date, may be one of the missing events. It waits until more is known.
fn identified(events: NewEvents, matches: &Matches) -> (Vec<UnlockEvent>, Vec<ParseWarning>) {
    let (mut kept, mut warnings) = (Vec::new(), Vec::new());
    for (row, event) in events.into_indexed() {
        let stands_alone = match event.unlock_date.get() {
            Some(_) => has_content(&event),
            None => parts(&event).next().is_some(),
        };
        if matches.known_of[row].is_some() || stands_alone {
            kept.push(event);
        } else {
            warnings.push(warning(&event, "", "cannot be matched to a known event; left out"));
        }
    }
    (kept, warnings)
}

/// Gives an undated event the date of its parts, if they share one. Parts whose date is to be determined do not count.
fn date_by_parts(event: &mut UnlockEvent) -> Option<ParseWarning> {
    if event.unlock_date.get().is_some() {
        return None;
    }
    let is_dated = |precision: Option<&str>| Precision::of(precision) != Precision::ToBeDetermined;
    let parts = cliffs(event).iter().filter(|part| is_dated(part.unlock_precision.as_str()));
    let dates: HashSet<Timestamp> = parts.filter_map(|part| part.unlock_date.copied()).collect();
    let date = dates.iter().next().filter(|_| dates.len() == 1)?;
    event.unlock_date = (*date).into();
    Some(warning(event, "unlockDate", "missing; replaced by the date of its parts"))
}

/// Returns the dates of the nearest dated events before and after a row.
fn neighbor_dates(dates: &List<RowOf<New>, Option<Timestamp>>, row: NewRow) -> (Option<Timestamp>, Option<Timestamp>) {
    let before = dates.indexed().rev().filter(|(other, _)| *other < row).find_map(|(_, date)| *date);
    let after = dates.indexed().filter(|(other, _)| *other >= row).find_map(|(_, date)| *date);
    (before, after)
}

/// Gives parts without an amount the first known one of their allocation. Returns the paths of these parts.
fn fill_amounts<P: Part>(list: &mut Maybe<Vec<P>>, known: &[&P]) -> Vec<String> {
    let mut filled = Vec::new();
    for part in list.get_mut().into_iter().flatten().filter(|part| part.amount().is_none()) {
        let known = known.iter().find(|known| known.name() == part.name());
        if let Some(amount) = known.and_then(|known| known.amount()) {
            part.set_amount(amount);
            filled.push(part.place());
        }
    }
    filled
}

/// Restores the known parts of these allocations, if the list has fewer parts than were known. Returns the new total of a changed list.
fn restore_parts<P: Part>(list: &mut Maybe<Vec<P>>, known: &[P], names: &HashSet<String>) -> Option<Option<f64>> {
    let rows = list.get_mut()?;
    let count = rows.len();
    let mut room = known.len().saturating_sub(count);
    for part in known {
        let name = part.name().unwrap_or_default();
        if room > 0 && names.contains(name) && rows.iter().all(|row| row.name() != part.name()) {
            rows.push(part.clone());
            room -= 1;
        }
    }
    (rows.len() > count).then(|| rows.iter().map(Part::amount).sum())
}

fn parts(event: &UnlockEvent) -> impl Iterator<Item = EventPart<'_>> {
    fn of<P: Part>(form: TrancheForm, part: &P) -> EventPart<'_> {
        EventPart { form, name: part.name().unwrap_or_default(), amount: part.amount() }
    }
    let cliffs = cliffs(event).iter().map(|part| of(TrancheForm::Cliff, part));
    cliffs.chain(linears(event).iter().map(|part| of(TrancheForm::Linear, part)))
}

/// Counts the parts of `a` whose allocation and form `b` has too.
fn common_parts(a: &UnlockEvent, b: &UnlockEvent) -> usize {
    let known: HashSet<(TrancheForm, &str)> = parts(b).map(|part| (part.form, part.name)).collect();
    parts(a).filter(|part| known.contains(&(part.form, part.name))).count()
}

fn cliffs(event: &UnlockEvent) -> &[CliffAllocation] {
    event.cliff_unlocks.get().map_or(&[], |cliffs| cliffs.allocation_breakdown.items())
}

fn linears(event: &UnlockEvent) -> &[LinearAllocation] {
    event.linear_unlocks.get().map_or(&[], |linears| linears.allocation_breakdown.items())
}

fn cliff_total(cliffs: &CliffUnlocks) -> Option<f64> {
    cliffs.cliff_amount.copied().or(cliffs.total_cliff_amount.copied())
}

/// Returns whether two events have the same allocations and no different amount. Without parts, the total decides.
fn agrees(event: &UnlockEvent, known: &UnlockEvent) -> bool {
    fn sorted(event: &UnlockEvent) -> Vec<EventPart<'_>> {
        let mut parts: Vec<EventPart<'_>> = parts(event).collect();
        parts.sort_by_key(|part| (part.form, part.name));
        parts
    }
    let (a, b) = (sorted(event), sorted(known));
    if a.is_empty() {
        return same_total(event.cliff_amount(), known.cliff_amount());
    }
    let is_same = |(a, b): (&EventPart<'_>, &EventPart<'_>)| {
        (a.form, a.name) == (b.form, b.name) && (a.amount.is_none() || b.amount.is_none() || same_total(a.amount, b.amount))
    };
    a.len() == b.len() && a.iter().zip(&b).all(is_same)
}

fn is_to_be_determined(event: &UnlockEvent) -> bool {
    event.precision() == Precision::ToBeDetermined
}

fn warning(event: &UnlockEvent, path: &str, problem: &str) -> ParseWarning {
    let when = event.unlock_date.copied().map_or_else(|| "the event without a date".to_owned(), format::day);
    let path = if path.is_empty() { when } else { format!("{when}: {path}") };
    ParseWarning { path, problem: problem.to_owned() }
}

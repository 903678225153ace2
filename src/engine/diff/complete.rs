//! Completes an answer with the last known facts, so that the diff compares facts with facts alone.
//!
//! Absent, null, unreadable and zero are four different things. A part of an event that an answer leaves out, or that cannot be read,
//! says nothing: what was known of it stays, an oddity is counted, and nothing is told. A later value is compared with the last known
//! one. [`complete`] does that before anything is compared; what it hands on has no gap where something is known.
//!
//! Which event is which: the one at the same instant. An event that lost its date is the one that has its parts and that the answer
//! does not have otherwise. What cannot be placed is held as it was known, rather than guessed.
//!
//! What is no gap: a version without linear segments leaves all of them out (the diff keeps those); a cliff or a segment whose amount
//! the answer has elsewhere, at another date, in the other form or with another recipient, has changed.

mod kept;
mod learned;
mod parts;

use std::sync::Arc;
use std::{
    borrow::Cow,
    cell::RefCell,
    collections::{HashMap, HashSet},
};

use self::{
    kept::{KeptAmounts, given_up},
    learned::{has_content, learned},
    parts::{Gaps, Part, complete_breakdown, is_written_anew, same_amount, sum, without_linear},
};
use super::tranche::TrancheForm;
use model::{
    format,
    supply::{Precision, Record, RecordKey, Timestamp, Tracked},
    wire::{CliffAllocation, CliffUnlocks, LinearAllocation, LinearUnlocks, Maybe, ParseWarning, UnlockEvent},
};

/// An answer with its gaps filled.
#[derive(Clone, Debug)]
pub struct CompletedAnswer<'a> {
    /// The events, each with what was known where the answer says nothing.
    pub events: Cow<'a, [UnlockEvent]>,
    /// What was missing, and what stands in its place.
    pub oddities: Vec<ParseWarning>,
    /// An event came of which nothing but a date is known: it may be any of those that seem to be missing, so that this answer proves
    /// no absence.
    pub proves_no_absence: bool,
    /// Known events of which only the total was known, or nothing but the date, with the parts that the answer tells: they are learned,
    /// and no change. To be written, whatever else becomes of them.
    pub learned: Vec<Tracked>,
}

/// Of what an answer speaks.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerView<'a> {
    /// Whether of linear segments; None where that is not known.
    pub shows_linear: Option<bool>,
    /// Rows of it could not be read, so that what it lacks may be among those.
    pub has_lost_rows: bool,
    /// Instants at which it surely has no cliffs, whatever their rows leave out.
    pub without_cliffs: &'a [Timestamp],
}

/// Completes an answer about a token's schedule with what was known of it. `before` is the snapshot (records of other resources in it
/// are ignored).
#[must_use]
pub fn complete<'a>(before: &[Tracked], after: &'a [UnlockEvent], view: &AnswerView<'_>) -> CompletedAnswer<'a> {
    let AnswerView { shows_linear, has_lost_rows, without_cliffs } = *view;
    let (keys, known): (Vec<&RecordKey>, Vec<&UnlockEvent>) = before
        .iter()
        .filter_map(|tracked| match &tracked.record {
            Record::Unlock(event) => Some((&tracked.key, &**event)),
            _ => None,
        })
        .unzip();
    if !has_lost_rows && is_whole(&known, after, shows_linear != Some(false)) {
        let (events, oddities, learned) = (Cow::Borrowed(after), Vec::new(), Vec::new());
        return CompletedAnswer { events, oddities, proves_no_absence: false, learned };
    }
    let mut events: Vec<UnlockEvent> = after.to_vec();
    let speaks_of_linear = shows_linear != Some(false) && after.iter().any(|event| event.linear_unlocks.get().is_some());
    let mut completion = Completion {
        speaks_of_linear,
        kept: KeptAmounts::of(&known, after, speaks_of_linear),
        given_up: HashSet::new(),
        arrived: RefCell::new(arrived(&known, after)),
        known,
        has_lost_rows,
        without_cliffs,
        oddities: Vec::new(),
        proves_no_absence: false,
        learned: Vec::new(),
    };
    completion.run(&mut events);
    let Completion { oddities, proves_no_absence, learned, .. } = completion;
    let learned = learned
        .into_iter()
        .filter_map(|(k, event)| Some(Tracked { key: (*keys.get(k)?).clone(), record: Record::Unlock(Arc::new(event)) }))
        .collect();
    let events = if events == after { Cow::Borrowed(after) } else { Cow::Owned(events) };
    CompletedAnswer { events, oddities, proves_no_absence, learned }
}

/// Whether an answer has no gap at all, which is the usual case and costs no copy: each event has what is known of its instant, and one
/// at another date has all its amounts.
fn is_whole(known: &[&UnlockEvent], after: &[UnlockEvent], may_speak_of_linear: bool) -> bool {
    let at: HashMap<Timestamp, &UnlockEvent> =
        known.iter().filter_map(|event| Some((event.unlock_date.copied()?, *event))).collect();
    let has_dates = at.len() == known.len();
    has_dates
        && after.iter().all(|event| {
            let Some(date) = event.unlock_date.copied() else { return false };
            match at.get(&date).map(|known| if may_speak_of_linear { Cow::Borrowed(*known) } else { without_linear(known) }) {
                Some(known) => {
                    event.has_all_of(&known) && has_all_parts_of(event, &known) && has_parts(&known) == has_parts(event)
                }
                None => has_content(event) && names(event).iter().all(|(_, name, amount)| !name.is_empty() && amount.is_some()),
            }
        })
}

fn has_parts(event: &UnlockEvent) -> (bool, bool) {
    let cliffs = event.cliff_unlocks.get().is_some_and(|cliffs| !cliffs.allocation_breakdown.items().is_empty());
    let linears = event.linear_unlocks.get().is_some_and(|linears| !linears.allocation_breakdown.items().is_empty());
    (cliffs, linears)
}

fn has_all_parts_of(event: &UnlockEvent, known: &UnlockEvent) -> bool {
    fn rows_match<P: Part>(rows: &[P], known: &[P], has_all_of: fn(&P, &P) -> bool) -> bool {
        rows.len() >= known.len()
            && rows.iter().all(|row| row.name().is_some() && row.amount().is_some())
            && rows.iter().zip(known).all(|(row, known)| row.name() == known.name() && has_all_of(row, known))
    }
    let cliffs = match (event.cliff_unlocks.get(), known.cliff_unlocks.get()) {
        (Some(cliffs), Some(known)) => {
            let (rows, of) = (cliffs.allocation_breakdown.items(), known.allocation_breakdown.items());
            cliffs.has_all_of(known) && rows_match(rows, of, CliffAllocation::has_all_of)
        }
        _ => true,
    };
    let linears = match (event.linear_unlocks.get(), known.linear_unlocks.get()) {
        (Some(linears), Some(known)) => {
            let (rows, of) = (linears.allocation_breakdown.items(), known.allocation_breakdown.items());
            linears.has_all_of(known) && rows_match(rows, of, LinearAllocation::has_all_of)
        }
        _ => true,
    };
    cliffs && linears
}

/// An allocation in one form.
type Allocation = (TrancheForm, String);

/// Parts that stand where none of their allocation and form stood before, with their amounts.
type Arrived = HashMap<Allocation, Vec<Option<f64>>>;

struct Completion<'k> {
    known: Vec<&'k UnlockEvent>,
    without_cliffs: &'k [Timestamp],
    speaks_of_linear: bool,
    kept: KeptAmounts,
    given_up: HashSet<String>,
    /// What came anew, as far as no event that is missing accounts for it.
    arrived: RefCell<Arrived>,
    has_lost_rows: bool,
    oddities: Vec<ParseWarning>,
    proves_no_absence: bool,
    /// Events before, by index, with the parts that were not known of them.
    learned: Vec<(usize, UnlockEvent)>,
}

impl<'k> Completion<'k> {
    fn run(&mut self, events: &mut Vec<UnlockEvent>) {
        let told: HashSet<String> = events.iter().flat_map(names).map(|(_, name, _)| name.to_owned()).collect();
        events.iter_mut().for_each(|event| self.date_by_parts(event));
        let mut known_of: Vec<Option<usize>> = vec![None; events.len()];
        let mut free: Vec<bool> = vec![true; self.known.len()];
        self.match_by_instant(events, &mut known_of, &mut free);
        self.place_undated(events, &mut known_of, &mut free);
        self.given_up = given_up(&self.known, events, &free, &told);
        // Where an event is missing as a whole, what came in its place is more likely that one than a part of another.
        for known in self.known.iter().zip(&free).filter(|(_, free)| **free).map(|(known, _)| known) {
            for (form, name, amount) in names(known) {
                self.take_arrived(form, name, amount);
            }
        }
        for (event, known) in events.iter_mut().zip(&known_of) {
            match known {
                Some(k) => {
                    self.complete_event(event, self.known[*k]);
                    self.learned.extend(learned(self.known[*k], event).map(|known| (*k, known)));
                }
                None => self.complete_moved(event, &free),
            }
        }
        self.hold_unseen(events, &known_of, &free, &told);
        // An event of which nothing is known but a new date, or a total without a date, may be one of those that are missing: it waits
        // until more is known of it.
        let is_missing = free.iter().any(|free| *free);
        let mut known_of = known_of.into_iter();
        events.retain(|event| {
            let is_known = known_of.next().flatten().is_some();
            let is_placed = match event.unlock_date.get() {
                Some(_) => has_content(event),
                None => !names(event).is_empty(),
            };
            if !is_known && !is_placed {
                self.oddities.push(odd(event, "", "nothing says which event it is; it is left out"));
                self.proves_no_absence |= is_missing;
            }
            is_known || is_placed
        });
    }

    /// An allocation that is known only because it is held where the answer has a gap is told nowhere in the answer: it may be gone from
    /// everywhere, or from nowhere, and which of the two shows when the gap is closed. Until then it is held wherever it was.
    fn hold_unseen(&mut self, events: &mut [UnlockEvent], known_of: &[Option<usize>], free: &[bool], told: &HashSet<String>) {
        let own =
            |event: &UnlockEvent| -> HashSet<String> { names(event).into_iter().map(|(_, name, _)| name.to_owned()).collect() };
        let unseen: HashSet<String> = events.iter().flat_map(own).filter(|name| !told.contains(name)).collect();
        if unseen.is_empty() {
            return;
        }
        for (event, k) in events.iter_mut().zip(known_of) {
            let Some(known) = k.map(|k| self.known[k]) else { continue };
            if let (Some(cliffs), Some(was)) = (event.cliff_unlocks.get_mut(), known.cliff_unlocks.get())
                && let Some(total) = hold_parts(&mut cliffs.allocation_breakdown, was.allocation_breakdown.items(), &unseen)
            {
                cliffs.cliff_amount = Maybe::or_absent(total);
            }
            if let (Some(linears), Some(was)) = (event.linear_unlocks.get_mut(), known.linear_unlocks.get())
                && let Some(total) = hold_parts(&mut linears.allocation_breakdown, was.allocation_breakdown.items(), &unseen)
            {
                linears.linear_amount = Maybe::or_absent(total);
            }
        }
        let is_unseen = |event: &UnlockEvent| own(event).iter().any(|name| unseen.contains(name));
        self.proves_no_absence |= self.known.iter().zip(free).any(|(event, free)| *free && is_unseen(event));
    }

    /// An event without a date whose parts have one: it is theirs. What is to be determined leaves the others alone.
    fn date_by_parts(&mut self, event: &mut UnlockEvent) {
        if event.unlock_date.get().is_some() {
            return;
        }
        let parts = event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
        let is_dated = |word: Option<&str>| Precision::of(word) != Precision::ToBeDetermined;
        let dates: HashSet<Timestamp> = parts
            .iter()
            .filter(|part| is_dated(part.unlock_precision.as_str()))
            .filter_map(|part| part.unlock_date.copied())
            .collect();
        if let (Some(date), 1) = (dates.iter().next(), dates.len()) {
            event.unlock_date = (*date).into();
            self.oddities.push(odd(event, "unlockDate", "missing; the date of its parts stands in its place"));
        }
    }

    /// Events of one instant are the same; where it has several, those that share most allocations.
    fn match_by_instant(&self, events: &[UnlockEvent], known_of: &mut [Option<usize>], free: &mut [bool]) {
        let mut at: HashMap<Timestamp, Vec<usize>> = HashMap::new();
        for (k, event) in self.known.iter().enumerate() {
            if let Some(date) = event.unlock_date.copied() {
                at.entry(date).or_default().push(k);
            }
        }
        let mut pairs: Vec<(std::cmp::Reverse<usize>, usize, usize)> = Vec::new();
        for (row, event) in events.iter().enumerate() {
            let Some(same) = event.unlock_date.copied().and_then(|date| at.get(&date)) else { continue };
            pairs.extend(same.iter().map(|k| (std::cmp::Reverse(shared_names(event, self.known[*k])), row, *k)));
        }
        pairs.sort_unstable();
        for (_, row, k) in pairs {
            if known_of[row].is_none() && free[k] {
                known_of[row] = Some(k);
                free[k] = false;
            }
        }
    }

    /// Events that lost their date: the known one that has the same parts and is not in the answer; else the one that shares most
    /// allocations is held as it was known. An event whose date is to be determined has none to lose.
    fn place_undated(&mut self, events: &mut [UnlockEvent], known_of: &mut [Option<usize>], free: &mut [bool]) {
        let mut order: Vec<usize> = (0..self.known.len()).collect();
        order.sort_by_key(|k| self.known[*k].unlock_date.copied());
        let mut placed = Vec::new();
        let dates: Vec<Option<Timestamp>> = events.iter().map(|event| event.unlock_date.copied()).collect();
        // Those that can be placed surely come first, so that what is held does not take their place.
        for surely in [true, false] {
            for (row, event) in events.iter_mut().enumerate() {
                if event.unlock_date.get().is_some() || known_of[row].is_some() || is_to_be_determined(event) {
                    continue;
                }
                let candidates = order.iter().copied().filter(|k| free[*k]);
                let found = if surely {
                    // Answers are in the order of time: the one that belongs between its neighbours, else the first.
                    let alike: Vec<usize> = candidates.filter(|k| agrees(event, self.known[*k])).collect();
                    let before = dates[..row].iter().rev().find_map(|date| *date);
                    let after = dates[row..].iter().find_map(|date| *date);
                    let belongs = |k: &usize| {
                        let date = self.known[*k].unlock_date.copied();
                        before.is_none_or(|before| date > Some(before)) && after.is_none_or(|after| date < Some(after))
                    };
                    alike.iter().copied().find(belongs).or(alike.first().copied())
                } else {
                    let shared = |k: usize| shared_names(event, self.known[k]);
                    candidates.filter(|k| shared(*k) > 0).max_by_key(|k| (shared(*k), std::cmp::Reverse(*k)))
                };
                let Some(k) = found else { continue };
                known_of[row] = Some(k);
                free[k] = false;
                let known = self.known[k];
                if known.unlock_date.get().is_none() {
                    continue;
                }
                if surely {
                    placed.push(k);
                    event.unlock_date = known.unlock_date;
                    self.oddities.push(odd(known, "unlockDate", "missing; the last known date stays"));
                } else {
                    *event = known.clone();
                    self.oddities.push(odd(
                        known,
                        "unlockDate",
                        "missing, and its parts differ; the event stays as it was known",
                    ));
                }
            }
        }
        // One that is missing may be the one that was meant: then none of them is proven gone.
        let is_alike = |k: &usize| placed.iter().any(|placed| agrees(self.known[*placed], self.known[*k]));
        self.proves_no_absence |= (0..self.known.len()).filter(|k| free[*k]).any(|k| is_alike(&k));
    }

    /// Fills the gaps of an event with what was known of it.
    fn complete_event(&mut self, event: &mut UnlockEvent, known: &UnlockEvent) {
        // A row that has other recipients in the other form was written anew, and null says that there is nothing.
        let has_other_linear = is_written_anew(linears(event), linears(known));
        let has_other_cliffs = is_written_anew(cliffs(event), cliffs(known));
        let given = (event.cliff_unlocks.clone(), event.linear_unlocks.clone());
        event.fill_gaps(known);
        (event.cliff_unlocks, event.linear_unlocks) = given;

        if let Maybe::Value(was) = &known.cliff_unlocks {
            let parts = was.allocation_breakdown.items();
            match &mut event.cliff_unlocks {
                Maybe::Value(cliffs) => self.complete_cliffs(cliffs, was, known),
                _ if has_other_linear || known.unlock_date.get().is_some_and(|date| self.without_cliffs.contains(date)) => {}
                gap => {
                    if let Some(left) = self.not_elsewhere(TrancheForm::Cliff, parts, known.cliff_amount()) {
                        *gap = was.clone().into();
                        if let (Maybe::Value(cliffs), true) = (gap, left.len() < parts.len()) {
                            *cliffs = CliffUnlocks { cliff_amount: Maybe::or_absent(sum(&left)), ..CliffUnlocks::default() };
                            cliffs.allocation_breakdown = left.into();
                        }
                        self.oddities.push(odd(known, "cliffUnlocks", "missing; the last known ones stay"));
                    }
                }
            }
        }
        if let (Maybe::Value(was), true) = (&known.linear_unlocks, self.speaks_of_linear) {
            let parts = was.allocation_breakdown.items();
            match &mut event.linear_unlocks {
                Maybe::Value(linears) => self.complete_linears(linears, was, known),
                _ if has_other_cliffs => {}
                gap => {
                    if let Some(left) = self.not_elsewhere(TrancheForm::Linear, parts, was.linear_amount.copied()) {
                        *gap = was.clone().into();
                        if let (Maybe::Value(linears), true) = (gap, left.len() < parts.len()) {
                            *linears = LinearUnlocks { linear_amount: Maybe::or_absent(sum(&left)), ..LinearUnlocks::default() };
                            linears.allocation_breakdown = left.into();
                        }
                        self.oddities.push(odd(known, "linearUnlocks", "missing; the last known ones stay"));
                    }
                }
            }
        }
    }

    fn complete_cliffs(&mut self, cliffs: &mut CliffUnlocks, was: &CliffUnlocks, event: &UnlockEvent) {
        let total_of = |cliffs: &CliffUnlocks| cliffs.cliff_amount.copied().or(cliffs.total_cliff_amount.copied());
        let (total, known) = (total_of(cliffs), total_of(was));
        let parts = was.allocation_breakdown.items();
        if let Some(total) =
            self.complete_list(TrancheForm::Cliff, &mut cliffs.allocation_breakdown, parts, (total, known), event)
        {
            cliffs.cliff_amount = total.into();
        }
        let mut was = CliffUnlocks { allocation_breakdown: Maybe::Absent, ..was.clone() };
        (was.cliff_amount, was.total_cliff_amount) = (Maybe::Absent, Maybe::Absent);
        // A value belongs to an amount: that of another amount is no last known fact.
        if !same_amount(total_of(cliffs), known) {
            (was.cliff_value, was.total_cliff_value, was.value_to_market_cap) = (Maybe::Absent, Maybe::Absent, Maybe::Absent);
        }
        cliffs.fill_gaps(&was);
    }

    fn complete_linears(&mut self, linears: &mut LinearUnlocks, was: &LinearUnlocks, event: &UnlockEvent) {
        let totals = (linears.linear_amount.copied(), was.linear_amount.copied());
        let parts = was.allocation_breakdown.items();
        if let Some(total) = self.complete_list(TrancheForm::Linear, &mut linears.allocation_breakdown, parts, totals, event) {
            linears.linear_amount = total.into();
        }
        let mut was = LinearUnlocks { allocation_breakdown: Maybe::Absent, linear_amount: Maybe::Absent, ..was.clone() };
        if !same_amount(linears.linear_amount.copied(), totals.1) {
            (was.linear_value, was.daily_amount, was.daily_value) = (Maybe::Absent, Maybe::Absent, Maybe::Absent);
        }
        linears.fill_gaps(&was);
    }

    /// Completes the parts of one form. `totals` are those of the answer and of what was known; gives the total that takes the place
    /// of the answer's, where that has none or one that cannot be right.
    fn complete_list<P: Part>(
        &mut self,
        form: TrancheForm,
        list: &mut Maybe<Vec<P>>,
        known: &[P],
        (total, known_total): (Option<f64>, Option<f64>),
        event: &UnlockEvent,
    ) -> Option<f64> {
        let has_arrived = |part: &P| self.has_arrived(form, std::slice::from_ref(part));
        let gaps = Gaps { total, known_total, has_lost_rows: self.has_lost_rows, has_arrived: &has_arrived };
        let filled = complete_breakdown(list, known, &gaps);
        let (unlocks, amount) = match form {
            TrancheForm::Cliff => ("cliffUnlocks", "cliffAmount"),
            TrancheForm::Linear => ("linearUnlocks", "linearAmount"),
        };
        let problems = filled.problems.into_iter();
        self.oddities
            .extend(problems.map(|(place, problem)| odd(event, &format!("{unlocks}.allocationBreakdown{place}"), &problem)));
        if total.is_some() {
            return filled.total.filter(|_| filled.overrules_total);
        }
        // Without a total there is none to be missing; where one was known, it is what the parts come to.
        let total = known_total.and(filled.total.or(known_total));
        if total.is_some() {
            self.oddities.push(odd(event, &format!("{unlocks}.{amount}"), "missing; it is what its parts come to"));
        }
        total
    }

    /// An event at a date that was not known, which may be one that moved: a part of it without an amount holds that of the nearest
    /// missing event that has its allocation.
    fn complete_moved(&mut self, event: &mut UnlockEvent, free: &[bool]) {
        let Some(date) = event.unlock_date.copied() else { return };
        let mut missing: Vec<&UnlockEvent> =
            self.known.iter().zip(free).filter(|(_, free)| **free).map(|(event, _)| *event).collect();
        missing.sort_by_key(|known| known.unlock_date.copied().map_or(i64::MAX, |at| (at - date).num_seconds().abs()));
        let mut oddities = Vec::new();
        if let Maybe::Value(cliffs) = &mut event.cliff_unlocks {
            let total = cliffs.cliff_amount.copied().or(cliffs.total_cliff_amount.copied());
            let lists = || missing.iter().filter_map(|known| known.cliff_unlocks.get());
            if cliffs.allocation_breakdown.get().is_none()
                && let Some(was) = lists().find(|was| {
                    total.is_some() && same_amount(total, was.cliff_amount.copied().or(was.total_cliff_amount.copied()))
                })
            {
                cliffs.allocation_breakdown = was.allocation_breakdown.clone();
                oddities.push("cliffUnlocks.allocationBreakdown".to_owned());
            }
            let known = lists().flat_map(|was| was.allocation_breakdown.items());
            let held = hold_amounts(&mut cliffs.allocation_breakdown, &known.collect::<Vec<_>>());
            oddities.extend(held.into_iter().map(|place| format!("cliffUnlocks.allocationBreakdown{place}.cliffAmount")));
        }
        if let Maybe::Value(linears) = &mut event.linear_unlocks {
            let known =
                missing.iter().filter_map(|known| known.linear_unlocks.get()).flat_map(|was| was.allocation_breakdown.items());
            let held = hold_amounts(&mut linears.allocation_breakdown, &known.collect::<Vec<_>>());
            oddities.extend(held.into_iter().map(|place| format!("linearUnlocks.allocationBreakdown{place}.linearAmount")));
        }
        self.oddities.extend(oddities.into_iter().map(|path| odd(event, &path, "missing; the last known one stays")));
    }

    /// Whether one of these parts now stands at a date at which its allocation had none: then it has moved, and is not missing. What
    /// came accounts for one part.
    fn has_arrived<P: Part>(&self, form: TrancheForm, parts: &[P]) -> bool {
        parts.iter().any(|part| self.take_arrived(form, part.name().unwrap_or_default(), part.amount()))
    }

    /// The parts of a form that an answer leaves out, which it does not have elsewhere either; none where it has them all, or where
    /// nothing is known of them.
    fn not_elsewhere<P: Part>(&self, form: TrancheForm, parts: &[P], total: Option<f64>) -> Option<Vec<P>> {
        let is_given_up = |part: &P| self.given_up.contains(part.name().unwrap_or_default());
        let is_missing =
            |part: &&P| !self.kept.covers(*part) && !is_given_up(part) && !self.has_arrived(form, std::slice::from_ref(*part));
        let left: Vec<P> = parts.iter().filter(is_missing).cloned().collect();
        (!left.is_empty() || parts.is_empty() && total.is_some()).then_some(left)
    }

    fn take_arrived(&self, form: TrancheForm, name: &str, amount: Option<f64>) -> bool {
        let mut arrived = self.arrived.borrow_mut();
        let Some(amounts) = arrived.get_mut(&(form, name.to_owned())) else { return false };
        let is_same = |came: &Option<f64>| came.is_none() || amount.is_none() || same_amount(*came, amount);
        let Some(found) = amounts.iter().position(is_same) else { return false };
        amounts.swap_remove(found);
        true
    }
}

/// Gives parts without an amount the first known one of their allocation; the places of those.
fn hold_amounts<P: Part>(list: &mut Maybe<Vec<P>>, known: &[&P]) -> Vec<String> {
    let mut held = Vec::new();
    for part in list.get_mut().into_iter().flatten().filter(|part| part.amount().is_none()) {
        let known = known.iter().find(|known| known.name() == part.name());
        if let Some(amount) = known.and_then(|known| known.amount()) {
            part.set_amount(amount);
            held.push(part.place());
        }
    }
    held
}

/// Puts the known parts of these allocations back into a list that has fewer than were known. Gives what the list then comes to.
fn hold_parts<P: Part>(list: &mut Maybe<Vec<P>>, known: &[P], unseen: &HashSet<String>) -> Option<Option<f64>> {
    let rows = list.get_mut()?;
    let mut room = known.len().saturating_sub(rows.len());
    let count = rows.len();
    for part in known {
        let name = part.name().unwrap_or_default();
        if room > 0 && unseen.contains(name) && rows.iter().all(|row| row.name() != part.name()) {
            rows.push(part.clone());
            room -= 1;
        }
    }
    (rows.len() > count).then(|| rows.iter().map(Part::amount).sum())
}

/// The parts of an event that its forms have, by allocation.
fn names(event: &UnlockEvent) -> Vec<(TrancheForm, &str, Option<f64>)> {
    let cliffs = cliffs(event).iter().map(|part| (TrancheForm::Cliff, part.name().unwrap_or_default(), part.amount()));
    let linears = linears(event).iter().map(|part| (TrancheForm::Linear, part.name().unwrap_or_default(), part.amount()));
    cliffs.chain(linears).collect()
}

fn arrived(known: &[&UnlockEvent], after: &[UnlockEvent]) -> Arrived {
    let mut stood: HashSet<(TrancheForm, &str, Option<Timestamp>)> = HashSet::new();
    for event in known {
        stood.extend(names(event).into_iter().map(|(form, name, _)| (form, name, event.unlock_date.copied())));
    }
    let mut arrived = Arrived::new();
    for event in after {
        for (form, name, amount) in names(event) {
            // What lost its date has not moved.
            if event.unlock_date.get().is_some() && !stood.contains(&(form, name, event.unlock_date.copied())) {
                arrived.entry((form, name.to_owned())).or_default().push(amount);
            }
        }
    }
    arrived
}

fn shared_names(a: &UnlockEvent, b: &UnlockEvent) -> usize {
    let known: HashSet<(TrancheForm, &str)> = names(b).into_iter().map(|(form, name, _)| (form, name)).collect();
    names(a).into_iter().filter(|(form, name, _)| known.contains(&(*form, *name))).count()
}

fn cliffs(event: &UnlockEvent) -> &[CliffAllocation] {
    event.cliff_unlocks.get().map_or(&[], |cliffs| cliffs.allocation_breakdown.items())
}

fn linears(event: &UnlockEvent) -> &[LinearAllocation] {
    event.linear_unlocks.get().map_or(&[], |linears| linears.allocation_breakdown.items())
}

/// Whether an event has the parts of another: the same allocations, and no amount that differs. Without any, the total decides.
fn agrees(event: &UnlockEvent, known: &UnlockEvent) -> bool {
    let sorted = |event| {
        let mut parts = names(event);
        parts.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        parts
    };
    let (a, b) = (sorted(event), sorted(known));
    if a.is_empty() {
        return same_amount(event.cliff_amount(), known.cliff_amount());
    }
    a.len() == b.len()
        && a.iter().zip(&b).all(|(a, b)| (a.0, a.1) == (b.0, b.1) && (a.2.is_none() || b.2.is_none() || same_amount(a.2, b.2)))
}

fn is_to_be_determined(event: &UnlockEvent) -> bool {
    event.precision() == Precision::ToBeDetermined
}

/// What is odd in an event, for people.
fn odd(event: &UnlockEvent, path: &str, problem: &str) -> ParseWarning {
    let when = event.unlock_date.copied().map_or_else(|| "the event without a date".to_owned(), format::day);
    let path = if path.is_empty() { when } else { format!("{when}: {path}") };
    ParseWarning { path, problem: problem.to_owned() }
}

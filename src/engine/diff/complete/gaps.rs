//! Fills the gaps of one event whose known counterpart was found.

use std::collections::{HashMap, HashSet};

use super::{
    Completion, cliff_total, cliffs, linears, parts,
    parts::{Gaps, Part, complete_breakdown, has_other_recipients, sum},
    warning,
};
use crate::diff::{
    index::Old,
    tolerances::same_total,
    tranche::{Events, TrancheForm},
};
use model::{
    supply::Timestamp,
    wire::{CliffUnlocks, LinearUnlocks, Maybe, ParseWarning, UnlockEvent},
};

/// Fills the gaps of one event.
pub(super) struct EventGaps<'c, 'k> {
    pub(super) completion: &'c Completion<'k>,
    /// Allocations that are removed together with missing events.
    pub(super) abandoned: &'c HashSet<String>,
    pub(super) arrivals: &'c mut Arrivals,
    /// Whether a form that the event omits counts as removed.
    pub(super) accepts_omission: bool,
}

impl EventGaps<'_, '_> {
    pub(super) fn fill(mut self, event: &mut UnlockEvent, known: &UnlockEvent) -> Vec<ParseWarning> {
        // A row with other recipients in the other form was rewritten, and its null means that there is nothing.
        let has_other_linear = has_other_recipients(linears(event), linears(known));
        let has_other_cliffs = has_other_recipients(cliffs(event), cliffs(known));
        let given = (event.cliff_unlocks.clone(), event.linear_unlocks.clone());
        event.fill_gaps(known);
        (event.cliff_unlocks, event.linear_unlocks) = given;

        let mut warnings = Vec::new();
        let without_cliffs = self.completion.view.without_cliffs;
        if let Maybe::Value(was) = &known.cliff_unlocks {
            let parts = was.allocation_breakdown.items();
            match &mut event.cliff_unlocks {
                Maybe::Value(cliffs) => warnings.extend(self.fill_cliffs(cliffs, was, known)),
                _ if has_other_linear || known.unlock_date.get().is_some_and(|date| without_cliffs.contains(date)) => {}
                _ if self.accepts_omission => {}
                gap => {
                    if let Some(missing) = self.missing_parts(TrancheForm::Cliff, parts, known.cliff_amount()) {
                        *gap = match missing.len() < parts.len() {
                            true => CliffUnlocks {
                                cliff_amount: Maybe::or_absent(sum(&missing)),
                                allocation_breakdown: missing.into(),
                                ..CliffUnlocks::default()
                            },
                            false => was.clone(),
                        }
                        .into();
                        warnings.push(warning(known, "cliffUnlocks", "missing; the last known ones stay"));
                    }
                }
            }
        }
        if let (Maybe::Value(was), true) = (&known.linear_unlocks, self.completion.covers_linear) {
            let parts = was.allocation_breakdown.items();
            match &mut event.linear_unlocks {
                Maybe::Value(linears) => warnings.extend(self.fill_linears(linears, was, known)),
                _ if has_other_cliffs => {}
                _ if self.accepts_omission => {}
                gap => {
                    if let Some(missing) = self.missing_parts(TrancheForm::Linear, parts, was.linear_amount.copied()) {
                        *gap = match missing.len() < parts.len() {
                            true => LinearUnlocks {
                                linear_amount: Maybe::or_absent(sum(&missing)),
                                allocation_breakdown: missing.into(),
                                ..LinearUnlocks::default()
                            },
                            false => was.clone(),
                        }
                        .into();
                        warnings.push(warning(known, "linearUnlocks", "missing; the last known ones stay"));
                    }
                }
            }
        }
        warnings
    }

    fn fill_cliffs(&mut self, cliffs: &mut CliffUnlocks, was: &CliffUnlocks, event: &UnlockEvent) -> Vec<ParseWarning> {
        let totals = GapTotals { given: cliff_total(cliffs), known: cliff_total(was) };
        let parts = was.allocation_breakdown.items();
        let (total, warnings) = self.fill_list(TrancheForm::Cliff, &mut cliffs.allocation_breakdown, parts, totals, event);
        if let Some(total) = total {
            cliffs.cliff_amount = total.into();
        }
        let mut was = CliffUnlocks { allocation_breakdown: Maybe::Absent, ..was.clone() };
        (was.cliff_amount, was.total_cliff_amount) = (Maybe::Absent, Maybe::Absent);
        // A value does not apply to another amount.
        if !same_total(cliff_total(cliffs), totals.known) {
            (was.cliff_value, was.total_cliff_value, was.value_to_market_cap) = (Maybe::Absent, Maybe::Absent, Maybe::Absent);
        }
        cliffs.fill_gaps(&was);
        warnings
    }

    fn fill_linears(&mut self, linears: &mut LinearUnlocks, was: &LinearUnlocks, event: &UnlockEvent) -> Vec<ParseWarning> {
        let totals = GapTotals { given: linears.linear_amount.copied(), known: was.linear_amount.copied() };
        let parts = was.allocation_breakdown.items();
        let (total, warnings) = self.fill_list(TrancheForm::Linear, &mut linears.allocation_breakdown, parts, totals, event);
        if let Some(total) = total {
            linears.linear_amount = total.into();
        }
        let mut was = LinearUnlocks { allocation_breakdown: Maybe::Absent, linear_amount: Maybe::Absent, ..was.clone() };
        if !same_total(linears.linear_amount.copied(), totals.known) {
            (was.linear_value, was.daily_amount, was.daily_value) = (Maybe::Absent, Maybe::Absent, Maybe::Absent);
        }
        linears.fill_gaps(&was);
        warnings
    }

    /// Completes the parts of one form. Also returns the total to write, if the response has none or one that cannot be right.
    fn fill_list<P: Part>(
        &mut self,
        form: TrancheForm,
        list: &mut Maybe<Vec<P>>,
        known: &[P],
        totals: GapTotals,
        event: &UnlockEvent,
    ) -> (Option<f64>, Vec<ParseWarning>) {
        let mut has_arrived = |part: &P| self.arrivals.take_part(form, part);
        let has_lost_rows = self.completion.view.has_lost_rows;
        let filled = complete_breakdown(list, known, Gaps { totals, has_lost_rows, has_arrived: &mut has_arrived });
        let (unlocks, amount) = match form {
            TrancheForm::Cliff => ("cliffUnlocks", "cliffAmount"),
            TrancheForm::Linear => ("linearUnlocks", "linearAmount"),
        };
        let problems = filled.problems.into_iter();
        let mut warnings: Vec<ParseWarning> =
            problems.map(|(place, problem)| warning(event, &format!("{unlocks}.allocationBreakdown{place}"), &problem)).collect();
        if totals.given.is_some() {
            return (filled.total.filter(|_| filled.overrules_total), warnings);
        }
        // If no total was ever known, none is missing. Otherwise it is the sum of the parts.
        let total = totals.known.and(filled.total.or(totals.known));
        if total.is_some() {
            warnings.push(warning(event, &format!("{unlocks}.{amount}"), "missing; replaced by the sum of its parts"));
        }
        (total, warnings)
    }

    /// Returns the known parts of a form that the response leaves out here and does not list elsewhere. `None` if it lists them all, or
    /// if neither parts nor a total are known.
    fn missing_parts<P: Part>(&mut self, form: TrancheForm, parts: &[P], total: Option<f64>) -> Option<Vec<P>> {
        let is_missing = |part: &&P| {
            !self.completion.conserved.covers(*part)
                && !self.abandoned.contains(part.name().unwrap_or_default())
                && !self.arrivals.take_part(form, *part)
        };
        let missing: Vec<P> = parts.iter().filter(is_missing).cloned().collect();
        (!missing.is_empty() || parts.is_empty() && total.is_some()).then_some(missing)
    }
}

/// The totals of a list of parts.
#[derive(Clone, Copy)]
pub(super) struct GapTotals {
    /// The total in the response.
    pub(super) given: Option<f64>,
    pub(super) known: Option<f64>,
}

/// The amounts of parts at a date at which their allocation had none of that form before. Each accounts for one missing part.
pub(super) struct Arrivals(HashMap<(TrancheForm, String), Vec<Option<f64>>>);

impl Arrivals {
    pub(super) fn of(known: &Events<'_, Old>, after: &[UnlockEvent]) -> Self {
        let mut before: HashSet<(TrancheForm, &str, Option<Timestamp>)> = HashSet::new();
        for event in known.iter() {
            before.extend(parts(event).map(|part| (part.form, part.name, event.unlock_date.copied())));
        }
        let mut arrivals: HashMap<(TrancheForm, String), Vec<Option<f64>>> = HashMap::new();
        // A part without a date has not moved.
        for event in after.iter().filter(|event| event.unlock_date.get().is_some()) {
            for part in parts(event).filter(|part| !before.contains(&(part.form, part.name, event.unlock_date.copied()))) {
                arrivals.entry((part.form, part.name.to_owned())).or_default().push(part.amount);
            }
        }
        Self(arrivals)
    }

    /// Takes the arrival that accounts for a missing part, and returns whether there is one.
    pub(super) fn take(&mut self, form: TrancheForm, name: &str, amount: Option<f64>) -> bool {
        let Some(amounts) = self.0.get_mut(&(form, name.to_owned())) else { return false };
        let is_same = |arrived: &Option<f64>| arrived.is_none() || amount.is_none() || same_total(*arrived, amount);
        let Some(found) = amounts.iter().position(is_same) else { return false };
        amounts.swap_remove(found);
        true
    }

    fn take_part<P: Part>(&mut self, form: TrancheForm, part: &P) -> bool {
        self.take(form, part.name().unwrap_or_default(), part.amount())
    }
}

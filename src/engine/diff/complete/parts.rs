//! The parts of one event and one form: matches rows with known parts, and fills the gaps.

use std::{borrow::Cow, collections::BTreeSet};

use super::gaps::GapTotals;
use crate::diff::{
    index::{List, New, NewPart, Old, OldPart, PartOf},
    tolerances::same_total,
};
use model::{
    phrase as format,
    wire::{CliffAllocation, LinearAllocation, Maybe, UnlockEvent},
};

/// The cliff or the linear segment of one allocation.
pub(super) trait Part: Clone {
    fn name(&self) -> Option<&str>;
    fn set_name(&mut self, name: &str);
    fn amount(&self) -> Option<f64>;
    fn set_amount(&mut self, amount: f64);
    /// Fills gaps with known facts.
    fn fill(&mut self, known: &Self);
    /// Returns the names of the schedule facts that this row lacks and the other has.
    fn lacks(&self, known: &Self) -> Vec<&'static str>;

    /// Returns the place in a list, for a warning: `[Team]`.
    fn place(&self) -> String {
        format!("[{}]", format::name(self.name().unwrap_or_default()))
    }
}

impl Part for CliffAllocation {
    fn name(&self) -> Option<&str> {
        self.allocation_name.as_str().filter(|name| !name.is_empty())
    }
    fn set_name(&mut self, name: &str) {
        self.allocation_name = name.to_owned().into();
    }
    fn amount(&self) -> Option<f64> {
        self.cliff_amount.copied()
    }
    fn set_amount(&mut self, amount: f64) {
        self.cliff_amount = amount.into();
    }
    fn fill(&mut self, known: &Self) {
        let mut known = known.clone();
        // A value belongs to an amount.
        if self.amount().is_some() && !same_total(self.amount(), known.amount()) {
            known.cliff_value = Maybe::Absent;
        }
        self.fill_gaps(&known);
    }
    fn lacks(&self, known: &Self) -> Vec<&'static str> {
        let mut lacks = Vec::new();
        if self.cliff_amount.get().is_none() && known.cliff_amount.get().is_some() {
            lacks.push("cliffAmount");
        }
        if self.unlock_date.get().is_none() && known.unlock_date.get().is_some() {
            lacks.push("unlockDate");
        }
        lacks
    }
}

impl Part for LinearAllocation {
    fn name(&self) -> Option<&str> {
        self.allocation_name.as_str().filter(|name| !name.is_empty())
    }
    fn set_name(&mut self, name: &str) {
        self.allocation_name = name.to_owned().into();
    }
    fn amount(&self) -> Option<f64> {
        self.linear_amount.copied()
    }
    fn set_amount(&mut self, amount: f64) {
        self.linear_amount = amount.into();
    }
    fn fill(&mut self, known: &Self) {
        let mut known = known.clone();
        let is_other = |a: &Maybe<_>, b: &Maybe<_>| a.get().is_some() && a.copied() != b.copied();
        let differs = self.amount().is_some() && !same_total(self.amount(), known.amount());
        if differs {
            known.linear_value = Maybe::Absent;
        }
        if differs || is_other(&self.begin_date, &known.begin_date) || is_other(&self.end_date, &known.end_date) {
            (known.daily_amount, known.daily_value, known.duration_of_rate) = (Maybe::Absent, Maybe::Absent, Maybe::Absent);
        }
        self.fill_gaps(&known);
    }
    fn lacks(&self, known: &Self) -> Vec<&'static str> {
        let mut lacks = Vec::new();
        if self.linear_amount.get().is_none() && known.linear_amount.get().is_some() {
            lacks.push("linearAmount");
        }
        if self.begin_date.get().is_none() && known.begin_date.get().is_some() {
            lacks.push("beginDate");
        }
        if self.end_date.get().is_none() && known.end_date.get().is_some() {
            lacks.push("endDate");
        }
        lacks
    }
}

/// Returns whether a list has a recipient that is not known, and lacks a known one unless none are known.
pub(super) fn has_other_recipients<P: Part>(parts: &[P], known: &[P]) -> bool {
    let lacks = |all: &[P], part: &P| all.iter().all(|other| other.name() != part.name());
    parts.iter().any(|part| lacks(known, part)) && (known.is_empty() || known.iter().any(|part| lacks(parts, part)))
}

/// The facts around a list of parts that distinguish its gaps from changes.
pub(super) struct Gaps<'a, P> {
    pub(super) totals: GapTotals,
    /// Whether some rows of the response could not be read.
    pub(super) has_lost_rows: bool,
    /// Returns whether a part appears at another date now. Each appearance accounts for one part.
    pub(super) has_arrived: &'a mut dyn FnMut(&P) -> bool,
}

/// The outcome of filling gaps.
#[derive(Default)]
pub(super) struct Filled {
    /// The places in the list, each with its problem.
    pub(super) problems: Vec<(String, String)>,
    /// The sum of the parts. `None` if an amount is unknown.
    pub(super) total: Option<f64>,
    /// Whether the total of the response contradicts the parts, and the sum of the parts replaces it.
    pub(super) overrules_total: bool,
}

/// Fills the gaps of a list with the known parts.
pub(super) fn complete_breakdown<P: Part>(list: &mut Maybe<Vec<P>>, known: &[P], mut gaps: Gaps<'_, P>) -> Filled {
    let GapTotals { given: total, known: known_total } = gaps.totals;
    if known.is_empty() {
        // An absent list in place of an empty one, with totals of zero, is empty.
        if list.get().is_none() && known_total == Some(0.0) && total.is_none_or(|total| total == 0.0) {
            *list = Vec::new().into();
        }
        return Filled { total: sum(list.items()), ..Filled::default() };
    }
    // An empty list is missing too if its total is not zero, or if rows were lost.
    let is_missing =
        list.get().is_none_or(|rows| rows.is_empty() && total != Some(0.0) && (total.is_some() || gaps.has_lost_rows));
    if is_missing {
        *list = known.to_vec().into();
        let sum = sum(known).or(known_total);
        let agrees = total.is_none() || same_total(total, sum);
        let problem = if agrees {
            "missing; the last known one stays"
        } else {
            "missing, and the total differs; the last known one stays until its parts arrive"
        };
        return Filled { problems: vec![(String::new(), problem.to_owned())], total: sum, overrules_total: !agrees };
    }
    let Some(rows) = list.get_mut() else { return Filled::default() };
    let was_full = rows.len() >= known.len();
    let Named { rows: mut named, matches, mut problems, lost } = name_rows(std::mem::take(rows), known);
    for (place, known) in matches.known_parts(known) {
        let row = &mut named[place];
        let place = row.place();
        problems.extend(
            row.lacks(known)
                .into_iter()
                // The date of a part is the date of its event.
                .filter(|field| *field != "unlockDate")
                .map(|field| (format!("{place}.{field}"), "missing; the last known one stays".to_owned())),
        );
        row.fill(known);
    }
    *rows = named.into_vec();
    let absent: Vec<&P> = matches.absent_parts(known);
    if !absent.is_empty() && (!was_full || lost > 0) && are_parts_missing(rows, &absent, lost > 0, &mut gaps) {
        for part in absent {
            problems.push((part.place(), "missing; the last known one stays".to_owned()));
            rows.push(part.clone());
        }
    }
    Filled { problems, total: sum(rows), overrules_total: false }
}

/// Returns whether absent parts are missing from a list, rather than removed from it. They are removed if one of them appears
/// at another date now, or if the rows alone add up to the given total. They are missing if the rows add up to it only together with
/// the absent parts. If neither sum fits, or no total is given, they are missing if rows were lost or are unnamed.
fn are_parts_missing<P: Part>(rows: &[P], absent: &[&P], has_unnamed: bool, gaps: &mut Gaps<'_, P>) -> bool {
    if absent.iter().any(|part| (gaps.has_arrived)(part)) {
        return false;
    }
    let of_absent = absent.iter().map(|part| part.amount()).sum::<Option<f64>>();
    match (gaps.totals.given, sum(rows), of_absent) {
        (Some(total), Some(there), _) if same_total(Some(total), Some(there)) => false,
        (Some(total), Some(there), Some(absent)) if same_total(Some(total), Some(there + absent)) => true,
        _ => gaps.has_lost_rows || has_unnamed,
    }
}

/// The known part for each row.
struct PartMatches {
    known_of: List<PartOf<New>, Option<OldPart>>,
    /// Known parts without a row.
    absent: BTreeSet<OldPart>,
}

impl PartMatches {
    /// Matches rows by their allocation. Rows of one allocation match by equal amounts first, then in order.
    fn by_name<P: Part>(rows: &List<PartOf<New>, P>, known: &List<PartOf<Old>, &P>) -> Self {
        let mut matches = Self { known_of: List::filled(None, rows.len()), absent: known.indices().collect() };
        for by_amount in [true, false] {
            for (r, row) in rows.indexed() {
                let is_same =
                    |k: &OldPart| known[*k].name() == row.name() && (!by_amount || same_total(known[*k].amount(), row.amount()));
                if matches.known_of[r].is_none()
                    && let Some(k) = matches.absent.iter().copied().find(is_same)
                {
                    matches.add(r, k);
                }
            }
        }
        matches
    }

    fn add(&mut self, row: NewPart, known: OldPart) {
        self.known_of[row] = Some(known);
        self.absent.remove(&known);
    }

    /// Returns the known part of each row that has one.
    fn known_parts<'p, P>(&self, known: &'p [P]) -> Vec<(NewPart, &'p P)> {
        let known: List<PartOf<Old>, &P> = known.iter().collect();
        self.known_of.indexed().filter_map(|(row, k)| Some((row, known[(*k)?]))).collect()
    }

    fn absent_parts<'p, P>(&self, known: &'p [P]) -> Vec<&'p P> {
        let known: List<PartOf<Old>, &P> = known.iter().collect();
        self.absent.iter().map(|k| known[*k]).collect()
    }
}

/// Rows with the names of their allocations.
struct Named<P> {
    rows: List<PartOf<New>, P>,
    matches: PartMatches,
    problems: Vec<(String, String)>,
    /// The number of rows that were left out.
    lost: usize,
}

/// Names the rows that lost their allocation: each is the only known part that it can be, by amount or because no other is absent. A row
/// that may be any of several is left out.
fn name_rows<P: Part>(rows: Vec<P>, known: &[P]) -> Named<P> {
    let mut rows: List<PartOf<New>, P> = rows.into();
    let known: List<PartOf<Old>, &P> = known.iter().collect();
    let mut matches = PartMatches::by_name(&rows, &known);
    let (mut problems, mut lost) = (Vec::new(), BTreeSet::new());
    for (position, r) in rows.indices().enumerate() {
        if rows[r].name().is_some() || matches.known_of[r].is_some() || matches.absent.is_empty() {
            continue;
        }
        let absent: Vec<OldPart> = matches.absent.iter().copied().collect();
        let is_alike = |k: &OldPart| same_total(known[*k].amount(), rows[r].amount());
        let alike: Vec<OldPart> = absent.iter().copied().filter(is_alike).collect();
        let found = match (alike.as_slice(), absent.as_slice()) {
            ([k], _) => Some(*k),
            ([], [k]) if rows[r].amount().is_none() => Some(*k),
            _ => None,
        };
        match found {
            Some(k) => {
                matches.add(r, k);
                rows[r].set_name(known[k].name().unwrap_or_default());
                problems.push((rows[r].place(), "allocationName is missing; the last known one stays".to_owned()));
            }
            None => {
                lost.insert(r);
                problems.push((format!("[{position}]"), "allocationName is missing; the row is left out".to_owned()));
            }
        }
    }
    if lost.is_empty() {
        return Named { rows, matches, problems, lost: 0 };
    }
    let kept: Vec<NewPart> = rows.indices().filter(|r| !lost.contains(r)).collect();
    let matches = PartMatches { known_of: kept.iter().map(|r| matches.known_of[*r]).collect(), absent: matches.absent };
    Named { rows: kept.iter().map(|r| rows[*r].clone()).collect(), matches, problems, lost: lost.len() }
}

pub(super) fn sum<P: Part>(parts: &[P]) -> Option<f64> {
    if parts.is_empty() { None } else { parts.iter().map(Part::amount).sum() }
}

/// Returns an event as it appears in endpoint versions with only cliffs.
pub(super) fn without_linear(event: &UnlockEvent) -> Cow<'_, UnlockEvent> {
    match event.linear_unlocks.get() {
        None => Cow::Borrowed(event),
        Some(_) => Cow::Owned(UnlockEvent { linear_unlocks: Maybe::Absent, ..event.clone() }),
    }
}

//! The parts of an event: which row is which, and what stands in the place of what is missing.

use std::borrow::Cow;

use model::{
    format,
    wire::{CliffAllocation, LinearAllocation, Maybe, UnlockEvent},
};

/// Sources round what they sum up: totals that differ by less, relatively, are equal.
const ROUNDING: f64 = 1e-6;

/// Whether two amounts are known and the same.
pub(super) fn same_amount(a: Option<f64>, b: Option<f64>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if crate::diff::close(a, b, ROUNDING))
}

/// A recipient's cliff or linear segment.
pub(super) trait Part: Clone {
    fn name(&self) -> Option<&str>;
    fn set_name(&mut self, name: &str);
    fn amount(&self) -> Option<f64>;
    fn set_amount(&mut self, amount: f64);
    /// Takes what is missing from what was known.
    fn fill(&mut self, known: &Self);
    /// The facts of the schedule that this row lacks and the other has, for people.
    fn lacks(&self, known: &Self) -> Vec<&'static str>;

    /// Its place in a list, for people: `[Team]`.
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
        // A value belongs to an amount, and a date to its event.
        if self.amount().is_some() && !same_amount(self.amount(), known.amount()) {
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
        let differs = self.amount().is_some() && !same_amount(self.amount(), known.amount());
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

/// Whether a list has other recipients in the place of known ones, or of none.
pub(super) fn is_written_anew<P: Part>(parts: &[P], known: &[P]) -> bool {
    let lacks = |all: &[P], part: &P| all.iter().all(|other| other.name() != part.name());
    parts.iter().any(|part| lacks(known, part)) && (known.is_empty() || known.iter().any(|part| lacks(parts, part)))
}

/// What is said around a list of parts.
pub(super) struct Gaps<'a, P> {
    /// The total that the answer tells.
    pub(super) total: Option<f64>,
    /// The total that was known.
    pub(super) known_total: Option<f64>,
    /// Rows of the answer could not be read.
    pub(super) has_lost_rows: bool,
    /// Whether a part stands elsewhere now.
    pub(super) has_arrived: &'a dyn Fn(&P) -> bool,
}

/// What was filled in.
#[derive(Default)]
pub(super) struct Filled {
    /// Places in the list, with what was wrong.
    pub(super) problems: Vec<(String, String)>,
    /// What the parts come to, where all are known.
    pub(super) total: Option<f64>,
    /// The total of the answer cannot be that of the parts that are held: theirs counts.
    pub(super) overrules_total: bool,
}

/// Completes a list of parts with those that were known.
pub(super) fn complete_breakdown<P: Part>(list: &mut Maybe<Vec<P>>, known: &[P], gaps: &Gaps<'_, P>) -> Filled {
    let mut filled = Filled::default();
    if known.is_empty() {
        // Nothing was there, and nothing is: a list that is missing from that is no amount of zero.
        if list.get().is_none() && gaps.known_total == Some(0.0) && gaps.total.is_none_or(|total| total == 0.0) {
            *list = Vec::new().into();
        }
        filled.total = sum(list.items());
        return filled;
    }
    // No list; or one without any row, beside a total that is not zero or where rows were lost.
    let is_missing =
        list.get().is_none_or(|rows| rows.is_empty() && gaps.total != Some(0.0) && (gaps.total.is_some() || gaps.has_lost_rows));
    if is_missing {
        *list = known.to_vec().into();
        filled.total = sum(known).or(gaps.known_total);
        let agrees = gaps.total.is_none() || same_amount(gaps.total, filled.total);
        filled.overrules_total = !agrees;
        let problem = if agrees {
            "missing; the last known one stays"
        } else {
            "missing, and the total is another one; the last known one stays until its parts are told"
        };
        filled.problems.push((String::new(), problem.to_owned()));
        return filled;
    }
    let Some(rows) = list.get_mut() else { return filled };
    let was_full = rows.len() >= known.len();
    let mut free = vec![true; known.len()];
    let mut known_of = by_name(rows, known, &mut free);
    let lost = name_the_nameless(rows, known, &mut known_of, &mut free, &mut filled);
    for (row, known_of) in rows.iter_mut().zip(&known_of) {
        let Some(known) = known_of.and_then(|k| known.get(k)) else { continue };
        let place = row.place();
        filled.problems.extend(
            row.lacks(known)
                .into_iter()
                // The date of a part says nothing that its event does not.
                .filter(|field| *field != "unlockDate")
                .map(|field| (format!("{place}.{field}"), "missing; the last known one stays".to_owned())),
        );
        row.fill(known);
    }
    let absent: Vec<&P> = known.iter().zip(&free).filter(|(_, free)| **free).map(|(part, _)| part).collect();
    if !absent.is_empty() && (!was_full || lost > 0) && is_gap(rows, &absent, lost > 0, gaps) {
        for part in absent {
            filled.problems.push((part.place(), "missing; the last known one stays".to_owned()));
            rows.push(part.clone());
        }
    }
    filled.total = sum(rows);
    filled
}

/// Whether parts that a list lacks are missing from it, rather than gone: what the total tells decides; without one, whether rows were
/// lost.
fn is_gap<P: Part>(rows: &[P], absent: &[&P], has_unnamed: bool, gaps: &Gaps<'_, P>) -> bool {
    if absent.iter().any(|part| (gaps.has_arrived)(part)) {
        return false;
    }
    let of_absent = absent.iter().map(|part| part.amount()).sum::<Option<f64>>();
    match (gaps.total, sum(rows), of_absent) {
        (Some(total), Some(there), _) if same_amount(Some(total), Some(there)) => false,
        (Some(total), Some(there), Some(absent)) if same_amount(Some(total), Some(there + absent)) => true,
        _ => gaps.has_lost_rows || has_unnamed,
    }
}

/// Which known part each row is, by allocation; of several of one allocation those of one amount first, then in order.
fn by_name<P: Part>(rows: &[P], known: &[P], free: &mut [bool]) -> Vec<Option<usize>> {
    let mut known_of = vec![None; rows.len()];
    for by_amount in [true, false] {
        for (row, place) in rows.iter().zip(&mut known_of).filter(|(_, place)| place.is_none()) {
            let found = (0..known.len()).find(|k| {
                free[*k] && known[*k].name() == row.name() && (!by_amount || same_amount(known[*k].amount(), row.amount()))
            });
            if let Some(k) = found {
                *place = Some(k);
                free[k] = false;
            }
        }
    }
    known_of
}

/// Rows that lost their allocation: the only known part that they can be, by amount or because no other is left. A row that may be any
/// of several says nothing, and is left out; how many those are.
fn name_the_nameless<P: Part>(
    rows: &mut Vec<P>,
    known: &[P],
    known_of: &mut Vec<Option<usize>>,
    free: &mut [bool],
    filled: &mut Filled,
) -> usize {
    let mut lost = vec![false; rows.len()];
    for r in 0..rows.len() {
        if rows[r].name().is_some() || known_of[r].is_some() || !free.iter().any(|free| *free) {
            continue;
        }
        let left: Vec<usize> = (0..known.len()).filter(|k| free[*k]).collect();
        let alike: Vec<usize> = left.iter().copied().filter(|k| same_amount(known[*k].amount(), rows[r].amount())).collect();
        let found = match (alike.as_slice(), left.as_slice()) {
            ([k], _) => Some(*k),
            ([], [k]) if rows[r].amount().is_none() => Some(*k),
            _ => None,
        };
        match found {
            Some(k) => {
                known_of[r] = Some(k);
                free[k] = false;
                rows[r].set_name(known[k].name().unwrap_or_default());
                filled.problems.push((rows[r].place(), "allocationName is missing; the last known one stays".to_owned()));
            }
            None => {
                lost[r] = true;
                filled.problems.push((format!("[{r}]"), "allocationName is missing; the row is left out".to_owned()));
            }
        }
    }
    let count = lost.iter().filter(|lost| **lost).count();
    if count > 0 {
        let mut keep = lost.iter();
        rows.retain(|_| !keep.next().copied().unwrap_or_default());
        let mut keep = lost.iter();
        known_of.retain(|_| !keep.next().copied().unwrap_or_default());
    }
    count
}

pub(super) fn sum<P: Part>(parts: &[P]) -> Option<f64> {
    if parts.is_empty() { None } else { parts.iter().map(Part::amount).sum() }
}

/// An event as versions show it that have cliffs alone.
pub(super) fn without_linear(event: &UnlockEvent) -> Cow<'_, UnlockEvent> {
    match event.linear_unlocks.get() {
        None => Cow::Borrowed(event),
        Some(_) => Cow::Owned(UnlockEvent { linear_unlocks: Maybe::Absent, ..event.clone() }),
    }
}

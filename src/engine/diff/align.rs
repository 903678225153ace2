//! Aligns the old and the new tranches of one series: which of the new is which of the old.
//!
//! Not the nearest date, but the cheapest explanation of the whole series decides. Each candidate shift (none; first to first, last
//! to last, in order; shifts that other series of the token made) is tried: tranches that it explains are paired, tranches that
//! stayed where they were are its exceptions, a tranche cut in several or several joined are found by their sums, and what is left
//! is aligned in date order by dynamic programming. The cheapest candidate wins. A monthly series that moves by a month overlaps
//! itself in all but its ends; paired by date it would read as one tranche removed and one added.

use super::{close, tranche::Tranche};

/// Days by which the tranches of one shifted series may scatter: series step in calendar months.
pub(super) const SCATTER_MS: i64 = 4 * DAY_MS;
pub(super) const DAY_MS: i64 = 86_400_000;

/// Tranches that no candidate explains, of each side, up to which they are aligned pair by pair. Beyond, they are only paired in
/// order where as many are new as old, so that 10,000 tranches never cost seconds.
const MAX_ALIGNED: usize = 256;

/// Sums of parts are compared with at least this relative tolerance: sources round each part.
const SUM_TOLERANCE: f64 = 1e-6;

/// Cost of a candidate shift itself; less for one that other series of the token made too.
const SHIFT_COST: f64 = 1.0;
const HINTED_SHIFT_COST: f64 = 0.6;
/// Cost of a tranche that did not move with its series.
const EXCEPTION_COST: f64 = 0.2;
/// Each further tranche of a run that is added or removed at once.
const RUN_COST: f64 = 0.1;

/// The same tranche before and after, by index.
pub(super) type TranchePair = (usize, usize);
/// Tranches that became others of the same sum, by index: one cut into several, several joined into one.
pub(super) type TrancheGroup = (Vec<usize>, Vec<usize>);

/// What became of the tranches of a series: indices into the slices that were aligned.
#[derive(Clone, Debug, Default)]
pub(super) struct Alignment {
    pub(super) pairs: Vec<TranchePair>,
    pub(super) groups: Vec<TrancheGroup>,
    /// The shift, milliseconds, that explains most; zero where none does.
    pub(super) shift: i64,
    cost: f64,
}

/// Aligns two series, each sorted by begin, end and amount. `hints` are shifts seen elsewhere in the token.
pub(super) fn align(old: &[&Tranche<'_>], new: &[&Tranche<'_>], hints: &[i64], tolerance: f64) -> Alignment {
    let still = AlignmentAttempt::new(old, new, tolerance).in_place();
    if still.cost == 0.0 || old.is_empty() || new.is_empty() {
        return still;
    }
    // A part of what was there, or all of it with more: nothing moved, however cheaply a shift would put it.
    let is_part = still.groups.is_empty()
        && still.pairs.len() == old.len().min(new.len())
        && still.pairs.iter().all(|(i, j)| {
            let (old, new) = (old[*i], new[*j]);
            (old.at, old.end) == (new.at, new.end) && changed_ratio(old, new, tolerance).is_none()
        });
    if is_part {
        return still;
    }
    let mut best = still;
    for (shift, hinted) in candidates(old, new, &best, hints) {
        let moved = AlignmentAttempt::new(old, new, tolerance).moved_by(shift, hinted);
        // Of equal explanations the one that moves nothing is the better.
        if moved.cost < best.cost - 1e-9 {
            best = moved;
        }
    }
    best
}

fn candidates(old: &[&Tranche<'_>], new: &[&Tranche<'_>], still: &Alignment, hints: &[i64]) -> Vec<(i64, bool)> {
    let mut found: Vec<(i64, bool)> = hints.iter().map(|hint| (*hint, true)).collect();
    let mut offer = |old: &[&Tranche<'_>], new: &[&Tranche<'_>]| {
        if let (Some(first_old), Some(first_new), Some(last_old), Some(last_new)) =
            (old.first(), new.first(), old.last(), new.last())
        {
            let mut shifts = vec![first_new.at - first_old.at, last_new.at - last_old.at];
            if old.len() == new.len() {
                let mut steps: Vec<i64> = old.iter().zip(new).map(|(a, b)| b.at - a.at).collect();
                steps.sort_unstable();
                shifts.extend(steps.get(steps.len() / 2));
            }
            for shift in shifts {
                if shift != 0 && !found.iter().any(|(known, _)| *known == shift) {
                    found.push((shift, false));
                }
            }
        }
    };
    offer(old, new);
    offer(old.get(1..).unwrap_or_default(), new.get(1..).unwrap_or_default());
    // What stayed exactly is perhaps an exception: the shift of the others shows without it.
    let mut old_stays = vec![false; old.len()];
    let mut new_stays = vec![false; new.len()];
    for (i, j) in &still.pairs {
        if old[*i].at == new[*j].at {
            old_stays[*i] = true;
            new_stays[*j] = true;
        }
    }
    let rest = |all: &[&Tranche<'_>], stays: &[bool]| all.iter().zip(stays).filter(|(_, stays)| !**stays).count();
    if rest(old, &old_stays) > 0 && rest(new, &new_stays) > 0 {
        let old_rest: Vec<&Tranche<'_>> = old.iter().zip(&old_stays).filter(|(_, stays)| !**stays).map(|(t, _)| *t).collect();
        let new_rest: Vec<&Tranche<'_>> = new.iter().zip(&new_stays).filter(|(_, stays)| !**stays).map(|(t, _)| *t).collect();
        offer(&old_rest, &new_rest);
    }
    found
}

/// One try to explain a series.
struct AlignmentAttempt<'a, 't> {
    old: &'a [&'a Tranche<'t>],
    new: &'a [&'a Tranche<'t>],
    tolerance: f64,
    old_used: Vec<bool>,
    new_used: Vec<bool>,
    out: Alignment,
}

impl<'a, 't> AlignmentAttempt<'a, 't> {
    fn new(old: &'a [&'a Tranche<'t>], new: &'a [&'a Tranche<'t>], tolerance: f64) -> Self {
        let out = Alignment { pairs: Vec::with_capacity(old.len().min(new.len())), ..Alignment::default() };
        Self { old, new, tolerance, old_used: vec![false; old.len()], new_used: vec![false; new.len()], out }
    }

    /// Nothing moved as a whole.
    fn in_place(mut self) -> Alignment {
        self.pair_equals();
        if !self.regroup() {
            self.pair_same_date();
            if !self.regroup() {
                self.align_rest();
            }
        }
        self.finish(0.0, 0.0)
    }

    /// All moved by `shift`, but for exceptions.
    fn moved_by(mut self, shift: i64, hinted: bool) -> Alignment {
        let tolerance = self.scatter();
        let (mut i, mut j) = (0, 0);
        while let (Some(old), Some(new)) = (self.old.get(i), self.new.get(j)) {
            let off = new.at - (old.at + shift);
            if off.abs() <= tolerance {
                self.pair(i, j);
                i += 1;
                j += 1;
            } else if off > 0 {
                i += 1;
            } else {
                j += 1;
            }
        }
        self.out.shift = shift;
        let before = self.out.pairs.len();
        self.pair_equals();
        #[expect(clippy::cast_precision_loss, reason = "a count of tranches")]
        let exceptions = (self.out.pairs.len() - before) as f64 * EXCEPTION_COST;
        if !self.regroup() {
            self.align_rest();
        }
        self.finish(if hinted { HINTED_SHIFT_COST } else { SHIFT_COST }, exceptions)
    }

    /// How far a tranche may lie off its shifted place: never so far that its neighbour is meant.
    fn scatter(&self) -> i64 {
        let step = |all: &[&Tranche<'_>]| all.windows(2).map(|two| two[1].at - two[0].at).filter(|gap| *gap > 0).min();
        let gap = step(self.old).into_iter().chain(step(self.new)).min().unwrap_or(i64::MAX);
        SCATTER_MS.min(gap / 5 * 2)
    }

    fn pair(&mut self, i: usize, j: usize) {
        self.old_used[i] = true;
        self.new_used[j] = true;
        self.out.pairs.push((i, j));
    }

    fn rest_old(&self) -> Vec<usize> {
        (0..self.old.len()).filter(|i| !self.old_used[*i]).collect()
    }

    fn rest_new(&self) -> Vec<usize> {
        (0..self.new.len()).filter(|j| !self.new_used[*j]).collect()
    }

    /// Pairs what is equal in dates and amount.
    fn pair_equals(&mut self) {
        let (old, new) = (self.rest_old(), self.rest_new());
        let (mut a, mut b) = (0, 0);
        while let (Some(&i), Some(&j)) = (old.get(a), new.get(b)) {
            let (o, n) = (self.old[i], self.new[j]);
            match (o.at, o.end).cmp(&(n.at, n.end)) {
                std::cmp::Ordering::Less => a += 1,
                std::cmp::Ordering::Greater => b += 1,
                std::cmp::Ordering::Equal => match (o.amount, n.amount) {
                    (None, None) => {
                        self.pair(i, j);
                        a += 1;
                        b += 1;
                    }
                    (Some(x), Some(y)) if close(x, y, self.tolerance) => {
                        self.pair(i, j);
                        a += 1;
                        b += 1;
                    }
                    (x, y) if x.unwrap_or(f64::NEG_INFINITY) < y.unwrap_or(f64::NEG_INFINITY) => a += 1,
                    _ => b += 1,
                },
            }
        }
    }

    /// Pairs what begins at the same instant.
    fn pair_same_date(&mut self) {
        let (old, new) = (self.rest_old(), self.rest_new());
        let (mut a, mut b) = (0, 0);
        while let (Some(&i), Some(&j)) = (old.get(a), new.get(b)) {
            match self.old[i].at.cmp(&self.new[j].at) {
                std::cmp::Ordering::Less => a += 1,
                std::cmp::Ordering::Greater => b += 1,
                std::cmp::Ordering::Equal => {
                    self.pair(i, j);
                    a += 1;
                    b += 1;
                }
            }
        }
    }

    /// Explains the whole rest, in date order, as tranches that were cut or joined and keep their sum. All or nothing.
    fn regroup(&mut self) -> bool {
        let (old, new) = (self.rest_old(), self.rest_new());
        let Some(groups) = regroup(&old, &new, |i| self.old[i].amount, |j| self.new[j].amount, self.tolerance) else {
            return false;
        };
        for (i, j) in groups {
            if let ([i], [j]) = (&i[..], &j[..]) {
                self.pair(*i, *j);
                continue;
            }
            for i in &i {
                self.old_used[*i] = true;
            }
            for j in &j {
                self.new_used[*j] = true;
            }
            self.out.groups.push((i, j));
        }
        true
    }

    /// Aligns the rest in date order: each pair, addition and removal has a cost, the cheapest sum wins.
    fn align_rest(&mut self) {
        let (old, new) = (self.rest_old(), self.rest_new());
        if old.is_empty() || new.is_empty() {
            return;
        }
        if old.len() > MAX_ALIGNED || new.len() > MAX_ALIGNED {
            if old.len() == new.len() {
                for (i, j) in old.into_iter().zip(new) {
                    self.pair(i, j);
                }
            }
            return;
        }
        let width = new.len() + 1;
        let mut cost = vec![0.0_f64; (old.len() + 1) * width];
        for a in 0..=old.len() {
            for b in 0..=new.len() {
                let at = a * width + b;
                cost[at] = match (a, b) {
                    (0, 0) => 0.0,
                    (0, _) => cost[at - 1] + 1.0,
                    (_, 0) => cost[at - width] + 1.0,
                    _ => {
                        let paired = cost[at - width - 1] + self.pair_cost(old[a - 1], new[b - 1]);
                        // Of equal explanations a pair is the better.
                        paired.min((cost[at - 1] + 1.0).min(cost[at - width] + 1.0))
                    }
                };
            }
        }
        let (mut a, mut b) = (old.len(), new.len());
        while a > 0 && b > 0 {
            let at = a * width + b;
            if (cost[at] - (cost[at - width - 1] + self.pair_cost(old[a - 1], new[b - 1]))).abs() < 1e-12 {
                self.pair(old[a - 1], new[b - 1]);
                a -= 1;
                b -= 1;
            } else if (cost[at] - (cost[at - width] + 1.0)).abs() < 1e-12 {
                a -= 1;
            } else {
                b -= 1;
            }
        }
    }

    /// What it costs to say that `old[i]` became `new[j]`; from 2 on it is cheaper to say that one went and the other came.
    fn pair_cost(&self, i: usize, j: usize) -> f64 {
        let (old, new) = (self.old[i], self.new[j]);
        let mut cost = 0.0;
        if old.at != new.at {
            cost += 1.0;
            let (from, to) = (old.at.min(new.at), old.at.max(new.at));
            let passed = self.new.partition_point(|t| t.at < to) - self.new.partition_point(|t| t.at <= from);
            if passed > 0 {
                cost += 0.5;
            }
        }
        if let Some(ratio) = changed_ratio(old, new, self.tolerance) {
            let far = (new.at - old.at).abs() > 400 * DAY_MS;
            let size = if ratio > 0.0 { ratio.ln().abs().min(1.0) } else { 1.0 };
            cost += 0.4 + 0.6 * size + if far { 0.2 } else { 0.0 };
        }
        if end_moved_apart(old, new) {
            cost += 0.3;
        }
        cost
    }

    fn finish(mut self, shift_cost: f64, exceptions: f64) -> Alignment {
        let mut cost = shift_cost + exceptions;
        let (mut ratios, mut ends) = (Vec::new(), Vec::new());
        let tolerance = self.scatter();
        for (i, j) in &self.out.pairs {
            let (old, new) = (self.old[*i], self.new[*j]);
            let off = new.at - old.at;
            if off != 0 && (self.out.shift == 0 || (off - self.out.shift).abs() > tolerance) {
                cost += self.pair_cost(*i, *j).max(1.0);
            } else if let Some(ratio) = changed_ratio(old, new, self.tolerance) {
                ratios.push(ratio);
            }
            if end_moved_apart(old, new)
                && let (Some(from), Some(to)) = (old.end, new.end)
            {
                ends.push((to - from) / SCATTER_MS);
            }
        }
        ratios.sort_by(f64::total_cmp);
        ratios.dedup_by(|a, b| close(*a, *b, super::RATIO_TOLERANCE));
        ends.sort_unstable();
        ends.dedup();
        #[expect(clippy::cast_precision_loss, reason = "counts of tranches")]
        {
            cost += (ratios.len() + ends.len()) as f64;
            if !self.out.groups.is_empty() {
                cost += 1.0 + RUN_COST * (self.out.groups.len() - 1) as f64;
            }
        }
        cost += run_cost(&self.old_used) + run_cost(&self.new_used);
        self.out.cost = cost;
        self.out.pairs.sort_unstable();
        self.out
    }
}

/// Cost of what is not paired: a run of neighbours is one thing.
fn run_cost(used: &[bool]) -> f64 {
    let mut cost = 0.0;
    let mut within = false;
    for used in used {
        if !used {
            cost += if within { RUN_COST } else { 1.0 };
        }
        within = !used;
    }
    cost
}

/// Amount after by amount before, where both are known and differ.
pub(super) fn changed_ratio(old: &Tranche<'_>, new: &Tranche<'_>, tolerance: f64) -> Option<f64> {
    let (from, to) = (old.amount?, new.amount?);
    (!close(from, to, tolerance)).then(|| if from == 0.0 { f64::INFINITY } else { to / from })
}

/// Whether a linear segment's end moved, and not as its begin did.
pub(super) fn end_moved_apart(old: &Tranche<'_>, new: &Tranche<'_>) -> bool {
    let (Some(from), Some(to)) = (old.end, new.end) else {
        return false;
    };
    let (begin, end) = (new.at - old.at, to - from);
    let slack = if begin == 0 { 0 } else { SCATTER_MS };
    end != 0 && (end - begin).abs() > slack
}

/// Walks two lists in order and groups them so that each group keeps its sum and has one member on one side. None where that does
/// not work out to the last member, or where nothing but plain pairs results.
pub(super) fn regroup(
    old: &[usize],
    new: &[usize],
    old_amount: impl Fn(usize) -> Option<f64>,
    new_amount: impl Fn(usize) -> Option<f64>,
    tolerance: f64,
) -> Option<Vec<TrancheGroup>> {
    if old.is_empty() || new.is_empty() || old.len() + new.len() < 3 {
        return None;
    }
    let tolerance = tolerance.max(SUM_TOLERANCE);
    let (mut a, mut b) = (old.iter(), new.iter());
    let mut groups = Vec::new();
    loop {
        let (i, j) = match (a.next(), b.next()) {
            (Some(i), Some(j)) => (*i, *j),
            (None, None) => break,
            _ => return None,
        };
        let (mut from, mut to) = (vec![i], vec![j]);
        let (mut old_sum, mut new_sum) = (old_amount(i)?, new_amount(j)?);
        while !close(old_sum, new_sum, tolerance) {
            if old_sum < new_sum {
                let i = *a.next()?;
                old_sum += old_amount(i)?;
                from.push(i);
            } else {
                let j = *b.next()?;
                new_sum += new_amount(j)?;
                to.push(j);
            }
            if from.len() > 1 && to.len() > 1 {
                return None;
            }
        }
        groups.push((from, to));
    }
    groups.iter().any(|(from, to)| from.len() != to.len()).then_some(groups)
}

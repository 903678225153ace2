//! Aligns the old and the new tranches of one series.
//!
//! The cheapest explanation of the whole series decides, not the nearest date. A monthly series that moves by a month overlaps itself in
//! all but its ends; paired by date, it would read as one tranche removed and one added. Each candidate shift is tried: none; first to
//! first, last to last, and in order; and the shifts of other series of the token. Within a candidate:
//!
//! 1. The first tranches that stayed in place are paired, as those that vested already. So are the tranches that the shift explains, and
//!    other exceptions to it.
//! 2. A tranche that was cut, or several that were joined, are found by their sums.
//! 3. Dynamic programming aligns the rest in date order.

use std::ops::Range;

use super::{
    index::{List, New, NewPlace, Old, OldPlace, PlaceOf, Side},
    timeline::{IndexGroup, Pair},
    tolerances::{self, DAY_MS, SCATTER_MS, close, close_or_none},
    tranche::Tranche,
};

/// The maximum number of tranches of each side, left over by a candidate, that are aligned pair by pair. More are paired in order, and
/// only if both sides have the same number, so that 10,000 tranches never cost seconds.
const MAX_ALIGNED: usize = 256;

/// The cost of a shift; less if other series of the token made the same one.
const SHIFT_COST: f64 = 1.0;
const HINTED_SHIFT_COST: f64 = 0.6;
/// The cost of a run of tranches that did not move with their series, such as those that have vested.
const EXCEPTION_COST: f64 = 0.2;
/// The cost of each further tranche in a run of added or removed ones.
const RUN_COST: f64 = 0.1;
/// A cost difference below this is a rounding error.
const COST_ROUNDING: f64 = 1e-9;

/// The tranches of one series and one side, sorted by start, end, and amount.
pub(super) type Series<'s, 'a, S> = List<PlaceOf<S>, &'s Tranche<'a, S>>;
type PlacePair = Pair<OldPlace, NewPlace>;
type PlaceGroup = IndexGroup<OldPlace, NewPlace>;

/// An explanation of one series. Tranches in no pair and no group were removed or added.
#[derive(Clone, Debug, Default)]
pub(super) struct Alignment {
    pub(super) pairs: Vec<PlacePair>,
    pub(super) groups: Vec<PlaceGroup>,
    /// The shift, in milliseconds; zero if the series did not move.
    pub(super) shift: i64,
    /// The number of pairs that the shift explains.
    pub(super) shifted: usize,
    cost: f64,
}

/// A shift to try, in milliseconds.
#[derive(Clone, Copy)]
struct Candidate {
    shift: i64,
    /// Whether another series of the token made the same shift.
    is_hinted: bool,
}

/// Aligns two sides of a series. `hints` are shifts of other series of the token.
pub(super) fn align(old: &Series<'_, '_, Old>, new: &Series<'_, '_, New>, hints: &[i64], tolerance: f64) -> Alignment {
    let in_place = AlignAttempt::new(old, new, tolerance).in_place();
    if in_place.cost == 0.0 || old.is_empty() || new.is_empty() {
        return in_place;
    }
    // If all tranches of one side are unchanged on the other side, nothing moved, even if a shift would cost less. If other series of the
    // token moved, this one may have moved with them.
    let is_part = hints.is_empty()
        && in_place.groups.is_empty()
        && in_place.pairs.len() == old.len().min(new.len())
        && in_place.pairs.iter().all(|pair| {
            let (old, new) = (old[pair.old], new[pair.new]);
            (old.at, old.end) == (new.at, new.end) && changed_ratio(old, new, tolerance).is_none()
        });
    if is_part {
        return in_place;
    }
    let mut best = in_place;
    for candidate in candidates(old, new, &best, hints) {
        let moved = AlignAttempt::new(old, new, tolerance).moved(candidate);
        // Of equal explanations, the one without a shift is better.
        if moved.cost < best.cost - COST_ROUNDING {
            best = moved;
        }
    }
    best
}

fn candidates(old: &Series<'_, '_, Old>, new: &Series<'_, '_, New>, in_place: &Alignment, hints: &[i64]) -> Vec<Candidate> {
    // Tranches that stayed in place may be exceptions: the shift of the others shows without them.
    let (mut old_stays, mut new_stays) = (List::filled(false, old.len()), List::filled(false, new.len()));
    for pair in &in_place.pairs {
        if old[pair.old].at == new[pair.new].at {
            (old_stays[pair.old], new_stays[pair.new]) = (true, true);
        }
    }
    fn moving<'s, 'a, S: Side>(all: &Series<'s, 'a, S>, stays: &List<PlaceOf<S>, bool>) -> Vec<&'s Tranche<'a, S>> {
        all.indexed().filter(|(place, _)| !stays[*place]).map(|(_, tranche)| *tranche).collect()
    }
    let (old_moving, new_moving) = (moving(old, &old_stays), moving(new, &new_stays));
    let (old, new) = (old.as_slice(), new.as_slice());
    let without_first = (old.get(1..).unwrap_or_default(), new.get(1..).unwrap_or_default());

    let mut found: Vec<Candidate> = hints.iter().map(|shift| Candidate { shift: *shift, is_hinted: true }).collect();
    for (old, new) in [(old, new), without_first, (&old_moving, &new_moving)] {
        for shift in obvious_shifts(old, new) {
            if shift != 0 && found.iter().all(|known| known.shift != shift) {
                found.push(Candidate { shift, is_hinted: false });
            }
        }
    }
    found
}

/// Returns the shifts from first to first, from last to last, and the median of both sides in order.
fn obvious_shifts(old: &[&Tranche<'_, Old>], new: &[&Tranche<'_, New>]) -> Vec<i64> {
    let (Some(first_old), Some(first_new), Some(last_old), Some(last_new)) = (old.first(), new.first(), old.last(), new.last())
    else {
        return Vec::new();
    };
    let mut shifts = vec![first_new.at - first_old.at, last_new.at - last_old.at];
    if old.len() == new.len() {
        let mut steps: Vec<i64> = old.iter().zip(new).map(|(old, new)| new.at - old.at).collect();
        steps.sort_unstable();
        shifts.extend(steps.get(steps.len() / 2));
    }
    shifts
}

/// An attempt to explain a series.
struct AlignAttempt<'s, 'a> {
    old: &'s Series<'s, 'a, Old>,
    new: &'s Series<'s, 'a, New>,
    tolerance: f64,
    old_used: List<PlaceOf<Old>, bool>,
    new_used: List<PlaceOf<New>, bool>,
    /// The number of first tranches that are unchanged, such as vested ones.
    stayed: usize,
    alignment: Alignment,
}

impl<'s, 'a> AlignAttempt<'s, 'a> {
    fn new(old: &'s Series<'s, 'a, Old>, new: &'s Series<'s, 'a, New>, tolerance: f64) -> Self {
        let alignment = Alignment { pairs: Vec::with_capacity(old.len().min(new.len())), ..Alignment::default() };
        let (old_used, new_used) = (List::filled(false, old.len()), List::filled(false, new.len()));
        Self { old, new, tolerance, old_used, new_used, stayed: 0, alignment }
    }

    /// Explains the series without a shift.
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

    /// Explains the series by a shift with exceptions.
    fn moved(mut self, candidate: Candidate) -> Alignment {
        let Candidate { shift, is_hinted } = candidate;
        let (old, new) = (self.old, self.new);
        self.pair_first_equals();
        let stayed = self.alignment.pairs.len();
        self.stayed = stayed;
        let scatter = self.max_scatter();
        let (mut olds, mut news) = (old.indices().skip(stayed).peekable(), new.indices().skip(stayed).peekable());
        while let (Some(i), Some(j)) = (olds.peek().copied(), news.peek().copied()) {
            let off = new[j].at - (old[i].at + shift);
            if off.abs() <= scatter {
                self.pair(i, j);
            }
            if off >= -scatter {
                olds.next();
            }
            if off <= scatter {
                news.next();
            }
        }
        self.alignment.shift = shift;
        self.alignment.shifted = self.alignment.pairs.len() - stayed;
        self.pair_equals();
        let exceptions = self.exception_cost(stayed..stayed + self.alignment.shifted);
        if !self.regroup() {
            self.align_rest();
        }
        self.finish(if is_hinted { HINTED_SHIFT_COST } else { SHIFT_COST }, exceptions)
    }

    /// Returns the cost of the pairs that stayed in place: all but those with an index in `shifted`.
    fn exception_cost(&self, shifted: Range<usize>) -> f64 {
        let mut stayed = List::filled(false, self.old.len());
        let pairs = self.alignment.pairs.iter().enumerate();
        pairs.filter(|(k, _)| !shifted.contains(k)).for_each(|(_, pair)| stayed[pair.old] = true);
        cost_of_runs(stayed.iter().copied(), EXCEPTION_COST, 0.0)
    }

    /// Returns how far a tranche may lie from its shifted date, in milliseconds: less than half of the smallest gap between tranches of the
    /// series that may have moved.
    fn max_scatter(&self) -> i64 {
        fn min_gap<S>(all: &Series<'_, '_, S>, stayed: usize) -> Option<i64> {
            let moving = all.as_slice().get(stayed..).unwrap_or_default();
            moving.windows(2).map(|two| two[1].at - two[0].at).filter(|gap| *gap > 0).min()
        }
        let gap = min_gap(self.old, self.stayed).into_iter().chain(min_gap(self.new, self.stayed)).min();
        gap.map_or(SCATTER_MS, |gap| SCATTER_MS.min(gap / 5 * 2))
    }

    fn pair(&mut self, old: OldPlace, new: NewPlace) {
        self.old_used[old] = true;
        self.new_used[new] = true;
        self.alignment.pairs.push(Pair { old, new });
    }

    fn rest_old(&self) -> Vec<OldPlace> {
        self.old.indices().filter(|place| !self.old_used[*place]).collect()
    }

    fn rest_new(&self) -> Vec<NewPlace> {
        self.new.indices().filter(|place| !self.new_used[*place]).collect()
    }

    /// Pairs the tranches before the first that differs.
    fn pair_first_equals(&mut self) {
        let equal = |(old, new): &(&&Tranche<'_, Old>, &&Tranche<'_, New>)| {
            (old.at, old.end) == (new.at, new.end) && close_or_none(old.amount, new.amount, self.tolerance)
        };
        let count = self.old.iter().zip(self.new.iter()).take_while(equal).count();
        for (old, new) in self.old.indices().zip(self.new.indices()).take(count) {
            self.pair(old, new);
        }
    }

    /// Pairs tranches with equal dates and amounts.
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

    /// Pairs tranches that begin at the same instant.
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

    /// Explains the whole rest, in date order, as tranches that were cut or joined. Changes nothing and returns `false` if that fails.
    fn regroup(&mut self) -> bool {
        let (old, new) = (self.rest_old(), self.rest_new());
        let Some(groups) = regroup(&old, &new, |i| self.old[i].amount, |j| self.new[j].amount, self.tolerance) else {
            return false;
        };
        for group in groups {
            if let ([old], [new]) = (&group.old[..], &group.new[..]) {
                self.pair(*old, *new);
                continue;
            }
            group.old.iter().for_each(|old| self.old_used[*old] = true);
            group.new.iter().for_each(|new| self.new_used[*new] = true);
            self.alignment.groups.push(group);
        }
        true
    }

    /// Aligns the rest in date order. Each pair, addition, and removal has a cost; the cheapest sum wins.
    fn align_rest(&mut self) {
        let (old, new) = (self.rest_old(), self.rest_new());
        if old.is_empty() || new.is_empty() {
            return;
        }
        if old.len() > MAX_ALIGNED || new.len() > MAX_ALIGNED {
            if old.len() == new.len() {
                for (old, new) in old.into_iter().zip(new) {
                    self.pair(old, new);
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
                        paired.min((cost[at - 1] + 1.0).min(cost[at - width] + 1.0))
                    }
                };
            }
        }
        let (mut a, mut b) = (old.len(), new.len());
        while a > 0 && b > 0 {
            let at = a * width + b;
            // Of equal explanations, a pair is better.
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

    /// Returns the cost of a pair. If it exceeds two, a removal and an addition cost less.
    fn pair_cost(&self, old: OldPlace, new: NewPlace) -> f64 {
        let (old, new) = (self.old[old], self.new[new]);
        let mut cost = 0.0;
        if old.at != new.at {
            cost += 1.0;
            let (from, to) = (old.at.min(new.at), old.at.max(new.at));
            let between = self.new.as_slice();
            let passed = between.partition_point(|t| t.at < to) - between.partition_point(|t| t.at <= from);
            if passed > 0 {
                cost += 0.5;
            }
        }
        if let Some(ratio) = changed_ratio(old, new, self.tolerance) {
            let is_far = (new.at - old.at).abs() > 400 * DAY_MS;
            let size = if ratio > 0.0 { ratio.ln().abs().min(1.0) } else { 1.0 };
            cost += 0.4 + 0.6 * size + if is_far { 0.2 } else { 0.0 };
        }
        if end_moved_apart(old, new) {
            cost += 0.3;
        }
        cost
    }

    fn finish(mut self, shift_cost: f64, exceptions: f64) -> Alignment {
        let mut cost = shift_cost + exceptions;
        let (mut ratios, mut ends) = (Vec::new(), Vec::new());
        let scatter = self.max_scatter();
        let shift = self.alignment.shift;
        // A shift of one tranche is a plain pair.
        let is_of_one = self.alignment.shifted == 1;
        for pair in &self.alignment.pairs {
            let (old, new) = (self.old[pair.old], self.new[pair.new]);
            let off = new.at - old.at;
            if off != 0 && (shift == 0 || (off - shift).abs() > scatter) {
                cost += self.pair_cost(pair.old, pair.new).max(1.0);
            } else if off != 0 && is_of_one && changed_ratio(old, new, self.tolerance).is_some() {
                cost += self.pair_cost(pair.old, pair.new) - 1.0;
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
        ratios.dedup_by(|a, b| close(*a, *b, tolerances::RATIO));
        ends.sort_unstable();
        ends.dedup();
        let groups = self.alignment.groups.len();
        #[expect(clippy::cast_precision_loss, reason = "counts of tranches")]
        {
            cost += (ratios.len() + ends.len()) as f64;
            if groups > 0 {
                cost += 1.0 + RUN_COST * (groups - 1) as f64;
            }
        }
        // Tranches in no pair and no group.
        cost += cost_of_runs(self.old_used.iter().map(|used| !used), 1.0, RUN_COST);
        cost += cost_of_runs(self.new_used.iter().map(|used| !used), 1.0, RUN_COST);
        self.alignment.cost = cost;
        self.alignment.pairs.sort_unstable();
        self.alignment
    }
}

/// Returns the cost of the tranches that are marked, by place. The first of a run of neighbors costs `first`, each other one `further`.
fn cost_of_runs(marked: impl Iterator<Item = bool>, first: f64, further: f64) -> f64 {
    let mut cost = 0.0;
    let mut is_in_run = false;
    for is_marked in marked {
        if is_marked {
            cost += if is_in_run { further } else { first };
        }
        is_in_run = is_marked;
    }
    cost
}

/// Returns the amount after by the amount before, if both are known and differ.
pub(super) fn changed_ratio(old: &Tranche<'_, Old>, new: &Tranche<'_, New>, tolerance: f64) -> Option<f64> {
    let (from, to) = (old.amount?, new.amount?);
    (!close(from, to, tolerance)).then(|| if from == 0.0 { f64::INFINITY } else { to / from })
}

/// Returns whether the end of a linear segment moved by another shift than the start. The start may have stayed.
pub(super) fn end_moved_apart(old: &Tranche<'_, Old>, new: &Tranche<'_, New>) -> bool {
    let (Some(from), Some(to)) = (old.end, new.end) else {
        return false;
    };
    let (begin, end) = (new.at - old.at, to - from);
    let slack = if begin == 0 { 0 } else { SCATTER_MS };
    end != 0 && (end - begin).abs() > slack
}

/// Returns whether the start and the end of a linear segment both moved, by different shifts.
pub(super) fn is_stretched(old: &Tranche<'_, Old>, new: &Tranche<'_, New>) -> bool {
    let (Some(from), Some(to)) = (old.end, new.end) else { return false };
    let (begin, end) = (new.at - old.at, to - from);
    begin != 0 && end != 0 && (end - begin).abs() > SCATTER_MS
}

/// Walks two lists in order and groups them so that each group keeps its sum and has one member on one side.
///
/// Returns `None` if that fails for any member, or if every group is a plain pair.
fn regroup<I: Copy, J: Copy>(
    old: &[I],
    new: &[J],
    old_amount: impl Fn(I) -> Option<f64>,
    new_amount: impl Fn(J) -> Option<f64>,
    tolerance: f64,
) -> Option<Vec<IndexGroup<I, J>>> {
    if old.is_empty() || new.is_empty() || old.len() + new.len() < 3 {
        return None;
    }
    let tolerance = tolerances::of_totals(tolerance);
    let (mut olds, mut news) = (old.iter().copied(), new.iter().copied());
    let mut groups = Vec::new();
    loop {
        let (i, j) = match (olds.next(), news.next()) {
            (Some(i), Some(j)) => (i, j),
            (None, None) => break,
            _ => return None,
        };
        let mut group = IndexGroup { old: vec![i], new: vec![j] };
        let (mut old_sum, mut new_sum) = (old_amount(i)?, new_amount(j)?);
        while !close(old_sum, new_sum, tolerance) {
            if old_sum < new_sum {
                let i = olds.next()?;
                old_sum += old_amount(i)?;
                group.old.push(i);
            } else {
                let j = news.next()?;
                new_sum += new_amount(j)?;
                group.new.push(j);
            }
            if group.old.len() > 1 && group.new.len() > 1 {
                return None;
            }
        }
        groups.push(group);
    }
    groups.iter().any(|group| group.old.len() != group.new.len()).then_some(groups)
}

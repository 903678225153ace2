//! Which row before is which row after.

use std::collections::{BTreeMap, HashMap};

use super::{
    facts::RecordFacts,
    shape::{RecordShape, RowIdentity},
};
use crate::diff::close;
use model::{
    change::FieldChange,
    supply::{Record, RecordKey, Resource, Timestamp},
};

/// Rows of one amount that are compared with one row; more are alike in amount only.
const MAX_COMPARED: usize = 64;

/// A row that was known, under its key.
pub(super) type KnownRow<'a, T> = (&'a RecordKey, &'a T, &'a Record);
/// Rows that may be the same, by index before and after.
type RowCandidates = (Vec<usize>, Vec<usize>);

/// Rows before and after, and which is which, by index.
pub(super) struct RowPairing<'a, T> {
    pub(super) shape: &'a RecordShape<T>,
    pub(super) known: Vec<KnownRow<'a, T>>,
    pub(super) rows: Vec<&'a T>,
    pub(super) old_facts: Vec<RecordFacts>,
    pub(super) new_facts: Vec<RecordFacts>,
    pub(super) new_of_old: Vec<Option<usize>>,
    pub(super) old_of_new: Vec<Option<usize>>,
    pub(super) tolerance: f64,
}

/// A row that is known and still there, with the facts that changed.
pub(super) struct RevisedRow {
    pub(super) old: usize,
    pub(super) new: usize,
    pub(super) fields: Vec<FieldChange>,
}

impl<'a, T> RowPairing<'a, T> {
    /// Pairs rows of one identity, then rows that were restated.
    pub(super) fn of(shape: &'a RecordShape<T>, known: Vec<KnownRow<'a, T>>, rows: Vec<&'a T>, tolerance: f64) -> Self {
        let mut pairing = Self {
            shape,
            old_facts: known.iter().map(|(_, row, _)| RecordFacts::of(shape, row)).collect(),
            new_facts: rows.iter().map(|row| RecordFacts::of(shape, row)).collect(),
            new_of_old: vec![None; known.len()],
            old_of_new: vec![None; rows.len()],
            known,
            rows,
            tolerance,
        };
        pairing.pair_identities();
        pairing.pair_incomplete();
        pairing.pair_restated();
        pairing
    }

    /// The rows that are known and still there.
    pub(super) fn revised(&self) -> Vec<RevisedRow> {
        self.new_of_old
            .iter()
            .enumerate()
            .filter_map(|(old, new)| {
                let new = (*new)?;
                Some(RevisedRow { old, new, fields: self.old_facts[old].differences(&self.new_facts[new], self.tolerance) })
            })
            .collect()
    }

    /// The rows that are known and not in the answer.
    pub(super) fn vanished(&self) -> Vec<usize> {
        (0..self.known.len()).filter(|o| self.new_of_old[*o].is_none()).collect()
    }

    fn pair(&mut self, old: usize, new: usize) {
        self.new_of_old[old] = Some(new);
        self.old_of_new[new] = Some(old);
    }

    /// Pairs rows of one identity: equal ones first, then in order.
    fn pair_identities(&mut self) {
        let shape = self.shape;
        let mut groups: BTreeMap<(Option<Timestamp>, RowIdentity<'_>), RowCandidates> = BTreeMap::new();
        for (o, (_, row, _)) in self.known.iter().enumerate() {
            groups.entry(((shape.date)(row), (shape.identity)(row))).or_default().0.push(o);
        }
        for (n, row) in self.rows.iter().enumerate() {
            groups.entry(((shape.date)(row), (shape.identity)(row))).or_default().1.push(n);
        }
        for (mut olds, mut news) in groups.into_values() {
            olds.sort_by(|a, b| self.old_amount(*a).total_cmp(&self.old_amount(*b)).then(self.known[*a].0.cmp(self.known[*b].0)));
            news.sort_by(|a, b| self.new_amount(*a).total_cmp(&self.new_amount(*b)).then(a.cmp(b)));
            olds.retain(|o| match self.find_equal(*o, &news) {
                Some(k) => {
                    let n = news.remove(k);
                    self.pair(*o, n);
                    false
                }
                None => true,
            });
            for (o, n) in olds.into_iter().zip(news) {
                self.pair(o, n);
            }
        }
    }

    fn old_amount(&self, row: usize) -> f64 {
        self.old_facts[row].amount().unwrap_or(f64::NEG_INFINITY)
    }

    fn new_amount(&self, row: usize) -> f64 {
        self.new_facts[row].amount().unwrap_or(f64::NEG_INFINITY)
    }

    /// Where in `news`, which are sorted by amount, a row stands that is equal to the old one.
    fn find_equal(&self, old: usize, news: &[usize]) -> Option<usize> {
        let amount = self.old_amount(old);
        // An equal row is among the first whose amount is not below.
        let from = news.partition_point(|n| {
            let new = self.new_amount(*n);
            new < amount && !close(new, amount, self.tolerance)
        });
        let near = news.iter().skip(from).take_while(|n| {
            let new = self.new_amount(**n);
            new <= amount || close(new, amount, self.tolerance)
        });
        let equal = |n: &usize| self.old_facts[old].same(&self.new_facts[*n], self.tolerance);
        near.take(MAX_COMPARED).position(equal).map(|k| k + from)
    }

    /// Pairs rows of which one lacks its date or a text of its identity, and that agree in all that both have: the most alike first.
    fn pair_incomplete(&mut self) {
        let shape = self.shape;
        let lacks = |row: &T| {
            let is_undated = shape.resource != Resource::Allocation && (shape.date)(row).is_none();
            is_undated || (shape.identity)(row).iter().any(|text| text.is_empty())
        };
        let mut by_date: HashMap<Option<Timestamp>, Vec<usize>> = HashMap::new();
        for o in self.vanished() {
            by_date.entry((shape.date)(self.known[o].1)).or_default().push(o);
        }
        let mut candidates = Vec::new();
        for n in (0..self.rows.len()).filter(|n| self.old_of_new[*n].is_none()) {
            let date = (shape.date)(self.rows[n]);
            let same: Vec<usize> = match date {
                Some(_) => [date, None].iter().filter_map(|date| by_date.get(date)).flatten().copied().collect(),
                None => by_date.values().flatten().copied().collect(),
            };
            let is_one_incomplete = |o: &usize| lacks(self.rows[n]) || lacks(self.known[*o].1);
            let agreeing = same.into_iter().filter(|o| is_one_incomplete(o) && self.agree(*o, n));
            candidates.extend(agreeing.map(|o| {
                (self.old_facts[o].differences(&self.new_facts[n], self.tolerance).len(), self.known[o].0.clone(), n, o)
            }));
        }
        candidates.sort();
        for (.., n, o) in candidates {
            if self.new_of_old[o].is_none() && self.old_of_new[n].is_none() {
                self.pair(o, n);
            }
        }
    }

    /// Whether two rows agree in date, texts and amount as far as both have them, and in enough to be one.
    fn agree(&self, old: usize, new: usize) -> bool {
        let (was, is) = (self.known[old].1, self.rows[new]);
        let dates = (self.shape.date)(was).zip((self.shape.date)(is));
        let amounts = self.old_facts[old].amount().zip(self.new_facts[new].amount());
        let (is_same_day, is_same_amount) = (|(a, b)| a == b, |(a, b)| close(a, b, self.tolerance));
        let (from, to) = ((self.shape.identity)(was), (self.shape.identity)(is));
        let is_named_alike = from.iter().zip(&to).all(|(a, b)| a == b && !a.is_empty());
        dates.is_none_or(is_same_day)
            && amounts.is_none_or(is_same_amount)
            && from.iter().zip(&to).all(|(a, b)| a == b || a.is_empty() || b.is_empty())
            && (dates.is_some() || amounts.is_some() || is_named_alike)
    }

    /// Pairs what is left on both sides and agrees in all but its date, or in all but its label: the same row, restated. Only where
    /// no other row could be meant.
    fn pair_restated(&mut self) {
        // Emissions are their date: another day is another record.
        if self.shape.resource == Resource::Emission {
            return;
        }
        // By date first (the label differs), then by label (the date differs). Allocations have no date: their amount must agree.
        for by_date in [true, false] {
            let mut candidates: HashMap<String, RowCandidates> = HashMap::new();
            let shape = self.shape;
            let shared =
                |row: &T| if by_date { format!("{:?}", (shape.date)(row)) } else { format!("{:?}", (shape.identity)(row)) };
            for o in self.vanished() {
                candidates.entry(shared(self.known[o].1)).or_default().0.push(o);
            }
            for n in (0..self.rows.len()).filter(|n| self.old_of_new[*n].is_none()) {
                candidates.entry(shared(self.rows[n])).or_default().1.push(n);
            }
            for (olds, news) in candidates.into_values() {
                self.pair_by_amount(&olds, &news);
            }
        }
    }

    /// Pairs rows of the same amount, where only one row on each side has it.
    fn pair_by_amount(&mut self, olds: &[usize], news: &[usize]) {
        let tolerance = self.tolerance;
        for o in olds {
            let same_amount = |n: &&usize| matches!((self.old_facts[*o].amount(), self.new_facts[**n].amount()), (Some(a), Some(b)) if a != 0.0 && close(a, b, tolerance));
            let candidates: Vec<usize> = news.iter().filter(same_amount).copied().collect();
            let [n] = candidates[..] else { continue };
            let rivals = olds.iter().filter(|other| {
                matches!((self.old_facts[**other].amount(), self.new_facts[n].amount()), (Some(a), Some(b)) if close(a, b, tolerance))
            });
            if rivals.count() == 1 && self.old_of_new[n].is_none() {
                self.pair(*o, n);
            }
        }
    }
}

//! Matches old with new rows.

use std::collections::{BTreeMap, HashMap};

use super::{
    facts::RecordFacts,
    shape::{RecordShape, RowIdentity},
};
use crate::diff::{
    index::{List, New, NewRow, Old, OldRow, RowOf},
    tolerances::close,
};
use model::{
    change::FieldChange,
    supply::{Record, RecordKey, Resource, Timestamp},
};

/// The maximum number of rows with the same amount that are compared with one row.
const MAX_COMPARED: usize = 64;

/// A known row, under its key.
pub(super) struct KnownRecord<'a, T> {
    pub(super) key: &'a RecordKey,
    pub(super) row: &'a T,
    pub(super) record: &'a Record,
    pub(super) facts: RecordFacts,
}

/// A row of the response.
pub(super) struct GivenRecord<'a, T> {
    pub(super) row: &'a T,
    pub(super) facts: RecordFacts,
}

/// Rows that may be the same.
type RowCandidates = (Vec<OldRow>, Vec<NewRow>);

/// The rows before and after a response, and their pairs.
pub(super) struct RowPairing<'a, T> {
    pub(super) shape: &'a RecordShape<T>,
    pub(super) known: List<RowOf<Old>, KnownRecord<'a, T>>,
    pub(super) given: List<RowOf<New>, GivenRecord<'a, T>>,
    new_of_old: List<RowOf<Old>, Option<NewRow>>,
    old_of_new: List<RowOf<New>, Option<OldRow>>,
    pub(super) tolerance: f64,
}

/// A known row that is in the response, with the facts that changed.
pub(super) struct RevisedRow {
    pub(super) old: OldRow,
    pub(super) new: NewRow,
    pub(super) fields: Vec<FieldChange>,
}

impl<'a, T> RowPairing<'a, T> {
    /// Pairs rows with the same identity, then rows with a gap in it, then restated rows.
    pub(super) fn new(
        shape: &'a RecordShape<T>,
        known: List<RowOf<Old>, KnownRecord<'a, T>>,
        given: List<RowOf<New>, GivenRecord<'a, T>>,
        tolerance: f64,
    ) -> Self {
        let (new_of_old, old_of_new) = (List::filled(None, known.len()), List::filled(None, given.len()));
        let mut pairing = Self { shape, known, given, new_of_old, old_of_new, tolerance };
        pairing.pair_identities();
        pairing.pair_incomplete();
        pairing.pair_restated();
        pairing
    }

    /// Returns the paired rows with the facts that changed.
    pub(super) fn revised(&self) -> Vec<RevisedRow> {
        self.new_of_old
            .indexed()
            .filter_map(|(old, new)| {
                let new = (*new)?;
                Some(RevisedRow { old, new, fields: self.differences(old, new) })
            })
            .collect()
    }

    pub(super) fn missing(&self) -> Vec<OldRow> {
        self.new_of_old.indexed().filter(|(_, new)| new.is_none()).map(|(old, _)| old).collect()
    }

    pub(super) fn added(&self) -> Vec<NewRow> {
        self.old_of_new.indexed().filter(|(_, old)| old.is_none()).map(|(new, _)| new).collect()
    }

    fn differences(&self, old: OldRow, new: NewRow) -> Vec<FieldChange> {
        self.known[old].facts.differences(&self.given[new].facts, self.tolerance)
    }

    fn pair(&mut self, old: OldRow, new: NewRow) {
        self.new_of_old[old] = Some(new);
        self.old_of_new[new] = Some(old);
    }

    /// Pairs rows with the same identity: equal ones first, then in order.
    fn pair_identities(&mut self) {
        let shape = self.shape;
        let mut groups: BTreeMap<(Option<Timestamp>, RowIdentity<'_>), RowCandidates> = BTreeMap::new();
        for (o, KnownRecord { row, .. }) in self.known.indexed() {
            groups.entry(((shape.date)(row), (shape.identity)(row))).or_default().0.push(o);
        }
        for (n, GivenRecord { row, .. }) in self.given.indexed() {
            groups.entry(((shape.date)(row), (shape.identity)(row))).or_default().1.push(n);
        }
        for (mut olds, mut news) in groups.into_values() {
            olds.sort_by(|a, b| {
                self.old_amount(*a).total_cmp(&self.old_amount(*b)).then(self.known[*a].key.cmp(self.known[*b].key))
            });
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

    fn old_amount(&self, row: OldRow) -> f64 {
        self.known[row].facts.amount().unwrap_or(f64::NEG_INFINITY)
    }

    fn new_amount(&self, row: NewRow) -> f64 {
        self.given[row].facts.amount().unwrap_or(f64::NEG_INFINITY)
    }

    /// Returns the position of an equal row in `news`, which are sorted by amount.
    fn find_equal(&self, old: OldRow, news: &[NewRow]) -> Option<usize> {
        let amount = self.old_amount(old);
        // An equal row is among the first whose amount is not smaller.
        let from = news.partition_point(|n| {
            let new = self.new_amount(*n);
            new < amount && !close(new, amount, self.tolerance)
        });
        let near = news.iter().skip(from).take_while(|n| {
            let new = self.new_amount(**n);
            new <= amount || close(new, amount, self.tolerance)
        });
        let is_equal = |n: &NewRow| self.known[old].facts.same(&self.given[*n].facts, self.tolerance);
        near.take(MAX_COMPARED).position(is_equal).map(|k| k + from)
    }

    /// Pairs rows of which one lacks its date or a text of its identity, if they agree in all facts that both have. Pairs with the most
    /// facts in common come first.
    fn pair_incomplete(&mut self) {
        let shape = self.shape;
        let lacks = |row: &T| {
            let is_undated = shape.resource != Resource::Allocation && (shape.date)(row).is_none();
            is_undated || (shape.identity)(row).iter().any(|text| text.is_empty())
        };
        let mut by_date: HashMap<Option<Timestamp>, Vec<OldRow>> = HashMap::new();
        for o in self.missing() {
            by_date.entry((shape.date)(self.known[o].row)).or_default().push(o);
        }
        let mut candidates = Vec::new();
        for n in self.added() {
            let row = self.given[n].row;
            let date = (shape.date)(row);
            let same: Vec<OldRow> = match date {
                Some(_) => [date, None].iter().filter_map(|date| by_date.get(date)).flatten().copied().collect(),
                None => by_date.values().flatten().copied().collect(),
            };
            let is_one_incomplete = |o: &OldRow| lacks(row) || lacks(self.known[*o].row);
            let agreeing = same.into_iter().filter(|o| is_one_incomplete(o) && self.agree(*o, n));
            candidates.extend(agreeing.map(|o| (self.differences(o, n).len(), self.known[o].key.clone(), n, o)));
        }
        candidates.sort();
        for (.., n, o) in candidates {
            if self.new_of_old[o].is_none() && self.old_of_new[n].is_none() {
                self.pair(o, n);
            }
        }
    }

    /// Returns whether two rows agree in date, texts, and amount as far as both have them, and in enough of these to be one row.
    fn agree(&self, old: OldRow, new: NewRow) -> bool {
        let (was, is) = (self.known[old].row, self.given[new].row);
        let dates = (self.shape.date)(was).zip((self.shape.date)(is));
        let amounts = self.known[old].facts.amount().zip(self.given[new].facts.amount());
        let (is_same_day, is_same_amount) = (|(a, b)| a == b, |(a, b)| close(a, b, self.tolerance));
        let (from, to) = ((self.shape.identity)(was), (self.shape.identity)(is));
        let is_named_alike = from.iter().zip(&to).all(|(a, b)| a == b && !a.is_empty());
        dates.is_none_or(is_same_day)
            && amounts.is_none_or(is_same_amount)
            && from.iter().zip(&to).all(|(a, b)| a == b || a.is_empty() || b.is_empty())
            && (dates.is_some() || amounts.is_some() || is_named_alike)
    }

    /// Pairs the remaining rows that agree in everything but the date, or in everything but the label: the row was restated. Only if no
    /// other row fits.
    fn pair_restated(&mut self) {
        // The date identifies an emission: another day is another record.
        if self.shape.resource == Resource::Emission {
            return;
        }
        // By date first (the label differs), then by label (the date differs). Allocations have no date: their amount must agree.
        for by_date in [true, false] {
            let mut candidates: HashMap<String, RowCandidates> = HashMap::new();
            let shape = self.shape;
            let shared =
                |row: &T| if by_date { format!("{:?}", (shape.date)(row)) } else { format!("{:?}", (shape.identity)(row)) };
            for o in self.missing() {
                candidates.entry(shared(self.known[o].row)).or_default().0.push(o);
            }
            for n in self.added() {
                candidates.entry(shared(self.given[n].row)).or_default().1.push(n);
            }
            for (olds, news) in candidates.into_values() {
                self.pair_by_amount(&olds, &news);
            }
        }
    }

    /// Pairs rows with the same amount, if only one row on each side has it.
    fn pair_by_amount(&mut self, olds: &[OldRow], news: &[NewRow]) {
        for o in olds {
            let is_same = |o: &OldRow, n: &NewRow| {
                let amounts = self.known[*o].facts.amount().zip(self.given[*n].facts.amount());
                amounts.is_some_and(|(a, b)| close(a, b, self.tolerance))
            };
            if self.known[*o].facts.amount() == Some(0.0) {
                continue;
            }
            let candidates: Vec<NewRow> = news.iter().filter(|n| is_same(o, n)).copied().collect();
            let [n] = candidates[..] else { continue };
            let is_only = olds.iter().filter(|other| is_same(other, &n)).count() == 1;
            if is_only && self.old_of_new[n].is_none() {
                self.pair(*o, n);
            }
        }
    }
}

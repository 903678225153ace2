//! Upcoming unlocks of a digest: the most valuable ones in full, and sums of all others. The memory is limited to the lines of the
//! digest and one sum for each token.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use super::gaps::SupplyGaps;
use super::linear::{LinearPart, PriceAges};
use super::{AheadLine, DigestSelection};
use crate::{Alert, SumWindow, Token, TokenId, UnlockSum, UpcomingRow};

/// The unlocks in the period of a digest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DigestAhead {
    /// Unlocks that sums include.
    pub counted: AheadPart,
    /// Unlocks that may happen in the period because their month or week has not ended.
    pub possible: AheadPart,
    /// For each token in a group, the sums of its unlocks that are neither in [`AheadPart::rows`] nor in [`LinearPart::tokens`].
    pub by_token: Vec<TokenAhead>,
    pub linear: LinearPart,
    /// The prices of the tokens with counted or linear unlocks.
    pub prices: PriceAges,
    /// The gaps in the known supply of the watched tokens.
    pub gaps: SupplyGaps,
}

/// The unlocks to list, and sums of the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AheadPart {
    /// The unlocks to list in any order, with tokens and their groups.
    pub rows: Vec<UpcomingRow>,
    /// The number of other unlocks.
    pub more: u64,
    /// The value of the other unlocks in USD; `None` if no value is known.
    pub more_value: Option<f64>,
    /// The number of other unlocks without a value.
    pub more_unvalued: u64,
}

/// The sums of a token's unlocks.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenAhead {
    /// The token with its groups.
    pub token: Token,
    pub cliff: UnlockSum,
    pub linear: UnlockSum,
}

impl AheadPart {
    /// Adds an unlock that is not listed.
    pub fn add_unlisted(&mut self, value: Option<f64>) {
        self.more += 1;
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.more_value = Some(self.more_value.unwrap_or_default() + value);
        } else {
            self.more_unvalued += 1;
        }
    }
}

impl DigestAhead {
    /// Splits unlocks into those to list and sums of the others. Ignores unlocks that start after `window`. The groups of the
    /// tokens must be filled in.
    pub fn of(rows: Vec<UpcomingRow>, window: SumWindow, selection: DigestSelection) -> Self {
        let lines =
            rows.into_iter().filter_map(|row| AheadLine::of(&row, window).map(|(line, is_counted)| (line, is_counted, row)));
        let mut lines: Vec<(AheadLine, bool, UpcomingRow)> = lines.collect();
        lines.sort_by(|(a, ..), (b, ..)| selection.by_size(a, b));
        let mut ahead = Self::default();
        let mut by_token: BTreeMap<TokenId, TokenAhead> = BTreeMap::new();
        for (line, is_counted, row) in lines {
            let part = if is_counted { &mut ahead.counted } else { &mut ahead.possible };
            if part.rows.len() < selection.limit && selection.lists(line.value) {
                part.rows.push(row);
                continue;
            }
            part.add_unlisted(line.value);
            if is_counted && !row.token.groups.is_empty() {
                let of = by_token.entry(row.token.id.clone()).or_insert_with(|| TokenAhead::none(row.token));
                of.cliff.add(None, line.value.filter(|value| value.is_finite()));
            }
        }
        ahead.by_token = by_token.into_values().collect();
        ahead
    }
}

impl TokenAhead {
    /// Returns empty sums.
    pub fn none(token: Token) -> Self {
        Self { token, cliff: UnlockSum::default(), linear: UnlockSum::default() }
    }
}

/// A firing alert, and the value of its unlock in USD.
#[derive(Clone, Debug, PartialEq)]
pub struct ValuedAlert {
    pub alert: Alert,
    pub value: Option<f64>,
}

/// A collection that keeps the first items in order, up to a maximum number.
#[derive(Debug)]
pub struct FirstOf<T> {
    heap: BinaryHeap<T>,
    most: usize,
}

impl<T: Ord> FirstOf<T> {
    pub fn new(most: usize) -> Self {
        Self { heap: BinaryHeap::new(), most }
    }

    /// Adds an item. Returns the item that no longer fits, which can be the new one; `None` if all fit.
    pub fn push(&mut self, item: T) -> Option<T> {
        if self.heap.len() < self.most {
            self.heap.push(item);
            return None;
        }
        match self.heap.peek_mut() {
            Some(mut last) if item < *last => Some(std::mem::replace(&mut *last, item)),
            _ => Some(item),
        }
    }

    /// Returns the items in order.
    pub fn into_sorted(self) -> Vec<T> {
        self.heap.into_sorted_vec()
    }
}

/// A value that orders largest first and unknown last.
#[derive(Clone, Copy, Debug)]
pub struct LargestFirst(pub Option<f64>);

impl Ord for LargestFirst {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = |of: &Self| of.0.unwrap_or(f64::NEG_INFINITY);
        size(other).total_cmp(&size(self))
    }
}

impl PartialOrd for LargestFirst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for LargestFirst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for LargestFirst {}

#[cfg(test)]
mod tests;

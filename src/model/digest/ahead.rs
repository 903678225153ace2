//! What lies ahead of a digest: the most valuable unlocks whole, of all others no more than what they come to. However many there are, a
//! digest needs no more memory than its lines, and a number for each token.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use super::{AheadLine, MAX_LINES};
use crate::{Alert, SumWindow, Token, TokenId, UpcomingRow};

/// The unlocks of a digest's days.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DigestAhead {
    /// Those that sums count.
    pub counted: AheadPart,
    /// Those that may come too, since their month or week is not over.
    pub possible: AheadPart,
    /// Of those that are counted and not among the most valuable: what each token of a group has.
    pub by_token: Vec<TokenAhead>,
}

/// Unlocks of one sort: the most valuable, and what all others come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AheadPart {
    /// The most valuable, at most [`MAX_LINES`], in any order; their tokens with their groups.
    pub rows: Vec<UpcomingRow>,
    /// How many more there are.
    pub more: u64,
    /// What those are worth, as far as that is known, USD.
    pub more_value: Option<f64>,
}

/// What a token has ahead.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenAhead {
    /// With its groups.
    pub token: Token,
    pub events: u32,
    /// USD, as far as it is known.
    pub value: f64,
}

impl AheadPart {
    /// Counts one that is not listed.
    pub fn add_unlisted(&mut self, value: Option<f64>) {
        self.more += 1;
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.more_value = Some(self.more_value.unwrap_or_default() + value);
        }
    }
}

impl DigestAhead {
    /// Of rows that are at hand, their tokens with their groups.
    pub fn of(rows: Vec<UpcomingRow>, window: SumWindow) -> Self {
        let lines =
            rows.into_iter().filter_map(|row| AheadLine::of(&row, window).map(|(line, is_counted)| (line, is_counted, row)));
        let mut lines: Vec<(AheadLine, bool, UpcomingRow)> = lines.collect();
        lines.sort_by(|(a, ..), (b, ..)| a.order(b));
        let mut ahead = Self::default();
        let mut by_token: BTreeMap<TokenId, TokenAhead> = BTreeMap::new();
        for (line, is_counted, row) in lines {
            let part = if is_counted { &mut ahead.counted } else { &mut ahead.possible };
            if part.rows.len() < MAX_LINES {
                part.rows.push(row);
                continue;
            }
            part.add_unlisted(line.value);
            if is_counted && !row.token.groups.is_empty() {
                let of = by_token.entry(row.token.id.clone()).or_insert_with(|| TokenAhead::none(row.token));
                of.add(line.value);
            }
        }
        ahead.by_token = by_token.into_values().collect();
        ahead
    }
}

impl TokenAhead {
    /// Nothing so far.
    pub fn none(token: Token) -> Self {
        Self { token, events: 0, value: 0.0 }
    }

    fn add(&mut self, value: Option<f64>) {
        self.events += 1;
        self.value += value.filter(|value| value.is_finite()).unwrap_or_default();
    }
}

/// An alert that fires, and what the unlock is worth that it is about, USD.
#[derive(Clone, Debug, PartialEq)]
pub struct ValuedAlert {
    pub alert: Alert,
    pub value: Option<f64>,
}

/// The first of many in their order, as they come one after the other: no more than so many are kept.
#[derive(Debug)]
pub struct FirstOf<T> {
    heap: BinaryHeap<T>,
    most: usize,
}

impl<T: Ord> FirstOf<T> {
    /// Keeps at most so many.
    pub fn new(most: usize) -> Self {
        Self { heap: BinaryHeap::new(), most }
    }

    /// Takes one more; answers the one that is none of the first now.
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

    /// Those that were kept, in their order.
    pub fn into_sorted(self) -> Vec<T> {
        self.heap.into_sorted_vec()
    }
}

/// A size by which the largest comes first, and what is of no known size last.
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

//! Linear unlocks of a digest: sums of the tokens with the largest values, and of all others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ahead::{DigestAhead, LargestFirst, TokenAhead};
use super::{DigestSelection, first};
use crate::{
    LinearUnlock, RateChange, ReferencePrice, SumWindow, SupplyAhead, Timestamp, Token, TokenId, UnlockSum, rate_changes,
};

/// The maximum number of rate changes in the line of a token.
const MAX_CHANGES: usize = 3;

/// The linear unlocks in the period of a digest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinearPart {
    /// The tokens to list in any order, with their groups.
    pub tokens: Vec<TokenVesting>,
    /// The number of other tokens.
    pub more: u64,
    /// The sums of all tokens, each counted once.
    pub sum: UnlockSum,
}

impl LinearPart {
    /// Adds a token to the sums.
    pub fn add(&mut self, of_token: &UnlockSum) {
        self.sum.add(None, of_token.known_value());
    }
}

/// The linear unlocks of a token in the period of a digest.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenVesting {
    /// The token with its groups.
    pub token: Token,
    pub sum: UnlockSum,
    /// The rate changes in the period, in order.
    pub changes: Vec<RateChange>,
}

impl TokenVesting {
    /// Returns `None` if nothing unlocks linearly in the window.
    #[must_use]
    pub fn of(token: Token, unlocks: &[LinearUnlock<'_>], price: Option<ReferencePrice>, window: SumWindow) -> Option<Self> {
        let mut sum = SupplyAhead::default();
        let price = price.map(|price| price.usd);
        unlocks.iter().for_each(|of| sum.add_linear(&of.piece, price, window));
        let changes = rate_changes(unlocks, window).into_iter().filter(RateChange::is_notable).collect();
        (sum.linear.count > 0).then_some(Self { token, sum: sum.linear, changes })
    }
}

impl DigestAhead {
    /// Adds the linear unlocks of all tokens, in the order of their slugs: those to list in full, and sums of the others. The
    /// largest values are listed.
    pub fn add_vesting(&mut self, mut tokens: Vec<TokenVesting>, selection: DigestSelection) {
        let size = |of: &TokenVesting| LargestFirst(of.sum.known_value());
        // In the order of the database, because sums of doubles depend on it.
        tokens.iter().for_each(|of| self.linear.add(&of.sum));
        tokens.sort_by(|a, b| size(a).cmp(&size(b)).then_with(|| a.token.id.cmp(&b.token.id)));
        let (mut listed, mut others): (Vec<_>, Vec<_>) = tokens.into_iter().partition(|of| selection.lists(of.sum.known_value()));
        others.extend(listed.split_off(listed.len().min(selection.limit)));
        self.linear.more += others.len() as u64;
        self.linear.tokens = listed;
        let mut by_token: BTreeMap<TokenId, TokenAhead> =
            std::mem::take(&mut self.by_token).into_iter().map(|of| (of.token.id.clone(), of)).collect();
        for of in others.into_iter().filter(|of| !of.token.groups.is_empty()) {
            let linear = of.sum;
            by_token.entry(of.token.id.clone()).or_insert_with(|| TokenAhead::none(of.token)).linear = linear;
        }
        self.by_token = by_token.into_values().collect();
    }
}

/// The ages of the prices of the tokens with unlocks in the period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PriceAges {
    /// The number of tokens with a price.
    pub priced: u64,
    /// The number of tokens with a stale price.
    pub stale: u64,
    /// The time of the oldest stale price.
    pub oldest: Option<Timestamp>,
}

impl PriceAges {
    /// Adds the price of a token. Prices before `stale_before` are stale.
    pub fn add(&mut self, price: ReferencePrice, stale_before: Timestamp) {
        self.priced += 1;
        if let Some(at) = price.at.filter(|at| *at < stale_before) {
            self.stale += 1;
            self.oldest = Some(self.oldest.map_or(at, |oldest| oldest.min(at)));
        }
    }
}

/// Stale prices in a digest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StalePrices {
    /// The number of tokens with a stale price.
    pub tokens: u32,
    /// Whether the prices of all tokens with unlocks are stale.
    pub all: bool,
    /// The time of the oldest price.
    pub oldest: Timestamp,
}

impl StalePrices {
    /// Returns `None` if no price is stale.
    pub(super) fn of(ages: &PriceAges) -> Option<Self> {
        let tokens = u32::try_from(ages.stale).unwrap_or(u32::MAX);
        Some(Self { tokens, all: ages.stale == ages.priced, oldest: ages.oldest? })
    }
}

/// The linear unlocks of a token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinearLine {
    /// The slug of the token.
    pub token: String,
    pub symbol: String,
    /// The value in USD. `None` if unknown.
    pub value: Option<f64>,
    /// The amount in tokens. `None` if unknown.
    pub amount: Option<f64>,
    /// Tokens per day, on average.
    pub per_day: Option<f64>,
    /// Percent of market cap.
    pub share: Option<f64>,
    /// The first rate changes in the period.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<RateChange>,
    /// The number of rate changes that are not listed.
    #[serde(default)]
    pub changes_left_out: u32,
}

impl LinearLine {
    fn of(vesting: &TokenVesting, window: SumWindow) -> Self {
        let TokenVesting { token, sum, changes } = vesting;
        let (value, amount) = (sum.known_value(), sum.known_amount());
        let market_cap = token.market_cap().filter(|cap| *cap > 0.0);
        Self {
            token: token.id.as_str().to_owned(),
            symbol: token.symbol().to_owned(),
            value,
            amount,
            per_day: amount.zip(window.days()).map(|(amount, days)| amount / days),
            share: value.zip(market_cap).map(|(value, cap)| value / cap * 100.0),
            changes: changes.iter().take(MAX_CHANGES).cloned().collect(),
            changes_left_out: super::count(changes.len().saturating_sub(MAX_CHANGES)),
        }
    }

    /// Returns the lines in the order of the digest.
    pub(super) fn all(part: &LinearPart, window: SumWindow, selection: DigestSelection) -> Vec<Self> {
        let mut lines: Vec<Self> = part.tokens.iter().map(|of| Self::of(of, window)).collect();
        lines.sort_by(|a, b| selection.linear_order(a, b));
        first(lines)
    }
}

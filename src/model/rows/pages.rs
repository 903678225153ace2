//! Queries of pages, and their results.

use super::seen_tokens::SeenTokens;
use crate::{
    Alert, Precision, RateStep, SumWindow, SupplyAhead, Timestamp, Token, TokenId, TokenSupply, Tracked, UpcomingRow, Watch,
};

/// Selects upcoming unlocks of watched tokens: the next cliff unlocks and changes of linear unlocks in a period, and the largest cliff
/// unlocks that may happen in another one.
#[derive(Clone, Debug)]
pub struct AheadFilter {
    /// The period of the next ones.
    pub window: SumWindow,
    /// The period of the largest. It is part of `window`.
    pub largest: SumWindow,
    /// The maximum number of the largest.
    pub limit: u32,
    /// The maximum number of the next cliff unlocks and changes together.
    pub next: u32,
    pub watch: Watch,
}

/// A date on which the rate changes at which a token unlocks linearly.
#[derive(Clone, Debug, PartialEq)]
pub struct RateRow {
    pub token: Token,
    pub at: Timestamp,
    pub precision: Precision,
    pub step: RateStep,
    /// The latest price of the token in USD.
    pub price: Option<f64>,
    /// The allocations that begin, end, or change, as text. `None` if none is named.
    pub causes: Option<String>,
}

/// The largest upcoming cliff unlocks, and the next cliff unlocks and changes of linear unlocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ahead {
    /// Largest value first.
    pub largest: Vec<UpcomingRow>,
    /// Largest share of market cap first.
    pub largest_share: Vec<UpcomingRow>,
    /// By nominal date, all of which are ahead, then by size.
    pub next: Vec<UpcomingRow>,
    /// The number of cliff unlocks in the period with a nominal date ahead.
    pub next_total: u64,
    /// The next changes of linear unlocks by day, then by the value of the change.
    pub rates: Vec<RateRow>,
    /// The number of changes of linear unlocks in the period.
    pub rates_total: u64,
}

impl Ahead {
    pub fn tokens_mut(&mut self) -> impl Iterator<Item = &mut Token> {
        let cliffs = self.largest.iter_mut().chain(&mut self.largest_share).chain(&mut self.next).map(|row| &mut row.token);
        cliffs.chain(self.rates.iter_mut().map(|row| &mut row.token))
    }
}

/// The number of weeks with a sum each in a list.
pub const WEEKS: usize = 12;

/// Firing alerts, most severe first and latest first within a severity, with counts by severity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FiringAlerts {
    pub alerts: Vec<Alert>,
    pub critical: u64,
    pub warning: u64,
    /// Alerts with any other severity or none.
    pub other: u64,
}

words! {
    /// The order of a token list.
    #[derive(Default)]
    TokenSort {
        /// The value of the coming supply of 90 days, largest first.
        #[default]
        Value = "value",
        /// The value of the coming supply of 90 days as a share of market cap, largest first.
        Share = "share",
        /// The value of the coming supply of 30 days, largest first.
        Month = "month",
        /// USD that unlock linearly per day, largest first.
        PerDay = "per_day",
        /// The nominal date of the next cliff unlock.
        Next = "next",
        /// Market cap, largest first.
        MarketCap = "market_cap",
        Name = "name",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct TokenFilter {
    /// A part of the slug, name, or symbol, ignoring case. Empty matches all tokens.
    pub text: String,
    /// `None` selects all tokens.
    pub tokens: Option<Vec<TokenId>>,
    pub sort: TokenSort,
    /// The start of all windows.
    pub at: Timestamp,
    /// The number of rows to skip.
    pub offset: u32,
    /// The tokens on earlier pages of a walk. They are left out.
    pub seen: SeenTokens,
    pub limit: u32,
}

/// One page of tokens, and the number of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenList {
    pub rows: Vec<TokenSummary>,
    pub total: u64,
    /// Whether more rows follow.
    pub has_more: bool,
}

/// A token in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenSummary {
    /// The number of the token in the database, for [`SeenTokens`].
    pub number: i64,
    pub token: Token,
    /// Whether the last complete token list includes it.
    pub listed: bool,
    /// The next cliff unlock whose nominal date is ahead.
    pub next: Option<Tracked>,
    /// The latest cliff unlock that can still happen although its nominal date has passed.
    pub unconfirmed: Option<Tracked>,
    /// With the windows of [`supply_windows`](crate::supply_windows).
    pub supply: TokenSupply,
    /// The coming supply of each of the next [`WEEKS`] weeks.
    pub weeks: Vec<SupplyAhead>,
}

/// Counters that change when a page may have new content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    pub polls: i64,
    pub changes: i64,
    /// The time of the last alert transition.
    pub alerts: i64,
    /// The number of deliveries and attempts.
    pub deliveries: i64,
    /// The number of silences, their ends, and acknowledgements.
    pub silences: i64,
    /// The number of commits that changed a schedule, a price, or the list of tokens.
    pub supply: i64,
}

//! The unlocks of a month, for the calendar page.

use crate::{Interval, RateRow, SumWindow, SupplyAhead, Timestamp, Token, TokenId, UnlockSum, UpcomingRow, Watch};

words! {
    /// The order of a list of cliff unlocks.
    #[derive(Default)]
    UnlockOrder {
        /// By nominal date, then by value.
        #[default]
        Date = "date",
        /// Largest value first.
        Value = "value",
        /// Largest share of market cap first.
        Share = "share",
    }
}

/// Selects the unlocks of watched tokens in some whole days.
#[derive(Clone, Debug)]
pub struct MonthFilter {
    /// One period for each day, without gaps, in order.
    pub days: Vec<SumWindow>,
    /// The instant from which linear unlocks count. Of some tokens, the source shows only the daily emission ahead.
    pub linear_from: Timestamp,
    pub watch: Watch,
    /// `None` for all watched tokens.
    pub tokens: Option<Vec<TokenId>>,
    /// The minimum value in USD of a cliff unlock, or of what a token unlocks linearly in these days.
    pub min_value: Option<f64>,
    /// The maximum number of the largest unlocks of each day.
    pub per_day: usize,
    /// The maximum number of tokens with a band of linear unlocks.
    pub bands: usize,
    pub order: UnlockOrder,
    /// The rows of the list to skip, and their maximum number.
    pub offset: usize,
    pub rows: usize,
    /// The maximum number of changes of linear unlocks.
    pub rates: usize,
}

impl MonthFilter {
    /// Returns whether a value in USD is large enough.
    #[must_use]
    pub fn is_large_enough(&self, value: Option<f64>) -> bool {
        self.min_value.is_none_or(|min| value.is_some_and(|value| value >= min))
    }

    /// Returns the period of all days.
    #[must_use]
    pub fn window(&self) -> SumWindow {
        let at = self.days.first().map(|day| day.at).unwrap_or_default();
        SumWindow { at, until: self.days.last().map_or(at, |day| day.until) }
    }

    /// Returns the period in which linear unlocks count.
    #[must_use]
    pub fn linear_window(&self) -> SumWindow {
        let SumWindow { at, until } = self.window();
        SumWindow { at: at.max(self.linear_from), until }
    }
}

/// The unlocks of some days.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnlockMonth {
    /// The supply of all days together. Its linear part is that of [`MonthFilter::linear_window`].
    pub sum: SupplyAhead,
    /// In the order of the filter.
    pub days: Vec<UnlockDay>,
    /// The largest cliff unlocks that may happen in these days, although their nominal dates are outside. As many as a day has.
    pub inexact: Vec<MonthUnlock>,
    /// The tokens that unlock most linearly, largest value first.
    pub bands: Vec<LinearBand>,
    /// The number of tokens with linear unlocks in these days.
    pub band_total: u64,
    /// A part of the list of cliff unlocks.
    pub rows: Vec<UpcomingRow>,
    /// The first changes of linear unlocks.
    pub rates: Vec<RateRow>,
    pub rates_total: u64,
}

/// The cliff unlocks with a nominal date on one day.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnlockDay {
    pub sum: UnlockSum,
    pub largest: Vec<MonthUnlock>,
}

/// A cliff unlock in the cell of a day.
#[derive(Clone, Debug, PartialEq)]
pub struct MonthUnlock {
    pub token: Token,
    pub interval: Interval,
    /// Tokens.
    pub amount: Option<f64>,
    /// USD.
    pub value: Option<f64>,
    /// Percent of market cap.
    pub share: Option<f64>,
}

/// The linear unlocks of a token in some days, as one band.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearBand {
    pub token: Token,
    /// The part of the days in which it unlocks.
    pub window: SumWindow,
    pub sum: UnlockSum,
    /// The instants at which the rate changes notably within the days. `true` if it rises.
    pub changes: Vec<(Timestamp, bool)>,
}

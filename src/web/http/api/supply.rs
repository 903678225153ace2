//! Coming supply in the API: `ahead` of a token, and `/api/v1/supply`, the sums over all watched tokens or over a group.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::operations::SUPPLY;
use crate::http::HttpDeps;
use crate::http::error::WebError;
use crate::http::error_code::ErrorCode;
use crate::http::names;
use model::{
    KnownSupply, ReferencePrice, SUPPLY_WINDOWS, SumWindow, SupplyAhead, SupplyTotals, Timestamp, TokenSupply, UnlockSum,
    supply_windows,
};

/// The coming supply of a token. Its numbers are `None` if they are not known.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AheadView {
    /// By the name of the window.
    #[serde(flatten)]
    windows: BTreeMap<&'static str, WindowView>,
    known: KnownSupply,
    /// The end of the known linear supply. `None` if no end is known.
    linear_until: Option<Timestamp>,
    /// The time of the price.
    price_as_of: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct WindowView {
    cliff: SumView,
    linear: FlowView,
    inexact: SumView,
    total: TotalView,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct SumView {
    /// Tokens.
    amount: Option<f64>,
    /// USD.
    value: Option<f64>,
    count: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct FlowView {
    amount: Option<f64>,
    value: Option<f64>,
    /// The average over the window.
    per_day: Option<f64>,
    per_day_value: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct TotalView {
    amount: Option<f64>,
    value: Option<f64>,
    percent_of_market_cap: Option<f64>,
}

impl AheadView {
    /// `supply` has the windows of [`supply_windows`], and `market_cap` is in USD.
    pub(super) fn of(supply: &TokenSupply, market_cap: Option<f64>, now: Timestamp) -> Self {
        let sums = SUPPLY_WINDOWS.iter().zip(supply_windows(now)).zip(&supply.windows);
        Self {
            windows: sums
                .map(|(((name, _), window), sum)| (*name, WindowView::of(sum, window, supply.known, market_cap)))
                .collect(),
            known: supply.known,
            linear_until: supply.linear_until,
            price_as_of: supply.price.and_then(|price| price.at),
        }
    }
}

impl WindowView {
    fn of(ahead: &SupplyAhead, window: SumWindow, known: KnownSupply, market_cap: Option<f64>) -> Self {
        let is_known = known != KnownSupply::None;
        let sum = |sum: &UnlockSum| SumView { amount: sum.known_amount(), value: sum.known_value(), count: Some(sum.count) };
        let cliff = if is_known { sum(&ahead.cliff) } else { SumView::default() };
        let linear = FlowView {
            amount: ahead.linear.known_amount(),
            value: ahead.linear.known_value(),
            per_day: ahead.linear_per_day(window),
            per_day_value: ahead.linear_value_per_day(window),
        };
        let linear = if known == KnownSupply::All { linear } else { FlowView::default() };
        // An unlock of unknown size makes the total unknown, except for linear unlocks that were not read, which `known` states.
        let total = if known == KnownSupply::All { ahead.total() } else { ahead.cliff };
        let value = total.complete_value().filter(|_| is_known);
        let market_cap = market_cap.filter(|cap| *cap > 0.0);
        Self {
            total: TotalView {
                amount: total.complete_amount().filter(|_| is_known),
                value,
                percent_of_market_cap: value.zip(market_cap).map(|(value, cap)| value / cap * 100.0),
            },
            cliff,
            linear,
            inexact: if is_known { sum(&ahead.inexact) } else { SumView::default() },
        }
    }
}

/// The coming supply of several tokens. It has no amounts, because amounts of different tokens do not add up.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct SupplyView {
    /// The group of `[watch.groups]`. `None` for all watched tokens.
    group: Option<String>,
    ahead: BTreeMap<&'static str, TotalsView>,
    /// USD per day that unlock linearly now.
    linear_per_day_value: Option<f64>,
    tokens: u64,
    /// Tokens whose schedule was never read.
    unread: u64,
    /// Tokens whose linear unlocks were not read.
    cliffs_only: u64,
    without_price: u64,
    stale_prices: u64,
    oldest_price: Option<Timestamp>,
    /// The earliest end of known linear supply.
    linear_until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct TotalsView {
    cliff: ValueView,
    linear: ValuePerDayView,
    inexact: ValueView,
    total: ValueOnlyView,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ValueView {
    value: Option<f64>,
    count: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ValuePerDayView {
    value: Option<f64>,
    per_day_value: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ValueOnlyView {
    value: Option<f64>,
}

impl SupplyView {
    fn of(group: Option<String>, totals: &SupplyTotals, now: Timestamp) -> Self {
        let coverage = totals.coverage;
        let known = coverage.known();
        // Zero is only known if each linear unlock that runs now has a value.
        let is_unvalued = totals.windows.first().is_some_and(|next| next.linear.unvalued_count > 0);
        let is_rate_unknown = totals.linear_per_day_value <= 0.0 && is_unvalued;
        let sums = SUPPLY_WINDOWS.iter().zip(supply_windows(now)).zip(&totals.windows);
        Self {
            group,
            ahead: sums.map(|(((name, _), window), sum)| (*name, TotalsView::of(sum, window, known))).collect(),
            linear_per_day_value: (known == KnownSupply::All && !is_rate_unknown).then_some(totals.linear_per_day_value),
            tokens: coverage.tokens,
            unread: coverage.unread,
            cliffs_only: coverage.cliffs_only,
            without_price: coverage.without_price,
            stale_prices: coverage.stale_prices,
            oldest_price: coverage.oldest_price,
            linear_until: coverage.linear_until,
        }
    }
}

impl TotalsView {
    fn of(ahead: &SupplyAhead, window: SumWindow, known: KnownSupply) -> Self {
        let (is_known, is_all) = (known != KnownSupply::None, known == KnownSupply::All);
        let value =
            |sum: &UnlockSum| ValueView { value: sum.known_value().filter(|_| is_known), count: is_known.then_some(sum.count) };
        Self {
            cliff: value(&ahead.cliff),
            linear: ValuePerDayView {
                value: ahead.linear.known_value().filter(|_| is_all),
                per_day_value: ahead.linear_value_per_day(window).filter(|_| is_all),
            },
            inexact: value(&ahead.inexact),
            total: ValueOnlyView { value: ahead.total().known_value().filter(|_| is_known) },
        }
    }
}

/// `GET /api/v1/supply`.
pub(super) async fn show(State(deps): State<HttpDeps>, uri: Uri) -> Result<Response, WebError> {
    let query = SUPPLY.query(&uri)?;
    let now = deps.app.clock.now();
    let live = deps.app.live.load_full();
    let mut names = names::groups(&query, &live)?;
    let group = names.pop();
    if !names.is_empty() {
        return Err(WebError::invalid_parameter("group: expected the name of one group"));
    }
    let stale_before = ReferencePrice::stale_before(live.config.source.stale_price.delta(), now);
    let totals = deps.app.store.supply_totals(now, supply_windows(now), live.watch.clone(), stale_before);
    let (watched, of_groups) = totals.await?;
    let totals = group.as_ref().map_or(Some(&watched), |group| of_groups.get(group));
    let Some(totals) = totals else { return Err(WebError::new(ErrorCode::UnknownGroup, "[watch.groups] has no such group")) };
    Ok(Json(SupplyView::of(group, totals, now)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlock_of_unknown_size_makes_the_total_unknown() {
        let window = supply_windows(Timestamp::UNIX_EPOCH)[0];
        let mut ahead = SupplyAhead::default();
        ahead.cliff.add(Some(10.0), Some(5.0));
        let total = |ahead: &SupplyAhead, known| WindowView::of(ahead, window, known, Some(100.0)).total;
        let known = TotalView { amount: Some(10.0), value: Some(5.0), percent_of_market_cap: Some(5.0) };
        assert_eq!(total(&ahead, KnownSupply::All), known);
        ahead.linear.add(None, None);
        assert_eq!(total(&ahead, KnownSupply::All), TotalView::default());
        assert_eq!(total(&ahead, KnownSupply::Cliffs), known, "linear unlocks were not read, which `known` states");
        ahead.cliff.add(Some(1.0), None);
        let amount_only = TotalView { amount: Some(11.0), ..TotalView::default() };
        assert_eq!(total(&ahead, KnownSupply::Cliffs), amount_only);
        assert_eq!(total(&ahead, KnownSupply::None), TotalView::default());
    }
}

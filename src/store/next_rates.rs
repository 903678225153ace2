//! The next changes of the rates at which watched tokens unlock linearly. An index in `token_supply` selects them; only the schedules of
//! the tokens that are shown are unpacked.

use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};

use super::error::StoreFault;
use super::linear::{PricedToken, TokenLinear, each_linear, priced_token};
use super::sql::Transaction;
use model::phrase::linear::rate_change_parts;
use model::{
    FirstOf, LargestFirst, LinearPiece, LinearUnlock, Precision, RateRow, RateStep, ReferencePrice, SumWindow, Timestamp, Token,
    rate_changes,
};

/// A change that can be shown. Sorted by day, then by the value of the change (largest first), then by time, then by token number.
pub(super) type RatePlace = (NaiveDate, LargestFirst, Timestamp, i64);

/// Returns the first `most` changes in a window, and the number of all. `is_watched` takes the number of a token.
pub(super) fn next_rates(
    from: &Transaction<'_>,
    window: SumWindow,
    is_watched: impl Fn(i64) -> bool,
    most: usize,
) -> Result<(Vec<RateRow>, u64), StoreFault> {
    let (places, total) = rate_places(from, window, is_watched, most)?;
    Ok((read_rates(from, &places)?, total))
}

/// Returns the first `most` changes in a window before they are read, in order, and the number of all.
pub(super) fn rate_places(
    from: &Transaction<'_>,
    window: SumWindow,
    is_watched: impl Fn(i64) -> bool,
    most: usize,
) -> Result<(Vec<RatePlace>, u64), StoreFault> {
    let (mut first, mut total) = (FirstOf::<RatePlace>::new(most), 0);
    each_linear(from, None, window, |of| {
        if !is_watched(of.token_no) {
            return;
        }
        // What comes after the known linear supply is not known.
        let known = of.linear_until.map_or(window.until, |until| window.until.min(until - TimeDelta::milliseconds(1)));
        let pieces: Vec<LinearPiece> = of.pieces.into_iter().map(|(_, piece)| piece).collect();
        for (at, step) in RateStep::all(&pieces, SumWindow { until: known, ..window }) {
            total += 1;
            let value = of.price.map(|price| (step.after - step.before).abs() * price.usd);
            first.push((at.date_naive(), LargestFirst(value), at, of.token_no));
        }
    })?;
    Ok((first.into_sorted(), total))
}

/// Reads changes.
pub(super) fn read_rates(from: &Transaction<'_>, places: &[RatePlace]) -> Result<Vec<RateRow>, StoreFault> {
    let mut known: BTreeMap<i64, Option<(PricedToken, TokenLinear)>> = BTreeMap::new();
    let mut rows = Vec::new();
    for (_, _, at, token_no) in places {
        if let std::collections::btree_map::Entry::Vacant(entry) = known.entry(*token_no) {
            let token = priced_token(from, *token_no)?;
            let read = |token: PricedToken| {
                let linear = TokenLinear::read(from, *token_no, token.0.id.as_str())?;
                Ok::<_, StoreFault>((token, linear))
            };
            entry.insert(token.map(read).transpose()?);
        }
        if let Some(Some(((token, _, price), linear))) = known.get(token_no) {
            rows.extend(row(token, *price, &linear.unlocks(), *at));
        }
    }
    Ok(rows)
}

/// Returns the change at an instant. `None` if the rate does not change then.
fn row(token: &Token, price: Option<ReferencePrice>, unlocks: &[LinearUnlock<'_>], at: Timestamp) -> Option<RateRow> {
    let instant = at.timestamp_millis();
    let step = RateStep::at(unlocks.iter().map(|of| of.piece), at)?;
    let edges = unlocks.iter().filter(|of| of.piece.starts_at == instant || of.piece.ends_at == instant);
    let precision = edges.map(|of| of.precision).max().unwrap_or(Precision::Second);
    let change = rate_changes(unlocks, SumWindow { at: at - TimeDelta::milliseconds(1), until: at }).into_iter().next();
    let causes = change.as_ref().and_then(rate_change_parts);
    Some(RateRow { token: token.clone(), at, precision, step, price: price.map(|price| price.usd), causes })
}

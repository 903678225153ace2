//! Warns about thresholds that are probably in the wrong unit: `valueToMarketCap >= 0.02` means 0.02 percent, not two.

use crate::fields::NumberUnit;

use crate::condition::expr::{Compare, NumberExpr, WindowRef};
use crate::vocabulary::PRICE_AGE;

/// A threshold in percent below this was probably meant as a fraction.
const SUSPICIOUS_PERCENT: f64 = 0.5;

/// A threshold in percent above this was probably meant as an amount.
const MOST_PERCENT: f64 = 10_000.0;

/// A threshold in USD below this was probably meant in millions.
const SUSPICIOUS_USD: f64 = 1_000.0;

/// A threshold in days above this (about ten years) was probably meant in hours or seconds.
const MOST_DAYS: f64 = 3_660.0;

/// Returns a warning and a suggestion if one side has a known unit and the other is a suspicious constant.
pub(super) fn unlikely_constant(left: &NumberExpr, right: &NumberExpr) -> Option<(String, String)> {
    let (number, threshold) = match (left, right) {
        (NumberExpr::Const(threshold), number) | (number, NumberExpr::Const(threshold)) => (number, *threshold),
        _ => return None,
    };
    let name = match number {
        NumberExpr::Field(get, _) => get.name(),
        NumberExpr::Window(WindowRef { field, .. }) => field.as_str(),
        NumberExpr::Share(_) => "share",
        NumberExpr::DaysUntil | NumberExpr::UntilRateChange(_) => "daysUntil",
        NumberExpr::PriceAge(_) => PRICE_AGE,
        NumberExpr::Rate(field) => field.as_str(),
        NumberExpr::Position(field) => field.as_str(),
        NumberExpr::Corrections(of) => of.field.as_str(),
        _ => "daysSince",
    };
    let unit = number.unit()?;
    let name = name.rsplit('.').next().unwrap_or(name);
    match unit {
        NumberUnit::Percent if threshold > 0.0 && threshold < SUSPICIOUS_PERCENT => Some((
            format!("`{name}` is in percent: {threshold} means {threshold} %"),
            format!("for {} % write {}", round(threshold * 100.0), round(threshold * 100.0)),
        )),
        NumberUnit::Percent if threshold > MOST_PERCENT => Some((
            format!("`{name}` is in percent: {threshold} means {threshold} %"),
            "fields in USD are `cliffValue`, `value`, and `marketCap`".to_owned(),
        )),
        NumberUnit::Fraction if threshold.abs() > 1.0 => Some((
            format!("`{name}` is a fraction from 0 to 1, never {threshold}"),
            format!("for {threshold} % write {}", round(threshold / 100.0)),
        )),
        // Thresholds up to one check whether there is any value.
        NumberUnit::Usd if threshold > 1.0 && threshold < SUSPICIOUS_USD => Some((
            format!("`{name}` is in USD: {threshold} means ${threshold}"),
            format!("for ${threshold}M write {}", round(threshold * 1e6)),
        )),
        NumberUnit::Days if threshold.abs() > MOST_DAYS => Some((
            format!("`{name}` is in days: {threshold} means {} years", round((threshold / 365.25).round())),
            format!(
                "{threshold} hours are {} days, {threshold} seconds {}",
                round(threshold / 24.0),
                round(threshold / 86_400.0)
            ),
        )),
        _ => None,
    }
}

/// Returns a warning if a measured value is compared for equality with a number.
pub(super) fn exact_comparison(op: Compare, left: &NumberExpr, right: &NumberExpr) -> Option<(String, String)> {
    let (NumberExpr::Field(get, unit), NumberExpr::Const(limit)) = (match (left, right) {
        (NumberExpr::Const(_), _) => (right, left),
        _ => (left, right),
    }) else {
        return None;
    };
    let is_measured = !matches!(unit, NumberUnit::Count | NumberUnit::Days | NumberUnit::Plain);
    // Comparing with zero, or a ratio or a fraction with one, is meaningful.
    let has_one = matches!(unit, NumberUnit::Ratio | NumberUnit::Fraction);
    let is_exact = *limit == 0.0 || (has_one && (limit - 1.0).abs() < f64::EPSILON);
    (op == Compare::Equal && is_measured && !is_exact).then(|| {
        let name = get.name();
        (
            format!("`{name} == {limit}` is only true for exactly this value"),
            format!("use `{name} >= {limit}`, or both bounds: `{name} >= … && {name} <= …`"),
        )
    })
}

fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

//! Every tolerance and limit by which the diff calls two values equal, or several tranches a series.

/// The relative difference below which two amounts are equal, unless the settings name another. Amounts with six digits differ less from
/// exact ones.
pub(super) const DEFAULT_AMOUNT: f64 = 1e-5;

/// The relative difference below which a computed amount is the stated one.
pub(super) const EXACT: f64 = 1e-9;

/// The relative difference below which totals are equal. Sources round each part that they add up.
pub(super) const TOTAL: f64 = 1e-6;

/// The share of the smallest part that totals may differ by. A larger difference may be that part.
pub(super) const SHARE_OF_PART: f64 = 0.01;

/// The relative difference below which two ratios are equal. Sources round each amount.
pub(super) const RATIO: f64 = 2e-4;

pub(super) const DAY_MS: i64 = 86_400_000;

/// The scatter, in milliseconds, of tranches that moved by the same number of calendar months.
pub(super) const SCATTER_MS: i64 = 4 * DAY_MS;

/// The difference, in milliseconds, below which two shifts are equal. It covers daylight saving time.
pub(super) const SHIFT_MS: i64 = 3_700_000;

/// The minimum shift, in milliseconds, that may be counted in calendar months and then scatter.
pub(super) const MONTHS_MS: i64 = 25 * DAY_MS;

/// The minimum number of tranches that must change alike to be a series.
pub(super) const MIN_SERIES: usize = 3;

/// The minimum number of rows that must change in nothing but a price to be a drift of the price.
pub(super) const MIN_DRIFTED: usize = 3;

/// Returns the tolerance of totals: at least the tolerance of amounts.
pub(super) fn of_totals(tolerance: f64) -> f64 {
    tolerance.max(TOTAL)
}

/// Returns whether two amounts are equal within a relative tolerance.
pub(super) fn close(a: f64, b: f64, tolerance: f64) -> bool {
    // Exact equality first: it also covers zero.
    #[expect(clippy::float_cmp, reason = "the tolerance follows")]
    let equal = a == b;
    equal || ((a - b).is_finite() && (a - b).abs() <= tolerance * a.abs().max(b.abs()))
}

/// Like [`close`], for amounts that may be unknown. Two unknown amounts are equal.
pub(super) fn close_or_none(a: Option<f64>, b: Option<f64>, tolerance: f64) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => close(a, b, tolerance),
        (None, None) => true,
        _ => false,
    }
}

/// Returns whether two totals are known and equal.
pub(crate) fn same_total(a: Option<f64>, b: Option<f64>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if close(a, b, TOTAL))
}

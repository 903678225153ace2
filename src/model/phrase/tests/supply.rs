//! Figures of coming supply.

use chrono::TimeDelta;

use super::super::*;
use super::time;
use crate::{KnownSupply, LinearRate, ReferencePrice, SupplyAhead, TokenSupply, TotalsCoverage, UnlockSum};

fn sum(count: u64, amount: f64, value: Option<f64>) -> UnlockSum {
    let unvalued_count = if value.is_none() { count } else { 0 };
    UnlockSum { count, amount, value: value.unwrap_or_default(), unsized_count: 0, unvalued_count }
}

fn ahead(cliff: UnlockSum, linear: UnlockSum) -> SupplyAhead {
    SupplyAhead { cliff, linear, inexact: UnlockSum::default() }
}

fn figure(ahead: &SupplyAhead, known: KnownSupply) -> (String, String) {
    let SupplyFigure { total, parts } = supply_figure(ahead, known, Some("ARB"));
    (total, parts)
}

fn texts(total: &str, parts: &str) -> (String, String) {
    (total.to_owned(), parts.to_owned())
}

#[test]
fn figure_names_total_and_parts() {
    let none = UnlockSum::default();
    let both = ahead(sum(2, 10.0, Some(584e6)), sum(3, 20.0, Some(936e6)));
    assert_eq!(figure(&both, KnownSupply::All), texts("$1.52B", "$584.00M cliffs + $936.00M linear"));
    let linear = ahead(none, sum(1, 7.0, Some(413e6)));
    assert_eq!(figure(&linear, KnownSupply::All), texts("$413.00M", "all linear"));
    let cliffs = ahead(sum(1, 7.0, Some(5e6)), none);
    assert_eq!(figure(&cliffs, KnownSupply::Cliffs), texts("$5.00M", "cliffs only"));
    assert_eq!(figure(&ahead(none, none), KnownSupply::All), texts("–", "nothing scheduled"));
    assert_eq!(figure(&ahead(none, none), KnownSupply::Cliffs), texts("–", "no cliffs; linear unlocks not read"));
    assert_eq!(figure(&both, KnownSupply::None), texts("not read yet", ""));
}

#[test]
fn unknown_price_is_never_zero() {
    let linear = ahead(UnlockSum::default(), sum(1, 7e6, None));
    assert_eq!(figure(&linear, KnownSupply::All), texts("7.00M ARB", "all linear, value unknown"));
    let partly = ahead(sum(1, 1e6, Some(5e6)), sum(1, 7e6, None));
    assert_eq!(figure(&partly, KnownSupply::All), texts("at least $5.00M", "$5.00M cliffs + linear of unknown value"));
    let nothing =
        ahead(UnlockSum { count: 1, unsized_count: 1, unvalued_count: 1, ..UnlockSum::default() }, UnlockSum::default());
    assert_eq!(figure(&nothing, KnownSupply::All), texts("value unknown", "cliffs of unknown value"));
    assert_eq!(per_day(Some(5.0), None, Some("ARB")).as_deref(), Some("5 ARB"));
    assert_eq!(per_day(Some(5.0), Some(2e6), None).as_deref(), Some("$10.00M"));
    assert_eq!((per_day(None, Some(1.0), None), per_day(Some(0.0), Some(1.0), None)), (None, None));
}

#[test]
fn totals_name_what_they_lack() {
    let coverage = TotalsCoverage {
        tokens: 9,
        unread: 2,
        cliffs_only: 3,
        stale_prices: 4,
        without_price: 1,
        linear_until: Some(time("2026-12-05T00:00:00Z")),
        oldest_price: Some(time("2025-11-03T10:00:00Z")),
    };
    let gaps = supply_gaps(&coverage, time("2027-02-01T00:00:00Z"), TimeDelta::days(3));
    assert_eq!(
        gaps,
        [
            "2 tokens not read yet",
            "3 tokens with cliffs only, because linear unlocks were not read",
            "1 token without a price (value unknown)",
            "4 tokens with prices older than 3 days; the oldest is from 3 Nov 2025",
            "linear unlocks are known only until 5 Dec 2026 for at least one token",
        ]
    );
    let unread = TotalsCoverage { tokens: 2, unread: 2, ..TotalsCoverage::default() };
    assert_eq!(supply_total_figure(&SupplyAhead::default(), &unread).total, "not read yet");
    let partly = TotalsCoverage { tokens: 3, unread: 2, ..TotalsCoverage::default() };
    let figure = supply_total_figure(&SupplyAhead::default(), &partly);
    assert_eq!((figure.total.as_str(), figure.parts.as_str()), ("–", "2 tokens not read yet"));
    let unpriced = ahead(UnlockSum::default(), sum(1, 7e6, None));
    let figure = supply_total_figure(&unpriced, &TotalsCoverage { tokens: 1, ..TotalsCoverage::default() });
    assert_eq!((figure.total.as_str(), figure.parts.as_str()), ("value unknown", "linear of unknown value"));
    assert_eq!(supply_gaps(&TotalsCoverage::default(), time("2027-02-01T00:00:00Z"), TimeDelta::days(3)), [""; 0]);
}

#[test]
fn inexact_unlocks_are_apart_and_never_worth_zero() {
    assert_eq!(inexact_unlocks(&UnlockSum::default()), None);
    assert_eq!(inexact_unlocks(&sum(2, 1.0, Some(5e6))).as_deref(), Some("plus up to 2 unlocks ($5.00M) with an inexact date"));
    assert_eq!(inexact_unlocks(&sum(1, 1.0, None)).as_deref(), Some("plus up to 1 unlock (value unknown) with an inexact date"));
    assert_eq!(expected(time("2026-11-16T00:00:00Z"), time("2026-11-26T00:00:00Z")), "expected 16 Nov, not confirmed");
    assert_eq!(expected(time("2026-11-26T00:00:00Z"), time("2026-11-26T09:00:00Z")), "expected today, not confirmed");
}

#[test]
fn linear_release_has_a_rate_and_its_next_change() {
    let rate = LinearRate { per_day: 5e6, running: 1, changes_at: Some(time("2026-12-01T00:00:00Z")), then_per_day: Some(2e6) };
    let price = Some(ReferencePrice { usd: 2.0, at: None });
    let supply = TokenSupply { known: KnownSupply::All, price, rate, ..TokenSupply::unread(3) };
    let texts = |supply: &TokenSupply| (linear_per_day(supply, Some("ARB")), rate_change(supply, Some("ARB")));
    assert_eq!(texts(&supply), ("$10.00M".to_owned(), Some("$4.00M from 1 Dec 2026".to_owned())));
    let ends = TokenSupply { rate: LinearRate { then_per_day: Some(0.0), ..rate }, price: None, ..supply.clone() };
    assert_eq!(texts(&ends), ("5.00M ARB".to_owned(), Some("ends on 1 Dec 2026".to_owned())));
    let unsized_rate = TokenSupply { rate: LinearRate { per_day: 0.0, running: 1, ..LinearRate::default() }, ..supply.clone() };
    assert_eq!(texts(&unsized_rate), ("unknown amount".to_owned(), None));
    assert_eq!(texts(&TokenSupply { known: KnownSupply::Cliffs, ..supply }), ("cliffs only".to_owned(), None));
    assert_eq!(texts(&TokenSupply::unread(3)), ("not read yet".to_owned(), None));
}

#[test]
fn weeks_count_cliffs_and_linear_unlocks() {
    let now = time("2026-03-09T07:00:00Z");
    let none = SupplyAhead::default();
    let weeks =
        [ahead(sum(1, 1.0, Some(1.2e6)), sum(1, 1.0, Some(3e5))), none, ahead(UnlockSum::default(), sum(1, 1.0, Some(2e5)))];
    assert_eq!(weeks_ahead(&weeks, KnownSupply::All, now), "By week: 9 Mar $1.50M, 23 Mar $200.00K");
    assert_eq!(weeks_ahead(&weeks, KnownSupply::Cliffs, now), "By week, cliffs only: 9 Mar $1.50M, 23 Mar $200.00K");
    let unvalued = [none, ahead(UnlockSum::default(), sum(1, 3e3, None))];
    assert_eq!(weeks_ahead(&unvalued, KnownSupply::All, now), "By week: 16 Mar 3.00K tokens");
    assert_eq!(weeks_ahead(&[none; 12], KnownSupply::All, now), "Nothing scheduled in the next 12 weeks");
    assert_eq!(weeks_ahead(&[none; 12], KnownSupply::None, now), "Not read yet");
}

//! Coming supply of a token or a group: the total of a window, and what of it vests continuously.

use chrono::{NaiveDate, TimeDelta};

use super::{MARKET_CAP, VALUE_UNKNOWN, amount, count, day, duration, share, tokens, usd};
use crate::{Timestamp, supply::ShownDays};

/// Coming supply in a window. A number is `None` if it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ComingSupply {
    pub total: SupplySize,
    pub cliff: SupplySize,
    /// Linear unlocks. Unknown if only cliff unlocks are known.
    pub linear: SupplySize,
    /// Whether linear unlocks were read. Their size can be unknown even then.
    pub is_linear_known: bool,
    /// The end of the known linear unlocks. `None` if they are known for the whole window.
    pub linear_until: Option<Timestamp>,
    /// `None` if the schedule was never read.
    pub cliff_count: Option<u64>,
    /// USD.
    pub market_cap: Option<f64>,
}

/// A number of tokens and their value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SupplySize {
    /// `None` for a group, whose tokens cannot be added up.
    pub tokens: Option<f64>,
    /// USD.
    pub value: Option<f64>,
}

impl SupplySize {
    fn is_zero(self) -> bool {
        let is_known = self.tokens.is_some() || self.value.is_some();
        is_known && self.tokens.unwrap_or_default() <= 0.0 && self.value.unwrap_or_default() <= 0.0
    }

    /// Formats the value, else the tokens.
    fn brief(self) -> String {
        match (self.value, self.tokens) {
            (Some(value), _) => usd(value),
            (None, Some(tokens)) => format!("{} ({VALUE_UNKNOWN})", amount(tokens)),
            (None, None) => "an unknown value".to_owned(),
        }
    }
}

/// Coming supply in one sentence: `9.78M tokens ($413.37M, 2.90% of market cap) to unlock in the next 30 days: $380.00M vest
/// continuously, $33.37M in 2 cliffs`. Supply that only vests reads `9.78M tokens (…) vest over the next 30 days`.
pub fn coming_supply(supply: &ComingSupply, ahead: TimeDelta) -> String {
    let ComingSupply { total, cliff, linear, is_linear_known, linear_until, cliff_count, market_cap } = *supply;
    let within = duration(ahead);
    let percent = total.value.zip(market_cap.filter(|cap| *cap > 0.0)).map(|(value, cap)| share(value / cap * 100.0, MARKET_CAP));
    let percent = |before: &str| percent.as_ref().map(|percent| format!("{before}{percent}")).unwrap_or_default();
    if cliff_count.is_none() {
        return format!("coming supply of the next {within} not known");
    }
    let gap = match linear_until {
        _ if !is_linear_known => " (linear unlocks not known)".to_owned(),
        Some(end) => format!(" (linear unlocks known only until {})", day(end)),
        None => String::new(),
    };
    if total.is_zero() && !gap.is_empty() {
        return format!("no cliffs in the next {within}{gap}");
    }
    if total.is_zero() {
        return format!("nothing to unlock in the next {within}");
    }
    let size = match (total.tokens, total.value) {
        (Some(amount), Some(value)) => format!("{} ({}{})", tokens(amount, None), usd(value), percent(", ")),
        (Some(amount), None) => format!("{} ({VALUE_UNKNOWN})", tokens(amount, None)),
        (None, Some(value)) if percent("").is_empty() => usd(value),
        (None, Some(value)) => format!("{} ({})", usd(value), percent("")),
        (None, None) => "an amount of unknown value".to_owned(),
    };
    let verb = if total.tokens.is_none() && total.value.is_none() { "vests" } else { "vest" };
    let cliffs = cliff_count.map_or_else(|| "cliffs".to_owned(), |number| count(number, "cliff"));
    match (cliff.is_zero(), is_linear_known && !linear.is_zero()) {
        (true, true) => format!("{size} {verb} over the next {within}{gap}"),
        (_, false) => format!("{size} to unlock in the next {within} in {cliffs}{gap}"),
        (false, true) => {
            let (linear, cliff) = (linear.brief(), cliff.brief());
            format!("{size} to unlock in the next {within}: {linear} vest continuously, {cliff} in {cliffs}{gap}")
        }
    }
}

/// Describes the days that the source shows of a schedule, and what they hide: `the source shows 9 Mar 2025 to 9 Mar 2027 only: 12 older
/// unlocks are kept as last seen, 3 later unlocks came into view`.
#[must_use]
pub fn shown_days(shown: &ShownDays) -> String {
    let date = |day: NaiveDate| day.format("%-d %b %Y").to_string();
    let days = match (shown.shown_from, shown.shown_until) {
        (Some(from), Some(until)) => format!("{} to {} only", date(from), date(until)),
        (Some(from), None) => format!("{} and later only", date(from)),
        (None, Some(until)) => format!("{} and earlier only", date(until)),
        (None, None) => return String::new(),
    };
    let kept = (shown.older_kept > 0).then(|| {
        let are = if shown.older_kept == 1 { "is" } else { "are" };
        format!("{} {are} kept as last seen", count(u64::from(shown.older_kept), "older unlock"))
    });
    let entered =
        (shown.came_into_view > 0).then(|| format!("{} came into view", count(u64::from(shown.came_into_view), "later unlock")));
    let hidden = [kept, entered].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let hidden = if hidden.is_empty() { hidden } else { format!(": {hidden}") };
    format!("the source shows {days}{hidden}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(tokens: f64, value: f64) -> SupplySize {
        SupplySize { tokens: Some(tokens), value: Some(value) }
    }

    #[test]
    fn coming_supply_names_the_part_that_vests() {
        let month = TimeDelta::days(30);
        let supply = ComingSupply {
            total: size(9.78e6, 413.37e6),
            cliff: size(0.78e6, 33.37e6),
            linear: size(9e6, 380e6),
            is_linear_known: true,
            linear_until: None,
            cliff_count: Some(2),
            market_cap: Some(14_254e6),
        };
        assert_eq!(
            coming_supply(&supply, month),
            "9.78M tokens ($413.37M, 2.90% of market cap) to unlock in the next 30 days: $380.00M vest continuously, $33.37M in 2 cliffs"
        );
        let nothing = size(0.0, 0.0);
        let linear_only = ComingSupply { cliff: nothing, linear: supply.total, cliff_count: Some(0), ..supply };
        assert_eq!(coming_supply(&linear_only, month), "9.78M tokens ($413.37M, 2.90% of market cap) vest over the next 30 days");
        let cliffs_only = ComingSupply { cliff: supply.total, linear: nothing, ..supply };
        assert_eq!(
            coming_supply(&cliffs_only, month),
            "9.78M tokens ($413.37M, 2.90% of market cap) to unlock in the next 30 days in 2 cliffs"
        );
        let cliffs_known = ComingSupply { linear: SupplySize::default(), is_linear_known: false, ..cliffs_only };
        assert!(coming_supply(&cliffs_known, month).ends_with("in 2 cliffs (linear unlocks not known)"));
        let group = |of: SupplySize| SupplySize { tokens: None, ..of };
        let of_group =
            ComingSupply { total: group(supply.total), cliff: group(supply.cliff), linear: group(supply.linear), ..supply };
        assert_eq!(
            coming_supply(&of_group, month),
            "$413.37M (2.90% of market cap) to unlock in the next 30 days: $380.00M vest continuously, $33.37M in 2 cliffs"
        );
        assert_eq!(
            coming_supply(&ComingSupply { total: nothing, cliff: nothing, linear: nothing, ..supply }, month),
            "nothing to unlock in the next 30 days"
        );
        assert_eq!(
            coming_supply(
                &ComingSupply { total: nothing, cliff: nothing, linear: SupplySize::default(), is_linear_known: false, ..supply },
                month
            ),
            "no cliffs in the next 30 days (linear unlocks not known)"
        );
        let until = crate::wire::parse_timestamp("2026-12-05");
        let early = ComingSupply { total: nothing, cliff: nothing, linear: nothing, linear_until: until, ..supply };
        assert_eq!(coming_supply(&early, month), "no cliffs in the next 30 days (linear unlocks known only until 5 Dec 2026)");
        let early = ComingSupply { linear_until: until, ..linear_only };
        assert!(
            coming_supply(&early, month).ends_with("vest over the next 30 days (linear unlocks known only until 5 Dec 2026)")
        );
        assert_eq!(coming_supply(&ComingSupply::default(), month), "coming supply of the next 30 days not known");
    }

    #[test]
    fn missing_price_reads_value_unknown() {
        let unvalued = |tokens| SupplySize { tokens: Some(tokens), value: None };
        let supply = ComingSupply {
            total: unvalued(2e6),
            linear: unvalued(1e6),
            is_linear_known: true,
            linear_until: None,
            cliff: size(1e6, 5e6),
            cliff_count: Some(1),
            market_cap: None,
        };
        assert_eq!(
            coming_supply(&supply, TimeDelta::days(7)),
            "2.00M tokens (value unknown) to unlock in the next 7 days: 1.00M (value unknown) vest continuously, $5.00M in 1 cliff"
        );
        let unknown = SupplySize::default();
        let group = ComingSupply { total: unknown, linear: unknown, cliff: size(0.0, 0.0), ..supply };
        assert_eq!(coming_supply(&group, TimeDelta::days(7)), "an amount of unknown value vests over the next 7 days");
    }

    #[test]
    fn shown_days_name_what_they_hide() {
        let day = |text: &str| text.parse().ok();
        let both = ShownDays { shown_from: day("2025-03-09"), shown_until: day("2027-03-09"), older_kept: 12, came_into_view: 3 };
        assert_eq!(
            shown_days(&both),
            "the source shows 9 Mar 2025 to 9 Mar 2027 only: 12 older unlocks are kept as last seen, 3 later unlocks came into view"
        );
        let ahead = ShownDays { shown_from: None, older_kept: 0, came_into_view: 0, ..both };
        assert_eq!(shown_days(&ahead), "the source shows 9 Mar 2027 and earlier only");
    }
}

//! The text that stands for an alert where a rule has no `summary`, or where its template fails.

use crate::aggregate::{Flow, Totals, Window};
use model::{Interval, Precision, Record, Resource, Timestamp, format, text::is_hostile};

use super::{scope::Scope, wording::days_in_words};

/// Longest piece of source text taken into a summary, characters.
const MAX_PIECE: usize = 200;

/// One plain sentence: whose, what, how much, when. `ARB: $33.15M (2.77% of market cap) unlocks on 16 Mar 2026 (in 7 days)`.
pub fn built_in_summary(scope: &Scope<'_>) -> String {
    if let Some(source) = scope.source {
        let about = scope.token.map(|token| format!("{}: ", token.symbol())).unwrap_or_default();
        return clean(&format!("{about}{}", source.message));
    }
    if let Some(totals) = scope.totals {
        let windows: Vec<Window> = totals.sums().map(|(window, _)| window).collect();
        return built_in_of_totals(scope, totals, &windows);
    }
    let symbol = scope.token.map_or("unknown token", |token| token.symbol());
    if let Some(change) = scope.change {
        let resource =
            change.resource.or_else(|| scope.record.map(|tracked| tracked.record.resource())).unwrap_or(Resource::Unlock);
        let what = if change.summary.is_empty() { change.kind.as_str().replace('_', " ") } else { change.summary.clone() };
        return clean(&format!("{symbol} {resource}: {what}"));
    }
    let Some(record) = scope.record.map(|tracked| &tracked.record) else {
        return clean(symbol);
    };
    clean(&format!("{symbol}: {}", of_record(record, scope.now)))
}

/// Windows that a summary names.
const MAX_WINDOWS: usize = 4;

/// One plain sentence over the windows that a rule asks for: `ARB: $33.15M to unlock in the next 30 days, $1.20M burned in the last 30
/// days`.
pub fn built_in_of_totals(scope: &Scope<'_>, totals: &Totals, windows: &[Window]) -> String {
    let who = match (scope.token, &totals.group) {
        (Some(token), _) => token.symbol().to_owned(),
        (None, Some(group)) => format!("{group} ({})", format::count(totals.members.len(), "token")),
        (None, None) => format!("all watched ({})", format::count(totals.members.len(), "token")),
    };
    let mut parts: Vec<String> = windows
        .iter()
        .take(MAX_WINDOWS)
        .filter_map(|window| Some((window, totals.sum(*window)?)))
        .map(|(window, sum)| {
            // Tokens of different kinds cannot be added up.
            let amount = sum.amount.filter(|_| scope.token.is_some());
            let size = size(sum.value, amount);
            let span = days_in_words(model::supply::days(window.span));
            match window.flow {
                Flow::Ahead => format!("{size} to unlock in the next {span}"),
                Flow::Emitted => format!("{size} emitted in the last {span}"),
                Flow::Burned => format!("{size} burned in the last {span}"),
                Flow::BoughtBack => format!("{size} bought back in the last {span}"),
            }
        })
        .collect();
    if parts.is_empty() {
        for (what, last) in [("burn", totals.last_burn), ("buyback", totals.last_buyback)] {
            parts.extend(last.map(|last| format!("last {what} {} ago", days_in_words(last.days_since(scope.now)))));
        }
    }
    if parts.is_empty() {
        parts.extend(totals.market_cap.map(|cap| format!("market cap {}", format::usd(cap))));
    }
    clean(&if parts.is_empty() { who } else { format!("{who}: {}", parts.join(", ")) })
}

fn of_record(record: &Record, now: Timestamp) -> String {
    let interval = record.interval();
    match record {
        Record::Unlock(event) => {
            let begins = event.cliff_amount().is_none() && event.linear_unlocks.get().is_some();
            let linear = event.linear_unlocks.get();
            let (value, amount) = if begins {
                (linear.and_then(|half| half.linear_value.copied()), linear.and_then(|half| half.linear_amount.copied()))
            } else {
                (event.cliff_value(), event.cliff_amount())
            };
            let share = event
                .value_to_market_cap()
                .map(|ratio| format!(" ({} of market cap)", format::percent(ratio)))
                .unwrap_or_default();
            let is_plural = value.is_none() && amount.is_some();
            let verb = match interval.map(|interval| interval.has_passed(now)) {
                Some(true) if begins => "began to unlock",
                Some(true) => "unlocked",
                _ if begins && is_plural => "begin to unlock",
                _ if begins => "begins to unlock",
                _ if is_plural => "unlock",
                _ => "unlocks",
            };
            format!("{}{share} {verb} {}{}", size(value, amount), when(interval.as_ref()), distance(interval.as_ref(), now))
        }
        Record::Burn(burn) => {
            let label = label(burn.burn_event_label.as_str());
            format!("{} burned {}{label}", size(burn.value.copied(), burn.amount.copied()), when(interval.as_ref()))
        }
        Record::Buyback(buyback) => {
            let label = label(buyback.buyback_event_label.as_str());
            format!(
                "{} bought back {}{label}",
                size(buyback.value.copied(), buyback.token_amount.copied()),
                when(interval.as_ref())
            )
        }
        Record::Emission(emission) => {
            let day =
                emission.start_date.copied().map_or_else(|| "on an unknown day".into(), |day| format!("on {}", format::day(day)));
            format!("{} emitted {day}", size(emission.unlock_value.copied(), emission.unlock_amount.copied()))
        }
        Record::Allocation(row) => {
            let name = row.allocation_name.as_str().unwrap_or("unnamed");
            let total = row.allocation_amount.copied().map_or_else(|| "an unknown number of tokens".into(), format::tokens);
            let locked = row.allocation_locked_amount.copied().map_or_else(|| "unknown".into(), format::amount);
            format!("allocation {name}: {total}, {locked} locked")
        }
        Record::Funding(round) => {
            let name = round.round_name.as_str().unwrap_or("funding round");
            let raised = round.total_amount_raised.copied().map_or_else(|| "an unknown amount".into(), format::usd);
            let investor = round.investor_name.as_str().map(|name| format!(", with {name}")).unwrap_or_default();
            format!("{name}: {raised} raised {}{investor}", when(interval.as_ref()))
        }
    }
}

/// Value where it is known, else tokens.
fn size(value: Option<f64>, amount: Option<f64>) -> String {
    match (value, amount) {
        (Some(value), _) => format::usd(value),
        (None, Some(amount)) => format::tokens(amount),
        (None, None) => "an unknown amount".into(),
    }
}

fn label(text: Option<&str>) -> String {
    text.filter(|text| !text.trim().is_empty()).map(|text| format!(" ({})", text.trim())).unwrap_or_default()
}

/// The record's time in words, also where it has none.
pub fn when(interval: Option<&Interval>) -> String {
    interval.map_or_else(|| "at a date to be determined".into(), format::when)
}

/// How far it is, no more exact than the date.
fn distance(interval: Option<&Interval>, now: Timestamp) -> String {
    let Some(interval) = interval.filter(|interval| !matches!(interval.precision, Precision::Month | Precision::Week)) else {
        return String::new();
    };
    let days = interval.days_until(now);
    if days <= 0.0 {
        return String::new();
    }
    if days < 1.0 && interval.precision == Precision::Day {
        return " (tomorrow)".into();
    }
    format!(" (in {})", days_in_words(days))
}

/// One line without control characters, of bounded length.
fn clean(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !is_hostile(*c)).collect();
    let limit = MAX_PIECE * 3;
    if text.chars().count() > limit { text.chars().take(limit - 1).chain(['…']).collect() } else { text }
}

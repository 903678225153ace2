//! The built-in summary of an alert, for rules without a `summary` and for templates that fail.

use crate::aggregate::{Flow, PartSum, Sum, Totals, Window};
use model::{
    Resource, Timestamp, phrase,
    phrase::{ComingSupply, SupplySize},
    text::is_hostile,
};

use super::scope::Scope;

/// The maximum length of a built-in summary, in characters.
const MAX_SUMMARY: usize = 600;

/// Returns the built-in summary of an alert in one sentence: `ARB: $33.15M (2.77% of market cap) unlocks on 16 Mar 2026 (in 7 days)`. The
/// sentence is the summary of a change, the message of an incident, or the sums of all windows, depending on the scope.
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
        let what = if change.summary.is_empty() { phrase::words(change.kind.as_str()) } else { change.summary.clone() };
        return clean(&format!("{symbol} {resource}: {what}"));
    }
    let Some(record) = scope.record.map(|tracked| &tracked.record) else {
        return clean(symbol);
    };
    if let Some(end) = record.unlock().filter(|event| event.is_linear_end()) {
        let step = scope.schedule.rate_step_of(end);
        let of_end = if scope.is_stored { phrase::stored_linear_end } else { phrase::linear_end };
        let text = of_end(step, end.reference_price.copied(), end.interval().as_ref(), scope.now);
        return clean(&format!("{symbol}: {text}"));
    }
    let symbol_of_amount = scope.token.map(|token| token.symbol());
    let text = match scope.is_stored {
        true => phrase::stored_record(record, symbol_of_amount, scope.now),
        false => phrase::record(record, symbol_of_amount, scope.now),
    };
    clean(&format!("{symbol}: {text}"))
}

/// The maximum number of windows in a summary.
const MAX_WINDOWS: usize = 4;

/// Returns the built-in summary of an alert about a token or group in one sentence: `ARB: 9.78M tokens ($413.37M, 2.90% of market cap) vest
/// over the next 30 days, $1.20M burned in the last 30 days`. Without windows, the summary has the latest burn and buyback, else the
/// market cap.
pub fn built_in_of_totals(scope: &Scope<'_>, totals: &Totals, windows: &[Window]) -> String {
    let who = match (scope.token, &totals.group) {
        (Some(token), _) => token.symbol().to_owned(),
        (None, Some(group)) => format!("{group} ({})", phrase::count(totals.members.len(), "token")),
        (None, None) => format!("all watched ({})", phrase::count(totals.members.len(), "token")),
    };
    let mut parts: Vec<String> = windows
        .iter()
        .take(MAX_WINDOWS)
        .filter_map(|window| Some((window, totals.sum(*window)?)))
        .map(|(window, sum)| {
            // Tokens of different kinds cannot be added up.
            let tokens = |amount: Option<f64>| amount.filter(|_| scope.token.is_some());
            let size = phrase::size(sum.value, tokens(sum.amount), scope.token.map(|token| token.symbol()));
            let span = phrase::duration(window.span);
            match window.flow {
                Flow::Ahead => coming_supply(totals, *window, sum, scope.token.is_some(), scope.now),
                Flow::Emitted => format!("{size} emitted in the last {span}"),
                Flow::Burned => format!("{size} burned in the last {span}"),
                Flow::BoughtBack => format!("{size} bought back in the last {span}"),
            }
        })
        .collect();
    if parts.is_empty() {
        for (what, last) in [("burn", totals.last_burn), ("buyback", totals.last_buyback)] {
            parts.extend(last.map(|last| format!("last {what} on {}", phrase::day(last.at))));
        }
    }
    if parts.is_empty() {
        parts.extend(totals.market_cap.map(|cap| format!("market cap {}", phrase::usd(cap))));
    }
    clean(&if parts.is_empty() { who } else { format!("{who}: {}", parts.join(", ")) })
}

/// Returns the coming supply of a window in one sentence. `of_token` is whether the totals belong to one token: amounts of a
/// group cannot be added up.
pub fn coming_supply(totals: &Totals, window: Window, sum: Sum, of_token: bool, now: Timestamp) -> String {
    let tokens = |amount: Option<f64>| amount.filter(|_| of_token);
    let part = |of: PartSum| SupplySize { tokens: tokens(of.amount), value: of.value };
    let linear = sum.linear;
    let end = now.checked_add_signed(window.span).unwrap_or(Timestamp::MAX_UTC);
    let supply = ComingSupply {
        total: SupplySize { tokens: tokens(sum.amount), value: sum.value },
        cliff: part(sum.cliff),
        linear: part(linear),
        is_linear_known: linear.amount.is_some() || linear.value.is_some(),
        linear_until: totals.linear_until.filter(|until| *until < end),
        cliff_count: sum.cliff.count.map(whole),
        market_cap: totals.market_cap,
    };
    phrase::coming_supply(&supply, window.span)
}

/// Converts a count, which sums keep as a double.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are whole, and a negative one becomes zero")]
fn whole(count: f64) -> u64 {
    count as u64
}

/// Returns the text on one line, without hostile characters, cut at [`MAX_SUMMARY`].
fn clean(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !is_hostile(*c)).collect();
    if text.chars().count() > MAX_SUMMARY { text.chars().take(MAX_SUMMARY - 1).chain(['…']).collect() } else { text }
}

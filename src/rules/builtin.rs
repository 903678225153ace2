//! The text that stands for an alert where a rule has no `summary`, or where its template fails.

use crate::aggregate::{Flow, Totals, Window};
use model::{Resource, phrase, text::is_hostile};

use super::scope::Scope;

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
        let what = if change.summary.is_empty() { phrase::words(change.kind.as_str()) } else { change.summary.clone() };
        return clean(&format!("{symbol} {resource}: {what}"));
    }
    let Some(record) = scope.record.map(|tracked| &tracked.record) else {
        return clean(symbol);
    };
    clean(&format!("{symbol}: {}", phrase::record(record, scope.token.map(|token| token.symbol()), scope.now)))
}

/// Windows that a summary names.
const MAX_WINDOWS: usize = 4;

/// One plain sentence over the windows that a rule asks for: `ARB: $33.15M to unlock in the next 30 days, $1.20M burned in the last 30
/// days`.
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
            let amount = sum.amount.filter(|_| scope.token.is_some());
            let size = phrase::size(sum.value, amount, scope.token.map(|token| token.symbol()));
            let span = phrase::duration(window.span);
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
            parts.extend(last.map(|last| format!("last {what} {} ago", phrase::duration_of_days(last.days_since(scope.now)))));
        }
    }
    if parts.is_empty() {
        parts.extend(totals.market_cap.map(|cap| format!("market cap {}", phrase::usd(cap))));
    }
    clean(&if parts.is_empty() { who } else { format!("{who}: {}", parts.join(", ")) })
}

/// One line without control characters, of bounded length.
fn clean(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !is_hostile(*c)).collect();
    let limit = MAX_PIECE * 3;
    if text.chars().count() > limit { text.chars().take(limit - 1).chain(['…']).collect() } else { text }
}

//! The aggregates that a rule reads.

use super::explanation::pool_name;
use super::{ExplainQuery, ExplainStep, Explainer, Mark};
use model::{config, phrase};
use rules::aggregate::{Flow, Sum};

impl Explainer<'_> {
    /// Adds the aggregates that the rule reads and, for a group, the members whose part is unknown.
    pub(super) fn totals(&mut self) {
        let ExplainQuery { rule, case, .. } = *self.query;
        let Some(totals) = &case.totals else { return };
        if !totals.members.is_empty() {
            let names: Vec<&str> = totals.members.iter().map(|member| &*member.symbol).collect();
            self.note(format!("{} in {}: {}", phrase::count(names.len(), "token"), pool_name(totals), phrase::names(names)));
        }
        for window in rule.windows() {
            let Some(sum) = totals.sum(*window) else { continue };
            let span = config::Span(window.span.to_std().unwrap_or_default());
            let text = match window.flow {
                Flow::Ahead => rules::coming_supply(totals, *window, sum, case.token.is_some(), self.now()),
                _ => sum_text(sum, case.token.map(|token| token.symbol())),
            };
            let mut step = ExplainStep::new(Mark::Note, format!("{}(\"{span}\"): {text}", window.flow.as_str()));
            let is_unknown = |sum: Option<Sum>| sum.is_none_or(|sum| sum.count.is_none());
            let unknown: Vec<&str> = totals
                .members
                .iter()
                .filter(|member| is_unknown(member.totals.sum(*window)))
                .map(|member| &*member.symbol)
                .collect();
            if !unknown.is_empty() {
                let text = format!("never read, so the sum is missing: {}", phrase::names(unknown));
                step.parts.push(ExplainStep::new(Mark::Unknown, text));
            }
            self.steps.push(step);
        }
        for (word, last) in [("lastBurn", totals.last_burn), ("lastBuyback", totals.last_buyback)] {
            if let Some(last) = last {
                self.note(format!("{word}: {}, {} ago", phrase::instant(last.at), phrase::duration(self.now() - last.at)));
            }
        }
    }
}

/// Formats a sum over the past. `symbol` is `None` for a group, whose tokens cannot be added up.
fn sum_text(sum: Sum, symbol: Option<&str>) -> String {
    let Some(count) = sum.count else { return "not known".to_owned() };
    let amount = || sum.amount.map_or_else(|| phrase::UNKNOWN_AMOUNT.to_owned(), |amount| phrase::tokens(amount, symbol));
    let amount = symbol.map(|_| format!("{}, ", amount())).unwrap_or_default();
    let value = sum.value.map_or_else(|| phrase::VALUE_UNKNOWN.to_owned(), phrase::usd);
    format!("{amount}{value}, {}", phrase::count(count, "entry"))
}

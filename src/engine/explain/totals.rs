//! What the windows hold that a rule asks for.

use super::answer::pool_name;
use super::words::{ago, span};
use super::{ExplainQuery, ExplainStep, Explainer, Mark};
use model::{Resource, format};
use rules::{Rule, aggregate::Sum};

impl Explainer<'_> {
    /// What the windows hold that the rule asks for; of a group, whose part is not known.
    pub(super) fn totals(&mut self) {
        let ExplainQuery { rule, case, .. } = *self.query;
        let Some(totals) = &case.totals else { return };
        if !totals.members.is_empty() {
            let names: Vec<&str> = totals.members.iter().map(|member| &*member.symbol).collect();
            self.note(format!("{} in {}: {}", format::count(names.len(), "token"), pool_name(totals), format::names(names)));
        }
        for window in rule.windows() {
            let Some(sum) = totals.sum(*window) else { continue };
            let mut step =
                ExplainStep::new(Mark::Note, format!("{}(\"{}\"): {}", window.flow.as_str(), span(window.span), in_words(sum)));
            let is_unknown = |sum: Option<Sum>| sum.is_none_or(|sum| sum.count.is_none());
            let unknown: Vec<&str> = totals
                .members
                .iter()
                .filter(|member| is_unknown(member.totals.sum(*window)))
                .map(|member| &*member.symbol)
                .collect();
            if !unknown.is_empty() {
                let text = format!("never read, so the sum is missing: {}", format::names(unknown));
                step.parts.push(ExplainStep::new(Mark::Unknown, text));
            }
            self.steps.push(step);
        }
        for (word, last) in [("lastBurn", totals.last_burn), ("lastBuyback", totals.last_buyback)] {
            if let Some(last) = last {
                self.note(format!("{word}: {}, {} ago", format::instant(last.at), ago(self.now() - last.at)));
            }
        }
    }
}

/// The records that a rule on totals adds up.
pub(super) fn summed(rule: &Rule) -> Vec<Resource> {
    let mut resources: Vec<Resource> = rule.windows().iter().map(|window| window.flow.resource()).collect();
    resources.sort_unstable();
    resources.dedup();
    resources
}

fn in_words(sum: Sum) -> String {
    let Some(count) = sum.count else { return "not known".to_owned() };
    let amount = sum.amount.map_or_else(|| "an unknown amount".to_owned(), format::tokens);
    let value = sum.value.map_or_else(|| "of unknown value".to_owned(), format::usd);
    format!("{amount}, {value}, {count} {}", if count == 1.0 { "entry" } else { "entries" })
}

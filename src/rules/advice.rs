//! Warnings about rules that cannot work with the current watch settings: no watched token matches, the records are never polled,
//! or a window is longer than the polled history.

mod labels;
mod thresholds;
mod tokens;

use crate::aggregate::Flow;
use model::{Diagnostic, Resource, Token, config::Span, phrase};

use super::{on::On, rule::Rule, set::RuleSet};

pub use labels::{LabelFacts, LabelProblem};
pub use thresholds::check_thresholds;
pub use tokens::{matches, token_hint};

/// The watched tokens and the polled data that rules are checked against.
#[derive(Clone, Copy, Debug)]
pub struct WatchFacts<'a> {
    /// The watched tokens with their groups. `None` if they are not known yet.
    pub tokens: Option<&'a [Token]>,
    /// All tokens of the token list. `None` if it was never read.
    pub listed: Option<&'a [Token]>,
    /// The resources that are polled on a schedule.
    pub requested: &'a [Resource],
    /// The length of the polled history of burns, buybacks, and emission.
    pub history: Span,
    /// The length of the polled future of unlocks.
    pub horizon: Span,
}

/// Returns warnings about rules that cannot work with the watched tokens and polled data.
pub fn advise(set: &RuleSet, known: &WatchFacts<'_>) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for rule in &set.rules {
        let unmatched = match (known.tokens, known.listed) {
            (Some(tokens), Some(listed)) => tokens::unmatched(rule, tokens, listed),
            _ => Vec::new(),
        };
        // A warning about a single pattern is more specific than one about the whole rule.
        let is_explained = !unmatched.is_empty();
        warnings.extend(unmatched);
        let mut warn = |message: String, help: String| {
            let location = (rule.location.file.to_path_buf(), Some(rule.location.span.clone()));
            warnings.push(Diagnostic::warning(location.0, location.1, message).help(help));
        };
        if let Some(tokens) = known.tokens.filter(|tokens| !tokens.is_empty() && rule.on != On::Source && !is_explained)
            && !tokens.iter().any(|token| covers(rule, token))
        {
            warn(
                format!("no watched token matches `{}`", rule.name),
                match tokens.len() {
                    1 => "1 token is watched; check `tokens` in the rule and in `[watch]`".to_owned(),
                    many => format!("{many} tokens are watched; check `tokens` in the rule and in `[watch]`"),
                },
            );
        }
        let wanted = match rule.on {
            On::Record(resource) | On::Change(resource, _) => vec![resource],
            On::Token | On::Portfolio => rule.summed_resources(),
            On::Source => Vec::new(),
        };
        for resource in wanted.into_iter().filter(|resource| !known.requested.contains(resource)) {
            warn(
                format!("`{}` needs {resource} records, which are never polled", rule.name),
                format!("set {} in `[schedule]`", schedule_keys(resource)),
            );
        }
        for window in rule.windows() {
            let (limit, key) = match window.flow {
                Flow::Ahead => (known.horizon.delta(), "horizon"),
                _ => (known.history.delta(), "history"),
            };
            if window.span > limit {
                let word = window.flow.as_str();
                let (requested, read) = (phrase::duration(window.span), phrase::duration(limit));
                warn(
                    format!("`{}` reads {requested} of `{word}`, but only {read} are polled", rule.name),
                    format!("set `{key}` in `[source]` to at least this length"),
                );
            }
        }
    }
    warnings
}

fn covers(rule: &Rule, token: &Token) -> bool {
    match rule.on {
        On::Portfolio => rule.pools.iter().any(|pool| match pool.group() {
            Some(group) => token.groups.iter().any(|known| known == group),
            None => rule.selects_token(token),
        }),
        _ => rule.selects_token(token),
    }
}

fn schedule_keys(resource: Resource) -> &'static str {
    match resource {
        Resource::Unlock => "`unlock_events`",
        Resource::Burn => "`burn`",
        Resource::Buyback => "`buyback`",
        Resource::Emission => "`daily_emission` or `weekly_emission`",
        Resource::Allocation => "`allocations`",
        Resource::Funding => "`investors`",
    }
}

#[cfg(test)]
mod tests;

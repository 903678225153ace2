//! What rules say of the tokens that are watched and of the records that are read: a rule that no watched token can match, a rule on
//! records that are never asked for, a window longer than the history that is read.

mod labels;
mod thresholds;
mod tokens;

use crate::aggregate::Flow;
use model::{Diagnostic, Resource, Token, config::Span, days};

use super::{on::On, rule::Rule, set::RuleSet, wording::days_in_words};

pub use labels::{LabelFacts, LabelProblem};
pub use thresholds::doubt_thresholds;
pub use tokens::{matches, token_hint};

/// What is known of the surroundings in which rules work.
#[derive(Clone, Copy, Debug)]
pub struct WatchFacts<'a> {
    /// The watched tokens with their groups; none where they are not known yet.
    pub tokens: Option<&'a [Token]>,
    /// All tokens of the token list, where it was ever read.
    pub listed: Option<&'a [Token]>,
    /// Records that are read on a schedule.
    pub asked: &'a [Resource],
    /// How far back burns, buybacks and emission are read.
    pub history: Span,
    /// How far ahead unlocks are read.
    pub horizon: Span,
}

/// Warnings of rules that cannot do what they say, given what is watched and asked for.
pub fn advise(set: &RuleSet, known: &WatchFacts<'_>) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for rule in &set.rules {
        let unmatched = match (known.tokens, known.listed) {
            (Some(tokens), Some(listed)) => tokens::unmatched(rule, tokens, listed),
            _ => Vec::new(),
        };
        // What it names and nothing answers to says more than that nothing matches.
        let is_explained = !unmatched.is_empty();
        warnings.extend(unmatched);
        let mut warn = |message: String, help: String| {
            let location = (rule.location.file.to_path_buf(), Some(rule.location.span.clone()));
            warnings.push(Diagnostic::warning(location.0, location.1, message).help(help));
        };
        if let Some(tokens) = known.tokens.filter(|tokens| !tokens.is_empty() && rule.on != On::Source && !is_explained)
            && !tokens.iter().any(|token| reaches(rule, token))
        {
            warn(
                format!("no watched token matches `{}`", rule.name),
                match tokens.len() {
                    1 => "one token is watched; see `tokens` of the rule and of `[watch]`".to_owned(),
                    many => format!("{many} tokens are watched; see `tokens` of the rule and of `[watch]`"),
                },
            );
        }
        let wanted = match rule.on {
            On::Record(resource) | On::Change(resource, _) => vec![resource],
            On::Token | On::Portfolio => rule.windows().iter().map(|window| window.flow.resource()).collect(),
            On::Source => Vec::new(),
        };
        let mut unread: Vec<Resource> = wanted.into_iter().filter(|resource| !known.asked.contains(resource)).collect();
        unread.sort();
        unread.dedup();
        for resource in unread {
            warn(
                format!("`{}` waits for {resource} records, which are never asked for", rule.name),
                format!("set {} in `[schedule]`", keys_of(resource)),
            );
        }
        for window in rule.windows() {
            let (limit, key) = match window.flow {
                Flow::Ahead => (known.horizon.delta(), "horizon"),
                _ => (known.history.delta(), "history"),
            };
            if window.span > limit {
                let word = window.flow.as_str();
                let (asked, read) = (days_in_words(days(window.span)), days_in_words(days(limit)));
                warn(
                    format!("`{}` asks `{word}` for {asked}, but only {read} are read", rule.name),
                    format!("make `{key}` in `[source]` at least as long"),
                );
            }
        }
    }
    warnings
}

fn reaches(rule: &Rule, token: &Token) -> bool {
    match rule.on {
        On::Portfolio => rule.pools.iter().any(|pool| match pool.group() {
            Some(group) => token.groups.iter().any(|known| known == group),
            None => rule.lets_in(token),
        }),
        _ => rule.lets_in(token),
    }
}

fn keys_of(resource: Resource) -> &'static str {
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

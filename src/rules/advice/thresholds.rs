//! Thresholds of conditions, held against the records that are known: one that was never reached, or always is, is seldom meant so.

use model::{Diagnostic, Timestamp, TokenSnapshot, format};

use crate::condition::Threshold;
use crate::fields::NumberUnit;
use crate::{on::On, rule::Rule, scope::Scope, set::RuleSet};

/// Of fewer values nothing is said.
const FEWEST: u32 = 20;

/// What always holds is doubted only where even the nearest value is so many times beyond: history may hold nothing but large events.
const FAR: f64 = 10.0;

/// What the known records say of one threshold.
#[derive(Clone, Copy, Debug)]
struct Tally {
    seen: u32,
    held: u32,
    least: f64,
    most: f64,
}

impl Tally {
    /// Whether all values are far beyond `limit`, on whichever side.
    fn is_far_from(&self, limit: f64) -> bool {
        let is_far = |value: f64| value.abs() >= limit.abs() * FAR || value.abs() * FAR <= limit.abs();
        is_far(self.least) && is_far(self.most)
    }
}

/// Warnings of thresholds that none of the known records reaches, or all of them, where enough are known. Rules on records are looked at,
/// and of them what `when` compares with a plain number other than zero.
pub fn doubt_thresholds(set: &RuleSet, snapshots: &[TokenSnapshot], now: Timestamp) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for rule in &set.rules {
        let On::Record(_) = rule.on else { continue };
        let thresholds = rule.body.when.as_ref().map(|when| when.thresholds()).unwrap_or_default();
        // Zero asks whether there is anything; what must be exactly a number is doubted by the check of the condition.
        let of_rule = thresholds.iter().filter(|threshold| threshold.limit() != 0.0 && !threshold.is_equality());
        for threshold in of_rule {
            let Some(tally) = tally(rule, threshold, snapshots, now).filter(|tally| tally.seen >= FEWEST) else { continue };
            let (what, text) = (format::count(tally.seen as usize, "record"), threshold.text());
            let shown = |value| show(value, threshold.unit());
            let said = if tally.held == 0 {
                Some((
                    format!("`{text}` was never so: of {what} that `{}` looks at, none", rule.name),
                    format!("they go from {} to {}", shown(tally.least), shown(tally.most)),
                ))
            } else if tally.held == tally.seen && tally.is_far_from(threshold.limit()) {
                Some((
                    format!("`{text}` was always so: of {what} that `{}` looks at, all", rule.name),
                    format!(
                        "they go from {} to {}: leave it out, or choose another number",
                        shown(tally.least),
                        shown(tally.most)
                    ),
                ))
            } else {
                None
            };
            warnings.extend(said.map(|(message, help)| {
                Diagnostic::warning(rule.location.file.to_path_buf(), Some(rule.location.span.clone()), message).help(help)
            }));
        }
    }
    warnings
}

fn tally(rule: &Rule, threshold: &Threshold<'_>, snapshots: &[TokenSnapshot], now: Timestamp) -> Option<Tally> {
    let mut tally: Option<Tally> = None;
    let resource = rule.on.resource()?;
    for snapshot in snapshots.iter().filter(|snapshot| rule.lets_in(&snapshot.token)) {
        for record in snapshot.records_of(resource) {
            let scope = Scope {
                token: Some(&snapshot.token),
                record: Some(record),
                change: None,
                source: None,
                totals: None,
                lead: None,
                now,
            };
            let Some(value) = threshold.value(&scope).filter(|_| rule.covers(&scope)) else { continue };
            let tally = tally.get_or_insert(Tally { seen: 0, held: 0, least: value, most: value });
            tally.seen += 1;
            tally.held += u32::from(threshold.holds(value));
            (tally.least, tally.most) = (tally.least.min(value), tally.most.max(value));
        }
    }
    tally
}

fn show(value: f64, unit: NumberUnit) -> String {
    match unit {
        NumberUnit::Usd | NumberUnit::UsdADay => format::usd(value),
        NumberUnit::Percent => format::percent(value),
        NumberUnit::Tokens | NumberUnit::TokensADay => format::amount(value),
        NumberUnit::Days => format!("{value} days"),
        _ => value.to_string(),
    }
}

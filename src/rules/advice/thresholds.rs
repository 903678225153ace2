//! Compares thresholds of conditions with the known records: a threshold that is never or always exceeded is rarely intended.

use model::{Diagnostic, Timestamp, TokenSnapshot, phrase};

use crate::condition::Threshold;
use crate::fields::NumberUnit;
use crate::{on::On, rule::Rule, scope::Scope, set::RuleSet};

/// The minimum number of values for a warning.
const FEWEST: u32 = 20;

/// The factor by which all values must differ from a threshold that is always true, because history may contain only large
/// events.
const FAR: f64 = 10.0;

/// The values of the known records for one threshold.
#[derive(Clone, Copy, Debug)]
struct Tally {
    seen: u32,
    held: u32,
    least: f64,
    most: f64,
}

impl Tally {
    /// Returns `true` if the least and the greatest value differ from `limit` by a factor of at least [`FAR`].
    fn is_far_from(&self, limit: f64) -> bool {
        let is_far = |value: f64| value.abs() >= limit.abs() * FAR || value.abs() * FAR <= limit.abs();
        is_far(self.least) && is_far(self.most)
    }
}

/// Returns warnings about thresholds that are true for none or all of the known records, if there are enough of them. Only rules
/// on records are checked, and only comparisons in `when` with a constant other than zero.
pub fn check_thresholds(set: &RuleSet, snapshots: &[TokenSnapshot], now: Timestamp) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for rule in &set.rules {
        let On::Record(_) = rule.on else { continue };
        let thresholds = rule.body.when.as_ref().map(|when| when.thresholds()).unwrap_or_default();
        // Comparing with zero checks for any value at all. Equality is reported by the check of the condition.
        let of_rule = thresholds.iter().filter(|threshold| threshold.limit() != 0.0 && !threshold.is_equality());
        for threshold in of_rule {
            let Some(tally) = tally(rule, threshold, snapshots, now).filter(|tally| tally.seen >= FEWEST) else { continue };
            let (what, text) = (phrase::count(tally.seen, "record"), threshold.text());
            let shown = |value| show(value, threshold.unit());
            let said = if tally.held == 0 {
                Some((
                    format!("`{text}` is true for none of the {what} that `{}` selects", rule.name),
                    format!("values range from {} to {}", shown(tally.least), shown(tally.most)),
                ))
            } else if tally.held == tally.seen && tally.is_far_from(threshold.limit()) {
                Some((
                    format!("`{text}` is true for all of the {what} that `{}` selects", rule.name),
                    format!(
                        "values range from {} to {}: remove the comparison, or change the number",
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
    for snapshot in snapshots.iter().filter(|snapshot| rule.selects_token(&snapshot.token)) {
        for record in snapshot.records_of(resource) {
            let scope = Scope { token: Some(&snapshot.token), record: Some(record), ..Scope::at(now) };
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
        NumberUnit::Usd | NumberUnit::UsdADay => phrase::usd(value),
        NumberUnit::Percent => phrase::percent(value),
        NumberUnit::Tokens | NumberUnit::TokensADay => phrase::amount(value),
        NumberUnit::Days => phrase::duration_of_days(value),
        _ => value.to_string(),
    }
}

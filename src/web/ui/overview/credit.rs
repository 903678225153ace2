//! The credits used in the period, and the day on which they run out at the current rate.

use chrono::TimeDelta;
use minijinja::Value;
use serde::Serialize;

use chart::svg::Svg;
use model::{CreditState, Timestamp, phrase, span_of_days, time::days};

/// The minimum age of a period, in days, for a rate. The first polls of all tokens cost more than later ones.
const MIN_DAYS: f64 = 1.0;

/// The credits of the current period.
#[derive(Debug, Serialize)]
pub(super) struct CreditGauge {
    /// `312 of 1,000`.
    pub(super) usage: String,
    /// `None` without a limit.
    bar: Option<Value>,
    /// Whether the credits last, as a sentence.
    outlook: String,
    /// `good`, `warn` or `bad`.
    severity: &'static str,
    today: u64,
    reset_at: Option<Timestamp>,
    pub(super) runs_out_at: Option<Timestamp>,
}

impl CreditGauge {
    /// Returns the gauge. `cap` is `[budget] monthly_credits`.
    pub(super) fn of(credit: &CreditState, cap: Option<u64>, now: Timestamp) -> Self {
        let spent = credit.used.unwrap_or_else(|| credit.own()).max(credit.own());
        // The cap applies to our own credits, the limit to all users of the API key.
        let limit = match (credit.limit, cap) {
            (Some(limit), Some(cap)) if cap < limit => Some((credit.own(), cap)),
            (Some(limit), _) => Some((spent, limit)),
            (None, Some(cap)) => Some((credit.own(), cap)),
            (None, None) => None,
        };
        let today = if credit.day.is_some_and(|day| day.date_naive() == now.date_naive()) { credit.spent_today } else { 0 };
        let Some((spent, limit)) = limit else {
            let usage = if spent == 0 { "none used".to_owned() } else { format!("{} used", phrase::grouped(spent)) };
            let outlook = "No credit limit: the API reports none, and `monthly_credits` is not set.".to_owned();
            return Self { usage, bar: None, outlook, severity: "good", today, reset_at: credit.reset_at, runs_out_at: None };
        };
        let runs_out_at = run_out(credit, spent, limit, now);
        let is_early = runs_out_at.is_some_and(|at| credit.reset_at.is_none_or(|reset| at < reset));
        let (severity, outlook) = match (credit.exhausted || spent >= limit, runs_out_at) {
            (true, _) => (
                "bad",
                "Used up. Polling resumes when the period ends, or within a day after the API raises its limit.".to_owned(),
            ),
            (false, Some(at)) if is_early => (
                "warn",
                format!("At the current rate, credits run out on {}. Polls are spread out to avoid that.", phrase::day(at)),
            ),
            (false, Some(at)) => {
                ("good", format!("At the current rate, credits last until {}, beyond the end of the period.", phrase::day(at)))
            }
            (false, None) => ("good", "Almost no credits are used yet.".to_owned()),
        };
        let bar = Value::from_safe_string(bar(spent, limit, severity, elapsed(credit, now)));
        let usage = format!("{} of {}", phrase::grouped(spent), phrase::grouped(limit));
        Self { usage, bar: Some(bar), outlook, severity, today, reset_at: credit.reset_at, runs_out_at }
    }
}

/// Returns when the credits run out at the rate since the period began. `None` if the period is too young for a rate.
fn run_out(credit: &CreditState, spent: u64, limit: u64, now: Timestamp) -> Option<Timestamp> {
    let since = days(now - credit.period_start?);
    if since < MIN_DAYS || spent == 0 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let left = limit.saturating_sub(spent) as f64 / (spent as f64 / since);
    now.checked_add_signed(span_of_days(left).unwrap_or(TimeDelta::days(36_500)))
}

/// Returns the elapsed fraction of the period.
fn elapsed(credit: &CreditState, now: Timestamp) -> Option<f64> {
    let (from, until) = (credit.period_start?, credit.reset_at?);
    let whole = days(until - from);
    (whole > 0.0).then(|| (days(now - from) / whole).clamp(0.0, 1.0))
}

/// Draws the used credits as a bar, with a mark at the elapsed fraction of the period.
#[expect(clippy::cast_precision_loss, reason = "a drawing")]
fn bar(spent: u64, limit: u64, severity: &str, elapsed: Option<f64>) -> String {
    let part = if limit == 0 { 1.0 } else { (spent as f64 / limit as f64).clamp(0.0, 1.0) };
    let mut svg = Svg::stretched(200.0, 8.0, "gauge", &format!("{:.0}% used", part * 100.0));
    svg.rect("back", 0.0, 0.0, 200.0, 8.0, 3.0);
    svg.rect(&format!("fill {severity}"), 0.0, 0.0, (part * 200.0).max(if spent > 0 { 2.0 } else { 0.0 }), 8.0, 3.0);
    if let Some(elapsed) = elapsed {
        svg.rect("tick", (elapsed * 200.0).min(198.5), 0.0, 1.5, 8.0, 0.0);
    }
    svg.finish()
}

#[cfg(test)]
mod tests;

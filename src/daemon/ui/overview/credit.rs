//! Whether the credits last: what was spent of the allowance, and the day on which it would run out at this pace.

use chrono::TimeDelta;
use minijinja::Value;
use serde::Serialize;

use crate::ui::chart::svg::Svg;
use crate::ui::template::grouped;
use model::{CreditState, Timestamp, format, span_of_days, time::days};

/// Shortest part of a period from which a pace is told, days: the first reads of all tokens are no pace.
const LEAST_DAYS: f64 = 1.0;

/// The credits of the period.
#[derive(Debug, Serialize)]
pub struct CreditGauge {
    /// `312 of 1,000`.
    words: String,
    /// A bar, where there is an allowance.
    bar: Option<Value>,
    /// What becomes of it, in a sentence.
    outlook: String,
    /// `good`, `warn` or `bad`.
    tone: &'static str,
    /// Spent today.
    today: u64,
    reset_at: Option<Timestamp>,
    pub(super) runs_out_at: Option<Timestamp>,
}

impl CreditGauge {
    /// The gauge of this state, with the cap of the config where there is one.
    pub fn of(credit: &CreditState, cap: Option<u64>, now: Timestamp) -> Self {
        let spent = credit.used.unwrap_or_else(|| credit.own()).max(credit.own());
        // The cap bounds what we spend, the limit what everybody with the key does.
        let limit = match (credit.limit, cap) {
            (Some(limit), Some(cap)) if cap < limit => Some((credit.own(), cap)),
            (Some(limit), _) => Some((spent, limit)),
            (None, Some(cap)) => Some((credit.own(), cap)),
            (None, None) => None,
        };
        let today = if credit.day.is_some_and(|day| day.date_naive() == now.date_naive()) { credit.spent_today } else { 0 };
        let Some((spent, limit)) = limit else {
            let words = if spent == 0 { "none spent".to_owned() } else { format!("{} spent", grouped(spent)) };
            let outlook = "The source names no allowance.".to_owned();
            return Self { words, bar: None, outlook, tone: "good", today, reset_at: credit.reset_at, runs_out_at: None };
        };
        let runs_out_at = run_out(credit, spent, limit, now);
        let is_early = runs_out_at.is_some_and(|at| credit.reset_at.is_none_or(|reset| at < reset));
        let (tone, outlook) = match (credit.exhausted || spent >= limit, runs_out_at) {
            (true, _) => ("bad", "Spent: nothing is asked until the period ends.".to_owned()),
            (false, Some(at)) if is_early => (
                "warn",
                format!("At this pace it would run out on {}; what is asked is spread so that it lasts.", format::day(at)),
            ),
            (false, Some(at)) => ("good", format!("Lasts beyond the period: at this pace until {}.", format::day(at))),
            (false, None) => ("good", "Lasts: nearly nothing was spent yet.".to_owned()),
        };
        let bar = Value::from_safe_string(bar(spent, limit, tone, elapsed(credit, now)));
        let words = format!("{} of {}", grouped(spent), grouped(limit));
        Self { words, bar: Some(bar), outlook, tone, today, reset_at: credit.reset_at, runs_out_at }
    }
}

/// When the allowance would be spent if it went on as since the period began; none before there is a pace.
fn run_out(credit: &CreditState, spent: u64, limit: u64, now: Timestamp) -> Option<Timestamp> {
    let since = days(now - credit.period_start?);
    if since < LEAST_DAYS || spent == 0 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a pace")]
    let left = limit.saturating_sub(spent) as f64 / (spent as f64 / since);
    now.checked_add_signed(span_of_days(left).unwrap_or(TimeDelta::days(36_500)))
}

/// How much of the period is over, of one.
fn elapsed(credit: &CreditState, now: Timestamp) -> Option<f64> {
    let (from, until) = (credit.period_start?, credit.reset_at?);
    let whole = days(until - from);
    (whole > 0.0).then(|| (days(now - from) / whole).clamp(0.0, 1.0))
}

/// A bar of what is spent, with a mark where it would be if it were spent evenly.
#[expect(clippy::cast_precision_loss, reason = "a picture")]
fn bar(spent: u64, limit: u64, tone: &str, elapsed: Option<f64>) -> String {
    let part = if limit == 0 { 1.0 } else { (spent as f64 / limit as f64).clamp(0.0, 1.0) };
    let mut svg = Svg::stretched(200.0, 8.0, "gauge", &format!("{:.0} percent spent", part * 100.0));
    svg.rect("back", 0.0, 0.0, 200.0, 8.0, 3.0);
    svg.rect(&format!("fill {tone}"), 0.0, 0.0, (part * 200.0).max(if spent > 0 { 2.0 } else { 0.0 }), 8.0, 3.0);
    if let Some(elapsed) = elapsed {
        svg.rect("tick", (elapsed * 200.0).min(198.5), 0.0, 1.5, 8.0, 0.0);
    }
    svg.finish()
}

#[cfg(test)]
mod tests;

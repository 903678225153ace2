//! The outcome of an alert: why it ended, in words.

use super::RuleEval;
use model::{Alert, Resolution, Timestamp, phrase};
use rules::{Scope, aggregate::Flow};

/// The outcome of an alert whose token was renamed.
pub const RENAMED_OUTCOME: &str = "token renamed";

/// Returns the outcome of an alert, from the facts at its end. `scope` is the subject, and `alert` has its current date.
pub(super) fn outcome<R: RuleEval>(
    alert: &Alert,
    resolution: Resolution,
    scope: &Scope<'_>,
    rule: Option<&R>,
    now: Timestamp,
) -> String {
    match resolution {
        Resolution::Passed => "passed".to_owned(),
        Resolution::Cleared => rule.map_or_else(|| phrase::no_longer_matches(None), |rule| cleared(rule, scope, now)),
        Resolution::RescheduledOut => {
            // The longest lead time, which the event moved out of.
            let longest = rule.and_then(|rule| rule.terms().within.first().map(|lead| lead.span));
            phrase::moved_to(alert.due.as_ref(), longest)
        }
        Resolution::Removed => phrase::removed_from(alert.resource).to_owned(),
        Resolution::RuleGone => "the rule no longer applies".to_owned(),
        Resolution::Unwatched => "token no longer watched".to_owned(),
        Resolution::Renamed => RENAMED_OUTCOME.to_owned(),
    }
}

/// Returns the burn or buyback that the rule missed, or the comparison that became false.
fn cleared<R: RuleEval>(rule: &R, scope: &Scope<'_>, now: Timestamp) -> String {
    let Some(mismatch) = rule.mismatch(scope) else { return phrase::no_longer_matches(None) };
    let last = mismatch.latest.and_then(|flow| Some((flow, scope.totals?.last(flow)?)));
    match last {
        Some((flow, last)) => {
            let event = if flow == Flow::Burned { "burn" } else { "buyback" };
            phrase::ended_by(event, last.at, last.amount, last.value, now)
        }
        None => phrase::no_longer_matches(Some(&mismatch.text)),
    }
}

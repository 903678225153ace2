//! The outcomes of past polls.

use super::{count, instant_iso, name, one_line};
use crate::{PastPoll, PastPollState};

/// Characters of a failure that a line shows; the rest is cut.
const MAX_REASON_CHARS: usize = 160;

/// The outcome of a cycle: `succeeded`, `failed: ARB: 503 Service Unavailable`, `60 polls, 2 failed: ARB: 503 Service Unavailable`.
pub fn past_poll(cycle: &PastPoll) -> String {
    let reason = cycle.failure.as_ref().map_or_else(String::new, |failure| {
        let token = failure.token.as_ref().map(|token| format!("{}: ", name(token))).unwrap_or_default();
        format!(": {token}{}", cut(&one_line(&failure.message)))
    });
    let is_one = cycle.polls <= 1;
    let outcome = match cycle.state() {
        PastPollState::Good if is_one => "succeeded".to_owned(),
        PastPollState::Good => "all succeeded".to_owned(),
        PastPollState::Empty if is_one => "empty response".to_owned(),
        PastPollState::Empty => "all responses empty".to_owned(),
        PastPollState::Deferred => "deferred: the cost exceeds the plan".to_owned(),
        PastPollState::Failed if is_one => format!("failed{reason}"),
        PastPollState::Failed => format!("all failed{reason}"),
        PastPollState::Partly => format!("{} failed{reason}", cycle.failed),
    };
    match cycle.polls {
        0 | 1 => outcome,
        PastPoll::MOST_COUNTED.. => format!("at least {} polls, {outcome}", PastPoll::MOST_COUNTED),
        polls => format!("{polls} polls, {outcome}"),
    }
}

/// A summary of cycles, which are latest first: `Last 40 cycles: 39 succeeded, 1 failed; last failure on 2026-03-09 11:59 UTC`.
pub fn past_polls(cycles: &[PastPoll]) -> String {
    let part = |(state, outcome): (PastPollState, &str)| {
        let count = cycles.iter().filter(|cycle| cycle.state() == state).count();
        (count > 0).then(|| format!("{count} {outcome}"))
    };
    let states = [
        (PastPollState::Good, "succeeded"),
        (PastPollState::Empty, "empty"),
        (PastPollState::Deferred, "deferred"),
        (PastPollState::Partly, "partly failed"),
        (PastPollState::Failed, "failed"),
    ];
    let parts: Vec<String> = states.into_iter().filter_map(part).collect();
    let last_failure = cycles.iter().find(|cycle| cycle.failed > 0);
    let last_failure = last_failure.map(|cycle| format!("; last failure on {}", instant_iso(cycle.at))).unwrap_or_default();
    format!("Last {}: {}{last_failure}", count(cycles.len(), "cycle"), parts.join(", "))
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_REASON_CHARS {
        return text.to_owned();
    }
    text.chars().take(MAX_REASON_CHARS).chain(['…']).collect()
}

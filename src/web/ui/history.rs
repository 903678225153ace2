//! The history of an alert: its states and its earlier episodes.

use chrono::TimeDelta;
use serde::Serialize;

use model::{Ack, Alert, AlertState, Timestamp, phrase};

/// The start of a state.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryStep {
    /// `pending`, `firing`, `acknowledged`, `clearing`, `resolved` or `event`.
    pub state: &'static str,
    pub at: Timestamp,
    /// The reason, or the author of an acknowledgement.
    pub text: String,
    /// The duration of the state, up to now for the current one: `3 h`. `None` for the last state of a resolved alert.
    pub lasted: Option<String>,
}

/// An earlier episode of the alert.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FormerEpisode {
    pub id: String,
    pub from: Timestamp,
    pub until: Option<Timestamp>,
    /// The outcome, such as `moved to 12 Mar 2027`.
    pub reason: Option<String>,
}

/// Returns the states of an alert, oldest first. `ack` is its acknowledgement, which may have ended.
pub fn history(alert: &Alert, ack: Option<&Ack>, now: Timestamp) -> Vec<HistoryStep> {
    let step = |state, at, text: &str| HistoryStep { state, at, text: text.to_owned(), lasted: None };
    let mut steps = Vec::new();
    if alert.state == AlertState::Event {
        return vec![step("event", alert.starts_at.unwrap_or(alert.active_at), "occurred once")];
    }
    if alert.starts_at.is_none_or(|starts_at| starts_at > alert.active_at) {
        steps.push(step("pending", alert.active_at, "the condition became true"));
    }
    if let Some(at) = alert.starts_at {
        steps.push(step(
            "firing",
            at,
            if steps.is_empty() { "the condition became true" } else { "the condition was true for the required time" },
        ));
    }
    if let Some(ack) = ack {
        let comment = if ack.comment.is_empty() { String::new() } else { format!(": {}", ack.comment) };
        steps.push(step("acknowledged", ack.at, &format!("by {}{comment}", ack.author)));
    }
    if let Some(at) = alert.false_since.filter(|_| alert.ends_at.is_none()) {
        steps.push(step("clearing", at, "the condition is false; the alert resolves if it stays false"));
    }
    if let Some(at) = alert.ends_at {
        steps.push(step("resolved", at, outcome_of(alert).unwrap_or_else(|| "resolved".to_owned()).as_str()));
    }
    steps.sort_by_key(|step| step.at);
    let ends: Vec<Option<Timestamp>> =
        steps.iter().skip(1).map(|next| Some(next.at)).chain([alert.ends_at.is_none().then_some(now)]).collect();
    for (step, end) in steps.iter_mut().zip(ends) {
        step.lasted = end.map(|end| phrase::duration((end - step.at).max(TimeDelta::zero())));
    }
    steps
}

/// Returns the outcome of a resolved alert, or the resolution for an alert that an earlier version resolved.
fn outcome_of(alert: &Alert) -> Option<String> {
    let resolution = alert.resolution?;
    Some(alert.annotations.get(model::OUTCOME).cloned().unwrap_or_else(|| resolution.as_str().to_owned()))
}

/// Returns the episodes before this one, latest first. `episodes` are all retained episodes of the alert.
pub fn former(alert: &Alert, episodes: &[Alert]) -> Vec<FormerEpisode> {
    let mut former: Vec<&Alert> = episodes.iter().filter(|other| other.episode < alert.episode).collect();
    former.sort_by_key(|other| std::cmp::Reverse(other.episode));
    let episode = |other: &Alert| FormerEpisode {
        id: other.id.as_str().to_owned(),
        from: other.starts_at.unwrap_or(other.active_at),
        until: other.ends_at,
        reason: outcome_of(other),
    };
    former.into_iter().map(episode).collect()
}

#[cfg(test)]
mod tests;

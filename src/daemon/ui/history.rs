//! What an alert went through: since when its condition held, when it fired, who acknowledged it, when and why it ended, and the times
//! that it fired before. Pure.

use serde::Serialize;

use super::view::age;
use model::{Ack, Alert, AlertState, Resolution, Timestamp};

/// A state that an alert came into.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryStep {
    /// `pending`, `firing`, `acknowledged`, `clearing`, `resolved` or `event`.
    pub state: &'static str,
    pub at: Timestamp,
    /// In words: why, or by whom.
    pub text: String,
    /// How long it lasted: `3 h`; of what lasts still, up to now.
    pub lasted: Option<String>,
}

/// A time that the same fired before.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FormerEpisode {
    pub id: String,
    pub from: Timestamp,
    pub until: Option<Timestamp>,
    pub reason: Option<&'static str>,
}

/// The states of an alert, the first first; `ack` is its acknowledgement, also where it is over by now.
pub fn history(alert: &Alert, ack: Option<&Ack>, now: Timestamp) -> Vec<HistoryStep> {
    let step = |state, at, text: &str| HistoryStep { state, at, text: text.to_owned(), lasted: None };
    let mut steps = Vec::new();
    if alert.state == AlertState::Event {
        return vec![step("event", alert.starts_at.unwrap_or(alert.active_at), "it happened, once")];
    }
    if alert.starts_at.is_none_or(|starts_at| starts_at > alert.active_at) {
        steps.push(step("pending", alert.active_at, "its condition held first"));
    }
    if let Some(at) = alert.starts_at {
        steps.push(step(
            "firing",
            at,
            if steps.is_empty() { "its condition held" } else { "it held for as long as the rule asks" },
        ));
    }
    if let Some(ack) = ack {
        let comment = if ack.comment.is_empty() { String::new() } else { format!(": {}", ack.comment) };
        steps.push(step("acknowledged", ack.at, &format!("by {}{comment}", ack.author)));
    }
    if let Some(at) = alert.false_since.filter(|_| alert.ends_at.is_none()) {
        steps.push(step("clearing", at, "its condition does not hold any more; it ends once that lasts long enough"));
    }
    if let Some(at) = alert.ends_at {
        steps.push(step("resolved", at, alert.resolution.map_or("it ended", Resolution::as_str)));
    }
    steps.sort_by_key(|step| step.at);
    let ends: Vec<Option<Timestamp>> =
        steps.iter().skip(1).map(|next| Some(next.at)).chain([alert.ends_at.is_none().then_some(now)]).collect();
    for (step, end) in steps.iter_mut().zip(ends) {
        step.lasted = end.map(|end| age((end - step.at).num_seconds().max(0)));
    }
    steps
}

/// The times that the same fired before, the latest first; `episodes` are all that are known of it.
pub fn former(alert: &Alert, episodes: &[Alert]) -> Vec<FormerEpisode> {
    let mut former: Vec<&Alert> = episodes.iter().filter(|other| other.episode < alert.episode).collect();
    former.sort_by_key(|other| std::cmp::Reverse(other.episode));
    let of = |other: &Alert| FormerEpisode {
        id: other.id.as_str().to_owned(),
        from: other.starts_at.unwrap_or(other.active_at),
        until: other.ends_at,
        reason: other.resolution.map(Resolution::as_str),
    };
    former.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests;

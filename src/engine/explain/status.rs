//! Describes the status of a notification: delivered, suppressed, pending, or a dead letter, and why. `explain` and `outbox why` both use
//! this module, so they agree. Pure.

use crate::group::{Prospect, Wait};
use model::{
    Ack, Alert, DeliveryState, NotificationRole, NotificationState, NotificationStatus, OutboxRow, ReceiverName, Replay, Silence,
    SilenceState, Timestamp, phrase,
};

use super::Mark;

/// The rows that describe a status.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatusEvidence<'a> {
    /// Silences, including ended ones that are still stored.
    pub silences: &'a [Silence],
    /// The alerts that inhibit others.
    pub inhibitors: &'a [Alert],
    pub acks: &'a [Ack],
    /// The pending notifications, with the reason of each wait.
    pub prospects: &'a [Prospect],
    pub deliveries: &'a [OutboxRow],
}

#[derive(Clone, Debug, PartialEq)]
pub struct StatusDescription {
    /// Whether the notification reached its receiver.
    pub mark: Mark,
    /// One line: `suppressed for ops: silence si_… until …`.
    pub text: String,
    /// The reason of the wait or suppression, or the receiver's response. `None` if the state needs no reason.
    pub because: Option<String>,
    /// The phrase for the conclusion: its beginning, which is the same for all notifications with this outcome, and the rest.
    pub end: (&'static str, String),
}

/// Describes the status of one notification.
pub fn describe(status: &NotificationStatus, records: &StatusEvidence<'_>, now: Timestamp) -> StatusDescription {
    let receiver = status.receiver.as_ref().map_or("no receiver", ReceiverName::as_str);
    let suppressed = |by: String| StatusDescription {
        mark: Mark::No,
        text: format!("suppressed for {receiver}: {by}"),
        end: ("suppressed by", by.clone()),
        because: Some(by),
    };
    let row = records.deliveries.iter().find(|row| Some(row.id) == status.delivery);
    match status.state {
        NotificationState::Nobody => StatusDescription {
            mark: Mark::No,
            text: "sent to no receiver: no route matches".to_owned(),
            because: None,
            end: ("sent to", "no receiver: no route matches".to_owned()),
        },
        NotificationState::Limited => {
            let limit = status.suppressor.as_ref().map(|limit| format!(" of {limit}")).unwrap_or_default();
            let by = format!("left out by the rule's `limit`{limit}; its summary counts it");
            StatusDescription {
                mark: Mark::No,
                text: format!("sent to no receiver: {by}"),
                end: ("sent to", format!("no receiver: {by}")),
                because: Some(by),
            }
        }
        NotificationState::Silenced => suppressed(silenced(status, records, now)),
        NotificationState::Inhibited => suppressed(inhibited(status, records)),
        NotificationState::Acknowledged => suppressed(acknowledged(status, records)),
        NotificationState::Unwanted => {
            let by = format!("its `types` do not include {}", status.suppressor.as_deref().unwrap_or(status.kind.as_str()));
            StatusDescription {
                mark: Mark::No,
                text: format!("not wanted by {receiver}: {by}"),
                end: ("not wanted by", format!("{receiver}: {by}")),
                because: Some(by),
            }
        }
        NotificationState::Waiting => waiting(status, records, receiver),
        state => describe_delivery(status, state.delivery(), row, receiver),
    }
}

fn silenced(status: &NotificationStatus, records: &StatusEvidence<'_>, now: Timestamp) -> String {
    let id = status.suppressor.as_deref().unwrap_or_default();
    let Some(silence) = records.silences.iter().find(|silence| silence.id == id) else { return format!("silence {id}") };
    let (word, then) = match silence.state(now) {
        SilenceState::Expired => ("ended", ""),
        _ => ("until", ", then sent if it still fires"),
    };
    format!(
        "silence {id} {word} {}{then} ({} by {}: {})",
        phrase::instant(silence.ends_at),
        silence.matchers_line(),
        silence.author,
        silence.comment
    )
}

fn inhibited(status: &NotificationStatus, records: &StatusEvidence<'_>) -> String {
    let id = status.suppressor.as_deref().unwrap_or_default();
    match records.inhibitors.iter().find(|alert| alert.id.as_str() == id) {
        Some(alert) => {
            let text = alert.annotations.get("summary").map(|text| format!(": {}", phrase::one_line(text))).unwrap_or_default();
            format!("alert {id} of {}, while it fires{text}", alert.name)
        }
        None => format!("alert {id}, while it fires"),
    }
}

fn acknowledged(status: &NotificationStatus, records: &StatusEvidence<'_>) -> String {
    match records.acks.iter().find(|ack| ack.alert == status.alert) {
        Some(ack) => {
            let comment = if ack.comment.is_empty() { String::new() } else { format!(": {}", ack.comment) };
            format!(
                "an acknowledgement of {} at {}{comment}, until date, amount, or level changes",
                ack.author,
                phrase::instant(ack.at)
            )
        }
        None => "an acknowledgement that was withdrawn later".to_owned(),
    }
}

fn waiting(status: &NotificationStatus, records: &StatusEvidence<'_>, receiver: &str) -> StatusDescription {
    let is_same = |prospect: &&Prospect| prospect.notice == status.notice && Some(&prospect.receiver) == status.receiver.as_ref();
    let why = match records.prospects.iter().find(is_same) {
        None => "for the next dispatch pass".to_owned(),
        Some(Prospect { key, wait, until, .. }) => {
            let until = until.map(|at| format!(" until {}", phrase::instant(at))).unwrap_or_default();
            match wait {
                Wait::Group => format!("in group {key}{until} (`group_wait`)"),
                Wait::Interval => format!("in group {key}{until} (`group_interval`)"),
                Wait::Muted(name) => format!("in group {key}{until}: muted by {name}"),
                Wait::Together => format!("to be batched with others{until}: too many came at once"),
                Wait::Hour => format!("for the hourly limit{until} (`max_per_hour`), then in one summary"),
                Wait::Nothing => "for the next dispatch pass".to_owned(),
            }
        }
    };
    StatusDescription {
        mark: Mark::Unknown,
        text: format!("pending for {receiver}: waiting {why}"),
        end: ("waiting", format!("{why} (for {receiver})")),
        because: Some(why),
    }
}

/// Describes the delivery of a notification to a receiver by its state and its outbox row. Without a state, it is described as due.
fn describe_delivery(
    status: &NotificationStatus,
    state: Option<DeliveryState>,
    row: Option<&OutboxRow>,
    receiver: &str,
) -> StatusDescription {
    let number = status.delivery.map(|id| format!("outbox {id}")).unwrap_or_default();
    let how = match status.role {
        Some(NotificationRole::Counted) => format!(", counted in a summary ({number})"),
        Some(NotificationRole::Merged) => format!(", replaced by a later notification ({number})"),
        _ => format!(" ({number})"),
    };
    let response = row.and_then(|row| row.last_response.as_deref()).map(phrase::one_line).filter(|text| !text.is_empty());
    let response = response.map(|response| format!(": {response}")).unwrap_or_default();
    // The attempts of a replay include those before it, which did not all fail.
    let failed = row.filter(|row| row.replay.is_none()).map(|row| phrase::count(row.attempts, "attempt"));
    let attempts = failed.unwrap_or_else(|| "all attempts".to_owned());
    let replay = row.and_then(|row| row.replay);
    let how = format!("{how}{}", replay.map(|replay| format!(", {}", phrase::replay_of(replay))).unwrap_or_default());
    let description = match state {
        Some(DeliveryState::Delivered) => {
            let at = row.and_then(|row| row.delivered_at).map(|at| format!(" at {}", phrase::instant(at))).unwrap_or_default();
            StatusDescription {
                mark: Mark::Yes,
                text: format!("delivered to {receiver}{at}{how}"),
                because: None,
                end: ("delivered to", format!("{receiver}{at}")),
            }
        }
        Some(DeliveryState::Retrying) => {
            let next = row.and_then(|row| row.next_attempt_at).map(|at| format!(", next attempt {}", phrase::instant(at)));
            let because = format!("{attempts} failed{}{response}", next.unwrap_or_default());
            StatusDescription {
                mark: Mark::Unknown,
                text: format!("not yet delivered to {receiver}: {because}{how}"),
                end: ("not yet delivered to", format!("{receiver} ({attempts} failed)")),
                because: Some(because),
            }
        }
        Some(DeliveryState::Dead) => StatusDescription {
            mark: Mark::No,
            text: format!("dead letter: {receiver}, dead after {attempts}{response}{how}"),
            end: ("dead letter:", format!("{receiver} ({attempts} failed{response})")),
            because: Some(format!("{attempts} failed{response}")),
        },
        Some(DeliveryState::Dropped) => StatusDescription {
            mark: Mark::No,
            text: format!("dropped by an operator before it reached {receiver}{how}"),
            end: ("never delivered to", format!("{receiver} (dropped by an operator)")),
            because: Some("dropped by an operator".to_owned()),
        },
        Some(DeliveryState::Due) | None => StatusDescription {
            mark: Mark::Unknown,
            text: format!("due for {receiver}{how}"),
            because: None,
            end: ("not yet delivered to", receiver.to_owned()),
        },
    };
    match replay {
        Some(replay) => of_replay(description, replay, receiver),
        None => description,
    }
}

/// Describes a delivery that is sent again. If the receiver has it from before, that counts, whatever becomes of the replay.
fn of_replay(description: StatusDescription, replay: Replay, receiver: &str) -> StatusDescription {
    let text = phrase::replay_of(replay);
    let because = Some(description.because.map_or(text.clone(), |because| format!("{because} ({text})")));
    match replay.first_delivered_at {
        Some(at) if description.mark != Mark::Yes => {
            let end = ("delivered to", format!("{receiver} at {}", phrase::instant(at)));
            StatusDescription { mark: Mark::Yes, because, end, ..description }
        }
        _ => StatusDescription { because, ..description },
    }
}

//! What became of a message, in words: told, held back by what and until when, waiting for what, given up. `explain` and `outbox why`
//! say the same, since both ask here. Pure.

use crate::group::{Prospect, Wait};
use model::{
    Ack, Alert, DeliveryState, NotificationRole, NotificationState, NotificationStatus, OutboxRow, ReceiverName, Silence,
    SilenceState, Timestamp, format,
};

use super::{Mark, one_line};

/// What statuses are read with.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatusEvidence<'a> {
    /// All silences that are remembered.
    pub silences: &'a [Silence],
    /// The alerts that hold something back.
    pub inhibitors: &'a [Alert],
    /// Who knows of which alert.
    pub acks: &'a [Ack],
    /// What waits, and what for.
    pub prospects: &'a [Prospect],
    pub deliveries: &'a [OutboxRow],
}

#[derive(Clone, Debug, PartialEq)]
pub struct StatusInWords {
    /// Whether it reached its receiver.
    pub mark: Mark,
    /// All of it on one line: `held back from ops by silence si_… until …`.
    pub text: String,
    /// What it waits for, what held it back, what the receiver answered; none where there is nothing to say beyond its state.
    pub because: Option<String>,
    /// In the sentence at the end: a verb for all that ended alike, and this one's own part.
    pub end: (&'static str, String),
}

/// What became of one message.
pub fn told(status: &NotificationStatus, records: &StatusEvidence<'_>, now: Timestamp) -> StatusInWords {
    let receiver = status.receiver.as_ref().map_or("nobody", ReceiverName::as_str);
    let held = |by: String| StatusInWords {
        mark: Mark::No,
        text: format!("held back from {receiver}: {by}"),
        end: ("held back by", by.clone()),
        because: Some(by),
    };
    let row = records.deliveries.iter().find(|row| Some(row.id) == status.delivery);
    match status.state {
        NotificationState::Nobody => StatusInWords {
            mark: Mark::No,
            text: "told to nobody: no route takes it".to_owned(),
            because: None,
            end: ("told to", "nobody: no route takes it".to_owned()),
        },
        NotificationState::Limited => StatusInWords {
            mark: Mark::No,
            text: "told to nobody: left out by the rule's `limit`, counted in its summary".to_owned(),
            because: Some("the rule's `limit`: its summary counts it".to_owned()),
            end: ("told to", "nobody: left out by the rule's `limit`, and counted in its summary".to_owned()),
        },
        NotificationState::Silenced => held(silenced(status, records, now)),
        NotificationState::Inhibited => held(inhibited(status, records)),
        NotificationState::Acknowledged => held(acknowledged(status, records)),
        NotificationState::Waiting => waiting(status, records, receiver),
        state => delivery(status, state.delivery(), row, receiver),
    }
}

fn silenced(status: &NotificationStatus, records: &StatusEvidence<'_>, now: Timestamp) -> String {
    let id = status.holder.as_deref().unwrap_or_default();
    let Some(silence) = records.silences.iter().find(|silence| silence.id == id) else { return format!("silence {id}") };
    let (word, then) = match silence.state(now) {
        SilenceState::Expired => ("it ended", ""),
        _ => ("until", ", then told where it still fires"),
    };
    format!(
        "silence {id} {word} {}{then} ({} by {}: {})",
        format::instant(silence.ends_at),
        silence.matchers_line(),
        silence.author,
        silence.comment
    )
}

fn inhibited(status: &NotificationStatus, records: &StatusEvidence<'_>) -> String {
    let id = status.holder.as_deref().unwrap_or_default();
    match records.inhibitors.iter().find(|alert| alert.id.as_str() == id) {
        Some(alert) => {
            let text = alert.annotations.get("summary").map(|text| format!(": {}", one_line(text))).unwrap_or_default();
            format!("alert {id} of {}, while that fires{text}", alert.name)
        }
        None => format!("alert {id}, while that fires"),
    }
}

fn acknowledged(status: &NotificationStatus, records: &StatusEvidence<'_>) -> String {
    match records.acks.iter().find(|ack| ack.alert == status.alert) {
        Some(ack) => {
            let comment = if ack.comment.is_empty() { String::new() } else { format!(": {}", ack.comment) };
            format!(
                "an acknowledgement of {} at {}{comment}, until date, amount or level changes",
                ack.author,
                format::instant(ack.at)
            )
        }
        None => "an acknowledgement that was withdrawn since".to_owned(),
    }
}

fn waiting(status: &NotificationStatus, records: &StatusEvidence<'_>, receiver: &str) -> StatusInWords {
    let own = |prospect: &&Prospect| prospect.notice == status.notice && Some(&prospect.receiver) == status.receiver.as_ref();
    let why = match records.prospects.iter().find(own) {
        None => "for the next pass of the daemon".to_owned(),
        Some(Prospect { key, wait, until, .. }) => {
            let until = until.map(|at| format!(" until {}", format::instant(at))).unwrap_or_default();
            match wait {
                Wait::Group => format!("in group {key}{until}: `group_wait`"),
                Wait::Interval => format!("in group {key}{until}: `group_interval`"),
                Wait::Muted(name) => format!("in group {key}{until}: muted by {name}"),
                Wait::Together => format!("to be put together with others{until}: too many came at once"),
                Wait::Hour => format!("for room in the hour{until}: `max_per_hour`, then in one summary"),
                Wait::Nothing => "for the next pass of the daemon".to_owned(),
            }
        }
    };
    StatusInWords {
        mark: Mark::Unknown,
        text: format!("waits for {receiver}: {why}"),
        end: ("waiting", format!("{why} (for {receiver})")),
        because: Some(why),
    }
}

fn delivery(status: &NotificationStatus, state: Option<DeliveryState>, row: Option<&OutboxRow>, receiver: &str) -> StatusInWords {
    let number = status.delivery.map(|id| format!("outbox {id}")).unwrap_or_default();
    let how = match status.role {
        Some(NotificationRole::Counted) => format!(", counted in a summary ({number})"),
        Some(NotificationRole::Merged) => format!(", a later one told in its place ({number})"),
        _ => format!(" ({number})"),
    };
    let answer = row.and_then(|row| row.last_answer.as_deref()).map(one_line).filter(|text| !text.is_empty());
    let answer = answer.map(|answer| format!(": {answer}")).unwrap_or_default();
    let tries = row.map_or_else(|| "all attempts".to_owned(), |row| format::count(row.attempts as usize, "attempt"));
    match state {
        Some(DeliveryState::Delivered) => {
            let at = row.and_then(|row| row.delivered_at).map(|at| format!(" at {}", format::instant(at))).unwrap_or_default();
            StatusInWords {
                mark: Mark::Yes,
                text: format!("delivered to {receiver}{at}{how}"),
                because: None,
                end: ("delivered to", format!("{receiver}{at}")),
            }
        }
        Some(DeliveryState::Retrying) => {
            let next = row.and_then(|row| row.next_attempt_at).map(|at| format!(", tried again {}", format::instant(at)));
            let because = format!("{tries} failed{}{answer}", next.unwrap_or_default());
            StatusInWords {
                mark: Mark::Unknown,
                text: format!("not yet delivered to {receiver}: {because}{how}"),
                end: ("not yet delivered to", format!("{receiver} ({tries} failed)")),
                because: Some(because),
            }
        }
        Some(DeliveryState::Dead) => StatusInWords {
            mark: Mark::No,
            text: format!("dead letter: {receiver}, given up after {tries}{answer}{how}"),
            end: ("dead letter:", format!("{receiver} (given up after {tries}{answer})")),
            because: Some(format!("given up after {tries}{answer}")),
        },
        Some(DeliveryState::Dropped) => StatusInWords {
            mark: Mark::No,
            text: format!("dropped by hand before it reached {receiver}{how}"),
            end: ("never delivered to", format!("{receiver} (dropped by hand)")),
            because: Some("dropped by hand".to_owned()),
        },
        Some(DeliveryState::Due) | None => StatusInWords {
            mark: Mark::Unknown,
            text: format!("due, to be sent to {receiver}{how}"),
            because: None,
            end: ("not yet delivered to", receiver.to_owned()),
        },
    }
}

//! Text about replays.

use super::{count, instant};
use crate::{Replay, ReplayResult, Timestamp};

/// Returns the note in a message that is sent again: `Replay of a message of 9 Mar 2026, 14:00 UTC, not delivered before`.
#[must_use]
pub fn replay_note(replay: Replay, queued_at: Timestamp) -> String {
    let sent = match replay.first_delivered_at {
        Some(at) => format!("first delivered at {}", instant(at)),
        None => "not delivered before".to_owned(),
    };
    format!("Replay of a message of {}, {sent}", instant(queued_at))
}

/// Returns the words about a delivery that is sent again, for explanations.
#[must_use]
pub fn replay_of(replay: Replay) -> String {
    let of = match replay.first_delivered_at {
        Some(at) => format!("of the message delivered at {}", instant(at)),
        None => "of a message that was not delivered before".to_owned(),
    };
    format!("a replay {of}, requested at {}", instant(replay.requested_at))
}

/// Returns what a replay does, one fact per line: `12 messages to ops, queued from … to …, are sent again`.
#[must_use]
pub fn replay_result(result: &ReplayResult, is_preview: bool) -> Vec<String> {
    let ReplayResult { receiver, since, until, deliveries, pending, recently_replayed, dropped, deleted } = result;
    let verb = match (is_preview, *deliveries == 1) {
        (true, _) => "would be",
        (false, true) => "is",
        (false, false) => "are",
    };
    let range = format!("queued from {} to {}", instant(*since), instant(*until));
    let mut lines = vec![format!("{} to {receiver}, {range}, {verb} sent again", count(*deliveries, "message"))];
    let others = [
        (*pending, "pending", "sent anyway"),
        (*recently_replayed, "replayed just before or by a replay that is not finished", "left out; `--again` includes them"),
        (*dropped, "dropped by a user", "left out; `cliffwatch outbox retry ID` sends one"),
        (*deleted, "deleted after `[store] retention`", "lost to a replay; counted by whole hours"),
    ];
    let others = others.into_iter().filter(|(number, ..)| *number > 0);
    lines.extend(others.map(|(number, state, then)| format!("{} {state}: {then}", count(number, "message"))));
    lines
}

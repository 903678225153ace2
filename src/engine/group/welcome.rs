//! Welcome messages: combine the first notifications of a new receiver if they would be many messages.

use std::collections::{BTreeMap, HashSet};

use chrono::TimeDelta;

use super::{Decision, Group, PlannedMessage, Usage, sooner};
use model::{AlertId, BatchKind, NotificationKind, ReceiverName, Timestamp, phrase};

/// The maximum number of first messages that are sent one by one, unless the hourly limit is high.
const MAX_FIRST_MESSAGES: u32 = 10;

/// One in this many messages of the hourly limit may also be sent one by one.
const FIRST_SHARE: u32 = 30;

/// The time for which a welcome message waits after the last notification, plus a quarter of the time since the first one. The first poll
/// of hundreds of tokens takes a while, the first poll of a few tokens does not.
const WELCOME_WAIT: TimeDelta = TimeDelta::seconds(5);

const MAX_WELCOME_WAIT: TimeDelta = TimeDelta::minutes(5);

/// Combines the first notifications of each new receiver if they would be many messages, and waits until no more arrive. Returns the
/// indices of the affected groups.
pub(super) fn welcome<'a>(
    groups: &[Group<'a>],
    usage: &dyn Fn(&ReceiverName) -> Usage,
    now: Timestamp,
    decision: &mut Decision<'a>,
) -> HashSet<usize> {
    let mut first: BTreeMap<&ReceiverName, Vec<usize>> = BTreeMap::new();
    let is_about_tokens = |group: &Group<'_>| group.rows.iter().all(|row| row.kind != NotificationKind::Source);
    for (index, group) in groups.iter().enumerate() {
        if !group.is_urgent && group.muted.is_none() && is_about_tokens(group) {
            first.entry(&group.receiver).or_default().push(index);
        }
    }
    let mut handled = HashSet::new();
    for (receiver, indices) in first {
        let Usage { max_per_hour, sent } = usage(receiver);
        let usize_of = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let max = usize_of((max_per_hour / FIRST_SHARE).max(MAX_FIRST_MESSAGES));
        let is_many = indices.len() > 1 && indices.len().saturating_add(usize_of(sent.recent)) > max;
        if !sent.is_new || !is_many || sent.last_hour >= max_per_hour.max(1) {
            continue;
        }
        let rows = || indices.iter().filter_map(|index| groups.get(*index)).flat_map(|group| group.rows.iter());
        let (Some(begin), Some(last)) = (rows().map(|row| row.since).min(), rows().map(|row| row.since).max()) else { continue };
        let wait = (last - begin + WELCOME_WAIT + (last - begin) / 4).min(MAX_WELCOME_WAIT);
        let at = begin.checked_add_signed(wait).unwrap_or(begin);
        if at <= now {
            let alerts: HashSet<&AlertId> = rows().map(|row| &row.alert).collect();
            // A storm of alerts soon after the first message is not the first message.
            let is_first = sent.recent == 0 && sent.last_hour == 0;
            let alerts = phrase::count(alerts.len(), "alert");
            let note = match is_first {
                true => format!("Welcome to Cliffwatch: this first message combines {alerts}"),
                false => format!("{alerts} at about the same time"),
            };
            let from = decision.messages.len();
            decision.add(&PlannedMessage { shape: BatchKind::Batch, groups: indices.clone(), chunk: None }, groups, Some(note));
            decision.messages.iter_mut().skip(from).for_each(|message| message.batch.is_welcome = is_first);
        } else {
            sooner(&mut decision.next_at, Some(at));
        }
        handled.extend(indices);
    }
    handled
}

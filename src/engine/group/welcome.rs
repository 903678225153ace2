//! What a new receiver is told first: one welcome, where it would be many messages.

use std::collections::{BTreeMap, HashSet};

use chrono::TimeDelta;

use super::{Decision, Group, PlannedMessage, Usage, sooner};
use model::{AlertId, BatchKind, NotificationKind, ReceiverName, Timestamp, format};

/// Messages above which what a new receiver is told first comes as one welcome, unless it takes many in an hour.
const MAX_FIRST_MESSAGES: u32 = 10;

/// The same as a part of the messages that it takes in an hour.
const FIRST_PART: u32 = 30;

/// How long a welcome waits for others after the last that came, and a quarter of the time over which they came so far: a first read of
/// hundreds of tokens takes its time, and that of a few none.
const WELCOME_WAIT: TimeDelta = TimeDelta::seconds(5);

/// The longest that a welcome waits for others.
const MAX_WELCOME_WAIT: TimeDelta = TimeDelta::minutes(5);

/// Puts together what new receivers are told first, where it would be many messages: told once nothing more comes, or left to wait until
/// then. Gives the groups that this settles, by index.
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
    let mut settled = HashSet::new();
    for (receiver, indices) in first {
        let Usage { max_per_hour, lately } = usage(receiver);
        let usize_of = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let most = usize_of((max_per_hour / FIRST_PART).max(MAX_FIRST_MESSAGES));
        let is_many = indices.len() > 1 && indices.len().saturating_add(usize_of(lately.lately)) > most;
        if !lately.is_new || !is_many || lately.last_hour >= max_per_hour.max(1) {
            continue;
        }
        let rows = || indices.iter().filter_map(|index| groups.get(*index)).flat_map(|group| group.rows.iter());
        let (Some(begin), Some(last)) = (rows().map(|row| row.since).min(), rows().map(|row| row.since).max()) else { continue };
        let wait = (last - begin + WELCOME_WAIT + (last - begin) / 4).min(MAX_WELCOME_WAIT);
        let at = begin.checked_add_signed(wait).unwrap_or(begin);
        if at <= now {
            let alerts: HashSet<&AlertId> = rows().map(|row| &row.alert).collect();
            let note = format!("This is the first that Cliffwatch tells you: {} at once", format::count(alerts.len(), "alert"));
            let from = decision.messages.len();
            decision.tell(&PlannedMessage { shape: BatchKind::Fold, groups: indices.clone(), chunk: None }, groups, Some(note));
            decision.messages.iter_mut().skip(from).for_each(|message| message.bundle.is_welcome = true);
        } else {
            sooner(&mut decision.next_at, Some(at));
        }
        settled.extend(indices);
    }
    settled
}

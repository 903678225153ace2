//! One dispatch pass over all pending and suppressed notifications.
//!
//! Notifications are suppressed or sorted into groups, and due groups are sent ([`crate::group`]). The pass also returns what changes in
//! the tables: the members of each group, the number of alerts that were sent before, the settled rows, and the time of the next pass.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::TimeDelta;

use crate::group::{self, Decision, Group, Message, MuteTimes, Prospect, SortInput, Sorted, Usage, sooner};
use crate::route::RouteTree;
use model::{
    AlertId, Dispatch, GroupUpdate, NewDelivery, NotificationKind, PendingNotification, PendingState, ReceiverName, Suppressor,
    Timestamp,
};

/// The limit of a receiver that left the config. Its deliveries become visible dead letters.
const NO_LIMIT: u32 = u32::MAX;

/// The maximum number of messages per hour, by receiver.
pub type HourLimits = BTreeMap<ReceiverName, u32>;

/// Decides about everything that is pending at `now`. `mutes` caches the ends of mute intervals. Keep it between passes.
pub fn dispatch(
    state: &PendingState<'_>,
    routes: &RouteTree,
    limits: &HourLimits,
    mutes: &mut MuteTimes,
    now: Timestamp,
) -> Dispatch {
    run_pass(state, routes, limits, mutes, now, |pass| conclude(pass, state, now))
}

/// Returns what each pending notification waits for, according to [`dispatch`].
pub fn prospects(state: &PendingState<'_>, routes: &RouteTree, limits: &HourLimits, now: Timestamp) -> Vec<Prospect> {
    run_pass(state, routes, limits, &mut MuteTimes::default(), now, |pass| {
        group::prospects(&pass.sorted.groups, &pass.decision, routes, pass.notified_at, pass.usage, now)
    })
}

/// The pending notifications, sorted, with the decision about them.
struct DispatchPass<'a> {
    sorted: &'a Sorted<'a>,
    decision: Decision<'a>,
    notified_at: &'a dyn Fn(usize) -> Option<Timestamp>,
    usage: &'a dyn Fn(&ReceiverName) -> Usage,
}

fn run_pass<T>(
    state: &PendingState<'_>,
    routes: &RouteTree,
    limits: &HourLimits,
    mutes: &mut MuteTimes,
    now: Timestamp,
    then: impl FnOnce(&DispatchPass<'_>) -> T,
) -> T {
    let firing = if routes.inhibit_rules().is_empty() { Default::default() } else { state.lookup.firing() };
    let can_be_sent = |row: &&PendingNotification| !row.is_superseded && !is_settled(row);
    let held: Vec<&PendingNotification> = state.suppressed.iter().filter(can_be_sent).collect();
    let (waiting, silences) = (state.waiting, state.silences);
    let sorted = group::sort(&SortInput { routes, waiting, suppressed: &held, silences, firing: &firing, now });

    let mut notified_at: Vec<Option<Timestamp>> = Vec::with_capacity(sorted.groups.len());
    let mut usages: HashMap<&ReceiverName, Usage> = HashMap::new();
    for group in &sorted.groups {
        notified_at.push(if group.has_state() { state.lookup.notified_at(&group.receiver, &group.key) } else { None });
        usages.entry(&group.receiver).or_insert_with(|| Usage {
            max_per_hour: limits.get(&group.receiver).copied().unwrap_or(NO_LIMIT),
            sent: state.lookup.usage(&group.receiver),
        });
    }
    let nothing = Usage { max_per_hour: NO_LIMIT, sent: Default::default() };
    let notified_at = |index: usize| notified_at.get(index).copied().flatten();
    let usage = |receiver: &ReceiverName| usages.get(receiver).copied().unwrap_or(nothing);
    let mut muted_until = |grouping: &_| mutes.until(routes, grouping, now);
    let decision = group::decide(&sorted.groups, &notified_at, &usage, &mut muted_until, now);
    then(&DispatchPass { sorted: &sorted, decision, notified_at: &notified_at, usage: &usage })
}

/// Returns whether a suppressed row stays suppressed for good: resolutions, acknowledged and unwanted rows, resolved alerts, and
/// events. An event that another alert inhibits is an exception: it is sent when the inhibition ends.
fn is_settled(row: &PendingNotification) -> bool {
    let by = row.suppression.as_ref().map(|suppression| suppression.by);
    is_settled_by(row, by)
}

fn is_settled_by(row: &PendingNotification, by: Option<Suppressor>) -> bool {
    let waits = row.is_firing || (row.kind == NotificationKind::Event && by == Some(Suppressor::Alert));
    row.is_end || matches!(by, Some(Suppressor::Ack | Suppressor::Type)) || !waits
}

fn conclude(pass: &DispatchPass<'_>, state: &PendingState<'_>, now: Timestamp) -> Dispatch {
    let DispatchPass { sorted, decision, .. } = pass;
    let mut dispatch = Dispatch { next_at: sorted.next_at, recheck_at: sorted.recheck_at, ..Dispatch::default() };
    sooner(&mut dispatch.next_at, decision.next_at);
    let suppressed_now: HashMap<i64, Suppressor> = sorted.suppressed.iter().map(|(row, held)| (row.no, held.by)).collect();
    dispatch.suppressed = sorted.suppressed.iter().map(|(row, held)| (row.no, held.clone())).collect();
    dispatch.released = sorted.released.iter().copied().filter(|no| !suppressed_now.contains_key(no)).collect();
    // A released row belongs to a firing alert, so it is not settled.
    let stays = state.suppressed.iter().filter(|row| is_settled(row)).map(|row| row.no);
    let comes = sorted.suppressed.iter().filter(|(row, held)| is_settled_by(row, Some(held.by))).map(|(row, _)| row.no);
    dispatch.settled = stays.chain(comes).collect();

    let flushed = || decision.flushed.iter().filter_map(|index| sorted.groups.get(*index));
    dispatch.groups = flushed().filter(|group| group.has_state()).map(|group| group_update(group, now)).collect();
    dispatch.deliveries = decision.messages.iter().map(|message| delivery(message, state)).collect();

    let notified: usize = flushed().map(|group| group.rows.len()).sum();
    let in_groups: usize = sorted.groups.iter().map(|group| group.rows.len()).sum();
    dispatch.waiting = u32::try_from(in_groups.saturating_sub(notified)).unwrap_or(u32::MAX);
    if (dispatch.waiting > 0 || state.is_cut) && dispatch.next_at.is_none() {
        // A wait without a known end would last forever, so check again in a minute.
        sooner(&mut dispatch.recheck_at, Some(now + TimeDelta::minutes(1)));
    }
    dispatch
}

/// Returns the update of a group that is sent now: the time of its repeat, and its members from now on.
fn group_update(group: &Group<'_>, now: Timestamp) -> GroupUpdate {
    let (ends, others): (Vec<&PendingNotification>, Vec<_>) = group.rows.iter().copied().partition(|row| row.is_end);
    let ids = |rows: Vec<&PendingNotification>| -> Vec<AlertId> { rows.into_iter().map(|row| row.alert.clone()).collect() };
    GroupUpdate {
        receiver: group.receiver.clone(),
        key: group.key.clone(),
        repeat_at: group.grouping.repeat.and_then(|span| now.checked_add_signed(span)),
        joined: ids(others.into_iter().filter(|row| row.is_firing).collect()),
        left: ids(ends),
    }
}

/// Returns the delivery of a message. `notified_before` counts alerts of its group that were sent before, still fire, and are not sent now.
fn delivery(message: &Message<'_>, state: &PendingState<'_>) -> NewDelivery {
    let Message { receiver, notified, counted, merged, batch } = message;
    let mut batch = batch.clone();
    if let Some(key) = &batch.group_key {
        let in_message: HashSet<&AlertId> = notified.iter().chain(counted).map(|row| &row.alert).collect();
        let before = state.lookup.notified_and_firing(receiver, key);
        batch.notified_before = u32::try_from(before.iter().filter(|id| !in_message.contains(id)).count()).unwrap_or(u32::MAX);
    }
    let rows = |rows: &[&PendingNotification]| rows.iter().map(|row| (row.no, row.notice.clone())).collect();
    NewDelivery { receiver: receiver.clone(), notified: rows(notified), counted: rows(counted), merged: rows(merged), batch }
}

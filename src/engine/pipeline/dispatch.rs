//! What becomes of everything that waits for its delivery, or is suppressed: one pass of the dispatcher, decided whole.
//!
//! Notifications are sorted into what is suppressed and the groups of the others, the groups whose time has come are told
//! ([`crate::group`]), and what follows for the tables is worked out: who is in a group from now on, what it counts as told before, which
//! rows are settled, and when there is something to do again.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::TimeDelta;

use crate::group::{self, Decision, Group, Message, MuteTimes, Prospect, Situation, Sorted, Usage, sooner};
use crate::route::RouteTree;
use model::{
    AlertId, Dispatch, GroupUpdate, NewDelivery, NotificationKind, PendingNotification, PendingState, ReceiverName, Suppressor,
    Timestamp,
};

/// A receiver that is gone from the config gets nothing, but what is addressed to it becomes visible dead letters.
const NO_LIMIT: u32 = u32::MAX;

/// Messages that each receiver may get in an hour, by its name.
pub type HourLimits = BTreeMap<ReceiverName, u32>;

/// Decides about everything that is pending at `now`. `mutes` remembers when muted routes tell again; whoever passes often keeps it.
pub fn dispatch(
    state: &PendingState<'_>,
    routes: &RouteTree,
    limits: &HourLimits,
    mutes: &mut MuteTimes,
    now: Timestamp,
) -> Dispatch {
    weigh(state, routes, limits, mutes, now, |weighed| conclude(weighed, state, now))
}

/// What each notification that waits is waiting for, by what [`dispatch`] would decide.
pub fn prospects(state: &PendingState<'_>, routes: &RouteTree, limits: &HourLimits, now: Timestamp) -> Vec<Prospect> {
    weigh(state, routes, limits, &mut MuteTimes::default(), now, |weighed| {
        group::prospects(&weighed.sorted.groups, &weighed.decision, routes, weighed.told_at, weighed.usage, now)
    })
}

/// What is pending, sorted, and what is told of it.
struct Weighed<'a> {
    sorted: &'a Sorted<'a>,
    decision: Decision<'a>,
    told_at: &'a dyn Fn(usize) -> Option<Timestamp>,
    usage: &'a dyn Fn(&ReceiverName) -> Usage,
}

fn weigh<T>(
    state: &PendingState<'_>,
    routes: &RouteTree,
    limits: &HourLimits,
    mutes: &mut MuteTimes,
    now: Timestamp,
    then: impl FnOnce(&Weighed<'_>) -> T,
) -> T {
    let firing = if routes.inhibit_rules().is_empty() { Default::default() } else { state.lookup.firing() };
    let can_be_told = |row: &&PendingNotification| !row.is_superseded && !is_settled(row);
    let held: Vec<&PendingNotification> = state.suppressed.iter().filter(can_be_told).collect();
    let (waiting, silences) = (state.waiting, state.silences);
    let sorted = group::sort(&Situation { routes, waiting, held: &held, silences, firing: &firing, now });

    let mut told_at: Vec<Option<Timestamp>> = Vec::with_capacity(sorted.groups.len());
    let mut usages: HashMap<&ReceiverName, Usage> = HashMap::new();
    for group in &sorted.groups {
        told_at.push(if group.is_kept() { state.lookup.told_at(&group.receiver, &group.key) } else { None });
        usages.entry(&group.receiver).or_insert_with(|| Usage {
            max_per_hour: limits.get(&group.receiver).copied().unwrap_or(NO_LIMIT),
            lately: state.lookup.usage(&group.receiver),
        });
    }
    let nothing = Usage { max_per_hour: NO_LIMIT, lately: Default::default() };
    let told_at = |index: usize| told_at.get(index).copied().flatten();
    let usage = |receiver: &ReceiverName| usages.get(receiver).copied().unwrap_or(nothing);
    let mut muted_until = |grouping: &_| mutes.until(routes, grouping, now);
    let decision = group::decide(&sorted.groups, &told_at, &usage, &mut muted_until, now);
    then(&Weighed { sorted: &sorted, decision, told_at: &told_at, usage: &usage })
}

/// Whether what is suppressed stays so for good: ends, what is acknowledged, alerts that are over, and what happened once, unless another
/// alert spoke for it: that may end, and somebody is to hear of it then.
fn is_settled(row: &PendingNotification) -> bool {
    let by = row.suppression.as_ref().map(|suppression| suppression.by);
    is_settled_by(row, by)
}

fn is_settled_by(row: &PendingNotification, by: Option<Suppressor>) -> bool {
    let waits = row.is_firing || (row.kind == NotificationKind::Event && by == Some(Suppressor::Alert));
    row.is_end || by == Some(Suppressor::Ack) || !waits
}

fn conclude(weighed: &Weighed<'_>, state: &PendingState<'_>, now: Timestamp) -> Dispatch {
    let Weighed { sorted, decision, .. } = weighed;
    let mut dispatch = Dispatch { next_at: sorted.next_at, recheck_at: sorted.recheck_at, ..Dispatch::default() };
    sooner(&mut dispatch.next_at, decision.next_at);
    let suppressed_now: HashMap<i64, Suppressor> = sorted.held.iter().map(|(row, held)| (row.no, held.by)).collect();
    dispatch.suppressed = sorted.held.iter().map(|(row, held)| (row.no, held.clone())).collect();
    dispatch.released = sorted.released.iter().copied().filter(|no| !suppressed_now.contains_key(no)).collect();
    // What is let go is of an alert that fires, and settled by nothing.
    let stays = state.suppressed.iter().filter(|row| is_settled(row)).map(|row| row.no);
    let comes = sorted.held.iter().filter(|(row, held)| is_settled_by(row, Some(held.by))).map(|(row, _)| row.no);
    dispatch.settled = stays.chain(comes).collect();

    let flushed = || decision.flushed.iter().filter_map(|index| sorted.groups.get(*index));
    dispatch.groups = flushed().filter(|group| group.is_kept()).map(|group| group_update(group, now)).collect();
    dispatch.deliveries = decision.messages.iter().map(|message| delivery(message, state)).collect();

    let told: usize = flushed().map(|group| group.rows.len()).sum();
    let in_groups: usize = sorted.groups.iter().map(|group| group.rows.len()).sum();
    dispatch.waiting = u32::try_from(in_groups.saturating_sub(told)).unwrap_or(u32::MAX);
    if (dispatch.waiting > 0 || state.is_cut) && dispatch.next_at.is_none() {
        // Never without a look ahead: a wait whose end nobody knows would be for ever.
        sooner(&mut dispatch.recheck_at, Some(now + TimeDelta::minutes(1)));
    }
    dispatch
}

/// A group that is told now: when it is told again, and who is in it from now on.
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

/// The delivery of a message. Of its group it counts what was told before, still fires, and is not told now.
fn delivery(message: &Message<'_>, state: &PendingState<'_>) -> NewDelivery {
    let Message { receiver, told, counted, merged, bundle } = message;
    let mut bundle = bundle.clone();
    if let Some(key) = &bundle.group_key {
        let own: HashSet<&AlertId> = told.iter().chain(counted).map(|row| &row.alert).collect();
        let before = state.lookup.told_and_firing(receiver, key);
        bundle.told_before = u32::try_from(before.iter().filter(|id| !own.contains(id)).count()).unwrap_or(u32::MAX);
    }
    let rows = |rows: &[&PendingNotification]| rows.iter().map(|row| (row.no, row.notice.clone())).collect();
    NewDelivery { receiver: receiver.clone(), told: rows(told), counted: rows(counted), merged: rows(merged), bundle }
}

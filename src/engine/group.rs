//! Turns pending notifications into messages: suppresses, groups, batches, and summarizes them. Pure.
//!
//! 1. [`sort`] suppresses notifications by silences, inhibitions, and acknowledgements, releases those that nothing suppresses any more,
//!    and sorts the rest into the groups of their routes.
//! 2. [`decide`] turns due groups into [`Message`]s. A group is due `group_wait` after its first notification, but at least
//!    `group_interval` after its last message. A muted route waits until it is no longer muted.
//! 3. Alerts that no route groups are sent one by one at once. During a burst, they are batched by rule.
//! 4. Many first notifications of a new receiver are combined into a welcome message.
//! 5. Beyond the hourly limit of a receiver, everything is combined into one summary. Critical alerts do not wait for the next hour: they
//!    are batched with other critical alerts.
//!
//! Messages, and the alerts in each, are sorted by [`Precedence`]. Alerts that a message only counts have the lowest precedence and are
//! never critical.
//!
//! Each pending notification ends up in exactly one place: suppressed, in a message, or still pending in a group. A receiver gets the
//! notifications of one alert in the order in which they were decided. If several are pending, only the latest is sent, and it replaces
//! the others.

mod key;
mod welcome;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::TimeDelta;

use self::key::bounded_key;
use crate::route::{GroupBy, Grouping, Inhibitor, RouteTree};
use crate::self_monitor::is_about_delivery;
use model::{
    AlertId, Batch, BatchKind, FiringAlert, HOUR, Labels, MAX_ALERTS, NotificationId, NotificationKind, PendingNotification,
    Precedence, ReceiverName, ReceiverUsage, Severity, Silence, SilenceState, Suppression, Suppressor, Timestamp, phrase,
};

/// The lowest number of messages within [`model::pending::BURST_WINDOW`] that counts as a burst.
const MIN_BURST: u32 = 10;

/// The time for which a storm batch waits for more alerts.
pub const BATCH_WAIT: TimeDelta = TimeDelta::seconds(3);

/// The minimum interval between storm batches for the same receiver.
pub const BATCH_INTERVAL: TimeDelta = TimeDelta::minutes(1);

/// The maximum number of batch messages for one rule. The last one counts the rest. Critical alerts may need more messages.
const MAX_CHUNKS: usize = 5;
/// The maximum number of batch messages that all rules share. Each rule gets at least one.
const MAX_BATCHES: usize = 10;

/// The maximum number of rules with separate batches. The other rules share one.
const MAX_RULE_BATCHES: usize = 8;

/// The interval between checks of an inhibition. The end of the inhibiting alert may cause no notification that starts a pass.
const RECHECK: TimeDelta = TimeDelta::seconds(30);

/// The input of [`sort`].
#[derive(Clone, Copy, Debug)]
pub struct SortInput<'a> {
    pub routes: &'a RouteTree,
    /// Pending notifications, by row.
    pub waiting: &'a [PendingNotification],
    /// Suppressed notifications of firing alerts that no later notification superseded.
    pub suppressed: &'a [&'a PendingNotification],
    /// Silences that have not ended.
    pub silences: &'a [Silence],
    /// All firing alerts; may be empty if the config has no inhibitions.
    pub firing: &'a [FiringAlert],
    pub now: Timestamp,
}

/// The result of [`sort`].
#[derive(Clone, Debug, Default)]
pub struct Sorted<'a> {
    /// Notifications that are suppressed from now on.
    pub suppressed: Vec<(&'a PendingNotification, Suppression)>,
    /// Rows of [`SortInput::suppressed`] that nothing suppresses any more.
    pub released: Vec<i64>,
    pub groups: Vec<Group<'a>>,
    /// The next time at which a silence begins or ends.
    pub next_at: Option<Timestamp>,
    /// When to check inhibitions again.
    pub recheck_at: Option<Timestamp>,
}

/// Pending notifications that are sent in one message.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    pub receiver: ReceiverName,
    /// The key of the route and the group labels, or of the route and the alert for an alert that is not grouped.
    pub key: String,
    pub labels: Labels,
    pub grouping: Grouping,
    /// The interval that mutes the route now.
    pub muted: Option<String>,
    /// Whether it is sent at once, regardless of routes.
    pub is_urgent: bool,
    /// The notifications of the group, by row number.
    pub rows: Vec<&'a PendingNotification>,
}

impl Group<'_> {
    /// Returns whether the store keeps the state of the group: if a route groups alerts or repeats them.
    pub fn has_state(&self) -> bool {
        !self.is_urgent && (self.grouping.by != GroupBy::Alert || self.grouping.repeat.is_some())
    }

    fn first(&self) -> Option<Timestamp> {
        self.rows.iter().map(|row| row.since).min()
    }

    /// Returns the highest precedence of its notifications.
    fn precedence(&self) -> Precedence {
        self.rows.iter().map(|row| row.precedence).min_by(Precedence::order).unwrap_or_default()
    }

    fn is_critical(&self) -> bool {
        self.precedence().severity == Severity::Critical
    }

    fn rule(&self) -> &str {
        self.rows.first().and_then(|row| row.labels.get("alertname")).map_or("", String::as_str)
    }
}

/// Returns the silence, inhibition, acknowledgement, or choice of message types that suppresses a notification now.
fn suppression_for(row: &PendingNotification, input: &SortInput<'_>, inhibitor: &Inhibitor<'_>) -> Option<Suppression> {
    // Fallbacks are selected with regard to the types. Without another receiver, an unwanted message is better than none.
    if !is_about_delivery(row.kind, &row.labels) && !input.routes.wants(&row.receiver, row.kind) {
        return Some(Suppression { by: Suppressor::Type, id: row.kind.as_str().to_owned() });
    }
    if matches!(row.kind, NotificationKind::Test | NotificationKind::Digest) {
        return None;
    }
    if let Some(silence) = input.silences.iter().find(|silence| silence.suppresses(&row.labels, input.now)) {
        return Some(Suppression { by: Suppressor::Silence, id: silence.id.clone() });
    }
    if is_about_delivery(row.kind, &row.labels) {
        return None;
    }
    if let Some(source) = inhibitor.of(&row.alert, &row.labels) {
        return Some(Suppression { by: Suppressor::Alert, id: source.as_str().to_owned() });
    }
    let (ack, fact) = row.acknowledged.as_ref()?;
    (row.kind == NotificationKind::Reminder && ack.fact == *fact)
        .then(|| Suppression { by: Suppressor::Ack, id: row.alert.as_str().to_owned() })
}

/// Suppresses or releases notifications, and sorts the others into groups.
pub fn sort<'a>(input: &SortInput<'a>) -> Sorted<'a> {
    let now = input.now;
    let inhibitor = Inhibitor::new(input.routes.inhibit_rules(), input.firing);
    let mut sorted = Sorted::default();
    for silence in input.silences {
        let change_at = if silence.state(now) == SilenceState::Pending { silence.starts_at } else { silence.ends_at };
        sooner(&mut sorted.next_at, Some(change_at).filter(|at| *at > now));
    }

    let mut released: Vec<&PendingNotification> = Vec::new();
    for row in input.suppressed.iter().copied() {
        match suppression_for(row, input, &inhibitor) {
            None => released.push(row),
            Some(Suppression { by: Suppressor::Alert, .. }) => sooner(&mut sorted.recheck_at, now.checked_add_signed(RECHECK)),
            // The silence ended, but meanwhile the alert was acknowledged, or the receiver no longer wants the type of the message.
            Some(other) if matches!(other.by, Suppressor::Ack | Suppressor::Type) => sorted.suppressed.push((row, other)),
            Some(_) => {}
        }
    }
    sorted.released = released.iter().map(|row| row.no).collect();

    // All pending notifications of an alert go to the group of the latest one, because routes may have changed in the meantime.
    let mut by_alert: BTreeMap<(&ReceiverName, &AlertId), Vec<&PendingNotification>> = BTreeMap::new();
    for row in released.into_iter().chain(input.waiting) {
        match suppression_for(row, input, &inhibitor) {
            Some(suppression) => {
                if suppression.by == Suppressor::Alert {
                    sooner(&mut sorted.recheck_at, now.checked_add_signed(RECHECK));
                }
                sorted.suppressed.push((row, suppression));
            }
            None => by_alert.entry((&row.receiver, &row.alert)).or_default().push(row),
        }
    }

    let mut first_waiting: HashMap<(&AlertId, &ReceiverName), i64> = HashMap::new();
    for row in input.waiting {
        first_waiting.entry((&row.alert, &row.receiver)).or_insert(row.no);
    }
    let mut groups: BTreeMap<(ReceiverName, String), Group<'a>> = BTreeMap::new();
    for mut rows in by_alert.into_values() {
        rows.sort_by_key(|row| row.no);
        let Some(last) = rows.last().copied() else { continue };
        if rows.iter().all(|row| row.is_end)
            && let Some(suppression) = suppressed_start(last, &first_waiting)
        {
            // A receiver that was not notified of the alert is not notified of its resolution.
            sorted.suppressed.extend(rows.into_iter().map(|row| (row, suppression.clone())));
            continue;
        }
        let group = group_of(last, input.routes, now);
        groups.entry((group.receiver.clone(), group.key.clone())).or_insert(group).rows.extend(rows);
    }
    sorted.groups = groups.into_values().collect();
    for group in &mut sorted.groups {
        group.rows.sort_by_key(|row| row.no);
    }
    sorted
}

/// Returns the suppression of the firing notification that belongs to a resolution. `None` if the receiver got a notification of the alert,
/// will get one first, or none is known.
fn suppressed_start<'a>(
    end: &'a PendingNotification,
    first_waiting: &HashMap<(&AlertId, &ReceiverName), i64>,
) -> Option<&'a Suppression> {
    let waits_before = first_waiting.get(&(&end.alert, &end.receiver)).is_some_and(|no| *no < end.no);
    end.suppressed_before.as_ref().filter(|_| !end.was_notified && !waits_before)
}

/// Returns the empty group that a notification belongs to.
fn group_of<'a>(row: &PendingNotification, routes: &RouteTree, now: Timestamp) -> Group<'a> {
    let receiver = row.receiver.clone();
    let leaf = routes.leaf(&row.labels, &receiver);
    let is_urgent = matches!(row.kind, NotificationKind::Test | NotificationKind::Digest)
        || is_about_delivery(row.kind, &row.labels)
        || !routes.has_receiver(&receiver);
    let grouping = if is_urgent { Grouping::default() } else { leaf.grouping().clone() };
    let labels: Labels = match &grouping.by {
        GroupBy::Alert => Labels::new(),
        GroupBy::AllLabels => row.labels.clone(),
        GroupBy::Labels(names) => {
            names.iter().map(|name| (name.clone(), row.labels.get(name).cloned().unwrap_or_default())).collect()
        }
    };
    let key = bounded_key(match &grouping.by {
        GroupBy::Alert => format!("{}:{}", leaf.key(), row.alert),
        _ => format!("{}:{}", leaf.key(), format_labels(&labels)),
    });
    let muted = if is_urgent { None } else { routes.muted(&grouping, now) };
    Group { receiver, key, labels, grouping, muted, is_urgent, rows: Vec::new() }
}

/// Formats labels like `{severity="critical", token="arbitrum"}`.
fn format_labels(labels: &Labels) -> String {
    let parts: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}={}", serde_json::Value::from(value.as_str()))).collect();
    format!("{{{}}}", parts.join(", "))
}

/// The limit of messages to a receiver, and its recent messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    pub max_per_hour: u32,
    pub sent: ReceiverUsage,
}

/// A message to one receiver.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    pub receiver: ReceiverName,
    /// Notifications that the message describes, by precedence.
    pub notified: Vec<&'a PendingNotification>,
    /// Notifications that the message only counts.
    pub counted: Vec<&'a PendingNotification>,
    /// Notifications that a later one of the same alert replaces.
    pub merged: Vec<&'a PendingNotification>,
    /// The group and the note. The caller sets `notified_before`.
    pub batch: Batch,
}

/// The result of [`decide`].
#[derive(Clone, Debug, Default)]
pub struct Decision<'a> {
    pub messages: Vec<Message<'a>>,
    /// The groups that the messages contain, as indices into [`Sorted::groups`].
    pub flushed: Vec<usize>,
    /// When to decide again if nothing happens before.
    pub next_at: Option<Timestamp>,
}

/// Returns when a group is due; `None` while it is muted.
pub fn due_at(group: &Group<'_>, flushed_at: Option<Timestamp>) -> Option<Timestamp> {
    let first = group.first()?;
    if group.is_urgent {
        return Some(first);
    }
    if group.muted.is_some() {
        return None;
    }
    let after = |at: Timestamp, span: TimeDelta| at.checked_add_signed(span).unwrap_or(at);
    let waited = after(first, group.grouping.wait);
    Some(flushed_at.map_or(waited, |at| waited.max(after(at, group.grouping.interval))))
}

/// A cache of when muted routes open again. Computing that time checks every minute until then.
#[derive(Clone, Debug, Default)]
pub struct MuteTimes(Vec<(Grouping, Timestamp)>);

impl MuteTimes {
    /// Returns when a route with this grouping, which is muted at `now`, opens again.
    pub fn until(&mut self, routes: &RouteTree, grouping: &Grouping, now: Timestamp) -> Timestamp {
        self.0.retain(|(_, at)| *at > now);
        if let Some((_, at)) = self.0.iter().find(|(known, _)| known == grouping) {
            return *at;
        }
        let at = routes.unmuted_at(grouping, now);
        self.0.push((grouping.clone(), at));
        at
    }
}

/// Decides which groups are sent now, and in which messages. `flushed_at` returns the time of a group's last message, `usage` the recent
/// messages to a receiver, and `muted_until` when a muted route opens again.
pub fn decide<'a>(
    groups: &[Group<'a>],
    flushed_at: &dyn Fn(usize) -> Option<Timestamp>,
    usage: &dyn Fn(&ReceiverName) -> Usage,
    muted_until: &mut dyn FnMut(&Grouping) -> Timestamp,
    now: Timestamp,
) -> Decision<'a> {
    let mut decision = Decision::default();
    let welcomed = welcome::welcome(groups, usage, now, &mut decision);
    let mut due: BTreeMap<&ReceiverName, Vec<usize>> = BTreeMap::new();
    for (index, group) in groups.iter().enumerate().filter(|(index, _)| !welcomed.contains(index)) {
        match due_at(group, flushed_at(index)) {
            Some(at) if at <= now => due.entry(&group.receiver).or_default().push(index),
            Some(at) => sooner(&mut decision.next_at, Some(at)),
            None => sooner(&mut decision.next_at, Some(muted_until(&group.grouping))),
        }
    }
    for (receiver, mut indices) in due {
        // By precedence, then by age: beyond the hourly limit, the last ones go into the summary.
        indices.sort_by_cached_key(|index| groups.get(*index).and_then(|group| Some((group.first()?, group.rows.first()?.no))));
        indices.sort_by(|a, b| match (groups.get(*a), groups.get(*b)) {
            (Some(a), Some(b)) => a.precedence().order(&b.precedence()),
            _ => Ordering::Equal,
        });
        decide_for_receiver(&indices, groups, &usage(receiver), now, &mut decision);
    }
    decision
}

/// A message to create from groups.
struct PlannedMessage {
    shape: BatchKind,
    groups: Vec<usize>,
    /// The number of this message and the number of all messages of a batch. `None` if there is only one.
    chunk: Option<(usize, usize)>,
}

fn decide_for_receiver<'a>(indices: &[usize], groups: &[Group<'a>], usage: &Usage, now: Timestamp, decision: &mut Decision<'a>) {
    let group = |index: &usize| groups.get(*index);
    let is_single = |index: &usize| group(index).is_some_and(|group| !group.is_urgent && group.grouping.by == GroupBy::Alert);
    let singles: Vec<usize> = indices.iter().copied().filter(is_single).collect();
    let burst = (usage.max_per_hour / 10).max(MIN_BURST).min(usage.max_per_hour.max(1));
    let is_burst = singles.len() as u64 > u64::from(burst.saturating_sub(usage.sent.recent));
    let mut planned: Vec<PlannedMessage> = Vec::new();
    if is_burst {
        let first = singles.iter().filter_map(|index| group(index)?.first()).min().unwrap_or(now);
        let after = |at: Timestamp, span: TimeDelta| at.checked_add_signed(span).unwrap_or(at);
        let batch_at =
            usage.sent.batched_at.map_or(after(first, BATCH_WAIT), |at| after(first, BATCH_WAIT).max(after(at, BATCH_INTERVAL)));
        if batch_at <= now {
            planned = batch_by_rule(&singles, groups);
        } else {
            sooner(&mut decision.next_at, Some(batch_at));
        }
    }
    for index in indices.iter().copied().filter(|index| !is_burst || !is_single(index)) {
        let shape = if is_single(&index) || group(&index).is_some_and(|group| group.is_urgent) {
            BatchKind::Single
        } else {
            BatchKind::Group
        };
        planned.push(PlannedMessage { shape, groups: vec![index], chunk: None });
    }

    let room = usize::try_from(usage.max_per_hour.max(1).saturating_sub(usage.sent.last_hour)).unwrap_or(usize::MAX);
    let is_critical = |plan: &PlannedMessage| plan.groups.iter().filter_map(group).any(Group::is_critical);
    planned.sort_by_key(|plan| !is_critical(plan));
    let excess = if planned.len() > room { planned.split_off(room) } else { Vec::new() };
    for plan in planned {
        decision.add(&plan, groups, None);
    }
    let excess: Vec<usize> = excess.into_iter().flat_map(|plan| plan.groups).collect();
    if !excess.is_empty() {
        summarize_excess(excess, groups, usage, now, decision);
    }
}

/// Handles groups beyond the hourly limit of a receiver: one summary per hour, and batches of critical alerts in between.
fn summarize_excess<'a>(excess: Vec<usize>, groups: &[Group<'a>], usage: &Usage, now: Timestamp, decision: &mut Decision<'a>) {
    let limit = phrase::count(usage.max_per_hour, "message");
    let alerts = |of: &[usize]| of.iter().filter_map(|index| groups.get(*index)).map(|group| group.rows.len()).sum::<usize>();
    let later = |at: Option<Timestamp>, span: TimeDelta| at.and_then(|at| at.checked_add_signed(span)).filter(|at| *at > now);
    let next_summary = later(usage.sent.summed_at, HOUR);
    let Some(next_summary) = next_summary else {
        let note = format!("{} beyond the limit of {limit} an hour, in one message", phrase::count(alerts(&excess), "alert"));
        return decision.add(&PlannedMessage { shape: BatchKind::Summary, groups: excess, chunk: None }, groups, Some(note));
    };
    let (critical, mut waiting): (Vec<usize>, Vec<usize>) =
        excess.into_iter().partition(|index| groups.get(*index).is_some_and(Group::is_critical));
    let next_batch = later(usage.sent.batched_at, BATCH_INTERVAL);
    sooner(&mut decision.next_at, next_batch.filter(|_| !critical.is_empty()));
    if next_batch.is_none() {
        decision.add(&PlannedMessage { shape: BatchKind::Batch, groups: critical, chunk: None }, groups, None);
    } else {
        waiting.extend(critical);
    }
    let room_at = later(usage.sent.oldest, HOUR).map_or(next_summary, |at| at.min(next_summary));
    sooner(&mut decision.next_at, Some(next_summary));
    sooner(&mut decision.next_at, Some(room_at));
    let receiver = waiting.first().and_then(|index| groups.get(*index)).map(|group| &group.receiver);
    let last = decision.messages.last_mut().filter(|message| Some(&message.receiver) == receiver);
    if let Some(last) = last {
        let count = alerts(&waiting);
        let wait = if count == 1 { "waits" } else { "wait" };
        let until = phrase::instant(room_at);
        let note = format!("{} {wait} until {until}: the limit of {limit} an hour is reached", phrase::count(count, "alert"));
        last.batch.note = Some(last.batch.note.take().map_or(note.clone(), |before| format!("{before}. {note}")));
    }
}

impl<'a> Decision<'a> {
    fn add(&mut self, plan: &PlannedMessage, groups: &[Group<'a>], note: Option<String>) {
        self.flushed.extend(&plan.groups);
        self.messages.extend(messages(plan, groups, note.as_deref()));
    }
}

/// Batches alerts that no route groups by rule, the rules with the highest precedence first. All critical alerts are described, in as many
/// messages as they need.
fn batch_by_rule(singles: &[usize], groups: &[Group<'_>]) -> Vec<PlannedMessage> {
    let mut rules: Vec<(&str, Vec<usize>)> = Vec::new();
    for index in singles {
        let Some(rule) = groups.get(*index).map(Group::rule) else { continue };
        match rules.iter_mut().find(|(name, _)| *name == rule) {
            Some((_, indices)) => indices.push(*index),
            None => rules.push((rule, vec![*index])),
        }
    }
    let named: HashSet<&str> = rules.iter().take(MAX_RULE_BATCHES).map(|(name, _)| *name).collect();
    rules.truncate(MAX_RULE_BATCHES);
    let is_other = |index: &usize| groups.get(*index).is_some_and(|group| !named.contains(group.rule()));
    let others: Vec<usize> = singles.iter().copied().filter(is_other).collect();
    let mut planned = Vec::new();
    let of_rules: Vec<Vec<usize>> =
        rules.into_iter().map(|(_, indices)| indices).chain((!others.is_empty()).then_some(others)).collect();
    let max_chunks = (MAX_BATCHES / of_rules.len().max(1)).clamp(1, MAX_CHUNKS);
    for indices in of_rules {
        let critical = indices.iter().filter_map(|index| groups.get(*index)).filter(|group| group.is_critical()).count();
        let chunks = indices.len().div_ceil(MAX_ALERTS).min(max_chunks.max(critical.div_ceil(MAX_ALERTS)));
        for chunk in 0..chunks {
            let part = indices.iter().copied().skip(chunk * MAX_ALERTS);
            // The last message takes the rest, and counts the alerts beyond its limit.
            let part: Vec<usize> = if chunk + 1 == chunks { part.collect() } else { part.take(MAX_ALERTS).collect() };
            let shape = if part.len() == 1 { BatchKind::Single } else { BatchKind::Batch };
            planned.push(PlannedMessage { shape, groups: part, chunk: (chunks > 1).then_some((chunk + 1, chunks)) });
        }
    }
    planned
}

/// Returns the messages for a plan: one, unless there are more critical alerts than one message can describe.
fn messages<'a>(plan: &PlannedMessage, groups: &[Group<'a>], note: Option<&str>) -> Vec<Message<'a>> {
    let members: Vec<&Group<'a>> = plan.groups.iter().filter_map(|index| groups.get(*index)).collect();
    let Some(first) = members.first() else { return Vec::new() };
    let mut rows: Vec<&'a PendingNotification> = members.iter().flat_map(|group| group.rows.iter().copied()).collect();
    rows.sort_by_key(|row| row.no);
    let last: HashMap<&AlertId, i64> = rows.iter().map(|row| (&row.alert, row.no)).collect();
    let (mut notified, mut merged): (Vec<&PendingNotification>, Vec<&PendingNotification>) =
        rows.into_iter().partition(|row| last.get(&row.alert) == Some(&row.no));
    notified.sort_by(|a, b| a.precedence.order(&b.precedence));
    let critical = notified.partition_point(|row| row.precedence.severity == Severity::Critical);
    let mut batch = Batch { shape: plan.shape, ..Batch::default() };
    if let (BatchKind::Group, [group]) = (plan.shape, members.as_slice()) {
        batch.group_key = Some(group.key.clone());
        batch.group_labels = group.labels.clone();
    }
    if members.iter().all(|group| group.rows.iter().all(|row| row.kind == NotificationKind::Digest)) {
        batch.shape = BatchKind::Digest;
    }
    let parts = critical.div_ceil(MAX_ALERTS).max(1);
    let mut messages = Vec::with_capacity(parts);
    for part in 1..=parts {
        let rest = notified.split_off(notified.len().min(MAX_ALERTS));
        let here = std::mem::replace(&mut notified, rest);
        let counted = if part == parts { std::mem::take(&mut notified) } else { Vec::new() };
        let included: HashSet<&AlertId> = here.iter().chain(&counted).map(|row| &row.alert).collect();
        let (merged_here, others) = merged.into_iter().partition(|row| included.contains(&row.alert));
        merged = others;
        let chunk = plan.chunk.or((parts > 1).then_some((part, parts)));
        let part_of = chunk.map(|(part, parts)| format!("Many alerts at once: message {part} of {parts}"));
        let notes: Vec<String> = note.map(str::to_owned).into_iter().chain(part_of).collect();
        messages.push(Message {
            receiver: first.receiver.clone(),
            batch: Batch {
                truncated: u32::try_from(counted.len()).unwrap_or(u32::MAX),
                note: (!notes.is_empty()).then(|| notes.join(". ")),
                severity: here.first().map(|row| row.precedence.severity).unwrap_or_default(),
                ..batch.clone()
            },
            notified: here,
            counted,
            merged: merged_here,
        });
    }
    messages
}

/// The reason why a notification is still pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// More notifications may join the group: `group_wait`.
    Group,
    /// The last message of the group is recent: `group_interval`.
    Interval,
    /// The route is muted by this interval.
    Muted(String),
    /// A storm batch waits for more alerts.
    Together,
    /// The hourly limit is reached: `max_per_hour`.
    Hour,
    /// The next dispatch pass sends it.
    Nothing,
}

/// A pending notification with the reason and the end of its wait.
#[derive(Clone, Debug, PartialEq)]
pub struct Prospect {
    pub notice: NotificationId,
    pub receiver: ReceiverName,
    pub key: String,
    pub wait: Wait,
    /// The end of the wait, if known.
    pub until: Option<Timestamp>,
}

/// Returns the reason for each wait, given the decision of [`decide`] about `groups`.
pub fn prospects(
    groups: &[Group<'_>],
    decision: &Decision<'_>,
    routes: &RouteTree,
    flushed_at: &dyn Fn(usize) -> Option<Timestamp>,
    usage: &dyn Fn(&ReceiverName) -> Usage,
    now: Timestamp,
) -> Vec<Prospect> {
    let mut prospects = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let (wait, until) = if decision.flushed.contains(&index) {
            (Wait::Nothing, None)
        } else if let Some(name) = &group.muted {
            (Wait::Muted(name.clone()), Some(routes.unmuted_at(&group.grouping, now)))
        } else if let Some(at) = due_at(group, flushed_at(index)).filter(|at| *at > now) {
            let waited = group.first().and_then(|first| first.checked_add_signed(group.grouping.wait));
            (if waited == Some(at) { Wait::Group } else { Wait::Interval }, Some(at))
        } else {
            let usage = usage(&group.receiver);
            let is_full = usage.sent.last_hour >= usage.max_per_hour.max(1);
            let hour = usage.sent.summed_at.and_then(|at| at.checked_add_signed(HOUR));
            if is_full { (Wait::Hour, hour.filter(|at| *at > now)) } else { (Wait::Together, decision.next_at) }
        };
        prospects.extend(group.rows.iter().map(|row| Prospect {
            notice: row.notice.clone(),
            receiver: row.receiver.clone(),
            key: group.key.clone(),
            wait: wait.clone(),
            until,
        }));
    }
    prospects
}

/// Sets `next` to the earlier of two times.
pub fn sooner(next: &mut Option<Timestamp>, at: Option<Timestamp>) {
    *next = match (*next, at) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
}

#[cfg(test)]
mod tests;

//! What becomes of the messages that wait: held back, told in a group, folded, summed up. Pure: what waits, what holds back and
//! the time come in; deliveries to make come out, to be written in one transaction.
//!
//! The path of a message, one notice for one receiver:
//! 1. [`sort`] holds back what a silence, an inhibition or an acknowledgement speaks against, lets go what none speaks against
//!    any more, and puts the others into the groups that their routes make.
//! 2. [`decide`] finds the groups whose time has come and makes [`Message`]s of them. A group is told `group_wait` after its first
//!    message came, and not before `group_interval` has passed since it was last told; a muted route waits until it is heard again.
//! 3. What no route groups is told at once, each alert by itself, unless too many come at once: then they are put together by rule.
//! 4. What a new receiver is told first, be it grouped or not, is put together as a welcome where it would be many messages.
//! 5. Above the messages that a receiver gets in an hour, everything becomes one summary. What is critical waits for no hour: while that
//!    is full, it is put together with other critical alerts.
//!
//! Messages, and the alerts in each, come in the order of their [`Precedence`]: what is only counted is the least, and nothing critical
//! ever is.
//!
//! The promise: every message that comes in is in exactly one place afterwards, and each place is recorded. Of one alert, a receiver
//! is told things in the order in which they were decided; where several wait, the latest is told and stands for the others.

mod welcome;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::TimeDelta;

use crate::route::{GroupBy, Grouping, Inhibitor, RouteTree};
use crate::self_monitor::is_about_delivery;
use model::{
    AlertId, Batch, BatchKind, FiringAlert, HOUR, Labels, NotificationId, NotificationKind, PendingNotification, Precedence,
    ReceiverName, ReceiverUsage, Silence, SilenceState, Suppression, Suppressor, Timestamp, Tone, format,
};

/// Alerts that one message tells; the others are counted.
pub const MAX_ALERTS: usize = 100;

/// Messages of the last five minutes above which alerts that no route groups are put together, where the receiver's hour allows more.
const MIN_BURST: u32 = 10;

/// How long those that are put together wait for others.
pub const FOLD_WAIT: TimeDelta = TimeDelta::seconds(3);

/// How long it takes until more are put together for the same receiver.
pub const FOLD_INTERVAL: TimeDelta = TimeDelta::minutes(1);

/// Messages into which the alerts of one rule are put, and those of all rules together, beyond one for each; what does not fit is
/// counted in the last of its rule.
const MAX_CHUNKS: usize = 5;
const MAX_BATCHES: usize = 10;

/// Rules that get messages of their own when alerts are put together; the others share one.
const MAX_FOLDS: usize = 8;

/// How soon an inhibition is looked at again: the end of what inhibits may be told to nobody.
const RECHECK: TimeDelta = TimeDelta::seconds(30);

/// Everything that [`sort`] looks at.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    pub routes: &'a RouteTree,
    /// What waits, by row.
    pub waiting: &'a [PendingNotification],
    /// What is held back of alerts that fire, where nothing later was told of them.
    pub held: &'a [&'a PendingNotification],
    /// Silences that are not over.
    pub silences: &'a [Silence],
    /// What fires, as far as there are inhibitions.
    pub firing: &'a [FiringAlert],
    pub now: Timestamp,
}

/// What waits, sorted.
#[derive(Clone, Debug, Default)]
pub struct Sorted<'a> {
    /// What is held back from now on.
    pub held: Vec<(&'a PendingNotification, Suppression)>,
    /// What is no longer held back: rows of `held`.
    pub released: Vec<i64>,
    pub groups: Vec<Group<'a>>,
    /// When time alone may have it sorted otherwise: a silence begins or ends.
    pub next_at: Option<Timestamp>,
    /// When to look again at what is inhibited: the end of what inhibits may be told to nobody.
    pub recheck_at: Option<Timestamp>,
}

/// Messages that belong into one.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    pub receiver: ReceiverName,
    /// Its key; of an alert by itself, with the alert's id.
    pub key: String,
    /// The labels by which it was made.
    pub labels: Labels,
    pub grouping: Grouping,
    /// The interval that mutes it now.
    pub muted: Option<String>,
    /// Whether it goes out at once, whatever the routes say.
    pub is_urgent: bool,
    /// What waits in it, by row.
    pub rows: Vec<&'a PendingNotification>,
}

impl Group<'_> {
    /// Whether its state is kept: what a route groups, and what is told again.
    pub fn is_kept(&self) -> bool {
        !self.is_urgent && (self.grouping.by != GroupBy::Alert || self.grouping.repeat.is_some())
    }

    fn first(&self) -> Option<Timestamp> {
        self.rows.iter().map(|row| row.since).min()
    }

    /// The precedence of the first that is to be told of it.
    fn precedence(&self) -> Precedence {
        self.rows.iter().map(|row| row.precedence).min_by(Precedence::order).unwrap_or_default()
    }

    fn is_critical(&self) -> bool {
        self.precedence().tone == Tone::Critical
    }

    fn rule(&self) -> &str {
        self.rows.first().and_then(|row| row.labels.get("alertname")).map_or("", String::as_str)
    }
}

/// Why nothing is said of a message now.
fn holder(row: &PendingNotification, situation: &Situation<'_>, inhibitor: &Inhibitor<'_>) -> Option<Suppression> {
    if matches!(row.kind, NotificationKind::Test | NotificationKind::Digest) {
        return None;
    }
    if let Some(silence) = situation.silences.iter().find(|silence| silence.hides(&row.labels, situation.now)) {
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

/// Holds back what something speaks against, lets go what nothing does any more, and groups the others.
pub fn sort<'a>(situation: &Situation<'a>) -> Sorted<'a> {
    let now = situation.now;
    let inhibitor = Inhibitor::new(situation.routes.inhibit_rules(), situation.firing);
    let mut sorted = Sorted::default();
    for silence in situation.silences {
        let turn = if silence.state(now) == SilenceState::Pending { silence.starts_at } else { silence.ends_at };
        sooner(&mut sorted.next_at, Some(turn).filter(|turn| *turn > now));
    }

    let mut released: Vec<&PendingNotification> = Vec::new();
    for row in situation.held.iter().copied() {
        match holder(row, situation, &inhibitor) {
            None => released.push(row),
            Some(Suppression { by: Suppressor::Alert, .. }) => sooner(&mut sorted.recheck_at, now.checked_add_signed(RECHECK)),
            // A silence that held it back is over, and somebody knows of its alert.
            Some(known) if known.by == Suppressor::Ack => sorted.held.push((row, known)),
            Some(_) => {}
        }
    }
    sorted.released = released.iter().map(|row| row.no).collect();

    // Of one alert, everything that waits for a receiver goes the way of the latest: routes may have changed in between.
    let mut by_alert: BTreeMap<(&ReceiverName, &AlertId), Vec<&PendingNotification>> = BTreeMap::new();
    for row in released.into_iter().chain(situation.waiting) {
        match holder(row, situation, &inhibitor) {
            Some(held) => {
                if held.by == Suppressor::Alert {
                    sooner(&mut sorted.recheck_at, now.checked_add_signed(RECHECK));
                }
                sorted.held.push((row, held));
            }
            None => by_alert.entry((&row.receiver, &row.alert)).or_default().push(row),
        }
    }

    let mut first_waiting: HashMap<(&AlertId, &ReceiverName), i64> = HashMap::new();
    for row in situation.waiting {
        first_waiting.entry((&row.alert, &row.receiver)).or_insert(row.no);
    }
    let mut groups: BTreeMap<(ReceiverName, String), Group<'a>> = BTreeMap::new();
    for mut rows in by_alert.into_values() {
        rows.sort_by_key(|row| row.no);
        let Some(last) = rows.last().copied() else { continue };
        if rows.iter().all(|row| row.is_end)
            && let Some(held) = beginning(last, &first_waiting)
        {
            // Whoever was not told that it began is not told that it ended.
            sorted.held.extend(rows.into_iter().map(|row| (row, held.clone())));
            continue;
        }
        let group = group_of(last, situation.routes, now);
        groups.entry((group.receiver.clone(), group.key.clone())).or_insert(group).rows.extend(rows);
    }
    sorted.groups = groups.into_values().collect();
    for group in &mut sorted.groups {
        group.rows.sort_by_key(|row| row.no);
    }
    sorted
}

/// What suppressed the beginning of an alert whose end is to be told; none where the receiver was told of the alert, will be told first,
/// or nothing is known of it.
fn beginning<'a>(
    end: &'a PendingNotification,
    first_waiting: &HashMap<(&AlertId, &ReceiverName), i64>,
) -> Option<&'a Suppression> {
    let waits_before = first_waiting.get(&(&end.alert, &end.receiver)).is_some_and(|no| *no < end.no);
    end.suppressed_before.as_ref().filter(|_| !end.was_told && !waits_before)
}

/// The group that a message belongs to.
fn group_of<'a>(row: &PendingNotification, routes: &RouteTree, now: Timestamp) -> Group<'a> {
    let receiver = row.receiver.clone();
    let leaf = routes.leaf(&row.labels, &receiver);
    let is_urgent = matches!(row.kind, NotificationKind::Test | NotificationKind::Digest)
        || is_about_delivery(row.kind, &row.labels)
        || !routes.knows(&receiver);
    let grouping = if is_urgent { Grouping::default() } else { leaf.grouping().clone() };
    let labels: Labels = match &grouping.by {
        GroupBy::Alert => Labels::new(),
        GroupBy::AllLabels => row.labels.clone(),
        GroupBy::Labels(names) => {
            names.iter().map(|name| (name.clone(), row.labels.get(name).cloned().unwrap_or_default())).collect()
        }
    };
    let key = match &grouping.by {
        GroupBy::Alert => format!("{}:{}", leaf.key(), row.alert),
        _ => format!("{}:{}", leaf.key(), in_braces(&labels)),
    };
    let muted = if is_urgent { None } else { routes.muted(&grouping, now) };
    Group { receiver, key, labels, grouping, muted, is_urgent, rows: Vec::new() }
}

/// `{severity="critical", token="arbitrum"}`.
fn in_braces(labels: &Labels) -> String {
    let parts: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}={}", serde_json::Value::from(value.as_str()))).collect();
    format!("{{{}}}", parts.join(", "))
}

/// What a receiver may get, and what it got.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Messages that it may get in an hour.
    pub max_per_hour: u32,
    /// What it got.
    pub lately: ReceiverUsage,
}

#[derive(Clone, Debug)]
pub struct Message<'a> {
    pub receiver: ReceiverName,
    /// What it is told, by row.
    pub told: Vec<&'a PendingNotification>,
    pub counted: Vec<&'a PendingNotification>,
    /// What something later of the same alert, in the same message, stands for.
    pub merged: Vec<&'a PendingNotification>,
    /// Its group and its note; `told_before` is counted by whoever knows the group.
    pub bundle: Batch,
}

/// What [`decide`] comes to.
#[derive(Clone, Debug, Default)]
pub struct Decision<'a> {
    /// Deliveries to make.
    pub messages: Vec<Message<'a>>,
    /// Groups that are told in them, by index into [`Sorted::groups`].
    pub flushed: Vec<usize>,
    /// When it is to be looked at again, if nothing happens before.
    pub next_at: Option<Timestamp>,
}

/// When a group may be told; none while it is muted.
pub fn due_at(group: &Group<'_>, flushed_at: Option<Timestamp>) -> Option<Timestamp> {
    let first = group.first()?;
    if group.is_urgent {
        return Some(first);
    }
    if group.muted.is_some() {
        return None;
    }
    let after = |at: Timestamp, span: TimeDelta| at.checked_add_signed(span).unwrap_or(at);
    let begun = after(first, group.grouping.wait);
    Some(flushed_at.map_or(begun, |at| begun.max(after(at, group.grouping.interval))))
}

/// When routes that are muted tell again, as far as it was worked out: to find it out takes a look at every minute until then.
#[derive(Clone, Debug, Default)]
pub struct MuteTimes(Vec<(Grouping, Timestamp)>);

impl MuteTimes {
    /// When a route that groups like this and is muted at `now` tells again.
    pub fn until(&mut self, routes: &RouteTree, grouping: &Grouping, now: Timestamp) -> Timestamp {
        self.0.retain(|(_, at)| *at > now);
        if let Some((_, at)) = self.0.iter().find(|(known, _)| known == grouping) {
            return *at;
        }
        let at = routes.heard_again(grouping, now);
        self.0.push((grouping.clone(), at));
        at
    }
}

/// Which groups are told now, and in which messages. `flushed_at` says when a group was last told, `usage` what a receiver got, and
/// `muted_until` when a route that is muted tells again.
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
        // The most urgent first, then the longest waiting: where the hour is full, the others are those that are summed up.
        indices.sort_by_cached_key(|index| groups.get(*index).and_then(|group| Some((group.first()?, group.rows.first()?.no))));
        indices.sort_by(|a, b| match (groups.get(*a), groups.get(*b)) {
            (Some(a), Some(b)) => a.precedence().order(&b.precedence()),
            _ => Ordering::Equal,
        });
        one_receiver(&indices, groups, &usage(receiver), now, &mut decision);
    }
    decision
}

/// A message that is decided on, with the groups that it tells.
struct PlannedMessage {
    shape: BatchKind,
    groups: Vec<usize>,
    /// Where the group's alerts are told in several messages: which part of them, out of how many.
    chunk: Option<(usize, usize)>,
}

fn one_receiver<'a>(indices: &[usize], groups: &[Group<'a>], usage: &Usage, now: Timestamp, decision: &mut Decision<'a>) {
    let group = |index: &usize| groups.get(*index);
    let is_single = |index: &usize| group(index).is_some_and(|group| !group.is_urgent && group.grouping.by == GroupBy::Alert);
    let singles: Vec<usize> = indices.iter().copied().filter(is_single).collect();
    let burst = (usage.max_per_hour / 10).max(MIN_BURST).min(usage.max_per_hour.max(1));
    let is_burst = singles.len() as u64 > u64::from(burst.saturating_sub(usage.lately.lately));
    let mut planned: Vec<PlannedMessage> = Vec::new();
    if is_burst {
        let first = singles.iter().filter_map(|index| group(index)?.first()).min().unwrap_or(now);
        let after = |at: Timestamp, span: TimeDelta| at.checked_add_signed(span).unwrap_or(at);
        let fold_at =
            usage.lately.folded_at.map_or(after(first, FOLD_WAIT), |at| after(first, FOLD_WAIT).max(after(at, FOLD_INTERVAL)));
        if fold_at <= now {
            planned = fold(&singles, groups);
        } else {
            sooner(&mut decision.next_at, Some(fold_at));
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

    let room = usize::try_from(usage.max_per_hour.max(1).saturating_sub(usage.lately.last_hour)).unwrap_or(usize::MAX);
    // Folds came first, by rule.
    let is_critical = |plan: &PlannedMessage| plan.groups.iter().filter_map(group).any(Group::is_critical);
    planned.sort_by_key(|plan| !is_critical(plan));
    let above = if planned.len() > room { planned.split_off(room) } else { Vec::new() };
    for plan in planned {
        decision.tell(&plan, groups, None);
    }
    let above: Vec<usize> = above.into_iter().flat_map(|plan| plan.groups).collect();
    if !above.is_empty() {
        above_the_hour(above, groups, usage, now, decision);
    }
}

/// What a receiver's hour has no room for: everything in one summary an hour, and what is critical before that.
fn above_the_hour<'a>(above: Vec<usize>, groups: &[Group<'a>], usage: &Usage, now: Timestamp, decision: &mut Decision<'a>) {
    let limit = format::count(usize::try_from(usage.max_per_hour).unwrap_or(usize::MAX), "message");
    let alerts = |of: &[usize]| of.iter().filter_map(|index| groups.get(*index)).map(|group| group.rows.len()).sum::<usize>();
    let later = |at: Option<Timestamp>, span: TimeDelta| at.and_then(|at| at.checked_add_signed(span)).filter(|at| *at > now);
    let next_summary = later(usage.lately.summed_at, HOUR);
    let Some(next_summary) = next_summary else {
        let note = format!("{} above the limit of {limit} an hour, in one message", format::count(alerts(&above), "alert"));
        return decision.tell(&PlannedMessage { shape: BatchKind::Summary, groups: above, chunk: None }, groups, Some(note));
    };
    let (critical, mut waiting): (Vec<usize>, Vec<usize>) =
        above.into_iter().partition(|index| groups.get(*index).is_some_and(Group::is_critical));
    let next_fold = later(usage.lately.folded_at, FOLD_INTERVAL);
    sooner(&mut decision.next_at, next_fold.filter(|_| !critical.is_empty()));
    if next_fold.is_none() {
        decision.tell(&PlannedMessage { shape: BatchKind::Fold, groups: critical, chunk: None }, groups, None);
    } else {
        waiting.extend(critical);
    }
    let room_at = later(usage.lately.oldest, HOUR).map_or(next_summary, |at| at.min(next_summary));
    sooner(&mut decision.next_at, Some(next_summary));
    sooner(&mut decision.next_at, Some(room_at));
    let receiver = waiting.first().and_then(|index| groups.get(*index)).map(|group| &group.receiver);
    let last = decision.messages.last_mut().filter(|message| Some(&message.receiver) == receiver);
    if let Some(last) = last {
        let count = alerts(&waiting);
        let wait = if count == 1 { "waits" } else { "wait" };
        let until = format::instant(room_at);
        let note = format!("{} {wait} until {until}: the limit of {limit} an hour is reached", format::count(count, "alert"));
        last.bundle.note = Some(last.bundle.note.take().map_or(note.clone(), |before| format!("{before}. {note}")));
    }
}

impl<'a> Decision<'a> {
    /// Tells a message that was decided on.
    fn tell(&mut self, plan: &PlannedMessage, groups: &[Group<'a>], note: Option<String>) {
        self.flushed.extend(&plan.groups);
        self.messages.extend(messages(plan, groups, note.as_deref()));
    }
}

/// Puts alerts together that no route groups: by rule, the rules with the most urgent alerts first. What is critical is named, however
/// many messages that takes.
fn fold(singles: &[usize], groups: &[Group<'_>]) -> Vec<PlannedMessage> {
    let mut rules: Vec<(&str, Vec<usize>)> = Vec::new();
    for index in singles {
        let Some(rule) = groups.get(*index).map(Group::rule) else { continue };
        match rules.iter_mut().find(|(name, _)| *name == rule) {
            Some((_, indices)) => indices.push(*index),
            None => rules.push((rule, vec![*index])),
        }
    }
    let named: HashSet<&str> = rules.iter().take(MAX_FOLDS).map(|(name, _)| *name).collect();
    rules.truncate(MAX_FOLDS);
    let is_other = |index: &usize| groups.get(*index).is_some_and(|group| !named.contains(group.rule()));
    let others: Vec<usize> = singles.iter().copied().filter(is_other).collect();
    let mut planned = Vec::new();
    let of_rules: Vec<Vec<usize>> =
        rules.into_iter().map(|(_, indices)| indices).chain((!others.is_empty()).then_some(others)).collect();
    let most = (MAX_BATCHES / of_rules.len().max(1)).clamp(1, MAX_CHUNKS);
    for indices in of_rules {
        let critical = indices.iter().filter_map(|index| groups.get(*index)).filter(|group| group.is_critical()).count();
        let chunks = indices.len().div_ceil(MAX_ALERTS).min(most.max(critical.div_ceil(MAX_ALERTS)));
        for chunk in 0..chunks {
            let part = indices.iter().copied().skip(chunk * MAX_ALERTS);
            // The last takes all that is left, and counts what it has no room for.
            let part: Vec<usize> = if chunk + 1 == chunks { part.collect() } else { part.take(MAX_ALERTS).collect() };
            let shape = if part.len() == 1 { BatchKind::Single } else { BatchKind::Fold };
            planned.push(PlannedMessage { shape, groups: part, chunk: (chunks > 1).then_some((chunk + 1, chunks)) });
        }
    }
    planned
}

/// The messages that tell what was planned: one, unless more are critical than one has room for.
fn messages<'a>(plan: &PlannedMessage, groups: &[Group<'a>], note: Option<&str>) -> Vec<Message<'a>> {
    let members: Vec<&Group<'a>> = plan.groups.iter().filter_map(|index| groups.get(*index)).collect();
    let Some(first) = members.first() else { return Vec::new() };
    let mut rows: Vec<&'a PendingNotification> = members.iter().flat_map(|group| group.rows.iter().copied()).collect();
    rows.sort_by_key(|row| row.no);
    let last: HashMap<&AlertId, i64> = rows.iter().map(|row| (&row.alert, row.no)).collect();
    let (mut told, mut merged): (Vec<&PendingNotification>, Vec<&PendingNotification>) =
        rows.into_iter().partition(|row| last.get(&row.alert) == Some(&row.no));
    told.sort_by(|a, b| a.precedence.order(&b.precedence));
    let critical = told.partition_point(|row| row.precedence.tone == Tone::Critical);
    let mut bundle = Batch { shape: plan.shape, ..Batch::default() };
    if let (BatchKind::Group, [group]) = (plan.shape, members.as_slice()) {
        bundle.group_key = Some(group.key.clone());
        bundle.group_labels = group.labels.clone();
    }
    if members.iter().all(|group| group.rows.iter().all(|row| row.kind == NotificationKind::Digest)) {
        bundle.shape = BatchKind::Digest;
    }
    let parts = critical.div_ceil(MAX_ALERTS).max(1);
    let mut messages = Vec::with_capacity(parts);
    for part in 1..=parts {
        let rest = told.split_off(told.len().min(MAX_ALERTS));
        let here = std::mem::replace(&mut told, rest);
        let counted = if part == parts { std::mem::take(&mut told) } else { Vec::new() };
        let own: HashSet<&AlertId> = here.iter().chain(&counted).map(|row| &row.alert).collect();
        let (own_merged, others) = merged.into_iter().partition(|row| own.contains(&row.alert));
        merged = others;
        let chunk = plan.chunk.or((parts > 1).then_some((part, parts)));
        let part_of = chunk.map(|(part, parts)| format!("Many alerts came at once: message {part} of {parts}"));
        let notes: Vec<String> = note.map(str::to_owned).into_iter().chain(part_of).collect();
        messages.push(Message {
            receiver: first.receiver.clone(),
            bundle: Batch {
                truncated: u32::try_from(counted.len()).unwrap_or(u32::MAX),
                note: (!notes.is_empty()).then(|| notes.join(". ")),
                tone: here.first().map(|row| row.precedence.tone).unwrap_or_default(),
                ..bundle.clone()
            },
            told: here,
            counted,
            merged: own_merged,
        });
    }
    messages
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Others that may join its group: `group_wait`.
    Group,
    /// Its group was told a short while ago: `group_interval`.
    Interval,
    /// Its route is muted, by this interval.
    Muted(String),
    /// Too many came at once: they are put together.
    Together,
    /// The receiver's hour is full: `max_per_hour`.
    Hour,
    /// Nothing: the next pass of the dispatcher tells it.
    Nothing,
}

/// A message that waits, and what for.
#[derive(Clone, Debug, PartialEq)]
pub struct Prospect {
    pub notice: NotificationId,
    pub receiver: ReceiverName,
    /// Its group: the place of its route in the tree, and what the group is made by.
    pub key: String,
    /// What for.
    pub wait: Wait,
    /// Until when, where that is known.
    pub until: Option<Timestamp>,
}

/// What each message that waits is waiting for, given what [`decide`] came to. `groups` are those that it was asked about.
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
            (Wait::Muted(name.clone()), Some(routes.heard_again(&group.grouping, now)))
        } else if let Some(at) = due_at(group, flushed_at(index)).filter(|at| *at > now) {
            let begun = group.first().and_then(|first| first.checked_add_signed(group.grouping.wait));
            (if begun == Some(at) { Wait::Group } else { Wait::Interval }, Some(at))
        } else {
            let usage = usage(&group.receiver);
            let is_full = usage.lately.last_hour >= usage.max_per_hour.max(1);
            let hour = usage.lately.summed_at.and_then(|at| at.checked_add_signed(HOUR));
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

/// Keeps the earlier of two times.
pub fn sooner(next: &mut Option<Timestamp>, at: Option<Timestamp>) {
    *next = match (*next, at) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
}

#[cfg(test)]
mod tests;

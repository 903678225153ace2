//! What becomes of the messages that wait: held back, told in a group, folded, summed up. Pure: what waits, what holds back and
//! the time come in; deliveries to make come out, to be written in one transaction.
//!
//! The path of a message, one notice for one receiver:
//! 1. [`sort`] holds back what a silence, an inhibition or an acknowledgement speaks against, lets go what none speaks against
//!    any more, and puts the others into the groups that their routes make.
//! 2. [`decide`] finds the groups whose time has come and makes [`Message`]s of them. A group is told `group_wait` after its first
//!    message came, and not before `group_interval` has passed since it was last told; a muted route waits until it is heard again.
//! 3. What no route groups is told at once, each alert by itself, unless too many come at once: then they are put together by rule.
//! 4. Above the messages that a receiver gets in an hour, everything becomes one summary.
//!
//! The promise: every message that comes in is in exactly one place afterwards, and each place is recorded. Of one alert, a receiver
//! is told things in the order in which they were decided; where several wait, the latest is told and stands for the others.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::TimeDelta;

use crate::{
    alert::{AlertBody, Labels, Notice, NoticeKind, notice_id},
    format,
    route::{Firing, GroupBy, Grouping, Inhibitor, RouteTree, interval},
    silence::{Ack, Fact, Silence, SilenceState},
    store::model::{Bundle, Shape},
    supply::{AlertId, Interval, NoticeId, ReceiverName, Timestamp},
};

/// Alerts that one message tells; the others are counted.
pub const MAX_ALERTS: usize = 100;

/// Messages of the last five minutes above which alerts that no route groups are put together, where the receiver's hour allows more.
const MIN_BURST: u32 = 10;

/// The time over which such messages are counted.
pub const BURST_WINDOW: TimeDelta = TimeDelta::minutes(5);

/// How long those that are put together wait for others.
pub const FOLD_WAIT: TimeDelta = TimeDelta::seconds(3);

/// How long it takes until more are put together for the same receiver.
pub const FOLD_INTERVAL: TimeDelta = TimeDelta::minutes(1);

/// Messages into which the alerts of one rule are put, and those of all rules together, beyond one for each; what does not fit is
/// counted in the last of its rule.
const MAX_CHUNKS: usize = 5;
const MAX_PARCELS: usize = 10;

/// Rules that get messages of their own when alerts are put together; the others share one.
const MAX_FOLDS: usize = 8;

/// The hour of the storm cap.
pub const HOUR: TimeDelta = TimeDelta::hours(1);

/// How soon an inhibition is looked at again: the end of what inhibits may be told to nobody.
const RECHECK: TimeDelta = TimeDelta::seconds(30);

/// Value of the label `kind` of notices about deliveries themselves: they go out at once, whatever the routes say.
const ABOUT_DELIVERY: [&str; 2] = ["receiver", "dead_letter"];

/// What messages are dispatched by.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Who is told what.
    pub routes: RouteTree,
    /// Messages that a receiver may get in an hour; one that is not named is gone from the config.
    pub max_per_hour: BTreeMap<ReceiverName, u32>,
}

/// A message that waits, or is held back: one notice for one receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// Its row: the order in which it was decided.
    pub no: i64,
    /// The notice.
    pub notice: NoticeId,
    /// Of which alert.
    pub alert: AlertId,
    /// To whom.
    pub receiver: ReceiverName,
    /// What kind of message.
    pub kind: NoticeKind,
    /// Whether it tells the end of its alert.
    pub is_end: bool,
    /// The alert's labels.
    pub labels: Labels,
    /// Since when it waits.
    pub since: Timestamp,
    /// For an end: what became of the beginning, as far as it does not wait itself.
    pub beginning: Beginning,
    /// What it tells, where somebody acknowledged the alert.
    pub acknowledged: Option<(Ack, Fact)>,
}

/// What a receiver knows of an alert whose end is to be told.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Beginning {
    /// It was told, or nothing is known of it.
    #[default]
    Told,
    /// It was held back, and never told.
    HeldBack(HeldBack),
}

/// Why a message is not told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// By what.
    pub by: Holder,
    /// Id of the silence or alert.
    pub id: String,
}

/// What holds a message back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A silence.
    Silence,
    /// Another alert, by an inhibition.
    Alert,
    /// An acknowledgement.
    Ack,
}

impl Holder {
    /// All of them.
    pub const ALL: [Holder; 3] = [Holder::Silence, Holder::Alert, Holder::Ack];

    /// The state of a message that it holds back.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Holder::Silence => "silenced",
            Holder::Alert => "inhibited",
            Holder::Ack => "acknowledged",
        }
    }

    /// The holder of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|holder| holder.as_str() == word)
    }
}

/// Everything that [`sort`] looks at.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Who is told what.
    pub routes: &'a RouteTree,
    /// What waits, by row.
    pub waiting: &'a [Waiting],
    /// What is held back of alerts that fire, where nothing later was told of them.
    pub held: &'a [Waiting],
    /// Silences that are not over.
    pub silences: &'a [Silence],
    /// What fires, as far as there are inhibitions.
    pub firing: &'a [Firing],
    /// The time.
    pub now: Timestamp,
}

/// What waits, sorted.
#[derive(Clone, Debug, Default)]
pub struct Sorted<'a> {
    /// What is held back from now on.
    pub held: Vec<(&'a Waiting, HeldBack)>,
    /// What is no longer held back: rows of `held`.
    pub released: Vec<i64>,
    /// The groups that wait.
    pub groups: Vec<Group<'a>>,
    /// When it is to be looked at again, if nothing happens before.
    pub next_at: Option<Timestamp>,
}

/// Messages that belong into one.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// To whom.
    pub receiver: ReceiverName,
    /// Its key; of an alert by itself, with the alert's id.
    pub key: String,
    /// The labels by which it was made.
    pub labels: Labels,
    /// How its route groups.
    pub grouping: Grouping,
    /// The interval that mutes it now.
    pub muted: Option<String>,
    /// Whether it goes out at once, whatever the routes say.
    pub is_urgent: bool,
    /// What waits in it, by row.
    pub rows: Vec<&'a Waiting>,
}

impl Group<'_> {
    /// Whether its state is kept: what a route groups, and what is told again.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        !self.is_urgent && (self.grouping.by != GroupBy::Alert || self.grouping.repeat.is_some())
    }

    fn first(&self) -> Option<Timestamp> {
        self.rows.iter().map(|row| row.since).min()
    }

    fn rule(&self) -> &str {
        self.rows.first().and_then(|row| row.labels.get("alertname")).map_or("", String::as_str)
    }
}

/// Why nothing is said of a message now.
fn holder(row: &Waiting, situation: &Situation<'_>, inhibitor: &Inhibitor<'_>) -> Option<HeldBack> {
    if matches!(row.kind, NoticeKind::Test | NoticeKind::Digest) {
        return None;
    }
    if let Some(silence) = situation.silences.iter().find(|silence| silence.hides(&row.labels, situation.now)) {
        return Some(HeldBack { by: Holder::Silence, id: silence.id.clone() });
    }
    if is_about_delivery(row) {
        return None;
    }
    if let Some(source) = inhibitor.of(&row.alert, &row.labels) {
        return Some(HeldBack { by: Holder::Alert, id: source.as_str().to_owned() });
    }
    let (ack, fact) = row.acknowledged.as_ref()?;
    (row.kind == NoticeKind::Reminder && ack.fact == *fact)
        .then(|| HeldBack { by: Holder::Ack, id: row.alert.as_str().to_owned() })
}

fn is_about_delivery(row: &Waiting) -> bool {
    row.kind == NoticeKind::Source && row.labels.get("kind").is_some_and(|kind| ABOUT_DELIVERY.contains(&kind.as_str()))
}

/// Holds back what something speaks against, lets go what nothing does any more, and groups the others.
#[must_use]
pub fn sort<'a>(situation: &Situation<'a>) -> Sorted<'a> {
    let now = situation.now;
    let inhibitor = Inhibitor::new(situation.routes.inhibit_rules(), situation.firing);
    let mut sorted = Sorted::default();
    for silence in situation.silences {
        let turn = if silence.state(now) == SilenceState::Pending { silence.starts_at } else { silence.ends_at };
        sooner(&mut sorted.next_at, Some(turn).filter(|turn| *turn > now));
    }

    let mut released: Vec<&Waiting> = Vec::new();
    for row in situation.held {
        match holder(row, situation, &inhibitor) {
            None => released.push(row),
            Some(HeldBack { by: Holder::Alert, .. }) => sooner(&mut sorted.next_at, now.checked_add_signed(RECHECK)),
            Some(_) => {}
        }
    }
    sorted.released = released.iter().map(|row| row.no).collect();

    // Of one alert, everything that waits for a receiver goes the way of the latest: routes may have changed in between.
    let mut by_alert: BTreeMap<(&ReceiverName, &AlertId), Vec<&Waiting>> = BTreeMap::new();
    for row in released.into_iter().chain(situation.waiting) {
        match holder(row, situation, &inhibitor) {
            Some(held) => {
                if held.by == Holder::Alert {
                    sooner(&mut sorted.next_at, now.checked_add_signed(RECHECK));
                }
                sorted.held.push((row, held));
            }
            None => by_alert.entry((&row.receiver, &row.alert)).or_default().push(row),
        }
    }

    let mut groups: BTreeMap<(ReceiverName, String), Group<'a>> = BTreeMap::new();
    for mut rows in by_alert.into_values() {
        rows.sort_by_key(|row| row.no);
        let Some(last) = rows.last().copied() else { continue };
        if rows.iter().all(|row| row.is_end)
            && let Beginning::HeldBack(held) = &last.beginning
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

/// The group that a message belongs to.
fn group_of<'a>(row: &Waiting, routes: &RouteTree, now: Timestamp) -> Group<'a> {
    let receiver = row.receiver.clone();
    let leaf = routes.leaf(&row.labels, &receiver);
    let is_urgent =
        matches!(row.kind, NoticeKind::Test | NoticeKind::Digest) || is_about_delivery(row) || !routes.knows(&receiver);
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

/// What is known of a receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Messages that it may get in an hour.
    pub max_per_hour: u32,
    /// Messages made for it in the last hour, summaries left aside.
    pub last_hour: u32,
    /// When the first of these was made.
    pub oldest: Option<Timestamp>,
    /// Of these, in [`BURST_WINDOW`].
    pub lately: u32,
    /// When alerts were last put together for it.
    pub folded_at: Option<Timestamp>,
    /// When it last got a summary.
    pub summed_at: Option<Timestamp>,
}

/// A delivery to make.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// To whom.
    pub receiver: ReceiverName,
    /// What it is told, by row.
    pub told: Vec<&'a Waiting>,
    /// What is counted in it.
    pub counted: Vec<&'a Waiting>,
    /// What something later of the same alert, in the same message, stands for.
    pub merged: Vec<&'a Waiting>,
    /// Its group and its note; `told_before` is the store's to count.
    pub bundle: Bundle,
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
#[must_use]
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

/// Which groups are told now, and in which messages. `flushed_at` says when a group was last told, `usage` what a receiver got.
#[must_use]
pub fn decide<'a>(
    groups: &[Group<'a>],
    flushed_at: &dyn Fn(usize) -> Option<Timestamp>,
    usage: &dyn Fn(&ReceiverName) -> Usage,
    now: Timestamp,
) -> Decision<'a> {
    let mut decision = Decision::default();
    let mut due: BTreeMap<&ReceiverName, Vec<usize>> = BTreeMap::new();
    for (index, group) in groups.iter().enumerate() {
        match due_at(group, flushed_at(index)) {
            Some(at) if at <= now => due.entry(&group.receiver).or_default().push(index),
            Some(at) => sooner(&mut decision.next_at, Some(at)),
            None => sooner(&mut decision.next_at, Some(interval::next_turn(now))),
        }
    }
    for (receiver, mut indices) in due {
        // The longest waiting first: where the hour is full, the newest are those that are summed up.
        indices.sort_by_key(|index| groups.get(*index).and_then(|group| Some((group.first()?, group.rows.first()?.no))));
        one_receiver(&indices, groups, &usage(receiver), now, &mut decision);
    }
    decision
}

/// A message on the way, with the groups that it tells.
struct Parcel {
    shape: Shape,
    groups: Vec<usize>,
    /// Where the group's alerts are told in several messages: which part of them, out of how many.
    chunk: Option<(usize, usize)>,
}

fn one_receiver<'a>(indices: &[usize], groups: &[Group<'a>], usage: &Usage, now: Timestamp, decision: &mut Decision<'a>) {
    let group = |index: &usize| groups.get(*index);
    let is_single = |index: &usize| group(index).is_some_and(|group| !group.is_urgent && group.grouping.by == GroupBy::Alert);
    let singles: Vec<usize> = indices.iter().copied().filter(is_single).collect();
    let burst = (usage.max_per_hour / 10).max(MIN_BURST).min(usage.max_per_hour.max(1));
    let is_burst = singles.len() as u64 > u64::from(burst.saturating_sub(usage.lately));
    let mut parcels: Vec<Parcel> = Vec::new();
    if is_burst {
        let first = singles.iter().filter_map(|index| group(index)?.first()).min().unwrap_or(now);
        let after = |at: Timestamp, span: TimeDelta| at.checked_add_signed(span).unwrap_or(at);
        let fold_at = usage.folded_at.map_or(after(first, FOLD_WAIT), |at| after(first, FOLD_WAIT).max(after(at, FOLD_INTERVAL)));
        if fold_at <= now {
            parcels = fold(&singles, groups);
        } else {
            sooner(&mut decision.next_at, Some(fold_at));
        }
    }
    for index in indices.iter().copied().filter(|index| !is_burst || !is_single(index)) {
        let shape =
            if is_single(&index) || group(&index).is_some_and(|group| group.is_urgent) { Shape::Single } else { Shape::Group };
        parcels.push(Parcel { shape, groups: vec![index], chunk: None });
    }

    let room = usize::try_from(usage.max_per_hour.max(1).saturating_sub(usage.last_hour)).unwrap_or(usize::MAX);
    let above = if parcels.len() > room { parcels.split_off(room) } else { Vec::new() };
    for parcel in parcels {
        decision.flushed.extend(&parcel.groups);
        decision.messages.extend(message(&parcel, groups, None));
    }
    if above.is_empty() {
        return;
    }
    let next_summary = usage.summed_at.and_then(|at| at.checked_add_signed(HOUR)).filter(|at| *at > now);
    if next_summary.is_some() {
        sooner(&mut decision.next_at, next_summary);
        sooner(&mut decision.next_at, usage.oldest.and_then(|at| at.checked_add_signed(HOUR)).filter(|at| *at > now));
        return;
    }
    // Parts of one group that were already begun above are left with it: a group is told whole.
    let mut rest: Vec<usize> = above.into_iter().flat_map(|parcel| parcel.groups).collect();
    let mut seen: HashSet<usize> = decision.flushed.iter().copied().collect();
    rest.retain(|index| seen.insert(*index));
    if rest.is_empty() {
        return;
    }
    let count: usize = rest.iter().filter_map(group).map(|group| group.rows.len()).sum();
    let note = format!(
        "{} above the limit of {} an hour, in one message",
        format::count(count, "alert"),
        format::count(usize::try_from(usage.max_per_hour).unwrap_or(usize::MAX), "message")
    );
    decision.flushed.extend(&rest);
    decision.messages.extend(message(&Parcel { shape: Shape::Summary, groups: rest, chunk: None }, groups, Some(note)));
}

/// Puts alerts together that no route groups: by rule, the rules with the longest waiting alerts first.
fn fold(singles: &[usize], groups: &[Group<'_>]) -> Vec<Parcel> {
    let mut rules: Vec<(&str, Vec<usize>)> = Vec::new();
    for index in singles {
        let Some(rule) = groups.get(*index).map(Group::rule) else { continue };
        match rules.iter_mut().find(|(name, _)| *name == rule) {
            Some((_, indices)) => indices.push(*index),
            None => rules.push((rule, vec![*index])),
        }
    }
    let others: Vec<usize> = rules.split_off(rules.len().min(MAX_FOLDS)).into_iter().flat_map(|(_, indices)| indices).collect();
    let mut parcels = Vec::new();
    let of_rules: Vec<Vec<usize>> =
        rules.into_iter().map(|(_, indices)| indices).chain((!others.is_empty()).then_some(others)).collect();
    let most = (MAX_PARCELS / of_rules.len().max(1)).clamp(1, MAX_CHUNKS);
    for indices in of_rules {
        let chunks = indices.len().div_ceil(MAX_ALERTS).min(most);
        for chunk in 0..chunks {
            let part = indices.iter().copied().skip(chunk * MAX_ALERTS);
            // The last takes all that is left, and counts what it has no room for.
            let part: Vec<usize> = if chunk + 1 == chunks { part.collect() } else { part.take(MAX_ALERTS).collect() };
            let shape = if part.len() == 1 { Shape::Single } else { Shape::Fold };
            parcels.push(Parcel { shape, groups: part, chunk: (chunks > 1).then_some((chunk + 1, chunks)) });
        }
    }
    parcels
}

fn message<'a>(parcel: &Parcel, groups: &[Group<'a>], note: Option<String>) -> Option<Message<'a>> {
    let members: Vec<&Group<'a>> = parcel.groups.iter().filter_map(|index| groups.get(*index)).collect();
    let receiver = members.first()?.receiver.clone();
    let mut rows: Vec<&'a Waiting> = members.iter().flat_map(|group| group.rows.iter().copied()).collect();
    rows.sort_by_key(|row| row.no);
    let last: HashMap<&AlertId, i64> = rows.iter().map(|row| (&row.alert, row.no)).collect();
    let (mut told, merged): (Vec<&Waiting>, Vec<&Waiting>) =
        rows.into_iter().partition(|row| last.get(&row.alert) == Some(&row.no));
    let counted = if told.len() > MAX_ALERTS { told.split_off(MAX_ALERTS) } else { Vec::new() };
    let mut bundle = Bundle {
        shape: parcel.shape,
        truncated: u32::try_from(counted.len()).unwrap_or(u32::MAX),
        note: note.or_else(|| {
            let (chunk, chunks) = parcel.chunk?;
            Some(format!("Many alerts came at once: message {chunk} of {chunks}"))
        }),
        ..Bundle::default()
    };
    if let (Shape::Group, [group]) = (parcel.shape, members.as_slice()) {
        bundle.group_key = Some(group.key.clone());
        bundle.group_labels = group.labels.clone();
    }
    if members.iter().all(|group| group.rows.iter().all(|row| row.kind == NoticeKind::Digest)) {
        bundle.shape = Shape::Digest;
    }
    Some(Message { receiver, told, counted, merged, bundle })
}

/// What a message waits for.
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
    /// The notice.
    pub notice: NoticeId,
    /// To whom.
    pub receiver: ReceiverName,
    /// Its group: the place of its route in the tree, and what the group is made by.
    pub key: String,
    /// What for.
    pub wait: Wait,
    /// Until when, where that is known.
    pub until: Option<Timestamp>,
}

/// What each message that waits is waiting for, given what [`decide`] came to. `groups` are those that it was asked about.
#[must_use]
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
            let is_full = usage.last_hour >= usage.max_per_hour.max(1);
            let hour = usage.summed_at.and_then(|at| at.checked_add_signed(HOUR));
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

/// What is told again of an alert after `repeat_interval`: `last` is what was last said of it, `retold` its text as it reads now, as far
/// as that can be told. The same repeat is the same message, also where it is made once more after a fault.
#[must_use]
pub fn repeat(
    last: &Notice,
    due: Option<Interval>,
    retold: Option<AlertBody>,
    receiver: &ReceiverName,
    key: &str,
    now: Timestamp,
) -> Notice {
    let body = retold.unwrap_or_else(|| {
        let mut body = last.body.clone();
        body.reason = "repeat".to_owned();
        body.days_until = due.map(|due| due.days_until(now));
        body
    });
    Notice {
        // The group's time, not this one.
        id: notice_id(&last.alert, &format!("repeat {receiver} {key} after {}", last.id)),
        alert: last.alert.clone(),
        kind: NoticeKind::Reminder,
        at: now,
        receivers: vec![receiver.clone()],
        body,
    }
}

/// Keeps the earlier of two times.
fn sooner(next: &mut Option<Timestamp>, at: Option<Timestamp>) {
    *next = match (*next, at) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
}

#[cfg(test)]
mod tests;

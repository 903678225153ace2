//! What becomes of what is told, in memory: put into groups, held back, told again, summed up. It goes the way of the daemon's
//! dispatcher, with the same decisions ([`crate::group`]) over the same memory of what was told before; only the tables are missing.
//!
//! A message counts as delivered when it is made: what a receiver answers is no part of a replay.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use chrono::TimeDelta;

use crate::{
    alert::{Alert, AlertState, Labels, Notice, NoticeKind},
    config::{Config, Delivery, Receiver},
    digest::Schedule,
    group::{self, BURST_WINDOW, Beginning, Group, HOUR, HeldBack, Holder, Situation, Usage, Waiting},
    route::{Firing, RouteTree},
    silence::{Ack, Fact, Silence},
    store::model::{Bundle, Fate, Shape},
    supply::{AlertId, NoticeId, ReceiverName, Timestamp},
};

/// A receiver that is gone from the config has no limit: what is addressed to it becomes visible.
const NO_LIMIT: u32 = u32::MAX;

/// By what messages are made of what is told, beside the routes.
#[derive(Clone, Debug, Default)]
pub struct Mail {
    /// Messages that a receiver may get in an hour.
    pub max_per_hour: BTreeMap<ReceiverName, u32>,
    /// When each receiver gets its digest.
    pub digests: Vec<(ReceiverName, Schedule)>,
    /// What somebody did not want to hear, whenever that was.
    pub silences: Vec<Silence>,
    /// Who knew of which alert.
    pub acks: Vec<Ack>,
}

impl Mail {
    /// What a config says of its receivers; without silences, which are no part of a config. A digest that is wrong is left out: the
    /// check of the config finds it.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self::for_receivers(&config.receivers, &config.delivery)
    }

    /// As [`Self::of`], of these receivers.
    #[must_use]
    pub fn for_receivers(receivers: &[Receiver], delivery: &Delivery) -> Self {
        let mut mail = Self::default();
        for receiver in receivers {
            let name = ReceiverName::from(receiver.name.as_str());
            if let Some(Ok(schedule)) = receiver.digest.as_ref().map(Schedule::of) {
                mail.digests.push((name.clone(), schedule));
            }
            mail.max_per_hour.insert(name, receiver.max_per_hour.unwrap_or(delivery.max_per_hour));
        }
        mail
    }
}

/// A message to one receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// When it was made.
    pub at: Timestamp,
    /// To whom.
    pub receiver: ReceiverName,
    /// Its group, its note, and what it counts.
    pub bundle: Bundle,
    /// What it tells.
    pub told: Vec<Arc<Notice>>,
    /// What it counts without telling it.
    pub counted: Vec<Arc<Notice>>,
    /// What something later of the same alert in it stands for.
    pub merged: Vec<Arc<Notice>>,
}

/// What was not told: held back, or still waiting when the replay ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Untold {
    /// The notice.
    pub notice: NoticeId,
    /// Of which alert.
    pub alert: AlertId,
    /// To whom.
    pub receiver: ReceiverName,
    /// By what; none where it waits.
    pub by: Option<HeldBack>,
}

/// A message that something holds back, and what a digest says of it.
#[derive(Debug)]
struct Kept {
    notice: NoticeId,
    alert: AlertId,
    receiver: ReceiverName,
    kind: NoticeKind,
    rule: String,
    summary: String,
    at: Timestamp,
    by: HeldBack,
}

/// What is known of a group that was told.
#[derive(Debug, Default)]
struct ToldGroup {
    at: Timestamp,
    repeat_at: Option<Timestamp>,
    members: BTreeSet<AlertId>,
}

/// What of an alert counts for messages while it fires.
#[derive(Debug)]
struct Open {
    since: Timestamp,
    level: Option<u32>,
}

type GroupKey = (ReceiverName, String);

/// Everything between what was decided and what is delivered.
#[derive(Debug)]
pub(super) struct Mailroom {
    mail: Mail,
    acks: HashMap<AlertId, Ack>,
    /// The number of the next message: the order in which they were decided.
    next_no: i64,
    waiting: Vec<Waiting>,
    held: Vec<Waiting>,
    /// What waits and what is held, by its number.
    notices: HashMap<i64, Arc<Notice>>,
    kept: BTreeMap<i64, Kept>,
    open: HashMap<AlertId, Open>,
    /// What fires, for inhibitions, the longest first; empty where there are none.
    firing: Vec<Firing>,
    groups: BTreeMap<GroupKey, ToldGroup>,
    repeats: BTreeSet<(Timestamp, GroupKey)>,
    /// Messages of the last hour.
    hour: HashMap<ReceiverName, VecDeque<(Timestamp, Shape)>>,
    /// Who was told of which alert, and by which message last.
    told: HashMap<(AlertId, ReceiverName), i64>,
    /// What held back what was last to be told of an alert.
    last_held: HashMap<(AlertId, ReceiverName), HeldBack>,
    /// The last that was said of an alert that fires, where a route tells again.
    last: HashMap<AlertId, Arc<Notice>>,
    /// The last slot of each digest.
    slots: Vec<Option<Timestamp>>,
    next_digest: Option<Timestamp>,
    /// The end of mute times that were looked up, by the route.
    unmuted: HashMap<String, Timestamp>,
    next_at: Option<Timestamp>,
    /// Something came that the next look has not seen.
    is_stirred: bool,
    sent: Vec<Sent>,
}

impl Mailroom {
    pub fn new(mail: Mail, start: Timestamp) -> Self {
        let slots = mail.digests.iter().map(|(_, schedule)| schedule.last(start)).collect();
        let next_digest = mail.digests.iter().filter_map(|(_, schedule)| schedule.next(start)).min();
        let acks = mail.acks.iter().map(|ack| (ack.alert.clone(), ack.clone())).collect();
        Self {
            mail,
            acks,
            next_no: 0,
            waiting: Vec::new(),
            held: Vec::new(),
            notices: HashMap::new(),
            kept: BTreeMap::new(),
            open: HashMap::new(),
            firing: Vec::new(),
            groups: BTreeMap::new(),
            repeats: BTreeSet::new(),
            hour: HashMap::new(),
            told: HashMap::new(),
            last_held: HashMap::new(),
            last: HashMap::new(),
            slots,
            next_digest,
            unmuted: HashMap::new(),
            next_at: None,
            is_stirred: false,
            sent: Vec::new(),
        }
    }

    /// What was made since this was last asked, in order.
    pub fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    /// What was not told so far.
    pub fn untold(&self) -> Vec<Untold> {
        let kept = self.kept.values().map(|kept| Untold {
            notice: kept.notice.clone(),
            alert: kept.alert.clone(),
            receiver: kept.receiver.clone(),
            by: Some(kept.by.clone()),
        });
        let waiting = self.waiting.iter().map(|row| Untold {
            notice: row.notice.clone(),
            alert: row.alert.clone(),
            receiver: row.receiver.clone(),
            by: None,
        });
        kept.chain(waiting).collect()
    }

    /// An alert that is new or moved on.
    pub fn learn(&mut self, alert: &Alert, routes: &RouteTree) {
        let has_inhibitions = !routes.inhibit_rules().is_empty();
        if has_inhibitions {
            self.firing.retain(|firing| firing.id != alert.id);
        }
        if alert.state == AlertState::Firing {
            let since = alert.starts_at.unwrap_or(alert.active_at);
            self.open.insert(alert.id.clone(), Open { since, level: alert.level });
            if has_inhibitions {
                let key = |id: &AlertId| self.open.get(id).map(|open| open.since);
                let place = self.firing.partition_point(|other| (key(&other.id), &other.id) < (Some(since), &alert.id));
                self.firing.insert(place, Firing { id: alert.id.clone(), labels: alert.labels.clone() });
            }
        } else {
            self.open.remove(&alert.id);
            self.last.remove(&alert.id);
        }
        self.is_stirred |= !self.held.is_empty();
    }

    /// Something is to be told.
    pub fn post(&mut self, notice: &Arc<Notice>, routes: &RouteTree, now: Timestamp) {
        if routes.repeats() && self.open.contains_key(&notice.alert) {
            self.last.insert(notice.alert.clone(), notice.clone());
        }
        for receiver in &notice.receivers {
            let no = self.next_no;
            self.next_no += 1;
            self.waiting.push(Waiting {
                no,
                notice: notice.id.clone(),
                alert: notice.alert.clone(),
                receiver: receiver.clone(),
                kind: notice.kind,
                is_end: notice.body.status == "resolved",
                labels: notice.body.labels.clone(),
                since: now,
                beginning: Beginning::Told,
                acknowledged: None,
            });
            self.notices.insert(no, notice.clone());
            self.is_stirred = true;
        }
    }

    /// When time alone has something to do here.
    pub fn next_at(&self) -> Option<Timestamp> {
        let repeat = self.repeats.first().map(|(at, _)| *at);
        [self.next_at, repeat, self.next_digest].into_iter().flatten().min()
    }

    /// Whether any receiver gets a digest.
    pub fn has_digests(&self) -> bool {
        !self.mail.digests.is_empty()
    }

    /// Digests whose slot has come: receiver, schedule, the slot before and this one.
    pub fn digests_due(&mut self, now: Timestamp) -> Vec<(ReceiverName, Schedule, Timestamp, Timestamp)> {
        let mut due = Vec::new();
        if self.next_digest.is_none_or(|at| at > now) {
            return due;
        }
        self.next_digest = self.mail.digests.iter().filter_map(|(_, schedule)| schedule.next(now)).min();
        for ((receiver, schedule), last) in self.mail.digests.iter().zip(&mut self.slots) {
            let Some(slot) = schedule.last(now) else { continue };
            match last.replace(slot) {
                Some(before) if before < slot => due.push((receiver.clone(), schedule.clone(), before, slot)),
                _ => {}
            }
        }
        due
    }

    /// What a digest says of what was held back from a receiver since then.
    pub fn held_back(&self, receiver: &ReceiverName, since: Timestamp) -> Vec<Fate> {
        let own = self.kept.values().filter(|kept| kept.receiver == *receiver && kept.at >= since);
        own.map(|kept| Fate {
            notice: kept.notice.clone(),
            alert: kept.alert.clone(),
            rule: kept.rule.clone(),
            kind: kept.kind.as_str().to_owned(),
            at: kept.at,
            summary: kept.summary.clone(),
            receiver: Some(receiver.clone()),
            state: kept.by.by.as_str().to_owned(),
            role: None,
            delivery: None,
            holder: Some(kept.by.id.clone()),
        })
        .collect()
    }

    /// Alerts that fire.
    pub fn firing_count(&self) -> u32 {
        u32::try_from(self.open.len()).unwrap_or(u32::MAX)
    }

    /// Groups that are to be told again by now, with what still fires in them and the last that was said of it.
    pub fn repeats_due(&mut self, now: Timestamp) -> Vec<(ReceiverName, String, Vec<Arc<Notice>>)> {
        let mut due = Vec::new();
        while let Some((at, key)) = self.repeats.first().cloned().filter(|(at, _)| *at <= now) {
            self.repeats.remove(&(at, key.clone()));
            let Some(group) = self.groups.get_mut(&key) else { continue };
            group.repeat_at = None;
            let is_unknown = |id: &&AlertId| self.acks.get(*id).is_none_or(|ack| ack.at > now);
            let mut alerts: Vec<(Timestamp, &AlertId)> =
                group.members.iter().filter(is_unknown).filter_map(|id| Some((self.open.get(id)?.since, id))).collect();
            alerts.sort_unstable();
            let notices = alerts.into_iter().filter_map(|(_, id)| self.last.get(id).cloned()).collect();
            due.push((key.0, key.1, notices));
        }
        due
    }

    /// Silences that are not over at `at`.
    pub fn silences(&self, at: Timestamp) -> Vec<Silence> {
        self.mail.silences.iter().filter(|silence| silence.created_at <= at && at < silence.ends_at).cloned().collect()
    }

    /// Whether a silence hides what is said of such an alert now.
    pub fn is_silenced(&self, labels: &Labels, now: Timestamp) -> bool {
        self.mail.silences.iter().any(|silence| silence.hides(labels, now))
    }

    /// A group was told again; `next` is when it will be the next time.
    pub fn repeated(&mut self, receiver: ReceiverName, key: String, next: Option<Timestamp>) {
        let key = (receiver, key);
        if let (Some(group), Some(at)) = (self.groups.get_mut(&key), next) {
            group.repeat_at = Some(at);
            self.repeats.insert((at, key));
        }
    }

    /// Decides about everything that waits, as one pass of the dispatcher does.
    pub fn dispatch(&mut self, routes: &RouteTree, now: Timestamp) {
        if !self.is_stirred && self.next_at.is_none_or(|at| at > now) {
            return;
        }
        self.is_stirred = false;
        self.next_at = None;
        self.settle();
        if self.waiting.is_empty() && self.held.is_empty() {
            return;
        }
        self.recall(now);
        let Decided { held, released, flushed, messages } = self.decide(routes, now);
        for (no, by) in held {
            self.hold(no, by, now);
        }
        let released: HashSet<i64> = released.into_iter().filter(|no| self.held.iter().any(|row| row.no == *no)).collect();
        for row in self.held.extract_if(.., |row| released.contains(&row.no)) {
            self.kept.remove(&row.no);
            self.waiting.push(Waiting { since: now, ..row });
        }
        for flush in &flushed {
            self.flush(flush, now);
        }
        for Made { receiver, mut bundle, told, counted, merged } in messages {
            let take = |room: &mut Self, nos: &[i64]| -> Vec<Arc<Notice>> {
                nos.iter().filter_map(|no| room.notices.remove(no)).collect()
            };
            if let Some(group) = bundle.group_key.clone().and_then(|key| self.groups.get(&(receiver.clone(), key))) {
                let own: HashSet<&AlertId> =
                    told.iter().chain(&counted).filter_map(|no| Some(&self.notices.get(no)?.alert)).collect();
                let before = group.members.iter().filter(|id| !own.contains(id) && self.open.contains_key(*id)).count();
                bundle.told_before = u32::try_from(before).unwrap_or(u32::MAX);
            }
            let gone: HashSet<i64> = told.iter().chain(&counted).chain(&merged).copied().collect();
            for row in self.waiting.extract_if(.., |row| gone.contains(&row.no)) {
                self.told.insert((row.alert, row.receiver), row.no);
            }
            self.hour.entry(receiver.clone()).or_default().push_back((now, bundle.shape));
            let (told, counted, merged) = (take(self, &told), take(self, &counted), take(self, &merged));
            self.sent.push(Sent { at: now, receiver, bundle, told, counted, merged });
        }
        for flush in &flushed {
            self.enroll(flush);
        }
    }

    /// What is held back for good is no longer looked at: ends, what is acknowledged, alerts that are over, and what something later
    /// stands for.
    fn settle(&mut self) {
        let mut latest: HashMap<(&AlertId, &ReceiverName), i64> = HashMap::new();
        for row in self.held.iter().chain(&self.waiting) {
            let last = latest.entry((&row.alert, &row.receiver)).or_insert(row.no);
            *last = (*last).max(row.no);
        }
        let stays: HashSet<i64> = self
            .held
            .iter()
            .filter(|row| {
                let is_last = latest.get(&(&row.alert, &row.receiver)) == Some(&row.no);
                let was_told_later = self.told.get(&(row.alert.clone(), row.receiver.clone())).is_some_and(|last| *last > row.no);
                let is_acknowledged = self.kept.get(&row.no).is_some_and(|kept| kept.by.by == Holder::Ack);
                is_last && !was_told_later && !is_acknowledged && !row.is_end && self.open.contains_key(&row.alert)
            })
            .map(|row| row.no)
            .collect();
        for row in self.held.extract_if(.., |row| !stays.contains(&row.no)) {
            self.notices.remove(&row.no);
        }
    }

    /// What became of the beginning of what ends, and who knows of what is told again.
    fn recall(&mut self, now: Timestamp) {
        let waits: HashSet<(AlertId, ReceiverName)> =
            self.waiting.iter().filter(|row| !row.is_end).map(|row| (row.alert.clone(), row.receiver.clone())).collect();
        for row in &mut self.waiting {
            if row.is_end {
                let key = (row.alert.clone(), row.receiver.clone());
                row.beginning = match self.last_held.get(&key) {
                    Some(held) if !self.told.contains_key(&key) && !waits.contains(&key) => Beginning::HeldBack(held.clone()),
                    _ => Beginning::Told,
                };
            } else if row.kind == NoticeKind::Reminder
                && let Some(ack) = self.acks.get(&row.alert).filter(|ack| ack.at <= now)
                && let Some(notice) = self.notices.get(&row.no)
            {
                let level = self.open.get(&row.alert).and_then(|open| open.level);
                row.acknowledged = Some((ack.clone(), Fact::told(level, &notice.body)));
            }
        }
    }

    fn decide(&mut self, routes: &RouteTree, now: Timestamp) -> Decided {
        let situation = Situation {
            routes,
            waiting: &self.waiting,
            held: &self.held,
            silences: &self.mail.silences,
            firing: &self.firing,
            now,
        };
        let sorted = group::sort(&situation);
        let mut next_at = None;
        // A muted route is looked at when it is heard again, not at every minute until then.
        let (groups, muted): (Vec<Group<'_>>, Vec<Group<'_>>) =
            sorted.groups.into_iter().partition(|group| group.muted.is_none());
        for group in &muted {
            let known = self.unmuted.get(&group.key).copied().filter(|at| *at > now);
            let at = known.unwrap_or_else(|| routes.heard_again(&group.grouping, now));
            self.unmuted.insert(group.key.clone(), at);
            sooner(&mut next_at, at);
        }
        let usages: HashMap<&ReceiverName, Usage> =
            groups.iter().map(|group| (&group.receiver, usage(&mut self.hour, &self.mail, &group.receiver, now))).collect();
        let told_at = |index: usize| {
            let group = groups.get(index).filter(|group| group.is_kept())?;
            Some(self.groups.get(&(group.receiver.clone(), group.key.clone()))?.at)
        };
        let none = Usage { max_per_hour: NO_LIMIT, last_hour: 0, oldest: None, lately: 0, folded_at: None, summed_at: None };
        let decision = group::decide(&groups, &told_at, &|receiver| usages.get(receiver).copied().unwrap_or(none), now);
        if let Some(at) = decision.next_at {
            sooner(&mut next_at, at);
        }
        if !(self.held.is_empty() && sorted.held.is_empty()) {
            let turns = self.mail.silences.iter().flat_map(|silence| [silence.starts_at, silence.ends_at]);
            turns.filter(|at| *at > now).for_each(|at| sooner(&mut next_at, at));
        }
        let nos = |rows: &[&Waiting]| rows.iter().map(|row| row.no).collect::<Vec<_>>();
        let decided = Decided {
            held: sorted.held.into_iter().map(|(row, by)| (row.no, by)).collect(),
            released: sorted.released,
            flushed: decision
                .flushed
                .iter()
                .filter_map(|index| groups.get(*index))
                .filter(|group| group.is_kept())
                .map(|group| Flush {
                    key: (group.receiver.clone(), group.key.clone()),
                    repeat: group.grouping.repeat,
                    alerts: group.rows.iter().map(|row| (row.alert.clone(), row.is_end)).collect(),
                })
                .collect(),
            messages: decision
                .messages
                .iter()
                .map(|message| Made {
                    receiver: message.receiver.clone(),
                    bundle: message.bundle.clone(),
                    told: nos(&message.told),
                    counted: nos(&message.counted),
                    merged: nos(&message.merged),
                })
                .collect(),
        };
        self.next_at = next_at;
        decided
    }

    fn hold(&mut self, no: i64, by: HeldBack, now: Timestamp) {
        if let Some(index) = self.waiting.iter().position(|row| row.no == no) {
            let row = self.waiting.remove(index);
            self.held.push(Waiting { since: now, ..row });
        }
        let Some(row) = self.held.iter().find(|row| row.no == no) else { return };
        let Some(notice) = self.notices.get(&no) else { return };
        self.last_held.insert((row.alert.clone(), row.receiver.clone()), by.clone());
        self.kept.insert(
            no,
            Kept {
                notice: row.notice.clone(),
                alert: row.alert.clone(),
                receiver: row.receiver.clone(),
                kind: row.kind,
                rule: notice.body.rule.clone(),
                summary: notice.body.annotations.get("summary").cloned().unwrap_or_default(),
                at: notice.at,
                by,
            },
        );
    }

    fn flush(&mut self, flush: &Flush, now: Timestamp) {
        let group = self.groups.entry(flush.key.clone()).or_default();
        if let Some(before) = group.repeat_at {
            self.repeats.remove(&(before, flush.key.clone()));
        }
        group.at = now;
        group.repeat_at = flush.repeat.and_then(|span| now.checked_add_signed(span));
        if let Some(at) = group.repeat_at {
            self.repeats.insert((at, flush.key.clone()));
        }
    }

    /// Who is in a group from now on: what was told of and fires.
    fn enroll(&mut self, flush: &Flush) {
        let Some(group) = self.groups.get_mut(&flush.key) else { return };
        for (alert, is_end) in &flush.alerts {
            if *is_end {
                group.members.remove(alert);
            } else if self.open.contains_key(alert) {
                group.members.insert(alert.clone());
            }
        }
    }
}

/// A decision that borrows nothing.
struct Decided {
    held: Vec<(i64, HeldBack)>,
    released: Vec<i64>,
    flushed: Vec<Flush>,
    messages: Vec<Made>,
}

struct Flush {
    key: GroupKey,
    repeat: Option<TimeDelta>,
    alerts: Vec<(AlertId, bool)>,
}

struct Made {
    receiver: ReceiverName,
    bundle: Bundle,
    told: Vec<i64>,
    counted: Vec<i64>,
    merged: Vec<i64>,
}

/// What a receiver got in the last hour.
fn usage(
    hour: &mut HashMap<ReceiverName, VecDeque<(Timestamp, Shape)>>,
    mail: &Mail,
    receiver: &ReceiverName,
    now: Timestamp,
) -> Usage {
    let max_per_hour = mail.max_per_hour.get(receiver).copied().unwrap_or(NO_LIMIT);
    let all = hour.entry(receiver.clone()).or_default();
    while all.front().is_some_and(|(at, _)| *at <= now - HOUR) {
        all.pop_front();
    }
    let plain = || all.iter().filter(|(_, shape)| *shape != Shape::Summary);
    let last = |of: Shape| all.iter().rev().find(|(_, shape)| *shape == of).map(|(at, _)| *at);
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Usage {
        max_per_hour,
        last_hour: count(plain().count()),
        oldest: plain().next().map(|(at, _)| *at),
        lately: count(plain().filter(|(at, _)| *at > now - BURST_WINDOW).count()),
        folded_at: last(Shape::Fold),
        summed_at: last(Shape::Summary),
    }
}

fn sooner(next: &mut Option<Timestamp>, at: Timestamp) {
    *next = Some(next.map_or(at, |next| next.min(at)));
}

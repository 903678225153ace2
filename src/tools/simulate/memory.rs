//! The memory of a simulation, in place of the daemon's database. It makes no decisions of its own.
//!
//! It stores the values that the database stores ([`Commit`], [`Dispatch`], [`Repeats`]) and returns the data that a dispatch
//! pass and a digest read. A delivery counts as accepted when it is made, because a simulation has no receivers.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use engine::evaluate::EvaluationContext;
use engine::pipeline;
use model::corrections::{CorrectionsByToken, PastCorrection};
use model::{
    Ack, Alert, AlertId, AlertState, AlertStatus, BURST_WINDOW, BatchKind, ChangeFilter, ChangeRow, Commit, DigestAhead,
    DigestAheadFilter, Dispatch, Endpoint, FeedUpdate, FiringAlert, GroupUpdate, HOUR, NewDelivery, Notification,
    NotificationFilter, NotificationId, NotificationKind, NotificationState, NotificationStatus, PendingLookup,
    PendingNotification, PendingState, ReceiverName, ReceiverUsage, RepeatAlert, RepeatGroup, Repeats, Resource, RuleId,
    SOURCE_TROUBLE, Silence, SilenceFact, Suppression, Suppressor, Timestamp, Token, TokenId, TokenSnapshot, Tracked,
    ValuedAlert, Watch, cut_summary,
};

use super::digest;
use super::{Sent, UndeliveredSimulated};

/// An alert and a receiver of its notifications.
type About = (AlertId, ReceiverName);

/// A receiver and the key of one of its groups.
type GroupKey = (ReceiverName, String);

/// The new records of a token, complete for the listed resources.
pub(super) type TokenRecords = (TokenId, Vec<Resource>, Vec<Tracked>);

/// The state of a group that was sent.
#[derive(Debug)]
struct GroupRow {
    notified_at: Timestamp,
    repeat_at: Option<Timestamp>,
    alerts: BTreeSet<AlertId>,
}

#[derive(Debug)]
struct FiringRow {
    since: Timestamp,
    level: Option<u32>,
}

/// A notification that is not in a delivery yet.
#[derive(Debug)]
struct Undelivered {
    receiver: ReceiverName,
    suppression: Option<Suppression>,
    notice: Arc<Notification>,
}

#[derive(Debug, Default)]
pub(super) struct MemoryStore {
    /// Tokens with all their data, including their groups.
    pub tokens: BTreeMap<TokenId, TokenSnapshot>,
    /// Open alerts without a token.
    pub global_alerts: Vec<Alert>,
    episodes: HashMap<(RuleId, String), u32>,
    /// Whether notifications are delivered, not only recorded.
    pub delivers: bool,
    /// Whether changes are stored for digests.
    pub keeps_changes: bool,
    changes: VecDeque<ChangeRow>,
    /// The corrections of each schedule, by time.
    pub corrections: CorrectionsByToken,
    jobs: HashMap<String, Timestamp>,
    notifications: HashSet<NotificationId>,
    /// The latest notification of each firing alert.
    last: HashMap<AlertId, Arc<Notification>>,
    firing: HashMap<AlertId, FiringRow>,
    /// The firing alerts with their labels, sorted by start.
    by_begin: BTreeMap<(Timestamp, AlertId), FiringAlert>,
    rows: i64,
    waiting: Vec<PendingNotification>,
    suppressed: Vec<PendingNotification>,
    /// Pending and suppressed notifications, including undelivered ones, by row number.
    texts: BTreeMap<i64, Undelivered>,
    /// The latest delivered row of each alert and receiver.
    delivered: HashMap<About, i64>,
    /// The latest row of each alert and receiver, delivered or not.
    latest: HashMap<About, i64>,
    suppressed_last: HashMap<About, Suppression>,
    groups: HashMap<GroupKey, GroupRow>,
    repeats: BTreeSet<(Timestamp, GroupKey)>,
    /// The messages of the last hour.
    made: HashMap<ReceiverName, VecDeque<(Timestamp, BatchKind)>>,
    /// The time of the first message about a token to each receiver.
    first_notified: HashMap<ReceiverName, Timestamp>,
    silences: Vec<Silence>,
    acks: HashMap<AlertId, Ack>,
    /// Whether anything happened since the last pass that can change its decisions.
    pub has_changed: bool,
}

impl MemoryStore {
    // -- the cycle --

    /// Returns the corrections of a token's schedule, by time.
    pub fn corrections_of(&self, id: &TokenId) -> &[PastCorrection] {
        self.corrections.get(id).map_or(&[], Vec::as_slice)
    }

    /// Returns the data of a token, which is created if needed.
    pub fn token(&mut self, id: &TokenId, watch: &Watch) -> &mut TokenSnapshot {
        self.tokens.entry(id.clone()).or_insert_with(|| TokenSnapshot::of(watch.placed(Token::unknown(id.clone()))))
    }

    /// Returns the latest episode of each rule and subject, or 0.
    pub fn episodes(&self, of: Vec<(RuleId, String)>) -> Vec<u32> {
        of.iter().map(|pair| self.episodes.get(pair).copied().unwrap_or(0)).collect()
    }

    /// Stores a commit with new records. Returns the notifications that were not known before.
    pub fn commit(&mut self, commit: Commit, records: Vec<TokenRecords>, watch: &Watch) -> Vec<Arc<Notification>> {
        for item in commit.tokens {
            let Some(id) = item.id.as_str().map(TokenId::from) else { continue };
            self.token(&id, watch).token.item = item;
        }
        for FeedUpdate { id, state, header, .. } in commit.feeds {
            let Some(token) = id.token else { continue };
            let known = self.token(&token, watch);
            put(&mut known.feeds, id.endpoint, state);
            if let Some(header) = header {
                put(&mut known.headers, id.endpoint, header);
            }
        }
        for (id, resources, after) in records.into_iter().filter(|(_, resources, _)| !resources.is_empty()) {
            let known = self.token(&id, watch);
            known.records.retain(|tracked| !resources.contains(&tracked.record.resource()));
            known.records.extend(after);
            // The order of the database: by time and key, records without a date last.
            let begin = |tracked: &Tracked| tracked.record.interval().map(|interval| interval.start);
            known.records.sort_by(|a, b| {
                let (at_a, at_b) = (begin(a), begin(b));
                (at_a.is_none(), at_a, &a.key).cmp(&(at_b.is_none(), at_b, &b.key))
            });
        }
        for change in &commit.changes {
            if let (Some(token), Some(correction)) = (&change.token, PastCorrection::of(change, commit.at)) {
                self.corrections.entry(token.clone()).or_default().push(correction);
            }
        }
        if self.keeps_changes {
            for change in commit.changes {
                let (Some(token), Some(resource)) = (change.token.clone(), change.resource) else { continue };
                let symbol = self.tokens.get(&token).map(|known| known.token.symbol().to_owned());
                let (id, key) = (0, change.key.clone());
                self.changes.push_back(ChangeRow { id, at: commit.at, token, symbol, resource, key, change });
            }
        }
        for alert in commit.alerts {
            self.alert(alert);
        }
        for (name, slot) in commit.jobs {
            self.jobs.insert(name, slot);
        }
        commit.notifications.into_iter().filter_map(|notification| self.add_notification(notification, commit.at)).collect()
    }

    fn alert(&mut self, alert: Alert) {
        let episode = self.episodes.entry((alert.rule.clone(), alert.subject.clone())).or_default();
        *episode = (*episode).max(alert.episode);
        if let Some(before) = self.firing.remove(&alert.id) {
            self.by_begin.remove(&(before.since, alert.id.clone()));
        }
        if alert.state == AlertState::Firing {
            let since = alert.starts_at.unwrap_or(alert.active_at);
            self.firing.insert(alert.id.clone(), FiringRow { since, level: alert.level });
            let labels = alert.labels.clone();
            self.by_begin.insert((since, alert.id.clone()), FiringAlert { id: alert.id.clone(), labels });
        } else {
            self.last.remove(&alert.id);
        }
        self.has_changed |= !self.suppressed.is_empty();
        let open = match &alert.token {
            Some(token) => self.tokens.get_mut(token).map(|known| &mut known.alerts),
            None => Some(&mut self.global_alerts),
        };
        let Some(open) = open else { return };
        open.retain(|known| known.id != alert.id);
        if matches!(alert.state, AlertState::Pending | AlertState::Firing) {
            // The order of the database.
            let place = open.partition_point(|other| (other.active_at, &other.id) < (alert.active_at, &alert.id));
            open.insert(place, alert);
        }
    }

    /// Returns whether a notification was added, or recorded as known.
    pub fn has_notification(&self, id: &NotificationId) -> bool {
        self.notifications.contains(id)
    }

    /// Records notifications that are stored but never sent.
    pub fn add_known(&mut self, ids: impl Iterator<Item = NotificationId>) {
        self.notifications.extend(ids);
    }

    /// Adds a notification for each of its receivers. Ignores one whose id is known.
    fn add_notification(&mut self, notification: Notification, at: Timestamp) -> Option<Arc<Notification>> {
        if !self.notifications.insert(notification.id.clone()) {
            return None;
        }
        let notification = Arc::new(notification);
        if !self.delivers {
            return Some(notification);
        }
        if self.firing.contains_key(&notification.alert) {
            let is_later = |last: &Arc<Notification>| (notification.at, &last.id) > (last.at, &notification.id);
            if self.last.get(&notification.alert).is_none_or(is_later) {
                self.last.insert(notification.alert.clone(), notification.clone());
            }
        }
        for (index, receiver) in notification.receivers.iter().enumerate() {
            if notification.receivers.iter().take(index).any(|earlier| earlier == receiver) {
                continue;
            }
            self.rows += 1;
            let row = PendingNotification {
                no: self.rows,
                notice: notification.id.clone(),
                alert: notification.alert.clone(),
                receiver: receiver.clone(),
                kind: notification.kind,
                is_end: notification.body.status == AlertStatus::Resolved,
                labels: notification.body.labels.clone(),
                precedence: notification.body.precedence(notification.at),
                since: at,
                is_firing: false,
                suppression: None,
                is_superseded: false,
                was_notified: false,
                suppressed_before: None,
                acknowledged: None,
            };
            self.latest.insert((row.alert.clone(), row.receiver.clone()), row.no);
            let text = Undelivered { receiver: receiver.clone(), suppression: None, notice: notification.clone() };
            self.texts.insert(row.no, text);
            self.waiting.push(row);
            self.has_changed = true;
        }
        Some(notification)
    }

    pub fn last_run(&self, name: &str) -> Option<Timestamp> {
        self.jobs.get(name).copied()
    }

    // -- silences and acknowledgements --

    /// Adds a silence, which applies from its creation.
    pub fn put_silence(&mut self, silence: Silence) {
        self.silences.retain(|known| known.id != silence.id);
        self.silences.push(silence);
        // The order of the database.
        self.silences.sort_by(|a, b| b.ends_at.cmp(&a.ends_at).then_with(|| a.id.cmp(&b.id)));
        self.has_changed = true;
    }

    /// Adds an acknowledgement, which applies from its time.
    pub fn put_ack(&mut self, ack: Ack) {
        self.acks.insert(ack.alert.clone(), ack);
        self.has_changed = true;
    }

    /// Returns the silences that were created by `now` and end after `at`.
    pub fn silences(&self, at: Timestamp, now: Timestamp) -> Vec<Silence> {
        self.silences.iter().filter(|silence| silence.created_at <= now && silence.ends_at > at).cloned().collect()
    }

    fn ack(&self, alert: &AlertId, now: Timestamp) -> Option<&Ack> {
        self.acks.get(alert).filter(|ack| ack.at <= now)
    }

    // -- dispatch pass --

    /// Calls `check` with the pending and suppressed notifications. `None` if there are no notifications.
    pub fn pending<T>(&mut self, check: impl FnOnce(&PendingState<'_>) -> T, now: Timestamp) -> Option<T> {
        if self.waiting.is_empty() && self.suppressed.is_empty() {
            return None;
        }
        self.refresh(now);
        let silences = self.silences(now, now);
        let lookup = MemoryLookup { memory: self, now };
        let state = PendingState {
            waiting: &self.waiting,
            is_cut: false,
            suppressed: &self.suppressed,
            silences: &silences,
            lookup: &lookup,
        };
        Some(check(&state))
    }

    /// Updates the pending and suppressed notifications before a dispatch pass: whether their alert fires, whether their receiver got an
    /// earlier or later notification of it, and whether it is acknowledged at `now`.
    fn refresh(&mut self, now: Timestamp) {
        let (mut waiting, mut suppressed) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.suppressed));
        for row in &mut waiting {
            row.is_firing = self.firing.contains_key(&row.alert);
            if row.is_end {
                let about = (row.alert.clone(), row.receiver.clone());
                row.was_notified = self.delivered.contains_key(&about);
                row.suppressed_before = self.suppressed_last.get(&about).cloned();
            }
            row.acknowledged = self.acknowledged(row, now);
        }
        for row in &mut suppressed {
            row.is_firing = self.firing.contains_key(&row.alert);
            let about = (row.alert.clone(), row.receiver.clone());
            let is_later = |of: &HashMap<About, i64>| of.get(&about).is_some_and(|no| *no > row.no);
            row.is_superseded = is_later(&self.latest) || is_later(&self.delivered);
            row.acknowledged = self.acknowledged(row, now);
        }
        (self.waiting, self.suppressed) = (waiting, suppressed);
    }

    /// Returns the acknowledgement that applies to a reminder, with the facts that it acknowledged.
    fn acknowledged(&self, row: &PendingNotification, now: Timestamp) -> Option<(Ack, SilenceFact)> {
        let ack = self.ack(&row.alert, now).filter(|_| row.kind == NotificationKind::Reminder)?;
        let level = self.firing.get(&row.alert).and_then(|firing| firing.level);
        Some((ack.clone(), SilenceFact::notified(level, &self.texts.get(&row.no)?.notice.body)))
    }

    /// Stores the result of a pass. Returns the messages.
    pub fn dispatch(&mut self, dispatch: Dispatch, now: Timestamp) -> Vec<Sent> {
        for (no, by) in dispatch.suppressed {
            self.suppress(no, by, now);
        }
        for no in dispatch.released {
            let Some(index) = self.suppressed.iter().position(|row| row.no == no) else { continue };
            let row = PendingNotification { since: now, suppression: None, ..self.suppressed.remove(index) };
            if let Some(text) = self.texts.get_mut(&no) {
                text.suppression = None;
            }
            self.waiting.push(row);
        }
        if !dispatch.settled.is_empty() {
            let settled: HashSet<i64> = dispatch.settled.into_iter().collect();
            self.suppressed.retain(|row| !settled.contains(&row.no));
        }
        for group in dispatch.groups {
            self.notified(group, now);
        }
        let sent: Vec<Sent> = dispatch.deliveries.into_iter().map(|delivery| self.deliver(delivery, now)).collect();
        self.waiting.sort_by_key(|row| row.no);
        sent
    }

    fn suppress(&mut self, no: i64, by: Suppression, now: Timestamp) {
        if let Some(index) = self.waiting.iter().position(|row| row.no == no) {
            let row = self.waiting.remove(index);
            let place = self.suppressed.partition_point(|other| other.no < no);
            self.suppressed.insert(place, row);
        }
        let Some(row) = self.suppressed.iter_mut().find(|row| row.no == no) else { return };
        (row.since, row.suppression) = (now, Some(by.clone()));
        if let Some(text) = self.texts.get_mut(&no) {
            text.suppression = Some(by.clone());
        }
        if by.by != Suppressor::Type {
            self.suppressed_last.insert((row.alert.clone(), row.receiver.clone()), by);
        }
    }

    fn notified(&mut self, group: GroupUpdate, now: Timestamp) {
        let GroupUpdate { receiver, key, repeat_at, joined, left } = group;
        let key = (receiver, key);
        let row = self.groups.entry(key.clone()).or_insert_with(|| GroupRow {
            notified_at: now,
            repeat_at: None,
            alerts: BTreeSet::new(),
        });
        row.notified_at = now;
        let before = std::mem::replace(&mut row.repeat_at, repeat_at);
        row.alerts.extend(joined);
        row.alerts.retain(|alert| !left.contains(alert));
        if let Some(before) = before {
            self.repeats.remove(&(before, key.clone()));
        }
        if let Some(at) = repeat_at {
            self.repeats.insert((at, key));
        }
    }

    fn deliver(&mut self, delivery: NewDelivery, now: Timestamp) -> Sent {
        let gone: HashSet<i64> = delivery.rows().map(|(no, ..)| no).collect();
        for row in self.waiting.extract_if(.., |row| gone.contains(&row.no)) {
            self.delivered.insert((row.alert, row.receiver), row.no);
        }
        let mut take = |rows: Vec<(i64, NotificationId)>| -> Vec<Arc<Notification>> {
            rows.into_iter().filter_map(|(no, _)| Some(self.texts.remove(&no)?.notice)).collect()
        };
        let NewDelivery { receiver, notified, counted, merged, batch } = delivery;
        let (notified, counted, merged) = (take(notified), take(counted), take(merged));
        let made = self.made.entry(receiver.clone()).or_default();
        while made.front().is_some_and(|(at, _)| *at <= now - HOUR) {
            made.pop_front();
        }
        made.push_back((now, batch.shape));
        let is_of_others = |kind| matches!(kind, NotificationKind::Test | NotificationKind::Source | NotificationKind::Digest);
        if notified.iter().chain(&counted).chain(&merged).any(|notice| !is_of_others(notice.kind)) {
            self.first_notified.entry(receiver.clone()).or_insert(now);
        }
        Sent { at: now, receiver, batch, notified, counted, merged }
    }

    // -- reminders --

    /// Returns the time at which the next group is due for a reminder.
    pub fn next_repeat(&self) -> Option<Timestamp> {
        self.repeats.first().map(|(at, _)| *at)
    }

    /// Returns the groups that are due for a reminder, sorted by due time.
    pub fn repeats(&self, now: Timestamp) -> Vec<RepeatGroup> {
        let due = self.repeats.iter().take_while(|(at, _)| *at <= now);
        let groups = due.filter_map(|(_, key)| Some((key, self.groups.get(key)?)));
        groups
            .map(|((receiver, key), group)| {
                let mut firing: Vec<(Timestamp, &AlertId)> =
                    group.alerts.iter().filter_map(|id| Some((self.firing.get(id)?.since, id))).collect();
                firing.sort_unstable();
                let alerts = firing.into_iter().filter_map(|(_, id)| {
                    let last = Notification::clone(self.last.get(id)?);
                    let is_acknowledged = self.ack(id, now).is_some();
                    Some(RepeatAlert { alert: self.open_alert(&last)?.clone(), last, is_acknowledged })
                });
                RepeatGroup { receiver: receiver.clone(), key: key.clone(), alerts: alerts.collect() }
            })
            .collect()
    }

    /// Returns the open alert of a notification.
    fn open_alert(&self, of: &Notification) -> Option<&Alert> {
        let of_token = of.body.token.as_ref().and_then(|token| self.tokens.get(token.id.as_str()));
        let open = of_token.map_or(&self.global_alerts, |known| &known.alerts);
        open.iter().chain(&self.global_alerts).find(|alert| alert.id == of.alert)
    }

    pub fn commit_repeats(&mut self, repeats: Repeats, now: Timestamp) {
        for notification in repeats.notifications {
            self.add_notification(notification, now);
        }
        for (receiver, key, next) in repeats.groups {
            let key = (receiver, key);
            let Some(group) = self.groups.get_mut(&key) else { continue };
            if let Some(before) = std::mem::replace(&mut group.repeat_at, next) {
                self.repeats.remove(&(before, key.clone()));
            }
            if let Some(at) = next {
                self.repeats.insert((at, key));
            }
        }
    }

    // -- digests and results --

    /// Returns the unlocks in the days of a digest, of the tokens that `is_meant` selects.
    pub fn digest_ahead(&self, filter: &DigestAheadFilter, is_meant: &dyn Fn(Option<&TokenId>) -> bool) -> DigestAhead {
        digest::ahead(self.tokens.iter().filter(|(id, _)| is_meant(Some(id))), filter)
    }

    /// Returns changes, latest first.
    pub fn changes(&self, filter: &ChangeFilter) -> Vec<ChangeRow> {
        let is_meant = |row: &&ChangeRow| filter.since.is_none_or(|since| row.at >= since);
        self.changes.iter().rev().filter(is_meant).take(limit(filter.limit)).cloned().collect()
    }

    /// Removes changes that are too old for any digest.
    pub fn forget_changes(&mut self, before: Timestamp) {
        while self.changes.front().is_some_and(|row| row.at < before) {
            self.changes.pop_front();
        }
    }

    /// Returns the undelivered notifications that match the filter.
    pub fn statuses(&self, filter: &NotificationFilter) -> Vec<NotificationStatus> {
        let is_meant = |text: &&Undelivered| {
            filter.receiver.as_ref().is_none_or(|receiver| text.receiver == *receiver)
                && filter.since.is_none_or(|since| text.notice.at >= since)
        };
        let status = |Undelivered { receiver, suppression, notice }: &Undelivered| NotificationStatus {
            notice: notice.id.clone(),
            alert: notice.alert.clone(),
            rule: notice.body.rule.clone(),
            kind: notice.kind,
            at: notice.at,
            summary: cut_summary(notice.body.annotations.get("summary").map(String::as_str).unwrap_or_default()),
            receiver: Some(receiver.clone()),
            state: suppression.as_ref().map_or(NotificationState::Waiting, |by| by.by.state()),
            role: None,
            delivery: None,
            suppressor: suppression.as_ref().map(|by| by.id.clone()),
        };
        let mut statuses: Vec<NotificationStatus> = self.texts.values().filter(is_meant).map(status).collect();
        statuses.sort_by(|a, b| (a.at, &a.notice, &a.receiver).cmp(&(b.at, &b.notice, &b.receiver)));
        statuses.truncate(limit(filter.limit));
        statuses
    }

    pub fn firing_count(&self) -> u64 {
        self.firing.len() as u64
    }

    /// Returns the firing alerts with their current texts and the values of their unlocks.
    pub fn firing_alerts(&self, context: &EvaluationContext<'_>) -> Vec<ValuedAlert> {
        let of_tokens = self.tokens.values().flat_map(|known| known.alerts.iter().map(move |alert| (alert, Some(known))));
        let all = of_tokens.chain(self.global_alerts.iter().map(|alert| (alert, None)));
        let value = |alert: &Alert, known: Option<&TokenSnapshot>| {
            let key = alert.key.as_ref().filter(|_| alert.resource == Some(Resource::Unlock))?;
            known?.records_of(Resource::Unlock).find(|of| of.key == *key)?.record.unlock()?.cliff_value()
        };
        let firing = all.filter(|(alert, _)| alert.state == AlertState::Firing);
        let shown = |alert: &Alert, known: Option<&TokenSnapshot>| {
            let needed = known.filter(|_| pipeline::facts_for_text(alert).is_some());
            let text = needed.and_then(|known| pipeline::current_text(alert, known, context));
            text.map_or_else(|| alert.clone(), |annotations| Alert { annotations, ..alert.clone() })
        };
        firing.map(|(alert, known)| ValuedAlert { alert: shown(alert, known), value: value(alert, known) }).collect()
    }

    /// Returns the open incidents.
    pub fn source_alerts(&self) -> Vec<Alert> {
        self.global_alerts.iter().filter(|alert| alert.rule.as_str() == SOURCE_TROUBLE).cloned().collect()
    }

    /// Returns the undelivered notifications in the order of evaluation.
    pub fn undelivered(&self) -> Vec<UndeliveredSimulated> {
        let undelivered = |Undelivered { receiver, suppression, notice }: &Undelivered| UndeliveredSimulated {
            notice: notice.id.clone(),
            alert: notice.alert.clone(),
            receiver: receiver.clone(),
            by: suppression.clone(),
        };
        self.texts.values().map(undelivered).collect()
    }
}

fn limit(rows: u32) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}

fn put<T>(list: &mut Vec<(Endpoint, T)>, endpoint: Endpoint, value: T) {
    match list.iter_mut().find(|(of, _)| *of == endpoint) {
        Some((_, there)) => *there = value,
        None => list.push((endpoint, value)),
    }
}

/// The lookups of a dispatch pass.
struct MemoryLookup<'a> {
    memory: &'a MemoryStore,
    now: Timestamp,
}

impl PendingLookup for MemoryLookup<'_> {
    fn firing(&self) -> Cow<'_, [FiringAlert]> {
        Cow::Owned(self.memory.by_begin.values().cloned().collect())
    }

    fn notified_at(&self, receiver: &ReceiverName, key: &str) -> Option<Timestamp> {
        Some(self.memory.groups.get(&(receiver.clone(), key.to_owned()))?.notified_at)
    }

    fn notified_and_firing(&self, receiver: &ReceiverName, key: &str) -> Vec<AlertId> {
        let group = self.memory.groups.get(&(receiver.clone(), key.to_owned()));
        let alerts = group.into_iter().flat_map(|group| &group.alerts);
        alerts.filter(|id| self.memory.firing.contains_key(*id)).cloned().collect()
    }

    fn usage(&self, receiver: &ReceiverName) -> ReceiverUsage {
        let made = self.memory.made.get(receiver);
        let hour = self.now - HOUR;
        // The messages of the last hour, latest first.
        let recent = || made.into_iter().flat_map(|made| made.iter().rev().take_while(|(at, _)| *at > hour));
        let plain = || recent().filter(|(_, shape)| *shape != BatchKind::Summary);
        let last = |of: BatchKind| recent().find(|(_, shape)| *shape == of).map(|(at, _)| *at);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        ReceiverUsage {
            last_hour: count(plain().count()),
            oldest: plain().last().map(|(at, _)| *at),
            recent: count(plain().filter(|(at, _)| *at > self.now - BURST_WINDOW).count()),
            batched_at: last(BatchKind::Batch),
            summed_at: last(BatchKind::Summary),
            is_new: self.memory.first_notified.get(receiver).is_none_or(|first| *first > hour),
        }
    }
}

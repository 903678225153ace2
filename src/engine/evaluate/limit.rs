//! The `limit` of a rule: the maximum number of notifications in one cycle, and a summary of those left out.

use std::collections::{BTreeMap, BTreeSet};

use super::transition::{AlertTransition, QueuedNotification, Transitions, add_receivers};
use super::{RuleTerms, blank, iso, plain_body};
use model::{
    Alert, AlertBody, AlertState, AlertStatus, Commit, HeldEvent, Labels, NotificationKind, Precedence, ReceiverName, RuleId,
    Timestamp, TokenId, alert_id, phrase,
};

/// The maximum number of tokens that a summary names.
const MAX_TOKENS: usize = 20;

/// The notifications of rules with a `limit` so far in one cycle.
///
/// A cycle evaluates tokens in batches, and the limit keeps the first notifications by severity and value of all batches. So the
/// batches only collect: an alert that would notify stays as it is in the store, and its token is held. [`Limits::decide`] then returns
/// the held tokens, and their second evaluation notifies or leaves out. Nothing depends on this memory: after a crash, all tokens are
/// evaluated.
///
/// Events happen once and cannot be evaluated again. So a batch stores them as [`HeldEvent`]s, in the transaction of the change that caused
/// them. At the end of the cycle, [`Limits::rank`] reads all of them, [`Limits::leave_out`] and then [`Limits::release`] turn them into
/// notifications. Only the ranks of the kept ones are in memory. After a crash, the next cycle that ends decides about the stored ones.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    rules: BTreeMap<RuleId, LimitCount>,
    held: BTreeSet<TokenId>,
    has_held_events: bool,
    phase: LimitPhase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LimitPhase {
    #[default]
    Collect,
    Decide,
}

#[derive(Clone, Debug, Default)]
struct LimitCount {
    name: String,
    limit: u32,
    notified: usize,
    /// The held events that were notified since they were ranked.
    released: usize,
    left_out: u32,
    /// The subjects that would notify, while the batches collect.
    candidates: BTreeMap<String, Precedence>,
    /// The candidates that the limit keeps.
    kept: BTreeSet<String>,
    /// The held events that the limit keeps of those ranked so far, in order.
    ranked: Vec<(Precedence, String)>,
    /// The labels that all notifications left out have in common.
    labels: Option<Labels>,
    receivers: Vec<ReceiverName>,
    tokens: Vec<String>,
}

impl Limits {
    /// Returns whether alerts are held, so that their tokens must be evaluated again.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns whether the cycle stored held events.
    pub fn has_held_events(&self) -> bool {
        self.has_held_events
    }

    /// Begins to decide about the held alerts. Returns their tokens, which must be evaluated once more before [`Self::collect`].
    pub fn decide(&mut self) -> Vec<TokenId> {
        self.phase = LimitPhase::Decide;
        for count in self.rules.values_mut() {
            let mut candidates: Vec<(String, Precedence)> = std::mem::take(&mut count.candidates).into_iter().collect();
            candidates.sort_by(|a, b| a.1.order(&b.1).then_with(|| a.0.cmp(&b.0)));
            count.kept = candidates.into_iter().take(count.room()).map(|(subject, _)| subject).collect();
        }
        self.held.iter().cloned().collect()
    }

    /// Ends [`Self::decide`]: the next batches collect again.
    pub fn collect(&mut self) {
        self.phase = LimitPhase::Collect;
        self.held.clear();
    }

    /// Ranks held events together with the events of earlier calls. Call it with all held events before [`Self::leave_out`].
    pub fn rank(&mut self, events: &[HeldEvent]) {
        self.has_held_events = false;
        for HeldEvent { limit, alert, notification } in events {
            let count = self.count(&alert.rule, &alert.name, *limit);
            let rank = (notification.body.precedence(notification.at), alert.subject.clone());
            let at = count.ranked.partition_point(|other| other.0.order(&rank.0).then_with(|| other.1.cmp(&rank.1)).is_lt());
            if at < count.room() {
                count.ranked.insert(at, rank);
                count.ranked.truncate(count.room());
            }
        }
    }

    /// Returns the rows that record the events that the limit leaves out. Commit them before [`Self::release`], so that a crash
    /// between two commits leaves the largest events held.
    pub fn leave_out(&mut self, mut events: Vec<HeldEvent>) -> Commit {
        events.retain(|event| !self.keeps(event));
        let mut commit = Commit::default();
        for HeldEvent { limit, alert, mut notification } in events {
            let count = self.count(&alert.rule, &alert.name, limit);
            count.add(&notification.body, &notification.receivers);
            notification.receivers.clear();
            notification.body.left_out_by = Some(limit);
            commit.decided.push(notification.id.clone());
            commit.left_out.push(notification);
            commit.alerts.push(alert);
        }
        commit
    }

    /// Returns whether the limit keeps a ranked event.
    pub fn keeps(&self, event: &HeldEvent) -> bool {
        self.rules.get(&event.alert.rule).is_some_and(|count| count.has_ranked(&event.alert))
    }

    /// Returns the rows that notify the events that the limit keeps, in the order of other notifications.
    pub fn release(&mut self, mut events: Vec<HeldEvent>) -> Commit {
        events.retain(|event| self.keeps(event));
        events.sort_by(|a, b| {
            let precedence = |event: &HeldEvent| event.notification.body.precedence(event.notification.at);
            let key = |event: &HeldEvent| (event.alert.rule.clone(), event.alert.subject.clone());
            precedence(a).order(&precedence(b)).then_with(|| key(a).cmp(&key(b)))
        });
        let mut commit = Commit::default();
        for HeldEvent { limit, mut alert, notification } in events {
            self.count(&alert.rule, &alert.name, limit).released += 1;
            add_receivers(&mut alert.notified, &notification.receivers);
            commit.decided.push(notification.id.clone());
            commit.notifications.push(notification);
            commit.alerts.push(alert);
        }
        commit
    }

    /// Ends the decision about held events. The events of later batches are ranked for the rest of the limit.
    pub fn end_events(&mut self) {
        for count in self.rules.values_mut() {
            count.notified += std::mem::take(&mut count.released);
            count.ranked.clear();
        }
    }

    fn count(&mut self, rule: &RuleId, name: &str, limit: u32) -> &mut LimitCount {
        let count = self.rules.entry(rule.clone()).or_default();
        (count.name, count.limit) = (name.to_owned(), limit);
        count
    }

    /// Applies the `limit` of a rule. Events are held until the end of the cycle, and alerts on states of tokens are held first. Of the
    /// others, the first by severity and value stay, and the rest is recorded without receivers and counted. Resolutions always stay.
    pub(super) fn apply(&mut self, terms: &RuleTerms<'_>, transitions: &mut Transitions) {
        let Some(limit) = terms.limit else { return };
        self.has_held_events |= hold_events(limit, terms, transitions);
        let count = self.rules.entry(terms.id.clone()).or_default();
        (count.name, count.limit) = (terms.name.to_owned(), limit);
        if self.phase == LimitPhase::Collect {
            hold(count, &mut self.held, terms, transitions);
        }
        let alerts = &transitions.alerts;
        let alert_of = |queued: &QueuedNotification| alerts.get(queued.alert).map(|transition| &transition.alert);
        let is_counted = |queued: &QueuedNotification| {
            queued.kind != NotificationKind::Resolved && alert_of(queued).is_some_and(|alert| alert.rule == *terms.id)
        };
        let all = std::mem::take(&mut transitions.notifications);
        let (mut counted, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_counted);
        let subject = |queued: &QueuedNotification| alert_of(queued).map(|alert| alert.subject.as_str());
        counted.sort_by(|a, b| a.order(b).then_with(|| subject(a).cmp(&subject(b))));
        let kept = std::mem::take(&mut count.kept);
        let is_kept = |queued: &QueuedNotification| subject(queued).is_some_and(|subject| kept.contains(subject));
        let was_held = |queued: &QueuedNotification| alert_of(queued).is_some_and(is_held_first);
        let (mut stay, mut left_out) = (Vec::new(), Vec::new());
        for queued in counted {
            let has_room = if was_held(&queued) { is_kept(&queued) } else { stay.len() < count.room() };
            if has_room { stay.push(queued) } else { left_out.push(queued) }
        }
        count.kept = kept;
        count.notified += stay.len();
        for queued in &left_out {
            count.add(&queued.body, &queued.receivers);
        }
        transitions.notifications = others;
        transitions.notifications.extend(stay);
        transitions.left_out.extend(left_out.into_iter().map(|mut queued| {
            queued.receivers.clear();
            queued.body.left_out_by = Some(limit);
            queued
        }));
    }

    /// Ends the cycle. Returns one alert for each rule that left notifications out, with the labels that they have in common, for all of
    /// their receivers.
    pub fn summaries(self, now: Timestamp) -> Transitions {
        let mut transitions = Transitions::default();
        for (rule, count) in self.rules.into_iter().filter(|(_, count)| count.left_out > 0) {
            let subject = format!("limit/{rule}/{}", iso(now));
            let mut alert = blank(rule, &count.name, subject, AlertState::Event, now);
            let LimitCount { name, limit, left_out, labels, mut receivers, mut tokens, .. } = count;
            alert.labels = labels.unwrap_or_default();
            alert.labels.insert("alertname".to_owned(), name.clone());
            alert.annotations.insert(
                "summary".to_owned(),
                format!(
                    "{name}: {} left out by limit = {limit}; see `cliffwatch alerts --rule {name}`",
                    phrase::count(left_out, "more alert")
                ),
            );
            // The order does not depend on batches.
            tokens.sort_unstable();
            let more = if tokens.len() > MAX_TOKENS { ", …" } else { "" };
            tokens.truncate(MAX_TOKENS);
            if !tokens.is_empty() {
                alert.annotations.insert("description".to_owned(), format!("Left out: {}{more}.", tokens.join(", ")));
            }
            alert.starts_at = Some(now);
            alert.episode = 1;
            alert.id = alert_id(&alert.rule, &alert.subject, 1);
            add_receivers(&mut alert.notified, &receivers);
            let body = plain_body(&alert, AlertStatus::Firing, "limit", now);
            transitions.notifications.push(QueuedNotification {
                alert: transitions.alerts.len(),
                kind: NotificationKind::Event,
                transition: "event".to_owned(),
                receivers: std::mem::take(&mut receivers),
                precedence: body.precedence(now),
                body,
            });
            transitions.alerts.push(AlertTransition { alert, is_opening: false });
        }
        transitions
    }
}

/// Returns whether the alert is held before the limit applies: it is about a state of a token, which can be evaluated again.
fn is_held_first(alert: &Alert) -> bool {
    alert.state == AlertState::Firing && alert.token.is_some()
}

/// Takes the alerts that would notify out of the transitions, and remembers their rank and their tokens.
fn hold(count: &mut LimitCount, held: &mut BTreeSet<TokenId>, terms: &RuleTerms<'_>, transitions: &mut Transitions) {
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    transitions.notifications.retain(|queued| {
        let alert = transitions.alerts.get(queued.alert).map(|transition| &transition.alert);
        let own = alert.filter(|alert| alert.rule == *terms.id && is_held_first(alert));
        let (Some(alert), true) = (own, queued.kind != NotificationKind::Resolved) else { return true };
        count.candidates.insert(alert.subject.clone(), queued.precedence);
        held.extend(alert.token.clone());
        taken.insert(queued.alert);
        false
    });
    transitions.remove_alerts(&taken);
}

/// Moves the events of a rule out of the transitions, to be stored until the cycle ends. Returns whether there are any.
fn hold_events(limit: u32, terms: &RuleTerms<'_>, transitions: &mut Transitions) -> bool {
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    for queued in std::mem::take(&mut transitions.notifications) {
        let alert = transitions.alerts.get(queued.alert).map(|transition| &transition.alert);
        let is_event = |alert: &&Alert| alert.rule == *terms.id && alert.state == AlertState::Event && alert.token.is_some();
        let Some(alert) = alert.filter(is_event) else {
            transitions.notifications.push(queued);
            continue;
        };
        taken.insert(queued.alert);
        let (alert, notification) = (alert.clone(), queued.into_notification(alert));
        transitions.held.push(HeldEvent { limit, alert, notification });
    }
    transitions.remove_alerts(&taken);
    !taken.is_empty()
}

impl LimitCount {
    /// Returns whether the limit keeps a held event.
    fn has_ranked(&self, event: &Alert) -> bool {
        self.ranked.iter().any(|(_, subject)| *subject == event.subject)
    }

    /// Returns how many more notifications the limit allows in this cycle.
    fn room(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX).saturating_sub(self.notified)
    }

    /// Counts an alert that was left out.
    fn add(&mut self, body: &AlertBody, receivers: &[ReceiverName]) {
        let labels = &body.labels;
        match &mut self.labels {
            None => self.labels = Some(labels.clone()),
            Some(common) => common.retain(|name, value| labels.get(name) == Some(value)),
        }
        self.left_out = self.left_out.saturating_add(1);
        add_receivers(&mut self.receivers, receivers);
        if let Some(token) = &body.token
            && self.tokens.len() <= MAX_TOKENS
            && !self.tokens.contains(&token.symbol)
        {
            self.tokens.push(token.symbol.clone());
        }
    }
}

//! The `limit` of a rule: the maximum number of notifications in one cycle, and a summary of those left out.

use std::collections::{BTreeMap, BTreeSet};

use super::transition::{AlertTransition, QueuedNotification, Transitions, add_receivers};
use super::{RuleTerms, blank, iso, plain_body};
use model::{
    Alert, AlertState, AlertStatus, Labels, NotificationKind, Precedence, ReceiverName, RuleId, Timestamp, TokenId, alert_id,
    phrase,
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
/// Events happen once and cannot be evaluated again, so their limit applies to each batch.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    rules: BTreeMap<RuleId, LimitCount>,
    held: BTreeSet<TokenId>,
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
    left_out: u32,
    /// The subjects that would notify, while the batches collect.
    candidates: BTreeMap<String, Precedence>,
    /// The candidates that the limit keeps.
    kept: BTreeSet<String>,
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

    /// Applies the `limit` of a rule. Alerts on states of tokens are held first. Of the others, the first by severity and value stay, and
    /// the rest is recorded without receivers and counted. Resolutions always stay.
    pub(super) fn apply(&mut self, terms: &RuleTerms<'_>, transitions: &mut Transitions) {
        let Some(limit) = terms.limit else { return };
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
            count.add(queued);
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

impl LimitCount {
    /// Returns how many more notifications the limit allows in this cycle.
    fn room(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX).saturating_sub(self.notified)
    }

    fn add(&mut self, queued: &QueuedNotification) {
        let labels = &queued.body.labels;
        match &mut self.labels {
            None => self.labels = Some(labels.clone()),
            Some(common) => common.retain(|name, value| labels.get(name) == Some(value)),
        }
        self.left_out = self.left_out.saturating_add(1);
        add_receivers(&mut self.receivers, &queued.receivers);
        if let Some(token) = &queued.body.token
            && self.tokens.len() <= MAX_TOKENS
            && !self.tokens.contains(&token.symbol)
        {
            self.tokens.push(token.symbol.clone());
        }
    }
}

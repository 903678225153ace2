//! The `limit` of a rule: the maximum number of notifications in one cycle, and a summary of those left out.

use std::collections::BTreeMap;

use super::transition::{AlertTransition, QueuedNotification, Transitions, Urgency, add_receivers};
use super::{RuleTerms, blank, iso, plain_body};
use model::{AlertState, AlertStatus, Labels, NotificationKind, ReceiverName, RuleId, Timestamp, alert_id, phrase};

/// The maximum number of tokens that a summary names.
const MAX_TOKENS: usize = 20;

/// The notifications of rules with a `limit` so far in one cycle.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    rules: BTreeMap<RuleId, LimitCount>,
}

#[derive(Clone, Debug, Default)]
struct LimitCount {
    name: String,
    limit: u32,
    notified: usize,
    left_out: u32,
    /// The labels that all notifications left out have in common.
    labels: Option<Labels>,
    receivers: Vec<ReceiverName>,
    tokens: Vec<String>,
}

impl Limits {
    /// Applies the `limit` of a rule. The most urgent notifications stay, and the others are recorded without receivers and counted.
    /// Resolutions always stay.
    pub(super) fn apply(&mut self, terms: &RuleTerms<'_>, transitions: &mut Transitions) {
        let Some(limit) = terms.limit else { return };
        let alerts = &transitions.alerts;
        let alert_of = |queued: &QueuedNotification| alerts.get(queued.alert).map(|transition| &transition.alert);
        let is_counted = |queued: &QueuedNotification| {
            queued.kind != NotificationKind::Resolved && alert_of(queued).is_some_and(|alert| alert.rule == *terms.id)
        };
        let all = std::mem::take(&mut transitions.notifications);
        let (mut counted, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_counted);
        let subject = |queued: &QueuedNotification| alert_of(queued).map(|alert| alert.subject.as_str());
        counted.sort_by(|a, b| a.order(b).then_with(|| subject(a).cmp(&subject(b))));
        let count = self.rules.entry(terms.id.clone()).or_default();
        (count.name, count.limit) = (terms.name.to_owned(), limit);
        let room = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(count.notified);
        let left_out = counted.split_off(room.min(counted.len()));
        count.notified += counted.len();
        for queued in &left_out {
            count.add(queued);
        }
        transitions.notifications = others;
        transitions.notifications.extend(counted);
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
                body,
                urgency: Urgency::UNDATED,
            });
            transitions.alerts.push(AlertTransition { alert, is_opening: false });
        }
        transitions
    }
}

impl LimitCount {
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

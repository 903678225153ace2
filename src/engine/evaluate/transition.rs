//! The result of an evaluation: [`Transitions`] without episodes, and the [`Evaluation`] after episodes are assigned.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use model::{
    Alert, AlertBody, HeldEvent, Notification, NotificationKind, Precedence, ReceiverName, RuleId, Timestamp, alert_id,
    notification_id,
};

/// Transitions of alerts, with their notifications, before episodes are assigned.
#[derive(Clone, Debug, Default)]
#[must_use = "transitions become an evaluation by `assign_episodes`"]
pub struct Transitions {
    pub(super) alerts: Vec<AlertTransition>,
    pub(super) notifications: Vec<QueuedNotification>,
    pub(super) rule_matches: BTreeMap<RuleId, Timestamp>,
    pub(super) template_errors: BTreeMap<RuleId, String>,
    /// Notifications beyond a rule's `limit`.
    pub(super) left_out: Vec<QueuedNotification>,
    /// Events of rules with a `limit`, which the end of the cycle decides about.
    pub(super) held: Vec<HeldEvent>,
}

/// The alerts to write and the notifications to send.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// New and changed alerts, complete.
    pub alerts: Vec<Alert>,
    /// Notifications, by severity, then by value, then by date.
    pub notifications: Vec<Notification>,
    /// Rules that matched, with the time.
    pub rule_matches: Vec<(RuleId, Timestamp)>,
    /// Rules with a failed template, with the first error of each. [`crate::self_monitor::template_failed`] reports them.
    pub template_errors: Vec<(RuleId, String)>,
    /// Notifications beyond a rule's `limit`, without receivers. They are stored so that `explain` can report them.
    pub left_out: Vec<Notification>,
    /// Events of rules with a `limit`. They are stored until the end of the cycle decides about them.
    pub held: Vec<HeldEvent>,
}

/// A new or changed alert.
#[derive(Clone, Debug)]
pub(super) struct AlertTransition {
    pub(super) alert: Alert,
    /// Whether the alert is new, so that its episode is not known yet.
    pub(super) is_opening: bool,
}

/// A notification of an alert in the same [`Transitions`].
#[derive(Clone, Debug)]
pub(super) struct QueuedNotification {
    /// An index into [`Transitions::alerts`].
    pub(super) alert: usize,
    pub(super) kind: NotificationKind,
    pub(super) transition: String,
    pub(super) receivers: Vec<ReceiverName>,
    pub(super) body: AlertBody,
    pub(super) precedence: Precedence,
}

impl QueuedNotification {
    /// Compares by severity, then by value, largest first, then by date. The first ones stay if a `limit` applies.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        self.precedence.order(&other.precedence)
    }

    /// Returns the notification of `alert`, whose id is assigned.
    pub(super) fn into_notification(self, alert: &Alert) -> Notification {
        Notification {
            id: notification_id(&alert.id, &self.transition),
            alert: alert.id.clone(),
            kind: self.kind,
            at: alert.updated_at,
            receivers: self.receivers,
            body: AlertBody { id: alert.id.clone(), ..self.body },
        }
    }
}

impl Transitions {
    /// Returns the rule and subject of each new alert. The caller reads the latest episode of each from the store.
    pub fn openings(&self) -> Vec<(RuleId, String)> {
        self.alerts
            .iter()
            .filter(|transition| transition.is_opening)
            .map(|transition| (transition.alert.rule.clone(), transition.alert.subject.clone()))
            .collect()
    }

    /// Removes alerts by index. No notification may refer to them.
    pub(super) fn remove_alerts(&mut self, removed: &BTreeSet<usize>) {
        if removed.is_empty() {
            return;
        }
        let before = |index: usize| removed.range(..index).count();
        for queued in self.notifications.iter_mut().chain(&mut self.left_out) {
            queued.alert -= before(queued.alert);
        }
        let mut index = 0..;
        self.alerts.retain(|_| index.next().is_none_or(|index| !removed.contains(&index)));
    }

    /// Combines the transitions of several evaluations for one transaction.
    pub fn join(mut self, other: Transitions) -> Transitions {
        let offset = self.alerts.len();
        self.alerts.extend(other.alerts);
        let shifted = |queued: QueuedNotification| QueuedNotification { alert: queued.alert + offset, ..queued };
        self.notifications.extend(other.notifications.into_iter().map(shifted));
        self.left_out.extend(other.left_out.into_iter().map(shifted));
        self.held.extend(other.held);
        self.rule_matches.extend(other.rule_matches);
        for (rule, error) in other.template_errors {
            self.template_errors.entry(rule).or_insert(error);
        }
        self
    }

    /// Assigns episodes to the new alerts. `latest` contains the latest episode of each of [`openings`](Self::openings), in that order, and
    /// zero for those without one. Trailing zeros may be left out.
    pub fn assign_episodes(self, latest: &[u32]) -> Evaluation {
        let mut latest = latest.iter();
        let mut alerts = self.alerts;
        for transition in alerts.iter_mut().filter(|transition| transition.is_opening) {
            let alert = &mut transition.alert;
            alert.episode = latest.next().copied().unwrap_or(0).saturating_add(1);
            alert.id = alert_id(&alert.rule, &alert.subject, alert.episode);
        }
        let mut queued = self.notifications;
        queued.sort_by(|a, b| {
            let key = |queued: &QueuedNotification| alerts.get(queued.alert).map(|of| (&of.alert.rule, &of.alert.subject));
            a.order(b).then_with(|| key(a).cmp(&key(b)))
        });
        let notification = |queued: QueuedNotification| {
            let alert = &alerts.get(queued.alert)?.alert;
            Some(queued.into_notification(alert))
        };
        let notifications = queued.into_iter().filter_map(notification).collect();
        let left_out = self.left_out.into_iter().filter_map(notification).collect();
        let mut alerts: Vec<_> = alerts.into_iter().map(|transition| transition.alert).collect();
        alerts.sort_by(|a, b| (&a.rule, &a.subject, a.episode).cmp(&(&b.rule, &b.subject, b.episode)));
        Evaluation {
            alerts,
            notifications,
            rule_matches: self.rule_matches.into_iter().collect(),
            template_errors: self.template_errors.into_iter().collect(),
            left_out,
            held: self.held,
        }
    }

    /// Adds an alert with its notification. Unless it is a resolution, its receivers count as notified of the alert.
    pub fn add(&mut self, mut alert: Alert, is_opening: bool, draft: Option<NotificationDraft>) {
        if let Some(NotificationDraft { kind, transition, receivers, body, is_resolution }) = draft {
            if !is_resolution {
                add_receivers(&mut alert.notified, &receivers);
            }
            let precedence = body.precedence(alert.updated_at);
            self.notifications.push(QueuedNotification {
                alert: self.alerts.len(),
                kind,
                transition,
                receivers,
                precedence,
                body,
            });
        }
        self.alerts.push(AlertTransition { alert, is_opening });
    }

    /// Records the receivers of each notification in its alert. Receivers of a resolution are already recorded.
    pub(super) fn record_receivers(&mut self) {
        for queued in self.notifications.iter().filter(|queued| queued.kind != NotificationKind::Resolved) {
            if let Some(transition) = self.alerts.get_mut(queued.alert) {
                add_receivers(&mut transition.alert.notified, &queued.receivers);
            }
        }
    }

    /// Records that a rule matched.
    pub fn matched(&mut self, rule: &RuleId, now: Timestamp) {
        if !self.rule_matches.contains_key(rule) {
            self.rule_matches.insert(rule.clone(), now);
        }
    }

    /// Records the first template error of each rule.
    pub fn template_failed(&mut self, rule: &RuleId, error: Option<String>) {
        if let Some(error) = error {
            self.template_errors.entry(rule.clone()).or_insert(error);
        }
    }
}

/// A notification of an incident, from [`crate::self_monitor`].
#[derive(Clone, Debug)]
pub struct NotificationDraft {
    pub kind: NotificationKind,
    pub transition: String,
    pub receivers: Vec<ReceiverName>,
    pub body: AlertBody,
    pub is_resolution: bool,
}

/// Adds receivers without duplicates.
pub(super) fn add_receivers(notified: &mut Vec<ReceiverName>, receivers: &[ReceiverName]) {
    for receiver in receivers {
        if !notified.contains(receiver) {
            notified.push(receiver.clone());
        }
    }
}

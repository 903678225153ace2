//! What an evaluation comes to: alerts and notifications whose episodes are not assigned yet, and the [`Evaluation`] they become.

use std::{cmp::Ordering, collections::BTreeMap};

use chrono::TimeDelta;

use model::{
    Alert, AlertBody, Notification, NotificationKind, ReceiverName, Record, RuleId, Timestamp, alert_id, notification_id,
};

/// What an evaluation comes to, before episodes are assigned.
#[derive(Clone, Debug, Default)]
#[must_use = "transitions become an evaluation by `assign_episodes`"]
pub struct Transitions {
    pub(super) alerts: Vec<AlertTransition>,
    pub(super) notifications: Vec<QueuedNotification>,
    pub(super) rule_matches: BTreeMap<RuleId, Timestamp>,
    pub(super) template_errors: BTreeMap<RuleId, String>,
    /// What a rule's `limit` left out: told to nobody.
    pub(super) left_out: Vec<QueuedNotification>,
}

/// What is to be written and told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Alerts that are new or moved on, whole.
    pub alerts: Vec<Alert>,
    /// What is to be told, the gravest first, then the nearest date.
    pub notifications: Vec<Notification>,
    /// Rules that held for something, with the time.
    pub rule_matches: Vec<(RuleId, Timestamp)>,
    /// Rules with a template that failed, with the first error of each; [`crate::self_monitor::template_failed`] makes it known.
    pub template_errors: Vec<(RuleId, String)>,
    /// What a rule's `limit` left out, with no receivers: recorded, so that whoever asks why nobody was told has an answer.
    pub left_out: Vec<Notification>,
}

/// An alert that is new or moved on.
#[derive(Clone, Debug)]
pub(super) struct AlertTransition {
    pub(super) alert: Alert,
    /// Its episode is not known yet.
    pub(super) is_opening: bool,
}

/// Something to tell of an alert of the same transitions, which `alert` counts to.
#[derive(Clone, Debug)]
pub(super) struct QueuedNotification {
    pub(super) alert: usize,
    pub(super) kind: NotificationKind,
    pub(super) transition: String,
    pub(super) receivers: Vec<ReceiverName>,
    pub(super) body: AlertBody,
    pub(super) urgency: Urgency,
}

impl QueuedNotification {
    /// What is told first, and kept where `limit` leaves some out: the gravest, then the most urgent.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        other.body.tone().cmp(&self.body.tone()).then_with(|| self.urgency.cmp(&other.urgency))
    }
}

/// How urgent it is: the nearest date, then the greatest amount.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Urgency {
    /// Between now and the record's time; the greatest for what has none.
    pub(super) distance: TimeDelta,
    /// USD; tokens where no value is known.
    pub(super) size: f64,
}

impl Urgency {
    /// Of what has no date and no amount.
    pub(super) const UNDATED: Self = Self { distance: TimeDelta::MAX, size: 0.0 };

    pub(super) fn of(record: Option<&Record>, now: Timestamp) -> Self {
        let distance = match record.and_then(Record::interval) {
            None => TimeDelta::MAX,
            Some(interval) if now < interval.start => interval.start - now,
            Some(interval) if now < interval.end => TimeDelta::zero(),
            Some(interval) => now - interval.end,
        };
        Self { distance, size: record.and_then(size_of).unwrap_or_default() }
    }

    pub(super) fn cmp(&self, other: &Self) -> Ordering {
        self.distance.cmp(&other.distance).then_with(|| other.size.total_cmp(&self.size))
    }
}

fn size_of(record: &Record) -> Option<f64> {
    match record {
        Record::Unlock(event) => event.cliff_value().or(event.cliff_amount()),
        Record::Burn(burn) => burn.value.copied().or(burn.amount.copied()),
        Record::Buyback(buyback) => buyback.value.copied().or(buyback.token_amount.copied()),
        Record::Emission(emission) => emission.unlock_value.copied().or(emission.unlock_amount.copied()),
        Record::Allocation(_) | Record::Funding(_) => None,
    }
}

impl Transitions {
    /// The alerts that these transitions open, by rule and subject: the store knows the latest episode of each.
    pub fn openings(&self) -> Vec<(RuleId, String)> {
        self.alerts
            .iter()
            .filter(|transition| transition.is_opening)
            .map(|transition| (transition.alert.rule.clone(), transition.alert.subject.clone()))
            .collect()
    }

    /// These transitions and others, as one: `self_monitor` and `evaluate` of one cycle go into one transaction.
    pub fn join(mut self, other: Transitions) -> Transitions {
        let offset = self.alerts.len();
        self.alerts.extend(other.alerts);
        let shifted = |queued: QueuedNotification| QueuedNotification { alert: queued.alert + offset, ..queued };
        self.notifications.extend(other.notifications.into_iter().map(shifted));
        self.left_out.extend(other.left_out.into_iter().map(shifted));
        self.rule_matches.extend(other.rule_matches);
        for (rule, error) in other.template_errors {
            self.template_errors.entry(rule).or_insert(error);
        }
        self
    }

    /// Assigns episodes to what they open, given the latest episode of each of [`openings`](Self::openings), in that order; zero (and
    /// whatever is missing at the end) where there was none.
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
            Some(Notification {
                id: notification_id(&alert.id, &queued.transition),
                alert: alert.id.clone(),
                kind: queued.kind,
                at: alert.updated_at,
                receivers: queued.receivers,
                body: AlertBody { id: alert.id.clone(), ..queued.body },
            })
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
        }
    }

    /// Adds an alert with what is told of it; the receivers count as told where that is the alert's begin or a reminder.
    pub fn add(&mut self, mut alert: Alert, is_opening: bool, draft: Option<NotificationDraft>) {
        if let Some(NotificationDraft { kind, transition, receivers, body, is_resolution }) = draft {
            if !is_resolution {
                add_receivers(&mut alert.told, &receivers);
            }
            let urgency = Urgency::UNDATED;
            self.notifications.push(QueuedNotification { alert: self.alerts.len(), kind, transition, receivers, body, urgency });
        }
        self.alerts.push(AlertTransition { alert, is_opening });
    }

    /// Notes in each alert who is told of it; those who only hear of an end count as told before.
    pub(super) fn note_receivers(&mut self) {
        for queued in self.notifications.iter().filter(|queued| queued.kind != NotificationKind::Resolved) {
            if let Some(transition) = self.alerts.get_mut(queued.alert) {
                add_receivers(&mut transition.alert.told, &queued.receivers);
            }
        }
    }

    /// Notes that a rule held.
    pub fn matched(&mut self, rule: &RuleId, now: Timestamp) {
        if !self.rule_matches.contains_key(rule) {
            self.rule_matches.insert(rule.clone(), now);
        }
    }

    /// Notes that a template of a rule failed; the first error of each rule is kept.
    pub fn template_failed(&mut self, rule: &RuleId, error: Option<String>) {
        if let Some(error) = error {
            self.template_errors.entry(rule.clone()).or_insert(error);
        }
    }
}

/// What is told of an alert, as [`crate::self_monitor`] hands it over.
#[derive(Clone, Debug)]
pub struct NotificationDraft {
    pub kind: NotificationKind,
    pub transition: String,
    pub receivers: Vec<ReceiverName>,
    pub body: AlertBody,
    /// Whether it tells that the alert is over.
    pub is_resolution: bool,
}

/// Adds to those who were told.
pub(super) fn add_receivers(told: &mut Vec<ReceiverName>, receivers: &[ReceiverName]) {
    for receiver in receivers {
        if !told.contains(receiver) {
            told.push(receiver.clone());
        }
    }
}

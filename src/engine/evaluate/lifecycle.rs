//! The lifecycle of an alert: it opens, is pending during `for`, fires, sends reminders, and resolves.
//!
//! An [`AlertSubject`] is a record, a token, or a group. An [`AlertLifecycle`] applies a rule to subjects and collects the transitions.
//! Alerts on dated records and on sums over windows have the same lifecycle.

use super::outcome::outcome;
use super::recheck::recheck;
use super::records::is_notified;
use super::transition::{AlertTransition, QueuedNotification, Transitions};
use super::{EvaluationContext, NominalReminder, RuleEval, RuleTerms, iso};
use crate::route::RouteTree;
use chrono::TimeDelta;
use model::{Alert, AlertBody, AlertState, AlertStatus, NotificationKind, ReferencePrice, Resolution, Timestamp};
use rules::{Scope, Truth};

/// The subject of an alert.
pub(super) trait AlertSubject: Copy {
    /// Returns the values that rules are evaluated on.
    fn scope(&self, now: Timestamp) -> Scope<'_>;
    /// Returns the body of a notification of `alert`. The alert id is set later, with the episode.
    fn body(&self, alert: &Alert, status: AlertStatus, reason: &str, now: Timestamp) -> AlertBody;
    /// Returns the time of the prices behind the values of a message. `None` if it has no values at market prices.
    fn price_at(&self) -> Option<Timestamp>;
    /// Returns the subject without the lead time and the change, which do not apply to a resolution.
    fn for_resolution(self) -> Self;
}

/// Applies rules to subjects and collects the transitions.
pub(super) struct AlertLifecycle<'a> {
    pub routes: &'a RouteTree,
    pub now: Timestamp,
    /// See [`EvaluationContext::keeps_removed`].
    pub keeps_removed: bool,
    /// See [`EvaluationContext::stale_price`].
    pub stale_price: TimeDelta,
    pub transitions: Transitions,
}

impl<'a> AlertLifecycle<'a> {
    pub fn of(context: &EvaluationContext<'a>) -> Self {
        let transitions = Transitions::default();
        let EvaluationContext { routes, now, keeps_removed, stale_price, .. } = *context;
        Self { routes, now, keeps_removed, stale_price, transitions }
    }

    #[cfg(test)]
    pub fn new(routes: &'a RouteTree, now: Timestamp) -> Self {
        Self { routes, now, keeps_removed: false, stale_price: TimeDelta::MAX, transitions: Transitions::default() }
    }

    /// Opens an alert whose condition became true. `alert` contains only its identity and its time.
    pub fn open<R: RuleEval>(&mut self, rule: &R, subject: impl AlertSubject, mut alert: Alert) {
        let terms = rule.terms();
        if terms.pending_for <= TimeDelta::zero() {
            return self.fire(rule, subject, alert, true);
        }
        alert.level = rule.level(&subject.scope(self.now));
        self.render(rule, subject, &mut alert);
        self.store_text(rule, subject, &mut alert);
        alert.recheck_at = recheck(&terms, &alert, self.now);
        self.transitions.alerts.push(AlertTransition { alert, is_opening: true });
    }

    /// Updates an open alert. `alert` equals `before` with the current name and time.
    pub fn update<R: RuleEval>(&mut self, rule: &R, subject: impl AlertSubject, truth: &Truth, before: &Alert, mut alert: Alert) {
        let terms = rule.terms();
        if alert.state != AlertState::Pending {
            return self.update_firing(rule, subject, truth, before, alert);
        }
        match truth {
            Truth::False => self.resolve(with_due_of(before, &alert), Resolution::Cleared, subject, Some(rule)),
            Truth::True if self.now.signed_duration_since(alert.active_at) >= terms.pending_for => {
                self.fire(rule, subject, alert, false);
            }
            _ => {
                self.refresh(rule, subject, &mut alert);
                self.update_silently(&terms, before, alert);
            }
        }
    }

    fn update_firing<R: RuleEval>(
        &mut self,
        rule: &R,
        subject: impl AlertSubject,
        truth: &Truth,
        before: &Alert,
        mut alert: Alert,
    ) {
        let (terms, now) = (rule.terms(), self.now);
        let scope = subject.scope(now);
        if *truth != Truth::True && rule.clears(&scope) {
            let since = *alert.false_since.get_or_insert(now);
            if now.signed_duration_since(since) >= terms.keep_firing_for {
                return self.resolve(with_due_of(before, &alert), Resolution::Cleared, subject, Some(rule));
            }
            self.refresh(rule, subject, &mut alert);
            return self.update_silently(&terms, before, alert);
        }
        if matches!(truth, Truth::Missing(_)) && alert.false_since.is_some() {
            // The condition was false and is now unknown, so `false_since` stays.
            self.refresh(rule, subject, &mut alert);
            return self.update_silently(&terms, before, alert);
        }
        alert.false_since = None;
        if *truth == Truth::True {
            alert.level = rule.level(&scope);
        }
        // An event that returns to an earlier date needs a new notification id, or the reminder would be a duplicate.
        let moved = if before.due == alert.due { String::new() } else { format!(" since {}", iso(before.updated_at)) };
        if let Some(lead) = scope.lead.filter(|lead| !is_notified(&alert.leads, lead)) {
            alert.leads = terms.leads(alert.due, now);
            let due = alert.due.map(|interval| iso(interval.start)).unwrap_or_default();
            let transition = format!("lead {}@{due}{moved}", lead.text);
            let reason = format!("lead {}", lead.text);
            self.render(rule, subject, &mut alert);
            return self.notify(rule, subject, alert, false, NotificationKind::Reminder, transition, &reason);
        }
        let nominal = alert.due.and_then(|due| NominalReminder::of(terms.within, due));
        if let Some(reminder) = nominal.filter(|reminder| scope.lead.is_some() && reminder.is_due(&alert.leads, now)) {
            let reason = format!("lead {}", reminder.text());
            alert.leads.push(reminder.text());
            self.render(rule, subject, &mut alert);
            let transition = format!("{reason}{moved}");
            return self.notify(rule, subject, alert, false, NotificationKind::Reminder, transition, &reason);
        }
        if alert.level > before.level {
            // The id contains the level, so a value that oscillates around a threshold notifies once per episode.
            let word = format!("level {}", alert.level.map_or(0, |level| level.saturating_add(1)));
            self.render(rule, subject, &mut alert);
            return self.notify(rule, subject, alert, false, NotificationKind::Reminder, word.clone(), &word);
        }
        if before.due != alert.due || alert.level != before.level {
            self.render(rule, subject, &mut alert);
            self.store_text(rule, subject, &mut alert);
        } else {
            self.refresh(rule, subject, &mut alert);
        }
        self.update_silently(&terms, before, alert);
    }

    /// Fires an alert. The notification names the smallest lead time that applies, and the larger ones count as sent.
    fn fire<R: RuleEval>(&mut self, rule: &R, subject: impl AlertSubject, mut alert: Alert, is_opening: bool) {
        let terms = rule.terms();
        let scope = subject.scope(self.now);
        alert.state = AlertState::Firing;
        alert.starts_at = Some(self.now);
        alert.level = rule.level(&scope);
        alert.leads = terms.leads(alert.due, self.now);
        self.render(rule, subject, &mut alert);
        // No receiver saw the labels of the pending alert.
        alert.former_labels.clear();
        let reason = scope.lead.map_or_else(|| "firing".to_owned(), |lead| format!("lead {}", lead.text));
        self.notify(rule, subject, alert, is_opening, NotificationKind::Firing, "firing".to_owned(), &reason);
    }

    /// Resolves an alert and notifies the receivers that were notified of it, with the current text and the labels that they know.
    pub fn resolve<R: RuleEval>(
        &mut self,
        mut alert: Alert,
        resolution: Resolution,
        subject: impl AlertSubject,
        rule: Option<&R>,
    ) {
        if self.keeps_removed && matches!(resolution, Resolution::RuleGone | Resolution::Unwatched) {
            return;
        }
        let subject = subject.for_resolution();
        let was_firing = alert.state == AlertState::Firing;
        if let Some(rule) = rule.filter(|_| resolution != Resolution::RuleGone) {
            let rendered = rule.render(&stored(subject.scope(self.now)), alert.level);
            self.transitions.template_failed(&alert.rule, rendered.error);
            alert.annotations = rendered.annotations;
        }
        let outcome = outcome(&alert, resolution, &subject.scope(self.now), rule, self.now);
        alert.annotations.insert(model::OUTCOME.to_owned(), outcome);
        alert.state = AlertState::Resolved;
        alert.resolution = Some(resolution);
        alert.ends_at = Some(self.now);
        alert.false_since = None;
        alert.recheck_at = None;
        (alert.updated_at, alert.text_at) = (self.now, None);
        let receivers: Vec<_> =
            alert.notified.iter().filter(|receiver| self.routes.sends_resolved_to(receiver)).cloned().collect();
        if was_firing && !receivers.is_empty() {
            let kind = NotificationKind::Resolved;
            let mut body = subject.body(&alert, AlertStatus::Resolved, resolution.as_str(), self.now);
            body.stale_price_as_of = stale(subject.price_at(), self.stale_price, self.now);
            if resolution == Resolution::RescheduledOut {
                // The longest lead time, which the event moved out of.
                body.lead = rule.and_then(|rule| rule.terms().within.first().map(|lead| lead.text.clone()));
            }
            self.transitions.notifications.push(QueuedNotification {
                alert: self.transitions.alerts.len(),
                kind,
                transition: "resolved".to_owned(),
                receivers,
                precedence: body.precedence(self.now),
                body,
            });
        }
        self.transitions.alerts.push(AlertTransition { alert, is_opening: false });
    }

    /// Writes an alert without a notification if it changed.
    fn update_silently(&mut self, terms: &RuleTerms<'_>, before: &Alert, mut alert: Alert) {
        alert.recheck_at = recheck(terms, &alert, self.now);
        if alert != *before {
            self.transitions.alerts.push(AlertTransition { alert, is_opening: false });
        }
    }

    /// Adds an alert with a notification.
    #[expect(clippy::too_many_arguments, reason = "all of it makes one notification, and each caller has all of it at hand")]
    pub fn notify<R: RuleEval>(
        &mut self,
        rule: &R,
        subject: impl AlertSubject,
        mut alert: Alert,
        is_opening: bool,
        kind: NotificationKind,
        transition: String,
        reason: &str,
    ) {
        let terms = rule.terms();
        if alert.state == AlertState::Firing {
            alert.recheck_at = recheck(&terms, &alert, self.now);
        }
        let mut body = subject.body(&alert, AlertStatus::Firing, reason, self.now);
        body.stale_price_as_of = stale(subject.price_at(), self.stale_price, self.now);
        self.transitions.notifications.push(QueuedNotification {
            alert: self.transitions.alerts.len(),
            kind,
            transition,
            receivers: terms.receivers_for(self.routes, &alert.labels),
            precedence: body.precedence(self.now),
            body,
        });
        self.store_text(rule, subject, &mut alert);
        self.transitions.alerts.push(AlertTransition { alert, is_opening });
    }

    /// Sets the annotations that are stored. Unlike the annotations of a notification, they have no time until the date of the alert.
    fn store_text<R: RuleEval>(&mut self, rule: &R, subject: impl AlertSubject, alert: &mut Alert) {
        alert.annotations = rule.render(&stored(subject.scope(self.now)), alert.level).annotations;
    }

    /// Renders the text of an alert again if its facts changed. Text that differs only because time passed stays, so that an evaluation
    /// without new facts writes nothing. The labels stay, because receivers know the alert by them.
    fn refresh<R: RuleEval>(&mut self, rule: &R, subject: impl AlertSubject, alert: &mut Alert) {
        let text_at = alert.text_at.unwrap_or(alert.updated_at);
        if rule.render(&stored(subject.scope(text_at)), alert.level).annotations == alert.annotations {
            return;
        }
        let rendered = rule.render(&stored(subject.scope(self.now)), alert.level);
        self.transitions.template_failed(&alert.rule, rendered.error);
        alert.annotations = rendered.annotations;
        alert.text_at = Some(self.now);
    }

    /// Renders the labels and annotations of an alert.
    pub fn render<R: RuleEval>(&mut self, rule: &R, subject: impl AlertSubject, alert: &mut Alert) {
        let rendered = rule.render(&subject.scope(self.now), alert.level);
        self.transitions.template_failed(&alert.rule, rendered.error);
        alert.relabel(rendered.labels);
        alert.annotations = rendered.annotations;
        (alert.updated_at, alert.text_at) = (self.now, None);
    }
}

/// Returns the time of a price if it is older than `limit`.
pub(super) fn stale(price_at: Option<Timestamp>, limit: TimeDelta, now: Timestamp) -> Option<Timestamp> {
    price_at.filter(|at| ReferencePrice::is_stale(*at, limit, now))
}

/// Returns the scope of a text that is stored and shown later.
fn stored(scope: Scope<'_>) -> Scope<'_> {
    Scope { is_stored: true, ..scope }
}

/// Returns the earlier alert with the current time of its record.
fn with_due_of(before: &Alert, now: &Alert) -> Alert {
    Alert { due: now.due, ..before.clone() }
}

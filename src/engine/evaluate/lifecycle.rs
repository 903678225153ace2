//! The life of an alert, whatever it is about: it opens, waits for its `for`, fires, is told again, clears, ends.
//!
//! The cast: an [`AlertSubject`] is what one alert is about (a record, a token, a group); an [`AlertLifecycle`] moves alerts on by a
//! rule and gathers the transitions. The same path for a record with a date and for a sum over a window.

use super::recheck::recheck;
use super::records::is_told;
use super::transition::{AlertTransition, QueuedNotification, Transitions, Urgency};
use super::{RuleEval, RuleTerms, iso};
use crate::route::RouteTree;
use chrono::TimeDelta;
use model::{Alert, AlertBody, AlertState, AlertStatus, NotificationKind, Resolution, Timestamp};
use rules::{Scope, Truth};

/// What one alert is about.
pub(super) trait AlertSubject: Copy {
    /// What a rule looks at.
    fn scope(&self, now: Timestamp) -> Scope<'_>;
    /// What is told of `alert`; its id comes with the episode.
    fn body(&self, alert: &Alert, status: AlertStatus, reason: &str, now: Timestamp) -> AlertBody;
    /// The same as an end tells it: no lead time led to it.
    fn at_its_end(self) -> Self;
    /// What is told first.
    fn urgency(&self, kind: NotificationKind, now: Timestamp) -> Urgency;
}

/// Moves alerts on, and gathers what comes of it.
pub(super) struct AlertLifecycle<'a> {
    pub routes: &'a RouteTree,
    pub now: Timestamp,
    pub transitions: Transitions,
}

impl<'a> AlertLifecycle<'a> {
    pub fn new(routes: &'a RouteTree, now: Timestamp) -> Self {
        Self { routes, now, transitions: Transitions::default() }
    }

    /// A condition begins to hold for something: `alert` is blank but for its identity and its time.
    pub fn open<R: RuleEval>(&mut self, rule: &R, subject: impl AlertSubject, mut alert: Alert) {
        let terms = rule.terms();
        if terms.hold <= TimeDelta::zero() {
            return self.fire(rule, subject, alert, true);
        }
        alert.level = rule.level(&subject.scope(self.now));
        self.render(rule, subject, &mut alert);
        alert.recheck_at = recheck(&terms, &alert, self.now);
        self.transitions.alerts.push(AlertTransition { alert, is_opening: true });
    }

    /// Moves an open alert on. `alert` is the one before, with the name and the time that it has now.
    pub fn follow<R: RuleEval>(&mut self, rule: &R, subject: impl AlertSubject, truth: &Truth, before: &Alert, alert: Alert) {
        let terms = rule.terms();
        if alert.state != AlertState::Pending {
            return self.follow_firing(rule, subject, truth, before, alert);
        }
        match truth {
            Truth::False => self.end(ended(before, &alert), Resolution::Cleared, subject, Some(rule)),
            Truth::True if self.now.signed_duration_since(alert.active_at) >= terms.hold => {
                self.fire(rule, subject, alert, false);
            }
            _ => self.keep(&terms, before, alert),
        }
    }

    fn follow_firing<R: RuleEval>(
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
                return self.end(ended(before, &alert), Resolution::Cleared, subject, Some(rule));
            }
            return self.keep(&terms, before, alert);
        }
        if matches!(truth, Truth::Missing(_)) && alert.false_since.is_some() {
            // It had ceased to hold, and now cannot be told: it stays as it was.
            return self.keep(&terms, before, alert);
        }
        alert.false_since = None;
        if *truth == Truth::True {
            alert.level = rule.level(&scope);
        }
        if let Some(lead) = scope.lead.filter(|lead| !is_told(&alert.leads, lead)) {
            alert.leads = terms.leads(alert.due, now);
            let due = alert.due.map(|interval| iso(interval.start)).unwrap_or_default();
            // What comes back to a date for which this was told is told again.
            let moved = if before.due == alert.due { String::new() } else { format!(" since {}", iso(before.updated_at)) };
            let transition = format!("lead {}@{due}{moved}", lead.text);
            let reason = format!("lead {}", lead.text);
            self.render(rule, subject, &mut alert);
            return self.notify(&terms, subject, alert, false, NotificationKind::Reminder, transition, &reason);
        }
        if alert.level > before.level {
            // Once for each level of an episode: a value that swings around a threshold is told when it first crosses it.
            let word = format!("level {}", alert.level.map_or(0, |level| level.saturating_add(1)));
            self.render(rule, subject, &mut alert);
            return self.notify(&terms, subject, alert, false, NotificationKind::Reminder, word.clone(), &word);
        }
        if before.due != alert.due || alert.level != before.level {
            self.render(rule, subject, &mut alert);
        }
        self.keep(&terms, before, alert);
    }

    /// An alert begins to fire: told with the smallest lead time that holds, the larger ones count as told.
    fn fire<R: RuleEval>(&mut self, rule: &R, subject: impl AlertSubject, mut alert: Alert, is_opening: bool) {
        let terms = rule.terms();
        let scope = subject.scope(self.now);
        alert.state = AlertState::Firing;
        alert.starts_at = Some(self.now);
        alert.level = rule.level(&scope);
        alert.leads = terms.leads(alert.due, self.now);
        self.render(rule, subject, &mut alert);
        // What it was called while it was pending was told to nobody.
        alert.former_labels.clear();
        let reason = scope.lead.map_or_else(|| "firing".to_owned(), |lead| format!("lead {}", lead.text));
        self.notify(&terms, subject, alert, is_opening, NotificationKind::Firing, "firing".to_owned(), &reason);
    }

    /// An alert ends. Those who were told that it fires are told, with the text as it reads now and the labels they know.
    pub fn end<R: RuleEval>(&mut self, mut alert: Alert, why: Resolution, subject: impl AlertSubject, rule: Option<&R>) {
        let subject = subject.at_its_end();
        let was_firing = alert.state == AlertState::Firing;
        if let Some(rule) = rule.filter(|_| why != Resolution::RuleGone) {
            let rendered = rule.render(&subject.scope(self.now), alert.level);
            self.transitions.template_failed(&alert.rule, rendered.error);
            alert.annotations = rendered.annotations;
        }
        alert.state = AlertState::Resolved;
        alert.resolution = Some(why);
        alert.ends_at = Some(self.now);
        alert.false_since = None;
        alert.recheck_at = None;
        alert.updated_at = self.now;
        let receivers: Vec<_> = alert.told.iter().filter(|receiver| self.routes.tells_ends_to(receiver)).cloned().collect();
        if was_firing && !receivers.is_empty() {
            let kind = NotificationKind::Resolved;
            let mut body = subject.body(&alert, AlertStatus::Resolved, why.as_str(), self.now);
            if why == Resolution::RescheduledOut {
                // The one that it left: the rule looks no further ahead.
                body.lead = rule.and_then(|rule| rule.terms().within.first().map(|lead| lead.text.clone()));
            }
            self.transitions.notifications.push(QueuedNotification {
                alert: self.transitions.alerts.len(),
                kind,
                transition: "resolved".to_owned(),
                receivers,
                body,
                urgency: subject.urgency(kind, self.now),
            });
        }
        self.transitions.alerts.push(AlertTransition { alert, is_opening: false });
    }

    /// Nothing is told; what moved on silently is written.
    fn keep(&mut self, terms: &RuleTerms<'_>, before: &Alert, mut alert: Alert) {
        alert.recheck_at = recheck(terms, &alert, self.now);
        if alert != *before {
            self.transitions.alerts.push(AlertTransition { alert, is_opening: false });
        }
    }

    /// Adds an alert with what is told of it now.
    #[expect(clippy::too_many_arguments, reason = "all of it makes one notification, and each caller has all of it at hand")]
    pub fn notify(
        &mut self,
        terms: &RuleTerms<'_>,
        subject: impl AlertSubject,
        mut alert: Alert,
        is_opening: bool,
        kind: NotificationKind,
        transition: String,
        reason: &str,
    ) {
        if alert.state == AlertState::Firing {
            alert.recheck_at = recheck(terms, &alert, self.now);
        }
        self.transitions.notifications.push(QueuedNotification {
            alert: self.transitions.alerts.len(),
            kind,
            transition,
            receivers: terms.audience(self.routes, &alert.labels),
            body: subject.body(&alert, AlertStatus::Firing, reason, self.now),
            urgency: subject.urgency(kind, self.now),
        });
        self.transitions.alerts.push(AlertTransition { alert, is_opening });
    }

    /// Gives an alert the labels and the text that its rule has for it now.
    pub fn render<R: RuleEval>(&mut self, rule: &R, subject: impl AlertSubject, alert: &mut Alert) {
        let rendered = rule.render(&subject.scope(self.now), alert.level);
        self.transitions.template_failed(&alert.rule, rendered.error);
        alert.relabel(rendered.labels);
        alert.annotations = rendered.annotations;
        alert.updated_at = self.now;
    }
}

/// An alert as its end tells it: as it was, with the time that its record has now.
fn ended(before: &Alert, now: &Alert) -> Alert {
    Alert { due: now.due, ..before.clone() }
}

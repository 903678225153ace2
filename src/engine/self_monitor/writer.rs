//! Turns incidents into alerts and notifications when they begin, widen, and end.

use std::collections::BTreeMap;

use super::incident::Incident;
use super::{BATCH_WINDOW, CycleOutcome, FeedResult, feed_of};
use crate::evaluate::{NotificationDraft, RuleEval, Transitions, plain_body, token_body};
use crate::route::RouteTree;
use model::{
    Alert, AlertBody, AlertState, AlertStatus, Endpoint, FeedId, IncidentKind, Labels, NotificationKind, ReceiverName,
    Resolution, SOURCE_TROUBLE, Timestamp, Token, TokenId,
    phrase::{FeedRecovery, IncidentText},
};
use rules::{On, Scope, SourceFacts, Truth};

/// The reason why an incident of the source ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IncidentEnd {
    /// Its feeds respond again.
    Responding,
    /// Its feeds are no longer watched.
    Unwatched,
    /// A wider alert took over its feeds and was sent.
    Merged,
    /// All but a few of its feeds respond. Those few have their own alerts now.
    Narrowed,
}

/// Writes alerts and notifications.
pub(super) struct IncidentWriter<'a, R> {
    pub(super) rules: &'a [R],
    pub(super) routes: &'a RouteTree,
    pub(super) now: Timestamp,
}

/// The facts of an incident that its alert shows.
#[derive(Default)]
pub(super) struct IncidentFacts<'a> {
    pub(super) kind: &'a str,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) token: Option<&'a TokenId>,
    pub(super) receiver: Option<&'a ReceiverName>,
    pub(super) labels: Vec<(&'a str, String)>,
    pub(super) text: IncidentText,
    pub(super) count: usize,
    pub(super) since: Timestamp,
}

impl<R: RuleEval> IncidentWriter<'_, R> {
    /// Stores an alert that stays open. It sends a notification if the alert is new or a feed joined late for the first time that day.
    pub(super) fn update(&self, transitions: &mut Transitions, mut incident: Incident, cycle: &CycleOutcome<'_>) {
        let kind = incident.kind();
        let is_new = incident.before.is_none();
        let since = incident.alert.starts_at.unwrap_or(self.now);
        incident.alert.members = incident.members.iter().cloned().collect();
        let joined = format!("joined {}", self.now.format("%Y-%m-%d"));
        let joins_late = !is_new
            && incident.has_widened()
            && self.now.signed_duration_since(since) > BATCH_WINDOW
            && !incident.alert.leads.contains(&joined);
        let has_new_kind = incident.kind_before() != Some(kind);
        if !(is_new || joins_late || has_new_kind) {
            if incident.before.as_ref() != Some(&incident.alert) {
                incident.alert.updated_at = self.now;
                transitions.add(incident.alert, false, None);
            }
            return;
        }
        let token = incident.scope.token().and_then(|id| (cycle.token)(id));
        let message = incident.kinds.get(&kind).map(String::as_str).unwrap_or_default();
        let facts = IncidentFacts {
            kind: kind.as_str(),
            endpoint: incident.scope.endpoint(),
            token: incident.scope.token(),
            text: IncidentText::feeds_failing(kind, &feeds(&incident.alert.members), token, message),
            count: incident.members.len(),
            since,
            ..IncidentFacts::default()
        };
        let receivers = self.write_text(transitions, &mut incident.alert, &facts, token, None);
        incident.alert.updated_at = self.now;
        let (transition, reason) = match (is_new, joins_late) {
            (true, _) => ("firing", kind.as_str()),
            (false, true) => (joined.as_str(), "more feeds"),
            (false, false) => return transitions.add(incident.alert, false, None),
        };
        if joins_late {
            incident.alert.leads = vec![joined.clone()];
        }
        let body =
            AlertBody { token: token.map(token_body), ..plain_body(&incident.alert, AlertStatus::Firing, reason, self.now) };
        let draft = NotificationDraft {
            kind: NotificationKind::Source,
            transition: transition.to_owned(),
            receivers,
            body,
            is_resolution: false,
        };
        transitions.add(incident.alert, is_new, Some(draft));
    }

    /// Ends an alert. Its labels stay as they were sent.
    pub(super) fn end(&self, transitions: &mut Transitions, incident: Incident, end: IncidentEnd, cycle: &CycleOutcome<'_>) {
        // An incident that opens and ends in one cycle never happened.
        let Some(before) = &incident.before else { return };
        let since = before.starts_at.unwrap_or(self.now);
        let kind = incident.kind_before().map_or("failing", IncidentKind::as_str);
        let released = cycle.outcomes.iter().find_map(|outcome| match &outcome.result {
            FeedResult::Released(reason) if before.members.contains(&outcome.feed.to_string()) => Some(reason),
            _ => None,
        });
        let recovery = match (end, released) {
            (IncidentEnd::Responding, Some(reason)) => FeedRecovery::Released(reason),
            (IncidentEnd::Responding | IncidentEnd::Merged, _) => FeedRecovery::Responding,
            (IncidentEnd::Narrowed, _) => FeedRecovery::Partial,
            (IncidentEnd::Unwatched, _) => FeedRecovery::Unwatched,
        };
        let resolution = if end == IncidentEnd::Unwatched { Resolution::Unwatched } else { Resolution::Cleared };
        let text = IncidentText::feeds_recovered(&recovery, &feeds(&before.members), kind, since, self.now);
        let token = incident.scope.token().and_then(|id| (cycle.token)(id));
        let (alert, mut draft) = self.resolve(incident.alert, resolution, text);
        draft.body.token = token.map(token_body);
        if end == IncidentEnd::Unwatched {
            draft.body.reason = Resolution::Unwatched.as_str().to_owned();
        }
        transitions.add(alert, false, (end != IncidentEnd::Merged && !draft.receivers.is_empty()).then_some(draft));
    }

    /// Resolves an alert. The notification goes to the receivers that were notified of it.
    pub(super) fn resolve(&self, mut alert: Alert, resolution: Resolution, text: IncidentText) -> (Alert, NotificationDraft) {
        alert.state = AlertState::Resolved;
        alert.resolution = Some(resolution);
        alert.ends_at = Some(self.now);
        alert.updated_at = self.now;
        alert.members.clear();
        alert.annotations.extend(annotations(text));
        let receivers = alert.notified.iter().filter(|receiver| self.routes.sends_resolved_to(receiver)).cloned().collect();
        let body = plain_body(&alert, AlertStatus::Resolved, "recovered", self.now);
        let transition = "resolved".to_owned();
        (alert, NotificationDraft { kind: NotificationKind::Source, transition, receivers, body, is_resolution: true })
    }

    /// Sets the labels and annotations of an alert, as the first matching rule on the source renders them, and returns the receivers.
    /// `unreachable` is the receiver that the incident is about. It is excluded; unless the rule names other receivers, the fallback is used.
    pub(super) fn write_text(
        &self,
        transitions: &mut Transitions,
        alert: &mut Alert,
        incident: &IncidentFacts<'_>,
        token: Option<&Token>,
        unreachable: Option<&ReceiverName>,
    ) -> Vec<ReceiverName> {
        let severity = ("severity", "warning".to_owned());
        let name = ("alertname", SOURCE_TROUBLE.to_owned());
        let kind = ("kind", incident.kind.to_owned());
        let endpoint = incident.endpoint.map(|endpoint| ("endpoint", endpoint.to_string()));
        let about = incident.token.map(|token| ("token", token.to_string()));
        let receiver = incident.receiver.map(|receiver| ("receiver", receiver.to_string()));
        let named = [Some(name), Some(kind), Some(severity), endpoint, about, receiver];
        let labels = named.into_iter().flatten().chain(incident.labels.iter().cloned());
        alert.labels = labels.map(|(name, value)| (name.to_owned(), value)).collect::<Labels>();
        alert.annotations = annotations(incident.text.clone());
        alert.name = SOURCE_TROUBLE.to_owned();

        let facts = SourceFacts {
            kind: incident.kind.to_owned(),
            endpoint: incident.endpoint.map(|endpoint| endpoint.to_string()),
            receiver: incident.receiver.map(ToString::to_string),
            message: incident.text.summary.clone(),
            count: u32::try_from(incident.count).unwrap_or(u32::MAX),
            since: incident.since,
        };
        let scope = Scope { token, source: Some(&facts), ..Scope::at(self.now) };
        let rule = self.rules.iter().find(|rule| {
            let terms = rule.terms();
            terms.on == On::Source && terms.is_active(self.now) && rule.covers(&scope) && rule.evaluate(&scope) == Truth::True
        });
        let mut receivers = match rule {
            None => self.routes.route(&alert.labels),
            Some(rule) => {
                let terms = rule.terms();
                transitions.matched(terms.id, self.now);
                let rendered = rule.render(&scope, rule.level(&scope));
                transitions.template_failed(terms.id, rendered.error);
                alert.name = terms.name.to_owned();
                // `kind` stays, because this module finds its own alerts by it.
                alert.labels.extend(rendered.labels.into_iter().filter(|(name, _)| name != "kind"));
                alert.annotations.extend(rendered.annotations);
                terms.receivers_for(self.routes, &alert.labels)
            }
        };
        if let Some(unreachable) = unreachable {
            let is_named = rule.is_some_and(|rule| !rule.terms().receivers.is_empty());
            receivers.retain(|receiver| receiver != unreachable);
            if !is_named || receivers.is_empty() {
                receivers = self.routes.fallback(unreachable);
            }
        }
        receivers
    }
}

fn annotations(text: IncidentText) -> BTreeMap<String, String> {
    BTreeMap::from([("summary".to_owned(), text.summary), ("description".to_owned(), text.description)])
}

/// Returns the feeds of an alert's members.
fn feeds(members: &[String]) -> Vec<FeedId> {
    members.iter().filter_map(|member| feed_of(member)).collect()
}

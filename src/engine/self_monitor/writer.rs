//! From incidents to alerts and notifications: what is told when one begins, goes on and ends.

use std::collections::{BTreeMap, BTreeSet};

use super::incident::Incident;
use super::kind::IncidentKind;
use super::texts::{feeds_in_words, instant, sentence, span_in_words};
use super::{CycleNews, FOLD_WITHIN, FeedResult};
use crate::evaluate::{NotificationDraft, RuleEval, Transitions, plain_body, token_body};
use crate::route::RouteTree;
use model::{
    Alert, AlertBody, AlertState, AlertStatus, Endpoint, Labels, NotificationKind, ReceiverName, Resolution, SOURCE_TROUBLE,
    Timestamp, Token, TokenId,
};
use rules::{On, Scope, SourceFacts, Truth};

/// How an incident of the source ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IncidentEnd {
    /// Its feeds have answered.
    Answered,
    /// Its feeds are no longer watched.
    Unwatched,
    /// A wider alert has taken over its feeds, and was told.
    Merged,
    /// All but a few of its feeds have answered; those have alerts of their own now.
    Narrowed,
}

/// Makes alerts and what is told of them.
pub(super) struct IncidentWriter<'a, R> {
    pub(super) rules: &'a [R],
    pub(super) routes: &'a RouteTree,
    pub(super) now: Timestamp,
}

/// What is to be said of an incident.
#[derive(Default)]
pub(super) struct IncidentText<'a> {
    pub(super) kind: &'a str,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) token: Option<&'a TokenId>,
    pub(super) receiver: Option<&'a ReceiverName>,
    pub(super) labels: Vec<(&'a str, String)>,
    pub(super) summary: String,
    pub(super) description: String,
    pub(super) count: usize,
    pub(super) since: Timestamp,
}

impl<R: RuleEval> IncidentWriter<'_, R> {
    /// An alert that is open after the cycle: told where it is new, where a feed joins late for the first time; else kept.
    pub(super) fn go_on(&self, transitions: &mut Transitions, mut incident: Incident, cycle: &CycleNews<'_>) {
        let kind = incident.kind();
        let is_new = incident.before.is_none();
        let since = incident.alert.starts_at.unwrap_or(self.now);
        incident.alert.members = incident.members.iter().cloned().collect();
        let joined = format!("joined {}", self.now.format("%Y-%m-%d"));
        let joins_late = !is_new
            && incident.brings_news()
            && self.now.signed_duration_since(since) > FOLD_WITHIN
            && !incident.alert.leads.contains(&joined);
        let has_turned = incident.kind_before() != Some(kind);
        if !(is_new || joins_late || has_turned) {
            if incident.before.as_ref() != Some(&incident.alert) {
                incident.alert.updated_at = self.now;
                transitions.add(incident.alert, false, None);
            }
            return;
        }
        let token = incident.scope.token().and_then(|id| (cycle.token)(id));
        let message = incident.kinds.get(&kind).map(|message| format!("{} ", sentence(message))).unwrap_or_default();
        let text = IncidentText {
            kind: kind.as_str(),
            endpoint: incident.scope.endpoint(),
            token: incident.scope.token(),
            summary: format!("{}: {}", kind.phrase(), feeds_in_words(&incident.members, token)),
            description: format!(
                "{message}What is known stays: nothing counts as removed without a complete answer. {}",
                kind.advice()
            ),
            count: incident.members.len(),
            since,
            ..IncidentText::default()
        };
        let receivers = self.word(transitions, &mut incident.alert, &text, token, None);
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
        let telling = NotificationDraft {
            kind: NotificationKind::Source,
            transition: transition.to_owned(),
            receivers,
            body,
            is_resolution: false,
        };
        transitions.add(incident.alert, is_new, Some(telling));
    }

    /// An alert that is over. Its labels stay what was told.
    pub(super) fn end(&self, transitions: &mut Transitions, incident: Incident, end: IncidentEnd, cycle: &CycleNews<'_>) {
        // Opened and over in one cycle: nothing happened.
        let Some(before) = &incident.before else { return };
        let since = before.starts_at.unwrap_or(self.now);
        let feeds: BTreeSet<String> = before.members.iter().cloned().collect();
        let (lasted, from) = (span_in_words(self.now.signed_duration_since(since)), instant(since));
        let kind = incident.kind_before().map_or("failing", IncidentKind::as_str);
        let released = cycle.news.iter().find_map(|news| match &news.result {
            FeedResult::Released(why) if before.members.contains(&news.feed.to_string()) => Some(why),
            _ => None,
        });
        let (resolution, summary, description) = match (end, released) {
            (IncidentEnd::Answered, Some(why)) => (
                Resolution::Cleared,
                format!("{}, held for {lasted}: {why}", feeds_in_words(&feeds, None)),
                format!(
                    "Answers were held from {from} to {}. What changed is told with the answer that came now.",
                    instant(self.now)
                ),
            ),
            (IncidentEnd::Answered | IncidentEnd::Merged, _) => (
                Resolution::Cleared,
                format!("The source answers again after {lasted} ({kind}): {}", feeds_in_words(&feeds, None)),
                format!(
                    "It failed from {from} to {}. Nothing known was lost meanwhile; what changed is told with the answers that came \
                     now. The data is as of {}.",
                    instant(self.now),
                    instant(self.now)
                ),
            ),
            (IncidentEnd::Narrowed, _) => (
                Resolution::Cleared,
                format!("The source answers again after {lasted} ({kind}), except for {}", feeds_in_words(&feeds, None)),
                format!("It failed from {from} on. What still fails is told by itself. Nothing known was lost meanwhile."),
            ),
            (IncidentEnd::Unwatched, _) => (
                Resolution::Unwatched,
                format!("No longer watched: {}", feeds_in_words(&feeds, None)),
                format!("It failed since {from} ({kind}), and is no longer asked for."),
            ),
        };
        let token = incident.scope.token().and_then(|id| (cycle.token)(id));
        let (alert, mut telling) = self.over(incident.alert, resolution, summary, description);
        telling.body.token = token.map(token_body);
        if end == IncidentEnd::Unwatched {
            telling.body.reason = Resolution::Unwatched.as_str().to_owned();
        }
        transitions.add(alert, false, (end != IncidentEnd::Merged && !telling.receivers.is_empty()).then_some(telling));
    }

    /// Ends an alert, with what is told of it to those who heard that it fires.
    pub(super) fn over(
        &self,
        mut alert: Alert,
        resolution: Resolution,
        summary: String,
        description: String,
    ) -> (Alert, NotificationDraft) {
        alert.state = AlertState::Resolved;
        alert.resolution = Some(resolution);
        alert.ends_at = Some(self.now);
        alert.updated_at = self.now;
        alert.members.clear();
        alert.annotations.insert("summary".to_owned(), summary);
        alert.annotations.insert("description".to_owned(), description);
        let receivers = alert.told.iter().filter(|receiver| self.routes.tells_ends_to(receiver)).cloned().collect();
        let body = plain_body(&alert, AlertStatus::Resolved, "recovered", self.now);
        let transition = "resolved".to_owned();
        (alert, NotificationDraft { kind: NotificationKind::Source, transition, receivers, body, is_resolution: true })
    }

    /// Gives an alert its labels and annotations, in the words of the first rule on the source that holds, and says who is told.
    /// `dead` is a receiver that the incident is about: it is never told, and where no rule names others the fallback is.
    pub(super) fn word(
        &self,
        transitions: &mut Transitions,
        alert: &mut Alert,
        text: &IncidentText<'_>,
        token: Option<&Token>,
        dead: Option<&ReceiverName>,
    ) -> Vec<ReceiverName> {
        let severity = ("severity", "warning".to_owned());
        let name = ("alertname", SOURCE_TROUBLE.to_owned());
        let kind = ("kind", text.kind.to_owned());
        let endpoint = text.endpoint.map(|endpoint| ("endpoint", endpoint.to_string()));
        let about = text.token.map(|token| ("token", token.to_string()));
        let receiver = text.receiver.map(|receiver| ("receiver", receiver.to_string()));
        let named = [Some(name), Some(kind), Some(severity), endpoint, about, receiver];
        let labels = named.into_iter().flatten().chain(text.labels.iter().cloned());
        alert.labels = labels.map(|(name, value)| (name.to_owned(), value)).collect::<Labels>();
        alert.annotations =
            BTreeMap::from([("summary".to_owned(), text.summary.clone()), ("description".to_owned(), text.description.clone())]);
        alert.name = SOURCE_TROUBLE.to_owned();

        let facts = SourceFacts {
            kind: text.kind.to_owned(),
            endpoint: text.endpoint.map(|endpoint| endpoint.to_string()),
            receiver: text.receiver.map(ToString::to_string),
            message: text.summary.clone(),
            count: u32::try_from(text.count).unwrap_or(u32::MAX),
            since: text.since,
        };
        let scope = Scope { token, record: None, change: None, source: Some(&facts), totals: None, lead: None, now: self.now };
        let rule = self.rules.iter().find(|rule| {
            let terms = rule.terms();
            terms.on == On::Source && terms.is_awake(self.now) && rule.covers(&scope) && rule.holds(&scope) == Truth::True
        });
        let mut receivers = match rule {
            None => self.routes.route(&alert.labels),
            Some(rule) => {
                let terms = rule.terms();
                transitions.matched(terms.id, self.now);
                let rendered = rule.render(&scope, rule.level(&scope));
                transitions.template_failed(terms.id, rendered.error);
                alert.name = terms.name.to_owned();
                // `kind` stays: it is end this room knows its own alerts.
                alert.labels.extend(rendered.labels.into_iter().filter(|(name, _)| name != "kind"));
                alert.annotations.extend(rendered.annotations);
                terms.audience(self.routes, &alert.labels)
            }
        };
        if let Some(dead) = dead {
            let is_named = rule.is_some_and(|rule| !rule.terms().receivers.is_empty());
            receivers.retain(|receiver| receiver != dead);
            if !is_named || receivers.is_empty() {
                receivers = self.routes.fallback(dead);
            }
        }
        receivers
    }
}

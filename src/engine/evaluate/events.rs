//! Rules on events: new burns, buybacks, and funding rounds, and changes. Such an alert happens once and has no end.

use std::collections::HashMap;

use super::lifecycle::{AlertLifecycle, AlertSubject as _};
use super::subject::RecordSubject;
use super::{RuleEval, TokenFacts, blank, iso};
use model::{Alert, AlertState, Change, ChangeKind, NotificationKind, RecordKey, Resource, Tracked, alert_id};
use rules::Truth;

impl AlertLifecycle<'_> {
    /// Evaluates a rule on new burns, buybacks, and funding rounds.
    pub(super) fn arrivals<R: RuleEval>(&mut self, rule: &R, facts: &TokenFacts<'_>, resource: Resource) {
        let since = rule.terms().since;
        for tracked in facts.added.iter().filter(|tracked| tracked.record.resource() == resource) {
            // A record without a date is never too old.
            let is_old = |start| self.now.signed_duration_since(start) > since;
            if tracked.record.interval().is_some_and(|interval| is_old(interval.start)) {
                continue;
            }
            let subject = RecordSubject::of(facts, Some(tracked));
            let name = format!("{resource}/{}/{}", facts.token.id, tracked.key);
            self.event(rule, subject, name, resource, Some(tracked.key.clone()), "added");
        }
        for late in facts.late.iter().filter(|late| late.tracked.record.resource() == resource) {
            // The age counts from the arrival of the record.
            let is_old = |start| late.seen_at.signed_duration_since(start) > since;
            let before = Tracked { key: late.tracked.key.clone(), record: late.before.clone() };
            if self.now.signed_duration_since(late.seen_at) > since
                || late.tracked.record.interval().is_some_and(|interval| is_old(interval.start))
                // A condition that was known before was evaluated then.
                || !matches!(rule.evaluate(&RecordSubject::of(facts, Some(&before)).scope(self.now)), Truth::Missing(_))
            {
                continue;
            }
            let subject = RecordSubject::of(facts, Some(&late.tracked));
            // The same subject as on arrival, so that there is one alert per record.
            let name = format!("{resource}/{}/{}", facts.token.id, late.tracked.key);
            self.event(rule, subject, name, resource, Some(late.tracked.key.clone()), "added");
        }
    }

    /// Evaluates a rule on the changes of one resource.
    pub(super) fn changes<R: RuleEval>(
        &mut self,
        rule: &R,
        facts: &TokenFacts<'_>,
        resource: Resource,
        kind: Option<ChangeKind>,
    ) {
        let polled_at = iso(facts.polled_at(resource).unwrap_or(self.now));
        let mut ordinals: HashMap<_, u32> = HashMap::new();
        for change in facts.changes.iter().filter(|change| change.resource == Some(resource)) {
            // Numbers all changes, not only the matching ones, so that the subject does not depend on the rule.
            let ordinal = ordinals.entry((change.kind, change.key.as_ref())).or_default();
            *ordinal += 1;
            if kind.is_some_and(|kind| kind != change.kind) {
                continue;
            }
            let record = record_of(change);
            let subject = RecordSubject { change: Some(change), ..RecordSubject::of(facts, record.as_ref()) };
            let name = format!("{CHANGE_PREFIX}{}{}{polled_at}#{ordinal}", facts.token.id, change_path(change, resource));
            self.event(rule, subject, name, resource, change.key.clone(), change.kind.as_str());
        }
    }

    /// Adds an event if the rule matches.
    fn event<R: RuleEval>(
        &mut self,
        rule: &R,
        subject: RecordSubject<'_>,
        name: String,
        resource: Resource,
        key: Option<RecordKey>,
        reason: &str,
    ) {
        let terms = rule.terms();
        let scope = subject.scope(self.now);
        if !rule.covers(&scope) || rule.evaluate(&scope) != Truth::True {
            return;
        }
        self.transitions.matched(terms.id, self.now);
        let mut alert = Alert {
            // The subject is unique, so there is only one episode.
            id: alert_id(terms.id, &name, 1),
            episode: 1,
            token: Some(subject.facts.token.id.clone()),
            resource: Some(resource),
            key,
            starts_at: Some(self.now),
            level: rule.level(&scope),
            due: subject.record.and_then(|tracked| tracked.record.interval()),
            ..blank(terms.id.clone(), terms.name, name, AlertState::Event, self.now)
        };
        self.render(rule, subject, &mut alert);
        self.notify(rule, subject, alert, false, NotificationKind::Event, "event".to_owned(), reason);
    }
}

/// The start of the subject of an alert about a change.
const CHANGE_PREFIX: &str = "change/";

/// Returns the part of such a subject that names the change, between the token and the time of the poll.
fn change_path(change: &Change, resource: Resource) -> String {
    format!("/{resource}/{}/{}/", change.kind, change.key.as_ref().map_or("series", RecordKey::as_str))
}

/// Returns whether the subject of an alert names a change. `ordinal` counts the changes of this kind and key in one response, from one.
/// The token does not matter, because it may have had another slug.
pub(crate) fn names_change(subject: &str, change: &Change, resource: Resource, ordinal: usize) -> bool {
    let is_ordinal = |text: &str| text.parse() == Ok(ordinal);
    subject.starts_with(CHANGE_PREFIX)
        && subject.contains(&change_path(change, resource))
        && subject.rsplit_once('#').is_some_and(|(_, text)| is_ordinal(text))
}

/// Returns the record after a change, or the record before it if it was removed.
pub(crate) fn record_of(change: &Change) -> Option<Tracked> {
    let record = change.new.as_ref().or(change.old.as_ref())?;
    let key = change.key.clone().unwrap_or_else(|| "series".into());
    Some(Tracked { key, record: record.clone() })
}

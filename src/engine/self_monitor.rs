//! Incidents of the source, a receiver, or the daemon itself, sent as alerts.
//!
//! - `Incident`: an open alert of this module during a cycle. Its `IncidentScope` is what it covers (a feed, an endpoint, the source),
//!   its `IncidentKind` the problem.
//! - `IncidentWriter` writes the alerts and notifications.
//! - `own` writes one alert for each incident without a feed: a receiver outage, a dead letter, a failed reload, a damaged or full
//!   database, a failed template.
//!
//! [`watch`] takes the outcome of each feed in a cycle and the open source alerts. It finds the scope of each failing feed, assigns the
//! feed to an incident, and returns transitions, as [`crate::evaluate`] does. One cause makes one alert:
//!
//! - Failures of the whole source belong to the alert `source`.
//! - A rejected key and exhausted credits have their own alerts, because each needs a different action.
//! - Invalid responses belong to the endpoint if most of its responses are invalid, else to the token.
//!
//! An alert stores its failing feeds ([`Alert::members`]). It ends when each of them has succeeded or is no longer watched. The alerts
//! about the key and the credits end when any feed succeeds. Feeds that join within [`BATCH_WINDOW`] send nothing. Feeds that join later
//! send a reminder, at most once a day. While the whole source is down, another feed of an endpoint that already fails sends nothing:
//! which feeds are polled before the client gives up is chance.
//!
//! Source alerts are sent without any rule. The first matching rule with `on = "source"` may reword, relabel, and route an alert. The
//! alert keeps its identity when rules change, and its label `kind` never changes.
//!
//! An incident of a receiver goes to the fallback, never to the receiver itself. A failed delivery that was itself about such an incident
//! is not reported, so there is no loop. Pure: the time is passed in as `now`.

mod incident;
mod kind;
mod own;
mod scope;
mod state;
mod writer;

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use crate::evaluate::{EvaluationContext, RuleEval, Transitions};
use crate::route::RouteTree;
use incident::{Incident, assign, narrow};
pub use kind::{incident_kind, incident_kinds};
use model::{Alert, Endpoint, FailureKind, FeedId, IncidentKind, PollFailure, Timestamp, Token, TokenId};
pub use own::{
    CLOCK_SUBJECT, DAMAGED_SUBJECT, FULL_SUBJECT, INSTANCES_SUBJECT, RECEIVER_PREFIX, RELOAD_SUBJECT, clock_differs, dead_letter,
    instances_differ, is_about_delivery, receiver_dead, receiver_removed, receiver_subject, recipient_rejected, recovered,
    reload_failed, store_damaged, store_full, store_unreachable, template_failed,
};
use scope::scopes;
pub use scope::{feed_of, is_about_source, is_source_down};
pub use state::SourceState;
use writer::{IncidentEnd, IncidentWriter};

/// The time after the start of an alert in which feeds join without a notification.
pub const BATCH_WINDOW: TimeDelta = TimeDelta::hours(1);

/// The outcome of one feed in a cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedOutcome {
    pub feed: FeedId,
    pub result: FeedResult,
}

/// Whether a feed was read.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedResult {
    /// The response was complete and was ingested.
    Fine,
    /// As `Fine`, after responses were held; with the reason of the release.
    Released(String),
    /// The poll failed or was not made ([`FailureKind::Suspended`], [`FailureKind::QuotaExhausted`]).
    Failed(PollFailure),
    /// The response is held because most of the token's upcoming records are missing; with a description of them.
    Held(String),
}

/// The source in one cycle, as input of [`watch`].
#[derive(Clone, Copy)]
pub struct CycleOutcome<'a> {
    /// The outcome of each feed that was due. A feed that occurs twice counts as failed if it failed once.
    pub outcomes: &'a [FeedOutcome],
    /// All open alerts that belong to no token.
    pub open: &'a [Alert],
    /// Returns whether a feed is still polled at all.
    pub is_watched: &'a dyn Fn(&FeedId) -> bool,
    /// Returns a known token, for messages and rules.
    pub token: &'a dyn Fn(&TokenId) -> Option<&'a Token>,
}

/// Opens, updates, and ends the alerts about the source.
pub fn watch(cycle: &CycleOutcome<'_>, context: &EvaluationContext<'_>) -> Transitions {
    watch_with(cycle, &context.rules.rules, context.routes, context.now)
}

/// A feed that failed in this cycle.
struct FailingFeed<'a> {
    feed: &'a FeedId,
    kind: IncidentKind,
    message: &'a str,
}

/// The feeds of a cycle, by outcome.
#[derive(Default)]
struct FeedsByResult<'a> {
    failing: BTreeMap<&'a FeedId, FailingFeed<'a>>,
    fine: BTreeSet<&'a FeedId>,
}

impl<'a> FeedsByResult<'a> {
    fn of(outcomes: &'a [FeedOutcome]) -> Self {
        let mut feeds = Self::default();
        for FeedOutcome { feed, result } in outcomes {
            let (kind, message) = match result {
                FeedResult::Fine | FeedResult::Released(_) => {
                    feeds.fine.insert(feed);
                    continue;
                }
                FeedResult::Failed(failure) => (IncidentKind::Failure(failure.kind), failure.message.as_str()),
                FeedResult::Held(what) => (IncidentKind::Held, what.as_str()),
            };
            let failing = FailingFeed { feed, kind, message };
            match feeds.failing.get_mut(feed) {
                // Any other failure gives more information than a suspended poll.
                Some(known) if known.kind == IncidentKind::SUSPENDED => *known = failing,
                Some(_) => {}
                None => drop(feeds.failing.insert(feed, failing)),
            }
        }
        feeds.fine.retain(|feed| !feeds.failing.contains_key(feed));
        feeds
    }

    /// Returns the endpoints on which every poll succeeded.
    fn responding(&self) -> BTreeSet<Endpoint> {
        let failing: BTreeSet<Endpoint> = self.failing.keys().map(|feed| feed.endpoint).collect();
        self.fine.iter().map(|feed| feed.endpoint).filter(|endpoint| !failing.contains(endpoint)).collect()
    }
}

/// Returns whether the source responded to the polls of a cycle, or `None` if that is unknown, because no request was sent. A source that
/// rejects the key responds; another alert reports that.
pub fn has_responded(outcomes: &[FeedOutcome]) -> Option<bool> {
    let response = |outcome: &FeedOutcome| match &outcome.result {
        FeedResult::Failed(failure) => match failure.kind {
            FailureKind::Suspended | FailureKind::QuotaExhausted | FailureKind::UnusableKey | FailureKind::Unreadable => None,
            FailureKind::Unreachable | FailureKind::Timeout | FailureKind::ServerError => Some(false),
            _ => Some(true),
        },
        _ => Some(true),
    };
    outcomes.iter().filter_map(response).reduce(|one, other| one || other)
}

fn watch_with<R: RuleEval>(cycle: &CycleOutcome<'_>, rules: &[R], routes: &RouteTree, now: Timestamp) -> Transitions {
    let feeds = FeedsByResult::of(cycle.outcomes);
    let mut incidents: Vec<Incident> = cycle.open.iter().filter_map(Incident::of).collect();
    let scopes = scopes(&feeds, &incidents);
    // Suspended feeds come last, when the incidents that explain the suspension are known.
    let (last, first): (Vec<_>, Vec<_>) = feeds.failing.values().partition(|failing| failing.kind == IncidentKind::SUSPENDED);
    let is_suspended = !last.is_empty();
    for failing in first.into_iter().chain(last) {
        let Some(scope) = scopes.get(failing.feed) else { continue };
        if failing.kind == IncidentKind::SUSPENDED
            && incidents.iter().any(Incident::explains_suspension)
            && !incidents.iter().any(|incident| incident.contains(failing.feed))
        {
            continue;
        }
        assign(&mut incidents, failing, scope, now);
    }
    let narrowed = narrow(&mut incidents, &feeds, now);
    let responding = feeds.responding();

    let mut transitions = Transitions::default();
    let writer = IncidentWriter { rules, routes, now };
    for mut incident in incidents {
        let count = incident.members.len();
        // One success proves that credits and key are fine. A failure of the whole source ends per endpoint, once all its polls succeed.
        let is_lifted =
            incident.scope.width() == 3 && !feeds.fine.is_empty() && !scopes.values().any(|scope| *scope == incident.scope);
        let is_wide = incident.scope.width() == 2 && incident.kind_before().is_some_and(IncidentKind::is_source_wide);
        incident.members.retain(|member| match feed_of(member) {
            Some(feed) => {
                let is_lifted = is_lifted && !feeds.failing.contains_key(&feed);
                let is_fine = feeds.fine.contains(&feed) || is_lifted || (is_wide && responding.contains(&feed.endpoint));
                !is_fine && (cycle.is_watched)(&feed)
            }
            None => false,
        });
        let has_succeeded = count > incident.members.len();
        let is_undecided = is_suspended && incident.scope.width() >= 2;
        if incident.members.is_empty() && !is_undecided {
            let end = match (has_succeeded, incident.left > 0) {
                _ if narrowed.contains(&incident.scope) => IncidentEnd::Narrowed,
                (false, true) => IncidentEnd::Merged,
                (true, _) if is_lifted => IncidentEnd::Responding,
                (true, _) if is_wide && incident.feeds_before().any(|feed| responding.contains(&feed.endpoint)) => {
                    IncidentEnd::Responding
                }
                (true, _) if incident.feeds_before().any(|feed| feeds.fine.contains(&feed)) => IncidentEnd::Responding,
                (true, _) => IncidentEnd::Unwatched,
                (false, false) => IncidentEnd::Responding,
            };
            writer.end(&mut transitions, incident, end, cycle);
        } else {
            writer.update(&mut transitions, incident, cycle);
        }
    }
    transitions
}

#[cfg(test)]
mod tests;

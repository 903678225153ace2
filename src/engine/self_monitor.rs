//! Incidents of the source, of a receiver or of this program, told as alerts of their own.
//!
//! The cast: an `Incident` is an open alert of this room on its way through a cycle; its `IncidentScope` says what it is about (a feed,
//! an endpoint, the source), its `IncidentKind` what is the matter; the `IncidentWriter` makes the alerts and what is told of them.
//! `own` makes one alert each for what is no feed's: a receiver that is dead, a dead letter, rules that could not be reloaded, a
//! database that is damaged or full, a template that failed.
//!
//! The path: [`watch`] takes what came of each feed in a cycle and the source alerts that are open, finds the scope of each failing
//! feed, assigns the feed to an incident, and answers with transitions as [`crate::evaluate`] does. One cause is told once: whatever
//! says something of the source as a whole becomes the alert `source`; a key that is refused and credits that are spent have alerts of
//! their own, since each asks for something else to be done; bad answers are told of the endpoint where most of it is bad, else of the
//! token. An alert remembers which feeds fail ([`Alert::members`]) and ends when each of them has answered since, or is no longer
//! watched; that of the key or the credits when anything has. Feeds that join within [`FOLD_WITHIN`] do so in silence; feeds that join
//! later are told as a reminder, at most once a day.
//! While the source as a whole is down, one more feed of an endpoint that fails already is no news at all: which of them are asked
//! before the client gives up for a while is chance.
//!
//! Source alerts go out without any rule. The first rule `on = "source"` that holds for one may reword, relabel and route it; the
//! alert stays the same alert when rules change, and the label `kind` stays what it is.
//!
//! The promise: an incident of a receiver goes to the fallback, never to the receiver itself, and what told of such an incident is not
//! announced again when it dies, so there is no loop. Pure: the time comes in as `now`.

mod incident;
mod kind;
mod own;
mod scope;
mod state;
mod texts;
mod writer;

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use crate::evaluate::{EvaluationContext, RuleEval, Transitions};
use crate::route::RouteTree;
use incident::{Incident, assign, narrow};
use kind::IncidentKind;
pub use kind::{incident_kind, incident_kinds};
use model::{Alert, Endpoint, FeedId, PollFailure, Timestamp, Token, TokenId};
pub use own::{
    CLOCK_SUBJECT, DAMAGED_SUBJECT, FULL_SUBJECT, RECEIVER_PREFIX, RELOAD_SUBJECT, clock_differs, dead_letter, is_about_delivery,
    receiver_dead, receiver_removed, receiver_subject, recovered, reload_failed, store_damaged, store_full, template_failed,
};
use scope::scopes;
pub use scope::{feed_of, is_about_source, is_source_down};
pub use state::SourceState;
use writer::{IncidentEnd, IncidentWriter};

/// How long feeds join an open alert in silence.
pub const FOLD_WITHIN: TimeDelta = TimeDelta::hours(1);

/// What came of one feed in a cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedNews {
    pub feed: FeedId,
    pub result: FeedResult,
}

/// Whether a feed was read.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedResult {
    /// It gave a complete, valid answer that was ingested.
    Fine,
    /// The same, where answers were held until then; why they no longer are, for people.
    Released(String),
    /// It gave none, or was not asked ([`FailureKind::Suspended`](model::poll::FailureKind::Suspended),
    /// [`FailureKind::QuotaExhausted`](model::poll::FailureKind::QuotaExhausted)).
    Failed(PollFailure),
    /// Its answer is held, because most of the token's coming records are not in it; with what is held, for people.
    Held(String),
}

/// What a cycle saw of the source.
#[derive(Clone, Copy)]
pub struct CycleNews<'a> {
    /// What came of each feed that was to be asked. A feed named twice has failed if it failed once.
    pub news: &'a [FeedNews],
    /// All open alerts that belong to no token.
    pub open: &'a [Alert],
    /// Whether a feed is still asked for at all.
    pub is_watched: &'a dyn Fn(&FeedId) -> bool,
    /// What is known of a token, for messages and for rules.
    pub token: &'a dyn Fn(&TokenId) -> Option<&'a Token>,
}

/// Opens, moves on and ends the alerts about the source.
pub fn watch(cycle: &CycleNews<'_>, context: &EvaluationContext<'_>) -> Transitions {
    watch_with(cycle, &context.rules.rules, context.routes, context.now)
}

/// A feed that failed in this cycle.
struct FailingFeed<'a> {
    feed: &'a FeedId,
    kind: IncidentKind,
    message: &'a str,
}

/// The feeds of a cycle by what came of them.
#[derive(Default)]
struct FeedsByResult<'a> {
    failing: BTreeMap<&'a FeedId, FailingFeed<'a>>,
    fine: BTreeSet<&'a FeedId>,
}

impl<'a> FeedsByResult<'a> {
    fn of(news: &'a [FeedNews]) -> Self {
        let mut feeds = Self::default();
        for FeedNews { feed, result } in news {
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
                // That it was not asked says less than any answer.
                Some(known) if known.kind == IncidentKind::SUSPENDED => *known = failing,
                Some(_) => {}
                None => drop(feeds.failing.insert(feed, failing)),
            }
        }
        feeds.fine.retain(|feed| !feeds.failing.contains_key(feed));
        feeds
    }

    /// Endpoints of which everything that was asked answered.
    fn answering(&self) -> BTreeSet<Endpoint> {
        let failing: BTreeSet<Endpoint> = self.failing.keys().map(|feed| feed.endpoint).collect();
        self.fine.iter().map(|feed| feed.endpoint).filter(|endpoint| !failing.contains(endpoint)).collect()
    }
}

/// Whether the source answered in a cycle; none where that cannot be told, since nothing was asked.
pub fn has_answered(news: &[FeedNews]) -> Option<bool> {
    let has_failed = |one: &FeedNews| matches!(&one.result, FeedResult::Failed(failure) if failure.kind.is_source_wide());
    let wide = news.iter().filter(|one| has_failed(one)).count();
    (!news.is_empty()).then_some(wide < news.len())
}

fn watch_with<R: RuleEval>(cycle: &CycleNews<'_>, rules: &[R], routes: &RouteTree, now: Timestamp) -> Transitions {
    let feeds = FeedsByResult::of(cycle.news);
    let mut incidents: Vec<Incident> = cycle.open.iter().filter_map(Incident::of).collect();
    let scopes = scopes(&feeds, &incidents);
    // Those that were not asked come last: by then it is known whether anything tells why.
    let (last, first): (Vec<_>, Vec<_>) = feeds.failing.values().partition(|failing| failing.kind == IncidentKind::SUSPENDED);
    let is_suspended = !last.is_empty();
    for failing in first.into_iter().chain(last) {
        let Some(scope) = scopes.get(failing.feed) else { continue };
        if failing.kind == IncidentKind::SUSPENDED
            && incidents.iter().any(Incident::explains_silence)
            && !incidents.iter().any(|incident| incident.holds(failing.feed))
        {
            continue;
        }
        assign(&mut incidents, failing, scope, now);
    }
    let narrowed = narrow(&mut incidents, &feeds, now);
    let answering = feeds.answering();

    let mut transitions = Transitions::default();
    let writer = IncidentWriter { rules, routes, now };
    for mut incident in incidents {
        let count = incident.members.len();
        // One answer shows that credits and key are good; what failed as a whole is well where an endpoint answers whatever it is asked.
        let is_lifted =
            incident.scope.width() == 3 && !feeds.fine.is_empty() && !scopes.values().any(|one| *one == incident.scope);
        let is_wide = incident.scope.width() == 2 && incident.kind_before().is_some_and(IncidentKind::is_source_wide);
        incident.members.retain(|member| match feed_of(member) {
            Some(feed) => {
                let is_lifted = is_lifted && !feeds.failing.contains_key(&feed);
                let is_well = feeds.fine.contains(&feed) || is_lifted || (is_wide && answering.contains(&feed.endpoint));
                !is_well && (cycle.is_watched)(&feed)
            }
            None => false,
        });
        let has_answered = count > incident.members.len();
        let waits = is_suspended && incident.scope.width() >= 2;
        if incident.members.is_empty() && !waits {
            let end = match (has_answered, incident.left > 0) {
                _ if narrowed.contains(&incident.scope) => IncidentEnd::Narrowed,
                (false, true) => IncidentEnd::Merged,
                (true, _) if is_lifted => IncidentEnd::Answered,
                (true, _) if is_wide && incident.feeds_before().any(|feed| answering.contains(&feed.endpoint)) => {
                    IncidentEnd::Answered
                }
                (true, _) if incident.feeds_before().any(|feed| feeds.fine.contains(&feed)) => IncidentEnd::Answered,
                (true, _) => IncidentEnd::Unwatched,
                (false, false) => IncidentEnd::Answered,
            };
            writer.end(&mut transitions, incident, end, cycle);
        } else {
            writer.go_on(&mut transitions, incident, cycle);
        }
    }
    transitions
}

#[cfg(test)]
mod tests;

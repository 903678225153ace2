//! The path of the program, decided once: from answers to what is written, and from what waits to what is delivered. Pure.
//!
//! Everyone goes through here: the daemon against its database, rule tests and backtests against memory. The order is that of the files:
//!
//! 1. `ingest`: an answer beside what was known becomes feeds, records and changes to write, and [`TokenNews`] to evaluate.
//! 2. `totals`: what the windows of tokens and groups hold, for rules that look at them as a whole.
//! 3. [`step`]: the rules look at the news; alerts begin, move on and end. [`close`] ends a cycle: incidents of the source, groups,
//!    limits. [`conclude`] gives episodes their numbers and makes one [`Step`] of all of it, to be written in one transaction.
//! 4. `repeats` and `digests`: what is told again, and what is told at a time of the day.
//! 5. `dispatch`: what becomes of everything that waits: suppressed, told in groups, folded, summed up.
//!
//! What comes in is what was known, what was heard, the rules at work and the time; what comes out is applied as it stands, by SQL or in
//! memory. The callers ask, read, write and wait; they decide nothing.

mod digests;
mod dispatch;
mod ingest;
mod renamed;
mod repeats;
mod totals;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use crate::{
    digest_schedule::{self, DigestPlan},
    evaluate::{self, EvaluationContext, Limits, TokenFacts, TokenTotals, Transitions},
    late::LateArrival,
    route::RouteTree,
    self_monitor::{self, FeedNews, FeedResult},
};
use model::{
    Alert, Change, Commit, Endpoint, FeedId, FeedState, ReceiverName, Resource, RuleId, Timestamp, Token, TokenId, Tracked,
    Watch, config,
};
use rules::{RuleSet, aggregate::ComputedTotals};

pub use digests::{DigestReads, DigestRows, DigestTurn, digest, digest_turn};
pub use dispatch::{HourLimits, dispatch, prospects};
pub use ingest::{Ingest, Ingested, RoundsPage, WholeAnswer, Work, feed_news, whole_answer};
pub use renamed::{RESOURCES, Renaming, is_renamed, is_unread, renamed_tokens};
pub use repeats::{about, repeats};
pub use totals::{compute_totals, flow_entries, groups, keep_totals, moved_feeds, reaches};

/// Resources whose records are looked at when nothing but time has passed.
pub const TIMED: [Resource; 3] = [Resource::Unlock, Resource::Allocation, Resource::Emission];

/// Tokens whose names are read for what is told of the source.
const MOST_NAMED: usize = 256;

/// Rules with their routes, at work together.
#[derive(Debug, Default)]
pub struct ActiveRules {
    pub rules: RuleSet,
    pub routes: RouteTree,
}

impl ActiveRules {
    /// What an evaluation at `now` goes by.
    pub fn context(&self, now: Timestamp) -> EvaluationContext<'_> {
        EvaluationContext { rules: &self.rules, routes: &self.routes, now }
    }
}

/// What the config says of receivers, as far as it decides what they are told and when.
#[derive(Clone, Debug, Default)]
pub struct DispatchPolicy {
    /// Messages that each may get in an hour.
    pub max_per_hour: HourLimits,
    /// The digests, in the order of the receivers.
    pub digests: Vec<DigestPlan>,
}

impl DispatchPolicy {
    /// That of a config.
    /// Fails with what is wrong with the digest of a receiver; the check of the config finds it with its place.
    pub fn of(receivers: &[config::ReceiverSettings], delivery: &config::DeliverySettings) -> Result<Self, String> {
        let limit = |receiver: &config::ReceiverSettings| {
            (ReceiverName::from(receiver.name.as_str()), receiver.max_per_hour.unwrap_or(delivery.max_per_hour))
        };
        Ok(Self { max_per_hour: receivers.iter().map(limit).collect(), digests: digest_schedule::plans(receivers)? })
    }
}

/// A token to be evaluated, with what happened to it.
#[derive(Clone, Debug)]
pub struct TokenNews<'a> {
    /// The token, with its groups.
    pub token: Cow<'a, Token>,
    /// Whether the config still watches it.
    pub is_watched: bool,
    /// Its records from now on, all of `resources`.
    pub records: Cow<'a, [Tracked]>,
    /// Which resources `records` holds.
    pub resources: Cow<'a, [Resource]>,
    /// What the diff told.
    pub changes: Vec<Change>,
    /// Burns, buybacks and rounds that are new and no baseline.
    pub added: Vec<Tracked>,
    /// Burns and buybacks that came before, and of which more is known now.
    pub late: Vec<LateArrival>,
    pub alerts: &'a [Alert],
    /// When the source last gave a complete answer about a resource.
    pub polled_at: Vec<(Resource, Timestamp)>,
}

impl TokenNews<'_> {
    fn facts(&self) -> TokenFacts<'_> {
        TokenFacts {
            token: &self.token,
            is_watched: self.is_watched,
            records: &self.records,
            resources: &self.resources,
            changes: &self.changes,
            added: &self.added,
            late: &self.late,
            alerts: self.alerts,
            polled_at: &self.polled_at,
        }
    }
}

/// Lets the rules look at tokens with their news, and at each as a whole with its `totals`, as far as any rule asks for them. `limits` is
/// carried through all steps of a cycle.
pub fn step(
    tokens: &[TokenNews<'_>],
    totals: &[ComputedTotals],
    context: &EvaluationContext<'_>,
    limits: &mut Limits,
) -> Transitions {
    let facts: Vec<TokenFacts<'_>> = tokens.iter().map(TokenNews::facts).collect();
    let nothing = Default::default();
    let by_token: HashMap<&TokenId, &ComputedTotals> = totals.iter().map(|computed| (computed.token(), computed)).collect();
    let wholes: Vec<TokenTotals<'_>> = tokens
        .iter()
        .map(|news| TokenTotals {
            token: &news.token,
            is_watched: news.is_watched,
            totals: by_token.get(&news.token.id).map_or(&nothing, |computed| computed.totals()),
            alerts: news.alerts,
            polled_at: &news.polled_at,
        })
        .collect();
    evaluate::evaluate(&facts, context, limits).join(evaluate::tokens(&wholes, context, limits))
}

/// What ends a cycle: incidents of the source and of its feeds begin, move on and end, groups were looked at as a whole, and what limits
/// left out is summed up.
pub fn close(
    incidents: &self_monitor::CycleNews<'_>,
    groups: Transitions,
    limits: Limits,
    context: &EvaluationContext<'_>,
) -> Transitions {
    self_monitor::watch(incidents, context).join(groups).join(limits.summaries(context.now))
}

/// Whether a feed is still asked for.
pub fn is_feed_watched(watch: &Watch, feed: &FeedId) -> bool {
    feed.token.as_ref().is_none_or(|token| watch.covers(token))
}

/// Tokens that incidents speak of: their names are to be known when a cycle is closed.
pub fn tokens_of_incidents(news: &[FeedNews], open: &[Alert]) -> Vec<TokenId> {
    let troubled = news.iter().filter(|news| !matches!(news.result, FeedResult::Fine | FeedResult::Released(_)));
    let mut ids: Vec<TokenId> = troubled.filter_map(|news| news.feed.token.clone()).collect();
    ids.extend(open.iter().flat_map(|alert| &alert.members).filter_map(|member| self_monitor::feed_of(member)?.token));
    ids.sort();
    ids.dedup();
    ids.truncate(MOST_NAMED);
    ids
}

/// What is written in one transaction.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// All of it.
    pub commit: Commit,
    /// Rules with a template that failed, with the first error of each.
    pub template_errors: Vec<(RuleId, String)>,
}

/// Makes one step of what is to be written and of what the rules came to. `latest` are the latest episodes of what `draft` opens, in
/// its order ([`Transitions::openings`]).
pub fn conclude(commit: Commit, draft: Transitions, latest: &[u32], now: Timestamp) -> Step {
    let verdict = draft.assign_episodes(latest);
    let mut commit = Commit { at: now, ..commit };
    commit.alerts.extend(verdict.alerts);
    commit.notifications.extend(verdict.notifications);
    commit.left_out.extend(verdict.left_out);
    commit.rule_matches.extend(verdict.rule_matches);
    Step { commit, template_errors: verdict.template_errors }
}

impl Step {
    /// Has it tell of the templates that failed: the built-in text was told in their place.
    pub fn tell_template_errors(&mut self, context: &EvaluationContext<'_>) {
        for (rule, error) in &self.template_errors {
            let owner = context.rules.rules.iter().find(|known| known.id == *rule).and_then(|known| known.owner.as_deref());
            let (alert, notice) = self_monitor::template_failed(rule, owner, error, context);
            self.commit.alerts.push(alert);
            self.commit.notifications.push(notice);
        }
    }
}

/// When the source last gave a complete answer about each resource.
pub fn polled_at(feeds: &[(Endpoint, FeedState)]) -> Vec<(Resource, Timestamp)> {
    let mut latest: BTreeMap<Resource, Timestamp> = BTreeMap::new();
    for (endpoint, state) in feeds {
        if let (Some(resource), Some(at)) = (endpoint.resource(), state.read_at) {
            let known = latest.entry(resource).or_insert(at);
            *known = at.max(*known);
        }
    }
    latest.into_iter().collect()
}

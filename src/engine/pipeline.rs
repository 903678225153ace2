//! The steps from responses to rows, and from pending notifications to deliveries. Pure.
//!
//! The daemon runs these steps against its database; rule tests and backtests run them in memory. In order of execution:
//!
//! 1. `ingest`: compares a response with the known facts. Returns the rows to write and the [`TokenUpdate`] to evaluate.
//! 2. `totals`: computes the aggregates of tokens and groups.
//! 3. [`step`]: evaluates the rules on each token. [`close`] ends a cycle: incidents of the source, rules on groups, and summaries of
//!    rule limits. [`conclude`] numbers the episodes and returns one [`Step`], to be written in one transaction.
//! 4. `repeats` and `digests`: reminders of firing alerts, and digests at a time of day.
//! 5. `dispatch`: suppresses, groups, batches, or summarizes pending notifications.
//!
//! The input is the known facts, the responses, the active rules, and the time. The output is written as is, to SQL or memory. The callers
//! poll, read, write, and wait, but decide nothing.

mod digests;
mod dispatch;
mod ingest;
mod repeats;
mod texts;
mod token_renames;
mod totals;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use chrono::TimeDelta;

use crate::{
    digest_schedule::{self, DigestPlan},
    evaluate::{self, EvaluationContext, Limits, TokenFacts, TokenTotals, Transitions},
    late::LateArrival,
    route::RouteTree,
    self_monitor::{self, FeedOutcome, FeedResult},
};
use model::corrections::CorrectionsByToken;
use model::{
    Alert, Change, Commit, Endpoint, FeedId, FeedState, LinearSupply, ReceiverName, Resource, RuleId, Timestamp, Token, TokenId,
    TokenSnapshot, Tracked, Watch, config,
};
use rules::{RuleSet, aggregate::ComputedTotals};

pub use digests::{DigestReads, DigestRows, digest};
pub use dispatch::{HourLimits, dispatch, prospects};
pub use ingest::{CompleteResponse, Ingest, Ingested, RoundsPage, Work, complete_response, feed_outcome};
pub use repeats::{about, current_body, repeats};
pub use texts::{current_text, facts_for_text};
pub use token_renames::{RESOURCES, RenamedToken, Renaming, is_renamed, is_unread, renamed_tokens};
pub use totals::{KnownFlows, compute_totals, flow_entries, groups, keep_totals, moved_feeds, reaches};

/// Resources whose records can match a rule merely because time passes.
pub const TIMED: [Resource; 3] = [Resource::Unlock, Resource::Allocation, Resource::Emission];

/// The maximum number of tokens whose names are read for alerts about the source.
const MAX_NAMED_TOKENS: usize = 256;

/// Rules with their routes, in force together.
#[derive(Debug)]
pub struct ActiveRules {
    pub rules: RuleSet,
    pub routes: RouteTree,
    /// The age from which a price is stale.
    pub stale_price: TimeDelta,
}

impl Default for ActiveRules {
    fn default() -> Self {
        let stale_price = config::SourceSettings::default().stale_price.delta();
        Self { rules: RuleSet::default(), routes: RouteTree::default(), stale_price }
    }
}

impl ActiveRules {
    /// Returns the context of an evaluation at `now`.
    pub fn context(&self, now: Timestamp) -> EvaluationContext<'_> {
        EvaluationContext { rules: &self.rules, routes: &self.routes, now, keeps_removed: false, stale_price: self.stale_price }
    }
}

/// The settings of receivers that the dispatcher needs.
#[derive(Clone, Debug, Default)]
pub struct DispatchPolicy {
    /// The hourly limit of each receiver.
    pub max_per_hour: HourLimits,
    /// The digests, in the order of the receivers.
    pub digests: Vec<DigestPlan>,
    /// The age from which prices are stale. `None` for the default.
    pub stale_price: Option<TimeDelta>,
}

impl DispatchPolicy {
    /// Derives the policy from a config. `stale_price` is the age from which prices are stale.
    ///
    /// # Errors
    ///
    /// Describes an invalid digest schedule. The check of the config reports it with its location.
    pub fn of(
        receivers: &[config::ReceiverSettings],
        delivery: &config::DeliverySettings,
        stale_price: config::Span,
    ) -> Result<Self, String> {
        let limit = |receiver: &config::ReceiverSettings| {
            (ReceiverName::from(receiver.name.as_str()), receiver.max_per_hour.unwrap_or(delivery.max_per_hour))
        };
        Ok(Self {
            max_per_hour: receivers.iter().map(limit).collect(),
            digests: digest_schedule::plans(receivers, stale_price)?,
            stale_price: Some(stale_price.delta()),
        })
    }
}

/// A token to evaluate, with its changes and new records.
#[derive(Clone, Debug)]
pub struct TokenUpdate<'a> {
    /// The token, with its groups.
    pub token: Cow<'a, Token>,
    /// Whether the config still watches the token.
    pub is_watched: bool,
    /// The current records of `resources`.
    pub records: Cow<'a, [Tracked]>,
    /// The feed of the schedule, if the records include it.
    pub schedule: Option<ScheduleFeed<'a>>,
    pub resources: Cow<'a, [Resource]>,
    pub changes: Vec<Change>,
    /// New burns, buybacks, and funding rounds, except those of a baseline.
    pub added: Vec<Tracked>,
    /// Earlier burns and buybacks whose missing facts arrived.
    pub late: Vec<LateArrival>,
    pub alerts: &'a [Alert],
    /// The time of the last complete response per resource.
    pub polled_at: Vec<(Resource, Timestamp)>,
}

/// The feed of a token's schedule. It shows how completely linear unlocks are known, and has linear unlocks that the records lack.
#[derive(Clone, Debug)]
pub struct ScheduleFeed<'a> {
    pub state: Cow<'a, FeedState>,
    pub header: Option<Cow<'a, serde_json::Value>>,
}

impl<'a> ScheduleFeed<'a> {
    /// Returns the feed of a known token. `None` if it was never polled.
    pub fn of(known: &'a TokenSnapshot) -> Option<Self> {
        let state = Cow::Borrowed(known.feed(Endpoint::UnlockEvents)?);
        Some(Self { state, header: known.schedule_header().map(Cow::Borrowed) })
    }

    pub fn linear(&self) -> LinearSupply {
        LinearSupply::of(Some(&self.state), self.header.as_deref())
    }
}

impl TokenUpdate<'_> {
    fn facts<'f>(&'f self, linear: Option<&'f LinearSupply>, corrections: &'f CorrectionsByToken) -> TokenFacts<'f> {
        TokenFacts {
            token: &self.token,
            is_watched: self.is_watched,
            records: &self.records,
            linear,
            corrections: corrections.get(&self.token.id).map_or(&[], Vec::as_slice),
            resources: &self.resources,
            changes: &self.changes,
            added: &self.added,
            late: &self.late,
            alerts: self.alerts,
            polled_at: &self.polled_at,
        }
    }
}

/// Evaluates the rules on tokens and on their `totals`. `corrections` are the corrections of the tokens before this step, within the
/// longest time that rules read; empty if no rule reads any. `limits` is carried through all steps of a cycle.
pub fn step(
    tokens: &[TokenUpdate<'_>],
    totals: &[ComputedTotals],
    corrections: &CorrectionsByToken,
    context: &EvaluationContext<'_>,
    limits: &mut Limits,
) -> Transitions {
    let has_rate_steps = context.rules.reads_rate_steps;
    let linear = |update: &TokenUpdate<'_>| update.schedule.as_ref().filter(|_| has_rate_steps).map(ScheduleFeed::linear);
    let linear: Vec<Option<LinearSupply>> = tokens.iter().map(linear).collect();
    let facts: Vec<TokenFacts<'_>> =
        tokens.iter().zip(&linear).map(|(update, linear)| update.facts(linear.as_ref(), corrections)).collect();
    let nothing = Default::default();
    let by_token: HashMap<&TokenId, &ComputedTotals> = totals.iter().map(|computed| (computed.token(), computed)).collect();
    let wholes: Vec<TokenTotals<'_>> = tokens
        .iter()
        .map(|update| TokenTotals {
            token: &update.token,
            is_watched: update.is_watched,
            totals: by_token.get(&update.token.id).map_or(&nothing, |computed| computed.totals()),
            alerts: update.alerts,
            polled_at: &update.polled_at,
        })
        .collect();
    evaluate::evaluate(&facts, context, limits).join(evaluate::tokens(&wholes, context, limits))
}

/// Ends a cycle: updates the incidents of the source, joins the transitions of groups, and summarizes what rule limits left out.
pub fn close(
    incidents: &self_monitor::CycleOutcome<'_>,
    groups: Transitions,
    limits: Limits,
    context: &EvaluationContext<'_>,
) -> Transitions {
    self_monitor::watch(incidents, context).join(groups).join(limits.summaries(context.now))
}

/// Returns whether a feed is still polled.
pub fn is_feed_watched(watch: &Watch, feed: &FeedId) -> bool {
    feed.token.as_ref().is_none_or(|token| watch.covers(token))
}

/// Returns the tokens that incidents name in their messages.
pub fn tokens_of_incidents(outcomes: &[FeedOutcome], open: &[Alert]) -> Vec<TokenId> {
    let failing = outcomes.iter().filter(|outcome| !matches!(outcome.result, FeedResult::Fine | FeedResult::Released(_)));
    let mut ids: Vec<TokenId> = failing.filter_map(|outcome| outcome.feed.token.clone()).collect();
    ids.extend(open.iter().flat_map(|alert| &alert.members).filter_map(|member| self_monitor::feed_of(member)?.token));
    ids.sort();
    ids.dedup();
    ids.truncate(MAX_NAMED_TOKENS);
    ids
}

/// The rows to write in one transaction.
#[derive(Clone, Debug, Default)]
pub struct Step {
    pub commit: Commit,
    /// Rules with a failed template, each with its first error.
    pub template_errors: Vec<(RuleId, String)>,
}

/// Joins the rows to write and the transitions of the rules into one step. `latest` holds the latest episodes of the alerts that `draft`
/// opens, in the order of [`Transitions::openings`].
pub fn conclude(commit: Commit, draft: Transitions, latest: &[u32], now: Timestamp) -> Step {
    let decision = draft.assign_episodes(latest);
    let mut commit = Commit { at: now, evaluated_at: Some(now), ..commit };
    commit.alerts.extend(decision.alerts);
    commit.notifications.extend(decision.notifications);
    commit.left_out.extend(decision.left_out);
    commit.held.extend(decision.held);
    commit.rule_matches.extend(decision.rule_matches);
    Step { commit, template_errors: decision.template_errors }
}

impl Step {
    /// Adds alerts about failed templates, whose notifications use the built-in text.
    pub fn report_template_errors(&mut self, context: &EvaluationContext<'_>) {
        for (rule, error) in &self.template_errors {
            let owner = context.rules.rules.iter().find(|known| known.id == *rule).and_then(|known| known.owner.as_deref());
            let (alert, notification) = self_monitor::template_failed(rule, owner, error, context);
            self.commit.alerts.push(alert);
            self.commit.notifications.push(notification);
        }
    }
}

/// Returns the time of the last complete response per resource.
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

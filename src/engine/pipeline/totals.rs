//! Aggregates of tokens and groups, for rules on `token` and `portfolio`.

use chrono::TimeDelta;

use crate::evaluate::{self, EvaluationContext, Limits, Transitions};
use model::{
    Alert, Endpoint, FeedState, FeedUpdate, LinearSupply, RecordRange, ReferencePrice, Resource, Timestamp, Token, TokenId,
    TokenSnapshot, Tracked, WindowRecords,
};
use rules::aggregate::{self, AggregateCache, ComputedTotals, Flow, FlowEntries, LONGEST_REST, Recheck};
use rules::{On, Pool, Rule, RuleSet};

use super::TokenUpdate;

/// Returns the ranges of records to read for the aggregates of tokens. Resources that are already loaded are left out.
pub fn reaches(rules: &RuleSet, is_loaded: impl Fn(Resource) -> bool, now: Timestamp) -> Vec<RecordRange> {
    let longest = |flow: Flow| {
        let requested = rules.reads.windows.iter().filter(|window| window.flow == flow).map(|window| window.span);
        requested.chain(rules.reads.since.iter().filter(|(of, _)| *of == flow).map(|(_, span)| *span)).max()
    };
    let reach = |flow: Flow| {
        // `lastBurn` and `lastBuyback` need no window.
        let is_last = matches!(flow, Flow::Burned | Flow::BoughtBack);
        // Neither do the daily release and the price.
        let is_supply = flow == Flow::Ahead && rules.reads.has_supply;
        let span = longest(flow).or((is_last || is_supply).then(TimeDelta::zero))? + LONGEST_REST + TimeDelta::days(1);
        let (before, after) = (now.checked_sub_signed(span), now.checked_add_signed(span));
        Some(match flow {
            Flow::Ahead => {
                // The next change of the daily release can be arbitrarily far ahead.
                let until = if is_supply { Some(Timestamp::MAX_UTC) } else { after };
                RecordRange { resource: Resource::Unlock, since: now, until: until.unwrap_or(now) }
            }
            _ => RecordRange { resource: flow.resource(), since: before.unwrap_or(now), until: after.unwrap_or(now) },
        })
    };
    Flow::ALL.into_iter().filter(|flow| !is_loaded(flow.resource())).filter_map(reach).collect()
}

/// The known facts about a token's unlocks, emission, burns, and buybacks.
#[derive(Clone, Copy, Debug)]
pub struct KnownFlows<'a> {
    pub feeds: &'a [(Endpoint, FeedState)],
    /// The header of the feed of unlock events.
    pub schedule_header: Option<&'a serde_json::Value>,
    pub records: &'a [Tracked],
    /// The latest price in the whole schedule. `None` if `records` contain it.
    pub price: Option<ReferencePrice>,
}

impl<'a> From<&'a TokenSnapshot> for KnownFlows<'a> {
    fn from(known: &'a TokenSnapshot) -> Self {
        let (feeds, records) = (&known.feeds, &known.records);
        Self { feeds, schedule_header: known.schedule_header(), records, price: None }
    }
}

impl<'a> From<&'a WindowRecords> for KnownFlows<'a> {
    fn from(known: &'a WindowRecords) -> Self {
        let WindowRecords { feeds, records, schedule_header, price } = known;
        Self { feeds, schedule_header: schedule_header.as_ref(), records, price: *price }
    }
}

/// Returns the dated entries of a token: its new records, the known records of other resources, and the state of its feeds after
/// `feed_updates`.
pub fn flow_entries(update: &TokenUpdate<'_>, known: KnownFlows<'_>, feed_updates: &[FeedUpdate]) -> FlowEntries {
    let mut feeds = known.feeds.to_vec();
    let mut header = known.schedule_header;
    for feed in feed_updates.iter().filter(|feed| feed.id.token.as_ref() == Some(&update.token.id)) {
        feeds.retain(|(endpoint, _)| *endpoint != feed.id.endpoint);
        feeds.push((feed.id.endpoint, feed.state.clone()));
        if feed.id.endpoint == Endpoint::UnlockEvents {
            header = feed.header.as_ref().or(header);
        }
    }
    // A simulation passes all known records. Replace those of the resources that were read.
    let is_updated = |tracked: &&Tracked| update.resources.contains(&tracked.record.resource());
    let records = known.records.iter().filter(|tracked| !is_updated(tracked)).chain(update.records.iter().filter(is_updated));
    let of_schedule = feeds.iter().find(|(endpoint, _)| *endpoint == Endpoint::UnlockEvents);
    let linear = LinearSupply::of(of_schedule.map(|(_, state)| state), header);
    let price = known.price.filter(|_| !update.resources.contains(&Resource::Unlock));
    FlowEntries::of(records, |resource| aggregate::is_known(resource, &feeds, &update.token.item)).with_supply(&linear, price)
}

/// Computes the aggregates of a token at `now`. If a rule depends on the clock, they are computed again at `check_at`.
pub fn compute_totals(
    cache: &AggregateCache,
    rules: &RuleSet,
    token: &Token,
    entries: &FlowEntries,
    check_at: Timestamp,
    now: Timestamp,
) -> ComputedTotals {
    let mut affected = rules.on(On::Token).chain(rules.on(On::Portfolio)).filter(|rule| rule.selects_token(token)).peekable();
    let recheck = match (affected.peek().is_some(), affected.any(|rule| rule.is_clock_dependent)) {
        (false, _) => Recheck::Longest,
        (true, false) => Recheck::UntilChange,
        (true, true) => Recheck::Until(check_at),
    };
    cache.compute(token, entries, recheck, now)
}

/// Returns the tokens with a feed that becomes trusted or untrusted without an evaluation: after a failure, or after an unchanged response
/// that follows one.
pub fn moved_feeds(cache: &AggregateCache, updates: &[FeedUpdate], is_evaluated: impl Fn(&TokenId) -> bool) -> Vec<TokenId> {
    let moved = updates.iter().filter_map(|update| {
        let id = update.id.token.as_ref().filter(|id| !is_evaluated(id))?;
        let flow = Flow::ALL.into_iter().find(|flow| Some(flow.resource()) == update.id.endpoint.resource())?;
        let is_trusted = update.state.baseline_at.is_some() && (flow == Flow::Ahead || update.state.failing_since.is_none());
        (cache.knew(id, flow)? != is_trusted).then(|| id.clone())
    });
    moved.collect()
}

/// Stores computed aggregates in the cache, after their step was written.
pub fn keep_totals(
    cache: &mut AggregateCache,
    computed: Vec<ComputedTotals>,
    moved: &[TokenId],
    unwatched: &[TokenId],
    now: Timestamp,
) {
    computed.into_iter().for_each(|computed| cache.keep(computed));
    moved.iter().for_each(|id| cache.wake(id, now));
    unwatched.iter().for_each(|id| cache.forget(id));
}

/// Evaluates the rules on groups, from the cached aggregates of their tokens.
pub fn groups(cache: &mut AggregateCache, open: &[Alert], context: &EvaluationContext<'_>, limits: &mut Limits) -> Transitions {
    let mut totals_of = |rule: &Rule, pool: &Pool| match pool {
        Pool::Group(name) => cache.group(&format!("@{name}"), Some(name), |_, _| false),
        Pool::Watched => cache.group(rule.id.as_str(), None, |id, groups| rule.selects_token_named(id, groups)),
    };
    evaluate::portfolios(&mut totals_of, open, &[], context, limits)
}

//! The cached totals of every token, with the time at which they change even without new data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;

use model::{Timestamp, Token, TokenId};

use super::entries::{FlowEntries, later};
use super::reads::AggregateReads;
use super::totals::{Member, Totals, share};
use super::window::Flow;

/// The longest time between two computations of a token's totals. The store reads entries slightly further ahead than the longest
/// window; a computation at least this often includes them in time.
pub const LONGEST_REST: TimeDelta = TimeDelta::days(28);

/// The latest totals of every token, and when each token is due again.
#[derive(Debug, Default)]
pub struct AggregateCache {
    reads: AggregateReads,
    /// Whether every watched token was computed once. Group totals are unknown before that.
    is_complete: bool,
    pub(super) tokens: BTreeMap<TokenId, CachedTotals>,
    rechecks: BTreeSet<(Timestamp, TokenId)>,
    /// Group totals since the last change, by the key that the caller passed to [`Self::group`].
    groups: BTreeMap<String, Option<Arc<Totals>>>,
}

impl AggregateCache {
    /// Clears the cache and sets what the rules read.
    pub fn reset(&mut self, reads: AggregateReads) {
        *self = Self { reads, ..Self::default() };
    }

    /// Marks every watched token as computed, so that group totals are known. Makes grouped tokens due if rules read their
    /// shares.
    pub fn complete(&mut self, now: Timestamp) {
        self.is_complete = true;
        self.groups.clear();
        if self.reads.has_shares {
            let grouped = self.tokens.iter().filter(|(_, cached)| !cached.groups.is_empty());
            for id in grouped.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
                self.wake(&id, now);
            }
        }
    }

    /// Computes a token's totals at `now`. They enter the cache only through [`Self::keep`], so that totals whose transaction
    /// failed are computed again.
    pub fn compute(&self, token: &Token, entries: &FlowEntries, recheck: Recheck, now: Timestamp) -> ComputedTotals {
        let mut totals = Totals::of(token, entries, &self.reads, now);
        if self.reads.has_shares && self.is_complete {
            totals.shares = self.shares(token, totals.market_cap);
        }
        let longest = later(now, LONGEST_REST);
        let recheck_at = match recheck {
            Recheck::Until(at) => at.min(longest),
            Recheck::UntilChange => entries.next_change(&self.reads, now).map_or(longest, |next| next.min(longest)),
            Recheck::Longest => longest,
        };
        let (symbol, name) = (token.symbol().into(), token.name().into());
        let cached = CachedTotals {
            symbol,
            name,
            groups: token.groups.clone(),
            totals: Arc::new(totals),
            known: entries.known(),
            at: now,
            recheck_at,
        };
        ComputedTotals { id: token.id.clone(), cached }
    }

    pub fn keep(&mut self, computed: ComputedTotals) {
        let ComputedTotals { id, cached } = computed;
        self.groups.clear();
        let (at, recheck_at, groups, market_cap) =
            (cached.at, cached.recheck_at, cached.groups.clone(), cached.totals.market_cap);
        if let Some(before) = self.tokens.insert(id.clone(), cached) {
            self.rechecks.remove(&(before.recheck_at, id.clone()));
            if before.totals.market_cap != market_cap {
                self.recheck_groups(&groups, &id, at);
            }
        }
        self.rechecks.insert((recheck_at, id));
    }

    /// Makes the other tokens of these groups due, because the group's market cap changed and with it their shares.
    fn recheck_groups(&mut self, groups: &[String], but: &TokenId, now: Timestamp) {
        if !self.reads.has_shares || !self.is_complete || groups.is_empty() {
            return;
        }
        let others: Vec<TokenId> = self
            .tokens
            .iter()
            .filter(|(id, cached)| *id != but && cached.groups.iter().any(|group| groups.contains(group)))
            .map(|(id, _)| id.clone())
            .collect();
        for id in others {
            self.wake(&id, now);
        }
    }

    /// Makes a token due at `at`, or leaves it if it is due earlier.
    pub fn wake(&mut self, id: &TokenId, at: Timestamp) {
        if let Some(cached) = self.tokens.get_mut(id).filter(|cached| cached.recheck_at > at) {
            self.rechecks.remove(&(cached.recheck_at, id.clone()));
            cached.recheck_at = at;
            self.rechecks.insert((at, id.clone()));
        }
    }

    /// Returns whether this flow was known when the token's totals were computed. `None` if the token is not cached.
    pub fn knew(&self, id: &TokenId, flow: Flow) -> Option<bool> {
        self.tokens.get(id)?.known.get(flow as usize).copied()
    }

    pub fn has(&self, id: &TokenId) -> bool {
        self.tokens.contains_key(id)
    }

    /// Returns `true` if every watched token was computed since the last [`Self::reset`].
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Removes a token that is no longer watched.
    pub fn forget(&mut self, id: &TokenId) {
        self.groups.clear();
        if let Some(cached) = self.tokens.remove(id) {
            self.rechecks.remove(&(cached.recheck_at, id.clone()));
        }
    }

    pub fn next_recheck(&self) -> Option<Timestamp> {
        self.rechecks.first().map(|(at, _)| *at)
    }

    /// Returns the tokens that are due at `now`.
    pub fn due(&self, now: Timestamp) -> Vec<TokenId> {
        self.rechecks.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| id.clone()).collect()
    }

    /// Returns the token's percentage of the market cap of each of its groups whose tokens all have a known market cap.
    fn shares(&self, token: &Token, market_cap: Option<f64>) -> BTreeMap<String, f64> {
        let mut shares = BTreeMap::new();
        for group in token.groups.iter() {
            let others = self.tokens.iter().filter(|(id, cached)| **id != token.id && cached.groups.contains(group));
            let whole = others.map(|(_, cached)| cached.totals.market_cap).chain([market_cap]).sum::<Option<f64>>();
            if let Some(share) = share(market_cap, whole) {
                shares.insert(group.clone(), share);
            }
        }
        shares
    }

    /// Returns the totals of a group, or of all tokens for which `selects_token` returns `true`. `key` identifies the selection. `None`
    /// if no token is selected, or if not all watched tokens were computed yet.
    pub fn group(
        &mut self,
        key: &str,
        group: Option<&str>,
        selects_token: impl Fn(&TokenId, &[String]) -> bool,
    ) -> Option<Arc<Totals>> {
        if !self.is_complete {
            return None;
        }
        if let Some(known) = self.groups.get(key) {
            return known.clone();
        }
        let is_in = |id: &TokenId, groups: &[String]| match group {
            Some(group) => groups.iter().any(|of| of == group),
            None => selects_token(id, groups),
        };
        let mut members: Vec<Member> = self
            .tokens
            .iter()
            .filter(|(id, cached)| is_in(id, &cached.groups))
            .map(|(id, cached)| Member {
                id: id.clone(),
                symbol: cached.symbol.clone(),
                name: cached.name.clone(),
                totals: cached.totals.clone(),
                share: None,
            })
            .collect();
        members.shrink_to_fit();
        let totals = (!members.is_empty()).then(|| Arc::new(Totals::of_group(group, members, &self.reads)));
        self.groups.insert(key.to_owned(), totals.clone());
        totals
    }
}

#[derive(Debug)]
pub(super) struct CachedTotals {
    symbol: Arc<str>,
    name: Arc<str>,
    groups: Arc<[String]>,
    pub(super) totals: Arc<Totals>,
    /// Whether each flow was known, in the order of [`Flow::ALL`].
    known: [bool; 4],
    pub(super) at: Timestamp,
    recheck_at: Timestamp,
}

/// The longest time until a token's totals are computed again if no new data arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recheck {
    /// Until this time: a rule reads the time in a way that can change its result at any instant.
    Until(Timestamp),
    /// Until a sum changes.
    UntilChange,
    /// For [`LONGEST_REST`], because no rule reads the token's totals.
    Longest,
}

/// The totals of one token, not yet in the cache.
#[derive(Debug)]
pub struct ComputedTotals {
    id: TokenId,
    cached: CachedTotals,
}

impl ComputedTotals {
    pub fn token(&self) -> &TokenId {
        &self.id
    }

    pub fn totals(&self) -> &Totals {
        &self.cached.totals
    }
}

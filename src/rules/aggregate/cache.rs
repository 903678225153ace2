//! The totals of every token between ticks, with the instant at which time alone will change them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;

use model::{Timestamp, Token, TokenId};

use super::entries::{FlowEntries, later};
use super::totals::{Member, Totals, share};
use super::window::{Flow, Window};

/// At the latest then a token is computed again, whatever its records say. The store reads entries a little farther than the
/// longest window, and what lies beyond that must come into sight in time.
pub const LONGEST_REST: TimeDelta = TimeDelta::days(28);

/// The totals of every token as last computed, and when time alone will change them.
#[derive(Debug, Default)]
pub struct AggregateCache {
    windows: Arc<[Window]>,
    since: Vec<(Flow, TimeDelta)>,
    /// Whether any rule asks for a token's share of a group.
    has_shares: bool,
    /// Every watched token was computed once: before that, the whole of a group is not known.
    is_complete: bool,
    pub(super) tokens: BTreeMap<TokenId, CachedTotals>,
    rechecks: BTreeSet<(Timestamp, TokenId)>,
    /// Totals of groups since something last moved, by the key that was asked with.
    groups: BTreeMap<String, Option<Arc<Totals>>>,
}

impl AggregateCache {
    /// Begins anew for what rules ask for; everything is to be computed again.
    pub fn reset(&mut self, windows: Arc<[Window]>, since: Vec<(Flow, TimeDelta)>, has_shares: bool) {
        *self = Self { windows, since, has_shares, ..Self::default() };
    }

    /// Every watched token was computed: from now on groups are whole. Tokens whose share is known only now are due again.
    pub fn complete(&mut self, now: Timestamp) {
        self.is_complete = true;
        self.groups.clear();
        if self.has_shares {
            let grouped = self.tokens.iter().filter(|(_, cached)| !cached.groups.is_empty());
            for id in grouped.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
                self.wake(&id, now);
            }
        }
    }

    /// Computes a token's totals at `now`. They are cached once they are [kept](Self::keep), so that what could not be written
    /// is computed again.
    pub fn compute(&self, token: &Token, entries: &FlowEntries, recheck: Recheck, now: Timestamp) -> ComputedTotals {
        let mut totals = Totals::of(token, entries, &self.windows, now);
        if self.has_shares && self.is_complete {
            totals.shares = self.shares(token, totals.market_cap);
        }
        let longest = later(now, LONGEST_REST);
        let recheck_at = match recheck {
            Recheck::Until(at) => at.min(longest),
            Recheck::UntilChange => {
                entries.next_change(&self.windows, &self.since, now).map_or(longest, |next| next.min(longest))
            }
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

    /// Caches what was computed.
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

    /// Has tokens of these groups looked at again: their share has another whole.
    fn recheck_groups(&mut self, groups: &[String], but: &TokenId, now: Timestamp) {
        if !self.has_shares || !self.is_complete || groups.is_empty() {
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

    /// Has a token looked at again at `at` or before.
    pub fn wake(&mut self, id: &TokenId, at: Timestamp) {
        if let Some(cached) = self.tokens.get_mut(id).filter(|cached| cached.recheck_at > at) {
            self.rechecks.remove(&(cached.recheck_at, id.clone()));
            cached.recheck_at = at;
            self.rechecks.insert((at, id.clone()));
        }
    }

    /// Whether what is cached of a token took this flow for known; none where nothing is cached of it.
    pub fn knew(&self, id: &TokenId, flow: Flow) -> Option<bool> {
        self.tokens.get(id)?.known.get(flow as usize).copied()
    }

    /// Whether anything is cached of a token.
    pub fn has(&self, id: &TokenId) -> bool {
        self.tokens.contains_key(id)
    }

    /// Whether every watched token was computed once since what rules ask for last changed.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Forgets a token that is not watched any more.
    pub fn forget(&mut self, id: &TokenId) {
        self.groups.clear();
        if let Some(cached) = self.tokens.remove(id) {
            self.rechecks.remove(&(cached.recheck_at, id.clone()));
        }
    }

    /// When the first token is to be computed again.
    pub fn next_recheck(&self) -> Option<Timestamp> {
        self.rechecks.first().map(|(at, _)| *at)
    }

    /// The tokens whose totals are to be computed again by `now`.
    pub fn due(&self, now: Timestamp) -> Vec<TokenId> {
        self.rechecks.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| id.clone()).collect()
    }

    /// Percent of the market cap of each of its groups, as far as all their tokens are known.
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

    /// The totals of a group, or of all tokens that `lets_in` lets in, which `key` stands for; none where that is nobody, or where
    /// not all of them are known yet.
    pub fn group(
        &mut self,
        key: &str,
        group: Option<&str>,
        lets_in: impl Fn(&TokenId, &[String]) -> bool,
    ) -> Option<Arc<Totals>> {
        if !self.is_complete {
            return None;
        }
        if let Some(known) = self.groups.get(key) {
            return known.clone();
        }
        let is_in = |id: &TokenId, groups: &[String]| match group {
            Some(group) => groups.iter().any(|of| of == group),
            None => lets_in(id, groups),
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
        let totals = (!members.is_empty()).then(|| Arc::new(Totals::of_group(group, members, &self.windows)));
        self.groups.insert(key.to_owned(), totals.clone());
        totals
    }
}

/// What is cached of one token.
#[derive(Debug)]
pub(super) struct CachedTotals {
    symbol: Arc<str>,
    name: Arc<str>,
    groups: Arc<[String]>,
    pub(super) totals: Arc<Totals>,
    /// Which flows were known, in the order of [`Flow::ALL`].
    known: [bool; 4],
    pub(super) at: Timestamp,
    /// When it is to be computed again.
    recheck_at: Timestamp,
}

/// How long a token may be left alone while nothing is heard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recheck {
    /// Until this time at the latest: a rule on it reads the time in such a way that it may turn at any instant.
    Until(Timestamp),
    /// Until a sum changes.
    UntilChange,
    /// No rule looks at it.
    Longest,
}

/// The totals of one token, computed and not yet cached.
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

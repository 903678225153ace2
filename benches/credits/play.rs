//! Simulates a world with the real planner and budget. Only the source is fake, and it counts its requests itself.

use std::time::Duration;

use anyhow::anyhow;
use chrono::{Months, TimeDelta};
use cliffwatch::engine::{
    budget::{self, Allowance, PollReason},
    ingest,
    plan::{self, EndpointFeeds, PlanBasis, PlannedPoll, month::TOKENS_PER_ROW_FEED, priority::ListTrust},
    slot::Slots,
};
use cliffwatch::model::{
    ContentHash, CreditState, Endpoint, FeedState, FetchedResponse, PlanToken, PollOutcome, SegmentsFetch, SegmentsRead,
    Timestamp, TokenId, Watch, config, wire,
};
use cliffwatch::{daemon::cycle, rules::RuleSet};

use super::score::MONTH;
use super::world::{DAYS, Token, World, days};

/// The range of `upcoming`, in days.
const HORIZON: f64 = 90.0;
/// The number of rows per page.
const PAGE: usize = 100;
/// The interval of burns and buybacks, in days.
const ROW_DAYS: f64 = 7.0;

/// The time of a slot, its endpoint, and the time of the endpoint's next slot.
pub type Slot = (Timestamp, Endpoint, Timestamp);

/// Credits that the source charged for a poll.
#[derive(Clone, Copy, Debug)]
pub struct SourceCharge {
    /// Days since the start of the world.
    pub day: f64,
    pub endpoint: Endpoint,
    pub credits: u64,
    /// Whether the poll was a first read.
    #[allow(dead_code, reason = "only a test reads it")]
    pub is_first: bool,
}

/// The result of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// The days on which each token's schedule was polled.
    pub reads: Vec<Vec<f64>>,
    /// The days on which each token's allocations were polled.
    pub allocation_reads: Vec<Vec<f64>>,
    /// The charges, as counted by the source.
    pub charges: Vec<SourceCharge>,
    /// Credits per quota period, in order.
    pub periods: Vec<u64>,
    /// The number of requests rejected because all credits were used.
    pub rejected: u64,
    /// Credits beyond the limit, in all periods.
    pub overspent: u64,
    /// The state of the feeds at the end.
    pub feeds: Vec<EndpointFeeds>,
}

impl Played {
    /// Adds the counts of another world, but not its polls, which are scored separately.
    pub fn with(mut self, other: Self) -> Self {
        self.periods.extend(other.periods);
        self.rejected += other.rejected;
        self.overspent += other.overspent;
        self.charges.extend(other.charges);
        self
    }

    /// Returns the credits of an endpoint in a window of days.
    pub fn spent(&self, endpoint: Endpoint, (from, to): (f64, f64)) -> u64 {
        let is_counted = |charge: &&SourceCharge| charge.endpoint == endpoint && (from..to).contains(&charge.day);
        self.charges.iter().filter(is_counted).map(|charge| charge.credits).sum()
    }

    /// Returns the credits of all endpoints other than `endpoint` in each month of the world.
    pub fn spent_elsewhere(&self, endpoint: Endpoint) -> Vec<u64> {
        let mut months = vec![0; (DAYS / MONTH) as usize + 1];
        for charge in self.charges.iter().filter(|charge| charge.endpoint != endpoint) {
            months[(charge.day / MONTH) as usize] += charge.credits;
        }
        months
    }
}

/// The fake source and its counts.
struct Source {
    limit: u64,
    used: u64,
    reset_at: Timestamp,
    played: Played,
}

impl Source {
    /// Processes a request. `None` if the credits are used up.
    fn poll(&mut self, charge: SourceCharge, now: Timestamp) -> Option<wire::Credit> {
        let pages = charge.credits;
        while now >= self.reset_at {
            self.played.periods.push(self.used);
            self.used = 0;
            self.reset_at = self.reset_at + Months::new(1);
        }
        if self.used >= self.limit {
            self.played.rejected += 1;
            return None;
        }
        self.used += pages;
        self.played.overspent += self.used.saturating_sub(self.limit).min(pages);
        self.played.charges.push(charge);
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX).into();
        Some(wire::Credit {
            used: count(self.used),
            limit: count(self.limit),
            reset_at: self.reset_at.into(),
            ..wire::Credit::default()
        })
    }
}

/// The slots of the default schedule in order, which are the same for all worlds.
pub fn slots(schedule: &config::ScheduleSettings, begin: Timestamp) -> anyhow::Result<Vec<Slot>> {
    let patterns = [
        (Endpoint::TokenList, &schedule.token_list),
        (Endpoint::Upcoming, &schedule.upcoming),
        (Endpoint::UnlockEvents, &schedule.unlock_events),
        (Endpoint::Burn, &schedule.burn),
        (Endpoint::Buyback, &schedule.buyback),
        (Endpoint::Allocations, &schedule.allocations),
    ];
    let mut all = Vec::new();
    for (endpoint, pattern) in patterns {
        let Some(slots) = Slots::parse(pattern, "UTC")? else { continue };
        let end = begin + TimeDelta::days(DAYS as i64);
        let mut at = slots.next(begin);
        while let Some(slot) = at.filter(|slot| *slot < end) {
            let next = slots.next(slot);
            all.push((slot, endpoint, next.unwrap_or(end)));
            at = next;
        }
    }
    all.sort();
    Ok(all)
}

pub struct Player<'a> {
    world: &'a World,
    config: &'a config::Config,
    watch: Watch,
    /// The days on which each token's allocations were polled.
    allocation_reads: Vec<Vec<f64>>,
    source: Source,
    credit: CreditState,
    feeds: Vec<EndpointFeeds>,
    /// The days on which each token's schedule was polled.
    reads: Vec<Vec<f64>>,
    ids: Vec<TokenId>,
}

/// Simulates a world over `slots` with `credits` per month.
pub fn play(world: &World, (config, rules): (&config::Config, &RuleSet), slots: &[Slot], credits: u64) -> anyhow::Result<Played> {
    let mut player = Player::new(world, (config, rules), slots, credits)?;
    for (now, endpoint, next) in slots {
        player.slot(*endpoint, *now, *next);
    }
    let mut played = player.source.played;
    played.periods.push(player.source.used);
    (played.reads, played.allocation_reads, played.feeds) = (player.reads, player.allocation_reads, player.feeds);
    Ok(played)
}

impl<'a> Player<'a> {
    fn new(
        world: &'a World,
        (config, rules): (&'a config::Config, &RuleSet),
        slots: &[Slot],
        credits: u64,
    ) -> anyhow::Result<Self> {
        let ids: Vec<TokenId> = (0..world.tokens.len()).map(|number| TokenId::from(format!("t{number:04}").as_str())).collect();
        let watch = Watch::build(&config.watch).map_err(|errors| anyhow!("[watch] is invalid: {errors:?}"))?;
        // Only the tokens that the config names are known before the token list.
        let named = plan::watched(Vec::new(), &watch);
        let mut endpoints: Vec<Endpoint> = slots.iter().map(|(_, endpoint, _)| *endpoint).collect();
        endpoints.sort();
        endpoints.dedup();
        let feeds = endpoints.into_iter().map(|endpoint| EndpointFeeds {
            endpoint,
            is_subscribed: cycle::is_subscribed(endpoint, rules, &config.mirror),
            next_slot: slots.iter().find(|(_, of, _)| *of == endpoint).map(|(slot, ..)| *slot),
            slot_interval: slots
                .iter()
                .find(|(_, of, _)| *of == endpoint)
                .map_or(TimeDelta::MAX, |(first, _, second)| *second - *first),
            whole: FeedState::default(),
            unreadable: Vec::new(),
            tokens: if endpoint.is_per_token() { named.clone() } else { Vec::new() },
        });
        let source = Source { limit: credits, used: 0, reset_at: world.begin + Months::new(1), played: Played::default() };
        Ok(Self {
            world,
            config,
            watch,
            allocation_reads: vec![Vec::new(); world.tokens.len()],
            source,
            credit: CreditState::default(),
            feeds: feeds.collect(),
            reads: vec![Vec::new(); world.tokens.len()],
            ids,
        })
    }

    fn slot(&mut self, endpoint: Endpoint, now: Timestamp, next: Timestamp) {
        let day = days(now - self.world.begin);
        if let Some(own) = self.feeds.iter_mut().find(|feeds| feeds.endpoint == endpoint) {
            (own.next_slot, own.slot_interval) = (Some(next), next - now);
        }
        if endpoint == Endpoint::UnlockEvents || endpoint == Endpoint::Allocations {
            self.update_next_events(day);
        }
        for poll in plan::plan(endpoint, &self.feeds, &self.basis(now)).polls {
            // Like the real ledger, send no request without a credit.
            if Allowance::at(&self.credit, &self.config.budget, now).is_exhausted() {
                break;
            }
            if self.poll(&poll, false, now, day) && poll.may_add_segments && !poll.with_segments {
                // The linear unlocks of a changed schedule are fetched in addition.
                for again in plan::plan_with_segments([poll.with_segments(true)], &self.basis(now)).polls {
                    self.poll(&again, true, now, day);
                }
            }
        }
    }

    fn basis(&self, now: Timestamp) -> PlanBasis<'a> {
        PlanBasis {
            allowance: Allowance::at(&self.credit, &self.config.budget, now),
            spent_today: budget::rolled(self.credit.clone(), &self.config.budget, now).spent_today,
            source: &self.config.source,
            near: self.config.budget.near.delta(),
            now,
            trust: ListTrust::Learned,
        }
    }

    /// Updates the next event of each token, as the daemon does from its snapshot.
    fn update_next_events(&mut self, day: f64) {
        let world = self.world;
        for feeds in &mut self.feeds {
            for (token, of) in feeds.tokens.iter_mut().zip(&world.tokens) {
                let next = of.events.get(of.events.partition_point(|(at, _)| *at <= day));
                (token.next_event, token.next_size) = (next.map(|(at, _)| world.at(*at)), next.map(|(_, size)| *size));
            }
        }
    }

    /// Runs a poll. `has_cliffs` is whether only the linear unlocks of a schedule are fetched. Returns whether it found a correction of a
    /// schedule.
    fn poll(&mut self, poll: &PlannedPoll, has_cliffs: bool, now: Timestamp, day: f64) -> bool {
        let endpoint = poll.request.endpoint();
        let pages = match endpoint {
            Endpoint::Upcoming => self.shown_ahead(day).count().div_ceil(PAGE).max(1),
            _ => 1,
        };
        let pages = u32::try_from(pages).unwrap_or(1);
        // Segments need the same number of pages from an older version.
        let credits = pages << u32::from(poll.with_segments && !has_cliffs);
        let charge = SourceCharge { day, endpoint, credits: credits.into(), is_first: poll.why == PollReason::First };
        let Some(credit) = self.source.poll(charge, now) else {
            self.credit.exhausted = true;
            return false;
        };
        self.credit = budget::settle(self.credit.clone(), credits, Some(&credit), now);
        let fetched = FetchedResponse {
            request: poll.request.clone(),
            outcome: PollOutcome::Unchanged,
            credits,
            pages,
            requests: credits,
            credit: Some(credit),
            bytes: 0,
            took: Duration::ZERO,
            status: Some(200),
            version: None,
            ahead: None,
            without_cliffs: Vec::new(),
            segments: poll.with_segments.then_some(SegmentsFetch::read(poll.linear.segments_version, pages)),
        };
        match poll.request.token() {
            Some(id) => self
                .ids
                .binary_search(id)
                .is_ok_and(|number| self.apply_token_response(number, endpoint, poll, &fetched, now, day)),
            None => {
                self.apply_list_response(endpoint, poll, &fetched, now, day);
                false
            }
        }
    }

    fn apply_token_response(
        &mut self,
        number: usize,
        endpoint: Endpoint,
        poll: &PlannedPoll,
        fetched: &FetchedResponse,
        now: Timestamp,
        day: f64,
    ) -> bool {
        let Some(feeds) = self.feeds.iter_mut().find(|feeds| feeds.endpoint == endpoint) else { return false };
        let known = feeds.tokens[number].feed.take().unwrap_or_default();
        let last = known.read_at.map(|at| days(at - self.world.begin));
        let is_between = |at: f64| last.is_some_and(|last| at > last) && at <= day;
        let is_schedule = endpoint == Endpoint::UnlockEvents;
        let token = &self.world.tokens[number];
        let has_found = match endpoint {
            Endpoint::UnlockEvents => token.corrections.iter().any(|of| is_between(of.day)),
            Endpoint::Allocations => {
                token.corrections.iter().any(|of| is_between(of.day))
                    || token.only_in_allocations.iter().any(|at| is_between(*at))
            }
            _ => is_between((day / ROW_DAYS).floor() * ROW_DAYS),
        };
        let findings = ingest::findings(&known, poll, has_found, now);
        let mut state = FeedState { findings, ..ingest::state_after_poll(known, poll, fetched, now) };
        state.baseline_at.get_or_insert(now);
        state.hash = Some(ContentHash(1));
        feeds.tokens[number].feed = Some(state);
        if poll.with_segments {
            feeds.tokens[number].segments =
                Some(SegmentsRead { at: now, mark: poll.mark, version: Some(poll.linear.segments_version) });
        }
        match endpoint {
            Endpoint::UnlockEvents => self.reads[number].push(day),
            Endpoint::Allocations => self.allocation_reads[number].push(day),
            _ => {}
        }
        is_schedule && has_found
    }

    fn apply_list_response(
        &mut self,
        endpoint: Endpoint,
        poll: &PlannedPoll,
        fetched: &FetchedResponse,
        now: Timestamp,
        day: f64,
    ) {
        let shown: Vec<usize> = if endpoint == Endpoint::Upcoming { self.shown_ahead(day).collect() } else { Vec::new() };
        let world = self.world;
        for feeds in &mut self.feeds {
            if feeds.endpoint == endpoint {
                let state = ingest::state_after_poll(feeds.whole.clone(), poll, fetched, now);
                feeds.whole = FeedState { baseline_at: state.baseline_at.or(Some(now)), ..state };
            }
            match endpoint {
                Endpoint::TokenList if feeds.endpoint.is_per_token() => {
                    // Tokens are listed in the order of the world, so that each keeps its index.
                    let listed = world.tokens.iter().take_while(|token| token.listed_at <= day).count();
                    let new = self.ids.get(feeds.tokens.len()..listed).unwrap_or_default();
                    let watched = new.iter().filter(|id| self.watch.covers(id)).map(|id| PlanToken::unknown(id.clone()));
                    feeds.tokens.extend(watched);
                    for (number, (token, of)) in feeds.tokens.iter_mut().zip(&world.tokens).enumerate().take(listed) {
                        let corrected = of.corrections.iter().filter(|one| one.is_marked).map(|one| one.day);
                        let marks = corrected.chain(of.idle_marks.iter().copied()).filter(|at| *at <= day);
                        token.listed = true;
                        token.last_updated = Some(world.at(marks.fold(of.listed_at, f64::max)));
                        token.has_burn = Some(number % TOKENS_PER_ROW_FEED == 0);
                        token.has_buyback = Some(number % TOKENS_PER_ROW_FEED == 1);
                    }
                }
                _ if feeds.endpoint == Endpoint::UnlockEvents => {
                    for number in &shown {
                        let last = self.reads[*number].last().copied().unwrap_or(f64::INFINITY);
                        let differs = |of: &super::world::Correction| of.is_shown && of.day > last && of.day <= day;
                        if world.tokens[*number].corrections.iter().any(differs)
                            && let Some(feed) = feeds.tokens.get_mut(*number).and_then(|token| token.feed.as_mut())
                        {
                            feed.stale = true;
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The tokens in the `upcoming` list.
    fn shown_ahead(&self, day: f64) -> impl Iterator<Item = usize> {
        let is_ahead = move |events: &[(f64, f64)]| {
            events.get(events.partition_point(|(at, _)| *at <= day)).is_some_and(|(at, _)| *at <= day + HORIZON)
        };
        let is_shown = move |token: &Token| token.listed_at <= day && is_ahead(&token.events);
        self.world.tokens.iter().enumerate().filter(move |(_, token)| is_shown(token)).map(|(number, _)| number)
    }
}

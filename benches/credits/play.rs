//! A world, played through the real planner and the real budget: only the source is made up, and it counts its requests itself.

use std::time::Duration;

use chrono::{Months, TimeDelta};
use cliffwatch::engine::{
    budget::{self, Allowance},
    ingest,
    plan::{self, EndpointFeeds, PlanBasis, PlannedPoll},
    slot::Slots,
};
use cliffwatch::model::{
    ContentHash, CreditState, Endpoint, FeedState, FetchedAnswer, PlanToken, PollOutcome, SegmentsFetch, SegmentsRead, Timestamp,
    TokenId, config, wire,
};

use super::world::{DAYS, World, days};

/// Days that `upcoming` looks ahead, and rows of a page.
const HORIZON: f64 = 90.0;
const PAGE: usize = 100;

/// When a job is due, whose, and when next.
pub type Slot = (Timestamp, Endpoint, Timestamp);

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// Days at which each token's schedule was read.
    pub reads: Vec<Vec<f64>>,
    /// Credits by endpoint, as the source counted them.
    pub spent: Vec<(Endpoint, u64)>,
    /// Credits of each period.
    pub periods: Vec<u64>,
    /// Requests that were refused for want of credits.
    pub refused: u64,
    /// Credits beyond the limit, over all periods.
    pub overspent: u64,
    /// What was known at the end.
    pub feeds: Vec<EndpointFeeds>,
}

impl Played {
    /// With another world's counts; the reads are scored apart.
    pub fn with(mut self, other: Self) -> Self {
        self.periods.extend(other.periods);
        self.refused += other.refused;
        self.overspent += other.overspent;
        for (endpoint, spent) in other.spent {
            self.count(endpoint, spent);
        }
        self
    }

    fn count(&mut self, endpoint: Endpoint, pages: u64) {
        match self.spent.iter_mut().find(|(of, _)| *of == endpoint) {
            Some((_, spent)) => *spent += pages,
            None => self.spent.push((endpoint, pages)),
        }
    }
}

/// The source: what it tells, what it counts.
struct Source {
    limit: u64,
    used: u64,
    reset_at: Timestamp,
    played: Played,
}

impl Source {
    /// Answers a request, unless the credits are spent.
    fn ask(&mut self, endpoint: Endpoint, pages: u64, now: Timestamp) -> Option<wire::Credit> {
        while now >= self.reset_at {
            self.played.periods.push(self.used);
            self.used = 0;
            self.reset_at = self.reset_at + Months::new(1);
        }
        if self.used >= self.limit {
            self.played.refused += 1;
            return None;
        }
        self.used += pages;
        self.played.overspent += self.used.saturating_sub(self.limit).min(pages);
        self.played.count(endpoint, pages);
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX).into();
        Some(wire::Credit {
            used: count(self.used),
            limit: count(self.limit),
            reset_at: self.reset_at.into(),
            ..wire::Credit::default()
        })
    }
}

/// The slots of the default schedule, in order: the same for every world.
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
    source: Source,
    credit: CreditState,
    feeds: Vec<EndpointFeeds>,
    /// Days at which each token's schedule was read.
    reads: Vec<Vec<f64>>,
    ids: Vec<TokenId>,
}

/// Plays a world over `slots`, under `credits` a month.
pub fn play(world: &World, config: &config::Config, slots: &[Slot], credits: u64) -> Played {
    let mut player = Player::new(world, config, slots, credits);
    for (now, endpoint, next) in slots {
        player.slot(*endpoint, *now, *next);
    }
    let mut played = player.source.played;
    played.periods.push(player.source.used);
    (played.reads, played.feeds) = (player.reads, player.feeds);
    played
}

impl<'a> Player<'a> {
    fn new(world: &'a World, config: &'a config::Config, slots: &[Slot], credits: u64) -> Self {
        let ids: Vec<TokenId> = (0..world.tokens.len()).map(|number| TokenId::from(format!("t{number:04}").as_str())).collect();
        let token = |(number, id): (usize, &TokenId)| PlanToken {
            listed: true,
            last_updated: Some(world.begin),
            has_burn: Some(number % 10 == 0),
            has_buyback: Some(number % 10 == 1),
            ..PlanToken::unknown(id.clone())
        };
        let mut endpoints: Vec<Endpoint> = slots.iter().map(|(_, endpoint, _)| *endpoint).collect();
        endpoints.sort();
        endpoints.dedup();
        let feeds = endpoints.into_iter().map(|endpoint| EndpointFeeds {
            endpoint,
            is_heard: matches!(endpoint, Endpoint::UnlockEvents | Endpoint::TokenList | Endpoint::Upcoming),
            whole: FeedState::default(),
            tokens: if endpoint.is_per_token() { ids.iter().enumerate().map(token).collect() } else { Vec::new() },
        });
        let source = Source { limit: credits, used: 0, reset_at: world.begin + Months::new(1), played: Played::default() };
        Self {
            world,
            config,
            source,
            credit: CreditState::default(),
            feeds: feeds.collect(),
            reads: vec![Vec::new(); world.tokens.len()],
            ids,
        }
    }

    fn slot(&mut self, endpoint: Endpoint, now: Timestamp, next: Timestamp) {
        let day = days(now - self.world.begin);
        if endpoint == Endpoint::UnlockEvents || endpoint == Endpoint::Allocations {
            self.look_ahead(day);
        }
        for ask in plan::plan(endpoint, &self.feeds, &self.basis(now, next)).asks {
            // The ledger lets nothing through that it has no credit for.
            if Allowance::at(&self.credit, &self.config.budget, now).is_spent() {
                break;
            }
            if self.ask(&ask, endpoint, now, day) && ask.may_add_segments && !ask.with_segments {
                // What moved is told with its linear segments.
                for again in plan::plan_again([ask.with_segments()], &self.basis(now, next)).asks {
                    self.ask(&again, endpoint, now, day);
                }
            }
        }
    }

    fn basis(&self, now: Timestamp, next_slot: Timestamp) -> PlanBasis<'a> {
        PlanBasis {
            allowance: Allowance::at(&self.credit, &self.config.budget, now),
            spent_today: budget::rolled(self.credit.clone(), &self.config.budget, now).spent_today,
            next_slot,
            source: &self.config.source,
            near: self.config.budget.near.delta(),
            now,
        }
    }

    /// Each token's next event, as the daemon reads it off its snapshot.
    fn look_ahead(&mut self, day: f64) {
        let world = self.world;
        for feeds in &mut self.feeds {
            for (token, of) in feeds.tokens.iter_mut().zip(&world.tokens) {
                let next = of.events.get(of.events.partition_point(|(at, _)| *at <= day));
                (token.next_event, token.next_size) = (next.map(|(at, _)| world.at(*at)), next.map(|(_, size)| *size));
            }
        }
    }

    /// Whether a correction of a schedule was found.
    fn ask(&mut self, ask: &PlannedPoll, endpoint: Endpoint, now: Timestamp, day: f64) -> bool {
        let pages = match endpoint {
            Endpoint::Upcoming => self.shown_ahead(day).count().div_ceil(PAGE).max(1),
            _ => 1,
        };
        let pages = u32::try_from(pages).unwrap_or(1);
        // The older version beside it walks as many.
        let credits = pages << u32::from(ask.with_segments);
        let Some(told) = self.source.ask(endpoint, credits.into(), now) else {
            self.credit.exhausted = true;
            return false;
        };
        self.credit = budget::settle(self.credit.clone(), credits, Some(&told), now);
        let fetched = FetchedAnswer {
            request: ask.request.clone(),
            outcome: PollOutcome::Unchanged,
            credits,
            pages,
            requests: credits,
            credit: Some(told),
            bytes: 0,
            took: Duration::ZERO,
            status: Some(200),
            version: None,
            without_cliffs: Vec::new(),
            segments: ask.with_segments.then_some(SegmentsFetch { is_read: true, is_absent: false, credits: pages }),
        };
        match ask.request.token() {
            Some(id) => {
                self.ids.binary_search(id).is_ok_and(|number| self.token_answered(number, endpoint, ask, &fetched, now, day))
            }
            None => {
                self.list_answered(endpoint, ask, &fetched, now, day);
                false
            }
        }
    }

    fn token_answered(
        &mut self,
        number: usize,
        endpoint: Endpoint,
        ask: &PlannedPoll,
        fetched: &FetchedAnswer,
        now: Timestamp,
        day: f64,
    ) -> bool {
        let last = self.reads[number].last().copied();
        let is_between = |at: f64| last.is_some_and(|last| at > last) && at <= day;
        let is_schedule = endpoint == Endpoint::UnlockEvents;
        let has_found = is_schedule && self.world.tokens[number].corrections.iter().any(|of| is_between(of.day));
        let Some(feeds) = self.feeds.iter_mut().find(|feeds| feeds.endpoint == endpoint) else { return false };
        let known = feeds.tokens[number].feed.take().unwrap_or_default();
        let findings = ingest::findings(&known, ask, has_found, now);
        let mut state = FeedState { findings, ..ingest::read(known, ask, fetched, now) };
        state.baseline_at.get_or_insert(now);
        state.hash = Some(ContentHash(1));
        feeds.tokens[number].feed = Some(state);
        if ask.with_segments {
            feeds.tokens[number].segments = Some(SegmentsRead { at: now, mark: ask.mark });
        }
        if is_schedule {
            self.reads[number].push(day);
        }
        has_found
    }

    fn list_answered(&mut self, endpoint: Endpoint, ask: &PlannedPoll, fetched: &FetchedAnswer, now: Timestamp, day: f64) {
        let shown: Vec<usize> = if endpoint == Endpoint::Upcoming { self.shown_ahead(day).collect() } else { Vec::new() };
        let world = self.world;
        for feeds in &mut self.feeds {
            if feeds.endpoint == endpoint {
                let state = ingest::read(feeds.whole.clone(), ask, fetched, now);
                feeds.whole = FeedState { baseline_at: state.baseline_at.or(Some(now)), ..state };
            }
            match endpoint {
                Endpoint::TokenList => {
                    for (token, of) in feeds.tokens.iter_mut().zip(&world.tokens) {
                        let corrected = of.corrections.iter().filter(|one| one.is_marked).map(|one| one.day);
                        let marks = corrected.chain(of.idle_marks.iter().copied()).filter(|at| *at <= day);
                        token.last_updated = Some(world.at(marks.fold(0.0, f64::max)));
                    }
                }
                _ if feeds.endpoint == Endpoint::UnlockEvents => {
                    for number in &shown {
                        let last = self.reads[*number].last().copied().unwrap_or(f64::INFINITY);
                        let differs = |of: &super::world::Correction| of.is_shown && of.day > last && of.day <= day;
                        if world.tokens[*number].corrections.iter().any(differs)
                            && let Some(feed) = &mut feeds.tokens[*number].feed
                        {
                            feed.stale = true;
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Tokens that `upcoming` shows.
    fn shown_ahead(&self, day: f64) -> impl Iterator<Item = usize> {
        let is_ahead = move |events: &[(f64, f64)]| {
            events.get(events.partition_point(|(at, _)| *at <= day)).is_some_and(|(at, _)| *at <= day + HORIZON)
        };
        self.world.tokens.iter().enumerate().filter(move |(_, token)| is_ahead(&token.events)).map(|(number, _)| number)
    }
}

//! What to ask in one tick of an endpoint's schedule. Pure: what is known, the allowance and `now` in, a list of asks out.
//!
//! The token list says which tokens there are and when each last changed; `upcoming` and earlier answers say which schedules are to
//! be read again. What was never read comes first, then proof and retries, then events that are near, then what changed; what no
//! mark speaks of is looked at again with the credits that would otherwise expire, the longest unread first.

pub mod month;
mod retry;

use std::collections::HashSet;

use chrono::{NaiveDate, TimeDelta};

use crate::budget::{Allowance, PollReason};
use model::{ContentHash, Endpoint, FeedState, PlanToken, PollRequest, Timestamp, TokenId, Watch, config};

/// First day of all: undated parts stand at the epoch.
const FIRST_DAY: NaiveDate = day_of(1970, 1, 1);
/// Last day of all. No schedule is known that runs on as long.
const LAST_DAY: NaiveDate = day_of(2199, 12, 31);

/// How often linear segments are read of a token whose list entry has no mark of change. A correction takes the source days to apply; a
/// week costs about four credits a month, beside the hundred and more of looking at the cliffs four times a day.
const SEGMENTS_WITHOUT_MARK: TimeDelta = TimeDelta::days(7);

const fn day_of(year: i32, month: u32, day: u32) -> NaiveDate {
    match NaiveDate::from_ymd_opt(year, month, day) {
        Some(day) => day,
        None => NaiveDate::MIN,
    }
}

/// One thing to ask.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedPoll {
    /// What.
    pub request: PollRequest,
    /// Hash of the last answer; none where it must be parsed again, since it may prove a removal.
    pub known: Option<ContentHash>,
    pub why: PollReason,
    /// Credits that it cost last time; one where it was never read.
    pub cost: u64,
    /// The token's mark of change, to be kept with the feed once it is read.
    pub mark: Option<Timestamp>,
    /// Linear segments are asked for beside it, at one credit of its cost: the version that is read does not show them.
    pub with_segments: bool,
}

/// What one tick asks, and what it leaves for later.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PollPlan {
    /// In the order in which they are asked.
    pub asks: Vec<PlannedPoll>,
    /// Feeds that wait for more credits, for people to see: how many of each kind.
    pub deferred: Vec<(PollReason, u32)>,
    /// Feeds that need no look now.
    pub resting: u32,
    /// Nothing was asked because the credits are spent until this instant.
    pub spent_until: Option<Timestamp>,
}

impl PollPlan {
    /// Credits that it will cost if every answer is as long as the last one.
    pub fn cost(&self) -> u64 {
        self.asks.iter().map(|ask| ask.cost).sum()
    }
}

/// What planning goes by.
#[derive(Clone, Copy, Debug)]
pub struct PlanBasis<'a> {
    /// What may be spent.
    pub allowance: Allowance,
    /// Credits that regular list walks will want during the rest of today.
    pub backbone_today: u64,
    /// Ticks of per-token endpoints left today, this one included.
    pub ticks_today: u32,
    /// Windows that are asked for.
    pub source: &'a config::SourceSettings,
    /// How near an event must be to come first.
    pub near: TimeDelta,
    /// The time of the tick.
    pub now: Timestamp,
}

impl PlanBasis<'_> {
    /// First and last day to ask an endpoint for.
    fn days(&self, endpoint: Endpoint) -> (NaiveDate, NaiveDate) {
        let has_row_a_day = matches!(endpoint, Endpoint::DailyEmission | Endpoint::WeeklyEmission);
        let day = |reach: config::Reach, years: i64, ends: NaiveDate, sign: i32| {
            let delta = match reach {
                config::Reach::All if has_row_a_day => TimeDelta::days(365 * years),
                // Days that do not move with today: what is asked is then never a border.
                config::Reach::All => return ends,
                config::Reach::Span(span) => span.delta(),
            };
            self.now.checked_add_signed(delta * sign).unwrap_or(self.now).date_naive()
        };
        (day(self.source.history, 3, FIRST_DAY, -1), day(self.source.horizon, 5, LAST_DAY, 1))
    }
}

/// Tokens to plan for: those known that are watched, and those that the config names, whether the list has them or not.
pub fn watched(mut known: Vec<PlanToken>, watch: &Watch) -> Vec<PlanToken> {
    known.retain(|token| watch.covers(&token.id));
    let there: HashSet<TokenId> = known.iter().map(|token| token.id.clone()).collect();
    known.extend(watch.named().iter().filter(|id| !there.contains(*id)).map(|id| PlanToken::unknown(id.clone())));
    known
}

/// Plans an endpoint that is asked once for everything.
pub fn plan_whole(endpoint: Endpoint, feed: &FeedState, basis: &PlanBasis<'_>) -> PollPlan {
    let request = match endpoint {
        Endpoint::Upcoming => PollRequest::Upcoming {
            start: basis.now.date_naive(),
            end: basis.now.checked_add_signed(basis.source.upcoming_horizon.delta()).unwrap_or(basis.now).date_naive(),
        },
        Endpoint::Investors => PollRequest::Investors,
        _ => PollRequest::TokenList,
    };
    let why = match feed {
        FeedState { baseline_at: None, .. } => PollReason::First,
        FeedState { failing_since: Some(_), .. } => PollReason::Retry,
        _ => PollReason::Backbone,
    };
    let ask = PlannedPoll { request, known: feed.hash, why, cost: u64::from(feed.cost.max(1)), mark: None, with_segments: false };
    grant(vec![ask], 0, basis)
}

/// Plans an endpoint that is asked once for each token. `tokens` are those that are watched.
pub fn plan_tokens(endpoint: Endpoint, tokens: &[PlanToken], basis: &PlanBasis<'_>) -> PollPlan {
    let mut resting = 0;
    let mut asks: Vec<(PlannedPoll, Option<Timestamp>, Option<Timestamp>)> = Vec::new();
    for token in tokens {
        let absent = match endpoint {
            Endpoint::Burn => token.has_burn == Some(false),
            Endpoint::Buyback => token.has_buyback == Some(false),
            _ => false,
        };
        let fallback = FeedState::default();
        let feed = token.feed.as_ref().unwrap_or(&fallback);
        // The list says that there is nothing to read: believed, unless something was read before. What goes on failing waits.
        if (absent && feed.baseline_at.is_none()) || !retry::is_due(feed, basis.now) {
            resting += 1;
            continue;
        }
        let (start, end) = basis.days(endpoint);
        let is_auto = endpoint == Endpoint::UnlockEvents && basis.source.unlock_events == config::EndpointVersion::Auto;
        let with_segments = is_auto && needs_segments(token, feed, basis.now);
        let ask = PlannedPoll {
            request: PollRequest::Token { endpoint, token: token.id.clone(), start, end },
            known: feed.hash.filter(|_| feed.missing.is_empty() && feed.held_since.is_none() && !with_segments),
            why: reason(token, feed, basis),
            // The older version walks as many pages again.
            cost: u64::from(feed.cost.max(1)) << u32::from(with_segments),
            mark: token.last_updated,
            with_segments,
        };
        asks.push((ask, token.next_event, feed.read_at));
    }
    asks.sort_by(|(a, a_next, a_read), (b, b_next, b_read)| {
        let far = basis.now + TimeDelta::days(36_500);
        let soonest = |ask: &PlannedPoll, next: &Option<Timestamp>| match ask.why {
            PollReason::Verify => far,
            _ => next.unwrap_or(far),
        };
        (a.why, soonest(a, a_next), a_read).cmp(&(b.why, soonest(b, b_next), b_read))
    });
    grant(asks.into_iter().map(|(ask, ..)| ask).collect(), resting, basis)
}

/// Plans the details of investors whose latest round is new.
pub fn plan_investors(ids: impl IntoIterator<Item = String>, basis: &PlanBasis<'_>) -> PollPlan {
    let asks = ids
        .into_iter()
        .map(|id| PlannedPoll {
            request: PollRequest::Investor { id },
            known: None,
            why: PollReason::Changed,
            cost: 1,
            mark: None,
            with_segments: false,
        })
        .collect();
    grant(asks, 0, basis)
}

/// Whether linear segments are to be read beside the cliffs: at first sight, once for each mark of change, and to confirm a removal.
/// Everything else would cost a credit for what did not move.
fn needs_segments(token: &PlanToken, feed: &FeedState, now: Timestamp) -> bool {
    let Some(read) = token.segments else { return true };
    let has_moved = match token.last_updated {
        Some(mark) => read.mark != Some(mark),
        // A clock that was set back must not put it off.
        None => (now - read.at).abs() >= SEGMENTS_WITHOUT_MARK,
    };
    has_moved || !feed.missing.is_empty() || feed.held_since.is_some()
}

fn reason(token: &PlanToken, feed: &FeedState, basis: &PlanBasis<'_>) -> PollReason {
    if feed.baseline_at.is_none() {
        return if retry::fails_again(feed) { PollReason::Retry } else { PollReason::First };
    }
    if !feed.missing.is_empty() || feed.held_since.is_some() {
        return PollReason::Confirm;
    }
    if feed.failing_since.is_some() {
        return PollReason::Retry;
    }
    let has_changed = feed.stale || token.last_updated.is_none() || token.last_updated != feed.mark;
    let is_near = token.next_event.is_some_and(|at| at >= basis.now && at <= basis.now + basis.near);
    match (has_changed, is_near) {
        (true, true) => PollReason::Near,
        (true, false) => PollReason::Changed,
        (false, _) => PollReason::Verify,
    }
}

/// Takes asks in their order for as long as the allowance of each one's kind lasts.
fn grant(asks: Vec<PlannedPoll>, resting: u32, basis: &PlanBasis<'_>) -> PollPlan {
    let mut plan = PollPlan { resting, ..PollPlan::default() };
    if basis.allowance.is_spent() && !asks.is_empty() {
        plan.spent_until = Some(basis.allowance.reset_at);
    }
    let mut allowance = basis.allowance;
    // What is merely looked at again shares the rest of the day with the lists and with the later ticks.
    let mut spare = allowance.today.map(|today| today.saturating_sub(basis.backbone_today) / u64::from(basis.ticks_today.max(1)));
    for mut ask in asks {
        let most = match ask.why {
            PollReason::Verify => allowance.of(PollReason::Verify).zip(spare).map(|(today, spare)| today.min(spare)),
            why => allowance.of(why),
        };
        // Cliffs alone are better than nothing, but where something moved: half of that would be told as something else.
        let may_do_without = matches!(ask.why, PollReason::First | PollReason::Retry | PollReason::Verify);
        if ask.with_segments && may_do_without && most.is_some_and(|most| most < ask.cost && ask.cost / 2 <= most) {
            ask.with_segments = false;
            ask.cost /= 2;
        }
        if most.is_none_or(|most| ask.cost <= most) {
            allowance = allowance.after(ask.cost);
            if ask.why == PollReason::Verify {
                spare = spare.map(|spare| spare.saturating_sub(ask.cost));
            }
            plan.asks.push(ask);
        } else {
            match plan.deferred.iter_mut().find(|(why, _)| *why == ask.why) {
                Some((_, count)) => *count += 1,
                None => plan.deferred.push((ask.why, 1)),
            }
        }
    }
    plan
}

#[cfg(test)]
mod tests;

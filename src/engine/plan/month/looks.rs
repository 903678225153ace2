//! How late corrections of schedules are noticed, and whose schedule is read how often: in a month that is laid out, or by the reads
//! that were made. Pure.

use std::collections::HashMap;

use chrono::TimeDelta;
use serde::Serialize;

use crate::plan::worth::{self, Beliefs, Expected};
use crate::plan::{self, EndpointFeeds};
use model::{Endpoint, PlanToken, Timestamp, TokenId};

/// Tokens that are named, of those read most and of those read least.
const NAMED: usize = 10;

/// How often a token's schedule is read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TokenLooks {
    pub token: TokenId,
    pub looks: u32,
}

/// How a token's schedule is read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TokenPace {
    pub looks: u32,
    /// Hours between two reads, as a correction meets them that comes at any time.
    gap: f64,
    /// The longest of these times, hours.
    longest: f64,
}

impl TokenPace {
    /// So many looks, evenly over so many hours; one that is not read in them waits for as long as it already did.
    pub(super) fn evenly(looks: u32, hours: f64, token: &PlanToken, now: Timestamp) -> Self {
        let read_at = token.feed.as_ref().and_then(|feed| feed.read_at);
        let age = read_at.map_or(worth::NEVER_DAYS, |at| worth::days(now - at)) * 24.0;
        let gap = if looks == 0 { hours.max(age) } else { hours / f64::from(looks) };
        Self { looks, gap, longest: gap }
    }

    /// Looks at these instants, in order, since the token was first read or the span began.
    fn at(reads: &[Timestamp], token: &PlanToken, since: Timestamp, now: Timestamp) -> Self {
        let baseline = token.feed.as_ref().and_then(|feed| feed.baseline_at);
        let mut last = baseline.map_or(since, |baseline| baseline.max(since));
        let (mut squares, mut sum, mut longest) = (0.0, 0.0, 0.0_f64);
        for at in reads.iter().copied().chain([now]) {
            let gap = worth::days(at - last) * 24.0;
            last = last.max(at);
            (squares, sum, longest) = (squares + gap * gap, sum + gap, longest.max(gap));
        }
        let gap = if sum > 0.0 { squares / sum } else { 0.0 };
        Self { looks: u32::try_from(reads.len()).unwrap_or(u32::MAX), gap, longest }
    }
}

/// How late corrections are noticed, and whose schedule is read most and least.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LookSummary {
    /// Hours until a correction of a schedule is noticed: on average, and at worst, where nothing tells of it.
    pub noticed_hours: Option<(f64, f64)>,
    pub most_read: Vec<TokenLooks>,
    pub least_read: Vec<TokenLooks>,
}

impl LookSummary {
    /// `paces` are those of the tokens of the schedules' feeds, in their order; `lists` the hours between two looks at the token list and
    /// at `upcoming`; `near` is how near an event must be to weigh more.
    pub(super) fn of(feeds: &[EndpointFeeds], paces: &[TokenPace], lists: [f64; 2], near: TimeDelta, now: Timestamp) -> Self {
        let Some(schedules) = schedules(feeds) else { return Self::default() };
        let beliefs = Beliefs::of(&schedules.tokens, plan::listed_at(feeds), now);
        let (mut late, mut rates, mut worst) = (0.0, 0.0, 0.0_f64);
        for (token, pace) in schedules.tokens.iter().zip(paces) {
            let expected = beliefs.expect(Endpoint::UnlockEvents, schedules.is_heard, token, near, now);
            late += expected.rate * lateness(&expected, pace.gap, lists);
            rates += expected.rate;
            worst = worst.max(pace.longest);
        }
        let named = |by: &dyn Fn(u32) -> u32| {
            let looks = |(token, pace): (&PlanToken, &TokenPace)| TokenLooks { token: token.id.clone(), looks: pace.looks };
            let mut all: Vec<TokenLooks> = schedules.tokens.iter().zip(paces).map(looks).collect();
            all.sort_by(|a, b| (by(a.looks), &a.token).cmp(&(by(b.looks), &b.token)));
            all.truncate(NAMED);
            all
        };
        Self {
            noticed_hours: (rates > 0.0).then_some((late / rates, worst)),
            most_read: named(&|looks| u32::MAX - looks),
            least_read: named(&|looks| looks),
        }
    }

    /// What came of the reads of schedules since an instant. `lists` is how often the token list and `upcoming` were asked in that time.
    pub fn of_reads(
        feeds: &[EndpointFeeds],
        reads: Vec<(TokenId, Timestamp)>,
        lists: [u64; 2],
        near: TimeDelta,
        (since, now): (Timestamp, Timestamp),
    ) -> Self {
        let mut by_token: HashMap<TokenId, Vec<Timestamp>> = HashMap::new();
        for (token, at) in reads {
            by_token.entry(token).or_default().push(at);
        }
        by_token.values_mut().for_each(|reads| reads.sort_unstable());
        let hours = worth::days(now - since) * 24.0;
        let pace = |token: &PlanToken| {
            let reads = by_token.get(&token.id).map_or(&[][..], Vec::as_slice);
            TokenPace::at(reads, token, since, now)
        };
        let paces: Vec<TokenPace> = schedules(feeds).into_iter().flat_map(|feeds| feeds.tokens.iter().map(pace)).collect();
        Self::of(feeds, &paces, lists.map(|looks| hours / plan::real(looks.max(1))), near, now)
    }
}

fn schedules(feeds: &[EndpointFeeds]) -> Option<&EndpointFeeds> {
    feeds.iter().find(|feeds| feeds.endpoint == Endpoint::UnlockEvents)
}

/// Hours until a correction is noticed that comes at any time: half of the gap until somebody tells.
fn lateness(expected: &Expected, gap: f64, [list, upcoming]: [f64; 2]) -> f64 {
    let alone = (1.0 - expected.by_mark - expected.by_upcoming).max(0.0);
    (alone * gap + expected.by_mark * list.min(gap) + expected.by_upcoming * upcoming.min(gap)) / 2.0
}

#[cfg(test)]
mod tests;

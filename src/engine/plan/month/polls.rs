//! How often schedules are polled, and how late their corrections are noticed: in a planned month, or by actual polls. Pure.

use std::collections::HashMap;

use chrono::TimeDelta;
use serde::Serialize;

use crate::plan::priority::{self, CorrectionModel, FeedEstimate, ListTrust};
use crate::plan::{self, EndpointFeeds};
use model::{Endpoint, PlanToken, Timestamp, TokenId};

/// The maximum length of the lists of the most and of the least frequently polled tokens.
const MAX_NAMED: usize = 10;

/// The number of polls of a token's schedule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TokenPolls {
    pub token: TokenId,
    pub polls: u32,
}

/// The number of polls of a token's schedule, and the time between them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TokenPace {
    pub polls: u32,
    /// Mean hours between two polls, weighted by the length of the gap: a random instant falls into a long gap more often.
    gap: f64,
    /// The longest gap in hours.
    longest: f64,
}

impl TokenPace {
    /// Returns the pace of planned polls, each of which stands for `slots` polls at equal distances. Without polls, the gap is the age of
    /// the feed at the end.
    pub(super) fn planned(polls: &[Timestamp], slots: f64, token: &PlanToken, (start, end): (Timestamp, Timestamp)) -> Self {
        if polls.is_empty() {
            let read_at = token.feed.as_ref().and_then(|feed| feed.read_at);
            let age = read_at.map_or(priority::NEVER_DAYS, |at| priority::days(end - at)) * 24.0;
            return Self { polls: 0, gap: age, longest: age };
        }
        let Self { polls, gap, longest } = Self::from_polls(polls, token, start, end);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "polls of a month; a cast keeps the bounds")]
        let polls = (f64::from(polls) * slots).round() as u32;
        Self { polls, gap: gap / slots, longest: longest / slots }
    }

    /// Returns the pace of polls at these instants, in chronological order. It starts at `since` or at the token's baseline, if later.
    fn from_polls(polls: &[Timestamp], token: &PlanToken, since: Timestamp, now: Timestamp) -> Self {
        let baseline = token.feed.as_ref().and_then(|feed| feed.baseline_at);
        let mut last = baseline.map_or(since, |baseline| baseline.max(since));
        let (mut squares, mut sum, mut longest) = (0.0, 0.0, 0.0_f64);
        for at in polls.iter().copied().chain([now]) {
            let gap = priority::days(at - last) * 24.0;
            last = last.max(at);
            (squares, sum, longest) = (squares + gap * gap, sum + gap, longest.max(gap));
        }
        let gap = if sum > 0.0 { squares / sum } else { 0.0 };
        Self { polls: u32::try_from(polls.len()).unwrap_or(u32::MAX), gap, longest }
    }
}

/// The delay until corrections are noticed, and the most and the least frequently polled tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PollSummary {
    /// Hours until a correction of a schedule is noticed: the mean, and the worst case, in which no list reports it.
    pub noticed_hours: Option<(f64, f64)>,
    pub most_read: Vec<TokenPolls>,
    pub least_read: Vec<TokenPolls>,
}

impl PollSummary {
    /// Summarizes polls of schedules. `paces` is parallel to the tokens of the schedules. `lists` contains the hours between two polls of
    /// the token list and of `upcoming`. `near` is the time scale within which the next event raises a token's weight, and `trust` what to
    /// assume about the lists.
    pub(super) fn from_paces(
        feeds: &[EndpointFeeds],
        paces: &[TokenPace],
        lists: [f64; 2],
        (near, trust): (TimeDelta, ListTrust),
        now: Timestamp,
    ) -> Self {
        let Some(schedules) = schedules(feeds) else { return Self::default() };
        let model = CorrectionModel::learn(&schedules.tokens, plan::listed_at(feeds), now).with_trust(trust);
        let (mut delays, mut rates, mut worst) = (0.0, 0.0, 0.0_f64);
        for (token, pace) in schedules.tokens.iter().zip(paces) {
            let estimate = model.estimate(Endpoint::UnlockEvents, schedules.is_subscribed, token, near, now);
            delays += estimate.rate * mean_delay(&estimate, pace.gap, lists);
            rates += estimate.rate;
            worst = worst.max(pace.longest);
        }
        let first_by = |rank: &dyn Fn(u32) -> u32| {
            let polls = |(token, pace): (&PlanToken, &TokenPace)| TokenPolls { token: token.id.clone(), polls: pace.polls };
            let mut all: Vec<TokenPolls> = schedules.tokens.iter().zip(paces).map(polls).collect();
            all.sort_by(|a, b| (rank(a.polls), &a.token).cmp(&(rank(b.polls), &b.token)));
            all.truncate(MAX_NAMED);
            all
        };
        Self {
            noticed_hours: (rates > 0.0).then_some((delays / rates, worst)),
            most_read: first_by(&|polls| u32::MAX - polls),
            least_read: first_by(&|polls| polls),
        }
    }

    /// Summarizes the actual polls of schedules since an instant. `lists` contains the numbers of polls of the token list and of `upcoming`
    /// in that time.
    pub fn from_polls(
        feeds: &[EndpointFeeds],
        polls: Vec<(TokenId, Timestamp)>,
        lists: [u64; 2],
        near: TimeDelta,
        (since, now): (Timestamp, Timestamp),
    ) -> Self {
        let mut by_token: HashMap<TokenId, Vec<Timestamp>> = HashMap::new();
        for (token, at) in polls {
            by_token.entry(token).or_default().push(at);
        }
        by_token.values_mut().for_each(|polls| polls.sort_unstable());
        let hours = priority::days(now - since) * 24.0;
        let pace = |token: &PlanToken| {
            let polls = by_token.get(&token.id).map_or(&[][..], Vec::as_slice);
            TokenPace::from_polls(polls, token, since, now)
        };
        let paces: Vec<TokenPace> = schedules(feeds).into_iter().flat_map(|feeds| feeds.tokens.iter().map(pace)).collect();
        Self::from_paces(feeds, &paces, lists.map(|polls| hours / plan::real(polls.max(1))), (near, ListTrust::Learned), now)
    }
}

/// Returns the schedules among the feeds of all endpoints.
pub(super) fn schedules(feeds: &[EndpointFeeds]) -> Option<&EndpointFeeds> {
    feeds.iter().find(|feeds| feeds.endpoint == Endpoint::UnlockEvents)
}

/// Returns the mean hours until a correction is noticed: half of the gap between two polls of the feed, or of the list that reports it.
fn mean_delay(estimate: &FeedEstimate, gap: f64, [list, upcoming]: [f64; 2]) -> f64 {
    let unlisted = (1.0 - estimate.by_mark - estimate.by_upcoming).max(0.0);
    (unlisted * gap + estimate.by_mark * list.min(gap) + estimate.by_upcoming * upcoming.min(gap)) / 2.0
}

#[cfg(test)]
mod tests;

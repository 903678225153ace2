//! The priority of a poll: the expected reduction of the time until a correction is noticed, per credit. Pure.
//!
//! Corrections of a feed arrive as a Poisson process of rate λ. Each has a cost that grows until a poll finds it. Let `z(u)` be the
//! expected number of unnoticed corrections `u` days after the last poll. The benefit of a poll after τ days is
//!
//! ```text
//! V(τ) = w · (τ·z(τ) − ∫₀^τ z(u) du) / c        z(u) = λu  gives  V = w·λτ²/2c
//! ```
//!
//! where `w` is the weight of the endpoint's corrections and `c` the cost in credits. Always polling the feed with the highest V polls
//! each feed every `√(2μc/wλ)` days, with one price μ for a credit. That is optimal for the age of copies under a budget (Cho and
//! Garcia-Molina, "Effective page refresh policies for web crawlers", TODS 2003). It is an index policy, which needs no solver (Azar,
//! Horvitz, Lubetzky, Peres, and Shahaf, "Tractable near-optimal policies for crawling", PNAS 2018). V is unbounded, so no feed starves.
//!
//! - λ is estimated from n corrections in T days, with a Gamma prior whose mean and spread come from all feeds of the endpoint.
//! - The token list's mark reports a share of the corrections, and `upcoming` reports another share (a Dirichlet posterior over the whole
//!   source, adjusted by the feed's own history). A correction counts for or against the token list once the list was polled after it
//!   ([`list_report`]). A correction that a list reports goes unnoticed only until the next poll of the list. Tokens are therefore polled
//!   less often if lists report corrections.
//! - Corrections come in batches. After several corrections that no list reported, feeds that were not polled since count as reported
//!   (see `burst`).
//! - A current report adds π·τ, where π is the share of such reports that were right (a Beta posterior).
//! - The benefit of a list is the sum of what it would report about all feeds.

use chrono::TimeDelta;

use super::burst::Burst;
use model::{Endpoint, FeedState, Findings, ListReport, PlanToken, Timestamp};

/// The prior mean number of days between two corrections of a feed, from the corrections in `data/revisions`.
const PRIOR_DAYS: f64 = 800.0;
/// Candidate shapes of the Gamma distribution of the rates, with equal prior probability. A small shape means that a few feeds are
/// corrected far more often than the rest, a large one that all rates are similar.
const SHAPES: [f64; 6] = [0.3, 0.6, 1.2, 2.5, 6.0, 40.0];
/// Beta prior for whether the token list's mark reports a correction, given that it reports any. Weak, so that the first correction
/// outweighs it in either direction: a source either maintains its marks or does not.
const PRIOR_MARK: [f64; 2] = [0.475, 0.025];
/// Beta prior for whether only `upcoming` reports a correction.
const PRIOR_UPCOMING: [f64; 2] = [0.0125, 0.4875];
/// The prior probability that a list never reports corrections. With zero, a list that never reported any would be polled for years,
/// because even a small share of the corrections of all feeds seems to justify many credits. The first reported correction rules this
/// case out, so a high value costs little: a list that reports is polled less often only until then. With 0.75, a new database behind a
/// silent list notices corrections of 30 schedules 3% later for two months.
const PRIOR_SILENT: f64 = 0.9;
/// Beta prior for whether a report is right: right, wrong.
const PRIOR_RIGHT: [f64; 2] = [1.0, 1.0];
/// The maximum weight of the observed corrections, so that the model adapts if the source changes its behavior.
const MAX_EVIDENCE: f64 = 60.0;
/// The maximum number of corrections of one feed in a likelihood.
const MAX_FOUND: u32 = 60;
/// The number of polls at which a feed's own history weighs as much as the history of all feeds.
const OWN_WEIGHT: f64 = 3.0;
/// The maximum corrections per day of a feed. Without it, feeds with daily rows would take the credits of all schedules.
const MAX_RATE: f64 = 12.0 / 365.0;
/// The minimum probability at which a report raises the poll above regular polls.
const MIN_REPORT_PROBABILITY: f64 = 0.2;
/// The age, in days, assumed for a feed that was never polled.
pub const NEVER_DAYS: f64 = 365.0;
/// The same for a feed that follows the schedule. Lower, because its first read shows little that the schedule does not show.
const UNREAD_FOLLOWER_DAYS: f64 = 30.0;
/// The weight of changes on an endpoint that no rule subscribes to.
const UNSUBSCRIBED_WEIGHT: f64 = 1e-4;
/// The weight of a correction that only a following endpoint shows ([`follows`]), relative to a correction of the schedule.
const FOLLOWER_WEIGHT: f64 = 0.0005;
/// The probability that a correction in a related feed shows in this one as well.
const SIGN_RIGHT: f64 = 0.5;
/// The weight of an expected new row, such as a weekly burn, relative to a correction of a known fact. Rows are many times more frequent
/// than corrections, so with this weight a feed of rows is polled about half as often as a schedule.
const ROW_WEIGHT: f64 = 0.005;
/// The share of market cap, in percent, from which an event has the maximum weight.
const LARGE_PERCENT: f64 = 5.0;

/// Days since the last poll of each list; infinite if it was never polled.
#[derive(Clone, Copy, Debug)]
pub struct ListAges {
    pub token_list: f64,
    pub upcoming: f64,
}

/// An assumption of a plan about the lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListTrust {
    /// The lists report as many corrections as past polls suggest.
    #[default]
    Learned,
    /// The token list reports nearly all corrections.
    Reporting,
    /// The lists report no corrections.
    Silent,
}

/// The share of corrections that the token list reports under [`ListTrust::Reporting`]: about what is learned of one that reported all.
const REPORTING_SHARE: f64 = 0.995;

/// The minimum share of corrections that a list was found to report, or not to report, from which an assumption counts as true.
const MIN_LEARNED_SHARE: f64 = 0.9;

/// The statistics of an endpoint's corrections, learned from past polls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CorrectionModel {
    /// Mean corrections per day of a feed.
    pub rate: f64,
    /// Whether a correction has shown whether the token list reports any.
    pub(super) has_decided: bool,
    /// The probability of each of [`SHAPES`].
    shapes: [f64; SHAPES.len()],
    /// The share of corrections that the token list's mark reports.
    pub by_mark: f64,
    /// The share of corrections that only `upcoming` reports.
    pub by_upcoming: f64,
    /// The share of new marks that were right.
    right_marks: f64,
    /// The share of `upcoming` reports that were right.
    right_upcoming: f64,
    /// A suspected batch of corrections.
    burst: Option<Burst>,
    /// When the token list was last polled.
    listed_at: Option<Timestamp>,
    trust: ListTrust,
}

/// The estimate for one feed.
#[derive(Clone, Copy, Debug)]
pub struct FeedEstimate {
    /// Corrections per day, multiplied by the weight of a correction.
    pub rate: f64,
    /// The share of corrections that the token list's mark reports.
    pub by_mark: f64,
    /// The share of corrections that only `upcoming` reports.
    pub by_upcoming: f64,
    /// The probability that a reported correction is unread, multiplied by the weight of a correction.
    pub reported: f64,
    /// Days since the last poll of the feed.
    pub age: f64,
}

impl CorrectionModel {
    /// Learns the model from the findings of an endpoint's feeds and from the marks of the token list, which was polled at `listed_at`.
    pub fn learn(tokens: &[PlanToken], listed_at: Option<Timestamp>, now: Timestamp) -> Self {
        let feeds = tokens.iter().filter_map(|token| token.feed.as_ref());
        let (mut all, mut observed) = (Findings::default(), 0.0);
        let (mut ages, mut count) = (0.0, 0.0);
        for token in tokens {
            let Some(feed) = &token.feed else { continue };
            observed += observed_days(feed);
            ages += feed.read_at.map_or(0.0, |at| days(now - at));
            count += f64::from(u8::from(feed.read_at.is_some()));
            let of = settled(feed, token.last_updated, listed_at);
            all.by_mark = all.by_mark.saturating_add(of.by_mark);
            all.by_upcoming = all.by_upcoming.saturating_add(of.by_upcoming);
            all.unreported = all.unreported.saturating_add(of.unreported);
            all.undecided = all.undecided.saturating_add(of.undecided);
            all.undecided_upcoming = all.undecided_upcoming.saturating_add(of.undecided_upcoming);
            all.idle_marks = all.idle_marks.saturating_add(of.idle_marks);
            all.idle_upcoming = all.idle_upcoming.saturating_add(of.idle_upcoming);
        }
        let by_mark = reported_share(PRIOR_MARK, all.by_mark, all.by_upcoming.saturating_add(all.unreported));
        let by_upcoming = reported_share(PRIOR_UPCOMING, all.by_upcoming, all.by_mark.saturating_add(all.unreported));
        let right_share = |right, wrong| posterior(PRIOR_RIGHT, [right, wrong])[0];
        let rate = (1.0 + f64::from(all.found())) / (PRIOR_DAYS + observed);
        // The interval between polls of a feed is twice its mean age.
        let chance = rate * 2.0 * ages / f64::max(count, 1.0);
        Self {
            rate,
            has_decided: all.by_mark.saturating_add(all.by_upcoming).saturating_add(all.unreported) > 0,
            shapes: shapes(feeds.clone(), rate),
            by_mark,
            by_upcoming: by_upcoming.min(1.0 - by_mark),
            right_marks: right_share(all.by_mark, all.idle_marks),
            right_upcoming: right_share(all.by_upcoming.saturating_add(all.undecided_upcoming), all.idle_upcoming),
            burst: Burst::detect(feeds, chance, now),
            listed_at,
            trust: ListTrust::Learned,
        }
    }

    /// Returns the model with another assumption about the lists. If past polls have shown that the assumption is true, their figures
    /// are better.
    #[must_use]
    pub fn with_trust(self, trust: ListTrust) -> Self {
        let (by_mark, by_upcoming) = match trust {
            ListTrust::Learned => return self,
            ListTrust::Reporting if self.has_decided && self.by_mark >= MIN_LEARNED_SHARE => return self,
            ListTrust::Silent if self.has_decided && self.by_mark + self.by_upcoming <= 1.0 - MIN_LEARNED_SHARE => return self,
            ListTrust::Reporting => (REPORTING_SHARE, 0.0),
            ListTrust::Silent => (0.0, 0.0),
        };
        Self { by_mark, by_upcoming, trust, ..self }
    }

    /// Returns the expected corrections per day of a feed with `found` corrections in `days`.
    fn rate_of(&self, found: f64, days: f64) -> f64 {
        let rate = |(shape, probability): (f64, &f64)| probability * (shape + found) / (shape / self.rate + days);
        SHAPES.into_iter().zip(&self.shapes).map(rate).sum()
    }

    /// Returns the estimate for a token's feed. `near` is the time scale within which the next event raises the weight.
    pub fn estimate(
        &self,
        endpoint: Endpoint,
        is_subscribed: bool,
        token: &PlanToken,
        near: TimeDelta,
        now: Timestamp,
    ) -> FeedEstimate {
        let none = FeedState::default();
        let feed = token.feed.as_ref().unwrap_or(&none);
        let of = settled(feed, token.last_updated, self.listed_at);
        let found = f64::from(of.found());
        // Undecided corrections do not show which list reports corrections.
        let decided = found - f64::from(of.undecided_count());
        let rate = self.rate_of(found, observed_days(feed)).min(MAX_RATE);
        let own = |all: f64, reported: u32| match self.trust {
            ListTrust::Learned => (OWN_WEIGHT * all + f64::from(reported)) / (OWN_WEIGHT + decided),
            ListTrust::Reporting | ListTrust::Silent => all,
        };
        let right_share = |all: f64, right: u32, wrong: u32| {
            (OWN_WEIGHT * all + f64::from(right)) / (OWN_WEIGHT + f64::from(right) + f64::from(wrong))
        };
        let reported = if of.awaits_segments {
            1.0
        } else if mark_moved(feed, token.last_updated) {
            right_share(self.right_marks, of.by_mark, of.idle_marks)
        } else if feed.stale {
            right_share(self.right_upcoming, of.by_upcoming.saturating_add(of.undecided_upcoming), of.idle_upcoming)
        } else {
            // A feed that follows the schedule finds corrections in batches because the schedules reported them.
            self.burst.filter(|_| follows(endpoint).is_none()).map_or(0.0, |burst| burst.probability(feed))
        };
        let age_if_unread = if follows(endpoint).is_some() { UNREAD_FOLLOWER_DAYS } else { NEVER_DAYS };
        FeedEstimate {
            rate: rate * weight(endpoint, is_subscribed) * urgency(token, near, now),
            by_mark: if token.last_updated.is_some() { own(self.by_mark, of.by_mark) } else { 0.0 },
            by_upcoming: if endpoint == Endpoint::UnlockEvents { own(self.by_upcoming, of.by_upcoming) } else { 0.0 },
            reported: reported * report_weight(endpoint, is_subscribed),
            age: feed.read_at.map_or(age_if_unread, |at| days(now - at)),
        }
    }
}

impl FeedEstimate {
    /// Adds the sign of a correction that a related feed of the token shows, if there is one.
    #[must_use]
    pub fn with_sign(self, is_shown: bool, endpoint: Endpoint, is_subscribed: bool) -> Self {
        let sign = if is_shown { SIGN_RIGHT * report_weight(endpoint, is_subscribed) } else { 0.0 };
        Self { reported: self.reported.max(sign), ..self }
    }

    /// Returns V, the benefit of polling the feed now, not yet divided by the cost.
    pub fn benefit(&self, lists: ListAges) -> f64 {
        let square = |age: f64| age.min(self.age).powi(2);
        let unlisted = (1.0 - self.by_mark - self.by_upcoming).max(0.0) * square(self.age);
        let listed = self.by_mark * square(lists.token_list) + self.by_upcoming * square(lists.upcoming);
        self.rate * (unlisted + listed) / 2.0 + self.reported * self.age
    }

    /// Returns the benefit for this feed of polling a list that reports `share` of its corrections and was last polled `age` days ago.
    pub fn list_benefit(&self, share: f64, age: f64) -> f64 {
        self.rate * share * age.min(self.age).powi(2) / 2.0
    }

    /// Returns whether a correction was reported and such reports are usually right.
    pub fn is_change_reported(&self) -> bool {
        self.reported >= MIN_REPORT_PROBABILITY
    }
}

/// Returns the probability of each of [`SHAPES`], given the findings. Counts with Gamma-distributed rates are negative binomial.
fn shapes<'a>(feeds: impl Iterator<Item = &'a FeedState>, rate: f64) -> [f64; SHAPES.len()] {
    let mut logs = [0.0; SHAPES.len()];
    for feed in feeds {
        let mean = rate * observed_days(feed);
        if mean <= 0.0 {
            continue;
        }
        let found = feed.findings.found().min(MAX_FOUND);
        for (log, shape) in logs.iter_mut().zip(SHAPES) {
            if found > 0 {
                *log += (0..found).map(|n| shape + f64::from(n)).product::<f64>().ln();
            }
            *log += shape * shape.ln() - (shape + f64::from(found)) * (shape + mean).ln();
        }
    }
    let max = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let likelihoods = logs.map(|log| (log - max).exp());
    let sum: f64 = likelihoods.iter().sum();
    likelihoods.map(|likelihood| likelihood / sum)
}

/// Returns whether the token list's mark changed since the feed was last polled.
pub fn mark_moved(feed: &FeedState, mark: Option<Timestamp>) -> bool {
    feed.mark.is_some() && mark.is_some() && feed.mark != mark
}

/// Returns whether the token list, polled at `listed_at`, reports the last correction that a poll of the feed found under an unchanged
/// mark. A list that was not polled after the correction decides nothing: the correction may be newer than the list.
pub fn list_report(feed: &FeedState, mark: Option<Timestamp>, listed_at: Option<Timestamp>) -> ListReport {
    let polled_after = feed.findings.undecided_at.zip(listed_at).is_some_and(|(found, listed)| listed > found);
    match (feed.mark, mark) {
        // A token without a mark decides nothing about the marks of other tokens.
        _ if !polled_after || mark.is_none() => ListReport::NotPolled,
        (Some(known), Some(mark)) if known != mark => ListReport::Reported,
        // The feed was polled before its mark was known, so compare the mark with the time of the baseline.
        (None, Some(mark)) if feed.baseline_at.is_some_and(|baseline| mark > baseline) => ListReport::Reported,
        _ => ListReport::Silent,
    }
}

/// Returns the findings of a feed, with the undecided corrections decided by the token list.
fn settled(feed: &FeedState, mark: Option<Timestamp>, listed_at: Option<Timestamp>) -> Findings {
    feed.findings.settled(list_report(feed, mark, listed_at))
}

/// Returns the endpoint whose corrections also show on `endpoint`. Allocations sum up the schedule, and emissions follow from it. Burns
/// and buybacks are facts of their own.
pub fn follows(endpoint: Endpoint) -> Option<Endpoint> {
    match endpoint {
        Endpoint::Allocations | Endpoint::DailyEmission | Endpoint::WeeklyEmission => Some(Endpoint::UnlockEvents),
        _ => None,
    }
}

/// Returns the weight of a correction or a new row that nothing reports.
fn weight(endpoint: Endpoint, is_subscribed: bool) -> f64 {
    if follows(endpoint).is_some() {
        FOLLOWER_WEIGHT * subscription_weight(is_subscribed)
    } else {
        report_weight(endpoint, is_subscribed)
    }
}

/// Returns the weight of a correction or a new row that was reported.
fn report_weight(endpoint: Endpoint, is_subscribed: bool) -> f64 {
    let of_kind = match endpoint {
        Endpoint::Burn | Endpoint::Buyback | Endpoint::DailyEmission | Endpoint::WeeklyEmission => ROW_WEIGHT,
        _ => 1.0,
    };
    of_kind * subscription_weight(is_subscribed)
}

const fn subscription_weight(is_subscribed: bool) -> f64 {
    if is_subscribed { 1.0 } else { UNSUBSCRIBED_WEIGHT }
}

/// Returns the factor, between 1 and 1.5, by which a near and large next event raises the weight. An unknown size counts as large.
fn urgency(token: &PlanToken, near: TimeDelta, now: Timestamp) -> f64 {
    let Some(until) = token.next_event.map(|at| days(at - now)) else { return 1.0 };
    let size = token.next_size.map_or(1.0, |percent| (percent / LARGE_PERCENT).clamp(0.0, 1.0));
    1.0 + (-until / days(near).max(1.0)).exp() * (0.25 + 0.25 * size)
}

/// Returns the expected share of corrections that a list reports, given that it reported `reported` and missed `missed` of them.
fn reported_share(prior: [f64; 2], reported: u32, missed: u32) -> f64 {
    let share = posterior(prior, [reported, missed])[0];
    if reported > 0 {
        return share;
    }
    // The probability that a list which reports corrections missed all of these.
    let miss = |n: u32| (prior[1] + f64::from(n)) / (prior[0] + prior[1] + f64::from(n));
    let reports_any = (1.0 - PRIOR_SILENT) * (0..missed.min(MAX_FOUND)).map(miss).product::<f64>();
    share * reports_any / (PRIOR_SILENT + reports_any)
}

/// Returns the posterior mean shares. At most [`MAX_EVIDENCE`] of the counts weigh in.
fn posterior(prior: [f64; 2], counts: [u32; 2]) -> [f64; 2] {
    let total: f64 = counts.into_iter().map(f64::from).sum();
    let scale = MAX_EVIDENCE / total.max(MAX_EVIDENCE);
    let all = prior.iter().sum::<f64>() + total * scale;
    let share = |(prior, count): (f64, u32)| (prior + f64::from(count) * scale) / all;
    [share((prior[0], counts[0])), share((prior[1], counts[1]))]
}

/// Returns the time in days over which polls have observed a feed.
pub(super) fn observed_days(feed: &FeedState) -> f64 {
    feed.read_at.zip(feed.baseline_at).map_or(0.0, |(read, baseline)| days(read - baseline))
}

/// Returns a duration in days; zero if it is negative.
#[expect(clippy::cast_precision_loss, reason = "seconds of a century are far below 2^53")]
pub fn days(span: TimeDelta) -> f64 {
    span.num_seconds().max(0) as f64 / 86_400.0
}

#[cfg(test)]
mod tests;

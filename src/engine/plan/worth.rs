//! What a look is worth: by how much it shortens the time until a correction is noticed. Pure.
//!
//! Corrections of a feed come as a Poisson process of rate λ, and cost for as long as nobody noticed them. Let `z(u)` be how many
//! are expected to wait once the last read is `u` days old. The worth of reading now, after τ days, is
//!
//! ```text
//! V(τ) = w · (τ·z(τ) − ∫₀^τ z(u) du) / c        z(u) = λu  gives  V = w·λτ²/2c
//! ```
//!
//! with `w` the weight of the news and `c` the credits of a read. Whoever always reads what has the highest V reads each feed every
//! `√(2μc/wλ)` days, for one price μ of a credit: the optimum for the age of a copy under a budget (Cho and Garcia-Molina,
//! "Effective page refresh policies for web crawlers", TODS 2003). As a rule by index, without a solver, it follows Azar, Horvitz,
//! Lubetzky, Peres and Shahaf, "Tractable near-optimal policies for crawling", PNAS 2018. V grows without end, so nothing starves.
//!
//! - λ is learned: n corrections in T days under a Gamma prior whose mean and spread are those of all feeds of
//!   the endpoint.
//! - A share of the corrections is told by the token list's mark, another by `upcoming` (a Dirichlet posterior, pooled over the source
//!   and bent to the feed's own record). What would have been told waits no longer than since the list was last asked; so where lists
//!   tell, tokens are read less, and where they do not, as if there were none.
//! - What is told now adds π·τ: z jumped by π, the share of such tellings that held (a Beta posterior).
//! - A list is worth what it would tell of all feeds, for its credits.

use chrono::TimeDelta;

use model::{Endpoint, FeedState, Findings, PlanToken, Timestamp};

/// Days in which one feed is corrected once, as long as nothing is known: what the corrections of `data/revisions` come to.
const PRIOR_DAYS: f64 = 800.0;
/// Spread of the rates that is reckoned with at first, as 1/shape, and what that weighs.
const PRIOR_SPREAD: f64 = 0.25;
const SPREAD_WEIGHT: f64 = 20.0;
/// Dirichlet prior of who tells a correction: the list's mark, `upcoming` alone, nobody. The first correction overrules it, in either
/// direction: a source either keeps its marks or does not.
const PRIOR_TOLD: [f64; 3] = [0.475, 0.0125, 0.0125];
/// Beta prior of whether a telling holds: it did, it did not.
const PRIOR_HOLDS: [f64; 2] = [1.0, 1.0];
/// Corrections that are believed at most: a source that changes its ways is found out.
const MOST_EVIDENCE: f64 = 60.0;
/// How many reads of one feed weigh as much as those of all others.
const OWN_WEIGHT: f64 = 3.0;
/// Most corrections a day that are reckoned with: daily rows would take the credits of all schedules.
const MOST_RATE: f64 = 12.0 / 365.0;
/// A telling that holds less often than this waits for its turn, however near an event is.
const LEAST_TRUST: f64 = 0.2;
/// How long ago a feed was read that never was.
const NEVER_DAYS: f64 = 365.0;
/// What news is worth that no rule hears.
const UNHEARD: f64 = 1e-4;
/// What a row is worth that comes by itself, such as the burn of a day, beside a correction of what was known.
const ROW: f64 = 0.1;
/// A market cap share from which on an event is as large as can be, percent.
const LARGE_PERCENT: f64 = 5.0;

/// How old what the lists told is, days; infinite where they were never asked.
#[derive(Clone, Copy, Debug)]
pub struct ListAges {
    pub token_list: f64,
    pub upcoming: f64,
}

/// What was learned of an endpoint of the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beliefs {
    /// Corrections a day of a feed, on average.
    pub rate: f64,
    /// Shape of the Gamma prior: small where some feeds are corrected far more often than others.
    shape: f64,
    /// Share of corrections that the token list's mark tells.
    pub by_mark: f64,
    /// Share that `upcoming` alone tells.
    pub by_upcoming: f64,
    mark_holds: f64,
    upcoming_holds: f64,
}

/// What is expected of one feed.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Corrections a day, times what each is worth.
    pub rate: f64,
    /// Share that the mark tells.
    pub by_mark: f64,
    /// Share that `upcoming` alone tells.
    pub by_upcoming: f64,
    /// How likely a correction waits that was told already.
    pub told: f64,
    /// Days since it was read.
    pub age: f64,
}

impl Beliefs {
    /// Learned from what reading the feeds of an endpoint found.
    pub fn of<'a>(feeds: impl Iterator<Item = &'a FeedState> + Clone) -> Self {
        let (mut all, mut days) = (Findings::default(), 0.0);
        for feed in feeds.clone() {
            days += observed_days(feed);
            let of = feed.findings;
            all.by_mark = all.by_mark.saturating_add(of.by_mark);
            all.by_upcoming = all.by_upcoming.saturating_add(of.by_upcoming);
            all.untold = all.untold.saturating_add(of.untold);
            all.idle_marks = all.idle_marks.saturating_add(of.idle_marks);
            all.idle_upcoming = all.idle_upcoming.saturating_add(of.idle_upcoming);
        }
        let told = posterior(PRIOR_TOLD, [all.by_mark, all.by_upcoming, all.untold]);
        let holds = |held, idle| posterior(PRIOR_HOLDS, [held, idle])[0];
        let rate = (1.0 + f64::from(all.found())) / (PRIOR_DAYS + days);
        Self {
            rate,
            shape: shape(feeds, rate),
            by_mark: told[0],
            by_upcoming: told[1],
            mark_holds: holds(all.by_mark, all.idle_marks),
            upcoming_holds: holds(all.by_upcoming, all.idle_upcoming),
        }
    }

    /// What is expected of a token's feed. `near` is how near an event must be to weigh more.
    pub fn expect(&self, endpoint: Endpoint, is_heard: bool, token: &PlanToken, near: TimeDelta, now: Timestamp) -> Expected {
        let none = FeedState::default();
        let feed = token.feed.as_ref().unwrap_or(&none);
        let of = feed.findings;
        let found = f64::from(of.found());
        let rate = ((self.shape + found) / (self.shape / self.rate + observed_days(feed))).min(MOST_RATE);
        let own = |all: f64, told: u32| (OWN_WEIGHT * all + f64::from(told)) / (OWN_WEIGHT + found);
        let held = |all: f64, held: u32, idle: u32| {
            (OWN_WEIGHT * all + f64::from(held)) / (OWN_WEIGHT + f64::from(held) + f64::from(idle))
        };
        let told = if mark_moved(feed, token.last_updated) {
            held(self.mark_holds, of.by_mark, of.idle_marks)
        } else if feed.stale {
            held(self.upcoming_holds, of.by_upcoming, of.idle_upcoming)
        } else {
            0.0
        };
        Expected {
            rate: rate * weight(endpoint, is_heard) * urgency(token, near, now),
            by_mark: if token.last_updated.is_some() { own(self.by_mark, of.by_mark) } else { 0.0 },
            by_upcoming: if endpoint == Endpoint::UnlockEvents { own(self.by_upcoming, of.by_upcoming) } else { 0.0 },
            told: told * weight(endpoint, is_heard),
            age: feed.read_at.map_or(NEVER_DAYS, |at| days(now - at)),
        }
    }
}

impl Expected {
    /// What reading the feed is worth, V without its cost.
    pub fn worth(&self, lists: ListAges) -> f64 {
        let square = |age: f64| age.min(self.age).powi(2);
        let alone = (1.0 - self.by_mark - self.by_upcoming).max(0.0) * square(self.age);
        let listed = self.by_mark * square(lists.token_list) + self.by_upcoming * square(lists.upcoming);
        self.rate * (alone + listed) / 2.0 + self.told * self.age
    }

    /// What asking a list is worth for this feed, if the list tells `share` of its corrections and was asked `age` days ago.
    pub fn worth_of_list(&self, share: f64, age: f64) -> f64 {
        self.rate * share * age.min(self.age).powi(2) / 2.0
    }

    /// Whether something told of a correction, and such tellings hold.
    pub fn is_told(&self) -> bool {
        self.told >= LEAST_TRUST
    }
}

/// How alike the rates of feeds are, by how the counts spread beyond what Poisson counts do: with mean m they vary by m + m²/shape.
fn shape<'a>(feeds: impl Iterator<Item = &'a FeedState>, rate: f64) -> f64 {
    let (mut beyond, mut squares) = (PRIOR_SPREAD * SPREAD_WEIGHT, SPREAD_WEIGHT);
    for feed in feeds {
        let mean = rate * observed_days(feed);
        beyond += (f64::from(feed.findings.found()) - mean).powi(2) - mean;
        squares += mean * mean;
    }
    1.0 / (beyond / squares).clamp(0.02, 2.0)
}

/// Whether the token list's mark is another than when the feed was last read.
pub fn mark_moved(feed: &FeedState, mark: Option<Timestamp>) -> bool {
    feed.mark.is_some() && mark.is_some() && feed.mark != mark
}

/// What an endpoint's news is worth.
fn weight(endpoint: Endpoint, is_heard: bool) -> f64 {
    let of_kind = match endpoint {
        Endpoint::Burn | Endpoint::Buyback | Endpoint::DailyEmission | Endpoint::WeeklyEmission => ROW,
        _ => 1.0,
    };
    if is_heard { of_kind } else { of_kind * UNHEARD }
}

/// How much more a correction matters the nearer and larger the next event is: up to half
/// as much again. One of unknown size counts as large.
fn urgency(token: &PlanToken, near: TimeDelta, now: Timestamp) -> f64 {
    let Some(until) = token.next_event.map(|at| days(at - now)) else { return 1.0 };
    let size = token.next_size.map_or(1.0, |percent| (percent / LARGE_PERCENT).clamp(0.0, 1.0));
    1.0 + (-until / days(near).max(1.0)).exp() * (0.25 + 0.25 * size)
}

/// Shares after counting, `PRIOR` included.
fn posterior<const N: usize>(prior: [f64; N], counts: [u32; N]) -> [f64; N] {
    let total: f64 = counts.into_iter().map(f64::from).sum();
    let scale = MOST_EVIDENCE / total.max(MOST_EVIDENCE);
    let all = prior.iter().sum::<f64>() + total * scale;
    let mut shares = prior;
    for (share, count) in shares.iter_mut().zip(counts) {
        *share = (*share + f64::from(count) * scale) / all;
    }
    shares
}

fn observed_days(feed: &FeedState) -> f64 {
    feed.read_at.zip(feed.baseline_at).map_or(0.0, |(read, baseline)| days(read - baseline))
}

/// Days of a span; none where it lies in the past.
#[expect(clippy::cast_precision_loss, reason = "seconds of a century are far below 2^53")]
pub fn days(span: TimeDelta) -> f64 {
    span.num_seconds().max(0) as f64 / 86_400.0
}

#[cfg(test)]
mod tests;

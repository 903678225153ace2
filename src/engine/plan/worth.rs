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
//!   and bent to the feed's own record). A find counts for or against the list once the list was asked after it ([`list_word`]). What
//!   would have been told waits no longer than since the list was last asked; so where lists tell, tokens are read less, and where
//!   they do not, as if there were none.
//! - Corrections come in batches: where reads find several that nothing told, what was not read since counts as told (see `burst`).
//! - What is told now adds π·τ: z jumped by π, the share of such tellings that held (a Beta posterior).
//! - A list is worth what it would tell of all feeds, for its credits.

use chrono::TimeDelta;

use super::burst::Burst;
use model::{Endpoint, FeedState, Findings, ListWord, PlanToken, Timestamp};

/// Days in which one feed is corrected once, as long as nothing is known: what the corrections of `data/revisions` come to.
const PRIOR_DAYS: f64 = 800.0;
/// Shapes of the Gamma law of the rates that are reckoned with, all alike likely at first: from some feeds that are corrected far more
/// often than most to rates that are all the same.
const SHAPES: [f64; 6] = [0.3, 0.6, 1.2, 2.5, 6.0, 40.0];
/// Beta prior of whether the list's mark tells a correction, if it tells any: the first one overrules it, in either direction, since a
/// source either keeps its marks or does not.
const PRIOR_MARK: [f64; 2] = [0.475, 0.025];
/// The same of whether `upcoming` alone tells it.
const PRIOR_UPCOMING: [f64; 2] = [0.0125, 0.4875];
/// How likely it is at first that a list tells no correction ever. Without this, one that never told would be asked for years: a
/// small share of the corrections, told for all feeds at once, seems worth many credits. The first correction that it tells ends the
/// doubt. More doubt suits silent lists little better, and delays the first corrections that others tell, which may be a batch.
const PRIOR_SILENT: f64 = 0.25;
/// Beta prior of whether a telling holds: it did, it did not.
const PRIOR_HOLDS: [f64; 2] = [1.0, 1.0];
/// Corrections that are believed at most: a source that changes its ways is found out.
const MOST_EVIDENCE: f64 = 60.0;
/// Corrections of one feed that are gone through at most.
const MOST_FOUND: u32 = 60;
/// How many reads of one feed weigh as much as those of all others.
const OWN_WEIGHT: f64 = 3.0;
/// Most corrections a day that are reckoned with: daily rows would take the credits of all schedules.
const MOST_RATE: f64 = 12.0 / 365.0;
/// A telling that holds less often than this waits for its turn, however near an event is.
const LEAST_TRUST: f64 = 0.2;
/// How long ago a feed was read that never was.
pub const NEVER_DAYS: f64 = 365.0;
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
    /// How likely each of [`SHAPES`] is.
    shapes: [f64; SHAPES.len()],
    /// Share of corrections that the token list's mark tells.
    pub by_mark: f64,
    /// Share that `upcoming` alone tells.
    pub by_upcoming: f64,
    mark_holds: f64,
    upcoming_holds: f64,
    /// Many may have been corrected at once.
    burst: Option<Burst>,
    /// When the token list was last asked.
    listed_at: Option<Timestamp>,
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
    /// Learned from what reading the feeds of an endpoint found until `now`, and what the token list says of it that was asked at
    /// `listed_at`.
    pub fn of(tokens: &[PlanToken], listed_at: Option<Timestamp>, now: Timestamp) -> Self {
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
            all.untold = all.untold.saturating_add(of.untold);
            all.undecided = all.undecided.saturating_add(of.undecided);
            all.undecided_upcoming = all.undecided_upcoming.saturating_add(of.undecided_upcoming);
            all.idle_marks = all.idle_marks.saturating_add(of.idle_marks);
            all.idle_upcoming = all.idle_upcoming.saturating_add(of.idle_upcoming);
        }
        let by_mark = told_share(PRIOR_MARK, all.by_mark, all.by_upcoming.saturating_add(all.untold));
        let by_upcoming = told_share(PRIOR_UPCOMING, all.by_upcoming, all.by_mark.saturating_add(all.untold));
        let holds = |held, idle| posterior(PRIOR_HOLDS, [held, idle])[0];
        let rate = (1.0 + f64::from(all.found())) / (PRIOR_DAYS + observed);
        // A read comes after twice the age that a feed has on average.
        let chance = rate * 2.0 * ages / f64::max(count, 1.0);
        Self {
            rate,
            shapes: shapes(feeds.clone(), rate),
            by_mark,
            by_upcoming: by_upcoming.min(1.0 - by_mark),
            mark_holds: holds(all.by_mark, all.idle_marks),
            upcoming_holds: holds(all.by_upcoming.saturating_add(all.undecided_upcoming), all.idle_upcoming),
            burst: Burst::of(feeds, chance, now),
            listed_at,
        }
    }

    /// Corrections a day that are expected of a feed of which reading found so many in so many days.
    fn rate_of(&self, found: f64, days: f64) -> f64 {
        let of = |(shape, likely): (f64, &f64)| likely * (shape + found) / (shape / self.rate + days);
        SHAPES.into_iter().zip(&self.shapes).map(of).sum()
    }

    /// What is expected of a token's feed. `near` is how near an event must be to weigh more.
    pub fn expect(&self, endpoint: Endpoint, is_heard: bool, token: &PlanToken, near: TimeDelta, now: Timestamp) -> Expected {
        let none = FeedState::default();
        let feed = token.feed.as_ref().unwrap_or(&none);
        let of = settled(feed, token.last_updated, self.listed_at);
        let found = f64::from(of.found());
        // What no list was asked after says nothing of who tells.
        let decided = found - f64::from(of.open());
        let rate = self.rate_of(found, observed_days(feed)).min(MOST_RATE);
        let own = |all: f64, told: u32| (OWN_WEIGHT * all + f64::from(told)) / (OWN_WEIGHT + decided);
        let held = |all: f64, held: u32, idle: u32| {
            (OWN_WEIGHT * all + f64::from(held)) / (OWN_WEIGHT + f64::from(held) + f64::from(idle))
        };
        let told = if of.awaits_segments {
            1.0
        } else if mark_moved(feed, token.last_updated) {
            held(self.mark_holds, of.by_mark, of.idle_marks)
        } else if feed.stale {
            held(self.upcoming_holds, of.by_upcoming.saturating_add(of.undecided_upcoming), of.idle_upcoming)
        } else {
            self.burst.map_or(0.0, |burst| burst.hits(feed))
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

/// How likely each of [`SHAPES`] is, by what was found: counts under a Gamma law of rates are negative binomial.
fn shapes<'a>(feeds: impl Iterator<Item = &'a FeedState>, rate: f64) -> [f64; SHAPES.len()] {
    let mut logs = [0.0; SHAPES.len()];
    for feed in feeds {
        let mean = rate * observed_days(feed);
        if mean <= 0.0 {
            continue;
        }
        let found = feed.findings.found().min(MOST_FOUND);
        for (log, shape) in logs.iter_mut().zip(SHAPES) {
            if found > 0 {
                *log += (0..found).map(|n| shape + f64::from(n)).product::<f64>().ln();
            }
            *log += shape * shape.ln() - (shape + f64::from(found)) * (shape + mean).ln();
        }
    }
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let likely = logs.map(|log| (log - most).exp());
    let sum: f64 = likely.iter().sum();
    likely.map(|likely| likely / sum)
}

/// Whether the token list's mark is another than when the feed was last read.
pub fn mark_moved(feed: &FeedState, mark: Option<Timestamp>) -> bool {
    feed.mark.is_some() && mark.is_some() && feed.mark != mark
}

/// What the token list, asked at `listed_at`, says of the last thing that reading the feed found though its mark had not moved. A
/// list that was asked before and not since says nothing: the correction may have come in between.
pub fn list_word(feed: &FeedState, mark: Option<Timestamp>, listed_at: Option<Timestamp>) -> ListWord {
    let asked_after = feed.findings.undecided_at.zip(listed_at).is_some_and(|(found, listed)| listed > found);
    match (feed.mark, mark) {
        // A token without a mark is not told of at all, which counts against no other.
        _ if !asked_after || mark.is_none() => ListWord::NotAsked,
        (Some(known), Some(mark)) if known != mark => ListWord::Told,
        // No mark was known when the feed was read: its own time says whether it moved since the baseline.
        (None, Some(mark)) if feed.baseline_at.is_some_and(|baseline| mark > baseline) => ListWord::Told,
        _ => ListWord::Silent,
    }
}

/// What reading a feed found, with what the list says of it.
fn settled(feed: &FeedState, mark: Option<Timestamp>, listed_at: Option<Timestamp>) -> Findings {
    feed.findings.settled(list_word(feed, mark, listed_at))
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

/// Share of the corrections that somebody tells who told so many, and so many not.
fn told_share(prior: [f64; 2], told: u32, untold: u32) -> f64 {
    let share = posterior(prior, [told, untold])[0];
    if told > 0 {
        return share;
    }
    // How likely it is that one who tells some would have told none of these.
    let silence = |n: u32| (prior[1] + f64::from(n)) / (prior[0] + prior[1] + f64::from(n));
    let tells = (1.0 - PRIOR_SILENT) * (0..untold.min(MOST_FOUND)).map(silence).product::<f64>();
    share * tells / (PRIOR_SILENT + tells)
}

/// Shares after counting, `PRIOR` included.
fn posterior(prior: [f64; 2], counts: [u32; 2]) -> [f64; 2] {
    let total: f64 = counts.into_iter().map(f64::from).sum();
    let scale = MOST_EVIDENCE / total.max(MOST_EVIDENCE);
    let all = prior.iter().sum::<f64>() + total * scale;
    let share = |(prior, count): (f64, u32)| (prior + f64::from(count) * scale) / all;
    [share((prior[0], counts[0])), share((prior[1], counts[1]))]
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

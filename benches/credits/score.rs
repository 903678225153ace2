//! Scores the delay until corrections are noticed, and compares strategies.

use super::world::{DAYS, Token, World};

/// The days at the end of a world in which a correction may stay unnoticed.
const TAIL: f64 = 90.0;

/// The delays in one world.
#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    /// The mean delay in hours. Counts up to the end of the world for corrections that were never noticed.
    pub mean: f64,
    pub p95: f64,
    /// The fraction that was never noticed.
    pub unseen: f64,
    /// The number of scored corrections.
    pub corrections: f64,
}

impl Score {
    /// Averages several worlds, weighted by their number of corrections.
    pub fn of(worlds: &[Self]) -> Self {
        let all: f64 = worlds.iter().map(|world| world.corrections).sum();
        let mean = |of: fn(&Self) -> f64| worlds.iter().map(|world| of(world) * world.corrections).sum::<f64>() / all.max(1e-9);
        Self {
            mean: mean(|world| world.mean),
            p95: mean(|world| world.p95),
            unseen: mean(|world| world.unseen),
            corrections: all,
        }
    }
}

/// The ratio of two strategies' mean delays in the same worlds, and its standard error. `None` for a single world.
pub fn ratio(ours: &[Score], theirs: &[Score]) -> (f64, Option<f64>) {
    let sum = |of: &[Score]| of.iter().map(|world| world.mean * world.corrections).sum::<f64>();
    let ratio = sum(ours) / sum(theirs);
    let off = |(a, b): (&Score, &Score)| (a.mean * a.corrections - ratio * b.mean * b.corrections).powi(2);
    let count = ours.len() as f64;
    let deviation = (ours.iter().zip(theirs).map(off).sum::<f64>() * count / (count - 1.0)).sqrt();
    (ratio, (ours.len() > 1).then(|| deviation / sum(theirs)))
}

/// Scores a strategy in a world.
pub struct Scorer<'a> {
    pub world: &'a World,
    /// The day from which the corrections of each token count: when reading in turn has polled the token first. A strategy that polls it
    /// first on a later day notices the corrections in between on that day.
    pub since: Vec<f64>,
    /// The days on which a correction counts.
    pub window: (f64, f64),
    /// Whether to weight each hour by the token's correction rate instead of by actual corrections. This has less noise, but is only
    /// valid if no list reports corrections, because then polls are independent of them.
    pub by_law: bool,
}

impl Scorer<'_> {
    /// Scores polls, given as the sorted days of each token's polls.
    pub fn score(&self, reads: &[Vec<f64>]) -> Score {
        let mut delays = Vec::new();
        let mut unseen = 0;
        let (mut late, mut weight) = (0.0, 0.0);
        let (from, to) = self.window;
        for ((token, reads), since) in self.world.tokens.iter().zip(reads).zip(&self.since) {
            let from = since.max(from);
            for correction in token.corrections.iter().filter(|correction| correction.day > from && correction.day <= to) {
                let read = reads.get(reads.partition_point(|read| *read < correction.day));
                // The last corrections of a world may be noticed after its end.
                unseen += usize::from(read.is_none() && correction.day < DAYS - TAIL);
                delays.push((read.copied().unwrap_or(DAYS) - correction.day) * 24.0);
            }
            if from >= to {
                continue;
            }
            let mut last = from;
            for read in reads.iter().filter(|read| **read > from).chain([&DAYS]) {
                let end = read.min(to);
                late += token.rate * ((read - last).powi(2) - (read - end).powi(2)) * 12.0;
                last = end;
                if last >= to {
                    break;
                }
            }
            weight += token.rate * (to - from);
        }
        delays.sort_by(f64::total_cmp);
        let count = delays.len().max(1) as f64;
        Score {
            mean: if self.by_law { late / weight } else { delays.iter().sum::<f64>() / count },
            p95: delays.get((delays.len() * 95 / 100).min(delays.len().saturating_sub(1))).copied().unwrap_or_default(),
            unseen: unseen as f64 / count,
            corrections: if self.by_law { weight } else { delays.len() as f64 },
        }
    }
}

/// The unevenness of polls: the mean square of the intervals divided by the square of their mean, minus one. It is 0 for an even pace and
/// 1 for random polls, and increases the mean delay by this factor.
pub fn unevenness(reads: &[Vec<f64>]) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for reads in reads.iter().filter(|reads| reads.len() > 2) {
        let gaps: Vec<f64> = reads.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = |of: fn(f64) -> f64| gaps.iter().map(|gap| of(*gap)).sum::<f64>() / gaps.len() as f64;
        (sum, count) = (sum + mean(|gap| gap * gap) / mean(|gap| gap).powi(2) - 1.0, count + 1.0);
    }
    sum / f64::max(count, 1.0)
}

/// The length of a quota period in days.
pub const MONTH: f64 = 365.25 / 12.0;

/// Polls the listed tokens in turn at an even pace. Linear segments double the cost of a token's first poll. `elsewhere` contains the
/// credits of each month that are spent on other endpoints.
pub fn in_turn(world: &World, credits: u64, elsewhere: &[u64]) -> Vec<Vec<f64>> {
    let mut reads: Vec<Vec<f64>> = vec![Vec::new(); world.tokens.len()];
    let (mut day, mut next) = (0.0, 0);
    while day < DAYS {
        let month = (day / MONTH) as usize;
        let left = credits.saturating_sub(elsewhere.get(month).copied().unwrap_or_default());
        if left == 0 {
            day = (month + 1) as f64 * MONTH;
            continue;
        }
        let listed = world.tokens.partition_point(|token| token.listed_at <= day).max(1);
        let number = next % listed;
        let cost = if reads[number].is_empty() { 2.0 } else { 1.0 };
        day += cost * MONTH / left as f64;
        if day < DAYS {
            reads[number].push(day);
        }
        next = number + 1;
    }
    reads
}

/// The best fixed allocation with known rates: polls each token every 1/√rate (Cho and Garcia-Molina).
pub fn best_fixed(world: &World, credits: u64) -> Vec<Vec<f64>> {
    let sum: f64 = world.tokens.iter().map(|token| token.rate.sqrt()).sum();
    let reads_a_day = credits as f64 / MONTH;
    even(world, |number, token| {
        let every = sum / (reads_a_day * token.rate.sqrt());
        // Start at multiples of the golden ratio, so that no two tokens are polled in step.
        (every * (number as f64 * 0.618_034).fract(), every)
    })
}

fn even(world: &World, pace: impl Fn(usize, &Token) -> (f64, f64)) -> Vec<Vec<f64>> {
    let reads = world.tokens.iter().enumerate().map(|(number, token)| {
        let (first, every) = pace(number, token);
        (0..).map(|turn| first + every * f64::from(turn)).take_while(|day| *day < DAYS).collect()
    });
    reads.collect()
}

/// Polls all tokens at each midnight until the credits of the month are used up.
pub fn daily(world: &World, credits: u64) -> Vec<Vec<f64>> {
    let mut reads = vec![Vec::new(); world.tokens.len()];
    let (mut left, mut month) = (credits, 0.0);
    for day in 0..DAYS as u32 {
        let day = f64::from(day);
        if day >= (month + 1.0) * MONTH {
            (left, month) = (credits, month + 1.0);
        }
        for reads in &mut reads {
            if left > 0 {
                left -= 1;
                reads.push(day);
            }
        }
    }
    reads
}

/// Polls each token right after a correction. Late only when the credits of a month are used up.
pub fn clairvoyant(world: &World, credits: u64) -> Vec<Vec<f64>> {
    let mut all: Vec<(f64, usize)> = Vec::new();
    for (number, token) in world.tokens.iter().enumerate() {
        all.extend(token.corrections.iter().map(|correction| (correction.day, number)));
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut reads = vec![vec![0.0]; world.tokens.len()];
    let mut spent = vec![0; (DAYS / MONTH) as usize + 2];
    for (day, number) in all {
        let mut month = (day / MONTH) as usize;
        while spent.get(month).is_some_and(|spent| *spent >= credits) {
            month += 1;
        }
        if let Some(spent) = spent.get_mut(month) {
            *spent += 1;
            reads[number].push(day.max(month as f64 * MONTH));
        }
    }
    reads
}

//! How late corrections were noticed.

use super::world::{DAYS, Token, World};

/// How late the corrections of one world were noticed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    /// Hours until a correction was noticed, on average; up to the end of the world where none was.
    pub mean: f64,
    pub p95: f64,
    /// Share that was never noticed.
    pub unseen: f64,
    /// Corrections that count.
    pub corrections: f64,
}

impl Score {
    /// Of several worlds, each by its number of corrections.
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

/// The mean of `ours` over that of `theirs` in the same worlds, and its standard error; none of a single world.
pub fn ratio(ours: &[Score], theirs: &[Score]) -> (f64, Option<f64>) {
    let sum = |of: &[Score]| of.iter().map(|world| world.mean * world.corrections).sum::<f64>();
    let ratio = sum(ours) / sum(theirs);
    let off = |(a, b): (&Score, &Score)| (a.mean * a.corrections - ratio * b.mean * b.corrections).powi(2);
    let count = ours.len() as f64;
    let deviation = (ours.iter().zip(theirs).map(off).sum::<f64>() * count / (count - 1.0)).sqrt();
    (ratio, (ours.len() > 1).then(|| deviation / sum(theirs)))
}

/// Whose corrections count, and how.
pub struct Judge<'a> {
    pub world: &'a World,
    /// Days from which each token's corrections count: every rival has read it by then.
    pub since: Vec<f64>,
    /// Each hour weighs by the rate of the law, instead of the few corrections that it brought. True where nothing tells of them, since
    /// reads then know nothing of what is to come.
    pub by_law: bool,
}

impl Judge<'_> {
    /// `reads` are the days at which each token was read, in order.
    pub fn score(&self, reads: &[Vec<f64>]) -> Score {
        let mut delays = Vec::new();
        let mut unseen = 0;
        let (mut late, mut weight) = (0.0, 0.0);
        for ((token, reads), since) in self.world.tokens.iter().zip(reads).zip(&self.since) {
            for correction in token.corrections.iter().filter(|correction| correction.day > *since) {
                let read = reads.get(reads.partition_point(|read| *read < correction.day));
                unseen += usize::from(read.is_none());
                delays.push((read.copied().unwrap_or(DAYS) - correction.day) * 24.0);
            }
            let mut last = *since;
            for read in reads.iter().filter(|read| **read > *since).chain([&DAYS]) {
                late += token.rate * (read - last).powi(2) * 12.0;
                last = *read;
            }
            weight += token.rate * (DAYS - since).max(0.0);
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

/// How uneven a token's reads are: the mean square of the days between them over the square of the mean, less one. Reads that come by
/// chance have one, and a read is late by so much more than at an even pace.
pub fn unevenness(reads: &[Vec<f64>]) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for reads in reads.iter().filter(|reads| reads.len() > 2) {
        let gaps: Vec<f64> = reads.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = |of: fn(f64) -> f64| gaps.iter().map(|gap| of(*gap)).sum::<f64>() / gaps.len() as f64;
        (sum, count) = (sum + mean(|gap| gap * gap) / mean(|gap| gap).powi(2) - 1.0, count + 1.0);
    }
    sum / f64::max(count, 1.0)
}

/// A month of the quota, days.
const MONTH: f64 = 365.25 / 12.0;

/// Every token in turn, at an even pace, all credits on that. Linear segments cost the first round a second request, as they cost us.
pub fn in_turn(world: &World, credits: u64) -> Vec<Vec<f64>> {
    let step = MONTH / credits as f64;
    let every = step * world.tokens.len() as f64;
    even(world, |number, _| (step * 2.0 * (number + 1) as f64, every))
}

/// The best fixed allocation with the rates known: each token every 1/√rate, as Cho and Garcia-Molina have it.
pub fn best_fixed(world: &World, credits: u64) -> Vec<Vec<f64>> {
    let sum: f64 = world.tokens.iter().map(|token| token.rate.sqrt()).sum();
    let reads_a_day = credits as f64 / MONTH;
    even(world, |number, token| {
        let every = sum / (reads_a_day * token.rate.sqrt());
        // Spread like a golden section, so that no two tokens go in step.
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

/// Every token at each midnight until the month's credits are gone.
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

/// Whoever knows when something changed reads it then: late only once the credits of a month are gone.
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

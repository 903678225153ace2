//! How late corrections were noticed.

use super::world::{DAYS, Token, World};

#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    /// Hours until a correction was noticed; up to the end of the world where none was.
    pub mean: f64,
    pub p95: f64,
    /// Share that was never noticed.
    pub unseen: f64,
    pub corrections: usize,
}

impl Score {
    /// With those of another world, each by its number of corrections.
    pub fn with(self, other: Self) -> Self {
        let (a, b) = (self.corrections as f64, other.corrections as f64);
        let mean = |one: f64, two: f64| (one * a + two * b) / (a + b).max(1.0);
        Self {
            mean: mean(self.mean, other.mean),
            p95: mean(self.p95, other.p95),
            unseen: mean(self.unseen, other.unseen),
            corrections: self.corrections + other.corrections,
        }
    }
}

/// `reads` are the days at which each token was read, in order. What came before a token's first read is its baseline.
pub fn score(world: &World, reads: &[Vec<f64>]) -> Score {
    let mut delays = Vec::new();
    let mut unseen = 0;
    for (token, reads) in world.tokens.iter().zip(reads) {
        let Some(first) = reads.first() else {
            unseen += token.corrections.len();
            delays.extend(token.corrections.iter().map(|correction| (DAYS - correction.day) * 24.0));
            continue;
        };
        for correction in token.corrections.iter().filter(|correction| correction.day > *first) {
            let read = reads.get(reads.partition_point(|read| *read < correction.day));
            unseen += usize::from(read.is_none());
            delays.push((read.copied().unwrap_or(DAYS) - correction.day) * 24.0);
        }
    }
    delays.sort_by(f64::total_cmp);
    let count = delays.len().max(1) as f64;
    Score {
        mean: delays.iter().sum::<f64>() / count,
        p95: delays.get((delays.len() * 95 / 100).min(delays.len().saturating_sub(1))).copied().unwrap_or_default(),
        unseen: unseen as f64 / count,
        corrections: delays.len(),
    }
}

/// A month of the quota, days.
const MONTH: f64 = 365.25 / 12.0;

/// Every token in turn, at an even pace, all credits on that.
pub fn in_turn(world: &World, credits: u64) -> Score {
    let step = MONTH / credits as f64;
    let every = step * world.tokens.len() as f64;
    even(world, |number, _| (step * (number + 1) as f64, every))
}

/// The best fixed allocation with the rates known: each token every 1/√rate, as Cho and Garcia-Molina have it.
pub fn best_fixed(world: &World, credits: u64) -> Score {
    let sum: f64 = world.tokens.iter().map(|token| token.rate.sqrt()).sum();
    let reads_a_day = credits as f64 / MONTH;
    even(world, |number, token| {
        let every = sum / (reads_a_day * token.rate.sqrt());
        // Spread like a golden section, so that no two tokens go in step.
        (every * (number as f64 * 0.618_034).fract(), every)
    })
}

fn even(world: &World, pace: impl Fn(usize, &Token) -> (f64, f64)) -> Score {
    let reads = world.tokens.iter().enumerate().map(|(number, token)| {
        let (first, every) = pace(number, token);
        (0..).map(|turn| first + every * f64::from(turn)).take_while(|day| *day < DAYS).collect()
    });
    score(world, &reads.collect::<Vec<_>>())
}

/// Every token at each midnight until the month's credits are gone.
pub fn daily(world: &World, credits: u64) -> Score {
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
    score(world, &reads)
}

/// Whoever knows when something changed reads it then: late only once the credits of a month are gone.
pub fn clairvoyant(world: &World, credits: u64) -> Score {
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
    score(world, &reads)
}

//! Simulated worlds: the times of corrections, which of them the lists report, and the times of events.

use std::{fs, path::Path};

use chrono::TimeDelta;
use cliffwatch::model::{Timestamp, wire};
use fastrand::Rng;

/// The length of a world in days: three years.
pub const DAYS: f64 = 1096.0;
/// The mean number of corrections per token and day: 71 for 52 tokens in `data/revisions`, which omits tokens without corrections.
const MEAN_RATE: f64 = 0.66 / DAYS;
/// The standard deviation of the logarithm of the rates: a few tokens are corrected much more often than most.
const SPREAD: f64 = 1.0;
/// The fraction of corrections that change the token's next cliff, which `upcoming` shows: 16 of 71 in `data/revisions`.
const TOUCHES_NEXT: f64 = 0.22;

/// The number of corrections that only allocations show, per correction of a schedule. An assumption: `data/revisions` has none.
const ONLY_IN_ALLOCATIONS: f64 = 0.05;

/// The corrections that the lists report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListReports {
    /// The mark in the token list changes with each correction.
    All,
    /// The mark changes with every second correction, and twice a year without one.
    Some,
    /// Marks never change, but `upcoming` shows corrections.
    None,
    /// Marks never change, and `upcoming` shows no corrections.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
pub struct Correction {
    /// Days since the start of the world.
    pub day: f64,
    /// Whether the mark in the token list changes.
    pub is_marked: bool,
    /// Whether `upcoming` shows the correction.
    pub is_shown: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Token {
    /// The day on which the token list contains the token first.
    pub listed_at: f64,
    /// Corrections per day: the rate of the distribution in random worlds, else the actual one.
    pub rate: f64,
    pub corrections: Vec<Correction>,
    /// The days on which the mark changes without a correction.
    pub idle_marks: Vec<f64>,
    /// The sorted days of events with their percent of market cap.
    pub events: Vec<(f64, f64)>,
    /// The sorted days of corrections that only allocations show, such as a new name of an allocation without unlocks.
    pub only_in_allocations: Vec<f64>,
}

pub struct World {
    pub begin: Timestamp,
    pub tokens: Vec<Token>,
}

impl World {
    /// A world with rates from a heavy-tailed distribution.
    pub fn random(tokens: usize, reports: ListReports, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let tokens = (0..tokens)
            .map(|_| {
                let rate = MEAN_RATE * (SPREAD * normal(&mut rng) - SPREAD * SPREAD / 2.0).exp();
                let mut days = Vec::new();
                let mut day = wait(&mut rng, rate);
                while day < DAYS {
                    days.push(day);
                    day += wait(&mut rng, rate);
                }
                token(rate, &days, reports, &mut rng)
            })
            .collect();
        Self { begin: begin(), tokens }
    }

    /// A world with the real corrections of a folder, rotated in time by a random offset. The offset is the same for all tokens, because
    /// half of the corrections came within a few hours. Additional tokens repeat the corrections with separate offsets.
    pub fn dated(folder: &Path, tokens: usize, reports: ListReports, seed: u64) -> anyhow::Result<Self> {
        let mut files: Vec<_> = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|path| path.extension().is_some_and(|ext| ext == "jsonl"));
        files.sort();
        let first: Timestamp = wire::parse_timestamp("2023-03-05T00:00:00Z").ok_or_else(|| anyhow::anyhow!("a date"))?;
        let mut histories = Vec::new();
        for path in files {
            let text = fs::read_to_string(path)?;
            let at = |line: &str| -> anyhow::Result<f64> {
                #[derive(serde::Deserialize)]
                struct Version {
                    at: Timestamp,
                }
                let version: Version = serde_json::from_str(line)?;
                Ok(days(version.at - first))
            };
            histories.push(text.lines().skip(1).map(at).collect::<Result<Vec<f64>, _>>()?);
        }
        let mut rng = Rng::with_seed(seed);
        rng.shuffle(&mut histories);
        let span = histories.iter().flatten().copied().fold(DAYS, f64::max) + 1.0;
        let begins = rng.f64() * span;
        let tokens = (0..tokens)
            .map(|number| {
                let offset = if number < histories.len() { begins } else { rng.f64() * span };
                let mut days: Vec<f64> =
                    histories[number % histories.len()].iter().map(|day| (day + offset) % span * DAYS / span).collect();
                days.sort_by(f64::total_cmp);
                token(days.len() as f64 / DAYS, &days, reports, &mut rng)
            })
            .collect();
        Ok(Self { begin: begin(), tokens })
    }

    /// The same world with a token list that grows: two thirds of the tokens at the start, the others at even distances.
    pub fn growing(mut self) -> Self {
        let begun = self.tokens.len() * 2 / 3;
        let later = self.tokens.len() - begun;
        for (number, token) in self.tokens.iter_mut().skip(begun).enumerate() {
            token.listed_at = DAYS * (number + 1) as f64 / (later + 1) as f64;
            token.corrections.retain(|correction| correction.day > token.listed_at);
            token.idle_marks.retain(|day| *day > token.listed_at);
            token.only_in_allocations.retain(|day| *day > token.listed_at);
        }
        self
    }

    /// The same world with the corrections that only allocations show instead of those of schedules.
    pub fn only_in_allocations(&self) -> Self {
        let correction = |day: &f64| Correction { day: *day, is_marked: false, is_shown: false };
        let tokens = self
            .tokens
            .iter()
            .map(|token| Token { corrections: token.only_in_allocations.iter().map(correction).collect(), ..token.clone() });
        Self { begin: self.begin, tokens: tokens.collect() }
    }

    pub fn at(&self, day: f64) -> Timestamp {
        self.begin + TimeDelta::milliseconds((day * 86_400_000.0) as i64)
    }
}

/// The start of a world and of a quota period.
fn begin() -> Timestamp {
    wire::parse_timestamp("2023-04-07T15:30:00Z").unwrap_or_default()
}

pub fn days(span: TimeDelta) -> f64 {
    span.num_milliseconds() as f64 / 86_400_000.0
}

fn token(rate: f64, days: &[f64], reports: ListReports, rng: &mut Rng) -> Token {
    let step = [0.0, 30.4, 100.0, 365.0][rng.usize(..4)];
    let mut events = Vec::new();
    let mut day = rng.f64() * step;
    while step > 0.0 && day < DAYS + 400.0 {
        events.push((day, (normal(rng) - 0.5).exp()));
        day += step;
    }
    let corrections = days.iter().map(|day| Correction {
        day: *day,
        is_marked: reports == ListReports::All || reports == ListReports::Some && rng.bool(),
        is_shown: reports != ListReports::Nothing && step > 0.0 && rng.f64() < TOUCHES_NEXT * 4.0 / 3.0,
    });
    let corrections = corrections.collect();
    let mut idle_marks = Vec::new();
    let mut day = wait(rng, 2.0 / 365.0);
    while reports == ListReports::Some && day < DAYS {
        idle_marks.push(day);
        day += wait(rng, 2.0 / 365.0);
    }
    let mut only_in_allocations = Vec::new();
    let mut day = wait(rng, rate * ONLY_IN_ALLOCATIONS);
    while day < DAYS {
        only_in_allocations.push(day);
        day += wait(rng, rate * ONLY_IN_ALLOCATIONS);
    }
    Token { listed_at: 0.0, rate, corrections, idle_marks, events, only_in_allocations }
}

fn wait(rng: &mut Rng, rate: f64) -> f64 {
    -(1.0 - rng.f64()).ln() / rate
}

fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
}

//! Worlds: when schedules are corrected, what of that the source tells, when events come.

use std::{fs, path::Path};

use chrono::TimeDelta;
use cliffwatch::model::{Timestamp, wire};
use fastrand::Rng;

/// How long a world lasts, days: three years.
pub const DAYS: f64 = 1096.0;
/// Corrections a token and day, on average: 71 of 52 tokens in `data/revisions`, which has none of those that were never corrected.
const MEAN_RATE: f64 = 0.66 / DAYS;
/// Spread of the rates, as the deviation of their logarithm: a few tokens are corrected many times as often as most.
const SPREAD: f64 = 1.0;
/// Share of the dated corrections that touch the token's next cliff, which is what `upcoming` shows (16 of 71).
const TOUCHES_NEXT: f64 = 0.22;

/// What the source tells of a correction, beside the schedule itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// The mark of the token list moves with each.
    All,
    /// With every second one; and twice a year for nothing.
    Some,
    /// Marks never move.
    None,
    /// Nor does `upcoming` show anything.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
pub struct Correction {
    /// Days since the world began.
    pub day: f64,
    /// The token list's mark moves.
    pub is_marked: bool,
    /// `upcoming` shows it, once it is asked.
    pub is_shown: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Token {
    /// Corrections a day; that of the law where one was drawn, else what came to pass.
    pub rate: f64,
    pub corrections: Vec<Correction>,
    /// Days at which its mark moves for nothing.
    pub idle_marks: Vec<f64>,
    /// Days of its events, in order, and what they are of its market cap, percent.
    pub events: Vec<(f64, f64)>,
}

pub struct World {
    pub begin: Timestamp,
    pub tokens: Vec<Token>,
}

impl World {
    /// Rates from a law with a heavy tail.
    pub fn random(tokens: usize, tells: Tells, seed: u64) -> Self {
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
                token(rate, &days, tells, &mut rng)
            })
            .collect();
        Self { begin: begin(), tokens }
    }

    /// The dated corrections of a folder, turned round in time: all together, since half of them came within a few hours, and at what
    /// time of a month and a day is luck; beyond its tokens, the same ones each by itself.
    pub fn dated(folder: &Path, tokens: usize, tells: Tells, seed: u64) -> anyhow::Result<Self> {
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
                let turn = if number < histories.len() { begins } else { rng.f64() * span };
                let mut days: Vec<f64> =
                    histories[number % histories.len()].iter().map(|day| (day + turn) % span * DAYS / span).collect();
                days.sort_by(f64::total_cmp);
                token(days.len() as f64 / DAYS, &days, tells, &mut rng)
            })
            .collect();
        Ok(Self { begin: begin(), tokens })
    }

    pub fn at(&self, day: f64) -> Timestamp {
        self.begin + TimeDelta::milliseconds((day * 86_400_000.0) as i64)
    }
}

/// A period of the quota begins with it, on no round date.
fn begin() -> Timestamp {
    wire::parse_timestamp("2023-04-07T15:30:00Z").unwrap_or_default()
}

pub fn days(span: TimeDelta) -> f64 {
    span.num_milliseconds() as f64 / 86_400_000.0
}

fn token(rate: f64, days: &[f64], tells: Tells, rng: &mut Rng) -> Token {
    let step = [0.0, 30.4, 100.0, 365.0][rng.usize(..4)];
    let mut events = Vec::new();
    let mut day = rng.f64() * step;
    while step > 0.0 && day < DAYS + 400.0 {
        events.push((day, (normal(rng) - 0.5).exp()));
        day += step;
    }
    let corrections = days.iter().map(|day| Correction {
        day: *day,
        is_marked: tells == Tells::All || tells == Tells::Some && rng.bool(),
        is_shown: tells != Tells::Nothing && step > 0.0 && rng.f64() < TOUCHES_NEXT * 4.0 / 3.0,
    });
    let corrections = corrections.collect();
    let mut idle_marks = Vec::new();
    let mut day = wait(rng, 2.0 / 365.0);
    while tells == Tells::Some && day < DAYS {
        idle_marks.push(day);
        day += wait(rng, 2.0 / 365.0);
    }
    Token { rate, corrections, idle_marks, events }
}

fn wait(rng: &mut Rng, rate: f64) -> f64 {
    -(1.0 - rng.f64()).ln() / rate
}

fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
}

//! How late corrections are noticed, and what that costs: worlds of three years, played through the real planner and budget.
//!
//! `cargo bench --bench credits [-- WORDS]` prints a row for each kind of world, of those whose names hold every word. Each world is one
//! state that ages over all three years, under the default schedule and rules that hear of unlocks alone. `WORLDS=12` plays so many of a
//! kind; `SEED=1000` begins with another one, since what a policy is tuned on must not be what it is judged by. Beside it: every
//! token in turn at an even pace, every token daily until the credits are gone, the best fixed allocation with the rates known, and a
//! clairvoyant. All of these spend every credit on schedules and need no list. Ratios are of the same corrections, with their
//! standard error over the worlds.

use std::{path::Path, sync::Mutex, thread};

use cliffwatch::model::config;

mod play;
mod score;
mod world;

use score::{Judge, Score};
use world::{Tells, World};

/// A row to be.
struct Case {
    name: String,
    is_dated: bool,
    tokens: usize,
    credits: u64,
    tells: Tells,
}

/// Which worlds are played.
#[derive(Clone, Copy)]
struct Seeds {
    first: u64,
    worlds: Option<u64>,
}

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = Seeds { first: number("SEED").unwrap_or(1), worlds: number("WORLDS") };
    let config: config::Config = toml::from_str(config::DEFAULTS)?;
    let slots = play::slots(&config.schedule, World::random(0, Tells::None, 0).begin)?;
    let mut cases = Vec::new();
    for (tells, told) in [(Tells::All, "all"), (Tells::Some, "some"), (Tells::None, "none"), (Tells::Nothing, "nothing")] {
        for (is_dated, of) in [(true, "dated"), (false, "random")] {
            for tokens in [30, 100, 300] {
                for credits in [300, 1_000, 5_000] {
                    let name = format!("{told:<7} {of:<6} {tokens:>3} tokens {credits:>4} credits");
                    cases.push(Case { name, is_dated, tokens, credits, tells });
                }
            }
        }
    }
    cases.retain(|case| words.iter().all(|word| case.name.split(' ').any(|part| part == word)));
    println!(
        "{:<38} {:>7} {:>7} {:>6}  {:>5} {:>4} {:>4}  {:>7} {:>7} {:>7} {:>6}  {:>14} {:>14}  {:>6}  spent a month",
        "told, world",
        "mean h",
        "p95 h",
        "unseen",
        "used",
        "over",
        "429",
        "turn",
        "daily",
        "fixed",
        "clairv",
        "/turn",
        "/fixed",
        "uneven"
    );
    let next = Mutex::new(cases.iter());
    let workers = number("JOBS").unwrap_or(thread::available_parallelism()?.get() as u64);
    // Each as it is done.
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(case) = { next.lock().ok().and_then(|mut next| next.next()) } {
                    match row(case, seeds, &config, &slots) {
                        Ok(row) => println!("{row}"),
                        Err(error) => println!("{}: {error}", case.name),
                    }
                }
            });
        }
    });
    Ok(())
}

/// How late everybody was in the worlds of a row, and what ours did.
#[derive(Default)]
struct Row {
    ours: Vec<Score>,
    turn: Vec<Score>,
    fixed: Vec<Score>,
    daily: Vec<Score>,
    clairvoyant: Vec<Score>,
    uneven: f64,
    played: play::Played,
}

impl Row {
    fn play(&mut self, world: &World, case: &Case, config: &config::Config, slots: &[play::Slot]) {
        let one = play::play(world, config, slots, case.credits);
        let turn = score::in_turn(world, case.credits);
        // What came before either of the two had read a token is its baseline, and nobody's delay.
        let first = |reads: &Vec<f64>| reads.first().copied().unwrap_or(0.0);
        let since = one.reads.iter().zip(&turn).map(|(ours, theirs)| first(ours).max(first(theirs))).collect();
        let judge = Judge { world, since, by_law: !case.is_dated && case.tells == Tells::Nothing };
        self.ours.push(judge.score(&one.reads));
        self.turn.push(judge.score(&turn));
        self.fixed.push(judge.score(&score::best_fixed(world, case.credits)));
        self.daily.push(judge.score(&score::daily(world, case.credits)));
        self.clairvoyant.push(judge.score(&score::clairvoyant(world, case.credits)));
        self.uneven += score::unevenness(&one.reads);
        self.played = std::mem::take(&mut self.played).with(one);
    }
}

fn row(case: &Case, seeds: Seeds, config: &config::Config, slots: &[play::Slot]) -> anyhow::Result<String> {
    // A small world has too few corrections to say much.
    let worlds = seeds.worlds.unwrap_or((600 / case.tokens as u64).clamp(3, 20));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/revisions");
    let mut row = Row::default();
    for seed in seeds.first..seeds.first + worlds {
        let world = match case.is_dated {
            true => World::dated(&folder, case.tokens, case.tells, seed)?,
            false => World::random(case.tokens, case.tells, seed),
        };
        row.play(&world, case, config, slots);
    }
    let [ours, turn, fixed, daily, clairvoyant] =
        [&row.ours, &row.turn, &row.fixed, &row.daily, &row.clairvoyant].map(|worlds| Score::of(worlds));
    let of = |rival: &[Score]| match score::ratio(&row.ours, rival) {
        (ratio, Some(error)) => format!("{ratio:.3} ± {error:.3}"),
        (ratio, None) => format!("{ratio:.3}"),
    };
    let played = &row.played;
    let months = played.periods.len() as f64;
    let used = played.periods.iter().sum::<u64>() as f64 / months;
    let by: Vec<String> =
        played.spent.iter().map(|(endpoint, spent)| format!("{endpoint} {:.1}", *spent as f64 / months)).collect();
    Ok(format!(
        "{:<38} {:>7.2} {:>7.1} {:>5.1}%  {:>5.0} {:>4} {:>4}  {:>7.1} {:>7.1} {:>7.1} {:>6.1}  {:>14} {:>14}  {:>6.3}  {}",
        case.name,
        ours.mean,
        ours.p95,
        ours.unseen * 100.0,
        used,
        played.overspent,
        played.refused,
        turn.mean,
        daily.mean,
        fixed.mean,
        clairvoyant.mean,
        of(&row.turn),
        of(&row.fixed),
        row.uneven / worlds as f64,
        by.join(", ")
    ))
}

//! Measures the delay until corrections are noticed, and its cost: simulates three years with the real planner and budget.
//!
//! `cargo bench --bench credits [-- WORDS]` prints a row for each kind of world whose name contains all words. Each world keeps its state
//! over the three years and uses the default schedule and rules on unlocks only. `WORLDS=12` sets the number of worlds per kind.
//! `SEED=1000` sets the first seed, so that a policy is not tuned and evaluated on the same worlds. The rows compare the planner with four
//! strategies: each token in turn at an even pace, each token daily until the credits are used up, the best fixed allocation with known
//! rates, and a clairvoyant one. These spend all credits on schedules and need no list. Ratios are over the same corrections, with the
//! standard error over the worlds.

use std::{path::Path, sync::Mutex, thread};

use cliffwatch::model::config;

mod play;
mod score;
mod world;

use score::{Score, Scorer};
use world::{ListReports, World};

/// The parameters of a row.
struct Case {
    name: String,
    is_dated: bool,
    tokens: usize,
    credits: u64,
    reports: ListReports,
}

/// The selection of random worlds.
#[derive(Clone, Copy)]
struct Seeds {
    first: u64,
    worlds: Option<u64>,
}

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = Seeds { first: number("SEED").unwrap_or(1), worlds: number("WORLDS") };
    let config = config::Config::default();
    let slots = play::slots(&config.schedule, World::random(0, ListReports::None, 0).begin)?;
    let mut cases = Vec::new();
    for (reports, reported) in
        [(ListReports::All, "all"), (ListReports::Some, "some"), (ListReports::None, "none"), (ListReports::Nothing, "nothing")]
    {
        for (is_dated, of) in [(true, "dated"), (false, "random")] {
            for tokens in [30, 100, 300] {
                for credits in [300, 1_000, 5_000] {
                    let name = format!("{reported:<7} {of:<6} {tokens:>3} tokens {credits:>4} credits");
                    cases.push(Case { name, is_dated, tokens, credits, reports });
                }
            }
        }
    }
    cases.retain(|case| words.iter().all(|word| case.name.split(' ').any(|part| part == word)));
    println!(
        "{:<38} {:>7} {:>7} {:>6}  {:>5} {:>4} {:>4}  {:>7} {:>7} {:>7} {:>6}  {:>14} {:>14}  {:>6}  spent per month",
        "reports, world",
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
    // Print each row when it is done.
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

/// The scores of the planner and of the other strategies in the worlds of a row.
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
        // Corrections before the first poll of either strategy are part of the baseline and do not count.
        let first = |reads: &Vec<f64>| reads.first().copied().unwrap_or(0.0);
        let since = one.reads.iter().zip(&turn).map(|(ours, theirs)| first(ours).max(first(theirs))).collect();
        let scorer = Scorer { world, since, by_law: !case.is_dated && case.reports == ListReports::Nothing };
        self.ours.push(scorer.score(&one.reads));
        self.turn.push(scorer.score(&turn));
        self.fixed.push(scorer.score(&score::best_fixed(world, case.credits)));
        self.daily.push(scorer.score(&score::daily(world, case.credits)));
        self.clairvoyant.push(scorer.score(&score::clairvoyant(world, case.credits)));
        self.uneven += score::unevenness(&one.reads);
        self.played = std::mem::take(&mut self.played).with(one);
    }
}

fn row(case: &Case, seeds: Seeds, config: &config::Config, slots: &[play::Slot]) -> anyhow::Result<String> {
    // Small worlds have few corrections, so use more of them.
    let worlds = seeds.worlds.unwrap_or((600 / case.tokens as u64).clamp(3, 20));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/revisions");
    let mut row = Row::default();
    for seed in seeds.first..seeds.first + worlds {
        let world = match case.is_dated {
            true => World::dated(&folder, case.tokens, case.reports, seed)?,
            false => World::random(case.tokens, case.reports, seed),
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
        played.rejected,
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

//! Measures the delay until corrections are noticed, and its cost: simulates three years with the real planner and budget.
//!
//! `cargo bench --bench credits [-- WORDS]` prints a row for each time span of each kind of world whose name contains all words or
//! phrases, such as `nothing starter 300-tokens.toml "1000 credits"`. Each world keeps its state over the three years. The daemon has a
//! config of `benches/credits/config`, which `init` wrote, and the starter rules (`rules/`) or none, so that all endpoints compete.
//! `WORLDS=12` sets the number of worlds per kind. `SEED=1000` sets the first seed, so that a policy is not tuned and evaluated on the
//! same worlds.
//!
//! The rows compare the planner with other strategies. Each token in turn at an even pace, each token daily until the credits are used up,
//! the best fixed allocation with known rates, and a clairvoyant one spend all credits on schedules and need no list. "/turn+" compares
//! with each token in turn that spends as many credits on lists, burns, buybacks, and allocations as the planner did in each month. Ratios
//! are over the same corrections, with the standard error over the worlds. Corrections that only allocations show have a column of their
//! own.

use std::{fs, path::Path, sync::Mutex, thread};

use anyhow::{Context as _, ensure};
use cliffwatch::{
    model::{Endpoint, SourceText, config},
    rules::{self, RuleSet, Surroundings},
};

mod play;
mod score;
mod world;

use score::{MONTH, Score, Scorer};
use world::{DAYS, ListReports, World};

/// A config of `benches/credits/config`, and the number of tokens in the source's list that it selects.
#[derive(Clone, Copy)]
struct WatchedList {
    file: &'static str,
    tokens: usize,
    /// Whether the list grows.
    is_growing: bool,
}

/// The configs, named after the tokens that they watch.
const WATCHED_LISTS: [WatchedList; 4] = [
    WatchedList { file: "30-tokens.toml", tokens: 30, is_growing: false },
    WatchedList { file: "100-tokens.toml", tokens: 100, is_growing: false },
    WatchedList { file: "300-tokens.toml", tokens: 300, is_growing: false },
    WatchedList { file: "all-tokens.toml", tokens: 300, is_growing: true },
];

/// A watched list with its loaded config.
struct LoadedList {
    watched: WatchedList,
    config: config::Config,
}

/// The parameters of a kind of world.
struct Case<'a> {
    name: String,
    is_dated: bool,
    has_rules: bool,
    list: &'a LoadedList,
    credits: u64,
    reports: ListReports,
}

/// The selection of random worlds.
#[derive(Clone, Copy)]
struct Seeds {
    first: u64,
    worlds: Option<u64>,
}

/// The files that a daemon runs with.
struct Files {
    starter_rules: RuleSet,
    slots: Vec<play::Slot>,
}

/// The scored days: a new database with its first reads, all three years, and a database with a history.
const WINDOWS: [(&str, (f64, f64)); 3] =
    [("first 60 days", (0.0, 60.0)), ("three years", (0.0, DAYS)), ("60 days aged", (DAYS - 150.0, DAYS - 90.0))];

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = Seeds { first: number("SEED").unwrap_or(1), worlds: number("WORLDS") };
    let load = |watched: WatchedList| anyhow::Ok(LoadedList { config: config_of(watched.file)?, watched });
    let lists = WATCHED_LISTS.into_iter().map(load).collect::<anyhow::Result<Vec<_>>>()?;
    let schedule = &lists.first().context("a config")?.config.schedule;
    let slots = play::slots(schedule, World::random(0, ListReports::None, 0).begin)?;
    let files = Files { starter_rules: starter_rules()?, slots };
    let mut cases = Vec::new();
    for (reports, reported) in
        [(ListReports::All, "all"), (ListReports::Some, "some"), (ListReports::None, "none"), (ListReports::Nothing, "nothing")]
    {
        for (is_dated, of) in [(true, "dated"), (false, "random")] {
            for (has_rules, rules) in [(true, "starter"), (false, "no-rules")] {
                for list in &lists {
                    for credits in [300, 1_000, 5_000] {
                        let name = format!("{:<15} {rules:<8} {credits:>4} credits {reported:<7} {of:<6}", list.watched.file);
                        cases.push(Case { name, is_dated, has_rules, list, credits, reports });
                    }
                }
            }
        }
    }
    let matches = |case: &Case<'_>, word: &String| {
        let is_phrase = word.contains(' ');
        if is_phrase { case.name.contains(word.as_str()) } else { case.name.split(' ').any(|part| part == word) }
    };
    cases.retain(|case| words.iter().all(|word| matches(case, word)));
    println!(
        "{:<59} {:>7} {:>7} {:>6} {:>7}  {:>6} {:>4} {:>4}  {:>7} {:>7} {:>7} {:>7} {:>6}  {:>14} {:>14} {:>14}  {:>6}  spent per month",
        "config, rules, credits, reports, world, span",
        "mean h",
        "p95 h",
        "unseen",
        "alloc h",
        "used",
        "over",
        "429",
        "turn",
        "turn+",
        "daily",
        "fixed",
        "clairv",
        "/turn",
        "/turn+",
        "/fixed",
        "uneven"
    );
    let next = Mutex::new(cases.iter());
    let workers = number("JOBS").unwrap_or(thread::available_parallelism()?.get() as u64);
    // Print the rows of each case when it is done.
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(case) = { next.lock().ok().and_then(|mut next| next.next()) } {
                    match rows(case, seeds, &files) {
                        Ok(rows) => println!("{rows}"),
                        Err(error) => println!("{}: {error}", case.name),
                    }
                }
            });
        }
    });
    Ok(())
}

/// Loads a config file.
fn config_of(file: &str) -> anyhow::Result<config::Config> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/credits/config").join(file);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("cannot parse {}", path.display()))
}

/// The rules that `init` writes.
fn starter_rules() -> anyhow::Result<RuleSet> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("rules"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ext| ext == "toml") {
            sources.push(SourceText { text: fs::read_to_string(&path)?, file: path });
        }
    }
    let (receivers, groups) = (["ops".to_owned()], [("portfolio".to_owned(), Vec::new())].into());
    let now = World::random(0, ListReports::None, 0).begin;
    let loaded = rules::load(&sources, &Surroundings { receivers: &receivers, groups: &groups, now });
    ensure!(loaded.is_usable(), "{:?}", loaded.diagnostics);
    Ok(loaded.set)
}

/// The scores of the planner and of the other strategies in the worlds of a case, in one of [`WINDOWS`].
#[derive(Default)]
struct WindowScores {
    ours: Vec<Score>,
    turn: Vec<Score>,
    /// In turn, with the credits that the planner spent on schedules.
    turn_within: Vec<Score>,
    fixed: Vec<Score>,
    daily: Vec<Score>,
    clairvoyant: Vec<Score>,
    /// Corrections that only allocations show.
    allocations: Vec<Score>,
}

/// The results of all worlds of a case.
#[derive(Default)]
struct CaseResults {
    windows: [WindowScores; WINDOWS.len()],
    uneven: f64,
    played: play::Played,
}

impl CaseResults {
    fn play(&mut self, world: &World, case: &Case<'_>, config: &config::Config, files: &Files) -> anyhow::Result<()> {
        let no_rules = RuleSet::default();
        let rules = if case.has_rules { &files.starter_rules } else { &no_rules };
        let one = play::play(world, (config, rules), &files.slots, case.credits)?;
        let turn = score::in_turn(world, case.credits, &[]);
        let turn_within = score::in_turn(world, case.credits, &one.spent_elsewhere(Endpoint::UnlockEvents));
        let (fixed, daily) = (score::best_fixed(world, case.credits), score::daily(world, case.credits));
        let clairvoyant = score::clairvoyant(world, case.credits);
        let only_in_allocations = world.only_in_allocations();
        let first_day = |reads: &Vec<f64>, never: f64| reads.first().copied().unwrap_or(never);
        let since: Vec<f64> = turn.iter().map(|reads| first_day(reads, 0.0)).collect();
        let known: Vec<f64> = one.allocation_reads.iter().map(|reads| first_day(reads, DAYS)).collect();
        let by_law = !case.is_dated && case.reports == ListReports::Nothing;
        for ((_, window), scores) in WINDOWS.into_iter().zip(&mut self.windows) {
            let scorer = Scorer { world, since: since.clone(), window, by_law };
            scores.ours.push(scorer.score(&one.reads));
            scores.turn.push(scorer.score(&turn));
            scores.turn_within.push(scorer.score(&turn_within));
            scores.fixed.push(scorer.score(&fixed));
            scores.daily.push(scorer.score(&daily));
            scores.clairvoyant.push(scorer.score(&clairvoyant));
            let scorer = Scorer { world: &only_in_allocations, since: known.clone(), window, by_law: false };
            scores.allocations.push(scorer.score(&one.allocation_reads));
        }
        self.uneven += score::unevenness(&one.reads);
        self.played = std::mem::take(&mut self.played).with(one);
        Ok(())
    }
}

/// Returns the rows of a case, one for each of [`WINDOWS`].
fn rows(case: &Case<'_>, seeds: Seeds, files: &Files) -> anyhow::Result<String> {
    let LoadedList { watched, config } = case.list;
    // Small worlds have few corrections, so use more of them.
    let worlds = seeds.worlds.unwrap_or((600 / watched.tokens as u64).clamp(3, 20));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/revisions");
    let mut results = CaseResults::default();
    for seed in seeds.first..seeds.first + worlds {
        let world = match case.is_dated {
            true => World::dated(&folder, watched.tokens, case.reports, seed)?,
            false => World::random(watched.tokens, case.reports, seed),
        };
        let world = if watched.is_growing { world.growing() } else { world };
        results.play(&world, case, config, files)?;
    }
    let rows = WINDOWS.iter().zip(&results.windows).map(|(window, scores)| row(case, *window, scores, &results, worlds as f64));
    Ok(rows.collect::<Vec<_>>().join("\n"))
}

fn row(case: &Case<'_>, (span, window): (&str, (f64, f64)), scores: &WindowScores, results: &CaseResults, worlds: f64) -> String {
    let WindowScores { ours, turn, turn_within, fixed, daily, clairvoyant, allocations } = scores;
    let ratio_to = |rival: &[Score]| match score::ratio(ours, rival) {
        (ratio, Some(error)) => format!("{ratio:.3} ± {error:.3}"),
        (ratio, None) => format!("{ratio:.3}"),
    };
    let played = &results.played;
    let months = worlds * (window.1 - window.0) / MONTH;
    let mut endpoints: Vec<Endpoint> = played.charges.iter().map(|charge| charge.endpoint).collect();
    endpoints.sort();
    endpoints.dedup();
    let spent: Vec<(Endpoint, f64)> =
        endpoints.into_iter().map(|endpoint| (endpoint, played.spent(endpoint, window) as f64 / months)).collect();
    let by: Vec<String> = spent.iter().map(|(endpoint, spent)| format!("{endpoint} {spent:.1}")).collect();
    let mean = |scores: &[Score]| Score::of(scores).mean;
    let all = Score::of(ours);
    format!(
        "{:<45} {span:<13} {:>7.2} {:>7.1} {:>5.1}% {:>7.0}  {:>6.1} {:>4} {:>4}  {:>7.1} {:>7.1} {:>7.1} {:>7.1} {:>6.1}  {:>14} {:>14} {:>14}  {:>6.3}  {}",
        case.name,
        all.mean,
        all.p95,
        all.unseen * 100.0,
        mean(allocations),
        spent.iter().map(|(_, spent)| spent).sum::<f64>(),
        played.overspent,
        played.rejected,
        mean(turn),
        mean(turn_within),
        mean(daily),
        mean(fixed),
        mean(clairvoyant),
        ratio_to(turn),
        ratio_to(turn_within),
        ratio_to(fixed),
        results.uneven / worlds,
        by.join(", ")
    )
}

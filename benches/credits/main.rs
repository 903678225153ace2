//! Measures the delay until corrections are noticed, and its cost: simulates three years with the real planner and budget.
//!
//! `cargo bench --bench credits [-- WORDS]` prints a row for each kind of world whose name contains all words or phrases, such as
//! `nothing starter "300 tokens"`. Each world keeps its state over the three years. The daemon has the config that `init` writes, with the
//! starter rules (`rules/`) or none, so that all endpoints compete. `WORLDS=12` sets the number of worlds per kind. `SEED=1000` sets the first seed, so that a policy is not tuned and evaluated on the same
//! worlds. The rows compare the planner with four strategies: each token in turn at an even pace, each token daily until the credits are
//! used up, the best fixed allocation with known rates, and a clairvoyant one. These spend all credits on schedules and need no list.
//! Ratios are over the same corrections, with the standard error over the worlds: of all three years, of the first 60 days ("new"), and of
//! 60 days near the end ("aged"). Corrections that only allocations show have a column of their own.

use std::{fs, path::Path, sync::Mutex, thread};

use anyhow::ensure;
use cliffwatch::{
    model::{SourceText, config},
    rules::{self, RuleSet, Surroundings},
};

mod play;
mod score;
mod world;

use score::{Score, Scorer};
use world::{DAYS, ListReports, World};

/// The parameters of a row.
struct Case {
    name: String,
    is_dated: bool,
    has_rules: bool,
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

/// The files that a daemon runs with.
struct Files {
    config: config::Config,
    starter_rules: RuleSet,
    slots: Vec<play::Slot>,
}

/// The scored days: a new database with its first reads, all three years, and a database with a history.
const WINDOWS: [(f64, f64); 3] = [(0.0, 60.0), (0.0, DAYS), (DAYS - 150.0, DAYS - 90.0)];

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = Seeds { first: number("SEED").unwrap_or(1), worlds: number("WORLDS") };
    let config = config::Config::default();
    let slots = play::slots(&config.schedule, World::random(0, ListReports::None, 0).begin)?;
    let files = Files { starter_rules: starter_rules()?, config, slots };
    let mut cases = Vec::new();
    for (reports, reported) in
        [(ListReports::All, "all"), (ListReports::Some, "some"), (ListReports::None, "none"), (ListReports::Nothing, "nothing")]
    {
        for (is_dated, of) in [(true, "dated"), (false, "random")] {
            for (has_rules, rules) in [(true, "starter"), (false, "no-rules")] {
                for tokens in [30, 100, 300] {
                    for credits in [300, 1_000, 5_000] {
                        let name = format!("{reported:<7} {of:<6} {rules:<8} {tokens:>3} tokens {credits:>4} credits");
                        cases.push(Case { name, is_dated, has_rules, tokens, credits, reports });
                    }
                }
            }
        }
    }
    let matches = |case: &Case, word: &String| {
        let is_phrase = word.contains(' ');
        if is_phrase { case.name.contains(word.as_str()) } else { case.name.split(' ').any(|part| part == word) }
    };
    cases.retain(|case| words.iter().all(|word| matches(case, word)));
    println!(
        "{:<47} {:>7} {:>7} {:>6} {:>7}  {:>5} {:>4} {:>4}  {:>7} {:>7} {:>7} {:>6}  {:>14} {:>14} {:>14} {:>14}  {:>6}  spent per month",
        "reports, world, rules",
        "mean h",
        "p95 h",
        "unseen",
        "alloc h",
        "used",
        "over",
        "429",
        "turn",
        "daily",
        "fixed",
        "clairv",
        "/turn",
        "/turn, new",
        "/turn, aged",
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
                    match row(case, seeds, &files) {
                        Ok(row) => println!("{row}"),
                        Err(error) => println!("{}: {error}", case.name),
                    }
                }
            });
        }
    });
    Ok(())
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

/// The scores of the planner and of the other strategies in the worlds of a row.
#[derive(Default)]
struct Row {
    /// The planner and reading in turn, in each of [`WINDOWS`].
    ours: [Vec<Score>; WINDOWS.len()],
    turn: [Vec<Score>; WINDOWS.len()],
    fixed: Vec<Score>,
    daily: Vec<Score>,
    clairvoyant: Vec<Score>,
    /// Corrections that only allocations show.
    allocations: Vec<Score>,
    uneven: f64,
    played: play::Played,
}

impl Row {
    fn play(&mut self, world: &World, case: &Case, files: &Files) {
        let no_rules = RuleSet::default();
        let rules = if case.has_rules { &files.starter_rules } else { &no_rules };
        let one = play::play(world, (&files.config, rules), &files.slots, case.credits);
        let turn = score::in_turn(world, case.credits);
        let since: Vec<f64> = turn.iter().map(|reads| reads.first().copied().unwrap_or(0.0)).collect();
        let by_law = !case.is_dated && case.reports == ListReports::Nothing;
        let scorer = |window| Scorer { world, since: since.clone(), window, by_law };
        for (index, window) in WINDOWS.into_iter().enumerate() {
            self.ours[index].push(scorer(window).score(&one.reads));
            self.turn[index].push(scorer(window).score(&turn));
        }
        let whole = scorer((0.0, DAYS));
        self.fixed.push(whole.score(&score::best_fixed(world, case.credits)));
        self.daily.push(whole.score(&score::daily(world, case.credits)));
        self.clairvoyant.push(whole.score(&score::clairvoyant(world, case.credits)));
        let only_in_allocations = world.only_in_allocations();
        let known = one.allocation_reads.iter().map(|reads| reads.first().copied().unwrap_or(DAYS)).collect();
        let of_allocations = Scorer { world: &only_in_allocations, since: known, window: (0.0, DAYS), by_law: false };
        self.allocations.push(of_allocations.score(&one.allocation_reads));
        self.uneven += score::unevenness(&one.reads);
        self.played = std::mem::take(&mut self.played).with(one);
    }
}

fn row(case: &Case, seeds: Seeds, files: &Files) -> anyhow::Result<String> {
    // Small worlds have few corrections, so use more of them.
    let worlds = seeds.worlds.unwrap_or((600 / case.tokens as u64).clamp(3, 20));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/revisions");
    let mut row = Row::default();
    for seed in seeds.first..seeds.first + worlds {
        let world = match case.is_dated {
            true => World::dated(&folder, case.tokens, case.reports, seed)?,
            false => World::random(case.tokens, case.reports, seed),
        };
        row.play(&world, case, files);
    }
    let [ours, turn, fixed, daily, clairvoyant, allocations] =
        [&row.ours[1], &row.turn[1], &row.fixed, &row.daily, &row.clairvoyant, &row.allocations].map(|worlds| Score::of(worlds));
    let of = |ours: &[Score], rival: &[Score]| match score::ratio(ours, rival) {
        (ratio, Some(error)) => format!("{ratio:.3} ± {error:.3}"),
        (ratio, None) => format!("{ratio:.3}"),
    };
    let played = &row.played;
    let months = played.periods.len() as f64;
    let used = played.periods.iter().sum::<u64>() as f64 / months;
    let by: Vec<String> =
        played.spent.iter().map(|(endpoint, spent)| format!("{endpoint} {:.1}", *spent as f64 / months)).collect();
    let [new, whole, aged] = [0, 1, 2].map(|window: usize| of(&row.ours[window], &row.turn[window]));
    Ok(format!(
        "{:<47} {:>7.2} {:>7.1} {:>5.1}% {:>7.0}  {:>5.0} {:>4} {:>4}  {:>7.1} {:>7.1} {:>7.1} {:>6.1}  {whole:>14} {new:>14} {aged:>14} {:>14}  {:>6.3}  {}",
        case.name,
        ours.mean,
        ours.p95,
        ours.unseen * 100.0,
        allocations.mean,
        used,
        played.overspent,
        played.rejected,
        turn.mean,
        daily.mean,
        fixed.mean,
        clairvoyant.mean,
        of(&row.ours[1], &row.fixed),
        row.uneven / worlds as f64,
        by.join(", ")
    ))
}

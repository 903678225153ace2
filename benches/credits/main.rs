//! How late corrections are noticed, and what that costs: worlds of three years, played through the real planner and budget.
//!
//! `cargo bench --bench credits [-- WORDS]` prints a row for each world, of those whose names hold every word. Each is one state
//! that ages over all three years, under the default schedule and rules that hear of unlocks alone. Beside it: every token in turn at an
//! even pace, every token daily until the credits are gone, the best fixed allocation with the rates known, and a clairvoyant. All of
//! these spend every credit on schedules and need no list.

use std::{path::Path, sync::Mutex, thread};

use cliffwatch::model::config;

mod play;
mod score;
mod world;

use world::{Tells, World};

/// A row to be.
struct Case {
    name: String,
    is_dated: bool,
    tokens: usize,
    credits: u64,
    tells: Tells,
}

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
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
        "{:<38} {:>7} {:>7} {:>6}  {:>5} {:>4} {:>4}  {:>7} {:>7} {:>7} {:>6}  {:>6} {:>6}  spent a month",
        "told, world", "mean h", "p95 h", "unseen", "used", "over", "429", "turn", "daily", "fixed", "clairv", "/turn", "/fixed"
    );
    let next = Mutex::new(cases.iter());
    let workers = thread::available_parallelism()?.get();
    // Each as it is done.
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(case) = { next.lock().ok().and_then(|mut next| next.next()) } {
                    match row(case, &config, &slots) {
                        Ok(row) => println!("{row}"),
                        Err(error) => println!("{}: {error}", case.name),
                    }
                }
            });
        }
    });
    Ok(())
}

fn row(case: &Case, config: &config::Config, slots: &[play::Slot]) -> anyhow::Result<String> {
    // A small world has too few corrections to say much.
    let worlds = (180 / case.tokens).clamp(1, 6);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/revisions");
    let mut played = play::Played::default();
    let [mut ours, mut turn, mut fixed, mut daily, mut clairvoyant] = [score::Score::default(); 5];
    for seed in 1..=worlds as u64 {
        let world = match case.is_dated {
            true => World::dated(&folder, case.tokens, case.tells, seed)?,
            false => World::random(case.tokens, case.tells, seed),
        };
        let one = play::play(&world, config, slots, case.credits);
        ours = ours.with(one.score);
        turn = turn.with(score::in_turn(&world, case.credits));
        fixed = fixed.with(score::best_fixed(&world, case.credits));
        daily = daily.with(score::daily(&world, case.credits));
        clairvoyant = clairvoyant.with(score::clairvoyant(&world, case.credits));
        played = played.with(one);
    }
    let months = played.periods.len() as f64;
    let used = played.periods.iter().sum::<u64>() as f64 / months;
    let by: Vec<String> =
        played.spent.iter().map(|(endpoint, spent)| format!("{endpoint} {:.0}", *spent as f64 / months)).collect();
    Ok(format!(
        "{:<38} {:>7.2} {:>7.1} {:>5.1}%  {:>5.0} {:>4} {:>4}  {:>7.1} {:>7.1} {:>7.1} {:>6.1}  {:>6.3} {:>6.3}  {}",
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
        ours.mean / turn.mean,
        ours.mean / fixed.mean,
        by.join(", ")
    ))
}

//! Runs the fuzz targets over all seeds and all inputs in `found/`, so that a fixed bug stays fixed.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

#[path = "../fuzz/targets.rs"]
mod targets;

/// The time limit for one input, in a debug build on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files under a folder of the repository, sorted.
fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![repository().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// The dictionary of the fuzzer.
fn words() -> Vec<String> {
    let text = fs::read_to_string(repository().join("tests/fuzz/words.dict")).expect("read");
    let lines = text.lines().filter(|line| line.starts_with('"'));
    lines.map(|line| serde_json::from_str(line).expect("a text in quotes")).collect()
}

/// Applies a few random mutations: inserts words, and deletes, repeats, and moves parts.
fn mutate(bytes: &[u8], words: &[String], dice: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..dice.usize(1..6) {
        let at = dice.usize(..=bytes.len());
        let end = (at + dice.usize(..40)).min(bytes.len());
        match dice.u8(..6) {
            0 => drop(bytes.splice(at..at, words[dice.usize(..words.len())].bytes())),
            1 => drop(bytes.splice(at..end, words[dice.usize(..words.len())].bytes())),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let part = bytes[at..end].repeat(dice.usize(1..4));
                drop(bytes.splice(at..at, part));
            }
            4 => {
                let part: Vec<u8> = bytes.drain(at..end).collect();
                let to = dice.usize(..=bytes.len());
                drop(bytes.splice(to..to, part));
            }
            _ => bytes.get_mut(at).into_iter().for_each(|byte| *byte = dice.u8(..)),
        }
    }
    bytes
}

/// Runs a target over its seeds, the inputs in `found/`, and `more`, each also truncated, and over 40 random mutations of them.
/// `CLIFFWATCH_FUZZ_SECONDS` sets a duration for the mutations instead.
fn play(name: &str, target: impl Fn(&[u8]), more: &[&str]) {
    let mut inputs = files(&format!("tests/fuzz/seeds/{name}"));
    inputs.extend(files(&format!("tests/fuzz/found/{name}")));
    inputs.extend(more.iter().flat_map(|path| if path.ends_with(".toml") { vec![repository().join(path)] } else { files(path) }));
    assert!(!inputs.is_empty(), "{name} has no seeds");
    let mut all = Vec::new();
    for path in inputs {
        let bytes = fs::read(&path).expect("read");
        all.push(bytes.clone());
        for length in [bytes.len(), bytes.len() / 2, bytes.len() / 3] {
            let began = Instant::now();
            target(&bytes[..length]);
            assert!(began.elapsed() < WAIT_TIMEOUT, "{} takes {:?}", path.display(), began.elapsed());
        }
    }
    let seconds = std::env::var("CLIFFWATCH_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let (words, mut tried) = (words(), 0);
    while until.map_or(tried < 40, |until| Instant::now() < until) {
        let seed = match until {
            None => tried,
            Some(_) => fastrand::u64(..),
        };
        let mut dice = fastrand::Rng::with_seed(seed);
        let input = mutate(&all[dice.usize(..all.len())], &words, &mut dice);
        let began = Instant::now();
        let shown = || format!("{name}, seed {seed}: {:?}", String::from_utf8_lossy(&input));
        if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target(&input))) {
            eprintln!("{}", shown());
            std::panic::resume_unwind(panic);
        }
        assert!(began.elapsed() < WAIT_TIMEOUT, "{:?}: {}", began.elapsed(), shown());
        tried += 1;
    }
    eprintln!("{name}: {tried} mutated inputs");
}

#[test]
fn rule_files_never_panic_or_hang() {
    play("rules", targets::rules, &["rules/unlocks.toml", "rules/changes.toml", "rules/supply.toml", "rules/examples/desk.toml"]);
}

#[test]
fn conditions_never_panic_or_hang() {
    play("conditions", targets::conditions, &[]);
}

#[test]
fn test_files_never_panic_or_hang() {
    play("rule_tests", |data| targets::rule_tests(data, repository()), &["rules/tests"]);
}

#[test]
fn configs_never_panic_or_hang() {
    play("config", targets::config, &["src/cli/init.toml"]);
}

#[test]
fn responses_never_panic_or_hang_and_repeats_notify_nothing() {
    play("responses", targets::responses, &[]);
}

#[test]
fn deep_nesting_and_giant_files_are_rejected_quickly() {
    let began = Instant::now();
    for (open, close) in [("[", "]"), ("{a=", "}"), ("\"\"\"", "\"\"\"")] {
        for depth in [100, 10_000, 100_000] {
            let text = format!("a = {}{}", open.repeat(depth), close.repeat(depth));
            targets::rules(text.as_bytes());
            targets::config(text.as_bytes());
            targets::rule_tests(text.as_bytes(), repository());
        }
    }
    for (open, close) in [("(", ")"), ("[", "]"), ("!", ""), ("-", ""), ("a.b(", ")"), ("true ? ", ""), ("{1:", "}")] {
        for depth in [10, 60, 200] {
            targets::conditions(format!("unlock\n{}true{}", open.repeat(depth), close.repeat(depth)).as_bytes());
        }
    }
    for depth in [100, 100_000] {
        let response = format!("{{\"status\":true,\"data\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        targets::responses(response.as_bytes());
    }
    let rule = "[[rule]]\nalert = \"A\"\non = \"unlock\"\n";
    targets::rules(rule.repeat(20_000).as_bytes());
    targets::config("[[receiver]]\nname = \"a\"\ntype = \"webhook\"\n".repeat(5_000).as_bytes());
    assert!(began.elapsed() < WAIT_TIMEOUT * 2, "{:?}", began.elapsed());
}

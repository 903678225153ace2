//! The page of real rules: each file of `rules/examples` is right, has its tests, and every rule in it and in the starter set is tested.

use std::{collections::BTreeSet, fs, path::Path};

use crate::binary::Desk;

fn rules_folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("rules")
}

/// Names after `word =` in a file, such as those of its rules.
fn named(path: &Path, word: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let of = |(at, _): (usize, &str)| {
        let is_whole = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let value = text[at + word.len()..].trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?;
        is_whole.then(|| value.split('"').next().unwrap_or_default().to_owned())
    };
    text.match_indices(word).filter_map(of).collect()
}

#[test]
fn every_rule_of_the_starter_set_and_of_the_examples_has_a_test() {
    for (folder, files) in [("", ["unlocks", "changes", "supply"]), ("examples", ["desk", "treasury", "exchange"])] {
        for file in files {
            let folder = rules_folder().join(folder);
            let rules = named(&folder.join(format!("{file}.toml")), "alert");
            let tested = named(&folder.join(format!("tests/{file}.toml")), "rule");
            // Trouble with the source is none of what a test can give; `tests/it/faults.rs` has it.
            let untested: Vec<_> = rules.difference(&tested).filter(|rule| *rule != "SourceTrouble").collect();
            assert!(rules.len() >= 3 && untested.is_empty(), "{file}.toml: no test expects {untested:?}");
        }
    }
}

#[test]
fn the_examples_pass_check_and_their_tests_and_are_not_loaded_by_default() {
    let desk = Desk::new();
    desk.write(
        "cliffwatch.toml",
        "[watch]\ntokens = [\"aptos\", \"jupiter\", \"newcoin\"]\n[watch.groups]\nbook = [\"aptos\"]\nown = [\"jupiter\"]\n\
         listed = [\"aptos\"]\ncandidates = [\"newcoin\"]\n[schedule]\nallocations = \"0 30 3 * * *\"\n",
    );
    fs::create_dir_all(desk.path("rules/examples/tests")).expect("made");
    for file in ["desk", "treasury", "exchange"] {
        for name in [format!("{file}.toml"), format!("tests/{file}.toml")] {
            let text = fs::read_to_string(rules_folder().join("examples").join(&name)).expect("read");
            desk.write(&format!("rules/examples/{name}"), &text);
        }
    }
    let ran = desk.run("check");
    assert!(ran.err.contains("0 rules in 0 files"), "{}", ran.err);
    let config = fs::read_to_string(desk.path("cliffwatch.toml")).expect("read");
    desk.write("cliffwatch.toml", &format!("{config}[rules]\npaths = [\"rules/examples/*.toml\"]\n"));
    let ran = desk.run("check --strict");
    assert_eq!(ran.code(), 0, "{}", ran.err);
    let ran = desk.run("test");
    assert_eq!(ran.code(), 0, "{}\n{}", ran.out, ran.err);
    assert!(ran.out.contains("14 tests passed"), "{}", ran.out);
}

#[test]
fn the_starter_rules_send_a_fund_of_twenty_tokens_what_the_docs_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_to_string(root.join("docs/rules.md")).expect("read");
    let line = docs.lines().find_map(|line| line.strip_prefix("cliffwatch backtest data --rules rules ")).expect("the command");
    let desk = Desk::new();
    desk.write("cliffwatch.toml", "");
    let (data, rules) = (root.join("data"), rules_folder());
    let run = format!("backtest {} --rules {} {line} --format json --messages 0", data.display(), rules.display());
    let ran: serde_json::Value = serde_json::from_str(&desk.run(&run).ok()).expect("JSON");
    let messages: u64 =
        ran["summary"]["receivers"].as_array().expect("receivers").iter().map(|of| of["messages"].as_u64().unwrap()).sum();
    assert!(docs.contains(&format!("would have heard {messages} messages in\nthose 52 weeks")), "{messages} messages");
    assert!((140..=190).contains(&messages), "about three a week: {messages}");
}

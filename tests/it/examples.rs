//! The starter rules and `rules/examples`: every file passes `check`, and every rule has a test.

use std::{collections::BTreeSet, fs, path::Path};

use crate::it::binary::Workdir;

fn rules_folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("rules")
}

/// The quoted values after `word =` in a file, such as the names of its rules.
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
fn every_starter_and_example_rule_has_a_test() {
    for (folder, files) in [("", ["unlocks", "changes", "supply"]), ("examples", ["desk", "treasury", "exchange"])] {
        for file in files {
            let folder = rules_folder().join(folder);
            let rules = named(&folder.join(format!("{file}.toml")), "alert");
            let tested = named(&folder.join(format!("tests/{file}.toml")), "rule");
            // Rule tests cannot simulate a source incident; `tests/it/faults.rs` covers it.
            let untested: Vec<_> = rules.difference(&tested).filter(|rule| *rule != "SourceTrouble").collect();
            assert!(rules.len() >= 3 && untested.is_empty(), "{file}.toml: no test expects {untested:?}");
        }
    }
}

#[test]
fn examples_pass_check_and_their_tests_and_are_not_loaded_by_default() {
    let workdir = Workdir::new();
    workdir.write(
        "cliffwatch.toml",
        "[watch]\ntokens = [\"aptos\", \"jupiter\", \"newcoin\"]\n[watch.groups]\nbook = [\"aptos\"]\nown = [\"jupiter\"]\n\
         listed = [\"aptos\"]\ncandidates = [\"newcoin\"]\n[schedule]\nallocations = \"0 30 3 * * *\"\n",
    );
    fs::create_dir_all(workdir.path("rules/examples/tests")).expect("made");
    for file in ["desk", "treasury", "exchange"] {
        for name in [format!("{file}.toml"), format!("tests/{file}.toml")] {
            let text = fs::read_to_string(rules_folder().join("examples").join(&name)).expect("read");
            workdir.write(&format!("rules/examples/{name}"), &text);
        }
    }
    let ran = workdir.run("check");
    assert!(ran.code() == 1 && ran.err.contains("0 rules in 0 files") && ran.err.contains("no rules found"), "{}", ran.err);
    let config = fs::read_to_string(workdir.path("cliffwatch.toml")).expect("read");
    workdir.write("cliffwatch.toml", &format!("{config}[rules]\npaths = [\"rules/examples/*.toml\"]\n"));
    let ran = workdir.run("check --strict");
    assert_eq!(ran.code(), 0, "{}", ran.err);
    let ran = workdir.run("test");
    assert_eq!(ran.code(), 0, "{}\n{}", ran.out, ran.err);
    assert!(ran.out.contains("18 tests passed"), "{}", ran.out);
}

#[test]
fn starter_rules_send_as_many_messages_as_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_to_string(root.join("docs/rules.md")).expect("read");
    let line = docs.lines().find_map(|line| line.strip_prefix("cliffwatch backtest data --rules rules ")).expect("the command");
    let workdir = Workdir::new();
    workdir.write("cliffwatch.toml", "");
    let (data, rules) = (root.join("data"), rules_folder());
    let run = format!("backtest {} --rules {} {line} --format json --messages 0", data.display(), rules.display());
    let ran: serde_json::Value = serde_json::from_str(&workdir.run(&run).ok()).expect("JSON");
    let messages: u64 =
        ran["summary"]["receivers"].as_array().expect("receivers").iter().map(|of| of["messages"].as_u64().unwrap()).sum();
    assert!(docs.contains(&format!("would have sent {messages} messages in 52 weeks")), "{messages} messages");
    assert!((200..=260).contains(&messages), "expected about five per week: {messages}");
}

use super::*;
use crate::config::{load, load_text};

const RULES: &str = "[[rule]]\nalert = \"A\"\non = \"unlock\"\nowner = \"desk\"\n\n[[rule]]\nalert = \"B\"\non = \"burn\"\nowner = \"treasury\"\nwhen = \"amount > 5\"\n";
const TEST: &str = "rules = [\"../r.toml\"]\n[[test]]\nname = \"a burn\"\nstart = 2026-03-01T00:00:00Z\n[[test.input]]\ntoken = \"x\"\nburn = []\n[[test.input]]\nat = \"1d\"\ntoken = \"x\"\nadd = [{ burn = \"2026-03-01\", amount = 7 }]\n[[test.expect]]\nat = \"2d\"\nalert = [{ rule = \"B\" }]\n";

fn folder(rules: &str, test: &str) -> (tempfile::TempDir, Config) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("rules/tests")).expect("made");
    std::fs::write(folder.path().join("rules/r.toml"), rules).expect("written");
    std::fs::write(folder.path().join("rules/tests/t.toml"), test).expect("written");
    (folder, load(None, &Environment::default()).config.expect("the defaults"))
}

fn read_of(rules: &str, test: &str) -> ReadFiles {
    let (folder, config) = folder(rules, test);
    let mut read = read(&config, &mut GoodFiles::default(), None, folder.path(), Timestamp::default());
    if let Some(problem) = &mut read.problem {
        problem.brief = problem.brief.replace(&format!("{}/", folder.path().display()), "");
    }
    read
}

#[test]
fn valid_rules_with_passing_tests_are_accepted() {
    let read = read_of(RULES, TEST);
    assert_eq!((read.problem, read.outcomes.len(), read.set.rules.len()), (None, 1, 2));
}

#[test]
fn error_has_location_owner_and_suggestion() {
    let problem = read_of(&RULES.replace("amount > 5", "amuont > 5"), TEST).problem.expect("a problem");
    assert_eq!(problem.count, 1);
    assert_eq!(problem.brief, "rules/r.toml:10:9: unknown name `amuont` (did you mean `amount`?)");
    assert_eq!(problem.owners, ["treasury"]);
    assert!(problem.full.contains("^^^^^^"), "{}", problem.full);
}

#[test]
fn receiver_that_cannot_be_built_has_a_location() {
    let (folder, active) = folder(RULES, TEST);
    let path = folder.path().join("cliffwatch.toml");
    std::fs::write(&path, "[watch]\ntokens = [\"aptos\"]\n[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\n").expect("written");
    let origin = Origin { path, environment: Environment::default() };
    let read = read(&active, &mut GoodFiles::default(), Some(&origin), folder.path(), Timestamp::default());
    let problem = read.problem.expect("a problem");
    assert!(problem.brief.contains("cliffwatch.toml:3:1: receiver \"ops\": `url`: "), "{}", problem.brief);
}

#[test]
fn failing_test_rejects_rules() {
    let problem = read_of(&RULES.replace("amount > 5", "amount > 50"), TEST).problem.expect("a problem");
    assert_eq!(problem.brief, "rules/tests/t.toml:12: the test fails: a burn");
    assert_eq!(problem.owners, ["treasury"]);
}

#[test]
fn fingerprint_changes_with_every_file_and_nothing_else() {
    let (folder, config) = folder(RULES, TEST);
    let print = || fingerprint(&config, None, folder.path());
    let first = print();
    assert_eq!(print(), first);
    std::fs::write(folder.path().join("rules/r.toml"), RULES).expect("written");
    assert_eq!(print(), first, "rewriting the same text is not a change");
    std::fs::write(folder.path().join("rules/tests/t.toml"), format!("{TEST}#")).expect("written");
    let second = print();
    assert_ne!(second, first);
    std::fs::write(folder.path().join("rules/more.toml"), "").expect("written");
    let third = print();
    assert_ne!(third, second);
    std::fs::remove_file(folder.path().join("rules/more.toml")).expect("removed");
    assert_eq!(print(), second);
}

#[test]
fn restart_only_keys_are_kept_and_reported_without_secrets() {
    let of = |text: &str| load_text(None, text, &Environment::default()).config.expect("a config");
    let active = of("[store]\npath = \"a.db\"\n[source]\napi_key = \"one\"\n");
    let same = of("[store]\npath = \"a.db\"\n[source]\napi_key = \"one\"\n[watch]\ntokens = [\"aptos\"]\n");
    let merged = |mut new: Config| {
        let needs_restart = new.keep_until_restart(&active);
        (new, needs_restart)
    };
    let (config, needs_restart) = merged(same);
    assert_eq!((config.watch.tokens, needs_restart), (vec!["aptos".to_owned()], Vec::new()));

    let other = "[store]\npath = \"b.db\"\nretention = \"30d\"\n[source]\napi_key = \"two\"\ntimeout = \"7s\"\n[http]\nlisten = \"off\"\n";
    let (config, mut needs_restart) = merged(of(other));
    needs_restart.sort();
    assert_eq!(needs_restart, ["[http] listen", "[source] api_key", "[source] timeout", "[store] path"]);
    assert_eq!(config.store.path, active.store.path);
    assert_eq!(config.source.timeout, active.source.timeout);
    assert_eq!(config.store.retention, "30d".parse().expect("a duration"), "other keys of the section take effect");
}

#[test]
fn invalid_config_keeps_active_one_and_names_line() {
    let (folder, active) = folder(RULES, TEST);
    let path = folder.path().join("cliffwatch.toml");
    let origin = Origin { path: path.clone(), environment: Environment::default() };
    std::fs::write(&path, "[watch]\ntokens = [\"aptos\"]\n").expect("written");
    let print = || fingerprint(&active, Some(&origin), folder.path());
    let first = print();
    let good = super::read(&active, &mut GoodFiles::default(), Some(&origin), folder.path(), Timestamp::default());
    assert_eq!((good.problem, good.config.watch.tokens), (None, vec!["aptos".to_owned()]));

    std::fs::write(&path, "[watch]\ntokns = [\"aptos\"]\n").expect("written");
    assert_ne!(print(), first, "saving the config changes the fingerprint");
    let bad = super::read(&active, &mut GoodFiles::default(), Some(&origin), folder.path(), Timestamp::default());
    let problem = bad.problem.expect("a problem");
    assert!(
        problem.brief.ends_with("cliffwatch.toml:2:1: unknown key `tokns` in [watch] (did you mean `tokens`?)"),
        "{problem:?}"
    );
    assert_eq!(bad.config.watch.tokens, active.watch.tokens);
}

/// Writes a config with a file of positions next to the rules, and reads it.
fn read_with_positions(book: Option<&str>) -> (ReadFiles, Config) {
    let (folder, active) = folder(RULES, TEST);
    let path = folder.path().join("cliffwatch.toml");
    let receivers =
        "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\n[route]\nreceivers = [\"ops\"]\n";
    let text = format!("[watch]\npositions_file = \"book.csv\"\npositions = {{ aptos = 71234 }}\n{receivers}");
    std::fs::write(&path, text).expect("written");
    if let Some(book) = book {
        std::fs::write(folder.path().join("book.csv"), book).expect("written");
    }
    let origin = Origin { path, environment: Environment::default() };
    let read = read(&active, &mut GoodFiles::default(), Some(&origin), folder.path(), Timestamp::default());
    let started = loading::load(Some(&origin.path), &origin.environment).config.expect("a config to start with");
    (read, started)
}

#[test]
fn reload_with_bad_positions_keeps_the_active_config_and_names_the_line() {
    let (read, config) = read_with_positions(Some("token,amount\narbitrum,71235\n"));
    assert_eq!(read.problem, None);
    assert_eq!(config.watch.positions.stated.len(), 2);
    for (book, expected) in [
        (Some("token,amount\narbitrum,x71235\n"), "book.csv:2"),
        (Some("APTOS,71235\n"), "is given twice"),
        (None, "does not exist"),
    ] {
        let (read, config) = read_with_positions(book);
        let problem = read.problem.expect("a problem");
        assert!(problem.full.contains(expected) || problem.brief.contains(expected), "{problem:?}");
        assert!(!problem.full.contains("7123") && !problem.brief.contains("7123"), "{problem:?}");
        assert_eq!(config.watch.positions.stated.len(), 1, "a start uses the other positions");
    }
}

#[test]
fn fingerprint_changes_with_the_positions() {
    let (folder, mut config) = folder(RULES, TEST);
    let book = folder.path().join("book.csv");
    config.watch.positions_file = Some(book.clone());
    std::fs::write(&book, "aptos,1\n").expect("written");
    let before = fingerprint(&config, None, folder.path());
    std::fs::write(&book, "aptos,2\n").expect("written");
    assert_ne!(fingerprint(&config, None, folder.path()), before);
}

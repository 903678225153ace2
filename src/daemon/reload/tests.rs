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
fn good_rules_with_good_tests_go_to_work() {
    let read = read_of(RULES, TEST);
    assert_eq!((read.problem, read.outcomes.len(), read.set.rules.len()), (None, 1, 2));
}

#[test]
fn a_bad_line_is_named_with_its_owner_and_what_was_meant() {
    let problem = read_of(&RULES.replace("amount > 5", "amuont > 5"), TEST).problem.expect("a problem");
    assert_eq!(problem.count, 1);
    assert_eq!(problem.brief, "rules/r.toml:10:9: nothing is called `amuont` (did you mean `amount`?)");
    assert_eq!(problem.owners, ["treasury"]);
    assert!(problem.full.contains("^^^^^^"), "{}", problem.full);
}

#[test]
fn a_failing_test_keeps_the_rules_out() {
    let problem = read_of(&RULES.replace("amount > 5", "amount > 50"), TEST).problem.expect("a problem");
    assert_eq!(problem.brief, "rules/tests/t.toml:12: the test fails: a burn");
    assert_eq!(problem.owners, ["treasury"]);
}

#[test]
fn the_fingerprint_moves_with_every_file_and_with_nothing_else() {
    let (folder, config) = folder(RULES, TEST);
    let print = || fingerprint(&config, None, folder.path());
    let first = print();
    assert_eq!(print(), first);
    std::fs::write(folder.path().join("rules/r.toml"), RULES).expect("written");
    assert_eq!(print(), first, "the same again is no change");
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
fn what_only_a_restart_can_change_stays_and_is_named_without_its_secrets() {
    let of = |text: &str| load_text(None, text, &Environment::default()).config.expect("a config");
    let at_work = of("[store]\npath = \"a.db\"\n[source]\napi_key = \"one\"\n");
    let same = of("[store]\npath = \"a.db\"\n[source]\napi_key = \"one\"\n[watch]\ntokens = [\"aptos\"]\n");
    let (config, waits) = beside(&at_work, same);
    assert_eq!((config.watch.tokens, waits), (vec!["aptos".to_owned()], Vec::new()));

    let other = "[store]\npath = \"b.db\"\nretention = \"30d\"\n[source]\napi_key = \"two\"\ntimeout = \"7s\"\n[http]\nlisten = \"off\"\n";
    let (config, mut waits) = beside(&at_work, of(other));
    waits.sort();
    assert_eq!(waits, ["[http] listen", "[source] api_key", "[source] timeout", "[store] path"]);
    assert_eq!(config.store.path, at_work.store.path);
    assert_eq!(config.source.timeout, at_work.source.timeout);
    assert_eq!(config.store.retention, "30d".parse().expect("a length of time"), "the rest of a section goes to work");
}

#[test]
fn a_config_with_a_mistake_leaves_the_one_at_work_and_names_the_line() {
    let (folder, at_work) = folder(RULES, TEST);
    let path = folder.path().join("cliffwatch.toml");
    let origin = Origin { path: path.clone(), environment: Environment::default() };
    std::fs::write(&path, "[watch]\ntokens = [\"aptos\"]\n").expect("written");
    let print = || fingerprint(&at_work, Some(&origin), folder.path());
    let first = print();
    let good = super::read(&at_work, &mut GoodFiles::default(), Some(&origin), folder.path(), Timestamp::default());
    assert_eq!((good.problem, good.config.watch.tokens), (None, vec!["aptos".to_owned()]));

    std::fs::write(&path, "[watch]\ntokns = [\"aptos\"]\n").expect("written");
    assert_ne!(print(), first, "a save of the config is seen");
    let bad = super::read(&at_work, &mut GoodFiles::default(), Some(&origin), folder.path(), Timestamp::default());
    let problem = bad.problem.expect("a problem");
    assert!(
        problem.brief.ends_with("cliffwatch.toml:2:1: unknown key `tokns` in [watch] (did you mean `tokens`?)"),
        "{problem:?}"
    );
    assert_eq!(bad.config.watch.tokens, at_work.watch.tokens);
}

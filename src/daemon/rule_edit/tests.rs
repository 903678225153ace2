use super::*;
use tools::new_rule::RuleTopic;

fn now() -> Timestamp {
    "2026-11-27T12:00:00Z".parse().expect("a time")
}

fn request(above: f64) -> RuleRequest {
    RuleRequest {
        about: RuleTopic::Cliffs,
        name: "MyCliff".to_owned(),
        tokens: vec!["arbitrum".to_owned()],
        above: Some(above),
        percent: None,
        recipients: Vec::new(),
        within: vec!["7d".to_owned()],
        days: 35,
        window: "7d".to_owned(),
        severity: "warning".to_owned(),
        sample: "arbitrum".to_owned(),
    }
}

fn config() -> Config {
    let mut config = Config::default();
    config.rules.paths = vec!["rules/*.toml".to_owned()];
    config
}

fn prepared(above: f64, folder: &Path) -> Result<PreparedRule, String> {
    prepare(&request(above), &[], &config(), folder, now())
}

#[test]
fn rule_is_saved_with_its_author_and_replaced_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let rule = prepared(1e6, folder.path()).expect("prepared");
    assert!(rule.is_valid() && rule.outcomes.len() == 1, "{:?} {:?}", rule.diagnostics, rule.outcomes);
    assert!(!folder.path().join("rules").exists(), "nothing is written before it is saved");
    assert!(rule.file.difference().iter().all(|(sign, _)| *sign == '+'));
    rule.save("ann\nb", now()).expect("saved");
    let path = folder.path().join("rules/page-mycliff.toml");
    let text = fs::read_to_string(&path).expect("a file");
    assert!(
        text.starts_with("# Saved on the pages by ann b at 2026-11-27 12:00 UTC.\n# Cliffs with a value of $1.00M"),
        "{text}"
    );
    assert!(folder.path().join("rules/tests/page-mycliff.toml").exists());
    assert!(prepared(1e6, folder.path()).expect("prepared").file.difference().is_empty(), "the author is left out");

    let changed = prepared(2e6, folder.path()).expect("prepared");
    let difference = changed.file.difference();
    assert!(difference.contains(&('-', "when   = 'cliffValue >= 1000000'".to_owned())), "{difference:?}");
    assert!(difference.contains(&('+', "when   = 'cliffValue >= 2000000'".to_owned())), "{difference:?}");
    changed.save("bob", now()).expect("saved");
    changed.withdraw();
    assert_eq!(fs::read_to_string(&path).expect("a file"), text, "the text from before is restored");
}

#[test]
fn new_files_are_removed_if_they_are_withdrawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let rule = prepared(1e6, folder.path()).expect("prepared");
    rule.save("ann", now()).expect("saved");
    rule.withdraw();
    assert!(!rule.file.path.exists() && !rule.test.path.exists());
}

#[test]
fn files_of_others_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("rules")).expect("a folder");
    fs::write(folder.path().join("rules/page-mycliff.toml"), "# mine\n").expect("written");
    let problem = prepared(1e6, folder.path()).expect_err("another file");
    assert!(problem.contains("was not saved on the pages"), "{problem}");
    // Nor is one replaced that cannot be read.
    fs::write(folder.path().join("rules/page-mycliff.toml"), b"# \xff\n").expect("written");
    let problem = prepared(1e6, folder.path()).expect_err("not a text");
    assert!(problem.contains("cannot read"), "{problem}");
    // A test of someone else, for a rule that was not saved yet.
    fs::remove_file(folder.path().join("rules/page-mycliff.toml")).expect("removed");
    fs::create_dir_all(folder.path().join("rules/tests")).expect("a folder");
    fs::write(folder.path().join("rules/tests/page-mycliff.toml"), "# mine\n").expect("written");
    let problem = prepared(1e6, folder.path()).expect_err("another test");
    assert!(problem.contains("tests/page-mycliff.toml was not saved on the pages"), "{problem}");
    let elsewhere = Config { rules: model::config::RulesSettings { paths: vec!["one.toml".to_owned()] }, ..Config::default() };
    let problem = prepare(&request(1e6), &[], &elsewhere, folder.path(), now()).expect_err("no place");
    assert!(problem.contains("does not include"), "{problem}");
}

#[test]
fn rule_with_a_name_that_is_taken_is_not_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = SourceText {
        file: folder.path().join("rules/a.toml"),
        text: "[[rule]]\nalert = \"MyCliff\"\non = \"unlock\"\n".to_owned(),
    };
    let rule = prepare(&request(1e6), &[other], &config(), folder.path(), now()).expect("prepared");
    assert!(!rule.is_valid(), "{:?}", rule.diagnostics);
    assert!(matches!(rule.save("ann", now()), Err(SaveError::Invalid)));
    assert!(!rule.file.path.exists());
}

use super::*;
use model::Clock;

/// Creates a folder with a config, and an invocation that uses it.
fn workdir() -> (tempfile::TempDir, Invocation) {
    let folder = tempfile::tempdir().expect("a folder");
    let config = "[watch]\ntokens = [\"*\"]\ngroups = { portfolio = [\"arbitrum\", \"aptos\"] }\n[store]\npath = \"none.db\"\n";
    fs::write(folder.path().join("cliffwatch.toml"), config).expect("written");
    let invocation = Invocation {
        is_real_time: false,
        may_change_live_database: true,
        config: Some(folder.path().join("cliffwatch.toml")),
        format: crate::OutputFormat::Table,
        color: false,
        verbose: 0,
        clock: Clock::manual(model::wire::parse_timestamp("2026-07-01").expect("a time")),
    };
    (folder, invocation)
}

fn args(about: RuleTopic) -> NewRuleArgs {
    NewRuleArgs {
        about: Some(about),
        tokens: vec!["@portfolio".to_owned()],
        above: None,
        within: Vec::new(),
        days: None,
        window: None,
        severity: "warning".to_owned(),
        name: None,
        file: None,
        dry_run: false,
    }
}

#[test]
fn writes_rule_and_test_without_overwriting() {
    let (folder, invocation) = workdir();
    let path = |name: &str| folder.path().join(name);
    for about in [RuleTopic::Cliffs, RuleTopic::Burns, RuleTopic::Cliffs] {
        run(&NewCommand::Rule(args(about)), &invocation).expect("made");
    }
    let text = fs::read_to_string(path("rules/mine.toml")).expect("written");
    assert_eq!(text.matches("[[rule]]").count(), 3, "{text}");
    assert!(text.contains("alert  = \"CliffAhead\"") && text.contains("alert  = \"CliffAhead2\""), "{text}");
    for test in ["cliffahead", "cliffahead2", "largeburn"] {
        assert!(path(&format!("rules/tests/{test}.toml")).exists(), "{test}");
    }
    let named = NewRuleArgs { name: Some("LargeBurn".to_owned()), ..args(RuleTopic::Burns) };
    let error = run(&NewCommand::Rule(named), &invocation).expect_err("exists");
    assert!(error.to_string().contains("already exists"), "{error}");
    assert_eq!(fs::read_to_string(path("rules/mine.toml")).expect("read"), text, "nothing was written");
}

#[test]
fn dry_run_writes_nothing() {
    let (folder, invocation) = workdir();
    run(&NewCommand::Rule(NewRuleArgs { dry_run: true, ..args(RuleTopic::Pressure) }), &invocation).expect("shown");
    assert!(!folder.path().join("rules").exists());
}

#[test]
fn unknown_group_is_reported() {
    let (_folder, invocation) = workdir();
    let wrong = NewRuleArgs { tokens: vec!["@book".to_owned()], ..args(RuleTopic::Cliffs) };
    let error = run(&NewCommand::Rule(wrong), &invocation).expect_err("no such group");
    assert_eq!(error.to_string(), "unknown group @book: expected one of @portfolio");
}

#[test]
fn ticker_becomes_the_slug() {
    let (folder, invocation) = workdir();
    let named = NewRuleArgs { tokens: vec!["ARB".to_owned(), "opt*".to_owned()], ..args(RuleTopic::Cliffs) };
    run(&NewCommand::Rule(named), &invocation).expect("made");
    let text = fs::read_to_string(folder.path().join("rules/mine.toml")).expect("written");
    assert!(text.contains("tokens = [\"arbitrum\", \"opt*\"]"), "{text}");
}

#[test]
fn file_that_the_daemon_does_not_read_is_rejected() {
    let (folder, invocation) = workdir();
    fs::create_dir_all(folder.path().join("rules/below")).expect("made");
    for (file, is_read) in
        [("rules/own.toml", true), ("own.toml", false), ("rules/below/own.toml", false), ("rules/../own.toml", false)]
    {
        let elsewhere = NewRuleArgs { file: Some(folder.path().join(file)), dry_run: true, ..args(RuleTopic::Cliffs) };
        let result = run(&NewCommand::Rule(elsewhere), &invocation);
        match result {
            Ok(_) => assert!(is_read, "{file}"),
            Err(error) => assert!(!is_read && error.to_string().contains("is not in `[rules] paths`"), "{file}: {error}"),
        }
    }
}

#[test]
fn option_of_another_kind_is_rejected() {
    let (_folder, invocation) = workdir();
    let span = || "7d".parse::<Span>().expect("a span");
    for (wrong, expected) in [
        (
            NewRuleArgs { days: Some(3), ..args(RuleTopic::Cliffs) },
            "--days is not an option of --about cliffs, only of no-buyback",
        ),
        (NewRuleArgs { above: Some(1.0), ..args(RuleTopic::NoBuyback) }, "--above is not an option of --about no-buyback"),
        (
            NewRuleArgs { within: vec![span()], ..args(RuleTopic::Burns) },
            "--within is not an option of --about burns, only of cliffs",
        ),
        (NewRuleArgs { window: Some(span()), ..args(RuleTopic::Burns) }, "only of pressure and emissions: remove it"),
    ] {
        let error = run(&NewCommand::Rule(wrong), &invocation).expect_err("rejected").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn replays_the_bundled_data_over_the_last_year() {
    let (_folder, invocation) = workdir();
    let (config, _) = invocation.load().expect("a config");
    let known = known_tokens(&config, &invocation).expect("read");
    let request =
        RuleRequest { tokens: Vec::new(), ..request(&args(RuleTopic::Cliffs), &config, &[], &known).expect("a request") };
    let made = new_rule::generate(&request, "../mine.toml");
    let file = SourceText { file: "mine.toml".into(), text: made.rule };
    let around = rules::Surroundings { receivers: &[], groups: &config.watch.groups, now: invocation.clock.now() };
    let shown = sent_last_year(&rules::load(&[file], &around).set, &config, &invocation).expect("played");
    assert!(shown.contains("with the bundled data") && shown.contains("CliffAhead ("), "{shown}");
}

//! The first minutes: what `init` writes, what a mistake is answered with, what each command says of itself.

use super::*;

#[test]
fn what_init_writes_passes_check_and_a_second_init_replaces_nothing() {
    let desk = Desk::new();
    fs::remove_dir(desk.path("rules")).expect("removed");
    let ran = desk.run("init");
    assert_eq!(ran.code(), 0, "{}", ran.err);
    assert!(ran.err.contains("wrote cliffwatch.toml") && ran.err.contains("cliffwatch check"), "{}", ran.err);
    desk.write("api-key", "a key\n");
    for line in ["check", "check --strict"] {
        let ran = desk.run(line);
        assert_eq!((ran.code(), ran.out.as_str()), (0, ""), "{line}: {}", ran.err);
    }
    let before = fs::read(desk.path("cliffwatch.toml")).expect("read");
    let again = desk.run("init");
    assert_eq!(again.code(), 1);
    assert!(again.err.contains("nothing was written"), "{}", again.err);
    assert_eq!(fs::read(desk.path("cliffwatch.toml")).expect("read"), before);
}

#[test]
fn a_typo_is_answered_with_its_place_and_its_likely_meaning() {
    let good_config = "[source]\napi_key = \"k\"\n[watch]\ntokens = [\"arbitrum\"]\n";
    let good_rule = "[[rule]]\nalert = \"A\"\non = \"unlock\"\nwithin = [\"7d\"]\nwhen = \"cliffValue >= 5000000\"\n";
    let cases = [
        ("a config key", "[source]\napi_key = \"k\"\n[watch]\ntokns = [\"arbitrum\"]\n".to_owned(), good_rule.to_owned()),
        ("a config section", format!("{good_config}[budgt]\nreserve = \"5%\"\n"), good_rule.to_owned()),
        ("a cron expression", format!("{good_config}[schedule]\nburn = \"0 20 */6 * *\"\n"), good_rule.to_owned()),
        ("a cron field", format!("{good_config}[schedule]\nburn = \"0 75 */6 * * *\"\n"), good_rule.to_owned()),
        ("a time zone", format!("{good_config}[schedule]\ntimezone = \"Europe/Berln\"\n"), good_rule.to_owned()),
        ("a rule key", good_config.to_owned(), good_rule.replace("within", "wihtin")),
        ("a record", good_config.to_owned(), good_rule.replace("\"unlock\"", "\"unlok\"")),
        ("a field", good_config.to_owned(), good_rule.replace("cliffValue", "clifValue")),
        ("a type", good_config.to_owned(), good_rule.replace("cliffValue >= 5000000", "cliffValue >= 'five'")),
        ("a lead time", good_config.to_owned(), good_rule.replace("7d", "7dd")),
        (
            "a template variable",
            good_config.to_owned(),
            format!("{good_rule}annotations = {{ summary = \"{{{{ token.symbl }}}}\" }}\n"),
        ),
        (
            "a template filter",
            good_config.to_owned(),
            format!("{good_rule}annotations = {{ summary = \"{{{{ cliffValue | uds }}}}\" }}\n"),
        ),
        (
            "a receiver",
            format!(
                "{good_config}[route]\nreceivers = [\"opps\"]\n[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"https://example.com/x\"\n"
            ),
            good_rule.to_owned(),
        ),
    ];
    let mut golden = String::new();
    for (what, config, rule) in cases {
        let desk = Desk::new();
        desk.write("cliffwatch.toml", &config).write("rules/a.toml", &rule);
        let ran = desk.run("check");
        assert_eq!((ran.code(), ran.out.as_str()), (1, ""), "{what}: {}", ran.err);
        let problems: Vec<&str> = ran.err.lines().take_while(|line| !line.contains("1 error")).collect();
        golden.push_str(&format!("━━ {what}\n{}\n", problems.join("\n")));
        // The same place for programs.
        let ran = desk.run("check --format json");
        let problems: Value = serde_json::from_str(&ran.out).expect("JSON");
        let place = |key: &str| problems[0][key].as_u64().unwrap_or_default();
        assert_eq!(ran.code(), 1, "{what}");
        assert!(place("line") > 0 && place("column") > 0, "{what}: {problems:#}");
    }
    insta::assert_snapshot!(golden);
}

#[test]
fn every_problem_of_every_file_is_told_at_once() {
    let desk = Desk::new();
    desk.write("cliffwatch.toml", "[watch]\ntokens = [\"arbitrum\"]\n");
    desk.write(
        "rules/a.toml",
        "[[rule]]\nalert = \"A\"\non = \"unlok\"\n[[rule]]\nalert = \"B\"\non = \"burn\"\nwhen = \"amunt > 1\"\n",
    );
    desk.write("rules/b.toml", "[[rule]]\nalert = \"C\"\non = \"unlock\"\nwen = \"true\"\n");
    let ran = desk.run("check");
    for said in ["rules/a.toml:3:", "rules/a.toml:7:", "rules/b.toml:4:", "3 errors"] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
}

#[test]
fn exit_codes_are_those_of_the_readme() {
    let desk = Desk::new();
    desk.write("cliffwatch.toml", "[watch]\ntokens = [\"arbitrum\"]\n");
    // In percent: 0.05 is hardly meant.
    desk.write(
        "rules/a.toml",
        "[[rule]]\nalert = \"A\"\non = \"unlock\"\nwithin = [\"7d\"]\nwhen = \"valueToMarketCap >= 0.05\"\n",
    );
    for (line, code) in [
        ("--version", 0),
        ("--help", 0),
        ("check", 0),
        ("check --strict", 3),
        ("", 2),
        ("chek", 2),
        ("check --strikt", 2),
        ("check --format csv", 2),
        ("upcoming --within 30x", 2),
        ("outbox retry", 2),
        ("status", 1),
        ("--config nowhere.toml check", 1),
        ("--config nowhere.toml run", 1),
    ] {
        let ran = desk.run(line);
        assert_eq!(ran.code(), code, "{line:?}: {}", ran.err);
        assert!(code == 0 || !ran.err.is_empty(), "{line:?} says why");
    }
    desk.write("rules/a.toml", "[[rule]]\nalert = \"A\"\n");
    assert_eq!(desk.run("check --strict").code(), 1, "errors outweigh warnings");
}

#[test]
fn every_command_explains_itself() {
    let desk = Desk::new();
    let mut open: Vec<String> = commands(&desk.run("--help").ok());
    assert!(open.len() >= 16, "{open:?}");
    let mut seen = 0;
    while let Some(line) = open.pop() {
        let help = desk.run_with(&format!("{line} --help"), &[("CLIFFWATCH_SOURCE__API_KEY", "hidden-value")]).ok();
        assert!(help.contains(&format!("Usage: cliffwatch {line}")), "{help}");
        let about = help.lines().next().unwrap_or_default();
        assert!(about.len() > 10 && !about.starts_with("Usage"), "{line} says what it does: {help}");
        assert!(help.lines().all(|line| line.chars().count() <= 110), "{line} fits a terminal:\n{help}");
        assert!(!help.contains("hidden-value"), "{help}");
        open.extend(commands(&help).into_iter().map(|sub| format!("{line} {sub}")));
        seen += 1;
    }
    assert!(seen >= 24, "{seen} commands");
}

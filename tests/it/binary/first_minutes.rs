//! The first minutes of a user: the files of `init`, the diagnostics of common mistakes, and the help of each command.

use super::*;

#[test]
fn init_passes_check_and_a_second_init_replaces_nothing() {
    let workdir = Workdir::new();
    fs::remove_dir(workdir.path("rules")).expect("removed");
    let ran = workdir.run("init");
    assert_eq!(ran.code(), 0, "{}", ran.err);
    assert!(ran.err.contains("wrote cliffwatch.toml") && ran.err.contains("cliffwatch check"), "{}", ran.err);
    workdir.write("api-key", "a key\n");
    for line in ["check", "check --strict"] {
        let ran = workdir.run(line);
        assert_eq!((ran.code(), ran.out.as_str()), (0, ""), "{line}: {}", ran.err);
    }
    let before = fs::read(workdir.path("cliffwatch.toml")).expect("read");
    let again = workdir.run("init");
    assert_eq!(again.code(), 1);
    assert!(again.err.contains("no file was written"), "{}", again.err);
    assert_eq!(fs::read(workdir.path("cliffwatch.toml")).expect("read"), before);
}

#[test]
fn config_in_another_directory_has_its_rules() {
    let workdir = Workdir::new();
    assert_eq!(workdir.run("init conf").code(), 0);
    workdir.write("conf/api-key", "a key\n");
    for folder in ["conf", "./conf", workdir.path("conf").to_str().expect("UTF-8")] {
        let ran = workdir.run(&format!("--config {folder}/cliffwatch.toml check --strict"));
        assert_eq!(ran.code(), 0, "{folder}: {}", ran.err);
        assert!(!ran.err.contains("0 rules"), "{folder}: {}", ran.err);
        let ran = workdir.run(&format!("--config {folder}/cliffwatch.toml test"));
        assert!(ran.out.contains("tests passed"), "{folder}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn missing_rules_are_an_error_unless_the_config_wants_none() {
    let workdir = Workdir::new();
    let config = "[watch]\ntokens = [\"arbitrum\"]\n[http]\nlisten = \"off\"\n";
    workdir.write("cliffwatch.toml", config);
    for line in ["check", "run"] {
        let ran = workdir.run(line);
        assert_eq!(ran.code(), 1, "{line}: {}", ran.err);
        assert!(ran.err.contains("no rules found") && ran.err.contains("paths = []"), "{line}: {}", ran.err);
    }
    workdir.write("cliffwatch.toml", &format!("{config}[rules]\npaths = []\n"));
    assert_eq!(workdir.run("check").code(), 0);
    let rule = "[[rule]]\nalert = \"A\"\non = \"unlock\"\nwithin = [\"7d\"]\nenabled = false\n";
    workdir.write("cliffwatch.toml", config).write("rules/a.toml", rule);
    assert_eq!(workdir.run("check").code(), 0, "a disabled rule was disabled on purpose");
}

#[test]
fn typo_is_reported_with_location_and_suggestion() {
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
        let workdir = Workdir::new();
        workdir.write("cliffwatch.toml", &config).write("rules/a.toml", &rule);
        let ran = workdir.run("check");
        assert_eq!((ran.code(), ran.out.as_str()), (1, ""), "{what}: {}", ran.err);
        let problems: Vec<&str> = ran.err.lines().take_while(|line| !line.contains("1 error")).collect();
        golden.push_str(&format!("━━ {what}\n{}\n", problems.join("\n")));
        // JSON contains the location too.
        let ran = workdir.run("check --format json");
        let problems: Value = serde_json::from_str(&ran.out).expect("JSON");
        let place = |key: &str| problems[0][key].as_u64().unwrap_or_default();
        assert_eq!(ran.code(), 1, "{what}");
        assert!(place("line") > 0 && place("column") > 0, "{what}: {problems:#}");
    }
    insta::assert_snapshot!(golden);
}

#[test]
fn all_problems_of_all_files_are_reported_at_once() {
    let workdir = Workdir::new();
    workdir.write("cliffwatch.toml", "[watch]\ntokens = [\"arbitrum\"]\n");
    workdir.write(
        "rules/a.toml",
        "[[rule]]\nalert = \"A\"\non = \"unlok\"\n[[rule]]\nalert = \"B\"\non = \"burn\"\nwhen = \"amunt > 1\"\n",
    );
    workdir.write("rules/b.toml", "[[rule]]\nalert = \"C\"\non = \"unlock\"\nwen = \"true\"\n");
    let ran = workdir.run("check");
    for said in ["rules/a.toml:3:", "rules/a.toml:7:", "rules/b.toml:4:", "3 errors"] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
}

#[test]
fn exit_codes_match_the_readme() {
    let workdir = Workdir::new();
    workdir.write("cliffwatch.toml", "[watch]\ntokens = [\"arbitrum\"]\n");
    // The unit is percent, so 0.05 is probably a mistake.
    workdir.write(
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
        let ran = workdir.run(line);
        assert_eq!(ran.code(), code, "{line:?}: {}", ran.err);
        assert!(code == 0 || !ran.err.is_empty(), "{line:?} fails without a message");
    }
    workdir.write("rules/a.toml", "[[rule]]\nalert = \"A\"\n");
    assert_eq!(workdir.run("check --strict").code(), 1, "errors outweigh warnings");
}

#[test]
fn every_command_has_help() {
    let workdir = Workdir::new();
    let mut open: Vec<String> = commands(&workdir.run("--help").ok());
    assert!(open.len() >= 16, "{open:?}");
    let mut seen = 0;
    while let Some(line) = open.pop() {
        let help = workdir.run_with(&format!("{line} --help"), &[("CLIFFWATCH_SOURCE__API_KEY", "hidden-value")]).ok();
        assert!(help.contains(&format!("Usage: cliffwatch {line}")), "{help}");
        let about = help.lines().next().unwrap_or_default();
        assert!(about.len() > 10 && !about.starts_with("Usage"), "{line} has no description: {help}");
        assert!(help.lines().all(|line| line.chars().count() <= 110), "{line} fits a terminal:\n{help}");
        assert!(!help.contains("hidden-value"), "{help}");
        open.extend(commands(&help).into_iter().map(|sub| format!("{line} {sub}")));
        seen += 1;
    }
    assert!(seen >= 24, "{seen} commands");
}

use std::fs;

use super::*;

const RULES: &str = r#"
[[rule]]
alert  = "Big"
on     = "unlock"
within = ["7d", "1d"]
when   = "cliffAmount >= 1000"
labels = { severity = "{% if cliffAmount > 5000 %}high{% else %}low{% endif %}" }
[rule.annotations]
summary = "{{ token.symbol }}: {{ cliffAmount | amount }} {{ when }}"
"#;

const HEAD: &str = r#"
rules = ["../rules.toml"]
[route]
receivers = ["ops"]
[[test]]
name  = "t"
start = 2026-03-01T00:00:00Z
[[test.input]]
token  = "x"
unlock = [{ unlockDate = "2026-03-20", cliffAmount = 2000 }]
"#;

/// Runs a test file with [`RULES`]. Returns whether it passed, and its output.
fn check(text: &str) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tests")).unwrap();
    fs::write(folder.path().join("rules.toml"), RULES).unwrap();
    let path = folder.path().join("tests/t.toml");
    fs::write(&path, text).unwrap();
    let config = model::config::Config::default();
    let outcomes = run(&[path], &TestSetup { config: &config, base_dir: folder.path(), only: None }, |_| {});
    let shown: String = outcomes.iter().map(report::plain).collect();
    (outcomes.iter().all(TestOutcome::is_passed), shown.replace(&folder.path().display().to_string(), ""))
}

fn passes(expectations: &str) {
    let (passed, shown) = check(&format!("{HEAD}{expectations}"));
    assert!(passed, "{shown}");
}

fn fails(expectations: &str, says: &[&str]) {
    let (passed, shown) = check(&format!("{HEAD}{expectations}"));
    assert!(!passed, "it passed");
    for text in says {
        assert!(shown.contains(text), "{text:?} is missing in:\n{shown}");
    }
}

const FIRST: &str = r#"
[[test.expect]]
at = "13d"
alert = [{ rule = "Big", token = "x", type = "firing", reason = "lead 7d", at = 2026-03-13T00:00:00Z,
           labels = { severity = "low" }, receivers = ["ops"], summary = "x: 2.00K on 20 Mar 2026" }]
"#;

#[test]
fn expected_notification_passes() {
    passes(FIRST);
}

#[test]
fn each_expected_field_can_fail() {
    for (from, to, says) in [
        ("lead 7d", "lead 1d", &["reason", "- lead 1d", "+ lead 7d"][..]),
        ("firing", "reminder", &["type", "- reminder", "+ firing"]),
        ("\"low\"", "\"high\"", &["label severity", "- \"high\"", "+ \"low\""]),
        ("[\"ops\"]", "[\"ops\", \"desk\"]", &["receivers", "- desk, ops", "+ ops"]),
        ("2.00K on", "3.00K on", &["summary", "- x: 3.00K on 20 Mar 2026", "+ x: 2.00K on 20 Mar 2026"]),
        ("2026-03-13T", "2026-03-12T", &["at", "+ 2026-03-13T00:00:00+00:00"]),
        ("token = \"x\"", "token = \"y\"", &["missing: Big of y", "unexpected:"]),
    ] {
        fails(&FIRST.replace(from, to), says);
    }
}

#[test]
fn unexpected_alert_fails_and_is_printed_as_toml() {
    fails("[[test.expect]]\nat = \"14d\"\nsilence = true\n", &["unexpected:", "[[test.expect.alert]]", "rule = \"Big\""]);
    let (_, shown) = check(&format!("{HEAD}[[test.expect]]\nat = \"14d\"\nsilence = true\n"));
    let copied: String = shown
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix('+'))
        .skip(1)
        .map(|line| format!("{}\n", line.trim()))
        .collect();
    passes(&format!("[[test.expect]]\nat = \"14d\"\n{copied}"));
}

const MESSAGES: &str = r#"
rules = ["../rules.toml"]
inhibit_rules = [{ source_matchers = ["severity=high"], target_matchers = ["severity=low"], equal = ["token"] }]
[route]
receivers = ["ops"]
group_by = []
group_wait = "1m"
[[route.routes]]
matchers = ["token=n"]
group_wait = "0s"
mute_time_intervals = ["nights"]
[[time_intervals]]
name = "nights"
time_intervals = [{ times = [{ start_time = "00:00", end_time = "07:00" }] }]
[[test]]
name  = "t"
start = 2026-03-01T00:00:00Z
silence = [{ matchers = ["token=y"], until = "1d" }]
[[test.input]]
token  = "x"
unlock = [{ unlockDate = "2026-03-05", cliffAmount = 9000 }, { unlockDate = "2026-03-06", cliffAmount = 2000 }]
[[test.input]]
token  = "y"
unlock = [{ unlockDate = "2026-03-05", cliffAmount = 9000 }]
[[test.input]]
token  = "z"
unlock = [{ unlockDate = "2026-03-05", cliffAmount = 9000 }]
[[test.input]]
token  = "n"
unlock = [{ unlockDate = "2026-03-05", cliffAmount = 9000 }]
"#;

#[test]
fn expects_messages_after_grouping_silencing_and_inhibition() {
    let right = r#"
[[test.expect]]
at = "12h"
message = [
  { receiver = "ops", at = "1m", shape = "group", alerts = ["Big", "Big"], count = 2 },
  { receiver = "ops", at = "7h", shape = "group", alerts = ["Big"] },
]
[[test.expect]]
at = "25h"
message = [{ receiver = "ops", at = 2026-03-02T00:00:00Z }]
"#;
    let (passed, shown) = check(&format!("{MESSAGES}{right}"));
    assert!(passed, "{shown}");
    for (from, to, says) in [
        ("at = \"7h\"", "at = \"6h\"", &["different message: 1 alert to ops (group)", "+ 2026-03-01T07:00:00+00:00"][..]),
        ("count = 2", "count = 3", &["count", "- 3", "+ 2"]),
        ("shape = \"group\", alerts = [\"Big\"]", "shape = \"single\"", &["- single", "+ group"]),
        (
            "message = [{ receiver = \"ops\", at = 2026-03-02T00:00:00Z }]",
            "message = []",
            &["unexpected message", "[[test.expect.message]]", "alerts = [\"Big\"]"],
        ),
        ("{ receiver = \"ops\", at = 2026", "{ receiver = \"desk\", at = 2026", &["missing message to desk"]),
        ("shape = \"group\"", "shape = \"grouped\"", &["unknown shape \"grouped\""]),
    ] {
        let (passed, shown) = check(&format!("{MESSAGES}{}", right.replace(from, to)));
        assert!(!passed, "{to} passed");
        for text in says {
            assert!(shown.contains(text), "{text:?} is missing in:\n{shown}");
        }
    }
    for (from, to, says) in [
        ("\"token=y\"", "\"token\"", "token"),
        ("until = \"1d\"", "until = \"0s\"", "the silence ends before it starts"),
        ("\"token=y\"", "\"token=~.*\"", "the matchers match everything"),
    ] {
        let (passed, shown) = check(&format!("{}{right}", MESSAGES.replace(from, to)));
        assert!(!passed && shown.contains(says), "{says}: {shown}");
    }
}

#[test]
fn missing_alert_fails() {
    fails(
        "[[test.expect]]\nat = \"1d\"\nalert = [{ rule = \"Big\", summary = \"soon\" }]\n",
        &["missing: Big: \"soon\"", "expected at 2026-03-02 00:00"],
    );
}

#[test]
fn notification_after_the_last_expectation_fails() {
    let late = "[[test.expect]]\nat = \"1d\"\nsilence = true\n[[test.input]]\nat = \"15d\"\ntoken = \"y\"\nunlock = [{ unlockDate = \"2026-03-17\", cliffAmount = 9000 }]\n";
    fails(late, &["after the last expectation", "high"]);
}

#[test]
fn typo_gets_a_location_and_a_suggestion() {
    for (typo, says) in [
        (
            "[[test.expect]]\nat = \"1d\"\nsilense = true\n",
            &["unknown key `silense`", "did you mean `silence`?", "t.toml:13:1"][..],
        ),
        ("[[test.expect]]\neval_time = \"1d\"\n", &["did you mean `at`?"]),
        ("[[test.expect]]\nat = \"soon\"\nsilence = true\n", &["\"soon\" is neither a time nor a duration", "t.toml:12:6"]),
        ("[[test.expect]]\nat = \"1d\"\nalert = [{ rule = \"Bug\" }]\n", &["unknown rule \"Bug\": did you mean \"Big\"?"]),
        ("[[test.expect]]\nat = \"1d\"\n", &["this expectation is empty"]),
        ("", &["the test \"t\" has no expectation"]),
        (
            "[[test.input]]\ntoken = \"x\"\nunlock = [{ unlockDate = \"2026-03-20\", cliffAmuont = 1 }]\n[[test.expect]]\nat = \"1d\"\nsilence = true\n",
            &["an unlock has no field `cliffAmuont`: did you mean `cliffAmount`?", "(line 11)"],
        ),
        (
            "[[test.input]]\ntoken = \"x\"\nchange = [{ unlock = \"2026-03-21\", cliffAmount = 1 }]\n[[test.expect]]\nat = \"1d\"\nsilence = true\n",
            &["x has no unlock \"2026-03-21\": expected one of 2026-03-20"],
        ),
        (
            "[[test.input]]\ntoken = \"x\"\nunlock = [{ unlockDate = \"2026-03-20\", cliffAmount = \"many\" }]\n[[test.expect]]\nat = \"1d\"\nsilence = true\n",
            &["expected a number"],
        ),
    ] {
        fails(typo, says);
    }
}

#[test]
fn invalid_rule_file_is_reported_like_in_check() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rules.toml"), RULES.replace("cliffAmount >=", "cliffAmuont >=")).unwrap();
    fs::write(folder.path().join("t.toml"), HEAD.replace("../", "")).unwrap();
    let config = model::config::Config::default();
    let path = folder.path().join("t.toml");
    fs::write(&path, format!("{}{FIRST}", HEAD.replace("../", ""))).unwrap();
    let outcomes = run(&[path], &TestSetup { config: &config, base_dir: folder.path(), only: None }, |_| {});
    let shown: String = outcomes.iter().map(report::plain).collect();
    assert!(shown.contains("did you mean `cliffAmount`?"), "{shown}");
}

#[test]
fn formats_failures_as_junit_xml() {
    let outcome = |name: &str, failures: Vec<TestFailure>| TestOutcome {
        file: "a&b.toml".into(),
        line: 3,
        name: name.into(),
        took: Duration::from_millis(12),
        failures,
    };
    let failure = TestFailure { line: 7, place: "expected at 2026".into(), lines: vec!["- <b>\u{1}".into(), "+ \"c\"".into()] };
    let xml = report::junit(&[outcome("passes", Vec::new()), outcome("fails", vec![failure])]).unwrap();
    assert_eq!(
        xml,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"cliffwatch test\" tests=\"2\" skipped=\"0\" failures=\"1\" errors=\"0\" time=\"0.024\">\n    \
         <testsuite name=\"a&amp;b.toml\" tests=\"2\" skipped=\"0\" errors=\"0\" failures=\"1\" time=\"0.024\">\n        \
         <testcase name=\"passes\" classname=\"a&amp;b.toml\" time=\"0.012\" file=\"a&amp;b.toml\" line=\"3\"/>\n        \
         <testcase name=\"fails\" classname=\"a&amp;b.toml\" time=\"0.012\" file=\"a&amp;b.toml\" line=\"3\">\n            \
         <failure message=\"expected at 2026 (line 7)\" type=\"difference\">- &lt;b&gt;\n+ &quot;c&quot;</failure>\n        \
         </testcase>\n    </testsuite>\n</testsuites>\n"
    );
}

#[test]
fn starter_rule_tests_pass() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("rules/tests");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let config = model::config::Config::default();
    let outcomes = run(&files, &TestSetup { config: &config, base_dir: Path::new("."), only: None }, |_| {});
    let shown: String = outcomes.iter().map(report::plain).collect();
    assert!(outcomes.len() >= 16 && outcomes.iter().all(TestOutcome::is_passed), "{shown}");
}

#[test]
fn documented_test_passes() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let docs = fs::read_to_string(root.join("docs/rules.md")).unwrap();
    let shown = docs.split("```toml\n").find(|block| block.starts_with("# rules/tests/unlocks.toml")).expect("it is there");
    let text =
        shown.split("```").next().unwrap().replace("../unlocks.toml", &root.join("rules/unlocks.toml").display().to_string());
    let (passed, shown) = check(&text);
    assert!(passed, "{shown}");
}

#[test]
fn failed_expectation_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let rules = "[[rule]]\nalert = \"Cliff\"\non = \"unlock\"\nwhen = \"cliffValue >= 5000000\"\n\n\
                 [[rule]]\nalert = \"Moved\"\non = \"unlock.rescheduled\"\n";
    fs::write(folder.path().join("rules.toml"), rules).unwrap();
    let test = "rules = [\"rules.toml\"]\n[route]\nreceivers = [\"desk\"]\n\n[[test]]\nname = \"a small one\"\nstart = 2026-03-01T00:00:00Z\n\
                [[test.input]]\ntoken = \"arbitrum\"\n\
                unlock = [{ unlockDate = \"2026-03-16T13:00:00Z\", cliffAmount = 1000, cliffValue = 1000 }]\n\
                [[test.expect]]\nat = \"1h\"\nalert = [{ rule = \"Cliff\", token = \"arbitrum\" }, { rule = \"Moved\" }]\n";
    let config = model::config::Config::default();
    let setup = TestSetup { config: &config, base_dir: Path::new("."), only: None };
    let outcomes = run_text(SourceText { file: folder.path().join("test.toml"), text: test.to_owned() }, &setup);
    let shown: String = outcomes.iter().map(report::plain).collect();
    for text in [
        "- missing: Cliff of arbitrum",
        "explanation: Cliff for arbitrum, unlock on 16 Mar 2026",
        "✗ when: cliffValue >= 5000000  [cliffValue = 1000]",
        "result: not fired, because ",
        "explanation: Moved for arbitrum",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
}

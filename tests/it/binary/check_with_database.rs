//! `check` compares config and rules with the tokens and labels in the database, if there is one.

use super::{Fixture, Time, Workdir};
use crate::it::support::BEGIN;
use cliffwatch::service::AccessPolicy;

#[test]
fn new_rule_takes_flags_when_input_is_a_pipe() {
    let workdir = Workdir::new();
    let ran = workdir.run("new rule");
    assert_eq!(ran.code(), 2, "{}", ran.err);
    for flag in
        ["--about", "--tokens", "--above", "--within", "--days", "--window", "--severity", "--name", "--file", "--dry-run"]
    {
        assert!(ran.err.contains(flag), "{flag}: {}", ran.err);
    }
    let ran =
        workdir.run("--now 2026-07-01 new rule --about cliffs --tokens arbitrum --above 5M --within 30d,7d --severity critical");
    assert_eq!(ran.code(), 0, "{}", ran.err);
    assert!(ran.out.contains("with the bundled data") && ran.out.contains("CliffAhead"), "{}", ran.out);
    // The generated rule passes `check` and its generated test.
    assert_eq!(workdir.run("check").code(), 0);
    assert!(workdir.run("test").ok().contains("1 test passed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_compares_config_and_rules_with_the_database() {
    let fixture = Fixture::new(Time::Begin, AccessPolicy::Open).await;
    let rules = "[[rule]]\nalert = \"Mine\"\non = \"unlock\"\ntokens = [\"ALP\", \"alpha\"]\n\
                 labels = { team = \"desk\", severity = \"info\" }\n";
    fixture.workdir.write("rules/mine.toml", rules);
    fixture
        .configure("[[route.routes]]\nmatchers = [\"tema=desk\"]\n[watch]\ntokens = [\"*\"]\ngroups = { book = [\"alfa\"] }\n");
    let check = |more: &str| fixture.workdir.run(&format!("--now {BEGIN} check {more}"));
    let before = check("--strict");
    assert!(before.code() == 0 && !before.err.contains("warning"), "without a database there are no warnings: {}", before.err);

    fixture.workdir.run(&format!("--now {BEGIN} poll")).ok();
    fixture.workdir.run(&format!("--now {BEGIN} silence add team=traders --for 2d --author me --comment quiet")).ok();
    let said = check("--strict");
    assert_eq!(said.code(), 3, "{}", said.err);
    for text in [
        "no token matches `ALP`",
        "`ALP` is the symbol of alpha: did you mean `alpha`?",
        "no rule sets the label `tema`",
        "did you mean `team`?",
        "no token matches `alfa`",
        "did you mean `alpha`?",
        "has no effect: no alert can match team=\"traders\"",
    ] {
        assert!(said.err.contains(text), "{text}: {}", said.err);
    }
    assert!(said.err.contains("rules/mine.toml:4:"), "the location is missing: {}", said.err);
    let off = check("--no-db --strict");
    assert!(off.code() == 0 && !off.err.contains("warning"), "{}", off.err);
}

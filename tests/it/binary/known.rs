//! The check against what the database knows: what nothing answers to is told, and without a database nothing of it is said.

use super::{Desk, Room, Time};
use crate::support::BEGIN;
use cliffwatch::service::AccessPolicy;

#[test]
fn a_new_rule_is_asked_for_with_flags_on_a_pipe() {
    let desk = Desk::new();
    let ran = desk.run("new rule");
    assert_eq!(ran.code(), 2, "{}", ran.err);
    for flag in
        ["--about", "--tokens", "--above", "--within", "--days", "--window", "--severity", "--name", "--file", "--dry-run"]
    {
        assert!(ran.err.contains(flag), "{flag}: {}", ran.err);
    }
    let ran =
        desk.run("--now 2026-07-01 new rule --about cliffs --tokens arbitrum --above 5M --within 30d,7d --severity critical");
    assert_eq!(ran.code(), 0, "{}", ran.err);
    assert!(ran.out.contains("Over the bundled data") && ran.out.contains("CliffAhead"), "{}", ran.out);
    // What it wrote passes the check and its own test, as everything else does.
    assert_eq!(desk.run("check").code(), 0);
    assert!(desk.run("test").ok().contains("1 test passed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_holds_config_and_rules_against_the_database() {
    let room = Room::new(Time::Begin, AccessPolicy::Open).await;
    let rules = "[[rule]]\nalert = \"Mine\"\non = \"unlock\"\ntokens = [\"ALP\", \"alpha\"]\n\
                 labels = { team = \"desk\", severity = \"info\" }\n";
    room.desk.write("rules/mine.toml", rules);
    room.configure("[[route.routes]]\nmatchers = [\"tema=desk\"]\n[watch]\ntokens = [\"*\"]\ngroups = { book = [\"alfa\"] }\n");
    let check = |more: &str| room.desk.run(&format!("--now {BEGIN} check {more}"));
    let before = check("--strict");
    assert!(before.code() == 0 && !before.err.contains("warning"), "nothing is known yet: {}", before.err);

    room.desk.run(&format!("--now {BEGIN} poll")).ok();
    room.desk.run(&format!("--now {BEGIN} silence add team=traders --for 2d --author me --comment quiet")).ok();
    let said = check("--strict");
    assert_eq!(said.code(), 3, "{}", said.err);
    for text in [
        "no token matches `ALP`",
        "`ALP` is the symbol of alpha: did you mean `alpha`?",
        "no rule sets the label `tema`",
        "did you mean `team`?",
        "no token matches `alfa`",
        "did you mean `alpha`?",
        "hides nothing: no alert can have team=\"traders\"",
    ] {
        assert!(said.err.contains(text), "{text}: {}", said.err);
    }
    assert!(said.err.contains("rules/mine.toml:4:"), "at its place: {}", said.err);
    let off = check("--no-db --strict");
    assert!(off.code() == 0 && !off.err.contains("warning"), "{}", off.err);
}

//! The check against what the database knows: what nothing answers to is told, and without a database nothing of it is said.

use super::{Room, Time};
use crate::support::BEGIN;
use cliffwatch::service::AccessPolicy;

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
    room.desk.run(&format!("--now {BEGIN} silence add team=traders --for 2d --author me")).ok();
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

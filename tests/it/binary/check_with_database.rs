//! `check` compares config and rules with the tokens and labels in the database, if there is one.

use testkit::{Cluster, free_port};

use super::database_server::use_server;
use super::{Fixture, Time, Workdir};
use crate::support::BEGIN;
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
    compare_with_the_database(None).await;
    let Some(cluster) = Cluster::start("") else { return };
    compare_with_the_database(Some(&cluster)).await;
}

/// Runs `check` before and after the first poll into a file, or into the database of a server.
async fn compare_with_the_database(server: Option<&Cluster>) {
    let fixture = Fixture::new(Time::Begin, AccessPolicy::Open).await;
    let rules = "[[rule]]\nalert = \"Mine\"\non = \"unlock\"\ntokens = [\"ALP\", \"alpha\"]\n\
                 labels = { team = \"desk\", severity = \"info\" }\n";
    fixture.workdir.write("rules/mine.toml", rules);
    fixture
        .configure("[[route.routes]]\nmatchers = [\"tema=desk\"]\n[watch]\ntokens = [\"*\"]\ngroups = { book = [\"alfa\"] }\n");
    if let Some(server) = server {
        use_server(&fixture, server.port, free_port());
    }
    let check = |more: &str| fixture.workdir.run(&format!("--now {BEGIN} check {more}"));
    let before = check("--strict");
    assert!(
        before.code() == 0 && !before.err.contains("warning") && !before.err.contains("skipped"),
        "without a database there are no warnings: {}",
        before.err
    );

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
    let silence = said.err.lines().skip_while(|line| !line.contains("has no effect: no alert")).nth(1).unwrap_or_default().trim();
    let database = if server.is_some() { "127.0.0.1" } else { "test.db" };
    assert!(silence.contains(database), "the location of the silence is {silence}: {}", said.err);
    let off = check("--no-db --strict");
    assert!(off.code() == 0 && !off.err.contains("warning"), "{}", off.err);
    // A rule text that is not in the config gets the same checks.
    let tried = Workdir::new();
    tried.write("rule.toml", "[[rule]]\nalert = \"Tried\"\non = \"unlock\"\ntokens = [\"alpah\"]\n");
    let said = check(&format!("--rules {}", tried.path("").display()));
    assert!(said.err.contains("`alpah`") && said.err.contains("did you mean `alpha`?"), "{}", said.err);
}

/// The daemon may be able to read a database that the user of `check` cannot, so this is no problem of the config.
#[test]
fn check_says_that_it_cannot_reach_the_database() {
    let workdir = Workdir::new();
    let port = free_port();
    workdir.write("rules.toml", "[[rule]]\nalert = \"Any\"\non = \"unlock\"\n");
    workdir.write(
        "cliffwatch.toml",
        &format!(
            "[watch]\ntokens = [\"alpha\"]\n[rules]\npaths = [\"rules.toml\"]\n\
             [store]\nurl = \"postgres://me:a-secret-word@127.0.0.1:{port}/watch\"\n"
        ),
    );
    for line in ["check", "check --rules ."] {
        let said = workdir.run(line);
        assert!(said.err.contains("note: skipped the checks that read the database: cannot open"), "{line}: {}", said.err);
        assert!(!said.err.contains("a-secret-word"), "{line}: {}", said.err);
        assert!(!workdir.run(&format!("{line} --no-db")).err.contains("skipped"), "{line}");
    }
}

//! The texts of open alerts in commands and digests, and in the database, as time passes.

use std::process::Command;

use chrono::TimeDelta;
use cliffwatch::model::{clock::Clock, config::DigestSettings, supply::Timestamp};

use crate::it::support::{Setup, TestApp, burn, cliff, item, lines};

const RULES: &str = r#"
[[rule]]
alert  = "BuiltIn"
on     = "unlock"
within = ["30d"]

[[rule]]
alert  = "Counted"
on     = "unlock"
within = ["30d"]
[rule.annotations]
summary = "{{ token.symbol }} in {{ daysUntil | days }}"

[[rule]]
alert = "Quiet"
on    = "token"
when  = "lastBurn.daysSince >= 1"
[rule.annotations]
summary = "{{ token.symbol }} quiet for {{ lastBurn.daysSince | days }}"
"#;

/// The output of a command with the clock of this machine.
fn run(app: &TestApp, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cliffwatch"));
    command.args(["--config", "cliffwatch.toml", "--color", "never"]).args(arguments).current_dir(app.folder.path());
    let output = command.output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The number of days between two instants, rounded.
fn days(from: Timestamp, to: Timestamp) -> i64 {
    (to - from + TimeDelta::hours(12)).num_days()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn command_and_digest_show_what_is_true_now() {
    // The command uses the clock of this machine. Half a day keeps the rounded number of days the same while the test runs.
    let real = Clock::system().now();
    let (begin, date) = (real - TimeDelta::days(6), real + TimeDelta::days(4) + TimeDelta::hours(2));
    let burned = begin - TimeDelta::days(2) - TimeDelta::hours(2);
    let text = |at: Timestamp| at.format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let fill = move |edit: &mut cliffwatch::service::Edit<'_>| {
        edit.put_token(&item("alpha", "ALP"))?;
        edit.put_events("alpha", vec![cliff(&text(date), "Team", 2e6, "second")])?;
        edit.add_burn("alpha", burn(&text(burned), 1e3))
    };
    let mut app = TestApp::with(Setup { rules: RULES.to_owned(), fill: Box::new(fill), ..Setup::default() }).await;
    app.clock.set(begin);
    app.restart_with(|config| {
        for receiver in config.receivers.iter_mut().filter(|receiver| receiver.name == "desk") {
            receiver.digest = Some(DigestSettings { at: "00:00".into(), ..Default::default() });
        }
    })
    .await;
    let notified = app.tick_and_deliver().await;
    app.desk.take();
    for summary in ["(in 10 days)", "ALP in 10 days", "ALP quiet for 2 days"] {
        assert!(notified.iter().any(|line| line.contains(summary)), "{summary}: {notified:#?}");
    }
    let recorded = |app: &TestApp| app.rows("SELECT body FROM alert ORDER BY id");
    let stored = recorded(&app);
    assert!(!format!("{stored:?}").contains("(in 10 days)"), "a stored text has no time until its date: {stored:?}");

    app.clock.set(begin + TimeDelta::days(3));
    app.evaluate().await;
    app.deliver().await;
    let digests = app.desk.take();
    assert!(lines(&app.hook.take()).is_empty(), "nothing is notified again");
    let digest = digests.last().map(ToString::to_string).unwrap_or_default();
    let ahead = days(begin + TimeDelta::days(3), date);
    // Both rules on the unlock share a line, which has the text of the first one by name.
    for summary in [format!("(in {ahead} days) (BuiltIn, also Counted)"), "ALP quiet for 5 days".to_owned()] {
        assert!(digest.contains(&summary), "{summary}: {digest}");
    }
    assert!(!digest.contains("in 10 days"), "{digest}");

    let shown = run(&app, &["alerts", "--format", "json"]);
    for summary in ["(in 4 days)", "ALP in 4 days", "ALP quiet for 8 days"] {
        assert!(shown.contains(summary), "{summary}: {shown}");
    }
    assert!(!shown.contains("in 10 days") && !shown.contains("in 7 days"), "{shown}");
    let messages = app.rows("SELECT body FROM notification WHERE kind = 'alert.firing'");
    assert!(format!("{messages:?}").contains("(in 10 days)"), "what was notified stays: {messages:?}");
    assert_eq!(recorded(&app), stored, "time alone writes nothing");
}

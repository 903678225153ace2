//! The effects of signals.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_finishes_the_current_cycle_and_exits_with_0() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    let path = "/v5/unlock/events/alpha";
    fixture.faults.set(path, Fault::Slow(Duration::from_millis(1500)));
    let mut daemon = fixture.workdir.start("run", &[]);
    let requested = || fixture.faults.log().iter().any(|seen| seen.uri.starts_with(path));
    until("a request of an unlock schedule", requested, || daemon.log());
    daemon.signal("TERM");
    let status = wait(&mut daemon.child);
    assert_eq!(status.code(), Some(0), "{status}\n{}", daemon.log());
    assert!(daemon.log().contains("stopped"), "{}", daemon.log());
    assert_eq!(unlocks(&fixture), 5, "the response in flight is stored\n{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_during_a_slow_first_cycle_exits_within_ten_seconds_and_loses_nothing() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    let tokens: Vec<String> = (0..40).map(|number| format!("slow-{number}")).collect();
    fixture
        .service
        .edit(|edit| {
            for token in &tokens {
                edit.put_token(&item(token, "SLO"))?;
                edit.put_events(token, vec![cliff(&wire(from_now(20)), "Team", 3_000_000.0, "second")])?;
            }
            Ok(())
        })
        .expect("filled");
    fixture.faults.set("/v5/unlock/events", Fault::Slow(Duration::from_secs(4)));
    let mut daemon = fixture.workdir.start("run", &[]);
    let requested = || fixture.faults.log().iter().any(|seen| seen.uri.starts_with("/v5/unlock/events"));
    until("a request of an unlock schedule", requested, || daemon.log());
    let begun = Instant::now();
    daemon.signal("TERM");
    let status = wait(&mut daemon.child);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}\n{}", begun.elapsed(), daemon.log());
    assert_eq!(status.code(), Some(0), "{status}\n{}", daemon.log());

    fixture.faults.clear();
    let daemon = fixture.workdir.start("run", &[]);
    let notified = || lines(&fixture.hook.accepted().into_iter().map(|(_, body)| body).collect::<Vec<_>>());
    let missing =
        || tokens.iter().filter(|token| !notified().iter().any(|line| line.contains(&format!("BigCliffAhead {token}:")))).count();
    until("a notification for every token", || missing() == 0, || format!("{:#?}\n{}", notified(), daemon.log()));
    let notified = notified();
    let duplicates: Vec<_> = tokens
        .iter()
        .filter(|token| notified.iter().filter(|line| line.contains(&format!("BigCliffAhead {token}:"))).count() > 1)
        .collect();
    assert!(duplicates.is_empty(), "{duplicates:?}");
    assert_eq!(daemon.stop().code(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigint_and_an_early_sigterm_exit_with_0() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    let mut daemon = fixture.workdir.start("run", &[]);
    daemon.until_log(" started");
    daemon.signal("INT");
    assert_eq!(wait(&mut daemon.child).code(), Some(0), "{}", daemon.log());
    let mut daemon = fixture.workdir.start("run", &[]);
    // The lock file is the first sign of the process: it is locked before the database opens.
    until(
        "the lock file",
        || fs::read_to_string(fixture.workdir.path("test.db.lock")).is_ok_and(|pid| pid.trim() == daemon.child.id().to_string()),
        || daemon.log(),
    );
    daemon.signal("TERM");
    let status = wait(&mut daemon.child);
    assert_eq!((status.code(), status.signal()), (Some(0), None), "{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reload_of_an_invalid_or_unchanged_file_has_no_effect() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    let daemon = fixture.workdir.start("run", &[]);
    let address = daemon.address();
    until("the first read", || unlocks(&fixture) == 5, || daemon.log());

    fixture.workdir.write("rules/test.toml", "[[rule]]\nalert = \"X\"\non = \"unlok\"\n");
    daemon.signal("HUP");
    fixture.until_notified("source ", &daemon);
    let notified = lines(&fixture.hook.take());
    assert!(notified.iter().any(|line| line.contains("SourceTrouble")), "{notified:#?}");
    assert!(get(&address, "/metrics").await.contains("cliffwatch_config_last_reload_successful 0"));
    assert!(daemon.log().contains("rules/test.toml:3:7"), "the log contains the location: {}", daemon.log());
    assert!(get(&address, "/api/v1/status").await.contains("unlok"), "the status contains the error");

    // The old rules stay active.
    fixture.service.edit(|edit| edit.move_event("alpha", from_now(110), from_now(115))).expect("edited");
    fixture.until_notified("ScheduleChanged alpha", &daemon);

    // A valid file resolves the incident and activates its new rule.
    let more = format!("{RULES}\n[[rule]]\nalert = \"Burned\"\non = \"burn\"\nwhen = \"amount > 1\"\n");
    fixture.workdir.write("rules/test.toml", &more);
    daemon.signal("HUP");
    daemon.until_log("reloaded config and rules");
    assert!(get(&address, "/metrics").await.contains("cliffwatch_config_last_reload_successful 1"));
    until(
        "the recovery",
        || fixture.hook.accepted().iter().any(|(_, body)| body["type"] == "source" && body["data"]["status"] == "resolved"),
        || daemon.log(),
    );
    fixture.service.edit(|edit| edit.add_burn("alpha", burn(&wire(from_now(-1)), 9_000.0))).expect("edited");
    fixture.until_notified("Burned alpha", &daemon);

    // The same file again notifies nothing, even after two evaluations.
    fixture.hook.take();
    daemon.signal("HUP");
    until("the second reload", || daemon.log().matches("reloaded config and rules").count() == 2, || daemon.log());
    let evaluated = || {
        let database = rusqlite::Connection::open(fixture.workdir.path("test.db")).expect("opens");
        database.query_row("SELECT slot FROM job WHERE name = 'evaluate'", [], |row| row.get::<_, i64>(0)).expect("read")
    };
    let before = evaluated();
    until("two evaluations", || evaluated() >= before + 2_000, || daemon.log());
    assert_eq!(lines(&fixture.hook.take()), [""; 0]);
    assert_eq!(daemon.stop().code(), 0);
}

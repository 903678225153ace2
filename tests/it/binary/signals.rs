//! What signals do.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_finishes_the_tick_in_hand_and_leaves_with_0() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    let path = "/v5/unlock/events/alpha";
    room.faults.set(path, Fault::Slow(Duration::from_millis(1500)));
    let mut daemon = room.desk.start("run", &[]);
    let asked = || room.faults.log().iter().any(|seen| seen.uri.starts_with(path));
    until("an unlock schedule is asked for", asked, || daemon.log());
    daemon.signal("TERM");
    let status = wait(&mut daemon.child);
    assert_eq!(status.code(), Some(0), "{status}\n{}", daemon.log());
    assert!(daemon.log().contains("stopped"), "{}", daemon.log());
    assert_eq!(unlocks(&room), 5, "the answer that was waited for is written down\n{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_during_a_slow_first_cycle_leaves_within_ten_seconds_and_loses_nothing() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    let tokens: Vec<String> = (0..40).map(|number| format!("slow-{number}")).collect();
    room.service
        .edit(|edit| {
            for token in &tokens {
                edit.put_token(&item(token, "SLO"))?;
                edit.put_events(token, vec![cliff(&wire(from_now(20)), "Team", 3_000_000.0, "second")])?;
            }
            Ok(())
        })
        .expect("filled");
    room.faults.set("/v5/unlock/events", Fault::Slow(Duration::from_secs(4)));
    let mut daemon = room.desk.start("run", &[]);
    let asked = || room.faults.log().iter().any(|seen| seen.uri.starts_with("/v5/unlock/events"));
    until("an unlock schedule is asked for", asked, || daemon.log());
    let begun = Instant::now();
    daemon.signal("TERM");
    let status = wait(&mut daemon.child);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}\n{}", begun.elapsed(), daemon.log());
    assert_eq!(status.code(), Some(0), "{status}\n{}", daemon.log());

    room.faults.clear();
    let daemon = room.desk.start("run", &[]);
    let told = || lines(&room.hook.accepted().into_iter().map(|(_, body)| body).collect::<Vec<_>>());
    let missing =
        || tokens.iter().filter(|token| !told().iter().any(|line| line.contains(&format!("BigCliffAhead {token}:")))).count();
    until("every token is told", || missing() == 0, || format!("{:#?}\n{}", told(), daemon.log()));
    let told = told();
    let doubled: Vec<_> = tokens
        .iter()
        .filter(|token| told.iter().filter(|line| line.contains(&format!("BigCliffAhead {token}:"))).count() > 1)
        .collect();
    assert!(doubled.is_empty(), "{doubled:?}");
    assert_eq!(daemon.stop().code(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigint_and_a_sigterm_at_the_very_start_end_it_in_good_order() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    let mut daemon = room.desk.start("run", &[]);
    daemon.until_log("is watching");
    daemon.signal("INT");
    assert_eq!(wait(&mut daemon.child).code(), Some(0), "{}", daemon.log());
    let mut daemon = room.desk.start("run", &[]);
    // As early as it can be seen to live: its lock is taken before anything else of the database.
    until(
        "the lock is taken",
        || fs::read_to_string(room.desk.path("test.db.lock")).is_ok_and(|pid| pid.trim() == daemon.child.id().to_string()),
        || daemon.log(),
    );
    daemon.signal("TERM");
    let status = wait(&mut daemon.child);
    assert_eq!((status.code(), status.signal()), (Some(0), None), "{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_is_inert_where_the_file_is_bad_or_the_same() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    let daemon = room.desk.start("run", &[]);
    let address = daemon.address();
    until("the first read", || unlocks(&room) == 5, || daemon.log());

    room.desk.write("rules/test.toml", "[[rule]]\nalert = \"X\"\non = \"unlok\"\n");
    daemon.signal("HUP");
    room.until_told("source ", &daemon);
    let told = lines(&room.hook.take());
    assert!(told.iter().any(|line| line.contains("SourceTrouble")), "{told:#?}");
    assert!(get(&address, "/metrics").await.contains("cliffwatch_config_last_reload_successful 0"));
    assert!(daemon.log().contains("rules/test.toml:3:7"), "the log says where: {}", daemon.log());
    assert!(get(&address, "/api/status").await.contains("unlok"), "and so does the status page");

    // The old rules are at work.
    room.service.edit(|edit| edit.move_event("alpha", from_now(110), from_now(115))).expect("edited");
    room.until_told("ScheduleChanged alpha", &daemon);

    // A good file ends the trouble; it holds another rule, which works from now on.
    let more = format!("{RULES}\n[[rule]]\nalert = \"Burned\"\non = \"burn\"\nwhen = \"amount > 1\"\n");
    room.desk.write("rules/test.toml", &more);
    daemon.signal("HUP");
    daemon.until_log("the rules were reloaded");
    assert!(get(&address, "/metrics").await.contains("cliffwatch_config_last_reload_successful 1"));
    until(
        "the recovery",
        || room.hook.accepted().iter().any(|(_, body)| body["type"] == "source" && body["data"]["status"] == "resolved"),
        || daemon.log(),
    );
    room.service.edit(|edit| edit.add_burn("alpha", burn(&wire(from_now(-1)), 9_000.0))).expect("edited");
    room.until_told("Burned alpha", &daemon);

    // The same file again tells nothing: wait until evaluations have passed.
    room.hook.take();
    daemon.signal("HUP");
    until("the second reload", || daemon.log().matches("the rules were reloaded").count() == 2, || daemon.log());
    let evaluated = || {
        let database = rusqlite::Connection::open(room.desk.path("test.db")).expect("opens");
        database.query_row("SELECT slot FROM job WHERE name = 'evaluate'", [], |row| row.get::<_, i64>(0)).expect("read")
    };
    let before = evaluated();
    until("two evaluations", || evaluated() >= before + 2_000, || daemon.log());
    assert_eq!(lines(&room.hook.take()), [""; 0]);
    assert_eq!(daemon.stop().code(), 0);
}

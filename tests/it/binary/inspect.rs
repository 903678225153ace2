//! The commands that print the database: unlocks, changes, alerts, and the outbox.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_data_is_printed_as_table_json_and_csv() {
    let fixture = Fixture::new(Time::Begin, AccessPolicy::Open).await;
    fixture.configure("[[receiver]]\nname = \"sick\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:9/hook\"\n[[route.routes]]\nmatchers = ['alertname=\"BoughtBack\"']\nreceivers = [\"sick\"]\n");
    let workdir = &fixture.workdir;
    let at = |time: &str, line: &str| workdir.run(&format!("--now {time} {line}"));
    let empty = at(BEGIN, "upcoming");
    assert_eq!(empty.code(), 1, "the database does not exist yet");
    assert!(empty.err.contains("cliffwatch poll"), "{}", empty.err);

    at(BEGIN, "poll").ok();
    fixture
        .service
        .edit(|edit| {
            edit.move_event("alpha", time("2026-05-20T12:00:00Z"), time("2026-05-25T12:00:00Z"))?;
            edit.add_buyback("beta", buyback("2026-02-28T02:00:00Z", 700.0))
        })
        .expect("edited");
    let seen = at("2026-03-01T06:00:00Z", "poll").ok();
    assert!(seen.contains("rescheduled") && seen.contains("delivered") && seen.contains("retrying"), "{seen}");
    assert_eq!(
        lines(&fixture.hook.take()),
        ["alert.firing BigCliffAhead alpha: ALP unlocks $2.00M", "alert.event ScheduleChanged alpha: ALP: rescheduled"]
    );

    let now = "2026-03-01T07:00:00Z";
    let mut golden = String::new();
    for line in ["upcoming", "upcoming --within 60d alpha", "changes", "alerts", "outbox list"] {
        let page = at(now, line).ok();
        golden.push_str(&format!("━━ {line}\n{page}\n"));
    }
    let filters =
        [(r"\b[0-9a-f]{16,}\b", "ID"), (r"127\.0\.0\.1:\d+", "HOST"), (r"2026-03-01 06:00:\d\d", "SOON"), (r"[ ]+\n", "\n")];
    insta::with_settings!({filters => filters}, { insta::assert_snapshot!(golden) });

    let upcoming = at(now, "upcoming --format json").json();
    assert_eq!(upcoming.as_array().expect("a list").len(), 7);
    assert_eq!((&upcoming[0]["tokenId"], &upcoming[0]["cliffValue"]), (&json!("alpha"), &json!(2_000_000.0)), "{upcoming:#}");
    let changes = at(now, "changes --kind rescheduled --token ALP --format json").json();
    assert_eq!(changes[0]["change"]["shiftDays"], 5.0, "{changes:#}");
    let alerts = at(now, "alerts --state event --format json").json();
    assert_eq!(alerts.as_array().expect("a list").len(), 2, "{alerts:#}");
    let status = at(now, "status --format json").json();
    assert_eq!(status["sourceUp"], true, "{status:#}");
    for (line, header, rows) in [
        ("upcoming", "symbol", 7),
        ("changes", "at", 2),
        ("alerts --limit 2", "updatedAt", 2),
        ("outbox list", "id", 3),
        ("outbox list --receiver ops --state delivered", "id", 2),
        ("outbox list --state dead", "id", 0),
    ] {
        let csv = at(now, &format!("{line} --format csv")).csv();
        assert_eq!((csv[0][0].as_str(), csv.len() - 1), (header, rows), "{line}: {csv:#?}");
    }
    let page = at(now, "status").ok();
    for said in ["source    up", "2 known, 2 listed", "1 firing", "unlock_events"] {
        assert!(page.contains(said), "{said}: {page}");
    }
    let strange = at(now, "changes --token nonexistent");
    assert_ne!(strange.code(), 0, "an unknown token is an error, not an empty list");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn positions_are_listed_only_on_request() {
    let fixture = Fixture::new(Time::Begin, AccessPolicy::Open).await;
    fixture.configure("[watch.positions]\nALP = 250000\nunlisted = 1\n");
    let workdir = &fixture.workdir;
    workdir.run(&format!("--now {BEGIN} poll"));
    let listed = |options: &str| workdir.run(&format!("--now {BEGIN} upcoming alpha {options}"));
    let plain = listed("--format json").json();
    assert!(plain[0].get("position").is_none(), "{plain:#}");
    let shown = listed("--positions --format json");
    assert!(shown.err.contains("a position is not used: ") && shown.err.contains("unlisted"), "{}", shown.err);
    let rows = shown.json();
    let (amount, multiple) = (rows[0]["cliffAmount"].as_f64().expect("tokens"), &rows[0]["position"]["unlockMultiple"]);
    assert_eq!((&rows[0]["position"]["amount"], multiple), (&json!(250_000.0), &json!(amount / 250_000.0)), "{rows:#}");
    let csv = listed("--positions --format csv").csv();
    assert!(csv[0].ends_with(&["positionAmount", "positionValue", "positionMultiple"].map(str::to_owned)), "{csv:#?}");
    assert!(listed("--positions").ok().contains("250.00K"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delivery_can_be_shown_retried_under_its_id_and_dropped() {
    let fixture = Fixture::new(Time::Begin, AccessPolicy::Open).await;
    let workdir = &fixture.workdir;
    let at = |time: &str, line: &str| workdir.run(&format!("--now {time} {line}"));
    fixture.hook.respond_always(Some(400));
    at(BEGIN, "poll");
    let rows = at(BEGIN, "outbox list --format json").json();
    let row =
        rows.as_array().expect("rows").iter().find(|row| row["alerts"][0]["rule"] == "BigCliffAhead").expect("the cliff").clone();
    assert_eq!((&row["state"], &row["attempts"]), (&json!("dead"), &json!(1)), "{row:#}");
    let (id, webhook_id) = (row["id"].as_i64().expect("an id"), row["webhookId"].as_str().expect("an id").to_owned());
    let page = at(BEGIN, &format!("outbox show {id}")).ok();
    for said in [webhook_id.as_str(), "dead", "400", "ALP unlocks $2.00M", "nothing at"] {
        assert!(page.contains(said), "{said}: {page}");
    }
    let shown = at(BEGIN, &format!("outbox show {id} --format json")).json();
    assert_eq!(shown["attemptLog"].as_array().map(Vec::len), Some(1), "{shown:#}");
    assert_eq!(at(BEGIN, "outbox show 99999").code(), 2);

    fixture.hook.respond_always(None);
    let ran = at(BEGIN, &format!("outbox retry {id}"));
    assert_eq!(ran.code(), 0, "{}", ran.err);
    at("2026-03-01T00:10:00Z", "poll").ok();
    let accepted = fixture.hook.accepted();
    assert_eq!(accepted.iter().filter(|(id, _)| *id == webhook_id).count(), 1, "{accepted:#?}");
    let ran = at(BEGIN, &format!("outbox retry {id}"));
    assert_eq!(ran.code(), 1, "a delivered message is not sent again: {}", ran.err);

    // A dropped delivery is never sent.
    fixture.hook.respond_always(Some(503));
    fixture.service.edit(|edit| edit.add_buyback("beta", buyback("2026-02-28T02:00:00Z", 700.0))).expect("edited");
    at("2026-03-01T06:00:00Z", "poll");
    let rows = at(BEGIN, "outbox list --state retrying --format json").json();
    let id = rows[0]["id"].as_i64().expect("a retrying delivery");
    assert_eq!(at(BEGIN, &format!("outbox drop {id}")).code(), 0);
    fixture.hook.respond_always(None);
    fixture.hook.take();
    at("2026-03-01T12:00:00Z", "poll");
    assert_eq!(lines(&fixture.hook.take()).iter().filter(|line| line.contains("BoughtBack")).count(), 0);
    let rows = at(BEGIN, "outbox list --state dropped --format json").json();
    assert_eq!(rows[0]["id"], id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dry_run_commits_and_sends_nothing() {
    let fixture = Fixture::new(Time::Begin, AccessPolicy::Open).await;
    fixture.workdir.run(&format!("--now {BEGIN} poll --dry-run")).ok();
    assert!(!fixture.workdir.folder.path().join("test.db").exists(), "a dry run creates no database");
    assert_eq!(fixture.hook.take(), Vec::<Value>::new());
    let seen = fixture.workdir.run(&format!("--now {BEGIN} poll")).ok();
    assert!(seen.contains("unlock_events: 2 polled, 2 fresh"), "the dry run stored nothing: {seen}");
    assert_eq!(fixture.hook.take().len(), 1);
    let before = fixture.workdir.run("status --format json").json();
    fixture.workdir.run("--now 2026-03-21T00:00:00Z poll --dry-run").ok();
    let after = fixture.workdir.run("status --format json").json();
    assert_eq!((&before["alerts"], &before["endpoints"][0]["lastTry"]), (&after["alerts"], &after["endpoints"][0]["lastTry"]));
    assert!(
        before["credits"]["spent"].as_u64() < after["credits"]["spent"].as_u64(),
        "only the spent credits are stored: {after}"
    );
    assert_eq!(fixture.hook.take(), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_poll_is_reported_and_sets_the_exit_code() {
    let fixture = Fixture::new(Time::Begin, AccessPolicy::Open).await;
    fixture.faults.set("/v5/unlock/events/alpha", Fault::Html);
    let ran = fixture.workdir.run(&format!("--now {BEGIN} poll"));
    assert_eq!(ran.code(), 1, "{}", ran.out);
    assert!(ran.out.contains("failed  unlock_events/alpha") && ran.out.contains("text/html"), "{}", ran.out);
}

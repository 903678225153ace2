//! Two daemons on one database, a database of a newer version, and a backup while a daemon runs.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_daemon_on_one_database_is_rejected_but_commands_work() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    let daemon = fixture.workdir.start("run", &[]);
    daemon.until_log(" started");
    let second = fixture.workdir.run("run");
    assert_eq!(second.code(), 1, "{}", second.err);
    let pid = daemon.child.id().to_string();
    assert!(
        second.err.contains("test.db") && second.err.contains(&pid),
        "the error names the database and the process that uses it: {}",
        second.err
    );
    assert_eq!(fixture.workdir.run("poll").code(), 1, "poll writes, so it is rejected too");
    fixture.workdir.run("status").ok();
    fixture.workdir.run("outbox list").ok();
    assert_eq!(daemon.stop().code(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn database_of_a_newer_version_is_rejected_and_unchanged() {
    let fixture = Fixture::new(Time::Begin, AccessPolicy::Open).await;
    fixture.workdir.run(&format!("--now {BEGIN} poll")).ok();
    let path = fixture.workdir.path("test.db");
    let database = rusqlite::Connection::open(&path).expect("opens");
    database.pragma_update(None, "user_version", 999).expect("set");
    database.close().expect("closed");
    let before = fs::read(&path).expect("read");
    for line in ["run", "poll", "status", "upcoming", "outbox list", "backup copy.db"] {
        let ran = fixture.workdir.run(line);
        assert_eq!(ran.code(), 1, "{line}: {}", ran.err);
        assert!(ran.err.contains("test.db") && ran.err.contains("999") && ran.err.contains("newer"), "{line}: {}", ran.err);
    }
    assert_eq!(fs::read(&path).expect("read"), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn assumed_time_changes_the_database_of_a_daemon_only_with_commit() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    fixture.workdir.write("rules/test.toml", "[[rule]]\nalert = \"Any\"\non = \"unlock\"\n");
    let daemon = fixture.workdir.start("run", &[]);
    fixture.until_notified("Any", &daemon);
    assert_eq!(daemon.stop().code(), 0);
    let evaluated_at = || -> i64 {
        let database = rusqlite::Connection::open(fixture.workdir.path("test.db")).expect("opens");
        let sql = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'evaluated_at'";
        database.query_row(sql, [], |row| row.get(0)).expect("evaluated")
    };
    let before = evaluated_at();
    for line in [
        "run",
        "poll",
        "poll --dry-run",
        "silence add alertname=Any --for 2d --author me --comment no",
        "outbox retry --dead",
        "notify ops",
    ] {
        let ran = fixture.workdir.run(&format!("--now 2099-01-01 {line}"));
        assert_eq!(ran.code(), 1, "{line}: {}", ran.err);
        assert!(ran.err.contains("test.db") && ran.err.contains("--commit"), "{line}: {}", ran.err);
        assert_eq!(evaluated_at(), before, "{line}");
    }
    fixture.workdir.run("--now 2099-01-01 upcoming").ok();
    // A copy may be used at any time, since no daemon depends on it.
    fixture.workdir.run("backup copy.db").ok();
    let copied = fixture.workdir.run_with("--now 2099-01-01 poll", &[("CLIFFWATCH_STORE__PATH", "copy.db")]);
    assert_eq!(copied.code(), 0, "{}", copied.err);
    assert_eq!(evaluated_at(), before, "the copy is another file");
    fixture.workdir.run("--now 2099-01-01 --commit poll").ok();
    assert!(evaluated_at() > before);
    assert_eq!(fixture.workdir.run("--commit poll").code(), 2, "--commit needs --now");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_of_a_running_daemon_is_complete() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    fixture.workdir.write("rules/test.toml", "[[rule]]\nalert = \"Any\"\non = \"unlock\"\n");
    let daemon = fixture.workdir.start("run", &[]);
    fixture.until_notified("Any", &daemon);
    let ran = fixture.workdir.run("backup copy.db");
    assert_eq!(ran.code(), 0, "{}", ran.err);
    assert_eq!(fixture.workdir.run("backup copy.db").code(), 1, "an existing file is not replaced");
    assert_eq!(daemon.stop().code(), 0);
    let copy = [("CLIFFWATCH_STORE__PATH", "copy.db")];
    let alerts = fixture.workdir.run_with("alerts --format json", &copy).json();
    assert!(!alerts.as_array().expect("a list").is_empty());
    let database = rusqlite::Connection::open(fixture.workdir.path("copy.db")).expect("opens");
    assert_eq!(database.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).expect("checked"), "ok");
}

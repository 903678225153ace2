//! Two daemons on one database, a database of a newer program, and a backup beside a daemon.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_daemon_on_one_database_is_refused_and_commands_are_not() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    let daemon = room.desk.start("run", &[]);
    daemon.until_log("is watching");
    let second = room.desk.run("run");
    assert_eq!(second.code(), 1, "{}", second.err);
    let pid = daemon.child.id().to_string();
    assert!(second.err.contains("test.db") && second.err.contains(&pid), "it names the database and who has it: {}", second.err);
    assert_eq!(room.desk.run("poll").code(), 1, "poll writes, so it is refused too");
    room.desk.run("status").ok();
    room.desk.run("outbox list").ok();
    assert_eq!(daemon.stop().code(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_a_newer_program_is_refused_and_left_as_it_is() {
    let room = Room::new(Time::Begin, AccessPolicy::Open).await;
    room.desk.run(&format!("--now {BEGIN} poll")).ok();
    let path = room.desk.path("test.db");
    let database = rusqlite::Connection::open(&path).expect("opens");
    database.pragma_update(None, "user_version", 999).expect("set");
    database.close().expect("closed");
    let before = fs::read(&path).expect("read");
    for line in ["run", "poll", "status", "upcoming", "outbox list", "backup copy.db"] {
        let ran = room.desk.run(line);
        assert_eq!(ran.code(), 1, "{line}: {}", ran.err);
        assert!(ran.err.contains("test.db") && ran.err.contains("999") && ran.err.contains("newer"), "{line}: {}", ran.err);
    }
    assert_eq!(fs::read(&path).expect("read"), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_beside_a_running_daemon_is_whole_and_opens() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    room.desk.write("rules/test.toml", "[[rule]]\nalert = \"Any\"\non = \"unlock\"\n");
    let daemon = room.desk.start("run", &[]);
    room.until_told("Any", &daemon);
    let ran = room.desk.run("backup copy.db");
    assert_eq!(ran.code(), 0, "{}", ran.err);
    assert_eq!(room.desk.run("backup copy.db").code(), 1, "a file that is there is not replaced");
    assert_eq!(daemon.stop().code(), 0);
    let copy = [("CLIFFWATCH_STORE__PATH", "copy.db")];
    let alerts = room.desk.run_with("alerts --format json", &copy).json();
    assert!(!alerts.as_array().expect("a list").is_empty());
    let database = rusqlite::Connection::open(room.desk.path("copy.db")).expect("opens");
    assert_eq!(database.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).expect("checked"), "ok");
}

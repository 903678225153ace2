//! A backup that is put back: after a crash, at every point at which the restore itself may die, and never beside a running daemon.

use super::*;
use cliffwatch::store::failpoint::{RESTORE_POINTS, VARIABLE};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_what_is_there_after_a_restore_whatever_dies_on_the_way() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    room.desk.write("rules/test.toml", "[[rule]]\nalert = \"Any\"\non = \"unlock\"\n");
    let mut daemon = room.desk.start("run", &[]);
    room.until_told("Any", &daemon);
    assert_eq!(room.desk.run("backup copy.db").code(), 0);

    let ran = room.desk.run("restore copy.db");
    assert_eq!(ran.code(), 1, "{}", ran.err);
    assert!(ran.err.contains("another cliffwatch") && ran.err.contains("as it was"), "{}", ran.err);

    // What comes later stays in the WAL, since somebody reads what was before, and the daemon dies.
    let reader = rusqlite::Connection::open(room.desk.path("test.db")).expect("opens");
    reader.execute_batch("BEGIN; SELECT count(*) FROM silence;").expect("reads");
    room.service.edit(|edit| edit.add_burn("alpha", burn("2026-02-20T00:00:00Z", 77_777.0))).expect("edited");
    assert_eq!(room.desk.run("silence add token=alpha --for 2h --comment later --author ana").code(), 0);
    daemon.child.kill().expect("killed");
    wait(&mut daemon.child);
    let wal = room.desk.path("test.db-wal");
    assert!(fs::metadata(&wal).is_ok_and(|wal| wal.len() > 0), "a WAL is left");
    let (database, stale) = (fs::read(room.desk.path("test.db")).expect("read"), fs::read(&wal).expect("read"));
    drop(reader);

    for point in [""].into_iter().chain(RESTORE_POINTS) {
        fs::write(room.desk.path("test.db"), &database).expect("written");
        fs::write(&wal, &stale).expect("written");
        if !point.is_empty() {
            let died = room.desk.run_with("restore copy.db", &[(VARIABLE, point)]);
            assert_eq!(died.status.signal(), Some(6), "{point}: {}", died.err);
            let between = room.desk.run("status");
            let is_as_before = between.code() == 0;
            assert!(is_as_before || between.err.contains("restore"), "{point}: {}", between.err);
        }
        let ran = room.desk.run("restore copy.db");
        assert_eq!(ran.code(), 0, "{point}: {}", ran.err);
        assert!(ran.err.contains("test.db.before-") || point == "restore.moved", "{point}: where is the old one? {}", ran.err);
        assert!(room.desk.run("silence list --format json").json().as_array().expect("a list").is_empty(), "{point}");
        let copy = room.desk.run_with("changes --format json", &[("CLIFFWATCH_STORE__PATH", "copy.db")]).json();
        assert_eq!(room.desk.run("changes --format json").json(), copy, "{point}");
        assert!(!room.desk.path("test.db.restore").exists() && !room.desk.path("test.db.restore.tmp").exists(), "{point}");
    }

    // What was moved aside is whole: the restore can be taken back.
    let aside = fs::read_dir(room.desk.path("")).expect("read").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let aside = aside.filter(|name| name.contains(".before-") && !name.contains("-wal") && !name.contains("-shm")).min();
    let ran = room.desk.run(&format!("restore {}", aside.expect("moved aside")));
    assert_eq!(ran.code(), 0, "{}", ran.err);
    assert_eq!(room.desk.run("silence list --format json").json()[0]["comment"], "later");
    let after = room.desk.start("run", &[]);
    after.until_log("watching");
    assert_eq!(after.stop().code(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_backup_replaces_nothing() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    assert_eq!(room.desk.run("poll").code(), 0);
    let before = fs::read(room.desk.path("test.db")).expect("read");
    let mut damaged = before.clone();
    damaged.iter_mut().skip(8192).for_each(|byte| *byte ^= 0x5a);
    fs::write(room.desk.path("damaged.db"), damaged).expect("written");
    fs::write(room.desk.path("empty.db"), "").expect("written");
    fs::write(room.desk.path("text.db"), "a database, they said").expect("written");
    for (name, why) in [
        ("damaged.db", "damaged"),
        ("empty.db", "empty"),
        ("text.db", "SQLite"),
        ("nowhere.db", "nowhere.db"),
        ("test.db", "the database itself"),
    ] {
        let ran = room.desk.run(&format!("restore {name}"));
        assert_eq!(ran.code(), 1, "{name}");
        assert!(ran.err.contains(why), "{name}: {}", ran.err);
        assert_eq!(fs::read(room.desk.path("test.db")).expect("read"), before, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_else_can_read_what_the_program_makes() {
    use std::os::unix::fs::PermissionsExt;
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    room.desk.write("rules/test.toml", "[[rule]]\nalert = \"Any\"\non = \"unlock\"\n");
    let daemon = room.desk.start("run", &[]);
    room.until_told("Any", &daemon);
    assert_eq!(room.desk.run("backup copy.db").code(), 0);
    let ran = room.desk.run("import --db served.db copy.db");
    assert_eq!(ran.code(), 0, "{}", ran.err);
    for entry in fs::read_dir(room.desk.path("")).expect("read") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name");
        if name.contains(".db") {
            let mode = entry.metadata().expect("read").permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{name}: {mode:o}");
        }
    }
    assert_eq!(daemon.stop().code(), 0);
}

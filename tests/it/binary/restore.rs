//! Restoring a backup: after a crash, with a crash at each point of the restore, and never while a daemon runs.

use super::*;
use cliffwatch::store::failpoint::{RESTORE_POINTS, VARIABLE};

/// The files that a restore moved aside.
fn asides(fixture: &Fixture) -> std::collections::BTreeSet<String> {
    let names =
        fs::read_dir(fixture.workdir.path("")).expect("read").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.contains(".before-")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restore_survives_a_crash_at_every_point() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    fixture.workdir.write("rules/test.toml", "[[rule]]\nalert = \"Any\"\non = \"unlock\"\n");
    let mut daemon = fixture.workdir.start("run", &[]);
    fixture.until_notified("Any", &daemon);
    assert_eq!(fixture.workdir.run("backup copy.db").code(), 0);

    let ran = fixture.workdir.run("restore copy.db");
    assert_eq!(ran.code(), 1, "{}", ran.err);
    assert!(ran.err.contains("another cliffwatch") && ran.err.contains("the database is unchanged"), "{}", ran.err);

    // An open reader keeps later writes in the WAL. Then the daemon dies.
    let reader = rusqlite::Connection::open(fixture.workdir.path("test.db")).expect("opens");
    reader.execute_batch("BEGIN; SELECT count(*) FROM silence;").expect("reads");
    fixture.service.edit(|edit| edit.add_burn("alpha", burn("2026-02-20T00:00:00Z", 77_777.0))).expect("edited");
    assert_eq!(fixture.workdir.run("silence add token=alpha --for 2h --comment later --author ana").code(), 0);
    daemon.child.kill().expect("killed");
    wait(&mut daemon.child);
    let wal = fixture.workdir.path("test.db-wal");
    assert!(fs::metadata(&wal).is_ok_and(|wal| wal.len() > 0), "a WAL is left");
    let (database, stale) = (fs::read(fixture.workdir.path("test.db")).expect("read"), fs::read(&wal).expect("read"));
    drop(reader);

    for point in [""].into_iter().chain(RESTORE_POINTS) {
        fs::write(fixture.workdir.path("test.db"), &database).expect("written");
        fs::write(&wal, &stale).expect("written");
        let before = asides(&fixture);
        if !point.is_empty() {
            let died = fixture.workdir.run_with("restore copy.db", &[(VARIABLE, point)]);
            assert_eq!(died.status.signal(), Some(6), "{point}: {}", died.err);
            let between = fixture.workdir.run("status");
            let is_as_before = between.code() == 0;
            assert!(is_as_before || between.err.contains("restore"), "{point}: {}", between.err);
            // The name of the old files has a time, so that the next run would find another one.
            std::thread::sleep(Duration::from_millis(1_100));
        }
        let ran = fixture.workdir.run("restore copy.db");
        assert_eq!(ran.code(), 0, "{point}: {}", ran.err);
        // Exactly one database was moved aside, with the WAL that belongs to it.
        let added: Vec<String> = asides(&fixture).difference(&before).cloned().collect();
        let databases: Vec<&String> = added.iter().filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm")).collect();
        let [aside] = databases.as_slice() else { panic!("{point}: {added:?}") };
        assert!(ran.err.contains(aside.as_str()), "{point}: {}", ran.err);
        assert!(added.iter().all(|name| name.starts_with(aside.as_str())), "{point}: {added:?}");
        assert_eq!(fs::read(fixture.workdir.path(aside)).expect("read"), database, "{point}");
        assert_eq!(fs::read(fixture.workdir.path(&format!("{aside}-wal"))).expect("the WAL"), stale, "{point}");
        assert!(fixture.workdir.run("silence list --format json").json().as_array().expect("a list").is_empty(), "{point}");
        let copy = fixture.workdir.run_with("changes --format json", &[("CLIFFWATCH_STORE__PATH", "copy.db")]).json();
        assert_eq!(fixture.workdir.run("changes --format json").json(), copy, "{point}");
        assert!(
            ["restore", "restore.tmp", "restore.aside", "restore.aside.tmp"]
                .iter()
                .all(|suffix| !fixture.workdir.path(&format!("test.db.{suffix}")).exists()),
            "{point}"
        );
    }

    // The previous database is intact: restoring it undoes the restore.
    let aside =
        fs::read_dir(fixture.workdir.path("")).expect("read").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let aside = aside.filter(|name| name.contains(".before-") && !name.contains("-wal") && !name.contains("-shm")).min();
    let ran = fixture.workdir.run(&format!("restore {}", aside.expect("moved aside")));
    assert_eq!(ran.code(), 0, "{}", ran.err);
    assert_eq!(fixture.workdir.run("silence list --format json").json()[0]["comment"], "later");
    let after = fixture.workdir.start("run", &[]);
    after.until_log(" started");
    assert_eq!(after.stop().code(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_backup_replaces_nothing() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    assert_eq!(fixture.workdir.run("poll").code(), 0);
    let before = fs::read(fixture.workdir.path("test.db")).expect("read");
    let mut damaged = before.clone();
    damaged.iter_mut().skip(8192).for_each(|byte| *byte ^= 0x5a);
    fs::write(fixture.workdir.path("damaged.db"), damaged).expect("written");
    fs::write(fixture.workdir.path("empty.db"), "").expect("written");
    fs::write(fixture.workdir.path("text.db"), "a database, they said").expect("written");
    for (name, why) in [
        ("damaged.db", "damaged"),
        ("empty.db", "empty"),
        ("text.db", "SQLite"),
        ("nowhere.db", "nowhere.db"),
        ("test.db", "the database itself"),
    ] {
        let ran = fixture.workdir.run(&format!("restore {name}"));
        assert_eq!(ran.code(), 1, "{name}");
        assert!(ran.err.contains(why), "{name}: {}", ran.err);
        assert_eq!(fs::read(fixture.workdir.path("test.db")).expect("read"), before, "{name}");
    }
}

/// The user and group of the database in the test. No account needs to exist for them.
const SERVICE_USER: (u32, u32) = (61_234, 61_235);

/// Returns the owner and the permissions of a file.
fn ownership(path: &Path) -> (u32, u32, u32) {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(path).expect("read");
    (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777)
}

fn give_to_service(path: &Path) {
    std::os::unix::fs::chown(path, Some(SERVICE_USER.0), Some(SERVICE_USER.1)).expect("the owner is changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restored_database_keeps_owner_and_permissions() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    assert_eq!(fixture.workdir.run("poll").code(), 0);
    assert_eq!(fixture.workdir.run("backup copy.db").code(), 0);
    let (database, lock) = (fixture.workdir.path("test.db"), fixture.workdir.path("test.db.lock"));
    fs::set_permissions(&database, PermissionsExt::from_mode(0o640)).expect("changed");
    let (user, group, mode) = ownership(&database);
    assert_eq!(fixture.workdir.run("restore copy.db").code(), 0);
    assert_eq!(ownership(&database), (user, group, mode), "the permissions of the old database");
    if user != 0 {
        eprintln!("NOT RUN: only root can restore the database of another user");
        return;
    }

    give_to_service(&database);
    fs::remove_file(&lock).expect("removed");
    assert_eq!(fixture.workdir.run("restore copy.db").code(), 0);
    assert_eq!(ownership(&database), (SERVICE_USER.0, SERVICE_USER.1, 0o640), "the owner of the old database");
    assert_eq!(ownership(&lock), (SERVICE_USER.0, SERVICE_USER.1, 0o600), "the service must be able to lock it");

    // Another machine: a state directory without a database, and then none at all.
    for state in ["state", "new/state"] {
        let folder = fixture.workdir.path(state);
        if state == "state" {
            fs::create_dir(&folder).expect("a folder");
            give_to_service(&folder);
        }
        let config = fs::read_to_string(fixture.workdir.path("cliffwatch.toml")).expect("read");
        let (before, rest) = config.split_once("[store]\npath = \"").expect("a database");
        let (_, after) = rest.split_once('"').expect("its end");
        fixture.workdir.write("cliffwatch.toml", &format!("{before}[store]\npath = \"{state}/test.db\"{after}"));
        let ran = fixture.workdir.run("restore copy.db");
        assert_eq!(ran.code(), 0, "{state}: {}", ran.err);
        let owner = if state == "state" { SERVICE_USER } else { (0, 0) };
        for name in ["test.db", "test.db.lock"] {
            assert_eq!(ownership(&folder.join(name)), (owner.0, owner.1, 0o600), "{state}/{name}");
        }
    }
    assert_eq!(ownership(&fixture.workdir.path("new/state")).2, 0o700, "a new state directory is private");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn database_of_another_user_is_reported_as_such() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    assert_eq!(fixture.workdir.run("poll").code(), 0);
    let folder = fixture.workdir.path("");
    if ownership(&folder).0 != 0 {
        eprintln!("NOT RUN: only root can run a command as another user");
        return;
    }
    // The user may write to the directory, but not to the database of root.
    let binary = fixture.workdir.path("cliffwatch");
    testkit::install_program(env!("CARGO_BIN_EXE_cliffwatch"), &binary);
    for path in [&folder, &binary, &fixture.workdir.path("cliffwatch.toml"), &fixture.workdir.path("rules")] {
        give_to_service(path);
    }
    let user = SERVICE_USER.0.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"]).arg(&binary).arg("status");
    let ran = command.current_dir(&folder).env_clear().env("PATH", "/usr/bin:/bin").output().expect("setpriv of util-linux");
    let err = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success() && err.contains("belongs to") && err.contains("chown"), "{err}");
    assert!(!err.contains("the disk"), "{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn created_files_are_readable_only_by_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    fixture.workdir.write("rules/test.toml", "[[rule]]\nalert = \"Any\"\non = \"unlock\"\n");
    let daemon = fixture.workdir.start("run", &[]);
    fixture.until_notified("Any", &daemon);
    assert_eq!(fixture.workdir.run("backup copy.db").code(), 0);
    let ran = fixture.workdir.run("import --db served.db copy.db");
    assert_eq!(ran.code(), 0, "{}", ran.err);
    for entry in fs::read_dir(fixture.workdir.path("")).expect("read") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name");
        if name.contains(".db") {
            let mode = entry.metadata().expect("read").permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{name}: {mode:o}");
        }
    }
    assert_eq!(daemon.stop().code(), 0);
}

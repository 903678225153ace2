use super::*;
use crate::{Access, Opening, open};

fn opening(path: PathBuf) -> Opening {
    Opening { path, access: Access::Own, now: chrono::DateTime::UNIX_EPOCH }
}

#[test]
fn closed_database_with_special_characters_opens_as_immutable() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let path = directory.path().join("a b?c#d%20é.db");
    let opened = open::open(&opening(path.clone())).expect("opens");
    // The writer goes last, as in `Store::close`: only the writer can checkpoint the WAL.
    drop(opened.readers);
    drop(opened.writer);
    let connection = open_immutable(&path).expect("opens");
    let program: String =
        connection.query_row("SELECT value FROM meta WHERE key = 'program'", [], |row| row.get(0)).expect("signed");
    assert_eq!(program, env!("CARGO_PKG_VERSION"));
    assert!(!sibling_path(&path, "-shm").exists(), "no file is created");
}

#[test]
fn statement_is_planned_once_for_all_values() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let opened = open::open(&opening(directory.path().join("plans.db"))).expect("opens");
    let check = |connection: &Connection| {
        // Unlocks have a partial index, so the value of `resource` could change the plan.
        let sql = "SELECT count(*) FROM record WHERE resource = ?1 AND starts_at > ?2";
        let mut statement = connection.prepare(sql).expect("prepared");
        for (resource, after) in [("unlock", 1), ("burn", 2), ("unlock", 3)] {
            let count: i64 = statement.query_row((resource, after), |row| row.get(0)).expect("read");
            assert_eq!(count, 0);
        }
        assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
    };
    check(opened.writer.as_ref().expect("a writer").sqlite());
    for pool in opened.readers.each_pool() {
        pool.with(|connection| check(connection.sqlite())).expect("a reader");
    }
}

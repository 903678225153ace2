use super::*;
use crate::{Access, Opening, open};

fn opening(path: PathBuf) -> Opening {
    Opening { path, access: Access::Own, now: chrono::DateTime::UNIX_EPOCH }
}

#[test]
fn a_closed_database_can_be_read_as_it_lies_whatever_its_name() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let path = directory.path().join("a b?c#d%20é.db");
    let opened = open::open(&opening(path.clone()), &|_, _| {}).expect("opens");
    // The writer goes last, as when the store is closed: only it can move the WAL into the database.
    drop(opened.readers);
    drop(opened.writer);
    let connection = open_as_it_lies(&path).expect("opens");
    let program: String =
        connection.query_row("SELECT value FROM meta WHERE key = 'program'", [], |row| row.get(0)).expect("signed");
    assert_eq!(program, env!("CARGO_PKG_VERSION"));
    assert!(!beside(&path, "-shm").exists(), "nothing is made beside it");
}

#[test]
fn a_statement_is_planned_once_whatever_values_it_is_given() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let opened = open::open(&opening(directory.path().join("plans.db")), &|_, _| {}).expect("opens");
    let check = |connection: &Connection| {
        // There is a partial index for unlocks, so that the value of the resource might decide.
        let sql = "SELECT count(*) FROM record WHERE resource = ?1 AND starts_at > ?2";
        let mut statement = connection.prepare(sql).expect("prepared");
        for (resource, after) in [("unlock", 1), ("burn", 2), ("unlock", 3)] {
            let count: i64 = statement.query_row((resource, after), |row| row.get(0)).expect("read");
            assert_eq!(count, 0);
        }
        assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
    };
    check(opened.writer.as_ref().expect("a writer").sqlite());
    opened.readers.with(|connection| check(connection.sqlite())).expect("a reader");
}

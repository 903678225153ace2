use super::*;

const STEPS: [&str; 2] = ["CREATE TABLE a (x)", "ALTER TABLE a ADD COLUMN y; CREATE INDEX a_y ON a (y)"];

fn table_and_index_names(connection: &Connection) -> Vec<String> {
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema ORDER BY name").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn empty_file_gets_the_current_schema() {
    for schema in [DAEMON, CATALOG] {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(schema.inspect(&connection).unwrap(), FileState::Ours(0));
        schema.migrate(&mut connection, 0).unwrap();
        assert_eq!(schema.inspect(&connection).unwrap(), FileState::Ours(schema.version()));
    }
}

#[test]
fn every_version_is_migrated_to_the_same_schema() {
    let current = Schema { migrations: &STEPS, ..DAEMON };
    let mut fresh = Connection::open_in_memory().unwrap();
    current.migrate(&mut fresh, 0).unwrap();
    for version in 1..=STEPS.len() {
        let mut connection = Connection::open_in_memory().unwrap();
        let former = Schema { migrations: &STEPS[..version], ..DAEMON };
        former.migrate(&mut connection, 0).unwrap();
        let is_newer = former.inspect(&fresh).unwrap() == FileState::Newer(current.version());
        assert_eq!(is_newer, version < STEPS.len());
        current.migrate(&mut connection, version as i64).unwrap();
        assert_eq!(table_and_index_names(&connection), table_and_index_names(&fresh), "from {version}");
    }
}

#[test]
fn step_taken_by_another_program_is_skipped() {
    let mut connection = Connection::open_in_memory().unwrap();
    DAEMON.migrate(&mut connection, 0).unwrap();
    DAEMON.migrate(&mut connection, 0).unwrap();
    assert_eq!(DAEMON.inspect(&connection).unwrap(), FileState::Ours(DAEMON.version()));
}

#[test]
fn failed_step_leaves_the_version_before() {
    let mut connection = Connection::open_in_memory().unwrap();
    let broken = Schema { migrations: &["CREATE TABLE a (x)", "CREATE TABLE b (x); CREATE TABLE a (x)"], ..DAEMON };
    let failed = broken.migrate(&mut connection, 0).unwrap_err();
    assert_eq!((failed.to, broken.inspect(&connection).unwrap()), (2, FileState::Ours(1)));
    assert_eq!(table_and_index_names(&connection), ["a"]);
}

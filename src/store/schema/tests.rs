use super::*;

/// The names of what a file holds.
fn names(connection: &Connection) -> Vec<String> {
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema ORDER BY name").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn every_released_version_comes_to_the_same_schema() {
    for schema in [DAEMON, CATALOG] {
        let mut fresh = Connection::open_in_memory().unwrap();
        assert_eq!(schema.inspect(&fresh).unwrap(), FileState::Ours(0));
        schema.migrate(&mut fresh, 0).unwrap();
        assert_eq!(schema.inspect(&fresh).unwrap(), FileState::Ours(schema.version()));
        for released in 1..schema.version() {
            let mut old = Connection::open_in_memory().unwrap();
            let before = Schema { migrations: &schema.migrations[..usize::try_from(released).unwrap()], ..schema };
            before.migrate(&mut old, 0).unwrap();
            assert_eq!(before.inspect(&fresh).unwrap(), FileState::Newer(schema.version()));
            schema.migrate(&mut old, released).unwrap();
            assert_eq!(names(&old), names(&fresh), "from {released}");
        }
    }
}

#[test]
fn a_step_that_another_program_took_meanwhile_is_not_taken_twice() {
    let mut connection = Connection::open_in_memory().unwrap();
    DAEMON.migrate(&mut connection, 0).unwrap();
    DAEMON.migrate(&mut connection, 0).unwrap();
    assert_eq!(DAEMON.inspect(&connection).unwrap(), FileState::Ours(DAEMON.version()));
}

#[test]
fn a_step_that_fails_leaves_the_file_at_the_one_before() {
    let mut connection = Connection::open_in_memory().unwrap();
    let broken = Schema { migrations: &["CREATE TABLE a (x)", "CREATE TABLE b (x); CREATE TABLE a (x)"], ..DAEMON };
    let failed = broken.migrate(&mut connection, 0).unwrap_err();
    assert_eq!((failed.to, broken.inspect(&connection).unwrap()), (2, FileState::Ours(1)));
    assert_eq!(names(&connection), ["a"]);
}

#[test]
fn prices_and_credits_that_nobody_read_are_dropped_and_nothing_else() {
    let mut connection = Connection::open_in_memory().unwrap();
    Schema { migrations: &DAEMON.migrations[..4], ..DAEMON }.migrate(&mut connection, 0).unwrap();
    connection
        .execute_batch(
            "INSERT INTO token (no, id, first_seen) VALUES (1, 'arbitrum', 0);
                 INSERT INTO valuation (token_no, day, at, market_cap) VALUES (1, 0, 5, 1e9);
                 INSERT INTO credit (one, state) VALUES (1, '{}');
                 INSERT INTO credit_log (at, endpoint, token_no, credits) VALUES (5, 'burn', 1, 2);",
        )
        .unwrap();
    let before = names(&connection);
    DAEMON.migrate_until(&mut connection, 4, 5).unwrap();
    let gone: Vec<String> = before.into_iter().filter(|name| !names(&connection).contains(name)).collect();
    assert_eq!(gone, ["credit_log", "credit_log_age", "valuation", "valuation_age"]);
    let kept: (i64, i64) = connection
        .query_row("SELECT (SELECT count(*) FROM token), (SELECT count(*) FROM credit)", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(kept, (1, 1));
}

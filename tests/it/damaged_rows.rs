//! A damaged row stops its own token or message, and nothing else.

use chrono::TimeDelta;
use cliffwatch::model::{poll::FailureKind, supply::Endpoint};
use rusqlite::{Connection, types::Value as Cell};

use crate::it::support::{BEGIN, Setup, TestApp, burn, cliff, lines, time};

/// The text of the incident about a damaged row.
const DAMAGED: &str = "A row of the database is damaged";

async fn app() -> TestApp {
    TestApp::with(Setup { is_on_file: true, ..Setup::default() }).await
}

/// Opens the file without its checks, so that it accepts damage.
fn open(app: &TestApp) -> Connection {
    let file = Connection::open(&app.config.store.path).expect("opens");
    file.busy_timeout(std::time::Duration::from_secs(10)).expect("set");
    file.execute_batch("PRAGMA ignore_check_constraints = 1; PRAGMA foreign_keys = 0").expect("set");
    file
}

/// A value in the database, and its row.
struct Place {
    table: String,
    column: String,
    row: i64,
    value: Cell,
}

impl Place {
    /// Replaces the value. Returns whether the table accepts it.
    fn put(&self, file: &Connection, value: &Cell) -> bool {
        let sql = format!("UPDATE {} SET {} = ?1 WHERE rowid = ?2", self.table, self.column);
        file.execute(&sql, rusqlite::params![value, self.row]).is_ok_and(|rows| rows == 1)
    }

    fn restore(&self, file: &Connection) {
        // A damaged key was taken for another row, and the row was written again.
        if !self.put(file, &self.value) {
            let sql = format!("DELETE FROM {} WHERE rowid = ?1", self.table);
            assert_eq!(file.execute(&sql, [self.row]), Ok(1), "{} {}", self.table, self.column);
        }
    }
}

/// The first value of each column of text or bytes about `alpha`.
fn places(file: &Connection) -> Vec<Place> {
    let about = |table: &str, columns: &[String]| {
        let alpha = "(SELECT no FROM token WHERE id = 'alpha')";
        Some(match table {
            "token" => "id = 'alpha'".to_owned(),
            "schedule" | "schedule_version" => format!("scope_no = {alpha}"),
            "notification" => format!("alert IN (SELECT id FROM alert WHERE token_no = {alpha})"),
            _ if columns.iter().any(|column| column == "token_no") => format!("token_no = {alpha}"),
            _ => return None,
        })
    };
    let names = |sql: &str| -> Vec<String> {
        let mut statement = file.prepare(sql).expect("prepared");
        statement.query_map([], |row| row.get(0)).expect("queried").collect::<Result<_, _>>().expect("read")
    };
    let mut places = Vec::new();
    for table in names("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%WITHOUT ROWID%' ORDER BY name") {
        let columns = names(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let Some(about) = about(&table, &columns) else { continue };
        for column in names(&format!("SELECT name FROM pragma_table_info('{table}') WHERE type IN ('TEXT', 'BLOB')")) {
            let sql =
                format!("SELECT rowid, {column} FROM {table} WHERE {about} AND {column} IS NOT NULL ORDER BY rowid LIMIT 1");
            let found = file.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?)));
            if let Ok((row, value)) = found {
                places.push(Place { table: table.clone(), column, row, value });
            }
        }
    }
    places
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_of_one_token_stops_no_other_token() {
    let mut app = app().await;
    app.tick_and_deliver().await;
    let file = open(&app);
    let places = places(&file);
    let tables: std::collections::BTreeSet<&str> = places.iter().map(|place| place.table.as_str()).collect();
    for table in ["alert", "feed", "notification", "record", "schedule", "token"] {
        assert!(tables.contains(table), "{tables:?}");
    }
    let mut hour = 0;
    for place in &places {
        for damage in [Cell::Text("{".to_owned()), Cell::Text("[7]".to_owned()), Cell::Blob(vec![0xff, 0, 0xff])] {
            if !place.put(&file, &damage) {
                continue;
            }
            // What was read before must not hide the damage.
            app.restart().await;
            hour += 1;
            app.clock.set(time(BEGIN) + TimeDelta::hours(hour));
            let amount = 10_000.0 + f64::from(i32::try_from(hour).expect("small"));
            app.edit(|edit| {
                edit.add_burn("beta", burn("2026-03-01T00:00:00Z", amount))?;
                // Other fields of alpha change as well, so that its rows are compared.
                edit.add_burn("alpha", burn("2026-03-01T00:00:00Z", amount))?;
                edit.put_events("beta", vec![cliff("2026-05-15T00:00:00Z", "Seed", 5_000_000.0 + 100.0 * amount, "month")])
            });
            let what = format!("{} of {} is {damage:?}", place.column, place.table);
            for job in app.app().jobs() {
                app.app().tick(job).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
            }
            app.deliver().await;
            let sent = lines(&app.hook.take());
            for expected in ["Burned beta", "ScheduleChanged beta"] {
                assert!(sent.iter().any(|line| line.contains(expected)), "{what}: no {expected} in {sent:#?}");
            }
            place.restore(&file);
        }
    }
    // Repaired, everything continues.
    hour += 30;
    app.clock.set(time(BEGIN) + TimeDelta::hours(hour));
    app.restart().await;
    for _ in 0..2 {
        hour += 30;
        app.clock.set(time(BEGIN) + TimeDelta::hours(hour));
        app.tick_and_deliver().await;
    }
    app.edit(|edit| edit.add_burn("alpha", burn("2026-03-02T00:00:00Z", 77_777.0)));
    app.clock.set(time(BEGIN) + TimeDelta::hours(hour + 1));
    let sent = app.tick_and_deliver().await;
    assert!(sent.iter().any(|line| line.contains("Burned alpha")), "{sent:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incident_of_a_damaged_row_opens_once_and_ends_with_the_repair() {
    let app = app().await;
    app.tick_and_deliver().await;
    let file = open(&app);
    let place = places(&file).into_iter().find(|place| place.table == "schedule").expect("a schedule");
    assert!(place.put(&file, &Cell::Blob(vec![0xff])));
    let mut incidents = 0;
    // Polls, most of them unchanged, and evaluations, in which the next reminders of both tokens are due.
    for hour in 1..=60 {
        app.clock.set(time(BEGIN) + TimeDelta::hours(24 * 12 + hour));
        if hour == 5 {
            let days = ["2026-03-29", "2026-04-20", "2026-05-20", "2026-06-20", "2026-07-20", "2026-08-20"];
            let cliffs = days.map(|day| cliff(&format!("{day}T12:00:00Z"), "Team", 2_000_000.0, "second"));
            app.edit(|edit| edit.put_events("alpha", cliffs.to_vec()));
        }
        let polled = app.poll(Endpoint::UnlockEvents).await;
        let evaluated = app.evaluate().await;
        let failed = polled.failed.iter().chain(&evaluated.failed);
        assert!(failed.clone().all(|(_, failure)| failure.kind == FailureKind::Unreadable), "{polled} {evaluated}");
        app.deliver().await;
        let sent = lines(&app.hook.take());
        incidents += sent.iter().filter(|line| line.contains(DAMAGED)).count();
        assert!(sent.iter().all(|line| !line.contains(" again") && !line.contains("removed")), "{sent:#?}");
    }
    assert!((1..=3).contains(&incidents), "one incident, and a reminder a day at most: {incidents}");
    place.restore(&file);
    let mut sent = Vec::new();
    for hour in 61..=110 {
        app.clock.set(time(BEGIN) + TimeDelta::hours(24 * 12 + hour));
        sent.extend(app.tick_and_deliver().await);
    }
    assert!(sent.iter().any(|line| line.contains("can be read again")), "{sent:#?}");
    assert!(sent.iter().any(|line| line.contains("ScheduleChanged alpha")), "the correction is found: {sent:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_message_becomes_a_dead_letter_and_stops_no_other_message() {
    let app = TestApp::with(Setup { config: "fallback = [\"desk\"]\n".into(), is_on_file: true, ..Setup::default() }).await;
    app.tick().await;
    let file = open(&app);
    let damaged =
        file.execute("UPDATE notification SET body = '[7]' WHERE id = (SELECT min(id) FROM notification)", []).expect("damaged");
    assert_eq!(damaged, 1);
    let all = app.rows("SELECT count(*) FROM notification")[0][0].as_i64().expect("a number");
    app.deliver().await;
    let sent = lines(&app.hook.take());
    assert_eq!(sent.len(), usize::try_from(all - 1).expect("small"), "{sent:#?}");
    assert_eq!(app.rows("SELECT count(*) FROM delivery WHERE state = 'dead'")[0][0], 1);
    app.deliver().await;
    // The fallback of the receiver gets the alert.
    let notified = lines(&app.desk.take());
    assert!(notified.iter().any(|line| line.contains("Not delivered to ops: a message that cannot be read")), "{notified:#?}");
}

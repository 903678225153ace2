//! `backup` and `restore` for a database on a server: prints the commands of PostgreSQL's own tools, and checks what can be
//! checked beforehand.

use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use super::exit::ErrorWithHint;
use super::shown;
use model::phrase;
use store::{PostgresUrl, Store};

/// The first bytes of archives of `pg_dump --format=custom`.
const MAGIC: &[u8; 5] = b"PGDMP";

/// Returns the command that copies the database to `file`, with a warning if the local `pg_dump` is missing or too old.
pub(super) fn backup(place: &PostgresUrl, file: &Path) -> anyhow::Result<ErrorWithHint> {
    let server = Store::server(place)?;
    let mut hint = vec![
        format!(
            "pg_dump --format=custom --schema={} --file={} {}",
            shell_quote(&server.schema),
            shell_quote(&shown(file)),
            shell_quote(&place.without_password())
        ),
        "set the password in PGPASSWORD or ~/.pgpass; check the archive with `cliffwatch restore FILE`".to_owned(),
    ];
    hint.extend(version_problem(version_of("pg_dump"), server.version));
    Ok(ErrorWithHint {
        error: "the configured database is on a PostgreSQL server: use pg_dump, which works while the daemon runs".into(),
        hint,
    })
}

/// Returns the command that restores the archive. Fails if the archive lacks any of our tables.
pub(super) fn restore(place: &PostgresUrl, file: &Path) -> anyhow::Result<ErrorWithHint> {
    let name = shown(file);
    let mut head = [0; MAGIC.len()];
    let read = std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut head));
    read.with_context(|| format!("cannot read {name}"))?;
    if head != *MAGIC {
        anyhow::bail!("{name} is not an archive of `pg_dump --format=custom`, which the configured PostgreSQL database requires");
    }
    let listed = Command::new("pg_restore").arg("--list").arg(file).output();
    let listed = listed.context("cannot run pg_restore to check the archive: install it (Debian package postgresql-client)")?;
    if !listed.status.success() {
        anyhow::bail!("{name} is damaged: {}", String::from_utf8_lossy(&listed.stderr).trim());
    }
    let missing = missing_tables(&String::from_utf8_lossy(&listed.stdout));
    if !missing.is_empty() {
        anyhow::bail!("{name} lacks {}: {}", phrase::count(missing.len(), "table"), missing.join(", "));
    }
    Ok(ErrorWithHint {
        error: format!("the configured database is on a PostgreSQL server: use pg_restore; {name} contains all tables"),
        hint: vec![
            "stop all instances, then run".to_owned(),
            format!(
                "pg_restore --clean --if-exists --single-transaction --dbname={} {}",
                shell_quote(&place.without_password()),
                shell_quote(&name)
            ),
            "the backup does not contain later notifications, so some of them may be sent again".to_owned(),
        ],
    })
}

/// Returns our tables that are missing in an archive's list of contents.
fn missing_tables(list: &str) -> Vec<&'static str> {
    // `3456; 0 16411 TABLE DATA public delivery postgres`
    let tables: Vec<&str> =
        list.lines().filter_map(|line| line.split_once(" TABLE DATA ")?.1.split_whitespace().nth(1)).collect();
    Store::tables().filter(|table| !tables.contains(table)).collect()
}

/// Returns the major version of a local PostgreSQL program. `None` if it cannot be run.
fn version_of(program: &str) -> Option<u32> {
    let notified = Command::new(program).arg("--version").output().ok()?;
    let notified = String::from_utf8_lossy(&notified.stdout).into_owned();
    let version = notified.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Returns the reason why the local `pg_dump` cannot copy from a server of this version.
fn version_problem(here: Option<u32>, server: u32) -> Option<String> {
    match here {
        None => Some("pg_dump is not installed (Debian package postgresql-client)".to_owned()),
        Some(here) if here < server => {
            Some(format!("the local pg_dump has version {here}, the server version {server}: install pg_dump {server} or newer"))
        }
        Some(_) => None,
    }
}

/// Quotes a word for a shell.
fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@,=+".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_without_a_table_is_incomplete() {
        let line = |table: &str| format!("3456; 0 16411 TABLE DATA public {table} postgres\n");
        let list: String = Store::tables().map(line).collect();
        assert_eq!(missing_tables(&list), [""; 0]);
        let lacking: String = Store::tables().filter(|table| *table != "delivery").map(line).collect();
        assert_eq!(missing_tables(&format!("{lacking}215; 1259 16411 TABLE public delivery postgres\n")), ["delivery"]);
    }

    #[test]
    fn older_pg_dump_is_reported() {
        assert_eq!(version_problem(Some(15), 15), None);
        assert!(version_problem(Some(13), 15).is_some_and(|reason| reason.contains("install pg_dump 15")));
        assert!(version_problem(None, 15).is_some());
    }

    #[test]
    fn shell_words_are_quoted() {
        assert_eq!(shell_quote("/backup/watch.dump"), "/backup/watch.dump");
        assert_eq!(shell_quote("it's $HOME"), r"'it'\''s $HOME'");
    }
}

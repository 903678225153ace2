//! What `backup` and `restore` say of a database on a server: PostgreSQL's own programs do that better, so they are named with all that
//! they need, and what can be checked beforehand is checked.

use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use super::exit::Hinted;
use super::shown;
use model::format;
use store::{PostgresPlace, Store};

/// How archives of `pg_dump --format=custom` begin.
const MAGIC: &[u8; 5] = b"PGDMP";

/// The command that copies the database to `file`; and whether the `pg_dump` here can.
pub(super) fn backup(place: &PostgresPlace, file: &Path) -> anyhow::Result<Hinted> {
    let server = Store::server(place)?;
    let mut hint = vec![
        format!(
            "pg_dump --format=custom --schema={} --file={} {}",
            in_shell(&server.schema),
            in_shell(&shown(file)),
            in_shell(&place.without_password())
        ),
        "its password comes from PGPASSWORD or ~/.pgpass; `cliffwatch restore FILE` checks what it wrote".to_owned(),
    ];
    hint.extend(unfit(version_of("pg_dump"), server.version));
    Ok(Hinted {
        error: "the database of the config is on a PostgreSQL server: pg_dump copies it, while the daemon runs".into(),
        hint,
    })
}

/// The command that puts the archive back; fails where the archive does not hold all that we keep.
pub(super) fn restore(place: &PostgresPlace, file: &Path) -> anyhow::Result<Hinted> {
    let name = shown(file);
    let mut head = [0; MAGIC.len()];
    let read = std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut head));
    read.with_context(|| format!("{name} cannot be read"))?;
    if head != *MAGIC {
        anyhow::bail!(
            "{name} is no archive of `pg_dump --format=custom`, and the database of the config is on a PostgreSQL server"
        );
    }
    let listed = Command::new("pg_restore").arg("--list").arg(file).output();
    let listed =
        listed.context("pg_restore cannot be run (Debian: postgresql-client), so nobody knows whether the archive is whole")?;
    if !listed.status.success() {
        anyhow::bail!("{name} is damaged: {}", String::from_utf8_lossy(&listed.stderr).trim());
    }
    let missing = missing_tables(&String::from_utf8_lossy(&listed.stdout));
    if !missing.is_empty() {
        anyhow::bail!("{name} lacks {}: {}", format::count(missing.len(), "table"), missing.join(", "));
    }
    Ok(Hinted {
        error: format!(
            "the database of the config is on a PostgreSQL server: pg_restore puts {name} back, which has all its tables"
        ),
        hint: vec![
            "stop every instance, then".to_owned(),
            format!(
                "pg_restore --clean --if-exists --single-transaction --dbname={} {}",
                in_shell(&place.without_password()),
                in_shell(&name)
            ),
            "what was told since that backup was made is not known to it: some of it may be told again".to_owned(),
        ],
    })
}

/// Tables of ours without whose rows the archive of this list of contents is not whole.
fn missing_tables(list: &str) -> Vec<&'static str> {
    // `3456; 0 16411 TABLE DATA public delivery postgres`
    let tables: Vec<&str> =
        list.lines().filter_map(|line| line.split_once(" TABLE DATA ")?.1.split_whitespace().nth(1)).collect();
    Store::tables().filter(|table| !tables.contains(table)).collect()
}

/// The major version of a program of PostgreSQL here; none where it cannot be run.
fn version_of(program: &str) -> Option<u32> {
    let told = Command::new(program).arg("--version").output().ok()?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let version = told.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Why the `pg_dump` here cannot copy from a server of that version.
fn unfit(here: Option<u32>, server: u32) -> Option<String> {
    match here {
        None => Some("there is no pg_dump here (Debian: postgresql-client)".to_owned()),
        Some(here) if here < server => {
            Some(format!("the pg_dump here is of PostgreSQL {here}, the server of {server}: take one that is as new"))
        }
        Some(_) => None,
    }
}

/// A word as a shell takes it.
fn in_shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@,=+".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_without_the_rows_of_a_table_is_not_whole() {
        let line = |table: &str| format!("3456; 0 16411 TABLE DATA public {table} postgres\n");
        let list: String = Store::tables().map(line).collect();
        assert_eq!(missing_tables(&list), [""; 0]);
        let lacking: String = Store::tables().filter(|table| *table != "delivery").map(line).collect();
        assert_eq!(missing_tables(&format!("{lacking}215; 1259 16411 TABLE public delivery postgres\n")), ["delivery"]);
    }

    #[test]
    fn an_older_pg_dump_is_told_before_it_fails() {
        assert_eq!(unfit(Some(15), 15), None);
        assert!(unfit(Some(13), 15).is_some_and(|said| said.contains("take one that is as new")));
        assert!(unfit(None, 15).is_some());
    }

    #[test]
    fn what_is_to_be_typed_is_one_word_each() {
        assert_eq!(in_shell("/backup/watch.dump"), "/backup/watch.dump");
        assert_eq!(in_shell("it's $HOME"), r"'it'\''s $HOME'");
    }
}

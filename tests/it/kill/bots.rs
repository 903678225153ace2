//! Programs in Python that use the API of a daemon while it is killed: they share no code with it, and have a source of their own.
//!
//! `CLIFFWATCH_BOTS=full` makes 10,000 changes with 50 kills, or 20 takeovers between two instances on the PostgreSQL server of the
//! environment, and sends 150 requests with a key.

use std::path::PathBuf;
use std::process::Command;

use crate::it::support::Database;

/// The option for two instances on one database.
const INSTANCES: (&str, usize) = ("instances", 2);

fn is_full() -> bool {
    std::env::var("CLIFFWATCH_BOTS").is_ok_and(|size| size == "full")
}

/// Runs a program to its end. Its output has the seed, and the reason of a failure.
fn run(name: &str, options: &[(&str, usize)]) {
    let folder = tempfile::tempdir().expect("a folder");
    let database = Database::new(folder.path().join("bots.db"));
    if options.contains(&INSTANCES) && !database.is_on_server() {
        println!("skipped: no PostgreSQL server (tests/postgres/run)");
        return;
    }
    let script: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/it/kill/bots", name].iter().collect();
    let mut command = Command::new(std::env::var_os("CLIFFWATCH_TEST_PYTHON").unwrap_or_else(|| "python3".into()));
    // Without byte code, which would be written next to the scripts.
    command.arg("-B").arg(script).arg(env!("CARGO_BIN_EXE_cliffwatch"));
    command.arg(folder.path().join("daemon")).arg(database.setting());
    for (option, value) in options {
        command.args([format!("--{option}"), value.to_string()]);
    }
    let output = command.output().expect("Python runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    println!("{}", text(&output.stdout));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(database.is_intact());
}

#[test]
fn followers_of_all_lists_see_each_record_once_despite_kills() {
    let (changes, kills) = if is_full() { (10_000, 50) } else { (300, 3) };
    run("follow.py", &[("changes", changes), ("kills", kills)]);
}

#[test]
fn followers_of_all_lists_see_each_record_once_despite_takeovers() {
    let (changes, takeovers) = if is_full() { (10_000, 20) } else { (300, 2) };
    run("follow.py", &[INSTANCES, ("changes", changes), ("kills", takeovers)]);
}

#[test]
fn requests_with_a_key_have_one_effect_despite_kills() {
    run("keys.py", &[("rounds", if is_full() { 150 } else { 6 })]);
}

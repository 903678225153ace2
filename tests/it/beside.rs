//! An operator with a shell beside a service whose secrets are systemd's: what needs no secret works, what needs one says which.

use std::fs;

use crate::binary::{Desk, Ran};

/// Receivers of three kinds whose secrets stand nowhere, and a source beyond this machine.
const CONFIG: &str = r#"
[source]
base_url = "https://api.example.com"
[watch]
tokens = ["alpha"]
[store]
path = "test.db"
[http]
listen = "0.0.0.0:9797"
[[receiver]]
name = "ops"
type = "webhook"
[[receiver]]
name = "pager"
type = "webhook"
format = "pagerduty"
[[receiver]]
name = "desk"
type = "email"
smtp = "smtp://mail.example.com"
username = "alerts"
from = "Cliffwatch <a@example.com>"
to = ["b@example.com"]
[route]
receivers = ["ops", "pager", "desk"]
"#;

const RULES: &str = "[[rule]]\nalert = \"Cliff\"\non = \"unlock\"\nwithin = [\"7d\"]\n";

/// A desk whose database the service made: the binary fills it from a data folder where it may.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("cliffwatch.toml", CONFIG).write("rules/test.toml", RULES);
    fs::create_dir(desk.path("rules/tests")).expect("a folder");
    let test = "rules = [\"../test.toml\"]\n[[test]]\nname = \"t\"\nstart = 2026-03-01T00:00:00Z\n[[test.expect]]\nat = \"1d\"\nsilence = true\n";
    desk.write("rules/tests/t.toml", test);
    let opening = cliffwatch::store::Opening {
        path: desk.path("test.db"),
        access: cliffwatch::store::Access::Own,
        now: crate::support::time(crate::support::BEGIN),
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = cliffwatch::store::Store::open(opening).await.expect("opens");
        store.close().await.expect("closes");
    });
    desk
}

#[test]
fn what_neither_asks_nor_sends_needs_no_secret() {
    let desk = desk();
    for line in [
        "status",
        "status --format json",
        "alerts",
        "changes",
        "upcoming",
        "silence list",
        "silence add token=alpha --for 1h --comment c --author me",
        "plan",
        "explain Cliff",
        "backup copy.db",
        "check",
        "outbox list",
        "outbox why",
        "ack --list",
        "digest list",
        "routes show",
        "routes test severity=warning",
        "test",
        "schema config",
    ] {
        let ran = desk.run(line);
        assert_eq!(ran.code(), 0, "{line}: {}\n{}", ran.out, ran.err);
        if line != "check" {
            assert!(!ran.err.contains("secret") && !ran.err.contains("credential"), "{line}: {}", ran.err);
        }
    }
    // These fail for what they look for, not for a secret.
    for (line, code, why) in [
        ("ack al_nothing --author me", 2, "no alert that fires"),
        ("accept alpha", 2, "no token is known"),
        ("explain Cliff alpha", 2, "no token is known"),
        ("outbox retry 1", 1, "0 of 1 delivery"),
        ("backtest", 1, "nothing was recorded"),
        ("export out --db test.db", 0, ""),
    ] {
        let ran = desk.run(line);
        assert_eq!(ran.code(), code, "{line}: {}\n{}", ran.out, ran.err);
        assert!(ran.err.contains(why), "{line}: {}", ran.err);
    }
    // The check says what the daemon would need, and that a service may have it.
    let told = desk.run("check").err;
    for said in
        ["this receiver has no `url`", "this receiver has no `routing_key`", "this receiver has no `password`", "`ops-url`"]
    {
        assert!(told.contains(said), "{said}: {told}");
    }
    assert_eq!(desk.run("check --strict").code(), 3);
}

/// The line of a hint that begins so, as arguments.
fn line_of<'a>(ran: &'a Ran, begin: &str) -> &'a str {
    let lines = ran.err.lines().map(str::trim);
    let mut found = lines.filter(|line| line.starts_with(begin));
    found.next().unwrap_or_else(|| panic!("no line begins with {begin}: {}", ran.err))
}

#[test]
fn what_sends_or_asks_says_which_secret_is_missing_and_prints_a_line_that_works() {
    let desk = desk();
    let ran = desk.run("notify ops");
    assert_eq!(ran.code(), 1, "{}", ran.err);
    for said in [
        "receiver \"ops\" misses its secret `url`",
        "looked for `url` and `url_file` in cliffwatch.toml",
        "the credential `ops-url`",
        "there is no $CREDENTIALS_DIRECTORY here",
    ] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
    assert!(!ran.err.contains("pager") && !ran.err.contains("desk-password"), "others are no matter here: {}", ran.err);
    let folder = desk.path("").canonicalize().expect("a folder");
    let transient = line_of(&ran, "sudo systemd-run");
    let credential = format!("-p LoadCredential=ops-url:{}", folder.join("ops-url").display());
    assert!(transient.contains(&credential) && transient.ends_with("notify ops"), "{transient}");
    // The printed line, run as it is by a shell, where the file is there: nobody listens at port 9, which is an answer of the network.
    desk.write("ops-url", "http://127.0.0.1:9/hook\n");
    let line = line_of(&ran, "CREDENTIALS_DIRECTORY=").to_owned();
    let shell = std::process::Command::new("sh").args(["-c", &line]).current_dir("/").output().expect("a shell");
    let told = String::from_utf8_lossy(&shell.stdout);
    assert!(
        told.contains("ops: not delivered") && told.contains("refused"),
        "{line}\n{told}\n{}",
        String::from_utf8_lossy(&shell.stderr)
    );

    // Asking needs the key of the source first.
    for line in ["poll", "poll --dry-run"] {
        let ran = desk.run(line);
        assert_eq!(ran.code(), 1, "{line}: {}", ran.err);
        assert!(ran.err.contains("[source] misses its secret `api_key`"), "{line}: {}", ran.err);
        let shown = line_of(&ran, "sudo systemd-run");
        assert!(shown.contains("LoadCredential=api-key:") && shown.ends_with(line), "{shown}");
    }
    // With the key there, the receivers are next: each secret that is missing, and a line with all of them.
    desk.write("cliffwatch.toml", &CONFIG.replace("https://api.example.com", "http://127.0.0.1:9"));
    let ran = desk.run("poll");
    assert!(ran.err.contains("receiver \"ops\" misses its secret `url`, and 2 secrets more"), "{}", ran.err);
    let shown = line_of(&ran, "sudo systemd-run");
    for name in ["ops-url", "pager-routing_key", "desk-password"] {
        assert!(shown.contains(&format!("LoadCredential={name}:")), "{name}: {shown}");
    }
    // The daemon itself still refuses to start without them.
    let ran = desk.run("run");
    assert_eq!(ran.code(), 1, "{}", ran.err);
    assert!(ran.err.contains("the credential `ops-url`"), "{}", ran.err);
}

#[test]
fn where_the_database_is_that_of_the_unit_the_line_runs_as_its_user() {
    let desk = desk();
    let config = CONFIG.replace("path = \"test.db\"", "path = \"/var/lib/cliffwatch/cliffwatch.db\"");
    desk.write("cliffwatch.toml", &config);
    let ran = desk.run("poll");
    let shown = line_of(&ran, "sudo systemd-run");
    assert!(shown.contains("-p DynamicUser=yes -p User=cliffwatch -p StateDirectory=cliffwatch"), "{shown}");
    // A file that is named, and that this user may not read, is another matter.
    desk.write("cliffwatch.toml", &config.replace("[watch]", "api_key_file = \"nowhere/api-key\"\n[watch]"));
    let ran = desk.run("poll");
    assert!(ran.err.contains("nowhere/api-key") && ran.err.contains("run it as somebody who may read it"), "{}", ran.err);
    assert!(line_of(&ran, "sudo ").ends_with("poll"), "{}", ran.err);
}

#[test]
fn who_acts_is_named() {
    let desk = desk();
    // The binary is run without $USER.
    for line in ["ack al_nothing", "silence add token=alpha --for 1h --comment c"] {
        let ran = desk.run(line);
        assert_eq!(ran.code(), 2, "{line}: {}", ran.err);
        assert!(ran.err.contains("--author NAME"), "{line}: {}", ran.err);
    }
}

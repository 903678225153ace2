//! Commands in an operator's shell, while the daemon runs as a systemd service with credentials that the shell does not have. Commands
//! that need no secret work; the others name the missing secret.

use std::fs;

use crate::it::binary::{Ran, Workdir};

/// Three kinds of receivers without their secrets, and a remote source.
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

/// A folder with a config, rules, and an empty database.
fn workdir() -> Workdir {
    let workdir = Workdir::new();
    workdir.write("cliffwatch.toml", CONFIG).write("rules/test.toml", RULES);
    fs::create_dir(workdir.path("rules/tests")).expect("a folder");
    let test = "rules = [\"../test.toml\"]\n[[test]]\nname = \"t\"\nstart = 2026-03-01T00:00:00Z\n[[test.expect]]\nat = \"1d\"\nsilence = true\n";
    workdir.write("rules/tests/t.toml", test);
    let opening = cliffwatch::store::Opening {
        path: workdir.path("test.db"),
        access: cliffwatch::store::Access::Own,
        now: crate::it::support::time(crate::it::support::BEGIN),
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = cliffwatch::store::Store::open(opening).await.expect("opens");
        store.close().await.expect("closes");
    });
    workdir
}

#[test]
fn commands_that_neither_poll_nor_send_need_no_secret() {
    let workdir = workdir();
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
        let ran = workdir.run(line);
        assert_eq!(ran.code(), 0, "{line}: {}\n{}", ran.out, ran.err);
        if line != "check" {
            assert!(!ran.err.contains("secret") && !ran.err.contains("credential"), "{line}: {}", ran.err);
        }
    }
    // These fail because nothing matches their arguments, not because a secret is missing.
    for (line, code, why) in [
        ("ack al_nothing --author me", 2, "no firing alert"),
        ("accept alpha", 2, "no token has the slug or ticker"),
        ("explain Cliff alpha", 2, "no token has the slug or ticker"),
        ("outbox retry 1", 1, "0 of 1 delivery"),
        ("backtest", 1, "no history was recorded"),
        ("export out --db test.db", 0, ""),
    ] {
        let ran = workdir.run(line);
        assert_eq!(ran.code(), code, "{line}: {}\n{}", ran.out, ran.err);
        assert!(ran.err.contains(why), "{line}: {}", ran.err);
    }
    // `check` names the secrets that the daemon needs, and that a credential may provide them.
    let output = workdir.run("check").err;
    for said in
        ["this receiver has no `url`", "this receiver has no `routing_key`", "this receiver has no `password`", "`ops-url`"]
    {
        assert!(output.contains(said), "{said}: {output}");
    }
    assert_eq!(workdir.run("check --strict").code(), 3);
}

/// The first line of standard error that starts with `begin`.
fn line_of<'a>(ran: &'a Ran, begin: &str) -> &'a str {
    let lines = ran.err.lines().map(str::trim);
    let mut found = lines.filter(|line| line.starts_with(begin));
    found.next().unwrap_or_else(|| panic!("no line begins with {begin}: {}", ran.err))
}

#[test]
fn missing_secret_is_named_with_a_command_line_that_works() {
    let workdir = workdir();
    let ran = workdir.run("notify ops");
    assert_eq!(ran.code(), 1, "{}", ran.err);
    for said in [
        "receiver \"ops\" lacks the secret `url`",
        "searched `url` and `url_file` in cliffwatch.toml",
        "the credential `ops-url`",
        "$CREDENTIALS_DIRECTORY is not set",
    ] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
    assert!(
        !ran.err.contains("pager") && !ran.err.contains("desk-password"),
        "only the secrets of `ops` are needed: {}",
        ran.err
    );
    let folder = workdir.path("").canonicalize().expect("a folder");
    let transient = line_of(&ran, "sudo systemd-run");
    let credential = format!("-p LoadCredential=ops-url:{}", folder.join("ops-url").display());
    assert!(transient.contains(&credential) && transient.ends_with("notify ops"), "{transient}");
    // Run the printed line in a shell, with the file in place. Port 9 is closed, so the connection is refused.
    workdir.write("ops-url", "http://127.0.0.1:9/hook\n");
    let line = line_of(&ran, "CREDENTIALS_DIRECTORY=").to_owned();
    let shell = std::process::Command::new("sh").args(["-c", &line]).current_dir("/").output().expect("a shell");
    let output = String::from_utf8_lossy(&shell.stdout);
    assert!(
        output.contains("ops: not delivered") && output.contains("refused"),
        "{line}\n{output}\n{}",
        String::from_utf8_lossy(&shell.stderr)
    );

    // A poll needs the API key first.
    for line in ["poll", "poll --dry-run"] {
        let ran = workdir.run(line);
        assert_eq!(ran.code(), 1, "{line}: {}", ran.err);
        assert!(ran.err.contains("[source] lacks the secret `api_key`"), "{line}: {}", ran.err);
        let shown = line_of(&ran, "sudo systemd-run");
        assert!(shown.contains("LoadCredential=api-key:") && shown.ends_with(line), "{shown}");
    }
    // A source on this machine needs no key. The receivers are checked next: all missing secrets appear in one line.
    workdir.write("cliffwatch.toml", &CONFIG.replace("https://api.example.com", "http://127.0.0.1:9"));
    let ran = workdir.run("poll");
    assert!(ran.err.contains("receiver \"ops\" lacks the secret `url`, and 2 more secrets"), "{}", ran.err);
    let shown = line_of(&ran, "sudo systemd-run");
    for name in ["ops-url", "pager-routing_key", "desk-password"] {
        assert!(shown.contains(&format!("LoadCredential={name}:")), "{name}: {shown}");
    }
    // The daemon does not start without them.
    let ran = workdir.run("run");
    assert_eq!(ran.code(), 1, "{}", ran.err);
    assert!(ran.err.contains("the credential `ops-url`"), "{}", ran.err);
    // Both name the line of each receiver.
    for ran in [ran, workdir.run("check")] {
        for line in ["cliffwatch.toml:10:", "cliffwatch.toml:13:", "cliffwatch.toml:17:"] {
            assert!(ran.err.contains(line), "{line}: {}", ran.err);
        }
    }
}

#[test]
fn database_of_the_unit_makes_the_line_run_as_the_unit_user() {
    let workdir = workdir();
    let config = CONFIG.replace("path = \"test.db\"", "path = \"/var/lib/cliffwatch/cliffwatch.db\"");
    workdir.write("cliffwatch.toml", &config);
    let ran = workdir.run("poll");
    let shown = line_of(&ran, "sudo systemd-run");
    assert!(shown.contains("-p DynamicUser=yes -p User=cliffwatch -p StateDirectory=cliffwatch"), "{shown}");
    // A configured secret file that this user cannot read gets a different hint.
    workdir.write("cliffwatch.toml", &config.replace("[watch]", "api_key_file = \"nowhere/api-key\"\n[watch]"));
    let ran = workdir.run("poll");
    assert!(ran.err.contains("nowhere/api-key") && ran.err.contains("run the command as a user who can read it"), "{}", ran.err);
    assert!(line_of(&ran, "sudo ").ends_with("poll"), "{}", ran.err);
}

#[test]
fn acting_commands_work_without_a_user_name() {
    let workdir = workdir();
    // The tests run the binary without $USER and $LOGNAME, as some services do.
    let ran = workdir.run("silence add token=alpha --for 1h --comment c");
    assert_eq!(ran.code(), 0, "{}", ran.err);
    let listed = workdir.run("silence list");
    assert!(listed.out.contains("unknown user"), "{}", listed.out);
    let ran = workdir.run("ack al_nothing");
    assert!(ran.code() == 2 && ran.err.contains("no firing alert has the id al_nothing"), "{}", ran.err);
}

//! A receiver that is a program: checked but never run by what only looks, run by what sends, and run again after a kill.

use super::*;

/// A desk that asks nobody, with the program `script` as its receiver `run`.
fn desk_with(script: &str) -> Desk {
    let desk = Desk::new();
    desk.write("rules/r.toml", "[[rule]]\nalert = \"Any\"\non = \"unlock\"\nwithin = [\"7d\"]\n");
    program(&desk, "tell", &format!("#!/bin/sh\n{script}\n"));
    configure(&desk, "tell", "[\"it's one $(word)\"]");
    desk
}

/// Made by another process: what this one holds open for writing, children that other tests start at that moment hold open too, and a
/// file that somebody may write to is not run.
fn program(desk: &Desk, name: &str, text: &str) {
    let source = desk.path("source");
    fs::write(&source, text).expect("written");
    let installed = Command::new("install").args(["-m", "755"]).args([&source, &desk.path(name)]).status();
    assert!(installed.expect("install runs").success());
}

fn configure(desk: &Desk, name: &str, args: &str) {
    let command = desk.path(name);
    desk.write(
        "cliffwatch.toml",
        &format!(
            "[source]\nbase_url = \"http://127.0.0.1:9\"\nlegacy_base_url = \"http://127.0.0.1:9\"\n[watch]\ntokens = [\"alpha\"]\n\
             [http]\nlisten = \"off\"\n[delivery]\nretry = [\"0s\", \"1s\", \"1s\"]\n[route]\nreceivers = [\"run\"]\n\
             [[receiver]]\nname = \"run\"\ntype = \"exec\"\ncommand = \"{}\"\nargs = {args}\n",
            command.display()
        ),
    );
}

#[test]
fn what_only_looks_runs_nothing_and_what_sends_runs_it_with_the_message() {
    let desk = desk_with(
        r#"d=$(dirname "$0"); cat >"$d/body"; echo "$1 $CLIFFWATCH_STATUS $CLIFFWATCH_SEVERITY" >"$d/said"; echo thanks"#,
    );
    fs::create_dir(desk.path("rules/tests")).expect("a folder");
    desk.write("rules/tests/t.toml", "rules = [\"../r.toml\"]\n[[test]]\nname = \"none\"\nstart = 2026-03-01T00:00:00Z\n[[test.expect]]\nat = \"1d\"\nsilence = true\n");
    for line in ["check", "test rules/tests/t.toml", "routes show", "routes test severity=critical"] {
        desk.run(line).ok();
        assert!(!desk.path("body").exists(), "{line} ran it");
    }
    let said = desk.run("notify run").ok();
    assert!(said.starts_with("run: delivered\n") && said.contains("exit status 0: thanks"), "{said}");
    assert_eq!(fs::read_to_string(desk.path("said")).expect("run"), "it's one $(word) firing info\n");
    let body: Value = serde_json::from_str(&fs::read_to_string(desk.path("body")).expect("run")).expect("JSON");
    assert_eq!((&body["type"], &body["data"]["receiver"]), (&json!("test"), &json!("run")));
    let row = &desk.run("outbox list --format json").json()[0];
    assert!(row["lastAnswer"].as_str().is_some_and(|answer| answer == "exit status 0: thanks"), "{row}");
}

#[test]
fn a_program_that_cannot_be_run_is_told_by_the_check_and_one_that_refuses_by_the_test() {
    let desk = desk_with("echo 'no such \u{1b}[31mtopic' >&2; exit 65");
    let ran = desk.run("notify run");
    assert_eq!(ran.code(), 1, "{}", ran.err);
    let said = "run: not delivered: a real alert would be a dead letter\n  65, ";
    assert!(ran.out.starts_with(said) && ran.out.contains("exit status 65: no such [31mtopic\n"), "{}", ran.out);
    fs::set_permissions(desk.path("tell"), PermissionsExt::from_mode(0o644)).expect("set");
    let ran = desk.run("check");
    assert!(
        ran.code() == 1 && ran.err.contains("receiver \"run\": `command`: ") && ran.err.contains("is not executable"),
        "{}",
        ran.err
    );
    fs::remove_file(desk.path("tell")).expect("removed");
    let ran = desk.run("check");
    assert!(ran.code() == 1 && ran.err.contains("tell is not there"), "{}", ran.err);
}

#[test]
fn a_kill_while_it_runs_costs_nothing_and_its_repeat_has_the_same_id() {
    // The first run hangs; the others do what they are asked.
    let desk = desk_with(
        r#"d=$(dirname "$0"); echo "$CLIFFWATCH_WEBHOOK_ID $CLIFFWATCH_ATTEMPT" >>"$d/ids"; [ -e "$d/second" ] || sleep 300"#,
    );
    let ids = || -> Vec<String> { fs::read_to_string(desk.path("ids")).unwrap_or_default().lines().map(str::to_owned).collect() };
    let daemon = desk.start("run", &[]);
    daemon.until_log(" is watching");
    let mut asker = desk.start("notify run", &[]);
    until("the first run", || ids().len() == 1, || daemon.log());
    // Whoever asked for the test takes it out of the outbox where it fails: so it goes first.
    asker.child.kill().expect("killed");
    daemon.signal("KILL");
    drop(daemon);
    desk.write("second", "");
    let daemon = desk.start("run", &[]);
    let shown = || format!("{:?}\n{}\n{}", ids(), desk.run("outbox list --format json").out, daemon.log());
    until("the second run", || ids().len() >= 2, shown);
    let state = || desk.run("outbox list --format json").json()[0]["state"].clone();
    until("the record of it", || state() == "delivered", || daemon.log());
    let ids = ids();
    assert!(ids[0].starts_with("msg_") && ids[0] == ids[1], "{ids:?}");
    assert_eq!(daemon.stop().code(), 0);
}

#[test]
fn stopping_the_daemon_ends_what_it_runs() {
    let desk = desk_with(r#"d=$(dirname "$0"); sleep 300 & echo $! >"$d/pid"; wait"#);
    let daemon = desk.start("run", &[]);
    daemon.until_log(" is watching");
    let _asker = desk.start("notify run", &[]);
    let pid = || fs::read_to_string(desk.path("pid")).unwrap_or_default().trim().to_owned();
    until("the run", || !pid().is_empty(), || daemon.log());
    let begun = Instant::now();
    assert_eq!(daemon.stop().code(), 0);
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    let lives = || fs::read_to_string(format!("/proc/{}/stat", pid())).is_ok_and(|stat| !stat.contains(") Z "));
    until("the end of what it started", || !lives(), pid);
}

/// The examples of the documentation, as they stand there.
fn example(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/examples").join(name)).expect(name)
}

#[test]
fn the_logbook_of_the_documentation_keeps_each_message_once() {
    let desk = desk_with("exit 1");
    program(&desk, "logbook.py", &example("logbook.py"));
    let book = desk.path("book.jsonl");
    configure(&desk, "logbook.py", &format!("[{:?}]", book.display().to_string()));
    desk.run("notify run").ok();
    let lines = || fs::read_to_string(&book).expect("a book").lines().map(str::to_owned).collect::<Vec<_>>();
    let line: Value = serde_json::from_str(&lines()[0]).expect("JSON");
    assert_eq!(line["alerts"], json!(["Test message from Cliffwatch to run"]));
    // The same message again, as after a kill.
    let body = r#"{"type":"test","timestamp":"2026-03-01T00:00:00Z","data":{"alerts":[{"rule":"Test","annotations":{}}]}}"#;
    desk.write("body", body);
    let mut again = Command::new(desk.path("logbook.py"));
    again.arg(&book).env("CLIFFWATCH_WEBHOOK_ID", line["id"].as_str().expect("an id"));
    let ran = again.stdin(fs::File::open(desk.path("body")).expect("a body")).output().expect("runs");
    assert_eq!((ran.status.code(), String::from_utf8_lossy(&ran.stdout).trim()), (Some(0), "known already"));
    assert_eq!(lines().len(), 1);
}

#[test]
fn the_example_for_sns_hands_over_texts_as_data_alone() {
    let desk = desk_with("exit 1");
    program(&desk, "sns.py", &example("sns.py"));
    // Stands in for awscli: keeps what it is given, and answers as it is told.
    program(
        &desk,
        "aws",
        "#!/bin/sh\nd=$(dirname \"$0\"); printf '%s\\n' \"$@\" >\"$d/args\"; cat \"${6#file://}\" >\"$d/asked\"; cat \"$d/answer\" >&2; exit $(cat \"$d/code\")\n",
    );
    let topic = "arn:aws:sns:eu-central-1:123456789012:unlocks.fifo";
    configure(&desk, "sns.py", &format!("[{topic:?}, \"/nonexistent\", {:?}]", desk.path("aws").display().to_string()));
    let try_with = |answer: &str, code: &str| {
        desk.write("answer", answer).write("code", code);
        let ran = desk.run("notify run");
        ran.out
    };
    assert!(try_with("", "0").starts_with("run: delivered"), "it is taken");
    let args = fs::read_to_string(desk.path("args")).expect("asked");
    // Nothing of the message is an argument: awscli takes `file://…` in one for a file that is to be sent.
    assert!(
        args.starts_with("sns\npublish\n--region\neu-central-1\n--cli-input-json\nfile:///")
            && args.ends_with("\n--output\njson\n"),
        "{args}"
    );
    let asked: Value = serde_json::from_str(&fs::read_to_string(desk.path("asked")).expect("asked")).expect("JSON");
    assert_eq!((&asked["TopicArn"], &asked["Message"]), (&json!(topic), &json!("Test message from Cliffwatch to run")));
    assert!(asked["MessageDeduplicationId"].as_str().is_some_and(|id| id.starts_with("msg_")), "{asked}");
    let throttled = try_with("An error occurred (Throttling) when calling the Publish operation: Rate exceeded", "254");
    assert!(throttled.contains("a real alert would be tried again") && throttled.contains("Rate exceeded"), "{throttled}");
    let refused = try_with("An error occurred (NotFound) when calling the Publish operation: Topic does not exist", "254");
    assert!(refused.contains("a real alert would be a dead letter"), "{refused}");
}

//! Receivers of type `exec`: read-only commands check the program but do not run it; deliveries run it, again after a kill.

use super::*;

/// A folder with an unreachable source and the shell script `script` as receiver `run`.
fn workdir_with(script: &str) -> Workdir {
    let workdir = Workdir::new();
    workdir.write("rules/r.toml", "[[rule]]\nalert = \"Any\"\non = \"unlock\"\nwithin = [\"7d\"]\n");
    testkit::install_script(&format!("#!/bin/sh\n{script}\n"), &workdir.path("tell"));
    configure(&workdir, "tell", "[\"it's one $(word)\"]");
    workdir
}

fn configure(workdir: &Workdir, name: &str, args: &str) {
    let command = workdir.path(name);
    workdir.write(
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
fn only_deliveries_run_the_program() {
    let workdir = workdir_with(
        r#"d=$(dirname "$0"); cat >"$d/body"; echo "$1 $CLIFFWATCH_STATUS $CLIFFWATCH_SEVERITY" >"$d/said"; echo thanks"#,
    );
    fs::create_dir(workdir.path("rules/tests")).expect("a folder");
    workdir.write("rules/tests/t.toml", "rules = [\"../r.toml\"]\n[[test]]\nname = \"none\"\nstart = 2026-03-01T00:00:00Z\n[[test.expect]]\nat = \"1d\"\nsilence = true\n");
    for line in ["check", "test rules/tests/t.toml", "routes show", "routes test severity=critical"] {
        workdir.run(line).ok();
        assert!(!workdir.path("body").exists(), "{line} ran the program");
    }
    let said = workdir.run("notify run").ok();
    assert!(said.starts_with("run: delivered\n") && said.contains("exit status 0: thanks"), "{said}");
    assert_eq!(fs::read_to_string(workdir.path("said")).expect("run"), "it's one $(word) firing info\n");
    let body: Value = serde_json::from_str(&fs::read_to_string(workdir.path("body")).expect("run")).expect("JSON");
    assert_eq!((&body["type"], &body["data"]["receiver"]), (&json!("test"), &json!("run")));
    let row = &workdir.run("outbox list --format json").json()[0];
    assert!(row["lastAnswer"].as_str().is_some_and(|response| response == "exit status 0: thanks"), "{row}");
}

#[test]
fn check_reports_an_unusable_program_and_notify_a_failing_one() {
    let workdir = workdir_with("echo 'no such \u{1b}[31mtopic' >&2; exit 65");
    let ran = workdir.run("notify run");
    assert_eq!(ran.code(), 1, "{}", ran.err);
    let said = "run: not delivered: a real alert would be a dead letter\n  65, ";
    assert!(ran.out.starts_with(said) && ran.out.contains("exit status 65: no such [31mtopic\n"), "{}", ran.out);
    fs::set_permissions(workdir.path("tell"), PermissionsExt::from_mode(0o644)).expect("set");
    let ran = workdir.run("check");
    assert!(
        ran.code() == 1 && ran.err.contains("receiver \"run\": `command`: ") && ran.err.contains("is not executable"),
        "{}",
        ran.err
    );
    fs::remove_file(workdir.path("tell")).expect("removed");
    let ran = workdir.run("check");
    assert!(ran.code() == 1 && ran.err.contains("tell does not exist"), "{}", ran.err);
}

#[test]
fn delivery_survives_a_kill_under_the_same_id() {
    // The first run hangs, later runs succeed.
    let workdir = workdir_with(
        r#"d=$(dirname "$0"); echo "$CLIFFWATCH_WEBHOOK_ID $CLIFFWATCH_ATTEMPT" >>"$d/ids"; [ -e "$d/second" ] || sleep 300"#,
    );
    let ids =
        || -> Vec<String> { fs::read_to_string(workdir.path("ids")).unwrap_or_default().lines().map(str::to_owned).collect() };
    let daemon = workdir.start("run", &[]);
    daemon.until_log(" started");
    let mut notify = workdir.start("notify run", &[]);
    until("the first run", || ids().len() == 1, || daemon.log());
    // `notify` removes its test delivery from the outbox if the daemon dies, so kill `notify` first.
    notify.child.kill().expect("killed");
    daemon.signal("KILL");
    drop(daemon);
    workdir.write("second", "");
    let daemon = workdir.start("run", &[]);
    let shown = || format!("{:?}\n{}\n{}", ids(), workdir.run("outbox list --format json").out, daemon.log());
    until("the second run", || ids().len() >= 2, shown);
    let state = || workdir.run("outbox list --format json").json()[0]["state"].clone();
    until("the delivery is recorded", || state() == "delivered", || daemon.log());
    let ids = ids();
    assert!(ids[0].starts_with("msg_") && ids[0] == ids[1], "{ids:?}");
    assert_eq!(daemon.stop().code(), 0);
}

#[test]
fn stopping_the_daemon_kills_running_programs() {
    let workdir = workdir_with(r#"d=$(dirname "$0"); sleep 300 & echo $! >"$d/pid"; wait"#);
    let daemon = workdir.start("run", &[]);
    daemon.until_log(" started");
    let _asker = workdir.start("notify run", &[]);
    let pid = || fs::read_to_string(workdir.path("pid")).unwrap_or_default().trim().to_owned();
    until("the run", || !pid().is_empty(), || daemon.log());
    let begun = Instant::now();
    assert_eq!(daemon.stop().code(), 0);
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    let lives = || fs::read_to_string(format!("/proc/{}/stat", pid())).is_ok_and(|stat| !stat.contains(") Z "));
    until("the end of the child process", || !lives(), pid);
}

/// Reads an example program of the documentation.
fn example(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/examples").join(name)).expect(name)
}

#[test]
fn logbook_example_records_each_message_once() {
    let workdir = workdir_with("exit 1");
    testkit::install_script(&example("logbook.py"), &workdir.path("logbook.py"));
    let book = workdir.path("book.jsonl");
    configure(&workdir, "logbook.py", &format!("[{:?}]", book.display().to_string()));
    workdir.run("notify run").ok();
    let lines = || fs::read_to_string(&book).expect("a book").lines().map(str::to_owned).collect::<Vec<_>>();
    let line: Value = serde_json::from_str(&lines()[0]).expect("JSON");
    assert_eq!(line["alerts"], json!(["Test message from Cliffwatch to run"]));
    // The same message again, as after a crash.
    let body = r#"{"type":"test","timestamp":"2026-03-01T00:00:00Z","data":{"alerts":[{"rule":"Test","annotations":{}}]}}"#;
    workdir.write("body", body);
    let mut again = Command::new(workdir.path("logbook.py"));
    again.arg(&book).env("CLIFFWATCH_WEBHOOK_ID", line["id"].as_str().expect("an id"));
    let ran = again.stdin(fs::File::open(workdir.path("body")).expect("a body")).output().expect("runs");
    assert_eq!((ran.status.code(), String::from_utf8_lossy(&ran.stdout).trim()), (Some(0), "already stored"));
    assert_eq!(lines().len(), 1);
}

#[test]
fn sns_example_passes_texts_only_as_data() {
    let workdir = workdir_with("exit 1");
    testkit::install_script(&example("sns.py"), &workdir.path("sns.py"));
    // A fake awscli that stores its arguments and prints a configured response.
    testkit::install_script(
        "#!/bin/sh\nd=$(dirname \"$0\"); printf '%s\\n' \"$@\" >\"$d/args\"; cat \"${6#file://}\" >\"$d/asked\"; cat \"$d/answer\" >&2; exit $(cat \"$d/code\")\n",
        &workdir.path("aws"),
    );
    let topic = "arn:aws:sns:eu-central-1:123456789012:unlocks.fifo";
    configure(&workdir, "sns.py", &format!("[{topic:?}, \"/nonexistent\", {:?}]", workdir.path("aws").display().to_string()));
    let try_with = |response: &str, code: &str| {
        workdir.write("answer", response).write("code", code);
        let ran = workdir.run("notify run");
        ran.out
    };
    assert!(try_with("", "0").starts_with("run: delivered"), "the fake accepts the message");
    let args = fs::read_to_string(workdir.path("args")).expect("the request");
    // The message is not in the arguments, because awscli would replace `file://…` in an argument by the content of that file.
    assert!(
        args.starts_with("sns\npublish\n--region\neu-central-1\n--cli-input-json\nfile:///")
            && args.ends_with("\n--output\njson\n"),
        "{args}"
    );
    let requested: Value = serde_json::from_str(&fs::read_to_string(workdir.path("asked")).expect("the request")).expect("JSON");
    assert_eq!((&requested["TopicArn"], &requested["Message"]), (&json!(topic), &json!("Test message from Cliffwatch to run")));
    assert!(requested["MessageDeduplicationId"].as_str().is_some_and(|id| id.starts_with("msg_")), "{requested}");
    let throttled = try_with("An error occurred (Throttling) when calling the Publish operation: Rate exceeded", "254");
    assert!(throttled.contains("a real alert would be retried") && throttled.contains("Rate exceeded"), "{throttled}");
    let rejected = try_with("An error occurred (NotFound) when calling the Publish operation: Topic does not exist", "254");
    assert!(rejected.contains("a real alert would be a dead letter"), "{rejected}");
}

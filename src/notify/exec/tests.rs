use std::fs;
use std::path::Path;
use std::time::Instant as Wall;

use super::*;
use model::config::{ReceiverKind, ReceiverSettings, Span};
use model::{Notification, Replay};
use testkit::samples::{delivery_config, hostile, unlock};
use testkit::time;

/// A private folder with a program in it.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(script: &str) -> Self {
        let bench = Self { folder: tempfile::tempdir().expect("a folder") };
        bench.write("send", &format!("#!/bin/sh\n{script}\n"), 0o755);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        testkit::install_script(text, &self.path(name));
        set_mode(&self.path(name), mode);
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect(name)
    }

    fn settings(&self) -> ReceiverSettings {
        ReceiverSettings {
            name: "ops".into(),
            kind: ReceiverKind::Exec,
            command: Some(self.path("send")),
            args: vec![self.folder.path().display().to_string(), "two words; $(id)".into()],
            ..ReceiverSettings::default()
        }
    }

    fn receiver(&self, timeout: Duration) -> ExecReceiver {
        let delivery = config::DeliverySettings { timeout: Span(timeout), ..delivery_config() };
        let mut problems = Vec::new();
        let built = ExecReceiver::build(&self.settings(), &delivery, Some("https://cliffwatch.example.com"), &mut problems);
        built.unwrap_or_else(|| panic!("{problems:?}"))
    }

    async fn send(&self, delivery: &DueDelivery) -> SendResult {
        self.receiver(Duration::from_secs(20)).send(delivery).await
    }

    fn problem(&self) -> KeyProblem {
        let mut problems = Vec::new();
        assert!(ExecReceiver::build(&self.settings(), &delivery_config(), None, &mut problems).is_none(), "it passed");
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems.remove(0)
    }
}

fn due(notifications: Vec<Notification>) -> DueDelivery {
    testkit::samples::due(1, "ops", notifications)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("set");
}

/// Returns whether the process exists and is not a zombie.
fn lives(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z "))
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Wall::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "timed out waiting for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn program_gets_the_webhook_body_unchanged_arguments_and_a_minimal_environment() {
    let bench = Bench::new(
        r#"cat >"$1/body"; env >"$1/env"; printf '%s\n' "$#" "$2" >"$1/args"; pwd >"$1/pwd"; ls -l /proc/self/fd >"$1/fds"; echo accepted"#,
    );
    let _ours = fs::File::create(bench.path("ours")).expect("an open file");
    let replay = Some(Replay { requested_at: time("2026-03-10T00:00:00Z"), first_delivered_at: None });
    let delivery = DueDelivery { attempts: 2, replay, ..due(vec![unlock()]) };
    let result = bench.send(&delivery).await;
    assert_eq!(result, SendResult { outcome: Outcome::Accepted, status: Some(0), text: "exit status 0: accepted".into() });
    let body = webhook_body(&delivery, Some("https://cliffwatch.example.com")).expect("a body").expect("one");
    assert_eq!(bench.read("body").as_bytes(), body);
    let mut environment: Vec<String> = bench.read("env").lines().map(str::to_owned).collect();
    // The shell sets these itself.
    environment.retain(|line| !["PWD=", "SHLVL=", "OLDPWD=", "_="].iter().any(|own| line.starts_with(own)));
    environment.sort();
    let expected = [
        "CLIFFWATCH_ATTEMPT=3".to_owned(),
        "CLIFFWATCH_REPLAY=true".to_owned(),
        "CLIFFWATCH_SEVERITY=warning".to_owned(),
        "CLIFFWATCH_STATUS=firing".to_owned(),
        format!("CLIFFWATCH_WEBHOOK_ID={}", delivery.webhook_id),
        "LANG=C.UTF-8".to_owned(),
        format!("PATH={PATH}"),
    ];
    assert_eq!(environment, expected);
    assert_eq!(bench.read("args"), "2\ntwo words; $(id)\n");
    assert_eq!(bench.read("pwd"), "/\n");
    assert!(!bench.read("fds").contains("/ours"), "the program inherited a file: {}", bench.read("fds"));
}

#[tokio::test]
async fn exit_status_decides_the_outcome() {
    let cases = [
        ("exit 0", Outcome::Accepted, Some(0), "exit status 0, no output"),
        ("echo busy >&2; exit 75", Outcome::LATER, Some(75), "exit status 75: busy"),
        ("echo out; echo no such topic >&2; exit 65", Outcome::Refused, Some(65), "exit status 65: no such topic\nout"),
        ("exit 1", Outcome::Refused, Some(1), "exit status 1, no output"),
        ("kill -KILL $$", Outcome::Uncertain, None, "ended by signal 9, no output"),
        // A program may close its input without reading it.
        ("exec 0<&-; exit 0", Outcome::Accepted, Some(0), "exit status 0, no output"),
        ("printf 'a\\033[31mb\\000c\\342\\200\\256d\\r\\n'", Outcome::Accepted, Some(0), "exit status 0: a[31mbcd"),
    ];
    for (script, outcome, status, text) in cases {
        let result = Bench::new(script).send(&due(vec![unlock()])).await;
        assert_eq!(result, SendResult { outcome, status, text: text.into() }, "{script}");
    }
}

#[tokio::test]
async fn text_of_the_source_is_never_executed() {
    let bench = Bench::new(r#"cat >"$1/body"; echo "$CLIFFWATCH_SEVERITY" >"$1/severity""#);
    let mut notice = hostile();
    let inject = format!("$(touch {0}/owned) `touch {0}/owned`; touch {0}/owned\n\0", bench.folder.path().display());
    notice.body.labels.insert("severity".into(), inject.clone());
    notice.body.annotations.insert("summary".into(), inject.clone());
    let result = bench.send(&due(vec![notice])).await;
    assert_eq!(result.outcome, Outcome::Accepted, "{}", result.text);
    assert!(!bench.path("owned").exists());
    let body: serde_json::Value = serde_json::from_str(&bench.read("body")).expect("JSON");
    assert_eq!(body["data"]["alerts"][0]["annotations"]["summary"], inject.as_str());
    let severity = bench.read("severity");
    assert!(severity.trim_end().chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')), "{severity}");
}

#[tokio::test]
async fn timeout_kills_children_too() {
    // The grandchild ignores SIGTERM.
    let bench = Bench::new(
        r#"sh -c 'trap "" TERM; echo $$ >"$1/grandchild"; while :; do sleep 1; done' sh "$1" & echo begun; wait; sleep 60"#,
    );
    let begun = Wall::now();
    let result = bench.receiver(Duration::from_millis(1500)).send(&due(vec![unlock()])).await;
    assert_eq!(result.outcome, Outcome::Uncertain);
    assert_eq!(result.text, "killed because it ran longer than 1.5s: begun");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    let grandchild = bench.read("grandchild");
    until("the grandchild to exit", || !lives(&grandchild)).await;
}

#[tokio::test]
async fn program_that_ignores_sigterm_is_killed() {
    let bench = Bench::new(r#"trap '' TERM; echo $$ >"$1/pid"; while :; do sleep 1; done"#);
    let result = bench.receiver(Duration::from_millis(500)).send(&due(vec![unlock()])).await;
    assert_eq!(result.outcome, Outcome::Uncertain, "{}", result.text);
    let pid = bench.read("pid");
    until("the program to exit", || !lives(&pid)).await;
}

#[tokio::test]
async fn remaining_children_are_killed_and_do_not_delay_the_attempt() {
    let bench = Bench::new(r#"sleep 300 & echo $! >"$1/left"; exit 0"#);
    let begun = Wall::now();
    let result = bench.send(&due(vec![unlock()])).await;
    assert_eq!(result.outcome, Outcome::Accepted);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let left = bench.read("left");
    until("the child to exit", || !lives(&left)).await;
}

#[tokio::test]
async fn dropped_attempt_kills_the_program() {
    let bench = Bench::new(r#"echo $$ >"$1/pid"; sleep 300"#);
    let receiver = bench.receiver(Duration::from_secs(60));
    let attempt = tokio::spawn(async move { receiver.send(&due(vec![unlock()])).await });
    until("the program to start", || fs::read_to_string(bench.path("pid")).is_ok_and(|pid| pid.ends_with('\n'))).await;
    attempt.abort();
    let pid = bench.read("pid");
    until("the program to exit", || !lives(&pid)).await;
}

#[tokio::test]
async fn large_output_is_read_completely_and_only_its_end_recorded() {
    let bench =
        Bench::new("head -c 10000000 /dev/zero | tr '\\0' x; echo; echo the last line; head -c 10000000 /dev/zero >&2; exit 65");
    let result = bench.send(&due(vec![unlock()])).await;
    assert_eq!(result.outcome, Outcome::Refused);
    assert!(result.text.len() <= MAX_RESPONSE_BYTES, "{}", result.text.len());
    assert!(result.text.ends_with("xxx\nthe last line"), "{}", result.text);
}

#[tokio::test]
async fn cut_output_contains_whole_characters() {
    let bench = Bench::new("i=0; while [ $i -lt 1000 ]; do printf 'ää€'; i=$((i+1)); done");
    let text = bench.send(&due(vec![unlock()])).await.text;
    assert!(text.starts_with("exit status 0: …") && !text.contains('\u{fffd}'), "{text}");
}

#[test]
fn config_check_rejects_programs_that_cannot_run_or_that_others_can_replace() {
    let bench = Bench::new("exit 0");
    let at = bench.folder.path().display().to_string();
    let program = bench.path("send");
    set_mode(&program, 0o644);
    assert_eq!(bench.problem().message, format!("{at}/send is not executable: run `chmod 755` on it"));
    set_mode(&program, 0o757);
    let open = "is writable by every user, who could replace the program: run `chmod o-w` on it";
    assert_eq!(bench.problem().message, format!("{at}/send {open}"));
    set_mode(&program, 0o755);
    set_mode(bench.folder.path(), 0o1777);
    assert_eq!(bench.problem().message, format!("{at} {open}"), "even if it is sticky");
    set_mode(bench.folder.path(), 0o755);
    fs::remove_file(&program).expect("removed");
    assert_eq!(bench.problem(), KeyProblem::wrong("command", format!("{at}/send does not exist")));
    fs::create_dir(&program).expect("a folder");
    assert_eq!(bench.problem().message, format!("{at}/send is not a regular file"));
    // The target of a symbolic link is checked too.
    fs::remove_dir(&program).expect("removed");
    fs::create_dir(bench.path("open")).expect("a folder");
    bench.write("open/real", "#!/bin/sh\n", 0o755);
    set_mode(&bench.path("open"), 0o777);
    std::os::unix::fs::symlink(bench.path("open/real"), &program).expect("a link");
    assert_eq!(bench.problem().message, format!("{at}/open {open}"));
}

#[tokio::test]
async fn program_that_does_not_start_is_retried_with_the_reason() {
    let bench = Bench::new("exit 0");
    let receiver = bench.receiver(Duration::from_secs(20));
    let delivery = due(vec![unlock()]);
    let at = bench.path("send").display().to_string();
    bench.write("send", "#!/no/such/interpreter\n", 0o755);
    let result = receiver.send(&delivery).await;
    assert_eq!(result.outcome, Outcome::LATER);
    assert!(result.text.contains("the interpreter in its first line does not exist"), "{}", result.text);
    bench.write("send", "\u{1}neither\n", 0o755);
    let result = receiver.send(&delivery).await;
    assert!(result.text.contains("neither a program nor a script"), "{}", result.text);
    set_mode(&bench.path("send"), 0o757);
    let result = receiver.send(&delivery).await;
    assert!(result.outcome == Outcome::LATER && result.text.contains("is writable by every user"), "{}", result.text);
    fs::remove_file(bench.path("send")).expect("removed");
    assert_eq!(receiver.send(&delivery).await, SendResult::later(format!("{at} does not exist")));
}

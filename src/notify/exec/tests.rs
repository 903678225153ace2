use std::fs;
use std::path::Path;
use std::time::Instant as Wall;

use super::*;
use crate::samples::{delivery_config, hostile, unlock};
use model::Notification;
use model::config::{ReceiverKind, ReceiverSettings, Span};

/// A folder that nobody else may write to, with a program in it.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(script: &str) -> Self {
        let bench = Self { folder: tempfile::tempdir().expect("a folder") };
        bench.write("tell", &format!("#!/bin/sh\n{script}\n"), 0o755);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        fs::write(self.path(name), text).expect("written");
        set_mode(&self.path(name), mode);
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect(name)
    }

    fn settings(&self) -> ReceiverSettings {
        ReceiverSettings {
            name: "ops".into(),
            kind: ReceiverKind::Exec,
            command: Some(self.path("tell")),
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
    crate::samples::due(1, "ops", notifications)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("set");
}

/// Whether a process of this id is there and not a zombie.
fn lives(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z "))
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Wall::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what} never came");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn it_is_given_the_body_of_a_webhook_its_arguments_as_they_stand_and_a_bare_environment() {
    let bench = Bench::new(
        r#"cat >"$1/body"; env >"$1/env"; printf '%s\n' "$#" "$2" >"$1/args"; pwd >"$1/pwd"; ls -l /proc/self/fd >"$1/fds"; echo taken"#,
    );
    let _ours = fs::File::create(bench.path("ours")).expect("a file that is open meanwhile");
    let delivery = DueDelivery { attempts: 2, ..due(vec![unlock()]) };
    let result = bench.send(&delivery).await;
    assert_eq!(result, SendResult { outcome: Outcome::Accepted, status: Some(0), text: "exit status 0: taken".into() });
    let body = webhook_body(&delivery, Some("https://cliffwatch.example.com")).expect("a body").expect("one");
    assert_eq!(bench.read("body").as_bytes(), body);
    let mut environment: Vec<String> = bench.read("env").lines().map(str::to_owned).collect();
    // Those the shell sets itself.
    environment.retain(|line| !["PWD=", "SHLVL=", "OLDPWD=", "_="].iter().any(|own| line.starts_with(own)));
    environment.sort();
    let expected = [
        "CLIFFWATCH_ATTEMPT=3".to_owned(),
        "CLIFFWATCH_SEVERITY=warning".to_owned(),
        "CLIFFWATCH_STATUS=firing".to_owned(),
        format!("CLIFFWATCH_WEBHOOK_ID={}", delivery.webhook_id),
        "LANG=C.UTF-8".to_owned(),
        format!("PATH={PATH}"),
    ];
    assert_eq!(environment, expected);
    assert_eq!(bench.read("args"), "2\ntwo words; $(id)\n");
    assert_eq!(bench.read("pwd"), "/\n");
    assert!(!bench.read("fds").contains("/ours"), "it holds a file of ours: {}", bench.read("fds"));
}

#[tokio::test]
async fn its_exit_status_says_delivered_later_or_never() {
    let cases = [
        ("exit 0", Outcome::Accepted, Some(0), "exit status 0, without a text"),
        ("echo busy >&2; exit 75", Outcome::LATER, Some(75), "exit status 75: busy"),
        ("echo out; echo no such topic >&2; exit 65", Outcome::Refused, Some(65), "exit status 65: no such topic\nout"),
        ("exit 1", Outcome::Refused, Some(1), "exit status 1, without a text"),
        ("kill -KILL $$", Outcome::Uncertain, None, "ended by signal 9, without a text"),
        // A program that reads nothing is no failure of ours.
        ("exec 0<&-; exit 0", Outcome::Accepted, Some(0), "exit status 0, without a text"),
        ("printf 'a\\033[31mb\\000c\\342\\200\\256d\\r\\n'", Outcome::Accepted, Some(0), "exit status 0: a[31mbcd"),
    ];
    for (script, outcome, status, text) in cases {
        let result = Bench::new(script).send(&due(vec![unlock()])).await;
        assert_eq!(result, SendResult { outcome, status, text: text.into() }, "{script}");
    }
}

#[tokio::test]
async fn what_the_source_says_is_data_and_nothing_else() {
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
async fn the_time_out_ends_what_it_started_too() {
    // The child of the child hears no word to end.
    let bench = Bench::new(
        r#"sh -c 'trap "" TERM; echo $$ >"$1/grandchild"; while :; do sleep 1; done' sh "$1" & echo begun; wait; sleep 60"#,
    );
    let begun = Wall::now();
    let result = bench.receiver(Duration::from_millis(1500)).send(&due(vec![unlock()])).await;
    assert_eq!(result.outcome, Outcome::Uncertain);
    assert_eq!(result.text, "no end within 1.5s, so it was ended: begun");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    let grandchild = bench.read("grandchild");
    until("the end of the grandchild", || !lives(&grandchild)).await;
}

#[tokio::test]
async fn who_does_not_hear_the_word_to_end_is_ended() {
    let bench = Bench::new(r#"trap '' TERM; echo $$ >"$1/pid"; while :; do sleep 1; done"#);
    let result = bench.receiver(Duration::from_millis(500)).send(&due(vec![unlock()])).await;
    assert_eq!(result.outcome, Outcome::Uncertain, "{}", result.text);
    let pid = bench.read("pid");
    until("its end", || !lives(&pid)).await;
}

#[tokio::test]
async fn what_it_leaves_behind_ends_with_it_and_does_not_hold_the_attempt() {
    let bench = Bench::new(r#"sleep 300 & echo $! >"$1/left"; exit 0"#);
    let begun = Wall::now();
    let result = bench.send(&due(vec![unlock()])).await;
    assert_eq!(result.outcome, Outcome::Accepted);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let left = bench.read("left");
    until("the end of what was left", || !lives(&left)).await;
}

#[tokio::test]
async fn an_attempt_that_is_given_up_leaves_nothing_running() {
    let bench = Bench::new(r#"echo $$ >"$1/pid"; sleep 300"#);
    let receiver = bench.receiver(Duration::from_secs(60));
    let attempt = tokio::spawn(async move { receiver.send(&due(vec![unlock()])).await });
    until("its begin", || fs::read_to_string(bench.path("pid")).is_ok_and(|pid| pid.ends_with('\n'))).await;
    attempt.abort();
    let pid = bench.read("pid");
    until("its end", || !lives(&pid)).await;
}

#[tokio::test]
async fn ten_megabytes_of_output_are_read_to_their_end_and_their_end_is_kept() {
    let bench =
        Bench::new("head -c 10000000 /dev/zero | tr '\\0' x; echo; echo the last line; head -c 10000000 /dev/zero >&2; exit 65");
    let result = bench.send(&due(vec![unlock()])).await;
    assert_eq!(result.outcome, Outcome::Refused);
    assert!(result.text.len() <= MAX_ANSWER_BYTES, "{}", result.text.len());
    assert!(result.text.ends_with("xxx\nthe last line"), "{}", result.text);
}

#[tokio::test]
async fn a_cut_leaves_no_half_of_a_character() {
    let bench = Bench::new("i=0; while [ $i -lt 1000 ]; do printf 'ää€'; i=$((i+1)); done");
    let text = bench.send(&due(vec![unlock()])).await.text;
    assert!(text.starts_with("exit status 0: …") && !text.contains('\u{fffd}'), "{text}");
}

#[test]
fn a_program_that_cannot_be_run_or_that_anybody_may_change_is_told_when_the_config_is_checked() {
    let bench = Bench::new("exit 0");
    let at = bench.folder.path().display().to_string();
    let tell = bench.path("tell");
    set_mode(&tell, 0o644);
    assert_eq!(bench.problem().message, format!("{at}/tell is not executable: `chmod 755` it"));
    set_mode(&tell, 0o757);
    let open = "`chmod o-w` it, or anybody on this machine decides what is run";
    assert_eq!(bench.problem().message, format!("everybody may write to {at}/tell: {open}"));
    set_mode(&tell, 0o755);
    set_mode(bench.folder.path(), 0o1777);
    assert_eq!(bench.problem().message, format!("everybody may write to {at}: {open}"), "sticky or not");
    set_mode(bench.folder.path(), 0o755);
    fs::remove_file(&tell).expect("removed");
    assert_eq!(bench.problem(), KeyProblem::wrong("command", format!("{at}/tell is not there")));
    fs::create_dir(&tell).expect("a folder");
    assert_eq!(bench.problem().message, format!("{at}/tell is no file"));
    // A link is only as good as what it points to.
    fs::remove_dir(&tell).expect("removed");
    fs::create_dir(bench.path("open")).expect("a folder");
    bench.write("open/real", "#!/bin/sh\n", 0o755);
    set_mode(&bench.path("open"), 0o777);
    std::os::unix::fs::symlink(bench.path("open/real"), &tell).expect("a link");
    assert_eq!(bench.problem().message, format!("everybody may write to {at}/open: {open}"));
}

#[tokio::test]
async fn a_program_that_does_not_start_is_tried_again_and_says_why() {
    let bench = Bench::new("exit 0");
    let receiver = bench.receiver(Duration::from_secs(20));
    let delivery = due(vec![unlock()]);
    let at = bench.path("tell").display().to_string();
    bench.write("tell", "#!/no/such/interpreter\n", 0o755);
    let result = receiver.send(&delivery).await;
    assert_eq!(result.outcome, Outcome::LATER);
    assert!(result.text.contains("the interpreter that its first line names is not there"), "{}", result.text);
    bench.write("tell", "\u{1}neither\n", 0o755);
    let result = receiver.send(&delivery).await;
    assert!(result.text.contains("neither a program nor a script"), "{}", result.text);
    set_mode(&bench.path("tell"), 0o757);
    let result = receiver.send(&delivery).await;
    assert!(result.outcome == Outcome::LATER && result.text.starts_with("everybody may write to"), "{}", result.text);
    fs::remove_file(bench.path("tell")).expect("removed");
    assert_eq!(receiver.send(&delivery).await, SendResult::later(format!("{at} is not there")));
}

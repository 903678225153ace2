//! Helpers: external programs as child processes, alerts to send to them, and waiting for a condition.

use std::{
    ffi::OsString,
    future::Future,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use chrono::TimeDelta;
use cliffwatch::{
    model::{
        alert::{AlertBody, AlertStatus, Notification, NotificationKind, SeriesPoint, TokenBody, alert_id, notification_id},
        clock::Clock,
        config,
        rows::{Attempt, DueDelivery},
        supply::{Precision, ReceiverName, Resource, RuleId, Timestamp},
    },
    notify::{Outcome, Receivers, message},
};
use serde_json::{Value, json};

/// The time limit of each wait.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(240);

/// The variable that makes missing external software an error. CI sets it. Otherwise such a test prints that it was skipped.
const REQUIRED: &str = "CLIFFWATCH_TEST_EXTERNAL";

/// Reports missing software: prints that the test is skipped, or panics if the software is required.
fn report_missing(what: &str) {
    let is_required = std::env::var_os(REQUIRED).is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!is_required, "{what}");
    // Write directly to stderr, because the harness hides the output of passing tests.
    writeln!(std::io::stderr(), "SKIPPED: {what}").ok();
}

/// The Python interpreter with the libraries.
pub fn python() -> OsString {
    std::env::var_os("CLIFFWATCH_TEST_PYTHON").unwrap_or_else(|| "python3".into())
}

/// Returns whether the interpreter lacks `module`, and reports it.
pub fn lacks_python(module: &str) -> bool {
    let has = Command::new(python()).args(["-c", &format!("import {module}")]).stderr(Stdio::null()).status();
    let lacks = !has.is_ok_and(|status| status.success());
    if lacks {
        report_missing(&format!(
            "{} has no module {module}: install it (pip install {module}) and name its interpreter with CLIFFWATCH_TEST_PYTHON",
            python().to_string_lossy()
        ));
    }
    lacks
}

/// The path of a program installed by pip, else of one in `PATH`.
pub fn beside_python(name: &str) -> PathBuf {
    let beside = PathBuf::from(python()).with_file_name(name);
    if beside.is_file() { beside } else { name.into() }
}

/// Returns whether a program installed by pip is missing, and reports it.
pub fn lacks_beside_python(name: &str) -> bool {
    let lacks = !beside_python(name).is_file() && find(name).is_none();
    if lacks {
        report_missing(&format!("{name} is not installed: install it (pip install {name})"));
    }
    lacks
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// Returns whether a program is missing, and reports it.
pub fn lacks_program(name: &str, package: &str) -> bool {
    let lacks = find(name).is_none();
    if lacks {
        report_missing(&format!("{name} is not installed: install the package {package}"));
    }
    lacks
}

/// The path of an installed program.
pub fn program(name: &str) -> PathBuf {
    find(name).expect("checked before")
}

/// The path of a script in this folder.
pub fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/receivers").join(name)
}

/// An external program and its output. Killed on drop.
pub struct ExternalProgram {
    child: Child,
    lines: Receiver<String>,
}

impl ExternalProgram {
    pub fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdout = child.stdout.take().expect("piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next line of output.
    pub fn line(&self) -> String {
        self.lines.recv_timeout(WAIT_TIMEOUT).expect("the program prints a line in time")
    }
}

impl Drop for ExternalProgram {
    fn drop(&mut self) {
        // The program may have exited already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Polls until the result is `Some`.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut poll: impl FnMut() -> F) -> T {
    let deadline = tokio::time::Instant::now() + WAIT_TIMEOUT;
    loop {
        if let Some(response) = poll().await {
            return response;
        }
        assert!(tokio::time::Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub fn now() -> Timestamp {
    Clock::system().now()
}

/// The default delivery settings.
pub fn delivery_config() -> config::DeliverySettings {
    cliffwatch::daemon::config::load_text(None, "", &cliffwatch::daemon::config::Environment::default())
        .config
        .expect("the defaults")
        .delivery
}

/// Builds the receivers of a config text.
pub fn receivers(text: &str) -> Receivers {
    let loaded = cliffwatch::daemon::config::load_text(None, text, &cliffwatch::daemon::config::Environment::default());
    let problems = cliffwatch::model::diagnostic::render(&loaded.diagnostics, &loaded.sources, false);
    let config = loaded.config.unwrap_or_else(|| panic!("{problems}"));
    Receivers::build(&config.receivers, &delivery_config(), Some("https://cliffwatch.example.com"))
        .unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Makes one attempt to deliver to the receiver `ops`.
pub async fn send(receivers: &Receivers, delivery: &DueDelivery) -> (Outcome, Attempt) {
    receivers.send(&ReceiverName::from("ops"), delivery, now()).await
}

/// A firing alert for an unlock of `token` in `days` days.
pub fn unlock(token: &str, days: i64) -> Notification {
    let rule = RuleId::from("BigCliffAhead");
    let alert = alert_id(&rule, &format!("unlock/{token}"), 1);
    let at = now();
    let date = at + TimeDelta::days(days);
    let template = message::test_notification(&ReceiverName::from("ops"), at);
    let month = |n: i64| SeriesPoint { at: date + TimeDelta::days(30 * n), precision: Precision::Second, amount: 92_650_000.0 };
    Notification {
        id: notification_id(&alert, "firing"),
        alert: alert.clone(),
        kind: NotificationKind::Firing,
        body: AlertBody {
            id: alert,
            rule: "BigCliffAhead".into(),
            reason: "lead 7d".into(),
            labels: [("alertname", "BigCliffAhead"), ("severity", "warning"), ("token", token)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            annotations: [("description".to_owned(), "Prüfe die Absicherung – до пятницы. 🚨".to_owned())].into(),
            token: Some(TokenBody { id: token.into(), name: token.to_uppercase(), symbol: token.to_uppercase() }),
            resource: Some(Resource::Unlock),
            record: Some(json!({
                "unlockDate": date,
                "cliffUnlocks": {"cliffAmount": 92_650_000.0, "cliffValue": 33_150_000.0, "valueToMarketCap": 2.77},
            })),
            #[expect(clippy::cast_precision_loss, reason = "a few days")]
            days_until: Some(days as f64),
            when: Some(format!("on {}", cliffwatch::model::phrase::day(date))),
            event: Some(format!("unlock/{token}/1")),
            former_labels: Vec::new(),
            series: (-3..6).map(month).collect(),
            ..template.body
        },
        ..template
    }
}

/// The resolution of an alert.
pub fn resolved(firing: &Notification) -> Notification {
    let at = now();
    let body = AlertBody { status: AlertStatus::Resolved, reason: "passed".into(), ends_at: Some(at), ..firing.body.clone() };
    Notification { id: notification_id(&firing.alert, "resolved"), kind: NotificationKind::Resolved, at, body, ..firing.clone() }
}

/// A delivery of these notifications to the receiver `ops`.
pub fn due(webhook_id: &str, notifications: Vec<Notification>) -> DueDelivery {
    let delivery = message::test_delivery(&ReceiverName::from("ops"), now());
    DueDelivery { webhook_id: webhook_id.to_owned(), notifications, ..delivery }
}

/// Parses a line of JSON.
pub fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

//! The log of the injected faults, and the alerts of the shipped Prometheus rules that they explain.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::Value;
use testkit::free_port;

use super::claims::get;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The process was killed, stopped, or paused.
    Process,
    /// The network to the database was cut.
    Network,
    /// The database server was stopped, read-only, or without a free connection.
    Server,
    Clock,
    Source,
    Receiver,
    /// A rule file with an error.
    BrokenRules,
    /// A key that needs a restart.
    RestartKey,
    /// Another change of config or rules.
    OtherEdit,
    /// A receiver that left the config.
    LeftReceiver,
    LowBudget,
}

/// A fault, of one machine or of both, in seconds of Unix time.
#[derive(Clone, Debug)]
pub struct InjectedFault {
    pub cause: Cause,
    pub host: Option<usize>,
    pub begin: f64,
    /// Infinite until it ends.
    pub end: f64,
}

/// A shipped rule, and what explains that its condition is true.
struct AlertCauses {
    alert: &'static str,
    causes: &'static [Cause],
    /// The longest time from the end of the fault to the end of the condition.
    margin_secs: f64,
    /// Faults of a machine that last this long must make the condition true for that machine.
    must_follow: Option<(Cause, f64)>,
}

/// Every restart of an instance makes a scrape fail, and every takeover has a moment without an active instance.
const RESTARTS: &[Cause] = &[Cause::Process, Cause::Network, Cause::Server, Cause::RestartKey];

/// A rule that is not listed must never be true.
const TABLE: &[AlertCauses] = &[
    AlertCauses { alert: "CliffwatchDown", causes: RESTARTS, margin_secs: 30.0, must_follow: Some((Cause::Process, 4.0)) },
    AlertCauses { alert: "CliffwatchNotActive", causes: RESTARTS, margin_secs: 30.0, must_follow: None },
    AlertCauses {
        alert: "CliffwatchDatabaseDown",
        causes: &[Cause::Process, Cause::Network, Cause::Server],
        margin_secs: 30.0,
        must_follow: None,
    },
    AlertCauses { alert: "CliffwatchReloadFailed", causes: &[Cause::BrokenRules], margin_secs: 30.0, must_follow: None },
    AlertCauses { alert: "CliffwatchClockWrong", causes: &[Cause::Clock], margin_secs: 60.0, must_follow: None },
    AlertCauses { alert: "CliffwatchPollsStopped", causes: &[Cause::Clock], margin_secs: 60.0, must_follow: None },
    AlertCauses { alert: "CliffwatchCreditsSpent", causes: &[Cause::LowBudget], margin_secs: 60.0, must_follow: None },
    // A new active instance has no response before its first cycle.
    AlertCauses {
        alert: "CliffwatchSourceDown",
        causes: &[Cause::Source, Cause::Process, Cause::Network, Cause::Server, Cause::RestartKey],
        margin_secs: 60.0,
        must_follow: None,
    },
    AlertCauses { alert: "CliffwatchRemovalsHeld", causes: &[Cause::Source], margin_secs: 60.0, must_follow: None },
    // A new active instance reads the times of the last successes from the database.
    AlertCauses { alert: "CliffwatchNothingRead", causes: RESTARTS, margin_secs: 30.0, must_follow: None },
    // The age of a delivery by the clock of the machine.
    AlertCauses { alert: "CliffwatchDeliveriesOld", causes: &[Cause::Clock], margin_secs: 60.0, must_follow: None },
    // Its dead letters are sent if it returns within a week.
    AlertCauses { alert: "CliffwatchDeadLetters", causes: &[Cause::LeftReceiver], margin_secs: f64::INFINITY, must_follow: None },
];

/// The scrapes and evaluations that may pass between a condition and its sample.
const SAMPLE_TOLERANCE_SECS: f64 = 4.0;
/// Samples of one period are at most this far apart.
const SAME_PERIOD_SECS: f64 = 2.5;
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);

pub fn unix_now() -> f64 {
    #[allow(clippy::disallowed_methods, reason = "Prometheus uses the clock of the machine")]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// All faults, in the order of their begin.
#[derive(Clone, Debug, Default)]
pub struct FaultLog(Vec<InjectedFault>);

impl FaultLog {
    pub fn begin(&mut self, cause: Cause, host: Option<usize>) {
        self.0.push(InjectedFault { cause, host, begin: unix_now(), end: f64::INFINITY });
    }

    pub fn end(&mut self, cause: Cause, host: Option<usize>) {
        let now = unix_now();
        let open = self.0.iter_mut().filter(|fault| fault.cause == cause && fault.host == host && fault.end.is_infinite());
        open.for_each(|fault| fault.end = now);
    }

    pub fn all(&self) -> &[InjectedFault] {
        &self.0
    }
}

/// A time in which the condition of a rule was true without a pause.
#[derive(Clone, Debug, PartialEq)]
pub struct Period {
    pub alert: String,
    /// Empty for an alert about the job.
    pub instance: String,
    pub begin: f64,
    pub end: f64,
    /// When it fired, if its condition was true for long enough.
    pub fired_at: Option<f64>,
}

/// A real Prometheus with the shipped rules, which scrapes both instances every second.
pub struct Prometheus {
    child: Child,
    port: u16,
    began_at: f64,
}

impl Prometheus {
    /// `None` if it is not installed, which `CLIFFWATCH_TEST_EXTERNAL` makes an error.
    pub fn start(folder: &Path, instances: [(&str, u16); 2]) -> Option<Self> {
        if Command::new("prometheus").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            let is_required = std::env::var_os("CLIFFWATCH_TEST_EXTERNAL").is_some_and(|value| !value.is_empty() && value != "0");
            assert!(!is_required, "prometheus is not installed");
            println!("SKIPPED: alerts (Debian: apt-get install prometheus)");
            return None;
        }
        let port = free_port();
        let targets: Vec<_> = instances
            .iter()
            .map(|(name, port)| format!("{{ targets: [\"127.0.0.1:{port}\"], labels: {{ instance: {name} }} }}"))
            .collect();
        let config = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }}\n\
             rule_files: [\"{}/packaging/prometheus/cliffwatch.rules.yml\"]\n\
             scrape_configs:\n- {{ job_name: cliffwatch, static_configs: [{}] }}\n",
            env!("CARGO_MANIFEST_DIR"),
            targets.join(", ")
        );
        std::fs::write(folder.join("prometheus.yml"), config).expect("written");
        let child = Command::new("prometheus")
            .current_dir(folder)
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=series", "--log.level=error"])
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        Some(Self { child, port, began_at: unix_now() })
    }

    /// All periods so far.
    pub fn periods(&self) -> Vec<Period> {
        let path = format!("/api/v1/query_range?query=ALERTS&start={}&end={}&step=1", self.began_at.floor(), unix_now().ceil());
        let text = get(self.port, &path, QUERY_TIMEOUT).expect("Prometheus responds");
        periods(&serde_json::from_str(&text).expect("JSON"))
    }

    /// Returns whether it has scraped both instances.
    pub fn is_scraping(&self) -> bool {
        let response = get(self.port, "/api/v1/query?query=sum(up)", QUERY_TIMEOUT).unwrap_or_default();
        serde_json::from_str::<Value>(&response).is_ok_and(|response| response["data"]["result"][0]["value"][1] == "2")
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Joins the samples of the series `ALERTS` to periods.
fn periods(response: &Value) -> Vec<Period> {
    let mut samples: BTreeMap<(String, String), Vec<(f64, bool)>> = BTreeMap::new();
    for series in response["data"]["result"].as_array().into_iter().flatten() {
        let label = |name: &str| series["metric"][name].as_str().unwrap_or_default().to_owned();
        let is_firing = label("alertstate") == "firing";
        let times = series["values"].as_array().into_iter().flatten().filter_map(|value| value[0].as_f64());
        samples.entry((label("alertname"), label("instance"))).or_default().extend(times.map(|at| (at, is_firing)));
    }
    let mut periods: Vec<Period> = Vec::new();
    for ((alert, instance), mut times) in samples {
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, is_firing) in times {
            let is_same =
                |last: &&mut Period| last.alert == alert && last.instance == instance && at - last.end <= SAME_PERIOD_SECS;
            match periods.last_mut().filter(is_same) {
                Some(last) => {
                    last.end = at;
                    last.fired_at = last.fired_at.or(is_firing.then_some(at));
                }
                None => periods.push(Period {
                    alert: alert.clone(),
                    instance: instance.clone(),
                    begin: at,
                    end: at,
                    fired_at: is_firing.then_some(at),
                }),
            }
        }
    }
    periods
}

/// Compares the alerts with the faults, both ways.
pub fn surprises(periods: &[Period], faults: &[InjectedFault]) -> Vec<String> {
    let mut wrong = Vec::new();
    for period in periods {
        let expected = TABLE.iter().find(|expected| expected.alert == period.alert);
        if !expected.is_some_and(|expected| is_explained(period, expected, faults)) {
            let length = period.end - period.begin;
            let fired = if period.fired_at.is_some() { " and fired" } else { "" };
            wrong.push(format!(
                "{} of {:?} was true for {length:.0} s at {:.0}{fired}, without a cause",
                period.alert, period.instance, period.begin
            ));
        }
    }
    for expected in TABLE {
        let Some((cause, length)) = expected.must_follow else { continue };
        for fault in faults.iter().filter(|fault| fault.cause == cause && fault.end - fault.begin >= length) {
            let Some(host) = fault.host.and_then(|host| ["one", "two"].get(host)) else { continue };
            let follows = |period: &&Period| {
                period.alert == expected.alert
                    && period.instance == *host
                    && period.end >= fault.begin
                    && period.begin <= fault.end + SAMPLE_TOLERANCE_SECS
            };
            if !periods.iter().any(|period| follows(&period)) {
                wrong.push(format!("{} of {host} was not true in {fault:?}", expected.alert));
            }
        }
    }
    wrong
}

/// Returns whether faults without a gap explain the whole period.
fn is_explained(period: &Period, expected: &AlertCauses, faults: &[InjectedFault]) -> bool {
    let mut explained_until = period.begin;
    let mut causes: Vec<_> = faults.iter().filter(|fault| expected.causes.contains(&fault.cause)).collect();
    causes.sort_by(|a, b| a.begin.total_cmp(&b.begin));
    for fault in causes {
        if fault.begin <= explained_until + SAMPLE_TOLERANCE_SECS {
            explained_until = explained_until.max(fault.end + expected.margin_secs);
        }
    }
    explained_until > period.begin && period.end <= explained_until
}

#[test]
fn alerts_and_faults_are_compared_both_ways() {
    let fault = |cause, host, begin: f64, end: f64| InjectedFault { cause, host, begin, end };
    let period = |alert: &str, instance: &str, begin: f64, end: f64| Period {
        alert: alert.to_owned(),
        instance: instance.to_owned(),
        begin,
        end,
        fired_at: None,
    };
    let killed = [fault(Cause::Process, Some(0), 100.0, 110.0)];
    let down = period("CliffwatchDown", "one", 101.0, 112.0);
    assert_eq!(surprises(std::slice::from_ref(&down), &killed), Vec::<String>::new());
    assert_eq!(surprises(&[], &killed).len(), 1, "an alert is missing");
    assert_eq!(surprises(&[period("CliffwatchDown", "two", 101.0, 112.0)], &killed).len(), 1, "of the other machine");
    assert_eq!(surprises(std::slice::from_ref(&down), &[]).len(), 1, "without a cause");
    assert_eq!(surprises(&[period("CliffwatchDown", "one", 101.0, 160.0)], &killed).len(), 1, "for too long");
    assert_eq!(surprises(&[down, period("CliffwatchStoreBroken", "one", 101.0, 102.0)], &killed).len(), 1, "not in the table");
}

#[test]
fn samples_are_joined_to_periods() {
    let series = |state: &str, times: &[f64]| {
        let values: Vec<Value> = times.iter().map(|at| serde_json::json!([at, "1"])).collect();
        serde_json::json!({ "metric": { "alertname": "A", "instance": "one", "alertstate": state }, "values": values })
    };
    let response =
        serde_json::json!({ "data": { "result": [series("firing", &[4.0, 5.0]), series("pending", &[1.0, 2.0, 3.0, 9.0])] } });
    let found: Vec<_> = periods(&response).into_iter().map(|period| (period.begin, period.end, period.fired_at)).collect();
    assert_eq!(found, [(1.0, 5.0, Some(4.0)), (9.0, 9.0, None)]);
}

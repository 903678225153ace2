//! `amtool`, the command line client of Alertmanager, shows our alerts and manages our silences.

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;
use testkit::free_port;

use crate::receivers::outside::{self, ExternalProgram, until};
use crate::receivers::prometheus::cliffwatch;

/// A daemon with firing alerts of three tokens, and the data service that it polls.
struct Stage {
    folder: tempfile::TempDir,
    daemon: String,
    _programs: [ExternalProgram; 2],
}

impl Stage {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let [service, daemon]: [String; 2] = std::array::from_fn(|_| format!("127.0.0.1:{}", free_port()));
        let config = format!(
            "[source]\nbase_url = \"http://{service}\"\nlegacy_base_url = \"http://{service}\"\napi_key = \"none\"\n\
             [watch]\ntokens = [\"arbitrum\", \"aptos\", \"sui\"]\n[rules]\npaths = [\"rules.toml\"]\n\
             [http]\nlisten = \"{daemon}\"\ntoken = \"t0ken\"\n[schedule]\nunlock_events = \"*/2 * * * * *\"\n\
             [budget]\nmonthly_credits = 100000\n\
             [[receiver]]\nname = \"ops\"\ntype = \"exec\"\ncommand = \"/bin/true\"\n\
             [route]\nreceivers = [\"ops\"]\ngroup_by = [\"token\"]\n"
        );
        let rule = "[[rule]]\nalert = \"Ahead\"\non = \"token\"\nwhen = 'ahead(\"365d\").count >= 0'\nlabels = { severity = \"critical\" }\n";
        for (name, text) in [
            ("cliffwatch.toml", config.as_str()),
            ("rules.toml", rule),
            ("amtool-http.yml", "authorization: { type: Bearer, credentials: t0ken }\n"),
        ] {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        let import = run(
            folder.path(),
            env!("CARGO_BIN_EXE_cliffwatch"),
            &["import", concat!(env!("CARGO_MANIFEST_DIR"), "/data"), "--db", "service.db"],
        );
        assert!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
        let programs = [
            cliffwatch(folder.path(), &["serve", "--db", "service.db", "--listen", &service]),
            cliffwatch(folder.path(), &["run"]),
        ];
        Self { folder, daemon, _programs: programs }
    }

    fn amtool(&self, arguments: &[&str]) -> Output {
        let url = format!("--alertmanager.url=http://{}", self.daemon);
        let arguments: Vec<&str> = [url.as_str()].into_iter().chain(arguments.iter().copied()).collect();
        run(self.folder.path(), outside::program("amtool").to_str().expect("a path"), &arguments)
    }

    /// Runs `amtool` with the token. Returns its output.
    #[track_caller]
    fn amtool_ok(&self, arguments: &[&str]) -> String {
        let with_token: Vec<&str> = ["--http.config.file=amtool-http.yml"].into_iter().chain(arguments.iter().copied()).collect();
        let output = self.amtool(&with_token);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {}{error}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs `amtool` with the token. Returns its error.
    #[track_caller]
    fn amtool_error(&self, arguments: &[&str]) -> String {
        let with_token: Vec<&str> = ["--http.config.file=amtool-http.yml"].into_iter().chain(arguments.iter().copied()).collect();
        let output = self.amtool(&with_token);
        assert!(!output.status.success(), "{arguments:?}");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }

    #[track_caller]
    fn alerts(&self, arguments: &[&str]) -> Vec<Value> {
        let arguments: Vec<&str> = ["-o", "json", "alert", "query"].into_iter().chain(arguments.iter().copied()).collect();
        serde_json::from_str(&self.amtool_ok(&arguments)).expect("JSON")
    }

    #[track_caller]
    fn tokens(&self, arguments: &[&str]) -> BTreeSet<String> {
        let alerts = self.alerts(arguments);
        alerts.iter().filter_map(|alert| Some(alert["labels"]["token"].as_str()?.to_owned())).collect()
    }
}

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Output {
    Command::new(program).current_dir(folder).env("HOME", folder).args(arguments).output().expect("it runs")
}

fn set(tokens: &[&str]) -> BTreeSet<String> {
    tokens.iter().map(|token| (*token).to_owned()).collect()
}

#[tokio::test]
async fn amtool_queries_alerts_and_manages_silences() {
    if outside::lacks_program("amtool", "prometheus-alertmanager") {
        return;
    }
    let stage = Stage::start();
    let all = set(&["aptos", "arbitrum", "sui"]);
    until("all alerts fire", || async {
        let output = stage.amtool(&["-o", "json", "alert", "query"]);
        let alerts: Value = serde_json::from_slice(&output.stdout).ok()?;
        (alerts.as_array()?.iter().filter(|alert| alert["labels"]["alertname"] == "Ahead").count() >= 3).then_some(())
    })
    .await;
    for (filter, expected) in [
        ("Ahead", all.clone()),
        ("token=arbitrum", set(&["arbitrum"])),
        ("token=ARB", set(&["arbitrum"])),
        ("token!=arbitrum", set(&["aptos", "sui"])),
        ("token=~a.*", set(&["aptos", "arbitrum"])),
        ("token=~rbitru", set(&[])),
        ("token!~a.*", set(&["sui"])),
        ("severity=info", set(&[])),
    ] {
        assert_eq!(stage.tokens(&["alertname=Ahead", filter][usize::from(filter == "Ahead")..]), expected, "{filter}");
    }
    assert_eq!(stage.tokens(&["alertname=Ahead", "--receiver=op.*"]), all);
    assert_eq!(stage.tokens(&["alertname=Ahead", "--receiver=op"]), set(&[]));
    let simple = stage.amtool_ok(&["alert"]);
    assert!(simple.contains("Alertname") && simple.contains("Ahead") && simple.contains("active"), "{simple}");

    // A silence that it creates suppresses the alert here.
    let add =
        ["silence", "add", "--author=ann", "--comment=known to the exchange", "--duration=2h", "token=ARB", "severity=~crit.*"];
    let rejected = stage.amtool(&add);
    assert!(!rejected.status.success() && String::from_utf8_lossy(&rejected.stderr).contains("401"), "{rejected:?}");
    let id = stage.amtool_ok(&add).trim().to_owned();
    assert!(id.starts_with("si_"), "{id}");
    assert_eq!(stage.tokens(&["alertname=Ahead"]), set(&["aptos", "sui"]));
    let silenced = stage.alerts(&["--silenced", "alertname=Ahead"]);
    assert_eq!(silenced.len(), 1, "{silenced:#?}");
    let status = &silenced[0]["status"];
    assert_eq!((&status["state"], &status["silencedBy"][0]), (&"suppressed".into(), &id.as_str().into()), "{silenced:#?}");
    let found: Value = serde_json::from_str(&stage.amtool_ok(&["-o", "json", "silence", "query"])).expect("JSON");
    let silence = &found[0];
    assert_eq!(
        (&silence["id"], &silence["createdBy"], &silence["comment"]),
        (&id.as_str().into(), &"ann".into(), &"known to the exchange".into())
    );
    assert_eq!(silence["matchers"].as_array().map(Vec::len), Some(2), "{found:#}");
    assert!(stage.amtool_ok(&["silence", "query", "token=arbitrum"]).contains(&id));
    assert!(!stage.amtool_ok(&["silence", "query", "token=sui"]).contains(&id));
    let own = run(stage.folder.path(), env!("CARGO_BIN_EXE_cliffwatch"), &["silence", "list", "--format", "json"]);
    let own: Value = serde_json::from_slice(&own.stdout).expect("JSON");
    assert_eq!((&own[0]["id"], &own[0]["matchers"][0]), (&id.as_str().into(), &"token=\"arbitrum\"".into()), "{own:#}");

    // A change replaces it.
    let changed = stage.amtool_ok(&["silence", "update", "--comment=changed", "--duration=1h", &id]);
    let active = stage.amtool_ok(&["silence", "query", "-q"]).trim().to_owned();
    assert!(!active.contains(&id) && changed.contains("changed"), "{changed}: {active}");
    stage.amtool_ok(&["silence", "expire", &active]);
    assert_eq!(stage.amtool_ok(&["silence", "query", "-q"]).trim(), "");
    assert!(stage.amtool_ok(&["silence", "query", "--expired", "-q"]).contains(&id));
    assert_eq!(stage.tokens(&["alertname=Ahead"]), all);
    assert!(stage.amtool_error(&["silence", "expire", &active]).contains("404"));

    manage_several_silences(&stage);

    // What a silence here cannot be is an error with the reason. `\Q` is valid in Go.
    for (arguments, said) in [
        (&["--duration=9000h", "token=sui"][..], "at most 366 days"),
        (&["--duration=1h", "token=suii"], "did you mean"),
        (&["--duration=1h", "token=~\\Qsui\\E"], "invalid pattern"),
        (&["--duration=1h", "token!=sui"], "suppress everything"),
    ] {
        let add: Vec<&str> =
            ["silence", "add", "--author=ann", "--comment=c"].into_iter().chain(arguments.iter().copied()).collect();
        let error = stage.amtool_error(&add);
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    assert!(stage.amtool_error(&["alert", "add", "alertname=Own"]).contains("405"));
    assert!(stage.amtool_ok(&["config", "show"]).contains("cliffwatch routes show"));
    assert!(stage.amtool_ok(&["cluster", "show"]).contains("disabled"));
}

/// The other forms of the commands: a time range, details, filters of the list, several ids at once, and import of an exported list.
fn manage_several_silences(stage: &Stage) {
    let soon = (cliffwatch::model::clock::Clock::system().now() + chrono::TimeDelta::hours(3))
        .to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let later = (cliffwatch::model::clock::Clock::system().now() + chrono::TimeDelta::hours(9))
        .to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let add = |author: &str, arguments: &[&str]| {
        let author = format!("--author={author}");
        let add: Vec<&str> =
            ["silence", "add", &author, "--comment=planned"].into_iter().chain(arguments.iter().copied()).collect();
        stage.amtool_ok(&add).trim().to_owned()
    };
    let (start, end) = (format!("--start={soon}"), format!("--end={later}"));
    let planned = add("ben", &[&start, &end, "token=sui"]);
    let now = add("ann", &["--duration=1h", "token=aptos"]);
    assert_eq!(stage.tokens(&["alertname=Ahead"]), set(&["arbitrum", "sui"]), "the planned one has no effect yet");
    let query = |arguments: &[&str]| {
        let query: Vec<&str> = ["silence", "query", "-q"].into_iter().chain(arguments.iter().copied()).collect();
        stage.amtool_ok(&query).split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let both = BTreeSet::from([planned.clone(), now.clone()]);
    assert_eq!(query(&[]), both);
    assert_eq!(query(&["--created-by=ben"]), BTreeSet::from([planned.clone()]));
    assert_eq!(query(&["--within=2h"]), BTreeSet::from([now.clone()]));
    let details = stage.amtool_ok(&["-o", "extended", "silence", "query"]);
    assert!(details.contains(&planned) && details.contains("ben") && details.contains("planned"), "{details}");
    let details = stage.amtool_ok(&["-o", "extended", "alert", "query", "alertname=Ahead"]);
    assert!(details.contains("token=\"arbitrum\"") && details.contains("Generator URL"), "{details}");

    let exported = stage.amtool_ok(&["-o", "json", "silence", "query"]);
    // amtool silence expire $(amtool silence query -q)
    stage.amtool_ok(&["silence", "expire", &planned, &now]);
    assert_eq!(query(&[]), BTreeSet::new());
    std::fs::write(stage.folder.path().join("silences.json"), exported).expect("written");
    stage.amtool_ok(&["silence", "import", "--force", "silences.json"]);
    let imported = query(&[]);
    assert!(imported.len() == 2 && imported.is_disjoint(&both), "{imported:?}");
    let expire: Vec<&str> = ["silence", "expire"].into_iter().chain(imported.iter().map(String::as_str)).collect();
    stage.amtool_ok(&expire);
    assert_eq!(stage.tokens(&["alertname=Ahead"]), set(&["aptos", "arbitrum", "sui"]));
}

//! `promtool check metrics` accepts the metrics of the daemon and of the data service.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use testkit::free_port;

use crate::receivers::outside::{self, ExternalProgram, until};

/// Returns the output of promtool. Empty if the metrics are valid.
fn complaints(page: &str) -> String {
    let mut tool = Command::new(outside::program("promtool"))
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    tool.stdin.take().expect("piped").write_all(page.as_bytes()).expect("written");
    let output = tool.wait_with_output().expect("promtool ends");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { said } else { format!("{}: {said}", output.status) }
}

async fn page(address: &str, accept: &str) -> Option<(String, String)> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _lost_race = rustls::crypto::ring::default_provider().install_default();
    }
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let response = client.get(format!("http://{address}/metrics")).header("accept", accept).send().await.ok()?;
    let kind = response.headers().get("content-type")?.to_str().ok()?.to_owned();
    if response.status().is_success() { Some((kind, response.text().await.ok()?)) } else { None }
}

/// Starts our program in a folder.
fn cliffwatch(folder: &Path, arguments: &[&str]) -> ExternalProgram {
    ExternalProgram::start(
        Command::new(env!("CARGO_BIN_EXE_cliffwatch")).current_dir(folder).args(arguments).stderr(Stdio::null()),
    )
}

#[tokio::test]
async fn promtool_accepts_the_metrics_of_daemon_and_data_service() {
    if outside::lacks_program("promtool", "prometheus") {
        return;
    }
    assert!(!complaints("# TYPE lonely counter\nlonely 1\n").is_empty(), "promtool must report this metric");
    let folder = tempfile::tempdir().expect("a folder");
    let (service, daemon) = (format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{}", free_port()));
    let import = Command::new(env!("CARGO_BIN_EXE_cliffwatch"))
        .args(["import", concat!(env!("CARGO_MANIFEST_DIR"), "/data"), "--db", "service.db"])
        .current_dir(folder.path())
        .output();
    assert!(import.expect("it runs").status.success());
    let _service = cliffwatch(folder.path(), &["serve", "--db", "service.db", "--listen", &service]);
    std::fs::write(
        folder.path().join("cliffwatch.toml"),
        format!(
            "[source]\nbase_url = \"http://{service}\"\nlegacy_base_url = \"http://{service}\"\napi_key = \"none\"\n\
             [watch]\ntokens = [\"arbitrum\", \"aptos\"]\n[rules]\npaths = [\"rules.toml\"]\n[http]\nlisten = \"{daemon}\"\n\
             [schedule]\nunlock_events = \"*/2 * * * * *\"\n[budget]\nmonthly_credits = 100000\n\
             [[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:{}/\"\ndigest = {{ at = \"08:00\" }}\n\
             [route]\nreceivers = [\"ops\"]\n",
            free_port()
        ),
    )
    .expect("written");
    std::fs::write(folder.path().join("rules.toml"), "[[rule]]\nalert = \"Ahead\"\non = \"unlock\"\nwithin = [\"365d\"]\n")
        .expect("written");
    until("the data service responds", || async { page(&service, "*/*").await }).await;
    let _daemon = cliffwatch(folder.path(), &["run"]);
    until("the daemon responds", || async { page(&daemon, "*/*").await }).await;
    // Wait for metrics of polls and of an attempt, which fails because the port is closed.
    let notify = Command::new(env!("CARGO_BIN_EXE_cliffwatch")).args(["notify", "ops"]).current_dir(folder.path()).output();
    assert_eq!(notify.expect("it runs").status.code(), Some(1));
    let (kind, text) = until("the daemon has polled and tried to deliver", || async {
        let (kind, text) = page(&daemon, "*/*").await?;
        (text.contains("cliffwatch_polls_total{") && text.contains("cliffwatch_deliveries_total{")).then_some((kind, text))
    })
    .await;
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(complaints(&text), "", "{text}");
    let (kind, text) = page(&service, "*/*").await.expect("a page");
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    assert_eq!(complaints(&text), "", "{text}");
}

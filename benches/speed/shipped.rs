//! Compares the release binary with `curl --parallel` over the same URLs: the processor time of a cycle in which every response is new,
//! and of one in which none changed. Then measures the time of a backtest over the bundled data.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use testkit::Database;

use crate::{
    cycle::config_text,
    measure::{line, ms, ratio},
    process::{Daemon, binary, processor_time},
    through::wait_for_responses,
    upstream::Upstream,
};

const TOKENS: usize = 2_000;
/// Cycles without changes. Their mean counts, since the kernel counts processor time in steps of 10 ms.
const CYCLES: u32 = 5;
/// The concurrency of curl and of the daemon, which has it as a default.
const PARALLEL: &str = "4";

pub fn run() -> anyhow::Result<()> {
    cliffwatch::source::install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(compare())
}

async fn compare() -> anyhow::Result<()> {
    let upstream = Upstream::start(TOKENS)?;
    let folder = tempfile::tempdir()?;
    let config = folder.path().join("shipped.toml");
    let text = config_text(&upstream.address, &Database::File(folder.path().join("shipped.db")), "http://127.0.0.1:9/hook")
        .replace("\"0 10 */6 * * *\"", "\"*/2 * * * * *\"")
        .replace("evaluate = \"* * * * * *\"", "evaluate = \"0 0 * * * *\"");
    fs::write(&config, text)?;

    let mut daemon = Daemon::start(&config, folder.path())?;
    let began = processor_time(daemon.id());
    wait_for_responses(&mut daemon, TOKENS, "fresh")?;
    let cold = processor_time(daemon.id()).saturating_sub(began);
    wait_for_responses(&mut daemon, TOKENS, "unchanged")?;
    upstream.paths().await?;
    let began = processor_time(daemon.id());
    for _ in 0..CYCLES {
        wait_for_responses(&mut daemon, TOKENS, "unchanged")?;
    }
    let steady = processor_time(daemon.id()).saturating_sub(began) / CYCLES;
    let mut paths = upstream.paths().await?;
    daemon.stop()?;
    paths.sort();
    paths.dedup();
    ensure!(paths.len() >= TOKENS, "only {} paths were polled", paths.len());

    let curl = curl(&upstream.address, &paths, folder.path())?;
    line("curl --parallel", &format!("{:.0} ms", ms(curl)), &format!("processor time for {} URLs", paths.len()));
    line(
        "a cycle without changes",
        &format!("{:.2} times", ratio(steady, curl)),
        &format!("{:.0} ms of processor time", ms(steady)),
    );
    line("the first cycle", &format!("{:.1} times", ratio(cold, curl)), &format!("{:.0} ms of processor time", ms(cold)));
    backtest(folder.path(), &config)
}

/// Returns the processor time of curl for one fetch of each path, the mean of several.
fn curl(address: &str, paths: &[String], folder: &Path) -> anyhow::Result<Duration> {
    let urls = folder.join("urls");
    let entries: Vec<String> = paths.iter().map(|path| format!("url = \"{address}{path}\"\noutput = \"/dev/null\"\n")).collect();
    fs::write(&urls, entries.concat())?;
    let mut spent = Duration::ZERO;
    for _ in 0..CYCLES {
        let mut child = Command::new("curl")
            .args(["--parallel", "--parallel-max", PARALLEL, "--silent", "--fail", "--config"])
            .arg(&urls)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start curl")?;
        // NOWAIT keeps the ended process, whose times stay readable until `wait`.
        waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
        spent += processor_time(child.id());
        ensure!(child.wait()?.success(), "curl failed");
    }
    Ok(spent / CYCLES)
}

fn backtest(folder: &Path, config: &Path) -> anyhow::Result<()> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let began = Instant::now();
    let status = binary()
        .args(["backtest", "--from", "2023-06-01", "--to", "2026-06-01", "--config"])
        .arg(config)
        .arg(data)
        .current_dir(folder)
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "the backtest failed");
    line("a backtest of three years, bundled data", &format!("{:.1} s", began.elapsed().as_secs_f64()), "");
    Ok(())
}

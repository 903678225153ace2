//! Tests the pages of the real binary in a real browser. `run.mjs` drives Chromium, `steps/*.mjs` contain the checks. The data are the
//! bundled schedules plus made-up tokens up to a total of 300, some with hostile names, one working receiver, and one that rejects.
//!
//! CI installs Chromium, Node, and the packages in `package.json`, and sets `CLIFFWATCH_TEST_EXTERNAL=1`, which makes a missing tool an
//! error. Without it, the test prints that it was skipped. `CLIFFWATCH_BROWSER_SHOTS=DIR` saves a screenshot of each page, and
//! `CLIFFWATCH_BROWSER_STEPS=word` runs only the steps whose file name contains that word.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed setup fails the test")]

mod world;

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use world::{TOKEN, World};

/// The time limit for all browser steps together.
const WAIT_TIMEOUT: Duration = Duration::from_secs(1_500);

/// Returns whether a required tool is missing, and prints which. Panics instead if CI requires the test.
fn is_tool_missing() -> bool {
    let find = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    };
    let missing = [
        (!find("chromium")).then_some("chromium is not installed: install the package chromium"),
        (!find("node")).then_some("node is not installed: install the package nodejs"),
        (!folder().join("node_modules/axe-core").is_dir()).then_some("axe-core is not installed: run npm ci in tests/browser"),
    ];
    let Some(what) = missing.into_iter().flatten().next() else { return false };
    let is_required = std::env::var_os("CLIFFWATCH_TEST_EXTERNAL").is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!is_required, "{what}");
    writeln!(std::io::stderr(), "SKIPPED the browser tests: {what}").ok();
    true
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser")
}

/// A child process that is killed on drop.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_work_in_a_browser() {
    if is_tool_missing() {
        return;
    }
    let world = World::start().await;
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_cliffwatch"));
    daemon.args(["run", "--config", "cliffwatch.toml"]).current_dir(world.folder.path());
    let _daemon = KillOnDrop(daemon.stdin(Stdio::null()).spawn().expect("the daemon starts"));
    world.until_settled().await;

    let mut browser = Command::new("node");
    browser.arg(folder().join("run.mjs")).env("CLIFFWATCH_BASE", world.base()).env("CLIFFWATCH_TOKEN", TOKEN);
    browser.env("CLIFFWATCH_CONTROL", world.control());
    let mut browser = KillOnDrop(browser.stdin(Stdio::null()).spawn().expect("node starts"));
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = browser.0.try_wait().expect("the status of node") {
            break status;
        }
        assert!(begun.elapsed() < WAIT_TIMEOUT, "the browser steps took longer than {WAIT_TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(status.success(), "a browser step failed: see the output above");
}

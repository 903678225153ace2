//! The pages of the real binary in a real browser: `run.mjs` drives it, `steps/*.mjs` say what is looked at. The world is the bundled
//! schedules, as many made-up tokens as make 300, some with hostile names, one receiver that works and one that refuses.
//!
//! The gate installs chromium, node and what is in `package.json`, and sets `CLIFFWATCH_TEST_EXTERNAL=1`, with which the test fails where
//! something is missing; without it the test says aloud that it is left out. `CLIFFWATCH_BROWSER_SHOTS=DIR` keeps a picture of each page,
//! `CLIFFWATCH_BROWSER_STEPS=word` runs the steps alone whose name has that word.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends")]

mod world;

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use world::{TOKEN, World};

/// How long the browser may take for everything.
const PATIENCE: Duration = Duration::from_secs(500);

/// Whether something that is needed is missing, which is said; the gate fails for it.
fn lacks() -> bool {
    let find = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    };
    let missing = [
        (!find("chromium")).then_some("there is no chromium: install the package chromium"),
        (!find("node")).then_some("there is no node: install the package nodejs"),
        (!folder().join("node_modules/axe-core").is_dir()).then_some("there is no playwright-core: run npm ci in tests/browser"),
    ];
    let Some(what) = missing.into_iter().flatten().next() else { return false };
    let is_required = std::env::var_os("CLIFFWATCH_TEST_EXTERNAL").is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!is_required, "{what}");
    writeln!(std::io::stderr(), "SKIPPED, NOT TESTED: {what}").ok();
    true
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser")
}

/// A child that ends with the test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_work_in_a_browser() {
    if lacks() {
        return;
    }
    let world = World::start().await;
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_cliffwatch"));
    daemon.args(["run", "--config", "cliffwatch.toml"]).current_dir(world.folder.path());
    let _daemon = Ending(daemon.stdin(Stdio::null()).spawn().expect("the daemon starts"));
    world.until_settled().await;

    let mut browser = Command::new("node");
    browser.arg(folder().join("run.mjs")).env("CLIFFWATCH_BASE", world.base()).env("CLIFFWATCH_TOKEN", TOKEN);
    browser.env("CLIFFWATCH_CONTROL", world.control());
    let mut browser = Ending(browser.stdin(Stdio::null()).spawn().expect("node starts"));
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = browser.0.try_wait().expect("node can be asked") {
            break status;
        }
        assert!(begun.elapsed() < PATIENCE, "the browser is not done after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(status.success(), "the browser found something: see above");
}

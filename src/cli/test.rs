//! `test [FILES]`: runs rule tests.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::{Exit, Invocation, OutputFormat, UsageError, print, shown};
use tools::ruletest::{self, TestOutcome, TestSetup, report};

/// Run rule tests
#[derive(Debug, Args)]
pub(super) struct TestArgs {
    /// Test files; default: tests/*.toml next to the rule files
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Run only tests whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// File for the results as JUnit XML, for build servers
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

pub(super) fn run(test: &TestArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    if invocation.format == OutputFormat::Csv {
        return Err(UsageError("test does not support --format csv: use table, json, or --junit FILE".to_owned()).into());
    }
    let (config, loaded) = invocation.load()?;
    let files = if test.files.is_empty() { ruletest::files_beside(&config, &loaded.base_dir) } else { test.files.clone() };
    if files.is_empty() {
        anyhow::bail!("no tests found next to the rules: add one to rules/tests/, or pass a file");
    }
    let setup = TestSetup { config: &config, base_dir: &loaded.base_dir, only: test.only.as_deref() };
    let mut file = None;
    let outcomes = ruletest::run(&files, &setup, |outcome| {
        if invocation.format != OutputFormat::Table {
            return;
        }
        if file.as_ref() != Some(&outcome.file) {
            // Ignore a closed pipe and continue with the tests.
            print::out(&format!("{}\n", shown(&outcome.file))).ok();
            file = Some(outcome.file.clone());
        }
        print::out(&indented(&report::plain(outcome))).ok();
    });
    if outcomes.is_empty() {
        anyhow::bail!(
            "no tests were run{}",
            test.only.as_ref().map_or_else(String::new, |only| format!(": no name contains {only:?}"))
        );
    }
    if let Some(path) = &test.junit {
        let xml = report::junit(&outcomes).context("cannot format the results as XML")?;
        std::fs::write(path, xml).with_context(|| format!("cannot write {}", shown(path)))?;
    }
    match invocation.format {
        OutputFormat::Json => print::out(&print::json(&outcomes.iter().map(as_json).collect::<Vec<_>>())?)?,
        _ => print::out(&format!("\n{}\n", report::summary(&outcomes)))?,
    }
    Ok(if outcomes.iter().all(TestOutcome::is_passed) { Exit::Done } else { Exit::Failed })
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn as_json(outcome: &TestOutcome) -> serde_json::Value {
    let failures: Vec<_> = outcome
        .failures
        .iter()
        .map(|failure| json!({"line": failure.line, "place": failure.place, "difference": failure.lines}))
        .collect();
    json!({
        "file": outcome.file,
        "line": outcome.line,
        "name": outcome.name,
        "passed": outcome.is_passed(),
        "seconds": outcome.took.as_secs_f64(),
        "failures": failures,
    })
}

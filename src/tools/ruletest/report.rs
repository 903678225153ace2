//! Formats outcomes for people, and as JUnit XML for build servers.

use std::fmt::Write as _;

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use model::phrase;
use model::text::{harmless, is_hostile};

use super::{TestFailure, TestOutcome};

/// Formats an outcome for people: one line if it passed, else the differences.
pub fn plain(outcome: &TestOutcome) -> String {
    let TestOutcome { file, line, name, failures, .. } = outcome;
    let name = harmless(name);
    if failures.is_empty() {
        return format!("ok      {name}\n");
    }
    let file = harmless(&file.display().to_string());
    let mut text = format!("FAILED  {name}\n        {file}:{line}\n");
    for failure in failures {
        let _ = writeln!(text, "    {} (line {}):", harmless(&failure.place), failure.line);
        for line in &failure.lines {
            // Hostile characters in values are already escaped. Replace any others, for example from rendered rule files.
            let line: String = line.chars().map(|c| if is_hostile(c) { '\u{fffd}' } else { c }).collect();
            let _ = writeln!(text, "      {line}");
        }
    }
    text
}

/// Formats the last line: the number of passed and failed tests.
pub fn summary(outcomes: &[TestOutcome]) -> String {
    let failed = outcomes.iter().filter(|outcome| !outcome.is_passed()).count();
    match failed {
        0 => format!("{} passed", phrase::count(outcomes.len(), "test")),
        _ => format!("{failed} of {} failed", phrase::count(outcomes.len(), "test")),
    }
}

/// Formats JUnit XML, with a suite for each file and a case for each test.
pub fn junit(outcomes: &[TestOutcome]) -> Result<String, SerializeError> {
    let mut report = Report::new("cliffwatch test");
    report.set_time(outcomes.iter().map(|outcome| outcome.took).sum());
    for of_file in outcomes.chunk_by(|a, b| a.file == b.file) {
        let Some(first) = of_file.first() else { continue };
        let file = first.file.display().to_string();
        let mut suite = TestSuite::new(file.as_str());
        suite.set_time(of_file.iter().map(|outcome| outcome.took).sum());
        suite.add_test_cases(of_file.iter().map(|outcome| case(outcome, &file)));
        report.add_test_suite(suite);
    }
    report.to_string()
}

/// Makes a test case. The format allows one failure, so its message is from the first failure and its text from all.
fn case(outcome: &TestOutcome, file: &str) -> TestCase {
    let mut status = TestCaseStatus::success();
    if let Some(first) = outcome.failures.first() {
        let heading = |failure: &TestFailure| format!("{} (line {})", failure.place, failure.line);
        let mut text = first.lines.join("\n");
        for failure in outcome.failures.iter().skip(1) {
            let _ = write!(text, "\n{}\n{}", heading(failure), failure.lines.join("\n"));
        }
        status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(heading(first)).set_type("difference").set_description(text);
    }
    let mut case = TestCase::new(outcome.name.as_str(), status);
    case.set_classname(file).set_time(outcome.took);
    case.extra.insert("file".into(), file.into());
    case.extra.insert("line".into(), outcome.line.to_string().into());
    case
}

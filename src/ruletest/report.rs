//! How tests ended: for people, and as the JUnit XML that build servers read.

use std::{fmt::Write as _, path::Path};

use crate::diagnostic::{harmless, is_harmful};

use super::Outcome;

/// One outcome for people: a line where it passed, what differs where it did not.
#[must_use]
pub fn plain(outcome: &Outcome) -> String {
    let Outcome { file, line, name, failures, .. } = outcome;
    let name = harmless(name);
    if failures.is_empty() {
        return format!("ok      {name}\n");
    }
    let file = harmless(&file.display().to_string());
    let mut text = format!("FAILED  {name}\n        {file}:{line}\n");
    for failure in failures {
        let _ = writeln!(text, "    {} (line {}):", harmless(&failure.place), failure.line);
        for line in &failure.lines {
            // The lines were made harmless where they were made; control codes of rendered files never reach them.
            let line: String = line.chars().map(|c| if is_harmful(c) { '\u{fffd}' } else { c }).collect();
            let _ = writeln!(text, "      {line}");
        }
    }
    text
}

/// The last line: how many passed.
#[must_use]
pub fn summary(outcomes: &[Outcome]) -> String {
    let failed = outcomes.iter().filter(|outcome| !outcome.is_passed()).count();
    let count = |number: usize, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
    match failed {
        0 => format!("{} passed", count(outcomes.len(), "test")),
        _ => format!("{failed} of {} failed", count(outcomes.len(), "test")),
    }
}

/// JUnit XML: a suite for each file, a case for each test.
#[must_use]
pub fn junit(outcomes: &[Outcome]) -> String {
    let seconds = |outcomes: &[&Outcome]| outcomes.iter().map(|outcome| outcome.took.as_secs_f64()).sum::<f64>();
    let failed = |outcomes: &[&Outcome]| outcomes.iter().filter(|outcome| !outcome.is_passed()).count();
    let all: Vec<&Outcome> = outcomes.iter().collect();
    let mut files: Vec<&Path> = outcomes.iter().map(|outcome| outcome.file.as_path()).collect();
    files.dedup();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"cliffwatch test\" tests=\"{}\" failures=\"{}\" time=\"{:.3}\">\n",
        all.len(),
        failed(&all),
        seconds(&all)
    );
    for file in files {
        let own: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.file == file).collect();
        let name = escaped(&file.display().to_string());
        let _ = writeln!(
            text,
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\" time=\"{:.3}\">",
            own.len(),
            failed(&own),
            seconds(&own)
        );
        for outcome in own {
            let case = format!(
                "    <testcase classname=\"{name}\" name=\"{}\" file=\"{name}\" line=\"{}\" time=\"{:.3}\"",
                escaped(&outcome.name),
                outcome.line,
                outcome.took.as_secs_f64()
            );
            if outcome.is_passed() {
                let _ = writeln!(text, "{case}/>");
                continue;
            }
            let _ = writeln!(text, "{case}>");
            for failure in &outcome.failures {
                let _ = writeln!(
                    text,
                    "      <failure message=\"{}\" type=\"difference\">{}</failure>",
                    escaped(&format!("{} (line {})", failure.place, failure.line)),
                    escaped(&failure.lines.join("\n"))
                );
            }
            text.push_str("    </testcase>\n");
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

/// A text within XML. What XML 1.0 cannot hold at all is replaced.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

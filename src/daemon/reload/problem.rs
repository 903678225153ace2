//! The errors of a reload, in full and in brief, with the owners of the rules.

use std::{collections::HashSet, fmt::Write as _, path::Path};

use model::{Diagnostic, DiagnosticLevel, SourceText, diagnostic, position, text::harmless};
use rules::RuleSet;
use tools::ruletest::{TestOutcome, report};

/// The maximum number of errors in an alert. The log has all of them.
const MAX_REPORTED: usize = 5;

/// The reason why changed files do not become active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadProblem {
    pub count: u32,
    /// All errors with lines and carets, for the log and the status page.
    pub full: String,
    /// The first errors, one per line: `rules/unlocks.toml:12:10: …`.
    pub brief: String,
    /// The distinct `owner` values of the affected rules.
    pub owners: Vec<String>,
}

impl ReloadProblem {
    /// Errors that were found while building from the config.
    pub fn of_parts(file: Option<&Path>, problems: &[String]) -> Self {
        let count = u32::try_from(problems.len()).unwrap_or(u32::MAX);
        let file = file.map_or_else(|| "the config".to_owned(), |file| file.display().to_string());
        let line = |problem: &String| format!("{file}: {}\n", harmless(problem));
        let full: String = problems.iter().map(|problem| format!("error: {}", line(problem))).collect();
        let mut brief: String = problems.iter().take(MAX_REPORTED).map(line).collect();
        more(&mut brief, problems.len());
        Self { count, full, brief: brief.trim_end().to_owned(), owners: Vec::new() }
    }

    /// Returns `None` if there are only warnings.
    pub(super) fn of_files(diagnostics: &[Diagnostic], texts: &[SourceText]) -> Option<Self> {
        let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|problem| problem.severity == DiagnosticLevel::Error).collect();
        if errors.is_empty() {
            return None;
        }
        let mut brief = String::new();
        let mut owners: Vec<String> = Vec::new();
        for (index, error) in errors.iter().enumerate() {
            let text = texts.iter().find(|source| source.file == error.file).map(|source| source.text.as_str());
            if let (Some(text), Some(span)) = (text, &error.span)
                && let Some(owner) = owner_at(text, span.start)
                && !owners.contains(&owner)
            {
                owners.push(owner);
            }
            if index >= MAX_REPORTED {
                continue;
            }
            let location = match (text, &error.span) {
                (Some(text), Some(span)) => {
                    let at = position(text, span);
                    format!(":{}:{}", at.line, at.column)
                }
                _ => String::new(),
            };
            let help = error.help.as_deref().map(|help| format!(" ({help})")).unwrap_or_default();
            let _ = writeln!(brief, "{}{location}: {}{help}", error.file.display(), error.message);
        }
        more(&mut brief, errors.len());
        let count = u32::try_from(errors.len()).unwrap_or(u32::MAX);
        Some(Self { count, full: diagnostic::render(diagnostics, texts, false), brief: brief.trim_end().to_owned(), owners })
    }

    /// Returns `None` if all tests pass.
    pub(super) fn of_tests(outcomes: &[TestOutcome], rules: &RuleSet) -> Option<Self> {
        let failed: Vec<&TestOutcome> = outcomes.iter().filter(|outcome| !outcome.is_passed()).collect();
        if failed.is_empty() {
            return None;
        }
        let mut brief = String::new();
        for outcome in failed.iter().take(MAX_REPORTED) {
            let line = outcome.failures.first().map_or(outcome.line, |failure| failure.line);
            let _ = writeln!(brief, "{}:{line}: the test fails: {}", outcome.file.display(), harmless(&outcome.name));
        }
        more(&mut brief, failed.len());
        let full: String = failed.iter().map(|outcome| report::plain(outcome)).collect();
        // The owners of the rules that the failures mention.
        let words: HashSet<&str> = full.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').collect();
        let mut owners: Vec<String> =
            rules.rules.iter().filter(|rule| words.contains(rule.name.as_str())).filter_map(|rule| rule.owner.clone()).collect();
        owners.sort();
        owners.dedup();
        let count = u32::try_from(failed.len()).unwrap_or(u32::MAX);
        Some(Self { count, full, brief: brief.trim_end().to_owned(), owners })
    }
}

fn more(brief: &mut String, count: usize) {
    if count > MAX_REPORTED {
        let _ = writeln!(brief, "and {} more", count - MAX_REPORTED);
    }
}

/// Returns the `owner` of the rule around an offset. Reads lines, because the file may not be valid TOML.
fn owner_at(text: &str, offset: usize) -> Option<String> {
    rules::rule_table_at(text, offset)?.lines().find_map(|line| {
        let value = line.trim().strip_prefix("owner")?.trim_start().strip_prefix('=')?.trim();
        let owner = value.trim_matches(['"', '\'']);
        (!owner.is_empty()).then(|| owner.chars().filter(|c| !c.is_control()).take(200).collect())
    })
}

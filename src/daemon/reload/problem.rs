//! Why changed files are not put to work: every problem in full, the first ones in brief, and whose rules they concern.

use std::{collections::HashSet, fmt::Write as _, path::Path};

use model::{Diagnostic, Severity, SourceText, diagnostic, position, text::harmless};
use rules::RuleSet;
use tools::ruletest::{TestOutcome, report};

/// Problems whose places are named in an alert; all are in the log.
const MAX_TOLD: usize = 5;

/// Why changed rules are not put to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadProblem {
    pub count: u32,
    /// All of it, with lines and carets, for the log and the status page.
    pub full: String,
    /// Place and words of the first ones, a line each: `rules/unlocks.toml:12:10: …`.
    pub brief: String,
    /// `owner` of the rules concerned, each once.
    pub owners: Vec<String>,
}

impl ReloadProblem {
    /// What a config or a receiver cannot be built from.
    pub fn of_parts(file: Option<&Path>, problems: &[String]) -> Self {
        let count = u32::try_from(problems.len()).unwrap_or(u32::MAX);
        let file = file.map_or_else(|| "the config".to_owned(), |file| file.display().to_string());
        let line = |problem: &String| format!("{file}: {}\n", harmless(problem));
        let full: String = problems.iter().map(|problem| format!("error: {}", line(problem))).collect();
        let mut brief: String = problems.iter().take(MAX_TOLD).map(line).collect();
        more(&mut brief, problems.len());
        Self { count, full, brief: brief.trim_end().to_owned(), owners: Vec::new() }
    }

    /// The errors of files; none where there are only warnings.
    pub(super) fn of_files(diagnostics: &[Diagnostic], texts: &[SourceText]) -> Option<Self> {
        let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|problem| problem.severity == Severity::Error).collect();
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
            if index >= MAX_TOLD {
                continue;
            }
            let place = match (text, &error.span) {
                (Some(text), Some(span)) => {
                    let at = position(text, span);
                    format!(":{}:{}", at.line, at.column)
                }
                _ => String::new(),
            };
            let help = error.help.as_deref().map(|help| format!(" ({help})")).unwrap_or_default();
            let _ = writeln!(brief, "{}{place}: {}{help}", error.file.display(), error.message);
        }
        more(&mut brief, errors.len());
        let count = u32::try_from(errors.len()).unwrap_or(u32::MAX);
        Some(Self { count, full: diagnostic::render(diagnostics, texts, false), brief: brief.trim_end().to_owned(), owners })
    }

    /// The tests that fail; none where all pass.
    pub(super) fn of_tests(outcomes: &[TestOutcome], rules: &RuleSet) -> Option<Self> {
        let failed: Vec<&TestOutcome> = outcomes.iter().filter(|outcome| !outcome.is_passed()).collect();
        if failed.is_empty() {
            return None;
        }
        let mut brief = String::new();
        for outcome in failed.iter().take(MAX_TOLD) {
            let line = outcome.failures.first().map_or(outcome.line, |failure| failure.line);
            let _ = writeln!(brief, "{}:{line}: the test fails: {}", outcome.file.display(), harmless(&outcome.name));
        }
        more(&mut brief, failed.len());
        let full: String = failed.iter().map(|outcome| report::plain(outcome)).collect();
        // Of the rules that a failing test speaks of.
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
    if count > MAX_TOLD {
        let _ = writeln!(brief, "and {} more", count - MAX_TOLD);
    }
}

/// `owner` of the rule around a place. The file may not be readable as TOML, so its lines are looked at.
fn owner_at(text: &str, offset: usize) -> Option<String> {
    const HEAD: &str = "[[rule]]";
    let offset = text.floor_char_boundary(offset);
    // A place may be the head itself.
    let start = text.get(..text.floor_char_boundary(offset.saturating_add(HEAD.len())))?.rfind(HEAD)?;
    let rest = text.get(start + HEAD.len()..)?;
    let rule = rest.find(HEAD).and_then(|end| rest.get(..end)).unwrap_or(rest);
    rule.lines().find_map(|line| {
        let value = line.trim().strip_prefix("owner")?.trim_start().strip_prefix('=')?.trim();
        let owner = value.trim_matches(['"', '\'']);
        (!owner.is_empty()).then(|| owner.chars().filter(|c| !c.is_control()).take(200).collect())
    })
}

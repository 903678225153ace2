//! Loads rule files: parses them into spanned trees, checks them, and returns a [`RuleSet`] with the problems of all files.
//!
//! [`read_files`] is the only function that reads the disk. [`load`] takes texts and the names that rules can refer to. Every
//! problem comes with its location, its cause, and a suggestion. Nothing is guessed.

mod duplicates;
mod files;
mod filters;
mod keys;
mod locations;
mod rule;
mod sections;
mod templates;
mod values;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use toml::de::DeTable;

use model::{Diagnostic, DiagnosticLevel, LineIndex, RuleId, SourceText, Timestamp, closest};

use super::{finding::Finding, rule::Rule, set::RuleSet, template::TemplateEngine};

use duplicates::RuleSubject;
pub use files::{RuleFiles, is_rule_file, read_files};
use values::LocatedText;

/// The maximum number of rules in all files.
const MAX_RULES: usize = 5_000;

/// The maximum number of levels of a rule, lead times of a rule, and labels or annotations in one table.
const MAX_ITEMS: usize = 64;

/// The maximum length of a name, in characters.
const MAX_NAME: usize = 200;

pub const RULE_KEYS: [&str; 21] = [
    "alert",
    "id",
    "on",
    "when",
    "clear_when",
    "within",
    "since",
    "for",
    "keep_firing_for",
    "missing",
    "tokens",
    "listed_methods",
    "allocations",
    "limit",
    "labels",
    "annotations",
    "receivers",
    "enabled",
    "owner",
    "expires",
    "level",
];

pub const LEVEL_KEYS: [&str; 3] = ["when", "labels", "annotations"];

/// The names that rules can refer to.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    pub receivers: &'a [String],
    /// `[watch.groups]`: slugs or globs by group name.
    pub groups: &'a BTreeMap<String, Vec<String>>,
    /// The time that `expires` is compared with.
    pub now: Timestamp,
}

/// The rules of all files, with their problems.
#[derive(Debug)]
pub struct LoadedRules {
    /// Usable only if no diagnostic is an error.
    pub set: RuleSet,
    /// The problems of all files, sorted by file and position, and then the warnings about duplicate rules.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts of the files, to quote lines in diagnostics.
    pub sources: Vec<SourceText>,
    /// The number of valid rules, enabled or not.
    pub defined: usize,
}

impl LoadedRules {
    /// Returns an error if the files contain no rule. `paths` are the globs of `[rules] paths`; without a glob, no rules are expected.
    #[must_use]
    pub fn missing(&self, paths: &[String]) -> Option<Diagnostic> {
        let first = paths.first().filter(|_| self.defined == 0 && self.is_usable())?;
        let error = Diagnostic::error(first, None, "no rules found, so nothing would be reported");
        Some(error.help("`cliffwatch init` writes starter rules; to run without rules, set `paths = []` in `[rules]`"))
    }

    /// Returns `true` if there are no errors.
    pub fn is_usable(&self) -> bool {
        self.diagnostics.iter().all(|diagnostic| diagnostic.severity != DiagnosticLevel::Error)
    }
}

pub fn load(files: &[SourceText], around: &Surroundings<'_>) -> LoadedRules {
    let engine = TemplateEngine::new();
    let mut diagnostics = Vec::new();
    let mut rules: Vec<Rule> = Vec::new();
    let mut subjects: Vec<RuleSubject> = Vec::new();
    let mut seen: HashMap<RuleId, String> = HashMap::new();
    for file in files {
        let mut reader = RuleReader { file, around, engine: &engine, diagnostics: &mut diagnostics };
        let (root, errors) = DeTable::parse_recoverable(&file.text);
        if !errors.is_empty() {
            let broken = reader.broken_file(&errors);
            diagnostics.extend(broken);
            continue;
        }
        let first = reader.diagnostics.len();
        reader.file(root.get_ref(), &mut rules, &mut subjects, &mut seen);
        if let Some(own) = diagnostics.get_mut(first..) {
            own.sort_by_key(|diagnostic| diagnostic.span.as_ref().map_or(0, |span| span.start));
        }
    }
    diagnostics.extend(duplicates::duplicates(&rules, &subjects));
    LoadedRules { set: RuleSet::of(rules), diagnostics, sources: files.to_vec(), defined: seen.len() }
}

struct RuleReader<'r> {
    file: &'r SourceText,
    around: &'r Surroundings<'r>,
    engine: &'r Arc<TemplateEngine>,
    diagnostics: &'r mut Vec<Diagnostic>,
}

impl RuleReader<'_> {
    fn problem(&mut self, span: Option<Range<usize>>, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(&self.file.file, span, message));
    }

    fn reject(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(&self.file.file, Some(span), message).help(help));
    }

    fn warn(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics.push(Diagnostic::warning(&self.file.file, Some(span), message).help(help));
    }

    /// Reports findings about a text at their positions in the file.
    fn report(&mut self, text: &LocatedText, findings: Vec<Finding>) {
        for finding in findings {
            self.diagnostics.push(Diagnostic {
                severity: if finding.is_error { DiagnosticLevel::Error } else { DiagnosticLevel::Warning },
                file: self.file.file.clone(),
                span: Some(finding.span.map_or_else(|| text.span.clone(), |inner| text.locate(inner))),
                message: finding.message,
                label: finding.label,
                help: finding.help,
            });
        }
    }

    /// Returns the problems of a file with TOML syntax errors. Each rule is parsed separately, so that one syntax error hides no
    /// problem in the other rules. The rules are discarded.
    fn broken_file(&self, errors: &[toml::de::Error]) -> Vec<Diagnostic> {
        let syntax_problem = |error: &toml::de::Error, offset: usize| {
            let span = error.span().map(|span| offset + span.start..offset + span.end);
            Diagnostic::error(&self.file.file, span, error.message().trim().to_owned())
        };
        let parts = sections::of(&self.file.text);
        let mut problems = Vec::new();
        let mut is_placed = false;
        for part in &parts {
            let text = self.file.text.get(part.clone()).unwrap_or_default();
            let (root, errors) = DeTable::parse_recoverable(text);
            if !errors.is_empty() {
                is_placed = true;
                problems.extend(errors.iter().map(|error| syntax_problem(error, part.start)));
                continue;
            }
            let source = SourceText { file: self.file.file.clone(), text: text.to_owned() };
            let mut found = Vec::new();
            let mut reader = RuleReader { file: &source, around: self.around, engine: self.engine, diagnostics: &mut found };
            reader.file(root.get_ref(), &mut Vec::new(), &mut Vec::new(), &mut HashMap::new());
            problems.extend(found.into_iter().map(|mut problem| {
                problem.span = problem.span.map(|span| part.start + span.start..part.start + span.end);
                problem
            }));
        }
        // Each rule is valid alone, so the error is in the combination.
        if !is_placed {
            problems.extend(errors.iter().map(|error| syntax_problem(error, 0)));
        }
        problems.sort_by_key(|problem| problem.span.as_ref().map_or(0, |span| span.start));
        problems
    }

    fn file(
        &mut self,
        root: &DeTable<'_>,
        rules: &mut Vec<Rule>,
        subjects: &mut Vec<RuleSubject>,
        seen: &mut HashMap<RuleId, String>,
    ) {
        for (key, value) in root {
            let name = key.get_ref().as_ref();
            if name == "rule" {
                continue;
            }
            let help = if RULE_KEYS.contains(&name) {
                "keys of a rule belong below a `[[rule]]` line".to_owned()
            } else if closest(name, ["rule"]).is_some() && (value.get_ref().is_array() || value.get_ref().is_table()) {
                "did you mean `[[rule]]`?".to_owned()
            } else {
                "a rule file contains only `[[rule]]` tables".to_owned()
            };
            self.reject(key.span(), format!("unknown key `{name}`"), help);
        }
        let Some(value) = root.get("rule") else { return };
        let Some(list) = value.get_ref().as_array() else {
            return self.reject(value.span(), "`rule` must be a list of tables", "write `[[rule]]` with two brackets");
        };
        let lines = LineIndex::of(&self.file.text);
        for (index, item) in list.iter().enumerate() {
            let Some(table) = item.get_ref().as_table() else {
                self.reject(item.span(), "a rule must be a table", "write `[[rule]]`, and below it `alert = …`, `on = …`");
                continue;
            };
            // Invalid rules count too, because checking them costs as much.
            if rules.len().max(index) >= MAX_RULES {
                self.reject(
                    item.span(),
                    format!("there are more than {MAX_RULES} rules"),
                    "merge rules that differ only in tokens: `tokens` accepts globs and groups",
                );
                return;
            }
            let before = self.errors();
            let Some((rule, named, is_enabled)) = self.rule(table, item.span()) else {
                continue;
            };
            let here = format!("{}:{}", self.file.file.display(), lines.line(named.start));
            if let Some(first) = seen.get(&rule.id) {
                let message = format!("duplicate rule `{}`, first defined at {first}", rule.id);
                self.reject(named, message, "rename one of them, or give it its own `id`");
                continue;
            }
            seen.insert(rule.id.clone(), here);
            if is_enabled && self.errors() == before {
                rules.push(rule);
                subjects.push(RuleSubject::of(table));
            }
        }
    }

    fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == DiagnosticLevel::Error).count()
    }
}

/// Returns the `[[rule]]` table around a byte offset, up to the next table. Reads text, because the file may not be valid TOML. `None` if no
/// table begins before the offset.
#[must_use]
pub fn rule_table_at(text: &str, offset: usize) -> Option<&str> {
    const HEADER: &str = "[[rule]]";
    let header_end = text.floor_char_boundary(offset.saturating_add(HEADER.len()));
    let start = text.get(..header_end)?.rfind(HEADER)?;
    let rest = text.get(start..)?;
    let end = rest.get(HEADER.len()..)?.find("\n[[rule]]").map_or(rest.len(), |end| HEADER.len() + end);
    rest.get(..end)
}

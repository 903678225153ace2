//! Rule files: text to spanned tree to [`RuleSet`], with every problem of every file reported together.
//!
//! [`read_files`] is the only place that touches the disk; [`load`] takes texts and the names around them. Whatever an operator can
//! get wrong is answered with its place, what is wrong, and what was probably meant; nothing is guessed.

mod files;
mod filters;
mod keys;
mod parts;
mod places;
mod rule;
mod templates;
mod twins;
mod values;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use toml::de::DeTable;

use model::{Diagnostic, LineIndex, RuleId, Severity, SourceText, Timestamp, closest};

use super::{finding::Finding, rule::Rule, set::RuleSet, template::TemplateEngine};

pub use files::{RuleFiles, read_files};
use twins::RuleSubject;
use values::PlacedText;

/// Rules of all files.
const MAX_RULES: usize = 5_000;

/// Levels of one rule; lead times of one rule; labels or annotations of one table.
const MAX_ITEMS: usize = 64;

/// Characters of a name.
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

/// What rules may refer to.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    pub receivers: &'a [String],
    /// `[watch.groups]`: slugs or globs by name.
    pub groups: &'a BTreeMap<String, Vec<String>>,
    /// Against which `expires` is measured.
    pub now: Timestamp,
}

/// What came of a load.
#[derive(Debug)]
pub struct LoadedRules {
    /// The rules; usable only where no diagnostic is an error.
    pub set: RuleSet,
    /// All problems of all files, in their order.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts, for showing lines of them.
    pub sources: Vec<SourceText>,
}

impl LoadedRules {
    /// Whether the rules can be used.
    pub fn is_usable(&self) -> bool {
        self.diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error)
    }
}

/// Checks rule files and makes their rules.
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
            // In the order of the file, as a person goes through it.
            own.sort_by_key(|diagnostic| diagnostic.span.as_ref().map_or(0, |span| span.start));
        }
    }
    diagnostics.extend(twins::twins(&rules, &subjects));
    LoadedRules { set: RuleSet::of(rules), diagnostics, sources: files.to_vec() }
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

    fn refuse(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(&self.file.file, Some(span), message).help(help));
    }

    fn warn(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics.push(Diagnostic::warning(&self.file.file, Some(span), message).help(help));
    }

    /// What was found in a text, at its place in the file.
    fn report(&mut self, text: &PlacedText, findings: Vec<Finding>) {
        for finding in findings {
            self.diagnostics.push(Diagnostic {
                severity: if finding.is_error { Severity::Error } else { Severity::Warning },
                file: self.file.file.clone(),
                span: Some(finding.span.map_or_else(|| text.span.clone(), |inner| text.place(inner))),
                message: finding.message,
                label: finding.label,
                help: finding.help,
            });
        }
    }

    /// What is wrong with a file that is no TOML as a whole: each rule is read by itself, so that one slip hides no mistake in the
    /// others. None of its rules is used.
    fn broken_file(&self, errors: &[toml::de::Error]) -> Vec<Diagnostic> {
        let told = |error: &toml::de::Error, offset: usize| {
            let span = error.span().map(|span| offset + span.start..offset + span.end);
            Diagnostic::error(&self.file.file, span, error.message().trim().to_owned())
        };
        let parts = parts::of(&self.file.text);
        let mut problems = Vec::new();
        let mut is_placed = false;
        for part in &parts {
            let text = self.file.text.get(part.clone()).unwrap_or_default();
            let (root, errors) = DeTable::parse_recoverable(text);
            if !errors.is_empty() {
                is_placed = true;
                problems.extend(errors.iter().map(|error| told(error, part.start)));
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
        // Each part is right by itself: what is wrong is how they stand together.
        if !is_placed {
            problems.extend(errors.iter().map(|error| told(error, 0)));
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
                "keys of a rule stand below a line `[[rule]]`".to_owned()
            } else if closest(name, ["rule"]).is_some() && (value.get_ref().is_array() || value.get_ref().is_table()) {
                "did you mean `[[rule]]`?".to_owned()
            } else {
                "a rule file holds `[[rule]]` tables and nothing else".to_owned()
            };
            self.refuse(key.span(), format!("unknown key `{name}`"), help);
        }
        let Some(value) = root.get("rule") else { return };
        let Some(list) = value.get_ref().as_array() else {
            return self.refuse(value.span(), "`rule` is a list of tables", "write `[[rule]]` with two brackets");
        };
        let lines = LineIndex::of(&self.file.text);
        for (index, item) in list.iter().enumerate() {
            let Some(table) = item.get_ref().as_table() else {
                self.refuse(item.span(), "a rule is a table", "write `[[rule]]`, and below it `alert = …`, `on = …`");
                continue;
            };
            // Those that are wrong count too: what is said of each costs as much as the rule.
            if rules.len().max(index) >= MAX_RULES {
                self.refuse(
                    item.span(),
                    format!("there are more than {MAX_RULES} rules"),
                    "join rules that differ only in tokens: `tokens` takes globs and groups",
                );
                return;
            }
            let before = self.errors();
            let Some((rule, named, is_enabled)) = self.rule(table, item.span()) else {
                continue;
            };
            let here = format!("{}:{}", self.file.file.display(), lines.line(named.start));
            if let Some(first) = seen.get(&rule.id) {
                let message = format!("there is a rule `{}` already, at {first}", rule.id);
                self.refuse(named, message, "give one of them another `alert` name, or an `id` of its own");
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
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count()
    }
}

//! The language of names, comments, messages, pages, and docs.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::tidy::project::{Finding, SourceFile};

/// `language.toml`: what must not be written, each with what to write instead.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Language {
    /// Words that no identifier contains.
    identifiers: BTreeMap<String, String>,
    /// Patterns that no comment, message, page, or document contains.
    phrases: BTreeMap<String, String>,
    /// Patterns with which no doc comment begins.
    openings: BTreeMap<String, String>,
    /// Patterns with which no test name begins.
    test_names: BTreeMap<String, String>,
}

/// Patterns compiled into one, which is much faster than one search for each.
struct Patterns<'a> {
    all: Regex,
    single: Vec<(Regex, &'a str)>,
}

impl<'a> Patterns<'a> {
    /// `around` is the pattern that each is wrapped in, with `{}` in its place. Case is ignored.
    fn new(table: &'a BTreeMap<String, String>, around: &str) -> Self {
        let compile = |pattern: &str| {
            // ASCII word boundaries: the Unicode ones make the search thirty times slower.
            let pattern = around.replace("{}", &format!("(?:{pattern})")).replace(r"\b", r"(?-u:\b)");
            RegexBuilder::new(&pattern).case_insensitive(true).size_limit(1 << 26).build().unwrap()
        };
        let all = compile(&table.keys().cloned().collect::<Vec<_>>().join("|"));
        Self { all, single: table.iter().map(|(pattern, advice)| (compile(pattern), advice.as_str())).collect() }
    }

    /// Returns all matches in `text` with the advice for each.
    fn find<'t>(&self, text: &'t str) -> Vec<(&'t str, &'a str)> {
        let advice =
            |found: &str| self.single.iter().find(|(pattern, _)| pattern.is_match(found)).map_or("", |(_, advice)| *advice);
        self.all.find_iter(text).map(|found| (found.as_str(), advice(found.as_str()))).collect()
    }
}

impl Language {
    pub fn load() -> Self {
        toml::from_str(include_str!("language.toml")).unwrap()
    }

    pub fn phrases(&self, project: &[SourceFile]) -> Vec<Finding> {
        let patterns = Patterns::new(&self.phrases, r"\b{}\b");
        let mut findings = Vec::new();
        for file in project {
            let docs = file
                .rust
                .iter()
                .flat_map(|rust| &rust.docs)
                .map(|doc| (doc.line, crate::tidy::prose::Prose::new(doc.line, &doc.text).text));
            for (line, text) in file.prose.iter().map(|prose| (prose.line, prose.text.clone())).chain(docs) {
                for (found, advice) in patterns.find(&text) {
                    let text = format!("[{found}] {}", excerpt(&text, found));
                    findings.push(Finding { path: file.path.clone(), line, text, advice: advice.to_owned() });
                }
            }
        }
        findings
    }

    pub fn openings(&self, project: &[SourceFile]) -> Vec<Finding> {
        let patterns = Patterns::new(&self.openings, r"^{}\b");
        let mut findings = Vec::new();
        for file in project {
            for doc in file.rust.iter().flat_map(|rust| &rust.docs) {
                for (_, advice) in patterns.find(&doc.text) {
                    let text = excerpt(&doc.text, "").to_owned();
                    findings.push(Finding { path: file.path.clone(), line: doc.line, text, advice: advice.to_owned() });
                }
            }
        }
        findings
    }

    pub fn identifiers(&self, project: &[SourceFile]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for file in project {
            let mut check = |line: usize, name: &str| {
                if let Some(advice) = words(name).iter().find_map(|word| self.identifiers.get(word)) {
                    let advice = format!("use {advice}");
                    findings.push(Finding { path: file.path.clone(), line, text: name.to_owned(), advice });
                }
            };
            for definition in file.rust.iter().flat_map(|rust| &rust.definitions) {
                check(definition.line, &definition.name);
            }
            if file.path.ends_with(".sql") {
                for (number, line) in file.text.lines().enumerate() {
                    let code = line.split("--").next().unwrap_or_default();
                    code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').for_each(|word| check(number + 1, word));
                }
            }
        }
        findings
    }

    pub fn test_names(&self, project: &[SourceFile]) -> Vec<Finding> {
        let patterns = Patterns::new(&self.test_names, "^{}");
        let mut findings = Vec::new();
        for file in project {
            for test in file.rust.iter().flat_map(|rust| &rust.functions).filter(|function| function.is_test) {
                for (_, advice) in patterns.find(&test.name) {
                    let advice = advice.to_owned();
                    findings.push(Finding { path: file.path.clone(), line: test.line, text: test.name.clone(), advice });
                }
            }
        }
        findings
    }
}

/// Doc comments of at most three words that only repeat words of the name.
pub fn short_docs(project: &[SourceFile]) -> Vec<Finding> {
    const FILLERS: [&str; 8] = ["a", "an", "the", "of", "its", "their", "this", "all"];
    let mut findings = Vec::new();
    for file in project {
        for doc in file.rust.iter().flat_map(|rust| &rust.docs) {
            let said: Vec<String> = doc
                .text
                .split_whitespace()
                .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
                .collect();
            let name = words(&doc.name);
            let repeats = |word: &String| {
                FILLERS.contains(&word.as_str())
                    || name.iter().any(|part| word.trim_end_matches('s') == part.trim_end_matches('s'))
            };
            if said.len() <= 3 && !doc.text.contains('`') && said.iter().all(repeats) {
                let advice = "delete it, or say what the name does not".to_owned();
                findings.push(Finding {
                    path: file.path.clone(),
                    line: doc.line,
                    text: format!("{} ({})", doc.text, doc.name),
                    advice,
                });
            }
        }
    }
    findings
}

/// The words of an identifier in lowercase: `ReceiverName` and `receiver_name` both have two.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lowercase = false;
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && was_lowercase) {
            words.push(String::new());
        }
        was_lowercase = c.is_lowercase();
        if let (true, Some(word)) = (c != '_', words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// Some text around a match.
fn excerpt<'t>(text: &'t str, found: &str) -> &'t str {
    let at = text.find(found).unwrap_or_default();
    let start = text[..at].char_indices().rev().nth(40).map_or(0, |(start, _)| start);
    let end = text[at..].char_indices().nth(80).map_or(text.len(), |(end, _)| at + end);
    text[start..end].trim()
}

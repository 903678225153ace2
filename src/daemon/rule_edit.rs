//! Saves a rule that was made on the pages, in a file of its own next to the other rules, after `check` and its test.
//!
//! [`prepare`] makes the files and checks them together with all other rules; it writes nothing. [`PreparedRule::save`] writes them and
//! [`PreparedRule::withdraw`] restores the files from before, if a reload rejects them.
//!
//! Guarantee: only files whose name starts with [`PREFIX`] are written, and never over a file that was not written here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::has_errors;
use model::config::Config;
use model::text::harmless;
use model::{Diagnostic, SourceText, Timestamp, phrase};
use tools::new_rule::{self, GeneratedRule, RuleRequest};
use tools::ruletest::{self, TestOutcome, TestSetup};

/// The start of the name of each saved file.
pub const PREFIX: &str = "page-";

/// The start of each saved file. The author and the time follow.
const MARK: &str = "# Saved on the pages by ";

/// A rule that can be saved.
#[derive(Clone, Debug)]
pub struct PreparedRule {
    /// The rule without the lines above it, to copy.
    pub rule: String,
    /// The effect of the rule in one sentence. `None` if it has errors.
    pub sentence: Option<String>,
    pub file: PreparedFile,
    pub test: PreparedFile,
    /// The problems of the rule, in its file.
    pub diagnostics: Vec<Diagnostic>,
    /// The outcomes of its test. Empty if the rule has errors.
    pub outcomes: Vec<TestOutcome>,
}

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedFile {
    pub path: PathBuf,
    pub text: String,
    /// The current text. `None` if there is no file.
    pub before: Option<String>,
}

/// The reason why a rule was not saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    #[error("the rule has errors")]
    Invalid,
    #[error("the test of the rule failed")]
    TestFailed,
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Makes the files of a rule, and checks them. `others` are the texts of all rule files.
///
/// # Errors
///
/// Fails if no file next to the other rules matches `[rules] paths`, or if another file has the name or cannot be read.
pub fn prepare(
    request: &RuleRequest,
    others: &[SourceText],
    config: &Config,
    base_dir: &Path,
    now: Timestamp,
) -> Result<PreparedRule, String> {
    let folder = base_dir.join(new_rule::folder_of(&config.rules.paths));
    let name = format!("{PREFIX}{}.toml", request.name.to_lowercase());
    let path = folder.join(&name);
    if !rules::is_rule_file(&path, &config.rules.paths, base_dir) {
        let paths = config.rules.paths.join(", ");
        return Err(format!("no rule can be saved here: `[rules] paths` ({paths}) does not include {}", path.display()));
    }
    let GeneratedRule { rule, test } = new_rule::generate(request, &format!("../{name}"));
    let file = PreparedFile::of(path, rule.clone())?;
    let test = PreparedFile::of(folder.join("tests").join(&name), test)?;
    // Only a rule file has the mark. A test without its rule was written by someone else.
    let other = match &file.before {
        Some(before) => Some(&file).filter(|_| !before.starts_with(MARK)),
        None => Some(&test).filter(|test| test.before.is_some()),
    };
    if let Some(other) = other {
        return Err(format!("{} was not saved on the pages: choose another name", other.path.display()));
    }
    let source = SourceText { file: file.path.clone(), text: rule.clone() };
    // The file that is replaced, by whatever path it was loaded.
    let replaced = fs::canonicalize(&file.path).ok();
    let is_replaced = |other: &&SourceText| replaced.is_some() && fs::canonicalize(&other.file).ok() == replaced;
    let mut all: Vec<SourceText> = others.iter().filter(|other| !is_replaced(other)).cloned().collect();
    all.push(source.clone());
    let names: Vec<String> = config.receivers.iter().map(|receiver| receiver.name.clone()).collect();
    let loaded = rules::load(&all, &rules::Surroundings { receivers: &names, groups: &config.watch.groups, now });
    let sentence = loaded.set.rules.iter().find(|rule| *rule.location.file == *file.path).map(|rule| rule.sentence());
    let diagnostics: Vec<Diagnostic> = loaded.diagnostics.into_iter().filter(|problem| problem.file == file.path).collect();
    let outcomes = if has_errors(&diagnostics) {
        Vec::new()
    } else {
        let setup = TestSetup { config, base_dir, only: None };
        ruletest::run_against(SourceText { file: test.path.clone(), text: test.text.clone() }, &setup, Some(&[source]))
    };
    Ok(PreparedRule { rule, sentence, file, test, diagnostics, outcomes })
}

impl PreparedFile {
    /// Returns the lines of the file that change, each with `+` or `-`. Equal lines at the start and at the end are left out, and so is
    /// the line that names the author.
    #[must_use]
    pub fn difference(&self) -> Vec<(char, String)> {
        let lines = |text: &str| text.lines().filter(|line| !line.starts_with(MARK)).map(str::to_owned).collect::<Vec<_>>();
        let (before, after) = (self.before.as_deref().map(lines).unwrap_or_default(), lines(&self.text));
        let same_head = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
        let rest = before.len().min(after.len()) - same_head;
        let same_tail = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
        let part = |lines: &[String], sign: char| {
            let changed = lines.get(same_head..lines.len() - same_tail).unwrap_or_default();
            changed.iter().map(|line| (sign, line.clone())).collect::<Vec<_>>()
        };
        [part(&before, '-'), part(&after, '+')].concat()
    }

    fn of(path: PathBuf, text: String) -> Result<Self, String> {
        match fs::read_to_string(&path) {
            Ok(before) => Ok(Self { path, text, before: Some(before) }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self { path, text, before: None }),
            Err(error) => Err(format!("cannot read {}, which has the name of the new file: {error}", path.display())),
        }
    }

    /// Writes the file in one step, so that a reload never reads a part of it.
    fn write(&self, text: &str) -> Result<(), SaveError> {
        let failed = |source| SaveError::Write { path: self.path.clone(), source };
        let folder = self.path.parent().unwrap_or_else(|| Path::new(""));
        fs::create_dir_all(folder).map_err(failed)?;
        let part = self.path.with_extension("toml.part");
        fs::write(&part, text).and_then(|()| fs::rename(&part, &self.path)).map_err(failed)
    }

    /// Restores the text from before, or removes the file.
    fn restore(&self) {
        let restored = match &self.before {
            Some(text) => self.write(text).map_err(|error| error.to_string()),
            None => fs::remove_file(&self.path).map_err(|error| error.to_string()),
        };
        if let Err(error) = restored {
            tracing::error!(file = %self.path.display(), error, "cannot restore a rule file");
        }
    }
}

impl PreparedRule {
    /// Returns whether the rule can be saved: it has no errors, and its test passed.
    pub fn is_valid(&self) -> bool {
        !has_errors(&self.diagnostics) && !self.outcomes.is_empty() && self.outcomes.iter().all(TestOutcome::is_passed)
    }

    /// Writes the rule and its test. The file names the author and the time.
    ///
    /// # Errors
    ///
    /// Fails if the rule is not valid, or if a file cannot be written. Then no file is changed.
    pub fn save(&self, author: &str, now: Timestamp) -> Result<(), SaveError> {
        if has_errors(&self.diagnostics) {
            return Err(SaveError::Invalid);
        }
        if !self.is_valid() {
            return Err(SaveError::TestFailed);
        }
        self.test.write(&self.test.text)?;
        let by = format!("{MARK}{} at {}.\n", harmless(author), phrase::instant_iso(now));
        if let Err(error) = self.file.write(&(by + &self.file.text)) {
            self.test.restore();
            return Err(error);
        }
        Ok(())
    }

    /// Restores the files from before [`Self::save`].
    pub fn withdraw(&self) {
        self.file.restore();
        self.test.restore();
    }
}

#[cfg(test)]
mod tests;

//! Imports a data folder: `tokens.json`, `prices.json`, `unlock-events/`, `allocations/`, `daily-emission/`, `burn/`, `buyback/` (one
//! file per token, named by its id, with the `data` payload of the API), and `investors.json`.
//!
//! The import replaces all data. A missing file means that there are no such records, unless `gaps.json` lists them as unknown.
//! A poll only warns about an invalid field, but an import treats every parse warning as an error: it lists all problems and imports
//! nothing.

mod daemon;
mod investors;
mod problem;
mod token_files;
mod tokens;

use std::{collections::BTreeMap, io, path::PathBuf};

use chrono::TimeDelta;
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use crate::ServiceError;
use crate::data_folder::{GAPS, INVESTORS, PRICES, SourceFile, TOKENS};
pub use daemon::import_daemon;
use model::wire::{Maybe, Text, TokenItem};
use model::{Endpoint, Timestamp};
pub use problem::ImportProblem;
use problem::ProblemList;
use store::catalog::{Catalog, CatalogChange, CatalogRecord};
use store::facts::SupplyFacts as _;
pub use tokens::{DataGap, names_a_file};

/// Replaces all data by `files`, in one transaction.
pub fn import(
    catalog: &Catalog,
    files: &mut dyn Iterator<Item = io::Result<SourceFile>>,
    now: Timestamp,
    progress: &mut dyn FnMut(&str),
) -> Result<ImportSummary, ServiceError> {
    catalog.write(|draft| {
        let before = contents(draft)?;
        draft.clear()?;
        let mut import = ImportRun::new(draft);
        for file in files {
            let file = file.map_err(ImportError::Source)?;
            progress(&file.path);
            import.import_file(&file)?;
        }
        if import.tokens.is_empty() && import.problems.total == 0 {
            import.problems.add(TOKENS, "", "the list has no tokens");
        }
        if import.problems.total > 0 {
            return Err(ImportError::Invalid { problems: import.problems.listed, total: import.problems.total }.into());
        }
        import.finish(&before, now)
    })
}

struct ImportRun<'a> {
    draft: &'a CatalogChange<'a>,
    tokens: BTreeMap<String, ImportedToken>,
    problems: ProblemList,
    imported: ImportSummary,
}

impl<'a> ImportRun<'a> {
    fn new(draft: &'a CatalogChange<'a>) -> Self {
        Self { draft, tokens: BTreeMap::new(), problems: ProblemList::default(), imported: ImportSummary::default() }
    }

    /// Imports one file by its path: a list of the folder, or a token's file in a subfolder. An unknown file, or one of an unknown
    /// token, is recorded as a problem and is not an error.
    fn import_file(&mut self, file: &SourceFile) -> Result<(), ServiceError> {
        match file.path.as_str() {
            TOKENS => self.token_list(file),
            PRICES => self.prices(file),
            INVESTORS => return self.investors(file),
            GAPS => return self.gaps(file),
            path => {
                let parts = path.split_once('/').and_then(|(folder, name)| Some((folder, name.strip_suffix(".json")?)));
                let Some((folder, id)) = parts else {
                    self.problems.add(path, "", "unknown file");
                    return Ok(());
                };
                if !self.tokens.contains_key(id) {
                    self.problems.add(path, "", format!("the token is not in {TOKENS}"));
                    return Ok(());
                }
                let (folder, id) = (folder.to_owned(), id.to_owned());
                self.token_file(&folder, &id, file)?;
            }
        }
        Ok(())
    }

    fn finish(mut self, before: &Contents, now: Timestamp) -> Result<ImportSummary, ServiceError> {
        for (id, mut token) in std::mem::take(&mut self.tokens) {
            let content = format!("{:032x}", token.content.digest128());
            let stated = token.updated.unwrap_or(now);
            let updated = match before.get(&id) {
                Some((same, updated)) if *same == content => updated.unwrap_or(stated),
                // Changed data needs a later date than before, or pollers would not notice the change.
                Some((_, Some(updated))) if stated <= *updated => {
                    self.imported.changed += 1;
                    now.max(*updated + TimeDelta::seconds(1))
                }
                _ => {
                    self.imported.changed += 1;
                    stated
                }
            };
            token.item.last_updated_date = updated.into();
            if let Some((_, name)) = token.latest_round {
                token.item.latest_fundraising_round = name;
            }
            if token.is_uncovered {
                self.draft.put_gap(&id, Endpoint::UnlockEvents.as_str())?;
            }
            self.draft.put_token(&id, &token.item, &content)?;
            self.imported.tokens += 1;
        }
        self.imported.changed += before.keys().filter(|id| matches!(self.draft.token(id), Ok(None))).count();
        Ok(self.imported)
    }
}

struct ImportedToken {
    item: TokenItem,
    content: Xxh3,
    updated: Option<Timestamp>,
    latest_round: Option<(Timestamp, Maybe<Text>)>,
    /// Whether the folder does not cover the schedule, as opposed to a token without unlocks.
    is_uncovered: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportSummary {
    pub tokens: usize,
    pub events: usize,
    /// Rows of allocation tables.
    pub allocations: usize,
    /// The number of days with emission.
    pub days: usize,
    pub burns: usize,
    pub buybacks: usize,
    pub investors: usize,
    /// Funding rounds, counted once per investor.
    pub rounds: usize,
    /// The number of tokens whose data changed.
    pub changed: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot read the data")]
    Source(#[source] io::Error),
    #[error("nothing was imported: {} in the data{}", model::phrase::count(*total, "problem"), lines(problems, *total))]
    Invalid {
        /// The first 100 problems.
        problems: Vec<ImportProblem>,
        /// The number of all problems.
        total: usize,
    },
}

fn lines(problems: &[ImportProblem], total: usize) -> String {
    let mut text: String = problems.iter().map(|problem| format!("\n  {problem}")).collect();
    if total > problems.len() {
        text.push_str(&format!("\n  and {} more", total - problems.len()));
    }
    text
}

type Contents = BTreeMap<String, (String, Option<Timestamp>)>;

/// Returns the content hash and `lastUpdatedDate` of each token.
fn contents(draft: &CatalogChange<'_>) -> Result<Contents, ServiceError> {
    let mut contents = Contents::new();
    for token in draft.tokens()? {
        if let Some(id) = token.id.as_str() {
            let content = draft.token_content(id)?.unwrap_or_default();
            contents.insert(id.to_owned(), (content, token.last_updated_date.copied()));
        }
    }
    Ok(contents)
}

fn rows_of<T>(rows: &[T], date: fn(&T) -> Option<Timestamp>) -> impl Iterator<Item = CatalogRecord<'_, T>> {
    rows.iter().map(move |row| CatalogRecord { date: date(row), cliff: false, about: None, body: row })
}

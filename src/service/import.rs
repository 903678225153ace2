//! Imports a data folder: `tokens.json`, `prices.json`, `unlock-events/`, `allocations/`, `daily-emission/`, `burn/`, `buyback/` (one
//! file a token, named by its id, each holding the `data` payload of the interface), and `investors.json`.
//!
//! The database afterwards says what the folder says and nothing else; a file that is not there means that there are no such records,
//! unless `gaps.json` says that they are not known: a daemon's data has what it read, and not more.
//! A poll forgives an odd field and goes on; an import is somebody's own data, so every parse warning is a problem, all are listed, and
//! nothing is imported until none is left.

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

/// Puts `files` in place of all data, in one transaction.
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
            import.take(&file)?;
        }
        if import.tokens.is_empty() && import.problems.total == 0 {
            import.problems.add(TOKENS, "", "there is no token");
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

    fn take(&mut self, file: &SourceFile) -> Result<(), ServiceError> {
        match file.path.as_str() {
            TOKENS => self.token_list(file),
            PRICES => self.prices(file),
            INVESTORS => return self.investors(file),
            GAPS => return self.gaps(file),
            path => {
                let parts = path.split_once('/').and_then(|(folder, name)| Some((folder, name.strip_suffix(".json")?)));
                let Some((folder, id)) = parts else {
                    self.problems.add(path, "", "nobody knows what belongs into this file");
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
            let told = token.updated.unwrap_or(now);
            let updated = match before.get(&id) {
                Some((same, updated)) if *same == content => updated.unwrap_or(told),
                // Other data must show a later mark than before, or nobody who polls would look again.
                Some((_, Some(updated))) if told <= *updated => {
                    self.imported.changed += 1;
                    now.max(*updated + TimeDelta::seconds(1))
                }
                _ => {
                    self.imported.changed += 1;
                    told
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

/// A token while its files are read.
struct ImportedToken {
    item: TokenItem,
    content: Xxh3,
    updated: Option<Timestamp>,
    latest_round: Option<(Timestamp, Maybe<Text>)>,
    /// The folder says that its data does not cover the token's schedule, and has no event of it: that is not "no unlocks".
    is_uncovered: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportSummary {
    pub tokens: usize,
    pub events: usize,
    /// Rows of allocation tables.
    pub allocations: usize,
    /// Days of emission.
    pub days: usize,
    pub burns: usize,
    pub buybacks: usize,
    pub investors: usize,
    /// Funding rounds, counted once for each investor.
    pub rounds: usize,
    /// Tokens whose data differs from what was there.
    pub changed: usize,
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("cannot read {}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot read the data")]
    Source(#[source] io::Error),
    /// The data is not what it should be; nothing was changed.
    #[error("nothing was imported: {total} problem{} in the data{}", if *total == 1 { "" } else { "s" }, lines(problems, *total))]
    Invalid {
        /// The first hundred.
        problems: Vec<ImportProblem>,
        /// How many in all.
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

/// What each token was imported from, and its mark of change.
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

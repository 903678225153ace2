//! Finds the tokens of the positions in the config. A name can be a ticker, which only the token list explains.

use super::ReloadProblem;
use crate::live::LiveConfig;
use model::text::error_chain;
use store::{Store, StoreError};

/// Finds the token of each position among the known tokens. Returns the names that are not the name of one token.
///
/// # Errors
///
/// Fails if the database cannot be read.
pub async fn resolve_positions(live: &LiveConfig, store: &Store) -> Result<Option<ReloadProblem>, StoreError> {
    let positions = live.watch.positions();
    if positions.is_empty() {
        return Ok(None);
    }
    let resolved = positions.resolve(&store.token_names().await?);
    Ok(ReloadProblem::of_files(&resolved.problems, &live.config.watch.positions.sources))
}

/// Returns the errors of the positions at the start. The daemon starts in spite of them, because alerts do not wait for positions.
pub async fn start_positions(live: &LiveConfig, store: &Store) -> Option<String> {
    let table = &live.config.watch.positions;
    let of_file = ReloadProblem::of_files(&table.problems, &table.sources);
    let of_names = resolve_positions(live, store).await.unwrap_or_else(|error| {
        tracing::error!(error = error_chain(&error), "cannot find the tokens of the positions");
        None
    });
    let texts: Vec<String> = of_file.into_iter().chain(of_names).map(|problem| problem.full).collect();
    let text = texts.join("\n");
    if !text.is_empty() {
        tracing::error!("the positions have errors; the daemon runs without the affected ones\n{text}");
    }
    (!text.is_empty()).then_some(text)
}

/// Finds the tokens of the positions again after a complete token list. Returns whether a token has another position than before.
pub async fn follow_token_list(live: &LiveConfig, store: &Store) -> bool {
    let positions = live.watch.positions();
    if positions.is_empty() {
        return false;
    }
    match store.token_names().await {
        Ok(names) => {
            let resolved = positions.resolve(&names);
            for problem in &resolved.problems {
                tracing::warn!(file = %problem.file.display(), "a position is not used: {}", problem.message);
            }
            resolved.has_changed
        }
        Err(error) => {
            tracing::error!(error = error_chain(&error), "cannot find the tokens of the positions");
            false
        }
    }
}

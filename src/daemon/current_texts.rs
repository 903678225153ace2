//! The current texts of open alerts, for pages, API, commands, and digests. [`engine::pipeline`] renders them from the stored
//! facts; see [`engine::pipeline::current_text`].

use std::collections::HashMap;

use engine::pipeline::{self, ActiveRules};
use model::{Alert, Resource, Timestamp, TokenId, TokenSnapshot, Watch};
use store::{Store, StoreError};

/// The number of tokens whose facts are in memory at once.
const TOKENS_PER_READ: usize = 16;

/// Replaces the stored texts of open alerts by the current ones. A text stays as it is if its rule or its record no longer exists.
///
/// # Errors
///
/// Fails if the facts cannot be read.
pub async fn show_current_texts(
    alerts: &mut [&mut Alert],
    store: &Store,
    watch: &Watch,
    active: &ActiveRules,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut reads: Vec<(Vec<Resource>, Vec<TokenId>)> = Vec::new();
    for (token, resources) in alerts.iter().filter_map(|alert| pipeline::facts_for_text(alert)) {
        let index = reads.iter().position(|(of, _)| *of == resources).unwrap_or_else(|| {
            reads.push((resources, Vec::new()));
            reads.len() - 1
        });
        if let Some((_, tokens)) = reads.get_mut(index)
            && !tokens.contains(token)
        {
            tokens.push(token.clone());
        }
    }
    for (resources, tokens) in reads {
        for ids in tokens.chunks(TOKENS_PER_READ) {
            let mut known: HashMap<TokenId, TokenSnapshot> = HashMap::new();
            for snapshot in store.tokens(ids.to_vec(), resources.clone()).await? {
                let placed = TokenSnapshot { token: watch.placed(snapshot.token), ..snapshot };
                known.insert(placed.token.id.clone(), placed);
            }
            for alert in alerts.iter_mut() {
                let Some((token, needed)) = pipeline::facts_for_text(alert) else { continue };
                if needed == resources
                    && let Some(snapshot) = known.get(token)
                    && let Some(text) = pipeline::current_text(alert, snapshot, &active.context(now))
                {
                    alert.annotations = text;
                }
            }
        }
    }
    Ok(())
}

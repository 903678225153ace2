//! Tokens that the list names under another slug.

use std::collections::HashSet;

use super::{Cycle, CycleError, stored};
use engine::pipeline::{self, RESOURCES, Renaming, Work};
use model::{TokenId, TokenSnapshot, wire};

impl Cycle<'_> {
    /// Tokens that the list names no longer, each with the row of the new slug that it has now.
    pub(super) async fn renamed_tokens<'i>(
        &self,
        named: &[(TokenId, &'i wire::TokenItem)],
    ) -> Result<Vec<(TokenId, &'i wire::TokenItem)>, CycleError> {
        let deps = self.deps;
        let listed = stored("read what was listed", deps.store.token_ids(true)).await?;
        let now: HashSet<&TokenId> = named.iter().map(|(id, _)| id).collect();
        let before: HashSet<&TokenId> = listed.iter().collect();
        let gone: Vec<TokenId> = listed.iter().filter(|id| !now.contains(id)).cloned().collect();
        let new: Vec<TokenId> = named.iter().map(|(id, _)| id).filter(|id| !before.contains(id)).cloned().collect();
        if gone.is_empty() || new.is_empty() {
            return Ok(Vec::new());
        }
        let (gone, new) = (deps.known(gone, Vec::new()).await?, deps.known(new, Vec::new()).await?);
        let items: Vec<wire::TokenItem> = gone.values().map(|known| known.token.item.clone()).collect();
        let is_new = |id: &TokenId| new.get(id).is_some_and(pipeline::is_unread);
        let rows: Vec<wire::TokenItem> = named.iter().filter(|(id, _)| is_new(id)).map(|(_, item)| (*item).clone()).collect();
        let row_of = |to: &TokenId| named.iter().find(|(id, _)| id == to).map(|(_, item)| *item);
        Ok(pipeline::renamed_tokens(&items, &rows).into_iter().filter_map(|(old, to)| Some((old, row_of(&to)?))).collect())
    }

    /// Has all that is known of a token go on under the slug that the list has for it now, where that is watched.
    pub(super) async fn go_on_under_another_slug(&mut self, old: &TokenId, item: &wire::TokenItem) -> Result<(), CycleError> {
        let (deps, setup) = (self.deps, self.deps.setup());
        let Some(id) = item.id.as_str().map(TokenId::from).filter(|id| setup.watch.covers(id)) else { return Ok(()) };
        let mut known = deps.known(vec![old.clone(), id.clone()], RESOURCES.to_vec()).await?;
        let (Some(old), Some(to)) = (known.remove(old), known.remove(&id)) else { return Ok(()) };
        let renaming = Renaming::of(&old, &to, item);
        let latest = stored("read episodes", deps.store.episodes(renaming.openings())).await?;
        let new: TokenSnapshot = renaming.into_snapshot(&latest, &to);
        let mut work = Work::default();
        self.ingest(&setup).renamed(&mut work, &old, &to, &new);
        tracing::info!(from = old.token.id.as_str(), to = id.as_str(), "the source lists a token under another slug");
        self.evaluate_and_commit(work).await
    }
}

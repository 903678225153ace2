//! Tokens whose evaluation is due because time passed. This needs no response, so it also works while the source is down.

use std::vec;

use super::{Cycle, CycleError, TOKENS_PER_INPUT, input::Input, stored};
use engine::evaluate;
use model::{Timestamp, TokenId, rows::Commit};

/// Yields due tokens, and at the end the time up to which rules are evaluated.
pub(super) struct DueTokens {
    inputs: vec::IntoIter<Vec<TokenId>>,
    /// Whether the aggregate cache is filled from scratch and must be completed.
    fills_totals: bool,
    is_done: bool,
    /// The time up to which the due tokens were read. The cycle may move on to a later time.
    until: Timestamp,
}

impl DueTokens {
    /// Reads the due tokens. A forced evaluation covers all tokens that rules may concern.
    pub(super) async fn read(cycle: &Cycle<'_>, is_forced: bool) -> Result<Self, CycleError> {
        let (deps, now) = (cycle.deps, cycle.now);
        let until = match is_forced {
            true => None,
            false => stored("read the time of the last evaluation", deps.store.evaluated_until()).await?,
        };
        let active = deps.active();
        let rules = &active.rules;
        let windows = evaluate::windows(rules, until, now);
        let mut due = stored("read the due tokens", deps.store.tokens_due(windows.clone(), now)).await?;
        if !windows.is_empty() {
            due.extend(stored("read the ends of linear unlocks", deps.store.tokens_with_ends(windows)).await?);
        }
        let corrected = evaluate::correction_windows(rules, until, now);
        if !corrected.is_empty() {
            due.extend(stored("read the tokens with corrections", deps.store.tokens_with_corrections(corrected)).await?);
        }
        let fills_totals = is_forced && rules.has_aggregates();
        if is_forced {
            deps.totals().reset(rules.reads.clone());
        }
        if fills_totals {
            let known = stored("read the tokens", deps.store.token_ids(false)).await?;
            let setup = deps.setup();
            due.extend(known.into_iter().filter(|id| setup.watch.covers(id)));
        }
        due.extend(deps.totals().due(now));
        if until.is_none() {
            let states = evaluate::states(rules, now);
            due.extend(stored("read the tokens of all rules", deps.store.tokens_to_reevaluate(states)).await?);
        }
        let unreadable = deps.unreadable_tokens.all();
        due.retain(|id| !unreadable.contains(id));
        due.sort();
        due.dedup();
        let mut inputs: Vec<Vec<TokenId>> = split(&due).collect();
        // Each alone, so that it does not make the others be processed one by one.
        inputs.extend(unreadable.into_iter().map(|id| vec![id]));
        Ok(Self { inputs: inputs.into_iter(), fills_totals, is_done: false, until: now })
    }

    pub(super) fn next(&mut self, cycle: &Cycle<'_>) -> Option<Input> {
        if let Some(ids) = self.inputs.next() {
            return Some(Input::Tokens(ids));
        }
        if std::mem::take(&mut self.fills_totals) {
            // A token's share of its groups is only known once the groups are complete.
            cycle.deps.totals().complete(cycle.now);
            self.inputs = split(&cycle.deps.totals().due(cycle.now));
            return self.next(cycle);
        }
        let is_last = !std::mem::replace(&mut self.is_done, true);
        is_last.then(|| Input::Commit(Box::new(Commit { evaluated_until: Some(self.until), ..Commit::default() })))
    }
}

fn split(ids: &[TokenId]) -> vec::IntoIter<Vec<TokenId>> {
    ids.chunks(TOKENS_PER_INPUT).map(<[_]>::to_vec).collect::<Vec<_>>().into_iter()
}

//! The schedules of tokens in a list, for filters that need more than the listed event. Only a few are in memory at a time.

use std::collections::HashMap;

use super::cycle::tokens;
use super::error::StoreFault;
use super::sql::Transaction;
use model::{Resource, TokenId, TokenSnapshot};

/// The number of schedules in memory. A list sorted by date returns to the same tokens.
const MAX_SCHEDULES: usize = 32;

/// Reads the schedules of tokens, one after another.
pub(super) struct ScheduleReader<'t, 'c> {
    from: &'t Transaction<'c>,
    is_needed: bool,
    latest: HashMap<TokenId, TokenSnapshot>,
}

impl<'t, 'c> ScheduleReader<'t, 'c> {
    /// Returns a reader that reads nothing unless `is_needed`.
    pub(super) fn new(from: &'t Transaction<'c>, is_needed: bool) -> Self {
        Self { from, is_needed, latest: HashMap::new() }
    }

    /// Returns the token with the records of its schedule. `None` unless schedules are needed.
    pub(super) fn of(&mut self, token: &TokenId) -> Result<Option<&TokenSnapshot>, StoreFault> {
        if !self.is_needed {
            return Ok(None);
        }
        if !self.latest.contains_key(token) {
            if self.latest.len() >= MAX_SCHEDULES {
                self.latest.clear();
            }
            let read = tokens(self.from, std::slice::from_ref(token), &[Resource::Unlock])?;
            self.latest.extend(read.into_iter().map(|snapshot| (token.clone(), snapshot)));
        }
        Ok(self.latest.get(token))
    }
}

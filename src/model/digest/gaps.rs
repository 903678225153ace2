//! The gaps in the known supply of several tokens.

use serde::{Deserialize, Serialize};

use crate::{KnownSupply, SupplyCoverage, Timestamp, TotalsCoverage};

/// The tokens whose coming supply is not completely known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SupplyGaps {
    /// The number of all tokens.
    pub tokens: u64,
    /// Tokens whose schedule was never read.
    pub unread: u64,
    /// Tokens whose linear unlocks were not read.
    pub cliffs_only: u64,
    /// The earliest end of known linear supply. `None` if no end is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linear_until: Option<Timestamp>,
}

impl From<&TotalsCoverage> for SupplyGaps {
    fn from(coverage: &TotalsCoverage) -> Self {
        let TotalsCoverage { tokens, unread, cliffs_only, linear_until, .. } = *coverage;
        Self { tokens, unread, cliffs_only, linear_until }
    }
}

impl SupplyGaps {
    /// Adds a token with the extent of its known supply.
    pub fn add(&mut self, coverage: SupplyCoverage) {
        self.tokens += 1;
        self.unread += u64::from(coverage.known == KnownSupply::None);
        self.cliffs_only += u64::from(coverage.known == KnownSupply::Cliffs);
        self.linear_until = self.linear_until.into_iter().chain(coverage.linear_until).min();
    }

    /// Returns whether no schedule was read.
    #[must_use]
    pub fn is_nothing_known(&self) -> bool {
        self.tokens > 0 && self.unread == self.tokens
    }

    /// Returns whether supply before `until` can be missing.
    #[must_use]
    pub fn are_before(&self, until: Timestamp) -> bool {
        self.unread + self.cliffs_only > 0 || self.linear_until.is_some_and(|end| end < until)
    }
}

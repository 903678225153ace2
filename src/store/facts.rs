//! What the data service answers from: a database of its own, or the daemon's snapshot. Both are read through [`SupplyFacts`].

use serde::de::DeserializeOwned;

use super::{StoreError, catalog::CatalogError};
use model::{Endpoint, Resource, Timestamp, wire};

/// Why facts could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// From the data service's own database.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// From the daemon's.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Some of the records of one owner.
#[derive(Clone, Copy, Debug, Default)]
pub struct DateRange {
    /// First instant.
    pub from: Option<Timestamp>,
    /// First instant after it.
    pub until: Option<Timestamp>,
}

/// Whether facts are there, and since when they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// They are our own: what is not there does not exist.
    Own,
    /// The source told them then.
    ReadAt(Timestamp),
    /// Nobody asked the source for them yet.
    NeverRead,
}

/// What a schedule lacks that was read in a version without changes of rate; see [`SupplyFacts::gaps`].
pub const RATE_CHANGES: &str = "rate_changes";

/// Endpoints of which data from a daemon may lack a token. Emission is not among them: it can be made from the schedule.
const MAY_LACK: [Endpoint; 4] = [Endpoint::UnlockEvents, Endpoint::Burn, Endpoint::Buyback, Endpoint::Allocations];

/// One consistent view of tokens and their records.
pub trait SupplyFacts {
    /// Whether what `endpoint` tells (of `token`, where it is asked per token) is there.
    fn coverage(&self, endpoint: Endpoint, token: Option<&str>) -> Result<Coverage, FactsError>;

    /// Whether a token's `events` tell changes of rate too, as the first version has them.
    fn tells_rate_changes(&self, token: &str, events: &[wire::UnlockEvent]) -> Result<bool, FactsError>;

    /// What is not known of a token: words of endpoints that nobody asked about it, and [`RATE_CHANGES`].
    fn gaps(&self, token: &str, events: &[wire::UnlockEvent]) -> Result<Vec<&'static str>, FactsError> {
        let mut gaps = Vec::new();
        for endpoint in MAY_LACK {
            if self.coverage(endpoint, Some(token))? == Coverage::NeverRead {
                gaps.push(endpoint.as_str());
            }
        }
        if !self.tells_rate_changes(token, events)? {
            gaps.push(RATE_CHANGES);
        }
        Ok(gaps)
    }

    /// A token of the list.
    fn token(&self, id: &str) -> Result<Option<wire::TokenItem>, FactsError>;

    /// All tokens of the list, by id.
    fn tokens(&self) -> Result<Vec<wire::TokenItem>, FactsError>;

    /// Payload fields beside the records of `owner`.
    fn header<T: DeserializeOwned>(&self, resource: Resource, owner: &str) -> Result<Option<T>, FactsError>;

    /// All investors of the list, by id.
    fn investors(&self) -> Result<Vec<wire::InvestorItem>, FactsError>;

    /// Records of one owner, oldest first; those of one instant, and those without a date, in the order in which they came.
    fn records<T: DeserializeOwned>(&self, resource: Resource, owner: &str, range: DateRange) -> Result<Vec<T>, FactsError>;

    /// Cliff events of a token in the range, oldest first, up to the first for which `wanted` has an answer.
    fn first_cliff<T>(
        &self,
        token: &str,
        range: DateRange,
        wanted: impl FnMut(wire::UnlockEvent) -> Option<T>,
    ) -> Result<Option<T>, FactsError>;

    /// Funding rounds about a token, with the investor (id and name) of each; newest first.
    fn rounds_about(&self, token: &str) -> Result<Vec<wire::FundingRound>, FactsError>;
}

//! The read interface of the data service, implemented by its own database and by the snapshot of the daemon's
//! database.

use serde::de::DeserializeOwned;

use super::{StoreError, catalog::CatalogError};
use model::{Endpoint, Resource, Timestamp, wire};

/// An error while reading facts.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// An error of the data service's database.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// An error of the daemon's database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A range of dates.
#[derive(Clone, Copy, Debug, Default)]
pub struct DateRange {
    /// The start, inclusive.
    pub from: Option<Timestamp>,
    /// The end, exclusive.
    pub until: Option<Timestamp>,
}

/// Whether data is available, and how current it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// The data is complete: a record that it does not contain does not exist.
    Own,
    /// The time of the last poll.
    ReadAt(Timestamp),
    /// The source was never polled for this data.
    NeverRead,
}

/// The gap of a schedule that was read from an API version without rate changes; see [`SupplyFacts::gaps`].
pub const RATE_CHANGES: &str = "rate_changes";

/// Endpoints that the daemon may never have polled for a token. Emission is derived from the schedule if needed.
const MAY_LACK: [Endpoint; 4] = [Endpoint::UnlockEvents, Endpoint::Burn, Endpoint::Buyback, Endpoint::Allocations];

/// One consistent snapshot of tokens and their records.
pub trait SupplyFacts {
    /// Returns the coverage of `endpoint`, for `token` if the endpoint is polled per token.
    fn coverage(&self, endpoint: Endpoint, token: Option<&str>) -> Result<Coverage, FactsError>;

    /// Returns whether `events` include the rate changes of linear unlocks, as API version 1 does.
    fn shows_rate_changes(&self, token: &str, events: &[wire::UnlockEvent]) -> Result<bool, FactsError>;

    /// Returns the names of the data that is missing for a token: endpoints never polled for it, and [`RATE_CHANGES`].
    fn gaps(&self, token: &str, events: &[wire::UnlockEvent]) -> Result<Vec<&'static str>, FactsError> {
        let mut gaps = Vec::new();
        for endpoint in MAY_LACK {
            if self.coverage(endpoint, Some(token))? == Coverage::NeverRead {
                gaps.push(endpoint.as_str());
            }
        }
        if !self.shows_rate_changes(token, events)? {
            gaps.push(RATE_CHANGES);
        }
        Ok(gaps)
    }

    /// Returns a token of the list.
    fn token(&self, id: &str) -> Result<Option<wire::TokenItem>, FactsError>;

    /// Returns all tokens of the list, by id.
    fn tokens(&self) -> Result<Vec<wire::TokenItem>, FactsError>;

    /// Returns the payload fields that surround the records of `owner`.
    fn header<T: DeserializeOwned>(&self, resource: Resource, owner: &str) -> Result<Option<T>, FactsError>;

    /// Returns all investors of the list, by id.
    fn investors(&self) -> Result<Vec<wire::InvestorItem>, FactsError>;

    /// Returns the records of one owner: undated ones first, then oldest first. Equal dates keep the order of the
    /// source.
    fn records<T: DeserializeOwned>(&self, resource: Resource, owner: &str, range: DateRange) -> Result<Vec<T>, FactsError>;

    /// Returns the first result of `wanted` for the cliff events of a token in the range, oldest first.
    fn first_cliff<T>(
        &self,
        token: &str,
        range: DateRange,
        wanted: impl FnMut(wire::UnlockEvent) -> Option<T>,
    ) -> Result<Option<T>, FactsError>;

    /// Returns the funding rounds of a token, with the investor (id and name) of each, newest first.
    fn rounds_about(&self, token: &str) -> Result<Vec<wire::FundingRound>, FactsError>;
}

//! Aggregates: sums of unlocks, emission, burns, and buybacks in a time window, for a token or a group of tokens.
//!
//! [`FlowEntries`] holds the dated entries of one token. [`Totals`] holds the sums over the windows that rules read, at one
//! instant; group totals are computed from the totals of the group's tokens. An [`AggregateCache`] holds the totals of every
//! token and the time at which they change next, so that a cycle recomputes only changed tokens.
//!
//! Guarantees: a feed that was never read has no sum, not a sum of zero. A sum with an unknown part is unknown. The same records
//! at the same instant give the same sum, computed or cached. Nothing here reads the clock: the caller passes `now`.

mod cache;
mod entries;
mod known;
mod reads;
mod totals;
mod window;

pub use cache::{AggregateCache, ComputedTotals, LONGEST_REST, Recheck};
pub use entries::{EDGE_SLACK, FlowEntries};
pub use known::{has_none, is_known};
pub use reads::AggregateReads;
pub use totals::{Member, NextRate, SupplyNow, Totals};
pub use window::{Flow, LatestEntry, PartSum, Sum, Window};

#[cfg(test)]
mod tests;

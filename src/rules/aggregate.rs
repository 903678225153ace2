//! Aggregates: what unlocks, was emitted, burned and bought back within a window of time, for a token and for a group of them.
//!
//! Cast: [`FlowEntries`] are the dated entries of one token, as far as its feeds were ever read. [`Totals`] are the sums over the
//! windows that rules ask for, at one instant; those of a group are made from those of its tokens. An [`AggregateCache`] keeps the
//! totals of every token between ticks, with the instant at which time alone will change them, so that a tick computes what moved and
//! nothing else.
//!
//! Promises: a feed that was never read gives no sum at all, never zero; a sum with an unknown part is unknown; what is the same
//! instant and the same records is the same sum, whether computed anew or cached. Pure: the time comes in as `now`.

mod cache;
mod entries;
mod known;
mod totals;
mod window;

pub use cache::{AggregateCache, ComputedTotals, LONGEST_REST, Recheck};
pub use entries::FlowEntries;
pub use known::{has_none, is_known};
pub use totals::{Member, Totals};
pub use window::{Flow, LatestEntry, Sum, Window};

#[cfg(test)]
mod tests;

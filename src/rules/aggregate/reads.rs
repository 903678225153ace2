//! The parts of the aggregates that rules read. They decide what is read from the database and when aggregates are computed again.

use std::sync::Arc;

use chrono::TimeDelta;

use super::window::{Flow, Window};
use crate::condition::{Dependencies, Edge};
use model::span_of_days;

/// The parts of the aggregates that rules on tokens and groups read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AggregateReads {
    /// The time windows, sorted by flow and length.
    pub windows: Arc<[Window]>,
    /// The times since the latest burn or buyback at which the result of a rule can change.
    pub since: Vec<(Flow, TimeDelta)>,
    /// The ages of the latest price at which the result of a rule can change.
    pub price_ages: Vec<TimeDelta>,
    /// The times before a change of the daily release at which the result of a rule can change.
    pub rate_leads: Vec<TimeDelta>,
    /// Whether a rule reads the daily release, its next change, or the age of the price.
    pub has_supply: bool,
    /// Whether a rule reads a token's share of a group.
    pub has_shares: bool,
}

impl AggregateReads {
    /// Returns the parts that rules with these dependencies read together.
    pub(crate) fn of(dependencies: &Dependencies) -> Self {
        let mut windows = dependencies.windows.clone();
        windows.sort_unstable();
        let mut reads = Self {
            windows: windows.into(),
            has_supply: dependencies.has_supply,
            has_shares: !dependencies.groups.is_empty(),
            ..Self::default()
        };
        for edge in &dependencies.edges {
            match edge {
                Edge::Until(_) => {}
                Edge::Since(flow, days) => reads.since.extend(span_of_days(*days).map(|span| (*flow, span))),
                Edge::PriceAge(days) => reads.price_ages.extend(span_of_days(*days)),
                Edge::RateChange(days) => reads.rate_leads.extend(span_of_days(*days)),
            }
        }
        reads
    }
}

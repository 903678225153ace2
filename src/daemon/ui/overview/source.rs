//! How the source is: each endpoint with a strip of its past polls, and the same as a table.

use minijinja::Value;
use serde::Serialize;

use crate::ui::chart::past_polls::{draw, told};
use crate::ui::view::EndpointView;
use model::{Endpoint, PastPoll, PastPolls, Timestamp};

/// Rows of the table for each endpoint.
const MAX_ROWS: usize = 12;

/// The card of the source.
#[derive(Debug, Serialize)]
pub(super) struct SourceCard {
    endpoints: Vec<EndpointRow>,
    /// The strips as a table.
    polls: Vec<PollRow>,
}

#[derive(Debug, Serialize)]
struct EndpointRow {
    view: EndpointView,
    strip: Option<Value>,
}

/// Cycles, one after the other, that went alike.
#[derive(Debug, PartialEq, Serialize)]
struct PollRow {
    endpoint: Endpoint,
    /// The first of them and the last.
    from: Timestamp,
    until: Timestamp,
    cycles: usize,
    has_failed: bool,
    told: String,
}

impl SourceCard {
    pub(super) fn of(endpoints: &[EndpointView], polls: &[PastPolls]) -> Self {
        let of = |endpoint: Endpoint| polls.iter().find(|polls| polls.endpoint == endpoint);
        let row = |view: &EndpointView| EndpointRow {
            strip: of(view.endpoint).map(|polls| Value::from_safe_string(draw(&polls.cycles))),
            view: view.clone(),
        };
        Self { endpoints: endpoints.iter().map(row).collect(), polls: polls.iter().flat_map(rows).collect() }
    }
}

/// The latest first, those that went alike as one.
fn rows(polls: &PastPolls) -> Vec<PollRow> {
    let mut rows: Vec<PollRow> = Vec::new();
    for cycle in &polls.cycles {
        let PastPoll { at, failed, .. } = *cycle;
        let told = told(cycle);
        match rows.last_mut().filter(|row| row.told == told) {
            Some(row) => (row.from, row.cycles) = (at, row.cycles + 1),
            None => {
                rows.push(PollRow { endpoint: polls.endpoint, from: at, until: at, cycles: 1, has_failed: failed > 0, told });
            }
        }
    }
    rows.truncate(MAX_ROWS);
    rows
}

#[cfg(test)]
mod tests;

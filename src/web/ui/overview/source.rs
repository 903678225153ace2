//! The state of the source: recent polls of each endpoint, as strips and as a table.

use minijinja::Value;
use serde::Serialize;

use chart::past_polls::draw;
use daemon::view::EndpointView;
use model::{Endpoint, PastPoll, PastPolls, Timestamp, phrase};

/// The maximum number of table rows for each endpoint.
const MAX_ENDPOINT_ROWS: usize = 12;

#[derive(Debug, Serialize)]
pub(super) struct SourceCard {
    endpoints: Vec<EndpointRow>,
    polls: Vec<PollRow>,
}

#[derive(Debug, Serialize)]
struct EndpointRow {
    view: EndpointView,
    strip: Option<Value>,
}

/// Consecutive cycles with the same outcome.
#[derive(Debug, PartialEq, Serialize)]
struct PollRow {
    endpoint: Endpoint,
    /// The first and the last cycle.
    from: Timestamp,
    until: Timestamp,
    cycles: usize,
    has_failed: bool,
    outcome: String,
}

impl SourceCard {
    pub(super) fn of(endpoints: &[EndpointView], polls: &[PastPolls]) -> Self {
        let polls_of = |endpoint: Endpoint| polls.iter().find(|polls| polls.endpoint == endpoint);
        let row = |view: &EndpointView| EndpointRow {
            strip: polls_of(view.endpoint).map(|polls| Value::from_safe_string(draw(&polls.cycles))),
            view: view.clone(),
        };
        Self { endpoints: endpoints.iter().map(row).collect(), polls: polls.iter().flat_map(rows).collect() }
    }
}

/// Returns the rows of the table, latest first.
fn rows(polls: &PastPolls) -> Vec<PollRow> {
    let mut rows: Vec<PollRow> = Vec::new();
    for cycle in &polls.cycles {
        let PastPoll { at, failed, .. } = *cycle;
        let outcome = phrase::past_poll(cycle);
        match rows.last_mut().filter(|row| row.outcome == outcome) {
            Some(row) => (row.from, row.cycles) = (at, row.cycles + 1),
            None => {
                rows.push(PollRow { endpoint: polls.endpoint, from: at, until: at, cycles: 1, has_failed: failed > 0, outcome });
            }
        }
    }
    rows.truncate(MAX_ENDPOINT_ROWS);
    rows
}

#[cfg(test)]
mod tests;

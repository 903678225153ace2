//! Rows of the poll log.

use super::{ParseWarnings, record_count};
use model::{
    poll::{FetchedResponse, PollFailure, PollOutcome, PollResponse},
    rows::{PollEntry, PollEntryOutcome},
    supply::Timestamp,
};

/// Returns the outcome for the poll log. `failure` is the failure that ingest found.
#[must_use]
pub fn entry_outcome(fetched: &FetchedResponse, failure: Option<&PollFailure>) -> PollEntryOutcome {
    match (&fetched.outcome, failure) {
        (_, Some(failure)) | (PollOutcome::Failed(failure), None) => PollEntryOutcome::Failed(failure.kind),
        (PollOutcome::Fresh(_), None) => PollEntryOutcome::Fresh,
        (PollOutcome::Unchanged, None) => PollEntryOutcome::Unchanged,
    }
}

/// Returns the row of the poll log for a fetch. `failure` is the failure that ingest found.
#[must_use]
pub fn poll_entry(fetched: &FetchedResponse, failure: Option<&PollFailure>, now: Timestamp) -> PollEntry {
    entry_with(fetched, failure, &ParseWarnings::default(), now)
}

/// Like [`poll_entry`], with the parse warnings of ingest.
#[must_use]
pub fn entry_with(
    fetched: &FetchedResponse,
    failure: Option<&PollFailure>,
    parse_warnings: &ParseWarnings,
    now: Timestamp,
) -> PollEntry {
    let (records, response) = match (&fetched.outcome, failure) {
        (PollOutcome::Fresh(response), None) => (record_count(&response.payload), Some(response)),
        _ => (0, None),
    };
    let warnings = |response: &PollResponse| {
        response.parse_warnings.iter().chain(&parse_warnings.named).take(model::wire::MAX_PARSE_WARNINGS).cloned().collect()
    };
    let total = |response: &PollResponse| {
        u32::try_from(response.parse_warnings_total.saturating_add(parse_warnings.total)).unwrap_or(u32::MAX)
    };
    PollEntry {
        endpoint: fetched.request.endpoint(),
        token: fetched.request.token().cloned(),
        at: now,
        took_ms: u64::try_from(fetched.took.as_millis()).unwrap_or(u64::MAX),
        outcome: entry_outcome(fetched, failure),
        status: fetched.status,
        requests: fetched.requests,
        credits: fetched.credits,
        bytes: fetched.bytes,
        version: fetched.version,
        records: u32::try_from(records).unwrap_or(u32::MAX),
        error: failure.map(|failure| failure.message.clone()),
        parse_warnings: response.map(warnings).unwrap_or_default(),
        parse_warnings_total: response.map_or(0, total),
    }
}

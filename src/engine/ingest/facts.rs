//! The records of a payload: their number, their window, and their comparison with the known ones.

use std::collections::HashSet;

use crate::{
    diff::{self, DateWindow, Diff, RecordPoll},
    removal::RemovalProof,
};
use model::{
    change::ChangeKind,
    poll::{Payload, PollRequest},
    rows::{Put, TokenSnapshot},
    supply::{Endpoint, RecordKey, Resource, Timestamp, Tracked},
};

/// Returns the number of records in a payload.
#[must_use]
pub fn record_count(payload: &Payload) -> usize {
    match payload {
        Payload::Tokens(tokens) => tokens.len(),
        Payload::Upcoming(rows) => rows.len(),
        Payload::UnlockEvents(events) => events.len(),
        Payload::Burns(data) => data.burns.items().len(),
        Payload::Buybacks(data) => data.buybacks.items().len(),
        Payload::Allocations(data) => data.allocations.items().len(),
        Payload::Emissions(days) => days.len(),
        Payload::Investors(investors) => investors.len(),
        Payload::Investor(detail) => detail.funding_rounds.items().len(),
    }
}

/// Returns the days that a request names. Only some endpoints take dates.
pub(super) fn requested_window(request: &PollRequest) -> DateWindow {
    match request {
        PollRequest::Token { endpoint: Endpoint::Allocations, .. } => DateWindow::ALL,
        PollRequest::Token { start, end, .. } | PollRequest::Upcoming { start, end } => DateWindow::of(*start, *end),
        PollRequest::TokenList | PollRequest::Investors | PollRequest::Investor { .. } => DateWindow::ALL,
    }
}

/// Returns the days that a response is certain to cover: all but the first and the last requested day, which a server may cut.
pub(super) fn within_first_and_last_day(window: &DateWindow) -> DateWindow {
    DateWindow { first: window.first.and_then(|day| day.succ_opt()), last: window.last.and_then(|day| day.pred_opt()) }
}

/// Returns the records of a first complete response.
pub(super) fn baseline(payload: &Payload, before: &[Tracked], now: Timestamp) -> Diff {
    let put: Vec<Put> = match payload {
        Payload::UnlockEvents(events) => diff::baseline_unlocks(before, events, now),
        Payload::Burns(data) => diff::baseline_burns(data.burns.items()),
        Payload::Buybacks(data) => diff::baseline_buybacks(data.buybacks.items()),
        Payload::Allocations(data) => diff::baseline_allocations(data.allocations.items()),
        Payload::Emissions(days) => diff::baseline_emissions(days),
        Payload::Tokens(_) | Payload::Upcoming(_) | Payload::Investors(_) | Payload::Investor(_) => Vec::new(),
    };
    // The schedule replaces events that `upcoming` showed. Known records of other resources come from another feed and stay, such as
    // daily beside weekly emissions.
    let removed = match payload {
        Payload::UnlockEvents(_) => {
            let kept: HashSet<&RecordKey> = put.iter().map(|put| &put.key).collect();
            before.iter().map(|tracked| &tracked.key).filter(|key| !kept.contains(key)).cloned().collect()
        }
        _ => Vec::new(),
    };
    Diff { put, removed, ..Diff::default() }
}

/// Compares a response with the known records of any resource but unlocks.
pub(super) fn compare_records(
    poll: &RecordPoll<'_>,
    before: &TokenSnapshot,
    proof: &RemovalProof<'_>,
    payload: &Payload,
    header_before: Option<&serde_json::Value>,
) -> Diff {
    let records = &before.records;
    match payload {
        Payload::Burns(data) => diff::diff_burns(poll, records, proof, data.burns.items()),
        Payload::Buybacks(data) => diff::diff_buybacks(poll, records, proof, data.buybacks.items()),
        Payload::Emissions(days) => diff::diff_emissions(poll, records, proof, days),
        Payload::Allocations(data) => {
            let mut diff = diff::diff_allocations(poll, records, proof, data, header_before);
            // The token list shows the max supply too, and its changes are reported from there.
            let (listed, given) = (before.token.item.max_supply.copied(), data.max_supply.copied());
            if listed.and(given).is_some() && diff::max_supply_change(poll.token, listed, given, poll.tolerance).is_none() {
                diff.changes.retain(|change| change.kind != ChangeKind::SupplyChanged);
            }
            diff
        }
        Payload::UnlockEvents(_) | Payload::Tokens(_) | Payload::Upcoming(_) | Payload::Investors(_) | Payload::Investor(_) => {
            Diff::default()
        }
    }
}

/// Returns the burns, buybacks, and funding rounds that a diff adds.
pub(super) fn added_records(before: &[Tracked], diff: &Diff) -> Vec<Tracked> {
    let known: HashSet<&RecordKey> = before.iter().map(|tracked| &tracked.key).collect();
    diff.put
        .iter()
        .filter(|put| matches!(put.record.resource(), Resource::Burn | Resource::Buyback | Resource::Funding))
        .filter(|put| !known.contains(&put.key))
        .map(|put| Tracked { key: put.key.clone(), record: put.record.clone() })
        .collect()
}

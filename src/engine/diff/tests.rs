//! Tests of the diff by example, by property, and with the real corrections in `data/revisions`.

use chrono::{Days, Months, TimeDelta};
use proptest::prelude::*;

use super::*;
use crate::removal::{MIN_HOLD, ProofPolicy, RemovalProof, ResponseQuality};
use model::{
    change::{ChangeKind, Fact},
    supply::{Hold, Precision, Resource, TokenId},
    wire::{
        self, Allocation, AllocationsData, Burn, Buyback, CliffAllocation, CliffUnlocks, CommittedClaim, Emission,
        LinearAllocation, LinearUnlocks, Maybe, UnlockEvent,
    },
};
use testkit::time;

mod books;
mod clauses;
mod events;
mod laws;
mod operations;
mod parts;
mod proof;
mod properties;
mod random;
mod records;
mod roundings;
mod series;
mod stories;
mod truth;

fn now() -> Timestamp {
    time("2026-03-09")
}

fn token() -> TokenId {
    "arbitrum".into()
}

fn cliff(name: &str, amount: f64) -> CliffAllocation {
    CliffAllocation {
        allocation_name: name.to_owned().into(),
        standard_allocation_name: "Founder / Team".to_owned().into(),
        cliff_amount: amount.into(),
        cliff_value: (amount * 0.5).into(),
        reference_price: 0.5.into(),
        unlock_precision: "second".to_owned().into(),
        ..CliffAllocation::default()
    }
}

fn event_at(at: Timestamp, cliffs: Vec<CliffAllocation>, linears: Vec<LinearAllocation>) -> UnlockEvent {
    let total: f64 = cliffs.iter().filter_map(|part| part.cliff_amount.copied()).sum();
    UnlockEvent {
        unlock_date: at.into(),
        token_name: "Arbitrum".to_owned().into(),
        listed_method: "INTERNAL".to_owned().into(),
        data_source: "https://docs.example.com".to_owned().into(),
        linear_unlocks: if linears.is_empty() {
            Maybe::Null
        } else {
            LinearUnlocks { allocation_breakdown: linears.into(), ..LinearUnlocks::default() }.into()
        },
        cliff_unlocks: if cliffs.is_empty() {
            Maybe::Null
        } else {
            CliffUnlocks { cliff_amount: total.into(), allocation_breakdown: cliffs.into(), ..CliffUnlocks::default() }.into()
        },
        latest_update_date: time("2026-01-01").into(),
        ..UnlockEvent::default()
    }
}

fn event(at: &str, parts: &[(&str, f64)]) -> UnlockEvent {
    event_at(time(at), parts.iter().map(|(name, amount)| cliff(name, *amount)).collect(), Vec::new())
}

fn linear(name: &str, begin: &str, end: &str, amount: f64) -> LinearAllocation {
    LinearAllocation {
        allocation_name: name.to_owned().into(),
        linear_amount: amount.into(),
        begin_date: time(begin).into(),
        end_date: time(end).into(),
        ..LinearAllocation::default()
    }
}

fn segment(name: &str, begin: &str, end: &str, amount: f64) -> UnlockEvent {
    event_at(time(begin), Vec::new(), vec![linear(name, begin, end, amount)])
}

/// `count` events, a calendar month apart.
fn monthly(from: &str, count: u32, parts: &[(&str, f64)]) -> Vec<UnlockEvent> {
    (0..count)
        .map(|k| {
            event_at(time(from) + Months::new(k), parts.iter().map(|(name, amount)| cliff(name, *amount)).collect(), Vec::new())
        })
        .collect()
}

fn known(events: &[UnlockEvent]) -> Vec<Tracked> {
    apply(&[], &Diff { put: baseline_unlocks(&[], events, Timestamp::default()), ..Diff::default() })
}

fn diff(before: &[Tracked], after: &[UnlockEvent]) -> Diff {
    diff_unlocks(&UnlockPoll::of(&token(), now()), before, &confirmed_by(&[]), after)
}

/// The removal proof of a complete response, given the earlier `missing` counts, in a feed without a hold.
fn confirmed_by(missing: &[(RecordKey, u32)]) -> RemovalProof<'_> {
    RemovalProof::new(ProofPolicy::default(), ResponseQuality::Complete, missing, None, now())
}

/// A hold that ends as soon as enough responses confirm the removals.
fn accepted_by_time() -> Option<Hold> {
    Some(Hold { since: now() - MIN_HOLD, is_accepted: false })
}

/// Polls until no removal awaits proof. Returns the snapshot and all changes.
fn settle(mut snapshot: Vec<Tracked>, after: &[UnlockEvent], policy: ProofPolicy) -> (Vec<Tracked>, Vec<Change>) {
    let mut missing = Vec::new();
    let mut notified = Vec::new();
    for _ in 0..8 {
        let proof = RemovalProof::new(policy, ResponseQuality::Complete, &missing, accepted_by_time(), now());
        let diff = diff_unlocks(&UnlockPoll::of(&token(), now()), &snapshot, &proof, after);
        snapshot = apply(&snapshot, &diff);
        notified.extend(diff.changes);
        missing = diff.missing;
        if missing.is_empty() {
            return (snapshot, notified);
        }
    }
    panic!("never settles: {missing:?}");
}

/// Returns the changes of a correction, and asserts that the snapshot then has the facts of the response.
#[track_caller]
fn changes_of(before: &[UnlockEvent], after: &[UnlockEvent]) -> Vec<Change> {
    let (snapshot, changes) = settle(known(before), after, ProofPolicy::default());
    assert_same_facts(&snapshot, after);
    let again = diff(&snapshot, after);
    assert!(again.is_empty(), "reported twice: {:?}", again.changes);
    for change in &changes {
        assert!(change.kind.can_happen_to(Resource::Unlock));
        assert!(!change.summary.is_empty());
    }
    changes
}

#[track_caller]
fn only(changes: Vec<Change>, kind: ChangeKind) -> Change {
    let kinds: Vec<(ChangeKind, &str)> = changes.iter().map(|change| (change.kind, change.summary.as_str())).collect();
    assert_eq!(kinds.len(), 1, "{kinds:?}");
    let change = changes.into_iter().next().expect("one");
    assert_eq!(change.kind, kind, "{}", change.summary);
    change
}

#[track_caller]
fn assert_same_facts(snapshot: &[Tracked], after: &[UnlockEvent]) {
    let keys: HashSet<&RecordKey> = snapshot.iter().map(|tracked| &tracked.key).collect();
    assert_eq!(keys.len(), snapshot.len(), "keys are unique");
    let mut kept: Vec<&UnlockEvent> = snapshot
        .iter()
        .map(|tracked| match &tracked.record {
            Record::Unlock(event) => &**event,
            other => panic!("not an unlock: {other:?}"),
        })
        .collect();
    let mut wanted: Vec<&UnlockEvent> = after.iter().collect();
    kept.sort_by_key(|event| event.unlock_date.copied());
    wanted.sort_by_key(|event| event.unlock_date.copied());
    assert_eq!(kept.len(), wanted.len());
    for (a, b) in kept.iter().zip(&wanted) {
        assert!(unlock::same_schedule(a, b, 1e-9), "{a:#?}\n{b:#?}");
    }
}

fn days(change: &Change) -> f64 {
    change.shift_days.expect("a shift")
}

// One event.

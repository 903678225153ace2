//! Tests of removal proof.

use super::*;

fn now() -> Timestamp {
    model::wire::parse_timestamp("2026-03-09").expect("a timestamp")
}

fn keys(count: usize) -> Vec<RecordKey> {
    (0..count).map(|n| format!("record {n}").as_str().into()).collect()
}

fn missing_from(keys: &[RecordKey], responses: u32) -> Vec<(RecordKey, u32)> {
    keys.iter().map(|key| (key.clone(), responses)).collect()
}

fn held(hours: i64, is_accepted: bool) -> Option<Hold> {
    Some(Hold { since: now() - TimeDelta::hours(hours), is_accepted })
}

const CONFIRM_TWICE: ProofPolicy = ProofPolicy::Confirmations(2);

#[test]
fn removal_needs_the_configured_confirmations() {
    let key = &keys(1)[0];
    let is_proven = |policy: ProofPolicy, quality: ResponseQuality, earlier: u32| {
        let earlier = missing_from(std::slice::from_ref(key), earlier);
        RemovalProof::new(policy, quality, &earlier, None, now()).is_proven(key)
    };
    use ResponseQuality::*;
    for (policy, quality, needed) in [
        (CONFIRM_TWICE, Complete, Some(2)),
        (ProofPolicy::Confirmations(0), Complete, Some(1)),
        (CONFIRM_TWICE, Gappy, Some(6)),
        (CONFIRM_TWICE, Unreadable, None),
        (CONFIRM_TWICE, Partial, None),
        (CONFIRM_TWICE, OtherView, Some(1)),
        (ProofPolicy::Immediate, Complete, Some(1)),
        (ProofPolicy::Immediate, Gappy, Some(1)),
        (ProofPolicy::Immediate, Unreadable, None),
    ] {
        for earlier in 0..8 {
            let expected = needed.is_some_and(|needed| earlier + 1 >= needed);
            assert_eq!(is_proven(policy, quality, earlier), expected, "{policy:?}, {quality:?}, missing from {earlier} before");
        }
    }
}

/// The definition of "most" in section 12 of the design, for every kind of record.
#[test]
fn hold_needs_more_than_half_of_the_records_and_at_least_two() {
    let proof = RemovalProof::new(CONFIRM_TWICE, ResponseQuality::Complete, &[], None, now());
    for (missing, count, is_held) in [(1, 1, false), (2, 2, true), (2, 3, true), (2, 4, false), (3, 5, true), (3, 6, false)] {
        let keys = keys(missing);
        assert_eq!(proof.must_hold(&keys.iter().collect::<Vec<_>>(), count), is_held, "{missing} of {count}");
    }
}

#[test]
fn hold_ends_after_a_day_and_four_responses_or_by_acceptance() {
    let keys = keys(3);
    let missing: Vec<&RecordKey> = keys.iter().collect();
    let is_held = |hold: Option<Hold>, earlier: u32, quality: ResponseQuality| {
        RemovalProof::new(CONFIRM_TWICE, quality, &missing_from(&keys, earlier), hold, now()).must_hold(&missing, 4)
    };
    use ResponseQuality::*;
    assert!(is_held(None, 9, Complete), "it was never held");
    assert!(is_held(held(23, false), 9, Complete), "too early");
    assert!(is_held(held(24, false), 2, Complete), "too few responses");
    assert!(!is_held(held(24, false), 3, Complete));
    assert!(is_held(held(24, false), 4, Gappy), "gaps need more confirmations");
    assert!(!is_held(held(24, false), 5, Gappy));
    assert!(!is_held(held(0, true), 0, Complete), "accepted");
    assert!(is_held(held(0, true), 9, Unreadable), "accepted, but the records may be among the unreadable ones");
    assert!(!is_held(None, 0, Partial), "a selection of the records holds nothing");
}

#[test]
fn record_that_is_not_proven_keeps_the_hold_of_all() {
    let keys = keys(2);
    let earlier = [(keys[0].clone(), 7), (keys[1].clone(), 2)];
    let proof = RemovalProof::new(CONFIRM_TWICE, ResponseQuality::Complete, &earlier, held(30, false), now());
    assert!(proof.must_hold(&[&keys[0], &keys[1]], 2));
}

#[test]
fn unreadable_response_changes_no_count() {
    let keys = keys(2);
    let earlier = missing_from(&keys[..1], 1);
    let settled = |quality: ResponseQuality| {
        let proof = RemovalProof::new(CONFIRM_TWICE, quality, &earlier, None, now());
        proof.settle(keys.iter().map(|key| proof.counted(key)).collect())
    };
    assert_eq!(settled(ResponseQuality::Unreadable), earlier);
    assert_eq!(settled(ResponseQuality::Complete), [(keys[0].clone(), 2), (keys[1].clone(), 1)]);
}

#[test]
fn release_names_its_reason() {
    let keys = keys(2);
    let feed = |hold: Option<Hold>| FeedState { missing: missing_from(&keys, 4), hold, ..FeedState::default() };
    let removed = Diff { removed: keys.clone(), ..Diff::default() };
    let confirmed = Release::Confirmed { responses: 5, held_for: TimeDelta::hours(30) };
    assert_eq!(next_hold(&feed(held(30, false)), &removed, now()), (None, Some(confirmed)));
    assert_eq!(next_hold(&feed(held(1, true)), &removed, now()), (None, Some(Release::Accepted)));
    assert_eq!(next_hold(&feed(held(1, false)), &Diff::default(), now()), (None, Some(Release::Returned)));
    assert_eq!(next_hold(&feed(None), &removed, now()), (None, None));
}

#[test]
fn hold_starts_once_and_covers_removals_that_still_wait_for_proof() {
    let keys = keys(2);
    let response = Diff { held: true, missing: missing_from(&keys, 1), ..Diff::default() };
    let begun = Some(Hold { since: now(), is_accepted: false });
    assert_eq!(next_hold(&FeedState::default(), &response, now()), (begun, None));
    let feed = |hold: Option<Hold>| FeedState { hold, ..FeedState::default() };
    assert_eq!(next_hold(&feed(held(5, false)), &response, now()), (held(5, false), None));
    let waiting = Diff { missing: missing_from(&keys, 1), ..Diff::default() };
    assert_eq!(next_hold(&feed(held(1, true)), &waiting, now()), (held(1, true), None));
    assert_eq!(next_hold(&feed(None), &waiting, now()), (None, None), "few removals are not held");
}

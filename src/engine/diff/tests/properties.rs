//! Properties of every schedule, and of the real corrections in `data/revisions`.

use super::*;

#[test]
fn ten_thousand_tranches_make_few_changes() {
    let at = |k: u64| time("2000-01-01") + Days::new(k);
    let make = |offset: u64, amount: f64| -> Vec<UnlockEvent> {
        (0..10_000).map(|k| event_at(at(k + offset), vec![cliff("Farm", amount)], Vec::new())).collect()
    };
    let before = make(0, 10.0);
    only(changes_of(&before, &make(90, 10.0)), ChangeKind::SeriesShifted);
    // Neither dates nor amounts nor counts match.
    let other: Vec<UnlockEvent> = (0..7_000_u32)
        .map(|k| {
            event_at(
                at(u64::from(k) + 3) + chrono::TimeDelta::hours(i64::from(k % 23)),
                vec![cliff("Farm", f64::from(k) + 0.5)],
                Vec::new(),
            )
        })
        .collect();
    assert!(changes_of(&before, &other).len() <= 2);
}

/// An allocation leaves the schedule while another gets other dates. Some events keep their date, but lose the tranche of the former.
#[test]
fn held_correction_is_applied_at_once_when_its_hold_ends() {
    let series = |name: usize, day: u16, amount: u8, count: u16, step: u16| -> Vec<Part> {
        (0..count).map(|k| Part { name, day: day + k * step, amount }).collect()
    };
    let airdrop = [series(3, 1, 1, 1, 0), series(3, 146, 1, 13, 21)].concat();
    let before = build(&[series(1, 13, 3, 15, 37), airdrop].concat());
    let after = build(&series(1, 9, 2, 16, 21));
    let (mut snapshot, mut missing, mut reports) = (known(&before), Vec::new(), Vec::new());
    for response in 0..8 {
        let proof = RemovalProof::new(ProofPolicy::default(), ResponseQuality::Complete, &missing, accepted_by_time(), now());
        let diff = diff_unlocks(&UnlockPoll::of(&token(), now()), &snapshot, &proof, &after);
        snapshot = apply(&snapshot, &diff);
        missing = diff.missing;
        if !diff.changes.is_empty() {
            reports.push((response, diff.changes));
        }
    }
    assert_same_facts(&snapshot, &after);
    let [(response, changes)] = &reports[..] else { panic!("reported in parts: {reports:?}") };
    assert!(*response > 0, "the removal needs proof");
    let kinds: Vec<ChangeKind> = changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Removed, ChangeKind::Resized], "{changes:?}");
}

// Properties.

#[derive(Clone, Debug)]
struct Part {
    name: usize,
    day: u16,
    amount: u8,
}

const NAMES: [&str; 4] = ["Team", "Investors", "Community Fund", "Airdrop"];

fn build(parts: &[Part]) -> Vec<UnlockEvent> {
    let mut days: std::collections::BTreeMap<u16, Vec<CliffAllocation>> = std::collections::BTreeMap::new();
    for part in parts {
        days.entry(part.day).or_default().push(cliff(NAMES[part.name], f64::from(part.amount) * 1.5e6));
    }
    let mut events: Vec<UnlockEvent> = days
        .into_iter()
        .map(|(day, mut cliffs)| {
            cliffs.sort_by(|a, b| a.allocation_name.as_str().cmp(&b.allocation_name.as_str()));
            event_at(time("2025-06-01") + Days::new(u64::from(day)), cliffs, Vec::new())
        })
        .collect();
    // Every schedule has a segment, so that no response looks like one of a version without segments.
    events.push(segment("Ops", "2025-05-01T12:00:00Z", "2029-05-01", 1.0e6));
    events.sort_by_key(|event| event.unlock_date.copied());
    events
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let one = (0..NAMES.len(), 0_u16..700, 1_u8..6).prop_map(|(name, day, amount)| vec![Part { name, day, amount }]);
    let series = (0..NAMES.len(), 0_u16..200, 1_u8..6, 1_u16..20, 7_u16..40)
        .prop_map(|(name, day, amount, count, step)| (0..count).map(|k| Part { name, day: day + k * step, amount }).collect());
    prop::collection::vec(prop_oneof![one, series], 1..6).prop_map(|all: Vec<Vec<Part>>| all.concat())
}

/// A schedule and its correction: some parts moved, resized, renamed, dropped, or added; or a different schedule.
fn corrected() -> impl Strategy<Value = (Vec<Part>, Vec<Part>)> {
    let edit = (0..6_u8, any::<prop::sample::Index>(), 1_u16..60, 1_u8..6);
    prop_oneof![
        3 => (parts(), prop::collection::vec(edit, 0..4)).prop_map(|(before, edits)| {
            let mut after = before.clone();
            for (what, index, days, amount) in edits {
                let k = index.index(after.len().max(1));
                let Some(part) = after.get(k).cloned() else { continue };
                match what {
                    0 => after[k].day += days,
                    1 => after[k].amount = amount,
                    2 => after.iter_mut().filter(|other| other.name == part.name).for_each(|other| other.day += days),
                    3 => after.iter_mut().filter(|other| other.name == part.name).for_each(|other| other.amount *= 2),
                    4 if after.len() > 1 => { after.remove(k); }
                    _ => after.push(Part { day: part.day + days, ..part }),
                }
            }
            (before, after)
        }),
        1 => (parts(), parts()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn schedule_does_not_differ_from_itself(schedule in parts(), seed in any::<u64>()) {
        let events = build(&schedule);
        let snapshot = known(&events);
        prop_assert!(diff(&snapshot, &events).is_empty());
        // The order of rows does not matter either.
        let mut shuffled = events;
        let mut state = seed;
        for k in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(k, usize::try_from(state >> 33).unwrap() % (k + 1));
        }
        let mut seen = diff(&snapshot, &shuffled);
        seen.anomalies = RowAnomalies::default();
        prop_assert!(seen.is_empty());
    }

    #[test]
    fn price_is_never_a_schedule_change(schedule in parts(), price in 0.001_f64..1e4) {
        let before = build(&schedule);
        let mut after = before.clone();
        for event in &mut after {
            if let Maybe::Value(cliffs) = &mut event.cliff_unlocks {
                cliffs.cliff_value = price.into();
                cliffs.value_to_market_cap = price.into();
                if let Maybe::Value(parts) = &mut cliffs.allocation_breakdown {
                    for part in parts {
                        part.cliff_value = price.into();
                        part.reference_price = Maybe::Null;
                    }
                }
            }
        }
        let seen = diff(&known(&before), &after);
        prop_assert!(seen.changes.is_empty());
        prop_assert!(seen.put.iter().all(|put| !put.is_new_version));
        prop_assert_eq!(seen.put.len(), after.iter().filter(|event| event.cliff_unlocks.get().is_some()).count());
    }

    #[test]
    fn diff_leads_from_one_schedule_to_the_other((before, after) in corrected()) {
        let (before, after) = (build(&before), build(&after));
        let (snapshot, changes) = settle(known(&before), &after, ProofPolicy::Confirmations(1));
        assert_same_facts(&snapshot, &after);
        // Each difference is reported once.
        let differs = before.len() != after.len()
            || before.iter().zip(&after).any(|(a, b)| !unlock::same_schedule(a, b, 1e-9));
        prop_assert_eq!(differs, !changes.is_empty(), "{:?}", changes.iter().map(|change| &change.summary).collect::<Vec<_>>());
        prop_assert!(changes.len() <= 5);
        prop_assert!(diff(&snapshot, &after).is_empty());
        // A stricter proof policy leads to the same snapshot.
        let (snapshot, _) = settle(known(&before), &after, ProofPolicy::default());
        assert_same_facts(&snapshot, &after);
    }

    #[test]
    fn row_order_does_not_affect_changes((before, after) in corrected()) {
        let (snapshot, after) = (known(&build(&before)), build(&after));
        let mut reversed = after.clone();
        reversed.reverse();
        let (mut one, mut other) = (diff(&snapshot, &after), diff(&snapshot, &reversed));
        one.anomalies = RowAnomalies::default();
        other.anomalies = RowAnomalies::default();
        prop_assert_eq!(one, other);
    }

    #[test]
    fn missing_events_await_proof_and_are_reported_once(schedule in parts(), left_out in prop::collection::vec(any::<prop::sample::Index>(), 1..30)) {
        let before = build(&schedule);
        let mut after = before.clone();
        for index in left_out {
            let k = index.index(after.len());
            // The segment stays. Without any, the response would look like one without segments.
            if after[k].cliff_unlocks.get().is_some() {
                after.remove(k);
            }
        }
        let snapshot = known(&before);
        let gone = before.len() - after.len();
        let first = diff(&snapshot, &after);
        prop_assert!(first.changes.is_empty() && first.put.is_empty() && first.removed.is_empty(), "{:?}", first.changes);
        prop_assert_eq!(first.missing.len(), gone);
        prop_assert!(first.missing.iter().all(|(_, count)| *count == 1));
        // Once proven, the removal is reported once.
        let (_, changes) = settle(snapshot, &after, ProofPolicy::default());
        prop_assert_eq!(changes.len(), usize::from(gone > 0), "{:?}", changes.iter().map(|change| &change.summary).collect::<Vec<_>>());
    }
}

// Real corrections.

#[derive(serde::Deserialize)]
struct Version {
    data: Vec<UnlockEvent>,
}

#[test]
fn each_real_correction_makes_one_or_two_changes() {
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("data/revisions");
    let mut corrections = 0;
    for entry in std::fs::read_dir(folder).expect("the bundled revisions") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("text");
        let versions: Vec<Version> = text.lines().map(|line| serde_json::from_str(line).expect("a version")).collect();
        for two in versions.windows(2) {
            let changes = changes_of(&two[0].data, &two[1].data);
            let summaries: Vec<&str> = changes.iter().map(|change| change.summary.as_str()).collect();
            assert!((1..=2).contains(&changes.len()), "{}: {summaries:?}", path.display());
            corrections += 1;
        }
    }
    assert_eq!(corrections, 71);
}

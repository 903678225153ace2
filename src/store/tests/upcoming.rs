//! The list of upcoming unlocks: random schedules, page by page, compared with the sums of coming supply.

use std::collections::HashSet;

use chrono::TimeDelta;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::support::*;
use model::*;

fn date(hours: i64) -> String {
    (now() + TimeDelta::hours(hours)).to_rfc3339()
}

fn hours(rng: &mut fastrand::Rng, from: i64, to: i64) -> i64 {
    rng.i64(from..to) * 6
}

/// An event with a cliff unlock, linear unlocks, or both. Some amounts and values are unknown.
fn event(rng: &mut fastrand::Rng) -> Record {
    let begin = hours(rng, -200, 400);
    let precision = *rng.choice(&["second", "day", "week", "month", "to be determined"]).unwrap_or(&"second");
    let maybe = |rng: &mut fastrand::Rng| (rng.u8(..8) > 0).then(|| f64::from(rng.u32(1..1_000_000)));
    let cliff = rng.bool().then(|| {
        let (amount, value) = (maybe(rng), maybe(rng));
        json!({"cliffAmount": amount, "cliffValue": value, "allocationBreakdown": [{"allocationName": "Team", "cliffAmount": amount,
            "cliffValue": value, "unlockPrecision": precision, "referencePrice": 2.0, "referencePriceUpdatedTime": date(-5)}]})
    });
    let mut parts: Vec<Value> = Vec::new();
    for allocation in ["Team", "Treasury"] {
        if cliff.is_some() && rng.bool() {
            continue;
        }
        let (mut start, rate) = (begin + hours(rng, -1, 2), f64::from(rng.u16(1..5)));
        for _ in 0..rng.u8(0..3) {
            // Adjoining segments, some of them with the same rate.
            let days = rng.u16(1..60);
            let rate = if rng.bool() { rate } else { rate * 2.0 };
            let end = start + i64::from(days) * 24;
            let amount = (rng.u8(..8) > 0).then(|| rate * f64::from(days));
            parts.push(
                json!({"allocationName": allocation, "beginDate": date(start), "endDate": date(end), "linearAmount": amount,
                "unlockPrecision": if rng.u8(..9) > 0 { "second" } else { "month" }}),
            );
            start = end;
        }
    }
    let linear = (!parts.is_empty()).then(|| json!({"allocationBreakdown": parts}));
    Record::Unlock(read(json!({"unlockDate": date(begin), "cliffUnlocks": cliff, "linearUnlocks": linear})))
}

pub(super) fn token(rng: &mut fastrand::Rng, number: usize) -> FeedUpdate {
    let put = (0..rng.u8(1..6)).map(|key| put(&format!("k{key}"), event(rng))).collect();
    let ahead = json!({"readAt": now(), "until": date(24 * 90), "runs": [
        {"allocation": "Rewards", "start": "2026-03-01", "end": "2026-03-20", "perDay": 3.0},
        {"allocation": "Rewards", "start": "2026-03-20", "end": "2026-06-07", "perDay": 4.0}]});
    let header = rng.bool().then(|| json!({"shownLinear": true, "needsAhead": true, "linearAhead": ahead}));
    FeedUpdate { header, ..schedule(&format!("token-{number}"), put) }
}

fn filter(days: i64, limit: u32, after: Option<UnlockCursor>) -> UnlockListFilter {
    let unlocks = UpcomingFilter { tokens: None, from: now(), until: Some(now() + TimeDelta::days(days)), limit };
    UnlockListFilter { unlocks, kind: None, min_value: None, after }
}

fn identity(row: &ListedUnlock) -> String {
    match row {
        ListedUnlock::Cliff(of) => format!("cliff {} {}", of.token.id, of.tracked.key),
        ListedUnlock::Linear(of) => {
            format!("linear {} {} {} {} {:?}", of.token.id, of.allocation, of.starts_at, of.ends_at, of.per_day)
        }
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1.0)
}

#[tokio::test]
async fn pages_of_random_schedules_show_each_unlock_once_and_add_up_to_the_coming_supply() {
    for seed in 0..12 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let directory = TempDir::new().expect("a directory");
        let store = owned(&directory).await;
        let feeds = (0..8).map(|number| token(&mut rng, number)).collect();
        store.commit(Commit { at: now(), feeds, ..Commit::default() }).await.expect("committed");
        for days in [7, 30] {
            let whole = store.upcoming(filter(days, 1000, None)).await.expect("read");
            assert_eq!(whole.total, whole.rows.len() as u64, "seed {seed}");
            let window = filter(days, 0, None).unlocks.window();
            let times: Vec<_> =
                whole.rows.iter().map(|row| (row.sort_at(window), matches!(row, ListedUnlock::Linear(_)))).collect();
            assert!(times.is_sorted(), "seed {seed}: {times:?}");
            let identities: Vec<String> = whole.rows.iter().map(identity).collect();
            assert_eq!(identities.iter().collect::<HashSet<_>>().len(), identities.len(), "seed {seed}: {identities:#?}");
            for limit in [1, 3, 7] {
                let (mut walked, mut after) = (Vec::new(), None);
                while walked.len() < identities.len() {
                    let page = store.upcoming(filter(days, limit, after)).await.expect("read");
                    assert!(!page.rows.is_empty() && page.total == whole.total, "seed {seed}");
                    walked.extend(page.rows.iter().map(identity));
                    after = page.rows.last().and_then(|row| row.cursor(window));
                }
                assert_eq!(walked, identities, "seed {seed}");
            }

            let (totals, _) = store.supply_totals(now(), vec![window], all_tokens(), now()).await.expect("read");
            let expected = totals.windows[0];
            let mut sum = SupplyAhead::default();
            for row in &whole.rows {
                match row {
                    ListedUnlock::Cliff(of) => {
                        let piece = of.tracked.record.unlock().and_then(CliffPiece::of).expect("a cliff unlock");
                        let part = if of.is_counted(window) { &mut sum.cliff } else { &mut sum.inexact };
                        part.add(piece.amount, piece.value);
                    }
                    ListedUnlock::Linear(of) => sum.linear.add(of.amount, of.value_of(of.amount)),
                }
            }
            for (found, wanted) in [(sum.cliff, expected.cliff), (sum.linear, expected.linear), (sum.inexact, expected.inexact)] {
                assert!(
                    close(found.value, wanted.value) && close(found.amount, wanted.amount),
                    "seed {seed}: {found:?} {wanted:?}"
                );
                let counts = |of: UnlockSum| (of.count, of.unsized_count, of.unvalued_count);
                assert_eq!(counts(found), counts(wanted), "seed {seed}");
            }
        }
    }
}

fn linear(date_of: &str, parts: &[(&str, &str, &str, f64)], cliff: Option<f64>) -> Record {
    let parts: Vec<Value> = parts
        .iter()
        .map(|(allocation, begin, end, amount)| {
            json!({"allocationName": allocation, "beginDate": begin, "endDate": end, "linearAmount": amount, "referencePrice": 0.5,
                "unlockPrecision": "second"})
        })
        .collect();
    let cliff = cliff.map(|value| json!({"cliffAmount": value, "cliffValue": value, "allocationBreakdown": []}));
    Record::Unlock(read(json!({"unlockDate": date_of, "cliffUnlocks": cliff, "linearUnlocks": {"allocationBreakdown": parts}})))
}

#[tokio::test]
async fn linear_unlocks_have_rows_of_their_own_and_filters_apply_to_both_types() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let feeds = vec![
        schedule(
            "alpha",
            vec![
                put("a", linear("2026-03-01", &[("Team", "2026-03-01", "2026-03-21", 200.0)], None)),
                put(
                    "b",
                    linear(
                        "2026-03-21",
                        &[("Team", "2026-03-21", "2026-03-31", 100.0), ("Treasury", "2026-03-21", "2026-04-10", 20.0)],
                        Some(50.0),
                    ),
                ),
            ],
        ),
        schedule(
            "beta",
            vec![
                put("a", unlock("2026-03-10", 3.0)),
                put("past", linear("2026-01-01", &[("Team", "2026-01-01", "2026-03-09", 9.0)], None)),
            ],
        ),
    ];
    store.commit(at(Commit { feeds, ..Commit::default() })).await.expect("committed");
    let shown = async |filter: UnlockListFilter| {
        let found = store.upcoming(filter).await.expect("read");
        assert_eq!(found.total, found.rows.len() as u64);
        let row = |row: &ListedUnlock| match row {
            ListedUnlock::Cliff(of) => format!("{} {}", of.token.id, of.tracked.key),
            ListedUnlock::Linear(of) => {
                let (day, key) =
                    (of.ends_at.format("%-d %b"), of.event.as_ref().map(|event| event.key.as_str()).unwrap_or_default());
                format!(
                    "{} {} from {key} until {day}: {:.1?}, {:.1?}",
                    of.token.id,
                    of.allocation,
                    of.amount,
                    of.value_of(of.amount)
                )
            }
        };
        found.rows.iter().map(row).collect::<Vec<_>>()
    };
    let team = "alpha Team from a until 31 Mar: Some(220.0), Some(110.0)";
    let treasury = "alpha Treasury from b until 10 Apr: Some(20.0), Some(10.0)";
    let unbounded =
        UnlockListFilter { unlocks: UpcomingFilter { until: None, ..filter(0, 9, None).unlocks }, ..filter(0, 9, None) };
    assert_eq!(shown(unbounded.clone()).await, [team, "beta a", "alpha b", treasury]);
    let week = "alpha Team from a until 31 Mar: Some(70.0), Some(35.0)";
    assert_eq!(shown(filter(7, 9, None)).await, [week, "beta a"]);
    let of_kind = |kind| UnlockListFilter { kind: Some(kind), ..unbounded.clone() };
    assert_eq!(shown(of_kind(UnlockKind::Cliff)).await, ["beta a", "alpha b"]);
    assert_eq!(shown(of_kind(UnlockKind::Linear)).await, [team, treasury]);
    assert_eq!(shown(UnlockListFilter { min_value: Some(50.0), ..unbounded.clone() }).await, [team, "alpha b"]);
    let of_token = UpcomingFilter { tokens: Some(vec!["beta".into()]), ..unbounded.unlocks.clone() };
    assert_eq!(shown(UnlockListFilter { unlocks: of_token, ..unbounded }).await, ["beta a"]);
}

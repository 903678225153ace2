use tempfile::TempDir;

use super::support::*;
use crate::sql::Row;
use crate::{ErrorKind, Store};
use model::*;

/// An event with a value (USD) and a share of the market cap (percent).
fn priced(date: &str, value: f64, share: f64) -> Record {
    let Record::Unlock(event) = unlock(date, 1000.0) else { panic!("an unlock") };
    let mut event = (*event).clone();
    let cliffs = event.cliff_unlocks.get_mut().expect("cliffs");
    (cliffs.cliff_value, cliffs.value_to_market_cap) = (value.into(), share.into());
    Record::Unlock(std::sync::Arc::new(event))
}

const DATES: [&str; 3] = ["2026-03-16T13:00:00Z", "2026-03-20T13:00:00Z", "2026-03-26T13:00:00Z"];

fn schedule_at(values: [f64; 3], share: f64, is_new_version: bool) -> FeedUpdate {
    let put = |(date, value): (&str, f64)| Put { is_new_version, ..put(date, priced(date, value, share)) };
    schedule("arbitrum", DATES.into_iter().zip(values).map(put).collect())
}

/// Returns the sizes in the rows, and the drift of the token.
fn written(store: &Store) -> (Vec<f64>, Option<(f64, f64)>) {
    let number = |row: &Row<'_>, at: usize| -> f64 { row.get(at).expect("a number") };
    let values = rows(store, "SELECT value FROM record ORDER BY starts_at", move |row| number(row, 0));
    let drift = rows(store, "SELECT value, share FROM drift", move |row| (number(row, 0), number(row, 1)));
    (values, drift.into_iter().next())
}

/// Returns the value of the cliff unlocks in the next 30 days, of all tokens and of the first one in the list.
async fn sum_ahead(store: &Store) -> (f64, f64) {
    let (all, _) = store.supply_totals(now(), supply_windows(now()), all_tokens(), now()).await.expect("read");
    let filter = TokenFilter {
        text: String::new(),
        tokens: None,
        sort: TokenSort::Value,
        at: now(),
        limit: 9,
        offset: 0,
        seen: SeenTokens::default(),
    };
    let list = store.token_list(filter).await.expect("read");
    (all.windows[1].cliff.value, list.rows[0].supply.windows[1].cliff.value)
}

#[tokio::test]
async fn common_price_change_only_updates_drift() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let write = |update| store.commit(at(Commit { feeds: vec![update], ..Commit::default() }));
    let (first, second, third) = ([100.0, 400.0, 200.0], [110.0, 440.0, 220.0], [110.0, 440.0, 900.0]);
    write(schedule_at(first, 2.0, true)).await.expect("committed");
    assert_eq!(written(&store), (first.to_vec(), None));

    write(schedule_at(second, 3.0, false)).await.expect("committed");
    let (rows, drift) = written(&store);
    assert_eq!((rows, drift.expect("it drifted")), (first.to_vec(), (1.1, 1.5)));
    let (ahead, list) = sum_ahead(&store).await;
    assert!((ahead - 770.0).abs() < 1e-6 && (list - 770.0).abs() < 1e-6, "{ahead} {list}");
    let known = store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect("read").remove(0);
    let values: Vec<_> = known.records.iter().map(|tracked| tracked.record.unlock().and_then(|of| of.cliff_value())).collect();
    assert_eq!(values, second.map(Some), "each event has the latest value");
    assert_eq!(store.versions("arbitrum".into()).await.expect("read").len(), 3, "price changes add no version");

    write(schedule_at(third, 3.0, false)).await.expect("committed");
    assert_eq!(written(&store), (third.to_vec(), Some((1.0, 1.0))), "one price moved alone, so all rows are written");
    assert_eq!(sum_ahead(&store).await, (1450.0, 1450.0));

    let mut part = schedule_at([121.0, 0.0, 0.0], 3.3, false);
    part.put.truncate(1);
    write(part).await.expect("committed");
    let (ahead, _) = sum_ahead(&store).await;
    assert_eq!(ahead, 121.0 + 440.0 + 900.0, "the other events are unchanged");
}

#[tokio::test]
async fn event_added_after_drift_has_correct_size() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let write = |update| store.commit(at(Commit { feeds: vec![update], ..Commit::default() }));
    write(schedule_at([100.0, 400.0, 200.0], 2.0, true)).await.expect("committed");
    write(schedule_at([50.0, 200.0, 100.0], 2.0, false)).await.expect("committed");
    let new = put("new", priced("2026-03-18T00:00:00Z", 70.0, 1.0));
    write(schedule("arbitrum", vec![new])).await.expect("committed");
    let (ahead, list) = sum_ahead(&store).await;
    assert!((ahead - 420.0).abs() < 1e-9 && (list - 420.0).abs() < 1e-9, "{ahead} {list}");
}

#[tokio::test]
async fn prune_deletes_old_versions_and_keeps_current_ones() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let step = |day: i64, amount: f64| {
        let put = DATES.map(|date| put(date, unlock(date, amount))).to_vec();
        let commit =
            Commit { at: now() + chrono::TimeDelta::days(day), feeds: vec![schedule("arbitrum", put)], ..Commit::default() };
        store.commit(commit)
    };
    for (day, amount) in [(0, 1.0), (1, 2.0), (5, 3.0), (6, 3.0)] {
        step(day, amount).await.expect("committed");
    }
    let versions = store.versions("arbitrum".into()).await.expect("read");
    let amounts: Vec<_> = versions.iter().map(|version| version.record.as_ref()?.unlock()?.cliff_amount()).collect();
    assert_eq!(amounts, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0].map(Some), "an unchanged event adds no version");
    let days = |days: u64| std::time::Duration::from_secs(days * 86_400);
    let pruned = store.prune(now() + chrono::TimeDelta::days(8), days(5), days(5)).await.expect("pruned");
    assert_eq!(pruned.versions, 3);
    assert_eq!(store.versions("arbitrum".into()).await.expect("read").len(), 6);
}

#[tokio::test]
async fn damaged_schedule_is_reported_without_blocking_other_reads() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    store.commit(at(Commit { feeds: vec![schedule_at([1.0; 3], 1.0, true)], ..Commit::default() })).await.expect("committed");
    let bytes = if server().is_some() { "'\\x01ff'" } else { "x'01ff'" };
    change(&store, &format!("UPDATE schedule SET body = {bytes}"));
    let error = store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect_err("damaged");
    assert!(error.kind() == ErrorKind::Unreadable && error.to_string().contains("arbitrum"), "{error:?}");
    assert!(store.tokens(vec!["arbitrum".into()], vec![Resource::Burn]).await.is_ok());
}

#[tokio::test]
async fn acknowledgement_fact_comes_from_the_schedule() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let mut alert = full_alert("s");
    (alert.state, alert.resolution, alert.ends_at, alert.key) = (AlertState::Firing, None, None, Some(DATES[0].into()));
    let id = alert.id.clone();
    let commit = Commit { feeds: vec![schedule_at([1.0; 3], 1.0, true)], alerts: vec![alert], ..Commit::default() };
    store.commit(at(commit)).await.expect("committed");

    store.acknowledge(id.as_str().to_owned(), "ann".into(), String::new(), now()).await.expect("acknowledged");
    let fact: String = rows(&store, "SELECT fact FROM ack", |row| row.get(0).expect("a fact")).remove(0);
    assert!(fact.contains("2026-03-16"), "{fact}");
}

/// An older program cannot read a field that it does not know, and would report the schedule as damaged. It refuses a newer schema instead.
#[test]
fn fields_of_packed_schedules_belong_to_a_schema() {
    let count = |fields: &[&str]| fields.len();
    let known = [
        count(wire::UnlockEvent::FIELDS),
        count(wire::CliffUnlocks::FIELDS),
        count(wire::CliffAllocation::FIELDS),
        count(wire::LinearUnlocks::FIELDS),
        count(wire::LinearAllocation::FIELDS),
        count(wire::CommittedClaim::FIELDS),
    ];
    let schema = crate::schema::DAEMON.version();
    assert_eq!((schema, known), (9, [10, 8, 9, 7, 12, 3]), "a new field needs a new migration; then update the expected values");
}

/// Returns a schedule at new prices. Some events are left out, and some sizes are unknown. If `is_new_version`, the dates differ too.
fn random_schedule(rng: &mut fastrand::Rng, dates: &mut [&'static str; 3], is_new_version: bool) -> FeedUpdate {
    if is_new_version {
        dates.fill_with(|| rng.choice(&["2026-01-01T00:00:00Z", DATES[0], DATES[1], DATES[2]]).copied().unwrap_or_default());
    }
    let price = rng.choice(&[0.0, 0.5, 1.0, 1.1, 3e9]).copied().unwrap_or_default();
    let (has_values, has_shares) = (rng.u8(..4) > 0, rng.u8(..4) > 0);
    let put = dates.iter().zip([100.0, 400.0, 200.0]).enumerate().filter_map(|(index, (date, amount))| {
        let Record::Unlock(event) = unlock(date, amount) else { panic!("an unlock") };
        let mut event = (*event).clone();
        let cliffs = event.cliff_unlocks.get_mut().expect("cliffs");
        let is_known = has_values && rng.u8(..6) > 0;
        cliffs.cliff_value = wire::Maybe::or_null(is_known.then_some(amount * price));
        cliffs.value_to_market_cap = wire::Maybe::or_null((is_known && has_shares).then_some(price));
        let put = Put { is_new_version, ..put(&format!("k{index}"), Record::Unlock(std::sync::Arc::new(event))) };
        (is_new_version || rng.u8(..6) > 0).then_some(put)
    });
    schedule("arbitrum", put.collect())
}

#[tokio::test]
async fn sums_follow_the_schedule_through_changes_of_prices_and_dates() {
    for seed in 0..40 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let directory = TempDir::new().expect("a directory");
        let store = owned(&directory).await;
        let mut dates = DATES;
        for step in 0..12 {
            let feeds = vec![random_schedule(&mut rng, &mut dates, step % 3 == 0)];
            store.commit(at(Commit { feeds, ..Commit::default() })).await.expect("committed");
            let known = store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect("read").remove(0);
            let ahead = known.records.iter().filter_map(|tracked| tracked.record.unlock());
            let ahead = ahead.filter(|event| event.unlock_date.copied().is_some_and(|date| date > now()));
            let expected: f64 = ahead.filter_map(wire::UnlockEvent::cliff_value).sum();
            let (all, list) = sum_ahead(&store).await;
            let is_equal = |sum: f64| (sum - expected).abs() <= 0.05 + expected * 1e-8;
            assert!(is_equal(all) && is_equal(list), "seed {seed}, step {step}: {all} and {list}, expected {expected}");
        }
    }
}

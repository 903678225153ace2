//! The times at which calendar entries changed, from which SEQUENCE is derived: they rise with each change, also in one second.

use chrono::TimeDelta;
use serde_json::json;
use tempfile::TempDir;

use super::support::*;
use crate::Store;
use model::*;

/// An event with a cliff unlock and a linear unlock of the same allocation.
fn event(allocation: &str, amount: f64) -> Record {
    let date = |days: i64| (now() + TimeDelta::days(days)).to_rfc3339();
    Record::Unlock(read(json!({
        "unlockDate": date(1),
        "cliffUnlocks": {"cliffAmount": amount, "allocationBreakdown": [
            {"allocationName": allocation, "cliffAmount": amount, "unlockPrecision": "second"}]},
        "linearUnlocks": {"allocationBreakdown": [
            {"allocationName": allocation, "beginDate": date(1), "endDate": date(9), "linearAmount": amount, "unlockPrecision": "second"}]},
    })))
}

/// Commits a poll of the schedule, 100 milliseconds after the one before.
async fn commit(store: &Store, step: i64, put: Vec<Put>, removed: &[&str]) {
    let at = now() + TimeDelta::milliseconds(100 * step);
    let feed = FeedUpdate { removed: removed.iter().map(|key| RecordKey::from(*key)).collect(), ..schedule("sui", put) };
    let polls = vec![PollEntry { at, ..poll(Endpoint::UnlockEvents, Some("sui")) }];
    store.commit(Commit { at, feeds: vec![feed], polls, ..Commit::default() }).await.expect("committed");
}

/// Returns the times of the last change of the cliff unlock and of the linear unlocks of an event. `None` if they never changed.
async fn changed_at(store: &Store, of: &'static str) -> (Vec<Option<Timestamp>>, Vec<Option<Timestamp>>) {
    let unlocks = || UpcomingFilter { tokens: None, from: now(), until: None, limit: 100 };
    let filter = UnlockListFilter { unlocks: unlocks(), kind: None, min_value: None, after: None };
    let cliffs = store.calendar(filter, now(), 100, false, |row, _| Some(row)).await.expect("read");
    let cliffs = cliffs
        .into_iter()
        .filter(|row| row.row.tracked.key.as_str() == of)
        .map(|row| row.was_modified.then_some(row.modified_at))
        .collect();
    let linear = store.calendar_linear(unlocks(), now(), false, |_, _| true).await.expect("read");
    let linear =
        linear.into_iter().filter(|row| row.key.starts_with(of)).map(|row| row.was_modified.then_some(row.modified_at)).collect();
    (cliffs, linear)
}

#[tokio::test]
async fn time_of_the_last_change_rises_within_a_second() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    commit(&store, 0, vec![put("a", event("Team", 80.0)), put("b", event("Seed", 160.0))], &[]).await;
    for key in ["a", "b"] {
        let (cliffs, linear) = changed_at(&store, key).await;
        assert_eq!(cliffs, [None], "{key}");
        assert!(!linear.is_empty() && linear.iter().all(Option::is_none), "{key}: {linear:?}");
    }
    commit(&store, 1, vec![put("b", event("Seed", 320.0))], &[]).await;
    let (changed, linear) = changed_at(&store, "b").await;
    assert!(changed[0].is_some() && linear.iter().all(|at| *at == changed[0]), "{changed:?} {linear:?}");
    let (unchanged, linear) = changed_at(&store, "a").await;
    assert_eq!(unchanged, [None]);
    assert!(linear.iter().all(|at| *at == changed[0]), "any event can change the rates of a token: {linear:?}");

    commit(&store, 2, Vec::new(), &["b"]).await;
    let (removed, cancelled) = changed_at(&store, "b").await;
    assert!(removed[0] > changed[0] && cancelled.iter().all(|at| *at == removed[0]), "{removed:?} {cancelled:?}");
    let (_, linear) = changed_at(&store, "a").await;
    assert!(!linear.is_empty() && linear.iter().all(|at| *at == removed[0]), "{linear:?}");

    commit(&store, 3, vec![put("b", event("Seed", 160.0))], &[]).await;
    let (again, linear) = changed_at(&store, "b").await;
    assert!(again[0] > removed[0] && linear.iter().all(|at| *at == again[0]), "{again:?} {linear:?}");

    // A poll without a change.
    commit(&store, 4, Vec::new(), &[]).await;
    assert_eq!(changed_at(&store, "b").await, (again, linear));
}

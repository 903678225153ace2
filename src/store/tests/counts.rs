use tempfile::TempDir;

use super::support::*;
use crate::sql::Engine;
use model::{AlertState, FailureKind, *};

#[tokio::test]
async fn counts_deliveries_by_receiver_and_state() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let ids: Vec<_> = notify(&store, "a", &["ops", "desk"]).await.iter().map(|delivery| delivery.id).collect();
    notify(&store, "b", &["ops"]).await;
    store.record_attempts(vec![tried(ids[1], now(), DeliveryState::Dead, None)]).await.expect("recorded");
    let mut held = schedule("aptos", vec![put("a", unlock("2026-03-16", 1.0))]);
    held.state.hold = Some(Hold { since: now(), is_accepted: false });
    held.state.failing_since = Some(now() - minutes(3));
    held.state.missing = vec![("x".into(), 1), ("y".into(), 1)];
    held.state.findings = Findings { by_mark: 2, unreported: 1, undecided: 3, undecided_upcoming: 4, ..Findings::default() };
    let period = CreditState { period_start: Some(now() - minutes(60)), spent: 3, ..CreditState::default() };
    store.decide_credit(move |_| (period, ())).await.expect("written");
    let mut before = poll(Endpoint::UnlockEvents, Some("aptos"));
    (before.at, before.credits) = (now() - minutes(61), 5);
    let mut failed = poll(Endpoint::UnlockEvents, Some("aptos"));
    (failed.outcome, failed.error) = (PollEntryOutcome::Failed(FailureKind::Unreachable), Some("connection refused".into()));
    store
        .commit(at(Commit {
            tokens: vec![token_item("aptos", "APT")],
            token_list_complete: true,
            feeds: vec![held],
            polls: vec![before, failed],
            ..Commit::default()
        }))
        .await
        .expect("committed");

    let counts = store.counts().await.expect("read");
    assert_eq!((counts.tokens, counts.tokens_listed), (2, 1));
    assert_eq!(counts.records[0], (Resource::Unlock, 1));
    assert_eq!(counts.alerts[1], (AlertState::Firing, 2));
    assert_eq!((counts.removals_held, counts.removals_awaiting_proof, counts.feeds_failing), (1, 2, 1));
    assert!(counts.database_bytes > 0);
    let of: Vec<_> = counts
        .outbox
        .iter()
        .map(|of| (of.receiver.as_str(), of.pending(), of.of(DeliveryState::Dead), of.oldest_pending))
        .collect();
    assert_eq!(of, [("desk", 0, 1, None), ("ops", 2, 0, Some(now()))]);

    let gauges = store.gauges().await.expect("read");
    assert_eq!((&gauges.alerts, &gauges.outbox, gauges.removals_held), (&counts.alerts, &counts.outbox, counts.removals_held));
    assert_eq!(gauges.last_success, [(Endpoint::UnlockEvents, now())]);

    let stats = store.poll_stats().await.expect("read");
    assert_eq!((stats[0].endpoint, stats[0].feeds, stats[0].failing), (Endpoint::UnlockEvents, 1, 1));
    assert_eq!(stats[0].last_success, Some(now()));
    assert_eq!(stats[0].last_error, Some((now(), "connection refused".into())));
    assert_eq!((stats[0].polls, stats[0].credits), (1, 2), "polls of the previous period do not count");
    let reads = store.reads_of_period(Endpoint::UnlockEvents).await.expect("read").expect("a period");
    assert_eq!((reads.since, reads.reads), (now() - minutes(60), vec![]), "failed polls do not count");
    assert_eq!(
        stats[0].findings,
        Findings { by_mark: 2, unreported: 1, undecided: 3, undecided_upcoming: 4, ..Findings::default() }
    );
    if store.is_shared() {
        return; // PostgreSQL chooses its own plan
    }
    let connection = rusqlite::Connection::open(store.path()).expect("opens");
    let (feeds, stats) = (crate::counts::feeds_sql(Engine::Sqlite), crate::counts::feed_stats_sql(Engine::Sqlite));
    for (sql, index) in [(crate::counts::TOKENS, "token_listed"), (&feeds, "feed_status"), (&stats, "feed_status")] {
        let plan: String = connection.query_row(&format!("EXPLAIN QUERY PLAN {sql}"), (), |row| row.get(3)).expect("a plan");
        assert!(plan.contains(&format!("COVERING INDEX {index}")), "no table row is read: {plan}");
    }
}

#[tokio::test]
async fn tally_equals_record_count() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let tallied = async || {
        let counts = store.counts().await.expect("read").records;
        let of = |resource: Resource| counts.iter().find(|(of, _)| *of == resource).map_or(0, |(_, count)| *count);
        for resource in Resource::ALL {
            let found = count(&store, &format!("record WHERE resource = '{resource}'"));
            assert_eq!(of(resource), found.unsigned_abs(), "{resource}");
        }
        of(Resource::Unlock)
    };
    assert_eq!(tallied().await, 0);
    let events = |keys: &[&str]| keys.iter().map(|key| put(key, unlock("2026-03-16", 1.0))).collect::<Vec<_>>();
    let commit = async |update: FeedUpdate| {
        store.commit(at(Commit { feeds: vec![update], ..Commit::default() })).await.expect("committed");
    };
    commit(schedule("aptos", events(&["a", "b", "c"]))).await;
    commit(schedule("arbitrum", events(&["a"]))).await;
    assert_eq!(tallied().await, 4);
    commit(schedule("aptos", events(&["a", "d"]))).await;
    assert_eq!(tallied().await, 5, "known records are not counted again");
    let removed = vec!["a".into(), "b".into(), "no such key".into()];
    commit(FeedUpdate { removed, ..schedule("aptos", events(&["a"])) }).await;
    assert_eq!(tallied().await, 4, "one key is removed and reused, one is removed, one never existed");
}

#[tokio::test]
async fn domain_gauges_group_alerts_by_rule_and_use_nominal_dates() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let alert = |subject: &str, severity: &str, hours: i64| {
        let mut alert = firing(subject, None);
        alert.labels.insert("severity".to_owned(), severity.to_owned());
        alert.resource = Some(Resource::Unlock);
        alert.due = Interval::of(now() + chrono::TimeDelta::hours(hours), Precision::Second);
        alert
    };
    let alerts = vec![alert("a", "critical", 30), alert("b", "Page", 20), alert("c", "critical", -1), alert("d", "warning", 1)];
    let rule = alerts[0].rule.clone();
    let month = |date: &str| {
        Record::Unlock(std::sync::Arc::new(read(
            serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": 1.0, "cliffValue": 5.0,
            "allocationBreakdown": [{"unlockDate": date, "allocationName": "Team", "cliffAmount": 1.0, "unlockPrecision": "month"}]}}),
        )))
    };
    let feeds = vec![
        schedule("aptos", vec![put("a", unlock("2026-03-16T12:00:00Z", 1.0)), put("b", unlock("2026-03-08T12:00:00Z", 1.0))]),
        schedule("sui", vec![put("a", month("2026-03-20")), put("b", month("2026-05-20"))]),
    ];
    store.commit(at(Commit { alerts, feeds, ..Commit::default() })).await.expect("committed");
    let gauges = store.domain_gauges(now(), supply_windows(now()), all_tokens()).await.expect("read");
    assert_eq!(gauges.firing, [(rule.clone(), Severity::Warning, 1), (rule.clone(), Severity::Critical, 3)]);
    assert_eq!(gauges.next_critical, [(rule, now() + chrono::TimeDelta::hours(20))]);
    let cliffs = |sum: &SupplyAhead| (sum.cliff.count, sum.cliff.value);
    assert_eq!(gauges.watched.windows.iter().map(cliffs).collect::<Vec<_>>(), [(0, 0.0), (2, 7.0), (3, 12.0)]);
    assert_eq!(gauges.groups.keys().collect::<Vec<_>>(), ["desk"]);
    assert_eq!(gauges.groups["desk"].windows.iter().map(cliffs).collect::<Vec<_>>(), [(0, 0.0), (1, 5.0), (2, 10.0)]);
}

#[tokio::test]
async fn domain_gauges_do_not_read_packed_schedules() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let date = "2026-03-20";
    let event = Record::Unlock(std::sync::Arc::new(read(
        serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": 1.0, "cliffValue": 5.0,
        "allocationBreakdown": [{"unlockDate": date, "allocationName": "Team", "cliffAmount": 1.0, "unlockPrecision": "month"}]}}),
    )));
    let feeds = vec![schedule("sui", vec![put("a", event)])];
    store.commit(at(Commit { feeds, ..Commit::default() })).await.expect("committed");
    change(&store, "DELETE FROM schedule");
    let gauges = store.domain_gauges(now(), supply_windows(now()), all_tokens()).await.expect("read");
    assert_eq!(gauges.watched.windows[1].cliff.count, 1);
}

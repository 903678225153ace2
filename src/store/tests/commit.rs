use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;

use super::support::*;
use crate::{ErrorKind, Store};
use model::{AlertState, AllocationChange, Change, ChangeKind, Fact, FailureKind, FieldChange, wire, *};

/// Returns the poll log as text, one line per row.
fn polls(store: &Store) -> Vec<String> {
    let sql = "SELECT concat_ws('|', endpoint, took_ms, outcome, coalesce(CAST(status AS TEXT), '-'), requests, credits, bytes,
             coalesce(CAST(version AS TEXT), '-'), records, coalesce(error, '-'), coalesce(parse_warnings, '-'), parse_warnings_total)
             FROM poll ORDER BY no";
    rows(store, sql, |row| row.get(0).expect("a text"))
}

#[tokio::test]
async fn failed_commit_writes_nothing() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    notify(&store, "a", &["ops"]).await;
    let before = dump(&store);
    let mut clash = full_alert("a");
    // A second id for the same rule, subject, and episode violates a unique index.
    clash.id = AlertId::from("al_other");
    let commit = at(Commit {
        polls: vec![poll(Endpoint::UnlockEvents, Some("aptos"))],
        tokens: vec![token_item("aptos", "APT")],
        feeds: vec![schedule("aptos", vec![put("x", unlock("2026-04-01", 1.0))])],
        changes: vec![Change::of(ChangeKind::Added, Resource::Unlock, &"aptos".into())],
        notifications: vec![notification(&clash, "firing", &["ops"])],
        alerts: vec![clash],
        ..Commit::default()
    });
    assert_eq!(store.commit(commit).await.expect_err("rejected").kind(), ErrorKind::Other);
    assert_eq!(dump(&store), before);
    assert_eq!(count(&store, "poll"), 0);
    notify(&store, "b", &["ops"]).await;
}

#[tokio::test]
async fn long_name_is_cut_in_the_indexed_columns() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    // Random text, because PostgreSQL compresses an index entry.
    let long: String = std::iter::repeat_with(|| fastrand::char(..)).filter(|c| c.is_alphabetic()).take(5_000).collect();
    let item = read(json!({"id": "aptos", "name": long, "symbol": long}));
    store.commit(at(Commit { tokens: vec![item], ..Commit::default() })).await.expect("committed");
    let known = store.tokens(vec!["aptos".into()], Vec::new()).await.expect("read");
    assert_eq!(known[0].token.item.name.as_str(), Some(long.as_str()), "the item has the whole name");
}

#[tokio::test]
async fn repeated_commit_changes_no_rows() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let alert = firing("a", Some("arbitrum"));
    let mut change = Change::of(ChangeKind::Added, Resource::Unlock, &"arbitrum".into());
    change.new = Some(unlock("2026-03-16T13:00:00Z", 10.0));
    let commit = at(Commit {
        polls: vec![poll(Endpoint::UnlockEvents, Some("arbitrum"))],
        tokens: vec![token_item("arbitrum", "ARB")],
        token_list_complete: true,
        feeds: vec![schedule("arbitrum", vec![put("a", unlock("2026-03-16T13:00:00Z", 10.0))])],
        changes: vec![change],
        notifications: vec![notification(&alert, "firing", &["ops", "desk", "ops"])],
        alerts: vec![alert],
        evaluated_until: Some(now()),
        jobs: vec![("evaluate".into(), now())],
        rule_matches: vec![("BigCliffAhead".into(), now())],
        ..Commit::default()
    });
    let first = store.commit(commit.clone()).await.expect("committed");
    assert_eq!((first.deliveries, first.known_notifications, first.changes), (2, 0, 1));
    let rows = dump(&store);
    let second = store.commit(commit).await.expect("committed");
    assert_eq!((second.deliveries, second.known_notifications, second.changes), (0, 1, 0));
    assert_eq!(dump(&store), rows);
}

#[tokio::test]
async fn known_notification_is_not_sent_again_after_delivery() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let delivery = notify(&store, "a", &["ops"]).await.remove(0);
    store.record_attempts(vec![tried(delivery.id, now(), DeliveryState::Delivered, None)]).await.expect("recorded");
    assert!(notify(&store, "a", &["ops"]).await.is_empty());
    assert_eq!(store.next_due_at("ops".into()).await.expect("read"), None);
}

#[tokio::test]
async fn every_value_round_trips() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let state = FeedState {
        baseline_at: Some(now()),
        read_at: Some(now() + minutes(1)),
        tried_at: Some(now() + minutes(2)),
        hash: Some(ContentHash(u128::MAX - 5)),
        mark: Some(now() - minutes(9)),
        stale: true,
        failing_since: Some(now() + minutes(3)),
        missing: vec![("k1".into(), 1), ("k2".into(), 2)],
        hold: Some(Hold { since: now() + minutes(4), is_accepted: true }),
        cost: 17,
        findings: model::supply::Findings {
            by_mark: 1,
            by_upcoming: 2,
            unreported: 3,
            unreported_at: Some(now()),
            idle_marks: 4,
            idle_upcoming: 5,
            undecided: 6,
            undecided_upcoming: 7,
            found_at: Some(now() - minutes(6)),
            undecided_at: Some(now() - minutes(5)),
            awaits_segments: true,
        },
    };
    let unlocks = vec![
        put("undated", Record::Unlock(Arc::new(read(json!({"tokenSymbol": null, "cliffUnlocks": {"cliffAmount": 3.5}}))))),
        put("b", unlock("2026-05-16T13:00:00Z", 20.0)),
        put("a", unlock("2026-03-16T13:00:00.123456Z", 10.25)),
    ];
    let header = json!({"maxSupply": 1e9, "nested": {"x": [null, true, "y"]}});
    let update = FeedUpdate { state: state.clone(), header: Some(header.clone()), ..schedule("arbitrum", unlocks.clone()) };
    let burn = Record::Burn(Box::new(read(json!({"burnDate": "2026-01-01", "amount": 5.0, "burnType": null}))));
    let burns = FeedUpdate {
        id: FeedId::of(Endpoint::Burn, &"arbitrum".into()),
        ..schedule("arbitrum", vec![put("burn", burn.clone())])
    };
    let round =
        Record::Funding(Box::new(read(json!({"tokenId": "arbitrum", "roundName": "Series A", "fundingDate": "2026-02-02"}))));
    let rounds = FeedUpdate { id: FeedId::whole(Endpoint::Investors), ..schedule("arbitrum", vec![put("round", round.clone())]) };
    let (open, mut over) = (firing("open", Some("arbitrum")), full_alert("over"));
    over.updated_at += minutes(60);
    let of_source = firing("source", None);
    let mut change = Change::of(ChangeKind::SeriesShifted, Resource::Unlock, &"arbitrum".into());
    change.key = Some("a".into());
    change.from = Some(Fact::Time(time("2026-03-16T13:00:00.123456Z")));
    change.to = Some(Fact::Amount(0.5));
    (change.shift_days, change.shift_days_min, change.shift_days_max, change.ratio) =
        (Some(4.0), Some(3.5), Some(5.0), Some(2.0));
    change.count = 12;
    change.allocations = vec![AllocationChange { name: "Team".into(), from: Some(Fact::Text("x".into())), ..Default::default() }];
    change.fields = vec![FieldChange { field: "dataSource".into(), from: json!(null), to: json!("paper") }];
    change.summary = "moved".into();
    (change.old, change.new) = (Some(unlock("2026-03-12", 1.0)), Some(unlock("2026-03-16", 1.0)));
    let credit = CreditState {
        used: Some(5),
        limit: Some(1000),
        reset_at: Some(now()),
        reported_at: Some(now()),
        spent: 4,
        period_start: Some(now()),
        spent_today: 2,
        day: Some(now()),
        exhausted: true,
        ..CreditState::default()
    };
    let investor: wire::InvestorItem =
        read(json!({"investorId": "acme", "investorName": "Acme", "latestFundingDate": null, "z": 1}));
    let mut failed = poll(Endpoint::TokenList, None);
    (failed.outcome, failed.error, failed.status, failed.version) =
        (PollEntryOutcome::Failed(FailureKind::Timeout), Some("no answer".into()), None, None);
    (failed.parse_warnings, failed.parse_warnings_total) = (Vec::new(), 0);
    let item = token_item("arbitrum", "ARB");
    let notified = notification(&open, "lead 7d", &["ops"]);
    store
        .commit(at(Commit {
            polls: vec![poll(Endpoint::UnlockEvents, Some("arbitrum")), failed],
            tokens: vec![item.clone()],
            token_list_complete: true,
            investors: vec![investor.clone()],
            feeds: vec![update, burns, rounds],
            changes: vec![change.clone()],
            alerts: vec![open.clone(), over.clone(), of_source.clone()],
            notifications: vec![notified.clone()],
            rule_matches: vec![("R".into(), now())],
            evaluated_until: Some(now()),
            jobs: vec![("burn".into(), now())],
            ..Commit::default()
        }))
        .await
        .expect("committed");

    let written = credit.clone();
    store.decide_credit(move |_| (written, ())).await.expect("written");

    let arbitrum = TokenId::from("arbitrum");
    let all = store.tokens(vec![arbitrum.clone(), "unknown".into()], Resource::ALL.to_vec()).await.expect("read");
    let token = &all[0];
    assert_eq!(token.token.item, item);
    assert_eq!(token.feed(Endpoint::UnlockEvents), Some(&state));
    assert_eq!(token.headers, [(Endpoint::UnlockEvents, header.clone())]);
    let of_schedules: Vec<(FeedId, FeedState, Option<serde_json::Value>)> = store
        .fold_schedule_feeds(|all: &mut Vec<_>, feed| all.push((feed.id.clone(), feed.state.clone(), feed.header.clone())))
        .await
        .expect("read");
    assert_eq!(of_schedules, [(FeedId::of(Endpoint::UnlockEvents, &arbitrum), state.clone(), Some(header))]);
    let found: Vec<_> = token.records.iter().map(|tracked| (tracked.key.as_str(), tracked.record.clone())).collect();
    let wanted = [
        ("burn", burn),
        ("round", round),
        ("a", unlocks[2].record.clone()),
        ("b", unlocks[1].record.clone()),
        ("undated", unlocks[0].record.clone()),
    ];
    assert_eq!(found, wanted, "sorted by time, undated last");
    assert_eq!(token.alerts, std::slice::from_ref(&open));
    assert_eq!((all[1].token.id.as_str(), all[1].feeds.len(), all[1].records.len()), ("unknown", 0, 0));
    assert_eq!(store.feed(FeedId::of(Endpoint::UnlockEvents, &arbitrum)).await.expect("read"), state);
    assert_eq!(store.feed(FeedId::whole(Endpoint::Upcoming)).await.expect("read"), FeedState::default());
    assert_eq!(store.credit().await.expect("read"), credit);
    assert_eq!(store.investors().await.expect("read"), [investor]);
    assert_eq!(store.global_alerts().await.expect("read"), [of_source]);
    let filter =
        AlertFilter { states: vec![AlertState::Resolved], rule: Some("Big cliff".into()), limit: 9, ..AlertFilter::default() };
    assert_eq!(store.alerts(filter).await.expect("read"), [over.clone()]);
    let filter = AlertFilter { token: Some(arbitrum.clone()), limit: 1, ..AlertFilter::default() };
    assert_eq!(store.alerts(filter).await.expect("read"), [over], "most recently updated first");
    assert_eq!(store.evaluated_until().await.expect("read"), Some(now()));
    assert_eq!(store.job_slots().await.expect("read"), [("burn".to_owned(), now())]);
    assert_eq!(store.rule_matches().await.expect("read"), [(RuleId::from("R"), now())]);
    let rows = store.changes(ChangeFilter { kinds: vec![ChangeKind::SeriesShifted], limit: 5, ..ChangeFilter::default() }).await;
    let row = &rows.expect("read")[0];
    assert_eq!((row.at, row.token.as_str(), row.symbol.as_deref()), (now(), "arbitrum", Some("ARB")));
    assert_eq!(row.change, change);
    let due = store.due("ops".into(), now(), 5).await.expect("read");
    assert_eq!(due[0].notifications, [notified]);
    assert_eq!(
        polls(&store),
        [
            "unlock_events|120|fresh|200|2|2|5000|5|3|-|[{\"path\":\"[0].x\",\"problem\":\"expected a number\"}]|7",
            "token_list|120|timeout|-|2|2|5000|-|3|no answer|-|0",
        ]
    );
    let episodes =
        store.episodes(vec![("BigCliffAhead".into(), "open".into()), ("X".into(), "open".into())]).await.expect("read");
    assert_eq!(episodes, [3, 0]);
    let plan = store.plan_tokens(Endpoint::UnlockEvents, now()).await.expect("read").tokens;
    assert_eq!(plan.len(), 1);
    assert_eq!(
        (plan[0].listed, plan[0].has_burn, plan[0].has_buyback, plan[0].last_updated),
        (true, Some(true), None, Some(time("2026-03-01T10:00:00Z")))
    );
    assert_eq!(plan[0].next_event, Some(time("2026-03-16T13:00:00.123Z")));
    assert_eq!(plan[0].feed, Some(state));
}

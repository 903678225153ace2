use chrono::TimeDelta;
use tempfile::TempDir;

use super::support::*;
use crate::Store;
use crate::sql::Engine;
use model::*;

/// Five alerts, one minute apart. Those with odd numbers are critical, and the last one is resolved.
async fn five(store: &Store) -> Vec<Alert> {
    let mut alerts = Vec::new();
    for number in 1..=5_u32 {
        let mut alert = firing(&format!("cliff-{number}"), Some("arbitrum"));
        alert.updated_at = now() + minutes(number.into());
        let severity = if number % 2 == 1 { "critical" } else { "info" };
        alert.labels.insert("severity".into(), severity.into());
        if number == 5 {
            (alert.state, alert.resolution, alert.ends_at) = (AlertState::Resolved, Some(Resolution::Passed), Some(now()));
        }
        alert.notified = [&["ops"][..], &["desk", "ops"], &["operators"], &[], &[]][number as usize - 1]
            .iter()
            .map(|name| (*name).into())
            .collect();
        alerts.push(alert);
    }
    let notifications = vec![notification(&alerts[0], "firing", &["ops"]), notification(&alerts[1], "firing", &["desk", "ops"])];
    store.commit(at(Commit { alerts: alerts.clone(), notifications, ..Commit::default() })).await.expect("committed");
    alerts
}

#[tokio::test]
async fn alerts_are_filtered_counted_and_paged() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let alerts = five(&store).await;
    store.acknowledge(alerts[1].id.to_string(), "ann".into(), String::new(), now()).await.expect("done");
    let ids = |listed: &Listed<Alert>| listed.rows.iter().map(|alert| alert.id.clone()).collect::<Vec<_>>();
    let expect = |numbers: &[usize]| numbers.iter().map(|number| alerts[number - 1].id.clone()).collect::<Vec<_>>();
    let all = AlertFilter { limit: 99, ..AlertFilter::default() };
    for (filter, numbers) in [
        (all.clone(), &[5, 4, 3, 2, 1][..]),
        (AlertFilter { severity: Some("critical".into()), ..all.clone() }, &[5, 3, 1]),
        (AlertFilter { severity: Some("nothing".into()), ..all.clone() }, &[]),
        (AlertFilter { acknowledged: Some(true), ..all.clone() }, &[2]),
        (AlertFilter { acknowledged: Some(false), ..all.clone() }, &[5, 4, 3, 1]),
        (AlertFilter { receiver: Some("ops".into()), ..all.clone() }, &[2, 1]),
        (AlertFilter { receiver: Some("desk".into()), ..all.clone() }, &[2]),
        (AlertFilter { states: vec![AlertState::Resolved], ..all.clone() }, &[5]),
        (AlertFilter { ids: expect(&[1, 4]), ..all.clone() }, &[4, 1]),
        (AlertFilter { rule: Some(alerts[0].rule.clone()), token: Some("aptos".into()), ..all.clone() }, &[]),
        (AlertFilter { since: Some(alerts[2].updated_at), ..all.clone() }, &[5, 4, 3]),
        (AlertFilter { until: Some(alerts[2].updated_at), ..all.clone() }, &[2, 1]),
        (
            AlertFilter {
                since: Some(alerts[1].updated_at),
                until: Some(alerts[4].updated_at),
                acknowledged: Some(false),
                severity: Some("critical".into()),
                ..all.clone()
            },
            &[3],
        ),
        (AlertFilter { since: Some(alerts[1].updated_at), receiver: Some("ops".into()), ..all.clone() }, &[2]),
    ] {
        let listed = store.alerts_listed(filter.clone()).await.expect("read");
        assert_eq!((ids(&listed), listed.total), (expect(numbers), numbers.len() as u64), "{filter:?}");
    }
    let mut after = None;
    let mut seen = Vec::new();
    loop {
        let part = store.alerts_listed(AlertFilter { after, limit: 2, ..all.clone() }).await.expect("read");
        assert_eq!(part.total, 5, "the total covers all pages");
        seen.extend(ids(&part));
        let Some(last) = part.rows.last() else { break };
        let place = AlertCursor::of(last);
        assert_eq!(AlertCursor::parse(&place.to_string()), Some(place.clone()));
        after = Some(place);
    }
    assert_eq!(seen, expect(&[5, 4, 3, 2, 1]));
}

#[tokio::test]
async fn alert_is_found_by_id_with_its_notifications() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let alerts = five(&store).await;
    assert_eq!(store.alert(alerts[4].id.clone()).await.expect("read").as_ref(), Some(&alerts[4]));
    assert_eq!(store.alert("al_none".into()).await.expect("read"), None);
    let notified = store.notifications_of(alerts[1].id.clone()).await.expect("read");
    assert_eq!(notified.iter().map(|notified| notified.receivers.len()).collect::<Vec<_>>(), [2]);
    let open = store.open_by_rule().await.expect("read");
    assert_eq!(open.iter().map(|(_, _, count)| count).sum::<u64>(), 4);
}

#[tokio::test]
async fn notification_series_is_stored_packed_and_read_back() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let alerts = five(&store).await;
    let notified = store.notifications_of(alerts[0].id.clone()).await.expect("read");
    assert_eq!(notified, [notification(&alerts[0], "firing", &["ops"])]);
    assert_eq!(notified[0].body.series.len(), 2);
    let spelled_out = rows(&store, "SELECT count(*) FROM notification WHERE body LIKE '%series%' OR series IS NULL", |row| {
        row.get::<i64>(0).expect("a number")
    });
    assert_eq!(spelled_out, [0]);
    store.close().await.expect("closed");
}

#[tokio::test]
async fn silence_preview_reads_only_labels() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let alerts = five(&store).await;
    let is_critical = Matcher::parse("severity=critical").expect("a matcher");
    let preview = store.preview(MatcherSets::new([vec![is_critical]]), now() + TimeDelta::hours(1)).await.expect("read");
    let hidden: Vec<_> = preview.alerts.iter().map(|alert| alert.id.clone()).collect();
    assert_eq!(hidden, [alerts[2].id.clone(), alerts[0].id.clone()], "most recently updated first, without the resolved alert");
    assert_eq!((preview.open, preview.last_week, preview.last_week_all), (4, 1, 2));
    assert_eq!(preview.alerts[0].summary, alerts[2].annotations["summary"].lines().next().unwrap_or_default());
    assert_eq!(store.open_labels().await.expect("read").len(), 4);
    if store.is_shared() {
        return; // PostgreSQL chooses its own plan
    }
    let connection = rusqlite::Connection::open(store.path()).expect("opens");
    let plan = format!("EXPLAIN QUERY PLAN {}", crate::silence::week_sql(Engine::Sqlite));
    let plan: String = connection.query_row(&plan, (0, 9), |row| row.get(3)).expect("a plan");
    assert!(plan.contains("COVERING INDEX notification_age"), "no notification is read: {plan}");
    let plan = format!("EXPLAIN QUERY PLAN {}", crate::silence::open_sql(Engine::Sqlite));
    let plan: String = connection.query_row(&plan, [], |row| row.get(3)).expect("a plan");
    assert!(plan.contains("COVERING INDEX alert_open_labels"), "no alert is read: {plan}");
}

/// The names of all receivers together are longer than PostgreSQL allows for an index entry.
#[tokio::test]
async fn alert_can_have_hundreds_of_receivers() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let mut random = fastrand::Rng::with_seed(7);
    let names: Vec<String> = (0..300).map(|_| (0..40).map(|_| random.alphanumeric()).collect()).collect();
    let notified = names.iter().map(|name| ReceiverName::from(name.as_str())).collect();
    let alert = Alert { notified, ..firing("x", None) };
    let receivers: Vec<&str> = names.iter().map(String::as_str).collect();
    let notifications = vec![notification(&alert, "firing", &receivers)];
    let commit = Commit { alerts: vec![alert.clone()], notifications, ..Commit::default() };
    assert_eq!(store.commit(at(commit)).await.expect("committed").deliveries, 300);
    for (receiver, found) in [(names[0].as_str(), 1), (names[299].as_str(), 1), ("unknown", 0)] {
        let filter = AlertFilter { receiver: Some(receiver.into()), limit: 9, ..AlertFilter::default() };
        let listed = store.alerts_listed(filter).await.expect("read");
        assert_eq!((listed.total, listed.rows.len()), (found, usize::try_from(found).expect("few")), "{receiver}");
    }
}

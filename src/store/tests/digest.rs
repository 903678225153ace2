use std::collections::HashSet;

use chrono::TimeDelta;
use tempfile::TempDir;

use super::support::*;
use model::*;

fn sized(date: &str, value: Option<f64>, precision: &str) -> Record {
    // Smaller values are larger shares of market cap.
    let share = value.map(|value| 1e8 / value);
    let event = serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": 1.0, "cliffValue": value, "valueToMarketCap": share,
        "allocationBreakdown": [{"unlockDate": date, "allocationName": "Team", "cliffAmount": 1.0, "unlockPrecision": precision}]}});
    Record::Unlock(serde_json::from_value(event).expect("an event"))
}

fn watch() -> Watch {
    let groups =
        [("even".to_owned(), vec!["token-*[02468]".to_owned()]), ("first".to_owned(), vec!["token-000".to_owned()])].into();
    Watch::build(&config::WatchSettings { tokens: vec!["*".into()], groups, ..config::WatchSettings::default() })
        .expect("patterns")
}

/// Three unlocks for each of a hundred tokens, with precision second, week, and month. Some values are equal, some
/// unknown.
fn feeds() -> Vec<FeedUpdate> {
    let feed = |i: i64| {
        let value = (i % 7 != 3).then(|| f64::from(u32::try_from(i % 11).unwrap_or(0)) * 1e6 + 5e5);
        let date = |days: i64| (now() + TimeDelta::days(days)).to_rfc3339();
        let put = vec![
            put("a", sized(&date(1 + i % 9), value, "second")),
            put("b", sized(&date(i % 12 - 3), value.map(|value| value * 2.0), "week")),
            put("c", sized(&date(i % 40 - 8), value.map(|value| value / 3.0), "month")),
        ];
        schedule(&format!("token-{i:03}"), put)
    };
    (0..100).map(feed).collect()
}

fn expected(filter: &DigestAheadFilter) -> DigestAhead {
    let watch = watch();
    let mut rows: Vec<(Timestamp, UpcomingRow)> = Vec::new();
    for feed in feeds() {
        for put in feed.put {
            let Some(interval) = put.record.interval() else { continue };
            if interval.end > filter.from && interval.start <= filter.window.until {
                let token = watch.placed(Token::unknown(feed.id.token.clone().expect("a token")));
                let tracked = Tracked { key: put.key, record: put.record };
                rows.push((interval.start, UpcomingRow { token, tracked, read_at: None }));
            }
        }
    }
    rows.sort_by(|(a, row), (b, other)| (a, &row.token.id, &row.tracked.key).cmp(&(b, &other.token.id, &other.tracked.key)));
    DigestAhead::of(rows.into_iter().map(|(_, row)| row).collect(), filter.window, filter.selection)
}

fn same(found: &DigestAhead, expected: &DigestAhead) {
    for (part, other) in [(&found.counted, &expected.counted), (&found.possible, &expected.possible)] {
        let names = |part: &AheadPart| {
            let mut names: Vec<String> = part.rows.iter().map(|row| format!("{} {}", row.token.id, row.tracked.key)).collect();
            names.sort();
            names
        };
        assert_eq!(names(part), names(other));
        assert_eq!(part.more, other.more);
        assert!((part.more_value.unwrap_or(-1.0) - other.more_value.unwrap_or(-1.0)).abs() < 1.0, "{:?}", part.more_value);
    }
    let sums = |ahead: &DigestAhead| -> Vec<(String, u64, String, usize)> {
        let mut sums: Vec<_> = ahead
            .by_token
            .iter()
            .map(|of| (of.token.id.to_string(), of.cliff.count, format!("{:.0}", of.cliff.value), of.token.groups.len()))
            .collect();
        sums.sort();
        sums
    };
    assert_eq!(sums(found), sums(expected));
}

#[tokio::test]
async fn digest_ranking_and_sums_match_reference() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    store.commit(Commit { at: now(), feeds: feeds(), ..Commit::default() }).await.expect("committed");
    let filter = |days: i64| DigestAheadFilter {
        from: now(),
        window: SumWindow::of(now(), TimeDelta::days(days)),
        stale_before: now(),
        selection: DigestSelection::default(),
    };
    for days in [1, 7, 30] {
        let found = store.digest_ahead(filter(days), watch()).await.expect("read");
        same(&found, &expected(&filter(days)));
    }
    for order in DigestOrder::ALL {
        for (limit, min_value) in [(5, 0.0), (50, 3e6), (20, 1e6)] {
            let filter = DigestAheadFilter { selection: DigestSelection { order, limit, min_value }, ..filter(7) };
            let found = store.digest_ahead(filter, watch()).await.expect("read");
            same(&found, &expected(&filter));
            assert!(found.counted.rows.len() <= limit && !found.counted.rows.is_empty(), "{found:?}");
        }
    }
    let found = store.digest_ahead(filter(7), watch()).await.expect("read");
    assert!(found.counted.more > 50 && found.possible.more > 0 && !found.by_token.is_empty(), "{found:?}");
}

#[tokio::test]
async fn digest_leaves_out_tokens_that_are_no_longer_watched() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    store.commit(Commit { at: now(), feeds: feeds(), ..Commit::default() }).await.expect("committed");
    let filter = DigestAheadFilter {
        from: now(),
        window: SumWindow::of(now(), TimeDelta::days(30)),
        stale_before: now(),
        selection: DigestSelection::default(),
    };
    let tokens = |found: &DigestAhead| -> HashSet<String> {
        found.counted.rows.iter().chain(&found.possible.rows).map(|row| row.token.id.to_string()).collect()
    };
    let one = Watch::build(&config::WatchSettings {
        tokens: vec!["token-00[12]".into()],
        groups: [].into(),
        ..config::WatchSettings::default()
    })
    .expect("patterns");
    let found = store.digest_ahead(filter, one).await.expect("read");
    assert_eq!(tokens(&found), HashSet::from(["token-001".to_owned(), "token-002".to_owned()]));
    assert_eq!((found.counted.more, found.possible.more, found.gaps.tokens), (0, 0, 2));
}

#[tokio::test]
async fn nominal_date_follows_changed_date() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let filter = DigestAheadFilter {
        from: now(),
        window: SumWindow::of(now(), TimeDelta::days(7)),
        stale_before: now(),
        selection: DigestSelection::default(),
    };
    for (date, counted) in [("2026-03-12", 1), ("2026-03-25", 0), ("2026-03-14", 1)] {
        let feeds = vec![schedule("aptos", vec![put("a", sized(date, Some(5.0), "month"))])];
        store.commit(at(Commit { feeds, ..Commit::default() })).await.expect("committed");
        let found = store.digest_ahead(filter, watch()).await.expect("read");
        assert_eq!((found.counted.rows.len(), found.possible.rows.len()), (counted, 1 - counted), "{date}");
    }
}

#[tokio::test]
async fn firing_alerts_are_chosen_by_severity_then_value() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let feeds =
        (0..6).map(|i| schedule(&format!("token-{i}"), vec![put("a", sized("2026-03-20", Some(f64::from(i) * 1e6), "second"))]));
    let alert = |subject: &str, token: Option<&str>, severity: &str| {
        let mut alert = firing(subject, token);
        alert.labels.insert("severity".to_owned(), severity.to_owned());
        (alert.resource, alert.key) = (token.map(|_| Resource::Unlock), token.map(|_| "a".into()));
        alert
    };
    let mut alerts: Vec<Alert> = (0..6).map(|i| alert(&format!("w{i}"), Some(&format!("token-{i}")), "warning")).collect();
    alerts.push(alert("also", Some("token-5"), "info"));
    alerts.push(alert("severe", Some("token-1"), "critical"));
    alerts.push(alert("alone", None, "critical"));
    alerts.push(Alert { rule: alert::SOURCE_TROUBLE.into(), ..alert("incident", None, "critical") });
    store.commit(at(Commit { alerts, feeds: feeds.collect(), ..Commit::default() })).await.expect("committed");
    let fires = store.digest_fires(3, None).await.expect("read");
    let mut notified: Vec<(&str, Option<f64>)> = fires.iter().map(|of| (of.alert.subject.as_str(), of.value)).collect();
    notified.sort_by(|a, b| a.0.cmp(b.0));
    assert_eq!(notified, [("alone", None), ("also", Some(5e6)), ("severe", Some(1e6)), ("w1", Some(1e6)), ("w5", Some(5e6))]);
    let only = |tokens: &[&str]| {
        let tokens: Vec<String> = tokens.iter().map(ToString::to_string).collect();
        watch().narrowed(&tokens).expect("patterns")
    };
    let of_one = store.digest_fires(3, Some(only(&["token-5"]))).await.expect("read");
    assert_eq!(of_one.iter().map(|of| of.alert.subject.as_str()).collect::<HashSet<_>>(), HashSet::from(["also", "w5"]));
    let counts = store.tokens_with_firing_alerts(only(&["token-5", "token-0"])).await.expect("read");
    assert_eq!(counts, [("token-0".into(), 1), ("token-5".into(), 2)]);
    assert_eq!(store.digest_fires(0, None).await.expect("read"), []);
    assert_eq!(store.digest_fires(99, None).await.expect("read").len(), 9);
}

//! The list of upcoming unlocks and the calendar, with cliff and linear unlocks.

use serde_json::{Value, json};

use super::*;

/// A schedule with a cliff unlock. A team vests at two rates, the second one from the cliff until a day in 2027.
async fn with_linear_unlocks(app: &TestServer, price: f64, rate: f64) {
    let part = |begin: &str, end: &str, amount: f64| {
        json!([{"allocationName": "Team", "beginDate": begin, "endDate": end, "linearAmount": amount, "referencePrice": price,
            "referencePriceUpdatedTime": "2026-09-01T00:00:00Z", "unlockPrecision": "second"}])
    };
    let event = |date: &str, cliff: Option<f64>, linear: Value| {
        let cliff = cliff.map(|amount| {
            json!({"cliffAmount": amount, "cliffValue": amount * price, "allocationBreakdown": [
                {"allocationName": "Treasury", "cliffAmount": amount, "cliffValue": amount * price, "unlockPrecision": "second"}]})
        });
        let event = json!({"unlockDate": date, "cliffUnlocks": cliff, "linearUnlocks": {"allocationBreakdown": linear}});
        let record = Record::Unlock(serde_json::from_value(event).expect("an event"));
        Put { key: date.into(), record, is_new_version: price < 1.0 }
    };
    let put = vec![
        event("2026-09-20", None, part("2026-09-20", "2026-10-20", 3_000.0)),
        event("2026-10-20", Some(9e6), part("2026-10-20", "2027-03-03", 134.0 * rate)),
    ];
    let (at, read_at) = (app.clock.now(), Some(app.clock.now()));
    let id = FeedId::of(Endpoint::UnlockEvents, &"zeta".into());
    let state = FeedState { baseline_at: read_at, read_at, ..FeedState::default() };
    let feeds = vec![FeedUpdate { id, state, put, removed: Vec::new(), header: None }];
    app.store.commit(Commit { at, feeds, ..Commit::default() }).await.expect("committed");
}

async fn get(app: &TestServer, path: &str) -> Value {
    let (status, text) = app.request(&format!("GET {path}"), LOCAL).await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(text.split_once("\r\n\r\n").map_or("", |(_, body)| body)).expect("JSON")
}

fn names(rows: &Value) -> Vec<String> {
    let name = |row: &Value| {
        let date = row["unlockDate"].as_str().or(row["start"].as_str()).unwrap_or_default();
        format!("{} {} {}", row["type"].as_str().unwrap_or_default(), row["tokenId"].as_str().unwrap_or_default(), &date[..10])
    };
    rows.as_array().into_iter().flatten().map(name).collect()
}

#[tokio::test]
async fn upcoming_lists_each_cliff_and_linear_unlock_once_on_pages_of_any_size() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    with_linear_unlocks(&app, 0.5, 200.0).await;
    let all = [
        "linear zeta 2026-09-20",
        "cliff sui 2026-10-01",
        "cliff arbitrum 2026-10-16",
        "cliff zeta 2026-10-20",
        "linear zeta 2026-10-20",
        "cliff arbitrum 2028-10-16",
    ];
    for size in [1, 2, 3, 6] {
        let mut next = Some(format!("/api/v1/upcoming?paged=true&limit={size}"));
        let mut walked = Vec::new();
        while let Some(path) = next {
            let page = get(&app, &path).await;
            assert_eq!(page["total"], all.len(), "{page}");
            walked.extend(names(&page["items"]));
            // Time that passes between two pages shifts nothing.
            app.clock.set(app.clock.now() + chrono::TimeDelta::minutes(1));
            next = page["next"].as_str().map(str::to_owned);
        }
        assert_eq!(walked, all);
    }
    for (query, expected) in [
        ("type=linear", &[all[0], all[4]][..]),
        ("type=cliff&within=30d", &[all[1], all[2], all[3]]),
        ("within=3d", &[all[0]]),
        ("min_value=5000", &all[1..]),
        ("group=portfolio", &[all[2], all[5]]),
        ("rule=BigCliff", &[all[2], all[3], all[4], all[5]]),
        ("rule=ReleaseChanges", &[all[0], all[3], all[4]]),
    ] {
        let rows = get(&app, &format!("/api/v1/upcoming?{query}")).await;
        let expected: Vec<&str> =
            expected.iter().filter(|name| query != "rule=BigCliff" || !name.contains("zeta")).copied().collect();
        assert_eq!(names(&rows), expected, "{query}");
    }
    let (status, text) = app.request("GET /api/v1/upcoming?type=both", LOCAL).await;
    assert!(status == 400 && text.contains("expected one of cliff, linear"), "{text}");
}

#[tokio::test]
async fn linear_row_has_its_rate_and_its_share_of_the_window() {
    let app = run(None, None).await;
    with_linear_unlocks(&app, 0.5, 200.0).await;
    app.clock.set("2026-09-21T00:00:00Z".parse().expect("a time"));
    let rows = get(&app, "/api/v1/upcoming?within=10d&type=linear").await;
    let row = &rows[0];
    let number = |key: &str| row[key].as_f64().map(|number| (number * 1e6).round() / 1e6);
    assert_eq!((number("perDay"), number("perDayValue")), (Some(100.0), Some(50.0)));
    assert_eq!((number("amountInWindow"), number("valueInWindow")), (Some(1000.0), Some(500.0)));
    assert_eq!(row["when"], "vests until 20 Oct 2026, 100 ZETA per day".replace("ZETA", "zeta"));
    assert_eq!((&row["allocations"], &row["daysUntil"]), (&json!(["Team"]), &json!(0.0)));
    let later = get(&app, "/api/v1/upcoming?type=linear").await;
    assert_eq!(later[1]["when"], "vests from 20 Oct 2026 until 3 Mar 2027, 200 zeta per day");
}

/// Returns the values of some properties of each event of the calendar.
async fn events(app: &TestServer, path: &str) -> Vec<String> {
    let (status, text) = app.request(&format!("GET {path}"), LOCAL).await;
    assert_eq!(status, 200, "{text}");
    let text = text.replace("\r\n ", "");
    let value = |event: &str, name: &str| {
        event.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim_start_matches([':', ';']).trim().to_owned())
    };
    let event = |event: &str| {
        ["UID", "SEQUENCE", "DTSTART", "STATUS", "SUMMARY"].map(|name| value(event, name).unwrap_or_default()).join(" ")
    };
    text.split("BEGIN:VEVENT").skip(1).map(event).collect()
}

#[tokio::test]
async fn calendar_shows_starts_ends_and_rates_and_ignores_prices() {
    let app = run(None, None).await;
    with_linear_unlocks(&app, 0.5, 200.0).await;
    let first = events(&app, "/calendar.ics").await;
    assert_eq!(
        first,
        [
            "unlock/zeta/2026-10-20@cliffwatch 0 VALUE=DATE:20261020 CONFIRMED zeta unlock: 9.00M zeta to Treasury",
            "vesting/zeta/2026-10-20//rate@cliffwatch 0 VALUE=DATE:20261020 CONFIRMED zeta vesting rises from 100 to 200 per day",
            "vesting/zeta/2026-10-20/Team/end@cliffwatch 0 VALUE=DATE:20270303 CONFIRMED zeta: vesting of Team ends",
        ]
    );
    assert_eq!(events(&app, "/calendar.ics?linear=false").await, first[..1]);
    assert_eq!(events(&app, "/calendar.ics?rule=ReleaseChanges").await, first, "the end, too, matches by its rates");
    app.clock.set(app.clock.now() + chrono::TimeDelta::minutes(5));
    with_linear_unlocks(&app, 3.0, 200.0).await;
    assert_eq!(events(&app, "/calendar.ics").await, first, "only the price moved");
    with_linear_unlocks(&app, 0.5, 50.0).await;
    let changed = events(&app, "/calendar.ics").await;
    assert!(changed[1].contains("zeta vesting falls from 100 to 50 per day"), "{changed:#?}");
    let uids =
        |events: &[String]| events.iter().map(|event| event.split(' ').next().unwrap_or_default().to_owned()).collect::<Vec<_>>();
    assert_eq!(uids(&changed), uids(&first));
    assert!(changed.iter().all(|event| event.split(' ').nth(1).is_some_and(|sequence| sequence != "0")), "{changed:#?}");
}

/// The time alone changes nothing within a minute, and `daysUntil` of a date without time of day only at midnight.
#[tokio::test]
async fn etag_of_upcoming_unlocks_holds_while_only_time_passes() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    with_linear_unlocks(&app, 0.5, 200.0).await;
    let tag = async |path: &str| {
        let (status, text) = app.request(&format!("GET {path}"), LOCAL).await;
        assert_eq!(status, 200, "{text}");
        text.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a tag").to_owned()
    };
    let (all, cliffs) = ("/api/v1/upcoming", "/api/v1/upcoming?token=arbitrum");
    app.clock.set("2026-09-21T14:13:00Z".parse().expect("a time"));
    let tags = (tag(all).await, tag(cliffs).await);
    app.clock.set("2026-09-21T14:13:59.999Z".parse().expect("a time"));
    assert_eq!((tag(all).await, tag(cliffs).await), tags);
    let (status, _) = app.request(&format!("GET {all}"), &format!("{LOCAL}If-None-Match: {}\r\n", tags.0)).await;
    assert_eq!(status, 304);
    app.clock.set("2026-09-21T14:14:00Z".parse().expect("a time"));
    assert_ne!(tag(all).await, tags.0, "linear unlocks have less left");
    // A cliff unlock of which only the day is known.
    let event = json!({"unlockDate": "2026-10-10", "cliffUnlocks": {"cliffAmount": 5.0, "cliffValue": 5.0, "allocationBreakdown": [
        {"allocationName": "Team", "cliffAmount": 5.0, "cliffValue": 5.0, "unlockPrecision": "day"}]}});
    let put = vec![Put {
        key: "day".into(),
        record: Record::Unlock(serde_json::from_value(event).expect("an event")),
        is_new_version: true,
    }];
    let state = FeedState { baseline_at: Some(now()), read_at: Some(now()), ..FeedState::default() };
    let id = FeedId::of(Endpoint::UnlockEvents, &"eta".into());
    let feeds = vec![FeedUpdate { id, state, put, removed: Vec::new(), header: None }];
    app.store.commit(Commit { at: now(), feeds, ..Commit::default() }).await.expect("committed");
    let mut tags = Vec::new();
    for (at, days) in [
        ("2026-10-08T00:00:00Z", 2.0),
        ("2026-10-08T00:01:00Z", 2.0),
        ("2026-10-08T23:59:00Z", 2.0),
        ("2026-10-09T00:00:00Z", 1.0),
        ("2026-10-09T23:59:00Z", 1.0),
        ("2026-10-10T12:00:00Z", 0.0),
    ] {
        app.clock.set(at.parse().expect("a time"));
        let rows = get(&app, "/api/v1/upcoming?token=eta").await;
        assert_eq!((&rows[0]["precision"], &rows[0]["daysUntil"]), (&json!("day"), &json!(days)), "{at}");
        tags.push(tag("/api/v1/upcoming?token=eta").await);
    }
    assert_eq!((&tags[0], &tags[1]), (&tags[1], &tags[2]), "the same day has the same tag");
}

#[tokio::test]
async fn cursor_of_a_walk_is_not_bent() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    let page = get(&app, "/api/v1/upcoming?paged=true&limit=1").await;
    let next = page["next"].as_str().expect("another page").to_owned();
    for hours in [-1, 25] {
        app.clock.set(now() + chrono::TimeDelta::hours(hours));
        let (status, text) = app.request(&format!("GET {next}"), LOCAL).await;
        assert!(status == 400 && text.contains("begin again without `after`"), "{text}");
    }
    app.clock.set(now() + chrono::TimeDelta::hours(23));
    assert_eq!(get(&app, &next).await["items"].as_array().map(Vec::len), Some(1));
}

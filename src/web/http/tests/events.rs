//! The event log: order, filters, waiting, and its errors.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::*;
use crate::http::event_watch::MAX_WAITING;
use crate::http::pages::tests::run_with_data;
use model::Silence;

fn silence(id: &str) -> Silence {
    Silence {
        id: id.to_owned(),
        matchers: vec![model::Matcher::parse("token=arbitrum").expect("a matcher")],
        author: "ops".into(),
        comment: String::new(),
        starts_at: now(),
        ends_at: now() + chrono::TimeDelta::hours(1),
        created_at: now(),
    }
}

async fn json(app: &TestServer, path: &str) -> (u16, Value) {
    let (status, response) = app.request(&format!("GET {path}"), LOCAL).await;
    let body = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {response}")))
}

fn numbers(page: &Value) -> Vec<i64> {
    page["events"].as_array().expect("events").iter().map(|event| event["id"].as_i64().expect("a number")).collect()
}

#[tokio::test]
async fn events_are_listed_in_order_and_filtered() {
    let (app, ..) = run_with_data().await;
    let (status, all) = json(&app, "/api/v1/events").await;
    let last = all["last"].as_i64().expect("a number");
    assert!(status == 200 && last > 3, "{all}");
    assert!(numbers(&all).into_iter().eq(1..=last), "{all}");
    assert_eq!((&all["first"], &all["next"]), (&1.into(), &last.into()));
    let (mut walked, mut next) = (Vec::new(), 0);
    while next < last {
        let (_, page) = json(&app, &format!("/api/v1/events?after={next}&limit=2")).await;
        walked.extend(page["events"].as_array().expect("events").clone());
        next = page["next"].as_i64().expect("a number");
    }
    assert_eq!(Value::from(walked), all["events"]);
    let (_, changes) = json(&app, "/api/v1/events?type=notification,alert.firing&type=change").await;
    for event in changes["events"].as_array().expect("events") {
        assert!(["notification", "alert.firing", "change"].contains(&event["type"].as_str().expect("a type")), "{event}");
    }
    assert!(!numbers(&changes).is_empty());
    assert_eq!(changes["next"], last, "the cursor passes events of other types");
}

#[tokio::test]
async fn unusable_cursors_and_parameters_are_errors() {
    let app = run(None, None).await;
    app.store.put_silence(silence("si_1")).await.expect("written");
    for (query, code, status) in [
        ("after=2", "unknown_event", 404),
        ("after=-1", "invalid_parameter", 400),
        ("after=1.5", "invalid_parameter", 400),
        ("type=alerts", "invalid_parameter", 400),
        ("limit=0", "invalid_parameter", 400),
        ("limit=201", "invalid_parameter", 400),
        ("wait=31s", "invalid_parameter", 400),
        ("wait=30", "invalid_parameter", 400),
        ("until=3", "unknown_parameter", 400),
    ] {
        let (found, problem) = json(&app, &format!("/api/v1/events?{query}")).await;
        assert_eq!((found, problem["code"].as_str()), (status, Some(code)), "{query}: {problem}");
    }
    for index in 2..5 {
        app.store.put_silence(silence(&format!("si_{index}"))).await.expect("written");
    }
    let day = Duration::from_secs(86_400);
    app.store.prune(now() + chrono::TimeDelta::days(9), day, day).await.expect("pruned");
    let (status, problem) = json(&app, "/api/v1/events?after=1").await;
    assert_eq!((status, problem["code"].as_str()), (410, Some("events_expired")), "{problem}");
    assert_eq!(problem["suggestions"], serde_json::json!(["4"]));
    assert_eq!(numbers(&json(&app, "/api/v1/events?after=3").await.1), [4]);
    assert_eq!(numbers(&json(&app, "/api/v1/events").await.1), [4], "without a cursor, the log begins with the oldest event");
}

/// The number of silences that other clients make meanwhile.
const OTHERS: i64 = 200;

#[tokio::test]
async fn wait_ends_with_the_next_event_or_with_its_time() {
    let app = run(None, None).await;
    app.store.put_silence(silence("si_1")).await.expect("written");
    let begun = Instant::now();
    assert_eq!(numbers(&json(&app, "/api/v1/events?wait=30s").await.1), [1], "there is an event already");
    let (status, empty) = json(&app, "/api/v1/events?after=1&wait=1s").await;
    assert!(status == 200 && begun.elapsed() >= Duration::from_secs(1), "{empty}");
    assert_eq!((numbers(&empty), &empty["next"]), (Vec::new(), &1.into()));

    let begun = Instant::now();
    let waiting = json(&app, "/api/v1/events?after=1&type=silence.expired&wait=25s");
    let acting = async {
        // Events of another type do not end the wait. There are so many that the client waits through most of them.
        for index in 2..=OTHERS {
            app.store.put_silence(silence(&format!("si_{index}"))).await.expect("written");
        }
        let expired = Instant::now();
        app.store.expire_silence("si_2".into(), now()).await.expect("expired");
        expired
    };
    let ((_, page), expired) = tokio::join!(waiting, acting);
    let (took, delay) = (begun.elapsed(), expired.elapsed());
    assert_eq!((numbers(&page), &page["next"]), (vec![OTHERS + 1], &(OTHERS + 1).into()), "{page}");
    assert!(took < Duration::from_secs(10) && delay < Duration::from_secs(5), "{took:?}, {delay:?}");
}

#[tokio::test]
async fn waiting_clients_do_not_keep_others_waiting() {
    let app = std::sync::Arc::new(run(None, None).await);
    let wait_until_accepted = |app: std::sync::Arc<TestServer>| async move {
        loop {
            match json(&app, "/api/v1/events?after=0&wait=20s").await {
                // The client below may have the slot for a moment.
                (503, _) => tokio::task::yield_now().await,
                response => return response,
            }
        }
    };
    let waiting: Vec<_> = (0..MAX_WAITING).map(|_| tokio::spawn(wait_until_accepted(app.clone()))).collect();
    // All slots are in use as soon as another client is rejected.
    while json(&app, "/api/v1/events?after=0&wait=1s").await.0 != 503 {}
    let begun = Instant::now();
    assert_eq!(json(&app, "/api/v1/changes").await.0, 200);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    app.store.put_silence(silence("si_1")).await.expect("written");
    for waiting in waiting {
        assert_eq!(numbers(&waiting.await.expect("responded").1), [1]);
    }
}

/// A client of the live events, which can be cut off at any byte.
struct LiveClient {
    /// The number of the last event, as a browser keeps it.
    last_id: Option<i64>,
    /// The events that the client got.
    seen: Vec<(i64, String)>,
}

impl LiveClient {
    /// Connects and reads until the event `until`, or until `max_bytes` were read. A message counts once its empty line has arrived.
    async fn read(&mut self, app: &TestServer, query: &str, until: i64, max_bytes: usize) {
        let mut stream = TcpStream::connect(app.address).await.expect("a connection");
        let resume = self.last_id.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let request = format!("GET /events{query} HTTP/1.0\r\n{LOCAL}{resume}\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut received = Vec::new();
        while received.len() < max_bytes && self.last_id.is_none_or(|id| id < until) {
            let mut byte = [0_u8; 1];
            let read = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut byte)).await.expect("in time");
            assert_eq!(read.expect("read"), 1, "{}", String::from_utf8_lossy(&received));
            received.push(byte[0]);
            if received.ends_with(b"\n\n") {
                self.take(std::str::from_utf8(&received).expect("UTF-8"));
            }
        }
    }

    /// Takes the last message of a stream.
    fn take(&mut self, stream: &str) {
        let message = stream.trim_end().rsplit("\n\n").next().unwrap_or_default();
        let field = |name: &str| message.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        self.last_id = field("id: ").map(|id| id.parse().expect("a number")).or(self.last_id);
        if let (Some(kind), Some(data), Some(id)) = (field("event: "), field("data: "), self.last_id) {
            let event: Value = serde_json::from_str(&data).expect("an event");
            assert_eq!((event["id"].as_i64(), event["type"].as_str()), (Some(id), Some(kind.as_str())), "{event}");
            self.seen.push((id, kind));
        }
    }
}

#[tokio::test]
async fn live_events_resume_where_the_connection_broke() {
    let (app, ..) = run_with_data().await;
    for index in 0..40 {
        let id = format!("si_{index}");
        app.store.put_silence(silence(&id)).await.expect("written");
        if index % 3 == 0 {
            app.store.expire_silence(id, now()).await.expect("expired");
        }
    }
    let (_, all) = json(&app, "/api/v1/events?limit=200").await;
    let all: Vec<(i64, String)> = all["events"]
        .as_array()
        .expect("events")
        .iter()
        .map(|event| (event["id"].as_i64().expect("a number"), event["type"].as_str().expect("a type").to_owned()))
        .collect();
    let last = all.last().expect("an event").0;
    let mut random = fastrand::Rng::with_seed(5);
    for (query, kind) in [("?after=0", None), ("?after=0&type=silence.expired", Some("silence.expired"))] {
        let mut client = LiveClient { last_id: None, seen: Vec::new() };
        let mut connections = 0;
        while client.last_id.is_none_or(|id| id < last) {
            client.read(&app, query, last, random.usize(400..4_000)).await;
            connections += 1;
        }
        let expected: Vec<_> = all.iter().filter(|(_, of)| kind.is_none_or(|kind| kind == of)).cloned().collect();
        assert_eq!(client.seen, expected, "{query}");
        assert!(connections > 1, "{query}");
    }
}

#[tokio::test]
async fn live_events_begin_with_the_present_and_reject_unusable_cursors() {
    let (app, ..) = run_with_data().await;
    let last = app.store.last_event().await.expect("read");
    let mut client = LiveClient { last_id: None, seen: Vec::new() };
    client.read(&app, "", last, usize::MAX).await;
    assert_eq!((client.last_id, client.seen.len()), (Some(last), 0), "only the cursor");
    let reading = client.read(&app, "", last + OTHERS, usize::MAX);
    let acting = async {
        for index in 0..OTHERS {
            app.store.put_silence(silence(&format!("si_{index}"))).await.expect("written");
        }
    };
    tokio::join!(reading, acting);
    let expected: Vec<_> = (1..=OTHERS).map(|number| (last + number, "silence.created".to_owned())).collect();
    assert_eq!(client.seen, expected);
    for (query, header, code) in [
        ("?after=99999", "", "unknown_event"),
        ("", "Last-Event-ID: 99999\r\n", "unknown_event"),
        ("", "Last-Event-ID: x\r\n", "invalid_request"),
        ("?type=alert", "", "invalid_parameter"),
        ("?since=1d", "", "unknown_parameter"),
    ] {
        let headers = format!("{LOCAL}Accept: application/json\r\n{header}");
        let (_, response) = app.request(&format!("GET /events{query}"), &headers).await;
        assert!(response.contains(&format!("\"code\":\"{code}\"")), "{query} {header}: {response}");
    }
}

#[tokio::test]
async fn open_pages_get_news_without_events() {
    let app = run(None, None).await;
    let mut stream = TcpStream::connect(app.address).await.expect("a connection");
    stream.write_all(format!("GET /events?pages=true HTTP/1.0\r\n{LOCAL}\r\n").as_bytes()).await.expect("sent");
    let mut received = String::new();
    while !received.contains("event: news") {
        if received.ends_with("retry: 5000\n\n") {
            with_unlocks(&app).await;
            app.store.put_silence(silence("si_1")).await.expect("written");
        }
        let mut some = [0_u8; 1024];
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut some)).await.expect("in time").expect("read");
        assert!(read > 0, "{received}");
        received.push_str(&String::from_utf8_lossy(&some[..read]));
    }
    assert!(!received.contains("id: ") && !received.contains("silence"), "{received}");
}

//! The client against a server that answers as it is told: well, badly, slowly, or not at all.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chrono::{NaiveDate, TimeDelta};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::{
    clock::Clock,
    config::{ByteSize, SecretText, Source, Span, Version},
};

/// What a test's server was asked.
#[derive(Clone, Debug)]
struct Asked {
    /// Path with parameters.
    target: String,
    /// The whole head, lower case.
    head: String,
}

/// What it does.
enum Reply {
    /// Sends these bytes and closes.
    Bytes(Vec<u8>),
    /// Sends these bytes one after the other, a moment apart.
    Drip(Vec<u8>),
    /// Takes the request and says nothing.
    Mute,
}

struct Fake {
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    /// Starts a server; `answer` gets the number of the request, from zero, and its target.
    async fn start(answer: impl Fn(usize, &str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, count, answer) = (Arc::clone(&asked), Arc::new(AtomicUsize::new(0)), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (log, count, answer) = (Arc::clone(&log), Arc::clone(&count), Arc::clone(&answer));
                tokio::spawn(async move {
                    let _gone = Self::serve(socket, &log, &count, &*answer).await;
                });
            }
        });
        Self { address, asked, task }
    }

    async fn serve(
        mut socket: TcpStream,
        log: &Mutex<Vec<Asked>>,
        count: &AtomicUsize,
        answer: &(impl Fn(usize, &str) -> Reply + Send + Sync),
    ) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let number = count.fetch_add(1, Ordering::SeqCst);
        log.lock().expect("the log").push(Asked { target: target.clone(), head: head.to_lowercase() });
        match answer(number, &target) {
            Reply::Bytes(bytes) => socket.write_all(&bytes).await?,
            Reply::Drip(bytes) => {
                for byte in bytes {
                    socket.write_all(&[byte]).await?;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            Reply::Mute => {
                let mut rest = Vec::new();
                socket.read_to_end(&mut rest).await?;
            }
        }
        socket.shutdown().await
    }

    fn targets(&self) -> Vec<String> {
        self.asked.lock().expect("the log").iter().map(|asked| asked.target.clone()).collect()
    }

    fn count(&self) -> usize {
        self.asked.lock().expect("the log").len()
    }
}

fn reply(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    let mut bytes =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    Reply::Bytes(bytes)
}

fn ok(metadata: &str, data: &str) -> Reply {
    let body = format!(r#"{{"metadata":{{"queryDate":"2026-03-09T00:00:00Z"{metadata}}},"status":true,"data":{data}}}"#);
    reply("200 OK", "content-type: application/json\r\n", body)
}

fn pages(page: usize, of: usize, total: usize, data: &str) -> Reply {
    ok(&format!(r#","page":{page},"pageSize":2,"totalPages":{of},"total":{total}"#), data)
}

fn row(day: u32) -> String {
    format!(r#"{{"unlockDate":"2026-03-{day:02}T00:00:00Z","tokenName":"Aptos","cliffUnlocks":{{"cliffAmount":{day}}}}}"#)
}

fn rows(days: &[u32]) -> String {
    format!("[{}]", days.iter().map(|day| row(*day)).collect::<Vec<_>>().join(","))
}

const BURNS: &str = r#"{"tokenId":"aptos","totalBurnAmount":5,"burns":[{"burnDate":"2026-03-01T00:00:00Z","amount":5}]}"#;

fn now() -> Timestamp {
    wire::parse_timestamp("2026-03-09T12:00:00Z").expect("a timestamp")
}

fn source(address: &str) -> Source {
    let seconds = |seconds| Span(Duration::from_secs(seconds));
    Source {
        base_url: address.to_owned(),
        legacy_base_url: address.to_owned(),
        api_key: Some(SecretText::from("sk_secret_key_1".to_owned())),
        api_key_file: None,
        unlock_events: Version::Auto,
        upcoming: Version::Auto,
        token_list: Version::Auto,
        burn: Version::Auto,
        buyback: Version::Auto,
        daily_emission: Version::Auto,
        weekly_emission: Version::Auto,
        allocations: Version::Auto,
        investors: Version::Auto,
        timeout: seconds(20),
        connect_timeout: seconds(5),
        read_timeout: seconds(5),
        requests_per_minute: 10_000,
        concurrency: 4,
        page_size: 2,
        max_body: ByteSize(64 * 1024),
        history: seconds(86_400),
        horizon: seconds(86_400),
        upcoming_horizon: seconds(86_400),
        tls_ca_file: None,
    }
}

fn quick() -> Tuning {
    Tuning {
        backoff: Duration::from_millis(1),
        limited_wait: Duration::from_millis(1),
        key_cache: Duration::ZERO,
        ..Tuning::default()
    }
}

fn client(fake: &Fake) -> (Client, Clock) {
    tuned(&source(&fake.address))
}

fn tuned(source: &Source) -> (Client, Clock) {
    let clock = Clock::manual(now());
    (Client::with_tuning(source, clock.clone(), quick()).expect("a client"), clock)
}

fn day(text: &str) -> NaiveDate {
    text.parse().expect("a day")
}

fn asking(endpoint: Endpoint, token: &str) -> Request {
    Request::Token { endpoint, token: token.into(), start: day("2026-01-01"), end: day("2026-12-31") }
}

fn burns() -> Request {
    asking(Endpoint::Burn, "aptos")
}

fn events() -> Request {
    asking(Endpoint::UnlockEvents, "aptos")
}

#[track_caller]
fn failure(fetched: &Fetched) -> &Failure {
    match &fetched.outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("expected a failure, got {other:?}"),
    }
}

#[track_caller]
fn fresh(fetched: &Fetched) -> &Answer {
    match &fetched.outcome {
        Outcome::Fresh(answer) => answer,
        other => panic!("expected an answer, got {other:?}"),
    }
}

#[track_caller]
fn event_days(fetched: &Fetched) -> Vec<String> {
    match &fresh(fetched).payload {
        Payload::UnlockEvents(events) => {
            events.iter().map(|event| event.unlock_date.copied().expect("a date").format("%d").to_string()).collect()
        }
        other => panic!("expected events, got {other:?}"),
    }
}

/// Asks once and says of what kind the failure was.
async fn fails(answer: impl Fn(usize, &str) -> Reply + Send + Sync + 'static, request: &Request) -> (Failure, usize) {
    let fake = Fake::start(answer).await;
    let (client, _) = client(&fake);
    let fetched = client.fetch(request, None, None).await;
    let failure = failure(&fetched).clone();
    assert!(!failure.message.contains("sk_secret"), "the key must not show: {}", failure.message);
    assert!(failure.message.chars().count() <= 500);
    assert!(!failure.message.chars().any(char::is_control), "{:?}", failure.message);
    assert_eq!(fetched.requests as usize, fake.count());
    (failure, fake.count())
}

#[tokio::test]
async fn a_good_answer_is_read_and_paid_for_once() {
    let fake = Fake::start(|_, _| ok(r#","credit":{"used":7,"limit":1000,"resetAt":"2026-04-01T00:00:00Z"}"#, BURNS)).await;
    let (client, _) = client(&fake);
    let fetched = client.fetch(&burns(), None, None).await;
    let answer = fresh(&fetched);
    let Payload::Burns(data) = &answer.payload else { panic!("expected burns, got {:?}", answer.payload) };
    assert_eq!(data.burns.items().len(), 1);
    assert_eq!((fetched.credits, fetched.requests, fetched.status, fetched.version), (1, 1, Some(200), Some(5)));
    assert_eq!(fetched.credit.and_then(|credit| credit.used.copied()), Some(7));
    let asked = fake.asked.lock().expect("the log").first().cloned().expect("a request");
    assert_eq!(asked.target, "/v5/burn/aptos?start=2026-01-01&end=2026-12-31");
    assert!(asked.head.contains("x-api-key: sk_secret_key_1"));
    assert!(asked.head.contains("accept-encoding: gzip"), "{}", asked.head);
}

#[tokio::test]
async fn equal_bytes_of_data_are_unchanged_whatever_the_metadata() {
    let fake = Fake::start(|number, _| ok(&format!(r#","credit":{{"used":{number}}}"#), BURNS)).await;
    let (client, _) = client(&fake);
    let hash = fresh(&client.fetch(&burns(), None, None).await).hash;
    let again = client.fetch(&burns(), Some(hash), None).await;
    assert!(matches!(again.outcome, Outcome::Unchanged));
    assert_eq!(again.credits, 1);
    let other = client.fetch(&burns(), Some(ContentHash(hash.0 ^ 1)), None).await;
    assert_eq!(fresh(&other).hash, hash);
}

#[tokio::test]
async fn pages_are_walked_to_the_end_that_the_server_names() {
    let fake = Fake::start(|_, target| match target {
        _ if target.contains("page=1&") => pages(1, 3, 5, &rows(&[1, 2])),
        _ if target.contains("page=2&") => pages(2, 3, 5, &rows(&[3, 4])),
        _ => pages(3, 3, 5, &rows(&[5])),
    })
    .await;
    let (client, _) = client(&fake);
    let fetched = client.fetch(&events(), None, None).await;
    assert_eq!(event_days(&fetched), ["01", "02", "03", "04", "05"]);
    assert_eq!((fetched.credits, fetched.requests), (3, 3));
    let first = "/v5/unlock/events/aptos?start=2026-01-01&end=2026-12-31&page=1&pageSize=2";
    assert_eq!(fake.targets().first().map(String::as_str), Some(first));
}

#[tokio::test]
async fn an_endpoint_without_pages_follows_pages_that_the_server_sends() {
    let fake = Fake::start(|_, target| {
        if target.contains("page=2&pageSize=2") {
            pages(2, 2, 3, r#"[{"id":"c"}]"#)
        } else {
            pages(1, 2, 3, r#"[{"id":"a"},{"id":"b"}]"#)
        }
    })
    .await;
    let (client, _) = client(&fake);
    let fetched = client.fetch(&Request::TokenList, None, None).await;
    assert!(matches!(&fresh(&fetched).payload, Payload::Tokens(tokens) if tokens.len() == 3));
    assert_eq!(fake.targets(), ["/v5/token/list", "/v5/token/list?page=2&pageSize=2"]);
}

#[tokio::test]
async fn a_server_that_puts_fewer_rows_on_a_page_than_asked_for_is_followed() {
    let fake = Fake::start(|_, target| {
        let page = (1..=3).find(|page| target.contains(&format!("page={page}&"))).unwrap_or_default();
        ok(&format!(r#","page":{page},"pageSize":1,"totalPages":3,"total":3"#), &rows(&[page]))
    })
    .await;
    let mut source = source(&fake.address);
    source.page_size = 1_000;
    let (client, _) = tuned(&source);
    let fetched = client.fetch(&events(), None, None).await;
    assert_eq!(event_days(&fetched), ["01", "02", "03"]);
    let hash = fresh(&fetched).hash;
    let again = client.fetch(&events(), Some(hash), None).await;
    assert!(matches!(again.outcome, Outcome::Unchanged), "all pages together are compared");
    assert_eq!(again.credits, 3);
}

#[tokio::test]
async fn a_list_that_changes_under_the_walk_is_walked_again() {
    let fake = Fake::start(|number, _| match number {
        0 => pages(1, 2, 3, &rows(&[1, 2])),
        1 => pages(2, 2, 4, &rows(&[3, 4])),
        2 => pages(1, 2, 4, &rows(&[1, 2])),
        _ => pages(2, 2, 4, &rows(&[3, 4])),
    })
    .await;
    let (client, _) = client(&fake);
    let fetched = client.fetch(&events(), None, None).await;
    assert_eq!(event_days(&fetched), ["01", "02", "03", "04"]);
    assert_eq!(fetched.credits, 4, "the first walk was paid for as well");
}

#[tokio::test]
async fn a_list_that_never_holds_still_is_no_answer() {
    let changing = |number: usize, _: &str| pages(number % 2 + 1, 2, 3 + number, &rows(&[1, 2]));
    let (failure, requests) = fails(changing, &events()).await;
    assert_eq!((failure.kind, requests), (FailureKind::Incomplete, 6));
    assert!(
        failure.message.starts_with("GET /v5/unlock/events/aptos: the pages did not fit together in 3 walks"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn a_missing_page_is_no_answer() {
    let missing = |_: usize, target: &str| {
        if target.contains("page=2&") { pages(2, 2, 4, "[]") } else { pages(1, 2, 4, &rows(&[1, 2])) }
    };
    assert_eq!(fails(missing, &events()).await.0.kind, FailureKind::Incomplete);
    let shifted = |_: usize, target: &str| {
        if target.contains("page=2&") { pages(2, 2, 4, &rows(&[2, 3])) } else { pages(1, 2, 4, &rows(&[1, 2])) }
    };
    assert_eq!(fails(shifted, &events()).await.0.kind, FailureKind::Incomplete);
}

#[tokio::test]
async fn a_page_that_fails_is_asked_for_again_and_the_walk_goes_on() {
    let fake = Fake::start(|number, target| match number {
        1 => reply("502 Bad Gateway", "", "oops"),
        2 => reply("200 OK", "", r#"{"metadata":{},"status":true,"data":[{"unlock"#),
        _ if target.contains("page=2&") => pages(2, 2, 3, &rows(&[3])),
        _ => pages(1, 2, 3, &rows(&[1, 2])),
    })
    .await;
    let (client, _) = client(&fake);
    let fetched = client.fetch(&events(), None, None).await;
    assert_eq!(event_days(&fetched), ["01", "02", "03"]);
    assert_eq!((fetched.credits, fetched.requests), (2, 4));
}

#[tokio::test]
async fn a_walk_whose_page_keeps_failing_fails_as_a_whole() {
    let broken = |_: usize, target: &str| {
        if target.contains("page=2&") { reply("500 Internal Server Error", "", "{}") } else { pages(1, 2, 3, &rows(&[1, 2])) }
    };
    let (failure, requests) = fails(broken, &events()).await;
    assert_eq!((failure.kind, requests), (FailureKind::ServerError, 4));
    assert!(failure.message.contains("(page 2 of 2)") && failure.message.contains("tried 3 times"), "{}", failure.message);
}

#[tokio::test]
async fn what_is_no_envelope_is_a_bad_answer_and_says_what_came() {
    let html = |_: usize, _: &str| reply("200 OK", "content-type: text/html\r\n", "<html>\u{1b}[2J<h1>Welcome</h1>");
    let (failure, _) = fails(html, &burns()).await;
    assert_eq!(failure.kind, FailureKind::BadAnswer);
    assert!(
        failure.message.contains("markup") && failure.message.contains("text/html") && failure.message.contains("Welcome"),
        "{failure}"
    );
    let refused = |_: usize, _: &str| reply("200 OK", "", r#"{"status":false,"errorMessage":"bad sk_secret_key_1 \u001b[2J"}"#);
    let (failure, requests) = fails(refused, &burns()).await;
    assert_eq!((failure.kind, requests), (FailureKind::BadAnswer, 1));
    let bare = |_: usize, _: &str| reply("200 OK", "", BURNS);
    assert_eq!(fails(bare, &burns()).await.0.kind, FailureKind::BadAnswer);
    let listless = |_: usize, _: &str| ok("", r#"{"tokenId":"aptos","totalBurnAmount":5}"#);
    assert_eq!(fails(listless, &burns()).await.0.kind, FailureKind::BadAnswer);
    let other = |_: usize, _: &str| ok("", r#"{"tokenId":"arbitrum","burns":[]}"#);
    let (failure, _) = fails(other, &burns()).await;
    assert!(failure.message.contains("about \"arbitrum\" instead"), "{failure}");
    let surrogate = |_: usize, _: &str| reply("200 OK", "", r#"{"status":true,"metadata":{},"data":"\ud800"}"#);
    assert_eq!(fails(surrogate, &burns()).await.0.kind, FailureKind::BadAnswer);
    let empty = |_: usize, _: &str| reply("200 OK", "", "");
    assert_eq!(fails(empty, &burns()).await.0.kind, FailureKind::BadAnswer);
}

#[tokio::test]
async fn a_body_cut_short_is_no_answer() {
    let cut = |_: usize, _: &str| {
        Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"metadata\":{},\"status\":true".to_vec())
    };
    let (failure, requests) = fails(cut, &burns()).await;
    assert_eq!((failure.kind, requests), (FailureKind::Unreachable, 3));
    assert!(failure.message.contains("the connection broke: "), "{failure}");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_while_it_is_read() {
    let large = |_: usize, _: &str| reply("200 OK", "", "x".repeat(64 * 1024 + 1));
    let (failure, requests) = fails(large, &burns()).await;
    assert_eq!((failure.kind, requests), (FailureKind::TooLarge, 1));
    let largest = |_: usize, _: &str| reply("200 OK", "", "x".repeat(64 * 1024));
    assert_eq!(fails(largest, &burns()).await.0.kind, FailureKind::BadAnswer);
}

/// A gzip stream of `runs` × 258 spaces: one literal, then the longest match at distance one, over and over (fixed Huffman
/// codes).
fn gzip_bomb(runs: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut push = |value: u32, width: u32, is_code: bool| {
        for at in 0..width {
            // Codes go out from their highest bit, everything else from its lowest.
            bits.push(value >> (if is_code { width - 1 - at } else { at }) & 1 == 1);
        }
    };
    push(0b011, 3, false); // last block, fixed codes
    push(0x30 + u32::from(b' '), 8, true);
    for _ in 0..runs {
        push(0b1100_0101, 8, true); // length 258
        push(0, 5, true); // distance 1
    }
    push(0, 7, true); // end of block
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    bytes.extend(bits.chunks(8).map(|eight| eight.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit))));
    bytes.extend([0; 8]); // checksum and length, which nobody gets to see
    bytes
}

#[tokio::test]
async fn a_compressed_bomb_is_refused_by_its_decoded_size() {
    let bomb = gzip_bomb(4_000);
    assert!(bomb.len() < 10_000);
    let fake = Fake::start(move |_, _| reply("200 OK", "content-encoding: gzip\r\n", &bomb)).await;
    let (client, _) = client(&fake);
    let fetched = client.fetch(&burns(), None, None).await;
    assert_eq!(failure(&fetched).kind, FailureKind::TooLarge);
    assert!(fetched.bytes > 64 * 1024 && fetched.bytes < 1_000_000, "{} bytes were decoded", fetched.bytes);
}

#[tokio::test]
async fn a_drip_and_a_mute_server_end_at_the_time_limit() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 10000\r\n\r\n".to_vec();
    let slow_head = [&b"HTTP/1.1 200 OK\r\nx: "[..], &[b'y'; 10_000]].concat();
    let slow_body = [&head[..], &[b' '; 10_000]].concat();
    for bytes in [Some(slow_head), Some(slow_body), None] {
        let fake = Fake::start(move |_, _| bytes.clone().map_or(Reply::Mute, Reply::Drip)).await;
        let mut source = source(&fake.address);
        source.timeout = Span(Duration::from_millis(1_200));
        let tuning = Tuning { tries: 1, ..quick() };
        let client = Client::with_tuning(&source, Clock::manual(now()), tuning).expect("a client");
        let fetched = client.fetch(&burns(), None, None).await;
        let failure = failure(&fetched);
        assert_eq!((failure.kind, fetched.requests), (FailureKind::Timeout, 1), "{failure}");
        assert!(failure.message.contains("GET /v5/burn/aptos was not answered in time (at most 1s 200ms)"), "{failure}");
    }
}

#[tokio::test]
async fn a_redirect_never_carries_the_key_anywhere() {
    let elsewhere = Fake::start(|_, _| ok("", BURNS)).await;
    let target = elsewhere.address.clone();
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let location = format!("location: {target}/v5/burn/aptos?key=1\r\n");
        let (failure, requests) = fails(move |_, _| reply(status, &location, ""), &burns()).await;
        assert_eq!((failure.kind, requests), (FailureKind::UnexpectedStatus, 1));
        assert!(failure.message.contains("a redirect to 127.0.0.1;") && !failure.message.contains("key=1"), "{failure}");
    }
    assert_eq!(elsewhere.count(), 0, "the other server must hear nothing");
}

#[tokio::test]
async fn nothing_listening_is_unreachable_with_the_cause() {
    let address = Fake::start(|_, _| Reply::Mute).await.address.clone();
    let (client, _) = tuned(&source(&address));
    let fetched = client.fetch(&burns(), None, None).await;
    let failure = failure(&fetched);
    assert_eq!(failure.kind, FailureKind::Unreachable);
    assert!(failure.message.starts_with("GET /v5/burn/aptos: no connection: "), "{failure}");
    assert!(failure.message.contains("refused") && !failure.message.contains("start="), "{failure}");
}

#[tokio::test]
async fn a_refused_key_is_tried_once_then_left_alone_until_it_is_time_or_changed() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("key");
    std::fs::write(&file, "first_key\n").expect("a key file");
    let fake = Fake::start(|_, _| reply("401 Unauthorized", "", r#"{"errorMessage":"bad key first_key"}"#)).await;
    let mut source = source(&fake.address);
    (source.api_key, source.api_key_file) = (None, Some(file.clone()));
    let (client, clock) = tuned(&source);
    let fetched = client.fetch(&burns(), None, None).await;
    let message = failure(&fetched).message.clone();
    assert_eq!((failure(&fetched).kind, fetched.credits), (FailureKind::Unauthorized, 0));
    assert!(message.contains("source.api_key_file was refused") && message.contains("bad key •••"), "{message}");
    for _ in 0..3 {
        let fetched = client.fetch(&events(), None, None).await;
        assert_eq!((failure(&fetched).kind, fetched.requests), (FailureKind::Unauthorized, 0));
        assert!(failure(&fetched).retry_at.is_some());
    }
    assert_eq!(fake.count(), 1);
    assert!(matches!(client.breaker(), BreakerState::Open { kind: FailureKind::Unauthorized, .. }));
    clock.set(now() + TimeDelta::seconds(301));
    client.fetch(&burns(), None, None).await;
    assert_eq!(fake.count(), 2, "one slow retry");
    std::fs::write(&file, "second_key").expect("a key file");
    client.fetch(&burns(), None, None).await;
    assert_eq!(fake.count(), 3, "a new key is tried at once");
    assert!(fake.asked.lock().expect("the log").last().is_some_and(|asked| asked.head.contains("x-api-key: second_key")));
}

#[tokio::test]
async fn without_a_key_none_is_sent_and_a_401_says_so() {
    let fake = Fake::start(|_, _| reply("401 Unauthorized", "", "")).await;
    let mut source = source(&fake.address);
    source.api_key = None;
    let (client, _) = tuned(&source);
    let fetched = client.fetch(&burns(), None, None).await;
    assert!(failure(&fetched).message.contains("no key was sent"), "{}", failure(&fetched));
    assert!(!fake.asked.lock().expect("the log").iter().any(|asked| asked.head.contains("x-api-key")));
}

#[tokio::test]
async fn a_key_file_that_cannot_be_read_is_named_and_nothing_is_asked() {
    let fake = Fake::start(|_, _| ok("", BURNS)).await;
    let mut source = source(&fake.address);
    (source.api_key, source.api_key_file) = (None, Some("/nonexistent/key".into()));
    let (client, _) = tuned(&source);
    let fetched = client.fetch(&burns(), None, None).await;
    assert_eq!((failure(&fetched).kind, fake.count()), (FailureKind::Unauthorized, 0));
    assert!(failure(&fetched).message.contains("/nonexistent/key"), "{}", failure(&fetched));
}

#[tokio::test]
async fn a_403_for_one_thing_leaves_a_key_that_works_alone() {
    let fake =
        Fake::start(|_, target| if target.contains("secret-token") { reply("403 Forbidden", "", "") } else { ok("", BURNS) })
            .await;
    let (client, _) = client(&fake);
    fresh(&client.fetch(&burns(), None, None).await);
    let fetched = client.fetch(&asking(Endpoint::Burn, "secret-token"), None, None).await;
    assert_eq!(failure(&fetched).kind, FailureKind::Unauthorized);
    fresh(&client.fetch(&burns(), None, None).await);
    let (alone, _) = fails(|_, _| reply("403 Forbidden", "", ""), &burns()).await;
    assert!(alone.message.contains("check its plan"), "{alone}");
}

#[tokio::test]
async fn a_short_retry_after_is_waited_out_inside_the_fetch() {
    let fake = Fake::start(
        |number, _| {
            if number == 0 { reply("429 Too Many Requests", "retry-after: 1\r\n", "") } else { ok("", BURNS) }
        },
    )
    .await;
    let (client, _) = client(&fake);
    let began = std::time::Instant::now();
    let fetched = client.fetch(&burns(), None, None).await;
    fresh(&fetched);
    assert_eq!((fetched.credits, fetched.requests), (1, 2));
    assert!(began.elapsed() >= Duration::from_millis(900));
}

#[tokio::test]
async fn a_long_retry_after_ends_the_fetch_and_is_honoured_by_the_next_ones() {
    let date = (now() + TimeDelta::minutes(20)).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    for (header, minutes) in [("1200".to_owned(), 20), (date, 20), ("999999".to_owned(), 60)] {
        let header = format!("retry-after: {header}\r\n");
        let fake = Fake::start(move |_, _| reply("429 Too Many Requests", &header, r#"{"errorMessage":"slow down"}"#)).await;
        let (client, clock) = client(&fake);
        let fetched = client.fetch(&burns(), None, None).await;
        let told = Some(now() + TimeDelta::minutes(minutes));
        assert_eq!((failure(&fetched).kind, failure(&fetched).retry_at), (FailureKind::RateLimited, told));
        let fetched = client.fetch(&events(), None, None).await;
        assert_eq!((failure(&fetched).kind, failure(&fetched).retry_at, fake.count()), (FailureKind::RateLimited, told, 1));
        clock.set(now() + TimeDelta::minutes(minutes));
        client.fetch(&burns(), None, None).await;
        assert!(fake.count() > 1, "and asked again when it is over");
    }
}

#[tokio::test]
async fn a_429_with_spent_credits_is_an_exhausted_quota() {
    let fake = Fake::start(|number, _| {
        if number == 0 {
            ok(r#","credit":{"used":1000,"limit":1000,"resetAt":"2026-04-01T00:00:00Z"}"#, BURNS)
        } else {
            reply("429 Too Many Requests", "", "")
        }
    })
    .await;
    let (client, _) = client(&fake);
    fresh(&client.fetch(&burns(), None, None).await);
    let fetched = client.fetch(&burns(), None, None).await;
    let resets = wire::parse_timestamp("2026-04-01T00:00:00Z");
    assert_eq!((failure(&fetched).kind, failure(&fetched).retry_at), (FailureKind::QuotaExhausted, resets));
    assert_eq!((fetched.requests, fetched.credits), (1, 0), "no retry");
    let fetched = client.fetch(&burns(), None, None).await;
    assert_eq!((failure(&fetched).kind, fake.count()), (FailureKind::QuotaExhausted, 2), "and nothing is asked meanwhile");
    let inside = |_: usize, _: &str| reply("200 OK", "", r#"{"status":false,"statusCode":429,"errorMessage":"Too many"}"#);
    assert_eq!(fails(inside, &burns()).await.0.kind, FailureKind::RateLimited);
}

#[tokio::test]
async fn no_fetch_spends_more_credits_than_it_may() {
    let fake = Fake::start(
        |_, target| {
            if target.contains("page=2&") { pages(2, 2, 3, &rows(&[3])) } else { pages(1, 2, 3, &rows(&[1, 2])) }
        },
    )
    .await;
    let (client, _) = client(&fake);
    let none = client.fetch(&events(), None, Some(0)).await;
    assert_eq!((failure(&none).kind, none.requests), (FailureKind::QuotaExhausted, 0));
    let one = client.fetch(&events(), None, Some(1)).await;
    assert_eq!((failure(&one).kind, one.credits), (FailureKind::QuotaExhausted, 1));
    let two = client.fetch(&events(), None, Some(2)).await;
    assert_eq!((event_days(&two).len(), two.credits), (3, 2));
    assert!(client.breaker().is_closed(), "our own limit says nothing about the source");
}

#[tokio::test]
async fn auto_settles_on_the_older_version_where_only_that_answers() {
    let fake =
        Fake::start(|_, target| if target.starts_with("/v5/") { reply("404 Not Found", "", "") } else { ok("", &rows(&[1])) })
            .await;
    let (client, clock) = client(&fake);
    let first = client.fetch(&events(), None, None).await;
    assert_eq!((event_days(&first).len(), first.version, first.credits, first.requests), (1, Some(4), 1, 2));
    assert_eq!(client.fetch(&events(), None, None).await.requests, 1, "settled");
    clock.set(now() + TimeDelta::hours(25));
    assert_eq!(client.fetch(&events(), None, None).await.requests, 2, "the newest is tried again after a day");
    let first = "/v5/unlock/events/aptos?start=2026-01-01&end=2026-12-31&page=1&pageSize=2";
    let older = "/v4/unlock/events?tokenId=aptos&start=2026-01-01&end=2026-12-31";
    assert_eq!(fake.targets(), [first, older, older, first, older]);
}

#[tokio::test]
async fn an_unknown_token_settles_nothing() {
    let fake = Fake::start(|_, target| match target {
        _ if target.contains("nobody") => reply("404 Not Found", "", r#"{"errorMessage":"unknown token"}"#),
        _ if target.starts_with("/v5/") => ok("", &rows(&[1])),
        _ => panic!("only v5 is to be asked about a known token"),
    })
    .await;
    let (client, _) = client(&fake);
    let nobody = asking(Endpoint::UnlockEvents, "nobody");
    let fetched = client.fetch(&nobody, None, None).await;
    assert_eq!((failure(&fetched).kind, fetched.requests), (FailureKind::NotFound, 2));
    assert!(
        failure(&fetched).message.starts_with("GET /v5/unlock/events/nobody answered 404 Not Found (\"unknown token\")"),
        "{}",
        failure(&fetched)
    );
    assert_eq!(client.fetch(&events(), None, None).await.version, Some(5));
    assert_eq!(client.fetch(&nobody, None, None).await.requests, 1, "v5 has shown that it exists, so it is the token");
    assert!(client.breaker().is_closed());
}

#[tokio::test]
async fn a_pinned_version_is_the_only_one_asked() {
    let fake = Fake::start(|_, _| reply("404 Not Found", "", "")).await;
    let mut source = source(&fake.address);
    source.burn = Version::V(1);
    let (client, _) = tuned(&source);
    assert_eq!(failure(&client.fetch(&burns(), None, None).await).kind, FailureKind::NotFound);
    assert_eq!(fake.targets(), ["/v1/burn/aptos?start=2026-01-01&end=2026-12-31"]);
}

#[tokio::test]
async fn repeated_failures_open_the_breaker_and_one_probe_closes_it() {
    let down = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let switch = Arc::clone(&down);
    let fake = Fake::start(
        move |_, _| {
            if switch.load(Ordering::SeqCst) { reply("503 Service Unavailable", "", "") } else { ok("", BURNS) }
        },
    )
    .await;
    let (client, clock) = client(&fake);
    for _ in 0..5 {
        assert_eq!(failure(&client.fetch(&burns(), None, None).await).kind, FailureKind::ServerError);
    }
    assert_eq!(fake.count(), 15);
    let fetched = client.fetch(&burns(), None, None).await;
    assert_eq!((failure(&fetched).kind, fake.count()), (FailureKind::Suspended, 15));
    assert!(failure(&fetched).message.contains("503"), "the cause is named: {}", failure(&fetched));
    clock.set(now() + TimeDelta::seconds(31));
    down.store(false, Ordering::SeqCst);
    fresh(&client.fetch(&burns(), None, None).await);
    assert!(client.breaker().is_closed());
}

#[tokio::test]
async fn no_more_fetches_run_at_once_than_allowed() {
    let busy = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&busy);
    let fake = Fake::start(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        Reply::Mute
    })
    .await;
    let mut source = source(&fake.address);
    source.concurrency = 2;
    let (client, _) = tuned(&source);
    let tasks: Vec<_> = (0..6)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.fetch(&burns(), None, None).await })
        })
        .collect();
    let deadline = std::time::Instant::now() + Duration::from_secs(5);
    while busy.load(Ordering::SeqCst) < 2 && std::time::Instant::now() < deadline {
        tokio::task::yield_now().await;
    }
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(busy.load(Ordering::SeqCst), 2);
    for task in tasks {
        task.abort();
    }
}

#[tokio::test]
async fn a_slug_that_would_leave_its_path_is_not_sent() {
    let fake = Fake::start(|_, _| ok("", "[]")).await;
    let (client, _) = client(&fake);
    for slug in ["..", "a/../../admin", "upcoming", ""] {
        let fetched = client.fetch(&asking(Endpoint::UnlockEvents, slug), None, None).await;
        assert_eq!(failure(&fetched).kind, FailureKind::NotFound);
    }
    client.fetch(&asking(Endpoint::UnlockEvents, "a?b#c é%2f"), None, None).await;
    assert_eq!(
        fake.targets().first().and_then(|target| target.split('?').next()),
        Some("/v5/unlock/events/a%3Fb%23c%20%C3%A9%252f")
    );
}

#[test]
fn an_address_that_would_expose_the_key_is_refused() {
    let check = |address: &str| Client::new(&source(address), Clock::manual(now())).err().map(|error| error.to_string());
    for address in ["http://api.example.com", "http://127.0.0.1.example.com", "http://10.0.0.1", "http://localhost.example.com"] {
        assert!(check(address).is_some_and(|error| error.contains("in the clear")), "{address}");
    }
    for address in ["ftp://x", "nonsense", "https://user:hunter2@x", "https://x?key=1", "file:///etc/passwd"] {
        assert!(check(address).is_some_and(|error| !error.contains("hunter2") && error.contains("source.base_url")), "{address}");
    }
    for address in
        ["https://api.example.com/mirror", "http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "http://127.9.9.9"]
    {
        assert_eq!(check(address), None, "{address}");
    }
}

#[test]
fn a_version_that_does_not_exist_is_refused() {
    let mut source = source("http://127.0.0.1:1");
    source.burn = Version::V(3);
    let error = Client::new(&source, Clock::manual(now())).expect_err("no v3 of burn").to_string();
    assert_eq!(error, "source.burn = \"v3\" does not exist: write \"auto\" or one of \"v1\", \"v5\"");
}

#[test]
fn nothing_of_the_key_shows_in_debug() {
    let client = Client::new(&source("http://127.0.0.1:1"), Clock::manual(now())).expect("a client");
    assert!(!format!("{client:?}").contains("sk_secret"));
}

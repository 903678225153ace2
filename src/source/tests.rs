//! Tests of the client against a scripted server.

mod credits;
mod keys;
mod limits;
mod pages;
mod responses;
mod versions;

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

use crate::*;
use model::poll::{FailureKind, FetchedResponse, LinearRequest, Payload, PollFailure, PollResponse};
use model::supply::{Endpoint, Timestamp};
use model::wire;
use model::{
    clock::Clock,
    config::{ByteSize, EndpointVersion, SecretText, SourceSettings, Span},
};

#[derive(Clone, Debug)]
struct LoggedRequest {
    /// The path with parameters.
    target: String,
    /// The head in lowercase.
    head: String,
}

enum FakeReply {
    /// Sends these bytes and closes the connection.
    Bytes(Vec<u8>),
    /// Sends these bytes one at a time, with pauses.
    Drip(Vec<u8>),
    /// Reads the request but sends no response.
    Mute,
}

struct FakeServer {
    address: String,
    log: Arc<Mutex<Vec<LoggedRequest>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeServer {
    /// Starts a server. `response` gets the number of the request, from zero, and its target.
    async fn start(response: impl Fn(usize, &str) -> FakeReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, count, response) = (Arc::clone(&requests), Arc::new(AtomicUsize::new(0)), Arc::new(response));
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (log, count, response) = (Arc::clone(&log), Arc::clone(&count), Arc::clone(&response));
                tokio::spawn(async move {
                    let _gone = Self::serve(socket, &log, &count, &*response).await;
                });
            }
        });
        Self { address, log: requests, task }
    }

    async fn serve(
        mut socket: TcpStream,
        log: &Mutex<Vec<LoggedRequest>>,
        count: &AtomicUsize,
        response: &(impl Fn(usize, &str) -> FakeReply + Send + Sync),
    ) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let number = count.fetch_add(1, Ordering::SeqCst);
        log.lock().expect("the log").push(LoggedRequest { target: target.clone(), head: head.to_lowercase() });
        match response(number, &target) {
            FakeReply::Bytes(bytes) => socket.write_all(&bytes).await?,
            FakeReply::Drip(bytes) => {
                for byte in bytes {
                    socket.write_all(&[byte]).await?;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            FakeReply::Mute => {
                let mut rest = Vec::new();
                socket.read_to_end(&mut rest).await?;
            }
        }
        socket.shutdown().await
    }

    fn targets(&self) -> Vec<String> {
        self.log.lock().expect("the log").iter().map(|request| request.target.clone()).collect()
    }

    fn count(&self) -> usize {
        self.log.lock().expect("the log").len()
    }
}

fn reply(status: &str, headers: &str, body: impl AsRef<[u8]>) -> FakeReply {
    let body = body.as_ref();
    let mut bytes =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    FakeReply::Bytes(bytes)
}

fn ok(metadata: &str, data: &str) -> FakeReply {
    let body = format!(r#"{{"metadata":{{"queryDate":"2026-03-09T00:00:00Z"{metadata}}},"status":true,"data":{data}}}"#);
    reply("200 OK", "content-type: application/json\r\n", body)
}

fn pages(page: usize, of: usize, total: usize, data: &str) -> FakeReply {
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

fn source(address: &str) -> SourceSettings {
    let seconds = |seconds| Span(Duration::from_secs(seconds));
    SourceSettings {
        base_url: address.to_owned(),
        legacy_base_url: address.to_owned(),
        api_key: Some(SecretText::from("sk_secret_key_1".to_owned())),
        api_key_file: None,
        unlock_events: EndpointVersion::Auto,
        upcoming: EndpointVersion::Auto,
        token_list: EndpointVersion::Auto,
        burn: EndpointVersion::Auto,
        buyback: EndpointVersion::Auto,
        daily_emission: EndpointVersion::Auto,
        weekly_emission: EndpointVersion::Auto,
        allocations: EndpointVersion::Auto,
        investors: EndpointVersion::Auto,
        timeout: seconds(20),
        connect_timeout: seconds(5),
        read_timeout: seconds(5),
        requests_per_minute: 10_000,
        concurrency: 4,
        page_size: 2,
        max_body: ByteSize(64 * 1024),
        history: model::config::Reach::All,
        horizon: model::config::Reach::All,
        upcoming_horizon: seconds(86_400),
        tls_ca_file: None,
        allow_http_networks: Vec::new(),
        stale_price: Span::from_secs(3 * 86_400),
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

fn client(fake: &FakeServer) -> (Client, Clock) {
    tuned(&source(&fake.address))
}

fn tuned(source: &SourceSettings) -> (Client, Clock) {
    let clock = Clock::manual(now());
    (Client::with_tuning(source, clock.clone(), quick(), Arc::new(OpenGate)).expect("a client"), clock)
}

fn day(text: &str) -> NaiveDate {
    text.parse().expect("a day")
}

fn token_request(endpoint: Endpoint, token: &str) -> PollRequest {
    PollRequest::Token { endpoint, token: token.into(), start: day("2026-01-01"), end: day("2026-12-31") }
}

fn burns() -> PollRequest {
    token_request(Endpoint::Burn, "aptos")
}

fn events() -> PollRequest {
    token_request(Endpoint::UnlockEvents, "aptos")
}

#[track_caller]
fn failure(fetched: &FetchedResponse) -> &PollFailure {
    match &fetched.outcome {
        PollOutcome::Failed(failure) => failure,
        other => panic!("expected a failure, got {other:?}"),
    }
}

#[track_caller]
fn fresh(fetched: &FetchedResponse) -> &PollResponse {
    match &fetched.outcome {
        PollOutcome::Fresh(response) => response,
        other => panic!("expected a response, got {other:?}"),
    }
}

#[track_caller]
fn event_days(fetched: &FetchedResponse) -> Vec<String> {
    match &fresh(fetched).payload {
        Payload::UnlockEvents(events) => {
            events.iter().map(|event| event.unlock_date.copied().expect("a date").format("%d").to_string()).collect()
        }
        other => panic!("expected events, got {other:?}"),
    }
}

/// Fetches once, and returns the failure and the number of requests.
async fn fails(
    response: impl Fn(usize, &str) -> FakeReply + Send + Sync + 'static,
    request: &PollRequest,
) -> (PollFailure, usize) {
    let fake = FakeServer::start(response).await;
    let (client, _) = client(&fake);
    let fetched = client.fetch(request, None, None).await;
    let failure = failure(&fetched).clone();
    assert!(!failure.message.contains("sk_secret"), "the message contains the key: {}", failure.message);
    assert!(failure.message.chars().count() <= 500);
    assert!(!failure.message.chars().any(char::is_control), "{:?}", failure.message);
    assert_eq!(fetched.requests as usize, fake.count());
    (failure, fake.count())
}

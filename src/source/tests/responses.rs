//! Tests of valid responses, invalid bodies, timeouts, and redirects.

use super::*;

#[tokio::test]
async fn response_is_parsed_and_costs_one_credit() {
    let fake = FakeServer::start(|_, _| ok(r#","credit":{"used":7,"limit":1000,"resetAt":"2026-04-01T00:00:00Z"}"#, BURNS)).await;
    let (client, _) = client(&fake);
    let fetched = client.fetch(&burns(), None, None).await;
    let response = fresh(&fetched);
    let Payload::Burns(data) = &response.payload else { panic!("expected burns, got {:?}", response.payload) };
    assert_eq!(data.burns.items().len(), 1);
    assert_eq!((fetched.credits, fetched.requests, fetched.status, fetched.version), (1, 1, Some(200), Some(5)));
    assert_eq!(fetched.credit.and_then(|credit| credit.used.copied()), Some(7));
    let request = fake.log.lock().expect("the log").first().cloned().expect("a request");
    assert_eq!(request.target, "/v5/burn/aptos?start=2026-01-01&end=2026-12-31");
    assert!(request.head.contains("x-api-key: sk_secret_key_1"));
    assert!(request.head.contains("accept-encoding: gzip"), "{}", request.head);
}

#[tokio::test]
async fn equal_data_is_unchanged_with_other_metadata() {
    let fake = FakeServer::start(|number, _| ok(&format!(r#","credit":{{"used":{number}}}"#), BURNS)).await;
    let (client, _) = client(&fake);
    let hash = fresh(&client.fetch(&burns(), None, None).await).hash;
    let retry = client.fetch(&burns(), Some(hash), None).await;
    assert!(matches!(retry.outcome, PollOutcome::Unchanged));
    assert_eq!(retry.credits, 1);
    let other = client.fetch(&burns(), Some(ContentHash(hash.0 ^ 1)), None).await;
    assert_eq!(fresh(&other).hash, hash);
}

#[tokio::test]
async fn invalid_envelope_is_reported_with_its_content() {
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
async fn incomplete_body_is_a_failure() {
    let cut = |_: usize, _: &str| {
        FakeReply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"metadata\":{},\"status\":true".to_vec())
    };
    let (failure, requests) = fails(cut, &burns()).await;
    assert_eq!((failure.kind, requests), (FailureKind::Unreachable, 3));
    assert!(failure.message.contains("the connection failed: "), "{failure}");
}

#[tokio::test]
async fn body_over_the_limit_is_rejected() {
    let large = |_: usize, _: &str| reply("200 OK", "", "x".repeat(64 * 1024 + 1));
    let (failure, requests) = fails(large, &burns()).await;
    assert_eq!((failure.kind, requests), (FailureKind::TooLarge, 1));
    let largest = |_: usize, _: &str| reply("200 OK", "", "x".repeat(64 * 1024));
    assert_eq!(fails(largest, &burns()).await.0.kind, FailureKind::BadAnswer);
}

/// A gzip stream of `runs` × 258 spaces: one literal, then repeated matches of maximum length at distance one (fixed Huffman codes).
fn gzip_bomb(runs: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut push = |value: u32, width: u32, is_code: bool| {
        for at in 0..width {
            // Codes are written from the highest bit, everything else from the lowest.
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
    bytes.extend([0; 8]); // checksum and length, which are never read
    bytes
}

#[tokio::test]
async fn gzip_bomb_is_rejected_by_its_decoded_size() {
    let bomb = gzip_bomb(4_000);
    assert!(bomb.len() < 10_000);
    let fake = FakeServer::start(move |_, _| reply("200 OK", "content-encoding: gzip\r\n", &bomb)).await;
    let (client, _) = client(&fake);
    let fetched = client.fetch(&burns(), None, None).await;
    assert_eq!(failure(&fetched).kind, FailureKind::TooLarge);
    assert!(fetched.bytes > 64 * 1024 && fetched.bytes < 1_000_000, "{} bytes were decoded", fetched.bytes);
}

#[tokio::test]
async fn slow_and_silent_servers_time_out() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 10000\r\n\r\n".to_vec();
    let slow_head = [&b"HTTP/1.1 200 OK\r\nx: "[..], &[b'y'; 10_000]].concat();
    let slow_body = [&head[..], &[b' '; 10_000]].concat();
    for bytes in [Some(slow_head), Some(slow_body), None] {
        let fake = FakeServer::start(move |_, _| bytes.clone().map_or(FakeReply::Mute, FakeReply::Drip)).await;
        let mut source = source(&fake.address);
        source.timeout = Span(Duration::from_millis(1_200));
        let tuning = Tuning { tries: 1, ..quick() };
        let client = Client::with_tuning(&source, Clock::manual(now()), tuning, Arc::new(OpenGate)).expect("a client");
        let fetched = client.fetch(&burns(), None, None).await;
        let failure = failure(&fetched);
        assert_eq!((failure.kind, fetched.requests), (FailureKind::Timeout, 1), "{failure}");
        assert!(failure.message.contains("GET /v5/burn/aptos timed out (limit 1s 200ms)"), "{failure}");
    }
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let elsewhere = FakeServer::start(|_, _| ok("", BURNS)).await;
    let target = elsewhere.address.clone();
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let location = format!("location: {target}/v5/burn/aptos?key=1\r\n");
        let (failure, requests) = fails(move |_, _| reply(status, &location, ""), &burns()).await;
        assert_eq!((failure.kind, requests), (FailureKind::UnexpectedStatus, 1));
        assert!(failure.message.contains("a redirect to 127.0.0.1;") && !failure.message.contains("key=1"), "{failure}");
    }
    assert_eq!(elsewhere.count(), 0, "the target got a request");
}

#[tokio::test]
async fn closed_port_is_unreachable_with_the_cause() {
    let address = FakeServer::start(|_, _| FakeReply::Mute).await.address.clone();
    let (client, _) = tuned(&source(&address));
    let fetched = client.fetch(&burns(), None, None).await;
    let failure = failure(&fetched);
    assert_eq!(failure.kind, FailureKind::Unreachable);
    let place = address.trim_start_matches("http://").trim_end_matches('/');
    assert!(failure.message.starts_with(&format!("GET /v5/burn/aptos: cannot connect to {place}: ")), "{failure}");
    assert!(failure.message.contains("refused") && !failure.message.contains("start="), "{failure}");
}

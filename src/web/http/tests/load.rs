//! Many readers of heavy lists: the daemon and light pages do not wait for them, and no response is larger than its limit.

use model::{Change, ChangeKind, Resource, TokenId};

use super::super::request_limits::{MAX_HEAVY_REQUESTS, MAX_HEAVY_RESPONSES};
use super::*;

const READERS: usize = 24;
/// The number of changes, with 16 KiB each.
const CHANGES: usize = 600;
/// Twice the size limit of a list, which does not count all of the JSON.
const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;

async fn with_large_changes(app: &TestServer) {
    let text = "x".repeat(16 * 1024);
    let change = |number: usize| {
        let mut change = Change::of(ChangeKind::ALL[number % 6], Resource::Unlock, &TokenId::from("arbitrum"));
        change.summary = format!("{number} {text}");
        change
    };
    let changes = (0..CHANGES).map(change).collect();
    app.store.commit(Commit { at: now(), changes, ..Commit::default() }).await.expect("committed");
}

/// Requests a list with many readers, and returns their tasks. Each result is the status and the size of the response.
fn read_with_many(app: &Arc<TestServer>, path: &'static str) -> Vec<tokio::task::JoinHandle<(u16, usize)>> {
    let read = |_| {
        let app = app.clone();
        tokio::spawn(async move {
            let (status, text) = app.request(&format!("GET {path}"), LOCAL).await;
            (status, text.len())
        })
    };
    (0..READERS).map(read).collect()
}

#[tokio::test]
async fn heavy_readers_delay_neither_the_daemon_nor_light_pages() {
    let app = Arc::new(run(None, None).await);
    with_large_changes(&app).await;
    let readers = read_with_many(&app, "/api/v1/changes?limit=10000");
    let finished = || readers.iter().filter(|reader| reader.is_finished()).count();
    // Once the first reader is done, the others are in the queue.
    while finished() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let before = finished();
    for _ in 0..3 {
        app.store.pending_receivers().await.expect("read");
    }
    let (status, _) = app.request("GET /changes", LOCAL).await;
    assert_eq!(status, 200);
    let overtaken = finished() - before;
    assert!(overtaken < READERS / 2, "the daemon and a light page waited for {overtaken} of {READERS} heavy readers");
    for reader in readers {
        let (status, bytes) = reader.await.expect("no panic");
        // On a slow machine, the last ones reach the time limit.
        assert!(status == 200 || status == 503, "{status}");
        assert!(bytes < MAX_RESPONSE_BYTES, "{bytes}");
    }
}

/// A client that stops reading keeps its slot, so that the memory of responses is limited.
#[tokio::test]
async fn slow_clients_keep_their_slots() {
    let app = run(None, None).await;
    with_large_changes(&app).await;
    let mut slow = Vec::new();
    for _ in 0..MAX_HEAVY_RESPONSES {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a small buffer");
        let mut client = socket.connect(app.address).await.expect("a connection");
        let request = format!("GET /api/v1/changes?limit=10000 HTTP/1.1\r\nConnection: close\r\n{LOCAL}\r\n");
        client.write_all(request.as_bytes()).await.expect("sent");
        client.read_u8().await.expect("the response begins");
        slow.push(client);
    }
    let mut next = std::pin::pin!(app.request("GET /api/v1/changes?limit=10000", LOCAL));
    assert!(tokio::time::timeout(Duration::from_millis(500), &mut next).await.is_err(), "all slots are taken");
    drop(slow);
    assert_eq!(next.await.0, 200);
}

/// A reader can ask while the daemon stops, or just before it restarts.
#[tokio::test]
async fn closed_store_is_a_reason_to_try_again() {
    let app = run(None, None).await;
    app.store.close().await.expect("closed");
    let (status, response) = app.request("GET /api/v1/changes", LOCAL).await;
    assert!(status == 503 && response.contains("the daemon is stopping; try again in 5 s"), "{response}");
}

#[tokio::test]
async fn full_queue_rejects_heavy_requests_with_a_time_to_retry() {
    let app = Arc::new(run(None, None).await);
    with_large_changes(&app).await;
    let mut readers = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(app.address).await.expect("a connection");
        let request = format!("GET /api/v1/changes?limit=10000 HTTP/1.1\r\nConnection: close\r\n{LOCAL}\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        readers.push(tokio::spawn(async move {
            let mut response = Vec::new();
            stream.read_to_end(&mut response).await.expect("a response");
            String::from_utf8_lossy(&response).into_owned()
        }));
    }
    let mut rejected = 0;
    for reader in readers {
        let response = reader.await.expect("no panic");
        if response.starts_with("HTTP/1.1 503") {
            assert!(response.contains("retry-after: 5\r\n") && response.contains("try again in 5 s"), "{response}");
            // Others waited too long.
            rejected += usize::from(response.contains("too many other feeds"));
        }
    }
    assert!(rejected >= 100 - 2 * MAX_HEAVY_REQUESTS, "{rejected}");
    assert_eq!(app.request("GET /api/v1/changes?limit=10000", LOCAL).await.0, 200, "the queue is empty again");
}

#[tokio::test]
async fn long_list_is_cut_at_its_size_and_continues_at_the_next_link() {
    let app = run(None, None).await;
    with_large_changes(&app).await;
    let (mut path, mut seen, mut pages) = ("/api/v1/changes?limit=10000&paged=true".to_owned(), Vec::new(), 0);
    loop {
        let (status, text) = app.request(&format!("GET {path}"), LOCAL).await;
        let (head, body) = text.split_once("\r\n\r\n").expect("a body");
        assert!(status == 200 && body.len() < MAX_RESPONSE_BYTES, "{head}");
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(body["total"], CHANGES);
        seen.extend(body["items"].as_array().expect("items").iter().map(|item| item["id"].as_i64().expect("an id")));
        pages += 1;
        match body["next"].as_str() {
            Some(next) => next.clone_into(&mut path),
            None => break,
        }
    }
    assert!(pages > 1, "the list is larger than the limit");
    let expected = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!((seen.len(), expected), (CHANGES, CHANGES), "each change is on one page");
}

#[tokio::test]
async fn feed_finds_old_changes_behind_many_others() {
    let app = run(None, None).await;
    let mut old = Change::of(ChangeKind::Removed, Resource::Burn, &TokenId::from("arbitrum"));
    old.summary = "an old burn".to_owned();
    app.store.commit(Commit { at: now(), changes: vec![old], ..Commit::default() }).await.expect("committed");
    let other = |number: usize| {
        let mut change = Change::of(ChangeKind::Resized, Resource::Unlock, &TokenId::from("zeta"));
        change.summary = format!("change {number}");
        change
    };
    let changes = (0..11_000).map(other).collect();
    let later = now() + chrono::TimeDelta::minutes(1);
    app.store.commit(Commit { at: later, changes, ..Commit::default() }).await.expect("committed");
    for filter in ["resource=burn", "kind=removed", "resource=burn,funding", "token=arbitrum", "group=portfolio"] {
        let (status, text) = app.request(&format!("GET /feed.atom?{filter}"), LOCAL).await;
        assert!(status == 200 && text.matches("<entry>").count() == 1 && text.contains("an old burn"), "{filter}: {text}");
    }
}

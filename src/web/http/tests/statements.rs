//! The number of statements that a page sends to a database server. A proxy between the program and the server counts them in the protocol.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::scale::{alert, change, feed, id, item, notification, polls};
use super::*;
use model::Alert;

/// Enough tokens to fill each list.
const FEW: usize = 240;
const MANY: usize = 480;
/// The rows of the longest list of a page. A page may send statements for each row that it shows.
const ROWS: usize = 50;
/// The statements for each row of a list, at most.
const STATEMENTS_PER_ROW: usize = 8;
/// The statements that more tokens may add, because lists choose other rows.
const SLACK: usize = 12;

/// The statements and round trips of all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Traffic {
    statements: usize,
    round_trips: usize,
}

#[derive(Debug, Default)]
struct Counts {
    statements: AtomicUsize,
    round_trips: AtomicUsize,
}

impl Counts {
    fn now(&self) -> Traffic {
        Traffic { statements: self.statements.load(Ordering::SeqCst), round_trips: self.round_trips.load(Ordering::SeqCst) }
    }
}

/// Forwards connections to the server of `url`. Returns the URL of the proxy, and its counts.
async fn proxy(url: &str) -> (String, Arc<Counts>) {
    let mut url = Url::parse(url).expect("a URL");
    let server = (url.host_str().expect("a host").to_owned(), url.port().unwrap_or(5432));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    url.set_host(Some("127.0.0.1")).expect("a host");
    url.set_port(Some(listener.local_addr().expect("an address").port())).expect("a port");
    let counts = Arc::new(Counts::default());
    let counted = counts.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&server).await.expect("the server");
            // Messages are forwarded one by one. Without this, each would wait for the acknowledgement of the one before.
            server.set_nodelay(true).and_then(|()| client.set_nodelay(true)).expect("set");
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            // The requests that the server has not responded to. A client that sends several of them waits once.
            let (requested, seen) = (Arc::new(AtomicUsize::new(0)), counted.clone());
            let open = requested.clone();
            tokio::spawn(forward(from_client, to_server, false, move |kind| match kind {
                b'E' => _ = seen.statements.fetch_add(1, Ordering::SeqCst),
                b'S' if requested.fetch_add(1, Ordering::SeqCst) == 0 => _ = seen.round_trips.fetch_add(1, Ordering::SeqCst),
                _ => {}
            }));
            tokio::spawn(forward(from_server, to_client, true, move |kind| {
                // The first `ReadyForQuery` ends the startup, which no request began.
                if kind == b'Z' {
                    open.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |open| open.checked_sub(1)).ok();
                }
            }));
        }
    });
    (url.into(), counts)
}

/// Forwards messages of the protocol, and reports the type of each. The first message of a client has no type. Returns when the
/// connection ends.
async fn forward(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut is_started: bool,
    mut seen: impl FnMut(u8) + Send,
) -> Option<()> {
    loop {
        let mut message = Vec::new();
        if is_started {
            message.push(from.read_u8().await.ok()?);
        }
        let length = from.read_i32().await.ok()?;
        message.extend(length.to_be_bytes());
        let head = message.len();
        message.resize(head + usize::try_from(length).ok()? - 4, 0);
        from.read_exact(message.get_mut(head..)?).await.ok()?;
        if is_started {
            seen(*message.first()?);
        }
        is_started = true;
        to.write_all(&message).await.ok()?;
    }
}

/// Opens the database for an instance that stays active until the test ends.
async fn active_instance(url: &str) -> Store {
    let place = daemon::database_url::parse_database(url, None).expect("a URL");
    let store = Store::open_in(place, Access::Own, now()).await.expect("a store");
    testkit::Database::Server(url.to_owned()).end_term();
    store.maintain_lease("a test").await.expect("active");
    let renewed = store.clone();
    tokio::spawn(async move {
        let mut renewal = tokio::time::interval(model::lease::RENEWAL);
        loop {
            renewal.tick().await;
            renewed.maintain_lease("a test").await.ok();
        }
    });
    store
}

/// Adds the tokens `from..to`, each with a schedule, an alert, a notification, and a change.
async fn add(store: &Store, from: usize, to: usize) {
    let all: Vec<usize> = (from..to).collect();
    let tokens = (0..to).map(item).collect();
    store.commit(Commit { at: now(), tokens, token_list_complete: true, ..Commit::default() }).await.expect("committed");
    for some in all.chunks(60) {
        let alerts: Vec<Alert> = some.iter().map(|number| alert(*number)).collect();
        let notifications = alerts.iter().zip(some).map(|(alert, number)| notification(alert, *number)).collect();
        let feeds = some.iter().map(|token| feed(*token)).collect();
        let changes = some.iter().map(|number| change(*number)).collect();
        let commit = Commit { at: now(), feeds, alerts, notifications, changes, polls: polls(0), ..Commit::default() };
        store.commit(commit).await.expect("committed");
    }
}

/// Returns the least traffic of several requests. Other connections may send statements at the same time.
async fn traffic(app: &TestServer, counts: &Counts, path: &str) -> Traffic {
    let mut least: Option<Traffic> = None;
    for _ in 0..4 {
        // The cache of the overview is older than it may be.
        app.clock.pass(chrono::TimeDelta::seconds(6));
        let before = counts.now();
        let (status, text) = app.request(&format!("GET {path}"), LOCAL).await;
        let after = counts.now();
        assert_eq!(status, 200, "{path}: {before:?} to {after:?}: {text}");
        let traffic =
            Traffic { statements: after.statements - before.statements, round_trips: after.round_trips - before.round_trips };
        least = Some(least.map_or(traffic, |least| least.min(traffic)));
    }
    least.expect("a request")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_of_a_page_do_not_depend_on_the_number_of_tokens() {
    let Some(url) = testkit::create_schema() else {
        println!("skipped without PostgreSQL: statements of pages");
        return;
    };
    // Another instance writes, past the proxy.
    let writer = active_instance(&url).await;
    let (url, counts) = proxy(&url).await;
    let place = daemon::database_url::parse_database(&url, None).expect("a URL");
    let store = Store::open_in(place, Access::Own, now()).await.expect("a store");
    let folder = tempfile::tempdir().expect("a folder");
    let app = run_on(store, folder.path().join("unused.db"), None, None).await;
    let one = id(42);
    let paths = [
        "/".to_owned(),
        "/calendar".to_owned(),
        "/calendar?view=list&sort=share".to_owned(),
        "/tokens".to_owned(),
        "/tokens?sort=next".to_owned(),
        "/tokens?q=T10".to_owned(),
        format!("/tokens/{one}"),
        format!("/compare?token={one}&token={}", id(43)),
        "/changes".to_owned(),
        "/alerts".to_owned(),
        "/alerts?state=firing&receiver=ops".to_owned(),
        "/alerts/al_000042".to_owned(),
        "/silences".to_owned(),
        "/rules".to_owned(),
        "/deliveries".to_owned(),
        "/digests".to_owned(),
        "/audit".to_owned(),
        "/digests/desk/preview".to_owned(),
        "/metrics".to_owned(),
        "/feed.atom".to_owned(),
        format!("/calendar.ics?token={one}"),
        "/api/v1/status".to_owned(),
        "/api/v1/upcoming?within=7d&limit=20".to_owned(),
        "/api/v1/tokens?limit=20".to_owned(),
        "/api/v1/changes?limit=20".to_owned(),
        "/api/v1/alerts?limit=20".to_owned(),
        "/api/v1/rules".to_owned(),
    ];
    let mut few = Vec::new();
    add(&writer, 0, FEW).await;
    for path in &paths {
        few.push(traffic(&app, &counts, path).await);
    }
    add(&writer, FEW, MANY).await;
    let mut growing = Vec::new();
    for (path, few) in paths.iter().zip(few) {
        let many = traffic(&app, &counts, path).await;
        let (before, after) = (few.statements, many.statements);
        println!("{path:44} {before:>3} statements for {FEW} tokens, {after:>3} for {MANY}, {:>3} round trips", many.round_trips);
        // The number of round trips depends on how fast the server answers, so it is only printed.
        if after > before + SLACK || after > ROWS * STATEMENTS_PER_ROW {
            growing.push(format!("{path}: {few:?} for {FEW} tokens, {many:?} for {MANY}"));
        }
    }
    assert!(counts.now().statements > paths.len(), "the proxy counts nothing");
    assert!(growing.is_empty(), "{}", growing.join("\n"));
}

//! The web pages of an instance that cannot use the database: it responds all the time, with the reason.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::{Stage, WAIT_TIMEOUT};
use crate::it::pair::session::Greed;

/// The interval between two requests.
const INTERVAL: Duration = Duration::from_millis(50);
/// The time limit of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest accepted time without a response. A restart of the process closes the port for a moment.
const MAX_SILENCE: Duration = Duration::from_secs(3);

/// Status and text of a response. `None` without one.
type CheckResult = Option<(u16, String)>;

/// A load balancer that checks whether an instance is ready.
struct HealthCheck {
    is_over: Arc<AtomicBool>,
    checker: JoinHandle<Vec<(Instant, CheckResult)>>,
}

impl HealthCheck {
    fn begin(port: u16) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let ending = is_over.clone();
        let checker = std::thread::spawn(move || {
            let mut seen = Vec::new();
            while !ending.load(Ordering::SeqCst) {
                seen.push((Instant::now(), ready(port)));
                std::thread::sleep(INTERVAL);
            }
            seen
        });
        Self { is_over, checker }
    }

    /// Ends the checks. Returns the responses and the longest time without one.
    fn end(self) -> (Vec<(u16, String)>, Duration) {
        self.is_over.store(true, Ordering::SeqCst);
        let seen = self.checker.join().expect("ended");
        let mut responded_at = seen.first().map_or_else(Instant::now, |(at, _)| *at);
        let mut silence = Duration::ZERO;
        for (at, response) in &seen {
            silence = silence.max(at.duration_since(responded_at));
            if response.is_some() {
                responded_at = *at;
            }
        }
        (seen.into_iter().filter_map(|(_, response)| response).collect(), silence)
    }
}

/// Returns status and text of `/-/ready`. `None` without a response.
fn ready(port: u16) -> CheckResult {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), RESPONSE_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(RESPONSE_TIMEOUT)).ok()?;
    write!(stream, "GET /-/ready HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n").ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

impl Stage {
    async fn until_ready(&self, at: usize, status: u16) -> String {
        let begun = Instant::now();
        loop {
            let port = self.instances[at].pages;
            let response = tokio::task::spawn_blocking(move || ready(port)).await.expect("ended");
            if let Some((_, text)) = response.filter(|(of, _)| *of == status) {
                return text;
            }
            assert!(begun.elapsed() < WAIT_TIMEOUT, "never {status}: {}", self.logs());
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Waits until an instance is not ready for a reason that contains these parts.
    async fn until_reason(&self, at: usize, parts: [&str; 2]) {
        let begun = Instant::now();
        loop {
            let text = self.until_ready(at, 503).await;
            if parts.iter().all(|part| text.contains(part)) {
                return;
            }
            assert!(begun.elapsed() < WAIT_TIMEOUT, "{text}: {}", self.logs());
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instance_that_was_cut_off_responds_with_the_reason() {
    let mut random = fastrand::Rng::with_seed(13);
    let Some(mut stage) = Stage::start().await else { return };
    stage.wait_for_baselines().await;
    let (number, active) = stage.lease().expect("one is active");
    stage.until_ready(active, 200).await;
    let check = HealthCheck::begin(stage.instances[active].pages);
    stage.instances[active].cut_off();
    stage.wait_for_lease(number, &mut random).await;
    stage.until_reason(active, ["cannot open the database", "cannot be reached"]).await;
    assert!(stage.instances[active].log().contains("the lease is lost"), "{}", stage.logs());
    let (responses, silence) = check.end();
    println!("longest time without a response: {silence:?}");
    assert!(silence < MAX_SILENCE, "no response for {silence:?}: {}", stage.logs());
    let first_failure = responses.iter().position(|(status, _)| *status != 200).expect("a failure");
    assert!(responses.iter().skip(first_failure).all(|(status, _)| *status == 503), "{responses:?}");

    stage.instances[active].reconnect();
    stage.until_ready(active, 200).await;
    assert!(!stage.instances[active].has_ended());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_version_waits_for_its_upgrade() {
    let Some(mut stage) = Stage::start().await else { return };
    stage.wait_for_baselines().await;
    let (_, active) = stage.lease().expect("one is active");
    // As a newer program would leave it.
    stage.query("UPDATE meta SET value = value::int + 90 WHERE key = 'schema'");
    for at in [active, 1 - active] {
        stage.until_reason(at, ["a newer version", "run that version or a newer one"]).await;
        assert!(!stage.instances[at].has_ended(), "{}", stage.logs());
    }
    let polls = || stage.query("SELECT count(*) FROM poll");
    let before = polls();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(polls(), before, "neither instance writes");
    stage.query("UPDATE meta SET value = value::int - 90 WHERE key = 'schema'");
    for at in [active, 1 - active] {
        stage.until_ready(at, 200).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn takeover_without_free_connections_waits_for_them() {
    let mut random = fastrand::Rng::with_seed(17);
    let Some(mut stage) = Stage::start().await else { return };
    stage.wait_for_baselines().await;
    let (number, active) = stage.lease().expect("one is active");
    let standby = 1 - active;
    stage.until_ready(standby, 200).await;
    // Only the connection with which the standby reads the lease stays. Another client takes all others.
    let greed = Greed::begin(stage.servers[stage.primary].port, "greedy");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let check = HealthCheck::begin(stage.instances[standby].pages);
    stage.instances[active].signal("KILL");
    stage.query(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'cliffwatch' AND query NOT LIKE '%FROM lease%'",
    );
    stage.wait_for_lease(number, &mut random).await;
    let text = stage.until_ready(standby, 503).await;
    assert!(text.contains("cannot be reached") || text.contains("too many"), "{text}");
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(!stage.instances[standby].has_ended(), "{}", stage.logs());
    drop(greed);
    stage.until_ready(standby, 200).await;
    let (_, silence) = check.end();
    println!("longest time without a response: {silence:?}");
    assert!(silence < MAX_SILENCE, "no response for {silence:?}: {}", stage.logs());
    stage.world.burn(&mut random);
    stage.settle().await.unwrap_or_else(|problem| panic!("{problem}"));
}

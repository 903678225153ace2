//! A program that follows the event log of a daemon that is killed again and again, and that is itself cut off at random.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::*;

/// A program as the documentation recommends it: it stores what it got together with the cursor.
#[derive(Default)]
struct LogFollower {
    cursor: i64,
    seen: Vec<(i64, String)>,
    /// Responses that were lost before they were stored.
    lost: usize,
}

impl LogFollower {
    /// Reads one page. Returns `false` if the daemon does not respond.
    async fn step(&mut self, client: &reqwest::Client, root: &str, random: &mut fastrand::Rng) -> bool {
        let url = format!("{root}/api/v1/events?after={}&limit={}&wait=2s", self.cursor, random.u32(1..20));
        let Ok(response) = client.get(url).send().await else { return false };
        let status = response.status();
        let Ok(text) = response.text().await else { return false };
        assert!(status == 200 || status == 503, "{status}: {text}");
        if status != 200 {
            return false;
        }
        if random.u8(0..5) == 0 {
            self.lost += 1;
            return true;
        }
        let page: Value = serde_json::from_str(&text).expect("JSON");
        for event in page["events"].as_array().expect("events") {
            let number = event["id"].as_i64().expect("a number");
            assert!(!event["body"].is_null(), "{event}");
            self.seen.push((number, event["type"].as_str().expect("a type").to_owned()));
        }
        self.cursor = page["next"].as_i64().expect("a number");
        true
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn follower_of_the_event_log_sees_each_event_once_despite_kills() {
    const ROUNDS: usize = 10;
    cliffwatch::source::install_crypto_provider();
    let seed = fastrand::u64(..);
    // Shown if the test fails.
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut stage = Stage::new().await;
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let config_path = stage.folder.path().join("cliffwatch.toml");
    let config = std::fs::read_to_string(&config_path).expect("read");
    std::fs::write(&config_path, config.replace("listen = \"off\"", &format!("listen = \"{address}\""))).expect("written");

    let until = Arc::new(AtomicBool::new(false));
    let following = tokio::spawn({
        let (until, root, mut random) = (until.clone(), format!("http://{address}"), random.fork());
        async move {
            let (mut follower, client) = (LogFollower::default(), reqwest::Client::new());
            while !until.load(Ordering::SeqCst) {
                if !follower.step(&client, &root, &mut random).await {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            follower
        }
    });
    for round in 0..ROUNDS {
        stage.database.end_term();
        let mut child = stage.start(None);
        tokio::time::sleep(Duration::from_millis(random.u64(300..2_500))).await;
        child.kill().expect("kill -9");
        let status = wait(&mut child).await;
        assert_eq!(status.signal(), Some(9), "not killed by the test but ended by {status}\n{}", stage.log());
        stage.move_last_event(&token(round), TimeDelta::days(9));
    }
    stage.database.end_term();
    let mut child = stage.start(None);
    let deadline = Instant::now() + WAIT_TIMEOUT;
    let is_open = "SELECT count(*) FROM delivery WHERE state IN ('due', 'retrying')";
    let mut settled = 0;
    // Some cycles without a new event.
    while settled < 40 {
        let is_quiet = stage.notified().len() >= TOKENS && stage.database.count(is_open) == 0;
        settled = if is_quiet { settled + 1 } else { 0 };
        assert!(Instant::now() < deadline, "{}", stage.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    until.store(true, Ordering::SeqCst);
    let follower = following.await.expect("followed");
    terminate(&child);
    let status = wait(&mut child).await;
    assert!(status.success(), "ended by {status}\n{}", stage.log());

    // The events are those of the records, in a row, and the follower saw each of them.
    let numbers = stage.database.column("SELECT seq FROM event_log ORDER BY seq");
    let types = stage.database.column("SELECT type FROM event_log ORDER BY seq");
    let logged: Vec<(i64, String)> = numbers
        .iter()
        .zip(&types)
        .map(|(seq, kind)| (seq.as_i64().expect("a number"), kind.as_str().expect("a type").to_owned()))
        .collect();
    assert!(logged.iter().map(|(seq, _)| *seq).eq(1..=i64::try_from(logged.len()).expect("few")), "{logged:?}");
    assert_eq!(follower.seen, logged, "after {} lost responses", follower.lost);
    let count = |kind: &str| i64::try_from(logged.iter().filter(|(_, of)| of == kind).count()).expect("few");
    for (kind, records) in [
        ("change", "SELECT count(*) FROM change"),
        ("notification", "SELECT count(*) FROM notification WHERE receivers <> '[]'"),
        ("delivery.delivered", "SELECT count(*) FROM delivery WHERE state = 'delivered'"),
        ("alert.event", "SELECT count(*) FROM alert WHERE state = 'event'"),
    ] {
        assert_eq!(count(kind), stage.database.count(records), "{kind}");
    }
    assert!(count("alert.firing") >= i64::try_from(TOKENS).expect("few") && follower.lost > 0, "{logged:?}");
}

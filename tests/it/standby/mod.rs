//! Two instances on one PostgreSQL database, a primary with a streaming replica. The standby takes over after every kind of failure of
//! the active instance or of the servers.
//!
//! `tests/postgres/run` provides the PostgreSQL programs; without them, the test prints that it was skipped.
//! `CLIFFWATCH_TAKEOVERS=200` runs more rounds.

mod commands;
mod files;
pub mod machines;
mod pages;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use cliffwatch::{model::lease, service as serve};
use testkit::{faults::Faults, free_port};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::it::soak::{
    RULES,
    books::Books,
    world::{TOKENS, World},
};
use crate::it::support::Cluster;
use machines::{Instance, PROGRAM, Proxy};

/// The documented maximum duration of a takeover.
const MAX_TAKEOVER: Duration = Duration::from_secs(15);
/// The time limit of other waits.
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);
/// The connections of the server. Three are reserved for superusers, who observe it.
const MAX_CONNECTIONS: u16 = 60;
/// The maximum number of deliveries to one receiver that are accepted but not recorded when a process dies.
const UNRECORDED: usize = 8;

/// A failure of the active instance or of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Failure {
    Killed,
    Stopped,
    Paused,
    CutOff,
    ServerRestarts,
    /// The primary stops responding, and its replica is promoted.
    FailedOver,
}

const FAILURES: [Failure; 5] = [Failure::Killed, Failure::Paused, Failure::CutOff, Failure::Stopped, Failure::ServerRestarts];

struct Stage {
    /// The primary and its replica.
    servers: [Cluster; 2],
    /// The index of the primary.
    primary: usize,
    world: World,
    books: Books,
    instances: Vec<Instance>,
    _folder: tempfile::TempDir,
    _ending: tokio_util::sync::DropGuard,
}

impl Stage {
    /// Starts servers and instances. `None` without PostgreSQL.
    async fn start() -> Option<Self> {
        let primary = Cluster::start(&format!("max_connections = {MAX_CONNECTIONS}\n"))?;
        primary.query("CREATE ROLE cliffwatch LOGIN");
        primary.query("CREATE ROLE greedy LOGIN");
        primary.query("GRANT ALL ON SCHEMA public TO cliffwatch");
        let replica = primary.replica();
        let ending = CancellationToken::new();
        let world = World::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let source = listener.local_addr().expect("bound");
        tokio::spawn(serve::serve(listener, Faults::new().wrap(world.service.legacy_router()), ending.clone().cancelled_owned()));
        let (books, receiver) = Books::open(ending.clone()).await;
        let folder = tempfile::tempdir().expect("a folder");
        testkit::install_program(env!("CARGO_BIN_EXE_cliffwatch"), &folder.path().join(PROGRAM));
        let mut instances = Vec::new();
        for name in ["a", "b"] {
            let (first, port) = Proxy::to(&format!("127.0.0.1:{}", primary.port)).await;
            let (second, other) = Proxy::to(&format!("127.0.0.1:{}", replica.port)).await;
            let store =
                format!("postgres://cliffwatch@127.0.0.1:{port},127.0.0.1:{other}/postgres?target_session_attrs=read-write");
            let pages = free_port();
            let config = config(&source.to_string(), &receiver.to_string(), &store, pages);
            instances.push(Instance::start(folder.path().join(name), vec![first, second], &config, RULES, pages));
        }
        let servers = [primary, replica];
        Some(Self { servers, primary: 0, world, books, instances, _folder: folder, _ending: ending.drop_guard() })
    }

    /// Queries the primary directly.
    fn query(&self, sql: &str) -> String {
        self.servers[self.primary].query(sql)
    }

    /// The fencing number of the lease and the index of its holder. `None` without a holder.
    fn lease(&self) -> Option<(i64, usize)> {
        let response = self.query("SELECT number || ' ' || holder FROM lease WHERE renewed_at > '-infinity'");
        let (number, holder) = response.split_once(' ')?;
        let pid: u32 = holder.rsplit(':').next()?.parse().ok()?;
        let at = self.instances.iter().position(|instance| instance.pid() == pid)?;
        Some((number.parse().ok()?, at))
    }

    /// Waits for all baselines, after which changes are notified.
    async fn wait_for_baselines(&self) {
        let begun = Instant::now();
        let sql = "SELECT count(*) FROM feed WHERE endpoint = 'burn' AND baseline_at IS NOT NULL";
        while self.query(sql).parse::<usize>().unwrap_or(0) < TOKENS {
            assert!(begun.elapsed() < WAIT_TIMEOUT, "no baselines: {}", self.logs());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits for a lease with a number above `after`. Returns the number, the index of its holder, and the time it took.
    async fn wait_for_lease(&mut self, after: i64, random: &mut fastrand::Rng) -> (i64, usize, Duration) {
        let begun = Instant::now();
        loop {
            if let Some((number, at)) = self.lease().filter(|(number, _)| *number > after) {
                return (number, at, begun.elapsed());
            }
            assert!(begun.elapsed() < WAIT_TIMEOUT, "no takeover: {}", self.logs());
            self.world.burn(random);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn logs(&self) -> String {
        let tail = |instance: &Instance| instance.log().lines().rev().take(25).collect::<Vec<_>>().join("\n");
        self.instances.iter().map(tail).collect::<Vec<_>>().join("\n==\n")
    }

    /// Applies a failure and restores both instances. Returns the duration of the takeover, or `None` if none was needed.
    async fn round(&mut self, failure: Failure, random: &mut fastrand::Rng) -> Option<Duration> {
        let (number, active) = self.lease().expect("one is active");
        let hit = &self.instances[active];
        let stood_by = hit.times_as_standby();
        match failure {
            Failure::Killed => hit.signal("KILL"),
            Failure::Stopped => hit.signal("TERM"),
            Failure::Paused => hit.signal("STOP"),
            Failure::CutOff => hit.cut_off(),
            Failure::ServerRestarts => return self.server_restarts(number, random).await,
            Failure::FailedOver => return Some(self.fail_over(random).await),
        }
        let (_, now, took) = self.wait_for_lease(number, random).await;
        assert_ne!(now, active, "{failure:?}: the same instance is active again: {}", self.logs());
        let hit = &mut self.instances[active];
        match failure {
            Failure::Killed | Failure::Stopped => hit.restart().await,
            Failure::Paused => hit.signal("CONT"),
            Failure::CutOff => hit.reconnect(),
            Failure::ServerRestarts | Failure::FailedOver => {}
        }
        // The former active instance must become the standby and not take the lease back.
        let begun = Instant::now();
        while self.instances[active].times_as_standby() == stood_by {
            assert!(!self.instances[active].has_ended(), "{failure:?}: the process exited: {}", self.logs());
            assert!(begun.elapsed() < WAIT_TIMEOUT, "{failure:?}: it does not become a standby: {}", self.logs());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(self.lease().map(|(_, at)| at), Some(now), "{failure:?}: {}", self.logs());
        Some(took)
    }

    /// Restarts the server. Afterwards either instance may be active.
    async fn server_restarts(&mut self, number: i64, random: &mut fastrand::Rng) -> Option<Duration> {
        self.servers[self.primary].restart();
        let begun = Instant::now();
        while self.lease().is_none_or(|(now, _)| now < number) {
            assert!(begun.elapsed() < WAIT_TIMEOUT, "no lease after the restart: {}", self.logs());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        for _ in 0..30 {
            self.world.burn(random);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        None
    }

    /// Disconnects and stops the primary, and promotes its replica. Returns the time until the next change was notified.
    async fn fail_over(&mut self, random: &mut fastrand::Rng) -> Duration {
        let begun = Instant::now();
        self.instances.iter().for_each(|instance| instance.proxies[self.primary].cut());
        self.servers[self.primary].stop("immediate");
        self.primary = 1 - self.primary;
        self.servers[self.primary].promote();
        println!("promoted after {:.1?}", begun.elapsed());
        let before = self.world.facts();
        self.world.burn(random);
        let news: Vec<_> = self.world.facts().difference(&before).cloned().collect();
        loop {
            let notified = self.books.facts();
            if news.iter().all(|fact| notified.contains_key(fact)) {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < WAIT_TIMEOUT, "nothing is notified after the failover: {}", self.logs());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until all facts are notified. Returns the missing ones as an error.
    async fn settle(&self) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let notified = self.books.facts();
            let missing: Vec<_> = self.world.facts().into_iter().filter(|fact| !notified.contains_key(fact)).collect();
            if missing.is_empty() {
                return Ok(());
            }
            if begun.elapsed() > WAIT_TIMEOUT {
                return Err(format!("never notified: {missing:?}\n{}", self.logs()));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

fn config(source: &str, receiver: &str, store: &str, pages: u16) -> String {
    format!(
        r#"
[source]
base_url = "http://{source}"
legacy_base_url = "http://{source}"
requests_per_minute = 60000
timeout = "2s"
[schedule]
token_list = "* * * * * *"
upcoming = "off"
unlock_events = "*/5 * * * * *"
burn = "* * * * * *"
buyback = "off"
allocations = "off"
evaluate = "* * * * * *"
[store]
url = "{store}"
[http]
listen = "127.0.0.1:{pages}"
[log]
format = "human"
[delivery]
retry = ["0s", "1s", "1s", "2s", "2s", "4s"]
timeout = "1s"
max_per_hour = 1000000
[[receiver]]
name = "steady"
type = "webhook"
url = "http://{receiver}/hook"
[route]
receivers = ["steady"]
group_by = ["alertname", "token"]
group_wait = "0s"
group_interval = "1s"
"#
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn takeover_loses_nothing_and_keeps_webhook_ids() {
    let rounds = std::env::var("CLIFFWATCH_TAKEOVERS").ok().and_then(|text| text.parse().ok()).unwrap_or(FAILURES.len());
    let mut random = fastrand::Rng::with_seed(7);
    let Some(mut stage) = Stage::start().await else { return };
    stage.wait_for_baselines().await;
    let mut times: BTreeMap<Failure, Vec<Duration>> = BTreeMap::new();
    // One failover in the middle.
    let mut failures: Vec<Failure> = FAILURES.into_iter().cycle().take(rounds).collect();
    failures.insert(rounds / 2, Failure::FailedOver);
    for (round, failure) in failures.into_iter().enumerate() {
        let took = stage.round(failure, &mut random).await;
        println!("round {round}: {failure:?}: {took:?}");
        times.entry(failure).or_default().extend(took);
    }
    stage.settle().await.unwrap_or_else(|problem| panic!("{problem}"));
    // Repeats must have the webhook id of the first message.
    let several_ids: Vec<_> = stage.books.facts().into_iter().filter(|(_, ids)| ids.len() > 1).collect();
    assert!(several_ids.is_empty(), "notified under two ids: {several_ids:?}\n{}", stage.logs());
    assert!(stage.books.repeats() <= rounds * UNRECORDED, "{} repeats in {rounds} rounds", stage.books.repeats());
    let mut all: Vec<Duration> = Vec::new();
    for (failure, mut took) in times {
        took.sort();
        if let Some(worst) = took.last() {
            let at = |share: usize| took[(took.len() - 1) * share / 100];
            println!("{failure:?}: {} times, median {:.1?}, 95 % {:.1?}, worst {worst:.1?}", took.len(), at(50), at(95));
            let limit = match failure {
                // A stopped instance releases its lease, so the standby need not wait for the term.
                Failure::Stopped => lease::TERM,
                Failure::FailedOver => WAIT_TIMEOUT,
                _ => MAX_TAKEOVER,
            };
            assert!(*worst <= limit, "{failure:?} took {worst:?}");
        }
        all.extend(took);
    }
    println!(
        "{} takeovers; {} repeats, all with the id of the first message; {}",
        all.len(),
        stage.books.repeats(),
        stage.world.summary()
    );
}

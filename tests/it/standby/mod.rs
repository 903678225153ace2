//! Two instances on one PostgreSQL database, a primary with a streaming replica: one is active, the other takes over, whatever becomes of
//! the first or of the servers.
//!
//! `tests/postgres/run` says where PostgreSQL's programs are; without them it is said that this is left out. `CLIFFWATCH_TAKEOVERS=200` asks
//! for more rounds.

pub mod machines;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use cliffwatch::{model::lease, service as serve, service::faults::Faults};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::soak::{
    RULES,
    books::Books,
    world::{TOKENS, World},
};
use crate::support::Cluster;
use machines::{Instance, PROGRAM, Wire};

/// How long a take-over may take, by our own promise.
const TAKE_OVER: Duration = Duration::from_secs(15);
/// How long anything else may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Deliveries to one receiver that may be accepted and not yet recorded when a process dies.
const UNRECORDED: usize = 8;

/// What happens to the active one, or to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Killed,
    Stopped,
    Paused,
    CutOff,
    ServerRestarts,
    /// The primary is gone without a word, and its replica takes its place.
    FailedOver,
}

const FATES: [Fate; 5] = [Fate::Killed, Fate::Paused, Fate::CutOff, Fate::Stopped, Fate::ServerRestarts];

struct Stage {
    /// The primary and its replica.
    servers: [Cluster; 2],
    /// Which of them is the primary.
    primary: usize,
    world: World,
    books: Books,
    instances: Vec<Instance>,
    _folder: tempfile::TempDir,
    _ending: tokio_util::sync::DropGuard,
}

impl Stage {
    /// None where there is no PostgreSQL.
    async fn set() -> Option<Self> {
        let primary = Cluster::start("")?;
        let replica = primary.replica();
        let ending = CancellationToken::new();
        let world = World::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let source = listener.local_addr().expect("bound");
        tokio::spawn(serve::serve(listener, world.service.faulty_router(&Faults::new()), ending.clone().cancelled_owned()));
        let (books, receiver) = Books::open(ending.clone()).await;
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::copy(env!("CARGO_BIN_EXE_cliffwatch"), folder.path().join(PROGRAM)).expect("copied");
        let mut instances = Vec::new();
        for name in ["a", "b"] {
            let (first, port) = Wire::to(&format!("127.0.0.1:{}", primary.port)).await;
            let (second, other) = Wire::to(&format!("127.0.0.1:{}", replica.port)).await;
            let store =
                format!("postgres://postgres@127.0.0.1:{port},127.0.0.1:{other}/postgres?target_session_attrs=read-write");
            let config = config(&source.to_string(), &receiver.to_string(), &store);
            instances.push(Instance::start(folder.path().join(name), vec![first, second], &config, RULES));
        }
        let servers = [primary, replica];
        Some(Self { servers, primary: 0, world, books, instances, _folder: folder, _ending: ending.drop_guard() })
    }

    /// Asks the primary past the program.
    fn ask(&self, sql: &str) -> String {
        self.servers[self.primary].ask(sql)
    }

    /// The number of the lease and the place of the instance that holds it; none while nobody does.
    fn lease(&self) -> Option<(i64, usize)> {
        let answer = self.ask("SELECT number || ' ' || holder FROM lease WHERE renewed_at > '-infinity'");
        let (number, holder) = answer.split_once(' ')?;
        let pid: u32 = holder.rsplit(':').next()?.parse().ok()?;
        let at = self.instances.iter().position(|instance| instance.pid() == pid)?;
        Some((number.parse().ok()?, at))
    }

    /// Waits until everything was read once: what comes from then on is news.
    async fn first_read(&self) {
        let begun = Instant::now();
        let sql = "SELECT count(*) FROM feed WHERE endpoint = 'burn' AND baseline_at IS NOT NULL";
        while self.ask(sql).parse::<usize>().unwrap_or(0) < TOKENS {
            assert!(begun.elapsed() < PATIENCE, "nothing is read: {}", self.logs());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until there is a lease with a number above `after`; says which, whose, and after how long.
    async fn taken_after(&mut self, after: i64, random: &mut fastrand::Rng) -> (i64, usize, Duration) {
        let begun = Instant::now();
        loop {
            if let Some((number, at)) = self.lease().filter(|(number, _)| *number > after) {
                return (number, at, begun.elapsed());
            }
            assert!(begun.elapsed() < PATIENCE, "nobody takes over: {}", self.logs());
            self.world.burn(random);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn logs(&self) -> String {
        let tail = |instance: &Instance| instance.log().lines().rev().take(25).collect::<Vec<_>>().join("\n");
        self.instances.iter().map(tail).collect::<Vec<_>>().join("\n==\n")
    }

    /// Lets the active one suffer, and has both instances running again afterwards. Answers how long the other took to take over; none
    /// where nobody had to.
    async fn round(&mut self, fate: Fate, random: &mut fastrand::Rng) -> Option<Duration> {
        let (number, active) = self.lease().expect("one is active");
        let hit = &self.instances[active];
        let stood_by = hit.times_standing_by();
        match fate {
            Fate::Killed => hit.signal("KILL"),
            Fate::Stopped => hit.signal("TERM"),
            Fate::Paused => hit.signal("STOP"),
            Fate::CutOff => hit.cut_off(),
            Fate::ServerRestarts => return self.server_restarts(number, random).await,
            Fate::FailedOver => return Some(self.fail_over(random).await),
        }
        let (_, now, took) = self.taken_after(number, random).await;
        assert_ne!(now, active, "{fate:?}: the other takes over: {}", self.logs());
        let hit = &mut self.instances[active];
        match fate {
            Fate::Killed | Fate::Stopped => hit.again().await,
            Fate::Paused => hit.signal("CONT"),
            Fate::CutOff => hit.reconnect(),
            Fate::ServerRestarts | Fate::FailedOver => {}
        }
        // The one that was active finds out, and stands by: it must not take anything back.
        let begun = Instant::now();
        while self.instances[active].times_standing_by() == stood_by {
            assert!(!self.instances[active].has_ended(), "{fate:?}: it goes on: {}", self.logs());
            assert!(begun.elapsed() < PATIENCE, "{fate:?}: it stands by: {}", self.logs());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(self.lease().map(|(_, at)| at), Some(now), "{fate:?}: {}", self.logs());
        Some(took)
    }

    /// The server restarts; whoever was active goes on, or the other takes over.
    async fn server_restarts(&mut self, number: i64, random: &mut fastrand::Rng) -> Option<Duration> {
        self.servers[self.primary].restart();
        let begun = Instant::now();
        while self.lease().is_none_or(|(now, _)| now < number) {
            assert!(begun.elapsed() < PATIENCE, "the server is back: {}", self.logs());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        for _ in 0..30 {
            self.world.burn(random);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        None
    }

    /// The primary says nothing any more and is gone; its replica is promoted. Answers how long it took until what happened then was told.
    async fn fail_over(&mut self, random: &mut fastrand::Rng) -> Duration {
        let begun = Instant::now();
        self.instances.iter().for_each(|instance| instance.wires[self.primary].cut());
        self.servers[self.primary].stop("immediate");
        self.primary = 1 - self.primary;
        self.servers[self.primary].promote();
        println!("promoted after {:.1?}", begun.elapsed());
        let before = self.world.facts();
        self.world.burn(random);
        let news: Vec<_> = self.world.facts().difference(&before).cloned().collect();
        loop {
            let told = self.books.facts();
            if news.iter().all(|fact| told.contains_key(fact)) {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < PATIENCE, "nobody goes on: {}", self.logs());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until everything that happened was told; says what was not.
    async fn settle(&self) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let told = self.books.facts();
            let missing: Vec<_> = self.world.facts().into_iter().filter(|fact| !told.contains_key(fact)).collect();
            if missing.is_empty() {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("never told: {missing:?}\n{}", self.logs()));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

fn config(source: &str, receiver: &str, store: &str) -> String {
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
listen = "127.0.0.1:0"
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
async fn another_takes_over_and_nothing_is_lost_or_told_under_two_ids() {
    let rounds = std::env::var("CLIFFWATCH_TAKEOVERS").ok().and_then(|text| text.parse().ok()).unwrap_or(FATES.len());
    let mut random = fastrand::Rng::with_seed(7);
    let Some(mut stage) = Stage::set().await else { return };
    stage.first_read().await;
    let mut times: BTreeMap<Fate, Vec<Duration>> = BTreeMap::new();
    // Once, in the midst of the others.
    let mut fates: Vec<Fate> = FATES.into_iter().cycle().take(rounds).collect();
    fates.insert(rounds / 2, Fate::FailedOver);
    for (round, fate) in fates.into_iter().enumerate() {
        let took = stage.round(fate, &mut random).await;
        println!("round {round}: {fate:?}: {took:?}");
        times.entry(fate).or_default().extend(took);
    }
    stage.settle().await.unwrap_or_else(|problem| panic!("{problem}"));
    // Told under one id each: what came twice came under the id of the first.
    let twice: Vec<_> = stage.books.facts().into_iter().filter(|(_, ids)| ids.len() > 1).collect();
    assert!(twice.is_empty(), "told under two ids: {twice:?}\n{}", stage.logs());
    assert!(stage.books.repeats() <= rounds * UNRECORDED, "{} repeats in {rounds} rounds", stage.books.repeats());
    let mut all: Vec<Duration> = Vec::new();
    for (fate, mut took) in times {
        took.sort();
        if let Some(worst) = took.last() {
            let at = |share: usize| took[(took.len() - 1) * share / 100];
            println!("{fate:?}: {} times, median {:.1?}, 95 % {:.1?}, worst {worst:.1?}", took.len(), at(50), at(95));
            let limit = match fate {
                // Whoever stops gives the lease back: nobody waits for the term.
                Fate::Stopped => lease::TERM,
                Fate::FailedOver => PATIENCE,
                _ => TAKE_OVER,
            };
            assert!(*worst <= limit, "{fate:?} took {worst:?}");
        }
        all.extend(took);
    }
    println!(
        "{} take-overs; {} repeats, each under the id of the first; {}",
        all.len(),
        stage.books.repeats(),
        stage.world.happened()
    );
}

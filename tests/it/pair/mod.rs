//! A soak test of two instances on one PostgreSQL server: rounds of failures of the active instance, of the standby, of both, of the
//! network, and of the server, in random order, while source and receivers fail, config and rules change, and the clocks of the machines
//! differ. At the end, and during the run, it compares what the receivers and the source recorded with what happened, the metrics of both
//! instances with the lease, each write with the holder of the lease, and the alerts of a real Prometheus with the faults.
//!
//! `CLIFFWATCH_PAIR_SOAK=7200 tests/postgres/run cargo test --test it pair -- --nocapture` runs for two hours. `CLIFFWATCH_SOAK_SEED`
//! repeats the random choices of a run, but not its timing. Each machine has its own name, machine id, boot, uptime, and address of the
//! source, which needs root. Without root or the PostgreSQL programs, the test prints that it was skipped.

mod claims;
mod edits;
mod fault_log;
mod host;
mod problems;
mod rounds;
pub mod session;
mod watch;
mod witness;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use cliffwatch::{model::clock::Clock, service as serve};
use testkit::{
    faults::{Fault, Faults},
    free_port,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::it::{
    soak::{
        books::{Behavior, Books},
        world::{TOKENS, World},
    },
    standby::machines::{PROGRAM, Proxy},
    support::Cluster,
};
use claims::ClaimBooks;
use edits::{EditInProgress, HostFiles, Surroundings};
use fault_log::{Cause, FaultLog, Prometheus};
use host::Host;
use rounds::Failure;
use watch::{LeaseBooks, RequestBooks};

/// The duration without `CLIFFWATCH_PAIR_SOAK`.
const DEFAULT_SECS: u64 = 45;
/// The time limit of waits.
const WAIT_TIMEOUT: Duration = Duration::from_secs(180);
/// The interval between two steps.
const STEP: Duration = Duration::from_millis(100);
/// The largest difference of a clock that counts as right in this test.
const MAX_SKEW_SECS: i64 = 240;
/// The time in which an instance that lost its lease may finish requests.
const GRACE: Duration = Duration::from_secs(3);
/// The difference between the uptimes of the machines.
const MORE_UPTIME_SECS: u64 = 900 * 86_400;
/// The length of a run that has rounds of several minutes, in which alerts fire.
const LONG_ROUNDS_FROM: Duration = Duration::from_secs(3_600);
/// The number of times that all failures are played between two such rounds.
const DECKS_PER_LONG_ROUNDS: usize = 3;
/// The connections of the server. Three are reserved for superusers.
const MAX_CONNECTIONS: u16 = 50;

struct PairSoak {
    random: fastrand::Rng,
    length: Duration,
    cluster: Cluster,
    world: World,
    faults: Faults,
    /// The books of the receivers `steady`, `moody`, and `extra`.
    books: Vec<Books>,
    hosts: Vec<Host>,
    requests: Vec<RequestBooks>,
    lease: LeaseBooks,
    claims: ClaimBooks,
    fault_log: FaultLog,
    prometheus: Option<Prometheus>,
    around: Surroundings,
    stores: Vec<String>,
    /// The ports of the pages and metrics.
    ports: [u16; 2],
    files: [HostFiles; 2],
    edit: Option<EditInProgress>,
    edits: u32,
    next_edit_at: Instant,
    /// The numbers of the extra rules that were removed again.
    reverted: BTreeSet<u32>,
    source_ends: Option<Instant>,
    receiver_ends: Option<Instant>,
    clock_ends: [Option<Instant>; 2],
    /// When each instance last continued after a pause or a cut.
    resumed_at: [Instant; 2],
    /// The number of injected faults, keyed by name.
    injected: BTreeMap<String, usize>,
    takeovers: BTreeMap<Failure, Vec<Duration>>,
    /// Takeovers although nothing was wrong with the active instance.
    unneeded: usize,
    violations: Vec<String>,
    /// The instances that exited on their own.
    must_start: Vec<usize>,
    _folder: tempfile::TempDir,
    _ending: tokio_util::sync::DropGuard,
}

impl PairSoak {
    /// Starts the server, the source, the receivers, and the instances. `None` without PostgreSQL.
    async fn start(seed: u64, length: Duration) -> Option<Self> {
        let cluster = Cluster::start(&format!("max_connections = {MAX_CONNECTIONS}\n"))?;
        witness::create_logins(&cluster);
        cluster.query("CREATE ROLE greedy LOGIN");
        let mut random = fastrand::Rng::with_seed(seed);
        let ending = CancellationToken::new();
        let mut world = World::new();
        let api_key = world.service.add_key("soak", 1_000_000_000).expect("a key");
        let span = TimeDelta::from_std(length).expect("short");
        world.add_deadlines(
            Clock::system().now() + TimeDelta::seconds(30),
            span.max(TimeDelta::seconds(60)) - TimeDelta::seconds(30),
        );
        let faults = Faults::new();
        let mut requests = Vec::new();
        let mut source_port = 0;
        for address in ["127.0.0.1", "127.0.0.2"] {
            let listener = TcpListener::bind((address, source_port)).await.expect("a port");
            source_port = listener.local_addr().expect("bound").port();
            let books = RequestBooks::default();
            let router = books.wrap(faults.wrap(world.service.legacy_router()));
            tokio::spawn(serve::serve(listener, router, ending.clone().cancelled_owned()));
            requests.push(books);
        }
        let (mut books, mut receivers) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let (book, address) = Books::open(ending.clone()).await;
            books.push(book);
            receivers.push(address);
        }
        let around = Surroundings { source_port, api_key, receivers: [receivers[0], receivers[1], receivers[2]] };
        let folder = tempfile::tempdir().expect("a folder");
        testkit::install_program(env!("CARGO_BIN_EXE_cliffwatch"), &folder.path().join(PROGRAM));
        let (mut hosts, mut stores) = (Vec::new(), Vec::new());
        let ports = [free_port(), free_port()];
        let machines = [("one", "127.0.0.1", 0, "?target_session_attrs=read-write"), ("two", "127.0.0.2", MORE_UPTIME_SECS, "")];
        for ((name, address, uptime, options), listen) in machines.into_iter().zip(ports) {
            let (proxy, port) = Proxy::to(&format!("127.0.0.1:{}", cluster.port)).await;
            let store = format!("postgres://{name}@127.0.0.1:{port}/postgres{options}");
            let place = folder.path().join(name);
            std::fs::create_dir_all(place.join("rules")).expect("a folder");
            let files = HostFiles::default();
            std::fs::write(place.join("cliffwatch.toml"), files.config(&around, &store, listen)).expect("written");
            std::fs::write(place.join("rules/r.toml"), files.rules()).expect("written");
            hosts.push(Host::start(name, place, proxy, address, uptime).await);
            stores.push(store);
        }
        let lease = LeaseBooks::open(cluster.port);
        let instances = [("one", ports[0]), ("two", ports[1])];
        let claims = ClaimBooks::open(instances);
        let prometheus = Prometheus::start(folder.path(), instances);
        let now = Instant::now();
        let next_edit_at = now + Duration::from_millis(random.u64(10_000..20_000));
        Some(Self {
            random,
            length,
            cluster,
            world,
            faults,
            books,
            hosts,
            requests,
            lease,
            claims,
            fault_log: FaultLog::default(),
            prometheus,
            around,
            stores,
            ports,
            files: [HostFiles::default(), HostFiles::default()],
            edit: None,
            edits: 0,
            next_edit_at,
            reverted: BTreeSet::new(),
            source_ends: None,
            receiver_ends: None,
            clock_ends: [None, None],
            resumed_at: [now; 2],
            injected: BTreeMap::new(),
            takeovers: BTreeMap::new(),
            unneeded: 0,
            violations: Vec::new(),
            must_start: Vec::new(),
            _folder: folder,
            _ending: ending.drop_guard(),
        })
    }

    fn count(&mut self, what: &str) {
        *self.injected.entry(what.to_owned()).or_default() += 1;
    }

    fn violate(&mut self, what: String) {
        println!("VIOLATION: {what}");
        self.violations.push(what);
    }

    /// A random time, shorter in a short run.
    fn some_millis(&mut self, least: u64, most: u64) -> Duration {
        let share = if self.length < Duration::from_secs(600) { 5 } else { 1 };
        Duration::from_millis(self.random.u64(least / share..=most / share))
    }

    /// Lets time pass, with all the faults that do not belong to a round.
    async fn step(&mut self) {
        let now = Instant::now();
        match self.random.u32(..1_000) {
            0..30 => self.world.burn(&mut self.random),
            30..50 => {
                self.world.move_one(&mut self.random, |fact| self.books[0].has(fact));
            }
            50..70 => {
                self.world.resize_one(&mut self.random, |fact| self.books[0].has(fact));
            }
            70..80 if self.source_ends.is_none() => self.break_source(now),
            80..90 if self.receiver_ends.is_none() => self.break_receiver(now),
            90..95 => self.set_clock(now),
            _ => {}
        }
        self.repair(now);
        self.continue_edits(now);
        self.check_requests(now);
        tokio::time::sleep(STEP).await;
    }

    fn break_source(&mut self, now: Instant) {
        let fault = match self.random.u32(..12) {
            0 => Fault::status(500),
            1 => Fault::status(503),
            2 => Fault::too_many(1),
            3 => Fault::Slow(Duration::from_millis(900)),
            4 => Fault::Cut(self.random.usize(1..900)),
            5 => Fault::Hang,
            6 => Fault::Garbage,
            7 => Fault::EmptyBody,
            8 => Fault::Emptied,
            9 => Fault::Reversed,
            10 => Fault::Doubled,
            _ => Fault::PageFails(1),
        };
        let path = ["", "/v", "/v5/burn", "/v2/token", "/v3"][self.random.usize(..5)];
        self.count(&format!("source: {}", format!("{fault:?}").split(['(', ' ']).next().unwrap_or_default()));
        self.faults.set(path, fault);
        self.fault_log.begin(Cause::Source, None);
        self.source_ends = Some(now + Duration::from_millis(self.random.u64(300..4_000)));
    }

    fn break_receiver(&mut self, now: Instant) {
        let behaviors =
            [Behavior::Rejects(500), Behavior::Rejects(429), Behavior::AcceptsWithoutResponse, Behavior::Hangs, Behavior::Slow];
        let behavior = behaviors[self.random.usize(..behaviors.len())];
        self.count(&format!("receiver: {behavior:?}"));
        self.books[1].behave(behavior);
        self.fault_log.begin(Cause::Receiver, None);
        self.receiver_ends = Some(now + Duration::from_millis(self.random.u64(500..8_000)));
    }

    /// Sets the clock of a machine wrong for a while, by an amount that counts as right, or by one that does not.
    fn set_clock(&mut self, now: Instant) {
        let at = self.random.usize(..2);
        let wrong = ["+12d", "-20d", "+400d", "-3600d", "+1d", "-2h"];
        let by = match self.random.usize(..wrong.len() * 2) {
            which if which < wrong.len() => wrong[which].to_owned(),
            _ => self.some_skew(),
        };
        self.count(&format!("clock set {}", if by.ends_with(['d', 'h']) { &by } else { "by up to 4 minutes" }));
        self.hosts[at].set_clock(&by);
        self.fault_log.begin(Cause::Clock, Some(at));
        self.clock_ends[at] = Some(now + Duration::from_millis(self.random.u64(1_000..60_000)));
    }

    fn some_skew(&mut self) -> String {
        let most = if self.length < Duration::from_secs(600) { 5 } else { MAX_SKEW_SECS };
        format!("{:+}", self.random.i64(-most..=most))
    }

    /// Ends the faults outside of rounds whose time is over.
    fn repair(&mut self, now: Instant) {
        let is_over = |until: &mut Option<Instant>| until.take_if(|until| *until <= now).is_some();
        if is_over(&mut self.source_ends) {
            self.faults.clear();
            self.fault_log.end(Cause::Source, None);
        }
        if is_over(&mut self.receiver_ends) {
            self.books[1].behave(Behavior::Accepts);
            self.fault_log.end(Cause::Receiver, None);
        }
        for at in 0..2 {
            if is_over(&mut self.clock_ends[at]) {
                let skew = self.some_skew();
                self.hosts[at].set_clock(&skew);
                self.fault_log.end(Cause::Clock, Some(at));
            }
        }
    }

    /// Ends all faults outside of rounds.
    fn end_faults(&mut self) {
        let past = Some(Instant::now());
        (self.source_ends, self.receiver_ends, self.clock_ends) = (past, past, [past; 2]);
        self.repair(Instant::now());
        self.hosts.iter().for_each(|host| host.set_clock("+0"));
        self.end_edits();
    }

    async fn pause(&mut self, time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time {
            self.step().await;
        }
    }

    /// Waits for a condition. Returns whether it was met within [`WAIT_TIMEOUT`], and reports a violation otherwise.
    async fn until(&mut self, what: &str, is_so: impl Fn(&mut Self) -> bool) -> bool {
        let begun = Instant::now();
        while !is_so(self) {
            if begun.elapsed() > WAIT_TIMEOUT {
                let ends = self.logs();
                self.violate(format!("{what}: not within {WAIT_TIMEOUT:?}\n{ends}"));
                return false;
            }
            self.step().await;
        }
        true
    }

    fn logs(&self) -> String {
        self.hosts.iter().map(|host| host.log_end(40)).collect::<Vec<_>>().join("\n")
    }

    /// Saves the logs for the analysis of a failure.
    fn save(&self) -> PathBuf {
        let saved = std::env::temp_dir().join("cliffwatch-pair");
        std::fs::create_dir_all(&saved).ok();
        self.hosts.iter().for_each(|host| host.save(&saved));
        let dump = std::process::Command::new("pg_dump")
            .args(["-h", "127.0.0.1", "-p", &self.cluster.port.to_string(), "-U", "postgres", "-f"])
            .arg(saved.join("database.sql"))
            .arg("postgres")
            .status();
        if !dump.is_ok_and(|status| status.success()) {
            println!("the database was not saved");
        }
        saved
    }

    fn print_counts(&self) {
        println!(
            "{}; {} leases; {} takeovers without a failure",
            self.world.summary(),
            self.lease.tenures().len(),
            self.unneeded
        );
        for (what, times) in &self.injected {
            println!("  {what:<40} {times:>6}");
        }
        for (name, books) in ["steady", "moody", "extra"].into_iter().zip(&self.books) {
            let (accepted, repeats) = (books.accepted().len(), books.repeats());
            println!("  {name:<10} {accepted:>8} accepted {repeats:>6} repeated {:>6} rejected", books.rejected());
        }
        for (failure, times) in &self.takeovers {
            let mut times = times.clone();
            times.sort();
            if let Some(worst) = times.last() {
                let median = times[(times.len() - 1) / 2];
                println!("  {:<24} {:>4} times, median {median:>5.1?}, worst {worst:>5.1?}", format!("{failure:?}"), times.len());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_machines_under_faults_notify_every_fact_once() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = setting("CLIFFWATCH_SOAK_SEED").unwrap_or_else(|| fastrand::u64(..));
    let length = Duration::from_secs(setting("CLIFFWATCH_PAIR_SOAK").unwrap_or(DEFAULT_SECS));
    println!("two machines for {length:?}, seed {seed}");
    if Cluster::is_available() && !host::can_separate() {
        println!("SKIPPED: needs namespaces, as root has them");
        return;
    }
    if !host::can_set_clock() {
        println!("SKIPPED: clocks that differ (Debian: apt-get install faketime)");
    }
    let Some(mut soak) = PairSoak::start(seed, length).await else { return };
    soak.wait_for_baselines().await;
    witness::observe(&soak.cluster);
    soak.wait_for_scrapes().await;
    let (begin, mut shown) = (Instant::now(), Instant::now());
    let mut deck: Vec<Failure> = Vec::new();
    let mut decks = 0;
    let has_long_rounds = length >= LONG_ROUNDS_FROM;
    while begin.elapsed() < length {
        if deck.is_empty() {
            deck = rounds::FAILURES.to_vec();
            soak.random.shuffle(&mut deck);
            if has_long_rounds && decks % DECKS_PER_LONG_ROUNDS == 0 {
                deck.extend(rounds::LONG_FAILURES);
            }
            decks += 1;
        }
        let failure = deck.pop().expect("filled");
        soak.count(&format!("round: {failure:?}"));
        soak.round(failure).await;
        if shown.elapsed() > Duration::from_secs(60) {
            shown = Instant::now();
            let early = soak.problems(false);
            let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
            println!(
                "{:?}: {}, {} accepted, load {}",
                begin.elapsed(),
                soak.world.summary(),
                soak.books[0].accepted().len(),
                load.trim()
            );
            if !early.is_empty() {
                println!("VIOLATIONS: {early:#?}");
            }
        }
    }
    let mut problems = soak.finish(begin.elapsed()).await;
    problems.extend(soak.problems(true));
    problems.extend(std::mem::take(&mut soak.violations));
    soak.print_counts();
    if !problems.is_empty() {
        panic!("seed {seed}, see {}:\n{}", soak.save().display(), problems.join("\n"));
    }
}

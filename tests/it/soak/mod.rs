//! A soak test: runs the real binary with random faults of the source, the receivers, the disk, and the clock, and with random kills,
//! stops, and reloads. At the end it compares the messages that the receivers recorded with what happened at the source.
//!
//! With the PostgreSQL programs of `tests/postgres/run`, the database is on a separate server. Then the server stops cleanly or crashes
//! instead of the disk filling up.
//!
//! `CLIFFWATCH_SOAK=1800 cargo test --test it soak -- --nocapture` runs for half an hour. `CLIFFWATCH_SOAK_SEED` repeats the random
//! choices of a run, but not its timing.

pub mod books;
pub mod machine;
pub mod world;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use cliffwatch::{service as serve, store::failpoint};
use testkit::faults::{Fault, Faults};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::it::support::{Cluster, Database};
use books::{Behavior, Books, Fact};
use machine::Machine;
use world::{SILENCED, World};

/// The duration without `CLIFFWATCH_SOAK`.
const DEFAULT_SECS: u64 = 20;
/// The time limit for all notifications after the last fault.
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum number of deliveries to one receiver that are accepted but not recorded when a process dies.
const UNRECORDED: usize = 8;
const RECEIVERS: [&str; 3] = ["steady", "moody", "deadly"];

pub const RULES: &str = r#"
[[rule]]
alert = "Ahead"
on = "unlock"
within = ["30d"]
when = "cliffValue >= 1000000"

[[rule]]
alert = "Burned"
on = "burn"
when = "amount >= 1000"

[[rule]]
alert = "Moved"
on = "unlock.rescheduled"

[[rule]]
alert = "Gone"
on = "unlock.removed"

[[rule]]
alert = "BurnGone"
on = "burn.removed"

[[rule]]
alert = "Other"
on = "unlock.*"
when = "change.kind != 'rescheduled'"
"#;

struct Soak {
    random: fastrand::Rng,
    world: World,
    faults: Faults,
    books: Vec<Books>,
    machine: Machine,
    database: Database,
    /// The database server. `None` if the database is a file.
    cluster: Option<Cluster>,
    /// The end of the current fault of the source. The fields below are the same for the other faults.
    source_ends: Option<Instant>,
    behavior_ends: [Option<Instant>; RECEIVERS.len()],
    disk_ends: Option<Instant>,
    clock_ends: Option<Instant>,
    rules_end: Option<Instant>,
    /// The number of injected faults, keyed by name.
    injected: BTreeMap<String, usize>,
    _ending: tokio_util::sync::DropGuard,
}

impl Soak {
    async fn new(seed: u64) -> Self {
        let ending = CancellationToken::new();
        let world = World::new();
        let faults = Faults::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let source = listener.local_addr().expect("bound");
        tokio::spawn(serve::serve(listener, faults.wrap(world.service.legacy_router()), ending.clone().cancelled_owned()));
        let machine = Machine::new();
        let cluster = if Cluster::is_available() { Cluster::start("") } else { None };
        let database = match &cluster {
            Some(cluster) => Database::Server(format!("postgres://postgres@127.0.0.1:{}/postgres", cluster.port)),
            None => Database::File(machine.path("disk/soak.db")),
        };
        let store = database.setting();
        let (mut books, mut receivers) = (Vec::new(), String::new());
        for name in RECEIVERS {
            let (book, address) = Books::open(ending.clone()).await;
            books.push(book);
            receivers += &format!("[[receiver]]\nname = \"{name}\"\ntype = \"webhook\"\nurl = \"http://{address}/hook\"\n");
        }
        let config = format!(
            r#"
[source]
base_url = "http://{source}"
legacy_base_url = "http://{source}"
requests_per_minute = 60000
timeout = "2s"
[schedule]
token_list = "* * * * * *"
upcoming = "off"
unlock_events = "* * * * * *"
burn = "* * * * * *"
buyback = "off"
allocations = "off"
evaluate = "* * * * * *"
[store]
{store}
[http]
listen = "off"
[log]
format = "human"
[delivery]
retry = ["0s", "1s", "1s", "2s", "2s", "4s"]
timeout = "1s"
max_per_hour = 1000000
{receivers}
[route]
receivers = ["steady", "moody", "deadly"]
fallback = ["steady"]
group_by = ["alertname", "token"]
group_wait = "0s"
group_interval = "1s"
"#
        );
        machine.write("cliffwatch.toml", &config);
        machine.write("rules/r.toml", RULES);
        Self {
            random: fastrand::Rng::with_seed(seed),
            world,
            faults,
            books,
            machine,
            database,
            cluster,
            source_ends: None,
            behavior_ends: [None; RECEIVERS.len()],
            disk_ends: None,
            clock_ends: None,
            rules_end: None,
            injected: BTreeMap::new(),
            _ending: ending.drop_guard(),
        }
    }

    fn count(&mut self, what: &str) {
        *self.injected.entry(what.to_owned()).or_default() += 1;
    }

    fn in_millis(&mut self, least: u64, most: u64) -> Option<Instant> {
        Some(Instant::now() + Duration::from_millis(self.random.u64(least..=most)))
    }

    /// Performs one random action: a change at the source, or a fault.
    async fn act(&mut self) {
        match self.random.u32(..100) {
            0..30 => self.world.burn(&mut self.random),
            30..45 => {
                let notified = self.books[0].facts();
                self.world.move_one(&mut self.random, |fact| notified.contains_key(fact));
            }
            45..60 => self.break_source(),
            60..75 => self.break_receiver(),
            75..80 => {
                self.count("killed");
                self.machine.end("KILL").await;
            }
            80..84 => {
                self.machine.end("KILL").await;
                self.database.end_term();
                let point = failpoint::POINTS[self.random.usize(..failpoint::POINTS.len())];
                self.count(&format!("died at {point}"));
                let pass = self.random.u32(1..=6);
                self.machine.start(Some(&format!("{point}:{pass}")));
            }
            84..87 => {
                self.count("stopped");
                self.machine.end("TERM").await;
            }
            87..89 => {
                self.count("paused");
                self.machine.signal("STOP");
                tokio::time::sleep(Duration::from_millis(self.random.u64(200..2_000))).await;
                self.machine.signal("CONT");
            }
            89..92 => self.break_rules(),
            92..95 if self.cluster.is_some() => self.stop_server(),
            92..95 => {
                self.count("disk full");
                self.machine.fill_disk();
                self.disk_ends = self.in_millis(300, 2_500);
            }
            _ => {
                let by = ["+8h", "-8h", "+40d", "-40d", "+3600d", "+10m"][self.random.usize(..6)];
                self.count(&format!("clock set {by}"));
                self.machine.set_clock(by);
                self.clock_ends = self.in_millis(500, 6_000);
            }
        }
    }

    fn break_source(&mut self) {
        let fault = match self.random.u32(..14) {
            0 => Fault::status(500),
            1 => Fault::status(503),
            2 => Fault::too_many(1),
            3 => Fault::Slow(Duration::from_millis(900)),
            4 => Fault::Cut(self.random.usize(1..900)),
            5 => Fault::Hang,
            6 => Fault::Garbage,
            7 => Fault::Html,
            8 => Fault::EmptyBody,
            9 => Fault::Emptied,
            10 => Fault::StatusFalse,
            11 => Fault::Reversed,
            12 => Fault::Doubled,
            _ => Fault::PageFails(1),
        };
        let path = ["", "/v", "/v5/burn", "/v2/token", "/v3"][self.random.usize(..5)];
        self.count(&format!("source: {}", format!("{fault:?}").split(['(', ' ', '{']).next().unwrap_or_default()));
        self.faults.clear();
        self.faults.set(path, fault);
        self.source_ends = self.in_millis(300, 4_000);
    }

    fn break_receiver(&mut self) {
        let which = self.random.usize(1..RECEIVERS.len());
        let behavior = match self.random.u32(..6) {
            0 => Behavior::Rejects(500),
            1 => Behavior::Rejects(429),
            2 => Behavior::AcceptsWithoutResponse,
            3 => Behavior::Hangs,
            4 => Behavior::Slow,
            // Only the third receiver responds with a permanent error.
            _ if which == 2 => Behavior::Rejects(if self.random.bool() { 400 } else { 410 }),
            _ => Behavior::Rejects(503),
        };
        self.count(&format!("receiver: {behavior:?}"));
        self.books[which].behave(behavior);
        self.behavior_ends[which] = self.in_millis(500, 6_000);
    }

    fn stop_server(&mut self) {
        let Some(cluster) = self.cluster.as_ref().filter(|_| self.disk_ends.is_none()) else { return };
        let how = if self.random.bool() { "fast" } else { "immediate" };
        cluster.stop(how);
        self.count(&format!("server stopped: {how}"));
        self.disk_ends = self.in_millis(300, 2_500);
    }

    fn break_rules(&mut self) {
        self.count("rules broken");
        match self.random.u32(..3) {
            0 => self.machine.write("rules/r.toml", "[[rule]\nalert = "),
            1 => self.machine.write("rules/r.toml", ""),
            _ => std::fs::remove_file(self.machine.path("rules/r.toml")).unwrap_or_default(),
        }
        self.machine.signal("HUP");
        self.rules_end = self.in_millis(300, 4_000);
    }

    /// Ends expired faults, and starts the daemon if it does not run.
    fn repair(&mut self, now: Instant) {
        let is_over = |until: &mut Option<Instant>| until.take_if(|until| *until <= now).is_some();
        if is_over(&mut self.source_ends) {
            self.faults.clear();
        }
        for (until, books) in self.behavior_ends.iter_mut().zip(&self.books) {
            if is_over(until) {
                books.behave(Behavior::Accepts);
            }
        }
        if is_over(&mut self.disk_ends) {
            match &self.cluster {
                Some(cluster) => cluster.resume(),
                None => self.machine.empty_disk(),
            }
        }
        if is_over(&mut self.clock_ends) {
            self.machine.set_clock("+0");
        }
        if is_over(&mut self.rules_end) {
            self.machine.write("rules/r.toml", RULES);
            self.machine.signal("HUP");
        }
        if !self.machine.check_running() {
            self.database.end_term();
            self.machine.start(None);
        }
    }

    fn end_faults(&mut self) {
        let long_ago = Instant::now();
        self.source_ends = Some(long_ago);
        self.behavior_ends = [Some(long_ago); RECEIVERS.len()];
        // Do not start a server that runs already.
        self.disk_ends = self.disk_ends.map(|_| long_ago).or(self.cluster.is_none().then_some(long_ago));
        self.clock_ends = Some(long_ago);
        self.rules_end = Some(long_ago);
        self.repair(Instant::now());
    }

    fn text(&self, sql: &str) -> Vec<String> {
        self.database.column(sql).iter().map(|value| value.as_str().expect("a text").to_owned()).collect()
    }

    /// The number of process deaths and lost leases, after each of which messages may repeat.
    fn deaths(&self) -> usize {
        self.machine.deaths + self.machine.log().matches("restarting").count()
    }

    /// Starts the daemon, adds the silence before the first response, and waits for the baselines.
    async fn start(&mut self) {
        self.faults.set("", Fault::Hang);
        self.machine.start(None);
        self.until("the start", |soak| soak.machine.log().contains(" started")).await;
        let matcher = format!("token={SILENCED}");
        let silence = ["silence", "add", "--author", "soak", "--comment", "soak", "--for", "365d", &matcher];
        let out = self.machine.command(&silence).output().expect("runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        self.faults.clear();
        // Facts of the baseline are not notified, so wait for it before the first change.
        let records = self.world.records();
        self.until("all baselines", |soak| soak.text("SELECT 'x' FROM record").len() == records).await;
    }

    async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while !is_so(self) {
            if Instant::now() > deadline {
                let log = self.machine.log();
                let end: Vec<&str> = log.lines().rev().take(80).collect();
                let folder = self.machine.save();
                panic!(
                    "{what}: not within {WAIT_TIMEOUT:?}; see {}\n{:#?}\n{}",
                    folder.display(),
                    self.missing(),
                    end.join("\n")
                );
            }
            self.repair(Instant::now());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The facts in dead letters to a receiver, according to the daemon.
    fn dead(&self, receiver: &str) -> BTreeSet<Fact> {
        let sql = format!(
            "SELECT n.body FROM delivery d JOIN delivery_notification dn ON dn.delivery_no = d.no JOIN notification n ON n.id = dn.notification \
             WHERE d.state = 'dead' AND d.receiver = '{receiver}'"
        );
        let mut minutes = books::UnlockMinutes::new();
        self.text(&sql).iter().map(|body| books::fact(&serde_json::from_str(body).expect("JSON"), &mut minutes)).collect()
    }

    /// The expected facts that are neither notified nor dead letters, keyed by receiver.
    fn missing(&self) -> BTreeMap<&'static str, Vec<Fact>> {
        let due = self.world.facts();
        let mut missing = BTreeMap::new();
        for (receiver, books) in RECEIVERS.into_iter().zip(&self.books) {
            let (notified, dead) = (books.facts(), self.dead(receiver));
            let is_missing = |fact: &&Fact| !fact.contains(SILENCED) && !notified.contains_key(*fact) && !dead.contains(*fact);
            missing.insert(receiver, due.iter().filter(is_missing).cloned().collect::<Vec<_>>());
        }
        missing.retain(|_, facts| !facts.is_empty());
        missing
    }

    fn pending_count(&self) -> usize {
        self.text("SELECT webhook_id FROM delivery WHERE state IN ('due', 'retrying')").len()
    }

    /// Returns a description of each violated guarantee.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let due = self.world.facts();
        for (receiver, books) in RECEIVERS.into_iter().zip(&self.books) {
            for (fact, ids) in books.facts() {
                if fact.contains(SILENCED) {
                    problems.push(format!("{receiver} got a silenced alert: {fact}"));
                }
                if !fact.starts_with("SourceTrouble ") && !due.contains(&fact) {
                    problems.push(format!("{receiver} got an alert without a cause: {fact}"));
                }
                if !fact.starts_with("SourceTrouble ") && ids.len() > 1 {
                    problems.push(format!("{receiver} got an alert under several ids, {ids:?}: {fact}"));
                }
            }
            let most = self.deaths() * UNRECORDED + books.unanswered();
            if books.repeats() > most {
                problems.push(format!("{receiver} got {} repeated messages, at most {most} are allowed", books.repeats()));
            }
            let accepted: BTreeSet<String> = books.accepted().into_iter().map(|(id, _)| id).collect();
            let sql = format!("SELECT webhook_id FROM delivery WHERE state = 'delivered' AND receiver = '{receiver}'");
            for id in self.text(&sql).into_iter().filter(|id| !accepted.contains(id)) {
                problems.push(format!("{id} is recorded as delivered, but {receiver} does not have it"));
            }
        }
        let announced = format!("{:?}", self.books[0].incidents());
        for receiver in self.text("SELECT DISTINCT receiver FROM delivery WHERE state = 'dead'") {
            if !announced.contains(&receiver) {
                problems.push(format!("the dead letters of {receiver} were not announced"));
            }
        }
        let lost =
            "SELECT id FROM notification WHERE receivers <> '[]' AND id NOT IN (SELECT notification FROM delivery_notification)";
        let lost = self.text(&format!("{lost} AND body NOT LIKE '%{SILENCED}%'"));
        if !lost.is_empty() {
            problems.push(format!("notifications without a delivery: {lost:?}"));
        }
        if !self.database.is_intact() {
            problems.push("the database is damaged".to_owned());
        }
        problems
    }

    fn print_counts(&self) {
        println!("{}; {} starts, {} deaths", self.world.summary(), self.machine.starts, self.deaths());
        for (what, times) in &self.injected {
            println!("  {what:<32} {times:>6}");
        }
        println!("  {:<10} {:>8} {:>8} {:>8} {:>8}", "receiver", "accepted", "repeated", "rejected", "dead");
        for (receiver, books) in RECEIVERS.into_iter().zip(&self.books) {
            let dead = self.text(&format!("SELECT webhook_id FROM delivery WHERE state = 'dead' AND receiver = '{receiver}'"));
            println!(
                "  {receiver:<10} {:>8} {:>8} {:>8} {:>8}",
                books.accepted().len(),
                books.repeats(),
                books.rejected(),
                dead.len()
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn soak_under_faults_notifies_every_fact_once() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = setting("CLIFFWATCH_SOAK_SEED").unwrap_or_else(|| fastrand::u64(..));
    let length = Duration::from_secs(setting("CLIFFWATCH_SOAK").unwrap_or(DEFAULT_SECS));
    println!("soaking for {length:?}, seed {seed}");
    let mut soak = Soak::new(seed).await;
    for fault in soak.machine.missing_faults() {
        println!("SKIPPED: {fault}");
    }
    soak.start().await;
    let (begin, mut shown) = (Instant::now(), Instant::now());
    while begin.elapsed() < length {
        soak.repair(Instant::now());
        soak.act().await;
        let pause = soak.random.u64(50..600);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if shown.elapsed() > Duration::from_secs(60) {
            shown = Instant::now();
            println!("{:?}: {}, {} accepted", begin.elapsed(), soak.world.summary(), soak.books[0].accepted().len());
        }
    }
    soak.end_faults();
    let ended_at = Instant::now();
    // Fails if a fact is not notified. One that becomes true later, while the daemon stops, does not count.
    soak.until("all notifications", |soak| soak.missing().is_empty() && soak.pending_count() == 0).await;
    println!("all notifications arrived {:?} after the last fault", ended_at.elapsed());
    // Leave time for unexpected messages.
    tokio::time::sleep(Duration::from_secs(3)).await;
    soak.machine.end("TERM").await;
    soak.print_counts();
    let problems = soak.problems();
    if !problems.is_empty() {
        panic!("seed {seed}, see {}:\n{}", soak.machine.save().display(), problems.join("\n"));
    }
}

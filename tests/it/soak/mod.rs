//! A soak: the real binary among faults of the source, the receivers, the disk and the clock, killed, stopped and reloaded at random,
//! for as long as one likes; at the end one checker compares what the receivers have in their own books with what really happened.
//!
//! Where `tests/postgres/run` says where PostgreSQL's programs are, the database is on a server of its own, which stops in order or as by a
//! loss of power where else the disk would be full.
//!
//! `CLIFFWATCH_SOAK=1800 cargo test --test it soak -- --nocapture` goes on for half an hour; `CLIFFWATCH_SOAK_SEED` repeats a run's choices, though not its timing.

pub mod books;
mod machine;
pub mod world;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use cliffwatch::{
    service as serve,
    service::faults::{Fault, Faults},
    store::failpoint,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::{Cluster, Database};
use books::{Books, Fact, Mood};
use machine::Machine;
use world::{SILENCED, World};

/// How long it goes on where nobody says otherwise.
const SECONDS: u64 = 20;
/// How long everything may take to be told once nothing is wrong any more.
const PATIENCE: Duration = Duration::from_secs(120);
/// Deliveries to one receiver that may be accepted and not yet recorded when a process dies.
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
    /// The server, where the database is on one.
    cluster: Option<Cluster>,
    /// What is wrong just now ends then.
    source_ends: Option<Instant>,
    mood_ends: [Option<Instant>; RECEIVERS.len()],
    disk_ends: Option<Instant>,
    clock_ends: Option<Instant>,
    rules_end: Option<Instant>,
    /// What was done, by its name.
    done: BTreeMap<String, usize>,
    _ending: tokio_util::sync::DropGuard,
}

impl Soak {
    async fn new(seed: u64) -> Self {
        let ending = CancellationToken::new();
        let world = World::new();
        let faults = Faults::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let source = listener.local_addr().expect("bound");
        tokio::spawn(serve::serve(listener, world.service.faulty_router(&faults), ending.clone().cancelled_owned()));
        let machine = Machine::new();
        let cluster = if Cluster::is_to_be_had() { Cluster::start("") } else { None };
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
            mood_ends: [None; RECEIVERS.len()],
            disk_ends: None,
            clock_ends: None,
            rules_end: None,
            done: BTreeMap::new(),
            _ending: ending.drop_guard(),
        }
    }

    fn count(&mut self, what: &str) {
        *self.done.entry(what.to_owned()).or_default() += 1;
    }

    fn in_millis(&mut self, least: u64, most: u64) -> Option<Instant> {
        Some(Instant::now() + Duration::from_millis(self.random.u64(least..=most)))
    }

    /// One thing that happens.
    async fn act(&mut self) {
        match self.random.u32(..100) {
            0..30 => self.world.burn(&mut self.random),
            30..45 => {
                let told = self.books[0].facts();
                self.world.move_one(&mut self.random, |fact| told.contains_key(fact));
            }
            45..60 => self.trouble_source(),
            60..75 => self.trouble_receiver(),
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
                self.count("stopped kindly");
                self.machine.end("TERM").await;
            }
            87..89 => {
                self.count("frozen for a while");
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

    fn trouble_source(&mut self) {
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

    fn trouble_receiver(&mut self) {
        let which = self.random.usize(1..RECEIVERS.len());
        let mood = match self.random.u32(..6) {
            0 => Mood::Refuses(500),
            1 => Mood::Refuses(429),
            2 => Mood::TakesInSilence,
            3 => Mood::Hangs,
            4 => Mood::Slow,
            // Only the deadly one says that it will never take it.
            _ if which == 2 => Mood::Refuses(if self.random.bool() { 400 } else { 410 }),
            _ => Mood::Refuses(503),
        };
        self.count(&format!("receiver: {mood:?}"));
        self.books[which].feel(mood);
        self.mood_ends[which] = self.in_millis(500, 6_000);
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

    /// Ends what is over, and starts what does not run.
    fn mend(&mut self, now: Instant) {
        let is_over = |until: &mut Option<Instant>| until.take_if(|until| *until <= now).is_some();
        if is_over(&mut self.source_ends) {
            self.faults.clear();
        }
        for (until, books) in self.mood_ends.iter_mut().zip(&self.books) {
            if is_over(until) {
                books.feel(Mood::Takes);
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
        if !self.machine.runs() {
            self.database.end_term();
            self.machine.start(None);
        }
    }

    /// Everything works again, for good.
    fn calm(&mut self) {
        let long_ago = Instant::now();
        self.source_ends = Some(long_ago);
        self.mood_ends = [Some(long_ago); RECEIVERS.len()];
        // A server that runs is not started once more.
        self.disk_ends = self.disk_ends.map(|_| long_ago).or(self.cluster.is_none().then_some(long_ago));
        self.clock_ends = Some(long_ago);
        self.rules_end = Some(long_ago);
        self.mend(Instant::now());
    }

    fn text(&self, sql: &str) -> Vec<String> {
        self.database.column(sql).iter().map(|value| value.as_str().expect("a text").to_owned()).collect()
    }

    /// Ends of a process, or of its turn as the active one: what was under way then may come again.
    fn deaths(&self) -> usize {
        self.machine.deaths + self.machine.log().matches("beginning anew").count()
    }

    /// Begins with the silence, before anything was read.
    async fn begin(&mut self) {
        self.faults.set("", Fault::Hang);
        self.machine.start(None);
        self.until("it is watching", |soak| soak.machine.log().contains("is watching")).await;
        let matcher = format!("token={SILENCED}");
        let silence = ["silence", "add", "--author", "soak", "--comment", "soak", "--for", "365d", &matcher];
        let out = self.machine.command(&silence).output().expect("runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        self.faults.clear();
        // What a first sight brings is no news, so nothing happens before it is over.
        let records = self.world.records();
        self.until("everything is known", |soak| soak.text("SELECT 'x' FROM record").len() == records).await;
    }

    async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            if Instant::now() > deadline {
                let log = self.machine.log();
                let end: Vec<&str> = log.lines().rev().take(80).collect();
                let folder = self.machine.keep();
                panic!("{what}: not in {PATIENCE:?}; see {}\n{:#?}\n{}", folder.display(), self.missing(), end.join("\n"));
            }
            self.mend(Instant::now());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// What a receiver refused for good, by the daemon's own account.
    fn dead(&self, receiver: &str) -> BTreeSet<Fact> {
        let sql = format!(
            "SELECT n.body FROM delivery d JOIN delivery_notice dn ON dn.delivery_no = d.no JOIN notice n ON n.id = dn.notice \
             WHERE d.state = 'dead' AND d.receiver = '{receiver}'"
        );
        self.text(&sql).iter().map(|body| books::fact(&serde_json::from_str(body).expect("JSON"))).collect()
    }

    /// What has to be told and is neither told nor dead, for each receiver.
    fn missing(&self) -> BTreeMap<&'static str, Vec<Fact>> {
        let due = self.world.facts();
        let mut missing = BTreeMap::new();
        for (receiver, books) in RECEIVERS.into_iter().zip(&self.books) {
            let (told, dead) = (books.facts(), self.dead(receiver));
            let is_missing = |fact: &&Fact| !fact.contains(SILENCED) && !told.contains_key(*fact) && !dead.contains(*fact);
            missing.insert(receiver, due.iter().filter(is_missing).cloned().collect::<Vec<_>>());
        }
        missing.retain(|_, facts| !facts.is_empty());
        missing
    }

    fn waiting(&self) -> usize {
        self.text("SELECT webhook_id FROM delivery WHERE state IN ('due', 'retrying')").len()
    }

    /// Everything that does not hold.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let due = self.world.facts();
        for (receiver, books) in RECEIVERS.into_iter().zip(&self.books) {
            for (fact, ids) in books.facts() {
                if fact.contains(SILENCED) {
                    problems.push(format!("{receiver} heard of what is silenced: {fact}"));
                }
                if !fact.starts_with("SourceTrouble ") && !due.contains(&fact) {
                    problems.push(format!("{receiver} heard what did not happen: {fact}"));
                }
                if !fact.starts_with("SourceTrouble ") && ids.len() > 1 {
                    problems.push(format!("{receiver} heard twice, under {ids:?}: {fact}"));
                }
            }
            let most = self.deaths() * UNRECORDED + books.in_silence();
            if books.repeats() > most {
                problems.push(format!("{receiver} got {} messages again, where {most} may be", books.repeats()));
            }
            let accepted: BTreeSet<String> = books.taken().into_iter().map(|(id, _)| id).collect();
            let sql = format!("SELECT webhook_id FROM delivery WHERE state = 'delivered' AND receiver = '{receiver}'");
            for id in self.text(&sql).into_iter().filter(|id| !accepted.contains(id)) {
                problems.push(format!("{id} counts as delivered, and {receiver} does not have it"));
            }
        }
        for (receiver, facts) in self.missing() {
            problems.push(format!("{receiver} never heard of {facts:?}"));
        }
        let announced = format!("{:?}", self.books[0].incidents());
        for receiver in self.text("SELECT DISTINCT receiver FROM delivery WHERE state = 'dead'") {
            if !announced.contains(&receiver) {
                problems.push(format!("nobody was told of the dead letters of {receiver}"));
            }
        }
        let lost = "SELECT id FROM notice WHERE receivers <> '[]' AND id NOT IN (SELECT notice FROM delivery_notice)";
        let lost = self.text(&format!("{lost} AND body NOT LIKE '%{SILENCED}%'"));
        if !lost.is_empty() {
            problems.push(format!("decided and sent to nobody: {lost:?}"));
        }
        if !self.database.is_whole() {
            problems.push("the database is damaged".to_owned());
        }
        problems
    }

    fn figures(&self) {
        println!("{}; {} starts, {} deaths", self.world.happened(), self.machine.starts, self.deaths());
        for (what, times) in &self.done {
            println!("  {what:<32} {times:>6}");
        }
        println!("  {:<10} {:>8} {:>8} {:>8} {:>8}", "receiver", "taken", "again", "refused", "dead");
        for (receiver, books) in RECEIVERS.into_iter().zip(&self.books) {
            let dead = self.text(&format!("SELECT webhook_id FROM delivery WHERE state = 'dead' AND receiver = '{receiver}'"));
            println!(
                "  {receiver:<10} {:>8} {:>8} {:>8} {:>8}",
                books.taken().len(),
                books.repeats(),
                books.refused(),
                dead.len()
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn soaked_in_faults_it_tells_what_happened_and_nothing_else() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = setting("CLIFFWATCH_SOAK_SEED").unwrap_or_else(|| fastrand::u64(..));
    let length = Duration::from_secs(setting("CLIFFWATCH_SOAK").unwrap_or(SECONDS));
    println!("soaking for {length:?}, seed {seed}");
    let mut soak = Soak::new(seed).await;
    for lack in soak.machine.lacks() {
        println!("NOT RUN here: {lack}");
    }
    soak.begin().await;
    let (begin, mut shown) = (Instant::now(), Instant::now());
    while begin.elapsed() < length {
        soak.mend(Instant::now());
        soak.act().await;
        let pause = soak.random.u64(50..600);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if shown.elapsed() > Duration::from_secs(60) {
            shown = Instant::now();
            println!("{:?}: {}, {} taken", begin.elapsed(), soak.world.happened(), soak.books[0].taken().len());
        }
    }
    soak.calm();
    let calm = Instant::now();
    soak.until("everything is told", |soak| soak.missing().is_empty() && soak.waiting() == 0).await;
    println!("all was told {:?} after the last fault", calm.elapsed());
    // What should not come has time to come.
    tokio::time::sleep(Duration::from_secs(3)).await;
    soak.machine.end("TERM").await;
    soak.figures();
    let problems = soak.problems();
    if !problems.is_empty() {
        panic!("seed {seed}, see {}:\n{}", soak.machine.keep().display(), problems.join("\n"));
    }
}

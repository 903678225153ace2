//! Walks through the pages of every list of the API, while a daemon commits corrections and reloads rules between any two pages: each row
//! that stays in a list is returned exactly once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use testkit::{Cluster, free_port};

use super::database_server::use_server;
use super::outages::until_async;
use super::*;

const TOKENS: usize = 12;
/// Days until the unlocks of each token.
const DAYS: [i64; 4] = [6, 40, 80, 120];

/// A walk through one list.
struct Walk {
    path: String,
    /// The URL of the next page. `None` after the last one.
    next: Option<String>,
    /// The rows when the walk began.
    before: BTreeSet<String>,
    seen: Vec<String>,
}

/// Returns what identifies a row, apart from its place in the list. A corrected unlock counts as another one.
fn identity(path: &str, row: &Value) -> String {
    match path {
        "/api/v1/upcoming" => {
            ["tokenId", "type", "unlockDate", "start", "end", "cliffAmount"].map(|name| row[name].to_string()).join(" ")
        }
        _ => row["id"].to_string(),
    }
}

fn rows<'v>(path: &str, body: &'v Value) -> &'v [Value] {
    let list = match path {
        "/api/v1/events" => &body["events"],
        _ => &body["items"],
    };
    list.as_array().unwrap_or_else(|| panic!("{path}: {body:#}"))
}

/// Requests a path, again while the server is busy.
async fn json_at(address: &str, path: &str) -> Value {
    cliffwatch::source::install_crypto_provider();
    let client = reqwest::Client::builder().timeout(WAIT_TIMEOUT).build().expect("a client");
    let text = RefCell::new(String::new());
    until_async(path, async || {
        let response = client.get(format!("{address}{path}")).send().await.expect("a response");
        let status = response.status();
        assert!(status.is_success() || status == 503, "{path}: {status}");
        if status.is_success() {
            text.replace(response.text().await.expect("a text"));
        }
        status.is_success()
    })
    .await;
    let text = text.into_inner();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"))
}

/// Returns the identities of all rows. The numbers of events have no gaps.
async fn all(address: &str, path: &str) -> BTreeSet<String> {
    if path == "/api/v1/events" {
        let log = json_at(address, &format!("{path}?limit=1")).await;
        let number = |name: &str| log[name].as_i64().expect("a number");
        return (number("first")..=number("last")).map(|number| number.to_string()).collect();
    }
    let body = json_at(address, &format!("{path}?limit=10000&paged=true")).await;
    rows(path, &body).iter().map(|row| identity(path, row)).collect()
}

impl Walk {
    /// Begins a walk through each list that the description of the API has.
    async fn through_all_lists(address: &str) -> Vec<Self> {
        let document = json_at(address, "/api/openapi.json").await;
        let mut walks = Vec::new();
        for (path, methods) in document["paths"].as_object().expect("paths") {
            let is_cursor = |parameter: &Value| parameter["name"] == "after";
            let is_list = methods["get"]["parameters"].as_array().is_some_and(|of| of.iter().any(is_cursor));
            // Live events do not end; `tests/it/kill/bots.rs` follows them.
            if is_list && path != "/events" {
                let before = all(address, path).await;
                assert!(before.len() >= 4, "{path}: {before:?}");
                walks.push(Self { path: path.clone(), next: Some(path.clone()), before, seen: Vec::new() });
            }
        }
        let names: BTreeSet<&str> = walks.iter().map(|walk| walk.path.trim_start_matches("/api/v1/")).collect();
        assert_eq!(
            names.into_iter().collect::<Vec<_>>(),
            ["alerts", "audit", "changes", "events", "outbox", "rules", "tokens", "upcoming"]
        );
        walks
    }

    /// Reads the next page, if there is one.
    async fn step(&mut self, address: &str, random: &mut fastrand::Rng) {
        let Some(next) = self.next.take() else { return };
        let limit = random.u32(2..6);
        let join = if next.contains('?') { '&' } else { '?' };
        let is_log = self.path == "/api/v1/events";
        let url = match (is_log, next.contains("limit=")) {
            (true, _) => format!("{next}{join}limit=7"),
            (false, false) => format!("{next}{join}limit={limit}&paged=true"),
            (false, true) => next,
        };
        let body = json_at(address, &url).await;
        let page = rows(&self.path, &body);
        self.seen.extend(page.iter().map(|row| identity(&self.path, row)));
        self.next = match is_log {
            true => (!page.is_empty()).then(|| format!("{}?after={}", self.path, body["next"])),
            false => body["next"].as_str().map(str::to_owned),
        };
    }

    /// Checks the walk after its end.
    async fn check(&self, address: &str) {
        let after = all(address, &self.path).await;
        let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
        self.seen.iter().for_each(|row| *counts.entry(row).or_default() += 1);
        let stayed = self.before.intersection(&after);
        let wrong: Vec<_> = stayed.filter(|row| counts.get(row) != Some(&1)).map(|row| (row, counts.get(row))).collect();
        assert!(wrong.is_empty(), "{}: rows and how often they were returned: {wrong:#?}", self.path);
        let repeated: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
        assert!(repeated.is_empty(), "{}: {repeated:#?}", self.path);
    }
}

/// Corrects schedules at random, adds silences, and reloads other rules.
struct Writer {
    random: fastrand::Rng,
    /// The days until the unlocks of each token.
    days: Vec<Vec<i64>>,
    writes: usize,
}

impl Writer {
    /// Makes a correction, and waits until the daemon has committed it.
    async fn write(&mut self, fixture: &Fixture, daemon: &Daemon, address: &str) {
        let changes =
            || async { json_at(address, "/api/v1/changes?limit=1&paged=true").await["total"].as_u64().expect("a number") };
        let before = changes().await;
        let number = self.random.usize(0..TOKENS);
        let at = self.random.usize(0..DAYS.len());
        // No unlock moves to a day that one had before, so that its row identifies it.
        let day = 9 + 2 * i64::try_from(self.writes).expect("few");
        let from = std::mem::replace(&mut self.days[number][at], day);
        fixture.service.edit(|edit| edit.move_event(&token(number), from_now(from), from_now(day))).expect("edited");
        if self.writes.is_multiple_of(3) {
            write_rules(fixture, self.writes..self.writes + 6);
            daemon.signal("HUP");
        }
        // An action of a user.
        fixture.workdir.run(&format!("silence add alertname=Extra{} --for 1h --author me --comment no", self.writes)).ok();
        self.writes += 1;
        until_async("a change", async || changes().await > before).await;
    }
}

fn token(number: usize) -> String {
    format!("token-{number}")
}

/// Writes the rules that a reload adds and removes. Other rules stay.
fn write_rules(fixture: &Fixture, numbers: std::ops::Range<usize>) {
    let rule = |number: usize| format!("[[rule]]\nalert = \"Extra{number:02}\"\non = \"burn\"\nwhen = \"amount > 1\"\n");
    fixture.workdir.write("rules/extra.toml", &numbers.map(rule).collect::<String>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn walk_through_each_list_returns_each_row_that_stays_once() {
    walk_while_a_daemon_writes(None).await;
    let Some(cluster) = Cluster::start("") else { return };
    walk_while_a_daemon_writes(Some(&cluster)).await;
}

async fn walk_while_a_daemon_writes(server: Option<&Cluster>) {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    fixture.configure("group_wait = \"0s\"\ngroup_interval = \"1s\"\ngroup_by = [\"token\"]\n");
    if let Some(server) = server {
        use_server(&fixture, server.port, free_port());
    }
    let fill = |edit: &mut serve::Edit<'_>| {
        (0..TOKENS).try_for_each(|number| {
            edit.put_token(&item(&token(number), &format!("T{number}")))?;
            let unlock = |day: &i64| {
                cliff(&wire(from_now(*day)), "Team", 2_000_000.0 * f64::from(u8::try_from(number + 1).expect("few")), "second")
            };
            edit.put_events(&token(number), DAYS.iter().map(unlock).collect())
        })
    };
    fixture.service.edit(fill).expect("filled");
    write_rules(&fixture, 0..6);
    let daemon = fixture.workdir.start("run", &[]);
    let address = daemon.address();
    let unlocks = TOKENS * DAYS.len() + 5;
    until_async("all unlocks", async || all(&address, "/api/v1/upcoming").await.len() == unlocks).await;
    // The first message may report everything until then.
    until_async("the first message", async || !all(&address, "/api/v1/outbox").await.is_empty()).await;
    let mut writer = Writer { random: fastrand::Rng::with_seed(7), days: vec![DAYS.to_vec(); TOKENS], writes: 0 };
    while writer.writes < 4 {
        writer.write(&fixture, &daemon, &address).await;
    }
    until_async("deliveries", async || all(&address, "/api/v1/outbox").await.len() >= 4).await;

    let mut random = fastrand::Rng::with_seed(8);
    let mut walks = Walk::through_all_lists(&address).await;
    let (mut rounds, before) = (0, writer.writes);
    while walks.iter().any(|walk| walk.next.is_some()) {
        for walk in &mut walks {
            walk.step(&address, &mut random).await;
        }
        // The log grows with each correction, so the last pages follow without one.
        if rounds < 10 {
            writer.write(&fixture, &daemon, &address).await;
        }
        rounds += 1;
    }
    assert!(writer.writes - before >= 8, "{rounds} rounds");
    for walk in &walks {
        walk.check(&address).await;
    }
    assert_eq!(daemon.stop().code(), 0);
}

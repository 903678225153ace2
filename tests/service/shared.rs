//! Several services on one database, as behind a load balancer. Uses the PostgreSQL server of the environment, else a file.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use cliffwatch::{
    daemon::{database_url::parse_database, schedule::Job},
    model::Endpoint,
    service as serve,
    service::{MirrorScope, Options, Service},
    store::{DatabaseLocation, Store},
};
use testkit::Cluster;
use tokio::task::JoinSet;

use crate::service::{
    daemon::daemon,
    keys::{Daemon, filled},
    support::{Server, bundled, database, opened, options, time},
};

/// Sends concurrent requests to the servers in turn. Returns the status and the used credits of each response.
async fn request_all(servers: &Arc<Vec<Server>>, path: &'static str, key: &str, requests: usize) -> Vec<(u16, Option<u64>)> {
    let mut polls = JoinSet::new();
    for request in 0..requests {
        let (servers, key) = (servers.clone(), key.to_owned());
        polls.spawn(async move {
            let response = servers[request % servers.len()].get(path, &[("x-api-key", &key)]).await;
            let status = response.status().as_u16();
            let body: serde_json::Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            (status, body["metadata"]["credit"]["used"].as_u64())
        });
    }
    polls.join_all().await
}

/// Asserts that each credit was used by one response, and that all other responses have status 429.
fn assert_exact(responses: &[(u16, Option<u64>)], quota: u64) {
    let mut used: Vec<u64> = responses.iter().filter(|(status, _)| *status == 200).map(|(_, used)| used.unwrap()).collect();
    used.sort_unstable();
    assert_eq!(used, (1..=quota).collect::<Vec<_>>(), "each credit is used distinct");
    let late = responses.iter().filter(|(status, _)| *status == 429).count();
    assert_eq!(used.len() + late, responses.len(), "{responses:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_share_one_quota_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let shared = database(folder.path(), "service.db");
    let first = opened(&shared, options());
    first.import(serve::bundled().filter(|file| file.as_ref().unwrap().path == "tokens.json"), |_| {}).unwrap();
    let instances = [first.clone(), opened(&shared, options())];
    let mut servers = Vec::new();
    for instance in &instances {
        servers.push(Server::of(instance).await);
    }
    let servers = Arc::new(servers);
    let (key, other) = (first.add_key("desk", 300).unwrap(), first.add_key("fund", 40).unwrap());
    let (desk, fund) =
        tokio::join!(request_all(&servers, "/v5/token/list", &key, 800), request_all(&servers, "/v5/token/list", &other, 100));
    assert_exact(&desk, 300);
    assert_exact(&fund, 40);
    let used: Vec<(String, u64)> = instances[1].keys().unwrap().into_iter().map(|key| (key.name, key.used)).collect();
    assert_eq!(used, [("desk".to_owned(), 300), ("fund".to_owned(), 40)]);

    // A change by one instance applies to the other within a second.
    let third = first.add_key("third", 300).unwrap();
    assert_eq!(servers[1].get("/v5/token/list", &[("x-api-key", &third)]).await.status(), 200);
    assert!(instances[0].revoke_key("third").unwrap());
    let revoked = Instant::now();
    loop {
        let requested = revoked.elapsed();
        if servers[1].get("/v5/token/list", &[("x-api-key", &third)]).await.status() == 401 {
            break;
        }
        assert!(requested <= Duration::from_secs(1), "admitted {requested:?} after the revocation");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Two mirrors on one database serve the same data and share the quota of a key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_mirrors_share_keys_and_data() {
    let source = Server::of(bundled()).await;
    let folder = tempfile::tempdir().unwrap();
    let app = daemon(folder.path(), &source, "unlock_events = \"v3\"\n").await;
    app.tick(Job::Poll(Endpoint::TokenList)).await.unwrap();
    app.tick(Job::Poll(Endpoint::Burn)).await.unwrap();
    app.close().await.unwrap();
    let read = folder.path().join("daemon.db");
    // On a server, the tables of the daemon and of the keys share a schema.
    let shared = database(folder.path(), "keys.db");
    let keys = parse_database(&shared, None).unwrap();
    let read = match &keys {
        DatabaseLocation::File(_) => DatabaseLocation::File(read),
        DatabaseLocation::Server(_) => {
            Store::copy(&DatabaseLocation::File(read), &keys, "test:1", time("2026-04-10T12:00:00Z"), &mut |_| {}).unwrap();
            keys.clone()
        }
    };
    let key = opened(&shared, options()).add_key("desk", 120).unwrap();
    let mut servers = Vec::new();
    for _ in 0..2 {
        let mirror = Service::mirror_in(&read, MirrorScope::unknown(), Some(&keys), options()).unwrap();
        servers.push(Server::of(&mirror).await);
    }
    let servers = Arc::new(servers);
    assert_eq!(servers[1].get("/v5/token/list", &[]).await.status(), 401);
    assert_exact(&request_all(&servers, "/v5/burn/bnb", &key, 400).await, 120);
}

/// Both database engines give the same responses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_engines_give_the_same_responses() {
    let folder = tempfile::tempdir().unwrap();
    let service = opened(&database(folder.path(), "service.db"), options());
    let imported = service.import(serve::bundled(), |_| {}).unwrap();
    assert!(imported.changed > 0);
    assert_eq!(service.import(serve::bundled(), |_| {}).unwrap().changed, 0, "a second import changes nothing");
    let (here, there) = (Server::of(bundled()).await, Server::of(&service).await);
    for path in [
        "/v5/token/list",
        "/v5/unlock/events/optimism?pageSize=500",
        "/v5/unlock/events/upcoming?pageSize=500",
        "/v3/unlock/events?tokenId=sui&start=2026-03-31&end=2027-04-30",
        "/v1/unlock/events?tokenId=optimism",
        "/v5/burn/bnb",
        "/v5/buyback/hyperliquid",
        "/v5/allocations/optimism",
        "/v5/daily-emission/optimism?start=2026-03-01&end=2026-03-20",
        "/v5/token/nothing",
    ] {
        let ((was, before), (is, after)) = (here.request(path).await, there.request(path).await);
        assert_eq!((was, &before["data"]), (is, &after["data"]), "{path}");
    }
    let (out, again) = (folder.path().join("out"), folder.path().join("again"));
    bundled().export(&out, &mut |_| {}).unwrap();
    service.export(&again, &mut |_| {}).unwrap();
    let differences = std::process::Command::new("diff").args(["-r", "-q"]).args([&out, &again]).output().unwrap();
    assert!(differences.status.success(), "{}", String::from_utf8_lossy(&differences.stdout));
}

/// A client behind a load balancer: uses the instances in turn and retries after a lost connection or a 503.
struct Client {
    http: reqwest::Client,
    instances: Arc<Mutex<[String; 2]>>,
    key: String,
    responded: Arc<AtomicU64>,
}

/// The result of a client: the used credits of each response, and the number of retries.
#[derive(Default)]
struct ClientResult {
    used: Vec<u64>,
    retries: usize,
}

impl Client {
    /// Sends requests until the quota is used up.
    async fn spend(self) -> ClientResult {
        let (begun, mut result) = (Instant::now(), ClientResult::default());
        for turn in fastrand::usize(..2).. {
            assert!(begun.elapsed() < Duration::from_secs(240), "the credits are never used up: {} responses", result.used.len());
            let url = format!("{}/v5/burn/bnb", self.instances.lock().unwrap()[turn % 2]);
            let Ok(response) = self.http.get(url).header("x-api-key", &self.key).send().await else {
                result.retries += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            match (response.status().as_u16(), response.headers().contains_key("retry-after"), response.text().await) {
                (200, _, Ok(text)) => {
                    let body: serde_json::Value = serde_json::from_str(&text).unwrap();
                    result.used.push(body["metadata"]["credit"]["used"].as_u64().unwrap());
                    self.responded.fetch_add(1, Ordering::SeqCst);
                }
                (429, true, _) => return result,
                (503, true, _) | (200, _, Err(_)) => {
                    result.retries += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                (status, _, text) => panic!("{status}: {text:?}"),
            }
        }
        result
    }
}

/// Starts clients that use up the quota together. `responded` counts their responses.
fn spend_all(clients: u64, instances: &Arc<Mutex<[String; 2]>>, key: &str, responded: &Arc<AtomicU64>) -> JoinSet<ClientResult> {
    let http = reqwest::Client::builder().timeout(Duration::from_secs(30)).build().unwrap();
    let mut polls = JoinSet::new();
    for _ in 0..clients {
        let (http, instances, key, responded) = (http.clone(), instances.clone(), key.to_owned(), responded.clone());
        polls.spawn(Client { http, instances, key, responded }.spend());
    }
    polls
}

/// Waits for this many further responses, or until a client ends and drops its count.
async fn until_responded(count: u64, responded: &Arc<AtomicU64>) {
    let (clients, until) = (Arc::strong_count(responded), responded.load(Ordering::SeqCst) + count);
    while responded.load(Ordering::SeqCst) < until && Arc::strong_count(responded) == clients {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Kills services that share a database file under load, while another process reads the usage. There are never more responses than
/// credits, each credit is used once, and only requests in flight lose credits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quota_in_a_file_stays_exact_when_instances_are_killed() {
    const LIMIT: u64 = 4_000;
    const CLIENTS: u64 = 8;
    const KILLS: u64 = 8;
    cliffwatch::source::install_crypto_provider();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.db").to_str().unwrap().to_owned();
    let service = filled(&path, Options::default());
    let key = service.add_key("desk", LIMIT).unwrap();
    let mut running = [Daemon::start(&path), Daemon::start(&path)];
    let instances = Arc::new(Mutex::new([running[0].1.clone(), running[1].1.clone()]));
    let responded = Arc::new(AtomicU64::new(0));
    let polls = spend_all(CLIENTS, &instances, &key, &responded);
    let (reader, before) = (service.clone(), responded.clone());
    let reading = tokio::task::spawn_blocking(move || {
        let mut last = 0;
        // Also ends if the test failed, which drops the clients and its own count.
        while last < LIMIT && Arc::strong_count(&before) > 1 {
            let least = before.load(Ordering::SeqCst);
            let used = reader.keys().unwrap()[0].used;
            assert!(last.max(least) <= used && used <= LIMIT, "{used} after {last}, {least} responses");
            last = used;
        }
    });
    for kill in 0..KILLS {
        until_responded(LIMIT / (KILLS + 2), &responded).await;
        assert!(responded.load(Ordering::SeqCst) < LIMIT, "the credits are used up too early");
        let at = usize::from(kill % 2 == 1);
        running[at].0.kill().unwrap();
        running[at].0.wait().unwrap();
        running[at] = Daemon::start(&path);
        instances.lock().unwrap()[at] = running[at].1.clone();
    }
    let used: Vec<u64> = polls.join_all().await.into_iter().flat_map(|result| result.used).collect();
    reading.await.unwrap();
    let distinct: BTreeSet<u64> = used.iter().copied().collect();
    assert_eq!(distinct.len(), used.len(), "each credit is used once");
    assert!(distinct.iter().all(|used| (1..=LIMIT).contains(used)), "{:?}", distinct.last());
    assert!(used.len() as u64 + KILLS * CLIENTS >= LIMIT, "{} responses, {KILLS} kills", used.len());
    assert_eq!(service.keys().unwrap()[0].used, LIMIT);
}

/// Kills instances, and stops and crashes the server, under load. There are never more responses than credits, each credit is used once,
/// and only requests in flight lose credits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quota_stays_exact_when_instances_or_the_server_die() {
    const LIMIT: u64 = 1_000;
    const CLIENTS: u64 = 8;
    cliffwatch::source::install_crypto_provider();
    let Some(cluster) = Cluster::start("") else { return };
    let database = format!("postgres://postgres@127.0.0.1:{}/postgres", cluster.port);
    let service = filled(&database, Options::default());
    let key = service.add_key("desk", LIMIT).unwrap();
    let mut running = [Daemon::start(&database), Daemon::start(&database)];
    let instances = Arc::new(Mutex::new([running[0].1.clone(), running[1].1.clone()]));
    let responded = Arc::new(AtomicU64::new(0));
    let polls = spend_all(CLIENTS, &instances, &key, &responded);
    let mut deaths = 0;
    for death in ["first", "fast", "second", "immediate", "first"] {
        until_responded(LIMIT / 7, &responded).await;
        assert!(responded.load(Ordering::SeqCst) < LIMIT, "{death}: the credits are used up too early");
        deaths += 1;
        match death {
            "first" | "second" => {
                let at = usize::from(death == "second");
                running[at].0.kill().unwrap();
                running[at].0.wait().unwrap();
                running[at] = Daemon::start(&database);
                instances.lock().unwrap()[at] = running[at].1.clone();
            }
            how => {
                cluster.stop(how);
                cluster.resume();
            }
        }
    }
    let results = polls.join_all().await;
    let used: Vec<u64> = results.iter().flat_map(|result| result.used.iter().copied()).collect();
    let distinct: BTreeSet<u64> = used.iter().copied().collect();
    println!(
        "{} responses for {LIMIT} credits, {} retries",
        used.len(),
        results.iter().map(|result| result.retries).sum::<usize>()
    );
    assert_eq!(distinct.len(), used.len(), "each credit is used distinct");
    assert!(distinct.iter().all(|used| (1..=LIMIT).contains(used)), "{:?}", distinct.last());
    assert!(
        used.len() as u64 + deaths * CLIENTS >= LIMIT,
        "{} responses, {deaths} deaths with {CLIENTS} requests in flight each",
        used.len()
    );
    let counted: Vec<u64> = service.keys().unwrap().iter().map(|key| key.used).collect();
    assert_eq!(counted, [LIMIT]);
}

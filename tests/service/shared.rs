//! Several services on one database, as behind a balancer. On PostgreSQL where the environment names a server, else on one file.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use cliffwatch::{
    daemon::{place::place_named, schedule::Job},
    model::Endpoint,
    service as serve,
    service::{MirrorScope, Options, Service},
    store::{Place, Store},
};
use tokio::task::JoinSet;

use crate::{
    cluster::Cluster,
    daemon::daemon,
    keys::{Daemon, filled},
    support::{Server, bundled, database, opened, options, time},
};

/// Asks the servers in turn, all requests at once; answers what each came to: its status, and the credits that its answer says are used.
async fn ask_all(servers: &Arc<Vec<Server>>, path: &'static str, key: &str, requests: usize) -> Vec<(u16, Option<u64>)> {
    let mut asking = JoinSet::new();
    for request in 0..requests {
        let (servers, key) = (servers.clone(), key.to_owned());
        asking.spawn(async move {
            let response = servers[request % servers.len()].get(path, &[("x-api-key", &key)]).await;
            let status = response.status().as_u16();
            let body: serde_json::Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            (status, body["metadata"]["credit"]["used"].as_u64())
        });
    }
    asking.join_all().await
}

/// Counts for itself: each credit was answered once, and whoever came too late was told to wait.
fn assert_exact(answers: &[(u16, Option<u64>)], quota: u64) {
    let mut used: Vec<u64> = answers.iter().filter(|(status, _)| *status == 200).map(|(_, used)| used.unwrap()).collect();
    used.sort_unstable();
    assert_eq!(used, (1..=quota).collect::<Vec<_>>(), "each credit is told once");
    let late = answers.iter().filter(|(status, _)| *status == 429).count();
    assert_eq!(used.len() + late, answers.len(), "{answers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_answer_exactly_as_often_as_the_quota_says() {
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
        tokio::join!(ask_all(&servers, "/v5/token/list", &key, 800), ask_all(&servers, "/v5/token/list", &other, 100));
    assert_exact(&desk, 300);
    assert_exact(&fund, 40);
    let used: Vec<(String, u64)> = instances[1].keys().unwrap().into_iter().map(|key| (key.name, key.used)).collect();
    assert_eq!(used, [("desk".to_owned(), 300), ("fund".to_owned(), 40)]);

    // What one instance changes, the other one knows within a second.
    let third = first.add_key("third", 300).unwrap();
    assert_eq!(servers[1].get("/v5/token/list", &[("x-api-key", &third)]).await.status(), 200);
    assert!(instances[0].revoke_key("third").unwrap());
    let revoked = Instant::now();
    loop {
        let asked = revoked.elapsed();
        if servers[1].get("/v5/token/list", &[("x-api-key", &third)]).await.status() == 401 {
            break;
        }
        assert!(asked <= Duration::from_secs(1), "let in {asked:?} after it was revoked");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The mirrors of two daemons on one database: what was read shows by both, and a key is good for its quota, not for twice that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_mirrors_share_keys_and_show_the_same() {
    let source = Server::of(bundled()).await;
    let folder = tempfile::tempdir().unwrap();
    let app = daemon(folder.path(), &source, "unlock_events = \"v3\"\n").await;
    app.tick(Job::Poll(Endpoint::TokenList)).await.unwrap();
    app.tick(Job::Poll(Endpoint::Burn)).await.unwrap();
    app.close().await.unwrap();
    let read = folder.path().join("daemon.db");
    // The daemon's tables and those of the keys lie side by side there.
    let shared = database(folder.path(), "keys.db");
    let keys = place_named(&shared, None).unwrap();
    let read = match &keys {
        Place::File(_) => Place::File(read),
        Place::Server(_) => {
            Store::copy(&Place::File(read), &keys, "test:1", time("2026-04-10T12:00:00Z"), &mut |_| {}).unwrap();
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
    assert_exact(&ask_all(&servers, "/v5/burn/bnb", &key, 400).await, 120);
}

/// An engine changes nothing of what is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn either_engine_gives_the_same_answers() {
    let folder = tempfile::tempdir().unwrap();
    let service = opened(&database(folder.path(), "service.db"), options());
    let imported = service.import(serve::bundled(), |_| {}).unwrap();
    assert!(imported.changed > 0);
    assert_eq!(service.import(serve::bundled(), |_| {}).unwrap().changed, 0, "the same twice");
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
        let ((was, before), (is, after)) = (here.ask(path).await, there.ask(path).await);
        assert_eq!((was, &before["data"]), (is, &after["data"]), "{path}");
    }
    let (out, again) = (folder.path().join("out"), folder.path().join("again"));
    bundled().export(&out, &mut |_| {}).unwrap();
    service.export(&again, &mut |_| {}).unwrap();
    let differences = std::process::Command::new("diff").args(["-r", "-q"]).args([&out, &again]).output().unwrap();
    assert!(differences.status.success(), "{}", String::from_utf8_lossy(&differences.stdout));
}

/// Who asks through a balancer: of one instance after the other, again where one is gone or says that it cannot count just now.
struct Client {
    http: reqwest::Client,
    instances: Arc<Mutex<[String; 2]>>,
    key: String,
    answered: Arc<AtomicU64>,
}

/// What a client was told: the credits that were used by each answer, and how often it had to come again.
#[derive(Default)]
struct Told {
    used: Vec<u64>,
    again: usize,
}

impl Client {
    /// Asks until the quota is spent.
    async fn spend(self) -> Told {
        let (begun, mut told) = (Instant::now(), Told::default());
        for turn in fastrand::usize(..2).. {
            assert!(begun.elapsed() < Duration::from_secs(240), "the credits never end: {} answers", told.used.len());
            let url = format!("{}/v5/burn/bnb", self.instances.lock().unwrap()[turn % 2]);
            let Ok(response) = self.http.get(url).header("x-api-key", &self.key).send().await else {
                told.again += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            match (response.status().as_u16(), response.headers().contains_key("retry-after"), response.text().await) {
                (200, _, Ok(text)) => {
                    let body: serde_json::Value = serde_json::from_str(&text).unwrap();
                    told.used.push(body["metadata"]["credit"]["used"].as_u64().unwrap());
                    self.answered.fetch_add(1, Ordering::SeqCst);
                }
                (429, true, _) => return told,
                (503, true, _) | (200, _, Err(_)) => {
                    told.again += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                (status, _, text) => panic!("{status}: {text:?}"),
            }
        }
        told
    }
}

/// Instances killed and the server restarted, in order and as by a loss of power, while all are at work: never more answers than the quota
/// has, each credit told once, and none taken in vain but for what was under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_dies_under_load_the_quota_stays_exact() {
    const LIMIT: u64 = 1_000;
    const ASKING: u64 = 8;
    cliffwatch::source::install_crypto_provider();
    let Some(cluster) = Cluster::start("") else { return };
    let database = format!("postgres://postgres@127.0.0.1:{}/postgres", cluster.port);
    let service = filled(&database, Options::default());
    let key = service.add_key("desk", LIMIT).unwrap();
    let mut running = [Daemon::start(&database), Daemon::start(&database)];
    let instances = Arc::new(Mutex::new([running[0].1.clone(), running[1].1.clone()]));
    let http = reqwest::Client::builder().timeout(Duration::from_secs(30)).build().unwrap();
    let answered = Arc::new(AtomicU64::new(0));
    let mut asking = JoinSet::new();
    for _ in 0..ASKING {
        let (http, instances, key, answered) = (http.clone(), instances.clone(), key.clone(), answered.clone());
        asking.spawn(Client { http, instances, key, answered }.spend());
    }
    let mut deaths = 0;
    for death in ["first", "fast", "second", "immediate", "first"] {
        let until = answered.load(Ordering::SeqCst) + LIMIT / 7;
        while answered.load(Ordering::SeqCst) < until && asking.len() as u64 == ASKING {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(answered.load(Ordering::SeqCst) < LIMIT, "{death}: there are credits left");
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
    let told = asking.join_all().await;
    let used: Vec<u64> = told.iter().flat_map(|told| told.used.iter().copied()).collect();
    let once: BTreeSet<u64> = used.iter().copied().collect();
    println!("{} answers for {LIMIT} credits, {} times again", used.len(), told.iter().map(|told| told.again).sum::<usize>());
    assert_eq!(once.len(), used.len(), "each credit is told once");
    assert!(once.iter().all(|used| (1..=LIMIT).contains(used)), "{:?}", once.last());
    assert!(used.len() as u64 + deaths * ASKING >= LIMIT, "{} answers, {deaths} deaths with {ASKING} under way each", used.len());
    let counted: Vec<u64> = service.keys().unwrap().iter().map(|key| key.used).collect();
    assert_eq!(counted, [LIMIT]);
}

//! Several services on one database, as behind a balancer. On PostgreSQL where the environment names a server, else on one file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cliffwatch::{
    daemon::{place::place_named, schedule::Job},
    model::Endpoint,
    service as serve,
    service::{MirrorScope, Service},
    store::{Place, Store},
};
use tokio::task::JoinSet;

use crate::{
    daemon::daemon,
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

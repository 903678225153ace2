//! Keys under load, and when the process dies.

use std::{
    io::BufRead,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use cliffwatch::{
    service as serve,
    service::{Options, Service},
};
use tokio::task::JoinSet;

use crate::support::{Server, options};

fn filled(path: &Path, options: Options) -> Service {
    let service = Service::open(path, options).unwrap();
    let small = serve::bundled().filter(|file| {
        let path = &file.as_ref().unwrap().path;
        path == "tokens.json" || path.starts_with("burn/")
    });
    service.import(small, |_| {}).unwrap();
    service
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_at_once_spend_exactly_the_thousand_that_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.db");
    let service = filled(&path, options());
    let key = service.add_key("desk", 1_500).unwrap();
    let server = Arc::new(Server::of(&service).await);
    let ask = |server: Arc<Server>, key: String| async move {
        let response = server.get("/v5/burn/bnb", &[("x-api-key", &key)]).await;
        let (status, waits) = (response.status().as_u16(), response.headers().contains_key("retry-after"));
        let body: serde_json::Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        (status, waits, body["metadata"]["credit"]["used"].as_u64())
    };
    for spent in 1..=500 {
        assert_eq!(ask(server.clone(), key.clone()).await, (200, false, Some(spent)));
    }
    let mut asking = JoinSet::new();
    for _ in 0..2_000 {
        asking.spawn(ask(server.clone(), key.clone()));
    }
    let answers = asking.join_all().await;
    let mut used: Vec<u64> = answers.iter().filter(|(status, ..)| *status == 200).map(|(.., used)| used.unwrap()).collect();
    used.sort_unstable();
    assert_eq!(used, (501..=1_500).collect::<Vec<_>>(), "each credit is told once");
    assert_eq!(answers.iter().filter(|(status, waits, _)| *status == 429 && *waits).count(), 1_000);
    // What is in the file, as another process sees it.
    assert_eq!(Service::open(&path, options()).unwrap().keys().unwrap()[0].used, 1_500);
}

/// The real binary; killed when dropped.
struct Daemon(Child, String);

impl Daemon {
    fn start(db: &Path) -> Self {
        Self::listening(db, "127.0.0.1:0")
    }

    fn listening(db: &Path, listen: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cliffwatch"))
            .args(["serve", "--listen", listen, "--no-access-log", "--db"])
            .arg(db)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening ").unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Self(child, address)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_was_answered_before_a_kill_was_counted() {
    use std::os::unix::process::ExitStatusExt as _;
    cliffwatch::source::install_crypto_provider();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.db");
    let key = filled(&path, Options::default()).add_key("desk", 1_000_000).unwrap();
    let http = reqwest::Client::builder().timeout(Duration::from_secs(20)).build().unwrap();
    let (mut sent, mut answered) = (0, 0);
    for round in 0..3 {
        let mut daemon = Daemon::start(&path);
        let mut asking = JoinSet::new();
        for _ in 0..8 {
            let (http, url, key) = (http.clone(), format!("{}/v5/burn/bnb", daemon.1), key.clone());
            asking.spawn(async move {
                let (mut sent, mut answered) = (0_u64, 0_u64);
                loop {
                    sent += 1;
                    match http.get(&url).header("x-api-key", &key).send().await {
                        Ok(response) if response.status() == 200 => answered += 1,
                        Ok(response) => panic!("{}", response.status()),
                        Err(_) => return (sent, answered),
                    }
                }
            });
        }
        tokio::time::sleep(Duration::from_millis(150 + 70 * round)).await;
        daemon.0.kill().unwrap();
        assert_eq!(daemon.0.wait().unwrap().signal(), Some(9));
        for (more_sent, more_answered) in asking.join_all().await {
            sent += more_sent;
            answered += more_answered;
        }
        let used = Service::open(&path, Options::default()).unwrap().keys().unwrap()[0].used;
        assert!(answered <= used && used <= sent, "answered {answered}, counted {used}, sent {sent}");
    }
    assert!(answered > 0, "nothing was answered at all");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_neither_give_credits_away_nor_take_any_but_those_under_way() {
    const LIMIT: u64 = 400;
    const ASKING: u64 = 8;
    cliffwatch::source::install_crypto_provider();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.db");
    let key = filled(&path, Options::default()).add_key("desk", LIMIT).unwrap();
    let http = reqwest::Client::builder().timeout(Duration::from_secs(20)).build().unwrap();
    let answered = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let (mut kills, mut spent) = (0, 0);
    while spent == 0 {
        let mut daemon = Daemon::start(&path);
        let mut asking = JoinSet::new();
        for _ in 0..ASKING {
            let (http, url, key, answered) = (http.clone(), format!("{}/v5/burn/bnb", daemon.1), key.clone(), answered.clone());
            asking.spawn(async move {
                while let Ok(response) = http.get(&url).header("x-api-key", &key).send().await {
                    match response.status().as_u16() {
                        200 => answered.fetch_add(1, Ordering::SeqCst),
                        429 => return true,
                        other => panic!("{other}"),
                    };
                }
                false
            });
        }
        // Killed in the middle of the work: after another hundred answers, or once all is spent.
        let until = answered.load(Ordering::SeqCst) + 100;
        while answered.load(Ordering::SeqCst) < until && !asking.is_empty() {
            tokio::select! {
                ended = asking.join_next() => spent += u64::from(ended.unwrap().unwrap()),
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
            }
        }
        daemon.0.kill().unwrap();
        daemon.0.wait().unwrap();
        kills += 1;
        spent += asking.join_all().await.into_iter().filter(|is_spent| *is_spent).count() as u64;
        assert!(kills < 20, "the credits never end");
    }
    let answered = answered.load(Ordering::SeqCst);
    assert!(kills >= 2, "it was killed while there were credits");
    assert!(answered <= LIMIT, "{answered} answers for {LIMIT} credits");
    assert!(answered + kills * ASKING >= LIMIT, "{answered} answers, {kills} kills with {ASKING} requests each under way");
    assert_eq!(Service::open(&path, Options::default()).unwrap().keys().unwrap()[0].used, LIMIT);
}

#[tokio::test]
async fn a_stop_lets_the_request_in_hand_finish_and_ends_with_success() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.db");
    filled(&path, Options::default());
    let mut daemon = Daemon::start(&path);
    cliffwatch::source::install_crypto_provider();
    assert_eq!(reqwest::get(format!("{}/v5/burn/bnb", daemon.1)).await.unwrap().status(), 200);
    Command::new("kill").arg(daemon.0.id().to_string()).status().unwrap();
    let deadline = Instant::now() + Duration::from_secs(15);
    let status = loop {
        if let Some(status) = daemon.0.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline, "it goes on after SIGTERM");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(status.success(), "{status}");
}

/// Beyond this machine a key is asked for, also before there is one; a mirror without keys does not listen there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_listens_beyond_loopback_asks_for_a_key() {
    cliffwatch::source::install_crypto_provider();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.db");
    drop(filled(&path, Options::default()));
    for (listen, status) in [("127.0.0.1:0", 200), ("0.0.0.0:0", 401)] {
        let daemon = Daemon::listening(&path, listen);
        let address = daemon.1.replace("0.0.0.0", "127.0.0.1");
        let answer = reqwest::get(format!("{address}/v5/token/list")).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{listen}");
    }
    let mirror = Command::new(env!("CARGO_BIN_EXE_cliffwatch"))
        .args(["serve", "--mirror", "--listen", "0.0.0.0:0", "--db"])
        .arg(&path)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8(mirror.stderr).unwrap();
    assert_eq!(mirror.status.code(), Some(2), "{told}");
    assert!(told.contains("--keys FILE"), "{told}");
}

//! API keys under load and across kills of the process.

use std::{
    io::BufRead,
    process::{Child, Command, Stdio},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use cliffwatch::{
    service as serve,
    service::{Options, Service},
};
use tokio::task::JoinSet;

use crate::service::support::{Server, database, opened, options};

pub fn filled(path: &str, options: Options) -> Service {
    let service = opened(path, options);
    let small = serve::bundled().filter(|file| {
        let path = &file.as_ref().unwrap().path;
        path == "tokens.json" || path.starts_with("burn/")
    });
    service.import(small, |_| {}).unwrap();
    service
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_spend_exactly_the_remaining_credits() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path(), "service.db");
    let service = filled(&path, options());
    let key = service.add_key("desk", 1_500).unwrap();
    let server = Arc::new(Server::of(&service).await);
    let request = |server: Arc<Server>, key: String| async move {
        let response = server.get("/v5/burn/bnb", &[("x-api-key", &key)]).await;
        let (status, waits) = (response.status().as_u16(), response.headers().contains_key("retry-after"));
        let body: serde_json::Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        (status, waits, body["metadata"]["credit"]["used"].as_u64())
    };
    for spent in 1..=500 {
        assert_eq!(request(server.clone(), key.clone()).await, (200, false, Some(spent)));
    }
    let mut polls = JoinSet::new();
    for _ in 0..2_000 {
        polls.spawn(request(server.clone(), key.clone()));
    }
    let responses = polls.join_all().await;
    let mut used: Vec<u64> = responses.iter().filter(|(status, ..)| *status == 200).map(|(.., used)| used.unwrap()).collect();
    used.sort_unstable();
    assert_eq!(used, (501..=1_500).collect::<Vec<_>>(), "each credit is used once");
    assert_eq!(responses.iter().filter(|(status, waits, _)| *status == 429 && *waits).count(), 1_000);
    // Read the database like another process.
    assert_eq!(opened(&path, options()).keys().unwrap()[0].used, 1_500);
}

/// The real binary and its URL. Killed on drop.
pub struct Daemon(pub Child, pub String);

impl Daemon {
    pub fn start(db: &str) -> Self {
        Self::listening(db, "127.0.0.1:0")
    }

    fn listening(db: &str, listen: &str) -> Self {
        Self::with(db, listen, &[])
    }

    fn with(db: &str, listen: &str, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cliffwatch"))
            .args(["serve", "--listen", listen, "--no-access-log", "--db"])
            .arg(db)
            .args(more)
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
async fn responses_before_a_kill_are_counted() {
    use std::os::unix::process::ExitStatusExt as _;
    cliffwatch::source::install_crypto_provider();
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path(), "service.db");
    let key = filled(&path, Options::default()).add_key("desk", 1_000_000).unwrap();
    let http = reqwest::Client::builder().timeout(Duration::from_secs(20)).build().unwrap();
    let (mut sent, mut responded) = (0, 0);
    for round in 0..3 {
        let mut daemon = Daemon::start(&path);
        let mut polls = JoinSet::new();
        for _ in 0..8 {
            let (http, url, key) = (http.clone(), format!("{}/v5/burn/bnb", daemon.1), key.clone());
            polls.spawn(async move {
                let (mut sent, mut responded) = (0_u64, 0_u64);
                loop {
                    sent += 1;
                    match http.get(&url).header("x-api-key", &key).send().await {
                        Ok(response) if response.status() == 200 => responded += 1,
                        Ok(response) => panic!("{}", response.status()),
                        Err(_) => return (sent, responded),
                    }
                }
            });
        }
        tokio::time::sleep(Duration::from_millis(150 + 70 * round)).await;
        daemon.0.kill().unwrap();
        assert_eq!(daemon.0.wait().unwrap().signal(), Some(9));
        for (more_sent, more_responded) in polls.join_all().await {
            sent += more_sent;
            responded += more_responded;
        }
        let used = opened(&path, Options::default()).keys().unwrap()[0].used;
        assert!(responded <= used && used <= sent, "{responded} responses, {used} counted, {sent} sent");
    }
    assert!(responded > 0, "no response at all");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_only_the_credits_of_requests_in_flight() {
    const LIMIT: u64 = 400;
    const CLIENTS: u64 = 8;
    cliffwatch::source::install_crypto_provider();
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path(), "service.db");
    let key = filled(&path, Options::default()).add_key("desk", LIMIT).unwrap();
    let http = reqwest::Client::builder().timeout(Duration::from_secs(20)).build().unwrap();
    let responded = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let (mut kills, mut spent) = (0, 0);
    while spent == 0 {
        let mut daemon = Daemon::start(&path);
        let mut polls = JoinSet::new();
        for _ in 0..CLIENTS {
            let (http, url, key, responded) = (http.clone(), format!("{}/v5/burn/bnb", daemon.1), key.clone(), responded.clone());
            polls.spawn(async move {
                while let Ok(response) = http.get(&url).header("x-api-key", &key).send().await {
                    match response.status().as_u16() {
                        200 => responded.fetch_add(1, Ordering::SeqCst),
                        429 => return true,
                        other => panic!("{other}"),
                    };
                }
                false
            });
        }
        // Kill it under load: after another hundred responses, or once all credits are spent.
        let until = responded.load(Ordering::SeqCst) + 100;
        while responded.load(Ordering::SeqCst) < until && !polls.is_empty() {
            tokio::select! {
                ended = polls.join_next() => spent += u64::from(ended.unwrap().unwrap()),
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
            }
        }
        daemon.0.kill().unwrap();
        daemon.0.wait().unwrap();
        kills += 1;
        spent += polls.join_all().await.into_iter().filter(|is_spent| *is_spent).count() as u64;
        assert!(kills < 20, "the credits are never used up");
    }
    let responded = responded.load(Ordering::SeqCst);
    assert!(kills >= 2, "too few kills before the credits were used up");
    assert!(responded <= LIMIT, "{responded} responses for {LIMIT} credits");
    assert!(responded + kills * CLIENTS >= LIMIT, "{responded} responses, {kills} kills with {CLIENTS} requests in flight each");
    assert_eq!(opened(&path, Options::default()).keys().unwrap()[0].used, LIMIT);
}

#[tokio::test]
async fn sigterm_stops_the_service_with_success() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path(), "service.db");
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
        assert!(Instant::now() < deadline, "it still runs after SIGTERM");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(status.success(), "{status}");
}

/// On public addresses a key is required, even before one exists. A mirror without keys does not listen there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn public_address_requires_a_key() {
    cliffwatch::source::install_crypto_provider();
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path(), "service.db");
    drop(filled(&path, Options::default()));
    for (listen, status) in [("127.0.0.1:0", 200), ("0.0.0.0:0", 401)] {
        let daemon = Daemon::listening(&path, listen);
        let address = daemon.1.replace("0.0.0.0", "127.0.0.1");
        let response = reqwest::get(format!("{address}/v5/token/list")).await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{listen}");
    }
    let mirror = Command::new(env!("CARGO_BIN_EXE_cliffwatch"))
        .args(["serve", "--mirror", "--listen", "0.0.0.0:0", "--db"])
        .arg(&path)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let output = String::from_utf8(mirror.stderr).unwrap();
    assert_eq!(mirror.status.code(), Some(2), "{output}");
    assert!(output.contains("--keys FILE"), "{output}");
}

/// With its own TLS certificate, the service rejects plain HTTP and serves clients that trust the certificate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn service_with_a_certificate_serves_only_https() {
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("SKIPPED service_with_a_certificate_serves_only_https: openssl is not installed");
        return;
    }
    cliffwatch::source::install_crypto_provider();
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path(), "service.db");
    let key = filled(&path, Options::default()).add_key("desk", 10).unwrap();
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "tls.key", "-out", "tls.pem"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let daemon = Daemon::with(&path, "127.0.0.1:0", &["--tls-cert-file", &file("tls.pem"), "--tls-key-file", &file("tls.key")]);
    let address = daemon.1.strip_prefix("https://").unwrap_or_else(|| panic!("{}", daemon.1)).to_owned();
    let certificate = reqwest::Certificate::from_pem(&std::fs::read(file("tls.pem")).unwrap()).unwrap();
    let trusting = reqwest::Client::builder().tls_certs_merge([certificate]).timeout(Duration::from_secs(20)).build().unwrap();
    for _ in 0..2 {
        let response = trusting.get(format!("https://{address}/v5/token/list")).header("x-api-key", &key).send().await.unwrap();
        assert_eq!(response.status(), 200);
    }
    let untrusting = reqwest::Client::builder().timeout(Duration::from_secs(20)).build().unwrap();
    assert!(untrusting.get(format!("https://{address}/v5/token/list")).send().await.is_err(), "the certificate is not trusted");
    assert!(untrusting.get(format!("http://{address}/v5/token/list")).send().await.is_err(), "plain HTTP is rejected");
    // Poll it like another Cliffwatch.
    let source = format!(
        "[source]\nbase_url = \"https://{address}\"\ntls_ca_file = {:?}\napi_key = {key:?}\n[schedule]\nevaluate = \"off\"\nunlock_events = \"off\"\n\
         upcoming = \"off\"\nburn = \"off\"\nbuyback = \"off\"\nallocations = \"off\"\n[http]\nlisten = \"off\"\n[rules]\npaths = []\n",
        file("tls.pem")
    );
    std::fs::write(folder.path().join("cliffwatch.toml"), source).unwrap();
    let poll = Command::new(env!("CARGO_BIN_EXE_cliffwatch")).arg("poll").current_dir(folder.path()).output().unwrap();
    let output = String::from_utf8_lossy(&poll.stdout).into_owned() + &String::from_utf8_lossy(&poll.stderr);
    assert!(poll.status.success() && output.contains("token_list: 1 polled, 1 fresh"), "{output}");
    // A key that does not match the certificate is an error.
    std::fs::write(folder.path().join("other.key"), "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n").unwrap();
    let failed = Command::new(env!("CARGO_BIN_EXE_cliffwatch"))
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tls-cert-file",
            &file("tls.pem"),
            "--tls-key-file",
            &file("other.key"),
            "--db",
        ])
        .arg(&path)
        .output()
        .unwrap();
    assert_eq!(failed.status.code(), Some(1), "{}", String::from_utf8_lossy(&failed.stderr));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("cannot set up TLS"));
}

//! A database server that cannot be reached: the daemon waits for it, and systemd must not end the wait.

use std::os::unix::net::UnixDatagram;

use testkit::{Cluster, free_port};

use super::*;

/// A socket that receives the notifications to systemd.
struct Systemd {
    socket: UnixDatagram,
    path: PathBuf,
    /// The watchdog interval.
    limit: Duration,
}

impl Systemd {
    fn open(workdir: &Workdir, limit: Duration) -> Self {
        let path = workdir.path("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        Self { socket, path, limit }
    }

    fn start(&self, workdir: &Workdir) -> Daemon {
        let micros = self.limit.as_micros().to_string();
        workdir.start("run", &[("NOTIFY_SOCKET", self.path.to_str().expect("a path")), ("WATCHDOG_USEC", &micros)])
    }

    /// Receives notifications for `span`. Returns them, and panics if the watchdog was not fed in time.
    fn receive(&self, span: Duration, log: impl Fn() -> String) -> Vec<String> {
        let (begun, mut fed) = (Instant::now(), Instant::now());
        let mut received = Vec::new();
        self.socket.set_read_timeout(Some(Duration::from_millis(100))).expect("set");
        let mut buffer = [0; 4096];
        while begun.elapsed() < span {
            if let Ok(length) = self.socket.recv(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                if text.contains("WATCHDOG=1") {
                    fed = Instant::now();
                }
                received.push(text);
            }
            assert!(fed.elapsed() < self.limit, "the watchdog was not fed: {received:#?}\n{}", log());
        }
        received
    }
}

/// Points the config at a database on a server, and the pages at a port that is known while the daemon waits.
pub(super) fn use_server(fixture: &Fixture, database: u16, pages: u16) {
    let config = fs::read_to_string(fixture.workdir.path("cliffwatch.toml")).expect("read");
    let config = config
        .replace("path = \"test.db\"", &format!("url = \"postgres://postgres@127.0.0.1:{database}/postgres\""))
        .replace("listen = \"127.0.0.1:0\"", &format!("listen = \"127.0.0.1:{pages}\""));
    fixture.workdir.write("cliffwatch.toml", &config);
}

/// Requests a path. Returns the status and the body.
async fn respond(pages: u16, path: &str) -> (u16, String) {
    cliffwatch::source::install_crypto_provider();
    let response = reqwest::get(format!("http://127.0.0.1:{pages}{path}")).await.expect("a response");
    (response.status().as_u16(), response.text().await.expect("a text"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn start_waits_for_the_database_server() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    let (database, pages) = (free_port(), free_port());
    use_server(&fixture, database, pages);
    let systemd = Systemd::open(&fixture.workdir, Duration::from_secs(4));
    let daemon = systemd.start(&fixture.workdir);
    let received = systemd.receive(Duration::from_secs(7), || daemon.log());
    assert!(received.iter().any(|text| text.contains("EXTEND_TIMEOUT_USEC=60000000")), "{received:#?}");
    assert!(received.iter().any(|text| text.contains("STATUS=waiting for the database")), "{received:#?}");
    assert!(!received.iter().any(|text| text.contains("READY=1")), "{received:#?}");

    assert_eq!(respond(pages, "/-/healthy").await, (200, "healthy; waiting for the database\n".to_owned()));
    let (status, text) = respond(pages, "/-/ready").await;
    assert!(status == 503 && text.contains("cannot open the database"), "{text}");
    assert!(respond(pages, "/metrics").await.1.contains("cliffwatch_database_up 0\n"));

    // A reload does not end the process. It applies a valid config, such as another address of the database.
    fixture.workdir.write("cliffwatch.toml", "[watch]\ntokns = 1\n");
    daemon.signal("HUP");
    daemon.until_log("the changed config has errors");
    fixture.configure("");
    daemon.signal("HUP");
    systemd.receive(Duration::from_secs(1), || daemon.log());
    fixture.until_notified("BigCliffAhead", &daemon);
    assert_eq!(daemon.stop().code(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_daemon_survives_an_outage_of_the_database_server() {
    let Some(cluster) = Cluster::start("") else { return };
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    let pages = free_port();
    use_server(&fixture, cluster.port, pages);
    let systemd = Systemd::open(&fixture.workdir, Duration::from_secs(30));
    let mut daemon = systemd.start(&fixture.workdir);
    fixture.until_notified("BigCliffAhead", &daemon);
    systemd.receive(Duration::from_secs(1), || daemon.log());
    cluster.stop("immediate");
    // Longer than the term of the lease and than the watchdog interval.
    let received = systemd.receive(Duration::from_secs(35), || daemon.log());
    assert!(received.iter().any(|text| text.contains("waiting for the database")), "{received:#?}");
    assert!(daemon.child.try_wait().expect("waits").is_none(), "{}", daemon.log());
    assert_eq!(respond(pages, "/-/ready").await.0, 503);
    assert_eq!(respond(pages, "/-/healthy").await.0, 200);
    cluster.resume();
    fixture.service.edit(|edit| edit.add_buyback("alpha", buyback(&wire(from_now(-1)), 5_000.0))).expect("edited");
    fixture.until_notified("BoughtBack", &daemon);
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while respond(pages, "/-/ready").await.0 != 200 {
        assert!(Instant::now() < deadline, "not ready again: {}", daemon.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(daemon.stop().code(), 0);
}

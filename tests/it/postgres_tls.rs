//! Encrypted connections to a PostgreSQL server, with certificates of a test authority. Each error names its cause and its fix.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use cliffwatch::{
    daemon::database_url::parse_database,
    model::text::error_chain,
    store::{Access, ErrorKind, Store, StoreError},
};
use tokio::net::TcpListener;

use crate::it::{
    binary::Workdir,
    standby::machines::Proxy,
    support::{BEGIN, Cluster, time},
};

/// The roles of the server: `secure` must use TLS, `either` may, and `certified` also needs a client certificate.
const HBA: &str = "local all postgres trust\nhostssl all secure 127.0.0.1/32 trust\nhostnossl all secure 127.0.0.1/32 reject\n\
                   host all either 127.0.0.1/32 trust\nhostssl all certified 127.0.0.1/32 trust clientcert=verify-ca\n";

/// Authorities and certificates, created by openssl in a folder.
struct Authority {
    folder: tempfile::TempDir,
}

impl Authority {
    /// Creates two authorities, `ca` and `other`.
    fn new() -> Self {
        let authority = Self { folder: tempfile::tempdir().expect("a folder") };
        for name in ["ca", "other"] {
            authority.openssl(&format!(
                "req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN={name} -keyout {name}.key -out {name}.pem"
            ));
        }
        authority
    }

    /// Creates a certificate of `ca` for these names with this validity.
    fn certify(&self, name: &str, names: &str, days: &str) {
        self.openssl(&format!(
            "req -newkey rsa:2048 -nodes -subj /CN=server -addext subjectAltName={names} -keyout {name}.key -out {name}.csr"
        ));
        std::fs::write(self.path("ca.cnf"), CA).expect("written");
        std::fs::write(self.path("index.txt"), "").expect("written");
        self.openssl(&format!(
            "ca -config ca.cnf -batch -notext -cert ca.pem -keyfile ca.key -in {name}.csr -out {name}.pem {days}"
        ));
    }

    /// Creates a self-signed certificate, as in PostgreSQL's documentation.
    fn self_sign(&self, name: &str) {
        self.openssl(&format!("req -new -x509 -days 30 -nodes -subj /CN=localhost -keyout {name}.key -out {name}.pem"));
    }

    fn openssl(&self, line: &str) {
        let ran = Command::new("openssl").args(line.split(' ')).current_dir(self.folder.path()).output().expect("openssl runs");
        assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes the server use this certificate.
    fn install(&self, name: &str, cluster: &Cluster) {
        cluster.install_file(&self.path(&format!("{name}.pem")), "server.pem");
        cluster.install_file(&self.path(&format!("{name}.key")), "server.key");
        cluster.reload();
    }
}

const CA: &str = "[ca]\ndefault_ca = here\n[here]\ndatabase = index.txt\nnew_certs_dir = .\ndefault_md = sha256\npolicy = any\n\
                  copy_extensions = copy\ndefault_days = 30\nrand_serial = yes\n[any]\ncommonName = supplied\n";

/// Opens a database as this role. `query` is appended to the URL.
async fn open(cluster: &Cluster, login: &str, query: &str, ca_file: Option<&Path>) -> Result<(), StoreError> {
    let url = format!("postgres://{login}:{}/postgres?options=-csearch_path%3D{}{query}", cluster.port, role(login));
    let place = parse_database(&url, ca_file).expect("a place");
    Store::open_in(place, Access::Own, time(BEGIN)).await?.close().await
}

fn role(login: &str) -> &str {
    login.split('@').next().unwrap_or(login)
}

/// Returns the error of an attempt that must fail, and whether it counts as a lost connection, which is retried.
async fn failure(cluster: &Cluster, login: &str, query: &str, ca_file: Option<&Path>) -> (String, bool) {
    let error = open(cluster, login, query, ca_file).await.expect_err("the connection must fail");
    (error_chain(&error), error.kind() == ErrorKind::ServerLost)
}

/// Waits until the server has reloaded and an attempt fails with this text. Returns whether the failure is retried.
async fn wait_for_failure(cluster: &Cluster, query: &str, ca_file: &Path, words: &str) -> bool {
    let begun = Instant::now();
    loop {
        let result = open(cluster, "secure@localhost", query, Some(ca_file)).await;
        let error_text = result.as_ref().err().map(|error| error_chain(error)).unwrap_or_default();
        if error_text.contains(words) {
            return result.is_err_and(|error| error.kind() == ErrorKind::ServerLost);
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{words}: {error_text}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Starts a server with TLS and a certificate for `localhost`.
fn start_with_tls(authority: &Authority) -> Option<Cluster> {
    let cluster = Cluster::start("")?;
    authority.certify("good", "DNS:localhost,DNS:db.example", "-days 30");
    cluster.write_hba(HBA);
    for role in ["secure", "either", "certified"] {
        cluster.query(&format!("CREATE ROLE {role} LOGIN"));
        cluster.query(&format!("CREATE SCHEMA AUTHORIZATION {role}"));
    }
    let folder = cluster.folder().display().to_string();
    cluster.install_file(&authority.path("ca.pem"), "ca.pem");
    cluster.install_file(&authority.path("good.pem"), "server.pem");
    cluster.install_file(&authority.path("good.key"), "server.key");
    cluster.configure(&format!(
        "ssl = on\nssl_cert_file = '{folder}/server.pem'\nssl_key_file = '{folder}/server.key'\nssl_ca_file = '{folder}/ca.pem'\n"
    ));
    cluster.reload();
    Some(cluster)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_certificate_is_verified_and_each_error_says_what_to_do() {
    if Command::new("openssl").arg("version").output().is_err() {
        println!("SKIPPED: openssl is not installed");
        return;
    }
    let authority = Authority::new();
    let Some(cluster) = start_with_tls(&authority) else { return };
    let (ca, other) = (authority.path("ca.pem"), authority.path("other.pem"));
    let require = "&sslmode=require";
    let begun = Instant::now();
    while let Err(error) = open(&cluster, "secure@localhost", require, Some(&ca)).await {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", error_chain(&error));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let encrypted = cluster.query("SELECT count(*) FROM pg_stat_ssl WHERE ssl AND pid <> pg_backend_pid()");
    assert!(encrypted.parse::<u32>().is_ok(), "{encrypted}");
    // The parameters of libpq work too.
    let named = format!("&sslmode=verify-full&sslrootcert={}", ca.display().to_string().replace('/', "%2F"));
    open(&cluster, "secure@localhost", &named, None).await.expect("the same authority");

    for (login, query, ca_file, words) in [
        ("secure@localhost", require, &other, ["not signed by a trusted authority", "tls_ca_file"]),
        ("secure@127.0.0.1", require, &ca, ["not valid for the host in the URL, only for", "localhost"]),
        ("secure@localhost", "&sslmode=disable", &ca, ["the server rejected the login", "sslmode=require"]),
        ("certified@localhost", require, &ca, ["client certificate", "the server returned an error"]),
        ("secure@localhost", require, &authority.path("ca.key"), ["no certificate in PEM form", "tls_ca_file"]),
        ("secure@localhost", require, &authority.path("nowhere.pem"), ["nowhere.pem", "tls_ca_file"]),
    ] {
        let (error_text, is_lost) = failure(&cluster, login, query, Some(ca_file)).await;
        assert!(words.iter().all(|word| error_text.contains(word)), "{login} {query} {}: {error_text}", ca_file.display());
        assert!(!is_lost, "a retry cannot help: {error_text}");
    }
    // The system does not trust the test authority.
    let (error_text, _) = failure(&cluster, "secure@localhost", require, None).await;
    assert!(error_text.contains("trust") && error_text.contains("tls_ca_file"), "{error_text}");

    // An expired certificate may be renewed at any time, so the failure is retried.
    authority.certify("ended", "DNS:localhost", "-startdate 20200101000000Z -enddate 20200201000000Z");
    authority.install("ended", &cluster);
    assert!(wait_for_failure(&cluster, require, &ca, "its certificate has expired").await);
    authority.certify("coming", "DNS:localhost", "-startdate 20900101000000Z -enddate 20910101000000Z");
    authority.install("coming", &cluster);
    assert!(wait_for_failure(&cluster, require, &ca, "not valid yet").await);

    // A self-signed certificate is accepted only if it is configured.
    authority.self_sign("itself");
    authority.install("itself", &cluster);
    assert!(!wait_for_failure(&cluster, require, &ca, "is a CA certificate, and not trusted itself").await);
    open(&cluster, "secure@localhost", require, Some(&authority.path("itself.pem")))
        .await
        .expect("the certificate is configured");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn required_encryption_sends_nothing_to_a_server_without_tls() {
    let Some(cluster) = Cluster::start("ssl = off") else { return };
    cluster.write_hba("local all postgres trust\nhost all either 127.0.0.1/32 password\n");
    cluster.query("CREATE ROLE either LOGIN PASSWORD 'hunter2'");
    cluster.query("CREATE SCHEMA AUTHORIZATION either");
    cluster.reload();
    let (error_text, is_lost) = failure(&cluster, "either@localhost", "&sslmode=require&password=hunter2", None).await;
    assert!(error_text.contains("it does not encrypt") && error_text.contains("sslmode=disable") && !is_lost, "{error_text}");
    assert!(!error_text.contains("hunter2"), "{error_text}");
    // The program prints the error and exits.
    let workdir = Workdir::new();
    let url = format!(
        "postgres://either:hunter2@localhost:{}/postgres?sslmode=verify-full&options=-csearch_path%3Deither",
        cluster.port
    );
    workdir.write(
        "cliffwatch.toml",
        &format!("[source]\nbase_url = \"http://127.0.0.1:9\"\n[store]\nurl = \"{url}\"\n[http]\nlisten = \"off\"\n"),
    );
    for line in ["run", "status"] {
        let ran = workdir.run(line);
        assert!(
            ran.code() != 0 && ran.err.contains("it does not support encryption") && !ran.err.contains("hunter2"),
            "{line}: {}",
            ran.err
        );
    }
    open(&cluster, "either@localhost", "&sslmode=disable&password=hunter2", None).await.expect("opens without TLS");
}

/// A frozen server accepts connections and never responds. Attempts time out, close the connection, and continue with the next server in
/// the URL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hung_server_times_out_and_the_next_one_is_tried() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = silent.local_addr().expect("bound").port();
    let alone = parse_database(&format!("postgres://me@127.0.0.1:{port}/postgres"), None).expect("a place");
    let attempt = tokio::spawn(Store::open_in(alone, Access::Own, time(BEGIN)));
    let (mut taken, _) = silent.accept().await.expect("a connection");
    let error = attempt.await.expect("no panic").expect_err("no response");
    assert!(error.kind() == ErrorKind::ServerLost && error_chain(&error).contains("does not respond"), "{}", error_chain(&error));
    let closed = async { while tokio::io::AsyncReadExt::read(&mut taken, &mut [0; 512]).await.is_ok_and(|read| read > 0) {} };
    tokio::time::timeout(Duration::from_secs(60), closed).await.expect("the connection is closed");

    let Some(cluster) = Cluster::start("") else { return };
    let two = format!("postgres://postgres@127.0.0.1:{port},127.0.0.1:{}/postgres", cluster.port);
    let place = parse_database(&two, None).expect("a place");
    let store = Store::open_in(place, Access::Own, time(BEGIN)).await.expect("the second server responds");
    store.maintain_lease("a:1").await.expect("kept");
    store.close().await.expect("closes");
}

/// Unlike a daemon, a mirror and a data service have no lease that detects a dead connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_on_a_dead_connection_fails_over_to_the_other_server() {
    let Some(cluster) = Cluster::start("") else { return };
    let server = format!("127.0.0.1:{}", cluster.port);
    // Two proxies to one server simulate a primary and its promoted replica.
    let ((first, one), (_second, two)) = (Proxy::to(&server).await, Proxy::to(&server).await);
    let url = format!("postgres://postgres@127.0.0.1:{one},127.0.0.1:{two}/postgres?target_session_attrs=read-write");
    let store = Store::open_in(parse_database(&url, None).expect("a place"), Access::Own, time(BEGIN)).await.expect("opens");
    assert_eq!(store.token_ids(true).await.expect("read"), []);
    first.cut();
    let begun = Instant::now();
    while store.token_ids(true).await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
}

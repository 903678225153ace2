//! Encrypted connections to a PostgreSQL server with certificates of a test's own authority: whoever cannot be trusted is told apart,
//! with what is to be done about it.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use cliffwatch::{
    daemon::place::place_named,
    model::text::error_chain,
    store::{Access, Store, StoreError},
};
use tokio::net::TcpListener;

use crate::{
    binary::Desk,
    standby::machines::Wire,
    support::{BEGIN, Cluster, time},
};

/// Roles of the server: `hostssl` alone lets in the first, both the second, neither the third.
const HBA: &str = "local all postgres trust\nhostssl all secure 127.0.0.1/32 trust\nhostnossl all secure 127.0.0.1/32 reject\n\
                   host all either 127.0.0.1/32 trust\nhostssl all certified 127.0.0.1/32 trust clientcert=verify-ca\n";

/// Authorities and certificates, made by openssl in a folder.
struct Authority {
    folder: tempfile::TempDir,
}

impl Authority {
    /// Two authorities, `ca` and `other`.
    fn new() -> Self {
        let authority = Self { folder: tempfile::tempdir().expect("a folder") };
        for name in ["ca", "other"] {
            authority.openssl(&format!(
                "req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN={name} -keyout {name}.key -out {name}.pem"
            ));
        }
        authority
    }

    /// A certificate of `ca` for these names, from and until these days.
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

    /// A certificate that the server made and signed itself, as PostgreSQL's own instructions have it.
    fn sign_itself(&self, name: &str) {
        self.openssl(&format!("req -new -x509 -days 30 -nodes -subj /CN=localhost -keyout {name}.key -out {name}.pem"));
    }

    fn openssl(&self, line: &str) {
        let ran = Command::new("openssl").args(line.split(' ')).current_dir(self.folder.path()).output().expect("openssl runs");
        assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Lets the server show this certificate from now on.
    fn install(&self, name: &str, cluster: &Cluster) {
        cluster.give(&self.path(&format!("{name}.pem")), "server.pem");
        cluster.give(&self.path(&format!("{name}.key")), "server.key");
        cluster.reload();
    }
}

const CA: &str = "[ca]\ndefault_ca = here\n[here]\ndatabase = index.txt\nnew_certs_dir = .\ndefault_md = sha256\npolicy = any\n\
                  copy_extensions = copy\ndefault_days = 30\nrand_serial = yes\n[any]\ncommonName = supplied\n";

/// Opens a database there as this role; `query` is the end of the address.
async fn open(cluster: &Cluster, who: &str, query: &str, ca_file: Option<&Path>) -> Result<(), StoreError> {
    let url = format!("postgres://{who}:{}/postgres?options=-csearch_path%3D{}{query}", cluster.port, role(who));
    let place = place_named(&url, ca_file).expect("a place");
    Store::open_in(place, Access::Own, time(BEGIN)).await?.close().await
}

fn role(who: &str) -> &str {
    who.split('@').next().unwrap_or(who)
}

/// What is told of an attempt that must fail.
async fn refused(cluster: &Cluster, who: &str, query: &str, ca_file: Option<&Path>) -> (String, bool) {
    let error = open(cluster, who, query, ca_file).await.expect_err("it must not be believed");
    (error_chain(&error), error.is_lost())
}

/// A reload is not there at once: waits until an attempt fails with these words, and says whether it will be tried again.
async fn comes_to(cluster: &Cluster, query: &str, ca_file: &Path, words: &str) -> bool {
    let begun = Instant::now();
    loop {
        let result = open(cluster, "secure@localhost", query, Some(ca_file)).await;
        let said = result.as_ref().err().map(|error| error_chain(error)).unwrap_or_default();
        if said.contains(words) {
            return result.is_err_and(|error| error.is_lost());
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{words}: {said}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A server that encrypts, with a certificate for `localhost`.
fn secured(authority: &Authority) -> Option<Cluster> {
    let cluster = Cluster::start("")?;
    authority.certify("good", "DNS:localhost,DNS:db.example", "-days 30");
    cluster.admit(HBA);
    for role in ["secure", "either", "certified"] {
        cluster.ask(&format!("CREATE ROLE {role} LOGIN"));
        cluster.ask(&format!("CREATE SCHEMA AUTHORIZATION {role}"));
    }
    let folder = cluster.folder().display().to_string();
    cluster.give(&authority.path("ca.pem"), "ca.pem");
    cluster.give(&authority.path("good.pem"), "server.pem");
    cluster.give(&authority.path("good.key"), "server.key");
    cluster.configure(&format!(
        "ssl = on\nssl_cert_file = '{folder}/server.pem'\nssl_key_file = '{folder}/server.key'\nssl_ca_file = '{folder}/ca.pem'\n"
    ));
    cluster.reload();
    Some(cluster)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_believed_by_its_certificate_and_each_other_case_says_what_to_do() {
    if Command::new("openssl").arg("version").output().is_err() {
        println!("left out: certificates (openssl)");
        return;
    }
    let authority = Authority::new();
    let Some(cluster) = secured(&authority) else { return };
    let (ca, other) = (authority.path("ca.pem"), authority.path("other.pem"));
    let require = "&sslmode=require";
    let begun = Instant::now();
    while let Err(error) = open(&cluster, "secure@localhost", require, Some(&ca)).await {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", error_chain(&error));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let encrypted = cluster.ask("SELECT count(*) FROM pg_stat_ssl WHERE ssl AND pid <> pg_backend_pid()");
    assert!(encrypted.parse::<u32>().is_ok(), "{encrypted}");
    // As libpq would have it said.
    let named = format!("&sslmode=verify-full&sslrootcert={}", ca.display().to_string().replace('/', "%2F"));
    open(&cluster, "secure@localhost", &named, None).await.expect("the same authority");

    for (who, query, ca_file, words) in [
        ("secure@localhost", require, &other, ["signed by nobody who is trusted here", "tls_ca_file"]),
        ("secure@127.0.0.1", require, &ca, ["not for the name in the address, but for", "localhost"]),
        ("secure@localhost", "&sslmode=disable", &ca, ["does not let us in", "sslmode=require"]),
        ("certified@localhost", require, &ca, ["client certificate", "the server refuses"]),
        ("secure@localhost", require, &authority.path("ca.key"), ["no certificate in PEM form", "tls_ca_file"]),
        ("secure@localhost", require, &authority.path("nowhere.pem"), ["nowhere.pem", "tls_ca_file"]),
    ] {
        let (said, is_lost) = refused(&cluster, who, query, Some(ca_file)).await;
        assert!(words.iter().all(|word| said.contains(word)), "{who} {query} {}: {said}", ca_file.display());
        assert!(!is_lost, "nothing comes of waiting: {said}");
    }
    // The system's authorities know nothing of ours.
    let (said, _) = refused(&cluster, "secure@localhost", require, None).await;
    assert!(said.contains("trust") && said.contains("tls_ca_file"), "{said}");

    // One that has ended may be renewed any moment: it is tried again.
    authority.certify("ended", "DNS:localhost", "-startdate 20200101000000Z -enddate 20200201000000Z");
    authority.install("ended", &cluster);
    assert!(comes_to(&cluster, require, &ca, "its certificate has ended").await);
    authority.certify("coming", "DNS:localhost", "-startdate 20900101000000Z -enddate 20910101000000Z");
    authority.install("coming", &cluster);
    assert!(comes_to(&cluster, require, &ca, "not valid yet").await);

    // One that it signed itself is believed where it is named, and nowhere else.
    authority.sign_itself("itself");
    authority.install("itself", &cluster);
    assert!(!comes_to(&cluster, require, &ca, "name that very certificate").await);
    open(&cluster, "secure@localhost", require, Some(&authority.path("itself.pem"))).await.expect("it was named");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_encrypt_is_told_nothing_where_encryption_is_asked_for() {
    let Some(cluster) = Cluster::start("ssl = off") else { return };
    cluster.admit("local all postgres trust\nhost all either 127.0.0.1/32 password\n");
    cluster.ask("CREATE ROLE either LOGIN PASSWORD 'hunter2'");
    cluster.ask("CREATE SCHEMA AUTHORIZATION either");
    cluster.reload();
    let (said, is_lost) = refused(&cluster, "either@localhost", "&sslmode=require&password=hunter2", None).await;
    assert!(said.contains("it does not encrypt") && said.contains("sslmode=disable") && !is_lost, "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    // The program says so, and ends.
    let desk = Desk::new();
    let url = format!(
        "postgres://either:hunter2@localhost:{}/postgres?sslmode=verify-full&options=-csearch_path%3Deither",
        cluster.port
    );
    desk.write(
        "cliffwatch.toml",
        &format!("[source]\nbase_url = \"http://127.0.0.1:9\"\n[store]\nurl = \"{url}\"\n[http]\nlisten = \"off\"\n"),
    );
    for line in ["run", "status"] {
        let ran = desk.run(line);
        assert!(
            ran.code() != 0 && ran.err.contains("it does not encrypt") && !ran.err.contains("hunter2"),
            "{line}: {}",
            ran.err
        );
    }
    open(&cluster, "either@localhost", "&sslmode=disable&password=hunter2", None).await.expect("as asked for");
}

/// A server that is frozen takes connections and says nothing: attempts end in their time and leave nothing open, and another server of
/// the same address is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_says_nothing_is_given_up_and_another_one_of_the_address_is_asked() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = silent.local_addr().expect("bound").port();
    let alone = place_named(&format!("postgres://me@127.0.0.1:{port}/postgres"), None).expect("a place");
    let attempt = tokio::spawn(Store::open_in(alone, Access::Own, time(BEGIN)));
    let (mut taken, _) = silent.accept().await.expect("it comes");
    let error = attempt.await.expect("no panic").expect_err("nobody answers");
    assert!(error.is_lost() && error_chain(&error).contains("does not answer"), "{}", error_chain(&error));
    let closed = async { while tokio::io::AsyncReadExt::read(&mut taken, &mut [0; 512]).await.is_ok_and(|read| read > 0) {} };
    tokio::time::timeout(Duration::from_secs(60), closed).await.expect("the connection is given up, not left open");

    let Some(cluster) = Cluster::start("") else { return };
    let two = format!("postgres://postgres@127.0.0.1:{port},127.0.0.1:{}/postgres", cluster.port);
    let place = place_named(&two, None).expect("a place");
    let store = Store::open_in(place, Access::Own, time(BEGIN)).await.expect("the other one answers");
    store.tend_lease("a:1").await.expect("tended");
    store.close().await.expect("closes");
}

/// No session finds out by a lease here, as in a mirror or a data service.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_for_a_server_that_is_gone_without_a_word_finds_the_other_one() {
    let Some(cluster) = Cluster::start("") else { return };
    let server = format!("127.0.0.1:{}", cluster.port);
    // Two ways to one server stand for a primary and the replica that took its place.
    let ((first, one), (_second, two)) = (Wire::to(&server).await, Wire::to(&server).await);
    let url = format!("postgres://postgres@127.0.0.1:{one},127.0.0.1:{two}/postgres?target_session_attrs=read-write");
    let store = Store::open_in(place_named(&url, None).expect("a place"), Access::Own, time(BEGIN)).await.expect("opens");
    assert_eq!(store.token_ids(true).await.expect("read"), []);
    first.cut();
    let begun = Instant::now();
    while store.token_ids(true).await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
}

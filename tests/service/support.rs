//! A data service on a socket, and how to ask it.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use cliffwatch::{
    daemon::place::place_named,
    model::{clock::Clock, supply::Timestamp, wire},
    service as serve,
    service::{Options, Service},
};
use serde_json::Value;
use tokio::sync::oneshot;

pub fn time(text: &str) -> Timestamp {
    wire::parse_timestamp(text).unwrap()
}

/// A database that belongs to a test alone, as a command line names it: a schema on the server that the environment names
/// (`tests/postgres/run` starts one), else a file in the folder.
pub fn database(folder: &Path, name: &str) -> String {
    let Some(url) = std::env::var("CLIFFWATCH_TEST_POSTGRES").ok().filter(|url| !url.is_empty()) else {
        return folder.join(name).to_str().unwrap().to_owned();
    };
    static SCHEMAS: AtomicU32 = AtomicU32::new(0);
    let schema = format!("service{}_{}", std::process::id(), SCHEMAS.fetch_add(1, Ordering::SeqCst));
    let made = std::process::Command::new("psql").args([&url, "-X", "-q", "-c", &format!("CREATE SCHEMA {schema}")]).status();
    assert!(made.unwrap().success(), "{schema}");
    format!("{url}?options=-csearch_path%3D{schema}")
}

/// Opens a database that a command line names so.
pub fn opened(database: &str, options: Options) -> Service {
    Service::open_in(&place_named(database, None).unwrap(), options).unwrap()
}

/// As the interface has it, at a time when the bundled schedules still have events ahead.
pub fn options() -> Options {
    Options { clock: Clock::manual(time("2026-04-10T12:00:00Z")), ..Options::default() }
}

/// A service with the bundled data; made once, since making it takes a while.
pub fn bundled() -> &'static Service {
    static SERVICE: OnceLock<Service> = OnceLock::new();
    SERVICE.get_or_init(|| {
        let service = Service::in_memory(options()).unwrap();
        service.import(serve::bundled(), |_| {}).unwrap();
        service
    })
}

/// The same, whose older versions answer for every token: for a daemon that watches some of each kind.
pub fn for_all() -> &'static Service {
    static SERVICE: OnceLock<Service> = OnceLock::new();
    SERVICE.get_or_init(|| {
        let service = Service::in_memory(Options { all_tokens: true, ..options() }).unwrap();
        service.import(serve::bundled(), |_| {}).unwrap();
        service
    })
}

pub struct Server {
    pub address: SocketAddr,
    pub http: reqwest::Client,
    _stop: oneshot::Sender<()>,
}

impl Server {
    /// Both base addresses in one.
    pub async fn of(service: &Service) -> Self {
        cliffwatch::source::install_crypto_provider();
        let listener = serve::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(serve::serve(listener, service.legacy_router(), async move { drop(stopped.await) }));
        let http = reqwest::Client::builder().timeout(Duration::from_secs(60)).build().unwrap();
        Self { address, http, _stop: stop }
    }

    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> reqwest::Response {
        let request = self.http.get(format!("http://{}{path}", self.address));
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).send().await.unwrap()
    }

    pub async fn ask(&self, path: &str) -> (u16, Value) {
        let response = self.get(path, &[]).await;
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}")))
    }

    pub async fn data(&self, path: &str) -> Value {
        let (status, body) = self.ask(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        body["data"].clone()
    }
}

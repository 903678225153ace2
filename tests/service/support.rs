//! Helpers: databases, services with the bundled data, and a server with a client.

use std::{net::SocketAddr, path::Path, sync::OnceLock, time::Duration};

use cliffwatch::{
    daemon::database_url::parse_database,
    model::{clock::Clock, supply::Timestamp, wire},
    service as serve,
    service::{Options, Service},
};
use serde_json::Value;
use tokio::sync::oneshot;

pub fn time(text: &str) -> Timestamp {
    wire::parse_timestamp(text).unwrap()
}

/// Creates a database for one test and returns its command line name: a schema on the server of the environment (see
/// `tests/postgres/run`), else a file in the folder.
pub fn database(folder: &Path, name: &str) -> String {
    testkit::create_schema().unwrap_or_else(|| folder.join(name).to_str().unwrap().to_owned())
}

/// Opens a service on a database.
pub fn opened(database: &str, options: Options) -> Service {
    Service::open_in(&parse_database(database, None).unwrap(), options).unwrap()
}

/// The default options, at a time when the bundled schedules still have upcoming events.
pub fn options() -> Options {
    Options { clock: Clock::manual(time("2026-04-10T12:00:00Z")), ..Options::default() }
}

/// A shared service with the bundled data.
pub fn bundled() -> &'static Service {
    static SERVICE: OnceLock<Service> = OnceLock::new();
    SERVICE.get_or_init(|| {
        let service = Service::in_memory(options()).unwrap();
        service.import(serve::bundled(), |_| {}).unwrap();
        service
    })
}

/// A shared service with the bundled data, whose older versions serve all tokens.
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
    /// Starts a server with the paths of both base URLs.
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

    pub async fn request(&self, path: &str) -> (u16, Value) {
        let response = self.get(path, &[]).await;
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}")))
    }

    pub async fn data(&self, path: &str) -> Value {
        let (status, body) = self.request(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        body["data"].clone()
    }
}

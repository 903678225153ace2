//! A data service on a socket, and how to ask it.

use std::{net::SocketAddr, sync::OnceLock, time::Duration};

use cliffwatch::{
    model::{clock::Clock, supply::Timestamp, wire},
    service as serve,
    service::{Options, Service},
};
use serde_json::Value;
use tokio::sync::oneshot;

pub fn time(text: &str) -> Timestamp {
    wire::parse_timestamp(text).unwrap()
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

//! The page `/metrics`, and a log line per request. Neither contains keys.

use std::{net::SocketAddr, time::Duration};

use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, histogram::Histogram, info::Info},
    registry::Registry,
};

/// Upper bounds of the histogram buckets, in seconds.
const TIME_BUCKETS: [f64; 11] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 10.0];
const MAX_LOGGED_PATH: usize = 200;

type ServiceLabels = [(&'static str, &'static str); 2];

#[derive(Debug)]
pub struct ServiceMetrics {
    registry: Registry,
    requests: Family<ServiceLabels, Counter>,
    seconds: Histogram,
    bytes: Counter,
    credits: Counter,
}

#[derive(Debug)]
pub struct ServedRequest<'a> {
    pub method: &'a str,
    /// The requested path, without the query, which may contain anything.
    pub path: &'a str,
    /// The path in the table of routes.
    pub route: &'static str,
    pub status: u16,
    /// The size of the body before compression.
    pub bytes: u64,
    pub took: Duration,
    pub peer: Option<SocketAddr>,
    /// The name of the key, if one was valid.
    pub key: Option<&'a str>,
    /// Whether the request cost a credit.
    pub is_charged: bool,
}

impl ServiceMetrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("cliffwatch_service");
        let (requests, bytes, credits) = (Family::default(), Counter::default(), Counter::default());
        let seconds = Histogram::new(TIME_BUCKETS);
        registry.register("requests", "Requests by path and status", requests.clone());
        registry.register("request_seconds", "Time from the head of a request to its response", seconds.clone());
        registry.register("response_bytes", "Bytes of responses before compression", bytes.clone());
        registry.register("credits", "Charged credits", credits.clone());
        registry.register("build", "Version of the program", Info::new(model::program::labels()));
        Self { registry, requests, seconds, bytes, credits }
    }

    /// Counts and logs a request.
    pub fn record(&self, served: &ServedRequest<'_>) {
        self.requests.get_or_create(&[("path", served.route), ("status", status_label(served.status))]).inc();
        self.seconds.observe(served.took.as_secs_f64());
        self.bytes.inc_by(served.bytes);
        self.credits.inc_by(u64::from(served.is_charged));
        if tracing::enabled!(target: "cliffwatch::access", tracing::Level::INFO) {
            let path = model::text::replaced(served.path, '\u{fffd}', MAX_LOGGED_PATH);
            tracing::info!(
                target: "cliffwatch::access",
                peer = served.peer.map(|peer| peer.ip().to_string()),
                key = served.key,
                status = served.status,
                bytes = served.bytes,
                took_us = u64::try_from(served.took.as_micros()).unwrap_or(u64::MAX),
                "{} {path}",
                served.method,
            );
        }
    }

    /// Returns the metrics as OpenMetrics text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = text::encode(&mut out, &self.registry);
        out
    }
}

/// Returns a status as a label with a bounded number of values.
fn status_label(status: u16) -> &'static str {
    match status {
        200 => "200",
        304 => "304",
        400 => "400",
        401 => "401",
        404 => "404",
        405 => "405",
        413 => "413",
        429 => "429",
        500 => "500",
        503 => "503",
        _ => "other",
    }
}

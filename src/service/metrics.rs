//! What the service says of itself: `/metrics`, and a line of log for each request. Neither ever holds a key.

use std::{net::SocketAddr, time::Duration};

use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, histogram::Histogram, info::Info},
    registry::Registry,
};

/// Upper bounds of the buckets of a request's time, seconds.
const TIME_BUCKETS: [f64; 11] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 10.0];
/// Characters of a path that are logged.
const MAX_LOGGED_PATH: usize = 200;

type Labels = [(&'static str, &'static str); 2];

#[derive(Debug)]
pub struct ServiceMetrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    seconds: Histogram,
    bytes: Counter,
    credits: Counter,
}

#[derive(Debug)]
pub struct ServedRequest<'a> {
    /// `GET`.
    pub method: &'a str,
    /// As it was asked for, without the query, which may hold anything.
    pub path: &'a str,
    /// As the table of paths has it.
    pub route: &'static str,
    /// HTTP status.
    pub status: u16,
    /// Of the body before compression.
    pub bytes: u64,
    /// From its head to the answer.
    pub took: Duration,
    pub peer: Option<SocketAddr>,
    /// Name of the key, where one was let in.
    pub key: Option<&'a str>,
    /// Whether it cost a credit.
    pub is_charged: bool,
}

impl ServiceMetrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("cliffwatch_service");
        let (requests, bytes, credits) = (Family::default(), Counter::default(), Counter::default());
        let seconds = Histogram::new(TIME_BUCKETS);
        registry.register("requests", "Requests by path and status", requests.clone());
        registry.register("request_seconds", "Time from the head of a request to its answer", seconds.clone());
        registry.register("answer_bytes", "Bytes of answers before compression", bytes.clone());
        registry.register("credits", "Credits that were used up", credits.clone());
        registry.register("build", "What runs", Info::new(model::program::labels()));
        Self { registry, requests, seconds, bytes, credits }
    }

    /// Counts and logs a request.
    pub fn note(&self, served: &ServedRequest<'_>) {
        self.requests.get_or_create(&[("path", served.route), ("status", word(served.status))]).inc();
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

    /// OpenMetrics text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing into a text cannot fail.
        let _ = text::encode(&mut out, &self.registry);
        out
    }
}

/// The statuses that the service answers, as words of a bounded number.
fn word(status: u16) -> &'static str {
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

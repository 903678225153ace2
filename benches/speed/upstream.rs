//! A source of made-up tokens in a separate process, so that its processor time is not included in the measurement.
//!
//! `speed --upstream COUNT` serves the token list and the unlock events (v5, paged) of COUNT tokens. `POST /reprice` changes all prices.
//! `GET /paths` returns the requested paths since its last call.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context;
use axum::{
    Router,
    extract::{Path, Query, State},
    http::{StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use chrono::NaiveDate;
use cliffwatch::{model::clock::Clock, service as serve};
use serde_json::json;

use crate::made::Schedules;

/// The option that runs this program as a source.
pub const FLAG: &str = "--upstream";

/// A running source. Killed on drop.
pub struct Upstream {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub address: String,
}

impl Upstream {
    /// Starts a source with this number of tokens.
    pub fn start(tokens: usize) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([FLAG, &tokens.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the source")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("no stdout")?;
        BufReader::new(stdout).read_line(&mut line)?;
        Ok(Self { child, address: line.trim().to_owned() })
    }

    /// The requested paths since the last call.
    pub async fn paths(&self) -> anyhow::Result<Vec<String>> {
        let text = reqwest::get(format!("{}/paths", self.address)).await?.text().await?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    pub async fn reprice(&self) -> anyhow::Result<()> {
        reqwest::Client::new().post(format!("{}/reprice", self.address)).send().await?.error_for_status()?;
        Ok(())
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct SourceState {
    schedules: Schedules,
    tokens: usize,
    price: Mutex<f64>,
    paths: Mutex<Vec<String>>,
    clock: Clock,
}

/// Serves until the process is killed.
pub fn serve(args: &[String]) -> anyhow::Result<()> {
    let tokens = args.first().context("missing number of tokens")?.parse()?;
    let state = Arc::new(SourceState {
        schedules: Schedules::read()?,
        tokens,
        price: Mutex::new(1.0),
        paths: Mutex::default(),
        clock: Clock::system(),
    });
    let router = Router::new()
        .route("/v5/token/list", get(list))
        .route("/v5/unlock/events/{id}", get(events))
        .route("/reprice", post(reprice))
        .route("/paths", get(paths))
        .with_state(state);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        serve::serve(listener, router, std::future::pending()).await?;
        Ok(())
    })
}

async fn list(State(state): State<Arc<SourceState>>) -> Response {
    let items: Result<Vec<_>, _> = (0..state.tokens).map(Schedules::item).collect();
    match items {
        Ok(items) => response(&state, json!({}), &items),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn events(
    State(state): State<Arc<SourceState>>,
    uri: Uri,
    Path(id): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    state.paths.lock().unwrap_or_else(PoisonError::into_inner).push(uri.to_string());
    let Some(number) = id.rsplit('-').next().and_then(|number| number.parse().ok()).filter(|number| *number < state.tokens)
    else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let price = *state.price.lock().unwrap_or_else(PoisonError::into_inner);
    let mut events = state.schedules.events(number, price);
    let day = |name: &str| query.get(name).and_then(|text| text.parse::<NaiveDate>().ok());
    let (first, last) = (day("start").unwrap_or(NaiveDate::MIN), day("end").unwrap_or(NaiveDate::MAX));
    events.retain(|event| event.unlock_date.copied().is_none_or(|at| (first..=last).contains(&at.date_naive())));
    let requested = |name: &str, default: usize| query.get(name).and_then(|text| text.parse().ok()).unwrap_or(default).max(1);
    let (page, size) = (requested("page", 1), requested("pageSize", 10));
    let rows: Vec<_> = events.iter().skip((page - 1) * size).take(size).collect();
    let metadata = json!({"page": page, "pageSize": size, "total": events.len(), "totalPages": events.len().div_ceil(size)});
    response(&state, metadata, &rows)
}

async fn reprice(State(state): State<Arc<SourceState>>) {
    *state.price.lock().unwrap_or_else(PoisonError::into_inner) *= 1.001;
}

async fn paths(State(state): State<Arc<SourceState>>) -> String {
    std::mem::take(&mut *state.paths.lock().unwrap_or_else(PoisonError::into_inner)).join("\n")
}

/// Wraps data in the envelope, with different `metadata` each time, like the real API.
fn response<T: serde::Serialize>(state: &SourceState, mut metadata: serde_json::Value, data: &[T]) -> Response {
    metadata["queryDate"] = json!(state.clock.now());
    match serde_json::to_string(data) {
        Ok(data) => {
            let body = format!(r#"{{"metadata":{metadata},"status":true,"data":{data}}}"#);
            ([(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

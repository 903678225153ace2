//! A source of made-up tokens in a process of its own, so that its processor time is not counted as ours.
//!
//! `speed --upstream COUNT` serves the token list and the unlock events (v5, in pages) of COUNT tokens. `POST /reprice` moves all
//! prices; `GET /paths` tells which paths were asked for since it was last asked.

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

/// What makes this program a source.
pub const FLAG: &str = "--upstream";

/// A source that runs until it is dropped.
pub struct Upstream {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub address: String,
}

impl Upstream {
    /// Starts one with `tokens` tokens.
    pub fn start(tokens: usize) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([FLAG, &tokens.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .context("the source cannot be started")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("its output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        Ok(Self { child, address: line.trim().to_owned() })
    }

    /// The paths that were asked for since this was last called.
    pub async fn paths(&self) -> anyhow::Result<Vec<String>> {
        let text = reqwest::get(format!("{}/paths", self.address)).await?.text().await?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Moves all prices.
    pub async fn reprice(&self) -> anyhow::Result<()> {
        reqwest::Client::new().post(format!("{}/reprice", self.address)).send().await?.error_for_status()?;
        Ok(())
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Made {
    schedules: Schedules,
    tokens: usize,
    price: Mutex<f64>,
    paths: Mutex<Vec<String>>,
    clock: Clock,
}

/// Serves until the process is ended.
pub fn serve(args: &[String]) -> anyhow::Result<()> {
    let tokens = args.first().context("how many tokens")?.parse()?;
    let made = Arc::new(Made {
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
        .with_state(made);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        serve::serve(listener, router, std::future::pending()).await?;
        Ok(())
    })
}

async fn list(State(made): State<Arc<Made>>) -> Response {
    let items: Result<Vec<_>, _> = (0..made.tokens).map(Schedules::item).collect();
    match items {
        Ok(items) => answer(&made, json!({}), &items),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn events(
    State(made): State<Arc<Made>>,
    uri: Uri,
    Path(id): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    made.paths.lock().unwrap_or_else(PoisonError::into_inner).push(uri.to_string());
    let Some(number) = id.rsplit('-').next().and_then(|number| number.parse().ok()).filter(|number| *number < made.tokens) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let price = *made.price.lock().unwrap_or_else(PoisonError::into_inner);
    let mut events = made.schedules.events(number, price);
    let day = |name: &str| query.get(name).and_then(|text| text.parse::<NaiveDate>().ok());
    let (first, last) = (day("start").unwrap_or(NaiveDate::MIN), day("end").unwrap_or(NaiveDate::MAX));
    events.retain(|event| event.unlock_date.copied().is_none_or(|at| (first..=last).contains(&at.date_naive())));
    let asked = |name: &str, default: usize| query.get(name).and_then(|text| text.parse().ok()).unwrap_or(default).max(1);
    let (page, size) = (asked("page", 1), asked("pageSize", 10));
    let rows: Vec<_> = events.iter().skip((page - 1) * size).take(size).collect();
    let metadata = json!({"page": page, "pageSize": size, "total": events.len(), "totalPages": events.len().div_ceil(size)});
    answer(&made, metadata, &rows)
}

async fn reprice(State(made): State<Arc<Made>>) {
    *made.price.lock().unwrap_or_else(PoisonError::into_inner) *= 1.001;
}

async fn paths(State(made): State<Arc<Made>>) -> String {
    std::mem::take(&mut *made.paths.lock().unwrap_or_else(PoisonError::into_inner)).join("\n")
}

/// The envelope: `metadata` differs each time, as the real one does.
fn answer<T: serde::Serialize>(made: &Made, mut metadata: serde_json::Value, data: &[T]) -> Response {
    metadata["queryDate"] = json!(made.clock.now());
    match serde_json::to_string(data) {
        Ok(data) => {
            let body = format!(r#"{{"metadata":{metadata},"status":true,"data":{data}}}"#);
            ([(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

//! Receivers that record their messages and fail in every way that a receiver can.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use cliffwatch::{
    model::{clock::Clock, supply::Timestamp},
    service as serve,
};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The current behavior of a receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Behavior {
    Accepts,
    /// Responds with this status and stores nothing.
    Rejects(u16),
    /// Stores the message but never responds.
    AcceptsWithoutResponse,
    /// Neither stores the message nor responds.
    Hangs,
    /// Stores the message and responds late.
    Slow,
}

/// The records of a receiver.
#[derive(Debug, Default)]
struct Account {
    behavior: Option<Behavior>,
    /// The accepted messages in order: `webhook-id` and body.
    accepted: Vec<(String, Value)>,
    /// The facts of these messages, with the ids of the messages.
    facts: BTreeMap<Fact, BTreeSet<String>>,
    /// When each fact was first accepted.
    first_at: BTreeMap<Fact, Timestamp>,
    minutes: UnlockMinutes,
    /// The number of messages accepted without a response.
    unanswered: usize,
    rejected: usize,
}

impl Account {
    fn accept(&mut self, id: String, body: &str) {
        let body: Value = serde_json::from_str(body).expect("JSON");
        let now = Clock::system().now();
        for alert in body["data"]["alerts"].as_array().into_iter().flatten() {
            let fact = fact(alert, &mut self.minutes);
            self.facts.entry(fact.clone()).or_default().insert(id.clone());
            self.first_at.entry(fact).or_insert(now);
        }
        self.accepted.push((id, body));
    }
}

/// A receiver that records its messages.
#[derive(Clone, Debug, Default)]
pub struct Books(Arc<Mutex<Account>>);

/// The length of a date with its minute.
pub const MINUTE_LENGTH: usize = "2026-01-01T00:00".len();

/// The minute of the unlock of each alert, keyed by the id of the alert. A message without a record does not have it.
pub type UnlockMinutes = BTreeMap<String, String>;

/// A notified fact as `rule token value`, comparable with the facts of the world.
pub type Fact = String;

impl Books {
    pub async fn open(ending: CancellationToken) -> (Self, SocketAddr) {
        let books = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let router = Router::new().route("/hook", post(take)).with_state(books.clone());
        tokio::spawn(serve::serve(listener, router, ending.cancelled_owned()));
        (books, address)
    }

    pub fn behave(&self, behavior: Behavior) {
        self.0.lock().unwrap().behavior = Some(behavior);
    }

    pub fn accepted(&self) -> Vec<(String, Value)> {
        self.0.lock().unwrap().accepted.clone()
    }

    /// When each fact was first accepted, by the clock of this machine.
    pub fn first_times(&self) -> BTreeMap<Fact, Timestamp> {
        self.0.lock().unwrap().first_at.clone()
    }

    pub fn has(&self, fact: &Fact) -> bool {
        self.0.lock().unwrap().facts.contains_key(fact)
    }

    pub fn unanswered(&self) -> usize {
        self.0.lock().unwrap().unanswered
    }

    pub fn rejected(&self) -> usize {
        self.0.lock().unwrap().rejected
    }

    /// The number of repeated messages, with an id that was accepted before.
    pub fn repeats(&self) -> usize {
        let accepted = self.accepted();
        accepted.len() - accepted.iter().map(|(id, _)| id).collect::<BTreeSet<_>>().len()
    }

    /// All notified facts with the ids of their messages.
    pub fn facts(&self) -> BTreeMap<Fact, BTreeSet<String>> {
        self.0.lock().unwrap().facts.clone()
    }

    /// The alerts about the source, receivers, or the daemon.
    pub fn incidents(&self) -> Vec<Value> {
        let bodies = self.accepted().into_iter().map(|(_, body)| body);
        bodies
            .filter(|body| body["type"] == "source")
            .flat_map(|body| body["data"]["alerts"].as_array().cloned())
            .flatten()
            .collect()
    }
}

/// The fact of an alert: rule, token, and a value that identifies it.
pub fn fact(alert: &Value, minutes: &mut UnlockMinutes) -> Fact {
    let rule = alert["rule"].as_str().unwrap_or_default();
    let token = alert["token"]["id"].as_str().unwrap_or("-");
    let figure = match rule {
        "Burned" => alert["record"]["amount"].to_string(),
        "Moved" => alert["change"]["to"].as_str().unwrap_or_default().get(..10).unwrap_or_default().to_owned(),
        "Resized" => alert["record"]["cliffUnlocks"]["cliffAmount"].to_string(),
        _ => {
            let id = alert["id"].as_str().unwrap_or_default();
            if let Some(minute) = alert["record"]["unlockDate"].as_str().and_then(|date| date.get(..MINUTE_LENGTH)) {
                minutes.insert(id.to_owned(), minute.to_owned());
            }
            let minute = minutes.get(id).map_or("-", String::as_str);
            format!("{} {minute}", alert["status"].as_str().unwrap_or_default())
        }
    };
    format!("{rule} {token} {figure}")
}

async fn take(State(books): State<Books>, headers: HeaderMap, body: String) -> StatusCode {
    let id = headers.get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    let behavior = {
        let mut account = books.0.lock().unwrap();
        let behavior = account.behavior.unwrap_or(Behavior::Accepts);
        if matches!(behavior, Behavior::Accepts | Behavior::AcceptsWithoutResponse) {
            account.accept(id.clone(), &body);
        }
        account.unanswered += usize::from(behavior == Behavior::AcceptsWithoutResponse);
        account.rejected += usize::from(matches!(behavior, Behavior::Rejects(_)));
        behavior
    };
    match behavior {
        Behavior::Accepts => StatusCode::NO_CONTENT,
        Behavior::Rejects(status) => StatusCode::from_u16(status).expect("a status"),
        Behavior::AcceptsWithoutResponse | Behavior::Hangs => std::future::pending().await,
        Behavior::Slow => {
            tokio::time::sleep(Duration::from_millis(700)).await;
            // If the client disconnects meanwhile, this future is dropped and nothing is stored.
            books.0.lock().unwrap().accept(id, &body);
            StatusCode::NO_CONTENT
        }
    }
}

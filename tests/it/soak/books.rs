//! Receivers that keep their own books, and break in every way that a receiver can.

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
use cliffwatch::service as serve;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How a receiver answers just now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mood {
    Takes,
    /// This status, and nothing is kept.
    Refuses(u16),
    /// It takes the message and never says so.
    TakesInSilence,
    /// It neither takes nor answers.
    Hangs,
    /// It takes, late.
    Slow,
}

/// What a receiver has, by its own account.
#[derive(Debug, Default)]
struct Account {
    mood: Option<Mood>,
    /// Each message that was taken, in its order: `webhook-id` and body.
    taken: Vec<(String, Value)>,
    /// Messages that were taken without a word.
    in_silence: usize,
    refused: usize,
}

/// A receiver.
#[derive(Clone, Debug, Default)]
pub struct Books(Arc<Mutex<Account>>);

/// What was told of the world, in a form that can be compared with it: `rule token fact`.
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

    pub fn feel(&self, mood: Mood) {
        self.0.lock().unwrap().mood = Some(mood);
    }

    pub fn taken(&self) -> Vec<(String, Value)> {
        self.0.lock().unwrap().taken.clone()
    }

    pub fn in_silence(&self) -> usize {
        self.0.lock().unwrap().in_silence
    }

    pub fn refused(&self) -> usize {
        self.0.lock().unwrap().refused
    }

    /// Messages that came again under an id that was taken before.
    pub fn repeats(&self) -> usize {
        let taken = self.taken();
        taken.len() - taken.iter().map(|(id, _)| id).collect::<BTreeSet<_>>().len()
    }

    /// Every fact that was told, with the ids of the messages that told it.
    pub fn facts(&self) -> BTreeMap<Fact, BTreeSet<String>> {
        let mut facts: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for (id, body) in self.taken() {
            for alert in body["data"]["alerts"].as_array().into_iter().flatten() {
                facts.entry(fact(alert)).or_default().insert(id.clone());
            }
        }
        facts
    }

    /// Texts of the alerts about the watcher itself.
    pub fn incidents(&self) -> Vec<Value> {
        let bodies = self.taken().into_iter().map(|(_, body)| body);
        bodies
            .filter(|body| body["type"] == "source")
            .flat_map(|body| body["data"]["alerts"].as_array().cloned())
            .flatten()
            .collect()
    }
}

/// What an alert says: whose it is, and the one figure that tells it from every other.
pub fn fact(alert: &Value) -> Fact {
    let rule = alert["rule"].as_str().unwrap_or_default();
    let token = alert["token"]["id"].as_str().unwrap_or("-");
    let figure = match rule {
        "Burned" => alert["record"]["amount"].to_string(),
        "Moved" => alert["change"]["to"].as_str().unwrap_or_default().get(..10).unwrap_or_default().to_owned(),
        _ => alert["status"].as_str().unwrap_or_default().to_owned(),
    };
    format!("{rule} {token} {figure}")
}

async fn take(State(books): State<Books>, headers: HeaderMap, body: String) -> StatusCode {
    let id = headers.get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    let mood = {
        let mut account = books.0.lock().unwrap();
        let mood = account.mood.unwrap_or(Mood::Takes);
        if matches!(mood, Mood::Takes | Mood::TakesInSilence) {
            account.taken.push((id.clone(), serde_json::from_str(&body).expect("JSON")));
        }
        account.in_silence += usize::from(mood == Mood::TakesInSilence);
        account.refused += usize::from(matches!(mood, Mood::Refuses(_)));
        mood
    };
    match mood {
        Mood::Takes => StatusCode::NO_CONTENT,
        Mood::Refuses(status) => StatusCode::from_u16(status).expect("a status"),
        Mood::TakesInSilence | Mood::Hangs => std::future::pending().await,
        Mood::Slow => {
            tokio::time::sleep(Duration::from_millis(700)).await;
            // Who asked may have gone meanwhile; then this future is dropped, and nothing is taken.
            books.0.lock().unwrap().taken.push((id, serde_json::from_str(&body).expect("JSON")));
            StatusCode::NO_CONTENT
        }
    }
}

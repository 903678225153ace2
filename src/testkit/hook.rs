//! A webhook receiver.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    routing::post,
};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A webhook receiver that records messages and responds with configured statuses. A rejection repeats the URL in its body, as many
/// servers do.
#[derive(Clone, Debug, Default)]
pub struct Hook(Arc<Mutex<HookState>>);

#[derive(Debug, Default)]
struct HookState {
    bodies: Vec<(String, Value)>,
    /// The status for all requests. `None` for 204.
    always: Option<u16>,
    /// Whether a request had a signature.
    signed: bool,
    /// The `webhook-id` of each request, accepted or not.
    tried: Vec<String>,
}

impl Hook {
    pub async fn start(ending: CancellationToken) -> (Self, SocketAddr) {
        async fn take(State(hook): State<Hook>, uri: Uri, headers: HeaderMap, body: String) -> (StatusCode, String) {
            let mut state = hook.0.lock().unwrap();
            state.signed |= headers.contains_key("webhook-signature");
            let id = headers.get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
            state.tried.push(id.clone());
            let status = state.always.unwrap_or(204);
            if status < 300 {
                state.bodies.push((id, serde_json::from_str(&body).expect("JSON")));
            }
            let response = if status < 300 { String::new() } else { format!("nothing at {uri}") };
            (StatusCode::from_u16(status).unwrap(), response)
        }
        let hook = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let router = Router::new().route("/hook", post(take)).route("/hook/{*rest}", post(take)).with_state(hook.clone());
        let serving = axum::serve(listener, router).with_graceful_shutdown(ending.cancelled_owned());
        tokio::spawn(async move { serving.await.expect("the receiver serves") });
        (hook, address)
    }

    /// Takes the accepted messages, in order.
    pub fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap().bodies).into_iter().map(|(_, body)| body).collect()
    }

    /// The accepted messages since the last `take`, with their `webhook-id`.
    pub fn accepted(&self) -> Vec<(String, Value)> {
        self.0.lock().unwrap().bodies.clone()
    }

    /// The `webhook-id` of each request, accepted or not.
    pub fn tried(&self) -> Vec<String> {
        self.0.lock().unwrap().tried.clone()
    }

    /// Returns whether any request had a signature.
    pub fn was_signed(&self) -> bool {
        self.0.lock().unwrap().signed
    }

    pub fn respond_always(&self, status: Option<u16>) {
        self.0.lock().unwrap().always = status;
    }
}

//! Fake receivers: webhooks of every format, one that rejects with a hostile response, and a mail server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri},
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::world::evil;
use cliffwatch::service as serve;

/// The received requests: path and body.
#[derive(Clone, Default)]
pub struct Received(Arc<Mutex<Vec<(String, String)>>>);

impl Received {
    pub fn all(&self) -> Vec<(String, String)> {
        self.0.lock().expect("a lock").clone()
    }

    /// Starts a server that accepts requests to any path except `/refuse`, which it rejects with a hostile response.
    pub async fn webhooks(ending: CancellationToken) -> (Self, SocketAddr) {
        async fn take(State(received): State<Received>, uri: Uri, body: String) -> (StatusCode, String) {
            received.0.lock().expect("a lock").push((uri.path().to_owned(), body));
            match uri.path() {
                "/refuse" => (StatusCode::BAD_REQUEST, format!("{}\0", evil("=no"))),
                "/pushover" => (StatusCode::OK, "{\"status\":1}".to_owned()),
                _ => (StatusCode::OK, "{\"ok\":true,\"status\":\"success\",\"result\":\"success\"}".to_owned()),
            }
        }
        let received = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let router = Router::new().fallback(take).with_state(received.clone());
        tokio::spawn(serve::serve(listener, router, ending.cancelled_owned()));
        (received, address)
    }

    /// Starts a mail server that accepts everything.
    pub async fn mails(ending: CancellationToken) -> (Self, SocketAddr) {
        let received = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let accepting = received.clone();
        tokio::spawn(async move {
            loop {
                let stream = tokio::select! {
                    Ok((stream, _)) = listener.accept() => stream,
                    () = ending.cancelled() => return,
                };
                let received = accepting.clone();
                tokio::spawn(async move { received.session(stream).await });
            }
        });
        (received, address)
    }

    async fn session(self, stream: tokio::net::TcpStream) {
        let (read, mut write) = stream.into_split();
        write.write_all(b"220 sink ESMTP\r\n").await.ok();
        let mut reader = BufReader::new(read);
        let (mut line, mut mail, mut is_data) = (Vec::new(), String::new(), false);
        while matches!(reader.read_until(b'\n', &mut line).await, Ok(1..)) {
            let text = String::from_utf8_lossy(&line).into_owned();
            line.clear();
            let response = match text.to_ascii_uppercase().split_whitespace().next().unwrap_or_default() {
                _ if is_data && text == ".\r\n" => {
                    is_data = false;
                    self.0.lock().expect("a lock").push(("mail".to_owned(), std::mem::take(&mut mail)));
                    "250 taken\r\n"
                }
                _ if is_data => {
                    mail.push_str(text.strip_prefix('.').unwrap_or(&text));
                    continue;
                }
                "EHLO" => "250-sink\r\n250 8BITMIME\r\n",
                "DATA" => {
                    is_data = true;
                    "354 go on\r\n"
                }
                "QUIT" => "221 bye\r\n",
                _ => "250 ok\r\n",
            };
            if write.write_all(response.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

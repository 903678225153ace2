//! The web server of a daemon that waits for its database: health, readiness, and the metrics that are known.

use std::io;

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::error::{WebError, format_errors};
use super::error_code::ErrorCode;
use super::{MAX_CONNECTIONS, STOP_DEADLINE, authorization::is_own_host, status::WAITING};
use daemon::app::WaitingHandle;
use model::BoxFuture;

/// The other metrics are left out: an absent value raises no false alert.
const METRICS: &str = "# HELP cliffwatch_active Whether this instance is the active one on its database.
# TYPE cliffwatch_active gauge
cliffwatch_active 0
# HELP cliffwatch_database_up Whether the last use of the database succeeded.
# TYPE cliffwatch_database_up gauge
cliffwatch_database_up 0
# HELP cliffwatch_ready Whether /-/ready responds with 200.
# TYPE cliffwatch_ready gauge
cliffwatch_ready 0
# HELP cliffwatch_standby Whether this instance waits to take over from another one.
# TYPE cliffwatch_standby gauge
cliffwatch_standby 0
# EOF
";

/// Serves requests until `stop`.
///
/// # Errors
///
/// Fails if the listener fails permanently.
pub fn serve(app: WaitingHandle, listener: TcpListener, stop: CancellationToken) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(service::serve_few(listener, router(app), MAX_CONNECTIONS, STOP_DEADLINE, stop.cancelled_owned()))
}

fn router(app: WaitingHandle) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .fallback(unavailable)
        .layer(middleware::from_fn_with_state(app.clone(), require_local_request))
        .route("/-/healthy", get(async || WAITING))
        .layer(middleware::from_fn(format_errors))
        .with_state(app)
}

async fn metrics(request: Request) -> impl IntoResponse {
    let accept = request.headers().get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    let (kind, page) = service::exposition::negotiated(accept, METRICS.to_owned());
    ([(header::CONTENT_TYPE, kind)], page)
}

/// Responds with the reason why the daemon is not ready, on `/-/ready` and on every page.
async fn unavailable(State(app): State<WaitingHandle>) -> WebError {
    let reason = app.readiness.not_ready().map_or_else(String::new, |reason| reason.to_string());
    WebError::new(ErrorCode::NotReady, format!("not ready: {reason}")).into_line()
}

/// Accepts a request if the server listens on loopback and the request names it. Rejects all others without details, because they would
/// need a login.
async fn require_local_request(State(app): State<WaitingHandle>, request: Request, next: middleware::Next) -> Response {
    let external = app.external_url.as_ref().and_then(Url::host_str);
    let is_local = app.address.ip().is_loopback() && is_own_host(request.headers(), request.uri().host(), external);
    if is_local {
        next.run(request).await
    } else {
        WebError::new(ErrorCode::NotReady, "not ready: waiting for the database").into_line().into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemon::readiness::Readiness;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    /// Sends a request to a server whose configured address is `address`.
    async fn response(address: &str, path: &str) -> (u16, String) {
        let readiness = Readiness::starting(model::Timestamp::default());
        readiness.set_store_failure("cannot open the database: connection refused".to_owned());
        let app = WaitingHandle { readiness, address: address.parse().expect("an address"), external_url: None };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let mut stream = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connected");
        let stop = CancellationToken::new();
        let served = tokio::spawn(serve(app, listener, stop.clone()));
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost:9797\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut response = String::new();
        stream.read_to_string(&mut response).await.expect("a response");
        stop.cancel();
        served.await.expect("ended").expect("served");
        let status = response.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        (status, response.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    #[tokio::test]
    async fn waiting_daemon_is_healthy_but_not_ready() {
        assert_eq!(response("127.0.0.1:9797", "/-/healthy").await, (200, WAITING.to_owned()));
        let (status, text) = response("127.0.0.1:9797", "/-/ready").await;
        assert!(status == 503 && text.contains("connection refused"), "{text}");
        let (status, text) = response("127.0.0.1:9797", "/metrics").await;
        assert!(status == 200 && text.contains("cliffwatch_database_up 0"), "{text}");
        for path in ["/-/ready", "/metrics"] {
            let (status, text) = response("192.0.2.7:9797", path).await;
            assert!(status == 503 && !text.contains("refused"), "without a login: {text}");
        }
        assert_eq!(response("192.0.2.7:9797", "/-/healthy").await.0, 200);
    }
}

//! The response to a request with a fault.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::NaiveDate;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::io::ReaderStream;
use tower::ServiceExt as _;
use tower_http::compression::CompressionLayer;

use super::body::{AfterBytes, PacedBody, Spaces};
use super::{Fault, Faults, page_of};

/// The size limit of a response that a fault alters, in bytes.
const MAX_ALTERED: usize = 256 << 20;

impl Faults {
    pub(super) async fn respond(&self, fault: Fault, mut request: Request, next: Next) -> Response {
        let page = page_of(&request);
        if let Fault::GzipBomb(bytes) = fault {
            request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
            return gzip_bomb(bytes, request).await;
        }
        if let Fault::Slow(delay) = fault {
            sleep(delay).await;
            return next.run(request).await;
        }
        if let Fault::Clipped { first, last } = fault {
            limit_days(&mut request, first, last);
            return next.run(request).await;
        }
        // Faults alter uncompressed text.
        request.headers_mut().remove(header::ACCEPT_ENCODING);
        match replacement(&fault) {
            Some(response) => response,
            None => self.alter(fault, page, next.run(request).await).await,
        }
    }

    async fn alter(&self, fault: Fault, page: u64, response: Response) -> Response {
        let (status, whole) = read_body(response).await;
        match fault {
            Fault::Drip { bytes, every } => {
                let body = PacedBody { left: whole.clone(), step: bytes.max(1), every, pause: None, after: AfterBytes::Nothing };
                return streamed(status, &whole, body);
            }
            Fault::Cut(bytes) => {
                let left = whole.slice(..bytes.min(whole.len()));
                let step = left.len().max(1);
                let body = PacedBody { left, step, every: Duration::ZERO, pause: None, after: AfterBytes::Break };
                return streamed(status, &whole, body);
            }
            Fault::Hang => {
                let body = PacedBody { left: Bytes::new(), step: 1, every: Duration::ZERO, pause: None, after: AfterBytes::Hang };
                return streamed(status, &whole, body);
            }
            Fault::Replaced { from, to } => {
                let mut response = plain("application/json", String::from_utf8_lossy(&whole).replace(&from, &to));
                *response.status_mut() = status;
                return response;
            }
            _ => {}
        }
        let Ok(mut envelope) = serde_json::from_slice::<Value>(&whole) else {
            return error_response(StatusCode::INTERNAL_SERVER_ERROR, "the response that a fault should alter is not JSON");
        };
        match fault {
            Fault::Emptied => {
                remove_records(envelope.get_mut("data"));
                if let Some(metadata) = envelope.get_mut("metadata").and_then(Value::as_object_mut) {
                    for name in ["total", "totalPages"] {
                        if let Some(number) = metadata.get_mut(name) {
                            *number = Value::from(0);
                        }
                    }
                }
            }
            Fault::PageMissing(_) => remove_records(envelope.get_mut("data")),
            Fault::TotalMoves => {
                let moved = if page > 1 { self.next_total() } else { 0 };
                if let Some(total) = envelope.pointer_mut("/metadata/total") {
                    *total = Value::from(total.as_i64().unwrap_or(0) + moved);
                }
            }
            Fault::Bare => envelope = envelope.get_mut("data").map(Value::take).unwrap_or_default(),
            Fault::Reversed => {
                if let Some(items) = envelope.get_mut("data").and_then(Value::as_array_mut) {
                    items.reverse();
                }
            }
            Fault::Doubled => {
                if let Some(items) = envelope.get_mut("data").and_then(Value::as_array_mut) {
                    *items = items.iter().flat_map(|item| [item.clone(), item.clone()]).collect();
                }
            }
            _ => {}
        }
        (status, [(header::CONTENT_TYPE, "application/json")], envelope.to_string()).into_response()
    }
}

/// Returns the response of a fault that replaces the real response. `None` for faults that alter it.
fn replacement(fault: &Fault) -> Option<Response> {
    let response = match fault {
        Fault::Status { code, retry_after } => {
            let status = StatusCode::from_u16(*code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = error_response(status, "injected fault");
            if let Some(wait) = retry_after.as_ref().and_then(|wait| HeaderValue::from_str(wait).ok()) {
                response.headers_mut().insert(header::RETRY_AFTER, wait);
            }
            response
        }
        Fault::Garbage => plain("application/json", &b"\x00\xff{\"metadata\":{\"queryDate\": 20"[..]),
        Fault::Html => plain(
            "text/html",
            &b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body><h1>502</h1></body></html>"[..],
        ),
        Fault::EmptyBody => plain("application/json", Bytes::new()),
        Fault::Body(body) => plain("application/json", body.clone()),
        Fault::StatusFalse => {
            plain("application/json", &br#"{"metadata":{},"status":false,"errorMessage":"something went wrong","data":[]}"#[..])
        }
        Fault::NotModified => StatusCode::NOT_MODIFIED.into_response(),
        Fault::Redirect(to) => (StatusCode::FOUND, [(header::LOCATION, to)]).into_response(),
        Fault::PageFails(_) => error_response(StatusCode::INTERNAL_SERVER_ERROR, "injected fault"),
        _ => return None,
    };
    Some(response)
}

/// Responds with the error body of the service.
fn error_response(status: StatusCode, message: &str) -> Response {
    let body = json!({"metadata": {}, "status": false, "statusCode": status.as_u16(), "errorMessage": message});
    let mut response = plain("application/json", body.to_string());
    *response.status_mut() = status;
    response
}

async fn gzip_bomb(bytes: u64, request: Request) -> Response {
    let send = move || async move { plain("application/json", Body::from_stream(ReaderStream::new(Spaces(bytes)))) };
    let router = Router::new().fallback(send).layer(CompressionLayer::new());
    router.oneshot(request).await.unwrap_or_else(|error| match error {})
}

fn plain(content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Removes all records from `data`.
fn remove_records(data: Option<&mut Value>) {
    match data {
        Some(Value::Array(items)) => items.clear(),
        Some(Value::Object(fields)) => {
            for field in fields.values_mut() {
                if let Value::Array(items) = field {
                    items.clear();
                }
            }
        }
        _ => {}
    }
}

async fn read_body(response: Response) -> (StatusCode, Bytes) {
    let status = response.status();
    (status, to_bytes(response.into_body(), MAX_ALTERED).await.unwrap_or_default())
}

/// Sends `paced` with the content length of the whole response.
fn streamed(status: StatusCode, whole: &Bytes, paced: PacedBody) -> Response {
    let mut response = plain("application/json", Body::from_stream(ReaderStream::new(paced)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len()));
    response
}

/// Limits the requested days of a request.
fn limit_days(request: &mut Request, first: NaiveDate, last: NaiveDate) {
    let narrowed = request.uri().query().unwrap_or_default().split('&').map(|pair| match pair.split_once('=') {
        Some(("start", day)) => format!("start={}", day.parse::<NaiveDate>().map_or(first, |day| day.max(first))),
        Some(("end", day)) => format!("end={}", day.parse::<NaiveDate>().map_or(last, |day| day.min(last))),
        _ => pair.to_owned(),
    });
    let query = narrowed.collect::<Vec<_>>().join("&");
    if let Ok(uri) = format!("{}?{query}", request.uri().path()).parse() {
        *request.uri_mut() = uri;
    }
}

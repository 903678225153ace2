//! What goes out where a fault meets a request: nothing right, or the right answer altered.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::NaiveDate;
use serde_json::Value;
use tokio::time::sleep;
use tokio_util::io::ReaderStream;

use super::body::{AfterBytes, PacedBody};
use super::{Fault, Faults, GzipBomb, page_of};
use crate::refusal::Refusal;

/// Largest answer that a fault can alter, bytes.
const MAX_ALTERED: usize = 256 << 20;

impl Faults {
    pub(super) async fn answer(&self, fault: Fault, mut request: Request, next: Next) -> Response {
        let page = page_of(&request);
        if let Fault::GzipBomb(bytes) = fault {
            request.extensions_mut().insert(GzipBomb(bytes));
            request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
            return next.run(request).await;
        }
        if let Fault::Slow(delay) = fault {
            sleep(delay).await;
            return next.run(request).await;
        }
        if let Fault::Clipped { first, last } = fault {
            clip(&mut request, first, last);
            return next.run(request).await;
        }
        // Altered answers are altered as text.
        request.headers_mut().remove(header::ACCEPT_ENCODING);
        match instead(&fault) {
            Some(response) => response,
            None => self.alter(fault, page, next.run(request).await).await,
        }
    }

    /// The right answer, altered or sent in an odd way.
    async fn alter(&self, fault: Fault, page: u64, response: Response) -> Response {
        let (status, whole) = taken(response).await;
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
            return Refusal::internal("the answer to be altered is not JSON").into_response();
        };
        match fault {
            Fault::Emptied => {
                emptied(envelope.get_mut("data"));
                if let Some(metadata) = envelope.get_mut("metadata").and_then(Value::as_object_mut) {
                    for name in ["total", "totalPages"] {
                        if let Some(number) = metadata.get_mut(name) {
                            *number = Value::from(0);
                        }
                    }
                }
            }
            Fault::PageMissing(_) => emptied(envelope.get_mut("data")),
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

/// An answer that has nothing of the right one; none for faults that alter the right one.
fn instead(fault: &Fault) -> Option<Response> {
    let response = match fault {
        Fault::Status { code, retry_after } => {
            let status = StatusCode::from_u16(*code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let refusal = Refusal { status, message: "a fault that a test asked for".into(), retry_after: None, usage: None };
            let mut response = refusal.into_response();
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
        Fault::PageFails(_) => Refusal::internal("a fault that a test asked for").into_response(),
        _ => return None,
    };
    Some(response)
}

fn plain(content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Takes everything out of `data` that is a record.
fn emptied(data: Option<&mut Value>) {
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

async fn taken(response: Response) -> (StatusCode, Bytes) {
    let status = response.status();
    (status, to_bytes(response.into_body(), MAX_ALTERED).await.unwrap_or_default())
}

/// Promises the length of the whole answer, whatever then comes.
fn streamed(status: StatusCode, whole: &Bytes, paced: PacedBody) -> Response {
    let mut response = plain("application/json", Body::from_stream(ReaderStream::new(paced)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len()));
    response
}

/// Narrows the days that a request asks for.
fn clip(request: &mut Request, first: NaiveDate, last: NaiveDate) {
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

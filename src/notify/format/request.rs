//! One HTTP request of a delivery, and how a delivery is taken apart where a service takes one alert at a time.

use serde::Serialize;

use crate::card::{Brief, Card};
use crate::credentials::MissingKey;
use crate::message;
use model::{AlertStatus, Notification, config::SecretText};

/// Most alerts of one delivery that get a request of their own, where a service takes one alert at a time.
const MAX_REQUESTS: usize = message::MAX_ALERTS;

#[derive(Clone)]
pub struct WebhookRequest {
    /// What it is about, unique among the requests of a delivery: what was taken is not sent again with the rest.
    pub key: String,
    /// Path segments behind the receiver's address.
    pub path: Vec<String>,
    /// Added to the address's query.
    pub query: Option<(&'static str, &'static str)>,
    /// Value of the header `Authorization`; without one, the receiver's bearer token goes there.
    pub authorization: Option<SecretText>,
    pub content_type: String,
    /// The exact bytes.
    pub body: Vec<u8>,
    /// The template that should have made the body failed, and how.
    pub template_error: Option<String>,
}

impl WebhookRequest {
    /// The one request of a delivery, with a JSON body.
    pub(super) fn json(body: &impl Serialize) -> Result<Self, RequestError> {
        Ok(Self::bytes("application/json".into(), serde_json::to_vec(body)?))
    }

    pub(super) fn bytes(content_type: String, body: Vec<u8>) -> Self {
        Self { key: String::new(), path: Vec::new(), query: None, authorization: None, content_type, body, template_error: None }
    }
}

/// Why a delivery makes no request.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("the delivery holds no notice")]
    Nothing,
    /// A key that the config no longer gives.
    #[error(transparent)]
    Missing(#[from] MissingKey),
    #[error("cannot write the message as JSON")]
    Json(#[from] serde_json::Error),
}

impl RequestError {
    /// Whether another attempt may do better: a secret's file may come back.
    pub fn is_transient(&self) -> bool {
        matches!(self, RequestError::Missing(_))
    }
}

/// What one request tells, where a service takes one alert at a time.
pub(super) enum RequestSubject<'a> {
    Alert(&'a Notification, Box<Card>),
    /// What the delivery only counts, in a line, under the delivery's own id.
    Rest(String, &'a str),
}

impl RequestSubject<'_> {
    /// The key under which the service knows it: the same from the first message to the end.
    pub(super) fn key(&self) -> String {
        match self {
            Self::Alert(notice, _) => notice.alert.as_str().to_owned(),
            Self::Rest(_, id) => (*id).to_owned(),
        }
    }

    pub(super) fn is_resolved(&self) -> bool {
        matches!(self, Self::Alert(notice, _) if notice.body.status == AlertStatus::Resolved)
    }
}

/// The alerts of a delivery, each once: of one that began and ended within it, the end. What is left out is counted in one more.
pub(super) fn one_by_one<'a>(brief: &Brief<'a>) -> Vec<RequestSubject<'a>> {
    let notifications = brief.notifications();
    let latest = |at: usize, notice: &Notification| !notifications.iter().skip(at + 1).any(|later| later.alert == notice.alert);
    let mut all: Vec<RequestSubject<'a>> = Vec::new();
    for (at, (notice, card)) in notifications.iter().zip(brief.cards(usize::MAX)).enumerate() {
        if latest(at, notice) && all.len() < MAX_REQUESTS {
            all.push(RequestSubject::Alert(notice, Box::new(card)));
        }
    }
    let rest = brief.count().saturating_sub(notifications.len().min(MAX_REQUESTS));
    if rest > 0 {
        let line = brief.rest(brief.count() - rest);
        all.push(RequestSubject::Rest(line, &brief.delivery.webhook_id));
    }
    all
}

#[cfg(test)]
mod tests;

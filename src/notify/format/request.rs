//! An HTTP request of a delivery.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde::Serialize;

use crate::credentials::MissingKey;
use model::config::SecretText;

#[derive(Clone)]
pub struct WebhookRequest {
    /// A key that is unique among the requests of a delivery. A retry skips accepted requests by this key.
    pub key: String,
    /// Whether the method is PUT instead of POST.
    pub is_put: bool,
    /// Path segments to append to the receiver's URL.
    pub path: Vec<String>,
    /// A parameter to add to the URL's query.
    pub query: Option<(&'static str, &'static str)>,
    /// The value of the header `Authorization`. `None` to send the receiver's bearer token.
    pub authorization: Option<SecretText>,
    pub content_type: String,
    pub body: Vec<u8>,
    /// The error of the operator's template, if the body is the built-in one instead.
    pub template_error: Option<String>,
}

impl WebhookRequest {
    /// Creates the only request of a delivery, with a JSON body.
    pub(super) fn json(body: &impl Serialize) -> Result<Self, RequestError> {
        Ok(Self::bytes("application/json".into(), serde_json::to_vec(body)?))
    }

    pub(super) fn bytes(content_type: String, body: Vec<u8>) -> Self {
        Self {
            key: String::new(),
            is_put: false,
            path: Vec::new(),
            query: None,
            authorization: None,
            content_type,
            body,
            template_error: None,
        }
    }

    /// Creates the only request of a delivery, with a form as body.
    pub(super) fn form(fields: &[(&str, &str)]) -> Self {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        Self::bytes("application/x-www-form-urlencoded".into(), body.into_bytes())
    }

    /// Returns the `Authorization` header for a name and a password.
    pub(super) fn basic(name: &str, password: &str) -> SecretText {
        format!("Basic {}", BASE64.encode(format!("{name}:{password}"))).into()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("the delivery has no notifications")]
    Nothing,
    #[error(transparent)]
    Missing(#[from] MissingKey),
    #[error("cannot write the message as JSON")]
    Json(#[from] serde_json::Error),
}

impl RequestError {
    /// Returns whether another attempt can succeed, for example after the file of a secret was restored.
    pub fn is_transient(&self) -> bool {
        matches!(self, RequestError::Missing(_))
    }
}

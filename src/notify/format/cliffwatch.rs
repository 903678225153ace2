//! Our own body, as receivers of one's own take it: see [`message`].

use super::{FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::{card::Brief, message};
use model::config;

/// It has no settings of its own.
#[derive(Debug)]
pub struct Cliffwatch;

impl FormatSettings for Cliffwatch {
    fn read(_: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        Ok(Self)
    }

    fn requests(&self, brief: &Brief<'_>, _: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        let body = message::webhook_body(brief.delivery, brief.external_url)?.ok_or(RequestError::Nothing)?;
        Ok(vec![WebhookRequest::bytes("application/json".into(), body)])
    }
}

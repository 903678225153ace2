//! The webhook body of Cliffwatch, see [`message`].

use super::{FormatInput, FormatKey, FormatSpec, RequestError, WebhookFormat, WebhookRequest, WrittenRequests};
use crate::{card::Brief, message};

pub(super) const SPEC: FormatSpec = FormatSpec {
    keys: &[FormatKey::SIGNING, FormatKey::BEARER],
    ..FormatSpec::new("cliffwatch", |_| Ok(WebhookFormat::new(requests)))
};

fn requests(brief: &Brief<'_>, _: &FormatInput<'_>) -> WrittenRequests {
    let body = message::webhook_body(brief.delivery, brief.external_url)?.ok_or(RequestError::Nothing)?;
    Ok(vec![WebhookRequest::bytes("application/json".into(), body)])
}

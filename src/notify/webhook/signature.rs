//! Signatures of Standard Webhooks 1.0.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use ring::hmac;

const MAX_SECRETS: usize = 8;

/// Parses signing keys, one per line: `whsec_` and base64, or plain text.
pub(super) fn signing_keys(text: &str) -> Result<Vec<hmac::Key>, String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return Err("the signing secret is empty: remove `secret` to send messages without a signature".into());
    }
    if lines.len() > MAX_SECRETS {
        return Err(format!("{} signing secrets exceed the limit of {MAX_SECRETS}", lines.len()));
    }
    let key = |line: &&str| match line.strip_prefix("whsec_") {
        None => Ok(hmac::Key::new(hmac::HMAC_SHA256, line.as_bytes())),
        Some(encoded) => BASE64
            .decode(encoded)
            .ok()
            .filter(|bytes| !bytes.is_empty())
            .map(|bytes| hmac::Key::new(hmac::HMAC_SHA256, &bytes))
            .ok_or_else(|| "the signing secret is not valid base64 after `whsec_`".to_owned()),
    };
    lines.iter().map(key).collect()
}

/// Returns the header `webhook-signature` with one signature per key, or `None` without keys.
pub(super) fn signatures(keys: &[hmac::Key], id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
    let signature = |key: &hmac::Key| {
        let mut context = hmac::Context::with_key(key);
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        format!("v1,{}", BASE64.encode(context.sign()))
    };
    let all: Vec<String> = keys.iter().map(signature).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

#[cfg(test)]
mod tests;

//! The signature of Standard Webhooks 1.0. The bytes that are signed are the bytes that are sent.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use ring::hmac;

/// Most signing secrets at once.
const MAX_SECRETS: usize = 8;

/// The keys of a secret: one a line, `whsec_` and base64, or plain text.
pub(super) fn signing_keys(text: &str) -> Result<Vec<hmac::Key>, String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return Err("the signing secret is empty: leave `secret` out if messages are not to be signed".into());
    }
    if lines.len() > MAX_SECRETS {
        return Err(format!("{} signing secrets are too many: at most {MAX_SECRETS}, one a line", lines.len()));
    }
    let key = |line: &&str| match line.strip_prefix("whsec_") {
        None => Ok(hmac::Key::new(hmac::HMAC_SHA256, line.as_bytes())),
        Some(encoded) => BASE64
            .decode(encoded)
            .ok()
            .filter(|bytes| !bytes.is_empty())
            .map(|bytes| hmac::Key::new(hmac::HMAC_SHA256, &bytes))
            .ok_or_else(|| "what follows `whsec_` in the signing secret is no base64".to_owned()),
    };
    lines.iter().map(key).collect()
}

/// The header `webhook-signature`: one signature for each key. None without a key.
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

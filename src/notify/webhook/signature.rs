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
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_the_published_vector() {
        let keys = signing_keys("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
        let signature = signatures(&keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn each_secret_signs_and_no_secret_signs_nothing() {
        let keys = signing_keys("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n\n  plain text \n").expect("secrets");
        let both = signatures(&keys, "msg_1", 1, b"{}").expect("signatures");
        let parts: Vec<&str> = both.split(' ').collect();
        assert_eq!(parts.len(), 2);
        assert!(parts.iter().all(|part| part.starts_with("v1,")));
        assert_eq!(Some(parts[1].to_owned()), signatures(&signing_keys("plain text").expect("a secret"), "msg_1", 1, b"{}"));
        assert_eq!(signatures(&[], "msg_1", 1, b"{}"), None);
        assert!(signing_keys("whsec_not base64!").is_err());
        assert!(signing_keys("whsec_").is_err());
        assert!(signing_keys(" \n ").is_err());
    }
}

//! Shortens text from outside for messages and logs, sanitizes it, and redacts the key.

use model::{config::SecretText, text::is_hostile};

/// The length limit of an error message, in characters.
const MAX_MESSAGE: usize = 500;

/// The length limit of a quoted excerpt, in characters.
const MAX_EXCERPT: usize = 80;

/// The minimum length of a key to redact. Redacting shorter texts would make messages unreadable.
const MIN_KEY: usize = 4;

const MAX_CAUSES: usize = 4;

/// Returns the first [`MAX_EXCERPT`] characters of `text` on one line, with hostile characters escaped.
pub(super) fn excerpt(text: &str) -> String {
    clip(&printable(text), MAX_EXCERPT)
}

/// Returns the beginning of `text` on one line, longer than any message, with hostile characters escaped and whitespace joined.
pub(super) fn printable(text: &str) -> String {
    // Everything beyond this length would be cut anyway.
    let head: String = text.chars().take(4 * MAX_MESSAGE).collect();
    let words = head.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut escaped = String::with_capacity(words.len());
    for c in words.chars() {
        if is_hostile(c) {
            escaped.extend(c.escape_unicode());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Cuts `text` to the length limit of an error message.
pub(super) fn message(text: &str) -> String {
    clip(text, MAX_MESSAGE)
}

/// Returns at most `most` characters of `text`, with an ellipsis at the end if it was cut.
pub(super) fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Redacts the key, and the beginning of the key at the end of a cut excerpt.
pub(super) fn without_key(text: &str, key: Option<&SecretText>) -> String {
    let Some(key) = key.map(|key| key.expose().trim()).filter(|key| key.len() >= MIN_KEY) else {
        return text.to_owned();
    };
    let mut text = text.replace(key, "•••");
    for (end, _) in key.char_indices().rev().take_while(|(end, _)| *end >= MIN_KEY) {
        if let Some(begun) = key.get(..end) {
            text = text.replace(&format!("{begun}…"), "•••…");
        }
    }
    text
}

/// Returns the innermost causes of a failed request, without the URL.
pub(super) fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut texts: Vec<String> = Vec::new();
    let mut next: Option<&dyn std::error::Error> = Some(&error);
    while let Some(cause) = next {
        let text = printable(&cause.to_string());
        // Many error types include the text of their cause.
        if let Some(outer) = texts.last_mut()
            && let Some(head) = outer.strip_suffix(&text)
        {
            *outer = head.trim_end_matches([':', ' ']).to_owned();
        }
        texts.push(text);
        next = cause.source();
    }
    // This layer adds no information.
    texts.retain(|text| !text.is_empty() && !text.starts_with("client error ("));
    let from = texts.len().saturating_sub(MAX_CAUSES);
    let inner = texts.get(from..).unwrap_or_default();
    // The outermost text only says that a request failed.
    let inner = if inner.len() > 1 { inner.get(1..).unwrap_or_default() } else { inner };
    inner.join(": ")
}

#[cfg(test)]
mod tests;

//! Text from outside, made fit for messages and logs: in one line, without hostile characters, without the key, and short.

use model::{config::SecretText, text::is_hostile};

/// Longest message of a failure, characters.
const MAX_MESSAGE: usize = 500;

/// Longest piece of an answer that is shown, characters.
const MAX_EXCERPT: usize = 80;

/// Keys shorter than this are not looked for: they are no secrets, and every message would be full of holes.
const MIN_KEY: usize = 4;

/// How many causes of an error are told.
const MAX_CAUSES: usize = 4;

/// The first characters of `text` on one line: runs of white space become one space, what steers a terminal or hides is escaped.
pub(super) fn excerpt(text: &str) -> String {
    clip(&printable(text), MAX_EXCERPT)
}

/// `text` on one line, with everything escaped that is not plainly visible.
pub(super) fn printable(text: &str) -> String {
    // Four times the longest message: whatever lies behind is cut off anyway.
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

/// `text` cut to the length of a failure's message.
pub(super) fn message(text: &str) -> String {
    clip(text, MAX_MESSAGE)
}

/// At most `most` characters of `text`, the last one an ellipsis where something was cut.
pub(super) fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// `text` without the key, wherever a server echoed it: whole, or begun where an excerpt was cut.
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

/// What lies at the bottom of a failed request: the innermost causes, without the address and its query.
pub(super) fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut texts: Vec<String> = Vec::new();
    let mut next: Option<&dyn std::error::Error> = Some(&error);
    while let Some(cause) = next {
        let text = printable(&cause.to_string());
        // Many layers print their own cause too: the inner text alone says as much.
        if let Some(outer) = texts.last_mut()
            && let Some(head) = outer.strip_suffix(&text)
        {
            *outer = head.trim_end_matches([':', ' ']).to_owned();
        }
        texts.push(text);
        next = cause.source();
    }
    // Some layers say nothing but that they failed.
    texts.retain(|text| !text.is_empty() && !text.starts_with("client error ("));
    let from = texts.len().saturating_sub(MAX_CAUSES);
    let inner = texts.get(from..).unwrap_or_default();
    // The outermost text only says that a request failed, which whoever reads this knows.
    let inner = if inner.len() > 1 { inner.get(1..).unwrap_or_default() } else { inner };
    inner.join(": ")
}

#[cfg(test)]
mod tests;

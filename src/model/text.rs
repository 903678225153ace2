//! Sanitizes text from outside. Has **the only** table of hostile characters.
//!
//! Hostile characters are the same everywhere: control characters, and characters that reorder, join, or hide text. Other escaping
//! depends on the place that shows a text, and is done there.

use std::{borrow::Cow, error::Error, fmt::Write as _};

use ring::digest;

/// Invisible characters that change how their neighbors look: soft hyphens, bidirectional marks, zero widths, fillers, variation
/// selectors, private use, specials, tags, line and paragraph separators. Sorted.
const HIDDEN: [(char, char); 16] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{e000}', '\u{f8ff}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffc}'), // U+FFFD, the replacement character, is visible
    ('\u{fffe}', '\u{ffff}'),
    ('\u{e0000}', '\u{10ffff}'),
];

/// Returns whether a character is invisible but changes how its neighbors look.
pub fn is_hidden(c: char) -> bool {
    let row = HIDDEN.partition_point(|(_, last)| *last < c);
    HIDDEN.get(row).is_some_and(|(first, _)| *first <= c)
}

/// Returns whether a character could control a terminal, start a new line, hide text, or change its direction.
pub fn is_hostile(c: char) -> bool {
    c.is_control() || is_hidden(c)
}

/// Returns one line that is safe for a terminal: line breaks and tabs become spaces, other hostile characters their code.
pub fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => safe.push(' '),
            c if is_hostile(c) => {
                let _ = write!(safe, "{}", c.escape_unicode());
            }
            c => safe.push(c),
        }
    }
    safe
}

/// Returns lines that are safe for a terminal: line breaks and tabs stay, other hostile characters become their code. The last
/// check of text whose parts were already sanitized.
pub fn harmless_lines(text: &str) -> Cow<'_, str> {
    replace_hostile(text, |safe, c| {
        let _ = write!(safe, "{}", c.escape_unicode());
    })
}

/// Returns lines that are safe for pages: line breaks and tabs stay, other control characters become spaces, hidden characters are
/// removed.
pub fn plain_lines(text: &str) -> Cow<'_, str> {
    replace_hostile(text, |safe, c| {
        if !is_hidden(c) {
            safe.push(' ');
        }
    })
}

/// Returns equivalent JSON with each hostile character as `\uXXXX`. Line breaks stay, because serializers write them only between
/// values.
pub fn harmless_json(text: &str) -> Cow<'_, str> {
    replace_hostile(text, |safe, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(safe, "\\u{unit:04x}");
        }
    })
}

/// Replaces each hostile character except line breaks and tabs. `instead` appends the replacement.
fn replace_hostile(text: &str, instead: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let makes_lines = |c: char, next: Option<char>| matches!(c, '\n' | '\t') || (c == '\r' && next == Some('\n'));
    let mut chars = text.char_indices().peekable();
    let mut safe = String::new();
    let mut copied = 0;
    while let Some((at, c)) = chars.next() {
        if !is_hostile(c) || makes_lines(c, chars.peek().map(|(_, next)| *next)) {
            continue;
        }
        safe.push_str(text.get(copied..at).unwrap_or_default());
        instead(&mut safe, c);
        copied = at + c.len_utf8();
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    safe.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(safe)
}

/// Returns the first characters on one line, with each hostile one replaced, so that the length is unchanged.
pub fn replaced(text: &str, replacement: char, max_chars: usize) -> String {
    text.chars().map(|c| if is_hostile(c) { replacement } else { c }).take(max_chars).collect()
}

/// Returns one line for people: control characters become spaces, hidden characters are removed.
pub fn plain_chars(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| !is_hidden(*c)).map(|c| if c.is_control() { ' ' } else { c })
}

/// Returns the text of a file.
///
/// # Errors
/// If it is not UTF-8, with line and byte of the problem, both counted from 1.
pub fn utf8(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let (valid, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to().min(error.as_bytes().len()));
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = valid.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        let byte = rest.first().copied().unwrap_or_default();
        format!("not UTF-8 text: line {line}, byte {column} of it is 0x{byte:02x}")
    })
}

/// Returns the messages of an error and its causes, outermost first. Skips a cause that an outer message already contains.
pub fn error_causes(error: &dyn Error) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        if !texts.iter().any(|said| said.contains(&text)) {
            texts.push(text);
        }
        next = cause.source();
    }
    texts
}

/// Returns an error with its causes on one line.
pub fn error_chain(error: &dyn Error) -> String {
    error_causes(error).join(": ")
}

/// Returns the first bytes of SHA-256 over the parts, each prefixed with its length, in hex. The stem of derived ids.
pub fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a str>, bytes: usize) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    hex(context.finish().as_ref().get(..bytes).unwrap_or_default())
}

/// Returns bytes as lowercase hex digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests;

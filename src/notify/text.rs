//! Sanitizes text from outside: from the source, from templates of rules, and from responses of receivers.
//!
//! Removes control characters and characters that reorder or hide text. Each format escapes its own markup.

use model::text::{is_hidden, is_hostile};

/// The length limit of free text, in characters.
pub const MAX_PARAGRAPH_CHARS: usize = 4_000;

/// The maximum number of spaces before a line of free text.
pub const MAX_INDENT: usize = 8;

/// The length limit of a digest, in characters.
pub const MAX_DIGEST_CHARS: usize = 60_000;

/// Returns one line of at most `max_chars` characters, sanitized, with whitespace collapsed.
pub fn line(text: &str, max_chars: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max_chars * 4));
    // Stops at the limit, because text from outside can be megabytes long.
    let mut length = 0;
    let mut gap = false;
    for c in text.chars() {
        if is_hidden(c) {
            continue;
        }
        if c.is_whitespace() || c.is_control() {
            gap = true;
            continue;
        }
        let needed = 1 + usize::from(gap && length > 0);
        if length + needed > max_chars {
            while length >= max_chars.max(1) {
                out.pop();
                length -= 1;
            }
            out.push('…');
            return out;
        }
        if needed == 2 {
            out.push(' ');
        }
        out.push(c);
        length += needed;
        gap = false;
    }
    out
}

/// Like [`line`], but keeps line breaks and the indent of lines (up to [`MAX_INDENT`]).
pub fn paragraph(text: &str, max_chars: usize) -> String {
    let cut = text.char_indices().nth(max_chars).map(|_| {
        let kept: String = text.chars().take(max_chars.saturating_sub(1)).collect();
        format!("{kept}…")
    });
    let text = cut.as_deref().unwrap_or(text);
    let mut out = String::with_capacity(text.len());
    let mut blank = 0;
    for each in text.lines() {
        let indent = each.chars().take_while(|c| *c == ' ').take(MAX_INDENT).count();
        let line = line(each, max_chars);
        if line.is_empty() {
            blank += 1;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if blank > 0 { "\n\n" } else { "\n" });
            out.extend(std::iter::repeat_n(' ', indent));
        }
        out.push_str(&line);
        blank = 0;
    }
    out
}

/// Returns at most `max_bytes` of a response, sanitized, with line breaks and tabs.
pub fn response(text: &str, max_bytes: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max_bytes));
    for c in text.chars() {
        let shown = if c == '\n' || c == '\t' || !is_hostile(c) { Some(c) } else { None };
        if let Some(c) = shown {
            if out.len() + c.len_utf8() > max_bytes {
                break;
            }
            out.push(c);
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests;

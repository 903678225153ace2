//! Text from outside made harmless before it is shown: what the source, a rule's template or a receiver's answer says.
//!
//! What is dangerous is the same everywhere (control characters, marks that reorder or hide text); what else must be escaped depends
//! on where it goes, and is done there.

use model::text::{is_hidden, is_hostile};

/// Longest name or value shown, characters.
pub const MAX_LINE_CHARS: usize = 300;

/// Longest free text shown, characters.
pub const MAX_PARAGRAPH_CHARS: usize = 4_000;

/// Most blanks in front of a line of free text.
pub const MAX_INDENT: usize = 8;

/// Longest text of a digest, characters.
pub const MAX_DIGEST_CHARS: usize = 60_000;

/// One line: no control characters, no marks that reorder or hide text, blanks collapsed, at most `max_chars` characters.
pub fn line(text: &str, max_chars: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max_chars * 4));
    // Text from outside may be megabytes: stop reading once there is enough.
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

/// Several lines: line breaks stay, and so does how far a line is set in (up to [`MAX_INDENT`]); everything else as [`line`]; at most
/// `max_chars` characters.
pub fn paragraph(text: &str, max_chars: usize) -> String {
    let text: String = text.chars().take(max_chars).collect();
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

/// An answer of a receiver, for the record: line breaks and tabs stay, other control characters and hidden marks go, at most
/// `max_bytes` bytes.
pub fn answer(text: &str, max_bytes: usize) -> String {
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

//! Counts, lists, and names from outside.

use std::fmt::Display;

use crate::text::is_hostile;

/// Characters of a name from the source that a sentence shows; the rest is cut.
pub const MAX_NAME_CHARS: usize = 60;

/// Characters of a longer text from outside that one line shows; the rest is cut.
pub const MAX_LINE_CHARS: usize = 300;

/// Names that a sentence lists before it counts the others.
const MAX_NAMES: usize = 3;

/// A count with its noun: `1 unlock`, `3 unlocks`, `2 deliveries`.
pub fn count<N: Copy + Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    format!("{n} {}", self::noun(n, noun))
}

/// The noun of a count: `unlock` for one, `unlocks` for any other number.
pub fn noun<N: PartialEq + From<u8>>(n: N, noun: &str) -> String {
    if n == N::from(1) { noun.to_owned() } else { plural(noun) }
}

/// A count with its digits in groups of three: `12,345 tokens`.
pub fn grouped_count<N: Copy + Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    format!("{} {}", super::grouped(n), self::noun(n, noun))
}

/// The plural of a regular noun.
pub(super) fn plural(noun: &str) -> String {
    match noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
        Some(stem) => format!("{stem}ies"),
        None => format!("{noun}s"),
    }
}

/// A list: `a`, `a and b`, `a, b, and c`.
pub fn list<T: AsRef<str>>(items: &[T]) -> String {
    joined(items, "and")
}

/// A choice: `a`, `a or b`, `a, b, or c`.
pub fn choice<T: AsRef<str>>(items: &[T]) -> String {
    joined(items, "or")
}

fn joined<T: AsRef<str>>(items: &[T], word: &str) -> String {
    match items {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [first, last] => format!("{} {word} {}", first.as_ref(), last.as_ref()),
        [first @ .., last] => {
            let first = first.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
            format!("{first}, {word} {}", last.as_ref())
        }
    }
}

/// A list of at most `max` items that counts `others` and the items left out: `a, b, and 3 more`.
pub fn list_some<T: AsRef<str>>(items: &[T], max: usize, others: usize) -> String {
    let left_out = items.len().saturating_sub(max) + others;
    let mut shown: Vec<String> = items.iter().take(max).map(|item| item.as_ref().to_owned()).collect();
    if left_out > 0 {
        shown.push(format!("{left_out} more"));
    }
    list(&shown)
}

/// A list of names from the source: `Team, Investors, and 3 more`.
pub fn names<'a>(all: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<String> = all.into_iter().map(name).collect();
    // One name is not shorter as a count.
    let max = if all.len() == MAX_NAMES + 1 { all.len() } else { MAX_NAMES };
    list_some(&all, max, 0)
}

/// A name from the source, fit for one line: control and formatting characters become spaces, and it is cut at [`MAX_NAME_CHARS`].
/// `(unnamed)` if nothing visible is left.
pub fn name(text: &str) -> String {
    let line = cut_line(text, MAX_NAME_CHARS);
    if line.trim().is_empty() { "(unnamed)".to_owned() } else { line }
}

/// A text that may hold names from the source, fit for one line as [`name`] makes it, cut at [`MAX_LINE_CHARS`].
pub fn one_line(text: &str) -> String {
    cut_line(text, MAX_LINE_CHARS)
}

fn cut_line(text: &str, max_chars: usize) -> String {
    let mut line = String::with_capacity(text.len().min(max_chars * 4));
    for (length, c) in text.trim().chars().enumerate() {
        if length == max_chars {
            line.push('…');
            break;
        }
        line.push(if is_hostile(c) { ' ' } else { c });
    }
    line
}

/// A text with a full stop at its end.
pub fn sentence(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', '!', '?', '…']) { text.to_owned() } else { format!("{text}.") }
}

/// An identifier as text: `series shifted` for `series_shifted`.
pub fn words(identifier: &str) -> String {
    identifier.replace('_', " ")
}

/// A text with a capital first letter.
pub fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A constant of the source as words: `treasury buyback` for `TREASURY_BUYBACK`. Any other text is returned unchanged.
pub fn constant(text: &str) -> String {
    let is_constant = text.len() > 3 && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if is_constant { words(&text.to_ascii_lowercase()) } else { text.to_owned() }
}

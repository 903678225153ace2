//! Finds the filters and names in the tags of a template without parsing it.

use std::ops::Range;

use super::bounds::tags_of;

/// Returns the ranges of filter names: words after `|` inside tags, outside quotes.
pub(super) fn filters_in(source: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for tag in tags_of(source) {
        let mut quote = None;
        let mut is_escaped = false;
        let mut after_pipe = false;
        let mut word: Option<usize> = None;
        for (offset, c) in source.get(tag.clone()).unwrap_or_default().char_indices().chain([(tag.len(), ' ')]) {
            let at = tag.start + offset;
            if let Some(open) = quote {
                match c {
                    _ if is_escaped => is_escaped = false,
                    '\\' => is_escaped = true,
                    _ if c == open => quote = None,
                    _ => {}
                }
                continue;
            }
            if let Some(begin) = word {
                if c.is_alphanumeric() || c == '_' {
                    continue;
                }
                found.push(begin..at);
                word = None;
            }
            match c {
                '"' | '\'' => quote = Some(c),
                '|' => after_pipe = true,
                _ if c.is_whitespace() => {}
                _ => {
                    if after_pipe && (c.is_alphabetic() || c == '_') {
                        word = Some(at);
                    }
                    after_pipe = false;
                }
            }
        }
    }
    found
}

/// Returns the range of a dotted name inside a tag.
pub(super) fn find_word(source: &str, path: &str) -> Option<Range<usize>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let inside = |at: usize| {
        let before = source.get(..at).unwrap_or_default();
        before.rfind("{{").max(before.rfind("{%")) > before.rfind("}}").max(before.rfind("%}"))
    };
    source.match_indices(path).map(|(at, word)| at..at + word.len()).find(|range| {
        let before = source.get(..range.start).and_then(|text| text.chars().next_back());
        let after = source.get(range.end..).and_then(|text| text.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(|c| is_part(c) && c != '.') && inside(range.start)
    })
}

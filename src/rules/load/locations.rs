//! Maps a range of a string's value back to its range in the file, with or without escapes, so that carets point at the right
//! text.

use std::ops::Range;

/// The positions in the file of the bytes of a string's value.
#[derive(Clone, Debug)]
pub enum ValueLocations {
    /// Consecutive, from this offset.
    From(usize),
    /// With escapes: the offset of each byte of the value, and of the end.
    Each(Vec<usize>),
    Unknown,
}

impl ValueLocations {
    /// Returns the location of a value without escapes: a slice of `file`, found by its address.
    pub fn unescaped(file: &str, slice: &str) -> Self {
        (slice.as_ptr() as usize)
            .checked_sub(file.as_ptr() as usize)
            .filter(|start| file.get(*start..start + slice.len()) == Some(slice))
            .map_or(ValueLocations::Unknown, ValueLocations::From)
    }

    /// Returns the location of a value with escapes, which is at `span` in `file`, including the quotes. `Unknown` if the value
    /// does not match the text at `span`.
    pub fn escaped(file: &str, span: &Range<usize>, text: &str) -> Self {
        let raw = file.get(span.clone());
        raw.and_then(|raw| Self::byte_offsets(raw, span.start, text)).map_or(ValueLocations::Unknown, ValueLocations::Each)
    }

    /// Returns the range in the file of a part of the value.
    pub fn of(&self, part: Range<usize>) -> Option<Range<usize>> {
        match self {
            ValueLocations::From(start) => Some(start + part.start..start + part.end),
            ValueLocations::Each(places) => Some(*places.get(part.start)?..*places.get(part.end)?),
            ValueLocations::Unknown => None,
        }
    }

    pub fn byte_offsets(raw: &str, start: usize, text: &str) -> Option<Vec<usize>> {
        let is_long = raw.starts_with("\"\"\"");
        let quotes = if is_long { 3 } else { 1 };
        let inner = raw.get(quotes..raw.len().checked_sub(quotes)?).filter(|_| raw.starts_with('"'))?;
        let mut source = inner.char_indices().peekable();
        if is_long {
            // A line break directly after the opening quotes is not part of the value.
            source.next_if(|(_, c)| *c == '\r');
            source.next_if(|(_, c)| *c == '\n');
        }
        let mut places = Vec::with_capacity(text.len() + 1);
        for wanted in text.chars() {
            let (at, found) = loop {
                let (at, c) = source.next()?;
                if c != '\\' {
                    break (at, c);
                }
                let (_, kind) = source.next()?;
                let digits = match kind {
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    // A backslash at the end of a line skips the line break and the following indentation.
                    c if c.is_whitespace() => {
                        while source.next_if(|(_, c)| c.is_whitespace()).is_some() {}
                        continue;
                    }
                    _ => 0,
                };
                let mut code = 0;
                for _ in 0..digits {
                    code = code * 16 + source.next()?.1.to_digit(16)?;
                }
                let plain = match kind {
                    'b' => '\u{8}',
                    't' => '\t',
                    'n' => '\n',
                    'f' => '\u{c}',
                    'r' => '\r',
                    'e' => '\u{1b}',
                    'x' | 'u' | 'U' => char::from_u32(code)?,
                    kind => kind,
                };
                break (at, plain);
            };
            if found != wanted {
                return None;
            }
            places.extend(std::iter::repeat_n(start + quotes + at, wanted.len_utf8()));
        }
        places.push(start + quotes + source.next().map_or(inner.len(), |(at, _)| at));
        Some(places)
    }
}

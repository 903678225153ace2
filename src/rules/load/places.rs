//! From a part of a text's value back to where it stands in the file, escapes or not: carets point at what the operator wrote.

use std::ops::Range;

/// Where the characters of a text stand in its file.
#[derive(Clone, Debug)]
pub enum ValuePlaces {
    /// One after the other, from here.
    From(usize),
    /// With escapes between them: the place of each byte of the text, and that behind the last.
    Each(Vec<usize>),
    Unknown,
}

impl ValuePlaces {
    /// Those of a text without escapes: a slice of the file, whose address tells where.
    pub fn of_slice(file: &str, slice: &str) -> Self {
        (slice.as_ptr() as usize)
            .checked_sub(file.as_ptr() as usize)
            .filter(|start| file.get(*start..start + slice.len()) == Some(slice))
            .map_or(ValuePlaces::Unknown, ValuePlaces::From)
    }

    /// Those of a text with escapes, which stands in `file` at `span`, quotes included. Where the two do not fit, nothing is known
    /// rather than something wrong.
    pub fn of_escaped(file: &str, span: &Range<usize>, text: &str) -> Self {
        let raw = file.get(span.clone());
        raw.and_then(|raw| Self::follow(raw, span.start, text)).map_or(ValuePlaces::Unknown, ValuePlaces::Each)
    }

    /// The place in the file of a part of the text.
    pub fn of(&self, part: Range<usize>) -> Option<Range<usize>> {
        match self {
            ValuePlaces::From(start) => Some(start + part.start..start + part.end),
            ValuePlaces::Each(places) => Some(*places.get(part.start)?..*places.get(part.end)?),
            ValuePlaces::Unknown => None,
        }
    }

    pub fn follow(raw: &str, start: usize, text: &str) -> Option<Vec<usize>> {
        let is_long = raw.starts_with("\"\"\"");
        let quotes = if is_long { 3 } else { 1 };
        let inner = raw.get(quotes..raw.len().checked_sub(quotes)?).filter(|_| raw.starts_with('"'))?;
        let mut source = inner.char_indices().peekable();
        if is_long {
            // A line break right behind the quotes is none of the text.
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
                    // The line goes on behind the break and what it is indented by.
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

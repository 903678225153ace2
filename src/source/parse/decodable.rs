//! Repairs JSON with numbers or characters that cannot be decoded.

/// Replaces numbers beyond the range of a double by `null` and lone surrogates by U+FFFD. Returns the text and the number of
/// replacements.
pub(super) fn decodable(json: &str) -> (String, usize) {
    let mut text = String::with_capacity(json.len());
    let mut replaced = 0;
    let mut rest = json;
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '"' => {
                let end = string_end(rest);
                let (string, after) = rest.split_at(end);
                replaced += push_string(string, &mut text);
                rest = after;
                continue;
            }
            '-' | '0'..='9' => rest.find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9')).unwrap_or(rest.len()),
            _ => c.len_utf8(),
        };
        let (token, after) = rest.split_at(taken);
        if token.parse::<f64>().is_ok_and(f64::is_infinite) {
            text.push_str("null");
            replaced += 1;
        } else {
            text.push_str(token);
        }
        rest = after;
    }
    (text, replaced)
}

/// Returns the length in bytes of the string at the beginning of `text`, including both quotes.
fn string_end(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Appends a string with lone surrogates replaced. Returns the number of replacements.
fn push_string(string: &str, text: &mut String) -> usize {
    let unit = |escape: &str| {
        escape.strip_prefix("\\u").and_then(|digits| digits.get(..4)).and_then(|digits| u32::from_str_radix(digits, 16).ok())
    };
    let mut replaced = 0;
    let mut rest = string;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        text.push_str(plain);
        let taken = match unit(escape) {
            Some(0xd800..0xdc00) if escape.get(6..).and_then(unit).is_some_and(|low| (0xdc00..0xe000).contains(&low)) => 12,
            Some(0xd800..0xe000) => {
                text.push('\u{fffd}');
                replaced += 1;
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            Some(_) => 6,
            None => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (kept, after) = escape.split_at(taken.min(escape.len()));
        text.push_str(kept);
        rest = after;
    }
    text.push_str(rest);
    replaced
}

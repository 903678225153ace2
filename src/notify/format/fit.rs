//! Cuts text to the size limits of a service.

use model::phrase;

/// Joins as many whole lines as fit into `room`, and returns the text and the number of lines.
pub(super) fn fit<'a>(lines: impl IntoIterator<Item = &'a String>, room: usize, size: fn(&str) -> usize) -> (String, usize) {
    let (mut text, mut taken, mut count) = (String::new(), 0, 0);
    for line in lines {
        let needed = size(line) + usize::from(count > 0);
        if taken + needed > room {
            break;
        }
        if count > 0 {
            text.push('\n');
        }
        text.push_str(line);
        taken += needed;
        count += 1;
    }
    (text, count)
}

/// The room for the line that counts the omitted lines.
const COUNT_ROOM: usize = 32;

/// Joins the lines that fit into `room`. If some do not, a last line counts them.
pub(super) fn fit_counted(lines: &[String], room: usize, size: fn(&str) -> usize) -> String {
    let (text, count) = fit(lines, room, size);
    if count == lines.len() {
        return text;
    }
    let (text, count) = fit(lines, room.saturating_sub(COUNT_ROOM), size);
    format!("{text}\n… {}", phrase::count(lines.len() - count, "more line"))
}

/// Returns the length in UTF-16 code units, which many services count.
pub(super) fn utf16(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Returns at most `max` bytes of a text, in whole characters.
pub(super) fn cut_bytes(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_lines_are_counted() {
        let lines: Vec<String> = (0..100).map(|n| format!("line {n:02}")).collect();
        assert_eq!(fit_counted(&lines, 10_000, str::len).lines().count(), 100);
        let text = fit_counted(&lines, 200, str::len);
        assert!(text.len() <= 200 && text.ends_with("\n… 79 more lines"), "{text}");
    }
}

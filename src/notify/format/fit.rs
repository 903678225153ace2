//! Texts cut to the limits of a service, measured as the service does.

/// The lines that fit into `room`, whole lines only, each with the break behind it; and how many.
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

/// Length as services count it that were written in JavaScript, Java or Objective-C.
pub(super) fn utf16(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// At most `max` bytes of a text, whole characters only.
pub(super) fn cut_bytes(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or_default()
}

//! Splits a file at its `[[rule]]` headers, so that each rule can be parsed alone if the file has a syntax error.

use std::ops::Range;

/// Returns the range of each rule, and of the text before the first one. A line that looks like a header inside a multi-line
/// string also splits the text, which only causes one more syntax error.
pub(super) fn of(text: &str) -> Vec<Range<usize>> {
    let mut starts = vec![0];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at > 0 && is_header(line) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().copied().skip(1).chain([text.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

/// Returns `true` for a `[[rule]]` line, with any whitespace and a trailing comment.
fn is_header(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("[[") else { return false };
    rest.trim_start().strip_prefix("rule").is_some_and(|rest| rest.trim_start().starts_with("]]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_a_file_at_rule_headers() {
        let text = "# head\n[[rule]]\na = 1\n[[rule.level]]\nb = 2\n  [[ rule ]] # two\nc = 3\n";
        let parts: Vec<&str> = of(text).into_iter().map(|part| &text[part]).collect();
        assert_eq!(parts, ["# head\n", "[[rule]]\na = 1\n[[rule.level]]\nb = 2\n", "  [[ rule ]] # two\nc = 3\n"]);
        assert_eq!(of("").len(), 1);
    }
}

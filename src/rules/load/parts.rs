//! A file cut at its rules, so that each can be read by itself where the whole cannot.

use std::ops::Range;

/// Where each rule begins and ends, with what belongs to it, and what stands before the first. In a text that is no TOML a line that
/// looks like a header may stand in a text of several lines; then a part too many is told to be wrong, and nothing more.
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

/// `[[rule]]`, with space and a comment as people write them.
fn is_header(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("[[") else { return false };
    rest.trim_start().strip_prefix("rule").is_some_and(|rest| rest.trim_start().starts_with("]]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_cut_at_its_rules() {
        let text = "# head\n[[rule]]\na = 1\n[[rule.level]]\nb = 2\n  [[ rule ]] # two\nc = 3\n";
        let parts: Vec<&str> = of(text).into_iter().map(|part| &text[part]).collect();
        assert_eq!(parts, ["# head\n", "[[rule]]\na = 1\n[[rule.level]]\nb = 2\n", "  [[ rule ]] # two\nc = 3\n"]);
        assert_eq!(of("").len(), 1);
    }
}

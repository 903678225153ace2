//! A page of metrics in the format that whoever scrapes it takes.

use std::collections::HashMap;

/// The older text format, which everything that scrapes can read.
pub const PLAIN_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// OpenMetrics.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A page of OpenMetrics in the format that whoever asks takes, with its content type: as it is where a value of `Accept` names that,
/// else in the older text format, where a family is called as its samples are, and there is no type `info`.
pub fn negotiated<'a>(accept: impl IntoIterator<Item = &'a str>, page: String) -> (&'static str, String) {
    if accept.into_iter().any(|accept| accept.contains("application/openmetrics-text")) {
        return (CONTENT_TYPE, page);
    }
    let kinds: HashMap<&str, &str> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let mut plain = String::with_capacity(page.len() + 256);
    for line in page.lines().filter(|line| *line != "# EOF") {
        let comment = ["# HELP ", "# TYPE "].into_iter().find_map(|word| Some((word, line.strip_prefix(word)?)));
        let Some((word, (family, rest))) = comment.and_then(|(word, of)| Some((word, of.split_once(' ')?))) else {
            plain.push_str(line);
            plain.push('\n');
            continue;
        };
        let suffix = match kinds.get(family).copied() {
            Some("counter") => "_total",
            Some("info") => "_info",
            _ => "",
        };
        let rest = if word == "# TYPE " && rest == "info" { "gauge" } else { rest };
        plain.push_str(&format!("{word}{family}{suffix} {rest}\n"));
    }
    (PLAIN_CONTENT_TYPE, plain)
}

//! The format of a metrics page, negotiated with the client.

use std::collections::HashMap;

/// The Prometheus text format, which every scraper can read.
pub const PLAIN_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the content type and the page: OpenMetrics unchanged if a value of `Accept` contains it, else converted to the Prometheus
/// text format, in which a family has the same name as its samples and the type `info` does not exist.
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

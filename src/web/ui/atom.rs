//! The Atom feed of changes (RFC 4287).
//!
//! The id of an entry is derived from the change only, so it stays the same in a copied database and under another URL.

use std::sync::LazyLock;

use chrono::SecondsFormat;
use minijinja::{AutoEscape, Environment, value::Serde};
use serde::Serialize;

use super::calendar::path_segment;
use model::text::{fingerprint, harmless};
use model::{ChangeRow, Timestamp, phrase};

const ID_BYTES: usize = 16;

/// A change in the feed.
#[derive(Clone, Debug, Serialize)]
pub struct FeedEntry {
    /// `urn:uuid:…`.
    id: String,
    title: String,
    summary: String,
    at: String,
    /// The slug, escaped for a path.
    token: String,
    kind: &'static str,
    symbol: String,
    #[serde(skip)]
    seen_at: Timestamp,
}

impl FeedEntry {
    pub fn of(row: &ChangeRow) -> Self {
        let change = &row.change;
        let key = row.key.as_ref().map(|key| key.as_str()).unwrap_or_default();
        let at = time(row.at);
        let parts = [row.token.as_str(), &at, row.resource.as_str(), change.kind.as_str(), key, &change.summary];
        let symbol = phrase::name(row.symbol.as_deref().unwrap_or(row.token.as_str()));
        let summary = phrase::one_line(&harmless(&change.summary));
        Self {
            id: uuid(parts),
            title: if summary.starts_with(&symbol) { summary.clone() } else { format!("{symbol}: {} {summary}", row.resource) },
            summary,
            token: path_segment(row.token.as_str()),
            kind: change.kind.as_str(),
            symbol,
            seen_at: row.at,
            at,
        }
    }
}

#[derive(Serialize)]
struct FeedPage<'a> {
    id: String,
    filter: &'a str,
    base: Option<&'a str>,
    /// The path and query of the feed.
    path: &'a str,
    updated: String,
    entries: &'a [FeedEntry],
}

/// Renders the feed. `entries` are latest first, `filter` describes which changes they are, `path` is the path of the feed with its query,
/// and `external_url` is the base URL of the pages. Returns an error if the template fails.
pub fn render(entries: &[FeedEntry], filter: &str, path: &str, external_url: Option<&str>) -> Result<String, minijinja::Error> {
    static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment
    });
    let filter = phrase::one_line(&harmless(filter)).replace("(unnamed)", "");
    // A constant, so that an empty feed does not change.
    let updated = entries.iter().map(|entry| entry.seen_at).max().unwrap_or(Timestamp::UNIX_EPOCH);
    let base = external_url.map(|url| url.trim_end_matches('/'));
    let id = uuid(["cliffwatch changes", &filter]);
    let page = FeedPage { id, filter: &filter, base, path, updated: time(updated), entries };
    TEMPLATES.render_named_str("feed.atom", include_str!("feed.atom"), Serde(page))
}

/// Returns a hash of the parts as a version 8 UUID (RFC 9562).
fn uuid<const N: usize>(parts: [&str; N]) -> String {
    let hex = fingerprint(parts, ID_BYTES);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("urn:uuid:{}-{}-8{}-a{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

fn time(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

#[cfg(test)]
mod tests;

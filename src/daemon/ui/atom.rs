//! Changes as a feed that other programs subscribe to (Atom, RFC 4287). Pure: rows in, text out.
//!
//! An entry keeps its id for ever: it is made of what happened, and of nothing that a copy of the database or another address changes.

use std::sync::LazyLock;

use chrono::SecondsFormat;
use minijinja::{AutoEscape, Environment, value::Serde};
use serde::Serialize;

use super::calendar::path_segment;
use model::text::{fingerprint, harmless};
use model::{ChangeRow, Timestamp, format};

/// Bytes of an id.
const ID_BYTES: usize = 16;

/// A change as a feed shows it.
#[derive(Clone, Debug, Serialize)]
pub struct FeedEntry {
    /// `urn:uuid:…`.
    id: String,
    title: String,
    summary: String,
    /// When it was seen.
    at: String,
    /// The slug as a segment of a path.
    token: String,
    kind: &'static str,
    symbol: String,
    #[serde(skip)]
    seen_at: Timestamp,
}

impl FeedEntry {
    /// That of a change.
    pub fn of(row: &ChangeRow) -> Self {
        let change = &row.change;
        let key = row.key.as_ref().map(|key| key.as_str()).unwrap_or_default();
        let at = time(row.at);
        let parts = [row.token.as_str(), &at, row.resource.as_str(), change.kind.as_str(), key, &change.summary];
        let symbol = format::name(row.symbol.as_deref().unwrap_or(row.token.as_str()));
        let summary = format::sentence(&harmless(&change.summary));
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
    of: &'a str,
    base: Option<&'a str>,
    updated: String,
    entries: &'a [FeedEntry],
}

/// The feed of these entries, the latest first; `of` says which changes were asked for, `external_url` where our pages are.
/// Fails where the template does.
pub fn render(entries: &[FeedEntry], of: &str, external_url: Option<&str>) -> Result<String, minijinja::Error> {
    static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment
    });
    let of = format::sentence(&harmless(of)).replace("(unnamed)", "");
    // An empty feed is as old as can be: it says the same until something happens.
    let updated = entries.iter().map(|entry| entry.seen_at).max().unwrap_or(Timestamp::UNIX_EPOCH);
    let base = external_url.map(|url| url.trim_end_matches('/'));
    let page = FeedPage { id: uuid(["cliffwatch changes", &of]), of: &of, base, updated: time(updated), entries };
    TEMPLATES.render_named_str("feed.atom", include_str!("feed.atom"), Serde(page))
}

/// An id that follows from these parts, in the shape of RFC 9562's version 8.
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

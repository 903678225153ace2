//! Where what a page says is from, how old it is, and why it may be less than all.

use serde::Serialize;

use super::MAX_LINK;
use model::{Endpoint, Timestamp, TokenSnapshot, format, wire::UnlockEvent};
use url::Url;

/// Origins that are named.
const MAX_SOURCES: usize = 6;

#[derive(Debug, Serialize)]
pub(super) struct Provenance {
    listed_method: Option<String>,
    sources: Vec<DataSource>,
    /// The latest `latestUpdateDate` of its events.
    latest_update: Option<Timestamp>,
    /// `lastUpdatedDate` of the token list.
    last_updated: Option<Timestamp>,
    website: Option<DataSource>,
    feeds: Vec<FeedRow>,
}

/// An origin of a schedule: a text, or an address that leads there.
#[derive(Debug, PartialEq, Serialize)]
struct DataSource {
    text: String,
    href: Option<String>,
}

#[derive(Debug, Serialize)]
struct FeedRow {
    endpoint: Endpoint,
    read_at: Option<Timestamp>,
    tried_at: Option<Timestamp>,
    failing_since: Option<Timestamp>,
}

impl DataSource {
    /// Whatever the source says; only what is an address of the web is a link.
    fn of(text: &str) -> Self {
        let url = Url::parse(text.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some());
        let href = url.map(String::from).filter(|href| href.len() <= MAX_LINK);
        Self { text: format::sentence(text), href }
    }
}

/// Some sources are several addresses in one text.
fn each_source(text: &str) -> Vec<&str> {
    let parts: Vec<&str> =
        text.split([',', ' ', '\n', ';']).map(str::trim).filter(|part| !part.is_empty()).take(2 * MAX_SOURCES).collect();
    if parts.len() > 1 && parts.iter().all(|part| part.starts_with("http")) { parts } else { vec![text] }
}

impl Provenance {
    pub(super) fn of(snapshot: &TokenSnapshot, events: &[&UnlockEvent]) -> Self {
        let item = &snapshot.token.item;
        let mut sources: Vec<DataSource> = Vec::new();
        let texts = events.iter().filter_map(|event| event.data_source.as_str());
        for text in texts.flat_map(each_source).filter(|text| !text.trim().is_empty()) {
            let source = DataSource::of(text);
            if sources.len() < MAX_SOURCES && !sources.contains(&source) {
                sources.push(source);
            }
        }
        let method = item.listed_method.as_str().or_else(|| events.iter().find_map(|event| event.listed_method.as_str()));
        Self {
            listed_method: method.map(str::to_owned),
            sources,
            latest_update: events.iter().filter_map(|event| event.latest_update_date.copied()).max(),
            last_updated: item.last_updated_date.copied(),
            website: item.website_url.as_str().filter(|text| !text.is_empty()).map(DataSource::of),
            feeds: snapshot
                .feeds
                .iter()
                .map(|(endpoint, feed)| FeedRow {
                    endpoint: *endpoint,
                    read_at: feed.read_at,
                    tried_at: feed.tried_at,
                    failing_since: feed.failing_since,
                })
                .collect(),
        }
    }
}

/// Why the page may show less than there is.
pub(super) fn troubles(snapshot: &TokenSnapshot, now: Timestamp) -> Vec<String> {
    let mut troubles = Vec::new();
    for (endpoint, feed) in &snapshot.feeds {
        if let Some(since) = feed.held_since {
            let since = if since.timestamp() > 0 { format!(" since {}", format::instant(since)) } else { String::new() };
            troubles.push(format!(
                "The answer of {endpoint} is held{since}: most records vanished at once. What was known before stays."
            ));
        }
        if let Some(since) = feed.failing_since {
            let ago = crate::ui::view::age((now - since).num_seconds().max(0));
            troubles.push(format!("{endpoint} fails since {ago}: what stands here is older than it should be."));
        }
    }
    if !snapshot.feeds.iter().any(|(endpoint, feed)| *endpoint == Endpoint::UnlockEvents && feed.read_at.is_some()) {
        troubles.push("Its schedule was never read whole: at most the next unlock is known.".to_owned());
    }
    troubles
}

//! The sources of a token's data, its age, and reasons why it may be incomplete.

use serde::Serialize;

use super::MAX_LINK;
use model::{Endpoint, Timestamp, TokenSnapshot, phrase, wire::UnlockEvent};
use url::Url;

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

/// A source of a schedule, as text and possibly as a link.
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
    /// Only web addresses become links.
    fn of(text: &str) -> Self {
        let url = Url::parse(text.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some());
        let href = url.map(String::from).filter(|href| href.len() <= MAX_LINK);
        Self { text: phrase::one_line(text), href }
    }
}

/// Splits a text that contains several web addresses.
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

/// Returns reasons why the data may be incomplete or outdated.
pub(super) fn incidents(snapshot: &TokenSnapshot, now: Timestamp) -> Vec<String> {
    let mut incidents = Vec::new();
    for (endpoint, feed) in &snapshot.feeds {
        let name = phrase::words(endpoint.as_str());
        if let Some(hold) = feed.hold {
            let since = phrase::instant(hold.since);
            incidents.push(format!(
                "A response of {name} is held since {since} because most records are missing from it. The page shows the previous data."
            ));
        }
        if let Some(since) = feed.failing_since {
            let lasted = phrase::duration(now - since);
            incidents.push(format!("Polls of {name} have been failing for {lasted}. The data on this page may be outdated."));
        }
    }
    if !snapshot.feeds.iter().any(|(endpoint, feed)| *endpoint == Endpoint::UnlockEvents && feed.read_at.is_some()) {
        incidents.push("The full schedule was never polled. At most the next unlock is known.".to_owned());
    }
    incidents
}

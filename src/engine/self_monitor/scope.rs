//! The scope of an incident: a feed, an endpoint, the whole source, or a cause that needs its own action.

use std::collections::{BTreeMap, BTreeSet};

use model::{Endpoint, FailureKind, FeedId, IncidentKind, TokenId};

use super::FeedsByResult;
use super::incident::{FEW_FEEDS, Incident};

/// The maximum number of tokens of an endpoint that get their own alerts in one cycle. More tokens share one alert.
const MAX_TOKEN_ALERTS: usize = 10;

/// The scope of an alert about the source, narrowest first. A wider alert takes over the feeds of a narrower one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum IncidentScope {
    Feed(FeedId),
    Endpoint(Endpoint),
    Source,
    /// The credits are exhausted.
    Quota,
    /// The key is missing, cannot be used, or was rejected.
    Unauthorized,
}

impl IncidentScope {
    pub(super) fn subject(&self) -> String {
        match self {
            IncidentScope::Feed(feed) => format!("source/{feed}"),
            IncidentScope::Endpoint(endpoint) => format!("source/{endpoint}"),
            IncidentScope::Source => "source".to_owned(),
            IncidentScope::Quota => "source/quota".to_owned(),
            IncidentScope::Unauthorized => "source/unauthorized".to_owned(),
        }
    }

    /// Returns the narrowest scope of a feed.
    pub(super) fn alone(feed: &FeedId) -> Self {
        match &feed.token {
            Some(_) => IncidentScope::Feed(feed.clone()),
            None => IncidentScope::Endpoint(feed.endpoint),
        }
    }

    pub(super) fn of_subject(subject: &str) -> Option<Self> {
        Some(match subject.strip_prefix("source")? {
            "" => IncidentScope::Source,
            "/quota" => IncidentScope::Quota,
            "/unauthorized" => IncidentScope::Unauthorized,
            rest => match feed_of(rest.strip_prefix('/')?)? {
                FeedId { endpoint, token: None } => IncidentScope::Endpoint(endpoint),
                feed => IncidentScope::Feed(feed),
            },
        })
    }

    pub(super) fn endpoint(&self) -> Option<Endpoint> {
        match self {
            IncidentScope::Feed(feed) => Some(feed.endpoint),
            IncidentScope::Endpoint(endpoint) => Some(*endpoint),
            IncidentScope::Source | IncidentScope::Quota | IncidentScope::Unauthorized => None,
        }
    }

    pub(super) fn token(&self) -> Option<&TokenId> {
        if let IncidentScope::Feed(feed) = self { feed.token.as_ref() } else { None }
    }

    /// Returns 0 for a feed, 1 for an endpoint, 2 for the source, and 3 for a cause that needs its own action.
    pub(super) fn width(&self) -> u8 {
        match self {
            IncidentScope::Feed(_) => 0,
            IncidentScope::Endpoint(_) => 1,
            IncidentScope::Source => 2,
            IncidentScope::Quota | IncidentScope::Unauthorized => 3,
        }
    }
}

/// Returns whether an alert with this subject reports a failure of the source.
pub fn is_about_source(subject: &str) -> bool {
    IncidentScope::of_subject(subject).is_some()
}

/// Returns whether an alert with this subject reports that no data is available: the whole source fails, rejects the key, or has no
/// credits left.
pub fn is_source_down(subject: &str) -> bool {
    IncidentScope::of_subject(subject).is_some_and(|scope| scope.width() >= 2)
}

/// Parses the text form of a feed, such as `unlock_events/arbitrum` or `token_list`.
pub fn feed_of(text: &str) -> Option<FeedId> {
    match text.split_once('/') {
        Some((endpoint, token)) => Some(FeedId { endpoint: Endpoint::parse(endpoint)?, token: Some(token.into()) }),
        None => Some(FeedId::whole(Endpoint::parse(text)?)),
    }
}

/// Returns the scope of each failing feed, given all outcomes of this cycle.
pub(super) fn scopes<'a>(feeds: &FeedsByResult<'a>, incidents: &[Incident]) -> BTreeMap<&'a FeedId, IncidentScope> {
    let FeedsByResult { failing, fine } = feeds;
    let wide: Vec<_> = failing.values().filter(|failing| failing.kind.is_source_wide()).collect();
    let endpoints: BTreeSet<Endpoint> = failing.keys().map(|feed| feed.endpoint).collect();
    let nothing_succeeds = fine.is_empty() && endpoints.len() > 1;
    let is_source_open = incidents.iter().any(|incident| incident.scope == IncidentScope::Source);
    let few = wide.len() <= FEW_FEEDS && fine.len() >= wide.len() && !is_source_open;

    // Per endpoint: the number of polled tokens, and of tokens that fail in the same way.
    let mut polled_of: BTreeMap<Endpoint, usize> = BTreeMap::new();
    let mut alike: BTreeMap<(Endpoint, IncidentKind), usize> = BTreeMap::new();
    for feed in failing.keys().copied().chain(fine.iter().copied()) {
        *polled_of.entry(feed.endpoint).or_default() += 1;
    }
    for failing in failing.values() {
        *alike.entry((failing.feed.endpoint, failing.kind)).or_default() += 1;
    }
    failing
        .values()
        .map(|failing| {
            let endpoint = failing.feed.endpoint;
            let scope = match failing.kind {
                IncidentKind::Failure(failure) if failure.is_about_key() => IncidentScope::Unauthorized,
                IncidentKind::Failure(FailureKind::QuotaExhausted) => IncidentScope::Quota,
                _ if nothing_succeeds => IncidentScope::Source,
                kind if kind.is_source_wide() && (!few || kind == IncidentKind::SUSPENDED) => IncidentScope::Source,
                kind => {
                    let alike = alike.get(&(endpoint, kind)).copied().unwrap_or_default();
                    let requested = polled_of.get(&endpoint).copied().unwrap_or_default();
                    let most =
                        (alike >= 3 && alike * 2 > requested) || (alike >= 2 && alike == requested) || alike > MAX_TOKEN_ALERTS;
                    let is_open = incidents.iter().any(|incident| incident.scope == IncidentScope::Endpoint(endpoint));
                    if failing.feed.token.is_some() && !most && !is_open {
                        IncidentScope::Feed(failing.feed.clone())
                    } else if let Some(same) =
                        incidents.iter().find(|incident| incident.scope.width() > 0 && incident.is_of(kind))
                    {
                        // The same failure at another endpoint is the same incident.
                        same.scope.clone()
                    } else {
                        IncidentScope::Endpoint(endpoint)
                    }
                }
            };
            (failing.feed, scope)
        })
        .collect()
}

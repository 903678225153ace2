//! What an incident is about: one feed, an endpoint, the source as a whole, or what asks for a hand of its own.

use std::collections::{BTreeMap, BTreeSet};

use model::{Endpoint, FailureKind, FeedId, TokenId};

use super::FeedsByResult;
use super::incident::{FEW_FEEDS, Incident};
use super::kind::IncidentKind;

/// So many tokens of an endpoint get an alert each from one cycle; more are told as one.
const MOST_ALERTS_EACH: usize = 10;

/// What an alert about the source is about. The narrowest comes first: a wider one takes in the feeds of a narrower one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum IncidentScope {
    Feed(FeedId),
    Endpoint(Endpoint),
    /// All of it.
    Source,
    /// The credits are spent.
    Quota,
    /// The key is refused.
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

    /// The narrowest scope of a feed.
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

    /// 0 for a feed, 1 for an endpoint, 2 for the source, 3 for what needs a hand of its own.
    pub(super) fn width(&self) -> u8 {
        match self {
            IncidentScope::Feed(_) => 0,
            IncidentScope::Endpoint(_) => 1,
            IncidentScope::Source => 2,
            IncidentScope::Quota | IncidentScope::Unauthorized => 3,
        }
    }
}

/// Whether an alert with this subject says that something of the source fails.
pub fn is_about_source(subject: &str) -> bool {
    IncidentScope::of_subject(subject).is_some()
}

/// Whether an alert with this subject says that nothing is to be had from the source: it fails as a whole, refuses the key, or wants
/// credits.
pub fn is_source_down(subject: &str) -> bool {
    IncidentScope::of_subject(subject).is_some_and(|scope| scope.width() >= 2)
}

/// Reads a feed back from how it is written: `unlock_events/arbitrum`, `token_list`.
pub fn feed_of(text: &str) -> Option<FeedId> {
    match text.split_once('/') {
        Some((endpoint, token)) => Some(FeedId { endpoint: Endpoint::parse(endpoint)?, token: Some(token.into()) }),
        None => Some(FeedId::whole(Endpoint::parse(text)?)),
    }
}

/// Which incident each failing feed belongs to, decided by this cycle as a whole.
pub(super) fn scopes<'a>(feeds: &FeedsByResult<'a>, incidents: &[Incident]) -> BTreeMap<&'a FeedId, IncidentScope> {
    let FeedsByResult { failing, fine } = feeds;
    let wide: Vec<_> = failing.values().filter(|failing| failing.kind.is_source_wide()).collect();
    let endpoints: BTreeSet<Endpoint> = failing.keys().map(|feed| feed.endpoint).collect();
    let nothing_answers = fine.is_empty() && endpoints.len() > 1;
    let is_source_open = incidents.iter().any(|incident| incident.scope == IncidentScope::Source);
    let few = wide.len() <= FEW_FEEDS && fine.len() >= wide.len() && !is_source_open;

    // How many tokens of an endpoint were asked, and fail in the same way.
    let mut asked_of: BTreeMap<Endpoint, usize> = BTreeMap::new();
    let mut alike: BTreeMap<(Endpoint, IncidentKind), usize> = BTreeMap::new();
    for feed in failing.keys().copied().chain(fine.iter().copied()) {
        *asked_of.entry(feed.endpoint).or_default() += 1;
    }
    for failing in failing.values() {
        *alike.entry((failing.feed.endpoint, failing.kind)).or_default() += 1;
    }
    failing
        .values()
        .map(|failing| {
            let endpoint = failing.feed.endpoint;
            let scope = match failing.kind {
                IncidentKind::Failure(FailureKind::NoKey | FailureKind::Unauthorized) => IncidentScope::Unauthorized,
                IncidentKind::Failure(FailureKind::QuotaExhausted) => IncidentScope::Quota,
                _ if nothing_answers => IncidentScope::Source,
                kind if kind.is_source_wide() && (!few || kind == IncidentKind::SUSPENDED) => IncidentScope::Source,
                kind => {
                    let alike = alike.get(&(endpoint, kind)).copied().unwrap_or_default();
                    let asked = asked_of.get(&endpoint).copied().unwrap_or_default();
                    let most = (alike >= 3 && alike * 2 > asked) || (alike >= 2 && alike == asked) || alike > MOST_ALERTS_EACH;
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

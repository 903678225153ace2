//! The API: addresses, versions, pace and bounds.

use std::{fmt, path::PathBuf};

use serde::{Deserialize, Serialize, Serializer};

use super::{ByteSize, Secret, SecretText, Span};
use crate::Endpoint;

/// `[source]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSettings {
    /// Base address; https unless loopback.
    pub base_url: String,
    /// Older base address, for weekly emission.
    pub legacy_base_url: String,
    /// The key. Better a file or a credential.
    #[serde(default)]
    pub api_key: Option<SecretText>,
    /// File with the key, read at use. Else the systemd credential `api-key` or `api_key`.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// Which version to ask: see [`Endpoint::versions`]. So for each endpoint.
    pub unlock_events: EndpointVersion,
    pub upcoming: EndpointVersion,
    pub token_list: EndpointVersion,
    pub burn: EndpointVersion,
    pub buyback: EndpointVersion,
    pub daily_emission: EndpointVersion,
    pub weekly_emission: EndpointVersion,
    pub allocations: EndpointVersion,
    pub investors: EndpointVersion,
    /// For one whole request.
    pub timeout: Span,
    pub connect_timeout: Span,
    /// For the longest silence while reading.
    pub read_timeout: Span,
    /// Our own pace.
    pub requests_per_minute: u32,
    /// Requests under way at once.
    pub concurrency: u32,
    /// Rows asked for on a page.
    pub page_size: u32,
    /// Largest answer, decoded.
    pub max_body: ByteSize,
    /// How far back `start` reaches.
    pub history: Reach,
    /// How far ahead `end` reaches.
    pub horizon: Reach,
    /// How far ahead the `upcoming` walk looks.
    pub upcoming_horizon: Span,
    /// A PEM file with a private certificate authority to trust beside the system's.
    #[serde(default)]
    pub tls_ca_file: Option<PathBuf>,
    /// Private networks in which a base address may be plain http, such as that of a team's own mirror: who can listen there can read
    /// the key.
    #[serde(default)]
    pub allow_http_networks: Vec<String>,
}

impl SourceSettings {
    /// The API key.
    pub fn key(&self) -> Secret {
        Secret {
            key: "source.api_key".into(),
            inline: self.api_key.clone(),
            file: self.api_key_file.clone(),
            credentials: vec!["api_key".into(), "api-key".into()],
        }
    }

    /// Which version of an endpoint to ask.
    pub fn version(&self, endpoint: Endpoint) -> EndpointVersion {
        match endpoint {
            Endpoint::TokenList => self.token_list,
            Endpoint::Upcoming => self.upcoming,
            Endpoint::UnlockEvents => self.unlock_events,
            Endpoint::Burn => self.burn,
            Endpoint::Buyback => self.buyback,
            Endpoint::Allocations => self.allocations,
            Endpoint::DailyEmission => self.daily_emission,
            Endpoint::WeeklyEmission => self.weekly_emission,
            Endpoint::Investors => self.investors,
        }
    }
}

impl Endpoint {
    /// The versions that the API has of it, newest first: what a config may name, and what the client can ask.
    pub const fn versions(self) -> &'static [u8] {
        match self {
            Endpoint::TokenList | Endpoint::UnlockEvents => &[5, 4, 3, 2, 1],
            Endpoint::Upcoming | Endpoint::Burn | Endpoint::Buyback | Endpoint::Investors => &[5, 1],
            Endpoint::Allocations | Endpoint::DailyEmission => &[5, 2, 1],
            Endpoint::WeeklyEmission => &[3, 2, 1],
        }
    }
}

/// How far from today is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All there is.
    All,
    /// So far.
    Span(Span),
}

impl Reach {
    /// As a length of time; all there is counts as a hundred years.
    #[must_use]
    pub fn span(self) -> Span {
        match self {
            Reach::All => Span(std::time::Duration::from_secs(100 * 365 * 86_400)),
            Reach::Span(span) => span,
        }
    }
}

impl std::str::FromStr for Reach {
    type Err = <Span as std::str::FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "all" { Ok(Reach::All) } else { text.parse().map(Reach::Span) }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reach::All => f.write_str("all"),
            Reach::Span(span) => span.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for Reach {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Reach {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Which version of an endpoint to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndpointVersion {
    /// The newest that the server has.
    Auto,
    V(u8),
}

impl<'de> Deserialize<'de> for EndpointVersion {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let known = || std::iter::once(EndpointVersion::Auto).chain((1..=5).map(EndpointVersion::V));
        known()
            .find(|version| version.to_string() == text)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no version: write \"auto\", or \"v1\" to \"v5\"")))
    }
}

impl fmt::Display for EndpointVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndpointVersion::Auto => f.write_str("auto"),
            EndpointVersion::V(version) => write!(f, "v{version}"),
        }
    }
}

impl Serialize for EndpointVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

//! The source: URLs, versions, rates, and limits.

use std::{fmt, path::PathBuf};

use serde::{Deserialize, Serialize, Serializer};

use super::keys::{DAY, HOUR, YEAR, settings};
use super::{ByteSize, Secret, SecretText, Span};
use crate::Endpoint;

settings! {
    /// The token supply API.
    pub struct SourceSettings {
        /// The base URL of the API. It must use https, except on loopback and in `allow_http_networks`.
        base_url: String = "https://api.tokenomist.ai".into() => Url;
        /// The older base URL, which only weekly emissions use.
        legacy_base_url: String = "https://api.unlocks.app".into() => Url;
        /// The API key. Prefer `api_key_file` or the systemd credential `api-key`.
        api_key: Option<SecretText> => Secret;
        /// A file with `api_key`. It is read at each use, so that you can replace the key at any time.
        api_key_file: Option<PathBuf> => SecretFile;
        /// The version of the unlock schedules. `auto` is the newest version that the server supports. If that version has cliffs only, linear
        /// segments are read in addition: once at first, and again whenever the token list marks a token as changed. They come from v1, which has
        /// all of them. For tokens that are listed by AI, which v1 lacks, they come from v3 without changes of a rate, and the daily emission of
        /// the next 99 days completes them. It is read again every 9 days.
        unlock_events: EndpointVersion => Version(Endpoint::UnlockEvents.versions());
        /// The version of the list of next unlocks.
        upcoming: EndpointVersion => Version(Endpoint::Upcoming.versions());
        /// The version of the token list.
        token_list: EndpointVersion => Version(Endpoint::TokenList.versions());
        /// The version of the burns.
        burn: EndpointVersion => Version(Endpoint::Burn.versions());
        /// The version of the buybacks.
        buyback: EndpointVersion => Version(Endpoint::Buyback.versions());
        /// The version of the daily emissions.
        daily_emission: EndpointVersion => Version(Endpoint::DailyEmission.versions());
        /// The version of the weekly emissions.
        weekly_emission: EndpointVersion => Version(Endpoint::WeeklyEmission.versions());
        /// The version of the allocations.
        allocations: EndpointVersion => Version(Endpoint::Allocations.versions());
        /// The version of the funding rounds.
        investors: EndpointVersion => Version(Endpoint::Investors.versions());
        /// The time limit of a whole request.
        timeout: Span = Span::from_secs(30) => Span(1, HOUR);
        /// The time limit for connecting.
        connect_timeout: Span = Span::from_secs(10) => Span(1, HOUR);
        /// The longest pause while a response is read.
        read_timeout: Span = Span::from_secs(20) => Span(1, HOUR);
        /// The number of requests per minute.
        requests_per_minute: u32 = 60 => Count(1, 60_000);
        /// The number of simultaneous requests.
        concurrency: u32 = 4 => Count(1, 256);
        /// The number of rows to request per page.
        page_size: u32 = 100 => Count(1, 10_000);
        /// The size limit of a decoded response body.
        max_body: ByteSize = ByteSize(16 << 20) => Size;
        /// The time span of past data to request. `all` is the whole schedule, and three years of emissions, which have a row per day.
        history: Reach = Reach::All => Reach(0, 100 * YEAR);
        /// The time span of coming data to request. `all` is the whole schedule, and five years of emissions.
        horizon: Reach = Reach::All => Reach(DAY, 100 * YEAR);
        /// The time span in which to request the next unlock of each token.
        upcoming_horizon: Span = Span::from_secs(90 * DAY) => Span(DAY, 100 * YEAR);
        /// The age from which a price is stale. Pages, messages, and digests then name the day of the price.
        stale_price: Span = Span::from_secs(3 * DAY) => Span(HOUR, 100 * YEAR);
        /// A PEM file with a private certificate authority to trust in addition to the system certificates.
        tls_ca_file: Option<PathBuf> => CertificateFile;
        /// The private networks (CIDR) in which a base URL may use plain http, such as `10.0.0.0/8` for the mirror of your team. Anyone
        /// who can listen there can read the API key.
        allow_http_networks: Vec<String> => Networks;
    }
}

impl SourceSettings {
    pub fn key(&self) -> Secret {
        Secret {
            key: "source.api_key".into(),
            inline: self.api_key.clone(),
            file: self.api_key_file.clone(),
            credentials: vec!["api_key".into(), "api-key".into()],
        }
    }

    /// The configured version of an endpoint.
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
    /// The versions of the endpoint, newest first. A config accepts exactly the versions that the client can request.
    pub const fn versions(self) -> &'static [u8] {
        match self {
            Endpoint::TokenList | Endpoint::UnlockEvents => &[5, 4, 3, 2, 1],
            Endpoint::Upcoming | Endpoint::Burn | Endpoint::Buyback | Endpoint::Investors => &[5, 1],
            Endpoint::Allocations | Endpoint::DailyEmission => &[5, 2, 1],
            Endpoint::WeeklyEmission => &[3, 2, 1],
        }
    }
}

/// The distance from today up to which data is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    All,
    Span(Span),
}

impl Reach {
    /// Returns the distance as a duration. `All` counts as a hundred years.
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

/// The requested version of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndpointVersion {
    /// The newest version that the server supports.
    #[default]
    Auto,
    V(u8),
}

impl<'de> Deserialize<'de> for EndpointVersion {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let known = || std::iter::once(EndpointVersion::Auto).chain((1..=5).map(EndpointVersion::V));
        known().find(|version| version.to_string() == text).ok_or_else(|| {
            serde::de::Error::custom(format!("{text:?} is not a valid version: expected \"auto\", or \"v1\" to \"v5\""))
        })
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

//! The path and parameters of each endpoint in each version. Pure.

use chrono::{Datelike, Days, NaiveDate};

use model::poll::PollRequest;
use model::{
    config::{EndpointVersion, SourceSettings},
    supply::Endpoint,
};

/// The length limit of a slug, in bytes.
pub(super) const MAX_SLUG: usize = 200;

/// A kind of path with its own versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndpointRoute {
    TokenList,
    Upcoming,
    UnlockEvents,
    Burn,
    Buyback,
    Allocations,
    DailyEmission,
    WeeklyEmission,
    InvestorList,
    InvestorDetail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BaseAddress {
    Current,
    Legacy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestTarget {
    pub base: BaseAddress,
    /// The segments of the path, not escaped.
    pub path: Vec<String>,
    /// The parameters, not escaped.
    pub query: Vec<(&'static str, String)>,
    /// Whether the path accepts `page` and `pageSize`.
    pub is_paged: bool,
    /// Whether `data` is a list instead of an object.
    pub is_list: bool,
}

impl RequestTarget {
    /// Returns the path without parameters for messages: `/v5/burn/aptos`.
    pub fn display_path(&self) -> String {
        self.path.iter().fold(String::new(), |path, part| path + "/" + &super::redact::printable(part))
    }
}

impl EndpointRoute {
    pub const COUNT: usize = 10;

    /// Returns the route of a request.
    ///
    /// # Errors
    ///
    /// Fails if the request has no valid path.
    pub fn of(request: &PollRequest) -> Result<Self, String> {
        Ok(match request {
            PollRequest::TokenList => EndpointRoute::TokenList,
            PollRequest::Upcoming { .. } => EndpointRoute::Upcoming,
            PollRequest::Investors => EndpointRoute::InvestorList,
            PollRequest::Investor { id } => {
                check_slug(id, &["list"])?;
                EndpointRoute::InvestorDetail
            }
            PollRequest::Token { endpoint, token, .. } => {
                let route = match endpoint {
                    Endpoint::UnlockEvents => EndpointRoute::UnlockEvents,
                    Endpoint::Burn => EndpointRoute::Burn,
                    Endpoint::Buyback => EndpointRoute::Buyback,
                    Endpoint::Allocations => EndpointRoute::Allocations,
                    Endpoint::DailyEmission => EndpointRoute::DailyEmission,
                    Endpoint::WeeklyEmission => EndpointRoute::WeeklyEmission,
                    Endpoint::TokenList | Endpoint::Upcoming | Endpoint::Investors => {
                        return Err(format!("{endpoint} is not available per token"));
                    }
                };
                // A token with the slug `upcoming` would have the path of the endpoint `upcoming`.
                check_slug(token.as_str(), if route == EndpointRoute::UnlockEvents { &["upcoming"] } else { &[] })?;
                route
            }
        })
    }

    /// Returns the known versions, newest first.
    pub fn versions(self) -> &'static [u8] {
        self.endpoint().versions()
    }

    /// Returns the versions that `auto` tries. Every endpoint has at least two.
    pub fn newest_and_next(self) -> (u8, u8) {
        (self.versions()[0], self.versions()[1])
    }

    /// Returns the config key and the configured version.
    pub fn configured(self, source: &SourceSettings) -> (&'static str, EndpointVersion) {
        (self.endpoint().as_str(), source.version(self.endpoint()))
    }

    fn endpoint(self) -> Endpoint {
        match self {
            EndpointRoute::TokenList => Endpoint::TokenList,
            EndpointRoute::Upcoming => Endpoint::Upcoming,
            EndpointRoute::UnlockEvents => Endpoint::UnlockEvents,
            EndpointRoute::Burn => Endpoint::Burn,
            EndpointRoute::Buyback => Endpoint::Buyback,
            EndpointRoute::Allocations => Endpoint::Allocations,
            EndpointRoute::DailyEmission => Endpoint::DailyEmission,
            EndpointRoute::WeeklyEmission => Endpoint::WeeklyEmission,
            EndpointRoute::InvestorList | EndpointRoute::InvestorDetail => Endpoint::Investors,
        }
    }

    pub const ALL: [EndpointRoute; EndpointRoute::COUNT] = [
        EndpointRoute::TokenList,
        EndpointRoute::Upcoming,
        EndpointRoute::UnlockEvents,
        EndpointRoute::Burn,
        EndpointRoute::Buyback,
        EndpointRoute::Allocations,
        EndpointRoute::DailyEmission,
        EndpointRoute::WeeklyEmission,
        EndpointRoute::InvestorList,
        EndpointRoute::InvestorDetail,
    ];

    /// Returns the base URL, path, and parameters of a request in a version. If the endpoint accepts dates, always sends both, since the
    /// defaults of the versions differ. Weekly emission uses the older base URL, with dates extended to whole weeks.
    pub fn target(self, request: &PollRequest, version: u8) -> RequestTarget {
        let newest = version >= 5;
        let mut path = vec![format!("v{version}")];
        let mut query = Vec::new();
        let words: &[&str] = match self {
            EndpointRoute::TokenList => &["token", "list"],
            EndpointRoute::Upcoming => &["unlock", "events", "upcoming"],
            EndpointRoute::UnlockEvents => &["unlock", "events"],
            EndpointRoute::Burn => &["burn"],
            EndpointRoute::Buyback => &["buyback"],
            EndpointRoute::Allocations => &["allocations"],
            EndpointRoute::DailyEmission => &["daily-emission"],
            EndpointRoute::WeeklyEmission => &["emission"],
            EndpointRoute::InvestorList => &["fundraising", "investors", "list"],
            EndpointRoute::InvestorDetail => &["fundraising", "investors"],
        };
        path.extend(words.iter().map(|word| (*word).to_owned()));
        match request {
            PollRequest::TokenList | PollRequest::Investors => {}
            PollRequest::Investor { id } => path.push(id.clone()),
            PollRequest::Upcoming { start, end } => {
                let names = if newest { ("start", "end") } else { ("minUnlockDate", "maxUnlockDate") };
                query.extend([(names.0, start.to_string()), (names.1, end.to_string())]);
            }
            PollRequest::Token { token, start, end, .. } => {
                if newest || matches!(self, EndpointRoute::Burn | EndpointRoute::Buyback) {
                    path.push(token.as_str().to_owned());
                } else {
                    query.push(("tokenId", token.as_str().to_owned()));
                }
                if self != EndpointRoute::Allocations {
                    let (start, end) =
                        if self == EndpointRoute::WeeklyEmission { whole_weeks(*start, *end) } else { (*start, *end) };
                    query.extend([("start", start.to_string()), ("end", end.to_string())]);
                }
            }
        }
        let is_paged = newest
            && matches!(
                self,
                EndpointRoute::Upcoming
                    | EndpointRoute::UnlockEvents
                    | EndpointRoute::DailyEmission
                    | EndpointRoute::InvestorList
            );
        let is_list = !matches!(
            self,
            EndpointRoute::Burn | EndpointRoute::Buyback | EndpointRoute::Allocations | EndpointRoute::InvestorDetail
        );
        let base = if self == EndpointRoute::WeeklyEmission { BaseAddress::Legacy } else { BaseAddress::Current };
        RequestTarget { base, path, query, is_paged, is_list }
    }
}

/// Returns the path of an endpoint in its newest version, for documentation: `/v5/burn/{token}`.
pub fn newest_path(endpoint: Endpoint) -> String {
    let (start, end) = (NaiveDate::default(), NaiveDate::default());
    let request = match endpoint {
        Endpoint::TokenList => PollRequest::TokenList,
        Endpoint::Upcoming => PollRequest::Upcoming { start, end },
        Endpoint::Investors => PollRequest::Investors,
        _ => PollRequest::Token { endpoint, token: "{token}".into(), start, end },
    };
    let path = EndpointRoute::of(&request).map(|route| route.target(&request, route.newest_and_next().0).display_path());
    path.unwrap_or_default()
}

/// Extends a window to whole weeks from Sunday to Saturday, which the weekly endpoint requires.
fn whole_weeks(start: NaiveDate, end: NaiveDate) -> (NaiveDate, NaiveDate) {
    let back = u64::from(start.weekday().num_days_from_sunday());
    let ahead = 6 - u64::from(end.weekday().num_days_from_sunday());
    (start.checked_sub_days(Days::new(back)).unwrap_or(start), end.checked_add_days(Days::new(ahead)).unwrap_or(end))
}

/// Rejects slugs that would change the path. Slugs come from the source and from config files.
fn check_slug(slug: &str, taken: &[&str]) -> Result<(), String> {
    let quoted = super::redact::excerpt(slug);
    if slug.trim().is_empty() {
        return Err("the id is empty".into());
    }
    if slug.len() > MAX_SLUG {
        return Err(format!("the id \"{quoted}\" is longer than {MAX_SLUG} bytes"));
    }
    if slug == "." || slug == ".." || taken.contains(&slug) || slug.chars().any(|c| c.is_control() || matches!(c, '/' | '\\')) {
        return Err(format!("\"{quoted}\" is not a valid id"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

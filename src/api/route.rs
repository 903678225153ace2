//! Where a request goes: path and parameters of each endpoint in each version. Pure.

use chrono::{Datelike, Days, NaiveDate};

use super::Request;
use crate::{
    config::{Source, Version},
    supply::Endpoint,
};

/// Longest slug that is asked for, bytes.
const MAX_SLUG: usize = 200;

/// A path family with a sequence of versions of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
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

/// Which of the two base addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Current,
    Legacy,
}

/// One request, spelled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    /// Which server.
    pub base: Base,
    /// Parts of the path, not yet escaped.
    pub path: Vec<String>,
    /// Parameters, not yet escaped.
    pub query: Vec<(&'static str, String)>,
    /// Whether it takes `page` and `pageSize`.
    pub is_paged: bool,
    /// Whether `data` is a list; else it is an object.
    pub is_list: bool,
}

impl Ask {
    /// `/v5/burn/aptos`, for messages: without parameters.
    pub fn shown_path(&self) -> String {
        self.path.iter().fold(String::new(), |path, part| path + "/" + &super::shown::printable(part))
    }
}

impl Route {
    pub const COUNT: usize = 10;

    /// Where a request belongs.
    ///
    /// # Errors
    /// Where no such thing can be asked, with the reason.
    pub fn of(request: &Request) -> Result<Self, String> {
        Ok(match request {
            Request::TokenList => Route::TokenList,
            Request::Upcoming { .. } => Route::Upcoming,
            Request::Investors => Route::InvestorList,
            Request::Investor { id } => {
                check_slug(id, &["list"])?;
                Route::InvestorDetail
            }
            Request::Token { endpoint, token, .. } => {
                let route = match endpoint {
                    Endpoint::UnlockEvents => Route::UnlockEvents,
                    Endpoint::Burn => Route::Burn,
                    Endpoint::Buyback => Route::Buyback,
                    Endpoint::Allocations => Route::Allocations,
                    Endpoint::DailyEmission => Route::DailyEmission,
                    Endpoint::WeeklyEmission => Route::WeeklyEmission,
                    Endpoint::TokenList | Endpoint::Upcoming | Endpoint::Investors => {
                        return Err(format!("{endpoint} is not asked for one token"));
                    }
                };
                // The path of `upcoming` has the shape of a token's path.
                check_slug(token.as_str(), if route == Route::UnlockEvents { &["upcoming"] } else { &[] })?;
                route
            }
        })
    }

    /// Versions that are known, newest first.
    pub fn versions(self) -> &'static [u8] {
        match self {
            Route::TokenList | Route::UnlockEvents => &[5, 4, 3, 2, 1],
            Route::Upcoming | Route::Burn | Route::Buyback | Route::InvestorList | Route::InvestorDetail => &[5, 1],
            Route::Allocations | Route::DailyEmission => &[5, 2, 1],
            Route::WeeklyEmission => &[3, 2, 1],
        }
    }

    /// What `auto` tries: the newest, then the next older one.
    pub fn newest_and_next(self) -> (u8, u8) {
        match self {
            Route::TokenList | Route::UnlockEvents => (5, 4),
            Route::Upcoming | Route::Burn | Route::Buyback | Route::InvestorList | Route::InvestorDetail => (5, 1),
            Route::Allocations | Route::DailyEmission => (5, 2),
            Route::WeeklyEmission => (3, 2),
        }
    }

    /// What the config asks for, with its key.
    pub fn configured(self, source: &Source) -> (&'static str, Version) {
        match self {
            Route::TokenList => ("token_list", source.token_list),
            Route::Upcoming => ("upcoming", source.upcoming),
            Route::UnlockEvents => ("unlock_events", source.unlock_events),
            Route::Burn => ("burn", source.burn),
            Route::Buyback => ("buyback", source.buyback),
            Route::Allocations => ("allocations", source.allocations),
            Route::DailyEmission => ("daily_emission", source.daily_emission),
            Route::WeeklyEmission => ("weekly_emission", source.weekly_emission),
            Route::InvestorList | Route::InvestorDetail => ("investors", source.investors),
        }
    }

    /// All of them.
    pub const ALL: [Route; Route::COUNT] = [
        Route::TokenList,
        Route::Upcoming,
        Route::UnlockEvents,
        Route::Burn,
        Route::Buyback,
        Route::Allocations,
        Route::DailyEmission,
        Route::WeeklyEmission,
        Route::InvestorList,
        Route::InvestorDetail,
    ];

    /// Spells a request out for one version. Wherever dates are taken, both are sent: the defaults of the versions differ.
    pub fn ask(self, request: &Request, version: u8) -> Ask {
        let newest = version >= 5;
        let mut path = vec![format!("v{version}")];
        let mut query = Vec::new();
        let words: &[&str] = match self {
            Route::TokenList => &["token", "list"],
            Route::Upcoming => &["unlock", "events", "upcoming"],
            Route::UnlockEvents => &["unlock", "events"],
            Route::Burn => &["burn"],
            Route::Buyback => &["buyback"],
            Route::Allocations => &["allocations"],
            Route::DailyEmission => &["daily-emission"],
            Route::WeeklyEmission => &["emission"],
            Route::InvestorList => &["fundraising", "investors", "list"],
            Route::InvestorDetail => &["fundraising", "investors"],
        };
        path.extend(words.iter().map(|word| (*word).to_owned()));
        match request {
            Request::TokenList | Request::Investors => {}
            Request::Investor { id } => path.push(id.clone()),
            Request::Upcoming { start, end } => {
                let names = if newest { ("start", "end") } else { ("minUnlockDate", "maxUnlockDate") };
                query.extend([(names.0, start.to_string()), (names.1, end.to_string())]);
            }
            Request::Token { token, start, end, .. } => {
                if newest || matches!(self, Route::Burn | Route::Buyback) {
                    path.push(token.as_str().to_owned());
                } else {
                    query.push(("tokenId", token.as_str().to_owned()));
                }
                if self != Route::Allocations {
                    let (start, end) = if self == Route::WeeklyEmission { whole_weeks(*start, *end) } else { (*start, *end) };
                    query.extend([("start", start.to_string()), ("end", end.to_string())]);
                }
            }
        }
        let is_paged =
            newest && matches!(self, Route::Upcoming | Route::UnlockEvents | Route::DailyEmission | Route::InvestorList);
        let is_list = !matches!(self, Route::Burn | Route::Buyback | Route::Allocations | Route::InvestorDetail);
        let base = if self == Route::WeeklyEmission { Base::Legacy } else { Base::Current };
        Ask { base, path, query, is_paged, is_list }
    }
}

/// The weekly endpoint expects a Sunday and a Saturday: the weeks that hold both days.
fn whole_weeks(start: NaiveDate, end: NaiveDate) -> (NaiveDate, NaiveDate) {
    let back = u64::from(start.weekday().num_days_from_sunday());
    let ahead = 6 - u64::from(end.weekday().num_days_from_sunday());
    (start.checked_sub_days(Days::new(back)).unwrap_or(start), end.checked_add_days(Days::new(ahead)).unwrap_or(end))
}

/// Slugs come from the source and from config files: one that would change the path is never asked for.
fn check_slug(slug: &str, taken: &[&str]) -> Result<(), String> {
    let shown = super::shown::excerpt(slug);
    if slug.trim().is_empty() {
        return Err("an empty id cannot be asked for".into());
    }
    if slug.len() > MAX_SLUG {
        return Err(format!("the id \"{shown}\" is longer than {MAX_SLUG} bytes"));
    }
    if slug == "." || slug == ".." || taken.contains(&slug) || slug.chars().any(|c| c.is_control() || matches!(c, '/' | '\\')) {
        return Err(format!("\"{shown}\" is no id that can be asked for"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().expect("a day")
    }

    fn token(endpoint: Endpoint, id: &str) -> Request {
        Request::Token { endpoint, token: id.into(), start: day("2026-03-03"), end: day("2026-03-10") }
    }

    fn check(request: &Request, version: u8, expected: &str) {
        let ask = Route::of(request).expect("a route").ask(request, version);
        let query = ask.query.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
        let marks = format!("{}{}", if ask.is_list { " list" } else { "" }, if ask.is_paged { " paged" } else { "" });
        let base = if ask.base == Base::Legacy { "legacy:" } else { "" };
        assert_eq!(format!("{base}{}?{query}{marks}", ask.shown_path()), expected);
    }

    #[test]
    fn every_endpoint_has_its_path_in_every_version() {
        let dates = "start=2026-03-03&end=2026-03-10";
        let upcoming = Request::Upcoming { start: day("2026-03-03"), end: day("2026-03-10") };
        check(&Request::TokenList, 5, "/v5/token/list? list");
        check(&Request::TokenList, 4, "/v4/token/list? list");
        check(&upcoming, 5, &format!("/v5/unlock/events/upcoming?{dates} list paged"));
        check(&upcoming, 1, "/v1/unlock/events/upcoming?minUnlockDate=2026-03-03&maxUnlockDate=2026-03-10 list");
        check(&token(Endpoint::UnlockEvents, "aptos"), 5, &format!("/v5/unlock/events/aptos?{dates} list paged"));
        check(&token(Endpoint::UnlockEvents, "aptos"), 4, &format!("/v4/unlock/events?tokenId=aptos&{dates} list"));
        check(&token(Endpoint::Burn, "aptos"), 5, &format!("/v5/burn/aptos?{dates}"));
        check(&token(Endpoint::Burn, "aptos"), 1, &format!("/v1/burn/aptos?{dates}"));
        check(&token(Endpoint::Buyback, "sky"), 1, &format!("/v1/buyback/sky?{dates}"));
        check(&token(Endpoint::Allocations, "aptos"), 5, "/v5/allocations/aptos?");
        check(&token(Endpoint::Allocations, "aptos"), 2, "/v2/allocations?tokenId=aptos");
        check(&token(Endpoint::DailyEmission, "sui"), 5, &format!("/v5/daily-emission/sui?{dates} list paged"));
        check(&token(Endpoint::DailyEmission, "sui"), 2, &format!("/v2/daily-emission?tokenId=sui&{dates} list"));
        check(&token(Endpoint::WeeklyEmission, "sui"), 3, "legacy:/v3/emission?tokenId=sui&start=2026-03-01&end=2026-03-14 list");
        check(&Request::Investors, 5, "/v5/fundraising/investors/list? list paged");
        check(&Request::Investors, 1, "/v1/fundraising/investors/list? list");
        check(&Request::Investor { id: "a16z".into() }, 5, "/v5/fundraising/investors/a16z?");
    }

    #[test]
    fn a_slug_that_would_change_the_path_is_never_asked_for() {
        for slug in ["", " ", ".", "..", "a/b", "..\\x", "a\nb", "upcoming", &"x".repeat(201)] {
            assert!(Route::of(&token(Endpoint::UnlockEvents, slug)).is_err(), "{slug:?}");
        }
        assert!(Route::of(&Request::Investor { id: "list".into() }).is_err());
        assert!(Route::of(&token(Endpoint::Burn, "upcoming")).is_ok());
        assert!(Route::of(&token(Endpoint::TokenList, "aptos")).is_err());
    }

    #[test]
    fn auto_tries_versions_that_are_known() {
        for route in Route::ALL {
            let (newest, next) = route.newest_and_next();
            assert_eq!(route.versions().first(), Some(&newest));
            assert!(route.versions().contains(&next) && next < newest);
        }
    }
}

//! The table of paths, with subject, version, and parameters.

/// The paths of the base URL. A literal segment takes precedence over `{id}`, so `upcoming` is never a token id.
pub const ROUTES: &[ApiRoute] = &[
    route("/v1/token/list", DataSubject::TokenList, 1, NONE),
    route("/v2/token/list", DataSubject::TokenList, 2, NONE),
    route("/v3/token/list", DataSubject::TokenList, 3, NONE),
    route("/v4/token/list", DataSubject::TokenList, 4, NONE),
    route("/v5/token/list", DataSubject::TokenList, 5, &[("tokenId", QueryField::TokenIds)]),
    route("/v1/unlock/events/upcoming", DataSubject::Upcoming, 1, UPCOMING_V1),
    route("/v5/unlock/events/upcoming", DataSubject::Upcoming, 5, UPCOMING_V5),
    route("/v1/unlock/events", DataSubject::UnlockEvents, 1, TOKEN_DATES),
    route("/v2/unlock/events", DataSubject::UnlockEvents, 2, TOKEN_DATES),
    route("/v3/unlock/events", DataSubject::UnlockEvents, 3, TOKEN_DATES),
    route("/v4/unlock/events", DataSubject::UnlockEvents, 4, TOKEN_DATES),
    route("/v5/unlock/events/{id}", DataSubject::UnlockEvents, 5, PAGED),
    route("/v1/daily-emission", DataSubject::DailyEmission, 1, TOKEN_DATES),
    route("/v2/daily-emission", DataSubject::DailyEmission, 2, TOKEN_DATES),
    route("/v5/daily-emission/{id}", DataSubject::DailyEmission, 5, PAGED),
    route("/v1/allocations", DataSubject::Allocations, 1, TOKEN),
    route("/v2/allocations", DataSubject::Allocations, 2, TOKEN),
    route("/v5/allocations/{id}", DataSubject::Allocations, 5, NONE),
    route("/v1/burn/{id}", DataSubject::Burn, 1, DATES),
    route("/v5/burn/{id}", DataSubject::Burn, 5, DATES),
    route("/v1/buyback/{id}", DataSubject::Buyback, 1, DATES),
    route("/v5/buyback/{id}", DataSubject::Buyback, 5, DATES),
    route("/v1/fundraising/investors/list", DataSubject::Investors, 1, NONE),
    route("/v5/fundraising/investors/list", DataSubject::Investors, 5, INVESTORS_V5),
    route("/v1/fundraising/investors/{id}", DataSubject::Investor, 1, INVESTOR),
    route("/v5/fundraising/investors/{id}", DataSubject::Investor, 5, INVESTOR),
    route("/v1/fundraising/token/{id}", DataSubject::TokenFunding, 1, FUNDING),
    route("/v5/fundraising/token/{id}", DataSubject::TokenFunding, 5, FUNDING),
];

/// The additional paths of the legacy base URL.
pub const LEGACY_ROUTES: &[ApiRoute] = &[
    route("/v1/emission", DataSubject::WeeklyEmission, 1, TOKEN_DATES),
    route("/v2/emission", DataSubject::WeeklyEmission, 2, TOKEN_DATES),
    route("/v3/emission", DataSubject::WeeklyEmission, 3, TOKEN_DATES),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataSubject {
    TokenList,
    /// The next event of each token.
    Upcoming,
    UnlockEvents,
    DailyEmission,
    /// Only on the legacy base URL.
    WeeklyEmission,
    Allocations,
    Burn,
    Buyback,
    Investors,
    Investor,
    TokenFunding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryField {
    TokenId,
    TokenIds,
    Start,
    End,
    Page,
    PageSize,
    Standards,
    MinMarketCap,
    MinReleased,
    MinAmount,
    MinValueToCap,
    LeadOnly,
    MinRaised,
    MaxRaised,
}

/// The type of a parameter, for the OpenAPI description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteParameterKind {
    Slug,
    /// Several slugs, separated by commas.
    Slugs,
    FirstDay,
    LastDay,
    Page,
    PageSize,
    /// Categories, separated by commas.
    Standards,
    Number,
    Truth,
}

impl QueryField {
    fn kind(self) -> RouteParameterKind {
        match self {
            QueryField::TokenId => RouteParameterKind::Slug,
            QueryField::TokenIds => RouteParameterKind::Slugs,
            QueryField::Start => RouteParameterKind::FirstDay,
            QueryField::End => RouteParameterKind::LastDay,
            QueryField::Page => RouteParameterKind::Page,
            QueryField::PageSize => RouteParameterKind::PageSize,
            QueryField::Standards => RouteParameterKind::Standards,
            QueryField::LeadOnly => RouteParameterKind::Truth,
            QueryField::MinMarketCap
            | QueryField::MinReleased
            | QueryField::MinAmount
            | QueryField::MinValueToCap
            | QueryField::MinRaised
            | QueryField::MaxRaised => RouteParameterKind::Number,
        }
    }
}

type Parameters = &'static [(&'static str, QueryField)];

#[derive(Clone, Copy, Debug)]
pub struct ApiRoute {
    /// The path in axum's syntax, where `{id}` is a slug.
    pub path: &'static str,
    pub subject: DataSubject,
    pub version: u8,
    pub params: Parameters,
}

impl ApiRoute {
    /// Returns name, kind, and whether it is required, for each parameter.
    pub fn parameters(&self) -> impl Iterator<Item = (&'static str, RouteParameterKind, bool)> {
        self.params.iter().map(|(name, field)| (*name, field.kind(), *field == QueryField::TokenId))
    }

    pub fn is_paged(&self) -> bool {
        self.params.iter().any(|(_, field)| *field == QueryField::Page)
    }
}

const fn route(path: &'static str, subject: DataSubject, version: u8, params: Parameters) -> ApiRoute {
    ApiRoute { path, subject, version, params }
}

const NONE: Parameters = &[];

const DATES: Parameters = &[("start", QueryField::Start), ("end", QueryField::End)];

const TOKEN: Parameters = &[("tokenId", QueryField::TokenId)];

const TOKEN_DATES: Parameters = &[("tokenId", QueryField::TokenId), ("start", QueryField::Start), ("end", QueryField::End)];

const PAGED: Parameters = &[
    ("start", QueryField::Start),
    ("end", QueryField::End),
    ("standardAllocation", QueryField::Standards),
    ("page", QueryField::Page),
    ("pageSize", QueryField::PageSize),
];

const UPCOMING_V1: Parameters = &[
    ("minUnlockDate", QueryField::Start),
    ("maxUnlockDate", QueryField::End),
    ("minMarketCap", QueryField::MinMarketCap),
    ("minReleasedPercentage", QueryField::MinReleased),
    ("minTotalUnlockAmount", QueryField::MinAmount),
    ("minValueToMarketCap", QueryField::MinValueToCap),
    ("standardAllocation", QueryField::Standards),
];

const UPCOMING_V5: Parameters = &[
    ("start", QueryField::Start),
    ("end", QueryField::End),
    ("minMarketCap", QueryField::MinMarketCap),
    ("minReleasedPercentage", QueryField::MinReleased),
    ("minTotalUnlockAmount", QueryField::MinAmount),
    ("minValueToMarketCap", QueryField::MinValueToCap),
    ("standardAllocation", QueryField::Standards),
    ("page", QueryField::Page),
    ("pageSize", QueryField::PageSize),
];

const INVESTORS_V5: Parameters = &[
    ("startLatestFundingDate", QueryField::Start),
    ("endLatestFundingDate", QueryField::End),
    ("page", QueryField::Page),
    ("pageSize", QueryField::PageSize),
];

const INVESTOR: Parameters = &[
    ("isLeadInvestor", QueryField::LeadOnly),
    ("fundingDateMin", QueryField::Start),
    ("fundingDateMax", QueryField::End),
    ("raisedAmountMin", QueryField::MinRaised),
    ("raisedAmountMax", QueryField::MaxRaised),
];

const FUNDING: Parameters = &[
    ("fundingDateMin", QueryField::Start),
    ("fundingDateMax", QueryField::End),
    ("raisedAmountMin", QueryField::MinRaised),
    ("raisedAmountMax", QueryField::MaxRaised),
];

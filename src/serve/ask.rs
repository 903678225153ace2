//! What can be asked: the table of paths with the parameters that each takes, and a question read from a request.
//!
//! A parameter that a path does not take, one given twice, a date that is none, `page=0`: each is refused with a sentence that says
//! what would be right. What comes out is a plain value, equal for equal questions, so that it can be the key of a cache.

use chrono::{Days, NaiveDate, NaiveTime};
use url::form_urlencoded;

use super::Refusal;
use crate::{store::facts::Window, supply::Timestamp};

/// Items on a page where the question does not say.
pub const DEFAULT_PAGE_SIZE: u64 = 50;
/// Most items on a page; more is cut to this, and the answer's `pageSize` says so.
pub const MAX_PAGE_SIZE: u64 = 500;
/// Longest query that is read, bytes.
const MAX_QUERY: usize = 8 * 1024;
/// Longest slug, characters.
pub const MAX_SLUG: usize = 128;

/// What a path is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// Tokens with their flags.
    TokenList,
    /// The next event of each token.
    Upcoming,
    /// A token's schedule.
    UnlockEvents,
    /// Day by day.
    DailyEmission,
    /// Week by week; only on the older base address.
    WeeklyEmission,
    /// Allocation table.
    Allocations,
    /// Burns.
    Burn,
    /// Buybacks.
    Buyback,
    /// Investors.
    Investors,
    /// One investor with its rounds.
    Investor,
    /// Rounds of one token.
    TokenFunding,
}

/// A parameter of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
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

/// What a parameter holds, for the description of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An id.
    Slug,
    /// Several, with commas between them.
    Slugs,
    /// A date, the first that counts.
    FirstDay,
    /// A date, the last that counts.
    LastDay,
    /// A whole number from 1.
    Page,
    /// A whole number from 1.
    PageSize,
    /// Words for categories, with commas between them.
    Standards,
    /// Any number.
    Number,
    /// `true` or `false`.
    Truth,
}

impl Field {
    fn kind(self) -> Kind {
        match self {
            Field::TokenId => Kind::Slug,
            Field::TokenIds => Kind::Slugs,
            Field::Start => Kind::FirstDay,
            Field::End => Kind::LastDay,
            Field::Page => Kind::Page,
            Field::PageSize => Kind::PageSize,
            Field::Standards => Kind::Standards,
            Field::LeadOnly => Kind::Truth,
            Field::MinMarketCap
            | Field::MinReleased
            | Field::MinAmount
            | Field::MinValueToCap
            | Field::MinRaised
            | Field::MaxRaised => Kind::Number,
        }
    }
}

type Params = &'static [(&'static str, Field)];

/// A path with its version and the parameters that it takes.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// As axum reads it: `{id}` stands for a slug.
    pub path: &'static str,
    /// What it answers.
    pub what: What,
    /// In which version.
    pub version: u8,
    params: Params,
}

impl Route {
    /// The parameters of the query, with what each holds and whether it must be there.
    pub fn parameters(&self) -> impl Iterator<Item = (&'static str, Kind, bool)> {
        self.params.iter().map(|(name, field)| (*name, field.kind(), *field == Field::TokenId))
    }

    /// Whether its answers have pages.
    #[must_use]
    pub fn is_paged(&self) -> bool {
        self.params.iter().any(|(_, field)| *field == Field::Page)
    }
}

const fn route(path: &'static str, what: What, version: u8, params: Params) -> Route {
    Route { path, what, version, params }
}

const NONE: Params = &[];
const DATES: Params = &[("start", Field::Start), ("end", Field::End)];
const TOKEN: Params = &[("tokenId", Field::TokenId)];
const TOKEN_DATES: Params = &[("tokenId", Field::TokenId), ("start", Field::Start), ("end", Field::End)];
const PAGED: Params = &[
    ("start", Field::Start),
    ("end", Field::End),
    ("standardAllocation", Field::Standards),
    ("page", Field::Page),
    ("pageSize", Field::PageSize),
];
const UPCOMING_V1: Params = &[
    ("minUnlockDate", Field::Start),
    ("maxUnlockDate", Field::End),
    ("minMarketCap", Field::MinMarketCap),
    ("minReleasedPercentage", Field::MinReleased),
    ("minTotalUnlockAmount", Field::MinAmount),
    ("minValueToMarketCap", Field::MinValueToCap),
    ("standardAllocation", Field::Standards),
];
const UPCOMING_V5: Params = &[
    ("start", Field::Start),
    ("end", Field::End),
    ("minMarketCap", Field::MinMarketCap),
    ("minReleasedPercentage", Field::MinReleased),
    ("minTotalUnlockAmount", Field::MinAmount),
    ("minValueToMarketCap", Field::MinValueToCap),
    ("standardAllocation", Field::Standards),
    ("page", Field::Page),
    ("pageSize", Field::PageSize),
];
const INVESTORS_V5: Params = &[
    ("startLatestFundingDate", Field::Start),
    ("endLatestFundingDate", Field::End),
    ("page", Field::Page),
    ("pageSize", Field::PageSize),
];
const INVESTOR: Params = &[
    ("isLeadInvestor", Field::LeadOnly),
    ("fundingDateMin", Field::Start),
    ("fundingDateMax", Field::End),
    ("raisedAmountMin", Field::MinRaised),
    ("raisedAmountMax", Field::MaxRaised),
];
const FUNDING: Params = &[
    ("fundingDateMin", Field::Start),
    ("fundingDateMax", Field::End),
    ("raisedAmountMin", Field::MinRaised),
    ("raisedAmountMax", Field::MaxRaised),
];

/// Every path of the base address. A literal segment wins over `{id}`, so `upcoming` is never taken for a token.
pub const ROUTES: &[Route] = &[
    route("/v1/token/list", What::TokenList, 1, NONE),
    route("/v2/token/list", What::TokenList, 2, NONE),
    route("/v3/token/list", What::TokenList, 3, NONE),
    route("/v4/token/list", What::TokenList, 4, NONE),
    route("/v5/token/list", What::TokenList, 5, &[("tokenId", Field::TokenIds)]),
    route("/v1/unlock/events/upcoming", What::Upcoming, 1, UPCOMING_V1),
    route("/v5/unlock/events/upcoming", What::Upcoming, 5, UPCOMING_V5),
    route("/v1/unlock/events", What::UnlockEvents, 1, TOKEN_DATES),
    route("/v2/unlock/events", What::UnlockEvents, 2, TOKEN_DATES),
    route("/v3/unlock/events", What::UnlockEvents, 3, TOKEN_DATES),
    route("/v4/unlock/events", What::UnlockEvents, 4, TOKEN_DATES),
    route("/v5/unlock/events/{id}", What::UnlockEvents, 5, PAGED),
    route("/v1/daily-emission", What::DailyEmission, 1, TOKEN_DATES),
    route("/v2/daily-emission", What::DailyEmission, 2, TOKEN_DATES),
    route("/v5/daily-emission/{id}", What::DailyEmission, 5, PAGED),
    route("/v1/allocations", What::Allocations, 1, TOKEN),
    route("/v2/allocations", What::Allocations, 2, TOKEN),
    route("/v5/allocations/{id}", What::Allocations, 5, NONE),
    route("/v1/burn/{id}", What::Burn, 1, DATES),
    route("/v5/burn/{id}", What::Burn, 5, DATES),
    route("/v1/buyback/{id}", What::Buyback, 1, DATES),
    route("/v5/buyback/{id}", What::Buyback, 5, DATES),
    route("/v1/fundraising/investors/list", What::Investors, 1, NONE),
    route("/v5/fundraising/investors/list", What::Investors, 5, INVESTORS_V5),
    route("/v1/fundraising/investors/{id}", What::Investor, 1, INVESTOR),
    route("/v5/fundraising/investors/{id}", What::Investor, 5, INVESTOR),
    route("/v1/fundraising/token/{id}", What::TokenFunding, 1, FUNDING),
    route("/v5/fundraising/token/{id}", What::TokenFunding, 5, FUNDING),
];

/// What the older base address has beside them.
pub const LEGACY_ROUTES: &[Route] = &[
    route("/v1/emission", What::WeeklyEmission, 1, TOKEN_DATES),
    route("/v2/emission", What::WeeklyEmission, 2, TOKEN_DATES),
    route("/v3/emission", What::WeeklyEmission, 3, TOKEN_DATES),
];

/// A recipient category, as queries name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standard {
    /// `community`
    Community,
    /// `founderTeam`
    FounderTeam,
    /// `privateInvestors`
    PrivateInvestors,
    /// `publicInvestors`
    PublicInvestors,
    /// `reserve`
    Reserve,
    /// `others`: all that is none of these.
    Others,
}

impl Standard {
    /// The words of queries.
    pub const WORDS: [(&'static str, Standard); 6] = [
        ("community", Standard::Community),
        ("founderTeam", Standard::FounderTeam),
        ("privateInvestors", Standard::PrivateInvestors),
        ("publicInvestors", Standard::PublicInvestors),
        ("reserve", Standard::Reserve),
        ("others", Standard::Others),
    ];

    /// The category of a `standardAllocationName`.
    #[must_use]
    pub fn of(name: Option<&str>) -> Self {
        match name.unwrap_or_default() {
            "Community" => Standard::Community,
            "Founder / Team" => Standard::FounderTeam,
            "Private Investors" => Standard::PrivateInvestors,
            "Public Investors" => Standard::PublicInvestors,
            "Reserve" | "Reserved" => Standard::Reserve,
            _ => Standard::Others,
        }
    }
}

/// A finite number that can be compared for equality, since it came from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number(u64);

impl Number {
    /// The number.
    #[must_use]
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Page {
    /// From 1.
    pub number: u64,
    /// Items, at most [`MAX_PAGE_SIZE`].
    pub size: u64,
}

/// A question. Fields that its path does not take are empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// About what.
    pub what: What,
    /// In which version.
    pub version: u8,
    /// Token or investor; empty for lists.
    pub id: String,
    /// Tokens of the list that are wanted; none for all.
    pub ids: Option<Vec<String>>,
    /// First day.
    pub start: Option<NaiveDate>,
    /// Last day, inclusive.
    pub end: Option<NaiveDate>,
    /// Set where the path has pages.
    pub page: Option<Page>,
    /// Categories that are wanted, sorted; empty for all.
    pub standards: Vec<Standard>,
    /// Least market cap, USD.
    pub min_market_cap: Option<Number>,
    /// Least share of the supply that is released, percent.
    pub min_released: Option<Number>,
    /// Least amount of the event, tokens.
    pub min_amount: Option<Number>,
    /// Least value of the event, percent of the market cap.
    pub min_value_to_cap: Option<Number>,
    /// Only rounds that the investor led, or only those that it did not.
    pub lead: Option<bool>,
    /// Least amount raised, USD.
    pub min_raised: Option<Number>,
    /// Greatest amount raised, USD.
    pub max_raised: Option<Number>,
}

impl Ask {
    /// Reads a question.
    ///
    /// # Errors
    /// A refusal with status 400 and a sentence on what is wrong.
    pub fn read(route: &Route, id: Option<&str>, query: &str) -> Result<Self, Refusal> {
        if query.len() > MAX_QUERY {
            return Err(Refusal::bad(format!("the query is longer than {MAX_QUERY} bytes")));
        }
        let mut ask = Ask {
            what: route.what,
            version: route.version,
            id: id.map(slug).transpose()?.unwrap_or_default(),
            ids: None,
            start: None,
            end: None,
            page: None,
            standards: Vec::new(),
            min_market_cap: None,
            min_released: None,
            min_amount: None,
            min_value_to_cap: None,
            lead: None,
            min_raised: None,
            max_raised: None,
        };
        let (mut number, mut size) = (1, DEFAULT_PAGE_SIZE);
        let mut seen: Vec<&str> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let Some((name, field)) = route.params.iter().find(|(known, _)| *known == name) else {
                return Err(unknown(route, &name));
            };
            if seen.contains(name) {
                return Err(Refusal::bad(format!("{name} is given twice")));
            }
            seen.push(name);
            match field {
                Field::TokenId => ask.id = slug(&value)?,
                Field::TokenIds => ask.ids = Some(slugs(name, &value)?),
                Field::Start => ask.start = Some(date(name, &value)?),
                Field::End => ask.end = Some(date(name, &value)?),
                Field::Page => number = whole(name, &value)?,
                Field::PageSize => size = whole(name, &value)?.min(MAX_PAGE_SIZE),
                Field::Standards => ask.standards = standards(&value)?,
                Field::MinMarketCap => ask.min_market_cap = Some(decimal(name, &value)?),
                Field::MinReleased => ask.min_released = Some(decimal(name, &value)?),
                Field::MinAmount => ask.min_amount = Some(decimal(name, &value)?),
                Field::MinValueToCap => ask.min_value_to_cap = Some(decimal(name, &value)?),
                Field::LeadOnly => ask.lead = Some(truth(name, &value)?),
                Field::MinRaised => ask.min_raised = Some(decimal(name, &value)?),
                Field::MaxRaised => ask.max_raised = Some(decimal(name, &value)?),
            }
        }
        if route.params.iter().any(|(_, field)| *field == Field::TokenId) && ask.id.is_empty() {
            return Err(Refusal::bad("tokenId is missing: add ?tokenId=<slug>, as the token list names it"));
        }
        if let (Some(start), Some(end)) = (ask.start, ask.end)
            && end < start
        {
            return Err(Refusal::bad(format!("the end {end} lies before the start {start}")));
        }
        if route.is_paged() {
            ask.page = Some(Page { number, size });
        }
        Ok(ask)
    }

    /// The instants that the days stand for, both ends included.
    #[must_use]
    pub fn window(&self) -> Window {
        let midnight = |date: NaiveDate| date.and_time(NaiveTime::MIN).and_utc();
        Window {
            from: self.start.map(midnight),
            until: self.end.and_then(|end| end.checked_add_days(Days::new(1))).map(midnight),
        }
    }

    /// Whether an instant lies in the window; one that is unknown lies only where there is no window.
    #[must_use]
    pub fn includes(&self, at: Option<Timestamp>) -> bool {
        let window = self.window();
        match at {
            Some(at) => window.from.is_none_or(|from| at >= from) && window.until.is_none_or(|until| at < until),
            None => window.from.is_none() && window.until.is_none(),
        }
    }

    /// Whether a recipient with this `standardAllocationName` is wanted.
    #[must_use]
    pub fn wants(&self, standard_allocation_name: Option<&str>) -> bool {
        self.standards.is_empty() || self.standards.contains(&Standard::of(standard_allocation_name))
    }
}

/// What came from outside, short enough to be shown.
pub fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(80).collect()
}

fn unknown(route: &Route, name: &str) -> Refusal {
    let known: Vec<&str> = route.params.iter().map(|(known, _)| *known).collect();
    let takes = if known.is_empty() { "no parameter".to_owned() } else { known.join(", ") };
    Refusal::bad(format!("unknown parameter \"{}\": {} takes {takes}", shown(name), route.path))
}

/// A slug from outside.
fn slug(text: &str) -> Result<String, Refusal> {
    if text.is_empty() || text.chars().count() > MAX_SLUG || text.chars().any(char::is_control) {
        return Err(Refusal::bad(format!("\"{}\" is not an id: ids are slugs of at most {MAX_SLUG} characters", shown(text))));
    }
    Ok(text.to_owned())
}

/// Ids with commas between them, sorted, so that equal questions are equal.
fn slugs(name: &str, text: &str) -> Result<Vec<String>, Refusal> {
    let ids = text.split(',').map(str::trim).filter(|id| !id.is_empty());
    let mut ids: Vec<String> = ids.map(slug).collect::<Result<_, _>>()?;
    if ids.is_empty() {
        return Err(Refusal::bad(format!("{name} names no token: leave it out for all")));
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

fn date(name: &str, text: &str) -> Result<NaiveDate, Refusal> {
    let plain = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let date = if plain { NaiveDate::parse_from_str(text, "%Y-%m-%d").ok() } else { None };
    date.ok_or_else(|| Refusal::bad(format!("{name} is \"{}\", not a date: write it as YYYY-MM-DD", shown(text))))
}

fn whole(name: &str, text: &str) -> Result<u64, Refusal> {
    let number = if text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None };
    number
        .filter(|number| *number >= 1)
        .ok_or_else(|| Refusal::bad(format!("{name} is \"{}\": it must be a whole number from 1", shown(text))))
}

fn decimal(name: &str, text: &str) -> Result<Number, Refusal> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number
        .map(|number| Number(number.to_bits()))
        .ok_or_else(|| Refusal::bad(format!("{name} is \"{}\", not a number", shown(text))))
}

fn truth(name: &str, text: &str) -> Result<bool, Refusal> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Refusal::bad(format!("{name} is \"{}\": it must be true or false", shown(text)))),
    }
}

fn standards(text: &str) -> Result<Vec<Standard>, Refusal> {
    let mut standards = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let Some((_, standard)) = Standard::WORDS.iter().find(|(known, _)| *known == word) else {
            let known = Standard::WORDS.map(|(known, _)| known).join(", ");
            return Err(Refusal::bad(format!("standardAllocation has \"{}\": it takes {known}", shown(word))));
        };
        standards.push(*standard);
    }
    if standards.is_empty() {
        return Err(Refusal::bad("standardAllocation names no category: leave it out for all"));
    }
    standards.sort_unstable();
    standards.dedup();
    Ok(standards)
}

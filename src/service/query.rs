//! A question about the data, read from a request.
//!
//! A parameter that a path does not take, one given twice, a date that is none, `page=0`: each is refused with a sentence that says
//! what would be right. What comes out is a plain value, equal for equal questions, so that it can be the key of a cache.

mod value;

use chrono::{Days, NaiveDate, NaiveTime};
use url::form_urlencoded;

use crate::refusal::{Refusal, redact};
use crate::route::{ApiRoute, DataSubject, QueryField};
use model::Timestamp;
use store::facts::DateRange;
use value::{date, decimal, slug, slugs, standards, truth, whole};

/// Items on a page where the question does not say.
pub const DEFAULT_PAGE_SIZE: u64 = 50;
/// Most items on a page; more is cut to this, and the answer's `pageSize` says so.
pub const MAX_PAGE_SIZE: u64 = 500;
/// Longest query that is read, bytes.
const MAX_QUERY: usize = 8 * 1024;
/// Longest slug, characters.
pub const MAX_SLUG: usize = 128;

/// A recipient category, as queries name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StandardAllocation {
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

impl StandardAllocation {
    /// The words of queries.
    pub const WORDS: [(&'static str, StandardAllocation); 6] = [
        ("community", StandardAllocation::Community),
        ("founderTeam", StandardAllocation::FounderTeam),
        ("privateInvestors", StandardAllocation::PrivateInvestors),
        ("publicInvestors", StandardAllocation::PublicInvestors),
        ("reserve", StandardAllocation::Reserve),
        ("others", StandardAllocation::Others),
    ];

    /// The category of a `standardAllocationName`.
    pub fn of(name: Option<&str>) -> Self {
        match name.unwrap_or_default() {
            "Community" => StandardAllocation::Community,
            "Founder / Team" => StandardAllocation::FounderTeam,
            "Private Investors" => StandardAllocation::PrivateInvestors,
            "Public Investors" => StandardAllocation::PublicInvestors,
            "Reserve" | "Reserved" => StandardAllocation::Reserve,
            _ => StandardAllocation::Others,
        }
    }
}

/// A finite number that can be compared for equality, since it came from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FiniteNumber(u64);

impl FiniteNumber {
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageRequest {
    /// From 1.
    pub number: u64,
    /// Items, at most [`MAX_PAGE_SIZE`].
    pub size: u64,
}

/// A question. Fields that its path does not take are empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataQuery {
    pub subject: DataSubject,
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
    pub page: Option<PageRequest>,
    /// Categories that are wanted, sorted; empty for all.
    pub standards: Vec<StandardAllocation>,
    /// Least market cap, USD.
    pub min_market_cap: Option<FiniteNumber>,
    /// Least share of the supply that is released, percent.
    pub min_released: Option<FiniteNumber>,
    /// Least amount of the event, tokens.
    pub min_amount: Option<FiniteNumber>,
    /// Least value of the event, percent of the market cap.
    pub min_value_to_cap: Option<FiniteNumber>,
    /// Only rounds that the investor led, or only those that it did not.
    pub lead: Option<bool>,
    /// Least amount raised, USD.
    pub min_raised: Option<FiniteNumber>,
    /// Greatest amount raised, USD.
    pub max_raised: Option<FiniteNumber>,
}

impl DataQuery {
    /// Reads a question. Fails with a refusal with status 400 and a sentence on what is wrong.
    pub fn read(route: &ApiRoute, id: Option<&str>, text: &str) -> Result<Self, Refusal> {
        if text.len() > MAX_QUERY {
            return Err(Refusal::bad(format!("the query is longer than {MAX_QUERY} bytes")));
        }
        let mut query = DataQuery {
            subject: route.subject,
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
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            let Some((name, field)) = route.params.iter().find(|(known, _)| *known == name) else {
                return Err(unknown(route, &name));
            };
            if seen.contains(name) {
                return Err(Refusal::bad(format!("{name} is given twice")));
            }
            seen.push(name);
            match field {
                QueryField::TokenId => query.id = slug(&value)?,
                QueryField::TokenIds => query.ids = Some(slugs(name, &value)?),
                QueryField::Start => query.start = Some(date(name, &value)?),
                QueryField::End => query.end = Some(date(name, &value)?),
                QueryField::Page => number = whole(name, &value)?,
                QueryField::PageSize => size = whole(name, &value)?.min(MAX_PAGE_SIZE),
                QueryField::Standards => query.standards = standards(&value)?,
                QueryField::MinMarketCap => query.min_market_cap = Some(decimal(name, &value)?),
                QueryField::MinReleased => query.min_released = Some(decimal(name, &value)?),
                QueryField::MinAmount => query.min_amount = Some(decimal(name, &value)?),
                QueryField::MinValueToCap => query.min_value_to_cap = Some(decimal(name, &value)?),
                QueryField::LeadOnly => query.lead = Some(truth(name, &value)?),
                QueryField::MinRaised => query.min_raised = Some(decimal(name, &value)?),
                QueryField::MaxRaised => query.max_raised = Some(decimal(name, &value)?),
            }
        }
        if route.params.iter().any(|(_, field)| *field == QueryField::TokenId) && query.id.is_empty() {
            return Err(Refusal::bad("tokenId is missing: add ?tokenId=<slug>, as the token list names it"));
        }
        if let (Some(start), Some(end)) = (query.start, query.end)
            && end < start
        {
            return Err(Refusal::bad(format!("the end {end} lies before the start {start}")));
        }
        if route.is_paged() {
            query.page = Some(PageRequest { number, size });
        }
        Ok(query)
    }

    /// The instants that the days stand for, both ends included.
    pub fn window(&self) -> DateRange {
        let midnight = |date: NaiveDate| date.and_time(NaiveTime::MIN).and_utc();
        DateRange {
            from: self.start.map(midnight),
            until: self.end.and_then(|end| end.checked_add_days(Days::new(1))).map(midnight),
        }
    }

    /// Whether an instant lies in the window; one that is unknown lies only where there is no window.
    pub fn includes(&self, at: Option<Timestamp>) -> bool {
        let window = self.window();
        match at {
            Some(at) => window.from.is_none_or(|from| at >= from) && window.until.is_none_or(|until| at < until),
            None => window.from.is_none() && window.until.is_none(),
        }
    }

    /// Whether a recipient with this `standardAllocationName` is wanted.
    pub fn wants(&self, standard_allocation_name: Option<&str>) -> bool {
        self.standards.is_empty() || self.standards.contains(&StandardAllocation::of(standard_allocation_name))
    }
}

fn unknown(route: &ApiRoute, name: &str) -> Refusal {
    let known: Vec<&str> = route.params.iter().map(|(known, _)| *known).collect();
    let takes = if known.is_empty() { "no parameter".to_owned() } else { known.join(", ") };
    Refusal::bad(format!("unknown parameter \"{}\": {} takes {takes}", redact(name), route.path))
}

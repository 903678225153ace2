//! Parses the query of a request.
//!
//! Rejects unknown and repeated parameters and invalid values with an error that lists the valid ones. The result is equal for equivalent
//! queries, so it can be a cache key.

mod value;

use chrono::{Days, NaiveDate, NaiveTime};
use url::form_urlencoded;

use crate::refusal::{Refusal, redact};
use crate::route::{ApiRoute, DataSubject, QueryField};
use model::Timestamp;
use store::facts::DateRange;
use value::{date, decimal, slug, slugs, standards, truth, whole};

pub const DEFAULT_PAGE_SIZE: u64 = 50;
/// The maximum number of items per page. A larger value is reduced to this.
pub const MAX_PAGE_SIZE: u64 = 500;
/// The length limit of a query string, in bytes.
const MAX_QUERY: usize = 8 * 1024;
/// The length limit of a slug, in characters.
pub const MAX_SLUG: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StandardAllocation {
    Community,
    FounderTeam,
    PrivateInvestors,
    PublicInvestors,
    Reserve,
    /// Also for an unknown or missing category.
    Others,
}

impl StandardAllocation {
    /// The values of the parameter.
    pub const WORDS: [(&'static str, StandardAllocation); 6] = [
        ("community", StandardAllocation::Community),
        ("founderTeam", StandardAllocation::FounderTeam),
        ("privateInvestors", StandardAllocation::PrivateInvestors),
        ("publicInvestors", StandardAllocation::PublicInvestors),
        ("reserve", StandardAllocation::Reserve),
        ("others", StandardAllocation::Others),
    ];

    /// Returns the category of a `standardAllocationName`.
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

/// A finite number, compared by its bits so that it can be part of a cache key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FiniteNumber(u64);

impl FiniteNumber {
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageRequest {
    /// The page number, from 1.
    pub number: u64,
    /// At most [`MAX_PAGE_SIZE`].
    pub size: u64,
}

/// The query of a request. Parameters that the path does not have are empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataQuery {
    pub subject: DataSubject,
    pub version: u8,
    /// The id of the token or investor. Empty for lists.
    pub id: String,
    /// The requested tokens, sorted. `None` for all tokens.
    pub ids: Option<Vec<String>>,
    pub start: Option<NaiveDate>,
    /// The last day, inclusive.
    pub end: Option<NaiveDate>,
    /// `None` if the path has no pages.
    pub page: Option<PageRequest>,
    /// The requested categories, sorted. Empty for all categories.
    pub standards: Vec<StandardAllocation>,
    /// In USD.
    pub min_market_cap: Option<FiniteNumber>,
    /// The unlocked share of max supply, in percent.
    pub min_released: Option<FiniteNumber>,
    /// The amount of the event, in tokens.
    pub min_amount: Option<FiniteNumber>,
    /// The value of the event, in percent of market cap.
    pub min_value_to_cap: Option<FiniteNumber>,
    /// `true` for funding rounds that the investor led, `false` for the others.
    pub lead: Option<bool>,
    /// In USD.
    pub min_raised: Option<FiniteNumber>,
    /// In USD.
    pub max_raised: Option<FiniteNumber>,
}

impl DataQuery {
    /// Parses a query. Errors have status 400.
    pub fn read(route: &ApiRoute, id: Option<&str>, text: &str) -> Result<Self, Refusal> {
        if text.len() > MAX_QUERY {
            return Err(Refusal::bad_request(format!("the query is longer than {MAX_QUERY} bytes")));
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
                return Err(Refusal::bad_request(format!("{name} must not be repeated")));
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
            return Err(Refusal::bad_request("tokenId is missing: add ?tokenId=<slug> with a slug from the token list"));
        }
        if let (Some(start), Some(end)) = (query.start, query.end)
            && end < start
        {
            return Err(Refusal::bad_request(format!("the end {end} is before the start {start}")));
        }
        if route.is_paged() {
            query.page = Some(PageRequest { number, size });
        }
        Ok(query)
    }

    /// Returns the instants of the requested days, both inclusive.
    pub fn window(&self) -> DateRange {
        let midnight = |date: NaiveDate| date.and_time(NaiveTime::MIN).and_utc();
        DateRange {
            from: self.start.map(midnight),
            until: self.end.and_then(|end| end.checked_add_days(Days::new(1))).map(midnight),
        }
    }

    /// Returns whether an instant is within the window. An unknown instant is only within an unlimited window.
    pub fn includes(&self, at: Option<Timestamp>) -> bool {
        let window = self.window();
        match at {
            Some(at) => window.from.is_none_or(|from| at >= from) && window.until.is_none_or(|until| at < until),
            None => window.from.is_none() && window.until.is_none(),
        }
    }

    /// Returns whether the category of this `standardAllocationName` is requested.
    pub fn wants(&self, standard_allocation_name: Option<&str>) -> bool {
        self.standards.is_empty() || self.standards.contains(&StandardAllocation::of(standard_allocation_name))
    }
}

fn unknown(route: &ApiRoute, name: &str) -> Refusal {
    let known: Vec<&str> = route.params.iter().map(|(known, _)| *known).collect();
    let takes = if known.is_empty() { "no parameters".to_owned() } else { known.join(", ") };
    Refusal::bad_request(format!("unknown parameter \"{}\": {} accepts {takes}", redact(name), route.path))
}

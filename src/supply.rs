//! The words of the domain: ids, records, the interval a date stands for, what is known of a token.
//!
//! Amounts are tokens, values USD, ratios percent, times UTC. Nothing here reads a clock, a file or a socket.

use std::{fmt, sync::Arc};

use chrono::{DateTime, Datelike, Days, Months, NaiveTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::wire;

/// An instant, UTC.
pub type Timestamp = DateTime<Utc>;

/// Declares an id: a text with a meaning.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl<T: Into<Arc<str>>> From<T> for $name {
            fn from(text: T) -> Self {
                Self(text.into())
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id! {
    /// Slug of a token, as the token list names it.
    TokenId
}
text_id! {
    /// Key of a record within its token and resource. An unlock event keeps its key when it moves.
    RecordKey
}
text_id! {
    /// A rule: its `id` where it has one, else its `alert` name.
    RuleId
}
text_id! {
    /// An alert: derived from rule, subject and episode, so that the same fact written twice is one row.
    AlertId
}
text_id! {
    /// Something to tell of an alert: derived from the alert and its transition.
    NoticeId
}
text_id! {
    /// Name of a receiver in the config.
    ReceiverName
}

/// A row of the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeliveryId(pub i64);

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a record is: the first word of a rule's `on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// An unlock event.
    Unlock,
    /// A burn.
    Burn,
    /// A buyback.
    Buyback,
    /// The emission of a day or a week.
    Emission,
    /// A row of the allocation table.
    Allocation,
    /// A funding round.
    Funding,
}

impl Resource {
    /// All of them.
    pub const ALL: [Resource; 6] =
        [Resource::Unlock, Resource::Burn, Resource::Buyback, Resource::Emission, Resource::Allocation, Resource::Funding];

    /// The word in rules, JSON and tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Resource::Unlock => "unlock",
            Resource::Burn => "burn",
            Resource::Buyback => "buyback",
            Resource::Emission => "emission",
            Resource::Allocation => "allocation",
            Resource::Funding => "funding",
        }
    }

    /// The resource of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|resource| resource.as_str() == word)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What the daemon asks for on a schedule: the keys of `[schedule]` and the label `endpoint` of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// All tokens with their flags and `lastUpdatedDate`.
    TokenList,
    /// The next event of each token.
    Upcoming,
    /// The schedule of one token.
    UnlockEvents,
    /// Burns of one token.
    Burn,
    /// Buybacks of one token.
    Buyback,
    /// Allocation table of one token.
    Allocations,
    /// Daily emission of one token.
    DailyEmission,
    /// Weekly emission of one token, from the older base address.
    WeeklyEmission,
    /// The investor list, and the detail of those whose latest round is new.
    Investors,
}

impl Endpoint {
    /// All of them, in the order in which a single cycle asks.
    pub const ALL: [Endpoint; 9] = [
        Endpoint::TokenList,
        Endpoint::Upcoming,
        Endpoint::UnlockEvents,
        Endpoint::Burn,
        Endpoint::Buyback,
        Endpoint::Allocations,
        Endpoint::DailyEmission,
        Endpoint::WeeklyEmission,
        Endpoint::Investors,
    ];

    /// The word in config, metrics and tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Endpoint::TokenList => "token_list",
            Endpoint::Upcoming => "upcoming",
            Endpoint::UnlockEvents => "unlock_events",
            Endpoint::Burn => "burn",
            Endpoint::Buyback => "buyback",
            Endpoint::Allocations => "allocations",
            Endpoint::DailyEmission => "daily_emission",
            Endpoint::WeeklyEmission => "weekly_emission",
            Endpoint::Investors => "investors",
        }
    }

    /// The endpoint of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|endpoint| endpoint.as_str() == word)
    }

    /// Whether it is asked once for each token.
    #[must_use]
    pub fn is_per_token(self) -> bool {
        !matches!(self, Endpoint::TokenList | Endpoint::Upcoming | Endpoint::Investors)
    }

    /// The records it brings, where it brings records.
    #[must_use]
    pub fn resource(self) -> Option<Resource> {
        match self {
            Endpoint::TokenList => None,
            Endpoint::Upcoming | Endpoint::UnlockEvents => Some(Resource::Unlock),
            Endpoint::Burn => Some(Resource::Burn),
            Endpoint::Buyback => Some(Resource::Buyback),
            Endpoint::Allocations => Some(Resource::Allocation),
            Endpoint::DailyEmission | Endpoint::WeeklyEmission => Some(Resource::Emission),
            Endpoint::Investors => Some(Resource::Funding),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A token as the list tells it, with the groups that the config puts it in.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// Slug.
    pub id: TokenId,
    /// What the list says; for a token that only the config names, just the id (and name and symbol, once a record told them).
    pub item: wire::TokenItem,
    /// Names of `[watch.groups]` that hold it, sorted.
    pub groups: Arc<[String]>,
}

impl Token {
    /// A token of which nothing but the id is known.
    #[must_use]
    pub fn unknown(id: TokenId) -> Self {
        let item = wire::TokenItem { id: id.as_str().to_owned().into(), ..Default::default() };
        Self { id, item, groups: Arc::from([]) }
    }

    /// Its name; the slug where no name is known.
    #[must_use]
    pub fn name(&self) -> &str {
        self.item.name.as_str().filter(|name| !name.is_empty()).unwrap_or(self.id.as_str())
    }

    /// Its ticker; the slug where no ticker is known.
    #[must_use]
    pub fn symbol(&self) -> &str {
        self.item.symbol.as_str().filter(|symbol| !symbol.is_empty()).unwrap_or(self.id.as_str())
    }

    /// Market cap, USD.
    #[must_use]
    pub fn market_cap(&self) -> Option<f64> {
        self.item.market_cap.copied()
    }
}

/// How exact a date is. The source may send words that nobody has seen: those stand for a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// An instant (`second`, `block`, `minute`).
    Second,
    /// Any time in that hour.
    Hour,
    /// Any time on that day.
    Day,
    /// Any time in that week, which begins on Sunday as the weeks of the source do.
    Week,
    /// Any time in that month.
    Month,
    /// Not decided: the date means nothing.
    ToBeDetermined,
}

impl Precision {
    /// Reads the source's word. Absent means what most of the source's dates mean: an instant. An unknown word never claims an hour.
    #[must_use]
    pub fn of(word: Option<&str>) -> Self {
        const WORDS: [(&str, Precision); 8] = [
            ("second", Precision::Second),
            ("block", Precision::Second),
            ("minute", Precision::Second),
            ("hour", Precision::Hour),
            ("week", Precision::Week),
            ("month", Precision::Month),
            ("tobedetermined", Precision::ToBeDetermined),
            ("tbd", Precision::ToBeDetermined),
        ];
        let Some(word) = word else { return Precision::Second };
        // Asked of every part of every record that is judged, so nothing is allocated here.
        let plain = || word.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase());
        WORDS.iter().find(|(known, _)| plain().eq(known.bytes())).map_or(Precision::Day, |(_, precision)| *precision)
    }
}

/// The time that a date of limited precision stands for: from `start` to `end`, which is exclusive unless both are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// First instant.
    pub start: Timestamp,
    /// First instant after it; equal to `start` for a date exact to the second.
    pub end: Timestamp,
    /// How exact it is; never [`Precision::ToBeDetermined`].
    pub precision: Precision,
}

impl Interval {
    /// The interval of `date`; none where it is to be determined.
    #[must_use]
    pub fn of(date: Timestamp, precision: Precision) -> Option<Self> {
        let day = date.date_naive();
        let midnight = |date: chrono::NaiveDate| date.and_time(NaiveTime::MIN).and_utc();
        let (start, end) = match precision {
            Precision::ToBeDetermined => return None,
            Precision::Second => (date, date),
            Precision::Hour => {
                let start = date - TimeDelta::seconds(date.timestamp().rem_euclid(3600));
                (start, start.checked_add_signed(TimeDelta::hours(1))?)
            }
            Precision::Day => (midnight(day), midnight(day.checked_add_days(Days::new(1))?)),
            Precision::Week => {
                let sunday = day.checked_sub_days(Days::new(u64::from(day.weekday().num_days_from_sunday())))?;
                (midnight(sunday), midnight(sunday.checked_add_days(Days::new(7))?))
            }
            Precision::Month => {
                let first = day.with_day(1)?;
                (midnight(first), midnight(first.checked_add_months(Months::new(1))?))
            }
        };
        Some(Self { start, end, precision })
    }

    /// Whether it lies wholly in the past.
    #[must_use]
    pub fn has_passed(&self, now: Timestamp) -> bool {
        now >= self.end
    }

    /// Days until it begins; zero from its first to its last instant, negative (days since its end) afterwards.
    #[must_use]
    pub fn days_until(&self, now: Timestamp) -> f64 {
        if now < self.start {
            days(self.start - now)
        } else if now < self.end {
            0.0
        } else {
            -days(now - self.end)
        }
    }

    /// Whether it begins within `lead` from now and has not passed: "within 7 days".
    #[must_use]
    pub fn is_within(&self, now: Timestamp, lead: TimeDelta) -> bool {
        !self.has_passed(now) && now.checked_add_signed(lead).is_none_or(|horizon| self.start <= horizon)
    }
}

/// A span as days with fractions.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "milliseconds of a few thousand years fit a double")]
pub fn days(span: TimeDelta) -> f64 {
    span.num_milliseconds() as f64 / 86_400_000.0
}

/// So many days, where that is a length of time.
#[must_use]
pub fn span_of_days(days: f64) -> Option<TimeDelta> {
    let millis = days * 86_400_000.0;
    // Within a hundred thousand years every whole millisecond is a double.
    (millis.abs() < 3.2e15).then(|| TimeDelta::milliseconds(millis.round() as i64))
}

/// A record of any resource, in the API's shape.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Record {
    /// An unlock event.
    Unlock(Box<wire::UnlockEvent>),
    /// A burn.
    Burn(Box<wire::Burn>),
    /// A buyback.
    Buyback(Box<wire::Buyback>),
    /// The emission of a day or a week.
    Emission(Box<wire::Emission>),
    /// A row of the allocation table.
    Allocation(Box<wire::Allocation>),
    /// A funding round.
    Funding(Box<wire::FundingRound>),
}

impl Record {
    /// Which kind it is.
    #[must_use]
    pub fn resource(&self) -> Resource {
        match self {
            Record::Unlock(_) => Resource::Unlock,
            Record::Burn(_) => Resource::Burn,
            Record::Buyback(_) => Resource::Buyback,
            Record::Emission(_) => Resource::Emission,
            Record::Allocation(_) => Resource::Allocation,
            Record::Funding(_) => Resource::Funding,
        }
    }

    /// Reads a record back from the JSON that the store keeps.
    ///
    /// # Errors
    /// Where the text is not a JSON object.
    pub fn from_json(resource: Resource, json: &str) -> Result<Self, serde_json::Error> {
        Ok(match resource {
            Resource::Unlock => Record::Unlock(serde_json::from_str(json)?),
            Resource::Burn => Record::Burn(serde_json::from_str(json)?),
            Resource::Buyback => Record::Buyback(serde_json::from_str(json)?),
            Resource::Emission => Record::Emission(serde_json::from_str(json)?),
            Resource::Allocation => Record::Allocation(serde_json::from_str(json)?),
            Resource::Funding => Record::Funding(serde_json::from_str(json)?),
        })
    }

    /// The time it stands for: when an unlock is due, or when a burn, buyback or round happened. None where undated.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        match self {
            Record::Unlock(event) => event.interval(),
            Record::Burn(burn) => Interval::of(burn.burn_date.copied()?, Precision::Second),
            Record::Buyback(buyback) => Interval::of(buyback.buyback_date.copied()?, Precision::Second),
            Record::Emission(emission) => Some(Interval {
                start: emission.start_date.copied()?,
                end: emission.end_date.copied().or(emission.start_date.copied())?,
                precision: Precision::Day,
            }),
            Record::Allocation(_) => None,
            Record::Funding(round) => Interval::of(round.funding_date.copied()?, Precision::Day),
        }
    }
}

impl wire::UnlockEvent {
    /// How exact its date is: the least exact of its parts.
    #[must_use]
    pub fn precision(&self) -> Precision {
        let cliffs = self.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
        let linears = self.linear_unlocks.get().map_or(&[][..], |linears| linears.allocation_breakdown.items());
        cliffs
            .iter()
            .map(|item| Precision::of(item.unlock_precision.as_str()))
            .chain(linears.iter().map(|item| Precision::of(item.unlock_precision.as_str())))
            .max()
            .unwrap_or(Precision::Second)
    }

    /// The time it stands for; none where the date is missing or to be determined.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        Interval::of(self.unlock_date.copied()?, self.precision())
    }

    /// Tokens that unlock at once, under either of the names the versions use.
    #[must_use]
    pub fn cliff_amount(&self) -> Option<f64> {
        let cliffs = self.cliff_unlocks.get()?;
        cliffs.cliff_amount.copied().or(cliffs.total_cliff_amount.copied())
    }

    /// USD that unlock at once, under either of the names the versions use.
    #[must_use]
    pub fn cliff_value(&self) -> Option<f64> {
        let cliffs = self.cliff_unlocks.get()?;
        cliffs.cliff_value.copied().or(cliffs.total_cliff_value.copied())
    }

    /// Percent of the market cap.
    #[must_use]
    pub fn value_to_market_cap(&self) -> Option<f64> {
        self.cliff_unlocks.get()?.value_to_market_cap.copied()
    }
}

/// A record under its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracked {
    /// Stays the same while the record moves or grows.
    pub key: RecordKey,
    /// What the source last said.
    pub record: Record,
}

/// What one endpoint says of one token, or of everything where it is not asked per token: the unit that is read, compared, held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedId {
    /// Who is asked.
    pub endpoint: Endpoint,
    /// About whom; none for the token list, `upcoming` and the investor list.
    pub token: Option<TokenId>,
}

impl FeedId {
    /// The feed of one token.
    #[must_use]
    pub fn of(endpoint: Endpoint, token: &TokenId) -> Self {
        Self { endpoint, token: Some(token.clone()) }
    }

    /// The feed of an endpoint that is not asked per token.
    #[must_use]
    pub fn whole(endpoint: Endpoint) -> Self {
        Self { endpoint, token: None }
    }
}

impl fmt::Display for FeedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.token {
            Some(token) => write!(f, "{}/{token}", self.endpoint),
            None => write!(f, "{}", self.endpoint),
        }
    }
}

/// Hash of the payload's bytes: equal hashes need no parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContentHash(pub u128);

/// What is remembered of a feed between reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedState {
    /// When it was first read whole: the baseline. None before.
    pub baseline_at: Option<Timestamp>,
    /// Last complete, valid answer.
    pub read_at: Option<Timestamp>,
    /// Last try, whatever came of it.
    pub tried_at: Option<Timestamp>,
    /// Hash of the last answer.
    pub hash: Option<ContentHash>,
    /// The token's `lastUpdatedDate` when it was last read.
    pub mark: Option<Timestamp>,
    /// Something said that it should be read again, whatever its mark: `upcoming` disagrees, a removal awaits proof.
    pub stale: bool,
    /// Since when it fails; none while it does not.
    pub failing_since: Option<Timestamp>,
    /// Records that complete answers left out, with how many times: not yet proven gone.
    pub missing: Vec<(RecordKey, u32)>,
    /// Since when an answer is held because most of the token's records vanished at once.
    pub held_since: Option<Timestamp>,
    /// Credits that the last complete read cost (one a page); zero before the first.
    pub cost: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        wire::parse_timestamp(text).expect("a timestamp")
    }

    #[test]
    fn a_month_is_any_time_in_that_month() {
        let march = Interval::of(time("2026-03-16"), Precision::Month).expect("dated");
        assert_eq!((march.start, march.end), (time("2026-03-01"), time("2026-04-01")));
        assert!(march.is_within(time("2026-02-22"), TimeDelta::days(7)));
        assert!(!march.is_within(time("2026-02-21T23:59:59Z"), TimeDelta::days(7)));
        assert!((march.days_until(time("2026-03-20")) - 0.0).abs() < f64::EPSILON);
        assert!(march.has_passed(time("2026-04-01")));
    }

    #[test]
    fn an_undecided_date_has_no_interval() {
        assert_eq!(Interval::of(time("2026-03-16"), Precision::of(Some("To Be Determined"))), None);
    }

    #[test]
    fn a_week_begins_on_sunday() {
        let week = Interval::of(time("2026-10-14T09:00:00Z"), Precision::Week).expect("dated");
        assert_eq!((week.start, week.end), (time("2026-10-11"), time("2026-10-18")));
    }

    #[test]
    fn an_unknown_precision_never_claims_an_hour() {
        assert_eq!(Precision::of(Some("fortnight")), Precision::Day);
        assert_eq!(Precision::of(Some("unknown")), Precision::Day);
    }
}

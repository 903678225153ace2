//! The API's JSON types: read by `api`, answered by `serve`, kept as records by everything between.
//!
//! Each field but a record's key may be absent or null ([`Maybe`]); fields that nobody knows stay in `extra`, so that what is
//! read can be written again without loss. Reading is lenient field by field: a field of the wrong type is dropped and noted as
//! an [`Oddity`], and the record goes on without it. Only text that is not JSON at all fails as a whole.

use std::{cell::RefCell, collections::BTreeMap, fmt};

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::Value;

use crate::supply::Timestamp;

mod shape;

pub use shape::{Described, FieldShape, Has, ObjectShape, Shape};

/// A field that may be absent, null, or there. Absent and null mean the same to rules; the service tells them apart by version.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Maybe<T> {
    /// The key is not in the object.
    #[default]
    Absent,
    /// The key is there, its value is `null`.
    Null,
    /// The key has a value.
    Value(T),
}

impl<T> Maybe<T> {
    /// The value, where there is one.
    pub fn get(&self) -> Option<&T> {
        match self {
            Maybe::Value(value) => Some(value),
            Maybe::Absent | Maybe::Null => None,
        }
    }

    /// The value for changing, where there is one.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        match self {
            Maybe::Value(value) => Some(value),
            Maybe::Absent | Maybe::Null => None,
        }
    }

    /// The value itself, where there is one.
    pub fn into_option(self) -> Option<T> {
        match self {
            Maybe::Value(value) => Some(value),
            Maybe::Absent | Maybe::Null => None,
        }
    }

    /// Whether the key is missing from the object.
    pub fn is_absent(&self) -> bool {
        matches!(self, Maybe::Absent)
    }

    /// `null` where the option is empty.
    pub fn or_null(value: Option<T>) -> Self {
        value.map_or(Maybe::Null, Maybe::Value)
    }

    /// Absent where the option is empty.
    pub fn or_absent(value: Option<T>) -> Self {
        value.map_or(Maybe::Absent, Maybe::Value)
    }
}

impl<T: Copy> Maybe<T> {
    /// A copy of the value, where there is one.
    pub fn copied(&self) -> Option<T> {
        self.get().copied()
    }
}

impl Maybe<String> {
    /// The text, where there is one.
    pub fn as_str(&self) -> Option<&str> {
        self.get().map(String::as_str)
    }
}

impl<T> Maybe<Vec<T>> {
    /// The items; none where the list is absent or null.
    pub fn items(&self) -> &[T] {
        self.get().map_or(&[], Vec::as_slice)
    }
}

impl<T> From<T> for Maybe<T> {
    fn from(value: T) -> Self {
        Maybe::Value(value)
    }
}

/// Fields that this program does not know, kept as they came.
pub type Extra = BTreeMap<String, Value>;

/// Something odd in an answer that was still usable: where it stood and what was wrong. The text holds no more than 120
/// characters of what the source sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Oddity {
    /// Path inside the payload, such as `[3].cliffUnlocks.cliffAmount`.
    pub path: String,
    /// What was wrong, such as `expected a number, got the text "n/a"; the field is ignored`.
    pub problem: String,
}

/// Oddities kept from one answer; more are only counted.
const MAX_ODDITIES: usize = 100;

/// List items and unknown values read from one answer. A body of a few megabytes could otherwise say `{}` millions of times, and
/// each would become a record of several hundred bytes.
const MAX_ITEMS: usize = 500_000;

/// How deep unknown fields may nest before what lies deeper is left out.
const MAX_EXTRA_DEPTH: usize = 32;

#[derive(Default)]
struct Notes {
    path: Vec<Step>,
    oddities: Vec<Oddity>,
    total: usize,
    dropped: usize,
    lost_dates: usize,
    items: usize,
}

/// One step of the path to what is being read.
pub(crate) enum Step {
    /// Into a field.
    Field(&'static str),
    /// Into an item of a list, counted from zero.
    Index(usize),
}

/// What was noted while something was read.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// What was odd, the first hundred.
    pub oddities: Vec<Oddity>,
    /// How many oddities in all.
    pub total: usize,
    /// Lists, objects and items of lists that could not be used and were left out. While there are any, nothing that is missing
    /// is proven gone.
    pub dropped: usize,
}

thread_local! {
    // serde hands no context down a derived tree; parsing one answer stays on one thread, so the notes wait here.
    static NOTES: RefCell<Option<Notes>> = const { RefCell::new(None) };
}

/// Runs `read` and gathers what was odd meanwhile: the first hundred oddities, and how many there were in all.
pub fn gather_oddities<T>(read: impl FnOnce() -> T) -> (T, Vec<Oddity>, usize) {
    let (result, gathered) = gather(read);
    (result, gathered.oddities, gathered.total)
}

/// Runs `read` and gathers what was odd meanwhile, and what was left out. While gathering, the number of items read is bounded.
pub fn gather<T>(read: impl FnOnce() -> T) -> (T, Gathered) {
    let outer = NOTES.with_borrow_mut(|notes| notes.replace(Notes::default()));
    let result = read();
    let notes = NOTES.with_borrow_mut(|notes| std::mem::replace(notes, outer)).unwrap_or_default();
    (result, Gathered { oddities: notes.oddities, total: notes.total, dropped: notes.dropped })
}

/// Notes something odd at the place that is being read.
pub(crate) fn note(problem: impl FnOnce() -> String) {
    NOTES.with_borrow_mut(|notes| {
        let Some(notes) = notes else { return };
        notes.total += 1;
        if notes.oddities.len() < MAX_ODDITIES {
            let path = notes.path.iter().fold(String::new(), |mut text, step| {
                match step {
                    Step::Field(name) if text.is_empty() => text.push_str(name),
                    Step::Field(name) => {
                        text.push('.');
                        text.push_str(name);
                    }
                    Step::Index(index) => text.push_str(&format!("[{index}]")),
                }
                text
            });
            notes.oddities.push(Oddity { path, problem: problem() });
        }
    });
}

/// Notes that the item being read is left out.
pub(crate) fn note_dropped(problem: impl FnOnce() -> String) {
    note(problem);
    count_dropped();
}

fn count_dropped() {
    NOTES.with_borrow_mut(|notes| {
        if let Some(notes) = notes {
            notes.dropped += 1;
        }
    });
}

/// How many dates could not be read so far. A record that lost its date is not one whose date is to be determined.
pub(crate) fn lost_dates() -> usize {
    NOTES.with_borrow(|notes| notes.as_ref().map_or(0, |notes| notes.lost_dates))
}

fn count_lost_date() {
    NOTES.with_borrow_mut(|notes| {
        if let Some(notes) = notes {
            notes.lost_dates += 1;
        }
    });
}

/// Counts an item towards the bound.
pub(crate) fn count_item<E: serde::de::Error>() -> Result<(), E> {
    let fits = NOTES.with_borrow_mut(|notes| {
        notes.as_mut().is_none_or(|notes| {
            notes.items += 1;
            notes.items <= MAX_ITEMS
        })
    });
    if fits { Ok(()) } else { Err(E::custom(format_args!("more than {MAX_ITEMS} items in one answer"))) }
}

/// Runs `read` one step further down the path.
pub(crate) fn at<T>(step: Step, read: impl FnOnce() -> T) -> T {
    NOTES.with_borrow_mut(|notes| {
        if let Some(notes) = notes {
            notes.path.push(step);
        }
    });
    let result = read();
    NOTES.with_borrow_mut(|notes| {
        if let Some(notes) = notes {
            notes.path.pop();
        }
    });
    result
}

/// A value that can be read from any JSON: what does not fit becomes [`Maybe::Absent`] and an oddity, never an error.
pub trait Lenient: Sized {
    /// What is expected here, for messages: `a number`.
    const EXPECTED: &'static str;
    /// Whether records may be lost with it: a list, an object. Losing one is counted, so that nobody takes it for a removal.
    const HOLDS_RECORDS: bool = false;
    /// Whether it says when something happens: see [`lost_dates`].
    const IS_DATE: bool = false;
    /// From a JSON number.
    fn from_number(_: f64) -> Option<Self> {
        None
    }
    /// From a JSON string.
    fn from_text(_: &str) -> Option<Self> {
        None
    }
    /// From `true` or `false`.
    fn from_bool(_: bool) -> Option<Self> {
        None
    }
    /// From an array; the default skips it.
    fn from_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<Option<Self>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
    /// From an object; the default skips it.
    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

struct LenientVisitor<T>(std::marker::PhantomData<T>);

impl<T: Lenient> LenientVisitor<T> {
    fn got(value: Option<T>, what: impl FnOnce() -> String) -> Maybe<T> {
        if value.is_none() {
            note(|| format!("expected {}, got {}; the field is ignored", T::EXPECTED, what()));
            if T::HOLDS_RECORDS {
                count_dropped();
            }
            if T::IS_DATE {
                count_lost_date();
            }
        }
        Maybe::or_absent(value)
    }
}

impl<'de, T: Lenient> Visitor<'de> for LenientVisitor<T> {
    type Value = Maybe<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Maybe::Null)
    }
    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Maybe::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Self::got(T::from_bool(value), || value.to_string()))
    }
    #[expect(clippy::cast_precision_loss, reason = "the source sends doubles; no whole number in it needs more than 53 bits")]
    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Self::got(T::from_number(value as f64), || format!("the number {value}")))
    }
    #[expect(clippy::cast_precision_loss, reason = "the source sends doubles; no whole number in it needs more than 53 bits")]
    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Self::got(T::from_number(value as f64), || format!("the number {value}")))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Self::got(T::from_number(value), || format!("the number {value}")))
    }
    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Self::got(T::from_text(value), || format!("the text {}", quoted(value))))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Ok(Self::got(T::from_seq(seq)?, || "an array".into()))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Ok(Self::got(T::from_map(map)?, || "an object".into()))
    }
}

impl<'de, T: Lenient> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor(std::marker::PhantomData))
    }
}

impl<T: Serialize> Serialize for Maybe<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Maybe::Value(value) => value.serialize(serializer),
            Maybe::Absent | Maybe::Null => serializer.serialize_none(),
        }
    }
}

impl Lenient for f64 {
    const EXPECTED: &'static str = "a number";
    fn from_number(value: f64) -> Option<Self> {
        value.is_finite().then_some(value)
    }
    fn from_text(text: &str) -> Option<Self> {
        // Some sources quote their numbers; that much is safe to understand.
        text.trim().parse::<f64>().ok().filter(|value| value.is_finite())
    }
}

impl Lenient for i64 {
    const EXPECTED: &'static str = "a whole number";
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within 2^53")]
    fn from_number(value: f64) -> Option<Self> {
        (value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0).then_some(value as i64)
    }
    fn from_text(text: &str) -> Option<Self> {
        text.trim().parse().ok()
    }
}

impl Lenient for bool {
    const EXPECTED: &'static str = "true or false";
    fn from_bool(value: bool) -> Option<Self> {
        Some(value)
    }
}

impl Lenient for String {
    const EXPECTED: &'static str = "a text";
    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl Lenient for Timestamp {
    const EXPECTED: &'static str = "a timestamp like 2026-03-09T00:00:00Z";
    const IS_DATE: bool = true;
    fn from_text(text: &str) -> Option<Self> {
        parse_timestamp(text)
    }
}

/// Reads an ISO 8601 instant, or a bare date as its midnight UTC. Years before 1900 and after 2999 are taken for nonsense.
#[must_use]
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
    use chrono::Datelike;
    let text = text.trim();
    DateTime::parse_from_rfc3339(text)
        .map(|at| at.with_timezone(&Utc))
        .ok()
        .or_else(|| {
            let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
            Some(date.and_time(NaiveTime::MIN).and_utc())
        })
        .filter(|at| (1900..3000).contains(&at.year()))
}

impl<T: Lenient> Lenient for Vec<T> {
    const EXPECTED: &'static str = "a list";
    const HOLDS_RECORDS: bool = true;
    fn from_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<Option<Self>, A::Error> {
        let mut items = Vec::new();
        let mut index = 0;
        while let Some(item) = at(Step::Index(index), || {
            let item = seq.next_element::<Maybe<T>>()?;
            match &item {
                Some(Maybe::Null) => note_dropped(|| format!("expected {}, got null; the item is left out", T::EXPECTED)),
                Some(Maybe::Absent) if !T::HOLDS_RECORDS => count_dropped(), // noted where it did not fit
                Some(Maybe::Absent | Maybe::Value(_)) | None => {}
            }
            Ok(item)
        })? {
            count_item()?;
            if let Maybe::Value(item) = item {
                items.push(item);
            }
            index += 1;
        }
        Ok(Some(items))
    }
}

impl<T: Lenient> Lenient for Box<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    const HOLDS_RECORDS: bool = T::HOLDS_RECORDS;
    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        Ok(T::from_map(map)?.map(Box::new))
    }
}

/// Reads one known field of an object under its name, for the macro below.
struct Field<T>(&'static str, std::marker::PhantomData<T>);

impl<'de, T: Lenient> DeserializeSeed<'de> for Field<T> {
    type Value = Maybe<T>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        at(Step::Field(self.0), || Maybe::<T>::deserialize(deserializer))
    }
}

/// Object keys without allocation where the text allows it.
struct Key<'a>(std::borrow::Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object key")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Key(text.into()))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Key(text.to_owned().into()))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// Reads a value that nobody knows as it is, within bounds of depth and number.
struct UnknownValue {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for UnknownValue {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        count_item()?;
        if self.depth > MAX_EXTRA_DEPTH {
            IgnoredAny::deserialize(deserializer)?;
            note(|| format!("an unknown field nests deeper than {MAX_EXTRA_DEPTH} levels; what lies deeper is left out"));
            return Ok(Value::Null);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UnknownValue {
    type Value = Value;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(UnknownValue { depth: self.depth + 1 })? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = serde_json::Map::new();
        while let Some(key) = map.next_key::<String>()? {
            fields.insert(key, map.next_value_seed(UnknownValue { depth: self.depth + 1 })?);
        }
        Ok(Value::Object(fields))
    }
}

/// The first characters of a text from outside, escaped.
fn quoted(text: &str) -> String {
    format!("{:?}", text.chars().take(80).collect::<String>())
}

/// Declares an object of the API: each field with the name it has on the wire. Reading is lenient, writing leaves absent fields
/// out.
macro_rules! wire {
    ($(#[doc = $doc:literal])* $name:ident { $( $(#[doc = $field_doc:literal])* $field:ident: $type:ty = $json:literal, )* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $( $(#[doc = $field_doc])* pub $field: Maybe<$type>, )*
            /// Fields that this program does not know, as they came.
            pub extra: Extra,
        }

        impl $name {
            /// The names on the wire, in the order in which they are written.
            pub const FIELDS: &'static [&'static str] = &[$($json),*];
        }

        impl Described for $name {
            const SHAPE: Shape = Shape::Object(&ObjectShape {
                name: stringify!($name),
                doc: concat!($($doc),*),
                fields: &[$( FieldShape { name: $json, doc: concat!($($field_doc),*), shape: <$type as Described>::SHAPE } ),*],
            });

            fn keep(&mut self, has: Has<'_>) {
                $( if !has(stringify!($name), $json) {
                    self.$field = Maybe::Absent;
                } else if let Maybe::Value(value) = &mut self.$field {
                    value.keep(has);
                } else {
                    self.$field = Maybe::Null;
                } )*
            }
        }

        impl Lenient for $name {
            const EXPECTED: &'static str = "an object";
            const HOLDS_RECORDS: bool = true;
            fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
                let mut record = Self::default();
                while let Some(key) = map.next_key::<Key<'de>>()? {
                    match key.0.as_ref() {
                        $( $json => {
                            let value = map.next_value_seed(Field::<$type>($json, std::marker::PhantomData))?;
                            if !record.$field.is_absent() {
                                note(|| concat!("`", $json, "` stands twice; the last one counts").into());
                            }
                            record.$field = value;
                        } )*
                        _ => {
                            let value = map.next_value_seed(UnknownValue { depth: 0 })?;
                            if let Some((key, _)) = record.extra.remove_entry(key.0.as_ref()) {
                                note(|| format!("the field {} stands twice; the last one counts", quoted(&key)));
                            }
                            record.extra.insert(key.0.into_owned(), value);
                        }
                    }
                }
                Ok(Some(record))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $( if !self.$field.is_absent() { map.serialize_entry($json, &self.$field)?; } )*
                for (key, value) in &self.extra {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Maybe::<Self>::deserialize(deserializer)?
                    .into_option()
                    .ok_or_else(|| serde::de::Error::custom(concat!("expected an object: ", stringify!($name))))
            }
        }
    };
}

wire! {
    /// State of the quota, in `metadata.credit`.
    Credit {
        /// Credits used so far in the current period.
        used: i64 = "used",
        /// Allowance for the period.
        limit: i64 = "limit",
        /// When the quota resets.
        reset_at: Timestamp = "resetAt",
    }
}

wire! {
    /// `metadata` of the envelope.
    Metadata {
        /// Time of the query.
        query_date: Timestamp = "queryDate",
        /// Quota state, on authenticated answers.
        credit: Credit = "credit",
        /// 1-based page, on paginated answers.
        page: i64 = "page",
        /// Items on a page, as the server decided.
        page_size: i64 = "pageSize",
        /// Pages of the whole list.
        total_pages: i64 = "totalPages",
        /// Items of the whole list.
        total: i64 = "total",
    }
}

wire! {
    /// A token of `/token/list`. Its key is `id` here and `tokenId` everywhere else.
    TokenItem {
        /// Slug.
        id: String = "id",
        name: String = "name",
        /// Ticker; not unique.
        symbol: String = "symbol",
        /// `INTERNAL`, `AI`, `EXTERNAL`, or what comes.
        listed_method: String = "listedMethod",
        /// Tokens.
        circulating_supply: f64 = "circulatingSupply",
        /// USD.
        market_cap: f64 = "marketCap",
        /// Tokens.
        max_supply: f64 = "maxSupply",
        /// Tokens, without those to be determined.
        total_locked_amount: f64 = "totalLockedAmount",
        tbd_locked_amount: f64 = "tbdLockedAmount",
        unlocked_amount: f64 = "unlockedAmount",
        untracked_amount: f64 = "untrackedAmount",
        has_standard_allocation: bool = "hasStandardAllocation",
        has_fundraising: bool = "hasFundraising",
        latest_fundraising_round: String = "latestFundraisingRound",
        has_burn: bool = "hasBurn",
        has_buyback: bool = "hasBuyback",
        has_committed_claim: bool = "hasCommittedClaim",
        website_url: String = "websiteUrl",
        /// The only mark that something about the token changed.
        last_updated_date: Timestamp = "lastUpdatedDate",
    }
}

wire! {
    /// What a project announced for an unlock, against what the schedule says.
    CommittedClaim {
        /// Tokens.
        amount: f64 = "amount",
        /// USD.
        value: f64 = "value",
        /// Unix seconds: the only time in the API that is not ISO 8601.
        timestamp: i64 = "timestamp",
    }
}

wire! {
    /// One recipient's part of a cliff.
    CliffAllocation {
        unlock_date: Timestamp = "unlockDate",
        allocation_name: String = "allocationName",
        standard_allocation_name: String = "standardAllocationName",
        /// Tokens.
        cliff_amount: f64 = "cliffAmount",
        /// USD.
        cliff_value: f64 = "cliffValue",
        /// USD per token.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        /// `second`, `month`, …: how exact the date is.
        unlock_precision: String = "unlockPrecision",
        committed_claim: CommittedClaim = "committedClaim",
    }
}

wire! {
    /// What unlocks at one instant.
    CliffUnlocks {
        /// Tokens: the sum over the breakdown.
        cliff_amount: f64 = "cliffAmount",
        /// USD.
        cliff_value: f64 = "cliffValue",
        /// Tokens, under the name that the first version of `upcoming` uses.
        total_cliff_amount: f64 = "totalCliffAmount",
        /// USD, under the name that the first version of `upcoming` uses.
        total_cliff_value: f64 = "totalCliffValue",
        /// Percent of the market cap; can exceed 100. It belongs to the event, not to each allocation.
        value_to_market_cap: f64 = "valueToMarketCap",
        /// USD per token, in older versions.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        allocation_breakdown: Vec<CliffAllocation> = "allocationBreakdown",
    }
}

wire! {
    /// One recipient's linear segment.
    LinearAllocation {
        allocation_name: String = "allocationName",
        standard_allocation_name: String = "standardAllocationName",
        /// Tokens over the whole segment.
        linear_amount: f64 = "linearAmount",
        /// USD.
        linear_value: f64 = "linearValue",
        /// USD per token.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        /// Tokens a day.
        daily_amount: f64 = "dailyAmount",
        /// USD a day.
        daily_value: f64 = "dailyValue",
        /// Days.
        duration_of_rate: f64 = "durationOfRate",
        begin_date: Timestamp = "beginDate",
        end_date: Timestamp = "endDate",
        unlock_precision: String = "unlockPrecision",
    }
}

wire! {
    /// Linear segments that begin at one instant.
    LinearUnlocks {
        /// Tokens.
        linear_amount: f64 = "linearAmount",
        /// USD.
        linear_value: f64 = "linearValue",
        /// Tokens a day.
        daily_amount: f64 = "dailyAmount",
        /// USD a day.
        daily_value: f64 = "dailyValue",
        /// USD per token.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        allocation_breakdown: Vec<LinearAllocation> = "allocationBreakdown",
    }
}

wire! {
    /// An unlock event: what unlocks, or begins to, at one instant. A row names no token: whoever asked keeps it.
    UnlockEvent {
        unlock_date: Timestamp = "unlockDate",
        token_name: String = "tokenName",
        token_symbol: String = "tokenSymbol",
        listed_method: String = "listedMethod",
        /// Origin of the schedule.
        data_source: String = "dataSource",
        /// USD per token, in `upcoming`.
        reference_price: f64 = "referencePrice",
        reference_price_updated_time: Timestamp = "referencePriceUpdatedTime",
        linear_unlocks: LinearUnlocks = "linearUnlocks",
        cliff_unlocks: CliffUnlocks = "cliffUnlocks",
        latest_update_date: Timestamp = "latestUpdateDate",
    }
}

wire! {
    /// A row of `upcoming`: one token with its next event only.
    UpcomingItem {
        token_id: String = "tokenId",
        token_name: String = "tokenName",
        token_symbol: String = "tokenSymbol",
        /// USD.
        market_cap: f64 = "marketCap",
        /// Percent.
        released_percentage: f64 = "releasedPercentage",
        listed_method: String = "listedMethod",
        data_source: String = "dataSource",
        upcoming_event: UnlockEvent = "upcomingEvent",
    }
}

wire! {
    /// Who burned, and why.
    BurnMetadata {
        burners: Vec<String> = "burners",
        burn_reasons: Vec<String> = "burnReasons",
    }
}

wire! {
    /// One burn. It has no id.
    Burn {
        burn_event_label: String = "burnEventLabel",
        burn_type: String = "burnType",
        burn_date: Timestamp = "burnDate",
        /// Tokens.
        amount: f64 = "amount",
        /// USD per token.
        price_per_token: f64 = "pricePerToken",
        /// USD.
        value: f64 = "value",
        metadata: BurnMetadata = "metadata",
    }
}

wire! {
    /// Burns of a token; totals cover the window that was asked for.
    BurnData {
        token_id: String = "tokenId",
        token_name: String = "tokenName",
        token_symbol: String = "tokenSymbol",
        /// Tokens.
        total_burn_amount: f64 = "totalBurnAmount",
        /// USD.
        total_burn_value: f64 = "totalBurnValue",
        burns: Vec<Burn> = "burns",
    }
}

wire! {
    /// One buyback. It has no id.
    Buyback {
        buyback_event_label: String = "buybackEventLabel",
        buyback_type: String = "buybackType",
        buyback_date: Timestamp = "buybackDate",
        /// Tokens bought.
        token_amount: f64 = "tokenAmount",
        /// USD.
        value: f64 = "value",
        /// In `spentUnit`.
        spent_amount: f64 = "spentAmount",
        /// May be an empty text.
        spent_unit: String = "spentUnit",
        target_address: String = "targetAddress",
        buyer_address: String = "buyerAddress",
        resolution: String = "resolution",
        basis: String = "basis",
    }
}

wire! {
    /// Buybacks of a token; totals cover the window that was asked for.
    BuybackData {
        token_id: String = "tokenId",
        token_name: String = "tokenName",
        token_symbol: String = "tokenSymbol",
        /// Tokens.
        total_buyback_amount: f64 = "totalBuybackAmount",
        /// USD; from the fifth version on.
        total_buyback_value: f64 = "totalBuybackValue",
        buybacks: Vec<Buyback> = "buybacks",
    }
}

wire! {
    /// One recipient's part of a day's or week's emission.
    EmissionAllocation {
        allocation_name: String = "allocationName",
        standard_allocation_name: String = "standardAllocationName",
        /// Tokens.
        unlock_amount: f64 = "unlockAmount",
        /// USD.
        unlock_value: f64 = "unlockValue",
        committed_claim: CommittedClaim = "committedClaim",
    }
}

/// An item of a list that is an object in one version and a bare name in another.
#[derive(Clone, Debug, PartialEq)]
pub enum NamedOr<T> {
    /// The name alone, as the first version of weekly emission has it.
    Name(String),
    /// The whole object.
    Item(T),
}

impl<T: Lenient> Lenient for NamedOr<T> {
    const EXPECTED: &'static str = "a name or an object";
    const HOLDS_RECORDS: bool = true;
    fn from_text(text: &str) -> Option<Self> {
        Some(NamedOr::Name(text.to_owned()))
    }
    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        Ok(T::from_map(map)?.map(NamedOr::Item))
    }
}

impl<T: Serialize> Serialize for NamedOr<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            NamedOr::Name(name) => serializer.serialize_str(name),
            NamedOr::Item(item) => item.serialize(serializer),
        }
    }
}

wire! {
    /// Emission of one day or one week.
    Emission {
        /// Start of the day or week.
        start_date: Timestamp = "startDate",
        /// Start of the next one.
        end_date: Timestamp = "endDate",
        token_name: String = "tokenName",
        token_symbol: String = "tokenSymbol",
        listed_method: String = "listedMethod",
        /// Tokens.
        unlock_amount: f64 = "unlockAmount",
        /// USD.
        unlock_value: f64 = "unlockValue",
        /// USD per token.
        reference_price: f64 = "referencePrice",
        allocations: Vec<NamedOr<EmissionAllocation>> = "allocations",
        /// Names alone, in the first version of weekly emission.
        standard_allocations: Vec<String> = "standardAllocations",
        /// Tokens.
        total_cumulative_unlocked_amount: f64 = "totalCumulativeUnlockedAmount",
        committed_claim: CommittedClaim = "committedClaim",
    }
}

wire! {
    /// One row of the allocation table.
    Allocation {
        allocation_name: String = "allocationName",
        /// `Scheduled`, `TBD`, or what comes.
        allocation_type: String = "allocationType",
        standard_allocation_name: String = "standardAllocationName",
        /// Tokens.
        allocation_unlocked_amount: f64 = "allocationUnlockedAmount",
        /// Tokens.
        allocation_locked_amount: f64 = "allocationLockedAmount",
        /// Tokens.
        allocation_amount: f64 = "allocationAmount",
        /// Percent.
        tracked_allocation_percentage: f64 = "trackedAllocationPercentage",
    }
}

wire! {
    /// Allocation table of a token. The payload names no token id.
    AllocationsData {
        name: String = "name",
        symbol: String = "symbol",
        listed_method: String = "listedMethod",
        /// Tokens.
        max_supply: f64 = "maxSupply",
        last_updated_date: Timestamp = "lastUpdatedDate",
        total_unlocked_amount: f64 = "totalUnlockedAmount",
        total_locked_amount: f64 = "totalLockedAmount",
        total_untracked_amount: f64 = "totalUntrackedAmount",
        total_tbd_locked_amount: f64 = "totalTBDLockedAmount",
        allocations: Vec<Allocation> = "allocations",
    }
}

wire! {
    /// An investor of the list.
    InvestorItem {
        investor_id: String = "investorId",
        investor_name: String = "investorName",
        /// One or more addresses joined by commas.
        website: String = "website",
        latest_funding_date: Timestamp = "latestFundingDate",
    }
}

wire! {
    /// A funding round as an investor's detail tells it.
    FundingRound {
        token_id: String = "tokenId",
        round_name: String = "roundName",
        is_lead_investor: bool = "isLeadInvestor",
        funding_date: Timestamp = "fundingDate",
        /// USD; the name is spelled exactly so.
        total_amount_raised: f64 = "totalAmountRaisedinThatRound",
        /// USD.
        valuation: f64 = "valuation",
        /// USD.
        price_per_token: f64 = "pricePerToken",
        /// Not on the wire of this list: which investor's detail told it, kept with the record.
        investor_id: String = "investorId",
        /// Not on the wire of this list: the name of that investor.
        investor_name: String = "investorName",
    }
}

wire! {
    /// An investor with its rounds.
    InvestorDetail {
        investor_id: String = "investorId",
        investor_name: String = "investorName",
        website: String = "website",
        latest_funding_date: Timestamp = "latestFundingDate",
        funding_rounds: Vec<FundingRound> = "fundingRounds",
    }
}

wire! {
    /// An investor named in a token's round.
    RoundInvestor {
        investor_id: String = "investorId",
        investor_name: String = "investorName",
        is_lead_investor: bool = "isLeadInvestor",
    }
}

wire! {
    /// A funding round as the token's page tells it.
    TokenFundingRound {
        funding_round: String = "fundingRound",
        funding_date: Timestamp = "fundingDate",
        raise_type: String = "raiseType",
        /// USD.
        amount_raised: f64 = "amountRaised",
        /// USD.
        valuation: f64 = "valuation",
        /// USD.
        price_per_token: f64 = "pricePerToken",
        source_url_list: Vec<String> = "sourceURLList",
        investors: Vec<RoundInvestor> = "investors",
        number_of_investors: i64 = "numberOfInvestors",
    }
}

wire! {
    /// Fundraising of a token.
    TokenFunding {
        token_id: String = "tokenId",
        token_name: String = "tokenName",
        token_symbol: String = "tokenSymbol",
        listed_method: String = "listedMethod",
        /// USD.
        total_amount_raised: f64 = "totalAmountRaised",
        /// Tokens.
        unlocked_investor: f64 = "unlockedInvestor",
        /// Percent.
        investor_released_percentage: f64 = "investorReleasedPercentage",
        funding_rounds: Vec<TokenFundingRound> = "fundingRounds",
    }
}

wire! {
    /// Body of a refusal.
    ErrorBody {
        status: bool = "status",
        status_code: i64 = "statusCode",
        error_message: String = "errorMessage",
    }
}

#[cfg(test)]
mod tests;

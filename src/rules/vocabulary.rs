//! The names that a rule can use: fields of its record, token, change, or incident.

use crate::aggregate::{Flow, Totals};
use model::{ChangeKind, Resource, closest};

use super::condition::{PositionField, RateField};
use super::env::RecordSide;
use super::fields::{self, FieldDef, FieldReader, ItemKind, NumberUnit};
use super::getter::{GetBool, GetFact, GetNumber, GetText, GetTexts, GetTime, ItemList};
use super::on::On;
use super::synonyms;

/// The names of rules with one `on`.
#[derive(Clone, Copy, Debug)]
pub struct Vocabulary {
    on: On,
}

#[derive(Clone, Copy, Debug)]
pub enum KnownName {
    Number(GetNumber, NumberUnit),
    Bool(GetBool),
    Time(GetTime),
    Text(GetText),
    Texts(GetTexts),
    Fact(GetFact, FactType),
    Items(ItemList, ItemKind),
    Computed(Computed),
}

/// A name whose value is computed, not read from a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    Now,
    DaysUntil,
    DaysSince,
    /// Days since the latest burn or buyback.
    SinceLatest(Flow),
    Lead,
    /// The age of the record's price, or of the token's latest price.
    PriceAge,
    /// Days until the next change of the token's daily release.
    UntilRateChange,
    /// The daily release at the date of the unlock.
    Rate(RateField),
    /// The position of the operator.
    Position(PositionField),
}

pub const PRICE_AGE: &str = "priceAge";
pub const UNTIL_RATE_CHANGE: &str = "nextRate.daysUntil";

/// The computed names of all rules.
pub const ALWAYS: [(&str, Computed); 1] = [("now", Computed::Now)];

/// The computed names of rules on records and changes.
pub const OF_RECORDS: [(&str, Computed); 3] =
    [("daysUntil", Computed::DaysUntil), ("daysSince", Computed::DaysSince), ("lead", Computed::Lead)];

/// The additional computed names of rules on unlocks and their changes.
pub const OF_UNLOCKS: [(&str, Computed); 4] = [
    (PRICE_AGE, Computed::PriceAge),
    (RateField::Before.as_str(), Computed::Rate(RateField::Before)),
    (RateField::After.as_str(), Computed::Rate(RateField::After)),
    (RateField::Change.as_str(), Computed::Rate(RateField::Change)),
];

/// The computed names of rules on unlocks and their changes that only conditions know. All but the last are also known to
/// other rules on one token.
pub const OF_POSITIONS: [(&str, Computed); 3] = [
    (PositionField::Amount.as_str(), Computed::Position(PositionField::Amount)),
    (PositionField::Value.as_str(), Computed::Position(PositionField::Value)),
    (PositionField::Share.as_str(), Computed::Position(PositionField::Share)),
];

/// The computed names of rules on tokens, and of the tokens of a group.
pub const OF_TOKENS: [(&str, Computed); 2] = [(PRICE_AGE, Computed::PriceAge), (UNTIL_RATE_CHANGE, Computed::UntilRateChange)];

/// The computed names of rules on tokens and groups.
pub const OF_TOTALS: [(&str, Computed); 2] = [
    ("lastBurn.daysSince", Computed::SinceLatest(Flow::Burned)),
    ("lastBuyback.daysSince", Computed::SinceLatest(Flow::BoughtBack)),
];

/// The function that returns a token's share of a group. Only rules on `token` have it.
pub const SHARE: &str = "share";

/// The type of `change.from` and `change.to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactType {
    Amount,
    Time,
    Text,
    /// The rule subscribes to several change kinds, or the kind has several types.
    Any,
}

/// Makes a [`KnownName`] from a field definition and the object that it is read from.
macro_rules! known_name {
    ($place:ident $(($side:expr))?, $field:expr, $name:expr, $fact_type:expr) => {
        match $field.read {
            FieldReader::Number(unit, read) => KnownName::Number(GetNumber::$place($($side,)? $name, read), unit),
            FieldReader::Bool(read) => KnownName::Bool(GetBool::$place($($side,)? $name, read)),
            FieldReader::Time(read) => KnownName::Time(GetTime::$place($($side,)? $name, read)),
            FieldReader::Text(read) => KnownName::Text(GetText::$place($($side,)? $name, read)),
            FieldReader::Texts(read) => KnownName::Texts(GetTexts::$place($($side,)? $name, read)),
            FieldReader::Fact(read) => KnownName::Fact(GetFact::$place($($side,)? $name, read), $fact_type),
            FieldReader::Items(kind, read) => KnownName::Items(ItemList::$place($($side,)? $name, read), kind),
        }
    };
}

impl Vocabulary {
    pub fn of(on: On) -> Self {
        Self { on }
    }

    /// Returns the functions that only rules on tokens and groups have: the window functions and `share`.
    pub fn functions(&self) -> Vec<&'static str> {
        if self.has_windows() { Flow::ALL.into_iter().map(Flow::as_str).chain([SHARE]).collect() } else { Vec::new() }
    }

    /// Returns whether conditions know the earlier corrections of the schedule.
    pub fn has_corrections(&self) -> bool {
        self.on.resource() == Some(Resource::Unlock)
    }

    pub fn has_windows(&self) -> bool {
        self.on.has_windows()
    }

    /// Returns the fields of the totals, if the rule has totals.
    fn totals(&self) -> impl Iterator<Item = &'static FieldDef<Totals>> {
        let (common, own): (&'static [_], &'static [_]) = match self.on {
            On::Token => (fields::TOTALS, fields::TOTALS_OF_TOKEN),
            On::Portfolio => (fields::TOTALS, fields::TOTALS_OF_GROUP),
            _ => (&[], &[]),
        };
        own.iter().chain(common)
    }

    fn is_change(&self) -> bool {
        matches!(self.on, On::Change(..))
    }

    fn computed(&self) -> impl Iterator<Item = (&'static str, Computed)> {
        let of_records: &[_] = if self.on.resource().is_some() { &OF_RECORDS } else { &[] };
        let of_unlocks: &[_] = if self.on.resource() == Some(Resource::Unlock) { &OF_UNLOCKS } else { &[] };
        let of_totals: &[_] = if self.has_windows() { &OF_TOTALS } else { &[] };
        let of_tokens: &[_] = if self.on == On::Token { &OF_TOKENS } else { &[] };
        let of_positions = match self.on {
            On::Record(Resource::Unlock) | On::Change(Resource::Unlock, _) => OF_POSITIONS.len(),
            On::Portfolio => 0,
            _ => OF_POSITIONS.len() - 1,
        };
        let own = of_records.iter().chain(of_unlocks).chain(of_totals).chain(of_tokens).chain(&ALWAYS);
        own.chain(OF_POSITIONS.iter().take(of_positions)).copied()
    }

    /// Looks up a dotted name.
    pub fn find(&self, path: &str) -> Option<KnownName> {
        if let Some((_, computed)) = self.computed().find(|(name, _)| *name == path) {
            return Some(KnownName::Computed(computed));
        }
        if let Some(known) = self.on.resource().and_then(|resource| self.find_of_record(resource, path)) {
            return Some(known);
        }
        let fact_type = self.fact_type();
        if let Some(field) = self.totals().find(|field| field.name == path) {
            return Some(known_name!(Totals, field, field.name, fact_type));
        }
        if self.on != On::Portfolio
            && let Some(field) = fields::TOKEN.iter().find(|field| field.name == path)
        {
            return Some(known_name!(Token, field, field.name, fact_type));
        }
        if self.is_change()
            && let Some(field) = fields::CHANGE.iter().find(|field| field.name == path)
        {
            return Some(known_name!(Change, field, field.name, fact_type));
        }
        if self.on == On::Source
            && let Some(field) = fields::SOURCE.iter().find(|field| field.name == path)
        {
            return Some(known_name!(Source, field, field.name, fact_type));
        }
        None
    }

    fn find_of_record(&self, resource: Resource, path: &str) -> Option<KnownName> {
        let mut table = fields::of_record(resource).iter();
        let (field, side, name) = if self.is_change() && path.starts_with("old.") {
            table.find(|field| field.old == path).map(|field| (field, RecordSide::Old, field.old))
        } else if self.is_change() && path.starts_with("new.") {
            table.find(|field| field.new == path).map(|field| (field, RecordSide::New, field.new))
        } else {
            table.find(|field| field.name == path).map(|field| (field, RecordSide::Current, field.name))
        }?;
        Some(known_name!(Record(side), field, name, FactType::Any))
    }

    /// Returns the type of `change.from` and `change.to` for the rule's change kind.
    pub fn fact_type(&self) -> FactType {
        match self.on {
            On::Change(_, Some(ChangeKind::Rescheduled | ChangeKind::SeriesShifted | ChangeKind::Restructured)) => FactType::Time,
            On::Change(_, Some(ChangeKind::Resized | ChangeKind::SeriesRescaled | ChangeKind::SupplyChanged)) => FactType::Amount,
            On::Change(_, Some(ChangeKind::Renamed)) => FactType::Text,
            _ => FactType::Any,
        }
    }

    /// Returns all names, the most relevant first.
    pub fn all(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        if let Some(resource) = self.on.resource() {
            names.extend(fields::of_record(resource).iter().map(|field| field.name));
        }
        names.extend(self.totals().map(|field| field.name));
        names.extend(self.computed().map(|(name, _)| name));
        if self.on == On::Portfolio {
            return names;
        }
        names.extend(fields::TOKEN.iter().map(|field| field.name));
        if self.is_change() {
            names.extend(fields::CHANGE.iter().map(|field| field.name));
            if let Some(resource) = self.on.resource() {
                names.extend(fields::of_record(resource).iter().flat_map(|field| [field.old, field.new]));
            }
        }
        if self.on == On::Source {
            names.extend(fields::SOURCE.iter().map(|field| field.name));
        }
        names
    }

    /// Returns a suggestion if the name is valid in other rules. `None` if it is not.
    pub fn other_rules_hint(&self, path: &str) -> Option<String> {
        let root = path.split('.').next().unwrap_or(path);
        let is_window = Flow::parse(root).is_some();
        let is_of_totals = is_window
            || Flow::ALL.into_iter().any(|flow| flow.latest_name() == Some(root))
            || matches!(root, "tokens" | "group" | SHARE);
        match root {
            "change" | "old" | "new" if !self.is_change() => {
                return Some(format!("`{root}` is only available in rules on changes, such as `on = \"unlock.rescheduled\"`"));
            }
            "source" if self.on != On::Source => {
                return Some("`source` is only available in rules with `on = \"source\"`".into());
            }
            _ if is_window && self.has_windows() => {
                return Some(format!("add the window length and one of `amount`, `value`, or `count`: `{root}(\"30d\").value`"));
            }
            SHARE if self.on == On::Token => {
                return Some("add the group: `share(\"portfolio\")` is the percentage of its market cap".into());
            }
            _ if is_of_totals && !self.has_windows() => {
                return Some(format!("`{root}` is only available in rules with `on = \"token\"` or `on = \"portfolio\"`"));
            }
            "token" if self.on == On::Portfolio => {
                return Some("a portfolio has many tokens: use `tokens.exists(t, t.symbol == \"ARB\")`".into());
            }
            _ if self.on == On::Portfolio && fields::TOTALS_OF_TOKEN.iter().any(|field| field.name == root) => {
                return Some(format!("amounts of different tokens cannot be added: use `tokens.exists(t, t.{root} > …)`"));
            }
            _ => {}
        }
        let owner = Resource::ALL.into_iter().find(|resource| {
            Some(*resource) != self.on.resource() && fields::of_record(*resource).iter().any(|field| field.name == path)
        })?;
        Some(format!("`{path}` is a field of `{owner}` records, but this rule has `on = \"{}\"`", self.on))
    }

    /// Returns the names inside an object, such as `token` or `cliffUnlocks`.
    pub fn below(&self, path: &str) -> Vec<&'static str> {
        let prefix = format!("{path}.");
        self.all().into_iter().filter(|name| name.starts_with(&prefix)).collect()
    }
}

/// Returns the message and the suggestion for an unknown name.
pub fn unknown_name(path: &str, names: &[&'static str]) -> (String, String) {
    let message = format!("unknown name `{path}`");
    // The name may be known only without its prefix, or only with one.
    let last = path.rsplit('.').next().unwrap_or(path);
    let near = synonyms::name(path, names)
        .or_else(|| closest(path, names.iter().copied()))
        .or_else(|| names.iter().copied().find(|name| name.rsplit('.').next() == Some(last)))
        .or_else(|| closest(last, names.iter().copied().filter(|name| !name.contains('.'))));
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let shown: Vec<&str> = names.iter().copied().filter(|name| !name.contains('.')).take(12).collect();
            format!("known names: {}, …", shown.join(", "))
        }
    };
    (message, help)
}

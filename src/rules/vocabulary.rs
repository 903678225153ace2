//! Which names a rule may use: those of its record, of the token, and of the change or incident that it listens to.

use crate::aggregate::{Flow, Totals};
use model::{ChangeKind, Resource, closest};

use super::env::RecordSide;
use super::fields::{self, FieldDef, FieldReader, ItemKind, NumberUnit};
use super::getter::{GetBool, GetFact, GetNumber, GetText, GetTexts, GetTime, ItemList};
use super::on::On;
use super::synonyms;

/// Names and types for one `on`.
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

/// A name that no field stands behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    Now,
    DaysUntil,
    DaysSince,
    /// Days since the latest burn or buyback.
    SinceLatest(Flow),
    Lead,
}

/// Names that are known whatever a rule listens to.
pub const ALWAYS: [(&str, Computed); 1] = [("now", Computed::Now)];

/// Names that need a record.
pub const OF_RECORDS: [(&str, Computed); 3] =
    [("daysUntil", Computed::DaysUntil), ("daysSince", Computed::DaysSince), ("lead", Computed::Lead)];

/// Names that need a token's or a group's totals, beside their fields.
pub const OF_TOTALS: [(&str, Computed); 2] = [
    ("lastBurn.daysSince", Computed::SinceLatest(Flow::Burned)),
    ("lastBuyback.daysSince", Computed::SinceLatest(Flow::BoughtBack)),
];

/// The function beside those over windows that only rules on tokens and groups have.
pub const SHARE: &str = "share";

/// What `change.from` and `change.to` hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactType {
    Amount,
    Time,
    Text,
    /// The rule hears several kinds, or the kind has several.
    Any,
}

/// What a field means as a name: where it is read from (of a record, which one), under which name, of which type.
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

    /// Functions over a window, and `share`: what may be called beside the functions that every condition has.
    pub fn functions(&self) -> Vec<&'static str> {
        if self.has_windows() { Flow::ALL.into_iter().map(Flow::as_str).chain([SHARE]).collect() } else { Vec::new() }
    }

    /// Whether windows can be asked for.
    pub fn has_windows(&self) -> bool {
        self.on.has_windows()
    }

    /// The tables of the totals that this `on` has.
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

    /// The names that no field stands behind.
    fn computed(&self) -> impl Iterator<Item = (&'static str, Computed)> {
        let of_records: &[_] = if self.on.resource().is_some() { &OF_RECORDS } else { &[] };
        let of_totals: &[_] = if self.has_windows() { &OF_TOTALS } else { &[] };
        of_records.iter().chain(of_totals).chain(&ALWAYS).copied()
    }

    /// The meaning of a dotted name.
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

    /// What `from` and `to` hold for the kind of change that the rule hears.
    pub fn fact_type(&self) -> FactType {
        match self.on {
            On::Change(_, Some(ChangeKind::Rescheduled | ChangeKind::SeriesShifted | ChangeKind::Restructured)) => FactType::Time,
            On::Change(_, Some(ChangeKind::Resized | ChangeKind::SeriesRescaled | ChangeKind::SupplyChanged)) => FactType::Amount,
            On::Change(_, Some(ChangeKind::Renamed)) => FactType::Text,
            _ => FactType::Any,
        }
    }

    /// All names, in the order in which a person would look for them.
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

    /// Why a name is unknown here although it is a name elsewhere, and what to do: known words in the wrong place.
    pub fn misplaced(&self, path: &str) -> Option<String> {
        let root = path.split('.').next().unwrap_or(path);
        let is_window = Flow::parse(root).is_some();
        let is_of_totals = is_window
            || Flow::ALL.into_iter().any(|flow| flow.latest_word() == Some(root))
            || matches!(root, "tokens" | "group" | SHARE);
        match root {
            "change" | "old" | "new" if !self.is_change() => {
                return Some(format!("`{root}` is known to rules on changes only, such as `on = \"unlock.rescheduled\"`"));
            }
            "source" if self.on != On::Source => return Some("`source` is known to rules with `on = \"source\"` only".into()),
            _ if is_window && self.has_windows() => {
                return Some(format!("ask for a window, and for its `amount`, `value` or `count`: `{root}(\"30d\").value`"));
            }
            SHARE if self.on == On::Token => {
                return Some("name the group: `share(\"portfolio\")` is the percent of its market cap".into());
            }
            _ if is_of_totals && !self.has_windows() => {
                return Some(format!("`{root}` is known to rules with `on = \"token\"` or `on = \"portfolio\"` only"));
            }
            "token" if self.on == On::Portfolio => {
                return Some("a portfolio has many tokens: ask `tokens.exists(t, t.symbol == \"ARB\")`".into());
            }
            _ if self.on == On::Portfolio && fields::TOTALS_OF_TOKEN.iter().any(|field| field.name == root) => {
                return Some(format!("tokens of different kinds cannot be added up: ask `tokens.exists(t, t.{root} > …)`"));
            }
            _ => {}
        }
        let owner = Resource::ALL.into_iter().find(|resource| {
            Some(*resource) != self.on.resource() && fields::of_record(*resource).iter().any(|field| field.name == path)
        })?;
        Some(format!("`{path}` is a field of `{owner}` records; this rule listens to `{}`", self.on))
    }

    /// The names below a word that is an object here: `token`, `cliffUnlocks`.
    pub fn below(&self, path: &str) -> Vec<&'static str> {
        let prefix = format!("{path}.");
        self.all().into_iter().filter(|name| name.starts_with(&prefix)).collect()
    }
}

/// What to say of a name that nothing has.
pub fn unknown_name(path: &str, names: &[&'static str]) -> (String, String) {
    let message = format!("nothing is called `{path}`");
    // A nested name that is known under its last word alone, or the other way round.
    let last = path.rsplit('.').next().unwrap_or(path);
    let near = synonyms::name(path, names)
        .or_else(|| closest(path, names.iter().copied()))
        .or_else(|| names.iter().copied().find(|name| name.rsplit('.').next() == Some(last)))
        .or_else(|| closest(last, names.iter().copied().filter(|name| !name.contains('.'))));
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let shown: Vec<&str> = names.iter().copied().filter(|name| !name.contains('.')).take(12).collect();
            format!("known are {}, …", shown.join(", "))
        }
    };
    (message, help)
}

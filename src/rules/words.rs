//! Which names a rule may use: those of its record, of the token, and of the change or trouble it listens to.

use crate::{
    aggregate::{Flow, Totals},
    change::ChangeKind,
    supply::{Record, Resource},
};

use super::{
    On,
    fields::{self, Field, PartKind, Read},
    node::{GetBool, GetFact, GetNumber, GetText, GetTexts, GetTime, List, Which},
};

/// The names that are known whatever a rule listens to.
const ALWAYS: [&str; 1] = ["now"];

/// The names that need a record.
const OF_RECORDS: [&str; 3] = ["daysUntil", "daysSince", "lead"];

/// Names that need a token's or a group's totals, beside their fields.
const OF_TOTALS: [&str; 2] = ["lastBurn.daysSince", "lastBuyback.daysSince"];

/// Functions over a window, and `share`: what may be called beside the functions that every condition has.
pub(super) const FUNCTIONS: [&str; 5] = ["ahead", "emitted", "burned", "boughtBack", "share"];

/// Names and types for one `on`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    on: On,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    Number(GetNumber),
    Bool(GetBool),
    Time(GetTime),
    Text(GetText),
    Texts(GetTexts),
    Fact(GetFact, FactType),
    Parts(List, PartKind),
    Now,
    DaysUntil,
    DaysSince,
    SinceLast(Flow),
    Lead,
}

/// What `change.from` and `change.to` hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactType {
    Amount,
    Time,
    Text,
    /// The rule hears several kinds, or the kind has several.
    Any,
}

impl Words {
    pub fn of(on: On) -> Self {
        Self { on }
    }

    fn resource(&self) -> Option<Resource> {
        match self.on {
            On::Record(resource) | On::Change(resource, _) => Some(resource),
            On::Token | On::Portfolio | On::Source => None,
        }
    }

    /// Whether windows can be asked for.
    pub fn has_windows(&self) -> bool {
        matches!(self.on, On::Token | On::Portfolio)
    }

    /// The tables of the totals that this `on` has.
    fn totals(&self) -> impl Iterator<Item = &'static Field<Totals>> {
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

    /// The meaning of a dotted name.
    pub fn find(&self, path: &str) -> Option<Word> {
        if path == "now" {
            return Some(Word::Now);
        }
        if let Some(resource) = self.resource() {
            match path {
                "daysUntil" => return Some(Word::DaysUntil),
                "daysSince" => return Some(Word::DaysSince),
                "lead" => return Some(Word::Lead),
                _ => {}
            }
            let table = fields::of_record(resource);
            let found = if self.is_change() && path.starts_with("old.") {
                table.iter().find(|field| field.old == path).map(|field| (field, Which::Old, field.old))
            } else if self.is_change() && path.starts_with("new.") {
                table.iter().find(|field| field.new == path).map(|field| (field, Which::New, field.new))
            } else {
                table.iter().find(|field| field.name == path).map(|field| (field, Which::Current, field.name))
            };
            if let Some((field, which, name)) = found {
                return Some(record_word(field, which, name));
            }
        }
        if self.has_windows() {
            match path {
                "lastBurn.daysSince" => return Some(Word::SinceLast(Flow::Burned)),
                "lastBuyback.daysSince" => return Some(Word::SinceLast(Flow::BoughtBack)),
                _ => {}
            }
            if let Some(field) = self.totals().find(|field| field.name == path) {
                let name = field.name;
                return match field.read {
                    Read::Number(read) => Some(Word::Number(GetNumber::Totals(name, read))),
                    Read::Bool(read) => Some(Word::Bool(GetBool::Totals(name, read))),
                    Read::Time(read) => Some(Word::Time(GetTime::Totals(name, read))),
                    Read::Text(read) => Some(Word::Text(GetText::Totals(name, read))),
                    Read::Texts(read) => Some(Word::Texts(GetTexts::Totals(name, read))),
                    Read::Fact(_) => None,
                    Read::Parts(kind, read) => Some(Word::Parts(List::Totals(name, read), kind)),
                };
            }
        }
        if self.on != On::Portfolio
            && let Some(field) = fields::TOKEN.iter().find(|field| field.name == path)
        {
            let name = field.name;
            return match field.read {
                Read::Number(read) => Some(Word::Number(GetNumber::Token(name, read))),
                Read::Bool(read) => Some(Word::Bool(GetBool::Token(name, read))),
                Read::Time(read) => Some(Word::Time(GetTime::Token(name, read))),
                Read::Text(read) => Some(Word::Text(GetText::Token(name, read))),
                Read::Texts(read) => Some(Word::Texts(GetTexts::Token(name, read))),
                Read::Fact(_) | Read::Parts(..) => None,
            };
        }
        if self.is_change()
            && let Some(field) = fields::CHANGE.iter().find(|field| field.name == path)
        {
            let name = field.name;
            return match field.read {
                Read::Number(read) => Some(Word::Number(GetNumber::Change(name, read))),
                Read::Bool(read) => Some(Word::Bool(GetBool::Change(name, read))),
                Read::Time(read) => Some(Word::Time(GetTime::Change(name, read))),
                Read::Text(read) => Some(Word::Text(GetText::Change(name, read))),
                Read::Texts(read) => Some(Word::Texts(GetTexts::Change(name, read))),
                Read::Fact(read) => Some(Word::Fact(GetFact::Change(name, read), self.fact_type())),
                Read::Parts(kind, read) => Some(Word::Parts(List::Change(name, read), kind)),
            };
        }
        if self.on == On::Source
            && let Some(field) = fields::SOURCE.iter().find(|field| field.name == path)
        {
            let name = field.name;
            return match field.read {
                Read::Number(read) => Some(Word::Number(GetNumber::Source(name, read))),
                Read::Bool(read) => Some(Word::Bool(GetBool::Source(name, read))),
                Read::Time(read) => Some(Word::Time(GetTime::Source(name, read))),
                Read::Text(read) => Some(Word::Text(GetText::Source(name, read))),
                Read::Texts(read) => Some(Word::Texts(GetTexts::Source(name, read))),
                Read::Fact(_) | Read::Parts(..) => None,
            };
        }
        None
    }

    /// What `from` and `to` hold for the kind of change that the rule hears.
    pub fn fact_type(&self) -> FactType {
        match self.on {
            On::Change(_, Some(ChangeKind::Rescheduled | ChangeKind::SeriesShifted)) => FactType::Time,
            On::Change(_, Some(ChangeKind::Resized | ChangeKind::SeriesRescaled | ChangeKind::SupplyChanged)) => FactType::Amount,
            On::Change(_, Some(ChangeKind::Renamed)) => FactType::Text,
            _ => FactType::Any,
        }
    }

    /// All names, in the order in which a person would look for them.
    pub fn all(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        if let Some(resource) = self.resource() {
            names.extend(fields::of_record(resource).iter().map(|field| field.name));
            names.extend(OF_RECORDS);
        }
        names.extend(self.totals().map(|field| field.name));
        if self.has_windows() {
            names.extend(OF_TOTALS);
        }
        names.extend(ALWAYS);
        if self.on == On::Portfolio {
            return names;
        }
        names.extend(fields::TOKEN.iter().map(|field| field.name));
        if self.is_change() {
            names.extend(fields::CHANGE.iter().map(|field| field.name));
            if let Some(resource) = self.resource() {
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
        match root {
            "change" | "old" | "new" if !self.is_change() => {
                return Some(format!("`{root}` is known to rules on changes only, such as `on = \"unlock.rescheduled\"`"));
            }
            "source" if self.on != On::Source => return Some("`source` is known to rules with `on = \"source\"` only".into()),
            "ahead" | "emitted" | "burned" | "boughtBack" if self.has_windows() => {
                return Some(format!("ask for a window, and for its `amount`, `value` or `count`: `{root}(\"30d\").value`"));
            }
            "share" if self.on == On::Token => {
                return Some("name the group: `share(\"portfolio\")` is the percent of its market cap".into());
            }
            "ahead" | "emitted" | "burned" | "boughtBack" | "lastBurn" | "lastBuyback" | "tokens" | "group" | "share"
                if !self.has_windows() =>
            {
                return Some(format!("`{root}` is known to rules with `on = \"token\"` or `on = \"portfolio\"` only"));
            }
            "token" if self.on == On::Portfolio => {
                return Some("a portfolio has many tokens: ask `tokens.exists(t, t.symbol == \"ARB\")`".into());
            }
            "maxSupply" | "circulatingSupply" if self.on == On::Portfolio => {
                return Some(format!("tokens of different kinds cannot be added up: ask `tokens.exists(t, t.{root} > …)`"));
            }
            _ => {}
        }
        let owner = Resource::ALL.into_iter().find(|resource| {
            Some(*resource) != self.resource() && fields::of_record(*resource).iter().any(|field| field.name == path)
        })?;
        Some(format!("`{path}` is a field of `{owner}` records; this rule listens to {}", self.describe()))
    }

    /// The names below a word that is an object here: `token`, `cliffUnlocks`.
    pub fn below(&self, path: &str) -> Vec<&'static str> {
        let prefix = format!("{path}.");
        self.all().into_iter().filter(|name| name.starts_with(&prefix)).collect()
    }

    fn describe(&self) -> String {
        match self.on {
            On::Record(resource) => format!("`{resource}`"),
            On::Change(resource, Some(kind)) => format!("`{resource}.{kind}`"),
            On::Change(resource, None) => format!("`{resource}.*`"),
            On::Token => "`token`".into(),
            On::Portfolio => "`portfolio`".into(),
            On::Source => "`source`".into(),
        }
    }
}

fn record_word(field: &Field<Record>, which: Which, name: &'static str) -> Word {
    match field.read {
        Read::Number(read) => Word::Number(GetNumber::Record(which, name, read)),
        Read::Bool(read) => Word::Bool(GetBool::Record(which, name, read)),
        Read::Time(read) => Word::Time(GetTime::Record(which, name, read)),
        Read::Text(read) => Word::Text(GetText::Record(which, name, read)),
        Read::Texts(read) => Word::Texts(GetTexts::Record(which, name, read)),
        Read::Fact(read) => Word::Fact(GetFact::Record(which, name, read), FactType::Any),
        Read::Parts(kind, read) => Word::Parts(List::Record(which, name, read), kind),
    }
}

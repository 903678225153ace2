//! The reference of the rule language, for people and editors: fields with unit, example, and endpoint, change kinds, windows,
//! functions, template filters, and template variables. It is built from the tables that the checker uses, so both know the same
//! names. The examples come from the sample record on which templates are tried.

use std::fmt;

use minijinja::Value;
use model::{ChangeKind, Endpoint, Fact, Recipient, Resource, Timestamp};

use crate::aggregate::Flow;
use crate::condition::{PositionField, RateField, TimePart, callables};
use crate::fields::{self, FieldDef, FieldReader, ItemKind, ItemReader, ListItem};
use crate::on::On;
use crate::scope::Scope;
use crate::template::{FILTER_EXAMPLES, SampleScope, TemplateEngine, extra_names};
use crate::vocabulary::{ALWAYS, Computed, OF_POSITIONS, OF_RECORDS, OF_TOKENS, OF_TOTALS, OF_UNLOCKS, SHARE};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReferenceKind {
    /// A field of a record, token, change, or incident.
    Field,
    /// A field of a list item, used with the variable of `exists` and similar macros.
    Item,
    /// A category of recipients, compared with `standardAllocationName`.
    Recipient,
    /// A change kind, used in `on` and `change.kind`.
    Change,
    /// A sum over a time window.
    Window,
    /// A function or method of conditions.
    Function,
    /// A template filter, used after `|`.
    Filter,
    /// A name that only templates know.
    Variable,
}

impl ReferenceKind {
    /// In the order of the reference.
    pub const ALL: [Self; 8] =
        [Self::Field, Self::Item, Self::Recipient, Self::Change, Self::Window, Self::Function, Self::Filter, Self::Variable];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Field => "field",
            Self::Item => "item",
            Self::Recipient => "recipient",
            Self::Change => "change",
            Self::Window => "window",
            Self::Function => "function",
            Self::Filter => "filter",
            Self::Variable => "variable",
        }
    }
}

/// One name of the rule language.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceEntry {
    pub kind: ReferenceKind,
    pub known_by: KnownBy,
    pub name: String,
    /// The unit of a number, or the type of other values. Empty if the entry is not a value.
    pub unit: &'static str,
    /// A sample value, or a sample use.
    pub example: String,
    /// The endpoints that return the value. Empty if the value is computed.
    pub endpoints: Vec<Endpoint>,
    pub about: &'static str,
}

/// The rules that know a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownBy {
    Any,
    /// Rules on these records and their changes.
    Resource(Resource),
    /// Rules on records with recipients: unlocks, emission, and allocations, and their changes.
    Recipients,
    /// Rules on records and changes.
    Records,
    Changes,
    /// Rules on records to which this change can happen, and on their changes.
    Kind(ChangeKind),
    Token,
    Portfolio,
    /// Rules on `token` and on `portfolio`.
    TokenAndPortfolio,
    /// All rules except those on `portfolio`.
    OfOneToken,
    Source,
    /// Rules that know a list of such items.
    Items(ItemKind),
}

impl KnownBy {
    /// Returns `true` if a rule with this `on` knows the name.
    pub fn applies_to(self, on: On) -> bool {
        let is_change = matches!(on, On::Change(..));
        match self {
            KnownBy::Any => true,
            KnownBy::Resource(resource) => on.resource() == Some(resource),
            KnownBy::Recipients => {
                matches!(on.resource(), Some(Resource::Unlock | Resource::Emission | Resource::Allocation))
            }
            KnownBy::Records => on.resource().is_some(),
            KnownBy::Changes => is_change,
            KnownBy::Kind(kind) => match on {
                On::Change(_, Some(own)) => own == kind,
                _ => on.resource().is_some_and(|resource| kind.can_happen_to(resource)),
            },
            KnownBy::Token => on == On::Token,
            KnownBy::Portfolio => on == On::Portfolio,
            KnownBy::TokenAndPortfolio => on.has_windows(),
            KnownBy::OfOneToken => on != On::Portfolio,
            KnownBy::Source => on == On::Source,
            KnownBy::Items(ItemKind::Unlock) => on.resource() == Some(Resource::Unlock),
            KnownBy::Items(ItemKind::Emission) => on.resource() == Some(Resource::Emission),
            KnownBy::Items(ItemKind::Change) => is_change,
            KnownBy::Items(ItemKind::Member) => on == On::Portfolio,
        }
    }
}

impl fmt::Display for KnownBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KnownBy::Any => f.write_str("all"),
            KnownBy::Resource(resource) => write!(f, "{resource}"),
            KnownBy::Recipients => f.write_str("unlock, emission, allocation"),
            KnownBy::Records => f.write_str("records and changes"),
            KnownBy::Changes => f.write_str("changes"),
            KnownBy::Kind(kind) => {
                let resources: Vec<&str> =
                    Resource::ALL.into_iter().filter(|resource| kind.can_happen_to(*resource)).map(Resource::as_str).collect();
                f.write_str(&resources.join(", "))
            }
            KnownBy::Token => f.write_str("token"),
            KnownBy::Portfolio => f.write_str("portfolio"),
            KnownBy::TokenAndPortfolio => f.write_str("token, portfolio"),
            KnownBy::OfOneToken => f.write_str("all except portfolio"),
            KnownBy::Source => f.write_str("source"),
            KnownBy::Items(ItemKind::Unlock) => f.write_str("allocations of unlock"),
            KnownBy::Items(ItemKind::Emission) => f.write_str("allocations of emission"),
            KnownBy::Items(ItemKind::Change) => f.write_str("change.allocations"),
            KnownBy::Items(ItemKind::Member) => f.write_str("tokens of portfolio"),
        }
    }
}

/// Returns the names that a rule with this `on` knows, or all names, in the order of the reference.
pub fn reference(on: Option<On>) -> Vec<ReferenceEntry> {
    let mut entries = fields_of_records();
    entries.extend(fields_beside_records());
    entries.extend(items());
    entries.extend(recipients());
    entries.extend(changes());
    entries.extend(windows::entries());
    entries.extend(functions());
    entries.extend(filters());
    entries.extend(variables());
    entries.retain(|entry| on.is_none_or(|on| entry.known_by.applies_to(on)));
    entries
}

/// Describes a target of `on`.
pub fn describe_on(on: On) -> String {
    match on {
        On::Record(resource) => describe_resource(resource).to_owned(),
        On::Change(resource, None) => format!("any change of {resource} records"),
        On::Change(resource, Some(kind)) => format!("a change of {resource} records: {}", describe_kind(kind)),
        On::Token => "the totals of a token: windows over its unlocks, emission, burns, and buybacks".to_owned(),
        On::Portfolio => "the totals of a group of tokens".to_owned(),
        On::Source => "incidents of the source, a receiver, or the daemon".to_owned(),
    }
}

fn describe_resource(resource: Resource) -> &'static str {
    match resource {
        Resource::Unlock => "unlocks: cliffs, and the starts of linear segments",
        Resource::Burn => "burns, when they become known",
        Resource::Buyback => "buybacks, when they become known",
        Resource::Emission => "the tokens released in a day or week",
        Resource::Allocation => "the allocations of a token, with their totals",
        Resource::Funding => "investments in funding rounds, when they become known",
    }
}

fn describe_kind(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "a new record, or another step of an allocation",
        ChangeKind::Removed => "a record, or a step of an allocation, that complete responses no longer contain",
        ChangeKind::Rescheduled => "a new date for an unlock, or for the start or end of a linear segment",
        ChangeKind::Resized => "a new amount",
        ChangeKind::Reallocated => "the same total for other recipients",
        ChangeKind::Split => "one unlock split into several",
        ChangeKind::Merged => "several unlocks merged into one",
        ChangeKind::SeriesShifted => "a whole schedule moved by the same number of days",
        ChangeKind::SeriesRescaled => "all amounts of a schedule changed by the same ratio",
        ChangeKind::Renamed => "the same tranches under a new name or category, or allocations that are listed together or apart",
        ChangeKind::Restructured => "the same total at other times, not explained by a shift",
        ChangeKind::Rewritten => "a difference that no simpler kind explains",
        ChangeKind::Committed => "a new claim announcement, or new numbers in one",
        ChangeKind::Revised => "a new data source, precision, label, or listing method",
        ChangeKind::SupplyChanged => "a new max supply, or a new total of an allocation",
    }
}

/// Returns the endpoints that return records of a resource.
fn endpoints_of(resource: Resource) -> Vec<Endpoint> {
    Endpoint::ALL.into_iter().filter(|endpoint| endpoint.resource() == Some(resource)).collect()
}

fn fields_of_records() -> Vec<ReferenceEntry> {
    let mut entries = Vec::new();
    for resource in Resource::ALL {
        let sample = SampleScope::of(On::Record(resource), true, &[]);
        let record = sample.scope().record_in_view();
        entries.extend(table_entries(fields::of_record(resource), KnownBy::Resource(resource), &endpoints_of(resource), record));
        if resource == Resource::Unlock {
            let known_by = KnownBy::Resource(resource);
            let share = OF_POSITIONS.iter().filter(|(_, of)| *of == Computed::Position(PositionField::Share));
            entries.extend(OF_UNLOCKS.iter().chain(share).map(|of| computed(*of, known_by, &sample.scope())));
        }
    }
    entries
}

fn fields_beside_records() -> Vec<ReferenceEntry> {
    let unlock = SampleScope::of(On::Record(Resource::Unlock), true, &[]);
    let change = SampleScope::of(On::Change(Resource::Unlock, Some(ChangeKind::Rescheduled)), true, &[]);
    let source = SampleScope::of(On::Source, true, &[]);
    let token = SampleScope::of(On::Token, true, &[]);
    let group = SampleScope::of(On::Portfolio, true, &[]);
    let (unlock, change, source) = (unlock.scope(), change.scope(), source.scope());
    let (token, group) = (token.scope(), group.scope());
    let list = [Endpoint::TokenList];
    let flows = [Endpoint::TokenList, Endpoint::Burn, Endpoint::Buyback];
    let mut entries: Vec<_> = OF_RECORDS.into_iter().map(|of| computed(of, KnownBy::Records, &unlock)).collect();
    entries.extend(table_entries(fields::TOKEN, KnownBy::OfOneToken, &list, unlock.token));
    let of_one_token = OF_POSITIONS.iter().filter(|(_, of)| *of != Computed::Position(PositionField::Share));
    entries.extend(of_one_token.map(|of| computed(*of, KnownBy::OfOneToken, &unlock)));
    entries.extend(table_entries(fields::TOTALS, KnownBy::TokenAndPortfolio, &flows, token.totals).into_iter().map(
        |mut entry| {
            entry.endpoints.retain(|endpoint| match entry.name.split('.').next() {
                Some("lastBurn") => *endpoint == Endpoint::Burn,
                Some("lastBuyback") => *endpoint == Endpoint::Buyback,
                _ => *endpoint == Endpoint::TokenList,
            });
            of_schedule(entry)
        },
    ));
    entries.extend(OF_TOTALS.into_iter().map(|of| computed(of, KnownBy::TokenAndPortfolio, &token)));
    let of_token = table_entries(fields::TOTALS_OF_TOKEN, KnownBy::Token, &list, token.totals);
    entries.extend(of_token.into_iter().map(of_schedule));
    entries.extend(OF_TOKENS.into_iter().map(|of| computed(of, KnownBy::Token, &token)));
    entries.extend(table_entries(fields::TOTALS_OF_GROUP, KnownBy::Portfolio, &[], group.totals));
    entries.extend(table_entries(fields::CHANGE, KnownBy::Changes, &[], change.change));
    entries.extend(
        [
            ("old.cliffAmount", "any field of the record before the change"),
            ("new.cliffAmount", "any field of the record after the change"),
        ]
        .map(|(name, about)| ReferenceEntry {
            kind: ReferenceKind::Field,
            known_by: KnownBy::Changes,
            name: name.to_owned(),
            unit: "like the field",
            example: "old.cliffAmount < new.cliffAmount".to_owned(),
            endpoints: Vec::new(),
            about,
        }),
    );
    entries.extend(table_entries(fields::SOURCE, KnownBy::Source, &[], source.source));
    entries.extend(ALWAYS.into_iter().map(|of| computed(of, KnownBy::Any, &unlock)));
    entries
}

/// Returns the entry with the endpoints of the schedule if its field follows from the schedule.
fn of_schedule(mut entry: ReferenceEntry) -> ReferenceEntry {
    if fields::is_of_supply(&entry.name) {
        entry.endpoints = endpoints_of(Resource::Unlock);
    }
    entry
}

fn table_entries<O>(table: &[FieldDef<O>], known_by: KnownBy, endpoints: &[Endpoint], from: Option<&O>) -> Vec<ReferenceEntry> {
    let entry = |field: &FieldDef<O>| ReferenceEntry {
        kind: ReferenceKind::Field,
        known_by,
        name: field.name.to_owned(),
        unit: unit_of(&field.read),
        example: from.and_then(|from| example_of(&field.read, from)).unwrap_or_default(),
        endpoints: endpoints.to_vec(),
        about: field.about,
    };
    table.iter().map(entry).collect()
}

fn computed((name, of): (&'static str, Computed), known_by: KnownBy, scope: &Scope<'_>) -> ReferenceEntry {
    let (unit, example, about) = match of {
        Computed::Now => ("time", time(scope.now), "the time of the evaluation, UTC"),
        Computed::DaysUntil => ("days", "7.04".to_owned(), "days until the record; negative after it"),
        Computed::DaysSince => ("days", "-7.04".to_owned(), "days since the record; negative before it"),
        Computed::SinceLatest(Flow::Burned) => ("days", "35".to_owned(), "days since the latest burn"),
        Computed::SinceLatest(_) => ("days", "35".to_owned(), "days since the latest buyback"),
        Computed::Lead => ("string", "\"7d\"".to_owned(), "the lead time of `within` that was reached"),
        Computed::PriceAge if scope.totals.is_some() => {
            ("days", "1".to_owned(), "days since the time of the token's latest price; missing if it is unknown")
        }
        Computed::PriceAge => ("days", "8".to_owned(), "days since `referencePriceUpdatedTime`; missing if it is unknown"),
        Computed::UntilRateChange => ("days", "7".to_owned(), "days until `nextRate.date`"),
        Computed::Position(field) => (field.unit().as_str(), field.example().to_owned(), field.about()),
        Computed::Rate(RateField::Before) => (
            RateField::Before.unit().as_str(),
            "0".to_owned(),
            "tokens that unlock linearly per day, of all recipients, just before the event; missing if no linear unlock begins or ends at its date",
        ),
        Computed::Rate(RateField::After) => (
            RateField::After.unit().as_str(),
            "10".to_owned(),
            "tokens that unlock linearly per day from the event on; missing like `rateBefore`",
        ),
        Computed::Rate(RateField::Change) => (
            RateField::Change.unit().as_str(),
            "2".to_owned(),
            "`rateAfter` divided by `rateBefore`: 0.5 is half; infinite if `rateBefore` is zero",
        ),
    };
    let endpoints = match of {
        Computed::SinceLatest(flow) => endpoints_of(flow.resource()),
        Computed::PriceAge | Computed::UntilRateChange | Computed::Rate(_) => endpoints_of(Resource::Unlock),
        _ => Vec::new(),
    };
    ReferenceEntry { kind: ReferenceKind::Field, known_by, name: name.to_owned(), unit, example, endpoints, about }
}

fn items() -> Vec<ReferenceEntry> {
    let unlock = SampleScope::of(On::Record(Resource::Unlock), true, &[]);
    let emission = SampleScope::of(On::Record(Resource::Emission), true, &[]);
    let change = SampleScope::of(On::Change(Resource::Unlock, Some(ChangeKind::Rescheduled)), true, &[]);
    let group = SampleScope::of(On::Portfolio, true, &[]);
    let lists = [
        (ItemKind::Unlock, unlock.scope(), "a", endpoints_of(Resource::Unlock)),
        (ItemKind::Emission, emission.scope(), "a", endpoints_of(Resource::Emission)),
        (ItemKind::Change, change.scope(), "a", Vec::new()),
        (ItemKind::Member, group.scope(), "t", vec![Endpoint::TokenList]),
    ];
    let mut entries = Vec::new();
    for (kind, scope, variable, endpoints) in lists {
        for field in fields::of_item(kind) {
            let mut example = None;
            each_item(kind, &scope, &mut |item| {
                example = example_of_item(&field.read, item);
                example.is_none()
            });
            entries.push(ReferenceEntry {
                kind: ReferenceKind::Item,
                known_by: KnownBy::Items(kind),
                name: format!("{variable}.{}", field.name),
                unit: unit_of_item(&field.read),
                example: example.unwrap_or_default(),
                endpoints: if is_of_schedule(kind, field.name) { endpoints_of(Resource::Unlock) } else { endpoints.clone() },
                about: field.about,
            });
        }
    }
    entries
}

fn is_of_schedule(kind: ItemKind, name: &str) -> bool {
    kind == ItemKind::Member && fields::is_of_supply(name)
}

fn recipients() -> Vec<ReferenceEntry> {
    let entry = |(category, recipient): (&str, Recipient)| ReferenceEntry {
        kind: ReferenceKind::Recipient,
        known_by: KnownBy::Recipients,
        name: category.to_owned(),
        unit: "",
        example: format!("allocations.exists(a, a.standardAllocationName == \"{category}\")"),
        endpoints: Vec::new(),
        about: recipient.about(),
    };
    Recipient::all_categories().map(entry).collect()
}

fn each_item<'a>(kind: ItemKind, scope: &Scope<'a>, visit: fields::ItemVisitor<'a, '_>) {
    match kind {
        ItemKind::Unlock | ItemKind::Emission => {
            if let Some(record) = scope.record_in_view() {
                fields::each_recipient(record, visit);
            }
        }
        ItemKind::Change => {
            _ = scope.change.is_some_and(|change| change.allocations.iter().all(|item| visit(ListItem::Change(item))));
        }
        ItemKind::Member => {
            _ = scope.totals.is_some_and(|totals| totals.members.iter().all(|member| visit(ListItem::Member(member))));
        }
    }
}

fn changes() -> Vec<ReferenceEntry> {
    let entry = |kind: ChangeKind| {
        let first = Resource::ALL.into_iter().find(|resource| kind.can_happen_to(*resource));
        ReferenceEntry {
            kind: ReferenceKind::Change,
            known_by: KnownBy::Kind(kind),
            name: kind.as_str().to_owned(),
            unit: "",
            example: format!("on = \"{}.{kind}\"", first.unwrap_or(Resource::Unlock)),
            endpoints: Vec::new(),
            about: describe_kind(kind),
        }
    };
    ChangeKind::ALL.into_iter().map(entry).collect()
}

fn functions() -> Vec<ReferenceEntry> {
    let entry = |name: &str, example: String, about: &'static str| ReferenceEntry {
        kind: ReferenceKind::Function,
        known_by: KnownBy::Any,
        name: name.to_owned(),
        unit: "",
        example,
        endpoints: Vec::new(),
        about,
    };
    let parts = TimePart::ALL.into_iter().map(|(name, part)| entry(name, format!("now.{name}()"), part.description()));
    callables().map(|(name, usage, about)| entry(name, usage.to_owned(), about)).chain(parts).collect()
}

fn filters() -> Vec<ReferenceEntry> {
    let engine = TemplateEngine::new();
    let entry = |(name, usage, about): (&str, &'static str, &'static str)| {
        let shown = engine.render(&format!("{{{{ {usage} }}}}"), Value::from(())).unwrap_or_default();
        ReferenceEntry {
            kind: ReferenceKind::Filter,
            known_by: KnownBy::Any,
            name: name.to_owned(),
            unit: "",
            example: format!("{{{{ {usage} }}}} → {shown}"),
            endpoints: Vec::new(),
            about,
        }
    };
    FILTER_EXAMPLES.into_iter().map(entry).collect()
}

fn variables() -> Vec<ReferenceEntry> {
    let mut names: Vec<&'static str> = Vec::new();
    for on in On::all() {
        // Windows have their own entries.
        let extra = extra_names(on, false).into_iter().filter(|name| Flow::parse(name).is_none() && *name != SHARE);
        for name in extra {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let entry = |name: &'static str| {
        let (known_by, example, about) = match name {
            "when" => {
                (KnownBy::Records, "{{ when }} → on 16 Mar 2026, 01:00 UTC", "the record's date, as exact as its precision")
            }
            "record" => (KnownBy::Records, "{{ record | json }}", "the whole record"),
            "labels" => (KnownBy::Any, "{{ labels.severity }}", "the labels of the alert; only in annotations"),
            "change.fields" => (KnownBy::Changes, "{{ change.fields | json }}", "the fields that changed"),
            "change.before" => (KnownBy::Changes, "{{ change.before | json }}", "a short form of the schedule before the change"),
            _ => (KnownBy::Changes, "{{ change.after | json }}", "a short form of the schedule after the change"),
        };
        let (kind, name, unit) = (ReferenceKind::Variable, name.to_owned(), "");
        ReferenceEntry { kind, known_by, name, unit, example: example.to_owned(), endpoints: Vec::new(), about }
    };
    names.into_iter().map(entry).collect()
}

fn unit_of<O>(reader: &FieldReader<O>) -> &'static str {
    match reader {
        FieldReader::Number(unit, _) => unit.as_str(),
        FieldReader::Bool(_) => "boolean",
        FieldReader::Time(_) => "time",
        FieldReader::Text(_) => "string",
        FieldReader::Texts(_) => "list of strings",
        FieldReader::Fact(_) => "time, number, or string",
        FieldReader::Items(ItemKind::Member, _) => "list of tokens",
        FieldReader::Items(..) => "list of allocations",
    }
}

fn unit_of_item(reader: &ItemReader) -> &'static str {
    match reader {
        ItemReader::Number(unit, _) => unit.as_str(),
        ItemReader::Time(_) => "time",
        ItemReader::Text(_) => "string",
        ItemReader::Fact(_) => "time, number, or string",
    }
}

fn example_of<O>(reader: &FieldReader<O>, from: &O) -> Option<String> {
    match reader {
        FieldReader::Number(_, read) => read(from).map(|number| number.to_string()),
        FieldReader::Bool(read) => read(from).map(|truth| truth.to_string()),
        FieldReader::Time(read) => read(from).map(time),
        FieldReader::Text(read) => read(from).map(text),
        FieldReader::Texts(read) => {
            read(from).map(|texts| format!("[{}]", texts.iter().map(|one| text(one)).collect::<Vec<_>>().join(", ")))
        }
        FieldReader::Fact(read) => read(from).map(fact),
        FieldReader::Items(_, read) => {
            let mut names = Vec::new();
            read(from, &mut |item| {
                names.extend(match item {
                    ListItem::Member(member) => Some(member.id.to_string()),
                    item => fields::item_name(item).map(str::to_owned),
                });
                true
            })?;
            Some(names.join(", "))
        }
    }
}

fn example_of_item(reader: &ItemReader, item: ListItem<'_>) -> Option<String> {
    match reader {
        ItemReader::Number(_, read) => read(item).map(|number| number.to_string()),
        ItemReader::Time(read) => read(item).map(time),
        ItemReader::Text(read) => read(item).map(text),
        ItemReader::Fact(read) => read(item).map(fact),
    }
}

fn text(text: &str) -> String {
    format!("\"{text}\"")
}

fn time(at: Timestamp) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

fn fact(fact: &Fact) -> String {
    match fact {
        Fact::Amount(amount) => amount.to_string(),
        Fact::Time(at) => time(*at),
        Fact::Text(word) => text(word),
    }
}

#[cfg(test)]
mod tests;
mod windows;

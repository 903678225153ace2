//! Everything that a rule may name, for people and for editors: fields with unit, example and the endpoint that they come from, kinds of
//! change, windows, functions, filters and variables of texts. Made from the tables that the checker reads, so that neither can know a
//! word that the other does not. The examples of fields are read from the made-up record that templates are tried with.

use std::fmt;

use minijinja::Value;
use model::{ChangeKind, Endpoint, Fact, Resource, Timestamp};

use crate::aggregate::Flow;
use crate::condition::{TimePart, WindowField, callables};
use crate::fields::{self, FieldDef, FieldReader, ItemKind, ItemReader, ListItem, NumberUnit};
use crate::on::On;
use crate::scope::Scope;
use crate::template::{FILTER_EXAMPLES, SampleScope, TemplateEngine, extra_names};
use crate::vocabulary::{ALWAYS, Computed, OF_RECORDS, OF_TOTALS, SHARE};

/// What an entry of the reference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReferenceKind {
    /// A name that holds a value.
    Field,
    /// A field of an item of a list: behind the variable of `exists` and its like.
    Item,
    /// A kind of change, as `on` and `change.kind` write it.
    Change,
    /// A function over a window of time.
    Window,
    /// What a condition may call.
    Function,
    /// What a template may write behind a `|`.
    Filter,
    /// What only templates know.
    Variable,
}

impl ReferenceKind {
    /// All of them, in the order of the page.
    pub const ALL: [Self; 7] =
        [Self::Field, Self::Item, Self::Change, Self::Window, Self::Function, Self::Filter, Self::Variable];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Field => "field",
            Self::Item => "item",
            Self::Change => "change",
            Self::Window => "window",
            Self::Function => "function",
            Self::Filter => "filter",
            Self::Variable => "variable",
        }
    }
}

/// One word of the language of rules.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceEntry {
    pub kind: ReferenceKind,
    /// Which rules know it.
    pub known_by: KnownBy,
    /// As a rule writes it.
    pub name: String,
    /// Its unit where it is a number, else its type; empty where there is none.
    pub unit: &'static str,
    /// A value, or how it is used.
    pub example: String,
    /// Where its values come from; empty where they are worked out here.
    pub endpoints: Vec<Endpoint>,
    /// What it means.
    pub about: &'static str,
}

/// Which rules know a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownBy {
    /// All of them.
    Any,
    /// Rules on these records and their changes.
    Resource(Resource),
    /// Rules on records and changes.
    Records,
    /// Rules on changes.
    Changes,
    /// Rules on records to which this can happen, and on their changes.
    Kind(ChangeKind),
    /// Rules on a token as a whole.
    Token,
    /// Rules on a group as a whole.
    Portfolio,
    /// Rules on either.
    Wholes,
    /// All but those on a group.
    OfOneToken,
    /// Rules on the source.
    Source,
    /// Rules that know a list of these.
    Items(ItemKind),
}

impl KnownBy {
    /// Whether a rule that listens to `on` knows the word.
    pub fn meets(self, on: On) -> bool {
        let is_change = matches!(on, On::Change(..));
        match self {
            KnownBy::Any => true,
            KnownBy::Resource(resource) => on.resource() == Some(resource),
            KnownBy::Records => on.resource().is_some(),
            KnownBy::Changes => is_change,
            KnownBy::Kind(kind) => match on {
                On::Change(_, Some(own)) => own == kind,
                _ => on.resource().is_some_and(|resource| kind.can_happen_to(resource)),
            },
            KnownBy::Token => on == On::Token,
            KnownBy::Portfolio => on == On::Portfolio,
            KnownBy::Wholes => on.has_windows(),
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
            KnownBy::Records => f.write_str("records and changes"),
            KnownBy::Changes => f.write_str("changes"),
            KnownBy::Kind(kind) => {
                let resources: Vec<&str> =
                    Resource::ALL.into_iter().filter(|resource| kind.can_happen_to(*resource)).map(Resource::as_str).collect();
                f.write_str(&resources.join(", "))
            }
            KnownBy::Token => f.write_str("token"),
            KnownBy::Portfolio => f.write_str("portfolio"),
            KnownBy::Wholes => f.write_str("token, portfolio"),
            KnownBy::OfOneToken => f.write_str("all but portfolio"),
            KnownBy::Source => f.write_str("source"),
            KnownBy::Items(ItemKind::Unlock) => f.write_str("allocations of unlock"),
            KnownBy::Items(ItemKind::Emission) => f.write_str("allocations of emission"),
            KnownBy::Items(ItemKind::Change) => f.write_str("change.allocations"),
            KnownBy::Items(ItemKind::Member) => f.write_str("tokens of portfolio"),
        }
    }
}

/// The words that a rule on `on` knows; without one, all of them. In the order of the page.
pub fn reference(on: Option<On>) -> Vec<ReferenceEntry> {
    let mut entries = fields_of_records();
    entries.extend(fields_beside_records());
    entries.extend(items());
    entries.extend(changes());
    entries.extend(windows());
    entries.extend(functions());
    entries.extend(filters());
    entries.extend(variables());
    entries.retain(|entry| on.is_none_or(|on| entry.known_by.meets(on)));
    entries
}

/// What a rule can listen to, in a sentence.
pub fn about_on(on: On) -> String {
    match on {
        On::Record(resource) => about_resource(resource).to_owned(),
        On::Change(resource, None) => format!("any change of {resource} records"),
        On::Change(resource, Some(kind)) => format!("a change of {resource} records: {}", about_kind(kind)),
        On::Token => "a token as a whole: windows over its unlocks, emission, burns and buybacks".to_owned(),
        On::Portfolio => "a group of tokens as a whole".to_owned(),
        On::Source => "trouble with the source, a receiver or this program".to_owned(),
    }
}

fn about_resource(resource: Resource) -> &'static str {
    match resource {
        Resource::Unlock => "unlocks: cliffs, and linear segments where they begin",
        Resource::Burn => "burns, as they become known",
        Resource::Buyback => "buybacks, as they become known",
        Resource::Emission => "what was released in a day or a week",
        Resource::Allocation => "who gets how much in all",
        Resource::Funding => "investments, as they become known",
    }
}

fn about_kind(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "something that was not there",
        ChangeKind::Removed => "something that complete answers no longer have",
        ChangeKind::Rescheduled => "an unlock, or the begin or end of a linear segment, has another date",
        ChangeKind::Resized => "an amount is another",
        ChangeKind::Reallocated => "the same total goes to other recipients",
        ChangeKind::Split => "one unlock became several",
        ChangeKind::Merged => "several unlocks became one",
        ChangeKind::SeriesShifted => "all of a schedule moved by one step",
        ChangeKind::SeriesRescaled => "all amounts of a schedule changed by one ratio",
        ChangeKind::Renamed => "the same tranches under another name",
        ChangeKind::Restructured => "the same total at other times, and not by a shift",
        ChangeKind::Rewritten => "nothing simpler explains what differs",
        ChangeKind::Committed => "a claim was announced, or its numbers changed",
        ChangeKind::Revised => "another source, precision, label or method",
        ChangeKind::SupplyChanged => "the maximum supply, or an allocation's total, is another",
    }
}

/// The endpoints that bring records of a resource.
fn endpoints_of(resource: Resource) -> Vec<Endpoint> {
    Endpoint::ALL.into_iter().filter(|endpoint| endpoint.resource() == Some(resource)).collect()
}

fn fields_of_records() -> Vec<ReferenceEntry> {
    let mut entries = Vec::new();
    for resource in Resource::ALL {
        let sample = SampleScope::of(On::Record(resource), true, &[]);
        let record = sample.scope().record_in_view();
        entries.extend(of_table(fields::of_record(resource), KnownBy::Resource(resource), &endpoints_of(resource), record));
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
    entries.extend(of_table(fields::TOKEN, KnownBy::OfOneToken, &list, unlock.token));
    entries.extend(of_table(fields::TOTALS, KnownBy::Wholes, &flows, token.totals).into_iter().map(|mut entry| {
        entry.endpoints.retain(|endpoint| match entry.name.split('.').next() {
            Some("lastBurn") => *endpoint == Endpoint::Burn,
            Some("lastBuyback") => *endpoint == Endpoint::Buyback,
            _ => *endpoint == Endpoint::TokenList,
        });
        entry
    }));
    entries.extend(OF_TOTALS.into_iter().map(|of| computed(of, KnownBy::Wholes, &token)));
    entries.extend(of_table(fields::TOTALS_OF_TOKEN, KnownBy::Token, &list, token.totals));
    entries.extend(of_table(fields::TOTALS_OF_GROUP, KnownBy::Portfolio, &[], group.totals));
    entries.extend(of_table(fields::CHANGE, KnownBy::Changes, &[], change.change));
    entries.extend(
        [("old.cliffAmount", "any field of the record, before the change"), ("new.cliffAmount", "… and after it")].map(
            |(name, about)| ReferenceEntry {
                kind: ReferenceKind::Field,
                known_by: KnownBy::Changes,
                name: name.to_owned(),
                unit: "as the field",
                example: "old.cliffAmount < new.cliffAmount".to_owned(),
                endpoints: Vec::new(),
                about,
            },
        ),
    );
    entries.extend(of_table(fields::SOURCE, KnownBy::Source, &[], source.source));
    entries.extend(ALWAYS.into_iter().map(|of| computed(of, KnownBy::Any, &unlock)));
    entries
}

fn of_table<O>(table: &[FieldDef<O>], known_by: KnownBy, endpoints: &[Endpoint], from: Option<&O>) -> Vec<ReferenceEntry> {
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
        Computed::Now => ("time", time(scope.now), "the time of the look, UTC"),
        Computed::DaysUntil => ("days", "7.04".to_owned(), "how far ahead the record is; negative afterwards"),
        Computed::DaysSince => ("days", "-7.04".to_owned(), "how long ago the record was; negative before"),
        Computed::SinceLatest(Flow::Burned) => ("days", "35".to_owned(), "how long ago the latest burn was"),
        Computed::SinceLatest(_) => ("days", "35".to_owned(), "how long ago the latest buyback was"),
        Computed::Lead => ("text", "\"7d\"".to_owned(), "the lead time of `within` that was reached"),
    };
    let endpoints = match of {
        Computed::SinceLatest(flow) => endpoints_of(flow.resource()),
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
                endpoints: endpoints.clone(),
                about: field.about,
            });
        }
    }
    entries
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
            about: about_kind(kind),
        }
    };
    ChangeKind::ALL.into_iter().map(entry).collect()
}

fn windows() -> Vec<ReferenceEntry> {
    let entry = |flow: Flow| ReferenceEntry {
        kind: ReferenceKind::Window,
        known_by: KnownBy::Wholes,
        name: flow.as_str().to_owned(),
        unit: "a window",
        example: format!("{}(\"30d\").value >= 1000000", flow.as_str()),
        endpoints: endpoints_of(flow.resource()),
        about: match flow {
            Flow::Ahead => "what unlocks in so long a time to come: cliffs and daily releases",
            Flow::Emitted => "what was released in so long a time that is over",
            Flow::Burned => "what was burned in it",
            Flow::BoughtBack => "what was bought back in it",
        },
    };
    let field = |field: WindowField| {
        let (unit, about) = match field {
            WindowField::Amount => (NumberUnit::Tokens, "tokens in the window; of a group there is none"),
            WindowField::Value => (NumberUnit::Usd, "what they are worth"),
            WindowField::Count => (NumberUnit::Count, "how many events"),
            WindowField::Possible => (NumberUnit::Usd, "of `ahead`: what may still come because its month is not over"),
        };
        ReferenceEntry {
            kind: ReferenceKind::Window,
            known_by: KnownBy::Wholes,
            name: format!(".{}", field.as_str()),
            unit: unit.as_str(),
            example: format!("ahead(\"7d\").{} > 0", field.as_str()),
            endpoints: Vec::new(),
            about,
        }
    };
    let share = ReferenceEntry {
        kind: ReferenceKind::Window,
        known_by: KnownBy::Token,
        name: SHARE.to_owned(),
        unit: NumberUnit::Percent.as_str(),
        example: format!("{SHARE}(\"portfolio\") > 25"),
        endpoints: vec![Endpoint::TokenList],
        about: "the token's part of the market cap of a group",
    };
    Flow::ALL.into_iter().map(entry).chain(WindowField::ALL.into_iter().map(field)).chain([share]).collect()
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
    let parts = TimePart::ALL.into_iter().map(|(name, part)| entry(name, format!("now.{name}()"), part.about()));
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
        // Windows have entries of their own.
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
                (KnownBy::Records, "{{ when }} → on 16 Mar 2026, 01:00 UTC", "the record's date in words, as exact as it is")
            }
            "record" => (KnownBy::Records, "{{ record | json }}", "the record as a whole"),
            "labels" => (KnownBy::Any, "{{ labels.severity }}", "the labels of the alert; in annotations alone"),
            "change.fields" => (KnownBy::Changes, "{{ change.fields | json }}", "which fields changed"),
            "change.before" => (KnownBy::Changes, "{{ change.before | json }}", "the schedule before, in short"),
            _ => (KnownBy::Changes, "{{ change.after | json }}", "the schedule after, in short"),
        };
        let (kind, name, unit) = (ReferenceKind::Variable, name.to_owned(), "");
        ReferenceEntry { kind, known_by, name, unit, example: example.to_owned(), endpoints: Vec::new(), about }
    };
    names.into_iter().map(entry).collect()
}

fn unit_of<O>(reader: &FieldReader<O>) -> &'static str {
    match reader {
        FieldReader::Number(unit, _) => unit.as_str(),
        FieldReader::Bool(_) => "true or false",
        FieldReader::Time(_) => "time",
        FieldReader::Text(_) => "text",
        FieldReader::Texts(_) => "list of texts",
        FieldReader::Fact(_) => "time, number or text",
        FieldReader::Items(ItemKind::Member, _) => "list of tokens",
        FieldReader::Items(..) => "list of allocations",
    }
}

fn unit_of_item(reader: &ItemReader) -> &'static str {
    match reader {
        ItemReader::Number(unit, _) => unit.as_str(),
        ItemReader::Time(_) => "time",
        ItemReader::Text(_) => "text",
        ItemReader::Fact(_) => "time, number or text",
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

//! What the source says in a test: records as the file writes them, made into the answers that the client would hand over.
//!
//! A record is written in the words that conditions use: `cliffAmount` may stand directly in an unlock, as well as where the API has
//! it, in `cliffUnlocks`. What the API always sends beside it (the breakdown by recipient) is filled in where the test does not care.
//! A field that nobody knows is refused, since a test with a typo proves nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read as _,
    path::Path,
};

use serde_json::{Map, Value, json};

use model::{Endpoint, Payload, Resource, TokenId, closest, format, wire, wire::ReadJson};

/// Largest data file, bytes.
const MAX_FILE: u64 = 16 << 20;
/// Records of one token and resource.
const MAX_RECORDS: usize = 20_000;
/// The recipient of an unlock that names none.
const ANYBODY: &str = "All";

/// What the source knows: records by token and resource.
#[derive(Debug, Default)]
pub(super) struct TestSource {
    lists: BTreeMap<(TokenId, Resource), RecordList>,
    /// Tokens of which a segment was told once: from then on their schedules speak of segments, also where none is left.
    with_segments: BTreeSet<TokenId>,
}

#[derive(Clone, Debug, Default)]
struct RecordList {
    rows: Vec<Map<String, Value>>,
    /// Fields beside the records: `maxSupply`, totals.
    around: Map<String, Value>,
}

/// An answer about a token.
pub(super) enum SourceAnswer {
    Answer(Endpoint, Payload),
    Rounds(Vec<wire::FundingRound>),
}

impl TestSource {
    /// Puts records in place of all that were there: a list of them, or the path of a data file relative to `folder`.
    pub fn set(&mut self, token: &TokenId, resource: Resource, given: &toml::Value, folder: &Path) -> Result<(), String> {
        let list = match given {
            toml::Value::String(path) => read(&folder.join(path), resource)?,
            toml::Value::Array(items) => {
                let mut rows = Vec::with_capacity(items.len());
                for item in items {
                    let toml::Value::Table(table) = item else {
                        return Err(format!("`{resource}` is a list of records, each a table, or the path of a data file"));
                    };
                    let mut row = Map::new();
                    write(&mut row, resource, fields(table))?;
                    rows.push(row);
                }
                RecordList { rows, around: Map::new() }
            }
            _ => return Err(format!("`{resource}` is a list of records, or the path of a data file")),
        };
        if list.rows.len() > MAX_RECORDS {
            return Err(format!("{} records; at most {MAX_RECORDS} of one kind are taken", list.rows.len()));
        }
        self.lists.insert((token.clone(), resource), list);
        self.note_segments(token, resource);
        Ok(())
    }

    /// Another record: `{ unlock = "2026-04-01", cliffAmount = 5e6 }`.
    pub fn add(&mut self, token: &TokenId, entry: &toml::Table) -> Result<Resource, String> {
        let (resource, key, rest) = addressed(entry)?;
        let mut row = Map::new();
        row.insert(key_field(resource).to_owned(), Value::String(key));
        write(&mut row, resource, rest)?;
        let list = self.lists.entry((token.clone(), resource)).or_default();
        if list.rows.len() >= MAX_RECORDS {
            return Err(format!("at most {MAX_RECORDS} records of one kind are taken"));
        }
        list.rows.push(row);
        self.note_segments(token, resource);
        Ok(resource)
    }

    /// Other facts of records: `{ unlock = "2026-03-16", unlockDate = "2026-03-20" }`.
    pub fn change(&mut self, token: &TokenId, entry: &toml::Table) -> Result<Resource, String> {
        let (resource, key, rest) = addressed(entry)?;
        if rest.is_empty() {
            return Err("nothing is changed: write the new value beside it, such as `cliffAmount = 5e6`".into());
        }
        for row in self.find(token, resource, &key)? {
            write(row, resource, rest.clone())?;
        }
        self.note_segments(token, resource);
        Ok(resource)
    }

    /// Takes records out: `{ unlock = "2026-03-16" }`.
    pub fn remove(&mut self, token: &TokenId, entry: &toml::Table) -> Result<Resource, String> {
        let (resource, key, rest) = addressed(entry)?;
        if let Some(name) = rest.keys().next() {
            return Err(format!("`{name}` means nothing here: a record is taken out by its date or name alone"));
        }
        self.find(token, resource, &key)?;
        if let Some(list) = self.lists.get_mut(&(token.clone(), resource)) {
            list.rows.retain(|row| !is_called(row, resource, &key));
        }
        Ok(resource)
    }

    fn note_segments(&mut self, token: &TokenId, resource: Resource) {
        let list = self.lists.get(&(token.clone(), resource));
        if resource == Resource::Unlock && list.is_some_and(|list| list.rows.iter().any(|row| row.contains_key("linearUnlocks")))
        {
            self.with_segments.insert(token.clone());
        }
    }

    fn find(&mut self, token: &TokenId, resource: Resource, key: &str) -> Result<Vec<&mut Map<String, Value>>, String> {
        let rows = self.lists.get_mut(&(token.clone(), resource)).map(|list| &mut list.rows[..]).unwrap_or_default();
        if rows.iter().any(|row| is_called(row, resource, key)) {
            return Ok(rows.iter_mut().filter(|row| is_called(row, resource, key)).collect());
        }
        let known = rows.iter().filter_map(|row| row.get(key_field(resource))?.as_str());
        let known = format::names(known.collect::<Vec<_>>());
        Err(match rows.is_empty() {
            true => format!("{token} has no {resource} to change: write `{resource} = […]` in an input before"),
            false => format!("{token} has no {resource} \"{key}\"; there are {known}"),
        })
    }

    /// The whole answer about a token's records of a resource.
    pub fn said(&self, token: &TokenId, resource: Resource) -> Result<SourceAnswer, String> {
        let mut list = self.lists.get(&(token.clone(), resource)).cloned().unwrap_or_default();
        if resource == Resource::Unlock && self.with_segments.contains(token) {
            list.rows.iter_mut().for_each(|row| _ = row.entry("linearUnlocks").or_insert(Value::Null));
        }
        let rows = Value::Array(list.rows.into_iter().map(Value::Object).collect());
        let whole = |name: &str| {
            let mut around = list.around.clone();
            around.insert(name.to_owned(), rows.clone());
            Value::Object(around)
        };
        Ok(match resource {
            Resource::Unlock => SourceAnswer::Answer(Endpoint::UnlockEvents, Payload::UnlockEvents(typed(rows)?)),
            Resource::Burn => SourceAnswer::Answer(Endpoint::Burn, Payload::Burns(typed(whole("burns"))?)),
            Resource::Buyback => SourceAnswer::Answer(Endpoint::Buyback, Payload::Buybacks(typed(whole("buybacks"))?)),
            Resource::Allocation => {
                SourceAnswer::Answer(Endpoint::Allocations, Payload::Allocations(typed(whole("allocations"))?))
            }
            Resource::Emission => SourceAnswer::Answer(Endpoint::DailyEmission, Payload::Emissions(typed(rows)?)),
            Resource::Funding => SourceAnswer::Rounds(typed(rows)?),
        })
    }
}

/// Reads JSON as the client does; what is odd in it is a mistake of the test.
fn typed<T: ReadJson>(value: Value) -> Result<T, String> {
    let text = value.to_string();
    let (result, oddities, _) = wire::gather_oddities(|| T::read_json(&text));
    if let Some(odd) = oddities.first() {
        return Err(format!("{}: {}", odd.path, odd.problem.replace("; the field is ignored", "")));
    }
    result.map_err(|error| error.to_string())
}

/// A row of the token list.
pub(super) fn token_item(table: &toml::Table) -> Result<wire::TokenItem, String> {
    let fields = fields(table);
    refuse_unknown("a token", &fields, wire::TokenItem::FIELDS, &[])?;
    let item: wire::TokenItem = typed(Value::Object(fields))?;
    match item.id.as_str() {
        Some(id) if !id.is_empty() => Ok(item),
        _ => Err("a token needs its `id`, the slug".into()),
    }
}

fn read(path: &Path, resource: Resource) -> Result<RecordList, String> {
    let failed = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
    let mut text = String::new();
    let file = model::file_kind::open_regular(path).map_err(failed)?;
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_FILE {
        return Err(format!("{} is larger than {MAX_FILE} bytes", path.display()));
    }
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    // The payload alone, or the whole answer around it.
    let value = match value {
        Value::Object(mut envelope) if envelope.contains_key("data") && envelope.contains_key("status") => {
            envelope.remove("data").unwrap_or_default()
        }
        value => value,
    };
    let (rows, around) = match (value, rows_field(resource)) {
        (Value::Array(rows), _) => (rows, Map::new()),
        (Value::Object(mut around), Some(name)) => match around.remove(name) {
            Some(Value::Array(rows)) => (rows, around),
            _ => return Err(format!("{} has no list `{name}`, so it is no answer about {resource} records", path.display())),
        },
        _ => return Err(format!("{} holds no list of {resource} records", path.display())),
    };
    let rows: Vec<_> = rows.into_iter().filter_map(|row| if let Value::Object(row) = row { Some(row) } else { None }).collect();
    if resource == Resource::Unlock && rows.iter().any(|row| !row.contains_key("unlockDate")) {
        return Err(format!("{} holds records without `unlockDate`, so it is no unlock schedule", path.display()));
    }
    Ok(RecordList { rows, around })
}

fn rows_field(resource: Resource) -> Option<&'static str> {
    match resource {
        Resource::Burn => Some("burns"),
        Resource::Buyback => Some("buybacks"),
        Resource::Allocation => Some("allocations"),
        Resource::Unlock | Resource::Emission | Resource::Funding => None,
    }
}

/// The field that a record is called by in a test.
fn key_field(resource: Resource) -> &'static str {
    match resource {
        Resource::Unlock => "unlockDate",
        Resource::Burn => "burnDate",
        Resource::Buyback => "buybackDate",
        Resource::Emission => "startDate",
        Resource::Allocation => "allocationName",
        Resource::Funding => "fundingDate",
    }
}

/// Whether a record is meant: by its name, by its instant, or by its day.
fn is_called(row: &Map<String, Value>, resource: Resource, key: &str) -> bool {
    let Some(own) = row.get(key_field(resource)).and_then(Value::as_str) else { return false };
    if resource == Resource::Allocation {
        return own == key;
    }
    match (wire::parse_timestamp(own), wire::parse_timestamp(key)) {
        (Some(own), Some(wanted)) if key.len() <= "2026-01-31".len() => own.date_naive() == wanted.date_naive(),
        (Some(own), Some(wanted)) => own == wanted,
        _ => false,
    }
}

/// Which record an entry is about, and the fields beside it.
fn addressed(entry: &toml::Table) -> Result<(Resource, String, Map<String, Value>), String> {
    let mut rest = fields(entry);
    let mut found = None;
    for resource in Resource::ALL {
        if let Some(value) = rest.remove(resource.as_str()) {
            if found.is_some() {
                return Err("one entry is about one record: write another entry for the other".into());
            }
            let Value::String(key) = value else {
                return Err(format!("`{resource}` says which record: write its {} in quotes", key_field(resource)));
            };
            found = Some((resource, key));
        }
    }
    let Some((resource, key)) = found else {
        return Err("say which record: `unlock = \"2026-03-16\"`, `burn = \"2026-03-16\"`, `allocation = \"Team\"`".into());
    };
    if resource != Resource::Allocation && wire::parse_timestamp(&key).is_none() {
        return Err(format!("\"{key}\" is no date: write it like \"2026-03-16\" or \"2026-03-16T09:00:00Z\""));
    }
    Ok((resource, key, rest))
}

/// A TOML table as JSON; dates become texts, as the API writes them.
fn fields(table: &toml::Table) -> Map<String, Value> {
    table.iter().map(|(name, value)| (name.clone(), plain(value))).collect()
}

fn plain(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => json!(text),
        toml::Value::Integer(number) => json!(number),
        toml::Value::Float(number) => json!(number),
        toml::Value::Boolean(truth) => json!(truth),
        toml::Value::Datetime(at) => json!(at.to_string()),
        toml::Value::Array(items) => Value::Array(items.iter().map(plain).collect()),
        toml::Value::Table(table) => Value::Object(fields(table)),
    }
}

/// Writes fields into a record, each where the API has it.
fn write(row: &mut Map<String, Value>, resource: Resource, given: Map<String, Value>) -> Result<(), String> {
    let mut later: Vec<(&str, &str, Value)> = Vec::new();
    for (name, value) in given {
        match (resource, name.as_str()) {
            (Resource::Unlock, "cliffAmount" | "cliffValue") => {
                if let Some(Value::Object(cliffs)) = row.get_mut("cliffUnlocks") {
                    let before = cliffs.get(&name).and_then(Value::as_f64);
                    rescale(cliffs, &name, before, value.as_f64());
                }
                set_in(row, "cliffUnlocks", &name, value);
            }
            (Resource::Unlock, "valueToMarketCap") => set_in(row, "cliffUnlocks", &name, value),
            (Resource::Unlock, "allocations") => set_in(row, "cliffUnlocks", "allocationBreakdown", value),
            (Resource::Unlock, "linearAmount" | "linearValue" | "dailyAmount" | "dailyValue") => {
                set_in(row, "linearUnlocks", &name, value);
            }
            (Resource::Unlock, "unlockPrecision") => later.push(("unlockPrecision", "", value)),
            (Resource::Unlock, "committedAmount") => later.push(("committedClaim", "amount", value)),
            (Resource::Unlock, "committedValue") => later.push(("committedClaim", "value", value)),
            (Resource::Unlock, "unlockDate") => {
                for item in items(row, "cliffUnlocks") {
                    if item.contains_key("unlockDate") {
                        item.insert("unlockDate".into(), value.clone());
                    }
                }
                row.insert(name, value);
            }
            (Resource::Burn, "burners" | "burnReasons") => set_in(row, "metadata", &name, value),
            (Resource::Emission, "committedAmount") => set_in(row, "committedClaim", "amount", value),
            (Resource::Emission, "committedValue") => set_in(row, "committedClaim", "value", value),
            _ => _ = row.insert(name, value),
        }
    }
    if resource == Resource::Unlock {
        fill_in(row);
        for (name, part, value) in later {
            let mut all = items(row, "cliffUnlocks");
            if part.is_empty() {
                all.iter_mut().for_each(|item| _ = item.insert(name.to_owned(), value.clone()));
                items(row, "linearUnlocks").iter_mut().for_each(|item| _ = item.insert(name.to_owned(), value.clone()));
            } else if let Some(first) = all.first_mut() {
                set_in(first, name, part, value);
            } else {
                return Err("only a cliff can have a committed amount: give it a `cliffAmount`".into());
            }
        }
    }
    check(row, resource)
}

/// What the source always sends beside the totals: who gets it.
fn fill_in(row: &mut Map<String, Value>) {
    let date = row.get("unlockDate").cloned();
    if let Some(cliffs) = row.get_mut("cliffUnlocks").and_then(Value::as_object_mut)
        && !cliffs.contains_key("allocationBreakdown")
    {
        let mut item = json!({"allocationName": ANYBODY});
        for name in ["cliffAmount", "cliffValue"] {
            if let (Some(value), Some(item)) = (cliffs.get(name), item.as_object_mut()) {
                item.insert(name.to_owned(), value.clone());
            }
        }
        cliffs.insert("allocationBreakdown".into(), json!([item]));
    }
    if let Some(linears) = row.get_mut("linearUnlocks").and_then(Value::as_object_mut)
        && !linears.contains_key("allocationBreakdown")
    {
        let mut item = json!({"allocationName": ANYBODY, "beginDate": date});
        if let (Some(value), Some(item)) = (linears.get("linearAmount"), item.as_object_mut()) {
            item.insert("linearAmount".to_owned(), value.clone());
        }
        linears.insert("allocationBreakdown".into(), json!([item]));
    }
}

/// A new total changes the parts in proportion.
fn rescale(cliffs: &mut Map<String, Value>, name: &str, before: Option<f64>, after: Option<f64>) {
    let Some(after) = after else { return };
    let Some(Value::Array(parts)) = cliffs.get_mut("allocationBreakdown") else { return };
    let is_single = parts.len() == 1;
    for part in parts.iter_mut().filter_map(Value::as_object_mut) {
        let own = part.get(name).and_then(Value::as_f64);
        let scaled = match (own, before) {
            _ if is_single => Some(after),
            (Some(own), Some(before)) if before != 0.0 => Some(own * after / before),
            _ => None,
        };
        if let Some(scaled) = scaled {
            part.insert(name.to_owned(), json!(scaled));
        }
    }
}

/// Writes a field into the object that another field holds; one that is missing or null is made.
fn set_in(row: &mut Map<String, Value>, object: &str, name: &str, value: Value) {
    if let Some(Value::Object(inner)) = row.get_mut(object) {
        inner.insert(name.to_owned(), value);
    } else {
        row.insert(object.to_owned(), json!({ name: value }));
    }
}

fn items<'a>(row: &'a mut Map<String, Value>, of: &str) -> Vec<&'a mut Map<String, Value>> {
    let list = row.get_mut(of).and_then(|part| part.get_mut("allocationBreakdown")).and_then(Value::as_array_mut);
    list.map(|list| list.iter_mut().filter_map(Value::as_object_mut).collect()).unwrap_or_default()
}

/// Refuses fields that no record of this kind has, at every depth.
fn check(row: &Map<String, Value>, resource: Resource) -> Result<(), String> {
    let what = format!("{} {resource}", if resource.as_str().starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" });
    match resource {
        Resource::Unlock => {
            let words = [
                "cliffAmount",
                "cliffValue",
                "valueToMarketCap",
                "allocations",
                "committedAmount",
                "committedValue",
                "unlockPrecision",
            ];
            refuse_unknown(&what, row, wire::UnlockEvent::FIELDS, &words)?;
            for (part, own, of_item) in [
                ("cliffUnlocks", wire::CliffUnlocks::FIELDS, wire::CliffAllocation::FIELDS),
                ("linearUnlocks", wire::LinearUnlocks::FIELDS, wire::LinearAllocation::FIELDS),
            ] {
                let Some(part_of) = row.get(part).and_then(Value::as_object) else { continue };
                refuse_unknown(&format!("`{part}`"), part_of, own, &[])?;
                let list = part_of.get("allocationBreakdown").and_then(Value::as_array);
                for item in list.into_iter().flatten().filter_map(Value::as_object) {
                    refuse_unknown("an allocation of an unlock", item, of_item, &[])?;
                    if let Some(claim) = item.get("committedClaim").and_then(Value::as_object) {
                        refuse_unknown("`committedClaim`", claim, wire::CommittedClaim::FIELDS, &[])?;
                    }
                }
            }
        }
        Resource::Burn => {
            refuse_unknown(&what, row, wire::Burn::FIELDS, &["burners", "burnReasons"])?;
            if let Some(metadata) = row.get("metadata").and_then(Value::as_object) {
                refuse_unknown("`metadata`", metadata, wire::BurnMetadata::FIELDS, &[])?;
            }
        }
        Resource::Buyback => refuse_unknown(&what, row, wire::Buyback::FIELDS, &[])?,
        Resource::Emission => {
            refuse_unknown(&what, row, wire::Emission::FIELDS, &["committedAmount", "committedValue"])?;
            for item in row.get("allocations").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
                refuse_unknown("an allocation of an emission", item, wire::EmissionAllocation::FIELDS, &[])?;
            }
        }
        Resource::Allocation => refuse_unknown(&what, row, wire::Allocation::FIELDS, &[])?,
        Resource::Funding => refuse_unknown(&what, row, wire::FundingRound::FIELDS, &[])?,
    }
    Ok(())
}

fn refuse_unknown(what: &str, fields: &Map<String, Value>, known: &[&str], words: &[&str]) -> Result<(), String> {
    for name in fields.keys() {
        if known.contains(&name.as_str()) {
            continue;
        }
        let all = known.iter().chain(words).copied();
        return Err(match closest(name, all.clone()) {
            Some(near) => format!("{what} has no field `{name}`: did you mean `{near}`?"),
            None => format!("{what} has no field `{name}`; known are {}", all.collect::<Vec<_>>().join(", ")),
        });
    }
    Ok(())
}

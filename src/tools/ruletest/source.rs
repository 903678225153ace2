//! The source of a test: makes responses from the records in the test file.
//!
//! Records use the field names of conditions: `cliffAmount` can be a field of the unlock, or of `cliffUnlocks` as in the API.
//! Required data that the test omits (the allocation breakdown) is filled in. Unknown fields are rejected, because a test with a
//! typo proves nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read as _,
    path::Path,
};

use serde_json::{Map, Value, json};

use model::{Endpoint, Payload, Resource, TokenId, closest, phrase, wire, wire::ReadJson};

/// The maximum size of a data file, in bytes.
const MAX_FILE: u64 = 16 << 20;
/// The maximum number of records of a token and resource.
const MAX_RECORDS: usize = 20_000;
/// The allocation name of an unlock without allocations.
const DEFAULT_ALLOCATION: &str = "All";

/// The current records by token and resource.
#[derive(Debug, Default)]
pub(super) struct TestSource {
    lists: BTreeMap<(TokenId, Resource), RecordList>,
    /// The tokens that ever had a segment. Their schedules report segments explicitly, even if none is left.
    with_segments: BTreeSet<TokenId>,
}

#[derive(Clone, Debug, Default)]
struct RecordList {
    rows: Vec<Map<String, Value>>,
    /// The fields next to the list of records: `maxSupply`, totals.
    around: Map<String, Value>,
}

/// A response about a token.
pub(super) enum SourceResponse {
    Records(Endpoint, Payload),
    Rounds(Vec<wire::FundingRound>),
}

impl TestSource {
    /// Replaces all records of a resource by a list of records, or by a data file relative to `folder`.
    pub fn set(&mut self, token: &TokenId, resource: Resource, given: &toml::Value, folder: &Path) -> Result<(), String> {
        let list = match given {
            toml::Value::String(path) => read(&folder.join(path), resource)?,
            toml::Value::Array(items) => {
                let mut rows = Vec::with_capacity(items.len());
                for item in items {
                    let toml::Value::Table(table) = item else {
                        return Err(format!("`{resource}` must be a list of tables, or the path of a data file"));
                    };
                    let mut row = Map::new();
                    write(&mut row, resource, fields(table))?;
                    rows.push(row);
                }
                RecordList { rows, around: Map::new() }
            }
            _ => return Err(format!("`{resource}` must be a list of records, or the path of a data file")),
        };
        if list.rows.len() > MAX_RECORDS {
            return Err(format!("too many records: {} found, at most {MAX_RECORDS} of one type allowed", list.rows.len()));
        }
        self.lists.insert((token.clone(), resource), list);
        self.note_segments(token, resource);
        Ok(())
    }

    /// Adds a record: `{ unlock = "2026-04-01", cliffAmount = 5e6 }`.
    pub fn add(&mut self, token: &TokenId, entry: &toml::Table) -> Result<Resource, String> {
        let (resource, key, rest) = split_entry(entry)?;
        let mut row = Map::new();
        row.insert(key_field(resource).to_owned(), Value::String(key));
        write(&mut row, resource, rest)?;
        let list = self.lists.entry((token.clone(), resource)).or_default();
        if list.rows.len() >= MAX_RECORDS {
            return Err(format!("at most {MAX_RECORDS} records of one type are allowed"));
        }
        list.rows.push(row);
        self.note_segments(token, resource);
        Ok(resource)
    }

    /// Changes records: `{ unlock = "2026-03-16", unlockDate = "2026-03-20" }`.
    pub fn change(&mut self, token: &TokenId, entry: &toml::Table) -> Result<Resource, String> {
        let (resource, key, rest) = split_entry(entry)?;
        if rest.is_empty() {
            return Err("nothing is changed: add a new value, such as `cliffAmount = 5e6`".into());
        }
        for row in self.find(token, resource, &key)? {
            write(row, resource, rest.clone())?;
        }
        self.note_segments(token, resource);
        Ok(resource)
    }

    /// Removes records: `{ unlock = "2026-03-16" }`.
    pub fn remove(&mut self, token: &TokenId, entry: &toml::Table) -> Result<Resource, String> {
        let (resource, key, rest) = split_entry(entry)?;
        if let Some(name) = rest.keys().next() {
            return Err(format!("unexpected `{name}`: only the date or name of a record is needed to remove it"));
        }
        self.find(token, resource, &key)?;
        if let Some(list) = self.lists.get_mut(&(token.clone(), resource)) {
            list.rows.retain(|row| !has_key(row, resource, &key));
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

    /// Returns all records with this key, at least one. If there are none, fails with the known keys.
    fn find(&mut self, token: &TokenId, resource: Resource, key: &str) -> Result<Vec<&mut Map<String, Value>>, String> {
        let rows = self.lists.get_mut(&(token.clone(), resource)).map(|list| &mut list.rows[..]).unwrap_or_default();
        if rows.iter().any(|row| has_key(row, resource, key)) {
            return Ok(rows.iter_mut().filter(|row| has_key(row, resource, key)).collect());
        }
        let known = rows.iter().filter_map(|row| row.get(key_field(resource))?.as_str());
        let known = phrase::names(known.collect::<Vec<_>>());
        Err(match rows.is_empty() {
            true => format!("{token} has no {resource} to change: add `{resource} = […]` to an earlier input"),
            false => format!("{token} has no {resource} \"{key}\": expected one of {known}"),
        })
    }

    /// Returns a complete response about a token's records of a resource.
    pub fn response(&self, token: &TokenId, resource: Resource) -> Result<SourceResponse, String> {
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
            Resource::Unlock => SourceResponse::Records(Endpoint::UnlockEvents, Payload::UnlockEvents(typed(rows)?)),
            Resource::Burn => SourceResponse::Records(Endpoint::Burn, Payload::Burns(typed(whole("burns"))?)),
            Resource::Buyback => SourceResponse::Records(Endpoint::Buyback, Payload::Buybacks(typed(whole("buybacks"))?)),
            Resource::Allocation => {
                SourceResponse::Records(Endpoint::Allocations, Payload::Allocations(typed(whole("allocations"))?))
            }
            Resource::Emission => SourceResponse::Records(Endpoint::DailyEmission, Payload::Emissions(typed(rows)?)),
            Resource::Funding => SourceResponse::Rounds(typed(rows)?),
        })
    }
}

/// Parses JSON like the client. A parse warning is an error in a test.
fn typed<T: ReadJson>(value: Value) -> Result<T, String> {
    let text = value.to_string();
    let (result, parse_warnings, _) = wire::collect_parse_warnings(|| T::read_json(&text));
    if let Some(odd) = parse_warnings.first() {
        return Err(format!("{}: {}", odd.path, odd.problem.replace("; the field is ignored", "")));
    }
    result.map_err(|error| error.to_string())
}

/// Makes a row of the token list.
pub(super) fn token_item(table: &toml::Table) -> Result<wire::TokenItem, String> {
    let fields = fields(table);
    reject_unknown("a token", &fields, wire::TokenItem::FIELDS, &[])?;
    let item: wire::TokenItem = typed(Value::Object(fields))?;
    match item.id.as_str() {
        Some(id) if !id.is_empty() => Ok(item),
        _ => Err("a token requires an `id`, the slug".into()),
    }
}

fn read(path: &Path, resource: Resource) -> Result<RecordList, String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let mut text = String::new();
    let file = model::file_kind::open_regular(path).map_err(failed)?;
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_FILE {
        return Err(format!("{} exceeds {MAX_FILE} bytes", path.display()));
    }
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    // Accept the payload, or the whole response with its envelope.
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
            _ => return Err(format!("{} is not a {resource} response: the list `{name}` is missing", path.display())),
        },
        _ => return Err(format!("{} does not contain a list of {resource} records", path.display())),
    };
    let rows: Vec<_> = rows.into_iter().filter_map(|row| if let Value::Object(row) = row { Some(row) } else { None }).collect();
    if resource == Resource::Unlock && rows.iter().any(|row| !row.contains_key("unlockDate")) {
        return Err(format!("{} is not an unlock schedule: a record has no `unlockDate`", path.display()));
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

/// Returns the field that identifies a record in a test.
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

/// Returns `true` if `key` is the name, instant, or day of the record.
fn has_key(row: &Map<String, Value>, resource: Resource, key: &str) -> bool {
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

/// Returns the resource and key of the record that an entry names, and its other fields.
fn split_entry(entry: &toml::Table) -> Result<(Resource, String, Map<String, Value>), String> {
    let mut rest = fields(entry);
    let mut found = None;
    for resource in Resource::ALL {
        if let Some(value) = rest.remove(resource.as_str()) {
            if found.is_some() {
                return Err("an entry must name one record: use separate entries".into());
            }
            let Value::String(key) = value else {
                return Err(format!("`{resource}` must be the quoted {} of a record", key_field(resource)));
            };
            found = Some((resource, key));
        }
    }
    let Some((resource, key)) = found else {
        return Err("the entry names no record: add, for example, `unlock = \"2026-03-16\"`, `burn = \"2026-03-16\"`, `allocation = \"Team\"`".into());
    };
    if resource != Resource::Allocation && wire::parse_timestamp(&key).is_none() {
        return Err(format!("\"{key}\" is not a valid date: use \"2026-03-16\" or \"2026-03-16T09:00:00Z\""));
    }
    Ok((resource, key, rest))
}

/// Converts a TOML table to JSON. Dates become strings, as in the API.
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

/// Sets fields of a record at their places in the API. A new cliff amount or value scales the allocation shares. Fills in the allocation
/// breakdown of an unlock.
///
/// # Errors
///
/// Fails if a field is unknown, or if an unlock without a cliff gets a committed amount.
fn write(row: &mut Map<String, Value>, resource: Resource, given: Map<String, Value>) -> Result<(), String> {
    let mut later: Vec<(&str, &str, Value)> = Vec::new();
    for (name, value) in given {
        match (resource, name.as_str()) {
            (Resource::Unlock, "cliffAmount" | "cliffValue") => {
                if let Some(Value::Object(cliffs)) = row.get_mut("cliffUnlocks") {
                    let before = cliffs.get(&name).and_then(Value::as_f64);
                    rescale(cliffs, &name, before, value.as_f64());
                }
                set_nested(row, "cliffUnlocks", &name, value);
            }
            (Resource::Unlock, "valueToMarketCap") => set_nested(row, "cliffUnlocks", &name, value),
            (Resource::Unlock, "allocations") => set_nested(row, "cliffUnlocks", "allocationBreakdown", value),
            (Resource::Unlock, "linearAmount" | "linearValue" | "dailyAmount" | "dailyValue") => {
                set_nested(row, "linearUnlocks", &name, value);
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
            (Resource::Burn, "burners" | "burnReasons") => set_nested(row, "metadata", &name, value),
            (Resource::Emission, "committedAmount") => set_nested(row, "committedClaim", "amount", value),
            (Resource::Emission, "committedValue") => set_nested(row, "committedClaim", "value", value),
            _ => _ = row.insert(name, value),
        }
    }
    if resource == Resource::Unlock {
        add_allocations(row);
        for (name, part, value) in later {
            let mut all = items(row, "cliffUnlocks");
            if part.is_empty() {
                all.iter_mut().for_each(|item| _ = item.insert(name.to_owned(), value.clone()));
                items(row, "linearUnlocks").iter_mut().for_each(|item| _ = item.insert(name.to_owned(), value.clone()));
            } else if let Some(first) = all.first_mut() {
                set_nested(first, name, part, value);
            } else {
                return Err("only a cliff can have a committed amount: add a `cliffAmount`".into());
            }
        }
    }
    check(row, resource)
}

/// Adds the allocation breakdown, which the source always sends.
fn add_allocations(row: &mut Map<String, Value>) {
    let date = row.get("unlockDate").cloned();
    if let Some(cliffs) = row.get_mut("cliffUnlocks").and_then(Value::as_object_mut)
        && !cliffs.contains_key("allocationBreakdown")
    {
        let mut item = json!({"allocationName": DEFAULT_ALLOCATION});
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
        let mut item = json!({"allocationName": DEFAULT_ALLOCATION, "beginDate": date});
        if let (Some(value), Some(item)) = (linears.get("linearAmount"), item.as_object_mut()) {
            item.insert("linearAmount".to_owned(), value.clone());
        }
        linears.insert("allocationBreakdown".into(), json!([item]));
    }
}

/// Scales the allocation shares to a new total.
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

/// Sets a field of a nested object, which is created if it is missing or null.
fn set_nested(row: &mut Map<String, Value>, object: &str, name: &str, value: Value) {
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

/// Rejects unknown fields at every depth.
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
            reject_unknown(&what, row, wire::UnlockEvent::FIELDS, &words)?;
            for (part, own, of_item) in [
                ("cliffUnlocks", wire::CliffUnlocks::FIELDS, wire::CliffAllocation::FIELDS),
                ("linearUnlocks", wire::LinearUnlocks::FIELDS, wire::LinearAllocation::FIELDS),
            ] {
                let Some(part_of) = row.get(part).and_then(Value::as_object) else { continue };
                reject_unknown(&format!("`{part}`"), part_of, own, &[])?;
                let list = part_of.get("allocationBreakdown").and_then(Value::as_array);
                for item in list.into_iter().flatten().filter_map(Value::as_object) {
                    reject_unknown("an allocation of an unlock", item, of_item, &[])?;
                    if let Some(claim) = item.get("committedClaim").and_then(Value::as_object) {
                        reject_unknown("`committedClaim`", claim, wire::CommittedClaim::FIELDS, &[])?;
                    }
                }
            }
        }
        Resource::Burn => {
            reject_unknown(&what, row, wire::Burn::FIELDS, &["burners", "burnReasons"])?;
            if let Some(metadata) = row.get("metadata").and_then(Value::as_object) {
                reject_unknown("`metadata`", metadata, wire::BurnMetadata::FIELDS, &[])?;
            }
        }
        Resource::Buyback => reject_unknown(&what, row, wire::Buyback::FIELDS, &[])?,
        Resource::Emission => {
            reject_unknown(&what, row, wire::Emission::FIELDS, &["committedAmount", "committedValue"])?;
            for item in row.get("allocations").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
                reject_unknown("an allocation of an emission", item, wire::EmissionAllocation::FIELDS, &[])?;
            }
        }
        Resource::Allocation => reject_unknown(&what, row, wire::Allocation::FIELDS, &[])?,
        Resource::Funding => reject_unknown(&what, row, wire::FundingRound::FIELDS, &[])?,
    }
    Ok(())
}

fn reject_unknown(what: &str, fields: &Map<String, Value>, known: &[&str], words: &[&str]) -> Result<(), String> {
    for name in fields.keys() {
        if known.contains(&name.as_str()) {
            continue;
        }
        let all = known.iter().chain(words).copied();
        return Err(match closest(name, all.clone()) {
            Some(near) => format!("{what} has no field `{name}`: did you mean `{near}`?"),
            None => format!("{what} has no field `{name}`: expected one of {}", all.collect::<Vec<_>>().join(", ")),
        });
    }
    Ok(())
}

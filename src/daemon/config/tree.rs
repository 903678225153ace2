//! A config as a tree that knows where each value stands: in the file, or in which variable of the environment.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::keys::{self, ValueKind};

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValuePlace {
    File(Range<usize>),
    Variable(String),
}

/// A value at its place.
#[derive(Clone, Debug)]
pub(super) struct ConfigNode {
    pub place: ValuePlace,
    pub value: ConfigValue,
}

#[derive(Clone, Debug)]
pub(super) enum ConfigValue {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    /// A date, or a number that fits nothing: never valid here.
    Other(&'static str),
    List(Vec<ConfigNode>),
    Table(Vec<ConfigEntry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(super) struct ConfigEntry {
    pub key: String,
    pub key_place: ValuePlace,
    pub node: ConfigNode,
}

impl ConfigValue {
    /// What it is, for messages.
    pub fn noun(&self) -> &'static str {
        match self {
            ConfigValue::Text(_) => "a text",
            ConfigValue::Integer(_) => "a whole number",
            ConfigValue::Float(_) => "a number",
            ConfigValue::Bool(_) => "true or false",
            ConfigValue::Other(noun) => noun,
            ConfigValue::List(_) => "a list",
            ConfigValue::Table(_) => "a table",
        }
    }
}

impl ConfigNode {
    /// The tree of a parsed file.
    pub fn of_file(root: &toml::Spanned<DeTable<'_>>) -> ConfigNode {
        ConfigNode { place: ValuePlace::File(root.span()), value: ConfigValue::Table(entries(root.get_ref(), None)) }
    }

    pub fn table(&self) -> &[ConfigEntry] {
        if let ConfigValue::Table(entries) = &self.value { entries } else { &[] }
    }

    pub fn list(&self) -> &[ConfigNode] {
        if let ConfigValue::List(items) = &self.value { items } else { &[] }
    }

    pub fn text(&self) -> Option<&str> {
        if let ConfigValue::Text(text) = &self.value { Some(text) } else { None }
    }

    /// The entry of `key`.
    pub fn get(&self, key: &str) -> Option<&ConfigEntry> {
        self.table().iter().find(|entry| entry.key == key)
    }

    /// The place of a path such as `route.routes[1].matchers[0]`, or of the nearest part of it that is there.
    pub fn locate(&self, path: &str) -> &ValuePlace {
        let mut node = self;
        for step in path.split('.') {
            let (key, indices) = step.split_once('[').unwrap_or((step, ""));
            let Some(entry) = node.get(key) else { return &node.place };
            node = &entry.node;
            for index in indices.split('[').filter_map(|index| index.trim_end_matches(']').parse::<usize>().ok()) {
                let Some(item) = node.list().get(index) else {
                    return &node.place;
                };
                node = item;
            }
        }
        &node.place
    }

    /// Where every value below these sections stands, by its path.
    pub fn places(&self, sections: &[&str]) -> BTreeMap<String, ValuePlace> {
        let mut places = BTreeMap::new();
        for entry in self.table().iter().filter(|entry| sections.contains(&entry.key.as_str())) {
            entry.node.gather_places(entry.key.clone(), &mut places);
        }
        places
    }

    fn gather_places(&self, path: String, places: &mut BTreeMap<String, ValuePlace>) {
        for entry in self.table() {
            entry.node.gather_places(format!("{path}.{}", entry.key), places);
        }
        for (index, item) in self.list().iter().enumerate() {
            item.gather_places(format!("{path}[{index}]"), places);
        }
        places.insert(path, self.place.clone());
    }

    /// Lays `over` onto this tree: tables are united, everything else is replaced.
    pub fn overlay(&mut self, over: ConfigNode) {
        if let (ConfigValue::Table(mine), ConfigValue::Table(theirs)) = (&mut self.value, &over.value) {
            for entry in theirs {
                match mine.iter_mut().find(|known| known.key == entry.key) {
                    Some(known) => known.node.overlay(entry.node.clone()),
                    None => mine.push(entry.clone()),
                }
            }
        } else {
            *self = over;
        }
    }

    /// The bare values.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            ConfigValue::Text(text) => text.as_str().into(),
            ConfigValue::Integer(number) => (*number).into(),
            ConfigValue::Float(number) => (*number).into(),
            ConfigValue::Bool(value) => (*value).into(),
            ConfigValue::Other(_) => serde_json::Value::Null,
            ConfigValue::List(items) => items.iter().map(ConfigNode::to_json).collect(),
            ConfigValue::Table(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect::<serde_json::Map<_, _>>().into()
            }
        }
    }
}

/// `variable` is where the text came from, if not from the file.
fn entries(table: &DeTable<'_>, variable: Option<&str>) -> Vec<ConfigEntry> {
    let mut entries: Vec<(usize, ConfigEntry)> = table
        .iter()
        .map(|(key, value)| {
            let entry = ConfigEntry {
                key: key.get_ref().to_string(),
                key_place: place(key.span(), variable),
                node: node(value.get_ref(), value.span(), variable),
            };
            (key.span().start, entry)
        })
        .collect();
    entries.sort_by_key(|(start, _)| *start);
    entries.into_iter().map(|(_, entry)| entry).collect()
}

fn node(value: &DeValue<'_>, span: Range<usize>, variable: Option<&str>) -> ConfigNode {
    let value = match value {
        DeValue::String(text) => ConfigValue::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(ConfigValue::Other("a number out of range"), ConfigValue::Integer),
        DeValue::Float(number) => number.as_str().parse().map_or(ConfigValue::Other("no number"), ConfigValue::Float),
        DeValue::Boolean(value) => ConfigValue::Bool(*value),
        DeValue::Datetime(_) => ConfigValue::Other("a date"),
        DeValue::Array(items) => {
            ConfigValue::List(items.iter().map(|item| node(item.get_ref(), item.span(), variable)).collect())
        }
        DeValue::Table(table) => ConfigValue::Table(entries(table, variable)),
    };
    ConfigNode { place: place(span, variable), value }
}

fn place(span: Range<usize>, variable: Option<&str>) -> ValuePlace {
    variable.map_or(ValuePlace::File(span), |name| ValuePlace::Variable(name.to_owned()))
}

/// The prefix of our variables.
pub(super) const PREFIX: &str = "CLIFFWATCH_";

/// Variables with our prefix that are no config keys; the last four are what a program that is a receiver is told, and it may call us.
const RESERVED: [&str; 7] = ["CONFIG", "CRASH_AT", "LOG", "WEBHOOK_ID", "ATTEMPT", "STATUS", "SEVERITY"];

/// The variables that stand for config keys, as a tree. A variable's text is read as what its key wants: texts and secrets as they
/// are (a key of digits is still a text), lists as TOML or separated by commas, tables as TOML.
pub(super) fn of_environment(variables: &[(String, String)]) -> ConfigNode {
    let mut root = ConfigNode { place: ValuePlace::Variable(String::new()), value: ConfigValue::Table(Vec::new()) };
    for (name, text) in variables {
        let Some(rest) = name.strip_prefix(PREFIX).filter(|rest| !rest.is_empty() && !RESERVED.contains(rest)) else {
            continue;
        };
        let path: Vec<String> = rest.split("__").map(str::to_lowercase).collect();
        let place = ValuePlace::Variable(name.clone());
        let mut node = ConfigNode { place: place.clone(), value: read_variable(&path, name, text) };
        for key in path.into_iter().rev() {
            let entry = ConfigEntry { key, key_place: place.clone(), node };
            node = ConfigNode { place: place.clone(), value: ConfigValue::Table(vec![entry]) };
        }
        root.overlay(node);
    }
    root
}

fn read_variable(path: &[String], name: &str, text: &str) -> ConfigValue {
    let plain = || ConfigValue::Text(text.to_owned());
    let toml = || DeValue::parse(text.trim()).map_or_else(|_| plain(), |value| node(value.get_ref(), 0..0, Some(name)).value);
    let list = || {
        if text.trim_start().starts_with('[') {
            return toml();
        }
        let item = |item: &str| ConfigNode {
            place: ValuePlace::Variable(name.to_owned()),
            value: ConfigValue::Text(item.trim().to_owned()),
        };
        ConfigValue::List(text.split(',').filter(|part| !part.trim().is_empty()).map(item).collect())
    };
    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["receiver" | "route"] => toml(),
        [section] if keys::section(section).is_some() => toml(),
        ["watch", "groups", _] => list(),
        [section, key] => match keys::find(section, key).map(|key| key.kind) {
            Some(kind) if kind.is_list() => list(),
            Some(
                ValueKind::Count { .. } | ValueKind::Number { .. } | ValueKind::Bool | ValueKind::Groups | ValueKind::Routes,
            ) => toml(),
            _ => plain(),
        },
        _ => plain(),
    }
}

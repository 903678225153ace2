//! A config as a tree of values, each with its location in the file or the environment variable that it comes from.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::key_lookup;
use model::config::ValueKind;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// Bytes of the file.
    File(Range<usize>),
    /// The name of an environment variable.
    Variable(String),
}

#[derive(Clone, Debug)]
pub(super) struct ConfigNode {
    pub location: Location,
    pub value: ConfigValue,
}

#[derive(Clone, Debug)]
pub(super) enum ConfigValue {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    /// A value that no key accepts, such as a date, as a noun for messages.
    Other(&'static str),
    List(Vec<ConfigNode>),
    Table(Vec<ConfigEntry>),
}

#[derive(Clone, Debug)]
pub(super) struct ConfigEntry {
    pub key: String,
    pub key_location: Location,
    pub node: ConfigNode,
}

impl ConfigValue {
    /// The type as a noun for messages.
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
    pub fn from_file(root: &toml::Spanned<DeTable<'_>>) -> ConfigNode {
        ConfigNode { location: Location::File(root.span()), value: ConfigValue::Table(entries(root.get_ref(), None)) }
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

    pub fn get(&self, key: &str) -> Option<&ConfigEntry> {
        self.table().iter().find(|entry| entry.key == key)
    }

    /// Returns the location of a path such as `route.routes[1].matchers[0]`, or of the longest part of the path that exists.
    pub fn locate(&self, path: &str) -> &Location {
        let mut node = self;
        for step in path.split('.') {
            let (key, indices) = step.split_once('[').unwrap_or((step, ""));
            let Some(entry) = node.get(key) else { return &node.location };
            node = &entry.node;
            for index in indices.split('[').filter_map(|index| index.trim_end_matches(']').parse::<usize>().ok()) {
                let Some(item) = node.list().get(index) else {
                    return &node.location;
                };
                node = item;
            }
        }
        &node.location
    }

    /// Returns the location of every value below these sections, by path.
    pub fn locations(&self, sections: &[&str]) -> BTreeMap<String, Location> {
        let mut locations = BTreeMap::new();
        for entry in self.table().iter().filter(|entry| sections.contains(&entry.key.as_str())) {
            entry.node.collect_locations(entry.key.clone(), &mut locations);
        }
        locations
    }

    fn collect_locations(&self, path: String, locations: &mut BTreeMap<String, Location>) {
        for entry in self.table() {
            entry.node.collect_locations(format!("{path}.{}", entry.key), locations);
        }
        for (index, item) in self.list().iter().enumerate() {
            item.collect_locations(format!("{path}[{index}]"), locations);
        }
        locations.insert(path, self.location.clone());
    }

    /// Overrides this tree with `over`: tables are merged, all other values are replaced.
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

    /// Returns the values without their locations.
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

/// Returns the entries in the order of the text. `variable` is the environment variable that the text comes from, if not the file.
fn entries(table: &DeTable<'_>, variable: Option<&str>) -> Vec<ConfigEntry> {
    let mut entries: Vec<(usize, ConfigEntry)> = table
        .iter()
        .map(|(key, value)| {
            let entry = ConfigEntry {
                key: key.get_ref().to_string(),
                key_location: location(key.span(), variable),
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
            .map_or(ConfigValue::Other("a number that is too large"), ConfigValue::Integer),
        DeValue::Float(number) => number.as_str().parse().map_or(ConfigValue::Other("an invalid number"), ConfigValue::Float),
        DeValue::Boolean(value) => ConfigValue::Bool(*value),
        DeValue::Datetime(_) => ConfigValue::Other("a date"),
        DeValue::Array(items) => {
            ConfigValue::List(items.iter().map(|item| node(item.get_ref(), item.span(), variable)).collect())
        }
        DeValue::Table(table) => ConfigValue::Table(entries(table, variable)),
    };
    ConfigNode { location: location(span, variable), value }
}

fn location(span: Range<usize>, variable: Option<&str>) -> Location {
    variable.map_or(Location::File(span), |name| Location::Variable(name.to_owned()))
}

/// The prefix of environment variables that set keys.
pub(super) const PREFIX: &str = "CLIFFWATCH_";

/// Variables with the prefix that are not keys. The last four are set for programs that are receivers, which may call `cliffwatch`.
const RESERVED: [&str; 7] = ["CONFIG", "CRASH_AT", "LOG", "WEBHOOK_ID", "ATTEMPT", "STATUS", "SEVERITY"];

/// Builds the tree of the environment. The kind of a key decides how its variable is read: texts and secrets as they are (a key of digits
/// stays a text), lists as TOML or separated by commas, and tables as TOML.
pub(super) fn from_environment(variables: &[(String, String)]) -> ConfigNode {
    let mut root = ConfigNode { location: Location::Variable(String::new()), value: ConfigValue::Table(Vec::new()) };
    for (name, text) in variables {
        let Some(rest) = name.strip_prefix(PREFIX).filter(|rest| !rest.is_empty() && !RESERVED.contains(rest)) else {
            continue;
        };
        let path: Vec<String> = rest.split("__").map(str::to_lowercase).collect();
        let location = Location::Variable(name.clone());
        let mut node = ConfigNode { location: location.clone(), value: read_variable(&path, name, text) };
        for key in path.into_iter().rev() {
            let entry = ConfigEntry { key, key_location: location.clone(), node };
            node = ConfigNode { location: location.clone(), value: ConfigValue::Table(vec![entry]) };
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
            location: Location::Variable(name.to_owned()),
            value: ConfigValue::Text(item.trim().to_owned()),
        };
        ConfigValue::List(text.split(',').filter(|part| !part.trim().is_empty()).map(item).collect())
    };
    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["receiver" | "route"] => toml(),
        [section] if key_lookup::section(section).is_some() => toml(),
        ["watch", "groups", _] => list(),
        [section, key] => match key_lookup::find(section, key).map(|key| key.kind) {
            Some(kind) if kind.is_list() => list(),
            Some(
                ValueKind::Count(..)
                | ValueKind::Number(..)
                | ValueKind::Bool
                | ValueKind::Groups
                | ValueKind::Positions
                | ValueKind::Routes,
            ) => toml(),
            _ => plain(),
        },
        _ => plain(),
    }
}

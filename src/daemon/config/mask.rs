//! Masks the secrets in the text of a config before any line is stored for display.
//!
//! Offsets stay the same, so that carets remain correct. A masked value shows neither its characters nor its length.

use std::ops::Range;

use super::key_lookup::{self, SECRET_WORDS};
use super::tree::{ConfigEntry, ConfigNode, ConfigValue, Location};
use model::config::{ConfigKey, ValueKind};

/// The replacement of a secret, cut to its length. Spaces fill the rest.
const DOTS: &[u8] = b"***";

/// Returns `text` with its secrets masked. If the text has syntax errors (`is_broken`), the tree may be incomplete, so lines are masked
/// unless they are known to be harmless.
pub(super) fn mask(text: &str, tree: &ConfigNode, is_broken: bool) -> String {
    let mut hidden: Vec<Range<usize>> = Vec::new();
    for entry in tree.table() {
        match (entry.key.as_str(), &entry.node.value) {
            ("receiver", ConfigValue::List(items)) => {
                items.iter().for_each(|item| hide_in(item, key_lookup::receiver(), &mut hidden))
            }
            ("receiver", ConfigValue::Table(_)) => hide_in(&entry.node, key_lookup::receiver(), &mut hidden),
            ("route", _) => hide_in_route(&entry.node, &mut hidden),
            (name, ConfigValue::Table(_)) => match key_lookup::section(name) {
                Some(keys) => hide_in(&entry.node, keys, &mut hidden),
                None => hide_leaves(&entry.node, &mut hidden),
            },
            _ => hide_leaves(&entry.node, &mut hidden),
        }
    }
    hide_lines(text, is_broken, &mut hidden);
    blank(text, &hidden)
}

/// Returns the first secret in the text of a config. The URL of a receiver on this machine is none.
pub(super) fn first_secret(tree: &ConfigNode) -> Option<&ConfigEntry> {
    tree.table().iter().find_map(|section| {
        let keys = key_lookup::section(&section.key)?;
        let tables = std::iter::once(&section.node).chain(section.node.list());
        tables
            .flat_map(ConfigNode::table)
            .find(|entry| keys.iter().any(|key| key.name == entry.key && is_secret(entry, key.kind)))
    })
}

fn is_secret(entry: &ConfigEntry, kind: ValueKind) -> bool {
    let is_local = || {
        let url = entry.node.text().and_then(|text| text.parse::<url::Url>().ok());
        url.is_some_and(|url| match url.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        })
    };
    kind.is_secret() && !(kind == ValueKind::SecretUrl && is_local())
}

fn hide_in(node: &ConfigNode, keys: &[ConfigKey], hidden: &mut Vec<Range<usize>>) {
    for entry in node.table() {
        if !may_show(entry, keys) {
            hide_leaves(&entry.node, hidden);
        }
    }
    if !matches!(node.value, ConfigValue::Table(_)) {
        hide_leaves(node, hidden);
    }
}

fn hide_in_route(node: &ConfigNode, hidden: &mut Vec<Range<usize>>) {
    for entry in node.table() {
        match (&entry.node.value, entry.key.as_str()) {
            (ConfigValue::List(items), "routes") => items.iter().for_each(|item| hide_in_route(item, hidden)),
            _ if key_lookup::find("route", &entry.key).is_some() => {}
            _ => hide_leaves(&entry.node, hidden),
        }
    }
}

/// Returns whether a value may be shown: its key is known and not a secret, and a URL contains no user name, password, or query.
fn may_show(entry: &ConfigEntry, keys: &[ConfigKey]) -> bool {
    let Some(key) = keys.iter().find(|key| key.name == entry.key) else {
        return false;
    };
    match key.kind {
        kind if kind.is_secret() => false,
        ValueKind::Url | ValueKind::Smtp => entry.node.text().is_some_and(|text| !text.contains('@') && !text.contains('?')),
        ValueKind::Groups => entry.node.table().iter().all(|group| matches!(group.node.value, ConfigValue::List(_))),
        ValueKind::Positions => false,
        _ => !matches!(entry.node.value, ConfigValue::Table(_)),
    }
}

fn hide_leaves(node: &ConfigNode, hidden: &mut Vec<Range<usize>>) {
    match &node.value {
        ConfigValue::Table(entries) => entries.iter().for_each(|entry| hide_leaves(&entry.node, hidden)),
        ConfigValue::List(items) => items.iter().for_each(|item| hide_leaves(item, hidden)),
        _ => {
            if let Location::File(span) = &node.location {
                hidden.push(span.clone());
            }
        }
    }
}

/// Masks what the tree does not contain: secrets in comments; and in a text with syntax errors, everything except headers, comments, and
/// values of keys that are public in every table.
fn hide_lines(text: &str, is_broken: bool, hidden: &mut Vec<Range<usize>>) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        let trimmed = body.trim_start();
        let rest = if let Some(at) = body.find('#') { hide_comment(body, at) } else { None };
        if let Some(from) = rest {
            hidden.push(start + from..start + body.len());
        }
        if is_broken && !trimmed.starts_with('#') && !trimmed.is_empty() && !is_header(trimmed) {
            let key_end = body.find('=');
            let key = body.get(..key_end.unwrap_or(0)).unwrap_or_default().trim().trim_matches(['"', '\'']);
            if !key_lookup::is_public(key) {
                hidden.push(start + key_end.map_or(0, |at| at + 1)..start + body.len());
            }
        }
        start += line.len();
    }
}

/// Returns whether a line is a table header of known names, even if a bracket is missing.
fn is_header(line: &str) -> bool {
    line.starts_with('[')
        && line.trim_end_matches(|c: char| c == ']' || c.is_whitespace()).trim_start_matches('[').split('.').all(|word| {
            let word = word.trim();
            key_lookup::section(word).is_some() || matches!(word, "routes" | "groups")
        })
}

/// Returns where the value of something like `api_key = …` starts in the comment at `at`. `None` if there is no such value.
fn hide_comment(line: &str, at: usize) -> Option<usize> {
    let comment = line.get(at..)?.to_ascii_lowercase();
    let has_value = |end: usize| comment.get(end..).and_then(|rest| rest.find(['=', ':'])).map(|sign| at + end + sign + 1);
    SECRET_WORDS
        .iter()
        .flat_map(|word| comment.match_indices(word).map(|(start, word)| start + word.len()))
        .filter(|end| comment.get(*end..).is_some_and(|rest| !rest.starts_with("_file")))
        .filter_map(has_value)
        .min()
}

fn blank(text: &str, hidden: &[Range<usize>]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in hidden {
        let Some(part) = bytes.get_mut(range.clone()) else { continue };
        // Line breaks stay, so that line numbers remain correct.
        let mut written = 0;
        for byte in part {
            if *byte == b'\n' {
                continue;
            }
            *byte = DOTS.get(written).copied().unwrap_or(b' ');
            written += 1;
        }
    }
    // Hidden ranges start and end at character boundaries, so this replaces nothing.
    String::from_utf8_lossy(&bytes).into_owned()
}

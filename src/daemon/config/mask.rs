//! Takes secrets out of the text of a config before any line of it is kept for showing.
//!
//! Offsets stay as they are, so that carets still point right; what was hidden leaves neither its letters nor its length, since the
//! rest of it becomes spaces.

use std::ops::Range;

use super::keys::{self, SECRET_WORDS, ValueKind};
use super::tree::{ConfigEntry, ConfigNode, ConfigValue, ValuePlace};

/// What stands for a hidden text; shorter ones take as much of it as fits.
const DOTS: &[u8] = b"***";

/// `text` without its secrets. `is_broken` says that it could not be parsed whole, so that the tree alone proves nothing.
pub(super) fn mask(text: &str, tree: &ConfigNode, is_broken: bool) -> String {
    let mut hidden: Vec<Range<usize>> = Vec::new();
    for entry in tree.table() {
        match (entry.key.as_str(), &entry.node.value) {
            ("receiver", ConfigValue::List(items)) => items.iter().for_each(|item| hide_in(item, keys::receiver(), &mut hidden)),
            ("receiver", ConfigValue::Table(_)) => hide_in(&entry.node, keys::receiver(), &mut hidden),
            ("route", _) => hide_in_route(&entry.node, &mut hidden),
            (name, ConfigValue::Table(_)) => match keys::section(name) {
                Some(keys) => hide_in(&entry.node, keys, &mut hidden),
                None => hide_leaves(&entry.node, &mut hidden),
            },
            _ => hide_leaves(&entry.node, &mut hidden),
        }
    }
    hide_lines(text, is_broken, &mut hidden);
    blank(text, &hidden)
}

fn hide_in(node: &ConfigNode, keys: &[keys::ConfigKey], hidden: &mut Vec<Range<usize>>) {
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
            _ if keys::find("route", &entry.key).is_some() => {}
            _ => hide_leaves(&entry.node, hidden),
        }
    }
}

/// A value may be shown when its key is known and no secret, and an address when it holds no login.
fn may_show(entry: &ConfigEntry, keys: &[keys::ConfigKey]) -> bool {
    let Some(key) = keys.iter().find(|key| key.name == entry.key) else {
        return false;
    };
    match key.kind {
        kind if kind.is_secret() => false,
        ValueKind::Url(_) | ValueKind::Smtp => entry.node.text().is_some_and(|text| !text.contains('@') && !text.contains('?')),
        ValueKind::Groups => entry.node.table().iter().all(|group| matches!(group.node.value, ConfigValue::List(_))),
        _ => !matches!(entry.node.value, ConfigValue::Table(_)),
    }
}

fn hide_leaves(node: &ConfigNode, hidden: &mut Vec<Range<usize>>) {
    match &node.value {
        ConfigValue::Table(entries) => entries.iter().for_each(|entry| hide_leaves(&entry.node, hidden)),
        ConfigValue::List(items) => items.iter().for_each(|item| hide_leaves(item, hidden)),
        _ => {
            if let ValuePlace::File(span) = &node.place {
                hidden.push(span.clone());
            }
        }
    }
}

/// Hides by lines what no tree tells: old secrets in comments, and, in a broken text, everything but headers, comments and values of
/// keys that are public wherever they stand.
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
            if !keys::is_public(key) {
                hidden.push(start + key_end.map_or(0, |at| at + 1)..start + body.len());
            }
        }
        start += line.len();
    }
}

/// `[source]` or `[[receiver]]`, whole or broken, of words that no secret has.
fn is_header(line: &str) -> bool {
    line.starts_with('[')
        && line.trim_end_matches(|c: char| c == ']' || c.is_whitespace()).trim_start_matches('[').split('.').all(|word| {
            let word = word.trim();
            keys::section(word).is_some() || matches!(word, "routes" | "groups")
        })
}

/// From where in `line`, which holds a comment at `at`, something like `api_key = …` is to be hidden.
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
        // A value keeps the shape of its lines, since line numbers must stay true.
        let mut written = 0;
        for byte in part {
            if *byte == b'\n' {
                continue;
            }
            *byte = DOTS.get(written).copied().unwrap_or(b' ');
            written += 1;
        }
    }
    // Hidden ranges begin and end at characters, so this never replaces anything.
    String::from_utf8_lossy(&bytes).into_owned()
}

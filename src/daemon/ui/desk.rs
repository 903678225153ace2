//! What the pages on which one acts show of values that have no page of their own. Pure.

use serde::Serialize;

use model::{Change, ScheduleBrief, change::Fact, format};

/// Something that is another after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    pub name: String,
    pub was: String,
    pub is: String,
}

/// Most lines of a comparison; an event of a hundred allocations needs no hundred lines.
const MAX_SIDES: usize = 40;

/// Before and after of a change, line by line.
pub fn change_sides(change: &Change) -> Vec<Side> {
    let mut sides = Vec::new();
    let mut side = |name: &str, was: Option<String>, is: Option<String>| {
        if was != is && sides.len() < MAX_SIDES {
            let text = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
            sides.push(Side { name: name.to_owned(), was: text(was), is: text(is) });
        }
    };
    let fact = |fact: &Option<Fact>| fact.as_ref().map(words);
    side(name_of(change.from.as_ref().or(change.to.as_ref())), fact(&change.from), fact(&change.to));
    for part in &change.allocations {
        side(&format::name(&part.name), fact(&part.from), fact(&part.to));
    }
    for field in &change.fields {
        side(&field.field, json_words(&field.from), json_words(&field.to));
    }
    if change.before.is_some() || change.after.is_some() {
        let (before, after) = (change.before.as_ref(), change.after.as_ref());
        let of = |brief: Option<&ScheduleBrief>, read: fn(&ScheduleBrief) -> Option<String>| brief.and_then(read);
        let mut brief = |name: &str, read: fn(&ScheduleBrief) -> Option<String>| side(name, of(before, read), of(after, read));
        brief("Total", |brief| Some(format::amount(brief.total)));
        brief("Events", |brief| Some(brief.events.to_string()));
        brief("Begin", |brief| brief.begin.map(format::day));
        brief("End", |brief| brief.end.map(format::day));
    }
    sides
}

fn name_of(fact: Option<&Fact>) -> &'static str {
    match fact {
        Some(Fact::Time(_)) => "Date",
        Some(Fact::Amount(_)) => "Amount",
        Some(Fact::Text(_)) | None => "Name",
    }
}

fn words(fact: &Fact) -> String {
    match fact {
        Fact::Amount(amount) => format::amount(*amount),
        Fact::Time(at) => format::instant(*at),
        Fact::Text(text) => text.clone(),
    }
}

fn json_words(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

//! Reads the single-value keys of a rule: `on`, `within`, `missing`, `limit`, `receivers`, and `expires`.

use toml::de::{DeTable, DeValue};

use crate::{on::On, scope::Lead, synonyms};
use model::{ChangeKind, ReceiverName, Resource, Timestamp, closest, wire};

use super::{MAX_ITEMS, RuleReader, values::LocatedText};

impl RuleReader<'_> {
    pub fn on(&mut self, text: &LocatedText) -> Option<On> {
        let word = text.value.as_str();
        if let Some(other) = On::parse_other(word) {
            return Some(other);
        }
        let (first, second) = word.split_once('.').map_or((word, None), |(first, second)| (first, Some(second)));
        let Some(resource) = Resource::parse(first) else {
            let near = synonyms::subject(first).or_else(|| closest(first, On::first_words()));
            let help = near.map_or_else(
                || {
                    format!(
                        "expected {}, or a change such as `unlock.rescheduled` or `unlock.*`",
                        On::first_words().collect::<Vec<_>>().join(", ")
                    )
                },
                |near| {
                    let second = second.map(|second| synonyms::kind(second).unwrap_or(second));
                    format!("did you mean `{near}{}`?", second.map(|second| format!(".{second}")).unwrap_or_default())
                },
            );
            let span = text.locate(0..first.len());
            self.reject(span, format!("unknown record type `{first}`"), help);
            return None;
        };
        let Some(second) = second else {
            return Some(On::Record(resource));
        };
        if second == "*" {
            return Some(On::Change(resource, None));
        }
        let span = text.locate(first.len() + 1..word.len());
        let possible: Vec<&str> =
            ChangeKind::ALL.into_iter().filter(|kind| kind.can_happen_to(resource)).map(ChangeKind::as_str).collect();
        match ChangeKind::parse(second) {
            Some(kind) if kind.can_happen_to(resource) => Some(On::Change(resource, Some(kind))),
            Some(_) => {
                self.reject(
                    span,
                    format!("`{second}` cannot happen to `{first}` records"),
                    format!("expected {}, or `{first}.*` for any", possible.join(", ")),
                );
                None
            }
            None => {
                let meant = synonyms::kind(second).filter(|meant| *meant == "*" || possible.contains(meant));
                let is_event = matches!(resource, Resource::Burn | Resource::Buyback | Resource::Funding);
                let help = match meant.or_else(|| closest(second, possible.iter().copied())) {
                    // An added record may describe an old event. A rule on the records themselves matches only new events.
                    Some("added") if is_event => {
                        format!("did you mean `{first}`? It matches each {first} when it becomes known")
                    }
                    Some(near) => format!("did you mean `{first}.{near}`?"),
                    None => format!("expected {}, or `{first}.*` for any", possible.join(", ")),
                };
                self.reject(span, format!("unknown change kind `{second}`"), help);
                None
            }
        }
    }

    pub fn within(&mut self, table: &DeTable<'_>) -> Vec<Lead> {
        let texts = self.texts(table, "within", true).unwrap_or_default();
        let mut leads: Vec<Lead> = Vec::new();
        for text in texts {
            let Some(span) = self.span("within", &text) else { continue };
            if span.is_zero() {
                self.reject(text.span, "a lead time must be positive", "examples: \"1h\", \"7d\"");
            } else if leads.iter().any(|lead| lead.span == span) {
                self.reject(text.span, format!("duplicate lead time \"{}\"", text.value), "remove one");
            } else if leads.len() >= MAX_ITEMS {
                self.reject(text.span, format!("there are more than {MAX_ITEMS} lead times"), "remove some");
            } else {
                leads.push(Lead { text: text.value.trim().to_owned(), span });
            }
        }
        leads.sort_by_key(|lead| std::cmp::Reverse(lead.span));
        leads
    }

    pub fn missing(&mut self, table: &DeTable<'_>) -> bool {
        let Some(text) = self.text(table, "missing") else {
            return false;
        };
        match text.value.as_str() {
            "fire" => true,
            "ignore" => false,
            other => {
                self.reject(
                    text.span,
                    format!("`missing` cannot be \"{other}\""),
                    "expected \"ignore\" (the default) or \"fire\"",
                );
                false
            }
        }
    }

    pub fn limit(&mut self, table: &DeTable<'_>) -> Option<u32> {
        let value = table.get("limit")?;
        let Some(number) = value.get_ref().as_integer() else {
            self.wrong_type("limit", value, "a whole number: `limit = 20`");
            return None;
        };
        let limit = u32::from_str_radix(number.as_str(), number.radix()).ok().filter(|limit| (1..=100_000).contains(limit));
        if limit.is_none() {
            self.reject(
                value.span(),
                "`limit` must be a whole number from 1 to 100000",
                "remove it for no limit; set `enabled = false` to disable the rule",
            );
        }
        limit
    }

    pub fn receivers(&mut self, table: &DeTable<'_>) -> Vec<ReceiverName> {
        let texts = self.texts(table, "receivers", false).unwrap_or_default();
        let mut names: Vec<ReceiverName> = Vec::new();
        for text in texts {
            if !self.around.receivers.contains(&text.value) {
                let known = self.around.receivers.iter().map(String::as_str);
                let help = closest(&text.value, known.clone()).map_or_else(
                    || match known.collect::<Vec<_>>() {
                        names if names.is_empty() => "the configuration defines no `[[receiver]]`".to_owned(),
                        names => format!("known receivers: {}", names.join(", ")),
                    },
                    |near| format!("did you mean \"{near}\"?"),
                );
                self.reject(text.span, format!("unknown receiver \"{}\"", text.value), help);
            } else if !names.iter().any(|name| name.as_str() == text.value) {
                names.push(ReceiverName::from(text.value));
            }
        }
        names
    }

    pub fn expires(&mut self, table: &DeTable<'_>) -> Option<Timestamp> {
        let value = table.get("expires")?;
        let text = match value.get_ref() {
            DeValue::Datetime(at) if at.date.is_some() => {
                let zone = if at.time.is_some() && at.offset.is_none() { "Z" } else { "" };
                format!("{at}{zone}")
            }
            DeValue::String(text) => text.clone().into_owned(),
            _ => {
                self.wrong_type("expires", value, "a date: `expires = 2026-12-31`");
                return None;
            }
        };
        match wire::parse_timestamp(&text) {
            Some(at) => {
                if at <= self.around.now {
                    self.warn(value.span(), "this rule has expired and is inactive", "remove it, or set a later `expires`");
                }
                Some(at)
            }
            None => {
                self.reject(
                    value.span(),
                    "`expires` is not a valid date",
                    "examples: `expires = 2026-12-31`, `expires = 2026-12-31T09:00:00Z`",
                );
                None
            }
        }
    }
}

//! Reads the single-value keys of a rule: `on`, `within`, `missing`, `limit`, `receivers`, and `expires`.

use toml::de::{DeTable, DeValue};

use crate::{on::On, on::OnError, scope::Lead};
use model::{ReceiverName, Timestamp, closest, wire};

use super::{MAX_ITEMS, RuleReader, values::LocatedText};

impl RuleReader<'_> {
    pub fn on(&mut self, text: &LocatedText) -> Option<On> {
        match On::read(&text.value) {
            Ok(on) => Some(on),
            Err(OnError { part, message, help }) => {
                self.reject(text.locate(part), message, help);
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

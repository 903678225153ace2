//! Reads typed values of a rule file: strings with their locations, lists, booleans, and durations. A value of another type is
//! reported together with the expected type.

use std::{borrow::Cow, ops::Range};

use chrono::TimeDelta;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::wording::span_of;

use super::{RuleReader, filters::MAX_PATTERNS, locations::ValueLocations};

/// The maximum duration: 100 years.
const MAX_SPAN: TimeDelta = TimeDelta::days(36_500);

#[derive(Clone, Debug)]
pub(super) struct LocatedText {
    pub value: String,
    /// The range in the file, including the quotes.
    pub span: Range<usize>,
    places: ValueLocations,
}

impl LocatedText {
    pub fn locate(&self, inner: Range<usize>) -> Range<usize> {
        self.places.of(inner).unwrap_or_else(|| self.span.clone())
    }
}

impl RuleReader<'_> {
    pub fn text(&mut self, table: &DeTable<'_>, key: &str) -> Option<LocatedText> {
        let value = table.get(key)?;
        let text = self.as_text(value);
        if text.is_none() {
            self.wrong_type(key, value, "a quoted string");
        }
        text
    }

    pub fn texts(&mut self, table: &DeTable<'_>, key: &str, may_be_single: bool) -> Option<Vec<LocatedText>> {
        let value = table.get(key)?;
        if may_be_single && let Some(text) = self.as_text(value) {
            return Some(vec![text]);
        }
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_type(key, value, "a list of strings: `[\"…\", \"…\"]`");
            return None;
        };
        Some(self.texts_of(key, list))
    }

    pub fn boolean(&mut self, table: &DeTable<'_>, key: &str) -> Option<bool> {
        let value = table.get(key)?;
        let found = value.get_ref().as_bool();
        if found.is_none() {
            self.wrong_type(key, value, "`true` or `false`");
        }
        found
    }

    pub fn length(&mut self, table: &DeTable<'_>, key: &str) -> Option<TimeDelta> {
        let text = self.text(table, key)?;
        self.span(key, &text)
    }

    pub fn span(&mut self, key: &str, text: &LocatedText) -> Option<TimeDelta> {
        match span_of(&text.value) {
            Ok(span) if span < TimeDelta::zero() => {
                self.reject(text.span.clone(), format!("`{key}` cannot be negative"), "example: \"7d\"");
                None
            }
            Ok(span) if span > MAX_SPAN => {
                self.reject(text.span.clone(), format!("`{key}` cannot be longer than 100 years"), "example: \"7d\"");
                None
            }
            Ok(span) => Some(span),
            Err(problem) => {
                self.reject(text.span.clone(), format!("`{key}` is not a valid duration"), problem);
                None
            }
        }
    }

    pub fn texts_of(&mut self, key: &str, list: &DeArray<'_>) -> Vec<LocatedText> {
        let mut texts = Vec::new();
        for item in list {
            match self.as_text(item) {
                Some(_) if texts.len() >= MAX_PATTERNS => {
                    self.reject(
                        item.span(),
                        format!("`{key}` has more than {MAX_PATTERNS} items"),
                        "use globs or a group from `[watch.groups]`",
                    );
                    break;
                }
                Some(text) => texts.push(text),
                None => self.wrong_type(&format!("an item of {key}"), item, "a quoted string"),
            }
        }
        texts
    }

    pub fn as_text(&self, value: &Spanned<DeValue<'_>>) -> Option<LocatedText> {
        let DeValue::String(text) = value.get_ref() else { return None };
        let span = value.span();
        let places = match text {
            Cow::Borrowed(slice) => ValueLocations::unescaped(&self.file.text, slice),
            Cow::Owned(text) => ValueLocations::escaped(&self.file.text, &span, text),
        };
        Some(LocatedText { value: text.clone().into_owned(), span, places })
    }

    pub fn wrong_type(&mut self, key: &str, value: &Spanned<DeValue<'_>>, expected: &str) {
        let found = match value.get_ref().type_str() {
            "integer" | "float" => "a number",
            "string" => "a string",
            "boolean" => "a boolean",
            "datetime" => "a date",
            "array" => "a list",
            _ => "a table",
        };
        self.reject(value.span(), format!("`{key}` is {found}"), format!("write {expected}"));
    }
}

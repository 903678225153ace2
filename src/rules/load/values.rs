//! The values of a rule file by type: texts with their places, lists, switches, lengths of time. A value of another type is answered
//! with what to write.

use std::{borrow::Cow, ops::Range};

use chrono::TimeDelta;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::wording::span_of;

use super::{RuleReader, filters::MAX_PATTERNS, places::ValuePlaces};

/// Longest length of time that means anything here.
const MAX_SPAN: TimeDelta = TimeDelta::days(36_500);

#[derive(Clone, Debug)]
pub(super) struct PlacedText {
    pub value: String,
    /// The value as a whole, quotes included.
    pub span: Range<usize>,
    /// Where its characters stand.
    places: ValuePlaces,
}

impl PlacedText {
    pub fn place(&self, inner: Range<usize>) -> Range<usize> {
        self.places.of(inner).unwrap_or_else(|| self.span.clone())
    }
}

impl RuleReader<'_> {
    pub fn text(&mut self, table: &DeTable<'_>, key: &str) -> Option<PlacedText> {
        let value = table.get(key)?;
        let text = self.as_text(value);
        if text.is_none() {
            self.wrong_type(key, value, "a text in quotes");
        }
        text
    }

    pub fn texts(&mut self, table: &DeTable<'_>, key: &str, may_be_single: bool) -> Option<Vec<PlacedText>> {
        let value = table.get(key)?;
        if may_be_single && let Some(text) = self.as_text(value) {
            return Some(vec![text]);
        }
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_type(key, value, "a list of texts: `[\"…\", \"…\"]`");
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

    pub fn span(&mut self, key: &str, text: &PlacedText) -> Option<TimeDelta> {
        match span_of(&text.value) {
            Ok(span) if span < TimeDelta::zero() => {
                self.refuse(text.span.clone(), format!("`{key}` cannot be negative"), "write it like \"7d\"");
                None
            }
            Ok(span) if span > MAX_SPAN => {
                self.refuse(text.span.clone(), format!("`{key}` is longer than a hundred years"), "write it like \"7d\"");
                None
            }
            Ok(span) => Some(span),
            Err(problem) => {
                self.refuse(text.span.clone(), format!("`{key}` is no length of time"), problem);
                None
            }
        }
    }

    pub fn texts_of(&mut self, key: &str, list: &DeArray<'_>) -> Vec<PlacedText> {
        let mut texts = Vec::new();
        for item in list {
            match self.as_text(item) {
                Some(_) if texts.len() >= MAX_PATTERNS => {
                    self.refuse(
                        item.span(),
                        format!("`{key}` has more than {MAX_PATTERNS} items"),
                        "use globs or a group of `[watch.groups]`",
                    );
                    break;
                }
                Some(text) => texts.push(text),
                None => self.wrong_type(&format!("an item of {key}"), item, "a text in quotes"),
            }
        }
        texts
    }

    pub fn as_text(&self, value: &Spanned<DeValue<'_>>) -> Option<PlacedText> {
        let DeValue::String(text) = value.get_ref() else { return None };
        let span = value.span();
        let places = match text {
            Cow::Borrowed(slice) => ValuePlaces::of_slice(&self.file.text, slice),
            Cow::Owned(text) => ValuePlaces::of_escaped(&self.file.text, &span, text),
        };
        Some(PlacedText { value: text.clone().into_owned(), span, places })
    }

    pub fn wrong_type(&mut self, key: &str, value: &Spanned<DeValue<'_>>, expected: &str) {
        let found = match value.get_ref().type_str() {
            "integer" | "float" => "a number",
            "string" => "a text",
            "boolean" => "true or false",
            "datetime" => "a date",
            "array" => "a list",
            _ => "a table",
        };
        self.refuse(value.span(), format!("`{key}` is {found}"), format!("write {expected}"));
    }
}

//! The parsed query string of a list, a feed, or a page with filters.

use axum::http::Uri;
use serde::{Serialize, Serializer};

use super::error::WebError;
use super::error_code::ErrorCode;
use super::parameters::{AFTER, BEFORE, CHOSEN, FROM, LIMIT, PAGED, Parameter, ParameterKind, SINCE, TO};
use super::time_range::PeriodFilter;
use crate::ui::page::href;
use crate::ui::range::RangeQuery;
use model::{ListPosition, Timestamp, closest, config::Span};

/// The length of a cursor in an error.
const MAX_SHOWN_CHARS: usize = 60;

/// The default of `limit`.
const DEFAULT_ROWS: u32 = 100;

/// The values of parameters. It serializes as a map, for templates.
#[derive(Clone, Debug, Default)]
pub(super) struct ListQuery(Vec<(&'static str, String)>);

impl Serialize for ListQuery {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl ListQuery {
    /// Parses the query string of an API request.
    ///
    /// # Errors
    ///
    /// Fails if a parameter is not declared, is repeated, or has an invalid value. Ignoring a misspelled filter would return all rows.
    pub fn parse(declared: &[Parameter], uri: &Uri) -> Result<Self, WebError> {
        let mut query = Self::default();
        for (name, value) in pairs(uri) {
            let Some(parameter) = declared.iter().find(|parameter| parameter.name == name) else {
                return Err(unknown_parameter(&name, declared));
            };
            if value.trim().is_empty() {
                return Err(WebError::invalid_parameter(format!("`{name}` is empty: give a value, or leave the parameter out")));
            }
            if let Err((expected, suggestions)) = parameter.kind.check(&value) {
                let error = format!("{name}: {value:?} is not valid: expected {expected}");
                return Err(WebError::invalid_parameter(error).with_suggestions(suggestions));
            }
            match query.0.iter_mut().find(|(known, _)| *known == parameter.name) {
                Some(_) if !parameter.kind.is_repeatable() => {
                    return Err(WebError::invalid_parameter(format!("`{name}` is given more than once")));
                }
                // Repeated names are one list.
                Some((_, list)) if parameter.kind != ParameterKind::Texts => *list = format!("{list},{value}"),
                _ => query.0.push((parameter.name, value)),
            }
        }
        Ok(query)
    }

    /// Reads the query string of a page, which can be an old link or a form with empty fields. Ignores unknown parameters and empty values.
    /// `from` replaces `since`.
    pub fn from_page(declared: &[Parameter], uri: &Uri) -> Self {
        let value = |parameter: &Parameter| {
            let (_, value) = pairs(uri).find(|(name, _)| *name == parameter.name)?;
            Some((parameter.name, value.trim().to_owned())).filter(|(_, value)| !value.is_empty())
        };
        let query = Self(declared.iter().filter_map(value).collect());
        let range = RangeQuery::from_form(query.value_or_empty(SINCE), query.value_or_empty(FROM), query.value_or_empty(TO));
        query.with_range(&range)
    }

    /// Returns the first value. `None` if the parameter is missing.
    pub fn get(&self, parameter: Parameter) -> Option<&str> {
        self.all(parameter).next()
    }

    /// Returns the value, or `None` if it is missing or empty.
    pub fn text(&self, parameter: Parameter) -> Option<&str> {
        self.get(parameter).filter(|text| !text.is_empty())
    }

    /// Returns the value, or an empty text if it is missing.
    pub fn value_or_empty(&self, parameter: Parameter) -> &str {
        self.get(parameter).unwrap_or_default()
    }

    pub fn all(&self, parameter: Parameter) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(name, _)| *name == parameter.name).map(|(_, value)| value.as_str())
    }

    pub fn integer(&self, parameter: Parameter) -> Result<Option<u32>, WebError> {
        let Some(text) = self.get(parameter) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| invalid_value(parameter, text))
    }

    pub fn number(&self, parameter: Parameter) -> Option<f64> {
        self.get(parameter)?.parse().ok()
    }

    pub fn boolean(&self, parameter: Parameter) -> Option<bool> {
        self.get(parameter)?.parse().ok()
    }

    pub fn limit(&self) -> u32 {
        self.integer(LIMIT).ok().flatten().unwrap_or(DEFAULT_ROWS)
    }

    pub fn is_paged(&self) -> bool {
        self.boolean(PAGED).unwrap_or(false)
    }

    /// Returns the items of a comma-separated value.
    pub fn items<T>(&self, parameter: Parameter, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, WebError> {
        let name = parameter.name;
        let invalid = |item: &str| match parameter.kind.check(item) {
            Err((expected, suggestions)) => {
                let message = format!("{name}: {item:?} is not valid: expected {expected}");
                WebError::invalid_parameter(message).with_suggestions(suggestions)
            }
            Ok(()) => WebError::invalid_parameter(format!("{name}: {item:?} is not valid")),
        };
        let Some(list) = self.text(parameter) else { return Ok(Vec::new()) };
        let items = list.split(',').map(str::trim);
        let parse = |item: &str| if item.is_empty() { Err(empty_item(name)) } else { parse(item).ok_or_else(|| invalid(item)) };
        items.map(parse).collect()
    }

    pub fn duration(&self, parameter: Parameter) -> Result<Option<chrono::TimeDelta>, WebError> {
        self.get(parameter).map(|text| parse_duration(parameter.name, text)).transpose()
    }

    pub fn time_range(&self, now: Timestamp) -> Result<PeriodFilter, WebError> {
        PeriodFilter::parse(&self.range(), now)
    }

    pub fn range(&self) -> RangeQuery {
        let text = |parameter| self.value_or_empty(parameter).to_owned();
        RangeQuery { since: text(SINCE), from: text(FROM), to: text(TO) }
    }

    /// Returns the cursor of the page. `None` for the first page.
    pub fn cursor<T>(&self, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, WebError> {
        let Some(text) = self.get(AFTER) else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| invalid_cursor(AFTER, text))
    }

    /// Returns the position of the page in a list whose rows have numbers.
    pub fn position(&self) -> Result<ListPosition, WebError> {
        let number = |parameter: Parameter| {
            let Some(text) = self.get(parameter) else { return Ok(None) };
            text.parse::<i64>().map(Some).map_err(|_| invalid_cursor(parameter, text))
        };
        let position = ListPosition { after: number(AFTER)?, before: number(BEFORE)? };
        match position {
            ListPosition { after: Some(_), before: Some(_) } => {
                Err(WebError::invalid_parameter("`after` and `before` exclude each other: use one of them"))
            }
            position => Ok(position),
        }
    }

    /// Replaces a value. An empty one removes the parameter.
    #[must_use]
    pub fn with(mut self, parameter: Parameter, value: &str) -> Self {
        match self.0.iter_mut().find(|(name, _)| *name == parameter.name) {
            Some((_, current)) => value.clone_into(current),
            None => self.0.push((parameter.name, value.to_owned())),
        }
        self.0.retain(|(_, value)| !value.is_empty());
        self
    }

    #[must_use]
    pub fn with_range(self, range: &RangeQuery) -> Self {
        self.with(SINCE, &range.since).with(FROM, &range.from).with(TO, &range.to)
    }

    /// Returns the parameters with their values.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        self.0.clone()
    }

    /// Returns the URL of the first page of a list with these filters, without a selection.
    pub fn first_page(&self, path: &str) -> String {
        self.clone().with(AFTER, "").with(BEFORE, "").with(CHOSEN, "").href(path)
    }

    /// Returns the URL of `path` with these parameters.
    pub fn href(&self, path: &str) -> String {
        let values: Vec<(&str, &str)> = self.0.iter().map(|(name, value)| (*name, value.as_str())).collect();
        href(path, &values)
    }
}

fn pairs(uri: &Uri) -> impl Iterator<Item = (String, String)> {
    let pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    pairs.map(|(name, value)| (name.into_owned(), value.into_owned()))
}

fn invalid_cursor(parameter: Parameter, text: &str) -> WebError {
    let (name, link) = (parameter.name, if parameter == BEFORE { "previous" } else { "next" });
    let shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    WebError::invalid_parameter(format!("{name}: {shown:?} is not a valid cursor: expected the one in `{link}` of a response"))
}

fn invalid_value(parameter: Parameter, value: &str) -> WebError {
    let (name, kind) = (parameter.name, parameter.kind);
    let expected = kind.check(value).err().map(|(expected, _)| format!(": expected {expected}")).unwrap_or_default();
    WebError::invalid_parameter(format!("{name}: {value:?} is not valid{expected}"))
}

fn empty_item(name: &str) -> WebError {
    WebError::invalid_parameter(format!("`{name}` has an empty item: write one comma between two names"))
}

fn unknown_parameter(name: &str, declared: &[Parameter]) -> WebError {
    let names: Vec<&str> = declared.iter().map(|parameter| parameter.name).collect();
    let (help, near) = match closest(name, names.iter().copied()) {
        Some(near) => (format!("did you mean `{near}`?"), Some(near)),
        None if names.is_empty() => ("this path has no parameters".to_owned(), None),
        None => (format!("expected one of {}", names.join(", ")), None),
    };
    WebError::new(ErrorCode::UnknownParameter, format!("unknown parameter `{name}`: {help}")).with_suggestions(near)
}

pub(super) fn parse_duration(name: &str, text: &str) -> Result<chrono::TimeDelta, WebError> {
    let span: Span = text.parse().map_err(|error| WebError::invalid_parameter(format!("{name}: {error}")))?;
    Ok(span.delta())
}

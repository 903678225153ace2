//! What the lists are asked: filters, a limit, and the place at which a list goes on.

use axum::{extract::Query, extract::rejection::QueryRejection};
use serde::Deserialize;

use super::HttpError;
use super::range::ListTime;
use crate::ui::range::RangeWords;
use model::{Timestamp, config::Span};

/// Rows of a list where no `limit` is given.
const DEFAULT_ROWS: u32 = 100;
/// Most rows of a list.
pub(super) const MAX_ROWS: u32 = 10_000;

/// Parameters of the lists. All are optional; those that a list does not know are refused, since a misspelt filter lets everything in.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case", default)]
pub(super) struct ListQuery {
    pub(super) token: Option<String>,
    pub(super) group: Option<String>,
    pub(super) within: Option<String>,
    pub(super) min_value: Option<f64>,
    pub(super) kind: Option<String>,
    pub(super) resource: Option<String>,
    pub(super) since: Option<String>,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) state: Option<String>,
    pub(super) rule: Option<String>,
    pub(super) receiver: Option<String>,
    pub(super) severity: Option<String>,
    pub(super) acknowledged: Option<bool>,
    pub(super) q: Option<String>,
    pub(super) sort: Option<String>,
    pub(super) limit: Option<u32>,
    /// Where the list goes on: `next` of the part before.
    pub(super) after: Option<String>,
    /// Whether the answer is an object with `total`, `next` and `items`, and not the bare items.
    pub(super) paged: bool,
}

impl ListQuery {
    pub(super) fn limit(&self) -> u32 {
        self.limit.unwrap_or(DEFAULT_ROWS).clamp(1, MAX_ROWS)
    }

    /// Refuses parameters that this list has no use for.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), HttpError> {
        let given = [
            ("token", self.token.is_some()),
            ("group", self.group.is_some()),
            ("within", self.within.is_some()),
            ("min_value", self.min_value.is_some()),
            ("kind", self.kind.is_some()),
            ("resource", self.resource.is_some()),
            ("since", self.since.is_some()),
            ("from", self.from.is_some()),
            ("to", self.to.is_some()),
            ("state", self.state.is_some()),
            ("rule", self.rule.is_some()),
            ("receiver", self.receiver.is_some()),
            ("severity", self.severity.is_some()),
            ("acknowledged", self.acknowledged.is_some()),
            ("q", self.q.is_some()),
            ("sort", self.sort.is_some()),
        ];
        match given.iter().find(|(name, is_given)| *is_given && !known.contains(name)) {
            Some((name, _)) => {
                let known = known.iter().map(|name| format!("{name}, ")).collect::<String>();
                Err(HttpError::Bad(format!("`{name}` is no parameter here; there are {known}limit, after, paged")))
            }
            None => Ok(()),
        }
    }

    /// The time that is asked for.
    pub(super) fn range(&self, now: Timestamp) -> Result<ListTime, HttpError> {
        let word = |text: &Option<String>| text.clone().unwrap_or_default();
        ListTime::read(&RangeWords { since: word(&self.since), from: word(&self.from), to: word(&self.to) }, now)
    }

    /// The place at which the list goes on, read by `parse`.
    pub(super) fn after<T>(&self, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, HttpError> {
        let Some(text) = &self.after else { return Ok(None) };
        let wrong =
            || HttpError::Bad(format!("{text:?} is no place in this list: `after` takes what an answer named as the next"));
        parse(text).map(Some).ok_or_else(wrong)
    }
}

/// The words of a comma-separated parameter, each read by `parse`.
pub(super) fn words<T>(name: &str, text: Option<&str>, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, HttpError> {
    text.unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(|word| parse(word).ok_or_else(|| HttpError::Bad(format!("{word:?} is no {name}"))))
        .collect()
}

pub(super) fn span(name: &str, text: Option<&str>) -> Result<Option<chrono::TimeDelta>, HttpError> {
    let Some(text) = text else { return Ok(None) };
    let span: Span = text.parse().map_err(|error| HttpError::Bad(format!("{name}: {error}")))?;
    Ok(Some(span.delta()))
}

pub(super) type ListParameters = Result<Query<ListQuery>, QueryRejection>;

pub(super) fn list_query(parameters: ListParameters) -> Result<ListQuery, HttpError> {
    parameters.map(|Query(query)| query).map_err(|rejection| HttpError::Bad(rejection.body_text()))
}

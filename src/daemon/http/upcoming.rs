//! Unlocks ahead: as JSON, and as a calendar to subscribe to. Both take the same filters.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use chrono::TimeDelta;
use xxhash_rust::xxh3::xxh3_128;

use super::part::Part;
use super::query::{ListParameters, ListQuery, MAX_ROWS, list_query, span, words};
use super::{HttpDeps, HttpError};
use crate::cycle::ActiveRules;
use crate::ui::calendar::{self, CalendarEntry};
use crate::ui::view::UnlockView;
use model::{Record, Resource, Timestamp, TokenId, UpcomingFilter, UpcomingRow, closest};
use rules::{On, Rule, Scope, Truth};

/// Most tokens, groups and rules that one request may name.
const MAX_NAMES: usize = 1000;
/// How far a calendar reaches where no `within` is given.
const CALENDAR_SPAN: TimeDelta = TimeDelta::days(365);

const FILTERS: &[&str] = &["token", "group", "rule", "within", "min_value"];

pub(super) async fn list(State(deps): State<HttpDeps>, uri: Uri, parameters: ListParameters) -> Result<Response, HttpError> {
    let query = list_query(parameters)?;
    let now = deps.clock.now();
    let from: u32 = query.after(|text| text.parse().ok())?.unwrap_or(0);
    let wanted = from.saturating_add(query.limit()).saturating_add(1).min(MAX_ROWS);
    let (rows, total) = select(&deps, &query, None, wanted, now).await?;
    let views: Vec<UnlockView> = rows.iter().filter_map(|row| UnlockView::of(row, now)).collect();
    let part = Part::from_whole(views, usize::try_from(from).unwrap_or(usize::MAX), query.limit());
    Ok(Part { total: total.max(part.total), ..part }.answer(&query, &uri))
}

pub(super) async fn calendar(
    State(deps): State<HttpDeps>,
    headers: HeaderMap,
    parameters: ListParameters,
) -> Result<Response, HttpError> {
    let query = list_query(parameters)?;
    let now = deps.clock.now();
    let (rows, _) = select(&deps, &query, Some(CALENDAR_SPAN), query.limit.unwrap_or(MAX_ROWS).clamp(1, MAX_ROWS), now).await?;
    let entries: Vec<CalendarEntry> = rows
        .iter()
        .filter_map(|row| {
            let interval = row.tracked.record.interval()?;
            Some(CalendarEntry { key: row.tracked.key.as_str().to_owned(), interval, view: UnlockView::of(row, now)? })
        })
        .collect();
    let text = calendar::render(&entries, deps.external_url.as_ref().map(url::Url::as_str), now);
    // Subscribers ask every hour, and mostly nothing moved.
    let tag = format!("W/\"{:032x}\"", xxh3_128(text.as_bytes()));
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    if known.flat_map(|tags| tags.split(',')).any(|known| known.trim() == tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let kind = "text/calendar; charset=utf-8".to_owned();
    let name = "inline; filename=\"unlocks.ics\"".to_owned();
    Ok(([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, name), (header::ETAG, tag)], text).into_response())
}

/// The unlocks that pass the filters, the nearest first, at most `limit`, and how many pass. `span` is how far it reaches where the request does not say.
async fn select(
    deps: &HttpDeps,
    query: &ListQuery,
    span_otherwise: Option<TimeDelta>,
    limit: u32,
    now: Timestamp,
) -> Result<(Vec<UpcomingRow>, u64), HttpError> {
    query.only(FILTERS)?;
    let tokens = words("token", query.token.as_deref(), |word| Some(TokenId::from(word)))?;
    let groups = words("group", query.group.as_deref(), |word| Some(word.trim_start_matches('@').to_owned()))?;
    let rules = words("rule", query.rule.as_deref(), |word| Some(word.to_owned()))?;
    if [tokens.len(), groups.len(), rules.len()].into_iter().any(|count| count > MAX_NAMES) {
        return Err(HttpError::Bad(format!("at most {MAX_NAMES} names can be given")));
    }
    let live = deps.live.load_full();
    let watch = &live.watch;
    if let Some(unknown) = groups.iter().find(|group| !watch.has_group(group)) {
        return Err(HttpError::Bad(format!("there is no group {unknown:?} in [watch.groups]")));
    }
    let rules: Vec<&Rule> = rules.iter().map(|name| named(&live.active, name)).collect::<Result<Vec<_>, _>>()?.concat();

    // Groups, rules and values are no columns, so that is filtered here: as many rows are read as may be needed.
    let is_filtered_here = query.min_value.is_some() || !groups.is_empty() || !rules.is_empty();
    let filter = UpcomingFilter {
        tokens: (!tokens.is_empty()).then_some(tokens),
        from: now,
        until: span("within", query.within.as_deref())?.or(span_otherwise).and_then(|span| now.checked_add_signed(span)),
        limit: if is_filtered_here { MAX_ROWS } else { limit },
    };
    let total = match is_filtered_here {
        true => None,
        false => Some(deps.store.upcoming_total(filter.clone()).await?),
    };
    let rows = deps.store.upcoming(filter).await?.into_iter();
    let rows = rows.map(|row| UpcomingRow { token: watch.placed(row.token), ..row }).filter(|row| {
        let value = query.min_value.is_none_or(|least| value_of(row).is_some_and(|value| value >= least));
        let group = groups.is_empty() || row.token.groups.iter().any(|group| groups.contains(group));
        value && group && (rules.is_empty() || rules.iter().any(|rule| holds(rule, row, now)))
    });
    let mut rows: Vec<UpcomingRow> = rows.collect();
    let total = total.unwrap_or(rows.len() as u64);
    rows.truncate(limit as usize);
    Ok((rows, total))
}

fn value_of(row: &UpcomingRow) -> Option<f64> {
    match &row.tracked.record {
        Record::Unlock(event) => event.cliff_value(),
        _ => None,
    }
}

/// The rules of that name, or the one with that id.
fn named<'a>(active: &'a ActiveRules, name: &str) -> Result<Vec<&'a Rule>, HttpError> {
    let all = &active.rules.rules;
    let found: Vec<&Rule> = all.iter().filter(|rule| rule.name == name || rule.id.as_str() == name).collect();
    if found.is_empty() {
        let near = closest(name, all.iter().map(|rule| rule.name.as_str())).map(|near| format!("; did you mean {near:?}?"));
        return Err(HttpError::Bad(format!("there is no rule {name:?}{}", near.unwrap_or_default())));
    }
    if let Some(other) = found.iter().find(|rule| rule.on != On::Record(Resource::Unlock)) {
        return Err(HttpError::Bad(format!("the rule {:?} is not on unlocks", other.name)));
    }
    Ok(found)
}

/// Whether the rule would tell of this unlock, as it stands, once it is near enough: its lead times do not count.
fn holds(rule: &Rule, row: &UpcomingRow, now: Timestamp) -> bool {
    let scope =
        Scope { token: Some(&row.token), record: Some(&row.tracked), change: None, source: None, totals: None, lead: None, now };
    rule.covers(&scope) && rule.holds(&scope) == Truth::True
}

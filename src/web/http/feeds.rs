//! The calendar of upcoming unlocks and the Atom feed of changes.
//!
//! Both have two paths: one that needs authorization, and a secret link for calendar programs, which cannot send a token. The link
//! contains a tag that is derived from the token of `[http]`. It gives access to the feeds only, and changes with the token.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use chrono::TimeDelta;
use subtle::ConstantTimeEq as _;
use xxhash_rust::xxh3::xxh3_128;

use super::HttpDeps;
use super::api::upcoming::{UnlockFilter, groups, rules_named, tokens};
use super::error::WebError;
use super::etag::matches_etag;
use super::parameters::{
    ALARM, GROUP, KIND, LIMIT, LINEAR, MIN_VALUE, MONTH_SPAN, Parameter, RESOURCE, RULES, SINCE, TOKENS, WITHIN,
};
use super::query::{ListQuery, MAX_ROWS};
use crate::ui::atom::{self, FeedEntry};
use crate::ui::calendar::{self, CalendarEntry, CalendarStyle, MonthSpan};
use daemon::live;
use daemon::view::UnlockView;
use model::{CalendarRow, ChangeFilter, ChangeKind, ChangeRow, LinearCalendarRow, Resource, Timestamp, UpcomingRow};
pub(super) use notify::feed_link::{ATOM, CALENDAR, PATH};
use rules::{On, Rule, Scope, Truth};

/// The default of `within`.
const CALENDAR_SPAN: TimeDelta = TimeDelta::days(365);
/// The time for which a removed unlock is shown as cancelled.
const CANCELLED_FOR: TimeDelta = TimeDelta::days(30);
/// The default number of feed entries.
const FEED_ENTRIES: u32 = 100;
const MAX_FEED_ENTRIES: u32 = 1_000;

const CALENDAR_PARAMETERS: &[Parameter] = &[TOKENS, GROUP, RULES, WITHIN, MIN_VALUE, LIMIT, MONTH_SPAN, ALARM, LINEAR];
const ATOM_PARAMETERS: &[Parameter] = &[TOKENS, GROUP, RULES, KIND, RESOURCE, SINCE, LIMIT];

/// `GET /calendar.ics`.
pub(super) async fn calendar(State(deps): State<HttpDeps>, headers: HeaderMap, uri: Uri) -> Result<Response, WebError> {
    let query = ListQuery::parse(CALENDAR_PARAMETERS, &uri)?;
    let now = deps.app.clock.now();
    let style = CalendarStyle {
        external_url: deps.app.external_url.as_ref().map(url::Url::as_str),
        spans: match query.get(MONTH_SPAN) {
            None | Some("day") => MonthSpan::Day,
            Some("month") => MonthSpan::Month,
            Some(other) => return Err(WebError::bad_request(format!("spans: {other:?} is not valid: expected day or month"))),
        },
        alarm: query.duration(ALARM)?,
    };
    let (rows, linear) = unlocks(&deps, &query, now).await?;
    let entries: Vec<CalendarEntry> = rows.iter().filter_map(|row| entry(row, now)).collect();
    Ok(response(&headers, "text/calendar; charset=utf-8", "unlocks.ics", calendar::render(&entries, &linear, &style)))
}

/// Returns the cliff unlocks of a calendar, nearest first, then removed ones, and the dates of its linear unlocks in the same order.
async fn unlocks(
    deps: &HttpDeps,
    query: &ListQuery,
    now: Timestamp,
) -> Result<(Vec<CalendarRow>, Vec<LinearCalendarRow>), WebError> {
    let live = deps.app.live.load_full();
    let filter = UnlockFilter::resolve(deps, query, tokens(deps, query).await?, &live).await?;
    let within = query.duration(WITHIN)?.unwrap_or(CALENDAR_SPAN);
    let limit = query.integer(LIMIT)?.unwrap_or(MAX_ROWS).clamp(1, MAX_ROWS);
    let max_rows = if query.get(MIN_VALUE).is_some() { MAX_ROWS } else { limit };
    let selected = filter.rows(now.checked_add_signed(within), max_rows, now);
    let rows = deps.app.store.calendar(selected.clone(), now - CANCELLED_FOR).await?.into_iter();
    let rows = rows.map(|row| {
        let with_groups = UpcomingRow { token: live.watch.placed(row.row.token), ..row.row };
        CalendarRow { row: with_groups, ..row }
    });
    let rows: Vec<CalendarRow> = rows.collect();
    let schedules = filter.schedules(deps, rows.iter().map(|row| &row.row.token.id)).await?;
    let is_selected = |row: &CalendarRow| {
        let value = row.row.tracked.record.unlock().and_then(|event| event.cliff_value());
        filter.is_large_enough(value) && filter.matches_rules(&row.row.token, Some(&row.row.tracked), &schedules, now)
    };
    let rows = rows.into_iter().filter(is_selected).take(limit as usize).collect();
    if query.boolean(LINEAR) == Some(false) {
        return Ok((rows, Vec::new()));
    }
    let linear = deps.app.store.calendar_linear(selected, now - CANCELLED_FOR).await?.into_iter();
    let linear = linear.map(|row| LinearCalendarRow { token: live.watch.placed(row.token), ..row });
    let linear: Vec<LinearCalendarRow> = linear.collect();
    let schedules = filter.schedules(deps, linear.iter().map(|row| &row.token.id)).await?;
    let is_selected = |row: &LinearCalendarRow| filter.is_large_enough(row.value) && filter.matches_date(row, &schedules, now);
    Ok((rows, linear.into_iter().filter(is_selected).take(limit as usize).collect()))
}

fn entry(row: &CalendarRow, now: Timestamp) -> Option<CalendarEntry> {
    Some(CalendarEntry {
        key: row.row.tracked.key.as_str().to_owned(),
        interval: row.row.tracked.record.interval()?,
        view: UnlockView::of(&row.row, now)?,
        modified_at: row.modified_at,
        was_modified: row.was_modified,
        is_removed: row.is_removed,
    })
}

/// `GET /feed.atom`.
pub(super) async fn atom(State(deps): State<HttpDeps>, headers: HeaderMap, uri: Uri) -> Result<Response, WebError> {
    let query = ListQuery::parse(ATOM_PARAMETERS, &uri)?;
    let rows = changes(&deps, &query).await?;
    let filters: Vec<&str> =
        [TOKENS, GROUP, RULES, KIND, RESOURCE].into_iter().filter_map(|parameter| query.get(parameter)).collect();
    let entries: Vec<FeedEntry> = rows.iter().map(FeedEntry::of).collect();
    let text = atom::render(&entries, &filters.join(", "), deps.app.external_url.as_ref().map(url::Url::as_str))?;
    Ok(response(&headers, "application/atom+xml; charset=utf-8", "changes.atom", text))
}

/// Returns the changes of a feed, newest first.
async fn changes(deps: &HttpDeps, query: &ListQuery) -> Result<Vec<ChangeRow>, WebError> {
    let now = deps.app.clock.now();
    let live = deps.app.live.load_full();
    let (tokens, groups) = (tokens(deps, query).await?, groups(query, &live)?);
    let mut rules: Vec<&Rule> = Vec::new();
    for name in query.items(RULES, |word| Some(word.to_owned()))? {
        let found = rules_named(&live.active, &name)?;
        if let Some(other) = found.iter().find(|rule| !matches!(rule.on, On::Change(..))) {
            return Err(WebError::bad_request(format!("the rule {:?} does not subscribe to changes", other.name)));
        }
        rules.extend(found);
    }
    let kinds = query.items(KIND, ChangeKind::parse)?;
    let resources = query.items(RESOURCE, Resource::parse)?;
    let since = query.duration(SINCE)?.and_then(|span| now.checked_sub_signed(span));
    // The database has no columns for these filters.
    let matches = |row: &ChangeRow| {
        (tokens.is_empty() || tokens.contains(&row.token))
            && (kinds.is_empty() || kinds.contains(&row.change.kind))
            && (resources.is_empty() || resources.contains(&row.resource))
            && (groups.is_empty() || live.watch.groups_of(&row.token).iter().any(|group| groups.contains(group)))
    };
    let one = match tokens.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    };
    let limit = query.integer(LIMIT)?.unwrap_or(FEED_ENTRIES).clamp(1, MAX_FEED_ENTRIES);
    let is_partly_in_memory =
        tokens.len() > 1 || !(kinds.is_empty() && resources.is_empty() && groups.is_empty() && rules.is_empty());
    let max_rows = if is_partly_in_memory { MAX_ROWS } else { limit };
    let rows = deps.app.store.changes(ChangeFilter { token: one, since, limit: max_rows, ..ChangeFilter::default() }).await?;
    let mut rows: Vec<ChangeRow> = rows.into_iter().filter(matches).collect();
    if !rules.is_empty() {
        let mut ids: Vec<_> = rows.iter().map(|row| row.token.clone()).collect();
        ids.sort();
        ids.dedup();
        let known = deps.app.store.tokens(ids, Vec::new()).await?;
        rows.retain(|row| {
            let token = known.iter().find(|known| known.token.id == row.token);
            let token = token.map(|known| live.watch.placed(known.token.clone()));
            rules.iter().any(|rule| rule_matches(rule, token.as_ref(), row, now))
        });
    }
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(rows)
}

/// Returns `true` if a change rule subscribes to a change and its condition is true.
fn rule_matches(rule: &Rule, token: Option<&model::Token>, row: &ChangeRow, now: Timestamp) -> bool {
    let On::Change(resource, kind) = rule.on else { return false };
    let scope = Scope { token, change: Some(&row.change), ..Scope::at(now) };
    resource == row.resource
        && kind.is_none_or(|kind| kind == row.change.kind)
        && rule.covers(&scope)
        && rule.evaluate(&scope) == Truth::True
}

/// `GET /feeds/{tag}/calendar.ics`: the calendar by its secret link.
pub(super) async fn calendar_by_link(
    State(deps): State<HttpDeps>,
    Path(tag): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, WebError> {
    check_link(&deps, &tag).await?;
    calendar(State(deps), headers, uri).await
}

/// `GET /feeds/{tag}/feed.atom`: the feed by its secret link.
pub(super) async fn atom_by_link(
    State(deps): State<HttpDeps>,
    Path(tag): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, WebError> {
    check_link(&deps, &tag).await?;
    atom(State(deps), headers, uri).await
}

/// Fails with status 404 if the tag does not belong to the token of `[http]`.
async fn check_link(deps: &HttpDeps, tag: &str) -> Result<(), WebError> {
    let unknown =
        || WebError::not_found("No such feed", "this link is not valid; run `cliffwatch feeds` to print the valid links");
    let token = live::resolve(deps.app.bearer.clone()).await.map_err(|error| {
        tracing::error!(%error, "cannot read the token of [http]");
        unknown()
    })?;
    let expected = token.as_ref().and_then(|token| notify::feed_link::tag(token.expose())).ok_or_else(unknown)?;
    if bool::from(expected.as_bytes().ct_eq(tag.as_bytes())) { Ok(()) } else { Err(unknown()) }
}

/// Returns a feed with its `ETag`, or status 304 if the client has it.
fn response(headers: &HeaderMap, kind: &str, name: &str, text: String) -> Response {
    let tag = format!("W/\"{:032x}\"", xxh3_128(text.as_bytes()));
    let sent: Vec<_> = headers.get_all(header::IF_NONE_MATCH).iter().cloned().collect();
    if matches_etag(&sent, &tag) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
    }
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, format!("inline; filename=\"{name}\"")),
        (header::ETAG, tag),
    ];
    (headers, text).into_response()
}

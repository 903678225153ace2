//! The calendar of upcoming unlocks and the Atom feed of changes.
//!
//! Both have two paths: one that needs authorization, and a secret link for calendar programs, which cannot send a token. The link
//! contains a tag that is derived from the token of `[http]`. It gives access to the feeds only, and changes with the token.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::TimeDelta;
use subtle::ConstantTimeEq as _;
use xxhash_rust::xxh3::xxh3_128;

use super::HttpDeps;
use super::api::upcoming::{SelectedRules, UnlockFilter};
use super::error::WebError;
use super::error_code::ErrorCode;
use super::etag::matches_etag;
use super::group::SelectedGroups;
use super::names;
use super::parameters::{
    ALARM, CALENDAR_LIMIT, FEED_LIMIT, GROUP, KIND, LINEAR, MAX_ROWS, MIN_VALUE, MONTH_SPAN, Parameter, RESOURCE, RULES, SINCE,
    TOKENS, WITHIN,
};
use super::query::ListQuery;
use super::request_limits::ReadDeps;
use super::time_range::{after, before};
use crate::ui::atom::{self, FeedEntry};
use crate::ui::calendar::{self, CalendarEntry, CalendarStyle, MonthSpan};
use daemon::live;
use daemon::view::UnlockView;
use model::{
    CalendarRow, ChangeFilter, ChangeKind, ChangeRow, LinearCalendarRow, Resource, Timestamp, Token, TokenSnapshot, UpcomingRow,
};
pub(super) use notify::feed_link::{ATOM, CALENDAR, PATH};
use rules::{On, Rule, Scope, Truth};

/// The default of `within`.
const CALENDAR_SPAN: TimeDelta = TimeDelta::days(365);
/// The time for which a removed unlock is shown as cancelled.
const CANCELLED_FOR: TimeDelta = TimeDelta::days(30);
/// The size limit of the events in a calendar. Events that do not fit are left out.
const MAX_CALENDAR_BYTES: usize = 4 * 1024 * 1024;
/// The default number of feed entries.
const FEED_ENTRIES: u32 = 100;

pub(super) const CALENDAR_PARAMETERS: &[Parameter] =
    &[TOKENS, GROUP, RULES, WITHIN, MIN_VALUE, CALENDAR_LIMIT, MONTH_SPAN, ALARM, LINEAR];
pub(super) const ATOM_PARAMETERS: &[Parameter] = &[TOKENS, GROUP, RULES, KIND, RESOURCE, SINCE, FEED_LIMIT];

/// `GET /calendar.ics`, and its secret link.
pub(super) async fn calendar(ReadDeps(deps): ReadDeps, headers: HeaderMap, uri: Uri) -> Result<Response, WebError> {
    let query = ListQuery::parse(CALENDAR_PARAMETERS, &uri)?;
    let now = deps.app.clock.now();
    let style = CalendarStyle {
        external_url: deps.app.external_url.as_ref().map(url::Url::as_str),
        spans: match query.get(MONTH_SPAN) {
            Some("month") => MonthSpan::Month,
            _ => MonthSpan::Day,
        },
        alarm: query.duration(ALARM)?,
    };
    let text = calendar_text(&deps, &query, style, now).await?;
    Ok(response(&headers, "text/calendar; charset=utf-8", "unlocks.ics", text))
}

/// Returns a calendar with its cliff unlocks, nearest first, then removed ones, and the dates of its linear unlocks in the same order.
async fn calendar_text(deps: &HttpDeps, query: &ListQuery, style: CalendarStyle<'_>, now: Timestamp) -> Result<String, WebError> {
    let live = deps.app.live.load_full();
    let filter = UnlockFilter::resolve(deps, query, names::tokens(deps, query).await?, &live).await?;
    let within = query.duration(WITHIN)?.unwrap_or(CALENDAR_SPAN);
    let limit = query.integer(CALENDAR_LIMIT)?.unwrap_or(MAX_ROWS);
    // Rules, and the values of linear and removed unlocks, are compared in memory.
    let max_rows = if filter.has_rules() || query.get(MIN_VALUE).is_some() { MAX_ROWS } else { limit };
    let (stored, removed_since) = (filter.unlocks(Some(after(now, within)?), max_rows, now), now - CANCELLED_FOR);
    let unlocks = stored.unlocks.clone();
    let (limit, max_bytes) = (limit as usize, Arc::new(AtomicUsize::new(MAX_CALENDAR_BYTES)));

    let select = {
        let (live, filter, left) = (live.clone(), filter.clone(), max_bytes.clone());
        let (external_url, spans, alarm) = (style.external_url.map(str::to_owned), style.spans, style.alarm);
        move |row: CalendarRow, schedule: Option<&TokenSnapshot>| {
            let style = CalendarStyle { external_url: external_url.as_deref(), spans, alarm };
            let row = CalendarRow { row: UpcomingRow { token: live.watch.placed(row.row.token), ..row.row }, ..row };
            let value = row.row.tracked.record.unlock().and_then(|event| event.cliff_value());
            let (token, event) = (&row.row.token, Some(&row.row.tracked));
            let is_selected = filter.is_large_enough(value) && filter.matches_rules(token, event, schedule, now);
            let text = is_selected.then(|| entry(&row, now)).flatten().map(|entry| calendar::cliff_text(&entry, &style))?;
            take_bytes(&left, text.len()).then_some(text)
        }
    };
    let reads_schedules = filter.reads_schedules();
    let mut texts = deps.app.store.calendar(stored, removed_since, limit, reads_schedules, select).await?;
    if query.boolean(LINEAR) != Some(false) {
        let select = move |row: &mut LinearCalendarRow, schedule: Option<&TokenSnapshot>| {
            row.token = live.watch.placed(row.token.clone());
            filter.is_large_enough(row.value) && filter.matches_date(row, schedule, now)
        };
        let linear = deps.app.store.calendar_linear(unlocks, removed_since, reads_schedules, select).await?;
        let linear = linear.iter().take(limit).filter_map(|row| calendar::linear_text(row, &style));
        texts.extend(linear.take_while(|text| take_bytes(&max_bytes, text.len())));
    }
    Ok(calendar::with_header(&texts))
}

/// Takes the size of a text from the rest. Returns `false` if the rest is too small.
fn take_bytes(left: &AtomicUsize, bytes: usize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
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

/// `GET /feed.atom`, and its secret link.
pub(super) async fn atom(ReadDeps(deps): ReadDeps, headers: HeaderMap, uri: Uri) -> Result<Response, WebError> {
    let query = ListQuery::parse(ATOM_PARAMETERS, &uri)?;
    let entries = changes(&deps, &query).await?;
    let filters: Vec<&str> =
        [TOKENS, GROUP, RULES, KIND, RESOURCE].into_iter().filter_map(|parameter| query.get(parameter)).collect();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let text = atom::render(&entries, &filters.join(", "), path, deps.app.external_url.as_ref().map(url::Url::as_str))?;
    Ok(response(&headers, "application/atom+xml; charset=utf-8", "changes.atom", text))
}

/// Returns the changes of a feed, newest first.
async fn changes(deps: &HttpDeps, query: &ListQuery) -> Result<Vec<FeedEntry>, WebError> {
    let now = deps.app.clock.now();
    let live = deps.app.live.load_full();
    let (tokens, groups) = (names::tokens(deps, query).await?, SelectedGroups::of(query, &live)?);
    let rules = SelectedRules::named(&live, &query.items(RULES, |word| Some(word.to_owned()))?)?;
    if let Some(other) = rules.iter().find(|rule| !matches!(rule.on, On::Change(..))) {
        return Err(WebError::invalid_parameter(format!("the rule {:?} does not subscribe to changes", other.name)));
    }
    let limit = query.integer(FEED_LIMIT)?.unwrap_or(FEED_ENTRIES);
    let mut filter = ChangeFilter {
        tokens: groups.narrow(deps, tokens).await?,
        kinds: query.items(KIND, ChangeKind::parse)?,
        resources: query.items(RESOURCE, Resource::parse)?,
        since: query.duration(SINCE)?.map(|span| before(now, span)).transpose()?,
        limit,
        ..ChangeFilter::default()
    };
    if !rules.is_empty() {
        filter.limit = MAX_ROWS;
        if filter.resources.is_empty() {
            filter.resources = resources_of(&rules);
        }
    }
    let select = move |row: &ChangeRow, token: Option<&Token>| {
        let is_selected = rules.is_empty() || {
            let token = token.map(|token| live.watch.placed(token.clone()));
            rules.iter().any(|rule| rule_matches(rule, token.as_ref(), row, now))
        };
        is_selected.then(|| FeedEntry::of(row))
    };
    Ok(deps.app.store.select_changes(filter, limit as usize, select).await?)
}

/// Returns the resources of change rules.
fn resources_of(rules: &SelectedRules) -> Vec<Resource> {
    let mut resources: Vec<Resource> = Vec::new();
    for rule in rules.iter() {
        if let On::Change(resource, _) = rule.on
            && !resources.contains(&resource)
        {
            resources.push(resource);
        }
    }
    resources
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

/// Rejects a secret link with status 404 if its tag does not belong to the token of `[http]`.
pub(super) async fn check_link(
    State(deps): State<HttpDeps>,
    Path(tag): Path<String>,
    request: Request,
    next: Next,
) -> Result<Response, WebError> {
    let unknown =
        || WebError::new(ErrorCode::NotFound, "this link is not valid; run `cliffwatch feeds` to print the valid links");
    let token = live::resolve(deps.app.bearer.clone()).await.map_err(|error| {
        tracing::error!(%error, "cannot read the token of [http]");
        unknown()
    })?;
    let expected = token.as_ref().and_then(|token| notify::feed_link::tag(token.expose())).ok_or_else(unknown)?;
    if bool::from(expected.as_bytes().ct_eq(tag.as_bytes())) { Ok(next.run(request).await) } else { Err(unknown()) }
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

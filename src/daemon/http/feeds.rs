//! What other programs subscribe to: unlocks ahead as a calendar, changes as an Atom feed.
//!
//! Both stand behind the gate, and again below a secret link, since calendar programs send no header: its tag follows from the token of
//! `[http]`, so that it cannot be guessed, opens nothing but these two, and is another one as soon as the token is.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::TimeDelta;
use serde::Deserialize;
use subtle::ConstantTimeEq as _;
use xxhash_rust::xxh3::xxh3_128;

use super::query::{MAX_ROWS, span, words};
use super::upcoming::{UnlockFilter, UnlockWords, groups, named, tokens};
use super::{HttpDeps, HttpError};
use crate::live;
use crate::ui::atom::{self, FeedEntry};
use crate::ui::calendar::{self, CalendarEntry, CalendarStyle, MonthSpan};
use crate::ui::view::UnlockView;
use model::{CalendarRow, ChangeFilter, ChangeKind, ChangeRow, Resource, Timestamp, UpcomingRow};
pub(super) use notify::feed_link::{ATOM, CALENDAR, PATH};
use rules::{On, Rule, Scope, Truth};

/// How far a calendar reaches where no `within` is given.
const CALENDAR_SPAN: TimeDelta = TimeDelta::days(365);
/// How long an unlock that was taken out of its schedule is shown as cancelled.
const CANCELLED_FOR: TimeDelta = TimeDelta::days(30);
/// Entries of a feed where no `limit` is given, and at most.
const FEED_ENTRIES: u32 = 100;
const MAX_FEED_ENTRIES: u32 = 1_000;

/// What a calendar is asked for. A misspelt parameter is refused: it would let everything in.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case", default)]
pub(super) struct CalendarQuery {
    token: Option<String>,
    group: Option<String>,
    rule: Option<String>,
    within: Option<String>,
    min_value: Option<f64>,
    limit: Option<u32>,
    spans: Option<String>,
    alarm: Option<String>,
}

/// What a feed of changes is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case", default)]
pub(super) struct AtomQuery {
    token: Option<String>,
    group: Option<String>,
    rule: Option<String>,
    kind: Option<String>,
    resource: Option<String>,
    since: Option<String>,
    limit: Option<u32>,
}

type Parameters<T> = Result<Query<T>, QueryRejection>;

/// `GET /calendar.ics`.
pub(super) async fn calendar(
    State(deps): State<HttpDeps>,
    headers: HeaderMap,
    parameters: Parameters<CalendarQuery>,
) -> Result<Response, HttpError> {
    let Query(query) = parameters.map_err(|rejection| HttpError::Bad(rejection.body_text()))?;
    let now = deps.clock.now();
    let style = CalendarStyle {
        external_url: deps.external_url.as_ref().map(url::Url::as_str),
        spans: match query.spans.as_deref() {
            None | Some("day") => MonthSpan::Day,
            Some("month") => MonthSpan::Month,
            Some(other) => return Err(HttpError::Bad(format!("spans: {other:?} is neither \"day\" nor \"month\""))),
        },
        alarm: span("alarm", query.alarm.as_deref())?,
    };
    let rows = unlocks(&deps, &query, now).await?;
    let entries: Vec<CalendarEntry> = rows.iter().filter_map(|row| entry(row, now)).collect();
    Ok(answer(&headers, "text/calendar; charset=utf-8", "unlocks.ics", calendar::render(&entries, &style)))
}

/// The unlocks of a calendar, the nearest first, those that are gone at the end.
async fn unlocks(deps: &HttpDeps, query: &CalendarQuery, now: Timestamp) -> Result<Vec<CalendarRow>, HttpError> {
    let live = deps.live.load_full();
    let wanted = UnlockWords { group: query.group.as_deref(), rule: query.rule.as_deref(), min_value: query.min_value };
    let filter = UnlockFilter::of(tokens(deps, query.token.as_deref()).await?, &live, wanted)?;
    let within = span("within", query.within.as_deref())?.unwrap_or(CALENDAR_SPAN);
    let limit = query.limit.unwrap_or(MAX_ROWS).clamp(1, MAX_ROWS);
    let rows = filter.rows(now.checked_add_signed(within), limit, now);
    let rows = deps.store.calendar(rows, now - CANCELLED_FOR).await?.into_iter();
    let rows = rows.map(|row| {
        let placed = UpcomingRow { token: live.watch.placed(row.row.token), ..row.row };
        CalendarRow { row: placed, ..row }
    });
    Ok(rows.filter(|row| filter.lets_in(&row.row, now)).take(limit as usize).collect())
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
pub(super) async fn atom(
    State(deps): State<HttpDeps>,
    headers: HeaderMap,
    parameters: Parameters<AtomQuery>,
) -> Result<Response, HttpError> {
    let Query(query) = parameters.map_err(|rejection| HttpError::Bad(rejection.body_text()))?;
    let rows = changes(&deps, &query).await?;
    let words = [&query.token, &query.group, &query.rule, &query.kind, &query.resource];
    let of: Vec<&str> = words.into_iter().flatten().map(String::as_str).collect();
    let entries: Vec<FeedEntry> = rows.iter().map(FeedEntry::of).collect();
    let text = atom::render(&entries, &of.join(", "), deps.external_url.as_ref().map(url::Url::as_str))?;
    Ok(answer(&headers, "application/atom+xml; charset=utf-8", "changes.atom", text))
}

/// The changes of a feed, the latest first.
async fn changes(deps: &HttpDeps, query: &AtomQuery) -> Result<Vec<ChangeRow>, HttpError> {
    let now = deps.clock.now();
    let live = deps.live.load_full();
    let (tokens, groups) = (tokens(deps, query.token.as_deref()).await?, groups(&live, query.group.as_deref())?);
    let mut rules: Vec<&Rule> = Vec::new();
    for name in words("rule", query.rule.as_deref(), |word| Some(word.to_owned()))? {
        let found = named(&live.active, &name)?;
        if let Some(other) = found.iter().find(|rule| !matches!(rule.on, On::Change(..))) {
            return Err(HttpError::Bad(format!("the rule {:?} is not on changes", other.name)));
        }
        rules.extend(found);
    }
    let kinds = words("kind", query.kind.as_deref(), ChangeKind::parse)?;
    let resources = words("resource", query.resource.as_deref(), Resource::parse)?;
    let since = span("since", query.since.as_deref())?.and_then(|span| now.checked_sub_signed(span));
    // What is no column is filtered here.
    let is_asked = |row: &ChangeRow| {
        (tokens.is_empty() || tokens.contains(&row.token))
            && (kinds.is_empty() || kinds.contains(&row.change.kind))
            && (resources.is_empty() || resources.contains(&row.resource))
            && (groups.is_empty() || live.watch.groups_of(&row.token).iter().any(|group| groups.contains(group)))
    };
    let one = match tokens.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    };
    let limit = query.limit.unwrap_or(FEED_ENTRIES).clamp(1, MAX_FEED_ENTRIES);
    let is_filtered_here =
        tokens.len() > 1 || !(kinds.is_empty() && resources.is_empty() && groups.is_empty() && rules.is_empty());
    let wanted = if is_filtered_here { MAX_ROWS } else { limit };
    let rows = deps.store.changes(ChangeFilter { token: one, since, limit: wanted, ..ChangeFilter::default() }).await?;
    let mut rows: Vec<ChangeRow> = rows.into_iter().filter(is_asked).collect();
    if !rules.is_empty() {
        let mut ids: Vec<_> = rows.iter().map(|row| row.token.clone()).collect();
        ids.sort();
        ids.dedup();
        let known = deps.store.tokens(ids, Vec::new()).await?;
        rows.retain(|row| {
            let token = known.iter().find(|known| known.token.id == row.token);
            let token = token.map(|known| live.watch.placed(known.token.clone()));
            rules.iter().any(|rule| hears(rule, token.as_ref(), row, now))
        });
    }
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(rows)
}

/// Whether a rule on changes would tell of this one.
fn hears(rule: &Rule, token: Option<&model::Token>, row: &ChangeRow, now: Timestamp) -> bool {
    let On::Change(resource, kind) = rule.on else { return false };
    let scope = Scope { token, record: None, change: Some(&row.change), source: None, totals: None, lead: None, now };
    resource == row.resource
        && kind.is_none_or(|kind| kind == row.change.kind)
        && rule.covers(&scope)
        && rule.holds(&scope) == Truth::True
}

/// `GET /feeds/{tag}/calendar.ics`: the same for who has the link.
pub(super) async fn calendar_by_link(
    State(deps): State<HttpDeps>,
    Path(tag): Path<String>,
    headers: HeaderMap,
    parameters: Parameters<CalendarQuery>,
) -> Result<Response, HttpError> {
    check_link(&deps, &tag).await?;
    calendar(State(deps), headers, parameters).await
}

/// `GET /feeds/{tag}/feed.atom`: the same for who has the link.
pub(super) async fn atom_by_link(
    State(deps): State<HttpDeps>,
    Path(tag): Path<String>,
    headers: HeaderMap,
    parameters: Parameters<AtomQuery>,
) -> Result<Response, HttpError> {
    check_link(&deps, &tag).await?;
    atom(State(deps), headers, parameters).await
}

/// Fails unless the tag is that of the token of `[http]`.
async fn check_link(deps: &HttpDeps, tag: &str) -> Result<(), HttpError> {
    let nobody = || HttpError::NotFound("there is no such feed: `cliffwatch feeds` prints the links".to_owned());
    let token = live::resolve(deps.bearer.clone()).await.map_err(|error| {
        tracing::error!(%error, "the token of [http] cannot be read");
        nobody()
    })?;
    let own = token.as_ref().and_then(|token| notify::feed_link::tag(token.expose())).ok_or_else(nobody)?;
    if bool::from(own.as_bytes().ct_eq(tag.as_bytes())) { Ok(()) } else { Err(nobody()) }
}

/// The text with its tag; or that it is not another than the asker has. Subscribers ask every hour, and mostly nothing moved.
fn answer(headers: &HeaderMap, kind: &str, name: &str, text: String) -> Response {
    let tag = format!("W/\"{:032x}\"", xxh3_128(text.as_bytes()));
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    if known.flat_map(|tags| tags.split(',')).any(|known| known.trim() == tag) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
    }
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, format!("inline; filename=\"{name}\"")),
        (header::ETAG, tag),
    ];
    (headers, text).into_response()
}

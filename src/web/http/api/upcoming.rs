//! `/api/upcoming`: upcoming unlocks as JSON, and the filters that calendars use too.

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;

use super::operations::UPCOMING;
use crate::http::HttpDeps;
use crate::http::error::WebError;
use crate::http::list_page::ListPage;
use crate::http::parameters::{GROUP, MIN_VALUE, RULES, TOKENS, WITHIN};
use crate::http::query::{ListQuery, MAX_ROWS};
use daemon::cycle::ActiveRules;
use daemon::live::LiveConfig;
use daemon::view::UnlockView;
use model::{Record, Resource, Timestamp, TokenId, UpcomingFilter, UpcomingRow, closest};
use rules::{On, Rule, Scope, Truth};

/// The maximum number of tokens, groups, or rules in one request.
const MAX_NAMES: usize = 1000;

pub(in crate::http) async fn list(State(deps): State<HttpDeps>, uri: Uri) -> Result<Response, WebError> {
    let query = UPCOMING.query(&uri)?;
    let now = deps.app.clock.now();
    let offset: u32 = query.cursor(|text| text.parse().ok())?.unwrap_or(0);
    let max_rows = offset.saturating_add(query.limit()).saturating_add(1).min(MAX_ROWS);
    let (rows, total) = select(&deps, &query, max_rows, now).await?;
    let views: Vec<UnlockView> = rows.iter().filter_map(|row| UnlockView::of(row, now)).collect();
    let page = ListPage::from_all(views, usize::try_from(offset).unwrap_or(usize::MAX), query.limit());
    Ok(ListPage { total: total.max(page.total), ..page }.response(&query, &uri))
}

/// Returns up to `limit` matching unlocks, nearest first, and the number of all matching unlocks.
async fn select(deps: &HttpDeps, query: &ListQuery, limit: u32, now: Timestamp) -> Result<(Vec<UpcomingRow>, u64), WebError> {
    let live = deps.app.live.load_full();
    // Unlike calendars, the list accepts unknown tokens and is empty for them.
    let tokens = query.items(TOKENS, |word| Some(TokenId::from(word)))?;
    check_name_count(tokens.len())?;
    let filter = UnlockFilter::resolve(query, tokens, &live)?;
    let until = query.duration(WITHIN)?.and_then(|span| now.checked_add_signed(span));
    let stored = filter.rows(until, limit, now);
    let (rows, total) = match filter.is_partly_in_memory() {
        true => (deps.app.store.upcoming(stored).await?, None),
        false => {
            let (rows, total) = tokio::try_join!(deps.app.store.upcoming(stored.clone()), deps.app.store.upcoming_total(stored))?;
            (rows, Some(total))
        }
    };
    let rows = rows.into_iter().map(|row| UpcomingRow { token: live.watch.placed(row.token), ..row });
    let mut rows: Vec<UpcomingRow> = rows.filter(|row| filter.matches(row, now)).collect();
    let total = total.unwrap_or(rows.len() as u64);
    rows.truncate(limit as usize);
    Ok((rows, total))
}

/// The filters of unlocks, with all names resolved.
pub(in crate::http) struct UnlockFilter<'a> {
    tokens: Vec<TokenId>,
    groups: Vec<String>,
    rules: Vec<&'a Rule>,
    min_value: Option<f64>,
}

impl<'a> UnlockFilter<'a> {
    /// Resolves the names of groups and rules in a query. `tokens` are already resolved.
    ///
    /// # Errors
    ///
    /// Fails with status 404 if a group or rule is unknown.
    pub(in crate::http) fn resolve(query: &ListQuery, tokens: Vec<TokenId>, live: &'a LiveConfig) -> Result<Self, WebError> {
        let groups = groups(query, live)?;
        let names = query.items(RULES, |word| Some(word.to_owned()))?;
        check_name_count(names.len())?;
        let mut rules = Vec::new();
        for name in &names {
            let found = rules_named(&live.active, name)?;
            if let Some(other) = found.iter().find(|rule| rule.on != On::Record(Resource::Unlock)) {
                return Err(WebError::bad_request(format!("the rule {:?} does not have `on = \"unlock\"`", other.name)));
            }
            rules.extend(found);
        }
        Ok(Self { tokens, groups, rules, min_value: query.number(MIN_VALUE) })
    }

    /// Returns `true` if the database cannot apply all filters: it has no columns for groups, rules, and values.
    fn is_partly_in_memory(&self) -> bool {
        self.min_value.is_some() || !self.groups.is_empty() || !self.rules.is_empty()
    }

    /// Returns the filter for the database. It selects all rows if some filters apply in memory.
    pub(in crate::http) fn rows(&self, until: Option<Timestamp>, limit: u32, now: Timestamp) -> UpcomingFilter {
        UpcomingFilter {
            tokens: (!self.tokens.is_empty()).then(|| self.tokens.clone()),
            from: now,
            until,
            limit: if self.is_partly_in_memory() { MAX_ROWS } else { limit },
        }
    }

    /// Returns `true` if an unlock matches all filters. `row.token` must include its groups.
    pub(in crate::http) fn matches(&self, row: &UpcomingRow, now: Timestamp) -> bool {
        let value = self.min_value.is_none_or(|min| cliff_value(row).is_some_and(|value| value >= min));
        let group = self.groups.is_empty() || row.token.groups.iter().any(|group| self.groups.contains(group));
        value && group && (self.rules.is_empty() || self.rules.iter().any(|rule| rule_matches(rule, row, now)))
    }
}

/// Parses a comma-separated list of tokens. Fails with status 404 if one is unknown.
pub(in crate::http) async fn tokens(deps: &HttpDeps, query: &ListQuery) -> Result<Vec<TokenId>, WebError> {
    let tokens = query.items(TOKENS, |word| Some(TokenId::from(word)))?;
    check_name_count(tokens.len())?;
    if tokens.is_empty() {
        return Ok(tokens);
    }
    let known = deps.app.store.known_tokens(tokens.clone()).await?;
    match tokens.iter().find(|token| !known.contains(token)) {
        Some(unknown) => Err(WebError::not_found("Not found", format!("no token has the slug {:?}", unknown.as_str()))),
        None => Ok(tokens),
    }
}

/// Parses a comma-separated list of groups. Fails with status 404 if one is unknown.
pub(in crate::http) fn groups(query: &ListQuery, live: &LiveConfig) -> Result<Vec<String>, WebError> {
    let groups = query.items(GROUP, |word| Some(word.trim_start_matches('@').to_owned()))?;
    check_name_count(groups.len())?;
    match groups.iter().find(|group| !live.watch.has_group(group)) {
        Some(unknown) => Err(WebError::not_found("Not found", format!("[watch.groups] has no group {unknown:?}"))),
        None => Ok(groups),
    }
}

fn check_name_count(names: usize) -> Result<(), WebError> {
    if names > MAX_NAMES {
        return Err(WebError::bad_request(format!("too many names: at most {MAX_NAMES} are allowed")));
    }
    Ok(())
}

fn cliff_value(row: &UpcomingRow) -> Option<f64> {
    match &row.tracked.record {
        Record::Unlock(event) => event.cliff_value(),
        _ => None,
    }
}

/// Returns the rules with this name or id. Fails with status 404 if no active rule matches.
pub(in crate::http) fn rules_named<'a>(active: &'a ActiveRules, name: &str) -> Result<Vec<&'a Rule>, WebError> {
    let all = &active.rules.rules;
    let found: Vec<&Rule> = all.iter().filter(|rule| rule.name == name || rule.id.as_str() == name).collect();
    if found.is_empty() {
        let near = closest(name, all.iter().map(|rule| rule.name.as_str())).map(|near| format!("; did you mean {near:?}?"));
        return Err(WebError::not_found("Not found", format!("no active rule is named {name:?}{}", near.unwrap_or_default())));
    }
    Ok(found)
}

/// Returns `true` if the condition of a rule is true for an unlock. Ignores lead times.
fn rule_matches(rule: &Rule, row: &UpcomingRow, now: Timestamp) -> bool {
    let scope = Scope { token: Some(&row.token), record: Some(&row.tracked), ..Scope::at(now) };
    rule.covers(&scope) && rule.evaluate(&scope) == Truth::True
}

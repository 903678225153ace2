//! Unlocks ahead as JSON, and the filters by which calendars are asked for too.

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;

use super::part::ListPart;
use super::query::{ListParameters, ListQuery, MAX_ROWS, list_query, span, words};
use super::{HttpDeps, HttpError};
use crate::cycle::ActiveRules;
use crate::live::LiveConfig;
use crate::ui::view::UnlockView;
use model::{Record, Resource, Timestamp, TokenId, UpcomingFilter, UpcomingRow, closest};
use rules::{On, Rule, Scope, Truth};

/// Most tokens, groups and rules that one request may name.
const MAX_NAMES: usize = 1000;
const FILTERS: &[&str] = &["token", "group", "rule", "within", "min_value"];

pub(super) async fn list(State(deps): State<HttpDeps>, uri: Uri, parameters: ListParameters) -> Result<Response, HttpError> {
    let query = list_query(parameters)?;
    let now = deps.clock.now();
    let from: u32 = query.after(|text| text.parse().ok())?.unwrap_or(0);
    let wanted = from.saturating_add(query.limit()).saturating_add(1).min(MAX_ROWS);
    let (rows, total) = select(&deps, &query, wanted, now).await?;
    let views: Vec<UnlockView> = rows.iter().filter_map(|row| UnlockView::of(row, now)).collect();
    let part = ListPart::from_whole(views, usize::try_from(from).unwrap_or(usize::MAX), query.limit());
    Ok(ListPart { total: total.max(part.total), ..part }.answer(&query, &uri))
}

/// The unlocks that pass the filters, the nearest first, at most `limit`, and how many pass.
async fn select(deps: &HttpDeps, query: &ListQuery, limit: u32, now: Timestamp) -> Result<(Vec<UpcomingRow>, u64), HttpError> {
    query.only(FILTERS)?;
    let live = deps.live.load_full();
    let wanted = UnlockWords { group: query.group.as_deref(), rule: query.rule.as_deref(), min_value: query.min_value };
    // A list of what is known: of a token that was never seen it is empty.
    let tokens = words("token", query.token.as_deref(), |word| Some(TokenId::from(word)))?;
    few(tokens.len())?;
    let filter = UnlockFilter::of(tokens, &live, wanted)?;
    let until = span("within", query.within.as_deref())?.and_then(|span| now.checked_add_signed(span));
    let asked = filter.rows(until, limit, now);
    let (rows, total) = match filter.is_filtered_here() {
        true => (deps.store.upcoming(asked).await?, None),
        false => {
            let (rows, total) = tokio::try_join!(deps.store.upcoming(asked.clone()), deps.store.upcoming_total(asked))?;
            (rows, Some(total))
        }
    };
    let rows = rows.into_iter().map(|row| UpcomingRow { token: live.watch.placed(row.token), ..row });
    let mut rows: Vec<UpcomingRow> = rows.filter(|row| filter.lets_in(row, now)).collect();
    let total = total.unwrap_or(rows.len() as u64);
    rows.truncate(limit as usize);
    Ok((rows, total))
}

/// Which unlocks are asked for beside those of certain tokens, as a request says it.
#[derive(Clone, Copy, Default)]
pub(super) struct UnlockWords<'a> {
    pub(super) group: Option<&'a str>,
    pub(super) rule: Option<&'a str>,
    pub(super) min_value: Option<f64>,
}

/// Which unlocks are asked for: each name is known.
pub(super) struct UnlockFilter<'a> {
    tokens: Vec<TokenId>,
    groups: Vec<String>,
    rules: Vec<&'a Rule>,
    min_value: Option<f64>,
}

impl<'a> UnlockFilter<'a> {
    /// Fails with 404 where a group or rule is not known.
    pub(super) fn of(tokens: Vec<TokenId>, live: &'a LiveConfig, wanted: UnlockWords<'_>) -> Result<Self, HttpError> {
        let groups = groups(live, wanted.group)?;
        let names = words("rule", wanted.rule, |word| Some(word.to_owned()))?;
        few(names.len())?;
        let mut rules = Vec::new();
        for name in &names {
            let found = named(&live.active, name)?;
            if let Some(other) = found.iter().find(|rule| rule.on != On::Record(Resource::Unlock)) {
                return Err(HttpError::Bad(format!("the rule {:?} is not on unlocks", other.name)));
            }
            rules.extend(found);
        }
        Ok(Self { tokens, groups, rules, min_value: wanted.min_value })
    }

    fn is_filtered_here(&self) -> bool {
        self.min_value.is_some() || !self.groups.is_empty() || !self.rules.is_empty()
    }

    /// What is read. Groups, rules and values are no columns, so that is filtered here: as many rows are read as may be needed.
    pub(super) fn rows(&self, until: Option<Timestamp>, limit: u32, now: Timestamp) -> UpcomingFilter {
        UpcomingFilter {
            tokens: (!self.tokens.is_empty()).then(|| self.tokens.clone()),
            from: now,
            until,
            limit: if self.is_filtered_here() { MAX_ROWS } else { limit },
        }
    }

    /// Whether it is asked for; the token has its groups.
    pub(super) fn lets_in(&self, row: &UpcomingRow, now: Timestamp) -> bool {
        let value = self.min_value.is_none_or(|least| value_of(row).is_some_and(|value| value >= least));
        let group = self.groups.is_empty() || row.token.groups.iter().any(|group| self.groups.contains(group));
        value && group && (self.rules.is_empty() || self.rules.iter().any(|rule| holds(rule, row, now)))
    }
}

/// The tokens of a comma-separated parameter. Fails with 404 where one is not known.
pub(super) async fn tokens(deps: &HttpDeps, text: Option<&str>) -> Result<Vec<TokenId>, HttpError> {
    let tokens = words("token", text, |word| Some(TokenId::from(word)))?;
    few(tokens.len())?;
    if tokens.is_empty() {
        return Ok(tokens);
    }
    let known = deps.store.known_tokens(tokens.clone()).await?;
    match tokens.iter().find(|token| !known.contains(token)) {
        Some(unknown) => Err(HttpError::NotFound(format!("no token is known under the slug {:?}", unknown.as_str()))),
        None => Ok(tokens),
    }
}

/// The groups of a comma-separated parameter. Fails with 404 where one is not known.
pub(super) fn groups(live: &LiveConfig, text: Option<&str>) -> Result<Vec<String>, HttpError> {
    let groups = words("group", text, |word| Some(word.trim_start_matches('@').to_owned()))?;
    few(groups.len())?;
    match groups.iter().find(|group| !live.watch.has_group(group)) {
        Some(unknown) => Err(HttpError::NotFound(format!("there is no group {unknown:?} in [watch.groups]"))),
        None => Ok(groups),
    }
}

fn few(names: usize) -> Result<(), HttpError> {
    if names > MAX_NAMES {
        return Err(HttpError::Bad(format!("at most {MAX_NAMES} names can be given")));
    }
    Ok(())
}

fn value_of(row: &UpcomingRow) -> Option<f64> {
    match &row.tracked.record {
        Record::Unlock(event) => event.cliff_value(),
        _ => None,
    }
}

/// The rules of that name, or the one with that id.
pub(super) fn named<'a>(active: &'a ActiveRules, name: &str) -> Result<Vec<&'a Rule>, HttpError> {
    let all = &active.rules.rules;
    let found: Vec<&Rule> = all.iter().filter(|rule| rule.name == name || rule.id.as_str() == name).collect();
    if found.is_empty() {
        let near = closest(name, all.iter().map(|rule| rule.name.as_str())).map(|near| format!("; did you mean {near:?}?"));
        return Err(HttpError::NotFound(format!("there is no rule {name:?}{}", near.unwrap_or_default())));
    }
    Ok(found)
}

/// Whether the rule would tell of this unlock, as it stands, once it is near enough: its lead times do not count.
fn holds(rule: &Rule, row: &UpcomingRow, now: Timestamp) -> bool {
    let scope =
        Scope { token: Some(&row.token), record: Some(&row.tracked), change: None, source: None, totals: None, lead: None, now };
    rule.covers(&scope) && rule.holds(&scope) == Truth::True
}

//! `/api/upcoming`: upcoming unlocks as JSON, and the filters that calendars use too.

use std::collections::{BTreeSet, HashMap};

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use chrono::{SubsecRound as _, TimeDelta};

use super::operations::UPCOMING;
use crate::http::HttpDeps;
use crate::http::error::WebError;
use crate::http::list_page::ListPage;
use crate::http::parameters::{GROUP, MIN_VALUE, RULES, TOKENS, UNLOCK_TYPE, WITHIN};
use crate::http::query::{ListQuery, MAX_ROWS};
use daemon::cycle::ActiveRules;
use daemon::live::LiveConfig;
use daemon::view::ListedUnlockView;
use engine::pipeline::ScheduleFeed;
use model::{
    LinearCalendarRow, LinearEnd, LinearSupply, Listed, ListedUnlock, Resource, SumWindow, Timestamp, Token, TokenId, Tracked,
    UnlockKind, UnlockListFilter, UpcomingFilter, closest,
};
use rules::{On, Rule, ScheduleScope, Scope, Truth};
use store::StoreError;

/// The maximum number of tokens, groups, or rules in one request.
const MAX_NAMES: usize = 1000;

/// The number of tokens whose schedules are read at once.
const SCHEDULES_AT_ONCE: usize = 256;

/// The age up to which the start of a page walk is honored.
const MAX_WALK: TimeDelta = TimeDelta::hours(1);

/// The position of a page. All pages of a walk list the unlocks from the same instant, so that passing time does not shift them.
#[derive(Clone, Copy, Debug)]
struct PageStart {
    offset: u32,
    /// The instant of the first page. `None` on the first page.
    from: Option<Timestamp>,
}

impl PageStart {
    /// Parses the form that [`Self::text`] writes, or a bare offset.
    fn parse(text: &str) -> Option<Self> {
        let (offset, from) = match text.split_once('@') {
            Some((offset, from)) => (offset, Some(Timestamp::from_timestamp_millis(from.parse().ok()?)?)),
            None => (text, None),
        };
        Some(Self { offset: offset.parse().ok()?, from })
    }

    fn text(offset: u32, from: Timestamp) -> String {
        format!("{offset}@{}", from.timestamp_millis())
    }
}

pub(in crate::http) async fn list(State(deps): State<HttpDeps>, uri: Uri) -> Result<Response, WebError> {
    let query = UPCOMING.query(&uri)?;
    let now = deps.app.clock.now();
    let start = query.cursor(PageStart::parse)?.unwrap_or(PageStart { offset: 0, from: None });
    let is_recent = |from: &Timestamp| *from <= now && now - *from <= MAX_WALK;
    // Stored times have whole milliseconds, and so has the cursor.
    let from = start.from.filter(is_recent).unwrap_or(now).trunc_subsecs(3);
    let (listed, window) = select(&deps, &query, start.offset, from).await?;
    let views: Vec<ListedUnlockView> = listed.rows.iter().filter_map(|row| ListedUnlockView::of(row, window, now)).collect();
    let end = start.offset.saturating_add(u32::try_from(listed.rows.len()).unwrap_or(u32::MAX));
    let next = (u64::from(end) < listed.total && !listed.rows.is_empty()).then(|| PageStart::text(end, from));
    Ok(ListPage { rows: views, total: listed.total, next }.response(&query, &uri))
}

/// Returns a page of the matching unlocks, nearest first, and their window.
async fn select(
    deps: &HttpDeps,
    query: &ListQuery,
    offset: u32,
    from: Timestamp,
) -> Result<(Listed<ListedUnlock>, SumWindow), WebError> {
    let live = deps.app.live.load_full();
    // Unlike calendars, the list accepts unknown tokens and is empty for them.
    let tokens = query.items(TOKENS, |word| Some(TokenId::from(word)))?;
    check_name_count(tokens.len())?;
    let filter = UnlockFilter::resolve(deps, query, tokens, &live).await?;
    let until = query.duration(WITHIN)?.and_then(|span| from.checked_add_signed(span));
    let kind = query.items(UNLOCK_TYPE, UnlockKind::parse)?;
    let kind = kind.first().copied().filter(|first| kind.iter().all(|kind| kind == first));
    let stored = UnlockListFilter { unlocks: filter.rows(until, query.limit(), from), kind, min_value: filter.min_value, offset };
    let window = stored.unlocks.window();
    let place = |mut row: ListedUnlock| {
        row.token_mut().groups = live.watch.groups_of(&row.token().id);
        row
    };
    if filter.rules.is_empty() {
        let Listed { rows, total } = deps.app.store.upcoming(stored).await?;
        return Ok((Listed { rows: rows.into_iter().map(place).collect(), total }, window));
    }
    // The database cannot evaluate rules. Each type is read separately, so that neither uses up the row limit of the other.
    let mut found: Vec<ListedUnlock> = Vec::new();
    for kind in UnlockKind::ALL.into_iter().filter(|of| kind.is_none_or(|kind| kind == *of)) {
        let all = UnlockListFilter { kind: Some(kind), offset: 0, ..stored.clone() };
        let listed = deps.app.store.upcoming(all).await?;
        found.extend(listed.rows.into_iter().map(place));
    }
    let schedules = filter.schedules(deps, found.iter().map(|row| &row.token().id)).await?;
    let is_matching = |row: &ListedUnlock| filter.matches_rules(row.token(), row.event(), &schedules, from);
    let mut matching: Vec<ListedUnlock> = found.into_iter().filter(is_matching).collect();
    // A stable sort: at one instant, cliff unlocks stay first.
    matching.sort_by_key(|row| row.sort_at(window));
    let total = matching.len() as u64;
    let limit = usize::try_from(query.limit()).unwrap_or(usize::MAX);
    let rows = matching.into_iter().skip(usize::try_from(offset).unwrap_or(usize::MAX)).take(limit).collect();
    Ok((Listed { rows, total }, window))
}

/// The filters of unlocks, with all names resolved.
pub(in crate::http) struct UnlockFilter<'a> {
    /// `None` selects all tokens.
    tokens: Option<Vec<TokenId>>,
    rules: Vec<&'a Rule>,
    min_value: Option<f64>,
}

impl<'a> UnlockFilter<'a> {
    /// Resolves the names of groups and rules in a query. `tokens` are already resolved.
    ///
    /// # Errors
    ///
    /// Fails with status 404 if a group or rule is unknown.
    pub(in crate::http) async fn resolve(
        deps: &HttpDeps,
        query: &ListQuery,
        tokens: Vec<TokenId>,
        live: &'a LiveConfig,
    ) -> Result<Self, WebError> {
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
        let tokens = match (tokens.is_empty(), groups.is_empty()) {
            (true, true) => None,
            (false, true) => Some(tokens),
            (_, false) => {
                let all = if tokens.is_empty() { deps.app.store.token_ids(false).await? } else { tokens };
                let is_member = |id: &TokenId| live.watch.groups_of(id).iter().any(|group| groups.contains(group));
                Some(all.into_iter().filter(is_member).collect())
            }
        };
        Ok(Self { tokens, rules, min_value: query.number(MIN_VALUE) })
    }

    /// Returns the filter for the database. It selects all rows if some filters apply in memory.
    pub(in crate::http) fn rows(&self, until: Option<Timestamp>, limit: u32, from: Timestamp) -> UpcomingFilter {
        let limit = if self.rules.is_empty() { limit } else { MAX_ROWS };
        UpcomingFilter { tokens: self.tokens.clone(), from, until, limit }
    }

    /// Returns `true` if an unlock is large enough. `value` is in USD.
    pub(in crate::http) fn is_large_enough(&self, value: Option<f64>) -> bool {
        self.min_value.is_none_or(|min| value.is_some_and(|value| value >= min))
    }

    /// Reads what the selected rules need about the schedules of tokens besides the event of an unlock.
    pub(in crate::http) async fn schedules<'t>(
        &self,
        deps: &HttpDeps,
        tokens: impl Iterator<Item = &'t TokenId>,
    ) -> Result<Schedules, StoreError> {
        let mut known = HashMap::new();
        if self.rules.iter().any(|rule| rule.reads_rate_step()) {
            let tokens: Vec<TokenId> = tokens.cloned().collect::<BTreeSet<_>>().into_iter().collect();
            for ids in tokens.chunks(SCHEDULES_AT_ONCE) {
                for snapshot in deps.app.store.tokens(ids.to_vec(), vec![Resource::Unlock]).await? {
                    let linear = ScheduleFeed::of(&snapshot).map(|feed| feed.linear());
                    known.insert(snapshot.token.id, (snapshot.records, linear));
                }
            }
        }
        Ok(Schedules(known))
    }

    /// Returns `true` if the condition of a rule is true for the event of an unlock, or if no rule is selected. The token must include its
    /// groups.
    pub(in crate::http) fn matches_rules(
        &self,
        token: &Token,
        event: Option<&Tracked>,
        schedules: &Schedules,
        now: Timestamp,
    ) -> bool {
        let matches = |event| self.rules.iter().any(|rule| rule_matches(rule, token, event, schedules.of(&token.id), now));
        self.rules.is_empty() || event.is_some_and(matches)
    }

    /// Like [`Self::matches_rules`], for a date of linear unlocks. A rule that reads the change of the daily release is evaluated for what
    /// happens on this date; another one for the event that causes it.
    pub(in crate::http) fn matches_date(&self, row: &LinearCalendarRow, schedules: &Schedules, now: Timestamp) -> bool {
        let schedule = schedules.of(&row.token.id);
        let is_on_date =
            |tracked: &&Tracked| tracked.record.unlock().is_some_and(|event| event.unlock_date.copied() == Some(row.at));
        let matches = |rule: &&Rule| {
            if !rule.reads_rate_step() {
                return row.event.as_ref().is_some_and(|event| rule_matches(rule, &row.token, event, schedule, now));
            }
            let ends = LinearEnd::all(schedule.records, row.at - TimeDelta::milliseconds(1));
            let events = schedule.records.iter().chain(ends.iter().map(|end| &end.tracked)).filter(is_on_date);
            events.into_iter().any(|event| rule_matches(rule, &row.token, event, schedule, now))
        };
        self.rules.is_empty() || self.rules.iter().any(matches)
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

/// The records of tokens and their linear supply, for rules on the change of the daily release. Empty if no rule needs them.
#[derive(Debug, Default)]
pub(in crate::http) struct Schedules(HashMap<TokenId, (Vec<Tracked>, Option<LinearSupply>)>);

impl Schedules {
    fn of(&self, token: &TokenId) -> ScheduleScope<'_> {
        let known = self.0.get(token);
        known.map_or_else(ScheduleScope::default, |(records, linear)| ScheduleScope { records, linear: linear.as_ref() })
    }
}

/// Returns `true` if the condition of a rule is true for an unlock. Ignores lead times.
fn rule_matches(rule: &Rule, token: &Token, event: &Tracked, schedule: ScheduleScope<'_>, now: Timestamp) -> bool {
    let scope = Scope { token: Some(token), record: Some(event), schedule, ..Scope::at(now) };
    rule.covers(&scope) && rule.evaluate(&scope) == Truth::True
}

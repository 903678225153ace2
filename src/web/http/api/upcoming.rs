//! `/api/v1/upcoming`: upcoming unlocks as JSON, and the filters that calendars use too.

use std::sync::Arc;

use axum::extract::Extension;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DurationRound as _, TimeDelta};
use serde::{Deserialize, Serialize};

use super::operations::UPCOMING;
use crate::http::HttpDeps;
use crate::http::access::Visitor;
use crate::http::cursor;
use crate::http::error::WebError;
use crate::http::group::SelectedGroups;
use crate::http::list_page::ListPage;
use crate::http::names;
use crate::http::parameters::{MAX_ROWS, MIN_VALUE, RULES, UNLOCK_TYPE, WITHIN};
use crate::http::query::ListQuery;
use crate::http::request_limits::ReadDeps;
use crate::http::time_range::after;
use daemon::cycle::ActiveRules;
use daemon::live::LiveConfig;
use daemon::view::ListedUnlockView;
use engine::pipeline::ScheduleFeed;
use model::corrections::{CorrectionsByToken, PastCorrection};
use model::{
    LinearCalendarRow, LinearEnd, LinearSupply, Listed, ListedUnlock, Resource, SumWindow, Timestamp, Token, TokenId,
    TokenSnapshot, Tracked, UnlockCursor, UnlockKind, UnlockListFilter, UpcomingFilter,
};
use rules::{CorrectionScope, On, Rule, ScheduleScope, Scope, Truth};

/// The longest time of a walk through all pages.
const MAX_WALK: TimeDelta = TimeDelta::hours(24);

/// The cursor of a page. All pages of a walk list the unlocks from the same instant, so that passing time does not shift them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct UpcomingCursor {
    /// The instant of the first page, in milliseconds since 1970.
    from: i64,
    after: UnlockCursor,
}

impl UpcomingCursor {
    /// Returns the instant of the first page.
    ///
    /// # Errors
    ///
    /// Fails if the walk began too long ago.
    fn from(&self, now: Timestamp) -> Result<Timestamp, WebError> {
        let from = Timestamp::from_timestamp_millis(self.from).filter(|from| *from <= now && now - *from <= MAX_WALK);
        from.ok_or_else(|| {
            let hours = MAX_WALK.num_hours();
            let message = format!("after: the first page of this cursor is older than {hours} h: begin again without `after`");
            WebError::invalid_parameter(message)
        })
    }
}

/// Returns the start of the minute. The list changes once a minute at most without news, so that an `ETag` holds.
fn minute_of(now: Timestamp) -> Timestamp {
    now.duration_trunc(TimeDelta::minutes(1)).unwrap_or(now)
}

pub(in crate::http) async fn list(
    ReadDeps(deps): ReadDeps,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> Result<Response, WebError> {
    let query = UPCOMING.query(&uri)?;
    let now = deps.app.clock.now();
    let cursor = query.cursor(cursor::parse::<UpcomingCursor>)?;
    let from = cursor.as_ref().map_or(Ok(minute_of(now)), |cursor| cursor.from(now))?;
    let limit = query.limit();
    let (listed, window) = select(&deps, &query, cursor.map(|cursor| cursor.after), limit + 1, from).await?;
    let last = |row: &ListedUnlock| {
        let after = row.cursor(window);
        after.map(|after| cursor::text(&UpcomingCursor { from: from.timestamp_millis(), after })).unwrap_or_default()
    };
    let ListPage { mut rows, total, next, .. } = ListPage::of(listed, limit, last);
    if !visitor.sees_positions {
        rows.iter_mut().for_each(|row| row.token_mut().position = None);
    }
    let rows: Vec<ListedUnlockView> = rows.iter().filter_map(|row| ListedUnlockView::of(row, window, from)).collect();
    Ok(ListPage { rows, total, next, previous: None }.response(&query, &uri))
}

/// Returns a page of the matching unlocks, nearest first, and their window.
async fn select(
    deps: &HttpDeps,
    query: &ListQuery,
    after_unlock: Option<UnlockCursor>,
    limit: u32,
    from: Timestamp,
) -> Result<(Listed<ListedUnlock>, SumWindow), WebError> {
    let live = deps.app.live.load_full();
    let tokens = names::tokens(deps, query).await?;
    let filter = UnlockFilter::resolve(deps, query, tokens, &live).await?;
    let until = query.duration(WITHIN)?.map(|span| after(from, span)).transpose()?;
    let kind = query.items(UNLOCK_TYPE, UnlockKind::parse)?;
    let kind = kind.first().copied().filter(|first| kind.iter().all(|kind| kind == first));
    let stored = filter.unlocks(until, limit, from);
    let window = stored.unlocks.window();
    let stored = UnlockListFilter { kind, after: after_unlock, ..stored };
    if filter.rules.is_empty() {
        let mut listed = deps.app.store.upcoming(stored).await?;
        for row in &mut listed.rows {
            live.watch.place(row.token_mut());
        }
        return Ok((listed, window));
    }
    // The database cannot evaluate rules.
    let reads_schedules = filter.reads_schedules();
    let select = move |row: &mut ListedUnlock, schedule: Option<&TokenSnapshot>| {
        live.watch.place(row.token_mut());
        filter.matches_rules(row.token(), row.event(), schedule, from)
    };
    Ok((deps.app.store.select_upcoming(stored, MAX_ROWS as usize, reads_schedules, select).await?, window))
}

/// The filters of unlocks, with all names resolved.
#[derive(Clone)]
pub(in crate::http) struct UnlockFilter {
    /// `None` selects all tokens.
    tokens: Option<Vec<TokenId>>,
    rules: SelectedRules,
    /// The corrections that the rules count.
    corrections: CorrectionsByToken,
    min_value: Option<f64>,
}

/// Some of the active rules.
#[derive(Clone)]
pub(in crate::http) struct SelectedRules {
    active: Arc<ActiveRules>,
    /// The positions of the selected rules in the rule set.
    positions: Vec<usize>,
}

impl SelectedRules {
    /// Selects rules by name or id.
    ///
    /// # Errors
    ///
    /// Fails with status 404 if no active rule has a name.
    pub(in crate::http) fn named(live: &LiveConfig, names: &[String]) -> Result<Self, WebError> {
        names::check_count(names.len())?;
        let mut positions = Vec::new();
        for name in names {
            positions.extend(rules_named(live, name)?);
        }
        Ok(Self { active: live.active.clone(), positions })
    }

    pub(in crate::http) fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    pub(in crate::http) fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.positions.iter().filter_map(|at| self.active.rules.rules.get(*at))
    }
}

impl UnlockFilter {
    /// Resolves the names of groups and rules in a query. `tokens` are already resolved.
    ///
    /// # Errors
    ///
    /// Fails with status 404 if a group or rule is unknown.
    pub(in crate::http) async fn resolve(
        deps: &HttpDeps,
        query: &ListQuery,
        tokens: Vec<TokenId>,
        live: &LiveConfig,
    ) -> Result<Self, WebError> {
        let groups = SelectedGroups::of(query, live)?;
        let names = query.items(RULES, |word| Some(word.to_owned()))?;
        let rules = SelectedRules::named(live, &names)?;
        if let Some(other) = rules.iter().find(|rule| rule.on != On::Record(Resource::Unlock)) {
            return Err(WebError::invalid_parameter(format!("the rule {:?} does not have `on = \"unlock\"`", other.name)));
        }
        let tokens = groups.narrow(deps, tokens).await?;
        let corrections = corrections(deps, &rules).await?;
        Ok(Self { tokens, rules, corrections, min_value: query.number(MIN_VALUE) })
    }

    /// Returns the filter for the database, without the rules, which it cannot evaluate.
    pub(in crate::http) fn unlocks(&self, until: Option<Timestamp>, limit: u32, from: Timestamp) -> UnlockListFilter {
        let unlocks = UpcomingFilter { tokens: self.tokens.clone(), from, until, limit };
        UnlockListFilter { unlocks, kind: None, min_value: self.min_value, after: None }
    }

    pub(in crate::http) fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Returns `true` if an unlock is large enough. `value` is in USD.
    pub(in crate::http) fn is_large_enough(&self, value: Option<f64>) -> bool {
        self.min_value.is_none_or(|min| value.is_some_and(|value| value >= min))
    }

    /// Returns whether the rules need the schedules of tokens besides the event of an unlock.
    pub(in crate::http) fn reads_schedules(&self) -> bool {
        self.rules.iter().any(Rule::reads_rate_step)
    }

    /// Returns `true` if the condition of a rule is true for the event of an unlock, or if no rule is selected. The token must include its
    /// groups. `snapshot` has the schedule of the token if [`Self::reads_schedules`].
    pub(in crate::http) fn matches_rules(
        &self,
        token: &Token,
        event: Option<&Tracked>,
        snapshot: Option<&TokenSnapshot>,
        now: Timestamp,
    ) -> bool {
        let schedule = RuleSchedule::of(snapshot, self.corrections.get(&token.id));
        let matches = |event| self.rules.iter().any(|rule| rule_matches(rule, token, event, schedule.scope(), now));
        self.rules.is_empty() || event.is_some_and(matches)
    }

    /// Like [`Self::matches_rules`], for a date of linear unlocks. A rule that reads the change of the daily release is evaluated for what
    /// happens on this date; another one for the event that causes it.
    pub(in crate::http) fn matches_date(
        &self,
        row: &LinearCalendarRow,
        snapshot: Option<&TokenSnapshot>,
        now: Timestamp,
    ) -> bool {
        let schedule = RuleSchedule::of(snapshot, self.corrections.get(&row.token.id));
        let scope = schedule.scope();
        let is_on_date =
            |tracked: &&Tracked| tracked.record.unlock().is_some_and(|event| event.unlock_date.copied() == Some(row.at));
        let matches = |rule: &Rule| {
            if !rule.reads_rate_step() {
                return row.event.as_ref().is_some_and(|event| rule_matches(rule, &row.token, event, scope, now));
            }
            let ends = LinearEnd::all(scope.records, row.at - TimeDelta::milliseconds(1));
            let events = scope.records.iter().chain(ends.iter().map(|end| &end.tracked)).filter(is_on_date);
            events.into_iter().any(|event| rule_matches(rule, &row.token, event, scope, now))
        };
        self.rules.is_empty() || self.rules.iter().any(matches)
    }
}

/// Returns the corrections that rules count, of all tokens. Empty if they count none.
async fn corrections(deps: &HttpDeps, rules: &SelectedRules) -> Result<CorrectionsByToken, WebError> {
    let Some(longest) = rules.iter().flat_map(Rule::correction_spans).max() else { return Ok(CorrectionsByToken::new()) };
    let now = deps.app.clock.now();
    let since = now.checked_sub_signed(*longest).unwrap_or(Timestamp::MIN_UTC);
    let corrected = deps.app.store.tokens_with_corrections(vec![(since, now)]).await?;
    Ok(deps.app.store.corrections(corrected, since).await?)
}

/// The records of a token and its linear supply, for rules on the change of the daily release. Empty if no rule needs them.
#[derive(Debug)]
struct RuleSchedule<'a> {
    records: &'a [Tracked],
    linear: Option<LinearSupply>,
    corrections: &'a [PastCorrection],
}

impl<'a> RuleSchedule<'a> {
    fn of(snapshot: Option<&'a TokenSnapshot>, corrections: Option<&'a Vec<PastCorrection>>) -> Self {
        Self {
            records: snapshot.map_or(&[], |snapshot| &snapshot.records),
            linear: snapshot.and_then(ScheduleFeed::of).map(|feed| feed.linear()),
            corrections: corrections.map_or(&[], Vec::as_slice),
        }
    }

    fn scope(&self) -> ScheduleScope<'_> {
        let corrections = CorrectionScope { earlier: self.corrections, current: &[] };
        ScheduleScope { records: self.records, linear: self.linear.as_ref(), corrections: Some(corrections) }
    }
}

/// Returns the positions of the rules with this name or id. Fails with status 404 if no active rule matches.
fn rules_named(live: &LiveConfig, name: &str) -> Result<Vec<usize>, WebError> {
    let all = &live.active.rules.rules;
    let is_named = |(_, rule): &(usize, &Rule)| rule.name == name || rule.id.as_str() == name;
    let found: Vec<usize> = all.iter().enumerate().filter(is_named).map(|(at, _)| at).collect();
    if found.is_empty() {
        return Err(names::unknown_rule(live, name));
    }
    Ok(found)
}

/// Returns `true` if the condition of a rule is true for an unlock. Ignores lead times.
fn rule_matches(rule: &Rule, token: &Token, event: &Tracked, schedule: ScheduleScope<'_>, now: Timestamp) -> bool {
    let scope = Scope { token: Some(token), record: Some(event), schedule, ..Scope::at(now) };
    rule.covers(&scope) && rule.evaluate(&scope) == Truth::True
}

//! What an explanation is about: the cases that a rule has in what people point at.

use std::{borrow::Cow, cmp::Reverse, sync::Arc};

use super::{Explanation, answer::nothing};
use crate::evaluate::record_of;
use model::{
    Alert, AlertState, Change, ChangeRow, Endpoint, FeedState, Record, Resource, Timestamp, Token, TokenId, TokenSnapshot,
    Tracked, format, wire,
};
use rules::aggregate::{AggregateCache, Totals};
use rules::{On, Pool, Rule, SourceFacts};

/// Cases of one rule and token that are explained at once.
pub const MAX_CASES: usize = 20;
/// Incidents that are looked at: those that last, and the latest that are over.
const MAX_INCIDENTS: usize = 5;

/// What people point at.
#[derive(Clone, Debug, Default)]
pub struct ExplainTarget {
    /// A token; none for a group.
    pub token: Option<TokenId>,
    /// Records of this kind alone.
    pub resource: Option<Resource>,
    /// The record with this key.
    pub key: Option<String>,
    /// What happens on this day.
    pub day: Option<Timestamp>,
    /// The alert named by its id.
    pub alert: Option<Alert>,
    /// A group of `[watch.groups]`.
    pub group: Option<String>,
}

impl ExplainTarget {
    /// Whether a rule could say anything of it.
    pub fn is_heard_by(&self, rule: &Rule) -> bool {
        match (rule.on, self.resource) {
            (On::Record(own) | On::Change(own, _), Some(wanted)) => own == wanted,
            (On::Record(_) | On::Change(..) | On::Token, None) => self.token.is_some(),
            (On::Portfolio, None) => true,
            _ => false,
        }
    }

    /// The records that it means: the one that is named; else the next ahead, or the latest that happened.
    fn records<'a>(&self, snapshot: &'a TokenSnapshot, resource: Resource, now: Timestamp) -> Vec<&'a Tracked> {
        let mut records: Vec<&Tracked> = snapshot.records_of(resource).collect();
        if let Some(key) = self.key.as_deref().filter(|_| self.resource == Some(resource)) {
            records.retain(|record| record.key.as_str() == key);
            return records;
        }
        if let Some(day) = self.day.map(|day| day.date_naive()) {
            records.retain(|record| {
                let interval = record.record.interval();
                interval.is_some_and(|interval| interval.start.date_naive() <= day && day <= interval.end.date_naive())
            });
            return records;
        }
        let start = |record: &&&Tracked| record.record.interval().map(|interval| interval.start);
        let is_ahead = |record: &&&Tracked| record.record.interval().is_some_and(|interval| !interval.has_passed(now));
        let latest = records.iter().max_by_key(start);
        let next = match resource {
            Resource::Allocation => return records,
            Resource::Unlock => records.iter().filter(is_ahead).min_by_key(start).or(latest),
            _ => latest,
        };
        next.copied().into_iter().collect()
    }

    fn means(&self, row: &ChangeRow) -> bool {
        let of_key = || self.key.as_deref().is_none_or(|key| row.key.as_ref().is_some_and(|own| own.as_str() == key));
        match &self.alert {
            Some(alert) if alert.starts_at != Some(row.at) => return false,
            None if !of_key() => return false,
            _ => {}
        }
        self.day.is_none_or(|day| row.at.date_naive() == day.date_naive() || is_dated(&row.change, day))
    }
}

/// Whether a change is about an event of this day, before or after.
fn is_dated(change: &Change, day: Timestamp) -> bool {
    let of_day = |record: &Record| record.interval().is_some_and(|interval| interval.start.date_naive() == day.date_naive());
    [&change.old, &change.new].into_iter().flatten().any(of_day)
}

/// What an explanation is about.
#[derive(Clone, Debug, Default)]
pub struct ExplainCase<'a> {
    /// About which token; none for a group and for most incidents.
    pub token: Option<&'a Token>,
    /// What is remembered of the feeds that the facts come from; empty where they were never asked.
    pub feeds: &'a [(Endpoint, FeedState)],
    /// The record; of a change, the one after it.
    pub record: Option<Cow<'a, Tracked>>,
    /// The change, with the time of the poll that brought it.
    pub change: Option<(&'a Change, Timestamp)>,
    /// What the windows of the token or of the group hold, for rules on `token` and `portfolio`.
    pub totals: Option<Arc<Totals>>,
    /// The incident, for rules on the source.
    pub source: Option<SourceFacts>,
    /// All alerts that the rule ever raised for it, in any order.
    pub alerts: Vec<&'a Alert>,
}

/// A case, or the explanation where there is nothing to look at.
#[derive(Clone, Debug)]
pub enum CaseOrNothing<'a> {
    /// Something to explain.
    Case(ExplainCase<'a>),
    /// Why there is nothing.
    Nothing(Explanation),
}

/// The feed that last read a token's records of this kind.
fn feed_of(snapshot: &TokenSnapshot, resource: Resource) -> &[(Endpoint, FeedState)] {
    let own = snapshot
        .feeds
        .iter()
        .filter(|(endpoint, _)| endpoint.resource() == Some(resource) && *endpoint != Endpoint::Upcoming)
        .max_by_key(|(_, state)| state.read_at);
    own.map_or(&[], std::slice::from_ref)
}

/// A rule on records, about those that a target means.
pub fn record_cases<'a>(
    snapshot: &'a TokenSnapshot,
    resource: Resource,
    target: &ExplainTarget,
    alerts: &[&'a Alert],
    now: Timestamp,
) -> Vec<ExplainCase<'a>> {
    let case = |record: &'a Tracked| ExplainCase {
        token: Some(&snapshot.token),
        feeds: feed_of(snapshot, resource),
        record: Some(Cow::Borrowed(record)),
        alerts: alerts.iter().copied().filter(|alert| alert.key.as_ref() == Some(&record.key)).collect(),
        ..ExplainCase::default()
    };
    target.records(snapshot, resource, now).into_iter().map(case).collect()
}

/// Records that are named where there is none of the day that was asked for.
const MAX_NEAREST: usize = 3;

/// A rule on records, where nothing is of the day that a target means, nor ever had the key that it names: what is near. An alert about
/// what stood there once says nothing of that day.
pub fn absent_record(
    rule: &Rule,
    snapshot: &TokenSnapshot,
    resource: Resource,
    target: &ExplainTarget,
    alerts: &[&Alert],
) -> Option<Explanation> {
    let had_key = |key: &str| alerts.iter().any(|alert| alert.key.as_ref().is_some_and(|own| own.as_str() == key));
    let (what, at) = match (&target.alert, &target.key, target.day) {
        (None, Some(key), _) if !had_key(key) => (key.clone(), wire::parse_timestamp(key)),
        (None, None, Some(day)) => (format::day(day), Some(day)),
        _ => return None,
    };
    let mut near: Vec<Timestamp> = snapshot.records_of(resource).filter_map(|of| Some(of.record.interval()?.start)).collect();
    near.sort_by_key(|start| (at.map(|at| (*start - at).abs()), Reverse(*start)));
    near.truncate(MAX_NEAREST);
    near.sort_unstable();
    let near: Vec<String> = near.into_iter().map(format::day).collect();
    let (id, symbol) = (&snapshot.token.id, format::name(snapshot.token.symbol()));
    let nearest = if near.is_empty() { String::new() } else { format!("; the nearest are on {}", near.join(", ")) };
    Some(nothing(rule, &symbol, &format!("there is no {resource} of {id} for {what}{nearest}")))
}

/// A rule on records, where the record that a target means is not there: what is known is its alerts.
pub fn missing_record_case<'a>(
    snapshot: &'a TokenSnapshot,
    resource: Resource,
    target: &ExplainTarget,
    alerts: &[&'a Alert],
) -> ExplainCase<'a> {
    let of_key =
        |alert: &&Alert| target.key.as_deref().is_none_or(|key| alert.key.as_ref().is_some_and(|own| own.as_str() == key));
    ExplainCase {
        token: Some(&snapshot.token),
        feeds: feed_of(snapshot, resource),
        alerts: alerts.iter().copied().filter(of_key).collect(),
        ..ExplainCase::default()
    }
}

/// A rule on changes, about one change.
pub fn change_case<'a>(snapshot: &'a TokenSnapshot, row: &'a ChangeRow, alerts: &'a [Alert]) -> ExplainCase<'a> {
    ExplainCase {
        token: Some(&snapshot.token),
        feeds: feed_of(snapshot, row.resource),
        record: record_of(&row.change).map(Cow::Owned),
        change: Some((&row.change, row.at)),
        alerts: alerts.iter().filter(|alert| alert.starts_at == Some(row.at) && alert.key == row.key).collect(),
        ..ExplainCase::default()
    }
}

/// A rule on changes, about those that a target means: the latest where it names none.
pub fn change_cases<'a>(
    snapshot: &'a TokenSnapshot,
    changes: &'a [ChangeRow],
    target: &ExplainTarget,
    alerts: &'a [Alert],
) -> Vec<ExplainCase<'a>> {
    let most = if target.day.is_some() || target.key.is_some() { MAX_CASES } else { 1 };
    changes.iter().filter(|row| target.means(row)).take(most).map(|row| change_case(snapshot, row, alerts)).collect()
}

/// A rule on a token as a whole.
pub fn token_case<'a>(snapshot: &'a TokenSnapshot, totals: &Totals, alerts: Vec<&'a Alert>) -> ExplainCase<'a> {
    ExplainCase {
        token: Some(&snapshot.token),
        feeds: &snapshot.feeds,
        totals: Some(Arc::new(totals.clone())),
        alerts,
        ..ExplainCase::default()
    }
}

/// A rule on groups: about the group that is named, those that `token` is in, or all.
pub fn group_cases<'a>(
    rule: &Rule,
    target: &ExplainTarget,
    token: Option<&Token>,
    cache: &mut AggregateCache,
    alerts: &'a [Alert],
) -> Vec<CaseOrNothing<'a>> {
    let is_meant = |pool: &Pool| match (&target.group, token, pool) {
        (Some(wanted), ..) => pool.group().unwrap_or("*") == wanted,
        (None, Some(token), Pool::Group(name)) => token.groups.contains(name),
        (None, Some(token), Pool::Watched) => rule.lets_in(token),
        (None, None, _) => true,
    };
    let mut cases = Vec::new();
    for pool in rule.pools.iter().filter(|pool| is_meant(pool)) {
        let totals = match pool {
            Pool::Group(name) => cache.group(&format!("@{name}"), Some(name), |_, _| false),
            Pool::Watched => cache.group(rule.id.as_str(), None, |id, groups| rule.lets_in_named(id, groups)),
        };
        let Some(totals) = totals else {
            let name = pool.group().map_or_else(|| "all watched tokens".to_owned(), |name| format!("the group {name}"));
            cases.push(CaseOrNothing::Nothing(nothing(rule, &name, "nothing is known of any token in it")));
            continue;
        };
        let subject = format!("portfolio/{}", pool.group().unwrap_or("*"));
        let own = alerts.iter().filter(|alert| alert.subject == subject).collect();
        cases.push(CaseOrNothing::Case(ExplainCase { totals: Some(totals), alerts: own, ..ExplainCase::default() }));
    }
    if cases.is_empty() {
        let named =
            |pool: &Pool| pool.group().map_or_else(|| "all watched tokens".to_owned(), |name| format!("the group {name}"));
        let names: Vec<String> = rule.pools.iter().map(named).collect();
        let (about, because) = match (&target.group, token) {
            (Some(group), _) => (format!("the group {group}"), format!("it looks at {} alone", names.join(", "))),
            (None, Some(token)) => {
                (format::name(token.symbol()), format!("it looks at {} alone, which the token is not in", names.join(", ")))
            }
            (None, None) => ("any group".to_owned(), "it looks at no group".to_owned()),
        };
        cases.push(CaseOrNothing::Nothing(nothing(rule, &about, &because)));
    }
    cases
}

/// The incidents that a rule on the source is asked about: those that last, then the latest that are over.
pub fn incidents(mut alerts: Vec<Alert>, target: &ExplainTarget) -> Vec<Alert> {
    alerts.retain(|alert| target.alert.as_ref().is_none_or(|wanted| wanted.id == alert.id));
    alerts.sort_by_key(|alert| (alert.state != AlertState::Firing, Reverse(alert.starts_at)));
    alerts.truncate(MAX_INCIDENTS);
    alerts
}

/// A rule on the source, about one incident. It is told whether a rule takes it or not: the first rule that holds words and routes it,
/// and its alert bears that rule's name.
pub fn incident_case<'a>(rule: &Rule, alert: &'a Alert, token: Option<&'a Token>) -> ExplainCase<'a> {
    let label = |name: &str| alert.labels.get(name).cloned();
    let source = SourceFacts {
        kind: label("kind").unwrap_or_default(),
        endpoint: label("endpoint"),
        receiver: label("receiver"),
        message: alert.annotations.get("summary").cloned().unwrap_or_default(),
        count: u32::try_from(alert.members.len().max(1)).unwrap_or(u32::MAX),
        since: alert.starts_at.unwrap_or(alert.active_at),
    };
    let own = (alert.name == rule.name).then_some(alert);
    ExplainCase { token, source: Some(source), alerts: own.into_iter().collect(), ..ExplainCase::default() }
}

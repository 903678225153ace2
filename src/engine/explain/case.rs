//! The cases of a rule that match a target.

use std::{borrow::Cow, cmp::Reverse, sync::Arc};

use super::{Explanation, explanation::nothing};
use crate::{
    evaluate::{names_change, record_of},
    pipeline::ScheduleFeed,
};
use model::{
    Alert, AlertState, Change, ChangeKind, ChangeRow, Endpoint, FeedState, LinearEnd, LinearSupply, Record, RecordKey, Resource,
    Timestamp, Token, TokenId, TokenSnapshot, Tracked, phrase, wire,
};
use rules::aggregate::{AggregateCache, Totals};
use rules::{On, Pool, Rule, SourceFacts};

/// The maximum number of cases of one rule and token that are explained at once.
pub const MAX_CASES: usize = 20;
/// The maximum number of incidents that are explained: open ones first, then the latest resolved ones.
const MAX_EXPLAINED: usize = 5;

/// The subject of an `explain` command. Each field that is set narrows the selection.
#[derive(Clone, Debug, Default)]
pub struct ExplainTarget {
    /// `None` for a group.
    pub token: Option<TokenId>,
    pub resource: Option<Resource>,
    /// The key of the record.
    pub key: Option<String>,
    /// A day on which the event takes place or the change was seen.
    pub day: Option<Timestamp>,
    pub alert: Option<Alert>,
    /// A group of `[watch.groups]`.
    pub group: Option<String>,
}

impl ExplainTarget {
    /// Returns whether the rule subscribes to a subject of this kind.
    pub fn is_subscribed_by(&self, rule: &Rule) -> bool {
        match (rule.on, self.resource) {
            (On::Record(subscribed) | On::Change(subscribed, _), Some(wanted)) => subscribed == wanted,
            (On::Record(_) | On::Change(..) | On::Token, None) => self.token.is_some(),
            (On::Portfolio, None) => true,
            _ => false,
        }
    }

    /// Returns the records that the target selects for a rule. Without a key or a day: the next one ahead, else the latest. The ends of
    /// linear unlocks count as records; without a key or a day, only if the rule reads the change of the daily release.
    fn records<'a>(&self, rule: &Rule, snapshot: &'a TokenSnapshot, resource: Resource, now: Timestamp) -> Vec<Cow<'a, Tracked>> {
        let mut records: Vec<Cow<'a, Tracked>> = snapshot.records_of(resource).map(Cow::Borrowed).collect();
        let key = self.key.as_deref().filter(|_| self.resource == Some(resource));
        let has_ends = resource == Resource::Unlock && (key.is_some() || self.day.is_some() || rule.reads_rate_step());
        let ends = if has_ends { LinearEnd::all(&snapshot.records, Timestamp::MIN_UTC) } else { Vec::new() };
        if let Some(key) = key {
            records.retain(|record| record.key.as_str() == key);
            if records.is_empty() {
                let own = ends.into_iter().find(|end| end.keys.iter().any(|of| of.as_str() == key));
                records.extend(own.map(|end| Cow::Owned(Tracked { key: key.into(), record: end.tracked.record })));
            }
            return records;
        }
        records.extend(ends.into_iter().filter(|end| !end.has_event).map(|end| Cow::Owned(end.tracked)));
        if let Some(day) = self.day.map(|day| day.date_naive()) {
            records.retain(|record| {
                let interval = record.record.interval();
                interval.is_some_and(|interval| interval.start.date_naive() <= day && day <= interval.end.date_naive())
            });
            return records;
        }
        let start = |record: &&Cow<'a, Tracked>| record.record.interval().map(|interval| interval.start);
        let is_ahead = |record: &&Cow<'a, Tracked>| record.record.interval().is_some_and(|interval| !interval.has_passed(now));
        let latest = records.iter().max_by_key(start);
        let next = match resource {
            Resource::Allocation => return records,
            Resource::Unlock => records.iter().filter(is_ahead).min_by_key(start).or(latest),
            _ => latest,
        };
        next.cloned().into_iter().collect()
    }

    /// Returns whether the target selects a change. `earlier` are the changes before it, latest first.
    fn selects(&self, row: &ChangeRow, earlier: &[ChangeRow]) -> bool {
        // A change of several events has no key.
        let of_key = || {
            self.key.as_deref().is_none_or(|key| row.key.as_ref().map_or(row.change.count > 1, |row_key| row_key.as_str() == key))
        };
        match &self.alert {
            Some(alert) if !is_about(alert, row, earlier) => return false,
            None if !of_key() => return false,
            _ => {}
        }
        self.day.is_none_or(|day| row.at.date_naive() == day.date_naive() || is_dated(&row.change, day))
    }
}

/// Returns whether an alert is about a change. `earlier` are the changes before it, latest first.
fn is_about(alert: &Alert, row: &ChangeRow, earlier: &[ChangeRow]) -> bool {
    fn identity(row: &ChangeRow) -> (Timestamp, &TokenId, Resource, ChangeKind, Option<&RecordKey>) {
        (row.at, &row.token, row.resource, row.change.kind, row.key.as_ref())
    }
    let is_alike = |other: &&ChangeRow| identity(other) == identity(row);
    let ordinal = 1 + earlier.iter().filter(is_alike).count();
    alert.starts_at == Some(row.at) && alert.key == row.key && names_change(&alert.subject, &row.change, row.resource, ordinal)
}

/// Returns whether the event of a change starts on this day, before or after the change. Of several events, only the first one is stored, so
/// any later day may be that of another.
fn is_dated(change: &Change, day: Timestamp) -> bool {
    let is_of_several = change.count > 1;
    let of_day = |record: &Record| {
        let start = record.interval().map(|interval| interval.start.date_naive());
        start.is_some_and(|start| start == day.date_naive() || (is_of_several && start < day.date_naive()))
    };
    [&change.old, &change.new].into_iter().flatten().any(of_day)
}

/// The subject of an explanation.
#[derive(Clone, Debug, Default)]
pub struct ExplainCase<'a> {
    /// `None` for a group and for most incidents.
    pub token: Option<&'a Token>,
    /// The feeds that the facts come from. Empty if none of them was ever polled.
    pub feeds: &'a [(Endpoint, FeedState)],
    /// The record. For a change, the record after it.
    pub record: Option<Cow<'a, Tracked>>,
    /// All records of the token. Empty for totals and incidents.
    pub schedule: &'a [Tracked],
    /// The linear supply besides the records. `None` if it was not read.
    pub linear: Option<LinearSupply>,
    /// The change and the time of the poll that found it.
    pub change: Option<(&'a Change, Timestamp)>,
    /// The aggregates of the token or group, for rules on `token` and `portfolio`.
    pub totals: Option<Arc<Totals>>,
    /// The incident, for rules on `source`.
    pub source: Option<SourceFacts>,
    /// All alerts that the rule ever raised for the subject, in any order.
    pub alerts: Vec<&'a Alert>,
}

/// A case, or the explanation why there is none.
#[derive(Clone, Debug)]
pub enum CaseOrNothing<'a> {
    Case(ExplainCase<'a>),
    Nothing(Explanation),
}

/// Returns the feed that last read a token's records of this kind.
fn feed_of(snapshot: &TokenSnapshot, resource: Resource) -> &[(Endpoint, FeedState)] {
    let latest = snapshot
        .feeds
        .iter()
        .filter(|(endpoint, _)| endpoint.resource() == Some(resource) && *endpoint != Endpoint::Upcoming)
        .max_by_key(|(_, state)| state.read_at);
    latest.map_or(&[], std::slice::from_ref)
}

fn linear_of(snapshot: &TokenSnapshot) -> Option<LinearSupply> {
    ScheduleFeed::of(snapshot).map(|feed| feed.linear())
}

/// Returns the cases of a rule on records: one for each record that the target selects.
pub fn record_cases<'a>(
    rule: &Rule,
    snapshot: &'a TokenSnapshot,
    resource: Resource,
    target: &ExplainTarget,
    alerts: &[&'a Alert],
    now: Timestamp,
) -> Vec<ExplainCase<'a>> {
    let case = |record: Cow<'a, Tracked>| ExplainCase {
        token: Some(&snapshot.token),
        feeds: feed_of(snapshot, resource),
        schedule: &snapshot.records,
        linear: linear_of(snapshot),
        alerts: alerts.iter().copied().filter(|alert| alert.key.as_ref() == Some(&record.key)).collect(),
        record: Some(record),
        ..ExplainCase::default()
    };
    target.records(rule, snapshot, resource, now).into_iter().map(case).collect()
}

/// The maximum number of records to suggest if the target's day or key has none.
const MAX_NEAREST: usize = 3;

/// Returns an explanation that names the nearest records. `None` if the target names an alert, neither a key nor a day, or a key that
/// one of `alerts` once had. Call it only if no record matches the target.
pub fn absent_record(
    rule: &Rule,
    snapshot: &TokenSnapshot,
    resource: Resource,
    target: &ExplainTarget,
    alerts: &[&Alert],
) -> Option<Explanation> {
    let had_key = |key: &str| alerts.iter().any(|alert| alert.key.as_ref().is_some_and(|alert_key| alert_key.as_str() == key));
    let (what, at) = match (&target.alert, &target.key, target.day) {
        (None, Some(key), _) if !had_key(key) => (key.clone(), wire::parse_timestamp(key)),
        (None, None, Some(day)) => (phrase::day(day), Some(day)),
        _ => return None,
    };
    let mut near: Vec<Timestamp> = snapshot.records_of(resource).filter_map(|of| Some(of.record.interval()?.start)).collect();
    near.sort_by_key(|start| (at.map(|at| (*start - at).abs()), Reverse(*start)));
    near.truncate(MAX_NEAREST);
    near.sort_unstable();
    let near: Vec<String> = near.into_iter().map(phrase::day).collect();
    let (id, symbol) = (&snapshot.token.id, phrase::name(snapshot.token.symbol()));
    let nearest = if near.is_empty() { String::new() } else { format!("; the nearest are on {}", near.join(", ")) };
    Some(nothing(rule, &symbol, &format!("there is no {resource} of {id} for {what}{nearest}")))
}

/// Returns the case of a record that is no longer in the snapshot. Only its alerts are known.
pub fn missing_record_case<'a>(
    snapshot: &'a TokenSnapshot,
    resource: Resource,
    target: &ExplainTarget,
    alerts: &[&'a Alert],
) -> ExplainCase<'a> {
    let of_key = |alert: &&Alert| {
        target.key.as_deref().is_none_or(|key| alert.key.as_ref().is_some_and(|alert_key| alert_key.as_str() == key))
    };
    ExplainCase {
        token: Some(&snapshot.token),
        feeds: feed_of(snapshot, resource),
        alerts: alerts.iter().copied().filter(of_key).collect(),
        ..ExplainCase::default()
    }
}

/// Returns the case of a rule on changes for one change. `earlier` are the changes before it, latest first. `alerts` are the rule's alerts.
pub fn change_case<'a>(
    snapshot: &'a TokenSnapshot,
    row: &'a ChangeRow,
    earlier: &[ChangeRow],
    alerts: impl IntoIterator<Item = &'a Alert>,
) -> ExplainCase<'a> {
    ExplainCase {
        token: Some(&snapshot.token),
        feeds: feed_of(snapshot, row.resource),
        record: record_of(&row.change).map(Cow::Owned),
        schedule: &snapshot.records,
        linear: linear_of(snapshot),
        change: Some((&row.change, row.at)),
        alerts: alerts.into_iter().filter(|alert| is_about(alert, row, earlier)).collect(),
        ..ExplainCase::default()
    }
}

/// Returns the cases of a rule on changes: those that the target selects, or the latest one if it names no day or key. `changes` are
/// sorted, latest first. `alerts` are the rule's alerts.
pub fn change_cases<'a>(
    snapshot: &'a TokenSnapshot,
    changes: &'a [ChangeRow],
    target: &ExplainTarget,
    alerts: &[&'a Alert],
) -> Vec<ExplainCase<'a>> {
    let limit = if target.day.is_some() || target.key.is_some() { MAX_CASES } else { 1 };
    let with_earlier = (1..).zip(changes).map(|(next, row)| (row, changes.get(next..).unwrap_or_default()));
    let selected = with_earlier.filter(|(row, earlier)| target.selects(row, earlier)).take(limit);
    selected.map(|(row, earlier)| change_case(snapshot, row, earlier, alerts.iter().copied())).collect()
}

/// Returns the case of a rule on tokens.
pub fn token_case<'a>(snapshot: &'a TokenSnapshot, totals: &Totals, alerts: Vec<&'a Alert>) -> ExplainCase<'a> {
    ExplainCase {
        token: Some(&snapshot.token),
        feeds: &snapshot.feeds,
        totals: Some(Arc::new(totals.clone())),
        alerts,
        ..ExplainCase::default()
    }
}

/// Returns the cases of a rule on groups: the target's group, else the groups of `token`, else all.
pub fn group_cases<'a>(
    rule: &Rule,
    target: &ExplainTarget,
    token: Option<&Token>,
    cache: &mut AggregateCache,
    alerts: &'a [Alert],
) -> Vec<CaseOrNothing<'a>> {
    let is_selected = |pool: &Pool| match (&target.group, token, pool) {
        (Some(wanted), ..) => pool.group().unwrap_or("*") == wanted,
        (None, Some(token), Pool::Group(name)) => token.groups.contains(name),
        (None, Some(token), Pool::Watched) => rule.selects_token(token),
        (None, None, _) => true,
    };
    let mut cases = Vec::new();
    for pool in rule.pools.iter().filter(|pool| is_selected(pool)) {
        let totals = match pool {
            Pool::Group(name) => cache.group(&format!("@{name}"), Some(name), |_, _| false),
            Pool::Watched => cache.group(rule.id.as_str(), None, |id, groups| rule.selects_token_named(id, groups)),
        };
        let Some(totals) = totals else {
            let name = pool.group().map_or_else(|| "all watched tokens".to_owned(), |name| format!("the group {name}"));
            cases.push(CaseOrNothing::Nothing(nothing(rule, &name, "no facts are known about any token in it")));
            continue;
        };
        let subject = format!("portfolio/{}", pool.group().unwrap_or("*"));
        let alerts = alerts.iter().filter(|alert| alert.subject == subject).collect();
        cases.push(CaseOrNothing::Case(ExplainCase { totals: Some(totals), alerts, ..ExplainCase::default() }));
    }
    if cases.is_empty() {
        let named =
            |pool: &Pool| pool.group().map_or_else(|| "all watched tokens".to_owned(), |name| format!("the group {name}"));
        let names: Vec<String> = rule.pools.iter().map(named).collect();
        let (about, because) = match (&target.group, token) {
            (Some(group), _) => (format!("the group {group}"), format!("it covers only {}", names.join(", "))),
            (None, Some(token)) => {
                (phrase::name(token.symbol()), format!("it covers only {}, which does not include the token", names.join(", ")))
            }
            (None, None) => ("any group".to_owned(), "it covers no group".to_owned()),
        };
        cases.push(CaseOrNothing::Nothing(nothing(rule, &about, &because)));
    }
    cases
}

/// Returns the incidents to explain: open ones first, then the latest resolved ones.
pub fn incidents(mut alerts: Vec<Alert>, target: &ExplainTarget) -> Vec<Alert> {
    alerts.retain(|alert| target.alert.as_ref().is_none_or(|wanted| wanted.id == alert.id));
    alerts.sort_by_key(|alert| (alert.state != AlertState::Firing, Reverse(alert.starts_at)));
    alerts.truncate(MAX_EXPLAINED);
    alerts
}

/// Returns the case of a rule on the source for one incident. An incident is sent with or without a rule: the first matching rule only
/// rewords and routes it, and the alert then has that rule's name.
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
    let named = (alert.name == rule.name).then_some(alert);
    ExplainCase { token, source: Some(source), alerts: named.into_iter().collect(), ..ExplainCase::default() }
}

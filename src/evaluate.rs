//! From what is known and what happened to alerts and what is told of them.
//!
//! [`evaluate`] looks at tokens with their records after a poll (or, on a tick, as they stand), with the changes of the poll, the
//! records that are new in it, and the alerts that are open. It answers with a [`Draft`]: alerts that are new or moved on, and
//! notices. A draft names what it [opens](Draft::openings); the caller asks the store for the latest episode of each, and
//! [`Draft::number`] makes the [`Verdict`], with ids that are the same whenever the same facts are judged again.
//!
//! Rules on a token or a group as a whole are judged in `whole`, with the same states.
//!
//! Three kinds of rules are judged here; trouble with the source is in [`crate::trouble`].
//! - *States*: an unlock ahead, a row of the allocation table, the emission of a day. They fire while their condition holds and
//!   have an end. An unlock is told again at each lead time, each once; after downtime only at the latest.
//! - *Arrivals*: a burn, a buyback or a round that is new and not older than `since`. Once, no end.
//! - *Changes*: once, no end.
//!
//! Promises: judging the same facts twice tells nothing new; the order of rules, tokens and records changes nothing but the order
//! of what is told; a condition that cannot be told (a missing field) neither raises nor ends anything; every alert is recorded,
//! also where nobody is to be told. Pure: the time comes in as `now`.

mod draft;
mod limit;
mod series;
mod whole;

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

pub(crate) use draft::Telling;
pub use draft::{Draft, Verdict};
use draft::{Sketch, Tell, Urgency, remember};
pub use limit::Limits;
pub use whole::{TokenTotals, portfolios, tokens};

use crate::{
    alert::{Alert, AlertBody, AlertState, Labels, NoticeKind, Resolution, SOURCE_TROUBLE, SourceBody, TokenBody, alert_id},
    change::Change,
    config::Span,
    format,
    route::RouteTree,
    rules::{Lead, On, Rendered, Rule, RuleSet, Scope, Truth},
    supply::{
        AlertId, Interval, ReceiverName, Record, RecordKey, Resource, RuleId, Timestamp, Token, TokenId, Tracked, span_of_days,
    },
};

/// What is known of one token, and what happened to it in this poll.
#[derive(Clone, Copy, Debug)]
pub struct TokenFacts<'a> {
    /// The token.
    pub token: &'a Token,
    /// Whether the config still watches it. Alerts of a token that is not watched end.
    pub is_watched: bool,
    /// Its records after this poll, of `resources`.
    pub records: &'a [Tracked],
    /// Which resources `records` holds, all of each: an open alert of such a resource whose record is not among them has lost it
    /// for good. Alerts of other resources are left alone.
    pub resources: &'a [Resource],
    /// What the diff told in this poll, in its order.
    pub changes: &'a [Change],
    /// Burns, buybacks and rounds that are new in this poll and no baseline.
    pub added: &'a [Tracked],
    /// All its alerts that are pending or firing.
    pub alerts: &'a [Alert],
    /// When the source last gave a complete answer about a resource.
    pub polled_at: &'a [(Resource, Timestamp)],
}

/// What it is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The rules at work.
    pub rules: &'a RuleSet,
    /// Who is told.
    pub routes: &'a RouteTree,
    /// The time of the tick.
    pub now: Timestamp,
}

/// Judges a batch of tokens, at most one [`TokenFacts`] for each. `limits` is carried from batch to batch of one cycle, since a rule's
/// `limit` counts over all of them; [`Limits::summaries`] ends it.
pub fn evaluate(facts: &[TokenFacts<'_>], context: &Context<'_>, limits: &mut Limits) -> Draft {
    judge(facts, &context.rules.rules, context.routes, context.now, limits)
}

/// The windows (from exclusive, to inclusive) in which an unlock may begin so that the passing of time since the last evaluation
/// changes what is to be told: those that came within a lead time of a rule. Open alerts wake by their own `recheck_at`.
///
/// `evaluated_until` is None before the first evaluation and after a change of rules, routes or groups: then everything that any
/// rule on unlocks can see is in the windows. `daysUntil <= 7` turns at an instant that can be known beforehand and costs no more
/// than a lead time. A condition that reads the clock in another way (`now`, `daysUntil * 2`) may turn at any instant: each tick
/// looks at all unlocks ahead within its longest lead time, or at all of them where it has no `within`.
#[must_use]
pub fn windows(rules: &RuleSet, evaluated_until: Option<Timestamp>, now: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    windows_of(&rules.rules, evaluated_until, now)
}

/// The resources, beside unlocks, whose records are states for some rule that is awake: judged when they change, and whenever the
/// rules do.
#[must_use]
pub fn states(rules: &RuleSet, now: Timestamp) -> Vec<Resource> {
    let awake = || rules.rules.iter().filter(|rule| rule.terms().is_awake(now));
    let is_ruled = |resource: &Resource| awake().any(|rule| rule.on == On::Record(*resource));
    [Resource::Allocation, Resource::Emission].into_iter().filter(is_ruled).collect()
}

/// The longest interval that a date may stand for (a month): an unlock that began so long ago may not have passed yet.
const LONGEST_INTERVAL: TimeDelta = TimeDelta::days(32);

/// How much earlier and later than computed an edge is looked at: fractions of days are rounded, and `<` turns just after `<=`.
const EDGE_SLACK: TimeDelta = TimeDelta::seconds(1);

/// A rule as this room sees it: its plain terms, and what it says of a scope. Tests have a rule of their own.
pub(crate) trait Judge {
    fn terms(&self) -> Terms<'_>;
    fn covers(&self, scope: &Scope<'_>) -> bool;
    fn holds(&self, scope: &Scope<'_>) -> Truth;
    fn clears(&self, scope: &Scope<'_>) -> bool;
    fn level(&self, scope: &Scope<'_>) -> Option<u32>;
    fn render(&self, scope: &Scope<'_>, level: Option<u32>) -> Rendered;
    /// Whether it may let in anything of this token at all.
    fn lets_in(&self, _token: &Token) -> bool {
        true
    }
}

/// The plain terms of a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub id: &'a RuleId,
    pub name: &'a str,
    pub on: On,
    pub within: &'a [Lead],
    pub since: TimeDelta,
    pub hold: TimeDelta,
    pub keep_firing_for: TimeDelta,
    pub limit: Option<u32>,
    pub receivers: &'a [ReceiverName],
    pub expires: Option<Timestamp>,
    pub is_clock_dependent: bool,
    /// Days before a record's time at which its truth may turn.
    pub edges: &'a [f64],
}

impl Terms<'_> {
    /// Whether the rule is at work: not past its `expires`.
    pub(crate) fn is_awake(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|at| now < at)
    }

    /// Who is told: those whom the rule names, as far as they exist, else those whom the labels lead to.
    pub(crate) fn audience(&self, routes: &RouteTree, labels: &Labels) -> Vec<ReceiverName> {
        let mut named = Vec::new();
        for receiver in self.receivers.iter().filter(|receiver| routes.knows(receiver)) {
            if !named.contains(receiver) {
                named.push(receiver.clone());
            }
        }
        if named.is_empty() { routes.route(labels) } else { named }
    }

    /// All lead times that hold, as the rule writes them.
    fn leads(&self, interval: Option<Interval>, now: Timestamp) -> Vec<String> {
        let Some(interval) = interval else { return Vec::new() };
        self.within.iter().filter(|lead| interval.is_within(now, lead.span)).map(|lead| lead.text.clone()).collect()
    }
}

impl Judge for Rule {
    fn terms(&self) -> Terms<'_> {
        Terms {
            id: &self.id,
            name: &self.name,
            on: self.on,
            within: &self.within,
            since: self.since,
            hold: self.hold,
            keep_firing_for: self.keep_firing_for,
            limit: self.limit,
            receivers: &self.receivers,
            expires: self.expires,
            is_clock_dependent: self.is_clock_dependent,
            edges: &self.edges,
        }
    }
    fn lets_in(&self, token: &Token) -> bool {
        Rule::lets_in(self, token)
    }
    fn covers(&self, scope: &Scope<'_>) -> bool {
        Rule::covers(self, scope)
    }
    fn holds(&self, scope: &Scope<'_>) -> Truth {
        Rule::holds(self, scope)
    }
    fn clears(&self, scope: &Scope<'_>) -> bool {
        Rule::clears(self, scope)
    }
    fn level(&self, scope: &Scope<'_>) -> Option<u32> {
        Rule::level(self, scope)
    }
    fn render(&self, scope: &Scope<'_>, level: Option<u32>) -> Rendered {
        Rule::render(self, scope, level)
    }
}

fn windows_of<J: Judge>(rules: &[J], evaluated_until: Option<Timestamp>, now: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    let ahead = |from: Timestamp, by: TimeDelta| from.checked_add_signed(by).unwrap_or(DateTime::<Utc>::MAX_UTC);
    let begun = now.checked_sub_signed(LONGEST_INTERVAL).unwrap_or(DateTime::<Utc>::MIN_UTC);
    let mut windows = Vec::new();
    for rule in rules {
        let terms = rule.terms();
        if terms.on != On::Record(Resource::Unlock) || !terms.is_awake(now) {
            continue;
        }
        match evaluated_until {
            Some(until) if !terms.is_clock_dependent => {
                windows.extend(terms.within.iter().map(|lead| (ahead(until, lead.span), ahead(now, lead.span))));
                // What turns after the begin of an unlock that is over is judged no more.
                let edges = terms.edges.iter().filter(|days| **days >= 0.0).filter_map(|days| span_of_days(*days));
                windows.extend(edges.map(|span| (ahead(until, span - EDGE_SLACK), ahead(now, span + EDGE_SLACK))));
            }
            _ => {
                let longest = terms.within.iter().map(|lead| lead.span).max();
                windows.push((begun, longest.map_or(DateTime::<Utc>::MAX_UTC, |span| ahead(now, span))));
            }
        }
    }
    windows.retain(|(from, to)| from < to);
    windows.sort_unstable();
    windows.dedup_by(|next, last| {
        let touches = next.0 <= last.1;
        if touches {
            last.1 = last.1.max(next.1);
        }
        touches
    });
    windows
}

/// The engine behind [`evaluate`], for any kind of rule.
fn judge<J: Judge>(facts: &[TokenFacts<'_>], rules: &[J], routes: &RouteTree, now: Timestamp, limits: &mut Limits) -> Draft {
    let mut judgement = Judgement { routes, now, draft: Draft::default() };
    let mut open: Vec<Vec<Open<'_>>> = facts.iter().map(open_alerts).collect();
    let mut ids: HashSet<&RuleId> = HashSet::new();
    let awake: Vec<&J> = rules.iter().filter(|rule| rule.terms().is_awake(now) && ids.insert(rule.terms().id)).collect();
    // What moved is judged by the rules that hear of it, and by no others.
    let mut by_on: HashMap<On, Vec<&J>> = HashMap::new();
    for rule in &awake {
        by_on.entry(rule.terms().on).or_default().push(rule);
    }
    for (facts, open) in facts.iter().zip(&mut open).filter(|(facts, _)| facts.is_watched) {
        let records: Vec<_> = facts.records.iter().map(Dated::of).collect();
        let is_heard = concerns(facts);
        for (on, rules) in by_on.iter().filter(|(on, _)| is_heard(**on)) {
            for rule in rules {
                let is_open = || open.iter().any(|open| open.alert.rule == *rule.terms().id);
                // Its filter by token is asked once, not for each record; an alert that it lets in no longer ends.
                if rule.lets_in(facts.token) || (matches!(on, On::Record(_)) && is_open()) {
                    judgement.token(*rule, facts, &records, open);
                }
            }
        }
    }
    for rule in &awake {
        limits.keep(&rule.terms(), &mut judgement.draft);
    }
    for (facts, open) in facts.iter().zip(&open) {
        for Open { alert, .. } in open.iter().filter(|open| !open.is_judged) {
            let is_ruled = awake.iter().any(|rule| {
                let terms = rule.terms();
                *terms.id == alert.rule && alert.resource.is_some_and(|of| terms.on == On::Record(of))
            });
            let why = match alert.due {
                _ if !is_ruled || !facts.is_watched => Resolution::RuleGone,
                // What was over before its record went has not been called off.
                Some(due) if due.has_passed(now) => Resolution::Passed,
                _ => Resolution::Removed,
            };
            judgement.end((*alert).clone(), why, facts, None, None::<&J>);
        }
    }
    for tell in &judgement.draft.tells {
        if let Some(sketch) = judgement.draft.alerts.get_mut(tell.alert)
            && tell.kind != NoticeKind::Resolved
        {
            remember(&mut sketch.alert.told, &tell.receivers);
        }
    }
    judgement.draft
}

/// What can be heard of these facts: records that are states, arrivals, changes.
fn concerns(facts: &TokenFacts<'_>) -> impl Fn(On) -> bool {
    move |on| match on {
        On::Record(Resource::Unlock | Resource::Allocation | Resource::Emission) => !facts.records.is_empty(),
        On::Record(resource) => facts.added.iter().any(|tracked| tracked.record.resource() == resource),
        On::Change(resource, kind) => {
            let hears = |change: &Change| change.resource == Some(resource) && kind.is_none_or(|kind| kind == change.kind);
            facts.changes.iter().any(hears)
        }
        On::Token | On::Portfolio | On::Source => false,
    }
}

/// A record with the time that it stands for, worked out once for all rules.
#[derive(Clone, Copy)]
struct Dated<'a> {
    tracked: &'a Tracked,
    resource: Resource,
    interval: Option<Interval>,
}

impl<'a> Dated<'a> {
    fn of(tracked: &'a Tracked) -> Self {
        Self { tracked, resource: tracked.record.resource(), interval: tracked.record.interval() }
    }
}

/// An open alert, and whether a rule has accounted for it. One that no rule accounts for has lost its rule or its record.
struct Open<'a> {
    alert: &'a Alert,
    is_judged: bool,
}

/// The open alerts of a token that are judged with it: those of resources that are loaded, and all of a token that is not watched.
fn open_alerts<'a>(facts: &TokenFacts<'a>) -> Vec<Open<'a>> {
    let is_open = |alert: &Alert| {
        matches!(alert.state, AlertState::Pending | AlertState::Firing)
            && alert.rule.as_str() != SOURCE_TROUBLE
            && alert.key.is_some()
            && alert.resource.is_some_and(|resource| !facts.is_watched || facts.resources.contains(&resource))
    };
    facts.alerts.iter().filter(|alert| is_open(alert)).map(|alert| Open { alert, is_judged: false }).collect()
}

/// Where a record stands in time, as a rule sees it.
#[derive(Clone, Copy, Debug)]
enum Place<'a> {
    /// Its date is missing or to be determined.
    Undated,
    /// It is over.
    Passed,
    /// It begins later than the longest lead time.
    Beyond,
    /// The rule looks at it; with the smallest lead time that holds, where the rule has any.
    Seen(Option<&'a Lead>),
}

impl<'a> Place<'a> {
    fn of(terms: &Terms<'a>, interval: Option<Interval>, resource: Resource, now: Timestamp) -> Self {
        if resource == Resource::Allocation {
            return Place::Seen(None);
        }
        let Some(interval) = interval else { return Place::Undated };
        if now >= end_of(terms, interval, resource) {
            return Place::Passed;
        }
        if terms.within.is_empty() || resource != Resource::Unlock {
            return Place::Seen(None);
        }
        let lead = terms.within.iter().filter(|lead| interval.is_within(now, lead.span)).min_by_key(|lead| lead.span);
        lead.map_or(Place::Beyond, |lead| Place::Seen(Some(lead)))
    }
}

/// When a record is over for a rule. The source tells the emission of a day when the day is gone, so `since` is added to that.
fn end_of(terms: &Terms<'_>, interval: Interval, resource: Resource) -> Timestamp {
    match resource {
        Resource::Emission => interval.end.checked_add_signed(terms.since).unwrap_or(interval.end),
        _ => interval.end,
    }
}

/// What one alert is about: a record of a token, with the change or the lead time that matters.
#[derive(Clone, Copy)]
struct About<'a> {
    facts: &'a TokenFacts<'a>,
    record: Option<&'a Tracked>,
    change: Option<&'a Change>,
    lead: Option<&'a Lead>,
}

impl<'a> About<'a> {
    fn scope(&self, now: Timestamp) -> Scope<'a> {
        Scope {
            token: Some(self.facts.token),
            record: self.record,
            change: self.change,
            source: None,
            totals: None,
            lead: self.lead,
            now,
        }
    }

    /// What is told of `alert`; its id comes with the numbering.
    fn body(&self, alert: &Alert, status: &str, reason: &str, now: Timestamp) -> AlertBody {
        let record = self.record.map(|tracked| &tracked.record);
        let interval = record.map_or(alert.due, Record::interval);
        AlertBody {
            id: alert.id.clone(),
            rule: alert.name.clone(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            labels: alert.labels.clone(),
            former_labels: alert.former_labels.clone(),
            annotations: alert.annotations.clone(),
            starts_at: alert.starts_at.unwrap_or(now),
            ends_at: alert.ends_at,
            token: Some(token_body(self.facts.token)),
            resource: alert.resource,
            record: record.and_then(|record| serde_json::to_value(record).ok()),
            change: self.change.cloned(),
            days_until: interval.map(|interval| interval.days_until(now)),
            when: interval.as_ref().map(format::when),
            lead: self.lead.map(|lead| lead.text.clone()),
            event: self.record.map(|tracked| {
                format!("{}/{}/{}", tracked.record.resource().as_str(), self.facts.token.id, tracked.key.as_str())
            }),
            series: self.record.map(|tracked| series::around(tracked, self.facts.records)).unwrap_or_default(),
            source: self.source(alert.resource),
        }
    }

    /// Where the facts come from: the record's own words, else the token's.
    fn source(&self, resource: Option<Resource>) -> SourceBody {
        let item = &self.facts.token.item;
        let mut source = SourceBody {
            polled_at: resource.and_then(|resource| self.facts.polled_at(resource)),
            listed_method: item.listed_method.as_str().map(str::to_owned),
            data_source: None,
            latest_update_date: item.last_updated_date.copied(),
        };
        match self.record.map(|tracked| &tracked.record) {
            Some(Record::Unlock(event)) => {
                source.listed_method = event.listed_method.as_str().map(str::to_owned).or(source.listed_method);
                source.data_source = event.data_source.as_str().map(str::to_owned);
                source.latest_update_date = event.latest_update_date.copied().or(source.latest_update_date);
            }
            Some(Record::Emission(emission)) => {
                source.listed_method = emission.listed_method.as_str().map(str::to_owned).or(source.listed_method);
            }
            _ => {}
        }
        source
    }
}

/// A token as messages show it.
pub(crate) fn token_body(token: &Token) -> TokenBody {
    TokenBody { id: token.id.as_str().to_owned(), name: token.name().to_owned(), symbol: token.symbol().to_owned() }
}

impl TokenFacts<'_> {
    /// When the source last gave a complete answer about `resource`.
    fn polled_at(&self, resource: Resource) -> Option<Timestamp> {
        self.polled_at.iter().find(|(of, _)| *of == resource).map(|(_, at)| *at)
    }
}

/// An instant in subjects and transitions: `2026-03-16T01:00:00Z`.
fn iso(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

struct Judgement<'a> {
    routes: &'a RouteTree,
    now: Timestamp,
    draft: Draft,
}

impl Judgement<'_> {
    /// Judges one token by one rule, and marks the open alerts that it accounts for.
    fn token<J: Judge>(&mut self, rule: &J, facts: &TokenFacts<'_>, records: &[Dated<'_>], open: &mut [Open<'_>]) {
        let terms = rule.terms();
        match terms.on {
            On::Record(resource @ (Resource::Unlock | Resource::Allocation | Resource::Emission)) => {
                let mut mine: HashMap<&str, &mut Open<'_>> = HashMap::new();
                for open in open.iter_mut().filter(|open| open.alert.rule == *terms.id && open.alert.resource == Some(resource)) {
                    if let Some(key) = &open.alert.key {
                        mine.insert(key.as_str(), open);
                    }
                }
                for record in records.iter().filter(|record| record.resource == resource) {
                    match mine.get_mut(record.tracked.key.as_str()) {
                        Some(open) => {
                            open.is_judged = true;
                            self.follow(rule, facts, record, open.alert);
                        }
                        None => self.look(rule, facts, record),
                    }
                }
            }
            On::Record(resource) => {
                for tracked in facts.added.iter().filter(|tracked| tracked.record.resource() == resource) {
                    self.arrival(rule, facts, tracked, resource);
                }
            }
            On::Change(resource, kind) => {
                let mut ordinals: HashMap<_, u32> = HashMap::new();
                for change in facts.changes.iter().filter(|change| change.resource == Some(resource)) {
                    // Counted over all changes, not only over those that match, so that the subject depends on the poll alone.
                    let ordinal = ordinals.entry((change.kind, change.key.as_ref())).or_default();
                    *ordinal += 1;
                    if kind.is_none_or(|kind| kind == change.kind) {
                        self.change(rule, facts, change, resource, *ordinal);
                    }
                }
            }
            On::Token | On::Portfolio | On::Source => {}
        }
    }

    /// A record without an open alert: raises one where the rule holds.
    fn look<J: Judge>(&mut self, rule: &J, facts: &TokenFacts<'_>, record: &Dated<'_>) {
        let terms = rule.terms();
        let Dated { tracked, resource, interval } = *record;
        let Place::Seen(lead) = Place::of(&terms, interval, resource, self.now) else {
            return;
        };
        let about = About { facts, record: Some(tracked), change: None, lead };
        let scope = about.scope(self.now);
        if !rule.covers(&scope) || rule.holds(&scope) != Truth::True {
            return;
        }
        self.draft.matched(terms.id, self.now);
        let subject = format!("{resource}/{}/{}", facts.token.id, tracked.key);
        let mut alert = self.alert(&terms, facts, subject, AlertState::Pending, resource, Some(tracked.key.clone()));
        alert.due = interval;
        if terms.hold > TimeDelta::zero() {
            alert.level = rule.level(&scope);
            self.render(rule, &about, &mut alert);
            alert.recheck_at = recheck(&terms, &alert, resource, self.now);
            self.draft.alerts.push(Sketch { alert, is_opening: true });
        } else {
            self.fire(rule, &about, alert, true);
        }
    }

    /// An alert begins to fire: told with the smallest lead time that holds, the larger ones count as told.
    fn fire<J: Judge>(&mut self, rule: &J, about: &About<'_>, mut alert: Alert, is_opening: bool) {
        let terms = rule.terms();
        alert.state = AlertState::Firing;
        alert.starts_at = Some(self.now);
        alert.level = rule.level(&about.scope(self.now));
        alert.leads = terms.leads(alert.due, self.now);
        self.render(rule, about, &mut alert);
        // What it was called while it was pending was told to nobody.
        alert.former_labels.clear();
        let reason = about.lead.map_or_else(|| "firing".to_owned(), |lead| format!("lead {}", lead.text));
        self.tell(&terms, about, alert, is_opening, NoticeKind::Firing, "firing".to_owned(), &reason);
    }

    /// A record with an open alert: moves the alert on.
    fn follow<J: Judge>(&mut self, rule: &J, facts: &TokenFacts<'_>, record: &Dated<'_>, before: &Alert) {
        let terms = rule.terms();
        let now = self.now;
        let Dated { tracked, resource, interval } = *record;
        let mut about = About { facts, record: Some(tracked), change: None, lead: None };
        let lead = match Place::of(&terms, interval, resource, now) {
            Place::Undated => return self.end(before.clone(), Resolution::RescheduledOut, facts, Some(tracked), Some(rule)),
            Place::Passed => return self.end(before.clone(), Resolution::Passed, facts, Some(tracked), Some(rule)),
            Place::Beyond if interval != before.due => {
                return self.end(before.clone(), Resolution::RescheduledOut, facts, Some(tracked), Some(rule));
            }
            // Neither the record moved nor the rule changed: the clock was set back, and will come here again.
            Place::Beyond if terms.within.iter().any(|lead| is_told(&before.leads, lead)) => return,
            Place::Beyond => return self.end(before.clone(), Resolution::Cleared, facts, Some(tracked), Some(rule)),
            Place::Seen(lead) => lead,
        };
        about.lead = lead;
        let scope = about.scope(now);
        if !rule.covers(&scope) {
            return self.end(before.clone(), Resolution::RuleGone, facts, Some(tracked), Some(rule));
        }
        let truth = rule.holds(&scope);
        if truth == Truth::True {
            self.draft.matched(terms.id, now);
        }

        let mut alert = before.clone();
        alert.name = terms.name.to_owned();
        alert.due = interval;
        let has_moved = before.due != interval;
        if let (Some(old), Some(new)) = (before.due, interval)
            && new.start > old.start
        {
            // What was told for the old date says nothing of the new one: those lead times are told again when they come.
            let holds = |lead: &Lead| new.is_within(now, lead.span);
            alert.leads.retain(|told| terms.within.iter().any(|lead| holds(lead) && is_same(told, lead)));
        }

        if alert.state == AlertState::Pending {
            return match truth {
                Truth::False => self.end(before.clone(), Resolution::Cleared, facts, Some(tracked), Some(rule)),
                Truth::True if now.signed_duration_since(alert.active_at) >= terms.hold => self.fire(rule, &about, alert, false),
                _ => self.keep(&terms, before, alert, resource),
            };
        }

        if truth != Truth::True && rule.clears(&scope) {
            let since = *alert.false_since.get_or_insert(now);
            if now.signed_duration_since(since) >= terms.keep_firing_for {
                return self.end(before.clone(), Resolution::Cleared, facts, Some(tracked), Some(rule));
            }
            return self.keep(&terms, before, alert, resource);
        }
        if matches!(truth, Truth::Missing(_)) && alert.false_since.is_some() {
            // It had ceased to hold, and now cannot be told: it stays as it was.
            return self.keep(&terms, before, alert, resource);
        }
        alert.false_since = None;
        if truth == Truth::True {
            alert.level = rule.level(&scope);
        }
        if let Some(lead) = lead.filter(|lead| !is_told(&alert.leads, lead)) {
            alert.leads = terms.leads(interval, now);
            let due = interval.map(|interval| iso(interval.start)).unwrap_or_default();
            let transition = format!("lead {}@{due}", lead.text);
            let reason = format!("lead {}", lead.text);
            self.render(rule, &about, &mut alert);
            return self.tell(&terms, &about, alert, false, NoticeKind::Reminder, transition, &reason);
        }
        if alert.level > before.level {
            // Once for each level of an episode: a value that swings around a threshold is told when it first crosses it.
            let level = alert.level.map_or(0, |level| level.saturating_add(1));
            let word = format!("level {level}");
            self.render(rule, &about, &mut alert);
            return self.tell(&terms, &about, alert, false, NoticeKind::Reminder, word.clone(), &word);
        }
        if has_moved || alert.level != before.level {
            self.render(rule, &about, &mut alert);
        }
        self.keep(&terms, before, alert, resource);
    }

    /// A burn, a buyback or a round that is new.
    fn arrival<J: Judge>(&mut self, rule: &J, facts: &TokenFacts<'_>, tracked: &Tracked, resource: Resource) {
        let terms = rule.terms();
        let interval = tracked.record.interval();
        // What has no date cannot be said to be old.
        if interval.is_some_and(|interval| self.now.signed_duration_since(interval.start) > terms.since) {
            return;
        }
        let about = About { facts, record: Some(tracked), change: None, lead: None };
        let subject = format!("{resource}/{}/{}", facts.token.id, tracked.key);
        self.event(rule, &about, subject, resource, Some(tracked.key.clone()), "added");
    }

    /// A change.
    fn change<J: Judge>(&mut self, rule: &J, facts: &TokenFacts<'_>, change: &Change, resource: Resource, ordinal: u32) {
        let key = change.key.as_ref().map_or("series", RecordKey::as_str);
        let record =
            change.new.as_ref().or(change.old.as_ref()).map(|record| Tracked { key: key.into(), record: record.clone() });
        let about = About { facts, record: record.as_ref(), change: Some(change), lead: None };
        let polled_at = iso(facts.polled_at(resource).unwrap_or(self.now));
        let subject = format!("change/{}/{resource}/{}/{key}/{polled_at}#{ordinal}", facts.token.id, change.kind);
        self.event(rule, &about, subject, resource, change.key.clone(), change.kind.as_str());
    }

    /// Something that happens once.
    fn event<J: Judge>(
        &mut self,
        rule: &J,
        about: &About<'_>,
        subject: String,
        resource: Resource,
        key: Option<RecordKey>,
        reason: &str,
    ) {
        let terms = rule.terms();
        let scope = about.scope(self.now);
        if !rule.covers(&scope) || rule.holds(&scope) != Truth::True {
            return;
        }
        self.draft.matched(terms.id, self.now);
        let mut alert = self.alert(&terms, about.facts, subject, AlertState::Event, resource, key);
        alert.starts_at = Some(self.now);
        alert.level = rule.level(&scope);
        alert.due = about.record.and_then(|tracked| tracked.record.interval());
        // Its subject happens once, so there is no second episode to ask for.
        alert.episode = 1;
        alert.id = alert_id(&alert.rule, &alert.subject, 1);
        self.render(rule, about, &mut alert);
        self.tell(&terms, about, alert, false, NoticeKind::Event, "event".to_owned(), reason);
    }

    /// An alert ends. Those who were told that it fires are told, with the text as it reads now and the labels they know.
    fn end<J: Judge>(
        &mut self,
        mut alert: Alert,
        why: Resolution,
        facts: &TokenFacts<'_>,
        record: Option<&Tracked>,
        rule: Option<&J>,
    ) {
        let was_firing = alert.state == AlertState::Firing;
        let about = About { facts, record, change: None, lead: None };
        if let Some(rule) = rule.filter(|_| why != Resolution::RuleGone) {
            let rendered = rule.render(&about.scope(self.now), alert.level);
            self.draft.template_failed(&alert.rule, rendered.error);
            alert.annotations = rendered.annotations;
        }
        if let Some(tracked) = record {
            alert.due = tracked.record.interval();
        }
        alert.state = AlertState::Resolved;
        alert.resolution = Some(why);
        alert.ends_at = Some(self.now);
        alert.false_since = None;
        alert.recheck_at = None;
        alert.updated_at = self.now;
        let receivers: Vec<_> = alert.told.iter().filter(|receiver| self.routes.tells_ends_to(receiver)).cloned().collect();
        if was_firing && !receivers.is_empty() {
            let body = about.body(&alert, "resolved", why.as_str(), self.now);
            let urgency = Urgency::of(record.map(|tracked| &tracked.record), self.now);
            let alert_index = self.draft.alerts.len();
            let transition = "resolved".to_owned();
            self.draft.tells.push(Tell { alert: alert_index, kind: NoticeKind::Resolved, transition, receivers, body, urgency });
        }
        self.draft.alerts.push(Sketch { alert, is_opening: false });
    }

    /// Nothing is told; what moved on silently is written.
    fn keep(&mut self, terms: &Terms<'_>, before: &Alert, mut alert: Alert, resource: Resource) {
        alert.recheck_at = recheck(terms, &alert, resource, self.now);
        if alert != *before {
            self.draft.alerts.push(Sketch { alert, is_opening: false });
        }
    }

    /// Puts an alert into the draft with what is told of it now.
    #[expect(clippy::too_many_arguments, reason = "all of it makes one notice, and each caller has all of it at hand")]
    fn tell(
        &mut self,
        terms: &Terms<'_>,
        about: &About<'_>,
        mut alert: Alert,
        is_opening: bool,
        kind: NoticeKind,
        transition: String,
        reason: &str,
    ) {
        if alert.state == AlertState::Firing
            && let Some(resource) = alert.resource
        {
            alert.recheck_at = recheck(terms, &alert, resource, self.now);
        }
        let receivers = terms.audience(self.routes, &alert.labels);
        let body = about.body(&alert, "firing", reason, self.now);
        let urgency = Urgency::of(about.record.map(|tracked| &tracked.record), self.now);
        self.draft.tells.push(Tell { alert: self.draft.alerts.len(), kind, transition, receivers, body, urgency });
        self.draft.alerts.push(Sketch { alert, is_opening });
    }

    fn render<J: Judge>(&mut self, rule: &J, about: &About<'_>, alert: &mut Alert) {
        let rendered = rule.render(&about.scope(self.now), alert.level);
        self.draft.template_failed(&alert.rule, rendered.error);
        alert.relabel(rendered.labels);
        alert.annotations = rendered.annotations;
        alert.updated_at = self.now;
    }

    fn alert(
        &self,
        terms: &Terms<'_>,
        facts: &TokenFacts<'_>,
        subject: String,
        state: AlertState,
        resource: Resource,
        key: Option<RecordKey>,
    ) -> Alert {
        let mut alert = blank(terms.id.clone(), terms.name, subject, state, self.now);
        alert.token = Some(facts.token.id.clone());
        alert.resource = Some(resource);
        alert.key = key;
        alert
    }
}

/// What is told again of an alert that still fires, with its text as it reads now; none where its rule or its record is gone, or it
/// is about no record.
#[must_use]
pub fn retell(alert: &Alert, facts: &TokenFacts<'_>, context: &Context<'_>) -> Option<AlertBody> {
    let rule = context.rules.rules.iter().find(|rule| rule.id == alert.rule)?;
    let key = alert.key.as_ref()?;
    let record = facts.records.iter().find(|tracked| tracked.key == *key && Some(tracked.record.resource()) == alert.resource)?;
    let about = About { facts, record: Some(record), change: None, lead: None };
    let mut alert = alert.clone();
    alert.annotations = rule.render(&about.scope(context.now), alert.level).annotations;
    Some(about.body(&alert, "firing", "repeat", context.now))
}

/// An alert of which nothing but its identity is known yet.
pub(crate) fn blank(rule: RuleId, name: &str, subject: String, state: AlertState, now: Timestamp) -> Alert {
    Alert {
        id: AlertId::from(""),
        rule,
        name: name.to_owned(),
        subject,
        episode: 0,
        state,
        resolution: None,
        token: None::<TokenId>,
        resource: None,
        key: None,
        level: None,
        labels: Labels::new(),
        former_labels: Vec::new(),
        annotations: BTreeMap::new(),
        told: Vec::new(),
        leads: Vec::new(),
        members: Vec::new(),
        active_at: now,
        starts_at: None,
        ends_at: None,
        false_since: None,
        due: None,
        recheck_at: None,
        updated_at: now,
    }
}

/// What is told of an alert that is about no record.
pub(crate) fn plain_body(alert: &Alert, status: &str, reason: &str, now: Timestamp) -> AlertBody {
    AlertBody {
        id: alert.id.clone(),
        rule: alert.name.clone(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        labels: alert.labels.clone(),
        former_labels: alert.former_labels.clone(),
        annotations: alert.annotations.clone(),
        starts_at: alert.starts_at.unwrap_or(now),
        ends_at: alert.ends_at,
        token: None,
        resource: None,
        record: None,
        change: None,
        days_until: None,
        when: None,
        lead: None,
        event: None,
        series: Vec::new(),
        source: SourceBody::default(),
    }
}

/// Whether a lead time was told, also where the rule now writes it differently (`7d`, `1w`).
fn is_told(told: &[String], lead: &Lead) -> bool {
    told.iter().any(|text| is_same(text, lead))
}

fn is_same(text: &str, lead: &Lead) -> bool {
    text == lead.text || text.parse::<Span>().is_ok_and(|span| span.delta() == lead.span)
}

/// The next instant at which time alone may move an open alert on. A condition that reads the clock may turn at any time: such
/// alerts are due for a look at every tick, which an instant that is already past says without being written again and again.
fn recheck(terms: &Terms<'_>, alert: &Alert, resource: Resource, now: Timestamp) -> Option<Timestamp> {
    if terms.is_clock_dependent {
        return Some(alert.active_at);
    }
    let end = alert.due.map(|due| end_of(terms, due, resource));
    let fires = (alert.state == AlertState::Pending).then(|| alert.active_at.checked_add_signed(terms.hold)).flatten();
    let clears = alert.false_since.and_then(|since| since.checked_add_signed(terms.keep_firing_for));
    let next_lead = alert.due.filter(|_| alert.state == AlertState::Firing).and_then(|due| {
        let untold = terms.within.iter().filter(|lead| !is_told(&alert.leads, lead));
        untold.filter_map(|lead| due.start.checked_sub_signed(lead.span)).min()
    });
    let next_edge = alert.due.and_then(|due| {
        let turns = terms.edges.iter().filter_map(|days| {
            let from = if *days > 0.0 { due.start } else { due.end };
            from.checked_sub_signed(span_of_days(*days)?)
        });
        // `<` turns just after `<=` does.
        turns.flat_map(|at| [at, at + EDGE_SLACK]).filter(|at| *at > now).min()
    });
    [end, fires, clears, next_lead, next_edge, terms.expires].into_iter().flatten().min()
}

#[cfg(test)]
mod tests;

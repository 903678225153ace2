use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use chrono::{DateTime, TimeDelta, Utc};

use super::{recheck::windows_of, *};
use model::config::{self, Span};
use model::wire::{self, CliffAllocation, CliffUnlocks, Maybe, UnlockEvent};
use model::{AlertId, AlertState, ChangeKind, Labels, Notification, Precision, ReceiverName, Record, TokenId};
use rules::{Lead, Rendered, Scope, Truth};

/// A rule whose conditions are closures.
struct Fake {
    id: RuleId,
    name: String,
    on: On,
    within: Vec<Lead>,
    since: TimeDelta,
    hold: TimeDelta,
    keep: TimeDelta,
    limit: Option<u32>,
    receivers: Vec<ReceiverName>,
    expires: Option<Timestamp>,
    is_clock_dependent: bool,
    covers: fn(&Scope<'_>) -> bool,
    holds: fn(&Scope<'_>) -> Truth,
    clears: Option<fn(&Scope<'_>) -> bool>,
    level: fn(&Scope<'_>) -> Option<u32>,
    template_error: Option<String>,
}

fn rule(name: &str, on: On) -> Fake {
    Fake {
        id: name.into(),
        name: name.to_owned(),
        on,
        within: Vec::new(),
        since: TimeDelta::days(7),
        hold: TimeDelta::zero(),
        keep: TimeDelta::zero(),
        limit: None,
        receivers: Vec::new(),
        expires: None,
        is_clock_dependent: false,
        covers: |_| true,
        holds: |_| Truth::True,
        clears: None,
        level: |_| None,
        template_error: None,
    }
}

fn ahead(name: &str, within: &[&str]) -> Fake {
    Fake { within: within.iter().map(|text| lead(text)).collect(), ..rule(name, On::Record(Resource::Unlock)) }
}

fn lead(text: &str) -> Lead {
    Lead { text: text.to_owned(), span: text.parse::<Span>().expect("a span").delta() }
}

/// USD that unlock: what the conditions of these tests look at.
fn value(scope: &Scope<'_>) -> Option<f64> {
    match &scope.record?.record {
        Record::Unlock(event) => event.cliff_value(),
        Record::Burn(burn) => burn.value.copied(),
        _ => None,
    }
}

fn at_least(scope: &Scope<'_>, threshold: f64) -> Truth {
    match value(scope) {
        None => Truth::Missing(vec!["cliffValue"]),
        Some(value) if value >= threshold => Truth::True,
        Some(_) => Truth::False,
    }
}

impl RuleEval for Fake {
    fn terms(&self) -> RuleTerms<'_> {
        RuleTerms {
            id: &self.id,
            name: &self.name,
            on: self.on,
            within: &self.within,
            since: self.since,
            hold: self.hold,
            keep_firing_for: self.keep,
            limit: self.limit,
            receivers: &self.receivers,
            expires: self.expires,
            is_clock_dependent: self.is_clock_dependent,
            edges: &[],
        }
    }
    fn covers(&self, scope: &Scope<'_>) -> bool {
        (self.covers)(scope)
    }
    fn holds(&self, scope: &Scope<'_>) -> Truth {
        (self.holds)(scope)
    }
    fn clears(&self, scope: &Scope<'_>) -> bool {
        self.clears.map_or_else(|| (self.holds)(scope) == Truth::False, |clears| clears(scope))
    }
    fn level(&self, scope: &Scope<'_>) -> Option<u32> {
        (self.level)(scope)
    }
    fn render(&self, scope: &Scope<'_>, level: Option<u32>) -> Rendered {
        let mut labels = Labels::from([
            ("alertname".to_owned(), self.name.clone()),
            ("severity".to_owned(), if level.is_some() { "critical" } else { "warning" }.to_owned()),
        ]);
        if let Some(token) = scope.token {
            labels.insert("token".to_owned(), token.id.to_string());
        }
        let lead = scope.lead.map_or("none", |lead| &lead.text);
        let annotations = BTreeMap::from([("summary".to_owned(), format!("{:?} lead {lead}", value(scope)))]);
        Rendered { labels, annotations, error: self.template_error.clone() }
    }
}

/// A token, its alerts as the store keeps them, and all that was told of it.
struct World {
    rules: Vec<Fake>,
    routes: RouteTree,
    tokens: Vec<Known>,
    resources: Vec<Resource>,
    alerts: BTreeMap<AlertId, Alert>,
    told: BTreeMap<model::supply::NotificationId, Notification>,
}

struct Known {
    token: Token,
    is_watched: bool,
    records: Vec<Tracked>,
    changes: Vec<Change>,
    added: Vec<Tracked>,
}

fn token(id: &str) -> Known {
    let token = Token::unknown(id.into());
    Known { token, is_watched: true, records: Vec::new(), changes: Vec::new(), added: Vec::new() }
}

fn routes() -> RouteTree {
    let receiver =
        |name: &str, send_resolved| config::ReceiverSettings { name: name.into(), send_resolved, ..Default::default() };
    let critical = config::Route {
        matchers: vec!["severity=critical".into()],
        receivers: vec!["ops".into(), "desk".into()],
        ..Default::default()
    };
    let root = config::Route { receivers: vec!["ops".into()], routes: vec![critical], ..Default::default() };
    RouteTree::build(&root, &[receiver("ops", None), receiver("desk", None), receiver("quiet", Some(false))]).expect("routes")
}

impl World {
    fn new(rules: Vec<Fake>) -> Self {
        Self {
            rules,
            routes: routes(),
            tokens: vec![token("arbitrum")],
            resources: Resource::ALL.to_vec(),
            alerts: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    fn record(&mut self, key: &str, record: Record) {
        let records = &mut self.tokens[0].records;
        records.retain(|tracked| tracked.key.as_str() != key);
        records.push(Tracked { key: key.into(), record });
    }

    fn unlock(&mut self, key: &str, date: &str, value: f64) {
        self.record(key, unlock(date, Some(value)));
    }

    /// Judges and commits, as a cycle does; what is told now that was not told before, in words.
    fn tick(&mut self, now: &str) -> Vec<String> {
        let evaluation = self.evaluate(time(now));
        self.commit(evaluation)
    }

    fn evaluate(&self, now: Timestamp) -> Evaluation {
        let open: Vec<Vec<Alert>> = self
            .tokens
            .iter()
            .map(|known| {
                let is_open = |alert: &&Alert| matches!(alert.state, AlertState::Pending | AlertState::Firing);
                self.alerts
                    .values()
                    .filter(is_open)
                    .filter(|alert| alert.token.as_ref() == Some(&known.token.id))
                    .cloned()
                    .collect()
            })
            .collect();
        let polled: Vec<_> = Resource::ALL.map(|resource| (resource, now)).to_vec();
        let facts: Vec<_> = self
            .tokens
            .iter()
            .zip(&open)
            .map(|(known, alerts)| TokenFacts {
                token: &known.token,
                is_watched: known.is_watched,
                records: &known.records,
                resources: &self.resources,
                changes: &known.changes,
                added: &known.added,
                late: &[],
                alerts,
                polled_at: &polled,
            })
            .collect();
        let mut limits = Limits::default();
        let transitions = evaluate_by(&facts, &self.rules, &self.routes, now, &mut limits).join(limits.summaries(now));
        let latest: Vec<u32> = transitions
            .openings()
            .iter()
            .map(|(rule, subject)| {
                let same = self.alerts.values().filter(|alert| alert.rule == *rule && alert.subject == *subject);
                same.map(|alert| alert.episode).max().unwrap_or(0)
            })
            .collect();
        transitions.assign_episodes(&latest)
    }

    fn commit(&mut self, evaluation: Evaluation) -> Vec<String> {
        for alert in evaluation.alerts {
            self.alerts.insert(alert.id.clone(), alert);
        }
        let mut told = Vec::new();
        for notification in evaluation.notifications {
            assert!(self.alerts.contains_key(&notification.alert), "a notification of an alert that is not there");
            assert_eq!(notification.alert, notification.body.id);
            if !self.told.contains_key(&notification.id) {
                told.push(words(&notification));
                self.told.insert(notification.id.clone(), notification);
            }
        }
        told
    }

    fn only(&self) -> &Alert {
        assert_eq!(self.alerts.len(), 1, "{:?}", self.alerts);
        self.alerts.values().next().expect("an alert")
    }
}

/// `firing lead 7d → ops`.
fn words(notification: &Notification) -> String {
    let receivers: Vec<_> = notification.receivers.iter().map(ReceiverName::as_str).collect();
    let kind = notification.kind.as_str().trim_start_matches("alert.");
    format!("{kind} {} → {}", notification.body.reason, receivers.join("+"))
}

fn time(text: &str) -> Timestamp {
    wire::parse_timestamp(text).expect("a timestamp")
}

fn unlock(date: &str, value: Option<f64>) -> Record {
    unlock_exact(Some(date), value, "second")
}

fn unlock_exact(date: Option<&str>, value: Option<f64>, precision: &str) -> Record {
    let part = CliffAllocation { unlock_precision: precision.to_owned().into(), ..Default::default() };
    Record::Unlock(Arc::new(UnlockEvent {
        unlock_date: Maybe::or_null(date.map(time)),
        data_source: "whitepaper".to_owned().into(),
        cliff_unlocks: CliffUnlocks {
            cliff_value: Maybe::or_null(value),
            allocation_breakdown: vec![part].into(),
            ..Default::default()
        }
        .into(),
        ..Default::default()
    }))
}

fn burn(date: &str, value: f64) -> Record {
    Record::Burn(Box::new(wire::Burn { burn_date: time(date).into(), value: value.into(), ..Default::default() }))
}

const NOTHING: [&str; 0] = [];

#[test]
fn each_lead_time_is_told_once_and_the_end_too() {
    let mut world = World::new(vec![ahead("Big", &["30d", "7d", "1d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-02-01"), NOTHING);
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"]);
    assert_eq!(world.tick("2026-03-01T00:01:00Z"), NOTHING);
    assert_eq!(world.tick("2026-03-24"), ["reminder lead 7d → ops"]);
    assert_eq!(world.tick("2026-03-25"), NOTHING);
    assert_eq!(world.tick("2026-03-30"), ["reminder lead 1d → ops"]);
    assert_eq!(world.tick("2026-03-30T23:59:59Z"), NOTHING);
    assert_eq!(world.tick("2026-03-31"), ["resolved passed → ops"]);
    assert_eq!(world.tick("2026-04-01"), NOTHING);
    let alert = world.only();
    assert_eq!((alert.state, alert.resolution, alert.episode), (AlertState::Resolved, Some(Resolution::Passed), 1));
    assert_eq!(alert.subject, "unlock/arbitrum/a");
}

#[test]
fn first_sight_tells_only_the_smallest_lead_that_holds() {
    let mut world = World::new(vec![ahead("Big", &["30d", "7d", "1d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-26"), ["firing lead 7d → ops"]);
    assert_eq!(world.only().leads, ["30d", "7d"]);
    assert_eq!(world.tick("2026-03-30"), ["reminder lead 1d → ops"]);
}

#[test]
fn reminders_that_passed_during_downtime_collapse_into_the_latest() {
    let mut world = World::new(vec![ahead("Big", &["30d", "7d", "3d", "1d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"]);
    assert_eq!(world.tick("2026-03-30T12:00:00Z"), ["reminder lead 1d → ops"]);
}

#[test]
fn a_record_moved_later_is_told_again_when_its_lead_times_come_again() {
    let mut world = World::new(vec![ahead("Big", &["30d", "7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
    world.unlock("a", "2026-04-10", 5e6);
    assert_eq!(world.tick("2026-03-26"), NOTHING);
    assert_eq!(world.only().leads, ["30d"]);
    assert_eq!(world.tick("2026-04-03"), ["reminder lead 7d → ops"]);
    world.unlock("a", "2026-04-12", 5e6);
    assert_eq!(world.tick("2026-04-04"), NOTHING, "the seven days hold again only tomorrow");
    assert_eq!(world.tick("2026-04-05"), ["reminder lead 7d → ops"], "of another date, so it is another message");
    world.unlock("a", "2026-04-11", 5e6);
    assert_eq!(world.tick("2026-04-06"), NOTHING, "moved nearer within the lead time that was told");
}

#[test]
fn a_lead_time_is_told_again_for_a_record_that_moved_out_and_back() {
    let mut world = World::new(vec![ahead("Big", &["30d", "7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-01"), ["firing lead 30d → ops"]);
    assert_eq!(world.tick("2026-03-24"), ["reminder lead 7d → ops"]);
    for day in ["2026-03-25", "2026-03-27"] {
        world.unlock("a", "2026-04-20", 5e6);
        assert_eq!(world.tick(&format!("{day}T06:00:00Z")), NOTHING);
        world.unlock("a", "2026-03-31", 5e6);
        assert_eq!(world.tick(&format!("{day}T12:00:00Z")), ["reminder lead 7d → ops"], "each time");
    }
    assert_eq!(world.tick("2026-03-28"), NOTHING);
}

#[test]
fn a_record_moved_out_of_the_window_ends_and_comes_back_as_a_new_episode() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
    world.unlock("a", "2026-06-30", 5e6);
    let evaluation = world.evaluate(time("2026-03-26"));
    let told: Vec<_> = evaluation.notifications.iter().map(|of| (of.body.when.as_deref(), of.body.lead.as_deref())).collect();
    assert_eq!(told, [(Some("on 30 Jun 2026"), Some("7d"))], "where it went, and which lead time it left");
    assert_eq!(world.commit(evaluation), ["resolved rescheduled out → ops"]);
    assert_eq!(world.tick("2026-06-23"), ["firing lead 7d → ops"]);
    let episodes: BTreeSet<_> = world.alerts.values().map(|alert| alert.episode).collect();
    assert_eq!(episodes, BTreeSet::from([1, 2]));
}

#[test]
fn an_undecided_date_matches_no_window_and_ends_what_fires() {
    let mut world = World::new(vec![ahead("Big", &["7d"]), ahead("Any", &[])]);
    world.record("a", unlock_exact(Some("2026-03-28"), Some(5e6), "To Be Determined"));
    world.record("b", unlock_exact(None, Some(5e6), "second"));
    assert_eq!(world.tick("2026-03-25"), NOTHING);
    world.unlock("a", "2026-03-28", 5e6);
    assert_eq!(world.tick("2026-03-25").len(), 2);
    world.record("a", unlock_exact(Some("2026-03-28"), Some(5e6), "To Be Determined"));
    assert_eq!(world.tick("2026-03-26"), ["resolved rescheduled out → ops"; 2]);
}

#[test]
fn a_month_is_within_seven_days_when_it_begins_within_seven_days_and_over_when_it_ends() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.record("a", unlock_exact(Some("2026-03-16"), Some(5e6), "month"));
    assert_eq!(world.tick("2026-02-21"), NOTHING);
    assert_eq!(world.tick("2026-02-22"), ["firing lead 7d → ops"]);
    let body = &world.told.values().next().expect("a notification").body;
    assert_eq!(body.when.as_deref(), Some("in March 2026"));
    assert_eq!(world.tick("2026-03-31"), NOTHING);
    assert_eq!(world.tick("2026-04-01"), ["resolved passed → ops"]);
    assert_eq!(world.only().due.map(|due| due.precision), Some(Precision::Month));
}

#[test]
fn a_missing_field_neither_raises_nor_ends() {
    let mut world = World::new(vec![Fake { holds: |scope| at_least(scope, 1e6), ..ahead("Big", &["7d", "1d"]) }]);
    world.record("a", unlock("2026-03-31", None));
    assert_eq!(world.tick("2026-03-25"), NOTHING);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-26"), ["firing lead 7d → ops"]);
    world.record("a", unlock("2026-03-31", None));
    assert_eq!(world.tick("2026-03-27"), NOTHING);
    assert_eq!(world.only().state, AlertState::Firing);
    assert_eq!(world.tick("2026-03-30"), ["reminder lead 1d → ops"], "the unlock still comes nearer");
    world.unlock("a", "2026-03-31", 5e5);
    assert_eq!(world.tick("2026-03-30T01:00:00Z"), ["resolved cleared → ops"]);
}

#[test]
fn a_proven_removal_ends_an_alert_only_where_the_resource_was_read() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    world.tick("2026-03-25");
    world.tokens[0].records.clear();
    world.resources = vec![Resource::Burn];
    assert_eq!(world.tick("2026-03-26"), NOTHING);
    world.resources = vec![Resource::Unlock];
    assert_eq!(world.tick("2026-03-26"), ["resolved removed → ops"]);
}

#[test]
fn an_alert_ends_with_its_rule() {
    type Change = fn(&mut World);
    let ways: [Change; 5] = [
        |world| world.rules.clear(),
        |world| world.rules[0].expires = Some(time("2026-03-26")),
        |world| world.rules[0].covers = |_| false,
        |world| world.rules[0].on = On::Change(Resource::Unlock, None),
        |world| world.tokens[0].is_watched = false,
    ];
    for (at, way) in ways.into_iter().enumerate() {
        let why = if at < 4 { "resolved rule gone → ops" } else { "resolved not watched any more → ops" };
        let mut world = World::new(vec![ahead("Big", &["7d"])]);
        world.unlock("a", "2026-03-31", 5e6);
        world.tick("2026-03-25");
        way(&mut world);
        assert_eq!(world.tick("2026-03-26"), [why]);
        assert_eq!(world.tick("2026-03-27"), NOTHING);
    }
}

#[test]
fn a_rule_that_rests_raises_nothing() {
    let mut world = World::new(vec![Fake { expires: Some(time("2026-03-25")), ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), NOTHING);
    assert!(world.alerts.is_empty());
}

#[test]
fn for_asks_the_condition_to_hold_that_long() {
    let hold = TimeDelta::hours(1);
    let mut world = World::new(vec![Fake { hold, holds: |scope| at_least(scope, 1e6), ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25T00:00:00Z"), NOTHING);
    assert_eq!((world.only().state, world.only().recheck_at), (AlertState::Pending, Some(time("2026-03-25T01:00:00Z"))));
    world.unlock("a", "2026-03-31", 5e5);
    assert_eq!(world.tick("2026-03-25T00:30:00Z"), NOTHING, "what never fired ends in silence");
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25T00:40:00Z"), NOTHING);
    assert_eq!(world.tick("2026-03-25T01:39:59Z"), NOTHING);
    assert_eq!(world.tick("2026-03-25T01:40:00Z"), ["firing lead 7d → ops"]);
    let firing = world.alerts.values().find(|alert| alert.state == AlertState::Firing).expect("it fires");
    assert_eq!((firing.episode, firing.active_at), (2, time("2026-03-25T00:40:00Z")));
}

#[test]
fn keep_firing_for_bridges_a_gap() {
    let keep = TimeDelta::hours(1);
    let mut world = World::new(vec![Fake { keep, holds: |scope| at_least(scope, 1e6), ..ahead("Big", &["7d", "6d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    world.tick("2026-03-24T23:00:00Z");
    world.unlock("a", "2026-03-31", 5e5);
    assert_eq!(world.tick("2026-03-24T23:30:00Z"), NOTHING);
    assert_eq!(world.only().recheck_at, Some(time("2026-03-25")), "the next lead time comes before the gap counts as the end");
    assert_eq!(world.tick("2026-03-25T00:00:00Z"), NOTHING, "no reminder of what does not hold now");
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25T00:10:00Z"), ["reminder lead 6d → ops"]);
    world.unlock("a", "2026-03-31", 5e5);
    assert_eq!(world.tick("2026-03-25T01:00:00Z"), NOTHING);
    assert_eq!(world.tick("2026-03-25T01:59:59Z"), NOTHING);
    assert_eq!(world.tick("2026-03-25T02:00:00Z"), ["resolved cleared → ops"]);
}

#[test]
fn clear_when_keeps_an_alert_until_it_is_well_below() {
    let clears: fn(&Scope<'_>) -> bool = |scope| value(scope).is_some_and(|value| value < 5e5);
    let mut world = World::new(vec![Fake { holds: |scope| at_least(scope, 1e6), clears: Some(clears), ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 2e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
    world.unlock("a", "2026-03-31", 7e5);
    assert_eq!(world.tick("2026-03-26"), NOTHING);
    world.unlock("a", "2026-03-31", 4e5);
    assert_eq!(world.tick("2026-03-27"), ["resolved cleared → ops"]);
    world.unlock("a", "2026-03-31", 7e5);
    assert_eq!(world.tick("2026-03-28"), NOTHING);
}

#[test]
fn a_higher_level_is_told_and_a_lower_one_is_not() {
    let level: fn(&Scope<'_>) -> Option<u32> = |scope| value(scope).filter(|value| *value >= 1e7).map(|_| 0);
    let mut world = World::new(vec![Fake { level, ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
    world.unlock("a", "2026-03-31", 2e7);
    assert_eq!(world.tick("2026-03-26"), ["reminder level 1 → ops+desk"]);
    let called_before =
        |world: &World| -> Vec<String> { world.only().former_labels.iter().map(|labels| labels["severity"].clone()).collect() };
    assert_eq!(called_before(&world), ["warning"], "whoever knows it by its labels has to hear of the old ones too");
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-27"), NOTHING);
    assert_eq!(world.only().labels["severity"], "warning");
    assert_eq!(called_before(&world), ["critical"]);
    world.unlock("a", "2026-03-31", 2e7);
    assert_eq!(world.tick("2026-03-28"), NOTHING, "it was told of this level in this episode");
    assert_eq!(world.tick("2026-03-31"), ["resolved passed → ops+desk"], "the end goes to all who heard of it");
}

#[test]
fn the_end_is_not_told_to_receivers_that_do_not_want_it() {
    let receivers = vec!["quiet".into(), "ops".into(), "gone".into()];
    let mut world = World::new(vec![Fake { receivers, ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → quiet+ops"]);
    assert_eq!(world.tick("2026-03-31"), ["resolved passed → ops"]);
}

#[test]
fn an_alert_that_nobody_hears_is_recorded() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.routes = RouteTree::default();
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → "]);
    assert_eq!(world.only().state, AlertState::Firing);
    assert_eq!(world.tick("2026-03-31"), NOTHING);
    assert_eq!(world.only().state, AlertState::Resolved);
}

#[test]
fn a_clock_set_back_tells_nothing_twice() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-24"), ["firing lead 7d → ops"]);
    assert_eq!(world.tick("2026-03-23T23:59:58Z"), NOTHING);
    assert_eq!(world.tick("2026-03-24"), NOTHING);
}

#[test]
fn the_same_lead_time_in_other_words_is_not_told_again() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    assert_eq!(world.tick("2026-03-25"), ["firing lead 7d → ops"]);
    world.rules = vec![ahead("Big", &["1w"])];
    assert_eq!(world.tick("2026-03-26"), NOTHING);
}

#[test]
fn a_narrower_window_clears_what_lies_outside() {
    let mut world = World::new(vec![ahead("Big", &["30d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    world.tick("2026-03-10");
    world.rules = vec![ahead("Big", &["7d"])];
    assert_eq!(world.tick("2026-03-11"), ["resolved cleared → ops"]);
}

#[test]
fn new_burns_are_told_once_unless_they_are_old() {
    let mut world = World::new(vec![Fake { holds: |scope| at_least(scope, 100.0), ..rule("Burn", On::Record(Resource::Burn)) }]);
    for (key, date, value) in [("new", "2026-03-20", 500.0), ("old", "2026-03-01", 500.0), ("dust", "2026-03-20", 1.0)] {
        world.record(key, burn(date, value));
        world.tokens[0].added.push(Tracked { key: key.into(), record: burn(date, value) });
    }
    assert_eq!(world.tick("2026-03-21"), ["event added → ops"]);
    assert_eq!((world.only().subject.as_str(), world.only().state), ("burn/arbitrum/new", AlertState::Event));
    assert_eq!(world.tick("2026-03-21"), NOTHING, "the same poll evaluated twice");
    world.tokens[0].added.clear();
    assert_eq!(world.tick("2026-03-22"), NOTHING);
    assert_eq!(world.alerts.len(), 1);
}

#[test]
fn each_change_that_a_rule_hears_is_one_event() {
    let moved = |key: &str| {
        let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &"arbitrum".into());
        change.key = Some(key.into());
        change.old = Some(unlock("2026-03-31", Some(5e6)));
        change.new = Some(unlock("2026-04-10", Some(5e6)));
        change
    };
    let mut world = World::new(vec![
        rule("Moved", On::Change(Resource::Unlock, Some(ChangeKind::Rescheduled))),
        rule("Any", On::Change(Resource::Unlock, None)),
        rule("Burns", On::Change(Resource::Burn, None)),
    ]);
    let rewritten = Change::of(ChangeKind::Rewritten, Resource::Unlock, &"arbitrum".into());
    world.tokens[0].changes = vec![moved("a"), rewritten, moved("b"), moved("b")];
    let told = world.tick("2026-03-21T10:00:00Z");
    assert_eq!(told.iter().filter(|text| *text == "event rescheduled → ops").count(), 6);
    assert_eq!(told.iter().filter(|text| *text == "event rewritten → ops").count(), 1);
    assert_eq!(world.tick("2026-03-21T10:00:00Z"), NOTHING, "the same poll evaluated twice");
    let subjects: BTreeSet<_> = world.alerts.values().map(|alert| alert.subject.as_str()).collect();
    assert!(subjects.contains("change/arbitrum/unlock/rescheduled/b/2026-03-21T10:00:00Z#2"), "{subjects:?}");
    assert!(subjects.contains("change/arbitrum/unlock/rewritten/series/2026-03-21T10:00:00Z#1"), "{subjects:?}");
    let body = &world.told.values().find(|notification| notification.body.reason == "rescheduled").expect("a notification").body;
    assert_eq!(body.when.as_deref(), Some("on 10 Apr 2026"), "as it is now");
    assert!(body.change.is_some() && body.record.is_some());
    assert_eq!(world.tick("2026-03-22").len(), 7, "the same kind of change another day is another event");
}

#[test]
fn the_body_carries_all_that_is_known() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    world.tick("2026-03-25");
    let notification = world.told.values().next().expect("a notification");
    let body = &notification.body;
    assert_eq!((body.rule.as_str(), body.status.as_str(), body.reason.as_str()), ("Big", "firing", "lead 7d"));
    assert_eq!(body.token.as_ref().map(|token| token.symbol.as_str()), Some("arbitrum"));
    assert_eq!(body.record.as_ref().and_then(|record| record.pointer("/cliffUnlocks/cliffValue")), Some(&serde_json::json!(5e6)));
    assert!(body.days_until.is_some_and(|days| (days - 6.0).abs() < 1e-9));
    assert_eq!((body.lead.as_deref(), body.source.data_source.as_deref()), (Some("7d"), Some("whitepaper")));
    assert_eq!((body.source.polled_at, body.starts_at), (Some(time("2026-03-25")), time("2026-03-25")));
    assert_eq!(notification.at, time("2026-03-25"));
}

#[test]
fn a_limit_tells_the_nearest_and_counts_the_rest_in_one_summary() {
    let mut world = World::new(vec![Fake { limit: Some(2), ..ahead("Big", &["30d", "1d"]) }]);
    world.unlock("far", "2026-03-20", 9e9);
    world.unlock("near", "2026-03-05", 1.0);
    world.unlock("large", "2026-03-10", 2e6);
    world.unlock("small", "2026-03-10", 1e6);
    let mut told = world.tick("2026-03-01");
    told.sort();
    assert_eq!(told, ["event limit → ops", "firing lead 30d → ops", "firing lead 30d → ops"]);
    let keys = |world: &World, told: bool| -> Vec<String> {
        let firing = world.alerts.values().filter(|alert| alert.state == AlertState::Firing && alert.told.is_empty() != told);
        let mut keys: Vec<_> = firing.filter_map(|alert| alert.key.as_ref()).map(ToString::to_string).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&world, true), ["large", "near"]);
    assert_eq!(keys(&world, false), ["far", "small"], "recorded as firing, told to nobody");
    let summary = world.alerts.values().find(|alert| alert.subject == "limit/Big/2026-03-01T00:00:00Z").expect("a summary");
    assert_eq!(summary.annotations["summary"], "Big: 2 more alerts left out by limit = 2; see `cliffwatch alerts --rule Big`");
    assert_eq!(summary.labels["severity"], "warning");
    assert_eq!(world.tick("2026-03-01"), NOTHING);
    world.tokens[0].records.retain(|tracked| tracked.key.as_str() == "near");
    assert_eq!(world.tick("2026-03-02"), ["resolved removed → ops"], "what was left out ends in silence");
    assert_eq!(world.tick("2026-03-04"), ["reminder lead 1d → ops"]);
}

#[test]
fn a_limit_counts_over_all_batches_of_a_cycle() {
    let rules = [Fake { limit: Some(2), ..ahead("Big", &["30d"]) }];
    let (routes, now) = (routes(), time("2026-03-01"));
    let mut limits = Limits::default();
    let mut told = 0;
    let mut left_out = Vec::new();
    for batch in ["a", "b", "c"] {
        let known = token(batch);
        let records = ["one", "two"].map(|key| Tracked { key: key.into(), record: unlock("2026-03-05", Some(1.0)) });
        let facts = TokenFacts {
            token: &known.token,
            is_watched: true,
            records: &records,
            resources: &[Resource::Unlock],
            changes: &[],
            added: &[],
            late: &[],
            alerts: &[],
            polled_at: &[],
        };
        let evaluation = evaluate_by(&[facts], &rules, &routes, now, &mut limits).assign_episodes(&[]);
        told += evaluation.notifications.len();
        left_out.extend(evaluation.left_out);
    }
    assert_eq!(told, 2);
    let is_recorded = |told: &Notification| told.receivers.is_empty() && told.body.left_out_by == Some(2) && told.at == now;
    assert!(left_out.len() == 4 && left_out.iter().all(is_recorded), "{left_out:?}");
    assert!(left_out.iter().all(|told| told.body.id == told.alert && !told.alert.as_str().is_empty()), "{left_out:?}");
    let summary = limits.summaries(now).assign_episodes(&[]);
    assert_eq!(summary.notifications.len(), 1);
    assert!(summary.alerts[0].annotations["summary"].starts_with("Big: 4 more alerts left out by limit = 2"));
}

#[test]
fn emission_rules_look_at_days_until_since_is_over() {
    let day = wire::Emission { start_date: time("2026-03-10").into(), end_date: time("2026-03-11").into(), ..Default::default() };
    let mut world = World::new(vec![rule("Much", On::Record(Resource::Emission))]);
    world.record("2026-03-10", Record::Emission(Box::new(day)));
    assert_eq!(
        world.tick("2026-03-11T02:00:00Z"),
        ["firing firing → ops"],
        "told when the day is over, which is when it is known"
    );
    assert_eq!(world.tick("2026-03-17"), NOTHING);
    assert_eq!(world.tick("2026-03-18"), ["resolved passed → ops"]);
    assert_eq!(world.tick("2026-03-19"), NOTHING);
}

#[test]
fn allocation_rules_fire_while_they_hold() {
    let row = |kind: &str| {
        Record::Allocation(Box::new(wire::Allocation { allocation_type: kind.to_owned().into(), ..Default::default() }))
    };
    let holds: fn(&Scope<'_>) -> Truth = |scope| match scope.record.map(|tracked| &tracked.record) {
        Some(Record::Allocation(row)) if row.allocation_type.as_str() == Some("TBD") => Truth::True,
        _ => Truth::False,
    };
    let mut world = World::new(vec![Fake { holds, ..rule("Undecided", On::Record(Resource::Allocation)) }]);
    world.record("Team", row("TBD"));
    assert_eq!(world.tick("2026-03-11"), ["firing firing → ops"]);
    assert_eq!(world.only().recheck_at, None);
    world.record("Team", row("Scheduled"));
    assert_eq!(world.tick("2026-03-12"), ["resolved cleared → ops"]);
}

#[test]
fn template_errors_are_reported_once_for_each_rule_and_lose_no_alert() {
    let mut world = World::new(vec![Fake { template_error: Some("no such field".into()), ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    world.unlock("b", "2026-03-31", 5e6);
    let evaluation = world.evaluate(time("2026-03-25"));
    assert_eq!(evaluation.notifications.len(), 2);
    assert_eq!(evaluation.template_errors, [("Big".into(), "no such field".to_owned())]);
    assert_eq!(evaluation.rule_matches, [("Big".into(), time("2026-03-25"))]);
}

#[test]
fn an_open_alert_wakes_when_time_changes_something() {
    let mut world = World::new(vec![ahead("Big", &["30d", "7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    world.tick("2026-03-10");
    assert_eq!(world.only().recheck_at, Some(time("2026-03-24")));
    world.tick("2026-03-24");
    assert_eq!(world.only().recheck_at, Some(time("2026-03-31")));
    world.rules[0].is_clock_dependent = true;
    world.tick("2026-03-25");
    assert!(world.only().recheck_at.is_some_and(|at| at <= time("2026-03-25")), "due at every tick");
    let evaluation = world.evaluate(time("2026-03-25T00:01:00Z"));
    assert_eq!(evaluation.alerts, [], "and not written at every tick");
}

#[test]
fn windows_are_what_came_within_a_lead_time() {
    let (until, now) = (time("2026-03-01"), time("2026-03-02"));
    let rules = [ahead("Big", &["30d", "7d"]), ahead("Near", &["6d"]), rule("Burn", On::Record(Resource::Burn))];
    assert_eq!(
        windows_of(&rules, Some(until), now),
        [(time("2026-03-07"), time("2026-03-09")), (time("2026-03-31"), time("2026-04-01"))]
    );
    assert_eq!(windows_of(&rules, Some(now), now), []);
    assert_eq!(windows_of(&rules, Some(now), until), [], "a clock set back opens nothing");
    assert_eq!(windows_of(&rules, None, now), [(time("2026-01-29"), time("2026-04-01"))]);
    let clock = [Fake { is_clock_dependent: true, ..ahead("Clock", &["3d"]) }];
    assert_eq!(windows_of(&clock, Some(until), now), [(time("2026-01-29"), time("2026-03-05"))]);
    let asleep = [Fake { expires: Some(now), ..ahead("Asleep", &["3d"]) }];
    assert_eq!(windows_of(&asleep, None, now), []);
    let any = [ahead("Any", &[])];
    assert_eq!(windows_of(&any, None, now), [(time("2026-01-29"), DateTime::<Utc>::MAX_UTC)]);
    assert_eq!(windows_of(&any, Some(until), now), []);
}

#[test]
fn joined_drafts_keep_each_notice_with_its_alert() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    let now = time("2026-03-25");
    let polled: [(Resource, Timestamp); 0] = [];
    let facts = |known: &'static str| (Token::unknown(known.into()), world.tokens[0].records.clone());
    let (one, two) = (facts("arbitrum"), facts("optimism"));
    let draft = |(token, records): &(Token, Vec<Tracked>)| {
        let facts = TokenFacts {
            token,
            is_watched: true,
            records,
            resources: &[Resource::Unlock],
            changes: &[],
            added: &[],
            late: &[],
            alerts: &[],
            polled_at: &polled,
        };
        evaluate_by(&[facts], &world.rules, &world.routes, now, &mut Limits::default())
    };
    let joined = draft(&one).join(draft(&two));
    assert_eq!(joined.openings().len(), 2);
    let evaluation = joined.assign_episodes(&[0, 4]);
    for notification in &evaluation.notifications {
        let alert = evaluation.alerts.iter().find(|alert| alert.id == notification.alert).expect("its alert");
        assert_eq!(notification.body.token.as_ref().map(|token| token.id.as_str()), alert.token.as_ref().map(TokenId::as_str));
    }
    assert_eq!(evaluation.alerts.iter().map(|alert| alert.episode).collect::<Vec<_>>(), [1, 5]);
}

/// An hour of a history: days since the start, as hours.
fn at_hour(hour: i64) -> Timestamp {
    time("2026-01-01") + TimeDelta::hours(hour)
}

/// What a strategy makes of a schedule: key, hour it is due, value.
fn schedule() -> impl Strategy<Value = Vec<(u8, i64, Option<f64>)>> {
    prop::collection::vec((0_u8..6, 0_i64..2_000, prop::option::of(0.0..2e6_f64)), 0..8)
}

fn fill(world: &mut World, schedule: &[(u8, i64, Option<f64>)]) {
    world.tokens[0].records.clear();
    for (key, hour, value) in schedule {
        world.record(&format!("k{key}"), unlock(&iso(at_hour(*hour)), *value));
    }
}

fn world_of_rules() -> World {
    let level: fn(&Scope<'_>) -> Option<u32> = |scope| value(scope).filter(|value| *value > 1.5e6).map(|_| 0);
    World::new(vec![
        Fake { holds: |scope| at_least(scope, 1e6), level, ..ahead("A", &["30d", "7d", "1d"]) },
        Fake {
            hold: TimeDelta::hours(5),
            keep: TimeDelta::hours(9),
            holds: |scope| at_least(scope, 5e5),
            ..ahead("B", &["14d", "2d"])
        },
        Fake { limit: Some(1), ..ahead("C", &[]) },
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_same_facts_twice_tell_nothing_new(steps in prop::collection::vec((schedule(), 0_i64..400), 1..6)) {
        let mut world = world_of_rules();
        let mut hour = 0;
        for (schedule, wait) in steps {
            hour += wait;
            fill(&mut world, &schedule);
            world.tick(&iso(at_hour(hour)));
            let again = world.evaluate(at_hour(hour));
            // The clock did not move and nothing was told: nothing is written either.
            prop_assert_eq!(again.notifications, vec![]);
            prop_assert_eq!(again.alerts, vec![]);
        }
    }

    #[test]
    fn the_order_of_rules_and_records_changes_nothing(steps in prop::collection::vec((schedule(), 0_i64..400), 1..5), turn in 0_usize..3) {
        let mut straight = world_of_rules();
        let mut turned = world_of_rules();
        turned.rules.rotate_left(turn);
        let mut hour = 0;
        for (schedule, wait) in steps {
            hour += wait;
            fill(&mut straight, &schedule);
            fill(&mut turned, &schedule);
            turned.tokens[0].records.reverse();
            let (one, other) = (straight.evaluate(at_hour(hour)), turned.evaluate(at_hour(hour)));
            prop_assert_eq!(&one, &other);
            straight.commit(one);
            turned.commit(other);
        }
    }

    #[test]
    fn every_lead_time_is_told_at_most_once_and_the_last_one_is_never_missed(due in 0_i64..2_000, mut hours in prop::collection::vec(0_i64..2_000, 1..60)) {
        let leads = [("30d", 720), ("7d", 168), ("1d", 24)];
        let mut world = World::new(vec![ahead("Big", &["30d", "7d", "1d"])]);
        world.unlock("a", &iso(at_hour(due)), 5e6);
        hours.sort_unstable();
        let mut told = BTreeSet::new();
        for hour in hours {
            let new = world.tick(&iso(at_hour(hour)));
            prop_assert!(new.len() <= 1, "one message for one look: {:?}", new);
            let smallest = leads.iter().rev().find(|(_, ahead)| hour < due && due - ahead <= hour);
            for text in new.iter().filter(|text| !text.starts_with("resolved")) {
                let (name, _) = smallest.expect("only what holds is told");
                let expected = format!("lead {name} ");
                prop_assert!(text.contains(&expected));
                prop_assert!(told.insert(*name), "{} told twice", name);
            }
            if let Some((name, _)) = smallest {
                prop_assert!(told.contains(name), "at hour {} of {} lead {} holds and was not told", hour, due, name);
            }
        }
    }

    #[test]
    fn windows_and_wake_up_times_miss_nothing(schedule in schedule(), mut hours in prop::collection::vec(0_i64..2_500, 2..40)) {
        // One world is looked at in full at each tick, the other only where windows and wake-up times say so.
        hours.sort_unstable();
        let mut full = world_of_rules();
        let mut lazy = world_of_rules();
        fill(&mut full, &schedule);
        fill(&mut lazy, &schedule);
        let mut until = None;
        for hour in hours {
            let now = at_hour(hour);
            let windows = windows_of(&lazy.rules, until, now);
            let begins = |from: Timestamp, to: Timestamp| lazy.tokens[0].records.iter().any(|tracked| {
                tracked.record.interval().is_some_and(|interval| from < interval.start && interval.start <= to)
            });
            let is_due = windows.iter().any(|(from, to)| begins(*from, *to))
                || lazy.alerts.values().any(|alert| alert.recheck_at.is_some_and(|at| at <= now));
            let told = full.tick(&iso(now));
            let seen = if is_due { lazy.tick(&iso(now)) } else { Vec::new() };
            prop_assert_eq!(told, seen, "at {}", now);
            until = Some(now);
        }
    }
}

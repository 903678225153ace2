mod ends;
mod events;
mod leads;
mod lifecycle;
mod properties;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use chrono::{DateTime, TimeDelta, Utc};

use super::{recheck::windows_of, *};
use model::config::{self, Span};
use model::wire::{self, CliffAllocation, CliffUnlocks, Maybe, UnlockEvent};
use model::{AlertId, AlertState, ChangeKind, Labels, Notification, Precision, ReceiverName, Record, TokenId};
use rules::{Lead, Rendered, Scope, Truth};
use testkit::time;

/// A rule with closures as conditions.
struct Fake {
    id: RuleId,
    name: String,
    on: On,
    within: Vec<Lead>,
    since: TimeDelta,
    pending_for: TimeDelta,
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
        pending_for: TimeDelta::zero(),
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

/// Returns the value in USD, which the conditions of these tests use.
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
            pending_for: self.pending_for,
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
    fn evaluate(&self, scope: &Scope<'_>) -> Truth {
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

/// Tokens, their stored alerts, and all notifications.
struct World<R = Fake> {
    rules: Vec<R>,
    routes: RouteTree,
    tokens: Vec<KnownToken>,
    resources: Vec<Resource>,
    alerts: BTreeMap<AlertId, Alert>,
    notified: BTreeMap<model::supply::NotificationId, Notification>,
    keeps_removed: bool,
}

struct KnownToken {
    token: Token,
    is_watched: bool,
    records: Vec<Tracked>,
    changes: Vec<Change>,
    added: Vec<Tracked>,
}

fn token(id: &str) -> KnownToken {
    let token = Token::unknown(id.into());
    KnownToken { token, is_watched: true, records: Vec::new(), changes: Vec::new(), added: Vec::new() }
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

impl<R: RuleEval> World<R> {
    fn new(rules: Vec<R>) -> Self {
        Self {
            rules,
            routes: routes(),
            tokens: vec![token("arbitrum")],
            resources: Resource::ALL.to_vec(),
            alerts: BTreeMap::new(),
            notified: BTreeMap::new(),
            keeps_removed: false,
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

    /// Evaluates and commits, like a cycle. Returns the new notifications as text.
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
                linear: None,
                corrections: &[],
                resources: &self.resources,
                changes: &known.changes,
                added: &known.added,
                late: &[],
                alerts,
                polled_at: &polled,
            })
            .collect();
        let mut limits = Limits::default();
        let lifecycle = || AlertLifecycle { keeps_removed: self.keeps_removed, ..AlertLifecycle::new(&self.routes, now) };
        let mut transitions = evaluate_by(&facts, &self.rules, lifecycle(), &mut limits);
        if !limits.decide().is_empty() {
            transitions = evaluate_by(&facts, &self.rules, lifecycle(), &mut limits);
        }
        let held = std::mem::take(&mut transitions.held);
        limits.rank(&held);
        let decided = [limits.leave_out(held.clone()), limits.release(held)];
        let transitions = transitions.join(limits.summaries(now));
        let latest: Vec<u32> = transitions
            .openings()
            .iter()
            .map(|(rule, subject)| {
                let same = self.alerts.values().filter(|alert| alert.rule == *rule && alert.subject == *subject);
                same.map(|alert| alert.episode).max().unwrap_or(0)
            })
            .collect();
        let mut evaluation = transitions.assign_episodes(&latest);
        for commit in decided {
            evaluation.alerts.extend(commit.alerts);
            evaluation.notifications.extend(commit.notifications);
            evaluation.left_out.extend(commit.left_out);
        }
        evaluation
    }

    fn commit(&mut self, evaluation: Evaluation) -> Vec<String> {
        for alert in evaluation.alerts {
            self.alerts.insert(alert.id.clone(), alert);
        }
        let mut notified = Vec::new();
        for notification in evaluation.notifications {
            assert!(self.alerts.contains_key(&notification.alert), "a notification of an unknown alert");
            assert_eq!(notification.alert, notification.body.id);
            if !self.notified.contains_key(&notification.id) {
                notified.push(summary(&notification));
                self.notified.insert(notification.id.clone(), notification);
            }
        }
        notified
    }

    fn only(&self) -> &Alert {
        assert_eq!(self.alerts.len(), 1, "{:?}", self.alerts);
        self.alerts.values().next().expect("an alert")
    }
}

/// Formats a notification like `firing lead 7d → ops`.
fn summary(notification: &Notification) -> String {
    let receivers: Vec<_> = notification.receivers.iter().map(ReceiverName::as_str).collect();
    let kind = notification.kind.as_str().trim_start_matches("alert.");
    format!("{kind} {} → {}", notification.body.reason, receivers.join("+"))
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

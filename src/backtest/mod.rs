//! What rules would have sent: history through the real diff, evaluation, routes and templates.
//!
//! The cast: [`Material`] is what a source said and when; [`run`] plays it through [`crate::replay`] and keeps every message in a
//! [`Run`]; [`Summary`] counts them per rule, receiver and week; [`compare`] holds two runs against each other; `html` draws a report.

mod html;
mod material;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{Datelike, Days, NaiveDate, TimeDelta};
use serde::Serialize;

use crate::{
    alert::Labels,
    replay::{Pace, Replay},
    route::RouteTree,
    rules::RuleSet,
    supply::{Resource, Timestamp},
    watch::Watch,
};

pub use html::page;
pub use material::{Material, MaterialError};

/// Messages that are kept of one run; more are counted. A rule that sends more is understood long before.
const MAX_MESSAGES: usize = 200_000;
/// Weeks that are told apart.
const MAX_WEEKS: usize = 1_000;

/// By what history is judged.
#[derive(Clone, Copy, Debug)]
pub struct Judge<'a> {
    /// The rules.
    pub rules: &'a RuleSet,
    /// The routes.
    pub routes: &'a RouteTree,
    /// Groups, and which tokens are looked at.
    pub watch: &'a Watch,
    /// Proof of removals, and how often conditions that read the clock are looked at.
    pub pace: Pace,
}

/// Something that would have been told: one message to each of its receivers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// The same in two runs where the same rule tells the same of the same alert.
    pub id: String,
    /// The alert that it tells of.
    pub alert: String,
    /// When.
    pub at: Timestamp,
    /// `alert` name of the rule.
    pub rule: String,
    /// Slug.
    pub token: Option<String>,
    /// Ticker.
    pub symbol: Option<String>,
    /// What it is about.
    pub resource: Option<Resource>,
    /// `alert.firing`, …
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Why then: `lead 7d`, `rescheduled`, …
    pub reason: String,
    /// Labels.
    pub labels: Labels,
    /// Who would have got it.
    pub receivers: Vec<String>,
    /// First line.
    pub summary: String,
    /// The rest.
    pub description: Option<String>,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// First instant.
    pub from: Timestamp,
    /// Last instant.
    pub to: Timestamp,
    /// Tokens that were looked at.
    pub tokens: usize,
    /// What the diff told.
    pub changes: u64,
    /// What would have been told, in order.
    pub messages: Vec<Message>,
    /// Messages beyond [`MAX_MESSAGES`], which are only counted.
    pub uncounted: u64,
    /// `alert` names of all rules, in the order of their files.
    pub rules: Vec<String>,
    /// Rules with a template that failed, with the first error of each.
    pub template_errors: Vec<(String, String)>,
}

/// Plays `material` from `from` to `to`. `heard` is told now and then how far it has come, from 0 to 1.
#[must_use]
pub fn run(material: &Material, judge: &Judge<'_>, from: Timestamp, to: Timestamp, mut heard: impl FnMut(f64)) -> Run {
    let mut replay = Replay::new(judge.rules, judge.routes, judge.watch, judge.pace, from);
    let mut run = Run {
        from,
        to,
        tokens: material.token_count(),
        changes: 0,
        messages: Vec::new(),
        uncounted: 0,
        rules: judge.rules.rules.iter().map(|rule| rule.name.clone()).collect(),
        template_errors: Vec::new(),
    };
    let whole = seconds(to - from).max(1.0);
    material.play(&mut replay, to, |replay| {
        run.changes += replay.take_changes().len() as u64;
        for notice in replay.take_told() {
            if run.messages.len() >= MAX_MESSAGES {
                run.uncounted += 1;
                continue;
            }
            let body = notice.body;
            let text = |name: &str| body.annotations.get(name).cloned();
            run.messages.push(Message {
                id: notice.id.to_string(),
                alert: notice.alert.to_string(),
                at: notice.at,
                rule: body.rule.clone(),
                token: body.token.as_ref().map(|token| token.id.clone()),
                symbol: body.token.as_ref().map(|token| token.symbol.clone()),
                resource: body.resource,
                kind: notice.kind.as_str(),
                reason: body.reason.clone(),
                receivers: notice.receivers.iter().map(ToString::to_string).collect(),
                summary: text("summary").unwrap_or_default(),
                description: text("description"),
                labels: body.labels,
            });
        }
        heard((seconds(replay.now() - from) / whole).clamp(0.0, 1.0));
    });
    run.template_errors = replay.template_errors().iter().map(|(rule, error)| (rule.to_string(), error.clone())).collect();
    run
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a few hundred years fit a double")]
fn seconds(span: TimeDelta) -> f64 {
    span.num_seconds() as f64
}

/// What a run comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// First days of the weeks (Mondays), in order.
    pub weeks: Vec<NaiveDate>,
    /// The rules, those that would have sent the most first; those that would have sent nothing last.
    pub rules: Vec<Row>,
    /// The receivers, likewise.
    pub receivers: Vec<Row>,
    /// Rule and token that would have sent the most, with how many messages; at most ten.
    pub noisiest: Vec<(String, String, u32)>,
    /// Deliveries in all: a message to two receivers counts twice.
    pub deliveries: u32,
    /// Messages that nobody would have got.
    pub to_nobody: u32,
}

/// What a rule sends, or a receiver gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Rule or receiver.
    pub name: String,
    /// Alerts concerned.
    pub alerts: u32,
    /// Messages: one to each receiver.
    pub messages: u32,
    /// Messages in each of [`Summary::weeks`].
    pub by_week: Vec<u32>,
    /// For a rule: its receivers; for a receiver: its rules; with messages.
    pub shares: BTreeMap<String, u32>,
    /// Tokens concerned.
    pub tokens: u32,
}

impl Row {
    /// Messages of the busiest week, with its index.
    #[must_use]
    pub fn busiest(&self) -> Option<(usize, u32)> {
        // The first of equals: the earliest.
        self.by_week.iter().copied().enumerate().rev().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > 0)
    }
}

impl Summary {
    /// Counts a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let weeks = weeks(run.from, run.to);
        let mut rules = Tally::new(weeks.len());
        let mut receivers = Tally::new(weeks.len());
        let mut pairs: HashMap<(&str, &str), u32> = HashMap::new();
        let (mut deliveries, mut to_nobody) = (0, 0);
        for rule in &run.rules {
            rules.row(rule);
        }
        for message in &run.messages {
            let monday = monday(message.at.date_naive());
            let week = weeks.binary_search(&monday).ok();
            let name = message.symbol.as_deref().or(message.token.as_deref()).unwrap_or("–");
            for receiver in &message.receivers {
                deliveries += 1;
                rules.count(message, &message.rule, receiver, week);
                receivers.count(message, receiver, &message.rule, week);
                *pairs.entry((&message.rule, name)).or_default() += 1;
            }
            if message.receivers.is_empty() {
                to_nobody += 1;
                rules.count(message, &message.rule, NOBODY, week);
                *pairs.entry((&message.rule, name)).or_default() += 1;
            }
        }
        let mut noisiest: Vec<_> =
            pairs.into_iter().map(|((rule, token), count)| (rule.to_owned(), token.to_owned(), count)).collect();
        noisiest.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| (&a.0, &a.1).cmp(&(&b.0, &b.1))));
        noisiest.truncate(10);
        Self { weeks, rules: rules.rows(), receivers: receivers.rows(), noisiest, deliveries, to_nobody }
    }
}

/// Stands for a receiver where there is none.
pub const NOBODY: &str = "(nobody)";

/// Rows under way.
struct Tally<'a> {
    weeks: usize,
    rows: BTreeMap<&'a str, Row>,
    alerts: BTreeMap<&'a str, BTreeSet<&'a str>>,
    tokens: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Tally<'a> {
    fn new(weeks: usize) -> Self {
        Self { weeks, rows: BTreeMap::new(), alerts: BTreeMap::new(), tokens: BTreeMap::new() }
    }

    fn row(&mut self, name: &'a str) -> &mut Row {
        let weeks = self.weeks;
        self.rows.entry(name).or_insert_with(|| Row { name: name.to_owned(), by_week: vec![0; weeks], ..Row::default() })
    }

    fn count(&mut self, message: &'a Message, name: &'a str, share: &str, week: Option<usize>) {
        self.alerts.entry(name).or_default().insert(&message.alert);
        if let Some(token) = &message.token {
            self.tokens.entry(name).or_default().insert(token);
        }
        let row = self.row(name);
        row.messages += 1;
        *row.shares.entry(share.to_owned()).or_default() += 1;
        if let Some(count) = week.and_then(|week| row.by_week.get_mut(week)) {
            *count += 1;
        }
    }

    fn rows(self) -> Vec<Row> {
        let size = |sets: &BTreeMap<&str, BTreeSet<&str>>, name: &str| {
            u32::try_from(sets.get(name).map_or(0, BTreeSet::len)).unwrap_or(u32::MAX)
        };
        let mut rows: Vec<Row> = self
            .rows
            .into_values()
            .map(|row| Row { alerts: size(&self.alerts, &row.name), tokens: size(&self.tokens, &row.name), ..row })
            .collect();
        rows.sort_by(|a, b| b.messages.cmp(&a.messages).then_with(|| a.name.cmp(&b.name)));
        rows
    }
}

fn monday(day: NaiveDate) -> NaiveDate {
    day.checked_sub_days(Days::new(u64::from(day.weekday().num_days_from_monday()))).unwrap_or(day)
}

fn weeks(from: Timestamp, to: Timestamp) -> Vec<NaiveDate> {
    let mut weeks = Vec::new();
    let mut next = Some(monday(from.date_naive()));
    while let Some(week) = next.filter(|week| *week <= to.date_naive() && weeks.len() < MAX_WEEKS) {
        weeks.push(week);
        next = week.checked_add_days(Days::new(7));
    }
    weeks
}

/// What another set of rules would change.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// What only the other rules would send: whole messages, or further receivers of one.
    pub gained: Vec<Message>,
    /// What only these rules send.
    pub lost: Vec<Message>,
    /// What both send, at another time or with other words or labels: as it is, as it would be.
    pub changed: Vec<(Message, Message)>,
    /// What both send alike.
    pub same: u32,
}

/// Holds what the rules at work send against what other rules would send.
#[must_use]
pub fn compare(now: &Run, other: &Run) -> Comparison {
    let mut comparison = Comparison::default();
    let mut before: HashMap<&str, &Message> = now.messages.iter().map(|message| (message.id.as_str(), message)).collect();
    for message in &other.messages {
        let Some(was) = before.remove(message.id.as_str()) else {
            comparison.gained.push(message.clone());
            continue;
        };
        let only = |of: &Message, without: &Message| {
            let receivers: Vec<String> = of.receivers.iter().filter(|name| !without.receivers.contains(name)).cloned().collect();
            (!receivers.is_empty()).then(|| Message { receivers, ..of.clone() })
        };
        let (gained, lost) = (only(message, was), only(was, message));
        let is_changed = (was.at, &was.summary, &was.description, &was.labels)
            != (message.at, &message.summary, &message.description, &message.labels);
        if gained.is_none() && lost.is_none() && !is_changed {
            comparison.same += 1;
        }
        comparison.gained.extend(gained);
        comparison.lost.extend(lost);
        if is_changed {
            comparison.changed.push((was.clone(), message.clone()));
        }
    }
    comparison.lost.extend(now.messages.iter().filter(|message| before.contains_key(message.id.as_str())).cloned());
    comparison.lost.sort_by_key(|message| message.at);
    comparison
}

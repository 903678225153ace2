//! What rules would have sent: history through the real diff, evaluation, routes, grouping, silences and templates.
//!
//! The cast: [`History`] is what a source said and when; [`run`] plays it through [`crate::simulate`] and keeps in a [`BacktestRun`]
//! what was decided to be told (a [`BacktestNotification`]), the [`BacktestMessage`]s that were made of it, and what was held back
//! ([`UndeliveredNotification`]); [`BacktestSummary`] counts them per rule, receiver and week; [`compare`] holds two runs against
//! each other; `html` draws a report.

mod history;
mod html;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use chrono::TimeDelta;
use serde::{Serialize, Serializer};

use crate::simulate::{DeliverySetup, Pace, Sent, Simulation};
use engine::route::RouteTree;
use model::{BatchKind, Labels, Notification, NotificationId, Resource, Suppressor, Timestamp, Watch, format};
use rules::RuleSet;

pub use history::{History, HistoryError};
pub use html::page;
pub use summary::{BacktestSummary, TallyRow};

/// What is kept of one run, notifications and messages each; more are counted. A rule that sends more is understood long before.
const MAX_MESSAGES: usize = 200_000;

/// By what history is judged.
#[derive(Clone, Copy, Debug)]
pub struct BacktestSetup<'a> {
    pub rules: &'a RuleSet,
    pub routes: &'a RouteTree,
    /// Limits, digests and silences.
    pub delivery: &'a DeliverySetup,
    /// Groups, and which tokens are looked at.
    pub watch: &'a Watch,
    /// Proof of removals, and how often conditions that read the clock are looked at.
    pub pace: Pace,
}

/// Something that was decided to be told of an alert, to each of its receivers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BacktestNotification {
    /// The same in two runs where the same rule tells the same of the same alert.
    pub id: NotificationId,
    /// The alert that it tells of.
    pub alert: String,
    /// When it was decided.
    pub at: Timestamp,
    /// `alert` name of the rule.
    pub rule: String,
    /// Slug.
    pub token: Option<String>,
    pub symbol: Option<String>,
    pub resource: Option<Resource>,
    /// `alert.firing`, …
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Why then: `lead 7d`, `rescheduled`, …
    pub reason: String,
    pub labels: Labels,
    /// To whom it was to be told.
    pub receivers: Vec<String>,
    pub summary: String,
    pub description: Option<String>,
}

impl BacktestNotification {
    fn of(notification: &Notification) -> Self {
        let body = &notification.body;
        let text = |name: &str| body.annotations.get(name).cloned();
        Self {
            id: notification.id.clone(),
            alert: notification.alert.to_string(),
            at: notification.at,
            rule: body.rule.clone(),
            token: body.token.as_ref().map(|token| token.id.clone()),
            symbol: body.token.as_ref().map(|token| token.symbol.clone()),
            resource: body.resource,
            kind: notification.kind.as_str(),
            reason: body.reason.clone(),
            receivers: notification.receivers.iter().map(ToString::to_string).collect(),
            summary: text("summary").unwrap_or_default(),
            description: text("description"),
            labels: body.labels.clone(),
        }
    }

    /// Whether it tells the end of its alert.
    pub fn is_end(&self) -> bool {
        self.kind == "alert.resolved"
    }
}

/// A message that one receiver would have got.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BacktestMessage {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub receiver: String,
    /// How it came to be: one alert by itself, a group, many that were put together, a summary above the hour's limit, a digest.
    #[serde(serialize_with = "word_of")]
    pub shape: BatchKind,
    /// Its group, where a route makes one.
    pub group_key: Option<String>,
    /// Why many were put into one message.
    pub note: Option<String>,
    #[serde(rename = "alerts")]
    pub told: Vec<Arc<BacktestNotification>>,
    /// What it counts without telling it.
    #[serde(serialize_with = "count_of")]
    pub counted: Vec<Arc<BacktestNotification>>,
    /// What something later of the same alert in it stands for.
    #[serde(serialize_with = "count_of")]
    pub merged: Vec<Arc<BacktestNotification>>,
    /// Alerts of its group that were told before and still fired.
    pub told_before: u32,
}

fn word_of<S: Serializer>(shape: &BatchKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(shape.as_str())
}

fn count_of<S: Serializer>(notifications: &[Arc<BacktestNotification>], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(notifications.len() as u64)
}

impl BacktestMessage {
    /// Everything that it stands for: told, counted and merged.
    pub fn all(&self) -> impl Iterator<Item = &Arc<BacktestNotification>> {
        self.told.iter().chain(&self.counted).chain(&self.merged)
    }

    /// What it says in one line.
    pub fn title(&self) -> String {
        let more = (self.told.len() + self.counted.len()).saturating_sub(1);
        match self.told.first() {
            Some(first) if more > 0 => format!("{} (and {more} more)", first.summary),
            Some(first) => first.summary.clone(),
            None => format::count(self.counted.len(), "alert"),
        }
    }

    /// Whether another message says the same at the same time, to whomever.
    pub fn says_as(&self, other: &Self) -> bool {
        let words = |message: &Self| (message.at, message.shape, message.group_key.clone(), message.counted.len());
        let alike = |a: &Arc<BacktestNotification>, b: &Arc<BacktestNotification>| {
            Arc::ptr_eq(a, b) || (&a.id, &a.summary, &a.description, &a.labels) == (&b.id, &b.summary, &b.description, &b.labels)
        };
        words(self) == words(other)
            && self.told.len() == other.told.len()
            && self.told.iter().zip(&other.told).all(|(a, b)| alike(a, b))
    }
}

/// Messages that follow each other and say the same to several receivers, as one, with all their receivers.
pub fn joint_messages(messages: &[BacktestMessage]) -> impl Iterator<Item = (&BacktestMessage, Vec<&str>)> {
    // What one pass makes comes receiver by receiver: of one instant, the same may stand apart.
    messages.chunk_by(|a, b| a.at == b.at).flat_map(|instant| {
        let mut joint_messages: Vec<(&BacktestMessage, Vec<&str>)> = Vec::new();
        for message in instant {
            // Many at once are told in few messages; a look back over some is enough.
            match joint_messages.iter_mut().rev().take(64).find(|(letter, _)| letter.says_as(message)) {
                Some((_, receivers)) => receivers.push(&message.receiver),
                None => joint_messages.push((message, vec![&message.receiver])),
            }
        }
        joint_messages
    })
}

/// Something that was decided to be told to somebody, and was not.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UndeliveredNotification {
    /// What.
    #[serde(rename = "telling")]
    pub notification: Arc<BacktestNotification>,
    /// To whom; none where no route takes it, or the rule's `limit` left it out.
    pub receiver: Option<String>,
    /// `silenced`, `inhibited`, `acknowledged`; `waiting` where the run ended before its message was made; `nobody`; `limited`.
    pub state: &'static str,
    /// The silence or the alert that held it back.
    pub holder: Option<String>,
}

#[derive(Clone, Debug)]
pub struct BacktestRun {
    /// First instant.
    pub from: Timestamp,
    /// Last instant.
    pub to: Timestamp,
    pub tokens: usize,
    /// What the diff told.
    pub changes: u64,
    /// What was decided to be told, in order; digests and what is told again stand in the messages alone.
    pub notifications: Vec<Arc<BacktestNotification>>,
    pub messages: Vec<BacktestMessage>,
    /// What was not told, in the order in which it was decided.
    pub undelivered: Vec<UndeliveredNotification>,
    /// Notifications and messages beyond a bound, which are only counted.
    pub uncounted: u64,
    /// `alert` names of all rules, in the order of their files.
    pub rules: Vec<String>,
    /// Rules with a template that failed, with the first error of each.
    pub template_errors: Vec<(String, String)>,
}

/// Plays `history` from `from` to `to`. `heard` is told now and then how far it has come, from 0 to 1.
pub fn run(
    history: &History,
    setup: &BacktestSetup<'_>,
    from: Timestamp,
    to: Timestamp,
    mut heard: impl FnMut(f64),
) -> BacktestRun {
    run_within(history, setup, (from, to), MAX_MESSAGES, |done| {
        heard(done);
        ControlFlow::Continue(())
    })
}

/// As [`run`] over a span, with at most so many notifications and messages kept, and no further than `heard` lets it come. A run that
/// was broken off ends where it was, and says so in [`BacktestRun::to`].
pub fn run_within(
    history: &History,
    setup: &BacktestSetup<'_>,
    (from, to): (Timestamp, Timestamp),
    most: usize,
    mut heard: impl FnMut(f64) -> ControlFlow<()>,
) -> BacktestRun {
    let mut simulation =
        Simulation::new(setup.rules, setup.routes, setup.watch, setup.pace, from).with_delivery(setup.delivery.clone());
    let mut run = BacktestRun {
        from,
        to,
        tokens: history.token_count(),
        changes: 0,
        notifications: Vec::new(),
        messages: Vec::new(),
        undelivered: Vec::new(),
        uncounted: 0,
        rules: setup.rules.rules.iter().map(|rule| rule.name.clone()).collect(),
        template_errors: Vec::new(),
    };
    let mut known: HashMap<NotificationId, Arc<BacktestNotification>> = HashMap::new();
    let whole = seconds(to - from).max(1.0);
    history.play(&mut simulation, to, |simulation| {
        run.changes += simulation.take_changes().len() as u64;
        for notification in simulation.take_told() {
            if run.notifications.len() >= most {
                run.uncounted += 1;
                continue;
            }
            let notification = Arc::new(BacktestNotification::of(&notification));
            if notification.receivers.is_empty() {
                run.undelivered.push(UndeliveredNotification {
                    notification: notification.clone(),
                    receiver: None,
                    state: "nobody",
                    holder: None,
                });
            }
            known.insert(notification.id.clone(), notification.clone());
            run.notifications.push(notification);
        }
        for notification in simulation.take_left_out() {
            if run.undelivered.len() >= most {
                run.uncounted += 1;
                continue;
            }
            let notification = Arc::new(BacktestNotification::of(&notification));
            run.undelivered.push(UndeliveredNotification { notification, receiver: None, state: "limited", holder: None });
        }
        for sent in simulation.take_sent() {
            if run.messages.len() >= most {
                run.uncounted += 1;
                continue;
            }
            run.messages.push(message(sent, &mut known));
        }
        heard((seconds(simulation.now() - from) / whole).clamp(0.0, 1.0))
    });
    run.to = simulation.now().min(to);
    run.undelivered.extend(simulation.undelivered().into_iter().filter_map(|undelivered| {
        let notification = known.get(&undelivered.notice)?.clone();
        let (state, holder) = match undelivered.by {
            Some(held) => (held.by.as_str(), (held.by != Suppressor::Ack).then_some(held.id)),
            None => ("waiting", None),
        };
        Some(UndeliveredNotification { notification, receiver: Some(undelivered.receiver.to_string()), state, holder })
    }));
    run.undelivered.sort_by_key(|undelivered| undelivered.notification.at);
    run.template_errors = simulation.template_errors().iter().map(|(rule, error)| (rule.to_string(), error.clone())).collect();
    run
}

fn message(sent: Sent, known: &mut HashMap<NotificationId, Arc<BacktestNotification>>) -> BacktestMessage {
    let mut of = |notifications: Vec<Arc<Notification>>| -> Vec<Arc<BacktestNotification>> {
        let notifications = notifications.iter().map(|notification| {
            // A digest, or what is told again: it was made on the way.
            known.entry(notification.id.clone()).or_insert_with(|| Arc::new(BacktestNotification::of(notification))).clone()
        });
        notifications.collect()
    };
    BacktestMessage {
        at: sent.at,
        receiver: sent.receiver.to_string(),
        shape: sent.bundle.shape,
        group_key: sent.bundle.group_key,
        note: sent.bundle.note,
        told_before: sent.bundle.told_before,
        told: of(sent.told),
        counted: of(sent.counted),
        merged: of(sent.merged),
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a few hundred years fit a double")]
fn seconds(span: TimeDelta) -> f64 {
    span.num_seconds() as f64
}

/// What another set of rules would change.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BacktestComparison {
    /// What only the other rules would send.
    pub gained: Vec<BacktestMessage>,
    /// What only these rules send.
    pub lost: Vec<BacktestMessage>,
    /// What both send, at another time, with other words or labels, or with more or fewer alerts in it: as it is, as it would be.
    pub changed: Vec<(BacktestMessage, BacktestMessage)>,
    /// What both send alike.
    pub same: u32,
}

/// Holds what the rules at work send against what other rules would send. Two messages to one receiver are the same one where they
/// tell the same of an alert.
pub fn compare(now: &BacktestRun, other: &BacktestRun) -> BacktestComparison {
    let mut comparison = BacktestComparison::default();
    let mut places: HashMap<(&str, &NotificationId), usize> = HashMap::new();
    for (index, message) in now.messages.iter().enumerate() {
        places.extend(message.all().map(|notification| ((message.receiver.as_str(), &notification.id), index)));
    }
    let mut is_taken = vec![false; now.messages.len()];
    for message in &other.messages {
        let before = message
            .all()
            .filter_map(|notification| places.get(&(message.receiver.as_str(), &notification.id)).copied())
            .find(|index| is_taken.get(*index) == Some(&false));
        let Some((was, index)) = before.and_then(|index| Some((now.messages.get(index)?, index))) else {
            comparison.gained.push(message.clone());
            continue;
        };
        if let Some(taken) = is_taken.get_mut(index) {
            *taken = true;
        }
        if was.says_as(message) {
            comparison.same += 1;
        } else {
            comparison.changed.push((was.clone(), message.clone()));
        }
    }
    let lost = now.messages.iter().zip(&is_taken).filter(|(_, taken)| !**taken).map(|(message, _)| message.clone());
    comparison.lost = lost.collect();
    comparison
}

/// A message beside another: what of it the other does not tell, as `(what is gone, what is new)`.
pub fn difference<'m>(
    was: &'m BacktestMessage,
    is: &'m BacktestMessage,
) -> (Vec<&'m BacktestNotification>, Vec<&'m BacktestNotification>) {
    let only = |of: &'m BacktestMessage, without: &BacktestMessage| {
        let ids: BTreeMap<&NotificationId, &BacktestNotification> =
            without.told.iter().map(|notification| (&notification.id, &**notification)).collect();
        let is_other = |notification: &&'m BacktestNotification| {
            ids.get(&notification.id).is_none_or(|other| {
                (&other.summary, &other.description, &other.labels)
                    != (&notification.summary, &notification.description, &notification.labels)
            })
        };
        of.told.iter().map(|notification| &**notification).filter(is_other).collect::<Vec<_>>()
    };
    (only(was, is), only(is, was))
}

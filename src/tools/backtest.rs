//! Backtest: the messages that rules would have sent, from history and the real diff, evaluation, routes, grouping, and silences.
//!
//! [`History`] contains the responses of the source over time. [`run`] replays it through [`crate::simulate`] and returns a
//! [`BacktestRun`]: the notifications ([`BacktestNotification`]), the messages made from them ([`BacktestMessage`]), and the
//! notifications that were not delivered ([`UndeliveredNotification`]). [`BacktestSummary`] counts them by rule, receiver, and
//! week. [`compare`] compares two runs, and `html` renders a report.

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
use model::{BatchKind, Labels, Notification, NotificationId, Resource, Suppressor, Timestamp, Watch, phrase};
use rules::RuleSet;

pub use history::{History, HistoryError};
pub use html::page;
pub use summary::{BacktestSummary, TallyRow};

/// The maximum number of notifications, and of messages, that a run stores. Further ones are only counted.
const MAX_MESSAGES: usize = 200_000;

/// The rules and settings of a backtest.
#[derive(Clone, Copy, Debug)]
pub struct BacktestSetup<'a> {
    pub rules: &'a RuleSet,
    pub routes: &'a RouteTree,
    /// Limits, digests and silences.
    pub delivery: &'a DeliverySetup,
    /// The watched tokens and their groups.
    pub watch: &'a Watch,
    /// The confirmations that prove a removal, and the interval between evaluations of conditions that read the clock.
    pub pace: Pace,
}

/// A notification about an alert, for all its receivers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BacktestNotification {
    /// Equal in two runs for the same notification of the same rule.
    pub id: NotificationId,
    /// The id of the alert.
    pub alert: String,
    pub at: Timestamp,
    /// The `alert` name of the rule.
    pub rule: String,
    /// The slug of the token.
    pub token: Option<String>,
    pub symbol: Option<String>,
    pub resource: Option<Resource>,
    /// `alert.firing`, …
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The reason for the time of the notification: `lead 7d`, `rescheduled`, …
    pub reason: String,
    pub labels: Labels,
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

    /// Returns `true` if the notification reports that the alert was resolved.
    pub fn is_end(&self) -> bool {
        self.kind == "alert.resolved"
    }
}

/// A message to one receiver.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BacktestMessage {
    pub at: Timestamp,
    pub receiver: String,
    /// Whether the message is about one alert, a group, a storm batch, a summary above the hourly limit, or a digest.
    #[serde(serialize_with = "serialize_shape")]
    pub shape: BatchKind,
    /// `None` if no route groups the alert.
    pub group_key: Option<String>,
    /// The reason for a batch or summary.
    pub note: Option<String>,
    #[serde(rename = "alerts")]
    pub notified: Vec<Arc<BacktestNotification>>,
    /// Notifications that the message only counts.
    #[serde(serialize_with = "serialize_count")]
    pub counted: Vec<Arc<BacktestNotification>>,
    /// Notifications replaced by a later one of the same alert in the message.
    #[serde(serialize_with = "serialize_count")]
    pub merged: Vec<Arc<BacktestNotification>>,
    /// The number of alerts of the group that were sent before and still fire.
    pub notified_before: u32,
}

fn serialize_shape<S: Serializer>(shape: &BatchKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(shape.as_str())
}

fn serialize_count<S: Serializer>(notifications: &[Arc<BacktestNotification>], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(notifications.len() as u64)
}

impl BacktestMessage {
    /// Returns all notifications that the message covers: listed, counted, and merged.
    pub fn all(&self) -> impl Iterator<Item = &Arc<BacktestNotification>> {
        self.notified.iter().chain(&self.counted).chain(&self.merged)
    }

    /// Returns the title of the message, on one line.
    pub fn title(&self) -> String {
        let more = (self.notified.len() + self.counted.len()).saturating_sub(1);
        match self.notified.first() {
            Some(first) if more > 0 => format!("{} (and {more} more)", first.summary),
            Some(first) => first.summary.clone(),
            None => phrase::count(self.counted.len(), "alert"),
        }
    }

    /// Returns `true` if both messages have the same time and content, to any receiver.
    pub fn has_same_content(&self, other: &Self) -> bool {
        let shape_of = |message: &Self| (message.at, message.shape, message.group_key.clone(), message.counted.len());
        let alike = |a: &Arc<BacktestNotification>, b: &Arc<BacktestNotification>| {
            Arc::ptr_eq(a, b) || (&a.id, &a.summary, &a.description, &a.labels) == (&b.id, &b.summary, &b.description, &b.labels)
        };
        shape_of(self) == shape_of(other)
            && self.notified.len() == other.notified.len()
            && self.notified.iter().zip(&other.notified).all(|(a, b)| alike(a, b))
    }
}

/// Joins messages with the same time and content, and returns each with all its receivers.
pub fn joint_messages(messages: &[BacktestMessage]) -> impl Iterator<Item = (&BacktestMessage, Vec<&str>)> {
    // A dispatch pass writes messages by receiver, so equal messages may not be adjacent.
    messages.chunk_by(|a, b| a.at == b.at).flat_map(|instant| {
        let mut joint_messages: Vec<(&BacktestMessage, Vec<&str>)> = Vec::new();
        for message in instant {
            // A burst consists of few messages, so it is enough to search a limited number.
            match joint_messages.iter_mut().rev().take(64).find(|(joint, _)| joint.has_same_content(message)) {
                Some((_, receivers)) => receivers.push(&message.receiver),
                None => joint_messages.push((message, vec![&message.receiver])),
            }
        }
        joint_messages
    })
}

/// A notification that was not delivered to a receiver.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UndeliveredNotification {
    #[serde(rename = "telling")]
    pub notification: Arc<BacktestNotification>,
    /// `None` if no route matches the alert, or if the rule's `limit` excluded it.
    pub receiver: Option<String>,
    /// `silenced`, `inhibited`, `acknowledged`, `nobody` (no route matches), `limited`, or `waiting` (the run ended before a
    /// message was made).
    pub state: &'static str,
    /// The id of the silence or alert that suppressed the notification.
    #[serde(rename = "suppressedBy")]
    pub suppressor: Option<String>,
}

#[derive(Clone, Debug)]
pub struct BacktestRun {
    pub from: Timestamp,
    /// The end of the run, which is earlier than requested if the run was stopped.
    pub to: Timestamp,
    pub tokens: usize,
    /// The number of changes that the diff reported.
    pub changes: u64,
    /// In the order of evaluation. Digests and repeats by `repeat_interval` are only in `messages`.
    pub notifications: Vec<Arc<BacktestNotification>>,
    pub messages: Vec<BacktestMessage>,
    /// In the order of evaluation.
    pub undelivered: Vec<UndeliveredNotification>,
    /// The number of notifications and messages above the limit, which are not stored.
    pub not_stored: u64,
    /// The `alert` names of all rules, in the order of the files.
    pub rules: Vec<String>,
    /// The rules whose templates failed, each with its first error.
    pub template_errors: Vec<(String, String)>,
}

/// Replays `history` from `from` to `to`. `on_progress` is called regularly with the progress, from 0 to 1.
pub fn run(
    history: &History,
    setup: &BacktestSetup<'_>,
    from: Timestamp,
    to: Timestamp,
    mut on_progress: impl FnMut(f64),
) -> BacktestRun {
    run_within(history, setup, (from, to), MAX_MESSAGES, |done| {
        on_progress(done);
        ControlFlow::Continue(())
    })
}

/// Like [`run`], but stores at most `max_stored` notifications and messages, and stops if `on_progress` breaks. [`BacktestRun::to`] is then
/// the time of the stop.
pub fn run_within(
    history: &History,
    setup: &BacktestSetup<'_>,
    (from, to): (Timestamp, Timestamp),
    max_stored: usize,
    mut on_progress: impl FnMut(f64) -> ControlFlow<()>,
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
        not_stored: 0,
        rules: setup.rules.rules.iter().map(|rule| rule.name.clone()).collect(),
        template_errors: Vec::new(),
    };
    let mut known: HashMap<NotificationId, Arc<BacktestNotification>> = HashMap::new();
    let whole = seconds(to - from).max(1.0);
    history.replay(&mut simulation, to, |simulation| {
        run.changes += simulation.take_changes().len() as u64;
        for notification in simulation.take_notified() {
            if run.notifications.len() >= max_stored {
                run.not_stored += 1;
                continue;
            }
            let notification = Arc::new(BacktestNotification::of(&notification));
            if notification.receivers.is_empty() {
                run.undelivered.push(UndeliveredNotification {
                    notification: notification.clone(),
                    receiver: None,
                    state: "nobody",
                    suppressor: None,
                });
            }
            known.insert(notification.id.clone(), notification.clone());
            run.notifications.push(notification);
        }
        for notification in simulation.take_omitted() {
            if run.undelivered.len() >= max_stored {
                run.not_stored += 1;
                continue;
            }
            let notification = Arc::new(BacktestNotification::of(&notification));
            run.undelivered.push(UndeliveredNotification { notification, receiver: None, state: "limited", suppressor: None });
        }
        for sent in simulation.take_sent() {
            if run.messages.len() >= max_stored {
                run.not_stored += 1;
                continue;
            }
            run.messages.push(message(sent, &mut known));
        }
        on_progress((seconds(simulation.now() - from) / whole).clamp(0.0, 1.0))
    });
    run.to = simulation.now().min(to);
    run.undelivered.extend(simulation.undelivered().into_iter().filter_map(|undelivered| {
        let notification = known.get(&undelivered.notice)?.clone();
        let (state, suppressor) = match undelivered.by {
            Some(held) => (held.by.as_str(), (held.by != Suppressor::Ack).then_some(held.id)),
            None => ("waiting", None),
        };
        Some(UndeliveredNotification { notification, receiver: Some(undelivered.receiver.to_string()), state, suppressor })
    }));
    run.undelivered.sort_by_key(|undelivered| undelivered.notification.at);
    run.template_errors = simulation.template_errors().iter().map(|(rule, error)| (rule.to_string(), error.clone())).collect();
    run
}

fn message(sent: Sent, known: &mut HashMap<NotificationId, Arc<BacktestNotification>>) -> BacktestMessage {
    let mut of = |notifications: Vec<Arc<Notification>>| -> Vec<Arc<BacktestNotification>> {
        let notifications = notifications.iter().map(|notification| {
            // The dispatcher creates digests and repeats, so they are not known yet.
            known.entry(notification.id.clone()).or_insert_with(|| Arc::new(BacktestNotification::of(notification))).clone()
        });
        notifications.collect()
    };
    BacktestMessage {
        at: sent.at,
        receiver: sent.receiver.to_string(),
        shape: sent.batch.shape,
        group_key: sent.batch.group_key,
        note: sent.batch.note,
        notified_before: sent.batch.notified_before,
        notified: of(sent.notified),
        counted: of(sent.counted),
        merged: of(sent.merged),
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a few hundred years fit a double")]
fn seconds(span: TimeDelta) -> f64 {
    span.num_seconds() as f64
}

/// The messages that another set of rules would change.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BacktestComparison {
    /// Messages that only the other rules send.
    pub gained: Vec<BacktestMessage>,
    /// Messages that only the current rules send.
    pub lost: Vec<BacktestMessage>,
    /// Messages that both send, but with another time, text, label, or number of alerts: `(current, other)`.
    pub changed: Vec<(BacktestMessage, BacktestMessage)>,
    /// The number of messages that both send unchanged.
    pub same: u32,
}

/// Compares a run of the current rules with a run of other rules. Two messages to the same receiver correspond if they share a
/// notification.
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
        if was.has_same_content(message) {
            comparison.same += 1;
        } else {
            comparison.changed.push((was.clone(), message.clone()));
        }
    }
    let lost = now.messages.iter().zip(&is_taken).filter(|(_, taken)| !**taken).map(|(message, _)| message.clone());
    comparison.lost = lost.collect();
    comparison
}

/// Returns the notifications that only one of two corresponding messages lists: `(only in was, only in is)`.
pub fn difference<'m>(
    was: &'m BacktestMessage,
    is: &'m BacktestMessage,
) -> (Vec<&'m BacktestNotification>, Vec<&'m BacktestNotification>) {
    let only = |of: &'m BacktestMessage, without: &BacktestMessage| {
        let ids: BTreeMap<&NotificationId, &BacktestNotification> =
            without.notified.iter().map(|notification| (&notification.id, &**notification)).collect();
        let is_other = |notification: &&'m BacktestNotification| {
            ids.get(&notification.id).is_none_or(|other| {
                (&other.summary, &other.description, &other.labels)
                    != (&notification.summary, &notification.description, &notification.labels)
            })
        };
        of.notified.iter().map(|notification| &**notification).filter(is_other).collect::<Vec<_>>()
    };
    (only(was, is), only(is, was))
}

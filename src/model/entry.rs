//! What a message tells as one: several rules may speak of one event, and people are told of it once. Pure.
//!
//! The entries are what mail, chats and pagers show; bodies for programs keep every alert by itself. Whoever counts what a message tells
//! counts entries, in a backtest as well as in a subject.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use crate::{AlertStatus, Notification, NotificationKind};

/// One event in a message: the strongest that is told of it, and what other rules say of the same.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageEntry<'a> {
    pub strongest: &'a Notification,
    /// The others, the strongest first.
    pub also: Vec<&'a Notification>,
}

impl<'a> MessageEntry<'a> {
    /// All that it tells, the strongest first.
    pub fn all(&self) -> impl Iterator<Item = &'a Notification> {
        std::iter::once(self.strongest).chain(self.also.iter().copied())
    }
}

/// The entries of a message, in the order in which it tells their first. Alerts are about one event where they are about the same record,
/// or the same change of it; what fires and what is over are told apart, and what is about no record stands by itself.
pub fn message_entries<'a>(notifications: impl IntoIterator<Item = &'a Notification>) -> Vec<MessageEntry<'a>> {
    let mut entries: Vec<Vec<&'a Notification>> = Vec::new();
    let mut known: HashMap<EventKey<'a>, usize> = HashMap::new();
    for notice in notifications {
        match event_key(notice).and_then(|key| known.get(&key)).and_then(|at| entries.get_mut(*at)) {
            Some(entry) => entry.push(notice),
            None => {
                if let Some(key) = event_key(notice) {
                    known.insert(key, entries.len());
                }
                entries.push(vec![notice]);
            }
        }
    }
    let in_order = |mut all: Vec<&'a Notification>| {
        all.sort_by(|a, b| strength(a, b));
        let mut all = all.into_iter();
        Some(MessageEntry { strongest: all.next()?, also: all.collect() })
    };
    entries.into_iter().filter_map(in_order).collect()
}

/// The order in which one stands for another: of the gravest, what begins before what happened, was told before, or is over.
pub fn strength(a: &Notification, b: &Notification) -> Ordering {
    let rank = |notice: &Notification| match notice.kind {
        NotificationKind::Firing => 0,
        NotificationKind::Event => 1,
        NotificationKind::Reminder => 2,
        _ => 3,
    };
    let key = |notice: &Notification| (Reverse(notice.body.tone()), rank(notice));
    key(a).cmp(&key(b)).then_with(|| a.body.precedence(a.at).order(&b.body.precedence(b.at)))
}

/// The event, whether it is over, and the change, by its kind and its words.
type EventKey<'a> = (&'a str, AlertStatus, Option<(&'static str, &'a str)>);

fn event_key(notice: &Notification) -> Option<EventKey<'_>> {
    let body = &notice.body;
    let change = body.change.as_ref().map(|change| (change.kind.as_str(), change.summary.as_str()));
    Some((body.event.as_deref()?, body.status, change))
}

#[cfg(test)]
mod tests;

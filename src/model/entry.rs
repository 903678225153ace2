//! The entries of a message: alerts of several rules about one event form one entry.
//!
//! Mail, chats, and pagers show entries; bodies for programs have every alert. Counts of messages count entries, in a backtest as
//! well as in a subject line.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use crate::{AlertStatus, Notification, NotificationKind};

/// One event in a message: its most important notification, and notifications of other rules about the same event.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageEntry<'a> {
    pub strongest: &'a Notification,
    /// The other notifications, most important first.
    pub also: Vec<&'a Notification>,
}

impl<'a> MessageEntry<'a> {
    /// Returns all notifications, most important first.
    pub fn all(&self) -> impl Iterator<Item = &'a Notification> {
        std::iter::once(self.strongest).chain(self.also.iter().copied())
    }
}

/// Groups notifications into entries, in the order of their first notification. Notifications belong together if they are about the
/// same record, or the same change of it. Firing and resolved alerts stay separate, and so does an alert without a record.
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

/// Orders notifications of one event by importance: severity first, then new before repeated or resolved.
pub fn strength(a: &Notification, b: &Notification) -> Ordering {
    let rank = |notice: &Notification| match notice.kind {
        NotificationKind::Firing => 0,
        NotificationKind::Event => 1,
        NotificationKind::Reminder => 2,
        _ => 3,
    };
    let key = |notice: &Notification| (Reverse(notice.body.severity()), rank(notice));
    key(a).cmp(&key(b)).then_with(|| a.body.precedence(a.at).order(&b.body.precedence(b.at)))
}

/// The event, whether it is resolved, and the kind and text of the change.
type EventKey<'a> = (&'a str, AlertStatus, Option<(&'static str, &'a str)>);

fn event_key(notice: &Notification) -> Option<EventKey<'_>> {
    let body = &notice.body;
    let change = body.change.as_ref().map(|change| (change.kind.as_str(), change.summary.as_str()));
    Some((body.event.as_deref()?, body.status, change))
}

#[cfg(test)]
mod tests;

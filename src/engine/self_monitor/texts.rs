//! The words of notifications: feeds by name, lengths of time, texts from outside.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use super::feed_of;
use model::{Endpoint, FeedId, Timestamp, Token, text::plain_chars};

/// Feeds that a message names; the others are counted.
const FEEDS_IN_MESSAGE: usize = 12;

/// Characters of a text from outside that a message repeats.
pub(super) const LONGEST_TEXT: usize = 500;

/// `unlock_events of ARB (arbitrum)`, some feeds by name, or `120 feeds (burn 30, unlock_events 90)`.
pub(super) fn feeds_in_words(members: &BTreeSet<String>, token: Option<&Token>) -> String {
    clip(&name_feeds(members, token))
}

fn name_feeds(members: &BTreeSet<String>, token: Option<&Token>) -> String {
    let feeds: Vec<FeedId> = members.iter().filter_map(|member| feed_of(member)).collect();
    if let [feed] = feeds.as_slice() {
        return match (&feed.token, token) {
            (Some(id), Some(token)) if token.symbol() != id.as_str() => format!("{} of {} ({id})", feed.endpoint, token.symbol()),
            (Some(id), _) => format!("{} of {id}", feed.endpoint),
            (None, _) => feed.endpoint.to_string(),
        };
    }
    if feeds.len() <= FEEDS_IN_MESSAGE {
        return feeds.iter().map(FeedId::to_string).collect::<Vec<_>>().join(", ");
    }
    let mut counts: BTreeMap<Endpoint, usize> = BTreeMap::new();
    for feed in &feeds {
        *counts.entry(feed.endpoint).or_default() += 1;
    }
    let parts: Vec<_> = counts.iter().map(|(endpoint, count)| format!("{endpoint} {count}")).collect();
    format!("{} feeds ({})", feeds.len(), parts.join(", "))
}

/// A text from outside, of one line and bounded, without control characters and marks that turn the direction of writing.
pub(super) fn clip(text: &str) -> String {
    let mut clipped: String = plain_chars(text).take(LONGEST_TEXT).collect();
    if text.chars().count() > LONGEST_TEXT {
        clipped.push('…');
    }
    clipped.trim().to_owned()
}

/// With a full stop at its end.
pub(super) fn sentence(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', '!', '?', '…']) { text.to_owned() } else { format!("{text}.") }
}

/// `2026-03-16 01:00 UTC`.
pub(super) fn instant(at: Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M UTC").to_string()
}

/// `under a minute`, `25 min`, `3 h 5 min`, `2 d 4 h`.
pub(super) fn span_in_words(span: TimeDelta) -> String {
    let (days, hours, minutes) = (span.num_days(), span.num_hours() % 24, span.num_minutes() % 60);
    match (days, hours, minutes) {
        (days, hours, _) if days > 0 => format!("{days} d {hours} h"),
        (_, hours, minutes) if hours > 0 => format!("{hours} h {minutes} min"),
        (_, _, minutes) if minutes > 0 => format!("{minutes} min"),
        _ => "under a minute".to_owned(),
    }
}

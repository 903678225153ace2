//! The incidents that a delivery opens and resolves in a pager, which accepts one incident per request.

use crate::card::{Brief, Card, Severity, ShareStyle};
use model::{AlertStatus, MessageEntry, Notification, message_entries, text};

/// The maximum number of resolve requests of one delivery.
const MAX_REQUESTS: usize = model::rows::MAX_ALERTS;

/// The maximum number of incidents that one delivery opens. More alerts at once share one incident.
const MAX_OPENED: usize = 5;

const MAX_SUMMARY_LINES: usize = 50;
const INCIDENT_KEY_BYTES: usize = 10;

/// An incident in a pager, which is opened, repeated, and resolved under the same key.
pub(super) struct PagerIncident {
    pub(super) key: String,
    pub(super) is_resolved: bool,
    pub(super) title: String,
    /// The highest severity of its alerts.
    pub(super) severity: Severity,
    /// The entries, most urgent first.
    pub(super) cards: Vec<Card>,
    /// The line about alerts without a card.
    pub(super) rest: Option<String>,
    /// The most urgent notification, for labels and names.
    pub(super) first: Notification,
    pub(super) page: Option<String>,
}

/// Returns the incidents of a delivery.
///
/// A group of a route is one incident, which is resolved when no alert of the group fires. Without grouping, each event is an
/// incident under the id of its strongest alert. If there are many, they share one incident under the id of the delivery, which is
/// resolved together with the last of its alerts.
pub(super) fn incidents(brief: &Brief<'_>, share: ShareStyle, max_title: usize) -> Vec<PagerIncident> {
    let entries = latest_entries(brief);
    let whole = |key: String, is_resolved: bool, entries: &[MessageEntry<'_>]| {
        let cards = brief.listed_cards(entries.iter().take(MAX_SUMMARY_LINES));
        Some(PagerIncident {
            key,
            is_resolved,
            title: brief.title(share, max_title),
            severity: brief.severity(),
            rest: brief.rest(cards.len()),
            cards,
            first: entries.first()?.strongest.clone(),
            page: brief.page_of_all(),
        })
    };
    let batch = &brief.delivery.batch;
    let is_over = |entry: &MessageEntry<'_>| entry.strongest.body.status == AlertStatus::Resolved;
    if let Some(group) = &batch.group_key {
        let is_resolved = batch.notified_before == 0 && entries.iter().all(is_over);
        return whole(format!("gr_{}", text::fingerprint([group.as_str()], INCIDENT_KEY_BYTES)), is_resolved, &entries)
            .into_iter()
            .collect();
    }
    let single = |notice: &Notification, entry: &MessageEntry<'_>, is_resolved: bool| {
        let card = brief.card(entry);
        PagerIncident {
            key: notice.alert.as_str().to_owned(),
            is_resolved,
            title: brief.line(notice, share, max_title),
            severity: card.severity,
            page: card.page.clone(),
            cards: vec![card],
            rest: None,
            first: notice.clone(),
        }
    };
    let (over, goes_on): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_over);
    let mut all: Vec<PagerIncident> = if goes_on.len() > MAX_OPENED || batch.truncated > 0 {
        whole(brief.delivery.webhook_id.clone(), false, &goes_on).into_iter().collect()
    } else {
        goes_on.iter().map(|entry| single(entry.strongest, entry, false)).collect()
    };
    let ends = over.iter().flat_map(|entry| entry.all().map(move |notice| single(notice, entry, true)));
    all.extend(ends.take(MAX_REQUESTS));
    let last = over.last().map(|entry| entry.strongest);
    all.extend(last.into_iter().flat_map(|last| brief.delivery.over.iter().map(|key| shared_incident_end(key, last, brief))));
    all
}

/// Returns the resolution of a shared incident.
fn shared_incident_end(key: &str, last: &Notification, brief: &Brief<'_>) -> PagerIncident {
    PagerIncident {
        key: key.to_owned(),
        is_resolved: true,
        title: "All alerts of this incident are resolved".to_owned(),
        severity: Severity::Good,
        cards: Vec::new(),
        rest: None,
        first: last.clone(),
        page: brief.page_of_all(),
    }
}

/// Returns the entries of a delivery with only the latest notification of each alert.
fn latest_entries<'a>(brief: &Brief<'a>) -> Vec<MessageEntry<'a>> {
    let notifications = brief.notifications();
    let is_latest =
        |at: usize, notice: &Notification| !notifications.iter().skip(at + 1).any(|later| later.alert == notice.alert);
    message_entries(notifications.iter().enumerate().filter(|(at, notice)| is_latest(*at, notice)).map(|(_, notice)| notice))
}

#[cfg(test)]
mod tests;

//! One HTTP request of a delivery, and how a delivery is taken apart where a service takes one alert at a time.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde::Serialize;

use crate::card::{Brief, Card, ShareStyle, Tone};
use crate::credentials::MissingKey;
use crate::message;
use model::{AlertStatus, MessageEntry, Notification, config::SecretText, message_entries, text};

/// Most ends that one delivery tells, where a service takes one at a time.
const MAX_REQUESTS: usize = message::MAX_ALERTS;

/// Most incidents that one delivery opens; more at once are one storm.
const MAX_INCIDENTS: usize = 5;

/// Most lines of an incident that tells several.
const MAX_LINES: usize = 50;

/// Bytes of a derived key.
const ID_BYTES: usize = 10;

#[derive(Clone)]
pub struct WebhookRequest {
    /// What it is about, unique among the requests of a delivery: what was taken is not sent again with the rest.
    pub key: String,
    /// Sent by PUT rather than by POST.
    pub is_put: bool,
    /// Path segments behind the receiver's address.
    pub path: Vec<String>,
    /// Added to the address's query.
    pub query: Option<(&'static str, &'static str)>,
    /// Value of the header `Authorization`; without one, the receiver's bearer token goes there.
    pub authorization: Option<SecretText>,
    pub content_type: String,
    /// The exact bytes.
    pub body: Vec<u8>,
    /// The template that should have made the body failed, and how.
    pub template_error: Option<String>,
}

impl WebhookRequest {
    /// The one request of a delivery, with a JSON body.
    pub(super) fn json(body: &impl Serialize) -> Result<Self, RequestError> {
        Ok(Self::bytes("application/json".into(), serde_json::to_vec(body)?))
    }

    pub(super) fn bytes(content_type: String, body: Vec<u8>) -> Self {
        Self {
            key: String::new(),
            is_put: false,
            path: Vec::new(),
            query: None,
            authorization: None,
            content_type,
            body,
            template_error: None,
        }
    }

    /// The one request of a delivery, as a form.
    pub(super) fn form(fields: &[(&str, &str)]) -> Self {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        Self::bytes("application/x-www-form-urlencoded".into(), body.into_bytes())
    }

    /// A value of `Authorization` for those who ask for a name and a password.
    pub(super) fn basic(name: &str, password: &str) -> SecretText {
        format!("Basic {}", BASE64.encode(format!("{name}:{password}"))).into()
    }
}

/// Why a delivery makes no request.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("the delivery holds no notice")]
    Nothing,
    /// A key that the config no longer gives.
    #[error(transparent)]
    Missing(#[from] MissingKey),
    #[error("cannot write the message as JSON")]
    Json(#[from] serde_json::Error),
}

impl RequestError {
    /// Whether another attempt may do better: a secret's file may come back.
    pub fn is_transient(&self) -> bool {
        matches!(self, RequestError::Missing(_))
    }
}

/// An incident of a service that keeps a state: opened, told again and resolved under one key.
pub(super) struct PagerIncident {
    /// The same from the first message to the end.
    pub(super) key: String,
    pub(super) is_resolved: bool,
    /// What it tells, in one line.
    pub(super) title: String,
    /// The gravest in it.
    pub(super) tone: Tone,
    /// What it tells, the most urgent first.
    pub(super) cards: Vec<Card>,
    /// What is not among the cards; empty where all is.
    pub(super) rest: String,
    /// The first that it tells, for labels and names.
    pub(super) first: Notification,
    /// Where one reads more.
    pub(super) page: Option<String>,
}

/// The incidents of a delivery. What a route groups is one incident, which is resolved once nothing in its group fires. Without groups
/// each event has one of its own, under the id of its strongest alert; where many come at once, they share one, under the delivery's own
/// id: each end is told by itself, and the last one ends what they shared too.
pub(super) fn incidents(brief: &Brief<'_>, share: ShareStyle, max_title: usize) -> Vec<PagerIncident> {
    let entries = latest_entries(brief);
    let whole = |key: String, is_resolved: bool, entries: &[MessageEntry<'_>]| {
        let cards: Vec<Card> = entries.iter().take(MAX_LINES).map(|entry| brief.card(entry)).collect();
        Some(PagerIncident {
            key,
            is_resolved,
            title: brief.title(share, max_title),
            tone: brief.tone(),
            rest: brief.rest(cards.len()),
            cards,
            first: entries.first()?.strongest.clone(),
            page: brief.page_of_all(),
        })
    };
    let bundle = &brief.delivery.bundle;
    let is_over = |entry: &MessageEntry<'_>| entry.strongest.body.status == AlertStatus::Resolved;
    if let Some(group) = &bundle.group_key {
        let is_resolved = bundle.told_before == 0 && entries.iter().all(is_over);
        return whole(format!("gr_{}", text::fingerprint([group.as_str()], ID_BYTES)), is_resolved, &entries)
            .into_iter()
            .collect();
    }
    let single = |notice: &Notification, entry: &MessageEntry<'_>, is_resolved: bool| {
        let card = brief.card(entry);
        PagerIncident {
            key: notice.alert.as_str().to_owned(),
            is_resolved,
            title: brief.line(notice, share, max_title),
            tone: card.tone,
            page: card.page.clone(),
            cards: vec![card],
            rest: String::new(),
            first: notice.clone(),
        }
    };
    let (over, goes_on): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_over);
    let mut all: Vec<PagerIncident> = if goes_on.len() > MAX_INCIDENTS || bundle.truncated > 0 {
        whole(brief.delivery.webhook_id.clone(), false, &goes_on).into_iter().collect()
    } else {
        goes_on.iter().map(|entry| single(entry.strongest, entry, false)).collect()
    };
    let ends = over.iter().flat_map(|entry| entry.all().map(move |notice| single(notice, entry, true)));
    all.extend(ends.take(MAX_REQUESTS));
    let last = over.last().map(|entry| entry.strongest);
    all.extend(last.into_iter().flat_map(|last| brief.delivery.over.iter().map(|key| storm_over(key, last, brief))));
    all
}

/// The end of what many alerts shared, with the end of the last of them.
fn storm_over(key: &str, last: &Notification, brief: &Brief<'_>) -> PagerIncident {
    PagerIncident {
        key: key.to_owned(),
        is_resolved: true,
        title: "Nothing of these alerts fires any more".to_owned(),
        tone: Tone::Good,
        cards: Vec::new(),
        rest: String::new(),
        first: last.clone(),
        page: brief.page_of_all(),
    }
}

/// The entries of a delivery, of each alert the latest alone: of one that began and ended within it, the end.
fn latest_entries<'a>(brief: &Brief<'a>) -> Vec<MessageEntry<'a>> {
    let notifications = brief.notifications();
    let is_latest =
        |at: usize, notice: &Notification| !notifications.iter().skip(at + 1).any(|later| later.alert == notice.alert);
    message_entries(notifications.iter().enumerate().filter(|(at, notice)| is_latest(*at, notice)).map(|(_, notice)| notice))
}

#[cfg(test)]
mod tests;

//! The services that take our messages by HTTP: what each is sent, and what it means by its answer. Pure.
//!
//! [`Format`] names them; [`posts`] makes of a delivery the requests that tell it, most often one; [`judge`] reads an answer, since
//! some services say 200 and mean no. A module for each knows its limits and how its text is escaped: they are those of its public
//! documentation. The promises: a message is never refused for its length, what is cut is counted; no text from outside mentions
//! people, adds a link or breaks the markup; a state (an incident, an alert elsewhere) is opened and closed under one key.

mod alertmanager;
mod discord;
mod ntfy;
mod opsgenie;
mod pagerduty;
mod slack;
mod teams;
mod telegram;
pub(crate) mod template;

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use serde::Serialize;

use super::{
    card::{Brief, Card},
    message,
    retry::Outcome,
};
use crate::{alert::Notice, config::SecretText};
use template::BodyTemplate;

/// Most alerts of one delivery that get a request of their own, where a service takes one alert at a time.
const MAX_POSTS: usize = message::MAX_ALERTS;

/// Longest wait that a service can ask for in the body of an answer, seconds.
const MAX_ASKED_SECS: f64 = 86_400.0;

/// Which service, and so which shape of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Our own.
    #[default]
    Cliffwatch,
    /// What Alertmanager sends to webhooks, version 4.
    Alertmanager,
    /// Alertmanager itself: `/api/v2/alerts`.
    AlertmanagerApi,
    /// Slack's incoming webhooks, and those who speak like them.
    Slack,
    /// Discord's webhooks.
    Discord,
    /// A bot of Telegram.
    Telegram,
    /// A workflow of Microsoft Teams.
    Teams,
    /// PagerDuty, Events API v2.
    PagerDuty,
    /// Opsgenie, Alert API.
    Opsgenie,
    /// ntfy, here or elsewhere.
    Ntfy,
    /// A body of the operator's own.
    Template,
}

/// A secret or a word that a receiver may need beside its address: the config key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// `token`: of a bot, or a bearer token.
    Token,
    /// `routing_key`.
    RoutingKey,
    /// `api_key`.
    ApiKey,
    /// `topic`.
    Topic,
    /// `chat_id`.
    ChatId,
    /// `template`.
    Template,
}

impl Need {
    /// The key in the config.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Need::Token => "token",
            Need::RoutingKey => "routing_key",
            Need::ApiKey => "api_key",
            Need::Topic => "topic",
            Need::ChatId => "chat_id",
            Need::Template => "template",
        }
    }
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 11] = [
        Format::Cliffwatch,
        Format::Alertmanager,
        Format::AlertmanagerApi,
        Format::Slack,
        Format::Discord,
        Format::Telegram,
        Format::Teams,
        Format::PagerDuty,
        Format::Opsgenie,
        Format::Ntfy,
        Format::Template,
    ];

    /// The words of the config, in the order of [`ALL`](Self::ALL).
    pub const WORDS: [&str; 11] = [
        "cliffwatch",
        "alertmanager",
        "alertmanager-api",
        "slack",
        "discord",
        "telegram",
        "teams",
        "pagerduty",
        "opsgenie",
        "ntfy",
        "template",
    ];

    /// The word in the config.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().zip(Self::WORDS).find(|(format, _)| **format == self).map_or("cliffwatch", |(_, word)| word)
    }

    /// The format of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == word)
    }

    /// Where the service is, unless the config says otherwise. None where each user has an address of their own.
    #[must_use]
    pub fn address(self) -> Option<&'static str> {
        match self {
            Format::Telegram => Some("https://api.telegram.org"),
            Format::PagerDuty => Some("https://events.pagerduty.com"),
            Format::Opsgenie => Some("https://api.opsgenie.com"),
            Format::Ntfy => Some("https://ntfy.sh"),
            _ => None,
        }
    }

    /// What it cannot do without.
    #[must_use]
    pub fn needs(self) -> &'static [Need] {
        match self {
            Format::Telegram => &[Need::Token, Need::ChatId],
            Format::PagerDuty => &[Need::RoutingKey],
            Format::Opsgenie => &[Need::ApiKey],
            Format::Ntfy => &[Need::Topic],
            Format::Template => &[Need::Template],
            _ => &[],
        }
    }

    /// Whether a key of the config means anything to it.
    #[must_use]
    pub fn takes(self, key: &str) -> bool {
        let key = key.strip_suffix("_file").unwrap_or(key);
        match key {
            // Headers of Standard Webhooks: who defines the body of a message himself can also check who sent it.
            "secret" => self.is_signed(),
            "token" => self.is_signed() || matches!(self, Format::AlertmanagerApi | Format::Telegram | Format::Ntfy),
            "thread_id" => self == Format::Telegram,
            "content_type" => self == Format::Template,
            "routing_key" | "api_key" | "topic" | "chat_id" | "template" => self.needs().iter().any(|need| need.key() == key),
            _ => true,
        }
    }

    /// Whether its requests carry the headers of Standard Webhooks.
    #[must_use]
    pub fn is_signed(self) -> bool {
        matches!(self, Format::Cliffwatch | Format::Alertmanager | Format::Template)
    }

    /// What the service takes: so many requests at once, and one more after each pause.
    #[must_use]
    pub fn pace(self) -> Option<(u32, Duration)> {
        match self {
            Format::Slack => Some((5, Duration::from_secs(1))),
            // Thirty a minute to a channel.
            Format::Discord => Some((5, Duration::from_secs(2))),
            // Twenty a minute to a group.
            Format::Telegram => Some((5, Duration::from_secs(3))),
            // Four a second.
            Format::Teams => Some((4, Duration::from_millis(250))),
            // A hundred and twenty a minute to an integration.
            Format::PagerDuty => Some((60, Duration::from_millis(500))),
            // Sixty at once, then one every five seconds.
            Format::Ntfy => Some((60, Duration::from_secs(5))),
            _ => None,
        }
    }
}

/// What a receiver was given beside its address, read for one attempt.
#[derive(Clone, Debug, Default)]
pub struct Means {
    /// Token of a bot, or bearer token.
    pub token: Option<SecretText>,
    /// Routing key of PagerDuty.
    pub routing_key: Option<SecretText>,
    /// API key of Opsgenie.
    pub api_key: Option<SecretText>,
    /// Topic of ntfy: who knows it can read and write there.
    pub topic: Option<SecretText>,
    /// Chat of Telegram.
    pub chat_id: Option<String>,
    /// Topic within that chat.
    pub thread_id: Option<i64>,
    /// The operator's own body.
    pub template: Option<Arc<BodyTemplate>>,
}

impl Means {
    /// All secrets among them.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        [&self.token, &self.routing_key, &self.api_key, &self.topic].into_iter().flatten().map(SecretText::expose)
    }
}

/// One request.
#[derive(Clone)]
pub struct Post {
    /// What it is about, unique among the requests of a delivery: what was taken is not sent again with the rest.
    pub key: String,
    /// Path segments behind the receiver's address.
    pub path: Vec<String>,
    /// Added to the address's query.
    pub query: Option<(&'static str, &'static str)>,
    /// Value of the header `Authorization`.
    pub authorization: Option<SecretText>,
    /// Type of the body.
    pub content_type: String,
    /// The exact bytes.
    pub body: Vec<u8>,
    /// The template that should have made the body failed, and how.
    pub template_error: Option<String>,
}

impl Post {
    fn json(key: &str, body: &impl Serialize) -> Result<Self, PostError> {
        Ok(Self::bytes(key, "application/json".into(), serde_json::to_vec(body)?))
    }

    fn bytes(key: &str, content_type: String, body: Vec<u8>) -> Self {
        Self { key: key.to_owned(), path: Vec::new(), query: None, authorization: None, content_type, body, template_error: None }
    }
}

/// Why a delivery makes no request.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// It is empty.
    #[error("the delivery holds no notice")]
    Nothing,
    /// A key that the config no longer gives.
    #[error("the receiver has no `{0}`")]
    Missing(&'static str),
    /// Something in it is no JSON.
    #[error("cannot write the message as JSON")]
    Json(#[from] serde_json::Error),
}

impl PostError {
    /// Whether another attempt may do better: a secret's file may come back.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, PostError::Missing(_))
    }
}

/// The requests that tell `brief`, in their order. `segments` are those of the receiver's address: a service whose address was given
/// in full gets no second path.
///
/// # Errors
/// Where there is nothing to tell, or something to tell it with is missing.
pub fn posts(format: Format, brief: &Brief<'_>, means: &Means, has_path: bool) -> Result<Vec<Post>, PostError> {
    if brief.notices().is_empty() {
        return Err(PostError::Nothing);
    }
    let bearer = means.token.as_ref().map(|token| SecretText::from(format!("Bearer {}", token.expose())));
    let mut posts = match format {
        Format::Cliffwatch => {
            let body = message::webhook_body(brief.delivery, brief.external_url)?.ok_or(PostError::Nothing)?;
            vec![Post::bytes("", "application/json".into(), body)]
        }
        Format::Alertmanager => vec![Post::json("", &alertmanager::webhook(brief))?],
        Format::AlertmanagerApi => {
            let path = if has_path { Vec::new() } else { segments(&["api", "v2", "alerts"]) };
            vec![Post { path, ..Post::json("", &alertmanager::alerts(brief))? }]
        }
        Format::Slack => vec![Post::json("", &slack::body(brief))?],
        Format::Discord => vec![Post { query: Some(("wait", "true")), ..Post::json("", &discord::body(brief))? }],
        Format::Telegram => {
            let token = means.token.as_ref().ok_or(PostError::Missing("token"))?;
            let chat = means.chat_id.as_deref().ok_or(PostError::Missing("chat_id"))?;
            let path = vec![format!("bot{}", token.expose()), "sendMessage".to_owned()];
            vec![Post { path, ..Post::json("", &telegram::body(brief, chat, means.thread_id))? }]
        }
        Format::Teams => vec![Post::json("", &teams::body(brief))?],
        Format::PagerDuty => {
            let routing_key = means.routing_key.as_ref().ok_or(PostError::Missing("routing_key"))?;
            let path = if has_path { Vec::new() } else { segments(&["v2", "enqueue"]) };
            let post = |about: About<'_>| {
                let body = pagerduty::body(brief, &about, routing_key.expose());
                Ok(Post { path: path.clone(), ..Post::json(&about.key(), &body)? })
            };
            one_by_one(brief).into_iter().map(post).collect::<Result<_, PostError>>()?
        }
        Format::Opsgenie => {
            let api_key = means.api_key.as_ref().ok_or(PostError::Missing("api_key"))?;
            let authorization = SecretText::from(format!("GenieKey {}", api_key.expose()));
            let path = if has_path { Vec::new() } else { segments(&["v2", "alerts"]) };
            let post = |about: About<'_>| {
                let mut path = path.clone();
                path.extend(opsgenie::path(&about));
                let query = about.is_resolved().then_some(("identifierType", "alias"));
                let body = opsgenie::body(brief, &about);
                Ok(Post { path, query, authorization: Some(authorization.clone()), ..Post::json(&about.key(), &body)? })
            };
            one_by_one(brief).into_iter().map(post).collect::<Result<_, PostError>>()?
        }
        Format::Ntfy => {
            let topic = means.topic.as_ref().ok_or(PostError::Missing("topic"))?;
            vec![Post::json("", &ntfy::body(brief, topic.expose()))?]
        }
        Format::Template => {
            let template = means.template.as_ref().ok_or(PostError::Missing("template"))?;
            let (body, template_error) = template.body(brief)?;
            vec![Post { template_error, ..Post::bytes("", template.content_type().to_owned(), body) }]
        }
    };
    if format != Format::Telegram {
        for post in &mut posts {
            post.authorization = post.authorization.take().or_else(|| bearer.clone());
        }
    }
    Ok(posts)
}

fn segments(all: &[&str]) -> Vec<String> {
    all.iter().map(|segment| (*segment).to_owned()).collect()
}

/// What one request tells, where a service takes one alert at a time.
enum About<'a> {
    /// An alert.
    Alert(&'a Notice, Box<Card>),
    /// What the delivery only counts, in a line, under the delivery's own id.
    Rest(String, &'a str),
}

impl About<'_> {
    /// The key under which the service knows it: the same from the first message to the end.
    fn key(&self) -> String {
        match self {
            About::Alert(notice, _) => notice.alert.as_str().to_owned(),
            About::Rest(_, id) => (*id).to_owned(),
        }
    }

    fn is_resolved(&self) -> bool {
        matches!(self, About::Alert(notice, _) if notice.body.status == "resolved")
    }
}

/// The alerts of a delivery, each once: of one that began and ended within it, the end. What is left out is counted in one more.
fn one_by_one<'a>(brief: &Brief<'a>) -> Vec<About<'a>> {
    let notices = brief.notices();
    let latest = |at: usize, notice: &Notice| !notices.iter().skip(at + 1).any(|later| later.alert == notice.alert);
    let mut cards = brief.cards(usize::MAX).into_iter();
    let mut all: Vec<About<'a>> = Vec::new();
    for (at, notice) in notices.iter().enumerate() {
        let Some(card) = cards.next() else { break };
        if latest(at, notice) && all.len() < MAX_POSTS {
            all.push(About::Alert(notice, Box::new(card)));
        }
    }
    let rest = brief.count().saturating_sub(notices.len().min(MAX_POSTS));
    if rest > 0 {
        let line = brief.rest(brief.count() - rest);
        all.push(About::Rest(line, &brief.delivery.webhook_id));
    }
    all
}

/// What a service means by its answer, and a word on it where its own text is not enough.
#[must_use]
pub fn judge(format: Format, status: u16, retry_after: Option<TimeDelta>, body: &str) -> (Outcome, Option<String>) {
    let plain = Outcome::of_http_status(status, retry_after);
    match format {
        Format::Slack => slack::judge(plain, body),
        Format::Discord => discord::judge(plain, body),
        Format::Telegram => telegram::judge(plain, body),
        Format::Teams => teams::judge(plain, body),
        _ => (plain, None),
    }
}

/// Seconds that a service asks to wait, as a span within bounds.
fn asked(seconds: f64) -> Option<TimeDelta> {
    #[expect(clippy::cast_possible_truncation, reason = "within bounds")]
    (seconds.is_finite() && seconds >= 0.0).then(|| TimeDelta::milliseconds((seconds.min(MAX_ASKED_SECS) * 1000.0).ceil() as i64))
}

/// `later`, put off as the body asks where no header did.
fn put_off(outcome: Outcome, seconds: Option<f64>) -> Outcome {
    match outcome {
        Outcome::Later { retry_after: None } => Outcome::Later { retry_after: seconds.and_then(asked) },
        other => other,
    }
}

/// The lines that fit into `room`, whole lines only, each with the break behind it; and how many. `size` measures as the service
/// does.
fn fit<'a>(lines: impl IntoIterator<Item = &'a String>, room: usize, size: fn(&str) -> usize) -> (String, usize) {
    let (mut text, mut taken, mut count) = (String::new(), 0, 0);
    for line in lines {
        let needed = size(line) + usize::from(count > 0);
        if taken + needed > room {
            break;
        }
        if count > 0 {
            text.push('\n');
        }
        text.push_str(line);
        taken += needed;
        count += 1;
    }
    (text, count)
}

/// Length as services count it that were written in JavaScript, Java or Objective-C.
fn utf16(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// At most `max` bytes of a text, whole characters only.
fn cut_bytes(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests;

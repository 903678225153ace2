//! Silences and acknowledgements.
//!
//! A [`Silence`] suppresses notifications of all alerts that its matchers select, from its start to its end. After its end,
//! suppressed notifications are sent if their alert still fires. An [`Ack`] suppresses reminders of one alert until the facts in
//! [`SilenceFact`] change: the record moves, is resized, or reaches the next level. The resolution is sent in any case.

use std::fmt;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::config::Span;
use crate::text::{fingerprint, replaced};
use crate::{AlertBody, AlertId, AlertState, Labels, Matcher, MatcherError, TOKEN_LABEL, Timestamp, TokenId, all_match};

/// The maximum number of matchers in a silence.
pub const MAX_MATCHERS: usize = 32;

/// The maximum length of an author in characters.
pub const MAX_AUTHOR: usize = 200;

/// The author of an action without a user name: by the shared token, or by a command in a service.
pub const UNKNOWN_AUTHOR: &str = "unknown user";

/// The maximum length of a comment in characters.
pub const MAX_COMMENT: usize = 2_000;

/// The maximum time from start to end.
pub const MAX_SPAN: TimeDelta = TimeDelta::days(366);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Silence {
    /// `si_…`.
    pub id: String,
    /// Alerts must match all of them.
    pub matchers: Vec<Matcher>,
    pub author: String,
    pub comment: String,
    pub starts_at: Timestamp,
    /// The end, exclusive. Earlier than planned if an operator ended the silence.
    pub ends_at: Timestamp,
    pub created_at: Timestamp,
}

words! {
    SilenceState {
        Pending = "pending",
        Active = "active",
        Expired = "expired",
    }
}

/// A request for a silence.
#[derive(Clone, Debug, PartialEq)]
pub struct SilenceRequest {
    /// As in `token="arbitrum"`.
    pub matchers: Vec<Matcher>,
    pub author: String,
    pub comment: String,
    /// `None` starts the silence now.
    pub starts_at: Option<Timestamp>,
    pub ends_at: Timestamp,
}

/// Why a silence request is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SilenceError {
    #[error("a silence needs at least one matcher, such as token=\"arbitrum\"")]
    NoMatchers,
    #[error("a silence has at most {MAX_MATCHERS} matchers")]
    TooManyMatchers,
    #[error("{text:?}: {why}")]
    Matcher {
        text: String,
        /// The problem and how to fix it.
        why: String,
    },
    #[error(
        "the matchers also match alerts without labels, so the silence would suppress everything; add a matcher for a label that must exist"
    )]
    Everything,
    #[error("the silence would end ({ends_at}) before it begins ({starts_at})")]
    EndsFirst { starts_at: Timestamp, ends_at: Timestamp },
    #[error("the silence would end in the past, at {0}")]
    Past(Timestamp),
    #[error("the silence began at {0}: an update cannot change that")]
    HasBegun(Timestamp),
    #[error("a silence lasts at most {} days: create a new one when it expires, or remove the receiver from the route", MAX_SPAN.num_days())]
    TooLong,
    #[error("a silence needs an author of at most {MAX_AUTHOR} characters")]
    Author,
    #[error("a silence needs a comment of at most {MAX_COMMENT} characters, so that others know why")]
    Comment,
}

/// Parses the matchers of a silence.
///
/// # Errors
/// At the first text that is not a valid matcher.
pub fn read_matchers<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Vec<Matcher>, SilenceError> {
    texts
        .into_iter()
        .map(|text| {
            Matcher::parse(text).map_err(|MatcherError { message, help }| {
                let why = help.map_or(message.clone(), |help| format!("{message}; {help}"));
                SilenceError::Matcher { text: text.to_owned(), why }
            })
        })
        .collect()
}

/// Checks the number of the matchers of a silence, before anything is read for each of them.
///
/// # Errors
///
/// Fails if there are none or too many.
pub fn check_count(matchers: &[Matcher]) -> Result<(), SilenceError> {
    match matchers.len() {
        0 => Err(SilenceError::NoMatchers),
        1..=MAX_MATCHERS => Ok(()),
        _ => Err(SilenceError::TooManyMatchers),
    }
}

impl SilenceRequest {
    /// Returns the end of a silence of length `span`. If it is out of range, the start, which [`Self::into_silence`] rejects.
    #[must_use]
    pub fn end_after(begin: Timestamp, span: Span) -> Timestamp {
        begin.checked_add_signed(span.delta()).unwrap_or(begin)
    }

    /// Returns the requested silence, created at `now`. A start in the past becomes `now`.
    ///
    /// # Errors
    /// If it has no matchers or too many, if it would also match alerts without labels, if it ends before `now` or before its start or
    /// lasts longer than [`MAX_SPAN`], or if the author or the comment is missing or too long.
    pub fn into_silence(self, now: Timestamp) -> Result<Silence, SilenceError> {
        let starts_at = self.starts_at.unwrap_or(now).max(now);
        let Self { matchers, author, comment, ends_at, .. } = self.checked(starts_at, now)?;
        let id = silence_id(&matchers, &author, &comment, starts_at, ends_at, now);
        Ok(Silence { id, matchers, author, comment, starts_at, ends_at, created_at: now })
    }

    /// Returns a silence with the requested values and the id of `former`. Without a requested start, the start of `former` stays.
    ///
    /// # Errors
    /// Like [`Self::into_silence`], and if the start of a silence that has begun would change.
    pub fn into_update(self, former: &Silence, now: Timestamp) -> Result<Silence, SilenceError> {
        let starts_at = match self.starts_at {
            None => former.starts_at,
            Some(starts_at) if former.starts_at > now => starts_at.max(now),
            Some(starts_at) if starts_at == former.starts_at => starts_at,
            Some(_) => return Err(SilenceError::HasBegun(former.starts_at)),
        };
        let Self { matchers, author, comment, ends_at, .. } = self.checked(starts_at, now)?;
        let (id, created_at) = (former.id.clone(), former.created_at);
        Ok(Silence { id, matchers, author, comment, starts_at, ends_at, created_at })
    }

    /// Checks a request for a silence with this start, and returns its texts on one line.
    fn checked(self, starts_at: Timestamp, now: Timestamp) -> Result<Self, SilenceError> {
        let SilenceRequest { matchers, author, comment, ends_at, .. } = self;
        let (author, comment) = (line(&author), line(&comment));
        check_count(&matchers)?;
        if matchers.iter().all(Matcher::matches_missing_label) {
            return Err(SilenceError::Everything);
        }
        if ends_at <= now {
            return Err(SilenceError::Past(ends_at));
        }
        if ends_at <= starts_at {
            return Err(SilenceError::EndsFirst { starts_at, ends_at });
        }
        if ends_at - starts_at > MAX_SPAN {
            return Err(SilenceError::TooLong);
        }
        if author.is_empty() || author.chars().count() > MAX_AUTHOR {
            return Err(SilenceError::Author);
        }
        if comment.is_empty() || comment.chars().count() > MAX_COMMENT {
            return Err(SilenceError::Comment);
        }
        Ok(Self { matchers, author, comment, starts_at: Some(starts_at), ends_at })
    }
}

/// Returns the text on one line, with spaces in place of hostile characters.
fn line(text: &str) -> String {
    replaced(text, ' ', usize::MAX).trim().to_owned()
}

/// Returns the id. Equal requests at the same instant have the same id, so a request can be repeated safely.
fn silence_id(
    matchers: &[Matcher],
    author: &str,
    comment: &str,
    starts_at: Timestamp,
    ends_at: Timestamp,
    now: Timestamp,
) -> String {
    let mut texts: Vec<String> = matchers.iter().map(ToString::to_string).collect();
    texts.extend([author.to_owned(), comment.to_owned()]);
    texts.extend([starts_at, ends_at, now].map(|at| at.timestamp_millis().to_string()));
    format!("si_{}", fingerprint(texts.iter().map(String::as_str), 6))
}

impl Silence {
    /// Returns the silence for a token that the source lists under another slug. `None` unless this silence selects the old slug and not
    /// the new one. The result is always the same, so that storing it twice leaves one silence.
    #[must_use]
    pub fn under_new_slug(&self, from: &TokenId, to: &TokenId) -> Option<Self> {
        let is_about_token = |matcher: &Matcher| matcher.label() == TOKEN_LABEL;
        let selects = |slug: &TokenId| {
            let labels = Labels::from([(TOKEN_LABEL.to_owned(), slug.to_string())]);
            self.matchers.iter().filter(|matcher| is_about_token(matcher)).all(|matcher| matcher.matches(&labels))
        };
        if !selects(from) || selects(to) {
            return None;
        }
        // One matcher for the new slug, in place of the first one about the token.
        let mut own = Some(Matcher::of(TOKEN_LABEL, to.as_str(), false, true).ok()?);
        let moved = |matcher: &Matcher| if is_about_token(matcher) { own.take() } else { Some(matcher.clone()) };
        let matchers: Vec<Matcher> = self.matchers.iter().filter_map(moved).collect();
        let id = silence_id(&matchers, &self.author, &self.comment, self.starts_at, self.ends_at, self.created_at);
        Some(Self { id, matchers, ..self.clone() })
    }

    pub fn state(&self, now: Timestamp) -> SilenceState {
        if now < self.starts_at {
            SilenceState::Pending
        } else if now < self.ends_at {
            SilenceState::Active
        } else {
            SilenceState::Expired
        }
    }

    /// Returns whether the matchers select an alert with these labels.
    pub fn selects(&self, labels: &Labels) -> bool {
        all_match(&self.matchers, labels)
    }

    /// Returns whether the silence suppresses notifications of an alert with these labels now.
    pub fn suppresses(&self, labels: &Labels, now: Timestamp) -> bool {
        self.state(now) == SilenceState::Active && self.selects(labels)
    }

    pub fn matchers_line(&self) -> String {
        self.matchers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// A silence as tables, JSON, and the API show it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SilenceView {
    pub state: SilenceState,
    #[serde(flatten)]
    pub silence: Silence,
}

impl SilenceView {
    /// Returns the view at `now`.
    pub fn of(silence: Silence, now: Timestamp) -> Self {
        Self { state: silence.state(now), silence }
    }
}

/// The effect of a silence, shown before it is created.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SilencePreview {
    /// Pending and firing alerts that it would suppress.
    pub alerts: Vec<SilencedAlert>,
    /// The number of all pending and firing alerts.
    pub open: usize,
    /// Notifications of the last seven days that it would have suppressed.
    pub last_week: usize,
    /// The number of all notifications of the last seven days, at most [`Self::MAX_MESSAGES`].
    pub last_week_all: usize,
}

/// An alert that a silence suppresses.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SilencedAlert {
    pub id: AlertId,
    pub rule: String,
    /// `pending` or `firing`.
    pub state: AlertState,
    /// The first line of its message.
    pub summary: String,
}

impl SilencedAlert {
    /// Returns the list entry, with the first line of the summary, or the subject without one.
    pub fn of(id: AlertId, rule: String, state: AlertState, summary: Option<&str>, subject: &str) -> Self {
        let summary = summary.and_then(|text| text.lines().next()).unwrap_or(subject).to_owned();
        Self { id, rule, state, summary }
    }
}

impl SilencePreview {
    /// The maximum number of notifications of the last week that are checked, latest first.
    pub const MAX_MESSAGES: u32 = 10_000;

    /// The effect as text: `it suppresses 1 of 2 open alerts and would have suppressed 3 of the last seven days' 40 messages`. From
    /// [`Self::MAX_MESSAGES`] on, older messages were not checked, so the text says `latest 10000 messages`.
    pub fn sentence(&self) -> String {
        let latest = if self.last_week_all < Self::MAX_MESSAGES as usize { "" } else { "latest " };
        format!(
            "it suppresses {} of {} and would have suppressed {} of the last seven days' {latest}{}",
            self.alerts.len(),
            crate::phrase::count(self.open, "open alert"),
            self.last_week,
            crate::phrase::count(self.last_week_all, "message"),
        )
    }
}

/// An acknowledgement of an alert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ack {
    pub alert: AlertId,
    pub author: String,
    pub comment: String,
    pub at: Timestamp,
    /// The facts that the acknowledgement covers. When they change, notifications resume.
    pub fact: SilenceFact,
}

/// The facts that an acknowledgement covers: dates, amounts, and the level, but not prices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SilenceFact(pub serde_json::Value);

/// The fields with amounts and dates in the API's records.
const FACT_FIELDS: [&str; 12] = [
    "/unlockDate",
    "/cliffUnlocks/cliffAmount",
    "/linearUnlocks/linearAmount",
    "/linearUnlocks/dailyAmount",
    "/burnDate",
    "/buybackDate",
    "/amount",
    "/tokenAmount",
    "/unlockAmount",
    "/allocationAmount",
    "/startDate",
    "/fundingDate",
];

impl SilenceFact {
    /// Returns the facts of an alert.
    pub fn of(level: Option<u32>, record: Option<&serde_json::Value>) -> Self {
        let mut fact = serde_json::Map::new();
        fact.insert("level".to_owned(), level.into());
        for field in FACT_FIELDS {
            if let Some(value) = record.and_then(|record| record.pointer(field)).filter(|value| !value.is_null()) {
                fact.insert(field.to_owned(), value.clone());
            }
        }
        Self(fact.into())
    }

    /// Returns the facts in a notification.
    pub fn notified(level: Option<u32>, body: &AlertBody) -> Self {
        Self::of(level, body.record.as_ref())
    }
}

impl fmt::Display for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} acknowledged by {} at {}", self.alert, self.author, crate::phrase::instant(self.at))?;
        if self.comment.is_empty() { Ok(()) } else { write!(f, ": {}", self.comment) }
    }
}

/// Checks the author and the comment of an acknowledgement.
///
/// # Errors
/// If the author is missing, or if one of them is too long.
pub fn checked_ack_texts(author: &str, comment: &str) -> Result<(String, String), SilenceError> {
    let (author, comment) = (line(author), line(comment));
    if author.is_empty() || author.chars().count() > MAX_AUTHOR {
        return Err(SilenceError::Author);
    }
    if comment.chars().count() > MAX_COMMENT {
        return Err(SilenceError::Comment);
    }
    Ok((author, comment))
}

#[cfg(test)]
mod tests;

//! Silences and acknowledgements: what a person does not want to hear, and for how long. Pure.
//!
//! A [`Silence`] holds back every message about alerts whose labels its matchers take, from a begin to an end. What it held back is
//! recorded, and told after its end where the alert still fires. An [`Ack`] says that somebody knows of one alert: it is not reminded
//! of until its fact changes ([`SilenceFact`]): the record moves, is resized, or reaches the next level. Its end is told.

use std::fmt;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::config::Span;
use crate::text::{fingerprint, replaced};
use crate::{AlertBody, AlertId, AlertState, Labels, Matcher, MatcherError, Timestamp, all_match};

/// Matchers of one silence.
pub const MAX_MATCHERS: usize = 32;

/// Characters of an author.
pub const MAX_AUTHOR: usize = 200;

/// Characters of a comment.
pub const MAX_COMMENT: usize = 2_000;

/// Longest time from begin to end.
pub const MAX_SPAN: TimeDelta = TimeDelta::days(366);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Silence {
    /// `si_…`.
    pub id: String,
    /// All must hold.
    pub matchers: Vec<Matcher>,
    pub author: String,
    pub comment: String,
    pub starts_at: Timestamp,
    /// Its end, not part of it; the time at which it was ended by hand, where it was.
    pub ends_at: Timestamp,
    pub created_at: Timestamp,
}

words! {
    SilenceState {
        Pending = "pending",
        /// It holds back.
        Active = "active",
        Expired = "expired",
    }
}

/// What somebody asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct SilenceRequest {
    /// As written: `token="arbitrum"`.
    pub matchers: Vec<Matcher>,
    pub author: String,
    pub comment: String,
    /// Its begin; none: now.
    pub starts_at: Option<Timestamp>,
    pub ends_at: Timestamp,
}

/// Why a silence cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SilenceError {
    #[error("a silence needs at least one matcher, such as token=\"arbitrum\"")]
    NoMatchers,
    #[error("a silence has at most {MAX_MATCHERS} matchers")]
    TooManyMatchers,
    #[error("{text:?}: {why}")]
    Matcher {
        /// As written.
        text: String,
        /// What is wrong with it, and what to do.
        why: String,
    },
    #[error("every matcher holds for an alert without labels: this would silence everything; name a label that must be there")]
    Everything,
    #[error("the silence would end ({ends_at}) before it begins ({starts_at})")]
    EndsFirst { starts_at: Timestamp, ends_at: Timestamp },
    #[error("the silence would be over already: it ends at {0}")]
    Past(Timestamp),
    #[error("a silence lasts at most {} days: make a new one when it ends, or a route without the receiver", MAX_SPAN.num_days())]
    TooLong,
    #[error("a silence needs an author of at most {MAX_AUTHOR} characters")]
    Author,
    #[error("a silence needs a comment of at most {MAX_COMMENT} characters, so that others know why")]
    Comment,
}

/// Reads the matchers of a silence. Fails with the first text that is none.
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

impl SilenceRequest {
    /// When a silence ends that lasts `span` from its begin. One that would end beyond all time ends at once, which is refused.
    #[must_use]
    pub fn end_after(begin: Timestamp, span: Span) -> Timestamp {
        begin.checked_add_signed(span.delta()).unwrap_or(begin)
    }

    /// The silence that is wished for, made at `now`.
    /// Fails where it would hold back everything or nothing, or does not say who and why.
    pub fn grant(self, now: Timestamp) -> Result<Silence, SilenceError> {
        let SilenceRequest { matchers, author, comment, starts_at, ends_at } = self;
        let starts_at = starts_at.unwrap_or(now).max(now);
        let (author, comment) = (line(&author), line(&comment));
        if matchers.is_empty() {
            return Err(SilenceError::NoMatchers);
        }
        if matchers.len() > MAX_MATCHERS {
            return Err(SilenceError::TooManyMatchers);
        }
        if matchers.iter().all(Matcher::takes_empty) {
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
        let id = silence_id(&matchers, &author, &comment, starts_at, ends_at, now);
        Ok(Silence { id, matchers, author, comment, starts_at, ends_at, created_at: now })
    }
}

/// A text as one line: hostile characters become spaces.
fn line(text: &str) -> String {
    replaced(text, ' ', usize::MAX).trim().to_owned()
}

/// The same wish at the same instant makes the same silence, so that it can be asked for twice.
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
    pub fn state(&self, now: Timestamp) -> SilenceState {
        if now < self.starts_at {
            SilenceState::Pending
        } else if now < self.ends_at {
            SilenceState::Active
        } else {
            SilenceState::Expired
        }
    }

    /// Whether its matchers take an alert with these labels.
    pub fn takes(&self, labels: &Labels) -> bool {
        all_match(&self.matchers, labels)
    }

    /// Whether it holds back what is said of an alert with these labels now.
    pub fn hides(&self, labels: &Labels, now: Timestamp) -> bool {
        self.state(now) == SilenceState::Active && self.takes(labels)
    }

    pub fn matchers_line(&self) -> String {
        self.matchers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// A silence as tables, JSON and the API show it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SilenceView {
    pub state: SilenceState,
    #[serde(flatten)]
    pub silence: Silence,
}

impl SilenceView {
    /// As it stands at `now`.
    pub fn of(silence: Silence, now: Timestamp) -> Self {
        Self { state: silence.state(now), silence }
    }
}

/// What a silence will suppress, known before it is made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SilencePreview {
    /// Alerts that are pending or fire now, and that its matchers take.
    pub alerts: Vec<SilencedAlert>,
    /// Of how many that are pending or fire.
    pub open: usize,
    /// Of the messages of the last seven days, those that it would have hidden.
    pub last_week: usize,
    /// Of how many: at most [`Self::MAX_MESSAGES`].
    pub last_week_all: usize,
}

/// An alert that a silence hides.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SilencedAlert {
    pub id: AlertId,
    pub rule: String,
    /// `pending` or `firing`.
    pub state: AlertState,
    /// First line of its message.
    pub summary: String,
}

impl SilencedAlert {
    /// As it is listed: by the first line of its summary, without one by its subject.
    pub fn of(id: AlertId, rule: String, state: AlertState, summary: Option<&str>, subject: &str) -> Self {
        let summary = summary.and_then(|text| text.lines().next()).unwrap_or(subject).to_owned();
        Self { id, rule, state, summary }
    }
}

impl SilencePreview {
    /// Messages of the last week that are looked at, the latest.
    pub const MAX_MESSAGES: u32 = 10_000;

    pub fn sentence(&self) -> String {
        format!(
            "it hides {} of {} that are open now; of the last seven days' {}{} it would have hidden {}",
            self.alerts.len(),
            crate::format::count(self.open, "alert"),
            if self.last_week_all < Self::MAX_MESSAGES as usize { "" } else { "latest " },
            crate::format::count(self.last_week_all, "message"),
            self.last_week
        )
    }
}

/// Somebody knows of an alert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ack {
    /// Of which.
    pub alert: AlertId,
    /// Who.
    pub author: String,
    pub comment: String,
    /// When.
    pub at: Timestamp,
    /// What they knew: once that changes, they are notified again.
    pub fact: SilenceFact,
}

/// What an acknowledgement is about: when the record is due, its amounts, the level. Prices are not part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SilenceFact(pub serde_json::Value);

/// Where amounts and dates stand in the API's records.
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
    /// The fact of an alert at a `level` whose record is `record`.
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

    /// The fact that a notification is about.
    pub fn told(level: Option<u32>, body: &AlertBody) -> Self {
        Self::of(level, body.record.as_ref())
    }
}

impl fmt::Display for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} acknowledged by {} at {}", self.alert, self.author, crate::format::instant(self.at))?;
        if self.comment.is_empty() { Ok(()) } else { write!(f, ": {}", self.comment) }
    }
}

/// Reads an author and a comment of an acknowledgement. Fails where the author is missing, or one of them is too long.
pub fn ack_words(author: &str, comment: &str) -> Result<(String, String), SilenceError> {
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

//! How the source stands, in one word: for status, page, readiness and metrics. What asks for something else to be done has another word.

use model::{Alert, FailureKind};

use super::kind::IncidentKind;
use super::scope::IncidentScope;

/// How the source stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// Nobody asked it yet.
    NotAsked,
    /// It answers.
    Up,
    /// It wants a key, and none is given.
    NoKey,
    /// It refuses the key.
    KeyRefused,
    /// The credits of the period are spent.
    CreditsSpent,
    /// It cannot be reached, or answers with errors.
    CouldNotAsk,
    /// It answers, and with nothing where there was something.
    Empty,
}

impl SourceState {
    pub const ALL: [Self; 7] =
        [Self::NotAsked, Self::Up, Self::NoKey, Self::KeyRefused, Self::CreditsSpent, Self::CouldNotAsk, Self::Empty];

    /// By the open alerts about the source, and whether it was ever asked.
    #[must_use]
    pub fn of(open: &[Alert], was_asked: bool) -> Self {
        let is = |alert: &Alert, kind: FailureKind| {
            alert.labels.get("kind").is_some_and(|word| IncidentKind::of_word(word) == Some(IncidentKind::Failure(kind)))
        };
        let in_scope = |wanted: &IncidentScope| {
            open.iter().find(|alert| IncidentScope::of_subject(&alert.subject).is_some_and(|scope| scope == *wanted))
        };
        if let Some(alert) = in_scope(&IncidentScope::Unauthorized) {
            return if is(alert, FailureKind::NoKey) { Self::NoKey } else { Self::KeyRefused };
        }
        if in_scope(&IncidentScope::Quota).is_some() {
            return Self::CreditsSpent;
        }
        match in_scope(&IncidentScope::Source) {
            Some(alert) if !is(alert, FailureKind::Emptied) => Self::CouldNotAsk,
            _ if open.iter().any(|alert| is(alert, FailureKind::Emptied)) => Self::Empty,
            _ if was_asked => Self::Up,
            _ => Self::NotAsked,
        }
    }

    /// Its words, for people and for labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotAsked => "not asked yet",
            Self::Up => "up",
            Self::NoKey => "no key",
            Self::KeyRefused => "key refused",
            Self::CreditsSpent => "credits spent",
            Self::CouldNotAsk => "could not ask",
            Self::Empty => "empty",
        }
    }
}

impl serde::Serialize for SourceState {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

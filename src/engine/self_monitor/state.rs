//! The state of the source for the status command, pages, readiness, and metrics. States that need different actions are distinct.

use model::{Alert, FailureKind, IncidentKind};

use super::scope::IncidentScope;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// The source was never polled.
    NotPolled,
    Up,
    /// The source requires a key, but none is configured.
    NoKey,
    /// The key cannot be read or sent.
    KeyUnusable,
    /// The source rejects the key.
    KeyRefused,
    /// The credits of the period are exhausted.
    CreditsSpent,
    /// The source is unreachable or returns errors.
    Unreachable,
    /// The source responds, but without records that it had before.
    Empty,
}

impl SourceState {
    pub const ALL: [Self; 8] = [
        Self::NotPolled,
        Self::Up,
        Self::NoKey,
        Self::KeyUnusable,
        Self::KeyRefused,
        Self::CreditsSpent,
        Self::Unreachable,
        Self::Empty,
    ];

    /// Derives the state from the open alerts about the source and whether it was ever polled.
    #[must_use]
    pub fn of(open: &[Alert], was_polled: bool) -> Self {
        let is = |alert: &Alert, kind: FailureKind| {
            alert.labels.get("kind").is_some_and(|word| IncidentKind::parse(word) == Some(IncidentKind::Failure(kind)))
        };
        let in_scope = |wanted: &IncidentScope| {
            open.iter().find(|alert| IncidentScope::of_subject(&alert.subject).is_some_and(|scope| scope == *wanted))
        };
        if let Some(alert) = in_scope(&IncidentScope::Unauthorized) {
            return if is(alert, FailureKind::NoKey) {
                Self::NoKey
            } else if is(alert, FailureKind::UnusableKey) {
                Self::KeyUnusable
            } else {
                Self::KeyRefused
            };
        }
        if in_scope(&IncidentScope::Quota).is_some() {
            return Self::CreditsSpent;
        }
        match in_scope(&IncidentScope::Source) {
            Some(alert) if !is(alert, FailureKind::Emptied) => Self::Unreachable,
            _ if open.iter().any(|alert| is(alert, FailureKind::Emptied)) => Self::Empty,
            _ if was_polled => Self::Up,
            _ => Self::NotPolled,
        }
    }

    /// Returns the state as text for people and for metric labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotPolled => "not asked yet",
            Self::Up => "up",
            Self::NoKey => "no key",
            Self::KeyUnusable => "key unusable",
            Self::KeyRefused => "key refused",
            Self::CreditsSpent => "credits spent",
            Self::Unreachable => "could not ask",
            Self::Empty => "empty",
        }
    }
}

impl serde::Serialize for SourceState {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

//! The kinds of incidents of the source: why a feed cannot be read.

use crate::FailureKind;

/// Why a feed cannot be read: its poll failed, or its response is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IncidentKind {
    Failure(FailureKind),
    Held,
}

impl IncidentKind {
    /// The feed was not polled because of repeated failures.
    pub const SUSPENDED: Self = IncidentKind::Failure(FailureKind::Suspended);

    /// All kinds, in the order of [`FailureKind::ALL`].
    pub fn all() -> impl Iterator<Item = Self> {
        FailureKind::ALL.into_iter().map(IncidentKind::Failure).chain([IncidentKind::Held])
    }

    /// The label `kind` of the alert.
    pub fn as_str(self) -> &'static str {
        match self {
            IncidentKind::Failure(kind) => kind.as_str(),
            IncidentKind::Held => "held",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::all().find(|kind| kind.as_str() == word)
    }

    /// Returns whether the failure concerns the source as a whole rather than one feed.
    pub fn is_source_wide(self) -> bool {
        matches!(self, IncidentKind::Failure(kind) if kind.is_source_wide())
    }
}

//! What is the matter: the kinds of an incident, with the words of each.

use super::own::LASTING_KINDS;
use model::{Alert, FailureKind};

/// What is the matter with a feed: a failure, or an answer that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum IncidentKind {
    Failure(FailureKind),
    Held,
}

impl IncidentKind {
    /// Not asked.
    pub(super) const SUSPENDED: Self = IncidentKind::Failure(FailureKind::Suspended);

    pub(super) const ALL: [IncidentKind; 17] = [
        IncidentKind::Failure(FailureKind::Unreachable),
        IncidentKind::Failure(FailureKind::Timeout),
        IncidentKind::Failure(FailureKind::ServerError),
        IncidentKind::Failure(FailureKind::NoKey),
        IncidentKind::Failure(FailureKind::Unauthorized),
        IncidentKind::Failure(FailureKind::Forbidden),
        IncidentKind::Failure(FailureKind::RateLimited),
        IncidentKind::Failure(FailureKind::QuotaExhausted),
        IncidentKind::Failure(FailureKind::NotFound),
        IncidentKind::Failure(FailureKind::UnexpectedStatus),
        IncidentKind::Failure(FailureKind::BadAnswer),
        IncidentKind::Failure(FailureKind::TooLarge),
        IncidentKind::Failure(FailureKind::Incomplete),
        IncidentKind::Failure(FailureKind::Emptied),
        IncidentKind::Failure(FailureKind::Suspended),
        IncidentKind::Failure(FailureKind::Deferred),
        IncidentKind::Held,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            IncidentKind::Failure(kind) => kind.as_str(),
            IncidentKind::Held => "held",
        }
    }

    pub(super) fn is_source_wide(self) -> bool {
        matches!(self, IncidentKind::Failure(kind) if kind.is_source_wide())
    }

    pub(super) fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// What is the matter, as the begin of a sentence.
    pub(super) fn phrase(self) -> &'static str {
        match self {
            IncidentKind::Failure(FailureKind::Unreachable) => "The source cannot be reached",
            IncidentKind::Failure(FailureKind::Timeout) => "The source does not answer in time",
            IncidentKind::Failure(FailureKind::ServerError) => "The source answers with errors of its own",
            IncidentKind::Failure(FailureKind::NoKey) => "The source wants an API key, and none is given",
            IncidentKind::Failure(FailureKind::Unauthorized) => "The source refuses the API key",
            IncidentKind::Failure(FailureKind::Forbidden) => "The plan of the API key does not cover what is asked for",
            IncidentKind::Failure(FailureKind::RateLimited) => "The source wants to be asked less often",
            IncidentKind::Failure(FailureKind::QuotaExhausted) => "The credits of this period are spent",
            IncidentKind::Failure(FailureKind::NotFound) => "The source does not have what is asked for",
            IncidentKind::Failure(FailureKind::UnexpectedStatus) => "The source answers with an unexpected status",
            IncidentKind::Failure(FailureKind::BadAnswer) => "The source gives answers that cannot be read",
            IncidentKind::Failure(FailureKind::TooLarge) => "The source gives answers larger than max_body",
            IncidentKind::Failure(FailureKind::Incomplete) => "The source gives incomplete answers",
            IncidentKind::Failure(FailureKind::Emptied) => "The source gives empty answers where there were records",
            IncidentKind::Failure(FailureKind::Suspended) => "The source is not asked for a while, after repeated failures",
            IncidentKind::Failure(FailureKind::Deferred) => "An answer is dearer than planned",
            IncidentKind::Held => "Most coming records are missing from an answer, which is held",
        }
    }

    /// What to do, or what this program does.
    pub(super) fn advice(self) -> &'static str {
        match self {
            IncidentKind::Failure(FailureKind::Unauthorized) => "Check source.api_key, or the file or credential that holds it.",
            IncidentKind::Failure(FailureKind::NoKey) => {
                "Give one by source.api_key_file, source.api_key or the credential api-key."
            }
            IncidentKind::Failure(FailureKind::Forbidden) => "Turn the endpoint off in [schedule], or ask for another plan.",
            IncidentKind::Failure(FailureKind::QuotaExhausted) => {
                "Asking goes on when the period ends; `cliffwatch plan` shows what the schedule costs."
            }
            IncidentKind::Failure(FailureKind::RateLimited) => {
                "It is asked again when it allows; requests_per_minute sets the pace."
            }
            IncidentKind::Failure(FailureKind::NotFound) => {
                "Check the spelling in watch.tokens, or whether the source dropped it."
            }
            IncidentKind::Failure(FailureKind::TooLarge) => "Raise source.max_body if the answer is genuine.",
            IncidentKind::Held => "The answer is believed once further complete answers repeat it.",
            _ => "It is asked again by itself.",
        }
    }
}

/// The kind of an incident of which nothing better is known.
const OTHER: &str = "other";

/// What an open incident may be called: the values of its label `kind`.
pub fn incident_kinds() -> impl Iterator<Item = &'static str> {
    IncidentKind::ALL.into_iter().map(IncidentKind::as_str).chain(LASTING_KINDS).chain([OTHER])
}

/// What an open incident is called: one of [`incident_kinds`].
pub fn incident_kind(alert: &Alert) -> &'static str {
    let word = alert.labels.get("kind").map(String::as_str);
    incident_kinds().find(|kind| Some(*kind) == word).unwrap_or(OTHER)
}

//! What can be wrong with a `[[receiver]]` of the config.

use std::fmt;

/// A key whose value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyProblem {
    pub key: &'static str,
    /// What is wrong and what to do; no secret in it.
    pub message: String,
    /// A file could not be read: it may be there at another time, or for another user.
    pub is_unreadable: bool,
    /// A secret that is given nowhere: a service may have it as a credential.
    pub is_absent: bool,
}

impl KeyProblem {
    pub(super) fn wrong(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into(), is_unreadable: false, is_absent: false }
    }

    pub(super) fn absent(key: &'static str, message: impl Into<String>) -> Self {
        Self { is_absent: true, ..Self::wrong(key, message) }
    }

    pub(super) fn unreadable(key: &'static str, message: impl Into<String>) -> Self {
        Self { is_unreadable: true, ..Self::wrong(key, message) }
    }
}

/// A key of a receiver whose value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverProblem {
    /// Which `[[receiver]]`, from zero.
    pub receiver: usize,
    pub problem: KeyProblem,
}

impl fmt::Display for ReceiverProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "receiver[{}].{}: {}", self.receiver, self.problem.key, self.problem.message)
    }
}

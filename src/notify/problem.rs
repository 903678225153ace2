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
}

impl KeyProblem {
    pub(super) fn wrong(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into(), is_unreadable: false }
    }

    pub(super) fn unreadable(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into(), is_unreadable: true }
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

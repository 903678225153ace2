//! Problems of a `[[receiver]]` in the config.

use std::fmt;

/// A key with an invalid or missing value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyProblem {
    pub key: &'static str,
    /// The problem and how to fix it. Contains no secret.
    pub message: String,
    /// Whether a file could not be read. It may be readable later, or for another user.
    pub is_unreadable: bool,
    /// Whether a secret is missing. The daemon may have it as a systemd credential.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverProblem {
    /// The index of the `[[receiver]]`, from zero.
    pub receiver: usize,
    pub problem: KeyProblem,
}

impl fmt::Display for ReceiverProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "receiver[{}].{}: {}", self.receiver, self.problem.key, self.problem.message)
    }
}

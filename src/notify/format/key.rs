//! The config keys that only some formats take, as the check, the schema and the senders see them.

use super::FORMATS;
use model::config::{ReceiverSettings, Secret};

/// A key of `[[receiver]]` that a format takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatKey {
    pub name: &'static str,
    /// The key that names a file with the value instead, where there may be one.
    pub file: Option<&'static str>,
    pub value: FormatKeyValue,
    /// Whether the format cannot do without it.
    pub is_needed: bool,
    /// What to write where it is missing; a secret says that by itself.
    pub example: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatKeyValue {
    /// Secrets that sign what is sent (Standard Webhooks), one a line.
    SigningSecrets,
    /// A secret that is sent as the bearer token.
    BearerToken,
    /// A secret that the format uses in a way of its own.
    OwnSecret,
    /// A text, or a whole number that is one.
    TextOrNumber,
    /// A whole number from 1.
    PositiveNumber,
    Text,
}

impl FormatKeyValue {
    /// Whether it must never be shown. A secret can come from a systemd credential too.
    pub fn is_secret(self) -> bool {
        matches!(self, Self::SigningSecrets | Self::BearerToken | Self::OwnSecret)
    }
}

impl FormatKey {
    /// Signs the body, for those who define what they are sent and can check who sent it.
    pub(super) const SIGNING: Self = Self::secret("secret", "secret_file", FormatKeyValue::SigningSecrets);

    pub(super) const BEARER: Self = Self::secret("token", "token_file", FormatKeyValue::BearerToken);

    pub(super) const fn secret(name: &'static str, file: &'static str, value: FormatKeyValue) -> Self {
        Self { name, file: Some(file), value, is_needed: false, example: "" }
    }

    pub(super) const fn plain(name: &'static str, value: FormatKeyValue) -> Self {
        Self { name, file: None, value, is_needed: false, example: "" }
    }

    /// The same key for a format that cannot do without it.
    pub(super) const fn needed(self) -> Self {
        Self { is_needed: true, ..self }
    }

    /// Whether this is the key that a config calls `word`, itself or as `x_file`.
    pub fn is_called(&self, word: &str) -> bool {
        self.name == word.strip_suffix("_file").unwrap_or(word)
    }

    /// Where its value is read in a receiver's config.
    pub(crate) fn credential(self, receiver: &ReceiverSettings) -> Credential {
        let has_file = self.file.is_some_and(|file| receiver.format_keys.contains_key(file));
        let given_as = self.file.filter(|_| has_file && !receiver.format_keys.contains_key(self.name)).unwrap_or(self.name);
        Credential { key: self.name, given_as, secret: receiver.format_secret(self.name) }
    }
}

/// Every key that some format takes, each once: secrets first.
pub fn format_keys() -> impl Iterator<Item = &'static FormatKey> {
    let mut all: Vec<&FormatKey> = Vec::new();
    for key in FORMATS.iter().flat_map(|format| format.keys) {
        if !all.iter().any(|known| known.name == key.name) {
            all.push(key);
        }
    }
    all.sort_by_key(|key| !key.value.is_secret());
    all.into_iter()
}

/// A secret of a receiver, and the key that it stands under.
#[derive(Clone, Debug)]
pub struct Credential {
    pub key: &'static str,
    /// The same, or that of the file which holds it.
    pub given_as: &'static str,
    /// Where it is read, at each attempt.
    pub secret: Secret,
}

//! The config keys of formats, for the config check, the schema, and the senders.

use super::FORMATS;
use model::config::{ReceiverSettings, Secret};

/// A key of `[[receiver]]` that only some formats accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatKey {
    pub name: &'static str,
    /// The alternative key for a file that contains the value.
    pub file: Option<&'static str>,
    pub value: FormatKeyValue,
    pub is_needed: bool,
    /// An example value for the error about a missing key. Secrets need none.
    pub example: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatKeyValue {
    /// Secrets that sign requests (Standard Webhooks), one per line.
    SigningSecrets,
    BearerToken,
    /// A secret with a meaning specific to the format.
    OwnSecret,
    /// A string or an integer.
    TextOrNumber,
    /// An integer, at least 1.
    PositiveNumber,
    Text,
}

impl FormatKeyValue {
    /// Returns whether the value is secret. Secrets are never shown, and can also come from systemd credentials.
    pub fn is_secret(self) -> bool {
        matches!(self, Self::SigningSecrets | Self::BearerToken | Self::OwnSecret)
    }
}

impl FormatKey {
    /// Signs the body, for receivers that verify signatures.
    pub(super) const SIGNING: Self = Self::secret("secret", "secret_file", FormatKeyValue::SigningSecrets);

    pub(super) const BEARER: Self = Self::secret("token", "token_file", FormatKeyValue::BearerToken);

    pub(super) const fn secret(name: &'static str, file: &'static str, value: FormatKeyValue) -> Self {
        Self { name, file: Some(file), value, is_needed: false, example: "" }
    }

    pub(super) const fn plain(name: &'static str, value: FormatKeyValue) -> Self {
        Self { name, file: None, value, is_needed: false, example: "" }
    }

    /// Returns the key as a required one.
    pub(super) const fn needed(self) -> Self {
        Self { is_needed: true, ..self }
    }

    /// Returns whether `word` is the name of this key or of its `_file` variant.
    pub fn is_called(&self, word: &str) -> bool {
        self.name == word.strip_suffix("_file").unwrap_or(word)
    }

    pub(crate) fn credential(self, receiver: &ReceiverSettings) -> Credential {
        let has_file = self.file.is_some_and(|file| receiver.format_keys.contains_key(file));
        let given_as = self.file.filter(|_| has_file && !receiver.format_keys.contains_key(self.name)).unwrap_or(self.name);
        Credential { key: self.name, given_as, secret: receiver.format_secret(self.name) }
    }
}

/// Returns the keys of all formats, each once, secrets first.
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

/// A secret of a receiver.
#[derive(Clone, Debug)]
pub struct Credential {
    pub key: &'static str,
    /// The key in use: `key` or its `_file` variant.
    pub given_as: &'static str,
    pub secret: Secret,
}

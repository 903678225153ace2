//! Secrets: set in the config, or read from a file or a systemd credential.

use std::{fmt, path::PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};

/// A text that is never shown: `Debug` and serialization write dots.
#[derive(Clone)]
pub struct SecretText(SecretString);

impl SecretText {
    /// Returns the text. Call this only where the text is used.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl PartialEq for SecretText {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"•••\"")
    }
}

impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("•••")
    }
}

impl<'de> Deserialize<'de> for SecretText {
    /// Accepts numbers and booleans too, since a key of digits is a number in the environment.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Lax {
            Text(String),
            Whole(i128),
            Real(f64),
            Bool(bool),
        }
        // The message must not repeat the value.
        let lax = Lax::deserialize(deserializer).map_err(|_| serde::de::Error::custom("a secret must be a text"))?;
        Ok(match lax {
            Lax::Text(text) => text,
            Lax::Whole(number) => number.to_string(),
            Lax::Real(number) => number.to_string(),
            Lax::Bool(value) => value.to_string(),
        }
        .into())
    }
}

/// The sources of a secret. It is read from them at each use, so that it can be replaced at any time.
#[derive(Clone, Debug)]
pub struct Secret {
    /// The config key for messages, such as `source.api_key`.
    pub key: String,
    /// The value in the config.
    pub inline: Option<SecretText>,
    /// The file with the value.
    pub file: Option<PathBuf>,
    /// The possible names of the systemd credential.
    pub credentials: Vec<String>,
}

/// A secret that could not be read. The error contains no part of it.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the secret {key} from {path}")]
pub struct SecretError {
    key: String,
    path: PathBuf,
    source: std::io::Error,
}

const MAX_SECRET_BYTES: u64 = 64 * 1024;

impl SecretError {
    /// Returns the file, and why it cannot be read.
    pub fn file_and_cause(&self) -> (&std::path::Path, &std::io::Error) {
        (&self.path, &self.source)
    }
}

impl Secret {
    /// Returns the value in the config, else the content of the file, else the credential. `None` if none of them is set.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read.
    pub fn resolve(&self) -> Result<Option<SecretText>, SecretError> {
        use std::io::Read;
        if let Some(text) = &self.inline {
            return Ok(Some(text.clone()));
        }
        let Some(path) = self.path() else { return Ok(None) };
        let mut text = String::new();
        std::fs::File::open(&path)
            .and_then(|file| file.take(MAX_SECRET_BYTES).read_to_string(&mut text))
            .map_err(|source| SecretError { key: self.key.clone(), path, source })?;
        Ok(Some(SecretText::from(text.trim().to_owned())))
    }

    /// Returns the file that contains the value: the configured one, else the credential. `None` if the value is in the config, or if
    /// the secret is not set.
    pub fn path(&self) -> Option<PathBuf> {
        if self.inline.is_some() {
            return None;
        }
        if self.file.is_some() {
            return self.file.clone();
        }
        let directory = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from)?;
        self.credentials.iter().map(|name| directory.join(name)).find(|path| path.exists())
    }
}

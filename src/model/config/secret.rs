//! Secrets: inline, from a file, or from a systemd credential.

use std::{fmt, path::PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};

/// A text that is never shown. `Debug` and serialization print dots.
#[derive(Clone)]
pub struct SecretText(SecretString);

impl SecretText {
    /// Takes the text out, for the one place that needs it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(text.into())
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
    /// Takes numbers and booleans too: the environment guesses types, and a key of digits is still a key.
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
        let lax = Lax::deserialize(deserializer).map_err(|_| serde::de::Error::custom("this secret must be a text"))?;
        Ok(match lax {
            Lax::Text(text) => text,
            Lax::Whole(number) => number.to_string(),
            Lax::Real(number) => number.to_string(),
            Lax::Bool(value) => value.to_string(),
        }
        .into())
    }
}

/// A secret that may be given inline, as a file, or as a systemd credential: resolved at each use, so that it can rotate.
#[derive(Clone, Debug)]
pub struct Secret {
    /// The config key, for messages: `source.api_key`.
    pub key: String,
    /// Given inline.
    pub inline: Option<SecretText>,
    /// Given as a file.
    pub file: Option<PathBuf>,
    /// Names of a systemd credential to look for.
    pub credentials: Vec<String>,
}

/// A secret that could not be read. Holds no part of it.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the secret {key} from {path}")]
pub struct SecretError {
    key: String,
    path: PathBuf,
    source: std::io::Error,
}

/// Longest secret file that is read, bytes.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

impl Secret {
    /// Reads it: inline, else the file, else the credential. None where it is not configured at all.
    /// Fails where a file is named that cannot be read.
    pub fn resolve(&self) -> Result<Option<SecretText>, SecretError> {
        if let Some(text) = &self.inline {
            return Ok(Some(text.clone()));
        }
        let read = |path: PathBuf| {
            use std::io::Read;
            let mut text = String::new();
            std::fs::File::open(&path)
                .and_then(|file| file.take(MAX_SECRET_BYTES).read_to_string(&mut text))
                .map_err(|source| SecretError { key: self.key.clone(), path, source })?;
            Ok(Some(SecretText::from(text.trim().to_owned())))
        };
        if let Some(path) = &self.file {
            return read(path.clone());
        }
        let Some(directory) = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from) else { return Ok(None) };
        match self.credentials.iter().map(|name| directory.join(name)).find(|path| path.exists()) {
            Some(path) => read(path),
            None => Ok(None),
        }
    }
}

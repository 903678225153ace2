//! Secrets: set in the config, or read from a file or a systemd credential.

use std::{
    fmt,
    path::{Path, PathBuf},
};

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
        let directory = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        self.path_with(directory.as_deref())
    }

    /// Like [`Self::path`], with the directory of the credentials. A credential also replaces a file that cannot be opened: the unit may
    /// pass a file that only root can read.
    fn path_with(&self, credentials: Option<&Path>) -> Option<PathBuf> {
        if self.inline.is_some() {
            return None;
        }
        let credential =
            || credentials.and_then(|at| self.credentials.iter().map(|name| at.join(name)).find(|path| path.exists()));
        match &self.file {
            Some(file) if std::fs::File::open(file).is_ok() => Some(file.clone()),
            Some(file) => credential().or_else(|| Some(file.clone())),
            None => credential(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn credential_replaces_a_file_that_cannot_be_opened() {
        let (files, credentials) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let secret = Secret {
            key: "url".to_owned(),
            inline: None,
            file: Some(files.path().join("ops-url")),
            credentials: vec!["ops-url".to_owned(), "ops_url".to_owned()],
        };
        let (file, credential) = (files.path().join("ops-url"), credentials.path().join("ops-url"));
        assert_eq!(secret.path_with(Some(credentials.path())), Some(file.clone()), "an error about it names the file");
        fs::write(&credential, "from the unit").expect("written");
        assert_eq!(secret.path_with(Some(credentials.path())), Some(credential));
        assert_eq!(secret.path_with(None), Some(file.clone()));
        fs::write(&file, "from the config").expect("written");
        assert_eq!(secret.path_with(Some(credentials.path())), Some(file), "a readable file can be replaced at any time");
    }
}

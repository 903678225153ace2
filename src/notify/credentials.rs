//! The secrets of a receiver, read once for each attempt, so that a file can be changed without a restart.

use super::format::Credential;
use model::config::{SecretError, SecretText};

/// What was read for one attempt, by the keys of the config.
#[derive(Debug, Default)]
pub struct Credentials(Vec<(&'static str, SecretText)>);

/// A key that the config no longer gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the receiver has no `{0}`")]
pub struct MissingKey(pub &'static str);

impl Credentials {
    /// Reads these. What is not configured is left out. Reading a file may take long, so it is done beside the runtime's threads.
    /// Fails with the first that cannot be read.
    pub(super) async fn read(wanted: Vec<Credential>) -> Result<Self, ReadError> {
        Ok(tokio::task::spawn_blocking(move || Self::read_now(&wanted)).await??)
    }

    fn read_now(wanted: &[Credential]) -> Result<Self, SecretError> {
        let mut found = Vec::new();
        for Credential { key, secret, .. } in wanted {
            found.extend(secret.resolve()?.map(|text| (*key, text)));
        }
        Ok(Self(found))
    }

    pub fn get(&self, wanted: &Credential) -> Option<&SecretText> {
        self.0.iter().find(|(key, _)| *key == wanted.key).map(|(_, text)| text)
    }

    /// The text of a credential that is needed. Fails where there is none: its file may have gone since the config was checked.
    pub fn need(&self, wanted: &Credential) -> Result<&str, MissingKey> {
        self.get(wanted).map(SecretText::expose).ok_or(MissingKey(wanted.key))
    }
}

/// Why secrets were not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// One of them cannot be.
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("the secrets were not read to their end")]
    Stopped(#[from] tokio::task::JoinError),
}

//! The secrets of a receiver, read once for each attempt, so that a file can be changed without a restart.

use super::format::{Credential, DEFAULT_FORMAT, FormatSpec};
use model::config::{ReceiverKind, ReceiverSettings, Secret, SecretError, SecretText};
use model::text::error_chain;

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

/// A secret that a receiver needs, or names a file for, and that is not here.
#[derive(Clone, Debug)]
pub struct MissingSecret {
    /// The key of the config: `url`.
    pub key: &'static str,
    pub secret: Secret,
    /// Why a file that is named cannot be read; none where nothing is given.
    pub problem: Option<String>,
}

/// The secrets that a receiver cannot do without and that are not to be had here and now: not in the config, nor in a file that this user
/// can read, nor among the credentials of this process.
pub fn missing_secrets(receiver: &ReceiverSettings) -> Vec<MissingSecret> {
    let mut wanted: Vec<(&'static str, Secret, bool)> = Vec::new();
    match receiver.kind {
        // What a program needs beside the message is its own business.
        ReceiverKind::Exec => {}
        ReceiverKind::Email => {
            if receiver.username.is_some() {
                wanted.push(("password", receiver.login(), true));
            }
        }
        ReceiverKind::Webhook => {
            let format = receiver.format.as_deref().and_then(FormatSpec::named).unwrap_or(DEFAULT_FORMAT);
            wanted.push(("url", receiver.address(), format.address.is_none()));
            let secrets = format.keys.iter().filter(|key| key.value.is_secret());
            wanted.extend(secrets.map(|key| (key.name, receiver.format_secret(key.name), key.is_needed)));
        }
    }
    let missing = wanted.into_iter().filter_map(|(key, secret, is_needed)| match secret.resolve() {
        Ok(Some(_)) => None,
        Ok(None) => is_needed.then_some(MissingSecret { key, secret, problem: None }),
        Err(error) => Some(MissingSecret { key, problem: Some(error_chain(&error)), secret }),
    });
    missing.collect()
}

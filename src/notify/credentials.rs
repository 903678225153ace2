//! The secrets of a receiver, read again for each attempt, so that a changed file needs no restart.

use super::format::{Credential, DEFAULT_FORMAT, FormatSpec};
use model::config::{ReceiverKind, ReceiverSettings, Secret, SecretError, SecretText};
use model::text::error_chain;

/// The secrets read for one attempt, by config key.
#[derive(Debug, Default)]
pub struct Credentials(Vec<(&'static str, SecretText)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the receiver has no `{0}`")]
pub struct MissingKey(pub &'static str);

impl Credentials {
    /// Reads the configured ones of these secrets. Runs on a blocking thread, because it reads files.
    ///
    /// # Errors
    ///
    /// Returns the error of the first secret that cannot be read.
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

    pub fn get(&self, key: &str) -> Option<&SecretText> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, text)| text)
    }

    /// Returns a required secret. It can be missing although the config check found it, if its file was removed since.
    pub fn need(&self, key: &'static str) -> Result<&str, MissingKey> {
        self.get(key).map(SecretText::expose).ok_or(MissingKey(key))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("reading the secrets was interrupted")]
    Stopped(#[from] tokio::task::JoinError),
}

/// A secret that the receiver requires but does not have, or whose file cannot be read.
#[derive(Clone, Debug)]
pub struct MissingSecret {
    /// The config key, such as `url`.
    pub key: &'static str,
    pub secret: Secret,
    /// Why the configured file cannot be read. `None` if nothing is configured.
    pub problem: Option<String>,
}

/// Returns the required secrets that are neither in the config, nor in a file that this user can read, nor among the systemd
/// credentials of this process.
pub fn missing_secrets(receiver: &ReceiverSettings) -> Vec<MissingSecret> {
    let mut wanted: Vec<(&'static str, Secret, bool)> = Vec::new();
    match receiver.kind {
        // A program gets its own secrets itself.
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

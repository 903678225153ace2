//! `[[receiver]]`: who is sent messages, and how.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{Secret, SecretText, Span};

/// A `[[receiver]]`. Which keys it may have depends on its `type` and `format`; the check says so, and refuses unknown ones.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ReceiverSettings {
    /// Unique.
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ReceiverKind,
    /// Webhook: address. A secret, since those who know it can post there.
    pub url: Option<SecretText>,
    /// Webhook: file with the address.
    pub url_file: Option<PathBuf>,
    /// Webhook: shape of the body; `cliffwatch` if not given.
    pub format: Option<String>,
    /// Webhook: networks (CIDR) that may be reached although private.
    pub allow_networks: Vec<String>,
    /// Email: `smtp://host:port` (STARTTLS required off loopback) or `smtps://host:port`.
    pub smtp: Option<String>,
    /// Email: login name.
    pub username: Option<String>,
    /// Email: password.
    pub password: Option<SecretText>,
    /// Email: file with the password.
    pub password_file: Option<PathBuf>,
    /// Email: sender.
    pub from: Option<String>,
    /// Email: recipients.
    pub to: Vec<String>,
    /// Exec: absolute path of the program.
    pub command: Option<PathBuf>,
    /// Exec: its arguments, as they stand.
    pub args: Vec<String>,
    /// Exec: how many of it may run at once.
    pub concurrency: Option<u32>,
    /// PEM file with a private certificate authority to trust beside the system's.
    pub tls_ca_file: Option<PathBuf>,
    /// Whether the end of an alert is told; yes if not given.
    pub send_resolved: Option<bool>,
    /// Messages in an hour, instead of `[delivery] max_per_hour`.
    pub max_per_hour: Option<u32>,
    /// What is ahead and what changed, at a time of the day.
    pub digest: Option<DigestSettings>,
    /// Webhook: the keys that only some formats take, `x_file` included. The table of formats says which there are; a number is
    /// kept as its text. All are held as secrets, since most are.
    #[serde(flatten)]
    pub format_keys: BTreeMap<String, SecretText>,
}

/// `digest` of a `[[receiver]]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DigestSettings {
    /// `HH:MM` in `timezone`.
    pub at: String,
    /// Days of the week, such as `mon` or `mon:fri`; every day if not given.
    pub days: Vec<String>,
    /// IANA zone; UTC if not given.
    pub timezone: Option<String>,
    /// How far it looks ahead; a week if not given.
    pub ahead: Option<Span>,
}

crate::words! {
    #[derive(Default)]
    ReceiverKind {
        /// Mail by SMTP.
        Email = "email",
        /// HTTP POST.
        #[default]
        Webhook = "webhook",
        /// A program of the operator's.
        Exec = "exec",
    }
}

impl ReceiverKind {
    /// The words of the config, in the order in which people are shown them.
    pub const WORDS: [&str; 3] = [Self::Email.as_str(), Self::Webhook.as_str(), Self::Exec.as_str()];
}

impl ReceiverSettings {
    fn secret_of(&self, word: &str, inline: Option<&SecretText>, file: Option<&PathBuf>) -> Secret {
        Secret {
            key: format!("receiver {:?}: {word}", self.name),
            inline: inline.cloned(),
            file: file.cloned(),
            credentials: vec![format!("{}-{word}", self.name), format!("{}_{word}", self.name)],
        }
    }

    /// The webhook's address.
    pub fn address(&self) -> Secret {
        self.secret_of("url", self.url.as_ref(), self.url_file.as_ref())
    }

    /// A secret that the webhook's format takes under this key, or under `x_file`.
    pub fn format_secret(&self, key: &str) -> Secret {
        let file = self.format_keys.get(&format!("{key}_file")).map(|path| PathBuf::from(path.expose()));
        self.secret_of(key, self.format_keys.get(key), file.as_ref())
    }

    /// A text that the webhook's format takes under this key.
    pub fn format_text(&self, key: &str) -> Option<&str> {
        self.format_keys.get(key).map(SecretText::expose)
    }

    /// The password of the mail server.
    pub fn login(&self) -> Secret {
        self.secret_of("password", self.password.as_ref(), self.password_file.as_ref())
    }
}

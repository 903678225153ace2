//! The daemon's own pages, and the data service beside them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Secret, SecretText};

/// `[http]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HttpSettings {
    /// Address and port; `off` for none.
    pub listen: String,
    /// How others reach us, for links in messages.
    #[serde(default)]
    pub external_url: Option<String>,
    /// Bearer token for what changes state, and for all once the address is not loopback.
    #[serde(default)]
    pub token: Option<SecretText>,
    /// File with the token. Else the systemd credential `http-token`.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// Pinged after a full loop. A secret: it is an address that anyone could ping.
    #[serde(default)]
    pub dead_mans_switch: Option<SecretText>,
    /// File with that address.
    #[serde(default)]
    pub dead_mans_switch_file: Option<PathBuf>,
}

/// `[mirror]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MirrorSettings {
    /// Address and port; `off` for none.
    pub listen: String,
    /// Database of the keys that may ask; made by `cliffwatch keys add`. Without it no key is asked for.
    #[serde(default)]
    pub keys: Option<PathBuf>,
    /// A database of keys on a PostgreSQL server in its place, which several instances share:
    /// `postgres://user:password@host:5432/database`.
    #[serde(default)]
    pub keys_url: Option<SecretText>,
    /// File with that address.
    #[serde(default)]
    pub keys_url_file: Option<PathBuf>,
    /// Requests that one key may make in a minute; none for no bound.
    #[serde(default)]
    pub requests_per_minute: Option<u32>,
    /// Certificate and key (PEM) to serve https with; http without them.
    #[serde(default)]
    pub tls_cert_file: Option<PathBuf>,
    #[serde(default)]
    pub tls_key_file: Option<PathBuf>,
}

impl MirrorSettings {
    /// The address of the database of keys on a server.
    pub fn keys_url(&self) -> Secret {
        Secret {
            key: "mirror.keys_url".into(),
            inline: self.keys_url.clone(),
            file: self.keys_url_file.clone(),
            credentials: vec!["mirror-keys-url".into(), "mirror_keys_url".into()],
        }
    }
}

impl HttpSettings {
    pub fn bearer(&self) -> Secret {
        Secret {
            key: "http.token".into(),
            inline: self.token.clone(),
            file: self.token_file.clone(),
            credentials: vec!["token".into(), "http-token".into(), "http_token".into()],
        }
    }

    /// The address to ping after a full loop.
    pub fn switch(&self) -> Secret {
        Secret {
            key: "http.dead_mans_switch".into(),
            inline: self.dead_mans_switch.clone(),
            file: self.dead_mans_switch_file.clone(),
            credentials: vec!["dead_mans_switch".into(), "dead-mans-switch".into()],
        }
    }
}

//! The HTTP server of the daemon, and the data service that it can offer.

use std::path::PathBuf;

use super::keys::settings;
use super::{Secret, SecretText};
use crate::AccessRole;

settings! {
    /// The HTTP server of the daemon: pages, API, health, and metrics.
    pub struct HttpSettings {
        /// The address and port to listen on, or `off`. An address that others can reach requires `token`, `token_file`, or the systemd
        /// credential `http-token`.
        listen: String = "127.0.0.1:9797".into() => Listen;
        /// The URL under which others reach the pages. Messages link to it.
        external_url: Option<String> => Url;
        /// The origins of other web pages that may use the API in a browser (CORS), such as `https://desk.example.com`. A page still has to
        /// send the token or an access key where a program has to, and login sessions do not count.
        cors_origins: Vec<String> => Origins;
        /// The token to log in with. Every change on the pages requires it; if `listen` is not a loopback address, so does every page.
        token: Option<SecretText> => Secret;
        /// A file with `token`.
        token_file: Option<PathBuf> => SecretFile;
        /// The header in which a reverse proxy names the user whom it has authenticated, such as `X-Forwarded-User`. The user needs no
        /// other login. Requires `trusted_proxies`.
        user_header: Option<String> => HeaderName;
        /// The networks of the reverse proxies that may send `user_header`. In requests from other addresses it is ignored. A proxy must
        /// remove the header from the requests that it receives.
        trusted_proxies: Vec<String> => Networks;
        /// The role of users whom a reverse proxy names.
        user_role: AccessRole = AccessRole::View => Choice(&AccessRole::WORDS);
        /// Whether the form for a new rule on the pages may save it, in a file of its own next to the other rules. It needs a
        /// login with the role `admin`.
        edit_rules: bool = false => Bool;
        /// A URL that is pinged after each complete cycle, so that a service elsewhere notices when the pings stop.
        dead_mans_switch: Option<SecretText> => SecretUrl;
        /// A file with `dead_mans_switch`.
        dead_mans_switch_file: Option<PathBuf> => SecretFile;
    }
}

settings! {
    /// The data service of the daemon: it serves the stored data under the interface of the source, so that a team can share one API key.
    pub struct MirrorSettings {
        /// The address and port to listen on, or `off`. An address that others can reach requires `keys`, `keys_url`, or
        /// `keys_url_file`.
        listen: String = "off".into() => Listen;
        /// The database of the accepted API keys, written by `cliffwatch keys add NAME --db FILE`. Without one, no key is required.
        keys: Option<PathBuf> => Path;
        /// A database of keys on a PostgreSQL server instead, which several instances share:
        /// `postgres://user:password@host:5432/database`.
        keys_url: Option<SecretText> => Secret;
        /// A file with `keys_url`.
        keys_url_file: Option<PathBuf> => SecretFile;
        /// The number of requests per minute that each key may make. Without it, there is no limit.
        requests_per_minute: Option<u32> => Count(1, 60_000);
        /// The certificate (PEM) for https. Requires `tls_key_file`.
        tls_cert_file: Option<PathBuf> => Path;
        /// The private key (PEM) for https. Requires `tls_cert_file`.
        tls_key_file: Option<PathBuf> => Path;
    }
}

impl MirrorSettings {
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
    /// The systemd credentials that can hold `token`.
    pub const TOKEN_CREDENTIALS: [&str; 3] = ["token", "http-token", "http_token"];

    pub fn bearer(&self) -> Secret {
        Secret {
            key: "http.token".into(),
            inline: self.token.clone(),
            file: self.token_file.clone(),
            credentials: Self::TOKEN_CREDENTIALS.map(str::to_owned).to_vec(),
        }
    }

    /// The URL of the dead man's switch.
    pub fn switch(&self) -> Secret {
        Secret {
            key: "http.dead_mans_switch".into(),
            inline: self.dead_mans_switch.clone(),
            file: self.dead_mans_switch_file.clone(),
            credentials: vec!["dead_mans_switch".into(), "dead-mans-switch".into()],
        }
    }
}

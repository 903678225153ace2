//! Login sessions, the limit of failed logins, and CSRF protection.
//!
//! Authorization attaches a [`Visitor`] to each request. `sessions` stores the logins, `rate_limit` counts failed logins per address,
//! `forms` checks that a form came from a page of this server, and `login` serves the pages to log in and out. All state is in memory:
//! a restart ends every session.

pub(super) mod forms;
pub(super) mod login;
pub(super) mod rate_limit;
pub(super) mod sessions;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use ring::digest;
use ring::rand::{SecureRandom as _, SystemRandom};

use model::{Timestamp, config::SecretText};
use rate_limit::FailedLogins;
use sessions::Sessions;

/// The name of the session cookie.
pub(super) const SESSION_COOKIE: &str = "cliffwatch_session";

/// The length of a random secret before encoding.
const SECRET_BYTES: usize = 32;

/// The SHA-256 hash of a secret.
pub(super) type Fingerprint = [u8; 32];

pub(super) fn fingerprint(secret: &[u8]) -> Fingerprint {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, secret).as_ref());
    bytes
}

pub(super) fn token_fingerprint(token: &SecretText) -> Fingerprint {
    fingerprint(token.expose().as_bytes())
}

/// Generates a random text for cookies, forms, and tokens. `None` if the system returns no random bytes.
pub fn random_secret() -> Option<String> {
    let mut bytes = [0; SECRET_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

/// Sessions and failed logins since the start of the daemon.
#[derive(Debug)]
pub struct AccessState {
    sessions: Mutex<Sessions>,
    failed_logins: Mutex<FailedLogins>,
    /// The CSRF token of visitors on loopback without a session. It allows only forms that change nothing, such as rule trials.
    anonymous_csrf_token: Option<String>,
}

impl Default for AccessState {
    fn default() -> Self {
        Self { sessions: Mutex::default(), failed_logins: Mutex::default(), anonymous_csrf_token: random_secret() }
    }
}

impl AccessState {
    pub(super) fn sessions<T>(&self, run: impl FnOnce(&mut Sessions) -> T) -> T {
        run(&mut self.sessions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn failed_logins<T>(&self, run: impl FnOnce(&mut FailedLogins) -> T) -> T {
        run(&mut self.failed_logins.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Identifies the visitor by the session cookie, and extends a valid session. `token` is the configured token, or `None` if logging
    /// in is disabled. `is_reading_open` is `true` if reading needs no login, as on loopback: then a visitor without a session gets the anonymous
    /// CSRF token. Ignores the `Authorization` header.
    pub(super) fn identify(
        &self,
        headers: &HeaderMap,
        token: Option<&SecretText>,
        is_reading_open: bool,
        now: Timestamp,
    ) -> Visitor {
        let session = session_cookie(headers).zip(token);
        let session_token =
            session.and_then(|(id, token)| self.sessions(|sessions| sessions.touch(id, token_fingerprint(token), now)));
        Visitor {
            is_logged_in: session_token.is_some(),
            csrf_token: session_token.or_else(|| self.anonymous_csrf_token.clone().filter(|_| is_reading_open)),
            has_login: token.is_some(),
        }
    }
}

/// The sender of an authorized request. It is a request extension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Visitor {
    /// The CSRF token that the visitor's forms must contain. `None` if the visitor may not read pages.
    pub csrf_token: Option<String>,
    /// Whether a session exists. Forms that change state need one, also on loopback.
    pub is_logged_in: bool,
    /// Whether a login is possible, because a token is configured.
    pub has_login: bool,
}

/// Returns the session id in the cookies of a request.
pub(super) fn session_cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| (name == SESSION_COOKIE).then_some(value))
}

/// Returns the address that failed logins are counted for: an IPv4 address or an IPv6 /64 network, because one site owns all its
/// addresses.
pub(super) fn peer_of(request: &Request) -> IpAddr {
    let peer = request.extensions().get::<service::Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    match peer.to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            IpAddr::V6([a, b, c, d, 0, 0, 0, 0].into())
        }
        ip => ip,
    }
}

//! Login sessions, the limit of failed logins, and CSRF protection.
//!
//! Authorization attaches a [`Visitor`] to each request. `sessions` signs the logins, `rate_limit` counts failed logins per address,
//! `forms` checks that a form came from a page of this server, and `login` serves the pages to log in and out. All instances on a database
//! share the sessions; failed logins are counted in memory.

pub(super) mod forms;
pub(super) mod login;
pub(super) mod rate_limit;
pub(super) mod sessions;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, OnceLock, PoisonError};

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use ring::digest;
use ring::rand::{SecureRandom as _, SystemRandom};

use model::{EndedSessions, LinkKey, Timestamp, Watch, config::SecretText, text::error_chain};
use rate_limit::FailedLogins;
use sessions::{Session, SessionKey};
use store::{Store, StoreError};

/// The name of the session cookie.
pub(super) const SESSION_COOKIE: &str = "cliffwatch_session";

/// The length of a random secret before encoding.
const SECRET_BYTES: usize = 32;

/// The SHA-256 hash of a secret.
pub type Fingerprint = [u8; 32];

pub(super) fn fingerprint(secret: &[u8]) -> Fingerprint {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, secret).as_ref());
    bytes
}

/// Returns the hash under which an access key is stored.
#[must_use]
pub fn key_hash(key: &str) -> Fingerprint {
    fingerprint(key.as_bytes())
}

/// Generates a random text for cookies, forms, and tokens. `None` if the system returns no random bytes.
pub fn random_secret() -> Option<String> {
    let mut bytes = [0; SECRET_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

/// The state of access control in memory.
#[derive(Debug)]
pub struct AccessState {
    /// The key of the database. It never changes.
    shared_key: OnceLock<LinkKey>,
    /// The ended sessions as last read, for times when the database cannot be read.
    ended: Mutex<EndedSessions>,
    failed_logins: Mutex<FailedLogins>,
    /// The CSRF token of visitors on loopback without a session. It allows only forms that change nothing, such as rule trials.
    anonymous_csrf_token: Option<String>,
}

impl Default for AccessState {
    fn default() -> Self {
        Self {
            shared_key: OnceLock::new(),
            ended: Mutex::default(),
            failed_logins: Mutex::default(),
            anonymous_csrf_token: random_secret(),
        }
    }
}

impl AccessState {
    pub(super) fn failed_logins<T>(&self, run: impl FnOnce(&mut FailedLogins) -> T) -> T {
        run(&mut self.failed_logins.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins a session, and returns the value of its cookie. `None` if the system returns no random bytes.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot store the key of the sessions.
    pub(super) async fn begin_session(
        &self,
        store: &Store,
        token: &SecretText,
        now: Timestamp,
    ) -> Result<Option<String>, StoreError> {
        let (Some(id), Some(fresh)) = (random_secret(), notify::unsubscribe::fresh_key()) else { return Ok(None) };
        let shared = match self.shared_key.get() {
            Some(known) => *known,
            None => {
                let stored = store.ensure_link_key(fresh).await?;
                *self.shared_key.get_or_init(|| stored)
            }
        };
        Ok(Some(Session::begin(id, now).cookie(&SessionKey::of(&shared, token))))
    }

    /// Ends a session on all instances. If the database cannot store that, it ends on this instance only.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot store that.
    pub(super) async fn end_session(&self, store: &Store, session: &Session, now: Timestamp) -> Result<(), StoreError> {
        let (fingerprint, began_at) = session.identity();
        self.ended(|ended| ended.end(fingerprint.clone(), began_at, now));
        store.end_session(fingerprint, began_at, now).await.map(drop)
    }

    fn ended<T>(&self, run: impl FnOnce(&mut EndedSessions) -> T) -> T {
        run(&mut self.ended.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the key that signs sessions. `None` if there was no login yet, or if the database cannot be read.
    async fn session_key(&self, store: &Store, token: &SecretText) -> Option<SessionKey> {
        let shared = match self.shared_key.get() {
            Some(known) => *known,
            None => {
                let stored = store.link_key().await.ok().flatten()?;
                *self.shared_key.get_or_init(|| stored)
            }
        };
        Some(SessionKey::of(&shared, token))
    }

    /// Returns whether a session was ended, on any instance.
    async fn has_ended(&self, store: &Store, session: &Session, now: Timestamp) -> bool {
        match store.ended_sessions().await {
            // One that the database could not store stays ended here.
            Ok(stored) => self.ended(|ended| ended.add(stored, now)),
            Err(error) => tracing::debug!(error = error_chain(&error), "cannot read the ended sessions; using those known"),
        }
        let (fingerprint, began_at) = session.identity();
        self.ended(|ended| ended.contains(&fingerprint, began_at))
    }

    /// Identifies the visitor by the session cookie. `token` is the configured token, or `None` if logging in is disabled.
    /// `is_reading_open` is `true` if reading needs no login, as on loopback: then a visitor without a session gets the anonymous CSRF
    /// token. Ignores the `Authorization` header.
    pub(super) async fn identify(
        &self,
        store: &Store,
        headers: &HeaderMap,
        token: Option<&SecretText>,
        is_reading_open: bool,
        now: Timestamp,
    ) -> IdentifiedVisitor {
        let mut visitor = Visitor { has_login: token.is_some(), ..Visitor::default() };
        let mut renewed_cookie = None;
        if let Some((cookie, token)) = session_cookie(headers).zip(token)
            && let Some(key) = self.session_key(store, token).await
            && let Some(session) = Session::read(cookie, &key, now)
            && !self.has_ended(store, &session, now).await
        {
            renewed_cookie = session.renewed(now).map(|session| (session.cookie(&key), session.remaining(now).num_seconds()));
            visitor.csrf_token = Some(session.csrf_token(&key));
            visitor.is_logged_in = true;
            visitor.session = Some(session);
        } else if is_reading_open {
            visitor.csrf_token.clone_from(&self.anonymous_csrf_token);
        }
        IdentifiedVisitor { visitor, renewed_cookie }
    }
}

/// A visitor, with what the response must contain.
pub(super) struct IdentifiedVisitor {
    pub visitor: Visitor,
    /// A cookie that extends the session, with its maximum age in seconds. `None` if the cookie of the request is recent.
    pub renewed_cookie: Option<(String, i64)>,
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
    /// Whether the visitor may see positions: after a login, or with a key in the request.
    pub sees_positions: bool,
    /// The session. `None` without a login.
    pub session: Option<Session>,
}

impl Visitor {
    /// Returns the watch without what the visitor must not see.
    pub(super) fn watch(&self, watch: &Watch) -> Watch {
        if self.sees_positions { watch.clone() } else { watch.without_positions() }
    }
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

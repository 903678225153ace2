//! Login sessions, the limit of failed logins, and CSRF protection.
//!
//! Authorization attaches a [`Visitor`] to each request. `sessions` signs the logins, `proxy` reads the users whom a reverse proxy names,
//! `rate_limit` counts failed logins per address, `forms` checks that a form came from a page of this server, and `login` serves the pages
//! to log in and out. All instances on a database share the sessions; failed logins are counted in memory.

pub(super) mod forms;
pub(super) mod login;
pub(super) mod proxy;
pub(super) mod rate_limit;
pub(super) mod sessions;

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, OnceLock, PoisonError};

use axum::extract::{FromRequestParts, Request};
use axum::http::{HeaderMap, header, request};
use base64::Engine as _;
use ring::digest;
use ring::rand::{SecureRandom as _, SystemRandom};

use model::{
    AccessKey, AccessRole, Actor, ActorSource, EndedSessions, LinkKey, Timestamp, Watch, config::SecretText, text::error_chain,
};
use proxy::ProxyUser;
use rate_limit::FailedLogins;
use sessions::{Session, SessionKey};
use store::{Store, StoreError};

use super::HttpDeps;

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

    /// Begins a session of the caller, and returns the value of its cookie. `None` if the system returns no random bytes.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot store the key of the sessions.
    pub(super) async fn begin_session(
        &self,
        store: &Store,
        caller: &Caller,
        token: Option<&SecretText>,
        now: Timestamp,
    ) -> Result<Option<String>, StoreError> {
        let (Some(id), Some(shared)) = (random_secret(), self.ensure_shared_key(store).await?) else { return Ok(None) };
        let actor = &caller.user.actor;
        let (key, name) = match (actor.via, token) {
            (ActorSource::Token, Some(token)) => (SessionKey::of(&shared, token), None),
            _ => (SessionKey::of_access_key(&shared, &caller.hash), Some(actor.name.clone())),
        };
        Ok(Some(Session::begin(id, name, now).cookie(&key)))
    }

    /// Returns the key of the database, which is created if there is none. `None` if the system returns no random bytes.
    async fn ensure_shared_key(&self, store: &Store) -> Result<Option<LinkKey>, StoreError> {
        if let Some(known) = self.shared_key.get() {
            return Ok(Some(*known));
        }
        let Some(fresh) = notify::unsubscribe::fresh_key() else { return Ok(None) };
        let stored = store.ensure_link_key(fresh).await?;
        Ok(Some(*self.shared_key.get_or_init(|| stored)))
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

    /// Returns the key of the database. `None` if there was no login yet, or if the database cannot be read.
    async fn shared_key(&self, store: &Store) -> Option<LinkKey> {
        if let Some(known) = self.shared_key.get() {
            return Some(*known);
        }
        let stored = store.link_key().await.ok().flatten()?;
        Some(*self.shared_key.get_or_init(|| stored))
    }

    /// Reads the session in a cookie, with the key that signed it. `None` if it is not valid, or has ended.
    async fn login(&self, store: &Store, cookie: &str, token: Option<&SecretText>, now: Timestamp) -> Option<Login> {
        let shared = self.shared_key(store).await?;
        let (key, user) = match Session::claimed_access_key(cookie) {
            None => (SessionKey::of(&shared, token?), User::with_token()),
            // A revoked key ends its sessions.
            Some(name) => {
                let (access, hash) = store.access_key_named(name).await.ok().flatten()?;
                (SessionKey::of_access_key(&shared, &hash), User::with_key(access))
            }
        };
        let session = Session::read(cookie, &key, now)?;
        (!self.has_ended(store, &session, now).await).then_some(Login { session, key, user })
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

    /// Identifies the visitor by the session cookie, or else by the user whom a proxy names. `token` is the configured token.
    /// `is_reading_open` is `true` if reading needs no login, as on loopback: then another visitor gets the anonymous CSRF token. Ignores
    /// the `Authorization` header.
    pub(super) async fn identify(
        &self,
        store: &Store,
        headers: &HeaderMap,
        token: Option<&SecretText>,
        proxy: Option<ProxyUser>,
        is_reading_open: bool,
        now: Timestamp,
    ) -> IdentifiedVisitor {
        let mut visitor = Visitor { has_login: token.is_some(), ..Visitor::default() };
        let mut renewed_cookie = None;
        let login = match session_cookie(headers) {
            Some(cookie) => self.login(store, cookie, token, now).await,
            None => None,
        };
        if let Some(Login { session, key, user }) = login {
            renewed_cookie = session.renewed(now).map(|session| (session.cookie(&key), session.remaining(now).num_seconds()));
            visitor.csrf_token = Some(session.csrf_token(&key));
            (visitor.user, visitor.session) = (Some(user), Some(session));
        } else if let Some(ProxyUser::Named(user)) = proxy
            && let Ok(Some(shared)) = self.ensure_shared_key(store).await
        {
            visitor.csrf_token = Some(SessionKey::of_proxy(&shared).csrf_token(&user.actor.name));
            visitor.user = Some(user);
        } else if is_reading_open {
            visitor.csrf_token.clone_from(&self.anonymous_csrf_token);
        }
        IdentifiedVisitor { visitor, renewed_cookie }
    }
}

/// A valid session, with the key that signed it.
struct Login {
    session: Session,
    key: SessionKey,
    user: User,
}

/// A user whose identity is proven, with the rights that follow from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub actor: Actor,
    pub role: AccessRole,
}

impl User {
    /// Returns the user of the token in `[http]`, whose name is not known.
    pub(super) fn with_token() -> Self {
        Self { actor: Actor { name: String::new(), via: ActorSource::Token }, role: AccessRole::Admin }
    }

    pub(super) fn with_key(key: AccessKey) -> Self {
        Self { actor: Actor { name: key.name, via: ActorSource::Key }, role: key.role }
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
    /// The user who has logged in, or whom a proxy names. Forms that change state need one, also on loopback.
    pub user: Option<User>,
    /// Whether a login is possible, because a token is configured or access keys exist.
    pub has_login: bool,
    /// Whether the visitor may see positions: after a login, or with a key in the request.
    pub sees_positions: bool,
    /// The session. `None` without a login, and for a user whom a proxy names.
    pub session: Option<Session>,
}

impl Visitor {
    pub(super) fn is_logged_in(&self) -> bool {
        self.user.is_some()
    }

    /// Returns whether the visitor may do what needs this role.
    pub(super) fn may(&self, required: AccessRole) -> bool {
        self.user.as_ref().is_some_and(|user| user.role >= required)
    }

    /// Returns the name to suggest as the author of an action. Empty if the login does not identify a person.
    pub(super) fn name(&self) -> &str {
        self.user.as_ref().map_or("", |user| user.actor.name.as_str())
    }

    /// Returns the watch without what the visitor must not see.
    pub(super) fn watch(&self, watch: &Watch) -> Watch {
        if self.sees_positions { watch.clone() } else { watch.without_positions() }
    }
}

/// The program that sent a request with a token or an access key, as an extension of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    /// The hash of its token or access key.
    pub hash: Fingerprint,
    pub user: User,
}

/// The state of a request that acts. What it writes is recorded with the author of the request.
pub(super) struct ActDeps(pub HttpDeps);

impl FromRequestParts<HttpDeps> for ActDeps {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut request::Parts, deps: &HttpDeps) -> Result<Self, Infallible> {
        let mut deps = deps.clone();
        let caller = parts.extensions.get::<Caller>().map(|caller| &caller.user);
        let visitor = || parts.extensions.get::<Visitor>().and_then(|visitor| visitor.user.as_ref());
        if let Some(user) = caller.or_else(visitor) {
            deps.app.store = deps.app.store.acting_as(user.actor.clone());
        }
        Ok(Self(deps))
    }
}

/// Returns the session id in the cookies of a request.
pub(super) fn session_cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| (name == SESSION_COOKIE).then_some(value))
}

/// Returns the address of the client of a request.
pub(super) fn address_of(request: &Request) -> IpAddr {
    request.extensions().get::<service::Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip())
}

/// Returns the address that failed logins are counted for: an IPv4 address or an IPv6 /64 network, because one site owns all its
/// addresses.
pub(super) fn peer_of(request: &Request) -> IpAddr {
    match address_of(request).to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            IpAddr::V6([a, b, c, d, 0, 0, 0, 0].into())
        }
        ip => ip,
    }
}

//! Login sessions. The cookie contains the session and a signature, so that every instance on a database accepts it, also after a restart.
//! A session ends at the logout, after a time, or when the token or access key that it began with changes, because the key of the signature
//! depends on it. Pure.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{SubsecRound as _, TimeDelta};
use ring::hmac;

use super::{Fingerprint, fingerprint};
use model::{LinkKey, MAX_SESSION_AGE, Timestamp, config::SecretText};

/// The time without a request after which a session ends.
const MAX_IDLE: TimeDelta = TimeDelta::hours(12);
/// The interval at which a session in use gets a new cookie.
const RENEWAL_INTERVAL: TimeDelta = TimeDelta::minutes(10);
/// The maximum length of a cookie value. The longest part is the name of an access key.
const MAX_COOKIE_BYTES: usize = 1024;

/// The key that signs sessions.
pub(in crate::http) struct SessionKey(hmac::Key);

impl SessionKey {
    /// Returns the key for the configured token. `shared` is the key of the database, without which a weak token could be guessed from a
    /// cookie.
    pub fn of(shared: &LinkKey, token: &SecretText) -> Self {
        Self::derived(shared, b"cliffwatch session 1\0", token.expose().as_bytes())
    }

    /// Returns the key for the access key with this hash.
    pub fn of_access_key(shared: &LinkKey, hash: &Fingerprint) -> Self {
        Self::derived(shared, b"cliffwatch access key session 1\0", hash)
    }

    /// Returns the key for the forms of users whom a reverse proxy names.
    pub fn of_proxy(shared: &LinkKey) -> Self {
        Self::derived(shared, b"cliffwatch proxy user 1\0", b"")
    }

    fn derived(shared: &LinkKey, purpose: &[u8], secret: &[u8]) -> Self {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, shared.bytes()));
        context.update(purpose);
        context.update(secret);
        Self(hmac::Key::new(hmac::HMAC_SHA256, context.sign().as_ref()))
    }

    /// Returns the CSRF token of the forms of a user or a session.
    pub fn csrf_token(&self, of: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.sign(FORMS, of))
    }

    /// Signs a text for a purpose, so that signatures for another purpose differ.
    fn sign(&self, purpose: &str, text: &str) -> hmac::Tag {
        hmac::sign(&self.0, format!("{purpose}\0{text}").as_bytes())
    }
}

/// The purposes of signatures.
const COOKIE: &str = "cookie";
const FORMS: &str = "forms";

/// A login session. Times are in whole seconds.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::http) struct Session {
    id: String,
    began_at: Timestamp,
    used_at: Timestamp,
    /// The name of the access key that it began with. `None` for the token.
    access_key: Option<String>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("began_at", &self.began_at).field("used_at", &self.used_at).finish_non_exhaustive()
    }
}

impl Session {
    /// Begins a session. `id` is a random text of letters, digits, `-`, and `_`.
    pub fn begin(id: String, access_key: Option<String>, now: Timestamp) -> Self {
        let now = now.trunc_subsecs(0);
        Self { id, began_at: now, used_at: now, access_key }
    }

    /// Returns the value of the cookie.
    pub fn cookie(&self, key: &SessionKey) -> String {
        let mut text = format!("{}.{}.{}", self.id, self.began_at.timestamp(), self.used_at.timestamp());
        if let Some(name) = &self.access_key {
            text = format!("{text}.{}", URL_SAFE_NO_PAD.encode(name));
        }
        let tag = URL_SAFE_NO_PAD.encode(key.sign(COOKIE, &text));
        format!("{text}.{tag}")
    }

    /// Returns the name of the access key in a cookie, whose signature decides whether that is true. `None` for the token.
    pub fn claimed_access_key(cookie: &str) -> Option<String> {
        let (text, _) = cookie.rsplit_once('.').filter(|_| cookie.len() <= MAX_COOKIE_BYTES)?;
        String::from_utf8(URL_SAFE_NO_PAD.decode(text.split('.').nth(3)?).ok()?).ok()
    }

    /// Reads a cookie. `None` if its signature is not valid, or if the session has expired.
    pub fn read(cookie: &str, key: &SessionKey, now: Timestamp) -> Option<Self> {
        let (text, tag) = cookie.rsplit_once('.').filter(|_| cookie.len() <= MAX_COOKIE_BYTES)?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(&key.0, format!("{COOKIE}\0{text}").as_bytes(), &tag).ok()?;
        let mut parts = text.split('.');
        let id = parts.next()?.to_owned();
        let mut time = || chrono::DateTime::from_timestamp(parts.next()?.parse().ok()?, 0);
        let session = Self { id, began_at: time()?, used_at: time()?, access_key: Self::claimed_access_key(cookie) };
        session.is_valid(now).then_some(session)
    }

    fn is_valid(&self, now: Timestamp) -> bool {
        // If the clock was set back, or is behind that of another instance, the differences are negative and the session stays valid.
        now - self.used_at < MAX_IDLE && now - self.began_at < MAX_SESSION_AGE
    }

    /// Returns the session with a new time of use. `None` if its cookie is recent.
    pub fn renewed(&self, now: Timestamp) -> Option<Self> {
        (now - self.used_at >= RENEWAL_INTERVAL).then(|| Self { used_at: now, ..self.clone() })
    }

    /// Returns the time until the session ends even if it is in use.
    pub fn remaining(&self, now: Timestamp) -> TimeDelta {
        MAX_SESSION_AGE - (now - self.began_at).max(TimeDelta::zero())
    }

    /// Returns the CSRF token of the forms in this session.
    pub fn csrf_token(&self, key: &SessionKey) -> String {
        key.csrf_token(&self.id)
    }

    /// Returns a hash that does not reveal the cookie, and the start of the session.
    pub fn identity(&self) -> (String, Timestamp) {
        (URL_SAFE_NO_PAD.encode(fingerprint(self.id.as_bytes())), self.began_at)
    }
}

#[cfg(test)]
mod tests;

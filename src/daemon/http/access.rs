//! Who is let in, and who may act: the token as it is or as a password, a session that began with it, and the proof that a form is ours.
//!
//! The cast: a [`Visitor`] is what the gate learned of whoever asks, and travels with the request; `sessions` holds who is logged in,
//! `attempts` who guessed wrong, `forms` says whether a form came from our own pages, `login` has the pages to log in and out.
//! All of it is held in memory: a restart ends every session, and nothing of it is ever on a disk.

pub(super) mod attempts;
pub(super) mod forms;
pub(super) mod login;
pub(super) mod sessions;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use ring::digest;
use ring::rand::{SecureRandom as _, SystemRandom};

use attempts::Attempts;
use model::{Timestamp, config::SecretText};
use sessions::Sessions;

/// The cookie that names a session.
pub(super) const SESSION_COOKIE: &str = "cliffwatch_session";

/// Bytes of what nobody can guess.
const SECRET_BYTES: usize = 32;

/// A fingerprint of a secret, which tells nothing of it.
pub(super) type Fingerprint = [u8; 32];

pub(super) fn fingerprint(secret: &[u8]) -> Fingerprint {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, secret).as_ref());
    bytes
}

/// That of the token that is configured.
pub(super) fn fingerprint_of(token: &SecretText) -> Fingerprint {
    fingerprint(token.expose().as_bytes())
}

/// A text that nobody can guess, for cookies, forms and tokens; none where the system gives no random bytes.
pub fn unguessable() -> Option<String> {
    let mut bytes = [0; SECRET_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

/// What is remembered of visitors while the daemon runs.
#[derive(Debug)]
pub struct AccessState {
    sessions: Mutex<Sessions>,
    attempts: Mutex<Attempts>,
    /// What forms carry on loopback that change nothing, such as those that try a rule, for whoever has not logged in.
    open_form_key: Option<String>,
}

impl Default for AccessState {
    fn default() -> Self {
        Self { sessions: Mutex::default(), attempts: Mutex::default(), open_form_key: unguessable() }
    }
}

impl AccessState {
    pub(super) fn sessions<T>(&self, run: impl FnOnce(&mut Sessions) -> T) -> T {
        run(&mut self.sessions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn attempts<T>(&self, run: impl FnOnce(&mut Attempts) -> T) -> T {
        run(&mut self.attempts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whoever asks with these headers, where the token is `token`. `is_open`: whether everybody may look, as on loopback.
    pub(super) fn visitor(&self, headers: &HeaderMap, token: Option<&SecretText>, is_open: bool, now: Timestamp) -> Visitor {
        let session = session_cookie(headers).zip(token);
        let own_key = session.and_then(|(id, token)| self.sessions(|sessions| sessions.find(id, fingerprint_of(token), now)));
        Visitor {
            is_logged_in: own_key.is_some(),
            form_key: own_key.or_else(|| self.open_form_key.clone().filter(|_| is_open)),
            has_login: token.is_some(),
        }
    }
}

/// Whoever asks, as far as it matters. An extension of each request that the gate lets in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Visitor {
    /// What their forms must carry; none where they may not even look.
    pub form_key: Option<String>,
    /// Whether they may change something: nobody may who has not logged in, on loopback neither.
    pub is_logged_in: bool,
    /// Whether logging in is possible: a token is configured.
    pub has_login: bool,
}

/// The session that a request names.
pub(super) fn session_cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| (name == SESSION_COOKIE).then_some(value))
}

/// The address that guesses are counted for. A site has a whole network of IPv6 addresses, and counts as one.
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

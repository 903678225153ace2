//! What a mirror can tell: the daemon's snapshot is what the daemon asked the source for, and not more.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use crate::refusal::{Refusal, redact};
use model::{Endpoint, TokenId, Watch};

/// What the daemon behind a mirror asks the source for. Clones share it, so that a reload of the daemon is heard of.
#[derive(Clone, Debug)]
pub struct MirrorScope(Arc<RwLock<DaemonScope>>);

#[derive(Debug)]
struct DaemonScope {
    endpoints: Vec<Endpoint>,
    watch: Option<Watch>,
}

impl MirrorScope {
    /// A daemon that asks `endpoints`, about the tokens of `watch`.
    pub fn of(endpoints: Vec<Endpoint>, watch: Watch) -> Self {
        Self(Arc::new(RwLock::new(DaemonScope { endpoints, watch: Some(watch) })))
    }

    /// The daemon asks for other things from now on.
    pub fn replace(&self, endpoints: Vec<Endpoint>, watch: Watch) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = DaemonScope { endpoints, watch: Some(watch) };
    }

    fn daemon(&self) -> RwLockReadGuard<'_, DaemonScope> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A daemon of which nothing is known but its database: it may yet ask for anything.
    pub fn unknown() -> Self {
        Self(Arc::new(RwLock::new(DaemonScope { endpoints: Endpoint::ALL.to_vec(), watch: None })))
    }

    pub fn asks(&self, endpoint: Endpoint) -> bool {
        self.daemon().endpoints.contains(&endpoint)
    }

    /// Why something is not there: because it will never be (404), or because it was not read yet (503).
    pub(super) fn missing(&self, endpoint: Endpoint, token: Option<&str>) -> Refusal {
        let of = token.map(|token| format!(" of token \"{}\"", redact(token))).unwrap_or_default();
        if !self.asks(endpoint) {
            return Refusal::unknown(format!("this mirror has no {endpoint}{of}: its daemon does not ask for it"));
        }
        match (token, &self.daemon().watch) {
            (Some(token), Some(watch)) if !watch.covers(&TokenId::from(token)) => {
                Refusal::unknown(format!("this mirror has no {endpoint}{of}: its daemon does not watch that token"))
            }
            _ => Refusal::not_yet(format!("{endpoint}{of} was not read from the source yet: ask again later")),
        }
    }
}

//! What a mirror can tell: the daemon's snapshot is what the daemon asked the source for, and not more.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use chrono::TimeDelta;

use crate::query::DataQuery;
use crate::refusal::{Refusal, redact};
use model::config::Reach;
use model::{Endpoint, Timestamp, TokenId, Watch};

/// What the daemon behind a mirror asks the source for. Clones share it, so that a reload of the daemon is heard of.
#[derive(Clone, Debug)]
pub struct MirrorScope {
    daemon: Arc<RwLock<DaemonScope>>,
    /// How far back it asks; none: from the beginning.
    history: Option<TimeDelta>,
}

#[derive(Debug)]
struct DaemonScope {
    endpoints: Vec<Endpoint>,
    watch: Option<Watch>,
}

impl MirrorScope {
    /// A daemon that asks `endpoints`, about the tokens of `watch`.
    pub fn of(endpoints: Vec<Endpoint>, watch: Watch) -> Self {
        Self::over(DaemonScope { endpoints, watch: Some(watch) })
    }

    fn over(daemon: DaemonScope) -> Self {
        Self { daemon: Arc::new(RwLock::new(daemon)), history: None }
    }

    /// The same, of a daemon that asks no further back than its `[source] history` says.
    #[must_use]
    pub fn reaching_back(self, history: Reach) -> Self {
        let history = match history {
            Reach::All => None,
            Reach::Span(span) => Some(span.delta()),
        };
        Self { history, ..self }
    }

    /// Fails where a window begins before what was asked for when it was read: what happened then is not known here, and no sum over it
    /// is one. A list may be cut by such a window, unless nothing of it is known.
    pub(super) fn holds(&self, query: &DataQuery, is_sum: bool, read_at: Timestamp) -> Result<(), Refusal> {
        let first = self.history.and_then(|history| read_at.checked_sub_signed(history)).map(|first| first.date_naive());
        let Some(first) = first else { return Ok(()) };
        let begins_before = query.start.is_some_and(|start| start < first);
        let ends_before = query.end.is_some_and(|end| end < first);
        if ends_before || (is_sum && begins_before) {
            return Err(Refusal::unknown(format!(
                "this mirror knows nothing from before {first}: its daemon does not ask for it (`[source] history`); ask from that day on"
            )));
        }
        Ok(())
    }

    /// The daemon asks for other things from now on.
    pub fn replace(&self, endpoints: Vec<Endpoint>, watch: Watch) {
        *self.daemon.write().unwrap_or_else(PoisonError::into_inner) = DaemonScope { endpoints, watch: Some(watch) };
    }

    fn daemon(&self) -> RwLockReadGuard<'_, DaemonScope> {
        self.daemon.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A daemon of which nothing is known but its database: it may yet ask for anything.
    pub fn unknown() -> Self {
        Self::over(DaemonScope { endpoints: Endpoint::ALL.to_vec(), watch: None })
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

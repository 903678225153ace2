//! The scope of a mirror, which has only the data that its daemon polls.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use chrono::TimeDelta;

use crate::query::DataQuery;
use crate::refusal::{Refusal, redact};
use model::config::Reach;
use model::{Endpoint, Timestamp, TokenId, Watch};

/// The endpoints and tokens that the daemon of a mirror polls. Clones share their state, so that a reload of the daemon applies to all.
#[derive(Clone, Debug)]
pub struct MirrorScope {
    daemon: Arc<RwLock<DaemonScope>>,
    /// The polled history. `None` for all history.
    history: Option<TimeDelta>,
}

#[derive(Debug)]
struct DaemonScope {
    endpoints: Vec<Endpoint>,
    watch: Option<Watch>,
}

impl MirrorScope {
    /// Creates the scope of a daemon that polls `endpoints` of the tokens in `watch`.
    pub fn of(endpoints: Vec<Endpoint>, watch: Watch) -> Self {
        Self::over(DaemonScope { endpoints, watch: Some(watch) })
    }

    fn over(daemon: DaemonScope) -> Self {
        Self { daemon: Arc::new(RwLock::new(daemon)), history: None }
    }

    /// Limits the scope to the history of `[source] history`.
    #[must_use]
    pub fn reaching_back(self, history: Reach) -> Self {
        let history = match history {
            Reach::All => None,
            Reach::Span(span) => Some(span.delta()),
        };
        Self { history, ..self }
    }

    /// Checks that the polled history covers the window of a query.
    ///
    /// # Errors
    ///
    /// Fails for a sum over a window that begins before the history, and for a list whose whole window is before it.
    pub(super) fn check_window(&self, query: &DataQuery, is_sum: bool, read_at: Timestamp) -> Result<(), Refusal> {
        let first = self.history.and_then(|history| read_at.checked_sub_signed(history)).map(|first| first.date_naive());
        let Some(first) = first else { return Ok(()) };
        let begins_before = query.start.is_some_and(|start| start < first);
        let ends_before = query.end.is_some_and(|end| end < first);
        if ends_before || (is_sum && begins_before) {
            return Err(Refusal::not_found(format!(
                "this mirror has no data before {first}: its daemon does not poll it (`[source] history`); request dates from {first}"
            )));
        }
        Ok(())
    }

    /// Replaces the scope after a reload of the daemon.
    pub fn replace(&self, endpoints: Vec<Endpoint>, watch: Watch) {
        *self.daemon.write().unwrap_or_else(PoisonError::into_inner) = DaemonScope { endpoints, watch: Some(watch) };
    }

    fn daemon(&self) -> RwLockReadGuard<'_, DaemonScope> {
        self.daemon.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the scope of a daemon with an unknown config, which may poll anything.
    pub fn unknown() -> Self {
        Self::over(DaemonScope { endpoints: Endpoint::ALL.to_vec(), watch: None })
    }

    pub fn polls(&self, endpoint: Endpoint) -> bool {
        self.daemon().endpoints.contains(&endpoint)
    }

    /// Returns why data is missing: the daemon does not poll it (404), or has not polled it yet (503).
    pub(super) fn missing(&self, endpoint: Endpoint, token: Option<&str>) -> Refusal {
        let of = token.map(|token| format!(" of token \"{}\"", redact(token))).unwrap_or_default();
        if !self.polls(endpoint) {
            return Refusal::not_found(format!("this mirror has no {endpoint}{of}: its daemon does not poll it"));
        }
        match (token, &self.daemon().watch) {
            (Some(token), Some(watch)) if !watch.covers(&TokenId::from(token)) => {
                Refusal::not_found(format!("this mirror has no {endpoint}{of}: its daemon does not watch this token"))
            }
            _ => Refusal::not_polled(format!("{endpoint}{of} was not polled yet: retry later")),
        }
    }
}

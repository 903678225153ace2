//! The dead man's switch: an external URL that raises an alarm when the pings stop.
//!
//! It is pinged after a cycle in which everything worked: polled, evaluated, committed, no pending deliveries, and no open incident. A
//! fault that stops the daemon, or only a part of it, stops the pings too.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;

use super::AppError;
use crate::{cycle, live};
use model::{Timestamp, config, text::error_chain};

/// The minimum interval between pings.
const PING_INTERVAL: TimeDelta = TimeDelta::seconds(30);
/// The time that the outbox may take to drain after a cycle. If it takes longer, the ping of that cycle is skipped.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// The interval between checks whether the outbox is drained.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The client that pings the switch.
pub(super) struct DeadMansSwitch {
    client: reqwest::Client,
    pinged_at: Mutex<Option<Timestamp>>,
}

impl DeadMansSwitch {
    /// Returns `None` if the config has no switch.
    pub(super) fn from_config(config: &config::HttpSettings) -> Result<Option<Self>, AppError> {
        if config.dead_mans_switch.is_none() && config.dead_mans_switch_file.is_none() {
            return Ok(None);
        }
        source::install_crypto_provider();
        let client =
            reqwest::Client::builder().timeout(Duration::from_secs(10)).redirect(reqwest::redirect::Policy::none()).build();
        let client = client.map_err(|error| AppError::Config(format!("http.dead_mans_switch: {error}")))?;
        Ok(Some(Self { client, pinged_at: Mutex::default() }))
    }

    /// Pings the switch if the work of the cycle that ended at `now` is complete and no incident is open. At most one ping per
    /// [`PING_INTERVAL`].
    pub(super) async fn ping(&self, deps: &cycle::Deps, now: Timestamp) {
        {
            let mut pinged_at = self.pinged_at.lock().unwrap_or_else(PoisonError::into_inner);
            if pinged_at.is_some_and(|at| now - at < PING_INTERVAL) {
                return;
            }
            *pinged_at = Some(now);
        }
        if !is_drained(deps, now).await || !deps.store.source_alerts().await.is_ok_and(|open| open.is_empty()) {
            return;
        }
        match live::resolve(deps.setup().config.http.switch()).await {
            Ok(Some(address)) => {
                // The URL is a secret, so neither it nor an error that may contain it is logged.
                let response = self.client.get(address.expose()).send().await;
                if !response.is_ok_and(|response| response.status().is_success()) {
                    tracing::warn!("the dead man's switch did not accept the ping");
                }
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(error = error_chain(&error), "cannot read the URL of the dead man's switch"),
        }
    }
}

/// Waits until everything decided before `since` is delivered, dead, or suppressed. Returns `false` on timeout.
async fn is_drained(deps: &cycle::Deps, since: Timestamp) -> bool {
    let drained = async {
        loop {
            let is_dispatched = deps.outbox.dispatched_at().is_some_and(|at| at >= since);
            let pending = deps.store.pending_receivers().await;
            if is_dispatched && pending.is_ok_and(|pending| pending.is_empty()) {
                return;
            }
            tokio::time::sleep(DRAIN_CHECK_INTERVAL).await;
        }
    };
    deps.outbox.wake();
    tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_ok()
}

//! The dead man's switch: an address outside that raises the alarm once it is no longer pinged.
//!
//! It is pinged after a full loop that went well: polled, evaluated, committed, nothing left in the outbox, no incident open. What stops
//! the daemon, or only a part of it, stops the pings too.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;

use super::AppError;
use crate::{cycle, live};
use model::{Timestamp, config, text::error_chain};

/// It is pinged no more often than this.
const PING_EVERY: TimeDelta = TimeDelta::seconds(30);
/// How long after a cycle the outbox may take to be drained, if it is to be pinged for that cycle.
const DRAIN_PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked whether the outbox is drained.
const DRAIN_POLL: Duration = Duration::from_millis(250);

/// What pings it.
pub(super) struct DeadMansSwitch {
    client: reqwest::Client,
    pinged_at: Mutex<Option<Timestamp>>,
}

impl DeadMansSwitch {
    /// That of the config; none where it has none.
    pub(super) fn of(config: &config::HttpSettings) -> Result<Option<Self>, AppError> {
        if config.dead_mans_switch.is_none() && config.dead_mans_switch_file.is_none() {
            return Ok(None);
        }
        source::install_crypto_provider();
        // Bounded, and never redirected.
        let client =
            reqwest::Client::builder().timeout(Duration::from_secs(10)).redirect(reqwest::redirect::Policy::none()).build();
        let client = client.map_err(|error| AppError::Config(format!("http.dead_mans_switch: {error}")))?;
        Ok(Some(Self { client, pinged_at: Mutex::default() }))
    }

    /// Pings it, where the loop that ended at `now` is done to its end.
    pub(super) async fn ping(&self, deps: &cycle::Deps, now: Timestamp) {
        {
            let mut pinged_at = self.pinged_at.lock().unwrap_or_else(PoisonError::into_inner);
            if pinged_at.is_some_and(|at| now - at < PING_EVERY) {
                return;
            }
            *pinged_at = Some(now);
        }
        if !is_drained(deps, now).await || !deps.store.source_alerts().await.is_ok_and(|open| open.is_empty()) {
            return;
        }
        match live::resolve(deps.setup().config.http.switch()).await {
            Ok(Some(address)) => {
                // The address is a secret: neither it nor an error that might hold it is logged.
                let answer = self.client.get(address.expose()).send().await;
                if !answer.is_ok_and(|answer| answer.status().is_success()) {
                    tracing::warn!("the dead man's switch did not take the ping");
                }
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(error = error_chain(&error), "cannot read the address of the dead man's switch"),
        }
    }
}

/// Whether everything that was decided before `since` is delivered, given up, or suppressed on purpose; it has a while to come so far.
async fn is_drained(deps: &cycle::Deps, since: Timestamp) -> bool {
    let drained = async {
        loop {
            let is_dispatched = deps.outbox.dispatched_at().is_some_and(|at| at >= since);
            let pending = deps.store.pending_receivers().await;
            if is_dispatched && pending.is_ok_and(|pending| pending.is_empty()) {
                return;
            }
            tokio::time::sleep(DRAIN_POLL).await;
        }
    };
    deps.outbox.wake();
    tokio::time::timeout(DRAIN_PATIENCE, drained).await.is_ok()
}

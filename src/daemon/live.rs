//! Everything that a reload can change, as one value that is swapped at once, so that no code sees half of a reload.
//!
//! Each piece of work loads the value once (`load_full`) and uses it to the end. Three parts keep state that depends on the value, and
//! [`crate::reload`] updates them after the swap: the outbox with its workers, the schedule with its slots, and the mirror.

use std::sync::Arc;

use arc_swap::ArcSwap;
use chrono::TimeDelta;

use crate::schedule::{self, Job};
use engine::pipeline::{ActiveRules, DispatchPolicy};
use engine::route::{RouteTree, Sections};
use engine::slot::Slots;
use model::config::{Config, Secret, SecretError, SecretText};
use model::{BoxFuture, Endpoint, Timestamp, Watch};
use notify::Receivers;
use notify::unsubscribe::{Subscriber, subscribers};
use rules::RuleSet;

pub type Live = ArcSwap<LiveConfig>;

/// The active config and rules, with everything that is built from them.
#[derive(Debug)]
pub struct LiveConfig {
    pub config: Arc<Config>,
    /// The watched tokens and their groups.
    pub watch: Watch,
    /// The slots of each job. Jobs that are off are left out.
    pub slots: Vec<(Job, Slots)>,
    pub active: Arc<ActiveRules>,
    pub receivers: Arc<Receivers>,
    /// The hourly limits of receivers, and the digests.
    pub policy: DispatchPolicy,
    /// The mail recipients of digests.
    pub subscribers: Vec<Subscriber>,
}

impl LiveConfig {
    /// Builds the value from a checked config and the rules that were compiled with it. Secrets and certificates are read on a
    /// blocking thread.
    pub fn build(config: Config, rules: RuleSet) -> BoxFuture<'static, Result<Self, Vec<String>>> {
        Box::pin(async move {
            let building = tokio::task::spawn_blocking(move || Self::build_now(config, rules));
            building.await.unwrap_or_else(|error| Err(vec![format!("building the receivers failed: {error}")]))
        })
    }

    /// Like [`Self::build`], on the current thread.
    pub fn build_now(config: Config, rules: RuleSet) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let routes = RouteTree::of(&Sections::from(&config));
        let routes = routes.map_err(|found| problems.extend(found.iter().map(|p| format!("{}: {}", p.path, p.message))));
        let receivers = Receivers::build(&config.receivers, &config.delivery, config.http.external_url.as_deref());
        let receivers = receivers.map_err(|found| problems.extend(found.iter().map(ToString::to_string)));
        let watch = Watch::build(&config.watch).map_err(|found| problems.extend(found.iter().map(ToString::to_string)));
        let policy = DispatchPolicy::of(&config.receivers, &config.delivery, config.source.stale_price)
            .map_err(|found| problems.push(found));
        let slots = schedule::jobs(&config.schedule).map_err(|(key, error)| problems.push(format!("schedule.{key}: {error}")));
        match (routes, receivers, watch, policy, slots) {
            (Ok(routes), Ok(receivers), Ok(watch), Ok(policy), Ok(slots)) => Ok(Self {
                watch,
                slots,
                active: Arc::new(ActiveRules { rules, routes, stale_price: config.source.stale_price.delta() }),
                receivers: Arc::new(receivers),
                policy,
                subscribers: subscribers(&config.receivers),
                config: Arc::new(config),
            }),
            _ => Err(problems),
        }
    }

    /// Returns whether the job is scheduled.
    pub fn is_on(&self, job: Job) -> bool {
        self.slots.iter().any(|(scheduled, _)| *scheduled == job)
    }

    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.slots.iter().filter_map(|(job, _)| job.endpoint()).collect()
    }

    /// Returns the first slot of an endpoint after `now`, and the time from it to the one after it. `None` if it has none.
    pub fn next_slot(&self, endpoint: Endpoint, now: Timestamp) -> Option<(Timestamp, TimeDelta)> {
        let (_, slots) = self.slots.iter().find(|(job, _)| *job == Job::Poll(endpoint))?;
        let first = slots.next(now)?;
        Some((first, slots.next(first).map_or(TimeDelta::MAX, |second| second - first)))
    }
}

/// Reads a secret now. A file is read on a blocking thread.
pub async fn resolve(secret: Secret) -> Result<Option<SecretText>, SecretError> {
    if secret.inline.is_some() {
        return secret.resolve();
    }
    // The task only fails if the runtime shuts down.
    tokio::task::spawn_blocking(move || secret.resolve()).await.unwrap_or(Ok(None))
}

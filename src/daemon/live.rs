//! Everything that a reload can change, as one value that is swapped once: nobody ever sees half of a reload.
//!
//! Whoever works takes the value once for the piece of work in hand ([`Live`]'s `load_full`) and goes by it to the end. Three others
//! keep a state of their own that follows the value, and are told after the swap (see [`crate::reload`]): the outbox, which has a worker
//! for each receiver, the schedule, which has armed slots, and the mirror.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::schedule::{self, Job};
use engine::pipeline::{ActiveRules, DispatchPolicy};
use engine::route::{RouteTree, Sections};
use engine::slot::Slots;
use model::config::{Config, Secret, SecretError, SecretText};
use model::{BoxFuture, Endpoint, Watch};
use notify::Receivers;
use notify::unsubscribe::{Subscriber, subscribers};
use rules::RuleSet;

/// The value at work.
pub type Live = ArcSwap<LiveConfig>;

/// Config and rules at work, with everything that is built from them.
#[derive(Debug)]
pub struct LiveConfig {
    pub config: Arc<Config>,
    /// Which tokens, and their groups.
    pub watch: Watch,
    /// When each job is due; jobs that are off are left out.
    pub slots: Vec<(Job, Slots)>,
    pub active: Arc<ActiveRules>,
    /// Who can be reached.
    pub receivers: Arc<Receivers>,
    /// The bounds of each receiver, and the digests.
    pub policy: DispatchPolicy,
    /// Who gets digests by mail.
    pub subscribers: Vec<Subscriber>,
}

impl LiveConfig {
    /// Builds everything from a config that was checked, and from rules that were compiled with it. Files with secrets and
    /// certificates are read beside the runtime's threads, which must not wait for a disk.
    pub fn build(config: Config, rules: RuleSet) -> BoxFuture<'static, Result<Self, Vec<String>>> {
        Box::pin(async move {
            let building = tokio::task::spawn_blocking(move || Self::build_now(config, rules));
            building.await.unwrap_or_else(|error| Err(vec![format!("the receivers could not be built: {error}")]))
        })
    }

    /// As [`Self::build`], on this thread.
    pub fn build_now(config: Config, rules: RuleSet) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let routes = RouteTree::of(&Sections::from(&config));
        let routes = routes.map_err(|found| problems.extend(found.iter().map(|p| format!("{}: {}", p.path, p.message))));
        let receivers = Receivers::build(&config.receivers, &config.delivery, config.http.external_url.as_deref());
        let receivers = receivers.map_err(|found| problems.extend(found.iter().map(ToString::to_string)));
        let watch = Watch::build(&config.watch).map_err(|found| problems.extend(found.iter().map(ToString::to_string)));
        let policy = DispatchPolicy::of(&config.receivers, &config.delivery).map_err(|found| problems.push(found));
        let slots = schedule::jobs(&config.schedule).map_err(|(key, error)| problems.push(format!("schedule.{key}: {error}")));
        match (routes, receivers, watch, policy, slots) {
            (Ok(routes), Ok(receivers), Ok(watch), Ok(policy), Ok(slots)) => Ok(Self {
                watch,
                slots,
                active: Arc::new(ActiveRules { rules, routes }),
                receivers: Arc::new(receivers),
                policy,
                subscribers: subscribers(&config.receivers),
                config: Arc::new(config),
            }),
            _ => Err(problems),
        }
    }

    /// Whether a job has slots at all.
    pub fn is_on(&self, job: Job) -> bool {
        self.slots.iter().any(|(on, _)| *on == job)
    }

    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.slots.iter().filter_map(|(job, _)| job.endpoint()).collect()
    }
}

/// A secret, read at this moment. A file is read beside the runtime's threads, which must not wait for a disk.
/// Fails where a file is named that cannot be read.
pub async fn resolve(secret: Secret) -> Result<Option<SecretText>, SecretError> {
    if secret.inline.is_some() {
        return secret.resolve();
    }
    // Where the runtime ends meanwhile, nobody waits for it any more.
    tokio::task::spawn_blocking(move || secret.resolve()).await.unwrap_or(Ok(None))
}

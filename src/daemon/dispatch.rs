//! The dispatcher: turns pending notifications into deliveries.
//!
//! Each pass adds due digests, repeats notifications of firing alerts after `repeat_interval`, and then decides about all pending
//! notifications with [`engine::pipeline`] ([`Store::dispatch`]). Each of the three is one transaction, keeps no state in memory that
//! a restart would lose, and can run twice without a duplicate notification. A pass uses one value of the active config throughout.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use crate::current_texts::show_current_texts;
use crate::live::{Live, LiveConfig};
use engine::digest_schedule::DigestAction;
use engine::digest_schedule::{DigestPlan, MAX_SLOT_INTERVAL};
use engine::group::MuteTimes;
use engine::pipeline::{self, ActiveRules, DigestReads, DigestRows};
use model::{
    Alert, BoxFuture, Commit, DeliveryState, Digest, DispatchResult, Notification, PendingState, ReceiverName, RepeatGroup,
    Resource, Timestamp, TokenId, TokenSnapshot, Watch, digest,
};
use store::{Store, StoreError};

#[derive(Debug)]
pub struct Dispatcher {
    store: Store,
    live: Arc<Live>,
    /// The last slot of each digest. `None` until it is read.
    slots: Mutex<Option<BTreeMap<String, Timestamp>>>,
}

impl Dispatcher {
    /// Creates a dispatcher. From now on, the store leaves notifications pending for it.
    pub fn new(store: Store, live: Arc<Live>) -> Self {
        store.await_dispatch();
        Self { store, live, slots: Mutex::new(None) }
    }

    /// Runs one dispatch pass.
    pub fn dispatch(&self, now: Timestamp) -> BoxFuture<'_, Result<DispatchResult, StoreError>> {
        Box::pin(async move {
            let live = self.live.load_full();
            self.digests(&live, now).await?;
            self.repeat(&live, now).await?;
            let decide = move |state: &PendingState<'_>| {
                pipeline::dispatch(state, &live.active.routes, &live.policy.max_per_hour, &mut MuteTimes::default(), now)
            };
            self.store.dispatch(decide, now).await
        })
    }

    /// Stores the digests that are due.
    async fn digests(&self, live: &LiveConfig, now: Timestamp) -> Result<(), StoreError> {
        if live.policy.digests.is_empty() {
            return Ok(());
        }
        let known = self.slots.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut slots = match known {
            Some(slots) => slots,
            None => self.store.job_slots().await?.into_iter().filter(|(name, _)| name.starts_with(digest::JOB_PREFIX)).collect(),
        };
        for plan in &live.policy.digests {
            let name = digest::job_name(&plan.receiver);
            let Some(action) = plan.schedule.action(slots.get(&name).copied(), now) else { continue };
            let mut commit = Commit { at: now, jobs: vec![(name.clone(), action.slot())], ..Commit::default() };
            if let DigestAction::Due { since, slot } = action
                && self.has_recipients(live, &plan.receiver).await?
            {
                commit.jobs.push((digest::created_name(&plan.receiver), slot));
                commit.notifications = vec![
                    read_digest(&self.store, (&live.watch, &live.active), plan, since, slot, now)
                        .await?
                        .notification(&plan.receiver, now),
                ];
            }
            self.store.commit(commit).await?;
            slots.insert(name, action.slot());
        }
        *self.slots.lock().unwrap_or_else(PoisonError::into_inner) = Some(slots);
        Ok(())
    }

    /// Returns whether a receiver has a recipient who did not opt out of digests. Always `true` for receivers other than mail.
    async fn has_recipients(&self, live: &LiveConfig, receiver: &ReceiverName) -> Result<bool, StoreError> {
        let opt_outs = self.store.opt_outs(Some(receiver.clone())).await?;
        let mut recipients = live.subscribers.iter().filter(|subscriber| subscriber.receiver == *receiver).peekable();
        let is_subscribed = |address: &str| opt_outs.iter().all(|opt_out| opt_out.address != address);
        // Only mail recipients can opt out.
        Ok(recipients.peek().is_none() || recipients.any(|recipient| is_subscribed(&recipient.address)))
    }

    /// Repeats the notifications of firing alerts after `repeat_interval`.
    async fn repeat(&self, live: &LiveConfig, now: Timestamp) -> Result<(), StoreError> {
        if !live.active.routes.repeats() {
            return Ok(());
        }
        let groups = self.store.repeats(now).await?;
        if groups.is_empty() {
            return Ok(());
        }
        let silences = self.store.silences(Some(now)).await?;
        let known = self.known(live, &groups).await?;
        let find = |token: &TokenId, resource: Resource| known.get(&(token.clone(), resource));
        let repeats = pipeline::repeats(groups, &silences, &find, &live.active.context(now));
        self.store.commit_repeats(repeats, now).await
    }

    /// Reads the known facts about the tokens of repeated notifications.
    async fn known(
        &self,
        live: &LiveConfig,
        groups: &[RepeatGroup],
    ) -> Result<HashMap<(TokenId, Resource), TokenSnapshot>, StoreError> {
        let mut known = HashMap::new();
        for (token, resource) in groups.iter().flat_map(|group| &group.alerts).filter_map(|of| pipeline::about(&of.alert)) {
            if known.contains_key(&(token.clone(), resource)) {
                continue;
            }
            for snapshot in self.store.tokens(vec![token.clone()], vec![resource]).await? {
                let placed = TokenSnapshot { token: live.watch.placed(snapshot.token), ..snapshot };
                known.insert((token.clone(), resource), placed);
            }
        }
        Ok(known)
    }
}

/// Returns a test notification with the current digest. The last slot does not change, so the next regular digest covers the same
/// changes.
pub async fn digest_test(
    store: &Store,
    setup: (&Watch, &ActiveRules),
    plan: &DigestPlan,
    now: Timestamp,
) -> Result<Notification, StoreError> {
    Ok(digest_now(store, setup, plan, now).await?.test_notification(&plan.receiver, now))
}

/// Returns the digest of everything since the last one. If there was none, it covers the longest interval between two slots.
pub async fn digest_now(
    store: &Store,
    setup: (&Watch, &ActiveRules),
    plan: &DigestPlan,
    now: Timestamp,
) -> Result<Digest, StoreError> {
    let name = digest::job_name(&plan.receiver);
    let last = store.job_slots().await?.into_iter().find(|(of, _)| *of == name).map(|(_, slot)| slot);
    read_digest(store, setup, plan, last.unwrap_or(now - MAX_SLOT_INTERVAL), now, now).await
}

/// Reads the facts of a digest and builds it, for sending and for the preview page.
pub(crate) async fn read_digest(
    store: &Store,
    (watch, active): (&Watch, &ActiveRules),
    plan: &DigestPlan,
    since: Timestamp,
    slot: Timestamp,
    now: Timestamp,
) -> Result<Digest, StoreError> {
    let DigestReads { unlocks, mut changes, statuses, silences_at } = DigestReads::of(plan, since, slot, now);
    let only = plan.narrowed(watch);
    let mut firing_of_tokens = None;
    if let Some(only) = &only {
        let tokens = store.tokens_with_firing_alerts(only.clone()).await?;
        firing_of_tokens = Some(tokens.iter().map(|(_, firing)| firing).sum::<u64>());
        changes.tokens = Some(tokens.into_iter().map(|(token, _)| token).collect());
    }
    // The queries run in parallel on separate connections.
    let (dead, unlocks, firing, mut fires, changes, statuses, silences, incidents) = tokio::try_join!(
        store.receiver_counts(),
        store.digest_ahead(unlocks, only.as_ref().unwrap_or(watch).clone()),
        store.firing_alerts(0, None),
        store.digest_fires(digest::MAX_LINES, only.clone()),
        store.changes(changes),
        store.notification_statuses(statuses),
        store.silences(Some(silences_at)),
        store.source_alerts(),
    )?;
    let shown: &mut [&mut Alert] = &mut fires.iter_mut().map(|valued| &mut valued.alert).collect::<Vec<_>>();
    show_current_texts(shown, store, watch, active, now).await?;
    let dead: Vec<(ReceiverName, u64)> =
        dead.iter().map(|counts| (counts.receiver.clone(), counts.of(DeliveryState::Dead))).collect();
    let rows = DigestRows {
        unlocks: &unlocks,
        changes: &changes,
        statuses: &statuses,
        silences: &silences,
        firing: firing_of_tokens.unwrap_or(firing.critical + firing.warning + firing.other),
        fires: &fires,
        incidents: &incidents,
        dead: &dead,
    };
    Ok(pipeline::digest(plan, since, slot, &rows))
}

#[cfg(test)]
mod tests;

//! The dispatcher: from what was decided to what is delivered.
//!
//! Each pass puts digests down whose time has come, tells again what still fires after `repeat_interval`, and then has the store ask
//! [`engine::pipeline`] about everything that waits ([`Store::dispatch`]). Each of the three is one transaction; none leaves anything in
//! memory that a restart would lose, and each can be done twice without telling anything twice. A pass goes by one value of what is at
//! work from its begin to its end.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use crate::live::{Live, LiveConfig};
use engine::digest_schedule::{DigestPlan, LOOK_BACK};
use engine::group::MuteTimes;
use engine::pipeline::{self, DigestReads, DigestRows, DigestTurn};
use model::{
    BoxFuture, Commit, DeliveryState, Digest, DispatchResult, Notification, PendingState, ReceiverName, RepeatGroup, Resource,
    Timestamp, TokenId, TokenSnapshot, Watch, digest,
};
use store::{Store, StoreError};

/// Makes deliveries of what waits.
#[derive(Debug)]
pub struct Dispatcher {
    store: Store,
    live: Arc<Live>,
    /// The last slot of each digest, once it was read.
    slots: Mutex<Option<BTreeMap<String, Timestamp>>>,
}

impl Dispatcher {
    /// A dispatcher that goes by what is at work at each pass. From now on the store leaves what is to be told to it.
    pub fn new(store: Store, live: Arc<Live>) -> Self {
        store.await_dispatch();
        Self { store, live, slots: Mutex::new(None) }
    }

    /// Decides about everything that waits at `now`, and makes deliveries of what is to be sent.
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

    /// Puts down the digests whose slot has come since the last one.
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
            let Some(turn) = pipeline::digest_turn(&plan.schedule, slots.get(&name).copied(), now) else { continue };
            let mut commit = Commit { at: now, jobs: vec![(name.clone(), turn.slot())], ..Commit::default() };
            if let DigestTurn::Due { since, slot } = turn
                && self.is_wanted(live, &plan.receiver).await?
            {
                commit.notifications =
                    vec![read_digest(&self.store, &live.watch, plan, since, slot, now).await?.notice(&plan.receiver, now)];
            }
            self.store.commit(commit).await?;
            slots.insert(name, turn.slot());
        }
        *self.slots.lock().unwrap_or_else(PoisonError::into_inner) = Some(slots);
        Ok(())
    }

    /// Whether anybody wants the digests of a receiver.
    async fn is_wanted(&self, live: &LiveConfig, receiver: &ReceiverName) -> Result<bool, StoreError> {
        let stopped = self.store.opt_outs(Some(receiver.clone())).await?;
        let mut of_it = live.subscribers.iter().filter(|subscriber| subscriber.receiver == *receiver).peekable();
        // One without mail recipients has none who could stop it.
        Ok(of_it.peek().is_none() || of_it.any(|subscriber| stopped.iter().all(|wish| wish.address != subscriber.address)))
    }

    /// Tells again what still fires.
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

    /// What is known of the tokens that are told of again.
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

/// A test of a digest: what it would be if its time came now, to be put into the outbox. Its slot stays as it is, so that the real
/// one comes at its time and tells of all that changed since the last.
pub async fn digest_test(store: &Store, watch: &Watch, plan: &DigestPlan, now: Timestamp) -> Result<Notification, StoreError> {
    Ok(digest_now(store, watch, plan, now).await?.test_notice(&plan.receiver, now))
}

/// The digest as it would be if its time came now: of all since the last one.
pub(crate) async fn digest_now(store: &Store, watch: &Watch, plan: &DigestPlan, now: Timestamp) -> Result<Digest, StoreError> {
    let name = digest::job_name(&plan.receiver);
    let last = store.job_slots().await?.into_iter().find(|(of, _)| *of == name).map(|(_, slot)| slot);
    read_digest(store, watch, plan, last.unwrap_or(now - LOOK_BACK), now, now).await
}

/// Reads what a digest is made of, and makes it: the one that is sent, and the one that a page shows before.
pub(crate) async fn read_digest(
    store: &Store,
    watch: &Watch,
    plan: &DigestPlan,
    since: Timestamp,
    slot: Timestamp,
    now: Timestamp,
) -> Result<Digest, StoreError> {
    let DigestReads { unlocks, changes, statuses, silences_at } = DigestReads::of(plan, since, slot, now);
    // Each on a connection of its own.
    let (dead, unlocks, firing, fires, changes, statuses, silences, incidents) = tokio::try_join!(
        store.receiver_counts(),
        store.digest_ahead(unlocks, watch.clone()),
        store.firing_alerts(0),
        store.digest_fires(digest::MAX_LINES),
        store.changes(changes),
        store.notification_statuses(statuses),
        store.silences(Some(silences_at)),
        store.source_alerts(),
    )?;
    let dead: Vec<(ReceiverName, u64)> =
        dead.iter().map(|counts| (counts.receiver.clone(), counts.of(DeliveryState::Dead))).collect();
    let rows = DigestRows {
        unlocks: &unlocks,
        changes: &changes,
        statuses: &statuses,
        silences: &silences,
        firing: firing.critical + firing.warning + firing.other,
        fires: &fires,
        incidents: &incidents,
        dead: &dead,
    };
    Ok(pipeline::digest(plan, since, slot, &rows))
}

#[cfg(test)]
mod tests;

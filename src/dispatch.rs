//! The dispatcher: from what was decided to what is delivered.
//!
//! Each pass puts digests down whose time has come, tells again what still fires after `repeat_interval`, and then has the store decide
//! about everything that waits ([`Store::dispatch`], by [`crate::group`]). Each of the three is one transaction; none leaves anything
//! in memory that a restart would lose, and each can be done twice without telling anything twice.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use crate::{
    config,
    cycle::Judgement,
    digest::{self, Digest, Material, Plan, Schedule},
    evaluate::{self, Context, TokenFacts},
    group::{self, Policy},
    notify::unsubscribe::{self, Subscriber},
    outbox::{Dispatch, LedgerError, Pending},
    store::{
        Store, StoreError,
        model::{ChangeFilter, Commit, DeliveryState, Dispatched, FateFilter, Repeat, UpcomingFilter},
    },
    supply::{ReceiverName, Timestamp, TokenId},
    watch::Watch,
};

/// Rows of each kind that a digest is made of; more than it lists, so that it can count.
const DIGEST_ROWS: u32 = 1_000;

/// Makes deliveries of what waits.
#[derive(Debug)]
pub struct Dispatcher {
    store: Store,
    judgement: Arc<RwLock<Arc<Judgement>>>,
    terms: RwLock<Arc<Terms>>,
    /// The last slot of each digest, once it was read.
    slots: Mutex<Option<BTreeMap<String, Timestamp>>>,
}

/// What the config says of receivers, and of tokens: swapped whole by a reload.
#[derive(Debug)]
pub struct Terms {
    max_per_hour: BTreeMap<ReceiverName, u32>,
    digests: Vec<Plan>,
    /// Who gets digests by mail.
    subscribers: Vec<Subscriber>,
    /// Which groups hold a token.
    watch: Watch,
}

impl Terms {
    /// Those of a config.
    ///
    /// # Errors
    /// What is wrong with the digest of a receiver; the check of the config finds it with its place.
    pub fn of(receivers: &[config::Receiver], delivery: &config::Delivery, watch: Watch) -> Result<Self, String> {
        let digests = digest::plans(receivers)?;
        let of = |receiver: &config::Receiver| {
            let max_per_hour = receiver.max_per_hour.unwrap_or(delivery.max_per_hour);
            (ReceiverName::from(receiver.name.as_str()), max_per_hour)
        };
        let max_per_hour = receivers.iter().map(of).collect();
        Ok(Self { max_per_hour, digests, subscribers: unsubscribe::subscribers(receivers), watch })
    }
}

impl Dispatcher {
    /// A dispatcher for these receivers. From now on the store leaves what is to be told to it.
    #[must_use]
    pub fn new(store: Store, judgement: Arc<RwLock<Arc<Judgement>>>, terms: Terms) -> Self {
        store.await_dispatch();
        Self { store, judgement, terms: RwLock::new(Arc::new(terms)), slots: Mutex::new(None) }
    }

    /// Goes by other terms from its next pass on.
    pub fn replace(&self, terms: Terms) {
        *self.terms.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(terms);
    }

    fn terms(&self) -> Arc<Terms> {
        self.terms.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn judgement(&self) -> Arc<Judgement> {
        self.judgement.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn pass(&self, now: Timestamp) -> Result<Dispatched, StoreError> {
        self.digests(now).await?;
        self.repeat(now).await?;
        let policy = Policy { routes: self.judgement().routes.clone(), max_per_hour: self.terms().max_per_hour.clone() };
        self.store.dispatch(Arc::new(policy), now).await
    }

    // -- digests --

    /// Puts down the digests whose slot has come since the last one.
    async fn digests(&self, now: Timestamp) -> Result<(), StoreError> {
        let terms = self.terms();
        if terms.digests.is_empty() {
            return Ok(());
        }
        let known = self.slots.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut slots = match known {
            Some(slots) => slots,
            None => self.store.job_slots().await?.into_iter().filter(|(name, _)| name.starts_with(digest::JOB_PREFIX)).collect(),
        };
        for Plan { receiver, schedule, .. } in &terms.digests {
            let Some(slot) = schedule.last(now) else { continue };
            let name = digest::job_name(receiver);
            let mut commit = Commit { at: now, jobs: vec![(name.clone(), slot)], ..Commit::default() };
            match slots.get(&name) {
                Some(last) if *last >= slot => continue,
                Some(_) if !self.is_wanted(receiver).await? => {}
                // Of several that were missed, one is sent: it tells what changed since the last.
                Some(last) => {
                    commit.notices = vec![self.digest(receiver, schedule, *last, slot, now).await?.notice(receiver, now)]
                }
                // A new digest begins with its next slot.
                None => {}
            }
            self.store.commit(commit).await?;
            slots.insert(name, slot);
        }
        *self.slots.lock().unwrap_or_else(PoisonError::into_inner) = Some(slots);
        Ok(())
    }

    /// Whether anybody wants the digests of a receiver.
    async fn is_wanted(&self, receiver: &ReceiverName) -> Result<bool, StoreError> {
        let stopped = self.store.opt_outs(Some(receiver.clone())).await?;
        let terms = self.terms();
        let mut of_it = terms.subscribers.iter().filter(|subscriber| subscriber.receiver == *receiver).peekable();
        // One without mail recipients has none who could stop it.
        Ok(of_it.peek().is_none() || of_it.any(|subscriber| stopped.iter().all(|wish| wish.address != subscriber.address)))
    }

    async fn digest(
        &self,
        receiver: &ReceiverName,
        schedule: &Schedule,
        since: Timestamp,
        at: Timestamp,
        now: Timestamp,
    ) -> Result<Digest, StoreError> {
        let until = at.checked_add_signed(schedule.ahead);
        let upcoming = UpcomingFilter { tokens: None, from: now, until, limit: DIGEST_ROWS };
        let upcoming = self.store.upcoming(upcoming).await?;
        let changes = ChangeFilter { since: Some(since), limit: DIGEST_ROWS, ..ChangeFilter::default() };
        let changes = self.store.changes(changes).await?;
        let fates = FateFilter {
            receiver: Some(receiver.clone()),
            since: Some(since),
            undelivered: true,
            limit: DIGEST_ROWS,
            ..FateFilter::default()
        };
        let fates = self.store.fates(fates).await?;
        let counts = self.store.counts().await?;
        let firing =
            counts.alerts.iter().find(|(state, _)| *state == crate::alert::AlertState::Firing).map_or(0, |(_, count)| *count);
        let mut trouble: Vec<String> = self
            .store
            .source_alerts()
            .await?
            .iter()
            .map(|alert| alert.annotations.get("summary").cloned().unwrap_or_else(|| alert.subject.clone()))
            .collect();
        trouble.extend(counts.outbox.iter().filter(|receiver| receiver.of(DeliveryState::Dead) > 0).map(|receiver| {
            let dead = receiver.of(DeliveryState::Dead);
            format!("{dead} deliveries to {} were given up: `cliffwatch outbox list --state dead`", receiver.receiver)
        }));
        let firing = u32::try_from(firing).unwrap_or(u32::MAX);
        let silences = &self.store.silences(Some(at)).await?;
        let (upcoming, changes, fates, trouble) = (&upcoming, &changes, &fates, &trouble);
        Ok(Digest::of(&Material { since, at, ahead: schedule.ahead, upcoming, changes, fates, silences, firing, trouble }))
    }

    // -- telling again --

    async fn repeat(&self, now: Timestamp) -> Result<(), StoreError> {
        let judgement = self.judgement();
        if !judgement.routes.repeats() {
            return Ok(());
        }
        let repeats = self.store.repeats(now).await?;
        if repeats.is_empty() {
            return Ok(());
        }
        let silences = self.store.silences(Some(now)).await?;
        let mut notices = Vec::new();
        let mut groups = Vec::new();
        for repeat in repeats {
            let Repeat { receiver, key, mut alerts } = repeat;
            // What comes next is told first; what has no date, last.
            alerts.sort_by_key(|(alert, _)| (alert.due.is_none(), alert.due.map(|due| due.start)));
            let mut next = None;
            for (alert, last) in alerts {
                let leaf = judgement.routes.leaf(&last.body.labels, &receiver);
                next = next.or_else(|| now.checked_add_signed(leaf.grouping().repeat?));
                let is_silenced = silences.iter().any(|silence| silence.hides(&last.body.labels, now));
                if is_silenced || leaf.grouping().repeat.is_none() || !judgement.routes.knows(&receiver) {
                    continue;
                }
                let retold = match &alert.token {
                    Some(token) => self.retold(token, &alert, &judgement.context(now)).await?,
                    None => None,
                };
                notices.push(group::repeat(&last, alert.due, retold, &receiver, &key, now));
            }
            groups.push((receiver, key, next));
        }
        self.store.commit_repeats(notices, groups, now).await
    }

    /// What is told again of an alert about a record, as it reads now.
    async fn retold(
        &self,
        token: &TokenId,
        alert: &crate::alert::Alert,
        context: &Context<'_>,
    ) -> Result<Option<crate::alert::AlertBody>, StoreError> {
        let Some(resource) = alert.resource else { return Ok(None) };
        let snapshots = self.store.tokens(vec![token.clone()], vec![resource]).await?;
        let Some(snapshot) = snapshots.first() else { return Ok(None) };
        let read_at = snapshot.feeds.iter().filter(|(endpoint, _)| endpoint.resource() == Some(resource));
        let polled_at: Vec<_> = read_at.filter_map(|(_, state)| Some((resource, state.read_at?))).collect();
        let placed = self.terms().watch.placed(snapshot.token.clone());
        let facts = TokenFacts {
            token: &placed,
            is_watched: true,
            records: &snapshot.records,
            resources: &[resource],
            changes: &[],
            added: &[],
            alerts: &[],
            polled_at: &polled_at,
        };
        Ok(evaluate::retell(alert, &facts, context))
    }
}

impl Dispatch for Dispatcher {
    fn dispatch(&self, now: Timestamp) -> Pending<'_, Result<Dispatched, LedgerError>> {
        Box::pin(async move { Ok(self.pass(now).await?) })
    }
}

#[cfg(test)]
mod tests;

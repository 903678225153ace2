//! The dispatcher of a simulation: makes messages from notifications, with digests and reminders, like the daemon's dispatcher.

use std::sync::Arc;

use super::Simulation;
use engine::digest_schedule::DigestAction;
use engine::digest_schedule::{self, DigestPlan};
use engine::pipeline::{self, DigestReads, DigestRows, DispatchPolicy};
use model::{
    Ack, AlertId, Batch, Commit, Digest, Notification, NotificationId, PendingState, ReceiverName, Resource, Silence,
    Suppression, Timestamp, TokenId, digest,
};

/// The delivery settings other than routes.
#[derive(Clone, Debug, Default)]
pub struct DeliverySetup {
    /// The receiver settings of the config.
    pub policy: DispatchPolicy,
    /// All silences, past and future.
    pub silences: Vec<Silence>,
    /// All acknowledgements.
    pub acks: Vec<Ack>,
}

impl DeliverySetup {
    /// Returns a setup without silences and acknowledgements.
    pub fn of(policy: DispatchPolicy) -> Self {
        Self { policy, ..Self::default() }
    }
}

/// A message to one receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub at: Timestamp,
    pub receiver: ReceiverName,
    /// The shape, group, and note of the message.
    pub batch: Batch,
    pub notified: Vec<Arc<Notification>>,
    /// Notifications that the message only counts.
    pub counted: Vec<Arc<Notification>>,
    /// Notifications replaced by a later one of the same alert in the message.
    pub merged: Vec<Arc<Notification>>,
}

/// A notification that is suppressed, or still pending at the end of the simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct UndeliveredSimulated {
    pub notice: NotificationId,
    pub alert: AlertId,
    pub receiver: ReceiverName,
    /// `None` if the notification is pending.
    pub by: Option<Suppression>,
}

impl Simulation<'_> {
    /// Enables messages: see [`take_sent`](Self::take_sent).
    #[must_use]
    pub fn with_delivery(mut self, setup: DeliverySetup) -> Self {
        self.memory.delivers = true;
        self.memory.keeps_changes = !setup.policy.digests.is_empty();
        // A new digest starts at its next slot.
        self.next_digest = (!setup.policy.digests.is_empty()).then_some(self.now);
        self.stale_price = setup.policy.stale_price.unwrap_or(self.stale_price);
        self.delivery = Some(setup.policy);
        setup.silences.into_iter().for_each(|silence| self.memory.put_silence(silence));
        setup.acks.into_iter().for_each(|ack| self.memory.put_ack(ack));
        self.digests();
        self
    }

    /// Returns the time of the next dispatch pass that is due without new notifications.
    pub fn next_delivery(&self) -> Option<Timestamp> {
        self.delivery.as_ref()?;
        [self.next_pass, self.memory.next_repeat(), self.next_digest].into_iter().flatten().min()
    }

    /// Runs a dispatch pass: digests, reminders, then all other notifications.
    pub(super) fn dispatch(&mut self) {
        if self.delivery.is_none() {
            return;
        }
        self.digests();
        self.repeat();
        let now = self.now;
        if !self.memory.has_changed && self.next_pass.is_none_or(|at| at > now) {
            return;
        }
        self.memory.has_changed = false;
        self.next_pass = None;
        let Some(policy) = &self.delivery else { return };
        let (routes, mutes) = (self.routes, &mut self.mutes);
        let decide = |state: &PendingState<'_>| pipeline::dispatch(state, routes, &policy.max_per_hour, mutes, now);
        if let Some(dispatch) = self.memory.pending(decide, now) {
            self.next_pass = dispatch.next_at;
            self.sent.extend(self.memory.dispatch(dispatch, now));
        }
    }

    /// Adds the digests that are due.
    fn digests(&mut self) {
        let now = self.now;
        if self.next_digest.is_none_or(|at| at > now) {
            return;
        }
        let plans = self.delivery.as_ref().map(|policy| policy.digests.clone()).unwrap_or_default();
        self.next_digest = plans.iter().filter_map(|plan| plan.schedule.next(now)).min();
        self.memory.forget_changes(now - digest_schedule::MAX_SLOT_INTERVAL);
        for plan in &plans {
            let name = digest::job_name(&plan.receiver);
            let Some(action) = plan.schedule.action(self.memory.last_run(&name), now) else { continue };
            let mut commit = Commit { at: now, jobs: vec![(name, action.slot())], ..Commit::default() };
            if let DigestAction::Due { since, slot } = action {
                commit.notifications = vec![self.digest(plan, since, slot).notification(&plan.receiver, now)];
            }
            self.memory.commit(commit, Vec::new(), self.watch);
        }
    }

    fn digest(&self, plan: &DigestPlan, since: Timestamp, slot: Timestamp) -> Digest {
        let reads = DigestReads::of(plan, since, slot, self.now);
        let only = plan.narrowed(self.watch);
        let is_meant = |token: Option<&TokenId>| only.as_ref().is_none_or(|only| token.is_some_and(|token| only.covers(token)));
        let mut changes = self.memory.changes(&reads.changes);
        changes.retain(|row| is_meant(Some(&row.token)));
        let mut fires = self.memory.firing_alerts(&self.context());
        fires.retain(|of| is_meant(of.alert.token.as_ref()));
        let rows = DigestRows {
            unlocks: &self.memory.digest_ahead(&reads.unlocks, &is_meant),
            changes: &changes,
            statuses: &self.memory.statuses(&reads.statuses),
            silences: &self.memory.silences(reads.silences_at, self.now),
            firing: if only.is_some() { fires.len() as u64 } else { self.memory.firing_count() },
            fires: &fires,
            incidents: &self.memory.source_alerts(),
            dead: &[],
        };
        pipeline::digest(plan, since, slot, &rows)
    }

    /// Adds the reminders that are due.
    fn repeat(&mut self) {
        let now = self.now;
        if self.memory.next_repeat().is_none_or(|at| at > now) {
            return;
        }
        let silences = self.memory.silences(now, now);
        let groups = self.memory.repeats(now);
        let known = |token: &TokenId, _: Resource| self.memory.tokens.get(token);
        let repeats = pipeline::repeats(groups, &silences, &known, &self.context());
        self.memory.commit_repeats(repeats, now);
    }
}

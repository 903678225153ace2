//! The rows that are read for a digest, and the digest that is made of them.

use crate::digest_schedule::DigestPlan;
use model::{
    Alert, AlertState, ChangeFilter, ChangeRow, Digest, DigestAhead, DigestAheadFilter, DigestMaterial, NotificationFilter,
    NotificationStatus, ReceiverName, ReferencePrice, Silence, SumWindow, Timestamp, ValuedAlert, phrase,
};

/// The number of rows of each kind that are read for a digest. A digest lists fewer but counts all.
const DIGEST_ROWS: u32 = 1_000;

/// The filters of the rows for the digest of a receiver.
#[derive(Clone, Debug)]
pub struct DigestReads {
    pub unlocks: DigestAheadFilter,
    /// Changes since the last digest.
    pub changes: ChangeFilter,
    /// Notifications since the last digest that were not delivered to the receiver.
    pub statuses: NotificationFilter,
    /// The time at which silences must be in force.
    pub silences_at: Timestamp,
}

impl DigestReads {
    /// Returns the filters of a plan for a slot after `since`.
    pub fn of(plan: &DigestPlan, since: Timestamp, slot: Timestamp, now: Timestamp) -> Self {
        let stale_before = ReferencePrice::stale_before(plan.stale_price, slot);
        Self {
            unlocks: DigestAheadFilter {
                from: now,
                window: SumWindow::of(slot, plan.schedule.ahead),
                stale_before,
                selection: plan.selection,
            },
            changes: ChangeFilter { since: Some(since), limit: DIGEST_ROWS, ..ChangeFilter::default() },
            statuses: NotificationFilter {
                receiver: Some(plan.receiver.clone()),
                since: Some(since),
                undelivered: true,
                limit: DIGEST_ROWS,
                ..NotificationFilter::default()
            },
            silences_at: slot,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct DigestRows<'a> {
    /// The unlocks of the days that the digest covers.
    pub unlocks: &'a DigestAhead,
    /// The changes since the last digest, newest first.
    pub changes: &'a [ChangeRow],
    pub statuses: &'a [NotificationStatus],
    pub silences: &'a [Silence],
    /// The number of firing alerts. Of a digest about some tokens, only those about them.
    pub firing: u64,
    /// All firing alerts of the highest-ranked events, in no particular order.
    pub fires: &'a [ValuedAlert],
    /// Open alerts about the source, receivers, and the daemon.
    pub incidents: &'a [Alert],
    /// Receivers with dead letters, and their number.
    pub dead: &'a [(ReceiverName, u64)],
}

/// Returns the digest of a slot, with everything since the slot `since`.
pub fn digest(plan: &DigestPlan, since: Timestamp, slot: Timestamp, rows: &DigestRows<'_>) -> Digest {
    let DigestRows { unlocks, changes, statuses, silences, firing, fires, incidents, dead } = *rows;
    // Incidents are listed separately.
    let is_incident = |valued: &&ValuedAlert| incidents.iter().any(|incident| incident.id == valued.alert.id);
    let fires: Vec<&ValuedAlert> = fires.iter().filter(|valued| !is_incident(valued)).collect();
    let summary = |alert: &Alert| alert.annotations.get("summary").cloned().unwrap_or_else(|| alert.subject.clone());
    let mut incident_summaries: Vec<String> = incidents.iter().map(summary).collect();
    let dead = dead.iter().filter(|(_, dead)| *dead > 0);
    incident_summaries.extend(dead.map(|(receiver, dead)| phrase::dead_letters(receiver, *dead)));
    let (ahead, incident_summaries) = (plan.schedule.ahead, incident_summaries.as_slice());
    let incidents = incidents.iter().filter(|incident| incident.state == AlertState::Firing).count();
    let incidents = u32::try_from(incidents).unwrap_or(u32::MAX);
    // Incidents are about no token, and belong in every digest.
    let of_tokens = if plan.tokens.is_empty() { 0 } else { incidents };
    let firing = u32::try_from(firing).unwrap_or(u32::MAX).saturating_add(of_tokens);
    let fires = fires.as_slice();
    Digest::of(&DigestMaterial {
        since,
        at: slot,
        ahead,
        unlocks,
        tokens: &plan.tokens,
        selection: plan.selection,
        changes,
        statuses,
        silences,
        firing,
        fires,
        incidents,
        incident_summaries,
    })
}

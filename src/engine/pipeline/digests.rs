//! Digests: whose slot has come, what is read for one, and what it is made of.

use crate::digest_schedule::{DigestPlan, Schedule};
use model::{
    Alert, AlertState, ChangeFilter, ChangeRow, Digest, DigestAhead, DigestAheadFilter, DigestMaterial, NotificationFilter,
    NotificationStatus, ReceiverName, Silence, SumWindow, Timestamp, ValuedAlert,
};

/// Rows of each kind that a digest is made of; more than it lists, so that it can count.
const DIGEST_ROWS: u32 = 1_000;

/// What is to be done about a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestTurn {
    /// A new digest begins with its next slot: this one is only noted.
    Begin(Timestamp),
    /// A slot has come. Of several that were missed one digest is sent: it tells what changed since the last.
    Due {
        /// The slot that was last told or noted.
        since: Timestamp,
        /// The one that has come.
        slot: Timestamp,
    },
}

impl DigestTurn {
    pub fn slot(self) -> Timestamp {
        match self {
            DigestTurn::Begin(slot) | DigestTurn::Due { slot, .. } => slot,
        }
    }
}

/// Whether the slot of a digest has come, given the last one that was told or noted.
pub fn digest_turn(schedule: &Schedule, last: Option<Timestamp>, now: Timestamp) -> Option<DigestTurn> {
    let slot = schedule.last(now)?;
    match last {
        Some(since) if since >= slot => None,
        Some(since) => Some(DigestTurn::Due { since, slot }),
        None => Some(DigestTurn::Begin(slot)),
    }
}

/// What is read for the digest of a receiver.
#[derive(Clone, Debug)]
pub struct DigestReads {
    /// Unlocks ahead.
    pub unlocks: DigestAheadFilter,
    /// Changes since the last digest.
    pub changes: ChangeFilter,
    /// What was not told to the receiver since.
    pub statuses: NotificationFilter,
    /// Silences that are not over then.
    pub silences_at: Timestamp,
}

impl DigestReads {
    /// Those of a plan, for a slot that comes after `since`.
    pub fn of(plan: &DigestPlan, since: Timestamp, slot: Timestamp, now: Timestamp) -> Self {
        Self {
            unlocks: DigestAheadFilter { from: now, window: SumWindow::of(slot, plan.schedule.ahead) },
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
    /// Unlocks of its days.
    pub unlocks: &'a DigestAhead,
    /// Changes, the latest first.
    pub changes: &'a [ChangeRow],
    pub statuses: &'a [NotificationStatus],
    pub silences: &'a [Silence],
    pub firing: u64,
    /// Of what fires all alerts of the events that come first, in any order.
    pub fires: &'a [ValuedAlert],
    /// Open alerts about the source, receivers and this program.
    pub incidents: &'a [Alert],
    /// Receivers with deliveries that were given up, and how many.
    pub dead: &'a [(ReceiverName, u64)],
}

pub fn digest(plan: &DigestPlan, since: Timestamp, slot: Timestamp, rows: &DigestRows<'_>) -> Digest {
    let DigestRows { unlocks, changes, statuses, silences, firing, fires, incidents, dead } = *rows;
    // Incidents stand under what is the matter.
    let is_incident = |of: &&ValuedAlert| incidents.iter().any(|incident| incident.id == of.alert.id);
    let fires: Vec<&ValuedAlert> = fires.iter().filter(|of| !is_incident(of)).collect();
    let summary = |alert: &Alert| alert.annotations.get("summary").cloned().unwrap_or_else(|| alert.subject.clone());
    let mut trouble: Vec<String> = incidents.iter().map(summary).collect();
    trouble.extend(dead.iter().filter(|(_, dead)| *dead > 0).map(|(receiver, dead)| {
        let were =
            if *dead == 1 { format!("1 delivery to {receiver} was") } else { format!("{dead} deliveries to {receiver} were") };
        format!("{were} given up: `cliffwatch outbox list --state dead`")
    }));
    let firing = u32::try_from(firing).unwrap_or(u32::MAX);
    let (ahead, trouble) = (plan.schedule.ahead, trouble.as_slice());
    let incidents = incidents.iter().filter(|incident| incident.state == AlertState::Firing).count();
    let incidents = u32::try_from(incidents).unwrap_or(u32::MAX);
    let fires = fires.as_slice();
    Digest::of(&DigestMaterial {
        since,
        at: slot,
        ahead,
        unlocks,
        changes,
        statuses,
        silences,
        firing,
        fires,
        incidents,
        trouble,
    })
}

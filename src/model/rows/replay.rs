//! Replays: a request to send the deliveries of a receiver again, and its result. `engine::replay` decides, and the store applies it.

use serde::{Deserialize, Serialize};

use super::outbox::DeliveryState;
use crate::{DeliveryId, ReceiverName, Timestamp};

/// Marks a delivery that is sent again because a user requested it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// The time of the latest request.
    pub requested_at: Timestamp,
    /// The time at which the receiver first accepted the delivery, before any replay. `None` if it never did.
    pub first_delivered_at: Option<Timestamp>,
}

/// A request to send deliveries again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayRequest {
    pub receiver: ReceiverName,
    /// Deliveries queued at or after this time.
    pub since: Timestamp,
    /// Deliveries queued before this time.
    pub until: Timestamp,
    /// Whether to include deliveries that were replayed just before.
    pub includes_recent: bool,
}

/// A delivery in the range of a request. Test messages are not candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayCandidate {
    pub id: DeliveryId,
    pub state: DeliveryState,
    /// The time of the last attempt or other change.
    pub updated_at: Timestamp,
    /// The time of the latest replay request. `None` without one.
    pub replayed_at: Option<Timestamp>,
}

/// The input of the decision, in the order in which the deliveries were queued.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayState {
    pub candidates: Vec<ReplayCandidate>,
    /// The times of the replay requests that still have pending deliveries to the receiver.
    pub unfinished: Vec<Timestamp>,
}

/// The deliveries to send again, and the number of other deliveries, by the reason why they are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayPlan {
    pub deliveries: Vec<DeliveryId>,
    /// Deliveries that are pending, so they are sent anyway.
    pub pending: u64,
    /// Deliveries that a replay sent just before, or that belong to a replay that is not finished.
    pub recently_replayed: u64,
    /// Deliveries that a user dropped.
    pub dropped: u64,
}

/// The result of a replay request. The fields have the names of its JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayResult {
    pub receiver: ReceiverName,
    pub since: Timestamp,
    pub until: Timestamp,
    /// Deliveries to send again.
    pub deliveries: u64,
    /// Deliveries that are pending, so they are sent anyway.
    pub pending: u64,
    /// Deliveries that a replay sent just before, or that belong to a replay that is not finished.
    pub recently_replayed: u64,
    /// Deliveries that a user dropped.
    pub dropped: u64,
    /// Deliveries that retention deleted. Counted by hour: includes the whole hours in which the range begins and ends.
    pub deleted: u64,
}

/// The body of the event of a replay request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestedReplay {
    pub receiver: ReceiverName,
    pub since: Timestamp,
    pub until: Timestamp,
    /// The number of deliveries to send again.
    pub deliveries: u64,
}

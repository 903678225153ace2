//! Actions of users, and the requests and access keys of programs that act for them.

use super::outbox::DeliveryState;
use crate::silence::SilenceError;
use crate::{AlertId, DeliveryId, Silence, SilenceRequest, Timestamp, TokenId};

/// An action of a user, by a request or a command.
#[derive(Clone, Debug, PartialEq)]
pub enum UserAction {
    CreateSilence(Silence),
    /// Ends an active or future silence and creates another in its place.
    ReplaceSilence {
        id: String,
        silence: Silence,
    },
    /// Replaces the matchers, texts, and times of an active or future silence.
    UpdateSilence {
        id: String,
        request: SilenceRequest,
    },
    /// The alert is given by its id or a prefix.
    Acknowledge {
        alert: String,
        author: String,
        comment: String,
    },
    RemoveAcknowledgement(AlertId),
    /// Makes the delivery due and restarts its retry schedule.
    RetryDelivery(DeliveryId),
    /// Removes the delivery from the outbox without sending it.
    DropDelivery(DeliveryId),
    /// Accepts the held responses of a token.
    AcceptHeld(TokenId),
}

/// The outcome of an action. Nothing was written unless it [`Self::is_done`].
#[derive(Clone, Debug, PartialEq)]
pub enum ActionOutcome {
    Done,
    Acknowledged(AlertId),
    SilenceUpdated(Silence),
    /// The alert, silence, acknowledgement, or delivery does not exist.
    Unknown,
    /// Several alerts have an id with this prefix; some of their ids.
    Ambiguous(Vec<AlertId>),
    /// The action is not possible in this state of the delivery.
    WrongState(DeliveryState),
    /// No response of the token is held.
    NothingHeld,
    InvalidSilence(SilenceError),
}

impl ActionOutcome {
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done | Self::Acknowledged(_) | Self::SilenceUpdated(_))
    }
}

/// A request with an `Idempotency-Key`, which has an effect once however often it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRequest {
    /// A hash of the client's token or access key. Clients cannot see the requests of others.
    pub client: String,
    pub key: String,
    /// A hash of the method, the path, and the body.
    pub hash: Vec<u8>,
}

/// The response to a request that had an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    pub status: u16,
    /// JSON, or empty.
    pub body: String,
}

/// The earlier use of a request's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownRequest {
    New,
    /// The same request had an effect, with this response.
    Repeated(StoredResponse),
    /// Another request had this key.
    Different,
}

/// The result of a request that has a key.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyedOutcome<T> {
    Outcome(T),
    /// The same request had its effect before.
    Repeated(StoredResponse),
    /// Another request had this key.
    Different,
}

words! {
    /// The rights of an access key. Each role includes the roles before it.
    #[derive(PartialOrd, Ord)]
    AccessRole {
        /// Read everything.
        View = "view",
        /// Acknowledge, silence, retry and drop deliveries, accept held responses.
        Act = "act",
        /// Reload the config and the rules.
        Admin = "admin",
    }
}

/// An access key for programs. Only its hash is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessKey {
    pub name: String,
    pub role: AccessRole,
    pub created_at: Timestamp,
}

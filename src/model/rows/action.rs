//! Actions of users, and the requests and access keys of programs that act for them.

use serde::Serialize;

use super::event_log::EventType;
use super::outbox::DeliveryState;
use super::query::ListPosition;
use crate::note::{NewAssignment, NewNote};
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
    AddNote(NewNote),
    /// Assigns an alert to a person, or removes its assignee.
    Assign(NewAssignment),
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
    /// The alert has as many notes as it can.
    TooManyNotes,
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

words! {
    /// The way in which the author of an action was identified.
    ActorSource {
        /// By `token` in `[http]`, which is shared.
        Token = "token",
        /// By an access key.
        Key = "key",
        /// By a header of a trusted reverse proxy.
        Proxy = "proxy",
        /// By the user account that ran a command.
        Command = "command",
        /// By a signed link in a mail.
        Link = "link",
    }
}

/// The author of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Actor {
    /// The name of the access key, the user, or the address of the mail. Empty for the shared token.
    #[serde(rename = "author")]
    pub name: String,
    pub via: ActorSource,
}

/// An action of a user, as the audit log shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRow {
    /// The number of the row. Later rows have higher numbers.
    #[serde(rename = "id")]
    pub no: i64,
    pub at: Timestamp,
    #[serde(flatten)]
    pub actor: Actor,
    #[serde(rename = "type")]
    pub kind: EventType,
    pub token: Option<TokenId>,
    /// The id of the alert, silence, or delivery, or the name of the receiver, rule, or access key.
    pub subject: String,
    /// The body of the event: the facts at that time.
    pub facts: serde_json::Value,
}

/// Selects rows of the audit log, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditFilter {
    /// The exact name of an author. Empty selects the shared token.
    pub actor: Option<String>,
    /// Empty selects all types.
    pub kinds: Vec<EventType>,
    /// Inclusive.
    pub since: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
    pub position: ListPosition,
    /// The maximum number of rows.
    pub limit: u32,
}

/// An access key for programs and people. Only its hash is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessKey {
    pub name: String,
    pub role: AccessRole,
    pub created_at: Timestamp,
}

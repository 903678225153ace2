//! What is watched: tokens, their records under keys, the feeds that bring them, and the ids of everything.
//!
//! Amounts are tokens, values USD, ratios percent, times UTC. Nothing here reads a clock, a file or a socket.

mod endpoint;
mod feed;
mod id;
mod record;
mod token;

pub use self::{
    endpoint::{Endpoint, Resource},
    feed::{ContentHash, FeedId, FeedState, Findings, ListWord},
    id::{AlertId, DeliveryId, NotificationId, ReceiverName, RecordKey, RuleId, TokenId},
    record::{Record, Tracked},
    token::Token,
};
pub use crate::time::{Interval, Precision, Timestamp, days, parse_timestamp, span_of_days};

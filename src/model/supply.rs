//! Tokens, their records and keys, feeds, and all ids.
//!
//! Amounts are in tokens, values in USD, ratios in percent, and times in UTC. Nothing here reads a clock, a file, or a socket.

mod ahead;
mod endpoint;
mod feed;
mod id;
mod known;
mod linear;
mod linear_dates;
mod linear_ends;
mod rate_changes;
mod rate_step;
mod recipient;
mod record;
mod shown_days;
mod token;
mod token_name;

pub use self::{
    ahead::{CliffPiece, Inclusion, LinearPiece, LinearRate, LinearSupply, ReferencePrice, SupplyAhead, TokenPieces, UnlockSum},
    endpoint::{Endpoint, Resource},
    feed::{ContentHash, FeedId, FeedState, Findings, Hold, ListReport},
    id::{AlertId, DeliveryId, NotificationId, ReceiverName, RecordKey, RuleId, TokenId},
    known::{
        KnownSupply, LinearAhead, LinearNotes, LinearRun, ListedMethod, MAX_LINEAR_RUNS, OmittedRate, SegmentsRead,
        ShortenedUnlock, SupplyCoverage, VersionAbsence, supply_coverage,
    },
    linear::LinearUnlock,
    linear_dates::{LinearDate, LinearDateKind, linear_dates},
    linear_ends::LinearEnd,
    rate_changes::{RateCause, RateChange, rate_changes},
    rate_step::RateStep,
    recipient::Recipient,
    record::{Record, Tracked},
    shown_days::ShownDays,
    token::Token,
    token_name::{TokenNameError, TokenNames, resolve_token},
};
pub use crate::time::{Interval, Precision, Timestamp, days, parse_timestamp, span_of_days};

//! What goes into the database and comes out of it, in the words of the domain. No SQL here.

mod commit;
mod counts;
mod notification;
mod opt_out;
mod outbox;
mod query;
mod snapshot;

pub use self::{
    commit::{Commit, CommitResult, CreditState, FeedUpdate, PollEntry, PollEntryOutcome, PruneResult, Put},
    counts::{EndpointStat, ReceiverCounts, StoreCounts, StoreGauges},
    notification::{
        AckResult, DispatchResult, NotificationOverview, NotificationRole, NotificationState, NotificationStatus, ReceiverStatus,
        SuppressedCount, cut_summary,
    },
    opt_out::{LinkKey, OptOut, OptOutSource},
    outbox::{
        Attempt, AttemptOutcome, AttemptRecord, Batch, BatchKind, DeliveryState, DueDelivery, OutboxAlert, OutboxDetail,
        OutboxRow,
    },
    query::{AlertFilter, ChangeFilter, NotificationFilter, OutboxFilter, UpcomingFilter},
    snapshot::{ChangeRow, PlanToken, RecordRange, TokenSnapshot, UpcomingRow, VersionRow, WindowRecords},
};

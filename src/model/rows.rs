//! The inputs and results of database operations, in terms of the domain. No SQL here.

mod action;
mod commit;
mod counts;
mod credit;
mod event_log;
mod month;
mod notification;
mod opt_out;
mod outbox;
mod pages;
mod past_poll;
mod query;
mod replay;
mod seen_tokens;
mod session;
mod snapshot;
mod supply;
mod upcoming;

pub use self::action::{
    AccessKey, AccessRole, ActionOutcome, Actor, ActorSource, AuditFilter, AuditRow, KeyedOutcome, KeyedRequest, KnownRequest,
    StoredResponse, UserAction,
};
pub use self::commit::{Commit, CommitResult, FeedUpdate, PollEntry, PollEntryOutcome, PruneResult, Put};
pub use self::counts::{DomainGauges, EndpointStat, PeriodReads, ReceiverCounts, StoreCounts, StoreGauges};
pub use self::credit::{Charge, CreditState, LimitProbe, PastPeriod, Reservation, SettledRequest};
pub use self::event_log::{
    AcknowledgedAlert, DecidedNotification, EndedDelivery, EventBody, EventCursorProblem, EventLogFilter, EventLogPage,
    EventLogRange, EventType, LoggedAction, LoggedAlert, LoggedEvent, LoggedReload, LoggedSilence,
};
pub use self::month::{LinearBand, MonthFilter, MonthUnlock, UnlockDay, UnlockMonth, UnlockOrder};
pub use self::notification::{
    AckResult, DispatchResult, NotificationOverview, NotificationRole, NotificationState, NotificationStatus, ReceiverStatus,
    SuppressedCount, cut_summary,
};
pub use self::opt_out::{LinkKey, OptOut, OptOutSource};
pub use self::outbox::{
    Attempt, AttemptOutcome, AttemptRecord, Batch, BatchKind, DeliveryState, DueDelivery, MAX_ALERTS, MAX_DELIVERIES_PER_ACTION,
    OutboxAlert, OutboxDetail, OutboxRow,
};
pub use self::pages::{Ahead, AheadFilter, FiringAlerts, Pulse, RateRow, TokenFilter, TokenList, TokenSort, TokenSummary, WEEKS};
pub use self::past_poll::{PastPoll, PastPollState, PastPolls, PollProblem};
pub use self::query::{
    AlertCursor, AlertFilter, ChangeFilter, DigestAheadFilter, GroupMembers, ListPosition, Listed, NotificationFilter,
    NumberedAlert, OutboxFilter, UpcomingFilter,
};
pub use self::replay::{Replay, ReplayCandidate, ReplayPlan, ReplayRequest, ReplayResult, ReplayState, RequestedReplay};
pub use self::seen_tokens::SeenTokens;
pub use self::session::{EndedSessions, MAX_SESSION_AGE};
pub use self::snapshot::{
    CalendarRow, ChangeRow, LinearReads, PlanToken, PlanTokens, RecordRange, TokenSnapshot, UnreadableToken, UpcomingRow,
    VersionRow, WindowRecords,
};
pub use self::supply::{SUPPLY_WINDOWS, SupplyTotals, TokenSupply, TotalsCoverage, supply_weeks, supply_windows};
pub use self::upcoming::{
    LinearCalendarRow, LinearPosition, LinearRow, ListedUnlock, UnlockCursor, UnlockKind, UnlockListFilter, UnlockPosition,
};

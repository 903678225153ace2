//! The values that commands, `/api/v1/…`, and pages share, built from rows of the store.
//!
//! The JSON has the names of the fields. This module reads neither a clock nor the store.

mod alert;
mod past_polls;
mod position;
mod receiver;
mod unlock;

use std::{collections::BTreeMap, path::PathBuf};

use serde::Serialize;

pub use alert::AlertView;
use engine::{
    digest_schedule::DigestPlan,
    plan::month::polls::TokenPolls,
    self_monitor::{self, SourceState},
};
use model::{
    Alert, AlertState, CreditState, Endpoint, EndpointStat, NotificationOverview, ShownDays, SilenceView, StoreCounts, Timestamp,
};
use notify::unsubscribe::Subscriber;
pub use past_polls::PastPollsView;
pub use position::PositionView;
pub use receiver::{DigestView, OutboxView, StoppedView};
pub use unlock::{CliffView, LinearView, ListedUnlockView, UnlockView};

/// The status of the daemon and the source.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    pub at: Timestamp,
    pub version: &'static str,
    /// Whether the source responds. Null if it was never polled.
    pub source_up: Option<bool>,
    pub source: SourceState,
    /// Summaries of the open incidents of the source, receivers, and the daemon.
    pub incidents: Vec<String>,
    /// The endpoints that were polled.
    pub endpoints: Vec<EndpointView>,
    pub credits: CreditView,
    /// Statistics about polls of schedules. Only the `status` command computes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<ReadsView>,
    /// The number of feeds with a held response, in which most of a token's records are missing.
    pub removals_held: u64,
    /// The number of missing records whose removal is not confirmed yet.
    pub removals_awaiting_proof: u64,
    pub feeds_failing: u64,
    pub tokens: u64,
    /// The number of tokens in the token list.
    pub tokens_listed: u64,
    pub records: BTreeMap<&'static str, u64>,
    pub alerts: BTreeMap<&'static str, u64>,
    /// One row for each receiver of the config, and for each removed receiver with pending messages.
    pub outbox: Vec<OutboxView>,
    /// Active and pending silences.
    pub silences: Vec<SilenceView>,
    /// The number of acknowledged alerts.
    pub acknowledged: usize,
    pub digests: Vec<DigestView>,
    pub database: DatabaseView,
    pub rules: RulesView,
    /// The state of the daemon. Null if a command reads the database without it.
    pub daemon: Option<DaemonView>,
}

/// The polls of one endpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointView {
    pub endpoint: Endpoint,
    /// The time of the last complete, valid response.
    pub last_success: Option<Timestamp>,
    pub age_seconds: Option<i64>,
    pub last_try: Option<Timestamp>,
    /// The number of feeds that were polled at least once.
    pub feeds: u64,
    /// The number of these feeds whose last poll failed.
    pub failing: u64,
    pub failing_since: Option<Timestamp>,
    /// The last error message, if a feed is failing.
    pub last_error: Option<String>,
    /// The number of harmless defects in responses of the last day: missing or unreadable parts, and duplicate rows.
    pub parse_warnings: u64,
    /// The number of polls in the current credit period.
    pub polls: u64,
    /// The credits spent on these polls.
    pub credits: u64,
    /// Corrections found since the first poll, by the list that had reported them.
    pub found: FoundView,
}

/// Corrections by the list that had reported them, and reports without a correction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundView {
    /// Corrections reported by the mark of the token list.
    pub by_mark: u32,
    /// Corrections reported by `upcoming` only.
    pub by_upcoming: u32,
    /// Corrections that no list reported.
    #[serde(rename = "untold")]
    pub unreported: u32,
    /// Polls that found no correction although a list had reported one.
    #[serde(rename = "toldForNothing")]
    pub idle_reports: u32,
}

/// Statistics about polls of schedules in the credit period, and the resulting delay until a correction is noticed. The fields have
/// the same names as in `plan`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadsView {
    /// The start of the credit period, or of the poll log if that is later.
    pub since: Timestamp,
    /// The mean delay in hours until a correction is noticed. Null if no schedule was polled.
    pub noticed_hours_mean: Option<f64>,
    /// The longest interval in hours between two polls of one schedule: the worst-case delay if no list reports the correction.
    pub noticed_hours_worst: Option<f64>,
    /// The tokens with the most polls of their schedule.
    pub most_read: Vec<TokenPolls>,
    /// The tokens with the fewest polls of their schedule.
    pub least_read: Vec<TokenPolls>,
    /// Null if the source shows all days of every schedule, as far as known.
    pub shown_days: Option<ShownDaysView>,
}

/// Schedules of which the source shows only some days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownDaysView {
    /// The number of these schedules.
    pub schedules: usize,
    /// The number of events before the shown days, which are not compared any more.
    pub older_kept: u32,
    /// The number of events that came into view, and so were not reported as added.
    pub came_into_view: u32,
}

impl ShownDaysView {
    /// Sums the windows of all schedules. `None` without any.
    #[must_use]
    pub fn of(shown: impl Iterator<Item = ShownDays>) -> Option<Self> {
        let sum = shown.fold(Self::default(), |sum, one| Self {
            schedules: sum.schedules + 1,
            older_kept: sum.older_kept.saturating_add(one.older_kept),
            came_into_view: sum.came_into_view.saturating_add(one.came_into_view),
        });
        (sum.schedules > 0).then_some(sum)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreditView {
    /// The credits used in the period, as reported by the API.
    pub used: Option<u64>,
    /// The limit of the period, as reported by the API.
    pub limit: Option<u64>,
    /// The end of the period.
    pub reset_at: Option<Timestamp>,
    /// The credits that this database recorded as spent in the period.
    pub spent: u64,
    /// The credits spent today (UTC).
    pub spent_today: u64,
    /// Whether the API reported that no credits are left.
    pub exhausted: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseView {
    pub path: String,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RulesView {
    /// The number of active rules.
    pub count: Option<u32>,
    /// The errors in the rule files, if any. The previous rules stay active.
    pub problem: Option<String>,
    /// Whether no rule is active, although the config names rule files.
    #[serde(skip)]
    pub is_missing: bool,
}

/// The state of the daemon.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonView {
    pub ready: bool,
    pub reason: Option<String>,
    pub started_at: Timestamp,
    pub last_cycle_at: Option<Timestamp>,
    /// The report of that cycle in one line.
    pub last_cycle: Option<String>,
    pub last_reload_at: Option<Timestamp>,
    /// The role among several instances on one database. `None` if there is only one instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "standing")]
    pub standby_reason: Option<String>,
}

/// The inputs of a [`StatusView`].
#[derive(Clone, Debug)]
pub struct StatusParts<'a> {
    pub now: Timestamp,
    pub counts: &'a StoreCounts,
    pub endpoints: &'a [EndpointStat],
    pub credit: &'a CreditState,
    pub reads: Option<ReadsView>,
    /// Open alerts about the source, receivers, and the daemon.
    pub incidents: &'a [Alert],
    pub receivers: Vec<String>,
    pub notifications: &'a NotificationOverview,
    pub digests: &'a [DigestPlan],
    /// The mail recipients of the digests.
    pub subscribers: &'a [Subscriber],
    pub database: PathBuf,
    pub rules: RulesView,
    pub daemon: Option<DaemonView>,
}

impl StatusView {
    pub fn of(parts: StatusParts<'_>) -> Self {
        let StatusParts { now, counts, credit, .. } = parts;
        let requested: Vec<&EndpointStat> = parts.endpoints.iter().filter(|stat| stat.last_try.is_some()).collect();
        // The source counts as up if only single feeds fail.
        let is_down = parts.incidents.iter().any(|alert| self_monitor::is_source_down(&alert.subject));
        let notifications = parts.notifications;
        Self {
            at: now,
            version: env!("CARGO_PKG_VERSION"),
            source_up: (!requested.is_empty()).then_some(!is_down),
            source: SourceState::of(parts.incidents, !requested.is_empty()),
            incidents: parts
                .incidents
                .iter()
                .filter(|alert| alert.state == AlertState::Firing)
                .map(|alert| alert.annotations.get("summary").cloned().unwrap_or_else(|| alert.subject.clone()))
                .collect(),
            endpoints: requested.into_iter().map(|stat| EndpointView::of(stat, now)).collect(),
            credits: CreditView {
                used: credit.used,
                limit: credit.limit,
                reset_at: credit.reset_at,
                spent: credit.own(),
                spent_today: if credit.day.is_some_and(|day| day.date_naive() == now.date_naive()) {
                    credit.spent_today
                } else {
                    0
                },
                exhausted: credit.exhausted,
            },
            reads: parts.reads,
            removals_held: counts.removals_held,
            removals_awaiting_proof: counts.removals_awaiting_proof,
            feeds_failing: counts.feeds_failing,
            tokens: counts.tokens,
            tokens_listed: counts.tokens_listed,
            records: counts.records.iter().map(|(resource, count)| (resource.as_str(), *count)).collect(),
            alerts: counts.alerts.iter().map(|(state, count)| (state.as_str(), *count)).collect(),
            outbox: OutboxView::all(&parts.receivers, &counts.outbox, notifications, now),
            silences: notifications.silences.iter().map(|silence| SilenceView::of(silence.clone(), now)).collect(),
            acknowledged: notifications.acks.len(),
            digests: DigestView::all(parts.digests, parts.subscribers, notifications, now),
            database: DatabaseView { path: parts.database.display().to_string(), bytes: counts.database_bytes },
            rules: parts.rules,
            daemon: parts.daemon,
        }
    }
}

impl EndpointView {
    fn of(stat: &EndpointStat, now: Timestamp) -> Self {
        Self {
            endpoint: stat.endpoint,
            last_success: stat.last_success,
            age_seconds: stat.last_success.map(|at| (now - at).num_seconds().max(0)),
            last_try: stat.last_try,
            feeds: stat.feeds,
            failing: stat.failing,
            failing_since: stat.failing_since,
            last_error: stat.last_error.as_ref().filter(|_| stat.failing > 0).map(|(_, message)| message.clone()),
            parse_warnings: stat.parse_warnings,
            polls: stat.polls,
            credits: stat.credits,
            found: FoundView {
                by_mark: stat.findings.by_mark,
                by_upcoming: stat.findings.by_upcoming.saturating_add(stat.findings.undecided_upcoming),
                unreported: stat.findings.unreported.saturating_add(stat.findings.undecided),
                idle_reports: stat.findings.idle_marks.saturating_add(stat.findings.idle_upcoming),
            },
        }
    }
}

#[cfg(test)]
mod tests;

//! What the daemon shows, as plain values: made from rows of the store, shown by the commands, `/api/…` and the status page.
//!
//! The names of the fields are those of the JSON. Nothing here reads a clock or the store.

mod alert;
mod past_polls;
mod receiver;
mod unlock;
mod words;

use std::{collections::BTreeMap, path::PathBuf};

use serde::Serialize;

pub use alert::AlertView;
use engine::{
    digest_schedule::DigestPlan,
    plan::month::looks::TokenLooks,
    self_monitor::{self, SourceState},
};
use model::{Alert, AlertState, CreditState, Endpoint, EndpointStat, NotificationOverview, SilenceView, StoreCounts, Timestamp};
use notify::unsubscribe::Subscriber;
pub use past_polls::PastPollsView;
pub use receiver::{DigestView, OutboxView, StoppedView};
pub use unlock::UnlockView;
pub use words::{age, ahead, bytes, change_line};

/// How everything stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    /// The time at which it was asked.
    pub at: Timestamp,
    /// Version of the program that was asked.
    pub version: &'static str,
    /// Whether the source answers; null where it was never asked.
    pub source_up: Option<bool>,
    /// How it stands, in a word.
    pub source: SourceState,
    /// What is wrong with the source, a receiver or this program.
    pub troubles: Vec<String>,
    /// Endpoints that were asked, in their order.
    pub endpoints: Vec<EndpointView>,
    pub credits: CreditView,
    /// How schedules were read; `status` alone reckons it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<ReadsView>,
    /// Feeds whose answer is held because most of a token's records vanished at once.
    pub removals_held: u64,
    /// Records that complete answers left out, not often enough yet to be gone.
    pub removals_awaiting_proof: u64,
    pub feeds_failing: u64,
    pub tokens: u64,
    /// Tokens that the list names.
    pub tokens_listed: u64,
    pub records: BTreeMap<&'static str, u64>,
    pub alerts: BTreeMap<&'static str, u64>,
    /// The outbox of each receiver of the config, and of those that left it with messages waiting.
    pub outbox: Vec<OutboxView>,
    /// Silences that hold or will.
    pub silences: Vec<SilenceView>,
    /// Alerts that somebody acknowledged.
    pub acknowledged: usize,
    pub digests: Vec<DigestView>,
    pub database: DatabaseView,
    pub rules: RulesView,
    /// What the daemon says of itself; null when a command looks into the database beside it.
    pub daemon: Option<DaemonView>,
}

/// How one endpoint fares.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointView {
    /// Which.
    pub endpoint: Endpoint,
    /// Last complete, valid answer.
    pub last_success: Option<Timestamp>,
    pub age_seconds: Option<i64>,
    pub last_try: Option<Timestamp>,
    /// Feeds that were ever tried.
    pub feeds: u64,
    /// Of these, those that fail.
    pub failing: u64,
    pub failing_since: Option<Timestamp>,
    /// What failed last, where something fails now.
    pub last_error: Option<String>,
    /// What was odd in its answers of the last day, and harmless: parts that were missing or unreadable, rows that came twice.
    pub oddities: u64,
    /// Looks since the quota's period began.
    pub looks: u64,
    /// Credits of these, beside what `plan` grants to a month.
    pub credits: u64,
    /// Corrections that its looks found since it was first read, by who had told of them.
    pub found: FoundView,
}

/// Corrections that were found, and tellings that brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundView {
    /// Told by the mark of the token list.
    pub by_mark: u32,
    /// Told by `upcoming` alone.
    pub by_upcoming: u32,
    /// Told by nothing: found by looking.
    pub untold: u32,
    /// Looks that found nothing although something had told.
    pub told_for_nothing: u32,
}

/// How schedules were read in the quota's period, and how late a correction of one was noticed by that. The names are those of `plan`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadsView {
    /// When the period began, or where the poll log does if that is later.
    pub since: Timestamp,
    /// Hours until a correction is noticed that comes at any time, on average; null where no schedule was read.
    pub noticed_hours_mean: Option<f64>,
    /// The longest time between two reads of one schedule, hours: how late it was where nothing told.
    pub noticed_hours_worst: Option<f64>,
    /// The tokens whose schedules were read most, with how often.
    pub most_read: Vec<TokenLooks>,
    /// Those that were read least.
    pub least_read: Vec<TokenLooks>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreditView {
    /// Used in the period, as the API reports.
    pub used: Option<u64>,
    /// Allowance, as the API reports.
    pub limit: Option<u64>,
    /// When the period ends.
    pub reset_at: Option<Timestamp>,
    /// What this program spent in the period.
    pub spent: u64,
    /// What this program spent today (UTC).
    pub spent_today: u64,
    /// Whether the API said that nothing is left.
    pub exhausted: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseView {
    pub path: String,
    /// Its size, bytes.
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RulesView {
    /// Rules that are at work.
    pub count: Option<u32>,
    /// What is wrong with the files; the rules before them are at work.
    pub problem: Option<String>,
}

/// What the daemon says of itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonView {
    /// Whether it works.
    pub ready: bool,
    pub reason: Option<String>,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// When its last cycle ended.
    pub last_cycle_at: Option<Timestamp>,
    /// What that cycle did, in a line.
    pub last_cycle: Option<String>,
    /// When the files were last reloaded.
    pub last_reload_at: Option<Timestamp>,
    /// Whether it is the active one of several instances on one database; none where it is the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<String>,
}

/// What a [`StatusView`] is made from.
#[derive(Clone, Debug)]
pub struct StatusParts<'a> {
    /// The time at which it is asked.
    pub now: Timestamp,
    pub counts: &'a StoreCounts,
    pub endpoints: &'a [EndpointStat],
    pub credit: &'a CreditState,
    pub reads: Option<ReadsView>,
    /// Open alerts about the source, a receiver or this program.
    pub incidents: &'a [Alert],
    pub receivers: Vec<String>,
    pub notifications: &'a NotificationOverview,
    pub digests: &'a [DigestPlan],
    /// Who gets them by mail.
    pub subscribers: &'a [Subscriber],
    pub database: PathBuf,
    pub rules: RulesView,
    pub daemon: Option<DaemonView>,
}

impl StatusView {
    /// The view of these parts.
    pub fn of(parts: StatusParts<'_>) -> Self {
        let StatusParts { now, counts, credit, .. } = parts;
        let asked: Vec<&EndpointStat> = parts.endpoints.iter().filter(|stat| stat.last_try.is_some()).collect();
        // Alerts about single feeds leave the source up.
        let is_down = parts.incidents.iter().any(|alert| self_monitor::is_source_down(&alert.subject));
        let notifications = parts.notifications;
        Self {
            at: now,
            version: env!("CARGO_PKG_VERSION"),
            source_up: (!asked.is_empty()).then_some(!is_down),
            source: SourceState::of(parts.incidents, !asked.is_empty()),
            troubles: parts
                .incidents
                .iter()
                .filter(|alert| alert.state == AlertState::Firing)
                .map(|alert| alert.annotations.get("summary").cloned().unwrap_or_else(|| alert.subject.clone()))
                .collect(),
            endpoints: asked.into_iter().map(|stat| EndpointView::of(stat, now)).collect(),
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
            oddities: stat.oddities,
            looks: stat.looks,
            credits: stat.credits,
            found: FoundView {
                by_mark: stat.findings.by_mark,
                by_upcoming: stat.findings.by_upcoming.saturating_add(stat.findings.undecided_upcoming),
                untold: stat.findings.untold.saturating_add(stat.findings.undecided),
                told_for_nothing: stat.findings.idle_marks.saturating_add(stat.findings.idle_upcoming),
            },
        }
    }
}

#[cfg(test)]
mod tests;

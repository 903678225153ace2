//! `status`: shows the status from the database, so it works with and without a running daemon.

use std::fmt::Write as _;

use super::invocation::watch_of;
use super::plan::tokens_read;
use super::print::{self, Cell, Listing};
use super::{Exit, Invocation, OutputFormat, UsageError, rule_check, width};
use daemon::cycle::endpoint_feeds;
use daemon::database_url::database_of;
use daemon::view::{ReadsView, RulesView, ShownDaysView, StatusParts, StatusView};
use engine::digest_schedule;
use engine::plan::month::polls::PollSummary;
use model::config::Config;
use model::{Endpoint, EndpointStat, ShownDays, SilenceState, SilenceView, Timestamp, digest, phrase, text::harmless};
use notify::unsubscribe;
use rules::RuleSet;
use store::{Access, Store};

pub(super) async fn run(invocation: &Invocation) -> anyhow::Result<Exit> {
    if invocation.format == OutputFormat::Csv {
        return Err(UsageError("status does not support --format csv: use table or json".to_owned()).into());
    }
    let (config, loaded) = invocation.load_sections(&["store", "watch", "source", "schedule", "budget", "rules"])?;
    let store = invocation.open(&config, Access::Read).await?;
    let counts = store.counts().await?;
    let endpoints = store.poll_stats().await?;
    let credit = store.credit().await?;
    let incidents = store.source_alerts().await?;
    let now = invocation.clock.now();
    let notifications = store.notification_overview(now, now - digest::SUPPRESSED_WINDOW).await?;
    let plans = digest_schedule::plans(&config.receivers, config.source.stale_price).map_err(anyhow::Error::msg)?;
    let checked = rule_check::check_rules(&config, &loaded, invocation);
    let reads = reads(&store, &config, &checked.set, &endpoints, now).await?;
    let store_name = database_of(&config.store)?.name().to_owned();
    let status = StatusView::of(StatusParts {
        now,
        counts: &counts,
        endpoints: &endpoints,
        credit: &credit,
        reads,
        incidents: &incidents,
        receivers: config.receivers.iter().map(|receiver| receiver.name.clone()).collect(),
        notifications: &notifications,
        digests: &plans,
        subscribers: &unsubscribe::subscribers(&config.receivers),
        database: store_name,
        rules: rules(&checked),
        daemon: None,
    });
    let page = if invocation.format == OutputFormat::Json { print::json(&status)? } else { text(&status, width()) };
    print::out(&page)?;
    Ok(Exit::Done)
}

/// Returns how schedules were polled in the period. `None` if the start of the period is unknown.
async fn reads(
    store: &Store,
    config: &Config,
    rules: &RuleSet,
    endpoints: &[EndpointStat],
    now: Timestamp,
) -> anyhow::Result<Option<ReadsView>> {
    let Some(period) = store.reads_of_period(Endpoint::UnlockEvents).await? else { return Ok(None) };
    let watch = watch_of(&config.watch).map_err(anyhow::Error::msg)?;
    let mut feeds = Vec::new();
    for endpoint in [Endpoint::TokenList, Endpoint::UnlockEvents] {
        feeds.push(endpoint_feeds(Some(store), (rules, &config.mirror, &watch), endpoint, now).await?);
    }
    let polls = |endpoint| endpoints.iter().find(|stat| stat.endpoint == endpoint).map_or(0, |stat| stat.polls);
    let lists = [polls(Endpoint::TokenList), polls(Endpoint::Upcoming)];
    let of = PollSummary::from_polls(&feeds, period.reads, lists, config.budget.near.delta(), (period.since, now));
    let shown = store
        .fold_schedule_feeds(|all: &mut Vec<ShownDays>, feed| all.extend(feed.header.as_ref().and_then(ShownDays::of_header)))
        .await?;
    Ok(Some(ReadsView {
        shown_days: ShownDaysView::of(shown.into_iter()),
        since: period.since,
        noticed_hours_mean: of.noticed_hours.map(|(mean, _)| mean),
        noticed_hours_worst: of.noticed_hours.map(|(_, worst)| worst),
        most_read: of.most_read,
        least_read: of.least_read,
    }))
}

fn rules(checked: &rule_check::CheckedRules) -> RulesView {
    let ordered = model::diagnostic::in_order(&checked.diagnostics, &checked.sources);
    let problem = model::diagnostic::summary(&ordered);
    RulesView {
        count: Some(checked.count),
        problem: (!problem.is_empty()).then(|| format!("{problem} in the rule files; run `cliffwatch check` for details")),
        ..RulesView::default()
    }
}

/// Formats silences: `2 active, the last until 2026-03-09 14:00 UTC, 1 upcoming`.
fn silences_text(silences: &[SilenceView]) -> String {
    let (active, pending): (Vec<_>, Vec<_>) = silences.iter().partition(|view| view.state == SilenceState::Active);
    let Some(end) = active.iter().map(|view| view.silence.ends_at).max() else {
        return if pending.is_empty() { "none".to_owned() } else { format!("none active, {} upcoming", pending.len()) };
    };
    let coming = if pending.is_empty() { String::new() } else { format!(", {} upcoming", pending.len()) };
    format!("{} active, the last until {}{coming}", active.len(), end.format("%Y-%m-%d %H:%M UTC"))
}

/// Formats the status as text.
fn text(status: &StatusView, width: Option<u16>) -> String {
    let mut page = String::new();
    for (name, line) in lines(status) {
        let _ = writeln!(page, "{name:<10}{}", harmless(&line));
    }
    if let Some(reads) = &status.reads {
        page.push_str(&polls_text(reads));
    }
    for incident in &status.incidents {
        let _ = writeln!(page, "{:<10}{}", "incident", harmless(incident));
    }
    if !status.endpoints.is_empty() {
        let _ = write!(page, "\n{}", endpoints_table(status, width));
    }
    if !status.outbox.is_empty() {
        let _ = write!(page, "\n{}", receivers_table(status, width));
    }
    if !status.digests.is_empty() {
        let _ = write!(page, "\n{}", super::digest::listing(&status.digests).table(width));
    }
    page
}

/// Describes the delay until corrections were found, and the tokens that were polled most and least.
fn polls_text(reads: &ReadsView) -> String {
    let mut lines = Vec::new();
    if let (Some(mean), Some(worst)) = (reads.noticed_hours_mean, reads.noticed_hours_worst) {
        let (mean, worst) = (phrase::duration_of_days(mean / 24.0), phrase::duration_of_days(worst / 24.0));
        let since = phrase::day(reads.since);
        lines.push((
            "delay",
            format!("schedule corrections found after {mean} on average, and after {worst} at most, since {since}"),
        ));
    }
    if !reads.most_read.is_empty() {
        lines.push(("polls", format!("most polled: {}", tokens_read(&reads.most_read))));
        lines.push(("", format!("least polled: {}", tokens_read(&reads.least_read))));
    }
    if let Some(shown) = &reads.shown_days {
        let (kept, entered) =
            (counted(shown.older_kept.into(), "older unlock"), counted(shown.came_into_view.into(), "later unlock"));
        let of = counted(shown.schedules as u64, "schedule");
        lines.push(("shown", format!("only some days of {of}: {kept} kept, {entered} came into view without a report")));
    }
    lines.iter().map(|(name, line)| format!("{name:<10}{}\n", harmless(line))).collect()
}

/// Returns the lines of the status with their names.
fn lines(status: &StatusView) -> [(&'static str, String); 10] {
    let source = match status.source_up {
        None => format!("{}; run `cliffwatch run` or `cliffwatch poll`", status.source.as_str()),
        Some(true) => status.source.as_str().to_owned(),
        Some(false) => format!("DOWN: {}", status.source.as_str()),
    };
    let credits = &status.credits;
    let used = match (credits.used, credits.limit) {
        (Some(used), Some(limit)) => format!("{used} of {limit} used"),
        _ => format!("{} used by Cliffwatch (no usage reported by the API yet)", credits.spent),
    };
    let reset = credits.reset_at.map(|at| format!(", until {}", at.format("%Y-%m-%d %H:%M UTC"))).unwrap_or_default();
    let spent = if credits.exhausted { ", USED UP" } else { "" };
    let count = |state: &str| status.alerts.get(state).copied().unwrap_or_default();
    let records = status
        .records
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(resource, count)| format!("{count} {resource}"))
        .collect::<Vec<_>>();
    [
        ("source", source),
        ("credits", format!("{used}{spent}{reset}; {} today", credits.spent_today)),
        ("changes", corrections_text(status)),
        ("tokens", format!("{} known, {} listed", status.tokens, status.tokens_listed)),
        ("records", if records.is_empty() { "none".to_owned() } else { records.join(", ") }),
        (
            "alerts",
            format!(
                "{} firing, {} pending, {} resolved, {}; {} acknowledged",
                count("firing"),
                count("pending"),
                count("resolved"),
                counted(count("event"), "event"),
                status.acknowledged
            ),
        ),
        ("silences", silences_text(&status.silences)),
        (
            "held",
            format!(
                "{} held, {} awaiting proof",
                counted(status.removals_held, "response"),
                counted(status.removals_awaiting_proof, "removal")
            ),
        ),
        (
            "rules",
            match (&status.rules.count, &status.rules.problem) {
                (_, Some(problem)) => problem.clone(),
                (Some(count), None) => format!("{count}"),
                (None, None) => "–".to_owned(),
            },
        ),
        ("database", format!("{}, {}", status.database.path, phrase::bytes(status.database.bytes))),
    ]
}

/// Describes the corrections that polls of schedules found, and which lists reported them.
fn corrections_text(status: &StatusView) -> String {
    let Some(of) = status.endpoints.iter().find(|row| row.endpoint == Endpoint::UnlockEvents).map(|row| row.found) else {
        return "no schedule was polled yet".to_owned();
    };
    let count = of.by_mark + of.by_upcoming + of.unreported;
    format!(
        "{}: {} reported by the token list, {} by upcoming, {} by neither; {} reports without a correction",
        if count == 1 { "1 schedule correction".to_owned() } else { format!("{count} schedule corrections") },
        of.by_mark,
        of.by_upcoming,
        of.unreported,
        of.idle_reports
    )
}

fn counted(count: u64, noun: &str) -> String {
    phrase::count(count, noun)
}

fn endpoints_table(status: &StatusView, width: Option<u16>) -> String {
    let listing = Listing::of(&status.endpoints)
        .left_column("Endpoint", "", |row| Cell::text(row.endpoint))
        .left_column("Last success", "", |row| Cell::time(row.last_success))
        .right_column("Age", "", |row| Cell::text(row.age_seconds.map_or_else(|| "never".to_owned(), phrase::duration_secs)))
        .right_column("Feeds", "", |row| Cell::text(row.feeds))
        .right_column("Failing", "", |row| Cell::text(row.failing))
        .right_column("Warnings", "", |row| Cell::text(row.parse_warnings))
        .right_column("Polls", "", |row| Cell::text(row.polls))
        .right_column("Credits", "", |row| Cell::text(row.credits))
        .left_column("Error", "", |row| Cell::text(row.last_error.as_deref().unwrap_or_default()));
    listing.table(width)
}

/// Formats a table of the deliveries of each receiver: pending, retrying, dead, delivered, and suppressed.
fn receivers_table(status: &StatusView, width: Option<u16>) -> String {
    let listing = Listing::of(&status.outbox)
        .left_column("Receiver", "", |row| Cell::text(&row.receiver))
        .right_column("Pending", "", |row| Cell::text(row.pending))
        .right_column("Retrying", "", |row| Cell::text(row.retrying))
        .right_column("Oldest", "", |row| Cell::text(row.oldest_seconds.map(phrase::duration_secs).unwrap_or_default()))
        .right_column("Dead", "", |row| Cell::text(row.dead))
        .right_column("Delivered", "", |row| Cell::text(row.delivered))
        .left_column("Suppressed", "", |row| Cell::text(row.undelivered_text()));
    listing.table(width)
}

#[cfg(test)]
mod tests;

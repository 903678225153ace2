//! `status`: how everything stands, from the database alone, so that it works beside a daemon and without one.

use std::fmt::Write as _;

use super::invocation::watch_of;
use super::plan::{hours_in_words, tokens_read};
use super::print::{self, Cell, Listing};
use super::{Exit, Invocation, OutputFormat, UsageError, rule_check, width};
use daemon::cycle::endpoint_feeds;
use daemon::place::place_of;
use daemon::ui::view::{ReadsView, RulesView, StatusParts, StatusView, age, bytes};
use engine::digest_schedule;
use engine::plan::month::looks::LookSummary;
use model::config::Config;
use model::{Endpoint, EndpointStat, SilenceState, SilenceView, Timestamp, digest, format, text::harmless};
use notify::unsubscribe;
use rules::RuleSet;
use store::{Access, Store};

pub(super) async fn run(invocation: &Invocation) -> anyhow::Result<Exit> {
    if invocation.format == OutputFormat::Csv {
        return Err(UsageError("`status` is no list: use --format table or json".to_owned()).into());
    }
    let (config, loaded) = invocation.load()?;
    let store = invocation.open(&config, Access::Read).await?;
    let counts = store.counts().await?;
    let endpoints = store.poll_stats().await?;
    let credit = store.credit().await?;
    let incidents = store.source_alerts().await?;
    let now = invocation.clock.now();
    let notifications = store.notification_overview(now, now - digest::DAY).await?;
    let plans = digest_schedule::plans(&config.receivers).map_err(anyhow::Error::msg)?;
    let checked = rule_check::check_rules(&config, &loaded, invocation);
    let reads = reads(&store, &config, &checked.set, &endpoints, now).await?;
    let store_name = place_of(&config.store)?.name().to_owned();
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

/// How schedules were read in the period; none where it is not known when that began.
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
    let looks = |endpoint| endpoints.iter().find(|stat| stat.endpoint == endpoint).map_or(0, |stat| stat.looks);
    let lists = [looks(Endpoint::TokenList), looks(Endpoint::Upcoming)];
    let of = LookSummary::of_reads(&feeds, period.reads, lists, config.budget.near.delta(), (period.since, now));
    Ok(Some(ReadsView {
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
        problem: (!problem.is_empty()).then(|| format!("{problem} in the rule files: `cliffwatch check` shows them")),
    }
}

/// `2 hold (until 2026-03-09 14:00 UTC at the latest), 1 to come`.
fn silences(silences: &[SilenceView]) -> String {
    let (active, pending): (Vec<_>, Vec<_>) = silences.iter().partition(|view| view.state == SilenceState::Active);
    let Some(end) = active.iter().map(|view| view.silence.ends_at).max() else {
        return if pending.is_empty() { "none".to_owned() } else { format!("none holds, {} to come", pending.len()) };
    };
    let verb = if active.len() == 1 { "holds" } else { "hold" };
    let coming = if pending.is_empty() { String::new() } else { format!(", {} to come", pending.len()) };
    format!("{} {verb}, the last until {}{coming}", active.len(), end.format("%Y-%m-%d %H:%M UTC"))
}

/// The status for people.
fn text(status: &StatusView, width: Option<u16>) -> String {
    let mut page = String::new();
    for (name, line) in lines(status) {
        let _ = writeln!(page, "{name:<10}{}", harmless(&line));
    }
    if let Some(reads) = &status.reads {
        page.push_str(&reads_in_words(reads));
    }
    for incident in &status.troubles {
        let _ = writeln!(page, "{:<10}{}", "trouble", harmless(incident));
    }
    if !status.endpoints.is_empty() {
        let _ = write!(page, "\n{}", endpoints(status, width));
    }
    if !status.outbox.is_empty() {
        let _ = write!(page, "\n{}", receivers(status, width));
    }
    if !status.digests.is_empty() {
        let _ = write!(page, "\n{}", super::digest::listing(&status.digests).table(width));
    }
    page
}

/// How late a correction was noticed, and whose schedule was read how often.
fn reads_in_words(reads: &ReadsView) -> String {
    let mut lines = Vec::new();
    if let (Some(mean), Some(worst)) = (reads.noticed_hours_mean, reads.noticed_hours_worst) {
        let (mean, worst) = (hours_in_words(mean), hours_in_words(worst));
        let since = format::day(reads.since);
        lines.push((
            "noticed",
            format!("a correction of a schedule after {mean} on average, after {worst} at worst, since {since}"),
        ));
    }
    if !reads.most_read.is_empty() {
        lines.push(("reads", format!("most: {}", tokens_read(&reads.most_read))));
        lines.push(("", format!("least: {}", tokens_read(&reads.least_read))));
    }
    lines.iter().map(|(name, line)| format!("{name:<10}{}\n", harmless(line))).collect()
}

/// What stands in one line each, by name.
fn lines(status: &StatusView) -> [(&'static str, String); 10] {
    let source = match status.source_up {
        None => "not asked yet: run `cliffwatch run` or `cliffwatch poll`".to_owned(),
        Some(true) => status.source.as_str().to_owned(),
        Some(false) => format!("DOWN: {}", status.source.as_str()),
    };
    let credits = &status.credits;
    let used = match (credits.used, credits.limit) {
        (Some(used), Some(limit)) => format!("{used} of {limit} used"),
        _ => format!("{} spent by this program (the API reported none yet)", credits.spent),
    };
    let reset = credits.reset_at.map(|at| format!(", until {}", at.format("%Y-%m-%d %H:%M UTC"))).unwrap_or_default();
    let spent = if credits.exhausted { ", SPENT" } else { "" };
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
        ("found", found(status)),
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
        ("silences", silences(&status.silences)),
        (
            "held",
            format!(
                "{} held, {} awaiting proof",
                counted(status.removals_held, "answer"),
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
        ("database", format!("{}, {}", status.database.path, bytes(status.database.bytes))),
    ]
}

/// What looking at schedules found, and who had told of it.
fn found(status: &StatusView) -> String {
    let Some(of) = status.endpoints.iter().find(|row| row.endpoint == Endpoint::UnlockEvents).map(|row| row.found) else {
        return "no schedule was looked at yet".to_owned();
    };
    let count = of.by_mark + of.by_upcoming + of.untold;
    format!(
        "{}: {} told by the token list, {} by upcoming, {} by nothing; {} told for nothing",
        if count == 1 { "1 correction of a schedule".to_owned() } else { format!("{count} corrections of schedules") },
        of.by_mark,
        of.by_upcoming,
        of.untold,
        of.told_for_nothing
    )
}

fn counted(count: u64, noun: &str) -> String {
    format::count(usize::try_from(count).unwrap_or(usize::MAX), noun)
}

fn endpoints(status: &StatusView, width: Option<u16>) -> String {
    let listing = Listing::of(&status.endpoints)
        .words("Endpoint", "", |row| Cell::text(row.endpoint))
        .words("Last success", "", |row| Cell::time(row.last_success))
        .numbers("Age", "", |row| Cell::text(row.age_seconds.map_or_else(|| "never".to_owned(), age)))
        .numbers("Feeds", "", |row| Cell::text(row.feeds))
        .numbers("Failing", "", |row| Cell::text(row.failing))
        .numbers("Odd", "", |row| Cell::text(row.oddities))
        .numbers("Looks", "", |row| Cell::text(row.looks))
        .numbers("Credits", "", |row| Cell::text(row.credits))
        .words("Error", "", |row| Cell::text(row.last_error.as_deref().unwrap_or_default()));
    listing.table(width)
}

fn receivers(status: &StatusView, width: Option<u16>) -> String {
    let listing = Listing::of(&status.outbox)
        .words("Receiver", "", |row| Cell::text(&row.receiver))
        .numbers("Waiting", "", |row| Cell::text(row.pending))
        .numbers("Retrying", "", |row| Cell::text(row.retrying))
        .numbers("Oldest", "", |row| Cell::text(row.oldest_seconds.map(age).unwrap_or_default()))
        .numbers("Dead", "", |row| Cell::text(row.dead))
        .numbers("Delivered", "", |row| Cell::text(row.delivered))
        .words("Held back", "", |row| Cell::text(row.held_words()));
    listing.table(width)
}

#[cfg(test)]
mod tests;

//! `status`: how everything stands, from the database alone, so that it works beside a daemon and without one.

use std::fmt::Write as _;

use super::{
    Context, Exit, Format, UsageError, engine,
    print::{self, Cell, Column},
    width,
};
use crate::{
    diagnostic::harmless,
    store::Access,
    ui::view::{RulesView, StatusParts, StatusView, age, bytes},
};

pub(super) async fn run(context: &Context) -> anyhow::Result<Exit> {
    if context.format == Format::Csv {
        return Err(UsageError("`status` is no list: use --format table or json".to_owned()).into());
    }
    let (config, loaded) = context.load()?;
    let store = context.open(&config, Access::Read).await?;
    let counts = store.counts().await?;
    let endpoints = store.poll_stats().await?;
    let credit = store.credit().await?;
    let troubles = store.source_alerts().await?;
    let status = StatusView::of(StatusParts {
        now: context.clock.now(),
        counts: &counts,
        endpoints: &endpoints,
        credit: &credit,
        troubles: &troubles,
        receivers: config.receivers.iter().map(|receiver| receiver.name.clone()).collect(),
        database: config.store.path.clone(),
        rules: rules(&engine::check_rules(&config, &loaded, context)),
        daemon: None,
    });
    let page = if context.format == Format::Json { print::json(&status)? } else { text(&status, width()) };
    print::out(&page)?;
    Ok(Exit::Done)
}

fn rules(checked: &engine::CheckedRules) -> RulesView {
    let ordered = crate::diagnostic::in_order(&checked.diagnostics, &checked.sources);
    let problem = crate::diagnostic::summary(&ordered);
    RulesView {
        count: Some(checked.count),
        problem: (!problem.is_empty()).then(|| format!("{problem} in the rule files: `cliffwatch check` shows them")),
    }
}

/// The status for people.
fn text(status: &StatusView, width: Option<u16>) -> String {
    let mut page = String::new();
    let source = match status.source_up {
        None => "never asked: run `cliffwatch run` or `cliffwatch poll`",
        Some(true) => "up",
        Some(false) => "DOWN",
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
    let lines = [
        ("source", source.to_owned()),
        ("credits", format!("{used}{spent}{reset}; {} today", credits.spent_today)),
        ("tokens", format!("{} known, {} listed", status.tokens, status.tokens_listed)),
        ("records", if records.is_empty() { "none".to_owned() } else { records.join(", ") }),
        (
            "alerts",
            format!(
                "{} firing, {} pending, {} resolved, {} events",
                count("firing"),
                count("pending"),
                count("resolved"),
                count("event")
            ),
        ),
        ("held", format!("{} answers held, {} removals awaiting proof", status.removals_held, status.removals_awaiting_proof)),
        (
            "rules",
            match (&status.rules.count, &status.rules.problem) {
                (_, Some(problem)) => problem.clone(),
                (Some(count), None) => format!("{count}"),
                (None, None) => "–".to_owned(),
            },
        ),
        ("database", format!("{}, {}", status.database.path, bytes(status.database.bytes))),
    ];
    for (name, line) in lines {
        let _ = writeln!(page, "{name:<10}{}", harmless(&line));
    }
    for trouble in &status.troubles {
        let _ = writeln!(page, "{:<10}{}", "trouble", harmless(trouble));
    }
    if !status.endpoints.is_empty() {
        let columns = [
            Column("Endpoint", "", false),
            Column("Last success", "", false),
            Column("Age", "", true),
            Column("Feeds", "", true),
            Column("Failing", "", true),
            Column("Error", "", false),
        ];
        let rows: Vec<_> = status
            .endpoints
            .iter()
            .map(|endpoint| {
                vec![
                    Cell::text(endpoint.endpoint.as_str()),
                    Cell::time(endpoint.last_success),
                    Cell::text(endpoint.age_seconds.map_or_else(|| "never".to_owned(), age)),
                    Cell::text(endpoint.feeds.to_string()),
                    Cell::text(endpoint.failing.to_string()),
                    Cell::text(endpoint.last_error.clone().unwrap_or_default()),
                ]
            })
            .collect();
        let _ = write!(page, "\n{}", print::table(&columns, &rows, width));
    }
    if !status.outbox.is_empty() {
        let columns = [
            Column("Receiver", "", false),
            Column("Waiting", "", true),
            Column("Retrying", "", true),
            Column("Oldest", "", true),
            Column("Dead", "", true),
            Column("Delivered", "", true),
        ];
        let rows: Vec<_> = status
            .outbox
            .iter()
            .map(|row| {
                vec![
                    Cell::text(&row.receiver),
                    Cell::text(row.pending.to_string()),
                    Cell::text(row.retrying.to_string()),
                    Cell::text(row.oldest_seconds.map(age).unwrap_or_default()),
                    Cell::text(row.dead.to_string()),
                    Cell::text(row.delivered.to_string()),
                ]
            })
            .collect();
        let _ = write!(page, "\n{}", print::table(&columns, &rows, width));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        alert::AlertState,
        store::model::{Counts, CreditState, DeliveryState, EndpointStat, ReceiverCounts},
        supply::{Endpoint, Resource},
        wire,
    };

    #[test]
    fn the_status_tells_source_credits_and_outbox() {
        let time = |text| wire::parse_timestamp(text).unwrap();
        let now = time("2026-03-09T12:00:00Z");
        let stat = EndpointStat {
            endpoint: Endpoint::UnlockEvents,
            feeds: 40,
            failing: 2,
            failing_since: Some(time("2026-03-09T06:00:00Z")),
            last_success: Some(time("2026-03-09T10:30:00Z")),
            last_try: Some(now),
            last_error: Some((now, "HTTP 404 for /v5/unlock/events/x".to_owned())),
        };
        let outbox = ReceiverCounts {
            receiver: "ops".into(),
            states: vec![
                (DeliveryState::Due, 1),
                (DeliveryState::Retrying, 2),
                (DeliveryState::Dead, 1),
                (DeliveryState::Delivered, 7),
            ],
            oldest_pending: Some(time("2026-03-09T11:58:00Z")),
        };
        let counts = Counts {
            tokens: 41,
            tokens_listed: 40,
            records: vec![(Resource::Unlock, 900)],
            alerts: vec![(AlertState::Firing, 3)],
            outbox: vec![outbox],
            database_bytes: 3 << 20,
            ..Counts::default()
        };
        let credit =
            CreditState { used: Some(120), limit: Some(1000), reset_at: Some(time("2026-04-01")), ..CreditState::default() };
        let status = StatusView::of(StatusParts {
            now,
            counts: &counts,
            endpoints: &[stat],
            credit: &credit,
            troubles: &[],
            receivers: vec!["desk".to_owned(), "ops".to_owned()],
            database: "cliffwatch.db".into(),
            rules: RulesView { count: Some(9), problem: None },
            daemon: None,
        });
        insta::assert_snapshot!(text(&status, None));
    }
}

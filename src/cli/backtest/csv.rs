//! Formats a backtest as CSV: a row for each alert in each message, and for each undelivered notification.

use crate::print::{Cell, Listing};
use tools::backtest::{BacktestComparison, BacktestMessage, BacktestNotification, BacktestRun};

struct CsvRow<'a> {
    /// The side of a comparison: `gained`, `lost`, `was`, or `is`. Empty without one.
    side: &'a str,
    /// The message with its number. `None` for an undelivered notification.
    message: Option<(u64, &'a BacktestMessage)>,
    receiver: Option<&'a str>,
    state: &'a str,
    suppressor: Option<&'a str>,
    notification: &'a BacktestNotification,
}

pub(super) fn page(run: &BacktestRun, comparison: Option<&BacktestComparison>) -> String {
    let rows = rows(run, comparison);
    let listing = Listing::of(&rows)
        .left_column("", "side", |row| Cell::text(row.side))
        .left_column("", "at", |row| Cell::time(row.message.map(|(_, message)| message.at)))
        .left_column("", "message", |row| Cell::text(row.message.map(|(number, _)| number.to_string()).unwrap_or_default()))
        .left_column("", "shape", |row| Cell::text(row.message.map(|(_, message)| message.shape.as_str()).unwrap_or_default()))
        .left_column("", "receiver", |row| Cell::maybe(row.receiver))
        .left_column("", "state", |row| Cell::text(row.state))
        .left_column("", "suppressedBy", |row| Cell::maybe(row.suppressor))
        .left_column("", "rule", |row| Cell::text(&row.notification.rule))
        .left_column("", "token", |row| Cell::maybe(row.notification.token.as_deref()))
        .left_column("", "type", |row| Cell::text(row.notification.kind))
        .left_column("", "reason", |row| Cell::text(&row.notification.reason))
        .left_column("", "severity", |row| Cell::maybe(row.notification.labels.get("severity").map(String::as_str)))
        .left_column("", "decidedAt", |row| Cell::time(Some(row.notification.at)))
        .left_column("", "summary", |row| Cell::text(&row.notification.summary));
    listing.csv()
}

fn rows<'a>(run: &'a BacktestRun, comparison: Option<&'a BacktestComparison>) -> Vec<CsvRow<'a>> {
    let mut rows = Vec::new();
    let mut number = 0_u64;
    let mut add = |side: &'a str, message: &'a BacktestMessage| {
        number += 1;
        let parts = [("notified", &message.notified), ("counted", &message.counted), ("merged", &message.merged)];
        for (state, notifications) in parts {
            rows.extend(notifications.iter().map(|notification| CsvRow {
                side,
                message: Some((number, message)),
                receiver: Some(&message.receiver),
                state,
                suppressor: None,
                notification,
            }));
        }
    };
    match comparison {
        None => {
            run.messages.iter().for_each(|message| add("", message));
            rows.extend(run.undelivered.iter().map(|undelivered| CsvRow {
                side: "",
                message: None,
                receiver: undelivered.receiver.as_deref(),
                state: undelivered.state,
                suppressor: undelivered.suppressor.as_deref(),
                notification: &undelivered.notification,
            }));
        }
        Some(BacktestComparison { gained, lost, changed, .. }) => {
            gained.iter().for_each(|message| add("gained", message));
            lost.iter().for_each(|message| add("lost", message));
            for (was, is) in changed {
                add("was", was);
                add("is", is);
            }
        }
    }
    rows
}

//! A backtest as CSV: a row for each alert of each message.

use crate::print::{Cell, Column};
use tools::backtest::{BacktestComparison, BacktestMessage, BacktestNotification, BacktestRun};

pub(super) const COLUMNS: &[Column] = &[
    Column("", "side", false),
    Column("", "at", false),
    Column("", "message", true),
    Column("", "shape", false),
    Column("", "receiver", false),
    Column("", "state", false),
    Column("", "holder", false),
    Column("", "rule", false),
    Column("", "token", false),
    Column("", "type", false),
    Column("", "reason", false),
    Column("", "severity", false),
    Column("", "decidedAt", false),
    Column("", "summary", false),
];

/// A row for each alert of each message, and for each that was not told. `side` says where it stands in a comparison.
pub(super) fn rows(run: &BacktestRun, comparison: Option<&BacktestComparison>) -> Vec<Vec<Cell>> {
    let about = |notification: &BacktestNotification| {
        [
            Cell::text(&notification.rule),
            Cell::maybe(notification.token.as_deref()),
            Cell::text(notification.kind),
            Cell::text(&notification.reason),
            Cell::maybe(notification.labels.get("severity").map(String::as_str)),
            Cell::time(Some(notification.at)),
            Cell::text(&notification.summary),
        ]
    };
    let mut rows = Vec::new();
    let mut number = 0_u64;
    let mut add = |side: &str, message: &BacktestMessage| {
        number += 1;
        let parts = [("told", &message.told), ("counted", &message.counted), ("merged", &message.merged)];
        for (state, notification) in
            parts.into_iter().flat_map(|(state, all)| all.iter().map(move |notification| (state, notification)))
        {
            let mut row = vec![
                Cell::text(side),
                Cell::time(Some(message.at)),
                Cell::text(number.to_string()),
                Cell::text(message.shape.as_str()),
                Cell::text(&message.receiver),
                Cell::text(state),
                Cell::text(""),
            ];
            row.extend(about(notification));
            rows.push(row);
        }
    };
    match comparison {
        None => run.messages.iter().for_each(|message| add("", message)),
        Some(BacktestComparison { gained, lost, changed, .. }) => {
            gained.iter().for_each(|message| add("gained", message));
            lost.iter().for_each(|message| add("lost", message));
            for (was, is) in changed {
                add("was", was);
                add("is", is);
            }
        }
    }
    if comparison.is_none() {
        rows.extend(run.undelivered.iter().map(|undelivered| {
            let mut row = vec![
                Cell::text(""),
                Cell::time(None),
                Cell::text(""),
                Cell::text(""),
                Cell::maybe(undelivered.receiver.as_deref()),
                Cell::text(undelivered.state),
                Cell::maybe(undelivered.holder.as_deref()),
            ];
            row.extend(about(&undelivered.notification));
            row
        }));
    }
    rows
}

//! The scripted correction, which changes the data without notice, like a real source.

use std::time::Duration;

use anstyle::AnsiColor;
use chrono::TimeDelta;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::printing::{DemoLine, colored};
use model::{Clock, Precision, Timestamp, phrase, text::error_chain, wire};
use service::{Edit, EditError, Service};

/// The time from the start to the correction.
pub(super) const CORRECTION_AFTER: Duration = Duration::from_secs(14);
/// The time range of the corrected events, which the first messages already include.
const CORRECTION_WINDOW: TimeDelta = TimeDelta::days(45);

/// Moves an event, resizes one, and adds a burn and a buyback.
pub(super) async fn run_corrections(service: Service, print: mpsc::UnboundedSender<DemoLine>, ending: CancellationToken) {
    tokio::select! {
        () = tokio::time::sleep(CORRECTION_AFTER) => {}
        () = ending.cancelled() => return,
    }
    let now = Clock::system().now();
    let text = match service.edit(|edit| make_corrections(edit, now)) {
        Ok(done) => {
            let head = format!("── {} s: the source corrects its data ──", CORRECTION_AFTER.as_secs());
            format!("\n{}\n   {}\n\nChanges found by the daemon:\n", colored(&head, AnsiColor::Cyan), done.join("\n   "))
        }
        Err(error) => format!("\nthe scripted correction failed: {}\n", error_chain(&error)),
    };
    print.send(DemoLine::Text(text)).ok();
}

/// An event that can be corrected.
struct CorrectionCandidate {
    at: Timestamp,
    value: f64,
    token: String,
    symbol: String,
    /// The tokens as a fraction of the max supply.
    share: f64,
}

/// Returns upcoming events with at least day precision, largest value first.
fn candidates(edit: &Edit<'_>, now: Timestamp) -> Result<Vec<CorrectionCandidate>, EditError> {
    let mut ahead = Vec::new();
    for token in edit.tokens()? {
        let (Some(id), symbol) = (token.id.as_str(), token.symbol.as_str().unwrap_or_default()) else { continue };
        for event in edit.events(id)? {
            let (Some(at), Some(value), Some(amount)) = (event.unlock_date.copied(), event.cliff_value(), event.cliff_amount())
            else {
                continue;
            };
            let is_exact = event.interval().is_some_and(|interval| interval.precision <= Precision::Day);
            if is_exact && at > now + TimeDelta::days(1) && at < now + CORRECTION_WINDOW {
                let share = token.max_supply.copied().map_or(1.0, |supply| amount / supply);
                ahead.push(CorrectionCandidate { at, value, token: id.to_owned(), symbol: symbol.to_owned(), share });
            }
        }
    }
    ahead.sort_by(|a, b| b.value.total_cmp(&a.value));
    Ok(ahead)
}

fn make_corrections(edit: &mut Edit<'_>, now: Timestamp) -> Result<Vec<String>, EditError> {
    let ahead = candidates(edit, now)?;
    let mut done = Vec::new();
    if let Some(moved) = ahead.first() {
        edit.move_event(&moved.token, moved.at, moved.at + TimeDelta::days(5))?;
        done.push(format!("{}: the unlock of {} moved by 5 days", moved.symbol, phrase::day(moved.at)));
        // A large event would also change the max supply.
        let others = || ahead.iter().filter(|other| other.token != moved.token);
        if let Some(resized) = others().find(|other| other.share < 0.01).or_else(|| others().next()) {
            edit.resize_event(&resized.token, resized.at, 1.5)?;
            done.push(format!("{}: the unlock of {} increased by half", resized.symbol, phrase::day(resized.at)));
        }
    }
    let burn = wire::Burn {
        burn_event_label: "Quarterly BNB burn".to_owned().into(),
        burn_type: "PROGRAMMATIC".to_owned().into(),
        burn_date: now.into(),
        amount: 1_441_281.0.into(),
        price_per_token: 850.0.into(),
        value: 1_225_088_850.0.into(),
        metadata: wire::Maybe::Absent,
        extra: wire::Extra::new(),
    };
    edit.add_burn("bnb", burn)?;
    done.push("BNB: quarterly burn added".to_owned());
    let buyback = wire::Buyback {
        buyback_event_label: "Assistance Fund".to_owned().into(),
        buyback_type: "TREASURY_BUYBACK".to_owned().into(),
        buyback_date: now.into(),
        token_amount: 1_250_000.0.into(),
        value: 48_750_000.0.into(),
        resolution: "period_net".to_owned().into(),
        basis: "estimated".to_owned().into(),
        ..wire::Buyback::default()
    };
    edit.add_buyback("hyperliquid", buyback)?;
    done.push("HYPE: buyback added".to_owned());
    Ok(done)
}

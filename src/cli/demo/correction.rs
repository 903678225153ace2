//! The scripted corrections, which change the data without notice, like a real source.

use std::collections::BTreeSet;
use std::time::Duration;

use anstyle::AnsiColor;
use chrono::TimeDelta;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::printing::{DemoLine, colored};
use model::wire::{self, UnlockEvent};
use model::{Clock, Precision, Timestamp, phrase, text::error_chain};
use service::{Edit, EditError, Service};

/// The time from the start to the first corrections.
pub(super) const CORRECTION_AFTER: Duration = Duration::from_secs(14);
/// The time from the start to the corrections of whole schedules.
const SCHEDULES_AFTER: Duration = Duration::from_secs(32);
/// The time from the start to a schedule that lacks most of its events.
const LOSS_AFTER: Duration = Duration::from_secs(48);
/// The time range of the corrected events, which the first messages already include.
const CORRECTION_WINDOW: TimeDelta = TimeDelta::days(45);

/// The least number of upcoming unlocks of a schedule that is corrected as a whole.
const MIN_UNLOCKS: usize = 4;

/// A step of the script: its time, its title, what follows it, and the edit, which returns what it did.
type ScriptStep = (Duration, &'static str, &'static str, fn(&mut Edit<'_>, Timestamp) -> Result<Vec<String>, EditError>);

const SCRIPT: [ScriptStep; 3] = [
    (CORRECTION_AFTER, "the source corrects its data", "Changes found by the daemon:", make_corrections),
    (SCHEDULES_AFTER, "the source corrects whole schedules", "Changes found by the daemon:", correct_schedules),
    (
        LOSS_AFTER,
        "the source loses most of a schedule",
        "The daemon holds the response instead of reporting removals; the overview shows it. The receiver \"archive\" rejected its first \
         message: log in and retry it on the page of the deliveries.",
        lose_schedule,
    ),
];

/// Runs the script.
pub(super) async fn run_corrections(service: Service, print: mpsc::UnboundedSender<DemoLine>, ending: CancellationToken) {
    let began = tokio::time::Instant::now();
    for (after, title, then, edit) in SCRIPT {
        tokio::select! {
            () = tokio::time::sleep_until(began + after) => {}
            () = ending.cancelled() => return,
        }
        let now = Clock::system().now();
        let text = match service.edit(|draft| edit(draft, now)) {
            Ok(done) => {
                let head = format!("── {} s: {title} ──", after.as_secs());
                format!("\n{}\n   {}\n\n{then}\n", colored(&head, AnsiColor::Cyan), done.join("\n   "))
            }
            Err(error) => format!("\na scripted correction failed: {}\n", error_chain(&error)),
        };
        print.send(DemoLine::Text(text)).ok();
    }
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

/// The upcoming cliff unlocks of a token without linear unlocks.
struct CliffSchedule {
    token: String,
    symbol: String,
    /// In order of time.
    ahead: Vec<Timestamp>,
    /// The names of its allocations.
    allocations: BTreeSet<String>,
}

/// Returns the tokens with several upcoming cliff unlocks and no linear ones, most unlocks first. Leaves out those that
/// the script has changed.
fn cliff_schedules(edit: &Edit<'_>, now: Timestamp) -> Result<Vec<CliffSchedule>, EditError> {
    let mut schedules = Vec::new();
    for token in edit.tokens()? {
        let (Some(id), symbol) = (token.id.as_str(), token.symbol.as_str().unwrap_or_default()) else { continue };
        if token.last_updated_date.copied().is_some_and(|at| at > now - LOSS_AFTER) {
            continue;
        }
        let events = edit.events(id)?;
        let at = |event: &UnlockEvent| event.unlock_date.copied().filter(|at| *at > now + TimeDelta::days(1));
        let has_only_cliffs = |event: &&UnlockEvent| event.linear_unlocks.get().is_none();
        let ahead: Vec<Timestamp> = events.iter().filter(has_only_cliffs).filter_map(at).collect();
        let is_whole = ahead.len() == events.iter().filter_map(at).count();
        if ahead.len() < MIN_UNLOCKS || !is_whole {
            continue;
        }
        let cliffs = events.iter().filter_map(|event| event.cliff_unlocks.get());
        let shares = cliffs.flat_map(|cliffs| cliffs.allocation_breakdown.get().into_iter().flatten());
        let allocations = shares.filter_map(|share| share.allocation_name.as_str().map(str::to_owned)).collect();
        schedules.push(CliffSchedule { token: id.to_owned(), symbol: symbol.to_owned(), ahead, allocations });
    }
    schedules.sort_by_key(|schedule| std::cmp::Reverse(schedule.ahead.len()));
    Ok(schedules)
}

/// Moves a series, renames an allocation, splits an event, and removes one.
fn correct_schedules(edit: &mut Edit<'_>, now: Timestamp) -> Result<Vec<String>, EditError> {
    let mut schedules = cliff_schedules(edit, now)?.into_iter();
    let mut done = Vec::new();
    if let Some(CliffSchedule { token, symbol, ahead, .. }) = schedules.next() {
        // From the last one, so that none is merged with the next.
        for at in ahead.iter().rev() {
            edit.move_event(&token, *at, *at + TimeDelta::days(30))?;
        }
        done.push(format!("{symbol}: {} moved by 30 days", phrase::count(ahead.len(), "unlock")));
    }
    if let Some(CliffSchedule { token, symbol, allocations, .. }) = schedules.find(|schedule| !schedule.allocations.is_empty()) {
        let name = allocations.first().map_or("", String::as_str);
        edit.rename_allocation(&token, name, &format!("{name} (restated)"))?;
        done.push(format!("{symbol}: the allocation {name} renamed"));
    }
    if let Some(CliffSchedule { token, symbol, ahead, .. }) = schedules.next()
        && let Some(at) = ahead.first()
    {
        edit.split_event(&token, *at, *at + TimeDelta::days(45))?;
        done.push(format!("{symbol}: half of the unlock of {} comes 45 days later", phrase::day(*at)));
    }
    if let Some(CliffSchedule { token, symbol, ahead, .. }) = schedules.next()
        && let Some(at) = ahead.get(1)
    {
        edit.remove_event(&token, *at)?;
        done.push(format!("{symbol}: the unlock of {} removed", phrase::day(*at)));
    }
    Ok(done)
}

/// Removes all upcoming events of a schedule but the last, like a source with a defect.
fn lose_schedule(edit: &mut Edit<'_>, now: Timestamp) -> Result<Vec<String>, EditError> {
    let Some(CliffSchedule { token, symbol, ahead, .. }) = cliff_schedules(edit, now)?.into_iter().next() else {
        return Ok(Vec::new());
    };
    let (Some(last), lost) = (ahead.last(), ahead.len() - 1) else { return Ok(Vec::new()) };
    let mut events = edit.events(&token)?;
    events.retain(|event| event.unlock_date.copied().is_none_or(|at| at <= now || at >= *last));
    edit.put_events(&token, events)?;
    Ok(vec![format!("{symbol}: {} missing", phrase::count(lost, "upcoming unlock"))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use service::Options;

    #[test]
    fn every_step_changes_the_bundled_data() {
        let service = Service::in_memory(Options::default()).expect("a service");
        service.import(service::bundled(), |_| {}).expect("the bundled data");
        let now = Clock::system().now();
        let mut all = Vec::new();
        for (_, title, _, edit) in SCRIPT {
            let done = service.edit(|draft| edit(draft, now)).expect(title);
            assert!(!done.is_empty(), "{title}");
            all.extend(done);
        }
        assert_eq!(all.len(), 9, "{all:?}");
        let tokens: BTreeSet<&str> = all.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(tokens.len(), 9, "each step is about another token: {all:?}");
    }
}

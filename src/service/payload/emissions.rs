//! Daily and weekly emission, stored or computed from the schedule.

use super::{Lookup, ResponseData, totals::add};
use crate::emission;
use crate::query::DataQuery;
use crate::refusal::{Refusal, redact};
use model::wire::{Emission, EmissionAllocation, Maybe, NamedOr, UnlockEvent};
use model::{Endpoint, Resource, Timestamp};
use store::facts::{Coverage, DateRange, SupplyFacts};

pub(super) fn daily_emission(facts: &impl SupplyFacts, query: &DataQuery, now: Timestamp) -> Result<Vec<Emission>, Refusal> {
    let query = &DataQuery { end: query.end.or(Some(now.date_naive())), ..query.clone() };
    let mut days = days(facts, &query.id)?;
    days.retain(|day| query.includes(day.start_date.copied()));
    for day in &mut days {
        let Maybe::Value(items) = &mut day.allocations else { continue };
        let before = items.len();
        items.retain(|item| match item {
            NamedOr::Name(_) => query.standards.is_empty(),
            NamedOr::Item(item) => query.wants(item.standard_allocation_name.as_str()),
        });
        // The cumulative amount always covers the whole token.
        if items.len() < before {
            let sum = |pick: fn(&EmissionAllocation) -> &Maybe<f64>| {
                items.iter().fold(Maybe::Value(0.0), |sum, item| match item {
                    NamedOr::Item(item) => add(&sum, pick(item)),
                    NamedOr::Name(_) => sum,
                })
            };
            let (amount, value) = (sum(|item| &item.unlock_amount), sum(|item| &item.unlock_value));
            if day.unlock_value.get().is_some() {
                day.unlock_value = value;
            }
            day.unlock_amount = amount;
        }
    }
    Ok(days)
}

/// Returns whole weeks, from the week of the start to the week of the end: as stored, else computed from daily emission.
pub(super) fn weekly_emission<F: SupplyFacts>(lookup: &Lookup<'_, F>) -> Result<ResponseData, Refusal> {
    let Lookup { facts, query, context } = *lookup;
    let start = query.start.map(emission::sunday_of);
    let last = emission::sunday_of(query.end.unwrap_or(context.now.date_naive()));
    let end = last.checked_add_days(chrono::Days::new(6)).unwrap_or(last);
    let window = DataQuery { start, end: Some(end), ..query.clone() };
    let mut weeks: Vec<Emission> = facts.records(Resource::Emission, &query.id, DateRange::default())?;
    weeks.retain(is_week);
    let polled_at = match facts.coverage(Endpoint::WeeklyEmission, Some(&query.id))? {
        Coverage::ReadAt(at) => Some(Some(at)),
        Coverage::Own => (!weeks.is_empty()).then_some(None),
        Coverage::NeverRead => None,
    };
    if let Some(read_at) = polled_at {
        lookup.check_window(read_at, false)?;
        weeks.retain(|week| window.includes(week.start_date.copied()));
        let weeks: Option<Vec<_>> = weeks.into_iter().map(|week| emission::week_in_version(week, query.version)).collect();
        let weeks = weeks.ok_or_else(|| {
            Refusal::not_found("weekly emission is stored without amounts per allocation, as in version 1: request version 1")
        })?;
        return lookup.list(weeks, read_at);
    }
    let read_at = lookup.polled_of_token(Endpoint::DailyEmission).map_err(|refusal| match context.scope {
        Some(scope) if scope.polls(Endpoint::WeeklyEmission) => scope.missing(Endpoint::WeeklyEmission, Some(&query.id)),
        _ => refusal,
    })?;
    lookup.check_window(read_at, false)?;
    let mut days = days(facts, &query.id)?;
    days.retain(|day| window.includes(day.start_date.copied()));
    lookup.list(emission::weekly(&days, query.version), read_at)
}

/// Returns all days of a token in chronological order: the stored days, and before and after them days computed from the schedule.
fn days(facts: &impl SupplyFacts, token: &str) -> Result<Vec<Emission>, Refusal> {
    let mut stored: Vec<Emission> = facts.records(Resource::Emission, token, DateRange::default())?;
    stored.retain(|day| !is_week(day));
    if facts.coverage(Endpoint::DailyEmission, Some(token))? != Coverage::Own {
        // A daemon may have polled only a part of the schedule, so nothing is computed from it.
        return Ok(stored);
    }
    if stored.is_empty() && facts.coverage(Endpoint::UnlockEvents, Some(token))? == Coverage::NeverRead {
        return Err(Refusal::not_found(format!(
            "no schedule of token \"{}\", which daily emission is computed from",
            redact(token)
        )));
    }
    let events: Vec<UnlockEvent> = facts.records(Resource::Unlock, token, DateRange::default())?;
    if events.iter().any(|event| event.linear_unlocks.is_absent()) {
        if stored.is_empty() {
            return Err(Refusal::not_found(format!(
                "the schedule of token \"{}\" is stored without linear unlocks, which daily emission is computed from",
                redact(token)
            )));
        }
        return Ok(stored);
    }
    let made = emission::daily(&events);
    let start = |day: &Emission| day.start_date.copied();
    let (Some(first), Some(last)) = (stored.first().map(start), stored.last().map(start)) else {
        return Ok(made);
    };
    let (mut days, after): (Vec<_>, Vec<_>) =
        made.into_iter().filter(|day| start(day) < first || start(day) > last).partition(|day| start(day) < first);
    days.extend(stored);
    days.extend(after);
    Ok(days)
}

/// Returns whether a stored row is from the weekly endpoint.
fn is_week(row: &Emission) -> bool {
    matches!((row.start_date.copied(), row.end_date.copied()), (Some(start), Some(end)) if end - start > chrono::TimeDelta::days(1))
}

//! Emission by day and by week: as the source told it, else made from the schedule where the data is our own.

use super::{AnswerContent, AnswerContext, held, totals::add, whole, within};
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
        // The cumulative amount stays that of the whole token.
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

/// Whole weeks: the one that holds the start to the one that holds the end. A mirror has them as the source told them, or makes them
/// from the days that it told.
pub(super) fn weekly_emission(
    facts: &impl SupplyFacts,
    query: &DataQuery,
    context: AnswerContext<'_>,
) -> Result<AnswerContent, Refusal> {
    let start = query.start.map(emission::sunday_of);
    let last = emission::sunday_of(query.end.unwrap_or(context.now.date_naive()));
    let end = last.checked_add_days(chrono::Days::new(6)).unwrap_or(last);
    let window = DataQuery { start, end: Some(end), ..query.clone() };
    let mut weeks: Vec<Emission> = facts.records(Resource::Emission, &query.id, DateRange::default())?;
    weeks.retain(is_week);
    let told_at = match facts.coverage(Endpoint::WeeklyEmission, Some(&query.id))? {
        Coverage::ReadAt(at) => Some(Some(at)),
        Coverage::Own => (!weeks.is_empty()).then_some(None),
        Coverage::NeverRead => None,
    };
    if let Some(read_at) = told_at {
        within(query, false, read_at, context)?;
        weeks.retain(|week| window.includes(week.start_date.copied()));
        let weeks: Option<Vec<_>> = weeks.into_iter().map(|week| emission::told_week(week, query.version)).collect();
        let weeks = weeks.ok_or_else(|| {
            Refusal::unknown("the weeks are known here as version 1 tells them, without amounts of allocations: ask version 1")
        })?;
        return whole(weeks, query, read_at);
    }
    let read_at = held(facts, Endpoint::DailyEmission, Some(&query.id), context).map_err(|refusal| match context.scope {
        Some(scope) if scope.asks(Endpoint::WeeklyEmission) => scope.missing(Endpoint::WeeklyEmission, Some(&query.id)),
        _ => refusal,
    })?;
    within(query, false, read_at, context)?;
    let mut days = days(facts, &query.id)?;
    days.retain(|day| window.includes(day.start_date.copied()));
    whole(emission::weekly(&days, query.version), query, read_at)
}

/// All days of a token, in order of time: as stored, and outside of the stored stretch made from its schedule.
fn days(facts: &impl SupplyFacts, token: &str) -> Result<Vec<Emission>, Refusal> {
    let mut stored: Vec<Emission> = facts.records(Resource::Emission, token, DateRange::default())?;
    stored.retain(|day| !is_week(day));
    if facts.coverage(Endpoint::DailyEmission, Some(token))? != Coverage::Own {
        // What the source did not tell is not made up: its schedule may be a part of the whole.
        return Ok(stored);
    }
    if stored.is_empty() && facts.coverage(Endpoint::UnlockEvents, Some(token))? == Coverage::NeverRead {
        return Err(Refusal::unknown(format!(
            "the schedule of token \"{}\" is not known here, so that no day can be made from it",
            redact(token)
        )));
    }
    let events: Vec<UnlockEvent> = facts.records(Resource::Unlock, token, DateRange::default())?;
    if events.iter().any(|event| event.linear_unlocks.is_absent()) {
        if stored.is_empty() {
            return Err(Refusal::unknown(format!(
                "the schedule of token \"{}\" is known here without linear unlocks, so that no day can be made from it",
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

// -- emission --

/// Whether a stored row is a week of the weekly endpoint, not a day.
fn is_week(row: &Emission) -> bool {
    matches!((row.start_date.copied(), row.end_date.copied()), (Some(start), Some(end)) if end - start > chrono::TimeDelta::days(1))
}

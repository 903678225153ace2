//! The schedules of `schedules.jsonl`, and the steps that correct them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike as _, Months, TimeDelta, Utc};
use cliffwatch::model::wire::UnlockEvent;
use serde::Deserialize;
use serde_json::{Value, json};

/// A schedule as rows: one for each cliff and each linear unlock of an allocation.
#[derive(Clone, Debug)]
pub struct RowSchedule {
    pub token: String,
    pub name: String,
    pub symbol: String,
    pub method: String,
    pub source: String,
    pub updated: String,
    pub price: Option<f64>,
    price_at: Option<String>,
    pub market_cap: Option<f64>,
    rows: Vec<ScheduleRow>,
}

#[derive(Clone, Debug, PartialEq)]
struct ScheduleRow {
    allocation: String,
    category: String,
    begin: DateTime<Utc>,
    /// The end of a linear unlock. `None` for a cliff.
    end: Option<DateTime<Utc>>,
    amount: f64,
    precision: String,
    claimed: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredSchedule {
    token: String,
    name: String,
    symbol: String,
    method: String,
    source: String,
    updated: String,
    price: Option<f64>,
    price_at: Option<String>,
    market_cap: Option<f64>,
    allocations: Vec<(String, String)>,
    rows: Vec<Vec<Value>>,
}

/// A step of a correction. Which fields it needs depends on `operation`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorrectionStep {
    #[serde(rename = "do")]
    operation: String,
    #[serde(default)]
    of: RowSelection,
    allocation: Option<String>,
    allocations: Option<(String, String)>,
    category: Option<String>,
    first: Option<String>,
    begin: Option<String>,
    end: Option<String>,
    to: Option<String>,
    keep: Option<String>,
    precision: Option<String>,
    months: Option<i32>,
    days: Option<i64>,
    seconds: Option<i64>,
    day: Option<u32>,
    count: Option<u32>,
    digits: Option<usize>,
    each: Option<f64>,
    amount: Option<f64>,
    by: Option<f64>,
    share: Option<f64>,
}

/// The rows that a step applies to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowSelection {
    allocation: Option<Names>,
    kind: Option<String>,
    from: Option<String>,
    until: Option<String>,
    take: Option<i32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Several(Vec<String>),
}

/// Returns the instant of a date with or without a time.
pub fn instant(text: &str) -> DateTime<Utc> {
    let full = if text.len() == "2026-04-06".len() { format!("{text}T00:00:00Z") } else { text.to_owned() };
    full.parse().unwrap_or_else(|_| panic!("{text} is not a date"))
}

fn plus_months(date: DateTime<Utc>, months: i32) -> DateTime<Utc> {
    let by = Months::new(months.unsigned_abs());
    if months < 0 { date.checked_sub_months(by) } else { date.checked_add_months(by) }.expect("a date")
}

impl RowSchedule {
    /// All schedules, by token.
    pub fn load_all(text: &str) -> BTreeMap<String, Self> {
        text.lines().map(|line| Self::from_stored(serde_json::from_str(line).expect("a schedule"))).collect()
    }

    fn from_stored(stored: StoredSchedule) -> (String, Self) {
        let row = |cells: &Vec<Value>| {
            let text = |cell: usize| cells[cell].as_str().expect("a text");
            let is_cliff = text(0) == "cliff";
            let index = usize::try_from(cells[1].as_u64().expect("an index")).expect("an index");
            let (allocation, category) = stored.allocations[index].clone();
            let amount = if is_cliff { 3 } else { 4 };
            ScheduleRow {
                allocation,
                category,
                begin: instant(text(2)),
                end: (!is_cliff).then(|| instant(text(3))),
                amount: cells[amount].as_f64().expect("an amount"),
                precision: match text(amount + 1) {
                    "s" => "second",
                    "d" => "day",
                    "m" => "month",
                    other => panic!("unknown precision {other}"),
                }
                .to_owned(),
                claimed: None,
            }
        };
        let rows = stored.rows.iter().map(row).collect();
        let StoredSchedule { token, name, symbol, method, source, updated, price, price_at, market_cap, .. } = stored;
        (token.clone(), Self { token, name, symbol, method, source, updated, price, price_at, market_cap, rows })
    }

    /// Applies the steps of a correction that is published at `at`.
    pub fn corrected(&self, steps: &[CorrectionStep], at: &str) -> Self {
        let mut corrected = self.clone();
        steps.iter().for_each(|step| corrected.apply(step));
        at.clone_into(&mut corrected.updated);
        corrected
    }

    /// Total amount of each allocation.
    pub fn books(&self) -> BTreeMap<String, f64> {
        let mut books = BTreeMap::new();
        for row in &self.rows {
            *books.entry(row.allocation.clone()).or_default() += row.amount;
        }
        books
    }

    /// Positions of the selected rows, by date.
    fn select(&self, of: &RowSelection) -> Vec<usize> {
        let is_named = |row: &ScheduleRow| match &of.allocation {
            None => true,
            Some(Names::One(name)) => *name == row.allocation,
            Some(Names::Several(names)) => names.contains(&row.allocation),
        };
        let is_selected = |row: &ScheduleRow| {
            is_named(row)
                && of.kind.as_deref().is_none_or(|kind| (kind == "cliff") == row.end.is_none())
                && of.from.as_deref().is_none_or(|from| row.begin >= instant(from))
                && of.until.as_deref().is_none_or(|until| row.begin < instant(until))
        };
        let mut selected: Vec<usize> =
            self.rows.iter().enumerate().filter(|(_, row)| is_selected(row)).map(|(position, _)| position).collect();
        selected.sort_by_key(|&position| self.rows[position].begin);
        let count = of.take.map_or(selected.len(), |take| usize::try_from(take.unsigned_abs()).expect("a count"));
        if of.take.is_some_and(|take| take < 0) {
            selected.split_off(selected.len().saturating_sub(count))
        } else {
            selected.truncate(count);
            selected
        }
    }

    fn apply(&mut self, step: &CorrectionStep) {
        let selected = self.select(&step.of);
        let needs_none = ["cliffs", "flow", "merge", "dedupe", "reprice", "source", "swap"].contains(&step.operation.as_str());
        assert!(needs_none || !selected.is_empty(), "{}: {step:?} selects nothing", self.token);
        match step.operation.as_str() {
            "cliffs" => self.add_cliffs(
                step,
                step.allocation.clone().expect("an allocation"),
                step.category.clone().expect("a category"),
                step.each.expect("an amount"),
            ),
            "flow" => self.add_flow(
                step,
                step.allocation.clone().expect("an allocation"),
                step.category.clone().expect("a category"),
                step.amount.expect("an amount"),
            ),
            "remove" => drop(self.take(&selected)),
            "spread" | "stream" => {
                let removed = self.take(&selected);
                let total = removed.iter().map(|row| row.amount).sum::<f64>() * step.by.unwrap_or(1.0);
                let (allocation, category) = (removed[0].allocation.clone(), removed[0].category.clone());
                if step.operation == "spread" {
                    self.add_cliffs(step, allocation, category, total / f64::from(step.count.expect("a count")));
                } else {
                    self.add_flow(step, allocation, category, total);
                }
            }
            "give" => self.give(step, &selected),
            "merge" => self.merge(),
            "duplicate" => {
                let again: Vec<ScheduleRow> = selected.iter().map(|&position| self.rows[position].clone()).collect();
                self.rows.extend(again);
            }
            "dedupe" => {
                let mut unique: Vec<ScheduleRow> = Vec::new();
                for row in std::mem::take(&mut self.rows) {
                    if !unique.contains(&row) {
                        unique.push(row);
                    }
                }
                self.rows = unique;
            }
            "swap" => self.swap(step),
            "reprice" => self.price = self.price.map(|price| price * step.by.expect("a factor")),
            "source" => self.source = step.to.clone().expect("a source"),
            _ => selected.iter().for_each(|&position| self.rows[position].apply(step)),
        }
    }

    fn take(&mut self, selected: &[usize]) -> Vec<ScheduleRow> {
        let taken = selected.iter().map(|&position| self.rows[position].clone()).collect();
        let selected: BTreeSet<usize> = selected.iter().copied().collect();
        let mut position = 0;
        self.rows.retain(|_| {
            position += 1;
            !selected.contains(&(position - 1))
        });
        taken
    }

    fn add_cliffs(&mut self, step: &CorrectionStep, allocation: String, category: String, each: f64) {
        let first = instant(step.first.as_deref().expect("a date"));
        for number in 0..step.count.expect("a count") {
            let number = i32::try_from(number).expect("a count");
            let days = TimeDelta::days(step.days.unwrap_or(0) * i64::from(number));
            self.rows.push(ScheduleRow {
                allocation: allocation.clone(),
                category: category.clone(),
                begin: plus_months(first, step.months.unwrap_or(0) * number) + days,
                end: None,
                amount: each,
                precision: step.precision.clone().unwrap_or_else(|| "day".to_owned()),
                claimed: None,
            });
        }
    }

    fn add_flow(&mut self, step: &CorrectionStep, allocation: String, category: String, amount: f64) {
        let date = |text: &Option<String>| instant(text.as_deref().expect("a date"));
        let (begin, end) = (date(&step.begin), Some(date(&step.end)));
        self.rows.push(ScheduleRow { allocation, category, begin, end, amount, precision: "second".into(), claimed: None });
    }

    fn give(&mut self, step: &CorrectionStep, selected: &[usize]) {
        let share = step.share.expect("a share");
        for &position in selected {
            let giver = &mut self.rows[position];
            let mut given = giver.clone();
            given.amount *= share;
            giver.amount *= 1.0 - share;
            given.allocation = step.to.clone().expect("an allocation");
            given.category = step.category.clone().expect("a category");
            self.rows.push(given);
        }
        self.merge();
        self.rows.retain(|row| row.amount != 0.0);
    }

    /// Joins rows of the same allocation, dates, and precision.
    fn merge(&mut self) {
        let mut merged: Vec<ScheduleRow> = Vec::new();
        for row in std::mem::take(&mut self.rows) {
            let is_same = |other: &&mut ScheduleRow| {
                (&other.allocation, other.begin, other.end, &other.precision)
                    == (&row.allocation, row.begin, row.end, &row.precision)
            };
            match merged.iter_mut().find(is_same) {
                Some(other) => other.amount += row.amount,
                None => merged.push(row),
            }
        }
        self.rows = merged;
    }

    fn swap(&mut self, step: &CorrectionStep) {
        let (one, other) = step.allocations.clone().expect("two allocations");
        let categories: BTreeMap<String, String> =
            self.rows.iter().map(|row| (row.allocation.clone(), row.category.clone())).collect();
        for row in &mut self.rows {
            let partner = if row.allocation == one {
                &other
            } else if row.allocation == other {
                &one
            } else {
                continue;
            };
            (row.allocation, row.category) = (partner.clone(), categories[partner].clone());
        }
    }

    /// The schedule as unlock events of the source.
    pub fn events(&self) -> Vec<UnlockEvent> {
        let mut by_date: BTreeMap<DateTime<Utc>, Vec<&ScheduleRow>> = BTreeMap::new();
        self.rows.iter().for_each(|row| by_date.entry(row.begin).or_default().push(row));
        by_date.iter().map(|(date, rows)| self.event(*date, rows)).collect()
    }

    fn event(&self, date: DateTime<Utc>, rows: &[&ScheduleRow]) -> UnlockEvent {
        let value = |amount: f64| self.price.map(|price| amount * price);
        let (flows, cliffs): (Vec<&ScheduleRow>, Vec<&ScheduleRow>) = rows.iter().partition(|row| row.end.is_some());
        let sum = |rows: &[&ScheduleRow]| rows.iter().map(|row| row.amount).sum::<f64>();
        let cliff = |row: &&ScheduleRow| {
            let mut item = json!({
                "unlockDate": text(row.begin), "allocationName": row.allocation, "standardAllocationName": row.category,
                "cliffAmount": row.amount, "cliffValue": value(row.amount), "referencePrice": self.price,
                "referencePriceUpdatedTime": self.price_at, "unlockPrecision": row.precision
            });
            if let Some(claimed) = row.claimed {
                item["committedClaim"] = json!({"amount": claimed, "value": value(claimed), "timestamp": 1_775_000_000});
            }
            item
        };
        let flow = |row: &&ScheduleRow| {
            let end = row.end.expect("an end");
            let days = (end - row.begin).as_seconds_f64() / 86_400.0;
            json!({
                "allocationName": row.allocation, "standardAllocationName": row.category, "linearAmount": row.amount,
                "linearValue": value(row.amount), "referencePrice": self.price, "referencePriceUpdatedTime": self.price_at,
                "dailyAmount": row.amount / days, "dailyValue": value(row.amount / days), "durationOfRate": days,
                "beginDate": text(row.begin), "endDate": text(end), "unlockPrecision": row.precision
            })
        };
        let percent = self.market_cap.and_then(|cap| value(sum(&cliffs)).map(|value| value / cap * 100.0));
        let cliff_unlocks = (!cliffs.is_empty()).then(|| {
            json!({"cliffAmount": sum(&cliffs), "cliffValue": value(sum(&cliffs)), "valueToMarketCap": percent,
                "allocationBreakdown": cliffs.iter().map(cliff).collect::<Vec<_>>()})
        });
        let linear_unlocks = (!flows.is_empty()).then(|| {
            let items: Vec<Value> = flows.iter().map(flow).collect();
            let daily: f64 = items.iter().filter_map(|item| item["dailyAmount"].as_f64()).sum();
            json!({"linearAmount": sum(&flows), "linearValue": value(sum(&flows)), "dailyAmount": daily, "dailyValue": value(daily),
                "referencePrice": self.price, "referencePriceUpdatedTime": self.price_at, "allocationBreakdown": items})
        });
        serde_json::from_value(json!({
            "unlockDate": text(date), "tokenName": self.name, "tokenSymbol": self.symbol, "listedMethod": self.method,
            "dataSource": self.source, "linearUnlocks": linear_unlocks, "cliffUnlocks": cliff_unlocks,
            "latestUpdateDate": self.updated
        }))
        .expect("an event")
    }
}

fn text(date: DateTime<Utc>) -> String {
    date.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl ScheduleRow {
    /// Applies a step that changes single rows.
    fn apply(&mut self, step: &CorrectionStep) {
        let length = self.end.map(|end| end - self.begin);
        match step.operation.as_str() {
            "move" => {
                let shift = |date: DateTime<Utc>| {
                    plus_months(date, step.months.unwrap_or(0))
                        + TimeDelta::days(step.days.unwrap_or(0))
                        + TimeDelta::seconds(step.seconds.unwrap_or(0))
                };
                if let Some(to) = &step.to {
                    self.begin = instant(to);
                    self.end = length.map(|length| self.begin + length);
                } else {
                    self.begin = shift(self.begin);
                    self.end = self.end.map(shift);
                }
            }
            "day" => self.begin = with_day(self.begin, step.day.expect("a day")),
            "scale" => self.amount *= step.by.expect("a factor"),
            "round" => {
                let digits = step.digits.expect("digits") - 1;
                self.amount = format!("{:.digits$e}", self.amount).parse().expect("an amount");
            }
            "rename" => {
                self.allocation = step.to.clone().expect("a name");
                self.category = step.category.clone().unwrap_or_else(|| self.category.clone());
            }
            "category" => self.category = step.to.clone().expect("a category"),
            "precision" => self.precision = step.to.clone().expect("a precision"),
            "begin" | "end" => {
                let to = instant(step.to.as_deref().expect("a date"));
                if step.operation == "begin" {
                    self.begin = to;
                } else {
                    self.end = Some(to);
                }
                if step.keep.as_deref() == Some("rate") {
                    let (length, before) = (self.end.expect("an end") - self.begin, length.expect("a linear unlock"));
                    self.amount *= length.as_seconds_f64() / before.as_seconds_f64();
                }
            }
            "claim" => self.claimed = Some(self.amount * step.share.expect("a share")),
            other => panic!("unknown step {other}"),
        }
    }
}

/// Sets the day of the month, or the last day if the month is shorter.
fn with_day(date: DateTime<Utc>, day: u32) -> DateTime<Utc> {
    (1..=day).rev().find_map(|day| date.with_day(day)).expect("a day")
}

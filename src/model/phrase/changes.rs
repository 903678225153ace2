//! Sentences about changes. The diff returns facts as [`ChangeClause`]s; [`summary`] writes the text that is stored with a change.

mod dates;
mod fields;
mod pace;
mod rewrites;
mod schedules;
mod steps;
mod tranches;

pub use dates::DateChange;
pub use fields::field_words;
pub use rewrites::AllocationRewrite;
pub use schedules::schedule_change;
pub use tranches::{MAX_ROUNDING, ScheduleUnit, TrancheFacts, TranchesChange};

use self::{
    fields::{field_change, field_label, field_value, is_label},
    pace::is_close,
    rewrites::{rewritten, rewritten_allocations},
    tranches::are_linear,
};
use super::{UNKNOWN_AMOUNT, amount, count, day, grouped, list, name, names, one_line, plural, ratio, shift, shifts};
use crate::{Change, ChangeKind, ChangeRow, FieldChange, Resource, ScheduleBrief, Timestamp};

/// The number of fields that a sentence names. More are only stored.
const MAX_FIELDS: usize = 3;

/// The number of givers or recipients of tokens that a sentence names before it only counts them.
const MAX_SHARES: usize = 4;

/// The number of renamed allocations that a sentence names before it only counts them.
const MAX_RENAMED: usize = 3;

/// The facts of one clause of a change's summary.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeClause {
    Added {
        tranches: Vec<TrancheFacts>,
        /// The amount of the same unlock that did not change. `None` if there is no such amount.
        rest: Option<f64>,
    },
    Removed {
        tranches: Vec<TrancheFacts>,
        /// The last visible day. The tranches may have moved beyond it instead. `None` if all days are visible.
        last_visible_day: Option<Timestamp>,
        /// The amount of the same unlock that did not change. `None` if there is no such amount.
        rest: Option<f64>,
    },
    /// An event without tranches was removed.
    EventRemoved {
        date: Option<Timestamp>,
    },
    /// The tranches of one event moved.
    EventMoved {
        tranches: Vec<TrancheFacts>,
        dates: DateChange,
        /// The smallest and the largest shift. `None` if a tranche is undated.
        shift_days: Option<(f64, f64)>,
    },
    /// Tranches of several events moved together.
    SeriesMoved {
        tranches: Vec<TrancheFacts>,
        is_whole_schedule: bool,
        /// The smallest and the largest shift. `None` if a tranche is undated.
        shift_days: Option<(f64, f64)>,
        /// The shift in calendar months, if all dates moved by the same whole number of months.
        months: Option<i32>,
        /// The dates of one tranche.
        example: DateChange,
        /// Whether the example is the next tranche. If not, it is the first one.
        is_next: bool,
    },
    /// The dates are more or less exact than before, but still possible.
    Redated {
        tranches: Vec<TrancheFacts>,
        /// The dates of one tranche.
        example: DateChange,
        /// Whether the example is the next tranche. If not, it is the first one.
        is_next: bool,
    },
    /// The starts of linear unlocks moved, but not their ends.
    StartMoved {
        tranches: TranchesChange,
        from: Timestamp,
        to: Timestamp,
        shift_days: (f64, f64),
    },
    /// The ends of linear unlocks moved, but not their starts.
    EndMoved {
        tranches: TranchesChange,
        from: Timestamp,
        to: Timestamp,
        shift_days: f64,
    },
    /// The ends of some linear unlocks moved otherwise than the rest of their series.
    SomeEndsMoved {
        segments: usize,
        dates: DateChange,
    },
    /// The amounts of a series changed by one ratio.
    Rescaled {
        allocations: Vec<String>,
        tranches: usize,
        ratio: f64,
        from: f64,
        to: f64,
    },
    Resized {
        tranches: TranchesChange,
        ratio: Option<f64>,
        /// The amount of the same unlocks that did not change. `None` if there is no such amount.
        rest: Option<f64>,
    },
    Reallocated {
        amount: f64,
        /// The allocations that have less than before, each with the difference.
        from: Vec<(String, f64)>,
        /// The allocations that have more than before, each with the difference.
        to: Vec<(String, f64)>,
        /// The tranches, if their dates may have changed as well.
        tranches: Option<TranchesChange>,
    },
    SplitOrMerged(TranchesChange),
    Restructured(TranchesChange),
    Renamed {
        /// The old and the new name of each renamed allocation.
        names: Vec<(String, String)>,
        categories: Vec<CategoryChange>,
        /// The tokens of each renamed allocation, in the order of `names`. Empty if they are not counted.
        amounts: Vec<f64>,
        /// The number of cliff unlocks. Zero as a part of another change, which counts them, and for linear unlocks alone.
        tranches: usize,
    },
    /// Several allocations are listed as one, or one as several. Each has its tokens before the change.
    AllocationsRelisted {
        from: Vec<(String, f64)>,
        to: Vec<(String, f64)>,
    },
    Rewritten {
        before: ScheduleBrief,
        after: ScheduleBrief,
        /// The allocations whose total, begin, or end changed.
        allocations: Vec<AllocationRewrite>,
        /// The old and the new name of each renamed allocation.
        renamed: Vec<(String, String)>,
    },
    /// A committed claim appeared or changed.
    Committed {
        allocations: Vec<String>,
        from: Option<f64>,
        to: Option<f64>,
        /// The time of the announcement.
        at: Option<Timestamp>,
        /// The tranches that the claim is about, as the schedule lists them.
        tranches: Vec<TrancheFacts>,
    },
    /// Other fields of events changed.
    FieldsRevised {
        fields: Vec<FieldChange>,
        events: usize,
        /// Whether nothing else changed in the schedule.
        is_only_change: bool,
    },
    SupplyChanged {
        of: SupplyTotal,
        from: f64,
        to: f64,
        ratio: Option<f64>,
    },
    /// Rows of a simpler resource, such as burns, changed.
    Rows {
        rows: RowSubject,
        change: RowChange,
    },
    /// The token is listed under a new slug.
    Relisted {
        name: String,
        from: String,
        to: String,
    },
}

/// Allocations that moved from one category to another.
#[derive(Clone, Debug, PartialEq)]
pub struct CategoryChange {
    pub allocations: Vec<String>,
    pub from: String,
    pub to: String,
}

/// A total of a token's supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupplyTotal {
    MaxSupply,
    Allocations,
}

/// The rows that a clause is about, such as burns.
#[derive(Clone, Debug, PartialEq)]
pub struct RowSubject {
    /// The noun for one row: `burn`.
    pub noun: &'static str,
    pub count: usize,
    /// The earliest date of the rows.
    pub date: Option<Timestamp>,
    /// The key of the first row.
    pub key: String,
}

/// A change of some rows.
#[derive(Clone, Debug, PartialEq)]
pub enum RowChange {
    Added {
        amount: Option<f64>,
    },
    Removed {
        amount: Option<f64>,
    },
    Resized {
        from: f64,
        to: f64,
        ratio: Option<f64>,
    },
    /// Amounts of past events changed.
    Restated {
        from: f64,
        to: f64,
        ratio: Option<f64>,
    },
    /// A field that changed, in the same way in all rows.
    Field(FieldChange),
    /// A field that changed in all rows, each in its own way.
    Fields(String),
    /// Rows changed in no listed field.
    Other,
}

/// The end of a summary about a linear unlock that ends earlier, from an API version that omits a later rate.
pub const RATE_MAY_CONTINUE: &str = "; the linear unlock may continue at another rate, which this API version does not show";

/// Writes the summary of a change.
pub fn summary(clauses: &[ChangeClause], unit: &ScheduleUnit<'_>) -> String {
    clauses.iter().map(|clause| clause.text(unit)).collect::<Vec<_>>().join("; ")
}

/// Returns a change on one line, without its token. Names the resource, unless it is an unlock or the summary names it: `burn moved from
/// 1 Mar 2026 to 4 Mar 2026`.
pub fn headline(row: &ChangeRow) -> String {
    let summary = one_line(&row.change.summary);
    match (row.resource, row.change.kind) {
        (Resource::Unlock, _) | (_, ChangeKind::Added | ChangeKind::Removed) => summary,
        (resource, _) if summary.contains(resource.as_str()) => summary,
        (resource, _) => format!("{resource} {summary}"),
    }
}

/// The sentence that several tokens with the same change can share: `moved by +3 days`. `None` for all other changes.
pub fn shared_change(change: &Change) -> Option<String> {
    match change.kind {
        ChangeKind::Rescheduled | ChangeKind::SeriesShifted => {
            let by = match (change.shift_days_min.zip(change.shift_days_max), change.shift_days) {
                (Some((least, most)), _) => shifts(least, most),
                (None, days) => shift(days?),
            };
            Some(format!("moved by {by}"))
        }
        ChangeKind::SeriesRescaled | ChangeKind::Resized => Some(format!("amounts changed by {}", ratio(change.ratio?))),
        ChangeKind::Revised => Some(format!("other facts of {} revised", plural(change.resource?.as_str()))),
        _ => None,
    }
}

impl ChangeClause {
    fn text(&self, unit: &ScheduleUnit<'_>) -> String {
        match self {
            Self::Added { tranches, rest } => format!("added: {}{}", unit.holding_when_due(tranches), unchanged_rest(*rest)),
            Self::Removed { tranches, last_visible_day, rest } => {
                let beyond = last_visible_day
                    .map(|last| format!(", or moved to a date after {}, which the API plan does not show", day(last)));
                let rest = unchanged_rest(*rest);
                format!("removed: {}{}{rest}", unit.holding_when_due(tranches), beyond.unwrap_or_default())
            }
            Self::EventRemoved { date: Some(at) } => format!("removed: the event of {}", day(*at)),
            Self::EventRemoved { date: None } => "removed: an event without a date".to_owned(),
            Self::EventMoved { tranches, dates, shift_days } => event_moved(unit, tranches, dates, *shift_days),
            Self::SeriesMoved { tranches, is_whole_schedule, shift_days, months, example, is_next } => {
                let subject = unit.series(tranches, *is_whole_schedule);
                let by = match (months, shift_days) {
                    (Some(months), _) => months_moved(*months),
                    (None, Some((least, most))) => format!(" by {}", shifts(*least, *most)),
                    (None, None) => String::new(),
                };
                let first = first_of(*is_whole_schedule, *is_next);
                match (example.first_date(), example.lost_date()) {
                    (Some(date), _) => format!("{subject} now dated; the {first}: {date} (no date before)"),
                    (None, Some(lost)) => format!("{subject} now without dates; the {first}: {lost}"),
                    (None, None) => format!("{subject} moved{by}; the {first} moves {}", example.text()),
                }
            }
            Self::Redated { tranches, example, is_next } => match tranches.len() {
                1 => format!("{} now dated: {}", unit.holding(tranches), example.precision_text()),
                _ => {
                    let subject = unit.series(tranches, false);
                    format!("{subject} now dated; the {}: {}", first_of(false, *is_next), example.precision_text())
                }
            },
            Self::StartMoved { tranches, from, to, shift_days } => {
                let (holding, pace) = (unit.holding(&tranches.after), tranches.pace_change());
                let (from, to) = tranches.date_texts(*from, *to);
                let (by, end) = (in_parentheses(Some(*shift_days)), tranches.same_end());
                format!("{holding}: linear unlock from {to} on instead of {from}{by}{end}{pace}")
            }
            Self::EndMoved { tranches, from, to, shift_days } => {
                let (holding, pace) = (unit.holding(&tranches.after), tranches.pace_change());
                let (from, to) = tranches.date_texts(*from, *to);
                let begin = tranches.same_begin();
                format!("{holding}: linear unlock until {to} instead of {from} ({}){begin}{pace}", shift(*shift_days))
            }
            Self::SomeEndsMoved { segments, dates } => {
                format!("the end of {} moved {}", count(*segments, "linear unlock"), dates.text())
            }
            Self::Rescaled { allocations, tranches, ratio: by, from, to } => {
                let (from, to) = two_amounts(*from, *to);
                let tranches = count(*tranches, "tranche");
                format!("{tranches} of {} resized {}, from {from} to {to} in total", names_of(allocations), ratio(*by))
            }
            Self::Resized { tranches, ratio, rest } => tranches.resized(*ratio, *rest),
            Self::Reallocated { amount, from, to, tranches } => {
                let names = |side: &[(String, f64)]| side.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
                let dates =
                    tranches.as_ref().map(|tranches| tranches.transfer_dates(&names(from), &names(to))).unwrap_or_default();
                format!("{}{dates}", unit.transfer(*amount, &shares(from), &shares(to)))
            }
            Self::SplitOrMerged(tranches) => unit.split_or_merged(tranches),
            Self::Restructured(tranches) => unit.restructured(tranches),
            Self::Renamed { names, categories, amounts, tranches: 0 } => renamed(names, categories, amounts),
            Self::Renamed { names, categories, amounts, tranches } => {
                format!("{} ({})", renamed(names, categories, amounts), count(*tranches, "tranche"))
            }
            Self::AllocationsRelisted { from, to } => relisted(unit, from, to),
            Self::Rewritten { before, after, allocations, renamed: names } => {
                let mut clauses = vec![rewritten(before, after)];
                clauses.extend(rewritten_allocations(allocations));
                clauses.extend((!names.is_empty()).then(|| renamed(names, &[], &[])));
                clauses.join("; ")
            }
            Self::Committed { allocations, from, to, at, tranches } => {
                let listed = unit.holding_when_due(tranches);
                committed(allocations, *from, *to, *at, &listed)
            }
            Self::FieldsRevised { fields, events, is_only_change } => revised(fields, *events, *is_only_change),
            Self::SupplyChanged { of, from, to, ratio } => {
                let what = match of {
                    SupplyTotal::MaxSupply => "maximum supply",
                    SupplyTotal::Allocations => "total of the allocations",
                };
                format!("{what} changed from {} to {}{}", amount(*from), amount(*to), times(*ratio))
            }
            Self::Rows { rows, change } => row_change(rows, change),
            Self::Relisted { name, from, to } => format!("the source lists {name} as {to} now, no longer as {from}"),
        }
    }
}

fn event_moved(unit: &ScheduleUnit<'_>, tranches: &[TrancheFacts], dates: &DateChange, shift_days: Option<(f64, f64)>) -> String {
    let holding = unit.holding(tranches);
    if let Some(date) = dates.first_date() {
        return format!("{holding} now dated: {date} (no date before)");
    }
    if let Some(lost) = dates.lost_date() {
        return format!("{holding}: {lost}");
    }
    let of_linear = if are_linear(tranches) { "linear unlock of " } else { "" };
    format!("{of_linear}{holding} moved {}{}", dates.text(), in_parentheses(shift_days))
}

fn relisted(unit: &ScheduleUnit<'_>, from: &[(String, f64)], to: &[(String, f64)]) -> String {
    let verb = if from.len() > 1 { "are" } else { "is" };
    let sum = |side: &[(String, f64)]| side.iter().map(|(_, tokens)| tokens).sum::<f64>();
    let total = if is_close(sum(from), sum(to), MAX_ROUNDING) {
        format!("; the total of {} is unchanged", unit.amount_and_share(sum(to)))
    } else {
        String::new()
    };
    format!("{} {verb} now listed as {}{total}", shares(from), shares(to))
}

fn revised(fields: &[FieldChange], events: usize, is_only_change: bool) -> String {
    let clauses: Vec<String> = fields.iter().take(MAX_FIELDS).map(field_change).collect();
    let events = if events > 1 { format!(" ({})", count(events, "event")) } else { String::new() };
    let is_label_only = is_only_change && fields.iter().all(|field| is_label(&field.field));
    let unchanged = if is_label_only { "no date or amount changed; " } else { "" };
    format!("{unchanged}{}{events}", clauses.join("; "))
}

/// ` by +3 months`.
fn months_moved(months: i32) -> String {
    let sign = if months < 0 { "-" } else { "+" };
    format!(" by {sign}{}", count(months.unsigned_abs(), "month"))
}

/// Names the first unlock of a series. Other unlocks of its allocations may come before it, except if it is the whole schedule.
fn first_of(is_whole_schedule: bool, is_next: bool) -> &'static str {
    match (is_whole_schedule, is_next) {
        (true, true) => "next unlock",
        (true, false) => "first unlock",
        (false, true) => "next of them",
        (false, false) => "first of them",
    }
}

/// A range of shifts in parentheses: ` (+4 days)`. Empty if the shifts are unknown.
fn in_parentheses(shift_days: Option<(f64, f64)>) -> String {
    shift_days.map(|(least, most)| format!(" ({})", shifts(least, most))).unwrap_or_default()
}

/// A ratio in parentheses: ` (×2)`. Empty if it is unknown.
fn times(by: Option<f64>) -> String {
    by.map(|by| format!(" ({})", ratio(by))).unwrap_or_default()
}

/// `; the other 10.00M of that unlock remain`. Empty if there is no rest. Another change may say that these go to other recipients.
fn unchanged_rest(rest: Option<f64>) -> String {
    rest.map(|rest| format!("; the other {} of that unlock remain", amount(rest))).unwrap_or_default()
}

fn names_of(all: &[String]) -> String {
    names(all.iter().map(String::as_str))
}

/// Allocations with their amounts, the largest first: `Farm (10.00M) and Treasury (5.00M)`. A single one has no amount.
fn shares(all: &[(String, f64)]) -> String {
    let mut sorted: Vec<&(String, f64)> = all.iter().collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if let [(only, _)] = sorted[..] {
        return name(only);
    }
    let shown = if sorted.len() > MAX_SHARES { MAX_SHARES - 1 } else { sorted.len() };
    let mut texts: Vec<String> =
        sorted.iter().take(shown).map(|(allocation, tokens)| format!("{} ({})", name(allocation), amount(*tokens))).collect();
    if sorted.len() > shown {
        let rest = sorted.iter().skip(shown).map(|(_, tokens)| tokens).sum();
        texts.push(format!("{} more ({})", sorted.len() - shown, amount(rest)));
    }
    list(&texts)
}

/// Two amounts as texts that differ if they do.
#[must_use]
pub fn two_amounts(from: f64, to: f64) -> (String, String) {
    match (amount(from), amount(to)) {
        // With fewer digits, different amounts can be equal texts.
        (a, b) if a == b && !is_close(from, to, 1e-9) => {
            let digits = |value: f64| if value.abs() < 1e3 { grouped(value) } else { grouped(value.round()) };
            (digits(from), digits(to))
        }
        texts => texts,
    }
}

fn two_or_unknown(from: Option<f64>, to: Option<f64>) -> (String, String) {
    from.zip(to).map_or_else(|| (amount_or_unknown(from), amount_or_unknown(to)), |(from, to)| two_amounts(from, to))
}

fn amount_or_unknown(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN_AMOUNT.to_owned(), amount)
}

/// `Team renamed Core Team; Farm filed under Community instead of Treasury`.
fn renamed(names: &[(String, String)], categories: &[CategoryChange], amounts: &[f64]) -> String {
    let mut clauses: Vec<String> = Vec::new();
    match names {
        [] => {}
        [(a, b), (c, d)] if a == d && b == c => {
            let of = |at: usize| amounts.get(at).map(|tokens| format!(" ({})", amount(*tokens))).unwrap_or_default();
            let (first, second) = (of(0), of(1));
            clauses.push(format!(
                "{}{first} is now called {}, and {}{second} is now called {}",
                name(a),
                name(b),
                name(c),
                name(d)
            ));
        }
        [(from, to)] => clauses.push(format!("{} renamed {}", name(from), name(to))),
        several => {
            let pairs: Vec<String> =
                several.iter().take(MAX_RENAMED).map(|(from, to)| format!("{} → {}", name(from), name(to))).collect();
            let others = several.len().saturating_sub(MAX_RENAMED);
            let more = if others > 0 { format!(" and {others} more") } else { String::new() };
            clauses.push(format!("{} renamed: {}{more}", count(several.len(), "allocation"), pairs.join("; ")));
        }
    }
    clauses.extend(categories.iter().map(|CategoryChange { allocations, from, to }| {
        format!("{} filed under {} instead of {}", names_of(allocations), name(to), name(from))
    }));
    clauses.join("; ")
}

/// `project announced on 16 Apr 2026 that it will release 20.00M of Team; the schedule still says 30.00M of Team, on 1 May 2026`. A project
/// announces how many of the scheduled tokens it will claim, before the unlock.
fn committed(allocations: &[String], from: Option<f64>, to: Option<f64>, at: Option<Timestamp>, listed: &str) -> String {
    let names = names_of(allocations);
    let when = at.map(|at| format!(" on {}", day(at))).unwrap_or_default();
    let to = amount_or_unknown(to);
    let instead = from.map(|from| format!(" instead of {}", amount(from))).unwrap_or_default();
    format!("project announced{when} that it will release {to}{instead} of {names}; the schedule still says {listed}")
}

fn row_change(rows: &RowSubject, change: &RowChange) -> String {
    let subject = row_subject(rows);
    let with_amount = |verb: &str, of: Option<f64>| {
        let of = of.map(|of| format!(", {}", amount(of))).unwrap_or_default();
        format!("{verb}: {}{of}", subject.trim_end_matches(','))
    };
    let from_to = |verb: &str, from: f64, to: f64, by: Option<f64>| {
        format!("{subject} {verb} from {} to {}{}", amount(from), amount(to), times(by))
    };
    match change {
        RowChange::Added { amount } => with_amount("added", *amount),
        RowChange::Removed { amount } => with_amount("removed", *amount),
        RowChange::Resized { from, to, ratio } => from_to("resized", *from, *to, *ratio),
        RowChange::Restated { from, to, ratio } => from_to("restated", *from, *to, *ratio),
        RowChange::Field(FieldChange { field, from, .. }) if field == "allocationName" => {
            format!("{subject} renamed from {}", field_value(from))
        }
        RowChange::Field(field) => format!("{subject} {}", field_change(field)),
        RowChange::Fields(field) if field == "allocationName" => format!("{subject} renamed"),
        RowChange::Fields(field) => format!("{subject} {} changed", field_label(field)),
        RowChange::Other => format!("{subject} revised"),
    }
}

/// `burn of 1 Feb 2026`, `3 burns from 1 Feb 2026 on`, `allocation Team`, `3 allocations, Team among them,`.
fn row_subject(RowSubject { noun, count: rows, date, key }: &RowSubject) -> String {
    match (*rows, date) {
        (1, Some(at)) => format!("{noun} of {}", day(*at)),
        (1, None) => format!("{noun} {}", name(key)),
        (rows, Some(at)) => format!("{} from {} on", count(rows, noun), day(*at)),
        (rows, None) => format!("{}, {} among them,", count(rows, noun), name(key)),
    }
}

#[cfg(test)]
mod tests;

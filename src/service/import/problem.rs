//! The problems of an import, with file and record.

use serde::Serialize;

use crate::data_folder::SourceFile;
use model::Timestamp;
use model::wire::{Maybe, ReadJson, UnlockEvent, collect_parse_warnings};

/// The maximum number of listed problems. Further problems are only counted.
const MAX_PROBLEMS: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportProblem {
    pub file: String,
    /// The path of the record, such as `[3].cliffUnlocks.cliffAmount`. Empty for the whole file.
    pub record: String,
    pub problem: String,
}

impl std::fmt::Display for ImportProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ImportProblem { file, record, problem } = self;
        if record.is_empty() { write!(f, "{file}: {problem}") } else { write!(f, "{file}: {record}: {problem}") }
    }
}

#[derive(Default)]
pub(super) struct ProblemList {
    pub listed: Vec<ImportProblem>,
    pub total: usize,
}

impl ProblemList {
    pub fn add(&mut self, file: &str, record: impl Into<String>, problem: impl Into<String>) {
        self.total += 1;
        if self.listed.len() < MAX_PROBLEMS {
            self.listed.push(ImportProblem { file: file.to_owned(), record: record.into(), problem: problem.into() });
        }
    }

    /// Parses a file, and adds a problem for each parse warning.
    pub fn parse<T: ReadJson>(&mut self, file: &SourceFile) -> Option<T> {
        let (result, parse_warnings, total) = collect_parse_warnings(|| T::read_json(&file.text));
        self.total += total - parse_warnings.len();
        for warning in parse_warnings {
            self.add(&file.path, warning.path, warning.problem.replace("; the field is ignored", ""));
        }
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(&file.path, "", error.to_string());
                None
            }
        }
    }

    /// Checks the amounts and dates of an unlock event.
    pub fn event(&mut self, file: &SourceFile, index: usize, event: &UnlockEvent) {
        if let Some(cliffs) = event.cliff_unlocks.get() {
            let record = format!("[{index}].cliffUnlocks");
            self.check_amounts(file, &record, &[("cliffAmount", cliffs.cliff_amount), ("cliffValue", cliffs.cliff_value)]);
            for (index, item) in cliffs.allocation_breakdown.items().iter().enumerate() {
                self.check_amounts(
                    file,
                    &format!("{record}.allocationBreakdown[{index}]"),
                    &[("cliffAmount", item.cliff_amount)],
                );
            }
        }
        if let Some(linears) = event.linear_unlocks.get() {
            let record = format!("[{index}].linearUnlocks");
            self.check_amounts(file, &record, &[("linearAmount", linears.linear_amount)]);
            for (index, item) in linears.allocation_breakdown.items().iter().enumerate() {
                let record = format!("{record}.allocationBreakdown[{index}]");
                self.check_amounts(file, &record, &[("linearAmount", item.linear_amount), ("dailyAmount", item.daily_amount)]);
                self.check_order(file, &record, ("beginDate", item.begin_date), ("endDate", item.end_date));
            }
        }
    }

    /// Checks that amounts are not negative.
    pub fn check_amounts(&mut self, file: &SourceFile, record: &str, amounts: &[(&str, Maybe<f64>)]) {
        for (name, amount) in amounts {
            if amount.copied().is_some_and(|amount| amount < 0.0) {
                self.add(&file.path, record, format!("{name} is negative"));
            }
        }
    }

    /// Checks that the end is not before the beginning.
    pub fn check_order(
        &mut self,
        file: &SourceFile,
        record: &str,
        begin: (&str, Maybe<Timestamp>),
        end: (&str, Maybe<Timestamp>),
    ) {
        if let (Some(from), Some(until)) = (begin.1.copied(), end.1.copied())
            && until < from
        {
            self.add(&file.path, record, format!("{} is before {}", end.0, begin.0));
        }
    }

    /// Parses a file with a list, and checks that each record has a date.
    pub fn rows<T>(&mut self, file: &SourceFile, key: &str, date: fn(&T) -> Option<Timestamp>) -> Vec<T>
    where
        Maybe<Vec<T>>: ReadJson,
    {
        let rows = self.parse::<Maybe<Vec<T>>>(file).and_then(Maybe::into_option).unwrap_or_default();
        self.check_dates(file, "", key, &rows, date);
        rows
    }

    pub fn check_dates<T>(&mut self, file: &SourceFile, list: &str, key: &str, rows: &[T], date: fn(&T) -> Option<Timestamp>) {
        for (index, row) in rows.iter().enumerate() {
            if date(row).is_none() {
                self.add(&file.path, format!("{list}[{index}]"), format!("{key} is missing"));
            }
        }
    }
}

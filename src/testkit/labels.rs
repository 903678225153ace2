//! Compares reported changes with the labels in `data/revisions/truth.toml`. Independent of the diff: the labels were written by hand, and
//! only the documented fields of a change are used.

use std::{collections::BTreeSet, path::Path};

use model::change::{Change, ChangeKind, Fact};

/// The label of one correction, written by an analyst.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Correction {
    pub token: String,
    /// The publication time of the corrected version.
    pub at: String,
    pub sentence: String,
    /// The reasoning of the analyst, for readers of the file.
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub change: Vec<Label>,
}

/// An expected change, as labeled.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Label {
    pub kind: String,
    #[serde(default)]
    pub also: Vec<String>,
    pub scope: String,
    pub allocations: Vec<String>,
    #[serde(default)]
    pub was: Vec<String>,
    /// Not compared, because the number depends on how unchanged tranches are counted.
    pub tranches: Option<u32>,
    pub amount: Option<f64>,
    pub from_amount: Option<f64>,
    pub to_amount: Option<f64>,
    pub ratio: Option<f64>,
    pub from_date: Option<String>,
    pub to_date: Option<String>,
    pub from_end: Option<String>,
    pub to_end: Option<String>,
    pub shift_days: Option<[f64; 2]>,
    /// Not compared here. The tests of the data check it.
    #[serde(default)]
    pub reconciles: std::collections::BTreeMap<String, f64>,
}

#[derive(serde::Deserialize)]
struct CorrectionLabels {
    correction: Vec<Correction>,
}

/// All labels of a folder of revisions.
pub fn labels(folder: &Path) -> Vec<Correction> {
    let text = std::fs::read_to_string(folder.join("truth.toml")).expect("a readable file");
    toml::from_str::<CorrectionLabels>(&text).expect("valid labels").correction
}

/// Compares the reported changes with a label. Returns the differences.
pub fn faults(correction: &Correction, reported: &[Change]) -> Vec<String> {
    let mut faults = Vec::new();
    // A changed data source may be reported with the correction, separately, or not at all.
    let substance: Vec<&Change> = reported.iter().filter(|change| change.kind != ChangeKind::Revised).collect();
    if substance.len() > 2 {
        faults.push(format!("{} changes reported for one correction", substance.len()));
    }
    let wanted: Vec<&Label> = correction.change.iter().filter(|label| label.kind != "revised").collect();
    for label in &wanted {
        let nearest = substance.iter().map(|change| label.differences(change, wanted.len() == 1)).min_by_key(Vec::len);
        match nearest {
            None => faults.push(format!("{} is not reported", label.kind)),
            Some(missed) => faults.extend(missed),
        }
    }
    for change in &substance {
        let is_known = wanted.iter().any(|label| label.allows(change.kind));
        if !is_known {
            faults.push(format!("{} is reported but not expected", change.kind));
        }
    }
    faults
}

impl Label {
    fn allows(&self, kind: ChangeKind) -> bool {
        self.kind == kind.as_str() || self.also.iter().any(|also| also == kind.as_str())
    }

    /// Returns the differences between this label and a change.
    fn differences(&self, change: &Change, is_alone: bool) -> Vec<String> {
        let kind = change.kind.as_str();
        if !self.allows(change.kind) {
            return vec![format!("{} is reported as {kind}", self.kind); 9];
        }
        let mut faults = Vec::new();
        let said: BTreeSet<&str> = change.allocations.iter().map(|part| part.name.as_str()).collect();
        if self.kind != kind {
            // An equally valid kind has different fields, but it must be about the same allocations.
            if !self.allocations.iter().any(|name| said.contains(name.as_str())) && change.kind != ChangeKind::Rewritten {
                faults.push(format!("{kind} names {said:?}, not {:?}", self.allocations));
            }
            return faults;
        }
        let named: BTreeSet<&str> = self.allocations.iter().map(String::as_str).collect();
        let extra: Vec<&&str> = said.difference(&named).filter(|name| !self.was.iter().any(|was| was == **name)).collect();
        let lacking: Vec<&&str> = named.difference(&said).collect();
        if change.kind != ChangeKind::Rewritten && (!extra.is_empty() || !lacking.is_empty()) {
            faults.push(format!("{kind} names {extra:?} too much, and lacks {lacking:?}"));
        }
        let about = |what: &str, wanted: Option<f64>, said: Option<f64>, faults: &mut Vec<String>| {
            if let Some(wanted) = wanted
                && said.is_none_or(|said| (said - wanted).abs() > 1e-4 * wanted.abs())
            {
                faults.push(format!("{kind}: {what} is {wanted}, reported is {said:?}"));
            }
        };
        let sum = |side: fn(&model::change::AllocationChange) -> &Option<Fact>| {
            let amounts: Vec<f64> = change.allocations.iter().filter_map(|part| side(part).as_ref()?.amount()).collect();
            (!amounts.is_empty()).then(|| amounts.iter().sum::<f64>())
        };
        if !matches!(change.kind, ChangeKind::Renamed | ChangeKind::Rewritten | ChangeKind::Resized | ChangeKind::SeriesRescaled)
        {
            about("the amount", self.amount, change.amount, &mut faults);
        }
        if change.kind == ChangeKind::Rewritten {
            let whole = |amount: Option<f64>| amount.filter(|_| self.scope == "token" && is_alone);
            about("the total before", whole(self.from_amount), change.from.as_ref().and_then(Fact::amount), &mut faults);
            about("the total after", whole(self.to_amount), change.to.as_ref().and_then(Fact::amount), &mut faults);
        } else {
            about("the amount before", self.from_amount, sum(|part| &part.from), &mut faults);
            about("the amount after", self.to_amount, sum(|part| &part.to), &mut faults);
            // The ratio of an unlock compares the whole events, not their allocations.
            let ratio = sum(|part| &part.from).zip(sum(|part| &part.to)).map(|(from, to)| to / from).or(change.ratio);
            about("the ratio", self.ratio, ratio, &mut faults);
        }
        if let Some([least, most]) = self.shift_days {
            // A shift from a placeholder date is meaningless and may be omitted.
            let is_placeholder = self.from_date.as_ref().is_some_and(|from| from.starts_with("1970-"));
            let said = (change.shift_days_min.or(change.shift_days), change.shift_days_max.or(change.shift_days));
            let is_near = matches!(said, (Some(a), Some(b)) if (a - least).abs() < 0.05 && (b - most).abs() < 0.05);
            let is_left_out = is_placeholder && said == (None, None);
            if !is_near && !is_left_out {
                faults.push(format!("{kind}: the shift is {least} to {most} days, reported is {said:?}"));
            }
        }
        let day = |fact: &Option<Fact>| fact.as_ref().and_then(Fact::time).map(|at| at.format("%Y-%m-%d").to_string());
        if matches!(change.kind, ChangeKind::Rescheduled | ChangeKind::SeriesShifted) {
            // If only the end moved, compare the ends.
            let wanted = (self.from_date.as_ref().or(self.from_end.as_ref()), self.to_date.as_ref().or(self.to_end.as_ref()));
            let first = |side: fn(&model::change::AllocationChange) -> &Option<Fact>| {
                change.allocations.iter().filter_map(|part| day(side(part))).min()
            };
            for (what, wanted, said, least) in [
                ("before", wanted.0, day(&change.from), first(|part| &part.from)),
                ("after", wanted.1, day(&change.to), first(|part| &part.to)),
            ] {
                if let Some(wanted) = wanted
                    && said.as_deref() != wanted.get(..10)
                    && least.as_deref() != wanted.get(..10)
                    && !(said.is_none() && wanted.starts_with("1970-"))
                {
                    faults.push(format!("{kind}: the first date {what} is {wanted}, reported is {said:?}"));
                }
            }
        }
        if change.kind == ChangeKind::Restructured {
            let brief = |at: Option<model::supply::Timestamp>| at.map(|at| at.format("%Y-%m-%d").to_string());
            let (before, after) = (change.before.as_ref(), change.after.as_ref());
            for (what, wanted, said) in [
                ("begin before", &self.from_date, brief(before.and_then(|brief| brief.begin))),
                ("begin after", &self.to_date, brief(after.and_then(|brief| brief.begin))),
                ("end before", &self.from_end, brief(before.and_then(|brief| brief.end))),
                ("end after", &self.to_end, brief(after.and_then(|brief| brief.end))),
            ] {
                if let Some(wanted) = wanted
                    && said.as_deref() != wanted.get(..10)
                {
                    faults.push(format!("{kind}: the {what} is {wanted}, reported is {said:?}"));
                }
            }
        }
        faults
    }
}

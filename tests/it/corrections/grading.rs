//! Grades the reported changes of a correction against its label. Reads only the JSON of the changes and shares no code with the program.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::label::{Delay, LabeledCorrection, Silence, Story};

/// The grade on a report, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    Right,
    Partly,
    NeverReported,
    Wrong,
}

/// A reported change, with the number of the poll that reported it. Poll 0 is the first one after the correction.
#[derive(Clone, Debug)]
pub struct ReportedChange {
    pub poll: i32,
    pub change: Value,
}

#[derive(Debug)]
pub struct Grading {
    pub grade: Grade,
    pub reasons: Vec<String>,
    /// Observations that do not affect the grade.
    pub remarks: Vec<String>,
}

/// Relative tolerance of amounts: labels and summaries are rounded.
const AMOUNT_TOLERANCE: f64 = 1e-3;
/// Relative tolerance of allocation totals.
const TOTAL_TOLERANCE: f64 = 2e-4;
/// Relative tolerance of amounts in texts, which have two decimals.
const TEXT_TOLERANCE: f64 = 6e-3;
/// The last poll that may report a removal with the default number of confirmations.
const LAST_PROOF_POLL: i32 = 1;

/// Kinds of one meaning. A kind of the right family with the right numbers is partly right.
const FAMILIES: [&[&str]; 4] = [
    &["rescheduled", "series_shifted"],
    &["resized", "series_rescaled"],
    &["split", "merged", "restructured"],
    &["renamed", "reallocated"],
];

impl ReportedChange {
    fn kind(&self) -> &str {
        self.change["kind"].as_str().unwrap_or_default()
    }

    fn is_move(&self) -> bool {
        ["rescheduled", "series_shifted"].contains(&self.kind())
    }

    fn allocations(&self) -> impl Iterator<Item = &Value> {
        self.change["allocations"].as_array().into_iter().flatten()
    }

    /// All allocation names that the change mentions, former ones included.
    fn names(&self) -> BTreeSet<&str> {
        let of_parts = self.allocations().flat_map(|part| [&part["name"], &part["from"], &part["to"]]);
        let fields = self.change["fields"].as_array().into_iter().flatten();
        let of_names = fields.filter(|field| field["field"] == "allocationName").flat_map(|field| [&field["from"], &field["to"]]);
        of_parts.chain(of_names).chain([&self.change["from"], &self.change["to"]]).filter_map(Value::as_str).collect()
    }

    /// Whether a reader of the summary learns that it is about an allocation of the story.
    fn names_story(&self, story: &Story) -> bool {
        let names = story.allocations.iter().chain(&story.was);
        match self.change["summary"].as_str() {
            Some(text) => {
                [" more", "whole schedule"].iter().any(|all| text.contains(all))
                    || names.clone().any(|name| text.contains(name.as_str()))
            }
            None => self.allocations().next().is_some(),
        }
    }

    /// Reported difference of the total of each allocation.
    fn differences(&self) -> BTreeMap<&str, f64> {
        let has_amounts = !self.is_move() && !["renamed", "revised", "committed"].contains(&self.kind());
        let mut differences = BTreeMap::new();
        for part in self.allocations().filter(|_| has_amounts) {
            let amount = |field: &str| part[field].as_f64().unwrap_or(0.0);
            *differences.entry(part["name"].as_str().unwrap_or_default()).or_default() += amount("to") - amount("from");
        }
        differences
    }
}

fn is_near(one: f64, other: f64, tolerance: f64) -> bool {
    (one - other).abs() <= tolerance * one.abs().max(other.abs())
}

/// How well a change fits a story.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Right,
    Tolerated,
    SameFamily,
}

fn fit(label: &LabeledCorrection, story: &Story, reported: &ReportedChange) -> Option<Fit> {
    let names = reported.names();
    let is_vague = story.allocations.is_empty() || reported.allocations().next().is_none();
    let is_about = is_vague || story.allocations.iter().chain(&story.was).any(|name| names.contains(name.as_str()));
    let has = |kinds: &[String]| kinds.iter().any(|kind| kind == reported.kind());
    if !is_about {
        None
    } else if has(&story.kinds) || has(&label.together) {
        Some(Fit::Right)
    } else if has(&story.tolerated) || (story.no_shift && reported.is_move()) {
        Some(Fit::Tolerated)
    } else {
        let is_of_family = |family: &&&[&str]| family.contains(&reported.kind());
        let family = FAMILIES.iter().find(is_of_family)?;
        story.kinds.iter().any(|kind| family.contains(&kind.as_str())).then_some(Fit::SameFamily)
    }
}

/// Collects what is wrong with a report.
#[derive(Default)]
struct Objections {
    wrong: Vec<String>,
    partly: Vec<String>,
    remarks: Vec<String>,
}

pub fn grade(label: &LabeledCorrection, reports: &[ReportedChange]) -> Grading {
    if reports.is_empty() {
        let grade = if label.silent == Silence::No { Grade::NeverReported } else { Grade::Right };
        return Grading { grade, reasons: Vec::new(), remarks: Vec::new() };
    }
    let mut objections = Objections::default();
    if label.silent == Silence::Must {
        objections.wrong.push("reported although there is nothing to report".into());
    }
    let matches: Vec<Vec<(usize, Fit)>> = label
        .story
        .iter()
        .map(|story| {
            let fits = |(number, report)| fit(label, story, report).map(|fit| (number, fit));
            reports.iter().enumerate().filter_map(fits).collect()
        })
        .collect();
    check_stories(label, reports, &matches, &mut objections);
    check_changes(label, reports, &matches, &mut objections);
    check_removals(label, reports, &mut objections);
    check_books(label, reports, &matches, &mut objections);
    check_texts(reports, &mut objections);
    check_timing(label, reports, &mut objections);
    let grade = match (objections.wrong.is_empty(), objections.partly.is_empty()) {
        (false, _) => Grade::Wrong,
        (true, false) => Grade::Partly,
        (true, true) => Grade::Right,
    };
    objections.wrong.extend(objections.partly);
    Grading { grade, reasons: objections.wrong, remarks: objections.remarks }
}

fn check_stories(
    label: &LabeledCorrection,
    reports: &[ReportedChange],
    matches: &[Vec<(usize, Fit)>],
    objections: &mut Objections,
) {
    for (story, matched) in label.story.iter().zip(matches) {
        let operation = &story.operation;
        let Some((_, best)) = matched.iter().min_by_key(|(_, fit)| *fit) else {
            objections.partly.push(format!("{operation} of {:?} is not reported", story.allocations));
            continue;
        };
        if *best != Fit::Right {
            let kinds: Vec<&str> = matched.iter().map(|(number, _)| reports[*number].kind()).collect();
            objections.partly.push(format!("{operation} is reported as {kinds:?} instead of {:?}", story.kinds));
        }
        for (number, fit) in matched {
            if fit == best {
                check_facts(label, story, (*number, reports), matches, objections);
            }
        }
        let names: BTreeSet<&str> = matched.iter().flat_map(|(number, _)| reports[*number].names()).collect();
        let is_named = matched.iter().any(|(number, _)| reports[*number].names_story(story));
        if !story.allocations.is_empty() && !is_named {
            objections.partly.push(format!("{operation}: the text names no allocation"));
        }
        if !story.was.iter().all(|name| names.contains(name.as_str())) {
            objections.partly.push(format!("{operation}: the former name {:?} is missing", story.was));
        }
    }
}

/// Compares the dates and amounts of a change with those of the stories that it stands for.
fn check_facts(
    label: &LabeledCorrection,
    story: &Story,
    (number, reports): (usize, &[ReportedChange]),
    matches: &[Vec<(usize, Fit)>],
    objections: &mut Objections,
) {
    let report = &reports[number];
    let operation = &story.operation;
    let is_matched = |number: usize, matched: &Vec<(usize, Fit)>| matched.iter().any(|(other, _)| *other == number);
    let stories: Vec<&Story> =
        label.story.iter().zip(matches).filter(|(_, matched)| is_matched(number, matched)).map(|(story, _)| story).collect();
    if report.is_move() {
        check_move(story, &stories, report, objections);
    }
    let amount_of: Option<fn(&Story) -> Option<f64>> = match report.kind() {
        "rescheduled" | "series_shifted" | "reallocated" => Some(|story| story.moved),
        "added" => Some(|story| story.gained),
        "removed" => Some(|story| story.lost),
        _ => None,
    };
    let expected: Option<f64> = amount_of.and_then(|amount_of| stories.iter().map(|story| amount_of(story)).sum());
    // Several changes of one kind may share the amount.
    let is_alike = |(other, alike): &(usize, &ReportedChange)| {
        alike.kind() == report.kind() && matches.iter().any(|matched| is_matched(*other, matched))
    };
    let all: f64 = reports.iter().enumerate().filter(is_alike).filter_map(|(_, alike)| alike.change["amount"].as_f64()).sum();
    if let (Some(expected), Some(actual)) = (expected, report.change["amount"].as_f64())
        && ![actual, all].iter().any(|amount| is_near(expected, *amount, AMOUNT_TOLERANCE))
    {
        objections.partly.push(format!("{operation}: {actual:.0} tokens instead of {expected:.0}"));
    }
    let claimed = report.change["to"].as_f64().filter(|_| report.kind() == "committed");
    if let (Some(claim), Some(actual)) = (story.claim, claimed)
        && !is_near(actual, claim, AMOUNT_TOLERANCE)
    {
        objections.partly.push(format!("{operation}: {actual:.0} instead of {claim:.0}"));
    }
    if ["restructured", "split", "merged"].contains(&report.kind()) {
        check_form(story, &stories, report, objections);
    }
}

/// Compares a move with the shift, the dates, and the ends of its stories.
fn check_move(story: &Story, stories: &[&Story], report: &ReportedChange, objections: &mut Objections) {
    let (change, operation) = (&report.change, &story.operation);
    let shift = change["shiftDays"].as_f64();
    if let (true, Some(days)) = (story.no_shift, shift) {
        objections.wrong.push(format!("{operation}: reported as a move by {days} days"));
        return;
    }
    // A text that also states the begin or end of a linear unlock says what moved and what did not.
    let says_all_moved = |summary: &str| summary.contains(" moved ") && !summary.contains(" instead of ");
    let moves_whole = story.begin.is_some() && story.shift.is_some();
    if story.end.is_some() && !moves_whole && change["summary"].as_str().is_some_and(says_all_moved) {
        objections.wrong.push(format!("{operation}: the text says that all of it moved, but only its begin or end did"));
    }
    let least = change["shiftDaysMin"].as_f64().or(shift);
    let greatest = change["shiftDaysMax"].as_f64().or(shift);
    let shifts = || stories.iter().filter_map(|story| story.shift);
    let (low, high) = (shifts().map(|(low, _)| low).reduce(f64::min), shifts().map(|(_, high)| high).reduce(f64::max));
    if let (Some(least), Some(greatest), Some(low), Some(high)) = (least, greatest, low, high)
        && (least < low || greatest > high)
    {
        objections.partly.push(format!("{operation}: moved by {least} to {greatest} days instead of {low:.0} to {high:.0}"));
    }
    for (field, expected) in [("from", &story.from), ("to", &story.to)] {
        let is_date_of = |story: &&Story, text: &str| [&story.from, &story.to].into_iter().flatten().any(|date| date == text);
        if let (Some(expected), Some(actual)) = (expected, change[field].as_str())
            && !stories.iter().any(|story| is_date_of(story, actual))
        {
            objections.partly.push(format!("{operation}: {field} {actual} instead of {expected}"));
        }
    }
}

/// Compares the total and the end of a schedule of another form with its stories.
fn check_form(story: &Story, stories: &[&Story], report: &ReportedChange, objections: &mut Objections) {
    let (change, operation) = (&report.change, &story.operation);
    if let (Some(end), Some(actual), [_]) = (&story.end, change["after"]["end"].as_str(), stories)
        && report.kind() == "restructured"
        && end != actual
    {
        objections.partly.push(format!("{operation}: ends on {actual} instead of {end}"));
    }
    let total = |side: &str| change[side]["total"].as_f64();
    if let (Some(before), Some(after)) = (total("before"), total("after"))
        && stories.iter().all(|story| story.total.as_deref() == Some("kept"))
        && !is_near(before, after, AMOUNT_TOLERANCE)
    {
        objections.wrong.push(format!("{operation}: the total changes from {before:.0} to {after:.0}, but it is conserved"));
    }
}

fn check_changes(
    label: &LabeledCorrection,
    reports: &[ReportedChange],
    matches: &[Vec<(usize, Fit)>],
    objections: &mut Objections,
) {
    for (number, report) in reports.iter().enumerate() {
        if !matches.iter().any(|matched| matched.iter().any(|(found, _)| *found == number)) && label.silent != Silence::Must {
            objections.wrong.push(format!("{} of {:?} did not happen", report.kind(), report.names()));
        }
        let is_same = |earlier: &&ReportedChange| {
            earlier.change["kind"] == report.change["kind"] && earlier.change["allocations"] == report.change["allocations"]
        };
        if reports[..number].iter().any(|earlier| is_same(&earlier)) {
            objections.wrong.push(format!("{} of {:?} is reported twice", report.kind(), report.names()));
        }
    }
    if label.silent != Silence::Must && reports.len() > label.max_changes {
        objections.partly.push(format!("{} changes instead of at most {}", reports.len(), label.max_changes));
    }
}

fn check_removals(label: &LabeledCorrection, reports: &[ReportedChange], objections: &mut Objections) {
    let mut removed: BTreeMap<&str, f64> = BTreeMap::new();
    for report in reports.iter().filter(|report| report.kind() == "removed") {
        for (name, difference) in report.differences() {
            *removed.entry(name).or_default() -= difference;
        }
        let summary = report.change["summary"].as_str().unwrap_or_default();
        if summary.contains("which the API plan does not show") {
            objections.remarks.push("a removal names a window edge".into());
        }
        if report.poll < LAST_PROOF_POLL {
            objections.remarks.push("removed without a confirmation".into());
        }
    }
    for (name, amount) in removed {
        let allowed: f64 = label
            .may_remove
            .iter()
            .filter(|removable| removable.allocation == name)
            .map(|removable| removable.amount)
            .sum::<f64>()
            + 0.0;
        if amount > allowed * (1.0 + AMOUNT_TOLERANCE) {
            objections.wrong.push(format!("false removal: {amount:.0} of {name}, of which {allowed:.0} were removed"));
        }
    }
}

/// Compares the sum of the reported differences with the real one. Allocations that were renamed, merged, or split are compared together.
fn check_books(
    label: &LabeledCorrection,
    reports: &[ReportedChange],
    matches: &[Vec<(usize, Fit)>],
    objections: &mut Objections,
) {
    let mut groups: Vec<BTreeSet<&str>> = Vec::new();
    for story in label.story.iter().filter(|story| !story.was.is_empty()) {
        let mut group: BTreeSet<&str> = story.allocations.iter().chain(&story.was).map(String::as_str).collect();
        join(&mut groups, &mut group);
    }
    for part in reports.iter().filter(|report| report.kind() == "renamed").flat_map(ReportedChange::allocations) {
        let mut group: BTreeSet<&str> = ["name", "from", "to"].iter().filter_map(|field| part[field].as_str()).collect();
        join(&mut groups, &mut group);
    }
    let group_of = |name: &str| {
        groups.iter().position(|group| group.contains(name)).map_or_else(|| name.to_owned(), |group| format!("group {group}"))
    };
    let mut sums: BTreeMap<String, (f64, f64, f64)> = BTreeMap::new();
    for report in reports {
        for (name, difference) in report.differences() {
            sums.entry(group_of(name)).or_default().0 += difference;
        }
    }
    for book in &label.books {
        let sum = sums.entry(group_of(&book.allocation)).or_default();
        sum.1 += book.after - book.before;
        sum.2 = sum.2.max(book.before).max(book.after);
    }
    let unreported: BTreeSet<String> = (label.story.iter().zip(matches))
        .filter(|(_, matched)| matched.is_empty())
        .flat_map(|(story, _)| story.allocations.iter().map(|name| group_of(name)))
        .collect();
    for (name, (reported, real, size)) in sums {
        let scale = if size > 0.0 { size } else { label.total.0 };
        let is_missing = reported == 0.0 && unreported.contains(&name);
        if (reported - real).abs() > TOTAL_TOLERANCE * scale && !is_missing {
            objections.wrong.push(format!("{name}: reported {reported:+.0}, really {real:+.0}"));
        }
    }
}

/// Adds a group of names and joins it with the groups that share a name with it.
fn join<'a>(groups: &mut Vec<BTreeSet<&'a str>>, group: &mut BTreeSet<&'a str>) {
    groups.retain(|other| {
        let is_apart = other.is_disjoint(group);
        if !is_apart {
            group.extend(other);
        }
        is_apart
    });
    groups.push(std::mem::take(group));
}

/// Compares the amounts of a summary with those of the allocations that it names.
fn check_texts(reports: &[ReportedChange], objections: &mut Objections) {
    let amounts = regex::Regex::new(r"from ([\d.]+)([KMBT]?) to ([\d.]+)([KMBT]?)\b").expect("a pattern");
    for report in reports.iter().filter(|report| ["resized", "series_rescaled"].contains(&report.kind())) {
        let summary = report.change["summary"].as_str().unwrap_or_default();
        let Some(found) = amounts.captures(summary) else { continue };
        let number = |digits: usize, unit: usize| {
            let scale = match &found[unit] {
                "K" => 1e3,
                "M" => 1e6,
                "B" => 1e9,
                "T" => 1e12,
                _ => 1.0,
            };
            found[digits].parse::<f64>().unwrap_or_default() * scale
        };
        let is_short = summary.contains(" more");
        let is_named = |part: &&Value| is_short || part["name"].as_str().is_some_and(|name| summary.contains(name));
        let sum = |field: &str| report.allocations().filter(is_named).filter_map(|part| part[field].as_f64()).sum::<f64>();
        let (from, to) = (sum("from"), sum("to"));
        if !is_near(from, number(1, 2), TEXT_TOLERANCE) || !is_near(to, number(3, 4), TEXT_TOLERANCE) {
            objections.wrong.push(format!("the text says {}, the named allocations {from:.0} to {to:.0}", &found[0]));
        }
        let of_parts: f64 = report.differences().values().sum();
        let whole = |field: &str| report.change[field].as_f64().unwrap_or(0.0);
        if report.kind() == "resized" && (whole("to") - whole("from")).signum() * of_parts.signum() < 0.0 {
            objections.remarks.push("change.ratio has the wrong direction".into());
        }
    }
}

fn check_timing(label: &LabeledCorrection, reports: &[ReportedChange], objections: &mut Objections) {
    let last = reports.iter().map(|report| report.poll).max().unwrap_or_default();
    let latest = if label.hold == Delay::Proof { LAST_PROOF_POLL } else { 0 };
    if reports.iter().any(|report| report.poll < 0) {
        objections.wrong.push("reported before it happened".into());
    }
    if last > latest {
        objections.partly.push(format!("reported only by poll {last} after the correction"));
    }
    let first = reports.iter().map(|report| report.poll).min().unwrap_or_default();
    if first != last {
        objections.remarks.push("reported in parts, by several polls".into());
    }
}

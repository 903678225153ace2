//! Plays labeled corrections through the running app with its default config, and grades what it reports.

mod grading;
mod label;
mod schedule;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Mutex,
};

use chrono::TimeDelta;
use grading::{Grade, Grading, ReportedChange, grade};
use label::LabeledCorrection;
use schedule::RowSchedule;
use serde_json::{Value, json};

use crate::support::{Setup, TestApp, time};

/// The publication time of every correction.
const PUBLISHED: &str = "2026-04-06T09:00:00Z";
const FIRST_POLL: &str = "2026-04-05T00:10:00Z";
/// Polls before the correction, six hours apart, as by the default config.
const POLLS_BEFORE: i32 = 5;
/// Polls after the correction: enough to release a held response.
const POLLS_AFTER: i32 = 8;

/// Corrections that must be reported right, and limits of the other grades. A better program raises the first and lowers the others.
const MIN_RIGHT: usize = 263;
const MAX_WRONG: usize = 1;
const MAX_NEVER_REPORTED: usize = 2;

const RULES: &str = "[[rule]]\nalert = \"ScheduleChanged\"\non = \"unlock.*\"\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corrections")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn schedules() -> BTreeMap<String, RowSchedule> {
    RowSchedule::load_all(&read(&folder().join("schedules.jsonl")))
}

/// The corrections of `labels.toml`, or of the file that the environment names, and whether they are the bundled ones.
fn corrections() -> (Vec<LabeledCorrection>, bool) {
    let other = std::env::var_os("CLIFFWATCH_TEST_LABELS").map(PathBuf::from);
    (label::load(&read(other.as_deref().unwrap_or(&folder().join("labels.toml")))), other.is_none())
}

/// The schedules before and after a correction.
fn versions(schedules: &BTreeMap<String, RowSchedule>, correction: &LabeledCorrection) -> (RowSchedule, RowSchedule) {
    let listed = &schedules[&correction.token];
    let before = listed.corrected(&correction.setup, &listed.updated);
    let after = before.corrected(&correction.steps, PUBLISHED);
    (before, after)
}

/// Polls the first version several times, then the corrected one until nothing is held. Returns all reported changes.
async fn play(before: RowSchedule, after: &RowSchedule) -> Vec<ReportedChange> {
    let token = serde_json::from_value(json!({
        "id": before.token, "name": before.name, "symbol": before.symbol, "listedMethod": before.method,
        "marketCap": before.market_cap, "maxSupply": before.books().values().sum::<f64>(), "hasBurn": false, "hasBuyback": false,
        "lastUpdatedDate": before.updated
    }))
    .expect("a token");
    let fill = move |edit: &mut cliffwatch::service::Edit<'_>| {
        edit.put_token(&token)?;
        edit.put_events(&before.token, before.events())
    };
    // Other receivers, for those who want to read the messages.
    let config = std::env::var("CLIFFWATCH_TEST_CONFIG").unwrap_or_default();
    let has_receivers = !config.is_empty();
    let setup = Setup { rules: RULES.to_owned(), fill: Box::new(fill), config, ..Setup::default() };
    let app = TestApp::with(setup).await;
    let mut reported = Vec::new();
    for poll in -POLLS_BEFORE..POLLS_AFTER {
        if poll == 0 {
            app.at(PUBLISHED);
            app.edit(|edit| edit.put_events(&after.token, after.events()));
        }
        app.clock.set(time(FIRST_POLL) + TimeDelta::hours(6 * i64::from(poll + POLLS_BEFORE)) + after_publication(poll));
        for report in app.tick().await {
            assert_eq!(report.failed, [], "{}", after.token);
            let changes = report.changes.iter().map(|change| serde_json::to_value(change).expect("a change"));
            reported.extend(changes.map(|change: Value| ReportedChange { poll, change }));
        }
        if has_receivers {
            app.deliver().await;
        }
    }
    app.hook.take();
    reported
}

/// The correction is published between two slots, so the polls after it are one slot later.
fn after_publication(poll: i32) -> TimeDelta {
    if poll < 0 { TimeDelta::zero() } else { TimeDelta::hours(6) }
}

/// Plays all corrections on several threads.
fn play_all(corrections: &[LabeledCorrection]) -> Vec<(&LabeledCorrection, Vec<ReportedChange>, Grading)> {
    const THREADS: usize = 4;
    let schedules = schedules();
    let (queue, results) = (Mutex::new(corrections.iter()), Mutex::new(Vec::new()));
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        loop {
            let Some(correction) = queue.lock().expect("unpoisoned").next() else { break };
            let (before, after) = versions(&schedules, correction);
            let reported = runtime.block_on(play(before, &after));
            let grading = grade(correction, &reported);
            results.lock().expect("unpoisoned").push((correction, reported, grading));
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    let mut results = results.into_inner().expect("unpoisoned");
    results.sort_by(|(one, ..), (other, ..)| one.id.cmp(&other.id));
    results
}

/// Plays all corrections. The figures of another label file are printed, but not compared.
#[test]
#[ignore = "plays for minutes"]
fn corrections_are_reported_well() {
    let (corrections, is_bundled) = corrections();
    let results = play_all(&corrections);
    assert_eq!(results.len(), corrections.len());
    let count = |grade| results.iter().filter(|(.., grading)| grading.grade == grade).count();
    let mut remarks: BTreeMap<&str, usize> = BTreeMap::new();
    let prints_all = std::env::var_os("CLIFFWATCH_TEST_PRINT_ALL").is_some();
    for (correction, reported, grading) in &results {
        grading.remarks.iter().for_each(|remark| *remarks.entry(remark).or_default() += 1);
        if grading.grade != Grade::Right || prints_all {
            println!("{} {:?}: {}", correction.id, grading.grade, correction.sentence);
            reported.iter().for_each(|report| println!("    poll {}: {}", report.poll, report.change["summary"]));
            grading.reasons.iter().for_each(|reason| println!("    - {reason}"));
        }
    }
    let [right, partly, never, wrong] = [Grade::Right, Grade::Partly, Grade::NeverReported, Grade::Wrong].map(count);
    println!("{right} right, {partly} partly, {wrong} wrong, {never} never reported, of {}; {remarks:?}", results.len());
    if is_bundled {
        assert!(
            right >= MIN_RIGHT && wrong <= MAX_WRONG && never <= MAX_NEVER_REPORTED,
            "worse than {MIN_RIGHT} right, {MAX_WRONG} wrong, and {MAX_NEVER_REPORTED} never reported"
        );
    }
}

#[test]
fn labels_balance_with_their_steps() {
    let (schedules, (corrections, _)) = (schedules(), corrections());
    let operations = read(&folder().join("operations.toml"));
    for correction in &corrections {
        let (before, after) = versions(&schedules, correction);
        let (before, after) = (before.books(), after.books());
        let is_near = |one: f64, other: f64| (one - other).abs() <= 1e-6 * one.abs().max(other.abs()).max(1.0);
        let total = |books: &BTreeMap<String, f64>| books.values().sum::<f64>();
        let (old, new) = correction.total;
        assert!(is_near(total(&before), old) && is_near(total(&after), new), "{}", correction.id);
        for name in before.keys().chain(after.keys()) {
            let of = |books: &BTreeMap<String, f64>| books.get(name).copied().unwrap_or(0.0);
            let book = correction.books.iter().find(|book| book.allocation == *name);
            let (old, new) = book.map_or((of(&before), of(&before)), |book| (book.before, book.after));
            assert!(is_near(of(&before), old) && is_near(of(&after), new), "{} {name}: {old} to {new}", correction.id);
        }
        for operation in &correction.operations {
            assert!(operations.contains(&format!("name = \"{operation}\"")), "{operation} has no reason");
        }
    }
}

/// Grades a report of one change on the correction with this id.
#[track_caller]
fn check(id: &str, changes: &[Value], expected: Grade) {
    let labels = label::load(&read(&folder().join("labels.toml")));
    let label = labels.iter().find(|label| label.id == id).expect("a label");
    let reported: Vec<ReportedChange> = changes.iter().map(|change| ReportedChange { poll: 0, change: change.clone() }).collect();
    let grading = grade(label, &reported);
    assert_eq!(grading.grade, expected, "{grading:?}");
}

#[test]
fn grading_accepts_the_truth_only() {
    let moved = |to: &str, days: f64, amount: f64| {
        json!({"kind": "rescheduled", "from": "2026-05-20T00:00:00Z", "to": to, "shiftDays": days, "amount": amount,
            "allocations": [{"name": "Private Sales", "from": "2026-05-20T00:00:00Z", "to": to}]})
    };
    let truth = moved("2026-11-20T00:00:00Z", 184.0, 250e6);
    check("c003", std::slice::from_ref(&truth), Grade::Right);
    check("c003", &[], Grade::NeverReported);
    check("c003", &[truth.clone(), truth.clone()], Grade::Wrong);
    check("c003", &[moved("2026-11-21T00:00:00Z", 185.0, 250e6)], Grade::Partly);
    check("c003", &[moved("2026-11-20T00:00:00Z", 184.0, 125e6)], Grade::Partly);
    let other = json!({"kind": "rescheduled", "shiftDays": 1.0, "allocations": [{"name": "Publisher Rewards"}]});
    check("c003", &[truth.clone(), other], Grade::Wrong);
    let removed = json!({"kind": "removed", "amount": 250e6, "allocations": [{"name": "Private Sales", "from": 250e6}]});
    let added = json!({"kind": "added", "amount": 250e6, "allocations": [{"name": "Private Sales", "to": 250e6}]});
    check("c003", &[removed, added], Grade::Wrong);
    let restructured = json!({"kind": "restructured", "allocations": [{"name": "Private Sales", "from": 250e6, "to": 250e6}]});
    check("c003", &[restructured], Grade::Partly);
    let resized = json!({"kind": "resized", "allocations": [{"name": "Private Sales", "from": 250e6, "to": 240e6}]});
    check("c003", &[truth.clone(), resized], Grade::Wrong);
    check("c001", &[], Grade::Right);
    check("c001", std::slice::from_ref(&truth), Grade::Wrong);
    let dated = json!({"kind": "revised", "from": "month", "to": "day", "allocations": [{"name": "Investors"}]});
    check("c061", &[dated], Grade::Right);
    let moved_day =
        json!({"kind": "rescheduled", "shiftDays": -13.0, "amount": 15_211_342.5, "allocations": [{"name": "Investors"}]});
    check("c061", &[moved_day], Grade::Wrong);
    let vague = json!({"kind": "revised", "from": "month", "to": "day"});
    check("c061", &[vague], Grade::Partly);
    let all_moved = json!({"kind": "rescheduled", "shiftDays": 183.0, "amount": 900e6, "from": "2026-06-17T00:00:00Z",
        "to": "2026-12-17T00:00:00Z", "allocations": [{"name": "Team"}], "summary": "900.00M SPK of Team moved from 17 Jun 2026 to 17 Dec 2026"});
    check("c090", &[all_moved], Grade::Wrong);
    let resized = |summary: &str| {
        json!({"kind": "resized", "from": 1067.5e6, "to": 742.5e6, "summary": summary,
            "allocations": [{"name": "Ecosystem & Incubation", "from": 650e6, "to": 325e6}]})
    };
    check("c097", &[resized("Ecosystem & Incubation resized from 650.00M to 325.00M (×0.5)")], Grade::Right);
    check("c097", &[resized("Ecosystem & Incubation resized from 660.00M to 325.00M (×0.5)")], Grade::Wrong);
}

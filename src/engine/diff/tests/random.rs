//! A source that drops, nulls, garbles, and restores parts of rows at random, over real schedules, with a few true corrections. In the
//! end, each true change was reported once, and the snapshot is correct.
//!
//! The expected changes are those from the same corrections by a source without faults.

use super::{
    parts::{Polled, View},
    *,
};

/// The number of polls in a run. `PROPTEST_CASES` sets the number of runs.
const POLLS: usize = 50;
/// The default number of runs.
const RUNS: u32 = 7;

/// A generator of pseudorandom numbers.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("32 bits") % sides.max(1)
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.throw(sides) == 0
    }
}

/// Real schedules that are small enough to be polled often.
fn schedules() -> Vec<Vec<UnlockEvent>> {
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("data/unlock-events");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the bundled schedules").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| -> Vec<UnlockEvent> {
        serde_json::from_str(&std::fs::read_to_string(path).expect("text")).expect("a schedule")
    };
    files.iter().map(read).filter(|events| (6..=60).contains(&events.len())).collect()
}

fn cliff_parts(event: &mut UnlockEvent) -> Option<&mut Vec<CliffAllocation>> {
    event.cliff_unlocks.get_mut()?.allocation_breakdown.get_mut()
}

fn linear_parts(event: &mut UnlockEvent) -> Option<&mut Vec<LinearAllocation>> {
    event.linear_unlocks.get_mut()?.allocation_breakdown.get_mut()
}

/// Updates the totals of an event. A form without parts gets an empty list and zero, because null would mean unknown.
fn sum_up(event: &mut UnlockEvent) {
    if let Some(cliffs) = event.cliff_unlocks.get_mut() {
        let total: Option<f64> = cliffs
            .allocation_breakdown
            .items()
            .iter()
            .map(|part| part.cliff_amount.copied())
            .sum::<Option<f64>>()
            .map(|total| total + 0.0);
        cliffs.cliff_amount = Maybe::or_absent(total);
    }
    if let Some(linears) = event.linear_unlocks.get_mut() {
        let total: Option<f64> = linears
            .allocation_breakdown
            .items()
            .iter()
            .map(|part| part.linear_amount.copied())
            .sum::<Option<f64>>()
            .map(|total| total + 0.0);
        linears.linear_amount = Maybe::or_absent(total);
    }
}

/// Makes a true correction. Returns the date of the event if one was added.
fn correct(truth: &mut Vec<UnlockEvent>, dice: &mut Dice) -> Option<Timestamp> {
    let mut with_cliffs: Vec<usize> =
        (0..truth.len()).filter(|row| cliff_parts(&mut truth[*row]).is_some_and(|parts| !parts.is_empty())).collect();
    let row = with_cliffs.get(dice.throw(with_cliffs.len())).copied()?;
    let mut new = None;
    match dice.throw(5) {
        0 => {
            let parts = cliff_parts(&mut truth[row]).expect("parts");
            let at = dice.throw(parts.len());
            let amount = parts[at].cliff_amount.copied().expect("an amount");
            parts[at].cliff_amount = (amount * 0.37).into();
            sum_up(&mut truth[row]);
        }
        1 => {
            let mut date = truth[row].unlock_date.copied().expect("dated");
            while truth.iter().any(|event| event.unlock_date.copied() == Some(date)) {
                date = date + Days::new(3);
            }
            truth[row].unlock_date = date.into();
            cliff_parts(&mut truth[row]).into_iter().flatten().for_each(|part| part.unlock_date = date.into());
        }
        2 => {
            let mut added = truth[row].clone();
            let mut date = added.unlock_date.copied().expect("dated") + Days::new(11);
            while truth.iter().any(|event| event.unlock_date.copied() == Some(date)) {
                date = date + Days::new(1);
            }
            added.unlock_date = date.into();
            added.linear_unlocks = Maybe::Null;
            let parts = cliff_parts(&mut added).expect("parts");
            parts.truncate(1);
            parts[0].unlock_date = date.into();
            parts[0].cliff_amount = (parts[0].cliff_amount.copied().expect("an amount") * 3.19 + 17.0).into();
            sum_up(&mut added);
            truth.push(added);
            new = Some(date);
        }
        3 => {
            with_cliffs.retain(|row| truth[*row].linear_unlocks.get().is_none());
            if truth.len() > 4
                && let Some(row) = with_cliffs.get(dice.throw(with_cliffs.len()))
            {
                truth.remove(*row);
            }
        }
        _ => {
            let name = cliff_parts(&mut truth[row]).expect("parts")[0].allocation_name.clone();
            let others = truth.iter().filter(|event| {
                event
                    .cliff_unlocks
                    .get()
                    .is_some_and(|cliffs| cliffs.allocation_breakdown.items().iter().any(|p| p.allocation_name != name))
            });
            if others.count() < 3 {
                return None;
            }
            for event in &mut *truth {
                if let Some(parts) = cliff_parts(event) {
                    parts.retain(|part| part.allocation_name != name);
                }
                if let Some(parts) = linear_parts(event) {
                    parts.retain(|part| part.allocation_name != name);
                }
                sum_up(event);
            }
            truth.retain(|event| {
                event.cliff_unlocks.get().is_some_and(|cliffs| !cliffs.allocation_breakdown.items().is_empty())
                    || event.linear_unlocks.get().is_some_and(|linears| !linears.allocation_breakdown.items().is_empty())
            });
        }
    }
    truth.sort_by_key(|event| event.unlock_date.copied());
    new
}

fn gap<T>(dice: &mut Dice) -> Maybe<T> {
    if dice.one_in(2) { Maybe::Null } else { Maybe::Absent }
}

/// Drops or garbles a part of an event. A new event loses at most its whole list of parts, because no known fact could fill its gaps.
fn garble(event: &mut UnlockEvent, is_new: bool, dice: &mut Dice) {
    let odd_amount =
        |dice: &mut Dice| if dice.one_in(3) { Maybe::Value([-5.0, 1e31, f64::NAN][dice.throw(3)]) } else { gap(dice) };
    let what = if is_new { [0, 4][dice.throw(2)] } else { dice.throw(13) };
    match what {
        0 => event.cliff_unlocks = gap(dice),
        1 => event.linear_unlocks = gap(dice),
        2 => event.unlock_date = gap(dice),
        3 => (event.data_source, event.listed_method, event.token_name) = (gap(dice), gap(dice), gap(dice)),
        4 => {
            if let Some(cliffs) = event.cliff_unlocks.get_mut() {
                cliffs.allocation_breakdown = gap(dice);
            }
        }
        5 => {
            if let Some(linears) = event.linear_unlocks.get_mut() {
                linears.allocation_breakdown = gap(dice);
            }
        }
        6 => {
            if let Some(cliffs) = event.cliff_unlocks.get_mut() {
                (cliffs.cliff_amount, cliffs.cliff_value) = (odd_amount(dice), odd_amount(dice));
            }
        }
        7..=9 => {
            if let Some(parts) = cliff_parts(event).filter(|parts| !parts.is_empty()) {
                let at = dice.throw(parts.len());
                match dice.throw(4) {
                    0 => parts[at].allocation_name = gap(dice),
                    1 => parts[at].unlock_precision = gap(dice),
                    2 => drop(parts.remove(at)),
                    _ => parts[at].cliff_amount = odd_amount(dice),
                }
            }
        }
        _ => {
            if let Some(parts) = linear_parts(event).filter(|parts| !parts.is_empty()) {
                let at = dice.throw(parts.len());
                match dice.throw(5) {
                    0 => parts[at].allocation_name = gap(dice),
                    1 => parts[at].begin_date = gap(dice),
                    2 => parts[at].end_date = gap(dice),
                    3 => drop(parts.remove(at)),
                    _ => parts[at].linear_amount = odd_amount(dice),
                }
            }
        }
    }
}

/// A response as JSON: the truth with random defects.
fn response(truth: &[UnlockEvent], new: Option<Timestamp>, dice: &mut Dice) -> String {
    let mut rows = truth.to_vec();
    match dice.throw(10) {
        0..=2 => {}
        3 => rows.iter_mut().for_each(|event| event.cliff_unlocks = Maybe::Null),
        4 => rows.iter_mut().for_each(|event| {
            if let Some(cliffs) = event.cliff_unlocks.get_mut() {
                cliffs.allocation_breakdown = Maybe::Absent;
            }
        }),
        _ => {
            let rate = [3, 10, 30][dice.throw(3)];
            for event in rows.iter_mut() {
                if dice.one_in(rate) {
                    garble(event, new.is_some() && event.unlock_date.copied() == new, dice);
                }
            }
        }
    }
    let json = serde_json::to_string(&rows).expect("JSON");
    // A part that is not an object is reported as unreadable.
    match truth.get(dice.throw(truth.len())).and_then(|event| event.cliff_unlocks.get()?.allocation_breakdown.items().last()) {
        Some(part) if new.is_none() && dice.one_in(5) => json.replacen(&serde_json::to_string(part).expect("JSON"), "null", 1),
        _ => json,
    }
}

fn sorted_summaries(changes: &[Change]) -> Vec<String> {
    let mut summaries: Vec<String> =
        changes.iter().map(|change| format!("{}: {:?} to {:?}", change.kind, change.from, change.to)).collect();
    summaries.sort();
    summaries
}

fn runs() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(RUNS)
}

#[test]
fn random_gaps_do_not_affect_reported_changes() {
    for view in [View::Unknown, View::Whole, View::Auto] {
        play(view);
    }
}

fn play(view: View) {
    let schedules = schedules();
    let (mut warning_count, mut notified) = (0, 0);
    for run in 0..runs() {
        let mut dice = Dice(u64::from(run).wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
        let mut truth = schedules[dice.throw(schedules.len())].clone();
        let (mut clean, mut faulty) = (Polled::with(&truth, view), Polled::with(&truth, view));
        let mut new = None;
        for poll in 1..=POLLS {
            if poll % 10 == 5 {
                new = correct(&mut truth, &mut dice);
            }
            for polled in [&mut clean, &mut faulty] {
                polled.expect(&truth, poll % 10 == 5);
            }
            clean.poll(&truth);
            let before = faulty.notified.len();
            // Every third response is complete, because only complete responses prove a removal.
            let json =
                if poll % 3 == 0 { serde_json::to_string(&truth).expect("JSON") } else { response(&truth, new, &mut dice) };
            faulty.read(&json);
            if std::env::var_os("RANDOM_SHOWS").is_some() {
                if std::env::var("RANDOM_SHOWS").is_ok_and(|at| at == format!("{run}/{poll}")) {
                    let from = faulty.parse_warnings.len().saturating_sub(60);
                    println!("{}\n{json}", faulty.parse_warnings[from..].join("\n"));
                }
                for change in &faulty.notified[before..] {
                    println!("{view:?} run {run} poll {poll}: {}", change.summary);
                }
            }
        }
        for _ in 0..4 {
            clean.poll(&truth);
            faulty.poll(&truth);
        }
        assert_same_facts(&clean.snapshot.records, &truth);
        assert_same_facts(&faulty.snapshot.records, &truth);
        assert_eq!(sorted_summaries(&faulty.notified), sorted_summaries(&clean.notified), "{view:?}, run {run}");
        warning_count += faulty.warning_count;
        notified += faulty.notified.len();
    }
    assert!(warning_count > 0 && notified > 0);
    println!(
        "{view:?}: {} polls, {warning_count} parse warnings, {notified} changes",
        usize::try_from(runs()).expect("few") * POLLS
    );
}

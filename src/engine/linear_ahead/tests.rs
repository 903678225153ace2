use chrono::TimeDelta;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const FIRST: &str = "2026-11-26";
const DAYS: u64 = 99;

fn day(text: &str) -> NaiveDate {
    text.parse().expect("a day")
}

fn at(seconds: i64) -> Timestamp {
    day(FIRST).and_time(chrono::NaiveTime::MIN).and_utc() + TimeDelta::seconds(seconds)
}

/// A release: the allocation, and the amount from one second to another. A cliff has no duration.
#[derive(Clone, Debug)]
struct Release {
    name: &'static str,
    from: i64,
    until: i64,
    amount: f64,
}

impl Release {
    /// The amount between two seconds.
    fn between(&self, from: i64, until: i64) -> f64 {
        if self.until <= self.from {
            return if (from..until).contains(&self.from) { self.amount } else { 0.0 };
        }
        let seconds = self.until.min(until) - self.from.max(from);
        self.amount * seconds.max(0) as f64 / (self.until - self.from) as f64
    }

    fn event(&self) -> UnlockEvent {
        let mut event = json!({"unlockDate": at(self.from), "cliffUnlocks": null, "linearUnlocks": null});
        if self.until <= self.from {
            event["cliffUnlocks"] = json!({"cliffAmount": self.amount,
                "allocationBreakdown": [{"allocationName": self.name, "cliffAmount": self.amount}]});
        } else {
            event["linearUnlocks"] = json!({"linearAmount": self.amount, "allocationBreakdown": [{"allocationName": self.name,
                "linearAmount": self.amount, "beginDate": at(self.from), "endDate": at(self.until)}]});
        }
        serde_json::from_value(event).expect("an event")
    }
}

/// The daily emission of a schedule, for `count` days.
fn emission(schedule: &[Release], count: i64) -> Vec<Emission> {
    let row = |day: i64| {
        let (from, until) = (day * SECONDS_PER_DAY, (day + 1) * SECONDS_PER_DAY);
        let of = |release: &Release| json!({"allocationName": release.name, "standardAllocationName": "Reserve", "unlockAmount": release.between(from, until)});
        let items: Vec<Value> = schedule.iter().filter(|release| release.between(from, until) > 0.0).map(of).collect();
        let total: f64 = schedule.iter().map(|release| release.between(from, until)).sum();
        serde_json::from_value(json!({"startDate": at(from), "endDate": at(until), "unlockAmount": total, "allocations": items}))
            .expect("a day")
    };
    (0..count).map(row).collect()
}

fn ahead_of(known: &[Release], days: &[Emission]) -> LinearAhead {
    let events: Vec<UnlockEvent> = known.iter().map(Release::event).collect();
    let end = day(FIRST).checked_add_days(Days::new(DAYS)).expect("a day");
    linear_ahead(&events, days, (day(FIRST), end), at(5_000))
}

fn segment(name: &'static str, from: i64, until: i64, amount: f64) -> Release {
    Release { name, from: from * SECONDS_PER_DAY, until: until * SECONDS_PER_DAY, amount }
}

fn runs(ahead: &LinearAhead) -> Vec<(String, String, String, i64)> {
    let run = |run: &LinearRun| {
        (run.allocation.clone(), run.start.to_string(), run.end.to_string(), (run.per_day * 1000.0).round() as i64)
    };
    ahead.runs.iter().map(run).collect()
}

fn run(name: &str, start: &str, end: &str, per_day: i64) -> (String, String, String, i64) {
    (name.to_owned(), start.to_owned(), end.to_owned(), per_day * 1000)
}

#[test]
fn hidden_rate_change_becomes_a_run() {
    let known = [segment("Team", -10, 20, 300.0), Release { name: "Seed", from: 3_600, until: 3_600, amount: 5e6 }];
    let schedule = [&known[..], &[segment("Team", 20, 50, 600.0)]].concat();
    let ahead = ahead_of(&known, &emission(&schedule, 99));
    assert_eq!(runs(&ahead), [run("Team", "2026-12-16", "2027-01-15", 20)]);
    assert_eq!(ahead.runs[0].category.as_deref(), Some("Reserve"));
    assert_eq!((ahead.until.date_naive(), ahead.differs, ahead.is_averaged), (day("2027-03-05"), None, false));
    assert_eq!(runs(&ahead_of(&schedule, &emission(&schedule, 99))), []);
}

#[test]
fn excess_of_the_known_unlocks_is_an_amount_and_no_run() {
    let (known, schedule) = ([segment("Team", 0, 99, 990.0)], [segment("Team", 0, 99, 495.0)]);
    let ahead = ahead_of(&known, &emission(&schedule, 99));
    assert_eq!((runs(&ahead).len(), ahead.differs.map(f64::round)), (0, Some(495.0)));
    let nearly = [segment("Team", 0, 99, 985.0)];
    assert_eq!(ahead_of(&known, &emission(&nearly, 99)).differs, None, "below one percent");
}

#[test]
fn other_names_and_days_of_one_release_do_not_count_twice() {
    let known = [segment("Team", 0, 99, 990.0), Release { name: "Seed", from: 86_399, until: 86_399, amount: 5e6 }];
    let other = [segment("Core team", 0, 99, 990.0), Release { name: "Seed", from: 86_401, until: 86_401, amount: 5e6 }];
    let ahead = ahead_of(&known, &emission(&other, 99));
    assert_eq!((runs(&ahead), ahead.differs), (Vec::new(), None));
}

#[test]
fn response_that_ends_early_limits_what_is_known() {
    let known = [segment("Team", 0, 80, 800.0)];
    let until = |days: i64| ahead_of(&known, &emission(&known, days)).until.date_naive();
    assert_eq!(until(60), day("2027-01-25"), "the schedule continues, so the response was cut");
    assert_eq!(until(80), day("2027-03-05"), "the schedule ends too");
    assert_eq!(until(0), day(FIRST));
    assert_eq!(ahead_of(&known, &emission(&known, 60)).differs, None);
}

#[test]
fn incomplete_allocations_of_a_day_count_without_a_name() {
    let mut days = emission(&[segment("Team", 0, 2, 20.0)], 2);
    days[1].unlock_amount = 15.0.into();
    assert_eq!(runs(&ahead_of(&[segment("Team", 0, 2, 20.0)], &days)), [run("", "2026-11-27", "2026-11-28", 5)]);
    // A repeated day counts once, and an amount that is not a number does not count.
    days.extend(days.clone());
    days[0].unlock_amount = f64::INFINITY.into();
    assert_eq!(runs(&ahead_of(&[segment("Team", 0, 2, 20.0)], &days)), [run("", "2026-11-27", "2026-11-28", 5)]);
}

#[test]
fn many_runs_are_averaged_without_a_change_of_their_sum() {
    for names in [10_usize, 900] {
        let names: Vec<&'static str> = (0..names).map(|number| &*format!("A{number}").leak()).collect();
        let schedule: Vec<Release> =
            names.iter().flat_map(|name| (0..99).map(|day| segment(name, day, day + 1, 1.0 + day as f64))).collect();
        let ahead = ahead_of(&[], &emission(&schedule, 99));
        assert!(ahead.is_averaged && ahead.runs.len() <= MAX_LINEAR_RUNS, "{}", ahead.runs.len());
        let sum: f64 = ahead.runs.iter().map(|run| run.amount_between(at(0), at(99 * SECONDS_PER_DAY))).sum();
        let whole: f64 = schedule.iter().map(|release| release.amount).sum();
        assert!((sum - whole).abs() < 1e-6 * whole, "{sum} {whole}");
    }
}

fn releases() -> impl Strategy<Value = Vec<(Release, bool)>> {
    let name = prop_oneof![Just("Team"), Just("Seed"), Just("Rewards")];
    let from = -200 * SECONDS_PER_DAY..120 * SECONDS_PER_DAY;
    let release = (name, from, prop_oneof![Just(0), 1..400 * SECONDS_PER_DAY], 1.0..1e9_f64, any::<bool>());
    let release = release
        .prop_map(|(name, from, duration, amount, is_known)| (Release { name, from, until: from + duration, amount }, is_known));
    proptest::collection::vec(release, 0..12)
}

proptest! {
    /// The known unlocks and the runs add up to the whole schedule on every day, regardless of which part is known.
    #[test]
    fn known_unlocks_and_runs_are_the_whole_schedule(releases in releases()) {
        let schedule: Vec<Release> = releases.iter().map(|(release, _)| release.clone()).collect();
        let known: Vec<Release> = releases.iter().filter(|(_, is_known)| *is_known).map(|(release, _)| release.clone()).collect();
        let ahead = ahead_of(&known, &emission(&schedule, 99));
        prop_assert_eq!(ahead.until, at(99 * SECONDS_PER_DAY));
        prop_assert_eq!(ahead.differs, None);
        for day in 0..99 {
            let (from, until) = (day * SECONDS_PER_DAY, (day + 1) * SECONDS_PER_DAY);
            let of = |releases: &[Release]| releases.iter().map(|release| release.between(from, until)).sum::<f64>();
            let run: f64 = ahead.runs.iter().map(|run| run.amount_between(at(from), at(until))).sum();
            let (found, whole) = (of(&known) + run, of(&schedule));
            prop_assert!((found - whole).abs() <= 5e-6 * whole, "day {}: {} {}", day, found, whole);
        }
    }
}

//! Tests of the fields of earlier corrections.

use super::*;
use crate::CorrectionScope;
use model::corrections::PastCorrection;
use model::{Change, ChangeKind};

/// Evaluates a condition on the first of March 2026 with corrections of these days and shifts.
fn truth_of(on: &str, when: &str, earlier: &[(&str, Option<f64>)], current: &[Change]) -> Truth {
    let earlier: Vec<_> =
        earlier.iter().map(|(day, shift_days)| PastCorrection { at: at(day), shift_days: *shift_days }).collect();
    let (token, unlock) = (arb(), record(Resource::Unlock, r#"{"unlockDate":"2026-03-16T00:00:00Z"}"#));
    let corrections = Some(CorrectionScope { earlier: &earlier, current });
    let scope = scope(&token, &unlock);
    let schedule = ScheduleScope { corrections, ..scope.schedule };
    rule_when(on, when).evaluate(&Scope { schedule, now: at("2026-03-01"), ..scope })
}

const EARLIER: [(&str, Option<f64>); 4] =
    [("2025-01-01", Some(100.0)), ("2025-06-01", Some(30.0)), ("2026-02-10", Some(-4.0)), ("2026-02-20", None)];

#[test]
fn counts_the_corrections_of_the_time_before_now_and_adds_up_their_shifts() {
    for (when, expected) in [
        ("corrections('365d').count == 3 && corrections('365d').shiftDays == 26", Truth::True),
        ("corrections('30d').count == 2 && corrections('30d').shiftDays == -4", Truth::True),
        ("corrections('1d').count == 0 && corrections('1d').shiftDays == 0", Truth::True),
        ("corrections('19d').count == 1 && corrections('20d').count == 2", Truth::True),
        ("has(corrections('365d').count)", Truth::True),
        ("corrections('365d').count > 3", Truth::False),
    ] {
        assert_eq!(truth_of("unlock", when, &EARLIER, &[]), expected, "{when}");
    }
    let found = Change { shift_days: Some(7.0), ..Change::of(ChangeKind::Rescheduled, Resource::Unlock, &arb().id) };
    let renamed = Change::of(ChangeKind::Renamed, Resource::Unlock, &arb().id);
    let of_the_poll = "corrections('30d').count == 3 && corrections('30d').shiftDays == 3";
    assert_eq!(truth_of("unlock", of_the_poll, &EARLIER, &[found, renamed]), Truth::True, "the current poll counts");
}

#[test]
fn corrections_are_missing_if_they_were_not_read() {
    let (token, unlock) = (arb(), record(Resource::Unlock, "{}"));
    let rule = rule_when("unlock", "corrections('365d').shiftDays > 0");
    assert_eq!(rule.evaluate(&scope(&token, &unlock)), Truth::Missing(vec!["corrections(…).shiftDays"]));
}

#[test]
fn set_knows_the_times_that_rules_read() {
    let text = "[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = \"corrections('30d').count > 2\"\nclear_when = \"corrections('10d').count == 0\"\n\
                [[rule]]\nalert = \"B\"\non = \"unlock.rescheduled\"\nwhen = \"change.shiftDays < 0 && corrections('30d').shiftDays > 0\"\n";
    let loaded = load_text(text);
    assert!(loaded.is_usable() && loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    assert_eq!(loaded.set.correction_spans, [TimeDelta::days(10), TimeDelta::days(30)]);
    assert!(loaded.set.rules.iter().all(|rule| !rule.is_clock_dependent), "their times are known");
}

#[test]
fn wrong_uses_get_a_suggestion() {
    for (on, when, expected) in [
        ("unlock", "corrections('365d') > 2", "use its `count` or `shiftDays`"),
        ("unlock", "corrections('365d').counts > 2", "did you mean `count`?"),
        ("unlock", "corrections(365).count > 2", "requires a duration"),
        ("unlock", "corrections('long').count > 2", "not a valid duration"),
        ("unlock", "corrections('9000d').count > 2", "at most 10 years"),
        ("unlock", "corrections().count > 2", "requires one duration"),
        ("burn", "corrections('365d').count > 2", "only in rules on unlocks"),
        ("token", "corrections('365d').count > 2", "only in rules on unlocks"),
    ] {
        let loaded = load_text(&format!("[[rule]]\nalert = \"A\"\non = \"{on}\"\nwhen = \"{when}\"\n"));
        let text = format!("{:?}", loaded.diagnostics);
        assert!(!loaded.is_usable() && text.contains(expected), "{when}: {text}");
    }
}

//! The facts that explanations carry for the summary of a change.

use super::*;
use crate::diff::{
    changes::{Comparison, explain},
    index::{New, NewRow, Old, OldRow},
    link::{VisibleDays, link},
    timeline::Timeline,
    tranche::Events,
};
use model::phrase::changes::{ChangeClause, DateChange, TrancheFacts, TranchesChange};

/// Returns the clauses of a correction that keeps the number of events.
fn clauses(before: &[UnlockEvent], after: &[UnlockEvent]) -> Vec<ChangeClause> {
    let (old, new): (Events<'_, Old>, Events<'_, New>) = (before.iter().collect(), after.iter().collect());
    let old_of_new = old.indices().map(Some).collect::<Vec<Option<OldRow>>>().into();
    let new_of_old = new.indices().map(Some).collect::<Vec<Option<NewRow>>>().into();
    let timeline = Timeline::new(old, new, true, 1e-9);
    let links = link(&timeline, &VisibleDays { old: &DateWindow::ALL, new: &DateWindow::ALL }, 1e-9);
    let explanations = explain(&Comparison {
        token: &token(),
        timeline: &timeline,
        links: &links,
        new_of_old: &new_of_old,
        old_of_new: &old_of_new,
        missing: &[],
        unproven: &Default::default(),
        tolerance: 1e-9,
        supply: None,
        last_visible_day: None,
        now: now(),
    });
    assert!(explanations.iter().all(|explanation| explanation.change.summary.is_empty()), "the diff writes no sentence");
    explanations.into_iter().flat_map(|explanation| explanation.clauses).collect()
}

fn facts(allocation: &str, amount: f64, at: &str) -> TrancheFacts {
    TrancheFacts {
        allocation: allocation.to_owned(),
        amount: Some(amount),
        at: Some(time(at)),
        end: None,
        precision: Precision::Second,
        is_linear: false,
    }
}

#[test]
fn move_carries_dates_and_shift() {
    let before = monthly("2026-03-16", 6, &[("Team", 10.0)]);
    let mut after = before.clone();
    after[2] = event("2026-05-20", &[("Team", 10.0)]);
    let date = |at: &str| (Some(time(at)), Precision::Second);
    assert_eq!(
        clauses(&before, &after),
        [ChangeClause::EventMoved {
            tranches: vec![facts("Team", 10.0, "2026-05-20")],
            dates: DateChange { from: date("2026-05-16"), to: date("2026-05-20") },
            shift_days: Some((4.0, 4.0)),
        }]
    );
}

#[test]
fn resize_carries_amounts_and_the_unchanged_rest() {
    let before = monthly("2026-03-16", 6, &[("Team", 10.0), ("Investors", 5.0)]);
    let mut after = before.clone();
    after[2] = event("2026-05-16", &[("Team", 20.0), ("Investors", 5.0)]);
    let tranches =
        TranchesChange { before: vec![facts("Team", 10.0, "2026-05-16")], after: vec![facts("Team", 20.0, "2026-05-16")] };
    assert_eq!(clauses(&before, &after), [ChangeClause::Resized { tranches, ratio: Some(2.0), rest: Some(5.0) }]);
}

#[test]
fn unchanged_schedule_has_no_clauses() {
    let schedule = monthly("2026-03-16", 6, &[("Team", 10.0)]);
    assert_eq!(clauses(&schedule, &schedule), []);
}

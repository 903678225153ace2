use proptest::prelude::*;

use super::*;
use crate::supply::{LinearPiece, LinearRate};
use crate::time::Precision;

const DAY: i64 = 86_400_000;

fn at(day: i64) -> Timestamp {
    Timestamp::from_timestamp_millis(day * DAY).expect("a time")
}

fn unlock(allocation: &str, start: i64, end: i64, per_day: f64) -> LinearUnlock<'_> {
    #[expect(clippy::cast_precision_loss, reason = "few days")]
    let piece = LinearPiece::new(start * DAY, end * DAY, Some(per_day * (end - start) as f64)).expect("a piece");
    LinearUnlock { piece, allocation, category: None, precision: Precision::Second, keys: None, is_end_known: true }
}

fn changes(unlocks: &[LinearUnlock<'_>], from: i64, until: i64) -> Vec<String> {
    let window = SumWindow { at: at(from), until: at(until) };
    let cause = |step: &RateCause| format!(" {} {:.0}>{:.0}", step.allocation, step.before, step.after);
    let text = |change: &RateChange| {
        let causes: String = change.causes.iter().map(cause).collect();
        format!("{} {:.0}>{:.0}{causes}", change.at.timestamp_millis() / DAY, change.before, change.after)
    };
    rate_changes(unlocks, window).iter().map(text).collect()
}

#[test]
fn change_names_the_rates_and_the_allocations_that_cause_it() {
    let unlocks =
        [unlock("Team", 0, 10, 5.0), unlock("Team", 10, 20, 8.0), unlock("Treasury", 5, 10, 2.0), unlock("Airdrop", 10, 12, 1.0)];
    let all = ["5 5>7 Treasury 0>2", "10 7>9 Team 5>8 Treasury 2>0 Airdrop 0>1", "12 9>8 Airdrop 1>0", "20 8>0 Team 8>0"];
    assert_eq!(changes(&unlocks, 0, 20), all, "the start of a window is exclusive, its end inclusive");
    assert_eq!(changes(&unlocks, 5, 19), &all[1..3]);
}

#[test]
fn boundary_without_a_change_is_left_out() {
    assert_eq!(changes(&[unlock("Team", 0, 10, 5.0), unlock("Treasury", 10, 20, 5.0)], 0, 19), [""; 0]);
}

#[test]
fn end_of_what_is_known_is_not_a_change() {
    let known = LinearUnlock { is_end_known: false, ..unlock("Team", 0, 10, 5.0) };
    assert_eq!(changes(&[known, unlock("Treasury", 12, 14, 1.0)], 0, 13), ["12 5>6 Treasury 0>1"]);
}

#[test]
fn small_change_is_not_notable() {
    let change = |before, after| RateChange { at: at(0), before, after, causes: Vec::new() };
    assert!(!change(1000.0, 1009.0).is_notable() && change(1000.0, 1020.0).is_notable() && change(0.0, 1.0).is_notable());
    assert_eq!((change(0.0, 1.0).factor(), change(2.0, 3.0).factor()), (None, Some(1.5)));
}

proptest! {
    #[test]
    fn rate_after_each_change_is_the_rate_at_its_instant(parts in prop::collection::vec((0..4_usize, 0..40_i64, 1..20_i64, 1..9_u8), 0..30)) {
        let unlocks: Vec<LinearUnlock<'_>> = parts
            .iter()
            .map(|(name, start, days, rate)| unlock(["a", "b", "c", "d"][*name], *start, start + days, f64::from(*rate)))
            .collect();
        let pieces: Vec<LinearPiece> = unlocks.iter().map(|of| of.piece).collect();
        let mut rate = LinearRate::at(&pieces, at(3), None);
        for change in rate_changes(&unlocks, SumWindow { at: at(3), until: at(80) }) {
            prop_assert_eq!(Some(change.at), rate.changes_at);
            prop_assert!((change.before - rate.per_day).abs() < 1e-6);
            rate = LinearRate::at(&pieces, change.at, None);
            prop_assert!((change.after - rate.per_day).abs() < 1e-6);
            let causes: f64 = change.causes.iter().map(|step| step.after - step.before).sum();
            prop_assert!((change.after - change.before - causes).abs() < 1e-6);
        }
        prop_assert_eq!(rate.changes_at, None);
    }
}

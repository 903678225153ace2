use super::*;
use crate::supply::LinearPiece;

const DAY: i64 = 86_400_000;

fn at(day: i64) -> Timestamp {
    Timestamp::from_timestamp_millis(day * DAY).expect("a time")
}

fn unlock<'e>(allocation: &'e str, key: &'e str, days: std::ops::Range<i64>, per_day: f64) -> LinearUnlock<'e> {
    #[expect(clippy::cast_precision_loss, reason = "few days")]
    let amount = per_day * (days.end - days.start) as f64;
    let piece = LinearPiece::new(days.start * DAY, days.end * DAY, Some(amount)).expect("a piece");
    LinearUnlock { piece, allocation, category: None, precision: Precision::Second, keys: Some((key, key)), is_end_known: true }
}

#[test]
fn allocation_that_goes_on_at_another_rate_neither_ends_nor_starts() {
    let month = LinearUnlock { precision: Precision::Month, ..unlock("Airdrop", "d", 10..12, 1.0) };
    let unlocks = [unlock("Team", "a", 0..10, 5.0), unlock("Team", "b", 10..20, 8.0), unlock("Treasury", "c", 5..10, 2.0), month];
    let shown: Vec<String> = linear_dates(&unlocks, SumWindow { at: at(0), until: at(19) })
        .iter()
        .map(|date| {
            let kind = match &date.kind {
                LinearDateKind::Start(of) => format!("start {}", of.allocation),
                LinearDateKind::End(of) => format!("end {}", of.allocation),
                LinearDateKind::Rate(change) => format!("rate {}>{}", change.before, change.after),
            };
            format!("{} {kind} {:?} {:?}", date.at.timestamp_millis() / DAY, date.keys, date.precision)
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#"5 start Treasury ["c", "c"] Second"#,
            r#"10 end Treasury ["c", "c"] Second"#,
            r#"10 start Airdrop ["d", "d"] Month"#,
            r#"10 rate 7>9 ["b", "d", "a", "b", "c", "d"] Month"#,
            r#"12 end Airdrop ["d", "d"] Month"#,
        ]
    );
}

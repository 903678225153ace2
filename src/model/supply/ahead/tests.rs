use chrono::TimeDelta;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn event(json: &str) -> UnlockEvent {
    serde_json::from_str(json).expect("an event")
}

const NOW: &str = "2026-03-09T00:00:00Z";

fn window(days: i64) -> SumWindow {
    SumWindow::of(at(NOW), TimeDelta::days(days))
}

fn cliff(date: &str, precision: &str) -> UnlockEvent {
    event(&format!(
        r#"{{"unlockDate":"{date}","cliffUnlocks":{{"cliffAmount":10,"cliffValue":100,"allocationBreakdown":[{{"unlockPrecision":"{precision}"}}]}}}}"#
    ))
}

#[test]
fn cliff_counts_after_the_start_and_up_to_the_end_of_a_window() {
    for (date, expected) in [
        ("2026-03-09T00:00:00Z", None),
        ("2026-03-09T00:00:01Z", Some(Inclusion::Counted)),
        ("2026-03-16T00:00:00Z", Some(Inclusion::Counted)),
        ("2026-03-16T00:00:01Z", None),
    ] {
        let piece = CliffPiece::of(&cliff(date, "second")).expect("a cliff");
        assert_eq!(piece.inclusion(window(7)), expected, "{date}");
    }
}

#[test]
fn month_counts_by_its_nominal_date_and_is_inexact_otherwise() {
    for (date, precision, expected) in [
        ("2026-03-02T00:00:00Z", "month", Some(Inclusion::Inexact)),
        ("2026-03-12T00:00:00Z", "month", Some(Inclusion::Counted)),
        ("2026-03-30T00:00:00Z", "month", Some(Inclusion::Inexact)),
        ("2026-04-02T00:00:00Z", "month", None),
        ("2026-02-28T00:00:00Z", "month", None),
        ("2026-03-09T00:00:00Z", "day", Some(Inclusion::Inexact)),
        ("2026-03-12T00:00:00Z", "tbd", None),
    ] {
        let included = CliffPiece::of(&cliff(date, precision)).and_then(|piece| piece.inclusion(window(7)));
        assert_eq!(included, expected, "{date} {precision}");
    }
}

#[test]
fn part_without_a_date_is_not_in_the_sum() {
    let event = event(
        r#"{"unlockDate":"2026-03-12T00:00:00Z","cliffUnlocks":{"cliffAmount":30,"cliffValue":300,"allocationBreakdown":[
        {"cliffAmount":10,"cliffValue":100,"unlockPrecision":"second"},{"cliffAmount":20,"cliffValue":200,"unlockPrecision":"tbd"}]}}"#,
    );
    let piece = CliffPiece::of(&event).expect("a cliff");
    assert_eq!((piece.amount, piece.value), (Some(10.0), Some(100.0)));
}

#[test]
fn linear_unlock_counts_with_its_share_of_the_window() {
    // 100 days, 1000 tokens, from ten days before to ninety days after now.
    let event = event(
        r#"{"unlockDate":"2026-02-27T00:00:00Z","linearUnlocks":{"allocationBreakdown":[{"allocationName":"Team","linearAmount":1000,
        "referencePrice":2,"referencePriceUpdatedTime":"2026-03-01T00:00:00Z","beginDate":"2026-02-27T00:00:00Z","endDate":"2026-06-07T00:00:00Z"}]}}"#,
    );
    let pieces = TokenPieces::of([&event]);
    for (days, amount) in [(7, 70.0), (30, 300.0), (90, 900.0), (365, 900.0)] {
        let sum = pieces.sum(window(days));
        assert!((sum.linear.amount - amount).abs() < 1e-9 && (sum.linear.value - 2.0 * amount).abs() < 1e-9, "{days} {sum:?}");
        assert_eq!((sum.cliff, sum.total()), (UnlockSum::default(), sum.linear));
    }
    let rate = pieces.rate_at(at(NOW));
    assert_eq!((rate.per_day, rate.running), (10.0, 1));
    assert_eq!((rate.changes_at, rate.then_per_day), (Some(at("2026-06-07T00:00:00Z")), Some(0.0)));
}

#[test]
fn missing_price_makes_the_value_unknown_and_not_zero() {
    let event = event(
        r#"{"unlockDate":"2026-03-01T00:00:00Z","linearUnlocks":{"allocationBreakdown":[{"dailyAmount":5,"durationOfRate":20}]}}"#,
    );
    let sum = TokenPieces::of([&event]).sum(window(7)).total();
    assert!((sum.amount - 35.0).abs() < 1e-9, "{sum:?}");
    assert_eq!((sum.known_value(), sum.complete_value()), (None, None));
    assert_eq!(UnlockSum::default().known_value(), Some(0.0), "no unlock is zero");
    let mixed = sum.plus(UnlockSum { count: 1, value: 7.0, ..UnlockSum::default() });
    assert_eq!((mixed.known_value(), mixed.complete_value()), (Some(7.0), None));
}

#[test]
fn adjoining_equal_rates_are_no_change() {
    let piece = |start: i64, end: i64, amount: f64| {
        LinearPiece::new(start * 86_400_000, end * 86_400_000, Some(amount)).expect("a piece")
    };
    let pieces = [piece(0, 10, 100.0), piece(10, 20, 100.0), piece(20, 30, 300.0)];
    let rate = LinearRate::at(&pieces, Timestamp::from_timestamp_millis(0).expect("a time"), None);
    assert_eq!((rate.per_day, rate.then_per_day), (10.0, Some(30.0)));
    assert_eq!(rate.changes_at, Timestamp::from_timestamp_millis(20 * 86_400_000));
}

#[test]
fn latest_price_of_a_schedule_wins() {
    let priced = |price: f64, at: &str| {
        event(&format!(
            r#"{{"unlockDate":"2026-03-12","cliffUnlocks":{{"allocationBreakdown":[{{"referencePrice":{price},"referencePriceUpdatedTime":"{at}"}}]}}}}"#
        ))
    };
    let events = [priced(1.0, "2026-03-01T00:00:00Z"), priced(3.0, "2026-03-05T00:00:00Z"), priced(2.0, "2026-03-02T00:00:00Z")];
    let price = ReferencePrice::latest(&events).expect("a price");
    assert_eq!((price.usd, price.at), (3.0, Some(at("2026-03-05T00:00:00Z"))));
}

/// The worked example of docs/supply.md.
#[test]
fn example_in_the_docs_has_the_sums_of_its_schedule() {
    use crate::phrase;
    let page = include_str!("../../../../docs/supply.md");
    let schedule = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a schedule");
    let events: Vec<UnlockEvent> = serde_json::from_str(schedule).expect("valid");
    let pieces = TokenPieces::of(&events);
    for days in [7, 30, 90] {
        let sum = pieces.sum(window(days));
        let cell = |sum: UnlockSum| match sum.count {
            0 => "–".to_owned(),
            _ => format!("{} ({})", phrase::amount(sum.amount), phrase::usd(sum.value)),
        };
        let cells = [sum.cliff, sum.linear, sum.total(), sum.inexact].map(cell).join(" | ");
        let row = format!("| {days} days | {cells} |\n");
        assert!(page.contains(&row), "docs/supply.md lacks {row}");
    }
}

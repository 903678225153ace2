use super::*;
use model::Precision;
use testkit::time;

fn event(symbol: &str, date: &str, precision: Precision, size: f64) -> TimelineEvent {
    TimelineEvent {
        symbol: symbol.to_owned(),
        title: symbol.to_owned(),
        href: format!("/tokens/{symbol}"),
        interval: Interval::of(time(date), precision).expect("an interval"),
        size,
        shares: vec![(Recipient::Team, 0.6), (Recipient::Reserve, 0.4)],
    }
}

fn drawn(events: &[TimelineEvent]) -> Option<(String, String)> {
    let chart = draw(events, &[], Measure::Value, time("2026-11-22"), time("2027-02-20"))?;
    Some((chart.wide, chart.narrow))
}

#[test]
fn month_is_a_bar_and_instant_is_a_dot() {
    let events =
        [event("TON", "2026-12-01", Precision::Month, 83e6), event("JUP", "2026-12-20T12:00:00Z", Precision::Second, 20e6)];
    let (wide, _) = drawn(&events).expect("drawn");
    assert!(wide.contains("<rect class=\"mark span k-team\"") && wide.contains("<path class=\"mark k-team\""), "{wide}");
    assert!(
        wide.contains("TON: $83.00M, in December 2026") && wide.contains("JUP: $20.00M, on 20 Dec 2026, 12:00 UTC"),
        "{wide}"
    );
    // The width of December without the gap.
    let scale =
        TimeScale { from: time("2026-11-22"), until: time("2027-02-20"), left: WIDE.left, width: WIDE.width - WIDE.left - RIGHT };
    let width = number(scale.x(time("2027-01-01")) - scale.x(time("2026-12-01")) - 2.0);
    assert!(wide.contains(&format!("width=\"{width}\"")), "{width}: {wide}");
}

#[test]
fn marks_are_bounded_and_finite() {
    let mut events: Vec<TimelineEvent> =
        (0..1000_u32).map(|i| event("T", "2026-12-20", Precision::Day, f64::from(i) * 1e4)).collect();
    events.push(event("NAN", "2026-12-20", Precision::Day, f64::NAN));
    events.push(event("INF", "2026-12-20", Precision::Day, f64::INFINITY));
    events.push(event("PAST", "2026-11-01", Precision::Day, 1e12));
    events.push(event("FAR", "2028-11-01", Precision::Day, 1e12));
    let (wide, narrow) = drawn(&events).expect("drawn");
    assert_eq!((wide.matches("<a href").count(), narrow.matches("<a href").count()), (WIDE.max_marks, NARROW.max_marks));
    assert!(!wide.contains("NaN") && !wide.contains("inf") && !wide.contains("PAST") && !wide.contains("FAR"));
    assert!(wide.len() < 80_000, "{}", wide.len());
    assert!(drawn(&[event("NAN", "2026-12-20", Precision::Day, f64::NAN)]).is_none());
}

#[test]
fn labels_of_the_largest_do_not_overlap() {
    let events: Vec<TimelineEvent> =
        (0..40).map(|i| event(&format!("TOK{i}"), "2026-12-20", Precision::Day, 1e9 - f64::from(i) * 1e6)).collect();
    let (wide, _) = drawn(&events).expect("drawn");
    assert!(wide.contains(">TOK0</text>"), "{wide}");
    assert!(wide.matches("strong halo").count() < 6, "{wide}");
}

use super::*;
use chrono::TimeDelta;
use testkit::time;

fn days() -> Vec<SumWindow> {
    let first = time("2026-03-01T00:00:00Z") - TimeDelta::milliseconds(1);
    (0..31).map(|day| SumWindow::of(first + TimeDelta::days(day), TimeDelta::days(1))).collect()
}

fn row(symbol: &str, from: &str, until: &str, changes: Vec<(Timestamp, bool)>) -> BandRow {
    BandRow {
        symbol: symbol.to_owned(),
        href: format!("/tokens/{}", symbol.to_lowercase()),
        title: format!("{symbol}: $3.00M"),
        window: SumWindow { at: time(from), until: time(until) },
        size: "$3.00M".to_owned(),
        changes,
    }
}

#[test]
fn bands_cover_their_days_and_are_links_for_the_keyboard() {
    let half = row("ARB", "2026-03-01T00:00:00Z", "2026-03-16T12:00:00Z", vec![(time("2026-03-10T00:00:00Z"), true)]);
    let whole = row("<script>", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", Vec::new());
    let Chart { wide, narrow } = draw(&[half, whole], &days(), time("2026-03-09T12:00:00Z")).expect("a chart");
    let widths: Vec<f64> = wide
        .split("<rect class=\"s-linear\"")
        .skip(1)
        .filter_map(|rest| rest.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
        .collect();
    assert!(widths.len() == 2 && (widths[1] / widths[0] - 2.0).abs() < 0.01, "{widths:?}");
    for svg in [&wide, &narrow] {
        assert!(svg.contains("<a href=\"/tokens/arb\"><title>ARB: $3.00M</title>") && !svg.contains("<script"), "{svg}");
        assert_eq!((svg.matches("class=\"step\"").count(), svg.matches("class=\"today\"").count()), (1, 1), "{svg}");
    }
    // The wide drawing names each day, the narrow one some.
    assert!((1..=31).all(|day| wide.contains(&format!(">{day}</text>"))) && !narrow.contains(">2</text>"), "{wide}");
}

#[test]
fn another_month_has_no_mark_of_today() {
    let whole = row("ARB", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", Vec::new());
    let chart = draw(&[whole], &days(), time("2026-02-09T12:00:00Z")).expect("a chart");
    assert!(!chart.wide.contains("today"));
    assert!(
        draw(&[], &days(), time("2026-03-09")).is_none()
            && draw(&[row("A", "2026-03-01", "2026-03-02", Vec::new())], &[], time("2026-03-09")).is_none()
    );
}

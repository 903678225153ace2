use super::*;
use testkit::time;

fn entry(date: &str, precision: Precision) -> CalendarEntry {
    let interval = Interval::of(time(date), precision).expect("dated");
    CalendarEntry {
        key: "2026-03-16".to_owned(),
        interval,
        view: UnlockView {
            position: None,
            token_id: "arbitrum".into(),
            symbol: "ARB".into(),
            name: "Arbitrum".into(),
            unlock_date: Some(time(date)),
            precision,
            when: phrase::when(&interval),
            cliff_amount: Some(92_650_000.0),
            cliff_value: Some(27_600_000.0),
            value_to_market_cap: Some(1.9),
            days_until: None,
            allocations: vec!["Team; Advisors, Core".into(), "Investors".into()],
            listed_method: None,
            polled_at: Some(time("2026-03-01T06:10:00Z")),
            record: serde_json::Value::Null,
        },
        modified_at: time("2026-03-01T06:10:00Z"),
        was_modified: false,
        is_removed: false,
    }
}

const STYLE: CalendarStyle<'static> =
    CalendarStyle { external_url: Some("https://cliffwatch.example.com/"), spans: MonthSpan::Day, alarm: None };

/// The lines of the calendar, unfolded.
fn lines(entries: &[CalendarEntry]) -> Vec<String> {
    lines_in(entries, STYLE)
}

fn lines_in(entries: &[CalendarEntry], style: CalendarStyle<'_>) -> Vec<String> {
    let text = render(entries, &[], &style);
    assert!(text.split("\r\n").all(|line| line.len() <= 75 && !line.contains(['\r', '\n'])), "{text}");
    text.replace("\r\n ", "").split("\r\n").map(str::to_owned).collect()
}

fn has(entry: CalendarEntry, wanted: &[&str], unwanted: &str) {
    let lines = lines(&[entry]);
    for wanted in wanted {
        assert!(lines.iter().any(|line| line == wanted), "{wanted} in {lines:#?}");
    }
    assert!(unwanted.is_empty() || lines.iter().all(|line| !line.starts_with(unwanted)), "{unwanted} in {lines:#?}");
}

#[test]
fn event_is_as_exact_as_its_date() {
    has(entry("2026-03-16T13:00:00Z", Precision::Second), &["DTSTART:20260316T130000Z", "STATUS:CONFIRMED"], "DTEND");
    has(entry("2026-03-16T13:20:00Z", Precision::Hour), &["DTSTART:20260316T130000Z", "DTEND:20260316T140000Z"], "");
    has(entry("2026-03-16T00:00:00Z", Precision::Second), &["DTSTART;VALUE=DATE:20260316"], "DTEND");
    has(entry("2026-03-16", Precision::Day), &["DTSTART;VALUE=DATE:20260316", "DTEND;VALUE=DATE:20260317"], "");
    let month = [
        "DTSTART;VALUE=DATE:20260316",
        "DTEND;VALUE=DATE:20260317",
        "STATUS:TENTATIVE",
        "SUMMARY:ARB unlock: 92.65M ARB to Team\\; Advisors\\, Core and Investors\\, some time in March 2026",
    ];
    has(entry("2026-03-16", Precision::Month), &month, "");
    let whole = lines_in(&[entry("2026-03-16", Precision::Month)], CalendarStyle { spans: MonthSpan::Month, ..STYLE });
    for wanted in ["DTSTART;VALUE=DATE:20260301", "DTEND;VALUE=DATE:20260401", "STATUS:TENTATIVE"] {
        assert!(whole.iter().any(|line| line == wanted), "{wanted} in {whole:#?}");
    }
}

#[test]
fn event_has_uid_summary_and_description() {
    let lines = lines(&[entry("2026-03-20T00:00:00Z", Precision::Second)]);
    for wanted in [
        "UID:unlock/arbitrum/2026-03-16@cliffwatch",
        "SUMMARY:ARB unlock: 92.65M ARB to Team\\; Advisors\\, Core and Investors",
        "DTSTAMP:20260301T061000Z",
        "URL:https://cliffwatch.example.com/tokens/arbitrum",
        "SEQUENCE:0",
        "LAST-MODIFIED:20260301T061000Z",
        "METHOD:PUBLISH",
        "TRANSP:TRANSPARENT",
    ] {
        assert!(lines.iter().any(|line| line == wanted), "{wanted} in {lines:#?}");
    }
    let description = lines.iter().find(|line| line.starts_with("DESCRIPTION:")).expect("a description");
    assert!(description.contains("\\nTo: Team\\; Advisors\\, Core and Investors"), "{description}");
}

#[test]
fn price_changes_do_not_change_the_calendar() {
    let of = |value: f64, share: f64| {
        let mut entry = entry("2026-03-16T13:00:00Z", Precision::Second);
        (entry.view.cliff_value, entry.view.value_to_market_cap) = (Some(value), Some(share));
        entry.view.polled_at = Some(time("2026-03-02T06:10:00Z"));
        entry
    };
    assert_eq!(lines(&[of(27_600_000.0, 1.9)]), lines(&[of(31_000_000.0, 2.1)]));
    assert!(lines(&[of(27_600_000.0, 1.9)]).iter().all(|line| !line.contains('$')));
}

#[test]
fn names_from_the_source_add_no_lines() {
    let mut hostile = entry("2026-03-16T13:00:00Z", Precision::Second);
    hostile.view.symbol = "X\r\nATTACH:https://evil.example\u{202e}".into();
    hostile.view.token_id = "x\r\nEND:VCALENDAR".into();
    hostile.view.name = "n".repeat(10_000);
    hostile.view.allocations = vec!["a\nBEGIN:VALARM".into()];
    let lines = lines(&[hostile]);
    for bad in ["ATTACH", "BEGIN:VALARM", "X\r"] {
        assert!(lines.iter().all(|line| !line.starts_with(bad)), "{lines:#?}");
    }
    assert_eq!(lines.iter().filter(|line| *line == "END:VCALENDAR").count(), 1);
    assert!(lines.iter().map(String::len).sum::<usize>() < 3_000);
}

#[test]
fn moved_and_removed_unlocks_keep_uid_and_raise_sequence() {
    let value = |entry: CalendarEntry, name: &str| {
        let lines = lines(&[entry]);
        lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned)).unwrap_or_default()
    };
    let number = |entry: &CalendarEntry| value(entry.clone(), "SEQUENCE").parse::<u32>().expect("a number");
    let first = entry("2026-03-16T13:00:00Z", Precision::Second);
    let moved = CalendarEntry {
        modified_at: time("2026-03-02T06:10:00Z"),
        was_modified: true,
        ..entry("2026-03-20T13:00:00Z", Precision::Second)
    };
    let again = CalendarEntry { modified_at: time("2026-03-02T06:10:00.300Z"), ..moved.clone() };
    assert!(number(&moved) < number(&again), "two moves in one second");
    let gone = CalendarEntry { modified_at: time("2026-03-03T06:10:00Z"), is_removed: true, ..moved.clone() };
    assert_eq!(number(&first), 0);
    assert!(number(&first) < number(&moved) && number(&moved) < number(&gone));
    for (at, sequence) in [("2019-03-02T00:00:00Z", 1), ("2099-03-02T00:00:00Z", i32::MAX as u32)] {
        assert_eq!(number(&CalendarEntry { modified_at: time(at), ..moved.clone() }), sequence, "within the range of the format");
    }
    assert_eq!(value(first, "UID"), value(moved.clone(), "UID"));
    assert_eq!(value(moved, "LAST-MODIFIED"), "20260302T061000Z");
    assert_eq!(value(gone.clone(), "STATUS"), "CANCELLED");
    assert!(value(gone, "SUMMARY").starts_with("Cancelled: ARB unlock"));
}

#[test]
fn alarm_precedes_events_that_are_not_removed() {
    let style = CalendarStyle { alarm: Some(TimeDelta::days(1)), ..STYLE };
    let lines = lines_in(&[entry("2026-03-16T13:00:00Z", Precision::Second)], style);
    for wanted in ["BEGIN:VALARM", "ACTION:DISPLAY", "END:VALARM"] {
        assert!(lines.iter().any(|line| line == wanted), "{wanted} in {lines:#?}");
    }
    assert!(lines.iter().any(|line| line.starts_with("TRIGGER") && line.ends_with(":-PT86400S")), "{lines:#?}");
    assert_eq!(lines, lines_in(&[entry("2026-03-16T13:00:00Z", Precision::Second)], style), "the text is stable");
    let gone = CalendarEntry { is_removed: true, ..entry("2026-03-16T13:00:00Z", Precision::Second) };
    assert!(!lines_in(&[gone], style).iter().any(|line| line == "BEGIN:VALARM"));
}

#[test]
fn inexact_date_of_a_linear_unlock_is_tentative_and_a_removed_one_is_cancelled() {
    let row = LinearCalendarRow {
        token: model::Token::unknown("arbitrum".into()),
        key: "2026-03-16/Team/start".into(),
        at: time("2026-03-16T00:00:00Z"),
        precision: Precision::Month,
        summary: "ARB: vesting of Team begins, 1.20M ARB per day until March 2027".into(),
        allocations: Some("Team".into()),
        event: None,
        value: None,
        modified_at: time("2026-03-01T06:10:00Z"),
        was_modified: true,
        is_removed: false,
    };
    let removed = LinearCalendarRow { is_removed: true, ..row.clone() };
    let text = render(&[], &[row, removed], &STYLE).replace("\r\n ", "");
    for wanted in [
        "UID:vesting/arbitrum/2026-03-16/Team/start@cliffwatch",
        "DTSTART;VALUE=DATE:20260316",
        "STATUS:TENTATIVE",
        "SEQUENCE:778034400",
        "SUMMARY:ARB: vesting of Team begins\\, 1.20M ARB per day until March 2027\\, some time in March 2026",
        "SUMMARY:Cancelled: ARB: vesting of Team begins\\, 1.20M ARB per day until March 2027\\, some time in March 2026",
        "STATUS:CANCELLED",
    ] {
        assert!(text.split("\r\n").any(|line| line == wanted), "{wanted} in {text}");
    }
}

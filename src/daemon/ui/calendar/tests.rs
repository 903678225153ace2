use super::*;
use model::wire;

fn time(text: &str) -> Timestamp {
    wire::parse_timestamp(text).expect("a timestamp")
}

fn entry(date: &str, precision: Precision) -> CalendarEntry {
    let interval = Interval::of(time(date), precision).expect("dated");
    CalendarEntry {
        key: "2026-03-16".to_owned(),
        interval,
        view: UnlockView {
            token_id: "arbitrum".into(),
            symbol: "ARB".into(),
            name: "Arbitrum".into(),
            unlock_date: Some(time(date)),
            precision,
            when: format::when(&interval),
            cliff_amount: Some(92_650_000.0),
            cliff_value: Some(27_600_000.0),
            value_to_market_cap: Some(1.9),
            days_until: None,
            allocations: vec!["Team; Advisors, Core".into(), "Investors".into()],
            listed_method: None,
            polled_at: Some(time("2026-03-01T06:10:00Z")),
            record: serde_json::Value::Null,
        },
    }
}

/// The lines of the calendar, unfolded.
fn lines(entries: &[CalendarEntry]) -> Vec<String> {
    let text = render(entries, Some("https://cliffwatch.example.com/"), time("2026-03-09"));
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
fn an_event_claims_no_more_than_the_source_knows() {
    has(entry("2026-03-16T13:00:00Z", Precision::Second), &["DTSTART:20260316T130000Z", "STATUS:CONFIRMED"], "DTEND");
    has(entry("2026-03-16T13:20:00Z", Precision::Hour), &["DTSTART:20260316T130000Z", "DTEND:20260316T140000Z"], "");
    has(entry("2026-03-16T00:00:00Z", Precision::Second), &["DTSTART;VALUE=DATE:20260316"], "DTEND");
    has(entry("2026-03-16", Precision::Day), &["DTSTART;VALUE=DATE:20260316", "DTEND;VALUE=DATE:20260317"], "");
    let month = ["DTSTART;VALUE=DATE:20260301", "DTEND;VALUE=DATE:20260401", "STATUS:TENTATIVE"];
    has(entry("2026-03-16", Precision::Month), &month, "");
}

#[test]
fn an_event_tells_token_size_share_and_when_and_keeps_its_uid() {
    let lines = lines(&[entry("2026-03-20T00:00:00Z", Precision::Second)]);
    for wanted in [
        "UID:unlock/arbitrum/2026-03-16@cliffwatch",
        "SUMMARY:ARB unlock: $27.60M (1.90% of market cap)",
        "DTSTAMP:20260301T061000Z",
        "URL:https://cliffwatch.example.com/",
        "METHOD:PUBLISH",
        "TRANSP:TRANSPARENT",
    ] {
        assert!(lines.iter().any(|line| line == wanted), "{wanted} in {lines:#?}");
    }
    let description = lines.iter().find(|line| line.starts_with("DESCRIPTION:")).expect("a description");
    assert!(description.contains("\\nTo: Team\\; Advisors\\, Core\\, Investors\\n"), "{description}");
}

#[test]
fn names_from_the_source_cannot_add_lines() {
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
fn the_text_does_not_depend_on_the_time_of_the_request() {
    let entries = [entry("2026-03-16T13:00:00Z", Precision::Second)];
    assert_eq!(render(&entries, None, time("2026-03-09")), render(&entries, None, time("2026-03-10")));
}

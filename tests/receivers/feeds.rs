//! A calendar library and a feed library parse our calendars and feeds, including moved and removed unlocks.

use std::{path::PathBuf, process::Command};

use chrono::TimeDelta;
use cliffwatch::daemon::view::UnlockView;
use cliffwatch::model::supply::{Precision, Record, Resource, Timestamp, Token, TokenId, Tracked};
use cliffwatch::model::{Change, ChangeKind, ChangeRow, Interval, UpcomingRow, wire};
use cliffwatch::web::ui::atom::{self, FeedEntry};
use cliffwatch::web::ui::calendar::{CalendarEntry, CalendarStyle, MonthSpan, render};
use serde_json::{Value, json};

use crate::receivers::outside::{self, parsed};

fn time(text: &str) -> Timestamp {
    wire::parse_timestamp(text).expect("a time")
}

fn entry(date: &str, precision: &str) -> CalendarEntry {
    let event = json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": 92_650_000.0, "cliffValue": 27_600_000.0, "valueToMarketCap": 1.9,
        "allocationBreakdown": [{"allocationName": "Team; Advisors, \"Core\"\n", "cliffAmount": 1.0, "unlockPrecision": precision}]}});
    let record = Record::Unlock(serde_json::from_value(event).expect("an event"));
    let interval = record.interval().expect("dated");
    let token = Token::unknown(TokenId::from("arbitrum"));
    let row = UpcomingRow { token, tracked: Tracked { key: "2026-03-16".into(), record }, read_at: None };
    CalendarEntry {
        key: "2026-03-16".into(),
        interval,
        view: UnlockView::of(&row, time("2026-03-01")).expect("an unlock"),
        modified_at: time("2026-03-01T06:00:00Z"),
        was_modified: false,
        is_removed: false,
    }
}

/// Parses these texts with `subscribe.py`, each from a file of that name.
fn read(texts: &[(&str, String)]) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let paths: Vec<PathBuf> = texts
        .iter()
        .map(|(name, text)| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path
        })
        .collect();
    let output = Command::new(outside::python()).arg(outside::script("subscribe.py")).args(paths).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(parsed).collect()
}

#[test]
fn calendar_library_sees_moved_and_removed_unlocks() {
    if outside::lacks_python("icalendar") {
        return;
    }
    let style = CalendarStyle {
        external_url: Some("https://cliffwatch.example.com"),
        spans: MonthSpan::Day,
        alarm: Some(TimeDelta::days(1)),
    };
    let first = entry("2026-03-16T13:00:00Z", "second");
    let moved = CalendarEntry {
        modified_at: time("2026-03-02T06:00:00Z"),
        was_modified: true,
        ..entry("2026-03-20T13:00:00Z", "second")
    };
    let removed = CalendarEntry { modified_at: time("2026-03-03T06:00:00Z"), is_removed: true, ..moved.clone() };
    let month = entry("2026-03-16T00:00:00Z", "month");
    assert_eq!(month.interval, Interval::of(time("2026-03-16"), Precision::Month).expect("dated"));
    let whole = CalendarStyle { spans: MonthSpan::Month, alarm: None, ..style };
    let seen = read(&[
        ("1.ics", render(&[first], &[], &style)),
        ("2.ics", render(&[moved], &[], &style)),
        ("3.ics", render(&[removed], &[], &style)),
        ("4.ics", render(std::slice::from_ref(&month), &[], &style)),
        ("5.ics", render(&[month], &[], &whole)),
    ]);
    assert!(seen.iter().all(|calendar| calendar["problems"] == json!([])), "{seen:#?}");
    let event = |at: usize| &seen[at]["events"][0];
    assert!((1..3).all(|at| event(at)["uid"] == event(0)["uid"]), "{seen:#?}");
    let sequence = |at: usize| event(at)["sequence"].as_i64().expect("a number");
    assert!(sequence(0) == 0 && sequence(0) < sequence(1) && sequence(1) < sequence(2), "{seen:#?}");
    assert_eq!(event(0)["start"], "2026-03-16T13:00:00+00:00");
    assert_eq!(
        (&event(1)["start"], &event(1)["modified"]),
        (&json!("2026-03-20T13:00:00+00:00"), &json!("2026-03-02T06:00:00+00:00"))
    );
    assert_eq!((&event(0)["alarms"], &event(2)["alarms"]), (&json!(["-1 day, 0:00:00"]), &json!([])));
    assert_eq!(
        (&event(1)["status"], &event(2)["status"], &event(3)["status"]),
        (&json!("CONFIRMED"), &json!("CANCELLED"), &json!("TENTATIVE"))
    );
    assert_eq!((&event(3)["start"], &event(3)["end"]), (&json!("2026-03-16"), &json!("2026-03-17")));
    assert_eq!((&event(4)["start"], &event(4)["end"]), (&json!("2026-03-01"), &json!("2026-04-01")));
}

#[test]
fn feed_library_finds_changes_under_stable_ids() {
    if outside::lacks_python("feedparser") {
        return;
    }
    let row = |symbol: &str, summary: &str| {
        let token = TokenId::from("arbitrum");
        let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &token);
        change.summary = summary.to_owned();
        let at = time("2026-03-09T06:00:00Z");
        ChangeRow { id: 1, at, token, symbol: Some(symbol.into()), resource: Resource::Unlock, key: None, change }
    };
    let hostile = row("<b>&\"\u{0}\u{202e}", "<script>]]>\r\n");
    let rows = [row("ARB", "moved from 16 Mar 2026 to 20 Mar 2026 (+4 days)"), hostile];
    let entries: Vec<FeedEntry> = rows.iter().map(FeedEntry::of).collect();
    let feed = |entries: &[FeedEntry]| {
        atom::render(entries, "arbitrum", "/feed.atom?token=arbitrum", Some("https://cliffwatch.example.com/"))
            .expect("it renders")
    };
    let seen = read(&[("1.atom", feed(&entries)), ("2.atom", feed(&entries[..1])), ("3.atom", feed(&[]))]);
    for feed in &seen {
        assert_eq!((&feed["version"], &feed["wrong"]), (&json!("atom10"), &json!(false)), "{seen:#?}");
        assert_eq!(feed["id"], seen[0]["id"]);
    }
    assert_eq!(seen[0]["entries"][0], seen[1]["entries"][0]);
    assert_eq!(seen[0]["entries"][0]["title"], "ARB: unlock moved from 16 Mar 2026 to 20 Mar 2026 (+4 days)");
    assert_eq!(seen[0]["entries"][0]["link"], "https://cliffwatch.example.com/tokens/arbitrum");
    assert_eq!(seen[0]["entries"].as_array().map(Vec::len), Some(2));
}

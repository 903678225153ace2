use super::*;
use crate::ui::page::Section;
use crate::ui::page::tests::page_filters;
use model::{Change, ChangeKind, Endpoint, FeedState, Hold, Token, TokenId};
use testkit::time;

const NOW: &str = "2026-11-22T12:00:00Z";
const HOSTILE: &str = "<script>alert(1)</script>\u{202e}&\"'";

fn event(date: &str, name: &str, amount: f64) -> Record {
    Record::Unlock(
        serde_json::from_value(serde_json::json!({"unlockDate": date, "dataSource": format!("https://example.org/{name}"), "listedMethod": name,
            "latestUpdateDate": "2026-11-01T00:00:00Z", "cliffUnlocks": {"cliffAmount": amount, "cliffValue": amount, "valueToMarketCap": 1.5,
            "allocationBreakdown": [{"unlockDate": date, "allocationName": name, "standardAllocationName": "Community", "cliffAmount": amount}]}}))
        .expect("an event"),
    )
}

fn snapshot(name: &str) -> TokenSnapshot {
    let mut token = Token::unknown(TokenId::from("jupiter"));
    token.item.name = name.to_owned().into();
    token.item.symbol = "JUP".to_owned().into();
    token.item.market_cap = 1e9.into();
    let tracked = |key: &str, record: Record| Tracked { key: key.into(), record };
    let burn = serde_json::json!({"burnEventLabel": name, "burnDate": "2026-06-01T00:00:00Z", "amount": 5e6});
    let feed = FeedState {
        read_at: Some(time("2026-11-22T06:00:00Z")),
        hold: Some(Hold { since: time("2026-11-22T05:00:00Z"), is_accepted: false }),
        ..FeedState::default()
    };
    TokenSnapshot {
        feeds: vec![(Endpoint::UnlockEvents, feed)],
        records: vec![
            tracked("a", event("2026-01-31T00:00:00Z", name, 5e7)),
            tracked("b", event("2027-01-31T00:00:00Z", name, 1e8)),
            tracked("c", Record::Burn(serde_json::from_value(burn).expect("a burn"))),
        ],
        ..TokenSnapshot::of(token)
    }
}

fn correction(summary: &str) -> ChangeRow {
    let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &TokenId::from("jupiter"));
    change.summary = summary.to_owned();
    change.from = Some(model::Fact::Time(time("2026-12-31")));
    change.to = Some(model::Fact::Time(time("2027-01-31")));
    change.shift_days = Some(31.0);
    ChangeRow {
        id: 1,
        at: time("2026-11-20T06:00:00Z"),
        token: TokenId::from("jupiter"),
        symbol: Some("JUP".to_owned()),
        resource: Resource::Unlock,
        key: Some("b".into()),
        change,
    }
}

fn version(key: &str, at: &str, record: Option<Record>) -> VersionRow {
    VersionRow { resource: Resource::Unlock, key: key.into(), at: time(at), record }
}

fn versions(name: &str) -> Vec<VersionRow> {
    vec![
        version("a", "2026-01-01", Some(event("2026-01-31T00:00:00Z", name, 5e7))),
        version("b", "2026-01-01", Some(event("2026-12-31T00:00:00Z", name, 1e8))),
        version("b", "2026-11-20T06:00:00Z", Some(event("2027-01-31T00:00:00Z", name, 1e8))),
    ]
}

fn shown(name: &str, versions: &[VersionRow]) -> String {
    let snapshot = snapshot(name);
    let changes = [correction(&format!("moved by {name}"))];
    let parts = TokenParts {
        now: time(NOW),
        snapshot: &snapshot,
        changes: &changes,
        changes_total: 41,
        versions,
        alerts: Vec::new(),
        is_watched: true,
        groups: vec![name.to_owned()],
    };
    page(parts, PageFrame::of(Section::Tokens, time(NOW)))
}

#[test]
fn page_matches_snapshot() {
    let html = shown("Jupiter", &versions("Jupiter"));
    insta::with_settings!({filters => page_filters()}, { insta::assert_snapshot!(html) });
}

#[test]
fn chart_shows_the_schedule_before_the_correction() {
    let html = shown("Jupiter", &versions("Jupiter"));
    assert!(html.contains("class=\"ghost\"") && html.contains("before the correction of 20 Nov 2026"), "{html}");
    // The versions before the correction are deleted.
    let html = shown("Jupiter", &[version("b", "2026-11-20T06:00:00Z", None)]);
    assert!(!html.contains("class=\"ghost\"") && !html.contains("before the correction"), "{html}");
}

#[test]
fn page_shows_held_responses_and_totals() {
    let html = shown("Jupiter", &[]);
    assert!(html.contains("is held since 22 Nov 2026, 05:00 UTC") && html.contains("1 of 41"), "{html}");
}

#[test]
fn text_from_the_source_is_escaped() {
    let html = shown(HOSTILE, &versions(HOSTILE));
    assert!(!html.contains("<script>") && !html.contains('\u{202e}'), "{html}");
    let long = shown(&"x".repeat(10_000), &[]);
    assert!(long.len() < 100_000, "{}", long.len());
}

#[test]
fn only_web_addresses_become_links() {
    let mut bad = snapshot("Jupiter");
    for (record, source) in bad.records.iter_mut().zip(["javascript:alert(1)", "data:text/html,x"]) {
        if let Record::Unlock(event) = &mut record.record {
            std::sync::Arc::make_mut(event).data_source = source.to_owned().into();
        }
    }
    let parts = TokenParts {
        now: time(NOW),
        snapshot: &bad,
        changes: &[],
        changes_total: 0,
        versions: &[],
        alerts: Vec::new(),
        is_watched: false,
        groups: Vec::new(),
    };
    let html = page(parts, PageFrame::of(Section::Tokens, time(NOW)));
    assert!(!html.contains("href=\"javascript:") && !html.contains("href=\"data:") && html.contains("not watched"), "{html}");
}

#[test]
fn time_until_a_day_has_no_hours() {
    let mut near_day = snapshot("Jupiter");
    let event = serde_json::json!({"unlockDate": "2026-11-23T00:00:00Z", "cliffUnlocks": {"cliffAmount": 1.0, "allocationBreakdown": [
        {"unlockDate": "2026-11-23T00:00:00Z", "allocationName": "Team", "cliffAmount": 1.0, "unlockPrecision": "day"}]}});
    near_day.records =
        vec![Tracked { key: "a".into(), record: Record::Unlock(serde_json::from_value(event).expect("an event")) }];
    let rows = upcoming(&near_day, time(NOW));
    assert_eq!((rows[0].unlock.when.as_str(), rows[0].time_until.as_str()), ("on 23 Nov 2026", "in less than a day"));
}

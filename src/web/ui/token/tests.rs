use super::*;
use crate::ui::page::Section;
use crate::ui::page::tests::page_filters;
use model::{Change, ChangeKind, Endpoint, FeedState, Hold, KnownSupply, Token, TokenId, TokenPieces};
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

/// The coming supply of all its records.
fn supply_of(snapshot: &TokenSnapshot, known: KnownSupply) -> TokenSupply {
    let events: Vec<&UnlockEvent> = snapshot.records_of(Resource::Unlock).filter_map(|tracked| tracked.record.unlock()).collect();
    let pieces = TokenPieces::of(events.iter().copied());
    let windows = supply::windows(time(NOW)).into_iter().map(|window| pieces.sum(window)).collect();
    TokenSupply { known, linear_until: None, price: pieces.price, windows, rate: pieces.rate_at(time(NOW)) }
}

/// The page of a token without changes.
fn shown_token(snapshot: &TokenSnapshot, supply: &TokenSupply) -> String {
    let parts = TokenParts {
        now: time(NOW),
        snapshot,
        supply,
        stale_price: TimeDelta::days(3),
        changes: &[],
        changes_total: 0,
        corrections: Corrections::default(),
        by: CurveBy::default(),
        versions: &[],
        alerts: Vec::new(),
        is_watched: true,
        groups: Vec::new(),
    };
    page(parts, PageFrame::of(Section::Tokens, time(NOW)))
}

fn shown(name: &str, versions: &[VersionRow]) -> String {
    let snapshot = snapshot(name);
    let supply = supply_of(&snapshot, KnownSupply::All);
    let changes = [correction(&format!("moved by {name}"))];
    let parts = TokenParts {
        now: time(NOW),
        snapshot: &snapshot,
        supply: &supply,
        stale_price: TimeDelta::days(3),
        changes: &changes,
        changes_total: 41,
        corrections: Corrections { count: 4, moved: 3, shift_days: 19.0 },
        by: CurveBy::default(),
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
    let supply = supply_of(&bad, KnownSupply::All);
    let parts = TokenParts {
        now: time(NOW),
        snapshot: &bad,
        supply: &supply,
        stale_price: TimeDelta::days(3),
        changes: &[],
        changes_total: 0,
        corrections: Corrections::default(),
        by: CurveBy::default(),
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
    let rows = upcoming(&near_day, None, time(NOW));
    assert_eq!((rows[0].unlock.when.as_str(), rows[0].time_until.as_str()), ("on 23 Nov 2026", "in less than a day"));
}

fn tile<'h>(html: &'h str, name: &str) -> &'h str {
    let begin = format!("<span class=\"name\">{name}</span>");
    html.split(&begin).nth(1).and_then(|rest| rest.split("</div>").next()?.split("</a>").next()).expect("a tile")
}

/// A token with a price of $2, a market cap of $1000M, and 100,000 tokens per day until 2 March 2027, at half the rate from 1 December.
fn linear_token(price: Option<f64>) -> TokenSnapshot {
    let part = |name: &str, end: &str, amount: f64| {
        serde_json::json!({"allocationName": name, "linearAmount": amount, "beginDate": "2026-11-02T00:00:00Z", "endDate": end,
            "referencePrice": price, "referencePriceUpdatedTime": "2025-11-03T00:00:00Z"})
    };
    let event = serde_json::json!({"unlockDate": "2026-11-02T00:00:00Z", "linearUnlocks": {"allocationBreakdown": [
        part("Team", "2027-03-02T00:00:00Z", 6e6), part("Treasury", "2026-12-01T00:00:00Z", 1.45e6)]}});
    let mut token = snapshot("Jupiter").token;
    token.item.max_supply = 1e9.into();
    token.item.unlocked_amount = 4e8.into();
    token.item.untracked_amount = 1e8.into();
    let record = Record::Unlock(serde_json::from_value(event).expect("an event"));
    let feed = FeedState { baseline_at: Some(time(NOW)), read_at: Some(time(NOW)), ..FeedState::default() };
    TokenSnapshot {
        records: vec![Tracked { key: "a".into(), record }],
        feeds: vec![(Endpoint::UnlockEvents, feed)],
        ..TokenSnapshot::of(token)
    }
}

#[test]
fn linear_token_shows_rate_change_windows_and_shares() {
    let snapshot = linear_token(Some(2.0));
    let html = shown_token(&snapshot, &supply_of(&snapshot, KnownSupply::All));
    assert!(tile(&html, "Next cliff").contains(">linear only<"), "{html}");
    let per_day = tile(&html, "Vesting per day");
    assert!(per_day.contains(">$200.00K<") && per_day.contains("$100.00K from 1 Dec 2026"), "{per_day}");
    // 8.5 days at 100,000 tokens, and 21.5 days at 50,000.
    let month = tile(&html, "Next 30 days");
    assert!(month.contains(">$3.85M<") && month.contains("all linear, 0.39% of market cap"), "{month}");
    for text in [
        "At prices of 3 Nov 2025",
        "<td class=\"num\" data-name=\"% of released supply\">0.48%</td>",
        // Max supply × price, market cap ÷ price, and the parts of the max supply.
        "<dd>$2.00B <span class=\"sub\">max supply",
        "<dd>500.00M <span class=\"sub\">market cap",
        "<dt>Unlocked</dt><dd>400.00M <span class=\"sub\">40.00% of max supply</span>",
        "<dt>Untracked</dt><dd>100.00M <span class=\"sub\">10.00% of max supply</span>",
        // Treasury: 8.5 of 29 days remain.
        "<td class=\"num\" data-name=\"Total\">1.45M</td><td class=\"num\" data-name=\"Remaining\">425.00K</td>",
        "<td class=\"num\" data-name=\"Per day\">50.00K <span class=\"sub\">$100.00K</span></td>",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
}

#[test]
fn missing_price_and_unread_schedule_are_never_zero() {
    let snapshot = linear_token(None);
    let unpriced = shown_token(&snapshot, &supply_of(&snapshot, KnownSupply::All));
    assert!(tile(&unpriced, "Next 30 days").contains("1.93M JUP") && unpriced.contains("value unknown"), "{unpriced}");
    let unread = TokenSnapshot { records: Vec::new(), feeds: Vec::new(), ..snapshot };
    let unread = shown_token(&unread, &TokenSupply::unread(4));
    assert!(
        tile(&unread, "Next cliff").contains("not read yet") && tile(&unread, "Next 90 days").contains("not read yet"),
        "{unread}"
    );
    for html in [unpriced, unread] {
        let text = html.to_lowercase();
        assert!(!text.contains("$0<") && !text.contains("no unlock") && !text.contains("none known"), "{html}");
    }
}

#[test]
fn limits_of_linear_supply_are_stated() {
    let mut snapshot = linear_token(Some(2.0));
    let ahead = serde_json::json!({"linearAhead": {"readAt": NOW, "until": "2026-12-05T00:00:00Z", "differs": 12.3e6, "runs": [
        {"allocation": "Airdrop", "start": "2026-11-20", "end": "2026-12-05", "perDay": 10.0}]}});
    snapshot.headers = vec![(Endpoint::UnlockEvents, ahead)];
    let supply = TokenSupply { linear_until: Some(time("2026-12-05T00:00:00Z")), ..supply_of(&snapshot, KnownSupply::All) };
    let html = shown_token(&snapshot, &supply);
    for text in ["Linear known until 5 Dec 2026", "The schedule exceeds daily emission by 12.30M JUP", "from daily emission"] {
        assert!(html.contains(text), "{text}: {html}");
    }
    let html = shown_token(&snapshot, &supply_of(&snapshot, KnownSupply::Cliffs));
    assert!(
        html.contains("Cliffs only: linear unlocks were not read") && tile(&html, "Vesting per day").contains("cliffs only"),
        "{html}"
    );
}

#[test]
fn passed_nominal_date_is_not_the_next_cliff() {
    let mut snapshot = snapshot("Jupiter");
    let month = |date: &str, amount: f64| {
        let event = serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": amount, "cliffValue": amount,
            "allocationBreakdown": [{"unlockDate": date, "allocationName": "Team", "cliffAmount": amount, "unlockPrecision": "month"}]}});
        Record::Unlock(serde_json::from_value(event).expect("an event"))
    };
    snapshot.records = [("a", month("2026-11-16T00:00:00Z", 5e6)), ("b", month("2027-01-16T00:00:00Z", 7e6))]
        .map(|(key, record)| Tracked { key: key.into(), record })
        .into();
    let html = shown_token(&snapshot, &supply_of(&snapshot, KnownSupply::All));
    let next = tile(&html, "Next cliff");
    assert!(
        next.contains(">$7.00M<") && next.contains("in January 2027") && next.contains("expected 16 Nov, not confirmed"),
        "{next}"
    );
}

#[test]
fn a_correction_has_a_picture_and_the_moves_of_the_year_are_added_up() {
    let html = shown("Jupiter", &versions("Jupiter"));
    assert!(html.contains("class=\"before-after\""), "{html}");
    assert!(html.contains("Corrected 4 times in the last 365 days; moved 3 times, 19 days later in all."), "{html}");
    // Without the earlier version, the unlock would look new.
    assert!(!shown("Jupiter", &[]).contains("class=\"before-after\""));
}

#[test]
fn the_table_of_the_schedule_has_each_step_before_and_after() {
    let html = shown_token(&snapshot("Jupiter"), &supply_of(&snapshot("Jupiter"), KnownSupply::All));
    let row = html.split("<tr data-at=\"1801353600\">").nth(1).expect("the row of 31 Jan 2027");
    assert!(
        row.starts_with("<th scope=\"row\">31 Jan 2027</th><td data-v=\"150000000\" data-b=\"50000000\">150.00M</td>"),
        "{row}"
    );
    assert!(html.contains("class=\"today\"><th scope=\"row\">22 Nov 2026</th><td data-v=\"50000000\">50.00M</td>"), "{html}");
}

#[test]
fn months_have_emission_burns_and_their_net() {
    let html = shown_token(&snapshot("Jupiter"), &supply_of(&snapshot("Jupiter"), KnownSupply::All));
    let month = |name: &str| {
        let row = html.split(&format!("<th scope=\"row\">{name}")).nth(1).and_then(|rest| rest.split("</tr>").next());
        row.unwrap_or_else(|| panic!("no row of {name} in {html}"))
            .split("<td>")
            .skip(1)
            .map(|cell| cell.replace("</td>", ""))
            .collect::<Vec<_>>()
    };
    // Emission, burned, net of burns, net.
    assert_eq!(month("Jan 2026"), ["50.00M", "0", "50.00M", "50.00M"]);
    assert_eq!(month("Jun 2026"), ["0", "5.00M", "-5.00M", "-5.00M"]);
    assert_eq!(month("Jan 2027"), ["100.00M", "–", "–", "–"]);
    assert!(html.contains("The buybacks of this token were not read, so the net leaves them out."), "{html}");
}

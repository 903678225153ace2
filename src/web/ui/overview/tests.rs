use super::*;
use crate::ui::page::tests::page_filters;
use daemon::view::{RulesView, StatusParts};
use model::{
    Alert, Change, ChangeKind, Endpoint, EndpointStat, Findings, NotificationOverview, NotificationState, PastPoll, PollProblem,
    Precision, RateRow, RateStep, ReceiverCounts, ReceiverStatus, Resource, StoreCounts, SupplyAhead, SuppressedCount, TokenId,
    TotalsCoverage, Tracked, UnlockSum,
};
use testkit::{rows::firing, time};

const NOW: &str = "2026-03-09T12:00:00Z";
const HOSTILE: &str = "<script>alert(1)</script>\u{202e}&\"'";

fn row(name: &str, date: &str, precision: &str, value: f64) -> UpcomingRow {
    let part = |who: &str, standard: &str, amount: f64| serde_json::json!({"allocationName": who, "standardAllocationName": standard, "cliffAmount": amount, "unlockPrecision": precision});
    let event = serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": 3e6, "cliffValue": value, "valueToMarketCap": 2.77,
        "allocationBreakdown": [part("Investors", "Private Investors", 1e6), part(name, "Founder / Team", 2e6)]}});
    let mut token = Token::unknown(TokenId::from(name));
    token.item.symbol = name.to_owned().into();
    let record = Record::Unlock(serde_json::from_value(event).expect("an event"));
    UpcomingRow { token, tracked: Tracked { key: date.into(), record }, read_at: Some(time("2026-03-09T06:00:00Z")) }
}

fn alert(id: &str, severity: &str, summary: &str) -> Alert {
    Alert {
        subject: format!("unlock/{id}"),
        labels: [("severity".to_owned(), severity.to_owned())].into(),
        annotations: [("summary".to_owned(), summary.to_owned())].into(),
        ..firing(id, time("2026-03-09T06:00:00Z"))
    }
}

fn status(name: &str, incidents: &[Alert]) -> StatusView {
    let stat = EndpointStat {
        endpoint: Endpoint::UnlockEvents,
        feeds: 2,
        failing: 1,
        failing_since: Some(time("2026-03-09T06:00:00Z")),
        last_success: Some(time("2026-03-09T11:00:00Z")),
        last_try: Some(time(NOW)),
        last_error: Some((time(NOW), format!("404 {name}"))),
        parse_warnings: 3,
        polls: 310,
        credits: 420,
        findings: Findings::default(),
    };
    let dead = ReceiverCounts {
        receiver: "ops".into(),
        states: vec![(model::DeliveryState::Dead, 3), (model::DeliveryState::Delivered, 40)],
        oldest_pending: None,
    };
    let counts =
        StoreCounts { tokens: 303, removals_held: 1, outbox: vec![dead], database_bytes: 5 << 20, ..StoreCounts::default() };
    let held = SuppressedCount { receiver: "ops".into(), waiting: 2, silenced: 1, inhibited: 0, lately: 5 };
    StatusView::of(StatusParts {
        now: time(NOW),
        counts: &counts,
        endpoints: &[stat],
        credit: &CreditState::default(),
        reads: None,
        incidents,
        receivers: vec!["ops".to_owned()],
        notifications: &NotificationOverview { held: vec![held], ..NotificationOverview::default() },
        digests: &[],
        subscribers: &[],
        database: "cliffwatch.db".into(),
        rules: RulesView { count: Some(4), ..RulesView::default() },
        daemon: None,
    })
}

/// Three cycles. One token failed in the second.
fn past_polls(name: &str) -> PastPolls {
    let cycle = |hour: u32, failed: u64| PastPoll {
        at: time(&format!("2026-03-09T{hour:02}:00:00Z")),
        polls: 3,
        failed,
        deferred: 0,
        is_empty: false,
        failure: (failed > 0).then(|| PollProblem { token: Some(name.to_owned()), message: format!("404 {name}") }),
    };
    PastPolls { endpoint: Endpoint::UnlockEvents, cycles: vec![cycle(11, 0), cycle(10, 1), cycle(9, 0)] }
}

fn sum(count: u64, value: f64) -> UnlockSum {
    UnlockSum { count, value, ..UnlockSum::default() }
}

/// Totals with the same sum in each window.
fn totals(ahead: SupplyAhead, coverage: TotalsCoverage) -> SupplyTotals {
    let windows = supply_windows(time(NOW)).iter().map(|_| ahead).collect();
    SupplyTotals { windows, linear_per_day_value: ahead.linear.value / 30.0, coverage }
}

fn supply() -> SupplyTotals {
    let coverage = TotalsCoverage {
        tokens: 59,
        unread: 2,
        cliffs_only: 3,
        stale_prices: 4,
        without_price: 1,
        linear_until: None,
        oldest_price: Some(time("2025-11-03T00:00:00Z")),
    };
    totals(SupplyAhead { cliff: sum(12, 584e6), linear: sum(40, 936e6), inexact: sum(2, 5e6) }, coverage)
}

fn shown(name: &str) -> String {
    shown_with(name, &supply())
}

fn shown_with(name: &str, supply: &SupplyTotals) -> String {
    let largest = vec![row(name, "2026-04-15T00:00:00Z", "month", 90e6)];
    let largest_share = vec![row("JUP", "2026-03-16T13:00:00Z", "second", 33e6)];
    let next = vec![row("SUI", "2026-03-09T13:00:00Z", "second", 1e6), largest_share[0].clone(), largest[0].clone()];
    let rate = |at: &str, before: f64, after: f64, price: Option<f64>| RateRow {
        token: row(name, "2026-04-15T00:00:00Z", "second", 1.0).token,
        at: time(at),
        precision: Precision::Second,
        step: RateStep { before, after },
        price,
        causes: Some("Team ends".to_owned()),
    };
    let rates = vec![
        rate("2026-03-16T00:00:00Z", 5e5, 1.2e6, Some(2.0)),
        rate("2026-03-20T00:00:00Z", 1.2e6, 0.0, Some(2.0)),
        rate("2026-03-21T00:00:00Z", 0.0, 3e5, None),
    ];
    let ahead = Ahead { largest, largest_share, next, next_total: 12, rates, rates_total: 3 };
    let firing = FiringAlerts {
        alerts: vec![alert("al_1", "critical", name), alert("al_2", "warning", "small")],
        critical: 1,
        warning: 40,
        other: 0,
    };
    let notified_about =
        ReceiverStatus { receiver: name.into(), was_notified: false, state: NotificationState::parse("dead").expect("a state") };
    let alerts = firing
        .alerts
        .iter()
        .map(|alert| AlertView::of(alert, std::slice::from_ref(&notified_about), time("2026-03-09")))
        .collect();
    let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &TokenId::from(name));
    change.summary = format!("moved by {name}");
    let changes = [ChangeRow {
        id: 1,
        at: time("2026-03-09T09:00:00Z"),
        token: TokenId::from(name),
        symbol: Some(name.to_owned()),
        resource: Resource::Unlock,
        key: None,
        change,
    }];
    let mut incident = alert("al_3", "warning", name);
    incident.subject = "source".to_owned();
    let parts = OverviewParts {
        now: time(NOW),
        status: status(name, &[incident]),
        supply,
        stale_price: chrono::TimeDelta::days(3),
        ahead: &ahead,
        firing: &firing,
        alerts,
        changes: &changes,
        credit: &CreditState { used: Some(12), limit: Some(1000), ..CreditState::default() },
        held: &[Token::unknown(TokenId::from(name))],
        polls: &[past_polls(name)],
        cap: None,
    };
    page(parts, PageFrame::of(Section::Overview, time(NOW)))
}

#[test]
fn overview_matches_snapshot() {
    let html = shown("ARB");
    insta::with_settings!({filters => page_filters()}, { insta::assert_snapshot!(html) });
}

#[test]
fn missing_rules_are_an_error() {
    let titles = |status: &StatusView| notices::of(status, &[]).iter().map(|notice| notice.title).collect::<Vec<_>>();
    let mut status = status("ARB", &[]);
    assert!(!titles(&status).contains(&"No active rules."));
    status.rules.is_missing = true;
    assert!(notices::of(&status, &[]).iter().any(|notice| notice.title == "No active rules." && notice.severity == "bad"));
}

#[test]
fn coming_supply_counts_cliffs_and_linear_unlocks() {
    let html = shown("ARB");
    for text in [
        "<span class=\"name\">Next 30 days</span><span class=\"value \">$1.52B</span><span class=\"more\">$584.00M cliffs + $936.00M linear</span>",
        "plus up to 2 unlocks ($5.00M) with an inexact date",
        "<li>2 tokens not read yet</li>",
        "<li>3 tokens with cliffs only, because linear unlocks were not read</li>",
        "<li>1 token without a price (value unknown)</li>",
        "<li>4 tokens with prices older than 3 days; the oldest is from 3 Nov 2025</li>",
        "<td class=\"num\" data-name=\"Linear\">$936.00M</td>",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
    assert_eq!(html.matches("aria-label=\"Coming supply in each of the next 13 weeks, in USD\"").count(), 2);
}

#[test]
fn cliffs_and_changes_of_linear_unlocks_are_listed_by_date_with_today() {
    let html = shown("ARB");
    let list = html.split("id=\"next\"").nth(1).and_then(|rest| rest.split("</section>").next()).expect("the list");
    for text in [
        "6 of 15 dates in the next 90 days",
        "$31.20M <span class=\"sub\">per day",
        "~15 Apr 2026",
        "the source confirms only the month",
        "+$1.40M <span class=\"sub\">per day",
        "<span title=\"rises from 500.00K ARB to 1.20M ARB per day\">rises from $1.00M to $2.40M per day</span> <span class=\"sub\">Team ends",
        "−$2.40M <span class=\"sub\">per day",
        "ends, $2.40M per day until then",
        "– <span class=\"sub\">value unknown",
        "begins, 300.00K ARB per day</span> <span class=\"sub\">Team ends",
    ] {
        assert!(list.contains(text), "{text}: {list}");
    }
    let days: Vec<_> = list.split("<tr").skip(2).map(|row| row.contains("class=\"today\"")).collect();
    assert_eq!(days, [true, true, false, false, false, false, false], "the current day, and a cliff on it: {list}");
}

#[test]
fn unread_and_unpriced_supply_is_not_zero() {
    let unread = totals(SupplyAhead::default(), TotalsCoverage { tokens: 9, unread: 9, ..TotalsCoverage::default() });
    let html = shown_with("ARB", &unread);
    assert!(
        html.contains("<span class=\"value \">not read yet</span>") && html.contains("<li>9 tokens not read yet</li>"),
        "{html}"
    );
    let unvalued = UnlockSum { count: 1, amount: 5.0, unvalued_count: 1, ..UnlockSum::default() };
    let ahead = SupplyAhead { linear: unvalued, ..SupplyAhead::default() };
    let unpriced = totals(ahead, TotalsCoverage { tokens: 9, without_price: 9, ..TotalsCoverage::default() });
    let html = shown_with("ARB", &unpriced);
    for page in [html, shown_with("ARB", &unread)] {
        let text = page.to_lowercase();
        assert!(!text.contains(">$0<") && !text.contains("no unlock") && !text.contains(">none"), "{page}");
    }
}

#[test]
fn truncated_lists_show_the_total() {
    let html = shown("ARB");
    assert!(html.contains("2 of 41, one row per event"), "{html}");
    assert!(
        html.contains("Dead letters.")
            && html.contains("3 to ops")
            && html.contains("Held responses.")
            && html.contains("1 held response of ARB"),
        "{html}"
    );
}

#[test]
fn past_polls_are_shown_as_strip_and_table() {
    let html = shown("ARB");
    assert!(html.contains("aria-label=\"Last 3 cycles: 2 succeeded, 1 partly failed;"), "{html}");
    assert!(html.contains("<title>2026-03-09 10:00 UTC: 3 polls, 1 failed: ARB: 404 ARB</title>"), "{html}");
    assert!(html.contains("<td class=\"wide bad\">3 polls, 1 failed: ARB: 404 ARB</td>"), "{html}");
}

#[test]
fn chart_is_not_escaped() {
    let html = shown("ARB");
    assert!(html.contains("<svg class=\"chart on-wide\"") && html.contains("<svg class=\"chart on-phone\""), "{html}");
}

#[test]
fn text_from_the_source_is_escaped() {
    let html = shown(HOSTILE);
    assert!(!html.contains("<script>") && !html.contains('\u{202e}'), "{html}");
    assert!(html.contains("&lt;script&gt;"));
    let long = shown(&"x".repeat(10_000));
    assert!(long.len() < 300_000, "long names are cut: {}", long.len());
}

/// The order answers the first question of the day first: what unlocks next?
#[test]
fn sections_are_in_order_of_interest() {
    let html = shown("ARB");
    let ids = ["notices", "next", "tiles", "supply", "changes", "firing", "health"];
    let places: Vec<usize> = ids.iter().filter_map(|id| html.find(&format!(" id=\"{id}\""))).collect();
    assert!(places.len() == ids.len() && places.is_sorted(), "{places:?}");
    let tiles = &html[places[2]..places[3]];
    for text in
        ["Next 7 days", "Next 30 days", "Next 90 days", "Largest cliff in 30 days", "Largest share of market cap", "2.77%"]
    {
        assert!(tiles.contains(text), "{text}: {tiles}");
    }
    assert!(!tiles.contains("Credits") && !tiles.contains("Source"), "{tiles}");
}

#[test]
fn health_is_one_line_with_details() {
    let html = shown("ARB");
    let line = html.split("id=\"health\"").nth(1).and_then(|rest| rest.split("</summary>").next()).expect("the line");
    for text in
        ["Needs attention", "source", "last success 1 h ago", "credits: 12 of 1,000", "2 pending messages", "3 dead letters"]
    {
        assert!(line.contains(text), "{text}: {line}");
    }
}

#[test]
fn changes_show_their_direction() {
    let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &TokenId::from("arb"));
    (change.summary, change.shift_days) = ("moved from 1 to 6 Mar 2026 (+5 days)".to_owned(), Some(5.0));
    let row =
        ChangeRow { id: 1, at: time(NOW), token: "arb".into(), symbol: None, resource: Resource::Unlock, key: None, change };
    assert_eq!(change_lines(&[row], 1)[0].direction.as_deref(), Some("→ +5 days, later"));
}

#[test]
fn passed_nominal_date_is_shown_as_not_confirmed() {
    let day = |date: &str| AheadRow::of(&row("ARB", date, "month", 1e6), time(NOW)).expect("a row").day;
    assert_eq!(day("2026-03-16T00:00:00Z"), "~16 Mar 2026");
    assert_eq!(day("2026-03-03T00:00:00Z"), "in March 2026 (expected 3 Mar, not confirmed)");
}

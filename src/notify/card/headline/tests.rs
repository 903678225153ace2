use model::{Change, Fact, TokenBody};
use serde_json::json;

use super::*;
use testkit::time;

#[test]
fn summary_is_shown_only_if_it_adds_to_the_headline() {
    let headline = "ARB: $33.15M (2.77%) unlocks on 16 Mar 2026, 13:00 UTC";
    for same in ["", headline, "ARB: $33.15M to unlock on 16 Mar 2026", "ARB: $33.15M (2.77% of market cap) unlocks"] {
        assert!(!adds_words(same, headline), "{same}");
    }
    for more in ["Hedge ARB: $33.15M unlocks", "ARB: $33.15M unlocks on 17 Mar 2026", "ARB: $33.16M unlocks"] {
        assert!(adds_words(more, headline), "{more}");
    }
}

/// The record of such a change is only the first changed allocation.
#[test]
fn change_of_allocations_shows_no_amount_of_a_single_one() {
    let summary = "2 allocations, Mercurial Stakeholders among them, resized from 1.75B to 1.78B (+1.53%)";
    let token = TokenBody { id: "jupiter".into(), name: "Jupiter".into(), symbol: "JUP".into() };
    let change = Change { summary: summary.into(), ..Change::of(ChangeKind::Resized, Resource::Allocation, &"jupiter".into()) };
    let body = AlertBody {
        token: Some(token),
        resource: Some(Resource::Allocation),
        record: Some(json!({"allocationName": "Mercurial Stakeholders", "allocationAmount": 357_292_000.0})),
        change: Some(change),
        ..AlertBody::firing("al_1".into(), "SupplyChanged", "resized", time("2026-11-23"))
    };
    assert_eq!(headline(&body, ShareStyle::Short), format!("JUP: {summary}"));
}

/// `change.amount` of a resize is the difference. Without a sign, it would look like the amount of the unlock.
#[test]
fn resize_shows_the_signed_difference() {
    let body = |from: f64, to: f64| {
        let change = Change {
            from: Some(Fact::Amount(from)),
            to: Some(Fact::Amount(to)),
            ratio: (from > 0.0).then(|| to / from),
            amount: Some((to - from).abs()),
            summary: "Team resized, on 23 Dec 2026".into(),
            ..Change::of(ChangeKind::Resized, Resource::Unlock, &"jupiter".into())
        };
        let token = TokenBody { id: "jupiter".into(), name: "Jupiter".into(), symbol: "JUP".into() };
        AlertBody {
            token: Some(token),
            resource: Some(Resource::Unlock),
            record: Some(json!({"cliffUnlocks": {"cliffAmount": to, "cliffValue": to / 2.0, "valueToMarketCap": to / 1e7}})),
            change: Some(change),
            ..AlertBody::firing("al_1".into(), "UnlockResized", "resized", time("2026-11-23"))
        }
    };
    let headline_for = |from, to| headline(&body(from, to), ShareStyle::Short);
    assert_eq!(headline_for(50e6, 80e6), "JUP resized: +$15.00M (+3.00%) · Team resized, on 23 Dec 2026");
    assert_eq!(headline_for(80e6, 50e6), "JUP resized: −$15.00M (−3.00%) · Team resized, on 23 Dec 2026");
    assert_eq!(headline_for(0.0, 80e6), "JUP resized: +$40.00M (+8.00%) · Team resized, on 23 Dec 2026");
}

/// The record of such an alert has no amounts.
#[test]
fn end_of_linear_unlocks_states_the_rates_before_and_after() {
    let token = TokenBody { id: "arbitrum".into(), name: "Arbitrum".into(), symbol: "ARB".into() };
    let step = model::RateStep { before: 1.2e6, after: 0.0 };
    let body = |reason: &str, step, price| AlertBody {
        token: Some(token.clone()),
        resource: Some(Resource::Unlock),
        record: Some(json!({"unlockDate": "2026-03-12T00:00:00Z", "linearUnlocks": {"allocationBreakdown": [{}]}})),
        when: Some("on 12 Mar 2026".into()),
        rate_change: Some(model::RateChangeBody::of(step, price)),
        status: if reason == "lead 7d" { model::AlertStatus::Firing } else { model::AlertStatus::Resolved },
        ..AlertBody::firing("al_1".into(), "ReleaseFalls", reason, time("2026-03-05"))
    };
    let shown = |reason: &str, step, price| headline(&body(reason, step, price), ShareStyle::Short);
    assert_eq!(
        shown("lead 7d", Some(step), Some(2.0)),
        "ARB: vesting falls from 1.20M to 0 per day (−$2.40M per day) on 12 Mar 2026"
    );
    assert_eq!(shown("passed", Some(step), None), "ARB: vesting fell from 1.20M to 0 per day on 12 Mar 2026");
    assert_eq!(shown("rescheduled out", Some(step), None), "ARB: vesting falls from 1.20M to 0 per day");
    assert_eq!(shown("lead 7d", None, Some(2.0)), "ARB: vesting ends on 12 Mar 2026");
}

#[test]
fn headline_of_a_change_states_each_fact_once() {
    let shown = |kind, summary: &str, to: Option<Fact>| {
        let change = Change { summary: summary.into(), to, ..Change::of(kind, Resource::Unlock, &"debridge".into()) };
        let body = AlertBody {
            token: Some(TokenBody { id: "debridge".into(), name: "deBridge".into(), symbol: "DBR".into() }),
            resource: Some(Resource::Unlock),
            record: Some(json!({"cliffUnlocks": {"cliffAmount": 25_000.0}})),
            change: Some(change),
            ..AlertBody::firing("al_1".into(), "ScheduleChanged", "revised", time("2026-11-23"))
        };
        headline(&body, ShareStyle::Short)
    };
    let text = Some(Fact::Text("y".into()));
    let date = Some(Fact::Time(time("2026-09-17")));
    for (kind, summary, to, expected) in [
        (ChangeKind::Removed, "removed: an event without a date", None, "DBR removed: 25.00K DBR · an event without a date"),
        (ChangeKind::Revised, "source changed from x to y", text.clone(), "DBR: source changed from x to y"),
        (ChangeKind::Renamed, "Team renamed Core", text, "DBR: Team renamed Core"),
        (ChangeKind::Committed, "project announced a claim", None, "DBR: project announced a claim"),
        (ChangeKind::Revised, "25.00K DBR of Reserve now dated", date, "DBR: 25.00K DBR of Reserve now dated"),
    ] {
        assert_eq!(shown(kind, summary, to), expected);
    }
}

#[test]
fn title_is_cut_at_the_end_of_a_clause() {
    let text = "GGP: Sale: 112.50K in May 2026 instead of 56.25K, then 45.00K per quarter; same dates and total (337.50K)";
    assert_eq!(cut_at_clause(text, 200), text);
    assert_eq!(cut_at_clause(text, 90), "GGP: Sale: 112.50K in May 2026 instead of 56.25K, then 45.00K per quarter …");
    assert_eq!(cut_at_clause(text, 70), "GGP: Sale: 112.50K in May 2026 instead of 56.25K …");
    assert_eq!(cut_at_clause(text, 21), "GGP: Sale: 112.50K i…", "a clause of half the length is too short");
    for max in 20..120 {
        assert!(cut_at_clause(text, max).chars().count() <= max, "{max}");
    }
}

#[test]
fn verb_says_which_end_of_a_linear_unlock_moved() {
    let schedule = |begin: &str, end: &str| {
        let linear = Some(model::LinearSchedule { count: 1, ..Default::default() });
        Some(AllocationSchedule { begin: Some(time(begin)), end: Some(time(end)), count: Some(0), linear, ..Default::default() })
    };
    let verb = |begin: &str, end: &str| {
        let allocation = AllocationChange {
            before: schedule("2026-09-18", "2029-09-18"),
            after: schedule(begin, end),
            ..AllocationChange::default()
        };
        let to = Some(Fact::Time(time(end)));
        let change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &"lombard".into());
        move_verb(&Change { to, allocations: vec![allocation], ..change })
    };
    assert_eq!(verb("2026-09-18", "2030-09-18"), Some("prolonged"));
    assert_eq!(verb("2026-09-18", "2029-03-18"), Some("ends earlier"));
    assert_eq!(verb("2026-10-18", "2029-09-18"), Some("starts later"));
    assert_eq!(verb("2026-08-18", "2029-09-18"), Some("starts earlier"));
    assert_eq!(verb("2026-10-18", "2029-10-18"), Some("moved"));
    assert_eq!(
        move_verb(&Change::of(ChangeKind::Rescheduled, Resource::Unlock, &"lombard".into())),
        None,
        "the date was withdrawn"
    );
}

/// The difference of the totals would say little about a large cliff that takes the place of a linear unlock.
#[test]
fn new_cliff_is_the_size_of_the_change() {
    let linear = AllocationSchedule {
        total: Some(750.0),
        count: Some(0),
        linear: Some(model::LinearSchedule { count: 1, ..Default::default() }),
        ..Default::default()
    };
    let cliff = AllocationSchedule { total: Some(600.0), count: Some(1), ..Default::default() };
    let change = Change {
        from: Some(Fact::Amount(750.0)),
        to: Some(Fact::Amount(600.0)),
        ratio: Some(0.8),
        amount: Some(150.0),
        summary: "Foundation: 600 ARB in one cliff on 17 Apr 2027".into(),
        allocations: vec![AllocationChange { before: Some(linear), after: Some(cliff), ..Default::default() }],
        ..Change::of(ChangeKind::Resized, Resource::Unlock, &"arbitrum".into())
    };
    let body = AlertBody {
        token: Some(TokenBody { id: "arbitrum".into(), name: "Arbitrum".into(), symbol: "ARB".into() }),
        resource: Some(Resource::Unlock),
        record: Some(json!({"cliffUnlocks": {"cliffAmount": 600.0, "cliffValue": 300.0, "valueToMarketCap": 9.0}})),
        change: Some(change),
        ..AlertBody::firing("al_1".into(), "UnlockResized", "resized", time("2026-11-23"))
    };
    assert_eq!(
        headline(&body, ShareStyle::Short),
        "ARB restructured: $300 (9.00%) · Foundation: 600 ARB in one cliff on 17 Apr 2027"
    );
}

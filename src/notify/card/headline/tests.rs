use model::{Change, Fact, TokenBody};
use serde_json::json;

use super::*;
use crate::samples::time;

#[test]
fn a_summary_is_shown_where_it_says_more_than_the_headline() {
    let headline = "ARB: $33.15M (2.77%) unlocks on 16 Mar 2026, 13:00 UTC";
    for same in ["", headline, "ARB: $33.15M to unlock on 16 Mar 2026", "ARB: $33.15M (2.77% of market cap) unlocks"] {
        assert!(!says_more(same, headline), "{same}");
    }
    for more in ["Hedge ARB: $33.15M unlocks", "ARB: $33.15M unlocks on 17 Mar 2026", "ARB: $33.16M unlocks"] {
        assert!(says_more(more, headline), "{more}");
    }
}

/// The record of such a change is the first of those that changed.
#[test]
fn a_change_of_allocations_names_no_size_of_one_of_them() {
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

/// `change.amount` of a resize is what was added or taken: shown without a sign, it would pass for what unlocks.
#[test]
fn a_resize_says_by_how_much_and_which_way() {
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
    let told = |from, to| headline(&body(from, to), ShareStyle::Short);
    assert_eq!(told(50e6, 80e6), "JUP resized: +$15.00M (+3.00%) · Team resized, on 23 Dec 2026");
    assert_eq!(told(80e6, 50e6), "JUP resized: −$15.00M (−3.00%) · Team resized, on 23 Dec 2026");
    assert_eq!(told(0.0, 80e6), "JUP resized: +$40.00M (+8.00%) · Team resized, on 23 Dec 2026");
}

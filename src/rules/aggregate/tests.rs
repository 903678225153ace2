use proptest::prelude::*;

use chrono::TimeDelta;

use super::*;
use model::{Endpoint, FeedState, Record, RecordKey, Resource, Timestamp, Token, TokenId, Tracked, wire};

fn at(text: &str) -> Timestamp {
    wire::parse_timestamp(text).expect("a time")
}

fn record(resource: Resource, json: &str) -> Tracked {
    Tracked { key: RecordKey::from("k"), record: Record::from_json(resource, json).expect("a record") }
}

fn window(flow: Flow, days: i64) -> Window {
    Window { flow, span: TimeDelta::days(days) }
}

fn token(id: &str, market_cap: f64, groups: &[&str]) -> Token {
    let mut token = Token::unknown(TokenId::from(id));
    token.item.market_cap = market_cap.into();
    token.groups = groups.iter().map(|group| (*group).to_owned()).collect();
    token
}

const NOW: &str = "2026-03-09T00:00:00Z";

fn reads(windows: &[Window]) -> AggregateReads {
    AggregateReads { windows: windows.into(), ..AggregateReads::default() }
}

fn sum(records: &[Tracked], flow: Flow, days: i64, now: &str) -> Sum {
    FlowEntries::of(records, |_| true).sum(window(flow, days), at(now))
}

fn known(amount: f64, value: f64, count: f64) -> Sum {
    Sum { amount: Some(amount), value: Some(value), count: Some(count), ..Sum::ZERO }
}

/// Returns a sum of cliff unlocks.
fn cliffs(amount: f64, value: f64, count: f64) -> Sum {
    Sum { cliff: PartSum { amount: Some(amount), value: Some(value), count: Some(count) }, ..known(amount, value, count) }
}

/// Returns a sum of linear unlocks, of which `count` begin in the window without a cliff unlock.
fn linear(amount: f64, value: f64, count: f64) -> Sum {
    Sum { linear: PartSum { amount: Some(amount), value: Some(value), count: Some(0.0) }, ..known(amount, value, count) }
}

#[test]
fn cliff_counts_as_future_until_its_date_has_passed() {
    let cliff = |date: &str, precision: &str| {
        let json = format!(
            r#"{{"unlockDate":"{date}","cliffUnlocks":{{"cliffAmount":10,"cliffValue":100,"allocationBreakdown":[{{"unlockPrecision":"{precision}"}}]}}}}"#
        );
        [record(Resource::Unlock, &json)]
    };
    let exact = cliff("2026-03-16T00:00:00Z", "second");
    assert_eq!(sum(&exact, Flow::Ahead, 7, NOW), cliffs(10.0, 100.0, 1.0));
    assert_eq!(sum(&exact, Flow::Ahead, 6, NOW), Sum::ZERO);
    assert_eq!(sum(&exact, Flow::Ahead, 7, "2026-03-16T00:00:00Z"), Sum::ZERO);
    assert_eq!(sum(&cliff("2026-03-16T00:00:00Z", "tbd"), Flow::Ahead, 30, NOW), Sum::ZERO);
}

#[test]
fn imprecise_unlock_counts_on_its_nominal_date_and_separately_as_possible() {
    let json = r#"{"unlockDate":"2026-03-16T00:00:00Z","cliffUnlocks":{"cliffAmount":10,"cliffValue":100,"allocationBreakdown":[{"unlockPrecision":"month"}]}}"#;
    let march = [record(Resource::Unlock, json)];
    let possible = Sum { possible: Some(100.0), ..Sum::ZERO };
    for (now, days, expected) in [
        ("2026-02-27T00:00:00Z", 1, Sum::ZERO),
        ("2026-02-28T00:00:00Z", 1, possible),
        ("2026-03-09T00:00:00Z", 1, possible),
        ("2026-03-09T00:00:00Z", 7, cliffs(10.0, 100.0, 1.0)),
        ("2026-03-15T23:59:59Z", 7, cliffs(10.0, 100.0, 1.0)),
        ("2026-03-16T00:00:00Z", 7, possible),
        ("2026-03-31T23:00:00Z", 30, possible),
        ("2026-04-01T00:00:00Z", 30, Sum::ZERO),
    ] {
        assert_eq!(sum(&march, Flow::Ahead, days, now), expected, "{days} days from {now}");
    }
    // At each of these instants the sum changes without new data.
    let entries = FlowEntries::of(&march, |_| true);
    let next = |now: &str| entries.next_change(&reads(&[window(Flow::Ahead, 7)]), at(now));
    assert_eq!(next("2026-02-01T00:00:00Z"), Some(at("2026-02-22T00:00:00Z")));
    assert_eq!(next("2026-02-22T00:00:00Z"), Some(at("2026-03-09T00:00:00Z")));
    assert_eq!(next("2026-03-09T00:00:00Z"), Some(at("2026-03-16T00:00:00Z")));
    assert_eq!(next("2026-03-16T00:00:00Z"), Some(at("2026-04-01T00:00:00Z")));
}

#[test]
fn linear_segment_counts_with_its_share_of_the_window() {
    let records = [record(
        Resource::Unlock,
        r#"{"unlockDate":"2026-03-01T00:00:00Z","linearUnlocks":{"allocationBreakdown":[{"allocationName":"Team","linearAmount":100,"linearValue":1000,
        "dailyAmount":10,"dailyValue":100,"durationOfRate":10,"beginDate":"2026-03-01T00:00:00Z","endDate":"2026-03-11T00:00:00Z","unlockPrecision":"second"}]}}"#,
    )];
    assert_eq!(sum(&records, Flow::Ahead, 30, NOW), linear(20.0, 200.0, 0.0));
    assert_eq!(sum(&records, Flow::Ahead, 1, NOW), linear(10.0, 100.0, 0.0));
    assert_eq!(sum(&records, Flow::Ahead, 30, "2026-02-27T12:00:00Z"), linear(100.0, 1000.0, 1.0));
    assert_eq!(sum(&records, Flow::Ahead, 2, "2026-02-27T12:00:00Z"), linear(5.0, 50.0, 1.0));
    assert_eq!(sum(&records, Flow::Ahead, 30, "2026-03-11T00:00:00Z"), Sum::ZERO);
}

#[test]
fn unread_linear_unlocks_leave_the_cliffs_as_a_lower_bound() {
    let records = [record(
        Resource::Unlock,
        r#"{"unlockDate":"2026-03-16T00:00:00Z","cliffUnlocks":{"cliffAmount":10,"cliffValue":100,"allocationBreakdown":[]}}"#,
    )];
    let coverage = model::SupplyCoverage { known: model::KnownSupply::Cliffs, linear_until: None };
    let supply = model::LinearSupply { coverage, emission: Vec::new() };
    let entries = FlowEntries::of(&records, |_| true).with_supply(&supply, None);
    let expected = Sum { linear: PartSum::default(), ..cliffs(10.0, 100.0, 1.0) };
    assert_eq!(entries.sum(window(Flow::Ahead, 7), at(NOW)), expected);
    assert_eq!(entries.linear_rate(at(NOW)), None);
}

#[test]
fn past_entry_counts_until_the_window_ends() {
    let burns = [
        record(Resource::Burn, r#"{"burnDate":"2026-03-08T00:00:00Z","amount":1,"value":10}"#),
        record(Resource::Burn, r#"{"burnDate":"2026-03-02T00:00:00Z","amount":2,"pricePerToken":10}"#),
        record(Resource::Burn, r#"{"burnDate":"2026-04-02T00:00:00Z","amount":4,"value":40}"#),
    ];
    assert_eq!(sum(&burns, Flow::Burned, 1, NOW), Sum::ZERO);
    assert_eq!(sum(&burns, Flow::Burned, 2, NOW), known(1.0, 10.0, 1.0));
    assert_eq!(sum(&burns, Flow::Burned, 30, NOW), known(3.0, 30.0, 2.0));
    let entries = FlowEntries::of(&burns, |_| true);
    assert_eq!(entries.last(Flow::Burned, at(NOW)).map(|last| last.days_since(at(NOW))), Some(1.0));
}

#[test]
fn unknown_amount_makes_only_the_amount_sum_unknown() {
    let burns = [
        record(Resource::Burn, r#"{"burnDate":"2026-03-08T00:00:00Z","amount":1,"value":null}"#),
        record(Resource::Burn, r#"{"burnDate":"2026-03-02T00:00:00Z","amount":2,"value":20}"#),
    ];
    assert_eq!(sum(&burns, Flow::Burned, 30, NOW), Sum { value: None, ..known(3.0, 0.0, 2.0) });
    let entries = FlowEntries::of(&burns, |resource| resource != Resource::Buyback);
    assert_eq!(entries.sum(window(Flow::BoughtBack, 30), at(NOW)), Sum::default());
    assert_eq!(entries.sum(window(Flow::Emitted, 30), at(NOW)), Sum::ZERO);
}

#[test]
fn weekly_emission_is_ignored_if_there_is_daily_emission() {
    let day = r#"{"startDate":"2026-03-03T00:00:00Z","endDate":"2026-03-04T00:00:00Z","unlockAmount":1,"unlockValue":10}"#;
    let week = r#"{"startDate":"2026-03-01T00:00:00Z","endDate":"2026-03-08T00:00:00Z","unlockAmount":7,"unlockValue":70}"#;
    let both = [record(Resource::Emission, day), record(Resource::Emission, week)];
    assert_eq!(sum(&both, Flow::Emitted, 30, NOW), known(1.0, 10.0, 1.0));
    assert_eq!(sum(&both[1..], Flow::Emitted, 30, NOW), known(7.0, 70.0, 1.0));
}

#[test]
fn flow_without_a_complete_response_is_unknown() {
    let read = |endpoint, failing: bool| {
        let failing_since = failing.then(|| at(NOW));
        vec![(endpoint, FeedState { baseline_at: Some(at(NOW)), failing_since, ..FeedState::default() })]
    };
    let item = |json: &str| serde_json::from_str::<wire::TokenItem>(json).expect("an item");
    let (silent, none, some) = (item("{}"), item(r#"{"hasBurn":false}"#), item(r#"{"hasBurn":true}"#));
    assert!(!is_known(Resource::Burn, &[], &silent));
    assert!(!is_known(Resource::Burn, &[], &some));
    assert!(is_known(Resource::Burn, &[], &none), "the token list reports no burns");
    assert!(is_known(Resource::Burn, &read(Endpoint::Burn, false), &silent));
    assert!(!is_known(Resource::Burn, &read(Endpoint::Burn, true), &silent), "while it fails, a new burn may be missing");
    assert!(is_known(Resource::Unlock, &read(Endpoint::UnlockEvents, true), &silent), "a schedule stays known");
    assert!(!is_known(Resource::Unlock, &read(Endpoint::Upcoming, false), &silent), "a single upcoming event is not a schedule");
    let tried = [(Endpoint::Burn, FeedState { failing_since: Some(at(NOW)), ..FeedState::default() })];
    assert!(!is_known(Resource::Burn, &tried, &none));
    let both = [read(Endpoint::DailyEmission, true), read(Endpoint::WeeklyEmission, false)].concat();
    assert!(is_known(Resource::Emission, &both, &silent));
}

#[test]
fn group_sum_is_unknown_if_one_token_is_unknown() {
    let burn = [record(Resource::Burn, r#"{"burnDate":"2026-03-08T00:00:00Z","amount":1,"value":10}"#)];
    let mut cache = AggregateCache::default();
    cache.reset(AggregateReads { has_shares: true, ..reads(&[window(Flow::Burned, 30)]) });
    let put = |cache: &mut AggregateCache, token: &Token, is_known: bool| {
        let computed = cache.compute(token, &FlowEntries::of(&burn, |_| is_known), Recheck::UntilChange, at(NOW));
        let shares = computed.totals().shares.clone();
        cache.keep(computed);
        shares
    };
    put(&mut cache, &token("a", 30.0, &["desk"]), true);
    assert_eq!(cache.group("@desk", Some("desk"), |_, _| true), None, "not every token was seen yet");
    put(&mut cache, &token("b", 10.0, &["desk"]), true);
    put(&mut cache, &token("c", 60.0, &[]), true);
    cache.complete(at(NOW));
    let desk = cache.group("@desk", Some("desk"), |_, _| true).expect("known");
    assert_eq!(desk.sum(window(Flow::Burned, 30)), Some(known(2.0, 20.0, 2.0)));
    assert_eq!((desk.market_cap, desk.members.len(), desk.members[0].share), (Some(40.0), 2, Some(75.0)));
    let all = cache.group("rule", None, |id, _| id.as_str() != "a").expect("known");
    assert_eq!((all.market_cap, all.members.len()), (Some(70.0), 2));
    assert_eq!(cache.group("@none", Some("none"), |_, _| true), None);
    // Tokens whose share was unknown are due again, and so are the others after one changes.
    assert_eq!(cache.due(at(NOW)), [TokenId::from("a"), TokenId::from("b")]);
    assert_eq!(put(&mut cache, &token("a", 30.0, &["desk"]), true)["desk"], 75.0);
    put(&mut cache, &token("b", 10.0, &["desk"]), true);
    assert_eq!(cache.due(at(NOW)), [] as [TokenId; 0]);
    put(&mut cache, &token("b", 70.0, &["desk"]), true);
    assert_eq!(cache.due(at(NOW)), [TokenId::from("a")]);
    put(&mut cache, &token("b", 70.0, &["desk"]), false);
    let desk = cache.group("@desk", Some("desk"), |_, _| true).expect("known");
    assert_eq!(desk.sum(window(Flow::Burned, 30)), Some(Sum::default()));
    cache.forget(&TokenId::from("b"));
    let desk = cache.group("@desk", Some("desk"), |_, _| true).expect("known");
    assert_eq!(desk.sum(window(Flow::Burned, 30)), Some(known(1.0, 10.0, 1.0)));
}

fn history() -> impl Strategy<Value = Vec<Tracked>> {
    let day = -400..400_i64;
    let date = |days: i64, hours: i64| (at(NOW) + TimeDelta::days(days) + TimeDelta::hours(hours)).to_rfc3339();
    let one = (0..4_u8, day, 0..24_i64, 1..50_i64, prop::sample::select(vec!["second", "day", "month"])).prop_map(
        move |(kind, days, hours, length, precision)| {
            let begin = date(days, hours);
            match kind {
                0 => record(
                    Resource::Unlock,
                    &format!(
                        r#"{{"unlockDate":"{begin}","cliffUnlocks":{{"cliffAmount":1,"cliffValue":2,"allocationBreakdown":[{{"unlockPrecision":"{precision}"}}]}}}}"#
                    ),
                ),
                1 => record(
                    Resource::Unlock,
                    &format!(
                        r#"{{"unlockDate":"{begin}","linearUnlocks":{{"allocationBreakdown":[{{"dailyAmount":1,"dailyValue":2,"durationOfRate":{length},"beginDate":"{begin}"}}]}}}}"#
                    ),
                ),
                2 => record(Resource::Burn, &format!(r#"{{"burnDate":"{begin}","amount":1,"value":2}}"#)),
                _ => record(Resource::Buyback, &format!(r#"{{"buybackDate":"{begin}","tokenAmount":1,"value":2}}"#)),
            }
        },
    );
    prop::collection::vec(one, 0..12)
}

/// Returns whether two sums are equal, except for linear unlocks that entered or left the window within an hour: at most twelve
/// segments of one token per day.
fn is_close(known: Sum, fresh: Sum) -> bool {
    let is_near = |a: Option<f64>, b: Option<f64>| a.zip(b).is_some_and(|(a, b)| (a - b).abs() <= 1.0);
    let exact = |sum: Sum| (sum.count, sum.possible, sum.cliff);
    exact(known) == exact(fresh) && is_near(known.amount, fresh.amount) && is_near(known.linear.amount, fresh.linear.amount)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sum_changes_before_the_next_change(records in history(), minutes in prop::collection::vec(1..20_000_i64, 1..20)) {
        let windows = [window(Flow::Ahead, 7), window(Flow::Ahead, 30), window(Flow::Burned, 30), window(Flow::BoughtBack, 3)];
        let since = vec![(Flow::Burned, TimeDelta::days(35))];
        let (price_ages, rate_leads) = (vec![TimeDelta::days(3)], vec![TimeDelta::days(7)]);
        let reads = AggregateReads { since, price_ages, rate_leads, has_supply: true, ..reads(&windows) };
        let token = token("a", 1.0, &[]);
        let entries = FlowEntries::of(&records, |_| true);
        let mut cache = AggregateCache::default();
        cache.reset(reads.clone());
        let mut now = at(NOW);
        let fresh = |now| Totals::of(&token, &entries, &reads, now);
        let mut kept = cache.compute(&token, &entries, Recheck::UntilChange, now);
        for step in minutes {
            cache.keep(kept);
            now += TimeDelta::minutes(step);
            let totals = fresh(now);
            if cache.due(now).is_empty() {
                let known = &cache.tokens[&token.id].totals;
                for ((_, known), (_, fresh)) in known.sums().zip(totals.sums()) {
                    prop_assert!(is_close(known, fresh), "at {}: {:?}, not {:?}", now, known, fresh);
                }
                prop_assert_eq!(known.last_burn, totals.last_burn);
                prop_assert_eq!(&known.supply, &totals.supply);
                // The next change of the release has not come within the lead time in the meantime.
                let is_near = |at: Timestamp| known.supply.as_ref().and_then(|of| of.next_rate).is_some_and(|next| next.at - at <= TimeDelta::days(7));
                prop_assert_eq!(is_near(now), is_near(cache.tokens[&token.id].at));
                // The time since the latest burn has not reached a threshold in the meantime.
                let is_old = |at: Timestamp| totals.last_burn.is_some_and(|last| last.days_since(at) >= 35.0);
                prop_assert_eq!(is_old(now), is_old(cache.tokens[&token.id].at));
            }
            kept = cache.compute(&token, &entries, Recheck::UntilChange, now);
        }
    }
}

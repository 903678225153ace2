use chrono::TimeDelta;
use tempfile::TempDir;

use super::support::*;
use model::*;

fn sized(date: &str, value: f64, precision: &str) -> Record {
    let event = serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": 1.0, "cliffValue": value, "valueToMarketCap": 1e9 / value,
        "allocationBreakdown": [{"unlockDate": date, "allocationName": "Team", "cliffAmount": 1.0, "unlockPrecision": precision}]}});
    Record::Unlock(serde_json::from_value(event).expect("an event"))
}

fn filter(limit: u32) -> AheadFilter {
    let window = SumWindow::of(now(), TimeDelta::days(90));
    AheadFilter { window, largest: window, limit, next: 3, watch: all_tokens() }
}

/// 303 tokens with one unlock each. The largest unlocks belong to the last slugs.
async fn three_hundred() -> (TempDir, crate::Store) {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let feeds = (0..303_u32).map(|i| {
        let date = (now() + TimeDelta::days(i64::from(i % 80) + 1)).to_rfc3339();
        schedule(&format!("token-{i:03}"), vec![put("a", sized(&date, f64::from(i + 1) * 1e5, "second"))])
    });
    let mut feeds: Vec<FeedUpdate> = feeds.collect();
    feeds.push(schedule("running", vec![put("a", sized("2026-03-20", 7e4, "month"))]));
    feeds.push(schedule("straddling", vec![put("a", sized("2026-06-20", 6e4, "month"))]));
    feeds.push(schedule("past", vec![put("a", sized("2026-03-01", 9e9, "second"))]));
    feeds.push(schedule("far", vec![put("a", sized("2027-03-01", 9e9, "second"))]));
    let tokens = (0..303).map(|i| token_item(&format!("token-{i:03}"), &format!("T{i}"))).collect();
    store.commit(Commit { at: now(), tokens, feeds, ..Commit::default() }).await.expect("committed");
    (directory, store)
}

fn slugs(rows: &[UpcomingRow]) -> Vec<&str> {
    rows.iter().map(|row| row.token.id.as_str()).collect()
}

#[tokio::test]
async fn largest_unlocks_are_found_among_many() {
    let (_directory, store) = three_hundred().await;
    let ahead = store.largest_ahead(filter(3)).await.expect("read");
    assert_eq!(slugs(&ahead.largest), ["token-302", "token-301", "token-300"]);
    assert_eq!(slugs(&ahead.largest_share), ["straddling", "running", "token-000"], "the largest shares of market cap");
    // The first week has the unlocks of every eightieth token, and the one whose month is not over.
    let week = AheadFilter { largest: SumWindow::of(now(), TimeDelta::days(7)), ..filter(2) };
    let ahead = store.largest_ahead(week).await.expect("read");
    assert_eq!(slugs(&ahead.largest), ["token-246", "token-245"]);
    assert_eq!(slugs(&ahead.largest_share), ["running", "token-000"]);
}

#[tokio::test]
async fn next_cliffs_are_ordered_by_nominal_date_and_watched() {
    let (_directory, store) = three_hundred().await;
    let ahead = store.largest_ahead(filter(1)).await.expect("read");
    // Four tokens share the first day, the largest first. The nominal date of this month is later.
    assert_eq!(slugs(&ahead.next), ["token-240", "token-160", "token-080"]);
    assert_eq!(ahead.next_total, 304, "the nominal date of June is outside the window");
    let settings =
        config::WatchSettings { tokens: vec!["token-00*".into(), "running".into()], ..config::WatchSettings::default() };
    let watch = Watch::build(&settings).expect("valid");
    let ahead = store.largest_ahead(AheadFilter { watch, ..filter(1) }).await.expect("read");
    assert_eq!((slugs(&ahead.largest), slugs(&ahead.next)), (vec!["token-009"], vec!["token-000", "token-001", "token-002"]));
    assert_eq!(ahead.next_total, 11);
}

#[tokio::test]
async fn month_precision_counts_by_nominal_date() {
    let (_directory, store) = three_hundred().await;
    let (all, _) = store.supply_totals(now(), supply_windows(now()), all_tokens(), now()).await.expect("read");
    let SupplyAhead { cliff, inexact, .. } = all.windows[2];
    // The nominal date of this month is in the window, the one of June is not.
    assert_eq!((cliff.count, inexact.count), (304, 1));
    assert!((cliff.value - 7e4 - (1..=303).map(|i| f64::from(i) * 1e5).sum::<f64>()).abs() < 1.0);
    assert!((inexact.value - 6e4).abs() < 1e-6, "{inexact:?}");
}

/// Random dates of every precision, around now and around the end of the window, compared with a reference.
#[tokio::test]
async fn list_totals_and_metrics_match_reference() {
    let mut random = fastrand::Rng::with_seed(0x5eed);
    for world in 0..20 {
        let directory = TempDir::new().expect("a directory");
        let store = owned(&directory).await;
        let window = SumWindow::of(now(), TimeDelta::days(30));
        let (mut cliff, mut inexact, mut puts) = ((0, 0.0), (0, 0.0), Vec::new());
        for i in 0..40 {
            let date = now() + TimeDelta::hours(random.i64(-40 * 24..75 * 24));
            let precision = ["second", "hour", "day", "week", "month"][random.usize(..5)];
            let value = f64::from(random.u32(1..1000)) * 1e3;
            let record = sized(&date.to_rfc3339(), value, precision);
            let interval = record.interval().expect("a date");
            // As docs/supply.md specifies: by the source's date, after the start and up to the end of the window.
            let is_counted = now() < date && date <= window.until;
            let can_happen = interval.end > now() && interval.start <= window.until && interval.start < interval.end;
            if is_counted || can_happen {
                let sum = if is_counted { &mut cliff } else { &mut inexact };
                *sum = (sum.0 + 1, sum.1 + value);
            }
            puts.push(put(&format!("e{i}"), record));
        }
        store.commit(at(Commit { feeds: vec![schedule("aptos", puts)], ..Commit::default() })).await.expect("committed");
        let list = store.token_list(list_by(TokenSort::Value)).await.expect("read").rows[0].supply.windows[1];
        let gauges = store.domain_gauges(now(), vec![window], all_tokens()).await.expect("read").watched;
        let supply = store.token_supply("aptos".into(), now(), vec![window]).await.expect("read").expect("a token");
        assert_eq!(supply.windows, gauges.windows, "world {world}");
        assert_eq!(supply.windows, [list], "world {world}");
        assert_eq!((list.cliff.count, list.inexact.count), (cliff.0, inexact.0), "world {world}");
        assert!((list.cliff.value - cliff.1).abs() < 0.01 && (list.inexact.value - inexact.1).abs() < 0.01, "world {world}");
    }
}

fn list_by(sort: TokenSort) -> TokenFilter {
    TokenFilter { text: String::new(), tokens: None, sort, at: now(), seen: SeenTokens::default(), offset: 0, limit: 9 }
}

#[tokio::test]
async fn size_follows_price_and_is_removed_with_record() {
    let (_directory, store) = three_hundred().await;
    let larger = Put { is_new_version: false, ..put("a", sized("2026-03-20T00:00:00Z", 5e8, "second")) };
    store.commit(at(Commit { feeds: vec![schedule("token-000", vec![larger])], ..Commit::default() })).await.expect("committed");
    assert_eq!(slugs(&store.largest_ahead(filter(1)).await.expect("read").largest), ["token-000"]);
    let gone = FeedUpdate { removed: vec!["a".into()], ..schedule("token-000", Vec::new()) };
    store.commit(at(Commit { feeds: vec![gone], ..Commit::default() })).await.expect("committed");
    assert_eq!(slugs(&store.largest_ahead(filter(1)).await.expect("read").largest), ["token-302"]);
}

#[tokio::test]
async fn firing_alerts_are_ordered_by_severity_and_counted() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let alert = |subject: &str, severity: &str, state: AlertState| {
        let mut alert = firing(subject, None);
        alert.state = state;
        alert.labels.insert("severity".to_owned(), severity.to_owned());
        alert
    };
    let mut alerts: Vec<Alert> = (0..40).map(|i| alert(&format!("w{i}"), "warning", AlertState::Firing)).collect();
    alerts.push(alert("c", "Critical", AlertState::Firing));
    alerts.push(alert("p", "page", AlertState::Firing));
    alerts.push(alert("i", "whatever", AlertState::Firing));
    alerts.push(alert("over", "critical", AlertState::Resolved));
    store.commit(at(Commit { alerts, ..Commit::default() })).await.expect("committed");
    let firing = store.firing_alerts(5, None).await.expect("read");
    assert_eq!((firing.critical, firing.warning, firing.other), (2, 40, 1));
    let mut first: Vec<&str> = firing.alerts.iter().take(2).map(|alert| alert.subject.as_str()).collect();
    first.sort_unstable();
    assert_eq!((first, firing.alerts.len()), (vec!["c", "p"], 5));
}

#[tokio::test]
async fn tokens_are_searched_sorted_and_paged() {
    let (_directory, store) = three_hundred().await;
    let list = async |text: &str, sort: TokenSort, offset: u32| {
        let filter =
            TokenFilter { text: text.to_owned(), tokens: None, sort, at: now(), seen: SeenTokens::default(), offset, limit: 2 };
        let list = store.token_list(filter).await.expect("read");
        let slugs: Vec<String> = list.rows.iter().map(|row| row.token.id.as_str().to_owned()).collect();
        (list.total, slugs)
    };
    assert_eq!(list("", TokenSort::Value, 0).await, (307, vec!["token-302".to_owned(), "token-301".to_owned()]));
    assert_eq!(list("", TokenSort::Share, 0).await.1, ["token-302", "token-301"], "all have the same market cap");
    assert_eq!(list("", TokenSort::Month, 0).await.1, ["token-269", "token-268"], "the largest of the next 30 days");
    assert_eq!(list("", TokenSort::Next, 0).await.1[0], "token-000");
    assert_eq!(
        list("", TokenSort::Next, 304).await.1,
        ["straddling", "far"],
        "later unlocks come later, tokens without one last"
    );
    assert_eq!(list("TOKEN-30", TokenSort::Name, 0).await, (3, vec!["token-300".to_owned(), "token-301".to_owned()]));
    assert_eq!(
        list("the token-30", TokenSort::MarketCap, 2).await,
        (3, vec!["token-302".to_owned()]),
        "equal tokens are ordered by name"
    );
    assert_eq!(list("100%_", TokenSort::Value, 0).await.0, 0, "wildcards are matched literally");
}

#[tokio::test]
async fn pulse_changes_with_new_data() {
    let (_directory, store) = three_hundred().await;
    let before = store.pulse().await.expect("read");
    assert_eq!(store.pulse().await.expect("read"), before);
    let polls = vec![poll(Endpoint::Burn, Some("token-001"))];
    store.commit(at(Commit { polls, ..Commit::default() })).await.expect("committed");
    let polled = store.pulse().await.expect("read");
    assert_ne!(polled, before);
    store.commit(at(Commit { alerts: vec![firing("x", None)], ..Commit::default() })).await.expect("committed");
    assert_ne!(store.pulse().await.expect("read"), polled);
}

#[tokio::test]
async fn changes_are_counted_and_paged() {
    let (_directory, store) = three_hundred().await;
    let change = |i: u32| {
        let kind = if i.is_multiple_of(2) { ChangeKind::Resized } else { ChangeKind::Rescheduled };
        let mut change = Change::of(kind, Resource::Unlock, &TokenId::from("token-001"));
        change.summary = format!("change {i}");
        change
    };
    store.commit(at(Commit { changes: (0..9).map(change).collect(), ..Commit::default() })).await.expect("committed");
    let filter = ChangeFilter {
        kinds: vec![ChangeKind::Resized],
        tokens: Some(vec!["token-001".into()]),
        limit: 2,
        ..ChangeFilter::default()
    };
    assert_eq!(store.changes_listed(filter.clone()).await.expect("read").total, 5);
    let mut seen = Vec::new();
    for offset in [0, 2, 4] {
        seen.extend(store.changes(ChangeFilter { offset, ..filter.clone() }).await.expect("read").into_iter().map(|row| row.id));
    }
    seen.dedup();
    assert_eq!(seen.len(), 5);
    let of_unknown = ChangeFilter { tokens: Some(vec!["unknown".into()]), ..filter };
    assert_eq!(store.changes_listed(of_unknown).await.expect("read").total, 0);
}

#[tokio::test]
async fn tokens_with_held_responses_are_listed() {
    let (_directory, store) = three_hundred().await;
    assert!(store.held_tokens(9).await.expect("read").is_empty());
    let mut held = schedule("token-007", Vec::new());
    held.state.hold = Some(Hold { since: now(), is_accepted: false });
    store.commit(at(Commit { feeds: vec![held], ..Commit::default() })).await.expect("committed");
    let names: Vec<String> = store.held_tokens(9).await.expect("read").iter().map(|token| token.symbol().to_owned()).collect();
    assert_eq!(names, ["T7"]);
}

#[tokio::test]
async fn weekly_sums_use_nominal_dates() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let date = |days: i64| (now() + TimeDelta::days(days)).to_rfc3339();
    let put = vec![
        put("a", sized(&date(1), 1e6, "second")),
        put("b", sized(&date(3), 2e6, "second")),
        put("c", sized("2026-03-30", 4e6, "month")),
        put("d", sized(&date(83), 8e6, "second")),
        put("e", sized(&date(85), 16e6, "second")),
        put("f", sized("2026-03-02", 32e6, "month")),
    ];
    store.commit(at(Commit { feeds: vec![schedule("aptos", put)], ..Commit::default() })).await.expect("committed");
    let list = store.token_list(list_by(TokenSort::Value)).await.expect("read");
    let weeks = &list.rows.iter().find(|row| row.token.id == TokenId::from("aptos")).expect("a row").weeks;
    let sums = weeks.iter().enumerate().filter(|(_, week)| week.cliff.count > 0);
    let sums: Vec<_> = sums.map(|(index, week)| (index, week.cliff.count, (week.cliff.value / 1e6).round())).collect();
    let third = usize::try_from((time("2026-03-30T00:00:00Z") - now()).num_days() / 7).expect("a week");
    // The cliff of 2 March can still happen, but its date has passed.
    assert_eq!(sums, [(0, 2, 3.0), (third - 1, 1, 4.0), (11, 1, 8.0)]);
    assert_eq!(weeks[0].inexact.count, 2, "the cliffs of this month outside the first week");
}

fn vesting(begin: &str, end: &str, amount: f64, price: Option<f64>) -> Record {
    Record::Unlock(std::sync::Arc::new(read(serde_json::json!({"unlockDate": begin, "cliffUnlocks": null, "linearUnlocks": {
        "linearAmount": amount, "allocationBreakdown": [{"allocationName": "Team", "linearAmount": amount, "beginDate": begin,
        "endDate": end, "referencePrice": price, "referencePriceUpdatedTime": "2026-03-08T00:00:00Z"}]}}))))
}

#[tokio::test]
async fn linear_unlocks_are_summed_for_token_group_and_all() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let feeds = vec![
        schedule("sui", vec![put("a", vesting("2026-02-27T00:00:00Z", "2026-06-07T00:00:00Z", 1000.0, Some(2.0)))]),
        schedule("aptos", vec![put("a", vesting("2026-03-19T00:00:00Z", "2026-03-29T00:00:00Z", 50.0, None))]),
    ];
    store.commit(at(Commit { feeds, ..Commit::default() })).await.expect("committed");
    let sui = store.token_supply("sui".into(), now(), supply_windows(now())).await.expect("read").expect("a token");
    let amounts = |supply: &TokenSupply| supply.windows.iter().map(|sum| sum.linear.amount.round()).collect::<Vec<_>>();
    assert_eq!(amounts(&sui), [70.0, 300.0, 900.0]);
    assert_eq!((sui.price.map(|price| price.usd), sui.rate.per_day.round()), (Some(2.0), 10.0));
    let aptos = store.token_supply("aptos".into(), now(), supply_windows(now())).await.expect("read").expect("a token");
    assert_eq!((amounts(&aptos), aptos.windows[1].linear.known_value()), (vec![0.0, 50.0, 50.0], None));
    let stale = time("2026-03-08T12:00:00Z");
    let (all, groups) = store.supply_totals(now(), supply_windows(now()), all_tokens(), stale).await.expect("read");
    let values: Vec<f64> = all.windows.iter().map(|sum| sum.linear.value.round()).collect();
    assert_eq!((values, all.windows[1].linear.unvalued_count), (vec![140.0, 600.0, 1800.0], 1));
    assert_eq!((all.coverage.tokens, all.coverage.stale_prices, all.coverage.without_price), (2, 1, 1));
    assert_eq!(groups["desk"].windows[0].linear.count, 1);
}

#[tokio::test]
async fn list_shows_next_cliff_unconfirmed_cliff_and_linear_rate() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let feeds = vec![
        schedule("sui", vec![put("a", vesting("2026-02-27T00:00:00Z", "2026-06-07T00:00:00Z", 1000.0, Some(2.0)))]),
        schedule("aptos", vec![put("a", vesting("2026-03-01T00:00:00Z", "2026-03-31T00:00:00Z", 9e9, None))]),
        schedule("arb", vec![put("a", sized("2026-03-02", 5e2, "month")), put("b", sized("2026-09-02", 7e6, "month"))]),
        schedule("jup", vec![put("a", sized("2026-03-02", 5e2, "month"))]),
    ];
    let tokens = vec![token_item("unread", "U"), token_item("sui", "SUI")];
    store.commit(at(Commit { tokens, feeds, ..Commit::default() })).await.expect("committed");
    let list = async |sort| store.token_list(list_by(sort)).await.expect("read").rows;
    let slugs = |rows: &[TokenSummary]| rows.iter().map(|row| row.token.id.as_str().to_owned()).collect::<Vec<_>>();
    for sort in [TokenSort::Value, TokenSort::Month, TokenSort::PerDay, TokenSort::Share] {
        assert_eq!(slugs(&list(sort).await)[0], "sui", "{sort:?}");
    }
    let rows = list(TokenSort::Next).await;
    assert_eq!(slugs(&rows)[..2], ["jup", "arb"]);
    let nominal = |tracked: &Option<Tracked>| tracked.as_ref().and_then(|tracked| tracked.record.unlock()?.unlock_date.copied());
    assert_eq!((nominal(&rows[0].next), nominal(&rows[0].unconfirmed)), (None, Some(time("2026-03-02T00:00:00Z"))));
    assert_eq!(
        (nominal(&rows[1].next), nominal(&rows[1].unconfirmed)),
        (Some(time("2026-09-02T00:00:00Z")), Some(time("2026-03-02T00:00:00Z")))
    );
    let of = |slug: &str| rows.iter().find(|row| row.token.id.as_str() == slug).expect("a row");
    assert_eq!((of("sui").next.as_ref().map(|next| &next.key), of("sui").supply.linear_per_day()), (None, Some(10.0)));
    assert_eq!((of("unread").supply.known, of("unread").supply.linear_per_day()), (KnownSupply::None, None));
    assert_eq!(of("aptos").supply.windows[0].total().known_value(), None, "the price is unknown");
    assert!((of("sui").weeks[3].linear.amount - 70.0).abs() < 1e-9 && of("sui").weeks.len() == WEEKS);
}

#[tokio::test]
async fn supply_follows_price_and_removal_and_is_filled_again() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let put_at = |price: f64| put("a", vesting("2026-02-27T00:00:00Z", "2026-06-07T00:00:00Z", 1000.0, Some(price)));
    let supply = async || store.token_supply("sui".into(), now(), supply_windows(now())).await.expect("read").expect("a token");
    store.commit(at(Commit { feeds: vec![schedule("sui", vec![put_at(2.0)])], ..Commit::default() })).await.expect("committed");
    let repriced = Put { is_new_version: false, ..put_at(3.0) };
    store.commit(at(Commit { feeds: vec![schedule("sui", vec![repriced])], ..Commit::default() })).await.expect("committed");
    let before = supply().await;
    assert!((before.windows[0].linear.value - 210.0).abs() < 1e-6, "{before:?}");
    change(&store, "DELETE FROM token_supply");
    assert_eq!(store.fill_supply_index(now()).await.expect("filled"), 1);
    assert_eq!(supply().await, before);
    assert_eq!(store.fill_supply_index(now()).await.expect("filled"), 0, "only once");
    let gone = FeedUpdate { removed: vec!["a".into()], ..schedule("sui", Vec::new()) };
    store.commit(at(Commit { feeds: vec![gone], ..Commit::default() })).await.expect("committed");
    assert_eq!(supply().await.windows[0].linear.count, 0);
}

#[tokio::test]
async fn end_of_the_known_emission_is_no_rate_change() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let run = |start: &str, end: &str, per_day: f64| serde_json::json!({"allocation": "Team", "start": start, "end": end, "perDay": per_day});
    let with_runs = async |runs: Vec<serde_json::Value>| {
        let ahead = serde_json::json!({"readAt": now(), "until": "2026-06-17T00:00:00Z", "runs": runs});
        let header = serde_json::json!({"needsAhead": true, "linearAhead": ahead});
        let feed = FeedUpdate { header: Some(header), ..schedule("sui", Vec::new()) };
        store.commit(at(Commit { feeds: vec![feed], ..Commit::default() })).await.expect("committed");
        let supply = store.token_supply("sui".into(), now(), supply_windows(now())).await.expect("read").expect("a token");
        (supply.rate.per_day, supply.rate.changes_at, supply.rate.then_per_day)
    };
    assert_eq!(with_runs(vec![run("2026-03-01", "2026-06-17", 10.0)]).await, (10.0, None, None));
    let steps = vec![run("2026-03-01", "2026-05-01", 10.0), run("2026-05-01", "2026-06-17", 4.0)];
    assert_eq!(with_runs(steps).await, (10.0, Some(time("2026-05-01T00:00:00Z")), Some(4.0)));
}

#[tokio::test]
async fn next_changes_of_linear_unlocks_are_listed_by_day_and_value() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let feeds = vec![
        schedule("sui", vec![put("a", vesting("2026-02-27T00:00:00Z", "2026-06-07T00:00:00Z", 1000.0, Some(2.0)))]),
        schedule("aptos", vec![put("a", vesting("2026-03-19T00:00:00Z", "2026-03-29T00:00:00Z", 50.0, None))]),
        schedule("seal", vec![put("a", vesting("2026-03-19T12:00:00Z", "2027-03-19T12:00:00Z", 3650.0, Some(1.0)))]),
    ];
    store.commit(at(Commit { feeds, ..Commit::default() })).await.expect("committed");
    let shown = |ahead: &model::Ahead| -> Vec<String> {
        let row = |row: &model::RateRow| {
            let causes = row.causes.as_deref().unwrap_or_default();
            format!("{} {} {:.0}>{:.0} {causes}", row.at.date_naive(), row.token.id, row.step.before, row.step.after)
        };
        ahead.rates.iter().map(row).collect()
    };
    let ahead = store.largest_ahead(AheadFilter { next: 9, ..filter(1) }).await.expect("read");
    let all = [
        "2026-03-19 seal 0>10 Team begins",
        "2026-03-19 aptos 0>5 Team begins",
        "2026-03-29 aptos 5>0 Team ends",
        "2026-06-07 sui 10>0 Team ends",
    ];
    assert_eq!((shown(&ahead), ahead.rates_total), (all.map(str::to_owned).to_vec(), 4));
    let first = store.largest_ahead(AheadFilter { next: 1, ..filter(1) }).await.expect("read");
    assert_eq!((shown(&first), first.rates_total), (vec![all[0].to_owned()], 4));
    let ends = async |after: &str, until: &str| {
        let slugs = store.tokens_with_ends(vec![(time(after), time(until))]).await.expect("read");
        slugs.iter().map(|slug| slug.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ends("2026-06-06T00:00:00Z", "2026-06-07T00:00:00Z").await, ["sui"]);
    assert_eq!(ends("2026-06-07T00:00:00Z", "2026-07-01T00:00:00Z").await, [""; 0]);
    assert_eq!(ends("2026-05-31T00:00:00Z", "2026-06-01T00:00:00Z").await, ["sui"], "its date can be exact to the month");
}

//! Timings with a hundred thousand records. They are printed, not asserted.

use chrono::TimeDelta;
use tempfile::TempDir;

use super::support::*;
use model::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handles_a_hundred_thousand_records() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let start = time("2026-01-01");
    let feeds: Vec<_> = (0..1000)
        .map(|token| {
            let puts = (0..100)
                .map(|i| {
                    let date = start + TimeDelta::days(i * 14) + TimeDelta::minutes(token);
                    put(&format!("k{i}"), unlock(&date.to_rfc3339(), 1000.0))
                })
                .collect();
            schedule(&format!("token-{token:04}"), puts)
        })
        .collect();
    let timed = |what: &str, begun: std::time::Instant| println!("{what}: {:?}", begun.elapsed());

    let saved = store.commit(at(Commit { feeds: feeds.clone(), ..Commit::default() })).await.expect("committed");
    println!("commit of 100,000 new records: {} ms", saved.took.num_milliseconds());
    let again =
        feeds.iter().map(|feed| FeedUpdate { put: feed.put.iter().take(50).cloned().collect(), ..feed.clone() }).collect();
    let saved = store.commit(at(Commit { feeds: again, ..Commit::default() })).await.expect("committed");
    println!("commit of 50,000 equal records: {} ms", saved.took.num_milliseconds());
    let moved = feeds
        .iter()
        .map(|feed| {
            let puts = (0..50).map(|i| put(&format!("k{i}"), unlock("2027-01-01", 2.0))).collect();
            FeedUpdate { put: puts, ..feed.clone() }
        })
        .collect();
    let saved = store.commit(at(Commit { feeds: moved, ..Commit::default() })).await.expect("committed");
    println!("commit of 50,000 new versions: {} ms", saved.took.num_milliseconds());

    let begun = std::time::Instant::now();
    let due = store.tokens_due(vec![(time("2028-01-01"), time("2028-01-15"))], now()).await.expect("read");
    timed("tokens_due", begun);
    assert!(!due.is_empty());
    let begun = std::time::Instant::now();
    assert_eq!(store.plan_tokens(Endpoint::UnlockEvents, now()).await.expect("read").tokens.len(), 1000);
    timed("plan_tokens", begun);
    let begun = std::time::Instant::now();
    let hundred: Vec<TokenId> = (0..100).map(|token| TokenId::from(format!("token-{token:04}"))).collect();
    assert_eq!(
        store.tokens(hundred, vec![Resource::Unlock]).await.expect("read").iter().map(|t| t.records.len()).sum::<usize>(),
        10_000
    );
    timed("tokens: 100 of them with 10,000 records", begun);
    let begun = std::time::Instant::now();
    let windows = [supply_windows(now()), supply_weeks(now(), 13)].concat();
    store.supply_totals(now(), windows, all_tokens(), now()).await.expect("read");
    timed("supply_totals: 16 windows", begun);
    let begun = std::time::Instant::now();
    let window = SumWindow::of(now(), TimeDelta::days(90));
    let filter = AheadFilter { window, largest: window, limit: 1, next: 24, watch: all_tokens() };
    store.largest_ahead(filter).await.expect("read");
    timed("largest_ahead", begun);
    for sort in TokenSort::ALL {
        let begun = std::time::Instant::now();
        store
            .token_list(TokenFilter {
                text: String::new(),
                tokens: None,
                sort,
                at: now(),
                seen: SeenTokens::default(),
                offset: 0,
                limit: 50,
            })
            .await
            .expect("read");
        timed(&format!("token_list by {}", sort.as_str()), begun);
    }
    let begun = std::time::Instant::now();
    store.counts().await.expect("read");
    timed("counts", begun);
    let begun = std::time::Instant::now();
    store.integrity_check().await.expect("sound");
    timed("integrity_check", begun);
    let begun = std::time::Instant::now();
    store.close().await.expect("closed");
    timed("close", begun);
    let begun = std::time::Instant::now();
    let store = owned(&directory).await;
    timed("open", begun);
    println!("database: {} MB", store.counts().await.expect("read").database_bytes / 1_000_000);
}

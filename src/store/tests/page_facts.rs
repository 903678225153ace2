//! The facts that pages keep: after each random change, pages must read what the daemon reads from the database.

use chrono::TimeDelta;
use tempfile::TempDir;

use super::support::*;
use super::upcoming;
use crate::Store;
use model::*;

const TOKENS: usize = 12;

/// Returns everything that pages read from these facts, with numbers to nine digits. A database server returns rows in any order, so sums
/// can differ in the last digit.
async fn seen(store: &Store, at: Timestamp) -> Vec<String> {
    let windows = [supply_windows(at), supply_weeks(at, 13)].concat();
    let totals = store.supply_totals(at, windows, all_tokens(), at - TimeDelta::days(3)).await.expect("read");
    let window = SumWindow::of(at, TimeDelta::days(90));
    let ahead = AheadFilter { window, largest: SumWindow::of(at, TimeDelta::days(30)), limit: 5, next: 20, watch: all_tokens() };
    let ahead = store.largest_ahead(ahead).await.expect("read");
    let mut seen = vec![format!("{totals:?}"), format!("{ahead:?}")];
    for sort in TokenSort::ALL {
        let filter =
            TokenFilter { text: String::new(), tokens: None, sort, at, offset: 0, seen: SeenTokens::default(), limit: 50 };
        let list = store.token_list(filter).await.expect("read");
        let tokens: Vec<(&TokenId, &TokenSupply)> = list.rows.iter().map(|row| (&row.token.id, &row.supply)).collect();
        seen.push(format!("{sort:?}: {tokens:?}"));
    }
    for first in [-20, 0, 40, 110] {
        let begin = at + TimeDelta::days(first);
        let days = (0..31).map(|day| SumWindow::of(begin + TimeDelta::days(day), TimeDelta::days(1))).collect();
        let month = MonthFilter {
            days,
            linear_from: at,
            watch: all_tokens(),
            tokens: None,
            min_value: None,
            per_day: 4,
            bands: 9,
            order: UnlockOrder::Date,
            offset: 0,
            rows: 1000,
            rates: 10,
        };
        let mut month = store.unlock_month(month).await.expect("read");
        month.rows.sort_by_cached_key(|row| format!("{row:?}"));
        seen.push(format!("{first}: {month:?}"));
    }
    let unlocks = UpcomingFilter { tokens: None, from: at, until: Some(at + TimeDelta::days(30)), limit: 1000 };
    let upcoming = UnlockListFilter { unlocks, kind: None, min_value: None, after: None };
    seen.push(format!("{:?}", store.upcoming(upcoming).await.expect("read")));
    seen.iter().map(|text| rounded(text)).collect()
}

/// Shortens all numbers with a fraction to nine digits.
fn rounded(text: &str) -> String {
    let is_of_number = |c: char| c.is_ascii_digit() || ".e-".contains(c);
    let words = text.split_inclusive(|c: char| !is_of_number(c));
    let short = |word: &str| {
        let (number, rest) = word.split_at(word.trim_end_matches(|c| !is_of_number(c)).len());
        let value = number.contains('.').then(|| number.parse::<f64>().ok()).flatten();
        value.map_or_else(|| word.to_owned(), |value| format!("{value:.8e}{rest}"))
    };
    words.map(short).collect()
}

/// Makes a random change: another schedule, other prices, a removed event, or a new token.
async fn change(rng: &mut fastrand::Rng, store: &Store, at: Timestamp) {
    let number = rng.usize(..TOKENS);
    let mut feed = upcoming::token(rng, number);
    match rng.u8(..4) {
        0 => {
            let item = token_item(&format!("token-{number}"), &format!("T{number}"));
            return store.commit(Commit { at, tokens: vec![item], ..Commit::default() }).await.map(drop).expect("committed");
        }
        1 => feed.removed = feed.put.drain(..1).map(|put| put.key).collect(),
        2 => {
            // All values of the token move by one factor.
            let id = TokenId::from(format!("token-{number}"));
            let known = store.tokens(vec![id], vec![Resource::Unlock]).await.expect("read");
            let moved = known.into_iter().flat_map(|token| token.records).filter_map(|tracked| {
                let text = serde_json::to_value(tracked.record.unlock()?).expect("JSON");
                Some(Put { key: tracked.key, record: Record::Unlock(read(repriced(text, 1.07))), is_new_version: false })
            });
            feed.put = moved.collect();
        }
        _ => {}
    }
    store.commit(Commit { at, feeds: vec![feed], ..Commit::default() }).await.expect("committed");
}

fn repriced(mut event: serde_json::Value, factor: f64) -> serde_json::Value {
    let Some(cliff) = event.get_mut("cliffUnlocks").filter(|cliff| !cliff.is_null()) else { return event };
    let value = cliff["cliffValue"].as_f64();
    cliff["cliffValue"] = value.map(|value| value * factor).into();
    event
}

#[tokio::test]
async fn pages_see_each_change_at_once() {
    let mut kept = 0;
    for seed in 0..3 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let directory = TempDir::new().expect("a directory");
        let store = owned(&directory).await;
        let pages = [store.for_pages(), store.for_heavy_pages()];
        let mut at = now();
        for step in 0..14 {
            change(&mut rng, &store, at).await;
            if rng.u8(..4) == 0 {
                at += TimeDelta::hours(rng.i64(1..60));
            }
            let expected = seen(&store, at).await;
            for reader in &pages {
                for (found, expected) in seen(reader, at).await.iter().zip(&expected) {
                    assert_eq!(found, expected, "seed {seed}, step {step}");
                }
            }
        }
        kept += usize::from(store.handle.readers.keep_facts());
    }
    assert_eq!(kept, 3, "each world used the kept facts");
}

#[tokio::test]
async fn only_changes_are_counted() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let commit = |feeds: Vec<FeedUpdate>| Commit {
        at: now(),
        feeds,
        polls: vec![poll(Endpoint::UnlockEvents, Some("arbitrum"))],
        alerts: vec![firing("a", Some("arbitrum"))],
        ..Commit::default()
    };
    let count = || rows(&store, "SELECT value FROM meta WHERE key = 'facts'", |row| row.get::<String>(0).expect("a count"));
    let first = schedule("arbitrum", vec![put("a", unlock("2026-03-16T13:00:00Z", 10.0))]);
    store.commit(commit(vec![first])).await.expect("committed");
    let known = count();
    assert_eq!(known.len(), 1);
    store.commit(commit(vec![schedule("arbitrum", Vec::new())])).await.expect("committed");
    assert_eq!(count(), known, "an unchanged response");
    let moved = schedule("arbitrum", vec![put("a", unlock("2026-03-17T13:00:00Z", 10.0))]);
    store.commit(commit(vec![moved])).await.expect("committed");
    assert_ne!(count(), known, "a changed schedule");
}

#[test]
fn each_form_of_a_write_is_known() {
    for sql in [
        "INSERT INTO record (no) VALUES (?1)",
        "INSERT OR REPLACE INTO \"token_supply\" (token_no) VALUES (?1)",
        "UPDATE drift SET value = ?2 WHERE token_no = ?1",
        "DELETE FROM token WHERE no = ?1",
        "WITH gone AS (SELECT no FROM token) DELETE FROM record WHERE token_no IN (SELECT no FROM gone)",
    ] {
        assert!(crate::page_facts::is_changed_by(sql), "{sql}");
    }
    for sql in [
        "SELECT no FROM record",
        "SELECT no FROM token FOR UPDATE",
        "UPDATE feed SET read_at = ?1",
        "INSERT INTO record_version (no) VALUES (1)",
    ] {
        assert!(!crate::page_facts::is_changed_by(sql), "{sql}");
    }
}

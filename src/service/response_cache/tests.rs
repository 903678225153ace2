use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::route::ROUTES;

const PAGED: &str = "/v5/fundraising/investors/list";
const WHOLE: &str = "/v1/fundraising/investors/list";

fn cache_key(path: &str, query: &str) -> CacheKey {
    let route = ROUTES.iter().find(|route| route.path == path).unwrap();
    let query = DataQuery::read(route, None, query).unwrap();
    CacheKey { generation: 1, day: NaiveDate::default(), query }
}

fn told(query: &DataQuery, items: &[String]) -> AnswerContent {
    match query.page {
        Some(_) => AnswerContent::Rows(ListRows::of(items, None).unwrap()),
        None => AnswerContent::Whole(AnswerBody { tail: items.concat().into(), paging: None, read_at: None, tag: String::new() }),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_many_ask_at_once_an_answer_is_made_once() {
    for (path, wants_packed) in [(WHOLE, false), (WHOLE, true), (PAGED, false), (PAGED, true)] {
        let (response_cache, made) = (Arc::new(ResponseCache::new()), Arc::new(AtomicUsize::new(0)));
        let mut asking = tokio::task::JoinSet::new();
        // Pages of one list are made from the same list.
        for page in 0..60 {
            let query = if path == PAGED { format!("page={}&pageSize=2", page % 3 + 1) } else { String::new() };
            let (response_cache, made) = (response_cache.clone(), made.clone());
            asking.spawn(async move {
                let make = move |query: &DataQuery| {
                    made.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    Ok(told(query, &["x".repeat(3_000), "y".repeat(3_000), "z".repeat(3_000)]))
                };
                response_cache.get(cache_key(path, &query), wants_packed, make).await.unwrap().packed.is_some()
            });
        }
        let packed = asking.join_all().await;
        assert_eq!(made.load(Ordering::SeqCst), 1, "{path}");
        // The third page is empty, and too short to be packed.
        assert_eq!(packed.iter().any(|packed| *packed), wants_packed, "{path}");
        assert!(response_cache.find(cache_key(path, if path == PAGED { "page=2&pageSize=2" } else { "" }), wants_packed).is_ok());
        response_cache.clear();
        assert!(response_cache.find(cache_key(path, ""), wants_packed).is_err());
    }
}

#[tokio::test]
async fn a_refusal_is_not_kept() {
    let response_cache = ResponseCache::new();
    let refused = response_cache.get(cache_key(WHOLE, ""), true, |_| Err(Refusal::internal("not now"))).await;
    assert_eq!(refused.unwrap_err().message, "not now");
    let answered = response_cache.get(cache_key(WHOLE, ""), true, |query| Ok(told(query, &["now".into()]))).await;
    assert_eq!(answered.unwrap().answer.tail, "now");
}

#[tokio::test]
async fn what_is_kept_stays_within_its_bound() {
    let response_cache = ResponseCache::new();
    let megabyte = Arc::new("x".repeat(1 << 20));
    for generation in 0..200 {
        let (cache_key, megabyte) = (CacheKey { generation, ..cache_key(WHOLE, "") }, megabyte.clone());
        response_cache.get(cache_key, false, move |query| Ok(told(query, &[megabyte.to_string()]))).await.unwrap();
        assert!(response_cache.cached.weight() <= MAX_CACHED_BYTES, "{}", response_cache.cached.weight());
    }
    assert!(response_cache.cached.len() > 30, "it keeps what fits: {}", response_cache.cached.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_in_the_making_holds_up_nobody_who_asks_for_a_kept_one() {
    let response_cache = Arc::new(ResponseCache::new());
    response_cache.get(cache_key(WHOLE, ""), false, |query| Ok(told(query, &["kept".into()]))).await.unwrap();
    let key_gate = Arc::new(Mutex::new(()));
    let closed = key_gate.lock().unwrap();
    // More than there are workers, and none of them ends.
    let making: Vec<_> = (0..20)
        .map(|generation| {
            let (response_cache, key_gate) = (response_cache.clone(), key_gate.clone());
            tokio::spawn(async move {
                let cache_key = CacheKey { generation: generation + 2, ..cache_key(WHOLE, "") };
                let make = move |query: &DataQuery| {
                    drop(key_gate.lock());
                    Ok(told(query, &["made".into()]))
                };
                response_cache.get(cache_key, false, make).await.unwrap().answer.tail.clone()
            })
        })
        .collect();
    assert_eq!(response_cache.find(cache_key(WHOLE, ""), false).unwrap().answer.tail, "kept");
    drop(closed);
    for made in making {
        assert_eq!(made.await.unwrap(), "made");
    }
}

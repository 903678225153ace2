use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Bytes;

use super::*;
use crate::route::ROUTES;

const PAGED: &str = "/v5/fundraising/investors/list";
const WHOLE: &str = "/v1/fundraising/investors/list";

fn cache_key(path: &str, query: &str) -> CacheKey {
    let route = ROUTES.iter().find(|route| route.path == path).unwrap();
    let query = DataQuery::read(route, None, query).unwrap();
    CacheKey { generation: 1, day: NaiveDate::default(), query }
}

fn list(items: &[String]) -> ResponseData {
    ResponseData::list(items, None).unwrap()
}

fn tail_of(item: &str) -> Bytes {
    list(&[item.to_owned()]).whole().tail
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_requests_build_a_response_once() {
    for (path, wants_packed) in [(WHOLE, false), (WHOLE, true), (PAGED, false), (PAGED, true)] {
        let (response_cache, made) = (Arc::new(ResponseCache::new()), Arc::new(AtomicUsize::new(0)));
        let mut requests = tokio::task::JoinSet::new();
        // All pages are cut from the same list.
        for page in 0..60 {
            let query = if path == PAGED { format!("page={}&pageSize=2", page % 3 + 1) } else { String::new() };
            let (response_cache, made) = (response_cache.clone(), made.clone());
            requests.spawn(async move {
                let make = move |_: &DataQuery| {
                    made.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    Ok(list(&["x".repeat(3_000), "y".repeat(3_000), "z".repeat(3_000)]))
                };
                response_cache.get(cache_key(path, &query), wants_packed, make).await.unwrap().packed.is_some()
            });
        }
        let packed = requests.join_all().await;
        assert_eq!(made.load(Ordering::SeqCst), 1, "{path}");
        // The third page is empty, and too short to be compressed.
        assert_eq!(packed.iter().any(|packed| *packed), wants_packed, "{path}");
        assert!(response_cache.find(cache_key(path, if path == PAGED { "page=2&pageSize=2" } else { "" }), wants_packed).is_ok());
        response_cache.clear();
        assert!(response_cache.find(cache_key(path, ""), wants_packed).is_err());
    }
}

#[tokio::test]
async fn error_is_not_cached() {
    let response_cache = ResponseCache::new();
    let refused = response_cache.get(cache_key(WHOLE, ""), true, |_| Err(Refusal::internal("not now"))).await;
    assert_eq!(refused.unwrap_err().message, "not now");
    let second = response_cache.get(cache_key(WHOLE, ""), true, |_| Ok(list(&["now".into()]))).await;
    assert_eq!(second.unwrap().body.tail, tail_of("now"));
}

#[tokio::test]
async fn cache_stays_within_its_size_limit() {
    let response_cache = ResponseCache::new();
    let megabyte = Arc::new("x".repeat(1 << 20));
    for generation in 0..200 {
        let (cache_key, megabyte) = (CacheKey { generation, ..cache_key(WHOLE, "") }, megabyte.clone());
        response_cache.get(cache_key, false, move |_| Ok(list(&[megabyte.to_string()]))).await.unwrap();
        assert!(response_cache.cached.weight() <= MAX_CACHED_BYTES, "{}", response_cache.cached.weight());
    }
    assert!(response_cache.cached.len() > 30, "the cache should be nearly full: {}", response_cache.cached.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cached_response_does_not_wait_for_workers() {
    let response_cache = Arc::new(ResponseCache::new());
    response_cache.get(cache_key(WHOLE, ""), false, |_| Ok(list(&["cached".into()]))).await.unwrap();
    let key_gate = Arc::new(Mutex::new(()));
    let closed = key_gate.lock().unwrap();
    // These occupy all workers until the lock is released.
    let making: Vec<_> = (0..20)
        .map(|generation| {
            let (response_cache, key_gate) = (response_cache.clone(), key_gate.clone());
            tokio::spawn(async move {
                let cache_key = CacheKey { generation: generation + 2, ..cache_key(WHOLE, "") };
                let make = move |_: &DataQuery| {
                    drop(key_gate.lock());
                    Ok(list(&["built".into()]))
                };
                response_cache.get(cache_key, false, make).await.unwrap().body.tail.clone()
            })
        })
        .collect();
    assert_eq!(response_cache.find(cache_key(WHOLE, ""), false).unwrap().body.tail, tail_of("cached"));
    drop(closed);
    for made in making {
        assert_eq!(made.await.unwrap(), tail_of("built"));
    }
}

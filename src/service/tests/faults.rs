//! Tests of fault injection.

use super::*;
use testkit::faults::{Fault, Faults};

#[tokio::test]
async fn each_fault_applies_until_it_is_cleared() {
    let faults = Faults::new();
    let server = Server::start(faults.wrap(small(options()).legacy_router())).await;
    let path = "/v5/unlock/events/alpha?pageSize=1";
    let get = || server.http.get(format!("{}{path}", server.base)).header(KEY_HEADER, "secret").send();

    faults.times("/v5/unlock", 2, Fault::too_many(7));
    for _ in 0..2 {
        let response = get().await.unwrap();
        assert_eq!((response.status().as_u16(), &response.headers()[header::RETRY_AFTER]), (429, &HeaderValue::from(7)));
    }
    assert_eq!(get().await.unwrap().status(), 200, "two times, not three");
    faults.set("/v5/burn", Fault::status(500));
    assert_eq!(get().await.unwrap().status(), 200, "another path");
    faults.clear();

    faults.set("", Fault::Cut(20));
    assert!(get().await.unwrap().bytes().await.is_err(), "the body ends early");
    faults.clear();
    faults.set("", Fault::Drip { bytes: 64, every: Duration::from_millis(1) });
    let dripped: Value = serde_json::from_slice(&get().await.unwrap().bytes().await.unwrap()).unwrap();
    assert_eq!(dripped["metadata"]["total"], 2);
    faults.clear();
    faults.set("", Fault::Emptied);
    let (_, body) = server.request(path).await;
    assert_eq!((&body["data"], &body["metadata"]["total"]), (&Value::Array(vec![]), &0.into()));
    faults.clear();
    faults.set("", Fault::PageMissing(2));
    assert_eq!(server.request(path).await.1["data"].as_array().unwrap().len(), 1);
    let (_, body) = server.request(&format!("{path}&page=2")).await;
    assert_eq!((&body["data"], &body["metadata"]["total"]), (&Value::Array(vec![]), &2.into()));
    faults.clear();
    faults.set("", Fault::PageFails(2));
    assert_eq!(server.request(path).await.0, 200);
    assert_eq!(server.request(&format!("{path}&page=2")).await.0, 500);
    faults.clear();
    faults.set("", Fault::TotalMoves);
    assert_eq!(server.request(path).await.1["metadata"]["total"], 2);
    assert_eq!(server.request(&format!("{path}&page=2")).await.1["metadata"]["total"], 3);
    faults.clear();
    faults.set("", Fault::Doubled);
    assert_eq!(server.request(path).await.1["data"].as_array().unwrap().len(), 2);
    faults.clear();
    faults.set("", Fault::Replaced { from: "\"Seed\"".into(), to: "null".into() });
    let (_, body) = server.request("/v4/unlock/events?tokenId=alpha").await;
    assert!(body["data"][1]["cliffUnlocks"]["allocationBreakdown"][0]["allocationName"].is_null());
    faults.clear();
    faults.set("", Fault::Hang);
    let hanging = tokio::time::timeout(Duration::from_millis(200), get().await.unwrap().bytes()).await;
    assert!(hanging.is_err(), "headers, and then nothing");
    faults.clear();
    faults.set("", Fault::Html);
    assert!(get().await.unwrap().text().await.unwrap().contains("<html>"));
    faults.clear();
    faults.set("", Fault::StatusFalse);
    assert_eq!(server.request(path).await.1["status"], false);
    faults.clear();
    faults.set("", Fault::Bare);
    assert!(server.request(path).await.1.is_array());
    faults.clear();
    faults.set("", Fault::Redirect("http://127.0.0.1:9/x".into()));
    assert_eq!(get().await.unwrap().headers()[header::LOCATION], "http://127.0.0.1:9/x");
    faults.clear();
    faults.set("", Fault::NotModified);
    assert_eq!(get().await.unwrap().status(), 304);
    faults.clear();
    faults.set("", Fault::GzipBomb(8 << 20));
    let bomb = get().await.unwrap().bytes().await.unwrap();
    assert_eq!(bomb.len(), 8 << 20, "the client decompresses it");
    faults.clear();
    assert_eq!(server.request(path).await.0, 200);

    let log = faults.take_log();
    assert_eq!(log.len() as u64, faults.request_count());
    assert!(log[0].has_key && log[0].faulted && !format!("{log:?}").contains("secret"));
    assert_eq!(log.last().unwrap().uri, path);
}

//! Tests of walks over pages.

use super::*;

#[tokio::test]
async fn all_reported_pages_are_requested() {
    let fake = FakeServer::start(|_, target| match target {
        _ if target.contains("page=1&") => pages(1, 3, 5, &rows(&[1, 2])),
        _ if target.contains("page=2&") => pages(2, 3, 5, &rows(&[3, 4])),
        _ => pages(3, 3, 5, &rows(&[5])),
    })
    .await;
    let (client, _) = client(&fake);
    let fetched = client.fetch(&events(), None, None).await;
    assert_eq!(event_days(&fetched), ["01", "02", "03", "04", "05"]);
    assert_eq!((fetched.credits, fetched.requests), (3, 3));
    let first = "/v5/unlock/events/aptos?start=2026-01-01&end=2026-12-31&page=1&pageSize=2";
    assert_eq!(fake.targets().first().map(String::as_str), Some(first));
}

#[tokio::test]
async fn unexpected_pages_are_requested_too() {
    let fake = FakeServer::start(|_, target| {
        if target.contains("page=2&pageSize=2") {
            pages(2, 2, 3, r#"[{"id":"c"}]"#)
        } else {
            pages(1, 2, 3, r#"[{"id":"a"},{"id":"b"}]"#)
        }
    })
    .await;
    let (client, _) = client(&fake);
    let fetched = client.fetch(&PollRequest::TokenList, None, None).await;
    assert!(matches!(&fresh(&fetched).payload, Payload::Tokens(tokens) if tokens.len() == 3));
    assert_eq!(fake.targets(), ["/v5/token/list", "/v5/token/list?page=2&pageSize=2"]);
}

#[tokio::test]
async fn smaller_page_size_of_the_server_is_accepted() {
    let fake = FakeServer::start(|_, target| {
        let page = (1..=3).find(|page| target.contains(&format!("page={page}&"))).unwrap_or_default();
        ok(&format!(r#","page":{page},"pageSize":1,"totalPages":3,"total":3"#), &rows(&[page]))
    })
    .await;
    let mut source = source(&fake.address);
    source.page_size = 1_000;
    let (client, _) = tuned(&source);
    let fetched = client.fetch(&events(), None, None).await;
    assert_eq!(event_days(&fetched), ["01", "02", "03"]);
    let hash = fresh(&fetched).hash;
    let retry = client.fetch(&events(), Some(hash), None).await;
    assert!(matches!(retry.outcome, PollOutcome::Unchanged), "the hash covers all pages");
    assert_eq!(retry.credits, 3);
}

#[tokio::test]
async fn walk_is_repeated_if_the_list_changes() {
    let fake = FakeServer::start(|number, _| match number {
        0 => pages(1, 2, 3, &rows(&[1, 2])),
        1 => pages(2, 2, 4, &rows(&[3, 4])),
        2 => pages(1, 2, 4, &rows(&[1, 2])),
        _ => pages(2, 2, 4, &rows(&[3, 4])),
    })
    .await;
    let (client, _) = client(&fake);
    let fetched = client.fetch(&events(), None, None).await;
    assert_eq!(event_days(&fetched), ["01", "02", "03", "04"]);
    assert_eq!(fetched.credits, 4, "the first walk cost credits too");
}

#[tokio::test]
async fn list_that_keeps_changing_is_a_failure() {
    let changing = |number: usize, _: &str| pages(number % 2 + 1, 2, 3 + number, &rows(&[1, 2]));
    let (failure, requests) = fails(changing, &events()).await;
    assert_eq!((failure.kind, requests), (FailureKind::Incomplete, 6));
    assert!(
        failure.message.starts_with("GET /v5/unlock/events/aptos: the pages were inconsistent in 3 attempts"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn missing_page_is_a_failure() {
    let missing = |_: usize, target: &str| {
        if target.contains("page=2&") { pages(2, 2, 4, "[]") } else { pages(1, 2, 4, &rows(&[1, 2])) }
    };
    assert_eq!(fails(missing, &events()).await.0.kind, FailureKind::Incomplete);
    let repeated_row = |_: usize, target: &str| {
        if target.contains("page=2&") { pages(2, 2, 4, &rows(&[2, 3])) } else { pages(1, 2, 4, &rows(&[1, 2])) }
    };
    assert_eq!(fails(repeated_row, &events()).await.0.kind, FailureKind::Incomplete);
}

#[tokio::test]
async fn failed_page_is_retried() {
    let fake = FakeServer::start(|number, target| match number {
        1 => reply("502 Bad Gateway", "", "oops"),
        2 => reply("200 OK", "", r#"{"metadata":{},"status":true,"data":[{"unlock"#),
        _ if target.contains("page=2&") => pages(2, 2, 3, &rows(&[3])),
        _ => pages(1, 2, 3, &rows(&[1, 2])),
    })
    .await;
    let (client, _) = client(&fake);
    let fetched = client.fetch(&events(), None, None).await;
    assert_eq!(event_days(&fetched), ["01", "02", "03"]);
    assert_eq!((fetched.credits, fetched.requests), (3, 4), "the incomplete response may have cost a credit");
}

#[tokio::test]
async fn page_that_keeps_failing_fails_the_fetch() {
    let failing_page = |_: usize, target: &str| {
        if target.contains("page=2&") { reply("500 Internal Server Error", "", "{}") } else { pages(1, 2, 3, &rows(&[1, 2])) }
    };
    let (failure, requests) = fails(failing_page, &events()).await;
    assert_eq!((failure.kind, requests), (FailureKind::ServerError, 4));
    assert!(failure.message.contains("(page 2 of 2)") && failure.message.contains("tried 3 times"), "{}", failure.message);
}

//! Login sessions of two instances behind a load balancer, on one database.

use chrono::TimeDelta;

use super::*;
use crate::http::tests::{run_in, run_on};

/// Two instances on one database.
async fn pair(tokens: [&str; 2]) -> [TestServer; 2] {
    let folder = tempfile::tempdir().expect("a directory").keep();
    let first = run_in(&folder, Some(tokens[0]), Some("0.0.0.0:9797")).await;
    let second = run_on(first.store.clone(), folder.join("cliffwatch.db"), Some(tokens[1]), Some("0.0.0.0:9797")).await;
    [first, second]
}

/// Logs in on an instance. Returns the headers of further requests.
async fn log_in(app: &TestServer) -> String {
    let (status, response) = Browser::new(app, OUTSIDE).post("/login", &[("token", TOKEN)]).await;
    assert_eq!(status, 303, "{response}");
    format!("{OUTSIDE}Cookie: {}\r\n", set_cookie(&response).expect("a cookie"))
}

#[tokio::test]
async fn login_on_one_instance_is_valid_on_the_other_one_until_the_logout() {
    let [a, b] = pair([TOKEN, TOKEN]).await;
    let id = store_alert(&a, samples::unlock(), AlertState::Firing).await;
    let (headers, other) = (log_in(&a).await, log_in(&b).await);
    let (mut on_a, mut on_b) = (Browser::new(&a, &headers), Browser::new(&b, &headers));
    assert_eq!((on_a.get("/alerts").await.0, on_b.get("/alerts").await.0), (200, 200));
    // A form of a page of one instance is sent to the other one.
    let path = format!("/alerts/{id}");
    assert_eq!(on_a.get(&path).await.0, 200);
    on_b.csrf_token.clone_from(&on_a.csrf_token);
    let (status, response) = on_b.post(&format!("{path}/acknowledge"), &[("author", "ann")]).await;
    assert_eq!(status, 303, "{response}");
    assert_eq!(a.store.acks().await.expect("read").len(), 1);

    let (status, response) = on_b.post("/logout", &[]).await;
    assert!(status == 303 && response.contains("Max-Age=0"), "{response}");
    assert_eq!((on_a.get("/alerts").await.0, on_b.get("/alerts").await.0), (303, 303), "the session ended on both");
    assert_eq!(Browser::new(&a, &other).get("/alerts").await.0, 200, "another session goes on");
}

#[tokio::test]
async fn rotated_token_ends_all_sessions() {
    let [a, b] = pair([TOKEN, "rotated"]).await;
    let headers = log_in(&a).await;
    assert_eq!(Browser::new(&a, &headers).get("/alerts").await.0, 200);
    assert_eq!(Browser::new(&b, &headers).get("/alerts").await.0, 303);
}

#[tokio::test]
async fn session_in_use_is_extended_up_to_its_maximum_age() {
    let [a, b] = pair([TOKEN, TOKEN]).await;
    let mut headers = log_in(&a).await;
    assert_eq!(set_cookie(&Browser::new(&a, &headers).get("/alerts").await.1), None, "the cookie is recent");
    for step in 1..28 {
        let app = if step % 2 == 0 { &a } else { &b };
        app.clock.set(now() + TimeDelta::hours(6 * step));
        let (status, response) = Browser::new(app, &headers).get("/alerts").await;
        assert_eq!(status, 200, "after {step} steps");
        let renewed = set_cookie(&response).expect("a new cookie");
        headers = format!("{OUTSIDE}Cookie: {renewed}\r\n");
    }
    a.clock.set(now() + TimeDelta::days(7));
    assert_eq!(Browser::new(&a, &headers).get("/alerts").await.0, 303);
}

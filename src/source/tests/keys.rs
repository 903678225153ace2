//! Tests of keys and base URLs.

use super::*;

#[tokio::test]
async fn rejected_key_is_retried_after_a_wait_or_a_change() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("key");
    std::fs::write(&file, "first_key\n").expect("a key file");
    let fake = FakeServer::start(|_, _| reply("401 Unauthorized", "", r#"{"errorMessage":"bad key first_key"}"#)).await;
    let mut source = source(&fake.address);
    (source.api_key, source.api_key_file) = (None, Some(file.clone()));
    let (client, clock) = tuned(&source);
    let fetched = client.fetch(&burns(), None, None).await;
    let message = failure(&fetched).message.clone();
    assert_eq!((failure(&fetched).kind, fetched.credits), (FailureKind::Unauthorized, 0));
    assert!(message.contains("source.api_key_file was rejected") && message.contains("bad key •••"), "{message}");
    for _ in 0..3 {
        let fetched = client.fetch(&events(), None, None).await;
        assert_eq!((failure(&fetched).kind, fetched.requests), (FailureKind::Unauthorized, 0));
        assert!(failure(&fetched).retry_at.is_some());
    }
    assert_eq!(fake.count(), 1);
    assert!(matches!(client.breaker(), BreakerState::Open { kind: FailureKind::Unauthorized, .. }));
    clock.set(now() + TimeDelta::seconds(301));
    client.fetch(&burns(), None, None).await;
    assert_eq!(fake.count(), 2, "one retry after the wait");
    std::fs::write(&file, "second_key").expect("a key file");
    client.fetch(&burns(), None, None).await;
    assert_eq!(fake.count(), 3, "a new key is tried at once");
    assert!(fake.log.lock().expect("the log").last().is_some_and(|request| request.head.contains("x-api-key: second_key")));
}

#[tokio::test]
async fn missing_key_is_reported_after_a_401() {
    let fake = FakeServer::start(|_, _| reply("401 Unauthorized", "", "")).await;
    let mut source = source(&fake.address);
    source.api_key = None;
    let (client, _) = tuned(&source);
    let fetched = client.fetch(&burns(), None, None).await;
    assert!(failure(&fetched).message.contains("no key was sent"), "{}", failure(&fetched));
    assert!(!fake.log.lock().expect("the log").iter().any(|request| request.head.contains("x-api-key")));
}

#[tokio::test]
async fn unreadable_key_file_is_reported_without_a_request() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("key");
    let fake = FakeServer::start(|_, _| ok("", BURNS)).await;
    let mut source = source(&fake.address);
    (source.api_key, source.api_key_file) = (None, Some(file.clone()));
    let (client, _) = tuned(&source);
    let fetched = client.fetch(&burns(), None, None).await;
    assert_eq!((failure(&fetched).kind, fake.count()), (FailureKind::UnusableKey, 0));
    let message = &failure(&fetched).message;
    let expected = format!("cannot read the API key from {}: No such file", file.display());
    assert!(message.starts_with(&expected), "{message}");
    assert!(matches!(client.breaker(), BreakerState::Open { kind: FailureKind::UnusableKey, .. }));
    std::fs::write(&file, "key").expect("a key file");
    fresh(&client.fetch(&burns(), None, None).await);
    assert!(client.breaker().is_closed());
}

#[tokio::test]
async fn key_that_no_header_can_contain_is_not_rejected_by_the_source() {
    let fake = FakeServer::start(|_, _| ok("", BURNS)).await;
    let mut source = source(&fake.address);
    source.api_key = Some("two\nlines".to_owned().into());
    let (client, _) = tuned(&source);
    let fetched = client.fetch(&burns(), None, None).await;
    assert_eq!((failure(&fetched).kind, fake.count()), (FailureKind::UnusableKey, 0));
    let again = client.fetch(&burns(), None, None).await;
    assert_eq!(failure(&again).kind, FailureKind::UnusableKey, "the breaker keeps the kind");
}

#[tokio::test]
async fn empty_key_file_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("key");
    std::fs::write(&file, "\n").expect("a key file");
    let fake = FakeServer::start(|_, _| reply("401 Unauthorized", "", "")).await;
    let mut source = source(&fake.address);
    (source.api_key, source.api_key_file) = (None, Some(file.clone()));
    let (client, _) = tuned(&source);
    let fetched = client.fetch(&burns(), None, None).await;
    let message = &failure(&fetched).message;
    assert!(message.contains(&format!("{} is empty", file.display())), "{message}");
}

#[tokio::test]
async fn ended_wait_allows_one_request() {
    let fake = FakeServer::start(|_, _| reply("401 Unauthorized", "", "")).await;
    let (client, _) = client(&fake);
    client.fetch(&burns(), None, None).await;
    client.fetch(&burns(), None, None).await;
    assert_eq!(fake.count(), 1);
    client.end_wait();
    client.fetch(&burns(), None, None).await;
    client.fetch(&burns(), None, None).await;
    assert_eq!(fake.count(), 2);
}

#[tokio::test]
async fn forbidden_token_does_not_affect_a_valid_key() {
    let fake = FakeServer::start(
        |_, target| if target.contains("secret-token") { reply("403 Forbidden", "", "") } else { ok("", BURNS) },
    )
    .await;
    let (client, _) = client(&fake);
    fresh(&client.fetch(&burns(), None, None).await);
    let fetched = client.fetch(&token_request(Endpoint::Burn, "secret-token"), None, None).await;
    assert_eq!(failure(&fetched).kind, FailureKind::Forbidden);
    fresh(&client.fetch(&burns(), None, None).await);
    let (alone, _) = fails(|_, _| reply("403 Forbidden", "", ""), &burns()).await;
    assert!(alone.message.contains("check its plan"), "{alone}");
}

#[test]
fn url_that_would_expose_the_key_is_rejected() {
    let check = |address: &str| Client::new(&source(address), Clock::manual(now())).err().map(|error| error.to_string());
    for address in ["http://api.example.com", "http://127.0.0.1.example.com", "http://10.0.0.1", "http://localhost.example.com"] {
        assert!(check(address).is_some_and(|error| error.contains("unencrypted")), "{address}");
    }
    for address in ["ftp://x", "nonsense", "https://user:hunter2@x", "https://x?key=1", "file:///etc/passwd"] {
        assert!(check(address).is_some_and(|error| !error.contains("hunter2") && error.contains("source.base_url")), "{address}");
    }
    for address in
        ["https://api.example.com/mirror", "http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "http://127.9.9.9"]
    {
        assert_eq!(check(address), None, "{address}");
    }
}

#[test]
fn http_is_allowed_in_configured_private_networks() {
    let check = |address: &str, network: &str| {
        let source = SourceSettings { allow_http_networks: vec![network.to_owned()], ..source(address) };
        Client::new(&source, Clock::manual(now())).err().map(|error| error.to_string())
    };
    for address in ["http://10.0.0.1:9798", "http://mirror.internal:9798", "http://[fd00::1]"] {
        let network = if address.contains('[') { "fd00::/8" } else { "10.0.0.0/8" };
        assert_eq!(check(address, network), None, "{address}");
    }
    for address in ["http://192.168.0.1", "http://93.184.215.14"] {
        assert!(check(address, "10.0.0.0/8").is_some_and(|error| error.contains("unencrypted")), "{address}");
    }
    assert!(check("http://93.184.215.14", "0.0.0.0/0").is_some_and(|error| error.contains("not a private network")));
}

#[test]
fn debug_output_contains_no_key() {
    let client = Client::new(&source("http://127.0.0.1:1"), Clock::manual(now())).expect("a client");
    assert!(!format!("{client:?}").contains("sk_secret"));
}

//! Actions with the key of a request: effect and key are stored together, on every crash, and keys are bounded.

use std::path::Path;

use chrono::TimeDelta;
use tempfile::TempDir;

use super::support::*;
use crate::Store;
use crate::keyed_request::MAX_REQUESTS;
use model::*;

const CRASH_DB: &str = "CLIFFWATCH_TEST_ACTION_CRASH_DB";

fn request(key: &str) -> KeyedRequest {
    KeyedRequest { client: "c1".into(), key: key.into(), hash: vec![1, 2, 3] }
}

async fn drop_once(store: &Store, key: &str, delivery: i64) -> KeyedOutcome<ActionOutcome> {
    let respond = |outcome: &ActionOutcome| StoredResponse { status: 200, body: format!("{outcome:?}") };
    let action = UserAction::DropDelivery(DeliveryId(delivery));
    store.perform_once(action, request(key), now(), respond).await.expect("performed")
}

/// The child process of [`effect_and_key_are_stored_together_at_every_crash_point`]. Does nothing in a normal test run.
#[tokio::test]
async fn action_in_child_process() {
    let Some(path) = std::env::var_os(CRASH_DB) else { return };
    let store = owned_at(Path::new(&path)).await;
    let id = notify(&store, "a", &["ops"]).await.remove(0).id;
    drop_once(&store, "k", id.0).await;
}

#[tokio::test]
async fn effect_and_key_are_stored_together_at_every_crash_point() {
    use std::os::unix::process::ExitStatusExt;
    for (point, is_stored) in [("action.inside", false), ("action.after", true)] {
        let directory = TempDir::new().expect("a directory");
        let died = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "tests::user_actions::action_in_child_process"])
            .env(CRASH_DB, directory.path())
            .env(crate::failpoint::VARIABLE, point)
            .output()
            .expect("it runs");
        assert_eq!(died.status.signal(), Some(libc::SIGABRT), "{point}: {died:?}");
        let store = owned(&directory).await;
        let row = store.outbox(OutboxFilter { limit: 9, ..OutboxFilter::default() }).await.expect("read").remove(0);
        assert_eq!(row.state == DeliveryState::Dropped, is_stored, "{point}");
        assert_eq!(count(&store, "keyed_request"), i64::from(is_stored), "{point}");
        // The client repeats the request, and the effect happens once in any case.
        let again = drop_once(&store, "k", row.id.0).await;
        assert_eq!(matches!(again, KeyedOutcome::Repeated(_)), is_stored, "{point}: {again:?}");
        let dropped = rows(&store, "SELECT count(*) FROM event_log WHERE type = 'delivery.dropped'", |row| {
            row.get::<i64>(0).expect("a number")
        });
        assert_eq!(dropped, [1], "{point}");
    }
}

#[tokio::test]
async fn keys_belong_to_a_client_and_one_request_for_a_day() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let known = async |request: KeyedRequest, at: Timestamp| store.known_request(request, at).await.expect("read");
    let response = StoredResponse { status: 201, body: "{}".into() };
    store.remember_request(request("k"), response.clone(), now()).await.expect("stored");
    assert_eq!(known(request("k"), now()).await, KnownRequest::Repeated(response));
    assert_eq!(known(KeyedRequest { hash: vec![9], ..request("k") }, now()).await, KnownRequest::Different);
    assert_eq!(known(KeyedRequest { client: "c2".into(), ..request("k") }, now()).await, KnownRequest::New);
    assert_eq!(known(request("k"), now() + TimeDelta::hours(24)).await, KnownRequest::New);
    // The key can be used again, also by another request.
    let later = StoredResponse { status: 200, body: String::new() };
    let other = KeyedRequest { hash: vec![9], ..request("k") };
    store.remember_request(other.clone(), later.clone(), now() + TimeDelta::hours(25)).await.expect("stored");
    assert_eq!(known(other, now() + TimeDelta::hours(25)).await, KnownRequest::Repeated(later));
    assert_eq!(count(&store, "keyed_request"), 1, "the old one is deleted");
}

#[tokio::test]
async fn number_of_keys_is_bounded() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let response = StoredResponse { status: 200, body: String::new() };
    store.remember_request(request("first"), response.clone(), now()).await.expect("stored");
    let hash = if server().is_some() { "'\\x01'" } else { "x'01'" };
    change(
        &store,
        &format!(
            "INSERT INTO keyed_request (no, client, key, hash, at, status, body) SELECT {MAX_REQUESTS} + no, 'c2', 'k', {hash}, at, 200, ''
             FROM keyed_request"
        ),
    );
    store
        .remember_request(KeyedRequest { client: "c2".into(), hash: vec![2], ..request("k") }, response, now())
        .await
        .expect("stored");
    let left = rows(&store, "SELECT key FROM keyed_request", |row| row.get::<String>(0).expect("a text"));
    assert_eq!(left, ["k"], "the oldest one is deleted");
}

#[tokio::test]
async fn access_keys_are_found_by_their_hash_until_they_are_revoked() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let key = |name: &str, role| AccessKey { name: name.into(), role, created_at: now() };
    assert!(store.add_access_key(key("bot", AccessRole::Act), [1; 32]).await.expect("added"));
    assert!(store.add_access_key(key("ann", AccessRole::View), [2; 32]).await.expect("added"));
    assert!(!store.add_access_key(key("bot", AccessRole::Admin), [3; 32]).await.expect("read"), "the name is taken");
    assert_eq!(store.access_keys().await.expect("read"), [key("ann", AccessRole::View), key("bot", AccessRole::Act)]);
    assert_eq!(store.access_key_with([1; 32]).await.expect("read"), Some(key("bot", AccessRole::Act)));
    assert_eq!(store.access_key_with([3; 32]).await.expect("read"), None);
    assert!(store.revoke_access_key("bot".into(), now()).await.expect("revoked"));
    assert!(!store.revoke_access_key("bot".into(), now()).await.expect("read"));
    assert_eq!(store.access_key_with([1; 32]).await.expect("read"), None);
}

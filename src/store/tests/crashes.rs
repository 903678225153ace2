use std::path::Path;

use tempfile::TempDir;

use super::support::*;
use model::*;

const CRASH_DB: &str = "CLIFFWATCH_TEST_CRASH_DB";

/// The child process of [`commit_is_atomic_at_every_crash_point`]. Does nothing in a normal test run.
#[tokio::test]
async fn commit_in_child_process() {
    let Some(path) = std::env::var_os(CRASH_DB) else { return };
    let store = owned_at(Path::new(&path)).await;
    let id = notify(&store, "a", &["ops"]).await.remove(0).id;
    store.record_attempts(vec![tried(id, now(), DeliveryState::Delivered, None)]).await.expect("recorded");
    notify(&store, "b", &["ops"]).await;
}

#[tokio::test]
async fn commit_is_atomic_at_every_crash_point() {
    use std::os::unix::process::ExitStatusExt;
    // The crash point, then the alerts, due deliveries, and delivered deliveries found afterwards.
    for (point, alerts, due, delivered) in [
        ("commit.before:2", 1, 0, 1),
        ("commit.inside", 0, 0, 0),
        ("commit.inside:2", 1, 0, 1),
        ("commit.after", 1, 1, 0),
        ("commit.after:2", 2, 1, 1),
        ("attempt.before", 1, 1, 0),
        ("attempt.after", 1, 0, 1),
    ] {
        let directory = TempDir::new().expect("a directory");
        let died = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "tests::crashes::commit_in_child_process"])
            .env(CRASH_DB, directory.path())
            .env(crate::failpoint::VARIABLE, point)
            .output()
            .expect("it runs");
        assert_eq!(died.status.signal(), Some(libc::SIGABRT), "{point}: {died:?}");
        let store = owned(&directory).await;
        assert_eq!(
            store.alerts(AlertFilter { limit: 9, ..AlertFilter::default() }).await.expect("read").len(),
            alerts,
            "{point}"
        );
        assert_eq!(store.due("ops".into(), now(), 9).await.expect("read").len(), due, "{point}");
        let filter = OutboxFilter { states: vec![DeliveryState::Delivered], limit: 9, ..OutboxFilter::default() };
        assert_eq!(store.outbox(filter).await.expect("read").len(), delivered, "{point}");
        // One event for each alert, notification, and delivery that ended.
        assert_eq!(store.last_event().await.expect("read"), i64::try_from(2 * alerts + delivered).expect("few"), "{point}");
        assert!(store.integrity_check().await.is_ok(), "{point}");
    }
}

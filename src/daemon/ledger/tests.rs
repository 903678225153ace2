use model::Charge;
use rules::RuleSet;
use store::{Access, Opening};
use testkit::time;

use super::*;
use crate::{
    config::{Environment, load_text},
    live::LiveConfig,
};

/// A reservation may fail after its caller is dropped. The requests are then settled with the next one.
#[tokio::test(flavor = "multi_thread")]
async fn requests_are_settled_after_dropped_and_failed_reservation() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, clock) = (folder.path().join("l.db"), Clock::manual(time("2026-03-01")));
    let store = Store::open(Opening { path: path.clone(), access: Access::Own, now: clock.now() }).await.expect("opens");
    let config = load_text(None, "", &Environment::default()).config.expect("good");
    let live = LiveConfig::build_now(config, RuleSet::default()).expect("builds");
    let ledger =
        Ledger::new(store.clone(), model::config::SourceSettings::default().key(), Arc::new(Live::from_pointee(live)), clock);
    ledger.reserve(1).await.expect("granted");
    ledger.settle(SettledRequest { charge: Charge::One, ..ledger.sent() });

    let other = rusqlite::Connection::open(&path).expect("opens");
    let refuse = "BEGIN IMMEDIATE; CREATE TRIGGER no_room BEFORE UPDATE ON credit BEGIN SELECT RAISE(ABORT, 'no room'); END;";
    other.execute_batch(refuse).expect("holds the database");
    timeout(Duration::from_millis(50), ledger.flush()).await.expect_err("waits for the database");
    other.execute_batch("COMMIT").expect("releases the database");
    // The next reservation comes after the failed one.
    ledger.flush().await.expect_err("rejected");
    other.execute_batch("DROP TRIGGER no_room").expect("dropped");
    ledger.flush().await.expect("settled");
    let credit = store.credit().await.expect("read");
    assert_eq!((credit.own(), credit.held()), (1, 0), "{credit:#?}");
}

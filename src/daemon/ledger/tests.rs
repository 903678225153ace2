use model::Charge;
use rules::RuleSet;
use store::{Access, Opening};

use super::*;
use crate::{
    config::{Environment, load_text},
    fixtures::time,
    live::LiveConfig,
};

/// Who waits for a booking may be gone before it is written, and it may fail then: what was settled is booked with the next one.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_settled_is_counted_though_nobody_waits_for_a_booking_that_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, clock) = (folder.path().join("l.db"), Clock::manual(time("2026-03-01")));
    let store = Store::open(Opening { path: path.clone(), access: Access::Own, now: clock.now() }).await.expect("opens");
    let config = load_text(None, "", &Environment::default()).config.expect("good");
    let live = LiveConfig::build_now(config, RuleSet::default()).expect("builds");
    let ledger = Ledger::new(store.clone(), Arc::new(Live::from_pointee(live)), clock);
    ledger.reserve(1).await.expect("granted");
    ledger.settle(SettledRequest { charge: Charge::One, ..ledger.sent() });

    let other = rusqlite::Connection::open(&path).expect("opens");
    let refuse = "BEGIN IMMEDIATE; CREATE TRIGGER no_room BEFORE UPDATE ON credit BEGIN SELECT RAISE(ABORT, 'no room'); END;";
    other.execute_batch(refuse).expect("holds the database");
    timeout(Duration::from_millis(50), ledger.settle_up()).await.expect_err("waits for the database");
    other.execute_batch("COMMIT").expect("lets it go");
    // The next booking comes after the one that fails.
    ledger.settle_up().await.expect_err("refused");
    other.execute_batch("DROP TRIGGER no_room").expect("dropped");
    ledger.settle_up().await.expect("booked");
    let credit = store.credit().await.expect("read");
    assert_eq!((credit.own(), credit.held()), (1, 0), "{credit:#?}");
}

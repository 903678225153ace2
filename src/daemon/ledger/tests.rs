use std::{fs, path::Path};

use model::{
    Charge,
    config::SourceSettings,
    wire::{Credit, Maybe},
};
use rules::RuleSet;
use store::{Access, Opening};
use testkit::time;

use super::*;
use crate::{
    config::{Environment, load_text},
    live::LiveConfig,
};

async fn ledger_of(path: &Path, key: Secret) -> (Ledger, Store) {
    let clock = Clock::manual(time("2026-03-01"));
    let store = Store::open(Opening { path: path.to_owned(), access: Access::Own, now: clock.now() }).await.expect("opens");
    let config = load_text(None, "", &Environment::default()).config.expect("good");
    let live = LiveConfig::build_now(config, RuleSet::default()).expect("builds");
    (Ledger::new(store.clone(), key, Arc::new(Live::from_pointee(live)), clock), store)
}

/// The client reads the file of the key at another time than the ledger. The count in a response belongs to the key of its request.
#[tokio::test(flavor = "multi_thread")]
async fn count_belongs_to_the_key_of_its_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key");
    let settings = SourceSettings { api_key_file: Some(file.clone()), ..SourceSettings::default() };
    let (ledger, store) = ledger_of(&folder.path().join("l.db"), settings.key()).await;
    let settle = |key: &str, used: i64, limit: i64| {
        let reported = Credit { used: Maybe::Value(used), limit: Maybe::Value(limit), ..Credit::default() };
        let sent = ledger.sent(Some(&key.to_owned().into()));
        ledger.settle(SettledRequest { charge: Charge::One, reported: Some(reported), ..sent });
    };
    fs::write(&file, "large\n").expect("written");
    ledger.reserve(3).await.expect("granted");
    settle("large", 500, 1_000_000);
    fs::write(&file, "small\n").expect("written");
    settle("small", 1, 1);
    settle("large", 501, 1_000_000);
    ledger.flush().await.expect("settled");
    let credit = store.credit().await.expect("read");
    assert_eq!((credit.used, credit.limit, credit.own()), (Some(1), Some(1), 3), "{credit:#?}");
    assert_eq!(budget::left(&credit, &model::config::BudgetSettings::default(), time("2026-03-01")), Some(0));
}

/// A reservation may fail after its caller is dropped. The requests are then settled with the next one.
#[tokio::test(flavor = "multi_thread")]
async fn requests_are_settled_after_dropped_and_failed_reservation() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("l.db");
    let (ledger, store) = ledger_of(&path, SourceSettings::default().key()).await;
    ledger.reserve(1).await.expect("granted");
    ledger.settle(SettledRequest { charge: Charge::One, ..ledger.sent(None) });

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

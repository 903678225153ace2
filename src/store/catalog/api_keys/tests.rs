use tempfile::TempDir;

use super::*;
use crate::tests::support::server_place;
use crate::{DatabaseLocation, facts::SupplyFacts as _};
use testkit::time;

/// A new database: on the server named by the environment, else in a file.
fn place(directory: &TempDir) -> DatabaseLocation {
    server_place(directory.path())
        .map_or_else(|| DatabaseLocation::File(directory.path().join("service.db")), DatabaseLocation::Server)
}

fn opened(directory: &TempDir) -> Catalog {
    Catalog::open_in(&place(directory)).unwrap()
}

fn used(usages: &[Option<KeyUsage>]) -> Vec<Option<u64>> {
    usages.iter().map(|usage| usage.map(|usage| usage.used)).collect()
}

#[test]
fn batch_is_charged_in_order_and_per_key() {
    let (one, other, no_one, revoked) = ([1; 32], [2; 32], [3; 32], [4; 32]);
    let now = time("2026-01-31T23:59:59Z");
    let directory = TempDir::new().unwrap();
    let catalog = opened(&directory);
    for (name, hash, limit) in [("one", one, 3), ("other", other, 1), ("revoked", revoked, 9)] {
        catalog.add_key(name, &hash, limit, now).unwrap();
    }
    assert!(catalog.revoke_key("revoked", now).unwrap());
    let batch = [one, other, no_one, one, other, revoked, one, one];
    let usages = catalog.charge(&batch, now).unwrap();
    assert_eq!(used(&usages), [Some(1), Some(1), None, Some(2), None, None, Some(3), None]);
    assert_eq!(used(&catalog.charge(&batch, now).unwrap()), [None; 8], "all credits are used");
    let kept: Vec<(u64, Option<Timestamp>)> = catalog.keys().unwrap().iter().map(|key| (key.used, key.last_used_at)).collect();
    assert_eq!(kept, [(3, Some(now)), (1, Some(now)), (0, None)]);

    // Usage resets at the start of the next month, also after skipped months.
    for (at, resets) in [("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"), ("2026-12-31T12:00:00Z", "2027-01-01T00:00:00Z")] {
        let usages = catalog.charge(&[one, one], time(at)).unwrap();
        assert_eq!(used(&usages), [Some(1), Some(2)], "{at}");
        assert_eq!(usages[0].unwrap().reset_at, time(resets));
    }
}

#[test]
fn key_with_same_prefix_is_rejected() {
    let now = time("2026-01-01T00:00:00Z");
    let directory = TempDir::new().unwrap();
    let catalog = opened(&directory);
    catalog.add_key("one", &[1; 32], 5, now).unwrap();
    assert!(matches!(catalog.add_key("one", &[2; 32], 5, now), Err(CatalogError::NameTaken(_))));
    let mut similar = [1; 32];
    similar[31] = 2;
    assert_eq!(used(&catalog.charge(&[similar], now).unwrap()), [None]);
    assert_eq!(catalog.key(&similar, now).unwrap(), None);
    assert_eq!(catalog.key(&[1; 32], now).unwrap().unwrap().used, 0);
}

/// Syncing a file during writes must not corrupt it or break its locks.
#[test]
fn sync_does_not_disturb_concurrent_charges() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.db");
    let now = time("2026-01-01T00:00:00Z");
    let catalog = Catalog::open(&path).unwrap();
    catalog.add_key("one", &[1; 32], 1_000, now).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..50).for_each(|_| catalog.sync().unwrap()));
        scope.spawn(|| (0..200).for_each(|_| assert!(catalog.charge(&[[1; 32]], now).unwrap()[0].is_some())));
    });
    let other = Catalog::open(&path).unwrap();
    assert_eq!(other.keys().unwrap()[0].used, 200);
    assert_eq!(used(&other.charge(&[[1; 32]], now).unwrap()), [Some(201)]);
    assert_eq!(used(&catalog.charge(&[[1; 32]], now).unwrap()), [Some(202)], "both handles still lock correctly");
    drop((catalog, other));
    // The last handle to close removes the WAL.
    Catalog::in_memory().unwrap().sync().unwrap();
    assert!(!folder.path().join("service.db-wal").exists());
}

/// Instances that share a database and charge overlapping keys use exactly the limit, not more or less.
#[test]
fn concurrent_instances_use_exactly_the_limit() {
    const EACH: usize = 60;
    let directory = TempDir::new().unwrap();
    let now = time("2026-01-01T00:00:00Z");
    let hashes: Vec<[u8; 32]> = (1..=4).map(|byte| [byte; 32]).collect();
    let first = opened(&directory);
    for (place, hash) in hashes.iter().enumerate() {
        first.add_key(&format!("key{place}"), hash, 100, now).unwrap();
    }
    let instances: Vec<Catalog> = (0..4).map(|_| opened(&directory)).collect();
    let granted: Vec<usize> = std::thread::scope(|scope| {
        let spend = |(at, catalog)| {
            let hashes = &hashes;
            move || {
                let catalog: &Catalog = catalog;
                // Each instance uses a different order.
                let batch: Vec<[u8; 32]> = (0..hashes.len() * 2).map(|step| hashes[(step * 3 + at) % hashes.len()]).collect();
                (0..EACH).map(|_| catalog.charge(&batch, now).unwrap().iter().flatten().count()).sum::<usize>()
            }
        };
        let threads: Vec<_> = instances.iter().enumerate().map(|instance| scope.spawn(spend(instance))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(granted.iter().sum::<usize>(), 400, "{granted:?}");
    assert!(first.keys().unwrap().iter().all(|key| key.used == 100), "{:?}", first.keys());
}

/// Concurrent changes are not lost, and readers see all of a change or nothing.
#[test]
fn concurrent_changes_are_serialized() {
    let directory = TempDir::new().unwrap();
    let one = opened(&directory);
    let other = opened(&directory);
    let before = one.read(|view| view.generation()).unwrap();
    let item: model::wire::TokenItem = serde_json::from_value(serde_json::json!({"id": "a\0b", "name": "\u{fdd0}"})).unwrap();
    std::thread::scope(|scope| {
        for catalog in [&one, &other] {
            let item = &item;
            scope.spawn(move || {
                for round in 0..20 {
                    let change = |change: &crate::catalog::CatalogChange<'_>| {
                        change.clear()?;
                        change.put_token("a", item, &round.to_string())?;
                        change.put_gap("a", "burn")?;
                        change.put_gap("a", "burn")
                    };
                    catalog.write::<_, CatalogError>(change).unwrap();
                    assert_eq!(catalog.read(|view| view.tokens()).unwrap().len(), 1);
                }
            });
        }
    });
    assert_eq!(one.read(|view| view.generation()).unwrap(), before + 40);
    let refused = one.write(|change| change.clear().and(Err::<(), _>(CatalogError::NameTaken("x".into()))));
    assert!(refused.is_err());
    let tokens = other.read(|view| view.tokens()).unwrap();
    assert_eq!(serde_json::to_value(tokens).unwrap(), serde_json::to_value([item]).unwrap(), "unchanged");
}

use tempfile::TempDir;

use super::*;
use crate::tests::support::server_place;
use crate::{Place, facts::SupplyFacts as _};

/// A database of its own: on the server that the environment names, else in a file.
fn place(directory: &TempDir) -> Place {
    server_place(directory.path()).map_or_else(|| Place::File(directory.path().join("service.db")), Place::Server)
}

fn opened(directory: &TempDir) -> Catalog {
    Catalog::open_in(&place(directory)).unwrap()
}

fn time(text: &str) -> Timestamp {
    model::wire::parse_timestamp(text).unwrap()
}

fn used(usages: &[Option<KeyUsage>]) -> Vec<Option<u64>> {
    usages.iter().map(|usage| usage.map(|usage| usage.used)).collect()
}

#[test]
fn a_crowd_is_counted_in_its_order_and_each_key_by_itself() {
    let (one, other, nobody, revoked) = ([1; 32], [2; 32], [3; 32], [4; 32]);
    let now = time("2026-01-31T23:59:59Z");
    let directory = TempDir::new().unwrap();
    let catalog = opened(&directory);
    for (name, hash, limit) in [("one", one, 3), ("other", other, 1), ("revoked", revoked, 9)] {
        catalog.add_key(name, &hash, limit, now).unwrap();
    }
    assert!(catalog.revoke_key("revoked", now).unwrap());
    let crowd = [one, other, nobody, one, other, revoked, one, one];
    let usages = catalog.charge(&crowd, now).unwrap();
    assert_eq!(used(&usages), [Some(1), Some(1), None, Some(2), None, None, Some(3), None]);
    assert_eq!(used(&catalog.charge(&crowd, now).unwrap()), [None; 8], "all is spent");
    let kept: Vec<(u64, Option<Timestamp>)> = catalog.keys().unwrap().iter().map(|key| (key.used, key.last_used_at)).collect();
    assert_eq!(kept, [(3, Some(now)), (1, Some(now)), (0, None)]);

    // The first instant of the next month begins anew, and so does every month that was left out.
    for (at, resets) in [("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"), ("2026-12-31T12:00:00Z", "2027-01-01T00:00:00Z")] {
        let usages = catalog.charge(&[one, one], time(at)).unwrap();
        assert_eq!(used(&usages), [Some(1), Some(2)], "{at}");
        assert_eq!(usages[0].unwrap().reset_at, time(resets));
    }
}

#[test]
fn what_begins_like_a_key_is_none() {
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

/// A file that is written to while it is brought to disk stays whole, also for whoever opens it next.
#[test]
fn bringing_counts_to_disk_disturbs_nobody_who_counts() {
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
    assert_eq!(used(&catalog.charge(&[[1; 32]], now).unwrap()), [Some(202)], "the locks of both still hold");
    drop((catalog, other));
    // The last to close leaves no log behind.
    Catalog::in_memory().unwrap().sync().unwrap();
    assert!(!folder.path().join("service.db-wal").exists());
}

/// Instances of the service that share a database, and keys of which each request names some: nobody gets more than there was, and
/// nothing is left while anybody asks.
#[test]
fn several_instances_spend_exactly_what_there_is() {
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
                // In an order of its own, many at once.
                let crowd: Vec<[u8; 32]> = (0..hashes.len() * 2).map(|step| hashes[(step * 3 + at) % hashes.len()]).collect();
                (0..EACH).map(|_| catalog.charge(&crowd, now).unwrap().iter().flatten().count()).sum::<usize>()
            }
        };
        let asking: Vec<_> = instances.iter().enumerate().map(|instance| scope.spawn(spend(instance))).collect();
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    });
    assert_eq!(granted.iter().sum::<usize>(), 400, "{granted:?}");
    assert!(first.keys().unwrap().iter().all(|key| key.used == 100), "{:?}", first.keys());
}

/// Of two changes at once none is lost, and whoever reads sees all of a change or nothing.
#[test]
fn changes_of_two_instances_wait_for_each_other() {
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
    assert_eq!(serde_json::to_value(tokens).unwrap(), serde_json::to_value([item]).unwrap(), "as it was");
}

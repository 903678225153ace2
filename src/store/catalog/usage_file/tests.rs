use std::sync::atomic::{AtomicU64, Ordering as Atomic};

use chrono::TimeDelta;
use tempfile::TempDir;

use super::*;
use crate::catalog::{Catalog, CatalogError};

const HASH: KeyHash = [1; 32];

fn now() -> Timestamp {
    testkit::time("2026-01-12T09:00:00Z")
}

fn opened(directory: &TempDir) -> Catalog {
    Catalog::open(&directory.path().join("service.db")).unwrap()
}

/// Charges one credit like a request of the service: at once, and by waiting if that is not possible.
fn charge(catalog: &Catalog, hash: KeyHash, now: Timestamp) -> Option<u64> {
    match catalog.charge_at_once(&hash, now).unwrap() {
        ChargeOutcome::Charged(usage) => Some(usage.used),
        ChargeOutcome::Exhausted => None,
        ChargeOutcome::MustWait => catalog.charge(&[hash], now).unwrap()[0].map(|usage| usage.used),
    }
}

/// Charges one credit at once. Reads the row of the key again if this test was paused for too long.
fn charge_at_once(catalog: &Catalog, now: Timestamp) -> ChargeOutcome {
    for _ in 0..100 {
        match catalog.charge_at_once(&HASH, now).unwrap() {
            ChargeOutcome::MustWait => assert!(catalog.read_row(catalog.usage.as_ref().unwrap(), &HASH).unwrap()),
            charged => return charged,
        }
    }
    ChargeOutcome::MustWait
}

fn used(catalog: &Catalog) -> u64 {
    catalog.keys().unwrap()[0].used
}

/// Returns the usage in the row, without the usage file.
fn stored(directory: &TempDir) -> i64 {
    let connection = rusqlite::Connection::open(directory.path().join("service.db")).unwrap();
    connection.query_row("SELECT used FROM api_key", [], |row| row.get(0)).unwrap()
}

#[test]
fn record_is_read_as_written_and_rejected_if_damaged() {
    let record = UsageRecord { prefix: prefix(&HASH), used: 7, reset_at: -1, last_used_at: i64::MAX, version: 3 };
    let bytes = record.encode();
    assert_eq!(UsageRecord::decode(&bytes), Some(record));
    for byte in 0..RECORD_BYTES {
        let mut damaged = bytes;
        damaged[byte] ^= 0x40;
        assert_eq!(UsageRecord::decode(&damaged), None, "byte {byte}");
    }
    assert_eq!(UsageRecord::decode(&[0; RECORD_BYTES]), None);
}

#[test]
fn charge_at_once_needs_a_row_that_was_read_recently() {
    let directory = TempDir::new().unwrap();
    let catalog = opened(&directory);
    assert_eq!(catalog.charge_at_once(&HASH, now()).unwrap(), ChargeOutcome::MustWait, "an unknown key");
    catalog.add_key("one", &HASH, 3, now()).unwrap();
    assert_eq!(catalog.charge_at_once(&HASH, now()).unwrap(), ChargeOutcome::MustWait, "not read yet");
    assert_eq!(catalog.charge(&[HASH], now()).unwrap()[0].unwrap().used, 1);
    let usage = KeyUsage { used: 2, limit: 3, reset_at: testkit::time("2026-02-01T00:00:00Z") };
    assert_eq!(charge_at_once(&catalog, now()), ChargeOutcome::Charged(usage));
    assert_eq!(catalog.charge(&[HASH, HASH], now()).unwrap().iter().flatten().count(), 1);
    assert_eq!(charge_at_once(&catalog, now()), ChargeOutcome::Exhausted);
    let next_month = now() + TimeDelta::days(30);
    assert_eq!(charge(&catalog, HASH, next_month), Some(1), "a new period");
    let other = opened(&directory);
    let _locked = other.usage.as_ref().unwrap().lock().unwrap();
    assert_eq!(catalog.charge_at_once(&HASH, next_month).unwrap(), ChargeOutcome::MustWait, "another process uses the file");
}

#[test]
fn changed_row_applies_to_the_next_charge_of_each_process() {
    let directory = TempDir::new().unwrap();
    let (one, other) = (opened(&directory), opened(&directory));
    one.add_key("one", &HASH, 3, now()).unwrap();
    assert_eq!(charge(&one, HASH, now()), Some(1));
    assert_eq!(charge(&other, HASH, now()), Some(2));
    assert!(other.set_monthly_limit("one", 2).unwrap());
    assert_eq!((charge(&one, HASH, now()), charge(&other, HASH, now())), (None, None));
    assert!(one.set_monthly_limit("one", 9).unwrap());
    assert_eq!((charge(&other, HASH, now()), charge(&one, HASH, now())), (Some(3), Some(4)));
    assert!(other.revoke_key("one", now()).unwrap());
    assert_eq!((charge(&one, HASH, now()), charge(&other, HASH, now())), (None, None));
    assert_eq!(used(&one), 4);
    assert!(!one.revoke_key("one", now()).unwrap());
}

/// After a power failure, the usage file may be older, damaged, empty, or missing.
#[test]
fn damaged_usage_file_falls_back_to_the_synced_usage() {
    type Damage = fn(&Path, &[u8]);
    let damages: [Damage; 4] = [
        |path, _| fs::remove_file(path).unwrap(),
        |path, _| File::options().write(true).open(path).unwrap().set_len(0).unwrap(),
        |path, _| fs::write(path, [0xa5; RECORD_BYTES]).unwrap(),
        |path, old| fs::write(path, old).unwrap(),
    ];
    for (at, damage) in damages.into_iter().enumerate() {
        let directory = TempDir::new().unwrap();
        let catalog = opened(&directory);
        catalog.add_key("one", &HASH, 10, now()).unwrap();
        assert_eq!(charge(&catalog, HASH, now()), Some(1));
        let path = catalog.usage.as_ref().unwrap().path.clone();
        let old = fs::read(&path).unwrap();
        (2..=5).for_each(|used| assert_eq!(charge(&catalog, HASH, now()), Some(used)));
        catalog.sync().unwrap();
        drop(catalog);
        damage(&path, &old);
        let catalog = opened(&directory);
        assert_eq!(used(&catalog), 5, "{at}");
        assert_eq!(charge(&catalog, HASH, now()), Some(6), "{at}");
        assert_eq!(used(&opened(&directory)), 6, "{at}");
    }
}

#[test]
fn usage_of_an_earlier_database_does_not_count() {
    let directory = TempDir::new().unwrap();
    let catalog = opened(&directory);
    catalog.add_key("one", &HASH, 10, now()).unwrap();
    assert_eq!((charge(&catalog, HASH, now()), charge(&catalog, HASH, now())), (Some(1), Some(2)));
    drop(catalog);
    fs::remove_file(directory.path().join("service.db")).unwrap();
    let catalog = opened(&directory);
    catalog.add_key("one", &[2; 32], 10, now()).unwrap();
    assert_eq!(used(&catalog), 0);
    assert_eq!(charge(&catalog, [2; 32], now()), Some(1));
}

/// A process that is killed does not copy its last charges. The next one that charges the key does.
#[test]
fn sync_copies_charges_of_killed_processes() {
    let directory = TempDir::new().unwrap();
    let killed = opened(&directory);
    killed.add_key("one", &HASH, 10, now()).unwrap();
    (1..=3).for_each(|used| assert_eq!(charge(&killed, HASH, now()), Some(used)));
    drop(killed);
    assert_eq!(stored(&directory), 0);
    let catalog = opened(&directory);
    assert_eq!(used(&catalog), 3);
    catalog.set_monthly_limit("one", 3).unwrap();
    assert_eq!(charge(&catalog, HASH, now()), None);
    catalog.sync().unwrap();
    assert_eq!(stored(&directory), 3);
}

/// An import in another process locks the database. Charges go on, and the copy is repeated later.
#[test]
fn locked_database_does_not_delay_charges() {
    let directory = TempDir::new().unwrap();
    let catalog = opened(&directory);
    catalog.add_key("one", &HASH, 10, now()).unwrap();
    assert_eq!(charge(&catalog, HASH, now()), Some(1));
    let importing = rusqlite::Connection::open(directory.path().join("service.db")).unwrap();
    importing.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(catalog.charge(&[HASH], now()).unwrap()[0].unwrap().used, 2);
    assert_eq!(used(&catalog), 2);
    assert!(matches!(catalog.finish(), Err(CatalogError::Busy { .. })));
    assert_eq!(stored(&directory), 0);
    importing.execute_batch("ROLLBACK").unwrap();
    catalog.finish().unwrap();
    assert_eq!(stored(&directory), 2);
}

#[test]
fn usage_file_has_the_permissions_of_the_database() {
    let directory = TempDir::new().unwrap();
    let catalog = opened(&directory);
    catalog.add_key("one", &HASH, 10, now()).unwrap();
    assert!(!directory.path().join("service.db-usage").exists(), "only charges need it");
    charge(&catalog, HASH, now()).unwrap();
    let mode = fs::metadata(directory.path().join("service.db-usage")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Several processes charge, sync, restart, and change limits in random order. A model counts along.
#[test]
fn usage_equals_a_model_after_random_steps() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory = TempDir::new().unwrap();
        let mut processes: Vec<Catalog> = (0..3).map(|_| opened(&directory)).collect();
        let hashes: [KeyHash; 3] = [[1; 32], [2; 32], [3; 32]];
        let (mut clock, mut limits, mut used) = (now(), [20_u64; 3], [0_u64; 3]);
        for (key, hash) in hashes.iter().enumerate() {
            processes[0].add_key(&format!("key{key}"), hash, limits[key], clock).unwrap();
        }
        let mut resets_at = next_month(clock);
        for step in 0..150 {
            let (key, at) = (random.usize(..3), random.usize(..3));
            let process = &processes[at];
            match random.u32(..20) {
                0 => process.sync().unwrap(),
                1 => processes[at] = opened(&directory),
                2 => {
                    limits[key] = used[key].saturating_sub(2) + random.u64(..15);
                    assert!(process.set_monthly_limit(&format!("key{key}"), limits[key]).unwrap());
                }
                3 if random.bool() => {
                    clock += TimeDelta::days(random.i64(1..20));
                    if clock >= resets_at {
                        (used, resets_at) = ([0; 3], next_month(clock));
                    }
                }
                4..8 => {
                    let batch: Vec<KeyHash> = (0..random.usize(1..9)).map(|_| hashes[random.usize(..3)]).collect();
                    for (hash, usage) in batch.iter().zip(process.charge(&batch, clock).unwrap()) {
                        let key = usize::from(hash[0]) - 1;
                        let expected = (used[key] < limits[key]).then(|| used[key] + 1);
                        assert_eq!(usage.map(|usage| usage.used), expected, "seed {seed}, step {step}");
                        used[key] = expected.unwrap_or(used[key]);
                    }
                }
                _ => {
                    let expected = (used[key] < limits[key]).then(|| used[key] + 1);
                    assert_eq!(charge(process, hashes[key], clock), expected, "seed {seed}, step {step}");
                    used[key] = expected.unwrap_or(used[key]);
                }
            }
            let listed: Vec<u64> =
                processes[random.usize(..3)].keys().unwrap().into_iter().map(|row| row.as_of(clock).used).collect();
            assert_eq!(listed, used, "seed {seed}, step {step}");
        }
    }
}

#[test]
fn concurrent_processes_charge_each_credit_once() {
    const LIMIT: u64 = 3_000;
    let directory = TempDir::new().unwrap();
    let first = opened(&directory);
    first.add_key("one", &HASH, LIMIT, now()).unwrap();
    let sum = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (directory, sum) = (&directory, &sum);
            scope.spawn(move || {
                let catalog = opened(directory);
                while let Some(used) = charge(&catalog, HASH, now()) {
                    sum.fetch_add(used, Atomic::Relaxed);
                }
            });
        }
        let reader = opened(&directory);
        let mut last = 0;
        while last < LIMIT {
            let seen = used(&reader);
            assert!(last <= seen && seen <= LIMIT, "{last}, then {seen}");
            last = seen;
            reader.sync().unwrap();
        }
    });
    assert_eq!(sum.into_inner(), LIMIT * (LIMIT + 1) / 2);
    assert_eq!(used(&first), LIMIT);
}

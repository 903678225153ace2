use super::*;

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
    let catalog = Catalog::in_memory().unwrap();
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
    let catalog = Catalog::in_memory().unwrap();
    catalog.add_key("one", &[1; 32], 5, now).unwrap();
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

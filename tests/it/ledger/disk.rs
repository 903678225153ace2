//! A disk that fills up during polls: every credit is recorded, and stored responses are not polled again.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use super::*;

/// A small temporary file system.
struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    /// Mounts a file system. `None` without the permission to mount.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        mount.is_ok_and(|status| status.success()).then_some(Self { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// Writes the ballast file until the disk is full.
    fn fill(&self) {
        let mut ballast = File::options().create(true).append(true).open(self.ballast()).expect("a file");
        for block in [1 << 16, 1] {
            let block = vec![0; block];
            while ballast.write_all(&block).is_ok() {}
        }
    }

    /// Fills the disk after truncating the database's WAL, so that SQLite cannot reuse space in it.
    fn fill_with_empty_wal(&self, database: &Path) {
        self.empty();
        let database = rusqlite::Connection::open(database).expect("opens");
        database.busy_timeout(WAIT_TIMEOUT).expect("set");
        database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, bool>(0)).expect("the WAL is truncated");
        self.fill();
    }

    fn empty(&self) {
        std::fs::remove_file(self.ballast()).expect("removed");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(self.path()).status().ok();
    }
}

#[test]
fn full_disk_during_polls_costs_no_credit_twice_and_polling_continues() {
    let Some(disk) = Disk::mount() else {
        eprintln!("SKIPPED the full disk test: only root can mount a file system");
        return;
    };
    // A schedule of twelve pages for each of twelve tokens.
    let (tokens, pages) = (12, 12);
    let folder = tempfile::tempdir_in(disk.path()).expect("a folder");
    let world = World { tokens, events: pages * 5, cap: 6_000, ..world(11) };
    let file = Database::File(folder.path().join("l.db"));
    let stage = Stage::new_in(folder, &file, world, Some(6_000));
    let kept = || (0..tokens).filter(|n| stage.schedule(&format!("t{n}")).0).count();
    let poll = [Job::Poll(Endpoint::UnlockEvents)];
    stage.run_jobs(&[Job::Poll(Endpoint::TokenList)], WAIT_TIMEOUT);
    let before = stage.source.world().requests;
    let is_over = AtomicBool::new(false);
    let failed = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                // Holding the lock stops all responses.
                let world = stage.source.world();
                if world.requests >= before + 3 * pages as u64 {
                    return disk.fill();
                }
                drop(world);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let failed = stage.try_jobs(&poll);
        is_over.store(true, Ordering::SeqCst);
        failed
    });
    assert!(failed.iter().all(|error| error.contains("full")), "{failed:?}");
    let stopped = stage.source.world().requests;
    disk.fill_with_empty_wal(&stage.config.store.path);
    let written = stage.credit();
    for _ in 0..3 {
        stage.pass(TimeDelta::hours(1));
        stage.try_jobs(&stage.jobs());
        stage.source.drain();
    }
    let counts = || {
        let world = stage.source.world();
        (world.charged_now(), world.requests)
    };
    let (charged, sent) = counts();
    assert!(charged <= written.own() + written.held(), "{charged} charged, but not all recorded in {written:#?}");
    let under_way = stage.config.source.concurrency.max(1) as u64;
    assert!(sent <= stopped + under_way, "{sent} sent, {stopped} of them before the disk was full: {failed:?}");
    let read = kept();
    assert!(read < tokens, "the disk was full before all schedules were polled");
    disk.empty();
    for _ in 0..4 {
        stage.pass(TimeDelta::hours(1));
        stage.run_jobs(&poll, WAIT_TIMEOUT);
    }
    assert_eq!(kept(), tokens);
    let again = counts().0 - charged;
    assert!(again <= ((tokens - read) * (pages + 1)) as u64, "{again} credits for {} schedules", tokens - read);
    // An aborted request may not have reached the source.
    let (credit, charged) = (stage.credit(), counts().0);
    assert!((charged..=charged + under_way).contains(&credit.own()), "{charged} charged: {credit:#?}");
    assert_eq!(credit.held(), 0);
    assert!(stage.source.world().overspent.is_empty());
}

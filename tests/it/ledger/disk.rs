//! A disk that fills while schedules are read: each credit is accounted for, and what was kept is not read again.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use super::*;

/// A small disk of its own.
struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    /// None where this user may not mount one.
    fn mounted() -> Option<Self> {
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

    /// Writes the ballast on until nothing more goes in.
    fn fill(&self) {
        let mut ballast = File::options().create(true).append(true).open(self.ballast()).expect("a file");
        for block in [1 << 16, 1] {
            let block = vec![0; block];
            while ballast.write_all(&block).is_ok() {}
        }
    }

    /// Leaves no room in the files of `database` either: its log had grown before the disk was full, and is written anew from its beginning.
    fn fill_around(&self, database: &Path) {
        self.empty();
        let database = rusqlite::Connection::open(database).expect("opens");
        database.busy_timeout(PATIENCE).expect("set");
        database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, bool>(0)).expect("its log is emptied");
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
fn a_disk_that_fills_during_a_walk_costs_no_credit_twice_and_the_walk_goes_on_where_it_stood() {
    let Some(disk) = Disk::mounted() else {
        eprintln!("LEFT OUT: a full disk (only root can mount one)");
        return;
    };
    // A schedule of twelve pages for each of twelve tokens.
    let (tokens, pages) = (12, 12);
    let folder = tempfile::tempdir_in(disk.path()).expect("a folder");
    let world = World { tokens, events: pages * 5, cap: 600, ..world(11) };
    let file = Database::File(folder.path().join("l.db"));
    let stage = Stage::set_in(folder, &file, world, Some(600));
    let kept = || (0..tokens).filter(|n| stage.schedule(&format!("t{n}")).0).count();
    let poll = [Job::Poll(Endpoint::UnlockEvents)];
    stage.fire(&[Job::Poll(Endpoint::TokenList)], PATIENCE);
    let before = stage.source.world().requests;
    let is_over = AtomicBool::new(false);
    let failed = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                // Nothing is answered while its count is looked at.
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
    disk.fill_around(&stage.config.store.path);
    let written = stage.credit();
    for _ in 0..3 {
        stage.pass(TimeDelta::hours(1));
        stage.try_jobs(&stage.jobs());
        stage.source.drain();
    }
    let world_says = || {
        let world = stage.source.world();
        (world.charged_now(), world.requests)
    };
    let (charged, sent) = world_says();
    assert!(charged <= written.own() + written.held(), "{charged} without a word of them in {written:#?}");
    let under_way = stage.config.source.concurrency.max(1) as u64;
    assert!(sent <= stopped + under_way, "{sent} sent, {stopped} of them before it could not be written: {failed:?}");
    let read = kept();
    assert!(read < tokens, "the disk filled before all was read");
    disk.empty();
    for _ in 0..4 {
        stage.pass(TimeDelta::hours(1));
        stage.fire(&poll, PATIENCE);
    }
    assert_eq!(kept(), tokens);
    let again = world_says().0 - charged;
    assert!(again <= ((tokens - read) * (pages + 1)) as u64, "{again} to read the {} that were not kept", tokens - read);
    // One that was cut off may never have reached the source.
    let (credit, charged) = (stage.credit(), world_says().0);
    assert!((charged..=charged + under_way).contains(&credit.own()), "{charged} were charged: {credit:#?}");
    assert_eq!(credit.held(), 0);
    assert!(stage.source.world().overspent.is_empty());
}

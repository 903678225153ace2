//! Pages about the machine: its disk, its clock, its loss, and upgrades.

use super::*;

/// A small file system at a path of the machine. Unmounted on drop.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it. `None` without the permission to mount.
    fn mount(path: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs"]).arg(path).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then(|| Self(path.to_owned()))
    }

    /// Writes until the disk is full.
    fn fill(&self) {
        use std::io::Write as _;
        let mut ballast = fs::File::options().create(true).append(true).open(self.0.join("ballast")).expect("a file");
        for block in [1 << 16, 1] {
            let block = vec![0; block];
            while ballast.write_all(&block).is_ok() {}
        }
    }

    fn empty(&self) {
        fs::remove_file(self.0.join("ballast")).expect("removed");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(&self.0).status().ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disk_full() {
    let mut machine = Machine::new("disk-full").await;
    let Some(disk) = SmallDisk::mount(&machine.path("/var/lib/cliffwatch")) else {
        eprintln!("NOT RUN: only root can mount a small disk");
        return;
    };
    machine.start();
    machine.stop_growth();
    disk.fill();
    // A change that does not fit into the space that the database already has.
    let many = |edit: &mut service::Edit<'_>| {
        let at = (0..4_000).map(|day| cliff(&wire(from_now(10 + day)), "Team", 1_000.0, "second"));
        edit.put_events("arbitrum", at.collect())
    };
    machine.fixture.service.edit(many).expect("edited");
    machine.play("What you see");
    machine.play("What it means");
    machine.play("What to do");
    disk.empty();
    machine.play("How you know that it is over");
    machine.shell("systemctl stop cliffwatch");
    machine.finish();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restore() {
    let mut machine = Machine::new("restore").await;
    machine.start();
    let before = machine.shell("cliffwatch alerts --state firing");
    machine.play("What you see");
    machine.play("What it means");
    // Another machine has never had a database.
    machine.shell("systemctl stop cliffwatch");
    fs::remove_dir_all(machine.path("/var/lib/cliffwatch")).expect("removed");
    machine.play("What to do");
    machine.play("How you know that it is over");
    assert_eq!(machine.shell("cliffwatch alerts --state firing"), before);
    machine.finish();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upgrade() {
    let mut machine = Machine::new("upgrade").await;
    machine.start();
    for section in ["What you see", "What it means", "What to do", "How you know that it is over"] {
        machine.play(section);
    }
    machine.finish();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_clock() {
    let library = Command::new("faketime").args(["-f", "+0", "printenv", "LD_PRELOAD"]).output();
    let Ok(library) = library else {
        let is_required = std::env::var_os("CLIFFWATCH_TEST_EXTERNAL").is_some_and(|value| !value.is_empty() && value != "0");
        assert!(!is_required, "CLIFFWATCH_TEST_EXTERNAL is set, but faketime is not installed");
        eprintln!("NOT RUN: faketime is not installed (Debian: apt-get install faketime)");
        return;
    };
    let library = String::from_utf8(library.stdout).expect("a path");
    let mut machine = Machine::new("wrong-clock").await;
    machine.write("/launch", &format!("env LD_PRELOAD={} FAKETIME=+1h", library.trim()));
    machine.start();
    machine.play("What you see");
    machine.play("What it means");
    machine.play("What to do");
    // A test cannot set the clock of its machine, so the daemon restarts with the right time.
    machine.write("/launch", "");
    machine.shell("systemctl restart cliffwatch");
    machine.play("How you know that it is over");
    machine.finish();
}

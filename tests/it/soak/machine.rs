//! The machine of the daemon: a process that dies, a disk that fills up, and a clock that is set wrong.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use cliffwatch::store::failpoint;

/// The library that overrides the clock of a process with the contents of a file.
pub const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
/// The mount option for the size of the database's disk.
const DISK_SIZE: &str = "size=96m";

pub struct Machine {
    pub folder: tempfile::TempDir,
    child: Option<Child>,
    /// Whether the database has a separate disk that can be filled.
    has_disk: bool,
    pub starts: usize,
    /// The number of ends without a clean stop, after which messages may repeat.
    pub deaths: usize,
}

impl Machine {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = folder.path().join("disk");
        std::fs::create_dir(&disk).expect("a folder");
        std::fs::create_dir(folder.path().join("rules")).expect("a folder");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", DISK_SIZE, "tmpfs"]).arg(&disk).stderr(Stdio::null()).status();
        let machine = Self { folder, child: None, has_disk: mounted.is_ok_and(|status| status.success()), starts: 0, deaths: 0 };
        machine.set_clock("+0");
        machine
    }

    /// Copies log and database to a folder for the analysis of a failure.
    pub fn save(&self) -> PathBuf {
        let saved = std::env::temp_dir().join("cliffwatch-soak");
        std::fs::create_dir_all(&saved).ok();
        for name in ["log", "disk/soak.db", "disk/soak.db-wal"] {
            std::fs::copy(self.path(name), saved.join(name.replace("disk/", ""))).ok();
        }
        saved
    }

    /// The faults that this machine cannot simulate.
    pub fn missing_faults(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if !self.has_disk {
            missing.push("a full disk (only root can mount one)");
        }
        if !Path::new(FAKETIME).exists() {
            missing.push("a clock that is set (Debian: apt-get install faketime)");
        }
        missing
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        // Replace the file atomically, like an editor.
        let beside = self.path("beside");
        std::fs::write(&beside, text).expect("written");
        std::fs::rename(beside, self.path(name)).expect("renamed");
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cliffwatch"));
        command.args(["--config", "cliffwatch.toml", "--color", "never"]).args(arguments).current_dir(self.folder.path());
        command.env_remove(failpoint::VARIABLE).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Starts the daemon, which crashes at the failpoint `crash_at` if one is given.
    pub fn start(&mut self, crash_at: Option<&str>) {
        self.starts += 1;
        let log: File = OpenOptions::new().create(true).append(true).open(self.path("log")).expect("a log");
        let mut command = self.command(&["run"]);
        command.stderr(log);
        if let Some(point) = crash_at {
            command.env(failpoint::VARIABLE, point);
        }
        if Path::new(FAKETIME).exists() {
            command.env("LD_PRELOAD", FAKETIME).env("FAKETIME_TIMESTAMP_FILE", self.path("clock"));
            // Override only the wall clock, not the monotonic clock and not file times.
            command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("NO_FAKE_STAT", "1");
        }
        self.child = Some(command.spawn().expect("starts"));
    }

    /// Returns whether the process runs, and counts it if it died.
    pub fn check_running(&mut self) -> bool {
        let Some(child) = &mut self.child else { return false };
        if child.try_wait().expect("waits").is_none() {
            return true;
        }
        self.child = None;
        self.deaths += 1;
        false
    }

    pub fn signal(&self, name: &str) {
        if let Some(child) = &self.child {
            Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().expect("kill runs");
        }
    }

    /// Sends a signal and waits for the exit.
    pub async fn end(&mut self, name: &str) {
        self.signal(name);
        if let Some(mut child) = self.child.take() {
            let ended = tokio::task::spawn_blocking(move || child.wait().expect("waits")).await.expect("waits");
            // After a clean stop, nothing is in flight. A failed one, such as on a full disk, has a nonzero exit code.
            self.deaths += usize::from(name == "KILL" || !ended.success());
        }
    }

    /// Shifts the wall clock, for example by `+8h` or `-40d`.
    pub fn set_clock(&self, by: &str) {
        self.write("clock", by);
    }

    pub fn fill_disk(&self) {
        if !self.has_disk {
            return;
        }
        let mut ballast = File::create(self.path("disk/ballast")).expect("a file");
        let block = vec![0; 1 << 16];
        while ballast.write_all(&block).is_ok() {}
    }

    pub fn empty_disk(&self) {
        std::fs::remove_file(self.path("disk/ballast")).ok();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().ok();
            child.wait().ok();
        }
        if self.has_disk {
            Command::new("umount").arg("-l").arg(self.path("disk")).status().ok();
        }
    }
}

//! The machine that the daemon runs on: a process that dies, a disk that fills, a clock that is set wrong.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use cliffwatch::store::failpoint;

/// Overrides the clock of a process by a file that may change while it runs.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
/// Of the disk that the database lies on.
const DISK: &str = "size=96m";

pub struct Machine {
    pub folder: tempfile::TempDir,
    child: Option<Child>,
    /// Whether the disk is one of its own, which can be filled.
    has_disk: bool,
    pub starts: usize,
    /// Starts after which it ended by no word of ours to stop: what was under way may come again.
    pub deaths: usize,
}

impl Machine {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = folder.path().join("disk");
        std::fs::create_dir(&disk).expect("a folder");
        std::fs::create_dir(folder.path().join("rules")).expect("a folder");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", DISK, "tmpfs"]).arg(&disk).stderr(Stdio::null()).status();
        let machine = Self { folder, child: None, has_disk: mounted.is_ok_and(|status| status.success()), starts: 0, deaths: 0 };
        machine.set_clock("+0");
        machine
    }

    /// Keeps log and database for whoever looks into a failure.
    pub fn keep(&self) -> PathBuf {
        let kept = std::env::temp_dir().join("cliffwatch-soak");
        std::fs::create_dir_all(&kept).ok();
        for name in ["log", "disk/soak.db", "disk/soak.db-wal"] {
            std::fs::copy(self.path(name), kept.join(name.replace("disk/", ""))).ok();
        }
        kept
    }

    /// What this machine cannot be made to suffer.
    pub fn lacks(&self) -> Vec<&'static str> {
        let mut lacks = Vec::new();
        if !self.has_disk {
            lacks.push("a full disk (only root can mount one)");
        }
        if !Path::new(FAKETIME).exists() {
            lacks.push("a clock that is set (Debian: apt-get install faketime)");
        }
        lacks
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        // As an editor saves: whole, or not at all.
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

    /// Starts the daemon; with a point, it dies there.
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
            // The wall clock alone: the time since boot cannot be set, and files keep their times.
            command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("NO_FAKE_STAT", "1");
        }
        self.child = Some(command.spawn().expect("starts"));
    }

    /// Whether it runs; a process that died by itself is counted.
    pub fn runs(&mut self) -> bool {
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

    /// Ends it by a signal and waits until it is gone.
    pub async fn end(&mut self, name: &str) {
        self.signal(name);
        if let Some(mut child) = self.child.take() {
            let ended = tokio::task::spawn_blocking(move || child.wait().expect("waits")).await.expect("waits");
            // Kindly ended, it leaves nothing under way; one that could not (a full disk) says so.
            self.deaths += usize::from(name == "KILL" || !ended.success());
        }
    }

    /// Sets the wall clock off by so much, such as `+8h`, `-40d`.
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

//! One of two machines with an instance. Where the system permits it, the machine has its own name, machine id, boot id, uptime, wall
//! clock, and address of the source.

use std::{
    fs::OpenOptions,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::it::{
    soak::machine::FAKETIME,
    standby::machines::{PROGRAM, Proxy},
};

/// Starts the program on a machine of its own: arguments are the folder, the name, and the program.
const START: &str = r#"
hostname "$2"
mount --bind "$1/machine-id" /etc/machine-id
mount --bind "$1/boot-id" /proc/sys/kernel/random/boot_id
mount --bind "$1/hosts" /etc/hosts
echo $$ >"$1/pid.new" && mv "$1/pid.new" "$1/pid"
[ -z "$4" ] || export LD_PRELOAD="$4"
exec "$3" --config cliffwatch.toml --color never run
"#;

/// The time limit until a new process has written its process id.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The time limit of an exit.
const END_TIMEOUT: Duration = Duration::from_secs(60);

pub struct Host {
    pub name: &'static str,
    folder: PathBuf,
    /// The way to the database.
    pub proxy: Proxy,
    child: Child,
    pid: u32,
    /// The seconds that the machine has been up longer than this one.
    uptime: u64,
    /// The length of the log when the process started.
    log_begin: usize,
    /// The number of ends without a clean stop, after which messages may repeat.
    pub deaths: usize,
}

/// Returns whether the machines can be separated.
pub fn can_separate() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--uts", "--mount", "--time", "--boottime", "1000", "--fork", "sh", "-c"]);
    command
        .arg("hostname x && mount --bind /etc/hosts /etc/machine-id && mount --bind /dev/null /proc/sys/kernel/random/boot_id");
    command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

pub fn can_set_clock() -> bool {
    Path::new(FAKETIME).exists()
}

impl Host {
    /// Starts the instance. `address` is the loopback address of the source for this machine.
    pub async fn start(name: &'static str, folder: PathBuf, proxy: Proxy, address: &str, uptime: u64) -> Self {
        std::fs::write(folder.join("hosts"), format!("127.0.0.1 localhost\n{address} source.localhost\n")).expect("written");
        std::fs::write(folder.join("machine-id"), format!("{:032x}\n", fastrand::u128(1..))).expect("written");
        std::fs::write(folder.join("clock"), "+0").expect("written");
        let child = Command::new("true").spawn().expect("starts");
        let mut host = Self { name, folder, proxy, child, pid: 0, uptime, log_begin: 0, deaths: 0 };
        host.reboot(uptime, true);
        host.spawn().await;
        host
    }

    /// Starts the next process in another boot. Some systems hide the id of the boot.
    pub fn reboot(&mut self, uptime: u64, shows_boot: bool) {
        self.uptime = uptime;
        let id = format!("{:032x}", fastrand::u128(1..));
        let id = format!("{}-{}-{}-{}-{}\n", &id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]);
        self.write("boot-id", if shows_boot { &id } else { "" });
    }

    /// Replaces a file of the instance, like an editor.
    pub fn write(&self, name: &str, text: &str) {
        let beside = self.folder.join("beside");
        std::fs::write(&beside, text).expect("written");
        std::fs::rename(beside, self.folder.join(name)).expect("renamed");
    }

    /// Shifts the wall clock, for example by `+240` seconds or `+12d`.
    pub fn set_clock(&self, by: &str) {
        self.write("clock", by);
    }

    async fn spawn(&mut self) {
        let log = OpenOptions::new().create(true).append(true).open(self.folder.join("log")).expect("a log");
        self.log_begin = self.log().len();
        let pid_file = self.folder.join("pid");
        std::fs::remove_file(&pid_file).ok();
        let program = self.folder.with_file_name(PROGRAM);
        let mut command = Command::new("unshare");
        let uptime = self.uptime.to_string();
        command.args([
            "--uts",
            "--mount",
            "--time",
            "--boottime",
            &uptime,
            "--fork",
            "--kill-child=SIGKILL",
            "sh",
            "-ec",
            START,
            "sh",
        ]);
        command.arg(&self.folder).arg(self.name).arg(program).arg(if can_set_clock() { FAKETIME } else { "" });
        // Override only the wall clock, not the monotonic clock and not file times.
        command.env("FAKETIME_TIMESTAMP_FILE", self.folder.join("clock")).env("FAKETIME_CACHE_DURATION", "1");
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("NO_FAKE_STAT", "1");
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = command.spawn().expect("starts");
        let begun = Instant::now();
        self.pid = loop {
            if let Some(pid) = std::fs::read_to_string(&pid_file).ok().and_then(|text| text.trim().parse().ok()) {
                break pid;
            }
            assert!(begun.elapsed() < START_TIMEOUT, "{} does not start: {}", self.name, self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn signal(&self, name: &str) {
        Command::new("kill").args([&format!("-{name}"), &self.pid.to_string()]).status().expect("kill runs");
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("waits").is_none()
    }

    /// Waits for the exit.
    pub async fn wait_for_end(&mut self) {
        let deadline = Instant::now() + END_TIMEOUT;
        while self.is_running() {
            assert!(Instant::now() < deadline, "the instance does not end: {}", self.log_end(40));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits for the exit and starts the instance again.
    pub async fn restart(&mut self) {
        self.wait_for_end().await;
        self.spawn().await;
    }

    /// The number of times that it logged becoming a standby.
    pub fn times_as_standby(&self) -> usize {
        self.log().matches("standby: ").count()
    }

    /// Returns whether it waits as a standby, by the last line of its log about that.
    pub fn is_standby(&mut self) -> bool {
        let log = self.log();
        let last = |text: &str| log.rfind(text);
        let changes = ["is now active", "restarting", " started"];
        let is_last = last("standby: ").is_some_and(|at| changes.iter().all(|text| last(text) < Some(at)));
        self.is_running() && self.starts_logged_standby(&log) && is_last
    }

    /// Returns whether the current process has logged that it is a standby.
    fn starts_logged_standby(&self, log: &str) -> bool {
        log.get(self.log_begin..).is_some_and(|log| log.contains("standby: "))
    }

    /// The number of times that it gave up its work.
    pub fn times_stepped_down(&self) -> usize {
        self.log().matches("the lease is lost").count()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    pub fn log_end(&self, lines: usize) -> String {
        let log = self.log();
        let mut end: Vec<_> = log.lines().rev().take(lines).collect();
        end.reverse();
        format!("== {}\n{}", self.name, end.join("\n"))
    }

    pub fn save(&self, to: &Path) {
        for name in ["log", "cliffwatch.toml"] {
            std::fs::copy(self.folder.join(name), to.join(format!("{}.{name}", self.name))).ok();
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

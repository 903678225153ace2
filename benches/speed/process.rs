//! Runs the real binary with the settings of the systemd unit and measures its memory and processor time.
//!
//! The peak of each phase comes from the kernel's high-water mark, reset at the start of the phase with `clear_refs`, so no peak is missed.
//! The split into anonymous and file memory is sampled every [`SAMPLE_INTERVAL`].

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

use crate::measure::line;

/// The interval between memory samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// The kernel's clock ticks per second.
const TICKS_PER_SEC: u64 = 100;
/// The time limit of each step.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(600);
/// The allocator settings of the unit.
pub const ALLOCATOR: [(&str, &str); 3] =
    [("MALLOC_ARENA_MAX", "1"), ("MALLOC_MMAP_THRESHOLD_", "65536"), ("MALLOC_TRIM_THRESHOLD_", "65536")];

/// The memory of a process in KiB.
#[derive(Clone, Copy, Default)]
pub struct Memory {
    pub resident: u64,
    /// Private memory: the heap and all stacks.
    pub anonymous: u64,
    /// Mapped program file and libraries.
    pub file: u64,
    /// The peak of `resident` since the start of the phase.
    pub peak: u64,
}

impl Memory {
    /// Reads the memory of a process. `None` if it has exited.
    fn of(id: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().ok()
        };
        Some(Self { resident: kib("VmRSS")?, anonymous: kib("RssAnon")?, file: kib("RssFile")?, peak: kib("VmHWM")? })
    }

    fn most(self, other: Self) -> Self {
        Self {
            resident: self.resident.max(other.resident),
            anonymous: self.anonymous.max(other.anonymous),
            file: self.file.max(other.file),
            peak: self.peak.max(other.peak),
        }
    }
}

fn mib(kib: u64) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}

/// The processor time of all threads of a process so far.
pub fn processor_time(id: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // Skip the process name in parentheses. The 12th and 13th fields after it are user and system time.
    let times = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    Duration::from_millis(times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 1000 / TICKS_PER_SEC)
}

/// Samples the memory of a process until dropped.
pub struct Watch {
    id: u32,
    most: Arc<Mutex<Memory>>,
    is_over: Arc<AtomicBool>,
    sampler: Option<JoinHandle<()>>,
    phase: &'static str,
    began: Instant,
    processor_time: Duration,
}

impl Watch {
    /// Starts with a phase of this name.
    pub fn start(id: u32, phase: &'static str) -> Self {
        let (most, is_over) = (Arc::new(Mutex::new(Memory::default())), Arc::new(AtomicBool::new(false)));
        let sampler = {
            let (most, is_over) = (most.clone(), is_over.clone());
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed)
                    && let Some(now) = Memory::of(id)
                {
                    let mut most = most.lock().unwrap_or_else(PoisonError::into_inner);
                    *most = most.most(now);
                    drop(most);
                    std::thread::sleep(SAMPLE_INTERVAL);
                }
            })
        };
        Self { id, most, is_over, sampler: Some(sampler), phase, began: Instant::now(), processor_time: processor_time(id) }
    }

    /// Ends the current phase and starts another. Prints and returns the peak of the ended phase.
    pub fn next(&mut self, phase: &'static str) -> Memory {
        let mut most = self.most.lock().unwrap_or_else(PoisonError::into_inner);
        // Use the kernel's mark, or the samples if the process has exited.
        let now = Memory::of(self.id).unwrap_or(Memory { peak: most.resident, ..Memory::default() });
        let done = Memory { peak: now.peak, ..most.most(now) };
        *most = Memory::default();
        // If this fails, the mark covers all phases so far, which is an upper bound.
        let _ = fs::write(format!("/proc/{}/clear_refs", self.id), "5");
        drop(most);
        let spent = processor_time(self.id);
        line(
            &format!("{}: peak", self.phase),
            &mib(done.peak),
            &format!(
                "{} at the end; at most {} anonymous, {} file; {:.1} s, {:.2} s of processor time",
                mib(now.resident),
                mib(done.anonymous),
                mib(done.file),
                self.began.elapsed().as_secs_f64(),
                spent.saturating_sub(self.processor_time).as_secs_f64(),
            ),
        );
        (self.phase, self.began, self.processor_time) = (phase, Instant::now(), spent);
        done
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(sampler) = self.sampler.take() {
            // The sampling thread does not panic.
            let _ = sampler.join();
        }
    }
}

/// A command for the binary.
pub fn binary() -> Command {
    let mut command =
        Command::new(std::env::var_os("CLIFFWATCH_BENCH_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_cliffwatch").into()));
    // The environment overrides the settings, to allow experiments.
    command.envs(ALLOCATOR.map(|(name, set)| (name, std::env::var(name).unwrap_or_else(|_| set.into()))));
    command
}

pub struct Daemon {
    child: Child,
    /// The time from exec to READY.
    pub ready: Duration,
    pub watch: Watch,
    lines: mpsc::Receiver<String>,
}

impl Daemon {
    /// Starts the daemon and waits for READY, like systemd.
    pub fn start(config: &Path, folder: &Path) -> anyhow::Result<Self> {
        Self::start_within(config, folder, Duration::from_secs(15))
    }

    /// Like [`Self::start`], with another time limit.
    pub fn start_within(config: &Path, folder: &Path, within: Duration) -> anyhow::Result<Self> {
        let address = folder.join("notify");
        fs::remove_file(&address).ok();
        let socket = UnixDatagram::bind(&address)?;
        socket.set_read_timeout(Some(within))?;
        let began = Instant::now();
        let mut child = binary()
            .args(["run", "--config"])
            .arg(config)
            .env("NOTIFY_SOCKET", &address)
            .env("RUST_LOG", "cliffwatch=debug")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let watch = Watch::start(child.id(), "until READY");
        let stderr = child.stderr.take().context("no stderr")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut daemon = Self { child, ready: Duration::ZERO, watch, lines };
        let mut message = [0; 4096];
        loop {
            let length = socket
                .recv(&mut message)
                .with_context(|| format!("not ready in time: {:?}", daemon.lines.try_iter().collect::<Vec<_>>()))?;
            if String::from_utf8_lossy(message.get(..length).unwrap_or_default()).lines().any(|line| line == "READY=1") {
                daemon.ready = began.elapsed();
                return Ok(daemon);
            }
        }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a log line that contains this text.
    pub fn wait_for(&mut self, text: &str) -> anyhow::Result<String> {
        self.wait_until(text, |line| line.contains(text))
    }

    /// Waits for a log line that matches. `what` describes it in the error.
    pub fn wait_until(&mut self, what: &str, is_match: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let line = self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
                .with_context(|| format!("no {what:?} in the log"))?;
            if is_match(&line) {
                return Ok(line);
            }
        }
    }

    pub fn signal(&self, signal: rustix::process::Signal) -> anyhow::Result<()> {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).context("the process id")?;
        Ok(rustix::process::kill_process(id, signal)?)
    }

    /// Sends SIGTERM and waits for the exit.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        self.signal(rustix::process::Signal::TERM)?;
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "the daemon does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Usually stopped already, unless something failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

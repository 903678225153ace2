//! The real binary, as the unit in `systemd/` runs it, and what it takes of memory and processor all the time.
//!
//! A phase has a highest mark of its own: the kernel keeps it, and forgets it where a phase begins (`clear_refs`), so that no peak falls
//! between two looks. What of it is ours and what the program file is by looks, one every [`LOOK`].

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

/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How often the kernel counts processor time, a second.
const TICKS: u64 = 100;
/// Longer than this nothing may take.
pub const PATIENCE: Duration = Duration::from_secs(600);
/// The allocator, as the unit sets it.
const ALLOCATOR: [(&str, &str); 3] =
    [("MALLOC_ARENA_MAX", "1"), ("MALLOC_MMAP_THRESHOLD_", "65536"), ("MALLOC_TRIM_THRESHOLD_", "65536")];

/// What a process took of memory, KiB.
#[derive(Clone, Copy, Default)]
pub struct Memory {
    pub resident: u64,
    /// Our own: heap and stacks.
    pub anonymous: u64,
    /// The program file and its libraries.
    pub file: u64,
    /// The highest of `resident` since the phase began.
    pub highest: u64,
}

impl Memory {
    /// Of a process; none where it is gone.
    fn of(id: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().ok()
        };
        Some(Self { resident: kib("VmRSS")?, anonymous: kib("RssAnon")?, file: kib("RssFile")?, highest: kib("VmHWM")? })
    }

    fn most(self, other: Self) -> Self {
        Self {
            resident: self.resident.max(other.resident),
            anonymous: self.anonymous.max(other.anonymous),
            file: self.file.max(other.file),
            highest: self.highest.max(other.highest),
        }
    }
}

/// KiB as text.
fn mib(kib: u64) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}

/// Processor time of a process so far, of all its threads.
fn processor(id: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The name in brackets may hold anything; after it come the state, and of the numbers the 12th and 13th.
    let times = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    Duration::from_millis(times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 1000 / TICKS)
}

/// Looks at the memory of a process until it is dropped.
pub struct Watch {
    id: u32,
    most: Arc<Mutex<Memory>>,
    is_over: Arc<AtomicBool>,
    looking: Option<JoinHandle<()>>,
    phase: &'static str,
    began: Instant,
    processor: Duration,
}

impl Watch {
    /// Begins with a phase of this name.
    pub fn start(id: u32, phase: &'static str) -> Self {
        let (most, is_over) = (Arc::new(Mutex::new(Memory::default())), Arc::new(AtomicBool::new(false)));
        let looking = {
            let (most, is_over) = (most.clone(), is_over.clone());
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed)
                    && let Some(now) = Memory::of(id)
                {
                    let mut most = most.lock().unwrap_or_else(PoisonError::into_inner);
                    *most = most.most(now);
                    drop(most);
                    std::thread::sleep(LOOK);
                }
            })
        };
        Self { id, most, is_over, looking: Some(looking), phase, began: Instant::now(), processor: processor(id) }
    }

    /// What the phase that ends now took at most; another begins.
    pub fn next(&mut self, phase: &'static str) -> Memory {
        let mut most = self.most.lock().unwrap_or_else(PoisonError::into_inner);
        // The mark of the kernel is the phase's own, whatever a look saw of the one before; of a process that has ended there is the look.
        let now = Memory::of(self.id).unwrap_or(Memory { highest: most.resident, ..Memory::default() });
        let done = Memory { highest: now.highest, ..most.most(now) };
        *most = Memory::default();
        // Where this is refused, the mark is that of all phases so far, which is no less.
        let _ = fs::write(format!("/proc/{}/clear_refs", self.id), "5");
        drop(most);
        let spent = processor(self.id);
        line(
            &format!("{}: peak", self.phase),
            &mib(done.highest),
            &format!(
                "{} at its end; at most {} our own, {} of the file; {:.1} s, {:.2} s of processor",
                mib(now.resident),
                mib(done.anonymous),
                mib(done.file),
                self.began.elapsed().as_secs_f64(),
                spent.saturating_sub(self.processor).as_secs_f64(),
            ),
        );
        (self.phase, self.began, self.processor) = (phase, Instant::now(), spent);
        done
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(looking) = self.looking.take() {
            // It looks and sleeps; there is nothing in it that fails.
            let _ = looking.join();
        }
    }
}

/// The binary, to be given a command.
pub fn binary() -> Command {
    let mut command =
        Command::new(std::env::var_os("CLIFFWATCH_BENCH_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_cliffwatch").into()));
    // What is set outside wins: another allocator's settings can be tried.
    command.envs(ALLOCATOR.map(|(name, set)| (name, std::env::var(name).unwrap_or_else(|_| set.into()))));
    command
}

/// The daemon, running.
pub struct Daemon {
    child: Child,
    /// From exec to READY.
    pub ready: Duration,
    pub watch: Watch,
    lines: mpsc::Receiver<String>,
}

impl Daemon {
    /// Starts it and waits until it says that it is ready, as systemd would.
    pub fn start(config: &Path, folder: &Path) -> anyhow::Result<Self> {
        Self::start_within(config, folder, Duration::from_secs(15))
    }

    /// The same, where a start takes its time.
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
        let stderr = child.stderr.take().context("its log")?;
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
                .with_context(|| format!("it is not ready: {:?}", daemon.lines.try_iter().collect::<Vec<_>>()))?;
            if String::from_utf8_lossy(message.get(..length).unwrap_or_default()).lines().any(|line| line == "READY=1") {
                daemon.ready = began.elapsed();
                return Ok(daemon);
            }
        }
    }

    /// Waits for a line of the log with this text in it.
    pub fn wait_for(&mut self, text: &str) -> anyhow::Result<String> {
        self.wait_until(text, |line| line.contains(text))
    }

    /// Waits for a line of the log for which this holds; `what` is told where none comes.
    pub fn wait_until(&mut self, what: &str, is_it: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let line = self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
                .with_context(|| format!("no {what:?} in the log"))?;
            if is_it(&line) {
                return Ok(line);
            }
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) -> anyhow::Result<()> {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).context("its number")?;
        Ok(rustix::process::kill_process(id, signal)?)
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        self.signal(rustix::process::Signal::TERM)?;
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "it does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Stopped in good order long ago, unless something failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Runs a program with input, output, and a deadline, and kills all its children at the end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::MAX_OUTPUT_BYTES;

/// The time between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// The maximum wait for a killed process, which may hang in the kernel.
const KILL_GRACE: Duration = Duration::from_secs(2);

/// The time to read remaining output after the program exited. A child that left the process group could hold the pipes open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

// A program file that is open for writing cannot be executed ("text file busy").
const BUSY_ATTEMPTS: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramEnd {
    Exited(i32),
    Signalled(i32),
    TimedOut,
}

#[derive(Debug)]
pub(super) struct ProgramRun {
    pub ended: ProgramEnd,
    pub stdout: Tail,
    pub stderr: Tail,
}

/// The last bytes of an output.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    fn push(&mut self, more: &[u8]) {
        self.bytes.extend_from_slice(more);
        let excess = self.bytes.len().saturating_sub(MAX_OUTPUT_BYTES);
        if excess > 0 {
            self.bytes.drain(..excess);
            self.is_cut = true;
        }
    }

    /// Returns the text, with `…` in place of what was dropped.
    pub fn text(&self) -> String {
        let begin = match self.is_cut {
            // The rest of a character that was cut in two.
            true => self.bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count(),
            false => 0,
        };
        let text = String::from_utf8_lossy(self.bytes.get(begin..).unwrap_or_default());
        if self.is_cut { format!("…{text}") } else { text.into_owned() }
    }
}

/// The process group of a program. `None` after its leader was reaped, because the system may reuse the number.
#[derive(Clone, Debug)]
struct ProcessGroup(Arc<Mutex<Option<Pid>>>);

impl ProcessGroup {
    fn signal(&self, signal: Signal) {
        if let Some(leader) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // Fails if no process of the group is left.
            let _gone = kill_process_group(leader, signal);
        }
    }

    /// Waits for the leader, kills the rest of the group, then reaps the leader.
    fn reap(&self, mut child: Child) -> io::Result<ExitStatus> {
        let leader = Pid::from_child(&child);
        while let Err(error) = waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            if error != rustix::io::Errno::INTR {
                break;
            }
        }
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _gone = kill_process_group(leader, Signal::KILL);
        *open = None;
        child.wait()
    }
}

/// Kills the group when the attempt is dropped, as when the daemon stops.
struct KillOnDrop(ProcessGroup);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.signal(Signal::KILL);
    }
}

/// Runs `command`, which must have pipes and lead its own process group, until it exits or `deadline` passes.
///
/// # Errors
///
/// Fails if the command does not start.
pub(super) async fn run(mut command: Command, input: Vec<u8>, deadline: Instant) -> io::Result<ProgramRun> {
    let mut child = start(&mut command).await?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let group = ProcessGroup(Arc::new(Mutex::new(Some(Pid::from_child(&child)))));
    let _kill_on_drop = KillOnDrop(group.clone());
    let own_group = group.clone();
    let waiter = tokio::task::spawn_blocking(move || own_group.reap(child));
    let (exited, has_exited) = oneshot::channel();
    let (mut out, mut err) = (Tail::default(), Tail::default());
    let pipes = async {
        let transfers = async {
            tokio::join!(
                write_input(stdin.map(OwnedFd::from), input),
                read_output(stdout.map(OwnedFd::from), &mut out),
                read_output(stderr.map(OwnedFd::from), &mut err)
            )
        };
        let drained = async {
            let _exited = has_exited.await;
            sleep(DRAIN_TIMEOUT).await;
        };
        tokio::select! { _ = transfers => {}, () = drained => {} }
    };
    let exit = async {
        let ended = wait_for_exit(waiter, &group, deadline).await;
        let _pipes_closed = exited.send(());
        ended
    };
    let (ended, ()) = tokio::join!(exit, pipes);
    Ok(ProgramRun { ended: ended?, stdout: out, stderr: err })
}

/// Starts the command, and retries for a moment while the file is being written.
async fn start(command: &mut Command) -> io::Result<Child> {
    for _ in 0..BUSY_ATTEMPTS {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => sleep(BUSY_PAUSE).await,
            other => return other,
        }
    }
    command.spawn()
}

/// Waits until the program exits, and kills it after the deadline.
async fn wait_for_exit(
    mut waiter: JoinHandle<io::Result<ExitStatus>>,
    group: &ProcessGroup,
    deadline: Instant,
) -> io::Result<ProgramEnd> {
    if let Ok(joined) = timeout_at(deadline, &mut waiter).await {
        let status = joined.map_err(io::Error::other)??;
        // `waitid` reports neither stopped nor continued processes, so a process without a code was signalled.
        let signal = ProgramEnd::Signalled(status.signal().unwrap_or_default());
        return Ok(status.code().map_or(signal, ProgramEnd::Exited));
    }
    group.signal(Signal::TERM);
    if timeout(TERM_GRACE, &mut waiter).await.is_err() {
        group.signal(Signal::KILL);
        // If the process hangs in the kernel, the waiting thread reaps it later.
        let _elapsed = timeout(KILL_GRACE, &mut waiter).await;
    }
    Ok(ProgramEnd::TimedOut)
}

/// Writes the message. Ignores write errors: a program may exit without reading all of it, and its exit status decides.
async fn write_input(pipe: Option<OwnedFd>, input: Vec<u8>) {
    if let Some(Ok(mut pipe)) = pipe.map(pipe::Sender::from_owned_fd) {
        let _write_error = pipe.write_all(&input).await;
    }
}

/// Reads an output completely, so that the program never blocks on a full pipe.
async fn read_output(pipe: Option<OwnedFd>, tail: &mut Tail) {
    let Some(Ok(mut pipe)) = pipe.map(pipe::Receiver::from_owned_fd) else { return };
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut bytes).await {
        tail.push(bytes.get(..count).unwrap_or_default());
    }
}

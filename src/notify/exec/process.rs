//! One run of a program: fed, heard, and ended with everything that it started.

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

/// Between the word to end (SIGTERM) and the end (SIGKILL).
const TERM_GRACE: Duration = Duration::from_secs(2);

/// Longest wait for a process that was killed: one that hangs in the kernel is left to it.
const KILL_GRACE: Duration = Duration::from_secs(2);

/// How long the outputs of a program that has ended are read on: whoever left its group may hold them open for ever.
const DRAIN: Duration = Duration::from_millis(500);

/// How often, and how long apart, a file that somebody writes to is tried again.
const BUSY_TRIES: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunEnd {
    Exited(i32),
    Signalled(i32),
    /// By us.
    TimedOut,
}

/// A run that has ended, with what it said.
#[derive(Debug)]
pub(super) struct Run {
    pub ended: RunEnd,
    pub stdout: Tail,
    pub stderr: Tail,
}

/// The end of an output.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    fn push(&mut self, more: &[u8]) {
        self.bytes.extend_from_slice(more);
        let over = self.bytes.len().saturating_sub(MAX_OUTPUT_BYTES);
        if over > 0 {
            self.bytes.drain(..over);
            self.is_cut = true;
        }
    }

    /// As text; `…` stands for what came before.
    pub fn text(&self) -> String {
        let begin = match self.is_cut {
            // A character that the cut went through.
            true => self.bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count(),
            false => 0,
        };
        let text = String::from_utf8_lossy(self.bytes.get(begin..).unwrap_or_default());
        if self.is_cut { format!("…{text}") } else { text.into_owned() }
    }
}

/// The process group of a program. It can be signalled until its leader is reaped; after that its number may be another's.
#[derive(Clone, Debug)]
struct ProcessGroup(Arc<Mutex<Option<Pid>>>);

impl ProcessGroup {
    fn signal(&self, signal: Signal) {
        if let Some(leader) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // Err: nobody of it is left.
            let _gone = kill_process_group(leader, signal);
        }
    }

    /// Waits for the leader, ends whatever is left of the group, then reaps the leader.
    fn see_to_its_end(&self, mut child: Child) -> io::Result<ExitStatus> {
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

/// Ends the group where the attempt itself is given up, as when the daemon stops.
struct EndWithUs(ProcessGroup);

impl Drop for EndWithUs {
    fn drop(&mut self) {
        self.0.signal(Signal::KILL);
    }
}

/// Runs `command`, which has pipes and leads a group of its own, with `input` until it ends or `deadline` comes. Fails where it does
/// not start.
pub(super) async fn run(mut command: Command, input: Vec<u8>, deadline: Instant) -> io::Result<Run> {
    let mut child = start(&mut command).await?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let group = ProcessGroup(Arc::new(Mutex::new(Some(Pid::from_child(&child)))));
    let _ends_with_us = EndWithUs(group.clone());
    let theirs = group.clone();
    let waiter = tokio::task::spawn_blocking(move || theirs.see_to_its_end(child));
    let (over, is_over) = oneshot::channel();
    let (mut out, mut err) = (Tail::default(), Tail::default());
    let talk = async {
        let spoken = async {
            tokio::join!(
                feed(stdin.map(OwnedFd::from), input),
                hear(stdout.map(OwnedFd::from), &mut out),
                hear(stderr.map(OwnedFd::from), &mut err)
            )
        };
        let left = async {
            let _told = is_over.await;
            sleep(DRAIN).await;
        };
        tokio::select! { _ = spoken => {}, () = left => {} }
    };
    let attend = async {
        let ended = attend(waiter, &group, deadline).await;
        let _nobody_listens = over.send(());
        ended
    };
    let (ended, ()) = tokio::join!(attend, talk);
    Ok(Run { ended: ended?, stdout: out, stderr: err })
}

/// Starts it; waits a moment for a file that is just being written.
async fn start(command: &mut Command) -> io::Result<Child> {
    for _ in 0..BUSY_TRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => sleep(BUSY_PAUSE).await,
            other => return other,
        }
    }
    command.spawn()
}

/// Waits for the end, and brings it about where it does not come in time.
async fn attend(mut waiter: JoinHandle<io::Result<ExitStatus>>, group: &ProcessGroup, deadline: Instant) -> io::Result<RunEnd> {
    if let Ok(joined) = timeout_at(deadline, &mut waiter).await {
        let status = joined.map_err(io::Error::other)??;
        // Neither: stopped or continued, which is not waited for.
        let signal = RunEnd::Signalled(status.signal().unwrap_or_default());
        return Ok(status.code().map_or(signal, RunEnd::Exited));
    }
    group.signal(Signal::TERM);
    if timeout(TERM_GRACE, &mut waiter).await.is_err() {
        group.signal(Signal::KILL);
        // Elapsed: the kernel holds it; the waiting thread reaps it one day.
        let _elapsed = timeout(KILL_GRACE, &mut waiter).await;
    }
    Ok(RunEnd::TimedOut)
}

/// Writes the message. A program may end, or close its input, without having read all of it: its exit status says what that means.
async fn feed(pipe: Option<OwnedFd>, input: Vec<u8>) {
    if let Some(Ok(mut pipe)) = pipe.map(pipe::Sender::from_owned_fd) {
        let _not_read = pipe.write_all(&input).await;
    }
}

/// Reads all that is said, so that nobody waits for a pipe that is full, and keeps the end of it.
async fn hear(pipe: Option<OwnedFd>, tail: &mut Tail) {
    let Some(Ok(mut pipe)) = pipe.map(pipe::Receiver::from_owned_fd) else { return };
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut bytes).await {
        tail.push(bytes.get(..count).unwrap_or_default());
    }
}

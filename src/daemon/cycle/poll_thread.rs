//! A thread for the requests of polls.
//!
//! In the HTTP client, the task of a connection passes each piece of a response to the task of its request. If both run on one thread, no
//! other thread must be woken, which costs more than the piece itself. Requests mostly wait, so one thread is enough for all of them.

use std::{io, thread};

use tokio::{
    runtime::{Builder, Handle},
    task::JoinHandle,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The running thread. Once this is dropped, the thread ends and drops the tasks that still run.
#[derive(Debug)]
pub struct PollThread {
    runtime: Handle,
    _end_on_drop: DropGuard,
}

impl PollThread {
    /// # Errors
    ///
    /// Fails if the system has no thread or no file descriptor left.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let ended = CancellationToken::new();
        let until = ended.clone();
        thread::Builder::new().name("cliffwatch-poll".into()).spawn(move || runtime.block_on(until.cancelled()))?;
        Ok(Self { runtime: handle, _end_on_drop: ended.drop_guard() })
    }

    /// Runs a task and all tasks that it spawns on the thread.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.runtime.spawn(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{future::pending, time::Duration};
    use tokio::{sync::mpsc, time::timeout};

    #[tokio::test]
    async fn all_tasks_share_a_thread_that_ends_on_drop() {
        let poll_thread = PollThread::start().expect("starts");
        let (sender, mut threads) = mpsc::unbounded_channel();
        poll_thread.spawn(async move {
            for _ in 0..2 {
                let sender = sender.clone();
                tokio::spawn(async move {
                    sender.send(thread::current().id()).expect("received");
                    pending::<()>().await;
                });
            }
        });
        let (first, second) = (threads.recv().await, threads.recv().await);
        assert!(first.is_some() && first == second && first != Some(thread::current().id()));
        drop(poll_thread);
        assert_eq!(timeout(Duration::from_secs(30), threads.recv()).await.expect("the tasks are dropped"), None);
    }
}

//! Statements on their way to the server.
//!
//! Whoever writes much would wait for the way there and back once a statement. So a statement is sent behind those before it, and waited
//! for is only where its answer is needed: then the answers of all before it are taken too, in their order. The server runs statements one
//! after the other, and in a transaction none after one that failed; so the first failure that is found is what went wrong.
//!
//! How much may be under way is bounded: beyond that the oldest are waited for.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio_postgres::{Error, Row};

use super::PgFault;

/// Statements that are gathered before they are handed to the driver: each hand-over wakes its thread.
const BURST: usize = 32;
const BURST_BYTES: usize = 64 << 10;

/// Statements, and bytes of their values, that are under way at most.
pub(super) const MOST_UNDER_WAY: usize = 1024;
const MOST_BYTES: usize = 4 << 20;

/// What a statement comes to.
#[derive(Default)]
pub(super) struct Reply {
    pub(super) rows: Vec<Row>,
    /// Rows that it changed.
    pub(super) changed: u64,
}

/// An answer that will come. The statement is sent when it is first polled.
pub(super) type Replying = Pin<Box<dyn Future<Output = Result<Reply, Error>> + Send>>;

/// A statement whose answer nobody took yet.
struct Outstanding {
    answer: Replying,
    bytes: usize,
    /// Somebody will ask for the answer.
    is_kept: bool,
    /// The answer, where it was there when the statement was sent.
    came: Option<Reply>,
}

/// The statements of one connection that are on their way, in order. Each has a number, one more than the one before it.
#[derive(Default)]
pub(super) struct Pipeline {
    outstanding: VecDeque<Outstanding>,
    /// Number of the first of them.
    first: u64,
    /// Number of the first that was not sent yet, and the bytes of those from there on.
    unsent: u64,
    unsent_bytes: usize,
    bytes: usize,
    /// Answers that were taken on the way to a later one.
    kept: HashMap<u64, Reply>,
    /// Statements before this number have been waited for, or were on their way together with one that was.
    #[cfg(test)]
    waited_for: u64,
}

impl Pipeline {
    /// Puts a statement at the end; answers its number. It is not sent by that.
    pub(super) fn push(&mut self, answer: Replying, bytes: usize, is_kept: bool) -> u64 {
        self.outstanding.push_back(Outstanding { answer, bytes, is_kept, came: None });
        self.bytes += bytes;
        self.unsent_bytes += bytes;
        self.end() - 1
    }

    /// The number that the next statement gets.
    pub(super) fn end(&self) -> u64 {
        self.first + self.outstanding.len() as u64
    }

    /// As many wait to be sent as are sent together.
    pub(super) fn is_burst(&self) -> bool {
        self.end() - self.unsent >= BURST as u64 || self.unsent_bytes >= BURST_BYTES
    }

    /// The number up to which answers are to be taken before another statement is sent; none where there is room.
    pub(super) fn is_full(&self) -> Option<u64> {
        let is_full = self.outstanding.len() >= MOST_UNDER_WAY || self.bytes >= MOST_BYTES;
        is_full.then(|| self.first + self.outstanding.len() as u64 / 2)
    }

    /// Sends what was not sent yet. Fails where one cannot be sent: a value does not fit, or the connection is gone.
    pub(super) fn send(&mut self) -> Result<(), PgFault> {
        let sent = usize::try_from(self.unsent - self.first).unwrap_or(usize::MAX);
        // Whoever waits polls again, with a waker of its own.
        let mut context = Context::from_waker(Waker::noop());
        for statement in self.outstanding.iter_mut().skip(sent) {
            self.unsent += 1;
            if let Poll::Ready(answer) = statement.answer.as_mut().poll(&mut context) {
                statement.came = Some(answer?);
            }
        }
        self.unsent_bytes = 0;
        Ok(())
    }

    /// Takes the answers of all statements before this number, each by `wait` where it did not come yet.
    pub(super) fn take_before(
        &mut self,
        number: u64,
        mut wait: impl FnMut(Replying) -> Result<Reply, PgFault>,
    ) -> Result<(), PgFault> {
        self.send()?;
        while self.first < number
            && let Some(statement) = self.outstanding.pop_front()
        {
            let at = self.first;
            self.first += 1;
            self.bytes -= statement.bytes;
            let answer = match statement.came {
                Some(answer) => answer,
                None => wait(statement.answer)?,
            };
            if statement.is_kept {
                self.kept.insert(at, answer);
            }
        }
        Ok(())
    }

    /// The answer of a statement, which was taken; none where it was given out before, or all were given up.
    pub(super) fn kept(&mut self, number: u64) -> Option<Reply> {
        self.kept.remove(&number)
    }

    /// Gives up all answers. What was sent runs all the same.
    pub(super) fn give_up(&mut self) {
        self.first = self.end();
        self.unsent = self.first;
        self.outstanding.clear();
        self.kept.clear();
        (self.bytes, self.unsent_bytes) = (0, 0);
    }

    /// Whether waiting for what is before this number is another way to the server and back: not where it was on its way already while
    /// something else was waited for.
    #[cfg(test)]
    pub(super) fn is_round_trip(&mut self, number: u64) -> bool {
        let is_one = number > self.waited_for.max(self.first);
        if is_one {
            self.waited_for = self.end();
        }
        is_one
    }
}

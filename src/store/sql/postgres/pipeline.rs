//! Pipelined statements.
//!
//! Waiting for each statement would cost a network round trip per statement. Statements are therefore sent without
//! waiting; a response is awaited only when it is needed, after the responses of all earlier statements. The server
//! runs statements in order and, within a transaction, none after a failed one, so the first error found is the cause.
//!
//! The number of outstanding statements is bounded. Beyond the limit, the oldest responses are awaited.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio_postgres::{Error, Row};

use super::PgFault;

/// The number of statements, and the bytes of their values, that are queued before they are sent. Each send wakes the
/// driver's thread.
const BURST: usize = 32;
const BURST_BYTES: usize = 64 << 10;

/// The maximum number of outstanding statements, and of the bytes of their values.
pub(super) const MAX_OUTSTANDING: usize = 1024;
const MAX_OUTSTANDING_BYTES: usize = 4 << 20;

/// The response to a statement.
#[derive(Default)]
pub(super) struct Reply {
    pub(super) rows: Vec<Row>,
    /// The number of changed rows.
    pub(super) changed: u64,
}

/// A future response. Polling it the first time sends the statement.
pub(super) type ReplyFuture = Pin<Box<dyn Future<Output = Result<Reply, Error>> + Send>>;

/// A statement whose response was not taken yet.
struct Outstanding {
    response: ReplyFuture,
    bytes: usize,
    /// Whether the response will be read.
    is_kept: bool,
    /// The response, if it was ready when the statement was sent.
    early_reply: Option<Reply>,
}

/// The outstanding statements of one connection, numbered consecutively.
#[derive(Default)]
pub(super) struct Pipeline {
    outstanding: VecDeque<Outstanding>,
    /// The number of the first outstanding statement.
    first: u64,
    /// The number of the first unsent statement, and the bytes of all unsent ones.
    unsent: u64,
    unsent_bytes: usize,
    bytes: usize,
    /// Responses that were taken while waiting for a later one.
    kept: HashMap<u64, Reply>,
    /// The number up to which waiting costs no further round trip.
    #[cfg(test)]
    waited_for: u64,
}

impl Pipeline {
    /// Queues a statement without sending it. Returns its number.
    pub(super) fn push(&mut self, response: ReplyFuture, bytes: usize, is_kept: bool) -> u64 {
        self.outstanding.push_back(Outstanding { response, bytes, is_kept, early_reply: None });
        self.bytes += bytes;
        self.unsent_bytes += bytes;
        self.end() - 1
    }

    /// Returns the number of the next statement.
    pub(super) fn end(&self) -> u64 {
        self.first + self.outstanding.len() as u64
    }

    /// Returns whether enough statements are queued to send them.
    pub(super) fn is_burst(&self) -> bool {
        self.end() - self.unsent >= BURST as u64 || self.unsent_bytes >= BURST_BYTES
    }

    /// If the pipeline is full, returns the number up to which responses must be taken first.
    pub(super) fn drain_target(&self) -> Option<u64> {
        let is_full = self.outstanding.len() >= MAX_OUTSTANDING || self.bytes >= MAX_OUTSTANDING_BYTES;
        is_full.then(|| self.first + self.outstanding.len() as u64 / 2)
    }

    /// Sends queued statements. Fails if a value does not fit, or if the connection is closed.
    pub(super) fn send(&mut self) -> Result<(), PgFault> {
        let sent = usize::try_from(self.unsent - self.first).unwrap_or(usize::MAX);
        // A later wait polls again with its own waker.
        let mut context = Context::from_waker(Waker::noop());
        for statement in self.outstanding.iter_mut().skip(sent) {
            self.unsent += 1;
            if let Poll::Ready(response) = statement.response.as_mut().poll(&mut context) {
                statement.early_reply = Some(response?);
            }
        }
        self.unsent_bytes = 0;
        Ok(())
    }

    /// Takes the responses of all statements before `number`, with `wait` for responses that are not ready.
    pub(super) fn take_before(
        &mut self,
        number: u64,
        mut wait: impl FnMut(ReplyFuture) -> Result<Reply, PgFault>,
    ) -> Result<(), PgFault> {
        self.send()?;
        while self.first < number
            && let Some(statement) = self.outstanding.pop_front()
        {
            let at = self.first;
            self.first += 1;
            self.bytes -= statement.bytes;
            let response = match statement.early_reply {
                Some(response) => response,
                None => wait(statement.response)?,
            };
            if statement.is_kept {
                self.kept.insert(at, response);
            }
        }
        Ok(())
    }

    /// Removes and returns the response of a statement, or `None` if it was removed before or discarded.
    pub(super) fn take_kept(&mut self, number: u64) -> Option<Reply> {
        self.kept.remove(&number)
    }

    /// Discards all responses. Statements that were sent still run.
    pub(super) fn discard(&mut self) {
        self.first = self.end();
        self.unsent = self.first;
        self.outstanding.clear();
        self.kept.clear();
        (self.bytes, self.unsent_bytes) = (0, 0);
    }

    /// Returns whether waiting for statements before `number` costs another round trip. It does not if they were
    /// already sent during an earlier wait.
    #[cfg(test)]
    pub(super) fn is_round_trip(&mut self, number: u64) -> bool {
        let is_one = number > self.waited_for.max(self.first);
        if is_one {
            self.waited_for = self.end();
        }
        is_one
    }
}

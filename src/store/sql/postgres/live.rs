//! One open connection: its cached statements and outstanding responses.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_postgres::{Client, Statement};

use super::driver::{self, wait_while};
use super::pipeline::{Pipeline, Reply, ReplyFuture};
use super::url::PostgresUrl;
use super::{PgFault, RESPONSE_TIMEOUT};
use crate::read_stop::ReadStop;

/// With several servers, the wait after which we check whether another one is now the primary.
const PROBE_AFTER: Duration = Duration::from_secs(4);

/// The size of the statement cache.
const MAX_STATEMENTS: usize = 256;

/// The lifetime of query plans on a new connection, which doubles up to the maximum.
const MIN_PLAN_AGE: Duration = Duration::from_millis(250);
const MAX_PLAN_AGE: Duration = Duration::from_secs(600);

/// The signal to end the current read of a session, if any. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedStop(Arc<Mutex<Option<ReadStop>>>);

impl SharedStop {
    pub(super) fn set(&self, stop: Option<ReadStop>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stop;
    }

    fn is_stopped(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(ReadStop::is_stopped)
    }
}

pub(super) struct LiveSession {
    pub(super) client: Arc<Client>,
    place: Arc<PostgresUrl>,
    /// The index of the server.
    pub(super) server: usize,
    statements: RefCell<HashMap<String, Statement>>,
    pipeline: RefCell<Pipeline>,
    /// When plans were last discarded, and how long they may be kept.
    plans: Cell<(Instant, Duration)>,
    stop: SharedStop,
    #[cfg(test)]
    pub(super) round_trips: Cell<u64>,
}

impl LiveSession {
    pub(super) fn new(client: Client, place: Arc<PostgresUrl>, server: usize, stop: SharedStop) -> Self {
        Self {
            client: Arc::new(client),
            place,
            server,
            statements: RefCell::default(),
            pipeline: RefCell::default(),
            plans: Cell::new((Instant::now(), MIN_PLAN_AGE)),
            stop,
            #[cfg(test)]
            round_trips: Cell::default(),
        }
    }

    /// Discards the server's query plans from time to time, before a transaction. A plan depends on table sizes, and a
    /// plan made for empty tables would be kept while they grow.
    pub(super) fn discard_plans(&self, limit: Duration) -> Result<(), PgFault> {
        let (since, lasting) = self.plans.get();
        if since.elapsed() < lasting {
            return Ok(());
        }
        self.plans.set((Instant::now(), (lasting * 2).min(MAX_PLAN_AGE)));
        self.run(self.client.batch_execute("DISCARD PLANS"), limit)
    }

    /// Waits for a response, after all outstanding responses. Returns the first error of any of them.
    pub(super) fn request<T>(
        &self,
        response: impl Future<Output = Result<T, tokio_postgres::Error>>,
        limit: Duration,
    ) -> Result<T, PgFault> {
        self.flush(limit)?;
        #[cfg(test)]
        self.round_trips.update(|trips| trips + 1);
        self.run(response, limit)
    }

    /// Queues a statement and returns its number. `is_kept` is set if the response will be read.
    pub(super) fn send(&self, response: ReplyFuture, bytes: usize, is_kept: bool) -> Result<u64, PgFault> {
        let number = {
            let mut pipeline = self.pipeline.borrow_mut();
            let number = pipeline.push(response, bytes, is_kept);
            if pipeline.is_burst() {
                pipeline.send()?;
            }
            number
        };
        let until = self.pipeline.borrow().drain_target();
        until.map_or(Ok(()), |until| self.take_before(until, RESPONSE_TIMEOUT))?;
        Ok(number)
    }

    /// Waits for the responses of all statements before `number`, with a timeout for each. Returns the first error.
    fn take_before(&self, number: u64, limit: Duration) -> Result<(), PgFault> {
        let mut pipeline = self.pipeline.borrow_mut();
        #[cfg(test)]
        if pipeline.is_round_trip(number) {
            self.round_trips.update(|trips| trips + 1);
        }
        pipeline.take_before(number, |response| self.run(response, limit))
    }

    /// Waits for all outstanding responses.
    pub(super) fn flush(&self, limit: Duration) -> Result<(), PgFault> {
        let end = self.pipeline.borrow().end();
        self.take_before(end, limit)
    }

    pub(super) fn send_all(&self) -> Result<(), PgFault> {
        self.pipeline.borrow_mut().send()
    }

    /// Discards all outstanding responses and unsent statements.
    pub(super) fn discard(&self) {
        if let Ok(mut pipeline) = self.pipeline.try_borrow_mut() {
            pipeline.discard();
        }
    }

    /// Returns a cached statement.
    pub(super) fn cached(&self, sql: &str) -> Option<Statement> {
        self.statements.borrow().get(sql).cloned()
    }

    /// Returns a future that runs a statement and counts the changed rows.
    pub(super) fn execution<T: tokio_postgres::types::ToSql + Send + Sync + 'static>(
        &self,
        statement: Statement,
        values: Vec<T>,
    ) -> ReplyFuture {
        let client = self.client.clone();
        Box::pin(async move {
            let changed = client.execute_raw(&statement, values).await?;
            Ok(Reply { changed, ..Reply::default() })
        })
    }

    /// Prepares a statement, cached if `is_kept`.
    pub(super) fn prepare(&self, sql: &str, is_kept: bool) -> Result<Statement, PgFault> {
        // Statements contain `?` only as placeholders.
        let statement = self.request(self.client.prepare(&sql.replace('?', "$")), RESPONSE_TIMEOUT)?;
        if is_kept {
            let mut statements = self.statements.borrow_mut();
            if statements.len() >= MAX_STATEMENTS {
                statements.clear();
            }
            statements.insert(sql.to_owned(), statement.clone());
        }
        Ok(statement)
    }

    /// Waits for the response of a statement.
    pub(super) fn response(&self, number: u64) -> Result<Reply, PgFault> {
        self.take_before(number + 1, RESPONSE_TIMEOUT)?;
        self.pipeline.borrow_mut().take_kept(number).ok_or_else(|| PgFault::Unreachable("the transaction has failed".into()))
    }

    /// Waits for a response until the timeout, until another server became the primary, or until the read is stopped.
    fn run<T>(&self, response: impl Future<Output = Result<T, tokio_postgres::Error>>, limit: Duration) -> Result<T, PgFault> {
        let (begun, has_probed) = (Instant::now(), Cell::new(self.place.servers().len() < 2));
        let should_wait = || {
            if begun.elapsed() >= PROBE_AFTER && !has_probed.replace(true) {
                driver::probe_servers(&self.place);
            }
            !self.place.is_superseded(self.server) && !self.stop.is_stopped()
        };
        let ended = || if self.stop.is_stopped() { PgFault::Stopped } else { PgFault::Timeout };
        wait_while(response, limit, should_wait).ok_or_else(ended)?.map_err(PgFault::Refused)
    }
}

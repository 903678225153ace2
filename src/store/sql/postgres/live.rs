//! One connection that works, as far as is known: what it keeps ready, and what is on its way.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::driver::{self, wait_while};
use super::gather::{Gathered, inserts_many};
use super::pipeline::{Pipeline, Reply, Replying};
use super::place::PostgresPlace;
use super::value::Parameter;
use super::{ANSWER, PgFault};

/// Who waits for so long where there are several servers asks whether another one is the primary by now.
const LOOK_AROUND_AFTER: Duration = Duration::from_secs(4);

/// Statements that a session keeps ready.
const MAX_STATEMENTS: usize = 256;

/// How long the plans of a new connection are kept, and those of an old one.
const FIRST_PLANS: Duration = Duration::from_millis(250);
const LAST_PLANS: Duration = Duration::from_secs(600);

/// A connection that works, as far as is known.
pub(super) struct LiveSession {
    pub(super) client: Arc<Client>,
    place: Arc<PostgresPlace>,
    /// Which of the place's servers it leads to.
    pub(super) server: usize,
    statements: RefCell<HashMap<String, Prepared>>,
    pipeline: RefCell<Pipeline>,
    /// Since when the server may have kept plans of statements, and for how long it may.
    plans: Cell<(Instant, Duration)>,
    /// Rows that are to be inserted after what is in the pipeline.
    gathered: RefCell<Option<Gathered>>,
    #[cfg(test)]
    pub(super) round_trips: Cell<u64>,
}

/// A statement that the server holds ready.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) statement: tokio_postgres::Statement,
    /// What inserts many such rows; none where that is not what it does.
    pub(super) many: Option<Arc<str>>,
}

impl LiveSession {
    pub(super) fn new(client: Client, place: Arc<PostgresPlace>, server: usize) -> Self {
        Self {
            client: Arc::new(client),
            place,
            server,
            statements: RefCell::default(),
            pipeline: RefCell::default(),
            plans: Cell::new((Instant::now(), FIRST_PLANS)),
            gathered: RefCell::default(),
            #[cfg(test)]
            round_trips: Cell::default(),
        }
    }

    /// Has the server plan statements anew, now and then, before a transaction begins: a plan goes by how large tables are, and one that
    /// was made of empty ones would be kept while they grow.
    pub(super) fn forget_plans(&self, limit: Duration) -> Result<(), PgFault> {
        let (since, lasting) = self.plans.get();
        if since.elapsed() < lasting {
            return Ok(());
        }
        self.plans.set((Instant::now(), (lasting * 2).min(LAST_PLANS)));
        self.run(self.client.batch_execute("DISCARD PLANS"), limit)
    }

    /// Puts a question whose answer is due at once, after all that is on its way: what went wrong there is told first.
    pub(super) fn ask<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
        limit: Duration,
    ) -> Result<T, PgFault> {
        self.settle(limit)?;
        #[cfg(test)]
        self.round_trips.update(|trips| trips + 1);
        self.run(answer, limit)
    }

    /// Sends a statement behind those before it, sooner or later; answers its number. Somebody will ask for its answer where it
    /// `is_kept`.
    pub(super) fn send(&self, answer: Replying, bytes: usize, is_kept: bool) -> Result<u64, PgFault> {
        self.insert_gathered()?;
        self.push(answer, bytes, is_kept)
    }

    fn push(&self, answer: Replying, bytes: usize, is_kept: bool) -> Result<u64, PgFault> {
        let number = {
            let mut pipeline = self.pipeline.borrow_mut();
            let number = pipeline.push(answer, bytes, is_kept);
            if pipeline.is_burst() {
                pipeline.send()?;
            }
            number
        };
        let is_full = self.pipeline.borrow().is_full();
        is_full.map_or(Ok(()), |until| self.take_before(until, ANSWER))?;
        Ok(number)
    }

    /// Waits for the answers of all statements before this number, for each as long as the limit allows. An error is that of the first
    /// that failed.
    fn take_before(&self, number: u64, limit: Duration) -> Result<(), PgFault> {
        let mut pipeline = self.pipeline.borrow_mut();
        #[cfg(test)]
        if pipeline.is_round_trip(number) {
            self.round_trips.update(|trips| trips + 1);
        }
        pipeline.take_before(number, |answer| self.run(answer, limit))
    }

    /// Waits for the answers of all that is on its way.
    pub(super) fn settle(&self, limit: Duration) -> Result<(), PgFault> {
        self.insert_gathered()?;
        let end = self.pipeline.borrow().end();
        self.take_before(end, limit)
    }

    /// Sends what waits to be sent together with more.
    pub(super) fn send_all(&self) -> Result<(), PgFault> {
        self.insert_gathered()?;
        self.pipeline.borrow_mut().send()
    }

    /// Gives up the answers of all that is on its way, and what was not sent.
    pub(super) fn give_up(&self) {
        if let (Ok(mut pipeline), Ok(mut gathered)) = (self.pipeline.try_borrow_mut(), self.gathered.try_borrow_mut()) {
            pipeline.give_up();
            gathered.take();
        }
    }

    /// A statement of the cache.
    pub(super) fn ready(&self, sql: &str) -> Option<Prepared> {
        self.statements.borrow().get(sql).cloned()
    }

    /// Has rows inserted by a statement that does nothing else, together with those before and after it.
    pub(super) fn gather(&self, by: &Prepared, many: &Arc<str>, values: Vec<Parameter>, bytes: usize) -> Result<(), PgFault> {
        let is_another = self.gathered.borrow().as_ref().is_some_and(|gathered| gathered.many != *many);
        if is_another {
            self.insert_gathered()?;
        }
        let is_full = {
            let mut gathered = self.gathered.borrow_mut();
            let gathered = gathered.get_or_insert_with(|| Gathered::new(by.statement.clone(), many.clone()));
            gathered.add(values, bytes);
            gathered.is_full()
        };
        if is_full { self.insert_gathered() } else { Ok(()) }
    }

    /// Sends the rows that wait.
    fn insert_gathered(&self) -> Result<(), PgFault> {
        let Some(gathered) = self.gathered.borrow_mut().take() else { return Ok(()) };
        let (single, many, bytes) = (gathered.single.clone(), gathered.many.clone(), gathered.bytes);
        match gathered.into_values() {
            Ok(values) => self.push(self.changing(single, values), bytes, false),
            Err(columns) => {
                let statement = self.prepared(&many, &many, true)?.statement;
                self.push(self.changing(statement, columns), bytes, false)
            }
        }
        .map(drop)
    }

    /// A statement that changes rows, on its way as soon as it is polled.
    pub(super) fn changing<T: tokio_postgres::types::ToSql + Send + Sync + 'static>(
        &self,
        statement: tokio_postgres::Statement,
        values: Vec<T>,
    ) -> Replying {
        let client = self.client.clone();
        Box::pin(async move {
            let changed = client.execute_raw(&statement, values).await?;
            Ok(Reply { changed, ..Reply::default() })
        })
    }

    /// A prepared statement, of the cache where it `is_kept`; `text` is what the server reads.
    pub(super) fn prepared(&self, sql: &str, text: &str, is_kept: bool) -> Result<Prepared, PgFault> {
        if let Some(known) = self.ready(sql).filter(|_| is_kept) {
            return Ok(known);
        }
        let statement = self.ask(self.client.prepare(text), ANSWER)?;
        let prepared = Prepared { many: inserts_many(text, statement.params()).map(Arc::from), statement };
        if is_kept {
            let mut statements = self.statements.borrow_mut();
            if statements.len() >= MAX_STATEMENTS {
                statements.clear();
            }
            statements.insert(sql.to_owned(), prepared.clone());
        }
        Ok(prepared)
    }

    /// The answer of a statement.
    pub(super) fn answer(&self, number: u64) -> Result<Reply, PgFault> {
        self.take_before(number + 1, ANSWER)?;
        self.pipeline.borrow_mut().kept(number).ok_or_else(|| PgFault::Unreachable("its transaction has failed".into()))
    }

    /// Waits for an answer, for as long as the limit allows and the server is the one that others are let in by.
    fn run<T>(&self, answer: impl Future<Output = Result<T, tokio_postgres::Error>>, limit: Duration) -> Result<T, PgFault> {
        let (begun, has_looked) = (Instant::now(), Cell::new(self.place.servers().len() < 2));
        let makes_sense = || {
            if begun.elapsed() >= LOOK_AROUND_AFTER && !has_looked.replace(true) {
                driver::look_around(&self.place);
            }
            !self.place.was_left(self.server)
        };
        wait_while(answer, limit, makes_sense).ok_or(PgFault::Silent)?.map_err(PgFault::Refused)
    }
}

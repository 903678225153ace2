//! The one room with SQL. Its operations are whole transactions in the words of the domain.
//!
//! Cast: [`Store`] is the handle that everybody clones. Behind it `open` turns a path into connections with every setting that a
//! promise rests on; `threads` holds the one writer on a thread of its own and the readers beside it; `commit` writes a step of a
//! cycle; `cycle`, `outbox` and `look` read for the three who ask; `prune` forgets and `backup` copies. `model` has the values.
//!
//! Promise: what `commit` or `record_attempts` answered with `Ok` is on the disk, whole; what they answered with an error is not
//! there at all, and the store goes on. A write is never half done, whatever fails: the disk, the program, the power.

mod backup;
pub mod catalog;
mod codec;
mod commit;
mod cycle;
mod error;
pub mod facts;
mod look;
pub mod model;
mod open;
mod optout;
mod outbox;
mod prune;
pub mod snapshot;
mod telling;
mod threads;
mod windows;

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chrono::TimeDelta;
use rusqlite::{InterruptHandle, Transaction};

use commit::Way;
use error::Fault;
pub use error::StoreError;
use model::*;
use prune::Heap;
use threads::{Readers, Writer};

use crate::{
    alert::{Alert, Notice},
    group::{Policy, Prospect},
    route::Matcher,
    silence::{Ack, Preview, Silence},
    supply::{
        AlertId, DeliveryId, Endpoint, FeedId, FeedState, ReceiverName, RecordKey, Resource, RuleId, Timestamp, Token, TokenId,
        Tracked,
    },
    wire,
};

/// How the database is opened.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The file; made if it is not there and `access` is [`Access::Own`].
    pub path: PathBuf,
    /// Who else may have it.
    pub access: Access,
    /// The time: of migrations, and of what is done by hand through this handle ([`Store::retry`], [`Store::drop_deliveries`]).
    pub now: Timestamp,
}

/// Who else may have the database at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The daemon or `poll`: the only one that polls and delivers. A second one is refused.
    Own,
    /// A command beside a running daemon: small writes to the outbox.
    Beside,
    /// A command that only looks.
    Read,
}

/// The database. Cheap to clone.
///
/// Times are kept in whole milliseconds, as [`crate::clock::Clock`] gives them; records and changes keep what the source sent.
#[derive(Clone, Debug)]
pub struct Store(Arc<Inner>);

struct Inner {
    path: Arc<Path>,
    opened_at: Timestamp,
    writer: Option<Writer>,
    readers: Arc<Readers>,
    /// Whether a dispatcher takes what is to be told to its receivers.
    is_dispatched: AtomicBool,
    /// Ends a running integrity check, so that closing need not wait for it.
    check: Mutex<Option<InterruptHandle>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("path", &self.path).field("writes", &self.writer.is_some()).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the database; as its owner also makes it and brings its schema up to date.
    ///
    /// # Errors
    /// Where the file is missing, not ours, of another schema, in use by another owner, or cannot be reached.
    pub async fn open(opening: Opening) -> Result<Store, StoreError> {
        let doing = "open the store";
        let task = tokio::task::spawn_blocking(move || {
            let opened = open::open(&opening)?;
            let path: Arc<Path> = opened.path.into();
            let writer = opened.writer.map(|connection| Writer::start(connection, opened.lock, path.clone())).transpose()?;
            let readers = Arc::new(Readers::new(opened.readers, path.clone()));
            let (is_dispatched, check) = (AtomicBool::new(false), Mutex::new(None));
            Ok(Store(Arc::new(Inner { path, opened_at: opening.now, writer, readers, is_dispatched, check })))
        });
        task.await.map_err(|_| StoreError::Closed { doing })?
    }

    /// Stops the writer after what is queued, checkpoints the WAL, releases the lock. Whatever is asked afterwards is answered
    /// with [`StoreError::Closed`].
    ///
    /// # Errors
    /// Where the WAL cannot be moved into the database; nothing is lost by that.
    pub async fn close(&self) -> Result<(), StoreError> {
        if let Some(check) = self.check_handle().take() {
            check.interrupt();
        }
        self.0.readers.close().await;
        match &self.0.writer {
            Some(writer) => writer.close().await,
            None => Ok(()),
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    // -- the cycle --

    /// All tokens with what planning reads of `endpoint`, by slug.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn plan_tokens(&self, endpoint: Endpoint, now: Timestamp) -> Result<Vec<PlanToken>, StoreError> {
        self.read("read what planning needs", move |from| cycle::plan_tokens(from, endpoint, now)).await
    }

    /// What is remembered of a feed; the default where it was never tried.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn feed(&self, id: FeedId) -> Result<FeedState, StoreError> {
        self.read("read the state of a feed", move |from| cycle::feed(from, &id)).await
    }

    /// Quota as last written; the default where it never was.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn credit(&self) -> Result<CreditState, StoreError> {
        self.read("read the quota", cycle::credit).await
    }

    /// Tokens with feeds, records of `resources` and open alerts, in the order of `ids`. A token unknown to the database comes
    /// back empty. Records are in the order of time and key, those without a date last.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn tokens(&self, ids: Vec<TokenId>, resources: Vec<Resource>) -> Result<Vec<TokenSnapshot>, StoreError> {
        self.read("read tokens", move |from| cycle::tokens(from, &ids, &resources)).await
    }

    /// Tokens with what is remembered of `endpoint` and nothing else, not even their names, in the order of `ids`: all that an answer
    /// needs that brings nothing new.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn tokens_with_feed(&self, ids: Vec<TokenId>, endpoint: Endpoint) -> Result<Vec<TokenSnapshot>, StoreError> {
        self.read("read the state of feeds", move |from| cycle::tokens_with_feed(from, ids, endpoint)).await
    }

    /// What the windows of tokens are summed over, in the order of `ids`: of each resource no more records than `reaches` wants.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn entries(&self, ids: Vec<TokenId>, reaches: Vec<Reach>) -> Result<Vec<Entries>, StoreError> {
        self.read("read what windows hold", move |from| windows::entries(from, &ids, &reaches)).await
    }

    /// Tokens with an unlock that begins in one of the windows (from exclusive, to inclusive), or with an open alert that is to be
    /// looked at again by `now`.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn tokens_due(&self, windows: Vec<(Timestamp, Timestamp)>, now: Timestamp) -> Result<Vec<TokenId>, StoreError> {
        self.read("read whose time has come", move |from| cycle::tokens_due(from, &windows, now)).await
    }

    /// Tokens with an unlock that has not passed, and begins by `until` where that is given.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn tokens_with_unlocks_ahead(&self, now: Timestamp, until: Option<Timestamp>) -> Result<Vec<TokenId>, StoreError> {
        self.read("read who has unlocks ahead", move |from| cycle::tokens_with_unlocks_ahead(from, now, until)).await
    }

    /// Tokens with an open alert, and those with records of `resources`: whom other rules may judge otherwise.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn tokens_to_rejudge(&self, resources: Vec<Resource>) -> Result<Vec<TokenId>, StoreError> {
        self.read("read whom other rules may concern", move |from| cycle::tokens_to_rejudge(from, &resources)).await
    }

    /// Latest episode of (rule, subject), for each pair asked; zero where there was none.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn episodes(&self, pairs: Vec<(RuleId, String)>) -> Result<Vec<u32>, StoreError> {
        self.read("read episodes of alerts", move |from| cycle::episodes(from, &pairs)).await
    }

    /// Open alerts that belong to no token: about the source, and about groups of tokens.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn alerts_of_no_token(&self) -> Result<Vec<Alert>, StoreError> {
        self.read("read alerts of no token", cycle::alerts_of_no_token).await
    }

    /// Open alerts about the source, receivers and this program itself.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn source_alerts(&self) -> Result<Vec<Alert>, StoreError> {
        self.read("read alerts about the source", cycle::source_alerts).await
    }

    /// Up to when time-relative rules have been evaluated; none before the first time.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn evaluated_until(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read("read up to when rules were evaluated", cycle::evaluated_until).await
    }

    /// Investors as the list told them, by slug.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn investors(&self) -> Result<Vec<wire::InvestorItem>, StoreError> {
        self.read("read investors", cycle::investors).await
    }

    /// The last slot for which each scheduled job ran.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn job_slots(&self) -> Result<Vec<(String, Timestamp)>, StoreError> {
        self.read("read when jobs ran", cycle::job_slots).await
    }

    /// Records that a feed keeps, by key, with the token that each is about: what a diff of the investors' rounds begins with.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn feed_records(&self, id: FeedId) -> Result<Vec<(Option<TokenId>, Tracked)>, StoreError> {
        self.read("read the records of a feed", move |from| cycle::feed_records(from, &id)).await
    }

    /// The texts of the last rule files without errors, as [`keep_good_rules`](Self::keep_good_rules) was given them.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn good_rules(&self) -> Result<Option<String>, StoreError> {
        self.read("read the last good rules", cycle::good_rules).await
    }

    /// Remembers rule files without errors, so that a start with bad ones can go on with these.
    ///
    /// # Errors
    /// As any write: see [`StoreError`].
    pub async fn keep_good_rules(&self, texts: String) -> Result<(), StoreError> {
        self.write("remember the good rules", move |to| cycle::keep_good_rules(to, &texts)).await
    }

    /// Everyone to whom something is yet to be delivered, with how much, whether the config knows them or not.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn pending_receivers(&self) -> Result<Vec<(ReceiverName, u32)>, StoreError> {
        self.read("read who waits for deliveries", outbox::pending_receivers).await
    }

    /// Makes what waits for a retry of `receiver` due at `now`, since it answers again.
    ///
    /// # Errors
    /// As any write: see [`StoreError`].
    pub async fn hasten(&self, receiver: ReceiverName, now: Timestamp) -> Result<(), StoreError> {
        self.write("hasten retries", move |to| outbox::hasten(to, &receiver, now)).await
    }

    /// Writes one step of a cycle whole, or not at all.
    ///
    /// # Errors
    /// Where nothing of it was written: see [`StoreError`].
    pub async fn commit(&self, commit: Commit) -> Result<Saved, StoreError> {
        let doing = "commit a step of a cycle";
        let way = self.way();
        self.writer(doing)?.run(doing, move |connection| commit::commit(connection, &commit, way)).await
    }

    // -- between a decision and its delivery --

    /// From now on what is to be told waits for [`Self::dispatch`], which groups it or holds it back; before that, and in a process
    /// that never says so, it goes straight into the outbox.
    pub fn await_dispatch(&self) {
        self.0.is_dispatched.store(true, Ordering::SeqCst);
    }

    fn way(&self) -> Way {
        if self.0.is_dispatched.load(Ordering::SeqCst) { Way::Waits } else { Way::Straight }
    }

    /// Decides about everything that waits: what is held back, what is told now and in which messages; all of it in one transaction.
    ///
    /// # Errors
    /// As any write: see [`StoreError`].
    pub async fn dispatch(&self, policy: Arc<Policy>, now: Timestamp) -> Result<Dispatched, StoreError> {
        self.write("dispatch what waits", move |to| telling::dispatch(to, &policy, now)).await
    }

    /// Alerts that are to be told again, since their group was last told `repeat_interval` ago and they still fire: with the last
    /// message about each. Those that somebody acknowledged are left out.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn repeats(&self, now: Timestamp) -> Result<Vec<Repeat>, StoreError> {
        self.read("read what is to be told again", move |from| telling::repeats(from, now)).await
    }

    /// Writes what is told again, and when the groups are told next.
    ///
    /// # Errors
    /// As any write: see [`StoreError`].
    pub async fn commit_repeats(
        &self,
        notices: Vec<Notice>,
        groups: Vec<(ReceiverName, String, Option<Timestamp>)>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write("write what is told again", move |to| telling::commit_repeats(to, &notices, &groups, now)).await
    }

    /// Makes a silence; the same one twice is one.
    ///
    /// # Errors
    /// As any write: see [`StoreError`].
    pub async fn put_silence(&self, silence: Silence) -> Result<(), StoreError> {
        self.write("write a silence", move |to| telling::put_silence(to, &silence)).await
    }

    /// Silences that are not over at `now`, or all, those that end last first.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn silences(&self, not_over_at: Option<Timestamp>) -> Result<Vec<Silence>, StoreError> {
        self.read("read silences", move |from| telling::silences(from, not_over_at)).await
    }

    /// Ends a silence; answers whether there was one of this id that was not over.
    ///
    /// # Errors
    /// As any write: see [`StoreError`].
    pub async fn expire_silence(&self, id: String, now: Timestamp) -> Result<bool, StoreError> {
        self.write("end a silence", move |to| telling::expire_silence(to, &id, now)).await
    }

    /// Acknowledges an alert that fires or is pending, by its id or the begin of it.
    ///
    /// # Errors
    /// As any write: see [`StoreError`]. That there is no such alert, or several, is an answer.
    pub async fn acknowledge(
        &self,
        alert: String,
        author: String,
        comment: String,
        now: Timestamp,
    ) -> Result<Acknowledged, StoreError> {
        self.write("acknowledge an alert", move |to| telling::acknowledge(to, &alert, &author, &comment, now)).await
    }

    /// Takes an acknowledgement back; answers whether there was one.
    ///
    /// # Errors
    /// As any write: see [`StoreError`].
    pub async fn unacknowledge(&self, alert: AlertId) -> Result<bool, StoreError> {
        self.write("take an acknowledgement back", move |to| telling::unacknowledge(to, &alert)).await
    }

    /// What is acknowledged, the latest first; where an alert is over, nothing is any more.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn acks(&self) -> Result<Vec<Ack>, StoreError> {
        self.read("read acknowledgements", telling::acks).await
    }

    /// Alerts that are pending or fire, the latest moved first.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn open_alerts(&self) -> Result<Vec<Alert>, StoreError> {
        self.read("read open alerts", telling::open_alerts).await
    }

    /// What a silence with these matchers hides.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn preview(&self, matchers: Vec<Matcher>, now: Timestamp) -> Result<Preview, StoreError> {
        self.read("preview a silence", move |from| telling::preview(from, &matchers, now)).await
    }

    /// What each message that waits is waiting for at `now`, by what the dispatcher would decide.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn prospects(&self, policy: Arc<Policy>, now: Timestamp) -> Result<Vec<Prospect>, StoreError> {
        self.read("read what messages wait for", move |from| telling::prospects(from, &policy, now)).await
    }

    /// What became of each message: of one alert, or of all decided since then, in their order.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn fates(&self, filter: FateFilter) -> Result<Vec<Fate>, StoreError> {
        self.read("read what became of messages", move |from| telling::fates(from, &filter)).await
    }

    /// Where each of these alerts stands with each receiver that something was to be told, in the order of the receivers.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn standings(&self, alerts: Vec<AlertId>) -> Result<HashMap<AlertId, Vec<Standing>>, StoreError> {
        self.read("read who was told", move |from| telling::standings(from, &alerts)).await
    }

    /// What holds messages back at `now`, how many, and who stopped digests; counts of what was held back begin at `since`.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn telling(&self, now: Timestamp, since: Timestamp) -> Result<Telling, StoreError> {
        let read = move |from: &Transaction<'_>| {
            let mut digests = cycle::job_slots(from)?;
            digests.retain(|(name, _)| name.starts_with(crate::digest::JOB_PREFIX));
            Ok(Telling {
                silences: telling::silences(from, Some(now))?,
                acks: telling::acks(from)?,
                held: telling::held_counts(from, since)?,
                opt_outs: optout::opt_outs(from, None)?,
                digests,
            })
        };
        self.read("read what holds messages back", read).await
    }

    // -- digests --

    /// Who wants no digests: of `receiver`, or of all.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn opt_outs(&self, receiver: Option<ReceiverName>) -> Result<Vec<OptOut>, StoreError> {
        self.read("read who wants no digests", move |from| optout::opt_outs(from, receiver.as_ref())).await
    }

    /// Notes that somebody wants no digests any more; answers whether that is new.
    ///
    /// # Errors
    /// As any write: see [`StoreError`].
    pub async fn opt_out(&self, wish: OptOut) -> Result<bool, StoreError> {
        self.write("note who wants no digests", move |to| optout::opt_out(to, &wish)).await
    }

    /// Sends digests to somebody again; answers whether they were stopped.
    ///
    /// # Errors
    /// As any write: see [`StoreError`].
    pub async fn opt_in(&self, receiver: ReceiverName, address: String) -> Result<bool, StoreError> {
        self.write("note who wants digests again", move |to| optout::opt_in(to, &receiver, &address)).await
    }

    /// The key that signs links in digests; none before the first digest was sent.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn link_key(&self) -> Result<Option<LinkKey>, StoreError> {
        self.read("read the key of links", optout::link_key).await
    }

    /// The key that signs links in digests: the one that is there, else `fresh`, which is kept.
    ///
    /// # Errors
    /// As any write: see [`StoreError`].
    pub async fn keep_link_key(&self, fresh: LinkKey) -> Result<LinkKey, StoreError> {
        self.write("keep the key of links", move |to| optout::keep_link_key(to, fresh)).await
    }

    // -- the outbox --

    /// Deliveries to `receiver` whose next attempt is due, the longest waiting first. One waits while an earlier one of the same
    /// alert does, so that an end never overtakes its beginning. They stay due: whoever sends holds for itself what is under way.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn due(&self, receiver: ReceiverName, now: Timestamp, limit: u32) -> Result<Vec<DueDelivery>, StoreError> {
        self.read("read what is due", move |from| outbox::due(from, &receiver, now, limit)).await
    }

    /// When the next delivery of `receiver` falls due, those left aside that wait for an earlier one; none where nothing waits.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn next_due_at(&self, receiver: ReceiverName) -> Result<Option<Timestamp>, StoreError> {
        self.read("read what falls due next", move |from| outbox::next_due_at(from, &receiver)).await
    }

    /// Records attempts, what they make of their deliveries, and what is announced of them, in one transaction.
    ///
    /// # Errors
    /// Where nothing of it was written: see [`StoreError`].
    pub async fn record_attempts(&self, records: Vec<AttemptRecord>) -> Result<(), StoreError> {
        let doing = "record attempts";
        let way = self.way();
        self.writer(doing)?.run(doing, move |connection| outbox::record_attempts(connection, &records, way)).await
    }

    /// Deliveries for `outbox list`, the newest first.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn outbox(&self, filter: OutboxFilter) -> Result<Vec<OutboxRow>, StoreError> {
        self.read("read the outbox", move |from| outbox::outbox(from, &filter)).await
    }

    /// The deliveries that tell of one of these alerts, the oldest first.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn deliveries_of(&self, alerts: Vec<AlertId>) -> Result<Vec<OutboxRow>, StoreError> {
        self.read("read the deliveries of alerts", move |from| outbox::deliveries_of(from, &alerts)).await
    }

    /// One delivery with its attempts and what it tells; none where there is no such row.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn outbox_one(&self, id: DeliveryId) -> Result<Option<OutboxDetail>, StoreError> {
        self.read("read a delivery", move |from| outbox::outbox_one(from, id)).await
    }

    /// Makes deliveries due at once, as of the time at which the store was opened, with the retry schedule begun anew and the same
    /// webhook id; answers how many. What was delivered stays as it is. For a command; a process that lives on has
    /// [`Self::retry_at`].
    ///
    /// # Errors
    /// Where nothing of it was written: see [`StoreError`].
    pub async fn retry(&self, ids: Vec<DeliveryId>) -> Result<usize, StoreError> {
        self.retry_at(ids, self.0.opened_at).await
    }

    /// Makes deliveries due at `now`: see [`Self::retry`].
    ///
    /// # Errors
    /// Where nothing of it was written: see [`StoreError`].
    pub async fn retry_at(&self, ids: Vec<DeliveryId>, now: Timestamp) -> Result<usize, StoreError> {
        self.write("make deliveries due again", move |to| outbox::retry(to, &ids, now)).await
    }

    /// Takes deliveries out that are due, retrying or dead; answers how many.
    ///
    /// # Errors
    /// Where nothing of it was written: see [`StoreError`].
    pub async fn drop_deliveries(&self, ids: Vec<DeliveryId>) -> Result<usize, StoreError> {
        let now = self.0.opened_at;
        self.write("drop deliveries", move |to| outbox::drop_deliveries(to, &ids, now)).await
    }

    /// A number that differs after another process wrote to the database: a cheap way to notice `outbox retry`. Writes of this
    /// store do not move it, unless it was opened for reading only.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn data_version(&self) -> Result<i64, StoreError> {
        let doing = "look for writes of others";
        let version =
            |connection: &rusqlite::Connection| Ok(connection.pragma_query_value(None, "data_version", |row| row.get(0))?);
        match &self.0.writer {
            Some(writer) => writer.run(doing, move |connection| version(connection)).await,
            // Each connection counts for itself; a store that only reads has but one.
            None => self.read(doing, move |from| version(from)).await,
        }
    }

    // -- looking --

    /// Unlocks ahead, the next first.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn upcoming(&self, filter: UpcomingFilter) -> Result<Vec<UpcomingRow>, StoreError> {
        self.read("read what is upcoming", move |from| look::upcoming(from, &filter)).await
    }

    /// Changes, the latest first.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn changes(&self, filter: ChangeFilter) -> Result<Vec<ChangeRow>, StoreError> {
        self.read("read changes", move |from| look::changes(from, &filter)).await
    }

    /// Alerts, those that moved last first.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn alerts(&self, filter: AlertFilter) -> Result<Vec<Alert>, StoreError> {
        self.read("read alerts", move |from| look::alerts(from, &filter)).await
    }

    /// All feeds with their records counted, those of no token first, then by slug.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn feeds(&self) -> Result<Vec<FeedRow>, StoreError> {
        self.read("read feeds", look::feeds).await
    }

    /// Rows of the poll log, the latest first.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn polls(&self, filter: PollFilter) -> Result<Vec<PollEntry>, StoreError> {
        self.read("read the poll log", move |from| look::polls(from, &filter)).await
    }

    /// All kept versions of a record, the oldest first; the last one is what the snapshot holds, or its removal.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn history(&self, token: TokenId, resource: Resource, key: RecordKey) -> Result<Vec<RecordVersion>, StoreError> {
        self.read("read the history of a record", move |from| look::history(from, &token, resource, &key)).await
    }

    /// All kept versions of all records of a token, in the order in which they were seen.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn versions(&self, token: TokenId) -> Result<Vec<VersionRow>, StoreError> {
        self.read("read the history of a token", move |from| look::versions(from, &token)).await
    }

    /// How much there is of everything.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn counts(&self) -> Result<Counts, StoreError> {
        let path = self.0.path.clone();
        self.read("count what there is", move |from| look::counts(from, &path)).await
    }

    /// What the metrics show.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn gauges(&self) -> Result<Gauges, StoreError> {
        self.read("read the gauges", look::gauges).await
    }

    /// How each endpoint fares that was ever asked.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn poll_stats(&self) -> Result<Vec<EndpointStat>, StoreError> {
        self.read("read how endpoints fare", look::endpoint_stats).await
    }

    /// When each rule last held for something.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn rule_matches(&self) -> Result<Vec<(RuleId, Timestamp)>, StoreError> {
        self.read("read when rules held", look::rule_matches).await
    }

    /// Slugs of all tokens, or of those that the last complete list names.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn token_ids(&self, only_listed: bool) -> Result<Vec<TokenId>, StoreError> {
        self.read("read the slugs of tokens", move |from| look::token_ids(from, only_listed)).await
    }

    /// Tokens that `text` may mean: the slug; else all with that ticker, which is not unique; else all of that name.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn find_token(&self, text: &str) -> Result<Vec<Token>, StoreError> {
        let text = text.to_owned();
        self.read("find a token", move |from| look::find_token(from, &text)).await
    }

    /// Prices and market caps of a token since then, one a UTC day on which they moved, the oldest first.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn valuations(&self, token: TokenId, since: Timestamp) -> Result<Vec<Valuation>, StoreError> {
        self.read("read prices", move |from| look::valuations(from, &token, since)).await
    }

    /// Credits spent since then, for each endpoint that spent any, the most first.
    ///
    /// # Errors
    /// As any read: see [`StoreError`].
    pub async fn credits_spent(&self, since: Timestamp) -> Result<Vec<(Endpoint, u64)>, StoreError> {
        self.read("read the credit log", move |from| look::credits_spent(from, since)).await
    }

    // -- upkeep --

    /// Forgets what is older than `retention` (rows of the poll log: than `poll_log_retention`), in small transactions between which
    /// commits go on. What is undelivered, unresolved or current stays.
    ///
    /// # Errors
    /// Where a batch failed; those before it are done.
    pub async fn prune(&self, now: Timestamp, retention: Duration, poll_log_retention: Duration) -> Result<Pruned, StoreError> {
        let ago = |span: Duration| TimeDelta::from_std(span).ok().and_then(|span| now.checked_sub_signed(span));
        let mut pruned = Pruned::default();
        for heap in Heap::ALL {
            let span = if heap == Heap::Polls { poll_log_retention } else { retention };
            // A span that reaches back before all time keeps everything.
            let Some(before) = ago(span) else { continue };
            let taken = match heap {
                Heap::Polls => &mut pruned.polls,
                Heap::Changes => &mut pruned.changes,
                Heap::Versions => &mut pruned.versions,
                Heap::Valuations | Heap::Credits | Heap::Silences | Heap::Groups => &mut pruned.logs,
                Heap::Alerts => &mut pruned.alerts,
                Heap::LoneNotices => &mut pruned.notices,
            };
            loop {
                match self.write("forget what is old", move |to| prune::batch(to, heap, before)).await? {
                    0 => break,
                    rows => *taken += rows,
                }
            }
        }
        Ok(pruned)
    }

    /// Copies the live database to `to`, of one moment, checked and synced before it gets its name. It replaces a file only where
    /// `overwrite` says so, and never the database itself.
    ///
    /// # Errors
    /// Where the copy is refused, cannot be written, or the database is damaged.
    pub async fn backup(&self, to: PathBuf, overwrite: bool) -> Result<(), StoreError> {
        let doing = "back up the database";
        let path = self.0.path.clone();
        let task = tokio::task::spawn_blocking(move || {
            backup::backup(&path, &to, overwrite).map_err(|fault| fault.during(doing, &path))
        });
        task.await.map_err(|_| StoreError::Closed { doing })?
    }

    /// Reads every page and says what is damaged: seconds for a large database, so it runs on a connection of its own, beside the
    /// work. Closing the store ends it.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with what was found, or that it could not be read.
    pub async fn integrity_check(&self) -> Result<(), StoreError> {
        let doing = "check the database";
        let inner = self.0.clone();
        let task = tokio::task::spawn_blocking(move || {
            let check = || -> Result<(), Fault> {
                let connection = open::open_read_only(&inner.path)?;
                *inner.check.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection.get_interrupt_handle());
                backup::check(&connection, &inner.path)
            };
            let result = check();
            drop(inner.check.lock().unwrap_or_else(PoisonError::into_inner).take());
            match result {
                Err(Fault::Sqlite(error)) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) => {
                    Err(StoreError::Closed { doing })
                }
                result => result.map_err(|fault| fault.during(doing, &inner.path)),
            }
        });
        task.await.map_err(|_| StoreError::Closed { doing })?
    }

    // -- inside --

    fn check_handle(&self) -> std::sync::MutexGuard<'_, Option<InterruptHandle>> {
        self.0.check.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self, doing: &'static str) -> Result<&Writer, StoreError> {
        self.0.writer.as_ref().ok_or(StoreError::OpenedForReading { doing })
    }

    async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer(doing)?.transact(doing, run).await
    }

    async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.0.readers.run(doing, run).await
    }
}

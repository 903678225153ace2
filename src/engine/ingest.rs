//! What an answer makes of a feed: its new state, what is written, what changed, or why it is trouble. Pure.
//!
//! Three answers never look alike here either. A failure touches nothing but the feed's own state. An unchanged answer freshens it.
//! A fresh one is compared; the first is the baseline, which tells no change; one that is empty where there were records is taken
//! for a failure, since no source that we know of loses everything on purpose.

mod schedule;
mod sight;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use self::schedule::ScheduleAnswer;

use crate::{
    diff::{self, AnswerView, DateWindow, Diff, Hold, Settings},
    late::{LateArrival, Waiting},
    plan::{PlannedPoll, worth},
};
use model::{
    change::{Change, ChangeKind},
    poll::{FailureKind, FetchedAnswer, Payload, PollAnswer, PollFailure, PollOutcome, PollRequest},
    rows::{FeedUpdate, PollEntry, PollEntryOutcome, Put, TokenSnapshot},
    supply::{Endpoint, FeedId, FeedState, Findings, ListWord, RecordKey, Resource, Timestamp, Tracked},
    wire,
};

/// Answers by which a removal needs more proof where the last of them had gaps: what is gone may be a part of what it lacks.
const GAPPY_CONFIRMATIONS: u32 = 4;

/// Oddities that the poll log keeps of one answer; more are only counted.
const MAX_ODDITIES: usize = 100;

/// What came of one feed of a token.
#[derive(Clone, Debug)]
pub struct IngestResult {
    /// State and records to write.
    pub update: FeedUpdate,
    /// What to tell.
    pub changes: Vec<Change>,
    /// Burns, buybacks and rounds that are new and no baseline.
    pub added: Vec<Tracked>,
    /// Burns and buybacks that came before, and of which more is known now.
    pub late: Vec<LateArrival>,
    /// The records of the feed's resource from now on.
    pub after: Vec<Tracked>,
    /// Name and ticker that the answer told, for tokens that no list names.
    pub named: Option<(String, String)>,
    /// Why it is trouble, if it is.
    pub failure: Option<PollFailure>,
    /// Most of the token's coming records vanished at once: the answer is held.
    pub is_held: bool,
    /// Answers were held until this one; why they no longer are, for people.
    pub released: Option<String>,
    /// The schedule moved, and its linear segments are to be read beside it before anything is told of that.
    pub lacks_segments: bool,
    /// What the answer lacked, where something was known that stands in its place; and how many rows came twice or out of order.
    pub oddities: Oddities,
}

/// What was odd in an answer beside what could not be read of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Oddities {
    /// Each by itself.
    pub named: Vec<wire::ParseWarning>,
    /// How many in all: harmless ones are only counted.
    pub total: usize,
}

/// Takes an answer in.
#[must_use]
pub fn ingest(
    before: &TokenSnapshot,
    ask: &PlannedPoll,
    fetched: &FetchedAnswer,
    settings: &Settings,
    now: Timestamp,
) -> IngestResult {
    let id = fetched.request.feed();
    let resource = id.endpoint.resource();
    // Mostly nothing else was read.
    let records: Cow<'_, [Tracked]> = if before.records.iter().all(|tracked| Some(tracked.record.resource()) == resource) {
        Cow::Borrowed(&before.records)
    } else {
        before.records.iter().filter(|tracked| Some(tracked.record.resource()) == resource).cloned().collect()
    };
    let known = before.feed(id.endpoint).cloned().unwrap_or_default();
    let ingestion = Ingestion { before, known, records, id, ask, fetched, now };
    match &fetched.outcome {
        PollOutcome::Failed(failure) => ingestion.refused(failure.clone()),
        PollOutcome::Unchanged => ingestion.unchanged(),
        PollOutcome::Fresh(answer) => ingestion.fresh(answer, settings),
    }
}

/// An answer beside what was known of its feed.
struct Ingestion<'a> {
    before: &'a TokenSnapshot,
    known: FeedState,
    /// Those of the feed's resource.
    records: Cow<'a, [Tracked]>,
    id: FeedId,
    ask: &'a PlannedPoll,
    fetched: &'a FetchedAnswer,
    now: Timestamp,
}

impl Ingestion<'_> {
    /// Nothing of the answer is taken but what it says of the feed itself.
    fn unapplied(&self, state: FeedState, failure: Option<PollFailure>) -> IngestResult {
        IngestResult {
            update: FeedUpdate { id: self.id.clone(), state, put: Vec::new(), removed: Vec::new(), header: None },
            changes: Vec::new(),
            added: Vec::new(),
            late: Vec::new(),
            after: self.records.to_vec(),
            named: None,
            failure,
            is_held: false,
            released: None,
            lacks_segments: false,
            oddities: Oddities::default(),
        }
    }

    fn refused(&self, failure: PollFailure) -> IngestResult {
        self.unapplied(failed(self.known.clone(), self.fetched, failure.kind, self.now), Some(failure))
    }

    fn unchanged(&self) -> IngestResult {
        let findings = findings(&self.known, self.ask, false, self.now);
        self.unapplied(FeedState { findings, ..read(self.known.clone(), self.ask, self.fetched, self.now) }, None)
    }

    fn emptied(&self) -> IngestResult {
        let (id, count) = (&self.id, self.records.len());
        let before = match count {
            1 => "was 1 record; it is kept".to_owned(),
            _ => format!("were {count} records; they are kept"),
        };
        let message = format!("{id}: the answer is complete but empty, where there {before}");
        self.refused(PollFailure { kind: FailureKind::Emptied, message, retry_at: None })
    }

    /// Cliffs moved, and their segments were not read: half of a correction would be told as something else, so that the answer waits
    /// for both.
    fn waits_for_segments(&self) -> IngestResult {
        // It counts as found now: what told of it is not known any more once the feed is stale by itself.
        let findings = Findings { awaits_segments: true, ..findings(&self.known, self.ask, true, self.now) };
        let state =
            FeedState { tried_at: Some(self.now), failing_since: None, stale: true, hash: None, findings, ..self.known.clone() };
        IngestResult { lacks_segments: true, ..self.unapplied(state, None) }
    }

    fn is_baseline(&self) -> bool {
        self.known.baseline_at.is_none()
    }

    fn fresh(&self, answer: &PollAnswer, settings: &Settings) -> IngestResult {
        let Self { before, known, records, ask, fetched, now, .. } = self;
        let window = window(&fetched.request);
        if let Some(repriced) = self.repriced(answer, window) {
            return repriced;
        }
        let mut completed = match self.is_baseline() {
            true => Completed::as_it_is(answer),
            false => Completed::of(answer, records, fetched),
        };
        let schedule = match &*completed.payload {
            Payload::UnlockEvents(events) => Some(ScheduleAnswer::of(before, known, (ask, fetched), events, window, *now)),
            _ => None,
        };
        if let Some(schedule) = schedule.as_ref().filter(|_| !self.is_baseline()) {
            completed.learned.extend(schedule.revealed(records));
        }
        let expects_rows = match &schedule {
            Some(schedule) => schedule.expects_any_of(records),
            None => records.iter().any(|tracked| inner(&window).contains(tracked.record.interval().map(|at| at.start))),
        };
        if rows(&answer.payload) == 0 && expects_rows {
            return self.emptied();
        }
        let diff = self.diff(answer, &completed, schedule.as_ref(), settings, &window);
        if ask.may_add_segments && fetched.segments.is_none() && !diff.changes.is_empty() {
            return self.waits_for_segments();
        }
        let counted = usize::try_from(diff.odd.duplicates.saturating_add(diff.odd.reordered)).unwrap_or(usize::MAX);
        let oddities = Oddities { total: completed.oddities.len().saturating_add(counted), named: completed.oddities.clone() };
        let header = schedule.as_ref().map_or_else(|| header(&answer.payload), ScheduleAnswer::header);
        IngestResult { oddities, ..self.applied(answer, diff, header) }
    }

    /// What a whole answer leaves behind that tells a schedule as it was known, at other prices: nothing is to be aligned or proven.
    fn repriced(&self, answer: &PollAnswer, window: DateWindow) -> Option<IngestResult> {
        let Self { before, known, records, ask, fetched, now, .. } = self;
        let Payload::UnlockEvents(events) = &answer.payload else { return None };
        let is_plain = !self.is_baseline() && answer.dropped == 0 && known.missing.is_empty() && known.held_since.is_none();
        let schedule = is_plain.then(|| ScheduleAnswer::of(before, known, (ask, fetched), events, window, *now))?;
        let diff = schedule.repriced(records)?;
        let total = usize::try_from(diff.odd.reordered).unwrap_or(usize::MAX);
        let result = self.applied(answer, diff, schedule.header());
        Some(IngestResult { oddities: Oddities { named: Vec::new(), total }, ..result })
    }

    /// What a complete answer changes; nothing where it is the first.
    fn diff(
        &self,
        answer: &PollAnswer,
        completed: &Completed<'_>,
        schedule: Option<&ScheduleAnswer<'_>>,
        settings: &Settings,
        window: &DateWindow,
    ) -> Diff {
        let Self { before, known, .. } = self;
        if self.is_baseline() {
            return baseline(&answer.payload, &self.records, self.now);
        }
        let settings = completed.proof(settings);
        let hold = if settings.hold == Hold::Accepted { settings.hold } else { Hold::of(known.held_since, self.now) };
        let settings = Settings { hold, ..settings };
        let mut diff = match schedule {
            Some(schedule) => schedule.diff(&completed.before(before), known, &settings),
            None => compare(before, known, &answer.payload, self.header_before(), &settings, window),
        };
        completed.write_learned(&mut diff);
        if completed.proves_no_absence {
            diff.missing.clone_from(&known.missing);
        }
        diff
    }

    fn header_before(&self) -> Option<&serde_json::Value> {
        self.before.headers.iter().find(|(endpoint, _)| *endpoint == self.id.endpoint).map(|(_, header)| header)
    }

    /// What an answer leaves behind: state, records and what is kept beside them.
    fn applied(&self, answer: &PollAnswer, diff: Diff, header: Option<serde_json::Value>) -> IngestResult {
        let Self { known, records, ask, fetched, now, .. } = self;
        let added = if self.is_baseline() { Vec::new() } else { arrivals(records, &diff) };
        let has_found = !diff.changes.is_empty() || !added.is_empty() || !diff.missing.is_empty() || diff.held;
        // Once believed it stays so until all of it is proven: it is not held anew for what waits.
        let is_waiting = diff.held || (Hold::of(known.held_since, *now) != Hold::Begun && !diff.missing.is_empty());
        let released = known.held_since.filter(|_| !is_waiting).map(|since| released(since, &diff, &known.missing, *now));
        let state = FeedState {
            findings: findings(known, ask, has_found, *now),
            hash: Some(answer.hash),
            baseline_at: known.baseline_at.or(Some(*now)),
            missing: diff.missing.clone(),
            held_since: is_waiting.then(|| known.held_since.unwrap_or(*now)),
            ..read(known.clone(), ask, fetched, *now)
        };
        let after = diff::apply(records, &diff);
        let waiting = Waiting::read(self.header_before(), *now);
        let late = if self.is_baseline() { Vec::new() } else { waiting.late(records, &diff.put) };
        let header = header.filter(|_| !diff.held).map(|mut header| {
            keep_known(&mut header, self.header_before());
            waiting.next(&added, &after, *now).write(&mut header);
            header
        });
        IngestResult {
            update: FeedUpdate { id: self.id.clone(), state, put: diff.put, removed: diff.removed, header },
            changes: diff.changes,
            added,
            late,
            after,
            named: names(&answer.payload),
            failure: None,
            is_held: is_waiting,
            released,
            lacks_segments: false,
            oddities: Oddities::default(),
        }
    }
}

/// Why answers that were held `since` are no longer, for people.
fn released(since: Timestamp, diff: &Diff, missing: &[(RecordKey, u32)], now: Timestamp) -> String {
    let answers = missing.iter().map(|(_, count)| count.saturating_add(1)).max().unwrap_or_default();
    let is_gone =
        |key: &RecordKey| diff.removed.contains(key) || diff.put.iter().any(|put| put.key == *key && put.is_new_version);
    if !missing.iter().any(|(key, _)| is_gone(key)) {
        return "the records that were missing came back".to_owned();
    }
    match Hold::of(Some(since), now) {
        Hold::Accepted => "what was missing counts as gone, since it was accepted by `cliffwatch accept`".to_owned(),
        Hold::Lasted | Hold::Begun => {
            let hours = (now - since).num_hours();
            format!("what was missing counts as gone: {answers} complete answers over {hours} h left it out")
        }
    }
}

/// An answer with what is known in the place of what it lacks.
struct Completed<'a> {
    payload: Cow<'a, Payload>,
    oddities: Vec<wire::ParseWarning>,
    /// What it lacks may be among what could not be read.
    proves_no_absence: bool,
    /// Known events with parts that are only known since this answer.
    learned: Vec<Tracked>,
}

impl<'a> Completed<'a> {
    fn as_it_is(answer: &'a PollAnswer) -> Self {
        let payload = Cow::Borrowed(&answer.payload);
        Self { payload, oddities: Vec::new(), proves_no_absence: answer.dropped > 0, learned: Vec::new() }
    }

    /// What it takes to prove that a record is gone, by this answer. A record that could not be read may be any of those that seem to be
    /// missing, so it proves no absence. One with gaps proves little: a removal that is told by whole answers needs no more of them, and
    /// one that never is needs more.
    fn proof(&self, settings: &Settings) -> Settings {
        let removal_confirmations = match (self.proves_no_absence, self.oddities.is_empty()) {
            (true, _) => u32::MAX,
            (false, true) => settings.removal_confirmations,
            (false, false) => settings.removal_confirmations.saturating_add(GAPPY_CONFIRMATIONS),
        };
        Settings { removal_confirmations, ..*settings }
    }

    fn of(answer: &'a PollAnswer, known: &[Tracked], fetched: &FetchedAnswer) -> Self {
        let Payload::UnlockEvents(events) = &answer.payload else { return Self::as_it_is(answer) };
        let view = AnswerView {
            shows_linear: fetched.shows_linear(),
            has_lost_rows: answer.dropped > 0,
            without_cliffs: &fetched.without_cliffs,
        };
        let completed = diff::complete(known, events, &view);
        let payload = match completed.events {
            Cow::Borrowed(_) => Cow::Borrowed(&answer.payload),
            Cow::Owned(events) => Cow::Owned(Payload::UnlockEvents(events)),
        };
        let proves_no_absence = answer.dropped > 0 || completed.proves_no_absence;
        Self { payload, oddities: completed.oddities, proves_no_absence, learned: completed.learned }
    }

    /// What was known, with what is learned of it.
    fn before<'b>(&self, before: &'b TokenSnapshot) -> Cow<'b, TokenSnapshot> {
        if self.learned.is_empty() {
            return Cow::Borrowed(before);
        }
        let learned: HashMap<&RecordKey, &Tracked> = self.learned.iter().map(|tracked| (&tracked.key, tracked)).collect();
        let mut known = before.clone();
        for tracked in &mut known.records {
            if let Some(learned) = learned.get(&tracked.key)
                && learned.record.resource() == tracked.record.resource()
            {
                tracked.clone_from(learned);
            }
        }
        Cow::Owned(known)
    }

    /// What is learned is written, also where nothing else of its event changed.
    fn write_learned(&self, diff: &mut Diff) {
        if diff.held {
            return;
        }
        let done: HashSet<RecordKey> = diff.put.iter().map(|put| &put.key).chain(&diff.removed).cloned().collect();
        let learned = self.learned.iter().filter(|tracked| !done.contains(&tracked.key));
        diff.put.extend(learned.map(|tracked| Put {
            key: tracked.key.clone(),
            record: tracked.record.clone(),
            is_new_version: true,
        }));
    }
}

/// What the poll log says of a fetch.
#[must_use]
pub fn entry_outcome(fetched: &FetchedAnswer, failure: Option<&PollFailure>) -> PollEntryOutcome {
    match (&fetched.outcome, failure) {
        (_, Some(failure)) | (PollOutcome::Failed(failure), None) => PollEntryOutcome::Failed(failure.kind),
        (PollOutcome::Fresh(_), None) => PollEntryOutcome::Fresh,
        (PollOutcome::Unchanged, None) => PollEntryOutcome::Unchanged,
    }
}

/// The row of the poll log for a fetch; `failure` is what the ingest made of it.
#[must_use]
pub fn poll_entry(fetched: &FetchedAnswer, failure: Option<&PollFailure>, now: Timestamp) -> PollEntry {
    entry_with(fetched, failure, &Oddities::default(), now)
}

/// [`poll_entry`], with what the ingest found to be odd.
#[must_use]
pub fn entry_with(fetched: &FetchedAnswer, failure: Option<&PollFailure>, odd: &Oddities, now: Timestamp) -> PollEntry {
    let (records, answer) = match (&fetched.outcome, failure) {
        (PollOutcome::Fresh(answer), None) => (rows(&answer.payload), Some(answer)),
        _ => (0, None),
    };
    PollEntry {
        endpoint: fetched.request.endpoint(),
        token: fetched.request.token().cloned(),
        at: now,
        took_ms: u64::try_from(fetched.took.as_millis()).unwrap_or(u64::MAX),
        outcome: entry_outcome(fetched, failure),
        status: fetched.status,
        requests: fetched.requests,
        credits: fetched.credits,
        bytes: fetched.bytes,
        version: fetched.version,
        records: u32::try_from(records).unwrap_or(u32::MAX),
        error: failure.map(|failure| failure.message.clone()),
        oddities: answer
            .map(|answer: &PollAnswer| answer.oddities.iter().chain(&odd.named).take(MAX_ODDITIES).cloned().collect())
            .unwrap_or_default(),
        oddities_total: answer
            .map_or(0, |answer| u32::try_from(answer.oddities_total.saturating_add(odd.total)).unwrap_or(u32::MAX)),
    }
}

/// The state of a feed that could not be read.
#[must_use]
pub fn failed(known: FeedState, fetched: &FetchedAnswer, kind: FailureKind, now: Timestamp) -> FeedState {
    // A walk that was not gone to its end shows what it costs.
    let cost = if fetched.pages > 0 { fetched.pages } else { known.cost };
    match kind {
        FailureKind::Deferred => FeedState { tried_at: Some(now), cost, ..known },
        // What fails as a whole says nothing of this feed, which is asked again as soon as the source is back.
        kind if kind.is_source_wide() => {
            FeedState { tried_at: known.tried_at.or(Some(now)), failing_since: known.failing_since.or(Some(now)), ..known }
        }
        _ => FeedState { tried_at: Some(now), failing_since: known.failing_since.or(Some(now)), cost, ..known },
    }
}

/// The state of a feed that was read.
#[must_use]
pub fn read(known: FeedState, ask: &PlannedPoll, fetched: &FetchedAnswer, now: Timestamp) -> FeedState {
    FeedState {
        read_at: Some(now),
        tried_at: Some(now),
        mark: ask.mark.or(known.mark),
        stale: false,
        failing_since: None,
        // A walk that was repeated cost more than the next one will.
        cost: if fetched.pages > 0 { fetched.pages } else { known.cost },
        ..known
    }
}

/// What reading a feed found so far, with one more read. The baseline counts for nothing, nor does the proof of what was found before.
#[must_use]
pub fn findings(known: &FeedState, ask: &PlannedPoll, has_found: bool, now: Timestamp) -> Findings {
    let word = worth::list_word(known, ask.mark, ask.listed_at);
    let before = Findings { awaits_segments: false, ..known.findings.settled(word) };
    let is_known = known.findings.awaits_segments || !known.missing.is_empty() || known.held_since.is_some();
    // A mark that told of what was found before it is not idle where there is nothing more.
    let is_of_before = word == ListWord::Told && known.findings.open() > 0 && !has_found;
    if known.baseline_at.is_none() || is_known || is_of_before {
        return before;
    }
    before.with(has_found, worth::mark_moved(known, ask.mark), known.stale, now)
}

/// Records in an answer.
#[must_use]
pub fn rows(payload: &Payload) -> usize {
    match payload {
        Payload::Tokens(tokens) => tokens.len(),
        Payload::Upcoming(rows) => rows.len(),
        Payload::UnlockEvents(events) => events.len(),
        Payload::Burns(data) => data.burns.items().len(),
        Payload::Buybacks(data) => data.buybacks.items().len(),
        Payload::Allocations(data) => data.allocations.items().len(),
        Payload::Emissions(days) => days.len(),
        Payload::Investors(investors) => investors.len(),
        Payload::Investor(detail) => detail.funding_rounds.items().len(),
    }
}

fn window(request: &PollRequest) -> DateWindow {
    match request {
        // The allocation table takes no dates.
        PollRequest::Token { endpoint: Endpoint::Allocations, .. } => DateWindow::ALL,
        PollRequest::Token { start, end, .. } | PollRequest::Upcoming { start, end } => DateWindow::of(*start, *end),
        PollRequest::TokenList | PollRequest::Investors | PollRequest::Investor { .. } => DateWindow::ALL,
    }
}

/// The days of a window of which an answer speaks for sure: whether its first and last one belong to it is the server's choice.
fn inner(window: &DateWindow) -> DateWindow {
    DateWindow { first: window.first.and_then(|day| day.succ_opt()), last: window.last.and_then(|day| day.pred_opt()) }
}

fn baseline(payload: &Payload, before: &[Tracked], now: Timestamp) -> Diff {
    let put: Vec<Put> = match payload {
        Payload::UnlockEvents(events) => diff::baseline_unlocks(before, events, now),
        Payload::Burns(data) => diff::baseline_burns(data.burns.items()),
        Payload::Buybacks(data) => diff::baseline_buybacks(data.buybacks.items()),
        Payload::Allocations(data) => diff::baseline_allocations(data.allocations.items()),
        Payload::Emissions(days) => diff::baseline_emissions(days),
        Payload::Tokens(_) | Payload::Upcoming(_) | Payload::Investors(_) | Payload::Investor(_) => Vec::new(),
    };
    // What stood in for the schedule until now (rows of `upcoming`) gives way to it. Records of other resources come from another feed
    // of the resource (days and weeks of emission) and stay.
    let removed = match payload {
        Payload::UnlockEvents(_) => {
            let kept: HashSet<&RecordKey> = put.iter().map(|put| &put.key).collect();
            before.iter().map(|tracked| &tracked.key).filter(|key| !kept.contains(key)).cloned().collect()
        }
        _ => Vec::new(),
    };
    Diff { put, removed, ..Diff::default() }
}

fn compare(
    before: &TokenSnapshot,
    known: &FeedState,
    payload: &Payload,
    header_before: Option<&serde_json::Value>,
    settings: &Settings,
    window: &DateWindow,
) -> Diff {
    let (token, records, missing) = (&before.token.id, &before.records, &known.missing);
    match payload {
        Payload::Burns(data) => diff::diff_burns(token, records, missing, data.burns.items(), settings, window),
        Payload::Buybacks(data) => diff::diff_buybacks(token, records, missing, data.buybacks.items(), settings, window),
        Payload::Emissions(days) => diff::diff_emissions(token, records, missing, days, settings, window),
        Payload::Allocations(data) => {
            let mut diff = diff::diff_allocations(token, records, missing, data, header_before, settings);
            // The token list tells the maximum supply too: what it told is not told again from here.
            if let (Some(told), Some(is)) = (before.token.item.max_supply.copied(), data.max_supply.copied())
                && diff::max_supply_change(token, Some(told), Some(is), settings).is_none()
            {
                diff.changes.retain(|change| change.kind != ChangeKind::SupplyChanged);
            }
            diff
        }
        // A schedule is compared by itself.
        Payload::UnlockEvents(_) | Payload::Tokens(_) | Payload::Upcoming(_) | Payload::Investors(_) | Payload::Investor(_) => {
            Diff::default()
        }
    }
}

/// Burns, buybacks and rounds under keys that were not there before.
fn arrivals(before: &[Tracked], diff: &Diff) -> Vec<Tracked> {
    let known: HashSet<&RecordKey> = before.iter().map(|tracked| &tracked.key).collect();
    diff.put
        .iter()
        .filter(|put| matches!(put.record.resource(), Resource::Burn | Resource::Buyback | Resource::Funding))
        .filter(|put| !known.contains(&put.key))
        .map(|put| Tracked { key: put.key.clone(), record: put.record.clone() })
        .collect()
}

fn header(payload: &Payload) -> Option<serde_json::Value> {
    let without_rows = |mut value: serde_json::Value, rows: &str| {
        value.as_object_mut().map(|object| object.remove(rows));
        value
    };
    match payload {
        Payload::Burns(data) => serde_json::to_value(wire::BurnData { burns: wire::Maybe::Absent, ..data.clone() }).ok(),
        Payload::Buybacks(data) => serde_json::to_value(wire::BuybackData { buybacks: wire::Maybe::Absent, ..data.clone() }).ok(),
        Payload::Allocations(data) => serde_json::to_value(data).ok().map(|value| without_rows(value, "allocations")),
        _ => None,
    }
}

/// What a payload lacks beside its records stays as it was known: the maximum supply, totals, names.
fn keep_known(header: &mut serde_json::Value, known: Option<&serde_json::Value>) {
    let known = known.and_then(serde_json::Value::as_object);
    let (Some(header), Some(known)) = (header.as_object_mut(), known) else { return };
    for (field, value) in known.iter().filter(|(field, _)| wire_fields().any(|wire| wire == field.as_str())) {
        let place = header.entry(field.clone()).or_insert(serde_json::Value::Null);
        if place.is_null() {
            place.clone_from(value);
        }
    }
}

/// Fields that stand beside the records of a payload.
fn wire_fields() -> impl Iterator<Item = &'static str> {
    [wire::BurnData::FIELDS, wire::BuybackData::FIELDS, wire::AllocationsData::FIELDS].into_iter().flatten().copied()
}

fn names(payload: &Payload) -> Option<(String, String)> {
    let pair = |name: &wire::Maybe<wire::Text>, symbol: &wire::Maybe<wire::Text>| {
        Some((name.as_str().filter(|name| !name.is_empty())?.to_owned(), symbol.as_str().filter(|s| !s.is_empty())?.to_owned()))
    };
    match payload {
        Payload::UnlockEvents(events) => events.iter().find_map(|event| pair(&event.token_name, &event.token_symbol)),
        Payload::Burns(data) => pair(&data.token_name, &data.token_symbol),
        Payload::Buybacks(data) => pair(&data.token_name, &data.token_symbol),
        Payload::Allocations(data) => pair(&data.name, &data.symbol),
        Payload::Emissions(days) => days.iter().find_map(|day| pair(&day.token_name, &day.token_symbol)),
        Payload::Tokens(_) | Payload::Upcoming(_) | Payload::Investors(_) | Payload::Investor(_) => None,
    }
}

#[cfg(test)]
mod tests;

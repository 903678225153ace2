//! Applies a response to the known facts of a feed: returns its new state, the records to write, and the changes. Pure.
//!
//! The three outcomes of a poll never mix. A failure changes nothing but the state of the feed. An unchanged response only renews it. A
//! fresh response is compared; the first one is the baseline, without changes. An empty response in place of known records is a failure,
//! because no known source loses everything on purpose.

mod completed;
mod completeness;
mod entry;
mod facts;
mod header;
mod listed_schedules;
mod rate_changes;
mod schedule;
mod state;
mod visibility;

use std::borrow::Cow;

use self::{
    completed::Completed,
    completeness::LinearFindings,
    facts::{added_records, baseline, compare_records, requested_window, within_first_and_last_day},
    header::{header_of, names_of, with_known_fields},
    rate_changes::{Separated, Separation},
    schedule::ScheduleResponse,
};
pub use self::{
    entry::{entry_outcome, entry_with, poll_entry},
    facts::record_count,
    listed_schedules::ListedSchedules,
    state::{findings, state_after_failure, state_after_poll},
};
use crate::{
    diff::{self, DateWindow, Diff, RecordPoll, Settings},
    late::{IncompleteRecords, LateArrival},
    plan::PlannedPoll,
    removal::{Release, RemovalProof, ResponseQuality, next_hold},
};
use model::{
    change::Change,
    poll::{FailureKind, FetchedResponse, Payload, PollFailure, PollOutcome, PollResponse},
    rows::{FeedUpdate, TokenSnapshot},
    supply::{FeedId, FeedState, Findings, Timestamp, Tracked},
    wire,
};

/// The outcome of a poll of one feed of a token.
#[derive(Clone, Debug)]
pub struct IngestResult {
    /// State and records to write.
    pub update: FeedUpdate,
    pub changes: Vec<Change>,
    /// New burns, buybacks, and funding rounds, except those of the baseline.
    pub added: Vec<Tracked>,
    /// Known burns, buybacks, and funding rounds whose missing facts arrived.
    pub late: Vec<LateArrival>,
    /// The records of the feed's resource after the poll.
    pub after: Vec<Tracked>,
    /// Name and ticker in the response, for a token that is in no list.
    pub named: Option<(String, String)>,
    /// `None` if the poll succeeded.
    pub failure: Option<PollFailure>,
    /// Whether the response is held because most records are missing from it.
    pub is_held: bool,
    /// The reason if a hold ended with this response.
    pub released: Option<Release>,
    /// Whether the schedule changed, and its linear segments must be read before any change is reported.
    pub lacks_segments: bool,
    pub parse_warnings: ParseWarnings,
}

/// Gaps of a response that known facts fill, and harmless defects of its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParseWarnings {
    /// The gaps, each with its location and problem.
    pub named: Vec<wire::ParseWarning>,
    /// The number of gaps, and of duplicate and reordered rows.
    pub total: usize,
}

/// Applies the outcome of a poll to a feed of a token. `listed` has the last responses about all tokens.
#[must_use]
pub fn ingest(
    before: &TokenSnapshot,
    poll: &PlannedPoll,
    fetched: &FetchedResponse,
    (settings, listed): (&Settings, &ListedSchedules),
    now: Timestamp,
) -> IngestResult {
    let fetched = &*completeness::with_listed_method(before, fetched);
    let same_view = || ingest_same_view(before, poll, fetched, (settings, listed), now);
    let (mut result, omitted) = match rate_changes::separate(before, fetched) {
        Separation::Unclear => (same_view(), None),
        Separation::Same => (same_view(), Some(Vec::new())),
        Separation::Found(separated) => {
            let Separated { before: rest, fetched, rate_changes } = *separated;
            let mut result = ingest_same_view(&rest, poll, &fetched, (settings, listed), now);
            let omitted = rate_changes.omitted();
            rate_changes.restore(&mut result, before);
            (result, Some(omitted))
        }
    };
    let shortened = rate_changes::shortened(before, fetched);
    rate_changes::note_shortened(&mut result.changes, before, &shortened);
    let shortened = shortened.into_iter().map(|shortened| shortened.unlock).collect();
    completeness::note_completeness(&mut result, before, fetched, LinearFindings { omitted, shortened }, now);
    result
}

/// Applies the outcome of a poll that shows the same linear unlocks as the known facts.
fn ingest_same_view(
    before: &TokenSnapshot,
    poll: &PlannedPoll,
    fetched: &FetchedResponse,
    (settings, listed): (&Settings, &ListedSchedules),
    now: Timestamp,
) -> IngestResult {
    let id = fetched.request.feed();
    let is_own = |tracked: &&Tracked| Some(tracked.record.resource()) == id.endpoint.resource();
    // Usually nothing else was loaded.
    let records: Cow<'_, [Tracked]> = if before.records.iter().all(|tracked| is_own(&tracked)) {
        Cow::Borrowed(&before.records)
    } else {
        before.records.iter().filter(is_own).cloned().collect()
    };
    let known = before.feed(id.endpoint).cloned().unwrap_or_default();
    let ingestion = Ingestion { before, known, records, id, poll, fetched, listed, now };
    match &fetched.outcome {
        PollOutcome::Failed(failure) => ingestion.failed(failure.clone()),
        PollOutcome::Unchanged => ingestion.unchanged(),
        PollOutcome::Fresh(response) => ingestion.fresh(response, settings),
    }
}

/// The outcome of a poll, and the known facts of its feed.
struct Ingestion<'a> {
    before: &'a TokenSnapshot,
    known: FeedState,
    /// The known records of the feed's resource.
    records: Cow<'a, [Tracked]>,
    id: FeedId,
    poll: &'a PlannedPoll,
    fetched: &'a FetchedResponse,
    listed: &'a ListedSchedules,
    now: Timestamp,
}

impl Ingestion<'_> {
    /// Changes nothing but the state of the feed.
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
            parse_warnings: ParseWarnings::default(),
        }
    }

    fn failed(&self, failure: PollFailure) -> IngestResult {
        let state = state_after_failure(self.known.clone(), self.fetched, failure.kind, self.now);
        self.unapplied(state, Some(failure))
    }

    fn unchanged(&self) -> IngestResult {
        let findings = findings(&self.known, self.poll, false, self.now);
        self.unapplied(FeedState { findings, ..self.polled() }, None)
    }

    /// Returns the state of the feed after a complete response.
    fn polled(&self) -> FeedState {
        state_after_poll(self.known.clone(), self.poll, self.fetched, self.now)
    }

    fn emptied(&self) -> IngestResult {
        let records = match self.records.len() {
            1 => "1 known record, which stays".to_owned(),
            count => format!("{count} known records, which stay"),
        };
        let message = format!("{}: the response is complete but empty, in place of {records}", self.id);
        self.failed(PollFailure { kind: FailureKind::Emptied, message, retry_at: None })
    }

    /// Defers a response with changed cliffs until their linear segments are read. Without them, half of a correction would be reported
    /// as something else.
    fn await_segments(&self) -> IngestResult {
        // The find counts now: once the feed is stale, the reason for this poll is no longer known.
        let findings = Findings { awaits_segments: true, ..findings(&self.known, self.poll, true, self.now) };
        let state =
            FeedState { tried_at: Some(self.now), failing_since: None, stale: true, hash: None, findings, ..self.known.clone() };
        IngestResult { lacks_segments: true, ..self.unapplied(state, None) }
    }

    fn is_baseline(&self) -> bool {
        self.known.baseline_at.is_none()
    }

    fn fresh(&self, response: &PollResponse, settings: &Settings) -> IngestResult {
        let Self { before, known, records, poll, fetched, listed, now, .. } = self;
        let window = requested_window(&fetched.request);
        if let Some(repriced) = self.repriced(response, window) {
            return repriced;
        }
        let mut completed = match self.is_baseline() {
            true => Completed::as_given(response),
            false => {
                let proof = RemovalProof::new(settings.proof, ResponseQuality::Gappy, &known.missing, known.hold, *now);
                Completed::new(response, records, fetched, (settings.proof, &proof))
            }
        };
        let schedule = match &*completed.payload {
            Payload::UnlockEvents(events) => {
                Some(ScheduleResponse::of(before, known, (poll, fetched), events, (window, listed), *now))
            }
            _ => None,
        };
        if let Some(schedule) = schedule.as_ref().filter(|_| !self.is_baseline()) {
            completed.learned.extend(schedule.revealed(records));
        }
        let expects_rows = match &schedule {
            Some(schedule) => schedule.expects_any_of(records),
            None => {
                let inner = within_first_and_last_day(&window);
                records.iter().any(|tracked| inner.contains(tracked.record.interval().map(|at| at.start)))
            }
        };
        if record_count(&response.payload) == 0 && expects_rows {
            return self.emptied();
        }
        let diff = self.diff(response, &completed, schedule.as_ref(), settings, &window);
        if poll.may_add_segments && fetched.segments.is_none() && !diff.changes.is_empty() {
            return self.await_segments();
        }
        let defects = usize::try_from(diff.anomalies.duplicates.saturating_add(diff.anomalies.reordered)).unwrap_or(usize::MAX);
        let parse_warnings =
            ParseWarnings { total: completed.warnings.len().saturating_add(defects), named: completed.warnings.clone() };
        let header = schedule.as_ref().map_or_else(|| header_of(&response.payload), ScheduleResponse::header);
        IngestResult { parse_warnings, ..self.applied(response, diff, header) }
    }

    /// Applies a response that changes nothing but prices, so that nothing must be aligned or proven. `None` for any other response.
    fn repriced(&self, response: &PollResponse, window: DateWindow) -> Option<IngestResult> {
        let Self { before, known, records, poll, fetched, listed, now, .. } = self;
        let Payload::UnlockEvents(events) = &response.payload else { return None };
        let is_plain = !self.is_baseline() && response.dropped == 0 && !known.awaits_proof();
        let schedule = is_plain.then(|| ScheduleResponse::of(before, known, (poll, fetched), events, (window, listed), *now))?;
        let diff = schedule.repriced(records)?;
        let total = usize::try_from(diff.anomalies.reordered).unwrap_or(usize::MAX);
        let result = self.applied(response, diff, schedule.header());
        Some(IngestResult { parse_warnings: ParseWarnings { named: Vec::new(), total }, ..result })
    }

    /// Compares a complete response with the known records. The baseline has no changes.
    fn diff(
        &self,
        response: &PollResponse,
        completed: &Completed<'_>,
        schedule: Option<&ScheduleResponse<'_>>,
        settings: &Settings,
        window: &DateWindow,
    ) -> Diff {
        let Self { before, known, .. } = self;
        if self.is_baseline() {
            return baseline(&response.payload, &self.records, self.now);
        }
        let quality = completed.quality();
        let proof = |quality| RemovalProof::new(settings.proof, quality, &known.missing, known.hold, self.now);
        let mut diff = match schedule {
            Some(schedule) => {
                let quality = if schedule.is_other_view { ResponseQuality::OtherView } else { quality };
                schedule.diff(&completed.known(before), &proof(quality), settings.tolerance)
            }
            None => {
                let poll = RecordPoll { token: &before.token.id, window, tolerance: settings.tolerance };
                compare_records(&poll, before, &proof(quality), &response.payload, self.header_before())
            }
        };
        diff.put.extend(completed.learned_puts(&diff));
        completed.count_omissions(&mut diff, &proof(quality));
        diff.missing = proof(quality).settle(diff.missing);
        diff
    }

    fn header_before(&self) -> Option<&serde_json::Value> {
        self.before.headers.iter().find(|(endpoint, _)| *endpoint == self.id.endpoint).map(|(_, header)| header)
    }

    /// Applies the diff of a response: the state, the records, and the header of the feed.
    fn applied(&self, response: &PollResponse, diff: Diff, header: Option<serde_json::Value>) -> IngestResult {
        let Self { known, records, poll, now, .. } = self;
        let added = if self.is_baseline() { Vec::new() } else { added_records(records, &diff) };
        let has_found = !diff.changes.is_empty() || !added.is_empty() || !diff.missing.is_empty() || diff.held;
        let (hold, released) = next_hold(known, &diff, *now);
        let state = FeedState {
            findings: findings(known, poll, has_found, *now),
            hash: Some(response.hash),
            baseline_at: known.baseline_at.or(Some(*now)),
            missing: diff.missing.clone(),
            hold,
            ..self.polled()
        };
        let after = diff::apply(records, &diff);
        let incomplete = IncompleteRecords::read(self.header_before(), *now);
        let late = if self.is_baseline() { Vec::new() } else { incomplete.late(records, &diff.put) };
        let header = header.filter(|_| !diff.held).map(|header| {
            let mut header = with_known_fields(header, self.header_before());
            incomplete.next(&added, &after, *now).write(&mut header);
            header
        });
        IngestResult {
            update: FeedUpdate { id: self.id.clone(), state, put: diff.put, removed: diff.removed, header },
            changes: diff.changes,
            added,
            late,
            after,
            named: names_of(&response.payload),
            failure: None,
            is_held: hold.is_some(),
            released,
            lacks_segments: false,
            parse_warnings: ParseWarnings::default(),
        }
    }
}

#[cfg(test)]
mod tests;

//! How completely a response about a schedule shows linear unlocks, and what daily emission ahead adds.

use std::borrow::Cow;

use serde_json::Value;

use super::{IngestResult, schedule::ScheduleNotes};
use crate::linear_ahead::linear_ahead;
use model::{
    poll::{AheadFetch, FetchedResponse, Payload, PollOutcome, WITH_RATE_CHANGES},
    rows::TokenSnapshot,
    supply::{Endpoint, LinearNotes, OmittedRate, ShortenedUnlock, Timestamp},
    wire::UnlockEvent,
};

/// Returns the response with the listing method of the token in events that lack it, because the oldest version does not have the field.
pub(super) fn with_listed_method<'a>(before: &TokenSnapshot, fetched: &'a FetchedResponse) -> Cow<'a, FetchedResponse> {
    let is_oldest = fetched.segments.is_some_and(|segments| segments.is_read && segments.version == WITH_RATE_CHANGES);
    let PollOutcome::Fresh(response) = &fetched.outcome else { return Cow::Borrowed(fetched) };
    let (true, Payload::UnlockEvents(events)) = (is_oldest, &response.payload) else { return Cow::Borrowed(fetched) };
    let of_events = events.iter().find_map(|event| event.listed_method.get());
    let Some(method) = of_events.or(before.token.item.listed_method.get()).cloned() else { return Cow::Borrowed(fetched) };
    if events.iter().all(|event| !event.listed_method.is_absent()) {
        return Cow::Borrowed(fetched);
    }
    let mut completed = fetched.clone();
    if let PollOutcome::Fresh(response) = &mut completed.outcome
        && let Payload::UnlockEvents(events) = &mut response.payload
    {
        for event in events.iter_mut().filter(|event| event.listed_method.is_absent()) {
            event.listed_method = method.clone().into();
        }
    }
    Cow::Owned(completed)
}

/// Findings of a response about linear unlocks that it shows in part.
pub(super) struct LinearFindings {
    /// The known rate changes that the response does not show. `None` if it does not state which they are.
    pub(super) omitted: Option<Vec<OmittedRate>>,
    /// Linear unlocks that end earlier, and may continue at another rate.
    pub(super) shortened: Vec<ShortenedUnlock>,
}

/// Notes in the header of a schedule's feed how completely linear unlocks are known after the response.
pub(super) fn note_completeness(
    result: &mut IngestResult,
    before: &TokenSnapshot,
    fetched: &FetchedResponse,
    LinearFindings { omitted, shortened }: LinearFindings,
    now: Timestamp,
) {
    if result.update.id.endpoint != Endpoint::UnlockEvents {
        return;
    }
    let Some(header) = result.update.header.take() else { return };
    let notes = ScheduleNotes::read(&header);
    let mut linear = next_notes(&notes, result, (before, shortened), fetched, now);
    if let Some(omitted) = omitted {
        linear.omitted_rates = omitted;
    }
    result.update.header = Some(with_notes(header, &notes.linear, &linear));
}

/// The maximum number of shortened linear unlocks to store per token. The oldest are dropped first.
const MAX_SHORTENED: usize = 100;

/// Returns the notes about linear unlocks after the response.
fn next_notes(
    notes: &ScheduleNotes,
    result: &IngestResult,
    (before, shortened): (&TokenSnapshot, Vec<ShortenedUnlock>),
    fetched: &FetchedResponse,
    now: Timestamp,
) -> LinearNotes {
    let mut linear = notes.linear.clone();
    let segments = fetched.segments.filter(|segments| segments.is_read);
    if linear.has_rate_changes {
        linear.shortened.clear();
    } else {
        linear.shortened.retain(|unlock| !shortened.contains(unlock));
        linear.shortened.extend(shortened);
        let surplus = linear.shortened.len().saturating_sub(MAX_SHORTENED);
        linear.shortened.drain(..surplus);
    }
    if fetched.shows_linear() == Some(true) && segments.is_none() {
        // A configured version shows linear unlocks by itself, and nothing completes them.
        (linear.needs_ahead, linear.linear_ahead, linear.ahead_absent) = (None, None, None);
        linear.rate_changes_absent = None;
        return linear;
    }
    let covered = notes.covered(now);
    let events = || result.after.iter().filter_map(|tracked| tracked.record.unlock());
    if let Some(segments) = segments {
        // A linear unlock that began before the first visible day is not shown at all.
        let is_clipped = covered.first.is_some_and(|first| first > crate::plan::FIRST_DAY);
        let has_linear = |event: &UnlockEvent| event.linear_unlocks.get().is_some();
        let is_whole = segments.version == WITH_RATE_CHANGES && !is_clipped;
        linear.needs_ahead = Some(!is_whole && (is_clipped || events().any(has_linear)));
    }
    if fetched.segments.is_some_and(|segments| segments.lacks_rate_changes) {
        let method = before.token.item.listed_method.as_str().map(model::ListedMethod::of);
        linear.rate_changes_absent = Some(model::VersionAbsence { at: now, method });
    } else if segments.is_some_and(|segments| segments.version == WITH_RATE_CHANGES) {
        linear.rate_changes_absent = None;
    }
    // The emission was compared with other unlocks.
    if !result.changes.is_empty() || linear.needs_ahead == Some(false) {
        linear.linear_ahead = None;
    }
    match &fetched.ahead {
        Some(AheadFetch { first, last, days: Some(days), .. }) => {
            let after = |day: chrono::NaiveDate| day.succ_opt().unwrap_or(day);
            let end = covered.last.map_or(*last, |covered| covered.min(*last));
            let ahead = linear_ahead(events(), days, (*first, after(end)), now);
            let is_needed = linear.needs_ahead != Some(false) || !ahead.runs.is_empty();
            linear.needs_ahead = linear.needs_ahead.map(|_| is_needed);
            linear.linear_ahead = is_needed.then_some(ahead);
            linear.ahead_absent = None;
        }
        Some(AheadFetch { is_absent: true, .. }) => linear.ahead_absent = Some(now),
        _ => {}
    }
    linear
}

/// Replaces the notes about linear unlocks in a header.
fn with_notes(mut header: Value, old: &LinearNotes, new: &LinearNotes) -> Value {
    if let (Some(fields), Ok(Value::Object(old)), Ok(Value::Object(new))) =
        (header.as_object_mut(), serde_json::to_value(old), serde_json::to_value(new))
    {
        // Empty notes are not written, so an old one would stay.
        fields.retain(|key, _| !old.contains_key(key));
        fields.extend(new);
    }
    header
}

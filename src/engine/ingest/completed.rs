//! A response with known facts in place of its gaps.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use crate::{
    diff::{self, Diff, ResponseView},
    removal::ResponseQuality,
};
use model::{
    poll::{FetchedResponse, Payload, PollResponse},
    rows::{Put, TokenSnapshot},
    supply::{RecordKey, Tracked},
    wire::ParseWarning,
};

pub(super) struct Completed<'a> {
    pub(super) payload: Cow<'a, Payload>,
    pub(super) warnings: Vec<ParseWarning>,
    /// Whether a missing record may be one that could not be read.
    proves_no_absence: bool,
    /// Known events with parts that were unknown before this response.
    pub(super) learned: Vec<Tracked>,
}

impl<'a> Completed<'a> {
    pub(super) fn as_given(response: &'a PollResponse) -> Self {
        let payload = Cow::Borrowed(&response.payload);
        Self { payload, warnings: Vec::new(), proves_no_absence: response.dropped > 0, learned: Vec::new() }
    }

    pub(super) fn new(response: &'a PollResponse, known: &[Tracked], fetched: &FetchedResponse) -> Self {
        let Payload::UnlockEvents(events) = &response.payload else { return Self::as_given(response) };
        let view = ResponseView {
            shows_linear: fetched.shows_linear(),
            has_lost_rows: response.dropped > 0,
            without_cliffs: &fetched.without_cliffs,
        };
        let completed = diff::complete(known, events, &view);
        let payload = match completed.events {
            Cow::Borrowed(_) => Cow::Borrowed(&response.payload),
            Cow::Owned(events) => Cow::Owned(Payload::UnlockEvents(events)),
        };
        let proves_no_absence = response.dropped > 0 || completed.proves_no_absence;
        Self { payload, warnings: completed.parse_warnings, proves_no_absence, learned: completed.learned }
    }

    pub(super) fn quality(&self) -> ResponseQuality {
        match (self.proves_no_absence, self.warnings.is_empty()) {
            (true, _) => ResponseQuality::Unreadable,
            (false, true) => ResponseQuality::Complete,
            (false, false) => ResponseQuality::Gappy,
        }
    }

    /// Returns the snapshot with the learned parts.
    pub(super) fn known<'b>(&self, before: &'b TokenSnapshot) -> Cow<'b, TokenSnapshot> {
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

    /// Returns the learned events that the diff neither writes nor removes.
    pub(super) fn learned_puts(&self, diff: &Diff) -> Vec<Put> {
        if diff.held {
            return Vec::new();
        }
        let done: HashSet<&RecordKey> = diff.put.iter().map(|put| &put.key).chain(&diff.removed).collect();
        let put = |tracked: &Tracked| Put { key: tracked.key.clone(), record: tracked.record.clone(), is_new_version: true };
        self.learned.iter().filter(|tracked| !done.contains(&tracked.key)).map(put).collect()
    }
}

//! A response with known facts in place of its gaps.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use crate::{
    diff::{self, Diff, FormOmission, ResponseView},
    removal::{ProofPolicy, RemovalProof, ResponseQuality},
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
    /// Known events of which the response omits a form that may have been removed.
    omissions: Vec<FormOmission>,
    /// Known events with parts that were unknown before this response.
    pub(super) learned: Vec<Tracked>,
}

impl<'a> Completed<'a> {
    pub(super) fn as_given(response: &'a PollResponse) -> Self {
        let payload = Cow::Borrowed(&response.payload);
        let (warnings, omissions, learned) = (Vec::new(), Vec::new(), Vec::new());
        Self { payload, warnings, proves_no_absence: response.dropped > 0, omissions, learned }
    }

    /// Completes a response. `proof` is the proof of a response with gaps.
    pub(super) fn new(
        response: &'a PollResponse,
        known: &[Tracked],
        fetched: &FetchedResponse,
        (policy, proof): (ProofPolicy, &RemovalProof<'_>),
    ) -> Self {
        let Payload::UnlockEvents(events) = &response.payload else { return Self::as_given(response) };
        let view = ResponseView {
            shows_linear: fetched.shows_linear(),
            has_lost_rows: response.dropped > 0,
            without_cliffs: &fetched.without_cliffs,
            is_one_version: fetched.segments.is_none() && fetched.shows_linear() == Some(true),
            // The gaps of recorded responses were filled when they were recorded.
            proof: (policy != ProofPolicy::Immediate && response.dropped == 0 && fetched.version.is_some()).then_some(proof),
        };
        let completed = diff::complete(known, events, &view);
        let payload = match completed.events {
            Cow::Borrowed(_) => Cow::Borrowed(&response.payload),
            Cow::Owned(events) => Cow::Owned(Payload::UnlockEvents(events)),
        };
        let proves_no_absence = response.dropped > 0 || completed.proves_no_absence;
        let (warnings, omissions, learned) = (completed.parse_warnings, completed.omissions, completed.learned);
        Self { payload, warnings, proves_no_absence, omissions, learned }
    }

    /// Adds the omissions of a form to the missing records of a diff, except for those that the diff applied.
    pub(super) fn count_omissions(&self, diff: &mut Diff, proof: &RemovalProof<'_>) {
        let is_written = |key: &RecordKey| diff.put.iter().any(|put| put.key == *key && put.is_new_version);
        let is_applied =
            |omission: &FormOmission| omission.is_accepted && (is_written(&omission.key) || diff.removed.contains(&omission.key));
        let awaiting = self.omissions.iter().filter(|omission| !is_applied(omission));
        let counted: Vec<_> = awaiting.map(|omission| proof.counted_form(&omission.key)).collect();
        diff.missing.extend(counted);
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

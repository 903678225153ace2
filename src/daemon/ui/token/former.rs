//! What a schedule was before it was last corrected, from the versions that were kept.

use std::collections::HashMap;

use model::{ChangeKind, ChangeRow, Record, RecordKey, Resource, Timestamp, VersionRow, wire::UnlockEvent};

/// A schedule as it was.
#[derive(Clone, Debug)]
pub(super) struct FormerSchedule {
    /// When it was corrected.
    pub(super) until: Timestamp,
    pub(super) events: Vec<UnlockEvent>,
}

/// The schedule before the last of these changes that moved or resized something. None where nothing did, or where the versions of
/// before are not kept any more: half a schedule would look like a correction of its own.
pub(super) fn schedule(versions: &[VersionRow], changes: &[ChangeRow]) -> Option<FormerSchedule> {
    let is_correction = |row: &&ChangeRow| {
        row.resource == Resource::Unlock
            && !matches!(
                row.change.kind,
                ChangeKind::Committed | ChangeKind::Revised | ChangeKind::Renamed | ChangeKind::Reallocated
            )
    };
    let until = changes.iter().find(is_correction)?.at;
    let mut known: HashMap<&RecordKey, Option<&UnlockEvent>> = HashMap::new();
    let mut first_seen: HashMap<&RecordKey, Timestamp> = HashMap::new();
    for row in versions.iter().filter(|row| row.resource == Resource::Unlock) {
        first_seen.entry(&row.key).or_insert(row.at);
        if row.at < until {
            let event = row.record.as_ref().and_then(Record::unlock);
            known.insert(&row.key, event);
        }
    }
    // Records that begin with the correction were new in it; that is told of few, and of all where nothing before it is kept.
    let unknown = first_seen.values().filter(|at| **at >= until).count();
    let events: Vec<UnlockEvent> = known.into_values().flatten().cloned().collect();
    (!events.is_empty() && unknown <= events.len()).then_some(FormerSchedule { until, events })
}

//! The schedule before its last correction, rebuilt from stored versions.

use std::collections::HashMap;

use model::corrections::is_correction;
use model::{ChangeRow, Record, RecordKey, Resource, Timestamp, VersionRow, wire::UnlockEvent};

#[derive(Clone, Debug)]
pub(in crate::ui) struct FormerSchedule {
    /// The time of the correction.
    pub(in crate::ui) until: Timestamp,
    pub(in crate::ui) events: Vec<UnlockEvent>,
}

/// Returns the schedule before the last correction in `changes`. `None` if there is no correction, or if too many of the earlier
/// versions are deleted: a partial schedule would look like another correction.
pub(in crate::ui) fn schedule(versions: &[VersionRow], changes: &[ChangeRow]) -> Option<FormerSchedule> {
    let until = changes.iter().find(|row| is_correction(row))?.at;
    let mut known: HashMap<&RecordKey, Option<&UnlockEvent>> = HashMap::new();
    let mut first_seen: HashMap<&RecordKey, Timestamp> = HashMap::new();
    for row in versions.iter().filter(|row| row.resource == Resource::Unlock) {
        first_seen.entry(&row.key).or_insert(row.at);
        if row.at < until {
            let event = row.record.as_ref().and_then(Record::unlock);
            known.insert(&row.key, event);
        }
    }
    // A record without an earlier version is new in the correction, or its earlier versions are deleted.
    let unknown = first_seen.values().filter(|at| **at >= until).count();
    let events: Vec<UnlockEvent> = known.into_values().flatten().cloned().collect();
    (!events.is_empty() && unknown <= events.len()).then_some(FormerSchedule { until, events })
}

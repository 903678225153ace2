//! The values of the label `kind` of incidents.

use super::own::LASTING_KINDS;
use model::{Alert, IncidentKind};

/// The kind of an incident whose label is unknown.
const OTHER: &str = "other";

/// Returns the values that the label `kind` of an open incident can have.
pub fn incident_kinds() -> impl Iterator<Item = &'static str> {
    IncidentKind::all().map(IncidentKind::as_str).chain(LASTING_KINDS).chain([OTHER])
}

/// Returns the label `kind` of an open incident: one of [`incident_kinds`].
pub fn incident_kind(alert: &Alert) -> &'static str {
    let word = alert.labels.get("kind").map(String::as_str);
    incident_kinds().find(|kind| Some(*kind) == word).unwrap_or(OTHER)
}

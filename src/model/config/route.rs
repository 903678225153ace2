//! Who is notified of what: routes, inhibition, time intervals.

use serde::{Deserialize, Serialize};

use super::Span;

/// `[route]`, and each of its `routes`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Route {
    /// `label="value"`, with `=`, `!=`, `=~`, `!~`; all must hold. The root has none.
    pub matchers: Vec<String>,
    /// Who is notified; a child without any takes its parent's.
    pub receivers: Vec<String>,
    /// Root only: who hears of receivers that are dead.
    pub fallback: Vec<String>,
    /// Labels that make one group.
    pub group_by: Option<Vec<String>>,
    /// Wait for more before the first message of a group.
    pub group_wait: Option<Span>,
    /// Wait between messages of a group.
    pub group_interval: Option<Span>,
    /// Wait before a notification of what still fires is repeated.
    pub repeat_interval: Option<Span>,
    /// Not the root: notifies only within one of these `time_intervals`, else kept until then.
    pub active_time_intervals: Vec<String>,
    /// Not the root: kept until none of these `time_intervals` lasts.
    pub mute_time_intervals: Vec<String>,
    /// Go on to the next sibling after a match.
    #[serde(rename = "continue")]
    pub continue_: bool,
    /// Children, first match wins unless it says `continue`.
    pub routes: Vec<Route>,
}

/// One of `[[inhibit_rules]]`: while an alert fires that `source_matchers` take, those that `target_matchers` take are suppressed, as
/// far as both have the same values of the labels in `equal`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct InhibitRule {
    /// For people.
    pub name: Option<String>,
    /// What must fire.
    pub source_matchers: Vec<String>,
    /// What is then suppressed.
    pub target_matchers: Vec<String>,
    /// Labels that both must share; a missing one counts as empty.
    pub equal: Vec<String>,
}

/// One of `[[time_intervals]]`: a name for times.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeIntervals {
    /// Unique; routes refer to it.
    pub name: String,
    /// It lasts while one of these does.
    pub time_intervals: Vec<TimeInterval>,
}

/// A time that comes again: every key that is given must fit.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeInterval {
    pub times: Vec<TimeRange>,
    /// `monday`, `sat`, `mon:fri`.
    pub weekdays: Vec<String>,
    /// `1`, `1:5`, `-3:-1` (from the end of the month).
    pub days_of_month: Vec<String>,
    /// `january`, `3`, `june:august`.
    pub months: Vec<String>,
    /// `2026`, `2026:2028`.
    pub years: Vec<String>,
    /// IANA zone; UTC if not given.
    pub location: Option<String>,
}

/// From `start_time` to `end_time`, which is not part of it; both `HH:MM`, the latter up to `24:00`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeRange {
    pub start_time: String,
    pub end_time: String,
}

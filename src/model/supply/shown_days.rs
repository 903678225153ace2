//! The days that the source shows of a schedule, and what they hide.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The visibility window of a schedule, as its responses showed it, stored in the header of its feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ShownDays {
    /// The first shown day. `None` if no edge behind is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_from: Option<NaiveDate>,
    /// The last shown day. `None` if no edge ahead is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_until: Option<NaiveDate>,
    /// The number of known events before the first shown day. They are not compared any more.
    #[serde(skip_serializing_if = "is_zero")]
    pub older_kept: u32,
    /// The number of events that came into view, and so were not reported as added.
    #[serde(skip_serializing_if = "is_zero")]
    pub came_into_view: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl ShownDays {
    /// Returns the window that is stored in the header of a schedule's feed. `None` if the source shows all days, as far as known.
    #[must_use]
    pub fn of_header(header: &Value) -> Option<Self> {
        Self::deserialize(header).ok().filter(|shown| *shown != Self::default())
    }
}

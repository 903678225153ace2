//! The outcome of an alert that ended: what happened to its subject.

use chrono::Datelike;

use super::{amount, duration, usd, when};
use crate::{Interval, Resource, Timestamp};

/// The subject moved beyond the lead time: `moved to 12 Mar 2027, outside the lead time of 7 days`.
pub fn moved_to(due: Option<&Interval>, longest_lead: Option<chrono::TimeDelta>) -> String {
    let Some(due) = due else { return "no longer has a date".to_owned() };
    let when = when(due);
    let date = when.strip_prefix("on ").or_else(|| when.strip_prefix("in ")).unwrap_or(&when);
    let outside = longest_lead.map(|lead| format!(", outside the lead time of {}", duration(lead))).unwrap_or_default();
    format!("moved to {date}{outside}")
}

/// The source removed the subject.
pub fn removed_from(resource: Option<Resource>) -> &'static str {
    match resource {
        Some(Resource::Unlock) | None => "removed from the schedule",
        Some(_) => "removed by the source",
    }
}

/// A burn or buyback that ended an alert about the lack of one: `buyback of 1.25M on 23 Nov ended this`.
pub fn ended_by(event: &str, at: Timestamp, tokens: Option<f64>, value_usd: Option<f64>, now: Timestamp) -> String {
    let size = tokens.map(amount).or_else(|| value_usd.map(usd)).map(|size| format!(" of {size}")).unwrap_or_default();
    let date = at.format(if at.year() == now.year() { "%-d %b" } else { "%-d %b %Y" });
    format!("{event}{size} on {date} ended this")
}

/// The condition is false. `mismatch` is the comparison that failed, if known: `no longer matches: cliffValue is $4.10M`.
pub fn no_longer_matches(mismatch: Option<&str>) -> String {
    let mismatch = mismatch.map(|mismatch| format!(": {mismatch}")).unwrap_or_default();
    format!("no longer matches{mismatch}")
}

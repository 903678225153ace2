//! The unlocks before and after the unlock of an alert.

use serde_json::Value;

use model::{AlertBody, ChangeKind, Interval, Precision, SeriesPoint, Timestamp, phrase};

const SCHEDULE_BEFORE: usize = 2;
const SCHEDULE_AFTER: usize = 5;

/// Returns the date of the alert's record, or `None` if its schedule has no such date.
pub(crate) fn own_date(body: &AlertBody) -> Option<Timestamp> {
    let date = body.record.as_ref()?.get("unlockDate")?.as_str()?;
    model::wire::parse_timestamp(date).filter(|date| body.series.iter().any(|point| point.at == *date))
}

/// Formats a date with its own precision: `16 Mar 2026`, `~16 Mar 2026`.
pub(crate) fn date_of(point: &SeriesPoint) -> String {
    Interval::of(point.at, point.precision.max(Precision::Day)).as_ref().map(phrase::short_date).unwrap_or_default()
}

/// The smallest part of an unlock that is more than a rounding.
const MIN_REST: f64 = 1e-6;

/// Returns the tokens that were removed from the alert's own unlock, in one allocation or in several. `None` if the change is not a removal.
fn removed_tokens(body: &AlertBody) -> Option<f64> {
    let change = body.change.as_ref().filter(|change| change.kind == ChangeKind::Removed)?;
    if let (1, Some(amount)) = (change.count, change.amount) {
        return Some(amount);
    }
    let items = body.record.as_ref()?.pointer("/cliffUnlocks/allocationBreakdown").and_then(Value::as_array)?;
    let is_removed = |item: &&Value| {
        let name = item.get("allocationName").and_then(Value::as_str).unwrap_or_default();
        change.allocations.iter().any(|allocation| allocation.name == name)
    };
    Some(items.iter().filter(is_removed).filter_map(|item| item.get("cliffAmount")?.as_f64()).sum())
}

/// Returns what is left of an unlock: `34.93M tokens (9.33M removed)`, or `removed`.
fn left_of(amount: f64, removed: f64) -> String {
    let rest = amount - removed;
    if removed <= 0.0 || rest <= amount * MIN_REST {
        return "removed".to_owned();
    }
    format!("{} tokens ({} removed)", phrase::amount(rest), phrase::amount(removed))
}

/// Returns date, tokens, and whether it is the alert's own unlock, for the unlocks around it.
pub(super) fn schedule(body: &AlertBody) -> Vec<(String, String, bool)> {
    let Some(own) = own_date(body) else { return Vec::new() };
    let at = body.series.iter().position(|point| point.at == own).unwrap_or_default();
    let removed = removed_tokens(body);
    let row = |point: &SeriesPoint| {
        let tokens = match removed.filter(|_| point.at == own) {
            Some(removed) => left_of(point.amount, removed),
            None => format!("{} tokens", phrase::amount(point.amount)),
        };
        (date_of(point), tokens, point.at == own)
    };
    let shown = SCHEDULE_BEFORE.min(at) + 1 + SCHEDULE_AFTER;
    let rows: Vec<_> = body.series.iter().skip(at.saturating_sub(SCHEDULE_BEFORE)).take(shown).map(row).collect();
    // A single row would only repeat the facts.
    if rows.len() > 1 { rows } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use model::{AllocationChange, Change, Resource};
    use testkit::time;

    #[test]
    fn removed_tokens_are_not_shown_as_coming() {
        let record = json!({"unlockDate": "2026-06-18T00:00:00Z", "cliffUnlocks": {"cliffAmount": 44.26e6, "allocationBreakdown": [
            {"allocationName": "Treasury", "cliffAmount": 34.93e6}, {"allocationName": "Advisors", "cliffAmount": 9.33e6},
        ]}});
        let point = |at: &str| SeriesPoint { at: time(at), amount: 44.26e6, precision: Precision::Month };
        let shown = |names: &[&str], count| {
            let allocations =
                names.iter().map(|name| AllocationChange { name: (*name).to_owned(), ..AllocationChange::default() });
            let body = AlertBody {
                record: Some(record.clone()),
                series: vec![point("2026-05-18"), point("2026-06-18")],
                change: Some(Change {
                    amount: Some(9.33e6),
                    count,
                    allocations: allocations.collect(),
                    ..Change::of(ChangeKind::Removed, Resource::Unlock, &"zetachain".into())
                }),
                ..AlertBody::firing("al_1".into(), "ScheduleChanged", "removed", time("2026-04-06"))
            };
            schedule(&body).into_iter().map(|(date, tokens, _)| format!("{date}: {tokens}")).collect::<Vec<_>>()
        };
        assert_eq!(shown(&["Advisors"], 1), ["~18 May 2026: 44.26M tokens", "~18 Jun 2026: 34.93M tokens (9.33M removed)"]);
        assert_eq!(shown(&["Advisors"], 2), ["~18 May 2026: 44.26M tokens", "~18 Jun 2026: 34.93M tokens (9.33M removed)"]);
        assert_eq!(shown(&["Advisors", "Treasury"], 2), ["~18 May 2026: 44.26M tokens", "~18 Jun 2026: removed"]);
    }
}

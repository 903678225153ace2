use chrono::TimeDelta;
use serde_json::json;

use super::*;

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn coverage(header: &Value) -> SupplyCoverage {
    let at = Some(time("2026-11-26T00:00:00Z"));
    supply_coverage(Some(&FeedState { baseline_at: at, read_at: at, ..FeedState::default() }), Some(header))
}

fn known(known: KnownSupply, until: Option<&str>) -> SupplyCoverage {
    SupplyCoverage { known, linear_until: until.map(time) }
}

#[test]
fn coverage_distinguishes_unread_cliffs_and_limited_linear_supply() {
    assert_eq!(supply_coverage(None, None).known, KnownSupply::None);
    assert_eq!(supply_coverage(Some(&FeedState::default()), Some(&json!({"shownLinear": true}))).known, KnownSupply::None);
    assert_eq!(coverage(&json!({"shownLinear": false})), known(KnownSupply::Cliffs, None));
    assert_eq!(coverage(&json!({"shownLinear": true})), known(KnownSupply::All, None));
    let read = |version: Option<u8>| match version {
        Some(version) => json!({"at": "2026-11-20T00:00:00Z", "mark": null, "version": version}),
        None => json!({"at": "2026-11-20T00:00:00Z", "mark": null}),
    };
    let notes = |read: Value, needs: Option<bool>, ahead: Option<Value>| {
        let mut notes = json!({"shownLinear": true, "segmentsRead": read});
        if let Some(needs) = needs {
            notes["needsAhead"] = json!(needs);
        }
        if let Some(ahead) = ahead {
            notes["linearAhead"] = ahead;
        }
        notes
    };
    let of_read = known(KnownSupply::All, Some("2026-11-20T00:00:00Z"));
    assert_eq!(coverage(&notes(read(Some(1)), Some(false), None)), known(KnownSupply::All, None));
    assert_eq!(coverage(&notes(read(Some(3)), Some(true), None)), of_read);
    assert_eq!(coverage(&notes(read(None), None, None)), of_read, "stored by a program that read only v3");
    let ahead = json!({"readAt": "2026-11-20T00:00:00Z", "until": "2027-02-27T00:00:00Z", "runs": []});
    let until = known(KnownSupply::All, Some("2027-02-27T00:00:00Z"));
    assert_eq!(coverage(&notes(read(Some(3)), Some(true), Some(ahead))), until);
    assert_eq!(coverage(&notes(read(Some(3)), Some(true), Some(json!("damaged")))), of_read);
}

#[test]
fn stored_runs_are_bounded_and_valid() {
    let run = |per_day: Value, end: &str| json!({"allocation": "Team", "start": "2026-11-26", "end": end, "perDay": per_day});
    let mut runs = vec![run(json!(-1.0), "2026-11-27"), run(json!(5.0), "2026-11-25"), run(json!(5.0), "2026-11-28")];
    let header = |runs: &[Value]| json!({"linearAhead": {"readAt": "2026-11-26T00:00:00Z", "until": "2027-02-27T00:00:00Z", "runs": runs}});
    let ahead = LinearAhead::of_header(&header(&runs)).expect("an emission");
    assert_eq!(ahead.runs.len(), 1);
    let [run_of_two_days] = &ahead.runs[..] else { panic!("one run") };
    let begin = time("2026-11-27T12:00:00Z");
    assert!((run_of_two_days.amount_between(begin, begin + TimeDelta::days(30)) - 2.5).abs() < 1e-9);
    assert!(run_of_two_days.amount_between(begin, begin).abs() < 1e-9);
    runs.extend((0..1000).map(|_| run(json!(1.0), "2026-11-27")));
    assert_eq!(LinearAhead::of_header(&header(&runs)).map(|ahead| ahead.runs.len()), Some(MAX_LINEAR_RUNS));
    assert_eq!(LinearAhead::of_header(&json!({"linearAhead": {"runs": 5}})), None);
    let ahead = serde_json::to_value(&ahead).expect("JSON");
    assert_eq!(ahead["runs"][0], run(json!(5.0), "2026-11-28"), "written as read");
}

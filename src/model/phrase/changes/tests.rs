use serde_json::{Value, json};

use super::*;
use crate::{AllocationChange, AllocationSchedule, Precision, wire::parse_timestamp};

fn time(text: &str) -> Timestamp {
    parse_timestamp(text).expect("a timestamp")
}

fn cliff(allocation: &str, amount: f64, at: &str) -> TrancheFacts {
    TrancheFacts {
        allocation: allocation.to_owned(),
        amount: Some(amount),
        at: Some(time(at)),
        end: None,
        precision: Precision::Day,
        is_linear: false,
    }
}

fn linear(allocation: &str, amount: f64, at: &str, end: &str) -> TrancheFacts {
    TrancheFacts { end: Some(time(end)), is_linear: true, ..cliff(allocation, amount, at) }
}

fn dates(from: &str, to: &str) -> DateChange {
    DateChange { from: (Some(time(from)), Precision::Day), to: (Some(time(to)), Precision::Day) }
}

fn field(field: &str, from: Value, to: Value) -> FieldChange {
    FieldChange { field: field.to_owned(), from, to }
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

fn shares(all: &[(&str, f64)]) -> Vec<(String, f64)> {
    all.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect()
}

#[track_caller]
fn assert_summary(clause: ChangeClause, expected: &str) {
    let unit = ScheduleUnit { symbol: Some("ARB"), max_supply: Some(1_000.0) };
    assert_eq!(summary(&[clause], &unit), expected);
}

#[test]
fn added_and_removed_tranches_state_amount_and_dates() {
    let tranches = vec![cliff("Team", 20.0, "2026-03-16"), cliff("Team", 10.0, "2026-04-16")];
    assert_summary(
        ChangeClause::Added { tranches: tranches.clone(), rest: None },
        "added: 30 ARB of Team (3.00% of max supply), 2 tranches, between 16 Mar 2026 and 16 Apr 2026",
    );
    assert_summary(
        ChangeClause::Removed { tranches: tranches[..1].to_vec(), last_visible_day: None, rest: None },
        "removed: 20 ARB of Team (2.00% of max supply), on 16 Mar 2026",
    );
    assert_summary(
        ChangeClause::Removed { tranches: tranches[..1].to_vec(), last_visible_day: Some(time("2027-03-01")), rest: Some(7.0) },
        "removed: 20 ARB of Team (2.00% of max supply), on 16 Mar 2026, or moved to a date after 1 Mar 2027, which the API plan does not show; the other 7 of that unlock remain",
    );
    assert_summary(ChangeClause::EventRemoved { date: Some(time("2026-03-16")) }, "removed: the event of 16 Mar 2026");
    assert_summary(ChangeClause::EventRemoved { date: None }, "removed: an event without a date");
}

#[test]
fn moves_state_dates_and_shift() {
    let tranches = vec![cliff("Team", 20.0, "2026-03-20")];
    let moved = |shift_days| ChangeClause::EventMoved {
        tranches: tranches.clone(),
        dates: dates("2026-03-16", "2026-03-20"),
        shift_days,
    };
    assert_summary(moved(Some((4.0, 4.0))), "20 ARB of Team (2.00% of max supply) moved from 16 to 20 Mar 2026 (+4 days)");
    assert_summary(moved(None), "20 ARB of Team (2.00% of max supply) moved from 16 to 20 Mar 2026");
    assert_summary(
        ChangeClause::EventMoved {
            tranches: vec![linear("Team", 20.0, "2026-03-20", "2027-03-20")],
            dates: dates("2026-03-16", "2026-03-20"),
            shift_days: Some((4.0, 4.0)),
        },
        "linear unlock of 20 ARB of Team (2.00% of max supply) moved from 16 to 20 Mar 2026 (+4 days)",
    );
    let series = |is_whole_schedule, is_next| ChangeClause::SeriesMoved {
        tranches: vec![cliff("Team", 20.0, "2026-03-20"), cliff("Farm", 5.0, "2026-04-20")],
        is_whole_schedule,
        shift_days: Some((30.0, 33.0)),
        months: None,
        example: dates("2026-02-18", "2026-03-20"),
        is_next,
    };
    assert_summary(
        series(true, true),
        "the whole schedule (25) moved by +30 to +33 days; the next unlock moves from 18 Feb 2026 to 20 Mar 2026",
    );
    assert_summary(
        series(false, false),
        "25 ARB of Team and Farm (2.50% of max supply), 2 tranches, moved by +30 to +33 days; the first of them moves from 18 Feb 2026 to 20 Mar 2026",
    );
    let tranches = TranchesChange {
        before: vec![linear("Team", 30.0, "2026-04-16", "2027-04-16")],
        after: vec![linear("Team", 30.0, "2026-04-16", "2028-04-16")],
    };
    assert_summary(
        ChangeClause::EndMoved { tranches, from: time("2027-04-16"), to: time("2028-04-16"), shift_days: 366.0 },
        "30 ARB of Team (3.00% of max supply): linear unlock until 16 Apr 2028 instead of 16 Apr 2027 (+366 days), from 16 Apr 2026 as before, 1.25 \
         per month instead of 2.50 per month",
    );
    let tranches = TranchesChange {
        before: vec![linear("Team", 30.0, "2026-04-16", "2028-04-16")],
        after: vec![linear("Team", 30.0, "2027-04-16", "2028-04-16")],
    };
    assert_summary(
        ChangeClause::StartMoved { tranches, from: time("2026-04-16"), to: time("2027-04-16"), shift_days: (365.0, 365.0) },
        "30 ARB of Team (3.00% of max supply): linear unlock from 16 Apr 2027 on instead of 16 Apr 2026 (+365 days), until 16 Apr 2028 as before, \
         2.49 per month instead of 1.25 per month",
    );
}

#[test]
fn amount_changes_state_both_amounts() {
    let tranches = |from, to| TranchesChange {
        before: vec![cliff("Team", from, "2026-03-16")],
        after: vec![cliff("Team", to, "2026-03-16")],
    };
    assert_summary(
        ChangeClause::Resized { tranches: tranches(10.0, 5.0), ratio: Some(0.5), rest: Some(7.0) },
        "Team resized from 10 to 5 (×0.5), on 16 Mar 2026; the other 7 of that unlock remain",
    );
    let removed = TranchesChange { after: Vec::new(), ..tranches(10.0, 5.0) };
    assert_summary(
        ChangeClause::Resized { tranches: removed, ratio: None, rest: None },
        "Team (10) taken out of the unlock on 16 Mar 2026",
    );
    let added = TranchesChange { before: Vec::new(), ..tranches(10.0, 5.0) };
    assert_summary(
        ChangeClause::Resized { tranches: added, ratio: None, rest: None },
        "Team (5) added to the unlock on 16 Mar 2026",
    );
    assert_summary(
        ChangeClause::Rescaled { allocations: texts(&["Farm", "Team"]), tranches: 48, ratio: 20.0, from: 5.0, to: 100.0 },
        "48 tranches of Farm and Team resized ×20, from 5 to 100 in total",
    );
    assert_summary(
        ChangeClause::Reallocated {
            amount: 15.0,
            from: shares(&[("Team", 15.0)]),
            to: shares(&[("Farm", 15.0)]),
            tranches: None,
        },
        "15 ARB of Team (1.50% of max supply) now go to Farm",
    );
    let to = shares(&[("Farm", 2.0), ("Core", 4.0), ("A", 1.0), ("B", 1.0), ("Seed", 7.0)]);
    assert_summary(
        ChangeClause::Reallocated { amount: 15.0, from: shares(&[("Team", 5.0), ("Reserve", 10.0)]), to, tranches: None },
        "15 ARB of Reserve (10) and Team (5) (1.50% of max supply) now go to Seed (7), Core (4), Farm (2), and 2 more (2)",
    );
    for (of, expected) in [
        (SupplyTotal::MaxSupply, "maximum supply changed from 100 to 120 (×1.2)"),
        (SupplyTotal::Allocations, "total of the allocations changed from 100 to 120 (×1.2)"),
    ] {
        assert_summary(ChangeClause::SupplyChanged { of, from: 100.0, to: 120.0, ratio: Some(1.2) }, expected);
    }
}

#[test]
fn new_timing_states_that_the_total_is_unchanged() {
    let one = vec![cliff("Team", 30.0, "2026-03-16")];
    let two = vec![cliff("Team", 10.0, "2026-03-16"), cliff("Team", 20.0, "2026-04-16")];
    assert_summary(
        ChangeClause::SplitOrMerged(TranchesChange { before: one.clone(), after: two }),
        "Team: 30 ARB on 16 Mar 2026 were split into 10 ARB on 16 Mar 2026 and 20 ARB on 16 Apr 2026",
    );
    let after = vec![linear("Team", 30.0, "2026-03-16", "2027-03-16")];
    assert_summary(
        ChangeClause::Restructured(TranchesChange { before: one, after }),
        "Team: ends on 16 Mar 2027 instead of 16 Mar 2026, linearly at 2.50 per month instead of in one cliff; the total of \
         30 ARB (3.00% of max supply) is unchanged",
    );
    let schedule = |total, end: &str| AllocationSchedule {
        total: Some(total),
        begin: Some(time("2026-03-01")),
        end: Some(time(end)),
        ..AllocationSchedule::default()
    };
    let rewrite = |name: &str| {
        let (before, after) = match name {
            "Team" => (Some(schedule(40.0, "2028-01-01")), Some(schedule(50.0, "2030-01-01"))),
            "Investors" => (Some(schedule(120.0, "2027-01-01")), None),
            "Core" => (None, Some(schedule(690.0, "2029-01-01"))),
            _ => (Some(schedule(1.0, "2027-01-01")), Some(schedule(2.0, "2027-01-01"))),
        };
        AllocationRewrite::of(&AllocationChange { name: name.to_owned(), before, after, ..AllocationChange::default() })
    };
    let brief = |events, end: &str| ScheduleBrief { total: 420.0, events, end: Some(time(end)), ..ScheduleBrief::default() };
    assert_summary(
        ChangeClause::Rewritten {
            before: brief(30, "2028-01-01"),
            after: brief(1, "2030-01-01"),
            allocations: ["Team", "Investors", "Core", "Farm"].map(rewrite).to_vec(),
            renamed: vec![("Seed".to_owned(), "Round A".to_owned())],
        },
        "schedule rewritten: 1 event instead of 30, 420 tokens in total as before, ends on 1 Jan 2030 instead of 1 Jan 2028; Core added \
         (690 until 1 Jan 2029); Investors removed (120 until 1 Jan 2027); Team 50 until 1 Jan 2030 instead of 40 until 1 Jan 2028; 1 other \
         allocation changed as well; Seed renamed Round A",
    );
}

#[test]
fn renames_state_both_names() {
    let renamed = |names: &[(&str, &str)], categories: &[(&str, &str)]| ChangeClause::Renamed {
        names: names.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect(),
        categories: categories
            .iter()
            .map(|(from, to)| CategoryChange { allocations: texts(&["Farm"]), from: (*from).to_owned(), to: (*to).to_owned() })
            .collect(),
        amounts: vec![40.0, 25.0],
        tranches: 12,
    };
    assert_summary(renamed(&[("Team", "Core")], &[]), "Team renamed Core (12 tranches)");
    assert_summary(
        renamed(&[("Team", "Core"), ("Core", "Team")], &[]),
        "Team (40) is now called Core, and Core (25) is now called Team (12 tranches)",
    );
    assert_summary(
        renamed(&[("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")], &[]),
        "4 allocations renamed: a → b; c → d; e → f and 1 more (12 tranches)",
    );
    assert_summary(renamed(&[], &[("Treasury", "Community")]), "Farm filed under Community instead of Treasury (12 tranches)");
    assert_summary(
        ChangeClause::AllocationsRelisted { from: shares(&[("Team", 5.0), ("Seed", 10.0)]), to: shares(&[("Insiders", 15.0)]) },
        "Seed (10) and Team (5) are now listed as Insiders; the total of 15 ARB (1.50% of max supply) is unchanged",
    );
    assert_summary(
        ChangeClause::AllocationsRelisted { from: shares(&[("Insiders", 15.0)]), to: shares(&[("Team", 5.0), ("Seed", 10.0)]) },
        "Insiders is now listed as Seed (10) and Team (5); the total of 15 ARB (1.50% of max supply) is unchanged",
    );
    assert_summary(
        ChangeClause::Relisted { name: "Alpha".into(), from: "alpha".into(), to: "omega".into() },
        "the source lists Alpha as omega now, no longer as alpha",
    );
}

#[test]
fn fields_and_claims_state_the_new_value() {
    let fields = ["a", "b", "c", "d"].map(|name| field(name, Value::Null, json!(30.0))).to_vec();
    assert_summary(
        ChangeClause::FieldsRevised { fields, events: 2, is_only_change: true },
        "a is now 30; b is now 30; c is now 30 (2 events)",
    );
    let fields = vec![field("dataSource", json!("x"), json!("y"))];
    assert_summary(
        ChangeClause::FieldsRevised { fields, events: 1, is_only_change: true },
        "no date or amount changed; source of the schedule changed from x to y",
    );
    let link = |end: &str| json!(format!("https://example.gitbook.io/protocol-documentation/token/tokenomics{end}"));
    let fields = vec![field("dataSource", link(""), link("-v2"))];
    assert_summary(
        ChangeClause::FieldsRevised { fields, events: 1, is_only_change: false },
        "source of the schedule changed from …token/tokenomics to …token/tokenomics-v2",
    );
    let tranches = vec![cliff("Team", 30.0, "2026-05-01")];
    let claim = |from, at| ChangeClause::Committed {
        allocations: texts(&["Team"]),
        from,
        to: Some(20.0),
        at,
        tranches: tranches.clone(),
    };
    assert_summary(
        claim(None, Some(time("2026-04-16"))),
        "project announced on 16 Apr 2026 that it will release 20 of Team; the schedule still says 30 ARB of Team (3.00% of max supply), on 1 May 2026",
    );
    assert_summary(
        claim(Some(5.0), None),
        "project announced that it will release 20 instead of 5 of Team; the schedule still says 30 ARB of Team (3.00% of max supply), on 1 May 2026",
    );
}

#[test]
fn rows_are_named_by_date_or_key() {
    let rows = |count, date: Option<&str>| RowSubject { noun: "burn", count, date: date.map(time), key: "Q1".to_owned() };
    for (rows, change, expected) in [
        (
            rows(1, Some("2026-02-01")),
            RowChange::Restated { from: 7.0, to: 14.0, ratio: Some(2.0) },
            "burn of 1 Feb 2026 restated from 7 to 14 (×2)",
        ),
        (rows(1, None), RowChange::Resized { from: 40.0, to: 60.0, ratio: None }, "burn Q1 resized from 40 to 60"),
        (rows(3, Some("2026-02-01")), RowChange::Added { amount: Some(9.0) }, "added: 3 burns from 1 Feb 2026 on, 9"),
        (rows(3, None), RowChange::Removed { amount: None }, "removed: 3 burns, Q1 among them"),
        (rows(3, None), RowChange::Other, "3 burns, Q1 among them, revised"),
        (rows(3, None), RowChange::Fields("burnType".into()), "3 burns, Q1 among them, burnType changed"),
        (rows(3, None), RowChange::Fields("standardAllocationName".into()), "3 burns, Q1 among them, category changed"),
        (rows(3, None), RowChange::Fields("allocationName".into()), "3 burns, Q1 among them, renamed"),
        (
            rows(1, None),
            RowChange::Field(field("allocationName", json!("Comunity"), json!("Community"))),
            "burn Q1 renamed from Comunity",
        ),
        (rows(1, None), RowChange::Field(field("type", Value::Null, json!("x"))), "burn Q1 type is now x"),
    ] {
        assert_summary(ChangeClause::Rows { rows, change }, expected);
    }
}

#[test]
fn clauses_are_joined_in_order() {
    let clauses = [
        ChangeClause::EventRemoved { date: None },
        ChangeClause::SomeEndsMoved { segments: 2, dates: dates("2026-03-16", "2026-05-20") },
    ];
    assert_eq!(
        summary(&clauses, &ScheduleUnit::default()),
        "removed: an event without a date; the end of 2 linear unlocks moved from 16 Mar 2026 to 20 May 2026"
    );
    assert_eq!(summary(&[], &ScheduleUnit::default()), "");
}

#[test]
fn month_of_an_imprecise_date_is_not_shown_as_a_day() {
    let month = |at: &str| (Some(time(at)), Precision::Month);
    let day = |at: &str| (Some(time(at)), Precision::Day);
    let text = |from, to| DateChange { from, to }.text();
    assert_eq!(text(month("2026-03-01"), day("2026-03-16")), "from March 2026 to 16 Mar 2026");
    assert_eq!(text(day("2026-03-16"), month("2026-03-01")), "from 16 Mar 2026 to March 2026");
    assert_eq!(text(month("2026-03-01"), day("2026-03-01T13:00:00Z")), "from March 2026 to 1 Mar 2026");
    assert_eq!(text(month("2026-03-01"), month("2026-03-16")), "from 1 to 16 Mar 2026", "the month alone shows no change");
    assert_eq!(text(month("2026-03-01"), month("2026-03-01T04:00:00Z")), "within March 2026");
    assert_eq!(text(day("2026-03-16"), day("2026-03-20")), "from 16 to 20 Mar 2026");
    let undecided = (Some(time("2026-03-01")), Precision::ToBeDetermined);
    assert_eq!(text(undecided, day("2026-03-01T13:00:00Z")), "from a date to be determined to 1 Mar 2026");

    let segment = |end: &str| TrancheFacts { precision: Precision::Month, ..linear("Team", 100.0, "2026-03-01", end) };
    let tranches = TranchesChange { before: vec![segment("2027-06-01")], after: vec![segment("2031-06-01")] };
    let ends = ChangeClause::EndMoved {
        tranches: tranches.clone(),
        from: time("2027-06-01"),
        to: time("2031-06-01"),
        shift_days: 1461.0,
    };
    assert_summary(
        ends,
        "100 ARB of Team (10.00% of max supply): linear unlock until June 2031 instead of June 2027 (+1461 days), from March 2026 as \
         before, 1.59 per month instead of 6.66 per month",
    );
    assert_summary(
        ChangeClause::Restructured(tranches.clone()),
        "Team: ends in June 2031 instead of June 2027, 1.59 per month instead of 6.66 per month; the total of 100 ARB (10.00% of max \
         supply) is unchanged",
    );
    assert_summary(
        ChangeClause::Added { tranches: tranches.after, rest: None },
        "added: 100 ARB of Team (10.00% of max supply), linearly between March 2026 and June 2031",
    );
}

#[test]
fn unknown_amounts_are_not_zero() {
    let unknown = |end: &str| TrancheFacts { amount: None, ..linear("Team", 0.0, "2026-03-01", end) };
    let tranches = TranchesChange { before: vec![unknown("2026-04-01")], after: vec![unknown("2026-09-01")] };
    let ends = ChangeClause::EndMoved { tranches, from: time("2026-04-01"), to: time("2026-09-01"), shift_days: 153.0 };
    assert_summary(ends, "Team: linear unlock until 1 Sep 2026 instead of 1 Apr 2026 (+153 days), from 1 Mar 2026 as before");
    let moved = ChangeClause::SeriesMoved {
        tranches: vec![TrancheFacts { amount: None, ..cliff("Team", 0.0, "2026-03-20") }],
        is_whole_schedule: true,
        shift_days: Some((4.0, 4.0)),
        months: None,
        example: dates("2026-03-16", "2026-03-20"),
        is_next: true,
    };
    assert_summary(moved, "the whole schedule moved by +4 days; the next unlock moves from 16 to 20 Mar 2026");
    let tranches = TranchesChange { before: vec![unknown("2026-04-01")], after: vec![unknown("2026-09-01")] };
    assert_summary(ChangeClause::Restructured(tranches), "Team: ends on 1 Sep 2026 instead of 1 Apr 2026");
}

#[test]
fn different_totals_have_enough_digits() {
    let brief = |total: f64| ScheduleBrief { total, events: 3, end: Some(time("2028-01-01")), ..ScheduleBrief::default() };
    assert_eq!(
        rewritten(&brief(1_230_000_000.0), &brief(1_234_000_000.0)),
        "schedule rewritten: 3 events as before, 1,234,000,000 tokens in total instead of 1,230,000,000, ends on 1 Jan 2028 as before"
    );
    assert!(rewritten(&brief(420.0), &brief(420.000_000_01)).contains("420 tokens in total as before"));
}

#[test]
fn amounts_that_change_places_keep_their_dates() {
    let before = vec![cliff("Team", 10.0, "2026-03-16"), cliff("Team", 10.0, "2026-05-16")];
    let after = vec![cliff("Team", 12.0, "2026-03-16"), cliff("Team", 8.0, "2026-05-16")];
    assert_summary(
        ChangeClause::Restructured(TranchesChange { before, after }),
        "Team: 12 on 16 Mar 2026 instead of 10, then 8 on 16 May 2026 instead of 10; same dates and total (20 ARB, 2.00% of max supply)",
    );
}

#[test]
fn each_of_a_few_allocations_has_its_dates() {
    let tranches = vec![cliff("Team", 20.0, "2026-03-16"), cliff("Farm", 5.0, "2027-05-01"), cliff("Farm", 5.0, "2027-06-01")];
    assert_summary(
        ChangeClause::Added { tranches, rest: None },
        "added: 20 ARB of Team (2.00% of max supply), on 16 Mar 2026; 10 ARB of Farm (1.00% of max supply), 2 tranches, between 1 May 2027 and \
         1 Jun 2027",
    );
    let alike = vec![cliff("Team", 20.0, "2026-03-16"), cliff("Farm", 5.0, "2026-03-16")];
    assert_summary(
        ChangeClause::Removed { tranches: alike, last_visible_day: None, rest: None },
        "removed: 25 ARB of Team and Farm (2.50% of max supply), 2 tranches, on 16 Mar 2026",
    );
}

#[test]
fn transfer_states_both_dates_if_they_differ() {
    let transfer = |to: &str, kept: (f64, &str)| ChangeClause::Reallocated {
        amount: 5.0,
        from: shares(&[("Team", 5.0)]),
        to: shares(&[("Seed", 5.0)]),
        tranches: Some(TranchesChange {
            before: vec![cliff("Team", 20.0, "2026-05-11")],
            after: vec![cliff("Team", kept.0, kept.1), cliff("Seed", 5.0, to)],
        }),
    };
    let text = "5 ARB of Team (0.50% of max supply) now go to Seed";
    assert_summary(transfer("2026-05-11", (15.0, "2026-05-11")), text);
    let dated = format!("{text}, on 11 Jun 2026 instead of on 11 May 2026");
    assert_summary(transfer("2026-06-11", (15.0, "2026-05-11")), &dated);
    // The giver has another date, too: only the dates of all are known to belong together.
    let ends = format!("{text}, starts on 11 Jun 2026 instead of 11 May 2026, ends on 11 Jul 2026 instead of 11 May 2026");
    assert_summary(transfer("2026-06-11", (15.0, "2026-07-11")), &ends);
}

#[test]
fn texts_of_different_amounts_and_instants_differ() {
    let change = |from: f64, to: f64, end: &str| TranchesChange {
        before: vec![cliff("Team", from, "2026-03-16")],
        after: vec![cliff("Team", to, end)],
    };
    assert_summary(
        ChangeClause::Resized { tranches: change(3_016_566_000.0, 3_017_000_000.0, "2026-03-16"), ratio: None, rest: None },
        "Team resized from 3,016,566,000 to 3,017,000,000, on 16 Mar 2026",
    );
    assert_summary(
        ChangeClause::Resized { tranches: change(10.0, 5.0, "2026-03-20"), ratio: None, rest: None },
        "Team resized from 10 to 5, on 20 Mar 2026 instead of 16 Mar 2026",
    );
    assert_eq!(
        dates("2026-03-16T23:00:00Z", "2026-03-17T01:00:00Z").text(),
        "from 16 Mar 2026, 23:00 UTC to 17 Mar 2026, 01:00 UTC"
    );
}

#[test]
fn other_amounts_on_the_same_dates_are_named_by_runs() {
    let quarterly = ["2026-05-11", "2026-08-11", "2026-11-11", "2027-02-11", "2027-05-11", "2027-08-11"];
    let with = |amounts: [f64; 6]| -> Vec<TrancheFacts> {
        let month = |tranche| TrancheFacts { precision: Precision::Month, ..tranche };
        quarterly.iter().zip(amounts).map(|(at, amount)| month(cliff("Sale", amount, at))).collect()
    };
    let text = |after| ChangeClause::Restructured(TranchesChange { before: with([56.25e3; 6]), after: with(after) });
    let front = [112.5e3, 45e3, 45e3, 45e3, 45e3, 45e3];
    assert_summary(
        text(front),
        "Sale: 112.50K in May 2026 instead of 56.25K, then 45.00K instead of 56.25K per quarter; same dates and total (337.50K ARB, 33750.00% of max supply)",
    );
    assert_summary(
        text([56.25e3, 45e3, 45e3, 56.25e3, 67.5e3, 67.5e3]),
        "Sale: 45.00K instead of 56.25K per quarter, then 67.50K instead of 56.25K per quarter; same dates and total (337.50K ARB, 33750.00% of \
         max supply)",
    );
    assert_summary(
        text([10e3, 20e3, 30e3, 40e3, 100e3, 137.5e3]),
        "Sale: 10.00K to 137.50K instead of 56.25K on 6 dates; same dates and total (337.50K ARB, 33750.00% of max supply)",
    );
    let gap = [60e3, 56.25e3, 60e3, 56.25e3, 52.5e3, 52.5e3];
    assert_summary(
        text(gap),
        "Sale: 60.00K in May 2026 instead of 56.25K, then 60.00K in November 2026 instead of 56.25K, then 52.50K instead of 56.25K per quarter; \
         same dates and total (337.50K ARB, 33750.00% of max supply)",
    );
}

#[test]
fn intervals_do_not_read_like_moves() {
    let linears = |from: f64, to: f64| TranchesChange {
        before: vec![linear("Inflation", from, "2022-06-28", "2026-06-28")],
        after: vec![linear("Inflation", to, "2022-06-28", "2026-06-28")],
    };
    let resized = |tranches, ratio| ChangeClause::Resized { tranches, ratio, rest: Some(7.0) };
    assert_summary(
        resized(linears(3.47e6, 1.74e6), Some(0.5)),
        "linear unlock of Inflation (28 Jun 2022 to 28 Jun 2026) resized from 3.47M to 1.74M (×0.5); the other 7 of that unlock remain",
    );
    let taken_out = TranchesChange { after: Vec::new(), ..linears(3.47e6, 0.0) };
    assert_summary(
        resized(taken_out, None),
        "linear unlock of Inflation (3.47M, 28 Jun 2022 to 28 Jun 2026) removed; the other 7 of that unlock remain",
    );
    let cliffs =
        TranchesChange { before: vec![cliff("Team", 5.0, "2026-05-01"), cliff("Team", 5.0, "2026-06-01")], after: Vec::new() };
    assert_summary(
        resized(cliffs, None),
        "Team (10) taken out of the unlocks between 1 May 2026 and 1 Jun 2026; the other 7 of that unlock remain",
    );
    // No date of an interval follows "from" and precedes "to".
    let restructured = TranchesChange {
        before: vec![linear("Foundation", 750.0, "2023-04-17", "2027-04-17")],
        after: vec![cliff("Foundation", 600.0, "2027-04-17")],
    };
    assert_summary(
        ChangeClause::Restructured(restructured),
        "Foundation: 600 ARB in one cliff on 17 Apr 2027 instead of 750 linearly at 15.62 per month, between 17 Apr 2023 and 17 Apr 2027",
    );
}

#[test]
fn same_period_is_said_after_the_new_pace() {
    let before = ["2026-05-10", "2026-08-10", "2026-11-10", "2027-02-10"].map(|at| cliff("Foundation", 10.0, at)).to_vec();
    let after = vec![linear("Foundation", 40.0, "2026-05-10", "2027-02-10")];
    assert_summary(
        ChangeClause::Restructured(TranchesChange { before, after }),
        "Foundation: linearly at 4.41 per month instead of 10 per quarter, from 10 May 2026 until 10 Feb 2027 as before; the total of 40 ARB \
         (4.00% of max supply) is unchanged",
    );
}

#[test]
fn months_and_withdrawn_dates_are_said() {
    let tranches = vec![cliff("Team", 20.0, "2026-06-20"), cliff("Team", 5.0, "2026-07-20")];
    let moved = |months| ChangeClause::SeriesMoved {
        tranches: tranches.clone(),
        is_whole_schedule: false,
        shift_days: Some((89.0, 92.0)),
        months: Some(months),
        example: dates("2026-03-20", "2026-06-20"),
        is_next: true,
    };
    let text = |by: &str| {
        format!(
            "25 ARB of Team (2.50% of max supply), 2 tranches, moved by {by}; the next of them moves from 20 Mar 2026 to 20 Jun 2026"
        )
    };
    assert_summary(moved(3), &text("+3 months"));
    assert_summary(moved(-1), &text("-1 month"));
    let withdrawn = ChangeClause::EventMoved {
        tranches: vec![TrancheFacts { at: None, ..cliff("Foundation", 20.0, "2028-01-17") }],
        dates: DateChange { from: (Some(time("2028-01-17")), Precision::Month), to: (None, Precision::Month) },
        shift_days: None,
    };
    assert_summary(withdrawn, "20 ARB of Foundation (2.00% of max supply): date withdrawn (was January 2028)");
}

#[test]
fn schedules_are_short_phrases() {
    let monthly = |first: u32, count: u32, each: f64| -> Vec<TrancheFacts> {
        let at = |k: u32| time("2026-06-05") + chrono::Months::new(first + k);
        (0..count)
            .map(|k| TrancheFacts { at: Some(at(k)), precision: Precision::Month, ..cliff("Team", each, "2026-06-05") })
            .collect()
    };
    let change = |before: &[TrancheFacts], after: &[TrancheFacts]| {
        let side = |tranches: &[TrancheFacts]| (!tranches.is_empty()).then(|| AllocationSchedule::of(tranches));
        let (was, is) = schedule_change(side(before).as_ref(), side(after).as_ref());
        format!("{was} -> {is}")
    };
    assert_eq!(
        change(&monthly(0, 36, 11.11e6), &monthly(3, 2, 200e6)),
        "399.96M, 36 monthly tranches of 11.11M, June 2026 to May 2029 -> 400.00M, 2 monthly tranches of 200.00M, September 2026 to October 2026"
    );
    let rewards = |end: &str, amount| vec![linear("Rewards", amount, "2024-04-11", end)];
    assert_eq!(
        change(&rewards("2034-04-11", 735e6), &rewards("2034-10-11", 771_830_504.0)),
        "735.00M, linear at 201.26K per day, 11 Apr 2024 to 11 Apr 2034 -> 771.83M, linear at 201.26K per day, 11 Apr 2024 to 11 Oct 2034"
    );
    let one = |at: &str| vec![cliff("Team", 250e6, at)];
    assert_eq!(change(&one("2026-05-20"), &one("2026-11-20")), "20 May 2026, 250.00M -> 20 Nov 2026, 250.00M");
    assert_eq!(
        change(&one("2026-05-20T12:00:00Z"), &one("2026-05-20T09:00:00Z")),
        "20 May 2026, 12:00 UTC, 250.00M -> 20 May 2026, 09:00 UTC, 250.00M"
    );
    assert_eq!(change(&one("2026-05-20"), &[]), "20 May 2026, 250.00M -> none");
    let mut unequal = monthly(0, 6, 45e3);
    unequal[0].amount = Some(112.5e3);
    assert_eq!(
        change(&monthly(0, 6, 56.25e3), &unequal),
        "337.50K, 6 monthly tranches of 56.25K, June 2026 to November 2026 -> 337.50K, 6 monthly tranches of 45.00K to 112.50K, June 2026 to \
         November 2026"
    );
    let mixed = [rewards("2025-04-11", 60.0), one("2024-05-11")].concat();
    assert_eq!(
        change(&[], &[mixed, rewards("2026-04-11", 40.0)].concat()),
        "none -> 250.00M, 250.00M in 1 cliff and 100 linear, 11 Apr 2024 to 11 Apr 2026"
    );
    assert_eq!(
        change(&[], &[TrancheFacts { at: None, amount: None, ..cliff("Team", 0.0, "2026-05-20") }]),
        "none -> no date, an unknown amount"
    );
}

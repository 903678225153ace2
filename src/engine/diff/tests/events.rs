//! Corrections of single events.

use super::*;

#[test]
fn moved_event_is_rescheduled_and_keeps_its_key() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0), ("Investors", 5.0)]);
    let mut after = before.clone();
    after[2].unlock_date = time("2026-03-20").into();
    let change = only(changes_of(&before, &after), ChangeKind::Rescheduled);
    assert_eq!(change.key, Some("2026-03-16".into()));
    assert_eq!(change.from, Some(Fact::Time(time("2026-03-16"))));
    assert_eq!(change.to, Some(Fact::Time(time("2026-03-20"))));
    assert!((days(&change) - 4.0).abs() < 1e-9);
    assert_eq!(change.summary, "15 tokens of Team and Investors moved from 16 to 20 Mar 2026 (+4 days)");
    assert_eq!(change.allocations.len(), 2);
    assert_eq!(change.count, 2);
}

#[test]
fn event_that_jumps_over_others_is_one_move() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let mut after = before.clone();
    after[2].unlock_date = time("2026-06-30").into();
    let change = only(changes_of(&before, &after), ChangeKind::Rescheduled);
    assert_eq!(change.key, Some("2026-03-16".into()));
    assert_eq!(change.to, Some(Fact::Time(time("2026-06-30"))));
}

#[test]
fn shift_of_hours_is_reported_in_hours() {
    let before = [event("2026-03-16T12:00:00Z", &[("Team", 10.0)])];
    let after = [event("2026-03-16T09:00:00Z", &[("Team", 10.0)])];
    let change = only(changes_of(&before, &after), ChangeKind::Rescheduled);
    assert!((days(&change) + 0.125).abs() < 1e-9);
    assert_eq!(change.summary, "10 tokens of Team moved from 16 Mar 2026, 12:00 UTC to 16 Mar 2026, 09:00 UTC (-3 h)");
}

#[test]
fn month_precision_move_is_reported_in_months() {
    let month = |at: &str| {
        let mut event = event(at, &[("Team", 10.0)]);
        event.cliff_unlocks.get_mut().expect("cliffs").allocation_breakdown.get_mut().expect("parts")[0].unlock_precision =
            "month".to_owned().into();
        event
    };
    let change = only(changes_of(&[month("2026-03-16")], &[month("2026-05-02")]), ChangeKind::Rescheduled);
    assert_eq!(change.summary, "10 tokens of Team moved from March 2026 to May 2026 (+47 days)");
    assert_eq!(month("2026-03-16").precision(), Precision::Month);
}

#[test]
fn past_event_is_corrected_like_any_other() {
    let before = monthly("2023-01-16", 12, &[("Team", 10.0)]);
    let mut after = before.clone();
    after[5] = event("2023-06-16", &[("Team", 12.0)]);
    let change = only(changes_of(&before, &after), ChangeKind::Resized);
    assert_eq!(change.key, Some("2023-06-16".into()));
    assert_eq!((change.from, change.to), (Some(Fact::Amount(10.0)), Some(Fact::Amount(12.0))));
    assert_eq!(change.summary, "Team resized from 10 to 12 (×1.2), on 16 Jun 2023");
}

#[test]
fn resized_share_is_reported_with_the_whole_event() {
    let before = [event("2026-04-16", &[("Team", 30.0), ("Investors", 10.0)])];
    let after = [event("2026-04-16", &[("Team", 30.0), ("Investors", 20.0)])];
    let change = only(changes_of(&before, &after), ChangeKind::Resized);
    assert_eq!((change.from, change.to, change.ratio), (Some(Fact::Amount(40.0)), Some(Fact::Amount(50.0)), Some(1.25)));
    assert_eq!(change.allocations.len(), 1);
    assert_eq!(change.allocations[0].ratio, Some(2.0));
}

#[test]
fn same_total_to_other_recipients_is_reallocated() {
    let before = [event("2026-04-16", &[("Team", 30.0), ("Investors", 10.0)]), event("2026-05-16", &[("Team", 1.0)])];
    let after = [event("2026-04-16", &[("Team", 25.0), ("Investors", 15.0)]), event("2026-05-16", &[("Team", 1.0)])];
    let change = only(changes_of(&before, &after), ChangeKind::Reallocated);
    assert_eq!(change.key, Some("2026-04-16".into()));
    let after =
        [event("2026-04-16", &[("Team", 30.0), ("Advisors", 4.0), ("Partners", 6.0)]), event("2026-05-16", &[("Team", 1.0)])];
    // All tokens of an allocation that go to new ones are listed apart.
    let change = only(changes_of(&before, &after), ChangeKind::Renamed);
    assert_eq!(change.summary, "Investors is now listed as Partners (6) and Advisors (4); the total of 10 tokens is unchanged");
    let change = only(changes_of(&after, &before), ChangeKind::Renamed);
    assert_eq!(change.summary, "Partners (6) and Advisors (4) are now listed as Investors; the total of 10 tokens is unchanged");
}

#[test]
fn split_event_is_split_and_the_reverse_is_merged() {
    let whole = [event("2026-04-16", &[("Team", 30.0)]), event("2027-04-16", &[("Team", 30.0)])];
    let parts =
        [event("2026-04-16", &[("Team", 10.0)]), event("2026-05-16", &[("Team", 20.0)]), event("2027-04-16", &[("Team", 30.0)])];
    let change = only(changes_of(&whole, &parts), ChangeKind::Split);
    assert_eq!(change.key, Some("2026-04-16".into()));
    let diff = diff(&known(&parts), &whole);
    assert_eq!(diff.removed, [RecordKey::from("2026-05-16")], "a merged event needs no proof");
    only(changes_of(&parts, &whole), ChangeKind::Merged);
}

#[test]
fn cliff_that_becomes_linear_is_restructured() {
    let before = [event("2026-04-16", &[("Team", 30.0)]), segment("Farm", "2026-01-01", "2028-01-01", 9.0)];
    let after = [segment("Team", "2026-04-16", "2027-04-16", 30.0), segment("Farm", "2026-01-01", "2028-01-01", 9.0)];
    let change = only(changes_of(&before, &after), ChangeKind::Restructured);
    let summary = "Team: ends on 16 Apr 2027 instead of 16 Apr 2026, linearly at 2.50 per month instead of in one cliff; the total of 30 tokens is unchanged";
    assert_eq!(change.summary, summary);
}

#[test]
fn moved_segment_end_is_rescheduled() {
    let before = [segment("Team", "2026-04-16", "2027-04-16", 30.0)];
    let after = [segment("Team", "2026-04-16", "2028-04-16", 30.0)];
    let change = only(changes_of(&before, &after), ChangeKind::Rescheduled);
    assert_eq!(
        change.summary,
        "30 tokens of Team: linear unlock until 16 Apr 2028 instead of 16 Apr 2027 (+366 days), from 16 Apr 2026 as before, 1.25 per month instead of 2.50 per \
         month"
    );
    assert_eq!(change.key, Some("2026-04-16".into()));
    let moved = [segment("Team", "2026-05-16", "2027-05-16", 30.0)];
    only(changes_of(&before, &moved), ChangeKind::Rescheduled);
}

#[test]
fn added_event_is_reported_once_with_its_own_key() {
    let before = monthly("2026-01-16", 6, &[("Team", 10.0)]);
    let mut after = before.clone();
    after.push(event("2026-02-01", &[("Airdrop", 7.0)]));
    let change = only(changes_of(&before, &after), ChangeKind::Added);
    assert_eq!((change.key, change.to), (Some("2026-02-01".into()), Some(Fact::Amount(7.0))));
    assert!(change.new.is_some() && change.old.is_none());
}

#[test]
fn committed_claim_is_reported_if_new_or_changed_but_not_if_missing() {
    let with = |amount: Option<f64>| {
        let mut event = event("2026-04-16", &[("Team", 30.0)]);
        event.cliff_unlocks.get_mut().expect("cliffs").allocation_breakdown.get_mut().expect("parts")[0].committed_claim =
            Maybe::or_null(amount.map(|amount| CommittedClaim {
                amount: amount.into(),
                timestamp: 1_776_297_600.into(),
                ..CommittedClaim::default()
            }));
        [event]
    };
    let change = only(changes_of(&with(None), &with(Some(20.0))), ChangeKind::Committed);
    assert_eq!(
        change.summary,
        "project announced on 16 Apr 2026 that it will release 20 of Team; the schedule still says 30 tokens of Team, on 16 Apr 2026"
    );
    only(changes_of(&with(Some(20.0)), &with(Some(25.0))), ChangeKind::Committed);
    assert!(changes_of(&with(Some(20.0)), &with(None)).is_empty());
}

#[test]
fn three_corrections_of_three_events_are_three_changes() {
    let before = [
        event("2026-04-01", &[("Team", 30.0)]),
        event("2026-05-01", &[("Airdrop", 10.0)]),
        event("2026-06-01", &[("Partners", 11.0)]),
        event("2026-07-01", &[("Treasury", 12.0)]),
    ];
    let mut after = before.clone();
    after[0].unlock_date = time("2026-04-10").into();
    after[1] = event("2026-05-01", &[("Airdrop", 20.0)]);
    after[2].unlock_date = time("2026-05-20").into();
    let kinds: Vec<ChangeKind> = changes_of(&before, &after).iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Rescheduled, ChangeKind::Rescheduled, ChangeKind::Resized]);
}

// Dates and amounts.

#[test]
fn tranche_without_a_date_does_not_end_in_1970() {
    let undated = UnlockEvent { unlock_date: Maybe::Absent, ..event("2026-03-16", &[("Team", 60.0)]) };
    let undated = {
        let mut undated = undated;
        undated.cliff_unlocks.get_mut().and_then(|cliffs| cliffs.allocation_breakdown.get_mut()).into_iter().flatten().for_each(
            |part| {
                part.unlock_date = Maybe::Absent;
            },
        );
        undated
    };
    let dated = monthly("2026-04-16", 6, &[("Team", 10.0)]);
    let change = only(changes_of(&[undated], &dated), ChangeKind::Restructured);
    assert_eq!((change.from, change.shift_days), (None, None), "{}", change.summary);
    assert_eq!(change.to, Some(Fact::Time(time("2026-09-16"))));
    assert_eq!(change.before.and_then(|before| before.end), None);
}

#[test]
fn amounts_exchanged_between_dates_do_not_change_dates() {
    let before = monthly("2026-03-16", 6, &[("Team", 10.0)]);
    let mut after = before.clone();
    after[1] = event("2026-04-16", &[("Team", 12.0)]);
    after[3] = event("2026-06-16", &[("Team", 8.0)]);
    let changes = changes_of(&before, &after);
    let summaries: Vec<&str> = changes.iter().map(|change| change.summary.as_str()).collect();
    assert!(!summaries.is_empty() && summaries.iter().all(|summary| !summary.contains("other dates")), "{summaries:?}");
}

/// One event per date, with the given precision.
fn dated(dates: &[&str], precision: &str) -> Vec<UnlockEvent> {
    let at = |date: &&str| {
        let mut event = event(date, &[("Team", 10.0)]);
        for part in event.cliff_unlocks.get_mut().and_then(|cliffs| cliffs.allocation_breakdown.get_mut()).into_iter().flatten() {
            part.unlock_precision = precision.to_owned().into();
        }
        event
    };
    dates.iter().map(at).collect()
}

#[test]
fn date_that_becomes_more_or_less_exact_did_not_move() {
    let month = dated(&["2026-04-01"], "month");
    for (day, precision, text) in [
        ("2026-04-17", "day", "10 tokens of Team now dated: 17 Apr 2026 (before: April 2026)"),
        ("2026-04-17T12:30:00Z", "second", "10 tokens of Team now dated: 17 Apr 2026, 12:30 UTC (before: April 2026)"),
    ] {
        let exact = dated(&[day], precision);
        let change = only(changes_of(&month, &exact), ChangeKind::Revised);
        assert_eq!((change.summary.as_str(), change.shift_days), (text, None));
        assert_eq!((change.from, change.to), (Some(Fact::Time(time("2026-04-01"))), Some(Fact::Time(time(day)))));
        let back = only(changes_of(&exact, &month), ChangeKind::Revised);
        assert!(back.summary.starts_with("10 tokens of Team now dated: April 2026 (before: 17 Apr 2026"), "{}", back.summary);
    }
    // The day before the month is a move.
    let moved = only(changes_of(&month, &dated(&["2026-03-31"], "day")), ChangeKind::Rescheduled);
    assert_eq!(moved.shift_days, Some(-1.0));
}

#[test]
fn precision_of_the_same_instant_names_its_tranche() {
    for (from, to, text) in [
        ("day", "month", "10 tokens of Team now dated: January 2027 (before: 31 Jan 2027)"),
        ("month", "day", "10 tokens of Team now dated: 31 Jan 2027 (before: January 2027)"),
        ("second", "day", "10 tokens of Team now dated: 31 Jan 2027, exact to the day (before: to the second)"),
    ] {
        let change = only(changes_of(&dated(&["2027-01-31"], from), &dated(&["2027-01-31"], to)), ChangeKind::Revised);
        assert_eq!((change.summary.as_str(), change.shift_days), (text, None));
    }
    let (dated, undated) = (dated(&["2028-01-17"], "month"), dated(&["2028-01-17"], "to be determined"));
    let lost = only(changes_of(&dated, &undated), ChangeKind::Rescheduled);
    assert_eq!(lost.summary, "10 tokens of Team: date to be determined (was January 2028)");
    let found = only(changes_of(&undated, &dated), ChangeKind::Rescheduled);
    assert_eq!(found.summary, "10 tokens of Team now dated: January 2028 (no date before)");
}

#[test]
fn series_whose_months_become_days_is_one_revision() {
    let months = ["2026-04-01", "2026-05-01", "2026-06-01", "2026-07-01", "2026-08-01", "2026-09-01"];
    let days = ["2026-04-16", "2026-05-18", "2026-06-15", "2026-07-16", "2026-08-17", "2026-09-30"];
    let change = only(changes_of(&dated(&months, "month"), &dated(&days, "day")), ChangeKind::Revised);
    assert_eq!(change.count, 6);
    assert_eq!(change.summary, "60 tokens of Team, 6 tranches, now dated; the next of them: 16 Apr 2026 (before: April 2026)");
}

#[test]
fn first_date_is_no_shift() {
    for (date, precision) in [("2028-12-31", "tobedetermined"), ("1973-05-01", "second"), ("1970-01-01", "month")] {
        let (before, after) = (dated(&[date], precision), dated(&["2026-04-17"], "day"));
        let change = only(changes_of(&before, &after), ChangeKind::Rescheduled);
        assert_eq!(change.summary, "10 tokens of Team now dated: 17 Apr 2026 (no date before)", "{date}");
        assert_eq!((change.shift_days, &change.from), (None, &None), "{date}");
        let change = only(changes_of(&after, &before), ChangeKind::Rescheduled);
        assert_eq!((change.shift_days, &change.to), (None, &None), "{date}: {}", change.summary);
    }
    // Neither of two placeholders is a date.
    assert!(changes_of(&dated(&["1970-01-01"], "second"), &dated(&["1971-07-02"], "second")).is_empty());
}

#[test]
fn date_is_named_next_to_other_new_facts() {
    let (mut before, after) = (dated(&["2026-04-01"], "month"), dated(&["2026-04-17"], "day"));
    for part in before[0].cliff_unlocks.get_mut().and_then(|cliffs| cliffs.allocation_breakdown.get_mut()).into_iter().flatten() {
        part.standard_allocation_name = "Reserve".to_owned().into();
    }
    before[0].data_source = "https://docs.example.com/v1".to_owned().into();
    let changes = changes_of(&before, &after);
    let dated = "10 tokens of Team now dated: 17 Apr 2026 (before: April 2026)";
    assert!(changes.iter().any(|change| change.summary.contains(dated)), "{changes:#?}");
}

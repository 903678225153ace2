//! Edges of the visibility window: what a server that hides days shows, and what is a correction.

use std::collections::BTreeSet;

use super::*;
use crate::ingest::schedule::ScheduleNotes;

/// Other tokens of the same plan, which prove where the window is.
struct Neighbors(Vec<(Feed, Vec<UnlockEvent>)>);

impl Neighbors {
    fn new() -> Self {
        let neighbor = |k: u32| {
            let all = monthly(&format!("2018-01-{:02}", 3 + 8 * k), 220);
            (Feed::of(&format!("neighbor-{k}")), all)
        };
        Self((0..3).map(neighbor).collect())
    }

    /// Polls all of them, and tells `feed` what the source lists. Asserts that they report nothing but one new event each.
    fn poll(&mut self, feed: &mut Feed, cut: impl Fn(&[UnlockEvent]) -> Vec<UnlockEvent>, now: Timestamp) {
        for (neighbor, all) in &mut self.0 {
            let result = neighbor.poll(&cut(all), Some(3), now);
            feed.listed.apply(&result.update);
        }
    }
}

#[test]
fn sliding_window_reports_nothing() {
    let (begin, all) = (time("2026-03-09"), monthly("2022-01-16", 120));
    for (back, ahead) in [(365, 365), (365, 730), (730, 730), (366, 1096)] {
        for (version, all) in [(3, all.clone()), (5, cliffs_only(&all))] {
            let (mut feed, mut neighbors) = (Feed::new(), Neighbors::new());
            for hours in (0..300 * 24).step_by(18) {
                let now = begin + TimeDelta::hours(hours);
                neighbors.poll(&mut feed, |all| clipped(all, back, ahead, now), now);
                let result = feed.poll(&clipped(&all, back, ahead, now), Some(version), now);
                assert_eq!(summaries(&result.changes), [""; 0], "{back}/{ahead} on {now}");
                assert!(result.update.removed.is_empty() && result.update.state.missing.is_empty() && !result.is_held);
            }
        }
    }
}

/// Without other tokens, one event cannot tell an edge from a correction.
#[test]
fn lone_schedule_behind_a_sliding_window_reports_one_event_at_most() {
    let (begin, all) = (time("2026-03-09"), monthly("2022-01-16", 120));
    for (back, ahead) in [(365, 365), (365, 730), (730, 730), (366, 1096), (400, 500)] {
        let mut feed = Feed::new();
        let mut reported = Vec::new();
        for hours in (0..300 * 24).step_by(18) {
            let now = begin + TimeDelta::hours(hours);
            let result = feed.poll(&clipped(&all, back, ahead, now), Some(3), now);
            assert!(result.update.removed.is_empty() && result.update.state.missing.is_empty() && !result.is_held);
            reported.extend(result.changes);
        }
        let kinds = kinds(&reported);
        assert!(
            kinds.len() <= 1 && kinds.iter().all(|kind| *kind == ChangeKind::Added),
            "{back}/{ahead}: {:?}",
            summaries(&reported)
        );
    }
}

#[test]
fn new_last_unlock_at_whole_years_is_added_at_once() {
    for (years, hours) in [(365, 0), (365, 5), (366, 30), (730, 12), (731, 12), (1_095, 20)] {
        let all = monthly("2024-01-16", 30);
        let now = time("2026-04-06T09:00:00Z");
        for has_neighbors in [false, true] {
            let (mut feed, mut neighbors) = (Feed::new(), Neighbors::new());
            for poll in 0..4 {
                let now = now + TimeDelta::hours(6 * (poll - 4));
                if has_neighbors {
                    neighbors.poll(&mut feed, <[_]>::to_vec, now);
                }
                assert!(feed.poll(&all, Some(3), now).changes.is_empty());
            }
            let mut after = all.clone();
            after.extend(monthly(&(now + Days::new(years) + TimeDelta::hours(hours)).to_rfc3339(), 1));
            let notified = feed.poll(&after, Some(3), now + TimeDelta::hours(3)).changes;
            assert_eq!(kinds(&notified), [ChangeKind::Added], "{years} days: {:?}", summaries(&notified));
        }
    }
}

#[test]
fn oldest_unlock_that_was_removed_is_reported_as_soon_as_anything_older_is_listed() {
    for (age, step) in [(365, 30), (366, 91), (730, 30), (500, 61)] {
        let begin = time("2026-04-06T09:00:00Z");
        let oldest = begin - Days::new(age);
        let all: Vec<UnlockEvent> =
            (0..40).map(|k| monthly(&(oldest + TimeDelta::days(step * k)).to_rfc3339(), 1).remove(0)).collect();
        for has_neighbors in [false, true] {
            let (mut feed, mut neighbors) = (Feed::new(), Neighbors::new());
            let mut reported = Vec::new();
            for poll in 0..4 * 140 {
                let now = begin + TimeDelta::hours(6 * poll - 24);
                if has_neighbors {
                    neighbors.poll(&mut feed, <[_]>::to_vec, now);
                }
                let listed = if now < begin { &all[..] } else { &all[1..] };
                reported.extend(feed.poll(listed, Some(3), now).changes.into_iter().map(|change| (now, change)));
            }
            let [(at, change)] = &reported[..] else { panic!("{age} days old, {has_neighbors}: {reported:#?}") };
            assert_eq!(change.kind, ChangeKind::Removed);
            let latest = if has_neighbors { begin + Days::new(1) } else { begin + TimeDelta::days(step + 5) };
            assert!(*at <= latest, "{age} days old, {step} days apart, {has_neighbors}: {at}");
        }
    }
}

/// The oldest unlock may have left a window. If the same response corrects other dates, it was removed.
#[test]
fn oldest_unlock_that_was_removed_with_another_correction_is_reported() {
    let now = time("2026-04-06T09:00:00Z");
    for (age, step) in [(365, 30), (730, 30), (500, 61), (1_211, 91)] {
        let oldest = now - Days::new(age);
        let at = |k: i64| oldest + TimeDelta::days(step * k);
        let all: Vec<UnlockEvent> = (0..40).map(|k| monthly(&at(k).to_rfc3339(), 1).remove(0)).collect();
        for correction in 0..3 {
            let mut feed = Feed::new();
            assert_eq!(summaries(&feed.poll_times(&all, Some(3), now - Days::new(1), 4)), [""; 0]);
            let mut after = all[1..].to_vec();
            let removed = match correction {
                0 => {
                    after.remove(20);
                    2
                }
                1 => {
                    after.pop();
                    2
                }
                _ => {
                    after[20] = monthly(&(at(21) + TimeDelta::days(3)).to_rfc3339(), 1).remove(0);
                    1
                }
            };
            let notified = feed.poll_times(&after, Some(3), now, 4);
            let found: u32 = notified.iter().filter(|change| change.kind == ChangeKind::Removed).map(|change| change.count).sum();
            assert_eq!(found, removed, "{age} days old, {correction}: {:?}", summaries(&notified));
            assert_eq!(feed.snapshot.records.len(), after.len(), "{age} days old, {correction}");
        }
    }
}

/// Both responses that confirm a removal list the new event, but it is one event.
#[test]
fn event_that_waits_for_proof_is_no_second_crossing() {
    let now = time("2026-04-06T09:00:00Z");
    let all = monthly("2024-05-16", 24);
    let mut feed = Feed::new();
    feed.poll(&all, Some(3), now - TimeDelta::hours(6));
    // The last event is replaced by one that is exactly one year ahead, with another amount.
    let mut after = all[..23].to_vec();
    let mut added = monthly(&(now + Days::new(365)).to_rfc3339(), 1);
    let cliffs = added[0].cliff_unlocks.get_mut().expect("cliffs");
    let part = &mut cliffs.allocation_breakdown.get_mut().expect("parts")[0];
    (part.allocation_name, part.cliff_amount) = ("Farm".to_owned().into(), 25.0.into());
    after.append(&mut added);
    let notified = feed.poll_times(&after, Some(3), now, 5);
    let reported: BTreeSet<ChangeKind> = kinds(&notified).into_iter().collect();
    assert_eq!(reported, BTreeSet::from([ChangeKind::Added, ChangeKind::Removed]), "{:?}", summaries(&notified));
    assert_eq!(feed.snapshot.records.len(), 24);
}

#[test]
fn edge_is_dropped_when_the_source_lists_more_of_another_token() {
    let (begin, all) = (time("2026-03-09"), monthly("2022-01-16", 120));
    let (mut feed, mut neighbors) = (Feed::new(), Neighbors::new());
    let window = |feed: &Feed, now: Timestamp| ScheduleNotes::of(&feed.snapshot).visibility.window(now);
    for day in 0..80 {
        let now = begin + Days::new(day);
        neighbors.poll(&mut feed, |all| clipped(all, 365, 365, now), now);
        feed.poll(&clipped(&all, 365, 365, now), Some(3), now);
    }
    let now = begin + Days::new(80);
    assert!(window(&feed, now).first.is_some() && window(&feed, now).last.is_some());
    neighbors.poll(&mut feed, |all| clipped(all, 4_000, 4_000, now), now);
    let result = feed.poll(&clipped(&all, 4_000, 4_000, now + TimeDelta::hours(1)), Some(3), now + TimeDelta::hours(1));
    assert_eq!(summaries(&result.changes), [""; 0]);
    assert_eq!(window(&feed, now), DateWindow::ALL);
}

/// A team that adds an unlock exactly a year ahead each month looks like a window of a year, until the source lists more of another token.
#[test]
fn additions_that_seemed_to_come_into_view_are_reported_once_the_window_is_refuted() {
    let (begin, all) = (time("2026-03-09"), monthly("2025-01-16", 120));
    for has_correction in [false, true] {
        let mut feed = Feed::new();
        let mut reported = Vec::new();
        for day in 0..150 {
            let now = begin + Days::new(day);
            reported.extend(feed.poll(&clipped(&all, 4_000, 365, now), Some(3), now).changes);
        }
        assert_eq!(kinds(&reported), [ChangeKind::Added], "one event proves no window: {:?}", summaries(&reported));
        let in_silence = ScheduleNotes::of(&feed.snapshot).entered.len();
        assert!(in_silence >= 3, "{in_silence}");
        let now = begin + Days::new(150);
        Neighbors::new().poll(&mut feed, <[_]>::to_vec, now);
        let mut listed = clipped(&all, 4_000, 365, now);
        let count = listed.len();
        if has_correction {
            let moved = &mut listed[2].unlock_date;
            *moved = moved.copied().map_or(wire::Maybe::Null, |at| (at + TimeDelta::days(3)).into());
        }
        let notified = feed.poll(&listed, Some(3), now + TimeDelta::hours(1)).changes;
        let expected: &[ChangeKind] =
            if has_correction { &[ChangeKind::Rescheduled, ChangeKind::Added] } else { &[ChangeKind::Added] };
        assert_eq!(kinds(&notified), expected, "{:?}", summaries(&notified));
        assert_eq!(feed.snapshot.records.len(), count, "nothing is stored twice");
        let again = feed.poll(&listed, Some(3), now + TimeDelta::hours(7)).changes;
        assert_eq!(summaries(&again), [""; 0]);
    }
}

#[test]
fn removed_last_tranche_of_an_unclipped_schedule_is_reported() {
    let all = monthly("2025-01-16", 30);
    for day in 0..40 {
        let now = time("2026-03-09") + Days::new(day);
        let mut feed = Feed::new();
        feed.poll(&all, Some(3), now);
        let notified = feed.poll_times(&all[..29], Some(3), now + TimeDelta::hours(6), 4);
        assert_eq!(kinds(&notified), [ChangeKind::Removed], "{:?}", summaries(&notified));
        assert!(!notified[0].summary.contains("moved to a date after"), "no edge is near: {}", notified[0].summary);
        assert_eq!(feed.snapshot.records.len(), 29);
        // It is reported as added when it returns.
        let notified = feed.poll_times(&all, Some(3), now + Days::new(3), 2);
        assert_eq!(kinds(&notified), [ChangeKind::Added], "{:?}", summaries(&notified));
    }
}

/// An outermost event that moves day by day looks like an edge that moves with today. But an edge removes nothing ahead and adds
/// nothing behind.
#[test]
fn outermost_event_is_reported_on_each_move() {
    let begin = time("2026-03-09");
    for from in ["2024-01-16", "2026-04-16"] {
        for outermost in [0, 19] {
            for (hours, days) in [(24, 1), (24, -1), (1, 1), (48, 2), (18, 3), (24, 0), (6, -2)] {
                let mut all = monthly(from, 20);
                let mut feed = Feed::new();
                feed.poll(&all, Some(3), begin);
                for turn in 1..=6 {
                    // The first step has another length, so that the distances differ once.
                    let by = if turn == 1 { 5 } else { days };
                    let date = &mut all[outermost].unlock_date;
                    *date = date.copied().map_or(wire::Maybe::Null, |at| (at + TimeDelta::days(by)).into());
                    let now = begin + TimeDelta::hours(hours * turn);
                    let notified = feed.poll_times(&all, Some(3), now, 2);
                    let expected: &[ChangeKind] = if by == 0 { &[] } else { &[ChangeKind::Rescheduled] };
                    let what = format!("{from}, event {outermost}, {by} days after {hours} h, turn {turn}");
                    assert_eq!(kinds(&notified), expected, "{what}: {:?}", summaries(&notified));
                    assert_eq!(feed.snapshot.records.len(), 20, "{what}");
                }
            }
        }
    }
}

#[test]
fn plan_change_neither_removes_nor_adds_events() {
    let (begin, all) = (time("2026-03-09"), monthly("2022-01-16", 120));
    for weekly in [1, 7] {
        let (mut feed, mut neighbors) = (Feed::new(), Neighbors::new());
        let mut notified = Vec::new();
        for poll in 0..120 {
            let now = begin + Days::new(poll * weekly);
            let (back, ahead) = match poll {
                0..30 => (4_000, 4_000),
                30..60 => (365, 365),
                60..90 => (730, 730),
                _ => (4_000, 4_000),
            };
            neighbors.poll(&mut feed, |all| clipped(all, back, ahead, now), now);
            let result = feed.poll(&clipped(&all, back, ahead, now), Some(3), now);
            assert!(!result.is_held && result.update.removed.is_empty(), "poll {poll}");
            notified.extend(result.changes);
        }
        assert_eq!(summaries(&notified), [""; 0]);
        assert_eq!(feed.snapshot.records.len(), 120);
    }
}

#[test]
fn series_shift_at_a_window_edge_is_one_change() {
    let (begin, all) = (time("2026-03-09"), monthly("2022-01-16", 120));
    for by in [-12, -3, 5, 11] {
        let mut shifted = all.clone();
        for event in &mut shifted {
            event.unlock_date = event.unlock_date.copied().map_or(wire::Maybe::Null, |at| (at + TimeDelta::days(by)).into());
        }
        let (mut feed, mut neighbors) = (Feed::new(), Neighbors::new());
        let mut notified = Vec::new();
        for day in 0..200 {
            let now = begin + Days::new(day);
            let schedule = if day < 100 { &all } else { &shifted };
            neighbors.poll(&mut feed, |all| clipped(all, 365, 365, now), now);
            notified.extend(feed.poll(&clipped(schedule, 365, 365, now), Some(3), now).changes);
        }
        assert_eq!(kinds(&notified), [ChangeKind::SeriesShifted], "{by}: {:?}", summaries(&notified));
        let mut dates: Vec<_> = feed.snapshot.records.iter().filter_map(|tracked| tracked.record.interval()).collect();
        let count = dates.len();
        dates.sort_by_key(|interval| interval.start);
        dates.dedup_by_key(|interval| interval.start);
        assert_eq!(dates.len(), count, "{by}: no event is stored twice");
    }
}

#[test]
fn segments_entering_during_a_long_pause_are_not_reported() {
    let month = |k: u32| segment(&(time("2022-01-16") + Months::new(k)).to_rfc3339(), "2032-01-16", 10.0);
    let all: Vec<UnlockEvent> = (0..120).map(month).collect();
    for pause in [30, 90, 150, 300] {
        let mut feed = Feed::new();
        feed.with_segments = true;
        for poll in 0..6 {
            let now = time("2024-03-09") + Days::new(poll * pause);
            let result = feed.poll(&clipped(&all, 365, 365, now), Some(5), now);
            assert_eq!(summaries(&result.changes), [""; 0], "every {pause} days, on {now}");
            assert!(!result.is_held && result.update.state.missing.is_empty(), "every {pause} days, on {now}");
        }
    }
}

#[test]
fn removal_near_the_window_edge_may_be_a_move() {
    let all = monthly("2022-01-16", 120);
    let mut moved = all.clone();
    moved[60].unlock_date = time("2029-03-03").into();
    let begin = time("2026-03-09");
    let (mut feed, mut neighbors) = (Feed::new(), Neighbors::new());
    let mut notified = Vec::new();
    for day in 0..80 {
        let now = begin + Days::new(day);
        neighbors.poll(&mut feed, |all| clipped(all, 730, 730, now), now);
        notified.extend(feed.poll(&clipped(if day < 60 { &all } else { &moved }, 730, 730, now), Some(3), now).changes);
    }
    assert_eq!(kinds(&notified), [ChangeKind::Removed], "{:?}", summaries(&notified));
    assert!(notified[0].summary.contains(", or moved to a date after "), "{}", notified[0].summary);
}

static BUNDLED: std::sync::LazyLock<Vec<(String, Vec<UnlockEvent>)>> = std::sync::LazyLock::new(bundled);

/// The bundled schedules, as version 3 returns them.
fn bundled() -> Vec<(String, Vec<UnlockEvent>)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/unlock-events");
    let mut all: Vec<(String, Vec<UnlockEvent>)> = std::fs::read_dir(folder)
        .expect("the bundled schedules")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, serde_json::from_str(&std::fs::read_to_string(&path).expect("a file")).expect("events"))
        })
        .collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    // Versions of corrected schedules count as schedules.
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/revisions");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the bundled corrections").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|ext| ext == "jsonl")) {
        let text = std::fs::read_to_string(path).expect("a file");
        let line: serde_json::Value = serde_json::from_str(text.lines().next().expect("a version")).expect("a version");
        all.push((path.file_stem().expect("a name").to_string_lossy().into_owned(), events(line["data"].clone())));
    }
    all
}

/// A server that cuts a number of years to either side at whole days, and the times of the polls.
#[derive(Clone, Debug)]
struct Sliding {
    back: u64,
    ahead: u64,
    begin: u32,
    step_hours: i64,
    polls: i64,
    version: u8,
    /// The polls at which segments are read in addition to the cliffs of version 5.
    segments_every: i64,
}

fn sliding() -> impl Strategy<Value = Sliding> {
    let years = || (1..=3_u64, 0..=1_u64).prop_map(|(years, day)| years * 365 + day);
    (years(), years(), 0..1_200_u32, 5..72_i64, 40..120_i64, prop_oneof![Just(3_u8), Just(5)], 1..200_i64).prop_map(
        |(back, ahead, begin, step_hours, polls, version, segments_every)| Sliding {
            back,
            ahead,
            begin,
            step_hours,
            polls,
            version,
            // After more than a season, only cliffs can prove an edge ahead.
            segments_every: segments_every.min(80 * 24 / step_hours),
        },
    )
}

impl Sliding {
    fn now(&self, poll: i64) -> Timestamp {
        time("2024-01-01T05:00:00Z") + Days::new(u64::from(self.begin)) + TimeDelta::hours(self.step_hours * poll)
    }

    /// Polls as the planner does: with segments if they are due, or to confirm a removal.
    fn poll(&self, feed: &mut Feed, neighbors: &mut Neighbors, schedule: &[UnlockEvent], poll: i64) -> IngestResult {
        neighbors.poll(feed, |all| clipped(all, self.back, self.ahead, self.now(poll)), self.now(poll));
        let state = feed.snapshot.feed(Endpoint::UnlockEvents);
        let must_confirm = state.is_some_and(FeedState::awaits_proof);
        feed.with_segments = self.version == 5 && (must_confirm || poll % self.segments_every == 0);
        let seen = clipped(schedule, self.back, self.ahead, self.now(poll));
        let response = if self.version == 3 || feed.with_segments { seen } else { cliffs_only(&seen) };
        feed.poll(&response, Some(self.version), self.now(poll))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_global_rejects: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sliding_window_over_a_real_schedule_reports_nothing(which in any::<prop::sample::Index>(), sliding in sliding()) {
        let schedules = &*BUNDLED;
        let (name, schedule) = &schedules[which.index(schedules.len())];
        let (mut feed, mut neighbors) = (Feed::new(), Neighbors::new());
        for poll in 0..sliding.polls {
            let result = sliding.poll(&mut feed, &mut neighbors, schedule, poll);
            prop_assert!(result.changes.is_empty() && !result.is_held, "{name}, {sliding:?}, poll {poll}: {:?}", summaries(&result.changes));
            prop_assert!(result.update.removed.is_empty() && result.update.state.missing.is_empty(), "{name}, {sliding:?}, poll {poll}");
            prop_assert!(result.failure.is_none(), "{name}, {sliding:?}, poll {poll}: {:?}", result.failure);
        }
    }

    #[test]
    fn real_correction_inside_the_window_is_reported_once(
        which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), what in 0..3_u8, sliding in sliding(),
    ) {
        let schedules = &*BUNDLED;
        let (name, schedule) = &schedules[which.index(schedules.len())];
        // Far from both edges during the test, on a unique date, and with an amount that no neighboring tranche explains.
        let (first, last) = (sliding.now(0), sliding.now(sliding.polls));
        let is_inside = |event: &&UnlockEvent| {
            let date = event.unlock_date.copied();
            event.cliff_unlocks.get().is_some()
                && date.is_some_and(|date| date > last + Days::new(20) && date < first + Days::new(sliding.ahead - 30))
        };
        let inside: Vec<&UnlockEvent> = schedule.iter().filter(is_inside).collect();
        prop_assume!(inside.len() >= 4);
        let target = inside[at.index(inside.len())].unlock_date.copied();
        let mut corrected = schedule.clone();
        for event in corrected.iter_mut().filter(|event| event.unlock_date.copied() == target) {
            match what {
                0 => {
                    for part in event.cliff_unlocks.get_mut().and_then(|cliffs| cliffs.allocation_breakdown.get_mut()).into_iter().flatten() {
                        if let Some(amount) = part.cliff_amount.copied() {
                            part.cliff_amount = (amount * 1.37).into();
                        }
                    }
                }
                1 => event.unlock_date = target.map_or(wire::Maybe::Null, |at| (at + TimeDelta::hours(5)).into()),
                _ => {}
            }
        }
        if what == 2 {
            corrected.retain(|event| event.unlock_date.copied() != target);
        }
        let (mut feed, mut neighbors) = (Feed::new(), Neighbors::new());
        let mut notified = Vec::new();
        for poll in 0..sliding.polls {
            let schedule = if poll < sliding.polls / 2 { schedule } else { &corrected };
            let result = sliding.poll(&mut feed, &mut neighbors, schedule, poll);
            if !result.changes.is_empty() {
                notified.push((poll, result.changes));
            }
        }
        let when: Vec<(i64, Vec<&str>)> = notified.iter().map(|(poll, changes)| (*poll, summaries(changes))).collect();
        let expected = sliding.polls / 2 + i64::from(what == 2);
        prop_assert!(when.len() == 1 && when[0].0 == expected, "{name}, {sliding:?}, {target:?}: {when:?}");
        prop_assert!(when[0].1.len() <= 2, "{name}, {sliding:?}, {target:?}: {when:?}");
    }
}

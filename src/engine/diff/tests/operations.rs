//! Several independent operations at once, each on another allocation of a real schedule, as teams publish them.
//!
//! The laws: the books balance, each operation is named by a change of its allocation with a kind that fits, there are no more changes
//! than operations, and no change names another allocation. Two operations of which one gains exactly what the other one loses may also be
//! reported as one reallocation from the latter's allocation to the former's. The operations use none of the diff's code.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    laws::{Flat, Random, SCHEDULES, broken, changes_from, instant, rebuild, totals},
    *,
};

const DAY: i64 = 86_400;

model::words! {
    /// An operation of a team on one allocation.
    Operation {
        ShiftComing = "shift_coming",
        ScaleComing = "scale_coming",
        ResizeOne = "resize_one",
        PostponeLast = "postpone_last",
        MoveOneByDays = "move_one_by_days",
        CancelLast = "cancel_last",
        NewAllocation = "new_allocation",
        OneMore = "one_more",
        Rename = "rename",
        Recategorize = "recategorize",
        Respace = "respace",
        EndLaterKeepTotal = "end_later_keep_total",
        EndLaterKeepRate = "end_later_keep_rate",
        BeginLaterKeepTotal = "begin_later_keep_total",
        BeginLaterKeepRate = "begin_later_keep_rate",
        MoveLinear = "move_linear",
        CliffsToLinear = "cliffs_to_linear",
        LinearToCliffs = "linear_to_cliffs",
        DayToMonth = "day_to_month",
        NewRecipient = "new_recipient",
        Join = "join",
        Divide = "divide",
    }
}

use Operation::*;

/// An operation that was carried out.
struct Done {
    operation: Operation,
    /// The names of its allocations, before or after.
    names: BTreeSet<String>,
    flat: Vec<Flat>,
}

fn later(at: i64, months: u32) -> i64 {
    (instant(at) + Months::new(months)).timestamp()
}

impl Operation {
    fn kinds(self) -> &'static [ChangeKind] {
        use ChangeKind::*;
        match self {
            ShiftComing => &[SeriesShifted],
            ScaleComing => &[SeriesRescaled, Resized],
            // With the same ratio as a series, it is a part of that change.
            ResizeOne => &[Resized, SeriesRescaled],
            PostponeLast | MoveOneByDays | MoveLinear => &[Rescheduled, SeriesShifted],
            CancelLast => &[Removed, Resized],
            NewAllocation | OneMore => &[Added, Resized],
            Rename | Recategorize => &[Renamed],
            Respace => &[Restructured, Merged],
            EndLaterKeepTotal | BeginLaterKeepTotal => &[Rescheduled, Restructured],
            EndLaterKeepRate | BeginLaterKeepRate => &[Resized, SeriesRescaled, Restructured],
            CliffsToLinear | LinearToCliffs => &[Restructured],
            DayToMonth => &[Revised],
            NewRecipient => &[Reallocated],
            Join | Divide => &[Renamed, Reallocated],
        }
    }

    fn is_ambiguous(self, flat: &[Flat], name: &str) -> bool {
        let totals = totals(flat);
        let whole = totals[name];
        let of: Vec<f64> = totals.into_values().collect();
        let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * a.max(b);
        match self {
            Divide => of.iter().filter(|total| is_near(**total, whole)).count() > 1,
            _ => of.iter().any(|total| of.iter().any(|other| is_near(*other, total + whole) || is_near(total + other, whole))),
        }
    }

    /// Gives tokens of an allocation to others. Returns the schedule, and the names that take part.
    fn with_other_names(
        self,
        flat: &[Flat],
        (name, other): (&str, Option<&String>),
        taken: &BTreeSet<String>,
    ) -> Option<(Vec<Flat>, Vec<String>)> {
        let mut new = flat.to_vec();
        let is_own = |tranche: &Flat| tranche.name == name;
        match self {
            NewRecipient => {
                let fresh = "Growth Fund".to_owned();
                let coming = |t: &Flat| is_own(t) && t.at > now().timestamp() && t.end.is_none();
                (!taken.contains(&fresh) && flat.iter().filter(|t| coming(t)).count() >= 2).then_some(())?;
                new.iter_mut().filter(|t| coming(t)).for_each(|t| t.amount *= 0.8);
                let given = flat.iter().filter(|t| coming(t));
                new.extend(given.map(|t| Flat { name: fresh.clone(), amount: t.amount * 0.2, ..t.clone() }));
                Some((new, vec![fresh]))
            }
            Join => {
                let other = other?;
                let fresh = format!("{name} & {other}");
                let mut joined: BTreeMap<(i64, Option<i64>), Flat> = BTreeMap::new();
                for tranche in flat.iter().filter(|t| is_own(t) || t.name == *other) {
                    let renamed = Flat { name: fresh.clone(), amount: 0.0, ..tranche.clone() };
                    joined.entry((tranche.at, tranche.end)).or_insert(renamed).amount += tranche.amount;
                }
                new.retain(|t| !is_own(t) && t.name != *other);
                new.extend(joined.into_values());
                Some((new, vec![other.clone(), fresh]))
            }
            _ => {
                let parts = [(format!("{name} A"), 0.6), (format!("{name} B"), 0.4)];
                new.retain(|t| !is_own(t));
                for tranche in flat.iter().filter(|t| is_own(t)) {
                    let part = |(name, share): &(String, f64)| Flat {
                        name: name.clone(),
                        amount: tranche.amount * share,
                        ..tranche.clone()
                    };
                    new.extend(parts.iter().map(part));
                }
                Some((new, parts.map(|(part, _)| part).to_vec()))
            }
        }
    }

    /// Carries out the operation on an allocation that is not `taken`. Returns `None` if it does not apply.
    fn carry_out(self, flat: &[Flat], taken: &BTreeSet<String>, random: &mut Random) -> Option<Done> {
        let now = now().timestamp();
        let names: Vec<String> = flat
            .iter()
            .map(|t| t.name.clone())
            .filter(|name| !taken.contains(name))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let name = names.get(random.below(names.len()))?.clone();
        let mut new = flat.to_vec();
        let mut of: Vec<usize> = (0..flat.len()).filter(|k| flat[*k].name == name).collect();
        of.sort_by_key(|k| flat[*k].at);
        let coming: Vec<usize> = of.iter().copied().filter(|k| flat[*k].at > now && flat[*k].end.is_none()).collect();
        let linears: Vec<usize> = (of.iter().copied())
            .filter(|k| flat[*k].at > now && flat[*k].end.is_some_and(|end| end > flat[*k].at + 90 * DAY))
            .collect();
        let mut touched = BTreeSet::from([name.clone()]);
        let months = [1, 2, 3, 6, 12][random.below(5)];
        let factor = [0.5, 0.8, 0.9, 1.1, 1.25, 2.0][random.below(6)];
        let is_of = |at: i64| of.iter().any(|k| flat[*k].at == at);
        match self {
            ShiftComing => {
                (coming.len() >= 3).then_some(())?;
                let all: Vec<usize> = of.iter().copied().filter(|k| flat[*k].at > now).collect();
                for k in all {
                    new[k].at = later(new[k].at, months);
                    new[k].end = new[k].end.map(|end| later(end, months));
                }
            }
            ScaleComing => {
                (coming.len() >= 3).then_some(())?;
                coming.iter().for_each(|k| new[*k].amount *= factor);
            }
            ResizeOne => new[*coming.get(random.below(coming.len()))?].amount *= factor,
            PostponeLast => {
                let k = *coming.last()?;
                (coming.len() == 1 || flat[coming[coming.len() - 2]].at < flat[k].at).then_some(())?;
                new[k].at = later(flat[k].at, months);
                // A cliff next to a linear unlock may be a part of it.
                linears.is_empty().then_some(())?;
            }
            MoveOneByDays => {
                let k = *coming.get(random.below(coming.len()))?;
                let days = [1, 2, 5, 9][random.below(4)];
                let near = of.iter().filter(|j| **j != k).any(|j| (flat[*j].at - flat[k].at).abs() < 25 * DAY);
                (!near).then_some(())?;
                new[k].at += days * DAY;
            }
            CancelLast => {
                (coming.len() >= 6).then_some(())?;
                let lost: Vec<i64> = coming.iter().rev().take(1 + random.below(3)).map(|k| flat[*k].at).collect();
                new.retain(|t| !(t.name == name && lost.contains(&t.at) && t.end.is_none()));
            }
            NewAllocation => {
                let fresh = "Strategic Reserve".to_owned();
                (!taken.contains(&fresh)).then_some(())?;
                let total: f64 = flat.iter().map(|t| t.amount).sum();
                let first = now + (20 + i64::try_from(random.below(400)).expect("days")) * DAY;
                for k in 0..=u32::try_from(random.below(8)).expect("a count") {
                    let at = later(first, k * 3);
                    let (category, amount) = ("Reserve".to_owned(), total * 0.001_37);
                    new.push(Flat { name: fresh.clone(), category, at, end: None, amount, precision: None });
                }
                touched = BTreeSet::from([fresh]);
            }
            OneMore => {
                (coming.len() >= 4).then_some(())?;
                let (a, b) = (flat[coming[coming.len() - 2]].at, flat[*coming.last()?].at);
                (b > a).then_some(())?;
                new.push(Flat { at: b + (b - a), ..flat[*coming.last()?].clone() });
            }
            Rename => {
                let fresh = [format!("{name} II"), "Ecosystem Partners & Friends".to_owned()][random.below(2)].clone();
                (!taken.contains(&fresh) && !flat.iter().any(|t| t.name == fresh)).then_some(())?;
                of.iter().for_each(|k| new[*k].name = fresh.clone());
                touched.insert(fresh);
            }
            Recategorize => of.iter().for_each(|k| new[*k].category = "Something Else".to_owned()),
            Respace => {
                (coming.len() >= 6 && coming.windows(2).all(|two| flat[two[0]].at < flat[two[1]].at)).then_some(())?;
                let mut gone = BTreeSet::new();
                for three in coming.chunks(3) {
                    let last = *three.last()?;
                    new[last].amount = three.iter().map(|k| flat[*k].amount).sum();
                    gone.extend(three.iter().copied().filter(|k| *k != last));
                }
                new = new.into_iter().enumerate().filter(|(k, _)| !gone.contains(k)).map(|(_, t)| t).collect();
            }
            EndLaterKeepTotal | EndLaterKeepRate => {
                let k = *linears.get(random.below(linears.len()))?;
                let end = flat[k].end?;
                let moved = later(end, months);
                (!flat.iter().any(|t| t.name == name && t.at >= end)).then_some(())?;
                new[k].end = Some(moved);
                if self == EndLaterKeepRate {
                    new[k].amount *= (moved - flat[k].at) as f64 / (end - flat[k].at) as f64;
                }
            }
            BeginLaterKeepTotal | BeginLaterKeepRate => {
                let k = *linears.get(random.below(linears.len()))?;
                let (end, moved) = (flat[k].end?, later(flat[k].at, months));
                (moved + 60 * DAY < end).then_some(())?;
                (of.iter().all(|j| *j == k || flat[*j].end.is_none() || flat[*j].at != flat[k].at)).then_some(())?;
                if self == BeginLaterKeepRate {
                    new[k].amount *= (end - moved) as f64 / (end - flat[k].at) as f64;
                }
                new[k].at = moved;
            }
            MoveLinear => {
                let k = *linears.get(random.below(linears.len()))?;
                (of.iter().filter(|j| flat[**j].end.is_some()).count() == 1).then_some(())?;
                new[k].at = later(flat[k].at, months);
                new[k].end = Some(later(flat[k].end?, months));
            }
            CliffsToLinear => {
                (coming.len() >= 3 && linears.is_empty()).then_some(())?;
                let (first, last) = (flat[coming[0]].at, flat[*coming.last()?].at);
                (last > first + 60 * DAY).then_some(())?;
                let amount = coming.iter().map(|k| flat[*k].amount).sum();
                let stream = Flat { end: Some(last), amount, ..flat[coming[0]].clone() };
                new = new.into_iter().enumerate().filter(|(k, _)| !coming.contains(k)).map(|(_, t)| t).collect();
                new.push(stream);
            }
            LinearToCliffs => {
                let k = *linears.get(random.below(linears.len()))?;
                let (begin, end) = (flat[k].at, flat[k].end?);
                let dates: Vec<i64> = (1..200).map(|month| later(begin, month)).take_while(|at| *at <= end).collect();
                (dates.len() >= 3 && !dates.iter().any(|at| is_of(*at))).then_some(())?;
                let amount = flat[k].amount / dates.len() as f64;
                new.remove(k);
                new.extend(dates.into_iter().map(|at| Flat { at, end: None, amount, ..flat[k].clone() }));
            }
            DayToMonth => {
                let k = *coming.get(random.below(coming.len()))?;
                (flat[k].precision.as_deref() == Some("day")).then_some(())?;
                new[k].precision = Some("month".to_owned());
            }
            // Of two allocations with the same tokens on one date, only the names show which of them was divided.
            Join | Divide if self.is_ambiguous(flat, &name) => return None,
            NewRecipient | Join | Divide => {
                let other = names.get(random.below(names.len())).filter(|other| **other != name);
                let (flat, fresh) = self.with_other_names(flat, (&name, other), taken)?;
                touched.extend(fresh);
                new = flat;
            }
        }
        Some(Done { operation: self, names: touched, flat: new })
    }
}

/// Carries out a random operation that keeps the name of its allocation. Returns the name and the schedule, or `None` if it does not apply.
pub(super) fn one_of_several(flat: &[Flat], random: &mut Random) -> Option<(String, Vec<Flat>)> {
    let mut tried = (0..12).map(|_| {
        let operation = Operation::ALL[random.below(Operation::ALL.len())];
        let keeps_name = !matches!(operation, NewAllocation | Rename | NewRecipient | Join | Divide);
        keeps_name.then(|| operation.carry_out(flat, &BTreeSet::new(), random)).flatten()
    });
    let done = tried.find_map(|done| done)?;
    Some((done.names.first()?.clone(), done.flat))
}

/// The allocations that a change names, former names included.
fn names_of(change: &Change) -> BTreeSet<String> {
    let text = |fact: &Option<Fact>| fact.as_ref().and_then(|fact| fact.text().map(str::to_owned));
    let parts = change.allocations.iter();
    let mut names: BTreeSet<String> =
        parts.flat_map(|part| [Some(part.name.clone()), text(&part.from), text(&part.to)]).flatten().collect();
    let fields = change.fields.iter().filter(|field| field.field == "allocationName");
    names.extend(fields.flat_map(|field| [field.from.as_str(), field.to.as_str()]).flatten().map(str::to_owned));
    names
}

#[test]
fn independent_operations_are_each_reported_by_a_change() {
    let rounds: usize = std::env::var("LAW_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(400);
    let mut faults = Vec::new();
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut all = 0;
    for round in 0..rounds {
        let mut random = Random(u64::try_from(round).expect("a number").wrapping_mul(0x9e6c_63d0_676a_9a99));
        random.below(7);
        let (token, before) = &SCHEDULES[random.below(SCHEDULES.len())];
        let wanted = 2 + random.below(2);
        let (mut after, mut done, mut taken, mut gained) = (before.clone(), Vec::new(), BTreeSet::new(), Vec::new());
        for _ in 0..12 {
            let operation = Operation::ALL[random.below(Operation::ALL.len())];
            if done.len() < wanted
                && let Some(Done { operation, names, flat }) = operation.carry_out(&after, &taken, &mut random)
            {
                taken.extend(names.iter().cloned());
                let sum = |flat: &[Flat]| flat.iter().map(|tranche| tranche.amount).sum::<f64>();
                gained.push(sum(&flat) - sum(&after));
                done.push((operation, names));
                after = flat;
            }
        }
        if done.len() < 2 {
            continue;
        }
        all += 1;
        let changes = changes_from(&rebuild(before), &rebuild(&after));
        let mut wrong: Vec<String> =
            broken(before, &after, &changes).into_iter().filter(|fault| !fault.contains("for one correction")).collect();
        if changes.len() > done.len() {
            wrong.push(format!("{} changes for {} operations", changes.len(), done.len()));
        }
        for (k, (operation, names)) in done.iter().enumerate() {
            // A change of other facts lists no allocations.
            let is_about = |change: &Change| match change.kind {
                ChangeKind::Revised => names.iter().any(|name| change.summary.contains(name.as_str())),
                _ => !names_of(change).is_disjoint(names),
            };
            // If one allocation gains exactly what another one loses, its tokens may have gone from one to the other: no fact shows which.
            let is_transfer = |change: &Change| {
                let is_opposite = |other: &f64| gained[k] != 0.0 && (gained[k] + other).abs() <= 1e-9 * gained[k].abs();
                let mut partners =
                    done.iter().zip(&gained).filter(|(_, gained)| is_opposite(gained)).map(|((_, names), _)| names);
                change.kind == ChangeKind::Reallocated && partners.any(|others| !names_of(change).is_disjoint(others))
            };
            let is_reported =
                |change: &Change| is_about(change) && (operation.kinds().contains(&change.kind) || is_transfer(change));
            let count = counts.entry(operation.as_str()).or_default();
            count.0 += 1;
            if changes.iter().any(is_reported) {
                count.1 += 1;
            } else {
                wrong.push(format!("{operation:?} of {names:?} is not reported"));
            }
        }
        for name in changes.iter().flat_map(names_of) {
            if !taken.contains(&name) && !changes.iter().any(|change| change.kind == ChangeKind::Rewritten) {
                let is_category = |t: &Flat| t.category == name;
                if !before.iter().chain(&after).any(is_category) {
                    wrong.push(format!("untouched: {name}"));
                }
            }
        }
        if !wrong.is_empty() {
            let reported: Vec<String> = changes.iter().map(|change| format!("{}: {}", change.kind, change.summary)).collect();
            faults.push(format!(
                "{round} {token} {done:?}:\n    {}\n      reported\n      {}",
                wrong.join("\n    "),
                reported.join("\n      ")
            ));
        }
    }
    let table: Vec<String> =
        counts.iter().map(|(operation, (all, reported))| format!("{operation}: {reported} of {all}")).collect();
    let shown: usize = std::env::var("LAW_SHOWN").ok().and_then(|shown| shown.parse().ok()).unwrap_or(12);
    let shown = faults.iter().take(shown).cloned().collect::<Vec<_>>().join("\n");
    assert!(faults.is_empty(), "{} of {all} wrong\n{}\n{shown}", faults.len(), table.join("\n"));
}

/// A linear unlock begins later and ends as before, and a cliff of the same or of another allocation moves by as much. No sentence says
/// that the tokens of the linear unlock moved.
#[test]
fn begin_that_moves_as_far_as_a_cliff_is_reported_apart() {
    for round in 0..120_u64 {
        let mut random = Random(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.below(7);
        let begin = time("2026-04-20") + Days::new(u64::try_from(random.below(300)).expect("days"));
        let end = begin + Months::new(24 + u32::try_from(random.below(30)).expect("months"));
        let months = Months::new([1, 3, 6, 12][random.below(4)]);
        // Each amount and each sum is unlike all others.
        let (streamed, cliffs) = (64.0, [7.0, 13.0, 29.0]);
        let owner = |k: usize| ["Team", "Investors", "Reserve"][k];
        let is_of_same = random.below(2) == 0;
        let moved = if is_of_same { 0 } else { 1 };
        // At the begin of the linear unlock, or on another day.
        let at = if random.below(2) == 0 { begin } else { begin + Days::new(40) };
        let schedule = |is_after: bool| {
            let later = |at: Timestamp| if is_after { at + months } else { at };
            let mut dates: BTreeMap<Timestamp, (Vec<CliffAllocation>, Vec<LinearAllocation>)> = BTreeMap::new();
            let start = later(begin).to_rfc3339();
            dates.entry(later(begin)).or_default().1.push(linear("Team", &start, &end.to_rfc3339(), streamed));
            for (k, amount) in cliffs.into_iter().enumerate() {
                let due = if k == moved { later(at) } else { time("2031-01-01") + Days::new(k as u64) };
                dates.entry(due).or_default().0.push(cliff(owner(k), amount));
            }
            dates.into_iter().map(|(at, (cliffs, linears))| event_at(at, cliffs, linears)).collect::<Vec<_>>()
        };
        let changes = changes_of(&schedule(false), &schedule(true));
        let texts: Vec<&str> = changes.iter().map(|change| change.summary.as_str()).collect();
        assert!(changes.len() <= 2, "{round}: {texts:?}");
        let text = texts.join("; ");
        assert!(
            text.contains("64 tokens of Team: linear unlock from ") && text.contains(" on instead of "),
            "{round}: {texts:?}"
        );
        let cliff = format!("{} tokens of {} moved from ", cliffs[moved], owner(moved));
        assert!(text.contains(&cliff), "{round}: {texts:?}");
        assert!(changes.iter().all(|change| change.shift_days_min != Some(0.0)), "{round}: {texts:?}");
    }
}

/// A resize that already states the new begin and end of a linear unlock is the only change.
#[test]
fn begin_and_end_that_keep_the_rate_are_one_change() {
    for round in 0..120_u64 {
        let mut random = Random(round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 5);
        random.below(7);
        let day = |days: usize| time("2026-04-20") + Days::new(u64::try_from(days).expect("days"));
        let (begin, end) = (100 + random.below(200), 700 + random.below(200));
        let (new_begin, new_end) = match random.below(3) {
            0 => (begin + 30 + random.below(300), end),
            1 => (begin, end + 30 + random.below(300)),
            _ => (begin + 30 + random.below(100), end + 160 + random.below(300)),
        };
        let with = |begin: usize, end: usize| {
            let (amount, from, to) = ((end - begin) as f64 * 3.0, day(begin).to_rfc3339(), day(end).to_rfc3339());
            let mut events = monthly("2026-03-20", 9, &[("Reserve", 10.0), ("Farm", 4.0)]);
            events.push(segment("Team", &from, &to, amount));
            events.sort_by_key(|event| event.unlock_date.copied());
            events
        };
        let change = only(changes_of(&with(begin, end), &with(new_begin, new_end)), ChangeKind::Resized);
        for (is_moved, verb) in [(begin != new_begin, "starts on"), (end != new_end, "ends on")] {
            assert_eq!(change.summary.contains(verb), is_moved, "{round}: {}", change.summary);
        }
    }
}

/// One step of a series is cancelled, or was forgotten before, while other allocations unlock on the same date.
#[test]
fn one_step_of_a_shared_unlock_is_removed_or_added() {
    let rounds: usize = std::env::var("LAW_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(400);
    let mut checked = 0;
    for round in 0..rounds {
        let mut random = Random(u64::try_from(round).expect("a number").wrapping_mul(0x9e6c_63d0_676a_9a99) ^ 11);
        random.below(7);
        let (token, with) = &SCHEDULES[random.below(SCHEDULES.len())];
        let is_cliff_at = |t: &Flat, at: i64| t.end.is_none() && t.at == at;
        let is_shared = |step: &Flat| {
            let of_same_date = |t: &&Flat| is_cliff_at(t, step.at);
            let own = with.iter().filter(of_same_date).filter(|t| t.name == step.name).count();
            let of_series = with.iter().filter(|t| t.name == step.name && t.end.is_none());
            let (earlier, later): (Vec<&Flat>, Vec<&Flat>) = of_series.filter(|t| t.at != step.at).partition(|t| t.at < step.at);
            own == 1 && earlier.len() >= 2 && later.len() >= 2 && with.iter().filter(of_same_date).count() > 1
        };
        let steps: Vec<usize> = (0..with.len()).filter(|k| with[*k].end.is_none() && is_shared(&with[*k])).collect();
        let Some(step) = steps.get(random.below(steps.len())).copied() else { continue };
        let mut without = with.clone();
        let Flat { name, amount, .. } = without.remove(step);
        for (before, after, kind) in [(with, &without, ChangeKind::Removed), (&without, with, ChangeKind::Added)] {
            let changes = changes_from(&rebuild(before), &rebuild(after));
            let reported: Vec<String> = changes.iter().map(|change| format!("{}: {}", change.kind, change.summary)).collect();
            let [change] = &changes[..] else { panic!("{round} {token} {name}: {reported:?}") };
            assert_eq!((change.kind, names_of(change)), (kind, BTreeSet::from([name.clone()])), "{round} {token}: {reported:?}");
            assert!(change.amount.is_some_and(|of| (of - amount).abs() <= 1e-9 * amount), "{round} {token}: {reported:?}");
            assert!(change.summary.contains("; the other "), "{round} {token}: {reported:?}");
            assert_eq!(broken(before, after, &changes), [""; 0], "{round} {token}: {reported:?}");
        }
        checked += 1;
    }
    assert!(checked * 4 > rounds, "only {checked} of {rounds}");
}

/// All amounts change by one ratio, and the day of one unlock is no longer certain: the date is a fact of its own.
#[test]
fn less_exact_date_next_to_a_redenomination_is_named() {
    let rounds: usize = std::env::var("LAW_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(400);
    let mut checked = 0;
    for round in 0..rounds {
        let mut random = Random(u64::try_from(round).expect("a number").wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 13);
        random.below(7);
        let (token, before) = &SCHEDULES[random.below(SCHEDULES.len())];
        let Some(done) = DayToMonth.carry_out(before, &BTreeSet::new(), &mut random) else { continue };
        let factor = [10.0, 100.0, 1000.0, 0.01][random.below(4)];
        let after: Vec<Flat> = done.flat.into_iter().map(|t| Flat { amount: t.amount * factor, ..t }).collect();
        let changes = changes_from(&rebuild(before), &rebuild(&after));
        let reported: Vec<String> = changes.iter().map(|change| format!("{}: {}", change.kind, change.summary)).collect();
        let [rescaled, others @ ..] = &changes[..] else { panic!("{round} {token}: nothing is reported") };
        assert!(matches!(rescaled.kind, ChangeKind::SeriesRescaled | ChangeKind::Resized), "{round} {token}: {reported:?}");
        let dated = others.first().unwrap_or(rescaled);
        let is_named = done.names.iter().any(|name| dated.summary.contains(name.as_str()));
        assert!(dated.summary.contains("now dated: ") && is_named, "{round} {token}: {reported:?}");
        let is_apart = matches!(others, [change] if change.kind == ChangeKind::Revised && !rescaled.summary.contains("dated"));
        assert!(is_apart || others.is_empty() && rescaled.key.is_some(), "{round} {token}: {reported:?}");
        assert_eq!(broken(before, &after, &changes), [""; 0], "{round} {token}: {reported:?}");
        checked += 1;
    }
    assert!(checked * 50 > rounds, "only {checked} of {rounds}");
}

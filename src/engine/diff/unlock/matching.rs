//! Which event before is which event after, and which events wait for proof together.

use std::collections::{HashMap, HashSet};

use crate::diff::{changes::ExplainedChange, link::TrancheLinks, tranche::Tranche};
use model::{supply::Timestamp, wire::UnlockEvent};

/// Which event is which, by index.
pub(super) struct EventMatches {
    pub(super) new_of_old: Vec<Option<usize>>,
    pub(super) old_of_new: Vec<Option<usize>>,
}

/// An event is the one that most of its tranches went to; of equals, the one at the same instant, then the nearer.
pub(super) fn match_events(
    old_rows: &[&UnlockEvent],
    new_rows: &[&UnlockEvent],
    old: &[Tranche<'_>],
    new: &[Tranche<'_>],
    links: &TrancheLinks,
) -> EventMatches {
    let mut weights: HashMap<(usize, usize), u32> = HashMap::new();
    for (i, j) in &links.pairs {
        *weights.entry((old[*i].row, new[*j].row)).or_default() += 2;
    }
    for (from, to) in &links.groups {
        // The first part stands for the whole.
        if let (Some(i), Some(j)) = (from.first(), to.first()) {
            *weights.entry((old[*i].row, new[*j].row)).or_default() += 1;
        }
    }
    let millis = |event: &UnlockEvent| event.unlock_date.copied().map_or(0, |at| at.timestamp_millis());
    let mut candidates: Vec<(std::cmp::Reverse<u32>, i64, usize, usize)> = weights
        .into_iter()
        .map(|((o, n), weight)| (std::cmp::Reverse(weight), (millis(new_rows[n]) - millis(old_rows[o])).abs(), o, n))
        .collect();
    candidates.sort_unstable();
    let mut matches = EventMatches { new_of_old: vec![None; old_rows.len()], old_of_new: vec![None; new_rows.len()] };
    let mut pair = |o: usize, n: usize| {
        if matches.new_of_old[o].is_none() && matches.old_of_new[n].is_none() {
            matches.new_of_old[o] = Some(n);
            matches.old_of_new[n] = Some(o);
        }
    };
    for (_, _, o, n) in candidates {
        pair(o, n);
    }
    // What is left on both sides at one instant is one event of which nothing but the date stayed.
    let mut at_instant: HashMap<Option<Timestamp>, Vec<usize>> = HashMap::new();
    for n in (0..new_rows.len()).rev() {
        if matches.old_of_new[n].is_none() {
            at_instant.entry(new_rows[n].unlock_date.copied()).or_default().push(n);
        }
    }
    for (o, event) in old_rows.iter().enumerate() {
        if matches.new_of_old[o].is_none()
            && let Some(n) = at_instant.get_mut(&event.unlock_date.copied()).and_then(Vec::pop)
        {
            matches.new_of_old[o] = Some(n);
            matches.old_of_new[n] = Some(o);
        }
    }
    matches
}

/// Events that wait, by index before and after.
pub(super) struct WaitingEvents {
    pub(super) old: HashSet<usize>,
    pub(super) new: HashSet<usize>,
}

impl WaitingEvents {
    /// Whether a change touches one of them.
    pub(super) fn touches(&self, found: &ExplainedChange) -> bool {
        found.old.iter().any(|row| self.old.contains(row)) || found.new.iter().any(|row| self.new.contains(row))
    }
}

/// The events that wait: those of changes that touch an unproven removal, and of changes that share an event with those.
pub(super) fn wait_with(explained: &[ExplainedChange], unproven: &HashSet<usize>, matches: &EventMatches) -> WaitingEvents {
    let mut waiting = WaitingEvents { old: unproven.clone(), new: HashSet::new() };
    let mut waits = vec![false; explained.len()];
    loop {
        let mut grown = false;
        for (found, waits) in explained.iter().zip(&mut waits) {
            if *waits || !waiting.touches(found) {
                continue;
            }
            *waits = true;
            grown = true;
            for row in &found.old {
                waiting.old.insert(*row);
                waiting.new.extend(matches.new_of_old[*row]);
            }
            for row in &found.new {
                waiting.new.insert(*row);
                waiting.old.extend(matches.old_of_new[*row]);
            }
        }
        if !grown {
            return waiting;
        }
    }
}

//! Matches old with new events, and finds the events that wait for proof together.

use std::collections::{BTreeSet, HashMap};

use crate::diff::{
    changes::ChangeExplanation,
    index::{List, New, NewRow, Old, OldRow, RowOf},
    link::Links,
    timeline::Timeline,
};
use model::{supply::Timestamp, wire::UnlockEvent};

/// The old event of each new event, and the reverse.
pub(super) struct EventMatches {
    pub(super) new_of_old: List<RowOf<Old>, Option<NewRow>>,
    pub(super) old_of_new: List<RowOf<New>, Option<OldRow>>,
}

/// Matches each event with the one that received most of its tranches. If several did, the nearest in time wins.
pub(super) fn match_events(timeline: &Timeline<'_>, links: &Links) -> EventMatches {
    let (old_events, new_events) = (&timeline.old_events, &timeline.new_events);
    let mut weights: HashMap<(OldRow, NewRow), u32> = HashMap::new();
    let rows = |i, j| (timeline.old[i].row, timeline.new[j].row);
    for pair in &links.pairs {
        *weights.entry(rows(pair.old, pair.new)).or_default() += 2;
    }
    for group in &links.groups {
        // The first tranche represents the group.
        if let (Some(i), Some(j)) = (group.old.first(), group.new.first()) {
            *weights.entry(rows(*i, *j)).or_default() += 1;
        }
    }
    let millis = |event: &UnlockEvent| event.unlock_date.copied().map_or(0, |at| at.timestamp_millis());
    let mut candidates: Vec<(std::cmp::Reverse<u32>, i64, OldRow, NewRow)> = weights
        .into_iter()
        .map(|((o, n), weight)| (std::cmp::Reverse(weight), (millis(new_events[n]) - millis(old_events[o])).abs(), o, n))
        .collect();
    candidates.sort_unstable();
    let mut matches =
        EventMatches { new_of_old: List::filled(None, old_events.len()), old_of_new: List::filled(None, new_events.len()) };
    for (_, _, o, n) in candidates {
        if matches.new_of_old[o].is_none() && matches.old_of_new[n].is_none() {
            matches.add(o, n);
        }
    }
    // Two unmatched events at one instant are one event that kept only its date.
    let mut at_instant: HashMap<Option<Timestamp>, Vec<NewRow>> = HashMap::new();
    for (n, event) in new_events.indexed().rev().filter(|(n, _)| matches.old_of_new[*n].is_none()) {
        at_instant.entry(event.unlock_date.copied()).or_default().push(n);
    }
    for (o, event) in old_events.indexed() {
        if matches.new_of_old[o].is_none()
            && let Some(n) = at_instant.get_mut(&event.unlock_date.copied()).and_then(Vec::pop)
        {
            matches.add(o, n);
        }
    }
    matches
}

impl EventMatches {
    fn add(&mut self, old: OldRow, new: NewRow) {
        self.new_of_old[old] = Some(new);
        self.old_of_new[new] = Some(old);
    }
}

/// Events that stay as they are until a removal is proven.
pub(super) struct WaitingEvents {
    pub(super) old: BTreeSet<OldRow>,
    pub(super) new: BTreeSet<NewRow>,
}

impl WaitingEvents {
    pub(super) fn touches(&self, explanation: &ChangeExplanation) -> bool {
        !explanation.old.is_disjoint(&self.old) || !explanation.new.is_disjoint(&self.new)
    }
}

/// Returns the events of changes that touch an unproven removal, and of changes that share an event with those. A tranche that goes
/// from one event to another waits with both. Otherwise it would be in both of them meanwhile, or in neither.
pub(super) fn waiting_events(
    explanations: &[ChangeExplanation],
    unproven: &BTreeSet<OldRow>,
    matches: &EventMatches,
    (timeline, links): (&Timeline<'_>, &Links),
) -> WaitingEvents {
    let mut waiting = WaitingEvents { old: unproven.clone(), new: BTreeSet::new() };
    let mut others: Vec<&ChangeExplanation> = explanations.iter().collect();
    let mut moves: BTreeSet<(OldRow, NewRow)> = BTreeSet::new();
    if !unproven.is_empty() {
        let pairs = links.pairs.iter().map(|pair| (pair.old, pair.new));
        // The first tranches connect all of a group.
        let groups = links.groups.iter().filter_map(|group| Some((group, *group.old.first()?, *group.new.first()?)));
        let groups = groups.flat_map(|(group, first_old, first_new)| {
            let of_old = group.old.iter().map(move |old| (*old, first_new));
            of_old.chain(group.new.iter().map(move |new| (first_old, *new)))
        });
        let rows = pairs.chain(groups).map(|(old, new)| (timeline.old[old].row, timeline.new[new].row));
        moves.extend(rows.filter(|(old, new)| matches.new_of_old[*old] != Some(*new)));
    }
    loop {
        let touched: Vec<&ChangeExplanation> = others.extract_if(.., |explanation| waiting.touches(explanation)).collect();
        let is_touched = |(old, new): &(OldRow, NewRow)| waiting.old.contains(old) || waiting.new.contains(new);
        let moved: Vec<(OldRow, NewRow)> = moves.extract_if(.., is_touched).collect();
        if touched.is_empty() && moved.is_empty() {
            return waiting;
        }
        for (old, new) in moved {
            waiting.old.insert(old);
            waiting.new.insert(new);
            waiting.new.extend(matches.new_of_old[old]);
            waiting.old.extend(matches.old_of_new[new]);
        }
        for explanation in touched {
            waiting.old.extend(&explanation.old);
            waiting.new.extend(&explanation.new);
            waiting.new.extend(explanation.old.iter().filter_map(|row| matches.new_of_old[*row]));
            waiting.old.extend(explanation.new.iter().filter_map(|row| matches.old_of_new[*row]));
        }
    }
}

//! Conserved totals: if an allocation keeps its total, nothing was removed from it, however its tranches changed.
//!
//! The alignment explains a shift, an exception, or a tranche of another size. It cannot explain 24 monthly tranches that became 48, or
//! half of one allocation that now belongs to another: tranche by tranche, these read as removals and additions. So each allocation is
//! compared as a whole. If it keeps its total but not its tranches, the difference is one [group](Links::groups). If several
//! allocations keep their total together, tokens went from one to another: one [transfer](Links::transfers). Neither needs removal
//! proof.
//!
//! An allocation that lost many tranches, but gained about as much in others, has a new schedule with another total, such as ten
//! quarterly tranches instead of 30 monthly ones. So has one that lost tranches while all others grew, such as 24 larger tranches instead
//! of 28, and one that vests at once instead of linearly; or the reverse. Each is a group, too.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{
    align::changed_ratio,
    index::{New, NewTranche, Old, OldTranche, Side, TrancheIndex},
    link::Links,
    rounding::rounded_pairs,
    timeline::{Pair, Timeline, TrancheGroup, TranchePair, TrancheSet},
    tolerances::{self, MIN_SERIES, SHARE_OF_PART, close},
    tranche::{Tranche, TrancheForm, Tranches},
};

/// The maximum number of allocations of which all combinations are tried. Of more, only pairs are tried.
const MAX_COMBINED: usize = 12;
/// The minimum share of the tokens in added or removed tranches that an allocation must lose or gain elsewhere to be rescheduled as a
/// whole.
const MIN_BALANCED_SHARE: f64 = 0.5;

/// The minimum number of tranches of an allocation that others replace with at least as many tokens.
const MIN_REPLACED: usize = 2;

/// The minimum ratio of the smaller total to the larger one of an allocation that vests in the other form.
const MIN_TOTAL_OF_OTHER_FORM: f64 = 0.5;

/// An allocation whose total changed.
#[derive(Clone, Copy)]
struct Imbalance<'a> {
    name: &'a str,
    difference: f64,
    /// The larger of both totals.
    scale: f64,
}

/// Explains conserved totals: by groups within an allocation, and by transfers between allocations.
pub(super) fn conserve(links: Links, timeline: &Timeline<'_>, tolerance: f64) -> Links {
    let mut allocations = changed_allocations(&links, timeline, tolerance);
    let mut links = links;
    links.rounded = rounded_pairs(&links, timeline, tolerance);
    for pair in &links.rounded {
        allocations.remove(timeline.old[pair.old].series);
    }
    let mut imbalances = Vec::new();
    for (name, tranches) in &allocations {
        let Some((before, after)) = totals(tranches, timeline) else { continue };
        let is_conserved = before > 0.0 && close(before, after, tolerances::of_totals(tolerance));
        match is_conserved.then(|| conserved_group(tranches, timeline, tolerance)).flatten() {
            Some((pairs, group)) => {
                links = without(links, tranches);
                links.pairs.extend(pairs);
                links.groups.push(group);
            }
            // What differs may be more than rounding, although it is little of the whole total.
            None => imbalances.push(Imbalance { name, difference: after - before, scale: before.max(after) }),
        }
    }
    let mut unexplained: BTreeSet<&str> = imbalances.iter().map(|one| one.name).collect();
    for partners in conserved_together(imbalances, tolerances::of_totals(tolerance)) {
        links = with_transfer(links, &partners, timeline, tolerance);
        unexplained.retain(|name| !partners.contains(name));
    }
    for name in unexplained {
        let is_replaced =
            |tranches: &&TrancheGroup| has_new_schedule(name, &links, timeline, tolerance) || has_other_form(tranches, timeline);
        if let Some(tranches) = allocations.get(name).filter(is_replaced) {
            let (pairs, group) = compare(tranches, timeline, tolerance);
            if !group.old.is_empty() && !group.new.is_empty() {
                links = without(links, tranches);
                links.pairs.extend(pairs);
                links.groups.push(group);
            }
        }
    }
    links
}

/// Returns whether tranches of an allocation were added or removed, and its other tranches changed the other way: a series by a similar
/// amount, or all tranches from the first changed one on.
fn has_new_schedule(name: &str, links: &Links, timeline: &Timeline<'_>, tolerance: f64) -> bool {
    let (old, new) = (&timeline.old, &timeline.new);
    let removed: Vec<OldTranche> = links.removed.iter().copied().filter(|i| old[*i].series == name).collect();
    let added: Vec<NewTranche> = links.added.iter().copied().filter(|j| new[*j].series == name).collect();
    let (mut lost, mut gained) = (0.0, 0.0);
    for pair in links.pairs.iter().filter(|pair| old[pair.old].series == name) {
        let (Some(from), Some(to)) = (old[pair.old].amount, new[pair.new].amount) else { return false };
        if to > from { gained += to - from } else { lost += from - to }
    }
    let of_removed: f64 = removed.iter().filter_map(|i| old[*i].amount).sum();
    let of_added: f64 = added.iter().filter_map(|j| new[*j].amount).sum();
    let are_balanced =
        |moved: f64, opposite: f64| opposite >= moved * MIN_BALANCED_SHARE && moved >= opposite * MIN_BALANCED_SHARE;
    if removed.len() >= MIN_SERIES && are_balanced(of_removed, gained + of_added)
        || added.len() >= MIN_SERIES && are_balanced(of_added, lost + of_removed)
    {
        return true;
    }
    // If no tokens are lost, two tranches are enough.
    let keeps_tokens = lost == 0.0 && gained + of_added >= of_removed;
    if keeps_tokens && removed.len() >= MIN_REPLACED && are_balanced(of_removed, gained + of_added) {
        return true;
    }
    // Only tranches before the first changed one may have stayed.
    let mut ratios: Vec<(i64, Option<f64>)> = (links.pairs.iter().filter(|pair| old[pair.old].series == name))
        .map(|pair| (old[pair.old].at, changed_ratio(&old[pair.old], &new[pair.new], tolerance)))
        .collect();
    ratios.sort_by_key(|(at, _)| *at);
    let changed: Vec<Option<f64>> = ratios.into_iter().map(|(_, ratio)| ratio).skip_while(Option::is_none).collect();
    let have_all = |is_expected: fn(f64) -> bool| changed.iter().all(|ratio| ratio.is_some_and(is_expected));
    changed.len() >= MIN_SERIES
        && match (removed.is_empty(), added.is_empty()) {
            (false, true) => have_all(|ratio| ratio > 1.0),
            (true, false) => have_all(|ratio| ratio < 1.0),
            _ => false,
        }
}

/// Returns whether all cliffs that differ became linear unlocks of a comparable total, or the reverse.
fn has_other_form(tranches: &TrancheGroup, timeline: &Timeline<'_>) -> bool {
    fn only_form<S: Side>(all: &Tranches<'_, S>, of: &[TrancheIndex<S>]) -> Option<TrancheForm> {
        let form = all[*of.first()?].form;
        of.iter().all(|k| all[*k].form == form).then_some(form)
    }
    let (_, rest) = compare(tranches, timeline, tolerances::TOTAL);
    let forms = only_form::<Old>(&timeline.old, &rest.old).zip(only_form::<New>(&timeline.new, &rest.new));
    let Some((before, after)) = forms.filter(|(was, is)| was != is).and_then(|_| totals(&rest, timeline)) else { return false };
    before.min(after) >= before.max(after) * MIN_TOTAL_OF_OTHER_FORM
}

/// Returns the tranches of each allocation in which a tranche was added, removed, or resized.
fn changed_allocations<'a>(links: &Links, timeline: &Timeline<'a>, tolerance: f64) -> BTreeMap<&'a str, TrancheGroup> {
    let (old, new) = (&timeline.old, &timeline.new);
    let resized = links.pairs.iter().filter(|pair| changed_ratio(&old[pair.old], &new[pair.new], tolerance).is_some());
    let resized = resized.map(|pair| old[pair.old].series);
    let removed = links.removed.iter().map(|i| old[*i].series);
    let names: BTreeSet<&str> = resized.chain(removed).chain(links.added.iter().map(|j| new[*j].series)).collect();
    let mut allocations: BTreeMap<&str, TrancheGroup> = BTreeMap::new();
    for (i, tranche) in old.indexed().filter(|(_, tranche)| names.contains(tranche.series)) {
        allocations.entry(tranche.series).or_default().old.push(i);
    }
    for (j, tranche) in new.indexed().filter(|(_, tranche)| names.contains(tranche.series)) {
        allocations.entry(tranche.series).or_default().new.push(j);
    }
    allocations
}

/// Returns the totals before and after, or `None` if an amount is unknown.
fn totals(tranches: &TrancheGroup, timeline: &Timeline<'_>) -> Option<(f64, f64)> {
    let before: Option<f64> = tranches.old.iter().map(|i| timeline.old[*i].amount).sum();
    let after: Option<f64> = tranches.new.iter().map(|j| timeline.new[*j].amount).sum();
    Some((before?, after?))
}

/// Returns the pairs of equal tranches, and the group of all others if that keeps its sum too.
fn conserved_group(tranches: &TrancheGroup, timeline: &Timeline<'_>, tolerance: f64) -> Option<(Vec<TranchePair>, TrancheGroup)> {
    let (pairs, group) = compare(tranches, timeline, tolerance);
    fn sum<S: Side>(all: &Tranches<'_, S>, of: &[TrancheIndex<S>]) -> f64 {
        of.iter().filter_map(|k| all[*k].amount).sum()
    }
    // Within a large total, a real difference could pass for rounding.
    let is_conserved = close(sum(&timeline.old, &group.old), sum(&timeline.new, &group.new), tolerances::of_totals(tolerance));
    (is_conserved && !group.old.is_empty() && !group.new.is_empty()).then_some((pairs, group))
}

/// Splits tranches into pairs that are equal in form, dates, and amount, and the others.
fn compare(tranches: &TrancheGroup, timeline: &Timeline<'_>, tolerance: f64) -> (Vec<TranchePair>, TrancheGroup) {
    fn place<S>(tranche: &Tranche<'_, S>) -> (TrancheForm, i64, Option<i64>) {
        (tranche.form, tranche.at, tranche.end)
    }
    fn amount<S>(tranche: &Tranche<'_, S>) -> f64 {
        tranche.amount.unwrap_or(f64::NEG_INFINITY)
    }
    fn sorted<S: Side>(all: &Tranches<'_, S>, of: &[TrancheIndex<S>]) -> Vec<TrancheIndex<S>> {
        let mut of = of.to_vec();
        of.sort_by(|a, b| place(&all[*a]).cmp(&place(&all[*b])).then(amount(&all[*a]).total_cmp(&amount(&all[*b]))));
        of
    }
    let (mut pairs, mut rest) = (Vec::new(), TrancheGroup::default());
    let mut olds = sorted::<Old>(&timeline.old, &tranches.old).into_iter().peekable();
    let mut news = sorted::<New>(&timeline.new, &tranches.new).into_iter().peekable();
    while let (Some(i), Some(j)) = (olds.peek().copied(), news.peek().copied()) {
        let (a, b) = (&timeline.old[i], &timeline.new[j]);
        let is_same = place(a) == place(b) && close(amount(a), amount(b), tolerance);
        let is_old_first = (place(a), amount(a)) < (place(b), amount(b));
        if is_same || is_old_first {
            olds.next();
        }
        if is_same || !is_old_first {
            news.next();
        }
        match (is_same, is_old_first) {
            (true, _) => pairs.push(Pair { old: i, new: j }),
            (false, true) => rest.old.push(i),
            (false, false) => rest.new.push(j),
        }
    }
    rest.old.extend(olds);
    rest.new.extend(news);
    (pairs, rest)
}

/// Takes tranches out of every link.
fn without(mut links: Links, tranches: &TrancheGroup) -> Links {
    let old: HashSet<OldTranche> = tranches.old.iter().copied().collect();
    let new: HashSet<NewTranche> = tranches.new.iter().copied().collect();
    links.pairs.retain(|pair| !old.contains(&pair.old));
    links.groups.retain(|group| !group.old.iter().any(|i| old.contains(i)));
    links.removed.retain(|i| !old.contains(i));
    links.added.retain(|j| !new.contains(j));
    links
}

/// Adds the transfer between some allocations. Groups, removals, and additions of these become part of it.
fn with_transfer(mut links: Links, partners: &[&str], timeline: &Timeline<'_>, tolerance: f64) -> Links {
    let (old, new) = (&timeline.old, &timeline.new);
    let is_partner = |name: &str| partners.contains(&name);
    let is_resized = |pair: &&TranchePair| changed_ratio(&old[pair.old], &new[pair.new], tolerance).is_some();
    let pairs = links.pairs.iter().filter(|pair| is_partner(old[pair.old].series)).filter(is_resized).copied().collect();
    let is_group_of_partner = |group: &mut TrancheGroup| group.old.first().is_some_and(|i| is_partner(old[*i].series));
    let groups: Vec<TrancheGroup> = links.groups.extract_if(.., is_group_of_partner).collect();
    let removed = links.removed.extract_if(.., |i| is_partner(old[*i].series));
    let unpaired_old = groups.iter().flat_map(|group| group.old.iter().copied()).chain(removed).collect();
    let added = links.added.extract_if(.., |j| is_partner(new[*j].series));
    let unpaired_new = groups.iter().flat_map(|group| group.new.iter().copied()).chain(added).collect();
    links.transfers.push(TrancheSet { pairs, unpaired_old, unpaired_new });
    links
}

/// Returns sets of allocations whose totals changed, but whose common total did not. The smallest come first; no two sets overlap.
fn conserved_together(imbalances: Vec<Imbalance<'_>>, tolerance: f64) -> Vec<Vec<&str>> {
    let mut left = imbalances;
    let mut found = Vec::new();
    let mut size = 2;
    while size <= left.len() && (size == 2 || left.len() <= MAX_COMBINED) {
        match first_balanced(&left, size, tolerance) {
            Some(members) => {
                found.push(members.iter().map(|k| left[*k].name).collect());
                left = left.into_iter().enumerate().filter(|(k, _)| !members.contains(k)).map(|(_, one)| one).collect();
            }
            None => size += 1,
        }
    }
    // One allocation that was divided among many.
    if left.len() > MAX_COMBINED && first_balanced(&left, left.len(), tolerance).is_some() {
        found.push(left.iter().map(|one| one.name).collect());
    }
    found
}

/// Returns the positions of the first `size` allocations whose differences add up to zero.
fn first_balanced(all: &[Imbalance<'_>], size: usize, tolerance: f64) -> Option<Vec<usize>> {
    fn search(all: &[Imbalance<'_>], from: usize, chosen: &mut Vec<usize>, size: usize, tolerance: f64) -> bool {
        if chosen.len() == size {
            let sum: f64 = chosen.iter().map(|k| all[*k].difference).sum();
            let scale = chosen.iter().map(|k| all[*k].scale).fold(0.0, f64::max);
            let least = chosen.iter().map(|k| all[*k].difference.abs()).fold(f64::INFINITY, f64::min);
            // The rest is rounding, and no partner is so small that it could be left out.
            return sum.abs() <= tolerance * scale && sum.abs() < least * SHARE_OF_PART;
        }
        // Without enough others behind it, an allocation cannot begin a set. Else, the set of all would try every combination.
        let last = all.len().saturating_sub(size - chosen.len());
        for k in from..=last {
            chosen.push(k);
            if search(all, k + 1, chosen, size, tolerance) {
                return true;
            }
            chosen.pop();
        }
        false
    }
    let mut chosen = Vec::with_capacity(size);
    search(all, 0, &mut chosen, size, tolerance).then_some(chosen)
}

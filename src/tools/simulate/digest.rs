//! The unlocks of a digest from the data in memory: what `Store::digest_ahead` reads from the database.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    CliffPiece, DigestAhead, DigestAheadFilter, Endpoint, Inclusion, Interval, LinearAhead, LinearUnlock, ReferencePrice,
    Resource, Timestamp, TokenId, TokenSnapshot, TokenVesting, UpcomingRow, digest::SupplyGaps, supply_coverage,
    wire::UnlockEvent,
};

/// Returns the unlocks in the days of a digest.
pub(super) fn ahead<'t>(
    tokens: impl Iterator<Item = (&'t TokenId, &'t TokenSnapshot)>,
    filter: &DigestAheadFilter,
) -> DigestAhead {
    let mut rows: Vec<(Timestamp, UpcomingRow)> = Vec::new();
    let (mut vesting, mut prices) = (Vec::new(), BTreeMap::new());
    let mut gaps = SupplyGaps::default();
    let mut priced: BTreeSet<&TokenId> = BTreeSet::new();
    for (id, known) in tokens {
        gaps.add(supply_coverage(known.feed(Endpoint::UnlockEvents), known.schedule_header()));
        let read_at = known.feed(Endpoint::UnlockEvents).and_then(|feed| feed.read_at);
        for tracked in known.records_of(Resource::Unlock) {
            let is_in = |of: &Interval| filter.from < of.end && of.start <= filter.window.until;
            let Some(interval) = tracked.record.interval().filter(is_in) else { continue };
            let piece = tracked.record.unlock().and_then(CliffPiece::of);
            if piece.and_then(|piece| piece.inclusion(filter.window)) == Some(Inclusion::Counted) {
                priced.insert(id);
            }
            rows.push((interval.start, UpcomingRow { token: known.token.clone(), tracked: tracked.clone(), read_at }));
        }
        let price = ReferencePrice::latest(events(known).map(|(_, event)| event).collect::<Vec<_>>());
        if let Some(price) = price {
            prices.insert(id, price);
        }
        let emission = LinearAhead::of_feed(known.feed(Endpoint::UnlockEvents), known.schedule_header());
        let mut unlocks = LinearUnlock::of_schedule(events(known));
        unlocks.extend(emission.iter().flat_map(LinearUnlock::of_emission));
        if let Some(of) = TokenVesting::of(known.token.clone(), &unlocks, price, filter.window) {
            priced.insert(id);
            vesting.push(of);
        }
    }
    let key = |row: &UpcomingRow| (row.token.id.clone(), row.tracked.key.clone());
    rows.sort_by(|(at_a, a), (at_b, b)| at_a.cmp(at_b).then_with(|| key(a).cmp(&key(b))));
    let mut ahead = DigestAhead::of(rows.into_iter().map(|(_, row)| row).collect(), filter.window, filter.selection);
    ahead.add_vesting(vesting, filter.selection);
    ahead.gaps = gaps;
    for price in priced.into_iter().filter_map(|id| prices.get(id)) {
        ahead.prices.add(*price, filter.stale_before);
    }
    ahead
}

fn events(known: &TokenSnapshot) -> impl Iterator<Item = (&str, &UnlockEvent)> {
    known.records_of(Resource::Unlock).filter_map(|tracked| Some((tracked.key.as_str(), tracked.record.unlock()?)))
}

//! Schedules of which each endpoint version hides parts at random, polled in random versions, with random corrections.
//!
//! Known are the last facts of each part that any response showed. The laws: a part that a version hides is not removed, a difference is
//! reported once, by the first response that shows it, and a part that was hidden before is not reported as added. A change of a rate that
//! appears together with the first other part of its event may have been hidden, so it is not reported, even if it is new. The test predicts
//! the reports from the parts alone and uses none of the code that compares schedules.

use std::collections::BTreeSet;

use super::*;
use model::change::Fact;

/// The number of random worlds. `VERSION_WORLDS` sets another one.
const WORLDS: u64 = 120;
/// The corrections of a world, each followed by a response of a random version.
const STEPS: usize = 8;
/// Polls of one response, which are enough to prove a removal.
const CONFIRMATIONS: usize = 8;

/// A generator of pseudorandom numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % count.max(1) as u64).expect("an index")
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// A cliff, or a linear unlock if it has an end. Times are days after the first one.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    id: usize,
    name: &'static str,
    begin: u64,
    end: Option<u64>,
    amount: f64,
}

impl Part {
    fn facts(&self) -> (&'static str, u64, Option<u64>, u64) {
        (self.name, self.begin, self.end, self.amount.round() as u64)
    }

    /// Returns whether the part begins where a linear unlock of the same allocation ends.
    fn follows_any(&self, parts: &[Part], slack: u64) -> bool {
        let is_before = |other: &Part| {
            other.name == self.name
                && other.begin < self.begin
                && other.end.is_some_and(|end| end <= self.begin && self.begin - end <= slack)
        };
        self.end.is_some() && parts.iter().any(is_before)
    }
}

/// The versions of one response.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Version {
    /// Cliffs of the newest version; linear unlocks only if the cliffs changed.
    Cliffs,
    /// Cliffs of the newest version, and linear unlocks of the version with rate changes or of the one without.
    Joined(u8),
    /// Cliffs and linear unlocks of one version.
    Single(u8),
}

/// The rule by which a version hides changes of a rate.
#[derive(Clone, Copy, Debug)]
enum Hiding {
    Every,
    /// Only events that have nothing else.
    WholeEvents,
    /// Some, always the same ones.
    Some,
}

struct World {
    chance: Chance,
    truth: Vec<Part>,
    next_id: usize,
    hiding: Hiding,
    /// Days between the end of a linear unlock and the next one of the allocation.
    slack: u64,
}

const ORIGIN: &str = "2026-01-16";

fn date(days: u64) -> Timestamp {
    time(ORIGIN) + Days::new(days)
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        chance.below(2);
        let hiding = [Hiding::Every, Hiding::WholeEvents, Hiding::Some][chance.below(3)];
        let slack = u64::from(chance.one_in(4));
        let mut world = Self { chance, truth: Vec::new(), next_id: 0, hiding, slack };
        for month in 0..14 {
            world.add("Treasury", month * 30, None);
        }
        for name in ["Farm", "Labs"] {
            let mut begin = 20 + 30 * world.chance.below(3) as u64;
            for _ in 0..=world.chance.below(3) {
                let end = begin + 60 + 10 * world.chance.below(20) as u64;
                world.add(name, begin, Some(end));
                if world.chance.one_in(2) {
                    world.add(name, begin, None);
                }
                begin = end + world.gap();
            }
        }
        world
    }

    fn gap(&mut self) -> u64 {
        if self.chance.one_in(3) { 50 } else { self.slack }
    }

    fn add(&mut self, name: &'static str, begin: u64, end: Option<u64>) {
        let id = self.next_id;
        self.next_id += 1;
        // Each amount is unlike all others.
        let amount = 1_000.0 + 137.0 * (id * id) as f64;
        self.truth.push(Part { id, name, begin, end, amount });
    }

    /// The linear unlocks of an allocation by begin.
    fn chain(&self, name: &str) -> Vec<usize> {
        let mut chain: Vec<usize> =
            (0..self.truth.len()).filter(|at| self.truth[*at].name == name && self.truth[*at].end.is_some()).collect();
        chain.sort_by_key(|at| self.truth[*at].begin);
        chain
    }

    /// Makes one true correction of one allocation.
    fn correct(&mut self) -> String {
        let name = ["Farm", "Labs"][self.chance.below(2)];
        let chain = self.chain(name);
        let at = self.chance.below(chain.len());
        let (this, next) = (chain.get(at).copied(), chain.get(at + 1).copied());
        let text = |what: &str| format!("{what} of {name} {at}");
        match (self.chance.below(9), this, next) {
            (0, Some(this), _) => {
                self.truth[this].amount *= 1.5;
                text("resize")
            }
            (1, Some(this), Some(next)) => {
                // The rate changes on another day.
                let (begin, end) = (self.truth[next].begin, self.truth[this].end.expect("linear"));
                self.truth[next].begin = begin + 7;
                self.truth[this].end = Some(end + 7);
                text("later change of the rate")
            }
            (2, Some(this), Some(next)) => {
                self.truth[this].end = Some(self.truth[next].begin - self.slack);
                text("no gap after")
            }
            (3, Some(this), Some(next)) => {
                self.truth[this].end = Some(self.truth[next].begin - 25);
                text("gap after")
            }
            (4, ..) => {
                let last = chain.last().map_or(40, |last| self.truth[*last].end.expect("linear"));
                let begin = last + self.gap();
                self.add(name, begin, Some(begin + 90));
                text("another rate")
            }
            (5, Some(_), _) if chain.len() > 1 => {
                self.truth.remove(chain[chain.len() - 1]);
                text("removed end")
            }
            (6, Some(this), _) => {
                let begin = self.truth[this].begin;
                if self.truth.iter().any(|part| part.name == name && part.end.is_none() && part.begin == begin) {
                    self.truth.retain(|part| part.name != name || part.end.is_some() || part.begin != begin);
                    text("no cliff at")
                } else {
                    self.add(name, begin, None);
                    text("cliff at")
                }
            }
            (7, Some(this), _) if chain.len() > 1 => {
                self.truth.remove(this);
                text("removed")
            }
            (_, Some(_), _) => {
                let last = chain[chain.len() - 1];
                self.truth[last].end = self.truth[last].end.map(|end| end + 33);
                text("later end")
            }
            _ => text("nothing"),
        }
    }

    /// Returns whether version 3 hides a part of these.
    fn hides(&self, part: &Part, parts: &[Part]) -> bool {
        let is_alone = parts.iter().all(|other| {
            other.begin != part.begin || other.id == part.id || other.end.is_some() && other.follows_any(parts, self.slack)
        });
        part.follows_any(parts, self.slack)
            && match self.hiding {
                Hiding::Every => true,
                Hiding::WholeEvents => is_alone,
                Hiding::Some => !part.id.is_multiple_of(3),
            }
    }

    /// Returns whether a response of these versions has a part that is one of `parts`.
    fn shows(&self, version: Version, part: &Part, parts: &[Part]) -> bool {
        match version {
            Version::Cliffs => part.end.is_none(),
            Version::Joined(version) | Version::Single(version) => version == 1 || !self.hides(part, parts),
        }
    }

    fn response(&self, version: Version) -> Vec<UnlockEvent> {
        let mut dates: BTreeMap<u64, Vec<&Part>> = BTreeMap::new();
        for part in self.truth.iter().filter(|part| self.shows(version, part, &self.truth)) {
            dates.entry(part.begin).or_default().push(part);
        }
        let event = |(begin, parts): (&u64, &Vec<&Part>)| {
            let begin = date(*begin);
            let sum = |is_linear: bool| {
                parts.iter().filter(|part| part.end.is_some() == is_linear).map(|part| part.amount).sum::<f64>()
            };
            let cliffs: Vec<_> = parts
                .iter()
                .filter(|part| part.end.is_none())
                .map(|part| json!({"unlockDate": begin, "allocationName": part.name, "cliffAmount": part.amount, "unlockPrecision": "second"}))
                .collect();
            let linears: Vec<_> = parts
                .iter()
                .filter_map(|part| Some((part, part.end?)))
                .map(|(part, end)| json!({"allocationName": part.name, "linearAmount": part.amount, "beginDate": begin, "endDate": date(end)}))
                .collect();
            let mut row = json!({"unlockDate": begin, "cliffUnlocks": null, "linearUnlocks": null});
            if !cliffs.is_empty() {
                row["cliffUnlocks"] = json!({"cliffAmount": sum(false), "allocationBreakdown": cliffs});
            }
            if !linears.is_empty() {
                row["linearUnlocks"] = json!({"linearAmount": sum(true), "allocationBreakdown": linears});
            }
            row
        };
        events(dates.iter().map(event).collect())
    }
}

/// The facts of all parts as they were last shown, and what must be reported.
#[derive(Default)]
struct Expectation {
    known: Vec<Part>,
    /// Whether a response showed every part.
    is_complete: bool,
    /// Parts that existed at an earlier response.
    existed: BTreeSet<usize>,
    /// Removed parts whose removal is not reported yet.
    pending: BTreeSet<usize>,
    /// Known parts that the last response with linear unlocks omitted.
    hidden: BTreeSet<usize>,
    /// Changes of a rate that the version without all of them showed.
    shown_rates: BTreeSet<usize>,
}

impl Expectation {
    /// Returns whether a hidden part looks like a removed one, or a shown part like a new one, because the part before it was never shown.
    fn is_undecidable(&self, world: &World, version: Version) -> bool {
        let shown: Vec<Part> = world.truth.iter().filter(|part| world.shows(version, part, &world.truth)).cloned().collect();
        let seen: Vec<Part> = self.known.iter().chain(&shown).cloned().collect();
        let is_known = |part: &Part| self.known.iter().any(|known| known.id == part.id);
        let has_unseen_start = |part: &&Part| part.follows_any(&world.truth, world.slack) && !part.follows_any(&seen, 1);
        let is_shown = |part: &Part| shown.iter().any(|other| other.id == part.id);
        !self.existed.is_empty()
            && matches!(version, Version::Joined(3) | Version::Single(3))
            && world.truth.iter().filter(has_unseen_start).any(|part| is_known(part) != is_shown(part))
    }

    /// Applies a response. Returns the difference in tokens of each allocation with a difference that it shows, apart from removals.
    fn shown(&mut self, world: &World, version: Version) -> BTreeMap<&'static str, f64> {
        let mut expected: BTreeMap<&'static str, f64> = BTreeMap::new();
        let is_first = self.existed.is_empty();
        let before = self.known.clone();
        let shows_all = matches!(version, Version::Joined(1) | Version::Single(1));
        let appears_with = |part: &Part| {
            let is_other = |other: &&Part| other.begin == part.begin && other.id != part.id;
            before.iter().all(|known| known.begin != part.begin) && world.truth.iter().any(|other| is_other(&other))
        };
        for part in world.truth.iter().filter(|part| world.shows(version, part, &world.truth)) {
            let was = before.iter().find(|known| known.id == part.id);
            let is_reported = match was {
                Some(was) => was.facts() != part.facts(),
                None if is_first => false,
                None if self.is_complete || part.end.is_none() => true,
                None => {
                    let may_be_hidden = part.follows_any(&world.truth, world.slack) && (shows_all || appears_with(part));
                    !self.existed.contains(&part.id) && !may_be_hidden
                }
            };
            if is_reported {
                *expected.entry(part.name).or_default() += part.amount - was.map_or(0.0, |was| was.amount);
            }
            self.known.retain(|known| known.id != part.id);
            self.known.push(part.clone());
        }
        if matches!(version, Version::Joined(3) | Version::Single(3)) {
            let is_rate = |part: &&Part| part.follows_any(&world.truth, world.slack) && world.shows(version, part, &world.truth);
            self.shown_rates.extend(world.truth.iter().filter(is_rate).map(|part| part.id));
        }
        for known in &before {
            if world.truth.iter().all(|part| part.id != known.id) && self.shows_removal(world, version, known, &before) {
                self.pending.insert(known.id);
            }
        }
        if version != Version::Cliffs {
            let is_shown =
                |part: &&Part| world.truth.iter().any(|other| other.id == part.id && world.shows(version, other, &world.truth));
            self.hidden = self.known.iter().filter(|part| !is_shown(part)).map(|part| part.id).collect();
            self.existed.extend(world.truth.iter().map(|part| part.id));
        }
        self.is_complete |= matches!(version, Version::Joined(1) | Version::Single(1));
        expected
    }

    /// Returns whether the response would show a removed part if it still existed.
    fn shows_removal(&self, world: &World, version: Version, removed: &Part, before: &[Part]) -> bool {
        match version {
            _ if removed.end.is_none() => true,
            Version::Cliffs => false,
            Version::Joined(1) | Version::Single(1) => true,
            Version::Joined(_) | Version::Single(_) => {
                // A change of a rate may have moved together with the end of the part before it.
                let has_earlier = world.truth.iter().any(|part| {
                    part.name == removed.name
                        && part.end.is_some()
                        && part.begin < removed.begin
                        && world.shows(version, part, &world.truth)
                });
                let follows = removed.follows_any(&world.truth, 1) || removed.follows_any(before, 1);
                // A version that showed a change of a rate shows it for as long as its event and the part before it stay.
                let with_removed: Vec<Part> = world.truth.iter().chain([removed]).cloned().collect();
                let is_shown_rate = !self.is_complete
                    && self.shown_rates.contains(&removed.id)
                    && removed.follows_any(&world.truth, world.slack)
                    && world.shows(version, removed, &with_removed);
                !has_earlier || is_shown_rate || !follows && !self.hidden.contains(&removed.id)
            }
        }
    }

    fn take_removed(&mut self, names: &BTreeSet<String>) -> BTreeMap<&'static str, f64> {
        let mut removed: BTreeMap<&'static str, f64> = BTreeMap::new();
        for part in self.known.iter().filter(|part| self.pending.contains(&part.id) && names.contains(part.name)) {
            *removed.entry(part.name).or_default() -= part.amount;
        }
        let done: Vec<usize> = self.known.iter().filter(|part| removed.contains_key(part.name)).map(|part| part.id).collect();
        let pending = std::mem::take(&mut self.pending);
        self.known.retain(|part| !(pending.contains(&part.id) && done.contains(&part.id)));
        self.pending = pending.into_iter().filter(|id| !done.contains(id)).collect();
        removed
    }
}

fn differences(changes: &[Change]) -> BTreeMap<String, f64> {
    let mut differences: BTreeMap<String, f64> = BTreeMap::new();
    let amount = |fact: &Option<Fact>| fact.as_ref().and_then(Fact::amount).unwrap_or(0.0);
    for part in changes.iter().flat_map(|change| &change.allocations) {
        *differences.entry(part.name.clone()).or_default() += amount(&part.to) - amount(&part.from);
    }
    differences
}

/// The name, begin, end, and rounded amount of a known part.
type StoredPart = (String, i64, Option<i64>, u64);

/// The known facts of a feed, like [`Part::facts`].
fn stored(feed: &Feed) -> Vec<StoredPart> {
    let day = |at: Timestamp| (at - time(ORIGIN)).num_days();
    let mut facts = Vec::new();
    for event in feed.snapshot.records.iter().filter_map(|tracked| tracked.record.unlock()) {
        let at = day(event.unlock_date.copied().expect("dated"));
        for part in event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items()) {
            let name = part.allocation_name.as_str().expect("a name").to_owned();
            facts.push((name, at, None, part.cliff_amount.copied().expect("an amount").round() as u64));
        }
        for part in event.linear_unlocks.get().map_or(&[][..], |linears| linears.allocation_breakdown.items()) {
            let name = part.allocation_name.as_str().expect("a name").to_owned();
            let end = Some(day(part.end_date.copied().expect("an end")));
            facts.push((name, at, end, part.linear_amount.copied().expect("an amount").round() as u64));
        }
    }
    facts.sort();
    facts
}

/// Polls a response. Returns its changes, and whether a removal awaits proof.
fn poll(feed: &mut Feed, world: &World, version: Version, now: Timestamp) -> IngestResult {
    let events = world.response(version);
    let (start, end) = feed.requested;
    let token = feed.snapshot.token.id.clone();
    let request = PollRequest::Token { endpoint: Endpoint::UnlockEvents, token, start, end };
    let (events, main, segments) = match version {
        Version::Cliffs => (cliffs_only(&events), 5, None),
        Version::Joined(version) => (events, 5, Some(SegmentsFetch::read(version, 1))),
        Version::Single(version) => (events, version, None),
    };
    let without_cliffs = match version {
        Version::Joined(_) => {
            let alone = events.iter().filter(|event| event.cliff_unlocks.get().is_none());
            alone.filter_map(|event| event.unlock_date.copied()).collect()
        }
        _ => Vec::new(),
    };
    let response = PollResponse::clean(Payload::UnlockEvents(events), ContentHash(0));
    let poll = PlannedPoll { may_add_segments: version == Version::Cliffs, ..PlannedPoll::for_change(request.clone()) };
    let fetched = FetchedResponse {
        segments,
        without_cliffs,
        ..FetchedResponse::of_page(request, PollOutcome::Fresh(response), Some(main))
    };
    let result = ingest(&feed.snapshot, &poll, &fetched, (&Settings::default(), &feed.listed), now);
    feed.snapshot.records = stored_after(&feed.snapshot.records, &result);
    feed.snapshot.feeds = vec![(Endpoint::UnlockEvents, result.update.state.clone())];
    if let Some(header) = &result.update.header {
        feed.snapshot.headers = vec![(Endpoint::UnlockEvents, header.clone())];
    }
    result
}

/// Plays a world. Returns what breaks a law.
fn play(seed: u64) -> Result<usize, String> {
    let mut world = World::new(seed);
    let mut feed = Feed::new();
    let mut expectation = Expectation::default();
    let (mut clock, mut reports, mut log) = (0, 0, Vec::new());
    let family = world.chance.below(3);
    for step in 0..=STEPS {
        let correction = if step > 0 && step < STEPS && !world.chance.one_in(3) { world.correct() } else { String::new() };
        let version = match (family, world.chance.below(4)) {
            _ if step == STEPS => {
                if family == 2 {
                    Version::Single(1)
                } else {
                    Version::Joined(1)
                }
            }
            (2, 0 | 1) => Version::Single(1),
            (2, _) => Version::Single(3),
            (_, 0) if step > 0 => Version::Cliffs,
            (_, 1) => Version::Joined(1),
            _ => Version::Joined(3),
        };
        log.push(format!("step {step}: {correction}, {version:?}"));
        let mut version = version;
        let (mut changes, mut is_first, mut expected) = (Vec::new(), true, BTreeMap::new());
        for confirmation in 0..CONFIRMATIONS {
            clock += 1;
            let now = time("2026-03-09") + TimeDelta::hours(6 * clock);
            let result = poll(&mut feed, &world, version, now);
            if result.lacks_segments {
                version = Version::Joined([1, 3][world.chance.below(2)]);
                log.push(format!("  with segments of {version:?}"));
                continue;
            }
            if is_first && expectation.is_undecidable(&world, version) {
                return Ok(reports);
            }
            if is_first {
                expected = expectation.shown(&world, version);
                is_first = false;
            }
            log.extend(result.changes.iter().map(|change| format!("  {confirmation}: {}: {}", change.kind, change.summary)));
            changes.extend(result.changes);
            let awaits = result.update.state.awaits_proof();
            if !awaits {
                break;
            }
            version = if version == Version::Cliffs { Version::Joined(3) } else { version };
        }
        reports += changes.len();
        let reported = differences(&changes);
        let names: BTreeSet<String> = reported.keys().cloned().collect();
        for (name, amount) in expectation.take_removed(&names) {
            *expected.entry(name).or_default() += amount;
        }
        let fail =
            |what: String| Err(format!("seed {seed} {:?} slack {}: {what}\n{}", world.hiding, world.slack, log.join("\n")));
        let expected: BTreeMap<String, f64> = expected.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect();
        let is_same = expected.len() == reported.len()
            && expected.iter().all(|(name, amount)| {
                let is_moved = |change: &Change| change.shift_days.is_some() || change.kind == ChangeKind::Rescheduled;
                let of: Vec<&Change> =
                    changes.iter().filter(|change| change.allocations.iter().any(|part| part.name == *name)).collect();
                let reported = reported.get(name);
                reported.is_some_and(|reported| (reported - amount).abs() < 1e-3) || of.iter().any(|change| is_moved(change))
            });
        if !is_same {
            return fail(format!("expected {expected:?}, reported {reported:?}"));
        }
        let mut known: Vec<_> = expectation
            .known
            .iter()
            .map(|part| part.facts())
            .map(|(name, begin, end, amount)| {
                let day = |day: u64| i64::try_from(day).expect("a day");
                (name.to_owned(), day(begin), end.map(day), amount)
            })
            .collect();
        known.sort();
        if expectation.pending.is_empty() && known != stored(&feed) {
            let stored = stored(&feed);
            let only = |these: &[StoredPart], those: &[StoredPart]| -> Vec<StoredPart> {
                these.iter().filter(|fact| !those.contains(fact)).cloned().collect()
            };
            return fail(format!("known should be {:?}, is {:?}", only(&known, &stored), only(&stored, &known)));
        }
    }
    if expectation.pending.is_empty() {
        Ok(reports)
    } else {
        Err(format!("seed {seed}: a removal is not reported\n{}", log.join("\n")))
    }
}

#[test]
fn parts_that_a_version_hides_are_compared_with_themselves() {
    let worlds = std::env::var("VERSION_WORLDS").ok().and_then(|worlds| worlds.parse().ok()).unwrap_or(WORLDS);
    let (mut reports, mut faults) = (0, Vec::new());
    for seed in 0..worlds {
        match play(seed) {
            Ok(count) => reports += count,
            Err(fault) => faults.push(fault),
        }
    }
    let shown: Vec<&str> = faults.iter().take(4).map(String::as_str).collect();
    assert!(faults.is_empty(), "{} of {worlds} worlds break a law\n{}", faults.len(), shown.join("\n"));
    assert!(reports > usize::try_from(worlds).expect("few"), "{reports} reports");
}

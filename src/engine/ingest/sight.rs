//! How far a server lets this plan see, learnt from its answers. Pure.
//!
//! A plan may show a year or two to either side of today and never say so. Then each day a tranche slides out behind and another
//! slides in ahead, and neither has gone or come. Nothing in an answer tells such a border from a schedule that ends there; time does,
//! since a border moves with today and a schedule does not. So each side keeps two distances from now: the greatest at which
//! anything was answered, and the least at which something was left out. A border lies between them, always.
//!
//! A border is believed only with evidence, because behind one nothing is compared any more:
//! - What left or came is the outermost of all, and so little that one border, moving since the last answer, can account for it.
//! - The distance is a whole number of years, as plans are sold; or another tranche left or came at the same distance before.
//! - A server that cuts both sides at whole years at once changed the plan.
//!
//! It is given up as soon as anything is answered beyond it. What left behind at an odd distance is held meanwhile rather than told as
//! removed: it is long past, and once the first event that is left has grown older than the border, the border is refuted.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::diff::DateWindow;
use model::supply::Timestamp;

const DAY: i64 = 86_400;
/// Servers cut at days, ours or theirs: two distances that differ by less are one.
const SLACK: i64 = DAY;
/// The distances between which a border lies must be this near each other: after a longer pause they prove nothing.
const MOST_APART: i64 = 10 * DAY;
/// As far apart may they be where both sides are cut at once.
const MOST_APART_BOTH: i64 = 100 * DAY;
/// What left behind this long after its date, by a border at an odd distance, is held.
const HELD_AFTER: i64 = 180 * DAY;
/// Plans reach no farther.
const MOST_YEARS: i64 = 10;

/// What one side of the schedule shows of a border.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BorderEvidence {
    /// The greatest distance from now at which anything was answered, seconds.
    seen: Option<i64>,
    /// The least distance at which something was left out that is known, or that came later.
    unseen: Option<i64>,
    /// Whether there is a border between the two.
    is_cut: bool,
}

/// What an answer shows of one side.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    /// The border is at least this far away,
    least: i64,
    /// and at most this far.
    most: i64,
}

impl Crossing {
    /// Whether one border that moves with now can account for it.
    fn is_one_border(self, most_apart: i64) -> bool {
        self.least <= self.most + SLACK && self.most - self.least <= most_apart
    }

    /// Whether a whole number of years lies within.
    fn holds_whole_years(self) -> bool {
        (1..=MOST_YEARS).any(|years| self.least <= years * 366 * DAY + SLACK && years * 365 * DAY - SLACK <= self.most)
    }

    fn agrees_with(self, edge: BorderEvidence) -> bool {
        let (Some(seen), Some(unseen)) = (edge.seen, edge.unseen) else { return false };
        self.least.max(seen) <= self.most.min(unseen) + SLACK
    }
}

/// An answer beside what was known, for one of the forms of unlock or for all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look<'a> {
    /// Dates of that form that were known, and that the answer could have named.
    pub known: &'a [Timestamp],
    /// All dates that it names.
    pub answered: &'a [Timestamp],
    /// Those of that form: the others may have come at another time.
    pub arrived: &'a [Timestamp],
    /// When that form was answered before.
    pub before: Timestamp,
    /// It is asked for so seldom that a long pause proves nothing against a border.
    pub is_seldom: bool,
}

/// The borders of a feed, as far as its answers have shown them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Sight {
    back: BorderEvidence,
    ahead: BorderEvidence,
}

impl Sight {
    /// What a first answer shows.
    pub(super) fn first(answered: &[Timestamp], now: Timestamp) -> Self {
        let saw = |at: Option<&Timestamp>, outward: i64| BorderEvidence {
            seen: at.map(|at| (*at - now).num_seconds() * outward),
            ..BorderEvidence::default()
        };
        Self { back: saw(answered.iter().min(), -1), ahead: saw(answered.iter().max(), 1) }
    }

    /// What is known of segments, which are read more seldom, with what cliffs have shown since: one border cuts both.
    pub(super) fn informed_by(self, cliffs: Self) -> Self {
        let edge = |own: BorderEvidence, other: BorderEvidence| match other.seen {
            Some(seen) if !other.is_cut => own.saw(seen),
            Some(_) => other,
            None => own,
        };
        Self { back: edge(self.back, cliffs.back), ahead: edge(self.ahead, cliffs.ahead) }
    }

    /// What is known after one more answer.
    pub(super) fn learn(self, look: &Look<'_>, now: Timestamp) -> Self {
        let Look { known, answered, arrived, before, is_seldom } = *look;
        let real = |at: &&Timestamp| at.timestamp() > 365 * DAY; // undated parts stand at the epoch
        let known: Vec<Timestamp> = known.iter().filter(real).copied().collect();
        let seconds = |delta: TimeDelta| delta.num_seconds();
        let before = before.min(now);
        // What was not looked at for a while may have crossed a border at any time of it. Of the oldest that is known that is believed
        // after any pause, of what is new far ahead after a season at most: it may as well have been added.
        let (behind, ahead_of) = match is_seldom {
            true => (i64::MAX, (seconds(now - before) + MOST_APART).min(MOST_APART_BOTH)),
            false => (MOST_APART, MOST_APART),
        };
        let (Some(first), Some(last)) = (answered.iter().filter(real).min(), answered.iter().filter(real).max()) else {
            // All of it may have slid out at last.
            let (Some(oldest), Some(youngest)) = (known.iter().min(), known.iter().max()) else { return self };
            let least = seconds(before - *oldest).max(self.back.seen.unwrap_or(i64::MIN));
            let left = Crossing { least, most: seconds(now - *youngest) };
            let back = if self.back.is_cut { self.back } else { self.back.behind(Some(left), least, behind) };
            return Self { back, ..self };
        };
        let (back, ahead) = (seconds(now - *first), seconds(*last - now));

        // A border takes away and brings nothing behind, and brings and takes nothing away ahead. Where the outermost that is answered is
        // new, or the outermost that was known is not answered any more, it was moved.
        let is_moved_behind = arrived.contains(first) && !known.contains(first);
        let is_moved_ahead = known.iter().max().is_some_and(|latest| !answered.contains(latest));
        let left = known.iter().filter(|at| *at < first && !is_moved_behind);
        let left = left.clone().min().zip(left.max()).map(|(oldest, youngest)| {
            // Before there was a border, all that left was still there at the last answer.
            let was_seen = if self.back.is_cut { i64::MIN } else { seconds(before - *oldest) };
            Crossing { least: back.max(was_seen).max(self.back.seen.unwrap_or(i64::MIN)), most: seconds(now - *youngest) }
        });
        let cut: Option<Crossing> =
            known.iter().filter(|at| *at > last).min().map(|next| Crossing { least: ahead, most: seconds(*next - now) });
        let latest = known.iter().max();
        let new = arrived.iter().filter(real).filter(|at| !is_moved_ahead && latest.is_none_or(|latest| *at > latest));
        let came = new
            .clone()
            .max()
            .zip(new.min())
            .map(|(farthest, nearest)| Crossing { least: seconds(*farthest - now), most: seconds(*nearest - before) });

        // A plan that shows less than the one before: either side alone would not be believed.
        if let (Some(left), Some(cut)) = (left, cut) {
            let left = Crossing { least: back, ..left };
            let is_plan = |one: Crossing, was: BorderEvidence| {
                let was_seen = was.seen.is_some_and(|seen| one.most + SLACK < seen);
                was_seen && one.is_one_border(MOST_APART_BOTH) && one.holds_whole_years()
            };
            if is_plan(left, self.back) && is_plan(cut, self.ahead) {
                let edge = |one: Crossing| BorderEvidence { seen: Some(one.least), unseen: Some(one.most), is_cut: true };
                return Self { back: edge(left), ahead: edge(cut) };
            }
        }
        // An event that grows old is no jump: by as much as time passed it would have come into view by itself.
        let aged = seconds(now - before);
        let back = self.back.widened(back - aged, back, left).unwrap_or_else(|| self.back.behind(left, back, behind));
        // A plan that is cut behind is cut ahead.
        let ahead_of = if is_seldom && back.is_cut { i64::MAX } else { ahead_of };
        Self { back, ahead: self.ahead.widened(ahead, ahead, cut).unwrap_or_else(|| self.ahead.in_front(came, ahead, ahead_of)) }
    }

    /// The days of which an answer at `at` speaks for sure.
    pub(super) fn window(self, at: Timestamp) -> DateWindow {
        let day = |seconds: i64| Some(at.checked_add_signed(TimeDelta::try_seconds(seconds)?)?.date_naive());
        DateWindow { first: self.back.reach().and_then(|reach| day(-reach)), last: self.ahead.reach().and_then(day) }
    }
}

impl BorderEvidence {
    /// As far as anything is answered for sure, where there is a border.
    fn reach(self) -> Option<i64> {
        // What lies that near the border is left to the days, and the border to whole days.
        Some(self.seen.filter(|_| self.is_cut)? - 2 * SLACK)
    }

    /// Something was answered as far away as `seen`. Beyond a border it refutes it.
    fn saw(self, seen: i64) -> Self {
        let is_beyond = self.unseen.is_some_and(|unseen| seen > unseen + SLACK);
        let farthest = Some(self.seen.map_or(seen, |before| before.max(seen)));
        if is_beyond { Self { seen: farthest, ..Self::default() } } else { Self { seen: farthest, ..self } }
    }

    /// What lay beyond a border is answered all at once: the plan shows more. Where some that is known is still left out, there is
    /// another border farther away.
    fn widened(self, from: i64, seen: i64, left_out: Option<Crossing>) -> Option<Self> {
        let is_wider = self.is_cut && self.unseen.is_some_and(|unseen| from > unseen + SLACK);
        let border = left_out.filter(|out| out.most > seen && out.most - seen <= MOST_APART_BOTH);
        is_wider.then(|| Self { seen: Some(seen), unseen: border.map(|out| out.most), is_cut: border.is_some() })
    }

    /// The side behind; `left` is what an answer left out there.
    fn behind(self, left: Option<Crossing>, seen: i64, most_apart: i64) -> Self {
        let after = self.saw(seen);
        let Some(left) = left else { return after };
        if self.is_cut {
            // What is left out within the border is no matter of the border.
            let nearer = after.unseen.map(|unseen| if left.most + SLACK >= left.least { unseen.min(left.most) } else { unseen });
            return if after.is_cut { Self { unseen: nearer, ..after } } else { after };
        }
        if !left.is_one_border(most_apart) {
            return after;
        }
        let is_cut = left.holds_whole_years() || left.agrees_with(self) || left.most >= HELD_AFTER;
        Self { seen: Some(left.least), unseen: Some(left.most), is_cut }
    }

    /// The side ahead; `came` is what nobody knew there.
    fn in_front(self, came: Option<Crossing>, seen: i64, most_apart: i64) -> Self {
        let after = self.saw(seen);
        let Some(came) = came.filter(|_| !self.is_cut) else { return after };
        let came = Crossing { least: self.seen.map_or(came.least, |seen| seen.max(came.least)), ..came };
        if !came.is_one_border(most_apart) {
            return Self { unseen: None, ..after };
        }
        let is_cut = came.holds_whole_years() || came.agrees_with(self);
        Self { seen: Some(came.least), unseen: Some(came.most), is_cut }
    }
}

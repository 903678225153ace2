//! The source: tokens, schedules, and burns, with all facts that must be notified.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{TimeDelta, Timelike};
use cliffwatch::{
    model::{clock::Clock, supply::Timestamp},
    service::{Options, Service},
};

use super::books::Fact;
use crate::it::support::{burn, cliff, item};

pub const TOKENS: usize = 24;
/// The number of events per schedule.
const EVENTS: usize = 7;
/// The lead time of [`LEAD_RULE`].
const LEAD_DAYS: i64 = 3;
/// The amount of the events that [`LEAD_RULE`] reports.
const LEAD_AMOUNT: f64 = 5e6;

/// The rule for events whose lead time begins during a run.
pub const LEAD_RULE: &str = r#"
[[rule]]
alert = "Lead"
on = "unlock"
within = ["3d"]
when = "cliffValue >= 4000000"

[[rule]]
alert = "Resized"
on = "unlock.resized"
"#;

/// The last token, which is silenced from the start.
pub const SILENCED: &str = "token-23";

/// The source, and the expected facts.
pub struct World {
    pub service: Service,
    /// The facts of burns, first reminders, and confirmed moves. Each must be notified once.
    due: BTreeSet<Fact>,
    /// The last move of each token. The next one waits until it was notified.
    moving: BTreeMap<String, Fact>,
    /// The last resized amount of each token. The next one waits until it was notified.
    resizing: BTreeMap<String, Fact>,
    /// The facts that become true during the run, with that time.
    deadlines: BTreeMap<Fact, Timestamp>,
    /// When each burn, move, and resize was made.
    changed_at: BTreeMap<Fact, Timestamp>,
    burns: u32,
    moves: u32,
    resizes: u32,
}

pub fn token(n: usize) -> String {
    format!("token-{n:02}")
}

fn day(at: Timestamp) -> String {
    at.format("%Y-%m-%d").to_string()
}

impl World {
    pub fn new() -> Self {
        let service = Service::in_memory(Options::default()).expect("a service");
        let mut due = BTreeSet::new();
        service
            .edit(|edit| {
                for n in 0..TOKENS {
                    let id = token(n);
                    edit.put_token(&item(&id, &id))?;
                    // One unlock within the lead time, and later ones that can move. The dates of different tokens never coincide.
                    let first = noon(5);
                    let n = i64::try_from(n).unwrap_or(0);
                    let later = (1..EVENTS as i64).map(|month| noon(40 + 61 * month + n));
                    let events = std::iter::once(first).chain(later).map(|at| cliff(&wire(at), "Team", 2e6, "second"));
                    edit.put_events(&id, events.collect())?;
                    edit.add_burn(&id, burn("2026-01-10T00:00:00Z", 5_000.0))?;
                    due.insert(format!("Ahead {id} firing {}", minute(first)));
                }
                Ok(())
            })
            .expect("filled");
        let (moving, resizing) = (BTreeMap::new(), BTreeMap::new());
        let (deadlines, changed_at) = (BTreeMap::new(), BTreeMap::new());
        Self { service, due, moving, resizing, deadlines, changed_at, burns: 0, moves: 0, resizes: 0 }
    }

    /// Adds two events to each token: one that passes during the run, and one whose lead time of three days begins during the run, for
    /// which the rules need [`LEAD_RULE`].
    pub fn add_deadlines(&mut self, from: Timestamp, length: TimeDelta) {
        let tokens = i32::try_from(TOKENS).expect("few");
        for n in 0..tokens {
            let id = token(usize::try_from(n).expect("positive"));
            let passes = whole_second(from + length * n / tokens);
            let begins = whole_second(from + length * (2 * n + 1) / (2 * tokens));
            let ahead = begins + TimeDelta::days(LEAD_DAYS);
            self.service
                .edit(|edit| {
                    let mut events = edit.events(&id)?;
                    events.push(cliff(&wire(passes), "Team", 2e6, "second"));
                    events.push(cliff(&wire(ahead), "Team", LEAD_AMOUNT, "second"));
                    edit.put_events(&id, events)
                })
                .expect("filled");
            for at in [passes, ahead] {
                self.due.insert(format!("Ahead {id} firing {}", minute(at)));
            }
            self.deadlines.insert(format!("Ahead {id} resolved {}", minute(passes)), passes);
            self.deadlines.insert(format!("Lead {id} firing {}", minute(ahead)), begins);
        }
    }

    /// Returns whether the event of a fact is more than a day ahead.
    pub fn is_far(&self, fact: &Fact) -> bool {
        fact.rsplit(' ').next().is_some_and(|date| date > minute(Clock::system().now() + TimeDelta::days(1)).as_str())
    }

    /// The facts that become true during the run, with that time.
    pub fn deadlines(&self) -> &BTreeMap<Fact, Timestamp> {
        &self.deadlines
    }

    /// Adds a burn with a unique amount.
    pub fn burn(&mut self, random: &mut fastrand::Rng) {
        self.burns += 1;
        let (id, amount) = (token(random.usize(..TOKENS)), f64::from(1_000_000 + self.burns));
        let today = Clock::system().now();
        self.service.edit(|edit| edit.add_burn(&id, burn(&wire(today - TimeDelta::hours(30)), amount))).expect("burnt");
        let fact = format!("Burned {id} {amount:?}");
        self.changed_at.insert(fact.clone(), Clock::system().now());
        self.due.insert(fact);
    }

    /// When each burn, move, and resize was made.
    pub fn changed_at(&self) -> &BTreeMap<Fact, Timestamp> {
        &self.changed_at
    }

    /// Moves the last event of a random token if its previous move was `notified`.
    pub fn move_one(&mut self, random: &mut fastrand::Rng, notified: impl Fn(&Fact) -> bool) {
        let id = token(random.usize(..TOKENS));
        if self.moving.get(&id).is_some_and(|fact| id == SILENCED || !notified(fact)) {
            return;
        }
        self.moves += 1;
        let by = TimeDelta::days(random.i64(1..=9));
        let mut to = None;
        self.service
            .edit(|edit| {
                let at = edit.events(&id)?.into_iter().filter_map(|event| event.unlock_date.copied()).max().expect("dated");
                to = Some(at + by);
                edit.move_event(&id, at, at + by)
            })
            .expect("moved");
        let fact = format!("Moved {id} {}", day(to.expect("moved")));
        self.changed_at.insert(fact.clone(), Clock::system().now());
        if let Some(before) = self.moving.insert(id, fact) {
            self.due.insert(before);
        }
    }

    /// Resizes the second to last event of a random token if its previous amount was `notified`.
    pub fn resize_one(&mut self, random: &mut fastrand::Rng, notified: impl Fn(&Fact) -> bool) {
        let id = token(random.usize(..TOKENS));
        if self.resizing.get(&id).is_some_and(|fact| !notified(fact)) {
            return;
        }
        self.resizes += 1;
        // A factor that no other resize has, so that no amount occurs twice.
        let factor = 1.0 + f64::from(self.resizes) / 1e6;
        let factor = if self.resizes.is_multiple_of(2) { 1.3 * factor } else { factor / 1.3 };
        let mut amount = None;
        self.service
            .edit(|edit| {
                let mut dates: Vec<_> = edit.events(&id)?.into_iter().filter_map(|event| event.unlock_date.copied()).collect();
                dates.sort_unstable();
                let at = dates[dates.len() - 2];
                edit.resize_event(&id, at, factor)?;
                let event = edit.events(&id)?.into_iter().find(|event| event.unlock_date.copied() == Some(at)).expect("found");
                amount = Some(serde_json::to_value(event).expect("JSON")["cliffUnlocks"]["cliffAmount"].to_string());
                Ok(())
            })
            .expect("resized");
        let fact = format!("Resized {id} {}", amount.expect("resized"));
        self.changed_at.insert(fact.clone(), Clock::system().now());
        if let Some(before) = self.resizing.insert(id, fact) {
            self.due.insert(before);
        }
    }

    /// All facts that each receiver must get by now.
    pub fn facts(&self) -> BTreeSet<Fact> {
        let now = Clock::system().now();
        let reached = self.deadlines.iter().filter(|(_, at)| **at <= now).map(|(fact, _)| fact);
        self.due.iter().chain(self.moving.values()).chain(self.resizing.values()).chain(reached).cloned().collect()
    }

    /// The number of records in the baselines.
    pub fn records(&self) -> usize {
        TOKENS * (1 + EVENTS)
    }

    pub fn summary(&self) -> String {
        let deadlines = self.deadlines.len();
        format!("{} burns, {} moves, {} resizes, {TOKENS} reminders, {deadlines} deadlines", self.burns, self.moves, self.resizes)
    }
}

fn minute(at: Timestamp) -> String {
    at.format("%Y-%m-%dT%H:%M").to_string()
}

fn whole_second(at: Timestamp) -> Timestamp {
    at.with_nanosecond(0).expect("a second")
}

fn noon(days: i64) -> Timestamp {
    let day = Clock::system().now().date_naive() + TimeDelta::days(days);
    day.and_hms_opt(12, 0, 0).expect("noon").and_utc()
}

fn wire(at: Timestamp) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

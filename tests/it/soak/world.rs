//! The source: tokens, schedules, and burns, with all facts that must be notified.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use cliffwatch::{
    model::{clock::Clock, supply::Timestamp},
    service::{AccessPolicy, Options, Service},
};

use super::books::Fact;
use crate::support::{burn, cliff, item};

pub const TOKENS: usize = 24;
/// The number of events per schedule.
const EVENTS: usize = 7;
/// The last token, which is silenced from the start.
pub const SILENCED: &str = "token-23";

/// The source, and the expected facts.
pub struct World {
    pub service: Service,
    /// The facts of burns, first reminders, and confirmed moves. Each must be notified once.
    due: BTreeSet<Fact>,
    /// The last move of each token. The next one waits until it was notified.
    moving: BTreeMap<String, Fact>,
    burns: u32,
    moves: u32,
}

pub fn token(n: usize) -> String {
    format!("token-{n:02}")
}

fn day(at: Timestamp) -> String {
    at.format("%Y-%m-%d").to_string()
}

impl World {
    pub fn new() -> Self {
        let service = Service::in_memory(Options { access: AccessPolicy::Open, ..Options::default() }).expect("a service");
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
                    due.insert(format!("Ahead {id} firing"));
                }
                Ok(())
            })
            .expect("filled");
        Self { service, due, moving: BTreeMap::new(), burns: 0, moves: 0 }
    }

    /// Adds a burn with a unique amount.
    pub fn burn(&mut self, random: &mut fastrand::Rng) {
        self.burns += 1;
        let (id, amount) = (token(random.usize(..TOKENS)), f64::from(1_000_000 + self.burns));
        let today = Clock::system().now();
        self.service.edit(|edit| edit.add_burn(&id, burn(&wire(today - TimeDelta::hours(30)), amount))).expect("burnt");
        self.due.insert(format!("Burned {id} {amount:?}"));
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
        if let Some(before) = self.moving.insert(id, fact) {
            self.due.insert(before);
        }
    }

    /// All facts that each receiver must get.
    pub fn facts(&self) -> BTreeSet<Fact> {
        self.due.iter().chain(self.moving.values()).cloned().collect()
    }

    /// The number of records in the baselines.
    pub fn records(&self) -> usize {
        TOKENS * (1 + EVENTS)
    }

    pub fn summary(&self) -> String {
        format!("{} burns, {} moves, {TOKENS} reminders", self.burns, self.moves)
    }
}

fn noon(days: i64) -> Timestamp {
    let day = Clock::system().now().date_naive() + TimeDelta::days(days);
    day.and_hms_opt(12, 0, 0).expect("noon").and_utc()
}

fn wire(at: Timestamp) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

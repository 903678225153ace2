//! The comparison of the books with what happened.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use cliffwatch::model::clock::Clock;

use super::{GRACE, MAX_SKEW_SECS, PairSoak, claims, fault_log, witness};
use crate::it::soak::books::Books;

/// The maximum number of deliveries to one receiver that are accepted but not recorded when a process dies.
const UNRECORDED: usize = 8;
/// The time limit for all notifications after the last fault. A clock that was ahead delays evaluation until the others have caught up.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(660);
/// The longest time from a change at the source to its message: the longest failure, a takeover, a low budget, and retries.
const MAX_DELAY: TimeDelta = TimeDelta::minutes(3);
/// The length of a run in which both machines are active at some time.
const LONG_RUN: Duration = Duration::from_secs(600);
/// The longest failure of the server that is part of [`MAX_DELAY`].
const COVERED_FAILURE_SECS: f64 = 30.0;
/// The tolerance of times, in addition to the difference of clocks.
const TIME_TOLERANCE: TimeDelta = TimeDelta::seconds(10);

impl PairSoak {
    /// Checks that an instance sends no requests after another one became active.
    pub fn check_requests(&mut self, now: Instant) {
        let Some(tenure) = self.lease.last() else { return };
        for at in 0..2 {
            let since = tenure.at.max(self.resumed_at[at]) + GRACE;
            let is_late = self.requests[at].last().is_some_and(|last| last > since);
            if self.hosts[at].pid() != tenure.pid && now > since && is_late {
                let log = self.hosts[at].log_end(40);
                self.violate(format!(
                    "{} polls although lease {} is of {}: {log}",
                    self.hosts[at].name, tenure.number, tenure.pid
                ));
                self.resumed_at[at] = now;
            }
        }
    }

    fn column(&self, sql: &str) -> Vec<String> {
        self.cluster.query(sql).lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
    }

    /// The facts that the first two receivers lack.
    fn missing(&self) -> Vec<String> {
        let due = self.world.facts();
        let of = |books: &Books| {
            let notified = books.facts();
            due.iter().filter(|fact| !notified.contains_key(*fact)).cloned().collect::<Vec<_>>()
        };
        self.books.iter().take(2).flat_map(of).collect()
    }

    /// The deliveries, and notifications in none, to the receivers that are always in the config.
    fn pending_count(&self) -> usize {
        let deliveries = "SELECT webhook_id FROM delivery WHERE state IN ('due', 'retrying') AND receiver <> 'extra'";
        let notifications = "SELECT notification FROM pending_notification WHERE state = 'waiting' AND receiver <> 'extra'";
        self.column(deliveries).len() + self.column(notifications).len()
    }

    /// Ends all faults, waits until everything is notified, and stops both instances. Returns what was not notified. A fact that becomes
    /// true while they stop does not count.
    pub async fn finish(&mut self, length: Duration) -> Vec<String> {
        println!("the last fault after {length:?}");
        self.end_faults();
        for at in std::mem::take(&mut self.must_start) {
            self.hosts[at].restart().await;
        }
        let ended_at = Instant::now();
        let missing = loop {
            let missing = self.missing();
            if ended_at.elapsed() > SETTLE_TIMEOUT || (missing.is_empty() && self.pending_count() == 0) {
                break missing;
            }
            self.check_requests(Instant::now());
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        println!("all notifications arrived {:?} after the last fault", ended_at.elapsed());
        // Leave time for unexpected messages.
        tokio::time::sleep(Duration::from_secs(3)).await;
        for host in &mut self.hosts {
            host.signal("TERM");
            host.wait_for_end().await;
        }
        missing.into_iter().map(|fact| format!("never notified: {fact}")).collect()
    }

    /// Returns a description of each violated guarantee. `is_final` adds the checks that hold only after all deliveries.
    pub fn problems(&self, is_final: bool) -> Vec<String> {
        let mut problems = self.lease.violations();
        for (receiver, books) in ["steady", "moody", "extra"].into_iter().zip(&self.books) {
            self.check_facts(receiver, books, &mut problems);
            let deaths: usize = self.hosts.iter().map(|host| host.deaths + host.times_stepped_down()).sum();
            let most = deaths * UNRECORDED + books.unanswered();
            if books.repeats() > most {
                problems.push(format!("{receiver} got {} repeated messages, at most {most} are allowed", books.repeats()));
            }
        }
        self.check_delays(&mut problems);
        let claims = self.claims.all();
        problems.extend(claims::contradictions(&claims, &self.lease.tenures()));
        if is_final {
            problems.extend(
                witness::breaches(&self.cluster).into_iter().map(|breach| format!("written without the lease: {breach}")),
            );
            self.check_alerts(&mut problems);
            self.check_database(&mut problems);
        }
        problems
    }

    fn check_facts(&self, receiver: &str, books: &Books, problems: &mut Vec<String>) {
        let (due, deadlines) = (self.world.facts(), self.world.deadlines());
        let times = books.first_times();
        for (fact, ids) in books.facts() {
            if fact.starts_with("SourceTrouble ") {
                continue;
            }
            let extra = fact.strip_prefix("Extra").and_then(|rest| rest.split_once(' '));
            let is_true = match extra {
                // The rule matches the events of another one.
                Some((_, rest)) => due.contains(&format!("Ahead {}", rest.replace(" resolved ", " firing "))),
                None => due.contains(&fact) || deadlines.contains_key(&fact),
            };
            if !is_true {
                problems.push(format!("{receiver} got an alert without a cause: {fact}"));
            }
            let is_reverted = extra.is_some_and(|(number, _)| number.parse().is_ok_and(|number| self.reverted.contains(&number)));
            if ids.len() > 1 && !is_reverted {
                problems.push(format!("{receiver} got an alert under several ids, {ids:?}: {fact}"));
            }
            let earliest = deadlines.get(&fact).map(|at| *at - TimeDelta::seconds(MAX_SKEW_SECS) - TIME_TOLERANCE);
            if let (Some(earliest), Some(at)) =
                (earliest, times.get(&fact).filter(|at| earliest.is_some_and(|earliest| **at < earliest)))
            {
                problems.push(format!("{receiver} got an alert too early, at {at} instead of {earliest}: {fact}"));
            }
        }
    }

    /// The part of the longest failure of the server that [`MAX_DELAY`] does not cover.
    fn longest_server_failure(&self) -> TimeDelta {
        let failures =
            self.fault_log.all().iter().filter(|fault| fault.cause == fault_log::Cause::Server && fault.end.is_finite());
        let longest = failures.map(|fault| fault.end - fault.begin).fold(0.0, f64::max);
        #[expect(clippy::cast_possible_truncation, reason = "some minutes")]
        TimeDelta::seconds((longest - COVERED_FAILURE_SECS).max(0.0) as i64)
    }

    /// Checks how long after each change at the source the first receiver got it.
    fn check_delays(&self, problems: &mut Vec<String>) {
        let (times, now) = (self.books[0].first_times(), Clock::system().now());
        let changes = self.world.changed_at().iter();
        let delays = changes.map(|(fact, at)| (times.get(fact).copied().unwrap_or(now) - *at, fact));
        let mut delays: Vec<_> = delays.collect();
        delays.sort();
        let at = |share: usize| delays.get(delays.len().saturating_sub(1) * share / 100).map(|(delay, _)| delay.num_seconds());
        println!(
            "from a change to its message, in seconds: median {:?}, 95 % {:?}, 99 % {:?}, longest {:?}",
            at(50),
            at(95),
            at(99),
            at(100)
        );
        let late = delays.iter().filter(|(delay, _)| *delay > MAX_DELAY + self.longest_server_failure());
        problems.extend(late.map(|(delay, fact)| format!("not notified within {} s: {fact}", delay.num_seconds())));
    }

    /// Checks the alerts of Prometheus, and that the observers observed.
    fn check_alerts(&self, problems: &mut Vec<String>) {
        let (claims, statements) = (self.claims.all(), witness::statements(&self.cluster));
        let active = |host: &str| claims.iter().filter(|claim| claim.host == host && claim.is_active == Some(true)).count();
        println!(
            "{} scrapes, {} of them showed machine one as active and {} machine two; {statements:?} statements were compared with the lease",
            claims.len(),
            active("one"),
            active("two")
        );
        // A short run may have no takeover.
        let scrapes = [active("one"), active("two")];
        let seen = scrapes.iter().zip(&statements).filter(|(scrapes, statements)| **scrapes > 0 && **statements > 0);
        if seen.count() < if self.length < LONG_RUN { 1 } else { 2 } {
            problems.push("a machine was never observed as active".to_owned());
        }
        let Some(prometheus) = &self.prometheus else { return };
        let periods = prometheus.periods();
        let mut totals: BTreeMap<(String, String), (usize, usize, f64)> = BTreeMap::new();
        for period in &periods {
            let total = totals.entry((period.alert.clone(), period.instance.clone())).or_default();
            *total = (total.0 + 1, total.1 + usize::from(period.fired_at.is_some()), total.2.max(period.end - period.begin));
        }
        for ((alert, instance), (times, fired, longest)) in totals {
            println!("  {alert:<26} {instance:<4} {times:>4} times true, {fired:>3} fired, longest {longest:>6.0} s");
        }
        problems.extend(fault_log::surprises(&periods, self.fault_log.all()));
    }

    fn check_database(&self, problems: &mut Vec<String>) {
        for (receiver, books) in ["steady", "moody", "extra"].into_iter().zip(&self.books) {
            let accepted: BTreeSet<String> = books.accepted().into_iter().map(|(id, _)| id).collect();
            let sql = format!("SELECT webhook_id FROM delivery WHERE state = 'delivered' AND receiver = '{receiver}'");
            for id in self.column(&sql).into_iter().filter(|id| !accepted.contains(id)) {
                problems.push(format!("{id} is recorded as delivered, but {receiver} does not have it"));
            }
        }
        let lost =
            "SELECT id FROM notification WHERE receivers <> '[]' AND id NOT IN (SELECT notification FROM delivery_notification)";
        problems.extend(self.column(lost).into_iter().map(|id| format!("notification without a delivery: {id}")));
        let credit: serde_json::Value = serde_json::from_str(&self.cluster.query("SELECT state FROM credit")).unwrap_or_default();
        let number = |key: &str| credit[key].as_u64().unwrap_or(0);
        let reserved: u64 = credit["reserved"].as_array().into_iter().flatten().filter_map(|one| one["credits"].as_u64()).sum();
        let (used, known) =
            (self.used_credits(), (number("spent") + number("doubtful") + reserved).max(number("used") + number("uncounted")));
        println!("{used} credits used by the count of the source; at most {known} by the ledger: {credit}");
        if used > known {
            problems.push(format!("{used} credits used, but only {known} in the ledger"));
        }
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for incident in self.books[0].incidents() {
            *kinds.entry(format!("{} {}", incident["labels"]["kind"], incident["status"])).or_default() += 1;
        }
        println!("incidents: {kinds:?}");
        let times = self.books[0].first_times().into_iter();
        let late = times.filter_map(|(fact, at)| Some(((at - *self.world.deadlines().get(&fact)?).num_seconds(), at, fact)));
        let mut late: Vec<_> = late.collect();
        late.sort();
        println!("deadlines were notified {:?} s to {:?} s after their time", late.first(), late.last());
        println!("the latest: {:?}", late.iter().rev().take(5).collect::<Vec<_>>());
    }
}

//! How far a cycle is with what it asks: for a line of the log, the status of systemd, a bar on a terminal. A first read of hundreds of
//! tokens takes many minutes, in which nothing else is heard of it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use model::{format::count, supply::Endpoint};

/// How long a read may take before it is told how far it is, and how often that is told then.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// What is being read, by endpoint.
#[derive(Debug, Default)]
pub struct Reading(Mutex<BTreeMap<Endpoint, Read>>);

#[derive(Debug)]
struct Read {
    progress: ReadProgress,
    begun: Instant,
    told: Instant,
}

/// How far a read is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadProgress {
    pub endpoint: Endpoint,
    /// Things that are to be asked, as far as is known by now.
    pub planned: usize,
    /// Those that were answered, whatever came of them.
    pub answered: usize,
    /// Of those, what could not be read.
    pub failed: usize,
    /// How long it has been going on.
    pub took: Duration,
}

impl ReadProgress {
    /// `unlock_events: 120 of 640 read, 3 failed, about 4 min to go`.
    pub fn sentence(&self) -> String {
        let Self { endpoint, planned, answered, failed, .. } = self;
        let mut text = format!("{endpoint}: {answered} of {planned} read");
        if *failed > 0 {
            text.push_str(&format!(", {failed} failed"));
        }
        if let Some(left) = self.left() {
            text.push_str(&match left.as_secs() {
                secs @ 0..100 => format!(", about {} to go", count(usize::try_from(secs.max(1)).unwrap_or(1), "second")),
                secs => format!(", about {} to go", count(usize::try_from(secs.div_ceil(60)).unwrap_or(1), "minute")),
            });
        }
        text
    }

    /// `unlock_events 120/640, 3 failed, 4 min`: beside a bar there is little room.
    pub fn brief(&self) -> String {
        let Self { endpoint, planned, answered, failed, .. } = self;
        let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
        let left = self.left().map(|left| match left.as_secs() {
            secs @ 0..100 => format!(", {} s", secs.max(1)),
            secs => format!(", {} min", secs.div_ceil(60)),
        });
        format!("{endpoint} {answered}/{planned}{failed}{}", left.unwrap_or_default())
    }

    /// What is left to do, if it goes on as it went. None where nothing was answered yet.
    fn left(&self) -> Option<Duration> {
        let answered = u32::try_from(self.answered).ok().filter(|answered| *answered > 0)?;
        let rest = u32::try_from(self.planned.saturating_sub(self.answered)).ok()?;
        self.took.checked_mul(rest).map(|whole| whole / answered)
    }
}

impl Reading {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Endpoint, Read>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many more things are going to be asked.
    pub(super) fn plan(&self, endpoint: Endpoint, asks: usize, now: Instant) {
        let progress = ReadProgress { endpoint, planned: 0, answered: 0, failed: 0, took: Duration::ZERO };
        self.all().entry(endpoint).or_insert(Read { progress, begun: now, told: now }).progress.planned += asks;
    }

    /// One of them was answered.
    pub(super) fn answered(&self, endpoint: Endpoint, is_failed: bool) {
        if let Some(read) = self.all().get_mut(&endpoint) {
            read.progress.answered += 1;
            read.progress.failed += usize::from(is_failed);
        }
    }

    /// The cycle is over.
    pub(super) fn end(&self, endpoint: Endpoint) {
        self.all().remove(&endpoint);
    }

    /// What is being read now.
    pub fn now(&self, now: Instant) -> Vec<ReadProgress> {
        let progress = |read: &Read| ReadProgress { took: now.saturating_duration_since(read.begun), ..read.progress.clone() };
        self.all().values().map(progress).collect()
    }

    /// What has been read for so long since it was last told that it is told again.
    pub fn due(&self, now: Instant) -> Vec<ReadProgress> {
        let mut all = self.all();
        let long = all.values_mut().filter(|read| now.saturating_duration_since(read.told) >= TOLD_EVERY);
        long.map(|read| {
            read.told = now;
            ReadProgress { took: now.saturating_duration_since(read.begun), ..read.progress.clone() }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests;

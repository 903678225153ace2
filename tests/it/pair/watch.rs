//! The books about who is active: the lease as the database shows it, and the requests of each instance that the source received.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Router, extract::Request, middleware};

use super::session::RawSession;

/// The interval between two readings of the lease.
const READ_INTERVAL: Duration = Duration::from_millis(50);

/// The longest time that an instance is active which restarts at its takeover.
const SHORT_TENURE: Duration = Duration::from_secs(4);

/// A holder of the lease.
#[derive(Clone, Debug)]
pub struct Tenure {
    pub number: i64,
    /// The name of the holder's machine.
    pub host: String,
    /// The process id of the holder.
    pub pid: u32,
    /// When it was first seen.
    pub at: Instant,
    /// When its last renewal was seen.
    pub renewed_at: Instant,
    /// The begin of the last reading that showed it. The next holder took the lease after that.
    pub held_until: Instant,
    renewal: String,
}

impl Tenure {
    /// A holder that was seen between two instants.
    pub fn of(number: i64, host: &str, at: Instant, held_until: Instant) -> Self {
        Self { number, host: host.to_owned(), pid: 1, at, renewed_at: at, held_until, renewal: String::new() }
    }
}

#[derive(Debug, Default)]
struct LeaseRecord {
    tenures: Vec<Tenure>,
    is_released: bool,
    violations: Vec<String>,
}

/// Reads the lease all the time, through a connection of its own.
#[derive(Clone, Debug)]
pub struct LeaseBooks {
    record: Arc<Mutex<LeaseRecord>>,
    is_over: Arc<AtomicBool>,
}

impl LeaseBooks {
    pub fn open(port: u16) -> Self {
        let books = Self { record: Arc::default(), is_over: Arc::default() };
        let reading = books.clone();
        std::thread::spawn(move || {
            let mut session = None;
            while !reading.is_over.load(Ordering::SeqCst) {
                session = session.or_else(|| RawSession::open(port, "postgres").ok());
                let requested_at = Instant::now();
                let read = session
                    .as_mut()
                    .map(|session| session.query("SELECT number || ' ' || renewed_at || '|' || holder FROM lease"));
                match read {
                    Some(Ok(rows)) => rows.iter().for_each(|row| reading.note(row, requested_at)),
                    _ => session = None,
                }
                std::thread::sleep(READ_INTERVAL);
            }
        });
        books
    }

    fn note(&self, row: &str, requested_at: Instant) {
        let mut record = self.record.lock().unwrap();
        let now = Instant::now();
        let (Some((number, rest)), Some((_, pid))) = (row.split_once(' '), row.rsplit_once(':')) else { return };
        let (renewal, holder) = rest.rsplit_once('|').unwrap_or_default();
        record.is_released = holder.is_empty();
        let host = holder.rsplit_once(':').map_or(holder, |(host, _)| host).to_owned();
        let (Ok(number), Ok(pid), false) = (number.parse(), pid.parse(), record.is_released) else { return };
        match record.tenures.last_mut() {
            Some(last) if last.number == number && last.pid == pid => {
                last.held_until = requested_at;
                if last.renewal != renewal {
                    renewal.clone_into(&mut last.renewal);
                    last.renewed_at = now;
                }
            }
            Some(last) if last.number >= number => {
                let violation = format!("lease {number} of {pid} after lease {} of {}", last.number, last.pid);
                record.violations.push(violation);
            }
            _ => {
                let renewal = renewal.to_owned();
                record.tenures.push(Tenure { number, host, pid, at: now, renewed_at: now, held_until: requested_at, renewal });
            }
        }
    }

    /// The current holder, or the last one if the lease was released.
    pub fn last(&self) -> Option<Tenure> {
        self.record.lock().unwrap().tenures.last().cloned()
    }

    pub fn is_released(&self) -> bool {
        self.record.lock().unwrap().is_released
    }

    /// The first holder with a number above `number`.
    pub fn first_after(&self, number: i64) -> Option<Tenure> {
        self.record.lock().unwrap().tenures.iter().find(|tenure| tenure.number > number).cloned()
    }

    /// The first holder after `number` that did not give the lease back at once, to restart with a changed config.
    pub fn first_lasting_after(&self, number: i64) -> Option<Tenure> {
        let record = self.record.lock().unwrap();
        let lasts = |(at, tenure): &(usize, &Tenure)| {
            tenure.number > number && record.tenures.get(at + 1).is_none_or(|next| next.at - tenure.at > SHORT_TENURE)
        };
        record.tenures.iter().enumerate().find(lasts).map(|(_, tenure)| tenure.clone())
    }

    /// All holders, in order.
    pub fn tenures(&self) -> Vec<Tenure> {
        self.record.lock().unwrap().tenures.clone()
    }

    pub fn violations(&self) -> Vec<String> {
        self.record.lock().unwrap().violations.clone()
    }
}

impl Drop for LeaseBooks {
    fn drop(&mut self) {
        // The thread has one of two handles.
        if Arc::strong_count(&self.is_over) <= 2 {
            self.is_over.store(true, Ordering::SeqCst);
        }
    }
}

/// The time of the last request of one instance.
#[derive(Clone, Debug, Default)]
pub struct RequestBooks(Arc<Mutex<Option<Instant>>>);

impl RequestBooks {
    pub fn wrap(&self, router: Router) -> Router {
        let books = self.clone();
        router.layer(middleware::from_fn(move |request: Request, next: middleware::Next| {
            *books.0.lock().unwrap() = Some(Instant::now());
            next.run(request)
        }))
    }

    pub fn last(&self) -> Option<Instant> {
        *self.0.lock().unwrap()
    }
}

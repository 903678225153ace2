//! The one room that reads the system clock.
//!
//! A tick reads the time once and passes it on, so that everything below can be tested at any instant. `--now` and tests stop the time
//! with a [`Clock::manual`].

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};

use crate::Timestamp;

/// Where the time comes from. Cheap to clone; clones of a manual clock share its hands.
#[derive(Clone, Debug, Default)]
pub struct Clock(TimeSource);

#[derive(Clone, Debug, Default)]
enum TimeSource {
    #[default]
    System,
    /// Unix milliseconds.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The system's own time.
    pub fn system() -> Self {
        Self(TimeSource::System)
    }

    /// A clock that stands at `at` until it is [set](Self::set).
    pub fn manual(at: Timestamp) -> Self {
        Self(TimeSource::Manual(Arc::new(AtomicI64::new(at.timestamp_millis()))))
    }

    /// The present instant, UTC, in whole milliseconds: what the database keeps, so that nothing differs after a restart.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            TimeSource::System => read_system_clock(),
            TimeSource::Manual(millis) => DateTime::from_timestamp_millis(millis.load(Ordering::SeqCst)).unwrap_or_default(),
        }
    }

    /// Moves a manual clock to `at`; the system clock is not ours to move, so it stays.
    pub fn set(&self, at: Timestamp) {
        if let TimeSource::Manual(millis) = &self.0 {
            millis.store(at.timestamp_millis(), Ordering::SeqCst);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
fn read_system_clock() -> Timestamp {
    let now = Utc::now();
    DateTime::from_timestamp_millis(now.timestamp_millis()).unwrap_or(now)
}

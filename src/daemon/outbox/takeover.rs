//! The first minutes after a takeover.
//!
//! The files of this instance may be older than those of the one before it. Until they had time to arrive, a receiver, a rule, or a token
//! that they lack does not count as removed.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The time after a takeover in which nothing counts as removed. Longer than a deployment to two machines takes.
const GRACE: Duration = Duration::from_secs(5 * 60);

/// The time of the takeover by this process, if there was one.
#[derive(Debug, Default)]
pub(super) struct Takeover(OnceLock<Instant>);

impl Takeover {
    pub(super) fn begin(&self) {
        self.0.get_or_init(Instant::now);
    }

    /// Returns whether this process took over less than [`GRACE`] ago.
    pub(super) fn is_recent(&self) -> bool {
        self.0.get().is_some_and(|at| at.elapsed() < GRACE)
    }
}

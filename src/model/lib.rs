//! The words that all rooms share. Nothing here reads a file, a socket or a table; of the outside it knows the system clock alone.
//!
//! **The cast.** [`supply`] has tokens, their records under keys, and the feeds that bring them; [`wire`] is what those records look
//! like as JSON, [`poll`] what one request came to. A [`change`] is what happened to a record. An [`alert`] is a rule that holds for a
//! subject; it has notifications, and [`rows`] says how all of it goes into the database and comes out: commits, deliveries, queries.
//! [`silence`] and [`matcher`] say what is suppressed, [`digest`] what a digest tells, [`watch`] which tokens are watched. [`config`] is
//! the plain settings. [`time`] and [`amount`] hold what is measured, [`mod@format`] shows it to people, [`text`] makes what comes from
//! outside fit to be shown, [`diagnostic`] points at mistakes in files, [`file_kind`] says which are read at all, [`clock`] is the
//! one place that reads the time, and [`program`] says what runs.
//!
//! **The path.** An answer is read into wire types; they become records; a diff makes changes of them; rules make alerts of those, and
//! every room passes them on in these types. So a type stands here when at least two rooms say it, and it is called by its name from
//! the root; `config`, `wire`, `format` and `text` are said with it.
//!
//! **The promise.** Reading is lenient: a field that does not fit costs itself and leaves a warning, and what is read can be written
//! again without loss. States, outcomes and kinds are enumerations of words that are declared once ([`words!`]). A date is never more
//! exact than its source: an unlock "in March" is an [`Interval`] of a month.
//!
//! ```
//! use cliffwatch_model::{format, supply::Record, wire};
//!
//! let json = r#"{
//!     "unlockDate": "2026-03-16T00:00:00Z",
//!     "cliffUnlocks": {
//!         "cliffAmount": "a lot",
//!         "allocationBreakdown": [{"allocationName": "Team", "cliffAmount": 92650000, "unlockPrecision": "month"}]
//!     }
//! }"#;
//! let (event, report) = wire::gather(|| serde_json::from_str::<wire::UnlockEvent>(json));
//! let record = Record::Unlock(std::sync::Arc::new(event.unwrap()));
//!
//! // The amount that is no number is left out, and noted; the rest of the event is there.
//! assert_eq!(report.oddities[0].path, "cliffUnlocks.cliffAmount");
//! // The date stands for all of March.
//! let interval = record.interval().unwrap();
//! assert_eq!(format::when(&interval), "in March 2026");
//! assert!(!interval.has_passed("2026-03-31T23:59:59Z".parse().unwrap()));
//! ```

#[macro_use]
mod words;

pub mod alert;
pub mod amount;
pub mod change;
pub mod clock;
pub mod config;
pub mod diagnostic;
pub mod digest;
pub mod entry;
pub mod file_kind;
pub mod format;
pub mod http_date;
pub mod lease;
pub mod matcher;
pub mod pending;
pub mod poll;
pub mod program;
pub mod rows;
pub mod silence;
pub mod supply;
pub mod text;
pub mod time;
pub mod watch;
pub mod wire;

/// A future behind a pointer. Rooms hand these out at their doors: the body of an `async fn` is otherwise compiled anew by whoever
/// awaits it.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub use {
    alert::*, change::*, clock::*, diagnostic::*, digest::*, entry::*, matcher::*, pending::*, poll::*, rows::*, silence::*,
    supply::*, time::*, watch::*,
};

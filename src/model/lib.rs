//! The types that several crates share. Nothing here reads a file, a socket, or a table; only [`clock`] reads the system clock.
//!
//! **Main types.** [`supply`] has tokens, their records, and the feeds they come from. [`wire`] is the JSON form of those records,
//! and [`poll`] the outcome of one poll. A [`change`] is what happened to records. An [`alert`] is a rule that matches a subject,
//! and has notifications. [`rows`] are the inputs and results of the database: commits, deliveries, queries. [`silence`] and
//! [`matcher`] select what is suppressed, [`digest`] is the content of a digest, and [`watch`] selects the watched tokens.
//! [`config`] has the plain settings. [`time`] and [`amount`] have units of measurement. [`phrase`] writes all text for people,
//! [`text`] sanitizes text from outside, and [`diagnostic`] reports errors in files.
//!
//! **Data flow.** A response is parsed into wire types, which become records. The diff turns records into changes, and rules turn
//! both into alerts. A type belongs here if at least two crates use it. Most types are re-exported at the root; the types of `config`,
//! `wire`, `phrase`, and `text` are used with their module name.
//!
//! **Guarantees.** Parsing is lenient: an invalid field is left out with a warning, and everything that was read can be written
//! again without loss. States, outcomes, and kinds are enums declared with [`words!`]. A date is never more exact than its source:
//! an unlock "in March" is an [`Interval`] of a month.
//!
//! ```
//! use cliffwatch_model::{phrase, supply::Record, wire};
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
//! assert_eq!(report.parse_warnings[0].path, "cliffUnlocks.cliffAmount");
//! let interval = record.interval().unwrap();
//! assert_eq!(phrase::when(&interval), "in March 2026 (~16 Mar; the source confirms only the month)");
//! assert!(!interval.has_passed("2026-03-31T23:59:59Z".parse().unwrap()));
//! ```

#[macro_use]
mod words;

pub mod alert;
pub mod amount;
pub mod change;
pub mod clock;
pub mod config;
pub mod corrections;
pub mod diagnostic;
pub mod digest;
pub mod entry;
pub mod file_kind;
pub mod http_date;
pub mod incident;
pub mod lease;
pub mod matcher;
pub mod note;
pub mod pending;
pub mod phrase;
pub mod poll;
pub mod position;
pub mod program;
pub mod rows;
pub mod silence;
pub mod supply;
pub mod text;
pub mod time;
pub mod watch;
pub mod wire;

/// A boxed future. Crates return it from public functions, because the body of an `async fn` is otherwise compiled again in every
/// caller.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub use {
    alert::*, change::*, clock::*, diagnostic::*, digest::*, entry::*, incident::*, matcher::*, pending::*, poll::*, position::*,
    rows::*, silence::*, supply::*, time::*, watch::*,
};

//! Test equipment that several rooms share: [`faults`] for a source that misbehaves on demand, [`samples`] of notifications, [`rows`] and
//! [`records`] to store, a webhook receiver ([`Hook`]), databases and PostgreSQL servers for single tests, programs, and the [`labels`] of real
//! corrections.
//!
//! Only `[dev-dependencies]` name this crate, so nothing of it is linked into the program. It depends on the model alone, so that every
//! room above the model can use it. Equipment that needs private parts of one room stays in the tests of that room.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed setup fails the test")]

mod cluster;
mod database;
pub mod faults;
mod hook;
pub mod labels;
mod ports;
mod program;
pub mod records;
pub mod rows;
pub mod samples;

pub use cluster::Cluster;
pub use database::{Database, create_schema};
pub use hook::Hook;
pub use ports::free_port;
pub use program::{install_program, install_script};

use model::{Timestamp, wire};

/// Parses a timestamp or a date, which must be valid.
pub fn time(text: &str) -> Timestamp {
    wire::parse_timestamp(text).unwrap_or_else(|| panic!("{text} is not a timestamp"))
}

//! Text for people: everything that mail, chat, pages, and commands say about amounts, times, changes, incidents, and digests.
//!
//! Other modules pass facts; the sentences are written here. All functions return plain text, and names from outside are cut and freed
//! of hostile characters. The caller escapes the text for the place that shows it. Machine formats (JSON, CSV, config) are written
//! elsewhere.

pub mod changes;
pub mod digest;
mod direction;
mod incident;
pub mod linear;
mod list;
mod number;
mod outcome;
mod poll;
mod price;
mod record;
mod replay;
mod supply;
mod time;
mod unlock;

pub use {
    direction::direction,
    incident::{DaemonIncident, FeedRecovery, IncidentText, dead_letters, quote},
    list::*,
    number::*,
    outcome::*,
    poll::{past_poll, past_polls},
    price::{at_prices_of, stale_prices_of},
    record::{date, linear_end, record, stored_date, stored_linear_end, stored_record},
    replay::{replay_note, replay_of, replay_result},
    supply::*,
    time::*,
    unlock::*,
};

#[cfg(test)]
mod tests;

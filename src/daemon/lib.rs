//! The daemon: polls, evaluates, and notifies. The crates below decide; this one reads, calls them, and stores the result.
//!
//! **Modules.** [`app`] is the whole daemon: built from the config, run by its schedule or by hand, and stopped in reverse order.
//! [`config`] turns text into a checked config. [`live`] holds everything that is built from config and rules as one value, and
//! [`reload`] reads the files again and swaps that value. [`schedule`] runs each job at its slots, [`cycle`] is one run of a job,
//! [`dispatch`] turns pending notifications into deliveries, and [`outbox`] sends them. [`explain`] answers why an alert was or was
//! not sent. [`view`] holds the values that pages, API, and commands show, and
//! [`token_names`] finds the tokens that they name. [`readiness`], [`metrics`], [`log`], and [`systemd`] report
//! the state of the daemon.
//!
//! **Data flow.** The schedule reaches a slot. A [cycle](cycle::run_cycle) polls, compares, evaluates, and commits. It wakes the
//! dispatcher, which creates deliveries, and one worker per receiver sends them.
//!
//! **Guarantees.** Everything that is committed is delivered at least once, even if the process is killed. A reload takes effect
//! completely or not at all. No lock on a batch is held while waiting for the network.
//!
//! ```
//! use cliffwatch_daemon::config::{Environment, load_text};
//!
//! // A mistake is reported with its location and a suggestion. A config without errors can be opened as an `App`.
//! let loaded = load_text(None, "[watch]\ntokns = [\"aptos\"]\n", &Environment::default());
//! assert!(loaded.config.is_none());
//! assert_eq!(loaded.diagnostics[0].message, "unknown key `tokns` in [watch]");
//! assert_eq!(loaded.diagnostics[0].help.as_deref(), Some("did you mean `tokens`?"));
//! ```

pub mod app;
pub mod config;
pub mod current_texts;
pub mod cycle;
pub mod database_url;
pub mod digest_positions;
pub mod dispatch;
pub mod explain;
pub mod ledger;
pub mod live;
pub mod log;
pub mod metrics;
pub mod outbox;

pub mod playground;
pub mod readiness;
pub mod reload;
pub mod rule_edit;
mod saved_clock;
pub mod schedule;
pub mod systemd;
pub mod token_names;
pub mod view;

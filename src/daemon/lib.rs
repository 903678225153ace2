//! What asks, evaluates, tells and shows, and what keeps all of it running. The rooms below decide; here it is fetched, called, stored.
//!
//! **The cast.** [`app`] is the daemon as a whole: built from the config, run by its schedule or turned by hand, stopped in reverse
//! order. [`config`] is text to a config that was checked; [`live`] is everything that is built from config and rules, as one value;
//! [`reload`] reads the files again and swaps that value. [`schedule`] says when each job is due, [`cycle`] runs one, [`dispatch`] makes
//! deliveries of what waits, [`outbox`] sends them; [`explain`] reads why. [`http`] is the web (status page, API, metrics, silences) and [`ui`] what it shows.
//! [`readiness`] says whether the daemon works, and why not; [`metrics`], [`log`] and [`systemd`] tell those who watch the watcher.
//!
//! **The path.** The schedule takes a slot; a [cycle](cycle::run_cycle) polls, compares, evaluates and commits; the outbox is woken, the
//! dispatcher decides what of that is told, and a worker for each receiver sends it.
//!
//! **The promise.** Whatever was committed is delivered at least once, whenever the process dies. A reload goes to work whole or not at
//! all, and its files are read beside the threads of the runtime. Nothing waits for the network while it holds up a batch.
//!
//! ```
//! use cliffwatch_daemon::config::{Environment, load_text};
//!
//! // A mistake is named with its place and with what was meant. A config without mistakes can be opened as an `App`.
//! let loaded = load_text(None, "[watch]\ntokns = [\"aptos\"]\n", &Environment::default());
//! assert!(loaded.config.is_none());
//! assert_eq!(loaded.diagnostics[0].message, "unknown key `tokns` in [watch]");
//! assert_eq!(loaded.diagnostics[0].help.as_deref(), Some("did you mean `tokens`?"));
//! ```

pub mod app;
pub mod config;
pub mod cycle;
pub mod dispatch;
pub mod explain;
#[cfg(test)]
mod fixtures;
pub mod http;
mod kept_clock;
pub mod ledger;
pub mod live;
pub mod log;
pub mod metrics;
pub mod outbox;
pub mod place;
pub mod playground;
pub mod readiness;
pub mod reload;
pub mod schedule;
pub mod systemd;
pub mod ui;

//! Cliffwatch watches token supply (unlocks, burns, buybacks) and tells the right people, once, without losing an alert.
//!
//! The rooms, and which way they lean (an arrow points down only):
//!
//! - `cli`: clap types, a function per command, printing, exit codes.
//! - [`schedule`], [`slot`]: from a cron pattern to a run of its job. [`plan`], [`budget`]: what to ask, and what it may cost.
//! - [`outbox`]: the deliver loop. [`notify`]: mail, webhook, and the pure message and retry beside them.
//! - [`http`], [`ui`], [`metrics`]: the daemon's own pages. [`serve`]: the data service, which is also the fake upstream of tests.
//! - [`api`]: the client. [`store`]: the one room with SQL.
//! - [`aggregate`]: sums over windows of time. [`rules`]: text to a set that cannot be wrong. [`diff`]: what changed. [`evaluate`], [`trouble`], [`route`]: what is told to
//!   whom. [`upcoming`], [`watch`]: small pure helpers of the cycle.
//! - [`replay`]: the path of a cycle in memory; [`ruletest`], [`backtest`], [`explain`] and [`reload`] are made of it or stand beside it.
//! - [`supply`], [`wire`], [`change`], [`alert`], [`format`], [`clock`]: the words.
//!
//! Pure rooms (`aggregate`, `diff`, `rules`, `evaluate`, `trouble`, `route`, `plan`, `budget`, `notify::message`, `notify::retry`, `ui`) take
//! values and a `now`; they know nothing of tokio, SQL, HTTP, files or the system clock, which only [`clock`] reads.

pub mod aggregate;
pub mod alert;
pub mod api;
pub mod app;
pub mod backtest;
pub mod budget;
pub mod change;
pub mod cli;
pub mod clock;
pub mod config;
pub mod cycle;
pub mod demo;
pub mod diagnostic;
pub mod diff;
pub mod digest;
pub mod dispatch;
pub mod evaluate;
pub mod explain;
pub mod failpoint;
pub mod format;
pub mod group;
pub mod http;
pub mod intake;
pub mod log;
pub mod metrics;
pub mod notify;
pub mod outbox;
pub mod plan;
pub mod reload;
pub mod replay;
pub mod route;
pub mod rules;
pub mod ruletest;
pub mod schedule;
pub mod serve;
pub mod silence;
pub mod slot;
pub mod store;
pub mod supply;
pub mod systemd;
pub mod trouble;
pub mod ui;
pub mod upcoming;
pub mod watch;
pub mod wire;

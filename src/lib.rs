//! Cliffwatch watches token supply (unlocks, burns, buybacks) and tells the right people, once, without losing an alert.
//!
//! This crate is the front door: the binary beside it calls [`cli::main`], and tests and benches reach the rooms through it. Each room is
//! a crate of its own, and each leans only on those above it in this list:
//!
//! | room | holds |
//! |---|---|
//! | [`model`] | the words: ids, records, changes, alerts, notifications, time, settings |
//! | [`rules`] | text of a rule file to a set of rules that cannot be wrong |
//! | [`engine`] | pure decisions: plan and budget, ingest, diff, evaluate, self-monitoring, routes and groups, the pipeline, explain |
//! | [`source`] | the client of the token supply API |
//! | [`store`] | the one room with SQL |
//! | [`notify`] | mail, webhooks, and the formats of other services |
//! | [`service`] | the data service and the mirror |
//! | [`tools`] | the pipeline in memory: rule tests and backtests |
//! | [`daemon`] | what runs: cycle, dispatcher, outbox, reload, pages |
//! | [`cli`] | the commands |
//!
//! One cycle, from the top:
//!
//! ```text
//! tick ─► poll (within budget) ─► ingest ─► diff ─► evaluate ─► commit (one transaction) ─► wake the dispatcher
//!                                                       dispatcher ─► outbox ─► attempt ─► record
//! ```
//!
//! `ARCHITECTURE.md` is the map, with the files that answer a stranger's questions.

pub use cli;
pub use daemon;
pub use engine;
pub use model;
pub use notify;
pub use rules;
pub use service;
pub use source;
pub use store;
pub use tools;

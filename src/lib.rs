//! Cliffwatch monitors token supply (unlocks, burns, buybacks) and notifies receivers, once per alert and without losing one.
//!
//! This crate exports the others: the binary calls [`cli::main`], and tests and benches import everything from here. Each crate
//! depends only on crates above it in this list:
//!
//! | crate | contents |
//! |---|---|
//! | [`model`] | shared types: ids, records, changes, alerts, notifications, time, settings |
//! | [`chart`] | charts as SVG, for pages and the report of a backtest |
//! | [`rules`] | parses and checks rule files |
//! | [`engine`] | pure decisions: poll plan, ingest, diff, evaluation, self-monitoring, routing, pipeline, explanations |
//! | [`source`] | client of the token supply API |
//! | [`store`] | database access, the only crate with SQL |
//! | [`notify`] | mail, webhooks, and formats of other services |
//! | [`service`] | data service and mirror |
//! | [`tools`] | rule tests and backtests, which run the pipeline in memory |
//! | [`daemon`] | cycle, dispatcher, outbox, reload, metrics |
//! | [`web`] | web pages, API, and feeds |
//! | [`cli`] | commands |
//!
//! One cycle:
//!
//! ```text
//! tick ─► poll (within budget) ─► ingest ─► diff ─► evaluate ─► commit (one transaction) ─► wake the dispatcher
//!                                                       dispatcher ─► outbox ─► attempt ─► record
//! ```
//!
//! `ARCHITECTURE.md` describes the crates and their files.

pub use chart;
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
pub use web;

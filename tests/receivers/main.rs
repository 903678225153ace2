//! Our messages and the software that they are for: a Prometheus Alertmanager, the Standard Webhooks library of its authors, a mail
//! server with STARTTLS and logins, readers of calendars, feeds and JSON Schemas, the language server that editors ask about TOML, our own examples of receivers, and Prometheus with its
//! tool, which read our metrics. The gate installs them and sets `CLIFFWATCH_TEST_EXTERNAL=1`, with which a test fails where its
//! software is missing; without it such a test says aloud that it is left out. `CLIFFWATCH_TEST_PYTHON` names the interpreter that has
//! the libraries.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends")]

mod alertmanager;
mod editor;
mod feeds;
mod mail;
mod metrics;
mod outside;
#[path = "../it/support/ports.rs"]
mod ports;
mod prometheus;
mod schema;
mod signatures;

//! Tests our messages and metrics with the software that consumes them: Prometheus, Alertmanager, the Standard Webhooks library, a mail
//! server, libraries for calendars, feeds, and JSON Schema, a TOML language server, and our example receivers. CI installs them and sets
//! `CLIFFWATCH_TEST_EXTERNAL=1`, which makes missing software an error. Without it, such a test prints that it was skipped.
//! `CLIFFWATCH_TEST_PYTHON` is the interpreter with the libraries.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed setup fails the test")]

mod alertmanager;
mod amtool;
mod editor;
mod feeds;
mod incident_rules;
mod mail;
mod metrics;
mod outside;
mod prometheus;
mod schema;
mod signatures;

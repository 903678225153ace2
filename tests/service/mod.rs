//! Tests of the data service: every API version against values computed by hand, keys under load and kill -9, import and export, the
//! mirror, and the daemon with every version.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed setup fails the test")]

mod conformance;
mod daemon;
mod folders;
mod http;
mod json_schema;
mod keys;
mod mirror;
mod shared;
mod support;

//! The data service from outside: every version against values worked out by hand, keys under load and kill -9, folders and databases
//! in and out, the mirror, and the daemon against every version.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends")]

#[allow(dead_code, reason = "the tests from outside do more with it")]
#[path = "../it/support/cluster.rs"]
mod cluster;
mod conformance;
mod daemon;
mod folders;
mod http;
mod keys;
mod mirror;
#[path = "../it/support/ports.rs"]
mod ports;
mod shared;
mod support;

//! Our messages and the software that they are for: a Prometheus Alertmanager, the Standard Webhooks library of its authors, a mail
//! server with STARTTLS and logins. The gate installs them; where one is missing, a test says so and fails, unless
//! `CLIFFWATCH_TEST_SKIP_EXTERNAL=1` says that this is meant. `CLIFFWATCH_TEST_PYTHON` names the interpreter that has the libraries.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends")]

mod alertmanager;
mod mail;
mod outside;
mod signatures;

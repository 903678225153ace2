//! The program from outside: the real app with a crank, the real binary, the README.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends")]

mod beside;
mod binary;
mod clock;
mod commit;
mod copied;
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures of a simulation"
)]
mod credits;
mod cycle;
mod examples;
mod faults;
mod fuzzed;
mod hostile;
mod kill;
mod ledger;
mod one_path;
mod readme;
mod renamed;
mod replay;
mod seams;
mod secured;
mod soak;
mod standby;
mod subscribed;
mod support;
mod trust;
mod truth;
mod tutorial;
mod versions;
mod welcome;
mod wholes;

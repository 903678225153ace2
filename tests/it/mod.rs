//! Tests of the whole program: the app under a manual clock, the real binary, and the documentation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed setup fails the test")]

mod aggregate_rules;
mod binary;
mod calendar;
mod clock;
mod commit;
mod copied;
mod corrections;
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures of a simulation"
)]
mod credits;
mod current_texts;
mod cycle;
mod damaged_rows;
mod examples;
mod faults;
mod fuzzed;
mod hostile;
mod kill;
mod ledger;
mod limits;
mod linear_supply;
mod missing_credentials;
mod one_path;
mod pair;
mod postgres_tls;
mod readme;
mod rejected;
mod renamed;
mod replay;
mod same_numbers;
mod seams;
mod soak;
mod standby;
mod supply;
mod support;
mod takeover;
mod trust;
mod truth;
mod tutorial;
mod unknown_supply;
mod versions;
mod welcome;

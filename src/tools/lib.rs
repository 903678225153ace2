//! Runs rules in memory, without notifying anyone: rule tests and backtests.
//!
//! [`simulate`] runs the daemon's pipeline on a simulated clock. [`ruletest`] runs the tests of a test file and compares the
//! results with its expectations. [`backtest`] replays a history and reports the messages that the rules would have sent.
//!
//! Guarantee: no network, no database, and no system clock. The same input gives the same result. Only the named files are read.
//!
//! ```
//! use cliffwatch_tools::ruletest::{TestSetup, run_text};
//! use model::{config::Config, diagnostic::SourceText};
//!
//! let folder = tempfile::tempdir()?;
//! let rules = r#"
//!     [[rule]]
//!     alert = "BigCliff"
//!     on = "unlock"
//!     within = ["7d"]
//!     when = "cliffAmount >= 1000"
//! "#;
//! std::fs::write(folder.path().join("rules.toml"), rules)?;
//! let test = r#"
//!     rules = ["rules.toml"]
//!     [[test]]
//!     name = "a week ahead"
//!     start = 2026-03-01T00:00:00Z
//!     [[test.input]]
//!     token = "aptos"
//!     unlock = [{ unlockDate = "2026-03-20", cliffAmount = 2000 }]
//!     [[test.expect]]
//!     at = "13d"
//!     alert = [{ rule = "BigCliff", token = "aptos", type = "firing", at = 2026-03-13T00:00:00Z }]
//! "#;
//! let source = SourceText { file: folder.path().join("test.toml"), text: test.into() };
//! let config = Config::default();
//! let outcomes = run_text(source, &TestSetup { config: &config, base_dir: folder.path(), only: None });
//! assert!(outcomes.iter().all(|outcome| outcome.is_passed()), "{outcomes:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod backtest;
pub mod new_rule;
pub mod ruletest;
pub mod simulate;

//! Rules tried out in memory, before anybody is notified: rule tests and backtests.
//!
//! The cast: [`simulate`] is the path of the daemon over a clock that is moved by hand; [`ruletest`] plays what a test file says and
//! holds it against what the file expects; [`backtest`] plays a history and reports what the rules would have sent.
//!
//! The path: what a source said, and when, goes into the simulation answer by answer; the clock moves on, and what was told and sent is
//! taken out again and compared, counted or drawn.
//!
//! Promise: no network, no database, no clock of the system; the same input gives the same result. Files are read where they are named.
//!
//! ```
//! use cliffwatch_tools::ruletest::{TestSetup, run_text};
//! use model::{config::{Config, DEFAULTS}, diagnostic::SourceText};
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
//! let config: Config = toml::from_str(DEFAULTS)?;
//! let outcomes = run_text(source, &TestSetup { config: &config, base_dir: folder.path(), only: None });
//! assert!(outcomes.iter().all(|outcome| outcome.is_passed()), "{outcomes:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod backtest;
pub mod ruletest;
pub mod simulate;

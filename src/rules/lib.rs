//! Rules: parses and checks the rule files of operators and returns a [`RuleSet`] that evaluates without errors.
//!
//! **Types.** A [`Rule`] subscribes to records, changes, or incidents ([`On`]), filters them, and has a condition, labels, and
//! annotations. It reads a [`Scope`]: a token, its record or change, its aggregates ([`aggregate`]), and the time. A condition
//! returns a [`Truth`]: true, false, or `Missing` if it needs a field that has no value.
//!
//! **Steps.** [`read_files`] reads the files that `[rules] paths` matches. [`load`] parses them and returns the rules together with
//! the problems of all files, each with its location and a suggestion. `condition` lints, parses, and type-checks a condition and
//! lowers it to a tree of typed expressions. `template` checks the names in a template, then renders it twice: with every field
//! set, and with none. Both use the field table in `fields`; a new field is one more line there. [`advise`] warns about rules
//! that cannot work with the watched tokens. [`schema`] describes the keys of rule files for editors. **Guarantee.** Rules for
//! which [`LoadedRules::is_usable`] returns `true` evaluate without type errors and panics, and always render: if a template
//! fails, the alert gets the built-in text and reports the failure. Nothing here reads the clock, and only [`read_files`] reads
//! the disk.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use model::{diagnostic::SourceText, supply::{Record, RecordKey, Resource, Timestamp, Tracked}};
//! use cliffwatch_rules::{On, Scope, Surroundings, Truth, load};
//!
//! let text = r#"
//!     [[rule]]
//!     alert = "BigCliff"
//!     on = "unlock"
//!     when = "cliffValue >= 5000000"
//! "#;
//! let file = SourceText { file: "rules/cliffs.toml".into(), text: text.into() };
//! let now: Timestamp = "2026-03-09T00:00:00Z".parse()?;
//! let loaded = load(&[file], &Surroundings { receivers: &[], groups: &BTreeMap::new(), now });
//! assert!(loaded.is_usable(), "{:?}", loaded.diagnostics);
//!
//! let json = r#"{"unlockDate": "2026-03-16T00:00:00Z", "cliffUnlocks": {"cliffValue": 33150000}}"#;
//! let cliff = Tracked { key: RecordKey::from("cliff"), record: Record::from_json(Resource::Unlock, json)? };
//! let scope = Scope { record: Some(&cliff), ..Scope::at(now) };
//! let rule = loaded.set.on(On::Record(Resource::Unlock)).next().ok_or("no rule")?;
//! assert_eq!(rule.evaluate(&scope), Truth::True);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod advice;
pub mod aggregate;
mod builtin;
mod condition;
mod env;
mod fields;
mod filters;
mod finding;
mod getter;
mod index;
mod load;
mod on;
pub mod reference;
mod render;
mod rule;
pub mod schema;
mod scope;
mod sentence;
mod set;
mod synonyms;
mod template;
mod vocabulary;
mod wording;

pub use advice::{LabelFacts, LabelProblem, WatchFacts, advise, check_thresholds, matches, token_hint};
pub use builtin::coming_supply;
pub use condition::RecordBounds;
pub use condition::clauses::{Clause, ClauseKind, Mismatch};
pub use index::Index;
pub use load::{LoadedRules, RuleFiles, Surroundings, is_rule_file, load, read_files, rule_table_at};
pub use on::{On, OnError};
pub use render::Rendered;
pub use rule::{Pool, Rule, RuleLocation};
pub use scope::{CorrectionScope, Lead, ScheduleScope, Scope, SourceFacts, Truth};
pub use set::RuleSet;

#[cfg(test)]
mod tests;

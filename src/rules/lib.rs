//! Rules: what operators write, from text to a [`RuleSet`] that cannot be wrong.
//!
//! **Cast.** A [`Rule`] says what it listens to ([`On`]), what it lets in, when it holds, and which labels and annotations its alerts
//! get. It looks at a [`Scope`]: a token, its record or change, the sums of its windows ([`aggregate`]) and the time. The answer is a
//! [`Truth`], which may be that a field is missing: neither true nor false.
//!
//! **Path.** [`read_files`] reads what `[rules] paths` names; [`load`] takes the texts and returns the rules with every problem of
//! every file, each at its place and with what was probably meant. A condition goes through `condition`: lint, parse, check of types,
//! then a tree of typed expressions. A template goes through `template`: check of names, then a trial with every field there and with
//! none. Both know the same words, from the one table in `fields`; whoever adds a field adds a line there. [`advise`] warns of rules
//! that cannot do what they say with what is watched; [`schema`] tells editors the keys.
//!
//! **Promise.** What [`load`] calls usable evaluates without type errors and without panics, and renders always: where a template
//! fails, the built-in text stands in its place and the alert says so. Nothing here reads the clock; only [`read_files`] touches the
//! disk.
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
//! let scope = Scope { token: None, record: Some(&cliff), change: None, source: None, totals: None, lead: None, now };
//! let rule = loaded.set.on(On::Record(Resource::Unlock)).next().ok_or("no rule")?;
//! assert_eq!(rule.holds(&scope), Truth::True);
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
mod set;
mod synonyms;
mod template;
mod vocabulary;
mod wording;

pub use advice::{LabelFacts, LabelProblem, WatchFacts, advise, doubt_thresholds, matches, token_hint};
pub use condition::clauses::{Clause, ClauseKind};
pub use index::Index;
pub use load::{LoadedRules, RuleFiles, Surroundings, load, read_files};
pub use on::On;
pub use render::Rendered;
pub use rule::{Pool, Rule, RuleLocation};
pub use scope::{Lead, Scope, SourceFacts, Truth};
pub use set::RuleSet;

#[cfg(test)]
mod tests;

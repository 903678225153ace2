//! A condition: text in CEL's grammar, checked against the words of its rule, and lowered to a tree of typed expressions.
//!
//! The path of a text: [`lint`] answers slips before any parser sees them; [`parse`] makes a syntax tree; [`checker`] gives each part
//! a type and lowers it to an [`expr`] tree; [`eval`] reads records with it. Beside the path, [`logic`] compares conditions with each
//! other, and [`clauses`] explains a condition part by part.

mod checker;
pub mod clauses;
mod dependencies;
mod eval;
mod expr;
pub mod lint;
mod logic;
mod parse;
mod thresholds;

use std::cell::RefCell;

use super::env::Env;
use super::finding::Finding;
use super::on::On;
use super::scope::{Scope, Truth};

pub use dependencies::{Dependencies, Edge};
pub use logic::Logic;

use checker::Checker;
pub use checker::callables;
use expr::BoolExpr;
pub use expr::{TimePart, WindowField};
pub use thresholds::Threshold;

#[derive(Debug)]
pub struct Condition {
    root: BoolExpr,
    /// As the rule writes it, and what the rule listens to: for explaining it clause by clause.
    text: Box<str>,
    on: On,
    /// What may change its truth.
    pub dependencies: Dependencies,
    /// Its logic, for comparing it with others.
    pub logic: Logic,
}

impl Condition {
    /// Checks and lowers `text` for a rule that listens to `on`. The findings may be warnings beside a condition; without a condition
    /// there is at least one error.
    pub fn compile(text: &str, on: On) -> (Option<Self>, Vec<Finding>) {
        let findings = lint::lint(text);
        if !findings.is_empty() {
            return (None, findings);
        }
        let (tree, info) = match parse::parse(text) {
            Ok(parsed) => parsed,
            Err(finding) => return (None, vec![finding]),
        };
        let mut checker = Checker::new(text, &info, on);
        let root = checker.truth(&tree);
        let Checker { mut findings, dependencies, .. } = checker;
        let root = root.filter(|_| findings.iter().all(|finding| !finding.is_error));
        let logic = Logic::of(&tree);
        if root.is_some() && logic.is_impossible() {
            let finding = Finding::warning(0..text.len(), "this condition can never hold");
            findings.push(finding.help("its comparisons contradict each other: did you mean `||`?"));
        }
        (root.map(|root| Self { root, text: text.into(), on, dependencies, logic }), findings)
    }

    pub fn test(&self, scope: &Scope<'_>) -> Truth {
        self.root.truth(scope)
    }
}

impl BoolExpr {
    /// Whether it holds, with the names of what is missing where nothing can be said.
    fn truth(&self, scope: &Scope<'_>) -> Truth {
        match self.eval(&Env::of(scope, None)) {
            Some(true) => Truth::True,
            Some(false) => Truth::False,
            None => {
                // The common case names nothing, so names are gathered in a second pass only where something is missing.
                let missed = RefCell::new(Vec::new());
                let _ = self.eval(&Env::of(scope, Some(&missed)));
                Truth::Missing(missed.into_inner())
            }
        }
    }
}

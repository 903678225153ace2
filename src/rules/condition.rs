//! A condition: CEL text, checked against the names that its rule knows, and lowered to a tree of typed expressions.
//!
//! [`lint`] finds common mistakes before parsing, [`parse`] makes a syntax tree, [`checker`] assigns types and lowers the tree to
//! [`expr`], and [`eval`] evaluates it on records. [`compiled`] is a faster form of the tree, and [`bounds`] excludes conditions that no
//! record of a token can match. [`logic`] compares conditions with each other, and [`clauses`] explains a condition clause by clause.

mod bounds;
mod checker;
pub mod clauses;
mod compiled;
mod corrections;
mod dependencies;
mod eval;
mod expr;
pub mod lint;
mod logic;
mod parse;
pub mod sentence;
mod thresholds;

use std::cell::RefCell;

use super::env::Env;
use super::finding::Finding;
use super::on::On;
use super::scope::{Scope, Truth};

pub use bounds::RecordBounds;
pub use dependencies::{Dependencies, Edge};
pub use logic::Logic;

use checker::Checker;
pub use checker::callables;
use compiled::{Predicate, View};
pub use corrections::{CORRECTIONS, CorrectionField};
use expr::BoolExpr;
pub use expr::{PositionField, RateField, TimePart, WindowField};
pub use thresholds::Threshold;

#[derive(Debug)]
pub struct Condition {
    root: BoolExpr,
    /// The same condition as `root`.
    compiled: Predicate,
    /// The text in the rule file, and the `on` of the rule. Both are used to explain the condition clause by clause.
    text: Box<str>,
    on: On,
    pub dependencies: Dependencies,
    pub logic: Logic,
}

impl Condition {
    /// Checks and lowers `text` for a rule with this `on`. Returns either a condition, possibly with warnings, or at least one
    /// error.
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
            let finding = Finding::warning(0..text.len(), "this condition is never true");
            findings.push(finding.help("its comparisons contradict each other: did you mean `||`?"));
        }
        let compile = |root| Self { compiled: Predicate::of(&root), root, text: text.into(), on, dependencies, logic };
        (root.map(compile), findings)
    }

    /// Evaluates the condition. If fields are missing, the result names them.
    pub fn test(&self, scope: &Scope<'_>) -> Truth {
        match self.holds(scope) {
            Some(true) => Truth::True,
            Some(false) => Truth::False,
            None => self.root.missing(scope),
        }
    }

    /// Evaluates the condition without the compiled form.
    #[cfg(test)]
    pub fn test_tree(&self, scope: &Scope<'_>) -> Truth {
        self.root.truth(scope)
    }

    /// Evaluates the condition. `None` if fields are missing.
    #[inline]
    pub fn holds(&self, scope: &Scope<'_>) -> Option<bool> {
        self.compiled.eval(View::of(scope))
    }
}

impl BoolExpr {
    fn truth(&self, scope: &Scope<'_>) -> Truth {
        match self.eval(&Env::of(scope, None)) {
            Some(true) => Truth::True,
            Some(false) => Truth::False,
            None => self.missing(scope),
        }
    }

    /// Returns the result of an expression that is neither true nor false. The names are collected in a second run, because most callers do
    /// not need them.
    #[cold]
    fn missing(&self, scope: &Scope<'_>) -> Truth {
        let missed = RefCell::new(Vec::new());
        let _ = self.eval(&Env::of(scope, Some(&missed)));
        Truth::Missing(missed.into_inner())
    }
}

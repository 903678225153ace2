//! The thresholds of a condition: comparisons of a field with a constant number.

use crate::env::Env;
use crate::fields::NumberUnit;
use crate::scope::Scope;

use super::Condition;
use super::expr::{BoolExpr, Compare, NumberExpr};

/// A comparison of a field with a constant number.
#[derive(Clone, Copy, Debug)]
pub struct Threshold<'c> {
    field: &'c NumberExpr,
    op: Compare,
    limit: f64,
}

impl Condition {
    /// Returns the thresholds in the order of the text, without those inside list macros.
    pub fn thresholds(&self) -> Vec<Threshold<'_>> {
        let mut found = Vec::new();
        collect(&self.root, &mut found);
        found
    }
}

impl Threshold<'_> {
    /// Formats the threshold as in a condition.
    pub fn text(&self) -> String {
        let name = match self.field {
            NumberExpr::Field(get, _) => get.name(),
            _ => "",
        };
        format!("{name} {} {}", self.op.as_str(), self.limit)
    }

    pub fn limit(&self) -> f64 {
        self.limit
    }

    pub fn is_equality(&self) -> bool {
        matches!(self.op, Compare::Equal | Compare::NotEqual)
    }

    pub fn unit(&self) -> NumberUnit {
        if let NumberExpr::Field(_, unit) = self.field { *unit } else { NumberUnit::Plain }
    }

    pub fn value(&self, scope: &Scope<'_>) -> Option<f64> {
        self.field.eval(&Env::of(scope, None))
    }

    /// Returns `true` if the comparison is true for this value.
    pub fn holds(&self, value: f64) -> bool {
        self.op.numbers(value, self.limit)
    }
}

fn collect<'c>(expr: &'c BoolExpr, found: &mut Vec<Threshold<'c>>) {
    match expr {
        BoolExpr::And(sides) | BoolExpr::Or(sides) => {
            collect(&sides.0, found);
            collect(&sides.1, found);
        }
        BoolExpr::Not(inner) => collect(inner, found),
        BoolExpr::Numbers(op, field @ NumberExpr::Field(..), NumberExpr::Const(limit)) => {
            found.push(Threshold { field, op: *op, limit: *limit });
        }
        BoolExpr::Numbers(op, NumberExpr::Const(limit), field @ NumberExpr::Field(..)) => {
            found.push(Threshold { field, op: op.flipped(), limit: *limit });
        }
        _ => {}
    }
}

//! The thresholds of a condition: comparisons of a field with a plain number.

use crate::env::Env;
use crate::fields::NumberUnit;
use crate::scope::Scope;

use super::Condition;
use super::expr::{BoolExpr, Compare, NumberExpr};

/// A field that is compared with a plain number.
#[derive(Clone, Copy, Debug)]
pub struct Threshold<'c> {
    field: &'c NumberExpr,
    op: Compare,
    limit: f64,
}

impl Condition {
    /// Its thresholds, in their order; those within lists are left out.
    pub fn thresholds(&self) -> Vec<Threshold<'_>> {
        let mut found = Vec::new();
        gather(&self.root, &mut found);
        found
    }
}

impl Threshold<'_> {
    /// As a condition writes it.
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

    /// The field's value.
    pub fn value(&self, scope: &Scope<'_>) -> Option<f64> {
        self.field.eval(&Env::of(scope, None))
    }

    /// Whether the comparison holds of such a value.
    pub fn holds(&self, value: f64) -> bool {
        self.op.numbers(value, self.limit)
    }
}

fn gather<'c>(expr: &'c BoolExpr, found: &mut Vec<Threshold<'c>>) {
    match expr {
        BoolExpr::And(sides) | BoolExpr::Or(sides) => {
            gather(&sides.0, found);
            gather(&sides.1, found);
        }
        BoolExpr::Not(inner) => gather(inner, found),
        BoolExpr::Numbers(op, field @ NumberExpr::Field(..), NumberExpr::Const(limit)) => {
            found.push(Threshold { field, op: *op, limit: *limit });
        }
        BoolExpr::Numbers(op, NumberExpr::Const(limit), field @ NumberExpr::Field(..)) => {
            found.push(Threshold { field, op: op.flipped(), limit: *limit });
        }
        _ => {}
    }
}

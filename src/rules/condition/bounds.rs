//! Excludes conditions that no record of a token can match, without evaluating them on each record.
//!
//! [`RecordBounds`] has the least and the greatest value of each number field over the records. A condition such as `cliffValue >= 5000000`
//! is excluded if the greatest value is smaller. The result may be too cautious, but it never excludes a condition that is true for one of
//! the records.

use crate::scope::Scope;
use model::{Record, Timestamp, Token};

use super::Condition;
use super::compiled::{Number, Predicate, RecordNumber, TextField, View};
use super::expr::{Arithmetic, Compare};

/// The records of a token, with the bounds of their number fields.
#[derive(Debug)]
pub struct RecordBounds<'a> {
    token: &'a Token,
    records: Vec<&'a Record>,
    now: Timestamp,
    /// The bounds of the fields that conditions have read, by name.
    fields: Vec<(&'static str, Bounds)>,
}

/// The values that a number can have.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bounds {
    /// The number is always missing.
    Missing,
    /// From the first to the second number, both inclusive.
    Within(f64, f64),
    Unknown,
}

impl<'a> RecordBounds<'a> {
    /// Returns the bounds of a set of records of one token.
    pub fn of(token: &'a Token, records: Vec<&'a Record>, now: Timestamp) -> Self {
        Self { token, records, now, fields: Vec::new() }
    }

    fn field(&mut self, field: RecordNumber) -> Bounds {
        // Names are literals, so the same name nearly always has the same address. Otherwise the bounds are computed twice.
        if let Some((_, bounds)) = self.fields.iter().find(|(name, _)| std::ptr::eq(*name, field.name)) {
            return *bounds;
        }
        let values = self.records.iter().filter_map(|record| (field.read)(record)).map(|value| Bounds::within(value, value));
        let bounds = values.fold(Bounds::Missing, Bounds::or);
        self.fields.push((field.name, bounds));
        bounds
    }
}

impl Condition {
    /// Returns `false` if the condition is not true for any of the records.
    pub fn can_hold(&self, records: &mut RecordBounds<'_>) -> bool {
        can_be(&self.compiled, true, records)
    }
}

/// Returns `false` if the result of `predicate` is not `wanted` for any of the records.
fn can_be(predicate: &Predicate, wanted: bool, records: &mut RecordBounds<'_>) -> bool {
    match predicate {
        Predicate::Const(value) => *value == wanted,
        Predicate::Not(inner) => can_be(inner, !wanted, records),
        Predicate::All(items) if wanted => items.iter().all(|item| can_be(item, true, records)),
        Predicate::All(items) => items.iter().any(|item| can_be(item, false, records)),
        Predicate::Any(items) if wanted => items.iter().any(|item| can_be(item, true, records)),
        Predicate::Any(items) => items.iter().all(|item| can_be(item, false, records)),
        Predicate::If(parts) => {
            (can_be(&parts.0, true, records) && can_be(&parts.1, wanted, records))
                || (can_be(&parts.0, false, records) && can_be(&parts.2, wanted, records))
        }
        Predicate::Range { field, least, most } => match records.field(*field) {
            Bounds::Missing => false,
            Bounds::Within(low, high) if wanted => low <= *most && high >= *least,
            Bounds::Within(low, high) => low < *least || high > *most,
            Bounds::Unknown => true,
        },
        Predicate::Numbers(op, sides) => match (bounds_of(&sides.0, records), bounds_of(&sides.1, records)) {
            (Bounds::Missing, _) | (_, Bounds::Missing) => false,
            (Bounds::Within(a, b), Bounds::Within(c, d)) => can_compare(*op, (a, b), (c, d), wanted),
            _ => true,
        },
        // The same for all records.
        Predicate::TextIn(TextField::Token(_), _) | Predicate::TextPart(_, TextField::Token(_), _) => {
            let scope = Scope { token: Some(records.token), ..Scope::at(records.now) };
            predicate.eval(View::of(&scope)) == Some(wanted)
        }
        Predicate::TextIn(..) | Predicate::TextPart(..) | Predicate::Other(_) => true,
    }
}

/// Returns whether a comparison of some number in `left` with one in `right` can be `wanted`.
#[expect(clippy::float_cmp, reason = "the bounds are exact")]
fn can_compare(op: Compare, left: (f64, f64), right: (f64, f64), wanted: bool) -> bool {
    match (op, wanted) {
        (Compare::Less, true) | (Compare::GreaterOrEqual, false) => left.0 < right.1,
        (Compare::Less, false) | (Compare::GreaterOrEqual, true) => left.1 >= right.0,
        (Compare::LessOrEqual, true) | (Compare::Greater, false) => left.0 <= right.1,
        (Compare::LessOrEqual, false) | (Compare::Greater, true) => left.1 > right.0,
        (Compare::Equal, true) | (Compare::NotEqual, false) => left.0 <= right.1 && left.1 >= right.0,
        (Compare::Equal, false) | (Compare::NotEqual, true) => left.0 != left.1 || right.0 != right.1 || left.0 != right.0,
    }
}

fn bounds_of(number: &Number, records: &mut RecordBounds<'_>) -> Bounds {
    match number {
        Number::Const(value) => Bounds::within(*value, *value),
        Number::Record(field) => records.field(*field),
        Number::Token(read) => read(records.token).map_or(Bounds::Missing, |value| Bounds::within(value, value)),
        Number::Binary(op, sides) => match (bounds_of(&sides.0, records), bounds_of(&sides.1, records)) {
            (Bounds::Missing, _) | (_, Bounds::Missing) => Bounds::Missing,
            (Bounds::Within(a, b), Bounds::Within(c, d)) => bounds_of_result(*op, (a, b), (c, d)),
            _ => Bounds::Unknown,
        },
        Number::Steps(number, steps) => steps.iter().fold(bounds_of(number, records), |left, (op, right)| match left {
            Bounds::Within(a, b) => bounds_of_result(*op, (a, b), (*right, *right)),
            other => other,
        }),
        Number::If(parts) => bounds_of(&parts.1, records).or(bounds_of(&parts.2, records)),
        Number::Other(_) => Bounds::Unknown,
    }
}

/// Returns the bounds of an operation. They are exact, because the rounding of each operation is monotonic.
#[expect(clippy::float_cmp, reason = "the bounds are exact")]
fn bounds_of_result(op: Arithmetic, left: (f64, f64), right: (f64, f64)) -> Bounds {
    let corner = |left, right| {
        let value = op.of(left, right);
        Bounds::within(value, value)
    };
    match op {
        Arithmetic::Add => Bounds::within(left.0 + right.0, left.1 + right.1),
        Arithmetic::Subtract => Bounds::within(left.0 - right.1, left.1 - right.0),
        // The quotient jumps where the divisor is zero.
        Arithmetic::Divide if right.0 != right.1 || right.0 == 0.0 => Bounds::Unknown,
        Arithmetic::Multiply | Arithmetic::Divide => {
            corner(left.0, right.0).or(corner(left.0, right.1)).or(corner(left.1, right.0)).or(corner(left.1, right.1))
        }
        Arithmetic::Remainder => Bounds::Unknown,
    }
}

impl Bounds {
    fn within(least: f64, most: f64) -> Self {
        if least.is_nan() || most.is_nan() { Bounds::Unknown } else { Bounds::Within(least, most) }
    }

    /// Returns the bounds of a number that is one of two.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Bounds::Missing, other) | (other, Bounds::Missing) => other,
            (Bounds::Within(a, b), Bounds::Within(c, d)) => Bounds::Within(a.min(c), b.max(d)),
            _ => Bounds::Unknown,
        }
    }
}

//! The facts of a row, and the differences between two rows.

use serde_json::Value;

use super::shape::{NumberFields, RecordShape, TextFields};
use crate::diff::tolerances::{close, close_or_none};
use model::change::FieldChange;

/// The facts of a row that count as changes.
pub(super) struct RecordFacts {
    pub(super) numbers: NumberFields,
    texts: TextFields,
}

impl RecordFacts {
    pub(super) fn of<T>(shape: &RecordShape<T>, row: &T) -> Self {
        Self { numbers: (shape.numbers)(row), texts: (shape.texts)(row) }
    }

    pub(super) fn amount(&self) -> Option<f64> {
        self.numbers.first().and_then(|(_, amount)| *amount)
    }

    /// Returns whether every number and text is equal, or missing on both sides.
    pub(super) fn same(&self, other: &Self, tolerance: f64) -> bool {
        self.numbers.len() == other.numbers.len()
            && self.numbers.iter().zip(&other.numbers).all(|(a, b)| a.0 == b.0 && close_or_none(a.1, b.1, tolerance))
            && self.texts == other.texts
    }

    /// Returns the facts that appeared or changed. A fact that is missing now is neither zero nor removed.
    pub(super) fn differences(&self, after: &Self, tolerance: f64) -> Vec<FieldChange> {
        let number = |value: Option<f64>| value.map_or(Value::Null, Value::from);
        let mut found = Vec::new();
        for (field, to) in &after.numbers {
            let Some(to) = to else { continue };
            let from = self.numbers.iter().find(|(name, _)| name == field).and_then(|(_, from)| *from);
            if from.is_none_or(|from| !close(from, *to, tolerance)) {
                found.push(FieldChange { field: field.clone().into_owned(), from: number(from), to: number(Some(*to)) });
            }
        }
        for ((field, to), (_, from)) in after.texts.iter().zip(&self.texts) {
            if to.is_some() && from != to {
                found.push(FieldChange {
                    field: (*field).to_owned(),
                    from: from.clone().map_or(Value::Null, Value::from),
                    to: to.clone().map_or(Value::Null, Value::from),
                });
            }
        }
        found
    }
}

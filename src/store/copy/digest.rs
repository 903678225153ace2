//! A digest of a table, independent of the engine and of the row order.

use std::fmt;

use rusqlite::types::{Value, ValueRef};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::StoreFault;
use crate::sql::Row;

/// The number of rows and the sum of their hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableDigest {
    rows: u64,
    sum: u128,
}

impl TableDigest {
    pub(super) fn add(&mut self, row: &[Value]) {
        let mut bytes = Vec::new();
        row.iter().for_each(|value| write(value, &mut bytes));
        self.rows += 1;
        self.sum = self.sum.wrapping_add(xxh3_128(&bytes));
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the sum in hexadecimal.
    pub(super) fn hash(&self) -> String {
        format!("{:032x}", self.sum)
    }
}

impl fmt::Display for TableDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows with the hash {:032x}", self.rows, self.sum)
    }
}

/// Encodes a value with its type and length, so that different rows never have the same bytes.
fn write(value: &Value, bytes: &mut Vec<u8>) {
    let mut put = |kind: u8, content: &[u8]| {
        bytes.push(kind);
        bytes.extend((content.len() as u64).to_le_bytes());
        bytes.extend(content);
    };
    match value {
        Value::Null => put(0, &[]),
        Value::Integer(number) => put(1, &number.to_le_bytes()),
        Value::Real(number) => put(2, &number.to_bits().to_le_bytes()),
        Value::Text(text) => put(3, text.as_bytes()),
        Value::Blob(blob) => put(4, blob),
    }
}

/// Returns a row's values, normalized to what both engines store: SQLite has no NaN and no negative zero.
pub(super) fn values_of(row: &Row<'_>, count: usize) -> Result<Vec<Value>, StoreFault> {
    (0..count).map(|at| value_of(row.get_ref(at)?)).collect()
}

fn value_of(value: ValueRef<'_>) -> Result<Value, StoreFault> {
    Ok(match value {
        ValueRef::Real(number) if number.is_nan() => Value::Null,
        // Turns -0.0 into 0.0.
        ValueRef::Real(number) => Value::Real(number + 0.0),
        value => Value::try_from(value)
            .map_err(|error| StoreFault::BadRow { what: format!("a text is not UTF-8: {error}"), source: None })?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_depends_on_every_value_and_its_column() {
        let digest = |rows: &[&[Value]]| {
            let mut digest = TableDigest::default();
            rows.iter().for_each(|row| digest.add(row));
            digest
        };
        let text = |text: &str| Value::Text(text.into());
        let (a, b) = ([text("a"), Value::Null], [Value::Null, text("a")]);
        assert_eq!(digest(&[&a, &b]), digest(&[&b, &a]), "the row order does not matter");
        let different: [&[Value]; 8] = [
            &a,
            &b,
            &[text("a")],
            &[text("a\0"), Value::Null],
            &[Value::Blob(b"a".to_vec()), Value::Null],
            &[Value::Integer(0), Value::Null],
            &[Value::Real(0.0), Value::Null],
            &[text(""), text("a")],
        ];
        for (place, one) in different.iter().enumerate() {
            for other in &different[..place] {
                assert_ne!(digest(&[one]), digest(&[other]), "{one:?} {other:?}");
            }
        }
        assert_ne!(digest(&[&a, &a]), digest(&[]), "equal rows do not cancel out");
    }

    #[test]
    fn nan_and_negative_zero_are_normalized() {
        let even = |number: f64| value_of(ValueRef::Real(number)).expect("a value");
        assert_eq!(even(f64::NAN), Value::Null);
        assert!(matches!(even(-0.0), Value::Real(zero) if zero.is_sign_positive()));
        assert_eq!(even(f64::NEG_INFINITY), Value::Real(f64::NEG_INFINITY));
        assert!(value_of(ValueRef::Text(&[0xff])).is_err(), "not UTF-8");
    }
}

//! Values on their way to the server and back.
//!
//! A parameter takes the shape of the type that the statement names. PostgreSQL keeps no NUL in a text, while the source may send one:
//! it is kept as U+FDD0, a code point that stands for no character, and becomes NUL again when it is read. Where a text has that code
//! point itself, U+FDD1 stands before it, and before each U+FDD1: every text comes back as it was.

use std::error::Error;

use bytes::BytesMut;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::PgFault;
use crate::sql::row_bytes;

type Conversion<T> = Result<T, Box<dyn Error + Sync + Send>>;

/// What NUL is kept as.
const KEPT_NUL: char = '\u{fdd0}';

/// What stands before a code point that is meant itself.
const ITSELF: char = '\u{fdd1}';

/// A value for a statement.
#[derive(Debug)]
pub(super) struct Parameter(Value);

impl From<Value> for Parameter {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl Parameter {
    /// What it takes on its way, about.
    pub(super) fn bytes(&self) -> usize {
        row_bytes(std::slice::from_ref(&self.0))
    }

    pub(super) fn of(value: ToSqlOutput<'_>) -> Result<Self, PgFault> {
        match value {
            ToSqlOutput::Borrowed(value) => {
                Value::try_from(value).map_err(|_| PgFault::Unfit { kind: "text".into(), column: "UTF-8".into() }).map(Self)
            }
            ToSqlOutput::Owned(value) => Ok(Self(value)),
            _ => Err(PgFault::Unfit { kind: "unknown".into(), column: "any".into() }),
        }
    }
}

impl ToSql for Parameter {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Conversion<IsNull> {
        let unfit = || -> Box<dyn Error + Sync + Send> {
            Box::new(PgFault::Unfit { kind: ValueRef::from(&self.0).data_type().to_string(), column: ty.name().to_owned() })
        };
        match (&self.0, ty) {
            (Value::Null, _) => Ok(IsNull::Yes),
            (Value::Integer(number), &Type::INT8) => number.to_sql(ty, out),
            (Value::Integer(number), &Type::INT4) => i32::try_from(*number).map_err(|_| unfit())?.to_sql(ty, out),
            (Value::Integer(number), &Type::INT2) => i16::try_from(*number).map_err(|_| unfit())?.to_sql(ty, out),
            (Value::Integer(number), &Type::BOOL) => (*number != 0).to_sql(ty, out),
            #[expect(clippy::cast_precision_loss, reason = "as SQLite does where a column holds reals")]
            (Value::Integer(number), &Type::FLOAT8) => (*number as f64).to_sql(ty, out),
            (Value::Integer(number), &Type::TEXT) => number.to_string().to_sql(ty, out),
            (Value::Real(number), &Type::FLOAT8) => number.to_sql(ty, out),
            (Value::Real(number), &Type::TEXT) => number.to_string().to_sql(ty, out),
            (Value::Text(text), &Type::TEXT) if text.contains(['\0', KEPT_NUL, ITSELF]) => kept(text).to_sql(ty, out),
            (Value::Text(text), &Type::TEXT) => text.to_sql(ty, out),
            (Value::Blob(bytes), &Type::BYTEA) => bytes.to_sql(ty, out),
            _ => Err(unfit()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A value of an answer.
pub(super) struct ColumnValue(pub(super) Value);

impl<'a> FromSql<'a> for ColumnValue {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Conversion<Self> {
        Ok(Self(match *ty {
            Type::INT8 => Value::Integer(i64::from_sql(ty, raw)?),
            Type::INT4 => Value::Integer(i32::from_sql(ty, raw)?.into()),
            Type::INT2 => Value::Integer(i16::from_sql(ty, raw)?.into()),
            Type::BOOL => Value::Integer(bool::from_sql(ty, raw)?.into()),
            Type::FLOAT8 => Value::Real(f64::from_sql(ty, raw)?),
            Type::NUMERIC => numeric(raw)?,
            Type::BYTEA => Value::Blob(raw.to_vec()),
            Type::TEXT | Type::VARCHAR | Type::NAME => Value::Text(text(<&str>::from_sql(ty, raw)?)),
            _ => return Err(format!("a column of the type {ty}").into()),
        }))
    }

    fn from_sql_null(_: &Type) -> Conversion<Self> {
        Ok(Self(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A text as the server keeps it.
fn kept(text: &str) -> String {
    let mut kept = String::with_capacity(text.len() + 4);
    for c in text.chars() {
        match c {
            '\0' => kept.push(KEPT_NUL),
            KEPT_NUL | ITSELF => kept.extend([ITSELF, c]),
            c => kept.push(c),
        }
    }
    kept
}

/// The text of which the server keeps this.
fn text(kept: &str) -> String {
    if !kept.contains([KEPT_NUL, ITSELF]) {
        return kept.to_owned();
    }
    let mut text = String::with_capacity(kept.len());
    let mut rest = kept.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            (ITSELF, Some(&next @ (KEPT_NUL | ITSELF))) => {
                rest.next();
                text.push(next);
            }
            (KEPT_NUL, _) => text.push('\0'),
            (c, _) => text.push(c),
        }
    }
    text
}

/// A sum of whole numbers, which PostgreSQL gives as digits in base 10,000: their number, the weight of the first, the sign, how many
/// decimals are shown, and the digits.
fn numeric(raw: &[u8]) -> Conversion<Value> {
    let mut words = raw.chunks_exact(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]]));
    let mut next = || words.next().ok_or("a number that is cut off");
    let (digits, weight, sign, _) = (next()?, next()?, next()?, next()?);
    let mut number: i64 = 0;
    for place in 0..=weight.max(-1) {
        let digit = if place < digits { i64::from(next()?) } else { 0 };
        number = number.checked_mul(10_000).and_then(|number| number.checked_add(digit)).ok_or("a sum that is too large")?;
    }
    match sign {
        0 if digits <= weight + 1 => Ok(Value::Integer(number)),
        0x4000 if digits <= weight + 1 => Ok(Value::Integer(-number)),
        _ => Err("a number that is not whole".into()),
    }
}

#[cfg(test)]
mod tests;

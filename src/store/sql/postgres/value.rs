//! Conversion of values to and from PostgreSQL.
//!
//! A parameter is converted to the type that the statement declares. PostgreSQL text cannot contain NUL, but data from
//! the source can. NUL is therefore stored as the noncharacter U+FDD0. A literal U+FDD0 or U+FDD1 is escaped with a
//! preceding U+FDD1, so that every text round-trips.

use std::error::Error;

use bytes::BytesMut;
use rusqlite::types::{Value, ValueRef};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::PgFault;

type Conversion<T> = Result<T, Box<dyn Error + Sync + Send>>;

/// The stored form of NUL.
const STORED_NUL: char = '\u{fdd0}';

/// The escape character for literal U+FDD0 and U+FDD1.
const ESCAPE: char = '\u{fdd1}';

/// A parameter of a statement.
#[derive(Debug)]
pub(super) struct SqlParameter(Value);

impl From<Value> for SqlParameter {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl ToSql for SqlParameter {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Conversion<IsNull> {
        let unfit = || -> Box<dyn Error + Sync + Send> {
            Box::new(PgFault::TypeMismatch {
                kind: ValueRef::from(&self.0).data_type().to_string(),
                column: ty.name().to_owned(),
            })
        };
        match (&self.0, ty) {
            (Value::Null, _) => Ok(IsNull::Yes),
            (Value::Integer(number), &Type::INT8) => number.to_sql(ty, out),
            (Value::Integer(number), &Type::INT4) => i32::try_from(*number).map_err(|_| unfit())?.to_sql(ty, out),
            (Value::Integer(number), &Type::INT2) => i16::try_from(*number).map_err(|_| unfit())?.to_sql(ty, out),
            (Value::Integer(number), &Type::BOOL) => (*number != 0).to_sql(ty, out),
            #[expect(clippy::cast_precision_loss, reason = "the same conversion as in a REAL column of SQLite")]
            (Value::Integer(number), &Type::FLOAT8) => (*number as f64).to_sql(ty, out),
            (Value::Integer(number), &Type::TEXT) => number.to_string().to_sql(ty, out),
            (Value::Real(number), &Type::FLOAT8) => number.to_sql(ty, out),
            (Value::Real(number), &Type::TEXT) => number.to_string().to_sql(ty, out),
            (Value::Text(text), &Type::TEXT) if text.contains(['\0', STORED_NUL, ESCAPE]) => escape(text).to_sql(ty, out),
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

/// A value of a result.
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
            Type::TEXT | Type::VARCHAR | Type::NAME => Value::Text(unescape(<&str>::from_sql(ty, raw)?)),
            _ => return Err(format!("unsupported column type {ty}").into()),
        }))
    }

    fn from_sql_null(_: &Type) -> Conversion<Self> {
        Ok(Self(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Escapes a text for the server.
fn escape(text: &str) -> String {
    let mut kept = String::with_capacity(text.len() + 4);
    for c in text.chars() {
        match c {
            '\0' => kept.push(STORED_NUL),
            STORED_NUL | ESCAPE => kept.extend([ESCAPE, c]),
            c => kept.push(c),
        }
    }
    kept
}

/// Restores a text from its stored form.
fn unescape(kept: &str) -> String {
    if !kept.contains([STORED_NUL, ESCAPE]) {
        return kept.to_owned();
    }
    let mut text = String::with_capacity(kept.len());
    let mut rest = kept.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            (ESCAPE, Some(&next @ (STORED_NUL | ESCAPE))) => {
                rest.next();
                text.push(next);
            }
            (STORED_NUL, _) => text.push('\0'),
            (c, _) => text.push(c),
        }
    }
    text
}

/// Reads a whole number from the binary NUMERIC format, in base 10,000: the number of digits, the weight of the first,
/// the sign, the display scale, and the digits.
fn numeric(raw: &[u8]) -> Conversion<Value> {
    let mut words = raw.chunks_exact(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]]));
    let mut next = || words.next().ok_or("truncated NUMERIC value");
    let (digits, weight, sign, _) = (next()?, next()?, next()?, next()?);
    let mut number: i64 = 0;
    for place in 0..=weight.max(-1) {
        let digit = if place < digits { i64::from(next()?) } else { 0 };
        number = number.checked_mul(10_000).and_then(|number| number.checked_add(digit)).ok_or("NUMERIC value out of range")?;
    }
    match sign {
        0 if digits <= weight + 1 => Ok(Value::Integer(number)),
        0x4000 if digits <= weight + 1 => Ok(Value::Integer(-number)),
        _ => Err("NUMERIC value is not a whole number".into()),
    }
}

#[cfg(test)]
mod tests;

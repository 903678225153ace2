use super::*;

#[test]
fn nul_round_trips() {
    let mut out = BytesMut::new();
    let parameter = SqlParameter(Value::Text("a\0b".into()));
    parameter.to_sql(&Type::TEXT, &mut out).expect("encoded");
    assert!(!out.contains(&0), "PostgreSQL rejects NUL");
    assert_eq!(ColumnValue::from_sql(&Type::TEXT, &out).expect("decoded").0, Value::Text("a\0b".into()));
}

#[test]
fn every_text_round_trips() {
    let bits = ["\0", "\u{fdd0}", "\u{fdd1}", "a", "é\u{10ffff}"];
    for n in 0..bits.len().pow(4) {
        let before: String = (0..4).map(|place| bits[n / bits.len().pow(place) % bits.len()]).collect();
        let kept = escape(&before);
        assert!(!kept.contains('\0'), "{before:?}");
        assert_eq!(unescape(&kept), before);
    }
    assert_eq!(unescape("a\u{fdd1}b\u{fdd1}"), "a\u{fdd1}b\u{fdd1}", "an escape before another character stays as it is");
}

#[test]
fn number_is_converted_to_column_type() {
    let encode = |value: Value, ty: Type| {
        let mut out = BytesMut::new();
        SqlParameter(value).to_sql(&ty, &mut out).ok().map(|_| ColumnValue::from_sql(&ty, &out).expect("decoded").0)
    };
    for ty in [Type::INT2, Type::INT4, Type::INT8] {
        assert_eq!(encode(Value::Integer(-7), ty), Some(Value::Integer(-7)));
    }
    assert_eq!(encode(Value::Integer(7), Type::BOOL), Some(Value::Integer(1)));
    assert_eq!(encode(Value::Integer(7), Type::FLOAT8), Some(Value::Real(7.0)));
    assert_eq!(encode(Value::Integer(7), Type::TEXT), Some(Value::Text("7".into())));
    assert_eq!(encode(Value::Integer(1 << 40), Type::INT4), None, "out of range");
    assert_eq!(encode(Value::Text("7".into()), Type::INT8), None);
    assert_eq!(encode(Value::Blob(vec![0, 1]), Type::BYTEA), Some(Value::Blob(vec![0, 1])));
}

#[test]
fn numeric_is_read_as_whole_number() {
    let number = |words: &[i16]| numeric(&words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>());
    assert_eq!(number(&[0, 0, 0, 0]).expect("read"), Value::Integer(0));
    assert_eq!(number(&[2, 1, 0, 0, 12, 3456]).expect("read"), Value::Integer(123_456));
    assert_eq!(number(&[1, 2, 0, 0, 5]).expect("read"), Value::Integer(500_000_000));
    assert_eq!(number(&[1, 0, 0x4000, 0, 5]).expect("read"), Value::Integer(-5));
    assert!(number(&[2, 0, 0, 2, 5, 5000]).is_err(), "five and a half");
    assert!(number(&[9, 8, 0, 0, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999]).is_err(), "too large");
    assert!(number(&[2, 1]).is_err(), "cut off");
}

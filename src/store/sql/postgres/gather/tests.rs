use super::*;

#[test]
fn a_statement_that_inserts_a_row_has_one_that_inserts_many() {
    let many = |sql: &str, types: &[Type]| inserts_many(sql, types);
    assert_eq!(
        many(
            "INSERT INTO record (scope_no, resource, key, first_seen, version_at) VALUES ($1, 'unlock', $2, $3, $3)",
            &[Type::INT8, Type::TEXT, Type::INT8]
        )
        .as_deref(),
        Some(
            "INSERT INTO record (scope_no, resource, key, first_seen, version_at) SELECT v1, 'unlock', v2, v3, v3 \
             FROM unnest($1::int8[], $2::text[], $3::int8[]) AS given (v1, v2, v3)"
        )
    );
    assert_eq!(
        many("INSERT INTO a (b,\n c) VALUES (0,\n  $1)", &[Type::BYTEA]).as_deref(),
        Some("INSERT INTO a (b,\n c) SELECT 0, v1 FROM unnest($1::bytea[]) AS given (v1)")
    );
}

#[test]
fn what_answers_or_goes_by_what_is_there_stays_as_it_is() {
    for sql in [
        "INSERT INTO a (b) VALUES ($1) RETURNING no",
        "INSERT INTO a (b) VALUES ($1) ON CONFLICT DO NOTHING",
        "INSERT INTO a (b) VALUES ($1) ON CONFLICT (b) DO UPDATE SET c = (excluded.c)",
        "INSERT INTO a (b) VALUES (lower($1))",
        "INSERT INTO a (b) VALUES ($1 + 1)",
        "INSERT INTO a (b) VALUES ('it''s', $1)",
        "INSERT INTO a (b) VALUES ('a, b', $1)",
        "INSERT INTO a (b) SELECT $1",
        "UPDATE a SET b = $1",
        "DELETE FROM a WHERE b IN (VALUES ($1))",
    ] {
        assert_eq!(inserts_many(sql, &[Type::INT8]), None, "{sql}");
    }
    assert_eq!(inserts_many("INSERT INTO a (b) VALUES ('once')", &[]), None);
}

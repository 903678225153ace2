use super::translate;

fn check(sqlite: &str, postgres: &str) {
    assert_eq!(translate(sqlite), postgres);
}

#[test]
fn values_are_numbered_by_a_dollar_and_texts_stay() {
    check("SELECT a FROM b WHERE c = ?1 AND d IN (?2, ?12)", "SELECT a FROM b WHERE c = $1 AND d IN ($2, $12)");
    check("SELECT '?1', \"?2\", 'it''s ?3' WHERE x = ?1", "SELECT '?1', \"?2\", 'it''s ?3' WHERE x = $1");
    check("SELECT a ->> '$.b' FROM c", "SELECT a ->> '$.b' FROM c");
    check("SELECT '?1", "SELECT '?1");
}

#[test]
fn advice_for_another_planner_is_left_out() {
    check("FROM record INDEXED BY record_window\n WHERE a > ?1", "FROM record  WHERE a > $1");
    check("FROM alert a INDEXED BY alert_gravity LEFT JOIN t", "FROM alert a LEFT JOIN t");
}

#[test]
fn letters_are_folded_by_a_function() {
    check("ORDER BY name COLLATE NOCASE", "ORDER BY lower(name)");
    check("WHERE t.symbol = ?1 COLLATE NOCASE ORDER BY id", "WHERE t.symbol = lower($1) ORDER BY id");
    check("(name COLLATE NOCASE, symbol)", "(lower(name), symbol)");
}

//! Tests of the fields of positions.

use super::*;
use model::Position;

/// 1,000 ARB in a token with a market cap of $1.2B and 4B circulating tokens.
fn held() -> Token {
    Token { position: Position::of(1000.0), ..arb() }
}

fn truth_of(token: &Token, on: &str, when: &str, json: &str) -> Truth {
    let resource = if on == "burn" { Resource::Burn } else { Resource::Unlock };
    let record = record(resource, json);
    rule_when(on, when).evaluate(&scope(token, &record))
}

/// 5,000 tokens of $2.
const PRICED: &str = r#"{"unlockDate":"2026-03-16T00:00:00Z","cliffUnlocks":{"cliffAmount":5000,"cliffValue":10000,"referencePrice":2,
    "referencePriceUpdatedTime":"2026-03-05T00:00:00Z"}}"#;

#[test]
fn position_has_amount_value_and_share() {
    let all = "position.amount == 1000 && position.value == 2000 && position.share == 0.2 && has(position.value)";
    assert_eq!(truth_of(&held(), "unlock", all, PRICED), Truth::True);
    let linear = r#"{"unlockDate":"2026-03-16T00:00:00Z","linearUnlocks":{"linearAmount":4000}}"#;
    assert_eq!(truth_of(&held(), "unlock", "position.share == 0.25", linear), Truth::True, "an event without a cliff");
    // Without a price of the record: $1.2B / 4B tokens.
    assert_eq!(truth_of(&held(), "burn", "position.value > 299 && position.value < 301", "{}"), Truth::True);
}

#[test]
fn missing_position_price_or_amount_is_missing() {
    for (field, token, json) in [
        ("position.amount", arb(), PRICED),
        ("position.value", arb(), PRICED),
        ("position.value", Token { item: Default::default(), ..held() }, r#"{"unlockDate":"2026-03-16T00:00:00Z"}"#),
        ("position.share", held(), r#"{"unlockDate":"2026-03-16T00:00:00Z"}"#),
    ] {
        assert_eq!(truth_of(&token, "unlock", &format!("{field} > 0"), json), Truth::Missing(vec![field]), "{field}");
        assert_eq!(truth_of(&token, "unlock", &format!("has({field})"), json), Truth::False, "{field}");
    }
}

#[test]
fn explanations_and_outcomes_hide_positions() {
    let (token, unlock) = (held(), record(Resource::Unlock, PRICED));
    for when in ["position.value * 3 > 1000000", "cliffValue > position.value * 100", "position.amount > 7000"] {
        let (condition, _) = Condition::compile(when, On::Record(Resource::Unlock));
        let condition = condition.expect("valid");
        let scope = scope(&token, &unlock);
        let shown = format!("{:?} {:?}", condition.clauses(&scope), condition.mismatch(&scope));
        assert!(shown.contains("(hidden)"), "{shown}");
        for value in ["6000", "6,000", "2000", "2,000", "200000", "200,000", "$2.00K", "Some(\"1000\")", "1.00K"] {
            assert!(!shown.contains(value), "{when}: {value} in {shown}");
        }
    }
}

#[test]
fn only_conditions_of_rules_on_one_token_know_positions() {
    for (on, when, expected) in
        [("portfolio", "position.value > 1000000", "position"), ("burn", "position.share > 0.1", "position.share")]
    {
        let loaded = load_text(&format!("[[rule]]\nalert = \"A\"\non = \"{on}\"\nwhen = \"{when}\"\n"));
        assert!(loaded.diagnostics.iter().any(|problem| problem.message.contains(expected)), "{:?}", loaded.diagnostics);
        assert!(!loaded.is_usable());
    }
    let text = "[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = \"position.value > 1000000\"\n[rule.annotations]\nsummary = \"{{ position.value | usd }}\"\n";
    let loaded = load_text(text);
    assert!(!loaded.is_usable(), "texts go to everyone: {:?}", loaded.diagnostics);
}

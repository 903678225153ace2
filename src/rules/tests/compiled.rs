//! Property tests: the compiled form of a condition agrees with its expression tree, and bounds exclude no match.

use super::*;

/// Generates numbers. Constants and values come from the same few numbers, so that comparisons are often at the limit.
fn number() -> impl Strategy<Value = String> {
    let fields = prop::sample::select(vec![
        "cliffValue",
        "cliffAmount",
        "valueToMarketCap",
        "linearValue",
        "token.marketCap",
        "token.circulatingSupply",
        "daysUntil",
        "size(tokenSymbol)",
    ]);
    let constants = prop::sample::select(vec!["0.0", "1.0", "2.0", "-1.0", "3.5", "1e300", "-(2.0)", "(1.0 / 0.0)"]);
    prop_oneof![3 => fields, 2 => constants].prop_map(str::to_owned).prop_recursive(2, 6, 2, |inner| {
        let op = prop::sample::select(vec!["+", "-", "*", "/", "%"]);
        prop_oneof![
            3 => (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            1 => (inner.clone(), inner).prop_map(|(a, b)| format!("(token.symbol == \"ARB\" ? {a} : {b})")),
        ]
    })
}

fn condition() -> impl Strategy<Value = String> {
    let op = prop::sample::select(vec!["<", "<=", ">", ">=", "==", "!="]);
    let long_list = "tokenSymbol in [\"C\", \"ARB\", \"H\", \"G\", \"F\", \"E\", \"D\", \"B\", \"A\"]";
    let others = prop::sample::select(vec![
        "true",
        "has(cliffValue)",
        "has(linearValue)",
        "tokenSymbol == \"ARB\"",
        "\"ARB\" != tokenSymbol",
        "tokenSymbol < \"B\"",
        "tokenSymbol in [\"A\", \"ARB\"]",
        long_list,
        "tokenSymbol.startsWith(\"A\")",
        "tokenSymbol.contains(token.symbol)",
        "token.symbol == \"ARB\"",
        "token.symbol.endsWith(\"X\")",
        "token.listedMethod in [\"AI\"]",
        "unlockDate > now",
        "lead == \"7d\"",
        "allocations.exists(a, a.cliffAmount > 1.0)",
        "cliffAmount in [1.0, 2.0]",
    ]);
    let leaf = prop_oneof![
        3 => (number(), op, number()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        2 => others.prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let op = prop::sample::select(vec!["&&", "||"]);
        prop_oneof![
            4 => (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            1 => inner.clone().prop_map(|a| format!("!({a})")),
            1 => (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
        ]
    })
}

/// Generates an unlock with missing fields.
fn unlock() -> impl Strategy<Value = Tracked> {
    let value = || prop::option::weighted(0.7, prop::sample::select(vec![-1.0, 0.0, 1.0, 2.0, 3.5, 1e300]));
    let symbol = prop::option::weighted(0.7, prop::sample::select(vec!["ARB", "A", "B", "H", "XY", ""]));
    let date = prop::option::weighted(0.7, prop::sample::select(vec!["2026-03-08T00:00:00Z", "2026-03-10T00:00:00Z"]));
    (value(), value(), value(), value(), symbol, date).prop_map(|(usd, amount, ratio, linear, symbol, date)| {
        let json = serde_json::json!({
            "unlockDate": date, "tokenSymbol": symbol, "linearUnlocks": {"linearValue": linear},
            "cliffUnlocks": {"cliffValue": usd, "cliffAmount": amount, "valueToMarketCap": ratio,
                "allocationBreakdown": amount.map(|amount| vec![BTreeMap::from([("cliffAmount", amount)])])},
        });
        record(Resource::Unlock, &json.to_string())
    })
}

fn token() -> impl Strategy<Value = Token> {
    let number = || prop::option::weighted(0.7, prop::sample::select(vec![0.0, 1.0, 2.0]));
    let symbol = prop::sample::select(vec!["ARB", "X"]);
    (number(), number(), symbol).prop_map(|(cap, supply, symbol)| {
        let item = serde_json::json!({"id": "arbitrum", "symbol": symbol, "marketCap": cap, "circulatingSupply": supply});
        Token { item: serde_json::from_value(item).expect("a token"), ..arb() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn compiled_condition_agrees_with_its_tree(when in condition(), token in token(), records in prop::collection::vec(unlock(), 1..5)) {
        prop_assume!(when.len() <= condition::lint::MAX_CONDITION);
        let (condition, findings) = Condition::compile(&when, On::Record(Resource::Unlock));
        let Some(condition) = condition else {
            prop_assert!(findings.iter().any(|finding| finding.message.contains("deep")), "{when}: {findings:?}");
            return Ok(());
        };
        let mut has_match = false;
        for record in &records {
            let scope = scope(&token, record);
            let truth = condition.test_tree(&scope);
            prop_assert_eq!(condition.test(&scope), truth.clone(), "{} on {:?}", when, record);
            prop_assert_eq!(condition.holds(&scope) == Some(true), truth == Truth::True);
            has_match |= truth == Truth::True;
        }
        let all = records.iter().map(|tracked| &tracked.record).collect();
        let mut bounds = RecordBounds::of(&token, all, at("2026-03-09"));
        prop_assert!(condition.can_hold(&mut bounds) || !has_match, "{when} is true, but excluded");
    }
}

#[test]
fn bounds_exclude_conditions_without_a_match() {
    let small = r#"{"cliffUnlocks":{"cliffValue":100,"cliffAmount":10}}"#;
    let (token, records) = (arb(), [record(Resource::Unlock, CLIFF), record(Resource::Unlock, small)]);
    let can_match = |when: &str, settings: &str| {
        let rule = rule(&format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = '''{when}'''\n{settings}"));
        let all = records.iter().map(|tracked| &tracked.record).collect();
        rule.can_match(&mut RecordBounds::of(&token, all, at("2026-03-09")))
    };
    for when in [
        "cliffValue > 33150000",
        "cliffValue < 100 || cliffValue >= 1e9",
        "!(cliffValue >= 100)",
        "cliffAmount >= token.circulatingSupply * 0.5",
        "cliffAmount + 5 > 92650010",
        "linearValue > 0",
        "token.symbol == \"OP\" && cliffValue > 0",
        "cliffValue > 1000 && token.marketCap < 1e6",
    ] {
        assert!(!can_match(when, ""), "{when}");
    }
    for when in
        ["cliffValue >= 33150000", "cliffValue <= 100", "valueToMarketCap > 2", "daysUntil > 100", "token.symbol == \"ARB\""]
    {
        assert!(can_match(when, ""), "{when}");
    }
    assert!(can_match("linearValue > 0", "missing = \"fire\"\n"), "a missing field fires");
}

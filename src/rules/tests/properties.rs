//! Property tests: conditions agree with the `cel` interpreter, and no input causes a panic.

use super::*;

/// Generates arithmetic that both this crate and the interpreter support.
fn arithmetic() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("cliffValue".to_owned()),
        Just("cliffAmount".to_owned()),
        Just("valueToMarketCap".to_owned()),
        (-1000..1000_i32).prop_map(|n| format!("{}.0", n)),
        (0..100_i32).prop_map(|n| format!("{n}.5")),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        (inner.clone(), prop_oneof![Just("+"), Just("-"), Just("*"), Just("/")], inner)
            .prop_map(|(a, op, b)| format!("({a} {op} {b})"))
    })
}

/// Generates a condition over list items.
fn list_macro() -> impl Strategy<Value = String> {
    let item = prop_oneof![Just("a.cliffAmount"), Just("a.cliffValue")];
    let test = (item, prop_oneof![Just("<"), Just(">="), Just("==")], -20..20_i32)
        .prop_map(|(item, op, number)| format!("{item} {op} {number}.0"));
    let both = (test.clone(), prop_oneof![Just("&&"), Just("||")], test.clone());
    let test = prop_oneof![test.clone(), both.prop_map(|(a, op, b)| format!("({a} {op} !({b}))"))];
    (prop_oneof![Just("exists"), Just("all"), Just("filter")], test, 0..4_u8).prop_map(|(what, test, size)| match what {
        "filter" => format!("allocations.filter(a, {test}).size() == {size}"),
        what => format!("allocations.{what}(a, {test})"),
    })
}

fn predicate() -> impl Strategy<Value = String> {
    let compare = (arithmetic(), prop_oneof![Just("<"), Just("<="), Just(">"), Just(">="), Just("=="), Just("!=")], arithmetic())
        .prop_map(|(a, op, b)| format!("{a} {op} {b}"));
    let text = prop_oneof![
        Just("tokenName == \"abc\"".to_owned()),
        Just("tokenName.startsWith(\"a\")".to_owned()),
        Just("tokenName.endsWith(\"b\") || tokenName.contains(\"ca\")".to_owned()),
        Just("tokenName < \"b\" || tokenName >= \"c\"".to_owned()),
        Just("size(tokenName) > 1".to_owned()),
        Just("cliffAmount in [1.0, 2.0, -3.0]".to_owned()),
        Just("tokenName in [\"abc\", \"x\"]".to_owned())
    ];
    prop_oneof![4 => compare, 1 => text, 2 => list_macro()].prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), prop_oneof![Just("&&"), Just("||")], inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            inner.clone().prop_map(|a| format!("!({a})")),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lowered_conditions_agree_with_the_interpreter(when in predicate(), value in 0.0..1e9_f64, amount in 0..50_i32, ratio in 0..10_i32, name in "[abc]{0,3}",
        parts in prop::collection::vec((0..20_i32, 0..20_i32), 0..4)) {
        prop_assume!(when.len() <= condition::lint::MAX_CONDITION);
        let (condition, findings) = Condition::compile(&when, On::Record(Resource::Unlock));
        let Some(condition) = condition else {
            prop_assert!(findings.iter().any(|finding| finding.message.contains("deep")), "{when}: {findings:?}");
            return Ok(());
        };
        let (amount, ratio) = (f64::from(amount), f64::from(ratio));
        let parts: Vec<BTreeMap<&str, f64>> =
            parts.iter().map(|(a, b)| BTreeMap::from([("cliffAmount", f64::from(*a)), ("cliffValue", f64::from(*b))])).collect();
        let json = serde_json::json!({"tokenName": name, "cliffUnlocks": {
            "cliffValue": value, "cliffAmount": amount, "valueToMarketCap": ratio, "allocationBreakdown": parts}});
        let (token, record) = (arb(), record(Resource::Unlock, &json.to_string()));
        let ours = condition.test(&scope(&token, &record));

        let program = cel::Env::stdlib().compile(&when).expect("the same grammar");
        let mut context = cel::Context::default();
        context.add_variable("cliffValue", value).expect("a variable");
        context.add_variable("cliffAmount", amount).expect("a variable");
        context.add_variable("valueToMarketCap", ratio).expect("a variable");
        context.add_variable("tokenName", name).expect("a variable");
        let items: Vec<std::collections::HashMap<String, f64>> =
            parts.iter().map(|part| part.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()).collect();
        context.add_variable("allocations", cel::Value::from(items)).expect("a variable");
        match (ours, program.execute(&context)) {
            (Truth::True, Ok(theirs)) => prop_assert_eq!(theirs, cel::Value::Bool(true), "{}", when),
            (Truth::False, Ok(theirs)) => prop_assert_eq!(theirs, cel::Value::Bool(false), "{}", when),
            // 0 / 0 is missing here. In the interpreter it is an error, except that it equals nothing.
            (Truth::Missing(names), theirs) => {
                prop_assert_eq!(&names, &["(0 / 0)"]);
                prop_assert!(theirs.is_err() || when.contains("==") || when.contains("!="), "{}: {:?}", when, theirs);
            }
            (ours, Err(error)) => prop_assert!(false, "{when}: {ours:?}, {error}"),
        }
    }

    #[test]
    fn no_condition_text_panics(when in "\\PC{0,200}") {
        let _ = Condition::compile(&when, On::Record(Resource::Unlock));
    }

    #[test]
    fn no_token_sequence_in_a_condition_panics(tokens in prop::collection::vec(prop::sample::select(vec![
        "cliffValue", "allocations", "token", ".", "(", ")", "[", "]", "{", "}", "&&", "||", "!", "-", "?", ":", ",", "exists", "map", "sum", "filter", "has", "a", "a.cliffAmount",
        "1", "2.5", "\"x\"", "'", "in", "==", ">", "%", "timestamp", "duration", "\"7d\"", "null", "true", "change.from", "old", "new.unlockDate", "now", "ü", "\n", "//", "1e999", "99999999999999999999",
        "ahead", "burned(\"30d\").value", "ahead('7d')", "lastBurn.daysSince", "share", "tokens", "t", "t.share", "t.ahead(\"7d\").count", "marketCap", "group",
    ]), 0..40)) {
        for on in [On::Record(Resource::Unlock), On::Change(Resource::Unlock, None), On::Token, On::Portfolio, On::Source] {
            let (condition, findings) = Condition::compile(&tokens.join(" "), on);
            prop_assert!(condition.is_some() || findings.iter().any(|finding| finding.is_error));
        }
    }

    #[test]
    fn no_rule_file_text_panics(text in "(\\[\\[rule\\]\\]\n)?((alert|on|when|within|labels|tokens|limit|[a-z]{1,6}) = (\"[^\"\\\\]{0,20}\"|[0-9.\\-:T]{1,12}|\\[.{0,10}\\]|true|\\{.{0,10}\\}|\\PC{0,10})\n){0,6}") {
        let loaded = load_text(&text);
        for problem in &loaded.diagnostics {
            if let Some(span) = &problem.span {
                prop_assert!(text.get(span.clone()).is_some(), "{problem:?} in {text:?}");
            }
        }
    }

    #[test]
    fn no_template_text_panics(text in "(\\{\\{|\\}\\}|\\{%|%\\}|\\||[a-z.]{1,8}| |\\PC){0,30}") {
        let engine = TemplateEngine::new();
        let _ = Template::check(&engine, &text, On::Record(Resource::Unlock), Some(&[]));
    }
}

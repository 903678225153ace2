//! Tests of conditions: the data that they read, missing fields, and the messages for common mistakes.

use super::*;

#[test]
fn member_field_of_a_portfolio_rule_triggers_evaluation() {
    let item = |supply: f64| wire::TokenItem { circulating_supply: supply.into(), ..wire::TokenItem::default() };
    for when in ["tokens.exists(t, t.circulatingSupply > 5.0)", "tokens.filter(t, t.circulatingSupply > 5.0).size() > 0"] {
        let loaded = load_text(&format!("[[rule]]\nalert = \"A\"\non = \"portfolio\"\nwhen = \'\'\'{when}\'\'\'\n"));
        assert!(loaded.is_usable(), "{when}: {:#?}", loaded.diagnostics);
        assert!(loaded.set.index.changes_read_field(&item(1.0), &item(10.0)), "{when}");
    }
}

#[test]
fn conditions_read_record_token_and_clock() {
    for when in [
        "cliffValue >= 5000000 || valueToMarketCap >= 2",
        "cliffUnlocks.cliffValue == 33150000.0",
        "token.symbol == \"ARB\" && 'portfolio' in token.groups",
        "tokenSymbol in [\"ARB\", \"APT\"]",
        "daysUntil == 7 && daysSince == -7",
        "unlockDate - now <= duration('7d') && unlockDate > timestamp(\"2026-01-01\")",
        "now + duration('1w') == unlockDate",
        "allocations.exists(a, a.standardAllocationName == \"Founder / Team\" && a.cliffAmount > 1e6)",
        "!allocations.all(a, a.cliffAmount > 50000000)",
        "allocations.filter(a, a.cliffAmount > 50000000).size() == 1 && size(allocations) == 2",
        "allocations.map(a, a.cliffAmount).sum() == cliffAmount",
        "allocations.exists(a, allocations.exists(b, b.cliffAmount < a.cliffAmount))",
        "token.name.startsWith('Arb') && token.name.endsWith('um') && token.name.contains('bit') && token.name.matches('^A.*m$')",
        "size(token.symbol) == 3",
        "(cliffValue > 1 ? 10 : 20) == 10 && max(1, cliffValue, 2) == cliffValue && min(3, 2) == 2 && abs(-2) == 2",
        "cliffAmount % 10 == 0 && -cliffAmount < 0 && cliffAmount / 2 * 2 - 1 + 1 == cliffAmount",
        "has(cliffValue) && !has(linearValue) && has(allocations) && !has(lead)",
        "token.groups.exists(g, g.startsWith('port'))",
        "(cliffValue > 1) == true && unlockPrecision != 'month'",
    ] {
        assert!(holds(when), "{when}");
    }
}

#[test]
fn missing_field_is_neither_true_nor_false_and_is_named() {
    let bare = "{\"unlockDate\":\"2026-03-16T00:00:00Z\"}";
    assert_eq!(truth("cliffValue >= 1", bare), Truth::Missing(vec!["cliffValue"]));
    assert_eq!(truth("!(cliffValue >= 1)", bare), Truth::Missing(vec!["cliffValue"]));
    assert_eq!(truth("cliffValue >= 1 && valueToMarketCap > 2", bare), Truth::Missing(vec!["cliffValue", "valueToMarketCap"]));
    assert_eq!(truth("cliffValue >= 1 || daysUntil == 7", bare), Truth::True);
    assert_eq!(truth("cliffValue >= 1 && daysUntil > 7", bare), Truth::False);
    assert_eq!(truth("(cliffValue >= 1 && daysUntil > 7) || linearValue > 1", bare), Truth::Missing(vec!["linearValue"]));
    assert_eq!(truth("allocations.exists(a, a.cliffAmount > 1)", bare), Truth::Missing(vec!["allocations"]));
    let fires = rule("[[rule]]\nalert = \"A\"\non = \"unlock\"\nmissing = \"fire\"\nwhen = \"cliffValue >= 1\"\n");
    let (token, record) = (arb(), record(Resource::Unlock, bare));
    assert_eq!(fires.evaluate(&scope(&token, &record)), Truth::True);
}

#[test]
fn missing_field_does_not_clear_an_alert() {
    let rule = rule("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = \"cliffValue >= 5\"\nclear_when = \"cliffValue < 3\"\n");
    let token = arb();
    let clears = |json: &str| rule.clears(&scope(&token, &record(Resource::Unlock, json)));
    assert!(!clears("{}"));
    assert!(!clears(r#"{"cliffUnlocks":{"cliffValue":4}}"#));
    assert!(clears(r#"{"cliffUnlocks":{"cliffValue":2}}"#));
    assert!(!rule_when("unlock", "cliffValue >= 5").clears(&scope(&token, &record(Resource::Unlock, "{}"))));
}

#[test]
fn unknown_name_gets_a_location_and_a_suggestion() {
    let (covered, message, help) = condition_problem("unlock", "daysUntil < 7 && cliffVale >= 5");
    assert_eq!(
        (covered.as_str(), message.as_str(), help.as_str()),
        ("cliffVale", "unknown name `cliffVale`", "did you mean `cliffValue`?")
    );
    let (covered, _, help) = condition_problem("unlock", "token . sybol == \"ARB\"");
    assert_eq!((covered.as_str(), help.as_str()), ("token . sybol", "did you mean `token.symbol`?"));
    let (covered, _, help) = condition_problem("unlock", "allocations.exists(a, a.cliffAmout > 1)");
    assert_eq!((covered.as_str(), help.as_str()), ("a.cliffAmout", "did you mean `a.cliffAmount`?"));
    let (_, message, help) = condition_problem("burn", "cliffValue > 1");
    assert_eq!(
        (message.as_str(), help.as_str()),
        ("`cliffValue` is not available here", "`cliffValue` is a field of `unlock` records, but this rule has `on = \"burn\"`")
    );
    let (_, _, help) = condition_problem("unlock", "change.shiftDays > 1");
    assert!(help.contains("in rules on changes"), "{help}");
    let (_, message, _) = condition_problem("unlock", "token == \"ARB\"");
    assert_eq!(message, "`token` is an object, not a value");
    let (covered, _, _) = condition_problem("unlock", "tokenName == \"Größe\" && cliffVale > 1");
    assert_eq!(covered, "cliffVale");
}

#[test]
fn type_mismatch_names_both_types_and_the_location() {
    for (when, covered, message, help) in [
        (
            "cliffValue >= \"5000000\"",
            "cliffValue >= \"5000000\"",
            "a number cannot be compared with a string",
            "write the number without quotes: `5000000`",
        ),
        ("tokenName > 5", "tokenName > 5", "a string cannot be compared with a number", ""),
        (
            "unlockDate > \"2026-01-01\"",
            "unlockDate > \"2026-01-01\"",
            "a time cannot be compared with a string",
            "write the time as `timestamp(\"2026-01-01\")`",
        ),
        ("cliffValue", "cliffValue", "`cliffValue` is a number, not a boolean", "compare it: `cliffValue > 0`"),
        ("cliffValue + tokenName > 5", "cliffValue + tokenName", "no arithmetic between a number and a string", ""),
        ("allocations > 5", "allocations > 5", "a list of allocations cannot be compared with a number", ""),
        (
            "cliffValue == null",
            "cliffValue == null",
            "a comparison with null is never true: a missing field makes it neither true nor false",
            "write `!has(cliffValue)`",
        ),
        ("cliffValue in [1, \"a\"]", "\"a\"", "the items of a list must be all numbers or all strings", ""),
        ("unlockDate - now < 7", "unlockDate - now < 7", "a duration cannot be compared with a number", "duration(\"7d\")"),
        (
            "\"ARB\" in tokenName",
            "\"ARB\" in tokenName",
            "`in` requires a list of the same type, but got a string and a string",
            "write `tokenName.contains(\"ARB\")`",
        ),
    ] {
        let (at, text, advice) = condition_problem("unlock", when);
        assert_eq!((at.as_str(), text.as_str()), (covered, message), "{when}");
        assert!(advice.contains(help), "{when}: {advice}");
    }
}

#[test]
fn common_mistakes_get_a_suggestion() {
    for (when, covered, help) in [
        ("cliffValue > 5 and daysUntil < 7", "and", "use `&&`"),
        ("cliffValue > 5 or daysUntil < 7", "or", "use `||`"),
        ("not has(cliffValue)", "not", "use `!`"),
        ("cliffValue = 5", "=", "use `==`"),
        ("cliffValue >= 5M", "5M", "use `5000000`"),
        ("cliffValue >= 2.5bn", "2.5bn", "use `2500000000`"),
        ("cliffValue >= 5_000_000", "5_000_000", "use `5000000`"),
        ("valueToMarketCap > 50%", "%", "remove it"),
        ("daysUntil < 7d", "7d", "duration(\"7d\")"),
        ("cliffValue => 5", "=>", "use `>=`"),
        ("cliffValue > 5 & daysUntil < 7", "&", "use `&&`"),
        ("(cliffValue > 5", "(", "add `)`"),
        ("cliffValue > 5)", ")", "remove it"),
        ("tokenName == \"ARB", "\"ARB", "add `\"`"),
        ("cliffValue >", ">", "expected a name"),
        ("cliffValue > 5 daysUntil < 7", "daysUntil", "joined by"),
        ("cliffValue.foo() > 1", "cliffValue.foo()", "supported are"),
        ("ahead(\"7d\").value > 1", "ahead(\"7d\")", "on = \"token\""),
        ("tokenName.matches(\"(\")", "\"(\"", "regular expressions"),
        ("unlockDate > timestamp(\"soon\")", "\"soon\"", "2026-01-31"),
        ("allocations[0].cliffAmount > 1", "allocations[0]", "exists"),
    ] {
        let text = format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = '''{when}'''\n");
        let loaded = load_text(&text);
        let found = loaded.diagnostics.iter().any(|problem| {
            problem.span.clone().is_some_and(|span| text[span].starts_with(covered))
                && problem.help.as_deref().is_some_and(|advice| advice.contains(help))
        });
        assert!(found && !loaded.is_usable(), "{when}: {:#?}", loaded.diagnostics);
    }
}

#[test]
fn warns_about_a_fraction_instead_of_percent() {
    let loaded = load_text("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = \"valueToMarketCap >= 0.02\"\n");
    assert!(loaded.is_usable());
    assert_eq!(loaded.set.rules.len(), 1);
    assert_eq!(loaded.diagnostics[0].severity, DiagnosticLevel::Warning);
    assert_eq!(loaded.diagnostics[0].message, "`valueToMarketCap` is in percent: 0.02 means 0.02 %");
    assert_eq!(loaded.diagnostics[0].help.as_deref(), Some("for 2 % write 2"));
    assert_eq!(load_text("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = \"valueToMarketCap >= 0.5\"\n").diagnostics, []);
}

#[test]
fn rejects_deep_or_long_conditions() {
    for when in [
        format!("{}1{} > 0", "(".repeat(300), ")".repeat(300)),
        format!("{} > 0", vec!["1"; 400].join("+")),
        vec!["cliffValue > 1"; 500].join(" || "),
        format!("{}x", "a.".repeat(480)),
        format!("{}1{} > 0", "[".repeat(60), "]".repeat(60)),
        format!("x{} > 0", "[0]".repeat(300)),
        format!("{}has(cliffValue)", "!(".repeat(200)),
        "cliffValue > 1 ? ".repeat(30) + "true" + &" : false".repeat(30),
    ] {
        let loaded = load_text(&format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = '''{when}'''\n"));
        assert!(loaded.set.rules.len() <= 1 && loaded.diagnostics.len() < 100);
        if when.len() > 300 {
            assert!(!loaded.is_usable(), "{when}");
        }
    }
}

#[test]
fn change_rules_read_old_and_new_records() {
    let token = arb();
    let after = record(Resource::Unlock, CLIFF);
    let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &token.id);
    change.from = Some(Fact::Time(at("2026-03-20")));
    change.to = Some(Fact::Time(at("2026-03-16")));
    change.shift_days = Some(-4.0);
    change.summary = "moved from 20 Mar 2026 to 16 Mar 2026 (-4 days)".into();
    change.old = Some(Record::from_json(Resource::Unlock, r#"{"unlockDate":"2026-03-20T00:00:00Z"}"#).expect("a record"));
    change.new = Some(after.record.clone());
    let scope = Scope { token: Some(&token), change: Some(&change), ..Scope::at(at("2026-03-09")) };
    for when in [
        "change.shiftDays <= -1 && change.to < change.from",
        "change.from == timestamp('2026-03-20') && change.from > now",
        "old.unlockDate > new.unlockDate && unlockDate == new.unlockDate && cliffValue > 1",
        "change.kind == 'rescheduled' && change.count == 1",
    ] {
        assert_eq!(rule_when("unlock.rescheduled", when).evaluate(&scope), Truth::True, "{when}");
    }
    assert_eq!(rule_when("unlock.*", "change.from > 5").evaluate(&scope), Truth::Missing(vec!["change.from"]));
    assert_eq!(rule_when("unlock.*", "change.from > timestamp('2026-01-01')").evaluate(&scope), Truth::True);
    assert_eq!(rule_when("unlock.*", "change.kind in ['rescheduled', 'resized']").evaluate(&scope), Truth::True);
    assert_eq!(rule_when("unlock.rescheduled", "old.cliffValue > 5").evaluate(&scope), Truth::Missing(vec!["old.cliffValue"]));
    let (_, message, _) = condition_problem("unlock.rescheduled", "change.from > 5");
    assert_eq!(message, "a time cannot be compared with a number");
    let (_, _, help) = condition_problem("unlock.*", "change.kind == 'reschedued'");
    assert_eq!(help, "did you mean \"rescheduled\"?");
    let plain = rule("[[rule]]\nalert = \"A\"\non = \"unlock.*\"").render(&scope, None);
    assert_eq!(plain.annotations["summary"], "ARB unlock: moved from 20 Mar 2026 to 16 Mar 2026 (-4 days)");
}

#[test]
fn warns_about_equality_of_amounts() {
    let doubts = |when: &str| {
        let (condition, findings) = crate::condition::Condition::compile(when, crate::On::Record(Resource::Unlock));
        assert!(condition.is_some(), "{when}: {findings:?}");
        findings.first().map(|finding| finding.message.clone())
    };
    assert_eq!(doubts("cliffValue == 5000000").as_deref(), Some("`cliffValue == 5000000` is only true for exactly this value"));
    assert!(doubts("1e6 == cliffAmount").is_some());
    for fine in ["cliffAmount == 0", "cliffValue != 5000000", "cliffValue >= 5000000", "daysUntil == 7"] {
        assert_eq!(doubts(fine), None, "{fine}");
    }
}

#[test]
fn mismatch_names_the_comparison_that_failed_with_its_unit() {
    let token = arb();
    let tracked = record(Resource::Unlock, CLIFF);
    let mismatch = |when: &str| {
        let rule = rule(&format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = '{when}'\n"));
        rule.mismatch(&scope(&token, &tracked)).map(|mismatch| mismatch.text)
    };
    assert_eq!(mismatch("cliffValue >= 50000000"), Some("cliffValue is $33.15M".to_owned()));
    assert_eq!(mismatch("cliffValue > 1 && valueToMarketCap >= 5"), Some("valueToMarketCap is 2.77%".to_owned()));
    assert_eq!(mismatch("cliffValue >= 50000000 || valueToMarketCap >= 5"), Some("cliffValue is $33.15M".to_owned()));
    assert_eq!(mismatch("daysUntil <= 2"), Some("daysUntil is 7 days".to_owned()));
    assert_eq!(mismatch("cliffValue > 1"), None, "the condition is true");
    assert_eq!(mismatch("committedValue > 1"), None, "the condition is unknown");
}

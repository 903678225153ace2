//! Tests the CEL language definition feature by feature: each feature either works as defined, or is rejected with a location and
//! a suggestion.

use super::*;

/// The expected result of a feature.
enum Expected {
    /// True for [`CLIFF`].
    True,
    False,
    /// Neither true nor false, because a value is missing.
    Neither,
    /// Rejected, with this part of the message and this part of the help.
    Refused(&'static str, &'static str),
}

use Expected::{False, Neither, Refused, True};

fn is(section: &str, table: &[(&str, Expected)]) {
    for (when, expected) in table {
        let quoted = serde_json::to_string(when).expect("JSON");
        let loaded = load_text(&format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = {quoted}\n"));
        match expected {
            Refused(message, help) => {
                let found: Vec<_> =
                    loaded.diagnostics.iter().filter(|problem| problem.severity == DiagnosticLevel::Error).collect();
                let fits = |problem: &&&Diagnostic| {
                    problem.message.contains(message) && problem.help.as_deref().unwrap_or_default().contains(help)
                };
                assert!(found.iter().any(|problem| fits(&problem)), "{section}: {when}: {found:#?}");
            }
            _ => {
                assert!(loaded.is_usable(), "{section}: {when}: {:#?}", loaded.diagnostics);
                let (token, record) = (arb(), record(Resource::Unlock, CLIFF));
                let truth = loaded.set.rules[0].evaluate(&scope(&token, &record));
                let fits = match expected {
                    True => truth == Truth::True,
                    False => truth == Truth::False,
                    _ => matches!(truth, Truth::Missing(_)),
                };
                assert!(fits, "{section}: {when}: {truth:?}");
            }
        }
    }
}

#[test]
fn values_and_literals() {
    is(
        "values",
        &[
            ("true && !false", True),
            ("0x10 == 16", True),
            ("1e3 == 1000 && 1.5E-1 == 0.15 && .5 == 0.5", True),
            ("-cliffValue == 0 - cliffValue", True),
            ("5u == 5", Refused("neither a number nor a name", "plain number")),
            ("null == null", Refused("a comparison with null", "has(")),
            ("cliffValue != null", Refused("a comparison with null", "has(cliffValue)")),
            ("b'abc' == b'abc'", Refused("prefix `b`", "plain string")),
            ("r'a' == 'a'", Refused("prefix `r`", "plain string")),
            ("{'a': 1}.a == 1", Refused("maps and objects", "")),
            ("Token{id: 'x'} == 1", Refused("", "")),
            ("[] == []", Refused("empty", "at least one")),
            ("[1, 'a'].size() == 2", Refused("be all numbers or all strings", "two lists")),
            ("9223372036854775808 > 1", Refused("not a valid number", "1e30")),
            ("9223372036854775807 > 9e18", True),
            ("1e400 > 1", Refused("", "")),
        ],
    );
}

#[test]
fn strings_escapes_and_unicode() {
    is(
        "strings",
        &[
            (r#"tokenSymbol == "ARB" && tokenSymbol == 'ARB' && tokenSymbol == """ARB""""#, True),
            (r#"tokenSymbol == "\x41\u0052\102" && tokenSymbol == "\U00000041RB""#, True),
            (r#"tokenSymbol != "A\"B" && tokenSymbol != 'it\'s' && tokenSymbol != "a\\b\n\t\r""#, True),
            (r#"size("日本語 ✓") == 5 && size(tokenSymbol) == 3 && tokenSymbol.size() == 3"#, True),
            (r#""é" != "e\u0301""#, True),
            (r#"tokenSymbol < "B" && tokenSymbol >= "ARA""#, True),
            (
                r#"tokenSymbol.startsWith("A") && tokenSymbol.endsWith("RB") && tokenSymbol.contains("R") && tokenSymbol.contains("")"#,
                True,
            ),
            (r#"tokenSymbol.matches("^[A-Z]{3}$") && tokenSymbol.matches("R") && matches(tokenSymbol, "^A")"#, True),
            (r#"tokenSymbol.matches("(")"#, Refused("invalid pattern", "regular expressions")),
            (r#"tokenSymbol.matches(token.symbol)"#, Refused("requires a quoted pattern", "matches(")),
            (r#"tokenSymbol.matches("(a{500}){500}{500}")"#, Refused("invalid pattern", "")),
            (r#"tokenSymbol + "x" == "ARBx""#, Refused("no arithmetic between a string and a string", "cannot be concatenated")),
            (r#"tokenSymbol.lowerAscii() == "arb""#, Refused("`lowerAscii` is not supported", "cannot be transformed")),
            (r#"startsWith(tokenSymbol, "A")"#, Refused("`startsWith` is not supported", "call it as a method")),
            (r#"tokenSymbol["0"] == "A""#, Refused("cannot be accessed", "exists")),
            (r#"tokenSymbol == "ARB"#, Refused("no closing quote", "add")),
            (r#"tokenSymbol == "\q""#, Refused("", "")),
        ],
    );
}

#[test]
fn logic_and_missing_fields() {
    is(
        "logic",
        &[
            ("cliffValue > 1 || nope > 1", Refused("unknown name `nope`", "")),
            ("linearValue > 1", Neither),
            ("!(linearValue > 1)", Neither),
            ("linearValue > 1 || cliffValue > 1", True),
            ("linearValue > 1 && cliffValue < 1", False),
            ("linearValue > 1 ? true : true", Neither),
            ("has(linearValue) ? linearValue > 1 : cliffValue > 1", True),
            ("(cliffValue > 1 ? 'a' : 'b') == 'a'", True),
            ("cliffValue > 1 ? (tokenSymbol == 'OP' ? false : true) : false", True),
            ("cliffValue < 1 ? false : tokenSymbol == 'OP' ? false : true", True),
            ("cliffValue > 1 ? true ? true : false : false", Refused("unexpected", "")),
            ("(cliffValue > 1 ? 1 : 'a') == 1", Refused("differ in type", "same type")),
            ("cliffValue ? true : false", Refused("not a boolean", "compare it")),
            ("cliffValue", Refused("not a boolean", "> 0")),
            ("has(cliffUnlocks.cliffValue) && has(token.symbol) && !has(linearUnlocks.linearValue)", True),
            ("has(cliffValue + 1)", Refused("requires a field name", "has(cliffValue)")),
            ("cliffValue > 1 and true", Refused("`and` is not an operator", "&&")),
            ("1 < cliffValue < 5", Refused("", "")),
            ("true == (cliffValue > 1) && (cliffValue > 1) != false", True),
            ("true > false", Refused("cannot be compared", "")),
        ],
    );
}

#[test]
fn arithmetic_conversions_and_division() {
    is(
        "arithmetic",
        &[
            ("1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 / 2 == 3.5 && 7 % 4 == 3 && 7.5 % 2 == 1.5", True),
            ("-7 % 4 == -3 && 2 - 3 == -1", True),
            ("1 == 1.0 && cliffAmount == 92650000 && cliffAmount == 92650000.0 && 3 in [3.0]", True),
            ("0.1 + 0.2 == 0.3", False),
            ("cliffValue / 0 > 1e300 && -cliffValue / 0 < -1e300", True),
            ("0 / 0 == 0 || 0 / 0 != 0", Neither),
            ("cliffValue % 0 == 1", Neither),
            ("1e308 * 10 > 1e308 && -1e308 * 10 < -1e308", True),
            ("1e308 * 10 - 1e308 * 10 == 0", Neither),
            ("double(cliffValue) == cliffValue", True),
            ("int(cliffValue) == 1", Refused("`int` is not supported", "all numbers are doubles")),
            ("uint(1) == 1", Refused("`uint` is not supported", "all numbers are doubles")),
            ("string(cliffValue) == '1'", Refused("`string` is not supported", "no conversion is needed")),
            ("type(cliffValue) == double", Refused("`type` is not supported", "when the rule is loaded")),
            ("dyn(cliffValue) == 1", Refused("`dyn` is not supported", "no conversion is needed")),
            ("cliffValue == '5'", Refused("a number cannot be compared with a string", "without quotes: `5`")),
            ("token.symbol > 3", Refused("a string cannot be compared with a number", "in quotes, \"3\"")),
            ("3 < token.symbol", Refused("a number cannot be compared with a string", "in quotes, \"3\"")),
            ("cliffValue > token.symbol", Refused("cannot be compared", "a quoted string")),
            ("min(1, 2, 3) == 1 && max(cliffValue, 1) == cliffValue && abs(-2.5) == 2.5", True),
            ("min(cliffValue) == 1", Refused("wrong number of arguments", "min(cliffValue, linearValue)")),
            ("cliffValue >= 5M", Refused("`5M` is not a number", "5000000")),
            ("cliffValue >= 5_000_000", Refused("underscores", "5000000")),
        ],
    );
}

#[test]
fn lists_and_macros() {
    is(
        "lists",
        &[
            ("tokenSymbol in ['ARB', 'OP'] && !(tokenSymbol in ['OP']) && 2 in [1, 2] && 'portfolio' in token.groups", True),
            ("cliffValue in ['a']", Refused("`in` requires a list of the same type", "")),
            ("'R' in tokenSymbol", Refused("`in` requires a list", "contains")),
            ("'Team' in allocations", Refused("`in` requires a list", "exists")),
            ("allocations.exists(a, a.cliffAmount > 5e7) && !allocations.exists(a, a.cliffAmount > 6e7)", True),
            ("allocations.exists_one(a, a.cliffAmount > 5e7) && allocations.existsOne(a, a.allocationName == 'Investors')", True),
            ("allocations.exists_one(a, a.cliffAmount > 1) || allocations.exists_one(a, a.cliffAmount > 1e9)", False),
            ("allocations.exists_one(a, a.unlockPrecision == 'second')", Neither),
            ("allocations.all(a, a.cliffAmount > 3e7) && allocations.all(a, a.cliffValue > 1 || true)", True),
            ("allocations.filter(a, a.cliffAmount > 5e7).size() == 1 && size(allocations.filter(a, false)) == 0", True),
            ("allocations.filter(a, a.cliffAmount > 5e7).exists(b, b.allocationName.startsWith('Team'))", True),
            ("allocations.map(a, a.cliffAmount / 2).sum() * 2 == cliffAmount", True),
            ("allocations.map(a, a.cliffAmount > 5e7, a.cliffAmount).sum() == 56130000", True),
            ("allocations.map(a, a.cliffValue).sum() > 0", Neither),
            ("allocations.map(a, a.cliffAmount).size() == 2", Refused("has no size", "")),
            ("allocations.map(a, a.allocationName).sum() > 1", Refused("a number is required here", "")),
            ("allocations.exists(a.b, true)", Refused("variable name", "exists(a,")),
            ("allocations.exists(a)", Refused("requires a variable and an expression", "")),
            ("allocations.exists(a, a > 1)", Refused("`a` is an allocation", "allocationName")),
            ("allocations.exists(a, a.cliffAmout > 1)", Refused("no field `cliffAmout`", "cliffAmount")),
            (
                "allocations.exists(a, allocations.exists(b, allocations.exists(c, true)))",
                Refused("nested at most 2 levels", "split"),
            ),
            ("allocations[0].cliffAmount > 1", Refused("cannot be accessed by index", "exists")),
            ("allocations == allocations", Refused("", "")),
            ("exists(allocations, a, true)", Refused("`exists` is not supported", "call it as a method")),
            ("token.groups.exists(g, g == 'portfolio') && token.groups.size() == 1", True),
        ],
    );
}

#[test]
fn times_and_durations() {
    is(
        "times",
        &[
            ("unlockDate == timestamp('2026-03-16') && unlockDate == timestamp('2026-03-16T00:00:00Z')", True),
            ("unlockDate == timestamp('2026-03-16T02:00:00+02:00') && unlockDate > now", True),
            (
                "unlockDate - now == duration('7d') && unlockDate - now == duration('168h') && unlockDate - now <= duration('1w')",
                True,
            ),
            (
                "now + duration('7d') == unlockDate && unlockDate - duration('7d') == now && duration('7d') + now == unlockDate",
                True,
            ),
            (
                "duration('1h30m') == duration('90m') && duration('3600s') == duration('1h') && -duration('1h') == duration('-1h')",
                True,
            ),
            ("duration('1d') + duration('1h') > duration('24h') && duration('1d') - duration('1h') == duration('23h')", True),
            ("unlockDate.getDayOfWeek() == 1 && unlockDate.getFullYear() == 2026 && unlockDate.getMonth() == 2", True),
            ("unlockDate.getDate() == 16 && unlockDate.getDayOfMonth() == 15 && unlockDate.getDayOfYear() == 74", True),
            ("now.getHours() == 0 && now.getMinutes() == 0 && now.getSeconds() == 0", True),
            (
                "(unlockDate - now).getHours() == 168 && duration('90s').getMinutes() == 1 && duration('90s').getSeconds() == 90",
                True,
            ),
            ("(unlockDate - now).getDate() == 1", Refused("a duration, which has no `getDate`", "getDayOfWeek")),
            ("unlockDate.getHours('Europe/Paris') == 1", Refused("always in UTC", "remove the time zone")),
            ("unlockDate.getDayOfweek() == 1", Refused("`getDayOfweek` is not supported", "getDayOfWeek")),
            ("unlockDate > '2026-01-01'", Refused("a time cannot be compared with a string", "timestamp('2026-01-01')")),
            ("timestamp(unlockDate) > now", Refused("requires a quoted string", "need no conversion")),
            ("timestamp('yesterday') < now", Refused("is not a valid time", "2026-01-31")),
            ("timestamp('2026-02-30') < now", Refused("is not a valid time", "2026-01-31")),
            ("duration('soon') > duration('1h')", Refused("not a valid duration", "")),
            ("unlockDate - now < 7", Refused("a duration cannot be compared with a number", "duration(\"7d\")")),
            ("unlockDate + 7 > now", Refused("no arithmetic between a time and a number", "duration(\"7d\")")),
            ("daysUntil <= 7d", Refused("`7d` is not a number", "duration(\"7d\")")),
            // The longest durations are cut at ten thousand years, and exceed every date.
            ("duration('290000000d') == duration('3650000d') && now + duration('3650000d') > now", True),
        ],
    );
}

#[test]
fn names_and_unsupported_syntax() {
    is(
        "names",
        &[
            ("cliffUnlocks.cliffValue == cliffValue", True),
            ("cliffUnlocks > 1", Refused("`cliffUnlocks` is an object", "cliffUnlocks.cliffValue")),
            ("clifValue > 1", Refused("unknown name `clifValue`", "did you mean `cliffValue`?")),
            ("_ > 1", Refused("unknown name `_`", "")),
            ("?cliffValue > 1", Refused("", "")),
            ("cliffUnlocks.?cliffValue == 1", Refused("", "")),
            ("cliffValue > 1 // in USD", True),
            ("cliffValue\n  > 1\n  && true", True),
            ("cliffValue = 1", Refused("`=` is not an operator", "==")),
            ("f(x)", Refused("`f` is not supported", "supported are")),
            ("cel.bind(x, 1, x == 1)", Refused("", "")),
            ("optional.of(1) == 1", Refused("", "")),
        ],
    );
}

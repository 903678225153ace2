//! CEL's language definition, feature by feature: each either works as the definition says, or is refused at its place with what to
//! write instead. Nothing is silently otherwise.

use super::*;

/// What becomes of a feature.
enum Is {
    /// It holds of [`CLIFF`].
    True,
    False,
    /// A field is missing, or nothing can be said of it.
    Neither,
    /// Refused: part of the message, part of the help.
    Refused(&'static str, &'static str),
}

use Is::{False, Neither, Refused, True};

fn is(section: &str, table: &[(&str, Is)]) {
    for (when, expected) in table {
        let quoted = serde_json::to_string(when).expect("JSON");
        let loaded = load_text(&format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = {quoted}\n"));
        match expected {
            Refused(message, help) => {
                let told: Vec<_> = loaded.diagnostics.iter().filter(|problem| problem.severity == Severity::Error).collect();
                let fits = |problem: &&&Diagnostic| {
                    problem.message.contains(message) && problem.help.as_deref().unwrap_or_default().contains(help)
                };
                assert!(told.iter().any(|problem| fits(&problem)), "{section}: {when}: {told:#?}");
            }
            _ => {
                assert!(loaded.is_usable(), "{section}: {when}: {:#?}", loaded.diagnostics);
                let (token, record) = (arb(), record(Resource::Unlock, CLIFF));
                let truth = loaded.set.rules[0].holds(&scope(&token, &record));
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
            ("null == null", Refused("nothing is equal to null", "has(")),
            ("cliffValue != null", Refused("nothing is equal to null", "has(cliffValue)")),
            ("b'abc' == b'abc'", Refused("prefix `b`", "plain text")),
            ("r'a' == 'a'", Refused("prefix `r`", "plain text")),
            ("{'a': 1}.a == 1", Refused("maps and objects", "")),
            ("Token{id: 'x'} == 1", Refused("", "")),
            ("[] == []", Refused("empty", "at least one")),
            ("[1, 'a'].size() == 2", Refused("all be numbers or all be texts", "two lists")),
            ("9223372036854775808 > 1", Refused("no number that can be held", "1e30")),
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
            (r#"tokenSymbol.matches("(")"#, Refused("pattern cannot be used", "regular expressions")),
            (r#"tokenSymbol.matches(token.symbol)"#, Refused("takes a pattern in quotes", "matches(")),
            (r#"tokenSymbol.matches("(a{500}){500}{500}")"#, Refused("pattern cannot be used", "")),
            (r#"tokenSymbol + "x" == "ARBx""#, Refused("no arithmetic between a text and a text", "cannot be joined")),
            (r#"tokenSymbol.lowerAscii() == "arb""#, Refused("`lowerAscii` is not supported", "tested as they are")),
            (r#"startsWith(tokenSymbol, "A")"#, Refused("`startsWith` is not supported", "stands behind")),
            (r#"tokenSymbol["0"] == "A""#, Refused("cannot be picked", "exists")),
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
            ("cliffValue > 1 || nope > 1", Refused("nothing is called `nope`", "")),
            ("linearValue > 1", Neither),
            ("!(linearValue > 1)", Neither),
            ("linearValue > 1 || cliffValue > 1", True),
            ("linearValue > 1 && cliffValue < 1", False),
            ("linearValue > 1 ? true : true", Neither),
            ("has(linearValue) ? linearValue > 1 : cliffValue > 1", True),
            ("(cliffValue > 1 ? 'a' : 'b') == 'a'", True),
            ("cliffValue > 1 ? (tokenSymbol == 'OP' ? false : true) : false", True),
            ("cliffValue < 1 ? false : tokenSymbol == 'OP' ? false : true", True),
            ("cliffValue > 1 ? true ? true : false : false", Refused("was not expected here", "")),
            ("(cliffValue > 1 ? 1 : 'a') == 1", Refused("differ in type", "make both")),
            ("cliffValue ? true : false", Refused("not true or false", "compare it")),
            ("cliffValue", Refused("not true or false", "> 0")),
            ("has(cliffUnlocks.cliffValue) && has(token.symbol) && !has(linearUnlocks.linearValue)", True),
            ("has(cliffValue + 1)", Refused("asks whether one field is there", "has(cliffValue)")),
            ("cliffValue > 1 and true", Refused("`and` is no operator", "&&")),
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
            ("string(cliffValue) == '1'", Refused("`string` is not supported", "nothing to convert")),
            ("type(cliffValue) == double", Refused("`type` is not supported", "when the rule is loaded")),
            ("dyn(cliffValue) == 1", Refused("`dyn` is not supported", "nothing to convert")),
            ("cliffValue == '5'", Refused("a number cannot be compared with a text", "without quotes: `5`")),
            ("token.symbol > 3", Refused("a text cannot be compared with a number", "in quotes, \"3\"")),
            ("3 < token.symbol", Refused("a number cannot be compared with a text", "in quotes, \"3\"")),
            ("cliffValue > token.symbol", Refused("cannot be compared", "a text in quotes")),
            ("min(1, 2, 3) == 1 && max(cliffValue, 1) == cliffValue && abs(-2.5) == 2.5", True),
            ("min(cliffValue) == 1", Refused("wrong number of arguments", "min(cliffValue, linearValue)")),
            ("cliffValue >= 5M", Refused("`5M` is no number", "5000000")),
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
            ("cliffValue in ['a']", Refused("`in` needs a list of the same type", "")),
            ("'R' in tokenSymbol", Refused("`in` needs a list", "contains")),
            ("'Team' in allocations", Refused("`in` needs a list", "exists")),
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
            ("allocations.map(a, a.allocationName).sum() > 1", Refused("a number is needed here", "")),
            ("allocations.exists(a.b, true)", Refused("plain name", "exists(a")),
            ("allocations.exists(a)", Refused("takes a name and a condition", "")),
            ("allocations.exists(a, a > 1)", Refused("`a` is an allocation", "allocationName")),
            ("allocations.exists(a, a.cliffAmout > 1)", Refused("no field `cliffAmout`", "cliffAmount")),
            ("allocations.exists(a, allocations.exists(b, allocations.exists(c, true)))", Refused("nested 2 deep", "split")),
            ("allocations[0].cliffAmount > 1", Refused("cannot be picked by number", "exists")),
            ("allocations == allocations", Refused("", "")),
            ("exists(allocations, a, true)", Refused("`exists` is not supported", "stands behind")),
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
            ("unlockDate.getHours('Europe/Paris') == 1", Refused("read in UTC", "leave the zone out")),
            ("unlockDate.getDayOfweek() == 1", Refused("`getDayOfweek` is not supported", "getDayOfWeek")),
            ("unlockDate > '2026-01-01'", Refused("a time cannot be compared with a text", "timestamp('2026-01-01')")),
            ("timestamp(unlockDate) > now", Refused("takes a text in quotes", "times already")),
            ("timestamp('yesterday') < now", Refused("is no time", "2026-01-31")),
            ("timestamp('2026-02-30') < now", Refused("is no time", "2026-01-31")),
            ("duration('soon') > duration('1h')", Refused("no length of time", "")),
            ("unlockDate - now < 7", Refused("a duration cannot be compared with a number", "duration(\"7d\")")),
            ("unlockDate + 7 > now", Refused("no arithmetic between a time and a number", "duration(\"7d\")")),
            ("daysUntil <= 7d", Refused("`7d` is no number", "duration(\"7d\")")),
            // The longest are cut at ten thousand years, and added to no end.
            ("duration('290000000d') == duration('3650000d') && now + duration('3650000d') > now", True),
        ],
    );
}

#[test]
fn names_and_what_is_none_of_it() {
    is(
        "names",
        &[
            ("cliffUnlocks.cliffValue == cliffValue", True),
            ("cliffUnlocks > 1", Refused("`cliffUnlocks` is an object", "cliffUnlocks.cliffValue")),
            ("clifValue > 1", Refused("nothing is called `clifValue`", "did you mean `cliffValue`?")),
            ("_ > 1", Refused("nothing is called `_`", "")),
            ("?cliffValue > 1", Refused("", "")),
            ("cliffUnlocks.?cliffValue == 1", Refused("", "")),
            ("cliffValue > 1 // in USD", True),
            ("cliffValue\n  > 1\n  && true", True),
            ("cliffValue = 1", Refused("`=` is no operator", "==")),
            ("f(x)", Refused("`f` is not supported", "supported are")),
            ("cel.bind(x, 1, x == 1)", Refused("", "")),
            ("optional.of(1) == 1", Refused("", "")),
        ],
    );
}

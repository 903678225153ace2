mod language;
mod spec;

use std::{collections::BTreeMap, path::PathBuf};

use proptest::prelude::*;

use super::*;
use crate::{
    change::{AllocationChange, Fact},
    diagnostic::{Diagnostic, Severity, SourceText},
    supply::{RecordKey, TokenId},
    wire,
};

fn at(text: &str) -> Timestamp {
    wire::parse_timestamp(text).expect("a time")
}

fn groups() -> BTreeMap<String, Vec<String>> {
    BTreeMap::from([("portfolio".to_owned(), vec!["arbitrum".to_owned()])])
}

fn load_text(text: &str) -> Loaded {
    load_files(&[("rules/test.toml", text)])
}

fn load_files(files: &[(&str, &str)]) -> Loaded {
    let files: Vec<SourceText> =
        files.iter().map(|(file, text)| SourceText { file: PathBuf::from(file), text: (*text).to_owned() }).collect();
    let receivers = ["ops".to_owned(), "desk".to_owned()];
    load(&files, &Surroundings { receivers: &receivers, groups: &groups(), now: at("2026-03-09") })
}

/// The one problem of a text: what the caret covers, the message and the help.
fn only_problem(text: &str) -> (String, String, String) {
    let loaded = load_text(text);
    assert_eq!(loaded.diagnostics.len(), 1, "{:#?}", loaded.diagnostics);
    let problem = &loaded.diagnostics[0];
    let covered = problem.span.clone().map(|span| text[span].to_owned()).unwrap_or_default();
    (covered, problem.message.clone(), problem.help.clone().unwrap_or_default())
}

/// The one problem of a condition of a rule on `on`.
fn condition_problem(on: &str, when: &str) -> (String, String, String) {
    only_problem(&format!("[[rule]]\nalert = \"A\"\non = \"{on}\"\nwhen = '''{when}'''\n"))
}

fn rule(text: &str) -> Rule {
    let loaded = load_text(text);
    assert!(loaded.is_usable(), "{:#?}", loaded.diagnostics);
    loaded.set.rules.into_iter().next().expect("a rule")
}

fn rule_when(on: &str, when: &str) -> Rule {
    rule(&format!("[[rule]]\nalert = \"A\"\non = \"{on}\"\nwhen = '''{when}'''\n"))
}

fn record(resource: Resource, json: &str) -> Tracked {
    Tracked { key: RecordKey::from("k"), record: Record::from_json(resource, json).expect("a record") }
}

fn arb() -> Token {
    let mut token = Token::unknown(TokenId::from("arbitrum"));
    token.item = serde_json::from_str(r#"{"id":"arbitrum","name":"Arbitrum","symbol":"ARB","marketCap":1200000000,"circulatingSupply":4000000000,"listedMethod":"INTERNAL"}"#).expect("a token");
    token.groups = std::sync::Arc::from(["portfolio".to_owned()]);
    token
}

const CLIFF: &str = r#"{"unlockDate":"2026-03-16T00:00:00Z","tokenSymbol":"ARB","listedMethod":"AI","cliffUnlocks":{"cliffAmount":92650000,"cliffValue":33150000,
    "valueToMarketCap":2.77,"allocationBreakdown":[
    {"allocationName":"Team + Advisors","standardAllocationName":"Founder / Team","cliffAmount":56130000,"unlockPrecision":"second"},
    {"allocationName":"Investors","standardAllocationName":"Private Investors","cliffAmount":36520000}]}}"#;

fn scope<'a>(token: &'a Token, record: &'a Tracked) -> Scope<'a> {
    Scope {
        token: Some(token),
        record: Some(record),
        change: None,
        source: None,
        totals: None,
        lead: None,
        now: at("2026-03-09"),
    }
}

fn truth(when: &str, json: &str) -> Truth {
    let (token, record) = (arb(), record(Resource::Unlock, json));
    rule_when("unlock", when).holds(&scope(&token, &record))
}

fn holds(when: &str) -> bool {
    match truth(when, CLIFF) {
        Truth::True => true,
        Truth::False => false,
        Truth::Missing(names) => panic!("{when}: {names:?} are missing"),
    }
}

fn starters() -> Vec<(&'static str, &'static str)> {
    vec![
        ("rules/unlocks.toml", include_str!("../../rules/unlocks.toml")),
        ("rules/changes.toml", include_str!("../../rules/changes.toml")),
        ("rules/supply.toml", include_str!("../../rules/supply.toml")),
    ]
}

#[test]
fn the_starter_rules_load_without_a_warning() {
    let loaded = load_files(&starters());
    assert_eq!(loaded.diagnostics, Vec::<Diagnostic>::new());
    assert!(loaded.set.rules.len() >= 10);
}

#[test]
fn the_starter_rules_tell_a_big_cliff_in_one_line() {
    let loaded = load_files(&starters());
    let big = loaded.set.rules.iter().find(|rule| rule.name == "BigCliffAhead").expect("the rule");
    let (token, record) = (arb(), record(Resource::Unlock, CLIFF));
    let scope = scope(&token, &record);
    assert_eq!(big.within.iter().map(|lead| lead.text.as_str()).collect::<Vec<_>>(), ["30d", "7d", "1d"]);
    assert_eq!(big.holds(&scope), Truth::True);
    assert_eq!(big.level(&scope), Some(0));
    let rendered = big.render(&scope, big.level(&scope));
    assert_eq!(rendered.error, None);
    assert_eq!(rendered.labels.get("severity").map(String::as_str), Some("warning"));
    assert_eq!(rendered.annotations["summary"], "ARB: $33.15M (2.77% of market cap) to unlock on 16 Mar 2026");
    assert_eq!(rendered.annotations["description"], "92.65M ARB for Team + Advisors (56.13M), Investors (36.52M).");
    let insiders = loaded.set.rules.iter().find(|rule| rule.name == "InsiderUnlockAhead").expect("the rule");
    assert_eq!(insiders.holds(&scope), Truth::True);
}

#[test]
fn conditions_read_the_record_the_token_and_the_clock() {
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
fn a_missing_field_is_neither_true_nor_false_and_is_named() {
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
    assert_eq!(fires.holds(&scope(&token, &record)), Truth::True);
}

#[test]
fn missing_clears_nothing() {
    let rule = rule("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = \"cliffValue >= 5\"\nclear_when = \"cliffValue < 3\"\n");
    let token = arb();
    let clears = |json: &str| rule.clears(&scope(&token, &record(Resource::Unlock, json)));
    assert!(!clears("{}"));
    assert!(!clears(r#"{"cliffUnlocks":{"cliffValue":4}}"#));
    assert!(clears(r#"{"cliffUnlocks":{"cliffValue":2}}"#));
    assert!(!rule_when("unlock", "cliffValue >= 5").clears(&scope(&token, &record(Resource::Unlock, "{}"))));
}

#[test]
fn a_wrong_name_is_answered_at_its_place_with_the_right_one() {
    let (covered, message, help) = condition_problem("unlock", "daysUntil < 7 && cliffVale >= 5");
    assert_eq!(
        (covered.as_str(), message.as_str(), help.as_str()),
        ("cliffVale", "nothing is called `cliffVale`", "did you mean `cliffValue`?")
    );
    let (covered, _, help) = condition_problem("unlock", "token . sybol == \"ARB\"");
    assert_eq!((covered.as_str(), help.as_str()), ("token . sybol", "did you mean `token.symbol`?"));
    let (covered, _, help) = condition_problem("unlock", "allocations.exists(a, a.cliffAmout > 1)");
    assert_eq!((covered.as_str(), help.as_str()), ("a.cliffAmout", "did you mean `a.cliffAmount`?"));
    let (_, message, help) = condition_problem("burn", "cliffValue > 1");
    assert_eq!(
        (message.as_str(), help.as_str()),
        ("`cliffValue` is not known here", "`cliffValue` is a field of `unlock` records; this rule listens to `burn`")
    );
    let (_, _, help) = condition_problem("unlock", "change.shiftDays > 1");
    assert!(help.contains("rules on changes only"), "{help}");
    let (_, message, _) = condition_problem("unlock", "token == \"ARB\"");
    assert_eq!(message, "`token` is an object");
    let (covered, _, _) = condition_problem("unlock", "tokenName == \"Größe\" && cliffVale > 1");
    assert_eq!(covered, "cliffVale");
}

#[test]
fn types_that_do_not_fit_are_named_with_their_place() {
    for (when, covered, message, help) in [
        (
            "cliffValue >= \"5000000\"",
            "cliffValue >= \"5000000\"",
            "a number cannot be compared with a text",
            "write the number without quotes: `5000000`",
        ),
        ("tokenName > 5", "tokenName > 5", "a text cannot be compared with a number", ""),
        (
            "unlockDate > \"2026-01-01\"",
            "unlockDate > \"2026-01-01\"",
            "a time cannot be compared with a text",
            "write the time as `timestamp(\"2026-01-01\")`",
        ),
        ("cliffValue", "cliffValue", "`cliffValue` is a number, not true or false", "compare it: `cliffValue > 0`"),
        ("cliffValue + tokenName > 5", "cliffValue + tokenName", "there is no arithmetic between a number and a text", ""),
        ("allocations > 5", "allocations > 5", "a list of allocations cannot be compared with a number", ""),
        (
            "cliffValue == null",
            "cliffValue == null",
            "nothing is equal to null here: a missing field is neither true nor false",
            "write `!has(cliffValue)`",
        ),
        ("cliffValue in [1, \"a\"]", "\"a\"", "the items of a list must all be numbers or all be texts", ""),
        ("unlockDate - now < 7", "unlockDate - now < 7", "a duration cannot be compared with a number", "duration(\"7d\")"),
        (
            "\"ARB\" in tokenName",
            "\"ARB\" in tokenName",
            "`in` needs a list of the same type: here stand a text and a text",
            "write `tokenName.contains(\"ARB\")`",
        ),
    ] {
        let (at, text, advice) = condition_problem("unlock", when);
        assert_eq!((at.as_str(), text.as_str()), (covered, message), "{when}");
        assert!(advice.contains(help), "{when}: {advice}");
    }
}

#[test]
fn common_slips_are_answered_with_what_to_write() {
    for (when, covered, help) in [
        ("cliffValue > 5 and daysUntil < 7", "and", "write `&&`"),
        ("cliffValue > 5 or daysUntil < 7", "or", "write `||`"),
        ("not has(cliffValue)", "not", "write `!`"),
        ("cliffValue = 5", "=", "write `==`"),
        ("cliffValue >= 5M", "5M", "write `5000000`"),
        ("cliffValue >= 2.5bn", "2.5bn", "write `2500000000`"),
        ("cliffValue >= 5_000_000", "5_000_000", "write `5000000`"),
        ("valueToMarketCap > 50%", "%", "leave it out"),
        ("daysUntil < 7d", "7d", "duration(\"7d\")"),
        ("cliffValue => 5", "=>", "write `>=`"),
        ("cliffValue > 5 & daysUntil < 7", "&", "write `&&`"),
        ("(cliffValue > 5", "(", "add `)`"),
        ("cliffValue > 5)", ")", "remove it"),
        ("tokenName == \"ARB", "\"ARB", "add `\"`"),
        ("cliffValue >", ">", "something must follow"),
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
fn a_fraction_where_percent_is_meant_is_a_warning() {
    let loaded = load_text("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = \"valueToMarketCap >= 0.02\"\n");
    assert!(loaded.is_usable());
    assert_eq!(loaded.set.rules.len(), 1);
    assert_eq!(loaded.diagnostics[0].severity, Severity::Warning);
    assert_eq!(loaded.diagnostics[0].message, "`valueToMarketCap` is in percent: 0.02 means 0.02 %");
    assert_eq!(loaded.diagnostics[0].help.as_deref(), Some("for 2 % write 2"));
    assert_eq!(load_text("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = \"valueToMarketCap >= 0.5\"\n").diagnostics, []);
}

#[test]
fn deep_or_long_conditions_are_refused_politely() {
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
fn every_problem_of_every_file_is_reported_together() {
    let loaded = load_files(&[
        (
            "a.toml",
            "[[rule]]\nalert = \"A\"\non = \"unlok\"\nseverity = \"x\"\n[[rule]]\non = \"burn\"\nwithin = \"7d\"\n[[rule]]\nalert=\"D\"\non=\"unlock\"\nwhen=\"x > 1 && y < 2\"\n",
        ),
        ("b.toml", "this is = = no toml"),
        ("c.toml", "[[rule]]\nalert = \"C\"\non = \"burn\"\nreceivers = [\"opps\"]\ntokens = [\"@portfolo\"]\nlimit = 0\n"),
    ]);
    let messages: Vec<&str> = loaded.diagnostics.iter().map(|problem| problem.message.as_str()).collect();
    for expected in [
        "unknown key `severity` in this rule",
        "nothing is called `unlok`",
        "this rule has no `alert`",
        "nothing is called `x`",
        "nothing is called `y`",
        "there is no receiver \"opps\"",
        "there is no group `portfolo`",
        "`limit` is a whole number from 1 to 100000",
    ] {
        assert!(messages.contains(&expected), "{expected}: {messages:#?}");
    }
    assert!(loaded.diagnostics.iter().any(|problem| problem.file.as_path() == std::path::Path::new("b.toml")));
}

#[test]
fn keys_that_mean_nothing_for_a_rule_are_refused() {
    for (text, name) in [
        ("on = \"unlock.rescheduled\"\nwithin = \"7d\"", "within"),
        ("on = \"burn\"\nwithin = \"7d\"", "within"),
        ("on = \"unlock\"\nsince = \"7d\"", "since"),
        ("on = \"burn\"\nfor = \"1h\"", "for"),
        ("on = \"unlock.*\"\nkeep_firing_for = \"1h\"", "keep_firing_for"),
        ("on = \"burn\"\nallocations = [\"Team\"]", "allocations"),
        ("on = \"source\"\nlisted_methods = [\"AI\"]", "listed_methods"),
    ] {
        let (covered, message, _) = only_problem(&format!("[[rule]]\nalert = \"A\"\n{text}\n"));
        assert_eq!(covered, name);
        assert!(message.contains("has no meaning here"), "{message}");
    }
}

#[test]
fn what_a_rule_listens_to_is_checked() {
    for (on, message, help) in [
        ("unlock.rescheduld", "no change is called `rescheduld`", "did you mean `unlock.rescheduled`?"),
        ("burn.rescheduled", "`rescheduled` cannot happen to `burn` records", "added, removed, revised"),
        ("burns", "nothing is called `burns`", "did you mean `burn`?"),
        ("portfoli", "nothing is called `portfoli`", "did you mean `portfolio`?"),
    ] {
        let (_, text, advice) = only_problem(&format!("[[rule]]\nalert = \"A\"\non = \"{on}\"\n"));
        assert_eq!(text, message);
        assert!(advice.contains(help), "{advice}");
    }
    assert_eq!(rule("[[rule]]\nalert = \"A\"\non = \"unlock.*\"").on, On::Change(Resource::Unlock, None));
    assert_eq!(rule("[[rule]]\nalert = \"A\"\non = \"source\"").on, On::Source);
}

#[test]
fn two_rules_of_one_name_need_ids() {
    let twice = "[[rule]]\nalert = \"A\"\non = \"burn\"\n[[rule]]\nalert = \"A\"\non = \"buyback\"\n";
    let (_, message, _) = only_problem(twice);
    assert_eq!(message, "there is a rule `A` already, at rules/test.toml:2");
    let told_apart = load_text(&twice.replacen("on =", "id = \"a1\"\non =", 1));
    assert!(told_apart.is_usable());
    assert_eq!(told_apart.set.rules[0].id, RuleId::from("a1"));
    assert_eq!(told_apart.set.rules[0].name, "A");
}

#[test]
fn the_caret_finds_its_place_between_escapes() {
    let rule = |when: &str| format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = {when}\n");
    for (when, covered) in [
        (r#""tokenName == \"x\" && nope""#, "nope"),
        (r#""nope && tokenName == \"x\"""#, "nope"),
        (r#""tokenName == \"\u00e9\\n\U0001F600\" && nope > 1""#, "nope"),
        ("\"\"\"\n  daysUntil < 7\n  && nope > 1\"\"\"", "nope"),
        ("\"\"\"\r\n  daysUntil < 7 \\\n     && \\\\nope\"\"\"", "\\\\"),
    ] {
        assert_eq!(only_problem(&rule(when)).0, covered, "{when}");
    }
    // Two slips between escapes are two problems.
    let loaded = load_text(&rule(r#""cliffValue == \"5\" || valueToMarketCap == \"5\"""#));
    assert_eq!(loaded.diagnostics.len(), 2, "{:#?}", loaded.diagnostics);
    assert_ne!(loaded.diagnostics[0].span, loaded.diagnostics[1].span);
}

#[test]
fn lengths_dates_and_flags_are_read() {
    let rule = rule(
        "[[rule]]\nalert = \"A\"\non = \"unlock\"\nwithin = [\"1d\", \"90m\", \"2w\"]\nfor = \"1h\"\nkeep_firing_for = \"2h\"\nowner = \"desk\"\n\
         expires = 2026-12-31\nreceivers = [\"ops\"]\nlimit = 5\nwhen = \"daysUntil < 3\"\n",
    );
    assert_eq!(rule.within.iter().map(|lead| lead.text.as_str()).collect::<Vec<_>>(), ["2w", "1d", "90m"]);
    assert_eq!((rule.hold, rule.keep_firing_for), (TimeDelta::hours(1), TimeDelta::hours(2)));
    assert_eq!((rule.expires, rule.limit, rule.owner.as_deref()), (Some(at("2026-12-31")), Some(5), Some("desk")));
    assert_eq!(rule.receivers, [ReceiverName::from("ops")]);
    assert_eq!((rule.is_clock_dependent, rule.edges.as_slice()), (false, &[3.0][..]));
    assert!(rule_when("unlock", "unlockDate - now < duration('3d')").is_clock_dependent);
    assert!(!rule_when("unlock", "cliffValue > 1").is_clock_dependent);
    assert_eq!(rule_when("burn", "value > 1").since, TimeDelta::days(7));
    assert!(load_text("[[rule]]\nalert = \"A\"\non = \"unlock\"\nenabled = false\n").set.rules.is_empty());
    let expired = load_text("[[rule]]\nalert = \"A\"\non = \"unlock\"\nexpires = \"2026-01-01\"\n");
    assert_eq!(expired.diagnostics[0].severity, Severity::Warning);
}

#[test]
fn filters_let_in_what_they_name() {
    let (token, record) = (arb(), record(Resource::Unlock, CLIFF));
    let scope = scope(&token, &record);
    let covers = |filter: &str| rule(&format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\n{filter}\n")).covers(&scope);
    assert!(covers(""));
    assert!(covers("tokens = [\"arb*\"]") && covers("tokens = [\"@portfolio\", \"x\"]") && !covers("tokens = [\"aptos\"]"));
    assert!(covers("listed_methods = [\"AI\"]") && !covers("listed_methods = [\"INTERNAL\"]"));
    assert!(
        covers("allocations = [\"Investors\"]")
            && covers("allocations = [\"founder*\"]")
            && !covers("allocations = [\"Treasury\"]")
    );
    let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &token.id);
    change.allocations = vec![AllocationChange { name: "Investors".into(), ..Default::default() }];
    let changed = Scope { change: Some(&change), ..scope };
    let hears =
        |glob: &str| rule(&format!("[[rule]]\nalert = \"A\"\non = \"unlock.*\"\nallocations = [\"{glob}\"]\n")).covers(&changed);
    assert!(hears("Investors") && hears("Private*") && !hears("Founder*"));
}

#[test]
fn rules_on_changes_read_before_and_after() {
    let token = arb();
    let after = record(Resource::Unlock, CLIFF);
    let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &token.id);
    change.from = Some(Fact::Time(at("2026-03-20")));
    change.to = Some(Fact::Time(at("2026-03-16")));
    change.shift_days = Some(-4.0);
    change.summary = "moved from 20 Mar 2026 to 16 Mar 2026 (-4 days)".into();
    change.old = Some(Record::from_json(Resource::Unlock, r#"{"unlockDate":"2026-03-20T00:00:00Z"}"#).expect("a record"));
    change.new = Some(after.record.clone());
    let scope = Scope {
        token: Some(&token),
        record: None,
        change: Some(&change),
        source: None,
        totals: None,
        lead: None,
        now: at("2026-03-09"),
    };
    for when in [
        "change.shiftDays <= -1 && change.to < change.from",
        "change.from == timestamp('2026-03-20') && change.from > now",
        "old.unlockDate > new.unlockDate && unlockDate == new.unlockDate && cliffValue > 1",
        "change.kind == 'rescheduled' && change.count == 1",
    ] {
        assert_eq!(rule_when("unlock.rescheduled", when).holds(&scope), Truth::True, "{when}");
    }
    assert_eq!(rule_when("unlock.*", "change.from > 5").holds(&scope), Truth::Missing(vec!["change.from"]));
    assert_eq!(rule_when("unlock.*", "change.from > timestamp('2026-01-01')").holds(&scope), Truth::True);
    assert_eq!(rule_when("unlock.*", "change.kind in ['rescheduled', 'resized']").holds(&scope), Truth::True);
    assert_eq!(rule_when("unlock.rescheduled", "old.cliffValue > 5").holds(&scope), Truth::Missing(vec!["old.cliffValue"]));
    let (_, message, _) = condition_problem("unlock.rescheduled", "change.from > 5");
    assert_eq!(message, "a time cannot be compared with a number");
    let (_, _, help) = condition_problem("unlock.*", "change.kind == 'reschedued'");
    assert_eq!(help, "did you mean \"rescheduled\"?");
    let plain = rule("[[rule]]\nalert = \"A\"\non = \"unlock.*\"").render(&scope, None);
    assert_eq!(plain.annotations["summary"], "ARB unlock: moved from 20 Mar 2026 to 16 Mar 2026 (-4 days)");
}

#[test]
fn templates_are_checked_at_load() {
    let template = |text: &str| format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\n[rule.annotations]\nsummary = '''{text}'''\n");
    for (text, covered, message, help) in [
        ("{{ cliffVale | usd }}", "cliffVale", "nothing is called `cliffVale`", "did you mean `cliffValue`?"),
        ("{{ token.sybol }}", "token.sybol", "nothing is called `token.sybol`", "did you mean `token.symbol`?"),
        ("{{ cliffValue | uds }}", "uds", "there is no filter `uds`", "did you mean `usd`?"),
        ("{% if cliffValue %}{{ x.y }}{% endif %}", "x.y", "nothing is called `x.y`", ""),
        ("{{ change.kind }}", "change.kind", "`change.kind` is not known here", "rules on changes only"),
    ] {
        let (at, told, advice) = only_problem(&template(text));
        assert_eq!((at.as_str(), told.as_str()), (covered, message), "{text}");
        assert!(advice.contains(help), "{text}: {advice}");
    }
    for (text, severity) in [
        ("{{ cliffValue ", Severity::Error),
        ("{% for a in allocations %}{{ a.nope }}{% endfor %}", Severity::Error),
        ("{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}", Severity::Error),
        ("{{ 'x' * 20000 }}", Severity::Error),
        ("{{ tokenName | usd }}", Severity::Error),
        ("{{ cliffValue / 1000 }}", Severity::Warning),
    ] {
        let loaded = load_text(&template(text));
        assert_eq!(
            loaded.diagnostics.iter().map(|problem| problem.severity).collect::<Vec<_>>(),
            [severity],
            "{text}: {:#?}",
            loaded.diagnostics
        );
    }
    for text in [
        "{{ cliffValue | default(0) | usd }}",
        "{% if linearValue is not none %}{{ linearValue / 2 }}{% endif %}",
        "{{ record | json }}",
        "{{ allocations | length if allocations else 0 }}",
    ] {
        assert_eq!(load_text(&template(text)).diagnostics, [], "{text}");
    }
}

#[test]
fn missing_fields_read_unknown_and_source_text_loses_its_control_characters() {
    let rule = rule(
        "[[rule]]\nalert = \"A\"\non = \"unlock\"\nlabels = { name = \"{{ tokenName }}\" }\n[rule.annotations]\nsummary = '{{ cliffValue | usd }} {{ tokenName }} {{ unlockDate }} {{ daysUntil | days }} {{ labels.name }}'\n",
    );
    let (token, record) =
        (arb(), record(Resource::Unlock, r#"{"unlockDate":"2026-03-16T00:00:00Z","tokenName":"A\u001b[31m\r\nB<b>\u202e"}"#));
    let rendered = rule.render(&scope(&token, &record), None);
    assert_eq!(rendered.annotations["summary"], "unknown A[31m\nB<b> 2026-03-16T00:00:00Z 7 days A[31m B<b>");
    assert_eq!(rendered.labels["name"], "A[31m B<b>");
    assert_eq!((rendered.labels["alertname"].as_str(), rendered.labels["token"].as_str()), ("A", "arbitrum"));
}

#[test]
fn a_template_that_fails_at_run_time_leaves_the_built_in_text() {
    let rule = rule(
        "[[rule]]\nalert = \"A\"\non = \"unlock\"\n[rule.annotations]\nsummary = '{{ cliffValue / 1000 }} {{ token.name }}'\nother = 'fine'\n",
    );
    let (token, record) = (arb(), record(Resource::Unlock, r#"{"unlockDate":"2026-03-16T00:00:00Z"}"#));
    let rendered = rule.render(&scope(&token, &record), None);
    assert_eq!(rendered.annotations["summary"], "ARB: an unknown amount unlocks on 16 Mar 2026 (in 7 days)");
    assert_eq!(rendered.annotations["other"], "fine");
    let error = rendered.error.expect("an error");
    assert!(error.starts_with("rule A: annotation `summary`: "), "{error}");
    assert_eq!(rendered.annotations["template_error"], error);
}

#[test]
fn built_in_summaries_read_well() {
    let token = arb();
    let told = |resource, json: &str| built_in_summary(&scope(&token, &record(resource, json)));
    assert_eq!(told(Resource::Unlock, CLIFF), "ARB: $33.15M (2.77% of market cap) unlocks on 16 Mar 2026 (in 7 days)");
    let month = r#"{"unlockDate":"2026-04-01T00:00:00Z","cliffUnlocks":{"cliffAmount":1000000000,"allocationBreakdown":[{"unlockPrecision":"month"}]}}"#;
    assert_eq!(told(Resource::Unlock, month), "ARB: 1.00B tokens unlock in April 2026");
    assert_eq!(told(Resource::Unlock, "{}"), "ARB: an unknown amount unlocks at a date to be determined");
    assert_eq!(
        told(Resource::Burn, r#"{"burnDate":"2026-03-01T00:00:00Z","value":5250000,"burnEventLabel":"Q1 burn"}"#),
        "ARB: $5.25M burned on 1 Mar 2026 (Q1 burn)"
    );
    assert_eq!(
        told(Resource::Buyback, r#"{"buybackDate":"2026-03-01T00:00:00Z","tokenAmount":5250}"#),
        "ARB: 5.25K tokens bought back on 1 Mar 2026"
    );
    assert_eq!(
        told(
            Resource::Funding,
            r#"{"roundName":"Series B","fundingDate":"2026-03-01T00:00:00Z","totalAmountRaisedinThatRound":120000000}"#
        ),
        "ARB: Series B: $120.00M raised on 1 Mar 2026"
    );
    let source = SourceFacts {
        kind: "unreachable".into(),
        endpoint: None,
        receiver: None,
        message: "the API\ncannot be reached".into(),
        count: 1,
        since: at("2026-03-09"),
    };
    assert_eq!(
        built_in_summary(&Scope {
            token: None,
            record: None,
            change: None,
            source: Some(&source),
            totals: None,
            lead: None,
            now: at("2026-03-09")
        }),
        "the API cannot be reached"
    );
}

#[test]
fn names_and_labels_are_bounded() {
    for (text, message) in [
        ("[[rule]]\nalert = \"\"\non = \"burn\"\n", "a name has 1 to"),
        ("[[rule]]\nalert = \"A\"\non = \"burn\"\nlabels = { token = \"x\" }\n", "is set for every alert"),
        ("[[rule]]\nalert = \"A\"\non = \"burn\"\nlabels = { \"a-b\" = \"x\" }\n", "cannot be a name"),
        ("[[rule]]\nalert = \"A\"\non = \"burn\"\nlabels = { a = 1 }\n", "`labels.a` is a number"),
        ("[rule]\nalert = \"A\"\n", "`rule` is a list of tables"),
        ("alert = \"A\"\n", "unknown key `alert`"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwithin = [\"7d\", \"1w\"]\n", "is there twice"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwithin = \"soon\"\n", "is no length of time"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\n[[rule.level]]\nlabels = { a = \"b\" }\n", "this level has no `when`"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\nmissing = \"maybe\"\n", "is not known"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\ntokens = []\n", "`tokens` lets nothing in"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\ntokens = [\"[\"]\n", "this pattern cannot be used"),
    ] {
        let (_, told, _) = only_problem(text);
        assert!(told.contains(message), "{text}: {told}");
    }
}

#[test]
fn files_are_found_by_pattern_sorted_and_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("rules/tests")).expect("folders");
    for name in ["rules/b.toml", "rules/a.toml", "rules/tests/t.toml", "rules/c.txt"] {
        std::fs::write(path(name), "# nothing\n").expect("a file");
    }
    std::fs::write(path("rules/z.toml"), vec![b'#'; 2 << 20]).expect("a file");
    std::fs::write(path("rules/y.toml"), [0xff, 0xfe]).expect("a file");
    let read = read_files(&["rules/*.toml".into(), "rules/a.toml".into(), "none/*.toml".into()], folder.path());
    assert_eq!(read.files.iter().map(|file| file.file.clone()).collect::<Vec<_>>(), [path("rules/a.toml"), path("rules/b.toml")]);
    let told: Vec<(Severity, String)> =
        read.diagnostics.iter().map(|problem| (problem.severity, problem.message.clone())).collect();
    assert_eq!(told.len(), 3, "{told:#?}");
    assert_eq!(told[0], (Severity::Warning, "no rule file matches \"none/*.toml\"".into()));
    assert!(told[1].1.contains("not UTF-8") && told[2].1.contains("larger than"), "{told:#?}");
    let deep = read_files(&["rules/**/*.toml".into()], folder.path());
    assert!(deep.files.iter().any(|file| file.file == path("rules/tests/t.toml")));
    // An absolute pattern, seen from a folder that lies deeper than what it matches.
    let absolute = path("rules/t*/*.toml").to_string_lossy().into_owned();
    let far = read_files(&[absolute], &path("some/where/else/altogether/and/deeper"));
    assert_eq!(far.files.iter().map(|file| file.file.clone()).collect::<Vec<_>>(), [path("rules/tests/t.toml")]);
}

/// A condition over doubles that both this program and the interpreter understand.
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

/// A condition over the items of a list.
fn over_items() -> impl Strategy<Value = String> {
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
    prop_oneof![4 => compare, 1 => text, 2 => over_items()].prop_recursive(3, 12, 3, |inner| {
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
    fn lowered_conditions_agree_with_the_interpreter(when in predicate(), value in -1e9..1e9_f64, amount in -50..50_i32, ratio in 0..10_i32, name in "[abc]{0,3}",
        parts in prop::collection::vec((-20..20_i32, -20..20_i32), 0..4)) {
        prop_assume!(when.len() <= lint::MAX_CONDITION);
        let (condition, findings) = condition::compile(&when, On::Record(Resource::Unlock));
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
            // Of 0 / 0 nothing can be told here; there it is an error, except that it equals nothing.
            (Truth::Missing(names), theirs) => {
                prop_assert_eq!(&names, &["(0 / 0)"]);
                prop_assert!(theirs.is_err() || when.contains("==") || when.contains("!="), "{}: {:?}", when, theirs);
            }
            (ours, Err(error)) => prop_assert!(false, "{when}: {ours:?}, {error}"),
        }
    }

    #[test]
    fn no_text_as_a_condition_panics(when in "\\PC{0,200}") {
        let _ = condition::compile(&when, On::Record(Resource::Unlock));
    }

    #[test]
    fn no_soup_of_tokens_as_a_condition_panics(tokens in prop::collection::vec(prop::sample::select(vec![
        "cliffValue", "allocations", "token", ".", "(", ")", "[", "]", "{", "}", "&&", "||", "!", "-", "?", ":", ",", "exists", "map", "sum", "filter", "has", "a", "a.cliffAmount",
        "1", "2.5", "\"x\"", "'", "in", "==", ">", "%", "timestamp", "duration", "\"7d\"", "null", "true", "change.from", "old", "new.unlockDate", "now", "ü", "\n", "//", "1e999", "99999999999999999999",
        "ahead", "burned(\"30d\").value", "ahead('7d')", "lastBurn.daysSince", "share", "tokens", "t", "t.share", "t.ahead(\"7d\").count", "marketCap", "group",
    ]), 0..40)) {
        for on in [On::Record(Resource::Unlock), On::Change(Resource::Unlock, None), On::Token, On::Portfolio, On::Source] {
            let (condition, findings) = condition::compile(&tokens.join(" "), on);
            prop_assert!(condition.is_some() || findings.iter().any(|finding| finding.is_error));
        }
    }

    #[test]
    fn no_text_as_a_rule_file_panics(text in "(\\[\\[rule\\]\\]\n)?((alert|on|when|within|labels|tokens|limit|[a-z]{1,6}) = (\"[^\"\\\\]{0,20}\"|[0-9.\\-:T]{1,12}|\\[.{0,10}\\]|true|\\{.{0,10}\\}|\\PC{0,10})\n){0,6}") {
        let loaded = load_text(&text);
        for problem in &loaded.diagnostics {
            if let Some(span) = &problem.span {
                prop_assert!(text.get(span.clone()).is_some(), "{problem:?} in {text:?}");
            }
        }
    }

    #[test]
    fn no_text_as_a_template_panics(text in "(\\{\\{|\\}\\}|\\{%|%\\}|\\||[a-z.]{1,8}| |\\PC){0,30}") {
        let engine = template::Engine::new();
        let _ = Template::check(&engine, &text, On::Record(Resource::Unlock), Some(&[]));
    }
}

#[test]
fn deep_templates_and_files_are_refused_politely() {
    let engine = template::Engine::new();
    for text in [
        format!("{{{{ {} }}}}", vec!["1"; 4_000].join("+")),
        format!("{{{{ token{} }}}}", ".a".repeat(8_000)),
        format!("{{{{ token{} }}}}", "[0]".repeat(5_000)),
        format!("{{{{ 1{} }}}}", "|string".repeat(2_000)),
        format!("{{{{ {}1{} }}}}", "(".repeat(8_000), ")".repeat(8_000)),
        format!("{{{{ {}1 }}}}", "not ".repeat(4_000)),
        format!("{{{{ {}1 }}}}", "-".repeat(16_000)),
        format!("{{{{ {} }}}}", vec!["1"; 4_000].join("~")),
        format!("{{{{ {} }}}}", vec!["1"; 3_000].join(" and ")),
        format!("{{{{ {}1 }}}}", "1 if 1 else ".repeat(1_300)),
        format!("{}x{}", "{% if 1 %}".repeat(800), "{% endif %}".repeat(700)),
        format!("{{% if 1 %}}{}x{{% endif %}}", "{% elif 1 %}".repeat(1_300)),
        format!("{{{{ '}}}}' ~ {} }}}}", vec!["1"; 4_000].join("+")),
    ] {
        let (_, faults) = Template::check(&engine, &text, On::Record(Resource::Unlock), Some(&[]));
        assert!(faults.iter().any(|fault| fault.is_error), "{}", &text[..60]);
    }
    // What is just within the bounds does not overflow the stack either.
    for text in [
        format!("{{{{ {} }}}}", vec!["1"; 395].join("+")),
        format!("{{{{ token{} }}}}", ".a".repeat(390)),
        format!("{{{{ {}1 }}}}", "-".repeat(790)),
        format!("{{{{ 1{} }}}}", "|abs".repeat(190)),
        format!("{}x{}", "{% if 1 %}".repeat(100), "{% endif %}".repeat(100)),
        format!("{{% if 1 %}}{}x{{% endif %}}", "{% elif 1 %}".repeat(190)),
    ] {
        let _ = Template::check(&engine, &text, On::Record(Resource::Unlock), Some(&[]));
    }
    for value in [
        format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)),
        format!("{}1{}", "{a=".repeat(5_000), "}".repeat(5_000)),
        format!("1{}", ".a".repeat(5_000)),
    ] {
        assert!(!load_text(&format!("[[rule]]\nalert = {value}\n")).is_usable());
    }
    assert!(!load_text(&format!("{}x = 1\n", "a.".repeat(10_000))).is_usable());
    assert!(!load_text(&format!("[{}x]\n", "a.".repeat(10_000))).is_usable());
}

#[test]
fn giant_files_are_refused_politely() {
    let rules = "[[rule]]\nalert = \"A\"\non = \"burn\"\n".repeat(5_100);
    let loaded = load_text(&rules);
    assert!(!loaded.is_usable());
    assert_eq!(loaded.set.rules.len(), 1, "all of one name");
    let many: String = (0..5_100).map(|n| format!("[[rule]]\nalert = \"A{n}\"\non = \"burn\"\n")).collect();
    let loaded = load_text(&many);
    assert_eq!(loaded.set.rules.len(), 5_000);
    assert!(loaded.diagnostics.iter().any(|problem| problem.message == "there are more than 5000 rules"));
    let labels: String = (0..500).map(|n| format!("l{n} = \"x\"\n")).collect();
    let loaded = load_text(&format!("[[rule]]\nalert = \"A\"\non = \"burn\"\n[rule.labels]\n{labels}"));
    assert!(loaded.diagnostics.iter().any(|problem| problem.message == "`labels` has more than 64 entries"));
    let levels = "[[rule.level]]\nwhen = \"value > 1\"\n".repeat(100);
    let loaded = load_text(&format!("[[rule]]\nalert = \"A\"\non = \"burn\"\n{levels}"));
    assert!(loaded.diagnostics.iter().any(|problem| problem.message == "there are more than 64 levels"));
}

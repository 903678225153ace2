mod compiled;
mod conditions;
mod corrections;
mod files;
mod language;
mod positions;
mod properties;
mod sentences;
mod shipped;
mod spec;
mod supply;
mod templates;

use std::{collections::BTreeMap, path::PathBuf};

use proptest::prelude::*;

use chrono::TimeDelta;

use super::builtin::built_in_summary;
use super::condition::Condition;
use super::template::{Template, TemplateEngine};
use super::*;
use crate::aggregate::{AggregateReads, Flow, Totals, Window};
use model::{
    AllocationChange, Change, ChangeKind, Diagnostic, DiagnosticLevel, Fact, ReceiverName, Record, RecordKey, Resource, RuleId,
    SourceText, Timestamp, Token, TokenId, Tracked, wire,
};

fn at(text: &str) -> Timestamp {
    wire::parse_timestamp(text).expect("a time")
}

fn groups() -> BTreeMap<String, Vec<String>> {
    BTreeMap::from([("portfolio".to_owned(), vec!["arbitrum".to_owned()])])
}

fn load_text(text: &str) -> LoadedRules {
    load_files(&[("rules/test.toml", text)])
}

fn load_files(files: &[(&str, &str)]) -> LoadedRules {
    let files: Vec<SourceText> =
        files.iter().map(|(file, text)| SourceText { file: PathBuf::from(file), text: (*text).to_owned() }).collect();
    let receivers = ["ops".to_owned(), "desk".to_owned()];
    load(&files, &Surroundings { receivers: &receivers, groups: &groups(), now: at("2026-03-09") })
}

/// Returns the only problem of a text: the text that its span covers, the message, and the help.
fn only_problem(text: &str) -> (String, String, String) {
    let loaded = load_text(text);
    assert_eq!(loaded.diagnostics.len(), 1, "{:#?}", loaded.diagnostics);
    let problem = &loaded.diagnostics[0];
    let covered = problem.span.clone().map(|span| text[span].to_owned()).unwrap_or_default();
    (covered, problem.message.clone(), problem.help.clone().unwrap_or_default())
}

/// Returns the only problem of the condition of a rule with this `on`.
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
    Scope { token: Some(token), record: Some(record), ..Scope::at(at("2026-03-09")) }
}

fn truth(when: &str, json: &str) -> Truth {
    let (token, record) = (arb(), record(Resource::Unlock, json));
    rule_when("unlock", when).evaluate(&scope(&token, &record))
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
fn starter_rules_load_without_warnings() {
    let loaded = load_files(&starters());
    assert_eq!(loaded.diagnostics, Vec::<Diagnostic>::new());
    assert!(loaded.set.rules.len() >= 10);
}

#[test]
fn starter_rule_renders_a_big_cliff() {
    let loaded = load_files(&starters());
    let big = loaded.set.rules.iter().find(|rule| rule.name == "BigCliffAhead").expect("the rule");
    let (token, record) = (arb(), record(Resource::Unlock, CLIFF));
    let scope = scope(&token, &record);
    assert_eq!(big.within.iter().map(|lead| lead.text.as_str()).collect::<Vec<_>>(), ["7d"]);
    assert_eq!(big.evaluate(&scope), Truth::True);
    assert_eq!(big.level(&scope), None);
    let rendered = big.render(&scope, big.level(&scope));
    assert_eq!(rendered.error, None);
    assert_eq!(rendered.labels.get("severity").map(String::as_str), Some("info"));
    assert_eq!(rendered.annotations["summary"], "ARB: $33.15M (2.77% of market cap) to unlock on 16 Mar 2026");
    assert_eq!(rendered.annotations["description"], "92.65M ARB for Team + Advisors (56.13M), Investors (36.52M).");
    let insiders = loaded.set.rules.iter().find(|rule| rule.name == "InsiderUnlockAhead").expect("the rule");
    assert_eq!(insiders.evaluate(&scope), Truth::False, "another rule covers the big cliff");
}

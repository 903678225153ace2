use std::collections::BTreeMap;

use super::*;
use crate::{Surroundings, load};
use model::wire::ReadJson as _;
use model::{Matcher, Record, RecordKey, SourceText, Timestamp, TokenId, TokenSnapshot, Tracked, wire};

fn now() -> Timestamp {
    wire::parse_timestamp("2026-03-09").expect("a time")
}

fn set(text: &str) -> RuleSet {
    let groups = BTreeMap::from([("portfolio".to_owned(), vec!["arbitrum".to_owned()]), ("empty".to_owned(), Vec::new())]);
    let file = SourceText { file: "rules/test.toml".into(), text: text.to_owned() };
    let loaded = load(&[file], &Surroundings { receivers: &[], groups: &groups, now: now() });
    assert!(loaded.is_usable(), "{:#?}", loaded.diagnostics);
    loaded.set
}

fn token(id: &str, symbol: &str, groups: &[&str]) -> Token {
    let json = serde_json::json!({ "id": id, "name": id.to_uppercase() + " Protocol", "symbol": symbol }).to_string();
    let item = wire::TokenItem::read_json(&json).expect("a token");
    Token { item, groups: groups.iter().map(|group| (*group).to_owned()).collect(), ..Token::unknown(TokenId::from(id)) }
}

fn listed() -> Vec<Token> {
    vec![
        token("arbitrum", "ARB", &["portfolio"]),
        token("aptos", "APT", &[]),
        token("alpha-one", "ALP", &[]),
        token("alpha-two", "ALP", &[]),
    ]
}

fn problems(tokens: &str) -> Vec<(String, String)> {
    let set = set(&format!("[[rule]]\nalert = \"R\"\non = \"unlock\"\ntokens = {tokens}\n"));
    let listed = listed();
    let facts = WatchFacts {
        tokens: Some(&listed[..1]),
        listed: Some(&listed),
        requested: &[Resource::Unlock],
        history: Span(std::time::Duration::from_secs(86_400)),
        horizon: Span(std::time::Duration::from_secs(86_400)),
    };
    advise(&set, &facts).into_iter().map(|one| (one.message, one.help.unwrap_or_default())).collect()
}

#[test]
fn symbol_instead_of_slug_is_reported() {
    let check = |tokens: &str, expected: &[(&str, &str)]| {
        let expected: Vec<_> = expected.iter().map(|(message, help)| ((*message).to_owned(), (*help).to_owned())).collect();
        assert_eq!(problems(tokens), expected, "{tokens}");
    };
    check("[\"arbitrum\", \"arb*\"]", &[]);
    check("[\"@portfolio\"]", &[]);
    check("[\"ARB\"]", &[("no token matches `ARB`", "`ARB` is the symbol of arbitrum: did you mean `arbitrum`?")]);
    check(
        "[\"ALP\"]",
        &[("no token matches `ALP`", "`ALP` is the symbol of several tokens: use one of `alpha-one`, `alpha-two`")],
    );
    check(
        "[\"Aptos Protocol\"]",
        &[("no token matches `Aptos Protocol`", "`Aptos Protocol` is the name of aptos: did you mean `aptos`?")],
    );
    check("[\"arbitrm\"]", &[("no token matches `arbitrm`", "did you mean `arbitrum`?")]);
    check("[\"aptos\", \"arbitrum\"]", &[("no watched token matches `aptos`", "add it to `tokens` in `[watch]`")]);
    check("[\"@empty\"]", &[("no watched token is in the group `empty`", "check `groups` and `tokens` in `[watch]`")]);
}

#[test]
fn matcher_without_a_matching_rule_is_reported() {
    let set =
        set("[[rule]]\nalert = \"BigBurn\"\non = \"burn\"\nlabels = { team = \"trading\", size = \"{{ value | usd }}\" }\n\
         [[rule]]\nalert = \"Cliff\"\non = \"unlock\"\nlabels = { severity = \"info\" }\n\
         [[rule.level]]\nwhen = \"cliffValue > 1e6\"\nlabels = { severity = \"critical\" }\n");
    let listed = listed();
    let facts = LabelFacts::of(&set, &listed);
    let problem = |texts: &[&str]| {
        let matchers: Vec<Matcher> = texts.iter().map(|text| Matcher::parse(text).expect("a matcher")).collect();
        facts.problem(&matchers).map(|problem| (problem.message, problem.help))
    };
    for fine in [
        &["severity=critical"][..],
        &["severity!=critical"],
        &["team=trading", "alertname=BigBurn"],
        &["size=\"$5.00M\""],
        &["token=~\"arb.*\""],
        &["kind=timeout"],
        &["alertname=SourceTrouble", "severity=warning"],
        &["team=\"\"", "severity=info"],
    ] {
        assert_eq!(problem(fine), None, "{fine:?}");
    }
    let check = |texts: &[&str], message: &str, help: &str| {
        let (found, hint) = problem(texts).unwrap_or_else(|| panic!("{texts:?} is fine"));
        assert!(found.contains(message) && hint.contains(help), "{texts:?}: {found}; {hint}");
    };
    check(&["tema=trading"], "no rule sets the label `tema`", "did you mean `team`?");
    check(&["severity=critcal"], "no alert can match severity=\"critcal\"", "did you mean `critical`?");
    check(&["alertname=BigBurns"], "no alert can match", "did you mean `BigBurn`?");
    check(&["token=ARB"], "no alert can match token=\"ARB\"", "`ARB` is the symbol of arbitrum");
    check(&["alertname=BigBurn", "severity=critical"], "no rule sets all of these labels together", "");
}

fn burns(values: impl IntoIterator<Item = f64>) -> TokenSnapshot {
    let mut snapshot = TokenSnapshot::of(token("arbitrum", "ARB", &[]));
    snapshot.records = values
        .into_iter()
        .enumerate()
        .map(|(index, value)| {
            let json = serde_json::json!({ "value": value, "amount": 1.0, "burnDate": "2026-03-01T00:00:00Z" }).to_string();
            let record = Record::from_json(Resource::Burn, &json).expect("a record");
            Tracked { key: RecordKey::from(format!("{index}").as_str()), record }
        })
        .collect();
    snapshot
}

#[test]
fn threshold_that_is_never_or_always_true_is_reported() {
    let snapshots = [burns((1..=30).map(|number| f64::from(number) * 1e5))];
    let check = |when: &str, expected: Option<(&str, &str)>| {
        let set = set(&format!("[[rule]]\nalert = \"R\"\non = \"burn\"\nwhen = \"{when}\"\n"));
        let found = check_thresholds(&set, &snapshots, now());
        let found = found.first().map(|one| (one.message.clone(), one.help.clone().unwrap_or_default()));
        assert_eq!(found, expected.map(|(message, help)| (message.to_owned(), help.to_owned())), "{when}");
    };
    check("value >= 1000000", None);
    check("value > 0", None);
    check(
        "amount > 0 && 5e6 <= value",
        Some(("`value >= 5000000` is true for none of the 30 records that `R` selects", "values range from $100.00K to $3.00M")),
    );
    check(
        "value >= 1000",
        Some((
            "`value >= 1000` is true for all of the 30 records that `R` selects",
            "values range from $100.00K to $3.00M: remove the comparison, or change the number",
        )),
    );
    check("value >= 50000", None);
    check("value == 123", None);
    let few = [burns([1e5])];
    let set = set("[[rule]]\nalert = \"R\"\non = \"burn\"\nwhen = \"value >= 5000000\"\n");
    assert!(check_thresholds(&set, &few, now()).is_empty(), "one burn is not enough");
}

//! Sentences about what rules do.

use super::*;

const EXAMPLES: [(&str, &str); 6] = [
    ("rules/changes.toml", include_str!("../../../rules/changes.toml")),
    ("rules/supply.toml", include_str!("../../../rules/supply.toml")),
    ("rules/unlocks.toml", include_str!("../../../rules/unlocks.toml")),
    ("rules/examples/desk.toml", include_str!("../../../rules/examples/desk.toml")),
    ("rules/examples/exchange.toml", include_str!("../../../rules/examples/exchange.toml")),
    ("rules/examples/treasury.toml", include_str!("../../../rules/examples/treasury.toml")),
];

fn examples() -> LoadedRules {
    let files: Vec<SourceText> =
        EXAMPLES.iter().map(|(file, text)| SourceText { file: PathBuf::from(file), text: (*text).to_owned() }).collect();
    let groups = ["portfolio", "book", "listed", "candidates", "own"].map(|name| (name.to_owned(), vec!["arbitrum".to_owned()]));
    let loaded = load(&files, &Surroundings { receivers: &[], groups: &BTreeMap::from(groups), now: at("2026-03-09") });
    assert!(loaded.is_usable(), "{:#?}", loaded.diagnostics);
    loaded
}

/// The sentence of a rule on unlocks, or with another head.
fn sentence(keys: &str) -> String {
    let loaded = load_text(&format!("[[rule]]\nalert = \"A\"\n{keys}\n"));
    assert!(loaded.is_usable(), "{keys}: {:#?}", loaded.diagnostics);
    loaded.set.rules[0].sentence()
}

#[test]
fn sentences_of_all_example_rules() {
    // The file was read by a person next to the rules.
    let sentences: Vec<String> = examples().set.rules.iter().map(|rule| format!("{}: {}", rule.name, rule.sentence())).collect();
    assert_eq!(sentences.join("\n"), include_str!("sentences.txt").trim_end());
}

#[test]
fn sentences_are_plain_text_on_one_line() {
    for rule in &examples().set.rules {
        let sentence = rule.sentence();
        let code = ["&&", "||", "==", ">=", "<=", "\n", "  ", " ,", "..", "the the", "NaN"];
        assert!(!code.iter().any(|part| sentence.contains(part)), "{}: {sentence}", rule.name);
        assert!(sentence.starts_with("Notifies ") && sentence.ends_with('.'), "{}: {sentence}", rule.name);
    }
}

#[test]
fn size_of_a_cliff_stands_before_other_conditions() {
    let check = |keys: &str, expected: &str| assert_eq!(sentence(keys), expected, "{keys}");
    check(
        "on = \"unlock\"\nwithin = [\"30d\", \"7d\", \"1d\"]\nwhen = \"cliffValue >= 1000000 || valueToMarketCap >= 1\"\ntokens = [\"@portfolio\"]",
        "Notifies 30, 7, and 1 days before a cliff of at least $1M or 1% of market cap, for @portfolio.",
    );
    check(
        "on = \"unlock\"\nwithin = \"6h\"\nwhen = \"5 <= valueToMarketCap && cliffValue > 2500000 && insiderShare >= 0.5\"",
        "Notifies 6 h before a cliff of at least 5% of market cap and more than $2.5M if the share of insiders is at least 50%.",
    );
    check("on = \"unlock\"\nwithin = [\"2d\", \"6h\"]", "Notifies 2 days and 6 h before an unlock.");
    check(
        "on = \"burn\"\nwhen = \"value >= 1000000\"\nsince = \"3d\"\nlimit = 1",
        "Notifies about a new burn of at least $1M that is at most 3 days old, at most 1 alert at once.",
    );
}

#[test]
fn conditions_read_as_text() {
    let check = |on: &str, when: &str, expected: &str| {
        let found = sentence(&format!("on = \"{on}\"\nwhen = '''{when}'''"));
        let found = found.split_once(" if ").map_or(found.as_str(), |(_, condition)| condition);
        assert_eq!(found, format!("{expected}."), "{when}");
    };
    check("unlock.*", "!(change.shiftDays > -2 && change.shiftDays < 2)", "the shift is at least 2 days earlier or 2 days later");
    check(
        "unlock.*",
        "change.kind in [\"added\", \"series_shifted\"] && (change.count > 3 || !has(change.amount))",
        "the kind of change is added or series shifted, and either the number of changed tranches is more than 3 or the amount of the change is unknown",
    );
    check("unlock.*", "corrections(\"365d\").count >= 4", "the number of corrections in the last 365 days is at least 4");
    check(
        "unlock.rescheduled",
        "change.to > now && old.cliffValue != 5",
        "the new date is in the future and the former cliff is not $5",
    );
    check("token", "lastBuyback.daysSince >= 35", "the last buyback is at least 35 days ago");
    check(
        "token",
        "ahead(\"30d\").amount >= circulatingSupply * 0.02",
        "the supply unlocking in the next 30 days is at least 2% of circulating supply",
    );
    check(
        "portfolio",
        "tokens.filter(t, t.ahead(\"7d\").value >= 1000000).size() >= 3",
        "the number of tokens for which the supply unlocking in the next 7 days is at least $1M is at least 3",
    );
    check(
        "unlock",
        "allocations.exists(a, a.allocationName.startsWith(\"Team\") && a.cliffAmount > 5)",
        "for at least one recipient, the allocation name begins with \"Team\" and the cliff is more than 5 tokens",
    );
    check("unlock", "position.share >= 0.02", "your position is at least 2% of the unlock");
    check("unlock", "unlockDate - now <= duration(\"14d\")", "the date is at most 14 days ahead");
}

#[test]
fn hostile_names_are_made_harmless() {
    let sentence = sentence("on = \"unlock\"\ntokens = [\"a\\u202Eb\"]\nwhen = 'tokenName == \"x\\ny\"'");
    assert!(!sentence.contains('\u{202e}') && !sentence.contains('\n'), "{sentence:?}");
}

proptest! {
    /// An independent reading of a comparison: the words say which limits hold.
    #[test]
    fn negation_is_resolved(limit in 1_u32..1000, is_negated: bool, op in 0_usize..4) {
        let (op, plain, negated) = [(">=", "at least", "less than"), (">", "more than", "at most"), ("<", "less than", "at least"), ("<=", "at most", "more than")][op];
        let condition = format!("change.count {op} {limit}");
        let when = if is_negated { format!("!({condition})") } else { condition };
        let expected = format!("the number of changed tranches is {} {limit}.", if is_negated { negated } else { plain });
        let found = sentence(&format!("on = \"unlock.*\"\nwhen = '''{when}'''"));
        prop_assert!(found.ends_with(&expected), "{found}");
    }
}

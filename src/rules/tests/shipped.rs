//! The texts of the shipped rules for random records, of which any part can be missing.

use super::*;
use serde_json::{Map, Value, json};

const SHIPPED: [(&str, &str); 3] = [
    ("rules/changes.toml", include_str!("../../../rules/changes.toml")),
    ("rules/supply.toml", include_str!("../../../rules/supply.toml")),
    ("rules/unlocks.toml", include_str!("../../../rules/unlocks.toml")),
];

/// Records of each resource with all fields that texts use. The sizes match the conditions of the rules.
fn full_records() -> Vec<(Resource, Value)> {
    let part = json!({"unlockDate": "2026-03-16T00:00:00Z", "allocationName": "Team", "standardAllocationName": "Founder / Team",
        "cliffAmount": 400e6, "cliffValue": 200e6, "unlockPrecision": "second",
        "committedClaim": {"amount": 900e6, "value": 450e6, "timestamp": 1_773_622_800}});
    vec![
        (
            Resource::Unlock,
            json!({"unlockDate": "2026-03-16T00:00:00Z", "tokenSymbol": "ARB", "cliffUnlocks":
                {"cliffAmount": 400e6, "cliffValue": 200e6, "valueToMarketCap": 20.0, "allocationBreakdown": [part]}}),
        ),
        (
            Resource::Burn,
            json!({"burnEventLabel": "Quarterly burn", "burnType": "BUYBACK_BURN", "burnDate": "2026-03-08T00:00:00Z", "amount": 90e6,
                "value": 45e6, "metadata": {"burners": ["FOUNDATION"], "burnReasons": ["FEES"]}}),
        ),
        (
            Resource::Buyback,
            json!({"buybackEventLabel": "Weekly buyback", "buybackType": "OPEN_MARKET", "buybackDate": "2026-03-08T00:00:00Z",
                "tokenAmount": 1000, "value": 5e6, "spentAmount": 5e6, "spentUnit": "USDC"}),
        ),
    ]
}

/// Removes, empties, or keeps each field.
fn with_gaps(record: &Value, random: &mut fastrand::Rng) -> Value {
    match record {
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (name, value) in fields {
                match random.u8(..6) {
                    0 => {}
                    1 => _ = kept.insert(name.clone(), Value::Null),
                    2 if value.is_string() && !name.ends_with("Date") => _ = kept.insert(name.clone(), json!("")),
                    3 if value.is_array() => _ = kept.insert(name.clone(), json!([])),
                    _ => _ = kept.insert(name.clone(), with_gaps(value, random)),
                }
            }
            Value::Object(kept)
        }
        Value::Array(items) => items.iter().map(|item| with_gaps(item, random)).collect(),
        other => other.clone(),
    }
}

/// Returns what is wrong with a text.
fn defect(text: &str) -> Option<&'static str> {
    let words: Vec<&str> = text.split_whitespace().map(|word| word.trim_matches(['.', ',', ';', ':', '(', ')'])).collect();
    if words.windows(2).any(|pair| pair == ["unknown", "unknown"]) {
        return Some("two unknown values in a row");
    }
    if words.windows(2).any(|pair| pair[0] == "unknown" && ["tokens", "of"].contains(&pair[1])) {
        return Some("an unknown size as a size");
    }
    let is_mark = |word: &str| !word.is_empty() && word.chars().all(|c| ".,;:".contains(c));
    if text.split_whitespace().any(is_mark) || text.trim_start().starts_with(['.', ',', ';', ':']) {
        return Some("an empty sentence");
    }
    let has_twice = |marks: [&str; 6]| marks.iter().any(|mark| text.contains(mark));
    if has_twice(["..", ",,", ";;", ", .", "; .", ": ."]) {
        return Some("two punctuation marks in a row");
    }
    let verbs = ["with.", "by.", "for.", "worth.", "with ,", "by ,", "for ,", "of ."];
    verbs.iter().any(|verb| text.contains(verb)).then_some("a sentence without an end")
}

/// Returns whether a rule matches. If so, checks its texts.
fn matches_with_sound_texts(rule: &Rule, scope: &Scope<'_>, body: &Value) -> bool {
    let does_match = rule.evaluate(scope) == Truth::True;
    if does_match {
        for (name, text) in &rule.render(scope, rule.level(scope)).annotations {
            assert_eq!(defect(text), None, "{} {name}: {text:?} of {body}", rule.name);
        }
    }
    does_match
}

#[test]
fn shipped_texts_have_no_empty_or_unknown_sentences() {
    let loaded = load_files(&SHIPPED);
    assert!(loaded.is_usable(), "{:#?}", loaded.diagnostics);
    let mut random = fastrand::Rng::with_seed(0x7e87);
    let mut matches: usize = 0;
    for _ in 0..600 {
        for (resource, full) in full_records() {
            let body = with_gaps(&full, &mut random);
            let Ok(found) = Record::from_json(resource, &body.to_string()) else { continue };
            let (token, tracked) = (arb(), Tracked { key: RecordKey::from("k"), record: found });
            let scope = Scope { token: Some(&token), record: Some(&tracked), ..Scope::at(at("2026-03-09")) };
            for rule in loaded.set.rules.iter().filter(|rule| rule.on == On::Record(resource)) {
                matches += usize::from(matches_with_sound_texts(rule, &scope, &body));
            }
        }
    }
    assert!(matches > 200, "only {matches} matches");
}

#[test]
fn shipped_texts_of_changes_have_no_empty_or_unknown_sentences() {
    let loaded = load_files(&SHIPPED);
    let mut random = fastrand::Rng::with_seed(0xc4a6);
    let mut matches: usize = 0;
    for _ in 0..600 {
        let (_, full) = full_records().swap_remove(0);
        let body = with_gaps(&full, &mut random);
        let Ok(found) = Record::from_json(Resource::Unlock, &body.to_string()) else { continue };
        let (token, tracked) = (arb(), Tracked { key: RecordKey::from("k"), record: found });
        for rule in &loaded.set.rules {
            let On::Change(resource, kind) = rule.on else { continue };
            let kind = kind.unwrap_or(ChangeKind::Rescheduled);
            let mut change = Change::of(kind, resource, &token.id);
            "11.31M ARB of Team moved by +4 days".clone_into(&mut change.summary);
            let date = |random: &mut fastrand::Rng| random.bool().then(|| Fact::Time(at("2026-03-16")));
            (change.from, change.to) = (date(&mut random), date(&mut random));
            change.shift_days = random.bool().then_some(4.0);
            let scope =
                Scope { token: Some(&token), record: Some(&tracked), change: Some(&change), ..Scope::at(at("2026-03-09")) };
            matches += usize::from(matches_with_sound_texts(rule, &scope, &body));
        }
    }
    assert!(matches > 200, "only {matches} matches");
}

/// Each kind of incident has a description of its own. One for all kinds would say of a delivery problem what is true of schedules.
#[test]
fn shipped_rules_do_not_replace_the_description_of_incidents() {
    let loaded = load_files(&SHIPPED);
    let incidents: Vec<&Rule> = loaded.set.rules.iter().filter(|rule| rule.on == On::Source).collect();
    assert!(!incidents.is_empty());
    for rule in incidents {
        let source = SourceFacts {
            kind: "receiver".to_owned(),
            endpoint: None,
            receiver: Some("ops".to_owned()),
            message: "Receiver ops has accepted no messages for 5 min: 2 deliveries are waiting".to_owned(),
            count: 2,
            since: at("2026-03-09"),
        };
        let rendered = rule.render(&Scope { source: Some(&source), ..Scope::at(at("2026-03-09")) }, None);
        assert!(!rendered.annotations.contains_key("description"), "{}: {:?}", rule.name, rendered.annotations);
        assert_eq!(rendered.annotations["summary"], source.message, "{}", rule.name);
    }
}

#[test]
fn defects_are_found() {
    for (text, is_sound) in [
        ("Weekly buyback. Type: open market. Paid with 5.00M USDC.", true),
        ("", true),
        ("Weekly buyback, Open market; paid with unknown unknown.", false),
        (", Treasury buyback; paid with 5.00M USDC.", false),
        ("Quarterly burn, ; by Foundation, for .", false),
        ("ARB: unknown tokens ($1.20M) burned on 2 Mar 2026", false),
        ("The whole unlock is worth unknown, unknown of market cap.", false),
    ] {
        assert_eq!(defect(text).is_none(), is_sound, "{text}");
    }
}

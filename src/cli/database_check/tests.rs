use std::collections::BTreeMap;

use super::*;
use model::SourceText;
use tools::backtest::TallyRow;

#[test]
fn warns_about_a_rule_by_its_busiest_receiver() {
    let text = "[[rule]]\nalert = \"Loud\"\non = \"burn\"\n[[rule]]\nalert = \"Calm\"\non = \"unlock\"\n";
    let file = SourceText { file: "rules/loud.toml".into(), text: text.to_owned() };
    let around = rules::Surroundings { receivers: &[], groups: &BTreeMap::new(), now: Timestamp::default() };
    let set = rules::load(&[file], &around).set;
    let row = |name: &str, desk: u32, by_week: Vec<u32>| TallyRow {
        name: name.to_owned(),
        shares: BTreeMap::from([("desk".to_owned(), desk), ("ops".to_owned(), 3)]),
        by_week,
        ..TallyRow::default()
    };
    let summary = |rows| BacktestSummary {
        weeks: Vec::new(),
        rules: rows,
        receivers: Vec::new(),
        noisiest: Vec::new(),
        alerts: 0,
        messages: 0,
        joined: 0,
        undelivered: BTreeMap::new(),
    };
    // The first weeks have no messages because nothing was recorded yet, so they do not count.
    let notified = frequent_rules(
        &set,
        &summary(vec![row("Loud", 210, [vec![0; 42], vec![21; 10]].concat()), row("Calm", 40, vec![10; 4])]),
    );
    let notified: Vec<&str> = notified.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(notified, ["`Loud` would have sent 21 messages per week to desk over the last year (210 in 10 weeks)"]);
    let short = frequent_rules(&set, &summary(vec![row("Loud", 60, vec![0, 60])]));
    assert!(short.is_empty(), "one busy week is not enough");
}

#[test]
fn warns_if_most_prices_are_stale() {
    let snapshot = |id: &str, price_at: Option<&str>| {
        let at = price_at.map(|at| format!(r#","referencePrice":1,"referencePriceUpdatedTime":"{at}""#)).unwrap_or_default();
        let json = format!(r#"{{"unlockDate":"2027-01-01T00:00:00Z"{at}}}"#);
        let record = model::Record::from_json(Resource::Unlock, &json).expect("a record");
        let tracked = model::Tracked { key: model::RecordKey::from("k"), record };
        TokenSnapshot { records: vec![tracked], ..TokenSnapshot::of(Token::unknown(model::TokenId::from(id))) }
    };
    let now = model::parse_timestamp("2026-11-26").expect("a time");
    let (old, new) = (Some("2026-11-03T02:00:00Z"), Some("2026-11-25T00:00:00Z"));
    let warning = |prices: &[Option<&str>]| {
        let watched: Vec<TokenSnapshot> = prices.iter().map(|at| snapshot("a", *at)).collect();
        stale_prices(&watched, &Config::default(), Path::new("test.db"), now).map(|warning| warning.message)
    };
    let expected = "the prices of 2 of 3 tokens are older than 3 days; the latest is of 25 Nov 2026";
    assert_eq!(warning(&[old, old, new, None]).as_deref(), Some(expected));
    assert_eq!(warning(&[old, new, None]), None);
    assert_eq!(warning(&[None]), None);
}

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

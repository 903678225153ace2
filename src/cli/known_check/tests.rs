use std::collections::BTreeMap;

use super::*;
use model::SourceText;
use tools::backtest::TallyRow;

#[test]
fn a_rule_that_says_too_much_is_told_by_what_its_busiest_receiver_would_have_got() {
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
    // Nothing came in the first weeks, since nothing was recorded yet: they do not count.
    let told =
        too_many(&set, &summary(vec![row("Loud", 210, [vec![0; 42], vec![21; 10]].concat()), row("Calm", 40, vec![10; 4])]));
    let told: Vec<&str> = told.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(told, ["`Loud` would have sent desk 21 messages a week over the last year (210 in 10 weeks)"]);
    let short = too_many(&set, &summary(vec![row("Loud", 60, vec![0, 60])]));
    assert!(short.is_empty(), "one busy week is no habit");
}

use super::*;
use crate::ruletest::{TestOutcome, TestSetup, report, run_against};
use model::SourceText;

fn request(about: RuleTopic) -> RuleRequest {
    RuleRequest {
        about,
        name: about.name().to_owned(),
        tokens: Vec::new(),
        above: None,
        percent: None,
        recipients: Vec::new(),
        within: vec!["30d".to_owned(), "1d".to_owned()],
        days: 35,
        window: "7d".to_owned(),
        severity: "critical".to_owned(),
        sample: "example".to_owned(),
    }
}

/// Checks that the rule has no problems and that its test passes.
fn check(request: &RuleRequest) {
    let GeneratedRule { rule, test } = generate(request, "../mine.toml");
    let file = SourceText { file: "rules/mine.toml".into(), text: rule.clone() };
    let config = model::config::Config::default();
    let around = rules::Surroundings { receivers: &[], groups: &config.watch.groups, now: model::Timestamp::default() };
    let loaded = rules::load(std::slice::from_ref(&file), &around);
    assert!(loaded.diagnostics.is_empty(), "{rule}\n{:#?}", loaded.diagnostics);
    let setup = TestSetup { config: &config, base_dir: std::path::Path::new("."), only: None };
    let outcomes = run_against(SourceText { file: "rules/tests/mine.toml".into(), text: test.clone() }, &setup, Some(&[file]));
    let shown: String = outcomes.iter().map(report::plain).collect();
    assert!(!outcomes.is_empty() && outcomes.iter().all(TestOutcome::is_passed), "{rule}\n{test}\n{shown}");
}

#[test]
fn every_kind_of_rule_passes_check_and_test() {
    for about in RuleTopic::ALL {
        assert_eq!(RuleTopic::parse(about.word()), Some(about));
        check(&request(about));
        check(&RuleRequest { tokens: vec!["example".to_owned()], above: Some(1_500_000.0), ..request(about) });
    }
}

#[test]
fn cliffs_have_thresholds_in_usd_and_percent_and_recipients() {
    let of = |above, percent, recipients: &[Recipient]| RuleRequest {
        above,
        percent,
        recipients: recipients.to_vec(),
        ..request(RuleTopic::Cliffs)
    };
    let insiders = [Recipient::Team, Recipient::Private];
    for (request, expected) in [
        (of(None, Some(4.5), &[]), "when   = 'valueToMarketCap >= 4.5'"),
        (of(Some(2e6), Some(1.0), &[]), "when   = 'cliffValue >= 2000000 || valueToMarketCap >= 1'"),
        (
            of(None, None, &insiders),
            "when   = 'cliffValue >= 5000000 && allocations.exists(a, a.standardAllocationName in [\"Founder / Team\", \"Private Investors\"])'",
        ),
        (
            of(Some(2e6), Some(1.0), &[Recipient::Reserve]),
            "when   = '(cliffValue >= 2000000 || valueToMarketCap >= 1) && allocations.exists(a, a.standardAllocationName in [\"Reserve\", \"Reserved\"])'",
        ),
    ] {
        let rule = generate(&request, "../mine.toml").rule;
        assert!(rule.contains(expected), "{rule}");
        check(&request);
    }
}

#[test]
fn formats_a_rule() {
    let request = RuleRequest { tokens: vec!["arbitrum".to_owned()], ..request(RuleTopic::Cliffs) };
    let expected = r#"# Cliffs with a value of $5.00M or more at lead times 30d, 1d.
[[rule]]
alert  = "CliffAhead"
on     = "unlock"
within = ["30d", "1d"]
when   = 'cliffValue >= 5000000'
tokens = ["arbitrum"]
labels = { severity = "critical" }

[rule.annotations]
summary = '{{ token.symbol }}: {{ cliffValue | usd }} ({{ valueToMarketCap | percent }} of market cap) to unlock {{ when }}'
"#;
    assert_eq!(generate(&request, "../mine.toml").rule, expected);
}

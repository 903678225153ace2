use super::*;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn firing(id: &str, pairs: &[(&str, &str)]) -> FiringAlert {
    FiringAlert { id: id.into(), labels: labels(pairs) }
}

fn rule(source: &str, target: &str, equal: &[&str]) -> CheckedInhibitRule {
    let read = |text: &str| vec![Matcher::parse(text).expect("a matcher")];
    CheckedInhibitRule {
        source: read(source),
        target: read(target),
        equal: equal.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[test]
fn critical_alert_inhibits_warnings_of_the_same_token_only() {
    let rules = [rule("severity=critical", "severity=warning", &["token"])];
    let all = [firing("c", &[("severity", "critical"), ("token", "arb")])];
    let inhibitor = Inhibitor::new(&rules, &all);
    let by = |pairs: &[(&str, &str)]| inhibitor.of(&"w".into(), &labels(pairs)).map(|id| id.as_str());
    assert_eq!(by(&[("severity", "warning"), ("token", "arb")]), Some("c"));
    assert_eq!(by(&[("severity", "warning"), ("token", "apt")]), None);
    assert_eq!(by(&[("severity", "info"), ("token", "arb")]), None);
    assert_eq!(by(&[("severity", "warning")]), None, "a missing label is empty, which differs from the source's value");
}

#[test]
fn alerts_that_match_both_sides_do_not_inhibit_each_other() {
    let rules = [rule("team=desk", "team=desk", &[])];
    let all = [firing("a", &[("team", "desk")]), firing("b", &[("team", "desk")])];
    let inhibitor = Inhibitor::new(&rules, &all);
    assert_eq!(inhibitor.of(&"a".into(), &all[0].labels), None);
    assert_eq!(inhibitor.of(&"b".into(), &all[1].labels), None);
    let narrow = [rule("severity=critical", "team=desk", &[])];
    let all = [firing("a", &[("team", "desk"), ("severity", "critical")])];
    let inhibitor = Inhibitor::new(&narrow, &all);
    assert_eq!(inhibitor.of(&"a".into(), &all[0].labels), None);
    assert_eq!(inhibitor.of(&"b".into(), &labels(&[("team", "desk")])).map(|id| id.as_str()), Some("a"));
}

use super::*;
use model::{Notification, TokenId, config::WatchSettings};

fn now() -> Timestamp {
    chrono::DateTime::from_timestamp(1_790_000_000, 0).unwrap()
}

fn watch() -> Watch {
    let groups = [("desk", vec!["arb*", "arbitrum", "aptos"]), ("empty", vec!["nobody"])];
    let groups = groups.map(|(name, of)| (name.to_owned(), of.into_iter().map(str::to_owned).collect()));
    let section = WatchSettings { tokens: vec!["arbitrum".into(), "aptos".into(), "sui".into()], groups: groups.into() };
    Watch::build(&section).expect("patterns")
}

fn unlock(token: &str, days: i64, lasts: i64, value: f64) -> ValueAhead {
    let begins = now() + TimeDelta::days(days);
    ValueAhead { token: TokenId::from(token), begins, ends: begins + TimeDelta::days(lasts), value }
}

#[test]
fn a_sum_holds_what_lies_ahead_of_the_watched_tokens_and_of_each_group_once() {
    let ahead = [
        unlock("arbitrum", 3, 0, 1e6),
        unlock("aptos", 7, 0, 2e6),
        unlock("sui", 8, 1, 4e6),
        unlock("aptos", 31, 0, 8e6),
        unlock("not-watched", 1, 0, 16e6),
        unlock("arbitrum", -1, 0, 32e6),
        unlock("arbitrum", -1, 1, 64e6),
    ];
    let sums = WindowSums::of(&ahead, &watch(), now());
    assert_eq!(sums.watched, [3e6, 7e6]);
    let groups: Vec<_> = sums.groups.into_iter().collect();
    assert_eq!(groups, [("desk".to_owned(), [3e6, 3e6]), ("empty".to_owned(), [0.0, 0.0])]);
}

#[test]
fn a_severity_of_the_rules_own_making_makes_no_label_of_its_own() {
    let words = ["critical", "Page", "warning", "whatever the token is called", ""];
    let labels = words.map(|word| severity(Tone::of_severity(Some(word))));
    assert_eq!(labels, ["critical", "critical", "warning", "info", "info"]);
}

#[test]
fn what_is_told_is_counted_under_the_rules_id_and_the_severity_of_its_alert() {
    let mut alert = crate::fixtures::firing("al_1", now());
    alert.rule = RuleId::from("cliffs");
    let first = Notification { alert: alert.id.clone(), ..notify::samples::unlock() };
    let end = notify::samples::resolved();
    let told = ToldNotification::of(&Commit { alerts: vec![alert], notifications: vec![first, end], ..Commit::default() });
    let row = |rule: &str, kind: &'static str| ToldNotification { rule: RuleId::from(rule), tone: Tone::Warning, kind };
    assert_eq!(told, [row("cliffs", "firing"), row("BigCliffAhead", "resolved")]);
}

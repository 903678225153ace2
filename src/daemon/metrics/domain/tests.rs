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
fn upcoming_values_are_summed_once_per_group_and_watched_token() {
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
fn custom_severity_maps_to_fixed_label() {
    let words = ["critical", "Page", "warning", "custom", ""];
    let labels = words.map(|word| severity_label(Severity::from_label(Some(word))));
    assert_eq!(labels, ["critical", "critical", "warning", "info", "info"]);
}

#[test]
fn notification_is_counted_by_rule_id_and_alert_severity() {
    let mut alert = testkit::rows::firing("al_1", now());
    alert.rule = RuleId::from("cliffs");
    let first = Notification { alert: alert.id.clone(), ..testkit::samples::unlock() };
    let end = testkit::samples::resolved();
    let notified = NotificationMetric::of(&Commit { alerts: vec![alert], notifications: vec![first, end], ..Commit::default() });
    let row = |rule: &str, kind: &'static str| NotificationMetric { rule: RuleId::from(rule), severity: Severity::Warning, kind };
    assert_eq!(notified, [row("cliffs", "firing"), row("BigCliffAhead", "resolved")]);
}

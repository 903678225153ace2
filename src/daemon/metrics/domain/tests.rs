use super::*;
use model::Notification;

fn now() -> Timestamp {
    chrono::DateTime::from_timestamp(1_790_000_000, 0).unwrap()
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

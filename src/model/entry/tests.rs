use super::*;
use crate::{AlertBody, Change, ChangeKind, Labels, Resource, Timestamp, TokenId, wire};

fn time(text: &str) -> Timestamp {
    wire::parse_timestamp(text).expect("a time")
}

fn notice(rule: &str, severity: &str, event: Option<&str>) -> Notification {
    let at = time("2026-03-09T13:00:00Z");
    let id = crate::alert_id(&rule.into(), event.unwrap_or(rule), 1);
    Notification {
        id: crate::notification_id(&id, "firing"),
        alert: id.clone(),
        kind: NotificationKind::Firing,
        at,
        receivers: Vec::new(),
        body: AlertBody {
            labels: Labels::from([("severity".to_owned(), severity.to_owned())]),
            event: event.map(str::to_owned),
            ..AlertBody::firing(id, rule, "firing", at)
        },
    }
}

fn check(notifications: &[Notification], expected: &[&str]) {
    let names = |entry: MessageEntry<'_>| entry.all().map(|notice| notice.body.rule.as_str()).collect::<Vec<_>>().join(" + ");
    let entries: Vec<String> = message_entries(notifications).into_iter().map(names).collect();
    assert_eq!(entries, expected);
}

#[test]
fn several_rules_about_one_event_share_an_entry() {
    let (one, two) = (Some("unlock/arbitrum/1"), Some("unlock/arbitrum/2"));
    let all = [
        notice("Insiders", "info", one),
        notice("BigCliff", "critical", one),
        notice("Other", "info", two),
        notice("Claim", "warning", one),
        notice("Pressure", "info", None),
        notice("Pressure", "info", None),
    ];
    check(&all, &["BigCliff + Claim + Insiders", "Other", "Pressure", "Pressure"]);
    check(&[], &[]);
}

#[test]
fn resolved_and_changed_alerts_have_separate_entries() {
    let event = Some("unlock/arbitrum/1");
    let changed = |rule: &str, summary: &str| {
        let mut notice = notice(rule, "warning", event);
        let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &TokenId::from("arbitrum"));
        change.summary = summary.to_owned();
        notice.body.change = Some(change);
        notice
    };
    let mut over = notice("BigCliff", "critical", event);
    over.body.status = AlertStatus::Resolved;
    let all = [
        notice("Insiders", "info", event),
        over,
        changed("Moved", "by +2 days"),
        changed("Any", "by +2 days"),
        changed("Any", "by +9 days"),
    ];
    check(&all, &["Insiders", "BigCliff", "Moved + Any", "Any"]);
}

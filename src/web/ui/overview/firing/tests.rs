use super::*;
use model::{Alert, TokenId};
use testkit::{rows::firing, time};

fn view(id: &str, severity: &str, rule: &str, subject: &str) -> AlertView {
    let alert = Alert {
        name: rule.to_owned(),
        subject: subject.to_owned(),
        token: subject.starts_with("unlock/").then(|| TokenId::from("arb")),
        labels: [("severity".to_owned(), severity.to_owned())].into(),
        ..firing(id, time("2026-03-09T06:00:00Z"))
    };
    AlertView::of(&alert, &[], time("2026-03-09"))
}

#[test]
fn event_of_several_rules_is_listed_once() {
    let alerts = vec![
        view("al_1", "critical", "Huge", "unlock/arb/1"),
        view("al_2", "warning", "Big", "unlock/arb/2"),
        view("al_3", "warning", "Ahead", "unlock/arb/1"),
    ];
    let card = FiringCard::of(&FiringAlerts { critical: 1, warning: 9, ..FiringAlerts::default() }, alerts);
    let rows: Vec<_> = card.rows.iter().map(|row| (row.view.rule.as_str(), row.also.join(", "))).collect();
    assert_eq!(rows, [("Huge", "Ahead".to_owned()), ("Big", String::new())]);
    let counts: Vec<_> = card.severities.iter().map(|choice| (choice.name.as_str(), choice.count)).collect();
    assert_eq!(counts, [("Critical", Some(1)), ("Warning", Some(9))]);
    assert_eq!((card.shown, card.total), (3, 10));
}

#[test]
fn rows_are_limited_but_rules_of_listed_events_are_not() {
    let mut alerts: Vec<AlertView> =
        (0..30).map(|number| view(&format!("al_{number}"), "info", "Ahead", &format!("unlock/arb/{number}"))).collect();
    alerts.push(view("al_last", "info", "Late", "unlock/arb/0"));
    // Alerts without a token are different events, even with one subject.
    alerts.insert(0, view("al_a", "warning", "Down", "source"));
    alerts.insert(1, view("al_b", "warning", "Slow", "source"));
    let card = FiringCard::of(&FiringAlerts { other: 33, ..FiringAlerts::default() }, alerts);
    assert_eq!((card.rows.len(), card.shown), (MAX_ROWS, MAX_ROWS + 1));
    assert_eq!(card.rows[2].also, ["Late"]);
}

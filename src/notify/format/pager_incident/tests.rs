use super::*;
use model::{Batch, DueDelivery};
use testkit::samples::{due, group, moved, resolved, unlock};
use testkit::time;

fn summarized(delivery: &DueDelivery) -> Vec<(String, bool, usize)> {
    let brief = Brief { delivery, external_url: None, now: time("2026-03-09T13:00:05Z") };
    let all = incidents(&brief, ShareStyle::Short, 100);
    all.into_iter().map(|of| (of.key, of.is_resolved, of.cards.len())).collect()
}

fn ended(mut notice: Notification) -> Notification {
    notice.body.status = AlertStatus::Resolved;
    notice
}

#[test]
fn alert_that_ended_within_the_delivery_is_only_resolved() {
    let all = summarized(&due(1, "ops", vec![unlock(), moved(), resolved()]));
    assert_eq!(all, [(moved().alert.to_string(), false, 1), (unlock().alert.to_string(), true, 1)]);
}

#[test]
fn many_alerts_open_one_incident_and_resolve_one_by_one() {
    assert_eq!(summarized(&due(1, "ops", group(5))).len(), 5);
    assert_eq!(summarized(&due(1, "ops", group(50))), [("msg_0001".to_owned(), false, 50)]);
    let counted = Batch { truncated: 400, ..Batch::default() };
    assert_eq!(summarized(&DueDelivery { batch: counted, ..due(1, "ops", group(2)) }).len(), 1);
    let all = summarized(&due(1, "ops", group(50).into_iter().map(ended).collect()));
    assert!(all.len() == 50 && all.iter().all(|(_, is_resolved, _)| *is_resolved));
}

#[test]
fn last_resolution_resolves_the_shared_incident() {
    let storm = due(1, "ops", group(50));
    let last = ended(group(50).remove(49));
    let delivery = DueDelivery { over: vec![storm.webhook_id.clone()], ..due(2, "ops", vec![last.clone()]) };
    assert_eq!(summarized(&delivery), [(last.alert.to_string(), true, 1), (summarized(&storm)[0].0.clone(), true, 0)]);
}

#[test]
fn group_is_one_incident_and_resolved_when_none_of_its_alerts_fires() {
    let of = |notifications: Vec<Notification>, notified_before: u32| {
        let batch = Batch { group_key: Some("{}:{token=\"arbitrum\"}".into()), notified_before, ..Batch::default() };
        summarized(&DueDelivery { batch, ..due(1, "ops", notifications) })
    };
    let begun = of(group(2), 0);
    assert_eq!((begun.len(), begun[0].1), (1, false));
    assert_eq!(of(vec![ended(unlock())], 1), [(begun[0].0.clone(), false, 1)], "another alert still fires");
    assert_eq!(of(vec![ended(unlock())], 0), [(begun[0].0.clone(), true, 1)]);
    assert!(!of(vec![ended(unlock()), moved()], 0)[0].1);
}

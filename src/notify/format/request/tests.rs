use super::*;
use crate::samples::{due, group, moved, resolved, time, unlock};
use model::{Batch, DueDelivery};

fn told(delivery: &DueDelivery) -> Vec<(String, bool, usize)> {
    let brief = Brief { delivery, external_url: None, now: time("2026-03-09T13:00:05Z") };
    let all = incidents(&brief, ShareStyle::Short, 100);
    all.into_iter().map(|of| (of.key, of.is_resolved, of.cards.len())).collect()
}

fn ended(mut notice: Notification) -> Notification {
    notice.body.status = AlertStatus::Resolved;
    notice
}

#[test]
fn of_an_alert_that_began_and_ended_within_a_delivery_only_the_end_is_told() {
    let all = told(&due(1, "ops", vec![unlock(), moved(), resolved()]));
    assert_eq!(all, [(moved().alert.to_string(), false, 1), (unlock().alert.to_string(), true, 1)]);
}

#[test]
fn a_storm_opens_one_incident_and_each_end_is_told_by_itself() {
    assert_eq!(told(&due(1, "ops", group(5))).len(), 5);
    assert_eq!(told(&due(1, "ops", group(50))), [("msg_0001".to_owned(), false, 50)]);
    let counted = Batch { truncated: 400, ..Batch::default() };
    assert_eq!(told(&DueDelivery { bundle: counted, ..due(1, "ops", group(2)) }).len(), 1);
    let all = told(&due(1, "ops", group(50).into_iter().map(ended).collect()));
    assert!(all.len() == 50 && all.iter().all(|(_, is_resolved, _)| *is_resolved));
}

#[test]
fn the_last_end_of_a_storm_ends_what_it_opened() {
    let storm = due(1, "ops", group(50));
    let last = ended(group(50).remove(49));
    let delivery = DueDelivery { over: vec![storm.webhook_id.clone()], ..due(2, "ops", vec![last.clone()]) };
    assert_eq!(told(&delivery), [(last.alert.to_string(), true, 1), (told(&storm)[0].0.clone(), true, 0)]);
}

#[test]
fn a_group_is_one_incident_and_over_when_nothing_in_it_fires() {
    let of = |notifications: Vec<Notification>, told_before: u32| {
        let bundle = Batch { group_key: Some("{}:{token=\"arbitrum\"}".into()), told_before, ..Batch::default() };
        told(&DueDelivery { bundle, ..due(1, "ops", notifications) })
    };
    let begun = of(group(2), 0);
    assert_eq!((begun.len(), begun[0].1), (1, false));
    assert_eq!(of(vec![ended(unlock())], 1), [(begun[0].0.clone(), false, 1)], "another still fires");
    assert_eq!(of(vec![ended(unlock())], 0), [(begun[0].0.clone(), true, 1)]);
    assert!(!of(vec![ended(unlock()), moved()], 0)[0].1);
}

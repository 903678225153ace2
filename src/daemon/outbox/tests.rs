mod fakes;

use std::collections::VecDeque;
use std::sync::Mutex as Lock;

use chrono::TimeDelta;
use tokio::{sync::Notify, time::Instant};

use super::*;
use engine::self_monitor;
use fakes::{Behavior, Fakes, Memory, deps, live, many, to};
use notify::{Outcome, RejectedRecipient};
use testkit::samples::{delivery_config, moved, resolved, unlock};
use testkit::time;

const START: &str = "2026-03-16T13:00:00Z";

fn after(seconds: i64) -> Timestamp {
    time(START) + TimeDelta::seconds(seconds)
}

#[tokio::test]
async fn due_delivery_is_sent_once() {
    let memory = Memory::with(&[to(&["ops", "desk"], unlock()), to(&["ops"], moved())]);
    let fakes = Fakes::new(&[("ops", Behavior::Always(Outcome::Accepted)), ("desk", Behavior::Always(Outcome::Accepted))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    let report = outbox.deliver_due(after(0)).await;
    assert_eq!(report.count(DeliveryState::Delivered), 3);
    assert_eq!(outbox.deliver_due(after(60)).await, DeliveryReport::default());
    assert_eq!(memory.states(), [DeliveryState::Delivered; 3]);
}

#[tokio::test]
async fn retry_waits_for_its_time() {
    let memory = Memory::with(&[to(&["ops"], unlock())]);
    let script = VecDeque::from([Outcome::LATER, Outcome::Uncertain]);
    let fakes = Fakes::new(&[("ops", Behavior::Sequence(Arc::new(Lock::new(script))))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    assert_eq!(outbox.deliver_due(after(0)).await.count(DeliveryState::Retrying), 1);
    assert_eq!(outbox.deliver_due(after(4)).await.attempts, []);
    assert_eq!(outbox.deliver_due(after(5)).await.count(DeliveryState::Retrying), 1);
    assert_eq!(outbox.deliver_due(after(64)).await.attempts, []);
    assert_eq!(outbox.deliver_due(after(65)).await.count(DeliveryState::Delivered), 1);
}

#[tokio::test]
async fn resolved_message_waits_for_firing_message() {
    let memory = Memory::with(&[to(&["ops"], unlock()), to(&["ops"], resolved()), to(&["ops"], moved())]);
    let fakes = Fakes::new(&[("ops", Behavior::Sequence(Arc::new(Lock::new(VecDeque::from([Outcome::LATER])))))]);
    let mut deps = deps(&memory, &fakes, after(0));
    deps.delivery.concurrency = 1;
    let outbox = Outbox::idle(deps);
    outbox.deliver_due(after(0)).await;
    assert_eq!(fakes.got("ops"), [1, 3], "only the resolved message of the failed alert waits");
    outbox.deliver_due(after(5)).await;
    assert_eq!(fakes.got("ops"), [1, 3, 1, 2]);
    assert_eq!(memory.states(), [DeliveryState::Delivered; 3]);
}

#[tokio::test]
async fn resolved_message_follows_dead_firing_message() {
    let memory = Memory::with(&[to(&["ops"], unlock()), to(&["ops"], resolved())]);
    let fakes = Fakes::new(&[("ops", Behavior::Sequence(Arc::new(Lock::new(VecDeque::from([Outcome::Refused])))))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    outbox.deliver_due(after(0)).await;
    assert_eq!(memory.states()[..2], [DeliveryState::Dead, DeliveryState::Delivered]);
}

#[tokio::test]
async fn dead_letter_raises_one_alert_without_loop() {
    let memory = Memory::with(&[to(&["ops"], unlock())]);
    let fakes = Fakes::new(&[("ops", Behavior::Always(Outcome::Refused)), ("fallback", Behavior::Always(Outcome::Refused))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    outbox.deliver_due(after(0)).await;
    outbox.deliver_due(after(3_600)).await;
    assert_eq!(memory.announced(), ["firing dead_letter"]);
    assert!(memory.texts().contains("he receiver rejected the message: said"), "{}", memory.texts());
    assert_eq!(memory.states(), [DeliveryState::Dead; 2]);
}

#[tokio::test]
async fn rejected_recipient_is_reported_once_a_day() {
    let day = 24 * 3_600;
    let rejected = vec![RejectedRecipient { address: "risk@example.com".into(), reply: "550 no such user".into() }];
    let outcome = Outcome::AcceptedExcept { rejected };
    let memory = Memory::with(&[]);
    // The receiver of the report has the same problem.
    let fakes = Fakes::new(&[("ops", Behavior::Always(outcome.clone())), ("fallback", Behavior::Always(outcome))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    for (number, notice) in many("ops", 4).iter().enumerate() {
        memory.0.lock().expect("a lock").queue(notice);
        outbox.deliver_due(after([0, 60, day, day + 60][number])).await;
    }
    outbox.deliver_due(after(2 * day)).await;
    assert!(memory.texts().contains("risk@example.com did not get a mail of receiver ops"), "{}", memory.texts());
    // One a day about ops, and at most one a day about the receiver of the report.
    let about = |receiver: &str| memory.texts().matches(&format!("of receiver {receiver},")).count();
    assert_eq!((about("ops"), about("fallback")), (2, 2), "{}", memory.texts());
    assert!(memory.states().iter().all(|state| *state == DeliveryState::Delivered));
}

#[tokio::test]
async fn gone_receiver_raises_alert() {
    let memory = Memory::with(&[to(&["ops"], unlock())]);
    let fakes = Fakes::new(&[("ops", Behavior::Always(Outcome::Gone)), ("fallback", Behavior::Always(Outcome::Accepted))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    outbox.deliver_due(after(0)).await;
    assert_eq!(memory.announced(), ["firing dead_letter", "firing receiver"]);
    assert_eq!(memory.states(), [DeliveryState::Dead, DeliveryState::Delivered, DeliveryState::Delivered]);
}

#[tokio::test]
async fn recovered_receiver_raises_no_further_alert() {
    let memory = Memory::with(&[]);
    let script = Arc::new(Lock::new(VecDeque::from(vec![Outcome::Gone, Outcome::Gone])));
    let fakes = Fakes::new(&[("ops", Behavior::Sequence(script)), ("fallback", Behavior::Always(Outcome::Accepted))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    for (minute, notice) in many("ops", 4).iter().enumerate() {
        memory.0.lock().expect("a lock").queue(notice);
        outbox.deliver_due(after(60 * i64::try_from(minute).expect("few"))).await;
    }
    let gone = "firing dead_letter";
    assert_eq!(memory.announced(), [gone, "firing receiver", gone, "resolved recovered"]);
}

#[tokio::test]
async fn dead_letter_reports_time_since_manual_retry() {
    let memory = Memory::with(&[to(&["ops"], unlock())]);
    {
        let mut state = memory.0.lock().expect("a lock");
        let delivery = &mut state.rows[0].delivery;
        (delivery.created_at, delivery.due_at, delivery.tries) = (after(-864_000), after(0), 99);
    }
    let fakes = Fakes::new(&[("ops", Behavior::Always(Outcome::LATER)), ("fallback", Behavior::Always(Outcome::Accepted))]);
    Outbox::idle(deps(&memory, &fakes, after(0))).deliver_due(after(0)).await;
    assert!(memory.texts().contains("o success in 100 attempts over 0 s: said"), "{}", memory.texts());
}

#[tokio::test]
async fn critical_delivery_is_exempt_from_hourly_limit() {
    let memory = Memory::with(&many("ops", 5));
    memory.0.lock().expect("a lock").rows[4].delivery.batch.severity = model::Severity::Critical;
    let fakes = Fakes::capped(&[("ops", Behavior::Always(Outcome::Accepted))], 2);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    // Critical deliveries come first.
    memory.0.lock().expect("a lock").rows[4].next = after(-9_000_000);
    outbox.deliver_due(after(0)).await;
    assert_eq!(fakes.got("ops").len(), 3, "{:?}", fakes.got("ops"));
    memory.0.lock().expect("a lock").queue(&many("ops", 6)[5]);
    {
        let mut state = memory.0.lock().expect("a lock");
        let last = state.rows.last_mut().expect("a row");
        last.delivery.batch.severity = model::Severity::Critical;
        last.next = after(-9_000_000);
    }
    outbox.deliver_due(after(1)).await;
    assert!(fakes.got("ops").contains(&6), "{:?}", fakes.got("ops"));
}

#[tokio::test]
async fn receiver_outage_and_recovery_are_reported_once() {
    let memory = Memory::with(&[to(&["ops"], unlock())]);
    let script = Arc::new(Lock::new(VecDeque::from(vec![Outcome::LATER; 5])));
    let fakes = Fakes::new(&[("ops", Behavior::Sequence(script)), ("fallback", Behavior::Always(Outcome::Accepted))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    for second in (0..=899).step_by(5) {
        outbox.deliver_due(after(second)).await;
    }
    assert_eq!(memory.announced(), [] as [&str; 0]);
    // The outage is reported even if no attempt is due at that time.
    for second in (900..12_000).step_by(60) {
        outbox.deliver_due(after(second)).await;
    }
    assert_eq!(memory.announced(), ["firing receiver", "resolved recovered"]);
    assert!(memory.states().iter().all(|state| *state == DeliveryState::Delivered));
}

#[tokio::test]
async fn recovery_after_restart_is_reported() {
    let memory = Memory::with(&[to(&["ops"], unlock())]);
    let live = live().load_full();
    let outage = self_monitor::receiver_dead(&"ops".into(), "said", 1, after(-3_600), 2, &live.active.context(after(-3_600)));
    memory.0.lock().expect("a lock").incident = Some(outage.0);
    let fakes = Fakes::new(&[("ops", Behavior::Always(Outcome::Accepted)), ("fallback", Behavior::Always(Outcome::Accepted))]);
    Outbox::idle(deps(&memory, &fakes, after(0))).deliver_due(after(0)).await;
    assert_eq!(memory.announced(), ["resolved recovered"]);
}

#[tokio::test]
async fn receiver_outage_saves_attempts_of_other_deliveries() {
    let memory = Memory::with(&many("ops", 50));
    let fakes = Fakes::new(&[("ops", Behavior::Always(Outcome::LATER)), ("fallback", Behavior::Always(Outcome::Accepted))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    for second in 0..600 {
        outbox.deliver_due(after(second)).await;
    }
    let attempts: usize = fakes.got("ops").len();
    assert!(attempts < 20, "{attempts} attempts in ten minutes");
    let untouched = memory.states().iter().filter(|state| **state == DeliveryState::Due).count();
    assert!(untouched > 30, "{untouched} without an attempt");
}

#[tokio::test]
async fn retries_are_due_at_once_after_recovery() {
    let memory = Memory::with(&many("ops", 20));
    let script = Arc::new(Lock::new(VecDeque::from(vec![Outcome::LATER; 12])));
    let fakes = Fakes::new(&[("ops", Behavior::Sequence(script)), ("fallback", Behavior::Always(Outcome::Accepted))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    let is_all_delivered = || memory.states().iter().all(|state| *state == DeliveryState::Delivered);
    let mut back_at = None;
    for second in 0..7_200 {
        let report = outbox.deliver_due(after(second)).await;
        if back_at.is_none() && report.count(DeliveryState::Delivered) > 0 {
            back_at = Some(second);
        }
        if back_at.is_some() && is_all_delivered() {
            break;
        }
    }
    let attempts: Vec<usize> = memory.0.lock().expect("a lock").rows.iter().map(|row| row.attempts.len()).collect();
    assert!(is_all_delivered(), "back after {back_at:?} s, attempts {attempts:?}");
    let state = memory.0.lock().expect("a lock");
    let last = state.rows.iter().filter_map(|row| row.attempts.last()).map(|attempt| attempt.at).max();
    assert_eq!(last, back_at.map(after), "all in the same pass");
}

#[tokio::test]
async fn orphans_become_dead_letters_and_raise_alerts() {
    let memory = Memory::with(&[to(&["old"], unlock()), to(&["old"], resolved()), to(&["fallback"], moved())]);
    let fakes = Fakes::new(&[("fallback", Behavior::Always(Outcome::Accepted))]);
    Outbox::idle(deps(&memory, &fakes, after(0))).deliver_due(after(0)).await;
    assert_eq!(memory.states()[..3], [DeliveryState::Dead, DeliveryState::Dead, DeliveryState::Delivered]);
    assert_eq!(memory.announced().len(), 2);
    assert!(memory.texts().contains("is no longer in the config"), "{}", memory.texts());
}

#[tokio::test]
async fn hourly_limit_is_respected() {
    let memory = Memory::with(&many("ops", 10));
    let fakes = Fakes::capped(&[("ops", Behavior::Always(Outcome::Accepted))], 4);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    for (second, so_far) in [(0, 5), (3_599, 5), (3_600, 10)] {
        outbox.deliver_due(after(second)).await;
        assert_eq!(fakes.got("ops").len(), so_far, "after {second} s");
    }
}

#[tokio::test]
async fn unrecorded_attempt_is_not_repeated() {
    let memory = Memory::with(&[to(&["ops"], unlock()), to(&["ops"], moved())]);
    memory.0.lock().expect("a lock").failing_writes = 2;
    let fakes = Fakes::new(&[("ops", Behavior::Always(Outcome::Accepted))]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    let report = outbox.deliver_due(after(0)).await;
    assert!(!report.errors.is_empty());
    outbox.deliver_due(after(1)).await;
    outbox.deliver_due(after(2)).await;
    outbox.deliver_due(after(3)).await;
    assert_eq!(memory.states(), [DeliveryState::Delivered; 2]);
    let mut got = fakes.got("ops");
    got.sort_unstable();
    assert_eq!(got, [1, 2], "each was sent once");
}

#[tokio::test]
async fn panic_costs_one_attempt_and_not_the_worker() {
    let memory = Memory::with(&[to(&["ops"], unlock())]);
    let fakes = Fakes::new(&[("ops", Behavior::Panics)]);
    let outbox = Outbox::idle(deps(&memory, &fakes, after(0)));
    assert_eq!(outbox.deliver_due(after(0)).await.count(DeliveryState::Retrying), 1);
    assert_eq!(outbox.deliver_due(after(5)).await.count(DeliveryState::Retrying), 1);
}

/// Waits up to ten seconds for a condition.
async fn until(what: &str, is_true: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_true() {
        assert!(Instant::now() < deadline, "timed out: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn hung_receiver_delays_no_other_and_is_cut_off_at_stop() {
    let mut notifications = many("hung", 10);
    notifications.extend(many("ops", 100));
    let memory = Memory::with(&notifications);
    let fakes = Fakes::new(&[("hung", Behavior::Hangs), ("ops", Behavior::Always(Outcome::Accepted))]);
    let outbox = Outbox::start(deps(&memory, &fakes, after(0)));
    until("all messages to the healthy receiver", || fakes.got("ops").len() == 100).await;
    assert_eq!(outbox.stop(Duration::from_millis(50)).await, 1);
    let states = memory.states();
    assert!(states[..10].iter().all(|state| *state == DeliveryState::Due), "deliveries that were cut off are still due");
    assert!(states[10..].iter().all(|state| *state == DeliveryState::Delivered), "accepted deliveries are recorded");
}

#[tokio::test]
async fn slow_store_limits_unrecorded_attempts() {
    let memory = Memory::with(&many("ops", 100));
    memory.1.send_replace(true);
    let fakes = Fakes::new(&[("ops", Behavior::Always(Outcome::Accepted))]);
    let outbox = Outbox::start(deps(&memory, &fakes, after(0)));
    until("twice the concurrency", || fakes.got("ops").len() == 8).await;
    for _ in 0..1_000 {
        // Further attempts would start here if the limit allowed them.
        tokio::task::yield_now().await;
    }
    assert_eq!(fakes.got("ops").len(), 8);
    memory.1.send_replace(false);
    until("all messages", || memory.states() == [DeliveryState::Delivered; 100]).await;
    assert_eq!(outbox.stop(Duration::from_secs(5)).await, 0);
    let mut got = fakes.got("ops");
    got.sort_unstable();
    assert!(got.windows(2).all(|pair| pair[0] < pair[1]), "each was sent once");
    assert!(memory.0.lock().expect("a lock").writes < 100, "several attempts share a transaction");
}

#[tokio::test]
async fn running_outbox_wakes_respects_concurrency_and_stops() {
    let memory = Memory::with(&[]);
    let fakes = Fakes::new(&[("ops", Behavior::Always(Outcome::Accepted))]);
    let outbox = Outbox::start(deps(&memory, &fakes, after(0)));
    {
        let mut state = memory.0.lock().expect("a lock");
        many("ops", 1_000).iter().for_each(|notice| state.queue(notice));
    }
    outbox.wake();
    until("a thousand messages", || fakes.got("ops").len() == 1_000).await;
    assert_eq!(outbox.stop(Duration::from_secs(5)).await, 0);
    assert_eq!(memory.states(), [DeliveryState::Delivered; 1_000]);
    let mut got = fakes.got("ops");
    got.sort_unstable();
    assert!(got.windows(2).all(|pair| pair[0] < pair[1]), "each was sent once");
    assert!(fakes.in_flight.lock().expect("a lock").1 <= 4);
    assert!(memory.0.lock().expect("a lock").writes <= 1_000);
}

#[tokio::test]
async fn concurrency_is_limited_by_receiver_and_config() {
    for (own, max) in [(1, 1), (2, 2), (9, 4)] {
        let gate = Arc::new(Notify::new());
        let memory = Memory::with(&many("ops", 12));
        let fakes = Fakes::new(&[("ops", Behavior::Waits(gate.clone()))]);
        *fakes.concurrency.lock().expect("a lock") = Some(own);
        let outbox = Outbox::start(deps(&memory, &fakes, after(0)));
        for sent in 1..=12 {
            until("the allowed attempts", || fakes.in_flight.lock().expect("a lock").0 >= max.min(13 - sent)).await;
            gate.notify_one();
            until("the end of an attempt", || fakes.got("ops").len() == sent).await;
        }
        assert_eq!(fakes.in_flight.lock().expect("a lock").1, max, "{own} in parallel");
        assert_eq!(outbox.stop(Duration::from_secs(5)).await, 0);
    }
}

#[tokio::test]
async fn reload_keeps_attempts_in_flight_and_dead_letters_orphans() {
    let gate = Arc::new(Notify::new());
    let mut notifications = many("old", 6);
    notifications.extend(many("ops", 1));
    let memory = Memory::with(&notifications);
    let before = Fakes::new(&[("old", Behavior::Waits(gate.clone())), ("ops", Behavior::Waits(gate.clone()))]);
    let outbox = Outbox::start(deps(&memory, &before, after(0)));
    // Four to one receiver and one to the other.
    until("the allowed attempts", || before.in_flight.lock().expect("a lock").0 == 5).await;

    let accepts = || Behavior::Always(Outcome::Accepted);
    let now = Fakes::new(&[("ops", accepts()), ("new", accepts()), ("fallback", accepts())]);
    outbox.replace(now.clone(), delivery_config()).await;
    {
        let mut state = memory.0.lock().expect("a lock");
        many("new", 3).iter().chain(&many("ops", 3)[1..]).for_each(|notice| state.queue(notice));
    }
    outbox.wake();
    until("the new receiver and the new settings of the old one", || now.got("new").len() == 3 && now.got("ops").len() == 2)
        .await;
    assert_eq!(memory.states()[..7], [DeliveryState::Due; 7], "attempts in flight are neither repeated nor dropped");
    for _ in 0..5 {
        gate.notify_one();
    }
    until("the end of the attempts", || memory.states()[..7].iter().all(|state| *state != DeliveryState::Due)).await;
    let states = memory.states();
    assert_eq!(states[..6].iter().filter(|state| **state == DeliveryState::Delivered).count(), 4, "{states:?}");
    assert_eq!(states[..6].iter().filter(|state| **state == DeliveryState::Dead).count(), 2, "orphans are dead letters");
    assert_eq!(states[6], DeliveryState::Delivered);
    assert_eq!((before.got("old").len(), before.got("ops").len()), (4, 1), "attempts in flight keep their receivers");
    until("the alerts", || now.got("fallback").len() == 2).await;
    assert_eq!(outbox.stop(Duration::from_secs(5)).await, 0);
    assert_eq!(outbox.progress().len(), 3, "one worker per receiver");
}

//! Events, notification bodies, and limits.

use super::*;

#[test]
fn new_burn_notifies_once_unless_it_is_old() {
    let mut world = World::new(vec![Fake { holds: |scope| at_least(scope, 100.0), ..rule("Burn", On::Record(Resource::Burn)) }]);
    for (key, date, value) in [("new", "2026-03-20", 500.0), ("old", "2026-03-01", 500.0), ("dust", "2026-03-20", 1.0)] {
        world.record(key, burn(date, value));
        world.tokens[0].added.push(Tracked { key: key.into(), record: burn(date, value) });
    }
    assert_eq!(world.tick("2026-03-21"), ["event added → ops"]);
    assert_eq!((world.only().subject.as_str(), world.only().state), ("burn/arbitrum/new", AlertState::Event));
    assert_eq!(world.tick("2026-03-21"), NOTHING, "the same poll evaluated twice");
    world.tokens[0].added.clear();
    assert_eq!(world.tick("2026-03-22"), NOTHING);
    assert_eq!(world.alerts.len(), 1);
}

#[test]
fn each_matching_change_is_one_event() {
    let moved = |key: &str| {
        let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &"arbitrum".into());
        change.key = Some(key.into());
        change.old = Some(unlock("2026-03-31", Some(5e6)));
        change.new = Some(unlock("2026-04-10", Some(5e6)));
        change
    };
    let mut world = World::new(vec![
        rule("Moved", On::Change(Resource::Unlock, Some(ChangeKind::Rescheduled))),
        rule("Any", On::Change(Resource::Unlock, None)),
        rule("Burns", On::Change(Resource::Burn, None)),
    ]);
    let rewritten = Change::of(ChangeKind::Rewritten, Resource::Unlock, &"arbitrum".into());
    world.tokens[0].changes = vec![moved("a"), rewritten, moved("b"), moved("b")];
    let notified = world.tick("2026-03-21T10:00:00Z");
    assert_eq!(notified.iter().filter(|text| *text == "event rescheduled → ops").count(), 6);
    assert_eq!(notified.iter().filter(|text| *text == "event rewritten → ops").count(), 1);
    assert_eq!(world.tick("2026-03-21T10:00:00Z"), NOTHING, "the same poll evaluated twice");
    let subjects: BTreeSet<_> = world.alerts.values().map(|alert| alert.subject.as_str()).collect();
    assert!(subjects.contains("change/arbitrum/unlock/rescheduled/b/2026-03-21T10:00:00Z#2"), "{subjects:?}");
    assert!(subjects.contains("change/arbitrum/unlock/rewritten/series/2026-03-21T10:00:00Z#1"), "{subjects:?}");
    let body =
        &world.notified.values().find(|notification| notification.body.reason == "rescheduled").expect("a notification").body;
    assert_eq!(body.when.as_deref(), Some("on 10 Apr 2026"), "the new date");
    assert!(body.change.is_some() && body.record.is_some());
    assert_eq!(world.tick("2026-03-22").len(), 7, "the same kind of change another day is another event");
}

#[test]
fn body_contains_the_known_facts() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    world.tick("2026-03-25");
    let notification = world.notified.values().next().expect("a notification");
    let body = &notification.body;
    assert_eq!((body.rule.as_str(), body.status.as_str(), body.reason.as_str()), ("Big", "firing", "lead 7d"));
    assert_eq!(body.token.as_ref().map(|token| token.symbol.as_str()), Some("arbitrum"));
    assert_eq!(body.record.as_ref().and_then(|record| record.pointer("/cliffUnlocks/cliffValue")), Some(&serde_json::json!(5e6)));
    assert!(body.days_until.is_some_and(|days| (days - 6.0).abs() < 1e-9));
    assert_eq!((body.lead.as_deref(), body.source.data_source.as_deref()), (Some("7d"), Some("whitepaper")));
    assert_eq!((body.source.polled_at, body.starts_at), (Some(time("2026-03-25")), time("2026-03-25")));
    assert_eq!(notification.at, time("2026-03-25"));
}

#[test]
fn limit_notifies_the_largest_and_summarizes_the_rest() {
    let mut world = World::new(vec![Fake { limit: Some(2), ..ahead("Big", &["30d", "1d"]) }]);
    world.unlock("far", "2026-03-20", 9e9);
    world.unlock("near", "2026-03-05", 1.0);
    world.unlock("large", "2026-03-10", 2e6);
    world.unlock("small", "2026-03-10", 1e6);
    let mut notified = world.tick("2026-03-01");
    notified.sort();
    assert_eq!(notified, ["event limit → ops", "firing lead 30d → ops", "firing lead 30d → ops"]);
    let keys = |world: &World, notified: bool| -> Vec<String> {
        let firing =
            world.alerts.values().filter(|alert| alert.state == AlertState::Firing && alert.notified.is_empty() != notified);
        let mut keys: Vec<_> = firing.filter_map(|alert| alert.key.as_ref()).map(ToString::to_string).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&world, true), ["far", "large"]);
    assert_eq!(keys(&world, false), ["near", "small"], "recorded as firing, without receivers");
    let summary = world.alerts.values().find(|alert| alert.subject == "limit/Big/2026-03-01T00:00:00Z").expect("a summary");
    assert_eq!(summary.annotations["summary"], "Big: 2 more alerts left out by limit = 2; see `cliffwatch alerts --rule Big`");
    assert_eq!(summary.labels["severity"], "warning");
    assert_eq!(world.tick("2026-03-01"), NOTHING);
    world.tokens[0].records.retain(|tracked| tracked.key.as_str() == "far");
    assert_eq!(world.tick("2026-03-02"), ["resolved removed → ops"], "alerts left out resolve without a notification");
    assert_eq!(world.tick("2026-03-19"), ["reminder lead 1d → ops"]);
}

#[test]
fn limit_ranks_the_alerts_of_all_batches_of_a_cycle() {
    let rules = [Fake { limit: Some(2), ..ahead("Big", &["30d"]) }];
    let (routes, now) = (routes(), time("2026-03-01"));
    let mut limits = Limits::default();
    let values = BTreeMap::from([("a", [1e6, 413e6]), ("b", [2e6, 3e6]), ("c", [10e6, 4e6])]);
    let step = |token_id: &str, limits: &mut Limits| {
        let known = token(token_id);
        let [one, two] = values[token_id];
        let records = [("one", one), ("two", two)]
            .map(|(key, value)| Tracked { key: key.into(), record: unlock("2026-03-05", Some(value)) });
        let facts = TokenFacts {
            token: &known.token,
            is_watched: true,
            records: &records,
            linear: None,
            corrections: &[],
            resources: &[Resource::Unlock],
            changes: &[],
            added: &[],
            late: &[],
            alerts: &[],
            polled_at: &[],
        };
        evaluate_by(&[facts], &rules, AlertLifecycle::new(&routes, now), limits).assign_episodes(&[])
    };
    for batch in values.keys() {
        assert_eq!(step(batch, &mut limits), Evaluation { rule_matches: vec![("Big".into(), now)], ..Evaluation::default() });
    }
    assert!(limits.is_holding(), "nothing is stored before it is decided");
    let (mut notified, mut left_out, mut alerts) = (Vec::new(), Vec::new(), 0);
    for held in limits.decide() {
        let evaluation = step(held.as_str(), &mut limits);
        alerts += evaluation.alerts.len();
        notified.extend(evaluation.notifications.iter().filter_map(|of| of.body.event.clone()));
        left_out.extend(evaluation.left_out);
    }
    limits.collect();
    assert_eq!((notified.as_slice(), alerts), (&["unlock/a/two".to_owned(), "unlock/c/one".to_owned()][..], 6));
    let is_recorded =
        |notified: &Notification| notified.receivers.is_empty() && notified.body.left_out_by == Some(2) && notified.at == now;
    assert!(left_out.len() == 4 && left_out.iter().all(is_recorded), "{left_out:?}");
    assert!(
        left_out.iter().all(|notified| notified.body.id == notified.alert && !notified.alert.as_str().is_empty()),
        "{left_out:?}"
    );
    assert!(!limits.is_holding());
    let summary = limits.summaries(now).assign_episodes(&[]);
    assert_eq!(summary.notifications.len(), 1);
    assert!(summary.alerts[0].annotations["summary"].starts_with("Big: 4 more alerts left out by limit = 2"));
}

#[test]
fn limit_ranks_the_events_of_all_batches_of_a_cycle() {
    let rules = [Fake { limit: Some(2), ..rule("Moved", On::Change(Resource::Unlock, None)) }];
    let (routes, now) = (routes(), time("2026-03-01"));
    let mut limits = Limits::default();
    let mut held = Vec::new();
    for (token_id, value) in [("a", 10e6), ("b", 2e6), ("c", 413e6), ("d", 3e6), ("e", 20e6)] {
        let known = token(token_id);
        let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &token_id.into());
        change.new = Some(unlock("2026-04-10", Some(value)));
        let facts = TokenFacts {
            token: &known.token,
            is_watched: true,
            records: &[],
            linear: None,
            corrections: &[],
            resources: &[Resource::Unlock],
            changes: &[change],
            added: &[],
            late: &[],
            alerts: &[],
            polled_at: &[],
        };
        let batch = evaluate_by(&[facts], &rules, AlertLifecycle::new(&routes, now), &mut limits).assign_episodes(&[]);
        assert!(batch.notifications.is_empty() && batch.left_out.is_empty() && batch.alerts.is_empty(), "{token_id}: {batch:?}");
        held.extend(batch.held);
    }
    assert!(limits.has_held_events());
    held.iter().for_each(|event| limits.rank(std::slice::from_ref(event)));
    let left_out = limits.leave_out(held.clone());
    let released = limits.release(held.clone());
    limits.end_events();
    let tokens = |events: &[Notification]| -> Vec<String> {
        events.iter().filter_map(|event| event.body.token.as_ref().map(|token| token.id.clone())).collect()
    };
    assert_eq!((tokens(&released.notifications), tokens(&left_out.left_out)), (words(&["c", "e"]), words(&["a", "b", "d"])));
    assert_eq!((released.decided.len(), left_out.decided.len()), (2, 3), "each event is decided once");
    assert!(released.alerts.iter().all(|alert| !alert.notified.is_empty()));
    assert!(left_out.alerts.iter().all(|alert| alert.notified.is_empty()));
    assert!(left_out.left_out.iter().all(|event| event.receivers.is_empty() && event.body.left_out_by == Some(2)));
    // A later batch of the same cycle finds the limit used up.
    limits.rank(&held[..1]);
    assert_eq!(tokens(&limits.leave_out(held[..1].to_vec()).left_out), ["a"]);
    let summary = limits.summaries(now).assign_episodes(&[]);
    assert!(summary.alerts[0].annotations["summary"].starts_with("Moved: 4 more alerts left out by limit = 2"));
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[test]
fn emission_fires_until_since_has_elapsed() {
    let day = wire::Emission { start_date: time("2026-03-10").into(), end_date: time("2026-03-11").into(), ..Default::default() };
    let mut world = World::new(vec![rule("Much", On::Record(Resource::Emission))]);
    world.record("2026-03-10", Record::Emission(Box::new(day)));
    assert_eq!(world.tick("2026-03-11T02:00:00Z"), ["firing firing → ops"], "sent after the day, when the source publishes it");
    assert_eq!(world.tick("2026-03-17"), NOTHING);
    assert_eq!(world.tick("2026-03-18"), ["resolved passed → ops"]);
    assert_eq!(world.tick("2026-03-19"), NOTHING);
}

#[test]
fn allocation_rule_fires_while_its_condition_is_true() {
    let row = |kind: &str| {
        Record::Allocation(Box::new(wire::Allocation { allocation_type: kind.to_owned().into(), ..Default::default() }))
    };
    let holds: fn(&Scope<'_>) -> Truth = |scope| match scope.record.map(|tracked| &tracked.record) {
        Some(Record::Allocation(row)) if row.allocation_type.as_str() == Some("TBD") => Truth::True,
        _ => Truth::False,
    };
    let mut world = World::new(vec![Fake { holds, ..rule("Undecided", On::Record(Resource::Allocation)) }]);
    world.record("Team", row("TBD"));
    assert_eq!(world.tick("2026-03-11"), ["firing firing → ops"]);
    assert_eq!(world.only().recheck_at, None);
    world.record("Team", row("Scheduled"));
    assert_eq!(world.tick("2026-03-12"), ["resolved cleared → ops"]);
}

#[test]
fn template_error_is_reported_once_per_rule_and_loses_no_alert() {
    let mut world = World::new(vec![Fake { template_error: Some("no such field".into()), ..ahead("Big", &["7d"]) }]);
    world.unlock("a", "2026-03-31", 5e6);
    world.unlock("b", "2026-03-31", 5e6);
    let evaluation = world.evaluate(time("2026-03-25"));
    assert_eq!(evaluation.notifications.len(), 2);
    assert_eq!(evaluation.template_errors, [("Big".into(), "no such field".to_owned())]);
    assert_eq!(evaluation.rule_matches, [("Big".into(), time("2026-03-25"))]);
}

#[test]
fn recheck_at_is_the_next_instant_that_may_change_the_alert() {
    let mut world = World::new(vec![ahead("Big", &["30d", "7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    world.tick("2026-03-10");
    assert_eq!(world.only().recheck_at, Some(time("2026-03-24")));
    world.tick("2026-03-24");
    assert_eq!(world.only().recheck_at, Some(time("2026-03-31")));
    world.rules[0].is_clock_dependent = true;
    world.tick("2026-03-25");
    assert!(world.only().recheck_at.is_some_and(|at| at <= time("2026-03-25")), "due in every cycle");
    let evaluation = world.evaluate(time("2026-03-25T00:01:00Z"));
    assert_eq!(evaluation.alerts, [], "not written in every cycle");
}

#[test]
fn windows_cover_unlocks_that_came_within_a_lead_time() {
    let (until, now) = (time("2026-03-01"), time("2026-03-02"));
    let rules = [ahead("Big", &["30d", "7d"]), ahead("Near", &["6d"]), rule("Burn", On::Record(Resource::Burn))];
    assert_eq!(
        windows_of(&rules, Some(until), now),
        [(time("2026-03-07"), time("2026-03-09")), (time("2026-03-31"), time("2026-04-01"))]
    );
    assert_eq!(windows_of(&rules, Some(now), now), []);
    assert_eq!(windows_of(&rules, Some(now), until), [], "a clock that was set back opens no window");
    assert_eq!(windows_of(&rules, None, now), [(time("2026-01-29"), time("2026-04-01"))]);
    let clock = [Fake { is_clock_dependent: true, ..ahead("Clock", &["3d"]) }];
    assert_eq!(windows_of(&clock, Some(until), now), [(time("2026-01-29"), time("2026-03-05"))]);
    let expired = [Fake { expires: Some(now), ..ahead("Expired", &["3d"]) }];
    assert_eq!(windows_of(&expired, None, now), []);
    let any = [ahead("Any", &[])];
    assert_eq!(windows_of(&any, None, now), [(time("2026-01-29"), DateTime::<Utc>::MAX_UTC)]);
    assert_eq!(windows_of(&any, Some(until), now), []);
}

#[test]
fn joined_transitions_keep_notifications_with_their_alerts() {
    let mut world = World::new(vec![ahead("Big", &["7d"])]);
    world.unlock("a", "2026-03-31", 5e6);
    let now = time("2026-03-25");
    let polled: [(Resource, Timestamp); 0] = [];
    let facts = |known: &'static str| (Token::unknown(known.into()), world.tokens[0].records.clone());
    let (one, two) = (facts("arbitrum"), facts("optimism"));
    let transitions = |(token, records): &(Token, Vec<Tracked>)| {
        let facts = TokenFacts {
            token,
            is_watched: true,
            records,
            linear: None,
            corrections: &[],
            resources: &[Resource::Unlock],
            changes: &[],
            added: &[],
            late: &[],
            alerts: &[],
            polled_at: &polled,
        };
        evaluate_by(&[facts], &world.rules, AlertLifecycle::new(&world.routes, now), &mut Limits::default())
    };
    let joined = transitions(&one).join(transitions(&two));
    assert_eq!(joined.openings().len(), 2);
    let evaluation = joined.assign_episodes(&[0, 4]);
    for notification in &evaluation.notifications {
        let alert = evaluation.alerts.iter().find(|alert| alert.id == notification.alert).expect("its alert");
        assert_eq!(notification.body.token.as_ref().map(|token| token.id.as_str()), alert.token.as_ref().map(TokenId::as_str));
    }
    assert_eq!(evaluation.alerts.iter().map(|alert| alert.episode).collect::<Vec<_>>(), [1, 5]);
}

#[test]
fn token_is_due_when_a_correction_becomes_too_old_for_a_rule_on_unlocks() {
    let text = "[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = \"corrections('30d').count > 2\"\n\
                [[rule]]\nalert = \"B\"\non = \"unlock.rescheduled\"\nwhen = \"corrections('90d').count > 2\"\n";
    let source = model::SourceText { file: "rules/a.toml".into(), text: text.to_owned() };
    let around = rules::Surroundings { receivers: &[], groups: &std::collections::BTreeMap::new(), now: time("2026-03-01") };
    let set = rules::load(&[source], &around).set;
    let windows = correction_windows(&set, Some(time("2026-03-01")), time("2026-03-02"));
    assert_eq!(windows, [(time("2026-01-30"), time("2026-01-31"))], "a rule on changes is evaluated with its change");
    assert_eq!(correction_windows(&set, None, time("2026-03-02")), [], "all unlocks are evaluated");
    assert_eq!(correction_windows(&set, Some(time("2026-03-02")), time("2026-03-01")), []);
}

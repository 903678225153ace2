//! Properties of evaluation, with random schedules.

use super::*;

/// Returns the instant `hour` hours after the start of the year.
fn at_hour(hour: i64) -> Timestamp {
    time("2026-01-01") + TimeDelta::hours(hour)
}

/// Generates schedules: the key, the hour of the unlock, and its value.
fn schedule() -> impl Strategy<Value = Vec<(u8, i64, Option<f64>)>> {
    prop::collection::vec((0_u8..6, 0_i64..2_000, prop::option::of(0.0..2e6_f64)), 0..8)
}

fn fill<R: RuleEval>(world: &mut World<R>, schedule: &[(u8, i64, Option<f64>)]) {
    world.tokens[0].records.clear();
    for (key, hour, value) in schedule {
        world.record(&format!("k{key}"), unlock(&iso(at_hour(*hour)), *value));
    }
}

fn world_of_rules() -> World {
    let level: fn(&Scope<'_>) -> Option<u32> = |scope| value(scope).filter(|value| *value > 1.5e6).map(|_| 0);
    World::new(vec![
        Fake { holds: |scope| at_least(scope, 1e6), level, ..ahead("A", &["30d", "7d", "1d"]) },
        Fake {
            pending_for: TimeDelta::hours(5),
            keep: TimeDelta::hours(9),
            holds: |scope| at_least(scope, 5e5),
            ..ahead("B", &["14d", "2d"])
        },
        Fake { limit: Some(1), ..ahead("C", &[]) },
    ])
}

const RULES: &str = r#"
[[rule]]
alert = "Value"
on = "unlock"
within = ["30d", "7d", "1d"]
when = "cliffValue >= 1e6"

[[rule]]
alert = "Pending"
on = "unlock"
for = "5h"
keep_firing_for = "9h"
when = "cliffValue / 1000.0 > 500.0 || cliffAmount > 3.0"

[[rule]]
alert = "Missing"
on = "unlock"
missing = "fire"
when = "cliffAmount > 1.0"

[[rule]]
alert = "Small"
on = "unlock"
within = ["14d"]
when = "!(cliffValue > 4e5) && daysUntil < 9.0"
"#;

fn rules_on_unlocks() -> Vec<rules::Rule> {
    let source = model::SourceText { file: "rules/a.toml".into(), text: RULES.to_owned() };
    let around = rules::Surroundings { receivers: &[], groups: &BTreeMap::new(), now: at_hour(0) };
    let loaded = rules::load(&[source], &around);
    assert!(loaded.is_usable(), "{:?}", loaded.diagnostics);
    loaded.set.rules
}

/// A rule that is never excluded by the bounds of the records.
struct NeverExcluded(rules::Rule);

impl RuleEval for NeverExcluded {
    fn terms(&self) -> RuleTerms<'_> {
        self.0.terms()
    }
    fn covers(&self, scope: &Scope<'_>) -> bool {
        RuleEval::covers(&self.0, scope)
    }
    fn evaluate(&self, scope: &Scope<'_>) -> Truth {
        RuleEval::evaluate(&self.0, scope)
    }
    fn clears(&self, scope: &Scope<'_>) -> bool {
        RuleEval::clears(&self.0, scope)
    }
    fn level(&self, scope: &Scope<'_>) -> Option<u32> {
        RuleEval::level(&self.0, scope)
    }
    fn render(&self, scope: &Scope<'_>, level: Option<u32>) -> Rendered {
        RuleEval::render(&self.0, scope, level)
    }
    fn mismatch(&self, scope: &Scope<'_>) -> Option<rules::Mismatch> {
        RuleEval::mismatch(&self.0, scope)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bounds_exclude_no_alert_and_no_update(steps in prop::collection::vec((schedule(), 0_i64..400), 1..6)) {
        let mut fast = World::new(rules_on_unlocks());
        let mut whole = World::new(rules_on_unlocks().into_iter().map(NeverExcluded).collect());
        let mut hour = 0;
        for (schedule, wait) in steps {
            hour += wait;
            fill(&mut fast, &schedule);
            fill(&mut whole, &schedule);
            let (one, other) = (fast.evaluate(at_hour(hour)), whole.evaluate(at_hour(hour)));
            prop_assert_eq!(&one, &other);
            fast.commit(one);
            whole.commit(other);
        }
    }

    #[test]
    fn evaluating_the_same_facts_twice_changes_nothing(steps in prop::collection::vec((schedule(), 0_i64..400), 1..6)) {
        let mut world = world_of_rules();
        let mut hour = 0;
        for (schedule, wait) in steps {
            hour += wait;
            fill(&mut world, &schedule);
            world.tick(&iso(at_hour(hour)));
            let again = world.evaluate(at_hour(hour));
            // The clock did not move, so nothing is written either.
            prop_assert_eq!(again.notifications, vec![]);
            prop_assert_eq!(again.alerts, vec![]);
        }
    }

    #[test]
    fn result_does_not_depend_on_the_order_of_rules_and_records(steps in prop::collection::vec((schedule(), 0_i64..400), 1..5), turn in 0_usize..3) {
        let mut straight = world_of_rules();
        let mut turned = world_of_rules();
        turned.rules.rotate_left(turn);
        let mut hour = 0;
        for (schedule, wait) in steps {
            hour += wait;
            fill(&mut straight, &schedule);
            fill(&mut turned, &schedule);
            turned.tokens[0].records.reverse();
            let (one, other) = (straight.evaluate(at_hour(hour)), turned.evaluate(at_hour(hour)));
            prop_assert_eq!(&one, &other);
            straight.commit(one);
            turned.commit(other);
        }
    }

    #[test]
    fn each_lead_time_notifies_at_most_once_and_the_current_one_is_never_missed(due in 0_i64..2_000, mut hours in prop::collection::vec(0_i64..2_000, 1..60)) {
        let leads = [("30d", 720), ("7d", 168), ("1d", 24)];
        let mut world = World::new(vec![ahead("Big", &["30d", "7d", "1d"])]);
        world.unlock("a", &iso(at_hour(due)), 5e6);
        hours.sort_unstable();
        let mut notified = BTreeSet::new();
        for hour in hours {
            let new = world.tick(&iso(at_hour(hour)));
            prop_assert!(new.len() <= 1, "one message per evaluation: {:?}", new);
            let smallest = leads.iter().rev().find(|(_, ahead)| hour < due && due - ahead <= hour);
            for text in new.iter().filter(|text| !text.starts_with("resolved")) {
                let (name, _) = smallest.expect("a lead time applies");
                let expected = format!("lead {name} ");
                prop_assert!(text.contains(&expected));
                prop_assert!(notified.insert(*name), "{} sent twice", name);
            }
            if let Some((name, _)) = smallest {
                prop_assert!(notified.contains(name), "at hour {} of {}, lead {} applies and was not sent", hour, due, name);
            }
        }
    }

    #[test]
    fn windows_and_recheck_times_miss_nothing(schedule in schedule(), mut hours in prop::collection::vec(0_i64..2_500, 2..40)) {
        // One world is evaluated in each cycle, the other only if windows or `recheck_at` require it.
        hours.sort_unstable();
        let mut full = world_of_rules();
        let mut lazy = world_of_rules();
        fill(&mut full, &schedule);
        fill(&mut lazy, &schedule);
        let mut until = None;
        for hour in hours {
            let now = at_hour(hour);
            let windows = windows_of(&lazy.rules, until, now);
            let begins = |from: Timestamp, to: Timestamp| lazy.tokens[0].records.iter().any(|tracked| {
                tracked.record.interval().is_some_and(|interval| from < interval.start && interval.start <= to)
            });
            let is_due = windows.iter().any(|(from, to)| begins(*from, *to))
                || lazy.alerts.values().any(|alert| alert.recheck_at.is_some_and(|at| at <= now));
            let notified = full.tick(&iso(now));
            let seen = if is_due { lazy.tick(&iso(now)) } else { Vec::new() };
            prop_assert_eq!(notified, seen, "at {}", now);
            until = Some(now);
        }
    }
}

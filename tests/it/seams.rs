//! Two feeds with the same information, partly unreadable responses, and failures halfway: everything is notified exactly once.

use cliffwatch::{
    daemon::schedule::Job,
    model::{
        config::Config,
        supply::{Endpoint, Resource},
        wire,
    },
};
use serde_json::{Value, json};
use testkit::faults::Fault;

use crate::it::support::{RULES, Setup, TestApp, burn, cliff, item, lines, time};

/// The alerts of `bodies` as `status reason rule token`, in order.
fn reasons(bodies: &[Value]) -> Vec<String> {
    let alerts = bodies.iter().flat_map(|body| body["data"]["alerts"].as_array().expect("alerts"));
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    alerts
        .map(|alert| {
            format!(
                "{} {} {} {}",
                text(&alert["status"]),
                text(&alert["reason"]),
                text(&alert["rule"]),
                text(&alert["token"]["id"])
            )
        })
        .collect()
}

// ---- upcoming and the schedule ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unlock_from_upcoming_and_from_its_schedule_is_one_alert() {
    // An unlock of month precision may happen on any day of the current month.
    for (precision, first, later) in [("second", "lead 30d", "lead 7d"), ("day", "lead 30d", "lead 7d"), ("month", "lead 1d", "")]
    {
        let fill = move |edit: &mut cliffwatch::service::Edit<'_>| {
            edit.put_token(&item("alpha", "ALP"))?;
            let dates = ["2026-03-20T00:00:00Z", "2026-06-20T00:00:00Z", "2026-09-20T00:00:00Z"];
            edit.put_events("alpha", dates.map(|date| cliff(date, "Team", 2e6, precision)).to_vec())
        };
        let app = TestApp::with(Setup { fill: Box::new(fill), ..Setup::default() }).await;
        app.poll(Endpoint::TokenList).await;
        app.poll(Endpoint::Upcoming).await;
        app.evaluate().await;
        app.deliver().await;
        let bodies = app.hook.take();
        assert_eq!(
            reasons(&bodies),
            [format!("firing {first} BigCliffAhead alpha")],
            "{precision}: notified from upcoming alone"
        );
        let id = bodies[0]["data"]["alerts"][0]["id"].clone();

        assert_eq!(app.tick_and_deliver().await, [""; 0], "{precision}: the schedule adds nothing new");
        app.at("2026-03-14T00:00:00Z");
        app.tick().await;
        app.deliver().await;
        let bodies = app.hook.take();
        if later.is_empty() {
            assert_eq!(reasons(&bodies), [""; 0], "{precision}");
        } else {
            assert_eq!(reasons(&bodies), [format!("firing {later} BigCliffAhead alpha")], "{precision}");
            assert_eq!(bodies[0]["data"]["alerts"][0]["id"], id, "{precision}: the alert id changed");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn move_seen_first_in_upcoming_is_notified_once() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    app.at("2026-03-01T06:00:00Z");
    app.edit(|edit| edit.move_event("alpha", time("2026-03-20T12:00:00Z"), time("2026-03-25T12:00:00Z")));
    app.poll(Endpoint::TokenList).await;
    app.poll(Endpoint::Upcoming).await;
    app.evaluate().await;
    app.deliver().await;
    let mut notified = reasons(&app.hook.take());
    app.tick().await;
    app.deliver().await;
    notified.extend(reasons(&app.hook.take()));
    app.at("2026-03-01T12:00:00Z");
    app.tick().await;
    app.deliver().await;
    notified.extend(reasons(&app.hook.take()));
    assert_eq!(notified.iter().filter(|line| line.contains("ScheduleChanged")).count(), 1, "{notified:#?}");
    assert!(!notified.iter().any(|line| line.starts_with("resolved")), "the cliff is still ahead, within 30 days: {notified:#?}");
    assert_eq!(notified.len(), 1, "{notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_entering_the_visibility_window_are_not_added_events() {
    let mut app = TestApp::start().await;
    app.restart_with(|config| config.source.horizon = "60d".parse().expect("a span")).await;
    app.tick_and_deliver().await;
    let count = async |app: &TestApp| {
        app.app().store().tokens(vec!["alpha".into()], vec![Resource::Unlock]).await.expect("read")[0].records.len()
    };
    let before = count(&app).await;
    app.at("2026-04-01T06:00:00Z");
    app.edit(|edit| edit.move_event("alpha", time("2026-07-20T12:00:00Z"), time("2026-07-21T12:00:00Z")));
    app.tick().await;
    app.deliver().await;
    let notified = reasons(&app.hook.take());
    assert!(count(&app).await > before, "the cliff in May is within the window");
    assert!(!notified.iter().any(|line| line.contains("ScheduleChanged")), "{notified:#?}");
    app.at("2026-04-02T06:00:00Z");
    app.edit(|edit| {
        let mut events = edit.events("alpha")?;
        events.push(cliff("2026-05-02T12:00:00Z", "Advisors", 2e6, "second"));
        edit.put_events("alpha", events)
    });
    app.tick().await;
    app.deliver().await;
    let notified = reasons(&app.hook.take());
    assert_eq!(notified.iter().filter(|line| line.contains("ScheduleChanged")).count(), 1, "{notified:#?}");
}

// ---- the token list and the allocation table ----

fn table(max_supply: f64, team: f64) -> wire::AllocationsData {
    let row = |name: &str, amount: f64| {
        json!({"allocationName": name, "allocationType": "Scheduled", "standardAllocationName": "Reserve", "allocationUnlockedAmount": 0.0,
            "allocationLockedAmount": amount, "allocationAmount": amount, "trackedAllocationPercentage": 100})
    };
    serde_json::from_value(json!({"name": "ALP", "symbol": "ALP", "listedMethod": "INTERNAL", "maxSupply": max_supply,
        "totalUnlockedAmount": 0.0, "totalLockedAmount": max_supply, "totalUntrackedAmount": 0.0, "totalTBDLockedAmount": 0.0,
        "allocations": [row("Team", team), row("Treasury", max_supply - team)]}))
    .expect("a table")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn supply_change_is_notified_once_from_either_feed() {
    for order in [[Endpoint::TokenList, Endpoint::Allocations], [Endpoint::Allocations, Endpoint::TokenList]] {
        let fill = |edit: &mut cliffwatch::service::Edit<'_>| {
            edit.put_token(&item("alpha", "ALP"))?;
            edit.put_allocations("alpha", table(1e9, 2e8))
        };
        let rules = "[[rule]]\nalert = \"Supply\"\non = \"allocation.supply_changed\"\n".to_owned();
        let app = TestApp::with(Setup { rules, fill: Box::new(fill), ..Setup::default() }).await;
        assert_eq!(app.tick_and_deliver().await, [""; 0]);
        app.edit(|edit| {
            edit.put_allocations("alpha", table(1.5e9, 2e8))?;
            edit.put_item("alpha", |item| item.max_supply = 1.5e9.into())
        });
        let mut notified = Vec::new();
        for hour in ["06", "12", "18"] {
            app.at(&format!("2026-03-01T{hour}:00:00Z"));
            for endpoint in order {
                app.poll(endpoint).await;
            }
            app.deliver().await;
            notified.extend(lines(&app.hook.take()));
        }
        assert_eq!(notified.len(), 1, "{order:?}: {notified:#?}");
        assert!(notified[0].starts_with("alert.event Supply alpha"), "{notified:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn supply_missing_for_a_while_is_compared_with_the_last_known_one() {
    let rules = "[[rule]]\nalert = \"Supply\"\non = \"allocation.supply_changed\"\n".to_owned();
    let app = TestApp::with(Setup { rules, ..Setup::default() }).await;
    app.poll(Endpoint::TokenList).await;
    let mut notified = Vec::new();
    for supply in [wire::Maybe::Null, wire::Maybe::Absent, 1e9.into(), wire::Maybe::Null, 3e9.into(), wire::Maybe::Null] {
        app.edit(|edit| edit.put_item("alpha", |item| item.max_supply = supply));
        let changes = app.poll(Endpoint::TokenList).await.changes;
        notified.extend(changes.into_iter().map(|change| change.summary));
    }
    assert_eq!(notified, ["maximum supply changed from 1.00B to 3.00B (×3)"]);
    let stats = app.app().store().poll_stats().await.expect("read");
    let odd = stats.iter().find(|stat| stat.endpoint == Endpoint::TokenList).map(|stat| stat.parse_warnings);
    assert_eq!(odd, Some(4), "each gap is counted");
}

// ---- emission by day and by week ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn switching_between_daily_and_weekly_emission_reports_no_changes() {
    let rules = "[[rule]]\nalert = \"Restated\"\non = \"emission.*\"\n".to_owned();
    let config = "[schedule]\ndaily_emission = \"0 40 */6 * * *\"\n".to_owned();
    let mut app = TestApp::with(Setup { rules, config, ..Setup::default() }).await;
    let mut counts = Vec::new();
    for (hour, by_day) in [("00", true), ("06", true), ("12", false), ("18", false), ("23", true)] {
        app.restart_with(|config| {
            let (on, off) = ("0 40 */6 * * *".to_owned(), "off".to_owned());
            (config.schedule.daily_emission, config.schedule.weekly_emission) = if by_day { (on, off) } else { (off, on) };
        })
        .await;
        app.at(&format!("2026-03-01T{hour}:00:00Z"));
        let cliffs = |line: &String| line.contains("Restated");
        assert_eq!(
            app.tick_and_deliver().await.into_iter().filter(cliffs).collect::<Vec<_>>(),
            [""; 0],
            "{hour}: nothing was restated"
        );
        let snapshots = app.app().store().tokens(vec!["alpha".into()], vec![Resource::Emission]).await.expect("read");
        counts.push(snapshots[0].records.len());
    }
    assert!(counts[0] > 6, "daily records are missing: {counts:?}");
    assert!(counts.iter().all(|count| *count >= counts[0]), "records were removed: {counts:?}");
}

// ---- limits ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_limit_applies_to_the_whole_cycle() {
    const TOKENS: usize = 80;
    let fill = |edit: &mut cliffwatch::service::Edit<'_>| {
        for n in 0..TOKENS {
            let id = format!("token-{n:02}");
            edit.put_token(&item(&id, &id))?;
            edit.put_events(&id, vec![cliff("2026-03-20T12:00:00Z", "Team", 2e6, "second")])?;
        }
        Ok(())
    };
    let rules = "[[rule]]\nalert = \"Ahead\"\non = \"unlock\"\nwithin = [\"30d\"]\nlimit = 3\n".to_owned();
    let app = TestApp::with(Setup { rules, fill: Box::new(fill), ..Setup::default() }).await;
    let notified = app.tick_and_deliver().await;
    let (summaries, single): (Vec<_>, Vec<_>) = notified.iter().partition(|line| line.contains("77"));
    assert_eq!((single.len(), summaries.len()), (3, 1), "expected three messages and one summary: {notified:#?}");
    assert_eq!(app.tick_and_deliver().await, [""; 0]);
}

// ---- partly unreadable responses ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_record_never_counts_as_removed() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    let july = "2026-07-20T12:00:00Z";
    let count =
        async || app.app().store().tokens(vec!["alpha".into()], vec![Resource::Unlock]).await.expect("read")[0].records.len();
    assert_eq!(count().await, 6);
    app.faults.set("/v5/unlock/events/alpha", Fault::Replaced { from: july.into(), to: "no date at all".into() });
    for hour in ["06", "12", "18"] {
        app.at(&format!("2026-03-01T{hour}:00:00Z"));
        assert_eq!(app.tick_and_deliver().await, [""; 0], "{hour}: an unreadable record is neither an incident nor a removal");
        assert_eq!(count().await, 6, "{hour}");
    }
    app.faults.clear();
    app.at("2026-03-02T00:00:00Z");
    assert_eq!(app.tick_and_deliver().await, [""; 0], "the record was never removed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_field_is_logged_and_the_rest_is_used() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    app.edit(|edit| {
        edit.add_burn("alpha", burn("2026-03-01T01:00:00Z", 9_000.0))?;
        edit.add_burn("alpha", burn("2026-03-01T02:00:00Z", 8_000.0))
    });
    app.faults.set("/v5/burn/alpha", Fault::Replaced { from: "8000.0".into(), to: "\"a lot\"".into() });
    app.at("2026-03-01T06:00:00Z");
    let notified = app.tick_and_deliver().await;
    assert_eq!(notified.len(), 1, "only the burn with a readable amount matches: {notified:#?}");
    assert!(notified[0].contains("Burned alpha") && notified[0].contains("9"), "{notified:#?}");
    let noted = app.database().column("SELECT parse_warnings FROM poll WHERE endpoint = 'burn' AND parse_warnings_total > 0");
    let noted = noted.first().and_then(Value::as_str).expect("parse warnings in the poll log");
    assert!(noted.contains("burns[0].amount") && noted.contains("a lot"), "the warning lacks the field or its value: {noted}");
}

// ---- rules that change, evaluations that fail ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_added_by_a_reload_survives_a_failed_evaluation() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    let rules = format!("{RULES}\n[[rule]]\nalert = \"Any\"\non = \"unlock\"\nwithin = [\"60d\"]\ntokens = [\"alpha\"]\n");
    std::fs::write(app.folder.path().join("rules/test.toml"), rules).expect("written");
    app.app().reload().await.expect("good rules");
    app.database().sabotage("notification");
    app.at("2026-03-01T00:01:00Z");
    let error = app.app().tick(Job::Evaluate).await.expect_err("the database fails");
    assert!(error.to_string().contains("write"), "{error}");
    app.database().repair("notification");
    app.at("2026-03-01T00:02:00Z");
    app.evaluate().await;
    app.deliver().await;
    assert_eq!(reasons(&app.hook.take()), ["firing lead 60d Any alpha"; 2], "both alerts, for March and April");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renamed_rule_keeps_its_alerts_and_deleted_rule_resolves_them() {
    let app = TestApp::start().await;
    assert_eq!(app.tick_and_deliver().await.len(), 1);
    let file = app.folder.path().join("rules/test.toml");
    let named = RULES.replacen("alert  = \"BigCliffAhead\"", "alert = \"Renamed\"\nid = \"BigCliffAhead\"", 1);
    assert_ne!(named, RULES, "the rule exists");
    std::fs::write(&file, &named).expect("written");
    app.app().reload().await.expect("good rules");
    app.at("2026-03-01T00:01:00Z");
    app.evaluate().await;
    app.deliver().await;
    assert_eq!(lines(&app.hook.take()), [""; 0], "nothing is repeated");

    // Another reload repeats nothing either.
    app.app().reload().await.expect("good rules");
    app.at("2026-03-01T00:02:00Z");
    app.evaluate().await;
    app.deliver().await;
    assert_eq!(lines(&app.hook.take()), [""; 0]);

    let from = RULES.find("[[rule]]\nalert  = \"BigCliffAhead\"").expect("the rule exists");
    let rest = RULES[from + 8..].find("[[rule]]").map_or("", |next| &RULES[from + 8 + next..]);
    std::fs::write(&file, format!("{}{rest}", &RULES[..from])).expect("written");
    app.app().reload().await.expect("good rules");
    app.at("2026-03-01T00:03:00Z");
    app.evaluate().await;
    app.deliver().await;
    assert_eq!(reasons(&app.hook.take()), ["resolved rule gone Renamed alpha"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_with_failing_tests_are_not_activated() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    let folder = app.folder.path().join("rules");
    let owned = format!("{RULES}\n[[rule]]\nalert = \"Owned\"\non = \"burn\"\nowner = \"treasury\"\n");
    std::fs::write(folder.join("test.toml"), &owned).expect("written");
    std::fs::create_dir_all(folder.join("tests")).expect("made");
    let test = "[[test]]\nname = \"nothing of Owned\"\nstart = 2026-03-01T00:00:00Z\n[[test.input]]\ntoken = \"x\"\nburn = []\n[[test.input]]\nat = \"1d\"\ntoken = \"x\"\nadd = [{ burn = \"2026-03-01\", amount = 7 }]\n[[test.expect]]\nat = \"2d\"\nrule = \"Owned\"\nsilence = true\n";
    std::fs::write(folder.join("tests/t.toml"), test).expect("written");
    let problem = app.app().reload().await.expect_err("a test fails").full;
    assert!(problem.contains("nothing of Owned") && problem.contains("unexpected:"), "{problem}");
    app.deliver().await;
    let notified = app.hook.take();
    let notified: Vec<String> = notified.iter().map(|body| body["data"]["alerts"][0].to_string()).collect();
    assert_eq!(notified.len(), 1, "{notified:#?}");
    assert!(notified[0].contains("tests/t.toml:11: the test fails: nothing of Owned"), "{notified:#?}");
    assert!(notified[0].contains("\"owner\":\"treasury\""), "{notified:#?}");

    std::fs::write(folder.join("tests/t.toml"), test.replace("silence = true", "alert = [{ rule = \"Owned\" }]"))
        .expect("written");
    assert_eq!(
        app.app().reload().await.expect("a successful reload").text,
        format!("{} active rules, 1 test passed", owned.matches("[[rule]]").count())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_commit_is_retried_and_notified_once() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    app.edit(|edit| edit.move_event("alpha", time("2026-05-20T12:00:00Z"), time("2026-05-25T12:00:00Z")));
    app.database().sabotage("pending_notification");
    app.at("2026-03-01T06:00:00Z");
    app.poll(Endpoint::TokenList).await;
    app.app().tick(Job::Poll(Endpoint::UnlockEvents)).await.expect_err("the database fails");
    app.database().repair("pending_notification");
    // A failure between the commit and the outbox loses nothing either.
    app.database().sabotage("delivery_notification");
    app.at("2026-03-01T12:00:00Z");
    app.tick().await;
    assert_ne!(app.deliver().await.errors, [""; 0]);
    assert_eq!(lines(&app.hook.take()), [""; 0]);
    app.database().repair("delivery_notification");
    let notified = app.tick_and_deliver().await;
    assert_eq!(notified.len(), 1, "{notified:#?}");
    assert!(notified[0].starts_with("alert.event ScheduleChanged alpha"), "{notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_of_an_unwatched_token_resolve() {
    let mut app = TestApp::start().await;
    assert_eq!(app.tick_and_deliver().await.len(), 1);
    app.restart_with(|config: &mut Config| config.watch.tokens = vec!["beta".into()]).await;
    app.at("2026-03-01T00:01:00Z");
    app.evaluate().await;
    app.deliver().await;
    let bodies = app.hook.take();
    let notified = lines(&bodies);
    assert_eq!(reasons(&bodies), ["resolved unwatched BigCliffAhead alpha"], "{notified:#?}");
    app.at("2026-03-14T00:00:00Z");
    assert_eq!(app.tick_and_deliver().await, [""; 0], "no reminder is sent");
}

// ---- receivers ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letter_is_announced_to_the_fallback_once() {
    let app = TestApp::with(Setup { config: "fallback = [\"desk\"]\n".into(), ..Setup::default() }).await;
    app.hook.respond_always(Some(400));
    app.tick().await;
    app.deliver().await;
    let notified = lines(&app.desk.take());
    assert_eq!(notified.len(), 1, "{notified:#?}");
    assert!(notified[0].starts_with("source SourceTrouble") && notified[0].contains("ops"), "{notified:#?}");
    assert_eq!(app.database().count("SELECT count(*) FROM delivery WHERE state = 'dead'"), 1);
    app.hook.respond_always(None);
    app.at("2026-03-02T00:00:00Z");
    app.deliver().await;
    assert_eq!(lines(&app.desk.take()), [""; 0], "announced once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_attempts_have_the_same_webhook_id_across_restarts() {
    let mut app = TestApp::start().await;
    app.hook.respond_always(Some(503));
    app.tick().await;
    for minute in [0, 5, 30] {
        app.at(&format!("2026-03-01T00:{minute:02}:00Z"));
        app.deliver().await;
        app.restart().await;
    }
    app.hook.respond_always(None);
    app.at("2026-03-01T06:00:00Z");
    app.deliver().await;
    let ids = app.hook.tried();
    assert!(ids.len() >= 3, "{ids:?}");
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(app.hook.take().len(), 1);
}
